"""Conversations, csmd's own session files, checkpoints and goals."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from csmd.capture import project_identity
from csmd.capture import purged_words as purging
from csmd.daemon.clock import now_iso
from csmd.errors import BadInput, CsmdError
from csmd.hosts import own
from csmd.hosts.claude import environment, export
from csmd.hosts.own import EntryKind, Loaded
from csmd.model import Brief, SaidTurn
from csmd.privacy.redaction import redact
from csmd.recall import checkpoint
from csmd.recall import visibility as recall
from csmd.store import checkpoints, digests, files, projects, search, sessions, tombstones
from csmd.store.checkpoints import Goal, Row
from csmd.store.sessions import Session
from csmd.store.sqlite import Rows, ids_like
from csmd.text import display
from csmd.tools import memories
from csmd.tools.registry import ASKING, PLACE, REQUIRED, Params, Tool, ToolContext, meant, places


def _list(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    limit = min(max(params["limit"], 1), 1000)
    found = sessions.listing(rows, projects=places(rows, params), limit=limit)
    return {"sessions": [_session_json(session) for session in found]}


def _session_json(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "project": session.project,
        "title": session.title,
        "about": session.title or display.cut(display.squeeze(session.opening), 120),
        "turns": session.turns,
        "started_at": session.started_at,
        "last_at": session.last_at,
        "transcript": transcript_state(session.path if session.is_read else ""),
    }


def transcript_state(path: str) -> str:
    """`there`, `gone` when the host has deleted it, or `none` when no line of one was ever read; looks at the disk."""
    if not path:
        return "none"
    return "there" if Path(path).exists() else "gone"


def one(rows: Rows, params: Params) -> Session:
    """A session by its id or the beginning of it; BadInput when none that may be seen, or several, begin so."""
    ident = params["id"]
    session = sessions.by_id(rows, meant(ident, sessions.ids_like(rows, ident) if ident else []))
    if session is None or not recall.is_seen(rows, session.project_seq, asking=params[ASKING]):
        raise BadInput(f"there is no session {ident!r}", hint="`csmd session list` shows them with their ids")
    return session


def _show(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    session = one(rows, params)
    seen = recall.seen(rows, asking=params[ASKING])  # a session that wandered was behind a wall for a while
    return {
        **_session_json(session),
        "path": session.path,
        "cwd": session.cwd,
        "parent": session.parent,
        "host": session.host,
        "own": Path(session.path).is_relative_to(tools.config.paths.sessions) if session.path else False,
        "model": session.model,
        "version": session.version,
        "kinds": sessions.kinds(rows, session.seq, projects=seen),
        "agents": [
            {"id": agent.id, "turns": agent.turns, "started_at": agent.started_at, "model": agent.model}
            for agent in sessions.agents(rows, session.id, projects=seen)
        ],
        "usage": _usage(rows, session),
        "digest": _last_digest(rows, session.seq),
        "statements": [
            dict(zip(("text", "gate", "authority", "at"), row, strict=True))
            for row in sessions.statements(rows, session.seq, projects=seen)
        ],
        "memories": [
            dict(zip(("id", "text", "role"), row, strict=True))
            for row in sessions.memories_of(rows, session.id, projects=seen)
        ],
        "injections": [
            dict(zip(("id", "event", "at", "tokens", "items"), row, strict=True))
            for row in sessions.told(rows, session.id)
        ],
    }


def _usage(rows: Rows, session: Session) -> dict[str, Any]:
    """What a session took by its transcript, each message once; its sub-agents' and csmd's own apart."""
    times, tokens = sessions.tokens_injected(rows, session.id)
    return {
        **asdict(sessions.usage_of(rows, session.seq)),
        "context": session.context,
        "agents": asdict(sessions.usage_of_agents(rows, session.id)),
        "csmd": {"injections": times, "tokens": tokens},
    }


def _rollover(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    session = one(rows, params)
    return {"id": session.id, "project": session.project, "last_at": session.last_at, **_usage(rows, session)}


def _last_digest(rows: Rows, session_seq: int) -> str:
    found = digests.of_session(rows, session_seq)
    return found[-1].text if found else ""


def _turn(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    found = search.turns_like(rows, params["id"]) if params["id"] else []
    lines = {uuid.partition("/")[0] for _, uuid in found}  # a line with several parts is one to who types its beginning
    if len(lines) > 1 and params["id"] not in lines:
        raise BadInput(f"{params['id']!r} begins several ids: {', '.join(sorted(lines))}", hint="type some more of it")
    exact = [seq for seq, uuid in found if uuid == params["id"]] or [seq for seq, _ in found]
    turn = search.turns_by_seq(rows, exact[:1]).get(exact[0]) if exact else None
    if turn is None or not recall.is_seen(rows, turn.project_seq, asking=params[ASKING]):
        raise BadInput(
            f"there is no memory and no turn {params['id']!r}", hint="`csmd memories` and `csmd search` show their ids"
        )
    return {
        "id": turn.uuid, "kind": turn.kind, "at": turn.at, "text": turn.text, "session_id": turn.session_id,
        "project": turn.project, **memories.turn_around(rows, turn, asking=params[ASKING]),
    }  # fmt: skip


def _conversation(rows: Rows, session: Session, params: Params) -> list[SaidTurn]:
    return sessions.conversation(rows, session.seq, projects=recall.seen(rows, asking=params[ASKING]))


def _transcript(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    session = one(rows, params)
    turns = [_turn_json(turn) for turn in _conversation(rows, session, params)]
    return {**_session_json(session), "conversation": turns}


def _turn_json(turn: SaidTurn) -> dict[str, Any]:
    return {
        "uuid": turn.uuid,
        "kind": turn.kind,
        "at": turn.at,
        "text": turn.text,
        "tool": turn.tool_name,
        "dropped_bytes": turn.dropped,
    }


def _export(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    session = one(rows, params)
    if session.parent:
        raise CsmdError(
            f"{session.id} is a sub-agent's conversation, and the assistant resumes only its own",
            hint=f"csmd session export {session.parent}; `csmd session transcript {session.id}` shows this one",
        )
    made = export.export(
        _conversation(rows, session, params),
        session_id=session.id,
        cwd=session.cwd or session.project,
        version=session.version,
        model=session.model,
        title=session.title,
    )
    if not any('"message"' in line for line in made.lines):
        raise CsmdError(f"nothing of {session.id} is stored that could be resumed")
    cwd = session.cwd or session.project
    return {
        "id": session.id,
        "session_id": made.session_id,
        "place": f"projects/{environment.folder_name(cwd)}/{made.session_id}.jsonl",
        "resume": f"cd {shlex.quote(cwd)} && claude --resume {made.session_id}",
        "left_out": made.left_out,
        "transcript": transcript_state(session.path),
        "lines": list(made.lines),
    }


_ONE = {"id": (str, REQUIRED), ASKING: (str, "")}
SESSIONS_TOOLS: dict[str, Tool] = {
    "csm_session_list": Tool(
        summary="List sessions, the latest first", mutates=False, run=_list, parameters={**PLACE, "limit": (int, 20)}
    ),
    "csm_session_show": Tool(
        summary="Show what is known of a session", mutates=False, run=_show, parameters=_ONE
    ),
    "csm_session_transcript": Tool(
        summary="The conversation of a session", mutates=False, run=_transcript, parameters=_ONE
    ),
    "csm_context_rollover": Tool(
        summary="The tokens that a session took, and csmd's share", mutates=False, run=_rollover, parameters=_ONE
    ),
    "csm_turn_show": Tool(summary="Show one turn", mutates=False, run=_turn, parameters=_ONE),
    "csm_session_export": Tool(
        summary="A transcript that the assistant resumes", mutates=False, run=_export, parameters=_ONE
    ),
}  # fmt: skip


Run = Callable[["ToolContext", Rows, Params], dict[str, Any]]


def _write(kind: EntryKind) -> Run:
    def run(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
        return _append(tools, rows, params, kind, params["text"], parent=params.get("parent", ""))

    return run


def _summarise(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    known = _loaded(tools, rows, params)
    asked = [name for name in params["replaces"].replace(",", " ").split() if name]
    names = asked or [message.uuid for message in known.messages]
    if not names:
        raise BadInput("there is nothing that a summary could stand for", hint="write messages first")
    _must_have(known, names, params["id"])
    return _append(tools, rows, params, "summary", params["text"], names=names)


def _tombstone(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _must_have(_loaded(tools, rows, params), [params["uuid"]], params["id"])
    return {**_append(tools, rows, params, "tombstone", "", names=[params["uuid"]]), "tombstoned": params["uuid"]}


def _append(
    tools: ToolContext,
    rows: Rows,
    params: Params,
    kind: EntryKind,
    body: str,
    *,
    parent: str = "",
    names: Sequence[str] = (),
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
    tools.context.hint(str(path))
    return {"id": ident, "uuid": uuid, "parent": parent, "path": str(path)}


def _must_have(loaded: Loaded, names: Sequence[str], ident: str) -> None:
    for name in names:
        if not loaded.has(name):
            raise BadInput(f"{ident} has no message {name[:60]!r}", hint=f"`csmd session load {ident}` shows them")


def _found(tools: ToolContext, rows: Rows, params: Params) -> Path | None:
    """The session's file, None for none; BadInput for one behind a wall that who asks is not behind."""
    ident = files.check_session_id(params["id"])
    found = files.session_file(tools.config.paths.sessions, ident)
    inside = project_identity.wall(rows, _cwd(tools, ident)) if found else 0
    if inside and inside != project_identity.wall(rows, params[ASKING]):
        raise _no_file(ident)
    return found


def _no_file(ident: str) -> BadInput:
    return BadInput(
        f"csmd has no session file {ident!r}", hint="`csmd session transcript` shows the assistant's sessions"
    )


def _path(tools: ToolContext, rows: Rows, params: Params) -> Path:
    """The session's file, or where it will be: in the folder of the project it is begun in."""
    folder = environment.folder_name(params.get("project") or "/")
    new = tools.config.paths.sessions / folder / f"{params['id']}{files.SESSION_SUFFIX}"
    return _found(tools, rows, params) or new


def _cwd(tools: ToolContext, ident: str) -> str:
    """The project that a session was begun in; "/" for one that was begun nowhere."""
    found = files.session_file(tools.config.paths.sessions, ident)
    return (found and own.begun_in(files.session_lines(found), session=ident)) or "/"


def _loaded(tools: ToolContext, rows: Rows, params: Params, *, texts: bool = False) -> Loaded:
    found = _found(tools, rows, params)
    lines = files.session_lines(found) if found else ()
    return own.load(lines, session=params["id"], key=tools.store.hash_key, texts=texts)


def _load(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if _found(tools, rows, params) is None:
        raise _no_file(params["id"])
    loaded = _loaded(tools, rows, params, texts=True)
    return {"id": params["id"], **asdict(loaded)}


def _where(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    path = _path(tools, rows, params)
    return {"id": params["id"], "path": str(path), "exists": path.is_file()}


_NEW: dict[str, tuple[type, Any]] = {
    "id": (str, REQUIRED),
    "text": (str, REQUIRED),
    "project": (str, ""),
    ASKING: (str, ""),
}

SESSION_FILES_TOOLS: dict[str, Tool] = {
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


NOTE_CHARACTERS = 400


def _create(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    session = _session(rows, params)
    note = display.cut(display.squeeze(redact(params["note"], Counter())), NOTE_CHARACTERS)
    note = purging.permitted_words(rows, note, key=tools.store.hash_key)
    ident = checkpoint.ask(tools.store, rows, session.seq, now=now_iso(), note=note)
    if ident is None:
        raise CsmdError(f"nothing is stored of the session {session.id}", hint="`csmd sync` takes in what is on disk")
    tools.context.hint_of_hook(session.path)  # what its transcript has more is added
    tools.context.poke()
    made = tools.store.write(lambda fresh: _shown(fresh, _row(fresh, ident), tools.store.hash_key))
    return {**made, "made": True}


def _session(rows: Rows, params: Params) -> sessions.Session:
    """The session that is named, or the latest one there."""
    if params["session"]:
        return one(rows, {"id": params["session"], ASKING: params[ASKING]})
    found = sessions.listing(rows, projects=places(rows, params), limit=1)
    if not found:
        raise CsmdError("no session is known here", hint="--session ID names one, `csmd session list` shows them")
    return found[0]


def _checkpoints_list(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    session = _session(rows, params).id if params["session"] else ""
    limit = min(max(params["limit"], 1), 1000)
    found = checkpoints.listing(rows, projects=places(rows, params), session_id=session, limit=limit)
    return {"checkpoints": [_about(rows, row, tools.store.hash_key) for row in found]}


def _checkpoints_show(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    row = _one(rows, params)
    shown = _shown(rows, row, tools.store.hash_key)
    if params["raw"]:
        names = ("uuid", "kind", "tool", "at", "text")
        shown["raw"] = [dict(zip(names, one, strict=True)) for one in checkpoints.raw(rows, row.seq)]
    return shown


def _restore(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    row, now = _one(rows, params), now_iso()
    named = _session(rows, params) if params["session"] else None
    if named is not None and named.project_seq != row.project_seq:  # a wall may stand between the two
        raise BadInput(
            f"{row.id} is of another project than the session {named.id}", hint="restore it without --session"
        )
    session = named.id if named else ""
    tools.store.write(lambda writing: checkpoints.restore(writing, row.seq, at=now, session_id=session))
    return {**_shown(rows, row, tools.store.hash_key), "restored_at": now, "restored_for": session}


def _one(rows: Rows, params: Params) -> Row:
    """A checkpoint by its id or the beginning of it; one behind a wall is none for who asks from elsewhere."""
    ident = params["id"]
    row = checkpoints.by_id(rows, meant(ident, ids_like(rows, "checkpoints", ident)))
    if row is None or not recall.is_seen(rows, row.project_seq, asking=params[ASKING]):
        raise BadInput(f"there is no checkpoint {ident!r}", hint="`csmd checkpoint list` shows them with their ids")
    return row


def _row(rows: Rows, ident: str) -> Row:
    row = checkpoints.by_id(rows, ident)
    if row is None:
        raise CsmdError("what was to be kept was purged meanwhile")
    return row


def _about(rows: Rows, row: Row, key: bytes) -> dict[str, Any]:
    pieces = checkpoint.pieces(rows, row, key)
    goal = next((piece.text for piece in pieces if piece.kind == "goal"), "")
    return {
        "id": row.id, "session_id": row.session_id, "why": row.why, "at": row.at, "asked_at": row.asked_at,
        "summary_uuid": row.summary_uuid, "whole": not row.awaits, "note": row.note, "goal": goal,
        "pieces": len(pieces), "captured": checkpoints.captures(rows, row.seq), "restored_at": row.restored_at,
        "restored_for": row.restored_for,
    }  # fmt: skip


def _shown(rows: Rows, row: Row, key: bytes) -> dict[str, Any]:
    standing = checkpoint.restored(rows, row, key)
    made: Brief = checkpoint.essentials(standing.pieces, ident=standing.id, about=standing.about, note=standing.note)
    session = checkpoints.about_sessions(rows, row.session_seq)
    return {
        **_about(rows, row, key),
        "cwd": session.cwd,
        "parts": [piece._asdict() for piece in standing.pieces],
        "text": made.text,
        "tokens": made.tokens,
    }


CHECKPOINTS_TOOLS: dict[str, Tool] = {
    "csm_checkpoint_create": Tool(
        summary="Keep what a session stands at, now", mutates=True, run=_create,
        parameters={"session": (str, ""), **PLACE, "note": (str, "")},
    ),
    "csm_checkpoint_list": Tool(
        summary="List checkpoints, the latest first", mutates=False, run=_checkpoints_list,
        parameters={"session": (str, ""), **PLACE, "limit": (int, 20)},
    ),
    "csm_checkpoint_show": Tool(
        summary="Show a checkpoint, with the turns that it captured", mutates=False, run=_checkpoints_show,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "raw": (bool, False)},
    ),
    "csm_checkpoint_restore": Tool(
        summary="Have the next session told what a checkpoint holds", mutates=True, run=_restore,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "session": (str, "")},
    ),
}  # fmt: skip


def _set(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    body, key, now = memories.worded(params["text"]), tools.store.hash_key, now_iso()
    by_person = params["by_person"]
    if not by_person:
        memories.refuse_where_left_out(tools, params)
    if tombstones.marks(rows, key).spans(body):
        raise CsmdError("a part of this text was purged", hint="`csmd forget --lift` lets purged text in again")
    places(rows, params)  # a wall keeps out what would be put behind it as well
    session = one(rows, {"id": params["session"], ASKING: params[ASKING]}) if params["session"] else None
    if session is None and not params["project"]:
        raise BadInput("a goal is a project's or a session's", hint="give project or session")
    directory = redact(params["project"], Counter())
    place = project_identity.entering(rows, project_identity.identified(directory)) if session is None else None

    def write(writing: Rows) -> tuple[Goal, bool]:
        home = session.project_seq if session else 0
        if place is not None:
            home = projects.settle(writing, purging.permitted_place(writing, place, key=key), now=now).seq
        ident, new = checkpoints.add_goal(
            writing, project=home, session_id=session.id if session else "", text=body,
            authority="user" if by_person else "assistant", now=now,
        )  # fmt: skip
        return next(one for one in checkpoints.goals_like(writing, ident) if one.id == ident), new

    made, new = tools.store.write(write)
    fresh = {made.project_seq: place.root} if place is not None else {}  # it may be as new as its goal
    return {**_json(made, {**memories.roots(rows), **fresh}), "new": new}


def _goals_list(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    roots = memories.roots(rows)
    return {
        "goals": [
            _json(one, roots) for one in checkpoints.goal_list(rows, projects=places(rows, params), done=params["done"])
        ]
    }


def _done(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    ident = params["id"]
    found = [
        one
        for one in checkpoints.goals_like(rows, ident)
        if recall.is_seen(rows, one.project_seq, asking=params[ASKING])
    ]
    exact = [one for one in found if one.id == ident] or found
    if not ident or not exact:
        raise BadInput(f"there is no goal {ident!r}", hint="`csmd goal list` shows them with their ids")
    if len(exact) > 1:
        raise BadInput(
            f"{ident!r} begins several ids: {', '.join(one.id for one in exact)}", hint="type some more of it"
        )
    if exact[0].authority == "user" and not params["by_person"]:
        raise CsmdError(
            f"{exact[0].id} was declared by the user, and only a person at a terminal can call it done",
            hint=f"type `csmd goal done {exact[0].id}` in a terminal",
        )
    now = now_iso()
    changed = tools.store.write(lambda writing: checkpoints.finish_goal(writing, exact[0].id, now=now))
    return {
        **_json(exact[0], memories.roots(rows)),
        "done_at": now if changed else exact[0].done_at,
        "changed": changed,
    }


def _json(goal: Goal, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "id": goal.id, "text": goal.text, "authority": goal.authority, "project": roots.get(goal.project_seq, ""),
        "session_id": goal.session_id, "created_at": goal.created_at, "done_at": goal.done_at,
    }  # fmt: skip


GOALS_TOOLS: dict[str, Tool] = {
    "csm_goal_set": Tool(
        summary="Declare what a project or a session is for", mutates=True, run=_set,
        parameters={"text": (str, REQUIRED), **PLACE, "session": (str, ""), "by_person": (bool, False)},
    ),
    "csm_goal_list": Tool(
        summary="List goals, the latest first", mutates=False, run=_goals_list,
        parameters={**PLACE, "done": (bool, False)},
    ),
    "csm_goal_done": Tool(
        summary="Note that a goal is done", mutates=True, run=_done,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "by_person": (bool, False)},
    ),
}  # fmt: skip
