"""Projects: listed, named, merged, split and walled in.

What changes which facts are seen where needs a person at a terminal: an assistant lowers no wall.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from csmd.capture import project_identity
from csmd.daemon.clock import now_iso
from csmd.errors import BadInput, CsmdError
from csmd.store import disk, projects, workspaces
from csmd.store.projects import Moved
from csmd.store.sqlite import Rows
from csmd.store.workspaces import Listed
from csmd.tools.registry import REQUIRED, Params, Tool, ToolContext

#: Who asks must be a person at a terminal.
PERSON: dict[str, tuple[type, Any]] = {"by_person": (bool, False)}
NAME_LIMIT = 60


class _Rehearsed(Exception):
    def __init__(self, moved: Moved) -> None:
        super().__init__("rehearsed")
        self.moved = moved


def _list(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return {
        "projects": [_shown(row) for row in workspaces.listing(rows)],
        "workspaces": [
            {"name": name, "projects": amount, "memories": believed}
            for name, amount, believed in workspaces.workspaces_listed(rows)
        ],
    }


def _shown(row: Listed) -> dict[str, Any]:
    shown = {key: value for key, value in asdict(row).items() if key not in ("seq", "last_at", "other_places")}
    return {
        **shown,
        "merged": list(row.merged),
        "last": row.last_at,
        "gone": disk.is_gone(row.root),
        "off": disk.is_off(row.root),
        "aliases": [{"path": path, "why": why} for path, why in row.other_places],
    }


def _alias(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _need_person(params, f"csmd project alias {params['place']}")
    place = project_identity.identified(_path(params["place"]))

    def write(writing: Rows) -> dict[str, Any]:
        if params["remove"]:
            if not projects.remove_alias(writing, place.key):
                raise BadInput(f"{place.root} is no alias that you named", hint="`csmd project list` shows them")
            return {"path": place.root, "project": "", "removed": True}
        if not params["other"]:
            raise BadInput("which project does it count to?", hint="csmd project alias PATH OTHER")
        own = projects.seq_of(writing, place)
        target = _project(writing, params["other"])
        if own is not None and own != target:
            raise BadInput(
                f"{place.root} is a project already, and an alias would leave behind what is in it",
                hint=f"csmd project merge '{place.root}' '{workspaces.root_of(writing, target)}'",
            )
        if own is None:
            projects.add_alias(writing, place.key, target, path=place.root, why="named", now=now_iso())
        return {"path": place.root, "project": workspaces.root_of(writing, target), "removed": False}

    return tools.store.write(write)


def _merge(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _need_person(params, f"csmd project merge {params['source']} {params['into']}")

    def write(writing: Rows) -> Moved:
        source, into = _project(writing, params["source"]), _project(writing, params["into"])
        if source == into:
            raise BadInput(f"{params['source']} and {params['into']} are one project already")
        if projects.everywhere(writing, source) != projects.everywhere(writing, into):
            raise BadInput(
                f"a wall is between {params['source']} and {params['into']}: they are in different workspaces",
                hint="take the wall away first: csmd project workspace NAME PATH --remove",
            )
        return _done(params, projects.merge_projects(writing, source, into))

    return _moved(tools, params, write)


def _split(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _need_person(params, f"csmd project split {params['whole']} {params['place']}")
    path = _path(params["place"])
    place = project_identity.identified(path).place

    def write(writing: Rows) -> Moved:
        whole = _project(writing, params["whole"])
        known = workspaces.at_path(writing, path) or workspaces.at_path(writing, place)
        if known is not None and known != whole:
            if workspaces.merged_into(writing, known) != whole:
                raise BadInput(f"{path} is not in {params['whole']}: it is a project of its own, or merged elsewhere")
            workspaces.same_wall(writing, known, as_that_of=whole)
            return _done(params, projects.split_projects(writing, whole, known))
        root = workspaces.root_of(writing, whole)
        if place == root or not root:
            raise BadInput(f"{path} is all of {params['whole']}", hint="name a directory in it, or one merged into it")
        key = hashlib.sha256(f"part:{whole}:{place}".encode()).hexdigest()[:16]
        name = PurePosixPath(place).name
        part = workspaces.add_part(writing, key=key, root=place, name=name, whole=whole, now=now_iso())
        moved = projects.split_projects(writing, whole, part)
        if not moved.turns:
            raise BadInput(
                f"nothing of {params['whole']} was said below {place}", hint="`csmd project list` shows what is where"
            )
        return _done(params, moved)

    return _moved(tools, params, write)


def _done(params: Params, moved: Moved) -> Moved:
    if params["dry_run"]:
        raise _Rehearsed(moved)
    return moved


def _moved(tools: ToolContext, params: Params, write: Any) -> dict[str, Any]:
    try:
        moved = tools.store.write(write)
    except _Rehearsed as rehearsal:
        moved = rehearsal.moved
    return {**asdict(moved), "dry_run": params["dry_run"]}


def _workspace(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    name, places = params["name"], [place for place in params["places"].split("\n") if place]
    _need_person(params, f"csmd project workspace {name} PATH...")
    if not name.strip() or len(name) > NAME_LIMIT or not name.isprintable():
        raise BadInput(f"{name[:NAME_LIMIT]!r} is no name for a workspace", hint=f"at most {NAME_LIMIT} characters")
    if not places:
        raise BadInput("which projects?", hint=f"csmd project workspace {name} PATH...")

    def write(writing: Rows) -> dict[str, Any]:
        if params["remove"]:
            return _leave(writing, name, places, key=tools.store.hash_key)
        workspace = workspaces.ensure(writing, name, now=now_iso())
        brought, roots = 0, []
        for place in places:
            project = _project(writing, place, make=True)
            there = projects.everywhere(writing, project)
            root = workspaces.root_of(writing, project)
            if there not in (0, workspace):
                other = projects.name_of(writing, there)
                raise BadInput(
                    f"{root} is in the workspace {other}",
                    hint=f"take it out first: csmd project workspace {other} '{root}' --remove",
                )
            for one in (project, *workspaces.open_below(writing, root)):
                brought += workspaces.join(writing, workspace, one)
                roots.append(workspaces.root_of(writing, one))
        return {"workspace": name, "projects": list(dict.fromkeys(roots)), "memories": brought, "removed": False}

    return tools.store.write(write)


def _leave(rows: Rows, name: str, places: list[str], *, key: bytes) -> dict[str, Any]:
    workspace = workspaces.named(rows, name)
    roots = []
    for place in places:
        project = _project(rows, place)
        root = workspaces.root_of(rows, project)
        if workspace is None or projects.everywhere(rows, project) != workspace:
            raise BadInput(f"{root} is not in the workspace {name}", hint="`csmd project list` shows who is")
        workspaces.leave(rows, project, key=key)
        roots.append(root)
    return {"workspace": name, "projects": roots, "memories": 0, "removed": True}


def _need_person(params: Params, command: str) -> None:
    if not params["by_person"]:
        raise CsmdError(
            "what is seen where is changed by a person at a terminal only", hint=f"type `{command}` in a terminal"
        )


def _path(place: str) -> str:
    if not place.startswith("/"):
        raise BadInput(f"{place!r} is not an absolute path", hint="begin it with /")
    return place


def _project(rows: Rows, word: str, *, make: bool = False) -> int:
    """The project that a path, an id or a name stands for; with `make` a directory that nothing was said in yet too."""
    if word.startswith("/"):
        seq = project_identity.known(rows, word)
        if seq is None and make:
            seq = projects.settle(
                rows, project_identity.entering(rows, project_identity.identified(word)), now=now_iso()
            ).seq
        if seq is None:
            raise BadInput(f"nothing was said in {word} yet", hint="`csmd project list` lists the projects")
        return seq
    found = workspaces.matching(rows, word)
    live = [row for row in found if not workspaces.merged_into(rows, row[0])] or found
    if len(live) != 1:
        many = ", ".join(root for _, root in live)
        raise BadInput(
            f"{word!r} is {f'the name of several projects: {many}' if many else 'no project'}",
            hint="`csmd project list` lists them with their ids",
        )
    into = workspaces.merged_into(rows, live[0][0])
    if into:
        raise BadInput(f"{live[0][1]} was merged into {workspaces.root_of(rows, into)}", hint="name that one")
    return live[0][0]


TOOLS: dict[str, Tool] = {
    "csm_project_list": Tool(summary="List projects and workspaces", mutates=False, run=_list, parameters={}),
    "csm_project_alias": Tool(
        summary="Have a directory count to a project", mutates=True, run=_alias,
        parameters={"place": (str, REQUIRED), "other": (str, ""), "remove": (bool, False), **PERSON},
    ),
    "csm_project_merge": Tool(
        summary="Bring all of a project into another", mutates=True, run=_merge,
        parameters={"source": (str, REQUIRED), "into": (str, REQUIRED), "dry_run": (bool, False), **PERSON},
    ),
    "csm_project_split": Tool(
        summary="Take a directory out of a project", mutates=True, run=_split,
        parameters={"whole": (str, REQUIRED), "place": (str, REQUIRED), "dry_run": (bool, False), **PERSON},
    ),
    "csm_project_workspace": Tool(
        summary="Put projects behind a wall, or take them out", mutates=True, run=_workspace,
        parameters={"name": (str, REQUIRED), "places": (str, REQUIRED), "remove": (bool, False), **PERSON},
    ),
}  # fmt: skip
