"""Parses Claude Code's transcript lines into turns, titles, token usage and queue events."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.hosts.labels import read_label, read_path, read_tokens
from csmd.hosts.stored_text import cut_long, is_slash_command, quote_answers, remove_injections
from csmd.hosts.transcript_reading import Line, QueueExit, Reading, ReadLine, TokenUse, Transcript
from csmd.json_fields import mapping, mappings, parse_object, read_time, string
from csmd.text import display
from csmd.vocabulary import TOOL_KINDS, TurnKind
from csmd.withheld_calls import WithheldCalls

#: The result of a tool that the user rejected, up to their reason.
REJECTED_PREFIX = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
#: The host's own words to the assistant that may follow the reason.
_AFTER_REASON = "\n\nNote: The user's next message may contain a correction or preference."
#: The tool that asks the user questions.
QUESTION_TOOL = "AskUserQuestion"
#: The result of QUESTION_TOOL with the answers.
_ANSWERED = re.compile(r"User has answered your questions: (.*)\. You can now continue\b.*", re.DOTALL)
#: One answer in that result.
_ANSWER = re.compile(r'"(.*?)"="(.*?)"(?=, "|\Z)', re.DOTALL)
#: Most quotation marks in answers: matching takes quadratic time.
MAX_QUOTES = 400
#: The result of QUESTION_TOOL if the user rejected the questions to clarify them.
_CLARIFY = "The user wants to clarify these questions.\n"
#: One answer in that result.
_CLARIFIED = re.compile(r'^- "((?:(?!"\n).)*)"\n +Answer: (.*?)(?=\n- "|\Z)', re.DOTALL | re.MULTILINE)
#: The host's words for a prompt that a hook blocked, which has no `user` line, and what precedes the prompt in them.
BLOCKED_PREFIX = "UserPromptSubmit operation blocked by hook:"
BLOCKED_PROMPT = "\n\nOriginal prompt: "
#: Text that the host wrote in the user's name; such a turn states nothing.
WRITTEN_FOR_USER = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|task-notification|user-memory-input|teammate-message)"
    r"|\[Request interrupted|Caveat: |Stop hook feedback|Operation stopped by hook|Base directory for this skill"
    r"|This session is being continued|/[\w:.-]+(?:\s|$))"
)
HOST = "claude"
#: The tool whose input is a shell line.
SHELL_TOOL = "Bash"
#: The prefix of an MCP server's tools; their results are never the host's, even with the same words.
FOREIGN_TOOL = "mcp__"
#: The parts of a model's input for a message, which the host adds up for its context window.
CONTEXT_FIELDS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
#: The host's names of what the store calls `input`, `cache_read`, `cache_write` and `output`.
TOKEN_FIELDS = (*CONTEXT_FIELDS, "output_tokens")
#: The first prompt of agents that early versions start themselves; their lines are not a conversation.
WARMUP = "Warmup"
#: The parent of the first prompt of a conversation.
ROOT_PARENT = "root"

_MARKUP = re.compile(
    r"^\s*<(?:command-(?:name|message|args)|local-command-(?:stdout|caveat)|bash-(?:input|stdout|stderr))>"
)
_COMMAND = re.compile(r"^\s*<command-(?:name|message|args)>")
_NAME = re.compile(r"<command-name>\s*/?(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*)</command-args>", re.DOTALL)
#: A note to remember, which early versions accept after a `#`.
_NOTE = re.compile(r"\s*<user-memory-input>(.*)</user-memory-input>\s*", re.DOTALL)
#: A message of another agent, session or service, which arrives as a prompt (the queue records no origin).
_NOTIFICATION = re.compile(
    r"^\s*<(?:(?:task|agent)-notification|(?:agent|teammate|cross-session)-message|channel|fork-boilerplate)[\s>]"
)
#: The host's note about a background task: a JSON object instead of text.
_TASK_NOTE = re.compile(r'^\s*\{(?=.*"task_id"\s*:)(?=.*"(?:tool_use_id|task_type)"\s*:).*\}\s*$', re.DOTALL)
#: The entrypoint of a session whose prompts a program submits (`claude -p`, an SDK).
_BY_PROGRAM = "sdk-"
#: The first and last version that do not record how a session was begun.
_VERSIONS_WITHOUT_ORIGIN = ((2, 0, 76), (2, 1, 63))
#: In those versions each prompt that a person typed has one of these fields.
_TYPED_PROMPT_FIELDS = ("thinkingMetadata", "permissionMode")
#: An editor's additions to a prompt: the open file, the selection, the results of its checks.
_EDITOR_TAG = re.compile(r"^[ \t]*(?:<post-tool-use-hook>\s*)?<(ide_\w{1,40})>", re.MULTILINE)
_AFTER_EDITOR = re.compile(r"\s*(?:</post-tool-use-hook>\s*)?")
#: Most editor tags that are removed from a prompt.
MAX_TAGS = 100
_INTERRUPTED = re.compile(r"^\[Request interrupted by user(?: for tool use)?\]\s*$")
_REMINDER = ("<system-reminder>", "</system-reminder>")


def read_message_turns(line: Line) -> list[Turn]:
    """Returns the turns of a `user` or `assistant` line: of a message, or of tool calls or results."""
    value, message = line.value, mapping(line.value, "message")
    bare = make_bare_turn(line)
    if not message or bare is None or (value.get("isMeta") and not value.get("isCompactSummary")):
        return []
    content = message.get("content")
    blocks = mappings([{"type": "text", "text": content}] if isinstance(content, str) else content)
    is_prompt = value["type"] == "user"
    turns = _read_text_turns(line, bare, message, blocks)
    turns += _read_tool_turns(line, bare, blocks, len(turns))
    usage = message.get("usage")
    fields: dict[str, Any] = {
        "message_id": read_label(message, "id"), "model": read_label(message, "model", 100),
        "context": sum(read_tokens(usage, name) for name in CONTEXT_FIELDS),
        "is_prompt_line": is_prompt and len(turns) == 1 and turns[0].kind not in TOOL_KINDS,
        "mode": read_label(value, "permissionMode", 40) if is_prompt else "",
    }  # fmt: skip
    turns = [replace(turn, **fields) for turn in turns]
    if turns:
        turns[0] = replace(turns[0], tokens=read_tokens(usage, "output_tokens"))
    return [*turns, *_read_answer_turns(line, bare, blocks, len(turns))]


def _read_text_turns(line: Line, bare: Turn, message: dict[str, Any], blocks: list[dict[str, Any]]) -> list[Turn]:
    """Returns the turn of the texts in a line."""
    texts = [string(block, "text") for block in blocks if block.get("type") == "text"]
    is_prompt = line.value["type"] == "user"
    if is_prompt:
        texts = [line.reading.withheld.filter_prompt(remove_editor_context(text)) for text in texts]
    text = clean_message("\n\n".join(filter(None, texts)), line.redactions, as_typed=is_prompt)
    if not text or _INTERRUPTED.match(text):
        return []
    return [replace(bare, kind=_classify_turn(line.value, message, text), text=text)]


def _read_tool_turns(line: Line, bare: Turn, blocks: list[dict[str, Any]], number: int) -> list[Turn]:
    """Returns the turns of the tool calls and results in a line; the first has this number."""
    turns: list[Turn] = []
    for block in blocks:
        numbered = replace(bare, uuid=_number_uuid(bare.uuid, number + len(turns)))
        if block.get("type") == "tool_use":
            call = string(block, "name"), block.get("input") or {}
            (turn,) = line.make_call_turns(numbered, string(block, "id"), [call])
            turns.append(replace(turn, tool_name=read_label(block, "name", 120), tool_id=read_label(block, "id", 120)))
        elif block.get("type") == "tool_result":
            content, outcome = flatten_content(block.get("content")), line.value.get("toolUseResult")
            turn = line.make_result_turn(numbered, string(block, "tool_use_id"), content, outcome)
            turns.append(replace(turn, tool_id=read_label(block, "tool_use_id", 120)))
    return turns


def _read_answer_turns(line: Line, bare: Turn, blocks: list[dict[str, Any]], number: int) -> list[Turn]:
    """Returns the turn of what the user said in the result of a tool: answers, or why they rejected it."""
    value = line.value
    choices = _read_choices(value, blocks)
    text = clean_message(quote_answers(choices) or _read_rejection(value, blocks), line.redactions)
    if not text:
        return []
    call = read_label(value, "sourceToolAssistantUUID") or read_label(value, "parentUuid")
    kind: TurnKind = "relayed" if _is_submitted_by_program(value) else "user"
    uuid = _number_uuid(bare.uuid, number)
    return [replace(bare, uuid=uuid, kind=kind, text=text, answers=call or "?", is_pick=bool(choices))]


def read_worktrees(line: Line) -> list[tuple[str, str]]:
    """Returns (worktree, directory from which it was entered) of a line that says in which worktree a session goes
    on."""
    entered = mapping(line.value, "worktreeSession")
    worktree, origin = (read_path(entered, name, line.redactions) for name in ("worktreePath", "originalCwd"))
    return [(worktree, origin)] if worktree.startswith("/") and origin.startswith("/") else []


def read_queued_turns(line: Line) -> list[Turn]:
    """Returns the prompt that was typed during a running turn and absorbed by it; it has no `user` line."""
    queued = mapping(line.value, "attachment")
    kind = queued.get("type"), queued.get("commandMode")
    if kind != ("queued_command", "prompt") or not _is_human(queued.get("origin")):
        return []
    return _make_prompt_turns(line, flatten_content(queued.get("prompt")), form="absorbed")


def read_enqueued_turns(line: Line) -> list[Turn]:
    """Returns a prompt that entered the queue. Its line has no uuid: it is identified by its session, time and
    words."""
    value, session, at = line.value, read_label(line.value, "sessionId"), read_time(line.value)
    text = clean_message(flatten_content(value.get("content")), line.redactions, as_typed=True)
    if value.get("operation") != "enqueue" or not session or not text:
        return []
    uuid = f"queue:{session}:{at}"
    return [Turn(uuid=uuid, session_id=session, kind=classify_prompt(text), text=text, at=at, form="queued")]


def read_progress_turns(line: Line) -> list[Turn]:
    """Returns a sub-agent's turns in the session's file: some versions write them only there, others also in a file of
    its own."""
    data = mapping(line.value, "data")
    message, agent = mapping(data, "message"), read_label(data, "agentId")
    if data.get("type") != "agent_progress" or not agent or message.get("type") not in ("user", "assistant"):
        return []
    inherited = {key: line.value.get(key) for key in ("sessionId", "cwd", "version", "timestamp")}
    value = {**inherited, **message, "isSidechain": True, "agentId": agent}
    return read_message_turns(Line(value, line.reading, line.redactions))


def read_blocked_turns(line: Line) -> list[Turn]:
    """Returns a prompt that a hook blocked, since the user did write it."""
    value, content = line.value, string(line.value, "content")
    is_blocked = value.get("subtype") == "informational" and content.startswith(BLOCKED_PREFIX)
    if not is_blocked or BLOCKED_PROMPT not in content:
        return []
    # The conversation never contained it: the next prompt has the same parent and must not replace it.
    return _make_prompt_turns(line, content.partition(BLOCKED_PROMPT)[2], parent_uuid="")


def _make_prompt_turns(line: Line, prompt: str, **fields: Any) -> list[Turn]:
    text, bare = clean_message(prompt, line.redactions, as_typed=True), make_bare_turn(line)
    if bare is None or not text:
        return []
    return [replace(bare, kind=_classify_line_prompt(line.value, text), text=text, **fields)]


def make_bare_turn(line: Line) -> Turn | None:
    """Returns a turn with the line's ids, time and directory and without text; None for a line without ids."""
    value = line.value
    uuid, session, agent = read_label(value, "uuid"), read_label(value, "sessionId"), read_agent(value)
    if not uuid or not session or agent is None:
        return None
    # Of two prompts that begin a conversation the first was edited, so both have the same parent.
    is_first = value.get("type") == "user" and "parentUuid" in value and not value.get("isSidechain")
    return Turn(
        uuid=uuid, session_id=session, kind="user", text="", at=read_time(value), agent_id=agent,
        cwd=read_path(value, "cwd", line.redactions),
        parent_uuid=read_label(value, "parentUuid") or (ROOT_PARENT if is_first else ""),
        version=read_label(value, "version", 40),
    )  # fmt: skip


def classify_prompt(prompt: str) -> TurnKind:
    """Returns the kind of a prompt: user, command to the host, or notification."""
    if _NOTIFICATION.match(prompt) or _TASK_NOTE.match(prompt):
        return "notification"
    return "command" if _MARKUP.match(prompt) or is_slash_command(prompt) else "user"


def clean_message(text: str, counts: Counter[str], *, as_typed: bool = False) -> str:
    """Returns a text without csmd's injections and the host's reminders, redacted.

    With `as_typed` also without an editor's additions, and a command or a note that the host wrote in tags becomes what
    was typed, as its hook reports it.
    """
    cleaned = display.remove_spans(wire.clean(text), *_REMINDER)
    cleaned = cut_long(remove_editor_context(cleaned) if as_typed else cleaned, counts)
    if as_typed and _COMMAND.match(cleaned) and (name := _NAME.search(cleaned)):
        arguments = _ARGUMENTS.search(cleaned)
        cleaned = f"/{name.group(1)} {arguments.group(1) if arguments else ''}"
    elif as_typed and (note := _NOTE.fullmatch(cleaned)):
        cleaned = f"# {display.squeeze(note[1])}"
    return remove_injections(cleaned, counts)


def remove_editor_context(text: str) -> str:
    """Returns a text without what an editor adds before or after it."""
    parts: list[str] = []
    index = 0
    for tag in itertools.islice(_EDITOR_TAG.finditer(text), MAX_TAGS):
        closing = f"</{tag[1]}>"
        end = text.find(closing, tag.end())
        if tag.start() >= index and end >= 0:
            parts.append(text[index : tag.start()])
            rest = _AFTER_EDITOR.match(text, end + len(closing))
            index = rest.end() if rest else end + len(closing)
    return "".join(parts) + text[index:]


def flatten_content(content: Any) -> str:
    """Returns the text of a content value: a string, or a list of blocks."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(string(block, "text") if isinstance(block, dict) else "" for block in content)


def _number_uuid(uuid: str, number: int) -> str:
    return uuid if number == 0 else f"{uuid}/{number}"


def _classify_turn(value: dict[str, Any], message: dict[str, Any], text: str) -> TurnKind:
    if value["type"] != "user":
        is_hosts = value.get("isApiErrorMessage") or message.get("model") == "<synthetic>"
        return "notification" if is_hosts else "assistant"
    if value.get("isCompactSummary"):
        return "summary"
    # The host also submits its own text as prompts; only a person's words get a person's authority.
    return _classify_line_prompt(value, text) if _is_human(value.get("origin")) else "notification"


def _classify_line_prompt(value: dict[str, Any], prompt: str) -> TurnKind:
    """As `classify_prompt`, but `relayed` for a prompt that no person is known to have typed, as in a program's session.

    No one types the plan that the host submits to a new session either.
    """
    kind = classify_prompt(prompt)
    is_relayed = bool(string(value, "planContent")) or _is_submitted_by_program(value) or _is_untyped(value, prompt)
    return "relayed" if kind == "user" and is_relayed else kind


def _is_submitted_by_program(value: dict[str, Any]) -> bool:
    """Whether a program runs the client and the line has no origin; a fork's lines keep the origin they had."""
    has_origin = isinstance(value.get("origin"), dict)  # any but a person's is excluded before
    return string(value, "entrypoint").startswith(_BY_PROGRAM) and not has_origin and not value.get("isSidechain")


def _is_untyped(value: dict[str, Any], prompt: str) -> bool:
    """Whether a prompt's line lacks the fields of typed prompts, in versions that record nothing else about its origin.

    Those versions treat text that begins with a slash as a command and omit the fields, even if it is a path.
    """
    version = display.parse_version(string(value, "version"))
    if version is None or value["type"] != "user" or value.get("isSidechain") or prompt.startswith("/"):
        return False
    first, last = _VERSIONS_WITHOUT_ORIGIN
    # Words in the line of a tool's result are typed by the person who allows the tool.
    proofs = (*_TYPED_PROMPT_FIELDS, "entrypoint", "toolUseResult")
    return first <= version <= last and not any(name in value for name in proofs)


def _is_human(origin: Any) -> bool:
    """Whether a prompt's origin is a person; True in older versions, which record no origin."""
    return not isinstance(origin, dict) or origin.get("kind", "human") == "human"


def _find_result(value: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the only tool result of a line; {} in a line with none or several."""
    results = [block for block in blocks if block.get("type") == "tool_result"]
    return results[0] if value.get("type") == "user" and len(results) == 1 else {}


def _read_choices(value: dict[str, Any], blocks: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Returns (question, answer) of the user's answers to the assistant's questions, each with its notes.

    Recognised by the form of the line; the store looks up whose tool it was (`Turn.answers`).
    """
    result, outcome = _find_result(value, blocks), value.get("toolUseResult")
    content = result.get("content")
    if isinstance(outcome, dict) and isinstance(outcome.get("questions"), list):
        answers = {} if result.get("is_error") else mapping(outcome, "answers")
        notes = mapping(outcome, "annotations")
        answer_texts = {question: answer for question, answer in answers.items() if isinstance(answer, str) and answer}
        noted = {question: string(mapping(notes, question), "notes") for question in answer_texts}
        return [(question, f"{answer}\n{noted[question]}") for question, answer in answer_texts.items()]
    if not isinstance(content, str):
        return []
    if not result.get("is_error"):
        match = _ANSWERED.fullmatch(content) if outcome is None else None
        return _ANSWER.findall(match[1]) if match and match[1].count('"') <= MAX_QUOTES else []
    reason = _strip_rejection(value, content)
    return _CLARIFIED.findall(reason) if reason.startswith(_CLARIFY) else []


def _read_rejection(value: dict[str, Any], blocks: list[dict[str, Any]]) -> str:
    """Why the user did not let a tool run, in their words."""
    result = _find_result(value, blocks)
    content = string(result, "content")
    if result.get("is_error") is not True or not content:
        return ""
    reason = _strip_rejection(value, content)
    return "" if reason.startswith(_CLARIFY) else reason


def _strip_rejection(value: dict[str, Any], content: str) -> str:
    """Returns the text after the host's words for a rejected tool; "" if these words are not the host's."""
    outcome, decision = value.get("toolUseResult"), mapping(value, "permissionDecision")
    denied = value.get("toolDenialKind", "user-rejected") == "user-rejected" and outcome == f"Error: {content}"
    if not denied or decision.get("decision") == "accept" or not content.startswith(REJECTED_PREFIX):
        return ""
    return content.removeprefix(REJECTED_PREFIX).partition(_AFTER_REASON)[0]


#: The name of agents without a name in the session's own file.
UNNAMED_AGENT = "sidechain"


def record_tokens(value: dict[str, Any], turn: int) -> list[TokenUse]:
    """Returns the tokens that an `assistant` line records for its message; a sub-agent's belong to its own stream."""
    message = mapping(value, "message")
    session, message_id, agent = read_label(value, "sessionId"), read_label(message, "id"), read_agent(value)
    input_tokens, cache_read, cache_write, output = (read_tokens(message.get("usage"), name) for name in TOKEN_FIELDS)
    is_recorded = value.get("type") == "assistant" and any((input_tokens, output, cache_read, cache_write))
    if not is_recorded or not session or not message_id or agent is None:
        return []
    stream = f"{session}/{agent}" if agent else session
    return [TokenUse(stream, message_id, (input_tokens, output, cache_read, cache_write), turn)]


def read_agent(value: dict[str, Any]) -> str | None:
    """Returns the sub-agent that wrote a line, "" for the session itself, None for an impossible name.

    Early versions wrote their agents' words into the session's file without a name.
    """
    if not value.get("isSidechain"):
        return ""
    return (read_label(value, "agentId") or None) if string(value, "agentId") else UNNAMED_AGENT


#: Bytes before the position that are searched for calls that named an excluded file.
WITHHELD_LOOK_BACK_BYTES = 64 * 1024


def make_reader(transcript: Transcript) -> ReadLine:
    """Returns a function that reads the lines of a transcript; in a sub-agent's file every line is the agent's."""
    if transcript.withheld.excludes.files:
        record_withheld(transcript.read_before(WITHHELD_LOOK_BACK_BYTES), transcript.withheld)
    agent = parse_agent_file(transcript.path.name)
    if not agent:
        return read_line

    def read_agent_line(data: bytes, into: Reading) -> None:
        into.agent = agent
        read_line(data, into)

    return read_agent_line


def record_withheld(before: bytes, withheld: WithheldCalls) -> None:
    """Adds to `withheld` the calls in a transcript's bytes that named an excluded file; a cut line holds none."""
    for line in before.split(b"\n"):
        if b'"tool_use"' in line:
            with contextlib.suppress(BadInput):
                read_line(line, Reading(withheld=withheld))


#: A line's own type, or its own attachment's, if only scalars precede it: the members are matched one by one from the
#: brace on, so that no word of a prompt and no field of a tool's input is mistaken for it.
_LINE_TYPE = re.compile(
    rb'\{\s?+(?:"[^"\\]*+":\s?+(?:"(?:[^"\\]|\\.)*+"|[-+.0-9A-Za-z]++),\s?+)*?'
    rb'(?:"type":\s?+"([a-z-]++)"|"attachment":\s?+\{\s?+"type":\s?+"([a-z_]++)")'
)
_IS_MESSAGE = re.compile(rb'"type":\s?"(?:user|assistant)"')
#: The types of lines that are parsed; all others are bookkeeping, recognised by their first bytes.
PARSED_TYPES = frozenset(b"user assistant attachment custom-title ai-title queue-operation worktree-state".split())
PARSED_ATTACHMENTS = frozenset({b"queued_command"})
#: Types of mostly bookkeeping lines -> what the other lines contain.
PARSED_WITH: dict[bytes, re.Pattern[bytes]] = {
    b"progress": re.compile(rb'"type":\s?"agent_progress"'),
    b"system": re.compile(rb'"subtype":\s?"informational"'),
}
HEAD_BYTES = 600

_TITLE = re.compile(rb'"type":\s?"(?:custom|ai)-title"')
_AGENT_FILE = re.compile(r"agent-([\w-]{1,100})\.jsonl", re.ASCII)
_HAS_ID = re.compile(rb'"(?:sessionId|uuid|leafUuid|messageId)":\s?"')
_HAS_TYPE = re.compile(rb'"type":\s?"')


def is_transcript(beginning: bytes) -> bool:
    """Whether a file with these first bytes is a transcript: a line has a type and the id of a session or line."""
    return any(_HAS_TYPE.search(line) and _HAS_ID.search(line) for line in beginning.splitlines())


def read_line(data: bytes, into: Reading) -> None:
    """Adds the content of one transcript line; BadInput when it is malformed."""
    if _is_bookkeeping(data):
        into.skipped += 1
        return
    try:
        value = json.loads(data.decode("utf-8", "replace"))
        if not isinstance(value, dict):
            raise BadInput("a transcript line is not a JSON object")
        if into.agent and not value.get("isSidechain"):
            value = {"agentId": into.agent, **value, "isSidechain": True}
        line = Line(value, into)
        turns = _read_turns(line)
    except RecursionError:
        raise BadInput("nested too deeply") from None
    except ValueError as error:
        raise BadInput(f"not JSON: {error}") from error
    line.record_redactions(turns)
    if value.get("type") == "assistant":
        into.token_uses += record_tokens(value, len(into.turns) if turns else len(into.turns) - 1)
    into.turns += turns


def _is_bookkeeping(line: bytes) -> bool:
    """Whether a line holds no turn, by its first bytes; False if they do not decide it."""
    own = _LINE_TYPE.match(line[:HEAD_BYTES])
    if own is None:
        return False
    kind, attachment = own.groups()
    if kind is None:
        return attachment not in PARSED_ATTACHMENTS and _IS_MESSAGE.search(line) is None
    pattern = PARSED_WITH.get(kind)
    return kind not in PARSED_TYPES if pattern is None else pattern.search(line) is None


def _read_turns(line: Line) -> list[Turn]:
    """Returns the turns in a line."""
    value = line.value
    match value.get("type"):
        case "user" | "assistant":
            return read_message_turns(line)
        case "attachment":
            return read_queued_turns(line)
        case "queue-operation":
            _record_queue_exit(line)
            return read_enqueued_turns(line)
        case "progress":
            return read_progress_turns(line)
        case "system":
            return read_blocked_turns(line)
        case "custom-title" | "ai-title":
            title = string(value, "customTitle") or string(value, "aiTitle")
            line.reading.record_title(read_label(value, "sessionId"), title, line.redactions)
            return []
        case "worktree-state":
            line.reading.worktrees += read_worktrees(line)
            return []
    return line.skip()


def _record_queue_exit(line: Line) -> None:
    """Records a prompt that left the queue.

    If it became the next prompt it has its own line; if a running turn absorbed it, it may have none.
    """
    value, queue_exits = line.value, line.reading.queue_exits
    if value.get("operation") not in ("dequeue", "remove"):
        return
    session, at = read_label(value, "sessionId"), read_time(value)
    nth = sum(1 for earlier in queue_exits if (earlier.session_id, earlier.at) == (session, at))
    text = clean_message(flatten_content(value.get("content")), Counter(), as_typed=True)
    queue_exits.append(QueueExit(session, at, value["operation"] == "remove", text, nth, len(line.reading.turns)))


def may_answer(tools: list[str], is_pick: bool = False) -> bool:
    """Whether a result of these tools can hold the user's words: all are known and the host's own.

    Answers to questions (`is_pick`) come from the tool that asks them.
    """
    if is_pick:
        return set(tools) == {QUESTION_TOOL}
    return bool(tools) and not any(not tool or tool.startswith(FOREIGN_TOOL) for tool in tools)


def parse_agent_file(name: str) -> str:
    """Returns the sub-agent whose transcript a file is, by its name; "" for a session's.

    Some versions do not mark an agent's lines: then only the name shows that its prompt is the assistant's.
    """
    match = _AGENT_FILE.fullmatch(name)
    return match[1] if match else ""


def find_warmups(beginning: bytes) -> frozenset[str]:
    """Returns the agents that the host started for itself: their names, and the uuids of the lines of unnamed ones.

    Such an agent has a file of its own, or its lines are at the beginning of a session's.
    """
    agents: set[str] = set()
    for line in beginning.split(b"\n") if WARMUP.encode() in beginning else ():
        value = parse_object(line) or {}
        agent, continues = read_agent(value), read_label(value, "parentUuid") in agents
        if agent and (continues or mapping(value, "message").get("content") == WARMUP):
            agents.add(read_label(value, "uuid") if agent == UNNAMED_AGENT else agent)
    return frozenset(agents)


def make_warmup_test(beginning: bytes) -> Callable[[Turn], bool] | None:
    """Returns the test for turns of agents that the host started itself, by a transcript's first bytes; None without
    any."""
    agents = find_warmups(beginning)
    if not agents:
        return None
    return lambda turn: bool(turn.agent_id) and not agents.isdisjoint((turn.agent_id, turn.uuid.partition("/")[0]))


def read_titles(beginning: bytes) -> dict[str, str]:
    """Returns the titles by session in a transcript's first bytes, as far as their lines are whole."""
    reading = Reading()
    for line in beginning.split(b"\n"):
        if _TITLE.search(line[:HEAD_BYTES]):
            with contextlib.suppress(BadInput):
                read_line(line, reading)
    return reading.titles


def list_private_paths(folder: Path) -> list[Path]:
    """Returns the paths where the assistant stores transcripts and the list of projects, by its configuration."""
    return [folder, folder.parent / ".claude.json"] if folder.name == ".claude" else [folder]
