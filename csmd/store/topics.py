"""Topics and tags of memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from csmd.store.row_values import as_value
from csmd.store.sqlite import Rows, in_keys

#: Values of `by_whom`: who tagged a memory.
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


def list_due_projects(rows: Rows) -> list[DueProject]:
    """Returns the projects whose topics are to be computed again."""
    sql = """select p.seq, p.topics_due, (select count(*) from memories m where m.project_seq = p.seq)
        from projects p where p.topics_due > 0 order by p.seq"""
    return rows.read(DueProject, sql)


def list_newest_memories(rows: Rows, project: int, *, limit: int) -> list[tuple[int, str, str]]:
    """Returns (row key, text, session) of a project's newest memories, without twins and archived ones."""
    sql = """select seq, text, session_id
        from memories where project_seq = :project and twin_of = 0 and tier <> 'archive' order by seq desc limit :limit"""
    newest = rows.all(sql, project=project, limit=limit)
    return newest[::-1]


#: (memory, topic, weight); with the weight None the rule no longer finds the topic, and the tag is deleted.
TagChange = tuple[int, str, float | None]


def find_changed_tags(
    rows: Rows, project: int, tags: Iterable[tuple[int, str, float]], *, since: int = 0
) -> list[TagChange]:
    """Returns the differences between the stored tags of the rule and these (memory, topic, weight) of a project.

    Memories before the row key `since` were not read and keep their tags.
    """
    changes: dict[tuple[int, str], float | None] = {(seq, name): weight for seq, name, weight in tags}
    sql = """select x.memory_seq, t.name, x.weight
        from memory_topics x join topics t on t.seq = x.topic_seq join memories m on m.seq = x.memory_seq
        where m.project_seq = :project and x.by_whom = :rule and x.memory_seq >= :since"""
    for seq, name, weight in rows.all(sql, project=project, rule=RULE, since=since):
        if (seq, name) not in changes:
            changes[seq, name] = None
        elif changes[seq, name] == weight:
            del changes[seq, name]
    return [(seq, name, weight) for (seq, name), weight in changes.items()]


def replace_tags(rows: Rows, project: int, tags: Iterable[TagChange]) -> None:
    """Changes the rule's tags of a project's memories; a person's tags and those of moved memories stay."""
    for seq, name, weight in tags:
        if rows.find("memories", "project_seq", seq=seq) != project:
            continue
        if weight is None:
            sql = """delete from memory_topics where memory_seq = :seq and by_whom = :rule
                and topic_seq in (select seq from topics where project_seq = :project and name = :name)"""
            rows.run(sql, seq=seq, rule=RULE, project=project, name=name)
        else:
            _upsert_tag(rows, seq, ensure_topic(rows, project, name), RULE, weight)


def mark_computed(rows: Rows, due: DueProject) -> None:
    """Records that a project's topics are computed, unless it changed since."""
    sql = "update projects set topics_due = 0 where seq = :seq and topics_due = :changes"
    rows.run(sql, seq=due.project_seq, changes=due.changes)


def tag_memory(rows: Rows, memory_seq: int, name: str, *, by: str, weight: float = 1.0) -> bool:
    """Tags a memory on request (weight 0: removes the topic); False if a person has decided otherwise."""
    project = rows.number("select project_seq from memories where seq = :seq", seq=memory_seq)
    sql = """select x.topic_seq, x.by_whom, x.weight
        from memory_topics x join topics t on t.seq = x.topic_seq where x.memory_seq = :seq and t.name = :name"""
    stored_tag = rows.first(sql, seq=memory_seq, name=name)
    if stored_tag is None:
        _upsert_tag(rows, memory_seq, ensure_topic(rows, project, name), by, weight)
        return True
    topic, tagger, stored_weight = stored_tag
    if tagger == PERSON and by != PERSON:
        return bool(stored_weight) == bool(weight)
    _upsert_tag(rows, memory_seq, topic, by, weight)
    return True


def ensure_topic(rows: Rows, project: int, name: str) -> int:
    """Returns the row key of a project's topic, created if it is new."""
    rows.insert("topics", "on conflict do nothing", project_seq=project, name=name)
    sql = "select seq from topics where project_seq = :project and name = :name"
    return rows.number(sql, project=project, name=name)


def _upsert_tag(rows: Rows, memory_seq: int, topic: int, by: str, weight: float) -> None:
    sql = """insert into memory_topics (memory_seq, topic_seq, by_whom, weight) values (:memory, :topic, :by, :weight)
        on conflict (memory_seq, topic_seq) do update set by_whom = excluded.by_whom, weight = excluded.weight
        where excluded.by_whom <> :rule or memory_topics.by_whom = :rule"""
    rows.run(sql, memory=memory_seq, topic=topic, by=by, weight=weight, rule=RULE)


def move_tags(rows: Rows, memory_seq: int, project: int) -> None:
    """Moves a memory's tags to another project."""
    sql = """select t.seq, t.name, x.by_whom, x.weight from memory_topics x
        join topics t on t.seq = x.topic_seq where x.memory_seq = :seq and t.project_seq <> :project order by t.name"""
    for topic, name, by, weight in rows.all(sql, seq=memory_seq, project=project):
        _upsert_tag(rows, memory_seq, ensure_topic(rows, project, name), by, weight)
        rows.delete("memory_topics", memory_seq=memory_seq, topic_seq=topic)


# --- queries


def topics_of_memories(rows: Rows, seqs: Sequence[int]) -> dict[int, list[TopicTag]]:
    """Returns the topics of some memories: first those set on request, then the most specific."""
    sql = f"""select x.memory_seq, t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq
        where {in_keys("x.memory_seq", seqs)} and x.weight > 0 order by x.memory_seq,
        case x.by_whom when 'person' then 0 when 'assistant' then 1 else 2 end, x.weight desc, t.name"""  # noqa: S608
    tags = rows.grouped(sql)
    return {seq: [as_value(TopicTag, tag) for tag in of_memory] for seq, of_memory in tags.items()}


def list_topics(rows: Rows, projects: Sequence[int] | None) -> list[tuple[int, str, int, str]]:
    """Returns (project, name, memories, last confirmation) of topics in some projects (None: all), largest first."""
    sql = f"""select m.project_seq, t.name, count(*), max(m.confirmed_at)
        from memory_topics x join topics t on t.seq = x.topic_seq join memories m on m.seq = x.memory_seq
        where x.weight > 0 and m.superseded_by = '' and m.twin_of = 0 and {in_keys("m.project_seq", projects)}
        group by m.project_seq, t.name order by 3 desc, 2, 1"""  # noqa: S608
    return rows.all(sql)


def list_members(rows: Rows, name: str, projects: Sequence[int] | None) -> dict[int, Member]:
    """Returns the memories of some projects (None: all) with a topic, by row key."""
    # A memory's topics are its project's; `cross join` keeps SQLite from starting with all memories.
    sql = f"""select m.seq, m.id, m.text, x.by_whom, x.weight, m.superseded_by, m.pinned, m.confidence
        from topics t cross join memory_topics x
        cross join memories m where t.name = :name and x.topic_seq = t.seq and x.weight > 0
        and m.seq = x.memory_seq and m.twin_of = 0 and {in_keys("t.project_seq", projects)} order by x.memory_seq"""  # noqa: S608
    tagged = rows.all(sql, name=name)
    return {row[0]: Member._make(row) for row in tagged}
