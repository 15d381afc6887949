"""What csmd's plugin in OpenCode reports to events and turns, and answers in its form."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from csmd.errors import BadInput
from csmd.hosts.opencode import hooks, registration
from csmd.values import Event

HOME, DATA = Path("/h/csmd"), Path("/h/.local/share/opencode")


def decode(name: str, host: str = "opencode", **fields: Any) -> Event | None:
    value = {"session_id": "ses_1", "transcript_path": "/d/opencode.db/ses_1", "cwd": "/p", **fields}
    return hooks.decode_event(host, json.dumps(value).encode(), name=name, event_id="e1", at="2026-03-02T09:00:00.000Z", counts=Counter())  # fmt: skip


@pytest.mark.parametrize("host", ["opencode", "kilo"])
def test_a_prompt_is_a_turn_of_its_session(host: str) -> None:
    event = decode("UserPromptSubmit", host, prompt="Keep <private>my pin</private> prices in cents.")
    assert event is not None and (event.host, event.session_id, event.by_user) == (host, f"{host}:ses_1", True)
    turn = hooks.turn_of_event(event)
    assert "my pin" not in event.text and turn is not None and (turn.kind, turn.session_id) == ("user", f"{host}:ses_1")


def test_a_prompt_of_run_is_without_its_quotes_and_answered_like_any_other() -> None:
    event = decode("UserPromptSubmit", prompt='"Sort the \\"tables\\"."')
    assert event is not None and (event.text, event.by_user) == ('Sort the "tables".', True)


def test_the_end_of_a_turn_brings_no_words_and_names_the_session_in_the_database() -> None:
    event = decode("Stop")
    assert event is not None and hooks.turn_of_event(event) is None
    assert (event.name, event.transcript_path) == ("stop", "/d/opencode.db/ses_1")
    assert decode("PreToolUse") is None
    with pytest.raises(BadInput):
        hooks.decode_event("opencode", b"{}", name="Stop", event_id="e", at="", counts=Counter())


def test_an_answer_is_in_the_form_that_the_plugin_reads_and_only_where_it_reads() -> None:
    answer = json.loads(hooks.encode_answer("prompt", "known", "look"))
    assert answer["systemMessage"] == "look" and answer["hookSpecificOutput"]["additionalContext"] == "known"
    assert hooks.encode_answer("stop", "x") == hooks.encode_answer("prompt", "") == b""


def test_the_plugin_is_there_where_its_file_loads_this_home() -> None:
    for text, state in (
        (registration.plugin_text("kilo", HOME), "there"),
        (registration.plugin_text("kilo", Path("/o/csmd")), "gone"),
        (None, "gone"),
    ):
        assert hooks.hooks_state("kilo", DATA, HOME, {str(registration.plugin_file("kilo")): text}.get) == state
