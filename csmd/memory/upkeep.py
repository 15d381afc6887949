"""Finds memories that need repair, queues them for review, and repairs them.

Duplicates are merged, faded memories archived, missing vectors created; a memory whose turns are all gone is left to a
person.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from csmd.knowledge import Candidate, Evidence, Memory
from csmd.memory import confidence, duplicates, merging, supersession
from csmd.memory.duplicates import PAIR_KINDS, Finding, FindingKey
from csmd.memory.supersession import quote
from csmd.store import belief_changes, candidates, cursors, memories, memory_upkeep, projects, search, vectors
from csmd.store.candidates import PAGE
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import search_terms
from csmd.vocabulary import CandidateKind, CandidateStatus

#: The name of the stage's cursors, and of the candidates that it queues.
SOURCE = "upkeep"
#: The author of a repair that an assistant requested.
ASSISTANT = "assistant"
#: Kind -> the status of its candidate: open, or waiting for a person.
STATUS_OF_KIND: dict[CandidateKind, CandidateStatus] = {
    "duplicate": "open", "near_duplicate": "needs_review", "stale": "open", "missing_embedding": "open",
    "orphan": "needs_review",
}  # fmt: skip
#: Kind -> the repair.
REPAIR_OF_KIND: dict[CandidateKind, str] = {
    "duplicate": "merge", "near_duplicate": "merge", "stale": "archive", "missing_embedding": "embed",
}  # fmt: skip
#: Sources of each memory that a candidate cites.
MAX_SOURCES = 2
#: New memories that one step compares.
BATCH = 5
#: Memories compared with each new one, those that share most words with it.
MAX_NEAR = 8
#: Memories that one step checks for other defects.
SWEEP_BATCH = 400
#: Candidates that one step checks again.
RECHECK_BATCH = 50
#: The most waiting candidates that `plan_all` compares with its findings.
MAX_WAITING = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """Changes to the queue: candidates to add, and candidates that no longer apply."""

    put: tuple[Candidate, ...] = ()
    settle: tuple[Candidate, ...] = ()


# --- the queue


def plan_queue(
    findings: Sequence[Finding], waiting: Sequence[Candidate], *, dropped: Collection[FindingKey], now: str
) -> Queueing:
    """Plans to add the findings that the queue lacks, and to settle its candidates without a finding."""
    queued = {key_of(candidate): candidate for candidate in waiting}
    current = {finding.key: finding for finding in findings if finding.key not in dropped}
    put = tuple(to_candidate(finding, now=now) for key, finding in current.items() if key not in queued)
    return Queueing(put=put, settle=tuple(candidate for key, candidate in queued.items() if key not in current))


def key_of(candidate: Candidate) -> FindingKey:
    """Returns the key that a candidate shares with its finding."""
    return candidate.project_seq, candidate.kind, candidate.fingerprint


def to_candidate(finding: Finding, *, now: str) -> Candidate:
    """Returns the candidate of a finding, still without an id."""
    project, _, fingerprint = finding.key
    first = finding.memories[0]
    cited = (source for memory in finding.memories for source in memory.provenance[:MAX_SOURCES])
    sources = {item.uuid: Evidence(uuid=item.uuid, session_id=item.session_id, at=item.at) for item in cited}
    return Candidate(
        id="", kind=finding.kind, source=SOURCE, project_seq=project, fingerprint=fingerprint,
        text=" and ".join(map(quote, finding.memories)), reason=finding.reason, confidence=finding.confidence,
        created_at=now, updated_at=now, gate=first.gate, category=first.category, status=STATUS_OF_KIND[finding.kind],
        memory_ids=tuple(memory.id for memory in finding.memories), evidence=tuple(sources.values()),
    )  # fmt: skip


def enqueue(rows: Rows, plan: Queueing, *, now: str) -> None:
    """Changes the queue as planned, but adds no candidate that quotes a memory changed or purged since."""
    for candidate in plan.put:
        quoted = [memories.by_id(rows, memory_id) for memory_id in candidate.memory_ids]
        if all(memory is not None and quote(memory) in candidate.text for memory in quoted):
            project, _, fingerprint = key_of(candidate)
            candidate_id = candidates.make_candidate_id(candidate.kind, project, fingerprint, candidate.created_at)
            candidates.put_candidate(rows, replace(candidate, id=candidate_id))
    _settle(rows, plan.settle, now=now)


def settle_about(rows: Rows, memory: Memory, *, now: str) -> None:
    """Settles the candidates about a memory that no longer apply."""
    waiting = memory_upkeep.list_candidates_about(rows, memory.id)
    _settle(rows, [candidate for candidate in waiting if not _still_applies(rows, candidate)], now=now)


def _settle(rows: Rows, outdated: Sequence[Candidate], *, now: str) -> None:
    for candidate in outdated:
        candidates.set_status(rows, candidate, "done", now=now)


def _select_settleable(waiting: Sequence[Candidate]) -> list[Candidate]:
    """Selects the candidates that upkeep may settle: those of its kinds, except edits of pages."""
    return [candidate for candidate in waiting if candidate.kind in STATUS_OF_KIND and candidate.source != PAGE]


def _still_applies(rows: Rows, candidate: Candidate) -> bool:
    existing = [memory for memory_id in candidate.memory_ids if (memory := memories.by_id(rows, memory_id)) is not None]
    if len(existing) != len(candidate.memory_ids) or not all(memory.is_alive for memory in existing):
        return False
    if candidate.source == supersession.SOURCE:
        return True  # only a person decides which of the two is current
    if candidate.kind in PAIR_KINDS:
        return duplicates.compare(existing[0], existing[1]) is not None
    return candidate.kind in {finding.kind for finding in _find_defects(rows, existing[:1])}


# --- defects of single memories


def _find_defects(rows: Rows, checked: Sequence[Memory]) -> list[Finding]:
    """Finds the defects of single memories among some that are in order of row key."""
    if not checked:
        return []
    after, until = checked[0].seq - 1, checked[-1].seq
    by_id = {memory.id: memory for memory in checked}
    defective_ids: dict[CandidateKind, list[str]] = {
        "stale": memory_upkeep.list_expired_ids(rows, after=after, to=until),
        "missing_embedding": memory_upkeep.list_ids_without_vector(rows, after=after, to=until),
        "orphan": memory_upkeep.list_ids_without_turns(rows, after=after, to=until),
    }
    pairs = ((kind, memory_id) for kind, ids in defective_ids.items() for memory_id in ids)
    return [_to_finding(kind, by_id[memory_id]) for kind, memory_id in pairs if memory_id in by_id]


def _to_finding(kind: CandidateKind, memory: Memory) -> Finding:
    limit = f"{confidence.ARCHIVE_BELOW * 100:.0f}"
    faded = f"neither stated nor used since {memory.fresh_at[:10]}: its confidence has faded below {limit}"
    orphaned = "all turns that state it are deleted"
    reason = {"stale": faded, "missing_embedding": "it has no vector", "orphan": orphaned}[kind]
    certainty = round(1 - memory.confidence, 4) if kind == "stale" else 1.0
    return Finding(kind=kind, memories=(memory,), reason=reason, confidence=certainty)


# --- in the background


def step(store: Store, *, now: str) -> int:
    """Checks the next memories or candidates; returns their number, 0 if none are left.

    The checks run on a reader, and nothing is written if nothing is left: a hook may be waiting behind a write.
    """
    checked, plan, cursors_to = store.read(lambda rows: _plan_step(rows, now))

    def write(rows: Rows) -> None:
        enqueue(rows, plan, now=now)
        for subject, position in cursors_to.items():
            cursors.move_cursor(rows, SOURCE, subject, position)

    if checked:
        store.write(write)
    return checked


def _plan_step(rows: Rows, now: str) -> tuple[int, Queueing, dict[str, int]]:
    """Returns (number of memories or candidates checked, changes to the queue, new cursors).

    New memories are compared at once. Once on each active day all memories are swept for defects, then the waiting
    candidates checked again.
    """
    subjects = ("memories", "day", "sweep", "queue")
    positions = {subject: cursors.read_cursor(rows, SOURCE, subject) for subject in subjects}
    new = memory_upkeep.list_memories_after(rows, positions["memories"], limit=BATCH)
    if new:
        return len(new), _plan_additions(rows, _find_duplicates_of(rows, new), now), {"memories": new[-1].seq}
    today = projects.active_day(rows, 0)
    if positions["day"] == today:
        return 0, Queueing(), {}
    sweep = memory_upkeep.list_memories_after(rows, positions["sweep"], limit=SWEEP_BATCH)
    if sweep:
        return len(sweep), _plan_additions(rows, _find_defects(rows, sweep), now), {"sweep": sweep[-1].seq}
    waiting = candidates.list_waiting_after(rows, positions["queue"], limit=RECHECK_BATCH)
    if waiting:
        settle = tuple(candidate for candidate in _select_settleable(waiting) if not _still_applies(rows, candidate))
        return len(waiting), Queueing(settle=settle), {"queue": waiting[-1].seq}
    return 1, Queueing(), {"sweep": 0, "queue": 0, "day": today}


def _find_duplicates_of(rows: Rows, new: Sequence[Memory]) -> list[Finding]:
    """Finds the duplicates of new memories among those that share most words with each."""
    dropped = memory_upkeep.list_dropped(rows)
    findings: list[Finding] = []
    for memory in new:
        everywhere = {memory.project_seq: projects.everywhere_of(rows, memory.project_seq)}
        terms, scopes = search_terms.query_terms(memory.text), sorted({*everywhere, *everywhere.values()})
        near = search.memories_matching(rows, terms, projects=scopes, limit=MAX_NEAR)
        similar = {other.seq: other for other in (*near, memory)}
        ordered = [similar[seq] for seq in sorted(similar)]
        pairs = duplicates.find_duplicates(ordered, everywhere=everywhere, dropped=dropped)
        findings += [finding for finding in pairs if memory.id in (member.id for member in finding.memories)]
    return findings


def _plan_additions(rows: Rows, findings: Sequence[Finding], now: str) -> Queueing:
    """Plans to add the findings that are not in the queue yet, without settling any."""
    waiting = _select_settleable(candidates.find_waiting(rows, [finding.key for finding in findings]))
    return replace(plan_queue(findings, waiting, dropped=memory_upkeep.list_dropped(rows), now=now), settle=())


# --- on request


def find_findings(
    rows: Rows, project_seqs: Sequence[int] | None, *, kinds: Collection[CandidateKind] = tuple(STATUS_OF_KIND)
) -> list[Finding]:
    """Finds the defects of some kinds in some projects (None: all), without pairs that a person rejected."""
    checked = memory_upkeep.list_active_memories(rows, project_seqs)
    findings: list[Finding] = []
    if not PAIR_KINDS.isdisjoint(kinds):
        everywhere = {seq: projects.everywhere_of(rows, seq) for seq in {memory.project_seq for memory in checked}}
        dropped = memory_upkeep.list_dropped(rows)
        findings += duplicates.find_duplicates(checked, everywhere=everywhere, dropped=dropped)
    if not PAIR_KINDS.issuperset(kinds):
        findings += _find_defects(rows, checked)
    return [finding for finding in findings if finding.kind in kinds]


def plan_all(rows: Rows, project_seqs: Sequence[int] | None, *, now: str) -> Queueing:
    """Plans the changes to the queue if all memories of some projects were checked now.

    Candidates of another source, as dreams make, are left alone.
    """
    waiting = _select_settleable(candidates.waiting(rows, projects=project_seqs, limit=MAX_WAITING))
    own = [candidate for candidate in waiting if candidate.source == SOURCE]
    return plan_queue(find_findings(rows, project_seqs), own, dropped=memory_upkeep.list_dropped(rows), now=now)


# --- repair


def apply(
    rows: Rows, plan: Sequence[Finding], *, by: str, now: str, key: bytes, by_person: bool = False
) -> tuple[list[Finding], list[Finding]]:
    """Repairs findings in the caller's transaction; returns (repaired, skipped because they no longer apply).

    With `by_person` a person has said that the memories say the same: they need not look alike. An assistant cannot merge
    or archive a memory that a person is asked about.
    """
    repaired: list[Finding] = []
    skipped: list[Finding] = []
    asked_about = candidates.list_questioned_ids(rows) if by == ASSISTANT else frozenset()
    for finding in plan:
        current = _revalidate(rows, finding, key=key, by_person=by_person)
        if current is None or (finding.kind != "missing_embedding" and finding.memory.id in asked_about):
            skipped.append(finding)
        else:
            repaired.append(current)
            _repair(rows, current, by=by, now=now)
    return repaired, skipped


def _revalidate(rows: Rows, finding: Finding, *, key: bytes, by_person: bool) -> Finding | None:
    """Reads the memories of a finding again; None if it no longer applies."""
    current = [memory for old in finding.memories if (memory := memories.by_id(rows, old.id)) is not None]
    if len(current) < len(finding.memories) or not all(memory.is_alive for memory in current):
        return None
    if any(supersession.is_forgotten(rows, memory, memory.text, key=key) for memory in current):
        return None
    updated = replace(finding, memories=tuple(current))
    memory, into = updated.memory, updated.into
    if into is not None and not duplicates.may_merge(memory, into):
        return None
    if [new.version for new in current] == [old.version for old in finding.memories]:
        return updated
    if into is None:
        applies = finding.kind in {defect.kind for defect in _find_defects(rows, [memory])}
    else:
        applies = by_person or duplicates.compare(memory, into) is not None
    return updated if applies else None


def _repair(rows: Rows, finding: Finding, *, by: str, now: str) -> None:
    memory, into = finding.memory, finding.into
    if into is not None:
        merging.merge(rows, memory, into, reason=finding.reason, by=by, now=now)
    elif finding.kind == "stale":
        belief_changes.archive_memory(rows, memory, reason=finding.reason, by=by, now=now)
    else:
        vectors.reembed(rows, "memory", memory.seq)
    settle_about(rows, memory, now=now)
