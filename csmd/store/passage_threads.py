"""Which passages follow which on the same matter, and where passages stand beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.store.sqlite import Row, Rows


def _keys(seqs: Sequence[int]) -> str:
    return ", ".join(str(int(seq)) for seq in seqs)


def places(rows: Rows, seqs: Sequence[int]) -> dict[int, tuple[int, int]]:
    """(turn, session) of each passage by row keys; their texts are not read."""
    if not seqs:
        return {}
    found = rows.all(f"select seq, turn_seq, session_seq from passages where seq in ({_keys(seqs)})")  # noqa: S608
    return {int(seq): (int(turn), int(session)) for seq, turn, session in found}


def sessions(rows: Rows, projects: Sequence[int] | None) -> int:
    """How many sessions these projects have had; None is all."""
    scope = "" if projects is None else f"where project_seq in ({_keys(projects)})"
    return int(rows.value(f"select count(*) from sessions {scope}"))  # noqa: S608


def last(rows: Rows) -> int:
    """The row key of the passage that was stored last, which is about how many there are; 0 for none."""
    return int(rows.value("select max(seq) from passages") or 0)


def after(rows: Rows, seq: int, *, until: int, limit: int) -> list[int]:
    """The next passages behind a row key, up to another one."""
    found = rows.all(
        "select seq from passages where seq > :seq and seq <= :until order by seq limit :limit",
        seq=seq,
        until=until,
        limit=limit,
    )
    return [int(one) for (one,) in found]


def count_after(rows: Rows, seq: int, *, until: int) -> int:
    """How many passages there are behind a row key, up to another one."""
    return int(rows.value("select count(*) from passages where seq > :seq and seq <= :until", seq=seq, until=until))


def before(rows: Rows, seqs: Sequence[int], *, most: int) -> dict[int, list[int]]:
    """The passages right before each of these in its session, as its turns were stored; the nearest first, at most so many."""
    return {seq: [int(one) for (one,) in _before(rows, seq, most)] for seq in dict.fromkeys(map(int, seqs))}


def _before(rows: Rows, seq: int, most: int) -> list[Row]:
    return rows.all(
        "select n.seq from passages p join passages n on n.session_seq = p.session_seq "
        "and (n.turn_seq, n.start_at, n.seq) < (p.turn_seq, p.start_at, p.seq) "
        "where p.seq = :seq order by n.turn_seq desc, n.start_at desc, n.seq desc limit :most",
        seq=seq,
        most=most,
    )


def newer(rows: Rows, seqs: Sequence[int], *, least: float) -> dict[int, list[tuple[int, float]]]:
    """Passage -> what follows it on the same matter with at least such a weight, the surest first."""
    if not seqs:
        return {}
    links: dict[int, list[tuple[int, float]]] = {}
    for older, other, weight in rows.all(
        f"select older_seq, newer_seq, weight from passage_threads where older_seq in ({_keys(seqs)}) "  # noqa: S608
        "and weight >= :least order by older_seq, weight desc, newer_seq",
        least=least,
    ):
        links.setdefault(int(older), []).append((int(other), float(weight)))
    return links


def link(rows: Rows, older: int, newer: int, weight: float, *, most: int) -> None:
    """Notes that one passage follows another; of an older one's the `most` surest stay. What is gone is linked with nothing."""
    rows.run(
        "insert into passage_threads (older_seq, newer_seq, weight) select a.seq, b.seq, :weight from passages a, passages b "
        "where a.seq = :older and b.seq = :newer on conflict (older_seq, newer_seq) do update set weight = excluded.weight",
        older=older,
        newer=newer,
        weight=weight,
    )
    rows.run(
        "delete from passage_threads where older_seq = :older and newer_seq not in (select newer_seq from passage_threads "
        "where older_seq = :older order by weight desc, newer_seq limit :most)",
        older=older,
        most=most,
    )
