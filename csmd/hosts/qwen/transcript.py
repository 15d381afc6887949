"""Qwen Code's transcripts to turns, titles and token usage.

A transcript is `projects/<project>/chats/<session>.jsonl`, a sub-agent's
`projects/<project>/subagents/<session>/agent-*.jsonl`: records that link to the one before and are only appended. A
resumed session continues its file; a fork has a copy. A record in the user's name says whether it was typed at the
prompt, typed while the assistant worked, or written by the host.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from csmd.conversation import Turn
from csmd.hosts import gemini_parts
from csmd.hosts.claude.transcript import ROOT
from csmd.hosts.gemini_parts import parts_in, words_in
from csmd.hosts.json_fields import json_object, mapping, mappings, moment, string
from csmd.hosts.labels import label, uuid_in
from csmd.hosts.transcript_reading import (
    Line,
    OpenTranscript,
    Reading,
    ReadLine,
    path_in,
    read_objects,
    response_tokens,
    tokens,
)

HOST = "qwen"
#: The context window of current models.
WINDOW = 262_144
FIRST_LINE = re.compile(
    rb'\s*\{"uuid":\s?"[^"]*",\s?"parentUuid":\s?(?:null|"[^"]*"),\s?"sessionId":\s?"[^"]*",\s?'
    rb'"timestamp":\s?"[^"]*",\s?"type":\s?"(?:user|assistant|tool_result|system)"'
)
PATH = re.compile(r"(?P<project>[^/]+)/(?:chats/([\w-]+)|subagents/([\w-]+)/[\w.-]+)\.jsonl", re.ASCII)
#: How far back a call is searched for that an excluded file withholds.
BEFORE_BYTES = 64 * 1024
#: The subtypes of a record in the user's name that a person typed: a prompt, or words while the assistant worked.
_TYPED = ("", "mid_turn_user_message")
_BY_PERSON = ("", "real_user")


def read_from(opened: OpenTranscript) -> ReadLine:
    """Reads the lines of a transcript from a position on; each is complete in itself."""
    if opened.withheld.excludes.files:
        for data in opened.before(BEFORE_BYTES).split(b"\n"):
            line = Line(json_object(data) or {}, Reading(withheld=opened.withheld))
            if (bare := _bare_turn(line)) is not None:
                _tool_turns(line, bare)
    return read_objects(_turns_in)


def _turns_in(line: Line) -> list[Turn]:
    """The turns in a line of a transcript."""
    value, bare = line.value, _bare_turn(line)
    match value.get("type"), string(value, "subtype"):
        case (("user" | "assistant" | "tool_result"), _) if bare is not None:
            turns = [*_message_turns(line, bare), *_tool_turns(line, bare)]
            used = mapping(value, "usageMetadata")
            line.reading.token_uses += response_tokens(
                bare.stream, bare.uuid, len(line.reading.turns) + len(turns) - 1, used=tokens(used, "promptTokenCount"),
                made=tokens(used, "candidatesTokenCount"), read=tokens(used, "cachedContentTokenCount"),
            )  # fmt: skip
            return turns
        case "system", "chat_compression" if bare is not None:
            history = mappings(mapping(value, "systemPayload").get("compressedHistory"))
            text = words_in(parts_in(history[0].get("parts"))) if history else ""
            summary = gemini_parts.summary_in(text, line.removed)
            return [replace(bare, kind="summary", text=summary)] if summary else []
        case "system", "custom_title" if bare is not None:
            title = string(mapping(value, "systemPayload"), "customTitle")
            line.reading.note_title(bare.session_id, title, line.removed)
            return []
    return line.skip()


def _bare_turn(line: Line) -> Turn | None:
    """A turn with the record's ids, time and directory and without text; None for a record without ids."""
    value = line.value
    uuid, session = uuid_in(HOST, value, "uuid"), uuid_in(HOST, value, "sessionId")
    is_agents = value.get("isSidechain") is True
    agent = label(value, "agentId") if is_agents else ""
    if not uuid or not session or (is_agents and not agent):
        return None
    return Turn(
        uuid=uuid, session_id=session, agent_id=agent, kind="assistant", text="", at=moment(value),
        cwd=path_in(value, "cwd", line.removed), version=label(value, "version", 40),
    )  # fmt: skip


def _parts(value: dict[str, Any]) -> list[dict[str, Any]]:
    return parts_in(mapping(value, "message").get("parts"))


def _message_turns(line: Line, bare: Turn) -> list[Turn]:
    """The turn of a record that is a message."""
    value = line.value
    words, kind = words_in(_parts(value)), value["type"]
    if kind == "assistant":
        text = gemini_parts.clean(words, line.removed)
        context = tokens(mapping(value, "usageMetadata"), "promptTokenCount")
        return [replace(bare, text=text, model=label(value, "model", 100), context=context)] if text else []
    subtype = string(value, "subtype")
    is_typed = subtype in _TYPED and string(value, "provenance") in _BY_PERSON
    shown = string(mapping(value, "systemPayload"), "displayText") if is_typed else ""
    text = gemini_parts.clean(shown or words, line.removed)
    if kind != "user" or not text:
        return []
    if not is_typed:
        return [replace(bare, kind="notification", text=text)]
    turn = replace(bare, kind=gemini_parts.prompt_kind(text), text=text)
    if subtype or bare.agent_id:
        return [turn]
    return [replace(turn, is_prompt_line=True, parent_uuid=uuid_in(HOST, value, "parentUuid") or ROOT)]


def _tool_turns(line: Line, bare: Turn) -> list[Turn]:
    """The turns of the calls and results in a record, and of the user's answers to questions."""
    turns: list[Turn] = []
    outcome = mapping(line.value, "toolCallResult")
    for part in _parts(line.value):
        if call := mapping(part, "functionCall"):
            turns += gemini_parts.call_turns(line, bare, call)
        elif response := mapping(part, "functionResponse"):
            rejected = string(outcome, "status") == "cancelled"
            turns += gemini_parts.response_turns(line, bare, response, rejected=rejected)
            if string(response, "name") == "ask_user_question":
                answers = mappings(mapping(outcome, "resultDisplay").get("answers"))
                pairs = [(string(answer, "question"), string(answer, "answer")) for answer in answers]
                turns += gemini_parts.answer_turns(line, bare, "/answers", pairs)
    return turns
