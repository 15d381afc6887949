"""One project, one memory: what is said to one assistant is known to the other."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from machine import Machine

from csmd.hosts.codex import registration

THREAD = "019cb000-0000-7000-8000-0000000000aa"
SAID = "From now on we always round fares to five cents in the ticket printer."
ASKED = "How are fares rounded in the ticket printer?"


def installed(machine: Machine) -> Path:
    """Codex' configuration directory, with csmd installed for it."""
    folder = machine.root / ".codex"
    folder.mkdir()
    done = machine.run("install", "--host", "claude", "--host", "codex", "--no-start")
    assert done.returncode == 0, done.stderr
    return folder


def rollout(folder: Path, cwd: Path, *prompts: str) -> Path:
    """A rollout of a session in a terminal, in which the user says these and is answered."""

    def line(ordinal: int, kind: str, payload: dict[str, Any]) -> str:
        at = f"2026-05-04T08:00:{ordinal:02d}.000Z"
        return json.dumps({"timestamp": at, "ordinal": ordinal, "type": kind, "payload": payload})

    head = {"id": THREAD, "session_id": THREAD, "cwd": str(cwd), "source": "cli", "thread_source": "user",
            "cli_version": "0.169.0", "history_mode": "paginated"}  # fmt: skip
    lines = [line(0, "session_meta", head)]
    for text in prompts:
        for kind, words in (("UserMessage", text), ("AgentMessage", "It is done.")):
            item = {"type": kind, "id": f"i{len(lines)}", "content": [{"type": "text", "text": words}]}
            lines.append(line(len(lines), "event_msg", {"type": "item_completed", "item": item}))
    path = folder / "sessions" / "2026" / "05" / "04" / f"rollout-2026-05-04T08-00-00-{THREAD}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def codex_hook(machine: Machine, event: str, **more: Any) -> str:
    """What the registered line prints for an event of a Codex session."""
    payload = {"session_id": "019cb000-0000-7000-8000-0000000000bb", "cwd": str(machine.project),
               "hook_event_name": event, **more}  # fmt: skip
    line = registration.HOOKS.command(machine.home, event)
    done = subprocess.run(
        ["sh", "-c", line], input=json.dumps(payload).encode(), capture_output=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b""), line
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""


@pytest.mark.invariant("One project, one memory, whatever the assistant")
def test_a_decision_in_codex_is_told_to_claude_code_at_its_start_and_task(machine: Machine) -> None:
    rollout(installed(machine), machine.project, SAID)
    machine.start()
    machine.sync()
    brief = machine.hook("SessionStart", "c1", source="startup").decode()
    assert "round fares to five cents" in brief
    answer = machine.csmd("recall", "--project", str(machine.project), "--prompt", ASKED, "--json")
    assert "round fares to five cents" in answer["text"] and "codex:019cb000-0000" in answer["text"]
    hosts = {row["host"]: row for row in machine.status()["hosts"]}
    assert (hosts["codex"]["sessions"], hosts["codex"]["turns"], hosts["codex"]["hooks"]) == (1, 2, "untrusted")
    assert hosts["claude"]["hooks"] == "there"


@pytest.mark.invariant("One project, one memory, whatever the assistant")
def test_a_decision_in_claude_code_is_told_to_codex_by_its_own_hooks(machine: Machine) -> None:
    installed(machine)
    machine.conversation("earlier")
    machine.start()
    machine.sync()
    brief = codex_hook(machine, "SessionStart", source="startup")
    assert "pathlib" in brief and "LISTEN" in brief, brief
    codex_hook(machine, "Stop", last_assistant_message="Done.")
    assert machine.status()["last_event"].keys() >= {"session_start", "stop"}
    (host,) = [row for row in machine.status()["hosts"] if row["host"] == "codex"]
    assert host["last_event"]


def test_a_session_that_is_known_as_one_assistants_is_not_stored_as_anothers_too(machine: Machine) -> None:
    rollout(installed(machine), machine.project, SAID)
    machine.start()
    machine.sync()
    before = machine.status()["counts"]
    machine.hook("UserPromptSubmit", THREAD, prompt=SAID)
    machine.sync()
    assert machine.status()["counts"] == before
    machine.hook("UserPromptSubmit", "another", prompt=SAID)
    machine.sync()
    assert machine.status()["counts"]["sessions"] == before["sessions"] + 1


def test_all_assistants_that_are_here_are_installed_for_at_once(machine: Machine) -> None:
    (machine.root / ".codex").mkdir()
    machine.assistant.mkdir(exist_ok=True)
    assert machine.run("install", "--all", "--host", "codex", "--no-start").returncode == 2
    done = machine.run("install", "--all", "--no-start")
    assert done.returncode == 0, done.stderr
    assert (machine.root / ".codex" / "hooks.json").exists() and (machine.assistant / "settings.json").exists()


def test_what_codex_reports_without_a_daemon_waits_and_is_taken_in(machine: Machine) -> None:
    installed(machine)
    assert codex_hook(machine, "UserPromptSubmit", prompt=SAID) == ""
    (waiting,) = machine.spooled()
    assert waiting.read_bytes().split(b"\n")[0].split(b" ")[3:5] == [b"codex", b"UserPromptSubmit"]
    machine.start()
    machine.sync()
    assert machine.spooled() == []
    (session,) = machine.call("csm_session_list", project=str(machine.project))["sessions"]
    assert session["id"].startswith("codex:")


def test_uninstalling_gives_codex_back_every_byte(machine: Machine) -> None:
    folder = machine.root / ".codex"
    folder.mkdir()
    file = folder / "hooks.json"
    before = b'{\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}'
    file.write_bytes(before)
    shown = machine.run("install", "--host", "codex", "--no-start")
    assert shown.returncode == 0 and "for Codex to run csmd's hooks, start `codex`" in " ".join(shown.stdout.split())
    assert shlex.quote(str(machine.paths.hook_dir / "codex")) in file.read_text()
    assert not (machine.assistant / "settings.json").exists(), "only the assistant that was named"
    written = file.read_bytes()
    assert machine.run("install", "--no-start").returncode == 0 and file.read_bytes() == written
    assert machine.run("uninstall").returncode == 0
    assert file.read_bytes() == before
