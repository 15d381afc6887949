"""The counts of the graph, which every write keeps, are those of its rows; and the members of a topic."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example
from hypothesis import given as draws
from hypothesis import strategies as st

from csmd.store import integrity, memory_links, schema_migrations
from csmd.store.sqlite import Rows, connect

#: What may happen to the graph: some of it to rows that are not there. Keys are drawn from so few that they meet.
CHANGES = (
    ("insert into memories (seq, id, text, text_hash, gate, category, type, tier, decay, authority, origin, confidence, scope, "
    "project_seq, session_id, created_at, confirmed_at, hot_until, warm_until, archive_at, twin_of) values (:a, 'm' || :a, '', '', "
    "'', '', '', '', '', '', '', 0, '', :b, '', '', '', 0, 0, 0, :c / 2) on conflict do nothing"),
    "update memories set project_seq = :a where seq = :b",
    "update memories set twin_of = :a where seq = :b",
    "delete from memories where seq = :a",
    ("insert into memory_topics (memory_seq, topic_seq, by_whom, weight) select m.seq, t.seq, 'rule', :c / 2 from memories m, "
    "topics t where m.seq = :a and t.seq = :b on conflict (memory_seq, topic_seq) do update set weight = excluded.weight"),
    "insert into topics (project_seq, name) values (:a, 'topic ' || :b) on conflict do nothing",
    "delete from memory_topics where memory_seq = :a and topic_seq = :b",
    "delete from topics where seq = :a",
    ("insert into provenance (memory_seq, uuid, session_id, at, role) select seq, 'u' || :b, case :b when 3 then '' else 's' || :c "
    "end, '', case :c when 1 then 'beside' else 'states' end from memories where seq = :a on conflict do nothing"),
    "update provenance set role = case :c when 1 then 'beside' else 'confirms' end where memory_seq = :a and uuid = 'u' || :b",
    ("update provenance set uuid = 'u9' where memory_seq = :a and uuid = 'u' || :b and :c = 0 and not exists "
    "(select 1 from provenance p where p.memory_seq = :a and p.uuid = 'u9')"),
    "delete from provenance where memory_seq = :a and uuid = 'u' || :b",
    ("insert into links (from_seq, to_seq, relationship, weight, created_at) select a.seq, b.seq, 'r' || :c, 1, '' from memories a, "
    "memories b where a.seq = :a and b.seq = :b on conflict (from_seq, to_seq, relationship) do update set weight = 0.5"),
    "delete from links where from_seq = :a and to_seq = :b",
    ("insert into sessions (id, host, project_seq, parent, started_at, last_at) values "
    "('s' || :a, case :c when 1 then 'probe' else 'claude' end, :b, '', '', '') on conflict do nothing"),
    "update sessions set parent = case :c when 1 then 's9' else '' end, project_seq = :b where id = 's' || :a",
    "delete from sessions where id = 's' || :a",
)  # fmt: skip
MEMORY, TAG, TOPIC, SOURCE, LINK, SESSION = (next(sql for sql in CHANGES if f"into {table} " in sql) for table in (
    "memories", "memory_topics", "topics", "provenance", "links", "sessions"
))  # fmt: skip
BEGUN = (
    (MEMORY, 1, 1, 0), (MEMORY, 2, 1, 0), (MEMORY, 3, 2, 0), (TOPIC, 1, 1, 0), (TOPIC, 1, 2, 0), (SESSION, 1, 1, 0),
    *((TAG, memory, topic, 2) for memory in (1, 2) for topic in (1, 2)),
    *((SOURCE, memory, uuid, 2) for memory in (1, 2, 3) for uuid in (1, 2)),
    *((LINK, one, other, 0) for one in (1, 2, 3) for other in (1, 2, 3)),
)  # fmt: skip
KEY = st.integers(0, 3)
Change = tuple[str, int, int, int]


def filled() -> Rows:
    """A store with some of everything: three memories of two projects, with two topics, a session, and links between them."""
    rows = Rows(connect(Path(":memory:"), readonly=False))
    schema_migrations.migrate(rows, now="")
    for seq in (1, 2, 3):
        rows.insert("projects", seq=seq, key=f"k{seq}", root="", name="", kind="path", created_at="")
    for change in BEGUN:
        carry_out(rows, change)
    return rows


def carry_out(rows: Rows, change: Change) -> None:
    sql, *values = change
    rows.run(sql, **{name: value for name, value in zip("abc", values, strict=True) if f":{name}" in sql})


def counted_otherwise(rows: Rows) -> list[str]:
    return [problem for problem in integrity.check_content(rows) if "a wrong count" in problem]


@example([(TOPIC, 0, 0, 0), (TAG, 1, 3, 2)])  # a topic of a project without memories and sessions
@draws(st.lists(st.tuples(st.sampled_from(CHANGES), KEY, KEY, st.integers(0, 2)), max_size=30))
def test_whatever_changes_the_counts_are_those_of_the_rows(changes: list[Change]) -> None:
    rows = filled()
    for change in changes:
        carry_out(rows, change)
        assert counted_otherwise(rows) == [], change
    rows.connection.close()


def test_the_counts_are_of_what_is_there() -> None:
    rows = filled()
    assert memory_links.count_nodes_and_edges(rows, [1]) == {
        "memories": 2,
        "topics": 2,
        "sessions": 1,
        "tagged": 4,
        "produced": 2,
    }
    assert memory_links.count_relationships(rows, [1]) == {"r0": 4} and memory_links.count_relationships(
        rows, None
    ) == {"r0": 9}
    rows.run("update memories set twin_of = 1 where seq = 2")
    assert memory_links.count_nodes_and_edges(rows, [1])["tagged"] == 2 and memory_links.count_relationships(
        rows, None
    ) == {"r0": 4}
    rows.run("delete from memories")
    assert (
        set(memory_links.count_nodes_and_edges(rows, None).values()) == {0, 1}
        and memory_links.count_relationships(rows, None) == {}
    )
