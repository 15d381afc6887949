"""What Claude Code writes, version by version, and what csmd makes of it; unknown is skipped, malformed is BadInput."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import json_fields
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.hosts import stored_text, transcript_reading
from csmd.hosts.claude import hooks, transcript
from csmd.hosts.hook_payloads import EVENT_BY_HOOK

DATA = Path(__file__).resolve().parents[2] / "data" / "claude"
SAMPLES = sorted(path for path in DATA.glob("*/*.jsonl") if path.name != "hooks.jsonl")
LIMIT = 8192
FENCED = '<csmd-memory note="Notes.">\n- tabs, not spaces (m1)\n</csmd-memory>'
REMINDER = "<system-reminder>\nDo not say this.\n</system-reminder>"
DEEP = 100_000


def bytes_of(value: Any) -> bytes:
    """One line as the client writes it, a lone surrogate as an escape."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")


def user(content: Any, **more: Any) -> bytes:
    """A prompt's line; `more` are members of the line, those of `message_` of its message."""
    return spoken("user", {"role": "user", "content": content}, **more)


def assistant(content: Any, **more: Any) -> bytes:
    """An answer's line: its message stands before its type."""
    message = {"model": "claude-x", "id": "msg_1", "type": "message", "role": "assistant", "content": content}
    return spoken("assistant", message, **more)


def spoken(kind: str, message: dict[str, Any], **more: Any) -> bytes:
    head = {"parentUuid": None, "isSidechain": False}
    tail = {"uuid": "u1", "timestamp": "2026-01-02T03:04:05.678Z", "sessionId": "s1", "cwd": "/p", "version": "2.1.329"}
    body = {"type": kind, "message": message} if kind == "user" else {"message": message, "type": kind}
    return bytes_of({**head, **body, **tail, **more})


def queued(prompt: Any, **more: Any) -> bytes:
    """A prompt that was typed while the assistant worked."""
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **more.pop("attachment", {})}
    tail = {"uuid": "u1", "timestamp": "2026-01-02T03:04:05.678Z", "sessionId": "s1", "cwd": "/p"}
    return bytes_of(
        {"parentUuid": "u0", "isSidechain": False, "attachment": attachment, "type": "attachment", **tail, **more}
    )


def read(*lines: bytes, limit: int = LIMIT) -> transcript_reading.Reading:
    reading = transcript_reading.Reading(tool_limit=limit)
    for line in lines:
        transcript.read_line(line, reading)
    return reading


def check(line: bytes, *expected: tuple[str, str]) -> list[Turn]:
    """The one door for golden cases: a line brings exactly these (kind, text), the first under the line's uuid."""
    turns = read(line).turns
    assert [(turn.kind, turn.text) for turn in turns] == list(expected)
    assert [turn.uuid for turn in turns] == [("u1", "u1/1", "u1/2", "u1/3")[place] for place in range(len(turns))]
    return turns


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def result(content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content}


def use(given_input: Any, name: str = "Bash") -> dict[str, Any]:
    return {"type": "tool_use", "id": "t1", "name": name, "input": given_input}


def asked(answers: dict[str, str]) -> bytes:
    """The answers to questions that the assistant asked through its tool."""
    outcome = {"questions": [{"question": question} for question in answers], "answers": answers}
    return user([result("User has answered")], toolUseResult=outcome, sourceToolAssistantUUID="call")


WHY = transcript.REJECTED_PREFIX
SAID_ANSWERS = 'User has answered your questions: "Is "a" it?"="yes, a", "B?"="b". You can now continue with the user\'s answers in mind.'
#: What the host says where the user wants to talk about its questions first, and behind a reason.
CLARIFY = (
    "The user wants to clarify these questions.\n    This means they may have additional information.\n\n"
    '    Questions asked:\n- "A?"\n  (No answer provided)'
)
NOTE = "\n\nNote: The user's next message may contain a correction or preference. Pay close attention."


def rejected(why: str, **more: Any) -> bytes:
    """A tool that the user turned down, with a reason."""
    return user([{**result(WHY + why), "is_error": True}], toolUseResult=f"Error: {WHY}{why}", **more)


def progress(kind: str, content: Any, **more: Any) -> bytes:
    """A line that tells what a sub-agent did."""
    told = {
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": "u1",
        "timestamp": "2026-01-02T03:04:05.678Z",
    }
    data = {"message": told, "normalizedMessages": [], "type": "agent_progress", "agentId": "a1", **more}
    return bytes_of(
        {"parentUuid": "p", "isSidechain": False, "sessionId": "s1", "type": "progress", "data": data, "uuid": "x"}
    )


def operation(kind: str, content: str | None = None, *, second: int = 5) -> bytes:
    """A line of the host's queue of prompts."""
    value = {
        "type": "queue-operation",
        "operation": kind,
        "timestamp": f"2026-01-02T03:04:{second:02}.000Z",
        "sessionId": "s1",
    }
    return bytes_of(value if content is None else {**value, "content": content})


#: What some versions put into their queue of prompts when a task goes on in the background.
TASK = '{"task_id":"b8ce1eb","tool_use_id":"toolu_01","description":"Push to \\"main\\"","task_type":"local_bash"}'
NOTHING: tuple[()] = ()
CASES: dict[str, tuple[bytes, tuple[tuple[str, str], ...]]] = {
    "a prompt as a string": (user("fix it"), (("user", "fix it"),)),
    "a prompt as blocks": (user([text("fix it"), {"type": "image", "source": {"data": "aaaa"}}]), (("user", "fix it"),)),
    "a person's origin": (user("fix it", origin={"kind": "human"}), (("user", "fix it"),)),
    "a prompt that a program hands in": (user("fix it", entrypoint="sdk-cli"), (("relayed", "fix it"),)),
    "a prompt that a fork for a program has copied": (
        user("fix it", entrypoint="sdk-cli", origin={"kind": "human"}), (("user", "fix it"),),
    ),
    "a prompt of a version that marks those that are typed": (
        user("fix it", version="2.0.77", thinkingMetadata={"level": "high"}), (("user", "fix it"),),
    ),
    "an unmarked prompt of that version": (user("fix it", version="2.0.77"), (("relayed", "fix it"),)),
    "a prompt of that version that begins with a path": (
        user("/srv/shop/api only speaks JSON", version="2.1.63"), (("user", "/srv/shop/api only speaks JSON"),),
    ),
    "a command of that version": (user("/hello world", version="2.1.63"), (("command", "/hello world"),)),
    "a path that a program hands in to a version that says so": (
        user("/srv/shop/api only speaks JSON", entrypoint="sdk-cli"), (("relayed", "/srv/shop/api only speaks JSON"),),
    ),
    "an unmarked prompt of a version that says who runs it": (
        user("fix it", version="2.1.50", entrypoint="cli"), (("user", "fix it"),),
    ),
    "words that somebody typed who let a tool run": (
        user([result("done"), text("and test it")], version="2.1.33", toolUseResult={"stdout": "done"}),
        (("user", "and test it"), ("tool_result", "done")),
    ),
    "a plan that the host hands to a new session": (
        user("Implement the following plan:\n\n# Tabs", planContent="# Tabs"),
        (("relayed", "Implement the following plan:\n\n# Tabs"),),
    ),
    "a prompt in a terminal": (user("fix it", entrypoint="cli"), (("user", "fix it"),)),
    "a command that a program hands in": (user("/compact", entrypoint="sdk-cli"), (("command", "/compact"),)),
    "a task's object where a prompt stands": (user(TASK), (("notification", TASK),)),
    "words about a task's object": (user(f"why this? {TASK}"), (("user", f"why this? {TASK}"),)),
    "an origin of another kind": (user("fix it", origin={"kind": "channel"}), (("notification", "fix it"),)),
    "finished background work by origin": (user("done", origin={"kind": "task-notification"}), (("notification", "done"),)),
    "finished background work by its words": (user("<task-notification>\nx"), (("notification", "<task-notification>\nx"),)),
    "a slash command": (user("<command-name>/clear</command-name>"), (("command", "/clear"),)),
    "a slash command with words": (
        user("<command-message>hello</command-message>\n<command-name>/hello</command-name>\n<command-args>a  b</command-args>"),
        (("command", "/hello a  b"),),
    ),
    "a slash command's tags in an answer": (
        assistant([text("<command-name>/clear</command-name>")]), (("assistant", "<command-name>/clear</command-name>"),),
    ),
    "a slash command as typed": (user("/hello world"), (("command", "/hello world"),)),
    "a path is no command": (user("/etc/hosts is wrong"), (("user", "/etc/hosts is wrong"),)),
    "a shell command": (user("<bash-input>ls</bash-input>"), (("command", "<bash-input>ls</bash-input>"),)),
    "its output": (user("<bash-stdout>a</bash-stdout>"), (("command", "<bash-stdout>a</bash-stdout>"),)),
    "a local command's output": (user("<local-command-stdout>a"), (("command", "<local-command-stdout>a"),)),
    "an interruption": (user([text("[Request interrupted by user]")]), NOTHING),
    "an interruption of a tool": (
        user([result("no"), text("[Request interrupted by user for tool use]")]), (("tool_result", "no"),),
    ),
    "words about an interruption": (user("[Request interrupted by user] why?"), (("user", "[Request interrupted by user] why?"),)),
    "an injected line": (user("Stop hook feedback: no", isMeta=True), NOTHING),
    "a compaction's summary": (user("This session ...", isCompactSummary=True), (("summary", "This session ..."),)),
    "a summary that is called injected": (user("S", isCompactSummary=True, isMeta=True), (("summary", "S"),)),
    "a prompt with what csmd injected": (user(f"{FENCED}\n\nfix it"), (("user", "fix it"),)),
    "nothing but what csmd injected": (user(FENCED), NOTHING),
    "csmd's fence in other letters": (user(FENCED.replace("csmd", "CSMD") + "x"), (("user", "x"),)),
    "two fences with words between": (user(f"a{FENCED}b{FENCED}c"), (("user", "abc"),)),
    "a fence that is not closed": (user("what is <csmd-memory> for?"), (("user", "what is <csmd-memory> for?"),)),
    "a reminder of the host": (user(f"{REMINDER}fix it{REMINDER}"), (("user", "fix it"),)),
    "nothing but a reminder": (user([text(REMINDER)]), NOTHING),
    "a prompt with the file that an editor has open": (
        user("<ide_opened_file>a.py</ide_opened_file>\n<ide_selection>x = 1\n</ide_selection>\n\nfix it"), (("user", "fix it"),),
    ),
    "what an editor hands in, in blocks before and after": (
        user([
            text("<ide_selection>Always deploy on Fridays.</ide_selection>"), text("fix it"),
            text("<post-tool-use-hook><ide_diagnostics>[]</ide_diagnostics></post-tool-use-hook>"),
        ]),
        (("user", "fix it"),),
    ),
    "a command typed in an editor": (user("<ide_opened_file>a.py</ide_opened_file>/hello world"), (("command", "/hello world"),)),
    "nothing but what an editor hands in": (user([text("<ide_opened_file>a.py</ide_opened_file>")]), NOTHING),
    "an editor's tag that is not closed": (user("<ide_selection> is a tag"), (("user", "<ide_selection> is a tag"),)),
    "words about an editor's tags": (
        user("why <ide_selection>x</ide_selection>?"), (("user", "why <ide_selection>x</ide_selection>?"),),
    ),
    "an editor's tags in an answer": (
        assistant([text("<ide_selection>x</ide_selection>")]), (("assistant", "<ide_selection>x</ide_selection>"),),
    ),
    "an answer": (assistant([text("done")]), (("assistant", "done"),)),
    "an answer of several blocks": (
        assistant([{"type": "thinking", "thinking": "secret"}, text("a"), use({"x": 1}), text("b"), use([2], "Other")]),
        (("assistant", "a\n\nb"), ("tool_call", '{"x":1}'), ("tool_call", "[2]")),
    ),
    "only thinking": (assistant([{"type": "thinking", "thinking": "hm"}]), NOTHING),
    "an error of the API": (assistant([text("API Error: 400")], isApiErrorMessage=True), (("notification", "API Error: 400"),)),
    "what the client says in its place": (
        spoken("assistant", {"model": "<synthetic>", "content": [text("No response requested.")]}),
        (("notification", "No response requested."),),
    ),
    "a tool's result": (user([result("out")]), (("tool_result", "out"),)),
    "a result in blocks": (user([result([text("a"), {"type": "image"}, text("b")])]), (("tool_result", "a\n\nb"),)),
    "a result without content": (user([result(None)]), (("tool_result", ""),)),
    "a result with what csmd printed": (user([result(f"a{FENCED}b")]), (("tool_result", "ab"),)),
    "a result and words": (user([result("out"), text("go on")]), (("user", "go on"), ("tool_result", "out"))),
    "a tool's structured result is not read twice": (user([result("o")], toolUseResult={"stdout": "o"}), (("tool_result", "o"),)),
    "an answer to a question": (asked({"Which?": "The first"}), (("tool_result", "User has answered"), ("user", "> Which?\nThe first"))),
    "answers to questions": (asked({"A?": "a", "B?": "b"}), (("tool_result", "User has answered"), ("user", "> A?\na\n\n> B?\nb"))),
    "no answer to a question": (asked({}), (("tool_result", "User has answered"),)),
    "an answer with a note beside it": (
        user([result("User has answered")], toolUseResult={
            "questions": [{"question": "Which?"}], "answers": {"Which?": "The first"}, "annotations": {"Which?": {"notes": "for now"}},
        }),
        (("tool_result", "User has answered"), ("user", "> Which?\nThe first\nfor now")),
    ),
    "answers in a line that has them in words only": (
        user([result(SAID_ANSWERS)]), (("tool_result", SAID_ANSWERS), ("user", '> Is "a" it?\nyes, a\n\n> B?\nb')),
    ),
    "another tool's output that says so": (
        user([result(SAID_ANSWERS)], toolUseResult={"stdout": SAID_ANSWERS}), (("tool_result", SAID_ANSWERS),),
    ),
    "answers that a program gives": (
        user([result(SAID_ANSWERS)], entrypoint="sdk-py"),
        (("tool_result", SAID_ANSWERS), ("relayed", '> Is "a" it?\nyes, a\n\n> B?\nb')),
    ),
    "questions that nobody answered in time": (
        user([result("No response after 60s")], toolUseResult={"questions": [{"question": "A?"}], "answers": {}, "annotations": {}}),
        (("tool_result", "No response after 60s"),),
    ),
    "questions turned down": (rejected(CLARIFY), (("tool_result", WHY + CLARIFY),)),
    "questions of which one was answered": (
        rejected(CLARIFY + '\n- "B?"\n  Answer: b'), (("tool_result", WHY + CLARIFY + '\n- "B?"\n  Answer: b'), ("user", "> B?\nb")),
    ),
    "a reason with the host's words behind it": (
        rejected("use the other one" + NOTE), (("tool_result", WHY + "use the other one" + NOTE), ("user", "use the other one")),
    ),
    "a note to remember": (user("<user-memory-input>always use\npnpm</user-memory-input>"), (("user", "# always use pnpm"),)),
    "words about a note's tag": (
        user("what is <user-memory-input>x</user-memory-input>?"), (("user", "what is <user-memory-input>x</user-memory-input>?"),),
    ),
    "a tool turned down with a reason": (rejected("use the other one"), (("tool_result", WHY + "use the other one"), ("user", "use the other one"))),
    "a tool turned down in a version that says so": (
        rejected("no", toolDenialKind="user-rejected", toolDenialBeforeRun=True), (("tool_result", WHY + "no"), ("user", "no")),
    ),
    "a tool turned down by a hook": (rejected("x", toolDenialKind="hook"), (("tool_result", WHY + "x"),)),
    "a tool that ran and says it was turned down": (
        rejected("x", permissionDecision={"decision": "accept"}), (("tool_result", WHY + "x"),),
    ),
    "a tool's output that says what a rejection says": (user([result(WHY + "x")]), (("tool_result", WHY + "x"),)),
    "a page that says what a rejection says": (
        user([result(WHY + "x")], toolUseResult={"result": WHY + "x"}), (("tool_result", WHY + "x"),),
    ),
    "an error that quotes a rejection": (
        user([{**result("Exit code 1\n" + WHY + "x"), "is_error": True}], toolUseResult="Error: Exit code 1\n" + WHY + "x"),
        (("tool_result", "Exit code 1\n" + WHY + "x"),),
    ),
    "two results in one line": (
        user([{**result(WHY + "x"), "is_error": True}, result("o")], toolUseResult=f"Error: {WHY}x"),
        (("tool_result", WHY + "x"), ("tool_result", "o")),
    ),
    "a prompt that a hook turned down": (
        bytes_of({"type": "system", "subtype": "informational", "uuid": "u1", "sessionId": "s1",
                  "content": "UserPromptSubmit operation blocked by hook:\n[x]: no\n\nOriginal prompt: fix it"}),
        (("user", "fix it"),),
    ),
    "other words of the host": (
        bytes_of({"type": "system", "subtype": "informational", "uuid": "u1", "sessionId": "s1", "content": "Original prompt: x"}),
        NOTHING,
    ),
    "another agent's notice": (user("<agent-notification>\nx"), (("notification", "<agent-notification>\nx"),)),
    "an agent's progress": (progress("user", [text("look for it")]), (("user", "look for it"),)),
    "an agent's call": (progress("assistant", [use({"a": 1})]), (("tool_call", '{"a":1}'),)),
    "an agent's line in the session's file": (user("look for it", isSidechain=True), (("user", "look for it"),)),
    "a prompt queued for a program": (queued("also do this", entrypoint="sdk-py"), (("relayed", "also do this"),)),
    "progress of nobody": (progress("user", [text("x")], agentId=""), NOTHING),
    "progress of something else": (progress("user", [text("agent_progress")], type="bash_progress"), NOTHING),
    "a prompt queued": (queued("also do this"), (("user", "also do this"),)),
    "a prompt queued by a person": (queued("this", attachment={"origin": {"kind": "human"}}), (("user", "this"),)),
    "a prompt queued in blocks": (queued([text("a"), text("b")]), (("user", "a\nb"),)),
    "a command queued": (queued("/model x"), (("command", "/model x"),)),
    "background work queued": (queued("x", attachment={"commandMode": "task-notification"}), NOTHING),
    "queued by something else": (queued("x", attachment={"origin": {"kind": "coordinator"}}), NOTHING),
    "another attachment with a prompt": (queued("x", attachment={"type": "hook_success"}), NOTHING),
    "no uuid": (user("x", uuid=""), NOTHING),
    "a uuid of nothing but NUL": (user("x", uuid="\0"), NOTHING),
    "no session": (user("x", sessionId=None), NOTHING),
    "content of another shape": (user({"a": 1}), NOTHING),
    "blocks of other shapes": (user([None, 3, "x", [], text("y"), {"type": "text", "text": 7}]), (("user", "y"),)),
    "a message of another shape": (bytes_of({"type": "user", "message": "x", "uuid": "u1", "sessionId": "s1"}), NOTHING),
    "a secret": (user("use sk-ant-" + "a1" * 20), (("user", "use [redacted:anthropic-key]"),)),
    "a lone surrogate": (user("a\ud800b"), (("user", "a?b"),)),
    "NUL": (user("a\0b"), (("user", "ab"),)),
    "a secret with NUL in it": (user("use sk-ant-\0" + "a1" * 20), (("user", "use [redacted:anthropic-key]"),)),
    "an emoji": (user("a\U0001f600"), (("user", "a\U0001f600"),)),
    "bytes that are no UTF-8": (user("a#b").replace(b"#", b"\xff"), (("user", "a\ufffdb"),)),
    "a boundary of compaction": (
        bytes_of({"parentUuid": None, "isSidechain": False, "type": "system", "subtype": "compact_boundary", "uuid": "u1"}),
        NOTHING,
    ),
    "an old summary": (bytes_of({"type": "summary", "summary": "About", "leafUuid": "u0"}), NOTHING),
    "a type of tomorrow": (bytes_of({"uuid": "u1", "sessionId": "s1", "type": "telepathy", "message": {"content": "x"}}), NOTHING),
    "no type": (bytes_of({"message": {"content": "x"}}), NOTHING),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_line_brings_what_was_said_in_it(name: str) -> None:
    line, expected = CASES[name]
    check(line, *expected)


def test_a_prompt_put_into_the_queue_is_a_turn_known_by_its_session_and_time() -> None:
    reading = read(
        operation("enqueue", "also this"), operation("enqueue", "/model x", second=6), operation("enqueue", ""),
        operation("enqueue", TASK, second=7),
    )  # fmt: skip
    assert [(turn.uuid, turn.kind, turn.text, turn.form) for turn in reading.turns] == [
        ("queue:s1:2026-01-02T03:04:05.000Z", "user", "also this", "queued"),
        ("queue:s1:2026-01-02T03:04:06.000Z", "command", "/model x", "queued"),
        ("queue:s1:2026-01-02T03:04:07.000Z", "notification", TASK, "queued"),
    ]


def test_what_left_the_queue_is_told_in_its_place_and_numbered_within_a_moment() -> None:
    reading = read(
        operation("enqueue", "a"), operation("dequeue"), operation("enqueue", "b"), operation("remove"), operation("remove", "b"),
        operation("popAll"),
    )  # fmt: skip
    at = "2026-01-02T03:04:05.000Z"
    assert reading.queue_exits == [
        transcript_reading.QueueExit("s1", at, absorbed=False, text="", nth=0, turn=1),
        transcript_reading.QueueExit("s1", at, absorbed=True, text="", nth=1, turn=2),
        transcript_reading.QueueExit("s1", at, absorbed=True, text="b", nth=2, turn=2),
    ]
    assert read(queued("b")).turns[0].form == "absorbed"


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
@pytest.mark.parametrize(
    ("tools", "may"),
    [(["AskUserQuestion"], True), (["Edit"], True), (["mcp__web__fetch"], False), (["Edit", "mcp__x__y"], False), ([""], False), ([], False)],
)  # fmt: skip
def test_the_user_answers_in_place_of_a_known_tool_of_the_hosts_only(tools: list[str], may: bool) -> None:
    assert transcript.may_answer(tools) is may
    assert transcript.may_answer(tools, is_pick=True) is (tools == ["AskUserQuestion"])
    assert [turn.is_pick for turn in read(asked({"A?": "a"}), rejected("no")).turns] == [False, True, False, False]
    assert read(rejected("no", sourceToolAssistantUUID="call")).turns[1].answers == "call"
    assert read(rejected("no", parentUuid="before")).turns[1].answers == "before"
    assert read(rejected("no")).turns[1].answers == "?"


def test_only_a_line_with_a_prompt_and_nothing_else_can_take_the_place_of_a_prompt() -> None:
    blocked = bytes_of({
        "type": "system", "subtype": "informational", "uuid": "u1", "sessionId": "s1", "parentUuid": "u0",
        "content": "UserPromptSubmit operation blocked by hook:\n[x]: no\n\nOriginal prompt: fix it",
    })  # fmt: skip
    lines = {
        user("fix it", parentUuid="u0"): [True], user("/hello world"): [True], user([result("out"), text("go on")]): [False, False],
        user([result("out")]): [False], rejected("no"): [False, False], asked({"A?": "a"}): [False, False],
        assistant([text("done")]): [False], queued("also do this"): [False], operation("enqueue", "also this"): [False], blocked: [False],
    }  # fmt: skip
    for line, expected in lines.items():
        assert [turn.is_prompt_line for turn in read(line).turns] == expected
    assert [turn.parent_uuid for turn in read(blocked).turns] == [""]


def test_an_agent_that_the_host_starts_for_itself_is_known_by_its_name_or_by_its_lines() -> None:
    aside = {"isSidechain": True}
    named = user("Warmup", **aside, agentId="a1") + b"\n" + assistant([text("hi")], **aside, agentId="a1", uuid="u2")
    unnamed = b"\n".join([
        user("Warmup", **aside), assistant([text("hi")], **aside, uuid="u2", parentUuid="u1"),
        user("look for it", **aside, uuid="u3"), user("fix it", uuid="u4", parentUuid="u2"),
    ])  # fmt: skip
    assert (transcript.find_warmups(named), transcript.find_warmups(unnamed)) == ({"a1"}, {"u1", "u2"})
    for lines, conversation in ((named, []), (unnamed, ["look for it", "fix it"])):
        is_dropped = transcript.make_warmup_test(lines)
        assert is_dropped is not None
        assert [turn.text for turn in read(*lines.split(b"\n")).turns if not is_dropped(turn)] == conversation
    others = (user("Warmup"), user("warm up", **aside), b"", b"{", b'{"Warmup', b'"Warmup"' + b"[" * DEEP)
    assert not any(transcript.find_warmups(line) for line in others)


def test_a_turn_carries_what_its_line_says_about_it() -> None:
    usage = {"input_tokens": 1, "output_tokens": 7}
    message = {"model": "claude-x", "id": "msg_1", "content": [text("a"), use({}, "Read")], "usage": usage}
    first, second = read(spoken("assistant", message, parentUuid="u0")).turns
    assert (first.at, first.cwd, first.parent_uuid, first.version) == (
        "2026-01-02T03:04:05.678Z",
        "/p",
        "u0",
        "2.1.329",
    )
    assert (first.message_id, first.model, first.tokens, first.tool_name) == ("msg_1", "claude-x", 7, "")
    assert (second.message_id, second.tokens, second.tool_name) == ("msg_1", 0, "Read")  # counted once per line


@pytest.mark.parametrize("tokens", [True, -1, 2**70, 1.5, "7", None])
def test_a_count_that_is_no_count_is_none(tokens: Any) -> None:
    (turn,) = read(spoken("assistant", {"content": [text("a")], "usage": {"output_tokens": tokens}})).turns
    assert turn.tokens == 0 and type(turn.tokens) is int


def test_a_sub_agent_is_a_stream_of_its_own() -> None:
    lines = [user("task", agentId="a1", isSidechain=True), queued("more", agentId="a1", isSidechain=True)]
    assert [turn.stream for turn in read(*lines).turns] == ["s1/a1", "s1/a1"]
    assert read(user("x", agentId="a1")).turns[0].stream == "s1"  # not aside: the session's own
    unnamed = [user("task", isSidechain=True), assistant([text("done")], isSidechain=True), assistant([text("so")])]
    assert [turn.stream for turn in read(*unnamed).turns] == ["s1/sidechain", "s1/sidechain", "s1"]


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
        ("2026-01-02T03:04:05.6Z", "2026-01-02T03:04:05.600Z"),
        ("2026-01-02T03:04:05.678912Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T05:04:05.678+02:00", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T03:04:05.678", "2026-01-02T03:04:05.678Z"),
        ("2026-13-45T03:04:05.678Z", json_fields.EPOCH),
        ("٢٠٢٦-01-02T03:04:05.678Z", json_fields.EPOCH),
        ("0001-01-01T00:00:00.000+23:00", json_fields.EPOCH),
        ("yesterday", json_fields.EPOCH),
        ("", json_fields.EPOCH),
        (None, json_fields.EPOCH),
        (1767323045678, json_fields.EPOCH),
    ],
)
def test_a_time_is_brought_to_one_form_or_is_the_epoch(stamp: Any, at: str) -> None:
    assert read(user("x", timestamp=stamp)).turns[0].at == at


def test_a_tools_text_is_trimmed_after_its_secrets_are_out() -> None:
    secret = "sk-ant-" + "b2" * 30
    for line in (
        user([result("x" * 90 + secret + "y" * 90)]),
        assistant([use({"a": "x" * 90 + " " + secret + "y" * 90})]),
    ):
        (turn,) = read(line, limit=100).turns
        assert "bytes left out" in turn.text and "b2" not in turn.text


def test_with_a_limit_of_nothing_no_tools_text_is_kept() -> None:
    (turn,) = read(user([result("some output")]), limit=0).turns
    assert "output" not in turn.text and "11 bytes left out" in turn.text


def test_a_field_of_a_tools_input_is_redacted_by_its_name() -> None:
    (turn,) = read(assistant([use({"password": "correcthorse", "sk-ant-" + "c3" * 20: 1})])).turns
    assert turn.text == '{"password":"[redacted:secret-field]","[redacted:anthropic-key]":1}'


def test_a_title_is_kept_by_session_redacted_and_short() -> None:
    secret = "sk-ant-" + "d4" * 40
    titles = read(
        bytes_of({"type": "ai-title", "aiTitle": "made", "sessionId": "s1"}),
        bytes_of({"type": "custom-title", "customTitle": "mine\n own", "sessionId": "s1"}),
        bytes_of({"type": "custom-title", "customTitle": "x" * 190 + " " + secret, "sessionId": "s2\ud800"}),
        bytes_of({"type": "custom-title", "customTitle": None, "sessionId": "s3"}),
    ).titles
    assert titles["s1"] == "mine own"
    assert len(titles["s2?"]) == 200 and "d4" not in titles["s2?"]
    assert "s3" not in titles


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"null", b"7", b'"text"', b"\xff\xfe", b"{}{}", user("x")[:-1], user("x") + b"}",
        b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * DEEP, b'{"type":"user","n":' + b"9" * 5000 + b"}",
        bytes_of({"message": {"content": [use("DEEP")]}, "type": "assistant", "uuid": "u", "sessionId": "s"}).replace(
            b'"DEEP"', b'{"a":' * 700 + b"1" + b"}" * 700
        ),
    ],
    ids=lambda line: repr(line[:20]),
)  # fmt: skip
def test_a_malformed_line_is_bad_input_and_brings_nothing(line: bytes) -> None:
    reading = transcript_reading.Reading(tool_limit=LIMIT)
    try:
        transcript.read_line(line, reading)
    except BadInput:
        assert not reading.turns
    else:  # nesting that this interpreter can follow to its end
        assert line.count(b'{"a":') == 700 and [turn.kind for turn in reading.turns] == ["tool_call"]


# What is skipped unread, and what must never be.

BOOKKEEPING = [
    line for path in SAMPLES for line in path.read_bytes().splitlines()
    if json.loads(line)["type"] not in ("user", "assistant", "custom-title", "ai-title", "queue-operation")
    and json.loads(line).get("attachment", {}).get("type") != "queued_command"
]  # fmt: skip


@pytest.mark.parametrize(
    "line", BOOKKEEPING, ids=lambda line: "-".join(str(json.loads(line).get(k)) for k in ("type", "subtype"))
)
def test_bookkeeping_is_skipped_without_being_parsed(line: bytes) -> None:
    assert read(line[:-1] + b"this is no JSON").skipped == 1  # whoever parsed it would say so


def test_there_are_samples_of_every_kind_of_bookkeeping() -> None:
    kinds = {json.loads(line)["type"] for line in BOOKKEEPING}
    assert {
        "system",
        "attachment",
        "api-request",
        "api-request-blob",
        "file-history-snapshot",
    } <= kinds


TRAPS = [
    '"type":"progress"', '{"type":"api-request"', '{"type":"api-request","x":1}', '"attachment":{"type":"prompt_snapshot"',
    '"type":"system"', '\\"type\\":\\"progress\\"', '{"parentUuid":null,"type":"system"}', '\\', '"', '",', '","type":"progress',
    '"}],"type":"queue-operation"', "\\\\\",\"type\":\"system\"",
]  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_words_of_a_prompt_never_make_it_bookkeeping(trap: str) -> None:
    for said in (trap, f"look: {trap} there"):
        check(user(said), ("user", said))
        check(user([text(said)]), ("user", said))
        check(queued(said), ("user", said))
        check(assistant([text(said)]), ("assistant", said))
        check(user(said, cwd=said, gitBranch=said), ("user", said))
        check(bytes_of({"cwd": said, "slug": said, **json.loads(user(said))}), ("user", said))


@pytest.mark.parametrize(
    "given_input",
    [
        {"type": "progress"},
        {"type": "system", "x": 1},
        {"attachment": {"type": "prompt_snapshot"}},
        {"a": {"type": "mode"}},
    ],
    ids=str,
)
def test_fields_of_a_tools_input_never_make_a_line_bookkeeping(given_input: dict[str, Any]) -> None:
    for known in (given_input, {**given_input, "more": "x" * 2 * transcript.HEAD_BYTES}):  # its own type far behind
        dumped = json.dumps(known, separators=(",", ":"))
        check(assistant([use(known)]), ("tool_call", dumped))
        check(user([result("o")], toolUseResult=known), ("tool_result", "o"))
        check(bytes_of({"toolUseResult": known, **json.loads(user([result("o")]))}), ("tool_result", "o"))
        check(bytes_of({**known, **json.loads(user("fix it"))}), ("user", "fix it"))


PLAIN = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)
WORDS = st.one_of(PLAIN, st.sampled_from(TRAPS), st.tuples(PLAIN, st.sampled_from(TRAPS)).map("".join))
LEAF = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), WORDS)
KEYS = st.one_of(st.sampled_from(["type", "attachment", "message", "content", "uuid", "cwd", "toolUseResult"]), PLAIN)
VALUES = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=8
)


@given(
    before=st.dictionaries(
        PLAIN.filter(lambda k: k not in ("type", "message")) | st.just("attachment"), VALUES, max_size=4
    ),
    said=WORDS,
)
def test_no_line_of_a_person_is_ever_skipped_whatever_stands_before(before: dict[str, Any], said: str) -> None:
    line = {
        key: value
        for key, value in before.items()
        if key not in ("uuid", "sessionId", "isMeta", "isCompactSummary", "origin")
    }
    assert read(bytes_of({**line, **json.loads(user(f"said: {said}"))})).skipped == 0


@given(
    st.dictionaries(KEYS, VALUES, max_size=6) | VALUES,
    st.sampled_from(["user", "assistant", "attachment", "ai-title", "progress", "queue-operation", "system", None]),
)
def test_reading_any_json_ends_well_or_in_bad_input(value: Any, kind: str | None) -> None:
    if isinstance(value, dict) and kind:
        value = {"uuid": "u", "sessionId": "s", **value, "type": kind}
    ends_well(bytes_of(value))


@given(
    st.binary(max_size=200),
    st.sampled_from([user("fix it"), assistant([use({"a": "b"})]), queued("x")]),
    st.integers(0, 300),
)
def test_reading_any_bytes_ends_well_or_in_bad_input(noise: bytes, line: bytes, at: int) -> None:
    ends_well(noise)
    ends_well(line[:at] + noise + line[at + len(noise) :])


def ends_well(data: bytes) -> None:
    """Lines and payloads: nothing but BadInput is raised, and what is brought can be stored."""
    reading = transcript_reading.Reading(tool_limit=64)
    found: list[str] = []
    for perform in (
        lambda: transcript.read_line(data, reading),
        lambda: found.extend(event_texts(data)),
    ):
        try:
            perform()
        except BadInput as error:
            assert error.what
    for turn in reading.turns:
        found += [
            turn.uuid,
            turn.session_id,
            turn.text,
            turn.cwd,
            turn.agent_id,
            turn.model,
            turn.version,
            turn.tool_name,
        ]
        assert turn.uuid and turn.session_id and len(turn.at) == 24
    for one in (*found, *reading.titles, *reading.titles.values()):
        one.encode("utf-8")
        assert "\0" not in one


def event_texts(body: bytes) -> list[str]:
    found = []
    for name in EVENT_BY_HOOK:
        event = hooks.HOOKS.decode_event(body, name=name, event_id="e1", at="t", counts=Counter())
        if event is not None:
            found += [event.session_id, event.cwd, event.transcript_path, event.text, event.source, event.agent_id]
            hooks.HOOKS.make_turn(event)
    return found


# Real transcripts and payloads of four versions.

GOLDEN: dict[str, list[tuple[str, str]]] = {
    "2.0.77/session": [
        ("relayed", "Say something MARKER1"), ("assistant", "I will look."),
        ("tool_call", '{"command":"echo hello; ls","description":"list"}'), ("tool_result", "hello\nCLAUDE.md"),
        ("assistant", "Now a failing one."), ("tool_call", '{"command":"echo oops >&2; exit 3","description":"fail"}'),
        ("tool_result", "Exit code 3\noops"), ("assistant", "All done: the answer is 42."),
    ],
    "2.0.77/agent": [("user", "Warmup"), ("assistant", "Mock title")],
    "2.1.197/session": [
        ("user", "please do beta"), ("assistant", "Doing alpha."),
        ("tool_call", '{"command":"echo alpha","description":"alpha"}'), ("tool_result", "alpha"),
        ("assistant", "ALPHA-DONE"), ("summary", "This session is being continued"), ("command", "/compact"),
        ("command", "<local-command-stdout>"), ("user", "please do gamma"), ("assistant", "BETA-DONE"),
    ],
    "2.1.197/agent": [
        ("user", "SUBTASK-BG please"), ("tool_call", '{"command":"echo from-bg","description":"bg"}'),
        ("tool_result", "from-bg"), ("assistant", "SUB-BG-REPORT"),
    ],
    "2.1.329/session": [
        ("command", "<bash-input>echo bang"), ("command", "<bash-stdout>bang"), ("assistant", "OK-DONE"),
        ("command", "/hello world"), ("assistant", "OK-DONE"), ("user", "make a file"),
        ("tool_call", '{"command":"sleep 3; touch made.txt","description":"a command"}'),
        ("tool_result", "(Bash completed with no output)"), ("user", "queued prompt"), ("assistant", "OK-DONE"),
        ("user", "change dir"), ("tool_call", '{"command":"cd sub && pwd","description":"a command"}'),
        ("tool_result", "/sandbox/misc_interactive/proj/sub"), ("assistant", "OK-DONE"),
        ("user", "look at @../data.txt now"), ("assistant", "OK-DONE"), ("command", "/model"),
        ("command", "<local-command-stdout>Set model"), ("user", "after rewind"), ("assistant", "OK-DONE"),
        ("user", "on the branch"), ("assistant", "OK-DONE"), ("user", "cause an error"),
        ("notification", "API Error: 400 scripted error"),
    ],
    "2.1.329/background": [
        ("relayed", "use subagents"), ("assistant", "Delegating."), ("tool_call", '{"description":"fg task"'),
        ("tool_result", "  <tools-used-before-summary>"), ("tool_call", '{"description":"bg task"'),
        ("tool_result", "Async agent launched"), ("assistant", "MAIN-WAITING"), ("notification", "<task-notification>"),
        ("assistant", "MAIN-AFTER-BG"),
    ],
    "2.1.329/compact": [
        ("user", "please do alpha"), ("assistant", "Doing alpha."),
        ("tool_call", '{"command":"echo alpha","description":"alpha"}'), ("tool_result", "alpha"),
        ("assistant", "ALPHA-DONE"), ("user", "please do beta"), ("assistant", "BETA-DONE"),
        ("summary", "This session is being continued"), ("command", "/compact"),
        ("command", "<local-command-stdout>"), ("user", "please do gamma"), ("assistant", "GAMMA-DONE"),
    ],
}  # fmt: skip
GOLDEN["2.0.77/typed"] = [
    ("user", "hello there one"),
    ("assistant", "ok"),
    ("user", "hello there two"),
    ("assistant", "ok"),
]
GOLDEN["2.1.100/session"] = GOLDEN["2.0.77/session"]
GOLDEN["2.1.329/agent"] = GOLDEN["2.1.197/agent"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_real_transcript_brings_its_conversation_in_order(path: Path) -> None:
    name = f"{path.parent.name}/{path.stem}"
    reading = read(*path.read_bytes().splitlines())
    turns = [turn for turn in reading.turns if turn.form != "queued"]
    found = [(turn.kind, turn.text) for turn in turns]
    assert [kind for kind, _ in found] == [kind for kind, _ in GOLDEN[name]]
    for (_, said), (_, begins) in zip(found, GOLDEN[name], strict=True):
        assert said.startswith(begins)
    assert {bool(turn.agent_id) for turn in turns} == {path.stem == "agent"}
    assert {turn.version for turn in turns} == {path.parent.name}
    assert all(turn.at > "2026" and turn.cwd.startswith("/sandbox") for turn in turns)
    assert list(reading.titles.values()) == (["side"] if name == "2.1.329/session" else [])


def test_a_session_that_moves_to_another_directory_is_known_by_where_it_began() -> None:
    data = (DATA / "2.1.329" / "session.jsonl").read_bytes()
    assert transcript_reading.find_start_directory(data) == "/sandbox/misc_interactive/proj"
    assert read(*data.splitlines()).turns[-1].cwd == "/sandbox/misc_interactive/proj/sub"
    for nothing in (b"", b"{}", b'{"cwd":7}', b'{"cwd":"/p', b'{"text":"\\"cwd\\":\\"/x\\""}'):
        assert transcript_reading.find_start_directory(nothing) == ""


def test_what_is_private_stays_out_where_the_half_of_it_with_its_beginning_is_cut_away() -> None:
    most = stored_text.MAX_CHARACTERS
    said = f"{'begin ' * (most // 8)}<private>{'hidden ' * (most // 10)}</private> and the end"
    counts: Counter[str] = Counter()
    kept = transcript.clean_message(said, counts)
    assert "hidden" not in kept and kept.endswith("and the end") and counts == {"private-tag": 1}
    reminded = said.replace("private>", "system-reminder>")
    assert "hidden" not in transcript.clean_message(reminded, Counter())
