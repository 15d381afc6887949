"""What Copilot CLI's transcripts hold, told independently of csmd: the standard library, and the format.

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
    for path in sorted(root.rglob("events.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        session = f"copilot:{lines[0]['data']['sessionId']}"
        for number, line in enumerate(lines):
            agent = line.get("agentId")
            stream = f"{session}/{agent}" if agent else session
            for kind, text in _said(line["type"], line["data"], bool(agent), _by_program(lines, number)):
                if text.strip() or kind == "tool_result":
                    streams.setdefault(stream, []).append((kind, text.strip()))
    return streams


def _by_program(lines: list[dict[str, Any]], number: int) -> bool:
    """Whether the session's prompt of the model that is in force at a line, or is written right behind it, is a program's."""
    prompts = [line["type"] == "system.message" and not line.get("agentId") for line in lines[: number + 2]]
    if not any(prompts):
        return False
    text = lines[len(prompts) - 1 - prompts[::-1].index(True)]["data"]["content"]
    return "non-interactive mode" in text.split("\n")[0]


def _said(kind: str, data: dict[str, Any], of_agent: bool, by_program: bool) -> list[Said]:
    asked = "relayed" if by_program and not of_agent else "user"
    if kind == "user.message":
        text = data["content"]
        if not of_agent and (data.get("source") or data.get("isAutopilotContinuation")):
            return [("notification", text)]
        return [("command" if text.startswith("/") else asked, text)]
    if kind == "assistant.message":
        return [("assistant", data["content"])]
    if kind in ("tool.execution_start", "tool.user_requested"):
        given = data["arguments"]
        if data["toolName"] == "apply_patch":
            return [("tool_call", name) for name in re.findall(r"\*\*\* \w+ File: (.*)", given["input"])]
        return [("tool_call", str(given.get("command") or given.get("path") or next(iter(given.values()))))]
    if kind == "tool.execution_complete":
        if "error" in data:
            return [("tool_result", data["error"]["message"])]
        return [("tool_result", re.split(r"\n*<shellId|\n\nTool \"", data["result"]["content"])[0])]
    if kind == "session.compaction_complete":
        return [("summary", data["summaryContent"])]
    if kind == "permission.completed" and data["decisionSource"] == "human_response":
        return [(asked, data["result"].get("feedback", ""))]
    if kind == "human_response.recorded" and data["actor"] == "human_response":
        response = data["response"]
        return [(asked, f"> {response['message']}\n{' '.join(response['content'].values())}")]
    return []
