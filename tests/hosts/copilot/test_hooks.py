"""Copilot CLI's hook payloads to events and turns, answers in its form, and its hooks in a file of their own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import BadInput
from csmd.hosts.copilot import hooks, registration
from csmd.hosts.host_files import Registration
from csmd.values import Event

SESSION = "c0b11070-0000-4000-8000-000000000001"
HOME = Path("/h/a home's/csmd")


def decode(name: str, **fields: Any) -> Event | None:
    value = {
        "hook_event_name": name,
        "session_id": SESSION,
        "timestamp": "2026-04-06T10:00:00.250Z",
        "cwd": "/p",
        **fields,
    }
    return hooks.decode_event(json.dumps(value).encode(), name=name, event_id="e1", at="2026-04-06T10:00:00.000Z", counts=Counter())  # fmt: skip


def test_a_prompt_is_the_users_and_a_sub_agents_is_not() -> None:
    event = decode("UserPromptSubmit", prompt="Keep <private>my pin</private> prices in cents.")
    assert event is not None and (event.host, event.session_id, event.by_user) == (
        "copilot",
        f"copilot:{SESSION}",
        True,
    )
    assert "my pin" not in event.text
    turn = hooks.turn_of_event(event)
    assert turn is not None and turn.kind == "user"
    assert decode("UserPromptSubmit", prompt="Find it.", agent_id="a1", parent_agent_id=SESSION) is None


def test_what_copilot_writes_in_the_users_name_is_not_the_users() -> None:
    for prompt in ("<system_notification>\nShell 0 has completed.", "/review the fares"):
        event = decode("UserPromptSubmit", prompt=prompt)
        assert event is not None and not event.by_user


def test_the_end_of_a_sub_agent_is_not_that_of_its_session() -> None:
    stop, agents = decode("Stop"), decode("SubagentStop", agent_id="a1", last_assistant_message="Found.")
    assert stop is not None and hooks.turn_of_event(stop) is None, "it brings no words"
    turn = hooks.turn_of_event(agents) if agents else None
    assert turn is not None and (turn.kind, turn.stream) == ("assistant", f"copilot:{SESSION}/a1")
    assert decode("Stop", agent_id="a1") is None


def test_a_process_that_resumes_a_session_has_nothing_of_what_was_told_before() -> None:
    starts = [decode("SessionStart", source=source) for source in ("new", "resume", "startup")]
    assert [start and start.source for start in starts] == ["startup"] * 3


def test_what_is_no_event_of_csmds_is_dropped_and_what_names_no_session_refused() -> None:
    assert decode("PreToolUse") is None and decode("PreCompact") is None
    for body in (b"[]", b"{", b'{"session_id": 7}', b'{"session_id": ""}'):
        with pytest.raises(BadInput):
            hooks.decode_event(body, name="Stop", event_id="e", at="", counts=Counter())


def test_an_answer_has_copilots_form_and_only_where_it_is_read() -> None:
    assert json.loads(hooks.encode_answer("session_start", "known", "look")) == {"additionalContext": "known"}
    assert hooks.encode_answer("stop", "x") == hooks.encode_answer("prompt", "", "look") == b""


def test_the_hooks_stand_in_a_file_of_their_own_and_run_a_script_of_the_home() -> None:
    merged = registration.merge_copilot_hooks("{}", Registration(home=Path("/h/csmd"), interpreter="p"), "x")
    handlers = {event: group["hooks"][0] for event, (group,) in json.loads(merged)["hooks"].items()}
    assert {event: (one["command"], one["timeout"]) for event, one in handlers.items()} == {
        "SessionStart": ("/h/csmd/hook/copilot SessionStart || true", 10),
        "UserPromptSubmit": ("/h/csmd/hook/copilot UserPromptSubmit || true", 5),
        "Stop": ("/h/csmd/hook/copilot Stop || true", 5),
        "SubagentStop": ("/h/csmd/hook/copilot SubagentStop || true", 5),
        "SessionEnd": ("/h/csmd/hook/copilot SessionEnd || true", 5),
    }


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
def test_what_others_put_into_that_file_stays() -> None:
    wanted = Registration(home=HOME, interpreter="/usr/bin/python3")
    foreign = '{"version": 1, "hooks": {"sessionStart": [{"type": "command", "bash": "say hello"}], "Stop": []}}'
    once = registration.merge_copilot_hooks(foreign, wanted, "x")
    assert registration.merge_copilot_hooks(once, wanted, "x") == once and "say hello" in once
    assert registration.remove_copilot_hooks(once, HOME, "x") == foreign.replace(', "Stop": []', "")


@pytest.mark.parametrize(
    ("text", "state"),
    [(None, "gone"), ("{}", "gone"), ("[", "unknown"), ('{"disableAllHooks": true, "hooks": HOOKS}', "off")],
)
def test_whether_the_hooks_run_is_told_by_that_file(text: str | None, state: str) -> None:
    merged = registration.merge_copilot_hooks("{}", Registration(home=HOME, interpreter="p"), "x")
    text = text and text.replace("HOOKS", json.dumps(json.loads(merged)["hooks"]))
    files = {"/h/.copilot/hooks/csmd.json": text}
    assert registration.hooks_state(Path("/h/.copilot"), HOME, files.get) == state
