"""Droid's hook payloads to events and turns, answers in its form, and its hooks in settings with comments."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import BadInput
from csmd.hosts.droid import hooks, registration
from csmd.hosts.host_files import Registration
from csmd.values import Event

SESSION = "d401d000-0000-4000-8000-000000000001"
FOLDER, HOME = Path("/h/.factory"), Path("/h/a home's/csmd")
COMMENTED = """{
  // mine
  "customModels": [], // none yet
  "hooks": {"hooksDisabled": false, "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]} // loud
}
"""


def decode(name: str, **fields: Any) -> Event | None:
    value = {"session_id": SESSION, "transcript_path": "/c/s.jsonl", "cwd": "/p", "hook_event_name": name, **fields}
    return hooks.decode_event(json.dumps(value).encode(), name=name, event_id="e1", at="2026-04-08T12:00:00.000Z", counts=Counter())  # fmt: skip


def test_a_prompt_is_the_users_and_the_end_of_a_turn_brings_no_words() -> None:
    event = decode("UserPromptSubmit", prompt="<system-reminder>\nx\n</system-reminder>\nPrices are cents.")
    assert event is not None and (event.host, event.text, event.by_user) == ("droid", "Prices are cents.", True)
    turn, stop = hooks.turn_of_event(event), decode("Stop", message_id="m")
    assert turn is not None and (turn.kind, turn.session_id) == ("user", f"droid:{SESSION}")
    assert stop is not None and stop.transcript_path == "/c/s.jsonl" and hooks.turn_of_event(stop) is None
    command = decode("UserPromptSubmit", prompt="/review the fares")
    assert command is not None and not command.by_user


def test_what_is_no_event_of_csmds_is_dropped_and_what_names_no_session_refused() -> None:
    assert decode("PreToolUse") is None
    start = decode("SessionStart", source="resume")
    assert start is not None and (start.name, start.source) == ("session_start", "resume")
    with pytest.raises(BadInput):
        hooks.decode_event(b'{"session_id": ""}', name="Stop", event_id="e", at="", counts=Counter())


def test_an_answer_has_claude_codes_form_and_only_where_it_is_read() -> None:
    answer = json.loads(hooks.encode_answer("session_start", "known", "look"))
    assert answer["hookSpecificOutput"] == {"hookEventName": "SessionStart", "additionalContext": "known"}
    assert hooks.encode_answer("stop", "x") == hooks.encode_answer("prompt", "") == b""


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
def test_ours_stand_behind_others_and_leave_every_byte_alone() -> None:
    wanted = Registration(home=HOME, interpreter="/usr/bin/python3")
    once = registration.merge_droid_hooks(COMMENTED, wanted, "x")
    assert registration.merge_droid_hooks(once, wanted, "x") == once and "say done" in once
    assert registration.remove_droid_hooks(once, HOME, "x") == COMMENTED


@pytest.mark.parametrize(
    ("edit", "others", "state"),
    [
        (("", ""), None, "there"),
        (("", ""), '{"PreToolUse": [{"hooks": []}]}', "there"),
        (("", ""), '{"SessionStart": [{"hooks": []}]}', "off"),
        (('"hooksDisabled": false', '"hooksDisabled": true'), None, "off"),
        (('"SessionStart"', '"Other"'), None, "gone"),
    ],
)
def test_hooks_run_where_they_are_registered_and_nothing_takes_their_place(
    edit: tuple[str, str], others: str | None, state: str
) -> None:
    text = registration.merge_droid_hooks(COMMENTED, Registration(home=HOME, interpreter="p"), "x").replace(*edit, 1)
    files = {"/h/.factory/settings.json": text, "/h/.factory/hooks.json": others}
    assert registration.hooks_state(FOLDER, HOME, files.get) == state
