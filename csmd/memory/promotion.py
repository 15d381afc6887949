"""Queues candidates, promotes those that pass the thresholds to memories, and keeps these up to date with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from csmd.knowledge import Candidate, Memory, Provenance, Statement
from csmd.memory import confidence, habits, remember, supersession
from csmd.memory.habits import KINDS, ORDER_PREFIX
from csmd.privacy.fingerprints import Marks
from csmd.store import (
    belief_changes,
    candidates,
    cursors,
    memories,
    memory_deletion,
    packet_rows,
    project_merges,
    projects,
    tombstones,
)
from csmd.store.core import Store
from csmd.store.memories import INFERRED_ORIGIN
from csmd.store.sqlite import Rows
from csmd.text import display, tokens
from csmd.vocabulary import Authority, Scope

#: The latest packets of a project that are counted.
MAX_PACKETS = 20_000
#: The most candidates that one plan decides about.
MAX_CANDIDATES = 2_000
#: The author of a promotion.
CHANGED_BY = "csmd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The thresholds of a promotion: confidence (0-1), times seen, pieces of evidence."""

    confidence: float
    reinforcement: int
    evidence: int


DEFAULT_PROFILE = Profile(confidence=0.7, reinforcement=3, evidence=2)
RELAXED_PROFILE = Profile(confidence=0.3, reinforcement=1, evidence=1)
Step = Literal["promote", "review", "known", "wait"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A decision about a candidate, with its reasons; `memory_id` is the memory that already says the same."""

    candidate: Candidate
    step: Step
    reasons: tuple[str, ...]
    memory_id: str = ""


# --- deciding


def plan_for(waiting: Iterable[Candidate], *, profile: Profile, memory_of: Mapping[str, str]) -> list[Action]:
    """Decides about waiting candidates, the surest first.

    `memory_of` maps a candidate to the memory that says the same.
    """
    actions = []
    for candidate in sorted(waiting, key=lambda item: (-item.confidence, *_key_of(item), item.project_seq)):
        memory_id = memory_of.get(candidate.id, "")
        step, reasons = _decide(candidate, profile, memory_id)
        memory_id = memory_id if step == "known" else ""
        actions.append(Action(candidate=candidate, step=step, reasons=reasons, memory_id=memory_id))
    return actions


def _decide(candidate: Candidate, profile: Profile, memory_id: str) -> tuple[Step, tuple[str, ...]]:
    if candidate.kind not in KINDS or not KINDS[candidate.kind].promoted:
        return "wait", ("is shown, and is nothing to remember",)
    if candidate.contradicted or candidate.status == "needs_review":
        against = display.amount(candidate.contradicted, "session")
        return "review", (f"{against} against it: a person has to say",)
    if memory_id:
        return "known", (f"{memory_id} says the same",)
    measured = (
        ("confidence", _to_percent(candidate.confidence), _to_percent(profile.confidence)),
        ("times seen", candidate.reinforcement, profile.reinforcement),
        ("evidence", sum(not source.against for source in candidate.evidence), profile.evidence),
    )
    lacking = tuple(f"{name} {value}, {needed} are needed" for name, value, needed in measured if value < needed)
    enough = tuple(f"{name} {value} (at least {needed})" for name, value, needed in measured)
    return ("wait", lacking) if lacking else ("promote", enough)


def _to_percent(confidence: float) -> int:
    """Returns a confidence in whole percent, rounded down: 0.6999 does not reach a threshold of 70."""
    return int(round(confidence * 100, 2))


# --- in the background


def step(store: Store, *, now: str, promoting: bool = True, quiet_before: str = "") -> int:
    """Derives candidates for projects whose packets changed; returns the number of projects, 0 if none are left.

    `promoting`: candidates that pass become memories. With `quiet_before`, projects observed since then wait, because
    a session may be active.
    """
    changed = store.read(lambda rows: packet_rows.list_projects_to_scan(rows, quiet_before=quiet_before, now=now))
    for project, top in changed:
        _scan(store, project, top, now=now, promoting=promoting)
    return len(changed)


def _scan(store: Store, project: int, top: int, *, now: str, promoting: bool) -> None:
    packets = store.read(lambda rows: packet_rows.latest_packets(rows, projects=[project], limit=MAX_PACKETS))
    derived = habits.derive_candidates(packets, project=project)

    def write(rows: Rows) -> None:
        if dict(packet_rows.list_projects_to_scan(rows)).get(project) != top:
            return  # changed in the meantime: the next step counts it
        _replace_candidates(rows, derived, project=project, key=store.hash_key, now=now)
        if promoting:
            plan = plan_promotions(rows, projects=[project], profile=DEFAULT_PROFILE)
            carry_out(rows, plan, key=store.hash_key, now=now)
        cursors.move_cursor(rows, packet_rows.SCAN_STAGE, str(project), top)

    store.write(write)


# --- candidates


def queue_candidate(rows: Rows, candidate: Candidate, *, promoting: bool, key: bytes, now: str) -> list[str]:
    """Queues or updates a candidate of another source, and remembers it if it passes.

    Returns the ids of the candidate and of its memories; [] if a person dropped it or it was purged.
    """
    if _is_purged(candidate, tombstones.purged_marks(rows, key)):
        return []
    of_source = candidates.of_source(rows, candidate.source, project=candidate.project_seq)
    stored = next((queued for queued in of_source if _key_of(queued) == _key_of(candidate)), None)
    candidate_id = candidates.put_candidate(rows, candidate) if stored is None else stored.id
    if stored is not None and stored.status != "dropped":
        _renew_candidate(rows, stored, replace(candidate, id=candidate_id), key=key, now=now)
    current = candidates.by_id(rows, candidate_id) if candidate_id else None
    if current is not None and promoting and current.status in candidates.WAITING:
        memory = _find_repeated(rows, current)
        plan = plan_for([current], profile=DEFAULT_PROFILE, memory_of={candidate_id: memory.id} if memory else {})
        carry_out(rows, plan, key=key, now=now)
        current = candidates.by_id(rows, candidate_id)
    return [] if current is None or current.status == "dropped" else [candidate_id, *current.memory_ids]


def _is_purged(candidate: Candidate, marks: Marks) -> bool:
    return bool(marks.spans(f"{candidate.text} {candidate.fingerprint}"))


def _key_of(candidate: Candidate) -> tuple[str, str]:
    return candidate.kind, candidate.fingerprint


def _replace_candidates(rows: Rows, derived: Sequence[Candidate], *, project: int, key: bytes, now: str) -> None:
    """Replaces the habits in a project's queue by the derived candidates."""
    marks = tombstones.purged_marks(rows, key)
    remaining = {_key_of(candidate): candidate for candidate in derived if not _is_purged(candidate, marks)}
    for stored in candidates.of_source(rows, habits.SOURCE, project=project):
        candidate = remaining.pop(_key_of(stored), None)
        if candidate is None:
            _withdraw_candidate(rows, stored, key=key)
        elif stored.status != "dropped":
            _renew_candidate(rows, stored, candidate, key=key, now=now)
    for candidate in remaining.values():
        candidate_id = candidates.make_candidate_id(candidate.kind, project, candidate.fingerprint, "")
        candidates.put_candidate(rows, replace(candidate, id=candidate_id))


def _withdraw_candidate(rows: Rows, stored: Candidate, *, key: bytes) -> None:
    """Removes a candidate without support, and updates the memories that were inferred from it."""
    inferred = _find_inferred(rows, stored)
    if stored.status != "dropped":
        candidates.remove(rows, stored)
    for memory in inferred:
        _update_inferred(rows, memory, before=stored, key=key)


def _renew_candidate(rows: Rows, stored: Candidate, derived: Candidate, *, key: bytes, now: str) -> None:
    """Updates a candidate, and the memory that it became."""
    is_over = stored.status in ("promoted", "done")
    is_believed = any(memories.by_id(rows, memory_id) for memory_id in stored.memory_ids)
    if is_over and not is_believed:
        sources = _find_candidates(rows, stored.memory_ids) or [stored]
        if tombstones.is_statement_forgotten(
            rows, _combine(sources).text, correction=False, authority=KINDS[stored.kind].authority,
            project=stored.project_seq, at="", key=key,
        ):  # fmt: skip
            for candidate in sources:
                candidates.set_status(rows, candidate, "dropped", now=now)
            return
    inferred = _find_inferred(rows, stored) if is_over else []
    would_promote = plan_for([derived], profile=DEFAULT_PROFILE, memory_of={})[0].step == "promote"
    is_same_memory = would_promote and _core_text(stored) == _core_text(derived)
    # An inferred memory stays only if the candidate would become the same memory now.
    if is_over and is_believed and (is_same_memory or not inferred):
        derived = replace(derived, status=stored.status, memory_ids=stored.memory_ids)
    if candidates.update_stored(rows, stored, derived):
        for memory in inferred:
            _update_inferred(rows, memory, before=stored, key=key)


# --- promotion


def plan_promotions(rows: Rows, *, projects: Sequence[int] | None, profile: Profile) -> list[Action]:
    """Decides about the waiting candidates of some projects (None: all)."""
    waiting = candidates.waiting(rows, projects=projects, limit=MAX_CANDIDATES)
    waiting = [candidate for candidate in waiting if candidate.kind in KINDS]
    repeated = {candidate.id: _find_repeated(rows, candidate) for candidate in waiting}
    memory_of = {candidate_id: memory.id for candidate_id, memory in repeated.items() if memory is not None}
    return plan_for(waiting, profile=profile, memory_of=memory_of)


def carry_out(
    rows: Rows, actions: Iterable[Action], *, key: bytes, now: str, origin: str = INFERRED_ORIGIN
) -> dict[str, str]:
    """Carries out a plan, except for candidates changed since; returns candidate -> the memory that it became.

    With another `origin` than INFERRED_ORIGIN the memory is a person's: csmd neither changes nor withdraws it.
    """
    promoted: dict[str, str] = {}
    for action in actions:
        current = candidates.by_id(rows, action.candidate.id)
        if current is None or current.version != action.candidate.version:
            continue
        if action.step == "promote":
            if memory_id := _promote(rows, action, key=key, now=now, origin=origin):
                promoted[current.id] = memory_id
        elif action.step == "known":
            candidates.update_stored(rows, current, replace(current, status="done", memory_ids=(action.memory_id,)))
        elif action.step == "review" and current.status != "needs_review":
            candidates.set_status(rows, current, "needs_review", now=now)
    return promoted


def _promote(rows: Rows, action: Action, *, key: bytes, now: str, origin: str) -> str:
    """Makes a candidate a memory; returns its id, or "" if a memory says the same or the user forgot it."""
    candidate = action.candidate
    statement = _to_statement(candidate, _core_text(candidate), KINDS[candidate.kind].authority)
    project = candidate.project_seq
    memory_id, is_new = "", False
    elsewhere = _find_in_other_projects(rows, candidate) if origin == INFERRED_ORIGIN else ""
    if not remember.is_forgotten(rows, replace(statement, text=candidate.text), project=project, at="", key=key):
        memory_id = elsewhere
        if not memory_id:
            source = _sort_sources(candidate)[0]
            memory_id, is_new = remember.remember(
                rows, statement, source, project=project, origin=origin, key=key, scope="project"
            )
    if not memory_id:
        candidates.set_status(rows, candidate, "dropped", now=now)
        return ""
    status: Literal["promoted", "done"] = "promoted" if is_new or elsewhere else "done"
    candidates.update_stored(rows, candidate, replace(candidate, status=status, memory_ids=(memory_id,)))
    memory = memories.by_id(rows, memory_id)
    if memory is not None and status == "promoted":
        _update_inferred(rows, memory, before=candidate, key=key)
        reason = "; ".join(action.reasons)
        belief_changes.record_change(rows, memory_id, "promoted", "", candidate.id, reason, CHANGED_BY, now)
    return memory_id if is_new else ""


def _find_in_other_projects(rows: Rows, candidate: Candidate) -> str:
    """Returns the id of the memory inferred from the same order in another project of the workspace, or ""."""
    if not candidate.fingerprint.startswith(ORDER_PREFIX):
        return ""
    condition = "m.kind = :kind and m.fingerprint = :fingerprint and m.status = 'promoted' and m.project_seq <> :here"
    project = candidate.project_seq
    everywhere = projects.everywhere_of(rows, project)
    values = {"kind": candidate.kind, "fingerprint": candidate.fingerprint, "here": project}
    for other in candidates.where(rows, condition, **values):
        is_visible = projects.everywhere_of(rows, other.project_seq) == everywhere
        if is_visible and (inferred := _find_inferred(rows, other)):
            return inferred[0].id
    return ""


def _find_repeated(rows: Rows, candidate: Candidate) -> Memory | None:
    """Returns the memory of the same project that says the same as a candidate, or None."""
    for text in (_core_text(candidate), candidate.text):
        statement = _to_statement(candidate, text, "user")
        if memory := remember.find_repeated(rows, statement, project=candidate.project_seq):
            return memory
    return None


def _to_statement(candidate: Candidate, text: str, authority: Authority) -> Statement:
    return Statement(
        text=text, gate=candidate.gate, category=candidate.category, confidence=candidate.confidence,
        authority=authority, reasons=(INFERRED_ORIGIN, candidate.kind),
    )  # fmt: skip


# --- memories inferred from candidates


def _find_inferred(rows: Rows, stored: Candidate) -> list[Memory]:
    """Finds the memories that a candidate became, except those that a person has adopted or changed."""
    core = _core_text(_combine(_find_candidates(rows, stored.memory_ids) or [stored]))
    inferred = []
    for memory in filter(None, (memories.by_id(rows, memory_id) for memory_id in stored.memory_ids)):
        is_shared = memory.scope == "user" and memory.text.startswith(f"{core}: ")
        if memories.is_inferred(memory, memory.text if is_shared else stored.text):
            inferred.append(memory)
    return inferred


def _find_candidates(rows: Rows, memory_ids: Sequence[str]) -> list[Candidate]:
    """Finds the candidates of a memory, the oldest first: several if an order is a habit in several projects."""
    condition = "m.status in ('promoted', 'done') and m.memory_ids = :ids order by m.created_at, m.seq"
    return candidates.where(rows, condition, ids=" ".join(memory_ids))


def _combine(sources: Sequence[Candidate]) -> Candidate:
    """Combines candidates of the same order into one, with their sessions added up."""
    first = sources[0]
    if len(sources) == 1:
        return first
    counts = [[int(word) for word in source.text.split() if word.isdigit()][-2:] for source in sources]
    count, total = map(sum, zip(*counts, strict=True))
    return replace(
        first, text=f"{_core_text(first)}: in {count} of {total} sessions.",
        confidence=max(source.confidence for source in sources),
        updated_at=max(source.updated_at for source in sources),
        evidence=tuple(evidence for source in sources for evidence in source.evidence),
    )  # fmt: skip


def _update_inferred(rows: Rows, memory: Memory, *, before: Candidate, key: bytes) -> None:
    """Gives an inferred memory the scope, text, confidence and sources of its candidates; deletes it without any.

    `before` is the candidate that has changed, as it was.
    """
    sources_of_memory = _find_candidates(rows, [memory.id])
    if not sources_of_memory:
        memory_deletion.delete_memory(rows, memory)
        return
    candidate = _combine(sources_of_memory)
    scope: Scope = "user" if len(sources_of_memory) > 1 else "project"
    home = candidate.project_seq if scope == "project" else projects.everywhere_of(rows, candidate.project_seq)
    if memory.project_seq != home:
        project_merges.move_to_scope(rows, memory, home)
        if memories.by_id(rows, memory.id) is None:  # it was merged with one there of the same words
            return
    sources = _sort_sources(candidate)
    certainty = min(candidate.confidence, confidence.clamp(1.0, candidate.category, candidate.gate))
    reworded = replace(
        memory, text=candidate.text, confidence=certainty, created_at=candidate.created_at, category=candidate.category,
        confirmed_at=candidate.updated_at, session_id=sources[0].session_id, project_seq=home, scope=scope,
    )  # fmt: skip
    text_hash = tokens.keyed_hash(candidate.text, key)
    earlier_uuids = [source.uuid for source in before.evidence]
    reworded = supersession.refresh_thresholds(rows, reworded)
    memories.update_inferred(rows, reworded, text_hash=text_hash, sources=sources, before=earlier_uuids)


def _sort_sources(candidate: Candidate) -> list[Provenance]:
    """Sorts the turns that support a candidate, the earliest first, which counts as stating it."""
    support = sorted((item.at, item.uuid, item.session_id) for item in candidate.evidence if not item.against)
    return [Provenance(uuid=uuid, session_id=session, at=at) for at, uuid, session in support]


def _core_text(candidate: Candidate) -> str:
    """Returns a candidate's text without its counts, by which its memory is recognised."""
    is_habit = candidate.source == habits.SOURCE
    return (candidate.text.rpartition(": ")[0] if is_habit else "") or candidate.text
