"""Projects, aliases, active days, names, instruction texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from csmd.conversation import Project
from csmd.knowledge import Memory, Provenance
from csmd.store import candidates, checkpoints, digests, files, memories, topics, vectors
from csmd.store.sqlite import Rows, column_values, in_keys
from csmd.vocabulary import AUTHORITY_RANK, NEVER

#: A day after every other.
LAST_DAY = "9999-12-31"


class Settled(NamedTuple):
    """The row a place counts to now, and the row of its directory (0 where none is noted)."""

    seq: int
    directory: int = 0


def ensure(rows: Rows, project: Project, *, now: str) -> int:
    """The row key of the project that a place counts to, made when it is new."""
    return current_project(rows, _own(rows, project, now), project.place or project.root)


def ensure_with_directory(rows: Rows, project: Project, *, now: str) -> Settled:
    """As `ensure`, and notes the directory, so that what is said there can be taken apart again."""
    place = project.place or project.root
    own = _own(rows, project, now)
    seq = current_project(rows, own, place)
    raw = _identified(rows, own, seq)
    directory = rows.value(
        "select seq from directories where path = :path and project_seq = :project", path=place, project=raw
    )
    return Settled(seq, directory or rows.insert_keyed("directories", path=place, project_seq=raw))


def _identified(rows: Rows, own: int, current: int) -> int:
    part = current != own and rows.value("select part_of from projects where seq = :seq", seq=current)
    return current if part else own


def identified(rows: Rows, project: Project) -> int | None:
    """The row that a place was identified as, whatever that was merged into since; None for an unknown one."""
    own = recognised_row(rows, project)
    return None if own is None else _identified(rows, own, current_project(rows, own, project.place or project.root))


def seq_of(rows: Rows, project: Project) -> int | None:
    """The row key of the project that a place counts to, by its key alone; None for an unknown one."""
    own = recognised_row(rows, project)
    return None if own is None else current_project(rows, own, project.place or project.root)


def _own(rows: Rows, project: Project, now: str) -> int:
    """The row of a place's own key, before merges and splits; made, or recognised, when the key is new."""
    known = recognised_row(rows, project)
    if known is not None:
        if project.fingerprint or project.remote:
            _refresh(rows, known, project)
        return known
    found = recognised(rows, project)
    main = project.worktree_of
    if found is None and main is not None and may_be_made(rows, main, project):
        found = _own(rows, main, now), WORKTREE
    if found is None:
        return rows.insert_keyed(
            "projects", key=project.key, root=project.root, name=project.name, kind=project.kind, created_at=now,
            remote=project.remote, fingerprint=project.fingerprint, workspace_seq=wall_around(rows, project.root),
        )  # fmt: skip
    seq, why = found
    key, root = rows.all("select key, root from projects where seq = :seq", seq=seq)[0]
    if why == "moved":
        add_alias(rows, key, seq, path=root, why="moved", now=now)
        rows.update("projects", seq, root=project.root, name=project.name)
    add_alias(rows, project.key, seq, path=project.root, why=why, now=now)
    _refresh(rows, seq, project)
    return seq


def _refresh(rows: Rows, seq: int, project: Project) -> None:
    """Notes what a project is recognised by now, and its place when it was moved back."""
    root, *known = rows.all("select root, remote, fingerprint from projects where seq = :seq", seq=seq)[0]
    if root == project.root:
        if known != [project.remote, project.fingerprint]:
            rows.update("projects", seq, remote=project.remote, fingerprint=project.fingerprint)
        return
    why = rows.value("select why from aliases where key = :key and path = :root", key=project.key, root=project.root)
    if why == "moved" and files.is_missing(str(root)):
        rows.update("projects", seq, root=project.root, name=project.name)


def add_alias(rows: Rows, key: str, project: int, *, path: str, why: str, now: str) -> None:
    """Has an identity count to a project from now on."""
    conflict = (
        "on conflict (key) do update set project_seq = excluded.project_seq, path = excluded.path, why = excluded.why"
    )
    rows.insert("aliases", conflict, key=key, project_seq=project, path=path, why=why, created_at=now)


def remove_alias(rows: Rows, key: str) -> bool:
    """Takes back what the user named; False when there was nothing."""
    return bool(rows.all("delete from aliases where key = :key and why = 'named' returning key", key=key))


def key_of(rows: Rows, seq: int) -> str:
    """The first identity of a project."""
    return str(rows.value("select key from projects where seq = :seq", seq=seq))


def name_of(rows: Rows, seq: int) -> str:
    """The name of a project; "" for the scope of everything."""
    return rows.text("select name from projects where seq = :seq", seq=seq) if seq else ""


def visible(rows: Rows, *, inside: int) -> list[int] | None:
    """Every row that may be seen from inside a workspace (0: from outside of all); None for all, without a wall."""
    closed = rows.value("select seq from projects where kind = 'workspace' limit 1") or rows.value(
        "select seq from projects where merged_into > 0 limit 1"
    )
    if closed is None:
        return None
    return rows.column(
        "select seq from projects where merged_into = 0 and (seq = :inside or (kind <> 'workspace' "
        "and workspace_seq in (0, :inside))) order by seq",
        inside=inside,
    )


def touch(rows: Rows, project: int, at: str, *, source: int = 0) -> None:
    """Notes a day of activity; one that comes to light between others moves what was believed after it.

    `source` is the project whose merge brings the day.
    """
    for scope in {project, everywhere(rows, project), 0}:
        if rows.insert("activity", "on conflict do nothing", project_seq=scope, day=at[:10], from_seq=source):
            _shift(rows, scope, at[:10], 1)


def take_day(rows: Rows, project: int, day: str) -> None:
    """Takes a day of activity back, and with it what it moved."""
    if rows.delete("activity", project_seq=project, day=day):
        _shift(rows, project, day, -1)


def _shift(rows: Rows, scope: int, day: str, by: int) -> None:
    sql = (
        "update memories set hot_until = hot_until + :by, "
        "warm_until = case when warm_until >= :never then warm_until else warm_until + :by end, "
        "archive_at = case when archive_at >= :never then archive_at else archive_at + :by end "
        "where project_seq = :scope and hot_until < :never and "
        "substr(case when used_at > confirmed_at then used_at else confirmed_at end, 1, 10) > :day"
    )
    rows.run(sql, never=NEVER, scope=scope, day=day, by=by)


def active_days(rows: Rows, project: int, *, source: int | None = None) -> list[str]:
    """The days on which a project was active, in order; with `source` those that its merge brought."""
    sql = "select day from activity where project_seq = :project and (:all = 1 or from_seq = :source) order by day"
    return rows.column(sql, project=project, all=int(source is None), source=source or 0)


def active_day(rows: Rows, project: int, *, on: str = LAST_DAY) -> int:
    """How many days the scope had been active on a day (by default: so far); ages are differences of this number."""
    sql = "select count(*) from activity where project_seq = :project and day <= :day"
    return rows.number(sql, project=project, day=on)


#: `root` is the place or stands around it; an empty root stands around nothing.
_AROUND = "root <> '' and (root = :place or substr(:place, 1, length(root) + 1) = root || '/')"
#: Known by a fingerprint; by its remote, where nothing was said in it on this machine.
_PRINT = "fingerprint = :mark"
_BROUGHT = "remote = :mark and merged_into = 0 and seq not in (select project_seq from directories)"
#: Why a directory that is gone counts to a project. On a project that was merged for it, its own identity has this
#: alias, too: one that was split off again is left alone.
WORKTREE = "worktree"


def recognised_row(rows: Rows, project: Project) -> int | None:
    """The row of a place's own key, before merges and splits; a directory that is there again is no lost worktree."""
    sql = (
        "select coalesce((select project_seq from aliases where key = :key and (:gone = 1 or why <> :worktree)), "
        "(select seq from projects where key = :key))"
    )
    return rows.key(sql, key=project.key, gone=int(project.gone), worktree=WORKTREE)


def current_project(rows: Rows, seq: int, place: str) -> int:
    """Where a project's rows go now: into the part that was split off for this place, or what it was merged into."""
    seen = {seq}
    while True:
        merged, parts = rows.all(
            "select p.merged_into, (select count(*) from projects x where x.part_of = p.seq) from projects p "
            "where p.seq = :seq",
            seq=seq,
        )[0]
        sql = f"select seq from projects where part_of = :seq and {_AROUND} order by length(root) desc limit 1"  # noqa: S608
        step = parts and rows.value(sql, seq=seq, place=place)
        if not step or step in seen:
            step = merged
        if not step or step in seen:
            return int(step or seq)
        seq = int(step)
        seen.add(seq)


def recognised(rows: Rows, project: Project) -> tuple[int, str] | None:
    """(row key, why) of the known project that a place with an unknown key is: "same place", "worktree" or "moved".

    None for a new one. Moved is a directory with the fingerprint of exactly one known project, whose own directory is
    gone; or with the remote of one that an import brought, and in which nothing was said here yet.
    """
    sql = (
        "select seq from projects where root = :root and root <> '' and part_of = 0 and seq > 0 "
        "and kind <> 'workspace' and (:gone = 1 or not exists (select 1 from aliases a where a.key = projects.key "
        "and a.project_seq = projects.seq and a.why = :worktree)) order by seq limit 1"
    )
    place_row = rows.value(sql, root=project.root, gone=int(project.gone), worktree=WORKTREE)
    if place_row is not None:
        return int(place_row), "same place"
    repository = repository_of(rows, project)
    if repository is not None and is_place_behind(rows, repository, project):
        return repository, WORKTREE
    for marked, mark in ((_PRINT, project.fingerprint), (_BROUGHT, project.remote)):
        alike = rows.all(f"select seq, root from projects where {marked} and part_of = 0 and seq > 0", mark=mark)  # noqa: S608
        lost = [seq for seq, root in alike if mark and files.is_missing(root)]
        if len(alike) == len(lost) == 1:
            return lost[0], "moved"
    return None


def repository_of(rows: Rows, project: Project) -> int | None:
    """The row of the known repository whose worktree a directory was that is gone; None where nothing tells it.

    What a transcript says counts first, then its path.
    """
    if not project.gone:
        return None
    sql = (
        "select project_seq from aliases where why = :why and (path = :root or "
        "substr(:root, 1, length(path) + 1) = path || '/') order by length(path) desc limit 1"
    )
    alias = rows.value(sql, why=WORKTREE, root=project.root)
    if alias is not None:
        return int(alias)
    main = project.worktree_of
    if main is None:
        return None
    known = recognised_row(rows, main)
    found = recognised(rows, main) if known is None else (known, "")
    return None if found is None else found[0]


def is_place_behind(rows: Rows, repository: int, worktree: Project) -> bool:
    """Whether what is new in a worktree may be its repository's: no wall is around it, or that around both."""
    wall = everywhere(rows, current_project(rows, repository, worktree.root))
    return wall_around(rows, worktree.root) in (0, wall)


def may_be_made(rows: Rows, repository: Project, worktree: Project) -> bool:
    """The same of a repository that nothing is known of yet."""
    walls = (0, wall_around(rows, repository.root))
    return repository_of(rows, worktree) is None and wall_around(rows, worktree.root) in walls


def all_seqs(rows: Rows) -> list[int]:
    """The row keys of all projects."""
    return rows.column("select seq from projects order by seq")


def everywhere(rows: Rows, project: int) -> int:
    """The row of what holds everywhere as a project sees it: its workspace's, 0 where there is no wall."""
    return rows.number(
        "select case when kind = 'workspace' then seq else workspace_seq end from projects where seq = :seq",
        seq=project,
    )


def wall_around(rows: Rows, place: str) -> int:
    """The workspace of the nearest walled project around a place: what is new there is behind that wall; 0 for none."""
    return rows.number(
        f"select workspace_seq from projects where workspace_seq > 0 and {_AROUND} "  # noqa: S608
        "order by length(root) desc limit 1",
        place=place,
    )


def lens_around(rows: Rows, place: str) -> int:
    """The lens of the nearest directory around a place that was put under one; 0 for none."""
    return rows.number(
        f"select lens_seq from projects where lens_seq > 0 and {_AROUND} order by length(root) desc limit 1",  # noqa: S608
        place=place,
    )


@dataclass(frozen=True, slots=True)
class Moved:
    """How many rows of each kind changed their project; `twins` of the memories said the same on both sides."""

    sessions: int = 0
    turns: int = 0
    memories: int = 0
    twins: int = 0


def merge_projects(rows: Rows, source: int, into: int) -> Moved:
    """Brings all of a project into another, which takes in what is said there from now on."""
    bases = _bases(rows, source)
    for day in active_days(rows, source):
        touch(rows, into, day, source=source)
    rows.update("projects", source, merged_into=into)
    turns, sessions = _move_turns(rows, source, into, places=None)
    moved = twins = 0
    for memory in _believed(rows, source):
        other = memories.by_hash(rows, _hash(rows, memory.seq), project=into)
        if other is not None:
            twins += 1
            if _strength(memory) <= _strength(other):
                _set_aside(rows, memory, twin_of=other, now_in=source, origin=source)
                continue
            _move_memory(rows, other, source, base=_base(rows, into, other))
            _set_aside(rows, other, twin_of=memory, now_in=source, origin=into)
        _move_memory(rows, memory, into, base=bases[memory.seq])
        sql = "update memories set origin_seq = :source where seq = :seq and origin_seq = 0"
        rows.run(sql, source=source, seq=memory.seq)
        moved += 1
    checkpoints.merge_goals(rows, source, into)
    candidates.merge(rows, source, into)
    digests.clear_comparisons(rows, [source, into])
    return Moved(sessions=sessions, turns=turns, memories=moved, twins=twins)


def split_projects(rows: Rows, source: int, part: int) -> Moved:
    """Takes `part` out of the project it was merged into, or was just made as a part of: its rows and nothing else.

    A memory goes when it came from there, or was said there and nowhere else; one that came from there
    and was said again in what stays is left there as a copy.
    """
    tree = with_merged(rows, part)
    bases = _bases(rows, source)
    aside = _aside(rows, part)
    rows.update("projects", part, merged_into=0)
    turns, sessions = _move_turns(rows, source, part, places=_directories(rows, part, tree))
    moved = twins = 0
    for memory in _believed(rows, source):
        origin = rows.number("select origin_seq from memories where seq = :seq", seq=memory.seq)
        for other in aside.get(memory.seq, ()):
            _separate(rows, memory, other, source, part, leaves=origin in tree)
            twins += 1
        stays = _sources_in(rows, memory, source)
        if origin in tree or (not stays and _sources_in(rows, memory, part)):
            if stays:
                _copy(rows, memory, source, stays)
            _move_memory(rows, memory, part, base=bases[memory.seq])
            sql = "update memories set origin_seq = 0 where seq = :seq and origin_seq in (0, :part)"
            rows.run(sql, seq=memory.seq, part=part)
            moved += 1
    _give_back_days(rows, source, part, tree)
    checkpoints.split_goals(rows, source, part, tree=tree)
    candidates.split(rows, source, part)
    digests.clear_comparisons(rows, [source, part])
    return Moved(sessions=sessions, turns=turns, memories=moved, twins=twins)


def give_project(rows: Rows, memory: Memory, scope: int) -> None:
    """Gives a memory to another scope for good; one with the same text there takes in its sources."""
    other = memories.by_hash(rows, _hash(rows, memory.seq), project=scope)
    if other is None:
        _move_memory(rows, memory, scope, base=_base(rows, memory.project_seq, memory))
        return
    memories.add_confirming(rows, other.seq, memory.provenance)
    rows.run("update memories set superseded_by = :new where superseded_by = :old", new=other.id, old=memory.id)
    vectors.delete_for(rows, "memory", memory.seq)
    rows.delete("memories", seq=memory.seq)


def _give_back_days(rows: Rows, source: int, part: int, tree: frozenset[int]) -> None:
    stays = set(rows.column("select distinct substr(at, 1, 10) from turns where project_seq = :p", p=source))
    for (day,) in rows.all("select distinct substr(at, 1, 10) from turns where project_seq = :p order by 1", p=part):
        touch(rows, part, str(day))
    brought = {day for seq in tree for day in active_days(rows, source, source=seq)}
    for day in sorted(brought, reverse=True):
        if day in stays:
            rows.run("update activity set from_seq = 0 where project_seq = :p and day = :day", p=source, day=day)
        else:
            take_day(rows, source, day)


def _move_turns(rows: Rows, source: int, to: int, *, places: Sequence[int] | None) -> tuple[int, int]:
    """Gives what was said in some directories (None: in any) of a project to another; how many turns and sessions."""
    of_places = f"project_seq = :source and {in_keys('directory_seq', places)}"
    turns = rows.column(f"select seq from turns where {of_places} order by seq", source=source)  # noqa: S608
    for seq in turns:
        rows.update("turns", seq, project_seq=to)
        rows.run("update statements set project_seq = :to where turn_seq = :seq", to=to, seq=seq)
        candidates.move_packets(rows, seq, to)
        vectors.move_passages(rows, seq, to)
    return len(turns), rows.run(f"update sessions set project_seq = :to where {of_places}", to=to, source=source)  # noqa: S608


def _directories(rows: Rows, part: int, tree: frozenset[int]) -> list[int]:
    """The directories whose turns are a part's: those identified as it, and those below the path it was split off at."""
    root = rows.text("select root from projects where seq = :part and part_of > 0", part=part)
    sql = (
        f"select seq from directories where {in_keys('project_seq', sorted(tree))} or (:root <> '' "  # noqa: S608
        "and (path = :root or substr(path, 1, length(cast(:root as text)) + 1) = cast(:root as text) || '/'))"
    )
    return rows.column(sql, root=root)


def with_merged(rows: Rows, project: int) -> frozenset[int]:
    """A project with all that was merged into it, and into those."""
    return _reached(rows, project, "select seq from projects where merged_into = :seq")


def lineage(rows: Rows, project: int) -> frozenset[int]:
    """A project with what was merged into it, and what it was split off from: what was said of those is said of it."""
    if not project:  # nothing was merged into everywhere
        return frozenset({project})
    return _reached(
        rows,
        project,
        "select seq from projects where merged_into = :seq union "
        "select part_of from projects where seq = :seq and part_of > 0",
    )


def _reached(rows: Rows, project: int, step: str) -> frozenset[int]:
    """A project and everything that a query leads to from it and from there."""
    found, waiting = {project}, [project]
    while waiting:
        new = set(rows.column(step, seq=waiting.pop())) - found
        found |= new
        waiting += new
    return frozenset(found)


# --- memories


def _strength(memory: Memory) -> tuple[int, bool, float, str]:
    return AUTHORITY_RANK[memory.authority], memory.pinned, memory.confidence, memory.confirmed_at


def _believed(rows: Rows, project: int) -> list[Memory]:
    """A project's memories without those that were put aside."""
    return memories.where(rows, "m.project_seq = :project and m.twin_of = 0 order by m.seq", project=project)


def _hash(rows: Rows, seq: int) -> str:
    return str(rows.value("select text_hash from memories where seq = :seq", seq=seq))


def _base(rows: Rows, project: int, memory: Memory) -> int:
    return active_day(rows, project, on=memory.fresh_at[:10])


def _bases(rows: Rows, project: int) -> dict[int, int]:
    """Memory -> the active day of its project on which it was last confirmed."""
    return {memory.seq: _base(rows, project, memory) for memory in _believed(rows, project)}


def _move_memory(rows: Rows, memory: Memory, to: int, *, base: int) -> None:
    """Gives a memory to another scope, as old there as it was: its thresholds count that scope's active days."""
    sql = (
        "update memories set project_seq = :to, "
        "hot_until = case when hot_until >= :never then hot_until else hot_until + :by end, "
        "warm_until = case when warm_until >= :never then warm_until else warm_until + :by end, "
        "archive_at = case when archive_at >= :never then archive_at else archive_at + :by end where seq = :seq"
    )
    rows.run(sql, to=to, never=NEVER, by=_base(rows, to, memory) - base, seq=memory.seq)
    vectors.move_to(rows, "memory", memory.seq, to)
    topics.move_to(rows, memory.seq, to)


def _set_aside(rows: Rows, memory: Memory, *, twin_of: Memory, now_in: int, origin: int) -> None:
    """Keeps a memory out of sight in the merged project; the one that says the same gets its sources."""
    sql = (
        "update memories set twin_of = :twin, origin_seq = case when origin_seq = 0 then :origin else origin_seq end "
        "where seq = :seq and project_seq = :here"
    )
    rows.run(sql, twin=twin_of.seq, origin=origin, seq=memory.seq, here=now_in)
    memories.add_confirming(rows, twin_of.seq, memory.provenance)


def _aside(rows: Rows, project: int) -> dict[int, list[Memory]]:
    """The memories put aside in a merged project, by the memory that represents each."""
    found: dict[int, list[Memory]] = {}
    for seq, twin in rows.all("select seq, twin_of from memories where project_seq = :p and twin_of > 0", p=project):
        found.setdefault(int(twin), []).extend(memories.by_seqs(rows, [int(seq)]).values())
    return found


def _separate(rows: Rows, kept: Memory, other: Memory, source: int, part: int, *, leaves: bool) -> None:
    """Separates two memories that one represented: each gets the sources of its own side."""
    own = {origin.uuid for origin in other.provenance}
    for origin in kept.provenance:
        stays = rows.value("select project_seq from turns where uuid = :uuid", uuid=origin.uuid) == source
        if origin.uuid in own or (leaves and stays):
            memories.add_provenance(rows, other.seq, origin)
            rows.delete("provenance", memory_seq=kept.seq, uuid=origin.uuid)
    if leaves:  # then the other was the source's own
        _move_memory(rows, other, source, base=_base(rows, part, other))
    here = source if leaves else part
    sql = (
        "update memories set twin_of = 0, origin_seq = case when origin_seq = :here then 0 else origin_seq end "
        "where seq = :seq"
    )
    rows.run(sql, here=here, seq=other.seq)


def _sources_in(rows: Rows, memory: Memory, project: int) -> tuple[Provenance, ...]:
    """The sources of a memory, as they are now, that were said in a project."""
    return tuple(
        source
        for source in memories.by_seqs(rows, [memory.seq])[memory.seq].provenance
        if rows.value("select project_seq from turns where uuid = :uuid", uuid=source.uuid) == project
    )


def _copy(rows: Rows, memory: Memory, project: int, sources: tuple[Provenance, ...]) -> None:
    """Leaves a memory that goes where it was said again: a copy with those sources, which are no longer the other's."""
    digest = hashlib.sha256(f"{memory.id}:{project}:{sources[0].uuid}".encode()).hexdigest()[:10]
    kept = replace(memory, id=f"m{digest}", provenance=(replace(sources[0], role="states"), *sources[1:]))
    memories.insert(rows, kept, text_hash=_hash(rows, memory.seq))
    for source in sources:
        rows.delete("provenance", memory_seq=memory.seq, uuid=source.uuid)


def lone_worktrees(rows: Rows, *, below: str) -> list[str]:
    """The roots at a directory or below it of projects told by their path alone, and never merged, taken apart or walled."""
    sql = (
        "select p.root from projects p where p.kind = 'path' and p.merged_into = 0 and p.part_of = 0 and p.seq > 0 "
        "and (p.root = :below or substr(p.root, 1, length(cast(:below as text)) + 1) = cast(:below as text) || '/') "
        "and not exists (select 1 from projects x where x.part_of = p.seq) "
        "and not exists (select 1 from aliases a where a.key = p.key and a.why = :worktree) order by p.seq"
    )
    return rows.column(sql, below=below, worktree=WORKTREE)


def bring_home(rows: Rows, worktree: Project, repository: Project, *, is_gone: Callable[[str], bool], now: str) -> int:
    """Has a worktree that is gone count to its repository; how many projects of its own were merged for it.

    Nothing where a wall is between them, and nothing of a project that was split off again: `csmd project split` is what
    takes this back. A repository that nothing is known of is made only for what there is to bring.
    """
    known = recognised_row(rows, repository)
    into = None if known is None else current_project(rows, known, repository.root)
    wall = wall_around(rows, repository.root) if into is None else everywhere(rows, into)
    merged = 0
    for root in lone_worktrees(rows, below=worktree.root):
        own, key = rows.all(
            "select seq, key from projects where root = :root and kind = 'path' order by seq", root=root
        )[0]
        if is_gone(root) and own not in (known, into) and everywhere(rows, own) == wall:
            add_alias(rows, key, own, path=root, why=WORKTREE, now=now)
            merge_projects(rows, own, ensure(rows, repository, now=now))
            merged += 1
    known = recognised_row(rows, repository)
    # Something may be known as a project at its directory, be it a repository that is gone.
    is_known = rows.exists("select 1 from projects where root = :root and seq > 0", root=worktree.root)
    is_new = recognised_row(rows, worktree) is None and not is_known
    if known and is_new and is_place_behind(rows, known, worktree):
        add_alias(rows, worktree.key, known, path=worktree.root, why=WORKTREE, now=now)
    return merged


def worktrees_of(rows: Rows, seq: int) -> list[str]:
    """The identities of worktrees that are gone and count to a project."""
    return rows.column(
        "select key from aliases where project_seq = :seq and why = :why order by key", seq=seq, why=WORKTREE
    )


class Instruction(NamedTuple):
    """One file that assistants load; `root` is the directory it was found for, `text_hash` keyed, `hosts` separated by spaces."""

    path: str
    kind: str
    root: str
    text: str
    text_hash: str
    hosts: str = "claude"


def replace_instructions(rows: Rows, project: int, found: Sequence[Instruction], *, now: str) -> int:
    """Makes `found` a project's instructions, in their order; how many files are new, changed or gone."""
    known = {path: rest for path, *rest in instruction_hashes(rows, project)}
    changed = sum(known.get(file.path) != [file.text_hash, file.hosts] for file in found)
    gone = known.keys() - {file.path for file in found}
    for ordinal, file in enumerate(found):
        values = {"project_seq": project, "ordinal": ordinal, "read_at": now, "gone": 0, **column_values(file)}
        rows.upsert("instructions", "project_seq, path", **values)
    for path in gone:
        # Its text goes with it; that it was there, and as what, stays.
        sql = (
            "update instructions set gone = 1, text = '', read_at = :now where project_seq = :project and path = :path"
        )
        rows.run(sql, now=now, project=project, path=path)
    return changed + len(gone)


def instruction_hashes(rows: Rows, project: int) -> list[tuple[str, str, str]]:
    """(path, hash, hosts) of a project's instructions in their order: what tells whether anything changed."""
    return rows.all(
        "select path, text_hash, hosts from instructions where project_seq = :project and gone = 0 order by ordinal",
        project=project,
    )


def instruction_texts(rows: Rows, projects: Sequence[int], host: str) -> list[str]:
    """The texts of the instruction files that assistants load in these projects."""
    sql = "select text, hosts from instructions where project_seq = :project and gone = 0 order by ordinal"
    found = (row for project in projects for row in rows.all(sql, project=project))
    return [text for text, hosts in found if host in hosts.split()]


def projects_since(rows: Rows, since: str) -> list[tuple[int, str]]:
    """(row key, root) of the projects that had a session since a time, the latest first."""
    return rows.all(
        "select p.seq, p.root from projects p join sessions s on s.project_seq = p.seq where p.seq > 0 "
        "group by p.seq, p.root having max(s.last_at) >= :since order by max(s.last_at) desc",
        since=since,
    )
