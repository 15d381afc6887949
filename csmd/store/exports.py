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


def list_exported(rows: Rows, places: Sequence[int] | None) -> list[int]:
    """Returns the row keys of the memories of some projects (None: all), the oldest first, without colleagues'."""
    sql = f"""select m.seq from memories m where m.twin_of = 0
        and {memories.NOT_COLLEAGUES} and {in_keys("m.project_seq", places)} order by m.created_at, m.id"""  # noqa: S608
    return rows.column(sql)


def memory_record(rows: Rows, seq: int) -> dict[str, Any]:
    """Returns everything stored of one memory, as JSON."""
    ident = rows.text("select id from memories where seq = :seq", seq=seq)
    image = memory_snapshots.read_memory(rows, ident)
    assert image is not None
    text, state, more = image
    columns, project = state["columns"], int(state["columns"]["project_seq"])
    today = projects.active_day(rows, project)
    return {
        "id": ident,
        "text": text,
        "project": _project_record(rows, project),
        **{name: columns[name] for name in COLUMNS},
        "days_left": {name: None if columns[name] >= NEVER else columns[name] - today for name in DAY_COLUMNS},
        "superseded_by": columns["superseded_by"],
        "sources": sorted(state["sources"], key=lambda source: (source[2], source[0])),
        "links": [tuple(link[1:]) for link in state["links"] if link[0] == ident],
        "tags": [tag for tag in more["tags"] if tag[1] != topics.RULE],
        "symptoms": more["symptoms"],
        "refutations": more["refutations"],
        "scene": more["scenes"],
        "changes": [
            {name: value for name, value in change.items() if name not in ("seq", "memory_id")}
            for change in more["changes"]
        ],
    }


def memory_edges(rows: Rows, seq: int) -> list[tuple[str, str, str, float, str]]:
    """Returns (from, to, relationship, weight, time) of a memory's links, by ids."""
    sql = """select f.id, t.id, l.relationship, l.weight, l.created_at from links l join memories f on f.seq = l.from_seq
        join memories t on t.seq = l.to_seq where l.from_seq = :seq or l.to_seq = :seq order by 1, 2, 3"""
    return rows.all(sql, seq=seq)


def _project_record(rows: Rows, seq: int) -> dict[str, str]:
    """Returns a project as another machine may know it; {} for everywhere."""
    if seq == 0:
        return {}
    key, root, name, kind, remote, wall = rows.all(
        """select p.key, p.root, p.name, p.kind, p.remote, coalesce(w.name, '')
            from projects p left join projects w on w.seq = p.workspace_seq and p.workspace_seq > 0 where p.seq = :seq""",
        seq=seq,
    )[0]
    return {"key": key, "root": root, "name": name, "kind": kind, "remote": remote, "workspace": wall}


def ensure_project(rows: Rows, named: Mapping[str, str], *, now: str, here: Project | None = None) -> int:
    """Returns the row of the project that a record names: by key, else by remote, else a new one with its old path.

    By remote if its path is not here: the directory of the import (`here`), else the only project with this remote, or
    the only one of several whose directory exists. A record from a workspace goes only to a project in the same
    workspace, else to a row of its own there. The same key is the same directory, whatever workspace its user put it in
    here.
    """
    if not named:
        return 0
    if named["kind"] == workspaces.WORKSPACE_KIND:
        return workspaces.ensure(rows, named["name"], now=now)
    kind: Any = named["kind"]  # the reader of the file has checked it
    project = Project(key=named["key"], root=named["root"], name=named["name"], kind=kind, remote=named["remote"])
    seq = projects.seq_of(rows, project)
    if seq is None and named["remote"] and files.is_missing(named["root"]):
        seq = _with_remote(rows, named["remote"], wall=named["workspace"], now=now, here=here)
    if seq is not None:
        return seq
    made = projects.ensure(rows, project, now=now)
    if named["workspace"]:
        workspaces.join(rows, workspaces.ensure(rows, named["workspace"], now=now), made)
    return made


def _with_remote(rows: Rows, remote: str, *, wall: str, now: str, here: Project | None) -> int | None:
    behind = workspaces.find_workspace(rows, wall) if wall else 0
    if here is not None and here.remote == remote and (not wall or _wall_of(rows, here) == behind):
        return projects.ensure(rows, here, now=now)
    sql = """select seq, root
        from projects where remote = :remote and merged_into = 0 and part_of = 0 and (:open or workspace_seq = :behind)"""
    alike = rows.all(sql, remote=remote, open=int(not wall), behind=-1 if behind is None else behind)
    present = [row for row in alike if not files.is_missing(str(row[1]))] or alike
    return int(present[0][0]) if len(present) == 1 else None


def _wall_of(rows: Rows, project: Project) -> int:
    """Returns the workspace of a project, or the one it would join once it is stored; 0 for none."""
    seq = projects.seq_of(rows, project)
    return projects.workspace_around(rows, project.root) if seq is None else projects.everywhere_of(rows, seq)


def insert_memory(rows: Rows, ident: str, item: Mapping[str, Any], *, project: int, text_hash: str) -> int:
    """Stores a record's memory under an id, with its sources; returns its row key."""
    today = projects.active_day(rows, project)
    values = {name: item[name] for name in ("text", *COLUMNS)}
    values |= {name: NEVER if left is None else today + left for name, left in item["days_left"].items()}
    seq = rows.insert_keyed("memories", id=ident, text_hash=text_hash, project_seq=project, **values)
    add_sources(rows, seq, item)
    return seq


def add_sources(rows: Rows, seq: int, item: Mapping[str, Any]) -> None:
    """Adds the source turns in a record; known ones stay unchanged."""
    for source in item["sources"]:
        memories.add_provenance(rows, seq, as_value(Provenance, source))


def add_annotations(rows: Rows, seq: int, ident: str, item: Mapping[str, Any], *, renamed: Mapping[str, str]) -> None:
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
        made = belief_changes.record_change(rows, ident, **written)
        if change["undone_at"]:
            belief_changes.set_undone(rows, made, at=change["undone_at"])
    for other, relationship, weight, at in item["links"]:
        link = Link(from_id=ident, to_id=renamed.get(other, other), relationship=relationship, weight=weight)
        memory_links.add_link(rows, link, now=at)
    heir = renamed.get(item["superseded_by"], item["superseded_by"])
    if heir and rows.value("select 1 from memories where id = :id", id=heir):
        rows.update("memories", seq, superseded_by=heir)


def set_scene(rows: Rows, seq: int, item: Mapping[str, Any]) -> None:
    """Stores the scene of a record."""
    for uuid, text in item["scene"]:
        memory_scenes.set_scene(rows, seq, uuid=uuid, text=text)


def record_import(rows: Rows, ident: str, *, reason: str, now: str, state: str = "") -> None:
    """Records in a memory's audit that it was imported; with the `state` IN_PART its references are still missing."""
    belief_changes.record_change(rows, ident, IMPORTED, "", state, reason, "rule", now)


def list_imported(rows: Rows, seqs: Sequence[int]) -> list[tuple[str, str, str]]:
    """Returns (id, how it was imported, when) of those of some memories (row keys) that were, in order."""
    sql = f"""select t.id, c.reason, c.at from memories t join belief_changes c on c.memory_id = t.id
        where c.change = :brought and {in_keys("t.seq", seqs)} group by t.id order by t.seq"""  # noqa: S608
    return rows.all(sql, brought=IMPORTED)


def is_import_incomplete(rows: Rows, ident: str) -> bool:
    """Whether a memory's import was interrupted before its references were stored."""
    return any(
        change.change == IMPORTED and change.after == INCOMPLETE for change in belief_changes.changes_of(rows, ident)
    )


def mark_import_complete(rows: Rows, ident: str) -> None:
    """Records that all of an imported memory is here."""
    sql = "update belief_changes set after = '' where memory_id = :id and change = :brought and after = :part"
    rows.run(sql, id=ident, brought=IMPORTED, part=INCOMPLETE)
