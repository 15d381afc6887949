"""What a dream does, in its order: a table of steps, each of them a generator that stops after every batch.

Here each part of dreaming has its place; when, and who comes first, is dreaming.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from csmd.daemon import backups
from csmd.daemon.context import Context
from csmd.daemon.edited import Edited
from csmd.daemon.now import here, now_iso
from csmd.dream import daily, narrator, page_files, steps, undo
from csmd.dream import reselection as stage_reselection
from csmd.dream.actions import Fact, Kind, Phase
from csmd.errors import CsmdError, StoreError
from csmd.store import backup, dream_evidence, dreams, reselection
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows


@dataclass(frozen=True, slots=True)
class Night:
    """What the steps of one dream share; `now` and `here` say what time it is, `awaited` whether somebody asked for it.

    With `confirmed` a person has agreed to what it does.
    """

    context: Context
    dream: Dream
    edited: Edited
    awaited: bool = False
    confirmed: bool = False
    now: Callable[[], str] = now_iso
    here: daily.Here = here


Step = Callable[[Night], Iterator[None]]
#: Actions of old dreams that one write forgets, with the pages that they wrote: hooks wait behind it.
FORGOTTEN = 50


#: Who counts facts in one project, for a plan to go by: (rows, the project's row key, now).
COUNTING: tuple[Callable[[Rows, int, str], Sequence[Fact]], ...] = (
    lambda rows, project, now: narrator.facts(rows, project, now=now),
)


def counted(read: steps.Read, *, now: str) -> steps.Steps[steps.Facts]:
    """What is counted over journal and packets, by project."""
    found: dict[int, Sequence[Fact]] = {}
    for place in read(dream_evidence.places):
        found[place.seq] = read(partial(_counted, project=place.seq, now=now))
        yield
    return found


def _counted(rows: Rows, project: int, now: str) -> Sequence[Fact]:
    return [fact for count in COUNTING for fact in count(rows, project, now)]


def _read_edits(night: Night) -> Iterator[None]:
    if night.awaited:
        yield from night.edited.read_at_once()
    else:
        night.edited.read_settled()
    yield


def _write_pages(night: Night) -> Generator[None]:
    store, now = night.context.store, night.now()
    found = yield from counted(store.read, now=now)
    facts = [fact for here in found.values() for fact in here]
    directory = night.context.config.paths.memory
    for _ in page_files.write(store, directory, dream_seq=night.dream.seq, now=now, facts=facts):
        yield  # page by page: others come first, and whoever lost the lock writes no more
    yield


def rewritten(context: Context, edited: Edited, paths: Sequence[str]) -> Generator[None]:
    """Reads the edits of pages, by their paths below the home, and writes these pages as they should be now."""
    if not paths:
        return
    yield from edited.read_at_once()
    store, paths_of = context.store, context.config.paths
    found = yield from counted(store.read, now=now_iso())
    facts = [fact for here in found.values() for fact in here]
    only = {
        str((paths_of.home / path).relative_to(paths_of.memory))
        for path in paths
        if path.startswith(f"{paths_of.memory.name}/")
    }
    for _ in page_files.write(store, paths_of.memory, dream_seq=0, now=now_iso(), facts=facts, only=only):
        yield


def _consolidate(night: Night) -> Generator[None]:
    store, now = night.context.store, night.now()
    facts = yield from counted(store.read, now=now)
    promoting = night.context.config.settings.stages_promote
    yield from steps.batches(store, night.dream, now=now, key=store.hash_key, facts=facts, promoting=promoting)


def _archive_days(night: Night) -> Iterator[None]:
    paths, seq, store = night.context.config.paths, night.dream.seq, night.context.store
    yield
    for _ in daily.archive(store, paths.home, paths.memory, seq, now=night.now(), here=night.here):
        yield


def _forget_old(night: Night) -> Iterator[None]:
    store, settings = night.context.store, night.context.config.settings
    known = store.read(lambda rows: dreams.history(rows, limit=dreams.ALL))
    old = undo.outlived(known, now=night.now(), keep_days=settings.dream_keep_days, every_h=settings.dream_every_h)
    while store.write(lambda rows: dreams.forget(rows, old, most=FORGOTTEN)):
        yield
    yield


def _choose_anew(night: Night) -> Generator[None]:
    """A copy of the database first; where most memories would be archived, nothing is done and a person is asked."""
    store, database = night.context.store, night.context.config.paths.database
    if not backup.has_room(database):
        raise StoreError(
            "old memories are not chosen anew: there is no room for a backup", hint="free some space on that disk"
        )
    backups.make(night.context, None)
    yield
    found = yield from stage_reselection.planned(store.read, key=store.hash_key)
    if found.needs_person and not night.confirmed:
        store.write(reselection.settle)
        raise CsmdError(
            f"choosing old memories anew would archive {len(found.archived)} of {len(found.kept) + len(found.archived)}",
            hint="`csmd distill --again --dry-run` shows them; `csmd distill --again --yes` does it",
        )
    yield from stage_reselection.batches(store, night.dream, found, now=night.now(), key=store.hash_key)
    store.write(reselection.settle)


#: Why a dream chooses old memories anew, and what such a one does in place of STEPS.
AGAIN = "choosing old memories anew"
AGAIN_STEPS: Mapping[str, Step] = {
    "reading what people edited": _read_edits,
    AGAIN: _choose_anew,
    "writing pages": _write_pages,
}
#: What a dream does, in this order: a name that people are shown, and a generator that stops after each batch. What
#: people edited is read back before anything is planned, and what is changed goes into the markdown before the last step.
STEPS: Mapping[str, Step] = {
    "reading what people edited": _read_edits,
    "consolidating": _consolidate,
    "writing pages": _write_pages,
    "archiving days": _archive_days,
    "forgetting old dreams": _forget_old,
}
#: The phase of a dream in which an action is done.
PHASES: Mapping[Kind, Phase] = {
    "merge": "consolidate", "strengthen": "consolidate", "supersede": "consolidate", "ask": "consolidate", "lift": "consolidate", "promote": "consolidate",
    "raise": "consolidate", "archive": "prune",
}  # fmt: skip
