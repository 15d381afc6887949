"""Finds renames in statements, and replaces old names in texts by the present ones; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from csmd.cache import cached
from csmd.text.phrases import Word, find_phrases, load_phrases, tokenize
from csmd.text.tokens import STOP_WORDS

#: A statement without one of these words contains no rename.
_RENAMING = ("renam", "now")
_RENAMED = load_phrases("renamed")
MIN_NAME_CHARACTERS = 3


@cached(1024)  # the same fifty memories are read for every statement
def find_renames(text: str) -> tuple[tuple[str, str], ...]:
    """Finds the (old, new) names that a statement says were changed, in small letters."""
    if not any(word in text.casefold() for word in _RENAMING):
        return ()
    renames: dict[tuple[str, str], None] = {}
    for phrase in find_phrases(_RENAMED, tokenize(text)):
        code = phrase.gaps.get("CODE", ())
        if "CODE" in phrase.gaps and any(
            words[-1].plain[0] != "`" for words in (phrase.gaps["OLD"], code[:1]) if words
        ):
            continue
        old, new = choose_name(phrase.gaps["OLD"]), choose_name(phrase.gaps.get("NEW", code)[:1])
        if old != new and min(len(old), len(new)) >= MIN_NAME_CHARACTERS and old not in STOP_WORDS:
            renames[old, new] = None
    return tuple(renames)


def choose_name(words: Sequence[Word]) -> str:
    """Returns the last of some words that is a name, else the last content word, else ""."""
    names = [word for word in words if word.is_name] or [word for word in words if word.stem]
    return names[-1].plain.lstrip("`") if names else ""


def follow_renames(statements: Sequence[str]) -> dict[str, str]:
    """Maps old names to present ones, from statements in order of time; chains are followed."""
    present: dict[str, str] = {}
    for statement in statements:
        for old, new in find_renames(statement):
            present.pop(new, None)  # a name that is used again is not an old one
            present = {earlier: new if name == old else name for earlier, name in present.items()}
            present[old] = new
    return {old: new for old, new in present.items() if old != new}


def mentions_name(text: str, name: str) -> bool:
    """Whether a text mentions a name as a whole word."""
    return name in text.casefold() and bool(_name_pattern(name).search(text))


def apply_renames(text: str, renames: Mapping[str, str]) -> str:
    """Replaces each old name in a text by its new one."""
    for old in [old for old in renames if old in text.casefold()]:
        text = _name_pattern(old).sub(lambda _, new=renames[old]: new, text)  # type: ignore[misc]
    return text


@cached(512)
def _name_pattern(name: str) -> re.Pattern[str]:
    """Returns the pattern of a name on its own, not as a part of a longer one."""
    return re.compile(rf"(?<![\w/.-]){re.escape(name)}(?![\w/-]|\.\w)", re.IGNORECASE)
