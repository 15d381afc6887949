"""Rows of upkeep: what is looked at, and a merge done and undone; what to do about it is `believe.upkeep`'s.

A memory that was merged stays: archived, `superseded_by` the one that says the same, with a link MERGED to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from csmd.model import Candidate, CandidateKind, Link, Memory
from csmd.store import beliefs, candidates, memories
from csmd.store.sqlite import Rows

#: The link from a memory to the one that it was merged into.
MERGED = "merged_into"
#: What upkeep puts into the queue of candidates; the other kinds are beliefs.
KINDS: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate", "stale", "missing_embedding", "orphan")
MERGE = "merge"
TOOK_IN = "took in"
ARCHIVE = "archive"


def after(rows: Rows, seq: int, *, limit: int) -> list[Memory]:
    """The next memories past a row key, in order."""
    found = rows.all("select seq from memories where seq > :seq order by seq limit :limit", seq=seq, limit=limit)
    return sorted(memories.by_seqs(rows, [int(one) for (one,) in found]).values(), key=lambda memory: memory.seq)


def past_archiving(rows: Rows, *, after: int, to: int) -> list[tuple[str, int]]:
    """(id, active days past its `archive_at`) of the memories between two row keys that nobody has used for long."""
    return [
        (str(ident), int(over))
        for ident, over in rows.all(
            "select m.id, (select count(*) from activity a where a.project_seq = m.project_seq) - m.archive_at "
            "from memories m where m.seq > :after and m.seq <= :to and m.tier <> 'archive' and m.pinned = 0 "
            "and m.twin_of = 0 and m.archive_at < "
            "(select count(*) from activity a where a.project_seq = m.project_seq) order by m.seq",
            after=after,
            to=to,
        )
    ]


def without_turns(rows: Rows, *, after: int, to: int) -> list[str]:
    """The memories between two row keys of whose sources no turn is left.

    What was said at the command line has none, and what came from another home (`brought`) has none here.
    """
    return [
        str(ident)
        for (ident,) in rows.all(
            "select m.id from memories m where m.seq > :after and m.seq <= :to and m.tier <> 'archive' "
            "and not exists (select 1 from provenance p where p.memory_seq = m.seq and (substr(p.uuid, 1, 4) = 'cli:' "
            "or exists (select 1 from turns t where t.uuid = p.uuid))) and not exists (select 1 from belief_changes c "
            "where c.memory_id = m.id and c.change = 'brought') order by m.seq",
            after=after,
            to=to,
        )
    ]


def without_vector(rows: Rows, *, after: int, to: int) -> list[str]:
    """The memories between two row keys that an embedding model has passed by; what waits for its turn is not among them."""
    return [
        str(ident)
        for (ident,) in rows.all(
            "select distinct m.id from memories m join vector_models v on m.seq <= coalesce((select c.position "
            "from cursors c where c.stage = 'embed-memory' and c.subject = cast(v.seq as text)), 0) "
            "where m.seq > :after and m.seq <= :to and not exists (select 1 from vectors x where x.kind = 'memory' "
            "and x.model_seq = v.seq and x.row_seq = m.seq) and not exists (select 1 from embed_again e "
            "where e.kind = 'memory' and e.model_seq = v.seq and e.row_seq = m.seq) order by m.id",
            after=after,
            to=to,
        )
    ]


def about(rows: Rows, memory_id: str) -> list[Candidate]:
    """The waiting candidates of upkeep that are about a memory."""
    keys = ", ".join(f"'{kind}'" for kind in KINDS)
    found = rows.all(
        f"select id from candidates where status in ('open', 'needs_review') and kind in ({keys}) "  # noqa: S608
        "and ' ' || memory_ids || ' ' like '% ' || cast(:id as text) || ' %' order by seq",
        id=memory_id,
    )
    return [one for (ident,) in found if (one := candidates.by_id(rows, str(ident))) is not None]


def dropped(rows: Rows) -> frozenset[tuple[int, str, str]]:
    """(project, kind, fingerprint) of what a person has dropped."""
    keys = ", ".join(f"'{kind}'" for kind in KINDS)
    return frozenset(
        (int(project), str(kind), str(fingerprint))
        for project, kind, fingerprint in rows.all(
            f"select project_seq, kind, fingerprint from candidates where status = 'dropped' and kind in ({keys})"  # noqa: S608
        )
    )


def kept(rows: Rows, memory: Memory) -> Memory:
    """The memory that stands for one now: the one that it was merged into, or itself."""
    seen = {memory.id}
    while memory.superseded_by and memory.superseded_by not in seen and is_merged(rows, memory):
        found = memories.by_id(rows, memory.superseded_by)
        if found is None:
            return memory
        memory = found
        seen.add(memory.id)
    return memory


def is_merged(rows: Rows, memory: Memory) -> bool:
    """Whether a memory was merged into another one."""
    found = rows.value(
        "select 1 from links where from_seq = :seq and relationship = :merged", seq=memory.seq, merged=MERGED
    )
    return found is not None


def merge(rows: Rows, merged: Memory, into: Memory, *, reason: str, by: str, now: str) -> None:
    """Puts one memory aside for another, whose values `into` has already; its sources confirm that one."""
    known = memories.by_seqs(rows, [into.seq])[into.seq]
    uuids = [
        source.uuid
        for source in merged.provenance
        if memories.add_provenance(
            rows, into.seq, source if source.role == "beside" else replace(source, role="confirms")
        )
    ]
    memories.update_belief(rows, replace(merged, tier="archive", superseded_by=into.id))
    memories.update_belief(rows, into)
    memories.add_link(rows, Link(from_id=merged.id, to_id=into.id, relationship=MERGED), now=now)
    beliefs.note(rows, merged.id, MERGE, merged.tier, into.id, reason, by, now)
    after_ = " ".join([f"{into.confidence:.4f}", merged.id, *uuids])
    before = f"{known.confidence:.4f} {known.tier} {known.used_at}".strip()
    beliefs.note(rows, into.id, TOOK_IN, before, after_, reason, by, now)


def last_merge(rows: Rows, memory_id: str) -> tuple[beliefs.Change, beliefs.Change] | None:
    """The merge of a memory that is in force, and what it did to the other one; None for none."""
    done = [row for row in beliefs.changes_of(rows, memory_id) if row.change == MERGE and not row.undone_at]
    if not done:
        return None
    took = [
        row
        for row in beliefs.changes_of(rows, done[-1].after)
        if row.change == TOOK_IN and not row.undone_at and row.after.split()[1] == memory_id
    ]
    return (done[-1], took[-1]) if took else None


def take_back(
    rows: Rows, merged: Memory, into: Memory, tookin: beliefs.Change, done: beliefs.Change, *, now: str
) -> None:
    """Ends a merge: both memories as the caller has made them, the sources that it brought gone from the other one."""
    for uuid in tookin.after.split()[2:]:
        rows.run("delete from provenance where memory_seq = :seq and uuid = :uuid", seq=into.seq, uuid=uuid)
    rows.run(
        "delete from links where from_seq = :one and to_seq = :other and relationship = :merged",
        one=merged.seq,
        other=into.seq,
        merged=MERGED,
    )
    memories.update_belief(rows, merged)
    memories.update_belief(rows, into)
    for change in (done, tookin):
        beliefs.set_undone(rows, change.seq, at=now)


def archive(rows: Rows, memory: Memory, *, reason: str, by: str, now: str) -> None:
    """Leaves a memory to explicit search."""
    memories.update_belief(rows, replace(memory, tier="archive"))
    beliefs.note(rows, memory.id, ARCHIVE, memory.tier, "archive", reason, by, now)


def of_places(rows: Rows, projects: Sequence[int] | None) -> list[Memory]:
    """The memories of some projects (None: all) that are neither archived, superseded nor put aside."""
    chosen = "" if projects is None else f"and project_seq in ({', '.join(str(int(seq)) for seq in projects)})"
    found = [
        int(seq)
        for (seq,) in rows.all(
            f"select seq from memories where tier <> 'archive' and superseded_by = '' and twin_of = 0 {chosen} order by seq"  # noqa: S608
        )
    ]
    return [
        memory
        for start in range(0, len(found), 500)
        for _, memory in sorted(memories.by_seqs(rows, found[start : start + 500]).items())
    ]
