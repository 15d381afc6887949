"""Memories as records that go from one home to another.

Ages count active days, which the other home counts itself, so a record has what is left of each. A twin (hidden by a
merge because another memory says the same) is not exported; vectors and indexes are made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from csmd.conversation import Project
from csmd.knowledge import Link, Provenance
from csmd.store import (
    belief_changes,
    files,
    memories,
    memory_links,
    memory_scenes,
    memory_snapshots,
    projects,
    topics,
    workspaces,
)
from csmd.store.row_values import as_value
from csmd.store.sqlite import Rows, in_keys
from csmd.vocabulary import NEVER

#: The columns of a memory itself; references to other rows and counts of days are separate.
COLUMNS = (
    "gate", "category", "type", "tier", "decay", "authority", "origin", "confidence", "scope", "session_id",
    "created_at", "confirmed_at", "used_at", "pinned",
)  # fmt: skip
DAY_COLUMNS = ("hot_until", "warm_until", "archive_at")
#: In the audit of an imported memory, whose source turns may be missing here.
IMPORTED = "brought"
#: In the audit of a memory whose links, audit and successor the present import, or the next, still has to bring.
INCOMPLETE = "in part"


def list_exported(rows: Rows, project_seqs: Sequence[int] | None) -> list[int]:
    """Returns the row keys of the memories of some projects (None: all), the oldest first, except those of colleagues."""
    sql = f"""select m.seq from memories m where m.twin_of = 0
        and {memories.NOT_COLLEAGUES} and {in_keys("m.project_seq", project_seqs)} order by m.created_at, m.id"""  # noqa: S608
    return rows.column(sql)


def make_memory_record(rows: Rows, seq: int) -> dict[str, Any]:
    """Returns everything stored of one memory, as JSON."""
    memory_id = rows.text("select id from memories where seq = :seq", seq=seq)
    image = memory_snapshots.read_memory(rows, memory_id)
    assert image is not None
    text, state, more = image
    columns = state["columns"]
    project = int(state["columns"]["project_seq"])
    today = projects.active_day(rows, project)
    return {
        "id": memory_id,
        "text": text,
        "project": _make_project_record(rows, project),
        **{name: columns[name] for name in COLUMNS},
        "days_left": {name: None if columns[name] >= NEVER else columns[name] - today for name in DAY_COLUMNS},
        "superseded_by": columns["superseded_by"],
        "sources": sorted(state["sources"], key=lambda source: (source[2], source[0])),
        "links": [tuple(link[1:]) for link in state["links"] if link[0] == memory_id],
        "tags": [tag for tag in more["tags"] if tag[1] != topics.RULE],
        "symptoms": more["symptoms"],
        "refutations": more["refutations"],
        "scene": more["scenes"],
        "changes": [
            {name: value for name, value in change.items() if name not in ("seq", "memory_id")}
            for change in more["changes"]
        ],
    }


def list_memory_edges(rows: Rows, seq: int) -> list[tuple[str, str, str, float, str]]:
    """Returns (from, to, relationship, weight, time) of a memory's links, by ids."""
    sql = """select f.id, t.id, l.relationship, l.weight, l.created_at from links l join memories f on f.seq = l.from_seq
        join memories t on t.seq = l.to_seq where l.from_seq = :seq or l.to_seq = :seq order by 1, 2, 3"""
    return rows.all(sql, seq=seq)


def _make_project_record(rows: Rows, seq: int) -> dict[str, str]:
    """Returns a project as another machine may know it; {} for everywhere."""
    if seq == 0:
        return {}
    key, root, name, kind, remote, wall = rows.all(
        """select p.key, p.root, p.name, p.kind, p.remote, coalesce(w.name, '')
            from projects p left join projects w on w.seq = p.workspace_seq and p.workspace_seq > 0 where p.seq = :seq""",
        seq=seq,
    )[0]
    return {"key": key, "root": root, "name": name, "kind": kind, "remote": remote, "workspace": wall}


def ensure_project(rows: Rows, record: Mapping[str, str], *, now: str, own_project: Project | None = None) -> int:
    """Returns the row of the project that a record names: by key, else by remote, else a new one with its old path.

    By remote if its path is not here: the directory of the import (`own_project`), else the only project with this remote, or
    the only one of several whose directory exists. A record from a workspace goes only to a project in the same
    workspace, else to a row of its own there. The same key is the same directory, whatever workspace its user put it in
    here.
    """
    if not record:
        return 0
    if record["kind"] == workspaces.WORKSPACE_KIND:
        return workspaces.ensure(rows, record["name"], now=now)
    kind: Any = record["kind"]  # the reader of the file has checked it
    project = Project(key=record["key"], root=record["root"], name=record["name"], kind=kind, remote=record["remote"])
    seq = projects.seq_of(rows, project)
    if seq is None and record["remote"] and files.is_missing(record["root"]):
        seq = _find_by_remote(rows, record["remote"], wall=record["workspace"], now=now, own_project=own_project)
    if seq is not None:
        return seq
    new_seq = projects.ensure(rows, project, now=now)
    if record["workspace"]:
        workspaces.join(rows, workspaces.ensure(rows, record["workspace"], now=now), new_seq)
    return new_seq


def _find_by_remote(rows: Rows, remote: str, *, wall: str, now: str, own_project: Project | None) -> int | None:
    workspace_seq = workspaces.find_workspace(rows, wall) if wall else 0
    if (
        own_project is not None
        and own_project.remote == remote
        and (not wall or _find_workspace_of(rows, own_project) == workspace_seq)
    ):
        return projects.ensure(rows, own_project, now=now)
    sql = """select seq, root
        from projects where remote = :remote and merged_into = 0 and part_of = 0 and (:open or workspace_seq = :workspace_seq)"""
    candidates = rows.all(
        sql, remote=remote, open=int(not wall), workspace_seq=-1 if workspace_seq is None else workspace_seq
    )
    present = [row for row in candidates if not files.is_missing(str(row[1]))] or candidates
    return int(present[0][0]) if len(present) == 1 else None


def _find_workspace_of(rows: Rows, project: Project) -> int:
    """Returns the workspace of a project, or the one it would join once it is stored; 0 for none."""
    seq = projects.seq_of(rows, project)
    return projects.find_workspace_around(rows, project.root) if seq is None else projects.everywhere_of(rows, seq)


def insert_memory(rows: Rows, memory_id: str, item: Mapping[str, Any], *, project: int, text_hash: str) -> int:
    """Stores a record's memory under an id, with its sources; returns its row key."""
    today = projects.active_day(rows, project)
    values = {name: item[name] for name in ("text", *COLUMNS)}
    values |= {name: NEVER if days is None else today + days for name, days in item["days_left"].items()}
    seq = rows.insert_keyed("memories", id=memory_id, text_hash=text_hash, project_seq=project, **values)
    add_sources(rows, seq, item)
    return seq


def add_sources(rows: Rows, seq: int, item: Mapping[str, Any]) -> None:
    """Adds the source turns in a record; known ones stay unchanged."""
    for source in item["sources"]:
        memories.add_provenance(rows, seq, as_value(Provenance, source))


def add_annotations(
    rows: Rows, seq: int, memory_id: str, item: Mapping[str, Any], *, renamed: Mapping[str, str]
) -> None:
    """Adds a new memory's symptoms, refutations, audit, links and successor.

    `renamed` maps the ids of the records to those that they have here.
    """
    for table in ("symptoms", "refutations"):
        memory_snapshots.restore_annotations(rows, seq, table, item[table])
    set_scene(rows, seq, item)
    for name, by, weight in item["tags"]:
        topics.tag_memory(rows, seq, name, by=by, weight=weight)
    for change in item["changes"]:
        written = {name: change[name] for name in ("change", "before", "after", "reason", "by", "at")}
        change_seq = belief_changes.record_change(rows, memory_id, **written)
        if change["undone_at"]:
            belief_changes.set_undone(rows, change_seq, at=change["undone_at"])
    for other, relationship, weight, linked_at in item["links"]:
        link = Link(from_id=memory_id, to_id=renamed.get(other, other), relationship=relationship, weight=weight)
        memory_links.add_link(rows, link, now=linked_at)
    replacement = renamed.get(item["superseded_by"], item["superseded_by"])
    if replacement and rows.value("select 1 from memories where id = :id", id=replacement):
        rows.update("memories", seq, superseded_by=replacement)


def set_scene(rows: Rows, seq: int, item: Mapping[str, Any]) -> None:
    """Stores the scene of a record."""
    for uuid, text in item["scene"]:
        memory_scenes.set_scene(rows, seq, uuid=uuid, text=text)


def record_import(rows: Rows, memory_id: str, *, reason: str, now: str, state: str = "") -> None:
    """Records in a memory's audit that it was imported; with the `state` INCOMPLETE its references are still missing."""
    belief_changes.record_change(rows, memory_id, IMPORTED, "", state, reason, "rule", now)


def list_imported(rows: Rows, seqs: Sequence[int]) -> list[tuple[str, str, str]]:
    """Returns (id, how it was imported, when) of those of some memories (row keys) that were, in order."""
    sql = f"""select t.id, c.reason, c.at from memories t join belief_changes c on c.memory_id = t.id
        where c.change = :brought and {in_keys("t.seq", seqs)} group by t.id order by t.seq"""  # noqa: S608
    return rows.all(sql, brought=IMPORTED)


def is_import_incomplete(rows: Rows, memory_id: str) -> bool:
    """Whether a memory's import was interrupted before its references were stored."""
    return any(
        change.change == IMPORTED and change.after == INCOMPLETE
        for change in belief_changes.list_changes(rows, memory_id)
    )


def mark_import_complete(rows: Rows, memory_id: str) -> None:
    """Records that all of an imported memory is here."""
    sql = "update belief_changes set after = '' where memory_id = :id and change = :brought and after = :part"
    rows.run(sql, id=memory_id, brought=IMPORTED, part=INCOMPLETE)
