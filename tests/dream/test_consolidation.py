"""What a dream plans: nothing is left to do after it, nothing that a person holds on to goes, and no order matters."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from dream_fixtures import DAYS, FACTS, SAID, at, plan, snapshots
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_factory import memory

from csmd.dream import consolidation
from csmd.dream.actions import Action, Snapshot
from csmd.knowledge import Memory, Provenance
from csmd.text import similarity
from csmd.vocabulary import AUTHORITY_RANK, NEVER

CACHE, AGAIN, LONGER = SAID[0], SAID[1], SAID[4]


def seen(*found: Memory, days: tuple[str, ...] = DAYS, **changes: object) -> Snapshot:
    empty = Snapshot(project_seq=1, everywhere=0, now="", memories={}, days={1: days, 0: days})
    return replace(empty, memories={one.id: empty.aged(one) for one in found}, **changes)  # type: ignore[arg-type]


def told(ident: str, said: str, *days: int, **changes: object) -> Memory:
    sources = tuple(
        Provenance(uuid=f"{ident}-{day}", session_id=f"s{day}", at=at(day), role="confirms" if place else "states")
        for place, day in enumerate(days)
    )
    return memory(ident, said, provenance=sources, created_at=at(days[0]), confirmed_at=at(days[-1]), **changes)


def done(snapshot: Snapshot) -> list[tuple[str, str, str]]:
    """(kind, memory, other) of each action planned."""
    return [
        (one.kind, one.memory.id if one.memory else "", one.other.id if one.other else "")
        for one in plan(snapshot)[0].actions
    ]


@pytest.mark.invariant("A plan of what a plan has left is empty; nothing pinned goes, no authority rises")
@settings(max_examples=100, deadline=None)
@given(snapshots())
def test_whatever_is_planned_nothing_is_left_to_do_nothing_pinned_goes_and_no_authority_rises(seen_: Snapshot) -> None:
    found, left = plan(seen_)
    assert plan(left)[0].actions == ()
    for action in found.actions:
        assert action.reason and action.evidence
        keeps_what_a_person_holds(seen_, action)
    for ident, one in seen_.memories.items():
        after = left.memories.get(ident)
        if one.pinned:
            assert after is not None and after.is_alive == one.is_alive and after.tier == one.tier
        if after is not None:
            assert after.authority == one.authority and after.text == one.text
            assert {source.uuid for source in one.provenance} <= {source.uuid for source in after.provenance}


def keeps_what_a_person_holds(snapshot: Snapshot, action: Action) -> None:
    one, other = action.memory, action.other
    if action.kind == "merge" and one is not None and other is not None:
        assert AUTHORITY_RANK[one.authority] <= AUTHORITY_RANK[other.authority]
        assert other.origin == one.origin
    if action.kind == "archive" and one is not None and one.authority == "user" and one.tier == "durable":
        assert one.archive_at < snapshot.day(one.project_seq)


@pytest.mark.invariant(
    "A plan depends on neither row keys, ids nor order of arrival; what is carried out is what it said"
)
@settings(max_examples=40, deadline=None)
@given(snapshots(), st.randoms(use_true_random=False))
def test_neither_row_keys_nor_ids_nor_the_order_of_arrival_matter(snapshot: Snapshot, chance: random.Random) -> None:
    shuffled = list(snapshot.memories.values())
    chance.shuffle(shuffled)
    names = {one.id: f"m{place}" for place, one in enumerate(shuffled)}

    def named(one: Memory, seq: int) -> Memory:
        return replace(one, id=names[one.id], seq=seq, superseded_by=names.get(one.superseded_by, ""))

    other = replace(
        snapshot,
        memories={names[one.id]: named(one, seq) for seq, one in enumerate(shuffled)},
        near=frozenset(tuple(sorted((names[a], names[b]))) for a, b in snapshot.near),  # type: ignore[misc]
        injected=frozenset((session, names[one]) for session, one in snapshot.injected),
        unmerged=frozenset((names[a], names[b]) for a, b in snapshot.unmerged),
        brought_back={names[one]: back for one, back in snapshot.brought_back.items()},
    )
    assert _texts(plan(other)[0].actions) == _texts(plan(snapshot)[0].actions)


def _texts(actions: tuple[Action, ...]) -> list[tuple[object, ...]]:
    def said(one: Memory | None) -> str:
        return one.text if one else ""

    return [(one.kind, said(one.memory), said(one.other), one.fact, one.confidence, one.tier) for one in actions]


def test_what_says_the_same_becomes_one_and_its_turns_count() -> None:
    snapshot = seen(told("m1", CACHE, 1, 2), told("m2", AGAIN, 3))
    assert done(snapshot) == [("merge", "m2", "m1")]
    (action,), left = plan(snapshot)[0].actions, plan(snapshot)[1]
    stays = left.memories["m1"]
    assert stays.confidence == pytest.approx(0.85) == action.confidence
    assert [one.uuid for one in stays.provenance] == ["m1-1", "m1-2", "m2-3"]
    assert (stays.confirmed_at, stays.version) == (at(3), 2)
    assert "m2" not in left.memories


def test_the_fuller_wording_stays_though_the_other_is_better_known() -> None:
    assert done(seen(told("m1", CACHE, 1, 2, confidence=0.95), told("m2", LONGER, 3))) == [("merge", "m1", "m2")]


def test_what_stays_is_put_forward_as_long_as_what_it_took_in() -> None:
    _, left = plan(seen(told("m1", CACHE, 1), told("m2", LONGER, 1, tier="daily")))
    assert left.memories["m2"].tier == "durable"


KEEPS: tuple[tuple[str, Callable[[], Snapshot]], ...] = (
    ("pinned", lambda: seen(told("m1", CACHE, 1, pinned=True), told("m2", LONGER, 2, pinned=True))),
    ("the user's, before an assistant's fuller words", lambda: seen(told("m1", CACHE, 1), told("m2", LONGER, 1, authority="assistant"))),
    ("a correction", lambda: seen(told("m1", CACHE, 1, gate="correction"), told("m2", AGAIN, 2))),
    ("what lasts, before what does not", lambda: seen(told("m1", CACHE, 1, category="preference"), told("m2", LONGER, 1))),
    ("slow to age, before what is not", lambda: seen(told("m1", CACHE, 1, decay="permanent"), told("m2", LONGER, 1))),
    ("taken apart by way of a third", lambda: seen(told("m1", CACHE, 1), told("m2", AGAIN, 1), unmerged=frozenset({("m2", "m9"), ("m9", "m1")}))),
    ("taken apart by somebody", lambda: seen(told("m1", CACHE, 1), told("m2", AGAIN, 1), unmerged=frozenset({("m2", "m1")}))),
    ("two, a person says", lambda: seen(told("m1", CACHE, 1), told("m2", AGAIN, 1), dropped=frozenset({(1, "duplicate", "m1 m2")}))),
    ("what holds everywhere, before a project's own", lambda: seen(told("m1", CACHE, 1, project_seq=0, scope="global"), told("m2", LONGER, 1))),
    ("stated, beside what an assistant saved", lambda: seen(told("m1", CACHE, 1, authority="assistant"), told("m2", AGAIN, 1, authority="assistant", origin="model_saved"))),
    ("stated, before what csmd worked out", lambda: seen(told("m1", CACHE, 1, authority="assistant"), told("m2", LONGER, 1, origin="inferred"))),
)  # fmt: skip


@pytest.mark.parametrize(("what", "snapshot"), KEEPS, ids=[what for what, _ in KEEPS])
def test_it_stays_what_is(what: str, snapshot: Callable[[], Snapshot]) -> None:
    assert done(snapshot()) == []


def test_what_another_session_says_in_full_is_surer_and_once() -> None:
    mine = told("m1", CACHE, 1)
    snapshot = seen(mine, told("m2", LONGER, 3, authority="assistant"))
    assert done(snapshot) == [("strengthen", "m1", "m2")]
    stays = plan(snapshot)[1].memories["m1"]
    assert (stays.confidence, stays.authority) == (pytest.approx(0.85), "user")
    assert done(replace(snapshot, injected=frozenset({("s3", "m1")}))) == [], "there it was told: that is use"
    assert done(seen(mine, told("m2", LONGER, 3, authority="assistant", origin="model_saved"))) == []


def test_what_was_overturned_and_nobody_noticed_gives_way_to_the_newest() -> None:
    old, newer, newest = (
        told("m1", SAID[13], 1),
        told("m2", SAID[14], 5),
        told("m3", "The release branch is cut on Fridays", 9),
    )
    near = frozenset({("m1", "m2"), ("m1", "m3"), ("m2", "m3")})
    snapshot = seen(old, newer, newest, near=near)
    assert done(snapshot) == [("supersede", "m2", "m3"), ("supersede", "m1", "m3")]
    left = plan(snapshot)[1]
    assert left.memories["m1"].confidence < old.confidence and left.superseded_at["m1"] == at(9)
    assert done(seen(old, newer, near=near, settled=frozenset({"m1"}))) == []
    assert done(seen(old, newer, near=near, refused={"m1": frozenset({"m2"})})) == []
    assert done(seen(old, told("m2", SAID[14], 5, authority="assistant"), near=near)) == [("ask", "m1", "m2")], (
        "less authority overturns nothing"
    )


GIVEN_UP = "We decided against Postgres"


@pytest.mark.invariant("What only a person can tell is asked once, with both lines, and waits until it is answered")
def test_what_only_a_person_can_tell_is_asked_once_with_both_lines() -> None:
    old, new = told("m1", "We use Postgres for the job queue", 1), told("m2", GIVEN_UP, 5)
    near = frozenset({("m1", "m2")})
    snapshot = seen(old, new, near=near)
    assert done(snapshot) == [("ask", "m1", "m2")]
    left = plan(snapshot)[1]
    assert left.memories == snapshot.memories and plan(left)[0].actions == ()
    assert done(replace(snapshot, questioned=frozenset({"m1:m2"}))) == []
    assert done(seen(told("m1", "We use Postgres", 1), new, near=near)) == [("supersede", "m1", "m2")]
    by_assistant = told("m1", "We use Postgres for the job queue", 1, authority="assistant")
    for said, authority, asked in (
        (GIVEN_UP, "assistant", [("ask", "m1", "m2")]),
        (f"{GIVEN_UP}. It was too slow.", "assistant", []),
        (f"{GIVEN_UP}. It was too slow.", "user", [("ask", "m1", "m2")]),
    ):
        assert done(seen(by_assistant, told("m2", said, 5, authority=authority), near=near)) == asked, (said, authority)
    pinned = told("m1", "We use Postgres", 1, pinned=True)
    assert done(seen(pinned, new, near=near)) == [("ask", "m1", "m2")]


NO_FRIDAYS = (
    "Never deploy on Fridays",
    "Don't deploy on Fridays, please",
    "Never deploy on Fridays because nobody is on call",
)


def asked_for(ident: str, said: str, place: int, day: int = 1, **changes: object) -> Memory:
    values: dict[str, object] = {"gate": "behavioral", "category": "preference", **changes}
    return told(ident, said, day, project_seq=place, **values)


def around(*abroad: Memory, **changes: object) -> Snapshot:
    """What holds around projects, with what was asked for in these."""
    empty = Snapshot(project_seq=0, everywhere=0, now="", memories={}, days={0: DAYS})
    return replace(empty, stated_elsewhere={one.id: one for one in abroad}, **changes)  # type: ignore[arg-type]


def test_what_the_user_asked_for_in_three_projects_holds_everywhere() -> None:
    three = [asked_for(f"m{place}", said, place, place) for place, said in enumerate(NO_FRIDAYS, 1)]
    snapshot = around(*three)
    (action,), left = plan(snapshot)[0].actions, plan(snapshot)[1]
    made = action.created
    assert made is not None and (action.kind, action.memory) == ("lift", three[2])
    assert (made.text, made.scope, made.project_seq, made.created_at) == (NO_FRIDAYS[2], "user", 0, at(1))
    assert action.evidence == ("m3", "m1", "m2")
    assert plan(left)[0].actions == ()
    assert done(replace(snapshot, undone=frozenset({("lift", made.id)}))) == []
    # Each project's own goes into it, with what it was told by.
    for one in three:
        own = replace(seen(one), project_seq=one.project_seq, memories={one.id: one, made.id: made})
        assert done(own) == [("merge", one.id, made.id)]


@pytest.mark.invariant(
    "What the user asked for in three projects holds everywhere, once and until it is undone; an exception stays one"
)
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                (*NO_FRIDAYS, "I prefer tabs over spaces", "I prefer spaces over tabs", "Keep lines short")
            ),
            st.integers(1, 5),
            st.integers(1, 27),
        ),
        max_size=9,
        unique_by=lambda row: row[:2],
    )
)
def test_what_is_lifted_was_asked_for_in_three_projects_and_nothing_is_left_to_lift(
    asked: list[tuple[str, int, int]],
) -> None:
    snapshot = around(*(asked_for(f"m{number}", said, place, day) for number, (said, place, day) in enumerate(asked)))
    found, left = plan(snapshot)
    assert plan(left)[0].actions == ()
    for action in found.actions:
        if action.kind == "lift" and action.created is not None:
            told = [snapshot.stated_elsewhere[ident] for ident in action.evidence]
            assert len({one.project_seq for one in told}) >= consolidation.MIN_PROJECTS
            assert all(similarity.compare(one.text, action.created.text).says_all for one in told)
            assert action.created.authority == "user"


SPACES, TABS = "I prefer spaces over tabs", "I prefer tabs over spaces"
NOT_LIFTED: tuple[tuple[str, list[Memory]], ...] = (
    ("two projects", [asked_for("m1", TABS, 1), asked_for("m2", TABS, 2), asked_for("m3", TABS, 2)]),
    ("numbers differ", [asked_for(f"m{n}", f"Keep lines below {70 + 10 * n} characters", n) for n in (1, 2, 3)]),
    ("as many ask for the opposite", [asked_for(f"m{n}", TABS if n < 4 else SPACES, n) for n in range(1, 7)]),
)  # fmt: skip


@pytest.mark.parametrize(("what", "found"), NOT_LIFTED, ids=[what for what, _ in NOT_LIFTED])
def test_it_stays_in_its_project_what_was_asked_for_in(what: str, found: list[Memory]) -> None:
    assert done(around(*found)) == []


ELSEWHERE = (
    (NO_FRIDAYS[0], {}, True),
    (NO_FRIDAYS[0], {"authority": "assistant"}, False),
    (NO_FRIDAYS[0], {"pinned": True}, False),
    (NO_FRIDAYS[0], {"gate": "epistemic", "category": "decision"}, False),
    (NO_FRIDAYS[0], {"superseded_by": "m9"}, False),
    ("Never touch src/till.py", {}, False),
    ("Never deploy the till on Fridays", {}, False),
    ("Never deploy this on Fridays", {}, False),
)


@pytest.mark.parametrize(("said", "changes", "may"), ELSEWHERE)
def test_only_how_the_user_works_in_words_that_point_at_no_project_may_hold_everywhere(
    said: str, changes: dict[str, object], may: bool
) -> None:
    assert consolidation.may_hold_everywhere(asked_for("m1", said, 1, **changes), project_name="till") == may


@pytest.mark.invariant(
    "What the user asked for in three projects holds everywhere, once and until it is undone; an exception stays one"
)
def test_what_one_project_has_otherwise_stays_there_an_exception() -> None:
    three = [asked_for(f"m{place}", TABS, place, place) for place in (1, 2, 3)]
    other = asked_for("m4", SPACES, 4, 9)
    snapshot = around(*three, other)
    (action,) = plan(snapshot)[0].actions
    assert action.kind == "lift" and action.created is not None and action.created.text == TABS
    # Said once more elsewhere, it still is no later than the exception.
    again = replace(action.created, confirmed_at=at(20))
    own = replace(
        seen(other),
        project_seq=4,
        memories={"m4": other, again.id: again},
        near=frozenset({tuple(sorted(("m4", again.id)))}),
    )  # type: ignore[arg-type]
    assert done(own) == []


def test_what_is_sure_and_was_told_in_two_sessions_is_for_good() -> None:
    assert done(seen(told("m1", CACHE, 1, 2, tier="daily", confidence=0.95))) == [("promote", "m1", "")]
    assert done(seen(told("m1", CACHE, 1, 2, tier="daily", confidence=0.9))) == []
    assert done(seen(told("m1", CACHE, 1, tier="daily", confidence=0.95))) == []


LATER = tuple(f"2027-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(300))
#: What goes after so many further active days, and what does not.
PRUNED = (
    (told("m1", CACHE, 1), 300, True),
    (told("m1", CACHE, 1), 100, False),
    (told("m1", CACHE, 1, tier="daily", decay="session"), 40, True),
    (told("m1", CACHE, 27, tier="daily", decay="session", confidence=0.3), 29, False),
    (told("m1", CACHE, 1, tier="daily", decay="durable"), 100, False),
    (told("m1", CACHE, 1, tier="daily", decay="durable"), 300, True),
    (told("m1", CACHE, 1, tier="daily", decay="durable", used_at="2027-01-20T10:00:00.000Z"), 40, False),
    (told("m1", CACHE, 1, pinned=True, decay="permanent"), 300, False),
    (told("m1", CACHE, 1, category="preference", gate="behavioral"), 300, False),
    (told("m1", CACHE, 1, category="preference", gate="behavioral", authority="assistant"), 300, True),
    (told("m1", CACHE, 1, gate="correction"), 300, False),
    (told("m1", CACHE, 1, superseded_by="m2", authority="assistant", confidence=0.5), 3, False),
    (told("m1", CACHE, 1, superseded_by="m2", authority="assistant", confidence=0.5), 60, True),
    (told("m1", CACHE, 1, superseded_by="m2", confidence=0.5), 60, False),
    (told("m1", CACHE, 1, superseded_by="m2", confidence=0.5), 200, True),
)


@pytest.mark.parametrize(("one", "passed", "goes"), PRUNED)
def test_what_goes_to_the_archive_and_when(one: Memory, passed: int, goes: bool) -> None:
    snapshot = seen(one, days=DAYS + LATER[:passed])
    assert [kind for kind, _, _ in done(snapshot)] == ["archive"] * goes
    assert done(replace(snapshot, brought_back={"m1": "2028-01-01T00:00:00.000Z"})) == []


def test_a_fact_that_no_habit_tells_is_raised_once_and_again_when_it_has_grown() -> None:
    snapshot = seen(facts=FACTS)
    first, left = plan(snapshot)
    assert [one.fact.fingerprint for one in first.actions if one.fact] == ["convention:commit", "files:a.py"]
    assert {one.text for one in left.raised_facts.values()} == {
        "Commit messages begin with a verb.", "When `a.py` changes, so does `test_a.py`."
    }  # fmt: skip
    grown = replace(FACTS[0], seen=12, total=13, evidence=("f1", "f2", "f9"))
    again = plan(replace(left, facts=(grown, FACTS[1])))[0]
    assert [one.fact for one in again.actions] == [grown]
    assert plan(replace(snapshot, facts=(replace(FACTS[0], sessions=4),)))[0].actions == (), "by chance"
    always = replace(FACTS[1], sessions=3, seen=3, total=3, confidence=0.7059)
    for one, raised in (
        (always, 1),
        (replace(always, total=4, confidence=0.53), 0),
        (replace(always, kind="convention"), 0),
    ):
        assert len(plan(replace(snapshot, facts=(one,)))[0].actions) == raised, (
            "in three sessions only without exception"
        )
    dropped = {key: replace(one, status="dropped") for key, one in left.raised_facts.items()}
    assert plan(replace(left, facts=(grown,), raised_facts=dropped))[0].actions == ()


def test_orienting_counts_tiers_doubles_and_how_stale_they_are() -> None:
    half = DAYS + LATER[:60]
    snapshot = seen(
        told("m1", CACHE, 1), told("m2", AGAIN, 1), told("m3", SAID[9], 1, tier="daily", decay="session"), days=half
    )
    (tally,) = plan(snapshot)[0].tallies
    assert (tally.tiers, tally.duplicates) == ({"daily": 1, "durable": 2}, 1)
    assert 0 < tally.staleness["durable"] < 1 == tally.staleness["daily"]
    assert seen(told("m1", CACHE, 1, gate="correction")).memories["m1"].archive_at == NEVER


@settings(max_examples=60, deadline=None)
@given(snapshots())
def test_the_time_alone_brings_nothing_but_what_goes_to_the_archive(seen_: Snapshot) -> None:
    _, left = plan(seen_)
    further = tuple(f"2027-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29))
    later = replace(
        left, now="2028-01-01T10:00:00.000Z", days={place: (*days, *further) for place, days in left.days.items()}
    )
    assert {action.kind for action in plan(later)[0].actions} <= {"archive"}


def test_equal_contents_have_equal_parts_in_every_process_whatever_was_used_meanwhile() -> None:
    code = """if True:
        import hashlib
        from dataclasses import replace
        from csmd.dream.actions import Snapshot
        from memory_factory import memory
        names = [f"topic {number}" for number in range(9)]
        memories = [memory(f"m{number}", f"Say {number}.") for number in range(3)]
        snapshot = Snapshot(
            project_seq=1, everywhere=0, now="", memories={one.id: one for one in memories},
            topics={one.id: frozenset(names) for one in memories}, refused={"m1": frozenset({"a", "b", "c"})},
            unmerged=frozenset({("a", "b"), ("c", "d")}), dropped=frozenset({(1, "stale", "x"), (7, "stale", "y")}),
            stated_elsewhere={"m7": memory("m7", "Say 7.")},
        )
        parts = list(snapshot.contents())
        used = {one.id: replace(one, used_at="2026-05-01", version=9, archive_at=99) for one in memories[::-1]}
        later = replace(
            snapshot, memories=used, now="2027", dropped=frozenset({(1, "stale", "x")}),
            stated_elsewhere={"m7": replace(snapshot.stated_elsewhere["m7"], used_at="2026-05-01", version=9)},
            raised_facts={"x": None},
        )
        assert list(later.contents()) == parts
        for changed in (
            replace(snapshot, topics={**snapshot.topics, "m1": frozenset(names[1:])}),
            replace(snapshot, settled=frozenset({"m1"})),
            replace(snapshot, memories={**snapshot.memories, "m1": memory("m1", "Say One.")}),
        ):
            assert list(changed.contents()) != parts
        print(hashlib.sha256("".join(parts).encode()).hexdigest())
    """
    tests = Path(__file__).resolve().parent.parent
    path = os.pathsep.join((str(tests), str(tests.parent)))
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            check=True, capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }  # fmt: skip
    assert len(digests) == 1
