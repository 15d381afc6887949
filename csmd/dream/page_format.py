"""A page as text and back, with a person's own words kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from csmd.text import front_matter
from csmd.text.page_lines import BULLET, ID, key, plain, text_of_line

#: What a person writes under it is theirs to the last line of a list, never read.
OWN = "Your own notes"
#: How a gotcha shows itself, below its line; and a wording that a person has yet to answer for, below the one that holds.
SHOWS, WAITS = "shows as: ", "waits in `csmd review`: "
_SELF = "<!-- csmd -->"
#: Longer than a page, in bytes.
MOST_BYTES = 1_000_000
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)?$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
#: Lines that are of a table, a quotation, a comment, a rule or a picture.
_OTHER = re.compile(r"\s*(?:\||>|<!--|<[a-zA-Z/]|!\[|(?:-\s*){3,}$|(?:\*\s*){3,}$|(?:_\s*){3,}$|={3,}$)|\t\t|\s{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a list; `id` is the memory's, "" for none; `scene` where it was said, `shows` how a gotcha shows itself,
    `before` (date, text, id) what it replaced, `waits` what it may become."""

    text: str
    id: str = ""
    scene: str = ""
    shows: tuple[str, ...] = ()
    before: tuple[tuple[str, str, str], ...] = ()
    waits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a person wrote for themselves, to the letter; `below` is how many lines of its section stand above it."""

    text: str
    below: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what stands under it; `more` memories found no room, `waits` are lines that no memory has yet."""

    heading: str
    items: tuple[Item, ...] = ()
    more: int = 0
    notes: tuple[Note, ...] = ()
    waits: tuple[str, ...] = ()
    level: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file as it is to be written; `about` is csmd's own words, `top` and `own` a person's: before all headings, under theirs."""

    path: str
    head: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    about: tuple[str, ...] = ()
    top: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A file as it was read; `problem` says why its head cannot be, `top` and `own` are what is the person's as a whole."""

    head: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    title: str = ""
    top: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    own: tuple[str, ...] = ()
    said: frozenset[str] = frozenset()
    """What csmd says itself, without its mark: an editor may have taken the mark off."""

    def lines(self) -> list[tuple[str, Item]]:
        """(heading, line) of all lines in order."""
        return [(section.heading, item) for section in self.sections for item in section.items]


# --- out


def render_page(page: Page) -> str:
    """The text of a page; the same page is the same text."""
    parts: list[str] = [f"# {plain(page.title)}"] if page.title else []
    parts += [f"{plain(one)} {_SELF}" for one in page.about]
    parts += page.top
    for section in page.sections:
        if section.heading:
            parts.append(f"{'#' * section.level} {plain(section.heading)}")
        parts += _body(section)
    if page.own:
        parts += [f"## {OWN}", *page.own]
    body = "\n\n".join(parts) + "\n"
    return front_matter.written(page.head, body) if page.head else body


def _body(section: Section) -> Iterator[str]:
    """What stands under a heading, by paragraphs: lines, notes where they belong, and what csmd says of it."""
    last, run = len(section.items), list[str]()
    for number, item in enumerate(section.items):
        notes = [note.text for note in section.notes if note.below == number]
        if notes and run:
            yield "\n".join(run)
            run = []
        yield from notes
        run += _lines(item)
    run += [f"- {WAITS}{plain(one)} {_SELF}" for one in section.waits]
    if run:
        yield "\n".join(run)
    if section.more:
        yield f"{_left_out(section)} {_SELF}"
    yield from (note.text for note in section.notes if note.below >= last)


def _left_out(section: Section) -> str:
    """What a section has no room for, why, and where it is."""
    if not any(item.id for item in section.items):
        return f"_{section.more} more, less sure._"
    them = "it" if section.more == 1 else "them"
    return f"_{section.more} more, less sure or much the same: `csmd memories` lists {them}._"


def _lines(item: Item) -> list[str]:
    first = f"- {plain(item.text)}" + (f" <!-- m:{item.id} -->" if item.id else "")
    own = [plain(item.scene)] if item.scene else []
    own += [f"(before, {day}: {plain(said)}) <!-- m:{ident} -->" for day, said, ident in item.before]
    own += [f"{WAITS}{plain(one)}" for one in item.waits]
    below = (*(f"{SHOWS}{plain(one)}" for one in item.shows), *(f"{one} {_SELF}" for one in own))
    return [first, *(f"  - {one}" for one in below)]


# --- in


def decode_page(raw: bytes) -> tuple[str, str]:
    """(what a file says, why it cannot be read: "" for nothing); line ends are made the same."""
    if len(raw) > MOST_BYTES:
        return "", f"it is larger than {MOST_BYTES // 1_000_000} MB"
    try:
        flat = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", "it is not UTF-8"
    if "\x00" in flat:
        return "", "it holds bytes that no text has"
    flat = flat.replace("\r\n", "\n").replace("\r", "\n")
    return flat if not flat or flat.endswith("\n") else flat + "\n", ""


def parse_page(whole: str) -> Read:
    """What a file says; never raises, whatever it is. Line ends and a byte order mark are taken as they come."""
    flat = whole.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    head, body, problem = front_matter.parse(flat)
    return _Reader().read(body if not problem else flat, head, problem)


@dataclass(slots=True)
class _Part:
    """A heading and what was read under it so far."""

    heading: str
    level: int = 2
    items: list[Item] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


class _Reader:
    """Owns what was read so far of one file."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._top: list[str] = []
        self._own: list[str] = []
        self._said: list[str] = []
        self._block: list[str] = []
        self._open: list[str] = []
        """The lines of the item that may still go on."""
        self._fence = ""
        self._title = ""

    def read(self, body: str, head: Mapping[str, Any], problem: str) -> Read:
        for line in body.split("\n"):
            self._line(line, line.rstrip())
        if self._fence:
            self._block.append(self._fence)  # else it would swallow what stands below it next time
        self._end()
        return Read(
            head=head, problem=problem, title=self._title, top=tuple(self._top), own=tuple(self._own),
            said=frozenset(key(one) for one in self._said),
            sections=tuple(
                Section(heading=one.heading, level=one.level, items=tuple(one.items), notes=tuple(one.notes))
                for one in self._parts
            ),
        )  # fmt: skip

    def _line(self, whole: str, line: str) -> None:
        fence = _FENCE.match(line)
        if self._fence:
            self._block.append(whole)
            if fence and fence[1].startswith(self._fence):
                self._fence = ""
                self._end()
            return
        heading = _HEADING.match(line)
        if heading and len(heading[1]) <= 2 and not (len(heading[1]) == 1 and self._in_own()):
            self._begin(heading)
        elif line.endswith(_SELF):
            self._end()
            self._said.append(line.removesuffix(_SELF))
        elif fence:
            self._end()
            self._fence = fence[1]
            self._block.append(whole)
        elif not line.strip():
            self._end()
        elif self._in_own():
            self._block.append(whole)
        elif heading:
            self._begin(heading)
        elif bullet := BULLET.match(line):
            self._bullet(bullet[1] or "", below=line[:1].isspace() and not ID.search(line))
        elif self._open and not (_OTHER.match(line) and not line[:1].isspace() and not ID.search(line)):
            self._open.append(line)
        else:
            self._end_item()
            self._block.append(whole)

    def _in_own(self) -> bool:
        return bool(self._parts) and self._parts[-1].heading == OWN

    def _begin(self, heading: re.Match[str]) -> None:
        self._end()
        if len(heading[1]) == 1 and not self._title and not self._parts:
            self._title = text_of_line(_named(heading))
        else:
            self._parts.append(_Part(text_of_line(_named(heading)), level=len(heading[1])))

    def _bullet(self, said: str, *, below: bool) -> None:
        self._end()
        if not self._parts:
            self._parts.append(_Part(""))
        if said.startswith(WAITS) or (below and said.startswith(SHOWS) and self._parts[-1].items):
            return  # csmd's own, of the line above
        if said:
            self._open.append(said)

    def _end(self) -> None:
        self._end_item()
        block, self._block = self._block, []
        if not block:
            return
        if self._parts and not self._in_own() and ID.search(block[-1]) and not _FENCE.match(block[0]):
            self._open = block  # a line that lost its bullet
            self._end_item()
        elif not self._parts:
            self._top.append("\n".join(block))
        elif self._in_own():
            self._own.append("\n".join(block))
        else:
            self._parts[-1].notes.append(Note(text="\n".join(block), below=len(self._parts[-1].items)))

    def _end_item(self) -> None:
        if not self._open:
            return
        said = " ".join(self._open)
        self._open = []
        ids = ID.findall(said)
        body = text_of_line(ID.sub("", said))
        if body:
            self._parts[-1].items.append(Item(text=body, id=ids[-1] if ids else ""))


def _named(heading: re.Match[str]) -> str:
    """What a heading says, without the marks that may close it."""
    return (heading[2] or "").rstrip().rstrip("#").rstrip()


#: Whether a heading is one of csmd's.
IsOurs = Callable[[str], bool]


def _standing(lines: Mapping[str, Item]) -> Callable[[Item], Item | None]:
    """Maps a line to the memory's as it is to stand, found by id, or by its words where it has none yet.

    None for one whose memory is believed no more.
    """
    by_words = {key(item.text): item for item in lines.values()}
    return lambda item: lines.get(item.id) if item.id else by_words.get(key(item.text), item)


def has_theirs(read: Read, is_ours: IsOurs) -> bool:
    """Whether a person wrote anything on a page that is no memory's line."""
    theirs = any(section.notes or not is_ours(section.heading) for section in read.sections)
    return bool(read.top or read.own or theirs)


def find_placed(was: Read, standing: Mapping[str, Item], is_ours: IsOurs) -> frozenset[str]:
    """Those of the memories `standing` whose lines a person put under headings of their own."""
    theirs = (item for section in was.sections if not is_ours(section.heading) for item in section.items)
    return frozenset(now.id for now in map(_standing(standing), theirs) if now is not None and now.id)


def keep_own_words(page: Page, was: Read, standing: Mapping[str, Item], is_ours: IsOurs) -> Page:
    """A page with what a person wrote there; `standing` are the lines of the memories that may stand on it, by id."""
    made = {section.heading: section for section in page.sections}
    behind: dict[str, list[Section]] = {}
    anchor = ""
    for section in was.sections:
        name = section.heading
        if name == OWN:
            continue
        if not is_ours(name):
            behind.setdefault(anchor, []).append(map_items(section, _standing(standing)))
        elif name in made:
            made[name], anchor = _with_notes(made[name], section), name
        elif section.notes:
            notes = tuple(replace(note, below=0) for note in section.notes)
            behind.setdefault(anchor, []).append(replace(section, items=(), notes=notes))
    sections = behind.get("", [])
    for section in page.sections:
        sections = [*sections, made[section.heading], *behind.get(section.heading, ())]
    return replace(page, top=was.top, sections=tuple(sections), own=was.own)


def map_items(section: Section, of: Callable[[Item], Item | None]) -> Section:
    """A section with other lines in the place of its own, without those of which there is none; notes stay in between."""
    items = [of(item) for item in section.items]
    notes = [replace(note, below=sum(one is not None for one in items[: note.below])) for note in section.notes]
    return replace(section, items=tuple(one for one in items if one is not None), notes=tuple(notes))


def _with_notes(section: Section, was: Section) -> Section:
    """A section of csmd's with the notes that stood between its lines."""
    at = {item.id or key(item.text): number for number, item in enumerate(section.items, start=1)}

    def moved(note: Note) -> Note:
        if note.below >= len(was.items) > 0:
            return replace(note, below=len(section.items))
        above: Sequence[Item] = was.items[: note.below]
        return replace(note, below=next((at[k] for one in reversed(above) if (k := one.id or key(one.text)) in at), 0))

    return replace(section, notes=(*section.notes, *map(moved, was.notes)))
