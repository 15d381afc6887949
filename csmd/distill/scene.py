"""The scene of what was said: the file that was at hand, or the question that was asked; pure.

"Send the flags, too" helps nobody who does not know where, nor does "the catch: only the default branch counts" without
what somebody wanted to know. Beside it the scene is told, which claims no more than that it was said there: the only
file that the turn names, else the one that the work on it changed most; of an answer on which nothing was done the
question; of a reviewer's remark that it is one. What holds wherever one works, and what says where it belongs itself,
is told as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd import text
from csmd.distill import orders
from csmd.patterns import at_first_use

#: What says by itself where: a file, a path, a name of code.
_PLACE = re.compile(
    r"(?<![\w@/])(?:[\w.~-]{1,60}/){1,12}[\w.-]{1,60}|(?<![\w.])\.?(?:[\w-]{1,60}\.){1,4}(?:py|go|tsx?|jsx?|rs|md|ya?ml|json|jsonl|toml|sh|sql|java|kt|rb|php|cs|cpp|c|h|css|html|vue|swift|env)\b"
    r"|\b[a-z]{1,40}[A-Z]\w{1,60}|\b[A-Z][a-z]{1,40}[A-Z]\w{0,60}|\b\w{1,40}_\w{1,60}|\b[\w.]{2,60}\(\)|(?<!\w)\.env\b"
)
#: A file, as a turn names it: with a known ending.
_FILE = re.compile(
    r"(?<![\w@/.])((?:[\w.~-]{1,60}/){0,12}[\w.-]{1,60}\.(?:py|go|tsx?|jsx?|rs|md|ya?ml|json|toml|sh|sql|java|kt|rb|php|cs|cpp|c|h|css|html|vue|swift))(?![\w/-])"
)
#: What a user lays down for wherever one works.
_EVERYWHERE = at_first_use(
    r"\b(?:always|never|every(?:where|thing|body|one| time)|whenever|wherever|in general|generally|from now on|prefer\w*|usually|any(?:where|time))\b",
    re.IGNORECASE,
)
#: What is written beside the work: plans, notes and what is gone tomorrow.
_BESIDE = re.compile(
    r"[\\/]\.claude[\\/](?:plans|projects|todos)[\\/]|^(?:/private)?/(?:var/)?tmp/|[\\/](?:Temp|scratch\w*)[\\/]"
)
#: What tries the work out counts only where nothing else was changed.
_TEST = re.compile(r"(?:^|[_.-])(?:tests?|spec)(?:[_.-]|$)|(?<!la)tests?\.(?:java|kt|cs|swift|php)$", re.IGNORECASE)
#: Of a turn so much is looked at; a file at hand made this share of the changes.
LOOKED_AT, MOST_OF = 4_000, 0.5
#: How many prompts further back an assistant may still speak of what it changed.
BACK = 3
#: The parts of a path that are told.
PARTS = 2


#: A question, or the sentence with which a turn begins, is told whole or not at all, in so many characters, where it has so
#: many words that say something, and what was said does not hold this share of them itself.
QUOTED_CHARACTERS, LEAST_ASKED, HELD = 170, 3, 0.8
#: What asks for a look or for words; about what says the rest of the question.
_ASKING = frozenset(
    "check look explain show tell see review take give find help think know sure right possible change changes make add maybe actually"
    " implement following plan got feedback comment comments idea context thoughts branch pr".split()
)
#: An errand that is put as a question.
_ERRAND = at_first_use(
    r"^(?:[\w,]+ ){0,3}(?:can|could|would|will) you (?:please |also |again )?(?!check|explain|tell|show|say|see|find|look|confirm|verify)",
    re.IGNORECASE,
)
_QUESTION_END = ("?", "？")


#: The scene of a reviewer's remark that a user hands on.
REVIEW = "in a review"


class Said(NamedTuple):
    """What was said at an ordinal of its session, in which turn; `key` tells statements apart."""

    key: int
    text: str
    uuid: str
    ordinal: int
    by_user: bool
    turn: str
    corrects: bool = False


class Change(NamedTuple):
    """A change to the file at `path` by the tool call with this uuid; `anew` is one that wrote the whole of it."""

    uuid: str
    ordinal: int
    path: str
    at: str = ""
    anew: bool = False


class Prompt(NamedTuple):
    """What a user typed at an ordinal of a session."""

    uuid: str
    ordinal: int
    text: str


class Scene(NamedTuple):
    """The scene as a phrase, and the turn that shows it."""

    text: str
    uuid: str


def scenes(said: Iterable[Said], changes: Sequence[Change], prompts: Sequence[Prompt]) -> dict[int, Scene]:
    """By a statement's key its scene; changes and prompts stand in order."""
    exchanges = _exchanges(changes, prompts)
    found = {one.key: _scene(one, exchanges) for one in said}
    return {key: there for key, there in found.items() if there is not None}


def written_anew(said: Iterable[Said], changes: Sequence[Change], prompts: Sequence[Prompt]) -> dict[int, Change]:
    """By the key of what an assistant said of its work the last change behind the exchange that wrote that file anew."""
    exchanges = _exchanges(changes, prompts)
    found: dict[int, Change] = {}
    for one in said:
        at = bisect_right(exchanges.begins, one.ordinal)
        if one.by_user or not at or at == len(exchanges.begins):
            continue
        path = _most(exchanges.within(exchanges.begins[at - 1], exchanges.begins[at]))
        behind = exchanges.within(exchanges.begins[at], None) if path else ()
        again = next((change for change in reversed(behind) if change.anew and change.path == path), None)
        if again is not None:
            found[one.key] = again
    return found


class _Exchanges(NamedTuple):
    """What was changed behind which prompt, both with their ordinals."""

    work: Sequence[Change]
    places: Sequence[int]
    prompts: Sequence[Prompt]
    begins: Sequence[int]

    def within(self, first: int, end: int | None) -> Sequence[Change]:
        upto = len(self.work) if end is None else bisect_left(self.places, end)
        return self.work[bisect_left(self.places, first) : upto]

    def last(self, ordinal: int) -> Prompt:
        return self.prompts[bisect_right(self.prompts, ordinal, key=lambda one: one.ordinal) - 1]


def _exchanges(changes: Sequence[Change], prompts: Sequence[Prompt]) -> _Exchanges:
    work = [one for one in changes if one.path and not _BESIDE.search(one.path)]
    typed = {one.ordinal for one in prompts}
    # What is typed one after the other is answered as one.
    begins = [one.ordinal for one in prompts if one.ordinal - 1 not in typed]
    return _Exchanges(work, [one.ordinal for one in work], prompts, begins)


def _scene(said: Said, exchanges: _Exchanges) -> Scene | None:
    at = bisect_right(exchanges.begins, said.ordinal)
    end = exchanges.begins[at] if at < len(exchanges.begins) else None
    if said.by_user:
        if orders.hands_on(said.turn) and not said.corrects:
            return Scene(", ".join(filter(None, (REVIEW, _lead(said)))), said.uuid)
        if _EVERYWHERE.search(said.text):
            return None
        lead = _lead(said)
        return _at_hand(said, exchanges.within(said.ordinal, end)) or (Scene(lead, said.uuid) if lead else None)
    first = exchanges.begins[at - 1] if at else 0
    work = exchanges.within(first, end)
    if not work and at and (asked := _question(exchanges.last(said.ordinal), said.text)) is not None:
        return asked
    for back in range(1, BACK):
        if work or at <= back:
            break
        work = exchanges.within(exchanges.begins[at - back - 1], first)
    return _at_hand(said, work)


def _at_hand(said: Said, work: Sequence[Change]) -> Scene | None:
    """The only file that the turn names, else the one that the work changed most, for what names no place."""
    if _PLACE.search(said.text):
        return None
    named = {match[1] for match in _FILE.finditer(said.turn[:LOOKED_AT])}
    if named:
        return _at(named.pop(), said.uuid) if len(named) == 1 else None
    return _changed(work)


def _changed(work: Sequence[Change]) -> Scene | None:
    """The file that was changed most, by its last change."""
    path = _most(work)
    return _at(path, next(one.uuid for one in reversed(work) if one.path == path)) if path else None


def _most(work: Sequence[Change]) -> str:
    """The file with at least half of the changes, those of tests left out where there are others; "" for none."""
    counted = [one for one in work if not _TEST.search(_parts(one.path)[-1])] or work
    path, times = Counter(one.path for one in counted).most_common(1)[0] if counted else ("", 0)
    return path if times >= MOST_OF * len(counted) else ""


def _question(prompt: Prompt, answer: str) -> Scene | None:
    """The last question of a prompt, where it says something that its answer does not."""
    question = next((one for one in reversed(_sentences(prompt.text)) if one.endswith(_QUESTION_END)), "")
    if _ERRAND.search(question) or not _adds(question, answer):
        return None
    return Scene(f"in answer to {_quoted(question)}", prompt.uuid)


def _lead(said: Said) -> str:
    """The sentence with which a turn begins, as a phrase, where what was said stands behind it and leaves its words out."""
    lead, more = (*_sentences(said.turn)[:2], "", "")[:2]
    if lead.endswith(":") and len(text.content_words(lead)) < LEAST_ASKED:
        lead = f"{lead} {more}"
    return f"after {_quoted(lead)}" if _adds(lead, said.text) else ""


def _sentences(turn: str) -> list[str]:
    rows = text.lines_of_prose(turn[:LOOKED_AT])
    return [text.squeeze(one) for row in rows for one in text.sentences(row)]


def _adds(sentence: str, said: str) -> bool:
    """Whether a sentence is short, and says something that is not in what was said."""
    words = {text.stem(word) for word in text.content_words(sentence) if word not in _ASKING}
    held = words & {text.stem(word) for word in text.content_words(said)}
    return len(sentence) <= QUOTED_CHARACTERS and len(words) >= LEAST_ASKED and len(held) < HELD * len(words)


def _quoted(sentence: str) -> str:
    return '"' + sentence.replace('"', "'") + '"'


def _at(path: str, uuid: str) -> Scene:
    return Scene("at " + "/".join(_parts(path)[-PARTS:]), uuid)


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[\\/]+", path) if part] or [path]
