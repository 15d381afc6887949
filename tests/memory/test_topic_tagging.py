"""What memories are about: names and phrases that several share, the same in whichever order they came."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_factory import memory_of

from csmd.conversation import Project
from csmd.knowledge import Link, Provenance
from csmd.memory import topic_tagging
from csmd.recall import memory_neighbours
from csmd.store import (
    memories,
    memory_deletion,
    memory_links,
    memory_snapshots,
    project_merges,
    projects,
    purge,
    tombstones,
    topics,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from tests.memory_factory import NOW, memory

SAID = [
    ("s1", "The shadow branch keeps what was changed before a commit."),
    ("s2", "Delete the shadow branch once its session is condensed."),
    ("s2", "`GetAgentType` returns the agent type from settings.json."),
    ("s3", "The AgentType was empty when settings.json had none."),
    ("s3", "An empty agent_type breaks the trailer in `pkg/meta.go:12`."),
    ("s4", "We deploy with `make ship` on Fridays, never from a laptop."),
    ("s5", "Please look at the shadow branch and at settings.json again."),
    ("s6", "Coverage is measured by the nightly job."),
    ("s6", "Coverage of the parser has to stay above ninety."),
    ("s1", "Grafana shows how long each request takes."),
    ("s2", "Use two spaces in every template."),
    ("s3", "The German translation is done by hand."),
    ("s4", "Releases are signed on the build machine."),
    ("s5", "Customers from Norway pay in crowns."),
    ("s7", "Invoices are rounded once, at the end."),
]


def taggable(said: list[tuple[str, str]]) -> list[topic_tagging.TaggableMemory]:
    return [
        topic_tagging.TaggableMemory(seq=number, text=text, session_id=session)
        for number, (session, text) in enumerate(said, 1)
    ]


def tagged(said: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Text -> its topics."""
    topics_of: dict[str, set[str]] = {}
    for tag in topic_tagging.choose_tags(taggable(said)):
        topics_of.setdefault(said[tag.seq - 1][1], set()).add(tag.topic)
    return topics_of


@pytest.mark.parametrize(
    ("number", "topic"),
    [
        (0, "shadow branch"),
        (1, "shadow branch"),
        (2, "agent type"),
        (3, "agent type"),
        (4, "agent type"),
        (3, "settings.json"),
    ],
)
def test_a_name_and_a_phrase_that_several_memories_share_is_their_topic(number: int, topic: str) -> None:
    assert topic in tagged(SAID)[SAID[number][1]]


def test_what_only_one_memory_or_one_session_speaks_of_is_no_topic() -> None:
    named = {name for names in tagged(SAID).values() for name in names}
    assert not named & {"meta.go", "grafana", "coverage"}  # coverage: twice, in one session
    assert "coverage" in {name for names in tagged([*SAID, ("s9", "Raise the coverage.")]).values() for name in names}


def test_what_most_memories_share_separates_nothing() -> None:
    all_of_it = [(f"s{number}", f"The checkout {word} of the shop.") for number, word in enumerate("abcdefghijkl")]
    assert "checkout" not in {name for names in tagged(all_of_it).values() for name in names}


def test_a_verb_and_an_adjective_are_no_topics() -> None:
    named = {name for names in tagged(SAID).values() for name in names}
    assert not named & {"empty", "look", "keeps", "delete", "changed"}


def test_a_word_that_no_article_ever_led_is_no_topic() -> None:
    said = [("s8", "Old chips stay in the field."), ("s9", "Card payments stay as they were."), ("s8", "Uploads finish tonight twice."),
            ("s9", "Nightly jobs ran twice."), ("s8", "Old tariff lookups wait."), ("s9", "New customers see the tariff.")]  # fmt: skip
    named = {name for names in tagged([*SAID, *said]).values() for name in names}
    assert not named & {"stay", "twice"}


def check(said: list[str], word: str, *, is_topic: bool) -> None:
    """Whether a word that these statements of as many sessions share is a topic."""
    among = [*SAID, *((f"t{number}", text) for number, text in enumerate(said))]
    assert (word in {name for names in tagged(among).values() for name in names}) == is_topic


#: Statements, a word that they share, and whether a person would name it as what they are about.
GOLDEN = [
    (["The queue is drained at night.", "Messages wait in the queue.", "A full queue drops messages."], "queue", True),
    (["The parser must throw on empty rows.", "Workers throw when they time out.", "Don't throw from a callback."], "throw", False),
    (["Sync waits 5 minutes.", "After 10 minutes the login ends.", "Give the pods 2 minutes."], "minutes", False),
    (["Key insight: rows are sorted.", "Key insight: the clock is wrong.", "Key insight: nobody reads it."], "key insight", False),
    (["It failed with `err` unset.", "Return `err` at once.", "Wrap `err` with its path."], "err", False),
    (["`render` takes a map.", "Pages are slow to render.", "We render it on the server."], "render", False),
    (["`PaymentGate` retries twice.", "Mock `PaymentGate` in the shop.", "The payment gate is closed at night."], "payment gate", True),
    (["Deploys go through Spinnaker.", "Ask Spinnaker for the logs.", "We pay for Spinnaker."], "spinnaker", True),
    (["Flags live in config.toml.", "Sort the keys of config.toml.", "Never edit config.toml by hand."], "config.toml", True),
    (["Exports to optimize are rare.", "We should optimize it.", "You can optimize the join."], "optimize", False),
]  # fmt: skip


@pytest.mark.invariant("A topic is a thing that a person would name: no verb, amount, heading or word of a language")
@pytest.mark.parametrize(("said", "word", "is_topic"), GOLDEN, ids=[word for _, word, _ in GOLDEN])
def test_a_topic_is_a_thing_that_a_person_would_name(said: list[str], word: str, is_topic: bool) -> None:
    check(said, word, is_topic=is_topic)


def test_in_a_project_of_many_sessions_a_word_is_a_topic_in_more_of_them_than_a_name() -> None:
    many = [f"Rule {number}: {text}" for number, (_, text) in enumerate(SAID * 4)]
    three = ["Messages wait in the queue.", "The queue is full.", "Look into the queue."]
    names = ["Deploys go through Spinnaker.", "Ask Spinnaker for it.", "We pay for Spinnaker."]
    check([*many, *three], "queue", is_topic=False)
    check([*many, *three, "Never empty the queue by hand.", "Somebody owns the queue."], "queue", is_topic=True)
    check([*many, *names], "spinnaker", is_topic=True)


def test_a_memory_has_three_topics_at_most_and_none_within_another() -> None:
    for names in tagged(SAID).values():
        assert len(names) <= topic_tagging.MAX_TAGS
        words = [set(name.split()) for name in names]
        assert not any(topic < other for topic in words for other in words)


@pytest.mark.invariant(
    "Topics do not depend on the order in which memories came; what somebody tags or takes off stays"
)
@settings(max_examples=30, deadline=None)
@given(st.permutations(SAID))
def test_topics_do_not_depend_on_the_order_in_which_memories_came(said: list[tuple[str, str]]) -> None:
    assert tagged(said) == tagged(SAID)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=8))
def test_any_text_can_be_looked_at(said: list[str]) -> None:
    tags = topic_tagging.choose_tags(taggable([(f"s{number}", text) for number, text in enumerate(said)]))
    assert all(tag.topic and 0 < tag.weight <= 1 for tag in tags)


def test_a_name_that_somebody_types_is_kept_small_and_on_one_line() -> None:
    assert topic_tagging.normalise_name('  "Shadow\n Branch". ') == "shadow branch"
    assert topic_tagging.normalise_name(" .. ") == ""


# --- Topics over a real store: what somebody says stays, what moves takes its topics along, what is gone leaves no name.


BRANCH = ("m0", "m1", "m6")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    opened.write(lambda rows: tell(rows, home(rows)))
    opened_step(opened)
    yield opened
    opened.close()


def home(rows: Rows, key: str = "a") -> int:
    return projects.ensure(rows, Project(key=key, root=f"/p/{key}", name=key, kind="path"), now=NOW)


def tell(rows: Rows, project: int) -> None:
    for number, (session, text) in enumerate(SAID):
        source = Provenance(uuid=f"cli:{number}", session_id=session, at=NOW)
        tagged_memory = memory(f"m{number}", text, project_seq=project, session_id=session, provenance=(source,))
        memories.insert(rows, tagged_memory, text_hash=f"h{number}")


def opened_step(store: Store) -> int:
    """Looks until nothing is left; how many memories were looked at."""
    total = 0
    while looked := topic_tagging.step(store, force=True, reading=False):
        total += looked
    return total


def names(store: Store, ident: str) -> dict[str, str]:
    """Topic -> who says so."""
    seq = memory_of(store, ident).seq
    by_seq = store.read(lambda rows: topics.topics_of_memories(rows, [seq]))
    return {topic.name: topic.by_whom for topic in by_seq.get(seq, [])}


def about(store: Store, name: str, places: list[int] | None = None) -> set[str]:
    seqs = list(store.read(lambda rows: topics.list_members(rows, name, places)))
    return {memory.id for memory in store.read(lambda rows: memories.by_seqs(rows, seqs)).values()}


def say(store: Store, ident: str, name: str, *, by: str, weight: float = 1.0) -> bool:
    seq = memory_of(store, ident).seq
    return store.write(lambda rows: topics.tag_memory(rows, seq, name, by=by, weight=weight))


def test_memories_are_tagged_once_and_nothing_is_done_where_nothing_changed(store: Store) -> None:
    assert about(store, "shadow branch") == set(BRANCH)
    commits = store.commits
    assert opened_step(store) == 0
    assert store.commits == commits


@pytest.mark.invariant(
    "Topics do not depend on the order in which memories came; what somebody tags or takes off stays"
)
def test_what_somebody_tags_or_takes_off_stays_when_the_rule_looks_again(store: Store) -> None:
    assert say(store, "m5", "delivery", by=topics.PERSON)
    assert say(store, "m0", "shadow branch", by=topics.PERSON, weight=0)
    store.write(lambda rows: memory_deletion.delete_memory(rows, memory_of(store, "m9")))
    assert opened_step(store)
    assert names(store, "m5")["delivery"] == "person"
    assert about(store, "shadow branch") == {"m1", "m6"}


def test_an_assistant_does_not_overrule_what_a_person_said_of_a_topic(store: Store) -> None:
    say(store, "m0", "shadow branch", by=topics.PERSON, weight=0)
    assert not say(store, "m0", "shadow branch", by=topics.ASSISTANT)
    assert say(store, "m1", "git", by=topics.ASSISTANT)
    assert names(store, "m1")["git"] == "assistant"
    assert "shadow branch" not in names(store, "m0")


def test_the_name_of_a_topic_goes_with_the_last_memory_that_had_it(store: Store) -> None:
    for ident in BRANCH:
        store.write(lambda rows, ident=ident: memory_deletion.delete_memory(rows, memories.by_id(rows, ident)))
    left = store.read(lambda rows: rows.all("select name from topics where name = 'shadow branch'"))
    assert left == []


def test_what_was_purged_names_no_topic(store: Store) -> None:
    say(store, "m5", "project zanzibar", by=topics.PERSON)

    def write(rows: Rows) -> None:
        tombstones.purge_text(rows, "zanzibar", key=store.hash_key, now=NOW)
        purge.apply_tombstones(rows, store.hash_key)

    store.write(write)
    assert "project zanzibar" not in names(store, "m5")
    assert store.read(lambda rows: rows.all("select 1 from topics where name like '%zanzibar%'")) == []


def test_topics_go_with_their_memories_into_another_project_and_come_back(store: Store) -> None:
    say(store, "m5", "delivery", by=topics.PERSON)
    source = memory_of(store, "m5").project_seq
    into = store.write(lambda rows: home(rows, "b"))
    store.write(lambda rows: project_merges.merge_projects(rows, source, into))
    assert about(store, "delivery", [into]) == {"m5"}
    assert about(store, "shadow branch", [into]) == set(BRANCH)
    assert store.read(lambda rows: rows.all("select 1 from topics where project_seq = :p", p=source)) == []
    opened_step(store)
    assert about(store, "shadow branch", [into]) == set(BRANCH)
    store.write(lambda rows: project_merges.split_projects(rows, into, source))
    opened_step(store)
    assert about(store, "delivery", [source]) == {"m5"}
    assert about(store, "shadow branch", [source]) == set(BRANCH)


def test_what_is_taken_back_has_its_tags_again(store: Store) -> None:
    say(store, "m5", "shadow branch", by=topics.PERSON)
    was = store.read(lambda rows: memory_snapshots.take_snapshots(rows, ["m5"]))
    store.write(lambda rows: memory_deletion.delete_memory(rows, memory_of(store, "m5")))
    store.write(
        lambda rows: memory_snapshots.restore(
            rows, [(image, memory_snapshots.Snapshot(image.item)) for image in was], at=NOW
        )
    )
    assert names(store, "m5") == {"shadow branch": "person"}


def test_a_large_project_waits_until_enough_of_it_is_new(store: Store) -> None:
    store.write(lambda rows: memory_deletion.delete_memory(rows, memory_of(store, "m9")))
    assert topic_tagging.step(store, force=False, reading=True) == 0
    assert topic_tagging.step(store, force=False, reading=False)


@pytest.mark.invariant("No write of a dream or its undo is long: few actions, few tags, one file")
def test_no_write_puts_more_than_a_few_tags_and_no_reader_waits_while_they_are_looked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_tagging, "WRITE_BATCH", 2)
    tags_of, rows_of = topic_tagging.choose_tags, topic_tagging.topics.replace_tags
    sizes: list[int] = []

    def looking(untagged: Any) -> Any:
        assert store.submit_read(lambda rows: True, lane="main").result(timeout=10)
        return tags_of(untagged)

    def put(rows: Rows, project: int, part: Any) -> None:
        sizes.append(len(part))
        rows_of(rows, project, part)

    monkeypatch.setattr(topic_tagging, "choose_tags", looking)
    monkeypatch.setattr(topic_tagging.topics, "replace_tags", put)
    was = about(store, "shadow branch")
    store.write(lambda rows: rows.run("delete from memory_topics"))
    store.write(lambda rows: rows.run("update projects set topics_due = 9 where seq = 1"))
    assert opened_step(store)
    assert about(store, "shadow branch") == was and len(sizes) > 2 and max(sizes) == 2


# --- one hop


def near(store: Store, *idents: str, projects: list[int] | None = None) -> dict[str, dict[str, str]]:
    """Memory -> neighbour -> relation."""
    seqs = [memory_of(store, ident).seq for ident in idents]
    neighbours = store.read(lambda rows: memory_neighbours.find_neighbours(rows, seqs, projects=projects))
    named = {memory.seq: memory.id for memory in store.read(lambda rows: memories.list_memories(rows, projects=None))}
    return {named[seq]: {named[other]: relation for other, relation, _ in some} for seq, some in neighbours.items()}


def test_one_hop_goes_along_links_both_ways_topics_and_sessions(store: Store) -> None:
    link = Link(from_id="m9", to_id="m5", relationship="symptom_of", weight=1.0)
    store.write(lambda rows: memory_links.add_link(rows, link, now=NOW))
    neighbours = near(store, "m9", "m5", "m0")
    assert neighbours["m9"]["m5"] == neighbours["m5"]["m9"] == "symptom_of"
    assert neighbours["m0"]["m1"] == memory_neighbours.SAME_TOPIC
    assert neighbours["m0"]["m9"] == memory_neighbours.SAME_SESSION  # both were said in session s1


def test_one_hop_leads_to_what_superseded_and_stays_in_the_places_asked_about(store: Store) -> None:
    store.write(lambda rows: rows.run("update memories set superseded_by = 'm13' where id = 'm14'"))
    assert near(store, "m14")["m14"]["m13"] == "superseded_by"
    assert near(store, "m14", projects=[0]) == {}


def test_the_nearest_come_first_and_a_further_edge_counts_a_little() -> None:
    edges = [(1, "same_topic", 0.4), (2, "symptom_of", 0.9), (1, "same_session", 0.05), (3, "merged_into", 0.0)]
    ranked = memory_neighbours.rank_neighbours(map(memory_neighbours.Neighbour._make, edges))
    assert [(seq, relation) for seq, relation, _ in ranked] == [(2, "symptom_of"), (1, "same_topic")]
    assert 0.4 < ranked[1][2] < 0.45


def test_a_topic_of_many_is_worth_less_than_one_of_two_and_both_less_than_any_link() -> None:
    weakest = min(worth for ends in memory_neighbours.LINK_WORTH.values() for worth in ends if worth)
    assert weakest > memory_neighbours.rate_topic(2) > memory_neighbours.rate_topic(20) > 0
    assert weakest > memory_neighbours.SESSION_WORTH


def test_phrases_that_only_one_memory_has_are_not_kept() -> None:
    words = [f"{''.join(chr(97 + number // 26**at % 26) for at in range(4))}er" for number in range(12_000)]
    untagged = [
        topic_tagging.TaggableMemory(
            seq=seq, text=f"The {' '.join(words[seq * 20 : seq * 20 + 20])}.", session_id=f"s{seq}"
        )
        for seq in range(600)
    ]
    tracemalloc.start()
    try:
        assert topic_tagging.choose_tags(untagged) == []
        assert tracemalloc.get_traced_memory()[1] < 6_000_000
    finally:
        tracemalloc.stop()


def test_a_twin_counts_for_nothing_in_the_graph(store: Store) -> None:
    def counted(rows: Rows) -> tuple[dict[str, int], dict[str, int]]:
        return memory_links.count_nodes_and_edges(rows, None), memory_links.count_relationships(rows, [home(rows)])

    def draw(rows: Rows) -> None:
        memory_links.add_link(rows, Link(from_id="m0", to_id="m1", relationship="relates_to", weight=0.5), now=NOW)
        for seq in (1, 2):
            topics.tag_memory(rows, seq, f"only {seq}", by=topics.PERSON)

    store.write(draw)
    before, drawn = store.write(counted)
    tags = store.read(lambda rows: rows.number("select count(*) from memory_topics where memory_seq = 2"))
    assert drawn == {"relates_to": 1} and tags >= 1
    store.write(lambda rows: rows.run("update memories set twin_of = 1 where seq = 2"))
    after, drawn = store.write(counted)
    assert drawn == {}
    lost = {name: before[name] - after[name] for name in before}
    assert lost == {"memories": 1, "topics": 1, "sessions": 0, "tagged": tags, "produced": 1}
