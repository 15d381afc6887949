"""Which passages of which rows have a vector, by model; the vectors themselves are the backend's.

Vectors carry their model: while a new model backfills, both sets are kept and a query uses one.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.store import cursors, sqlite
from csmd.store.sqlite import Rows

#: Kind -> the rows that deserve a vector, past a cursor.
_BACKLOG = {
    "memory": "select seq, project_seq, text from memories where seq > :after order by seq limit :limit",
    "turn": "select seq, project_seq, text from turns where seq > :after and searchable = 1 order by seq limit :limit",
}
_LEFT = {
    "memory": "select count(*) from memories where seq > :after",
    "turn": "select count(*) from turns where seq > :after and searchable = 1",
}
KINDS = tuple(_BACKLOG)


def ensure_model(rows: Rows, name: str, dim: int, *, now: str) -> int:
    """The row key of an embedding model, its tables made when it is new."""
    found = rows.value("select seq from vector_models where name = :name", name=name)
    if found is None:
        found = rows.value(
            "insert into vector_models (name, dim, created_at) values (:name, :dim, :now) returning seq",
            name=name,
            dim=dim,
            now=now,
        )
        sqlite.create_vector_tables(rows, int(found), dim)
    return int(found)


def model_seq(rows: Rows, name: str) -> int | None:
    """The row key of a model that has vectors here, or None."""
    found = rows.value("select seq from vector_models where name = :name", name=name)
    return None if found is None else int(found)


def backlog(rows: Rows, kind: str, model: int, *, limit: int) -> list[tuple[int, int, str]]:
    """(row key, project, text) of the next rows without a vector of this model, in order."""
    after = cursors.cursor(rows, f"embed-{kind}", str(model))
    return [(int(a), int(b), str(c)) for a, b, c in rows.all(_BACKLOG[kind], after=after, limit=limit)]


def left(rows: Rows, model: int | None) -> int:
    """How many rows wait for a vector of this model."""
    return sum(
        int(rows.value(_LEFT[kind], after=0 if model is None else cursors.cursor(rows, f"embed-{kind}", str(model))))
        for kind in KINDS
    )


def add(
    rows: Rows,
    kind: str,
    model: int,
    passages: Sequence[tuple[int, int, int, int, bytes]],
    *,
    reached: int,
) -> int:
    """Stores (row, project, start, end, vector) and moves the cursor to `reached`; how many were new.

    Rows that went away meanwhile are left out.
    """
    added = 0
    table = "memories" if kind == "memory" else "turns"
    for row_seq, project, start, end, vector in passages:
        if rows.value(f"select 1 from {table} where seq = :seq", seq=row_seq) is None:  # noqa: S608
            continue
        seq = rows.value(
            "insert into vectors (model_seq, kind, row_seq, start_at, end_at) values (:model, :kind, :row, :start, "
            ":end) on conflict do nothing returning seq",
            model=model,
            kind=kind,
            row=row_seq,
            start=start,
            end=end,
        )
        if seq is not None:
            sqlite.insert_vector(rows, kind, model, int(seq), project, vector)
            added += 1
    cursors.move_cursor(rows, f"embed-{kind}", str(model), reached)
    return added


def delete_for(rows: Rows, kind: str, row_seq: int) -> None:
    """Removes every vector of a row, of every model."""
    found = rows.all("select seq, model_seq from vectors where kind = :kind and row_seq = :row", kind=kind, row=row_seq)
    for seq, model in found:
        sqlite.delete_vectors(rows, kind, int(model), [int(seq)])
        rows.run("delete from vectors where seq = :seq", seq=seq)
