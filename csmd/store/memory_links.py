"""Links between memories, the second halves of split memories, and the graph that memories form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.knowledge import Link, Memory
from csmd.store import memories
from csmd.store.row_values import column_values
from csmd.store.sqlite import Rows, in_keys

GOES_ON_AS = "goes_on_as"


def add_link(rows: Rows, link: Link, *, now: str) -> None:
    """Links two memories; linking them again sets the weight."""
    sql = """insert into links (from_seq, to_seq, relationship, weight, created_at) select a.seq,
        b.seq, :relationship, :weight, :now from memories a, memories b where a.id = :from_id and b.id = :to_id
        on conflict (from_seq, to_seq, relationship) do update set weight = excluded.weight"""
    rows.run(sql, now=now, **column_values(link))


def list_links(rows: Rows, memory_id: str) -> list[Link]:
    """Returns the links from and to a memory."""
    sql = """select f.id, t.id, l.relationship, l.weight from links l join memories f on f.seq = l.from_seq
        join memories t on t.seq = l.to_seq where f.id = :id or t.id = :id order by 1, 2, 3"""
    return rows.read(Link, sql, id=memory_id)


def find_second_half(rows: Rows, memory_id: str) -> int:
    """Returns the row key of the second half of a memory; 0 if it has none."""
    sql = """select l.to_seq
        from links l join memories m on m.seq = l.from_seq where m.id = :id and l.relationship = 'goes_on_as'"""
    return rows.number(sql, id=memory_id)


def list_whole_memories(rows: Rows, memory: Memory) -> list[Memory]:
    """Returns the memories whose second half this is, or that it is injected in place of."""
    return memories.where(
        rows,
        """m.seq in (select from_seq from links where to_seq = :rest and relationship in ('goes_on_as', 'curated_as'))
            order by m.seq""",
        rest=memory.seq,
    )


def release_second_half(rows: Rows, memory_id: str) -> list[int]:
    """Returns the second half to delete with its first; unlinks one that was stated by itself or pinned."""
    rest = find_second_half(rows, memory_id)
    if not rest:
        return []
    sql = """select 1 from memories r, memories w
        where r.seq = :rest and w.id = :id and (r.pinned <> w.pinned or exists (select 1 from provenance p
        where p.memory_seq = r.seq and p.uuid not in (select q.uuid from provenance q where q.memory_seq = w.seq)))"""
    is_own = rows.value(sql, rest=rest, id=memory_id)
    if not is_own:
        return [rest]
    rows.delete("links", to_seq=rest, relationship="goes_on_as")
    return []


# --- the graph


class Edge(NamedTuple):
    """A link of a memory with another one; `is_outgoing` if it begins at the memory."""

    seq: int
    other_seq: int
    relationship: str
    weight: float
    is_outgoing: bool


def list_edges(rows: Rows, seqs: Sequence[int], *, projects: Sequence[int] | None) -> list[Edge]:
    """Returns the links between some memories and memories of some projects (None: all), and supersessions."""
    sql = f"""with pair (seq, other, relationship, weight, outgoing) as (select l.from_seq, l.to_seq, l.relationship,
        l.weight, 1 from links l where {in_keys("l.from_seq", seqs)} and l.relationship <> 'superseded_by'
        union all select l.to_seq, l.from_seq, l.relationship, l.weight, 0
        from links l where {in_keys("l.to_seq", seqs)} and l.relationship <> 'superseded_by' union all select m.seq,
        n.seq, 'superseded_by', 1.0, 1 from memories m join memories n on n.id = m.superseded_by
        where {in_keys("m.seq", seqs)} and m.superseded_by <> '' union all select m.seq, n.seq, 'superseded_by', 1.0, 0
        from memories m join memories n on n.superseded_by = m.id and n.superseded_by <> ''
        where {in_keys("m.seq", seqs)}) select p.seq, p.other, p.relationship, p.weight, p.outgoing
        from pair p join memories o on o.seq = p.other
        where o.twin_of = 0 and {in_keys("o.project_seq", projects)} order by 1, 2, 3"""  # noqa: S608
    return rows.read(Edge, sql)


def list_shared(
    rows: Rows, seqs: Sequence[int], *, projects: Sequence[int] | None, widest_topic: int, widest_session: int
) -> list[tuple[int, int, str, int]]:
    """Returns (memory, other memory, "topic" or "session", members) of memories that share a rare topic or session."""
    visible = f"and {in_keys('o.project_seq', projects)}"
    sql = f"""with t as (select topic_seq, count(*) as members from memory_topics where weight > 0
        and topic_seq in (select topic_seq from memory_topics where {in_keys("memory_seq", seqs)})
        group by topic_seq), s as (select session_id, count(*) as members from provenance where session_id <> ''
        and session_id in (select session_id from provenance where {in_keys("memory_seq", seqs)})
        group by session_id) select x.memory_seq, y.memory_seq, 'topic', t.members
        from memory_topics x join t on t.topic_seq = x.topic_seq join memory_topics y on y.topic_seq = x.topic_seq
        join memories o on o.seq = y.memory_seq where {in_keys("x.memory_seq", seqs)} and x.weight > 0
        and y.weight > 0 and y.memory_seq <> x.memory_seq and t.members <= :widest_topic and o.twin_of = 0 {visible}
        union all select x.memory_seq, y.memory_seq, 'session', s.members
        from provenance x join s on s.session_id = x.session_id
        join provenance y on y.session_id = x.session_id join memories o on o.seq = y.memory_seq
        where {in_keys("x.memory_seq", seqs)} and y.memory_seq <> x.memory_seq and x.role = 'states'
        and y.role = 'states' and s.members <= :widest_session and o.twin_of = 0 {visible} order by 1, 2, 3"""  # noqa: S608
    return rows.all(sql, widest_topic=widest_topic, widest_session=widest_session)


def remove_link(rows: Rows, from_seq: int, to_seq: int, relationship: str) -> bool:
    """Removes a link; returns whether there was one."""
    return bool(rows.delete("links", from_seq=from_seq, to_seq=to_seq, relationship=relationship))


def count_nodes_and_edges(rows: Rows, projects: Sequence[int] | None) -> dict[str, int]:
    """Returns the numbers of memories, topics, sessions and edges (TAGGED, PRODUCED) of some projects (None: all)."""
    names = ("memories", "topics", "sessions", "tagged", "produced")
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
    (counts,) = rows.all(f"select {sums} from graph_counts where {in_keys('project_seq', projects)}")  # noqa: S608
    return dict(zip(names, map(int, counts), strict=True))


def count_relationships(rows: Rows, projects: Sequence[int] | None) -> dict[str, int]:
    """Maps each relationship to the number of links that connect memories of some projects (None: all)."""
    between = f"{in_keys('from_project', projects)} and {in_keys('to_project', projects)}"
    sql = f"""select relationship, sum(number)
        from link_counts where {between} group by relationship having sum(number) > 0 order by 2 desc, 1"""  # noqa: S608
    counts = rows.all(sql)
    return {relationship: int(number) for relationship, number in counts}
