"""Audit of compactions: the sizes of turns stored in part, recomputed from their text and compared with the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csmd.privacy.fingerprints import PURGED
from csmd.store.compactions import Cause, Outcome, choose_outcome
from csmd.store.sqlite import Rows, in_keys
from csmd.text import display

#: Marks of text that a purge or a scan for secrets removed.
REMOVAL_MARKS = (PURGED, "[redacted")
#: Turns that one call of `recount` reads.
AUDIT_BATCH = 500


class Recount(NamedTuple):
    """A compaction recomputed from the turn's text; `problem` says how it differs from the record, "" if it agrees.

    `is_changed` if something was purged from the text since, so that its bytes cannot agree.
    """

    seq: int
    uuid: str
    outcome: str
    bytes_before: int
    bytes_after: int
    tokens_saved: int
    is_changed: bool
    problem: str


class _AuditRow(NamedTuple):
    """A turn with the record of its compaction; the columns of a missing record are None or 0."""

    seq: int
    uuid: str
    text: str
    dropped: int | None
    gone: int
    outcome: Outcome | None
    cause: Cause | None
    bytes_before: int | None
    bytes_after: int | None
    tokens_before: int
    tokens_after: int


def recount(rows: Rows, *, after: int = 0, projects: Sequence[int] | None) -> list[Recount]:
    """Recomputes the next turns past a row key that were compacted, or look so."""
    sql = f"""select t.seq, t.uuid, t.text, t.dropped, t.gone, c.outcome,
        c.cause, c.bytes_before, c.bytes_after, coalesce(c.tokens_before, 0), coalesce(c.tokens_after, 0) from turns t
        left join compactions c on c.turn_seq = t.seq where t.seq > :after and {in_keys("t.project_seq", projects)}
        and (t.dropped is not null or c.turn_seq is not null) order by t.seq limit :limit"""  # noqa: S608
    return [_recount_turn(row) for row in rows.read(_AuditRow, sql, after=after, limit=AUDIT_BATCH)]


def _recount_turn(row: _AuditRow) -> Recount:
    cut = display.find_cut(row.text, f"turn {row.uuid}")
    size = display.count_bytes(row.text)
    left_out = cut.left_out if cut else row.dropped or 0
    original = display.count_bytes(f"{cut.head}{cut.tail}") + left_out if cut else left_out
    is_changed = size != row.bytes_after and any(mark in row.text for mark in REMOVAL_MARKS)
    saved = row.tokens_before - row.tokens_after if row.outcome == "compressed" else 0
    problem = _find_problem(row, size, original, left_out, is_changed=is_changed)
    return Recount(row.seq, row.uuid, row.outcome or "", original, size, saved, is_changed, problem)


def _find_problem(row: _AuditRow, size: int, original: int, left_out: int, *, is_changed: bool) -> str:
    if row.outcome is None:
        return f"{row.dropped} bytes are left out, and no compaction is recorded"
    if is_changed:
        return ""
    if size != row.bytes_after:
        return f"{size} bytes are stored, {row.bytes_after} are recorded"
    if original != row.bytes_before:
        return f"the text implies {original} bytes originally, {row.bytes_before} are recorded"
    if left_out != row.dropped:
        return f"{row.dropped} bytes are recorded as left out, the mark in the text says {left_out}"
    if row.outcome != choose_outcome(row.cause or "size", row.tokens_before, row.tokens_after):
        return f"recorded as {row.outcome}, with {row.tokens_before} tokens before and {row.tokens_after} after"
    if bool(row.gone) != (row.cause in ("age", "room")):
        return f"recorded as compacted for {row.cause}, and {'no' if row.gone else 'some'} text is stored"
    return ""
