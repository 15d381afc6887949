"""Secrets of every kind come in by every way there is; afterwards none stands in any file of the home.

The daemon, the hooks and the files are real. What is looked for is the bytes: as they were planted, as JSON,
URLs, UTF-16 and base64 have them. The configuration is the user's own file and is not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from machine import Machine, ask, call_frames, event_frames, eventually
from planted import Planted, bare, forms, planted

from csmd.privacy.redaction import RULES

HEAD = 8


def one_of_each(way: str) -> list[Planted]:
    """One text for each kind, with secrets that no other way has."""
    first: dict[str, Planted] = {}
    for one in planted("seen", way):
        first.setdefault(one.kind, one)
    assert set(first) <= {rule.kind for rule in RULES} and len(first) > 90
    return list(first.values())


def found_in(root: Path, secrets: Iterable[str]) -> dict[str, set[str]]:
    """Which secrets stand in which files below a folder, in any form."""
    by_head: dict[bytes, list[tuple[bytes, str]]] = {}
    for secret in secrets:
        for form in forms(secret):
            by_head.setdefault(form[:HEAD], []).append((form, secret))
    found: dict[str, set[str]] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.name != "config.yaml"):
        data = path.read_bytes() + b"\n" + str(path).encode()
        for at in range(len(data) - HEAD):
            for form, secret in by_head.get(data[at : at + HEAD], ()):
                if data.startswith(form, at):
                    found.setdefault(str(path.relative_to(root)), set()).add(secret)
    return found


def tool_lines(machine: Machine, one: Planted, number: int) -> list[dict[str, Any]]:
    """A tool's input, as a field and as a command, and what it shows, with a secret in each."""
    asked = machine.line("assistant", "", uuid=f"call-{number}")
    asked["message"]["content"] = [
        {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Bash",
            "input": {"command": one.text, "env": [{"note": one.text}]},
        }
    ]
    shown = machine.line("user", "", uuid=f"shown-{number}")
    shown["message"]["content"] = [
        {"type": "tool_result", "tool_use_id": f"t{number}", "content": [{"type": "text", "text": one.text}]},
        {"type": "tool_result", "tool_use_id": f"t{number}", "content": json.dumps({"said": one.text})},
    ]
    return [asked, shown]


def write_transcripts(machine: Machine, ways: dict[str, list[Planted]]) -> None:
    """A tree of sessions that hold a secret of every kind wherever the assistant may write one."""
    for number, (said, answered, used) in enumerate(zip(ways["user"], ways["assistant"], ways["tool"], strict=True)):
        machine.transcript(machine.line("user", said.text), machine.line("assistant", answered.text))
        machine.transcript(*tool_lines(machine, used, number))
    for number, one in enumerate(ways["title"]):
        machine.transcript(
            {"type": "custom-title", "customTitle": one.text, "sessionId": "s1", "uuid": f"title-{number}"}
        )
    for number, one in enumerate(ways["queued"]):
        line = machine.line("user", "", uuid=f"queued-{number}")
        del line["message"]
        attachment = {"type": "queued_command", "commandMode": "prompt", "prompt": one.text}
        machine.transcript({**line, "type": "attachment", "attachment": attachment})
    agents = machine.assistant / "projects" / "-project" / "s1" / "subagents"
    for number, one in enumerate(ways["agent"]):
        line = machine.line("assistant", one.text, uuid=f"agent-{number}")
        machine.transcript({**line, "isSidechain": True, "agentId": "a1"}, session="agent-a1", folder=agents)
    machine.transcript(*(f'{{"type": "user", "message": {one.text}\n' for one in ways["malformed"]), session="broken")
    for number, one in enumerate(ways["directory"]):
        line = machine.line("user", "go on", session=f"d{number}", cwd=f"/w/{one.secret}/project")
        folder = machine.assistant / "projects" / one.secret.replace("/", "-")
        machine.transcript({**line, "gitBranch": one.text, "slug": one.text}, session=f"d{number}", folder=folder)


def directories(way: str) -> list[Planted]:
    """Secrets that could be a directory's name: those known by themselves, without a slash."""
    return [
        Planted(kind=kind, text=value, secret=value)
        for kind, value in bare(way).items()
        if "/" not in value and len(value) < 150
    ]


@pytest.mark.invariant(
    "No byte of a planted secret is in the home, whichever way it came; what the user left out is captured by no way"
)
def test_of_what_was_planted_by_every_way_no_byte_is_in_the_home(machine: Machine) -> None:
    ways = {
        way: directories(way) if way == "directory" else one_of_each(way)
        for way in ("prompt", "stop", "bad payload", "down", "user", "assistant", "tool", "title", "queued", "agent", "malformed",
                    "directory", "remember", "frames", "configuration")
    }  # fmt: skip
    chosen = "Operation Nightjar"
    refused_before_it_starts(machine, ways["configuration"])
    machine.paths.config_file.write_text(f"privacy.redact: ['{chosen}']\n")
    write_transcripts(machine, ways)
    for place in range(0, len(ways["down"]), 16):  # nobody answers: the hook keeps them in the spool
        told = "\n\n".join(one.text for one in ways["down"][place : place + 16] if one.kind != "private-tag")
        machine.hook("UserPromptSubmit", prompt=f"{told}\n{chosen}", transcript_path="")
    machine.hook("Stop", last_assistant_message=next(one.text for one in ways["down"] if one.kind == "private-tag"))
    assert found_in(machine.paths.spool, [one.secret for one in ways["down"]])  # it is there, and must go
    daemon = machine.start()
    for one in ways["prompt"]:
        machine.event("UserPromptSubmit", "s2", prompt=one.text)
    for one in ways["stop"]:
        machine.event("Stop", "s2", last_assistant_message=one.text, cwd=f"/w/{one.text}")
    for one in ways["bad payload"]:
        ask(machine.socket, event_frames("Stop", b"{" + one.text.encode()))
    for one in ways["remember"]:
        ask(machine.socket, call_frames("csm_memory_save", {"text": f"{one.text} is what it was", "session": one.text}))
    for one in ways["frames"][::3]:
        ask(machine.socket, call_frames("csm_memory_search", {"query": one.text, "all_projects": True}))
        ask(machine.socket, call_frames("csm_memory_save", {"text": [one.text], one.secret: 1}))
        ask(
            machine.socket,
            [*event_frames("Stop", one.text.encode())[:5], one.secret.encode("ascii", "replace")[:150], b"{"],
        )
    machine.sync()
    eventually(lambda: not machine.spooled())
    shown = json.dumps(machine.status()) + machine.csmd("status") + machine.csmd("memories", "--all-projects")
    planted_by = {one.secret: (way, one.kind) for way, rows in ways.items() for one in rows} | {
        chosen: ("words", "chosen")
    }
    everything = list(planted_by)
    machine.event("UserPromptSubmit", "s2", prompt=ways["prompt"][0].text, cwd="/w")
    wal = machine.paths.database.with_name("csmd.db-wal").read_bytes()  # gone with the daemon's end
    assert machine.stop(daemon) == 0
    (machine.home / "kept-wal").write_bytes(wal)
    left = found_in(machine.home, everything)
    assert {name: sorted(planted_by[secret] for secret in secrets) for name, secrets in left.items()} == {}
    assert [secret for secret in everything if secret in shown] == []
    # a search that finds nothing at all would prove nothing
    planted_there = set().union(*found_in(machine.assistant, everything).values())
    assert planted_there >= {
        one.secret for way in ("user", "assistant", "tool", "title", "queued", "agent") for one in ways[way]
    }


def refused_before_it_starts(machine: Machine, ways: list[Planted]) -> None:
    """A daemon that does not like its configuration says so on stderr, which is kept in a file."""
    machine.paths.config_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    told = [one.text for one in ways if one.kind != "private-tag"]
    machine.paths.config_file.write_text(json.dumps({"brief.max_tokens": told}))
    assert machine.run("start").returncode != 0


@pytest.mark.invariant(
    "No byte of a planted secret is in the home, whichever way it came; what the user left out is captured by no way"
)
def test_what_the_user_left_out_is_not_captured_by_any_way(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.config_file.write_text(f"privacy.exclude: ['{machine.root}/clients/*']\n")
    inside = machine.root / "clients" / "a" / "src"
    inside.mkdir(parents=True)
    words = ["heron", "bittern", "egret", "stork"]
    machine.hook("UserPromptSubmit", "s3", prompt=f"say {words[0]} sixteen times", cwd=str(inside))
    machine.transcript(machine.line("user", f"{words[1]} again", session="s4", cwd=str(inside)), session="s4")
    machine.transcript(
        machine.line("user", "this stays", session="s5"),
        machine.line("user", f"{words[2]} in between", session="s5", cwd=str(inside)),
        machine.line("user", "this stays too", session="s5"),
        session="s5",
    )
    daemon = machine.start()
    machine.event("UserPromptSubmit", "s3", prompt=f"{words[3]} now", cwd=str(inside))
    machine.sync()
    status = machine.status()
    assert status["excluded"] == {"events": 2, "transcripts": 1}
    assert status["counts"]["turns"] == 2
    assert "2 events, 1 transcript of projects that you left out" in " ".join(machine.csmd("status").split())
    assert machine.stop(daemon) == 0
    assert (
        found_in(
            machine.home, [f"{word} {rest}" for word in words for rest in ("sixteen", "again", "in between", "now")]
        )
        == {}
    )


def test_a_result_that_comes_after_its_call_was_read_is_withheld_too(machine: Machine) -> None:
    daemon = machine.start()
    asked, shown = tool_lines(machine, Planted(kind="", text="cat .env", secret=""), 1)
    shown["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t1", "content": "the nightingale sings"}]
    machine.transcript(machine.line("user", "look at it"), asked)
    machine.sync()
    machine.transcript(shown)
    machine.sync()
    assert machine.status()["counts"]["turns"] == 3
    assert machine.stop(daemon) == 0
    assert found_in(machine.home, ["nightingale sings"]) == {}


# --- a secret that is known as one only later


TOKEN = "Kx7mQ2pWv9RtZ4nB"
ALONE = f"please keep {TOKEN} at hand for the deploy"
LABELLED = f"the deploy token is {TOKEN}"


@pytest.mark.invariant("A secret once known as one is removed wherever else it stands in its session, also alone")
@pytest.mark.parametrize("hook_first", [True, False])
def test_a_secret_goes_wherever_its_session_says_it_alone_before_and_after_it_is_known(
    machine: Machine, hook_first: bool
) -> None:
    daemon = machine.start()
    said = [ALONE, "and now the rest", LABELLED, f"{TOKEN} again, in Go: os.Setenv(`{TOKEN}`)"]
    lines = [machine.line("user", text) for text in said]
    path = machine.transcript(lines[0]) if not hook_first else None
    if hook_first:
        machine.event("UserPromptSubmit", prompt=said[0])
        machine.event("UserPromptSubmit", prompt=said[2])
        machine.event("UserPromptSubmit", prompt=said[3])
    machine.sync()
    assert hook_first or found_in(machine.home, [TOKEN])  # nothing says yet that it is a secret
    machine.transcript(*(lines if path is None else lines[1:]))
    machine.sync()
    eventually(lambda: "known-again" in json.dumps(machine.call("csm_memory_search", query="deploy")))
    counts = machine.status()["counts"]
    assert (counts["turns"], counts["provisional"]) == (4, 0)
    machine.call("csm_memory_search", query=TOKEN)
    assert machine.stop(daemon) == 0
    assert found_in(machine.home, [TOKEN]) == {}


def test_a_word_that_others_use_stays_though_it_once_was_a_password(machine: Machine) -> None:
    daemon = machine.start()
    machine.transcript(
        machine.line("user", "connect with postgres://app:postgres@db/app and PASSWORD=production2"),
        machine.line("user", "the postgres server of production2 runs nightly"),
    )
    machine.sync()
    found = json.dumps(machine.call("csm_memory_search", query="runs nightly"))
    assert "the postgres server of production2 runs nightly" in found
    assert machine.stop(daemon) == 0


@pytest.mark.invariant(
    "What newer rules know is shown nowhere from the daemon's start on, and reported by kind and count"
)
def test_what_older_rules_let_through_is_shown_nowhere_and_goes_when_it_is_asked_for(machine: Machine) -> None:
    chosen, rest = "Nightjar", "We always deploy on Mondays"
    daemon = machine.start()
    machine.transcript(machine.line("user", f"{rest} with Operation {chosen}."))
    machine.sync()
    machine.work("csm_dream_run", force=True)
    assert machine.stop(daemon) == 0
    pages = machine.paths.memory
    assert found_in(machine.home, [chosen]) and found_in(pages, [chosen])
    machine.paths.config_file.write_text(f"privacy.redact: ['{chosen}']\n")
    daemon = machine.start()

    def shown() -> str:
        said = [machine.call("csm_memory_search", query="deploy Mondays"), machine.call("csm_memory_list")]
        machine.work("csm_memory_export", path=str(machine.root / "out"))
        return json.dumps(said) + (machine.root / "out" / "memories.jsonl").read_text()

    assert rest in shown() and chosen not in shown()
    warnings = eventually(lambda: [one for one in machine.status()["degraded"] if "older rules" in one])
    assert "chosen-word" in warnings[0] and "csmd scan --fix" in warnings[0]
    assert rest in shown() and chosen not in shown()
    assert found_in(pages, [chosen]) == {}
    assert not any(one["is_edited"] for one in machine.call("csm_memory_list")["memories"]), "no page was edited"
    machine.work("csm_privacy_scan", fix=True, by_person=True)
    assert rest in shown() and not [one for one in machine.status()["degraded"] if "older rules" in one]
    assert machine.stop(daemon) == 0
    assert found_in(machine.home, [chosen]) == {}
