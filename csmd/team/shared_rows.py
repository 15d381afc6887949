"""The rows on the team's server: sending one's own, receiving colleagues' changes, and searching.

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
_OWN = "(select seq from memories where id = any(:idents) and author = session_user)"
#: The given rows, each with one's own memory with its `id`.
_JOINED = "TABLE join memories m on m.id = v.id and m.author = session_user"
#: A memory that colleagues may see: a person's, and not superseded.
_TOLD = "(m.authority = 'user' or m.pinned = 1) and m.superseded_by = '' and m.tier <> 'archive' and m.twin_of = 0"
#: The constant of reciprocal rank fusion, by which ranks of words and of vectors are combined.
EVENED = 60


# --- what one sends


def put_projects(rows: Rows, shares: Iterable[Mapping[str, Any]], gone: Iterable[str]) -> dict[str, int]:
    """Replaces one's shared projects and their readers, and returns their row keys by name."""
    for name in gone:
        rows.run("delete from projects where author = session_user and name = :name", name=name)
    made: dict[str, int] = {}
    for share in shares:
        rows.upsert(
            "projects", "author, name", name=share["name"], workspace=share["workspace"], readers=share["readers"]
        )
        sql = "select seq from projects where author = session_user and name = :name"
        made[share["name"]] = rows.number(sql, name=share["name"])
    return made


def put_memories(rows: ServerRows, records: Sequence[Mapping[str, Any]], projects: Mapping[str, int]) -> None:
    """Writes memories with all that belongs to them, replacing those with the same ids."""
    names = ("project_seq", *COLUMNS, *DAYS)
    changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "id")
    rows.with_table(
        f"insert into memories ({', '.join(names)}) select * from TABLE "  # noqa: S608
        f"on conflict (author, id) do update set {changed}, version = memories.version + 1, changed = "
        "pg_current_xact_id()",
        names,
        [_values(record, projects) for record in records],
    )
    idents = [record["id"] for record in records]
    for table in _CHILDREN:
        rows.run(f"delete from {table} where memory_seq in {_OWN}", idents=idents)  # noqa: S608
    rows.run(f"delete from links where from_seq in {_OWN} or to_seq in {_OWN}", idents=idents)  # noqa: S608
    rows.run("delete from belief_changes where memory_id = any(:idents) and author = session_user", idents=idents)
    rows.run(
        "delete from gone g using memories m where g.id = m.id and g.project_seq = m.project_seq and m.id = "
        "any(:idents) "
        "and g.author = session_user and m.author = session_user",
        idents=idents,
    )
    for table, columns in _LISTS.items():
        lists = ((record["id"], row) for record in records for row in record[_FIELDS.get(table, table)])
        hanging = [{"id": ident, **dict(zip(columns, row, strict=True))} for ident, row in lists]
        _hang(rows, f"{table} (memory_seq, {', '.join(columns)})", columns, hanging)
    tags = [
        {"id": record["id"], "name": name, "by_whom": by, "weight": weight}
        for record in records
        for name, by, weight in record["tags"]
    ]
    rows.with_table(
        f"insert into topics (project_seq, name) select distinct m.project_seq, v.name from {_JOINED} on conflict do "  # noqa: S608
        "nothing",
        ("id", "name"),
        tags,
    )
    rows.with_table(
        "insert into memory_topics (memory_seq, topic_seq, by_whom, weight) select m.seq, t.seq, v.by_whom, v.weight "  # noqa: S608
        f"from {_JOINED} join topics t on t.name = v.name and t.project_seq = m.project_seq on conflict do nothing",
        ("id", "name", "by_whom", "weight"),
        tags,
    )
    # A link is sent with each of its ends; with the later one both are there.
    ends = ("from_id", "to_id", "relationship", "weight", "at")
    rows.with_table(
        "insert into links (from_seq, to_seq, relationship, weight, created_at) "
        "select a.seq, b.seq, v.relationship, v.weight, v.at from TABLE join memories a on a.id = v.from_id "
        "join memories b on b.id = v.to_id where a.author = session_user and b.author = session_user on conflict do "
        "nothing",
        ends,
        [dict(zip(ends, edge, strict=True)) for record in records for edge in record["edges"]],
    )
    noted = ("id", "change", "before", "after", "reason", "by", "at", "undone_at")
    rows.with_table(
        "insert into belief_changes (memory_id, change, before, after, reason, by_whom, at, undone_at) select * from "
        "TABLE",
        noted,
        [{"id": record["id"], **change} for record in records for change in record["changes"]],
    )
    vectors = [
        {"id": record["id"], "name": name, "start": start, "until": end, "vector": bytes.fromhex(vector)}
        for record in records
        for name, start, end, vector in record["vectors"]
    ]
    made = {key: postgres.ensure_model(rows, *key) for key in {(item["name"], len(item["vector"])) for item in vectors}}
    for item in vectors:
        item["model"], item["vector"] = made[item["name"], len(item["vector"])], postgres.as_list(item["vector"])
    rows.with_table(
        "insert into vectors (memory_seq, model_seq, start_at, end_at, embedding) "  # noqa: S608
        f"select m.seq, v.model, v.start, v.until, cast(v.vector as halfvec) from {_JOINED} on conflict do nothing",
        ("id", "model", "start", "until", "vector"),
        vectors,
    )


def _values(record: Mapping[str, Any], projects: Mapping[str, int]) -> dict[str, Any]:
    days = {name: NEVER if left is None else left for name, left in record["days_left"].items()}
    return {"project_seq": projects[record["share"]], **{name: record[name] for name in COLUMNS}, **days}


#: Table -> the columns of its rows, in the order of a record's lists.
_LISTS = {
    "provenance": ("uuid", "session_id", "at", "role"), "symptoms": ("uuid", "at", "text", "fingerprint"),
    "refutations": ("uuid", "at", "reason", "lowered"), "scenes": ("uuid", "text"),
}  # fmt: skip
_FIELDS = {"provenance": "sources", "scenes": "scene"}


def _hang(rows: ServerRows, into: str, columns: Sequence[str], hanging: Sequence[Mapping[str, Any]]) -> None:
    """Adds what belongs to memories, each row with the `id` of its memory."""
    chosen = ", ".join(f"v.{name}" for name in columns)
    rows.with_table(f"insert into {into} select m.seq, {chosen} from {_JOINED}", ("id", *columns), hanging)  # noqa: S608


def put_digest(rows: Rows, digest: Mapping[str, Any], projects: Mapping[str, int]) -> None:
    """Replaces the digests of a session, all versions."""
    session = {name: digest[name] for name in ("id", "parent", "host", "last_at")}
    rows.upsert("sessions", "author, id", project_seq=projects[digest["share"]], **session)
    seq = rows.number("select seq from sessions where author = session_user and id = :id", id=digest["id"])
    rows.delete("digests", session_seq=seq)
    for version in digest["versions"]:
        items = version["items"]
        made = rows.insert_keyed(
            "digests", session_seq=seq, **{name: version[name] for name in version if name != "items"}
        )
        rows.many(
            "insert into digest_items (digest_seq, kind, text, uuid, state, amount) "
            "values (:digest, :kind, :text, :uuid, :state, :amount)",
            [
                {"digest": made, **dict(zip(("kind", "text", "uuid", "state", "amount"), item, strict=True))}
                for item in items
            ],
        )


# --- what colleagues have changed


def visible_projects(rows: Rows) -> list[dict[str, Any]]:
    """The colleagues' projects that one may read: row key, author, name, workspace."""
    projects = rows.all("select seq, author, name, workspace from projects where author <> session_user order by seq")
    return [dict(zip(("seq", "author", "name", "workspace"), row, strict=True)) for row in projects]


def changed_since(rows: Rows, project: int, *, xid: int, item: int, limit: int) -> list[dict[str, Any]]:
    """What changed in a project past a cursor, in the order of receipt: memories as records, and deleted ids.

    Each has its cursor, `xid` and `item`. What a running transaction may still write is past every cursor that is
    returned before it ends, so nothing is missed.
    """
    versions = rows.all(
        "select changed, item, kind, seq, id from ("
        "select m.changed, 2 * m.seq as item, 'memory' as kind, m.seq, m.id from memories m where m.project_seq = "
        ":project "
        "union all select g.changed, 2 * g.seq + 1, 'gone', g.seq, g.id from gone g where g.project_seq = :project) c "
        "where changed < pg_snapshot_xmin(pg_current_snapshot()) "
        "and (changed > cast(cast(:xid as text) as xid8) or (changed = cast(cast(:xid as text) as xid8) and item > "
        ":item)) "
        "order by changed, item limit :limit",
        project=project, xid=xid, item=item, limit=limit,
    )  # fmt: skip
    read = _records(rows, [seq for _, _, kind, seq, _ in versions if kind == "memory"])
    return [
        {"xid": int(at), "item": place, "id": ident, "record": read.get(seq) if kind == "memory" else None}
        for at, place, kind, seq, ident in versions
    ]


def _records(rows: Rows, seqs: Sequence[int]) -> dict[int, dict[str, Any]]:
    """The visible memories as records, by row key."""
    if not seqs:
        return {}
    names = [*COLUMNS, *DAYS]
    stored = rows.all(
        f"select m.seq, {', '.join(f'm.{name}' for name in names)} from memories m where {in_keys('m.seq', seqs)} and "  # noqa: S608
        f"{_TOLD}"
    )
    lists = {
        table: rows.grouped(
            f"select memory_seq, {', '.join(columns)} from {table} where {in_keys('memory_seq', seqs)} order by "  # noqa: S608
            "memory_seq, uuid"
        )
        for table, columns in _LISTS.items()
    }
    tags = rows.grouped(
        "select x.memory_seq, t.name, x.by_whom, x.weight from memory_topics x join topics t on t.seq = x.topic_seq "  # noqa: S608
        f"where {in_keys('x.memory_seq', seqs)} order by 1, 2"
    )
    records = {}
    for seq, *values in stored:
        record = dict(zip(names, values, strict=True))
        left = {name: record.pop(name) for name in DAYS}
        records[seq] = {
            **record, "days_left": {name: None if value >= NEVER else value for name, value in left.items()},
            **{_FIELDS.get(table, table): lists[table][seq] for table in _LISTS}, "tags": tags[seq], "links": [], "changes": [],
        }  # fmt: skip
    return records


# --- what is searched for


def search(
    rows: Rows, words: Sequence[str], *, wall: str, model: str, vector: bytes, limit: int
) -> list[dict[str, Any]]:
    """The visible memories and digests that match these words or a vector (b"": none), the best first.

    Ranks by words and by vectors are added. What was replaced or archived is left out, and what is in another workspace
    than `wall` in its author's home.
    """
    among = rows.column("select seq from projects where workspace in ('', :wall)", wall=wall)
    score: dict[tuple[str, int], float] = {}
    lists = [
        [("memory", int(hit[0])) for hit in postgres.text_hits(rows, "memory", words, projects=among, limit=2 * limit)]
    ]
    lists.append(
        [("session", int(hit[0])) for hit in postgres.text_hits(rows, "session", words, projects=among, limit=limit)]
    )
    if vector:
        near = postgres.vector_hits(rows, model, vector, projects=among, limit=2 * limit)
        lists.append([("memory", int(hit[0])) for hit in near])
    for ranked in lists:
        for rank, key in enumerate(ranked):
            score[key] = score.get(key, 0.0) + 1 / (EVENED + rank)
    seqs = {kind: [seq for of, seq in score if of == kind] for kind in ("memory", "session")}
    alive = {memory.seq: memory for memory in memories.by_seqs(rows, seqs["memory"]).values() if memory.is_alive}
    owners = {
        seq: (author, name)
        for seq, author, name in rows.all(
            "select m.seq, m.author, p.name from memories m join projects p on p.seq = m.project_seq "  # noqa: S608
            f"where {in_keys('m.seq', seqs['memory'])}"
        )
    }
    digests = {
        seq: row
        for seq, *row in rows.all(
            "select d.seq, d.text, d.at, s.id, p.author, p.name from digests d join sessions s on s.seq = "  # noqa: S608
            "d.session_seq "
            f"join projects p on p.seq = s.project_seq where {in_keys('d.seq', seqs['session'])}"
        )
    }
    hits: list[dict[str, Any]] = []
    for kind, seq in sorted(score, key=lambda key: (-score[key], key)):
        if kind == "memory" and seq in alive:
            memory, (author, name) = alive[seq], owners[seq]
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
