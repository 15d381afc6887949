"""The graph over what is remembered: edges that begin or end at some memories, and how many there are of each part."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.store.sqlite import Rows


def _keys(seqs: Sequence[int]) -> str:
    return ", ".join(str(int(seq)) for seq in seqs)


def _among(column: str, projects: Sequence[int] | None) -> str:
    return "" if projects is None else f"and {column} in ({_keys(projects)})"


def links(
    rows: Rows, seqs: Sequence[int], *, projects: Sequence[int] | None
) -> list[tuple[int, int, str, float, bool]]:
    """(memory, other one, relationship, weight, whether it begins at the memory) of the links of some memories.

    What supersedes one is a link, whether or not one was drawn.
    """
    if not seqs:
        return []
    keys, among = _keys(seqs), _among("o.project_seq", projects)
    return [
        (int(a), int(b), str(c), float(d), bool(e))
        for a, b, c, d, e in rows.all(
            "select l.from_seq, l.to_seq, l.relationship, l.weight, 1 from links l join memories o on o.seq = l.to_seq "  # noqa: S608
            f"where l.from_seq in ({keys}) and l.relationship <> 'superseded_by' and o.twin_of = 0 {among} "
            "union all select l.to_seq, l.from_seq, l.relationship, l.weight, 0 from links l "
            f"join memories o on o.seq = l.from_seq where l.to_seq in ({keys}) and l.relationship <> 'superseded_by' "
            f"and o.twin_of = 0 {among} "
            "union all select m.seq, o.seq, 'superseded_by', 1.0, 1 from memories m join memories o "
            f"on o.id = m.superseded_by where m.seq in ({keys}) and m.superseded_by <> '' and o.twin_of = 0 {among} "
            "union all select m.seq, o.seq, 'superseded_by', 1.0, 0 from memories m join memories o "
            f"on o.superseded_by = m.id and o.superseded_by <> '' where m.seq in ({keys}) and o.twin_of = 0 {among} "
            "order by 1, 2, 3"
        )
    ]


def shared(
    rows: Rows, seqs: Sequence[int], *, projects: Sequence[int] | None, widest_topic: int, widest_session: int
) -> list[tuple[int, int, str, int]]:
    """(memory, other one, topic or session, how many memories share it) of what some memories share with not too many."""
    if not seqs:
        return []
    keys, among = _keys(seqs), _among("o.project_seq", projects)
    return [
        (int(a), int(b), str(c), int(d))
        for a, b, c, d in rows.all(
            "with t as (select topic_seq, count(*) as members from memory_topics where weight > 0 and topic_seq in "  # noqa: S608
            f"(select topic_seq from memory_topics where memory_seq in ({keys})) group by topic_seq), "
            "s as (select session_id, count(*) as members from provenance where session_id <> '' and session_id in "
            f"(select session_id from provenance where memory_seq in ({keys})) group by session_id) "
            "select x.memory_seq, y.memory_seq, 'topic', t.members from memory_topics x "
            "join t on t.topic_seq = x.topic_seq join memory_topics y on y.topic_seq = x.topic_seq "
            f"join memories o on o.seq = y.memory_seq where x.memory_seq in ({keys}) and x.weight > 0 and y.weight > 0 "
            f"and y.memory_seq <> x.memory_seq and t.members <= :widest_topic and o.twin_of = 0 {among} "
            "union all select x.memory_seq, y.memory_seq, 'session', s.members from provenance x "
            "join s on s.session_id = x.session_id join provenance y on y.session_id = x.session_id "
            f"join memories o on o.seq = y.memory_seq where x.memory_seq in ({keys}) and y.memory_seq <> x.memory_seq "
            f"and x.role = 'states' and y.role = 'states' and s.members <= :widest_session and o.twin_of = 0 {among} "
            "order by 1, 2, 3",
            widest_topic=widest_topic,
            widest_session=widest_session,
        )
    ]


def remove_link(rows: Rows, one: int, other: int, relationship: str) -> bool:
    """Takes a link away; whether there was one."""
    return bool(
        rows.run(
            "delete from links where from_seq = :one and to_seq = :other and relationship = :relationship",
            one=one,
            other=other,
            relationship=relationship,
        )
    )


def counts(rows: Rows, projects: Sequence[int] | None) -> dict[str, int]:
    """How many memories, topics, sessions and edges (RELATES_TO, TAGGED, PRODUCED) there are in some places, None: all."""
    memories = f"select seq from memories where twin_of = 0 {_among('project_seq', projects)}"  # noqa: S608
    produced = (
        "select distinct session_id, memory_seq from provenance where session_id <> '' and role <> 'beside' "  # noqa: S608
        f"and memory_seq in ({memories})"
    )
    return {
        name: int(rows.value(sql))
        for name, sql in (
            ("memories", f"select count(*) from ({memories}) m"),  # noqa: S608
            ("topics", f"select count(distinct topic_seq) from memory_topics where weight > 0 and memory_seq in ({memories})"),  # noqa: S608
            ("sessions", f"select count(*) from sessions where parent = '' and host <> 'probe' {_among('project_seq', projects)}"),  # noqa: S608
            ("relates_to", f"select count(*) from links where from_seq in ({memories}) and to_seq in ({memories})"),  # noqa: S608
            ("tagged", f"select count(*) from memory_topics where weight > 0 and memory_seq in ({memories})"),  # noqa: S608
            ("produced", f"select count(*) from ({produced}) p"),  # noqa: S608
        )
    }  # fmt: skip


def relationships(rows: Rows, projects: Sequence[int] | None) -> dict[str, int]:
    """How many links of each relationship there are between memories of some places (None: all)."""
    memories = f"select seq from memories where twin_of = 0 {_among('project_seq', projects)}"  # noqa: S608
    return {
        str(name): int(number)
        for name, number in rows.all(
            f"select relationship, count(*) from links where from_seq in ({memories}) and to_seq in ({memories}) "  # noqa: S608
            "group by relationship order by 2 desc, 1"
        )
    }
