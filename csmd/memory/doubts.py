"""Where no rule may tell whether one memory replaces another, a person is asked; an answer is final."""

from __future__ import annotations

from csmd.memory import contradiction, review, upkeep_plan
from csmd.model import Candidate, Evidence, Memory
from csmd.store import candidates
from csmd.store.sqlite import Rows

SOURCE = review.CHANGE


def say_what_stands(rows: Rows, old: Memory, new: Memory, found: contradiction.Replacement, *, at: str) -> None:
    """Asks a person about a memory that certainly is spoken against, by who may not replace it."""
    reason = (
        f"speaks against {old.id} ({', '.join(found.reasons)}), which stands: {contradiction.stands(pinned=old.pinned)}"
    )
    ask(rows, old, new, reason=reason, sure=found.confidence, at=at)


def ask(rows: Rows, old: Memory, new: Memory, *, reason: str, sure: float, at: str) -> str:
    """Asks a person which of two memories holds; the candidate's id, that of one that waits already, "" where it was answered."""
    fingerprint = f"{old.id}:{new.id}"
    for waiting in candidates.waiting_of(rows, [(old.project_seq, "stale", fingerprint)]):
        return waiting.id
    source = new.provenance[0]
    return candidates.put(
        rows,
        Candidate(
            id=candidates.identity("stale", old.project_seq, fingerprint, at),
            kind="stale",
            source=SOURCE,
            project_seq=old.project_seq,
            fingerprint=fingerprint,
            text=f"{upkeep_plan.quote(old)} or {upkeep_plan.quote(new)}",
            reason=reason,
            confidence=sure,
            gate=old.gate,
            category=old.category,
            created_at=at,
            updated_at=at,
            status="needs_review",
            memory_ids=(old.id, new.id),
            evidence=(Evidence(uuid=source.uuid, session_id=source.session_id, at=source.at, against=True),),
        ),
    )
