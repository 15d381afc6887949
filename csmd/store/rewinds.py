"""Turns abandoned by a rewind or an edited prompt: those from a prompt up to its replacement.

A transcript keeps them as a branch that ends. Other things branch, too (parallel tool calls, sub-agents, a compaction,
a session that continues in another file), so a branch has ended only if a later prompt of the same session continues
from the same line as the earlier prompt, or from one before it. If the user continues from such a branch after all (two
terminals in one session, a rewind undone), the turns on the way to it are restored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from csmd.store import (
    belief_changes,
    checkpoints,
    cursors,
    digests,
    memories,
    memory_deletion,
    memory_scenes,
    packet_rows,
    stored_days,
)
from csmd.store.sqlite import Rows, in_keys
from csmd.vocabulary import TOOL_KINDS

#: Turns that begin a branch, in the terms of their index.
_PROMPTS = "t.parent_uuid <> '' and t.kind in ('user', 'relayed', 'command')"
#: The stage that chooses statements.
DISTILL_STAGE = "distill"


def mark_rewound(rows: Rows, session_seq: int, turn_seq: int, *, parent: str) -> None:
    """Marks the turns that a prompt at the line `parent` abandons and deletes what was derived from them.

    Turns shared with a fork from before the rewind keep what was derived from them.
    """
    own = _find_ordinal(rows, session_seq, turn_seq)
    first = _find_branch_start(rows, session_seq, own, parent)
    if first is None:
        return
    sql = """update session_turn set rewound = 1
        where session_seq = :session and ordinal >= :first and ordinal < :own and rewound = 0 and exists (select 1
        from turns t where t.seq = session_turn.turn_seq and t.source = 'transcript') returning turn_seq"""
    abandoned = rows.column(sql, session=session_seq, first=first, own=own)
    if abandoned:
        _clear_derived(rows, session_seq, abandoned, first)


def mark_abandoned(rows: Rows, stream: str, is_abandoned: Callable[[str], bool]) -> None:
    """Marks the turns (by uuid) that a session's host has abandoned and deletes what was derived from them."""
    sql = """select st.session_seq, st.turn_seq, t.uuid
        from session_turn st join turns t on t.seq = st.turn_seq join sessions s on s.seq = st.session_seq
        where s.id = :stream and st.rewound = 0 and t.source = 'transcript' order by st.ordinal"""
    abandoned = [(session, turn) for session, turn, uuid in rows.all(sql, stream=stream) if is_abandoned(uuid)]
    if abandoned:
        session, first_turn = abandoned[0]
        turns = [turn for _, turn in abandoned]
        _set_rewound(rows, session, turns, is_rewound=True)
        _clear_derived(rows, session, turns, _find_ordinal(rows, session, first_turn))


def _find_ordinal(rows: Rows, session_seq: int, turn_seq: int) -> int:
    return int(rows.find("session_turn", "ordinal", session_seq=session_seq, turn_seq=turn_seq) or 0)


def _set_rewound(rows: Rows, session_seq: int, turns: Sequence[int], *, is_rewound: bool) -> None:
    sql = f"update session_turn set rewound = :rewound where session_seq = :session and {in_keys('turn_seq', turns)}"  # noqa: S608
    rows.run(sql, rewound=int(is_rewound), session=session_seq)


def _clear_derived(rows: Rows, session_seq: int, turns: Sequence[int], first: int) -> None:
    """Deletes what was derived from rewound turns, the first of which is at the ordinal `first`."""
    for turn in turns:
        if not rows.has("session_turn", turn_seq=turn, rewound=0):
            _remove_derived(rows, turn)
    _derive_again(rows, session_seq, first)


def _derive_again(rows: Rows, session_seq: int, first: int) -> None:
    """Deletes the digests and days of a session and distils it again from an ordinal: repetitions may have changed."""
    digests.clear(rows, session_seq)
    stored_days.clear_days(rows, session_seq)
    if cursors.read_cursor(rows, DISTILL_STAGE, str(session_seq)) >= first:
        cursors.move_cursor(rows, DISTILL_STAGE, str(session_seq), first - 1)


def restore_branch(rows: Rows, session_seq: int, *, parent: str) -> list[int]:
    """Restores the turns between the line `parent` and the start of its branch, and returns them.

    The caller makes them searchable. They are distilled again.
    """
    branch: list[int] = []
    first = 0
    uuid = parent
    sql = """select t.seq, t.parent_uuid, st.ordinal from turns t join session_turn st on st.turn_seq = t.seq
        where t.uuid = :uuid and st.session_seq = :session and st.rewound = 1"""
    while uuid and (turn := rows.first(sql, uuid=uuid, session=session_seq)) is not None and turn[0] not in branch:
        seq, uuid, first = turn
        branch.append(seq)
    if branch:
        _set_rewound(rows, session_seq, branch, is_rewound=False)
        _derive_again(rows, session_seq, first)
    return branch


def is_rewound(rows: Rows, session_seq: int, turn_seq: int) -> bool:
    """Whether a turn of a session was abandoned by a rewind."""
    return rows.has("session_turn", session_seq=session_seq, turn_seq=turn_seq, rewound=1)


def _find_branch_start(rows: Rows, session_seq: int, own: int, parent: str) -> int | None:
    """Returns the ordinal of the first prompt of a session that the prompt at `own` replaces, or None."""
    sql = f"""select min(st.ordinal) from turns t join session_turn st on st.turn_seq = t.seq
        where t.parent_uuid = :parent and {_PROMPTS} and st.session_seq = :session and st.ordinal < :own"""  # noqa: S608
    sibling = rows.key(sql, parent=parent, session=session_seq, own=own)
    if sibling is not None:
        return sibling
    listed = """select st.ordinal
        from turns t join session_turn st on st.turn_seq = t.seq where t.uuid = :parent and st.session_seq = :session"""
    after = rows.key(listed, parent=parent, session=session_seq)
    if after is None:
        return None
    sql = f"""select st.ordinal, t.parent_uuid from session_turn st join turns t on t.seq = st.turn_seq
        where st.session_seq = :session and st.ordinal > :after and st.ordinal < :own and {_PROMPTS}
        order by st.ordinal"""  # noqa: S608
    between = rows.all(sql, session=session_seq, after=after, own=own)
    return next(
        (ordinal for ordinal, line in between if _is_descendant(rows, session_seq, ordinal, line, parent, after)), None
    )


def _is_descendant(rows: Rows, session_seq: int, ordinal: int, line: str, ancestor: str, after: int) -> bool:
    """Whether the turn at an ordinal, which continues a line, descends from another line, which is at `after`.

    A line that is not a turn (thinking, a note of the host) counts as following the turn before it.
    """
    select = """select st.ordinal, t.parent_uuid, t.uuid from turns t
        join session_turn st on st.turn_seq = t.seq where st.session_seq = :session and st.ordinal < :ordinal"""
    while line and line != ancestor:
        own_turn = rows.first(f"{select} and t.uuid = :line", line=line, session=session_seq, ordinal=ordinal)
        previous = own_turn or rows.first(
            f"{select} and t.source = 'transcript' order by st.ordinal desc limit 1",
            session=session_seq,
            ordinal=ordinal,
        )
        if previous is None or previous[0] < after:
            return False
        ordinal, parent_uuid, uuid = previous
        line = parent_uuid if own_turn else uuid
    return line == ancestor


def _remove_derived(rows: Rows, seq: int) -> None:
    """Deletes what was derived from a turn, except what a person has kept or changed; its text stays in its session."""
    ((uuid, kind),) = rows.all("select uuid, kind from turns where seq = :seq", seq=seq)
    stated = memories.memories_by_turn(rows, [uuid]).get(uuid, ())
    own = [memory.seq for memory in stated if not belief_changes.is_of_person(rows, memory)]
    memory_deletion.drop_sources(rows, f"uuid = :uuid and {in_keys('memory_seq', own)}", uuid=uuid)
    memory_scenes.forget_scenes(rows, uuid)
    rows.delete("statements", turn_seq=seq)
    rows.delete("passages", turn_seq=seq)
    rows.update("turns", seq, searchable=0)
    checkpoints.delete_turn(rows, seq)
    if kind not in TOOL_KINDS:  # a tool was run whatever was said afterwards
        packet_rows.take_back_packets(rows, uuid)
