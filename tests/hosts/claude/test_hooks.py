"""What Claude Code's hooks hand over, version by version, and what csmd makes of it and answers."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hosts.claude.test_transcript import DATA, DEEP, FENCED, REMINDER, bytes_of, read, user

from csmd.conversation import Failure
from csmd.errors import BadInput
from csmd.hook_events import EVENTS
from csmd.hosts.claude import hooks
from csmd.hosts.hook_payloads import EVENT_BY_HOOK


@pytest.mark.parametrize(
    ("name", "known", "more"),
    [
        (
            "StopFailure",
            "stop_failure",
            {"error": "unknown", "last_assistant_message": "API Error: 400 scripted error"},
        ),
        ("StopFailure", "stop_failure", {"error": "rate_limit", "error_details": "x"}),
        ("PostCompact", "post_compact", {"trigger": "auto", "compact_summary": "<summary>\nWe chose X.\n</summary>"}),
    ],
)
def test_of_an_error_and_of_a_compaction_the_hook_keeps_no_words(name: str, known: str, more: dict[str, str]) -> None:
    body = bytes_of({"session_id": "s1", "cwd": "/p", "transcript_path": "/t.jsonl", "hook_event_name": name, **more})
    event = hooks.HOOKS.decode_event(body, name=name, event_id="e1", at="t", counts=Counter())
    assert event is not None
    assert (event.name, event.text, event.source, event.transcript_path) == (
        known, "", more.get("trigger", ""), "/t.jsonl",
    )  # fmt: skip
    assert hooks.HOOKS.make_turn(event) is None and hooks.HOOKS.encode_answer(event.name, "words") == b""


FAILED: dict[str, Any] = {
    "session_id": "s1", "cwd": "/p", "transcript_path": "/t.jsonl", "hook_event_name": "PostToolUseFailure",
    "tool_name": "Bash", "tool_input": {"command": "go build ./...", "description": "build"},
    "tool_use_id": "toolu_1", "error": "Exit code 3\noops", "is_interrupt": False, "duration_ms": 12,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({}, Failure(tool="Bash", command="go build ./...", output="Exit code 3\noops")),
        ({"tool_name": "mcp__db__ask", "tool_input": {"command": "x"}}, Failure(tool="mcp__db__ask", command="", output="Exit code 3\noops")),
        ({"tool_input": 7, "error": ["x"]}, Failure(tool="Bash", command="", output="")),
        ({"error": "Exit code 1\n<csmd-failure>told</csmd-failure>oops"}, Failure(tool="Bash", command="go build ./...", output="Exit code 1\noops")),
        ({"tool_input": {"command": "curl -H 'Authorization: Bearer sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789'"}},
         Failure(tool="Bash", command="curl -H 'Authorization: Bearer [redacted:anthropic-key]'", output="Exit code 3\noops")),
        ({"is_interrupt": True}, None),
        ({"tool_name": "Read", "tool_input": {"file_path": "/x"}}, None),
        ({"tool_name": ""}, None),
    ],
)  # fmt: skip
def test_of_a_tool_that_failed_the_hook_tells_what_its_transcript_will_and_nothing_is_a_turn(
    changes: dict[str, Any], failure: Failure | None
) -> None:
    body = bytes_of({**FAILED, **changes})
    event = hooks.HOOKS.decode_event(body, name="PostToolUseFailure", event_id="e1", at="t", counts=Counter())
    assert (event.failure if event else None) == failure
    if event is not None:
        assert (event.name, event.text, hooks.HOOKS.make_turn(event)) == ("tool_failure", "", None)
        assert (
            json.loads(hooks.HOOKS.encode_answer(event.name, "words"))["hookSpecificOutput"]["hookEventName"]
            == "PostToolUseFailure"
        )


def test_of_an_endless_failure_both_ends_are_looked_at() -> None:
    body = bytes_of({**FAILED, "error": "Exit code 1\n" + "x " * 3_000_000 + "\nthe end"})
    event = hooks.HOOKS.decode_event(body, name="PostToolUseFailure", event_id="e1", at="t", counts=Counter())
    assert event is not None and event.failure is not None
    assert len(event.failure.output) < 40_000 and event.failure.output.endswith("the end")


EXPECTED_EVENTS: dict[str, list[tuple[str, str, str]]] = {
    "2.0.77": [
        ("session_start", "startup", ""), ("prompt", "", "Say something MARKER1"), ("subagent_stop", "", ""),
        ("stop", "", ""), ("session_end", "other", ""),
    ],
    "2.1.100": [
        ("session_start", "startup", ""), ("prompt", "", "Say something MARKER1"),
        ("stop", "", "All done: the answer is 42."), ("session_end", "other", ""),
    ],
    "2.1.197": [
        ("session_start", "startup", ""), ("prompt", "", "please do beta"), ("stop", "", "ALPHA-DONE"),
        ("pre_compact", "manual", ""), ("session_start", "compact", ""), ("post_compact", "manual", ""),
        ("session_end", "clear", ""), ("session_start", "clear", ""), ("session_start", "resume", ""), ("prompt", "", "and epsilon"),
        ("prompt", "", "use subagents"), ("subagent_stop", "", "SUB-FG-REPORT"), ("subagent_stop", "", "SUB-BG-REPORT"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("version", ["2.0.77", "2.1.100", "2.1.197", "2.1.329"])
def test_a_real_payload_becomes_an_event_or_nothing(version: str) -> None:
    found = []
    for body in (DATA / version / "hooks.jsonl").read_bytes().splitlines():
        payload = json.loads(body)
        event = hooks.HOOKS.decode_event(body, name=payload["hook_event_name"], event_id="e1", at="t", counts=Counter())
        if event is None:
            assert payload["hook_event_name"] not in EVENT_BY_HOOK or payload["agent_type"] == ""
            continue
        found.append((event.name, event.source, event.text))
        assert (event.id, event.at, event.session_id) == ("e1", "t", payload["session_id"])
        assert event.cwd.startswith("/sandbox") and event.transcript_path.endswith(".jsonl")
        assert bool(event.agent_id) == (event.name == "subagent_stop")
        assert event.by_user == (event.name == "prompt" and not event.text.startswith(("/", "<")))
    if version in EXPECTED_EVENTS:
        assert found == EXPECTED_EVENTS[version]
    else:
        assert ("prompt", "", "queued prompt") in found and ("session_start", "fork", "") in found
        assert any(said.startswith("<task-notification>") for _, _, said in found)


def event(**payload: Any) -> Any:
    name = payload.pop("name", "UserPromptSubmit")
    return hooks.HOOKS.decode_event(
        bytes_of({"session_id": "s1", **payload}), name=name, event_id="e1", at="t", counts=Counter()
    )


def test_the_summariser_of_a_compaction_is_no_sub_agent() -> None:
    assert event(name="SubagentStop", agent_type="", last_assistant_message="summary") is None
    assert (
        event(
            name="SubagentStop", agent_type="x", agent_id="a1", agent_transcript_path="/a", transcript_path="/t"
        ).transcript_path
        == "/a"
    )


@pytest.mark.parametrize("name", ["PreToolUse", "", "sessionstart", "SessionStart ", "Nothing"])
def test_an_event_csmd_does_not_need_is_nothing_whatever_its_payload(name: str) -> None:
    assert hooks.HOOKS.decode_event(b"\xff{", name=name, event_id="e1", at="t", counts=Counter()) is None


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"session_id":7}', b'{"session_id":""}', b'{"session_id":"\\u0000"}',
                                  bytes_of({"session_id": "s" * 201}), b"[" * DEEP])  # fmt: skip
def test_a_malformed_payload_is_bad_input(body: bytes) -> None:
    with pytest.raises(BadInput):
        hooks.HOOKS.decode_event(body, name="Stop", event_id="e1", at="t", counts=Counter())


def test_a_prompt_is_redacted_and_counted_and_its_provisional_turn_is_the_transcripts() -> None:
    counts: Counter[str] = Counter()
    said = f"{REMINDER}my key: sk-ant-{'e5' * 20} <private>and this</private> {FENCED} \0end"
    body = bytes_of({"session_id": "s1", "prompt": said, "cwd": "/p", "source": "x\ud800"})
    found = hooks.HOOKS.decode_event(body, name="UserPromptSubmit", event_id="e1", at="t", counts=counts)
    assert found is not None and found.source == "x?"
    assert counts == {"anthropic-key": 1, "private-tag": 1}
    turn = hooks.HOOKS.make_turn(found)
    (from_transcript,) = read(user(said)).turns
    assert turn is not None and (turn.uuid, turn.kind, turn.text) == ("hook:e1", "user", from_transcript.text)


def test_a_turn_is_reported_only_by_events_with_words() -> None:
    assert hooks.HOOKS.make_turn(event(prompt="/hello x")).kind == "command"
    assert hooks.HOOKS.make_turn(event(prompt="<task-notification>x")).kind == "notification"
    assert hooks.HOOKS.make_turn(event(name="Stop", last_assistant_message="done")).kind == "assistant"
    assert hooks.HOOKS.make_turn(event(name="SubagentStop", agent_id="a", last_assistant_message="r")).stream == "s1/a"
    for silent in (
        event(prompt=""),
        event(prompt=FENCED),
        event(prompt=["x"]),
        event(name="SessionStart", prompt="x"),
        event(name="Stop"),
    ):
        assert hooks.HOOKS.make_turn(silent) is None


def test_only_events_that_inject_are_answered() -> None:
    for name, rule in EVENTS.items():
        found = hooks.HOOKS.encode_answer(name, "remember")
        assert bool(found) == rule.can_inject
        assert hooks.HOOKS.encode_answer(name, "") == b""
        if name == "pre_compact":
            assert found == b"remember\n"
        elif found:
            assert json.loads(found)["hookSpecificOutput"]["additionalContext"] == "remember"
