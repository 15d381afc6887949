"""Merges a project into another, and splits it off again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from csmd.conversation import Project
from csmd.knowledge import Memory, Provenance
from csmd.store import candidates, digests, goals, memories, packet_rows, projects, topics, vectors
from csmd.store.sqlite import Rows, in_keys, make_id
from csmd.vocabulary import AUTHORITY_RANK, NEVER


@dataclass(frozen=True, slots=True)
class MoveCounts:
    """The rows of each kind that changed their project; `twins` of the memories said the same on both sides."""

    sessions: int = 0
    turns: int = 0
    memories: int = 0
    twins: int = 0


def merge_projects(rows: Rows, source: int, into: int) -> MoveCounts:
    """Merges a project into another, which also gets what is said there later."""
    bases = _map_confirmation_days(rows, source)
    for day in projects.active_days(rows, source):
        projects.record_active_day(rows, into, day, source=source)
    rows.update("projects", source, merged_into=into)
    turns, sessions = _move_turns(rows, source, into, directories=None)
    moved = twins = 0
    for memory in _list_memories_without_twins(rows, source):
        other = memories.by_hash(rows, _hash(rows, memory.seq), project=into)
        if other is not None:
            twins += 1
            if _strength(memory) <= _strength(other):
                _hide_memory(rows, memory, twin_of=other, now_in=source, origin=source)
                continue
            _move_memory(rows, other, source, base=_find_confirmation_day(rows, into, other))
            _hide_memory(rows, other, twin_of=memory, now_in=source, origin=into)
        _move_memory(rows, memory, into, base=bases[memory.seq])
        sql = "update memories set origin_seq = :source where seq = :seq and origin_seq = 0"
        rows.run(sql, source=source, seq=memory.seq)
        moved += 1
    goals.merge_goals(rows, source, into)
    candidates.merge(rows, source, into)
    digests.clear_comparisons(rows, [source, into])
    return MoveCounts(sessions=sessions, turns=turns, memories=moved, twins=twins)


def split_projects(rows: Rows, source: int, part: int) -> MoveCounts:
    """Splits `part` off the project that it was merged into, or was just made a part of; moves its rows only.

    A memory moves if it came from there or was said nowhere else; one that was said again in what stays is left there
    as a copy.
    """
    tree = projects.find_merged_projects(rows, part)
    bases = _map_confirmation_days(rows, source)
    hidden = _map_hidden_memories(rows, part)
    rows.update("projects", part, merged_into=0)
    turns, sessions = _move_turns(rows, source, part, directories=_list_directories(rows, part, tree))
    moved = twins = 0
    for memory in _list_memories_without_twins(rows, source):
        origin = rows.number("select origin_seq from memories where seq = :seq", seq=memory.seq)
        for other in hidden.get(memory.seq, ()):
            _separate_twins(rows, memory, other, source, part, leaves=origin in tree)
            twins += 1
        remaining = _list_sources_in(rows, memory, source)
        if origin in tree or (not remaining and _list_sources_in(rows, memory, part)):
            if remaining:
                _leave_copy(rows, memory, source, remaining)
            _move_memory(rows, memory, part, base=bases[memory.seq])
            sql = "update memories set origin_seq = 0 where seq = :seq and origin_seq in (0, :part)"
            rows.run(sql, seq=memory.seq, part=part)
            moved += 1
    _split_days(rows, source, part, tree)
    goals.split_goals(rows, source, part, tree=tree)
    candidates.split(rows, source, part)
    digests.clear_comparisons(rows, [source, part])
    return MoveCounts(sessions=sessions, turns=turns, memories=moved, twins=twins)


def move_to_scope(rows: Rows, memory: Memory, scope: int) -> None:
    """Moves a memory to another scope for good; a memory with the same text there gets its sources."""
    other = memories.by_hash(rows, _hash(rows, memory.seq), project=scope)
    if other is None:
        _move_memory(rows, memory, scope, base=_find_confirmation_day(rows, memory.project_seq, memory))
        return
    memories.add_confirming(rows, other.seq, memory.provenance)
    rows.run("update memories set superseded_by = :new where superseded_by = :old", new=other.id, old=memory.id)
    vectors.delete_of_row(rows, "memory", memory.seq)
    rows.delete("memories", seq=memory.seq)


def _split_days(rows: Rows, source: int, part: int, tree: frozenset[int]) -> None:
    remaining = set(rows.column("select distinct substr(at, 1, 10) from turns where project_seq = :p", p=source))
    for (day,) in rows.all("select distinct substr(at, 1, 10) from turns where project_seq = :p order by 1", p=part):
        projects.record_active_day(rows, part, str(day))
    merged_days = {day for seq in tree for day in projects.active_days(rows, source, source=seq)}
    for day in sorted(merged_days, reverse=True):
        if day in remaining:
            rows.run("update activity set from_seq = 0 where project_seq = :p and day = :day", p=source, day=day)
        else:
            projects.remove_active_day(rows, source, day)


def _move_turns(rows: Rows, source: int, to: int, *, directories: Sequence[int] | None) -> tuple[int, int]:
    """Moves the turns of some directories (None: all) of a project to another; returns how many turns and sessions."""
    of_directories = f"project_seq = :source and {in_keys('directory_seq', directories)}"
    turns = rows.column(f"select seq from turns where {of_directories} order by seq", source=source)  # noqa: S608
    for seq in turns:
        rows.update("turns", seq, project_seq=to)
        rows.run("update statements set project_seq = :to where turn_seq = :seq", to=to, seq=seq)
        packet_rows.move_packets(rows, seq, to)
        vectors.move_passages(rows, seq, to)
    return len(turns), rows.run(f"update sessions set project_seq = :to where {of_directories}", to=to, source=source)  # noqa: S608


def _list_directories(rows: Rows, part: int, tree: frozenset[int]) -> list[int]:
    """Returns the directories of a part: those identified as it, and those below the path at which it was split off."""
    root = rows.text("select root from projects where seq = :part and part_of > 0", part=part)
    sql = f"""select seq from directories where {in_keys("project_seq", sorted(tree))} or (:root <> ''
        and (path = :root or substr(path, 1, length(cast(:root as text)) + 1) = cast(:root as text) || '/'))"""  # noqa: S608
    return rows.column(sql, root=root)


def find_lineage(rows: Rows, project: int) -> frozenset[int]:
    """Returns a project, all that was merged into it and what it was split off from: they share their statements."""
    if not project:  # nothing was merged into everywhere
        return frozenset({project})
    return projects.find_reachable_projects(
        rows,
        project,
        """select seq
            from projects where merged_into = :seq union select part_of from projects where seq = :seq and part_of > 0""",
    )


def _strength(memory: Memory) -> tuple[int, bool, float, str]:
    return AUTHORITY_RANK[memory.authority], memory.pinned, memory.confidence, memory.confirmed_at


def _list_memories_without_twins(rows: Rows, project: int) -> list[Memory]:
    """Returns a project's memories without those covered by a twin."""
    return memories.where(rows, "m.project_seq = :project and m.twin_of = 0 order by m.seq", project=project)


def _hash(rows: Rows, seq: int) -> str:
    return str(rows.find("memories", "text_hash", seq=seq))


def _find_confirmation_day(rows: Rows, project: int, memory: Memory) -> int:
    return projects.active_day(rows, project, on=memory.fresh_at[:10])


def _map_confirmation_days(rows: Rows, project: int) -> dict[int, int]:
    """Returns the active day on which each memory of a project was last confirmed."""
    return {
        memory.seq: _find_confirmation_day(rows, project, memory)
        for memory in _list_memories_without_twins(rows, project)
    }


def _move_memory(rows: Rows, memory: Memory, to: int, *, base: int) -> None:
    """Moves a memory to another scope at the same age: its thresholds count that scope's active days."""
    sql = """update memories set project_seq = :to,
        hot_until = case when hot_until >= :never then hot_until else hot_until + :by end,
        warm_until = case when warm_until >= :never then warm_until else warm_until + :by end,
        archive_at = case when archive_at >= :never then archive_at else archive_at + :by end where seq = :seq"""
    rows.run(sql, to=to, never=NEVER, by=_find_confirmation_day(rows, to, memory) - base, seq=memory.seq)
    vectors.move_vectors(rows, "memory", memory.seq, to)
    topics.move_tags(rows, memory.seq, to)


def _hide_memory(rows: Rows, memory: Memory, *, twin_of: Memory, now_in: int, origin: int) -> None:
    """Hides a memory of the merged project; the memory that says the same gets its sources."""
    sql = """update memories set twin_of = :twin,
        origin_seq = case when origin_seq = 0 then :origin else origin_seq end where seq = :seq and project_seq = :here"""
    rows.run(sql, twin=twin_of.seq, origin=origin, seq=memory.seq, here=now_in)
    memories.add_confirming(rows, twin_of.seq, memory.provenance)


def _map_hidden_memories(rows: Rows, project: int) -> dict[int, list[Memory]]:
    """Returns the hidden memories of a merged project, by the memory that represents each."""
    hidden: dict[int, list[Memory]] = {}
    for seq, twin in rows.all("select seq, twin_of from memories where project_seq = :p and twin_of > 0", p=project):
        hidden.setdefault(int(twin), []).extend(memories.by_seqs(rows, [int(seq)]).values())
    return hidden


def _separate_twins(rows: Rows, kept: Memory, other: Memory, source: int, part: int, *, leaves: bool) -> None:
    """Separates two memories that one represented: each gets the sources of its own side."""
    own = {origin.uuid for origin in other.provenance}
    for origin in kept.provenance:
        stays = rows.find("turns", "project_seq", uuid=origin.uuid) == source
        if origin.uuid in own or (leaves and stays):
            memories.add_provenance(rows, other.seq, origin)
            rows.delete("provenance", memory_seq=kept.seq, uuid=origin.uuid)
    if leaves:  # then the other memory was the source's own
        _move_memory(rows, other, source, base=_find_confirmation_day(rows, part, other))
    own_project = source if leaves else part
    sql = """update memories set twin_of = 0, origin_seq = case when origin_seq = :own_project then 0 else origin_seq end
        where seq = :seq"""
    rows.run(sql, own_project=own_project, seq=other.seq)


def _list_sources_in(rows: Rows, memory: Memory, project: int) -> tuple[Provenance, ...]:
    """Returns the present sources of a memory that were said in a project."""
    return tuple(
        source
        for source in memories.by_seqs(rows, [memory.seq])[memory.seq].provenance
        if rows.find("turns", "project_seq", uuid=source.uuid) == project
    )


def _leave_copy(rows: Rows, memory: Memory, project: int, sources: tuple[Provenance, ...]) -> None:
    """Leaves a copy of a moving memory where it was said again; the copy gets those sources."""
    copy_id = make_id("m", memory.id, project, sources[0].uuid)
    copy = replace(memory, id=copy_id, provenance=(replace(sources[0], role="states"), *sources[1:]))
    memories.insert(rows, copy, text_hash=_hash(rows, memory.seq))
    for source in sources:
        rows.delete("provenance", memory_seq=memory.seq, uuid=source.uuid)


def list_lone_worktrees(rows: Rows, *, below: str) -> list[str]:
    """Returns the roots, at a directory or below, of projects that are only a path: never merged, split or walled."""
    sql = """select p.root from projects p where p.kind = 'path' and p.merged_into = 0 and p.part_of = 0 and p.seq > 0
        and (p.root = :below or substr(p.root, 1, length(cast(:below as text)) + 1) = cast(:below as text) || '/')
        and not exists (select 1 from projects x where x.part_of = p.seq)
        and not exists (select 1 from aliases a where a.key = p.key and a.why = :worktree) order by p.seq"""
    return rows.column(sql, below=below, worktree=projects.WORKTREE)


def assign_worktree(
    rows: Rows, worktree: Project, repository: Project, *, is_gone: Callable[[str], bool], now: str
) -> int:
    """Assigns a missing worktree to its repository and returns how many projects were merged for it.

    Does nothing across a wall, nor for a project that was split off again: `csmd project split` undoes this. An unknown
    repository is created only if there is something to merge.
    """
    repository_seq = projects.find_by_key(rows, repository)
    into = None if repository_seq is None else projects.find_current_project(rows, repository_seq, repository.root)
    wall = projects.find_workspace_around(rows, repository.root) if into is None else projects.everywhere_of(rows, into)
    merged = 0
    for root in list_lone_worktrees(rows, below=worktree.root):
        sql = "select seq, key from projects where root = :root and kind = 'path' order by seq"
        own, key = rows.all(sql, root=root)[0]
        if is_gone(root) and own not in (repository_seq, into) and projects.everywhere_of(rows, own) == wall:
            projects.add_alias(rows, key, own, path=root, why=projects.WORKTREE, now=now)
            merge_projects(rows, own, projects.ensure(rows, repository, now=now))
            merged += 1
    repository_seq = projects.find_by_key(rows, repository)
    # The directory may be known as a project, possibly as a repository that is gone.
    is_known = rows.exists("select 1 from projects where root = :root and seq > 0", root=worktree.root)
    is_new = projects.find_by_key(rows, worktree) is None and not is_known
    if repository_seq and is_new and projects.may_join_repository(rows, repository_seq, worktree):
        projects.add_alias(rows, worktree.key, repository_seq, path=worktree.root, why=projects.WORKTREE, now=now)
    return merged
