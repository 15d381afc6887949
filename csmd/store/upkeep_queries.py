"""Queries of upkeep and review: memories to compare, defects, what waits for a person."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.knowledge import Candidate, Memory
from csmd.store import candidates, memories
from csmd.store.sqlite import Rows, in_keys
from csmd.vocabulary import CandidateKind

#: The kinds of candidates that upkeep queues; the others are beliefs.
UPKEEP_KINDS: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate", "stale", "missing_embedding", "orphan")
_OF_UPKEEP = ", ".join(f"'{kind}'" for kind in UPKEEP_KINDS)


def memories_past(rows: Rows, seq: int, *, limit: int) -> list[Memory]:
    """Returns the next memories past a row key, in order, without colleagues'."""
    return memories.where(
        rows, f"m.seq > :seq and {memories.NOT_COLLEAGUES} order by m.seq limit :limit", seq=seq, limit=limit
    )


def memories_of_places(rows: Rows, projects: Sequence[int] | None) -> list[Memory]:
    """Returns the living memories of some projects (None: all), without colleagues'."""
    alive = f"m.tier <> 'archive' and m.superseded_by = '' and m.twin_of = 0 and {memories.NOT_COLLEAGUES}"
    return memories.where(rows, f"{alive} and {in_keys('m.project_seq', projects)} order by m.seq")


def memories_to_archive(rows: Rows, *, after: int, to: int) -> list[str]:
    """Returns the memories between two row keys whose `archive_at` has passed."""
    sql = """select m.id from memories m
        where m.seq > :after and m.seq <= :to and m.tier <> 'archive' and m.pinned = 0 and m.twin_of = 0
        and m.archive_at < (select count(*) from activity a where a.project_seq = m.project_seq) order by m.seq"""
    return rows.column(sql, after=after, to=to)


def memories_without_turns(rows: Rows, *, after: int, to: int) -> list[str]:
    """Returns the memories between two row keys none of whose sources has a stored turn.

    Statements at the command line and memories imported from another home (`brought`) are left out: they have no turns.
    """
    sql = """select m.id from memories m where m.seq > :after and m.seq <= :to and m.tier <> 'archive'
        and not exists (select 1 from provenance p where p.memory_seq = m.seq and (substr(p.uuid, 1, 4) = 'cli:'
        or exists (select 1 from turns t where t.uuid = p.uuid))) and not exists (select 1
        from belief_changes c where c.memory_id = m.id and c.change = 'brought') order by m.seq"""
    return rows.column(sql, after=after, to=to)


def memories_without_vector(rows: Rows, *, after: int, to: int) -> list[str]:
    """Returns the memories between two row keys that an embedding model skipped; those that wait are left out."""
    sql = """select distinct m.id from memories m join vector_models v on m.seq <= coalesce((select c.position
        from cursors c where c.stage = 'embed-memory' and c.subject = cast(v.seq as text)), 0)
        where m.seq > :after and m.seq <= :to and not exists (select 1
        from vectors x where x.kind = 'memory' and x.model_seq = v.seq and x.row_seq = m.seq) and not exists (select 1
        from embed_again e where e.kind = 'memory' and e.model_seq = v.seq and e.row_seq = m.seq) order by m.id"""
    return rows.column(sql, after=after, to=to)


def about_memory(rows: Rows, memory_id: str) -> list[Candidate]:
    """Returns the waiting candidates of upkeep about a memory."""
    return candidates.where(
        rows,
        f"""m.status in ('open', 'needs_review') and m.kind in ({_OF_UPKEEP})
            and ' ' || m.memory_ids || ' ' like '% ' || cast(:id as text) || ' %' order by m.seq""",
        id=memory_id,
    )


def dropped_pairs(rows: Rows) -> frozenset[tuple[int, str, str]]:
    """Returns (project, kind, fingerprint) of the candidates of upkeep that a person dropped."""
    dropped = f"status = 'dropped' and kind in ({_OF_UPKEEP})"
    return frozenset(rows.all(f"select project_seq, kind, fingerprint from candidates where {dropped}"))  # noqa: S608


def memories_to_review(
    rows: Rows, *, projects: Sequence[int] | None, below: float, since: str, limit: int
) -> list[int]:
    """Returns row keys of memories that wait for review, the least sure first.

    They were saved by a model unasked, or are not the user's, less sure than `below` and created since `since`.
    """
    sql = f"""select t.seq from memories t where t.superseded_by = '' and t.twin_of = 0 and t.pinned = 0
        and (t.origin = 'model_saved' or (t.confidence < :below and t.created_at >= :since and t.authority <> 'user'))
        and t.seq not in (select memory_seq from team_memories) and {in_keys("t.project_seq", projects)}
        order by case t.origin when 'model_saved' then 0 else 1 end, t.confidence, t.seq desc limit :limit"""  # noqa: S608
    return rows.column(sql, below=below, since=since, limit=limit)
