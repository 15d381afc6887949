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
from csmd.hosts.claude.transcript import ROOT_PARENT
from csmd.hosts.gemini_parts import join_text, list_parts
from csmd.hosts.labels import read_label, read_path, read_tokens, read_uuid
from csmd.hosts.transcript_reading import Line, Reading, ReadLine, Transcript, read_objects
from csmd.json_fields import mapping, mappings, parse_object, read_time, string

HOST = "qwen"
#: The context window of current models.
WINDOW_TOKENS = 262_144
FIRST_LINE = re.compile(
    rb'\s*\{"uuid":\s?"[^"]*",\s?"parentUuid":\s?(?:null|"[^"]*"),\s?"sessionId":\s?"[^"]*",\s?'
    rb'"timestamp":\s?"[^"]*",\s?"type":\s?"(?:user|assistant|tool_result|system)"'
)
PATH_PATTERN = re.compile(r"(?P<project>[^/]+)/(?:chats/([\w-]+)|subagents/([\w-]+)/[\w.-]+)\.jsonl", re.ASCII)
#: How far back a call is searched for that an excluded file withholds.
WITHHELD_LOOK_BACK_BYTES = 64 * 1024
#: The fields of a response's tokens: input, output, cache reads and writes.
_TOKEN_FIELDS = ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "")
#: The subtypes of a record in the user's name that a person typed: a prompt, or words while the assistant worked.
_TYPED_SUBTYPES = ("", "mid_turn_user_message")
_PERSON_PROVENANCES = ("", "real_user")


def make_reader(transcript: Transcript) -> ReadLine:
    """Reads the lines of a transcript from a position on; each is complete in itself."""
    if transcript.withheld.excludes.files:
        for data in transcript.read_before(WITHHELD_LOOK_BACK_BYTES).split(b"\n"):
            line = Line(parse_object(data) or {}, Reading(withheld=transcript.withheld))
            if (bare := _make_bare_turn(line)) is not None:
                _read_tool_turns(line, bare)
    return read_objects(_read_turns)


def _read_turns(line: Line) -> list[Turn]:
    """Returns the turns in a line of a transcript."""
    value, bare = line.value, _make_bare_turn(line)
    match value.get("type"), string(value, "subtype"):
        case (("user" | "assistant" | "tool_result"), _) if bare is not None:
            turns = [*_read_message_turns(line, bare), *_read_tool_turns(line, bare)]
            line.record_tokens(bare.stream, bare.uuid, value.get("usageMetadata"), _TOKEN_FIELDS, len(turns))
            return turns
        case "system", "chat_compression" if bare is not None:
            history = mappings(mapping(value, "systemPayload").get("compressedHistory"))
            text = join_text(list_parts(history[0].get("parts"))) if history else ""
            summary = gemini_parts.read_summary(text, line.redactions)
            return [replace(bare, kind="summary", text=summary)] if summary else []
        case "system", "custom_title" if bare is not None:
            title = string(mapping(value, "systemPayload"), "customTitle")
            line.reading.record_title(bare.session_id, title, line.redactions)
            return []
    return line.skip()


def _make_bare_turn(line: Line) -> Turn | None:
    """Returns a turn with the record's ids, time and directory and without text; None for a record without ids."""
    value = line.value
    uuid, session = read_uuid(HOST, value, "uuid"), read_uuid(HOST, value, "sessionId")
    is_agents = value.get("isSidechain") is True
    agent = read_label(value, "agentId") if is_agents else ""
    if not uuid or not session or (is_agents and not agent):
        return None
    return Turn(
        uuid=uuid, session_id=session, agent_id=agent, kind="assistant", text="", at=read_time(value),
        cwd=read_path(value, "cwd", line.redactions), version=read_label(value, "version", 40),
    )  # fmt: skip


def _list_message_parts(value: dict[str, Any]) -> list[dict[str, Any]]:
    return list_parts(mapping(value, "message").get("parts"))


def _read_message_turns(line: Line, bare: Turn) -> list[Turn]:
    """Returns the turn of a record that is a message."""
    value = line.value
    words, kind = join_text(_list_message_parts(value)), value["type"]
    if kind == "assistant":
        text = gemini_parts.clean_parts_text(words, line.redactions)
        context = read_tokens(mapping(value, "usageMetadata"), "promptTokenCount")
        return [replace(bare, text=text, model=read_label(value, "model", 100), context=context)] if text else []
    subtype = string(value, "subtype")
    is_typed = subtype in _TYPED_SUBTYPES and string(value, "provenance") in _PERSON_PROVENANCES
    display_text = string(mapping(value, "systemPayload"), "displayText") if is_typed else ""
    text = gemini_parts.clean_parts_text(display_text or words, line.redactions)
    if kind != "user" or not text:
        return []
    if not is_typed:
        return [replace(bare, kind="notification", text=text)]
    turn = replace(bare, kind=gemini_parts.classify_prompt(text), text=text)
    if subtype or bare.agent_id:
        return [turn]
    return [replace(turn, is_prompt_line=True, parent_uuid=read_uuid(HOST, value, "parentUuid") or ROOT_PARENT)]


def _read_tool_turns(line: Line, bare: Turn) -> list[Turn]:
    """Returns the turns of the calls and results in a record, and of the user's answers to questions."""
    turns: list[Turn] = []
    outcome = mapping(line.value, "toolCallResult")
    for part in _list_message_parts(line.value):
        if call := mapping(part, "functionCall"):
            turns += gemini_parts.make_call_turns(line, bare, call)
        elif response := mapping(part, "functionResponse"):
            rejected = string(outcome, "status") == "cancelled"
            turns += gemini_parts.make_response_turns(line, bare, response, rejected=rejected)
            if string(response, "name") == "ask_user_question":
                answers = mappings(mapping(outcome, "resultDisplay").get("answers"))
                pairs = [(string(answer, "question"), string(answer, "answer")) for answer in answers]
                turns += gemini_parts.make_answer_turns(line, bare, "/answers", pairs)
    return turns
