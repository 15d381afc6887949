"""What a tree of Claude Code's transcripts holds, told independently of csmd: the standard library, and the format.

Not a test: found through tests/conftest.py. It reads whole files, keeps everything in memory and follows the queue of
prompts by its operations, none of which csmd does; so where the two agree, both are probably right.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REJECTION = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, "
    "the new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)


@dataclass(frozen=True)
class Entry:
    """One entry of a conversation; `key` is its line's uuid (with /n for the n-th of a line) or its place in a queue."""

    key: str
    kind: str
    text: str


@dataclass
class Holdings:
    """What a tree holds: the entries of each stream (a session, or session/agent) in the order of its lines."""

    streams: dict[str, list[Entry]] = field(default_factory=dict)

    def entries(self) -> dict[str, Entry]:
        """Every entry once, by its key: a fork copies lines with their uuids."""
        return {entry.key: entry for entries in self.streams.values() for entry in entries}


def squeezed(text: str) -> str:
    """A text for comparing: white space is one blank."""
    return " ".join(text.replace("\0", "").split())


def of_tree(root: Path) -> Holdings:
    """What all transcripts below a directory hold."""
    holdings = Holdings()
    for path in sorted(root.rglob("*.jsonl")):
        if not {"memory", "tool-results"} & set(path.parts):
            of_lines(path.read_bytes().split(b"\n"), holdings)
    return holdings


def of_lines(lines: Iterable[bytes], holdings: Holdings) -> None:
    """Adds what one transcript's lines hold."""
    values = [value for line in lines if isinstance(value := _value(line), dict)]
    values = _without_warmups(values)
    tools = {
        block["id"]: block.get("name", "")
        for value in values
        for message in (_message(value), _message(_told(value)))
        for block in message
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str)
    }
    queue = Queue()
    seen = {(stream, entry.key) for stream, entries in holdings.streams.items() for entry in entries}
    for value in values:
        kind = value.get("type")
        if kind == "queue-operation":
            queue.operate(value, holdings)
            continue
        line, session = value, value.get("sessionId")
        if kind == "progress":
            if not _told(value):
                continue
            line = {"sessionId": session, **_told(value), "isSidechain": True, "agentId": value["data"].get("agentId")}
        if not session or not line.get("uuid"):
            continue
        stream = f"{session}/{line.get('agentId') or 'sidechain'}" if line.get("isSidechain") else session
        for place, (what, text) in enumerate(_said(line, tools)):
            entry = Entry(f"{line['uuid']}/{place}" if place else line["uuid"], what, text)
            listed = holdings.streams.setdefault(stream, [])
            if (stream, entry.key) in seen:
                continue
            seen.add((stream, entry.key))
            if place == 0 and what in ("user", "relayed", "command", "notification"):
                queue.said(stream, text, absorbed=kind == "attachment", holdings=holdings)
            listed.append(entry)


def _without_warmups(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines without those of agents that early versions start for themselves."""
    agents, lines = set(), set()
    for value in values:
        is_warmup = value.get("isSidechain") and _content(value) == "Warmup"
        if is_warmup and value.get("agentId"):
            agents.add(value["agentId"])
        elif is_warmup or (value.get("isSidechain") and not value.get("agentId") and value.get("parentUuid") in lines):
            lines.add(value.get("uuid"))
    return [value for value in values if value.get("agentId") not in agents and value.get("uuid") not in lines]


class Queue:
    """The prompts that were put into sessions' queues, by what became of them."""

    def __init__(self) -> None:
        self.inside: dict[str, list[Entry]] = {}
        self.out: dict[tuple[str, bool], list[Entry]] = {}

    def operate(self, value: dict[str, Any], holdings: Holdings) -> None:
        session, content = value.get("sessionId"), value.get("content")
        inside = self.inside.setdefault(session, [])
        if value.get("operation") == "enqueue" and isinstance(content, str) and (text := prompt(content)):
            entry = Entry(f"queue:{session}:{value.get('timestamp')}:{len(inside)}", prompt_kind(text), text)
            inside.append(entry)
            holdings.streams.setdefault(session, []).append(entry)
        elif value.get("operation") in ("dequeue", "remove") and inside:
            named = [entry for entry in inside if isinstance(content, str) and entry.text == prompt(content)]
            entry = (named or inside)[0]
            inside.remove(entry)
            self.out.setdefault((session, value["operation"] == "remove"), []).append(entry)

    def said(self, session: str, text: str, *, absorbed: bool, holdings: Holdings) -> None:
        """A line says a prompt: the queue's entry that it says again is no entry of its own."""
        out, inside = self.out.get((session, absorbed), []), self.inside.get(session, [])
        for place, entries in ((out, out[::-1]), (inside, inside[:])):  # what left last is what this line is about
            for entry in entries:
                if squeezed(entry.text).casefold() == squeezed(text).casefold():
                    place.remove(entry)
                    holdings.streams[session].remove(entry)
                    return


def prompt(text: str) -> str:
    """A prompt as it was typed: without the host's reminders; a command that was spelt out in tags in one line."""
    text = re.sub(r"<system-reminder>.*?</system-reminder>", "", text, flags=re.DOTALL).strip()
    while text.startswith("<ide_") and (end := text.find(f"</{text[1 : text.find('>')]}>")) > 0:
        text = text[text.find(">", end) + 1 :].strip()
    if text.startswith(("<command-name>", "<command-message>", "<command-args>")):
        name = re.search(r"<command-name>(.*?)</command-name>", text, re.DOTALL)
        args = re.search(r"<command-args>(.*)</command-args>", text, re.DOTALL)
        if name:
            return f"/{name[1].strip().lstrip('/')} {args[1] if args else ''}".strip()
    return text


def prompt_kind(text: str) -> str:
    """Whose words a prompt is: the user's, a command for the host, or the host's own notice."""
    if re.match(r"<(task|agent)-notification\b", text):
        return "notification"
    with contextlib.suppress(ValueError):
        if {"task_id", "tool_use_id"} <= set(dict(json.loads(text) if text.startswith("{") else {})):
            return "notification"  # a task in the background
    if re.match(r"<(local-command-(stdout|caveat)|bash-(input|stdout|stderr)|command-(name|message|args))>", text):
        return "command"
    return "command" if re.match(r"/[A-Za-z][\w:.-]*(\s|$)", text) else "user"


def _said(value: dict[str, Any], tools: dict[str, str]) -> list[tuple[str, str]]:
    """(kind, text) of what one line holds."""
    kind = value.get("type")
    if kind == "attachment":
        queued = value.get("attachment") or {}
        human = (queued.get("origin") or {"kind": "human"}).get("kind") == "human"
        if queued.get("type") != "queued_command" or queued.get("commandMode") != "prompt" or not human:
            return []
        text = prompt(_text(queued.get("prompt")))
        return [(_by_whom(value, text), text)] if text else []
    if kind == "system":
        content = value.get("content") or ""
        if value.get("subtype") == "informational" and content.startswith("UserPromptSubmit operation blocked by hook"):
            text = prompt(content.split("Original prompt: ", 1)[1])
            return [(_by_whom(value, text), text)]
        return []
    if kind not in ("user", "assistant") or (value.get("isMeta") and not value.get("isCompactSummary")):
        return []
    blocks = _message(value)
    turns: list[tuple[str, str]] = []
    text = "\n\n".join(block.get("text", "") for block in blocks if block.get("type") == "text").strip()
    text = prompt(text) if kind == "user" else text
    if text and not re.fullmatch(r"\[Request interrupted by user(?: for tool use)?\]", text):
        turns.append((_speaker(value, text), text))
    for block in blocks:
        if block.get("type") == "tool_use":
            turns.append(("tool_call", json.dumps(block.get("input") or {}, ensure_ascii=False, separators=(",", ":"))))
        elif block.get("type") == "tool_result":
            turns.append(("tool_result", _text(block.get("content"))))
    if answer := _answer(value, blocks, tools):
        turns.append(("relayed" if str(value.get("entrypoint")).startswith("sdk-") else "user", answer))
    return turns


def _by_whom(value: dict[str, Any], text: str) -> str:
    """As `prompt_kind`; what a program handed in is relayed."""
    kind, program = prompt_kind(text), str(value.get("entrypoint")).startswith("sdk-") and not value.get("isSidechain")
    untold = (
        re.fullmatch(r"2\.0\.7[67]|2\.1\.(\d|[1-5]\d|6[0-3])", str(value.get("version"))) and value["type"] == "user"
    )
    untold = untold and not text.startswith("/")
    if value.get("planContent") or (untold and "entrypoint" not in value and not value.get("isSidechain")):
        program = not {"thinkingMetadata", "permissionMode", "toolUseResult"} & value.keys()
    return "relayed" if kind == "user" and program and value.get("promptSource") != "typed" else kind


def _speaker(value: dict[str, Any], text: str) -> str:
    if value["type"] == "assistant":
        synthetic = value.get("isApiErrorMessage") or value["message"].get("model") == "<synthetic>"
        return "notification" if synthetic else "assistant"
    if value.get("isCompactSummary"):
        return "summary"
    origin = value.get("origin")
    return _by_whom(value, text) if not origin or origin.get("kind") == "human" else "notification"


def _answer(value: dict[str, Any], blocks: list[dict[str, Any]], tools: dict[str, str]) -> str:
    """What the user answered a question with, or said when turning a tool down; "" where the host does not say so."""
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if value["type"] != "user" or len(results) != 1:
        return ""
    (result,), outcome = results, value.get("toolUseResult")
    tool = tools.get(result.get("tool_use_id"), "")
    if tool == "AskUserQuestion" and isinstance(outcome, dict) and isinstance(outcome.get("answers"), dict):
        return "\n\n".join(f"> {question}\n{answer}" for question, answer in outcome["answers"].items())
    content = result.get("content")
    ours = tool and not tool.startswith("mcp__") and (value.get("permissionDecision") or {}).get("decision") != "accept"
    if ours and result.get("is_error") and isinstance(content, str) and content.startswith(REJECTION):
        return content[len(REJECTION) :].strip() if outcome == f"Error: {content}" else ""
    return ""


def _value(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _told(value: dict[str, Any]) -> dict[str, Any]:
    """The message inside a line that tells of an agent's progress; {} in any other."""
    data = value.get("data")
    inside = isinstance(data, dict) and data.get("type") == "agent_progress" and data.get("agentId")
    return data["message"] if inside and isinstance(data.get("message"), dict) else {}


def _content(value: dict[str, Any]) -> Any:
    message = value.get("message")
    return message.get("content") if isinstance(message, dict) else None


def _message(value: dict[str, Any]) -> list[dict[str, Any]]:
    content = _content(value)
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text") or "" for block in content if isinstance(block, dict)) if content else ""
