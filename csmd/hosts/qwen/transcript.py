"""Qwen Code's transcripts to turns, titles and token usage.

A transcript is `projects/<project>/chats/<session>.jsonl`, a sub-agent's `projects/<project>/subagents/<session>/agent-*.jsonl`:
records with links to the one before, only ever added to. A resumed session goes on in its file, a fork has a copy. A
record of the user's name says where it comes from: typed at the prompt or while the assistant worked, or the host's own.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from csmd import wire
from csmd.hosts import gemini_parts
from csmd.hosts.adapter import Opened, Reading, ReadLine, Took, quoted_answers, tokens, took
from csmd.hosts.claude.transcript import ROOT
from csmd.hosts.json_fields import json_object, mapping, moment, object_in, string
from csmd.hosts.labels import label
from csmd.hosts.stored_ids import LONGEST_ID, uuid_in
from csmd.privacy.redaction import Removed, redact
from csmd.values import Turn

HOST = "qwen"
#: The context window of the models of today.
WINDOW = 262_144
#: How far back a call is looked for that an excluded file keeps out.
BEFORE_BYTES = 64 * 1024

_FIRST = re.compile(
    rb'\s*\{"uuid":\s?"[^"]*",\s?"parentUuid":\s?(?:null|"[^"]*"),\s?"sessionId":\s?"[^"]*",\s?"timestamp":\s?"[^"]*",\s?'
    rb'"type":\s?"(?:user|assistant|tool_result|system)"'
)
_CHAT = re.compile(r"([^/]+)/(?:chats/([\w-]+)|subagents/([\w-]+)/[\w.-]+)\.jsonl", re.ASCII)
#: What a record of the user's name may be that a person typed: a prompt, or words while the assistant worked.
_TYPED = ("", "mid_turn_user_message")
_BY_PERSON = ("", "real_user")


def is_transcript(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a transcript."""
    return _FIRST.match(beginning) is not None


def place_of(root: str, inside: str) -> tuple[str, str] | None:
    """(project directory, session) of a transcript."""
    found = _CHAT.fullmatch(inside)
    return (f"{root}/{found[1]}", found[2] or found[3]) if found else None


def read_from(opened: Opened) -> ReadLine:
    """How the lines of a transcript are read from a position on: each says all of itself."""
    if opened.withheld.excludes.files:
        for line in opened.before(BEFORE_BYTES).split(b"\n"):
            value = json_object(line) or {}
            if (bare := _bare(value, Counter())) is not None:
                _tool_turns(value, bare, Counter(), Reading(withheld=opened.withheld), 0)
    return read_line


def read_line(line: bytes, into: Reading, *, tool_limit: int) -> None:
    """Adds what one line of a transcript holds; BadInput when it is malformed."""
    value, counts, turns = object_in(line), Removed(), list[Turn]()
    bare, subtype = _bare(value, counts), string(value, "subtype")
    match value.get("type"), subtype:
        case (("user" | "assistant" | "tool_result"), _) if bare is not None:
            said = _said_turn(value, bare, counts)
            turns = [*([said] if said else []), *_tool_turns(value, bare, counts, into, tool_limit)]
            into.spent += _spent(value, bare, len(into.turns) + len(turns) - 1)
        case "system", "chat_compression" if bare is not None:
            turns = _summary_turns(value, bare, counts)
        case "system", "custom_title" if bare is not None:
            into.note_title(bare.session_id, string(mapping(value, "systemPayload"), "customTitle"), counts)
        case _:
            into.skipped += 1
    if counts:
        into.note_removed(turns, counts)
    into.turns += turns


def _bare(value: dict[str, Any], counts: Counter[str]) -> Turn | None:
    """A turn with the record's ids, time and directory and no text; None for a record without ids."""
    uuid, session = uuid_in(HOST, value, "uuid"), uuid_in(HOST, value, "sessionId")
    is_agents = value.get("isSidechain") is True
    agent = label(value, "agentId", LONGEST_ID) if is_agents else ""
    if not uuid or not session or (is_agents and not agent):
        return None
    return Turn(
        uuid=uuid, session_id=session, agent_id=agent, kind="assistant", text="", at=moment(value),
        cwd=redact(wire.clean(string(value, "cwd")), counts), version=label(value, "version", 40),
    )  # fmt: skip


def _parts(value: dict[str, Any]) -> list[dict[str, Any]]:
    return gemini_parts.parts_in(mapping(value, "message").get("parts"))


def _said_turn(value: dict[str, Any], bare: Turn, counts: Counter[str]) -> Turn | None:
    """The turn of what somebody says in a record; None where nobody does."""
    words, kind = gemini_parts.words_in(_parts(value)), value["type"]
    if kind == "assistant":
        said, used = gemini_parts.spoken(words, counts), mapping(value, "usageMetadata")
        model, context = label(value, "model", 100), tokens(used, "promptTokenCount")
        return replace(bare, text=said, model=model, context=context) if said else None
    subtype = string(value, "subtype")
    is_typed = subtype in _TYPED and string(value, "provenance") in _BY_PERSON
    shown = string(mapping(value, "systemPayload"), "displayText") if is_typed else ""
    said = gemini_parts.spoken(shown or words, counts)
    if kind != "user" or not said:
        return None
    if not is_typed:
        return replace(bare, kind="notification", text=said)
    is_prompt = not subtype and not bare.agent_id
    parent = uuid_in(HOST, value, "parentUuid") or (ROOT if is_prompt else "")
    return replace(
        bare, kind=gemini_parts.prompt_kind(said), text=said, is_prompt_line=is_prompt, parent_uuid=parent if is_prompt else "",
    )  # fmt: skip


def _tool_turns(value: dict[str, Any], bare: Turn, counts: Counter[str], into: Reading, limit: int) -> list[Turn]:
    """The turns of the calls and results in a record, and of what the user answered to questions."""
    turns: list[Turn | None] = []
    outcome = mapping(value, "toolCallResult")
    for part in _parts(value):
        if call := mapping(part, "functionCall"):
            turns.append(gemini_parts.call_turn(bare, call, counts, into.withheld, limit))
        elif response := mapping(part, "functionResponse"):
            rejected = string(outcome, "status") == "cancelled"
            turns.append(gemini_parts.response_turn(bare, response, counts, into.withheld, limit, rejected=rejected))
            if string(response, "name") == "ask_user_question":
                turns.append(_picked(bare, outcome, counts))
    return [turn for turn in turns if turn is not None]


def _picked(bare: Turn, outcome: dict[str, Any], counts: Counter[str]) -> Turn | None:
    """What the user answered to the assistant's questions; None where they did not."""
    answers = gemini_parts.parts_in(mapping(outcome, "resultDisplay").get("answers"))
    pairs = [(string(answer, "question"), string(answer, "answer")) for answer in answers]
    said = gemini_parts.spoken(quoted_answers(pairs), counts)
    return replace(bare, uuid=f"{bare.uuid}/answers", kind="user", text=said) if said else None


def _summary_turns(value: dict[str, Any], bare: Turn, counts: Counter[str]) -> list[Turn]:
    history = gemini_parts.parts_in(mapping(value, "systemPayload").get("compressedHistory"))
    said = gemini_parts.words_in(gemini_parts.parts_in(history[0].get("parts"))) if history else ""
    summary = gemini_parts.summary_in(said, counts)
    return [replace(bare, kind="summary", text=summary)] if summary else []


def _spent(value: dict[str, Any], bare: Turn, place: int) -> list[Took]:
    """The tokens of one answer."""
    used = mapping(value, "usageMetadata")
    given, made, read = (
        tokens(used, name) for name in ("promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount")
    )
    return took(bare.stream, bare.uuid, place, given=given, made=made, read=read)
