"""What the indexes give, thinned out and scored: passages with the memories that they state, within places and limits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall.test_visibility import HERE, NOW, THERE, save_memory, say, state
from recall_fixtures import ordinary

from csmd.errors import DeadlineExceeded, EmbeddingUnavailable
from csmd.recall import hybrid_search, visibility
from csmd.recall.hybrid_search import Query, ScoredStatement
from csmd.store import failures, memories, vectors
from csmd.store.core import Store
from csmd.store.search import SearchFilter
from csmd.store.sqlite import Rows
from csmd.text import search_terms


def find(
    store: Store, asked: str, *, root: str | None = HERE, degraded: list[str] | None = None, **more: object
) -> list[ScoredStatement]:
    def look(rows: Rows) -> list[ScoredStatement]:
        places = visibility.scopes(rows, root) if root else None
        found = hybrid_search.expand_terms(rows, asked, places=places)
        values: dict[str, object] = {"terms": found, "places": places, **more}
        return hybrid_search.find(rows, Query(**values), degraded if degraded is not None else [])  # type: ignore[arg-type]

    return store.read(look)


def towards(number: int) -> bytes:
    """A vector in a space of four directions, as long as a model makes it: a quarter is 127."""
    return bytes(127 if place // 16 == number else 0 for place in range(64))


def embed(store: Store, directions: dict[str, int]) -> int:
    """Gives what waits a vector in the direction of the word it holds; the model."""

    def write(rows: Rows) -> int:
        model = vectors.ensure_model(rows, "four", 64, now=NOW)
        for kind in ("passage", "memory"):
            if waiting := vectors.read_backlog(rows, kind, model, limit=500):
                of = [next((n for word, n in directions.items() if word in body), 3) for _, _, body in waiting]
                made = [
                    (seq, place, 0, len(body), towards(n)) for (seq, place, body), n in zip(waiting, of, strict=True)
                ]
                vectors.add_vectors(rows, kind, model, made, reached=waiting[-1][0])
        return model

    return store.write(write)


def test_a_memory_and_the_passage_that_states_it_are_one(store: Store) -> None:
    ident = state(store, "The queue lives in Redis on the second host", 1)
    (one,) = find(store, "where does the queue live?")
    assert one.passage is not None and one.memory is not None and one.memory.id == ident
    assert one.key == (one.passage.seq, ident) and one.session_id == "s1"


def test_a_memory_whose_passage_says_something_else_stands_by_itself(store: Store) -> None:
    ident = save_memory(store, "The queue lives in Redis on the second host", say(store, "yes, do that", 1))
    one, *_ = (one for one in find(store, "where does the queue live?") if one.memory)
    assert one.passage is None and one.memory is not None and one.memory.id == ident
    assert (one.text, one.at) == (one.memory.text, one.memory.confirmed_at)


def test_what_a_person_edited_is_told_in_the_persons_words(store: Store) -> None:
    state(store, "The queue lives in Redis on the second host", 1)
    store.write(lambda rows: rows.run("update memories set pinned = 1, text = 'The queue lives in Redis, always'"))
    (one,) = find(store, "where does the queue live?")
    assert one.text == "The queue lives in Redis, always"


def test_found_by_words_alone_and_by_meaning_alone(store: Store) -> None:
    worded = say(store, "the queue lives in the jobs table", 1)
    meant = say(store, "everything asynchronous goes through Kafka", 3, session="s2")
    assert [one.passage.uuid for one in find(store, "queue") if one.passage] == [worded]
    model = embed(store, {"Kafka": 0, "queue": 1})
    found = find(store, "queue", vector=(towards(0), model))
    assert {one.passage.uuid for one in found if one.passage} == {worded, meant}
    by_uuid = {one.passage.uuid: one.features for one in found if one.passage}
    assert by_uuid[meant]["meaning"] == pytest.approx(1.0, abs=0.01) and by_uuid[meant]["shared"] == 0.0
    assert by_uuid[worded]["meaning"] == pytest.approx(0.0, abs=0.01) and by_uuid[worded]["shared"] > 0.0
    assert all(set(one.features) >= {"meaning", "near meaning"} for one in found)


def test_the_best_stand_first_and_the_order_is_the_same_each_time(store: Store) -> None:
    ordinary(store, HERE, sessions=8)
    say(store, "the job queue lives in Redis on the second host", 1)
    found = find(store, "where does the job queue live, which host?")
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert found[0].text.startswith("the job queue lives")
    assert find(store, "where does the job queue live, which host?") == found


def test_only_what_is_of_these_places_is_found(store: Store) -> None:
    here = say(store, "the queue lives in the jobs table", 1)
    there = say(store, "the queue lives in a file", 3, root=THERE, session="s2")
    save_memory(store, "the queue has two workers", there, root=THERE)
    model = embed(store, {"queue": 0})
    vector = (towards(0), model)
    assert {one.text for one in find(store, "queue", vector=vector)} == {"the queue lives in the jobs table"}
    assert len(find(store, "queue", root=None, vector=vector)) == 3
    assert [one.passage.uuid for one in find(store, "queue") if one.passage] == [here]
    assert find(store, "queue", root="/nowhere", vector=vector) == []


@pytest.mark.parametrize(
    ("narrow", "passages", "remembered"),
    [
        (SearchFilter(), {"s1-1", "s2-3"}, 2),
        (SearchFilter(session="s2"), {"s2-3"}, 1),
        (SearchFilter(since="2026-03-01T10:02:00.000Z"), {"s2-3"}, 1),
        (SearchFilter(until="2026-03-01T10:02:00.000Z"), {"s1-1"}, 1),
        (SearchFilter(since="2027"), set(), 0),
        (SearchFilter(gate="correction"), set(), 0),
        (SearchFilter(category="decision"), set(), 2),
    ],
)
def test_limits_leave_out_whatever_they_do_not_let_in(
    store: Store, narrow: SearchFilter, passages: set[str], remembered: int
) -> None:
    state(store, "the queue lives in the jobs table of Postgres", 1)
    state(store, "the queue of mails is drained at night by its worker", 3, session="s2")
    found = find(store, "queue", filters=narrow)
    if narrow.gate or narrow.category:
        assert all(one.memory for one in found)
    else:
        assert {one.passage.uuid for one in found if one.passage} == passages
    assert len({one.memory.id for one in found if one.memory}) == remembered


def test_what_nobody_said_is_not_found(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 1)
    assert find(store, "giraffe") == find(store, "") == []


def test_a_reported_symptom_finds_what_explains_it(store: Store) -> None:
    ident = save_memory(store, "cron truncates the sessions table", say(store, "yes", 1))

    def report(rows: Rows) -> None:
        memory = memories.by_id(rows, ident)
        assert memory is not None
        failures.add_symptom(rows, memory.seq, uuid="s1-1", at="", text="the dashboard is empty", fingerprint="")

    store.write(report)
    assert [one.memory.id for one in find(store, "dashboard empty") if one.memory] == [ident]


def test_a_long_line_of_names_is_followed_a_few_times_only(store: Store) -> None:
    for number in range(12):
        state(store, f"`svc_{number}.py` was renamed to `svc_{number + 1}.py`", 2 * number + 1)

    def asked(rows: Rows) -> int:
        count = 0

        def noted(*_: object) -> bool:
            nonlocal count
            count += 1
            return True

        rows.connection.set_exec_trace(noted)
        try:
            hybrid_search.expand_terms(rows, "why does `svc_0.py` fail?", places=visibility.scopes(rows, HERE))
        finally:
            rows.connection.set_exec_trace(None)
        return count

    of_one = store.read(lambda rows: asked(rows))
    for number in range(12, 24):
        state(store, f"`svc_{number}.py` was renamed to `svc_{number + 1}.py`", 2 * number + 1)
    assert store.read(lambda rows: asked(rows)) <= of_one + 4


def test_what_was_renamed_is_asked_for_by_all_its_names(store: Store) -> None:
    state(store, "`app.toml` was renamed to `settings.yaml`", 3)
    for one, other in (("app.toml", "settings.yaml"), ("settings.yaml", "app.toml")):
        found = store.read(
            lambda rows, one=one: hybrid_search.expand_terms(rows, one, places=visibility.scopes(rows, HERE))
        )
        assert set(search_terms.query_terms(other)) <= set(found)
    elsewhere = store.read(
        lambda rows: hybrid_search.expand_terms(rows, "app.toml", places=visibility.scopes(rows, THERE))
    )
    assert elsewhere == search_terms.question_terms("app.toml")


def test_a_name_that_changed_twice_leads_to_the_one_it_has_now(store: Store) -> None:
    state(store, "`app.toml` was renamed to `settings.yaml`", 3)
    state(store, "`settings.yaml` was renamed to `limits.json`", 4)
    found = store.read(
        lambda rows: hybrid_search.expand_terms(rows, "read app.toml", places=visibility.scopes(rows, HERE))
    )
    assert set(search_terms.query_terms("limits.json")) <= set(found)


@pytest.mark.invariant(
    "What cannot be read in time costs its part of an answer; a large store's next prompt is rehearsed, a prompt a step"
)
@pytest.mark.parametrize(
    ("late", "part"),
    [("fulltext.text_hits", "words"), ("vectors.find_vector_hits", "vectors"), ("fulltext.count_rows_with", "words")],
)
def test_what_is_late_is_named_and_the_rest_of_the_answer_stands(
    store: Store, monkeypatch: pytest.MonkeyPatch, late: str, part: str
) -> None:
    uuid = say(store, "the queue lives in the jobs table", 1)
    model = embed(store, {"queue": 0})

    def stopped(*_: object, **__: object) -> None:
        raise DeadlineExceeded("a read was stopped at its deadline")

    monkeypatch.setattr(f"csmd.recall.hybrid_search.{late}", stopped)
    degraded: list[str] = []
    found = find(store, "queue", vector=(towards(0), model), degraded=degraded)
    assert [one.passage.uuid for one in found if one.passage] == [uuid]
    assert [why.partition(":")[0] for why in degraded] == [part]


@pytest.mark.invariant("What fails degrades the answer and is named in it")
def test_a_vector_that_cannot_be_had_is_none_and_why(store: Store) -> None:
    def broken(_: str) -> tuple[bytes, str]:
        raise EmbeddingUnavailable("the worker has a cold")

    def look(rows: Rows) -> list[str]:
        degraded: list[str] = []
        for embed in (None, broken, lambda _: (towards(0), "unknown")):
            assert hybrid_search.embed_query(rows, "queue", embed, degraded) is None
        return degraded

    assert store.read(look) == [
        "vectors: the worker has a cold", "vectors: none are stored yet",
    ]  # fmt: skip


def test_no_more_is_read_than_the_candidates(store: Store) -> None:
    for number in range(1, 50):
        say(store, f"the queue number {number} lives in table {number}", number, session=f"a{number % 7}")
        say(store, f"the queue name {number} lives in table {number}", number, session=f"b{number % 7}")
    found = find(store, "queue table")
    assert len(found) == hybrid_search.MAX_CANDIDATES


bodies = st.lists(
    st.tuples(st.sampled_from(["queue", "worker", "port 8443", "giraffe", "the queue worker"]), st.booleans()),
    max_size=6,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(tmp_path_factory.mktemp("hybrid") / "csmd.db", now=NOW)
    yield made
    made.close()


@settings(max_examples=30)
@given(bodies, st.text(max_size=60))
def test_whatever_is_asked_each_statement_comes_once_with_a_score_of_its_features(
    shared: Store, said: list[tuple[str, bool]], asked: str
) -> None:
    ordinary(shared, HERE, sessions=1)
    number = int(shared.read(lambda rows: rows.value("select count(*) from turns")))
    for body, remembered in said:
        number += 1
        (state if remembered else say)(shared, f"{body} has rule {number}", number % 59, session=f"s{number}")
    for question in (asked, f"queue worker {asked}"):
        found = find(shared, question)
        assert len({one.key for one in found}) == len(found)
        assert all(0.0 <= one.score <= 1.0 and one.features for one in found)
        told = [one.memory.id for one in found if one.memory]
        assert len(told) == len(set(told))
