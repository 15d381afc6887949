"""The plugin's hooks beside the settings': two commands report each event, and it is stored once and answered once."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path
from typing import Any

import pytest
from machine import PREFERENCE, Machine, event_frames, eventually, peer

from csmd.hosts.claude.registration import BASE_TIMEOUTS
from csmd.installer import plan

ROUNDS = 12
ASKED = "How do we join paths in this code, pathlib over os.path?"


@pytest.fixture(scope="module")
def daemon(shared_machine: Machine) -> Machine:
    """A daemon that has something to tell at a session's start and on the prompt that asks for it."""
    shared_machine.conversation("earlier")
    shared_machine.start()
    shared_machine.sync()
    return shared_machine


def both(machine: Machine, name: str, session: str, **more: Any) -> list[bytes]:
    """What the two commands would print that report one event at the same moment, each on a connection of its own."""
    payload = {"session_id": session, "cwd": str(machine.project), "hook_event_name": name, **more}
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(peer(machine.socket)) for _ in range(2)]
        for dealer in random.sample(peers, 2):
            dealer.send_multipart(event_frames(name, payload, ident=os.urandom(16).hex()))
        answers = []
        for dealer in peers:
            assert dealer.poll(20_000), "no answer"
            status, body = dealer.recv_multipart()
            assert status == b"ok"
            answers.append(body)
    return answers


@pytest.mark.invariant("Of two commands that report one event exactly one is answered")
@pytest.mark.parametrize(
    ("name", "more"), [("SessionStart", {"source": "startup"}), ("UserPromptSubmit", {"prompt": ASKED})]
)
def test_of_two_commands_at_once_exactly_one_is_told_something(
    daemon: Machine, name: str, more: dict[str, str]
) -> None:
    before = daemon.status()["counts"]["events"]
    for number in range(ROUNDS):
        answers = [body for body in both(daemon, name, f"{name}-{number}", **more) if body]
        assert len(answers) == 1 and b"pathlib" in answers[0], (number, answers)
    assert daemon.status()["counts"]["events"] - before == ROUNDS
    receipts = [row for row in daemon.call("csm_receipts", limit=100)["receipts"] if row["session_id"].startswith(name)]
    assert len(receipts) == ROUNDS, "what nobody was told has no receipt"


def test_what_two_commands_leave_in_the_spool_becomes_one_turn(machine: Machine) -> None:
    """As registered in the settings and as the plugin has it: both are run with no daemon there."""
    for event, answer in (
        ("UserPromptSubmit", {"prompt": PREFERENCE}),
        ("Stop", {"last_assistant_message": "It is done."}),
    ):
        for _ in range(2):
            machine.hook(event, "spooled", prompt_id="p1", **answer)
    assert len(machine.spooled()) == 4
    machine.start()
    eventually(lambda: not machine.spooled())
    machine.sync()
    counts = machine.status()["counts"]
    assert (counts["events"], counts["turns"]) == (2, 2), counts


def test_the_plugin_has_the_events_and_timeouts_of_the_settings_and_no_others() -> None:
    import json

    root = plan.find_shipped_folder().parent
    hooks = json.loads((root / "hooks" / "hooks.json").read_text())["hooks"]
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()} == dict(BASE_TIMEOUTS)
    for event, groups in hooks.items():
        (group,) = groups
        (handler,) = group["hooks"]
        script = handler["command"].split("${CLAUDE_PLUGIN_ROOT}/hooks/")[1].split('"')[0]
        assert handler["command"] == f'sh "${{CLAUDE_PLUGIN_ROOT}}/hooks/{script}" 2>/dev/null || true'
        assert f"event={event}\n" in (root / "hooks" / script).read_text()


def test_the_plugins_manifests_are_true() -> None:
    import json

    import csmd

    root = plan.find_shipped_folder().parent
    manifest = json.loads((root / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((root / ".claude-plugin" / "marketplace.json").read_text())
    assert manifest["version"] == csmd.__version__
    assert [(plugin["name"], plugin["source"]) for plugin in market["plugins"]] == [(manifest["name"], "./")]
    skill = root / Path(manifest["skills"]) / "memory" / "SKILL.md"
    assert skill.read_text().startswith("---\nname: memory\ndescription: ")
    assert not (root / ".mcp.json").exists(), "it would count as a project's of whoever opens this repository"
