"""What Gemini CLI's and Qwen Code's transcripts hold, told independently of csmd: the standard library, and the formats.

Not a test: found through tests/conftest.py. It reads whole files and keeps everything in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

#: (kind, text) of a turn; a call's text is the words that must stand in it, a result's how it must end.
Said = tuple[str, str]


def of_gemini(root: Path) -> dict[str, list[Said]]:
    """The turns of each stream (session, or session/agent) of Gemini CLI's below a directory: the last state of each message."""
    streams: dict[str, list[Said]] = {}
    for path in sorted(root.rglob("*.jsonl")):
        head, *rest = [json.loads(line) for line in path.read_text().splitlines()]
        stream = head["sessionId"] if head["kind"] == "main" else f"{path.parent.name}/{head['sessionId']}"
        messages: dict[str, dict[str, Any]] = {}
        for line in rest:
            for message in line.get("$set", {}).get("messages", []):
                if message["content"][0].get("text", "").startswith("<state_snapshot>"):
                    messages.setdefault(message["id"], {**message, "type": "summary"})
            if "id" in line:
                messages[line["id"]] = line
        turns = [turn for message in messages.values() for turn in _of_message(message)]
        if turns:
            streams.setdefault(f"gemini:{stream}", []).extend(turns)
    return streams


def _of_message(message: dict[str, Any]) -> list[Said]:
    parts = message["content"]
    parts = [{"text": parts}] if isinstance(parts, str) else parts
    own = ("<loaded_context>", "<session_context>")
    texts = [part.get("text", "") for part in parts if not part.get("thought")]
    text = "".join(text for text in texts if not text.strip().startswith(own))
    if message["type"] == "user":
        shown = "".join(part["text"] for part in message.get("displayContent", []))
        if not text:
            return []
        said, typed = _typed(text), _typed(shown or text)
        if not typed:
            return []
        if not said.startswith(typed):
            return [("notification", said)]
        by_script = re.match(r"<hook_context>.*?</hook_context>\s*\S", texts[0], re.DOTALL)
        return [("command" if typed.startswith("/") else "relayed" if by_script else "user", typed)]
    if message["type"] == "summary":
        return [("summary", _untagged(text))]
    if message["type"] != "gemini":
        return []
    found = [("assistant", text)] if text else []
    for call in message.get("toolCalls", []):
        found += _of_call(call["args"])
        for part in call["result"]:
            response = part["functionResponse"]["response"]
            found.append(("tool_result", _printed(response)))
            if call["name"] == "ask_user":
                answers = json.loads(response["output"])["answers"]
                asked = call["args"]["questions"]
                found.append(
                    ("user", "\n\n".join(f"> {asked[int(n)]['question']}\n{said}" for n, said in answers.items()))
                )
    return found


def of_qwen(root: Path) -> dict[str, list[Said]]:
    """The turns of each stream of Qwen Code's below a directory, in the order of the lines."""
    streams: dict[str, list[Said]] = {}
    for path in sorted(root.rglob("*.jsonl")):
        for record in (json.loads(line) for line in path.read_text().splitlines()):
            agent = f"/{record['agentId']}" if record.get("isSidechain") else ""
            for turn in _of_record(record):
                streams.setdefault(f"qwen:{record['sessionId']}{agent}", []).append(turn)
    return streams


def _of_record(record: dict[str, Any]) -> Iterable[Said]:
    parts = record.get("message", {}).get("parts", [])
    text = "".join(
        part.get("text", "") for part in parts if not part.get("thought") and "<qwen:" not in part.get("text", "")
    )
    if record["type"] == "user":
        if record.get("provenance", "real_user") != "real_user":
            yield "notification", text
        else:
            typed = _typed(text)
            yield ("command" if typed.startswith("/") else "user"), typed
    elif record["type"] == "assistant" and text:
        yield "assistant", text
    elif record.get("subtype") == "chat_compression":
        yield "summary", _untagged(record["systemPayload"]["compressedHistory"][0]["parts"][0]["text"])
    for part in parts:
        if "functionCall" in part:
            yield from _of_call(part["functionCall"]["args"])
        if "functionResponse" in part:
            yield "tool_result", _printed(part["functionResponse"]["response"])
            shown = record["toolCallResult"]["resultDisplay"]
            if isinstance(shown, dict) and "answers" in shown:
                yield "user", "\n\n".join(f"> {one['question']}\n{one['answer']}" for one in shown["answers"])


def _of_call(given: dict[str, Any]) -> list[Said]:
    words = next((given[key] for key in ("command", "file_path", "prompt", "query") if key in given), "")
    return [("tool_call", words)]


def _typed(text: str) -> str:
    text = re.sub(r"<hook_context>.*?</hook_context>", "", text, flags=re.DOTALL)
    return text.split("\n--- Content from referenced files ---")[0].strip()


def _untagged(text: str) -> str:
    inner = text.split("<state_snapshot>")[1].split("</state_snapshot>")[0]
    return "\n".join(line for line in inner.splitlines() if line and not re.fullmatch(r"</?\w+>", line)).strip()


def _printed(response: dict[str, str]) -> str:
    text = response.get("output") or response["error"]
    text = text.split("<hook_context>")[0].replace("<untrusted_context>\n", "").replace("\n</untrusted_context>", "")
    shell = re.search(r"Output: (.*?)\n(?:Error: .*\n)?(?:Exit Code|Process Group)", text.strip(), re.DOTALL)
    return shell[1].replace("(empty)", "") if shell else text.strip()
