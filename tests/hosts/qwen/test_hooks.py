"""Qwen Code's hook payloads to events and turns, and answers in its form."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from csmd.hosts.host_files import Registration
from csmd.hosts.qwen import hooks, registration
from csmd.values import Event

SESSION = "1a1b2c3d-1111-4222-8333-444455556666"
HOME = Path("/h/csmd")
WANTED = Registration(home=HOME, interpreter="python3")


def decode(name: str, **fields: Any) -> Event | None:
    value = {"session_id": SESSION, "transcript_path": "/c/s.jsonl", "cwd": "/p", "hook_event_name": name, **fields}
    return hooks.decode_event(
        json.dumps(value).encode(), name=name, event_id="e1", at="2026-03-02T09:00:00.000Z", counts=Counter()
    )


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_a_prompt_is_what_was_typed_and_a_tools_result_is_none() -> None:
    event = decode(
        "UserPromptSubmit", submitted_prompt="Open the gates, see @fare.go",
        prompt="Open the gates, see @fare.go\n--- Content from referenced files ---\nsecret",
    )  # fmt: skip
    older = decode("UserPromptSubmit", prompt="Open the gates\n--- Content from referenced files ---\nsecret")
    assert event is not None and older is not None
    assert (event.host, event.session_id, event.by_user) == ("qwen", f"qwen:{SESSION}", True)
    assert (event.text, older.text) == ("Open the gates, see @fare.go", "Open the gates")
    assert decode("UserPromptSubmit", prompt="") is None and decode("UserPromptSubmit") is None
    command = decode("UserPromptSubmit", prompt="/stats", submitted_prompt="/stats")
    assert command is not None and not command.by_user


def test_final_messages_are_turns_of_their_conversation_and_name_no_wrong_file() -> None:
    stop = decode("Stop", last_assistant_message="Done.", stop_hook_active=False)
    agents = decode(
        "SubagentStop", last_assistant_message="Nine.", agent_id="general-purpose-call_9", agent_transcript_path="/c/other.jsonl"
    )  # fmt: skip
    assert stop is not None and agents is not None and agents.transcript_path == "/c/s.jsonl"
    turns = [hooks.turn_of_event(event) for event in (stop, agents)]
    assert [turn and (turn.kind, turn.stream) for turn in turns] == [
        ("assistant", f"qwen:{SESSION}"), ("assistant", f"qwen:{SESSION}/general-purpose-call_9"),
    ]  # fmt: skip


def test_other_events_are_dropped_and_answers_have_claude_codes_form() -> None:
    assert decode("Notification", message="x") is None and decode("PostToolUseFailure") is None
    start = decode("SessionStart", source="compact", model="m")
    assert start is not None and start.source == "compact"
    assert json.loads(hooks.encode_answer("session_start", "known")) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "known"}
    }
    assert hooks.encode_answer("stop", "x") == b""


@pytest.mark.parametrize(("more", "state"), [({}, "there"), ({"disableAllHooks": True}, "off")])
def test_hooks_run_unless_all_are_switched_off(more: dict[str, Any], state: str) -> None:
    text = json.dumps({**json.loads(registration.merge_qwen_hooks("{}", WANTED, "x")), **more})
    assert registration.hooks_state(Path("/h/.qwen"), HOME, {"/h/.qwen/settings.json": text}.get) == state
    assert registration.hooks_state(Path("/h/.qwen"), HOME, lambda _: None) == "gone"
