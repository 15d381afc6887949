"""Codex' hook payloads to events and turns, and answers in its form."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import BadInput
from csmd.hosts.codex import hooks, registration
from csmd.values import Event

SESSION = "019cb000-0000-7000-8000-000000000001"
FOLDER, HOME = Path("/h/.codex"), Path("/h/csmd")


def decode(name: str, **fields: Any) -> Event | None:
    value = {"session_id": SESSION, "transcript_path": "/c/r.jsonl", "cwd": "/p", "hook_event_name": name, **fields}
    return hooks.decode_event(json.dumps(value).encode(), name=name, event_id="e1", at="2026-03-02T09:00:00.000Z", counts=Counter())  # fmt: skip


def test_a_prompt_is_the_users_and_a_sub_agents_is_not() -> None:
    event = decode("UserPromptSubmit", prompt="Keep <private>my pin</private> prices in cents.")
    assert event is not None and (event.host, event.session_id, event.by_user) == ("codex", f"codex:{SESSION}", True)
    assert "my pin" not in event.text
    turn = hooks.turn_of_event(event)
    assert turn is not None and (turn.kind, turn.session_id) == ("user", f"codex:{SESSION}")
    assert decode("UserPromptSubmit", prompt="Find it.", agent_id="a1", agent_type="default") is None


def test_what_codex_adds_to_a_prompt_is_not_the_users() -> None:
    typed = decode("UserPromptSubmit", prompt="# Context from my IDE setup:\n\n## My request for Codex:\nSort them.")
    notice = decode("UserPromptSubmit", prompt="<environment_context>\n<cwd>/p</cwd>")
    assert typed is not None and (typed.text, typed.by_user) == ("Sort them.", True)
    assert notice is not None and not notice.by_user


def test_final_messages_are_turns_of_their_conversation() -> None:
    stop = decode("Stop", last_assistant_message="Done.", stop_hook_active=False)
    agents = decode("SubagentStop", last_assistant_message="Found.", agent_id="a1", agent_transcript_path="/c/a.jsonl")
    assert stop is not None and agents is not None
    turns = [hooks.turn_of_event(event) for event in (stop, agents)]
    assert [turn and (turn.kind, turn.stream) for turn in turns] == [
        ("assistant", f"codex:{SESSION}"), ("assistant", f"codex:{SESSION}/a1"),
    ]  # fmt: skip
    assert agents.transcript_path == "/c/a.jsonl"


def test_what_is_no_event_of_csmds_is_dropped_and_what_names_no_session_refused() -> None:
    assert decode("PreToolUse") is None
    start = decode("SessionStart", source="resume")
    assert start is not None and (start.name, start.source) == ("session_start", "resume")
    for body in (b"[]", b"{", b'{"session_id": 7}', b'{"session_id": ""}'):
        with pytest.raises(BadInput):
            hooks.decode_event(body, name="Stop", event_id="e", at="", counts=Counter())


def test_an_answer_has_codex_form_and_only_where_it_is_read() -> None:
    answer = json.loads(hooks.encode_answer("session_start", "known", "look"))
    assert answer == {
        "systemMessage": "look",
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "known"},
    }
    assert hooks.encode_answer("stop", "x") == hooks.encode_answer("prompt", "") == b""


@pytest.mark.parametrize(
    ("events", "trusted", "state"),
    [((), (), "gone"), (registration.EVENTS, (), "untrusted"), (registration.EVENTS, ("session_start",), "untrusted"),
     (registration.EVENTS, ("session_start", "user_prompt_submit", "stop", "subagent_stop", "session_end"), "there")],
)  # fmt: skip
def test_hooks_run_where_they_are_registered_and_trusted(events: Any, trusted: tuple[str, ...], state: str) -> None:
    files = {
        "/h/.codex/hooks.json": "\n".join(registration.hook_command(HOME, event) for event in events),
        "/h/.codex/config.toml": "".join(f'[hooks.state."/h/.codex/hooks.json:{event}:0:0"]\n' for event in trusted),
    }
    assert hooks.hooks_state(FOLDER, HOME, files.get) == state
