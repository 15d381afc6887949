"""The table of all tools that the daemon serves, by name.

A new tool is a function declared with `@TOOLS.add(name)` in the module of its subject; a new module gets a row here.
Models see a tool only if a group in `csmd.mcp.served_tools` lists it.
"""

from __future__ import annotations

import difflib

from csmd.errors import BadInput
from csmd.store.sqlite import Rows
from csmd.tools import (
    beliefs,
    checkpoints,
    compaction,
    dreams,
    feed,
    goals,
    injections,
    instructions,
    live_sessions,
    maintenance,
    memories,
    memory_details,
    projects,
    providers,
    questions,
    receipts,
    review,
    search,
    session_files,
    sessions,
    status,
    tags_and_links,
    team,
    telemetry,
    work_history,
)
from csmd.tools.declaration import Json, Tool, ToolContext


def _list_tools(ctx: ToolContext, rows: Rows) -> Json:
    return {
        "tools": [
            {"name": tool.name, "summary": tool.summary, "mutates": tool.mutates, "parameters": tool.schema()}
            for tool in TOOLS.values()
        ]
    }  # fmt: skip


def find_tool(name: str) -> Tool:
    """Returns the tool of this name; BadInput with similar names if there is none."""
    if name not in TOOLS:
        similar = difflib.get_close_matches(name[:60], TOOLS, n=2)
        similar = similar or [tool for tool in TOOLS if name and name in tool][:3]
        meant = f"; did you mean {' or '.join(similar)}?" if similar else ""
        hint = "`csmd tool list` shows them; after an upgrade `csmd restart`"
        raise BadInput(f"unknown tool {name[:60]!r}{meant}", hint=hint)
    return TOOLS[name]


#: The modules with tools, in the order that `csmd tool list` shows.
MODULES = (
    search, memories, memory_details, injections, beliefs, tags_and_links, review, sessions, session_files, work_history,
    checkpoints, goals, dreams, projects, providers, team, instructions, maintenance, receipts, telemetry, live_sessions,
    compaction, status, feed, questions,
)  # fmt: skip
TOOLS: dict[str, Tool] = {tool.name: tool for module in MODULES for tool in module.TOOLS}
TOOLS["csm_tools"] = Tool("csm_tools", "List all tools", _list_tools)
