"""What a person wrote on a page for themselves, where it stood, when csmd makes the page anew; pure.

A heading of theirs stays with the lines that they put under it, behind the heading of csmd's that it stood behind; a note
stays below the line that it stood below, or the nearest above that is still there. A memory that stands under a heading
of theirs stands under none of csmd's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from csmd.dream import lines
from csmd.dream.lines import Item, Note, Page, Read, Section

#: Whether a heading is one of csmd's.
IsOurs = Callable[[str], bool]


class _Standing:
    """The lines of memories that may stand on a page, found by id, or by their words where a line has none yet."""

    def __init__(self, standing: Mapping[str, Item]) -> None:
        self._by_id = standing
        self._by_words = {lines.key(item.text): item for item in standing.values()}

    def now(self, item: Item) -> Item | None:
        """A line as it is to stand; None for one whose memory is believed no more."""
        return self._by_id.get(item.id) if item.id else self._by_words.get(lines.key(item.text), item)


def has_theirs(read: Read, is_ours: IsOurs) -> bool:
    """Whether a person wrote anything on a page that is no memory's line."""
    theirs = any(section.notes or not is_ours(section.heading) for section in read.sections)
    return bool(read.top or read.own or theirs)


def placed(was: Read, standing: Mapping[str, Item], is_ours: IsOurs) -> frozenset[str]:
    """Those of the memories `standing` whose lines a person put under headings of their own."""
    found = _Standing(standing)
    theirs = (item for section in was.sections if not is_ours(section.heading) for item in section.items)
    return frozenset(now.id for item in theirs if (now := found.now(item)) is not None and now.id)


def kept(page: Page, was: Read, standing: Mapping[str, Item], is_ours: IsOurs) -> Page:
    """A page with what a person wrote there; `standing` are the lines of the memories that may stand on it, by id."""
    made, found = {section.heading: section for section in page.sections}, _Standing(standing)
    behind: dict[str, list[Section]] = {}
    anchor = ""
    for section in was.sections:
        name = section.heading
        if name == lines.OWN:
            continue
        if not is_ours(name):
            behind.setdefault(anchor, []).append(mapped(section, found.now))
        elif name in made:
            made[name], anchor = _with_notes(made[name], section), name
        elif section.notes:
            notes = tuple(replace(note, below=0) for note in section.notes)
            behind.setdefault(anchor, []).append(replace(section, items=(), notes=notes))
    sections = behind.get("", [])
    for section in page.sections:
        sections = [*sections, made[section.heading], *behind.get(section.heading, ())]
    return replace(page, top=was.top, sections=tuple(sections), own=was.own)


def mapped(section: Section, of: Callable[[Item], Item | None]) -> Section:
    """A section with other lines in the place of its own, without those of which there is none; notes stay in between."""
    items = [of(item) for item in section.items]
    notes = [replace(note, below=sum(one is not None for one in items[: note.below])) for note in section.notes]
    return replace(section, items=tuple(one for one in items if one is not None), notes=tuple(notes))


def _with_notes(section: Section, was: Section) -> Section:
    """A section of csmd's with the notes that stood between its lines."""
    at = {item.id or lines.key(item.text): number for number, item in enumerate(section.items, start=1)}

    def moved(note: Note) -> Note:
        if note.below >= len(was.items) > 0:
            return replace(note, below=len(section.items))
        above: Sequence[Item] = was.items[: note.below]
        return replace(
            note, below=next((at[k] for one in reversed(above) if (k := one.id or lines.key(one.text)) in at), 0)
        )

    return replace(section, notes=(*section.notes, *map(moved, was.notes)))
