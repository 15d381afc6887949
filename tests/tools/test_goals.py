"""What is open is listed with numbers and ids, closed by either, and open again after an undo."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from machine import Machine
from terminal import Terminal

from csmd.errors import BadInput, CsmdError

PROMISE = "I'll mail the seating chart to Noor by Monday."
LEFT = "print the menu cards."


@pytest.fixture
def daemon(machine: Machine) -> Machine:
    """A daemon with a promise of the user's, what a session left to do, and a goal."""
    machine.start()
    lines = [
        machine.line("user", f"Change the menu. {PROMISE}"), machine.line("assistant", "I change it."),
        machine.line("user", ""), machine.line("assistant", f"The menu is changed. Still to do: {LEFT}"),
    ]  # fmt: skip
    change = {"file_path": f"{machine.project}/menu.md", "old_string": "a", "new_string": "b"}
    lines[1]["message"]["content"].append({"type": "tool_use", "id": "t1", "name": "Edit", "input": change})
    lines[2]["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]
    machine.transcript(*lines)
    machine.sync()
    machine.call("csm_goal_set", text="Ship the invitations", project=str(machine.project), by_person=True)
    return machine


def today(daemon: Machine, text: str) -> list[dict[str, Any]]:
    """The lines of a session that changes a file now."""
    lines = [
        daemon.line("user", text, session="s2"),
        daemon.line("assistant", "I do.", session="s2"),
        daemon.line("user", "", session="s2"),
    ]
    change = {"file_path": f"{daemon.project}/menu.md", "old_string": "a", "new_string": "b"}
    lines[1]["message"]["content"].append({"type": "tool_use", "id": "t2", "name": "Edit", "input": change})
    lines[2]["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t2", "content": "done"}]
    now = datetime.now(UTC)
    return [{**line, "timestamp": f"{now:%Y-%m-%dT%H:%M:%S.000Z}"} for line in lines]


def told(daemon: Machine, session: str) -> str:
    """What a session is told at its start."""
    _, body = daemon.event("SessionStart", session, source="startup")
    return json.loads(body)["hookSpecificOutput"]["additionalContext"] if body else ""


def listed(daemon: Machine) -> list[tuple[int, str, str]]:
    rows = daemon.call("csm_open_list", project=str(daemon.project))["open"]
    return [(row["number"], row["kind"], row["text"]) for row in rows]


ALL = [(1, "goal", "Ship the invitations"), (2, "promise", PROMISE), (3, "left open", LEFT)]


def test_whatever_is_open_is_closed_by_number_or_id_and_opened_again(daemon: Machine) -> None:
    assert listed(daemon) == ALL
    here = {"project": str(daemon.project), "by_person": True}
    closed = daemon.call("csm_open_done", id="1 3", **here)["closed"]
    assert listed(daemon) == [(1, "promise", PROMISE)]
    first = told(daemon, "next")
    assert "Ship the invitations" not in first and LEFT.rstrip(".") not in first and "menu.md" in first
    (kept,) = daemon.call("csm_open_done", id=daemon.call("csm_open_list")["open"][0]["id"], **here)["closed"]
    assert listed(daemon) == []
    for answer in (kept, *closed):
        undone = daemon.call("csm_review_undo", id=answer["id"], by_person=True)
        assert (undone["id"], undone["verb"]) == (answer["id"], "done")
    assert listed(daemon) == ALL
    assert f"left open: {LEFT}".rstrip(".") in told(daemon, "after")


def test_a_day_names_on_a_terminal_what_closes_what_is_open_and_not_in_a_file(daemon: Machine) -> None:
    daemon.transcript(*(line for text in ("Tidy the menu.",) for line in today(daemon, text)), session="s2")
    daemon.sync()
    ids = [row["id"] for row in daemon.call("csm_open_list", project=str(daemon.project))["open"][:2]]
    terminal = Terminal("today", cwd=daemon.project, environment=daemon.environment())
    assert terminal.ends() == 0 and all(f"({ident})" in terminal.said for ident in ids), terminal.said
    printed = daemon.csmd("today")
    assert "- Open: Ship the invitations\n" in printed and not any(ident in printed for ident in ids)


def test_what_the_user_said_is_closed_by_a_person_and_what_a_session_left_by_anyone(daemon: Machine) -> None:
    here = {"project": str(daemon.project)}
    for number in ("1", "2"):
        assert daemon.run("done", number).returncode == 1
    assert listed(daemon) == ALL
    assert daemon.call("csm_open_done", id="3", **here)["closed"]
    assert daemon.run("done", "7").stderr.startswith("csmd: there is no open item '7'")


def test_a_goal_of_the_users_is_not_an_assistants_to_close_and_nothing_is_closed_by_no_name(parts: Any) -> None:
    goal = parts.call("csm_goal_set", text="Ship the invitations", project=str(parts.machine.project), by_person=True)
    with pytest.raises(CsmdError, match="the user's statement"):
        parts.call("csm_open_done", id=goal["id"])
    with pytest.raises(BadInput, match="no open item was given"):
        parts.call("csm_open_done", id=" ")


def open_goals(parts: Any) -> list[tuple[str, str]]:
    return [(goal["text"], goal["authority"]) for goal in parts.call("csm_goal_list")["goals"]]


def test_an_undo_removes_a_goal_that_was_set_closes_one_that_was_opened_again_and_opens_one_that_was_done(
    parts: Any,
) -> None:
    here = {"project": str(parts.machine.project), "by_person": True}
    goal = parts.call("csm_goal_set", text="Ship the invitations", **here)
    undone = parts.call("csm_review_undo", by_person=True)
    assert (undone["id"], undone["verb"], undone["text"]) == (goal["id"], "goal", "Ship the invitations")
    assert open_goals(parts) == []
    parts.call("csm_goal_set", text="Ship the invitations", **here)
    assert not parts.call("csm_goal_set", text="ship the  invitations", **here)["new"]
    parts.call("csm_open_done", id=goal["id"], **here)
    parts.call("csm_goal_set", text="Ship the invitations", **here)
    for left in (0, 1, 0):
        parts.call("csm_review_undo", by_person=True)
        assert len(open_goals(parts)) == left
    with pytest.raises(CsmdError, match="nothing to undo"):
        parts.call("csm_review_undo", by_person=True)


def test_an_undo_gives_an_assistants_goal_back_to_it(parts: Any) -> None:
    here = {"project": str(parts.machine.project)}
    parts.call("csm_goal_set", text="Ship the invitations", **here)
    parts.call("csm_goal_set", text="Ship the invitations", by_person=True, **here)
    assert open_goals(parts) == [("Ship the invitations", "user")]
    parts.call("csm_review_undo", by_person=True)
    assert open_goals(parts) == [("Ship the invitations", "assistant")]
