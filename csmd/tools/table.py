"""What the daemon can be asked, one registry: name, summary, parameters, whether it changes anything.

The command line, `csmd tool` and later MCP all read TOOLS; nobody lists tools twice. A tool runs
on a reader's thread: it may wait for the writer or the worker, never for the steward.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

from csmd.daemon.steward import Steward
from csmd.errors import BadInput
from csmd.store.core import Lane, whole
from csmd.store.sqlite import Rows
from csmd.tools import beliefs, dreams, graph, insight, memories, operations, projects, retrieval, sessions
from csmd.tools.registry import Params, Tool, ToolContext, checked


class Tools:
    """The registry bound to a running daemon's parts."""

    def __init__(self, steward: Steward, status: Callable[[Rows], Any]) -> None:
        self.given = ToolContext(
            context=steward.context, dreaming=steward.dreaming, edited=steward.edited,
            alarms=steward.alarms, status=status,
        )  # fmt: skip

    def lane(self, name: str) -> Lane | None:
        """The reader a tool runs on, None when it needs none; BadInput for an unknown tool."""
        return _tool(name).lane

    def call(self, rows: Rows | None, name: str, params: Params) -> Any:
        """Runs a tool (`rows` None for one without a lane); BadInput names an unknown or wrong parameter."""
        return whole(self.answering(rows, name, params))

    def answering(self, rows: Rows | None, name: str, params: Params) -> Generator[None, None, Any]:
        """Runs one in steps, where its answer takes long: each may have a transaction of its own."""
        tool = _tool(name)
        given, began = checked(name, tool, params), time.monotonic()
        result = tool.run(self.given, rows, given)
        if isinstance(result, Generator):
            result = yield from result
        self.given.context.noted.answered(name, given, result, time.monotonic() - began)
        return result


def _tool(name: str) -> Tool:
    if name not in TOOLS:
        raise BadInput(f"unknown tool {name[:60]!r}", hint="see `csmd tool list`; after an upgrade `csmd restart`")
    return TOOLS[name]


def _list_tools(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return {"tools": [{"name": name, "summary": tool.summary, "mutates": tool.mutates} for name, tool in TOOLS.items()]}


#: In the order that `csmd tool list` shows them.
TOOLS: dict[str, Tool] = {
    **retrieval.SEARCHING_TOOLS,
    **memories.MEMORY_TOOLS,
    **beliefs.BELIEFS_TOOLS,
    **memories.SUPERSEDING_TOOLS,
    **graph.TOOLS,
    **beliefs.HABITS_TOOLS,
    **memories.SHOWING_TOOLS,
    **beliefs.REVIEW_TOOLS,
    **sessions.SESSIONS_TOOLS,
    **sessions.SESSION_FILES_TOOLS,
    **insight.SELF_MODEL_TOOLS,
    **sessions.CHECKPOINTS_TOOLS,
    **sessions.GOALS_TOOLS,
    **dreams.TOOLS,
    **insight.LIVING_STATE_TOOLS,
    **projects.TOOLS,
    **retrieval.INSTRUCTIONS_TOOLS,
    **retrieval.FILLING_TOOLS,
    **operations.WORK_TOOLS,
    **operations.PRIVACY_TOOLS,
    **operations.UPKEEP_TOOLS,
    **retrieval.RECEIPTS_TOOLS,
    **retrieval.NOTED_TOOLS,
    **insight.ERRORS_TOOLS,
    **operations.STATE_TOOLS,
    **operations.PROBE_TOOLS,
    **operations.LOOKING_ON_TOOLS,
    "csm_tools": Tool(summary="List what can be asked", mutates=False, run=_list_tools, parameters={}),
}
