"""Checkpoints and goals through the daemon: the hook is answered, the next session told, and people see what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from machine import Machine, eventually, temporary_directory

from csmd.cli import checkpoints, goals, render
from csmd.recall import checkpoint

ASKED = "Please fix the date parser in dates.py, it loses the time zone when a string has no offset"
ODD = 'a line\twith "quotes" and a \x1b[31mcolour, and\nanother line\n'


@pytest.fixture(scope="module")
def daemon() -> Iterator[Machine]:
    """A daemon with one session, s1, of two turns and one that is odd."""
    made = Machine(root=temporary_directory())
    try:
        made.transcript(made.line("user", ASKED), made.line("assistant", "I will look."), made.line("user", ODD))
        made.start()
        made.sync()
        yield made
    finally:
        made.end()


def told(machine: Machine, session: str, source: str) -> str:
    status, body = machine.event("SessionStart", session, source=source)
    assert status == "ok"
    return str(json.loads(body)["hookSpecificOutput"]["additionalContext"]) if body else ""


def test_a_compaction_is_answered_at_once_kept_and_its_essentials_told_once(daemon: Machine) -> None:
    printed = daemon.hook("PreCompact", trigger="auto", custom_instructions=None).decode()
    assert printed.startswith(f"{checkpoint.KEEP}\nKnown so far: goals: Please fix the date parser")
    (made,) = eventually(lambda: daemon.call("csm_checkpoint_list", session="s1")["checkpoints"])
    assert (made["session_id"], made["why"], made["goal"]) == ("s1", "compaction", ASKED)
    first = told(daemon, "s1", "compact")
    assert f"- {ASKED}" in first and first.count("</csmd-checkpoint>") == 1
    assert "</csmd-checkpoint>" not in told(daemon, "s1", "resume")
    receipts = daemon.call("csm_receipt_show", session="s1")["injections"]
    assert "checkpoint" in {item["state"] for one in receipts for item in one["items"]}


def test_a_checkpoint_on_demand_is_shown_as_it_was_stored_and_restored_for_one_session(daemon: Machine) -> None:
    made = daemon.csmd("checkpoint", "create", "--session", "s1", "--note", "before lunch", "--json")
    assert made["made"] and made["note"] == "before lunch" and made["why"] == "asked"
    eventually(lambda: daemon.call("csm_checkpoint_show", id=made["id"])["captured"] == 3)
    stored = [turn["text"] for turn in daemon.call("csm_session_transcript", id="s1")["conversation"]]
    raw = daemon.call("csm_checkpoint_show", id=made["id"][:6], raw=True)["raw"]
    assert [turn["text"] for turn in raw] == stored
    assert daemon.csmd("checkpoint", "show", made["id"], "--raw") == "".join(f"{said}\n" for said in stored)
    shown = daemon.call("csm_checkpoint_restore", id=made["id"])
    assert told(daemon, "fresh", "startup").startswith(shown["text"])
    assert "csmd-checkpoint" not in told(daemon, "fresher", "startup")
    other = daemon.root / "other"
    other.mkdir()
    daemon.event("UserPromptSubmit", "elsewhere", cwd=str(other), prompt="what is done here is another matter")
    refused = daemon.run("checkpoint", "restore", made["id"], "--session", "elsewhere")
    assert refused.returncode == 1 and "different projects" in refused.stderr


def test_a_goal_is_an_assistants_where_nobody_types_and_a_persons_is_not_an_assistants_to_end(daemon: Machine) -> None:
    project = str(daemon.project)
    theirs = daemon.csmd("goal", "set", "Rewrite everything", "--json")
    assert theirs["authority"] == "assistant" and "Rewrite" not in told(daemon, "g1", "startup")
    done = daemon.run("goal", "set", "Keep the zone", "--json", CLAUDE_CODE_SESSION_ID="s1")
    assert json.loads(done.stdout)["session_id"] == "s1" and "- Keep the zone (" in told(daemon, "s1", "clear")
    daemon.call("csm_open_done", id=json.loads(done.stdout)["id"])
    mine = daemon.call("csm_goal_set", text="Ship the parser", project=project, by_person=True)
    assert "- Ship the parser (" in told(daemon, "g2", "startup")
    assert daemon.run("done", mine["id"]).returncode == 1
    assert daemon.call("csm_open_done", id=theirs["id"])["closed"]
    daemon.call("csm_open_done", id=mine["id"], by_person=True)
    assert "Ship the parser" not in told(daemon, "g3", "startup")
    assert [one["text"] for one in daemon.call("csm_goal_list", project=project)["goals"]] == []
    assert len(daemon.call("csm_goal_list", project=project, done=True)["goals"]) == 3


SCREENS: dict[str, tuple[str, dict[str, Any], Callable[[Any], render.Screen]]] = {
    "list": ("csm_checkpoint_list", {}, checkpoints.show_checkpoints),
    "show": ("csm_checkpoint_show", {"id": "k"}, checkpoints.show_checkpoint),
    "raw": (
        "csm_checkpoint_show",
        {"id": "k", "raw": True},
        lambda value: checkpoints.show_captured(value, is_terminal=True),
    ),
    "restore": ("csm_checkpoint_restore", {"id": "k"}, checkpoints.show_restored),
    "goals": ("csm_goal_list", {"done": True}, goals.show_goals),
}


@pytest.mark.parametrize("name", SCREENS)
def test_what_people_see_fits_a_terminal(
    daemon: Machine, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    daemon.call("csm_goal_set", text="word " * 60, project=str(daemon.project), by_person=True)
    made = daemon.call("csm_checkpoint_create", session="s1", note="x " * 90)
    tool, params, show = SCREENS[name]
    given = {key: made["id"] if value == "k" else value for key, value in params.items()}
    render.show(show(daemon.call(tool, **given)))
    shown = capsys.readouterr().out
    assert shown and all(len(line.rstrip()) <= 80 for line in shown.splitlines()), shown
    assert "\x1b" not in shown, "nothing that was said steers the terminal"


@pytest.mark.parametrize(
    ("tool", "params", "what"),
    [
        ("csm_checkpoint_show", {"id": "k-none"}, "there is no checkpoint"),
        ("csm_checkpoint_create", {"session": "none"}, "there is no session"),
        ("csm_open_done", {"id": "g-none"}, "there is no open item"),
        ("csm_open_done", {"id": " "}, "no open item was given"),
        ("csm_goal_set", {"text": "a goal of nobody's"}, "no project or session was given for the goal"),
        ("csm_goal_set", {"text": "...", "project": "/p"}, "no words to remember"),
    ],
)
def test_what_cannot_be_done_is_said(parts: Any, tool: str, params: dict[str, str], what: str) -> None:
    with pytest.raises(Exception, match=what):
        parts.call(tool, **params)
