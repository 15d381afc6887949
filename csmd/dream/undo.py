"""Shows what a dream changed and undoes it: rows and files."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from csmd.errors import CsmdError
from csmd.memory import supersession
from csmd.privacy.fingerprints import PURGED, clean
from csmd.privacy.redaction import redact
from csmd.store import (
    belief_changes,
    candidates,
    dreams,
    files,
    memories,
    projects,
    stored_pages,
    tombstones,
    workspaces,
)
from csmd.store.belief_changes import Before
from csmd.store.core import Store
from csmd.store.dreams import Change, ChangedFile, ChangedRow, Dream
from csmd.store.sqlite import Rows

#: The states of dreams that can be undone: what a killed or cancelled one did is in its journal, too.
UNDOABLE = ("done", "failed", "cancelled")
#: Days that two dreams may well be apart: a week without five new sessions is not rare.
APART_DAYS = 7
#: Columns that the use of a memory changes: its age begins again, and what is believed stays.
USE = frozenset({"used_at", "hot_until", "warm_until", "archive_at", "version"})
#: Columns that count the changes of a row and say nothing by themselves.
NUMBERS = frozenset({"version", "updated_at", "seq"})
#: Columns that change when days become known or projects are merged and split: the memory is the same.
PLACE = frozenset({"project_seq", "origin_seq", "hot_until", "warm_until", "archive_at"})
#: Column that has changed since the action -> what people are told, the most telling first.
WHY: tuple[tuple[str, str], ...] = (
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
GONE = "it was forgotten or purged since"
PURGED_SINCE = "a part of it was purged since"
FORGOTTEN = "what it says was forgotten since"
CHANGED = "it changed since"
CROWDED = "another one like it waits"
EDITED = "the file was edited since"
TAKEN_AWAY = "a purge took away what it had done"
#: Actions that one write takes back: hooks wait behind it.
BATCH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something that undoing left as it is: a memory, candidate or path of a dream ("" for an action that was purged)."""

    dream: str
    item: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The result of undoing: the dreams, newest first, the items and files that went back, and what was skipped."""

    dreams: tuple[Dream, ...]
    items: tuple[str, ...]
    files: tuple[str, ...]
    skipped: tuple[Skipped, ...]


# --- which dreams


def find_dreams_to_undo(history: Sequence[Dream], ident: str) -> list[Dream]:
    """A dream and every later one that is not undone, newest first; CsmdError where it cannot be undone."""
    wanted = next((dream for dream in history if dream.id == ident), None)
    if wanted is None:
        raise CsmdError(f"there is no dream {ident!r}", hint="csmd dream history")
    if any(dream.state == "running" for dream in history):
        raise CsmdError("a dream is under way: what it does cannot be told yet", hint="csmd dream status")
    if wanted.state not in UNDOABLE:
        raise CsmdError(f"the dream {ident} is undone already", hint=f"csmd dream diff {ident}")
    later = [dream for dream in history if dream.seq >= wanted.seq and dream.state in UNDOABLE]
    return sorted(later, key=lambda dream: dream.seq, reverse=True)


def plan_undo(rows: Rows, ident: str) -> list[Dream]:
    """The dreams that undoing one would undo, newest first; CsmdError where it cannot be undone."""
    chain = find_dreams_to_undo(dreams.history(rows, limit=dreams.ALL), ident)
    if not any(dreams.change_counts(rows, dream.seq) for dream in chain):
        raise CsmdError(
            f"nothing of the dream {ident} can be undone: it changed nothing, or its journal is not kept any more",
            hint="`csmd config set dream.keep_days DAYS` keeps journals longer",
        )
    return chain


def find_outlived(history: Sequence[Dream], *, now: str, keep_days: int, every_h: int) -> list[int]:
    """The row keys of the dreams whose journal has been kept for `keep_days`.

    The time between two dreams, and since the last one, counts up to what is usual: neither a clock that was set ahead
    nor months without work make a dream old.
    """
    most = max(timedelta(days=APART_DAYS), 2 * timedelta(hours=every_h))
    outlived, age, later = [], timedelta(0), datetime.fromisoformat(now)
    for dream in sorted(history, key=lambda dream: dream.seq, reverse=True):
        begun = datetime.fromisoformat(dream.begun_at)
        age, later = age + min(max(later - begun, timedelta(0)), most), begun
        if age > timedelta(days=keep_days):
            outlived.append(dream.seq)
    return outlived


# --- why something stays: rows before an action (`was`), after it (`then`) and now


def _differing(left: Mapping[str, Any], right: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name in {**left, **right} if left.get(name) != right.get(name))


def is_back(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a row is what it was, whatever happened in between."""
    return not _differing(was, now) - NUMBERS and bool(was) == bool(now)


def was_used(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a session has used a memory and nothing else has happened to it."""
    differing = _differing(then, now)
    return "used_at" in differing and differing <= USE | PLACE


def why_not_undone(was: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any], obstacle: str = "") -> str:
    """Why a row stays as it is, "" where it becomes what it was; `obstacle` is what else is in the way."""
    if is_back(was, now):
        return ""
    if then and not now:
        return GONE
    differing = _differing(then, now) - PLACE
    if not obstacle and differing and not (was_used(then, now) and was and not was.get("superseded_by")):
        return next((words for name, words in WHY if name in differing), CHANGED)
    return obstacle


def keep_together(made: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """Item of an action -> why it stays, "" for none: where something that it `made` has to stay, all of it does.

    A half-undone promotion would be done again.
    """
    stays = next((ident for ident, why in made.items() if why), "")
    because = f"{stays}, which was made of it, stays" if stays else ""
    return {ident: why or because for ident, why in {**changed, **made}.items()}


def why_files_stay(chain: Sequence[ChangedFile], content: str | None, purged: Collection[int] = ()) -> dict[int, str]:
    """Writing of one file, oldest first -> why it is not undone, "" where it is.

    From the newest on, each must have left what is there now: what was written in between stays, and all before it. A
    writing that was noted and never done, or that was taken back, has left what it found. One that is `purged`
    would bring purged text back.
    """
    reasons: dict[int, str] = {}
    why = ""
    for writing in reversed(chain):
        if not why and content not in (writing.after, writing.before):
            why = EDITED
        if not why and writing.seq in purged:
            why = PURGED_SINCE
        reasons[writing.seq] = why
        content = writing.before
    return reasons


# --- showing


def diff(rows: Rows, ident: str, *, among: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
    """What a dream did in these projects (None: in all) and in files, as JSON, in order.

    Of an action that a purge took away only the reason is left. CsmdError where there is no such dream.
    """
    dream = dreams.by_id(rows, ident)
    if dream is None:
        raise CsmdError(f"there is no dream {ident!r}", hint="csmd dream history")
    for change in dreams.changes(rows, dream.seq):
        if among is None or change.files or change.project_seq in among:
            yield _change_json(rows, change)


def _change_json(rows: Rows, change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "project": projects.name_of(rows, workspaces.merged_into(rows, change.project_seq) or change.project_seq),
        "reason": change.reason, "evidence": list(change.evidence), "at": change.at, "undone_at": change.undone_at,
        "touched": [
            {"item": row.was.memory_id, "before": _side_json(row.was), "after": _side_json(row.then), "kept": row.kept}
            for row in change.rows
        ],
        "files": [
            {"path": file.path, "diff": unified_diff(file.path, file.before, file.after), "kept": file.kept}
            for file in change.files
        ],
        "purged": not change.rows and not change.files,
    }  # fmt: skip


def _side_json(image: Before) -> dict[str, Any] | None:
    """A memory or candidate on one side of an action, None where it was not there; a candidate's tier is its status."""
    content = belief_changes.content_of(image)
    if not content:
        return None
    return {
        "text": str(content["text"]), "confidence": float(content["confidence"]),
        "tier": str(content.get("tier") or content.get("status", "")),
        "superseded_by": str(content.get("superseded_by", "")),
        "sources": len(content.get("sources") or content.get("evidence") or ()),
        "links": [f"{kind} {other}" for _, other, kind, *_ in belief_changes.outgoing_links(image)],
    }  # fmt: skip


def unified_diff(path: str, before: str | None, after: str | None) -> str:
    """A file's change as a unified diff; a file that is not there is /dev/null."""
    old, new = ("/dev/null" if text is None else path for text in (before, after))
    lines = difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), old, new, lineterm="")
    return "\n".join(lines)


# --- undoing


def undo(store: Store, ident: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, Undone]:
    """Undoes a dream and every later one; what has changed since keeps its newer value and is skipped."""
    yield from finish(store, home=home, now=now)
    undone = yield from undo_rows(store, ident, home=home, now=now, key=key)
    yield from finish(store, home=home, now=now)
    seqs = [dream.seq for dream in undone]
    items: dict[str, bool] = {}
    skipped: dict[str, Skipped] = {}
    for number, (dream_id, item, is_file, why) in enumerate(store.read(lambda rows: dreams.undo_results(rows, seqs))):
        items[item] = is_file
        if why or not item:
            skipped.setdefault(item or f"#{number}", Skipped(dream=dream_id, item=item, why=why or TAKEN_AWAY))
    history = {dream.id: dream for dream in store.read(partial(dreams.history, limit=dreams.ALL))}
    back = sorted(item for item in items if item and item not in skipped)
    return Undone(
        dreams=tuple(history[dream.id] for dream in undone),
        items=tuple(item for item in back if not items[item]),
        files=tuple(item for item in back if items[item]),
        skipped=tuple(skipped.values()),
    )


def undo_rows(store: Store, ident: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, list[Dream]]:
    """The first half of undoing: restores the rows and notes which files go back; returns the dreams, newest first."""
    undone = store.read(lambda rows: plan_undo(rows, ident))
    seqs = [dream.seq for dream in undone]
    paths = store.read(lambda rows: dreams.paths_of(rows, seqs))
    texts = {path: read_text(home / path) for path in paths}
    for seq in seqs:
        keys = store.read(partial(dreams.change_seqs, dream=seq))[::-1]
        for start in range(0, len(keys), BATCH):
            store.write(partial(_restore_rows, keys=keys[start : start + BATCH], now=now, key=key))
            yield
    for path in paths:
        store.write(partial(_mark_files, seqs=seqs, path=path, content=texts[path], now=now, key=key))
        yield
    store.write(lambda rows: dreams.set_states(rows, seqs, "undoing", now=now))
    return undone


def finish(store: Store, *, home: Path, now: str) -> Generator[None, None, int]:
    """The second half: restores the files of dreams that are being undone, also after a crash; returns how many dreams."""
    history = store.read(lambda rows: dreams.history(rows, limit=dreams.ALL))
    seqs = [dream.seq for dream in history if dream.state == "undoing"]
    if seqs:
        for path in store.read(lambda rows: dreams.paths_of(rows, seqs, undone_only=True)):
            _restore_file(store, home, seqs, path, now=now)
            yield
        store.write(lambda rows: dreams.set_states(rows, seqs, "undone", now=now))
    return len(seqs)


def _mark_files(rows: Rows, *, seqs: Sequence[int], path: str, content: str | None, now: str, key: bytes) -> None:
    """Notes which writings of a file go back."""
    chain, marks = dreams.chain_of(rows, seqs, path), tombstones.marks(rows, key)
    # Writings whose undoing would bring back what was purged.
    purged = [
        writing.seq for writing in chain if marks and writing.before is not None and clean(writing.before, marks)[1]
    ]
    why = why_files_stay(chain, content, purged)
    for writing in chain:
        dreams.mark_file(rows, writing, kept=why[writing.seq], now=now)


def _restore_rows(rows: Rows, *, keys: Sequence[int], now: str, key: bytes) -> None:
    for seq in keys:
        change = dreams.change(rows, seq)
        stays = _restore_action(rows, change, now=now, key=key)
        dreams.mark_rows(rows, change, stays, now=now)
        if not change.undone_at and any(not stays.get(row.seq) for row in change.rows):
            _note_undone(rows, change, now=now)


def _note_undone(rows: Rows, change: Change, *, now: str) -> None:
    """Notes that a lift or a question was undone on the memories it rested on, so that no dream does it again.

    For other actions the audit of what they changed tells.
    """
    if change.kind not in ("lift", "ask"):
        return
    pair = change.evidence[1::-1]  # older, newer
    is_lift = change.kind == "lift"
    for ident in change.evidence if is_lift else pair:
        if memories.by_id(rows, ident) is not None:
            note, after = (dreams.NOT_GENERALIZED, "") if is_lift else (dreams.NOT_ASKED, ":".join(pair))
            reason = "the dream that did was undone"
            belief_changes.record_change(rows, ident, note, "", after, reason, belief_changes.DREAM, now)


def _restore_action(rows: Rows, change: Change, *, now: str, key: bytes) -> dict[int, str]:
    """Restores what an action touched; returns row of the journal -> why it stays, "" where it went back."""
    touched = {row.was.memory_id: row for row in change.rows}
    was = {ident: belief_changes.content_of(row.was) for ident, row in touched.items()}
    then = {ident: belief_changes.content_of(row.then) for ident, row in touched.items()}
    is_now = {image.memory_id: belief_changes.content_of(image) for image in belief_changes.before_of(rows, touched)}
    why = {
        ident: why_not_undone(
            was[ident], then[ident], is_now[ident], _obstacle(rows, row, together=touched.keys(), key=key)
        )
        for ident, row in touched.items()
    }
    made = {ident: why.pop(ident) for ident, row in touched.items() if not row.was.state}
    stays = keep_together(made, why)
    # What was made goes last: until then others may stand aside for it.
    for ident in [*why, *made]:
        done_by_hand = is_now[ident] != then[ident] and is_back(was[ident], is_now[ident])
        if stays[ident] or done_by_hand:
            continue
        belief_changes.restore(rows, [(touched[ident].was, touched[ident].then)], at=now)
        memory = memories.by_id(rows, ident)
        if memory is not None and was_used(then[ident], is_now[ident]):
            # Its age begins again: that it was used was no dream's doing.
            used = replace(memory, used_at=str(is_now[ident]["used_at"]))
            memories.update_belief(rows, supersession.aged(rows, used))
    return {touched[ident].seq: words for ident, words in stays.items()}


def _obstacle(rows: Rows, row: ChangedRow, *, together: Collection[str], key: bytes) -> str:
    """Why a row cannot become what it was, "" for no reason; items of the same action go back `together`."""
    was, ident = belief_changes.content_of(row.was), row.was.memory_id
    if row.was.is_candidate:
        if PURGED in row.was.text + row.was.more:
            return PURGED_SINCE
        waited = bool(was) and was["status"] in candidates.WAITING
        return CROWDED if waited and candidates.is_waiting(rows, belief_changes.as_candidate(row.was)) else ""
    if not was:
        leaning = [other for other in dreams.represented_memories(rows, ident) if other not in together]
        return f"it represents {leaning[0]} since" if leaning else ""
    if PURGED in row.was.text:
        return PURGED_SINCE
    if tombstones.is_statement_forgotten(
        rows, row.was.text, correction=was["gate"] == "correction", authority=was["authority"],
        project=int(was["project_seq"]), at=str(was["created_at"]), key=key,
    ):  # fmt: skip
        return FORGOTTEN
    heir = str(was["superseded_by"])
    is_gone = bool(heir) and memories.by_id(rows, heir) is None
    return f"{heir}, which took its place before, is gone" if is_gone else ""


def _restore_file(store: Store, home: Path, seqs: Sequence[int], path: str, *, now: str) -> None:
    chain = store.read(lambda rows: dreams.chain_of(rows, seqs, path, undone_only=True))
    before, content = chain[0].before, read_text(home / path)
    # Lines that were forgotten since do not come back.
    was = before and store.read(
        lambda rows: stored_pages.without_forgotten(rows, before, path=path, key=store.hash_key)[0]
    )
    was = was and redact(was, Counter())  # nor what older rules let through
    # Somebody may have written there since it was decided that the file goes back.
    is_edited = content != was and any(why_files_stay(chain, content).values())
    if content != was and not is_edited:
        _write_text(home / path, was)

    def write(rows: Rows) -> None:
        if not is_edited:
            dreams.update_page_row(rows, path, was, now=now)
        for writing in chain if is_edited else ():
            dreams.mark_file(rows, writing, kept=EDITED, now=now)

    store.write(write)


def read_text(path: Path) -> str | None:
    """The text of a file of csmd's, None where there is none; "\\0" for a link and for what cannot be read."""
    raw = files.read_plain(path)
    return None if raw is None else raw.decode("utf-8", "replace")


def _write_text(path: Path, text: str | None) -> None:
    """Writes a file, or removes it where `text` is None; CsmdError where the disk does not take it."""
    try:
        if text is None:
            path.unlink()
        else:
            files.make_private(path.parent)
            files.write_atomic(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise CsmdError(
            f"{path} cannot be written: {error.strerror}", hint="make it writable: the rest is undone at the next start"
        ) from error
