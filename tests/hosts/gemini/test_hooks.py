"""Gemini CLI's hook payloads to events and turns, and answers in its form."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from csmd.capture import ingest
from csmd.errors import BadInput
from csmd.hosts.gemini import hooks, registration
from csmd.values import Event
from csmd.vocabulary import PROBE_TEXT

SESSION = "0a1b2c3d-1111-4222-8333-444455556666"
FOLDER, HOME = Path("/h/.gemini"), Path("/h/csmd")


def body(name: str, **fields: Any) -> bytes:
    value = {"session_id": SESSION, "transcript_path": "/c/s.jsonl", "cwd": "/p", "hook_event_name": name, **fields}
    return json.dumps(value).encode()


def decode(name: str, **fields: Any) -> Event | None:
    return hooks.decode_event(
        body(name, **fields),
        name=registration.NAMES.get(name, name),
        event_id="e1",
        at="2026-03-02T09:00:00.000Z",
        counts=Counter(),
    )


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_a_prompt_is_the_users_without_what_hooks_and_files_put_into_it() -> None:
    event = decode(
        "BeforeAgent",
        prompt="<hook_context>csmd: &lt;known&gt;</hook_context>\n\nKeep <private>my pin</private> prices in @fare.go."
        "\n--- Content from referenced files ---\nContent from @fare.go:\nsecret\n--- End of content ---",
    )
    assert event is not None and (event.host, event.session_id, event.by_user) == ("gemini", f"gemini:{SESSION}", True)
    assert event.text == "Keep [redacted:private-tag] prices in @fare.go."
    turn = hooks.turn_of_event(event)
    assert turn is not None and (turn.kind, turn.cwd) == ("user", "/p")
    command = decode("BeforeAgent", prompt="/compress")
    assert command is not None and not command.by_user


def test_the_end_of_a_turn_brings_all_that_was_said_in_it() -> None:
    stop = decode("AfterAgent", prompt="x", prompt_response="I will look.\nDone.", stop_hook_active=False)
    silent = decode("AfterAgent", prompt="x", prompt_response="[no response text]")
    assert stop is not None and silent is not None and (stop.name, silent.text) == ("stop", "")
    turn = hooks.turn_of_event(stop)
    assert turn is not None and (turn.kind, turn.text) == ("assistant", "I will look.\nDone.")


def test_what_is_no_event_of_csmds_is_dropped_and_what_names_no_session_refused() -> None:
    assert decode("PreCompress", trigger="auto") is None and decode("BeforeModel", llm_request={}) is None
    start = decode("SessionStart", source="resume")
    assert start is not None and (start.name, start.source) == ("session_start", "resume")
    for broken in (b"[]", b"{", b'{"session_id": 7}', b'{"session_id": ""}'):
        with pytest.raises(BadInput):
            hooks.decode_event(broken, name="Stop", event_id="e", at="", counts=Counter())


def test_an_answer_has_geminis_form_and_only_where_it_is_read() -> None:
    assert json.loads(hooks.encode_answer("prompt", "known", "look")) == {
        "systemMessage": "look",
        "hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "known"},
    }
    assert hooks.encode_answer("stop", "x") == hooks.encode_answer("session_start", "") == b""


def test_a_marker_is_one_under_any_assistant_and_is_never_a_turn() -> None:
    word = "bcdfg"
    marker = {"session_id": f"csmd-probe-{word}", "transcript_path": "", "cwd": ""}
    said = body("BeforeAgent", **marker, prompt=PROBE_TEXT.format(event="prompt", word=word))
    event, _ = ingest.decode_event("gemini", said, name="UserPromptSubmit", event_id="e", at="2026-03-02T09:00:00.000Z")
    assert event is not None and ingest.is_probe(event) and event.session_id == f"csmd-probe-{word}"
    assert not event.by_user


@pytest.mark.parametrize(
    ("settings", "state"),
    [
        (None, "gone"), ("", "gone"), ("{", "unknown"), ("[]", "unknown"), ("{}", "gone"), ("all", "there"),
        ('{"hooksConfig": {"enabled": false}, // off\n', "off"), ("one disabled", "off"), ("one missing", "gone"),
    ],
)  # fmt: skip
def test_hooks_run_where_all_are_registered_and_none_is_switched_off(settings: str | None, state: str) -> None:
    lines = {event: registration.hook_command(HOME, event) for event in registration.EVENTS}
    if settings == "one missing":
        del lines["AfterAgent"]
    own = json.dumps({event: [{"hooks": [{"type": "command", "command": line}]}] for event, line in lines.items()})
    if settings in ("all", "one missing"):
        settings = f'{{"hooks": {own}}}'
    elif settings == "one disabled":
        settings = f'{{"hooks": {own}, "hooksConfig": {{"disabled": ["{lines["AfterAgent"]}"]}}}}'
    elif state == "off":
        settings = f'{settings}"hooks": {own}}}'
    files = {} if settings is None else {"/h/.gemini/settings.json": settings}
    assert registration.hooks_state(FOLDER, HOME, files.get) == state
