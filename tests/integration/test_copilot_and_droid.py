"""Copilot CLI and Droid beside Claude Code: their hooks, their files and their settings, on a real daemon."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from machine import Machine

from csmd.hosts.copilot import registration as copilot
from csmd.hosts.droid import registration as droid

SAID = "From now on we always round fares to five cents in the ticket printer."
ASKED = "How are fares rounded in the ticket printer?"
SESSION = "2a1b2c3d-1111-4222-8333-444455550000"
SETTINGS = b'{\n  // mine\n  "customModels": [], "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}\n'
#: Host -> its registration and its configuration directory.
HOSTS: dict[str, tuple[Any, str]] = {"copilot": (copilot, ".copilot"), "droid": (droid, ".factory")}
pytestmark = pytest.mark.parametrize("host", HOSTS)


def installed(machine: Machine, host: str) -> Path:
    """The host's configuration directory, with csmd installed for it."""
    folder = machine.root / HOSTS[host][1]
    folder.mkdir()
    (folder / "settings.json").write_bytes(SETTINGS)
    done = machine.run("install", "--host", "claude", "--host", host, "--no-start")
    assert done.returncode == 0, done.stderr
    return folder


def chat(machine: Machine, host: str, *said: str) -> Path:
    """The transcript of a session in which the user says these and is answered."""
    cwd, lines = str(machine.project), []
    if host == "copilot":
        path = machine.root / ".copilot" / "session-state" / SESSION / "events.jsonl"
        told = [(kind, {"content": words}) for text in said for kind, words in (("user.message", text), ("assistant.message", "It is done."))]  # fmt: skip
        events = [
            ("session.start", {"sessionId": SESSION, "copilotVersion": "1.0.102", "context": {"cwd": cwd}}),
            *told,
        ]
        for number, (kind, data) in enumerate(events):
            at = f"2026-05-04T08:{number:02d}:00.000Z"
            lines.append(
                {"type": kind, "data": data, "id": f"{number:08d}-0000-4000-8000-000000000000", "timestamp": at}
            )
    else:
        path = machine.root / ".factory" / "sessions" / "-project" / f"{SESSION}.jsonl"
        lines.append({"type": "session_start", "id": SESSION, "title": "x", "cwd": cwd})
        for text in said:
            for role, words in (("user", text), ("assistant", "It is done.")):
                number = len(lines)
                message = {"role": role, "content": [{"type": "text", "text": words}]}
                lines.append({"type": "message", "id": f"{number:08d}-0000-4000-8000-000000000000",
                              "timestamp": f"2026-05-04T08:{number:02d}:00.000Z", "message": message})  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    if host == "droid":
        path.with_suffix(".settings.json").write_text('{"tags":[]}')
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def hook(machine: Machine, host: str, event: str, **more: Any) -> str:
    """What the registered line prints for an event."""
    payload = {"session_id": SESSION, "cwd": str(machine.project), "hook_event_name": event, **more}
    line = HOSTS[host][0].HOOKS.command(machine.home, event)
    done = subprocess.run(
        ["bash", "-c", line], input=json.dumps(payload).encode(), capture_output=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b""), line
    if not done.stdout:
        return ""
    answer = json.loads(done.stdout)
    return str(answer["additionalContext"] if host == "copilot" else answer["hookSpecificOutput"]["additionalContext"])


def conversation(machine: Machine, host: str) -> list[tuple[str, str]]:
    """(kind, text) of the session's turns."""
    shown = machine.call("csm_session_transcript", id=f"{host}:{SESSION}")["conversation"]
    return [(turn["kind"], turn["text"]) for turn in shown]


@pytest.mark.invariant("One project, one memory, whatever the assistant")
def test_a_decision_is_told_to_claude_code_at_its_start_and_task(machine: Machine, host: str) -> None:
    installed(machine, host)
    chat(machine, host, SAID)
    machine.start()
    machine.sync()
    assert "round fares to five cents" in machine.hook("SessionStart", "c1", source="startup").decode()
    answer = machine.csmd("recall", "--project", str(machine.project), "--prompt", ASKED, "--json")
    assert "round fares to five cents" in answer["text"] and f"{host}:{SESSION[:8]}" in answer["text"]
    (row,) = [row for row in machine.status()["hosts"] if row["host"] == host]
    assert (row["sessions"], row["turns"], row["hooks"]) == (1, 2, "there")


@pytest.mark.invariant("One project, one memory, whatever the assistant")
def test_a_decision_in_claude_code_is_told_by_the_hosts_own_hooks(machine: Machine, host: str) -> None:
    installed(machine, host)
    machine.conversation("earlier")
    machine.start()
    machine.sync()
    told = hook(machine, host, "SessionStart", source="new" if host == "copilot" else "startup")
    assert "pathlib" in told and "LISTEN" in told, told
    hook(machine, host, "Stop", transcript_path=str(chat(machine, host, "Hello.")))
    machine.sync()
    assert conversation(machine, host) == [("user", "Hello."), ("assistant", "It is done.")]
    assert machine.status()["clients"]["elsewhere"] == [], "its directory is none of Claude Code's"


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
@pytest.mark.parametrize("first", ["hook", "transcript"])
def test_what_hooks_and_transcript_bring_is_one_turn_in_either_order(machine: Machine, host: str, first: str) -> None:
    installed(machine, host)
    path = chat(machine, host) if first == "hook" else chat(machine, host, SAID)
    machine.start()
    machine.sync()
    hook(machine, host, "UserPromptSubmit", prompt=SAID, transcript_path=str(path))
    path = chat(machine, host, SAID)
    hook(machine, host, "Stop", transcript_path=str(path))
    hook(machine, host, "SessionEnd", reason="complete", transcript_path=str(path))
    machine.sync()
    assert conversation(machine, host) == [("user", SAID), ("assistant", "It is done.")]


def test_what_is_reported_without_a_daemon_waits_and_is_taken_in(machine: Machine, host: str) -> None:
    installed(machine, host)
    assert hook(machine, host, "UserPromptSubmit", prompt=SAID) == ""
    (waiting,) = machine.spooled()
    assert waiting.read_bytes().split(b"\n")[0].split(b" ")[3:5] == [host.encode(), b"UserPromptSubmit"]
    machine.start()
    machine.sync()
    assert machine.spooled() == []
    assert conversation(machine, host) == [("user", SAID)]


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
def test_uninstalling_gives_every_file_back(machine: Machine, host: str) -> None:
    folder = installed(machine, host)
    file = HOSTS[host][0].HOOKS.file(folder)
    written = file.read_bytes()
    assert written.count(b"/hook/" + host.encode()) == len(HOSTS[host][0].HOOKS.events)
    assert machine.run("install", "--no-start").returncode == 0 and file.read_bytes() == written
    assert machine.run("uninstall").returncode == 0
    assert (folder / "settings.json").read_bytes() == SETTINGS
    assert [path.name for path in folder.iterdir()] == ["settings.json"]


def test_doctor_runs_a_marker_through_its_hooks_and_says_what_is_wrong(machine: Machine, host: str) -> None:
    folder = installed(machine, host)
    machine.start()

    def look() -> dict[str, Any]:
        done = machine.run("doctor", "--json")
        return {row["id"]: row for row in json.loads(done.stdout)["checks"]}

    checks = look()
    assert (checks["other-assistants"]["level"], checks["capture"]["level"]) == ("ok", "ok"), checks
    (machine.paths.hook_dir / host).write_text("#!/bin/sh\necho no such daemon >&2\n")
    wrong = look()["capture"]["findings"]
    assert [finding["what"] for finding in wrong] == [
        f"the hook for {event} does not work: no such daemon" for event in ("UserPromptSubmit", "Stop")
    ]
    if host == "droid":
        (folder / "hooks.json").write_text('{"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}')
        (finding,) = look()["other-assistants"]["findings"]
        assert "hooks.json" in finding["try"]
    HOSTS[host][0].HOOKS.file(folder).write_text("{}")
    (finding,) = look()["other-assistants"]["findings"]
    assert finding["try"] == f"`csmd install --host {host}`"
