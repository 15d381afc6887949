"""What a rewind or an edited prompt left behind: the turns from a prompt up to its replacement.

A transcript keeps them as a branch that ends. Other things branch, too (parallel tool calls, sub-agents, a compaction,
a session that continues in another file), so a branch has ended only if a later prompt of the same session continues
from the same line as the earlier prompt, or from one before it. If the user continues from such a branch after all (two
terminals in one session, a rewind taken back), the turns on the way to it are restored.
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
    """Marks what a prompt that continues from the line `parent` leaves behind, and removes what was made of it.

    What another session also holds, a fork from before the rewind, stays.
    """
    place = "select ordinal from session_turn where session_seq = :session and turn_seq = :turn"
    own = rows.number(place, session=session_seq, turn=turn_seq)
    begin = _branch_start(rows, session_seq, own, parent)
    if begin is None:
        return
    sql = (
        "update session_turn set rewound = 1 "
        "where session_seq = :session and ordinal >= :begin and ordinal < :own and rewound = 0 and exists "
        "(select 1 from turns t where t.seq = session_turn.turn_seq and t.source = 'transcript') returning turn_seq"
    )
    left = rows.column(sql, session=session_seq, begin=begin, own=own)
    if left:
        _clear_derived(rows, session_seq, left, begin)


def mark_abandoned(rows: Rows, stream: str, is_left: Callable[[str], bool]) -> None:
    """Marks the turns that a session's host has left behind, by uuid, and removes what was made of them."""
    standing = rows.all(
        "select st.turn_seq, st.ordinal, t.uuid, st.session_seq from session_turn st "
        "join turns t on t.seq = st.turn_seq join sessions s on s.seq = st.session_seq "
        "where s.id = :stream and st.rewound = 0 and t.source = 'transcript' order by st.ordinal",
        stream=stream,
    )
    left = [(seq, ordinal, session) for seq, ordinal, uuid, session in standing if is_left(uuid)]
    for seq, _, session in left:
        sql = "update session_turn set rewound = 1 where session_seq = :session and turn_seq = :turn"
        rows.run(sql, session=session, turn=seq)
    if left:
        _clear_derived(rows, left[0][2], [seq for seq, *_ in left], left[0][1])


def _clear_derived(rows: Rows, session_seq: int, left: Sequence[int], begin: int) -> None:
    """Removes what was made of rewound turns, the first of which is at the ordinal `begin`."""
    for seq in left:
        if not rows.exists("select 1 from session_turn where turn_seq = :turn and rewound = 0", turn=seq):
            _remove_derived(rows, seq)
    digests.clear(rows, session_seq)
    stored_days.clear_days(rows, session_seq)
    if (
        cursors.read_cursor(rows, DISTILL_STAGE, str(session_seq)) >= begin
    ):  # a kept turn may have counted as a repetition
        cursors.move_cursor(rows, DISTILL_STAGE, str(session_seq), begin - 1)


def restore_branch(rows: Rows, session_seq: int, *, parent: str) -> list[int]:
    """Restores the turns between the line `parent` and the start of its branch, and returns them.

    The caller makes them searchable. They are distilled again.
    """
    standing: list[int] = []
    first, line = 0, parent
    while line:
        branch = rows.first(
            "select t.seq, t.parent_uuid, st.ordinal from turns t join session_turn st on st.turn_seq = t.seq "
            "where t.uuid = :uuid and st.session_seq = :session and st.rewound = 1",
            uuid=line, session=session_seq,
        )  # fmt: skip
        if branch is None or branch[0] in standing:
            break
        standing.append(branch[0])
        line, first = branch[1], branch[2]
    for seq in standing:
        sql = "update session_turn set rewound = 0 where session_seq = :session and turn_seq = :turn"
        rows.run(sql, session=session_seq, turn=seq)
    if standing:
        digests.clear(rows, session_seq)
        stored_days.clear_days(rows, session_seq)
        if cursors.read_cursor(rows, DISTILL_STAGE, str(session_seq)) >= first:
            cursors.move_cursor(rows, DISTILL_STAGE, str(session_seq), first - 1)
    return standing


def is_rewound(rows: Rows, session_seq: int, turn_seq: int) -> bool:
    """Whether a rewind left a turn behind in a session."""
    sql = "select 1 from session_turn where session_seq = :session and turn_seq = :turn and rewound = 1"
    return rows.exists(sql, session=session_seq, turn=turn_seq)


def _branch_start(rows: Rows, session_seq: int, own: int, parent: str) -> int | None:
    """The ordinal of the first prompt of a session that the prompt at `own` replaces, or None."""
    sql = (
        "select min(st.ordinal) from turns t join session_turn st on st.turn_seq = t.seq "  # noqa: S608
        f"where t.parent_uuid = :parent and {_PROMPTS} and st.session_seq = :session and st.ordinal < :own"
    )
    sibling = rows.key(sql, parent=parent, session=session_seq, own=own)
    if sibling is not None:
        return sibling
    listed = (
        "select st.ordinal from turns t join session_turn st on st.turn_seq = t.seq "
        "where t.uuid = :parent and st.session_seq = :session"
    )
    after = rows.key(listed, parent=parent, session=session_seq)
    if after is None:
        return None
    sql = (
        "select st.ordinal, t.parent_uuid from session_turn st join turns t on t.seq = st.turn_seq "  # noqa: S608
        f"where st.session_seq = :session and st.ordinal > :after and st.ordinal < :own and {_PROMPTS} "
        "order by st.ordinal"
    )
    between = rows.all(sql, session=session_seq, after=after, own=own)
    return next(
        (place for place, line in between if _is_descendant(rows, session_seq, place, line, parent, after)), None
    )


def _is_descendant(rows: Rows, session_seq: int, place: int, line: str, ancestor: str, after: int) -> bool:
    """Whether the turn at an ordinal, which continues a line, descends from another line, which is at `after`.

    A line that is not a turn (thinking, a note of the host) counts as following the turn before it.
    """
    while line and line != ancestor:
        sql = (
            "select st.ordinal, t.parent_uuid, t.uuid from turns t join session_turn st on st.turn_seq = t.seq "
            "where t.uuid = :line and st.session_seq = :session and st.ordinal < :place"
        )
        own_turn = rows.first(sql, line=line, session=session_seq, place=place)
        before = own_turn or rows.first(
            "select st.ordinal, t.parent_uuid, t.uuid from turns t join session_turn st on st.turn_seq = t.seq "
            "where st.session_seq = :session and st.ordinal < :place and t.source = 'transcript' "
            "order by st.ordinal desc limit 1",
            session=session_seq, place=place,
        )  # fmt: skip
        if before is None or before[0] < after:
            return False
        place, line = before[0], before[1] if own_turn else before[2]
    return line == ancestor


def _remove_derived(rows: Rows, seq: int) -> None:
    """Removes what was made of a turn, except what a person has kept or changed; its text stays in its session."""
    uuid, kind = rows.all("select uuid, kind from turns where seq = :seq", seq=seq)[0]
    made = memories.memories_by_turn(rows, [uuid]).get(uuid, ())
    own = [memory.seq for memory in made if not belief_changes.is_of_person(rows, memory)]
    memory_deletion.drop_sources(rows, f"uuid = :uuid and {in_keys('memory_seq', own)}", uuid=uuid)
    memory_scenes.forget_scenes(rows, uuid)
    rows.delete("statements", turn_seq=seq)
    rows.delete("passages", turn_seq=seq)
    rows.update("turns", seq, searchable=0)
    checkpoints.drop_turn(rows, seq)
    if kind not in TOOL_KINDS:  # a tool was run whatever was said afterwards
        packet_rows.take_back_packets(rows, uuid)
