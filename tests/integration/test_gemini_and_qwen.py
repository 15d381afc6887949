"""Gemini CLI and Qwen Code beside Claude Code: their hooks, their files and their settings, on a real daemon."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from machine import Machine, eventually

from csmd.hosts.gemini import registration as gemini
from csmd.hosts.qwen import registration as qwen

SAID = "From now on we always round fares to five cents in the ticket printer."
ASKED = "How are fares rounded in the ticket printer?"
SESSION = "2a1b2c3d-1111-4222-8333-444455550000"
SETTINGS = b'{\n  // mine\n  "ui": {"theme": "dark"}, "hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}\n'
#: Host -> its registration, and what it calls a prompt, the end of a turn, and what was said in it.
HOSTS: dict[str, tuple[Any, str, str, str]] = {
    "gemini": (gemini, "BeforeAgent", "AfterAgent", "prompt_response"),
    "qwen": (qwen, "UserPromptSubmit", "Stop", "last_assistant_message"),
}
pytestmark = pytest.mark.parametrize("host", HOSTS)


def installed(machine: Machine, host: str) -> Path:
    """The host's configuration directory, with csmd installed for it."""
    folder = machine.root / f".{host}"
    folder.mkdir()
    (folder / "settings.json").write_bytes(SETTINGS)
    done = machine.run("install", "--host", "claude", "--host", host, "--no-start")
    assert done.returncode == 0, done.stderr
    return folder


def chat(machine: Machine, host: str, *said: str) -> Path:
    """The transcript of a session in which the user says these and is answered twice to each."""
    at = "2026-05-04T08:{:02d}:00.000Z".format
    if host == "gemini":
        path = machine.root / ".gemini" / "tmp" / "project" / "chats" / f"session-2026-05-04T08-00-{SESSION[:8]}.jsonl"
        context = f"<session_context>\n- **Workspace Directories:**\n  - {machine.project}\n</session_context>"
        lines: list[dict[str, Any]] = [
            {"sessionId": SESSION, "projectHash": "0" * 64, "startTime": at(0), "lastUpdated": at(0), "kind": "main"},
            {"$set": {"messages": [{"id": "c", "timestamp": at(0), "type": "user", "content": [{"text": context}]}]}},
        ]
        for number, text in enumerate(said, 1):
            lines += [
                {"id": f"p{number}", "timestamp": at(number), "type": "user", "content": [{"text": text}]},
                {"id": f"a{number}", "timestamp": at(number), "type": "gemini", "content": "I will look."},
                {"id": f"b{number}", "timestamp": at(number), "type": "gemini", "content": "It is done."},
            ]
    else:
        path = machine.root / ".qwen" / "projects" / "-project" / "chats" / f"{SESSION}.jsonl"
        lines, before = [], None
        for number, text in enumerate(said, 1):
            for kind, words in (("user", text), ("assistant", "I will look."), ("assistant", "It is done.")):
                uuid = f"{len(lines):08d}-0000-4000-8000-000000000000"
                role = "user" if kind == "user" else "model"
                lines.append({
                    "uuid": uuid, "parentUuid": before, "sessionId": SESSION, "timestamp": at(number), "type": kind,
                    "cwd": str(machine.project), "version": "0.24.4", "message": {"role": role, "parts": [{"text": words}]},
                })  # fmt: skip
                before = uuid
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def hook(machine: Machine, host: str, event: str, session: str = SESSION, **more: Any) -> str:
    """What the registered line prints for an event."""
    payload = {"session_id": session, "cwd": str(machine.project), "hook_event_name": event, **more}
    line = HOSTS[host][0].HOOKS.command(machine.home, event)
    done = subprocess.run(
        ["bash", "-c", line], input=json.dumps(payload).encode(), capture_output=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b""), line
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""


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
    assert (row["sessions"], row["turns"], row["hooks"]) == (1, 3, "there")


@pytest.mark.invariant("One project, one memory, whatever the assistant")
def test_a_decision_in_claude_code_is_told_by_the_hosts_own_hooks(machine: Machine, host: str) -> None:
    installed(machine, host)
    machine.conversation("earlier")
    machine.start()
    machine.sync()
    prompt, stop, said = HOSTS[host][1:]
    told = hook(machine, host, "SessionStart", source="startup", transcript_path=str(chat(machine, host, "Hello.")))
    assert "pathlib" in told and "LISTEN" in told, told
    assert hook(machine, host, prompt, prompt="") == ""
    hook(machine, host, stop, **{said: "Done."})
    assert machine.status()["last_event"].keys() >= {"session_start", "stop"}
    assert machine.status()["clients"]["elsewhere"] == [], "its directory is none of Claude Code's"


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
@pytest.mark.parametrize("first", ["hook", "transcript"])
def test_what_hooks_and_transcript_bring_is_one_turn_in_either_order(machine: Machine, host: str, first: str) -> None:
    installed(machine, host)
    prompt, stop, said = HOSTS[host][1:]
    # Gemini's hook brings all of a turn in one text, which waits for two minutes until it is known to stand in parts.
    whole = "I will look.\nIt is done." if host == "gemini" else "It is done."
    path = chat(machine, host) if first == "hook" else chat(machine, host, SAID)
    machine.start()
    machine.sync()
    hook(machine, host, prompt, prompt=SAID, transcript_path=str(path))
    hook(machine, host, stop, transcript_path=str(path), **{said: whole})
    path = chat(machine, host, SAID)
    hook(machine, host, "SessionEnd", reason="exit", transcript_path=str(path))
    once = [("user", SAID), ("assistant", "I will look."), ("assistant", "It is done.")]

    def is_once() -> bool:
        machine.sync()
        return [turn for turn in conversation(machine, host) if "\n" not in turn[1]] == once

    eventually(is_once)


@pytest.mark.invariant("What an assistant deletes of its transcripts is not forgotten")
def test_what_a_hook_reported_stays_where_the_file_is_gone_before_it_is_read(machine: Machine, host: str) -> None:
    installed(machine, host)
    machine.start()
    prompt, stop, said = HOSTS[host][1:]
    gone = str(machine.root / f".{host}" / "tmp" / "gone.jsonl")
    hook(machine, host, prompt, prompt=SAID, transcript_path=gone)
    hook(machine, host, stop, transcript_path=gone, **{said: "It is done."})
    hook(machine, host, "SessionEnd", reason="exit", transcript_path=gone)
    machine.sync()
    assert conversation(machine, host) == [("user", SAID), ("assistant", "It is done.")]


def test_what_is_reported_without_a_daemon_waits_and_is_taken_in(machine: Machine, host: str) -> None:
    installed(machine, host)
    prompt = HOSTS[host][1]
    assert hook(machine, host, prompt, prompt=SAID) == ""
    (waiting,) = machine.spooled()
    assert waiting.read_bytes().split(b"\n")[0].split(b" ")[3:5] == [host.encode(), b"UserPromptSubmit"]
    machine.start()
    machine.sync()
    assert machine.spooled() == []
    assert conversation(machine, host) == [("user", SAID)]


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
def test_hooks_and_the_memory_server_share_a_file_and_go_apart(machine: Machine, host: str) -> None:
    file = installed(machine, host) / "settings.json"
    hooked = file.read_bytes()
    assert b"// mine" in hooked and hooked.count(b"/hook/" + host.encode()) == len(HOSTS[host][0].HOOKS.events)
    assert machine.run("mcp", "--install", host).returncode == 0
    both = file.read_bytes()
    assert b'"csmd"' in both and both.count(b"/hook/" + host.encode()) == len(HOSTS[host][0].HOOKS.events)
    assert machine.run("install", "--no-start").returncode == 0 and file.read_bytes() == both
    assert machine.run("mcp", "--remove", host).returncode == 0 and file.read_bytes() == hooked
    assert machine.run("mcp", "--remove", host).returncode == 1
    assert machine.run("mcp", "--install", host).returncode == 0
    assert machine.run("uninstall").returncode == 0
    assert file.read_bytes() == SETTINGS


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
        f"the hook for {event} does not work: no such daemon" for event in HOSTS[host][1:3]
    ]
    (folder / "settings.json").write_text("{}")
    (finding,) = look()["other-assistants"]["findings"]
    assert finding["try"] == f"`csmd install --host {host}`"
    assert not any(row["id"].startswith(host) for row in machine.call("csm_session_list", project="")["sessions"])
    shutil.rmtree(folder)
