"""The queue of candidates: of one that waits there is one, and a person's no is final."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from csmd.conversation import Project, Turn
from csmd.knowledge import Candidate, Evidence, Packet, State
from csmd.store import candidates, packet_rows, project_merges, projects, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows

ONE = Candidate(
    id="c1", kind="belief", source="scan", project_seq=0, fingerprint="release", text="A release has three steps.",
    reason="seen in 3 sessions", confidence=0.5, created_at="2026-01-01", updated_at="2026-01-01",
    evidence=(Evidence(uuid="u1", session_id="s1", at="2026-01-01"),), memory_ids=("m1", "m2"),
)  # fmt: skip


def test_a_candidate_that_is_seen_again_gains_evidence_and_no_double(store: Store) -> None:
    again = replace(
        ONE, id="c2", confidence=0.8, reinforcement=2, updated_at="2026-01-02",
        evidence=(Evidence(uuid="u2", session_id="s2", at="2026-01-02", against=True),),
    )  # fmt: skip
    assert [store.write(lambda rows, one=one: candidates.put_candidate(rows, one)) for one in (ONE, again)] == [
        "c1",
        "c1",
    ]  # type: ignore[misc]
    (found,) = store.read(lambda rows: candidates.waiting(rows, projects=[0]))
    wanted = replace(
        again, id="c1", version=2, seq=found.seq, created_at="2026-01-01", evidence=ONE.evidence + again.evidence
    )
    assert found == wanted
    assert store.read(lambda rows: candidates.waiting(rows, projects=[7])) == []
    assert store.read(candidates.counts) == {"belief": {"open": 1}}


def test_the_same_put_again_is_the_same_and_another_with_its_id_gets_one_of_its_own(store: Store) -> None:
    assert [store.write(lambda rows: candidates.put_candidate(rows, ONE)) for _ in range(2)] == ["c1", "c1"]
    known = store.read(lambda rows: candidates.by_id(rows, "c1"))
    assert known is not None
    assert store.write(lambda rows: candidates.set_status(rows, known, "done", now="2026-01-03"))
    again = store.write(lambda rows: candidates.put_candidate(rows, ONE))
    assert again not in ("", "c1")
    assert store.write(lambda rows: candidates.put_candidate(rows, ONE)) == again


def test_what_a_person_dropped_is_not_put_there_again(store: Store) -> None:
    store.write(lambda rows: candidates.put_candidate(rows, ONE))
    known = store.read(lambda rows: candidates.by_id(rows, "c1"))
    assert known is not None
    assert not store.write(
        lambda rows: candidates.set_status(rows, replace(known, version=9), "dropped", now="2026-01-03")
    )
    assert store.write(lambda rows: candidates.set_status(rows, known, "dropped", now="2026-01-03"))
    assert store.write(lambda rows: candidates.put_candidate(rows, replace(ONE, id="c3"))) == ""
    assert store.read(lambda rows: candidates.waiting(rows, projects=None)) == []


def test_one_that_is_done_may_come_again(store: Store) -> None:
    store.write(lambda rows: candidates.put_candidate(rows, ONE))
    known = store.read(lambda rows: candidates.by_id(rows, "c1"))
    assert known is not None
    store.write(lambda rows: candidates.set_status(rows, known, "done", now="2026-01-03"))
    assert store.write(lambda rows: candidates.put_candidate(rows, replace(ONE, id="c3"))) == "c3"
    assert [
        one.id for one in store.read(lambda rows: candidates.waiting(rows, projects=None, statuses=("done", "open")))
    ] == ["c1", "c3"]


@pytest.mark.invariant("Candidates follow their project's merge and split")
def test_candidates_go_with_a_merge_and_those_that_a_part_alone_speaks_for_come_back(store: Store) -> None:
    def write(rows: Rows) -> tuple[int, int]:
        seqs = []
        for name, uuid in (("a", "u1"), ("b", "u2")):
            place = Project(key=f"key{name}", root=f"/{name}", name=name, kind="path", place=f"/{name}")
            home = projects.ensure_with_directory(rows, place, now="2026-01-01")
            turn = Turn(uuid=uuid, session_id=f"s{name}", kind="user", text="hello", at="2026-01-01", cwd=f"/{name}")
            turns.add_turn(
                rows, turn, text_hash=uuid, host="claude", project=home.seq, path="", directory=home.directory
            )
            seqs.append(home.seq)
        here, there = seqs
        both = replace(ONE, project_seq=here)
        candidates.put_candidate(rows, both)
        candidates.put_candidate(rows, replace(both, id="c2", fingerprint="commit"))
        of_there = (Evidence(uuid="u2", session_id="sb", at="2026-01-02"),)
        candidates.put_candidate(rows, replace(both, id="c3", project_seq=there, evidence=of_there))
        candidates.put_candidate(rows, replace(both, id="c4", project_seq=there, fingerprint="tag", evidence=of_there))
        project_merges.merge_projects(rows, there, here)
        return here, there

    here, there = store.write(write)

    def waiting(project: int) -> dict[str, list[str]]:
        found = store.read(lambda rows: candidates.waiting(rows, projects=[project]))
        return {one.fingerprint: [evidence.uuid for evidence in one.evidence] for one in found}

    assert (waiting(here), waiting(there)) == ({"release": ["u1", "u2"], "commit": ["u1"], "tag": ["u2"]}, {})
    store.write(lambda rows: project_merges.split_projects(rows, here, there))
    assert (waiting(here), waiting(there)) == ({"release": ["u1", "u2"], "commit": ["u1"]}, {"tag": ["u2"]})


# --- Packets are stored with what is known of their state, and with what is not.


KNOWN = State(frustration=0.3, energy=0.7, stance="objects", urgency=0.0)
UNKNOWN = State(frustration=None, energy=None, stance="unknown", urgency=None)


def put(rows: Rows, given: Any) -> None:
    project = projects.ensure(rows, given.project("shop"), now=given.now)
    turn = given.turn("u1", "Ship it.", session="s1", second=1)
    turns.add_turn(rows, turn, text_hash=given.hash("Ship it."), host="claude", project=project, path="/s1")
    made = [
        Packet(
            kind="order", subject=subject, outcome="asked", uuid="u1", session_id="s1", project_seq=project, ordinal=1,
            at=turn.at, words=2, state=state,
        )
        for subject, state in (("known", KNOWN), ("unknown", UNKNOWN))
    ]  # fmt: skip
    assert packet_rows.put_packets(rows, made) == 2


def states(rows: Rows) -> dict[str, State]:
    return {one.subject: one.state for one in packet_rows.latest_packets(rows, projects=None, limit=9)}


def test_a_state_comes_back_with_what_is_unknown(store: Store, given: Any) -> None:
    store.write(lambda rows: put(rows, given))
    assert store.read(states) == {"known": KNOWN, "unknown": UNKNOWN}
