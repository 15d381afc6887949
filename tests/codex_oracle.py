"""What Codex' rollouts hold, told independently of csmd: the standard library, and the format.

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
    for path in sorted(root.rglob("rollout-*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        head = lines[0]["payload"]
        of_agent = isinstance(head.get("source"), dict)
        stream = f"codex:{head['session_id']}/{head['id']}" if of_agent else f"codex:{head['id']}"
        streams.setdefault(stream, []).extend(_turns(lines, head, of_agent))
    return streams


def _turns(lines: list[dict[str, Any]], head: dict[str, Any], of_agent: bool) -> list[Said]:
    found: list[Said] = []
    person = head.get("source") in ("cli", "vscode")
    new = head.get("history_mode") == "paginated"
    for line in lines:
        payload, kind = line["payload"], (line["type"], line["payload"].get("type"))
        if kind == ("event_msg", "task_started") and payload.get("turn_attribution", {}).get("turn_trigger"):
            person = payload["turn_attribution"]["turn_trigger"] == "user"
        asked = "user" if person or of_agent else "relayed"
        if kind == ("event_msg", "item_completed") and new:
            item = payload["item"]
            if item["type"] in ("UserMessage", "AgentMessage"):
                text = "\n".join(part["text"] for part in item["content"])
                found.append((asked if item["type"] == "UserMessage" else "assistant", text))
        elif kind == ("event_msg", "user_message") and not new:
            found.append((asked, payload["message"].split("## My request for Codex:")[-1].strip()))
        elif kind == ("event_msg", "agent_message") and not new:
            found.append(("assistant", payload["message"]))
        elif line["type"] == "retained_context":
            (pair,) = payload["questions"]  # below the question stands what was taken of its options
            found.append((asked, f"> {pair['question'].splitlines()[0]}\n{pair['answer']}"))
        elif line["type"] == "compacted":
            found.append(("summary", payload["message"].split("analysis:\n")[-1]))
        elif kind[1] == "function_call":
            given = json.loads(payload["arguments"])
            command = given.get("cmd") or given.get("command")
            found.append(("tool_call", command[-1] if isinstance(command, list) else command or ""))
        elif kind[1] == "custom_tool_call":
            found += [("tool_call", name) for name in re.findall(r"\*\*\* \w+ File: (.*)", payload["input"])]
        elif kind[1] in ("function_call_output", "custom_tool_call_output"):
            found.append(("tool_result", _printed(payload["output"])))
    return [(what, text.strip()) for what, text in found]


def _printed(output: Any) -> str:
    if isinstance(output, list):
        output = "\n".join(part["text"] for part in output)
    if output.startswith('{"output"'):
        return str(json.loads(output)["output"])
    return str(output.split("Output:\n", 1)[1] if "Output:\n" in output[:200] else output)
