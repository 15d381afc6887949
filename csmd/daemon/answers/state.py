"""What csmd says of itself: its state, whether its store is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.daemon import clients, summary
from csmd.daemon import status as state
from csmd.daemon.now import now_iso
from csmd.daemon.tool import Params, Tool
from csmd.store import integrity
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _check(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["indexes"]:
        return {"problems": integrity.structure(rows) or integrity.content(rows)}
    # FTS5's own check is a statement that writes nothing but wants the writer.
    return {"problems": tools.store.write(integrity.integrity)}


def _shape(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    return integrity.shape(rows)


def _status(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    result: dict[str, Any] = tools.status(rows)
    return result


def _clients(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    return clients.told(rows, tools.config)


def _alarms(tools: Tools, rows: None, params: Params) -> dict[str, Any]:
    return {"alarms": tools.steward.alarms.shown()}


def _pauses(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    summary.look_at(tools.steward.pauses)
    return {"paused": state.paused(tools.steward.pauses(), now_iso())}


TOOLS: dict[str, Tool] = {
    "csm_clients": Tool(
        summary="Which versions and directories of the assistant are in use", mutates=False, run=_clients, parameters={}
    ),
    "csm_store_check": Tool(summary="Check that the database is sound", mutates=False, run=_check, parameters={"indexes": (bool, True)}),
    "csm_store_shape": Tool(
        summary="The database without its content: tables, how many rows, SQLite's settings", mutates=False, run=_shape, parameters={}
    ),
    "csm_runtime_pause": Tool(
        summary="Whether csmd is paused; read anew from its file", mutates=False, run=_pauses, parameters={}, lane="status"
    ),
    "csm_runtime_status": Tool(summary="The daemon's state", mutates=False, run=_status, parameters={}, lane="status"),
    "csm_runtime_alarms": Tool(summary="What means that nothing is being remembered", mutates=False, run=_alarms, parameters={}, lane=None),
}  # fmt: skip
