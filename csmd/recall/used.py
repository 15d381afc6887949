"""Whether a session made use of what it was told: its own words turn up in what the assistant says or calls next.

What somebody else said first proves nothing: a word of the prompt, of what was in the context before, of a tool's
result. So a told thing is followed turn by turn, and loses every mark that another's turn brings before the assistant's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from csmd import text as texts

#: By which kind of mark use is told, the surest first; "" where it is not.
By = Literal["command", "path", "name", "words", ""]
#: Who says a piece: the assistant in words, the assistant in a call of a tool, anybody else.
Voice = Literal["said", "called", "other"]

#: So much of what a told thing has of its own must stand in one passage: two words of it, or one of a text of three.
SHARE, FEW, SHORT = 0.4, 2, 3
#: Of one turn so many characters are looked at: the rest of a longer one is a file or a log.
LOOKED_AT = 20_000

_CODE = re.compile(r"`([^`\n]{2,120})`")
_PATH = re.compile(
    r"(?<![\w:/.-])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*\w|\b[\w-]+(?:\.[\w-]+)*\.[a-z][a-z0-9]{0,5}\b"
)
_NAME = re.compile(
    r"(?<![\w-])(?:--[a-z][\w-]+|[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Z]{2,}\d+|[a-z]+-[a-z]+-[\w-]+)(?![\w-])"
)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)(?:"(\s{0,3}:)?|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ABBREVIATED = re.compile(r"(?:[a-z]\.)+[a-z]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a told thing was used, by which kind of mark, and the marks themselves (which are never stored)."""

    used: bool
    by: By = ""
    marks: tuple[str, ...] = ()


NOT_USED = Verdict(used=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """A turn as it is compared: who says it, its text folded, and the stems of each of its passages."""

    voice: Voice
    folded: str
    passages: tuple[frozenset[str], ...]

    @property
    def stems(self) -> frozenset[str]:
        """The stems of all of it."""
        return frozenset().union(*self.passages)


@dataclass(slots=True)
class Followed:
    """A told thing with the marks that nobody else has brought yet; `words` are stems and a word of each, once `size`."""

    marks: dict[str, By]
    words: dict[str, str]
    size: int
    verdict: Verdict = field(default=NOT_USED)


def followed(said: str) -> Followed:
    """A text that was told, with what it can be known by."""
    marks: dict[str, By] = {}
    for span in _CODE.findall(said):
        if " " in span.strip():
            marks[_folded(span)] = "command"
    for path in _PATH.findall(said):
        if not _ABBREVIATED.fullmatch(path):
            whole = path.casefold().removeprefix("./")
            marks.setdefault(whole, "path")
            marks.setdefault("/".join(whole.split("/")[-2:]), "path")
    for name in _NAME.findall(said):
        marks.setdefault(name.casefold(), "name")
    rest = _NAME.sub(" ", _PATH.sub(" ", _CODE.sub(_unless_a_word, said)))
    words: dict[str, str] = {}
    for word in texts.content_words(rest):
        if not texts.turns_round(word):
            words.setdefault(texts.stem(word), word)
    return Followed(marks=marks, words=words, size=len(words))


def _unless_a_word(span: re.Match[str]) -> str:
    return " " if " " in span[1].strip() else span[1]


def piece(said: str, voice: Voice) -> Piece:
    """A turn for comparing; of a call what its arguments say, in one passage, for its keys are the tool's."""
    said = _arguments(said) if voice == "called" else said
    said = said[:LOOKED_AT]
    parts = said.splitlines() if voice == "said" else [said]
    passages = (frozenset(map(texts.stem, texts.content_words(part))) for part in parts)
    return Piece(voice, _folded(said), tuple(one for one in passages if one))


def follow(told: Iterable[Followed], one: Piece, is_common: Callable[[str], bool]) -> None:
    """Holds the told things against the next turn: the assistant's may show use, another's takes marks away."""
    stems = one.stems
    for item in told:
        if item.verdict.used:
            continue
        if one.voice == "other":
            for mark in [mark for mark, by in item.marks.items() if _brings(one.folded, mark, by)]:
                del item.marks[mark]
            for word in item.words.keys() & stems:
                del item.words[word]
        else:
            item.verdict = _verdict(item, one, stems, is_common)


def _verdict(item: Followed, one: Piece, stems: frozenset[str], is_common: Callable[[str], bool]) -> Verdict:
    found = [mark for mark in item.marks if _holds(one.folded, mark)]
    for by in ("command", "path", "name"):
        if some := tuple(mark for mark in found if item.marks[mark] == by):
            return Verdict(used=True, by=by, marks=some)
    if not item.words.keys() & stems:
        return NOT_USED
    own = {stem for stem, word in item.words.items() if not is_common(word)}
    for passage in one.passages:
        there = own & passage
        # A call says little, and what it says is done; but the last word that is left of a long text is nobody's.
        alone = (one.voice == "called" or there == own) and len(there) * SHORT >= item.size
        if there and len(there) >= SHARE * len(own) and (len(there) >= FEW or alone):
            return Verdict(used=True, by="words", marks=tuple(sorted(item.words[stem] for stem in there)))
    return NOT_USED


def _holds(folded: str, mark: str) -> bool:
    """Whether a text holds a mark as a whole; of a path its end suffices, as others begin it elsewhere."""
    if mark not in folded:
        return False
    return re.search(rf"(?<![\w-]){re.escape(mark)}(?![\w-]|\.\w)", folded) is not None


def _brings(folded: str, mark: str, by: By) -> bool:
    """Whether a text says a mark, of a path at least the file's name: who asks about a file needs not say where it is."""
    return _holds(folded, mark) or (by == "path" and _holds(folded, mark.rpartition("/")[2]))


def _folded(said: str) -> str:
    return texts.squeeze(said).casefold()


def _arguments(call: str) -> str:
    """The strings of a call's input but its keys, a line each; it may be cut in its middle and is no JSON then."""
    return "\n".join(_ESCAPED.sub(_plain, said) for said, key in _STRING.findall(call) if not key)


def _plain(escape: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\n"}.get(escape[1], escape[1])
