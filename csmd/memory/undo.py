"""Undoes a change set row by row; rows that have changed since keep their newer values, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from csmd.errors import CsmdError
from csmd.memory import supersession
from csmd.privacy.fingerprints import PURGED
from csmd.store import belief_changes, candidates, journal, memories, memory_snapshots, tombstones
from csmd.store.journal import FORGET, ChangedRow, ChangeSet
from csmd.store.memory_snapshots import Snapshot
from csmd.store.sqlite import Rows

#: Columns that the use of a memory changes: it stays fresh for longer, and its statement stays.
USE_COLUMNS = frozenset({"used_at", "hot_until", "warm_until", "archive_at", "version"})
#: Columns that count or date the changes of a row.
COUNTER_COLUMNS = frozenset({"version", "updated_at", "seq"})
#: Columns that change when active days pass or projects are merged and split; the memory stays the same.
SCOPE_COLUMNS = frozenset({"project_seq", "origin_seq", "hot_until", "warm_until", "archive_at"})
#: Column that has changed since the act -> the reason shown to people, the most informative first.
CHANGE_REASONS: Mapping[str, str] = {
    "text": "its wording changed since", "twin": "a merge of projects replaced it since by one with the same words",
    "superseded_by": "it was superseded or restored since", "pinned": "it was pinned or unpinned since",
    "status": "it was settled since", "done_at": "it was closed or opened since",
    "sources": "a source of it was added or removed since", "evidence": "its evidence changed since", "tier": "its tier changed since",
    "confidence": "its confidence changed since",
}  # fmt: skip
CHANGED = "it changed since"
GONE = "it was forgotten or purged since"
PURGED_SINCE = "a part of it was purged since"
FORGOTTEN = "its text was forgotten since"
ALREADY_WAITING = "a candidate like it is waiting"


def undo_answer(rows: Rows, answer: ChangeSet, *, now: str, key: bytes) -> str:
    """Undoes an answer as a whole; CsmdError if a memory that it touched has changed since.

    A candidate that was settled otherwise since stays as it is. Returns the text of the first memory or goal touched.
    """
    if answer.kind == FORGET and not answer.undone_at:
        hint = "`csmd remember` states it again, `csmd undo ID` undoes another answer"
        raise CsmdError(f"{answer.item} was forgotten for good and cannot be restored", hint=hint)
    changed = journal.changed_rows(rows, answer.seq)
    if answer.undone_at or not changed:
        reason = "it is undone already" if answer.undone_at else "its memories were purged or forgotten since"
        raise CsmdError(f"the answer {answer.id} cannot be undone: {reason}")
    before = [row.was for row in changed if row.was.state and row.was.is_memory]
    reasons = _find_reasons(rows, changed, key=key)
    for was in before if answer.kind == "drop" else ():
        tombstones.remove_forgetting(rows, was.text, scope=int(was.content["project_seq"]), at=answer.at, key=key)
        if reasons[was.item] == FORGOTTEN:  # by this answer, or before it
            reasons[was.item] = ""
    for row in changed:
        if not row.was.is_candidate and (reason_to_stay := reasons[row.was.item]):
            what = f"the answer {answer.id} cannot be undone: {row.was.item}: {reason_to_stay}"
            raise CsmdError(what, hint="csmd goal list --done" if row.was.is_goal else f"csmd show {row.was.item}")
    _restore(rows, [row for row in changed if not reasons[row.was.item]], now=now)
    journal.mark_undone(rows, answer, now=now)
    for was in before:
        reason = f"{answer.kind} was taken back"
        belief_changes.record_change(rows, was.item, "undo", "", "", reason, supersession.PERSON, now)
    return next((row.was.text or row.then.text for row in changed if row.was.is_goal), before[0].text if before else "")


def undo_action(rows: Rows, action: ChangeSet, *, now: str, key: bytes) -> bool:
    """Undoes an action of a dream, except for rows that have changed since, and records why they stay.

    Returns whether a row was restored that was not restored before.
    """
    changed = journal.changed_rows(rows, action.seq)
    reasons = _find_reasons(rows, changed, key=key)
    created = {row.was.item: reasons.pop(row.was.item) for row in changed if not row.was.state}
    reasons_to_stay = keep_all_or_none(created, reasons)
    _restore(rows, [row for row in changed if not reasons_to_stay[row.was.item]], now=now)
    journal.mark_rows(rows, action, changed, {row.seq: reasons_to_stay[row.was.item] for row in changed}, now=now)
    return not action.undone_at and any(not reasons_to_stay[row.was.item] for row in changed)


def _restore(rows: Rows, changed: Sequence[ChangedRow], *, now: str) -> None:
    """Restores the rows that are not restored yet; a memory that has been used since stays fresh for longer."""
    current = {image.item: image for image in memory_snapshots.take_snapshots(rows, [row.was.item for row in changed])}
    pairs = []
    for _, before, after, *_ in changed:
        now_stored = current[before.item].content
        if now_stored == after.content or not is_restored(before.content, now_stored):
            pairs.append((before, after))
    memory_snapshots.restore(rows, pairs, at=now)
    for was, then in pairs:
        memory, image = memories.by_id(rows, was.item), current[was.item]
        if memory is not None and was_used(then.content, image.content):
            used = replace(memory, used_at=str(image.content["used_at"]))
            memories.update_belief(rows, supersession.refresh_thresholds(rows, used))


# --- reasons not to restore a row


def _find_reasons(rows: Rows, changed: Sequence[ChangedRow], *, key: bytes) -> dict[str, str]:
    """Maps the items of a change set to the reasons why they cannot be restored, "" if they can."""
    items = [row.was.item for row in changed]
    current = {image.item: image.content for image in memory_snapshots.take_snapshots(rows, items)}
    reasons = {}
    for _, before, after, *_ in changed:
        obstacle = _find_obstacle(rows, before, together=items, key=key)
        now = current[before.item]
        reasons[before.item] = find_reason_to_stay(before.content, after.content, now, obstacle)
    return reasons


def _differing_columns(left: Mapping[str, Any], right: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name in {**left, **right} if left.get(name) != right.get(name))


def is_restored(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a row is again as it was before the act, whatever happened in between."""
    return not _differing_columns(before, now) - COUNTER_COLUMNS and bool(before) == bool(now)


def was_used(after: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the only change of a memory since the act is that a session used it."""
    differing = _differing_columns(after, now)
    return "used_at" in differing and differing <= USE_COLUMNS | SCOPE_COLUMNS


def find_reason_to_stay(
    before: Mapping[str, Any], after: Mapping[str, Any], now: Mapping[str, Any], obstacle: str = ""
) -> str:
    """Returns why a row stays as it is, given before the act, after it and now; "" if it can be restored.

    `obstacle` is a reason besides the changes of the row.
    """
    if is_restored(before, now):
        return ""
    if after and not now:
        return GONE
    differing = _differing_columns(after, now) - SCOPE_COLUMNS
    if not obstacle and differing and not (was_used(after, now) and before and not before.get("superseded_by")):
        return next((reason for name, reason in CHANGE_REASONS.items() if name in differing), CHANGED)
    return obstacle


def keep_all_or_none(created: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """Maps the items of an action to the reasons why they stay; all stay if an item that it `created` has to stay.

    A half-undone promotion would be done again.
    """
    kept_id = next((item for item, own_reason in created.items() if own_reason), "")
    reason = f"{kept_id}, which was made of it, stays" if kept_id else ""
    return {item: own_reason or reason for item, own_reason in {**changed, **created}.items()}


def _find_obstacle(rows: Rows, was: Snapshot, *, together: Collection[str], key: bytes) -> str:
    """Returns the reason why a row cannot be restored with the other items `together`, or ""."""
    content = was.content
    if was.is_candidate:
        if PURGED in was.text + "".join(was.details.values()):
            return PURGED_SINCE
        waited = bool(content) and content["status"] in candidates.WAITING
        return ALREADY_WAITING if waited and candidates.is_waiting(rows, memory_snapshots.to_candidate(was)) else ""
    if was.is_goal:
        return PURGED_SINCE if PURGED in was.text else ""
    if not content:
        represented = [other for other in belief_changes.list_represented_ids(rows, was.item) if other not in together]
        return f"it represents {represented[0]} since" if represented else ""
    if PURGED in was.text:
        return PURGED_SINCE
    if tombstones.is_statement_forgotten(
        rows, was.text, correction=content["gate"] == "correction", authority=content["authority"],
        project=int(content["project_seq"]), at=str(content["created_at"]), key=key,
    ):  # fmt: skip
        return FORGOTTEN
    replacement = str(content["superseded_by"])
    is_gone = bool(replacement) and memories.by_id(rows, replacement) is None and replacement not in together
    return f"{replacement}, which took its place before, is gone" if is_gone else ""
