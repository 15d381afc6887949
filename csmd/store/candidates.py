"""The queue of candidates: what may become a memory or be done to memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from csmd.knowledge import Candidate, Evidence
from csmd.store.row_values import as_value, column_values, columns
from csmd.store.sqlite import Rows, in_keys, make_id
from csmd.vocabulary import CandidateKind, CandidateStatus

#: The source of candidates from edited pages: removed lines, and wordings that an assistant wrote.
PAGE = "page"
WAITING: tuple[CandidateStatus, ...] = ("open", "needs_review")
_COLUMNS = columns(Candidate, "m", evidence="''")
#: The condition on a candidate's kind, project and fingerprint.
_SAME = "project_seq = :project_seq and kind = :kind and fingerprint = :fingerprint"


def make_candidate_id(kind: CandidateKind, project: int, fingerprint: str, created_at: str) -> str:
    """Returns a candidate's id: `c` and ten hex digits."""
    return make_id("c", kind, project, fingerprint, created_at)


def put_candidate(rows: Rows, candidate: Candidate) -> str:
    """Adds a candidate, or updates the waiting one; returns its id, "" if a person has dropped it.

    A waiting candidate keeps its id and its evidence.
    """
    sql = f"select status, seq, id from candidates where {_SAME} and status in ('open', 'needs_review', 'dropped')"  # noqa: S608
    stored = rows.all(sql, **column_values(candidate, "evidence"))
    if any(status == "dropped" for status, _, _ in stored):
        return ""
    if stored:
        _, seq, candidate_id = stored[0]
        _update(rows, seq, candidate)
    else:
        seq, candidate_id = _insert(rows, candidate)
    _add_evidence(rows, seq, candidate.evidence)
    return str(candidate_id)


def _insert(rows: Rows, candidate: Candidate) -> tuple[int, str]:
    """Returns (row key, id) of a new candidate; a finished one may have the same id."""
    candidate_id = candidate.id
    number = 1
    while rows.has("candidates", id=candidate_id):
        moment = f"{candidate.created_at} {number}"
        candidate_id = make_candidate_id(candidate.kind, candidate.project_seq, candidate.fingerprint, moment)
        number += 1
    values = column_values(candidate, "id", "evidence", "version", "seq")
    return rows.insert_keyed("candidates", id=candidate_id, **values), candidate_id


def _update(rows: Rows, seq: int, candidate: Candidate) -> None:
    """Updates a waiting candidate."""
    values = column_values(
        candidate, "id", "kind", "project_seq", "fingerprint", "source", "created_at", "evidence", "version", "seq"
    )
    rows.revise("candidates", seq, **values)


def _add_evidence(rows: Rows, seq: int, evidence: Sequence[Evidence]) -> None:
    for source in evidence:
        rows.insert("candidate_evidence", "on conflict do nothing", candidate_seq=seq, **column_values(source))


def update_stored(rows: Rows, stored: Candidate, candidate: Candidate) -> bool:
    """Updates a stored candidate, evidence included; returns False if nothing changed.

    It keeps its id; `stored` is the candidate as it was read.
    """
    if replace(candidate, id=stored.id, seq=stored.seq, version=stored.version) == stored:
        return False
    _update(rows, stored.seq, candidate)
    rows.update("candidates", stored.seq, created_at=candidate.created_at)
    rows.delete("candidate_evidence", candidate_seq=stored.seq)
    _add_evidence(rows, stored.seq, candidate.evidence)
    return True


def remove(rows: Rows, candidate: Candidate) -> None:
    """Deletes a candidate that has no evidence left."""
    rows.delete("candidates", seq=candidate.seq)


def of_source(rows: Rows, source: str, *, project: int) -> list[Candidate]:
    """Returns the candidates of one rule for a project, of any status, the oldest first."""
    return where(rows, "m.source = :source and m.project_seq = :project order by m.seq", source=source, project=project)


def set_status(rows: Rows, candidate: Candidate, status: CandidateStatus, *, now: str) -> bool:
    """Sets a candidate's status; False if it changed since it was read."""
    sql = """update candidates set status = :status, updated_at = :now, version = version + 1
        where id = :id and version = :version"""
    changed = rows.run(sql, status=status, now=now, id=candidate.id, version=candidate.version)
    return bool(changed)


def merge(rows: Rows, source: int, into: int) -> None:
    """Moves a project's candidates to another; of two equal ones the other project's gets the evidence.

    A finished candidate stays with the memory that it became.
    """
    sql = """select c.seq, (select o.seq from candidates o where o.project_seq = :target and o.kind = c.kind
        and o.fingerprint = c.fingerprint and o.status in ('open', 'needs_review', 'dropped') order by o.seq limit 1)
        from candidates c where c.project_seq = :source and c.status in ('open', 'needs_review') order by c.seq"""
    for seq, other in rows.all(sql, source=source, target=into):
        if other is not None:
            sql = """insert into candidate_evidence (candidate_seq, uuid, session_id, at, against) select :other,
                uuid, session_id, at, against
                from candidate_evidence where candidate_seq = :seq on conflict (candidate_seq, uuid) do nothing"""
            rows.run(sql, other=other, seq=seq)
            rows.delete("candidates", seq=seq)
    sql = """update candidates set project_seq = :target
        where project_seq = :source and status in ('open', 'needs_review', 'dropped')"""
    rows.run(sql, target=into, source=source)


def split(rows: Rows, source: int, part: int) -> None:
    """Moves candidates with evidence only from a part's turns to the part, which already has its turns."""
    sql = """update candidates set project_seq = :part where project_seq = :source and seq in (select e.candidate_seq
        from candidate_evidence e join turns t on t.uuid = e.uuid group by e.candidate_seq
        having min(t.project_seq) = :part and max(t.project_seq) = :part) and not exists (select 1 from candidates o
        where o.project_seq = :part and o.kind = candidates.kind and o.fingerprint = candidates.fingerprint)"""
    rows.run(sql, part=part, source=source)


def forget(rows: Rows, memory_id: str) -> None:
    """Deletes the candidates that quote a memory which is being deleted."""
    sql = """delete from candidates where status in ('open', 'needs_review', 'promoted', 'dropped', 'done')
        and kind in ('duplicate', 'near_duplicate', 'stale', 'missing_embedding', 'orphan')
        and ' ' || memory_ids || ' ' like '% ' || cast(:id as text) || ' %'"""
    rows.run(sql, id=memory_id)


def is_waiting(rows: Rows, candidate: Candidate) -> bool:
    """Whether another candidate of the same kind, project and fingerprint waits."""
    sql = f"select 1 from candidates where {_SAME} and status in ('open', 'needs_review') and id <> :id"  # noqa: S608
    return rows.exists(sql, **column_values(candidate, "evidence"))


def by_id(rows: Rows, candidate_id: str) -> Candidate | None:
    """Returns a candidate by its id; None if it does not exist."""
    return next(iter(where(rows, "m.id = :id", id=candidate_id)), None)


def waiting(
    rows: Rows, *, projects: Sequence[int] | None, statuses: Sequence[CandidateStatus] = WAITING, limit: int = 1000
) -> list[Candidate]:
    """Returns the candidates of some projects (None: all) with one of `statuses`, reviews and the surest first."""
    keys = ", ".join(f"'{status}'" for status in statuses)
    return where(
        rows,
        f"""{in_keys("m.project_seq", projects)} and m.status in ({keys})
            order by case m.status when 'needs_review' then 0 else 1 end, m.confidence desc, m.seq limit :limit""",
        limit=limit,
    )


def list_waiting_wordings(rows: Rows) -> list[Candidate]:
    """Returns the wordings from pages that wait for a person's answer, the oldest first."""
    wordings = (item for item in waiting(rows, projects=None) if item.source == PAGE and item.kind == "belief")
    return sorted(wordings, key=lambda item: item.seq)


def list_questioned_ids(rows: Rows) -> frozenset[str]:
    """Returns the ids of the memories about which a person is asked whether they are still true."""
    sql = """select memory_ids
        from candidates where kind in ('near_duplicate', 'stale', 'orphan') and status = 'needs_review'"""
    listed = rows.column(sql)
    return frozenset(ident for idents in listed for ident in str(idents).split())


def list_questions(rows: Rows, reason: str, *, projects: Sequence[int]) -> list[Candidate]:
    """Returns the waiting questions with this reason about memories of these projects, the oldest first."""
    condition = "m.kind = 'stale' and m.status = 'needs_review' and m.reason = :reason"
    return where(rows, f"{condition} and {in_keys('m.project_seq', projects)} order by m.seq", reason=reason)


def list_projects_with_warning(rows: Rows) -> list[int]:
    """Returns the projects with an unanswered warning of the self model."""
    sql = """select distinct project_seq from candidates
        where source = 'selfmodel' and status in ('open', 'needs_review') order by project_seq"""
    return rows.column(sql)


def list_waiting_after(rows: Rows, seq: int, *, limit: int) -> list[Candidate]:
    """Returns the next waiting candidates past a row key."""
    waits = "m.seq > :seq and m.status in ('open', 'needs_review') order by m.seq limit :limit"
    return where(rows, waits, seq=seq, limit=limit)


def find_waiting(rows: Rows, keys: Iterable[tuple[int, str, str]]) -> list[Candidate]:
    """Returns the waiting candidates of some (project, kind, fingerprint), at most one of each."""
    waiting_candidates: list[Candidate] = []
    for project, kind, fingerprint in keys:
        waits = f"{_SAME} and m.status in ('open', 'needs_review')"
        waiting_candidates += where(rows, waits, project_seq=project, kind=kind, fingerprint=fingerprint)
    return waiting_candidates


def counts(rows: Rows, *, projects: Sequence[int] | None = None) -> dict[str, dict[str, int]]:
    """Returns the numbers of candidates of some projects (None: all), by kind and status."""
    sql = f"""select kind, status, count(*)
        from candidates where {in_keys("project_seq", projects)} group by kind, status order by kind, status"""  # noqa: S608
    counted = rows.grouped(sql)
    return {kind: dict(by_status) for kind, by_status in counted.items()}


def where(rows: Rows, condition: str, **values: Any) -> list[Candidate]:
    """Returns the candidates `m` that fulfil a condition, which may end with an order, each with its evidence."""
    candidates = rows.read(Candidate, f"select {_COLUMNS} from candidates m where {condition}", **values)  # noqa: S608
    sql = f"""select candidate_seq, uuid, session_id, at, against
        from candidate_evidence where {in_keys("candidate_seq", [candidate.seq for candidate in candidates])}
        order by candidate_seq, at, uuid"""  # noqa: S608
    sources = rows.grouped(sql)
    return [
        replace(candidate, evidence=tuple(as_value(Evidence, source) for source in sources[candidate.seq]))
        for candidate in candidates
    ]
