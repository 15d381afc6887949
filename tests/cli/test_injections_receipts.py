"""`csmd why --list`: what sessions were told and used; the whole of it by id; what was composed and looked for, in numbers."""

from __future__ import annotations

import sqlite3

import pytest
from machine import Machine

ASKED = "which config key for the database url, was it db_url or database_url?"


@pytest.fixture(scope="module")
def told(shared_machine: Machine) -> Machine:
    """A machine on which a session was told a brief, then something with its prompt, and used it; another was told nothing."""
    machine = shared_machine
    machine.conversation()
    machine.start()
    machine.sync()
    assert machine.event("SessionStart", "first-1", source="startup")[1]
    assert machine.event("UserPromptSubmit", "second-2", prompt=ASKED.replace("db_url or database_url", "it"))[1]
    machine.event("UserPromptSubmit", "second-2", prompt="zebra crossing quorum")
    machine.csmd("search", "database url")
    machine.csmd("search", "database url")
    machine.csmd("search", "xylophone")
    return machine


def test_what_sessions_were_told_is_listed_with_the_sums_of_a_week(told: Machine) -> None:
    found = told.csmd("why", "--list", "--json")
    assert [(one["session_id"], one["event"]) for one in found["receipts"]] == [
        ("second-2", "prompt"), ("first-1", "session_start"),
    ]  # fmt: skip
    week = found["week"]
    assert week["injections"] == 2 and week["items"] == sum(one["items"] for one in found["receipts"])
    assert week["tokens"] == sum(one["tokens"] for one in found["receipts"]) and week["judged"] == 0
    shown = told.csmd("why", "--list")
    assert "told 2 times this week" in shown and all(len(line) <= 80 for line in shown.splitlines())
    assert all(line.startswith("20") for line in shown.splitlines()[1:3]), "the year is not cut"
    shown_id = shown.splitlines()[1].split()[-1]
    assert found["receipts"][0]["id"].startswith(shown_id) and told.csmd("why", shown_id, "--json")["injections"]
    assert "first-1" not in told.csmd("why", "--list", "--session", "second")
    assert "no session here got notes" in told.csmd("why", "--list", "--project", str(told.root))


def test_one_is_shown_in_detail_and_whole(told: Machine) -> None:
    first = told.csmd("why", "--list", "--session", "first", "--json")["receipts"][0]["id"]
    assert "at its start" in told.csmd("why", first)
    whole = told.csmd("context", "get", first, "--json")["items"]
    assert whole and all(item["text"] and item["state"] == "there" for item in whole)
    memory = whole[0]
    assert told.csmd("context", "get", memory["id"], "--json")["items"] == [memory]
    turn = told.call("csm_memory_show", id=memory["id"])["sources"][0]["uuid"]
    (said,) = told.csmd("context", "get", turn, "--json")["items"]
    assert said["state"] == "quoted" and said["text"] in told.csmd("context", "get", turn)
    refused = told.run("context", "get", "nothing-like-it")
    assert refused.returncode == 1 and "there is no memory, turn or receipt" in refused.stderr


def test_what_was_composed_is_noted_also_where_it_came_to_nothing(told: Machine) -> None:
    log = told.call("csm_context_log")
    assert log["events"]["prompt"]["composed"] == 2 and log["events"]["prompt"]["silent"] == 1
    assert log["events"]["session_start"]["silent"] == 0
    assert {one["session_id"] for one in log["log"]} == {"first-1", "second-2"}
    kinds = told.call("csm_recall_report")["kinds"]
    assert (kinds["search"]["asked"], kinds["search"]["asked_again"], kinds["search"]["empty"]) == (3, 1, 1)
    assert kinds["prompt"]["asked"] == 2


@pytest.mark.invariant("What was looked for is noted without a word of it")
def test_what_was_noted_is_written_down_at_the_end_without_a_word_of_it(machine: Machine) -> None:
    machine.conversation()
    machine.start()
    machine.sync()
    machine.event("UserPromptSubmit", "second-2", prompt="zebra crossing quorum")
    machine.csmd("search", "xylophone")
    before = machine.call("csm_recall_report")["kinds"]
    machine.csmd("stop")
    with sqlite3.connect(f"file:{machine.paths.database}?mode=ro", uri=True) as database:
        rows = database.execute("select * from memory_recall_events").fetchall()
        composed = database.execute("select session_id, chosen from context_log").fetchall()
    assert len(rows) == 2 and "xylophone" not in str(rows) and composed == [("second-2", 0)]
    machine.start()
    assert machine.call("csm_recall_report")["kinds"] == before


def test_what_a_session_took_is_told_with_csmds_own_share(told: Machine) -> None:
    took = told.call("csm_context_rollover", id="s1")
    assert (took["messages"], took["output"], took["agents"]["messages"]) == (3, 21, 0)
    assert took["csmd"] == {"injections": 0, "tokens": 0}
    shown = told.csmd("session", "show", "s1")
    assert "3 messages: 21 out, 0 in" in shown and all(len(line) <= 80 for line in shown.splitlines())
    first = told.csmd("session", "show", "second-2", "--json")["usage"]["csmd"]
    assert first["injections"] == 1 and first["tokens"] > 0
