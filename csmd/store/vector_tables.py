"""The vectors themselves, in sqlite-vec's own way; another backend would have a twin of this module.

Each is stored whole, in a table of its model and kind, and by its signs: one bit for each number. Of few vectors all
are compared whole; of many only those whose signs are the nearest, so that a question does not read all of a large store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from csmd.errors import StoreError
from csmd.store.sqlite import Row, Rows

#: vec0 allocates a whole chunk for each partition: 64 keeps a hundred projects at 10 MB, not 158 (facts: dependencies).
VECTOR_CHUNK_ROWS = 64
VECTOR_KINDS = ("memory", "passage")
#: Kept in a store of before passages until every passage has a vector (passage_index.py).
OLD_KINDS = ("turn",)
#: So many vectors are compared whole: 0.5 ms a thousand. Of more only those of the nearest signs, at least so many: a comparison
#: of signs takes a quarter of that. Of real vectors the true first ten are among them by .99 in 50,000 (docs/benchmarks.md).
WHOLE, NEAREST_SIGNS = 20_000, 1600


def vector_table(kind: str, model_seq: int) -> str:
    """The vec0 table of one model's vectors for memories, passages or, in an older store, turns."""
    if kind not in (*VECTOR_KINDS, *OLD_KINDS):
        raise StoreError(f"no vectors are kept for {kind!r}")
    return f"vec_{kind}_{int(model_seq)}"


def create_vector_tables(rows: Rows, model_seq: int, dim: int, *, kinds: Sequence[str] = VECTOR_KINDS) -> None:
    """Makes the tables for a model's vectors, those that are not there; int8, partitioned by project.

    A passage goes with its turn, by a foreign key: so a trigger, not a caller, takes its vector and signs along.
    """
    for kind in kinds:
        rows.run(
            f"create virtual table if not exists {vector_table(kind, model_seq)} using vec0("
            f"project_seq integer partition key, embedding int8[{int(dim)}], chunk_size={VECTOR_CHUNK_ROWS})"
        )
    table = vector_table("passage", model_seq)
    rows.run(
        f"create trigger if not exists {table}_delete after delete on vectors "  # noqa: S608
        f"when old.kind = 'passage' and old.model_seq = {int(model_seq)} begin "
        f"delete from vector_codes where model_seq = {int(model_seq)} and kind = 'passage' and seq = old.seq "
        f"and project_seq = (select project_seq from {table} where rowid = old.seq); "
        f"delete from {table} where rowid = old.seq; end"
    )


def complete_vector_tables(rows: Rows) -> None:
    """Makes the tables of kinds that a store's models have not had: those of a migration."""
    if rows.value("select 1 from sqlite_schema where name = 'vector_models'"):
        for model, dim in rows.all("select seq, dim from vector_models order by seq"):
            create_vector_tables(rows, int(model), int(dim))


def has_table(rows: Rows, kind: str, model_seq: int) -> bool:
    """Whether a model's vectors of this kind have a table: those of turns may have been dropped."""
    name = vector_table(kind, model_seq)
    return rows.value("select 1 from sqlite_schema where type = 'table' and name = :name", name=name) is not None


def insert_vector(rows: Rows, kind: str, model_seq: int, seq: int, project_seq: int, vector: bytes) -> None:
    """Stores one vector under its row in `vectors`, and its signs."""
    rows.run(
        f"insert into {vector_table(kind, model_seq)} (rowid, project_seq, embedding) "  # noqa: S608
        "values (:seq, :project, vec_int8(:vector))",
        seq=seq,
        project=project_seq,
        vector=vector,
    )
    rows.run(
        "insert into vector_codes (model_seq, kind, project_seq, seq, code) "
        "values (:model, :kind, :project, :seq, :code)",
        model=model_seq,
        kind=kind,
        project=project_seq,
        seq=seq,
        code=signs(vector),
    )


def signs(vector: bytes) -> bytes:
    """One bit for each of a vector's signed bytes, 1 above zero."""
    bits = sum(1 << at for at, number in enumerate(vector) if 0 < number < 128)
    return bits.to_bytes((len(vector) + 7) // 8, "little")


def vector_of(rows: Rows, kind: str, model_seq: int, seq: int) -> bytes | None:
    """One vector by its row in `vectors`; None where it is gone."""
    found = rows.value(f"select embedding from {vector_table(kind, model_seq)} where rowid = :seq", seq=seq)  # noqa: S608
    return None if found is None else bytes(found)


def delete_vectors(rows: Rows, kind: str, model_seq: int, seqs: Sequence[int]) -> None:
    """Removes vectors by their rows in `vectors`."""
    table = vector_table(kind, model_seq)
    for seq in seqs:
        project = rows.value(f"select project_seq from {table} where rowid = :seq", seq=seq)  # noqa: S608
        rows.run(
            "delete from vector_codes where model_seq = :model and kind = :kind and project_seq = :project and seq = :seq",
            model=model_seq,
            kind=kind,
            project=project,
            seq=seq,
        )
        rows.run(f"delete from {table} where rowid = :seq", seq=seq)  # noqa: S608


def stored_vectors(rows: Rows, kind: str, model_seq: int) -> dict[int, int]:
    """The rows in `vectors` that have a vector here, each with the project in whose partition it stands."""
    table = vector_table(kind, model_seq)
    return dict(rows.all(f"select rowid, project_seq from {table}"))  # noqa: S608


def stored_signs(rows: Rows, kind: str, model_seq: int) -> set[tuple[int, int]]:
    """(row in `vectors`, project) of the vectors whose signs are kept."""
    return set(
        rows.all(
            "select seq, project_seq from vector_codes where model_seq = :model and kind = :kind",
            model=model_seq,
            kind=kind,
        )
    )


def drop_vector_tables(rows: Rows, model_seq: int) -> None:
    """Removes the tables of a model's vectors."""
    rows.run(f"drop trigger if exists {vector_table('passage', model_seq)}_delete")
    for kind in (*VECTOR_KINDS, *OLD_KINDS):
        rows.run(f"drop table if exists {vector_table(kind, model_seq)}")
    rows.run("delete from vector_codes where model_seq = :model", model=model_seq)


def move_vector(rows: Rows, kind: str, model_seq: int, seq: int, project_seq: int) -> None:
    """Puts one vector into another project's partition."""
    table = vector_table(kind, model_seq)
    vector = rows.value(f"select embedding from {table} where rowid = :seq", seq=seq)  # noqa: S608
    delete_vectors(rows, kind, model_seq, [seq])
    insert_vector(rows, kind, model_seq, seq, project_seq, vector)


def vector_hits(
    rows: Rows, kind: str, model_seq: int, vector: bytes, *, projects: Sequence[int] | None, limit: int
) -> list[Row]:
    """(row seq, start, end, squared distance) of the rows nearest to `vector`; `projects` None is all.

    [] for turns of a store that keeps no vectors of them any more.
    """
    table = vector_table(kind, model_seq)
    found: list[Row] = []
    if kind in OLD_KINDS and not has_table(rows, kind, model_seq):
        return found
    for project in [None] if projects is None else projects:
        scope = "" if project is None else "and project_seq = :project"
        values: dict[str, Any] = {} if project is None else {"project": project}
        near = f"select rowid, distance from {table} where embedding match vec_int8(:vector) and k = :limit {scope}"  # noqa: S608
        among = f"from vector_codes where model_seq = :model and kind = :kind {scope}"
        of = {"model": model_seq, "kind": kind, **values}
        many = int(rows.value(f"select count(*) from (select 1 {among} limit :most)", most=WHOLE + 1, **of))  # noqa: S608
        if not many:  # vec0 would read the list of all chunks
            continue
        if many > WHOLE:
            signed = rows.all(
                f"select seq {among} order by vec_distance_hamming(vec_bit(code), vec_bit(:code)) limit :most",
                code=signs(vector),
                most=max(NEAREST_SIGNS, 2 * limit),
                **of,
            )
            # Row by row, as they are stored: vec0 reads everything to find several.
            near = (
                "select v.rowid, vec_distance_l2(v.embedding, vec_int8(:vector)) as distance from json_each(:listed) listed "  # noqa: S608
                f"cross join {table} v on v.rowid = listed.value order by distance limit :limit"
            )
            values = {"listed": str(sorted(seq for (seq,) in signed))}
        found += rows.all(
            f"select v.row_seq, v.start_at, v.end_at, near.distance * near.distance from ({near}) near "  # noqa: S608
            "join vectors v on v.seq = near.rowid",
            vector=vector,
            limit=limit,
            **values,
        )
    return sorted(found, key=lambda row: (row[3], row[0]))[:limit]


def vector_distances(rows: Rows, kind: str, model_seq: int, vector: bytes, row_seqs: Sequence[int]) -> dict[int, float]:
    """Row key -> squared distance from `vector`, of those of these rows that have a vector; the nearest of several."""
    if not row_seqs:
        return {}
    keys = ", ".join(str(int(seq)) for seq in row_seqs)
    found = rows.all(
        "select v.row_seq, min(vec_distance_l2(t.embedding, vec_int8(:vector))) from vectors v "  # noqa: S608
        f"cross join {vector_table(kind, model_seq)} t on t.rowid = v.seq "
        f"where v.kind = :kind and v.row_seq in ({keys}) and v.model_seq = :model group by v.row_seq",
        vector=vector,
        kind=kind,
        model=model_seq,
    )
    return {int(seq): float(distance) ** 2 for seq, distance in found}
