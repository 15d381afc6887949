"""Claude Code's transcript lines to turns, titles, token usage and queue."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.exclusions import Withheld
from csmd.hosts.adapter import Left, Opened, Reading, ReadLine, Took, cut_long, tokens, without_injections
from csmd.hosts.json_fields import json_object, mapping, moment, string
from csmd.hosts.labels import label
from csmd.hosts.tool_calls import transcripts_written
from csmd.privacy.redaction import Removed, redact, redact_tree
from csmd.text import display
from csmd.values import Turn
from csmd.vocabulary import TOOL_KINDS, TurnKind

#: The host's words for a tool that the user turned down with a reason, which follows them.
REJECTED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
#: What may follow a reason: the host's own words to the assistant.
_BEHIND_REASON = "\n\nNote: The user's next message may contain a correction or preference."
#: The tool that puts questions before the user, the host's words for the answers, and for questions turned down.
ASKING = "AskUserQuestion"
_ANSWERED = re.compile(r"User has answered your questions: (.*)\. You can now continue\b.*", re.DOTALL)
_ANSWER = re.compile(r'"(.*?)"="(.*?)"(?=, "|\Z)', re.DOTALL)
#: More quotation marks stand in no answers; the time to look for them grows with their square.
MOST_QUOTES = 400
_CLARIFY = "The user wants to clarify these questions.\n"
_CLARIFIED = re.compile(r'^- "((?:(?!"\n).)*)"\n +Answer: (.*?)(?=\n- "|\Z)', re.DOTALL | re.MULTILINE)
#: The host's words for a prompt that somebody's hook turned down; it has no `user` line.
BLOCKED, PROMPT_WAS = "UserPromptSubmit operation blocked by hook:", "\n\nOriginal prompt: "
#: Text that the host wrote in the user's name: the turn states nothing.
WRITTEN_FOR_USER = re.compile(
    r"\s*(?:<(?:command-|local-command|bash-|task-notification|user-memory-input|teammate-message)|\[Request interrupted"
    r"|Caveat: |Stop hook feedback|Operation stopped by hook|Base directory for this skill|This session is being continued"
    r"|/[\w:.-]+(?:\s|$))"
)
HOST = "claude"
#: The tool whose input is a shell line.
SHELL = "Bash"
#: A tool of a server's: whatever it answers, and be it the host's own words, is not the host's.
FOREIGN_TOOL = "mcp__"
#: The parts of what a model was given for a message, as the host adds them up for its context window.
CONTEXT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
#: What the first versions ask their own agents at a start: not a conversation.
WARMUP = "Warmup"
#: Stands for the line that the first prompt of a conversation goes on from.
ROOT = "root"

_MARKUP = re.compile(
    r"^\s*<(?:command-name|command-message|command-args|local-command-stdout|local-command-caveat|bash-input|bash-stdout|bash-stderr)>"
)
_COMMAND = re.compile(r"^\s*<command-(?:name|message|args)>")
_NAME = re.compile(r"<command-name>\s*/?(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*)</command-args>", re.DOTALL)
#: A note to remember, which early versions take behind a `#`.
_NOTE = re.compile(r"\s*<user-memory-input>(.*)</user-memory-input>\s*", re.DOTALL)
_SLASH = re.compile(r"^/[a-zA-Z][\w:.-]*(?:\s|$)")
#: What another agent, session or service sent: it comes as a prompt of no user (the queue has no origin).
_NOTIFICATION = re.compile(
    r"^\s*<(?:(?:task|agent)-notification|(?:agent|teammate|cross-session)-message|channel|fork-boilerplate)[\s>]"
)
#: What the host notes of a task in the background, as an object in the place of words.
_TASK = re.compile(r'^\s*\{(?=.*"task_id"\s*:)(?=.*"(?:tool_use_id|task_type)"\s*:).*\}\s*$', re.DOTALL)
#: How a session was begun by a program that hands in its prompts (`claude -p`, an SDK).
_BY_PROGRAM = "sdk-"
#: Versions that do not record how a session was begun, and the fields of which each prompt that a person typed has one
#: (589 prompts of 20 versions, and runs of 2.0.77 with and without a terminal).
_SILENT_VERSIONS, _TYPED = ((2, 0, 76), (2, 1, 63)), ("thinkingMetadata", "permissionMode")
#: What an editor hands in with a prompt: the file that is open, what is selected in it, what its checks find.
_EDITOR = re.compile(r"^[ \t]*(?:<post-tool-use-hook>\s*)?<(ide_\w{1,40})>", re.MULTILINE)
_BEHIND_EDITOR = re.compile(r"\s*(?:</post-tool-use-hook>\s*)?")
#: More tags are no editor's.
MOST_TAGS = 100
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
    is_prompt = value["type"] == "user"
    said = [part for text in said if (part := withheld.typed(without_editor(text)) if is_prompt else text)]
    words = spoken("\n\n".join(said), counts, as_typed=is_prompt) if said else ""
    if words and not _INTERRUPTED.match(words):
        found.append((_kind(value, message, words), words, "", "", ()))
    for block in blocks:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            whole = block.get("input") or {}
            body = wire.clean(wire.dumps(redact_tree(withheld.keep_input(string(block, "id"), whole), counts)))
            name = label(block, "name", 120)
            # Of the call as it was made: what is trimmed, redacted or withheld may be where it writes.
            writes = transcripts_written(string(block, "name"), whole)
            found.append(("tool_call", body, name, label(block, "id", 120), writes))
        elif block.get("type") == "tool_result":
            content = flat(block.get("content"))
            shown = withheld.shown(string(block, "tool_use_id"), content, value.get("toolUseResult"))
            body = redact(wire.clean(display.strip_fenced(shown)), counts)
            found.append(("tool_result", body, "", label(block, "tool_use_id", 120), ()))
    picked = _picked(value, blocks)
    answer = spoken(_pairs_quoted(picked) or _reason(value, blocks), counts)
    usage = message.get("usage")
    made, given = tokens(usage, "output_tokens"), sum(tokens(usage, name) for name in CONTEXT)
    turns = [
        replace(
            bare,
            uuid=uuid,
            kind=kind,
            text=display.cut_middle(body, limit=tool_limit, of=f"turn {uuid}") if kind in TOOL_KINDS else body,
            message_id=label(message, "id", 200),
            tool_name=tool,
            tool_id=tool_id,
            writes=writes,
            model=label(message, "model", 100),
            tokens=made if place == 0 else 0,
            context=given,
            is_prompt_line=is_prompt and len(found) == 1 and kind not in TOOL_KINDS,
            mode=label(value, "permissionMode", 40) if is_prompt else "",
        )
        for place, (kind, body, tool, tool_id, writes) in enumerate(found)
        for uuid in [_numbered(bare.uuid, place)]
    ]
    if answer:
        call = label(value, "sourceToolAssistantUUID", 200) or label(value, "parentUuid", 200)
        kind: TurnKind = "relayed" if _is_by_program(value) else "user"
        uuid = _numbered(bare.uuid, len(turns))
        turns.append(replace(bare, uuid=uuid, kind=kind, text=answer, answers=call or "?", is_pick=bool(picked)))
    return turns


def worktrees_entered(value: dict[str, Any], counts: Counter[str]) -> list[tuple[str, str]]:
    """(worktree, directory it was entered from) of a line that says in which worktree a session goes on."""
    entered = mapping(value, "worktreeSession")
    tree, main = (redact(wire.clean(string(entered, name)), counts) for name in ("worktreePath", "originalCwd"))
    return [(tree, main)] if tree.startswith("/") and main.startswith("/") else []


def queued_turns(value: dict[str, Any], counts: Counter[str]) -> list[Turn]:
    """A prompt that was typed while the assistant worked and was taken up in its turn: it has no `user` line."""
    queued = mapping(value, "attachment")
    kind = queued.get("type"), queued.get("commandMode")
    if kind != ("queued_command", "prompt") or not _is_human(queued.get("origin")):
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
    """A sub-agent's turns in the session's file: written by versions without a file for it, or in addition to that."""
    data = mapping(value, "data")
    line, agent = mapping(data, "message"), label(data, "agentId", 200)
    if data.get("type") != "agent_progress" or not agent or line.get("type") not in ("user", "assistant"):
        return []
    around = {key: value.get(key) for key in ("sessionId", "cwd", "version", "timestamp")}
    return message_turns({**around, **line, "isSidechain": True, "agentId": agent}, counts, tool_limit, withheld)


def blocked_turns(value: dict[str, Any], counts: Counter[str]) -> list[Turn]:
    """A prompt that some hook turned down: the user wrote it all the same."""
    content = string(value, "content")
    if value.get("subtype") != "informational" or not content.startswith(BLOCKED) or PROMPT_WAS not in content:
        return []
    said = spoken(content.partition(PROMPT_WAS)[2], counts, as_typed=True)
    bare = bare_turn(value, counts)
    if bare is None or not said:
        return []
    # The conversation never had it: the next prompt, which goes on from the same line, does not take its place.
    return [replace(bare, kind=_prompted(value, said), text=said, parent_uuid="")]


def bare_turn(value: dict[str, Any], counts: Counter[str]) -> Turn | None:
    """A turn with the line's ids, time and directory and no text; None for a line without ids."""
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
        parent_uuid=label(value, "parentUuid", 200) or _root(value),
        version=label(value, "version", 40),
    )


def _root(value: dict[str, Any]) -> str:
    """What a prompt goes on from that begins a conversation: where two do, the first one was edited."""
    begins = value.get("type") == "user" and "parentUuid" in value and not value.get("isSidechain")
    return ROOT if begins else ""


def prompt_kind(said: str) -> TurnKind:
    """Whether a prompt is the user's own words, a command of the host or finished background work."""
    if _NOTIFICATION.match(said) or _TASK.match(said):
        return "notification"
    return "command" if _MARKUP.match(said) or _SLASH.match(said) else "user"


def spoken(text: str, counts: Counter[str], *, as_typed: bool = False) -> str:
    """A text without csmd's injections and the host's reminders, redacted.

    With `as_typed` without what an editor puts before it; a command or a note that the host has spelt out in tags is
    what was typed, as its hook reports it.
    """
    plain = display.without_spans(wire.clean(text), *_REMINDER)
    plain = cut_long(without_editor(plain) if as_typed else plain, counts)
    if as_typed and _COMMAND.match(plain) and (name := _NAME.search(plain)):
        arguments = _ARGUMENTS.search(plain)
        plain = f"/{name.group(1)} {arguments.group(1) if arguments else ''}"
    elif as_typed and (note := _NOTE.fullmatch(plain)):
        plain = f"# {display.squeeze(note[1])}"
    return without_injections(plain, counts)


def without_editor(said: str) -> str:
    """A text without what an editor puts before it or behind it."""
    kept: list[str] = []
    at = 0
    for opened in itertools.islice(_EDITOR.finditer(said), MOST_TAGS):
        closing = f"</{opened[1]}>"
        end = said.find(closing, opened.end())
        if opened.start() >= at and end >= 0:
            kept.append(said[at : opened.start()])
            behind = _BEHIND_EDITOR.match(said, end + len(closing))
            at = behind.end() if behind else end + len(closing)
    return "".join(kept) + said[at:]


def quoted(said: str) -> str:
    """A text quoted as somebody else's words: each line behind a `>`."""
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
    """As `prompt_kind`, but `relayed` for a prompt that no person is known to have typed, as in a program's session.

    Neither has anybody typed the plan that the host hands to a new session.
    """
    kind = prompt_kind(said)
    handed = bool(string(value, "planContent")) or _is_by_program(value) or _is_untyped(value, said)
    return "relayed" if kind == "user" and handed else kind


def _is_by_program(value: dict[str, Any]) -> bool:
    """Whether a program runs the client and the line has no origin; a fork's lines keep the origin they had."""
    typed = isinstance(value.get("origin"), dict)  # any other than a person's is asked for before
    return string(value, "entrypoint").startswith(_BY_PROGRAM) and not typed and not value.get("isSidechain")


def _is_untyped(value: dict[str, Any], said: str) -> bool:
    """Whether a prompt's line lacks the fields of typed prompts, in versions that record nothing else of its origin.

    Those versions take what begins with a slash for a command and leave the fields out, also where it is a path.
    """
    version = display.version_of(string(value, "version"))
    if version is None or value["type"] != "user" or value.get("isSidechain") or said.startswith("/"):
        return False
    first, last = _SILENT_VERSIONS
    # Words beside a tool's result are typed where a person lets the tool run.
    return first <= version <= last and not any(name in value for name in (*_TYPED, "entrypoint", "toolUseResult"))


def _is_human(origin: Any) -> bool:
    """Whether a prompt's origin is a person; True in older versions, which record no origin."""
    return not isinstance(origin, dict) or origin.get("kind", "human") == "human"


def _result(value: dict[str, Any], blocks: list[Any]) -> dict[str, Any]:
    """The only tool result of a line; {} in a line with none or several."""
    results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
    return results[0] if value.get("type") == "user" and len(results) == 1 else {}


def _picked(value: dict[str, Any], blocks: list[Any]) -> list[tuple[str, str]]:
    """(question, answer) of what the user answered to the assistant's questions, with the notes beside an answer.

    Told by the shape that the host gives such a line; the store looks up whose tool it was (`Turn.answers`).
    """
    result, outcome = _result(value, blocks), value.get("toolUseResult")
    content = result.get("content")
    if isinstance(outcome, dict) and isinstance(outcome.get("questions"), list):
        answers = {} if result.get("is_error") else mapping(outcome, "answers")
        notes = mapping(outcome, "annotations")
        told = [(asked, answer, string(mapping(notes, asked), "notes")) for asked, answer in answers.items()]
        return [(asked, f"{answer}\n{note}") for asked, answer, note in told if isinstance(answer, str) and answer]
    if not isinstance(content, str):
        return []
    if not result.get("is_error"):
        found = _ANSWERED.fullmatch(content) if outcome is None else None
        return _ANSWER.findall(found[1]) if found and found[1].count('"') <= MOST_QUOTES else []
    reason = _turned_down(value, content)
    return _CLARIFIED.findall(reason) if reason.startswith(_CLARIFY) else []


def _pairs_quoted(picked: Sequence[tuple[str, str]]) -> str:
    """Answers, each below its question, which is quoted: it is the assistant's."""
    return "\n\n".join(f"{quoted(question)}\n{answer.strip()}" for question, answer in picked)


def _reason(value: dict[str, Any], blocks: list[Any]) -> str:
    """Why the user did not let a tool run, in their words."""
    result = _result(value, blocks)
    content = result.get("content")
    reason = _turned_down(value, content) if result.get("is_error") is True and isinstance(content, str) else ""
    return "" if reason.startswith(_CLARIFY) else reason


def _turned_down(value: dict[str, Any], content: str) -> str:
    """What follows the host's words for a tool that the user turned down; "" where these are not the host's."""
    outcome, decision = value.get("toolUseResult"), value.get("permissionDecision")
    ran = isinstance(decision, dict) and decision.get("decision") == "accept"
    denied = value.get("toolDenialKind", "user-rejected") == "user-rejected" and outcome == f"Error: {content}"
    if not denied or ran or not content.startswith(REJECTED):
        return ""
    return content.removeprefix(REJECTED).partition(_BEHIND_REASON)[0]


#: The name of the agents that have none in the session's own file.
UNNAMED = "sidechain"
#: The host's names of what the store calls `input`, `output`, `cache_read` and `cache_write`.
NAMES = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def tokens_spent(value: dict[str, Any]) -> Took | None:
    """The tokens that an `assistant` line records for its message; None for none.

    A sub-agent's are its own stream's.
    """
    message = mapping(value, "message")
    session, ident, agent = label(value, "sessionId", 200), label(message, "id", 200), agent_of(value)
    given, made, read, written = (tokens(message.get("usage"), name) for name in NAMES)
    is_told = value.get("type") == "assistant" and any((given, made, read, written))
    if not is_told or not session or not ident or agent is None:
        return None
    return Took(f"{session}/{agent}" if agent else session, ident, (given, made, read, written))


def agent_of(value: dict[str, Any]) -> str | None:
    """The sub-agent that a line is of, "" for the session's own, None for a name that cannot be one.

    Early versions wrote what their agents said into the session's file, all under no name.
    """
    if not value.get("isSidechain"):
        return ""
    return (label(value, "agentId", 200) or None) if string(value, "agentId") else UNNAMED


#: How far back a call is looked for.
BEFORE_BYTES = 64 * 1024


def read_from(opened: Opened) -> ReadLine:
    """How the lines of a transcript are read from a position on; in a sub-agent's file every line is the agent's."""
    if opened.withheld.excludes.files:
        remember(opened.before(BEFORE_BYTES), opened.withheld)
    agent = agent_of_file(opened.name)
    if not agent:
        return read_line

    def read_agent_line(line: bytes, into: Reading, *, tool_limit: int) -> None:
        into.agent = agent
        read_line(line, into, tool_limit=tool_limit)

    return read_agent_line


def remember(before: bytes, withheld: Withheld) -> None:
    """Adds to `withheld` the calls in a transcript's bytes that named an excluded file; a cut line holds none."""
    for line in before.split(b"\n"):
        if b'"tool_use"' in line:
            with contextlib.suppress(BadInput):
                read_line(line, Reading(withheld=withheld), tool_limit=0)


#: A line's own type, or its own attachment's, where only scalars stand before it: walking the members from the
#: brace on, no word of a prompt and no field of a tool's input is taken for it.
_OWN = re.compile(
    rb'\{\s?+(?:"[^"\\]*+":\s?+(?:"(?:[^"\\]|\\.)*+"|[-+.0-9A-Za-z]++),\s?+)*?'
    rb'(?:"type":\s?+"([a-z-]++)"|"attachment":\s?+\{\s?+"type":\s?+"([a-z_]++)")'
)
_SPEAKS = re.compile(rb'"type":\s?"(?:user|assistant)"')
#: What is parsed; every other line is bookkeeping, known by its first bytes (facts: claude-code 1.14).
PARSED_TYPES = frozenset(b"user assistant attachment custom-title ai-title queue-operation worktree-state".split())
PARSED_ATTACHMENTS = frozenset({b"queued_command"})
#: Types of which most lines are bookkeeping, and what a line holds that is not.
PARSED_WITH: dict[bytes, re.Pattern[bytes]] = {
    b"progress": re.compile(rb'"type":\s?"agent_progress"'),
    b"system": re.compile(rb'"subtype":\s?"informational"'),
}
HEAD_BYTES = 600

_TITLE = re.compile(rb'"type":\s?"(?:custom|ai)-title"')


_AGENT_FILE = re.compile(r"agent-([\w-]{1,100})\.jsonl", re.ASCII)
_BELONGS = re.compile(rb'"(?:sessionId|uuid|leafUuid|messageId)":\s?"')
_HAS_TYPE = re.compile(rb'"type":\s?"')


def is_one(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a transcript: a line that has a type and belongs to something."""
    return any(_HAS_TYPE.search(line) and _BELONGS.search(line) for line in beginning.splitlines())


def read_line(line: bytes, into: Reading, *, tool_limit: int) -> None:
    """Adds what one transcript line holds; BadInput when it is malformed.

    `tool_limit` is how many bytes of a tool's input or output are kept.
    """
    if _is_bookkeeping(line):
        into.skipped += 1
        return
    try:
        _read_value(json.loads(line.decode("utf-8", "replace")), into, tool_limit)
    except RecursionError:
        raise BadInput("nested too deeply") from None
    except ValueError as error:
        raise BadInput(f"not JSON: {error}") from error


def _is_bookkeeping(line: bytes) -> bool:
    """Whether a line holds no turn, by its first bytes; False where they do not tell."""
    own = _OWN.match(line[:HEAD_BYTES])
    if own is None:
        return False
    kind, attachment = own.groups()
    if kind is None:
        return attachment not in PARSED_ATTACHMENTS and _SPEAKS.search(line) is None
    speaks = PARSED_WITH.get(kind)
    return kind not in PARSED_TYPES if speaks is None else speaks.search(line) is None


def _read_value(value: Any, into: Reading, tool_limit: int) -> None:
    if not isinstance(value, dict):
        raise BadInput("a transcript line is not a JSON object")
    if into.agent and not value.get("isSidechain"):
        value = {"agentId": into.agent, **value, "isSidechain": True}
    kind = value.get("type")
    counts = Removed()
    turns: list[Turn] = []
    if kind in ("user", "assistant"):
        turns = message_turns(value, counts, tool_limit, into.withheld)
    elif kind == "attachment":
        turns = queued_turns(value, counts)
    elif kind == "queue-operation":
        turns = enqueued_turns(value, counts)
        _note_left(value, into)
    elif kind == "progress":
        turns = progress_turns(value, counts, tool_limit, into.withheld)
    elif kind == "system":
        turns = blocked_turns(value, counts)
    elif kind in ("custom-title", "ai-title"):
        if title := redact(
            display.squeeze(wire.clean(string(value, "customTitle") or string(value, "aiTitle"))), counts
        ):
            session = label(value, "sessionId", 200)
            into.titles[session], into.title_at[session] = title[:200], len(into.turns)
    elif kind == "worktree-state":
        into.worktrees += worktrees_entered(value, counts)
    else:
        into.skipped += 1
    if counts:
        into.note_removed(turns, counts)
    if kind == "assistant" and (spent := tokens_spent(value)) is not None:
        into.spent.append(replace(spent, place=len(into.turns) if turns else len(into.turns) - 1))
    into.turns += turns


def _note_left(value: dict[str, Any], into: Reading) -> None:
    """Notes a prompt that leaves the queue: as the next prompt it has a line of its own, taken up in a turn it may have none."""
    if value.get("operation") not in ("dequeue", "remove"):
        return
    session, at = label(value, "sessionId", 200), moment(value)
    nth = sum(1 for one in into.left if (one.session_id, one.at) == (session, at))
    said = spoken(flat(value.get("content")), Counter(), as_typed=True)
    into.left.append(Left(session, at, value["operation"] == "remove", said, nth, len(into.turns)))


def may_answer(tools: list[str], is_pick: bool = False) -> bool:
    """Whether a result of these tools can hold the user's words: all are known and the host's own.

    Answers to questions (`is_pick`) come from the tool that asks them.
    """
    if is_pick:
        return set(tools) == {ASKING}
    return bool(tools) and not any(not tool or tool.startswith(FOREIGN_TOOL) for tool in tools)


def agent_of_file(name: str) -> str:
    """The sub-agent that a transcript is of, by the file's name; "" for a session's.

    Some versions do not mark an agent's lines: then only the name says that its prompt is the assistant's.
    """
    found = _AGENT_FILE.fullmatch(name)
    return found[1] if found else ""


def warmups(beginning: bytes) -> frozenset[str]:
    """What the agents are known by that the host started for itself: names, and uuids of the lines of the unnamed.

    Their lines are no conversation. Such an agent has a file of its own, or speaks at the beginning of a session's.
    """
    found: set[str] = set()
    for line in beginning.split(b"\n") if WARMUP.encode() in beginning else ():
        value = json_object(line) or {}
        agent, known = agent_of(value), label(value, "parentUuid", 200) in found
        if agent and (known or mapping(value, "message").get("content") == WARMUP):
            found.add(label(value, "uuid", 200) if agent == UNNAMED else agent)
    return frozenset(found)


def dropped(beginning: bytes) -> Callable[[Turn], bool] | None:
    """Which turns are those of agents that the host started for itself; None where there are none."""
    known = warmups(beginning)
    if not known:
        return None
    return lambda turn: bool(turn.agent_id) and not known.isdisjoint((turn.agent_id, turn.uuid.partition("/")[0]))


def titles_in(beginning: bytes) -> dict[str, str]:
    """The titles by session among a transcript's first bytes, as far as their lines are whole."""
    reading = Reading()
    for line in beginning.split(b"\n"):
        if _TITLE.search(line[:HEAD_BYTES]):
            with contextlib.suppress(BadInput):
                read_line(line, reading, tool_limit=0)
    return reading.titles


def places(folder: Path) -> list[Path]:
    """Where the assistant with this configuration directory keeps transcripts and the list of projects."""
    return [folder, folder.parent / ".claude.json"] if folder.name == ".claude" else [folder]
