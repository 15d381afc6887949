"""The scene of what was said: the file that was at hand, the question that was asked, what was said before it; pure.

"Send the flags, too" helps nobody who does not know where, nor does "the catch: only the default branch counts" without
what somebody wanted to know. Beside it the scene is told, which claims no more than that it was said there: the only
file that the turn names, else the one that the work on it changed most; of an answer on which nothing was done the
question; else the sentence with which the turn began; of a reviewer's remark that it is one. What holds wherever one
works, and what says where it belongs itself, is told as it is.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csmd import text
from csmd.cache import cached
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
#: The parts of a path that are told, none of them odd: a path may be anybody's.
PARTS = 2
_PART = re.compile(r"[\w.@+()\[\]~ -]{1,60}")
#: A question, or the sentence with which a turn begins, is told whole or not at all, in so many characters, where it has so
#: many words that say something, and what was said does not hold this share of them itself.
QUOTED_CHARACTERS, LEAST_ASKED, HELD = 170, 3, 0.8
#: What was said stands in a sentence when one holds this share of the words of the other.
STANDS = 0.6
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
    """A change by the tool call with this uuid to the file at `path` below its project, "" for one elsewhere; `anew` wrote it whole."""

    uuid: str
    ordinal: int
    path: str
    at: str = ""
    anew: bool = False


class Prompt(NamedTuple):
    """What an assistant answers to at an ordinal of a session; `text` is "" for what no user typed."""

    uuid: str
    ordinal: int
    text: str


class Scene(NamedTuple):
    """The scene as a phrase, and the turn that shows it."""

    text: str
    uuid: str


def scenes(said: Iterable[Said], changes: Sequence[Change], prompts: Sequence[Prompt]) -> dict[int, Scene]:
    """By a statement's key its scene; changes and prompts stand in order."""
    exchanges = _Exchanges(changes, prompts)
    found = {one.key: _scene(one, exchanges) for one in said}
    return {key: there for key, there in found.items() if there is not None}


def written_anew(said: Iterable[Said], changes: Sequence[Change], prompts: Sequence[Prompt]) -> dict[int, Change]:
    """By the key of what an assistant said of its work the last change behind the exchange that wrote that file anew."""
    exchanges = _Exchanges(changes, prompts)
    last = {one.path: one for one in exchanges.work if one.anew}
    found: dict[int, Change] = {}
    for one in said:
        at = exchanges.at(one.ordinal)
        most = exchanges.most(at) if at and not one.by_user else None
        again = last.get(most.path) if most is not None else None
        end = exchanges.end(at)
        if again is not None and end is not None and again.ordinal > end:
            found[one.key] = again
    return found


class _Exchanges:
    """What was changed between which prompts; a session's statements ask for the same ones again and again."""

    def __init__(self, changes: Sequence[Change], prompts: Sequence[Prompt]) -> None:
        self.work = [one for one in changes if one.path and not _BESIDE.search(one.path)]
        self._places = [one.ordinal for one in self.work]
        self._prompts = prompts
        self._typed = [one.ordinal for one in prompts]
        typed = set(self._typed)
        # What is typed one after the other is answered as one.
        self._begins = [one.ordinal for one in prompts if one.ordinal - 1 not in typed]
        self._most: dict[tuple[int, int | None], Change | None] = {}

    def at(self, ordinal: int) -> int:
        """The number of the exchange in which something stands, 0 before the first."""
        return bisect_right(self._begins, ordinal)

    def end(self, at: int) -> int | None:
        """The ordinal at which an exchange ends, None for the last."""
        return self._begins[at] if at < len(self._begins) else None

    def is_idle(self, at: int) -> bool:
        """Whether nothing was changed in an exchange."""
        first, upto = self._bounds(self._begins[at - 1] if at else 0, self.end(at))
        return first == upto

    def most(self, at: int) -> Change | None:
        """The last change of the file that an exchange changed most."""
        return self.behind(self._begins[at - 1] if at else 0, self.end(at))

    def behind(self, first: int, end: int | None) -> Change | None:
        """The same of all that was changed from one ordinal to another."""
        bounds = self._bounds(first, end)
        if bounds not in self._most:
            self._most[bounds] = _most(self.work[slice(*bounds)])
        return self._most[bounds]

    def _bounds(self, first: int, end: int | None) -> tuple[int, int]:
        return bisect_left(self._places, first), len(self._places) if end is None else bisect_left(self._places, end)

    def prompt(self, ordinal: int) -> Prompt:
        """The last prompt before something."""
        return self._prompts[bisect_right(self._typed, ordinal) - 1]


def _scene(said: Said, exchanges: _Exchanges) -> Scene | None:
    at = exchanges.at(said.ordinal)
    if said.by_user:
        lead = _lead(said)
        if not said.corrects and _is_remark(said):
            return Scene(", ".join(filter(None, (REVIEW, lead))), said.uuid)
        if _EVERYWHERE.search(said.text):
            return None
        there = _at_hand(said, exchanges.behind(said.ordinal, exchanges.end(at)))
        return there or (Scene(lead, said.uuid) if lead else None)
    if at and exchanges.is_idle(at) and (asked := _question(exchanges.prompt(said.ordinal), said.text)) is not None:
        return asked
    back = next((back for back in range(BACK) if at - back >= 0 and not exchanges.is_idle(at - back)), None)
    return _at_hand(said, exchanges.most(at - back) if back is not None else None)


def _at_hand(said: Said, changed: Change | None) -> Scene | None:
    """The only file that the turn names, else the one that was changed most, for what names no place."""
    if _PLACE.search(said.text):
        return None
    named = {match[1] for match in _FILE.finditer(said.turn[:LOOKED_AT])}
    if named:
        return _at(named.pop(), said.uuid) if len(named) == 1 else None
    return _at(changed.path, changed.uuid) if changed is not None else None


def _most(work: Sequence[Change]) -> Change | None:
    """The last change of the file with at least half of the changes, those of tests left out where there are others."""
    counted = [one for one in work if not _is_test(one.path)] or work
    path, times = Counter(one.path for one in counted).most_common(1)[0] if counted else ("", 0)
    return (
        next(one for one in reversed(counted) if one.path == path) if path and times >= MOST_OF * len(counted) else None
    )


@cached(4096)
def _is_test(path: str) -> bool:
    return _TEST.search(_parts(path)[-1]) is not None


def _question(prompt: Prompt, answer: str) -> Scene | None:
    """The last question of a prompt, where it says something that its answer does not."""
    question = next((one for one in reversed(_sentences(prompt.text)) if one.endswith(_QUESTION_END)), "")
    if _ERRAND.search(question) or not _adds(question, answer):
        return None
    return Scene(f"in answer to {_quoted(question)}", prompt.uuid)


def _lead(said: Said) -> str:
    """The sentence with which a turn begins, as a phrase, where what was said stands in a later one and leaves its words out."""
    lead, *behind = _sentences(said.turn) or [""]
    while behind and len(text.content_words(lead)) < LEAST_ASKED:  # a greeting, a heading; a colon leads on
        lead = f"{lead} {behind.pop(0)}" if lead.endswith(":") else behind.pop(0)
    words = _words(said.text)
    begun = _words(next(iter(_sentences(said.text)), ""))
    if len(begun & _words(lead)) >= STANDS * len(begun):
        return ""  # it begins there itself
    stands = any(len(own & words) >= STANDS * min(len(own), len(words)) > 0 for own in map(_words, behind))
    return f"after {_quoted(lead)}" if stands and _adds(lead, said.text) else ""


def _is_remark(said: Said) -> bool:
    """Whether what was said is of a reviewer's remark: of one that is quoted, or of a turn that is one and finds fault."""
    words = _words(said.text)
    return any(
        one != said.turn or orders.finds_fault(one)
        for one in orders.remarks(said.turn)
        if len(words & _words(one)) >= STANDS * len(words)
    )


def _sentences(turn: str) -> list[str]:
    rows = text.lines_of_prose(turn[:LOOKED_AT])
    return [text.squeeze(one) for row in rows for one in text.sentences(row)]


def _adds(sentence: str, said: str) -> bool:
    """Whether a sentence is short, and says something that is not in what was said."""
    words = frozenset(word for word in _words(sentence) if word not in _ASKING)
    is_held = len(words & _words(said)) >= HELD * len(words)
    return len(sentence) <= QUOTED_CHARACTERS and len(words) >= LEAST_ASKED and not is_held


@cached(1024)
def _words(said: str) -> frozenset[str]:
    return frozenset(text.stem(word) for word in text.content_words(said))


def _quoted(sentence: str) -> str:
    seen = "".join(char if char.isprintable() else " " for char in sentence.replace('"', "'"))
    return '"' + text.squeeze(text.defuse(seen)) + '"'


def _at(path: str, uuid: str) -> Scene | None:
    if path.startswith(("~", "..")) or "/../" in path:
        return None
    parts = _parts(path)[-PARTS:]
    return Scene("at " + "/".join(parts), uuid) if all(map(_PART.fullmatch, parts)) else None


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[\\/]+", path) if part] or [path]
