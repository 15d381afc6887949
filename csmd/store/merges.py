"""Two projects become one, and one is taken apart again: rows change their project, none is lost.

Turns and sessions know by their directory what they were identified as, memories by `origin_seq`, so
that a split gives back what a merge brought. Of two memories with the same text the weaker is put
aside in the merged project as the twin of the other. Each of the two is one transaction.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from csmd.model import AUTHORITY_RANK, NEVER, Memory, Provenance
from csmd.store import candidates, digests, goals, memories, packets, projects, topics, vectors
from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True)
class Moved:
    """How many rows of each kind changed their project; `twins` of the memories said the same on both sides."""

    sessions: int = 0
    turns: int = 0
    memories: int = 0
    twins: int = 0


def merge(rows: Rows, source: int, into: int) -> Moved:
    """Brings all of a project into another, which takes in what is said there from now on."""
    bases = _bases(rows, source)
    for day in projects.days(rows, source):
        projects.touch(rows, into, day, source=source)
    rows.run("update projects set merged_into = :target where seq = :source", target=into, source=source)
    turns = _move_turns(rows, [seq for seq, _ in _turns(rows, source)], into)
    sessions = rows.run(
        "update sessions set project_seq = :target where project_seq = :source", target=into, source=source
    )
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
        rows.run(
            "update memories set origin_seq = :source where seq = :seq and origin_seq = 0",
            source=source,
            seq=memory.seq,
        )
        moved += 1
    goals.merge(rows, source, into)
    candidates.merge(rows, source, into)
    digests.compare_again(rows, [source, into])
    return Moved(sessions=sessions, turns=turns, memories=moved, twins=twins)


def split(rows: Rows, source: int, part: int) -> Moved:
    """Takes `part` out of the project it was merged into, or was just made as a part of: its rows and nothing else.

    A memory goes when it came from there, or was said there and nowhere else; one that came from there
    and was said again in what stays is left there as a copy.
    """
    tree = with_merged(rows, part)
    bases = _bases(rows, source)
    aside = _aside(rows, part)
    rows.run("update projects set merged_into = 0 where seq = :part", part=part)
    places = _directories(rows, part, tree)
    turns = _move_turns(rows, [seq for seq, directory in _turns(rows, source) if directory in places], part)
    sessions = 0
    for session, directory in rows.all("select seq, directory_seq from sessions where project_seq = :p", p=source):
        if directory in places:
            sessions += rows.run("update sessions set project_seq = :part where seq = :seq", part=part, seq=session)
    moved = twins = 0
    for memory in _believed(rows, source):
        origin = int(rows.value("select origin_seq from memories where seq = :seq", seq=memory.seq))
        for other in aside.get(memory.seq, ()):
            _take_apart(rows, memory, other, source, part, leaves=origin in tree)
            twins += 1
        stays = _said_in(rows, memory, source)
        if origin in tree or (not stays and _said_in(rows, memory, part)):
            if stays:
                _copy(rows, memory, source, stays)
            _move_memory(rows, memory, part, base=bases[memory.seq])
            rows.run(
                "update memories set origin_seq = 0 where seq = :seq and origin_seq in (0, :part)",
                seq=memory.seq,
                part=part,
            )
            moved += 1
    _give_back_days(rows, source, part, tree)
    goals.split(rows, source, part, tree=tree)
    candidates.split(rows, source, part)
    digests.compare_again(rows, [source, part])
    return Moved(sessions=sessions, turns=turns, memories=moved, twins=twins)


def give(rows: Rows, memory: Memory, scope: int) -> None:
    """Gives a memory to another scope for good; one with the same text there takes in its sources."""
    other = memories.by_hash(rows, _hash(rows, memory.seq), project=scope)
    if other is None:
        _move_memory(rows, memory, scope, base=_base(rows, memory.project_seq, memory))
        return
    for source in memory.provenance:
        memories.add_provenance(rows, other.seq, _confirming(source))
    rows.run("update memories set superseded_by = :new where superseded_by = :old", new=other.id, old=memory.id)
    vectors.delete_for(rows, "memory", memory.seq)
    rows.run("delete from memories where seq = :seq", seq=memory.seq)


def _give_back_days(rows: Rows, source: int, part: int, tree: frozenset[int]) -> None:
    stays = {
        str(day) for (day,) in rows.all("select distinct substr(at, 1, 10) from turns where project_seq = :p", p=source)
    }
    for (day,) in rows.all("select distinct substr(at, 1, 10) from turns where project_seq = :p order by 1", p=part):
        projects.touch(rows, part, str(day))
    brought = {day for seq in tree for day in projects.days(rows, source, source=seq)}
    for day in sorted(brought, reverse=True):
        if day in stays:
            rows.run("update activity set from_seq = 0 where project_seq = :p and day = :day", p=source, day=day)
        else:
            projects.take_day(rows, source, day)


def _turns(rows: Rows, project: int) -> list[tuple[int, int]]:
    """(row key, directory) of a project's turns."""
    found = rows.all("select seq, directory_seq from turns where project_seq = :p order by seq", p=project)
    return [(int(seq), int(directory)) for seq, directory in found]


def _move_turns(rows: Rows, seqs: list[int], to: int) -> int:
    for seq in seqs:
        rows.run("update turns set project_seq = :to where seq = :seq", to=to, seq=seq)
        rows.run("update statements set project_seq = :to where turn_seq = :seq", to=to, seq=seq)
        packets.move_to(rows, seq, to)
        vectors.move_to(rows, "turn", seq, to)
    return len(seqs)


def _directories(rows: Rows, part: int, tree: frozenset[int]) -> frozenset[int]:
    """The directories whose turns are a part's: those identified as it, and those below the path it was split off at."""
    root = rows.value("select root from projects where seq = :part and part_of > 0", part=part) or ""
    return frozenset(
        int(seq)
        for seq, path, project in rows.all("select seq, path, project_seq from directories")
        if project in tree or (root and (path == root or str(path).startswith(f"{root}/")))
    )


def with_merged(rows: Rows, project: int) -> frozenset[int]:
    """A project with all that was merged into it, and into those."""
    found, waiting = {project}, [project]
    while waiting:
        for (seq,) in rows.all("select seq from projects where merged_into = :seq", seq=waiting.pop()):
            if seq not in found:
                found.add(int(seq))
                waiting.append(int(seq))
    return frozenset(found)


def lineage(rows: Rows, project: int) -> frozenset[int]:
    """A project with what was merged into it, and what it was split off from: what was said of those is said of it."""
    found, waiting = {project}, [project] if project else []  # nothing was merged into everywhere
    while waiting:
        for (seq,) in rows.all(
            "select seq from projects where merged_into = :seq union "
            "select part_of from projects where seq = :seq and part_of > 0",
            seq=waiting.pop(),
        ):
            if seq not in found:
                found.add(int(seq))
                waiting.append(int(seq))
    return frozenset(found)


# --- memories


def _strength(memory: Memory) -> tuple[int, bool, float, str]:
    return AUTHORITY_RANK[memory.authority], memory.pinned, memory.confidence, memory.confirmed_at


def _believed(rows: Rows, project: int) -> list[Memory]:
    """A project's memories without those that were put aside."""
    found = rows.all("select seq from memories where project_seq = :p and twin_of = 0 order by seq", p=project)
    return list(memories.by_seqs(rows, [int(seq) for (seq,) in found]).values())


def _hash(rows: Rows, seq: int) -> str:
    return str(rows.value("select text_hash from memories where seq = :seq", seq=seq))


def _base(rows: Rows, project: int, memory: Memory) -> int:
    return projects.active_day(rows, project, on=memory.fresh_at[:10])


def _bases(rows: Rows, project: int) -> dict[int, int]:
    """Memory -> the active day of its project on which it was last confirmed."""
    return {memory.seq: _base(rows, project, memory) for memory in _believed(rows, project)}


def _move_memory(rows: Rows, memory: Memory, to: int, *, base: int) -> None:
    """Gives a memory to another scope, as old there as it was: its thresholds count that scope's active days."""
    by = _base(rows, to, memory) - base
    rows.run(
        "update memories set project_seq = :to, "
        "hot_until = case when hot_until >= :never then hot_until else hot_until + :by end, "
        "warm_until = case when warm_until >= :never then warm_until else warm_until + :by end, "
        "archive_at = case when archive_at >= :never then archive_at else archive_at + :by end where seq = :seq",
        to=to,
        never=NEVER,
        by=by,
        seq=memory.seq,
    )
    vectors.move_to(rows, "memory", memory.seq, to)
    topics.move_to(rows, memory.seq, to)


def _set_aside(rows: Rows, memory: Memory, *, twin_of: Memory, now_in: int, origin: int) -> None:
    """Keeps a memory out of sight in the merged project; the one that says the same gets its sources."""
    rows.run(
        "update memories set twin_of = :twin, origin_seq = case when origin_seq = 0 then :origin else origin_seq end "
        "where seq = :seq and project_seq = :here",
        twin=twin_of.seq,
        origin=origin,
        seq=memory.seq,
        here=now_in,
    )
    for source in memory.provenance:
        memories.add_provenance(rows, twin_of.seq, _confirming(source))


def _aside(rows: Rows, project: int) -> dict[int, list[Memory]]:
    """The memories put aside in a merged project, by the one that stands for each."""
    found: dict[int, list[Memory]] = {}
    for seq, twin in rows.all("select seq, twin_of from memories where project_seq = :p and twin_of > 0", p=project):
        found.setdefault(int(twin), []).extend(memories.by_seqs(rows, [int(seq)]).values())
    return found


def _take_apart(rows: Rows, kept: Memory, other: Memory, source: int, part: int, *, leaves: bool) -> None:
    """Ends that one memory stands for two: each gets the sources of its own side."""
    own = {origin.uuid for origin in other.provenance}
    for origin in kept.provenance:
        stays = rows.value("select project_seq from turns where uuid = :uuid", uuid=origin.uuid) == source
        if origin.uuid in own or (leaves and stays):
            memories.add_provenance(rows, other.seq, origin)
            rows.run("delete from provenance where memory_seq = :seq and uuid = :uuid", seq=kept.seq, uuid=origin.uuid)
    if leaves:  # then the other was the source's own
        _move_memory(rows, other, source, base=_base(rows, part, other))
    here = source if leaves else part
    rows.run(
        "update memories set twin_of = 0, origin_seq = case when origin_seq = :here then 0 else origin_seq end "
        "where seq = :seq",
        here=here,
        seq=other.seq,
    )


def _said_in(rows: Rows, memory: Memory, project: int) -> tuple[Provenance, ...]:
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
        rows.run("delete from provenance where memory_seq = :seq and uuid = :uuid", seq=memory.seq, uuid=source.uuid)


def _confirming(source: Provenance) -> Provenance:
    """A source as it stands under another memory that says the same."""
    return source if source.role == "beside" else replace(source, role="confirms")
