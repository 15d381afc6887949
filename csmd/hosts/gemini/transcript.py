"""Gemini CLI's transcripts to turns, titles and token usage.

A transcript is `tmp/<project>/chats/session-<minute>-<begin of the session's id>.jsonl`, a sub-agent's
`tmp/<project>/chats/<session>/<agent>.jsonl`: a log of updates, not of messages. A header is written at each start of
the client. A message comes again with more fields, tool calls among them; its turns have the same ids then. `$set` changes
what belongs to the whole; in `$set.messages` the history stands anew, in another shape, and only a compaction's summary
is new in it. `$rewindTo` names the prompt that is taken back with all behind it. The host deletes or empties the file
of a resumed session; what was read of it stays.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from csmd import wire
from csmd.errors import BadInput
from csmd.hosts import gemini_parts
from csmd.hosts.adapter import Opened, Reading, ReadLine, Took, quoted_answers, refuse, tokens, took
from csmd.hosts.json_fields import json_object, mapping, moment, object_in, string
from csmd.hosts.labels import label
from csmd.hosts.stored_ids import LONGEST_ID, session_id, stream
from csmd.privacy.redaction import Removed, redact
from csmd.values import Turn
from csmd.vocabulary import TurnKind

HOST = "gemini"
#: The context window of the models of today.
WINDOW = 1_048_576
#: The longest header.
FIRST_LINE_BYTES = 64 * 1024

_FIRST = re.compile(rb'\s*\{"sessionId":\s?"[^"]*",\s?"projectHash":')
_CHAT = re.compile(r"([^/]+)/chats/(?:session-[\w-]+-([0-9a-f]{8})|([\w-]+)/[\w-]+)\.jsonl", re.ASCII)
#: Where a sub-agent's header, or the host's first message, names the directory: in JSON, a line's end is two signs.
_DIRECTORY = re.compile(
    rb'(?:"directories":\s?\["|"<session_context>(?:[^"\\]|\\.)*?'
    rb'(?:Workspace Directories:\*\*|working in the (?:following )?director(?:y|ies):)(?:\\n| |-)*)(/(?:[^"\\]|\\[^n])*+)'
)
_PROMPT = re.compile(rb'"type":\s?"user",\s?"content":\s?(?:\[\{"text":\s?)?"(?!<session_context>)')
#: Text that Gemini CLI writes in the user's name.
WRITTEN_FOR_USER = re.compile(r"\s*<(?:session_context|loaded_context)[\s>]")
_NO_ANSWER = "[no response text]"


def is_transcript(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a transcript."""
    return _FIRST.match(beginning) is not None


def place_of(root: str, inside: str) -> tuple[str, str] | None:
    """(project directory, session) of a transcript; a session is known by the beginning of its id."""
    found = _CHAT.fullmatch(inside)
    return (f"{root}/{found[1]}", found[2] or found[3][:8]) if found else None


def started_in(beginning: bytes) -> str:
    """The directory a session was started in, redacted; "" where its first bytes name none."""
    found = _DIRECTORY.search(beginning)
    try:
        return redact(wire.clean(wire.loads(f'"{found[1].decode("utf-8", "replace")}"')), Counter()) if found else ""
    except BadInput:
        return ""


def final_message(value: dict[str, Any]) -> str:
    """All that the assistant said in a turn, by the hook's payload at its end."""
    said = string(value, "prompt_response")
    return "" if said == _NO_ANSWER else said


@dataclass(slots=True)
class Chat:
    """Whose lines are read, and how far the reading is."""

    ident: str
    session: str
    agent: str
    cwd: str
    prompt: str = ""
    """The uuid of the last prompt: what follows answers it."""
    taken: str = ""
    """The place of the prompt that was taken back, which the next one takes."""
    places: dict[str, str] = field(default_factory=dict)
    """The places of prompts that took another's, by message."""

    def turn(self, value: dict[str, Any], kind: TurnKind, text: str, **more: Any) -> Turn:
        """A turn of a message."""
        uuid = session_id(HOST, f"{self.ident}:{label(value, 'id', LONGEST_ID)}")
        return Turn(
            uuid=uuid, session_id=self.session, agent_id=self.agent, kind=kind, text=text, at=moment(value), cwd=self.cwd, **more,
        )  # fmt: skip


def chat_of(line: bytes, folder: str, cwd: str) -> Chat | None:
    """The conversation that a header names, in a file of this directory; None for no header."""
    head = json_object(line) or {}
    ident, is_agent = label(head, "sessionId", LONGEST_ID), string(head, "kind") == "subagent"
    if not ident:
        return None
    return Chat(ident, session_id(HOST, folder if is_agent else ident), ident if is_agent else "", cwd)


def read_from(opened: Opened) -> ReadLine:
    """How the lines of a transcript are read from a position on; what was said last is gone through again."""
    chat = chat_of(opened.first_line(FIRST_LINE_BYTES), opened.folder, started_in(opened.beginning))
    if chat is None:
        return refuse
    read = partial(read_line, chat=chat)
    opened.go_through(opened.look_back(_last_prompts), read)
    return read


def _last_prompts(before: bytes) -> list[bytes]:
    """The lines that hold prompts, or take one back."""
    return [line for line in before.splitlines() if _PROMPT.search(line) or line.startswith(b'{"$rewindTo"')]


def read_line(line: bytes, into: Reading, chat: Chat, *, tool_limit: int) -> None:
    """Adds what one line of a transcript holds; BadInput when it is malformed."""
    value = object_in(line)
    counts, turns, changed = Removed(), list[Turn](), mapping(value, "$set")
    match value.get("type") if label(value, "id", LONGEST_ID) else None:
        case "user":
            turns = _prompt_turns(value, chat, counts)
        case "gemini":
            turns = _answer_turns(value, chat, counts, into, tool_limit)
            into.spent += _spent(value, chat, len(into.turns) + len(turns) - 1)
        case _ if taken := string(value, "$rewindTo"):
            chat.taken = chat.places.get(taken, _place(f"{HOST}:{chat.ident}:{taken}"))
        case _ if changed:
            turns = _summary_turns(changed.get("messages"), chat, counts)
            if not chat.agent:
                into.note_title(chat.session, string(changed, "summary"), counts)
        case _:
            into.skipped += 1
    if counts:
        into.note_removed(turns, counts)
    into.turns += turns


def _prompt_turns(value: dict[str, Any], chat: Chat, counts: Counter[str]) -> list[Turn]:
    """The prompt in a message of the user's name; [] for tools' results and the host's own context."""
    parts = gemini_parts.parts_in(value.get("content"))
    content = gemini_parts.words_in(parts)
    shown = gemini_parts.words_in(gemini_parts.parts_in(value.get("displayContent")))
    if gemini_parts.is_summary(content):
        return _summary_turns([value], chat, counts)
    said = gemini_parts.spoken(content, counts)
    typed = gemini_parts.spoken(shown, Counter()) if shown else said
    kind = gemini_parts.prompt_kind(typed)
    if kind == "user" and not said.startswith(typed) and gemini_parts.REFERENCED not in content:
        kind, typed = "notification", said  # how the host has the model go on: what it shows is the prompt before
    if not typed:
        return []
    if kind == "notification":  # what the assistant says next goes on with its answer
        return [chat.turn(value, kind, typed)]
    kind = "relayed" if kind == "user" and gemini_parts.is_handed_in(parts) else kind
    turn = chat.turn(value, kind, typed, is_prompt_line=True)
    place = chat.taken or _place(turn.uuid)
    if chat.taken:
        chat.places[label(value, "id", LONGEST_ID)], chat.taken = chat.taken, ""
    chat.prompt = turn.uuid
    return [replace(turn, parent_uuid=place)]


def _place(uuid: str) -> str:
    """What a prompt goes on from: two that have the same are one in the place of the other."""
    return f"{uuid}^"


def _answer_turns(value: dict[str, Any], chat: Chat, counts: Counter[str], into: Reading, limit: int) -> list[Turn]:
    """What the assistant says in a message, and its tools' calls and results as far as they are there."""
    said = gemini_parts.spoken(gemini_parts.words_in(gemini_parts.parts_in(value.get("content"))), counts)
    used = mapping(value, "tokens")
    bare = chat.turn(value, "assistant", said, message_id=chat.prompt, model=label(value, "model", 100), context=tokens(used, "input"))  # fmt: skip
    turns: list[Turn | None] = [bare] if said else []
    for call in gemini_parts.parts_in(value.get("toolCalls")):
        turns.append(gemini_parts.call_turn(bare, call, counts, into.withheld, limit))
        rejected = string(call, "status") == "cancelled"
        for part in gemini_parts.parts_in(call.get("result")):
            response = {"id": label(call, "id", 120), **mapping(part, "functionResponse")}
            turns.append(gemini_parts.response_turn(bare, response, counts, into.withheld, limit, rejected=rejected))
            if string(call, "name") == "ask_user":
                turns.append(_picked(bare, call, response, counts))
    return [turn for turn in turns if turn is not None]


def _picked(bare: Turn, call: dict[str, Any], response: dict[str, Any], counts: Counter[str]) -> Turn | None:
    """What the user answered to the assistant's questions; None where they did not."""
    answers = mapping(json_object(string(mapping(response, "response"), "output")) or {}, "answers")
    questions = gemini_parts.parts_in(mapping(call, "args").get("questions"))
    pairs = [
        (string(asked, "question"), answer)
        for number, asked in enumerate(questions)
        if isinstance(answer := answers.get(str(number)), str)
    ]
    said = gemini_parts.spoken(quoted_answers(pairs), counts)
    return replace(gemini_parts.beside(bare, f"/{label(call, 'id', 120)}?"), text=said) if said else None


def _summary_turns(messages: Any, chat: Chat, counts: Counter[str]) -> list[Turn]:
    """The summaries of compactions among messages; the others have lines of their own."""
    found = []
    for message in gemini_parts.parts_in(messages if isinstance(messages, list) else None):
        said = gemini_parts.words_in(gemini_parts.parts_in(message.get("content")))
        if message.get("type") == "user" and gemini_parts.is_summary(said):
            found.append(chat.turn(message, "summary", gemini_parts.summary_in(said, counts)))
    return [turn for turn in found if turn.text]


def _spent(value: dict[str, Any], chat: Chat, place: int) -> list[Took]:
    """The tokens of one message, as it is known so far."""
    used = mapping(value, "tokens")
    given, made, thought, read = (tokens(used, name) for name in ("input", "output", "thoughts", "cached"))
    ident, where = label(value, "id", LONGEST_ID), stream(chat.session, chat.agent)
    return took(where, ident, place, given=given, made=made + thought, read=read)
