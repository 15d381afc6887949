"""Shows what a dream changed and undoes it: rows and files."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from csmd.errors import CsmdError
from csmd.memory.supersession import aged
from csmd.privacy.fingerprints import PURGED, Marks, clean
from csmd.store import (
    belief_changes,
    candidates,
    dreams,
    files,
    markdown_pages,
    memories,
    projects,
    tombstones,
    workspaces,
)
from csmd.store.belief_changes import Before
from csmd.store.core import Store
from csmd.store.dreams import Change, ChangedFile, ChangedRow, Dream
from csmd.store.sqlite import Rows

#: The states of dreams that can be undone: what a killed or cancelled one did is in its journal, too.
UNDOABLE = ("done", "failed", "cancelled")
#: So many days two dreams may well be apart: a week without five new sessions is no rare one.
APART_DAYS = 7
#: What a use changes of a memory: its age begins again. That is no change of what is believed.
USE = frozenset({"used_at", "hot_until", "warm_until", "archive_at", "version"})
#: What counts the changes of a row, and says nothing by itself.
NUMBERS = frozenset({"version", "updated_at", "seq"})
#: What changes when days come to light or projects are merged and split: a memory goes along, and is the same.
PLACE = frozenset({"project_seq", "origin_seq", "hot_until", "warm_until", "archive_at"})
#: What is other than after the action -> what is said of that, the most telling first.
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


def find_dreams_to_undo(known: Sequence[Dream], ident: str) -> list[Dream]:
    """The dreams to be undone for one to be: every one since that stands, the newest first, and that one.

    CsmdError where it cannot be undone.
    """
    wanted = next((dream for dream in known if dream.id == ident), None)
    if wanted is None:
        raise CsmdError(f"there is no dream {ident!r}", hint="csmd dream history")
    if any(dream.state == "running" for dream in known):
        raise CsmdError("a dream is under way: what it does cannot be told yet", hint="csmd dream status")
    if wanted.state not in UNDOABLE:
        raise CsmdError(f"the dream {ident} is undone already", hint=f"csmd dream diff {ident}")
    since = [dream for dream in known if dream.seq >= wanted.seq and dream.state in UNDOABLE]
    return sorted(since, key=lambda dream: dream.seq, reverse=True)


def find_outlived(known: Sequence[Dream], *, now: str, keep_days: int, every_h: int) -> list[int]:
    """The dreams that are older than their journal is kept, by row key.

    Between two dreams, and since the last, no more counts than they may well be apart: a clock that is set a year ahead
    makes none of them a year older, and where nobody was at work for months, nothing was forgotten at the first dream.
    """
    most = max(timedelta(days=APART_DAYS), 2 * timedelta(hours=every_h))
    found, age, later = [], timedelta(0), datetime.fromisoformat(now)
    for dream in sorted(known, key=lambda dream: dream.seq, reverse=True):
        begun = datetime.fromisoformat(dream.begun_at)
        age, later = age + min(max(later - begun, timedelta(0)), most), begun
        if age > timedelta(days=keep_days):
            found.append(dream.seq)
    return found


def is_back(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a row is what it was, whatever was done to it in between."""
    return not _other(was, now) - NUMBERS and bool(was) == bool(now)


def was_used(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a session has made use of a memory, and nothing else has happened to it."""
    other = _other(then, now)
    return "used_at" in other and other <= USE | PLACE


def why_kept(was: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any], obstacle: str = "") -> str:
    """Why a row stays as it is now, "" where it becomes what it was before the action that left it as it was `then`.

    `obstacle` is what else is in the way of that.
    """
    if is_back(was, now):
        return ""
    if then and not now:
        return GONE
    other = _other(then, now) - PLACE
    if not obstacle and other and not (was_used(then, now) and was and not was.get("superseded_by")):
        return next((words for name, words in WHY if name in other), CHANGED)
    return obstacle


def keep_together(made: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """What of an action stays: where something that it `made` has to stay, all of it does.

    Both are id -> why, "" for what goes back; a half-undone promotion would be done again.
    """
    stays = next((ident for ident, why in made.items() if why), "")
    if not stays:
        return {**kept, **made}
    return {ident: why or f"{stays}, which was made of it, stays" for ident, why in {**kept, **made}.items()}


def _other(one: Mapping[str, Any], another: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name in {**one, **another} if one.get(name) != another.get(name))


# --- files


def why_files_stay(chain: Sequence[ChangedFile], content: str | None, purged: Collection[int] = ()) -> dict[int, str]:
    """The writings of one file, the oldest first -> why each is not undone, "" for those that are.

    From the newest on each must have left what is there now: what somebody wrote in between stays, and what is below.
    One that is noted and was never done (the daemon was killed before it was), or that somebody has taken back by hand,
    has left what it found. Those that are `purged` would bring back what is.
    """
    found: dict[int, str] = {}
    stays = ""
    for one in reversed(chain):
        if not stays and content not in (one.after, one.before):
            stays = EDITED
        if not stays and one.seq in purged:
            stays = PURGED_SINCE
        found[one.seq] = stays
        content = one.before
    return found


def unified_diff(path: str, before: str | None, after: str | None) -> str:
    """A file's change as people read it, with the lines around it; a file that is not there is /dev/null."""
    lines = difflib.unified_diff(
        (before or "").splitlines(),
        (after or "").splitlines(),
        fromfile=path if before is not None else "/dev/null",
        tofile=path if after is not None else "/dev/null",
        lineterm="",
    )
    return "\n".join(lines)


#: Actions that one write takes back: hooks wait behind it.
BATCH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What undoing has left as it is: a memory, candidate or path of a dream ("" for an action that a purge took away)."""

    dream: str
    item: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What undoing came to: the dreams, newest first, the memories and candidates and the files that are what they were."""

    dreams: tuple[Dream, ...]
    items: tuple[str, ...]
    files: tuple[str, ...]
    kept: tuple[Kept, ...]


# --- what is told


def diff(rows: Rows, ident: str, *, among: Sequence[int] | None = None) -> Iterator[dict[str, Any]]:
    """What a dream did, as JSON knows it, in order, in these projects (None: in all) and in files.

    Of an action that a purge took away nothing is left but its reason. CsmdError where there is no such dream.
    """
    dream = dreams.by_id(rows, ident)
    if dream is None:
        raise CsmdError(f"there is no dream {ident!r}", hint="csmd dream history")
    for change in dreams.changes(rows, dream.seq):
        if among is None or change.files or change.project_seq in among:
            yield _told_of(rows, change)


def _told_of(rows: Rows, change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "project": projects.name_of(rows, workspaces.merged_into(rows, change.project_seq) or change.project_seq),
        "reason": change.reason, "evidence": list(change.evidence), "at": change.at, "undone_at": change.undone_at,
        "touched": [
            {"item": one.was.memory_id, "before": _side(one.was), "after": _side(one.then), "kept": one.kept}
            for one in change.rows
        ],
        "files": [
            {"path": one.path, "diff": unified_diff(one.path, one.before, one.after), "kept": one.kept}
            for one in change.files
        ],
        "purged": not change.rows and not change.files,
    }  # fmt: skip


def _side(image: Before) -> dict[str, Any] | None:
    """A memory or candidate on one side of an action, None where it was not there; a candidate's tier is its status."""
    seen = belief_changes.content_of(image)
    if not seen:
        return None
    return {
        "text": str(seen["text"]), "confidence": float(seen["confidence"]),
        "tier": str(seen.get("tier") or seen.get("status", "")), "superseded_by": str(seen.get("superseded_by", "")),
        "sources": len(seen.get("sources") or seen.get("evidence") or ()),
        "links": [f"{kind} {other}" for _, other, kind, *_ in belief_changes.outgoing_links(image)],
    }  # fmt: skip


def plan_undo(rows: Rows, ident: str) -> list[Dream]:
    """The dreams that undoing one would undo, the newest first; CsmdError where it cannot be."""
    found = find_dreams_to_undo(dreams.history(rows, limit=dreams.ALL), ident)
    if not any(dreams.change_counts(rows, dream.seq) for dream in found):
        raise CsmdError(
            f"nothing of the dream {ident} can be undone: it changed nothing, or its journal is not kept any more",
            hint="csmd config get dream.keep_days",
        )
    return found


# --- undoing


def undo(store: Store, ident: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, Undone]:
    """Undoes a dream and every one since; what was changed since keeps its newer value and is told."""
    yield from finish(store, home=home, now=now)
    found = yield from undo_rows(store, ident, home=home, now=now, key=key)
    yield from finish(store, home=home, now=now)
    return (yield from _told(store, found))


def undo_rows(store: Store, ident: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, list[Dream]]:
    """The first half of undoing: the rows, and which files are to go back; the dreams, newest first. `finish` is the other."""
    found = store.read(lambda rows: plan_undo(rows, ident))
    seqs = [dream.seq for dream in found]
    paths = store.read(lambda rows: dreams.paths_of(rows, seqs))
    texts = {path: read_text(home / path) for path in paths}
    for seq in seqs:
        keys = store.read(partial(dreams.change_seqs, dream=seq))[::-1]
        for start in range(0, len(keys), BATCH):
            store.write(partial(_rows_back, keys=keys[start : start + BATCH], now=now, key=key))
            yield
    for path in paths:
        store.write(partial(_file_back, seqs=seqs, path=path, content=texts[path], now=now, key=key))
        yield
    store.write(partial(_set_states, seqs=seqs, state="undoing", now=now))
    return found


def _set_states(rows: Rows, *, seqs: Sequence[int], state: str, now: str) -> None:
    for seq in seqs:
        dreams.set_state(rows, seq, state, now=now)


def _file_back(rows: Rows, *, seqs: Sequence[int], path: str, content: str | None, now: str, key: bytes) -> None:
    """Notes which writings of a file go back."""
    chain, marks = dreams.chain_of(rows, seqs, path), tombstones.marks(rows, key)
    why = why_files_stay(chain, content, [one.seq for one in chain if _holds_purged(one, marks)])
    for one in chain:
        dreams.mark_file(rows, one, kept=why[one.seq], now=now)


def _rows_back(rows: Rows, *, keys: Sequence[int], now: str, key: bytes) -> None:
    for seq in keys:
        change = dreams.change(rows, seq)
        kept = _back(rows, change, now=now, key=key)
        dreams.mark_rows(rows, change, kept, now=now)
        if not change.undone_at and any(not kept.get(row.seq) for row in change.rows):
            _not_again(rows, change, now=now)


def _not_again(rows: Rows, change: Change, *, now: str) -> None:
    """Notes on what an action rested on that it was undone, where no audit of what it changed tells: no dream does it again."""
    if change.kind == "lift":
        about, note, after = change.evidence, dreams.NOT_GENERALIZED, ""
    elif change.kind == "ask":
        about = change.evidence[1::-1]  # the newer comes first there
        note, after = dreams.NOT_ASKED, ":".join(about)
    else:
        return
    for ident in about:
        if memories.by_id(rows, ident) is not None:
            belief_changes.note(
                rows, ident, note, "", after, "the dream that did was undone", belief_changes.DREAM, now
            )


def _back(rows: Rows, change: Change, *, now: str, key: bytes) -> dict[int, str]:
    """Makes what an action touched what it was; row of the journal -> why that stays as it is, "" for what does not."""
    of = {row.was.memory_id: row for row in change.rows}
    now_images = {image.memory_id: image for image in belief_changes.before_of(rows, of)}
    here = {ident: belief_changes.content_of(image) for ident, image in now_images.items()}
    why = {
        ident: why_kept(
            belief_changes.content_of(row.was), belief_changes.content_of(row.then), here[ident],
            _obstacle(rows, row, beside=of.keys(), key=key),
        )
        for ident, row in of.items()
    }  # fmt: skip
    made = {ident: why.pop(ident) for ident, row in of.items() if not row.was.state}
    stays = keep_together(made, why)
    # What was made goes last: until then others may stand aside for it.
    for ident in [*(one for one in of if one not in made), *made]:
        row, then = of[ident], belief_changes.content_of(of[ident].then)
        done_by_hand = here[ident] != then and is_back(belief_changes.content_of(row.was), here[ident])
        if stays[ident] or done_by_hand:
            continue
        belief_changes.revert_change(rows, row.was, row.then, at=now)
        memory = memories.by_id(rows, ident)
        if memory is not None and was_used(then, here[ident]):
            # Its age begins again: that it was used was no dream's doing.
            memories.update_belief(rows, aged(rows, replace(memory, used_at=str(here[ident]["used_at"]))))
    return {of[ident].seq: words for ident, words in stays.items()}


def _obstacle(rows: Rows, row: ChangedRow, *, beside: Collection[str], key: bytes) -> str:
    """What is in the way of a row becoming what it was, "" for nothing; what is `beside` it goes back with it."""
    was, ident = belief_changes.content_of(row.was), row.was.memory_id
    if row.was.is_candidate:
        if PURGED in row.was.text + row.was.more:
            return PURGED_SINCE
        waited = bool(was) and was["status"] in candidates.WAITING
        return CROWDED if waited and candidates.is_waiting(rows, belief_changes.as_candidate(row.was)) else ""
    if not was:
        leaning = [one for one in dreams.represented_memories(rows, ident) if one not in beside]
        return f"it stands for {leaning[0]} since" if leaning else ""
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


def _told(store: Store, found: Sequence[Dream]) -> Generator[None, None, Undone]:
    """What undoing came to, as it stands in the journal."""
    back: dict[str, str] = {}
    kept: dict[str, Kept] = {}
    paths: dict[str, bool] = {}
    for dream in found:
        for seq in store.read(partial(dreams.change_seqs, dream=dream.seq))[::-1]:
            change = store.read(partial(dreams.change, seq=seq))
            for row in change.rows:
                back.setdefault(row.was.memory_id, row.kept)
                if row.kept:
                    kept.setdefault(row.was.memory_id, Kept(dream=dream.id, item=row.was.memory_id, why=row.kept))
            for file in change.files:
                paths[file.path] = paths.get(file.path, True) and not file.kept
                if file.kept:
                    kept.setdefault(file.path, Kept(dream=dream.id, item=file.path, why=file.kept))
            if not change.rows and not change.files:
                kept[f"#{change.seq}"] = Kept(dream=dream.id, item="", why=TAKEN_AWAY)
            yield
    again = {dream.id: dream for dream in store.read(partial(dreams.history, limit=dreams.ALL))}
    return Undone(
        dreams=tuple(again[dream.id] for dream in found),
        items=tuple(sorted(ident for ident in back if ident not in kept)),
        files=tuple(sorted(path for path, whole in paths.items() if whole)),
        kept=tuple(kept.values()),
    )


#: What a file reads as that is no plain file, or cannot be read.
UNREAD = "\0"


def finish(store: Store, *, home: Path, now: str) -> Generator[None, None, int]:
    """Gives the files back of what is being undone, also where that was killed, one by one; how many dreams are undone by it."""
    known = store.read(lambda rows: dreams.history(rows, limit=dreams.ALL))
    seqs = [dream.seq for dream in known if dream.state == "undoing"]
    if seqs:
        for path in store.read(lambda rows: dreams.paths_of(rows, seqs, undone_only=True)):
            _give_back(store, home, seqs, path, now=now)
            yield
        store.write(partial(_set_states, seqs=seqs, state="undone", now=now))
    return len(seqs)


def _give_back(store: Store, home: Path, seqs: Sequence[int], path: str, *, now: str) -> None:
    chain = store.read(lambda rows: dreams.chain_of(rows, seqs, path, undone_only=True))
    before, found = chain[0].before, read_text(home / path)
    # The lines that were forgotten since do not come back.
    was = before and store.read(
        lambda rows: markdown_pages.without_forgotten(rows, before, path=path, key=store.hash_key)[0]
    )
    # Since it was decided that they go back somebody may have written there.
    edited = found != was and any(why_files_stay(chain, found).values())
    if found != was and not edited:
        _write(home / path, was)

    def write(rows: Rows) -> None:
        if not edited:
            dreams.update_page_row(rows, path, was, now=now)
        for one in chain if edited else ():
            dreams.mark_file(rows, one, kept=EDITED, now=now)

    store.write(write)


def _holds_purged(file: ChangedFile, marks: Marks) -> bool:
    """Whether undoing a writing would bring back what was purged."""
    return bool(marks) and file.before is not None and bool(clean(file.before, marks)[1])


def read_text(path: Path) -> str | None:
    """What a file of csmd's holds, None where there is none; what cannot be read as one reads as nothing csmd wrote."""
    try:
        if path.is_symlink():
            return UNREAD
        with files.open_regular(path) as file:
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError:
        return UNREAD


def _write(path: Path, wanted: str | None) -> None:
    """Makes a file what it was, or removes it; CsmdError where the disk does not take it."""
    try:
        if wanted is None:
            path.unlink()
        else:
            files.make_private(path.parent)
            files.write_atomic(path, wanted.encode("utf-8", "replace"))
    except OSError as error:
        raise CsmdError(
            f"{path} cannot be written: {error.strerror}", hint="make it writable: the rest is undone at the next start"
        ) from error
