"""What the daemon can be asked: one table, of which the command line, `csmd tool` and MCP choose."""

from __future__ import annotations

import difflib

from csmd.errors import BadInput
from csmd.store.sqlite import Rows
from csmd.tools import (
    beliefs,
    compaction,
    dreams,
    maintenance,
    memories,
    open_list,
    projects,
    providers,
    retrieval,
    review,
    sessions,
    tags_and_links,
    team,
    work_history,
)
from csmd.tools.registry import Json, Tool, ToolContext


def _list_tools(ctx: ToolContext, rows: Rows) -> Json:
    return {
        "tools": [
            {"name": tool.name, "summary": tool.summary, "mutates": tool.mutates, "parameters": tool.schema()}
            for tool in TOOLS.values()
        ]
    }


def named(name: str) -> Tool:
    """The tool of this name; BadInput, with the names most like it, for one that there is not."""
    if name not in TOOLS:
        near = difflib.get_close_matches(name[:60], TOOLS, n=2) or [tool for tool in TOOLS if name and name in tool][:3]
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise BadInput(
            f"unknown tool {name[:60]!r}{meant}", hint="`csmd tool list` shows them; after an upgrade `csmd restart`"
        )
    return TOOLS[name]


#: By name, in the order that `csmd tool list` shows them.
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        *retrieval.SEARCH,
        *memories.MEMORIES,
        *beliefs.UPKEEP,
        *memories.SUPERSEDE,
        *tags_and_links.TOOLS,
        *beliefs.HABITS,
        *memories.SHOW,
        *review.TOOLS,
        *sessions.SESSIONS,
        *work_history.DAYS,
        *work_history.SELF_MODEL,
        *sessions.CHECKPOINTS,
        *open_list.OPEN,
        *dreams.TOOLS,
        *work_history.LIVING_STATE,
        *projects.TOOLS,
        *providers.TOOLS,
        *team.TOOLS,
        *retrieval.CONTEXT,
        *maintenance.TASKS,
        *retrieval.RECEIPTS,
        *compaction.TOOLS,
        *work_history.ERRORS,
        *maintenance.STATE,
        *retrieval.QUESTIONS,
        Tool("csm_tools", "List what can be asked", _list_tools),
    )
}
