"""What the daemon can be asked: one table for the command line, `csmd tool` and MCP."""

from __future__ import annotations

from csmd.errors import BadInput
from csmd.store.sqlite import Rows
from csmd.tools import beliefs, dreams, graph, insight, memories, operations, projects, retrieval, sessions
from csmd.tools.registry import Json, Tool, ToolContext


def _list_tools(ctx: ToolContext, rows: Rows) -> Json:
    return {"tools": [{"name": tool.name, "summary": tool.summary, "mutates": tool.mutates} for tool in TOOLS.values()]}


def named(name: str) -> Tool:
    """The tool of this name; BadInput for one that there is not."""
    if name not in TOOLS:
        raise BadInput(f"unknown tool {name[:60]!r}", hint="see `csmd tool list`; after an upgrade `csmd restart`")
    return TOOLS[name]


#: By name, in the order that `csmd tool list` shows them.
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        *retrieval.SEARCHING_TOOLS,
        *memories.MEMORY_TOOLS,
        *beliefs.UPKEEP_TOOLS,
        *memories.SUPERSEDING_TOOLS,
        *graph.TOOLS,
        *beliefs.HABITS_TOOLS,
        *memories.SHOWING_TOOLS,
        *beliefs.REVIEW_TOOLS,
        *sessions.SESSIONS_TOOLS,
        *sessions.SESSION_FILES_TOOLS,
        *insight.SELF_MODEL_TOOLS,
        *sessions.CHECKPOINTS_TOOLS,
        *sessions.GOALS_TOOLS,
        *dreams.TOOLS,
        *insight.LIVING_STATE_TOOLS,
        *projects.TOOLS,
        *retrieval.INSTRUCTIONS_TOOLS,
        *retrieval.FILLING_TOOLS,
        *operations.WORK_TOOLS,
        *operations.PRIVACY_TOOLS,
        *operations.UPKEEP_TOOLS,
        *retrieval.RECEIPTS_TOOLS,
        *retrieval.NOTED_TOOLS,
        *insight.ERRORS_TOOLS,
        *operations.STATE_TOOLS,
        *operations.PROBE_TOOLS,
        *operations.LOOKING_ON_TOOLS,
        Tool("csm_tools", "List what can be asked", _list_tools),
    )
}
