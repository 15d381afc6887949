"""The hands of habits: packets that changed to candidates, candidates to memories; each project in one transaction.

A project whose packets changed is counted anew as a whole, so that neither the order in which sessions came nor a
replay makes a difference: what is there already is compared and left, what no longer holds is taken back, with the
memory that was inferred from it. What a person dropped or made csmd forget stays out; what a person stated is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from csmd import text
from csmd.believe import promote, scan, score
from csmd.believe import stage as believe
from csmd.believe.promote import Action, Profile
from csmd.model import Candidate, Memory, Provenance, Scope, Statement
from csmd.store import belief_changes, candidates, cursors, memories, projects, tombstones
from csmd.store.core import Store
from csmd.store.sqlite import Rows

#: The latest packets of a project that are counted.
MOST_PACKETS = 20_000
#: Most candidates that one plan looks at.
MOST_CANDIDATES = 2_000
BY = "csmd"
#: What the fingerprint of an order begins with.
ORDER = "order:"


def step(store: Store, *, now: str, promoting: bool = True, quiet_before: str = "") -> int:
    """Counts the projects whose packets changed; how many, 0 for nothing left. `promoting`: what passes becomes a memory.

    With `quiet_before` not those of which something was observed between that time and now: there somebody is at work.
    """
    changed = store.read(lambda rows: candidates.unscanned(rows, quiet_before=quiet_before, now=now))
    for project, top in changed:
        _count(store, project, top, now=now, promoting=promoting)
    return len(changed)


def _count(store: Store, project: int, top: int, *, now: str, promoting: bool) -> None:
    observed = store.read(lambda rows: candidates.latest_packets(rows, projects=[project], limit=MOST_PACKETS))
    found = scan.candidates(observed, project=project)

    def write(rows: Rows) -> None:
        if dict(candidates.unscanned(rows)).get(project) != top:
            return  # changed meanwhile: counted in the next step
        settle(rows, found, project=project, key=store.hash_key, now=now)
        if promoting:
            carry_out(rows, look(rows, projects=[project], profile=promote.DEFAULT), key=store.hash_key, now=now)
        cursors.move_cursor(rows, candidates.SCAN, str(project), top)

    store.write(write)


# --- candidates


def settle(rows: Rows, found: Sequence[Candidate], *, project: int, key: bytes, now: str) -> None:
    """Makes the queue say of a project what was found, and nothing else of this source."""
    marks = tombstones.marks(rows, key)
    allowed = {(one.kind, one.fingerprint): one for one in found if not marks.spans(f"{one.text} {one.fingerprint}")}
    for known in candidates.of_source(rows, scan.SOURCE, project=project):
        one = allowed.pop((known.kind, known.fingerprint), None)
        if one is None:
            _withdraw(rows, known)
        elif known.status != "dropped":
            _renew(rows, known, one, key=key, now=now)
    for one in allowed.values():
        candidates.put(rows, replace(one, id=candidates.identity(one.kind, project, one.fingerprint, "")))


def _withdraw(rows: Rows, known: Candidate) -> None:
    """Takes back what nothing speaks for any more, with the memory that was inferred from it."""
    for memory in _memories(rows, known):
        if memories.is_inferred(memory, known.text):
            memories.delete(rows, memory)
    if known.status != "dropped":
        candidates.remove(rows, known)


def _renew(rows: Rows, known: Candidate, one: Candidate, *, key: bytes, now: str) -> None:
    """Brings a candidate up to date, with the memory that it became."""
    if known.status not in ("promoted", "done"):
        candidates.renew(rows, known, one)
        return
    believed = _memories(rows, known)
    if not believed:
        if tombstones.keeps_out(
            rows, known.text, correction=False, authority=scan.KINDS[known.kind].authority,
            project=known.project_seq, at="", key=key,
        ):  # fmt: skip
            candidates.settle(rows, known, "dropped", now=now)
        else:  # its sources were purged, others are left
            candidates.renew(rows, known, one)
        return
    ours = [memory for memory in believed if memories.is_inferred(memory, known.text)]
    stays = promote.plan([one], profile=promote.DEFAULT, known={})[0].step == "promote" and _core(known) == _core(one)
    if ours and not stays:  # what would not become this memory now is none, whenever it was counted
        for memory in ours:
            memories.delete(rows, memory)
        candidates.renew(rows, known, one)
        return
    if candidates.renew(rows, known, replace(one, status=known.status, memory_ids=known.memory_ids)):
        for memory in ours:
            _retell(rows, memory, one, before=[source.uuid for source in known.evidence], key=key)


def _memories(rows: Rows, candidate: Candidate) -> list[Memory]:
    return [memory for ident in candidate.memory_ids if (memory := memories.by_id(rows, ident)) is not None]


# --- promotion


def look(rows: Rows, *, projects: Sequence[int] | None, profile: Profile) -> list[Action]:
    """What is to be done with the candidates that wait in some projects (None: all)."""
    found = [
        one for one in candidates.waiting(rows, projects=projects, limit=MOST_CANDIDATES) if one.kind in scan.KINDS
    ]
    known = {one.id: memory.id for one in found if (memory := _said_already(rows, one)) is not None}
    return promote.plan(found, profile=profile, known=known)


def carry_out(
    rows: Rows, actions: Iterable[Action], *, key: bytes, now: str, origin: str = memories.INFERRED
) -> dict[str, str]:
    """Does what a plan says as far as it still holds; candidate -> the memory it became.

    A candidate that has changed since the plan was made is left for the next one. Another `origin` than inferred makes
    it a person's: csmd then neither changes nor withdraws it.
    """
    made: dict[str, str] = {}
    for action in actions:
        current = candidates.by_id(rows, action.candidate.id)
        if current is None or current.version != action.candidate.version:
            continue
        if action.step == "promote":
            ident = _promote(rows, action, key=key, now=now, origin=origin)
            if ident:
                made[current.id] = ident
        elif action.step == "known":
            candidates.renew(rows, current, replace(current, status="done", memory_ids=(action.memory_id,)))
        elif action.step == "review" and current.status != "needs_review":
            candidates.settle(rows, current, "needs_review", now=now)
    return made


def _promote(rows: Rows, action: Action, *, key: bytes, now: str, origin: str) -> str:
    """Makes a memory of a candidate through the one door; "" where the user made csmd forget it."""
    candidate = action.candidate
    statement = Statement(
        text=_core(candidate), gate=candidate.gate, category=candidate.category, confidence=candidate.confidence,
        authority=scan.KINDS[candidate.kind].authority, reasons=(memories.INFERRED, candidate.kind),
    )  # fmt: skip
    source = _sources(candidate)[0]
    if believe.is_forgotten(
        rows, replace(statement, text=candidate.text), project=candidate.project_seq, at="", key=key
    ):
        ident, new = "", False
    else:
        # What somebody asks an assistant for in session after session tells of them; what runs tells of the project.
        scope: Scope | None = "user" if candidate.fingerprint.startswith(ORDER) else None
        ident, new = believe.remember(
            rows, statement, source, project=candidate.project_seq, origin=origin, key=key, scope=scope
        )
    if not ident:
        candidates.settle(rows, candidate, "dropped", now=now)
        return ""
    memory = memories.by_id(rows, ident)
    if new and memory is not None:
        _retell(rows, memory, candidate, before=[], key=key)
        belief_changes.note(rows, ident, "promoted", "", candidate.id, "; ".join(action.reasons), BY, now)
    became = replace(candidate, status="promoted" if new else "done", memory_ids=(ident,))
    candidates.renew(rows, candidate, became)
    return ident if new else ""


def _retell(rows: Rows, memory: Memory, candidate: Candidate, *, before: Sequence[str], key: bytes) -> None:
    """Gives an inferred memory the words, the sureness and the sources of its candidate."""
    sources = _sources(candidate)
    confidence = min(candidate.confidence, score.clamp(1.0, candidate.category, candidate.gate))
    limits = score.thresholds(
        confidence,
        decay=memory.decay,
        gate=candidate.gate,
        category=candidate.category,
        today=projects.active_day(rows, memory.project_seq, on=candidate.updated_at[:10]),
        stated=False,
    )
    told = replace(
        memory, text=candidate.text, confidence=confidence, created_at=candidate.created_at,
        confirmed_at=candidate.updated_at, session_id=sources[0].session_id, hot_until=limits.hot_until,
        warm_until=limits.warm_until, archive_at=limits.archive_at,
    )  # fmt: skip
    digest = text.keyed_hash(candidate.text, key)
    memories.retell_inferred(rows, told, text_hash=digest, sources=sources, before=before)


def _sources(candidate: Candidate) -> list[Provenance]:
    """The turns that speak for a candidate, the earliest first: that one states it, as of everything that is told again."""
    told = sorted((one for one in candidate.evidence if not one.against), key=lambda one: (one.at, one.uuid))
    return [Provenance(uuid=one.uuid, session_id=one.session_id, at=one.at) for one in told]


def _core(candidate: Candidate) -> str:
    """What a candidate says without its counts: by this a memory is known, whenever it was first made."""
    return candidate.text.rpartition(": ")[0] or candidate.text if candidate.source == scan.SOURCE else candidate.text


def put(rows: Rows, candidate: Candidate, *, promoting: bool, key: bytes, now: str) -> list[str]:
    """Puts what another rule has counted into the queue, or brings it up to date, and remembers it where it passes.

    The ids of the candidate and of the memories that it became; [] where a person dropped it or it was purged.
    """
    if tombstones.marks(rows, key).spans(f"{candidate.text} {candidate.fingerprint}"):
        return []
    known = next(
        (
            one
            for one in candidates.of_source(rows, candidate.source, project=candidate.project_seq)
            if (one.kind, one.fingerprint) == (candidate.kind, candidate.fingerprint)
        ),
        None,
    )
    if known is None:
        ident = candidates.put(rows, candidate)
    else:
        ident = known.id
        if known.status != "dropped":
            _renew(rows, known, replace(candidate, id=ident), key=key, now=now)
    current = candidates.by_id(rows, ident) if ident else None
    if current is not None and promoting and current.status in candidates.WAITING:
        said = _said_already(rows, current)
        plan = promote.plan([current], profile=promote.DEFAULT, known={ident: said.id} if said else {})
        carry_out(rows, plan, key=key, now=now)
        current = candidates.by_id(rows, ident)
    return [] if current is None or current.status == "dropped" else [ident, *current.memory_ids]


def _said_already(rows: Rows, candidate: Candidate) -> Memory | None:
    """A memory of the same project that says the same, in its words or nearly."""
    for said in dict.fromkeys((_core(candidate), candidate.text)):
        statement = Statement(
            text=said,
            gate=candidate.gate,
            category=candidate.category,
            confidence=candidate.confidence,
            authority="user",
        )
        found = believe.said_already(rows, statement, project=candidate.project_seq)
        if found is not None:
            return found
    return None
