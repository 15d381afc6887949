"""Memories for upkeep to compare and their defects, and the candidates that upkeep queued."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.knowledge import Candidate, Memory
from csmd.store import candidates, memories
from csmd.store.sqlite import Rows, in_keys
from csmd.vocabulary import CandidateKind

#: The kinds of candidates that upkeep queues; the others are beliefs.
UPKEEP_KINDS: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate", "stale", "missing_embedding", "orphan")
#: Memories `m` between two row keys.
_IN_RANGE = "m.seq > :after and m.seq <= :to"
_UPKEEP_KINDS_SQL = ", ".join(f"'{kind}'" for kind in UPKEEP_KINDS)


def list_memories_after(rows: Rows, seq: int, *, limit: int) -> list[Memory]:
    """Returns the next memories after a row key, in order, except those of colleagues."""
    return memories.where(
        rows, f"m.seq > :seq and {memories.NOT_COLLEAGUES} order by m.seq limit :limit", seq=seq, limit=limit
    )


def list_active_memories(rows: Rows, projects: Sequence[int] | None) -> list[Memory]:
    """Returns the active memories of some projects (None: all), except those of colleagues."""
    alive = f"m.tier <> 'archive' and m.superseded_by = '' and m.twin_of = 0 and {memories.NOT_COLLEAGUES}"
    return memories.where(rows, f"{alive} and {in_keys('m.project_seq', projects)} order by m.seq")


def list_expired_ids(rows: Rows, *, after: int, to: int) -> list[str]:
    """Returns the ids of memories between two row keys whose `archive_at` has passed."""
    sql = f"""select m.id from memories m
        where {_IN_RANGE} and m.tier <> 'archive' and m.pinned = 0 and m.twin_of = 0
        and m.archive_at < (select count(*) from activity a where a.project_seq = m.project_seq) order by m.seq"""  # noqa: S608
    return rows.column(sql, after=after, to=to)


def list_ids_without_turns(rows: Rows, *, after: int, to: int) -> list[str]:
    """Returns the ids of memories between two row keys none of whose sources has a stored turn.

    Statements at the command line and imported memories (their belief change is `brought`) are excluded: they have none.
    """
    sql = f"""select m.id from memories m where {_IN_RANGE} and m.tier <> 'archive'
        and not exists (select 1 from provenance p where p.memory_seq = m.seq and (substr(p.uuid, 1, 4) = 'cli:'
        or exists (select 1 from turns t where t.uuid = p.uuid))) and not exists (select 1
        from belief_changes c where c.memory_id = m.id and c.change = 'brought') order by m.seq"""  # noqa: S608
    return rows.column(sql, after=after, to=to)


def list_ids_without_vector(rows: Rows, *, after: int, to: int) -> list[str]:
    """Returns the ids of memories between two row keys that a model skipped; queued ones are excluded."""
    sql = f"""select distinct m.id from memories m join vector_models v on m.seq <= coalesce((select c.position
        from cursors c where c.stage = 'embed-memory' and c.subject = cast(v.seq as text)), 0)
        where {_IN_RANGE} and not exists (select 1
        from vectors x where x.kind = 'memory' and x.model_seq = v.seq and x.row_seq = m.seq) and not exists (select 1
        from embed_again e where e.kind = 'memory' and e.model_seq = v.seq and e.row_seq = m.seq) order by m.id"""  # noqa: S608
    return rows.column(sql, after=after, to=to)


def list_candidates_about(rows: Rows, memory_id: str) -> list[Candidate]:
    """Returns the waiting candidates that upkeep queued about a memory."""
    return candidates.where(
        rows,
        f"""m.status in ('open', 'needs_review') and m.kind in ({_UPKEEP_KINDS_SQL})
            and ' ' || m.memory_ids || ' ' like '% ' || cast(:id as text) || ' %' order by m.seq""",
        id=memory_id,
    )


def list_dropped(rows: Rows) -> frozenset[tuple[int, str, str]]:
    """Returns (project, kind, fingerprint) of the upkeep candidates that a person dropped."""
    dropped = f"status = 'dropped' and kind in ({_UPKEEP_KINDS_SQL})"
    return frozenset(rows.all(f"select project_seq, kind, fingerprint from candidates where {dropped}"))  # noqa: S608
