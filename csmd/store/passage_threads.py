"""Which passages follow which on the same matter, and where passages stand beside each other."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from csmd.store.sqlite import Row, Rows

#: How many passages behind a user's are looked at for the reply to it, and what a thread of the reply counts.
REPLIED, ECHO = 3, 0.9
#: Whether what a link `h` leads to surely follows no more than so many.
_FEW = "(select count(*) from passage_threads i where i.newer_seq = h.newer_seq and i.weight >= :sure) <= :most"


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


def lengths(rows: Rows, sessions: Collection[int], *, most: int) -> dict[int, int]:
    """How many passages each session has, counted up to `most`."""
    if not sessions:
        return {}
    keys = _keys(sorted(sessions))
    found = rows.all(
        "select s.seq, (select count(*) from (select 1 from passages p where p.session_seq = s.seq limit :most) t) "  # noqa: S608
        f"from sessions s where s.seq in ({keys})",
        most=most,
    )
    return {int(session): int(count) for session, count in found}


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


def again(rows: Rows, model: int) -> list[int]:
    """The passages to be looked at once more, as they have had another vector of a model since (vectors.add)."""
    found = rows.all(
        "select row_seq from embed_again where model_seq = :model and kind = 'thread' order by row_seq", model=model
    )
    return [int(one) for (one,) in found]


def looked_again(rows: Rows, model: int, seqs: Sequence[int]) -> int:
    """Takes note that passages have been looked at once more; how many of these had to be."""
    return rows.run(
        f"delete from embed_again where model_seq = :model and kind = 'thread' and row_seq in ({_keys(seqs)})",  # noqa: S608
        model=model,
    )


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


def newer(
    rows: Rows, seqs: Sequence[int], *, least: float, sure: float, most: int
) -> dict[int, list[tuple[int, float]]]:
    """Passage -> what follows it on the same matter with at least such a weight, the surest first.

    What follows more than `most` others with a weight of `sure` follows none: it is only like whatever is said there.
    What a user decides in a word or two the reply says in full: the threads of the reply's first passages are its, too, with
    ECHO of their weight.
    """
    if not seqs:
        return {}
    links: dict[int, dict[int, float]] = {}
    for older, other, weight in rows.all(
        f"with own as (select seq, session_seq, turn_seq from passages where seq in ({_keys(seqs)})) "  # noqa: S608
        "select o.seq, h.newer_seq, h.weight from own o join passage_threads h on h.older_seq = o.seq "
        f"where h.weight >= :least and {_FEW} union all "
        "select o.seq, h.newer_seq, h.weight * :echo from own o join turns t on t.seq = o.turn_seq and t.kind in ('user', 'relayed') "
        # By key: led by its index of sessions the planner would walk the whole session.
        "join passages r on r.seq > o.seq and r.seq <= o.seq + :replied and +r.session_seq = o.session_seq "
        "and r.turn_seq <> o.turn_seq join passage_threads h on h.older_seq = r.seq "
        f"where h.weight * :echo >= :least and {_FEW}",
        least=least,
        sure=sure,
        most=most,
        echo=ECHO,
        replied=REPLIED,
    ):
        known = links.setdefault(int(older), {})
        known[int(other)] = max(known.get(int(other), 0.0), float(weight))
    return {seq: sorted(of.items(), key=lambda row: (-row[1], row[0])) for seq, of in links.items()}


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
