"""What Droid's transcripts hold, told independently of csmd: the standard library, and the format.

Not a test: found through tests/conftest.py. It reads whole files and keeps everything in memory.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

#: (kind, text) of a turn; a call's text is the words that must stand in it.
Said = tuple[str, str]


def of_tree(root: Path) -> dict[str, list[Said]]:
    """The turns of each stream (session, or session/agent) below a directory."""
    streams: dict[str, list[Said]] = {}
    for path in sorted(root.rglob("*.jsonl")):
        head, *lines = [json.loads(line) for line in path.read_text().splitlines()]
        caller = head.get("callingSessionId")
        stream = f"droid:{caller}/{head['id']}" if caller else f"droid:{head['id']}"
        settings = json.loads(path.with_name(f"{head['id']}.settings.json").read_text())
        is_program = not caller and "exec" in [tag["name"] for tag in settings.get("tags", [])]
        for line in lines:
            if line["type"] == "compaction_state":
                streams.setdefault(stream, []).append(("summary", line["summaryText"]))
            elif line["type"] == "message" and "visibility" not in line["message"]:
                streams.setdefault(stream, []).extend(_said(line["message"], "relayed" if is_program else "user"))
    return streams


def _said(message: dict[str, Any], asked: str) -> list[Said]:
    found: list[Said] = []
    texts = [
        block["text"]
        for block in message["content"]
        if block["type"] == "text" and "<system-reminder>" not in block["text"]
    ]
    if texts:
        kind = "assistant" if message["role"] == "assistant" else "command" if texts[0].startswith("/") else asked
        found.append((kind, "\n\n".join(texts)))
    for block in message["content"]:
        if block["type"] == "tool_use":
            given = block["input"]
            if "input" in given:
                found += [("tool_call", name) for name in re.findall(r"\*\*\* \w+ File: (.*)", given["input"])]
            else:
                found.append(
                    ("tool_call", given.get("command") or given.get("file_path") or next(iter(given.values())))
                )
        elif block["type"] == "tool_result":
            content = block["content"]
            text = content if isinstance(content, str) else "\n".join(part["text"] for part in content)
            found.append(("tool_result", re.sub(r"\s*\[Process exited with code \d+\]$", "", text)))
    return found
