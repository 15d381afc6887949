"""What was forgotten leaves the pages at once: the page itself, what is put aside, and whole ones that stand beside.

A line is known by its id, or by the words that csmd wrote with that id where an editor has lost the comment. What was
edited besides and nobody has read yet stays an edit, of as long ago.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from csmd.dream import edits, lines, stage_pages
from csmd.dream.stage_pages import ARCHIVE
from csmd.store import page_lines, page_rows
from csmd.store.core import Store
from csmd.store.page_rows import PageRow
from csmd.store.sqlite import Rows


def withdraw(store: Store, directory: Path) -> int:
    """Takes the lines of memories that are no more out of all pages, files and rows alike; how many had some.

    OSError where the disk does not take a page.
    """
    done = 0
    known = store.read(page_rows.pages)
    unsaid = store.read(lambda rows: _unsaid(rows, known.values(), key=store.hash_key))
    for row in known.values():
        # The file first: while the row knows the line, it is no new one.
        had = _from_file(store, directory / row.path, unsaid)
        text, also = (store.read(partial(_without, said=one, unsaid=unsaid))[0] for one in (row.text, row.also))
        left = replace(row, text=text, also=also)
        if left != row:
            store.write(partial(page_rows.put, page=left))
        done += had or left != row
    return done + sum(_from_file(store, path, unsaid) for path in _beside(directory))


def _beside(directory: Path) -> Iterator[Path]:
    """Whole pages beside pages that lost too much, and what is put aside."""
    yield from sorted(directory.glob("*.restored-*.md"))
    yield from sorted(directory.glob("[pt]*/*.restored-*.md"))
    yield from sorted((directory / ARCHIVE).glob("[pt]*/*.md"))


def _from_file(store: Store, path: Path, unsaid: Collection[str]) -> bool:
    raw = None if path.is_symlink() else stage_pages.content(path)
    said = "" if raw is None else edits.text_of(raw)[0]
    left, gone = store.read(lambda rows: _without(rows, said, unsaid))
    if gone:
        stage_pages.put(path, left)
    return gone > 0


def _without(rows: Rows, said: str, unsaid: Collection[str]) -> tuple[str, int]:
    return page_lines.without(said, lambda ids: page_lines.missing(rows, ids), lambda words: words in unsaid)


def _unsaid(rows: Rows, known: Collection[PageRow], *, key: bytes) -> frozenset[str]:
    """The words of the lines that csmd knows under the ids of memories that are no more, or under none; no living one's."""
    named: dict[str, set[str]] = {}
    for row in known:
        for text in (row.text, row.also):
            for _, item in lines.read(text).lines():
                named.setdefault(item.id, set()).add(lines.key(item.text))
    bare = named.pop("", set())
    gone = page_lines.missing(rows, list(named))
    left = {words for ident, found in named.items() if ident not in gone for words in found}
    out = {words for words in bare if page_lines.unsaid(rows, words, key=key)}
    return frozenset(out.union(*(named[ident] for ident in gone)) - left)
