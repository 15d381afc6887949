"""The one-line form of a page's entry, and back; pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from csmd.text import display

ID = re.compile(r"\s*<!--\s*m:(m[0-9a-f]{10})\s*-->")
BULLET = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])(?:\s+(.*)|\s*)$")
_OPENS, _CLOSES = re.compile(r"<(\\*)!--"), re.compile(r"--(\\*)>")
_OPENED, _CLOSED = re.compile(r"<\\(\\*)!--"), re.compile(r"--\\(\\*)>")


def plain(said: str) -> str:
    """A text as it stands in a line: on one, with nothing unseen, and with comments that are none."""
    flat = display.squeeze(display.defuse(said))
    return _CLOSES.sub(r"--\\\1>", _OPENS.sub(r"<\\\1!--", flat))


def text_of_line(line: str) -> str:
    """The text that a line stands for: the way back from `plain`."""
    return _CLOSED.sub(r"--\1>", _OPENED.sub(r"<\1!--", display.squeeze(line)))


def same(one: str, other: str) -> bool:
    """Whether two texts of lines are one and the same, however an editor writes their letters and spaces."""
    return key(one) == key(other)


def key(said: str) -> str:
    """What a line's text is compared by."""
    return display.squeeze(unicodedata.normalize("NFC", said))


def words_of(line: str) -> str:
    """The text of a list's line that stands in a file as it is compared, without its comment; "" for no such line."""
    bullet = BULLET.match(line)
    return key(text_of_line(ID.sub("", bullet[1] or ""))) if bullet else ""


USER = "user.md"
PROJECTS, TOPICS = "projects/", "topics/"
NAME_CHARACTERS = 40
#: Below the home or the pages' own directory: a page, what is put aside of one, or a whole one that stands beside it.
_ABOUT_ALL = re.compile(rf"(?:memory/)?{re.escape(USER.removesuffix('.md'))}(?:\.restored-[^/]*)?\.md")
_OF_PROJECT = re.compile(
    rf"(?:memory/)?(?:archive/)?{PROJECTS}[^/]*-([0-9a-f]{{6}})(?:-[0-9]{{1,4}})?(?:\.restored-[^/]*)?\.md"
)


def slug(name: str) -> str:
    """A name as a file's: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:NAME_CHARACTERS].strip("-") or "unnamed"


def short(named: str) -> str:
    """Six hex digits of a name's hash."""
    return hashlib.sha256(named.encode("utf-8", "replace")).hexdigest()[:6]


def of_project(name: str, key: str) -> str:
    """The page of a project: two of one name have different ones."""
    return f"{PROJECTS}{slug(name)}-{short(key)}.md"


def is_about_all(path: str) -> bool:
    """Whether a file is the page of what holds everywhere, or stands beside it."""
    return _ABOUT_ALL.fullmatch(path) is not None


def short_key(path: str) -> str:
    """By what the project of a page is known, `short` of its key; "" for a page of none or of several."""
    found = _OF_PROJECT.fullmatch(path)
    return found[1] if found else ""
