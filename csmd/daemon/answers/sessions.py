"""Sessions: listed, described, read as a conversation, written as a transcript that the assistant resumes.

What is answered comes from the store: it is the same whether the host still has its transcript or not.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csmd import text
from csmd.capture import memdir
from csmd.capture.hosts import claude_export
from csmd.daemon.answers import showing
from csmd.daemon.tool import ASKING, PLACE, REQUIRED, Params, Tool, meant, places
from csmd.errors import BadInput, CsmdError
from csmd.model import SaidTurn
from csmd.recall import stage as recall
from csmd.store import digests, search, sessions
from csmd.store.sessions import Session
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools


def _list(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    limit = min(max(params["limit"], 1), 1000)
    found = sessions.listing(rows, projects=places(rows, params), limit=limit)
    return {"sessions": [_session_json(session) for session in found]}


def _session_json(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "project": session.project,
        "title": session.title,
        "about": session.title or text.cut(text.squeeze(session.opening), 120),
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


def _show(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
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


def _rollover(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    session = one(rows, params)
    return {"id": session.id, "project": session.project, "last_at": session.last_at, **_usage(rows, session)}


def _last_digest(rows: Rows, session_seq: int) -> str:
    found = digests.of_session(rows, session_seq)
    return found[-1].text if found else ""


def _turn(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
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
        "project": turn.project, **showing.turn_around(rows, turn, asking=params[ASKING]),
    }  # fmt: skip


def _conversation(rows: Rows, session: Session, params: Params) -> list[SaidTurn]:
    return sessions.conversation(rows, session.seq, projects=recall.seen(rows, asking=params[ASKING]))


def _transcript(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
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


def _export(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    session = one(rows, params)
    if session.parent:
        raise CsmdError(
            f"{session.id} is a sub-agent's conversation, and the assistant resumes only its own",
            hint=f"csmd session export {session.parent}; `csmd session transcript {session.id}` shows this one",
        )
    made = claude_export.export(
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
        "place": f"projects/{memdir.folder_name(cwd)}/{made.session_id}.jsonl",
        "resume": f"cd {shlex.quote(cwd)} && claude --resume {made.session_id}",
        "left_out": made.left_out,
        "transcript": transcript_state(session.path),
        "lines": list(made.lines),
    }


_ONE = {"id": (str, REQUIRED), ASKING: (str, "")}
TOOLS: dict[str, Tool] = {
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
