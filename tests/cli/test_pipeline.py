"""Beliefs at the command line: by subject, duplicates merged and taken back, the rules; all of it in 80 columns."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

import pytest
from machine import Machine, eventually
from terminal import Terminal

ORDERS = "The order cache keeps its entries for the checkout page in Redis, keyed by cart"
AGAIN = "Redis holds the order cache of the checkout page, with entries keyed by cart and currency"
TABS = "I prefer tabs for indentation in every project of mine"


@pytest.fixture(scope="module")
def held(shared_machine: Machine) -> Machine:
    """A machine on which a person has stated three things; two of them nearly say the same."""
    shared_machine.start()
    for said in (ORDERS, AGAIN, TABS):
        shared_machine.call(
            "csm_memory_save",
            text=said,
            project=str(shared_machine.project),
            asking=str(shared_machine.project),
            by_person=True,
        )
    return shared_machine


def ids(machine: Machine) -> dict[str, str]:
    return {row["text"]: row["id"] for row in machine.call("csm_memory_list")["memories"]}


def fits(shown: str) -> str:
    assert all(len(line) <= 80 for line in shown.splitlines()), shown
    return shown


def typed(machine: Machine, *words: str) -> str:
    """What a person's command shows."""
    terminal = Terminal(*words, cwd=machine.project, environment=machine.environment())
    assert terminal.ends() == 0, terminal.said
    return fits(terminal.said)


def test_beliefs_are_shown_by_kind_with_their_evidence(held: Machine) -> None:
    found = held.csmd("pipeline", "beliefs", "--json")["beliefs"]
    assert {row["kind"] for row in found} <= {"preference", "opinion", "worldview"}
    (row,) = [row for row in found if row["text"] == TABS]
    assert (row["kind"], row["told"], row["sessions"], row["authority"]) == ("preference", 1, 1, "user")
    assert "Preferences" in (shown := fits(held.csmd("pipeline", "beliefs"))) and row["id"] in shown


def test_the_background_puts_what_is_nearly_the_same_into_the_queue(held: Machine) -> None:
    counts = eventually(lambda: held.call("csm_memory_candidate_generate")["counts"].get("near_duplicate"))
    assert counts == {"needs_review": 1}
    assert held.call("csm_memory_candidate_generate")["candidates"] == []


def test_a_merge_is_shown_first_done_when_told_and_taken_back(held: Machine) -> None:
    known = ids(held)
    (found,) = held.csmd("pipeline", "duplicates", "--json")["duplicates"]
    stays, goes = (row["id"] for row in found["memories"])
    assert {stays, goes} == {known[ORDERS], known[AGAIN]} and found["kind"] == "near_duplicate"
    assert f"csmd pipeline merge {goes} {stays}" in fits(held.csmd("pipeline", "duplicates"))

    planned = held.call("csm_memory_merge", id=goes, into=stays)
    assert planned["dry_run"] and [row["id"] for row in planned["actions"]] == [goes]
    assert f"would merge {goes} into {stays}" in fits(held.csmd("pipeline", "merge", goes, stays, "--dry-run"))
    assert len(held.call("csm_memory_dedup_detect")["duplicates"]) == 1
    assert held.call("csm_memory_merge", dry_run=False)["actions"] == [], (
        "without ids only what says the same is merged"
    )

    refused = held.run("pipeline", "merge", goes, stays)
    assert refused.returncode == 1 and f"{goes} is waiting for a person's review" in refused.stderr
    assert "Undo: csmd pipeline merge --undo ID" in typed(held, "pipeline", "merge", goes, stays)
    assert held.call("csm_memory_show", id=goes)["superseded_by"] == stays
    assert "no duplicates" in held.csmd("pipeline", "duplicates")
    assert f"restored: {goes}" in typed(held, "pipeline", "merge", "--undo", goes)
    assert held.call("csm_memory_show", id=goes)["superseded_by"] == ""


def test_what_is_only_nearly_the_same_no_assistant_merges_by_itself(held: Machine) -> None:
    refused = held.run("pipeline", "merge", "--near")
    assert refused.returncode == 1 and "only a person at a terminal can merge near duplicates" in " ".join(
        refused.stderr.split()
    )
    refused = held.run("pipeline", "merge", ids(held)[TABS], ids(held)[ORDERS])
    assert refused.returncode == 1 and "do not say the same" in refused.stderr
    assert held.run("pipeline", "merge", "--undo", ids(held)[TABS], "--near").returncode == 2


def test_nothing_young_is_archived(held: Machine) -> None:
    assert held.csmd("pipeline", "archive") == "nothing to do\n"
    report = held.call("csm_memory_archive_candidate_report")
    assert report["stale"] == [] and sum(report["by_tier"].values()) == 3
    assert held.call("csm_memory_backfill_embeddings")["actions"] == []


def test_a_broken_rule_is_named_with_its_remedy_and_doctor_tells_it(machine: Machine) -> None:
    machine.start()
    saved: dict[str, Any] = machine.call("csm_memory_save", text=TABS, project=str(machine.project), by_person=True)
    shown = fits(machine.csmd("governance"))
    assert "rules hold" in shown and "BROKEN" not in shown
    machine.csmd("stop")
    with sqlite3.connect(machine.paths.database) as damaged:
        damaged.execute("update memories set archive_at = -1")
    machine.start()
    refused = machine.run("governance")
    assert refused.returncode == 1
    assert "BROKEN" in fits(refused.stdout) and saved["id"] in refused.stdout and "try:" in refused.stdout
    assert "a memory cools before it is cold" in machine.run("doctor").stdout
    assert os.path.exists(machine.paths.database)
