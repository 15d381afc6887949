"""Session files of csmd's own: messages written, withdrawn and loaded by the daemon, the one process that writes them.

A tool runs on one reader's thread, so two appends never meet. What was appended is on the disk when the answer
is sent; the steward takes it in like any transcript.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csmd.capture import memdir, own, stage_place
from csmd.capture.own import EntryKind, Loaded
from csmd.daemon.now import now_iso
from csmd.daemon.tool import ASKING, REQUIRED, Params, Tool
from csmd.errors import BadInput, CsmdError
from csmd.store import files, sessions
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

Run = Callable[["Tools", Rows, Params], dict[str, Any]]


def _write(kind: EntryKind) -> Run:
    def run(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
        return _append(tools, rows, params, kind, params["text"], parent=params.get("parent", ""))

    return run


def _summarise(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    known = _loaded(tools, rows, params)
    asked = [name for name in params["replaces"].replace(",", " ").split() if name]
    names = asked or [message.uuid for message in known.messages]
    if not names:
        raise BadInput("there is nothing that a summary could stand for", hint="write messages first")
    _must_have(known, names, params["id"])
    return _append(tools, rows, params, "summary", params["text"], names=names)


def _tombstone(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    _must_have(_loaded(tools, rows, params), [params["uuid"]], params["id"])
    return {**_append(tools, rows, params, "tombstone", "", names=[params["uuid"]]), "tombstoned": params["uuid"]}


def _append(
    tools: Tools, rows: Rows, params: Params, kind: EntryKind, body: str, *, parent: str = "", names: Sequence[str] = ()
) -> dict[str, Any]:
    ident = files.check_session_id(params["id"])
    path = _path(tools, rows, params)
    known = sessions.by_id(rows, ident)
    if known is not None and known.path != str(path):
        raise CsmdError(f"{ident} is a session of the assistant, and only it writes that", hint="choose another name")
    if kind != "tombstone" and not body.strip():
        raise BadInput("there is nothing in that text to write")
    loaded = _loaded(tools, rows, params)
    if parent:
        _must_have(loaded, [parent], ident)
    elif loaded.messages:
        parent = loaded.messages[-1].uuid
    uuid = own.new_uuid()
    written = own.line(
        kind, body, uuid=uuid, session=ident, parent=parent, cwd=params.get("project") or _cwd(tools, ident),
        at=now_iso(), key=tools.store.hash_key, by_person=params.get("by_person", False), names=names,
    )  # fmt: skip
    files.append_lines(path, written)
    tools.steward.hint(str(path))
    return {"id": ident, "uuid": uuid, "parent": parent, "path": str(path)}


def _must_have(loaded: Loaded, names: Sequence[str], ident: str) -> None:
    for name in names:
        if not loaded.has(name):
            raise BadInput(f"{ident} has no message {name[:60]!r}", hint=f"`csmd session load {ident}` shows them")


def _found(tools: Tools, rows: Rows, params: Params) -> Path | None:
    """The session's file, None for none; BadInput for one behind a wall that who asks is not behind."""
    ident = files.check_session_id(params["id"])
    found = files.session_file(tools.config.paths.sessions, ident)
    inside = stage_place.wall(rows, _cwd(tools, ident)) if found else 0
    if inside and inside != stage_place.wall(rows, params[ASKING]):
        raise _no_file(ident)
    return found


def _no_file(ident: str) -> BadInput:
    return BadInput(
        f"csmd has no session file {ident!r}", hint="`csmd session transcript` shows the assistant's sessions"
    )


def _path(tools: Tools, rows: Rows, params: Params) -> Path:
    """The session's file, or where it will be: in the folder of the project it is begun in."""
    folder = memdir.folder_name(params.get("project") or "/")
    new = tools.config.paths.sessions / folder / f"{params['id']}{files.SESSION_SUFFIX}"
    return _found(tools, rows, params) or new


def _cwd(tools: Tools, ident: str) -> str:
    """The project that a session was begun in; "/" for one that was begun nowhere."""
    found = files.session_file(tools.config.paths.sessions, ident)
    return (found and own.begun_in(files.session_lines(found), session=ident)) or "/"


def _loaded(tools: Tools, rows: Rows, params: Params, *, texts: bool = False) -> Loaded:
    found = _found(tools, rows, params)
    lines = files.session_lines(found) if found else ()
    return own.load(lines, session=params["id"], key=tools.store.hash_key, texts=texts)


def _load(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if _found(tools, rows, params) is None:
        raise _no_file(params["id"])
    loaded = _loaded(tools, rows, params, texts=True)
    return {"id": params["id"], **asdict(loaded)}


def _where(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    path = _path(tools, rows, params)
    return {"id": params["id"], "path": str(path), "exists": path.is_file()}


_NEW: dict[str, tuple[type, Any]] = {
    "id": (str, REQUIRED),
    "text": (str, REQUIRED),
    "project": (str, ""),
    ASKING: (str, ""),
}

TOOLS: dict[str, Tool] = {
    "csm_session_write_user": Tool(
        summary="Write what the user says into a session of csmd's own", mutates=True, run=_write("user"),
        parameters={**_NEW, "parent": (str, ""), "by_person": (bool, False)},
    ),
    "csm_session_write_assistant": Tool(
        summary="Write what the assistant says into one", mutates=True, run=_write("assistant"),
        parameters={**_NEW, "parent": (str, "")},
    ),
    "csm_session_write_system": Tool(
        summary="Write a remark of neither into one", mutates=True, run=_write("system"),
        parameters={**_NEW, "parent": (str, "")},
    ),
    "csm_session_write_summary": Tool(
        summary="Let a summary stand for messages of one", mutates=True, run=_summarise,
        parameters={"id": (str, REQUIRED), "text": (str, REQUIRED), "replaces": (str, ""), ASKING: (str, "")},
    ),
    "csm_session_tombstone": Tool(
        summary="Withdraw a message of one", mutates=True, run=_tombstone,
        parameters={"id": (str, REQUIRED), "uuid": (str, REQUIRED), ASKING: (str, "")},
    ),
    "csm_session_load": Tool(
        summary="The messages of one, without what was withdrawn", mutates=False, run=_load,
        parameters={"id": (str, REQUIRED), ASKING: (str, "")},
    ),
    "csm_session_path": Tool(
        summary="Where the file of one is, or would be", mutates=False, run=_where,
        parameters={"id": (str, REQUIRED), "project": (str, ""), ASKING: (str, "")},
    ),
}  # fmt: skip
