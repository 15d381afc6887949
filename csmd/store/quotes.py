"""Turns as another session may be told them: what people and assistants said, never what the session has before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath

from csmd.model import Quote
from csmd.store import tampered
from csmd.store.sqlite import Rows


def quotable(rows: Rows, seqs: Sequence[int], *, session_id: str, since: str, hashed: Callable[[str], str]) -> set[int]:
    """Those of some turns (row keys) that may be quoted to a session, as their transcripts have them.

    Not what only a hook reported or stands in a transcript that a tool has written (`hashed` makes a name's keyed hash):
    nobody is known to have said that. Not what stands in the session's own context (listed there at `since` or later, a
    fork's copies too), nor what sub-agents and tools said, nor what is not indexed any more.
    """
    if not seqs:
        return set()
    keys = ", ".join(str(int(seq)) for seq in seqs)
    found = rows.all(
        "select t.seq, s.path from turns t "  # noqa: S608
        f"join sessions s on s.seq = t.session_seq where t.seq in ({keys}) and t.searchable = 1 "
        "and t.kind in ('user', 'relayed', 'assistant') and t.source = 'transcript' and s.parent = '' and not exists (select 1 from session_turn o "
        "join sessions own on own.seq = o.session_seq where o.turn_seq = t.seq and own.id = :session and t.at >= :since)",
        session=session_id,
        since=since,
    )
    written = {path for path in {path for _, path in found} if tampered.is_noted(rows, hashed(PurePath(path).name))}
    return {int(seq) for seq, path in found if path not in written}


def quote_of(rows: Rows, uuid: str) -> Quote | None:
    """A turn that was quoted; None when it is gone."""
    found = rows.one(
        "select t.kind, t.text, t.at, s.id, t.project_seq from turns t join sessions s on s.seq = t.session_seq "
        "where t.uuid = :uuid and t.searchable = 1",
        uuid=uuid,
    )
    if found is None:
        return None
    kind, body, at, session, project = found
    return Quote(uuid=uuid, kind=kind, text=body, at=at, session_id=session, project_seq=project)
