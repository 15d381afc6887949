"""Instruction files and the assistant's own memory, as they stand on the disk now."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csmd import text
from csmd.capture import include, instructions, stage_instructions
from csmd.daemon.instructed import user_of
from csmd.daemon.tool import ASKING, REQUIRED, Params, Tool, places
from csmd.errors import BadInput
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _build(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if params["mode"] not in ("host", "seed"):
        raise BadInput(f"mode is host or seed, not {params['mode']!r}")
    user = user_of(tools.config)
    place, disk = stage_instructions.place_of(_directory(rows, params), user), stage_instructions.disk()
    loaded = instructions.loaded(place, disk)
    problems: list[str] = []
    if params["mode"] == "host":
        files: list[tuple[str, str, str]] = [(one.kind, one.path, one.content) for one in loaded]
        body = instructions.build(loaded)
    else:
        files, problems = include.merged(place, disk)
        files += [("memory", one.path, one.content) for one in loaded if one.kind == "AutoMem"]
        body = "\n\n".join(content for *_, content in files)
    return {
        "project": place.start,
        "mode": params["mode"],
        "text": body,
        "tokens": text.estimate_tokens(body),
        "files": [
            {"scope": scope.lower(), "path": path, "tokens": text.estimate_tokens(content)}
            for scope, path, content in files
        ],
        "problems": problems,
    }


def _scan(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    folder = stage_instructions.memory_folder(_directory(rows, params), user_of(tools.config))
    return {"folder": str(folder), "files": [asdict(memo) for memo in stage_instructions.scan(folder)]}


def _load(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    folder = stage_instructions.memory_folder(_directory(rows, params), user_of(tools.config))
    return {
        "folder": str(folder),
        "file": params["file"],
        "text": stage_instructions.load_memo(folder, params["file"]),
    }


def _directory(rows: Rows, params: Params) -> str:
    if not Path(params["project"]).is_dir():
        raise BadInput(f"{params['project']}: there is no such directory", hint="name one that is on this machine")
    places(rows, params)  # a wall holds for files as well
    return str(params["project"])


_PLACE: dict[str, tuple[type, Any]] = {"project": (str, REQUIRED), ASKING: (str, "")}
TOOLS: dict[str, Tool] = {
    "csm_context_build": Tool(
        summary="The instructions a session there is given", mutates=False, run=_build,
        parameters={**_PLACE, "mode": (str, "host")},
    ),
    "csm_memdir_scan": Tool(
        summary="The files of the assistant's own memory", mutates=False, run=_scan, parameters={**_PLACE}
    ),
    "csm_memdir_load": Tool(
        summary="One file of the assistant's own memory", mutates=False, run=_load,
        parameters={**_PLACE, "file": (str, REQUIRED)},
    ),
}  # fmt: skip
