"""Writes a home's shared rows to the team's server, and reads and searches those of colleagues.

A batch is written table by table, so it takes one round trip for each table, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from csmd.store import memories
from csmd.store.sqlite import Rows, in_keys
from csmd.team import postgres
from csmd.team.postgres import ServerRows
from csmd.vocabulary import NEVER

#: The columns of a memory in a record (csmd/store/exports.py).
COLUMNS = (
    "id", "text", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "session_id",
    "created_at", "confirmed_at", "used_at", "pinned", "superseded_by",
)  # fmt: skip
DAYS = ("hot_until", "warm_until", "archive_at")
#: Tables whose rows belong to a memory and are replaced with it.
_CHILDREN = ("provenance", "memory_topics", "symptoms", "refutations", "scenes", "vectors")
_OWN = "(select seq from memories where id = any(:ids) and author = session_user)"
#: The given rows, each joined to this role's memory of that id.
_JOINED = "TABLE join memories m on m.id = v.id and m.author = session_user"
#: A memory that colleagues may see: a person's, and not superseded.
_IS_SHARED = "(m.authority = 'user' or m.pinned = 1) and m.superseded_by = '' and m.tier <> 'archive' and m.twin_of = 0"
#: The constant of reciprocal rank fusion, by which ranks of words and of vectors are combined.
FUSION_CONSTANT = 60
#: Table -> the columns of its rows, in the order of a record's lists.
_LISTS = {
    "provenance": ("uuid", "session_id", "at", "role"), "symptoms": ("uuid", "at", "text", "fingerprint"),
    "refutations": ("uuid", "at", "reason", "lowered"), "scenes": ("uuid", "text"),
}  # fmt: skip
#: Table -> its field in a record, if that has another name.
_FIELDS = {"provenance": "sources", "scenes": "scene"}


# --- sending


def put_projects(rows: Rows, shares: Iterable[Mapping[str, Any]], withdrawn: Iterable[str]) -> dict[str, int]:
    """Replaces this role's shared projects and their readers, and returns their row keys by name."""
    for name in withdrawn:
        rows.run("delete from projects where author = session_user and name = :name", name=name)
    seqs: dict[str, int] = {}
    for share in shares:
        rows.upsert("projects", "author, name", **{name: share[name] for name in ("name", "workspace", "readers")})
        sql = "select seq from projects where author = session_user and name = :name"
        seqs[share["name"]] = rows.number(sql, name=share["name"])
    return seqs


def put_memories(rows: ServerRows, records: Sequence[Mapping[str, Any]], projects: Mapping[str, int]) -> None:
    """Writes memories with all that belongs to them, replacing those with the same ids."""
    names = ("project_seq", *COLUMNS, *DAYS)
    changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "id")
    upsert = (
        f"insert into memories ({', '.join(names)}) select * from TABLE on conflict (author, id) "  # noqa: S608
        f"do update set {changed}, version = memories.version + 1, changed = pg_current_xact_id()"
    )
    rows.with_table(upsert, names, [_column_values(record, projects) for record in records])
    ids = [record["id"] for record in records]
    for table in _CHILDREN:
        rows.run(f"delete from {table} where memory_seq in {_OWN}", ids=ids)  # noqa: S608
    rows.run(f"delete from links where from_seq in {_OWN} or to_seq in {_OWN}", ids=ids)  # noqa: S608
    rows.run("delete from belief_changes where memory_id = any(:ids) and author = session_user", ids=ids)
    delete_marks = (
        "delete from gone g using memories m where g.id = m.id and g.project_seq = m.project_seq "
        "and m.id = any(:ids) and g.author = session_user and m.author = session_user"
    )
    rows.run(delete_marks, ids=ids)
    for table, columns in _LISTS.items():
        lists = ((record["id"], row) for record in records for row in record[_FIELDS.get(table, table)])
        children = [{"id": memory_id, **dict(zip(columns, row, strict=True))} for memory_id, row in lists]
        values = ", ".join(f"v.{name}" for name in columns)
        sql = f"insert into {table} (memory_seq, {', '.join(columns)}) select m.seq, {values} from {_JOINED}"  # noqa: S608
        rows.with_table(sql, ("id", *columns), children)
    _put_tags(rows, records)
    _put_links(rows, records)
    _put_changes(rows, records)
    _put_vectors(rows, records)


def _put_tags(rows: ServerRows, records: Sequence[Mapping[str, Any]]) -> None:
    names = ("id", "name", "by_whom", "weight")
    tags = [dict(zip(names, (record["id"], *tag), strict=True)) for record in records for tag in record["tags"]]
    topics = (
        "insert into topics (project_seq, name) "  # noqa: S608
        f"select distinct m.project_seq, v.name from {_JOINED} on conflict do nothing"
    )
    rows.with_table(topics, ("id", "name"), tags)
    rows.with_table(
        "insert into memory_topics (memory_seq, topic_seq, by_whom, weight) select m.seq, t.seq, v.by_whom, v.weight "  # noqa: S608
        f"from {_JOINED} join topics t on t.name = v.name and t.project_seq = m.project_seq on conflict do nothing",
        names,
        tags,
    )


def _put_links(rows: ServerRows, records: Sequence[Mapping[str, Any]]) -> None:
    """A link is sent with each of its ends; with the later one both exist."""
    names = ("from_id", "to_id", "relationship", "weight", "at")
    edges = [dict(zip(names, edge, strict=True)) for record in records for edge in record["edges"]]
    rows.with_table(
        "insert into links (from_seq, to_seq, relationship, weight, created_at) "
        "select a.seq, b.seq, v.relationship, v.weight, v.at from TABLE "
        "join memories a on a.id = v.from_id join memories b on b.id = v.to_id "
        "where a.author = session_user and b.author = session_user on conflict do nothing",
        names,
        edges,
    )


def _put_changes(rows: ServerRows, records: Sequence[Mapping[str, Any]]) -> None:
    names = ("id", "change", "before", "after", "reason", "by", "at", "undone_at")
    columns = "memory_id, change, before, after, reason, by_whom, at, undone_at"
    changes = [{"id": record["id"], **change} for record in records for change in record["changes"]]
    rows.with_table(f"insert into belief_changes ({columns}) select * from TABLE", names, changes)  # noqa: S608


def _put_vectors(rows: ServerRows, records: Sequence[Mapping[str, Any]]) -> None:
    seqs: dict[tuple[str, int], int] = {}
    vectors = []
    for record in records:
        for name, start, end, digits in record["vectors"]:
            vector = bytes.fromhex(digits)
            model = name, len(vector)
            seqs[model] = seqs.get(model) or postgres.ensure_model(rows, *model)
            part = {"start": start, "until": end, "vector": postgres.format_vector(vector)}
            vectors.append({"id": record["id"], "model": seqs[model], **part})
    rows.with_table(
        "insert into vectors (memory_seq, model_seq, start_at, end_at, embedding) "  # noqa: S608
        f"select m.seq, v.model, v.start, v.until, cast(v.vector as halfvec) from {_JOINED} on conflict do nothing",
        ("id", "model", "start", "until", "vector"),
        vectors,
    )


def _column_values(record: Mapping[str, Any], projects: Mapping[str, int]) -> dict[str, Any]:
    days = {name: NEVER if left is None else left for name, left in record["days_left"].items()}
    return {"project_seq": projects[record["share"]], **{name: record[name] for name in COLUMNS}, **days}


def put_digest(rows: Rows, digest: Mapping[str, Any], projects: Mapping[str, int]) -> None:
    """Replaces the digests of a session, all versions."""
    session = {name: digest[name] for name in ("id", "parent", "host", "last_at")}
    rows.upsert("sessions", "author, id", project_seq=projects[digest["share"]], **session)
    seq = rows.number("select seq from sessions where author = session_user and id = :id", id=digest["id"])
    rows.delete("digests", session_seq=seq)
    names = ("kind", "text", "uuid", "state", "amount")
    insert = (
        "insert into digest_items (digest_seq, kind, text, uuid, state, amount) "
        "values (:digest, :kind, :text, :uuid, :state, :amount)"
    )
    for version in digest["versions"]:
        values = {name: value for name, value in version.items() if name != "items"}
        digest_seq = rows.insert_keyed("digests", session_seq=seq, **values)
        items = [{"digest": digest_seq, **dict(zip(names, item, strict=True))} for item in version["items"]]
        rows.many(insert, items)


# --- receiving


def list_visible_projects(rows: Rows) -> list[dict[str, Any]]:
    """Returns the colleagues' projects that one may read: row key, author, name, workspace."""
    projects = rows.all("select seq, author, name, workspace from projects where author <> session_user order by seq")
    return [dict(zip(("seq", "author", "name", "workspace"), row, strict=True)) for row in projects]


def list_changes_since(rows: Rows, project: int, *, xid: int, item: int, limit: int) -> list[dict[str, Any]]:
    """Returns the changes in a project past a cursor, in the order of receipt: memories as records, and deleted ids.

    Each has its cursor, `xid` and `item`. The changes of a running transaction are past every cursor that is returned
    before it ends, so none is missed.
    """
    versions = rows.all(
        "select changed, item, kind, seq, id from ("
        "select m.changed, 2 * m.seq as item, 'memory' as kind, m.seq, m.id from memories m "
        "where m.project_seq = :project "
        "union all select g.changed, 2 * g.seq + 1, 'gone', g.seq, g.id from gone g where g.project_seq = :project) c "
        "where changed < pg_snapshot_xmin(pg_current_snapshot()) and (changed > cast(cast(:xid as text) as xid8) "
        "or (changed = cast(cast(:xid as text) as xid8) and item > :item)) order by changed, item limit :limit",
        project=project, xid=xid, item=item, limit=limit,
    )  # fmt: skip
    records = _read_records(rows, [seq for _, _, kind, seq, _ in versions if kind == "memory"])
    return [
        {"xid": int(xid), "item": item, "id": memory_id, "record": records.get(seq) if kind == "memory" else None}
        for xid, item, kind, seq, memory_id in versions
    ]


def _read_records(rows: Rows, seqs: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Returns the visible memories as records, by row key."""
    if not seqs:
        return {}
    names = [*COLUMNS, *DAYS]
    columns_sql, is_listed = ", ".join(f"m.{name}" for name in names), in_keys("memory_seq", seqs)
    stored = rows.all(
        f"select m.seq, {columns_sql} from memories m where {in_keys('m.seq', seqs)} and {_IS_SHARED}"  # noqa: S608
    )
    lists = {}
    for table, columns in _LISTS.items():
        sql = f"select memory_seq, {', '.join(columns)} from {table} where {is_listed} order by memory_seq, uuid"  # noqa: S608
        lists[table] = rows.grouped(sql)
    tags = rows.grouped(
        "select memory_seq, t.name, by_whom, weight from memory_topics join topics t on t.seq = topic_seq "  # noqa: S608
        f"where {is_listed} order by 1, 2"
    )
    records = {}
    for seq, *values in stored:
        record = dict(zip(names, values, strict=True))
        days = {name: record.pop(name) for name in DAYS}
        records[seq] = {
            **record, "days_left": {name: None if value >= NEVER else value for name, value in days.items()},
            **{_FIELDS.get(table, table): lists[table][seq] for table in _LISTS}, "tags": tags[seq], "links": [], "changes": [],
        }  # fmt: skip
    return records


# --- searching


def search(
    rows: Rows, words: Sequence[str], *, workspace: str, model: str, vector: bytes, limit: int
) -> list[dict[str, Any]]:
    """Returns the visible memories and digests that match these words or a vector (b"": none), the best first.

    Ranks by words and by vectors are added. Superseded and archived memories are left out, and those of another
    workspace than `workspace` in their author's home.
    """
    projects = rows.column("select seq from projects where workspace in ('', :workspace)", workspace=workspace)
    memory_hits = postgres.text_hits(rows, "memory", words, projects=projects, limit=2 * limit)
    session_hits = postgres.text_hits(rows, "session", words, projects=projects, limit=limit)
    nearest = postgres.vector_hits(rows, model, vector, projects=projects, limit=2 * limit) if vector else []
    score: dict[tuple[str, int], float] = {}
    for kind, hits_of_kind in (("memory", memory_hits), ("session", session_hits), ("memory", nearest)):
        for rank, (seq, *_) in enumerate(hits_of_kind):
            score[kind, int(seq)] = score.get((kind, int(seq)), 0.0) + 1 / (FUSION_CONSTANT + rank)
    keys = {kind: [seq for of, seq in score if of == kind] for kind in ("memory", "session")}
    matches = memories.by_seqs(rows, keys["memory"]).values()
    active_memories = {memory.seq: memory for memory in matches if memory.is_alive}
    owner_rows = rows.all(
        "select m.seq, m.author, p.name from memories m join projects p on p.seq = m.project_seq "  # noqa: S608
        f"where {in_keys('m.seq', keys['memory'])}"
    )
    owners = {seq: (author, name) for seq, author, name in owner_rows}
    digest_rows = rows.all(
        "select d.seq, d.text, d.at, s.id, p.author, p.name from digests d "  # noqa: S608
        "join sessions s on s.seq = d.session_seq join projects p on p.seq = s.project_seq "
        f"where {in_keys('d.seq', keys['session'])}"
    )
    digests = {seq: row for seq, *row in digest_rows}
    hits: list[dict[str, Any]] = []
    for kind, seq in sorted(score, key=lambda key: (-score[key], key)):
        if kind == "memory" and seq in active_memories:
            memory, (author, name) = active_memories[seq], owners[seq]
            hits.append({
                "kind": kind, "id": memory.id, "text": memory.text, "author": author, "project": name,
                "at": memory.confirmed_at, "gate": memory.gate, "authority": memory.authority, "session": memory.session_id,
            })  # fmt: skip
        elif kind == "session" and seq in digests:
            text, at, session, author, name = digests[seq]
            hits.append({
                "kind": kind, "id": session, "text": text, "author": author, "project": name, "at": at, "gate": "",
                "authority": "", "session": session,
            })  # fmt: skip
    return hits[:limit]
