"""Droid's transcripts to turns.

A session's transcript is `sessions/<directory>/<session>.jsonl`; its first line names the session. A fork's file begins with the
lines of the session that it left, under their ids. Beside what was said there are lines of the user's name that the host has
written: what hooks did (`user_only`), and what the model alone is shown (`llm_only`). Whether a program handed the prompts
in (`droid exec`) stands in the session's settings beside the transcript; where these cannot be read, its prompts are nobody's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from csmd import wire
from csmd.exclusions import Withheld
from csmd.hosts import adapter
from csmd.hosts.adapter import Opened, Reading, ReadLine, refuse, spoken
from csmd.hosts.json_fields import json_object, mapping, moment, object_in, string
from csmd.hosts.labels import label
from csmd.hosts.stored_calls import Call, call_turns, patched_files, result_turn, with_exit_code
from csmd.hosts.stored_ids import LONGEST_ID, session_id, uuid_in
from csmd.privacy.redaction import Removed, redact
from csmd.values import Turn
from csmd.vocabulary import TurnKind

HOST = "droid"
#: The context window of most models of today that Droid offers; a transcript names none.
WINDOW = 200_000
#: The longest first line, and most bytes of a session's settings.
FIRST_LINE_BYTES = SETTINGS_BYTES = 1024 * 1024

_FIRST = re.compile(rb'\s*\{"type":\s?"session_start",\s?"id":\s?"')
_FILE = re.compile(r"([^/]+)/([\w-]+)\.jsonl", re.ASCII)
#: The tag of a session that `droid exec` began.
_BY_PROGRAM = "exec"
#: Text that Droid writes in the user's name.
WRITTEN_FOR_USER = re.compile(r"\s*<(?:system-reminder|system-notification)>")
_REMINDER = ("<system-reminder>", "</system-reminder>")
#: Droid's names of tools and fields -> those that are stored.
_NAMES, _FIELDS = {"Execute": "Bash", "Create": "Write"}, {"old_str": "old_string", "new_str": "new_string"}
#: What Droid adds to a command's output.
_EXITED = re.compile(r"\s*\[Process exited with code (-?\d{1,3})\]\s*\Z")


def is_transcript(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a session of Droid's."""
    return _FIRST.match(beginning) is not None


def place_of(root: str, inside: str) -> tuple[str, str] | None:
    """(project directory, session) of a transcript."""
    found = _FILE.fullmatch(inside)
    return (f"{root}/{found[1]}", found[2]) if found else None


def titles_in(beginning: bytes) -> Mapping[str, str]:
    """The title of a session that its user has named, by its transcript's first bytes."""
    value = json_object(beginning.partition(b"\n")[0]) or {}
    ident, title = session_id(HOST, label(value, "id", LONGEST_ID)), string(value, "title")
    return {ident: redact(wire.clean(title), Counter())} if ident and value.get("isSessionTitleManuallySet") else {}


def words(text: str, counts: Counter[str]) -> str:
    """A text without csmd's injections and the host's reminders, redacted."""
    return spoken(text, counts, around=_REMINDER)


prompt_kind = partial(adapter.prompt_kind, WRITTEN_FOR_USER)


@dataclass(frozen=True, slots=True)
class Session:
    """Whose lines are read."""

    session: str
    agent: str
    cwd: str
    by_person: bool

    def turn(self, value: dict[str, Any], kind: TurnKind, text: str, place: int, **more: Any) -> Turn:
        """A turn of the line, its `place`th."""
        uuid = uuid_in(HOST, value, "id")
        return Turn(
            uuid=f"{uuid}/{place}" if place and uuid else uuid, session_id=self.session, agent_id=self.agent, kind=kind,
            text=text, at=moment(value), cwd=self.cwd, parent_uuid=uuid_in(HOST, value, "parentId"), **more,
        )  # fmt: skip


def session_of(line: bytes, settings: bytes) -> Session | None:
    """The session of a transcript by its first line and its settings; None where that line names none.

    A sub-agent's session names the one that called it. Without readable settings nobody knows who handed the prompts in.
    """
    value = json_object(line) or {}
    ident, caller = label(value, "id", LONGEST_ID), label(value, "callingSessionId", LONGEST_ID)
    if value.get("type") != "session_start" or not ident:
        return None
    known = json_object(settings)
    tags = (known or {}).get("tags")
    names = [string(tag, "name") for tag in tags if isinstance(tag, dict)] if isinstance(tags, list) else []
    cwd = redact(wire.clean(string(value, "cwd")), Counter())
    return Session(
        session_id(HOST, caller or ident), ident if caller else "", cwd, known is not None and _BY_PROGRAM not in names
    )


def read_from(opened: Opened) -> ReadLine:
    """How the lines of a transcript are read, from any position on."""
    session = session_of(opened.first_line(FIRST_LINE_BYTES), opened.beside(".settings.json", SETTINGS_BYTES))
    return refuse if session is None else partial(read_line, session=session)


def read_line(line: bytes, into: Reading, session: Session, *, tool_limit: int) -> None:
    """Adds what one line of a session's transcript holds; BadInput when it is malformed."""
    value, counts = object_in(line), Removed()
    match value.get("type"):
        case "message":
            turns = _message_turns(value, mapping(value, "message"), session, counts, into.withheld, tool_limit)
        case "compaction_state":
            said = words(string(value, "summaryText"), counts)
            turns = [session.turn(value, "summary", said, 0)] if said else []
        case _:
            into.skipped += 1
            turns = []
    if counts:
        into.note_removed(turns, counts)
    into.turns += [turn for turn in turns if turn.uuid]


def _message_turns(
    value: dict[str, Any],
    message: dict[str, Any],
    session: Session,
    counts: Counter[str],
    withheld: Withheld,
    limit: int,
) -> list[Turn]:
    """The turns in a line in which somebody speaks or a tool works."""
    content, is_prompt = message.get("content"), message.get("role") == "user"
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if string(message, "visibility") in ("user_only", "llm_only") or not isinstance(blocks, list):
        return []
    blocks = [block for block in blocks if isinstance(block, dict)]
    said = words("\n\n".join(string(block, "text") for block in blocks if block.get("type") == "text"), counts)
    turns: list[Turn] = []
    if said and is_prompt:
        kind = prompt_kind(said, by_person=session.by_person or bool(session.agent))
        turns = [session.turn(value, kind, said, 0, is_prompt_line=len(blocks) == 1)]
    elif said:
        names = {"model": label(message, "modelId", 100), "message_id": label(message, "openaiMessageId", LONGEST_ID)}
        turns = [session.turn(value, "assistant", said, 0, **names)]

    for block in blocks:
        if block.get("type") == "tool_use":
            ident = label(block, "id", LONGEST_ID)
            for call in calls_in(label(block, "name", 120), mapping(block, "input")):
                bare = session.turn(value, "tool_call", "", len(turns))
                turns += call_turns(bare, ident, [call], counts, withheld, limit)
        elif block.get("type") == "tool_result":
            ident = label(block, "tool_use_id", LONGEST_ID)
            bare = session.turn(value, "tool_result", "", len(turns))
            turns.append(result_turn(bare, ident, stored_result(block), counts, withheld, limit))
    return turns


def calls_in(name: str, given: dict[str, Any]) -> list[Call]:
    """The stored calls of a tool call: several for a patch of several files."""
    if name == "ApplyPatch":
        return patched_files(string(given, "input") or string(given, "patch")) or [(name, given)]
    if name == "Edit":
        given = {_FIELDS.get(key, key): value for key, value in given.items()}
    return [(_NAMES.get(name, name), given)]


def stored_result(block: dict[str, Any]) -> str:
    """What a call gave back: what it printed, below its exit code where that is not 0."""
    content = block.get("content")
    if isinstance(content, list):
        content = "\n".join(string(part, "text") for part in content if isinstance(part, dict))
    text = content if isinstance(content, str) else ""
    if exited := _EXITED.search(text):
        return with_exit_code(text[: exited.start()], exited[1])
    return f"Error: {text}" if block.get("is_error") is True and not text.startswith("Error: ") else text
