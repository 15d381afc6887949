"""What a tool's failure is answered with: what solved it before, unless the session has that in its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from csmd import text
from csmd.distill import errors
from csmd.model import Brief, Failure
from csmd.recall import brief, compose, failure
from csmd.recall.failure import Known
from csmd.store import context, failures, memories
from csmd.store.sqlite import Rows

#: Most tokens of an answer: it comes in the middle of work.
MOST_TOKENS = 250
#: How many failures with the same message are looked at.
LOOKED_UP = 5


def failure_recall(rows: Rows, *, places: Sequence[int], session_id: str, failed: Failure, kept_bytes: int) -> Brief:
    """What is known of a failure from elsewhere than the session's own context; "" where nothing helps.

    `kept_bytes` is how much is kept of a tool's output: what is told by its transcript is looked at, no more.
    """
    said = text.both_ends(failed.said, limit=kept_bytes)
    seen = errors.seen(failed.tool, failed.command, said, at="", uuid="")
    if seen is None:
        return Brief(text="", tokens=0, items=())
    here = failures.Told(session_id, context.fresh_since(rows, session_id))
    told = context.told(rows, session_id)
    known = _same(rows, seen.fingerprint, places, here) or _similar(rows, seen, places, here)
    if known is None or known.id in told:
        return Brief(text="", tokens=0, items=())
    if known.memory is not None and known.memory.id in told:
        known = replace(known, memory=None)
    return compose.fenced(failure.TAG, failure.ABOUT, [failure.block(known)], max_tokens=MOST_TOKENS)


def _same(rows: Rows, fingerprint: str, places: Sequence[int], here: failures.Told) -> Known | None:
    seen = failures.seen(rows, fingerprint, places, but_in=here)
    known = _known(rows, seen, places) if seen is not None else None
    return known if known is not None and failure.kind_of(known) else None


def _similar(rows: Rows, seen: errors.ErrorSeen, places: Sequence[int], here: failures.Told) -> Known | None:
    """What is known of the failure with the same message that was solved last; a message that names nothing is anybody's."""
    if not failure.names_something(seen.message):
        return None
    others = failures.saying(rows, seen.message, other_than=seen.fingerprint, projects=places, limit=LOOKED_UP)
    found = [failures.seen(rows, other, places, but_in=here) for other in others]
    known = [replace(_known(rows, one, places), same=False) for one in found if one is not None]
    solved = [one for one in known if failure.kind_of(one)]
    return max(solved, key=lambda one: (one.fixed_at, one.last_at, one.id), default=None)


def _known(rows: Rows, seen: failures.Seen, places: Sequence[int]) -> Known:
    """An error with the memory that tells its cause, as far as that may be told unasked."""
    memory = memories.by_id(rows, seen.memory_id) if seen.memory_id else None
    tells = memory is not None and brief.injectable(memory) and memory.project_seq in places
    return Known(
        id=seen.id, command=seen.command, exit_code=seen.exit_code, message=seen.message, times=seen.times,
        sessions=seen.sessions, last_at=seen.last_at, fixed_at=seen.fixed_at, fixed_files=seen.fixed_files,
        fixed_by=seen.fixed_by, memory=memory if tells else None,
    )  # fmt: skip
