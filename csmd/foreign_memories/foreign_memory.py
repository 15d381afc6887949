"""The records that a reader of another program's file yields, and the conversion of texts and times; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, get_args

from csmd.text import display, prose
from csmd.vocabulary import Category

#: Most characters of a text that is taken in as one memory.
MAX_CHARACTERS = 1_000
#: Another program's word for a kind -> the category here; the categories' own names mean themselves, others are facts.
CATEGORY: dict[str, Category] = {
    **{name: name for name in get_args(Category)},
    "bugfix": "gotcha", "discovery": "gotcha", "problem": "gotcha", "requirement": "constraint", "rule": "convention",
    "design": "decision", "howto": "procedure", "technique": "procedure", "goal": "plan", "todo": "plan",
    "user": "preference", "feedback": "convention",
}  # fmt: skip

_SLASHED = re.compile(r"[\s_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMemory:
    """One memory of another program.

    `source_id` names it there ("observation 17"), `kind` is that program's word, `at` UTC or "". `project` is a path,
    a directory's name or the name of Claude Code's folder for it, "" where the file names none.
    """

    source_id: str
    kind: str
    text: str
    at: str = ""
    project: str = ""

    @property
    def category(self) -> Category:
        """The category of the kind."""
        return CATEGORY.get(_SLASHED.sub("-", self.kind.lower()), "fact")


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that a reader leaves out; the reason is a phrase by which entries are counted."""

    source_id: str
    reason: str


#: The records that a reader yields.
ForeignContent = Iterator[ForeignMemory | Skipped]


def shorten(text: str, limit: int = MAX_CHARACTERS) -> str:
    """Returns a text on one line: its first sentences that fit into `most` characters."""
    line, beginning = display.squeeze(text), ""
    if len(line) <= limit:
        return line
    for sentence in prose.split_sentences(line):
        if len(beginning) + len(sentence) > limit:
            break
        beginning = f"{beginning} {sentence}".strip()
    return beginning or display.cut(line, limit)


def add_subject(subject: str, text: str) -> str:
    """Puts the subject before a text that does not name it."""
    return text if not subject or subject.lower() in text.lower() else f"{subject}: {text}"


def to_utc(value: Any) -> str:
    """Converts ISO 8601, a date, or seconds since 1970 to a stored time; "" for anything else. A local time is UTC."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, UTC)
        elif isinstance(value, date) and not isinstance(value, datetime):
            moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
        else:
            moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
