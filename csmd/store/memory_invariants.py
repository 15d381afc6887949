"""Invariants of memories as queries.

A row of INVARIANTS is a rule, a search for the ids that violate it, and the remedy. Most searches are queries. Forgotten
statements are known only by keyed hashes, so `_find_forgotten` compares them in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from csmd.store import tombstones
from csmd.store.sqlite import Rows
from csmd.vocabulary import CATEGORIES, MIN_CORRECTION_CONFIDENCE

#: Ids that are named for each rule.
MAX_IDS_SHOWN = 20
#: Least confidence of the candidate of an inferred memory.
MIN_INFERRED_CONFIDENCE = 0.7
#: Fewest sightings of the candidate of an inferred memory.
MIN_REINFORCEMENT = 3
#: Fewest turns that support the candidate of an inferred memory.
MIN_EVIDENCE = 2
_FORGET = "`csmd show ID` shows its sources; `csmd forget ID` deletes it"
_REPAIR = "`csmd repair --dry-run` lists the problems of the database"
_REVIEW = "`csmd review` shows it"


class Invariant(NamedTuple):
    """A rule without exceptions, the search for the ids that violate it, and the remedy.

    The search is a query, or a function of the rows and the key of the hashes.
    """

    name: str
    rule: str
    search: str | Callable[[Rows, bytes], list[str]]
    remedy: str


def _bound_by_category(bound: str) -> str:
    parts = " ".join(f"when '{name}' then {getattr(rule, bound)}" for name, rule in CATEGORIES.items())
    return f"case m.category {parts} else 0 end"


_CONFIDENCE_SQL = (
    "select m.id from memories m where m.confidence < 0 or m.confidence > 1 "  # noqa: S608
    # Above the range only if said again or pinned, below only if contradicted since.
    f"or (m.confidence > {_bound_by_category('high')} + 0.0001 and m.pinned = 0 and m.origin <> 'inferred' "
    "and (select count(*) from provenance p where p.memory_seq = m.seq and p.role <> 'beside') < 2) "
    f"or (m.confidence < {_bound_by_category('low')} - 0.0001 and m.pinned = 0 and m.superseded_by = '' "
    f"and m.origin <> 'inferred' and not (m.gate = 'correction' and m.confidence >= {MIN_CORRECTION_CONFIDENCE}) "
    "and not exists (select 1 from links l where l.from_seq = m.seq or l.to_seq = m.seq) "
    "and not exists (select 1 from belief_changes b where b.memory_id = m.id))"
)


def _find_forgotten(rows: Rows, key: bytes) -> list[str]:
    """Returns stored memories whose text the user deleted by `forget`, or that assistants deleted and saved again."""
    hashes = tombstones.list_forgotten_hashes(rows)
    sql = "select id, text, gate, authority, project_seq, created_at from memories order by id"
    return [
        memory_id
        for memory_id, text, gate, authority, project, created_at in (rows.all(sql) if hashes else ())
        if tombstones.hash_statement(text, key) in hashes
        and tombstones.is_statement_forgotten(
            rows, text, correction=gate == "correction", authority=authority, project=project, at=created_at, key=key
        )
    ][:MAX_IDS_SHOWN]


INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "provenance", "every memory has a source",
        "select m.id from memories m where not exists (select 1 from provenance p where p.memory_seq = m.seq)",
        _FORGET,
    ),
    Invariant(
        "evidence", "inferred memories have evidence above the thresholds",
        f"""select c.id from candidates c where c.status = 'promoted' and c.source not like '%relaxed%'
            and c.kind not in ('duplicate', 'near_duplicate', 'stale', 'missing_embedding', 'orphan')
            and (c.confidence < {MIN_INFERRED_CONFIDENCE}
            or c.reinforcement < {MIN_REINFORCEMENT} or c.contradicted > 0 or (select count(*)
            from candidate_evidence e where e.candidate_seq = c.seq and e.against = 0) < {MIN_EVIDENCE})""",  # noqa: S608
        _REVIEW,
    ),
    Invariant(
        "inferred", "every inferred memory has the candidate it came from",
        """select m.id from memories m where m.origin = 'inferred' and not exists (select 1
            from candidates c where c.status = 'promoted' and ' ' || c.memory_ids || ' ' like '% ' || m.id || ' %')""",
        _FORGET,
    ),
    Invariant(
        "external", "external text is evidence, not a stated memory",
        "select m.id from memories m where m.authority = 'external' and m.origin = 'stated'",
        _FORGET,
    ),
    Invariant(
        "external-statements", "external text is never chosen as a statement",
        "select cast(x.seq as text) from statements x where x.authority = 'external'",
        _REPAIR,
    ),
    Invariant(
        "model-saved", "memories saved by an assistant do not count as the user's",
        "select m.id from memories m where m.origin = 'model_saved' and m.authority = 'user'",
        _FORGET,
    ),
    Invariant(
        "superseded", "a memory is superseded by a different, existing memory of the same scope",
        """select m.id from memories m where m.superseded_by <> '' and not exists (select 1
            from memories n join projects p on p.seq = m.project_seq where n.id = m.superseded_by
            and n.seq <> m.seq and (n.project_seq in (m.project_seq, p.workspace_seq, 0) or p.merged_into > 0))""",
        "run `csmd supersede --undo ID`",
    ),
    Invariant(
        "merged", "a merged memory is archived and names the memory it was merged into",
        """select m.id from links l join memories m on m.seq = l.from_seq join memories n on n.seq = l.to_seq
            where l.relationship = 'merged_into' and (m.tier <> 'archive' or m.superseded_by <> n.id)""",
        "run `csmd pipeline merge --undo ID`",
    ),
    Invariant(
        "confidence", "a confidence is within its category's range, or an event explains the difference",
        _CONFIDENCE_SQL,
        "`csmd show ID` shows its history; `csmd edit ID` corrects it",
    ),
    Invariant("forgotten", "no forgotten statement is stored", _find_forgotten, "`csmd forget ID` deletes it again"),
    Invariant(
        "links", "every link leads from a memory to another memory",
        """select cast(l.from_seq as text) from links l where l.from_seq = l.to_seq or not exists (select 1
            from memories m where m.seq = l.from_seq) or not exists (select 1 from memories m where m.seq = l.to_seq)""",
        _REPAIR,
    ),
    Invariant(
        "statements", "every statement was said in a turn of a session",
        """select cast(x.seq as text) from statements x where not exists (select 1
            from sessions s where s.seq = x.session_seq) or not exists (select 1 from turns t where t.seq = x.turn_seq)""",
        _REPAIR,
    ),
    Invariant(
        "pinned", "pinned memories do not fade",
        "select m.id from memories m where m.pinned = 1 and (m.decay <> 'permanent' or m.tier in ('session', 'daily'))",
        "`csmd remember --pin` with the same words pins it again",
    ),
    Invariant(
        "thresholds", "thresholds are in order: warm, cold, archived",
        "select m.id from memories m where m.hot_until > m.warm_until or m.warm_until > m.archive_at",
        "`csmd remember` with the same words restarts its aging",
    ),
    Invariant(
        "scope", "project memories belong to a project, global ones to no project",
        """select m.id from memories m join projects p on p.seq = m.project_seq
            where (m.scope <> 'project' and p.seq <> 0 and p.kind <> 'workspace')
            or (m.scope = 'project' and p.seq = 0)""",
        _FORGET,
    ),
    Invariant(
        "candidates", "every open candidate cites a stored turn",
        """select c.id from candidates c where c.status in ('open', 'needs_review') and exists (select 1
            from candidate_evidence e where e.candidate_seq = c.seq) and not exists (select 1 from candidate_evidence e
            where e.candidate_seq = c.seq and (substr(e.uuid, 1, 4) = 'cli:' or exists (select 1
            from turns t where t.uuid = e.uuid) or exists (select 1 from provenance p where p.uuid = e.uuid)))""",
        f"{_REVIEW}: drop it",
    ),
)  # fmt: skip


def find_violations(rows: Rows, key: bytes) -> dict[str, list[str]]:
    """Returns up to MAX_IDS_SHOWN ids that violate each rule, by name; rules without any are omitted."""
    violations = {}
    for name, _, search, _ in INVARIANTS:
        if isinstance(search, str):
            ids = rows.column(f"{search} order by 1 limit {MAX_IDS_SHOWN}")
        else:
            ids = search(rows, key)
        if ids:
            violations[name] = ids
    return violations
