"""Undoes a change set row by row; what changed since keeps its newer value, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from csmd.errors import CsmdError
from csmd.memory import supersession
from csmd.privacy.fingerprints import PURGED
from csmd.store import belief_changes, candidates, journal, memories, row_images, tombstones
from csmd.store.journal import FORGET, ChangedRow, ChangeSet
from csmd.store.row_images import Image
from csmd.store.sqlite import Rows

#: Columns that the use of a memory changes: it stays fresh for longer, and what is believed stays.
USE_COLUMNS = frozenset({"used_at", "hot_until", "warm_until", "archive_at", "version"})
#: Columns that count the changes of a row and say nothing by themselves.
COUNTER_COLUMNS = frozenset({"version", "updated_at", "seq"})
#: Columns that change when active days pass or projects are merged and split: the memory is the same.
SCOPE_COLUMNS = frozenset({"project_seq", "origin_seq", "hot_until", "warm_until", "archive_at"})
#: Column that has changed since the act -> the reason shown to people, the most informative first.
CHANGE_REASONS: tuple[tuple[str, str], ...] = (
    ("text", "its wording changed since"),
    ("twin", "a merge of projects put it aside since"),
    ("superseded_by", "another memory took its place since, or gave it back"),
    ("pinned", "it was pinned or unpinned since"),
    ("status", "it was settled since"),
    ("sources", "it was said again since, or a source of it is gone"),
    ("evidence", "there is more or less evidence since"),
    ("tier", "its tier changed since"),
    ("confidence", "it is more or less sure since"),
)
CHANGED = "it changed since"
GONE = "it was forgotten or purged since"
PURGED_SINCE = "a part of it was purged since"
FORGOTTEN = "what it says was forgotten since"
ALREADY_WAITING = "another one like it waits"


def undo_answer(rows: Rows, answer: ChangeSet, *, now: str, key: bytes) -> str:
    """Undoes an answer as a whole; CsmdError if a memory that it touched has changed since.

    A candidate that was settled otherwise since stays as it is. Returns the text of the first memory that it touched.
    """
    if answer.kind == FORGET and not answer.undone_at:
        raise CsmdError(
            f"{answer.item} was forgotten for good, and undo brings nothing back",
            hint="say it anew: csmd remember; `csmd undo ID` takes something else back",
        )
    changed = journal.changed_rows(rows, answer.seq)
    if answer.undone_at or not changed:
        purged = "something was purged or forgotten since, and undo brings nothing back then"
        raise CsmdError(
            f"the answer {answer.id} cannot be undone: {'it is undone already' if answer.undone_at else purged}"
        )
    before = [row.was for row in changed if row.was.state and not row.was.is_candidate]
    reasons = _find_reasons(rows, changed, key=key)
    for was in before if answer.kind == "drop" else ():
        tombstones.remove_forgetting(rows, was.text, scope=int(was.content["project_seq"]), at=answer.at, key=key)
        if reasons[was.item] == FORGOTTEN:  # by this answer, or before it
            reasons[was.item] = ""
    for row in changed:
        if not row.was.is_candidate and (why := reasons[row.was.item]):
            raise CsmdError(
                f"the answer {answer.id} cannot be undone: {row.was.item}: {why}", hint=f"csmd show {row.was.item}"
            )
    _restore(rows, [row for row in changed if not reasons[row.was.item]], now=now)
    journal.mark_undone(rows, answer, now=now)
    for was in before:
        reason = f"{answer.kind} was taken back"
        belief_changes.record_change(rows, was.item, "undo", "", "", reason, supersession.PERSON, now)
    return before[0].text if before else ""


def undo_action(rows: Rows, action: ChangeSet, *, now: str, key: bytes) -> bool:
    """Undoes an action of a dream as far as nothing has changed since, and records what stays and why.

    Returns whether anything was restored that was not before.
    """
    changed = journal.changed_rows(rows, action.seq)
    reasons = _find_reasons(rows, changed, key=key)
    made = {row.was.item: reasons.pop(row.was.item) for row in changed if not row.was.state}
    kept = keep_all_or_none(made, reasons)
    _restore(rows, [row for row in changed if not kept[row.was.item]], now=now)
    journal.mark_rows(rows, action, changed, {row.seq: kept[row.was.item] for row in changed}, now=now)
    return not action.undone_at and any(not kept[row.was.item] for row in changed)


def _restore(rows: Rows, changed: Sequence[ChangedRow], *, now: str) -> None:
    """Restores the rows that are not yet what they were; a memory that was used since stays fresh for longer."""
    current = {image.item: image for image in row_images.take_images(rows, [row.was.item for row in changed])}
    pairs = [
        (row.was, row.then)
        for row in changed
        if current[row.was.item].content == row.then.content
        or not is_restored(row.was.content, current[row.was.item].content)
    ]
    row_images.restore(rows, pairs, at=now)
    for was, then in pairs:
        memory, image = memories.by_id(rows, was.item), current[was.item]
        if memory is not None and was_used(then.content, image.content):
            used = replace(memory, used_at=str(image.content["used_at"]))
            memories.update_belief(rows, supersession.refresh_thresholds(rows, used))


# --- why a row stays as it is


def _find_reasons(rows: Rows, changed: Sequence[ChangedRow], *, key: bytes) -> dict[str, str]:
    """Returns item of a change set -> why it cannot become what it was, "" if it can."""
    items = [row.was.item for row in changed]
    current = {image.item: image.content for image in row_images.take_images(rows, items)}
    return {
        row.was.item: find_reason_to_stay(
            row.was.content,
            row.then.content,
            current[row.was.item],
            _find_obstacle(rows, row.was, together=items, key=key),
        )
        for row in changed
    }


def _differing_columns(left: Mapping[str, Any], right: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name in {**left, **right} if left.get(name) != right.get(name))


def is_restored(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a row is what it was, whatever happened in between."""
    return not _differing_columns(was, now) - COUNTER_COLUMNS and bool(was) == bool(now)


def was_used(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a session has used a memory and nothing else has happened to it."""
    differing = _differing_columns(then, now)
    return "used_at" in differing and differing <= USE_COLUMNS | SCOPE_COLUMNS


def find_reason_to_stay(
    was: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any], obstacle: str = ""
) -> str:
    """Returns why a row stays as it is, given before the act, after it and now; "" if it can be restored.

    `obstacle` is what else prevents it.
    """
    if is_restored(was, now):
        return ""
    if then and not now:
        return GONE
    differing = _differing_columns(then, now) - SCOPE_COLUMNS
    if not obstacle and differing and not (was_used(then, now) and was and not was.get("superseded_by")):
        return next((reason for name, reason in CHANGE_REASONS if name in differing), CHANGED)
    return obstacle


def keep_all_or_none(made: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """Returns item of an action -> why it stays, "" for none: if something that it `made` has to stay, all of it does.

    A half-undone promotion would be done again.
    """
    stays = next((ident for ident, why in made.items() if why), "")
    because = f"{stays}, which was made of it, stays" if stays else ""
    return {ident: why or because for ident, why in {**changed, **made}.items()}


def _find_obstacle(rows: Rows, was: Image, *, together: Collection[str], key: bytes) -> str:
    """Returns what prevents that a row becomes what it was, "" for nothing; the items of its change set go back `together`."""
    content = was.content
    if was.is_candidate:
        if PURGED in was.text + "".join(was.more.values()):
            return PURGED_SINCE
        waited = bool(content) and content["status"] in candidates.WAITING
        return ALREADY_WAITING if waited and candidates.is_waiting(rows, row_images.to_candidate(was)) else ""
    if not content:
        represented = [other for other in belief_changes.represented_memories(rows, was.item) if other not in together]
        return f"it represents {represented[0]} since" if represented else ""
    if PURGED in was.text:
        return PURGED_SINCE
    if tombstones.is_statement_forgotten(
        rows, was.text, correction=content["gate"] == "correction", authority=content["authority"],
        project=int(content["project_seq"]), at=str(content["created_at"]), key=key,
    ):  # fmt: skip
        return FORGOTTEN
    heir = str(content["superseded_by"])
    is_gone = bool(heir) and memories.by_id(rows, heir) is None and heir not in together
    return f"{heir}, which took its place before, is gone" if is_gone else ""
