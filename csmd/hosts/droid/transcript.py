"""Droid's transcripts to turns.

A session's transcript is `sessions/<directory>/<session>.jsonl`; its first line names the session. A fork's file begins
with the lines of the original session, under their ids. The host also writes lines in the user's name: the output of
hooks (`user_only`), and text for the model alone (`llm_only`). Whether a program submitted the prompts (`droid exec`) is in
the session's settings next to the transcript; if these cannot be read, its prompts are `relayed`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from csmd import wire
from csmd.conversation import Turn
from csmd.hosts import stored_text
from csmd.hosts.labels import make_session_id, read_label, read_path, read_uuid
from csmd.hosts.stored_text import clean_text
from csmd.hosts.tool_calls import Call, add_exit_code, parse_patch
from csmd.hosts.transcript_reading import Conversation, Line, ReadLine, Transcript, read_objects, refuse_line
from csmd.json_fields import mapping, mappings, parse_object, string
from csmd.privacy.redaction import redact
from csmd.vocabulary import TurnKind

HOST = "droid"
#: The context window of most current models that Droid offers; a transcript names none.
WINDOW_TOKENS = 200_000
FIRST_LINE = re.compile(rb'\s*\{"type":\s?"session_start",\s?"id":\s?"')
PATH_PATTERN = re.compile(r"(?P<project>[^/]+)/([\w-]+)\.jsonl", re.ASCII)
#: The longest first line, and the largest settings of a session.
FIRST_LINE_BYTES = SETTINGS_BYTES = 1024 * 1024

#: The tag of a session that `droid exec` began.
_BY_PROGRAM = "exec"
#: Text that Droid writes in the user's name.
WRITTEN_FOR_USER = re.compile(r"\s*<(?:system-reminder|system-notification)>")
_REMINDER = ("<system-reminder>", "</system-reminder>")
#: Droid's names of tools and fields -> the stored names.
_NAMES = {"Execute": "Bash", "Create": "Write"}
_FIELDS = {"old_str": "old_string", "new_str": "new_string"}
#: Droid's suffix of a command's output.
_EXITED = re.compile(r"\s*\[Process exited with code (-?\d{1,3})\]\s*\Z")

clean_words = partial(clean_text, removed_tags=_REMINDER)
classify_prompt = partial(stored_text.classify_prompt, WRITTEN_FOR_USER)


def read_titles(beginning: bytes) -> Mapping[str, str]:
    """Returns the title that the user gave to a session, by its transcript's first bytes."""
    value = parse_object(beginning.partition(b"\n")[0]) or {}
    session, title = make_session_id(HOST, read_label(value, "id")), string(value, "title")
    return {session: redact(wire.clean(title), Counter())} if session and value.get("isSessionTitleManuallySet") else {}


@dataclass(slots=True, kw_only=True)
class Session(Conversation):
    """The session whose lines are read."""

    by_person: bool

    def make_turn(self, value: dict[str, Any], kind: TurnKind, text: str, number: int = 0, **fields: Any) -> Turn:
        """Returns the turn of this number in the line, counted from 0."""
        uuid = read_uuid(HOST, value, "id")
        uuid = f"{uuid}/{number}" if number and uuid else uuid
        return self.new_turn(uuid, value, kind, text, parent_uuid=read_uuid(HOST, value, "parentId"), **fields)


def parse_session(first_line: bytes, settings: bytes) -> Session | None:
    """Returns the session of a transcript by its first line and its settings; None if that line names none.

    A sub-agent's session names the one that called it. Without readable settings it is unknown who submitted the
    prompts.
    """
    value = parse_object(first_line) or {}
    session_id, caller = read_label(value, "id"), read_label(value, "callingSessionId")
    if value.get("type") != "session_start" or not session_id:
        return None
    options = parse_object(settings)
    tags = [string(tag, "name") for tag in mappings((options or {}).get("tags"))]
    return Session(
        session=make_session_id(HOST, caller or session_id), agent=session_id if caller else "",
        cwd=read_path(value, "cwd"), by_person=options is not None and _BY_PROGRAM not in tags,
    )  # fmt: skip


def make_reader(transcript: Transcript) -> ReadLine:
    """Returns a function that reads the lines of a transcript, from any position."""
    settings = transcript.read_sibling(".settings.json", SETTINGS_BYTES)
    session = parse_session(transcript.read_first_line(FIRST_LINE_BYTES), settings)
    return refuse_line if session is None else read_objects(partial(_read_turns, session))


def _read_turns(session: Session, line: Line) -> list[Turn]:
    """Returns the turns in a line of a session's transcript."""
    match line.value.get("type"):
        case "message":
            return _read_message_turns(line, mapping(line.value, "message"), session)
        case "compaction_state":
            text = clean_words(string(line.value, "summaryText"), line.redactions)
            return [session.make_turn(line.value, "summary", text)] if text else []
        case _:
            return line.skip()


def _read_message_turns(line: Line, message: dict[str, Any], session: Session) -> list[Turn]:
    """Returns the turns in a line that is a message, or that holds tool calls or results."""
    value, content = line.value, message.get("content")
    blocks = mappings([{"type": "text", "text": content}] if isinstance(content, str) else content)
    if string(message, "visibility") in ("user_only", "llm_only"):
        return []
    texts = (string(block, "text") for block in blocks if block.get("type") == "text")
    text = clean_words("\n\n".join(texts), line.redactions)
    turns: list[Turn] = []
    if text and message.get("role") == "user":
        kind = classify_prompt(text, by_person=session.by_person or bool(session.agent))
        turns = [session.make_turn(value, kind, text, is_prompt_line=len(blocks) == 1)]
    elif text:
        model, message_id = read_label(message, "modelId", 100), read_label(message, "openaiMessageId")
        turns = [session.make_turn(value, "assistant", text, model=model, message_id=message_id)]
    for block in blocks:
        if block.get("type") == "tool_use":
            for call in read_calls(read_label(block, "name", 120), mapping(block, "input")):
                bare = session.make_turn(value, "tool_call", "", len(turns))
                turns += line.make_call_turns(bare, read_label(block, "id"), [call])
        elif block.get("type") == "tool_result":
            bare = session.make_turn(value, "tool_result", "", len(turns))
            turns.append(line.make_result_turn(bare, read_label(block, "tool_use_id"), read_result(block)))
    return turns


def read_calls(name: str, arguments: dict[str, Any]) -> list[Call]:
    """Returns the stored calls of a tool call: several for a patch of several files."""
    if name == "ApplyPatch":
        return parse_patch(string(arguments, "input") or string(arguments, "patch")) or [(name, arguments)]
    if name == "Edit":
        arguments = {_FIELDS.get(key, key): value for key, value in arguments.items()}
    return [(_NAMES.get(name, name), arguments)]


def read_result(block: dict[str, Any]) -> str:
    """Returns a call's result: its output, below its exit code unless that is 0."""
    content = block.get("content")
    if isinstance(content, list):
        content = "\n".join(string(part, "text") for part in mappings(content))
    text = content if isinstance(content, str) else ""
    if exited := _EXITED.search(text):
        return add_exit_code(text[: exited.start()], exited[1])
    return f"Error: {text}" if block.get("is_error") is True and not text.startswith("Error: ") else text
