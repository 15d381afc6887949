"""One file of the assistant's from what it is to what it is to be: planned, written, and planned anew where it changed.

A file in trouble stays as it is and keeps no other from being served: each has its own outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from csmd.cli import edited, entries, host_lock, record, settings
from csmd.cli.entries import Kind, Ours
from csmd.errors import CsmdError
from csmd.paths import Paths

#: How often a file is planned anew that somebody else writes all the time.
TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file before and after; with `trouble` it stays as it is. `what` is put in, `out` why the rest is not, for people."""

    path: Path
    what: str = ""
    out: tuple[str, ...] = ()
    kinds: tuple[Kind, ...]
    before: bytes | None = None
    after: bytes | None = None
    trouble: CsmdError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file: changed, as it should be, or left alone because of `trouble`. `what` is in it, `out` why the rest is not."""

    path: Path
    what: str = ""
    out: tuple[str, ...] = ()
    changed: bool = False
    trouble: CsmdError | None = None


def together(troubles: Sequence[CsmdError]) -> CsmdError:
    """One error for several."""
    first = troubles[0]
    return type(first)("; ".join(one.what for one in troubles), hint=first.hint) if len(troubles) > 1 else first


def shown(change: Change) -> str:
    """What is changed, for people; of a file that may hold others' keys only the lines themselves."""
    context = 0 if any(kind.shared for kind in change.kinds) else 3
    return edited.diff(change.before, change.after, change.path, context=context)


# --- plans: nothing is written


def merging(path: Path, kinds: Sequence[Kind], wanted: Ours) -> Change:
    """The file with our entries."""
    change = _planned(path, kinds, lambda before: entries.merged(before, kinds, wanted, str(path)))
    if change.after is None:
        return change
    what, out = entries.told(change.after, kinds, wanted, str(path))
    return replace(change, what=what, out=out)


def withdrawing(paths: Paths, path: Path, events: Sequence[str]) -> Change:
    """A recorded file without our hooks of these events; what somebody took out by hand stays out."""
    return _planned(
        path,
        recorded_kinds(paths, path),
        lambda before: before and settings.plan_withdrawal(before, paths.home, str(path), events=events),
    )


def removing(paths: Paths, path: Path) -> Change:
    """A recorded file as it was before install; where it was edited since, without our entries."""
    kinds, kept = recorded_kinds(paths, path), record.load(paths)["settings"][str(path)]
    return _planned(path, kinds, lambda before: edited.removal(before, kept, _remover(path, kinds, paths.home)))


def recorded_kinds(paths: Paths, path: Path) -> list[Kind]:
    """The kinds of entries that the record names for a file."""
    return entries.named(record.load(paths)["settings"][str(path)]["kinds"])


def _planned(path: Path, kinds: Sequence[Kind], make: Callable[[bytes | None], bytes | None]) -> Change:
    change = Change(path=path, kinds=tuple(kinds))
    try:
        before = edited.read(path)
        after = make(before)
        if after != before:
            edited.check(path)
    except CsmdError as error:
        return replace(change, trouble=error)
    return replace(change, before=before, after=after)


# --- writing


def written(path: Path, plan: Callable[[], Change], write: Callable[[Change], None]) -> Outcome:
    """Plans and writes one file; anew where somebody else wrote it meanwhile."""
    trouble: CsmdError | None = None
    for _ in range(TRIES):
        change = plan()
        if change.trouble is not None:
            return Outcome(path=path, trouble=change.trouble)
        try:
            write(change)
        except edited.ChangedMeanwhile as error:
            trouble = error
        except CsmdError as error:
            return Outcome(path=path, trouble=error)
        else:
            return Outcome(path=path, what=change.what, out=change.out, changed=change.before != change.after)
    return Outcome(path=path, trouble=trouble)


def put_in(paths: Paths, change: Change) -> None:
    """Writes a file that has our entries, and first how it is given back."""
    if change.after is None or change.after == change.before:
        return
    previous = record.load(paths)["settings"].get(str(change.path))
    kept = edited.entry(change.before, change.after, _remover(change.path, change.kinds, paths.home), previous)
    kept["kinds"] = [kind.name for kind in change.kinds]
    with record.noted(paths, change.path, kept, made=not change.path.parent.exists()):
        _apply(change)


def take_out(paths: Paths, change: Change) -> None:
    """Gives a file back and takes it out of the record; its directory goes if it was made for it and is empty."""
    _apply(change)
    known, folder = record.load(paths), change.path.parent
    if known["folders"].get(str(change.path)) and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    del known["settings"][str(change.path)]
    record.save(paths, known)


def _apply(change: Change) -> None:
    shared = any(kind.shared for kind in change.kinds) and change.before != change.after
    with host_lock.held(change.path) if shared else nullcontext():
        edited.apply(change.path, change.before, change.after)


def _remover(path: Path, kinds: Sequence[Kind], home: Path) -> edited.Remove:
    return lambda data: entries.removed(data, kinds, home, str(path))
