"""Reads a short correction of a value: "Releases go out on Tuesdays -> no, Thursdays"; pure.

A value is of a closed kind, so that what it replaces is certain: a day of the week, a month, a time of day, a number.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from csmd import data
from csmd.text.display import ARROW
from csmd.text.tokens import STOP_WORDS

_WORDS = data.word_table("sentence_words.txt")
#: Words of a correction besides its value, and those of them that say that the other value is wrong.
_REFUSALS = _WORDS["value_refused"]
_BESIDE_VALUE = (
    STOP_WORDS
    | _REFUSALS
    | _WORDS["value_lead"]
    | _WORDS["takes"]
    | _WORDS["interjection"]
    | _WORDS["connective"]
    | _WORDS["adverb"]
)
#: Words before a value that an answer denies; a preposition may stand between them.
_DENIALS = frozenset("not never nicht kein keine keinen".split())
_PREPOSITIONS = frozenset("on at in am an im um the to".split())
#: Most words of a correction.
MAX_WORDS = 7
_NUMBER = r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/-])(?!\.\d)"
_KINDS = {
    "day": re.compile(rf"\b(?:{'|'.join(calendar.day_name)})s?\b", re.IGNORECASE),
    "month": re.compile(rf"\b(?:{'|'.join(name for name in calendar.month_name if len(name) > 3)})\b"),
    "time": re.compile(r"(?<![\w:])\d{1,2}(?::\d{2}(?: ?[ap]m)?| ?[ap]m)\b", re.IGNORECASE),
    "number": re.compile(_NUMBER),
}
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class Value(NamedTuple):
    """A value in a text, and where it is."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The value in small letters; a day without its plural."""
        folded = self.text.casefold().replace(" ", "")
        return folded.removesuffix("s") if self.kind == "day" else folded


def find_values(text: str) -> Iterator[Value]:
    """Yields the values in a text, by kind."""
    for kind, pattern in _KINDS.items():
        yield from (Value(kind, match[0], *match.span()) for match in pattern.finditer(text))


def find_corrected(sentences: Sequence[str], answer: str) -> str:
    """Returns the sentence whose only value of a kind an answer replaces; "" if there is none, or it is unclear which."""
    matching = [text for text in sentences if correct(text, answer)]
    value = next((value for value in find_values(answer)), None)
    of_kind = [text for text in sentences if value and any(other.kind == value.kind for other in find_values(text))]
    return matching[0] if len(matching) == 1 == len(of_kind) else ""


def correct(sentence: str, answer: str) -> str:
    """Returns a sentence with its value replaced by that of an answer that refuses it; "" if it does not."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(answer)]
    if _REFUSALS.isdisjoint(words) or len(words) > MAX_WORDS:
        return ""
    old_values = list(find_values(sentence))
    names = {value.name for value in old_values}
    new_values = [value for value in find_values(answer) if value.name not in names and not _is_denied(answer, value)]
    if len(new_values) != 1:
        return ""
    (new,) = new_values
    old = [value for value in old_values if value.kind == new.kind]
    rest = answer
    for value in sorted(find_values(answer), key=lambda each: -each.start):
        rest = rest[: value.start] + " " + rest[value.end :]
    others = {word.casefold().replace("’", "'") for word in _WORD.findall(rest)} - _BESIDE_VALUE
    if len(old) != 1 or not others <= _unit_after(sentence, old[0]):
        return ""
    is_plural = new.kind == "day" and old[0].text.endswith("s") and not new.text.endswith("s")
    return f"{sentence[: old[0].start]}{new.text}{'s' * is_plural}{sentence[old[0].end :]}"


def _is_denied(text: str, value: Value) -> bool:
    """Whether a text says that a value is not so: "no, not on Friday"."""
    before = [word.casefold() for word in _WORD.findall(text[: value.start])]
    return not _DENIALS.isdisjoint([word for word in before if word not in _PREPOSITIONS][-1:])


def _unit_after(text: str, value: Value) -> set[str]:
    """Returns the word after a number, which may be its unit, or an empty set."""
    unit = _WORD.match(text[value.end :].lstrip())
    return {unit[0].casefold()} if unit and value.kind == "number" else set()


def read_claim(statement: str) -> str:
    """Returns what a statement "sentence -> correction" claims, without the corrected value; any other is returned whole."""
    sentence, arrow, answer = statement.rpartition(ARROW)
    corrected = correct(sentence, answer) if arrow else ""
    return corrected.rstrip("?？ ") or statement
