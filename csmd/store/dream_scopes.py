"""Reads what a dream over one project, or over what applies everywhere, is planned from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd.knowledge import Evidence, Memory
from csmd.store import memories
from csmd.store.sqlite import Rows, in_keys

#: Memories of a project that are looked at, those confirmed last.
MAX_MEMORIES = 5000
#: What users said in the projects of a workspace about how they work.
_STATED = """from memories m join projects p on p.seq = m.project_seq
    where p.workspace_seq = :place and p.seq <> :place and p.kind <> 'workspace'
    and p.merged_into = 0 and m.scope = 'project' and m.authority = 'user' and m.tier <> 'archive'
    and m.superseded_by = '' and m.twin_of = 0 and (m.gate = 'behavioral' or m.category = 'preference')"""


class DreamScope(NamedTuple):
    """The row key of a project, or of a workspace or all, and of the scope that applies everywhere for it."""

    seq: int
    everywhere: int


def list_scopes(rows: Rows) -> list[DreamScope]:
    """Returns the scopes that a dream examines: the general scopes first, then projects by key."""
    sql = """select p.seq, case when p.kind = 'workspace' then p.seq else p.workspace_seq end
        from projects p where p.merged_into = 0
        order by case when p.seq = 0 then 0 when p.kind = 'workspace' then 1 else 2 end, p.key"""
    return rows.read(DreamScope, sql)


def list_memory_seqs(rows: Rows, scope: DreamScope) -> list[int]:
    """Returns the row keys of a scope's memories that are not archived, and of living general ones that apply there."""
    latest = f"""select m.seq from memories m
        where m.project_seq = :scope and m.tier <> 'archive' and m.twin_of = 0 and {memories.NOT_COLLEAGUES}
        and (:alive = 0 or m.superseded_by = '') order by m.confirmed_at desc, m.id limit :most"""  # noqa: S608
    own = rows.column(latest, scope=scope.seq, alive=0, most=MAX_MEMORIES)
    general = (
        rows.column(latest, scope=scope.everywhere, alive=1, most=MAX_MEMORIES) if scope.everywhere != scope.seq else []
    )
    return own + general


def filter_unarchived(rows: Rows, seqs: Sequence[int]) -> list[Memory]:
    """Returns those of some memories that are neither archived nor a twin by now."""
    return memories.where(rows, f"{in_keys('m.seq', seqs)} and m.tier <> 'archive' and m.twin_of = 0")


def list_stated_habits(rows: Rows, scope: DreamScope) -> list[int]:
    """Returns the row keys of working habits that users stated in the projects of a workspace (or anywhere).

    [] for a project.
    """
    if scope.everywhere != scope.seq:
        return []
    latest = f"select m.seq {_STATED} order by m.confirmed_at desc, m.id limit :most"
    return rows.column(latest, place=scope.seq, most=MAX_MEMORIES)


def filter_stated_habits(rows: Rows, workspace: int, memory_ids: Sequence[str]) -> dict[str, int]:
    """Returns memory -> project for those of some memories that are still habits stated in a project of a workspace."""
    projects = {
        memory_id: rows.value(f"select m.project_seq {_STATED} and m.id = :id", place=workspace, id=memory_id)
        for memory_id in memory_ids
    }
    return {memory_id: project for memory_id, project in projects.items() if project is not None}


def read_topics(rows: Rows, scope: DreamScope, seqs: Sequence[int]) -> dict[str, frozenset[str]]:
    """Returns memory -> the names of its topics, without those that a person removed."""
    names_of: dict[str, set[str]] = defaultdict(set)
    for memory_id, name in rows.all(
        f"""select m.id, t.name from memories m join memory_topics x on x.memory_seq = m.seq join topics t
            on t.seq = x.topic_seq where {in_keys("m.seq", seqs)} and m.project_seq = :scope and x.weight > 0""",  # noqa: S608
        scope=scope.seq,
    ):
        names_of[memory_id].add(name)
    return {memory_id: frozenset(names) for memory_id, names in names_of.items()}


def list_injected_sessions(rows: Rows, seqs: Sequence[int]) -> frozenset[tuple[str, str]]:
    """Returns (session, memory) for each session into which one of these memories was injected."""
    sql = f"""select distinct n.session_id, i.memory_id from memories m join injection_items i on i.memory_id = m.id
        join injections n on n.seq = i.injection_seq where {in_keys("m.seq", seqs)}"""  # noqa: S608
    injected = rows.all(sql)
    return frozenset(injected)


def list_assistant_sources(rows: Rows, seqs: Sequence[int]) -> frozenset[str]:
    """Returns the uuids of assistants' turns among the sources of some memories."""
    sql = f"""select distinct p.uuid from provenance p
        join turns t on t.uuid = p.uuid where {in_keys("p.memory_seq", seqs)} and t.kind = 'assistant'"""  # noqa: S608
    return rows.distinct(sql)


def read_vector_state(rows: Rows, scope: DreamScope) -> tuple[int, int]:
    """Returns the number of vectors of a scope's memories, and the row key of the last: a fingerprint of the set."""
    sql = """select count(*), coalesce(max(c.seq), 0) from vector_models cross join vector_codes c
        where c.model_seq = vector_models.seq and c.kind = 'memory' and c.project_seq = :scope"""
    number, last = rows.all(sql, scope=scope.seq)[0]
    return number, last


def read_compared_digest(rows: Rows, scope: DreamScope) -> str:
    """Returns the digest of a scope's contents when comparing its memories last found nothing; "" if there is none."""
    return rows.text("select digest from dreamt_scopes where project_seq = :scope", scope=scope.seq)


def record_compared_digest(rows: Rows, scope: DreamScope, digest: str) -> None:
    """Records the digest of a scope's contents after comparing its memories found nothing."""
    rows.upsert("dreamt_scopes", "project_seq", project_seq=scope.seq, digest=digest)


def find_evidence(rows: Rows, uuids: Iterable[str]) -> tuple[Evidence, ...]:
    """Returns those of some turns that exist, in order of time."""
    text = "select t.uuid, s.id, t.at from turns t join sessions s on s.seq = t.session_seq where t.uuid = :uuid"
    sources = [turn for uuid in dict.fromkeys(uuids) for turn in rows.read(Evidence, text, uuid=uuid)]
    return tuple(sorted(sources, key=lambda turn: (turn.at, turn.uuid)))
