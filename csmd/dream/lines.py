"""A page as text and a text as a page: what is written is read back as it was, whatever a memory says; pure.

A memory is one line under a heading, `- TEXT <!-- m:ID -->`. Its text cannot begin another line, name an id or close a
head: it stands on one line, and a comment in it is written `<\\!--`. What csmd says itself ends with `<!-- csmd -->` and
is not read. All else that is no line of a list, nor a paragraph under a heading, is the person's own and kept as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from csmd import text
from csmd.capture import matter

#: What a person writes for themselves stands under it: kept to the letter and never read.
OWN = "Your own notes"
#: How a gotcha shows itself, below its line.
SHOWS = "shows as: "
_SELF = "<!-- csmd -->"
_ID = re.compile(r"\s*<!--\s*m:(m[0-9a-f]{10})\s*-->")
_OPENS, _CLOSES = re.compile(r"<(\\*)!--"), re.compile(r"--(\\*)>")
_OPENED, _CLOSED = re.compile(r"<\\(\\*)!--"), re.compile(r"--\\(\\*)>")
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])(?:\s+(.*)|\s*)$")
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
#: Lines that are of a table, a quotation, a comment, a rule or a picture.
_OTHER = re.compile(r"\s*(?:\||>|<!--|<[a-zA-Z/]|!\[|(?:-\s*){3,}$|(?:\*\s*){3,}$|(?:_\s*){3,}$|={3,}$)|\t\t|\s{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of a list, or a paragraph; `id` is the memory's, "" for none; `shows` how a gotcha shows itself."""

    text: str
    id: str = ""
    shows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what stands under it; `more` memories found no room."""

    heading: str
    items: tuple[Item, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file as it is to be written; `own` is what a person wrote there for themselves, `about` csmd's own words."""

    path: str
    head: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    about: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A file as it was read; `problem` says why its head cannot be, `own` are the blocks that are the person's."""

    head: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    title: str = ""
    sections: tuple[Section, ...] = ()
    own: tuple[str, ...] = ()
    said: frozenset[str] = frozenset()
    """What csmd says itself, without its mark: an editor may have taken the mark off."""

    def lines(self) -> list[tuple[str, Item]]:
        """(heading, line) of all lines in order."""
        return [(section.heading, item) for section in self.sections for item in section.items]


# --- out


def written(page: Page) -> str:
    """The text of a page; the same page is the same text."""
    parts: list[str] = [f"# {plain(page.title)}"] if page.title else []
    parts += [f"{plain(one)} {_SELF}" for one in page.about]
    for section in page.sections:
        rows = [line for item in section.items for line in _lines(item)]
        them = "it" if section.more == 1 else "them"
        more = [f"_{section.more} more: `csmd memories` lists {them}._ {_SELF}"] if section.more else []
        parts += [f"## {plain(section.heading)}", *(["\n".join(rows)] if rows else []), *more]
    if page.own:
        parts += [f"## {OWN}", *page.own]
    body = "\n\n".join(parts) + "\n"
    return matter.written(page.head, body) if page.head else body


def _lines(item: Item) -> list[str]:
    first = f"- {plain(item.text)}" + (f" <!-- m:{item.id} -->" if item.id else "")
    return [first, *(f"  - {SHOWS}{plain(one)}" for one in item.shows)]


def plain(said: str) -> str:
    """A text as it stands in a line: on one, with nothing unseen, and with comments that are none."""
    flat = text.squeeze(text.defuse(said))
    return _CLOSES.sub(r"--\\\1>", _OPENS.sub(r"<\\\1!--", flat))


def meant(line: str) -> str:
    """The text that a line stands for: the way back from `plain`."""
    return _CLOSED.sub(r"--\1>", _OPENED.sub(r"<\1!--", text.squeeze(line)))


def same(one: str, other: str) -> bool:
    """Whether two texts of lines are one and the same, however an editor writes their letters and spaces."""
    return key(one) == key(other)


def key(said: str) -> str:
    """What a line's text is compared by."""
    return text.squeeze(unicodedata.normalize("NFC", said))


# --- in


def read(whole: str) -> Read:
    """What a file says; never raises, whatever it is. Line ends and a byte order mark are taken as they come."""
    flat = whole.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    head, body, problem = matter.parse(flat)
    return _Reader().read(body if not problem else flat, head, problem)


class _Reader:
    """Owns what was read so far of one file."""

    def __init__(self) -> None:
        self._sections: list[tuple[str, list[Item]]] = []
        self._own: list[str] = []
        self._said: list[str] = []
        self._block: list[str] = []
        self._open: list[str] = []
        """The lines of the item that may still go on."""
        self._fence = ""
        self._title = ""

    def read(self, body: str, head: Mapping[str, Any], problem: str) -> Read:
        for line in body.split("\n"):
            self._line(line.rstrip())
        if self._fence:
            self._block.append(self._fence)  # else it would swallow what stands below it next time
        self._end()
        return Read(
            head=head, problem=problem, title=self._title, own=tuple(self._own), said=frozenset(key(one) for one in self._said),
            sections=tuple(Section(heading=name, items=tuple(items)) for name, items in self._sections),
        )  # fmt: skip

    def _line(self, line: str) -> None:
        fence = _FENCE.match(line)
        if self._fence:
            self._block.append(line)
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
            self._block.append(line)
        elif self._in_own():
            self._of_block(line)
        elif not line.strip():
            self._end()
        elif heading:
            self._begin(heading)
        elif bullet := _BULLET.match(line):
            self._bullet(bullet[1] or "", below=line[:1].isspace() and not _ID.search(line))
        elif _OTHER.match(line) and not (self._open and (line[:1].isspace() or _ID.search(line))):
            self._end_item()
            self._block.append(line)
        elif self._sections and not self._block:
            self._open.append(line)
        else:
            self._block.append(line)

    def _in_own(self) -> bool:
        return bool(self._sections) and self._sections[-1][0] == OWN

    def _of_block(self, line: str) -> None:
        if line.strip():
            self._block.append(line)
        else:
            self._end()

    def _begin(self, heading: re.Match[str]) -> None:
        self._end()
        if len(heading[1]) == 1 and not self._title and not self._sections:
            self._title = meant(heading[2])
        else:
            self._sections.append((meant(heading[2]), []))

    def _bullet(self, said: str, *, below: bool) -> None:
        self._end()
        if not self._sections:
            self._sections.append(("", []))
        if below and said.startswith(SHOWS) and self._sections[-1][1]:
            return  # csmd's own, of the line above
        if said:
            self._open.append(said)

    def _end(self) -> None:
        self._end_item()
        if self._block:
            self._own.append("\n".join(self._block))
            self._block = []

    def _end_item(self) -> None:
        if not self._open:
            return
        said = " ".join(self._open)
        self._open = []
        ids = _ID.findall(said)
        body = meant(_ID.sub("", said))
        if body:
            self._sections[-1][1].append(Item(text=body, id=ids[-1] if ids else ""))
