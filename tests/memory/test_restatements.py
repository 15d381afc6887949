"""What is said again in other words: one memory with all its turns, under the best wording, and taken apart row by row."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from dream_fixtures import dream as dream_for_real
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journal_fixtures import LAST, LATER, NOW, dump, memory_of, save_memory, sound, undo, without_version
from memory_factory import memory

from csmd.errors import BadInput
from csmd.knowledge import Memory
from csmd.memory import duplicates, merging, restatements
from csmd.store import belief_changes, dreams, memories, memory_upkeep, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows

MODEL = "m"
LOGS, LOGGED = "Logs must not contain personal data.", "Personal data is not allowed in the logs."
TRIES, TRIED = "The worker tries a failed job three times.", "A failed job is tried 3 times by the worker."
FAR = "Invoices are made at night by the billing worker."
#: Statements and where their vectors point: eight times two numbers, for signs of so few as two say little.
DIM = 16
POINTS = {
    text: pair * (DIM // 2)
    for text, pair in {
        LOGS: b"\x7f\x01",
        LOGGED: b"\x7f\x02",
        TRIES: b"\x01\x7f",
        TRIED: b"\x02\x7f",
        FAR: b"\x81\x81",
    }.items()
}


def say(store: Store, text: str, uuid: str, *, at: str = NOW, **changes: Any) -> str:
    return store.write(lambda rows: save_memory(rows, store.hash_key, text, uuid, at=at, **changes))


def embed(store: Store) -> None:
    """Gives every memory its vector, as the background does."""

    def write(rows: Rows) -> None:
        model = vectors.ensure_model(rows, MODEL, DIM, now=NOW)
        for seq, project, text in vectors.read_backlog(rows, "memory", model, limit=99):
            vectors.add_vectors(rows, "memory", model, [(seq, project, 0, len(text), POINTS[text])], reached=seq)

    store.write(write)


def compare(store: Store, *, model: str | None = MODEL) -> int:
    """Lets the stage go on until nothing waits; how many memories it compared."""
    return sum(iter(lambda: restatements.step(store, model=model, now=LATER), 0))


def read(store: Store, ident: str) -> Memory:
    return store.read(lambda rows: memory_of(rows, ident))


def alive(store: Store) -> list[str]:
    return sorted(memory.text for memory in store.read(lambda rows: memory_upkeep.list_active_memories(rows, None)))


@pytest.mark.invariant("A restatement in other words is evidence of the standing memory, and no second memory")
def test_a_restatement_confirms_the_standing_memory_and_leaves_no_second_one(store: Store) -> None:
    standing = say(store, LOGS, "u1")
    say(store, FAR, "u2")
    again = say(store, LOGGED, "u3", at=LATER)
    embed(store)
    assert compare(store) == 3
    assert alive(store) == sorted((LOGS, FAR))
    stays = read(store, standing)
    assert [(source.uuid, source.role) for source in stays.provenance] == [("cli:u1", "states"), ("cli:u3", "confirms")]
    assert (stays.confirmed_at, stays.times) == (LATER, 2)
    assert stays.confidence > 0.8
    (change,) = store.read(lambda rows: belief_changes.list_changes(rows, again))
    assert (change.change, change.after, change.by) == ("merge", standing, "rule")
    assert "in other words" in change.reason
    assert sound(store) == {}
    assert compare(store) == 0


def test_it_waits_for_vectors_and_does_nothing_without_a_model(store: Store) -> None:
    say(store, LOGS, "u1")
    say(store, LOGGED, "u2")
    assert compare(store) == 0
    embed(store)
    assert compare(store, model=None) == 0
    assert compare(store) == 2
    assert len(alive(store)) == 1


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [
        ({"said": LOGS, "authority": "assistant"}, {"said": LOGGED}, LOGGED),
        ({"said": LOGS}, {"said": LOGGED, "authority": "assistant"}, LOGS),
        ({"said": LOGGED}, {"said": LOGS}, LOGGED),
        ({"said": TRIED, "gate": "correction"}, {"said": TRIES}, None),
    ],
    ids=["the user's words", "the user's words as they stand", "the first of two as good", "a correction beside a statement"],
)  # fmt: skip
def test_the_best_wording_stays(store: Store, first: dict[str, Any], second: dict[str, Any], stays: str | None) -> None:
    for number, statement in enumerate((first, second)):
        say(store, statement.pop("said"), f"u{number}", **statement)
    embed(store)
    compare(store)
    assert alive(store) == ([stays] if stays else sorted((TRIED, TRIES)))


def test_a_wording_that_can_be_read_alone_and_names_more_goes_first() -> None:
    def worded(text: str) -> tuple[object, ...]:
        return duplicates.rank_wording(memory("m1", text))

    assert worded("Logs go to Loki.") < worded("They go to Loki.")
    assert worded("Logs go to `loki.internal`.") < worded("Logs go to the usual place.")
    assert worded("Logs and traces go to Loki.") < worded("Logs go to Loki.")


@pytest.mark.invariant("What somebody took apart is merged by no rule again")
def test_what_was_taken_apart_stays_two_for_the_stage_and_for_a_dream(store: Store) -> None:
    say(store, LOGS, "u1")
    again = say(store, LOGGED, "u2")
    embed(store)
    compare(store)
    store.write(lambda rows: merging.undo(rows, memory_of(rows, again), now=LAST, by_person=True))
    store.write(lambda rows: rows.run("delete from cursors where stage = :stage", stage=restatements.STAGE))
    assert compare(store) == 2
    assert dream_for_real(store, now=LAST) == 0
    assert alive(store) == sorted((LOGS, LOGGED))


def test_of_a_flood_the_stage_compares_the_last_and_leaves_the_rest_to_the_dream(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, text in enumerate((LOGS, LOGGED, TRIES, TRIED)):
        say(store, text, f"u{number}")
    embed(store)
    monkeypatch.setattr(restatements, "MAX_NEW", 2)
    assert compare(store) == 2
    assert alive(store) == sorted((LOGS, LOGGED, TRIED))
    assert dream_for_real(store, now=LAST) == 1
    assert len(alive(store)) == 2


statements = st.lists(
    st.tuples(st.sampled_from(sorted(POINTS)), st.sampled_from(("user", "assistant")), st.sampled_from((0.6, 0.8, 0.95))),
    min_size=2, max_size=5, unique_by=lambda one: one[0],
)  # fmt: skip
numbers = itertools.count()
quick = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def store_with(tmp_path: Path, said: list[tuple[str, str, float]]) -> Store:
    store = Store(tmp_path / f"{next(numbers)}.db", now=NOW)
    for number, (text, authority, sure) in enumerate(said):
        say(store, text, f"u{number}", authority=authority, confidence=sure)
    embed(store)
    return store


@pytest.mark.invariant("A merge of restatements that is undone gives back the rows exactly")
@quick
@given(said=statements)
def test_a_merge_while_capturing_and_its_undo_give_back_the_rows(tmp_path: Path, said: Any) -> None:
    store = store_with(tmp_path, said)
    try:
        before = dump(store)
        compare(store)
        gone = store.read(lambda rows: memories.where(rows, "m.superseded_by <> '' order by m.seq desc"))
        assert len(gone) == len(said) - len(alive(store))
        for merged in gone:
            store.write(
                lambda rows, merged=merged: merging.undo(rows, memory_of(rows, merged.id), now=LAST, by_person=True)
            )  # type: ignore[misc]
        assert [*map(without_version, dump(store)[0])] == [*map(without_version, before[0])]
        assert dump(store)[1:] == before[1:]
        assert sound(store) == {}
    finally:
        store.close()


@quick
@given(said=statements)
def test_a_dream_that_merges_and_its_undo_give_back_the_rows(tmp_path: Path, said: Any) -> None:
    store = store_with(tmp_path, said)
    try:
        before = dump(store)
        dream_for_real(store, now=LATER)
        done = store.read(lambda rows: dreams.list_dreams(rows, limit=1))[0]
        assert {LOGS, LOGGED} - set(alive(store)) or not {LOGS, LOGGED} <= {text for text, *_ in said}
        if dump(store) != before:
            undo(store, done.id)
        assert dump(store) == before
        assert sound(store) == {}
    finally:
        store.close()


def test_an_assistant_merges_restatements_and_is_told_why_not_what_is_no_restatement() -> None:
    logs, logged, few = (memory(f"m{number}", text) for number, text in enumerate((LOGS, LOGGED, FAR)))
    plan = merging.plan_merge(logged, logs, everywhere={1: 0}, by_person=False)
    assert plan.memories == (logs, logged) and "in other words" in plan.reason
    with pytest.raises(BadInput, match="do not say the same: one denies and the other does not"):
        merging.plan_merge(few, logs, everywhere={1: 0}, by_person=False)
