"""The rows of the team's server: what one sends, what colleagues have changed since, and what is searched for there.

A batch is written table by table, so that it costs as many round trips as there are tables, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from csmd.store import memories
from csmd.store.sqlite import Rows, in_keys
from csmd.team import postgres
from csmd.vocabulary import NEVER

#: The columns of a memory as a record has them (csmd/store/exports.py).
COLUMNS = (
    "id", "text", "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "session_id",
    "created_at", "confirmed_at", "used_at", "pinned", "superseded_by",
)  # fmt: skip
DAYS = ("hot_until", "warm_until", "archive_at")
#: What hangs on a memory and is written anew with it.
_CHILDREN = ("provenance", "memory_topics", "symptoms", "refutations", "scenes", "vectors")
_OWN = "(select seq from memories where id = :id and author = session_user)"
#: In a memory that is told to colleagues: it is a person's, and holds.
_TOLD = "(m.authority = 'user' or m.pinned = 1) and m.superseded_by = '' and m.tier <> 'archive' and m.twin_of = 0"
#: How much the ranks of words and of meaning are evened out before they are added (reciprocal rank fusion).
EVENED = 60


# --- what one sends


def put_projects(rows: Rows, shares: Iterable[Mapping[str, Any]], gone: Iterable[str]) -> dict[str, int]:
    """Writes which projects one shares, with who reads them, and takes off those that one shares no more; their row keys by name."""
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


def put_memories(rows: Rows, records: Sequence[Mapping[str, Any]], projects: Mapping[str, int]) -> None:
    """Writes memories with all that hangs on them, by their ids: those that are there already become as they are now."""
    names = ["project_seq", *COLUMNS, *DAYS]
    changed = ", ".join(f"{name} = excluded.{name}" for name in names if name != "id")
    rows.many(
        f"insert into memories ({', '.join(names)}) values ({', '.join(f':{name}' for name in names)}) "  # noqa: S608
        f"on conflict (author, id) do update set {changed}, version = memories.version + 1, changed = pg_current_xact_id()",
        [_values(record, projects) for record in records],
    )
    idents = [{"id": record["id"]} for record in records]
    for table in _CHILDREN:
        rows.many(f"delete from {table} where memory_seq = {_OWN}", idents)  # noqa: S608
    rows.many(f"delete from links where from_seq = {_OWN} or to_seq = {_OWN}", idents)  # noqa: S608
    rows.many("delete from belief_changes where memory_id = :id and author = session_user", idents)
    rows.many(
        "delete from gone where id = :id and author = session_user and project_seq in "
        "(select project_seq from memories where id = :id and author = session_user)",
        idents,
    )
    for table, of_table in _LISTS.items():
        _put_children(rows, table, of_table, records)
    tags = [
        {"id": record["id"], "name": name, "by_whom": by, "weight": weight}
        for record in records
        for name, by, weight in record["tags"]
    ]
    of_project = f"(select project_seq from memories where seq = {_OWN})"  # noqa: S608
    rows.many(f"insert into topics (project_seq, name) values ({of_project}, :name) on conflict do nothing", tags)  # noqa: S608
    rows.many(
        f"insert into memory_topics (memory_seq, topic_seq, by_whom, weight) select {_OWN}, t.seq, :by_whom, :weight "  # noqa: S608
        f"from topics t where t.name = :name and t.project_seq = {of_project} on conflict do nothing",
        tags,
    )
    # An edge comes with either of its ends: with the later one both are there.
    rows.many(
        "insert into links (from_seq, to_seq, relationship, weight, created_at) "
        "select a.seq, b.seq, :relationship, :weight, :at from memories a, memories b where a.id = :from_id and b.id = :to_id "
        "and a.author = session_user and b.author = session_user on conflict do nothing",
        [
            dict(zip(("from_id", "to_id", "relationship", "weight", "at"), edge, strict=True))
            for record in records
            for edge in record["edges"]
        ],
    )
    rows.many(
        "insert into belief_changes (memory_id, change, before, after, reason, by_whom, at, undone_at) "
        "values (:id, :change, :before, :after, :reason, :by, :at, :undone_at)",
        [{"id": record["id"], **change} for record in records for change in record["changes"]],
    )
    vectors = [
        {"id": record["id"], "model": model, "start": start, "end": end, "vector": bytes.fromhex(vector)}
        for record in records
        for model, start, end, vector in record["vectors"]
    ]
    made = {
        key: postgres.ensure_model(rows, *key) for key in {(item["model"], len(item["vector"])) for item in vectors}
    }
    rows.many(
        "insert into vectors (memory_seq, model_seq, start_at, end_at, embedding) "  # noqa: S608
        f"values ({_OWN}, :model, :start, :end, :vector) on conflict do nothing",
        [
            {**item, "model": made[item["model"], len(item["vector"])], "vector": postgres.as_list(item["vector"])}
            for item in vectors
        ],
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


def _put_children(rows: Rows, table: str, names: Sequence[str], records: Sequence[Mapping[str, Any]]) -> None:
    rows.many(
        f"insert into {table} (memory_seq, {', '.join(names)}) values ({_OWN}, {', '.join(f':{name}' for name in names)})",  # noqa: S608
        [
            {"id": record["id"], **dict(zip(names, row, strict=True))}
            for record in records
            for row in record[_FIELDS.get(table, table)]
        ],
    )


def put_digest(rows: Rows, digest: Mapping[str, Any], projects: Mapping[str, int]) -> None:
    """Writes the digests of a session, all of its versions anew."""
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
    """The colleagues' projects that one may read: row key, author, name, wall."""
    projects = rows.all("select seq, author, name, workspace from projects where author <> session_user order by seq")
    return [dict(zip(("seq", "author", "name", "workspace"), row, strict=True)) for row in projects]


def changed_since(rows: Rows, project: int, *, xid: int, item: int, limit: int) -> list[dict[str, Any]]:
    """What has changed in a project past a cursor, in the order of receipt: memories as records, and deleted ids.

    Each has its cursor, `xid` and `item`. What a transaction in progress may still write is past every cursor that is
    given out before it ends, so nothing is missed.
    """
    versions = rows.all(
        "select changed, item, kind, seq, id from ("
        "select m.changed, 2 * m.seq as item, 'memory' as kind, m.seq, m.id from memories m where m.project_seq = :project "
        "union all select g.changed, 2 * g.seq + 1, 'gone', g.seq, g.id from gone g where g.project_seq = :project) c "
        "where changed < pg_snapshot_xmin(pg_current_snapshot()) "
        "and (changed > cast(cast(:xid as text) as xid8) or (changed = cast(cast(:xid as text) as xid8) and item > :item)) "
        "order by changed, item limit :limit",
        project=project, xid=xid, item=item, limit=limit,
    )  # fmt: skip
    read = _records(rows, [seq for _, _, kind, seq, _ in versions if kind == "memory"])
    return [
        {"xid": int(at), "item": place, "id": ident, "record": read.get(seq) if kind == "memory" else None}
        for at, place, kind, seq, ident in versions
    ]


def _records(rows: Rows, seqs: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Memories that are told to colleagues, as records, by row key; one that is not told any more is left out."""
    if not seqs:
        return {}
    names = [*COLUMNS, *DAYS]
    stored = rows.all(
        f"select m.seq, {', '.join(f'm.{name}' for name in names)} from memories m where {in_keys('m.seq', seqs)} and {_TOLD}"  # noqa: S608
    )
    lists = {
        table: rows.grouped(
            f"select memory_seq, {', '.join(columns)} from {table} where {in_keys('memory_seq', seqs)} order by memory_seq, uuid"  # noqa: S608
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
    """The memories and digests that one may read and that bear on these words, or on a vector (b"": none), the best first.

    Ranks by words and by meaning are added; what was replaced or archived is left out, and so is what is behind another
    wall than `wall` in its author's home.
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
            "select d.seq, d.text, d.at, s.id, p.author, p.name from digests d join sessions s on s.seq = d.session_seq "  # noqa: S608
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
