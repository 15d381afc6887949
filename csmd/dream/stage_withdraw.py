"""What was forgotten leaves the pages at once: the page itself, what is put aside, and whole ones that stand beside.

A line is known by its id, or by the words that csmd wrote with that id where an editor has lost the comment: those that
were forgotten where the page is of, and on a page of several projects those of any. What was edited besides and nobody has read yet stays an edit, of as long ago.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from csmd.dream import edits, lines, stage_pages
from csmd.dream.stage_pages import ARCHIVE
from csmd.store import markdown_pages
from csmd.store.core import Store
from csmd.store.markdown_pages import PageRow
from csmd.store.sqlite import Rows


class _Known(NamedTuple):
    """Words of lines that csmd knows, by the place of their page (None: of any): under ids of memories that are no more,
    under those of living ones; and all that may have been forgotten.
    """

    gone: Mapping[int | None, Collection[str]]
    living: Mapping[int | None, Collection[str]]
    asked: Collection[str]


def withdraw(store: Store, directory: Path) -> int:
    """Takes the lines of memories that are no more out of all pages, files and rows alike; how many had some.

    OSError where the disk does not take a page.
    """
    done = 0
    pages = store.read(markdown_pages.pages)
    known = store.read(lambda rows: _known(rows, pages.values()))
    for row in pages.values():
        without = partial(_without, path=row.path, known=known, key=store.hash_key)
        # The file first: while the row knows the line, it is no new one.
        had = _from_file(store, directory / row.path, without)
        text, also = (store.read(partial(without, said=one))[0] for one in (row.text, row.also))
        left = replace(row, text=text, also=also)
        if left != row:
            store.write(partial(markdown_pages.put_page, page=left))
        done += had or left != row
    for path in _beside(directory):
        named = path.relative_to(directory).as_posix()
        done += _from_file(store, path, partial(_without, path=named, known=known, key=store.hash_key))
    return done


def _beside(directory: Path) -> Iterator[Path]:
    """Whole pages beside pages that lost too much, and what is put aside."""
    yield from sorted(directory.glob("*.restored-*.md"))
    yield from sorted(directory.glob("[pt]*/*.restored-*.md"))
    yield from sorted((directory / ARCHIVE).glob("[pt]*/*.md"))


def _from_file(store: Store, path: Path, without: Callable[..., tuple[str, int]]) -> bool:
    raw = None if path.is_symlink() else stage_pages.content(path)
    said = "" if raw is None else edits.text_of(raw)[0]
    left, gone = store.read(partial(without, said=said))
    if gone:
        stage_pages.put(path, left)
    return gone > 0


def _without(rows: Rows, *, said: str, path: str, known: _Known, key: bytes) -> tuple[str, int]:
    place = markdown_pages.place_of(rows, path)
    gone, living = known.gone.get(place, ()), known.living.get(place, ())

    def is_unsaid(words: str) -> bool:
        if words in living:
            return False
        return words in gone or (words in known.asked and markdown_pages.unsaid(rows, words, place=place, key=key))

    return markdown_pages.without_lines(said, lambda ids: markdown_pages.missing_lines(rows, ids), is_unsaid)


def _known(rows: Rows, pages: Collection[PageRow]) -> _Known:
    named: dict[str, dict[int | None, set[str]]] = {}
    for row in pages:
        places = {markdown_pages.place_of(rows, row.path), None}
        for text in (row.text, row.also):
            for _, item in lines.read(text).lines():
                for place in places:
                    named.setdefault(item.id, {}).setdefault(place, set()).add(lines.key(item.text))
    bare = named.pop("", {})
    missing = markdown_pages.missing_lines(rows, list(named))
    gone: dict[int | None, set[str]] = {}
    living: dict[int | None, set[str]] = {}
    for ident, found in named.items():
        for place, words in found.items():
            (gone if ident in missing else living).setdefault(place, set()).update(words)
    return _Known(gone=gone, living=living, asked=bare.get(None, set()) | gone.get(None, set()))
