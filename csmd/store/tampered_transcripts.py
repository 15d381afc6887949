"""Transcripts that a recorded tool call has written: nothing is believed of what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from csmd.store import checkpoints, digests, failures, memory_deletion, packet_rows, stored_days
from csmd.store.sqlite import Rows

#: The kind of their tombstones.
TAMPERED_KIND = "tampered"


def record_tampered(rows: Rows, names: Iterable[str], *, at: str, hashed: Callable[[str], str]) -> None:
    """Records by a hash the names of transcripts that a tool wrote, and removes what was concluded from them since."""
    for name in names:
        conflict = "on conflict (kind, hash, part_of) do nothing"
        if rows.insert("tombstones", conflict, kind=TAMPERED_KIND, hash=hashed(name), created_at=at):
            for seq, session_id in _list_sessions_read_since(rows, name, at):
                _take_back(rows, seq, session_id)


def is_tampered(rows: Rows, name: str) -> bool:
    """Whether a tool wrote the transcript with this hashed name."""
    return rows.has("tombstones", kind=TAMPERED_KIND, hash=name)


def _list_sessions_read_since(rows: Rows, name: str, at: str) -> list[tuple[int, str]]:
    """Returns (row key, id) of the sessions whose transcript has this file name and was read after a time.

    SQLite compares the names: hashing twenty thousand of them would block the writer for longer than a hook waits.
    """
    sql = r"""select s.seq, s.id from sessions s
        where (substr(s.path, length(s.path) - length(:tail) + 1) = :tail or s.path like '%' || :inside || '%' escape '\')
        and exists (select 1 from files f where f.path = s.path and f.read_at > :at)"""
    literal = re.sub(r"([\\%_])", r"\\\1", name)
    return rows.all(sql, tail=f"/{name}", inside=f"/{literal}/", at=at)


def _take_back(rows: Rows, session_seq: int, session_id: str) -> None:
    """Removes everything that was concluded from a session, and the memories without another source."""
    memory_deletion.drop_sources(
        rows,
        "session_id = :id and uuid in "
        "(select t.uuid from statements st join turns t on t.seq = st.turn_seq where st.session_seq = :seq)",
        id=session_id,
        seq=session_seq,
    )
    rows.delete("statements", session_seq=session_seq)
    digests.clear(rows, session_seq)
    stored_days.clear_days(rows, session_seq)
    checkpoints.delete_of_session(rows, session_seq)
    packet_rows.take_back_session_packets(rows, session_seq)
    failures.delete_session(rows, session_seq)
