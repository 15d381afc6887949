"""Hook payloads of the assistants that took over Claude Code's form: to events and turns, and answers in each one's form."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from csmd.capture import ingest
from csmd.conversation import Event
from csmd.errors import BadInput
from csmd.hosts.adapters import ADAPTERS
from csmd.vocabulary import PROBE_TEXT

SESSION = "019cb000-0000-7000-8000-000000000001"
HOSTS = ["codex", "copilot", "droid", "gemini", "qwen", "opencode", "kilo"]
IDE = "# Context from my IDE setup:\n\n## My request for Codex:\n"
FILES = "\n--- Content from referenced files ---\nContent from @fare.go:\nsecret\n--- End of content ---"


def body(name: str, **fields: Any) -> bytes:
    value = {"session_id": SESSION, "transcript_path": "/c/s.jsonl", "cwd": "/p", "hook_event_name": name, **fields}
    return json.dumps(value).encode()


def decode(host: str, name: str, **fields: Any) -> Event | None:
    return ADAPTERS[host].hooks.decode_event(
        body(name, **fields), name=name, event_id="e1", at="2026-03-02T09:00:00.000Z", counts=Counter()
    )


def decoded(host: str, name: str, **fields: Any) -> Event:
    event = decode(host, name, **fields)
    assert event is not None
    return event


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
@pytest.mark.parametrize("host", HOSTS)
def test_a_prompt_is_the_users_turn_in_a_session_with_the_hosts_name(host: str) -> None:
    event = decoded(host, "UserPromptSubmit", prompt="Keep <private>my pin</private> prices in cents.")
    assert (event.host, event.session_id, event.by_user) == (host, f"{host}:{SESSION}", True)
    assert event.text == "Keep [redacted:private-tag] prices in cents."
    turn = ADAPTERS[host].hooks.make_turn(event)
    assert turn is not None and (turn.kind, turn.session_id, turn.cwd) == ("user", event.session_id, "/p")


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
@pytest.mark.parametrize(
    ("host", "fields", "text", "by_user"),
    [
        ("codex", {"prompt": f"{IDE}Sort them."}, "Sort them.", True),
        ("codex", {"prompt": "<environment_context>\n<cwd>/p</cwd>"}, None, False),
        ("copilot", {"prompt": "<system_notification>\nShell 0 has completed."}, None, False),
        ("copilot", {"prompt": "/review the fares"}, "/review the fares", False),
        ("droid", {"prompt": "<system-reminder>\nx\n</system-reminder>\nPrices are cents."}, "Prices are cents.", True),
        ("droid", {"prompt": "/review the fares"}, "/review the fares", False),
        (
            "gemini",
            {"prompt": f"<hook_context>csmd: &lt;known&gt;</hook_context>\n\nKeep prices in @fare.go.{FILES}"},
            "Keep prices in @fare.go.",
            True,
        ),
        ("gemini", {"prompt": "/compress"}, "/compress", False),
        (
            "qwen",
            {"prompt": f"Open it, see @fare.go{FILES}", "submitted_prompt": "Open @fare.go"},
            "Open @fare.go",
            True,
        ),
        ("qwen", {"prompt": f"Open the gates{FILES}"}, "Open the gates", True),
        ("qwen", {"prompt": "/stats", "submitted_prompt": "/stats"}, "/stats", False),
        ("opencode", {"prompt": '"Sort the \\"tables\\"."'}, 'Sort the "tables".', True),
    ],
)
def test_what_a_host_adds_to_a_prompt_or_writes_itself_is_not_the_users(
    host: str, fields: dict[str, str], text: str | None, by_user: bool
) -> None:
    event = decoded(host, "UserPromptSubmit", **fields)
    assert event.by_user is by_user and event.text == (event.text if text is None else text)


@pytest.mark.parametrize(
    ("host", "name", "fields"),
    [
        ("codex", "UserPromptSubmit", {"prompt": "Find it.", "agent_id": "a1", "agent_type": "default"}),
        ("copilot", "UserPromptSubmit", {"prompt": "Find it.", "agent_id": "a1", "parent_agent_id": SESSION}),
        ("copilot", "Stop", {"agent_id": "a1"}),
        ("qwen", "UserPromptSubmit", {"prompt": ""}),  # after the result of a tool
        ("qwen", "UserPromptSubmit", {}),
        *((host, "PreToolUse", {}) for host in HOSTS),
        *((host, "PreCompact", {"trigger": "auto"}) for host in HOSTS),
        *((host, "PostToolUseFailure", {"tool_name": "Bash", "error": "Exit code 1"}) for host in HOSTS),
    ],
)
def test_what_is_no_event_of_the_session_is_dropped(host: str, name: str, fields: dict[str, Any]) -> None:
    assert decode(host, name, **fields) is None


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("broken", [b"[]", b"{", b"{}", b'{"session_id": 7}', b'{"session_id": ""}'])
def test_what_names_no_session_is_refused(host: str, broken: bytes) -> None:
    with pytest.raises(BadInput):
        ADAPTERS[host].hooks.decode_event(broken, name="Stop", event_id="e", at="", counts=Counter())


@pytest.mark.parametrize("host", HOSTS)
def test_a_start_says_how_it_began_and_copilots_tells_what_another_process_was_told_anew(host: str) -> None:
    events = [decoded(host, "SessionStart", source=source) for source in ("startup", "resume", "new")]
    sources = ["startup"] * 3 if host == "copilot" else ["startup", "resume", "new"]
    assert [(event.name, event.source) for event in events] == [("session_start", source) for source in sources]


MESSAGE = {"last_assistant_message": "Done."}


@pytest.mark.parametrize(
    ("host", "name", "fields", "agent", "path"),
    [
        ("codex", "Stop", MESSAGE, "", "/c/s.jsonl"),
        (
            "codex",
            "SubagentStop",
            {**MESSAGE, "agent_id": "a1", "agent_transcript_path": "/c/a.jsonl"},
            "/a1",
            "/c/a.jsonl",
        ),
        ("copilot", "SubagentStop", {**MESSAGE, "agent_id": "a1"}, "/a1", "/c/s.jsonl"),
        ("gemini", "Stop", {"prompt": "x", "prompt_response": "Done."}, "", "/c/s.jsonl"),
        ("qwen", "Stop", MESSAGE, "", "/c/s.jsonl"),
        # The file that Qwen Code names here is the session's.
        (
            "qwen",
            "SubagentStop",
            {**MESSAGE, "agent_id": "a-1", "agent_transcript_path": "/c/o.jsonl"},
            "/a-1",
            "/c/s.jsonl",
        ),
    ],
)
def test_final_messages_are_turns_of_their_conversation(
    host: str, name: str, fields: dict[str, str], agent: str, path: str
) -> None:
    event = decoded(host, name, **fields)
    turn = ADAPTERS[host].hooks.make_turn(event)
    assert turn is not None and (turn.kind, turn.text) == ("assistant", "Done.")
    assert (turn.stream, event.transcript_path) == (f"{host}:{SESSION}{agent}", path)


@pytest.mark.parametrize(
    ("host", "fields"),
    [
        ("copilot", {}),
        ("droid", {"message_id": "m"}),
        ("gemini", {"prompt": "x", "prompt_response": "[no response text]"}),
        ("opencode", {}),
        ("kilo", {}),
    ],
)
def test_the_end_of_a_turn_without_words_is_no_turn(host: str, fields: dict[str, str]) -> None:
    event = decoded(host, "Stop", **fields)
    assert event.name == "stop" and ADAPTERS[host].hooks.make_turn(event) is None


@pytest.mark.parametrize("host", HOSTS)
def test_an_answer_has_the_hosts_form_and_only_where_it_is_read(host: str) -> None:
    event = "BeforeAgent" if host == "gemini" else "UserPromptSubmit"
    answer = {"systemMessage": "look", "hookSpecificOutput": {"hookEventName": event, "additionalContext": "known"}}
    hooks = ADAPTERS[host].hooks
    # Copilot shows its user nothing of a hook's.
    assert json.loads(hooks.encode_answer("prompt", "known", "look")) == (
        {"additionalContext": "known"} if host == "copilot" else answer
    )
    assert bool(hooks.encode_answer("session_start", "", "look")) == (host != "copilot")
    assert hooks.encode_answer("stop", "x") == hooks.encode_answer("prompt", "") == b""


def test_a_marker_is_one_under_any_assistant_and_is_never_a_turn() -> None:
    word = "bcdfg"
    marker = {"session_id": f"csmd-probe-{word}", "transcript_path": "", "cwd": ""}
    said = body("BeforeAgent", **marker, prompt=PROBE_TEXT.format(event="prompt", word=word))
    event, _ = ingest.decode_event("gemini", said, name="UserPromptSubmit", event_id="e", at="2026-03-02T09:00:00.000Z")
    assert event is not None and ingest.is_probe(event) and event.session_id == f"csmd-probe-{word}"
    assert not event.by_user
