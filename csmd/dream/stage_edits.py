"""Reads back what people did to the pages: their wording takes a memory's place, their lines are remembered.

A line is the user's where no call of a tool that may have written its page was recorded since csmd last wrote or read
it; else an assistant may have written it, and it waits for a person. A line that is gone is asked about, and the memory
stays. A page that lost too much at once is put down whole beside itself; a file that cannot be read is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from csmd.capture.memdir import INDEX
from csmd.dream import edits, lines, stage_pages, stage_standing
from csmd.dream.edits import Edits
from csmd.dream.lines import Read
from csmd.dream.pages import Place
from csmd.dream.stage_taking import Seen, Taking
from csmd.pauses import Pauses
from csmd.store import files, markdown_pages, tombstones
from csmd.store.core import Store
from csmd.store.markdown_pages import PageRow
from csmd.store.purged import Marks
from csmd.store.sqlite import Rows

#: Where pages lie, and more files than anybody has there.
PLACES = ("", "projects", "topics")
MOST_NAMES = 2000
NEVER_AWAY = Pauses()


@dataclass(slots=True)
class _Page:
    """One page as it stands on the disk: its base, what it says now, and what is in the way."""

    row: PageRow
    text: str = ""
    is_there: bool = False
    problem: str = ""
    new: Read = field(default_factory=Read)
    base: Read = field(default_factory=Read)


def step(store: Store, directory: Path, *, now: str, key: bytes, pauses: Pauses = NEVER_AWAY) -> int:
    """Reads what is other in the pages than csmd knows; how many edits were taken in, 0 for none.

    Where csmd looked away since it knew a page (`pauses`), or the clock was set back, nobody can say who edited it. Each page is one transaction. OSError where the disk does not take a page that is to be kept beside.
    """
    known = store.read(markdown_pages.pages)
    where = {place.path: place for place in store.read(stage_standing.places).values()}
    purged = store.read(lambda rows: tombstones.marks(rows, key))
    found = {path: _look(directory, path, row, purged) for path, row in _watched(directory, known, where).items()}
    if known and not any(page.is_there for page in found.values()):
        store.write(lambda rows: _begin_anew(rows, known.values()))
        return 0
    other = [path for path, page in found.items() if _is_other(page, directory)]
    if not other:
        return 0
    done = edits.edits(
        {path: page.base for path, page in found.items() if page.row.text or page.row.also},
        {path: page.base if page.problem else page.new for path, page in found.items()},
    )
    total = 0
    for path in other:
        known_at = found[path].row.at
        unheard = bool(known_at) and (known_at > now or pauses.touches(known_at, now))
        total += _take_in(store, directory, found, path, done[path], where, now=now, key=key, unheard=unheard)
    return total


def told(rows: Rows, directory: Path, *, key: bytes) -> dict[str, Any]:
    """What there is to say of the pages: lines asked about, pages restored or not read, copies, edits not read yet."""
    known, purged = markdown_pages.pages(rows), tombstones.marks(rows, key)
    asked = Counter(path for _, path in markdown_pages.asked_about(rows))
    # What is told is text: a name need not be.
    paths = (path.relative_to(directory).as_posix() for place in PLACES for path in _names(directory / place))
    names = [path.encode("utf-8", "replace").decode() for path in paths]
    edited = [
        path for path, row in known.items()
        if not (row.held or row.problem) and _is_edited(stage_pages.content(directory / path), row, purged)
    ]  # fmt: skip
    return {
        "asked": [{"page": path, "lines": number} for path, number in sorted(asked.items())],
        "restored": [{"page": row.path, "whole": row.held} for row in known.values() if row.held],
        "unread": [{"page": row.path, "why": row.problem} for row in known.values() if row.problem],
        "copies": edits.copies(names, known),
        "edited": edited,
    }


def _names(place: Path) -> list[Path]:
    try:
        return sorted(islice(place.iterdir(), MOST_NAMES))
    except OSError:
        return []


def _is_edited(raw: bytes | None, row: PageRow, purged: Marks) -> bool:
    if raw is None or row.is_known(raw.decode("utf-8", "replace")):  # as most are, which need not be looked into
        return False
    return not stage_pages.is_read(raw, row, purged)


def _begin_anew(rows: Rows, known: Iterable[PageRow]) -> None:
    """The whole directory is gone: somebody wants it made anew, and no line of it was meant."""
    for row in known:
        if row.text and not row.also:
            markdown_pages.put_page(rows, replace(row, also=row.text, held="", problem=""))


def _watched(directory: Path, known: Mapping[str, PageRow], where: Mapping[str, Place]) -> dict[str, PageRow]:
    """The pages that csmd wrote, and those that somebody wrote where it would have written one."""
    new = [path for path in where if path not in known and (directory / path).is_file()]
    return {**known, **{path: PageRow(path=path, text="", at="") for path in new}}


def _look(directory: Path, path: str, row: PageRow, purged: Marks) -> _Page:
    page = _Page(row=row, base=lines.read(row.text))
    raw = stage_pages.content(directory / path)
    page.is_there = raw is not None
    if (directory / path).is_symlink():
        page.is_there, page.problem = True, "it is a link to another file"
        return page
    if raw is not None:
        page.text, page.problem = stage_pages.said_in(raw, purged)
        if row.is_known(page.text) and not page.problem:
            said = lines.read(page.text)
            # What a person wrote is known with the memories that their lines stand for.
            page.new = page.base = said if _words(said) != _words(page.base) else page.base
            return page
        page.new = Read() if page.problem else lines.read(page.text)
        page.problem = page.problem or page.new.problem
    if row.also and row.text and _distance(page.new, also := lines.read(row.also)) < _distance(page.new, page.base):
        page.base = also  # it was written, and the daemon ended before it could say so
    return page


def _words(read: Read) -> list[str]:
    return [lines.key(item.text) for _, item in read.lines()]


def _distance(new: Read, base: Read) -> int:
    left, right = ({(one.id, lines.key(one.text)) for _, one in read.lines()} for read in (new, base))
    return len(left ^ right)


def _is_other(page: _Page, directory: Path) -> bool:
    row = page.row
    if page.problem or row.problem:
        return page.problem != row.problem
    if not page.is_there:
        return bool(row.text) and not (row.held and (directory / row.held).exists())
    return not row.is_known(page.text) or bool(row.held)


def _take_in(
    store: Store, directory: Path, found: Mapping[str, _Page], path: str, done: Edits, where: Mapping[str, Place],
    *, now: str, key: bytes, unheard: bool,
) -> int:  # fmt: skip
    page = found[path]
    row = page.row
    problem = page.problem or done.problem
    if problem:
        if problem != row.problem:
            store.write(lambda rows: markdown_pages.put_page(rows, replace(row, problem=problem)))
        return 0
    if done.truncated and path != INDEX:
        if not row.held:
            held = _restore(directory, path, row.also or row.text, today=now[:10])
            store.write(lambda rows: markdown_pages.put_page(rows, replace(row, held=held)))
            return 0
        if (directory / row.held).exists():
            return 0  # whether it was meant is not said yet

    def write(rows: Rows) -> int:
        others = {one: other.new for one, other in found.items() if one != path}
        seen = Seen(row=row, text=page.text, is_there=page.is_there, new=page.new, base=page.base)
        taking = Taking(
            rows, seen, directory=str(directory), where=where, others=others, now=now, key=key, unheard=unheard
        )
        return taking.take(done)

    return store.write(write)


def _restore(directory: Path, path: str, whole: str, *, today: str) -> str:
    """Puts a page down whole beside itself; its path."""
    folder = (directory / path).parent
    files.make_private(folder)
    taken = {str((Path(path).parent / one.name).as_posix()) for one in folder.iterdir()}
    name = edits.restored_name(path, today, taken)
    files.write_atomic(directory / name, whole.encode("utf-8", "replace"))
    return name
