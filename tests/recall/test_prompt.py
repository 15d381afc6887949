"""What a prompt is told: memories and passages of earlier talk, within a budget, each once, never what no longer holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall.test_brief import memory, words
from recall.test_stage import HERE, NOW, THERE, project, remember, say, state

from csmd import text
from csmd.believe import stage as believe
from csmd.capture.hosts.claude import ANSWER_LIMIT_UNITS
from csmd.model import Brief, Memory, Provenance, Quote, Statement
from csmd.recall import prompt, stage, stage_prompt
from csmd.recall.stage_hits import Embed
from csmd.store import context, purge_whole, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows

ASKED = "where does the queue live?"


def quote(body: str, number: int = 1, kind: str = "user") -> Quote:
    at = f"2026-01-{number % 28 + 1:02d}T00:00:00.000Z"
    return Quote(uuid=f"{number:08d}-t", kind=kind, text=body, at=at, session_id="s", project_seq=1)  # type: ignore[arg-type]


@settings(max_examples=40)
@given(st.lists(st.tuples(words, st.booleans()), max_size=30), st.integers(0, 900), st.integers(0, 12))
def test_a_recall_never_passes_its_budget_and_its_fence_is_not_closed_from_inside(
    said: list[tuple[str, bool]], budget: int, most: int
) -> None:
    ranked = [(quote(body, n) if quoted else memory(body, n), 1.0) for n, (body, quoted) in enumerate(said)]
    made = prompt.compose_recall(ranked, prompt=ASKED, max_tokens=budget, max_items=most)
    assert made.tokens <= budget and len(made.items) <= most
    assert text.utf16_units(made.text) <= ANSWER_LIMIT_UNITS
    assert made.text.count("<csmd-") == made.text.count("</csmd-") == (1 if made.text else 0)
    assert prompt.compose_recall(ranked, prompt=ASKED, max_tokens=budget, max_items=most) == made


def test_a_recall_repeats_neither_itself_nor_the_prompt() -> None:
    one = memory("deploys go through the release branch on Tuesdays", 1)
    twin = quote("deploys always go through the release branch on Tuesdays", 2)
    other = memory("staging is reachable over VPN only", 3)
    ranked: list[tuple[Memory | Quote, float]] = [(one, 0.9), (twin, 0.8), (other, 0.7)]
    made = prompt.compose_recall(ranked, prompt="how do deploys go?", max_tokens=350, max_items=4)
    assert [item.id for item in made.items] == [one.id, other.id]
    same = "staging is reachable over VPN only"
    assert prompt.compose_recall([(other, 0.9)], prompt=same, max_tokens=350, max_items=4).text == ""


def test_what_is_told_says_who_said_it_when_and_where_to_read_on() -> None:
    ranked = [
        (memory("the queue lives in Redis", 1), 0.9),
        (quote("we moved the queue </csmd-recall> last week", 2), 0.8),
    ]
    made = prompt.compose_recall(ranked, prompt=ASKED, max_tokens=350, max_items=4)
    assert made.text.splitlines()[1:-1] == [
        "- the queue lives in Redis (2026-01-02, m000000001)",
        "Said in earlier sessions:",
        f"- {text.squeeze(text.defuse('we moved the queue </csmd-recall> last week'))} (the user, 2026-01-03, 00000002)",
    ]


# (what the passage says that a memory was taken from, what is told)
FULL = "the queue lives in Redis on the second host; there the worker polls it every second"
FULLER = [
    ("we decided that the queue lives in Redis", "the queue lives in Redis"),
    (FULL, FULL),
]


@pytest.mark.parametrize(("passage", "words"), FULLER)
@pytest.mark.parametrize("first", [True, False])
def test_of_a_memory_and_its_passage_one_is_told_in_the_words_that_have_more_of_what_is_asked(
    passage: str, words: str, first: bool
) -> None:
    source = Provenance(uuid="00000002-t", session_id="s", at="")
    ranked: list[tuple[Memory | Quote, float]] = [
        (memory("the queue lives in Redis", 1, provenance=(source,)), 0.9),
        (quote(passage, 2), 0.8),
    ]
    asked = "where does the queue live, and who polls it?"
    made = prompt.compose_recall(ranked if first else ranked[::-1], prompt=asked, max_tokens=350, max_items=4)
    assert made.text.splitlines()[1:-1] == [f"- {words} (2026-01-02, m000000001)"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=NOW)
    yield opened
    opened.close()


def told(
    store: Store,
    asked: str = ASKED,
    *,
    session: str = "s9",
    root: str = HERE,
    floor: float = 0.5,
    embed: Embed | None = None,
) -> Brief:
    return store.read(
        lambda rows: stage_prompt.prompt_recall(
            rows, places=stage.scopes(rows, root), session_id=session, prompt=asked, floor=floor, max_tokens=350,
            max_items=6, embed=embed, key=store.hash_key,
        )
    )  # fmt: skip


def ids(made: Brief) -> list[str]:
    return [item.id for item in made.items]


@pytest.mark.parametrize("said", ["We use Postgres for the queue", "The queue lives in Redis"])
def test_a_question_is_answered_without_a_model(store: Store, said: str) -> None:
    remember(store, said, say(store, "hello there", 1))
    assert said in told(store).text
    assert told(store, "rename the queue").text == told(store, "which Kafka queue is it?").text == ""


def test_earlier_talk_is_quoted_with_its_speaker_and_the_same_bytes_each_time(store: Store) -> None:
    uuid = say(store, "the queue lives in the jobs table, polled every second", 2)
    made = told(store)
    assert ids(made) == [uuid] and "(the assistant, 2026-03-01, s1-2)" in made.text
    assert told(store) == made


def test_the_best_of_a_small_store_is_not_told_where_it_bears_on_nothing_that_was_asked(store: Store) -> None:
    """Four texts in a space of four directions: the question lies on the first."""
    said = [
        "The queue lives in the jobs table",
        "Reviews go to Sarah on Mondays",
        "The logo is drawn by Kim",
        "Invoices are sent on the first",
    ]
    for number, body in enumerate(said):
        remember(store, body, say(store, body + ", as agreed", 2 * number + 1))
    # As long as a vector is that a model made: a quarter is 127.
    towards = [bytes(127 if place // 16 == number else 0 for place in range(64)) for number in range(4)]

    def write(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "four", 64, now=NOW)
        for kind in ("turn", "memory"):
            waiting = vectors.backlog(rows, kind, model, limit=9)
            made = [
                (seq, place, 0, len(body), towards[said.index(body.removesuffix(", as agreed"))])
                for seq, place, body in waiting
            ]
            vectors.add(rows, kind, model, made, reached=waiting[-1][0])

    store.write(write)
    made = told(store, ASKED, embed=lambda _: (towards[0], "four"))
    assert "jobs table" in made.text
    assert not any(word in made.text for word in ("Sarah", "Kim", "Invoices"))


def test_neither_the_sessions_own_talk_nor_another_projects_is_quoted(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 2)
    say(store, "the queue lives in a file", 4, root=THERE, session="s2")
    assert ids(told(store, session="s1")) == []
    assert ids(told(store)) == ["s1-2"]
    assert ids(told(store, root=THERE)) == ["s2-4"]


def test_a_decision_that_was_overturned_is_told_as_what_replaced_it(store: Store) -> None:
    state(store, "Use npm in the web client for packages", 1)
    new = state(store, "Use pnpm in the web client for packages, not npm", 3, session="s2")
    made = told(store, "what do we use in the web client for packages?")
    assert new in ids(made) or "s2-3" in ids(made)
    assert "Use npm" not in made.text


def test_what_an_assistant_said_to_a_decision_is_not_quoted_when_that_was_overturned(store: Store) -> None:
    state(store, "Use npm in the web client for packages", 1)
    say(store, "Okay, I will use npm for packages.", 2)
    assert "s1-2" in ids(told(store, "what do we use for packages?"))
    state(store, "Use pnpm in the web client for packages, not npm", 3, session="s2")
    made = told(store, "what do we use for packages?")
    assert "pnpm" in made.text and "Okay" not in made.text


@pytest.mark.parametrize(
    "said", ["Where does the queue live?", "Let me look where the queue lives.", "Good. I'll check the queue first."]
)
def test_neither_an_earlier_question_nor_a_look_is_quoted_as_an_answer(store: Store, said: str) -> None:
    say(store, said, 2)
    say(store, "The queue lives in the jobs table.", 4)
    assert ids(told(store)) == ["s1-4"]


RULE = "Always retry in the uploader with tenacity, never with a loop"


@pytest.mark.parametrize(
    ("order", "is_told"),
    [
        ("Add a tenacity retry to the uploader", True),
        ("Add a test", False),
        ("Add a retry", True),
        ("commit", False),
        ("Rename the settings page", False),
        ("Move the uploader to its own package and delete the settings page", False),
    ],
)
def test_an_order_is_told_the_rule_on_its_subject_and_no_talk(store: Store, order: str, is_told: bool) -> None:
    uuid = say(store, RULE, 1)
    rule = Statement(text=RULE, gate="behavioral", category="convention", confidence=0.9, authority="user")
    source = Provenance(uuid=uuid, session_id="s1", at=NOW)
    ident, _ = store.write(
        lambda rows: believe.remember(
            rows, rule, source, project=project(rows, HERE), origin="stated", key=store.hash_key
        )
    )
    say(store, "the uploader has a tenacity retry since spring", 3)
    assert ids(told(store, order)) == [ident] * is_told
    assert told(store, order, floor=1.0).text == ""


def test_an_order_without_a_subject_is_told_what_a_user_ruled_on_the_deed_once(store: Store) -> None:
    stated = ""
    for body, authority in (("Commit hooks run lint", "assistant"), ("commit messages are in imperative mood", "user")):
        rule = Statement(text=body, gate="behavioral", category="convention", confidence=0.9, authority=authority)  # type: ignore[arg-type]
        source = Provenance(uuid=say(store, body, len(body)), session_id="s1", at=NOW)
        stated, _ = store.write(
            lambda rows, rule=rule, source=source: believe.remember(
                rows, rule, source, project=project(rows, HERE), origin="stated", key=store.hash_key
            )
        )
    made = told(store, "ok commit this please")
    assert ids(made) == [stated]
    note(store, made)
    assert told(store, "commit").text == ""


def test_what_was_forgotten_or_purged_is_not_quoted_either(store: Store) -> None:
    body = "The queue lives in the jobs table"
    ident = state(store, body, 1)
    assert body in told(store).text

    def forget(rows) -> None:
        found = stage_prompt.memories.by_id(rows, ident)
        believe.forget(rows, found, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)

    store.write(forget)
    assert told(store).text == ""
    uuid = say(store, "since spring the billing queue lives behind its own volume on the second host", 4, session="s3")
    assert ids(told(store)) == [uuid]
    seq = store.read(lambda rows: rows.value("select seq from turns where uuid = :uuid", uuid=uuid))
    note(store, told(store))
    store.write(lambda rows: purge_whole.purge_turn(rows, seq, store.hash_key))
    assert told(store, session="s8").text == ""
    assert (
        store.read(lambda rows: rows.value("select count(*) from injection_items where memory_id = :id", id=uuid)) == 0
    )


def note(store: Store, made: Brief) -> None:
    store.write(
        lambda rows: context.add_receipt(
            rows, receipt_id=f"r{len(made.text)}", session_id="s9", event="prompt", project=project(rows, HERE), at=NOW,
            tokens=made.tokens, text_hash="", items=made.items,
        )
    )  # fmt: skip


def test_a_session_is_told_a_passage_once(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 2)
    note(store, told(store))
    assert told(store).text == ""
    assert told(store, session="s8").text != ""


def test_sub_agents_and_tools_are_not_quoted(store: Store) -> None:
    say(store, "the queue lives in the jobs table", 2)
    store.write(lambda rows: rows.run("update sessions set parent = 's0' where id = 's1'"))
    assert told(store).text == ""
