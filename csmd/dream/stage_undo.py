"""Undo's hands: dreams become what was before them, newest first, a few actions to a write, and then the files.

Each action goes back whole, in steps of some milliseconds. Until all have, the dreams stand as they stood: where undoing
was killed, the same undo goes on, and finds those that are back already. Which files go back is decided when the rows
are; `stage_unwriting.finish` writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from csmd.believe.stage import aged
from csmd.dream import diff as shown
from csmd.dream import stage_unwriting as unwriting
from csmd.dream import undo as rule
from csmd.errors import CsmdError
from csmd.store import (
    before_images,
    belief_changes,
    candidates,
    dream_evidence,
    dreams,
    memories,
    projects,
    tombstones,
    workspaces,
)
from csmd.store import dreams as dream_journal
from csmd.store.before_images import Before
from csmd.store.core import Store
from csmd.store.dreams import Change, ChangedRow, Dream
from csmd.store.purged import PURGED
from csmd.store.sqlite import Rows

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


def diff(rows: Rows, ident: str, *, among: Sequence[int] | None = None) -> Iterator[shown.Did]:
    """What a dream did, in order, in these projects (None: in all) and in files; CsmdError where there is no such dream."""
    dream = dreams.by_id(rows, ident)
    if dream is None:
        raise CsmdError(f"there is no dream {ident!r}", hint="csmd dream history")
    for change in dream_journal.changes(rows, dream.seq):
        if among is None or change.files or change.project_seq in among:
            yield _did(change, _place(rows, change.project_seq))


def _place(rows: Rows, project: int) -> str:
    """The name of a project, or of the one that it was merged into since; "" for none."""
    return projects.name_of(rows, workspaces.merged_into(rows, project) or project)


def _did(change: Change, project: str) -> shown.Did:
    return shown.Did(
        kind=change.kind, project=project, reason=change.reason, evidence=change.evidence, at=change.at,
        undone_at=change.undone_at,
        touched=tuple(
            shown.Touched(item=row.was.memory_id, before=_side(row.was), after=_side(row.then), kept=row.kept)
            for row in change.rows
        ),
        files=tuple(
            shown.Written(path=one.path, diff=shown.unified(one.path, one.before, one.after), kept=one.kept)
            for one in change.files
        ),
    )  # fmt: skip


def _side(one: Before) -> shown.Side | None:
    return shown.side(before_images.seen(one), tuple(f"{kind} {other}" for kind, other in before_images.leads_to(one)))


def undoing(rows: Rows, ident: str) -> list[Dream]:
    """The dreams that undoing one would undo, the newest first; CsmdError where it cannot be."""
    known = {dream.id: dream for dream in dreams.history(rows, limit=dreams.ALL)}
    found = [known[one] for one in rule.newest_first([*known.values()], ident)]
    if not any(dream_journal.change_counts(rows, dream.seq) for dream in found):
        raise CsmdError(
            f"nothing of the dream {ident} can be undone: it changed nothing, or its journal is not kept any more",
            hint="csmd config get dream.keep_days",
        )
    return found


# --- undoing


def undo(store: Store, ident: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, Undone]:
    """Undoes a dream and every one since; what was changed since keeps its newer value and is told."""
    yield from unwriting.finish(store, home=home, now=now)
    found = yield from rows_back(store, ident, home=home, now=now, key=key)
    yield from unwriting.finish(store, home=home, now=now)
    return (yield from _told(store, found))


def rows_back(store: Store, ident: str, *, home: Path, now: str, key: bytes) -> Generator[None, None, list[Dream]]:
    """The first half of undoing: the rows, and which files are to go back; the dreams, newest first. `stage_unwriting.finish` is the other."""
    found = store.read(lambda rows: undoing(rows, ident))
    seqs = [dream.seq for dream in found]
    paths = store.read(lambda rows: dream_journal.paths_of(rows, seqs))
    texts = {path: unwriting.text(home / path) for path in paths}
    for seq in seqs:
        keys = store.read(partial(dream_journal.keys, dream=seq))[::-1]
        for start in range(0, len(keys), BATCH):
            store.write(partial(_rows_back, keys=keys[start : start + BATCH], now=now, key=key))
            yield
    for path in paths:
        store.write(partial(_file_back, dreams=seqs, path=path, content=texts[path], now=now, key=key))
        yield

    def settle(rows: Rows) -> None:
        for seq in seqs:
            dream_journal.set_state(rows, seq, "undoing", now=now)

    store.write(settle)
    return found


def _file_back(rows: Rows, *, dreams: Sequence[int], path: str, content: str | None, now: str, key: bytes) -> None:
    """Notes which writings of a file go back."""
    chain, marks = dream_journal.chain_of(rows, dreams, path), tombstones.marks(rows, key)
    why = rule.unwritten([unwriting.writing(one, marks) for one in chain], content)
    for one in chain:
        dream_journal.mark_file(rows, one, kept=why[one.seq], now=now)


def _rows_back(rows: Rows, *, keys: Sequence[int], now: str, key: bytes) -> None:
    for seq in keys:
        change = dream_journal.change(rows, seq)
        kept = _back(rows, change, now=now, key=key)
        dream_journal.mark_rows(rows, change, kept, now=now)
        if not change.undone_at and any(not kept.get(row.seq) for row in change.rows):
            _not_again(rows, change, now=now)


def _not_again(rows: Rows, change: Change, *, now: str) -> None:
    """Notes on what an action rested on that it was undone, where no audit of what it changed tells: no dream does it again."""
    if change.kind == "lift":
        about, note, after = change.evidence, dream_evidence.NOT_LIFTED, ""
    elif change.kind == "ask":
        about = change.evidence[1::-1]  # the newer comes first there
        note, after = dream_evidence.NOT_ASKED, ":".join(about)
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
    is_now = {one.memory_id: one for one in before_images.before_of(rows, of)}
    why = {
        ident: rule.why_kept(
            before_images.seen(row.was),
            before_images.seen(row.then),
            before_images.seen(is_now[ident]),
            _around(rows, row, beside=of.keys(), key=key),
        )
        for ident, row in of.items()
    }
    made = {ident: why.pop(ident) for ident, row in of.items() if not row.was.state}
    stays = rule.together(made, why)
    # What was made goes last: until then others may stand aside for it.
    for ident in [*(one for one in of if one not in made), *made]:
        was, then, here = of[ident].was, of[ident].then, is_now[ident]
        if stays[ident] or (
            before_images.seen(here) != before_images.seen(then)
            and rule.is_back(before_images.seen(was), before_images.seen(here))
        ):
            continue  # it stays, or somebody has done it by hand
        before_images.take_back(rows, was, then, at=now)
        if rule.was_used(before_images.seen(then), before_images.seen(here)):
            _use_again(rows, here)
    return {of[ident].seq: words for ident, words in stays.items()}


def _around(rows: Rows, row: ChangedRow, *, beside: Collection[str], key: bytes) -> rule.Around:
    """What else is so where a row is to become what it was; what is `beside` it goes back with it."""
    was, ident = before_images.seen(row.was), row.was.memory_id
    if row.was.is_candidate:
        crowded = bool(was) and was["status"] in candidates.WAITING
        return rule.Around(
            purged=PURGED in row.was.text + row.was.more,
            crowded=crowded and candidates.is_waiting(rows, before_images.as_candidate(row.was)),
        )
    if not was:
        return rule.Around(leaning=[one for one in dream_journal.leaning(rows, ident) if one not in beside])
    heir = str(was["superseded_by"])
    return rule.Around(
        forgotten=tombstones.keeps_out(
            rows,
            row.was.text,
            correction=was["gate"] == "correction",
            authority=was["authority"],
            project=int(was["project_seq"]),
            at=str(was["created_at"]),
            key=key,
        ),
        purged=PURGED in row.was.text,
        missing=heir if heir and memories.by_id(rows, heir) is None else "",
    )


def _use_again(rows: Rows, used: Before) -> None:
    """Has the age of a memory begin again when it was used: that was no dream's doing."""
    memory = memories.by_id(rows, used.memory_id)
    if memory is not None:
        memories.update_belief(rows, aged(rows, replace(memory, used_at=str(before_images.seen(used)["used_at"]))))


def _told(store: Store, found: Sequence[Dream]) -> Generator[None, None, Undone]:
    """What undoing came to, as it stands in the journal."""
    back: dict[str, str] = {}
    kept: dict[str, Kept] = {}
    paths: dict[str, bool] = {}
    for dream in found:
        for seq in store.read(partial(dream_journal.keys, dream=dream.seq))[::-1]:
            change = store.read(partial(dream_journal.change, seq=seq))
            for row in change.rows:
                back.setdefault(row.was.memory_id, row.kept)
                if row.kept:
                    kept.setdefault(row.was.memory_id, Kept(dream=dream.id, item=row.was.memory_id, why=row.kept))
            for file in change.files:
                paths[file.path] = paths.get(file.path, True) and not file.kept
                if file.kept:
                    kept.setdefault(file.path, Kept(dream=dream.id, item=file.path, why=file.kept))
            if not change.rows and not change.files:
                kept[f"#{change.seq}"] = Kept(dream=dream.id, item="", why=rule.TAKEN_AWAY)
            yield
    again = {dream.id: dream for dream in store.read(partial(dreams.history, limit=dreams.ALL))}
    return Undone(
        dreams=tuple(again[dream.id] for dream in found),
        items=tuple(sorted(ident for ident in back if ident not in kept)),
        files=tuple(sorted(path for path, whole in paths.items() if whole)),
        kept=tuple(kept.values()),
    )
