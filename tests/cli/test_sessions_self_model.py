"""`csmd self` and `csmd session digest` over a running daemon: what the sessions on disk come to, within 80 columns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from machine import Machine


def tool(machine: Machine, session: str, name: str, given: dict[str, Any], answer: str) -> list[dict[str, Any]]:
    """A call of a tool and its result, as lines of a transcript."""
    call, result = (machine.line(kind, "", session=session) for kind in ("assistant", "user"))
    call["message"]["content"] = [{"type": "tool_use", "id": call["uuid"], "name": name, "input": given}]
    result["message"]["content"] = [{"type": "tool_result", "tool_use_id": call["uuid"], "content": answer}]
    return [call, result]


def work(machine: Machine, session: str, answer: str) -> None:
    """A session in which the parser is changed and tested."""
    machine.transcript(
        machine.line("user", "fix the offset of the exporter's calendar parser", session=session),
        *tool(machine, session, "Edit", {"file_path": str(machine.project / "zone.py")}, "The file has been updated"),
        *tool(machine, session, "Bash", {"command": "pytest -q"}, answer),
        machine.line("assistant", "The calendar parser keeps the offset of every date now.", session=session),
        session=session,
    )


@pytest.fixture(scope="module")
def worked(shared_machine: Machine) -> Machine:
    """A machine with two sessions at the same work, of which the second was mended."""
    work(shared_machine, "aaaa1111", "Exit code 1\nE   zone.py:9: NameError: tz_name is not defined")
    work(shared_machine, "bbbb2222", "5 passed")
    shared_machine.start()
    shared_machine.sync()
    return shared_machine


def test_the_self_model_is_told_with_what_it_rests_on(worked: Machine) -> None:
    value = worked.csmd("self", "--json")
    tests = next(one for one in value["capabilities"] if one["name"] == "tests")
    assert (tests["well"], tests["decided"], tests["confidence"]) == (1, 2, 0.5)
    assert len(tests["evidence"]) == 2
    assert [one["name"] for one in value["continuity"]] == ["2.1.0"]
    shown = worked.csmd("self")
    assert "tests      few  1 of 2 sessions ended well" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_session_is_shown_with_its_digest_and_what_it_builds_on(worked: Machine) -> None:
    value = worked.csmd("session", "digest", "bbbb", "--json")
    (digest,) = value["digests"]
    assert (digest["outcome"], digest["why"], digest["version"]) == ("checked", "settled", 1)
    (link,) = value["links"]
    assert (link["direction"], link["session"], link["kind"]) == ("builds_on", "aaaa1111", "inferred")
    shown = worked.csmd("session", "digest", "bbbb")
    assert "builds on aaaa1111" in shown and "Outcome: checks passed after the last change" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "Goal: fix the offset" in worked.csmd("session", "show", "aaaa")


def test_digests_are_made_and_viewed_as_tools(worked: Machine) -> None:
    made = worked.csmd("tool", "csm_memory_distill", "--param", "id=aaaa1111", "--json")
    assert made == {"id": "aaaa1111", "made": True}
    seen = worked.csmd("tool", "csm_memory_distilled_view", "--param", f"project={worked.project}", "--json")
    assert [one["session"] for one in seen["digests"]] == ["bbbb2222", "aaaa1111"]
    assert "ended with a failing check" in json.dumps(seen)
