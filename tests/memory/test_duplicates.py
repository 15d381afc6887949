"""Which memories say the same, which of them stays, and that a plan leaves nothing to be found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_factory import NOW, memory

from csmd.knowledge import Memory
from csmd.memory import merging, upkeep
from csmd.memory.duplicates import Finding, compare, find_duplicates, iter_pairs


def likeness_of(first: str, second: str, **changes: object) -> str:
    left, right = memory("m1", first), memory("m2", second, **changes)
    likeness = compare(left, right)
    return "" if likeness is None else "same" if likeness.exact else "near"


@pytest.mark.parametrize(
    ("first", "second", "likeness"),
    [
        ("Use Postgres for the job queue", "use postgres for the job queue!", "same"),
        ("Use Postgres 16 for the job queue of the shop", "Use Postgres 16 for the job queue", "same"),
        (
            "Wrapper scripts set `LOCAL_DEV` from `.env` only if the environment lacks it, following dotenv convention",
            "Changed wrapper scripts: set `LOCAL_DEV` from `.env` only if the environment lacks it (dotenv)",
            "near",
        ),
        ("Indent with two spaces", "Indent with four spaces", ""),
        ("Deploy the shop to staging on Mondays", "Deploy the shop to production on Mondays", ""),
        ("Keep backups of the orders database for 30 days", "Keep backups of the orders database for 90 days", ""),
        ("Run the linter before the tests of the shop", "Run the linter after the tests of the shop", ""),
        ("Commit the generated client files", "Do not commit the generated client files", ""),
        ("The cart service owns prices", "Reviews go to Sarah", ""),
    ],
)
def test_what_says_the_same_and_what_amends(first: str, second: str, likeness: str) -> None:
    assert likeness_of(first, second) == likeness_of(second, first) == likeness


def test_a_correction_says_the_same_as_corrections_only() -> None:
    text = "The key is database_url"
    assert likeness_of(text, text) == "same"
    assert likeness_of(text, text, gate="correction") == ""


def duplicates(*memories: Memory, everywhere: dict[int, int] | None = None) -> list[tuple[str, str, str]]:
    findings = find_duplicates(memories, everywhere=everywhere or {})
    return [(finding.kind, *(member.id for member in finding.memories)) for finding in findings]


SAID = "Use Postgres for the job queue of the shop"


def test_the_stronger_one_stays() -> None:
    weak = memory("m1", SAID, confidence=0.75)
    for strong in (
        memory("m2", SAID, pinned=True, confidence=0.6),
        memory("m2", SAID, confidence=0.8),
        memory("m2", SAID, confidence=0.75, created_at="2026-02-01T00:00:00.000Z"),
    ):
        assert duplicates(weak, strong) == [("duplicate", "m2", "m1")]
    by_user = memory("m2", SAID, confidence=0.6)
    assert duplicates(replace(weak, authority="assistant"), by_user) == [("duplicate", "m2", "m1")]


@pytest.mark.parametrize(
    "other",
    [
        {"tier": "archive"},
        {"superseded_by": "m9"},
        {"project_seq": 2},
        {"pinned": True},
        {"gate": "correction"},
    ],
)
def test_what_may_not_be_merged_is_not_found(other: dict[str, object]) -> None:
    assert duplicates(memory("m1", SAID, pinned=True), memory("m2", SAID, **other)) == []


def test_what_holds_everywhere_stays_and_the_projects_own_goes() -> None:
    own, everybodys = memory("m1", SAID, confidence=0.9), memory("m2", SAID, project_seq=0, confidence=0.7)
    assert duplicates(own, everybodys) == [("duplicate", "m2", "m1")]
    walled = {1: 7}  # project 1 stands behind the wall of workspace 7: what holds outside is not seen from there
    assert duplicates(own, everybodys, everywhere=walled) == []
    # The user's own words do not vanish behind an assistant's.
    assert duplicates(own, replace(everybodys, authority="assistant")) == []


def test_of_three_none_takes_in_another_that_goes() -> None:
    three = [memory(f"m{number}", SAID, confidence=0.9 - number / 100) for number in range(3)]
    assert sorted(duplicates(*three)) == [("duplicate", "m0", "m1"), ("duplicate", "m0", "m2")]


WORDS = ["cache", "orders", "redis", "ttl", "minutes", "5", "9", "not", "before", "release", "notes", "tag"]


@st.composite
def stores(draw: st.DrawFn) -> list[Memory]:
    texts = draw(st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), max_size=12))
    return [
        memory(
            f"m{number}", text, confidence=draw(st.sampled_from((0.7, 0.8, 0.9))),
            project_seq=draw(st.sampled_from((0, 1, 1, 2))), pinned=draw(st.booleans()) and draw(st.booleans()),
            authority=draw(st.sampled_from(("user", "assistant"))), gate=draw(st.sampled_from(("epistemic", "correction"))),
        )
        for number, text in enumerate(texts)
    ]  # fmt: skip


@given(memories=stores())
def test_no_pair_is_missed_by_comparing_rare_words_only(memories: list[Memory]) -> None:
    pairs = {(first, second) for batch in iter_pairs(memories, everywhere={}) for first, second, _ in batch}
    every = {
        (a, b)
        for b in range(len(memories))
        for a in range(b)
        if (
            memories[a].project_seq == memories[b].project_seq
            or 0 in (memories[a].project_seq, memories[b].project_seq)
        )
        and compare(memories[a], memories[b]) is not None
    }
    assert pairs == every


def carry_out(memories: list[Memory], plan: list[Finding]) -> list[Memory]:
    """The memories after a plan: as `upkeep.apply` leaves them."""
    now = {each.id: each for each in memories}
    for action in plan:
        assert action.into is not None and now[action.into.id].tier != "archive", (
            "it takes in another after it has gone"
        )
        stays = merging.absorb(now[action.into.id], action.memory, confirmations=1)
        now[action.into.id] = replace(stays, provenance=(*stays.provenance, *action.memory.provenance))
        now[action.memory.id] = replace(action.memory, tier="archive", superseded_by=action.into.id)
    return list(now.values())


@pytest.mark.invariant("A plan of what a plan has left is empty; a merge is taken back to the letter")
@given(memories=stores())
def test_a_plan_of_what_a_plan_has_left_is_empty(memories: list[Memory]) -> None:
    after = carry_out(memories, find_duplicates(memories, everywhere={}))
    assert find_duplicates(after, everywhere={}) == []


def test_what_goes_takes_in_nothing_after_that() -> None:
    first = memory("m1", "alpha beta gamma delta epsilon", confidence=0.9)
    second = memory("m2", "alpha beta gamma delta epsilon zeta eta", confidence=0.85)
    third = memory("m3", "gamma delta epsilon zeta eta theta iota kappa", confidence=0.75)
    assert duplicates(second, third) == [("near_duplicate", "m2", "m3")]
    assert duplicates(first, second, third) == [("near_duplicate", "m1", "m2")]


@given(memories=stores())
def test_what_waits_in_the_queue_is_not_put_there_again_and_what_is_mended_leaves(memories: list[Memory]) -> None:
    findings = find_duplicates(memories, everywhere={})
    first = upkeep.plan_queue(findings, [], dropped=(), now=NOW)
    assert upkeep.plan_queue(findings, first.put, dropped=(), now=NOW) == upkeep.Queueing()
    assert set(upkeep.plan_queue([], first.put, dropped=(), now=NOW).settle) == set(first.put)
    dropped = {upkeep.key_of(candidate) for candidate in first.put}
    assert not dropped & {finding.key for finding in find_duplicates(memories, everywhere={}, dropped=dropped)}


def test_a_candidate_quotes_what_it_is_about_and_names_its_sources() -> None:
    (finding,) = find_duplicates([memory("m1", SAID), memory("m2", SAID, confidence=0.7)], everywhere={})
    candidate = upkeep.to_candidate(finding, now=NOW)
    assert (candidate.kind, candidate.status, candidate.memory_ids, candidate.fingerprint) == (
        "duplicate",
        "open",
        ("m1", "m2"),
        "m1 m2",
    )
    assert SAID in candidate.text and candidate.reason == "m2 says the same as m1"
    assert [source.uuid for source in candidate.evidence] == ["u-m1", "u-m2"]
