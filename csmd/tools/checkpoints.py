"""Tools on checkpoints of sessions: create, list, show, restore."""

from __future__ import annotations

from csmd.errors import BadInput, CsmdError
from csmd.privacy.fingerprints import remove_purged
from csmd.recall import checkpoint, visibility
from csmd.store import checkpoints, sessions, tombstones
from csmd.store.checkpoints import CheckpointRow
from csmd.store.sessions import Session
from csmd.store.sqlite import Rows, ids_like
from csmd.text import display
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit, resolve_id
from csmd.tools.present import as_json, find_session, refuse_secrets
from csmd.tools.sessions import MAX_ROWS

TOOLS = Tools()
MAX_NOTE_CHARACTERS = 400
CHECKPOINT_FIELDS = (
    "id session_id why at asked_at summary_uuid whole note goal pieces captured restored_at restored_for"
)  # fmt: skip


@TOOLS.add("csm_checkpoint_create", mutates=True)
def _create_checkpoint(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", note: str = ""
) -> Json:
    """Save a session's present state."""
    target, key = _find_session_or_latest(rows, session, seen, asking), ctx.store.hash_key
    note = display.cut(refuse_secrets(note), MAX_NOTE_CHARACTERS)
    note = remove_purged(note, tombstones.purged_marks(rows, key))[0]
    checkpoint_id = checkpoint.request_checkpoint(ctx.store, rows, target.seq, now=ctx.now(), note=note)
    if checkpoint_id is None:
        raise CsmdError(f"nothing is stored of the session {target.id}", hint="`csmd sync` reads all transcripts")
    ctx.hint_from_hook(target.path)  # the rest of its transcript is then read
    ctx.poke()

    def read_stored(fresh: Rows) -> Json:
        row = checkpoints.by_id(fresh, checkpoint_id)
        if row is None:
            raise CsmdError("the session was just purged")
        return _checkpoint_json(fresh, row, key)

    return {**ctx.store.write(read_stored), "made": True}


def _find_session_or_latest(rows: Rows, word: str, seen: Places, asking: str) -> Session:
    """Returns the named session, or the latest one of the projects."""
    if word:
        return find_session(rows, word, asking)
    latest = sessions.list_sessions(rows, projects=seen, limit=1)
    if not latest:
        raise CsmdError("there is no session yet", hint="name one with --session ID; `csmd session list` shows them")
    return latest[0]


@TOOLS.add("csm_checkpoint_list")
def _list_checkpoints(
    ctx: ToolContext, rows: Rows, session: str = "", seen: Places = None, asking: str = "", limit: int = 20
) -> Json:
    """List checkpoints, the latest first."""
    session_id = find_session(rows, session, asking).id if session else ""
    limit = clamp_limit(limit, MAX_ROWS)
    page = checkpoints.list_checkpoints(rows, projects=seen, session_id=session_id, limit=limit)
    return {"checkpoints": [_summary_json(rows, row, ctx.store.hash_key) for row in page]}


@TOOLS.add("csm_checkpoint_show")
def _show_checkpoint(ctx: ToolContext, rows: Rows, id_: str, asking: str = "", raw: bool = False) -> Json:
    """Show a checkpoint, with the turns that it captured."""
    row = _find_checkpoint(rows, id_, asking)
    value = _checkpoint_json(rows, row, ctx.store.hash_key)
    if raw:
        names = ("uuid", "kind", "tool", "at", "text")
        value["raw"] = [dict(zip(names, turn, strict=True)) for turn in checkpoints.list_captures(rows, row.seq)]
    return value


@TOOLS.add("csm_checkpoint_restore", mutates=True)
def _restore_checkpoint(ctx: ToolContext, rows: Rows, id_: str, asking: str = "", session: str = "") -> Json:
    """Restore a checkpoint into the next session."""
    row, now = _find_checkpoint(rows, id_, asking), ctx.now()
    target = find_session(rows, session, asking) if session else None
    if target is not None and target.project_seq != row.project_seq:  # a wall may lie between the two
        what = f"{row.id} and the session {target.id} are of different projects"
        raise BadInput(what, hint="restore it without --session")
    session_id = target.id if target else ""
    ctx.store.write(lambda writing: checkpoints.mark_restored(writing, row.seq, at=now, session_id=session_id))
    return {**_checkpoint_json(rows, row, ctx.store.hash_key), "restored_at": now, "restored_for": session_id}


def _find_checkpoint(rows: Rows, word: str, asking: str) -> CheckpointRow:
    """Returns a checkpoint by its id or the beginning of it; BadInput for none, or one behind a wall."""
    row = checkpoints.by_id(rows, resolve_id(word, ids_like(rows, "checkpoints", word)))
    if row is None or not visibility.is_visible(rows, row.project_seq, asking=asking):
        raise BadInput(f"there is no checkpoint {word!r}", hint="`csmd checkpoint list` shows them with their ids")
    return row


def _summary_json(rows: Rows, row: CheckpointRow, key: bytes) -> Json:
    pieces = checkpoint.read_pieces(rows, row, key)
    goal = next((piece.text for piece in pieces if piece.kind == "goal"), "")
    captured = checkpoints.count_captures(rows, row.seq)
    return as_json(row, CHECKPOINT_FIELDS, whole=not row.awaits, goal=goal, pieces=len(pieces), captured=captured)


def _checkpoint_json(rows: Rows, row: CheckpointRow, key: bytes) -> Json:
    restored = checkpoint.read_restored(rows, row, key)
    essentials = checkpoint.render_essentials(restored)
    return {
        **_summary_json(rows, row, key), "cwd": checkpoints.read_session_state(rows, row.session_seq).cwd,
        "parts": [piece._asdict() for piece in restored.pieces], "text": essentials.text, "tokens": essentials.tokens,
    }  # fmt: skip
