"""What a replacement does to a memory: lowered, linked, undone, in whatever order the statements were heard."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_factory import memory_of, state

from csmd.errors import BadInput
from csmd.knowledge import Memory
from csmd.memory import remember, supersession
from csmd.store import belief_changes, candidates, memories, memory_deletion, memory_links
from csmd.store.core import Store
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"
PNPM = "Use pnpm in the web client, not npm"
NPM = "Use npm in the web client"


def say(store: Store, text: str, day: int, **changes: Any) -> str:
    at, changes = f"2026-03-{day:02d}T10:00:00.000Z", {"confidence": 0.85, **changes}
    return store.write(lambda rows: state(rows, text, f"{day}:{text}", session=f"s{day}", at=at, **changes))


def undo(store: Store, ident: str) -> Memory:
    return store.write(
        lambda rows: supersession.undo(rows, memories.by_id(rows, ident), by=supersession.PERSON, now=NOW)  # type: ignore[arg-type]
    )


def links(store: Store, ident: str) -> list[tuple[str, str, str]]:
    return [
        (one.from_id, one.to_id, one.relationship)
        for one in store.read(lambda rows: memory_links.list_links(rows, ident))
    ]


def waiting(store: Store) -> list[tuple[str, ...]]:
    return [one.memory_ids for one in store.read(lambda rows: candidates.waiting(rows, projects=None))]


def test_a_later_statement_lowers_and_links_the_older_memory_with_a_reason(store: Store) -> None:
    old, new = say(store, NPM, 1), say(store, PNPM, 2)
    memory = memory_of(store, old)
    assert memory.superseded_by == new
    assert 0.20 <= 0.85 - memory.confidence <= 0.50
    assert links(store, old) == [(old, new, "superseded_by")]
    (change,) = store.read(lambda rows: belief_changes.list_changes(rows, old))
    assert (change.change, change.by, change.at[:10], change.undone_at) == ("superseded", "rule", "2026-03-02", "")
    assert "says-instead" in change.reason
    assert memory_of(store, new).confidence == pytest.approx(0.85)


def test_statements_read_newest_first_are_superseded_all_the_same(store: Store) -> None:
    new, old = say(store, PNPM, 2), say(store, NPM, 1)
    assert (memory_of(store, old).superseded_by, memory_of(store, new).superseded_by) == (new, "")


def test_a_superseded_statement_that_is_stated_again_is_active_again(store: Store) -> None:
    old, new = say(store, NPM, 1), say(store, PNPM, 2)
    say(store, NPM, 3)
    assert memory_of(store, old).superseded_by == ""
    assert memory_of(store, old).confidence == pytest.approx(0.90)
    assert memory_of(store, new).superseded_by == old


def test_a_fact_about_the_user_stated_again_supersedes_the_interim_one_in_every_project(store: Store) -> None:
    between = say(store, "my timezone is Europe/Berlin", 1)
    again = say(store, "My timezone is Europe/Lisbon again", 2, name="beta")
    assert memory_of(store, between).superseded_by == again


#: Statements of one past: amended, amended again, repeated, added to, by who may and by who may not.
PAST = [
    (NPM, 1, "user"),
    (PNPM, 2, "user"),
    (NPM, 4, "user"),
    ("Releases are cut on Fridays.", 1, "assistant"),
    ("Releases are cut on Tuesdays.", 3, "user"),
    ("Releases are cut on Mondays.", 5, "assistant"),
    ("The config file is called `app.toml`.", 1, "user"),
    ("`app.toml` was renamed to `settings.toml`.", 6, "user"),
    ("A release needs the changelog and a signed tag.", 6, "user"),
]


@pytest.mark.invariant(
    "What supersedes what does not depend on the order in which a past is heard; less authority overturns nothing"
)
@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(len(PAST))))
def test_supersessions_do_not_depend_on_the_order_in_which_statements_are_read(
    tmp_path_factory: pytest.TempPathFactory, order: list[int]
) -> None:
    def heard(indices: list[int]) -> list[tuple[object, ...]]:
        store = Store(tmp_path_factory.mktemp("past") / "csmd.db", now=NOW)
        for index in indices:
            text, day, authority = PAST[index]
            say(store, text, day, authority=authority)
        found = store.read(lambda rows: memories.list_memories(rows, projects=None))
        edges = sorted(edge for one in found for edge in links(store, one.id))
        queue = sorted(waiting(store))
        store.close()
        return [
            *sorted((one.text.strip("."), one.confidence, one.hot_until, one.warm_until, by_text(found, one)) for one in found),
            len(edges), len(queue),
        ]  # fmt: skip

    in_time = tmp_path_factory.getbasetemp() / "in-time"
    if not in_time.exists():
        in_time.write_text(repr(heard(list(range(len(PAST))))))
    assert repr(heard(order)) == in_time.read_text()


def by_text(found: list[Memory], memory: Memory) -> str:
    return next((one.text for one in found if one.id == memory.superseded_by), "")


@pytest.mark.invariant(
    "What supersedes what does not depend on the order in which a past is heard; less authority overturns nothing"
)
def test_a_statement_of_less_authority_supersedes_nothing_and_is_queued_for_review(store: Store) -> None:
    old = say(store, NPM, 1)
    new = say(store, PNPM, 2, authority="assistant")
    assert memory_of(store, old).superseded_by == ""
    assert waiting(store) == [(old, new)]


def test_a_users_statement_supersedes_an_assistants(store: Store) -> None:
    old = say(store, "The deadlock is caused by the connection pool.", 1, authority="assistant")
    new = say(store, "The deadlock is not caused by the connection pool.", 2)
    assert memory_of(store, old).superseded_by == new


def test_external_text_supersedes_nothing(store: Store) -> None:
    old = say(store, NPM, 1)
    assert say(store, PNPM, 2, authority="external") == ""
    assert (memory_of(store, old).superseded_by, waiting(store)) == ("", [])


def test_a_pinned_memory_is_not_lowered_but_queued_for_review(store: Store) -> None:
    old, new = say(store, NPM, 1, pinned=True), say(store, PNPM, 2)
    assert (memory_of(store, old).superseded_by, memory_of(store, old).confidence) == ("", pytest.approx(0.85))
    assert waiting(store) == [(old, new)]


def test_a_statement_of_one_project_supersedes_none_of_another(store: Store) -> None:
    old = say(store, NPM, 1, name="alpha")
    say(store, PNPM, 2, name="beta")
    assert memory_of(store, old).superseded_by == ""


@pytest.mark.invariant("A wrong supersession that a person undoes is given back exactly and not made again")
def test_an_undone_supersession_restores_the_memory_and_is_not_repeated(store: Store) -> None:
    old = say(store, NPM, 1)
    before = memory_of(store, old)
    new = say(store, PNPM, 2)
    assert replace(undo(store, old), version=before.version) == before
    assert links(store, old) == []
    say(store, "Use pnpm in the web client, not npm!", 3)  # confirms the new one, and all is looked at again
    assert memory_of(store, new).confidence > 0.85
    assert memory_of(store, old).superseded_by == ""
    with pytest.raises(BadInput):
        undo(store, old)


def test_a_confirmation_made_in_between_survives_the_undo_of_a_supersession(store: Store) -> None:
    old, _ = say(store, NPM, 1), say(store, PNPM, 5)
    say(store, "use npm in the web client", 2)
    assert memory_of(store, old).superseded_by
    assert undo(store, old).confidence == pytest.approx(0.90)


def test_a_supersession_made_by_a_person_is_not_reverted_by_rules(store: Store) -> None:
    old, new = say(store, "Ask before deleting files", 1), say(store, "Delete without asking in CI", 2)

    def supersede(rows: Rows) -> Memory:
        one, other = (memories.by_id(rows, ident) for ident in (old, new))
        return supersession.supersede(rows, one, other, by=supersession.PERSON, now=NOW)  # type: ignore[arg-type]

    assert store.write(supersede).superseded_by == new
    say(store, "ask before deleting files", 3)
    assert memory_of(store, old).superseded_by == new
    assert undo(store, old).superseded_by == ""


def test_deleting_a_memory_reactivates_what_it_superseded(store: Store) -> None:
    old = say(store, NPM, 1)
    before = memory_of(store, old)
    new = say(store, PNPM, 2)
    store.write(lambda rows: memory_deletion.delete_memory(rows, memories.by_id(rows, new)))  # type: ignore[arg-type]
    assert replace(memory_of(store, old), version=before.version) == before


def test_a_statement_under_an_old_name_is_superseded_by_one_under_the_new_name(store: Store) -> None:
    for order in itertools.permutations(range(3)):
        said = [
            ("`app.toml` listens on port 80", 1), ("`app.toml` was renamed to `settings.toml`", 2),
            ("`settings.toml` listens on port 90", 3),
        ]  # fmt: skip
        name = "".join(map(str, order))
        ids = {index: say(store, *said[index], name=name) for index in order}
        assert memory_of(store, ids[0]).superseded_by == ids[2]


# --- what says several things

BOTH, BUN = "We use pnpm. Tests run with vitest.", "we use bun, pnpm is gone"


def rest(store: Store, ident: str) -> Memory | None:
    return store.read(lambda rows: supersession.find_rest(rows, ident))


def holding(store: Store) -> set[str]:
    found = store.read(lambda rows: memories.list_memories(rows, projects=None))
    return {one.text for one in found if not one.superseded_by}


@pytest.mark.invariant(
    "Only what certainly is the same subject is replaced unasked; of a memory that says several things only the part ends, and what is left is taken back with it"
)
def test_superseding_one_part_keeps_the_rest_in_its_own_words_with_the_same_sources(store: Store) -> None:
    old, new = say(store, BOTH, 1), say(store, BUN, 2)
    assert holding(store) == {"Tests run with vitest.", BUN}
    whole, left = memory_of(store, old), rest(store, old)
    assert left is not None and whole.superseded_by == new
    assert (left.provenance, left.created_at, left.authority) == (whole.provenance, whole.created_at, "user")
    assert left.confidence == pytest.approx(0.85)


def test_what_is_left_of_a_choice_and_is_none_does_not_last_as_one(store: Store) -> None:
    old = say(store, "We use pnpm. Tests live beside the code.", 1)
    say(store, BUN, 2)
    left = rest(store, old)
    assert left is not None and (memory_of(store, old).tier, left.text, left.tier) == (
        "durable", "Tests live beside the code.", "daily",
    )  # fmt: skip


@pytest.mark.invariant(
    "Only what certainly is the same subject is replaced unasked; of a memory that says several things only the part ends, and what is left is taken back with it"
)
@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_superseding_one_part_does_not_depend_on_the_reading_order(store: Store, order: tuple[int, ...]) -> None:
    past = [(BOTH, 1), (BUN, 2), ("Tests run with jest.", 3)]
    for index in order:
        say(store, *past[index])
    assert holding(store) == {BUN, "Tests run with jest."}


@pytest.mark.invariant(
    "Only what certainly is the same subject is replaced unasked; of a memory that says several things only the part ends, and what is left is taken back with it"
)
def test_restoring_a_superseded_part_leaves_no_remainder_memory(store: Store) -> None:
    old = say(store, BOTH, 1)
    before = memory_of(store, old)
    say(store, BUN, 2)
    assert replace(undo(store, old), version=before.version) == before
    assert holding(store) == {BOTH, BUN}
    assert links(store, old) == []


def test_stating_the_whole_again_restores_the_whole_memory(store: Store) -> None:
    old = say(store, BOTH, 1)
    say(store, BUN, 2)
    assert say(store, BOTH, 3) == old
    assert memory_of(store, old).superseded_by == "" and rest(store, old) is None


def test_a_remainder_that_was_also_stated_alone_stays_a_memory(store: Store) -> None:
    old = say(store, BOTH, 1)
    say(store, BUN, 2)
    own = say(store, "tests run with vitest", 3)
    undo(store, old)
    assert memory_of(store, own).text == "Tests run with vitest." and rest(store, old) is None


def test_a_forgotten_remainder_is_not_stored_again(store: Store) -> None:
    old = say(store, BOTH, 1)
    say(store, BUN, 2)
    left = rest(store, old)
    assert left is not None
    store.write(lambda rows: remember.forget(rows, left, key=store.hash_key, now=NOW, by_person=True))
    say(store, "we use bun, pnpm is gone!", 4)
    assert holding(store) == {BUN}


def test_deleting_the_memory_that_superseded_a_part_restores_the_whole(store: Store) -> None:
    old, new = say(store, BOTH, 1), say(store, BUN, 2)
    store.write(lambda rows: memory_deletion.delete_memory(rows, memories.by_id(rows, new)))  # type: ignore[arg-type]
    assert holding(store) == {BOTH} and rest(store, old) is None


def test_a_replacement_by_a_person_ends_only_the_parts_that_the_newer_mentions(store: Store) -> None:
    old, new = say(store, BOTH, 1), say(store, "pnpm stays for the docs only", 2)

    def supersede(rows: Rows) -> Memory:
        one, other = (memories.by_id(rows, ident) for ident in (old, new))
        return supersession.supersede(rows, one, other, by="person", now=NOW, key=store.hash_key)  # type: ignore[arg-type]

    assert store.write(supersede).superseded_by == new
    assert "Tests run with vitest." in holding(store)


# --- doubt


NARROW = ("The cache listens on port 6379", "The cache listens on port 6380 in production")


@pytest.mark.invariant(
    "What may be replaced is asked of a person once; an assistant's word ends nothing that the user said"
)
def test_a_possible_replacement_ends_nothing_and_is_queued_for_review(store: Store) -> None:
    old, new = (say(store, text, day) for day, text in enumerate(NARROW, 1))
    assert memory_of(store, old).superseded_by == ""
    assert waiting(store) == [(old, new)]


@pytest.mark.invariant(
    "What may be replaced is asked of a person once; an assistant's word ends nothing that the user said"
)
@pytest.mark.parametrize("origin", ["stated", "model_saved"])
def test_an_assistants_statement_ends_no_part_of_a_users(store: Store, origin: str) -> None:
    old = say(store, NPM, 1)

    by_assistant: dict[str, Any] = {"authority": "assistant", "origin": origin, "reasons": ("remember",)}
    new = say(store, PNPM, 9, **by_assistant)
    assert memory_of(store, old).superseded_by == ""
    assert waiting(store) == [(old, new)]


def test_of_an_assistants_statements_a_sentence_each_is_asked_about_and_none_that_says_more(store: Store) -> None:
    old = say(store, "The ledger lives in Riga.", 1, authority="assistant")
    say(store, "The ledger lives in Turku, probably. The till was moved to the cellar.", 2, authority="assistant")
    assert waiting(store) == []
    new = say(store, "The ledger lives in Vaasa, probably.", 3, authority="assistant")
    assert waiting(store) == [(old, new)]


def test_what_is_given_up_without_a_word_of_its_matter_is_asked_about_and_known_until_somebody_answers(
    store: Store,
) -> None:
    old, new = say(store, "We manage fonts with fontconfig.", 1), say(store, "drop fontconfig, use swash", 2)
    assert memory_of(store, old).superseded_by == "" and waiting(store) == [(old, new)]
    project = memory_of(store, old).project_seq

    def given_up() -> dict[str, str]:
        found = store.read(lambda rows: supersession.read_given_up(rows, [project]))
        return {ident: memory.id for ident, memory in found.items()}

    assert given_up() == {old: new}
    (asked,) = store.read(lambda rows: candidates.waiting(rows, projects=None))
    store.write(lambda rows: candidates.set_status(rows, asked, "dropped", now=NOW))
    assert given_up() == {}


def test_what_is_given_up_for_a_matter_that_both_name_is_replaced(store: Store) -> None:
    old, new = (
        say(store, "Fonts are managed with fontconfig.", 1),
        say(store, "fontconfig is out, swash loads fonts", 2),
    )
    assert memory_of(store, old).superseded_by == new
