"""Vectors for what has none yet: a few rows at a time, so that a question waits for one batch at most."""

from __future__ import annotations

from csmd import text
from csmd.daemon.context import Context
from csmd.daemon.now import now_iso
from csmd.store import vectors

#: A memory is embedded in parts of so many characters, at most so many; a passage is short enough to be one.
PART_CHARACTERS, MOST_PARTS = 1000, 12


def embed_some(context: Context, *, rows_at_once: int) -> int:
    """Embeds the next rows, memories before passages; 0 when nothing waits or no model is there."""
    store = context.store
    name = context.model_name()
    if name is None:
        return 0
    known = store.read(lambda rows: vectors.model_seq(rows, name))
    if not store.read(lambda rows: vectors.is_any_left(rows, known)):
        return 0
    if known is None:
        dim = len(context.embedder.embed(["dimension"], deadline_s=None)[0])
        known = store.write(lambda rows: vectors.ensure_model(rows, name, dim, now=now_iso()))
    model = known
    for kind in vectors.KINDS:
        waiting = store.read(lambda rows, kind=kind: vectors.backlog(rows, kind, model, limit=rows_at_once))  # type: ignore[misc]
        if waiting:
            _embed_rows(context, kind, model, waiting, texts_at_once=rows_at_once)
            return len(waiting)
    return 0


def _embed_rows(
    context: Context, kind: str, model: int, waiting: list[tuple[int, int, str]], *, texts_at_once: int
) -> None:
    parts = [(seq, project, *part) for seq, project, body in waiting for part in _parts(kind, body)]
    made: list[tuple[int, int, int, int, bytes]] = []
    for at in range(0, len(parts), texts_at_once):
        batch = parts[at : at + texts_at_once]
        found = context.embedder.embed([row[4] for row in batch], deadline_s=None)
        made += [(*row[:4], vector) for row, vector in zip(batch, found, strict=True)]
    reached, said = waiting[-1][0], {seq: body for seq, _, body in waiting}
    context.store.write(lambda rows: vectors.add(rows, kind, model, made, reached=reached, said=said))


def _parts(kind: str, body: str) -> list[tuple[int, int, str]]:
    """(start, end, what is embedded) of a row's parts: a passage's words stand in one line."""
    if kind == "passage":
        return [(0, len(body), " ".join(body.split()))]
    return [(start, end, body[start:end]) for start, end in text.chunks(body, limit=PART_CHARACTERS)[:MOST_PARTS]]
