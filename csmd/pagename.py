"""How the file of a page is named, and which project one is of; pure."""

from __future__ import annotations

import hashlib
import re

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
