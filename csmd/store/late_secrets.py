"""Secrets that became known only after a text with them was stored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from csmd.privacy.fingerprints import remove_purged
from csmd.privacy.redaction import KNOWN_AGAIN
from csmd.store import cursors, tombstones
from csmd.store.purge import LATE_SECRETS_STAGE, rewrite_turn
from csmd.store.sqlite import Rows, secure_delete


def keep_secrets_out(rows: Rows, session: str, secrets: Collection[str], *, key: bytes, now: str) -> None:
    """Keeps secrets out of a session from now on, also where they appear alone.

    Its hook events are changed at once, because a transcript's line is matched by the same words. The rest is left to
    the pass over LATE_SECRETS_STAGE.
    """
    if not tombstones.record_secrets(rows, session, secrets, key=key, now=now):
        return
    secure_delete(rows)
    marks = tombstones.secrets_of(rows, [session], key)
    sql = """select t.seq, t.text from sessions s join session_turn st on st.session_seq = s.seq
        join turns t on t.seq = st.turn_seq where (s.id = :id or s.parent = :id) and t.provisional = 1"""
    for seq, text in rows.all(sql, id=session):
        cleaned, hits = remove_purged(text, marks, placeholder=KNOWN_AGAIN)
        if hits:
            rewrite_turn(rows, seq, cleaned, key)
    if rows.has("sessions", id=session):
        position = cursors.read_cursor(rows, LATE_SECRETS_STAGE, session)
        cursors.move_cursor(rows, LATE_SECRETS_STAGE, session, position + 1)


def sessions_with_late_secrets(rows: Rows) -> dict[str, int]:
    """Returns the sessions (ids) with secrets that became known later, and the position of each cursor."""
    return dict(rows.all("select subject, position from cursors where stage = :stage", stage=LATE_SECRETS_STAGE))


def end_late_secrets(rows: Rows, seen: Mapping[str, int]) -> None:
    """Records that sessions were searched up to the positions that `sessions_with_late_secrets` returned."""
    for session, position in seen.items():
        rows.delete("cursors", stage=LATE_SECRETS_STAGE, subject=session, position=position)


def session_keys(rows: Rows, ids: Iterable[str]) -> list[int]:
    """Returns the row keys of sessions and of their sub-agents."""
    sql = "select seq from sessions where id = :id or parent = :id"
    return [seq for ident in ids for seq in rows.column(sql, id=ident)]
