"""Transcripts that a recorded tool call has written, as keyed hashes of their file names."""

from __future__ import annotations

from collections.abc import Iterable

from csmd.store.sqlite import Rows


def note(rows: Rows, names: Iterable[str], *, at: str) -> None:
    """Remembers hashed names of transcripts that a tool wrote; the first time counts."""
    for name in names:
        rows.run(
            "insert into tampered (name_hash, at) values (:name, :at) on conflict (name_hash) do nothing",
            name=name,
            at=at,
        )


def is_noted(rows: Rows, name: str) -> bool:
    """Whether a transcript of this hashed name was written by a tool."""
    return rows.value("select 1 from tampered where name_hash = :name", name=name) is not None
