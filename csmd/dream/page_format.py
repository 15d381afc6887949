"""Renders and parses pages, and keeps a person's own words on them; pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from csmd.text import markdown
from csmd.text.markdown import BULLET, ID_COMMENT, from_line, line_key, to_line

#: Heading of a person's own notes, which csmd does not read.
OWN_NOTES = "Your own notes"
#: Begins a gotcha's symptom, below its line.
SYMPTOM_PREFIX = "shows as: "
#: Begins a wording that waits for a person's answer.
WAITING_PREFIX = "waits in `csmd review`: "
#: Ends a paragraph or line that csmd generated.
_CSMD_MARK = "<!-- csmd -->"
#: Most bytes of a page.
MAX_BYTES = 1_000_000
#: Bytes that are read, to notice that there are more.
READ_BYTES = MAX_BYTES + 1
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)?$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
#: Begins a line of a table, a quotation, a comment, a rule or a picture.
_BLOCK_START = re.compile(
    r"\s*(?:\||>|<!--|<[a-zA-Z/]|!\[|(?:-\s*){3,}$|(?:\*\s*){3,}$|(?:_\s*){3,}$|={3,}$)|\t\t|\s{8}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a list.

    `id` is its memory's or "", `scene` where it was said, `symptom` a gotcha's or "", `waits` wordings that wait for a
    person's answer.
    """

    text: str
    id: str = ""
    scene: str = ""
    symptom: str = ""
    waits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A paragraph that a person wrote, verbatim; `below` is the number of its section's lines above it."""

    text: str
    below: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and its contents; `more` counts the memories not shown, `waits` are lines that are not memories yet."""

    heading: str
    items: tuple[Item, ...] = ()
    more: int = 0
    notes: tuple[Note, ...] = ()
    waits: tuple[str, ...] = ()
    level: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, as it is to be written or as it was read.

    `about` are csmd's paragraphs, `top` (before all headings) and `own` (under OWN_NOTES) a person's. `problem` says why
    the head of a page cannot be read, `generated` has the words of csmd's paragraphs on a page that was read.
    """

    path: str = ""
    head: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    about: tuple[str, ...] = ()
    top: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    own: tuple[str, ...] = ()
    problem: str = ""
    generated: frozenset[str] = frozenset()

    def lines(self) -> list[tuple[str, Item]]:
        """Returns (heading, line) of all lines, in order."""
        return [(section.heading, item) for section in self.sections for item in section.items]


# --- writing


def render_page(page: Page) -> str:
    """Returns the text of a page; equal pages give equal texts."""
    parts: list[str] = [f"# {to_line(page.title)}"] if page.title else []
    parts += [f"{to_line(sentence)} {_CSMD_MARK}" for sentence in page.about]
    parts += page.top
    for section in page.sections:
        parts += [f"{'#' * section.level} {to_line(section.heading)}"] if section.heading else []
        parts += _render_body(section)
    if page.own:
        parts += [f"## {OWN_NOTES}", *page.own]
    body = "\n\n".join(parts) + "\n"
    return markdown.add_head(page.head, body) if page.head else body


def _render_body(section: Section) -> Iterator[str]:
    """Yields the paragraphs under a heading: lines, a person's notes between them, and csmd's remark on the section."""
    run = list[str]()
    for number, item in enumerate(section.items):
        notes = [note.text for note in section.notes if note.below == number]
        if notes and run:
            yield "\n".join(run)
            run = []
        yield from notes
        run += _render_item(item)
    run += [f"- {WAITING_PREFIX}{to_line(text)} {_CSMD_MARK}" for text in section.waits]
    if run:
        yield "\n".join(run)
    if section.more and any(item.id for item in section.items):
        pronoun = "it" if section.more == 1 else "them"
        yield f"_{section.more} more, less sure or much the same: `csmd memories` lists {pronoun}._ {_CSMD_MARK}"
    elif section.more:
        yield f"_{section.more} more, less sure._ {_CSMD_MARK}"
    yield from (note.text for note in section.notes if note.below >= len(section.items))


def _render_item(item: Item) -> list[str]:
    first = f"- {to_line(item.text)}" + (f" <!-- m:{item.id} -->" if item.id else "")
    details = [f"{SYMPTOM_PREFIX}{to_line(item.symptom)}"] if item.symptom else []
    details += [f"{to_line(item.scene)} {_CSMD_MARK}"] if item.scene else []
    details += [f"{WAITING_PREFIX}{to_line(text)} {_CSMD_MARK}" for text in item.waits]
    return [first, *(f"  - {text}" for text in details)]


# --- reading


def decode_page(raw: bytes) -> tuple[str, str]:
    """Returns a file's text with normalised line ends, and why it cannot be read or ""."""
    if len(raw) > MAX_BYTES:
        return "", f"it is larger than {MAX_BYTES // 1_000_000} MB"
    try:
        flat = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
    if "\x00" in flat:
        return "", "it contains NUL bytes"
    flat = _normalise_breaks(flat)
    return flat if not flat or flat.endswith("\n") else flat + "\n", ""


def _normalise_breaks(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_page(whole: str) -> Page:
    """Parses a page; any text is accepted, with any line ends and with or without a byte order mark."""
    flat = _normalise_breaks(whole.removeprefix("\ufeff"))
    head, body, problem = markdown.split_memo(flat)
    return _Reader().read(body if not problem else flat, head, problem)


@dataclass(slots=True)
class _Part:
    """A heading and its contents so far."""

    heading: str
    level: int = 2
    items: list[Item] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def section(self) -> Section:
        return Section(heading=self.heading, level=self.level, items=tuple(self.items), notes=tuple(self.notes))


class _Reader:
    """Reads a page line by line; `_item` and `_block` are the lines of the item or paragraph that is being read."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._top: list[str] = []
        self._own: list[str] = []
        self._generated: list[str] = []
        self._block: list[str] = []
        self._item: list[str] = []
        self._fence = ""
        self._title = ""

    def read(self, body: str, head: Mapping[str, Any], problem: str) -> Page:
        for line in body.split("\n"):
            self._read_line(line, line.rstrip())
        if self._fence:
            self._block.append(self._fence)  # closes it, or it would take in all later lines when read again
        self._end()
        return Page(
            head=head, problem=problem, title=self._title, top=tuple(self._top), own=tuple(self._own),
            generated=frozenset(map(line_key, self._generated)), sections=tuple(part.section() for part in self._parts),
        )  # fmt: skip

    def _read_line(self, whole: str, line: str) -> None:
        fence = _FENCE.match(line)
        if self._fence:
            self._block.append(whole)
            if fence and fence[1].startswith(self._fence):
                self._fence = ""
                self._end()
            return
        heading = _HEADING.match(line)
        if heading and len(heading[1]) <= 2 and not (len(heading[1]) == 1 and self._in_own()):
            self._begin_part(heading)
        elif line.endswith(_CSMD_MARK):
            self._end()
            self._generated.append(line.removesuffix(_CSMD_MARK))
        elif fence:
            self._end()
            self._fence = fence[1]
            self._block.append(whole)
        elif not line.strip():
            self._end()
        elif self._in_own():
            self._block.append(whole)
        elif heading:
            self._begin_part(heading)
        elif bullet := BULLET.match(line):
            self._begin_item(bullet[1] or "", is_below=line[:1].isspace() and not ID_COMMENT.search(line))
        elif self._item and not (_BLOCK_START.match(line) and not line[:1].isspace() and not ID_COMMENT.search(line)):
            self._item.append(line)
        else:
            self._end_item()
            self._block.append(whole)

    def _in_own(self) -> bool:
        return bool(self._parts) and self._parts[-1].heading == OWN_NOTES

    def _begin_part(self, heading: re.Match[str]) -> None:
        self._end()
        text = from_line((heading[2] or "").rstrip().rstrip("#").rstrip())  # without closing marks
        if len(heading[1]) == 1 and not self._title and not self._parts:
            self._title = text
        else:
            self._parts.append(_Part(text, level=len(heading[1])))

    def _begin_item(self, text: str, *, is_below: bool) -> None:
        self._end()
        if not self._parts:
            self._parts.append(_Part(""))
        is_symptom = is_below and text.startswith(SYMPTOM_PREFIX) and self._parts[-1].items
        is_ours = text.startswith(WAITING_PREFIX) or is_symptom
        if text and not is_ours:
            self._item.append(text)

    def _end(self) -> None:
        self._end_item()
        block, self._block = self._block, []
        if not block:
            return
        if self._parts and not self._in_own() and ID_COMMENT.search(block[-1]) and not _FENCE.match(block[0]):
            self._item = block  # an item without its bullet
            self._end_item()
        elif not self._parts:
            self._top.append("\n".join(block))
        elif self._in_own():
            self._own.append("\n".join(block))
        else:
            self._parts[-1].notes.append(Note(text="\n".join(block), below=len(self._parts[-1].items)))

    def _end_item(self) -> None:
        text, self._item = " ".join(self._item), []
        ids = ID_COMMENT.findall(text)
        if body := from_line(ID_COMMENT.sub("", text)):
            self._parts[-1].items.append(Item(text=body, id=ids[-1] if ids else ""))


# --- keeping a person's words

#: Whether csmd wrote a heading.
IsCsmdHeading = Callable[[str], bool]


def _make_item_lookup(items: Mapping[str, Item]) -> Callable[[Item], Item | None]:
    """Returns a function from a line that was read to the current line of its memory, found by id or by words.

    It returns None if the memory is no longer shown, and a line without a memory as it is.
    """
    by_words = {line_key(item.text): item for item in items.values()}
    return lambda item: items.get(item.id) if item.id else by_words.get(line_key(item.text), item)


def has_own_words(page: Page, is_ours: IsCsmdHeading) -> bool:
    """Whether a page has words of a person besides lines of memories."""
    return bool(page.top or page.own or any(section.notes or not is_ours(section.heading) for section in page.sections))


def find_moved_ids(previous: Page, items: Mapping[str, Item], is_ours: IsCsmdHeading) -> frozenset[str]:
    """Returns which of `items` (by memory id) a person put under headings of their own."""
    moved = (item for section in previous.sections if not is_ours(section.heading) for item in section.items)
    return frozenset(item.id for item in map(_make_item_lookup(items), moved) if item is not None and item.id)


def keep_own_words(page: Page, previous: Page, items: Mapping[str, Item], is_ours: IsCsmdHeading) -> Page:
    """Returns a page with the words that a person wrote on its former version, `previous`.

    `items` are the current lines of memories that the person moved, by id.
    """
    ours = {section.heading: section for section in page.sections}
    following: dict[str, list[Section]] = defaultdict(list)
    anchor = ""
    for section in previous.sections:
        name = section.heading
        if name == OWN_NOTES:
            continue
        if not is_ours(name):
            following[anchor].append(map_items(section, _make_item_lookup(items)))
        elif name in ours:
            ours[name], anchor = _add_notes(ours[name], section), name
        elif section.notes:
            notes = tuple(replace(note, below=0) for note in section.notes)
            following[anchor].append(replace(section, items=(), notes=notes))
    sections = following[""]
    for section in page.sections:
        sections = [*sections, ours[section.heading], *following[section.heading]]
    return replace(page, top=previous.top, sections=tuple(sections), own=previous.own)


def map_items(section: Section, convert: Callable[[Item], Item | None]) -> Section:
    """Returns a section with its lines mapped, without those mapped to None; notes keep their positions."""
    items = [convert(item) for item in section.items]
    notes = [replace(note, below=sum(item is not None for item in items[: note.below])) for note in section.notes]
    return replace(section, items=tuple(item for item in items if item is not None), notes=tuple(notes))


def _add_notes(section: Section, previous: Section) -> Section:
    """Returns a section of csmd's with the notes that a person wrote between the lines of its former version."""
    at = {item.id or line_key(item.text): number for number, item in enumerate(section.items, start=1)}
    notes = list(section.notes)
    for note in previous.notes:
        below = len(section.items)
        if note.below < len(previous.items) or not previous.items:
            above = (item.id or line_key(item.text) for item in reversed(previous.items[: note.below]))
            below = next((at[name] for name in above if name in at), 0)
        notes.append(replace(note, below=below))
    return replace(section, notes=tuple(notes))
