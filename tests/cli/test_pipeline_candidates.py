"""Packets, candidates and promotion as people see them, with a real daemon; a stage that is off is inert."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machine import Machine

ASKED = "can we draw a diagram for this?"
TOLD = 'Asks again and again: "draw a diagram for this": in {} of {} sessions.'
PURPOSE = 'Asks again and again: "update the glossary": in 2 of 4 sessions.'


def talk(machine: Machine, count: int, *said: str, first: int = 0) -> None:
    for number in range(first, first + count):
        session = f"s{number}"
        machine.transcript(*(machine.line("user", body, session=session) for body in said), session=session)


@pytest.fixture(scope="module")
def known(shared_machine: Machine) -> Iterator[Machine]:
    """A machine on which a diagram was asked for in four sessions, the glossary in two of them."""
    talk(shared_machine, 2, "the button is odd", ASKED, "and update the glossary")
    talk(shared_machine, 2, "the label is odd", ASKED, first=2)
    shared_machine.start()
    shared_machine.sync()
    yield shared_machine


def test_what_recurs_is_remembered_by_itself_and_told_at_no_start(known: Machine) -> None:
    (habit,) = [
        one for one in known.call("csm_memory_list")["memories"] if one["authority"] == "user" and "of 4" in one["text"]
    ]
    assert (habit["text"], habit["gate"], len(habit["sessions"])) == (TOLD.format(4, 4), "behavioral", 4)
    assert "in 4 of 4 sessions" not in known.call("csm_memory_context", project=str(known.project))["text"]
    before = known.call("csm_memory_list")
    known.sync()
    assert known.call("csm_memory_list") == before


def test_what_waits_says_what_it_waits_for_and_the_plan_changes_nothing(known: Machine) -> None:
    screen = known.csmd("pipeline", "promote", "--dry-run")
    assert all(len(line) <= 80 for line in screen.splitlines())
    shown = " ".join(screen.split())
    assert PURPOSE in shown and "confidence 61, 70 are needed; times seen 2, 3 are needed" in shown
    plan = known.call("csm_belief_promote", profile="relaxed")
    assert [(one["step"], one["candidate"]["text"]) for one in plan["actions"]] == [("promote", PURPOSE)]
    assert "1 candidate would become a memory" in known.csmd("pipeline", "promote", "--dry-run", "--relaxed")
    assert known.call("csm_memory_candidate_report")["counts"] == {"preference": {"open": 1, "promoted": 1}}
    report = known.call("csm_belief_scan_report", project=str(known.project))["kinds"]["preference"]
    assert report["counts"] == {"open": 1, "promoted": 1}


@pytest.mark.invariant("Each threshold of promotion keeps out by itself and says why; only a person lowers them")
def test_only_a_person_lowers_the_thresholds(known: Machine) -> None:
    refused = known.run("pipeline", "promote", "--relaxed")
    assert refused.returncode == 1 and "only a person at a terminal can choose" in refused.stderr


def test_packets_are_listed_newest_first(known: Machine) -> None:
    listed = known.call("csm_memory_packets")["packets"]
    assert [one["subject"] for one in listed][:2] == ["draw a diagram for this", "begin"]
    assert [one["at"] for one in listed] == sorted((one["at"] for one in listed), reverse=True)
    assert set(listed[0]["state"]) == {"frustration", "energy", "stance", "urgency"}
    shown = known.csmd("pipeline", "promote")
    assert "0 new memories" in shown and all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("off", "candidates", "remembered"), [("candidates", {}, 0), ("promote", {"preference": {"open": 1}}, 0)]
)
def test_what_lies_behind_a_stage_that_is_off_is_inert(
    machine: Machine, off: str, candidates: dict[str, dict[str, int]], remembered: int
) -> None:
    machine.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    machine.paths.config_file.write_text(f"stages:\n  {off}: false\n")
    talk(machine, 4, ASKED)
    machine.start()
    machine.sync()
    assert machine.call("csm_memory_candidate_report")["counts"] == candidates
    assert len([one for one in machine.call("csm_memory_list")["memories"] if "sessions" in one["text"]]) == remembered
    assert machine.call("csm_memory_search", query="draw a diagram")["hits"]
    if off == "candidates":
        assert "switched off" in machine.run("tool", "csm_belief_scan").stderr
    else:
        assert "switched off" in machine.run("pipeline", "promote").stderr
        machine.call("csm_belief_promote", apply=True, by_person=True)
        assert machine.call("csm_memory_candidate_report")["counts"] == {"preference": {"promoted": 1}}
