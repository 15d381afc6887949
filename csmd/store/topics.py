"""Topics and tags of memories, and the counts of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from csmd.store.sqlite import Rows, as_value, in_keys

#: Who tagged a memory.
RULE = "rule"
PERSON = "person"
ASSISTANT = "assistant"


class DueProject(NamedTuple):
    """A project with `memories` memories, which changed `changes` times since its topics were computed."""

    project_seq: int
    changes: int
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTag:
    """A topic of a memory; `by_whom` is rule, person or assistant, `weight` 0-1."""

    name: str
    by_whom: str
    weight: float


class Member(NamedTuple):
    """A memory in the list of a topic; `by_whom` and `weight` are those of its tag."""

    seq: int
    id: str
    text: str
    by_whom: str
    weight: float
    superseded_by: str
    pinned: bool
    confidence: float


def due_projects(rows: Rows) -> list[DueProject]:
    """The projects whose topics are to be computed again."""
    return rows.read(
        DueProject,
        "select p.seq, p.topics_due, (select count(*) from memories m where m.project_seq = p.seq) "
        "from projects p where p.topics_due > 0 order by p.seq",
    )


def newest_memories(rows: Rows, project: int, *, limit: int) -> list[tuple[int, str, str]]:
    """(row key, text, session) of a project's newest memories, without twins and archived ones."""
    sql = (
        "select seq, text, session_id from memories where project_seq = :project and twin_of = 0 "
        "and tier <> 'archive' order by seq desc limit :limit"
    )
    newest = rows.all(sql, project=project, limit=limit)
    return newest[::-1]


#: (memory, topic, weight); the weight is None if the rule no longer finds the topic.
TagChange = tuple[int, str, float | None]


def changed_tags(
    rows: Rows, project: int, tags: Iterable[tuple[int, str, float]], *, since: int = 0
) -> list[TagChange]:
    """The differences between the stored tags of the rule and these (memory, topic, weight) of a project.

    Memories before the row key `since` were not read and keep their tags.
    """
    wanted: dict[tuple[int, str], float | None] = {(seq, name): weight for seq, name, weight in tags}
    sql = (
        "select x.memory_seq, t.name, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "join memories m on m.seq = x.memory_seq where m.project_seq = :project and x.by_whom = :rule "
        "and x.memory_seq >= :since"
    )
    for seq, name, weight in rows.all(sql, project=project, rule=RULE, since=since):
        if (seq, name) not in wanted:
            wanted[seq, name] = None
        elif wanted[seq, name] == weight:
            del wanted[seq, name]
    return [(seq, name, weight) for (seq, name), weight in wanted.items()]


def replace_tags(rows: Rows, project: int, tags: Iterable[TagChange]) -> None:
    """Changes the rule's tags of a project's memories; a person's tags and those of memories that left it stay."""
    for seq, name, weight in tags:
        if rows.find("memories", "project_seq", seq=seq) != project:
            continue
        if weight is None:
            sql = (
                "delete from memory_topics where memory_seq = :seq and by_whom = :rule and topic_seq in "
                "(select seq from topics where project_seq = :project and name = :name)"
            )
            rows.run(sql, seq=seq, rule=RULE, project=project, name=name)
        else:
            _upsert_tag(rows, seq, ensure_topic(rows, project, name), RULE, weight)


def mark_computed(rows: Rows, looked: DueProject) -> None:
    """Records that a project's topics are computed, unless it changed meanwhile."""
    sql = "update projects set topics_due = 0 where seq = :seq and topics_due = :changes"
    rows.run(sql, seq=looked.project_seq, changes=looked.changes)


def tag_memory(rows: Rows, memory_seq: int, name: str, *, by: str, weight: float = 1.0) -> bool:
    """Tags a memory on request (weight 0: removes the topic); False if a person has decided otherwise."""
    project = rows.number("select project_seq from memories where seq = :seq", seq=memory_seq)
    sql = (
        "select x.topic_seq, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "where x.memory_seq = :seq and t.name = :name"
    )
    text = rows.first(sql, seq=memory_seq, name=name)
    if text is not None and text[1] == PERSON and by != PERSON:
        return bool(text[2]) == bool(weight)
    topic = int(text[0]) if text is not None else ensure_topic(rows, project, name)
    _upsert_tag(rows, memory_seq, topic, by, weight)
    return True


def ensure_topic(rows: Rows, project: int, name: str) -> int:
    """The row key of a project's topic, created if it is new."""
    rows.insert("topics", "on conflict do nothing", project_seq=project, name=name)
    sql = "select seq from topics where project_seq = :project and name = :name"
    return rows.number(sql, project=project, name=name)


def _upsert_tag(rows: Rows, memory_seq: int, topic: int, by: str, weight: float) -> None:
    sql = (
        "insert into memory_topics (memory_seq, topic_seq, by_whom, weight) values (:memory, :topic, :by, :weight) "
        "on conflict (memory_seq, topic_seq) do update set by_whom = excluded.by_whom, weight = excluded.weight "
        "where excluded.by_whom <> :rule or memory_topics.by_whom = :rule"
    )
    rows.run(sql, memory=memory_seq, topic=topic, by=by, weight=weight, rule=RULE)


def move_tags(rows: Rows, memory_seq: int, project: int) -> None:
    """Moves a memory's tags to another project."""
    sql = (
        "select t.seq, t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "where x.memory_seq = :seq and t.project_seq <> :project order by t.name"
    )
    for topic, name, by, weight in rows.all(sql, seq=memory_seq, project=project):
        _upsert_tag(rows, memory_seq, ensure_topic(rows, project, name), by, weight)
        rows.delete("memory_topics", memory_seq=memory_seq, topic_seq=topic)


# --- what is asked


def topics_of_memories(rows: Rows, seqs: Sequence[int]) -> dict[int, list[TopicTag]]:
    """The topics of some memories: first those set on request, then the most specific."""
    tags = rows.grouped(
        "select x.memory_seq, t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "  # noqa: S608
        f"where {in_keys('x.memory_seq', seqs)} and x.weight > 0 order by x.memory_seq, "
        "case x.by_whom when 'person' then 0 when 'assistant' then 1 else 2 end, x.weight desc, t.name"
    )
    return {seq: [as_value(TopicTag, tag) for tag in of_memory] for seq, of_memory in tags.items()}


def list_topics(rows: Rows, places: Sequence[int] | None) -> list[tuple[int, str, int, str]]:
    """(project, name, memories, last confirmation) of the topics of some projects (None: all), the largest first."""
    return rows.all(
        "select m.project_seq, t.name, count(*), max(m.confirmed_at) from memory_topics x "  # noqa: S608
        "join topics t on t.seq = x.topic_seq join memories m on m.seq = x.memory_seq "
        f"where x.weight > 0 and m.superseded_by = '' and m.twin_of = 0 and {in_keys('m.project_seq', places)} "
        "group by m.project_seq, t.name order by 3 desc, 2, 1"
    )


def list_members(rows: Rows, name: str, places: Sequence[int] | None) -> dict[int, Member]:
    """The memories of some projects (None: all) with a topic, by row key."""
    # A memory's topics are its project's; `cross join` keeps SQLite from starting with all memories.
    tagged = rows.all(
        "select m.seq, m.id, m.text, x.by_whom, x.weight, m.superseded_by, m.pinned, m.confidence "  # noqa: S608
        "from topics t cross join memory_topics x cross join memories m "
        "where t.name = :name and x.topic_seq = t.seq and x.weight > 0 and m.seq = x.memory_seq "
        f"and m.twin_of = 0 and {in_keys('t.project_seq', places)} order by x.memory_seq",
        name=name,
    )
    return {row[0]: Member._make(row) for row in tagged}


def edges(
    rows: Rows, seqs: Sequence[int], *, projects: Sequence[int] | None
) -> list[tuple[int, int, str, float, bool]]:
    """(memory, other one, relationship, weight, whether it begins at the memory) of the links of some memories.

    Supersession counts as a link, stored or not.
    """
    visible = f"and {in_keys('o.project_seq', projects)}"
    return [
        (int(a), int(b), str(c), float(d), bool(e))
        for a, b, c, d, e in rows.all(
            "select l.from_seq, l.to_seq, l.relationship, l.weight, 1 from links l join memories o on o.seq = l.to_seq "  # noqa: S608
            f"where {in_keys('l.from_seq', seqs)} and l.relationship <> 'superseded_by' and o.twin_of = 0 {visible} "
            "union all select l.to_seq, l.from_seq, l.relationship, l.weight, 0 from links l "
            f"join memories o on o.seq = l.from_seq where {in_keys('l.to_seq', seqs)} "
            f"and l.relationship <> 'superseded_by' and o.twin_of = 0 {visible} union all "
            "select m.seq, o.seq, 'superseded_by', 1.0, 1 from memories m join memories o on o.id = m.superseded_by "
            f"where {in_keys('m.seq', seqs)} and m.superseded_by <> '' and o.twin_of = 0 {visible} union all "
            "select m.seq, o.seq, 'superseded_by', 1.0, 0 from memories m join memories o on o.superseded_by = m.id "
            f"and o.superseded_by <> '' where {in_keys('m.seq', seqs)} and o.twin_of = 0 {visible} order by 1, 2, 3"
        )
    ]


def shared_topics(
    rows: Rows, seqs: Sequence[int], *, projects: Sequence[int] | None, widest_topic: int, widest_session: int
) -> list[tuple[int, int, str, int]]:
    """(memory, other one, topic or session, how many memories share it) of what some memories share with few others."""
    visible = f"and {in_keys('o.project_seq', projects)}"
    sql = (
        "with t as (select topic_seq, count(*) as members from memory_topics where weight > 0 and topic_seq in "  # noqa: S608
        f"(select topic_seq from memory_topics where {in_keys('memory_seq', seqs)}) group by topic_seq), "
        "s as (select session_id, count(*) as members from provenance where session_id <> '' and session_id in "
        f"(select session_id from provenance where {in_keys('memory_seq', seqs)}) group by session_id) "
        "select x.memory_seq, y.memory_seq, 'topic', t.members from memory_topics x "
        "join t on t.topic_seq = x.topic_seq join memory_topics y on y.topic_seq = x.topic_seq "
        f"join memories o on o.seq = y.memory_seq where {in_keys('x.memory_seq', seqs)} and x.weight > 0 "
        f"and y.weight > 0 and y.memory_seq <> x.memory_seq and t.members <= :widest_topic and o.twin_of = 0 {visible} "
        "union all select x.memory_seq, y.memory_seq, 'session', s.members from provenance x "
        "join s on s.session_id = x.session_id join provenance y on y.session_id = x.session_id "
        "join memories o on o.seq = y.memory_seq "
        f"where {in_keys('x.memory_seq', seqs)} and y.memory_seq <> x.memory_seq and x.role = 'states' "
        f"and y.role = 'states' and s.members <= :widest_session and o.twin_of = 0 {visible} order by 1, 2, 3"
    )
    return rows.all(sql, widest_topic=widest_topic, widest_session=widest_session)


def remove_link(rows: Rows, ident: int, other: int, relationship: str) -> bool:
    """Removes a link; returns whether there was one."""
    link = "delete from links where from_seq = :one and to_seq = :other and relationship = :relationship"
    return bool(rows.run(link, one=ident, other=other, relationship=relationship))


def graph_counts(rows: Rows, projects: Sequence[int] | None) -> dict[str, int]:
    """The numbers of memories, topics, sessions and edges (TAGGED, PRODUCED) of some projects (None: all)."""
    names = ("memories", "topics", "sessions", "tagged", "produced")
    sums = ", ".join(f"coalesce(sum({name}), 0)" for name in names)
    (counts,) = rows.all(f"select {sums} from graph_counts where {in_keys('project_seq', projects)}")  # noqa: S608
    return dict(zip(names, map(int, counts), strict=True))


def relationships(rows: Rows, projects: Sequence[int] | None) -> dict[str, int]:
    """How many links of each relationship connect memories of some projects (None: all)."""
    between = f"{in_keys('from_project', projects)} and {in_keys('to_project', projects)}"
    counts = rows.all(
        f"select relationship, sum(number) from link_counts where {between} "  # noqa: S608
        "group by relationship having sum(number) > 0 order by 2 desc, 1"
    )
    return {relationship: int(number) for relationship, number in counts}
