"""Checkpoints: made on demand, listed, shown with what they captured, and restored for the next session."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from csmd import text
from csmd.capture import stage_purge as purging
from csmd.capture.redact import redact
from csmd.daemon.answers import sessions as of_sessions
from csmd.daemon.now import now_iso
from csmd.daemon.tool import ASKING, PLACE, REQUIRED, Params, Tool, meant, places
from csmd.errors import BadInput, CsmdError
from csmd.model import Brief
from csmd.recall import checkpoint, stage_checkpoint
from csmd.recall import stage as recall
from csmd.store import checkpoints, sessions
from csmd.store.checkpoints import Row
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

NOTE_CHARACTERS = 400


def _create(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    session = _session(rows, params)
    note = text.cut(text.squeeze(redact(params["note"], Counter())), NOTE_CHARACTERS)
    note = purging.permitted_words(rows, note, key=tools.store.hash_key)
    ident = stage_checkpoint.ask(tools.store, rows, session.seq, now=now_iso(), note=note)
    if ident is None:
        raise CsmdError(f"nothing is stored of the session {session.id}", hint="`csmd sync` takes in what is on disk")
    tools.steward.hint_of_hook(session.path)  # what its transcript has more is added
    tools.steward.poke()
    made = tools.store.write(lambda fresh: _shown(fresh, _row(fresh, ident), tools.store.hash_key))
    return {**made, "made": True}


def _session(rows: Rows, params: Params) -> sessions.Session:
    """The session that is named, or the latest one there."""
    if params["session"]:
        return of_sessions.one(rows, {"id": params["session"], ASKING: params[ASKING]})
    found = sessions.listing(rows, projects=places(rows, params), limit=1)
    if not found:
        raise CsmdError("no session is known here", hint="--session ID names one, `csmd session list` shows them")
    return found[0]


def _list(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    session = _session(rows, params).id if params["session"] else ""
    limit = min(max(params["limit"], 1), 1000)
    found = checkpoints.listing(rows, projects=places(rows, params), session_id=session, limit=limit)
    return {"checkpoints": [_about(rows, row, tools.store.hash_key) for row in found]}


def _show(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    row = _one(rows, params)
    shown = _shown(rows, row, tools.store.hash_key)
    if params["raw"]:
        names = ("uuid", "kind", "tool", "at", "text")
        shown["raw"] = [dict(zip(names, one, strict=True)) for one in checkpoints.raw(rows, row.seq)]
    return shown


def _restore(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
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
    row = checkpoints.by_id(rows, meant(ident, checkpoints.ids_like(rows, ident) if ident else []))
    if row is None or not recall.is_seen(rows, row.project_seq, asking=params[ASKING]):
        raise BadInput(f"there is no checkpoint {ident!r}", hint="`csmd checkpoint list` shows them with their ids")
    return row


def _row(rows: Rows, ident: str) -> Row:
    row = checkpoints.by_id(rows, ident)
    if row is None:
        raise CsmdError("what was to be kept was purged meanwhile")
    return row


def _about(rows: Rows, row: Row, key: bytes) -> dict[str, Any]:
    pieces = stage_checkpoint.pieces(rows, row, key)
    goal = next((piece.text for piece in pieces if piece.kind == "goal"), "")
    return {
        "id": row.id, "session_id": row.session_id, "why": row.why, "at": row.at, "asked_at": row.asked_at,
        "summary_uuid": row.summary_uuid, "whole": not row.awaits, "note": row.note, "goal": goal,
        "pieces": len(pieces), "captured": checkpoints.captures(rows, row.seq), "restored_at": row.restored_at,
        "restored_for": row.restored_for,
    }  # fmt: skip


def _shown(rows: Rows, row: Row, key: bytes) -> dict[str, Any]:
    standing = stage_checkpoint.restored(rows, row, key)
    made: Brief = checkpoint.essentials(standing.pieces, ident=standing.id, about=standing.about, note=standing.note)
    session = checkpoints.about_sessions(rows, row.session_seq)
    return {
        **_about(rows, row, key),
        "cwd": session.cwd,
        "parts": [piece._asdict() for piece in standing.pieces],
        "text": made.text,
        "tokens": made.tokens,
    }


TOOLS: dict[str, Tool] = {
    "csm_checkpoint_create": Tool(
        summary="Keep what a session stands at, now", mutates=True, run=_create,
        parameters={"session": (str, ""), **PLACE, "note": (str, "")},
    ),
    "csm_checkpoint_list": Tool(
        summary="List checkpoints, the latest first", mutates=False, run=_list,
        parameters={"session": (str, ""), **PLACE, "limit": (int, 20)},
    ),
    "csm_checkpoint_show": Tool(
        summary="Show a checkpoint, with the turns that it captured", mutates=False, run=_show,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "raw": (bool, False)},
    ),
    "csm_checkpoint_restore": Tool(
        summary="Have the next session told what a checkpoint holds", mutates=True, run=_restore,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "session": (str, "")},
    ),
}  # fmt: skip
