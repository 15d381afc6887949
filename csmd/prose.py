"""Text as passages: runs of neighbouring sentences of one section, the unit that is found and told; pure.

Offsets are characters of the text given, so that a passage is stored as two numbers. A section ends at a heading and at
both ends of a code block; an empty line and a rule end a paragraph. Everything but white space, fences and rules is in
exactly one passage.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from csmd.text import content_words

#: Most content words of a passage, and of its characters: a line of code or base64 may have no word at all.
CONTENT_WORDS, CHARACTERS = 45, 900
#: A paragraph ends a passage that has so many content words already.
ENOUGH_WORDS = 30

_LINE = re.compile(r"[^\n]*\n?")
#: Behind three backticks that open a block there is no further one in their line: else it is code within a sentence.
_FENCE = re.compile(r"\s{0,12}(`{3,}+(?!.*`)|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s|\s{0,3}\*\*[^*\n]{1,80}\*\*:?\s*$")
_RULE = re.compile(r"\s*(?:[-=_*+|:][-=_*+|: ]{2,})$")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])[\"')\]*`]*\s+(?=\S)|(?<=[。！？])")
_SPACE = re.compile(r"\s+")


class Span(NamedTuple):
    """A stretch of a text, in characters: `text[start:end]`."""

    start: int
    end: int


class _Piece(NamedTuple):
    """A sentence or line with its content words; `opens` a section, or only a paragraph."""

    start: int
    end: int
    words: int
    section: bool
    paragraph: bool


def passages(text: str, *, most: int = 10_000) -> list[Span]:
    """Where the passages of `text` stand, in order; at most `most`."""
    spans: list[Span] = []
    start = end = words = 0
    for piece in _pieces(text):
        fits = words + piece.words <= CONTENT_WORDS and piece.end - start <= CHARACTERS
        ends = piece.section or (piece.paragraph and words >= ENOUGH_WORDS)
        if end > start and (ends or not fits):
            spans.append(Span(start, end))
            if len(spans) >= most:
                return spans
            start, words = piece.start, 0
        elif end == start:
            start = piece.start
        end, words = piece.end, words + piece.words
    if end > start:
        spans.append(Span(start, end))
    return spans


def _pieces(text: str) -> Iterator[_Piece]:
    """The sentences of prose and the lines of code, each no longer than a passage may be."""
    fence, section, paragraph = "", True, True
    for match in _LINE.finditer(text):
        line, at = match.group(), match.start()
        if not line:
            break
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence, section = ("" if fence else mark[1]), True
            continue
        if not line.strip() or (not fence and _RULE.match(line)):
            paragraph = True
            continue
        heading = not fence and _HEADING.match(line) is not None
        cuts = [0, len(line)] if fence else [0, *(end.end() for end in _SENTENCE_END.finditer(line)), len(line)]
        for start, end in itertools.pairwise(cuts):
            for part in _bounded(line, start, end):
                words = _words(line[part.start : part.end])
                yield _Piece(at + part.start, at + part.end, words, section or heading, paragraph)
                section = paragraph = heading = False


def _bounded(line: str, start: int, end: int) -> Iterator[Span]:
    """A sentence without the white space around it, in parts where it is longer than a passage."""
    while start < end and line[start].isspace():
        start += 1
    while end > start and line[end - 1].isspace():
        end -= 1
    while end - start > CHARACTERS or (end - start >= CONTENT_WORDS * 2 and _words(line[start:end]) > CONTENT_WORDS):
        cut = _cut(line, start, end)
        yield Span(start, start + len(line[start:cut].rstrip()))
        start = cut
        while start < end and line[start].isspace():
            start += 1
    if end > start:
        yield Span(start, end)


def _cut(line: str, start: int, end: int) -> int:
    """Where a sentence is cut that is too long: behind as many words as a passage may have."""
    cut, words = start, 0
    for space in _SPACE.finditer(line, start, min(end, start + CHARACTERS)):
        words += _words(line[cut : space.start()])
        if words > CONTENT_WORDS:
            break
        cut = space.end()
    return cut if cut > start else min(end, start + CHARACTERS)


def _words(said: str) -> int:
    return len(content_words(said))
