"""Whether the code that a statement speaks of was edited after it was said; pure.

"`parse` drops the time zone" is true until somebody mends `parse`, most often within the hour. What a session says of
code as it is, and what edits take out of that code later in the session, are compared by what both call by name. It
proves nothing about what is true now, and nothing is unbelieved for it: whoever is told the statement is told this, too.
A sentence of a reviewer's names little by itself: the remark around it says what it is about, and what is edited right
after it was handed on mends that. What an assistant that goes through remarks finds "already fixed" was edited, too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd import text as texts
from csmd.distill import halves, orders
from csmd.patterns import at_first_use

#: What says how something is; what somebody wants, decided or promised an edit carries out.
CLAIMS = frozenset({"fact", "gotcha", "constraint"})
DECIDED = frozenset({"decision", "pattern"})
#: An edit that holds so many of its names is about the same, and so is one that takes a name out.
SAME_NAMES = 2
#: Of what is edited in answer to a remark one of its names is enough.
ANSWERED = 1
#: What tells of a change, wants one, or lays something down for good.
_NO_CLAIM = at_first_use(
    r"^\W{0,3}(?:fix(?:ed|es)?|add(?:ed|s)?|remov(?:ed?|es)|renam(?:ed?|es)|updat(?:ed?|es)|replac(?:ed?|es)|mov(?:ed?|es)|extract(?:ed|s)?|introduc(?:ed?|es)"
    r"|implement\w*|let['’]?s|please|can (?:you|we)|we (?:should|need|want)|i (?:want|['’]?d like)|(?:you )?(?:never|always|do not|don['’]t)|if (?:there|the|a|an) )"
    r"|\b(?:now|no longer|used to|was changed|were changed|has been|have been|must)\b",
    re.IGNORECASE,
)


#: What is edited there says how something is tried out, not how it is.
_TEST = re.compile(r"(?:^|[_.-])(?:tests?|spec)(?:[_.-]|$)|(?<!la)tests?\.(?:java|kt|cs|swift|php)$")
#: A file, as it is named; and the line in it that is meant.
_FILE = re.compile(r"\.\w{1,5}$")
_LINE = re.compile(r"(?<=\w):\d+(?:-\d+)?$")
#: What is written for people; only a statement that names it is about it.
_PROSE = re.compile(r"\.(?:md|rst|txt|adoc)$")
#: A name in code, qualified or not, with what belongs to it; and its parts.
_WORD = re.compile(r"[\w$-]+(?:[./-][\w$-]+)*")
_PART = re.compile(r"\w+")
#: An item of a list, and how many make one.
_ITEM = re.compile(r"^[ \t]{0,3}(?:[-*•]|\d{1,2}[.)])[ \t]+\S", re.MULTILINE)
SEVERAL = 2
#: A shorter name stands in too much.
LEAST_NAME = 3


class Edit(NamedTuple):
    """One replacement in the file at `path`, made by the tool call with this uuid."""

    uuid: str
    at: str
    ordinal: int
    path: str
    old: str
    new: str


class Claim(NamedTuple):
    """What was said of code at an ordinal of its session; `key` tells claims apart.

    `around` is the remark of a reviewer that it was taken from, "" for what is no remark; what is done before the
    ordinal `answered` is done in answer to it.
    """

    key: int
    said: str
    ordinal: int
    around: str = ""
    answered: int = 0


class _Named(NamedTuple):
    """What a claim calls by name, by itself and with the remark around it."""

    ordinal: int
    names: frozenset[str]
    around: frozenset[str]
    answered: int


class Place(NamedTuple):
    """The file that an edit changed, and the names there before and after."""

    file: str
    old: Counter[str]
    new: Counter[str]


def is_claim(said: str, category: str, *, by_assistant: bool, turn: str) -> bool:
    """Whether a statement says how something is: an assistant's, whatever it decides, and a reviewer's that a `turn` hands on."""
    if remark(said, category, turn):
        return not all(_NO_CLAIM.search(one) for one in texts.sentences(said))
    claims = category in CLAIMS or (by_assistant and category in DECIDED)
    return claims and not _NO_CLAIM.search(said)


def remark(said: str, category: str, turn: str) -> str:
    """The remark of a reviewer that a statement was taken from, where a `turn` hands one on, or tells what was found; "" for none.

    A short text speaks of one thing; of a list it is the item that shares the most words with the statement. What is
    only made of such turns, as a habit is, stands in none of them.
    """
    if not (orders.remarks(turn) or (category in CLAIMS and orders.is_finding(turn))):
        return ""
    words = set(texts.content_words(said))
    if len(words & set(texts.content_words(turn))) <= len(words) / 2:
        return ""
    starts = [found.start() for found in _ITEM.finditer(turn)]
    if len(starts) < SEVERAL:
        return turn
    items = [turn[start:end] for start, end in zip(starts, [*starts[1:], len(turn)], strict=True)]
    return max(items, key=lambda item: len(words & set(texts.content_words(item))))


def edited(claims: Iterable[Claim], edits: Sequence[Edit]) -> dict[int, Edit]:
    """By a claim's key the last edit behind it that changed the code of which it says something; each edit is read once."""
    waiting = {one.key: _Named(one.ordinal, _names(one.said), _names(one.around), one.answered) for one in claims}
    found: dict[int, Edit] = {}
    for edit in reversed(edits):
        before = [(key, one) for key, one in waiting.items() if one.ordinal < edit.ordinal]
        place = _place(edit) if before else None
        for key, one in before:
            least = ANSWERED if edit.ordinal < one.answered else SAME_NAMES
            if place is not None and (_is_about(one.names, place) or _mends(one.around, place, least)):
                found[key] = edit
                del waiting[key]
    return found


def _names(said: str) -> frozenset[str]:
    """What is called by name, each part of a qualified name by itself; a file keeps its ending."""
    found = {_LINE.sub("", name) for name in halves.names(said)}
    parts = {part for name in found if not _FILE.search(name) for part in re.split(r"[.(:\s]+", name)}
    return frozenset(name for name in parts | {name for name in found if _FILE.search(name)} if len(name) > LEAST_NAME)


def _place(edit: Edit) -> Place | None:
    """What an edit changed; None for a test, which says how something is tried out."""
    file = edit.path.rpartition("/")[2].casefold()
    return None if _TEST.search(file) else Place(file, _counted(edit.old), _counted(edit.new))


def _is_about(named: frozenset[str], place: Place) -> bool:
    """Whether something named is taken out at a place, or it holds several of the names, before or after, or the only one.

    The name of the file counts as one of the place; where nothing else is named any edit of it does.
    """
    if _PROSE.search(place.file) and place.file not in named:
        return False
    there = [name for name in named if name in place.old]
    if not there:
        return named == {place.file}
    held = len({*there, *(name for name in named if name in place.new)}) + (place.file in named)
    return held >= min(SAME_NAMES, len(named)) or any(place.old[name] > place.new[name] for name in there)


def _mends(named: frozenset[str], place: Place, least: int) -> bool:
    """Whether a place holds at least so many of the names of a remark, one of them in the code, before or after."""
    if _PROSE.search(place.file) and place.file not in named:
        return False
    there = sum(name in place.old or name in place.new for name in named)
    return there > 0 and there + (place.file in named) >= least


def _counted(code: str) -> Counter[str]:
    """The names in code with how often each stands there, whole and by the parts of qualified ones."""
    whole = _WORD.findall(code.casefold())
    return Counter([*whole, *(part for word in whole if not word.isidentifier() for part in _PART.findall(word))])
