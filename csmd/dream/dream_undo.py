"""Undoes dreams: finds which, restores their rows, then their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from csmd.errors import CsmdError
from csmd.memory.undo import PURGED_SINCE, undo_action
from csmd.privacy.fingerprints import remove_purged
from csmd.privacy.redaction import redact
from csmd.store import belief_changes, dreams, files, journal, memories, past_decisions, stored_pages, tombstones
from csmd.store.core import Store
from csmd.store.dreams import Dream
from csmd.store.journal import ChangedFile, ChangeSet
from csmd.store.sqlite import Rows

#: The states of dreams that can be undone: a killed or cancelled dream has a journal too.
UNDOABLE = ("done", "failed", "cancelled")
#: Usual days between two dreams: a week without five new sessions is not rare.
USUAL_GAP_DAYS = 7
EDITED_SINCE = "the file was edited since"
PURGED_RESULT = "a purge removed its result"
#: Actions that one write undoes; hooks wait for it.
BATCH_ACTIONS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A memory, candidate or path ("" for an action that was purged) that an undo did not restore, and why."""

    dream: str
    item: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The result of an undo: the dreams, newest first, the items and files that were restored, and what was skipped."""

    dreams: tuple[Dream, ...]
    items: tuple[str, ...]
    files: tuple[str, ...]
    skipped: tuple[Skipped, ...]


# --- which dreams


def find_dreams_to_undo(history: Sequence[Dream], dream_id: str) -> list[Dream]:
    """Returns a dream and every later one that is not undone, newest first; CsmdError if it cannot be undone."""
    dream_to_undo = next((dream for dream in history if dream.id == dream_id), None)
    if dream_to_undo is None:
        raise CsmdError(f"there is no dream {dream_id!r}", hint="csmd dream history")
    if any(dream.state == "running" for dream in history):
        raise CsmdError("a dream is running", hint="csmd dream status")
    if dream_to_undo.state not in UNDOABLE:
        raise CsmdError(f"the dream {dream_id} was already undone", hint=f"csmd dream diff {dream_id}")
    later = [dream for dream in history if dream.seq >= dream_to_undo.seq and dream.state in UNDOABLE]
    return sorted(later, key=lambda dream: dream.seq, reverse=True)


def plan_undo(rows: Rows, dream_id: str) -> list[Dream]:
    """Returns the dreams that undoing one would undo, newest first; CsmdError if it cannot be undone."""
    chain = find_dreams_to_undo(dreams.list_dreams(rows, limit=dreams.NO_LIMIT), dream_id)
    if not any(journal.count_actions(rows, dream.seq) for dream in chain):
        hint = "`csmd config set dream.keep_days DAYS` keeps journals longer"
        what = f"the dream {dream_id} cannot be undone: it changed nothing, or its journal has expired"
        raise CsmdError(what, hint=hint)
    return chain


def find_expired(history: Sequence[Dream], *, now: str, keep_days: int, every_h: int) -> list[int]:
    """Returns the row keys of the dreams whose journal has been kept for `keep_days`.

    The time between two dreams, and since the last one, counts up to twice the usual gap, so that neither a clock set
    ahead nor months without work make a dream old.
    """
    max_gap = max(timedelta(days=USUAL_GAP_DAYS), 2 * timedelta(hours=every_h))
    expired, age, later = [], timedelta(0), datetime.fromisoformat(now)
    for dream in sorted(history, key=lambda dream: dream.seq, reverse=True):
        begun = datetime.fromisoformat(dream.begun_at)
        age, later = age + min(max(later - begun, timedelta(0)), max_gap), begun
        if age > timedelta(days=keep_days):
            expired.append(dream.seq)
    return expired


def find_skip_reasons(
    chain: Sequence[ChangedFile], content: str | None, purged: Collection[int] = ()
) -> dict[int, str]:
    """Returns why each write of a file (row key; `chain` is oldest first) is not undone, "" if it is.

    From the newest back, each must have written the present text; an edit in between stays and ends the undo. A write
    that was recorded but never done left the text before it. Undoing one of `purged` would restore purged text.
    """
    reasons: dict[int, str] = {}
    reason = ""
    for writing in reversed(chain):
        if not reason and content not in (writing.after, writing.before):
            reason = EDITED_SINCE
        if not reason and writing.seq in purged:
            reason = PURGED_SINCE
        reasons[writing.seq] = reason
        content = writing.before
    return reasons


# --- undoing


def undo_dreams(store: Store, dream_id: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, Undone]:
    """Undoes a dream and every later one; skips items that have changed since."""
    yield from finish_undo(store, home=home, now=now)
    undone = yield from undo_rows(store, dream_id, home=home, now=now, key=key)
    yield from finish_undo(store, home=home, now=now)
    seqs = [dream.seq for dream in undone]
    items: dict[str, bool] = {}
    skipped: dict[str, Skipped] = {}
    for number, (dream_id, item, is_file, reason) in enumerate(
        store.read(lambda rows: journal.undo_results(rows, seqs))
    ):
        items[item] = is_file
        if reason or not item:
            skipped.setdefault(item or f"#{number}", Skipped(dream=dream_id, item=item, why=reason or PURGED_RESULT))
    history = {dream.id: dream for dream in store.read(partial(dreams.list_dreams, limit=dreams.NO_LIMIT))}
    restored = {item: is_file for item, is_file in sorted(items.items()) if item and item not in skipped}
    return Undone(
        dreams=tuple(history[dream.id] for dream in undone), skipped=tuple(skipped.values()),
        items=tuple(item for item, is_file in restored.items() if not is_file), files=tuple(filter(restored.get, restored)),
    )  # fmt: skip


def undo_rows(store: Store, dream_id: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, list[Dream]]:
    """Restores the rows and marks which files are to be restored; returns the dreams, newest first."""
    undone = store.read(lambda rows: plan_undo(rows, dream_id))
    seqs = [dream.seq for dream in undone]
    paths = store.read(lambda rows: journal.list_paths_written(rows, seqs))
    texts = {path: read_text(home / path) for path in paths}
    for seq in seqs:
        keys = store.read(partial(journal.list_actions, dream=seq))[::-1]
        for start in range(0, len(keys), BATCH_ACTIONS):
            store.write(partial(_undo_actions, seqs=keys[start : start + BATCH_ACTIONS], now=now, key=key))
            yield
    for path in paths:
        store.write(partial(_mark_files, seqs=seqs, path=path, content=texts[path], now=now, key=key))
        yield
    store.write(lambda rows: dreams.set_states(rows, seqs, "undoing", now=now))
    return undone


def finish_undo(store: Store, *, home: Path, now: str) -> Generator[None, None, int]:
    """Restores the files of dreams that are being undone, also after a crash; returns how many dreams."""
    history = store.read(lambda rows: dreams.list_dreams(rows, limit=dreams.NO_LIMIT))
    seqs = [dream.seq for dream in history if dream.state == "undoing"]
    if seqs:
        for path in store.read(lambda rows: journal.list_paths_written(rows, seqs, undone_only=True)):
            _restore_file(store, home, seqs, path, now=now)
            yield
        store.write(lambda rows: dreams.set_states(rows, seqs, "undone", now=now))
    return len(seqs)


def _mark_files(rows: Rows, *, seqs: Sequence[int], path: str, content: str | None, now: str, key: bytes) -> None:
    """Marks which writes of a file are to be undone."""
    chain, marks = journal.list_file_history(rows, seqs, path), tombstones.purged_marks(rows, key)
    # Undoing these would bring back purged text.
    rewritten = [writing for writing in chain if marks and writing.before is not None]
    purged = [writing.seq for writing in rewritten if remove_purged(writing.before or "", marks)[1]]
    reasons = find_skip_reasons(chain, content, purged)
    for writing in chain:
        journal.mark_file(rows, writing, kept=reasons[writing.seq], now=now)


def _undo_actions(rows: Rows, *, seqs: Sequence[int], now: str, key: bytes) -> None:
    for seq in seqs:
        action = journal.read_change_set(rows, seq)
        if undo_action(rows, action, now=now, key=key):
            _record_undone(rows, action, now=now)


def _record_undone(rows: Rows, action: ChangeSet, *, now: str) -> None:
    """Records an undone lift or question in the audit of its memories, so that no dream repeats it.

    Other actions are in the audit of the memories that they changed.
    """
    evidence = action.evidence.split()
    pair = evidence[1::-1]  # older, newer
    notes = {"lift": (past_decisions.NOT_GENERALIZED, "", evidence)}
    notes["ask"] = past_decisions.NOT_ASKED, ":".join(pair), pair
    note, after, memory_ids = notes.get(action.kind, ("", "", []))
    for memory_id in memory_ids:
        if memories.by_id(rows, memory_id) is not None:
            reason = "the dream was undone"
            belief_changes.record_change(rows, memory_id, note, "", after, reason, belief_changes.DREAM, now)


def _restore_file(store: Store, home: Path, seqs: Sequence[int], path: str, *, now: str) -> None:
    chain = store.read(lambda rows: journal.list_file_history(rows, seqs, path, undone_only=True))
    before, content = chain[0].before, read_text(home / path)
    # Lines that were forgotten since are left out.
    restored = before and store.read(
        lambda rows: stored_pages.remove_forgotten(rows, before, path=path, key=store.hash_key)[0]
    )
    restored = restored and redact(restored, Counter())  # older rules may have let secrets through
    # A person may have edited the file since it was marked.
    is_edited = content != restored and any(find_skip_reasons(chain, content).values())
    if content != restored and not is_edited:
        _write_text(home / path, restored)

    def write(rows: Rows) -> None:
        if not is_edited:
            dreams.update_page_row(rows, path, restored, now=now)
        for writing in chain if is_edited else ():
            journal.mark_file(rows, writing, kept=EDITED_SINCE, now=now)

    store.write(write)


def read_text(path: Path) -> str | None:
    """Returns the text of a file, None if there is none; "\\0" if it is a link or cannot be read."""
    raw = files.read_plain(path)
    return None if raw is None else raw.decode("utf-8", "replace")


def _write_text(path: Path, text: str | None) -> None:
    """Writes a file, or removes it if `text` is None; CsmdError if the disk refuses."""
    try:
        if text is None:
            path.unlink()
        else:
            files.make_private(path.parent)
            files.write_atomic(path, text.encode("utf-8", "replace"))
    except OSError as error:
        hint = "make it writable: the rest is undone at the next start"
        raise CsmdError(f"{path} cannot be written: {error.strerror}", hint=hint) from error
