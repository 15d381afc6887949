"""What OpenCode's database holds, told independently of csmd: the standard library, and the format.

Not a test: found through tests/conftest.py. It reads whole databases and keeps everything in memory.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

#: (kind, text) of a turn; a call's text is the words that must stand in it.
Said = tuple[str, str]


def of_database(path: Path, host: str = "opencode") -> dict[str, list[Said]]:
    """The turns of each stream (session, or session/agent) in a database."""
    rows = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    streams: dict[str, list[Said]] = {}
    for ident, parent, permission in rows.execute("select id, parent_id, permission from session").fetchall():
        messages = rows.execute(
            "select id, data from message where session_id = ? order by time_created, id", (ident,)
        ).fetchall()
        by_run = not parent and '"question"' in (permission or "")
        found: list[Said] = []
        for message, data in messages:
            parts = rows.execute("select data from part where message_id = ? order by id", (message,)).fetchall()
            found += _turns(json.loads(data), [json.loads(part) for (part,) in parts], by_run, bool(parent))
        if found:
            streams[f"{host}:{parent}/{ident}" if parent else f"{host}:{ident}"] = found
    rows.close()
    return streams


def _turns(message: dict[str, Any], parts: list[dict[str, Any]], by_run: bool, of_agent: bool) -> list[Said]:
    found: list[Said] = []
    for part in parts:
        if part["type"] == "text" and not part.get("synthetic") and part["text"].strip():
            text = part["text"].strip()
            if message["role"] == "assistant":
                found.append(("summary" if message.get("summary") is True else "assistant", text))
                continue
            quoted = text.startswith('"') and text.endswith('"')
            by_command = "csmd_command" in part.get("metadata", {})
            kind = "relayed" if (quoted or by_run or by_command) and not of_agent else "user"
            found.append((kind, text[1:-1].replace('\\"', '"') if quoted else text))
        elif part["type"] == "tool":
            state = part["state"]
            given = state["input"]
            found.append(("tool_call", given.get("command") or given.get("filePath") or given.get("prompt") or ""))
            if state["status"] in ("completed", "error"):
                found.append(("tool_result", state.get("output") or state.get("error", "")))
    return found
