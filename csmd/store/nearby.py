"""What stands beside what was found: a turn's session and neighbours, the turns that state a memory, linked memories.

Each answer is one statement (of links two) for all the rows asked about, so that a search costs as many however much it finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.store.fulltext import SEARCHED
from csmd.store.sqlite import Rows

#: From an exchange's own begin and end no turn is further away that is looked at; what is, stands beside its neighbours.
LONGEST_EXCHANGE = 200
#: What was said in the session of `me`.
_SAID = f"from session_turn n join {SEARCHED} where n.session_seq = me.session_seq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Where a turn stands: its session's row, its time, what was said before and after it there (0: nothing).

    An assistant talks while it works: of an exchange count what was asked and the last that was answered, so that a
    prompt has its answer after it, the answer its prompt before it, and what was said `midway` stands between the two.
    """

    session: int
    at: str
    before: int
    after: int
    midway: bool = False


def _keys(seqs: Sequence[int]) -> str:
    return ", ".join(str(int(seq)) for seq in seqs)


def beside(rows: Rows, seqs: Sequence[int]) -> dict[int, Beside]:
    """Where each of these turns stands in its own session."""
    keys = _keys(seqs)
    found = rows.all(
        "select own.seq, own.session_seq, own.at, "  # noqa: S608
        f"case when own.kind = 'assistant' then (select n.turn_seq {_SAID} and n.ordinal < me.ordinal "
        "and n.ordinal > me.ordinal - :most and t.kind <> 'assistant' order by n.ordinal desc limit 1) end, "
        f"(select n.turn_seq {_SAID} and n.ordinal < me.ordinal order by n.ordinal desc limit 1), "
        f"(select n.turn_seq {_SAID} and n.ordinal > me.ordinal and n.ordinal < coalesce("
        f"(select n.ordinal {_SAID} and n.ordinal > me.ordinal and n.ordinal < me.ordinal + :most "
        "and t.kind <> 'assistant' order by n.ordinal limit 1), me.ordinal + :most) order by n.ordinal desc limit 1), "
        f"(select n.turn_seq {_SAID} and n.ordinal > me.ordinal order by n.ordinal limit 1), own.kind = 'assistant' "
        "from turns own join session_turn me on me.turn_seq = own.seq and me.session_seq = own.session_seq "
        f"where own.seq in ({keys})",
        most=LONGEST_EXCHANGE,
    )
    return {
        int(seq): Beside(
            session=int(session),
            at=str(at),
            before=int(asked or left or 0),
            after=int(answered or right or 0),
            midway=bool(answers and answered),
        )
        for seq, session, at, asked, left, answered, right, answers in found
    }


def statements(rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None) -> list[tuple[int, int]]:
    """(memory, turn) of the turns of these projects (None: all) that state or confirm these memories, by row keys.

    The memories come first: led by its index of what is searchable, the planner would walk every turn there is.
    """
    among = "" if projects is None else f"and t.project_seq in ({_keys(projects)})"
    keys = _keys(memory_seqs)
    found = rows.all(
        "select p.memory_seq, t.seq from provenance p cross join turns t "  # noqa: S608
        f"where t.uuid = p.uuid and p.memory_seq in ({keys}) and p.role <> 'beside' and t.searchable = 1 {among} "
        "order by p.memory_seq, t.seq"
    )
    return [(int(memory), int(turn)) for memory, turn in found]


def linked(
    rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None
) -> list[tuple[int, int, str, float]]:
    """(memory asked about, memory of these projects linked with it, relationship, weight), whichever of the two begins."""
    keys = _keys(memory_seqs)
    among = "" if projects is None else f"and m.project_seq in ({_keys(projects)})"
    found = rows.all(
        "select l.from_seq, m.seq, l.relationship, l.weight from links l join memories m on m.seq = l.to_seq "  # noqa: S608
        f"where l.from_seq in ({keys}) {among}"
    )
    found += rows.all(
        "select l.to_seq, m.seq, l.relationship, l.weight from links l join memories m on m.seq = l.from_seq "  # noqa: S608
        f"where l.to_seq in ({keys}) {among}"
    )
    return [(int(one), int(other), str(name), float(weight)) for one, other, name, weight in found]


def explained(rows: Rows, turn_seqs: Sequence[int], *, projects: Sequence[int] | None) -> list[tuple[int, int]]:
    """(turn, memory of these projects that explains what the turn reports)."""
    keys = _keys(turn_seqs)
    among = "" if projects is None else f"and m.project_seq in ({_keys(projects)})"
    found = rows.all(
        "select t.seq, m.seq from turns t join symptoms y on y.uuid = t.uuid join memories m on m.seq = y.memory_seq "  # noqa: S608
        f"where t.seq in ({keys}) {among}"
    )
    return [(int(turn), int(memory)) for turn, memory in found]


def asked_between(
    rows: Rows, since: str, until: str, *, projects: Sequence[int] | None, limit: int
) -> list[tuple[int, str]]:
    """(turn, time) of what users said from `since` on and before `until`, by the sessions of that time, latest first.

    The sessions come first, for the reason that the memories do in `statements`.
    """
    among = "" if projects is None else f"and s.project_seq in ({_keys(projects)})"
    found = rows.all(
        "select t.seq, t.at from (select s.seq from sessions s where s.parent = '' and s.last_at >= :since "  # noqa: S608
        f"and (:until = '' or s.started_at < :until) {among} order by s.last_at desc limit :limit) own "
        "cross join session_turn st cross join turns t where st.session_seq = own.seq and t.seq = st.turn_seq "
        "and t.kind in ('user', 'relayed') and t.searchable = 1 and t.at >= :since and (:until = '' or t.at < :until) "
        "order by t.at desc, t.seq desc limit :limit",
        since=since,
        until=until,
        limit=limit,
    )
    return [(int(seq), str(at)) for seq, at in found]
