"""Codex' transcripts ("rollouts") to turns and token usage.

A rollout is `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`. Its first line says whose it is; a resumed session goes
on in it, a fork has a file of its own with the new part only, a sub-agent has one, too. A session that goes on from an
earlier turn (`thread/revert`) gets a file `..._<part>.jsonl`, whose first line says how many lines of it still hold. What was said stands in
`item_completed` lines, in older files (without `history_mode: paginated`) in `user_message` and `agent_message` lines.
The `response_item` lines are what the model was shown: messages of the user's name among them hold AGENTS.md, the
environment and what hooks said, so only tool calls and their results are taken from them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from csmd import wire
from csmd.exclusions import Withheld
from csmd.hosts import adapter
from csmd.hosts.adapter import (
    Opened,
    Reading,
    ReadLine,
    Reverted,
    Took,
    quoted_answers,
    refuse,
    spoken,
    tokens,
    took,
)  # fmt: skip
from csmd.hosts.codex import tool_forms
from csmd.hosts.json_fields import json_object, mapping, moment, object_in, string
from csmd.hosts.labels import label
from csmd.hosts.stored_calls import call_turns, result_turn
from csmd.hosts.stored_ids import LONGEST_ID, session_id, stream
from csmd.privacy.redaction import Removed, redact
from csmd.values import Turn
from csmd.vocabulary import PROMPTS, TurnKind

HOST = "codex"
#: The context window of the models of today, as their rollouts tell it.
WINDOW = 258_400

_FIRST = re.compile(rb'\s*\{"timestamp":\s?"[^"]*",\s?(?:"ordinal":\s?\d+,\s?)?"type":\s?"session_meta"')
_DAY = re.compile(r"\A\d{4}/\d\d/\d\d/", re.ASCII)
_ROLLOUT = re.compile(r"(rollout-[a-zA-Z0-9.:-]+)(?:_([\w-]+))?\.jsonl", re.ASCII)
#: The thread, the part of its file's name, and the number of the line in a turn's uuid.
_UUID = re.compile(r"([^_:]+)(?:_([\w-]+))?:(\d+)(?:[+/].*)?")
_TURN_BEGINS = re.compile(rb'"type":\s?"task_started"')
#: The longest first line: it holds the prompt of the model.
FIRST_LINE_BYTES = 4 * 1024 * 1024

#: How a session was begun in which a person types, and what makes a turn that a person asked for.
_BY_PERSON, _ASKED_FOR = ("cli", "vscode"), "user"
#: What an editor puts above a prompt.
_EDITOR, _REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
#: Text that Codex writes in the user's name.
WRITTEN_FOR_USER = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|subagent_notification|turn_aborted|user_shell_command|skill"
    r"|permissions instructions|skills_instructions|hook_prompt)[\s>]|# AGENTS\.md instructions for )"
)
#: How a compaction's summary begins: words to the next model.
_SUMMARY = re.compile(r"Another language model started to solve this problem[^\n]*:\n")
#: What the tokens of a response are called: `input` holds those that were read from the cache, and those written to it.
_INPUT, _OUTPUT, _READ, _WRITTEN = "input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens"


def is_transcript(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a rollout."""
    return _FIRST.match(beginning) is not None


def place_of(root: str, inside: str) -> tuple[str, str] | None:
    """(project directory, session) of a rollout: all lie under their days, whatever their project is."""
    found = _ROLLOUT.fullmatch(_DAY.sub("", inside))
    return (root, found[1]) if found else None


def words(text: str, counts: Counter[str]) -> str:
    """A text without csmd's injections and what an editor puts above a prompt, redacted."""
    plain = wire.clean(text)
    if plain.lstrip().startswith(_EDITOR) and _REQUEST in plain:
        plain = plain.partition(_REQUEST)[2]
    return spoken(plain, counts)


prompt_kind = partial(adapter.prompt_kind, WRITTEN_FOR_USER, has_commands=False)


@dataclass(slots=True)
class Thread:
    """Whose lines are read, and how far the reading is: the turn's directory, model, origin and context."""

    ident: str
    part: str
    """What the name of its file has beside the thread's; "" for the first one of a thread."""
    session: str
    agent: str
    version: str
    is_paginated: bool
    """Whether what was said stands in `item_completed` lines."""
    by_person: bool
    cwd: str
    model: str = ""
    mode: str = ""
    context: int = 0
    line: str = ""
    """What the line is known by: its number, or its time where it has none; `same` lines of that time stood before."""
    same: int = 0

    def begin_line(self, value: dict[str, Any]) -> None:
        """Takes up the next line."""
        ordinal = value.get("ordinal")
        known = str(ordinal) if type(ordinal) is int else moment(value)
        self.same = self.same + 1 if known == self.line else 0
        self.line = known

    @property
    def uuid(self) -> str:
        """The uuid of the line's turn."""
        where = f"{self.ident}_{self.part}" if self.part else self.ident
        return f"{where}:{self.line}+{self.same}" if self.same else f"{where}:{self.line}"

    def turn(self, value: dict[str, Any], kind: TurnKind, text: str, **more: Any) -> Turn:
        """A turn of the line."""
        return Turn(
            uuid=self.uuid, session_id=self.session, agent_id=self.agent, kind=kind, text=text, at=moment(value),
            cwd=self.cwd, model=self.model if kind == "assistant" else "", version=self.version,
            context=self.context if kind == "assistant" else 0, mode=self.mode if kind in PROMPTS else "", **more,
        )  # fmt: skip


def thread_of(line: bytes, name: str) -> Thread | None:
    """The thread of a rollout by its first line and its file's name; None where the line names none."""
    meta = mapping(json_object(line) or {}, "payload")
    ident, spawned = label(meta, "id", LONGEST_ID), mapping(mapping(meta, "source"), "subagent")
    parent = label(meta, "parent_thread_id", LONGEST_ID)
    parent = parent or label(mapping(spawned, "thread_spawn"), "parent_thread_id", LONGEST_ID)
    is_agent = bool(parent) or isinstance(meta.get("source"), dict) or string(meta, "thread_source") == "subagent"
    if not ident:
        return None
    root = (label(meta, "session_id", LONGEST_ID) or parent) if is_agent else ident
    return Thread(
        ident=ident,
        part=(_ROLLOUT.fullmatch(name) or ("", "", ""))[2] or "",
        session=session_id(HOST, root or ident),
        agent=ident if is_agent else "",
        version=label(meta, "cli_version", 40),
        is_paginated=string(meta, "history_mode") == "paginated",
        by_person=string(meta, "source") in _BY_PERSON,
        cwd=redact(wire.clean(string(meta, "cwd")), Counter()),
    )


def read_from(opened: Opened) -> ReadLine:
    """How the lines of a rollout are read from a position on; the turn under way is gone through again for its origin."""
    thread = thread_of(opened.first_line(FIRST_LINE_BYTES), opened.name)
    if thread is None:
        return refuse
    read = partial(read_line, thread=thread)
    opened.go_through(opened.look_back(partial(_turn_under_way, opened.position)), read)
    return read


def _turn_under_way(position: int, before: bytes) -> list[bytes]:
    """The lines from the one on that began the turn under way, or from the file's beginning; [] where it began earlier."""
    began = [found.start() for found in _TURN_BEGINS.finditer(before)]
    if not began and len(before) < position:
        return []
    return before[before.rfind(b"\n", 0, began[-1]) + 1 if began else 0 :].splitlines()


def read_line(line: bytes, into: Reading, thread: Thread, *, tool_limit: int) -> None:
    """Adds what one line of a thread's rollout holds; BadInput when it is malformed."""
    value = object_in(line)
    thread.begin_line(value)
    payload, counts = mapping(value, "payload"), Removed()
    turns: list[Turn] = []
    match value.get("type"), payload.get("type"):
        case "session_meta", _ if (base := mapping(payload, "history_base")).get("thread_id") == thread.ident:
            into.reverted.append(
                Reverted(stream=stream(thread.session, thread.agent), is_left=_left_behind(thread, base))
            )
        case "retained_context", "verified_answer":
            turns = _answers(value, payload, thread, counts)
        case "turn_context", _:
            thread.cwd = redact(wire.clean(string(payload, "cwd")), counts) or thread.cwd
            thread.model = label(payload, "model", 100)
            thread.mode = label(mapping(payload, "collaboration_mode"), "mode", 40)
        case "event_msg", "task_started":
            # Who asked for the turn; older versions do not tell.
            if asked := string(mapping(payload, "turn_attribution"), "turn_trigger"):
                thread.by_person = asked == _ASKED_FOR
        case "event_msg", "item_completed" if thread.is_paginated:
            turns = _item_turns(value, mapping(payload, "item"), thread, counts)
        case "event_msg", "user_message" | "agent_message" if not thread.is_paginated:
            is_prompt = payload["type"] == "user_message"
            turns = _said(value, string(payload, "message"), thread, counts, is_prompt=is_prompt)
        case "event_msg", "token_count":
            thread.context = tokens(mapping(mapping(payload, "info"), "last_token_usage"), _INPUT)
        case "response_item", _:
            turns = _tool_turns(value, payload, thread, counts, into.withheld, tool_limit)
        case "compacted", _:
            summary = words(_SUMMARY.sub("", string(payload, "message"), count=1), counts)
            turns = [thread.turn(value, "summary", summary)] if summary else []
        case "token_usage_record", _:
            into.spent += _spent(payload, thread, len(into.turns) - 1)
        case _:
            into.skipped += 1
    if counts:
        into.note_removed(turns, counts)
    into.turns += turns


def _left_behind(thread: Thread, base: dict[str, Any]) -> Callable[[str], bool]:
    """Whether a turn, by its uuid, stands in what a part of a thread leaves behind of the parts before it."""
    end, ident, part = base.get("end_ordinal_exclusive"), thread.ident, thread.part

    def is_left(uuid: str) -> bool:
        found = _UUID.fullmatch(uuid)
        if found is None or found[1] != ident or type(end) is not int:
            return False
        return (found[2] or "") < part and int(found[3]) >= end

    return is_left


def _answers(value: dict[str, Any], payload: dict[str, Any], thread: Thread, counts: Counter[str]) -> list[Turn]:
    """The turn in which the user answers the assistant's questions, each of which is quoted."""
    asked = payload.get("questions")
    pairs = [(string(pair, "question"), string(pair, "answer")) for pair in asked or () if isinstance(pair, dict)]
    said = words(quoted_answers((_without_taken(*pair), pair[1]) for pair in pairs), counts)
    kind: TurnKind = "user" if thread.by_person else "relayed"
    # Known as an answer by the number behind the line's, as everywhere.
    return [replace(thread.turn(value, kind, said, is_pick=True), uuid=f"{thread.uuid}/1")] if said else []


def _without_taken(question: str, answer: str) -> str:
    """A question without what stands below it of the options that were taken."""
    taken = tuple(f"{line}: " for line in answer.splitlines())
    return "\n".join(line for line in question.splitlines() if not line.startswith(taken))


def _item_turns(value: dict[str, Any], item: dict[str, Any], thread: Thread, counts: Counter[str]) -> list[Turn]:
    """The turn of an item in which somebody speaks."""
    kind, parts = item.get("type"), item.get("content")
    if kind not in ("UserMessage", "AgentMessage") or not isinstance(parts, list):
        return []
    texts = [
        string(part, "text") for part in parts if isinstance(part, dict) and str(part.get("type")).lower() == "text"
    ]
    return _said(value, "\n".join(texts), thread, counts, is_prompt=kind == "UserMessage")


def _said(value: dict[str, Any], text: str, thread: Thread, counts: Counter[str], *, is_prompt: bool) -> list[Turn]:
    said = words(text, counts)
    # A sub-agent's prompt is told from the user's by its conversation, as everywhere.
    kind = prompt_kind(said, by_person=thread.by_person or bool(thread.agent)) if is_prompt else "assistant"
    return [thread.turn(value, kind, said)] if said else []


def _tool_turns(
    value: dict[str, Any], payload: dict[str, Any], thread: Thread, counts: Counter[str], withheld: Withheld, limit: int
) -> list[Turn]:
    """The turns of a tool call, or of what came of one."""
    kind, ident = string(payload, "type"), label(payload, "call_id", 120)
    if kind.endswith("_call_output") and ident:
        result = tool_forms.stored_result(payload.get("output"))
        return [result_turn(thread.turn(value, "tool_result", ""), ident, result, counts, withheld, limit)]
    if not kind.endswith("_call") or not ident:
        return []
    return call_turns(thread.turn(value, "tool_call", ""), ident, tool_forms.calls_in(payload), counts, withheld, limit)


def _spent(payload: dict[str, Any], thread: Thread, place: int) -> list[Took]:
    """The tokens of one response."""
    usage, ident = mapping(payload, "usage"), label(payload, "response_id", LONGEST_ID)
    given, made, read, written = (tokens(usage, name) for name in (_INPUT, _OUTPUT, _READ, _WRITTEN))
    where = stream(thread.session, thread.agent)
    return took(where, ident, place, given=given, made=made, read=read, written=written)
