"""Candidates pass thresholds to become memories; over a real store a replay changes nothing, and what was refused stays out."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from memory_factory import add_turn, key_of

from csmd.conversation import Project, Turn
from csmd.extraction import packets
from csmd.knowledge import Candidate, Evidence, Provenance, Statement
from csmd.memory import promotion, remember
from csmd.store import (
    belief_changes,
    candidates,
    memories,
    packet_rows,
    project_merges,
    projects,
    purge,
    tampered_transcripts,
    tombstones,
    workspaces,
)
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.vocabulary import TurnKind

SURE = Candidate(
    id="c1", kind="preference", source="habits", project_seq=1, fingerprint="order:commit", text="Says when to commit: in 3 of 3 sessions.",
    reason="", confidence=0.7, reinforcement=3, created_at="2026-01-01", updated_at="2026-01-02",
    evidence=tuple(Evidence(uuid=f"u{number}", session_id=f"s{number}", at="2026-01-01") for number in range(2)),
)  # fmt: skip


@pytest.mark.invariant("Each threshold of promotion keeps out by itself and says why; only a person lowers them")
@pytest.mark.parametrize(
    ("changed", "step", "reason"),
    [
        ({}, "promote", "confidence 70 (at least 70)"),
        ({"confidence": 0.69}, "wait", "confidence 69, 70 are needed"),
        ({"reinforcement": 2}, "wait", "times seen 2, 3 are needed"),
        ({"evidence": SURE.evidence[:1]}, "wait", "evidence 1, 2 are needed"),
        ({"evidence": (SURE.evidence[0], replace(SURE.evidence[1], against=True))}, "wait", "evidence 1, 2 are needed"),
        ({"contradicted": 1}, "review", "1 session against it"),
        ({"kind": "drift_warning"}, "wait", "nothing to remember"),
        ({"kind": "duplicate"}, "wait", "nothing to remember"),
        ({"id": "known"}, "known", "m1 says the same"),
    ],
)
def test_each_gate_keeps_out_by_itself_and_says_why(changed: dict[str, Any], step: str, reason: str) -> None:
    (action,) = promotion.plan_for(
        [replace(SURE, **changed)], profile=promotion.DEFAULT_PROFILE, memory_of={"known": "m1"}
    )
    assert action.step == step and reason in "; ".join(action.reasons)


def test_the_relaxed_thresholds_are_lower_and_skip_no_gate() -> None:
    weak = replace(SURE, confidence=0.3, reinforcement=1, evidence=SURE.evidence[:1])
    steps = [
        promotion.plan_for([candidate], profile=profile, memory_of={})[0].step
        for candidate in (weak, replace(weak, contradicted=1))
        for profile in (promotion.DEFAULT_PROFILE, promotion.RELAXED_PROFILE)
    ]
    assert steps == ["wait", "promote", "review", "review"]


def test_the_surest_come_first_whatever_the_order() -> None:
    some = [replace(SURE, id=f"c{number}", confidence=number / 10, fingerprint=str(number)) for number in (3, 9, 5)]
    for order in (some, some[::-1]):
        assert [
            action.candidate.id for action in promotion.plan_for(order, profile=promotion.DEFAULT_PROFILE, memory_of={})
        ] == [
            "c9",
            "c5",
            "c3",
        ]


NOW = "2026-03-28T10:00:00.000Z"
ASKED = "can we draw a diagram for this?"
TOLD = 'Asks again and again: "draw a diagram for this": in {} of {} sessions.'


def say(rows: Rows, session: int, *said: str, name: str = "alpha", start: int = 0, kind: TurnKind = "user") -> None:
    """A session in which a user says these things, one after the other."""
    home = projects.ensure_with_directory(
        rows, Project(key=name, root=f"/p/{name}", name=name, kind="git", place=f"/p/{name}"), now=NOW
    )
    for number, body in enumerate(said, start):
        turn = Turn(
            uuid=f"u{session}-{number}", session_id=f"s{session}", kind=kind, text=body, cwd=f"/p/{name}",
            at=f"2026-03-{session + 1:02}T10:{number:02}:00.000Z",
        )  # fmt: skip
        add_turn(rows, turn, project=home.seq, directory=home.directory, path=f"/t/s{session}.jsonl")


def count(store: Store, *, promoting: bool = True) -> None:
    """What the daemon does until nothing is left; that it ends shows that it has written down how far it came."""
    for _ in range(20):
        if not (packets.step(store) or promotion.step(store, now=NOW, promoting=promoting)):
            return
    raise AssertionError("it does not come to an end")


def ask_in_sessions(store: Store, sessions: range, *, of: int, **more: Any) -> None:
    """So many sessions, in some of which tests are asked for."""
    for number in range(of):
        prompts = ["the button is too wide", *([ASKED] if number in sessions else [])]
        store.write(lambda rows, number=number, prompts=prompts: say(rows, number, *prompts, **more))  # type: ignore[misc]


def texts(store: Store) -> list[str]:
    return sorted(memory.text for memory in store.read(lambda rows: memories.list_memories(rows, projects=None)))


def everything(rows: Rows) -> list[Any]:
    """What was believed and waits, without row keys and times of writing."""
    return [
        rows.all(f"select {columns} from {table} order by 1, 2")
        for table, columns in (
            (
                "memories",
                "id, text, confidence, authority, origin, session_id, created_at, confirmed_at, hot_until, tier",
            ),
            ("provenance p join memories m on m.seq = p.memory_seq", "m.id, p.uuid, p.role"),
            ("candidates", "id, status, text, reason, confidence, memory_ids, created_at, updated_at"),
            ("candidate_evidence e join candidates c on c.seq = e.candidate_seq", "c.id, e.uuid, e.against"),
        )
    ]


def test_what_recurs_becomes_a_memory_with_its_turns_and_a_reason(store: Store) -> None:
    ask_in_sessions(store, range(4), of=6)
    count(store)
    (memory,) = store.read(lambda rows: memories.list_memories(rows, projects=None))
    assert (memory.text, memory.origin, memory.authority, memory.gate) == (
        TOLD.format(4, 6),
        "inferred",
        "user",
        "behavioral",
    )
    assert [(source.uuid, source.role) for source in memory.provenance] == [
        ("u0-1", "states"), ("u1-1", "confirms"), ("u2-1", "confirms"), ("u3-1", "confirms"),
    ]  # fmt: skip
    (change,) = store.read(lambda rows: belief_changes.list_changes(rows, memory.id))
    assert (change.change, change.by) == ("promoted", "csmd") and "confidence 76 (at least 70)" in change.reason


def held(store: Store) -> list[tuple[str, str, str, int]]:
    return store.read(
        lambda rows: [(m.text, m.category, m.scope, m.project_seq) for m in memories.list_memories(rows, projects=None)]
    )


@pytest.mark.invariant("A project's memories stay in it, unless their words say that they hold everywhere")
def test_an_order_of_one_project_is_its_habit_and_of_two_one_memory_that_holds_everywhere(store: Store) -> None:
    ask_in_sessions(store, range(4), of=6)
    count(store)
    assert held(store) == [(TOLD.format(4, 6), "procedure", "project", 1)]
    for number in range(10, 15):
        store.write(lambda rows, number=number: say(rows, number, ASKED, name="beta"))  # type: ignore[misc]
    count(store)
    assert held(store) == [(TOLD.format(9, 11), "procedure", "user", 0)]
    store.write(lambda rows: say(rows, 20, ASKED, name="beta"))
    count(store)
    assert held(store) == [(TOLD.format(10, 12), "procedure", "user", 0)]
    store.write(lambda rows: say(rows, 21, "don't draw a diagram for this", name="beta"))
    count(store)
    assert held(store) == [(TOLD.format(4, 6), "procedure", "project", 1)], "what one project refuses is the other's"


def test_an_order_of_two_projects_is_forgotten_in_both(store: Store) -> None:
    for number in range(8):
        name = "alpha" if number < 4 else "beta"
        store.write(lambda rows, number=number, name=name: say(rows, number, ASKED, name=name))  # type: ignore[misc]
    count(store)
    (memory,) = store.read(lambda rows: memories.list_memories(rows, projects=None))
    store.write(lambda rows: remember.forget(rows, memory, key=store.hash_key, now=NOW, by_person=True))
    for number in range(10, 16):
        name = "alpha" if number % 2 else "beta"
        store.write(lambda rows, number=number, name=name: say(rows, number, ASKED, name=name))  # type: ignore[misc]
    count(store)
    assert texts(store) == []


def test_a_habit_of_two_projects_with_a_wall_between_them_is_told_on_each_side(store: Store) -> None:
    ask_in_sessions(store, range(4), of=4)
    store.write(lambda rows: workspaces.join(rows, workspaces.ensure(rows, "client", now=NOW), 1))
    for number in range(10, 14):
        store.write(lambda rows, number=number: say(rows, number, ASKED, name="beta"))  # type: ignore[misc]
    count(store)
    assert {scope for _, _, scope, _ in held(store)} == {"project"} and len(held(store)) == 2


def test_a_replay_changes_nothing(store: Store) -> None:
    ask_in_sessions(store, range(4), of=6)
    count(store)
    before = store.read(everything)
    versions = store.read(
        lambda rows: rows.all("select version from candidates union all select version from memories")
    )
    store.write(lambda rows: rows.run("delete from cursors"))
    count(store)
    assert store.read(everything) == before
    assert versions == store.read(
        lambda rows: rows.all("select version from candidates union all select version from memories")
    )


@pytest.mark.invariant(
    "Habits do not depend on the order of sessions; nobody's words but a person's count as orders; what was forgotten stays out"
)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_which_sessions_come_makes_no_difference(tmp_path: Path, seed: int) -> None:
    prompts = {
        number: [f"thing {number} looks odd", *(["commit"] if number % 2 else []), *([ASKED] if number < 5 else []),
                 *(["don't commit"] if number == 6 else []), *(["deploy to staging"] if number % 3 == 0 else [])]
        for number in range(9)
    }  # fmt: skip
    results = []
    for shuffled in (False, True):
        opened = Store(tmp_path / f"{shuffled}.db", now=NOW)
        order = list(prompts)
        if shuffled:
            random.Random(seed).shuffle(order)
        for number in order:
            opened.write(lambda rows, number=number: say(rows, number, *prompts[number]))  # type: ignore[misc]
            if shuffled:
                count(opened)
        count(opened)
        results.append(opened.read(everything))
        opened.close()
    assert results[0] == results[1] and len(results[0][0]) == 2


def test_more_sessions_change_the_words_of_the_same_memory(store: Store) -> None:
    ask_in_sessions(store, range(3), of=3)
    count(store)
    ident = store.read(lambda rows: memories.list_memories(rows, projects=None))[0].id
    ask_in_sessions(store, range(5), of=8)
    count(store)
    (memory,) = store.read(lambda rows: memories.list_memories(rows, projects=None))
    assert (memory.id, memory.text, memory.confidence) == (ident, TOLD.format(5, 8), 0.8)
    assert memory.confirmed_at.startswith("2026-03-05")


@pytest.mark.invariant("What was made of a purged session or turn goes with it")
def test_a_purged_session_takes_its_packets_evidence_and_share_of_the_count_along(store: Store) -> None:
    ask_in_sessions(store, range(5), of=5)
    count(store)

    def forget(rows: Rows, *sessions: str) -> None:
        tombstones.purge_names(rows, "session", sessions, key=key_of(rows), now=NOW)
        purge.apply_tombstones(rows, key_of(rows))

    store.write(lambda rows: forget(rows, "s0", "s1"))
    assert (
        store.read(
            lambda rows: rows.value(
                "select count(*) from packets p join sessions s on s.seq = p.session_seq where s.id < 's2'"
            )
        )
        == 0
    )
    assert store.read(lambda rows: rows.value("select count(*) from candidate_evidence where session_id < 's2'")) == 0
    count(store)
    assert texts(store) == [TOLD.format(3, 3)]
    store.write(lambda rows: forget(rows, "s2"))
    count(store)
    assert texts(store) == [], "two sessions are too few"
    store.write(lambda rows: forget(rows, "s3", "s4"))
    count(store)
    assert store.read(candidates.counts) == {}


@pytest.mark.invariant(
    "Habits do not depend on the order of sessions; nobody's words but a person's count as orders; what was forgotten stays out"
)
def test_what_was_forgotten_or_dropped_stays_out_however_often_it_is_seen_again(store: Store) -> None:
    ask_in_sessions(store, range(4), of=4)
    count(store)
    (memory,) = store.read(lambda rows: memories.list_memories(rows, projects=None))
    store.write(lambda rows: remember.forget(rows, memory, key=store.hash_key, now=NOW, by_person=True))
    ask_in_sessions(store, range(9), of=9)
    count(store)
    assert texts(store) == [] and store.read(candidates.counts) == {"preference": {"dropped": 1}}


def test_purged_words_come_back_in_no_candidate(store: Store) -> None:
    for number in range(4):
        store.write(lambda rows, number=number: say(rows, number, "deploy to heronry"))  # type: ignore[misc]
    count(store)
    assert texts(store) == ['Asks again and again: "deploy to heronry": in 4 of 4 sessions.']

    def forget(rows: Rows) -> None:
        tombstones.purge_text(rows, "heronry", key=key_of(rows), now=NOW)
        purge.apply_tombstones(rows, key_of(rows))

    store.write(forget)
    count(store)
    assert texts(store) == [] and store.read(candidates.counts) == {}
    assert store.read(lambda rows: rows.value("select count(*) from packets where subject like '%heronry%'")) == 0


def test_what_is_said_against_it_takes_it_back_and_waits_for_a_person(store: Store) -> None:
    for number in range(4):
        store.write(lambda rows, number=number: say(rows, number, "commit"))  # type: ignore[misc]
    count(store)
    assert len(texts(store)) == 1
    store.write(lambda rows: say(rows, 5, "don't commit"))
    count(store)
    assert texts(store) == [] and store.read(candidates.counts) == {"preference": {"needs_review": 1}}


@pytest.mark.invariant(
    "Habits do not depend on the order of sessions; nobody's words but a person's count as orders; what was forgotten stays out"
)
def test_what_nobody_typed_and_what_a_tool_wrote_is_no_evidence(store: Store) -> None:
    for number in range(4):
        store.write(lambda rows, number=number: say(rows, number, ASKED, kind="relayed"))  # type: ignore[misc]
    ask_in_sessions(store, range(4), of=4, start=10)
    hashed = lambda name: tokens.keyed_hash(name, store.hash_key)  # noqa: E731
    store.write(
        lambda rows: tampered_transcripts.record_tampered(
            rows, [f"s{number}.jsonl" for number in range(2)], at=NOW, hashed=hashed
        )
    )
    count(store)
    assert texts(store) == []


def test_what_a_person_said_already_is_confirmed_by_nobody_and_not_doubled(store: Store) -> None:
    statement = Statement(
        text=TOLD.format(4, 4), gate="behavioral", category="preference", confidence=0.9, authority="user"
    )
    ask_in_sessions(store, range(4), of=4)
    source = Provenance(uuid="cli:1", session_id="", at=NOW)
    home = store.read(lambda rows: int(rows.value("select seq from projects where key = 'alpha'")))
    store.write(
        lambda rows: remember.remember(rows, statement, source, project=home, origin="stated", key=store.hash_key)
    )
    count(store)
    (memory,) = store.read(lambda rows: memories.list_memories(rows, projects=None))
    assert (memory.origin, len(memory.provenance)) == ("stated", 1)
    assert store.read(candidates.counts) == {"preference": {"done": 1}}


def test_a_merge_counts_both_and_a_split_each_by_itself(store: Store) -> None:
    ask_in_sessions(store, range(3), of=3)
    for number in range(10, 13):
        store.write(lambda rows, number=number: say(rows, number, ASKED, name="beta"))  # type: ignore[misc]
    count(store)
    apart = texts(store)
    assert apart == [TOLD.format(6, 6)]
    alpha, other = store.read(
        lambda rows: [int(seq) for (seq,) in rows.all("select seq from projects where seq > 0 order by seq")]
    )
    store.write(lambda rows: project_merges.merge_projects(rows, other, alpha))
    count(store)
    assert texts(store) == [TOLD.format(6, 6)]
    store.write(lambda rows: project_merges.split_projects(rows, alpha, other))
    count(store)
    assert texts(store) == apart


def test_without_promotion_candidates_wait_and_a_plan_that_has_moved_is_left(store: Store) -> None:
    ask_in_sessions(store, range(4), of=4)
    count(store, promoting=False)
    assert texts(store) == []
    plan = store.read(lambda rows: promotion.plan_promotions(rows, projects=None, profile=promotion.DEFAULT_PROFILE))
    assert [action.step for action in plan] == ["promote"]
    ask_in_sessions(store, range(5), of=5)
    count(store, promoting=False)
    carry = lambda actions: store.write(  # noqa: E731
        lambda rows: promotion.carry_out(rows, actions, key=store.hash_key, now=NOW)
    )
    assert carry(plan) == {}
    plan = store.read(lambda rows: promotion.plan_promotions(rows, projects=None, profile=promotion.DEFAULT_PROFILE))
    assert len(carry(plan)) == 1 and texts(store) == [TOLD.format(5, 5)] and carry(plan) == {}


def test_a_turn_that_only_a_hook_reported_waits_for_its_line(store: Store) -> None:
    ask_in_sessions(store, range(1), of=1)
    store.write(lambda rows: rows.run("update turns set source = 'hook', provisional = 1 where uuid = 'u0-1'"))
    count(store)
    observed = store.read(lambda rows: packet_rows.latest_packets(rows, projects=None, limit=9))
    assert [packet.subject for packet in observed] == ["begin"]
    store.write(lambda rows: rows.run("update turns set source = 'transcript', provisional = 0 where uuid = 'u0-1'"))
    count(store)
    assert (
        store.read(lambda rows: rows.value("select count(*) from packets where subject = 'draw a diagram for this'"))
        == 1
    )


def test_a_project_in_which_somebody_is_at_work_is_not_counted_with_every_turn(store: Store) -> None:
    ask_in_sessions(store, range(4), of=4)
    packets.step(store)
    quiet = {"quiet_before": "2026-03-04T10:00:30.000Z"}
    assert promotion.step(store, now="2026-03-04T10:01:00.000Z", **quiet) == 0
    assert promotion.step(store, now="2026-03-04T10:02:00.000Z", quiet_before="2026-03-04T10:01:30.000Z") == 1
