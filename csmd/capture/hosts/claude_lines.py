"""What a line of Claude Code's transcript holds: the turns in it, from its decoded value; no JSON, no I/O here.

A person's words keep a person's kind only where the *host* says that a person spoke: a prompt's line, a queued
prompt, an answer to a question, a rejection's reason. That a tool's output looks like one of these is not enough.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from csmd import text as texts
from csmd import wire
from csmd.capture.exclude import Withheld
from csmd.capture.fields import label, moment, string
from csmd.capture.hosts.claude_tools import transcripts_written
from csmd.capture.hosts.claude_usage import agent_of, tokens
from csmd.capture.redact import redact, redact_tree
from csmd.model import TOOL_KINDS, Turn, TurnKind

#: The host's own words for a tool that the user turned down and said why; the reason stands behind them.
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
#: The host's words for a prompt that somebody's hook turned down; it has no `user` line.
BLOCKED, PROMPT_WAS = "UserPromptSubmit operation blocked by hook:", "\n\nOriginal prompt: "
#: A tool of a server's: whatever it answers, and be it the host's own words, is not the host's.
FOREIGN_TOOL = "mcp__"
#: The parts of what a model was given for a message, as the host adds them up for its context window.
CONTEXT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
#: What the first versions ask their own agents at a start; nobody's conversation.
WARMUP = "Warmup"

_MARKUP = re.compile(
    r"^\s*<(?:command-name|command-message|command-args|local-command-stdout|local-command-caveat|bash-input|bash-stdout|bash-stderr)>"
)
_COMMAND = re.compile(r"^\s*<command-(?:name|message|args)>")
_NAME = re.compile(r"<command-name>\s*/?(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*)</command-args>", re.DOTALL)
_SLASH = re.compile(r"^/[a-zA-Z][\w:.-]*(?:\s|$)")
#: What another agent, session or service sent: it comes as a prompt and is nobody's here (the queue has no origin).
_NOTIFICATION = re.compile(
    r"^\s*<(?:(?:task|agent)-notification|(?:agent|teammate|cross-session)-message|channel|fork-boilerplate)[\s>]"
)
#: What the host notes of a task in the background, as an object in the place of words.
_TASK = re.compile(r'^\s*\{(?=.*"task_id"\s*:)(?=.*"(?:tool_use_id|task_type)"\s*:).*\}\s*$', re.DOTALL)
#: How a session was begun by a program that hands in its prompts (`claude -p`, an SDK).
_BY_PROGRAM = "sdk-"
#: Versions that do not say how a session was begun, and what each line of theirs has that a person typed: one of these
#: (589 prompts of 20 versions, and runs of 2.0.77 with and without a terminal).
_SILENT_VERSIONS, _TYPED = ((2, 0, 76), (2, 1, 63)), ("thinkingMetadata", "permissionMode")
_INTERRUPTED = re.compile(r"^\[Request interrupted by user(?: for tool use)?\]\s*$")
_REMINDER = ("<system-reminder>", "</system-reminder>")

#: (kind, text, tool, the call's id, transcripts that the call writes) of one turn in a line.
Found = list[tuple[TurnKind, str, str, str, tuple[str, ...]]]


def message_turns(value: dict[str, Any], counts: Counter[str], tool_limit: int, withheld: Withheld) -> list[Turn]:
    """The turns in a line in which somebody speaks or a tool works: `user` and `assistant` lines.

    What a tool has to do with an excluded file is `withheld`.
    """
    message = value.get("message")
    bare = bare_turn(value, counts)
    if not isinstance(message, dict) or bare is None or (value.get("isMeta") and not value.get("isCompactSummary")):
        return []
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return []
    found: Found = []
    said = [string(block, "text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    words = spoken("\n\n".join(said), counts, as_typed=value["type"] == "user") if said else ""
    if words and not _INTERRUPTED.match(words):
        found.append((_kind(value, message, words), words, "", "", ()))
    for block in blocks:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            whole = block.get("input") or {}
            body = wire.clean(wire.dumps(redact_tree(withheld.given(string(block, "id"), whole), counts)))
            name = label(block, "name", 120)
            # Of the call as it was made: what is trimmed, redacted or withheld may be where it writes.
            writes = transcripts_written(string(block, "name"), whole)
            found.append(("tool_call", body, name, label(block, "id", 120), writes))
        elif block.get("type") == "tool_result":
            shown = withheld.shown(string(block, "tool_use_id"), block.get("content"), value.get("toolUseResult"))
            body = redact(wire.clean(texts.strip_fenced(flat(shown))), counts)
            found.append(("tool_result", body, "", label(block, "tool_use_id", 120), ()))
    answer = spoken(_answered(value, blocks), counts)
    usage = message.get("usage")
    made, given = tokens(usage, "output_tokens"), sum(tokens(usage, name) for name in CONTEXT)
    turns = [
        replace(
            bare,
            uuid=uuid,
            kind=kind,
            text=texts.both_ends(body, limit=tool_limit, of=f"turn {uuid}") if kind in TOOL_KINDS else body,
            message_id=label(message, "id", 200),
            tool_name=tool,
            tool_id=tool_id,
            writes=writes,
            model=label(message, "model", 100),
            tokens=made if place == 0 else 0,
            context=given,
        )
        for place, (kind, body, tool, tool_id, writes) in enumerate(found)
        for uuid in [_numbered(bare.uuid, place)]
    ]
    if answer:
        call = label(value, "sourceToolAssistantUUID", 200) or bare.parent_uuid
        kind: TurnKind = "relayed" if _is_by_program(value) else "user"
        turns.append(replace(bare, uuid=_numbered(bare.uuid, len(turns)), kind=kind, text=answer, answers=call or "?"))
    return turns


def worktrees_entered(value: dict[str, Any], counts: Counter[str]) -> list[tuple[str, str]]:
    """(worktree, directory it was entered from) of a line that says in which worktree a session goes on."""
    entered = value.get("worktreeSession")
    if not isinstance(entered, dict):
        return []
    names = (string(entered, "worktreePath"), string(entered, "originalCwd"))
    tree, main = (redact(wire.clean(name), counts) for name in names)
    return [(tree, main)] if tree.startswith("/") and main.startswith("/") else []


def queued_turns(value: dict[str, Any], counts: Counter[str]) -> list[Turn]:
    """A prompt that was typed while the assistant worked and was taken up in its turn: it has no `user` line."""
    queued = value.get("attachment")
    if not isinstance(queued, dict) or queued.get("type") != "queued_command":
        return []
    if queued.get("commandMode") != "prompt" or not _is_human(queued.get("origin")):
        return []
    said = spoken(flat(queued.get("prompt")), counts, as_typed=True)
    bare = bare_turn(value, counts)
    return [replace(bare, kind=_prompted(value, said), text=said, form="absorbed")] if bare is not None and said else []


def enqueued_turns(value: dict[str, Any], counts: Counter[str]) -> list[Turn]:
    """What was put into the queue of prompts: known by its session, time and words; the line has no uuid."""
    session, at = label(value, "sessionId", 200), moment(value)
    said = spoken(flat(value.get("content")), counts, as_typed=True)
    if value.get("operation") != "enqueue" or not session or not said:
        return []
    uuid = f"queue:{session}:{at}"
    return [Turn(uuid=uuid, session_id=session, kind=prompt_kind(said), text=said, at=at, form="queued")]


def progress_turns(value: dict[str, Any], counts: Counter[str], tool_limit: int, withheld: Withheld) -> list[Turn]:
    """What a sub-agent did, told inside the session's file: by versions that wrote no file for it, or beside it."""
    data = value.get("data")
    told = data.get("message") if isinstance(data, dict) and data.get("type") == "agent_progress" else None
    agent = label(data, "agentId", 200) if isinstance(data, dict) else ""
    if not isinstance(told, dict) or not agent or told.get("type") not in ("user", "assistant"):
        return []
    around = {key: value.get(key) for key in ("sessionId", "cwd", "version", "timestamp")}
    return message_turns({**around, **told, "isSidechain": True, "agentId": agent}, counts, tool_limit, withheld)


def blocked_turns(value: dict[str, Any], counts: Counter[str]) -> list[Turn]:
    """A prompt that a hook of somebody's turned down: the user said it all the same."""
    content = string(value, "content")
    if value.get("subtype") != "informational" or not content.startswith(BLOCKED) or PROMPT_WAS not in content:
        return []
    said = spoken(content.partition(PROMPT_WAS)[2], counts, as_typed=True)
    bare = bare_turn(value, counts)
    return [replace(bare, kind=_prompted(value, said), text=said)] if bare is not None and said else []


def is_warmup(value: dict[str, Any]) -> bool:
    """Whether a file's first line says that it is an agent the host started for itself."""
    message = value.get("message")
    return bool(value.get("isSidechain")) and isinstance(message, dict) and message.get("content") == WARMUP


def bare_turn(value: dict[str, Any], counts: Counter[str]) -> Turn | None:
    """What a line says about itself whatever was said in it; None for one that cannot be told from others."""
    uuid, session = label(value, "uuid", 200), label(value, "sessionId", 200)
    agent = agent_of(value)
    if not uuid or not session or agent is None:
        return None
    return Turn(
        uuid=uuid,
        session_id=session,
        kind="user",
        text="",
        at=moment(value),
        agent_id=agent,
        cwd=redact(wire.clean(string(value, "cwd")), counts),
        parent_uuid=label(value, "parentUuid", 200),
        version=label(value, "version", 40),
    )


def prompt_kind(said: str) -> TurnKind:
    """Whether a prompt is the user's own words, a command of the host or finished background work."""
    if _NOTIFICATION.match(said) or _TASK.match(said):
        return "notification"
    return "command" if _MARKUP.match(said) or _SLASH.match(said) else "user"


def spoken(text: str, counts: Counter[str], *, as_typed: bool = False) -> str:
    """What somebody said: without csmd's own injections and the host's reminders, redacted.

    With `as_typed` a command that the host has spelt out in tags is what was typed, as its hook reports it.
    """
    plain = texts.without_spans(wire.clean(text), *_REMINDER)
    if as_typed and _COMMAND.match(plain) and (name := _NAME.search(plain)):
        arguments = _ARGUMENTS.search(plain)
        plain = f"/{name.group(1)} {arguments.group(1) if arguments else ''}"
    return redact(texts.strip_fenced(plain), counts).strip()


def quoted(said: str) -> str:
    """Somebody else's words inside what the user says: each line behind a `>`."""
    return "\n".join(f"> {line}" for line in said.splitlines())


def flat(content: Any) -> str:
    """The text of a content value: a string, or a list of blocks."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(string(block, "text") if isinstance(block, dict) else "" for block in content)


def _numbered(uuid: str, place: int) -> str:
    return uuid if place == 0 else f"{uuid}/{place}"


def _kind(value: dict[str, Any], message: dict[str, Any], said: str) -> TurnKind:
    if value["type"] != "user":
        ours = value.get("isApiErrorMessage") or message.get("model") == "<synthetic>"
        return "notification" if ours else "assistant"
    if value.get("isCompactSummary"):
        return "summary"
    # Whatever else the host hands in as a prompt, only a person's words may carry a person's authority.
    return _prompted(value, said) if _is_human(value.get("origin")) else "notification"


def _prompted(value: dict[str, Any], said: str) -> TurnKind:
    """As `prompt_kind`, of a line that says how its session was begun: a program's prompt nobody is known to have typed.

    Neither has anybody typed the plan that the host hands to a new session.
    """
    kind = prompt_kind(said)
    handed = bool(string(value, "planContent")) or _is_by_program(value) or _is_untyped(value)
    return "relayed" if kind == "user" and handed else kind


def _is_by_program(value: dict[str, Any]) -> bool:
    """Whether a program runs the client and nothing says that a person typed this; a fork's lines keep who typed them."""
    typed = isinstance(value.get("origin"), dict)  # any other than a person's is asked for before
    return string(value, "entrypoint").startswith(_BY_PROGRAM) and not typed and not value.get("isSidechain")


def _is_untyped(value: dict[str, Any]) -> bool:
    """Whether a prompt's line lacks what typed prompts have, in versions that say no more of where it came from."""
    version = texts.version_of(string(value, "version"))
    if version is None or value["type"] != "user" or value.get("isSidechain"):
        return False
    first, last = _SILENT_VERSIONS
    # Words beside a tool's result are typed where a person lets the tool run.
    return first <= version <= last and not any(name in value for name in (*_TYPED, "entrypoint", "toolUseResult"))


def _is_human(origin: Any) -> bool:
    """Whether a prompt's origin is a person; older versions do not say, and then it is."""
    return not isinstance(origin, dict) or origin.get("kind", "human") == "human"


def _answered(value: dict[str, Any], blocks: list[Any]) -> str:
    """What the user said in place of a tool's result: answers to the assistant's questions, or why a tool may not run.

    Told by the shape that the host gives such a line; the store looks up whose tool it was (`Turn.answers`).
    """
    results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
    outcome = value.get("toolUseResult")
    if value.get("type") != "user" or len(results) != 1:
        return ""
    if isinstance(outcome, dict) and isinstance(outcome.get("questions"), list):
        answers = outcome.get("answers")
        pairs = answers.items() if isinstance(answers, dict) and not results[0].get("is_error") else ()
        # The question is the assistant's: quoted, for what somebody quotes is not said by them.
        said = [(question, answer) for question, answer in pairs if isinstance(answer, str) and answer]
        return "\n\n".join(f"{quoted(question)}\n{answer}" for question, answer in said)
    content = results[0].get("content")
    if results[0].get("is_error") is not True or not isinstance(content, str) or not isinstance(outcome, str):
        return ""
    decision = value.get("permissionDecision")
    ran = isinstance(decision, dict) and decision.get("decision") == "accept"
    denied = value.get("toolDenialKind", "user-rejected") == "user-rejected" and outcome == f"Error: {content}"
    return content.removeprefix(REJECTED) if denied and not ran and content.startswith(REJECTED) else ""
