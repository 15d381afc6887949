"""Upkeep over a real store: what it finds waits in the queue, mending is told and can be taken back, ages begin anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from memory_factory import NOW, memory_in, memory_of, project_in, state

from csmd.briefs import BriefItem
from csmd.errors import BadInput, CsmdError
from csmd.knowledge import Candidate
from csmd.memory import confidence, merging, remember, upkeep
from csmd.memory.duplicates import Finding
from csmd.store import (
    belief_changes,
    candidates,
    memories,
    memory_deletion,
    memory_invariants,
    memory_links,
    projects,
    receipts,
    tombstones,
    vectors,
)
from csmd.store import belief_changes as stored
from csmd.store.core import Store
from csmd.store.sqlite import Rows

LATER = "2026-03-09T10:00:00.000Z"
CACHE = "The order cache keeps its entries for the checkout page in Redis, keyed by cart"
CACHED = "Redis holds the order cache of the checkout page, with entries keyed by cart and currency"


def say(store: Store, text: str, uuid: str, *, at: str = NOW, **changes: Any) -> str:
    def write(rows: Rows) -> str:
        projects.record_active_day(rows, project_in(rows), at)
        return state(rows, text, f"cli:{uuid}", at=at, **changes)

    return store.write(write)


def run_upkeep(store: Store, *, now: str = NOW) -> int:
    """Lets upkeep go on until nothing is left; how often it had something."""
    for number in range(50):
        if not upkeep.step(store, now=now):
            return number
    raise AssertionError("it never ends")


def queue(store: Store) -> list[Candidate]:
    return store.read(lambda rows: candidates.waiting(rows, projects=None))


def merge(store: Store, ident: str, into: str, *, by_person: bool = True) -> tuple[list[Finding], list[Finding]]:
    plan = [merging.plan_merge(memory_of(store, ident), memory_of(store, into), everywhere={}, by_person=by_person)]
    return store.write(
        lambda rows: upkeep.apply(rows, plan, by="user", now=LATER, key=store.hash_key, by_person=by_person)
    )


def test_a_new_memory_that_nearly_says_what_another_one_says_waits_for_a_person(store: Store) -> None:
    first, other = say(store, CACHE, "u1"), say(store, CACHED, "u2", confidence=0.75)
    say(store, "Reviews go to Sarah before they go to the release branch", "u3")
    assert run_upkeep(store) > 0
    (waiting,) = queue(store)
    assert (waiting.kind, waiting.status, waiting.memory_ids) == ("near_duplicate", "needs_review", (first, other))
    assert {source.uuid for source in waiting.evidence} == {"cli:u1", "cli:u2"}
    commits = store.commits
    assert upkeep.step(store, now=NOW) == 0 and store.commits == commits, "where nothing is to do, nothing is written"


def test_looking_at_everything_finds_what_the_background_found_and_puts_nothing_twice(store: Store) -> None:
    say(store, CACHE, "u1"), say(store, CACHED, "u2")
    plan = store.write(lambda rows: generate(rows))
    assert len(plan.put) == 1
    run_upkeep(store)
    assert len(queue(store)) == 1
    assert store.write(lambda rows: generate(rows)) == upkeep.Queueing()


def generate(rows: Rows) -> upkeep.Queueing:
    plan = upkeep.plan_all(rows, None, now=NOW)
    upkeep.enqueue(rows, plan, now=NOW)
    return plan


@pytest.mark.invariant("A plan of what a plan has left is empty; a merge is taken back to the letter")
def test_a_merge_is_written_down_settles_its_candidate_and_can_be_taken_back_to_the_letter(store: Store) -> None:
    first, other = say(store, CACHE, "u1"), say(store, CACHED, "u2", confidence=0.75, session="s2")
    run_upkeep(store)
    before = [replace(memory_of(store, ident), version=0) for ident in (first, other)]
    assert len(merge(store, other, first)[0]) == 1
    stays, gone = memory_of(store, first), memory_of(store, other)
    assert (gone.tier, gone.superseded_by) == ("archive", first)
    assert [(source.uuid, source.role) for source in stays.provenance] == [("cli:u1", "states"), ("cli:u2", "confirms")]
    assert stays.confidence == pytest.approx(0.85)
    assert queue(store) == []
    (change,) = store.read(lambda rows: belief_changes.list_changes(rows, other))
    assert (change.change, change.after, change.by, change.at) == ("merge", first, "user", LATER)
    assert "words" in change.reason
    assert store.read(lambda rows: memory_invariants.find_violations(rows, store.hash_key)) == {}
    assert store.read(lambda rows: upkeep.find_findings(rows, None)) == []

    store.write(lambda rows: merging.undo(rows, gone, now=LATER, by_person=True))
    assert [replace(memory_of(store, ident), version=0) for ident in (first, other)] == before
    assert store.read(lambda rows: memory_links.list_links(rows, first)) == []
    assert all(row.undone_at for row in store.read(lambda rows: belief_changes.list_changes(rows, other)))
    with pytest.raises(BadInput, match="neither merged nor archived"):
        store.write(lambda rows: merging.undo(rows, gone, now=LATER, by_person=True))


def test_a_merge_that_is_taken_back_leaves_neither_the_use_nor_the_tier_that_it_brought(store: Store) -> None:
    first, other = say(store, CACHE, "u1", confidence=0.9), say(store, CACHED, "u2", confidence=0.9, session="s2")
    store.write(lambda rows: memories.update_belief(rows, replace(memory_in(rows, other), used_at=LATER)))
    before = replace(memory_of(store, first), version=0)
    merge(store, other, first)
    assert (memory_of(store, first).used_at, memory_of(store, first).tier) != (before.used_at, before.tier)
    store.write(lambda rows: merging.undo(rows, memory_in(rows, other), now=LATER, by_person=True))
    assert replace(memory_of(store, first), version=0) == before


@pytest.mark.invariant("Only a person takes back what a person merged or archived")
def test_what_a_person_merged_or_archived_only_a_person_takes_back(store: Store) -> None:
    first, other = say(store, CACHE, "u1"), say(store, CACHED, "u2", session="s2")
    merge(store, other, first)
    with pytest.raises(CsmdError, match="a person merged or archived"):
        store.write(lambda rows: merging.undo(rows, memory_in(rows, other), now=LATER, by_person=False))
    assert memory_of(store, other).superseded_by == first


def test_what_was_purged_since_it_was_looked_at_is_quoted_nowhere(store: Store) -> None:
    first = say(store, CACHE, "u1")
    say(store, CACHED, "u2", session="s2")
    plan = store.read(lambda rows: upkeep.plan_all(rows, None, now=NOW))
    assert plan.put

    def purged(rows: Rows) -> None:
        memory_deletion.delete_memory(rows, memory_in(rows, first))
        upkeep.enqueue(rows, plan, now=NOW)

    store.write(purged)
    assert queue(store) == []


def test_what_confirmed_it_meanwhile_stays_when_a_merge_is_taken_back(store: Store) -> None:
    first, other = say(store, CACHE, "u1"), say(store, CACHED, "u2", session="s2")
    merge(store, other, first)
    say(store, CACHE, "u3", session="s3", at=LATER)
    store.write(lambda rows: merging.undo(rows, memory_of(store, other), now=LATER, by_person=True))
    stays = memory_of(store, first)
    assert [source.uuid for source in stays.provenance] == ["cli:u1", "cli:u3"]
    assert (stays.confidence, stays.confirmed_at) == (pytest.approx(0.85), LATER)


def test_what_was_merged_and_is_said_again_confirms_the_one_that_stays(store: Store) -> None:
    first, other = say(store, CACHE, "u1"), say(store, CACHED, "u2")
    merge(store, other, first)
    assert say(store, CACHED, "u3", session="s3") == first
    assert "cli:u3" in {source.uuid for source in memory_of(store, first).provenance}
    assert memory_of(store, other).tier == "archive"


def test_who_forgets_a_memory_forgets_what_was_merged_into_it_and_what_quotes_it(store: Store) -> None:
    first, other = say(store, CACHE, "u1"), say(store, CACHED, "u2")
    run_upkeep(store)
    merge(store, other, first)
    store.write(
        lambda rows: remember.forget(rows, memory_of(store, first), key=store.hash_key, now=LATER, by_person=True)
    )
    for table in ("memories", "candidates", "belief_changes", "links"):
        assert store.read(lambda rows, table=table: rows.value(f"select count(*) from {table}")) == 0, table


def test_what_has_moved_since_the_plan_is_looked_at_again(store: Store) -> None:
    first, other, third = say(store, CACHE, "u1"), say(store, CACHED, "u2"), say(store, "Reviews go to Sarah", "u3")
    plan = store.read(lambda rows: upkeep.find_findings(rows, None, kinds=["near_duplicate"]))
    say(store, CACHE, "u4", session="s4")  # a confirmation: its version moved, it says the same

    def apply(rows: Rows) -> tuple[list[Finding], list[Finding]]:
        return upkeep.apply(rows, plan, by="user", now=LATER, key=store.hash_key)

    assert len(store.write(apply)[0]) == 1
    assert memory_of(store, first).confidence == pytest.approx(0.9), (
        "what it was when it was mended counts, not what was planned"
    )
    again = store.write(apply)
    assert (again[0], len(again[1])) == ([], 1), "replay changes nothing"
    store.write(lambda rows: merging.undo(rows, memory_of(store, other), now=LATER, by_person=True))
    store.write(
        lambda rows: rows.run("update memories set text = 'Something else', version = 9 where id = :id", id=first)
    )
    assert store.write(apply)[0] == []
    store.write(
        lambda rows: rows.run("update memories set text = :said, version = 10 where id = :id", id=first, said=CACHE)
    )
    store.write(
        lambda rows: tombstones.forget(rows, CACHED, correction=False, by="user", key=store.hash_key, now=LATER)
    )
    assert store.write(apply)[0] == [], "what the user made csmd forget is not taken in"
    assert memory_of(store, third).tier == "daily"


@pytest.mark.parametrize(
    ("text", "changes", "by_person", "why"),
    [
        ("Reviews go to Sarah", {}, False, "do not say the same"),
        (CACHED, {"gate": "correction"}, True, "corrections only"),
        (CACHED, {"authority": "assistant"}, True, "stated by the user"),
    ],
)
def test_a_merge_that_would_lose_something_is_refused(
    store: Store, text: str, changes: dict[str, object], by_person: bool, why: str
) -> None:
    first, other = say(store, CACHE, "u1"), say(store, text, "u2", **changes)
    with pytest.raises(BadInput, match=why):
        merge(store, first, other, by_person=by_person)


def test_what_the_user_has_said_meanwhile_does_not_go_behind_an_assistants_words(store: Store) -> None:
    first, other = (
        say(store, text, f"u{number}", authority="assistant") for number, text in enumerate((CACHE, CACHED))
    )
    plan = store.read(lambda rows: upkeep.find_findings(rows, None, kinds=["near_duplicate"]))
    goes = plan[0].memory.id
    say(store, memory_of(store, goes).text, "u9", session="s9")
    done = store.write(lambda rows: upkeep.apply(rows, plan, by="user", now=LATER, key=store.hash_key))
    assert done[0] == [] and {first, other} == {plan[0].memory.id, plan[0].into.id if plan[0].into else ""}


def test_a_person_may_say_that_two_memories_are_one(store: Store) -> None:
    first, other = (
        say(store, "We ship on Fridays", "u1"),
        say(store, "Releases leave the house at the end of the week", "u2"),
    )
    assert len(merge(store, other, first)[0]) == 1
    assert memory_of(store, other).superseded_by == first


def test_an_assistant_that_repeats_what_it_was_told_makes_nothing_surer_by_a_merge(store: Store) -> None:
    ident = say(store, CACHE, "u1")
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id="r1", session_id="s2", event="session_start", project=1, at=NOW, tokens=9, text_hash="",
            items=[BriefItem(id=ident, score=1.0, reason="")],
        )
    )  # fmt: skip
    other = say(store, CACHED, "u2", session="s2", authority="assistant")
    merge(store, other, ident)
    assert memory_of(store, ident).confidence == pytest.approx(0.8)


def days(store: Store, number: int, *, first: int = 1) -> None:
    """Lets the project be active on so many more days."""
    for day in range(first, first + number):
        at = f"2027-{day // 28 + 1:02}-{day % 28 + 1:02}"
        store.write(lambda rows, at=at: projects.record_active_day(rows, project_in(rows), at))


def test_what_has_faded_waits_to_be_archived_once_a_day_and_comes_back_when_it_is_said_again(store: Store) -> None:
    plan = say(store, "We will move the queue to Postgres next sprint", "u1", gate="promissory", category="plan")
    lasting = say(store, "I prefer tabs here", "u2", gate="behavioral", category="preference")
    assert run_upkeep(store) > 0 and queue(store) == []
    days(store, 20)
    run_upkeep(store, now=LATER)
    (waiting,) = queue(store)
    assert (waiting.kind, waiting.memory_ids, waiting.status) == ("stale", (plan,), "open")
    findings = store.read(lambda rows: upkeep.find_findings(rows, None))
    actions = [finding for finding in findings if finding.kind == "stale"]
    store.write(lambda rows: upkeep.apply(rows, actions, by="csmd", now=LATER, key=store.hash_key))
    assert (memory_of(store, plan).tier, memory_of(store, lasting).tier) == ("archive", "durable")
    assert queue(store) == [] and store.read(lambda rows: upkeep.find_findings(rows, None)) == []
    say(store, "We will move the queue to Postgres next sprint", "u3", session="s3", at="2027-03-01T10:00:00.000Z")
    assert memory_of(store, plan).tier == "daily"


def test_what_was_archived_can_be_taken_back(store: Store) -> None:
    ident = say(store, CACHE, "u1")
    store.write(lambda rows: stored.archive_memory(rows, memory_of(store, ident), reason="old", by="user", now=LATER))
    store.write(lambda rows: merging.undo(rows, memory_of(store, ident), now=LATER, by_person=True))
    assert memory_of(store, ident).tier == "daily"


def test_a_use_begins_the_age_anew_and_makes_nothing_surer(store: Store) -> None:
    ident = say(store, CACHE, "u1")
    days(store, 100)
    old = memory_of(store, ident)
    store.write(lambda rows: remember.use(rows, old, at="2027-06-01T10:00:00.000Z"))
    used = memory_of(store, ident)
    assert (used.confidence, used.confirmed_at, used.used_at[:10]) == (0.8, NOW, "2027-06-01")
    assert used.hot_until - old.hot_until == used.archive_at - old.archive_at == 100
    store.write(lambda rows: remember.use(rows, used, at=NOW))
    assert memory_of(store, ident) == used, "an earlier use changes nothing"
    # A day that comes to light before the use moves what counts from it, and nothing else.
    store.write(lambda rows: projects.record_active_day(rows, project_in(rows), "2027-05-30"))
    assert memory_of(store, ident).hot_until == used.hot_until + 1


def test_an_assistant_that_repeats_what_it_was_told_uses_it(store: Store) -> None:
    ident = say(store, CACHE, "u1")
    store.write(
        lambda rows: receipts.add_receipt(
            rows, receipt_id="r1", session_id="s2", event="session_start", project=1, at=NOW, tokens=9, text_hash="",
            items=[BriefItem(id=ident, score=1.0, reason="")],
        )
    )  # fmt: skip
    say(store, CACHE, "u2", session="s2", at=LATER, authority="assistant")
    memory = memory_of(store, ident)
    assert (memory.confidence, memory.used_at, len(memory.provenance)) == (0.8, LATER, 1)


def test_only_what_is_sure_and_was_said_in_two_sessions_becomes_durable(store: Store) -> None:
    text = "We will move the queue to Postgres next sprint"
    ident = say(store, text, "u0", gate="promissory", category="plan", confidence=0.9)
    for number in range(1, 4):
        say(store, text, f"u{number}", gate="promissory", category="plan")
    assert (memory_of(store, ident).tier, memory_of(store, ident).confidence) == ("daily", 1.0)
    say(store, text, "u9", session="s2", gate="promissory", category="plan")
    assert memory_of(store, ident).tier == "durable"


def test_a_memory_that_embedding_passed_by_waits_for_its_vector(store: Store) -> None:
    ident = say(store, CACHE, "u1")

    def embedded(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now=NOW)
        vectors.add_vectors(rows, "memory", model, [], reached=1)

    store.write(embedded)
    run_upkeep(store)
    (waiting,) = queue(store)
    assert (waiting.kind, waiting.memory_ids) == ("missing_embedding", (ident,))
    findings = store.read(lambda rows: upkeep.find_findings(rows, None))
    plan = [finding for finding in findings if finding.kind == "missing_embedding"]
    store.write(lambda rows: upkeep.apply(rows, plan, by="csmd", now=LATER, key=store.hash_key))
    assert store.read(lambda rows: vectors.count_waiting(rows, 1)) == 1
    assert queue(store) == [] and store.read(lambda rows: upkeep.find_findings(rows, None)) == []


def test_a_memory_of_whose_sources_nothing_is_left_waits_for_a_person(store: Store) -> None:
    ident = say(store, CACHE, "u1")
    store.write(lambda rows: rows.run("update provenance set uuid = 'gone'"))
    run_upkeep(store)
    (waiting,) = queue(store)
    assert (waiting.kind, waiting.status, waiting.memory_ids) == ("orphan", "needs_review", (ident,))


def test_a_persons_no_is_final(store: Store) -> None:
    say(store, CACHE, "u1"), say(store, CACHED, "u2")
    run_upkeep(store)
    (waiting,) = queue(store)
    assert store.write(lambda rows: candidates.set_status(rows, waiting, "dropped", now=LATER))
    assert store.write(lambda rows: generate(rows)) == upkeep.Queueing()
    days(store, 1)
    run_upkeep(store, now=LATER)
    assert queue(store) == []


def test_the_factors_of_a_confidence_add_up(store: Store) -> None:
    ident = say(store, CACHE, "u1")
    say(store, CACHE, "u2", session="s2")
    memory = memory_of(store, ident)
    effects = {factor.name: factor for factor in confidence.explain_confidence(memory, today=91, confirmed_on=1)}
    assert list(effects) == ["base", "confirmations", "decay"]
    stored_part = effects["base"].effect + effects["confirmations"].effect
    assert stored_part == pytest.approx(memory.confidence)
    assert stored_part + effects["decay"].effect == pytest.approx(confidence.fade(memory, days=90))


@pytest.mark.invariant(
    "No step of a dream, its preview or its undo is long; its own writes wake the stages once, and no client keeps an awaited one from going on"
)
def test_what_waits_is_asked_about_some_at_a_time_and_none_is_left_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "RECHECK_BATCH", 2)
    plans = [
        say(store, f"We will move the {what} to Postgres next sprint", f"u{number}", gate="promissory", category="plan")
        for number, what in enumerate(("queue", "ledger", "session store", "archive", "search index"))
    ]
    days(store, 20)
    run_upkeep(store, now=LATER)
    assert sorted(candidate.memory_ids for candidate in queue(store)) == sorted((ident,) for ident in plans)
    store.write(
        lambda rows: [
            memories.update_belief(rows, replace(memory_of(store, ident), pinned=True)) for ident in plans[1:]
        ]
    )
    days(store, 1, first=21)
    checked = [upkeep.step(store, now=LATER) for _ in range(6)]
    assert checked == [5, 2, 2, 1, 1, 0], "a sweep, what waits two at a time, the day's end"
    assert [candidate.memory_ids for candidate in queue(store)] == [(plans[0],)]
