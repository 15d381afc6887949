"""The one queue of candidates: what may become a memory or be done to memories, with its evidence.

Of a kind, a project and a fingerprint at most one waits; seen again it gains evidence instead of a double. One that
a person has dropped is not put there again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from csmd.model import Candidate, CandidateKind, CandidateStatus, Evidence
from csmd.store.sqlite import Rows

#: The source of what the pages bring that people edit: a line that was removed, or that an assistant wrote.
PAGE = "page"
WAITING: tuple[CandidateStatus, ...] = ("open", "needs_review")
_COLUMNS = (
    "m.id, m.kind, m.source, m.project_seq, m.fingerprint, m.text, m.reason, m.gate, m.category, m.confidence, "
    "m.reinforcement, m.contradicted, m.status, m.memory_ids, m.created_at, m.updated_at, m.version, m.seq"
)


def identity(kind: CandidateKind, project: int, fingerprint: str, created_at: str) -> str:
    """A candidate's id: `c` and ten hex digits."""
    return "c" + hashlib.sha256(f"{kind}:{project}:{fingerprint}:{created_at}".encode()).hexdigest()[:10]


def put(rows: Rows, candidate: Candidate) -> str:
    """Puts a candidate into the queue, or renews the one that waits; its id, "" where a person has dropped it.

    The waiting one keeps its id and its evidence and takes over everything else.
    """
    same = {"project": candidate.project_seq, "kind": candidate.kind, "fingerprint": candidate.fingerprint}
    dropped = rows.value(
        "select id from candidates where project_seq = :project and kind = :kind and fingerprint = :fingerprint "
        "and status = 'dropped' limit 1",
        **same,
    )
    if dropped is not None:
        return ""
    found = rows.one(
        "select seq, id from candidates where project_seq = :project and kind = :kind and fingerprint = :fingerprint "
        "and status in ('open', 'needs_review')",
        **same,
    )
    if found is None:
        seq, ident = _insert(rows, candidate)
    else:
        seq, ident = int(found[0]), str(found[1])
        _say(rows, seq, candidate)
    _cite(rows, seq, candidate.evidence)
    return ident


def _insert(rows: Rows, candidate: Candidate) -> tuple[int, str]:
    """(row key, id) of a new one; one that is over may have had its id."""
    ident, number = candidate.id, 1
    while rows.value("select 1 from candidates where id = :id", id=ident) is not None:
        moment = f"{candidate.created_at} {number}"
        ident, number = identity(candidate.kind, candidate.project_seq, candidate.fingerprint, moment), number + 1
    seq = rows.value(
        "insert into candidates (id, kind, source, project_seq, fingerprint, text, reason, gate, category, confidence, "
        "reinforcement, contradicted, status, memory_ids, created_at, updated_at) values (:id, :kind, :source, "
        ":project, :fingerprint, :text, :reason, :gate, :category, :confidence, :reinforcement, :contradicted, "
        ":status, :memories, :created, :updated) returning seq",
        id=ident, kind=candidate.kind, source=candidate.source, project=candidate.project_seq,
        fingerprint=candidate.fingerprint, text=candidate.text, reason=candidate.reason, gate=candidate.gate,
        category=candidate.category, confidence=candidate.confidence, reinforcement=candidate.reinforcement,
        contradicted=candidate.contradicted, status=candidate.status, memories=" ".join(candidate.memory_ids),
        created=candidate.created_at, updated=candidate.updated_at,
    )  # fmt: skip
    return int(seq), ident


def _say(rows: Rows, seq: int, candidate: Candidate) -> None:
    """Has a waiting one say what is known now."""
    rows.run(
        "update candidates set text = :text, reason = :reason, gate = :gate, category = :category, "
        "confidence = :confidence, reinforcement = :reinforcement, contradicted = :contradicted, status = :status, "
        "memory_ids = :memories, updated_at = :updated, version = version + 1 where seq = :seq",
        text=candidate.text, reason=candidate.reason, gate=candidate.gate, category=candidate.category,
        confidence=candidate.confidence, reinforcement=candidate.reinforcement, contradicted=candidate.contradicted,
        status=candidate.status, memories=" ".join(candidate.memory_ids), updated=candidate.updated_at, seq=seq,
    )  # fmt: skip


def _cite(rows: Rows, seq: int, evidence: Sequence[Evidence]) -> None:
    for one in evidence:
        rows.run(
            "insert into candidate_evidence (candidate_seq, uuid, session_id, at, against) "
            "values (:seq, :uuid, :session, :at, :against) on conflict (candidate_seq, uuid) do nothing",
            seq=seq,
            uuid=one.uuid,
            session=one.session_id,
            at=one.at,
            against=int(one.against),
        )


def renew(rows: Rows, known: Candidate, candidate: Candidate) -> bool:
    """Makes a stored candidate say what is known now, its evidence replaced; False, and nothing done, where it is the same.

    It keeps its id; `known` is as it was read.
    """
    if replace(candidate, id=known.id, seq=known.seq, version=known.version) == known:
        return False
    _say(rows, known.seq, candidate)
    rows.run("update candidates set created_at = :at where seq = :seq", at=candidate.created_at, seq=known.seq)
    rows.run("delete from candidate_evidence where candidate_seq = :seq", seq=known.seq)
    _cite(rows, known.seq, candidate.evidence)
    return True


def remove(rows: Rows, candidate: Candidate) -> None:
    """Takes a candidate out of the queue: nothing speaks for it any more."""
    rows.run("delete from candidates where seq = :seq", seq=candidate.seq)


def of_source(rows: Rows, source: str, *, project: int) -> list[Candidate]:
    """What one rule has put there for a project, whatever became of it, the oldest first."""
    found = rows.all(
        f"select {_COLUMNS} from candidates m where m.source = :source and m.project_seq = :project order by m.seq",  # noqa: S608
        source=source,
        project=project,
    )
    return _with_evidence(rows, found)


def settle(rows: Rows, candidate: Candidate, status: CandidateStatus, *, now: str) -> bool:
    """Gives a candidate another status; False when it has changed since it was read."""
    changed = rows.all(
        "update candidates set status = :status, updated_at = :now, version = version + 1 "
        "where id = :id and version = :version returning id",
        status=status,
        now=now,
        id=candidate.id,
        version=candidate.version,
    )
    return bool(changed)


def merge(rows: Rows, source: int, into: int) -> None:
    """Gives a project's candidates to another; of two that say the same the one there takes in what speaks for it.

    What became of one already stays with the memory that came of it.
    """
    for seq, other in rows.all(
        "select c.seq, (select o.seq from candidates o where o.project_seq = :target and o.kind = c.kind "
        "and o.fingerprint = c.fingerprint and o.status in ('open', 'needs_review', 'dropped') order by o.seq limit 1) "
        "from candidates c where c.project_seq = :source and c.status in ('open', 'needs_review') order by c.seq",
        source=source,
        target=into,
    ):
        if other is not None:
            rows.run(
                "insert into candidate_evidence (candidate_seq, uuid, session_id, at, against) "
                "select :other, uuid, session_id, at, against from candidate_evidence where candidate_seq = :seq "
                "on conflict (candidate_seq, uuid) do nothing",
                other=other,
                seq=seq,
            )
            rows.run("delete from candidates where seq = :seq", seq=seq)
    rows.run(
        "update candidates set project_seq = :target where project_seq = :source "
        "and status in ('open', 'needs_review', 'dropped')",
        target=into,
        source=source,
    )


def split(rows: Rows, source: int, part: int) -> None:
    """Gives those to a part that only its own turns speak for; run when its turns are its own."""
    rows.run(
        "update candidates set project_seq = :part where project_seq = :source and seq in ("
        "select e.candidate_seq from candidate_evidence e join turns t on t.uuid = e.uuid "
        "group by e.candidate_seq having min(t.project_seq) = :part and max(t.project_seq) = :part) "
        "and not exists (select 1 from candidates o where o.project_seq = :part and o.kind = candidates.kind "
        "and o.fingerprint = candidates.fingerprint)",
        part=part,
        source=source,
    )


def forget(rows: Rows, memory_id: str) -> None:
    """Removes the candidates that quote a memory, and the audit of its changes: the memory itself is going."""
    rows.run(
        "delete from candidates where status in ('open', 'needs_review', 'promoted', 'dropped', 'done') "
        "and kind in ('duplicate', 'near_duplicate', 'stale', 'missing_embedding', 'orphan') "
        "and ' ' || memory_ids || ' ' like '% ' || cast(:id as text) || ' %'",
        id=memory_id,
    )
    rows.run("delete from belief_changes where memory_id = :id", id=memory_id)


def is_waiting(rows: Rows, candidate: Candidate) -> bool:
    """Whether another of the same kind, project and fingerprint waits."""
    found = rows.value(
        "select 1 from candidates where project_seq = :project and kind = :kind and fingerprint = :fingerprint "
        "and status in ('open', 'needs_review') and id <> :id",
        project=candidate.project_seq,
        kind=candidate.kind,
        fingerprint=candidate.fingerprint,
        id=candidate.id,
    )
    return found is not None


def ids_like(rows: Rows, prefix: str) -> list[str]:
    """The ids that begin with `prefix`, at most ten: people type the first characters."""
    found = rows.all(
        "select id from candidates where substr(id, 1, :size) = :prefix order by id limit 10",
        size=len(prefix),
        prefix=prefix,
    )
    return [str(ident) for (ident,) in found]


def by_id(rows: Rows, ident: str) -> Candidate | None:
    """One candidate, or None."""
    found = rows.all(f"select {_COLUMNS} from candidates m where m.id = :id", id=ident)  # noqa: S608
    return _with_evidence(rows, found)[0] if found else None


def waiting(
    rows: Rows, *, projects: Sequence[int] | None, statuses: Sequence[CandidateStatus] = WAITING, limit: int = 1000
) -> list[Candidate]:
    """The candidates of some projects (None: all) with one of `statuses`, what needs review and the surest first."""
    scope = "where true" if projects is None else f"where m.project_seq in ({', '.join(str(int(p)) for p in projects)})"
    keys = ", ".join(f"'{status}'" for status in statuses)
    found = rows.all(
        f"select {_COLUMNS} from candidates m {scope} and m.status in ({keys}) "  # noqa: S608
        "order by case m.status when 'needs_review' then 0 else 1 end, m.confidence desc, m.seq limit :limit",
        limit=limit,
    )
    return _with_evidence(rows, found)


def waiting_after(rows: Rows, seq: int, *, limit: int) -> list[Candidate]:
    """The next that wait past a row key, in order."""
    found = rows.all(
        f"select {_COLUMNS} from candidates m where m.seq > :seq and m.status in ('open', 'needs_review') "  # noqa: S608
        "order by m.seq limit :limit",
        seq=seq,
        limit=limit,
    )
    return _with_evidence(rows, found)


def waiting_of(rows: Rows, keys: Iterable[tuple[int, str, str]]) -> list[Candidate]:
    """Those that wait of some (project, kind, fingerprint), of each one at most."""
    found = [
        row
        for project, kind, fingerprint in keys
        for row in rows.all(
            f"select {_COLUMNS} from candidates m where m.project_seq = :project and m.kind = :kind "  # noqa: S608
            "and m.fingerprint = :fingerprint and m.status in ('open', 'needs_review')",
            project=project,
            kind=kind,
            fingerprint=fingerprint,
        )
    ]
    return _with_evidence(rows, found)


def counts(rows: Rows, *, projects: Sequence[int] | None = None) -> dict[str, dict[str, int]]:
    """How many there are of some projects (None: all) by kind and status."""
    scope = "" if projects is None else f"where project_seq in ({', '.join(str(int(p)) for p in projects)})"
    found: dict[str, dict[str, int]] = {}
    for kind, status, count in rows.all(
        f"select kind, status, count(*) from candidates {scope} group by kind, status order by kind, status"  # noqa: S608
    ):
        found.setdefault(str(kind), {})[str(status)] = int(count)
    return found


def _with_evidence(rows: Rows, found: Sequence[Sequence[Any]]) -> list[Candidate]:
    if not found:
        return []
    evidence: dict[int, list[Evidence]] = {}
    keys = ", ".join(str(int(row[17])) for row in found)
    for seq, uuid, session, at, against in rows.all(
        f"select candidate_seq, uuid, session_id, at, against from candidate_evidence where candidate_seq in ({keys}) "  # noqa: S608
        "order by candidate_seq, at, uuid"
    ):
        evidence.setdefault(int(seq), []).append(Evidence(uuid=uuid, session_id=session, at=at, against=bool(against)))
    return [
        Candidate(
            id=row[0], kind=row[1], source=row[2], project_seq=row[3], fingerprint=row[4], text=row[5], reason=row[6],
            gate=row[7], category=row[8], confidence=row[9], reinforcement=row[10], contradicted=row[11],
            status=row[12], memory_ids=tuple(str(row[13]).split()), created_at=row[14], updated_at=row[15],
            version=row[16], seq=row[17], evidence=tuple(evidence.get(int(row[17]), ())),
        )
        for row in found
    ]  # fmt: skip
