"""Assistants whose hooks stand in settings, beside Claude Code: hooks, files and settings, on a real daemon."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from machine import Machine, eventually

from csmd.hosts.copilot.registration import HOOKS as COPILOT
from csmd.hosts.droid.registration import HOOKS as DROID
from csmd.hosts.gemini.registration import HOOKS as GEMINI
from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.qwen.registration import HOOKS as QWEN

SAID = "From now on we always round fares to five cents in the ticket printer."
ASKED = "How are fares rounded in the ticket printer?"
SESSION = "2a1b2c3d-1111-4222-8333-444455550000"
SETTINGS = b'{\n  // mine\n  "ui": {"theme": "dark"}, "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}\n'
#: (user or assistant, words, the line's number, its time)
Line = tuple[str, str, int, str]


def _ident(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


def copilot_lines(cwd: str, lines: list[Line]) -> list[dict[str, Any]]:
    start = {"sessionId": SESSION, "copilotVersion": "1.0.102", "context": {"cwd": cwd}}
    rows: list[dict[str, Any]] = [{"type": "session.start", "data": start, "id": _ident(0), "timestamp": "2026-05-04T08:00:00.000Z"}]  # fmt: skip
    return rows + [
        {"type": f"{who}.message", "data": {"content": words}, "id": _ident(number), "timestamp": at}
        for who, words, number, at in lines
    ]


def droid_lines(cwd: str, lines: list[Line]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"type": "session_start", "id": SESSION, "title": "x", "cwd": cwd}]
    return rows + [
        {"type": "message", "id": _ident(number), "timestamp": at, "message": {"role": who, "content": [{"type": "text", "text": words}]}}
        for who, words, number, at in lines
    ]  # fmt: skip


def gemini_lines(cwd: str, lines: list[Line]) -> list[dict[str, Any]]:
    at = "2026-05-04T08:00:00.000Z"
    context = f"<session_context>\n- **Workspace Directories:**\n  - {cwd}\n</session_context>"
    rows: list[dict[str, Any]] = [
        {"sessionId": SESSION, "projectHash": "0" * 64, "startTime": at, "lastUpdated": at, "kind": "main"},
        {"$set": {"messages": [{"id": "c", "timestamp": at, "type": "user", "content": [{"text": context}]}]}},
    ]
    return rows + [
        {"id": _ident(number), "timestamp": at, "type": "user" if who == "user" else "gemini", "content": [{"text": words}]}
        for who, words, number, at in lines
    ]  # fmt: skip


def qwen_lines(cwd: str, lines: list[Line]) -> list[dict[str, Any]]:
    return [
        {
            "uuid": _ident(number), "parentUuid": _ident(number - 1) if number > 1 else None, "sessionId": SESSION,
            "timestamp": at, "type": who, "cwd": cwd, "version": "0.24.4",
            "message": {"role": "user" if who == "user" else "model", "parts": [{"text": words}]},
        }
        for who, words, number, at in lines
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """An assistant: its hooks, its directory, and the form of its transcripts."""

    hooks: HookEntries
    folder: str
    transcript: str
    lines: Callable[[str, list[Line]], list[dict[str, Any]]]
    prompt: str = "UserPromptSubmit"
    stop: str = "Stop"
    said: str = "last_assistant_message"
    """The field with the last words at a turn's end."""
    answers: tuple[str, ...] = ("It is done.",)


HOSTS = {
    "copilot": Host(hooks=COPILOT, folder=".copilot", transcript=f"session-state/{SESSION}/events.jsonl", lines=copilot_lines),
    "droid": Host(hooks=DROID, folder=".factory", transcript=f"sessions/-project/{SESSION}.jsonl", lines=droid_lines),
    "gemini": Host(
        hooks=GEMINI, folder=".gemini", transcript=f"tmp/project/chats/session-2026-05-04T08-00-{SESSION[:8]}.jsonl",
        lines=gemini_lines, prompt="BeforeAgent", stop="AfterAgent", said="prompt_response", answers=("I will look.", "It is done."),
    ),
    "qwen": Host(
        hooks=QWEN, folder=".qwen", transcript=f"projects/-project/chats/{SESSION}.jsonl", lines=qwen_lines,
        answers=("I will look.", "It is done."),
    ),
}  # fmt: skip
every_host = pytest.mark.parametrize("host", HOSTS)
#: Those whose hooks bring the words at a turn's end.
hosts_that_tell_all = pytest.mark.parametrize("host", ["gemini", "qwen"])


def installed(machine: Machine, host: str) -> Path:
    """The host's configuration directory, with csmd installed for it."""
    folder = machine.root / HOSTS[host].folder
    folder.mkdir()
    (folder / "settings.json").write_bytes(SETTINGS)
    done = machine.run("install", "--host", "claude", "--host", host, "--no-start")
    assert done.returncode == 0, done.stderr
    return folder


def chat(machine: Machine, host: str, *prompts: str) -> Path:
    """The transcript of a session in which the user says these and is answered."""
    path = machine.root / HOSTS[host].folder / HOSTS[host].transcript
    words = [
        pair for text in prompts for pair in (("user", text), *(("assistant", part) for part in HOSTS[host].answers))
    ]
    lines = [(who, text, number, f"2026-05-04T08:{number:02d}:00.000Z") for number, (who, text) in enumerate(words, 1)]
    path.parent.mkdir(parents=True, exist_ok=True)
    if host == "droid":
        path.with_suffix(".settings.json").write_text('{"tags":[]}')
    rows = HOSTS[host].lines(str(machine.project), lines)
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    return path


def hook(machine: Machine, host: str, event: str, **more: Any) -> str:
    """What the registered line prints for an event."""
    payload = {"session_id": SESSION, "cwd": str(machine.project), "hook_event_name": event, **more}
    line = HOSTS[host].hooks.command(machine.home, event)
    done = subprocess.run(
        ["bash", "-c", line], input=json.dumps(payload).encode(), capture_output=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b""), line
    answer = json.loads(done.stdout or b"{}")
    return str(answer.get("hookSpecificOutput", answer).get("additionalContext", ""))


def conversation(machine: Machine, host: str) -> list[tuple[str, str]]:
    """(kind, text) of the session's turns."""
    shown = machine.call("csm_session_transcript", id=f"{host}:{SESSION}")["conversation"]
    return [(turn["kind"], turn["text"]) for turn in shown]


def answered(host: str, text: str) -> list[tuple[str, str]]:
    """The turns of a transcript in which the user says this."""
    return [("user", text), *(("assistant", part) for part in HOSTS[host].answers)]


@pytest.mark.invariant("One project, one memory, whatever the assistant")
@every_host
def test_a_decision_is_told_to_claude_code_at_its_start_and_task(machine: Machine, host: str) -> None:
    installed(machine, host)
    chat(machine, host, SAID)
    machine.start()
    machine.sync()
    assert "round fares to five cents" in machine.hook("SessionStart", "c1", source="startup").decode()
    answer = machine.csmd("recall", "--project", str(machine.project), "--prompt", ASKED, "--json")
    assert "round fares to five cents" in answer["text"] and f"{host}:{SESSION[:8]}" in answer["text"]
    (row,) = [row for row in machine.status()["hosts"] if row["host"] == host]
    assert (row["sessions"], row["turns"], row["hooks"]) == (1, len(answered(host, SAID)), "there")


@pytest.mark.invariant("One project, one memory, whatever the assistant")
@every_host
def test_a_decision_in_claude_code_is_told_by_the_hosts_own_hooks(machine: Machine, host: str) -> None:
    installed(machine, host)
    machine.conversation("earlier")
    machine.start()
    machine.sync()
    brief = hook(machine, host, "SessionStart", source="new" if host == "copilot" else "startup")
    assert "pathlib" in brief and "LISTEN" in brief, brief
    assert hook(machine, host, HOSTS[host].prompt, prompt="") == ""
    hook(machine, host, HOSTS[host].stop, transcript_path=str(chat(machine, host, "Hello.")))
    machine.sync()
    assert conversation(machine, host) == answered(host, "Hello.")
    assert machine.status()["last_event"].keys() >= {"session_start", "stop"}
    assert machine.status()["clients"]["elsewhere"] == [], "its directory is none of Claude Code's"


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
@every_host
@pytest.mark.parametrize("first", ["hook", "transcript"])
def test_what_hooks_and_transcript_bring_is_one_turn_in_either_order(machine: Machine, host: str, first: str) -> None:
    installed(machine, host)
    # Gemini's hook brings all of a turn in one text, which waits for two minutes until it is known to stand in parts.
    words = {"gemini": "I will look.\nIt is done.", "qwen": "It is done."}
    path = chat(machine, host) if first == "hook" else chat(machine, host, SAID)
    machine.start()
    machine.sync()
    hook(machine, host, HOSTS[host].prompt, prompt=SAID, transcript_path=str(path))
    hook(machine, host, HOSTS[host].stop, transcript_path=str(path), **{HOSTS[host].said: words.get(host, "")})
    path = chat(machine, host, SAID)
    hook(machine, host, "SessionEnd", reason="exit", transcript_path=str(path))

    def is_once() -> bool:
        machine.sync()
        return [turn for turn in conversation(machine, host) if "\n" not in turn[1]] == answered(host, SAID)

    eventually(is_once)


@pytest.mark.invariant("What an assistant deletes of its transcripts is not forgotten")
@hosts_that_tell_all
def test_what_a_hook_reported_stays_where_the_file_is_gone_before_it_is_read(machine: Machine, host: str) -> None:
    installed(machine, host)
    machine.start()
    gone = str(machine.root / f".{host}" / "tmp" / "gone.jsonl")
    hook(machine, host, HOSTS[host].prompt, prompt=SAID, transcript_path=gone)
    hook(machine, host, HOSTS[host].stop, transcript_path=gone, **{HOSTS[host].said: "It is done."})
    hook(machine, host, "SessionEnd", reason="exit", transcript_path=gone)
    machine.sync()
    assert conversation(machine, host) == [("user", SAID), ("assistant", "It is done.")]


@every_host
def test_what_is_reported_without_a_daemon_waits_and_is_taken_in(machine: Machine, host: str) -> None:
    installed(machine, host)
    assert hook(machine, host, HOSTS[host].prompt, prompt=SAID) == ""
    (waiting,) = machine.spooled()
    assert waiting.read_bytes().split(b"\n")[0].split(b" ")[3:5] == [host.encode(), b"UserPromptSubmit"]
    machine.start()
    machine.sync()
    assert machine.spooled() == []
    assert conversation(machine, host) == [("user", SAID)]


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
@every_host
def test_uninstalling_gives_every_file_back(machine: Machine, host: str) -> None:
    folder, hooks = installed(machine, host), HOSTS[host].hooks
    file = hooks.file(folder)
    written = file.read_bytes()
    assert written.count(b"/hook/" + host.encode()) == len(hooks.events)
    assert machine.run("install", "--no-start").returncode == 0 and file.read_bytes() == written
    assert machine.run("uninstall").returncode == 0
    assert (folder / "settings.json").read_bytes() == SETTINGS
    assert [path.name for path in folder.iterdir()] == ["settings.json"]


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
@hosts_that_tell_all
def test_hooks_and_the_memory_server_share_a_file_and_go_apart(machine: Machine, host: str) -> None:
    file, hooks = installed(machine, host) / "settings.json", HOSTS[host].hooks
    hooked = file.read_bytes()
    assert machine.run("mcp", "--install", host).returncode == 0
    both = file.read_bytes()
    assert b"// mine" in both and b'"csmd"' in both and both.count(b"/hook/" + host.encode()) == len(hooks.events)
    assert machine.run("install", "--no-start").returncode == 0 and file.read_bytes() == both
    assert machine.run("mcp", "--remove", host).returncode == 0 and file.read_bytes() == hooked
    assert machine.run("mcp", "--remove", host).returncode == 1
    assert machine.run("mcp", "--install", host).returncode == 0
    assert machine.run("uninstall").returncode == 0
    assert file.read_bytes() == SETTINGS


@every_host
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
        f"the hook for {event} does not work: no such daemon" for event in (HOSTS[host].prompt, HOSTS[host].stop)
    ]
    if host == "droid":
        (folder / "hooks.json").write_text('{"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}')
        (finding,) = look()["other-assistants"]["findings"]
        assert "hooks.json" in finding["try"]
    HOSTS[host].hooks.file(folder).write_text("{}")
    (finding,) = look()["other-assistants"]["findings"]
    assert finding["try"] == f"`csmd install --host {host}`"
    assert not any(row["id"].startswith(host) for row in machine.call("csm_session_list", project="")["sessions"])
