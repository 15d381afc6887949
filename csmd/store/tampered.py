"""Transcripts that a recorded tool call has written, as keyed hashes of their file names.

A past is not read in the order it happened in: what was made of a transcript before the call that wrote it came to
light is taken back. What had been read before the call was made stays: then the transcript was as the host wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from csmd.store import checkpoints, digests, gotchas, packets, purge_whole, told_days
from csmd.store.sqlite import Rows


def note(rows: Rows, names: Iterable[str], *, at: str, hashed: Callable[[str], str]) -> None:
    """Remembers transcripts that a tool wrote at a time, by the hashes of their file names; the first time counts."""
    for name in names:
        new = rows.all(
            "insert into tampered (name_hash, at) values (:name, :at) on conflict (name_hash) do nothing "
            "returning name_hash",
            name=hashed(name),
            at=at,
        )
        if new:
            for seq, ident in _read_since(rows, name, at):
                _take_back(rows, seq, ident)


def _read_since(rows: Rows, name: str, at: str) -> list[tuple[int, str]]:
    """The sessions whose transcript has this file name and was read after a time.

    SQLite compares the names: hashing those of twenty thousand would hold the writer longer than a hook waits.
    """
    found = rows.all(
        "select s.seq, s.id from sessions s where substr(s.path, length(s.path) - length(:tail) + 1) = :tail "
        "and exists (select 1 from files f where f.path = s.path and f.read_at > :at)",
        tail=f"/{name}",
        at=at,
    )
    return [(int(seq), str(ident)) for seq, ident in found]


def is_noted(rows: Rows, name: str) -> bool:
    """Whether a transcript of this hashed name was written by a tool."""
    return rows.value("select 1 from tampered where name_hash = :name", name=name) is not None


def _take_back(rows: Rows, session_seq: int, ident: str) -> None:
    """Removes the statements and packets of a session, and the memories that nobody else said."""
    told = rows.all(
        "select distinct memory_seq from provenance where session_id = :id and uuid in "
        "(select t.uuid from statements st join turns t on t.seq = st.turn_seq where st.session_seq = :seq)",
        id=ident,
        seq=session_seq,
    )
    rows.run(
        "delete from provenance where session_id = :id and uuid in "
        "(select t.uuid from statements st join turns t on t.seq = st.turn_seq where st.session_seq = :seq)",
        id=ident,
        seq=session_seq,
    )
    rows.run("delete from statements where session_seq = :seq", seq=session_seq)
    digests.clear(rows, session_seq)
    told_days.clear(rows, session_seq)
    checkpoints.clear(rows, session_seq)
    packets.take_back_session(rows, session_seq)
    gotchas.forget_session(rows, session_seq)
    purge_whole.without_source(rows, [int(memory) for (memory,) in told])
