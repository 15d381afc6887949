"""Which memories and passages have a vector, by model; the vectors themselves are the backend's.

Vectors carry their model: while a new model backfills, both sets are kept and a query uses one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csmd.errors import StoreError
from csmd.store import cursors, vector_tables
from csmd.store.fulltext import WORDS
from csmd.store.sqlite import Rows

#: Kind -> the table of its rows. Of turns there may be vectors in a store of before passages: none are made any more.
_TABLES = {"memory": "memories", "passage": "passages"}
_OLD_TABLES = {"turn": "turns"}
#: Kind -> the rows that deserve a vector, past a cursor.
_BACKLOG = {
    "memory": "select seq, project_seq, text from memories where seq > :after order by seq limit :limit",
    "passage": (
        f"select p.seq, p.project_seq, {WORDS} from passages p join turns t on t.seq = p.turn_seq "  # noqa: S608
        "where p.seq > :after order by p.seq limit :limit"
    ),
}
_LEFT = {kind: f"select count(*) from {table} where seq > :after" for kind, table in _TABLES.items()}  # noqa: S608
#: Kind -> the rows up to a cursor whose words have changed since they were embedded.
_AGAIN = {
    "memory": (
        "select b.seq, b.project_seq, b.text from embed_again a join memories b on b.seq = a.row_seq "
        "where a.model_seq = :model and a.kind = :kind order by a.row_seq limit :limit"
    ),
    "passage": (
        f"select p.seq, p.project_seq, {WORDS} from embed_again a join passages p on p.seq = a.row_seq "  # noqa: S608
        "join turns t on t.seq = p.turn_seq where a.model_seq = :model and a.kind = :kind order by a.row_seq limit :limit"
    ),
}
#: Kind -> how many rows up to a cursor have no vector and wait for none.
_SKIPPED = {
    kind: (
        f"select count(*) from {table} b where b.seq <= :reached and not exists "  # noqa: S608
        "(select 1 from vectors v where v.kind = :kind and v.model_seq = :model and v.row_seq = b.seq) and not exists "
        "(select 1 from embed_again a where a.kind = :kind and a.model_seq = :model and a.row_seq = b.seq)"
    )
    for kind, table in _TABLES.items()
}
#: In this order they are embedded.
KINDS = tuple(_BACKLOG)


def ensure_model(rows: Rows, name: str, dim: int, *, now: str) -> int:
    """The row key of an embedding model, its tables made when it is new.

    StoreError when the model of that name had vectors of another length: it is another model.
    """
    known = rows.one("select seq, dim from vector_models where name = :name", name=name)
    if known is None:
        made = rows.value(
            "insert into vector_models (name, dim, created_at) values (:name, :dim, :now) returning seq",
            name=name,
            dim=dim,
            now=now,
        )
        vector_tables.create_vector_tables(rows, int(made), dim)
        return int(made)
    if int(known[1]) != dim:
        raise StoreError(
            f"the model {name} makes {dim} numbers a vector, the vectors stored under its name have {known[1]}",
            hint="add it under another name: csmd model add",
        )
    return int(known[0])


def model_seq(rows: Rows, name: str) -> int | None:
    """The row key of a model that has vectors here, or None."""
    found = rows.value("select seq from vector_models where name = :name", name=name)
    return None if found is None else int(found)


def backlog(rows: Rows, kind: str, model: int, *, limit: int) -> list[tuple[int, int, str]]:
    """(row key, project, text) of the next rows without a vector of this model, those that had one before first."""
    again = rows.all(_AGAIN[kind], model=model, kind=kind, limit=limit)
    if again:
        return [(int(a), int(b), str(c)) for a, b, c in again]
    after = cursors.cursor(rows, f"embed-{kind}", str(model))
    return rows.all(_BACKLOG[kind], after=after, limit=limit)


def left(rows: Rows, model: int | None) -> int:
    """How many rows wait for a vector of this model."""
    again = rows.value(
        "select count(*) from embed_again where kind in ('memory', 'passage') and model_seq = :model", model=model or 0
    )
    return int(again) + sum(int(rows.value(_LEFT[kind], after=_reached(rows, kind, model))) for kind in KINDS)


def is_any_left(rows: Rows, model: int | None) -> bool:
    """Whether a row waits for a vector of this model: what `left` counts, without counting it."""
    return any(
        rows.value(f"select 1 from {table} where seq > :after limit 1", after=_reached(rows, kind, model))  # noqa: S608
        for kind, table in _TABLES.items()
    ) or bool(
        rows.value(
            "select 1 from embed_again where kind in ('memory', 'passage') and model_seq = :model limit 1",
            model=model or 0,
        )
    )


def _reached(rows: Rows, kind: str, model: int | None) -> int:
    return 0 if model is None else cursors.cursor(rows, f"embed-{kind}", str(model))


def add(
    rows: Rows,
    kind: str,
    model: int,
    passages: Sequence[tuple[int, int, int, int, bytes]],
    *,
    reached: int,
    said: Mapping[int, str] | None = None,
) -> int:
    """Stores (row, project, start, end, vector) and moves the cursor on to `reached`; how many were new.

    Rows that went away meanwhile, or do not say any more what was embedded (`said`, by row key), are left out;
    one that was moved meanwhile has its vector where it is now.
    """
    added = 0
    table = {**_TABLES, **_OLD_TABLES}[kind]
    words_of = f"select {WORDS} from passages p join turns t on t.seq = p.turn_seq where p.seq = :seq"  # noqa: S608
    if kind != "passage":
        words_of = f"select text from {table} where seq = :seq"  # noqa: S608
    changed = {seq for seq, words in (said or {}).items() if rows.value(words_of, seq=seq) != words}
    for seq in (said or {}).keys() - changed:
        gone = rows.run("delete from embed_again where model_seq = :model and kind = :kind and row_seq = :row",
                        model=model, kind=kind, row=seq)  # fmt: skip
        if gone and kind == "passage":  # it is linked anew
            rows.run("insert into embed_again (model_seq, kind, row_seq) values (:model, 'thread', :row) on conflict do nothing",
                     model=model, row=seq)  # fmt: skip
    for row_seq, _, start, end, vector in passages:
        project = rows.value(f"select project_seq from {table} where seq = :seq", seq=row_seq)  # noqa: S608
        if project is None or row_seq in changed:
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
            vector_tables.insert_vector(rows, kind, model, int(seq), project, vector)
            added += 1
    if reached > cursors.cursor(rows, f"embed-{kind}", str(model)):
        cursors.move_cursor(rows, f"embed-{kind}", str(model), reached)
    return added


def move_to(rows: Rows, kind: str, row_seq: int, project: int) -> None:
    """Takes every vector of a row into the partition of the row's new project; of a turn, those of its passages."""
    for seq, model in _of_row(rows, kind, row_seq):
        vector_tables.move_vector(rows, kind, model, seq, project)
    if kind == "turn":
        for (passage,) in rows.all("select seq from passages where turn_seq = :turn", turn=row_seq):
            move_to(rows, "passage", int(passage), project)


def distances(rows: Rows, kind: str, model: int, vector: bytes, row_seqs: Sequence[int]) -> dict[int, float]:
    """Row key -> squared distance from `vector`, of those of these rows that have a vector of this model."""
    return vector_tables.vector_distances(rows, kind, model, vector, row_seqs)


def of_row(rows: Rows, kind: str, row_seq: int, *, model: int) -> list[bytes]:
    """The vectors of a row's passages by one model."""
    own = [seq for seq, of in _of_row(rows, kind, row_seq) if of == model]
    return [found for seq in own if (found := vector_tables.vector_of(rows, kind, model, seq)) is not None]


def _of_row(rows: Rows, kind: str, row_seq: int) -> list[tuple[int, int]]:
    """(row key, model) of a row's vectors."""
    return rows.all("select seq, model_seq from vectors where kind = :kind and row_seq = :row", kind=kind, row=row_seq)


def delete_for(rows: Rows, kind: str, row_seq: int) -> None:
    """Removes every vector of a row, of every model. Those of passages go with their passages, by a trigger."""
    for seq, model in _of_row(rows, kind, row_seq):
        vector_tables.delete_vectors(rows, kind, model, [seq])
        rows.run("delete from vectors where seq = :seq", seq=seq)
    rows.run("delete from embed_again where kind = :kind and row_seq = :row", kind=kind, row=row_seq)


def again(rows: Rows, kind: str, row_seq: int) -> None:
    """Removes the vectors of a memory or passage whose words have changed; each model makes it a new one."""
    delete_for(rows, kind, row_seq)
    for (model,) in rows.all("select seq from vector_models order by seq"):
        if row_seq <= cursors.cursor(rows, f"embed-{kind}", str(model)):
            rows.run(
                "insert into embed_again (model_seq, kind, row_seq) values (:model, :kind, :row) on conflict do nothing",
                model=model,
                kind=kind,
                row=row_seq,
            )


def begin_anew(rows: Rows) -> None:
    """Removes every vector of every model; what is stored waits to be embedded again."""
    models = rows.all("select seq, dim from vector_models order by seq")
    for model, _ in models:
        vector_tables.drop_vector_tables(rows, model)
        for kind in KINDS:
            cursors.move_cursor(rows, f"embed-{kind}", str(model), 0)
    rows.run("delete from vectors")
    rows.run("delete from embed_again")
    vector_tables.complete_vector_tables(rows)


def problems(rows: Rows) -> list[str]:
    """Which vectors have no row or stand with another project, and which rows lack theirs; empty when all is sound."""
    found: list[str] = []
    for (model,) in rows.all("select seq from vector_models order by seq"):
        for kind in (*KINDS, *vector_tables.OLD_KINDS):
            if vector_tables.has_table(rows, kind, int(model)):
                found += _problems(rows, kind, int(model))
    return found


def _problems(rows: Rows, kind: str, model: int) -> list[str]:
    table = {**_TABLES, **_OLD_TABLES}[kind]
    listed = {
        int(seq): None if project is None else int(project)
        for seq, project in rows.all(
            "select v.seq, b.project_seq from vectors v "  # noqa: S608
            f"left join {table} b on b.seq = v.row_seq where v.kind = :kind and v.model_seq = :model",
            kind=kind,
            model=model,
        )
    }
    stored = vector_tables.stored_vectors(rows, kind, model)
    orphans = sum(project is None for project in listed.values())
    coded = vector_tables.stored_signs(rows, kind, model)
    astray = sum(listed[seq] not in (None, stored[seq]) for seq in listed.keys() & stored.keys())
    skipped = (
        0
        if kind in _OLD_TABLES
        else rows.value(
            _SKIPPED[kind], kind=kind, model=model, reached=cursors.cursor(rows, f"embed-{kind}", str(model))
        )
    )
    return [
        text
        for count, text in (
            (orphans, f"vectors: {orphans} of model {model} are of a {kind} that is gone"),
            (
                len(listed.keys() ^ stored.keys()),
                f"vectors: {len(listed.keys() ^ stored.keys())} of model {model} stand in one of two {kind} tables only",
            ),
            (
                len(coded ^ stored.items()),
                f"vectors: {len(coded ^ stored.items())} of model {model} lack their signs, or have no more of a {kind}",
            ),
            (astray, f"vectors: {astray} of model {model} stand with another project than their {kind}"),
            (skipped, f"vectors: {skipped} of kind {kind} were passed by and have none of model {model}"),
        )
        if count
    ]
