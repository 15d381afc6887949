"""What memories are about: topics and who tagged with them; a topic without a memory is gone by itself (a trigger).

A tag of the rule is replaced whenever the rule runs; one of somebody stays, and one with the weight 0 keeps a topic off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from csmd.store.sqlite import Rows

RULE, PERSON, ASSISTANT = "rule", "person", "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A project whose memories have changed since its topics were looked for, and how often; `memories` it has."""

    project_seq: int
    changes: int
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A topic of a memory; `by_whom` is rule, person or assistant, `weight` 0-1."""

    name: str
    by_whom: str
    weight: float


def due(rows: Rows) -> list[Due]:
    """The projects whose topics are to be looked for again."""
    return [
        Due(project_seq=int(a), changes=int(b), memories=int(c))
        for a, b, c in rows.all(
            "select d.project_seq, d.changes, (select count(*) from memories m where m.project_seq = d.project_seq) "
            "from topics_due d order by d.project_seq"
        )
    ]


def told(rows: Rows, project: int, *, limit: int) -> list[tuple[int, str, str]]:
    """(row key, text, session) of a project's newest memories that say something today: no twins, nothing archived."""
    found = rows.all(
        "select seq, text, session_id from memories where project_seq = :project and twin_of = 0 "
        "and tier <> 'archive' order by seq desc limit :limit",
        project=project,
        limit=limit,
    )
    return sorted((int(a), str(b), str(c)) for a, b, c in found)


#: A memory and one of its topics; with the weight None the rule does not find it there any more.
Tag = tuple[int, str, float | None]


def other(rows: Rows, project: int, tags: Iterable[tuple[int, str, float]], *, since: int = 0) -> list[Tag]:
    """What is other than in the store where (memory, topic, weight) are to be the rule's tags of a project.

    Memories before the row key `since` were not looked at and keep theirs.
    """
    wanted: dict[tuple[int, str], float | None] = {(seq, name): weight for seq, name, weight in tags}
    for seq, name, weight in rows.all(
        "select x.memory_seq, t.name, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "join memories m on m.seq = x.memory_seq where m.project_seq = :project and x.by_whom = :rule "
        "and x.memory_seq >= :since",
        project=project,
        rule=RULE,
        since=since,
    ):
        if (seq, name) not in wanted:
            wanted[seq, name] = None
        elif wanted[seq, name] == weight:
            del wanted[seq, name]
    return [(seq, name, weight) for (seq, name), weight in wanted.items()]


def put(rows: Rows, project: int, tags: Iterable[Tag]) -> None:
    """Makes these the rule's tags of memories of a project; somebody's stay, and so do those of memories that left it."""
    for seq, name, weight in tags:
        if rows.value("select project_seq from memories where seq = :seq", seq=seq) != project:
            continue
        if weight is None:
            rows.run(
                "delete from memory_topics where memory_seq = :seq and by_whom = :rule and topic_seq in "
                "(select seq from topics where project_seq = :project and name = :name)",
                seq=seq,
                rule=RULE,
                project=project,
                name=name,
            )
        else:
            _put(rows, seq, _topic(rows, project, name), RULE, weight)


def looked_at(rows: Rows, looked: Due) -> None:
    """Notes that a project's topics are found; changed meanwhile, it stays due."""
    rows.run(
        "delete from topics_due where project_seq = :project and changes = :changes",
        project=looked.project_seq,
        changes=looked.changes,
    )


def tag(rows: Rows, memory_seq: int, name: str, *, by: str, weight: float = 1.0) -> bool:
    """Tags a memory because somebody says so (weight 0: takes the topic off); False where a person has said otherwise."""
    project = int(rows.value("select project_seq from memories where seq = :seq", seq=memory_seq))
    said = rows.one(
        "select x.topic_seq, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "where x.memory_seq = :seq and t.name = :name",
        seq=memory_seq,
        name=name,
    )
    if said is not None and said[1] == PERSON and by != PERSON:
        return bool(said[2]) == bool(weight)
    topic = int(said[0]) if said is not None else _topic(rows, project, name)
    _put(rows, memory_seq, topic, by, weight)
    return True


def _topic(rows: Rows, project: int, name: str) -> int:
    rows.run(
        "insert into topics (project_seq, name) values (:project, :name) on conflict (project_seq, name) do nothing",
        project=project,
        name=name,
    )
    return int(
        rows.value("select seq from topics where project_seq = :project and name = :name", project=project, name=name)
    )


def _put(rows: Rows, memory_seq: int, topic: int, by: str, weight: float) -> None:
    rows.run(
        "insert into memory_topics (memory_seq, topic_seq, by_whom, weight) values (:memory, :topic, :by, :weight) "
        "on conflict (memory_seq, topic_seq) do update set by_whom = excluded.by_whom, weight = excluded.weight "
        "where excluded.by_whom <> :rule or memory_topics.by_whom = :rule",
        memory=memory_seq,
        topic=topic,
        by=by,
        weight=weight,
        rule=RULE,
    )


def _take(rows: Rows, memory_seq: int, topic: int) -> None:
    rows.run(
        "delete from memory_topics where memory_seq = :memory and topic_seq = :topic", memory=memory_seq, topic=topic
    )


def move_to(rows: Rows, memory_seq: int, project: int) -> None:
    """Takes a memory's tags along into another project."""
    for topic, name, by, weight in rows.all(
        "select t.seq, t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "
        "where x.memory_seq = :seq and t.project_seq <> :project order by t.name",
        seq=memory_seq,
        project=project,
    ):
        _put(rows, memory_seq, _topic(rows, project, str(name)), str(by), float(weight))
        _take(rows, memory_seq, int(topic))


# --- what is asked


def of_memories(rows: Rows, seqs: Sequence[int]) -> dict[int, list[Tagged]]:
    """The topics of some memories, what somebody said first, then the most telling."""
    keys = ", ".join(str(int(seq)) for seq in seqs)
    found: dict[int, list[Tagged]] = {}
    if keys:
        for seq, name, by, weight in rows.all(
            "select x.memory_seq, t.name, x.by_whom, x.weight from memory_topics x join topics t "  # noqa: S608
            f"on t.seq = x.topic_seq where x.memory_seq in ({keys}) and x.weight > 0 "
            "order by x.memory_seq, case x.by_whom when 'person' then 0 when 'assistant' then 1 else 2 end, "
            "x.weight desc, t.name"
        ):
            found.setdefault(int(seq), []).append(Tagged(name=str(name), by_whom=str(by), weight=float(weight)))
    return found


def listing(rows: Rows, places: Sequence[int] | None) -> list[tuple[int, str, int, str]]:
    """(project, name, how many memories hold, when one was last said) of the topics of some places (None: all), the largest first."""
    among = "" if places is None else f"and m.project_seq in ({', '.join(str(int(seq)) for seq in places)})"
    return [
        (int(a), str(b), int(c), str(d))
        for a, b, c, d in rows.all(
            "select m.project_seq, t.name, count(*), max(m.confirmed_at) from memory_topics x "  # noqa: S608
            "join topics t on t.seq = x.topic_seq join memories m on m.seq = x.memory_seq "
            f"where x.weight > 0 and m.superseded_by = '' and m.twin_of = 0 {among} "
            "group by m.project_seq, t.name order by 3 desc, 2, 1"
        )
    ]


def members(rows: Rows, name: str, places: Sequence[int] | None) -> dict[int, Tagged]:
    """The memories of some places (None: all) that are about a topic, by row key."""
    among = "" if places is None else f"and m.project_seq in ({', '.join(str(int(seq)) for seq in places)})"
    return {
        int(seq): Tagged(name=name, by_whom=str(by), weight=float(weight))
        for seq, by, weight in rows.all(
            "select x.memory_seq, x.by_whom, x.weight from topics t join memory_topics x "  # noqa: S608
            "on x.topic_seq = t.seq join memories m on m.seq = x.memory_seq "
            f"where t.name = :name and x.weight > 0 and m.twin_of = 0 {among} order by x.memory_seq",
            name=name,
        )
    }
