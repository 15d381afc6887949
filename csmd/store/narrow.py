"""What a search is limited to: a time, a session, a kind of memory; which of the rows that were found it lets through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """The limits of a search, "" for none: stored times from `since` on and before `until`, a whole session id."""

    since: str = ""
    until: str = ""
    session: str = ""
    gate: str = ""
    category: str = ""
    type: str = ""

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self == Narrow()


def turns(rows: Rows, seqs: Sequence[int], narrow: Narrow) -> set[int]:
    """Those of these turns that a search so limited may show; a sub-agent's turns are its session's."""
    keys = ", ".join(str(int(seq)) for seq in seqs)
    found = rows.all(
        "select t.seq from turns t join sessions s on s.seq = t.session_seq "  # noqa: S608
        f"where t.seq in ({keys}) and (:since = '' or t.at >= :since) and (:until = '' or t.at < :until) "
        "and (:session = '' or s.id = :session or s.parent = :session)",
        since=narrow.since,
        until=narrow.until,
        session=narrow.session,
    )
    return {int(seq) for (seq,) in found}


def passages(rows: Rows, seqs: Sequence[int], narrow: Narrow) -> set[int]:
    """Those of these passages that a search so limited may show."""
    keys = ", ".join(str(int(seq)) for seq in seqs)
    found = rows.all(
        "select p.seq from passages p join turns t on t.seq = p.turn_seq join sessions s on s.seq = p.session_seq "  # noqa: S608
        f"where p.seq in ({keys}) and (:since = '' or t.at >= :since) and (:until = '' or t.at < :until) "
        "and (:session = '' or s.id = :session or s.parent = :session)",
        since=narrow.since,
        until=narrow.until,
        session=narrow.session,
    )
    return {int(seq) for (seq,) in found}


def memories(rows: Rows, seqs: Sequence[int], narrow: Narrow) -> set[int]:
    """Those of these memories that a search so limited may show: their time is that of what was last said for them."""
    keys = ", ".join(str(int(seq)) for seq in seqs)
    found = rows.all(
        "select m.seq from memories m "  # noqa: S608
        f"where m.seq in ({keys}) and (:since = '' or m.confirmed_at >= :since) "
        "and (:until = '' or m.confirmed_at < :until) and (:gate = '' or m.gate = :gate) "
        "and (:category = '' or m.category = :category) and (:type = '' or m.type = :type) "
        "and (:session = '' or exists (select 1 from provenance p where p.memory_seq = m.seq and p.session_id = :session))",
        since=narrow.since,
        until=narrow.until,
        gate=narrow.gate,
        category=narrow.category,
        type=narrow.type,
        session=narrow.session,
    )
    return {int(seq) for (seq,) in found}
