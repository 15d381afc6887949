"""The index of the pages, `MEMORY.md`: a line for each, within the limits that the host reads such a file by; pure."""

from __future__ import annotations

from collections.abc import Sequence

from csmd import text
from csmd.capture.memdir import INDEX, INDEX_LINES, INDEX_UNITS
from csmd.dream import keeping, lines
from csmd.dream.lines import Item, Page, Read, Section
from csmd.dream.pages import LISTED, NOBODYS, PROJECTS, TOPICS, bare, is_ours

#: Lines and bytes that are left free: a list begins and ends with empty lines.
SPARE_LINES, SPARE_BYTES = 4, 100


def index(pages: Sequence[Page], was: Read = NOBODYS) -> Page:
    """One line for each of the common pages, within the host's limits; what a person wrote there stays."""
    rows = [
        Item(text=f"[{bare(page.title)}]({page.path}): {page.head['description'].removeprefix(f'{page.title}: ')}")
        for page in pages
    ]

    def made(shown: int) -> Page:
        left = len(rows) - shown
        about = (f"{text.amount(left, 'more page')} below {PROJECTS} and {TOPICS}",) if left else ()
        section = Section(heading=LISTED, items=tuple(rows[:shown]))
        return keeping.kept(
            Page(path=INDEX, title="What csmd remembers", about=about, sections=(section,)), was, {}, is_ours
        )

    around = lines.written(made(0))
    room = INDEX_LINES - around.count("\n") - SPARE_LINES
    units, shown = INDEX_UNITS - len(around.encode()) - SPARE_BYTES, 0
    for row in rows:
        units -= len(f"- {lines.plain(row.text)}\n".encode())
        if shown >= room or units < 0:
            break
        shown += 1
    return made(shown)
