"""What search reads: scored rows by words and by vector, and their texts; nearby.py what stands beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csmd.model import TurnKind
from csmd.store.sqlite import Rows, memories_with, text_hits, vector_hits

__all__ = [
    "TurnRow",
    "around",
    "kind_of",
    "memories_of_turn",
    "memories_with",
    "memory_count",
    "text_hits",
    "turns_by_seq",
    "turns_like",
    "turns_of_uuids",
    "vector_hits",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A turn as a search result shows it."""

    seq: int
    uuid: str
    kind: TurnKind
    text: str
    at: str
    session_id: str
    project: str
    project_seq: int


def turns_by_seq(rows: Rows, seqs: Sequence[int]) -> dict[int, TurnRow]:
    """Turns by row key, with their session and project root."""
    if not seqs:
        return {}
    keys = ", ".join(str(int(seq)) for seq in seqs)
    return {
        int(a): TurnRow(seq=a, uuid=b, kind=c, text=d, at=e, session_id=g or f, project=h, project_seq=i)
        for a, b, c, d, e, f, g, h, i in rows.all(
            "select t.seq, t.uuid, t.kind, t.text, t.at, s.id, s.parent, p.root, p.seq from turns t "  # noqa: S608
            f"join sessions s on s.seq = t.session_seq join projects p on p.seq = t.project_seq where t.seq in ({keys})"
        )
    }


def kind_of(rows: Rows, uuid: str) -> str:
    """Of which kind a turn is; "" for one that is not stored."""
    return str(rows.value("select kind from turns where uuid = :uuid", uuid=uuid) or "")


def around(rows: Rows, seq: int, *, each: int) -> tuple[list[int], list[int]]:
    """The searchable turns before and after a turn in its own session, in order, at most so many on `each` side."""
    sides = []
    for operator, order in (("<", "desc"), (">", "asc")):
        found = rows.all(
            "select n.turn_seq from turns own join session_turn me "  # noqa: S608
            "on me.turn_seq = own.seq and me.session_seq = own.session_seq "
            f"join session_turn n on n.session_seq = me.session_seq and n.ordinal {operator} me.ordinal "
            "join turns t on t.seq = n.turn_seq and t.searchable = 1 "
            f"where own.seq = :seq order by n.ordinal {order} limit :each",
            seq=seq,
            each=each,
        )
        sides.append([int(one) for (one,) in found])
    return sides[0][::-1], sides[1]


def turns_of_uuids(rows: Rows, uuids: Sequence[str]) -> dict[str, int]:
    """The row keys of turns by uuid."""
    found: dict[str, int] = {}
    for uuid in uuids:
        seq = rows.value("select seq from turns where uuid = :uuid", uuid=uuid)
        if seq is not None:
            found[uuid] = int(seq)
    return found


def memories_of_turn(rows: Rows, uuid: str) -> list[int]:
    """The row keys of the memories that a turn states or confirms."""
    found = rows.all("select memory_seq from provenance where uuid = :uuid order by memory_seq", uuid=uuid)
    return [int(seq) for (seq,) in found]


def turns_like(rows: Rows, prefix: str) -> list[tuple[int, str]]:
    """(row key, uuid) of turns whose uuid begins so, at most 5."""
    found = rows.all(
        "select seq, uuid from turns where uuid >= :prefix and uuid < :prefix || '~' order by uuid limit 5",
        prefix=prefix,
    )
    return [(int(seq), str(uuid)) for seq, uuid in found]


def memory_count(rows: Rows) -> int:
    """How many memories there are."""
    return int(rows.value("select count(*) from memories"))
