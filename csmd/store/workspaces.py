"""Workspaces (walls and lenses), and how projects are found and listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from csmd.knowledge import Memory
from csmd.store import digests, memories, project_merges, projects, stored_days, tombstones
from csmd.store.sqlite import Rows

WORKSPACE_KIND = "workspace"
#: The lens of the nearest directory around a project.
_NEAREST_LENS = """coalesce((select r.lens_seq from projects r where r.lens_seq > 0
    and r.root <> '' and (p.root = r.root or substr(p.root, 1, length(r.root) + 1) = r.root || '/')
    order by length(r.root) desc limit 1), 0)"""
#: The fewest characters that are taken for the beginning of an id.
MIN_ID_PREFIX = 4
ID_LENGTH = 8


def ensure(rows: Rows, name: str, *, now: str) -> int:
    """Returns the row of a workspace, created if it is new."""
    seq = find_workspace(rows, name)
    if seq is not None:
        return seq
    return rows.insert_keyed(
        "projects", key=f"workspace:{name}", root="", name=name, kind=WORKSPACE_KIND, created_at=now
    )


def find_workspace(rows: Rows, name: str) -> int | None:
    """Returns the row of a workspace, or None."""
    return rows.key("select seq from projects where key = :key", key=f"workspace:{name}")


def join(rows: Rows, workspace: int, project: int) -> int:
    """Moves a project into a workspace; returns how many memories of "everywhere" went with it.

    Those go whose sources are all inside: what was also said elsewhere is already known outside.
    """
    rows.update("projects", project, workspace_seq=workspace)
    # Sources that only continue the exchange do not count.
    sql = """select distinct st.session_seq from turns t join session_turn st on st.turn_seq = t.seq join sessions s
        on s.seq = st.session_seq where t.project_seq = :project and t.searchable = 1 and s.project_seq <> :project"""
    for session in rows.column(sql, project=project):
        digests.clear(rows, session)
    stored_days.mark_days_moved(rows, project)
    for day in projects.active_days(rows, project):
        projects.record_active_day(rows, project, day)
    inside = list_members(rows, workspace)
    moved = 0
    for memory in memories.list_memories(rows, projects=[0]):
        if _is_from_projects(rows, memory, inside):
            project_merges.move_to_scope(rows, memory, workspace)
            moved += 1
    return moved


def list_projects_below(rows: Rows, root: str) -> list[int]:
    """Returns the projects below a directory that are in no workspace."""
    sql = """select seq from projects where workspace_seq = 0 and merged_into = 0 and seq > 0 and kind <> 'workspace'
        and substr(root, 1, length(cast(:root as text)) + 1) = cast(:root as text) || '/' order by seq"""
    return rows.column(sql, root=root)


def leave(rows: Rows, project: int, *, key: bytes) -> None:
    """Takes a project out of its workspace; what applies everywhere inside stays there."""
    if wall := projects.everywhere_of(rows, project):
        tombstones.copy_to_project(rows, wall, project, key=key)
    rows.update("projects", project, workspace_seq=0)
    stored_days.mark_days_moved(rows, project)


def list_members(rows: Rows, workspace: int) -> list[int]:
    """Returns the projects of a workspace."""
    return rows.column("select seq from projects where workspace_seq = :w order by seq", w=workspace)


# --- lenses: what is of their projects and topics ranks first, with a wall or without


@dataclass(frozen=True, slots=True, kw_only=True)
class Lens:
    """A lens: its projects (row key -> directory), which of them are in its workspace, and its topics."""

    seq: int
    name: str
    projects: Mapping[int, str]
    walled: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no project and no topic."""
        return not (self.walled or self.ranked or self.topics)


def has_lenses(rows: Rows) -> bool:
    """Whether there is any lens or workspace."""
    return rows.exists("select 1 from projects where kind = 'workspace' limit 1")


def find_lens(rows: Rows, seq: int) -> Lens | None:
    """Returns a lens by its row, or None."""
    name = rows.value("select name from projects where seq = :seq and kind = 'workspace'", seq=seq)
    if name is None:
        return None
    sql = f"""select p.seq, p.root from projects p where p.seq > 0 and p.kind <> 'workspace' and p.merged_into = 0
        and (p.workspace_seq = :lens or (p.workspace_seq = 0 and {_NEAREST_LENS} = :lens)) order by p.root"""  # noqa: S608
    members = rows.all(sql, lens=seq)
    return Lens(
        seq=seq,
        name=str(name),
        projects=dict(members),
        walled=tuple(rows.column("select root from projects where workspace_seq = :lens order by root", lens=seq)),
        ranked=tuple(rows.column("select root from projects where lens_seq = :lens order by root", lens=seq)),
        topics=tuple(rows.column("select name from lens_topics where lens_seq = :lens order by name", lens=seq)),
    )


def list_lenses(rows: Rows) -> list[Lens]:
    """Returns every lens that is not empty, by name."""
    seqs = rows.column("select seq from projects where kind = 'workspace' order by name")
    return [each for seq in seqs if (each := find_lens(rows, seq)) and not each.is_empty]


def rank_first(rows: Rows, project: int, *, lens: int) -> None:
    """Has a lens rank a project first, and all below its directory, without a wall; 0 for no lens."""
    rows.update("projects", project, lens_seq=lens)


def add_topic(rows: Rows, lens: int, name: str) -> None:
    """Has a lens rank a topic first."""
    rows.insert("lens_topics", "on conflict do nothing", lens_seq=lens, name=name)


def remove_topic(rows: Rows, lens: int, name: str) -> bool:
    """Removes a topic from a lens; False if it does not have it."""
    return bool(rows.delete("lens_topics", lens_seq=lens, name=name))


def list_lens_topic_ids(rows: Rows, lens: int) -> frozenset[str]:
    """Returns the ids of the memories with a topic of a lens, and of the turns that state them."""
    about = (
        "lens_topics l join topics t on t.name = l.name join memory_topics x on x.topic_seq = t.seq and x.weight > 0 "
        "join memories m on m.seq = x.memory_seq"
    )
    sql = f"""select m.id from {about} where l.lens_seq = :lens union select v.uuid
        from {about} join provenance v on v.memory_seq = m.seq where l.lens_seq = :lens and v.role <> 'beside'"""  # noqa: S608
    return rows.distinct(sql, lens=lens)


def _is_from_projects(rows: Rows, memory: Memory, inside: list[int]) -> bool:
    return all(rows.find("turns", "project_seq", uuid=source.uuid) in inside for source in memory.provenance)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSummary:
    """A project; `other_places` are its earlier and named paths, `merged` the projects merged into it."""

    seq: int
    id: str
    name: str
    root: str
    kind: str
    remote: str
    workspace: str
    part_of: str
    sessions: int
    turns: int
    memories: int
    last_at: str
    other_places: tuple[tuple[str, str], ...] = ()
    merged: tuple[str, ...] = ()


def list_projects(rows: Rows) -> list[ProjectSummary]:
    """Returns every project, the one with the latest turn first; superseded memories are not counted."""
    paths = rows.grouped("select project_seq, path, why from aliases order by created_at, path")
    merged = rows.grouped("select merged_into, root from projects where merged_into > 0 order by root")
    sql = """select p.seq, substr(p.key, 1, :length), p.name, p.root, p.kind, p.remote, coalesce(w.name, ''),
        coalesce(o.name, ''), (select count(*) from sessions s where s.project_seq = p.seq and s.parent = ''),
        coalesce(t.turns, 0), (select count(*) from memories m where m.project_seq = p.seq
        and m.superseded_by = ''), coalesce(t.last_at, '')
        from projects p left join projects w on w.seq = p.workspace_seq and w.seq > 0
        left join projects o on o.seq = p.part_of and o.seq > 0 left join (select project_seq,
        count(*) as turns, max(at) as last_at from turns group by project_seq) t on t.project_seq = p.seq
        where p.seq > 0 and p.kind <> 'workspace' and p.merged_into = 0 order by 12 desc, p.seq"""
    summaries = rows.read(ProjectSummary, sql, length=ID_LENGTH)
    return [
        replace(
            project,
            other_places=tuple(path for path in paths[project.seq] if path[0] != project.root),
            merged=tuple(root for (root,) in merged[project.seq]),
        )
        for project in summaries
    ]


def list_workspaces(rows: Rows) -> list[tuple[str, int, int]]:
    """Returns (name, projects, current memories that apply everywhere in it) of every workspace, by name."""
    sql = """select w.name, (select count(*) from projects p where p.workspace_seq = w.seq), (select count(*)
        from memories m where m.project_seq = w.seq) from projects w
        where w.kind = 'workspace' and not (exists (select 1 from projects p where p.lens_seq = w.seq)
        and not exists (select 1 from projects p where p.workspace_seq = w.seq)) order by w.name"""
    return rows.all(sql)


def find_projects(rows: Rows, word: str) -> list[tuple[int, str]]:
    """Returns (row key, root) of the projects with this name, end of the root, or beginning of the id."""
    sql = """select seq, root from projects where seq > 0 and kind <> 'workspace'
        and (name = :word or (:titled = 1 and length(root) > length(cast(:word as text)) and substr(root,
        length(root) - length(cast(:word as text))) = '/' || :word) or (length(cast(:word as text)) >= :least
        and substr(key, 1, length(cast(:word as text))) = :word)) order by seq"""
    return rows.all(sql, word=word, least=MIN_ID_PREFIX, titled=int("/" in word))


def project_at_path(rows: Rows, path: str) -> int | None:
    """Returns the project shown with this path, merged or missing ones included; None if there is none."""
    sql = "select seq from projects where root = :path and seq > 0 and root <> '' order by part_of desc, seq limit 1"
    return rows.key(sql, path=path)


def merged_into(rows: Rows, project: int) -> int:
    """Returns the project that a project was merged into; 0 for none."""
    return rows.number("select merged_into from projects where seq = :seq", seq=project)


def root_of(rows: Rows, project: int) -> str:
    """Returns the directory that a project is shown with."""
    return rows.text("select root from projects where seq = :seq", seq=project)


def add_part(rows: Rows, *, key: str, root: str, name: str, whole: int, now: str) -> int:
    """Creates a project for a directory inside another project's, in the same workspace."""
    wall = rows.find("projects", "workspace_seq", seq=whole)
    return rows.insert_keyed(
        "projects", key=key, root=root, name=name, kind="part", created_at=now, part_of=whole, workspace_seq=wall
    )


def copy_workspace(rows: Rows, project: int, as_that_of: int) -> None:
    """Puts a project into the workspace of another."""
    sql = """update projects set workspace_seq = (select o.workspace_seq from projects o where o.seq = :other)
        where seq = :project"""
    rows.run(sql, other=as_that_of, project=project)
    stored_days.mark_days_moved(rows, project)


def list_directories(rows: Rows) -> list[tuple[str, int]]:
    """Returns (directory, project) of every directory in which something was said."""
    return rows.all("select path, project_seq from directories order by seq")
