"""What csmd says of itself: its state, its receipts, whether its store is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.daemon import status as state
from csmd.daemon import summary
from csmd.daemon.now import now_iso
from csmd.daemon.tool import Params, Tool
from csmd.store import context, core
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _receipts(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    names = ("id", "session_id", "event", "at", "tokens", "items")
    found = context.receipts(rows, limit=min(max(params["limit"], 1), 1000))
    return {"receipts": [dict(zip(names, row, strict=True)) for row in found]}


def _check(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    # FTS5's own check is a statement that writes nothing but wants the writer.
    return {"problems": tools.store.write(core.integrity)}


def _status(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    result: dict[str, Any] = tools.status(rows)
    return result


def _pauses(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    summary.look_at(tools.steward.pauses)
    return {"paused": state.paused(tools.steward.pauses(), now_iso())}


TOOLS: dict[str, Tool] = {
    "csm_receipts": Tool(
        summary="What was injected, when and into which session", mutates=False, run=_receipts, parameters={"limit": (int, 20)}
    ),
    "csm_store_check": Tool(summary="Check that the database is sound", mutates=False, run=_check, parameters={}),
    "csm_runtime_pause": Tool(
        summary="Whether csmd is paused; read anew from its file", mutates=False, run=_pauses, parameters={}, lane="status"
    ),
    "csm_runtime_status": Tool(summary="The daemon's state", mutates=False, run=_status, parameters={}, lane="status"),
}  # fmt: skip
