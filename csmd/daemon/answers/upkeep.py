"""What keeps the database safe: backups made when asked, and the list of them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from csmd.daemon import backups
from csmd.daemon.jobs import Job
from csmd.daemon.tool import Params, Tool

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _make(tools: Tools, rows: None, params: Params) -> dict[str, Any]:
    job = tools.steward.submit(Job(id=secrets.token_hex(8), kind="backup", path=params["path"]))
    return {"job": job.id}


def _list(tools: Tools, rows: None, params: Params) -> dict[str, Any]:
    return {"backups": backups.listing(tools.config.paths.database)}


TOOLS: dict[str, Tool] = {
    "csm_backup_make": Tool(
        summary="Copy the database to a file; gives a job", mutates=True, run=_make, parameters={"path": (str, "")}, lane=None
    ),
    "csm_backup_list": Tool(summary="List the backups", mutates=False, run=_list, parameters={}, lane=None),
}  # fmt: skip
