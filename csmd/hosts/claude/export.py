"""Stored turns as a transcript that `claude --resume` accepts.

The lines form one chain by `parentUuid`; each tool call is directly followed by its result, and a compaction is a
boundary and a summary. A call without a result, or one whose input was cut or dropped, is written as text, because the
API rejects half a pair; its line is the host's (`isMeta`), so that a reader of the file does not attribute a tool's
words to a person. Lines keep their original uuids, and turns of one line share one again: capturing the file adds
nothing.
"""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from csmd import wire
from csmd.conversation import ExportedTurn
from csmd.hosts.adapter import Export
from csmd.json_fields import parse_object
from csmd.paths import folder_name
from csmd.text import display
from csmd.vocabulary import TOOL_KINDS

#: The namespace of derived uuids: a line without a uuid gets the same one at each export.
_NAMES = uuid.UUID("c5e4d3a2-6f0b-5b7e-9a51-0c1d2e3f4a5b")
#: The version in the lines of a session without one; the client accepts it.
VERSION = "2.0.0"
MODEL = "unknown"
#: Most characters of a call or result that is written as text because its other half is missing.
FOLDED_CHARACTERS = 2000


@dataclass(slots=True)
class _Line:
    """A line to be written: its uuid, role and turns; `is_narrated` if a tool call or result is written as text."""

    uuid: str
    role: str
    message_id: str
    is_narrated: bool = False
    turns: list[ExportedTurn] = field(default_factory=list)


@dataclass(slots=True)
class _Pairs:
    """Complete calls by uuid: the input of each call and {} for its result, and each call's result."""

    whole: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)


def make_resumable_id(session_id: str) -> str:
    """Returns the id that resumes a session: its own if it is a uuid, as the client requires, else one derived from
    it."""
    try:
        return str(uuid.UUID(session_id))
    except ValueError:
        return _derive_uuid("session", session_id)


def _drop_answers(turns: Sequence[ExportedTurn]) -> list[ExportedTurn]:
    """Returns the turns without the user's answers in a tool's result: the result contains their words."""
    results = {turn.uuid.partition("/")[0] for turn in turns if turn.kind == "tool_result"}

    def is_answer(turn: ExportedTurn) -> bool:
        return turn.kind == "user" and "/" in turn.uuid and turn.uuid.partition("/")[0] in results

    return [turn for turn in turns if not is_answer(turn)]


def export(
    turns: Sequence[ExportedTurn], *, session_id: str, cwd: str, version: str = "", model: str = "", title: str = ""
) -> Export:
    """Returns a transcript that the client resumes, from a session's turns in order."""
    resumable_id = make_resumable_id(session_id)
    valid_turns = _drop_answers(_drop_abandoned(turns))
    pairs = _find_pairs(valid_turns)
    shared = {"isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": resumable_id,
              "version": version or VERSION, "gitBranch": ""}  # fmt: skip
    entries: list[dict[str, Any]] = []
    parent: str | None = None
    for line in _order_lines(_group_lines(valid_turns, pairs), pairs):
        first = line.turns[0]
        head = {**shared, "timestamp": first.at}
        if first.kind == "summary":
            boundary = _derive_uuid("boundary", line.uuid)
            entries.append({
                "parentUuid": None, "logicalParentUuid": parent, **head, "type": "system",
                "subtype": "compact_boundary",
                "content": "Conversation compacted", "isMeta": False, "level": "info", "uuid": boundary,
                "compactMetadata": {"trigger": "manual", "preTokens": 0},
            })  # fmt: skip
            parent = boundary
        message = _make_message(line, pairs.whole, model or MODEL)
        entries.append({"parentUuid": parent, **head, **message, "uuid": line.uuid})
        parent = line.uuid
    if title:
        entries.append({"type": "ai-title", "aiTitle": title, "sessionId": resumable_id})
    return Export(
        session_id=resumable_id, lines=tuple(wire.dumps(line) for line in entries), left_out=len(turns) - len(valid_turns),
        place=f"projects/{folder_name(cwd)}/{resumable_id}.jsonl", command=f"cd {shlex.quote(cwd)} && claude --resume {resumable_id}",
    )  # fmt: skip


def _drop_abandoned(turns: Sequence[ExportedTurn]) -> list[ExportedTurn]:
    """Returns the turns without those that a rewind abandoned: of two prompts with one parent the later is valid."""
    valid: list[ExportedTurn] = []
    prompts: dict[str, int] = {}
    for turn in turns:
        if turn.kind == "user" and turn.parent_uuid and "/" not in turn.uuid:
            if turn.parent_uuid in prompts:
                del valid[prompts[turn.parent_uuid] :]
                prompts = {parent: index for parent, index in prompts.items() if index < len(valid)}
            prompts[turn.parent_uuid] = len(valid)
        valid.append(turn)
    return valid


def _group_lines(turns: Sequence[ExportedTurn], pairs: _Pairs) -> list[_Line]:
    """Returns the lines that the turns came from, without text that the client wrote for the user."""
    lines: dict[str, _Line] = {}
    for turn in turns:
        role = _find_role(turn)
        is_narrated = turn.kind in TOOL_KINDS and turn.uuid not in pairs.whole
        if not role or not (turn.text.strip() or turn.kind == "tool_result"):
            continue
        own = turn.uuid.partition("/")[0]
        if is_narrated or own.startswith("hook:"):
            own, role = _derive_uuid("turn", turn.uuid), "user" if is_narrated else role
        if own in lines and lines[own].role != role:  # one line has one speaker
            own = _derive_uuid("turn", turn.uuid)
        message_id = turn.message_id or f"msg_{own.replace('-', '')}"
        lines.setdefault(own, _Line(own, role, message_id, is_narrated)).turns.append(turn)
    for line in lines.values():  # the API requires results before words
        line.turns.sort(key=lambda turn: turn.kind != "tool_result" if line.role == "user" else False)
    return list(lines.values())


def _find_role(turn: ExportedTurn) -> str:
    if turn.kind in ("assistant", "tool_call"):
        return "assistant"
    if turn.kind == "notification":  # an error that the client wrote in the assistant's name never reached the model
        return "user" if turn.text.lstrip().startswith("<task-notification") else ""
    return "user"


def _find_pairs(turns: Sequence[ExportedTurn]) -> _Pairs:
    """Returns the tool calls whose input is complete and whose one result follows before any compaction."""
    pairs = _Pairs()
    waiting: dict[str, tuple[ExportedTurn, dict[str, Any]]] = {}
    called: set[str] = set()
    for turn in turns:
        if turn.kind == "summary":
            waiting.clear()
        elif turn.kind == "tool_call" and turn.tool_id and turn.tool_name and turn.tool_id not in called:
            called.add(turn.tool_id)
            arguments = parse_object(turn.text)
            if arguments is not None:
                waiting[turn.tool_id] = turn, arguments
        elif turn.kind == "tool_result" and turn.tool_id in waiting:
            call, arguments = waiting.pop(turn.tool_id)
            pairs.whole[call.uuid] = arguments
            pairs.whole[turn.uuid] = {}
            pairs.results[call.uuid] = turn.uuid
    return pairs


def _order_lines(lines: Sequence[_Line], pairs: _Pairs) -> list[_Line]:
    """Returns the lines in the order of the API: the blocks of a message, the results of its calls, the rest."""
    blocks: dict[str, list[_Line]] = {}
    holding: dict[str, _Line] = {}
    for line in lines:
        holding.update({turn.uuid: line for turn in line.turns})
        if line.role == "assistant":
            blocks.setdefault(line.message_id, []).append(line)
    waiting = {holding[result].uuid for result in pairs.results.values()}
    ordered: dict[str, _Line] = {}
    for line in lines:
        if line.uuid in ordered or line.uuid in waiting:
            continue
        together = blocks[line.message_id] if line.role == "assistant" else [line]
        uuids = [turn.uuid for block in together for turn in block.turns]
        answers = [holding[pairs.results[uuid]] for uuid in uuids if uuid in pairs.results]
        # A line that also holds words goes last: words must not separate a call from its result.
        answers.sort(key=lambda answer: answer.turns[-1].kind != "tool_result")
        ordered.update({block.uuid: block for block in (*together, *answers)})
    return list(ordered.values())


def _make_message(line: _Line, whole: dict[str, Any], model: str) -> dict[str, Any]:
    blocks = [_make_block(turn, whole) for turn in line.turns]
    if line.role == "assistant":
        calls = any(block["type"] == "tool_use" for block in blocks)
        message = {
            "id": line.message_id, "type": "message", "role": "assistant", "model": model, "content": blocks,
            "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                      "output_tokens": line.turns[0].tokens},
        }  # fmt: skip
        return {"type": "assistant", "message": message}
    is_text = len(blocks) == 1 and blocks[0]["type"] == "text"
    content = blocks[0]["text"] if is_text else blocks
    entry: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": content}}
    if line.is_narrated:
        entry["isMeta"] = True
    # As the client records who submits a prompt, so that a prompt that no one typed remains one.
    is_relayed = any(turn.kind == "relayed" for turn in line.turns)
    entry |= {"entrypoint": "sdk-cli"} if is_relayed else {"permissionMode": "default"}
    if line.turns[0].kind == "summary":
        entry |= {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    return entry


def _make_block(turn: ExportedTurn, whole: dict[str, Any]) -> dict[str, Any]:
    text = turn.text
    if turn.kind == "tool_call":
        if turn.uuid in whole:
            return {"type": "tool_use", "id": turn.tool_id, "name": turn.tool_name, "input": whole[turn.uuid]}
        text = f"[called {turn.tool_name or 'a tool'}: {display.cut(text, FOLDED_CHARACTERS)}]"
    elif turn.kind == "tool_result":
        if turn.uuid in whole:
            return {"type": "tool_result", "tool_use_id": turn.tool_id, "content": text}
        text = f"[a tool answered: {display.cut(text, FOLDED_CHARACTERS)}]"
    return {"type": "text", "text": text}


def _derive_uuid(kind: str, name: str) -> str:
    return str(uuid.uuid5(_NAMES, f"{kind}:{name}"))
