"""What leaves for good, and what is looked for: purges, lifting them, scans for secrets."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from csmd.capture import stage_place
from csmd.daemon.jobs import Job
from csmd.daemon.tool import ASKING, REQUIRED, Params, Tool
from csmd.errors import CsmdError
from csmd.recall import stage as recall
from csmd.store import projects, purge, workspaces
from csmd.store.purge import Plan
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _plan(tools: Tools, rows: Rows, params: Params) -> Plan:
    typed = str(params["what"])
    place = _project_key(rows, typed) if typed.startswith("/") else ""
    return purge.resolve_plan(rows, typed, key=tools.store.hash_key, kind=params["kind"], project_key=place)


def _project_key(rows: Rows, path: str) -> str:
    """The key of the project that is shown with a path, else of the one it counts to; its own where neither is known."""
    shown = workspaces.at_path(rows, path)
    seq = stage_place.known(rows, path) if shown is None else shown
    return stage_place.identify(path).key if seq is None else projects.key_of(rows, seq)


def _by_person(params: Params, verb: str) -> None:
    if not params["by_person"]:
        raise CsmdError(f"only a person at a terminal can {verb}", hint="type it in a terminal")


def _purge(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["dry_run"]:
        _by_person(params, "have csmd purge something")
    seen = None if params["by_person"] else recall.seen(rows, asking=params[ASKING])  # a wall hides its projects' names
    order = {"plan": _plan(tools, rows, params), "dry_run": params["dry_run"], "seen": seen}
    return {"job": tools.steward.submit(Job(id=secrets.token_hex(8), kind="purge", order=order)).id}


def _lift(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    _by_person(params, "let in again what was purged")
    plan = _plan(tools, rows, params)
    gone = tools.store.write(lambda writing: purge.lift_purge(writing, plan, key=tools.store.hash_key))
    return {"what": plan.what, "about": plan.about, "lifted": gone}


def _scan(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if params["fix"]:
        _by_person(params, "have csmd change what it holds")  # copies of the database go, and that cannot be undone
    order = {"fix": params["fix"], "transcripts": params["transcripts"]}
    return {"job": tools.steward.submit(Job(id=secrets.token_hex(8), kind="scan", order=order)).id}


TOOLS: dict[str, Tool] = {
    "csm_privacy_purge": Tool(
        summary="Remove something from everything csmd holds; gives a job", mutates=True, run=_purge,
        parameters={"what": (str, REQUIRED), "kind": (str, ""), "dry_run": (bool, False), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_privacy_lift": Tool(
        summary="Let in again what was purged", mutates=True, run=_lift,
        parameters={"what": (str, REQUIRED), "kind": (str, ""), "by_person": (bool, False)},
    ),
    "csm_privacy_scan": Tool(
        summary="Look for secrets in what csmd holds; gives a job", mutates=True, run=_scan,
        parameters={"fix": (bool, False), "transcripts": (bool, False), "by_person": (bool, False)},
    ),
}  # fmt: skip
