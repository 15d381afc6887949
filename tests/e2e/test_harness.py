"""The harness tells the truth: what a hook is given and what it injects is seen, failures included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e import client, scripted_api
from e2e.hosts import claude_code

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.client import Client
    from e2e.conftest import Recorder, Sandbox

pytestmark = pytest.mark.e2e

INJECTED = "The heron stands in the third pond."


def test_the_harness_sees_what_a_hook_injects_and_what_it_is_given(
    sandbox: Sandbox, claude: Client, recorder: Recorder
) -> None:
    recorder.says["SessionStart"] = INJECTED
    sandbox.write_settings({"hooks": recorder.settings("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")})

    run = claude.run(
        "Look at the ponds.",
        {"text": "I will look.", "tool": "Bash", "input": {"command": "echo two-ponds", "description": "Look"}},
        "Two ponds.",
    )

    assert (run.exit_code, claude_code.answer_in(run.stdout)["result"], len(run.main)) == (0, "Two ponds.", 2), run
    first, second = (scripted_api.seen_by_model(body) for body in run.main)
    assert first.count(INJECTED) == 1
    assert f"SessionStart hook additional context: {INJECTED}" in first
    assert "UserPromptSubmit hook additional context" not in second
    assert "two-ponds" not in first.replace("echo two-ponds", "") and "two-ponds" in second
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        assert [payload["session_id"] for payload in recorder.seen(event)] == [run.session_id], event
    assert recorder.seen("UserPromptSubmit")[0]["prompt"] == "Look at the ponds."
    assert (claude_code.reported_failures(run), claude_code.hook_failures(sandbox.home)) == ([], [])


def test_the_harness_can_act_while_a_turn_waits_and_a_session_goes_on(sandbox: Sandbox, claude: Client) -> None:
    gate = sandbox.path / "gate"
    running = claude.start("Count the herons.", {"text": "One heron.", "hold": str(gate)})
    assert "Count the herons." in scripted_api.seen_by_model(running.wait_for_request(1))
    assert not (sandbox.path / "runs" / claude.driver.folder / "1" / "exit_code").exists()
    gate.touch()
    first = running.finish()
    again = claude.run("And the ponds?", "Three.", options=["--resume", first.session_id])

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert again.session_id == first.session_id
    assert "One heron." in scripted_api.seen_by_model(again.main[0])


def test_the_harness_sees_hooks_that_fail(sandbox: Sandbox, claude: Client) -> None:
    broken = [{"hooks": [{"type": "command", "command": "echo broken >&2; exit 1"}]}]
    sandbox.write_settings({"hooks": dict.fromkeys(("SessionStart", "Stop"), broken)})
    run = claude.run("Look at the ponds.", "Two ponds.")

    assert run.exit_code == 0
    assert "broken" in str(claude_code.reported_failures(run))
    if claude.version != "2.0.77":  # that one tells nobody how a Stop hook fared
        events = {(line.get("attachment") or {}).get("hookEvent") for line in claude_code.hook_failures(sandbox.home)}
        assert {"SessionStart", "Stop"} <= events


def test_a_client_of_another_version_is_not_taken_for_the_one_wanted(tmp_path: Path) -> None:
    package, program, _ = claude_code.package_of("2.1.329")
    path = tmp_path / "2.1.329" / "node_modules" / package / program
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\necho '2.1.197 (Claude Code)'\n")
    path.chmod(0o755)
    with pytest.raises(client.ClientMissingError, match=r"2\.1\.197"):
        client.command_of(claude_code.driver("2.1.329"), tmp_path)
    with pytest.raises(client.ClientMissingError, match=r"client\.py install"):
        client.command_of(claude_code.driver("2.1.329"), tmp_path / "elsewhere")
