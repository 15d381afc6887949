"""Tools on csmd's own session files, which other programs write through csmd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from uuid import uuid4

from csmd.capture import project_identity
from csmd.errors import BadInput, CsmdError
from csmd.hosts import csmd_sessions
from csmd.hosts.csmd_sessions import EntryKind, LoadedSession, Message
from csmd.paths import folder_name, is_file
from csmd.store import files, projects, sessions, tombstones
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, ToolContext, Tools
from csmd.tools.present import refuse_purged

TOOLS = Tools()


@TOOLS.add("csm_session_write_user", mutates=True)
def _write_user(
    ctx: ToolContext, rows: Rows, id_: str, text: str, project: str = "", asking: str = "", parent: str = "",
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Write what the user says into a session of csmd's own."""
    return _append_message(ctx, rows, id_, asking, "user", text, project=project, parent=parent, by_person=by_person)


@TOOLS.add("csm_session_write_assistant", mutates=True)
def _write_assistant(
    ctx: ToolContext, rows: Rows, id_: str, text: str, project: str = "", asking: str = "", parent: str = ""
) -> Json:
    """Write what the assistant says into a session of csmd's own."""
    return _append_message(ctx, rows, id_, asking, "assistant", text, project=project, parent=parent)


@TOOLS.add("csm_session_write_system", mutates=True)
def _write_system(
    ctx: ToolContext, rows: Rows, id_: str, text: str, project: str = "", asking: str = "", parent: str = ""
) -> Json:
    """Write a system message into a session of csmd's own."""
    return _append_message(ctx, rows, id_, asking, "system", text, project=project, parent=parent)


@TOOLS.add("csm_session_write_summary", mutates=True)
def _write_summary(ctx: ToolContext, rows: Rows, id_: str, text: str, replaces: str = "", asking: str = "") -> Json:
    """Replace messages of a session of csmd's own by a summary."""
    loaded = _load_session(ctx, rows, id_, asking)
    names = replaces.replace(",", " ").split() or [message.uuid for message in loaded.messages]
    if not names:
        raise BadInput("the session has no messages to summarise", hint="write messages first")
    _check_messages(loaded, names, id_)
    return _append_message(ctx, rows, id_, asking, "summary", text, uuids=names)


@TOOLS.add("csm_session_tombstone", mutates=True)
def _withdraw_message(ctx: ToolContext, rows: Rows, id_: str, uuid: str, asking: str = "") -> Json:
    """Withdraw a message of a session of csmd's own."""
    _check_messages(_load_session(ctx, rows, id_, asking), [uuid], id_)
    return {**_append_message(ctx, rows, id_, asking, "tombstone", "", uuids=[uuid]), "tombstoned": uuid}


def _append_message(
    ctx: ToolContext, rows: Rows, session_id: str, asking: str, kind: EntryKind, body: str, *, project: str = "",
    parent: str = "", by_person: bool = False, uuids: Sequence[str] = (),
) -> Json:  # fmt: skip
    files.check_session_id(session_id)
    marks = tombstones.purged_marks(rows, ctx.store.hash_key)
    for what, text in (("text", body), ("path", project), ("session's name", session_id)):
        refuse_purged(marks, text, what)
    path = _choose_path(ctx, rows, session_id, project, asking)
    session = sessions.by_id(rows, session_id)
    if session is not None and session.path != str(path):
        raise CsmdError(f"{session_id} is the assistant's session, which only it writes", hint="choose another name")
    if kind != "tombstone" and not body.strip():
        raise BadInput("the text is empty")
    loaded = _load_session(ctx, rows, session_id, asking)
    if parent:
        _check_messages(loaded, [parent], session_id)
    elif loaded.messages:
        parent = loaded.messages[-1].uuid
    message = Message(uuid=str(uuid4()), parent=parent, kind=kind, text=body, at=ctx.now(), by_person=by_person)
    cwd, key = project or _read_cwd(ctx, session_id), ctx.store.hash_key
    files.append_lines(path, csmd_sessions.encode_message(message, session=session_id, cwd=cwd, key=key, uuids=uuids))
    ctx.hint(str(path))
    return {"id": session_id, "uuid": message.uuid, "parent": parent, "path": str(path)}


def _check_messages(loaded: LoadedSession, uuids: Sequence[str], session_id: str) -> None:
    for name in uuids:
        if not loaded.has(name):
            hint = f"`csmd tool csm_session_load --param id={session_id}` shows them"
            raise BadInput(f"{session_id} has no message {name[:60]!r}", hint=hint)


def _find_file(ctx: ToolContext, rows: Rows, session_id: str, asking: str) -> Path | None:
    """Returns the session's file, None for none; BadInput if it is behind another wall than the caller."""
    files.check_session_id(session_id)
    path = files.find_session_file(ctx.config.paths.sessions, session_id)
    session = sessions.by_id(rows, session_id)  # the directory named in the file may be purged
    if session:
        walled = projects.everywhere_of(rows, session.project_seq)
    else:
        walled = project_identity.find_wall(rows, _read_cwd(ctx, session_id))
    inside = walled if path else 0
    if inside and inside != project_identity.find_wall(rows, asking):
        raise _no_file_error(session_id)
    return path


def _no_file_error(session_id: str) -> BadInput:
    hint = "`csmd session transcript` shows the assistant's sessions"
    return BadInput(f"csmd has no session file {session_id!r}", hint=hint)


def _choose_path(ctx: ToolContext, rows: Rows, session_id: str, project: str, asking: str) -> Path:
    """Returns the session's file, or its future path in the folder of the project in which it begins."""
    folder = ctx.config.paths.sessions / folder_name(project or "/")
    return _find_file(ctx, rows, session_id, asking) or folder / f"{session_id}{files.SESSION_SUFFIX}"


def _read_cwd(ctx: ToolContext, session_id: str) -> str:
    """Returns the project in which a session began; "/" if unknown."""
    path = files.find_session_file(ctx.config.paths.sessions, session_id)
    return (path and csmd_sessions.find_start_directory(files.read_session_lines(path), session=session_id)) or "/"


def _load_session(
    ctx: ToolContext, rows: Rows, session_id: str, asking: str, *, with_texts: bool = False
) -> LoadedSession:
    path = _find_file(ctx, rows, session_id, asking)
    lines = files.read_session_lines(path) if path else ()
    return csmd_sessions.load_session(lines, session=session_id, key=ctx.store.hash_key, with_texts=with_texts)


@TOOLS.add("csm_session_load")
def _load_messages(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Load the messages of a session of csmd's own, without withdrawn ones."""
    if _find_file(ctx, rows, id_, asking) is None:
        raise _no_file_error(id_)
    return {"id": id_, **asdict(_load_session(ctx, rows, id_, asking, with_texts=True))}


@TOOLS.add("csm_session_path")
def _show_path(ctx: ToolContext, rows: Rows, id_: str, project: str = "", asking: str = "") -> Json:
    """Show where the file of a session of csmd's own is, or would be."""
    path = _choose_path(ctx, rows, id_, project, asking)
    return {"id": id_, "path": str(path), "exists": is_file(path)}
