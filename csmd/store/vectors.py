"""Vectors of memories and passages by model (sqlite-vec).

Each vector is stored whole, in a table of its model and kind, and as signs, one bit for each number. Few vectors are
all compared whole; of many only those with the nearest signs, so that a question does not read all of a large store.
Vectors of a new model are added next to the old ones, and a query uses one model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from csmd.errors import StoreError
from csmd.store import cursors
from csmd.store.fulltext import PASSAGE_TEXT
from csmd.store.sqlite import IS_LISTED, Row, Rows, listed

#: vec0 allocates a whole chunk for each partition: 64 keeps a hundred projects at 10 MB, not 158.
VECTOR_CHUNK_ROWS = 64
#: Kind -> the table of its rows, in the order in which they are embedded.
_TABLES = {"memory": "memories", "passage": "passages"}
VECTOR_KINDS = tuple(_TABLES)
#: Up to so many vectors are compared whole, at 0.5 ms a thousand.
MAX_WHOLE_VECTORS = 20_000
#: Of more vectors only this many with the nearest signs are: comparing signs takes a quarter of the time. In 50,000
#: real vectors 99 % of the true nearest ten are among them (docs/benchmarks.md).
NEAREST_SIGNS = 1600
#: Kind -> its words and tables; `p` is the row itself.
_WORDS = {
    "memory": "p.text from memories p",
    "passage": f"{PASSAGE_TEXT} from passages p join turns t on t.seq = p.turn_seq",
}
# --- the tables of one model


def make_table_name(kind: str, model_seq: int) -> str:
    """Returns the vec0 table of one model's vectors for memories or passages."""
    if kind not in VECTOR_KINDS:
        raise StoreError(f"no vectors are kept for {kind!r}")
    return f"vec_{kind}_{int(model_seq)}"


def create_vector_tables(rows: Rows, model_seq: int, dim: int) -> None:
    """Creates the missing tables of a model's vectors: int8, partitioned by project.

    A foreign key deletes a passage with its turn, so a trigger deletes its vector and signs.
    """
    for kind in VECTOR_KINDS:
        rows.run(
            f"create virtual table if not exists {make_table_name(kind, model_seq)} using vec0("
            f"project_seq integer partition key, embedding int8[{int(dim)}], chunk_size={VECTOR_CHUNK_ROWS})"
        )
    table = make_table_name("passage", model_seq)
    sql = f"""create trigger if not exists {table}_delete after delete on vectors when old.kind = 'passage'
        and old.model_seq = {int(model_seq)} begin delete from vector_codes where model_seq = {int(model_seq)}
        and kind = 'passage' and seq = old.seq and project_seq = (select project_seq
        from {table} where rowid = old.seq); delete from {table} where rowid = old.seq; end"""  # noqa: S608
    rows.run(sql)


def ensure_model(rows: Rows, name: str, dim: int, *, now: str) -> int:
    """Returns the row key of an embedding model, whose tables are created if it is new.

    Raises StoreError if the model of that name has vectors of another length.
    """
    stored = rows.first("select seq, dim from vector_models where name = :name", name=name)
    if stored is None:
        model_seq = rows.insert_keyed("vector_models", name=name, dim=dim, created_at=now)
        create_vector_tables(rows, model_seq, dim)
        return model_seq
    seq, known_dim = stored
    if known_dim != dim:
        raise StoreError(
            f"the model {name} makes {dim} numbers a vector, the vectors stored under its name have {known_dim}",
            hint="add it under another name: csmd model add",
        )
    return int(seq)


def find_model(rows: Rows, name: str) -> int | None:
    """Returns the row key of a model with vectors, or None."""
    return rows.key("select seq from vector_models where name = :name", name=name)


# --- one vector


def compute_signs(vector: bytes) -> bytes:
    """Returns one bit for each of a vector's signed bytes, 1 above zero."""
    bits = sum(1 << index for index, number in enumerate(vector) if 0 < number < 128)
    return bits.to_bytes((len(vector) + 7) // 8, "little")


def insert_vector(rows: Rows, kind: str, model_seq: int, seq: int, project_seq: int, vector: bytes) -> None:
    """Stores a vector and its signs under its row in `vectors`."""
    sql = (
        f"insert into {make_table_name(kind, model_seq)} (rowid, project_seq, embedding) values (:seq, :project, "  # noqa: S608
        "vec_int8(:vector))"
    )
    rows.run(sql, seq=seq, project=project_seq, vector=vector)
    rows.insert(
        "vector_codes", model_seq=model_seq, kind=kind, project_seq=project_seq, seq=seq, code=compute_signs(vector)
    )


def delete_vector(rows: Rows, kind: str, model_seq: int, seq: int) -> None:
    """Deletes a vector and its signs by its row in `vectors`."""
    table = make_table_name(kind, model_seq)
    project = rows.value(f"select project_seq from {table} where rowid = :seq", seq=seq)  # noqa: S608
    sql = "delete from vector_codes where model_seq = :model and kind = :kind and project_seq = :project and seq = :seq"
    rows.run(sql, model=model_seq, kind=kind, project=project, seq=seq)
    rows.run(f"delete from {table} where rowid = :seq", seq=seq)  # noqa: S608


def _read_vector(rows: Rows, kind: str, model_seq: int, seq: int) -> bytes | None:
    sql = f"select embedding from {make_table_name(kind, model_seq)} where rowid = :seq"  # noqa: S608
    vector: bytes | None = rows.value(sql, seq=seq)
    return vector


# --- what has a vector, and what waits for one


def read_backlog(rows: Rows, kind: str, model: int, *, limit: int) -> list[tuple[int, int, str]]:
    """Returns (row key, project, text) of the next rows without a vector of this model, first those that had one."""
    selected = f"select p.seq, p.project_seq, {_WORDS[kind]}"
    sql = f"""{selected} join embed_again a on a.row_seq = p.seq
        where a.model_seq = :model and a.kind = :kind order by a.row_seq limit :limit"""
    changed = rows.all(sql, model=model, kind=kind, limit=limit)
    after = cursors.read_cursor(rows, f"embed-{kind}", str(model))
    return changed or rows.all(f"{selected} where p.seq > :after order by p.seq limit :limit", after=after, limit=limit)


def count_waiting(rows: Rows, model: int | None) -> int:
    """Returns the number of rows that wait for a vector of this model."""
    counted = ((f"select count(*) from ({waiting})", values) for waiting, values in _make_waiting_queries(rows, model))  # noqa: S608
    return sum(rows.number(sql, **values) for sql, values in counted)


def has_waiting(rows: Rows, model: int | None) -> bool:
    """Whether a row waits for a vector of this model."""
    return any(rows.value(f"{waiting} limit 1", **values) for waiting, values in _make_waiting_queries(rows, model))


def _make_waiting_queries(rows: Rows, model: int | None) -> list[tuple[str, dict[str, int]]]:
    """Returns queries for the rows that wait for a vector of a model, with their values."""
    again = "select 1 from embed_again where kind in ('memory', 'passage') and model_seq = :model"
    return [(again, {"model": model or 0})] + [
        (f"select 1 from {table} where seq > :after", {"after": find_embedded_position(rows, kind, model)})  # noqa: S608
        for kind, table in _TABLES.items()
    ]


def find_embedded_position(rows: Rows, kind: str, model: int | None) -> int:
    """Returns the row key up to which rows of a kind have vectors of a model."""
    return 0 if model is None else cursors.read_cursor(rows, f"embed-{kind}", str(model))


def add_vectors(
    rows: Rows,
    kind: str,
    model: int,
    passages: Sequence[tuple[int, int, int, int, bytes]],
    *,
    reached: int,
    texts: Mapping[int, str] | None = None,
) -> int:
    """Stores (row, project, start, end, vector), moves the cursor to `reached` and returns how many were new.

    Rows that were deleted or whose text changed (`texts`, by row key) are skipped; a moved row gets its vector where it is.
    """
    added = 0
    table = _TABLES[kind]
    words_of = f"select {_WORDS[kind]} where p.seq = :seq"
    changed = {seq for seq, words in (texts or {}).items() if rows.value(words_of, seq=seq) != words}
    for seq in (texts or {}).keys() - changed:
        sql = "delete from embed_again where model_seq = :model and kind = :kind and row_seq = :row"
        if rows.run(sql, model=model, kind=kind, row=seq) and kind == "passage":  # it is linked again
            rows.insert("embed_again", "on conflict do nothing", model_seq=model, kind="thread", row_seq=seq)
    for row_seq, _, start, end, vector in passages:
        project = rows.value(f"select project_seq from {table} where seq = :seq", seq=row_seq)  # noqa: S608
        if project is None or row_seq in changed:
            continue
        vector_seq = rows.insert_keyed(
            "vectors", "on conflict do nothing", model_seq=model, kind=kind, row_seq=row_seq, start_at=start, end_at=end
        )
        if vector_seq:
            insert_vector(rows, kind, model, vector_seq, project, vector)
            added += 1
    if reached > cursors.read_cursor(rows, f"embed-{kind}", str(model)):
        cursors.move_cursor(rows, f"embed-{kind}", str(model), reached)
    return added


def move_vectors(rows: Rows, kind: str, row_seq: int, project: int) -> None:
    """Moves every vector of a row to the partition of the row's new project."""
    for seq, model in _list_keys_of_row(rows, kind, row_seq):
        vector = _read_vector(rows, kind, model, seq)
        delete_vector(rows, kind, model, seq)
        if vector is not None:
            insert_vector(rows, kind, model, seq, project, vector)


def move_passages(rows: Rows, turn_seq: int, project: int) -> None:
    """Moves every vector of a turn's passages to the partition of its new project."""
    for passage in rows.column("select seq from passages where turn_seq = :turn", turn=turn_seq):
        move_vectors(rows, "passage", passage, project)


def read_vectors_of_row(rows: Rows, kind: str, row_seq: int, *, model: int) -> list[bytes]:
    """Returns the vectors of a row by one model."""
    own = [
        _read_vector(rows, kind, model, seq)
        for seq, vector_model in _list_keys_of_row(rows, kind, row_seq)
        if vector_model == model
    ]
    return [vector for vector in own if vector is not None]


def read_parts_of_row(rows: Rows, kind: str, row_seq: int) -> list[tuple[str, int, int, bytes]]:
    """Returns (model's name, start, end, vector) of every part of a row, of every model."""
    sql = """select v.seq, v.model_seq, n.name, v.start_at, v.end_at from vectors v join vector_models n
        on n.seq = v.model_seq where v.kind = :kind and v.row_seq = :row order by n.name, v.start_at"""
    parts = rows.all(sql, kind=kind, row=row_seq)
    vectors = [(name, start, end, _read_vector(rows, kind, model, seq)) for seq, model, name, start, end in parts]
    return [(name, start, end, vector) for name, start, end, vector in vectors if vector is not None]


def _list_keys_of_row(rows: Rows, kind: str, row_seq: int) -> list[tuple[int, int]]:
    """Returns (row key, model) of a row's vectors."""
    return rows.all("select seq, model_seq from vectors where kind = :kind and row_seq = :row", kind=kind, row=row_seq)


def delete_of_row(rows: Rows, kind: str, row_seq: int) -> None:
    """Deletes every vector of a memory, of every model; a trigger deletes a passage's."""
    for seq, model in _list_keys_of_row(rows, kind, row_seq):
        delete_vector(rows, kind, model, seq)
        rows.delete("vectors", seq=seq)
    rows.delete("embed_again", kind=kind, row_seq=row_seq)


def reembed(rows: Rows, kind: str, row_seq: int) -> None:
    """Deletes the vectors of a memory or passage whose text changed; each model makes a new one."""
    delete_of_row(rows, kind, row_seq)
    for model in rows.column("select seq from vector_models order by seq"):
        if row_seq <= cursors.read_cursor(rows, f"embed-{kind}", str(model)):
            rows.insert("embed_again", "on conflict do nothing", model_seq=model, kind=kind, row_seq=row_seq)


def reset_vectors(rows: Rows) -> None:
    """Deletes every vector of every model; every row waits to be embedded again."""
    models = rows.all("select seq, dim from vector_models order by seq")
    for model, _ in models:
        rows.run(f"drop trigger if exists {make_table_name('passage', model)}_delete")
        for kind in VECTOR_KINDS:
            rows.run(f"drop table if exists {make_table_name(kind, model)}")
            cursors.move_cursor(rows, f"embed-{kind}", str(model), 0)
    # A dream identifies vectors by their row keys, which start again.
    for table in ("vector_codes", "vectors", "embed_again", "dreamt_scopes"):
        rows.run(f"delete from {table}")  # noqa: S608
    for model, dim in models:
        create_vector_tables(rows, model, dim)


# --- what is near


def find_vector_hits(
    rows: Rows, kind: str, model_seq: int, vector: bytes, *, projects: Sequence[int] | None, limit: int
) -> list[Row]:
    """Returns (row key, start, end, squared distance) of the rows nearest to `vector` in `projects` (None: all)."""
    table = make_table_name(kind, model_seq)
    hits: list[Row] = []
    for project in [None] if projects is None else projects:
        scope = "" if project is None else "and project_seq = :project"
        values: dict[str, Any] = {} if project is None else {"project": project}
        near = f"select rowid, distance from {table} where embedding match vec_int8(:vector) and k = :limit {scope}"  # noqa: S608
        among = f"from vector_codes where model_seq = :model and kind = :kind {scope}"
        of_model = {"model": model_seq, "kind": kind, **values}
        sql = f"select count(*) from (select 1 {among} limit :most)"  # noqa: S608
        many = rows.number(sql, most=MAX_WHOLE_VECTORS + 1, **of_model)
        if not many:  # vec0 would read the list of all chunks
            continue
        if many > MAX_WHOLE_VECTORS:
            sql = f"select seq {among} order by vec_distance_hamming(vec_bit(code), vec_bit(:code)) limit :most"
            signed = rows.all(sql, code=compute_signs(vector), most=max(NEAREST_SIGNS, 2 * limit), **of_model)
            # One row at a time, in storage order: vec0 reads everything to find several.
            near = f"""select v.rowid,
                vec_distance_l2(v.embedding, vec_int8(:vector)) as distance from json_each(:listed) listed
                cross join {table} v on v.rowid = listed.value order by distance limit :limit"""  # noqa: S608
            values = {"listed": str(sorted(seq for (seq,) in signed))}
        sql = f"""select v.row_seq, v.start_at, v.end_at, near.distance * near.distance
            from ({near}) near join vectors v on v.seq = near.rowid"""  # noqa: S608
        hits += rows.all(sql, vector=vector, limit=limit, **values)
    return sorted(hits, key=lambda row: (row[3], row[0]))[:limit]


def compute_distances(rows: Rows, kind: str, model: int, vector: bytes, row_seqs: Sequence[int]) -> dict[int, float]:
    """Returns the squared distance from `vector` to the nearest vector of each of these rows that has one."""
    sql = f"""select v.row_seq, min(vec_distance_l2(t.embedding, vec_int8(:vector)))
        from vectors v cross join {make_table_name(kind, model)} t on t.rowid = v.seq
        where v.kind = :kind and v.row_seq {IS_LISTED} and v.model_seq = :model group by v.row_seq"""  # noqa: S608
    squares = rows.all(sql, vector=vector, kind=kind, model=model, listed=listed(row_seqs))
    return {seq: distance**2 for seq, distance in squares}


# --- whether all is sound


def find_problems(rows: Rows) -> list[str]:
    """Lists vectors without a row or in a wrong partition, and rows without their vector; empty if sound."""
    return [
        problem
        for model in rows.column("select seq from vector_models order by seq")
        for kind in VECTOR_KINDS
        for problem in _find_problems(rows, kind, model)
    ]


def _find_problems(rows: Rows, kind: str, model: int) -> list[str]:
    of_model = {"kind": kind, "model": model}
    sql = f"""select v.seq, b.project_seq
        from vectors v left join {_TABLES[kind]} b on b.seq = v.row_seq where v.kind = :kind and v.model_seq = :model"""  # noqa: S608
    projects: dict[int, int | None] = dict(rows.all(sql, **of_model))
    stored: dict[int, int] = dict(rows.all(f"select rowid, project_seq from {make_table_name(kind, model)}"))  # noqa: S608
    coded = set(
        rows.all("select seq, project_seq from vector_codes where model_seq = :model and kind = :kind", **of_model)
    )
    sql = f"""select count(*) from {_TABLES[kind]} b where b.seq <= :reached and not exists (select 1
        from vectors v where v.kind = :kind and v.model_seq = :model and v.row_seq = b.seq) and not exists (select 1
        from embed_again a where a.kind = :kind and a.model_seq = :model and a.row_seq = b.seq)"""  # noqa: S608
    skipped = rows.value(sql, reached=find_embedded_position(rows, kind, model), **of_model)
    counts = {
        f"vectors: {{}} of model {model} are of a {kind} that is gone": list(projects.values()).count(None),
        f"vectors: of model {model} in one of two {kind} tables only: {{}}": len(projects.keys() ^ stored.keys()),
        f"vectors: of model {model} without signs or without a {kind}: {{}}": len(coded ^ stored.items()),
        f"vectors: {{}} of model {model} are in the partition of another project than their {kind}": sum(
            projects[seq] not in (None, stored[seq]) for seq in projects.keys() & stored.keys()
        ),
        f"vectors: {{}} of kind {kind} were skipped and have none of model {model}": skipped,
    }
    return [text.format(count) for text, count in counts.items() if count]
