"""What may be told of a text that was not written for others: known places by placeholders, and csmd's own words.

A word that does not stand in csmd's own source is told as `…`, whatever it is: a name, a secret, something somebody
said. So nothing has to be recognised to be left out. Numbers stay, but for those that look like a card's or a phone's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import csmd

LEFT_OUT = "…"
#: A shorter name or path would take words apart that have nothing to do with it.
SHORTEST = 4
LONGEST_NUMBER = 10
_WORD = re.compile(r"[^\W_]+")
_PATH = re.compile(r"(?<![\w<>/.~])~?/[^\s\"'`,;:()<>]+")
_GROUPS = re.compile(r"\d{3,}(?:[ -]\d{3,}){2,}")


@cache
def vocabulary() -> frozenset[str]:
    """Every word of csmd's own source, in small letters."""
    found: set[str] = set()
    for path in Path(csmd.__file__).parent.rglob("*.py"):
        found.update(word.lower() for word in _WORD.findall(path.read_text(encoding="utf-8")) if word.isascii())
    return frozenset(found)


def placeholders(
    places: Mapping[str, str], projects: Iterable[str], names: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """(what stands there, what is told) for places and projects, the longest first, then for names of the machine."""
    known = {path: f"<{name}>" for name, path in places.items()}
    for number, root in enumerate(projects, 1):
        known.setdefault(root, f"<project {number}>")
    told = sorted(((path, name) for path, name in known.items() if len(path) >= SHORTEST), key=lambda row: -len(row[0]))
    return (*told, *((word, f"<{name}>") for name, word in names.items() if len(word) >= SHORTEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    """Tells texts and JSON values with these placeholders (see `placeholders`)."""

    known: tuple[tuple[str, str], ...] = ()
    words: frozenset[str] = field(default_factory=vocabulary)

    def text(self, said: str) -> str:
        """A text without a word that is not csmd's."""
        for place, name in self.known:
            said = re.sub(rf"(?<![\w-]){re.escape(place)}(?![\w-])", name, said)
        said = _PATH.sub("<path>", said)
        said = _GROUPS.sub(LEFT_OUT, said)
        return _WORD.sub(self._word, said)

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        if word.isascii() and word.isdecimal():
            return word if len(word) <= LONGEST_NUMBER else LEFT_OUT
        return word if word.lower() in self.words else LEFT_OUT

    def value(self, value: Any) -> Any:
        """A JSON value with every text and key of it told."""
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return self.text(value) if isinstance(value, str) else value
