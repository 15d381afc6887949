"""`csmd pipeline advisory`, `csmd context status` and the status line as they are seen, and what a compaction is given back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from machine import CORRECTION, DECISION, PREFERENCE, Machine

from csmd.text import display

SESSION = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
FACTS = [
    f"the {part} of the shop keeps its {thing} in the {place}, since the {cause} in {year} made that necessary for all"
    for part, thing, place, cause, year in zip(
        "cart ledger search mailer importer crawler exporter cashdesk stock billing returns vouchers reports audit".split(),
        "lines postings index queue batches links feeds slips counters invoices parcels codes sums trails".split(),
        "attic barn cellar depot eaves forge garage hall icehouse jetty kiosk loft mill nursery".split(),
        "flood quake storm outage theft leak fire strike audit move merger split recall upgrade".split(),
        range(2001, 2015), strict=True,
    )
]  # fmt: skip


def old(line: dict[str, Any], days: int) -> dict[str, Any]:
    """A transcript's line as it would have been written so many days ago."""
    at = datetime.now(UTC) - timedelta(days=days)
    return {**line, "timestamp": f"{at.strftime('%Y-%m-%dT%H:%M:%S')}.000Z"}


@pytest.fixture(scope="module")
def real(shared_machine: Machine) -> Machine:
    machine = shared_machine
    folder = machine.root / "old"
    for said in (PREFERENCE, CORRECTION, DECISION):
        machine.transcript(old(machine.line("user", said), 90), folder=folder)
    machine.start()
    machine.csmd("import", str(folder), "--no-vectors", "--json")
    return machine


def live(machine: Machine, tokens: int, session: str = SESSION) -> None:
    """A session whose latest message was made from so many tokens, a moment ago."""
    line = old(machine.line("assistant", f"About {tokens}.", session=session), 0)
    usage = {"input_tokens": 3, "cache_read_input_tokens": tokens - 3, "output_tokens": 9}
    line["message"] |= {"model": "claude-sonnet-4-5", "usage": usage}
    machine.transcript(old(machine.line("user", "How much is it?", session=session), 0), line, session=session)
    machine.sync()


def test_a_project_that_was_imported_with_sessions_of_ninety_days_ago_has_a_full_brief(real: Machine) -> None:
    told = real.csmd("brief", "--json")["text"]
    assert "database_url" in told and "pathlib" in told and "LISTEN/NOTIFY" in told


def test_the_advisory_is_a_preview_and_off_until_it_is_wanted(real: Machine) -> None:
    value = real.csmd("pipeline", "advisory", "--json")
    assert value["note"] == "preview, not durable truth" and value["enabled"] is False
    assert "preview, not durable truth" in value["text"].splitlines()[0]
    assert "preview" not in real.call("csm_memory_context", project=str(real.project))["text"]
    debug = real.call("csm_living_state_debug", project=str(real.project))
    assert debug["trimmed"] == ["belief", "capability", "signal", "experience", "warning"]
    assert [one["id"] for one in debug["lines"] if one["told"]] == [item["id"] for item in value["items"]]
    assert all(one["told"] == (one["why"] == "told") for one in debug["lines"])
    for arguments in (["pipeline", "advisory"], ["status"]):
        shown = real.csmd(*arguments)
        assert shown.strip() and all(len(line) <= 80 for line in shown.splitlines())


def test_who_wants_the_living_state_has_it_at_the_end_of_a_brief(machine: Machine) -> None:
    machine.home.mkdir(parents=True, exist_ok=True)
    (machine.home / "config.yaml").write_text("stages:\n  advisory: true\n")
    machine.transcript(machine.line("user", PREFERENCE), machine.line("user", CORRECTION))
    machine.start()
    machine.sync()
    told = machine.csmd("brief", "--json")["text"].splitlines()
    assert told[0].startswith("<csmd-memory ")
    assert told[-3] == "Recent experience (preview, not durable truth):" and told[-1] == "</csmd-advisory>"


def test_how_full_a_live_context_is_is_shown_with_its_bracket(real: Machine) -> None:
    live(real, 40_000)
    assert real.call("csm_session_line", id=SESSION)["line"] == "", "a fresh context is nothing to look at"
    live(real, 164_000)
    (one,) = [one for one in real.call("csm_context_status")["sessions"] if one["session"] == SESSION]
    assert (one["tokens"], one["bracket"], one["recall_tokens"]) == (164_000, "CRITICAL", 175)
    assert "82 %  164,000 of 200,000" in real.csmd("status")
    assert real.call("csm_session_line", id=SESSION)["line"] == "csmd: context 82 % (CRITICAL)"
    assert [one["bracket"] for one in real.status()["live"]] == ["CRITICAL"]


def test_what_follows_a_compaction_depends_on_how_full_the_context_was(real: Machine) -> None:
    for fact in FACTS:
        real.call("csm_memory_save", text=fact, project=str(real.project), by_person=True)

    def told(tokens: int) -> int:
        live(real, tokens)
        _, answer = real.event("SessionStart", SESSION, source="compact", seen=tokens)
        return display.estimate_tokens(json.loads(answer)["hookSpecificOutput"]["additionalContext"])

    little, much = told(30_000), told(170_000)
    assert little <= 450 < much <= 900


def test_a_prompt_in_a_context_that_is_nearly_full_is_told_no_more_than_fits(real: Machine) -> None:
    for fact in FACTS:
        real.call("csm_memory_save", text=fact, project=str(real.project), by_person=True)
    asked = "Since when was it made necessary for all of the shop to keep what it keeps where it does, and why?"

    def told(tokens: int, session: str) -> int:
        live(real, tokens, session)
        _, answer = real.event("UserPromptSubmit", session, prompt=asked)
        return display.estimate_tokens(json.loads(answer)["hookSpecificOutput"]["additionalContext"])

    assert told(170_000, "full") <= min(175, told(10_000, "empty"))
