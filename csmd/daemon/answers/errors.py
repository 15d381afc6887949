"""What failed in a project, how often, and what mended it last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.daemon.tool import PLACE, Params, Tool, places
from csmd.store import gotchas, memories
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

MOST = 200


def _list(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    found = gotchas.listing(rows, places(rows, params), limit=min(max(params["limit"], 1), MOST))
    return {"errors": [_shown(rows, one) for one in found]}


def _shown(rows: Rows, one: gotchas.Seen) -> dict[str, Any]:
    memory = memories.by_id(rows, one.memory_id) if one.memory_id else None
    return {
        "fingerprint": one.fingerprint,
        "command": one.command,
        "exit_code": one.exit_code,
        "message": one.message,
        "times": one.times,
        "sessions": one.sessions,
        "first_at": one.first_at,
        "last_at": one.last_at,
        "fixed_at": one.fixed_at,
        "fixed_files": list(one.fixed_files),
        "fixed_by": one.fixed_by,
        "fixed_uuid": one.fixed_uuid,
        "memory_id": one.memory_id,
        "memory": memory.text if memory else "",
    }


TOOLS: dict[str, Tool] = {
    "csm_error_list": Tool(
        summary="List what failed, how often, and what mended it", mutates=False, run=_list,
        parameters={**PLACE, "limit": (int, 20)},
    ),
}  # fmt: skip
