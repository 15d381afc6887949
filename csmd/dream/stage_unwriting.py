"""The files of dreams that are undone: they are written back after the rows, and at the next start where that was killed.

Whoever reads or writes the markdown calls `finish` first: until then a page may look edited that nobody has edited.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

from csmd.dream import undo as rule
from csmd.errors import CsmdError
from csmd.store import dreams, files, markdown_pages
from csmd.store.core import Store
from csmd.store.dreams import ChangedFile
from csmd.store.purged import Marks, clean
from csmd.store.sqlite import Rows

#: What a file reads as that is no plain file, or cannot be read.
UNREAD = "\0"


def finish(store: Store, *, home: Path, now: str) -> Generator[None, None, int]:
    """Gives the files back of what is being undone, also where that was killed, one by one; how many dreams are undone by it."""
    under_way = store.read(
        lambda rows: [one.seq for one in dreams.history(rows, limit=dreams.ALL) if one.state == "undoing"]
    )
    if not under_way:
        return 0
    for path in store.read(lambda rows: dreams.paths_of(rows, under_way, undone_only=True)):
        _give_back(store, home, under_way, path, now=now)
        yield

    def end(rows: Rows) -> None:
        for seq in under_way:
            dreams.set_state(rows, seq, "undone", now=now)

    store.write(end)
    return len(under_way)


def _give_back(store: Store, home: Path, keys: Sequence[int], path: str, *, now: str) -> None:
    chain = store.read(lambda rows: dreams.chain_of(rows, keys, path, undone_only=True))
    was, found = store.read(lambda rows: _known(rows, path, chain[0].before, key=store.hash_key)), text(home / path)
    # Since it was decided that they go back somebody may have written there.
    writings = [rule.Writing(seq=one.seq, before=one.before, after=one.after) for one in chain]
    edited = found != was and any(rule.unwritten(writings, found).values())
    if found != was and not edited:
        _write(home / path, was)

    def write(rows: Rows) -> None:
        if not edited:
            dreams.page_is(rows, path, was, now=now)
        for one in chain if edited else ():
            dreams.mark_file(rows, one, kept=rule.EDITED, now=now)

    store.write(write)


def _known(rows: Rows, path: str, said: str | None, *, key: bytes) -> str | None:
    """What a file was, without the lines that were forgotten since: these do not come back."""
    return said and markdown_pages.without_forgotten(rows, said, path=path, key=key)[0]


def writing(file: ChangedFile, marks: Marks) -> rule.Writing:
    """A writing as undoing looks at it; one that would bring back what was purged is none that can be undone."""
    held = bool(marks) and file.before is not None and bool(clean(file.before, marks)[1])
    return rule.Writing(seq=file.seq, before=file.before, after=file.after, purged=held)


def text(path: Path) -> str | None:
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
