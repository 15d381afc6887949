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

from csmd.text import Row, content_words, rows_of_prose, sentences, squeeze, with_newlines, without_code

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
    for match in _LINE.finditer(with_newlines(text)):
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


#: How much of a turn is read as prose: its beginning and its end, in characters; longer lines are cut; then rows.
HEAD, TAIL, MAX_LINE, MAX_ROWS = 14_000, 6_000, 2_000, 200

#: What programs put around or into a user's words, and csmd's own injections.
_INSERTED = re.compile(
    r"<(/?)(system-reminder|system_instruction|ide_[a-z_]{1,40}|csmd-[a-z-]{1,40})\b[^<>]{0,300}>", re.IGNORECASE
)
_TITLE = re.compile(r"^ {0,3}#{1,6}[ \t]+(.{1,200})$", re.MULTILINE)
#: Marks of emphasis around words, and those whose other half the end of a sentence has cut off. Code, patterns of files and
#: names like __init__ hold the same marks and mean them.
_EMPHASIS = re.compile(
    r"(`[^`\n]*`)|(?<![\w/.*])(\*{1,3}|~~)(?=[\w\"'`(\[])([^*\n]{1,400}?)(?<=[\w\"'`)\].,:;!?%])\2(?![\w/.*])"
    r"|(?<!\w)__(?=\w)([^_\n]{1,200} [^_\n]{1,200})__(?!\w)"
)
_HALF_EMPHASIS = re.compile(r"(`[^`\n]*`)|^\*{2,3}(?=[\w\"'`(])|(?<=[\w.:;!?)\"'`%])\*{2,3}(?=[ ,;:.]|$)")
_MARKS = re.compile(r"^(?:[✅✓✔❌⚠🔴🟡🔵🟢🎉⏺►→•]️?\s*){1,3}(?=\S)")
_MARKED = re.compile(r"[*_~✅✓✔❌⚠🔴🟡🔵🟢🎉⏺►→•]")


#: No sentence ends with a word of these.
_UNENDED = frozenset("a an and always are as at be but by can for from if in is it keep must my never no not of on or our prefer should so"
                     " that the their this to use we when which with".split())  # fmt: skip


class Sentence(NamedTuple):
    """A sentence without markup, the row it stands in, how far that is moved in as an item of a list (-1: no item), and
    the number and title of its section.
    """

    text: str
    row: int
    item: int
    section: int
    title: str


def outline(text: str) -> list[Sentence]:
    """The sentences of the prose of `text` in order, without code, tables and what programs inserted.

    What is read is bounded before any other work, so that a megabyte costs what a page costs.
    """
    parts = _TITLE.split(without_code(_bounded_text(text)))
    rows: list[tuple[Row, int, str]] = []
    for section, (title, body) in enumerate([("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]):
        for row in rows_of_prose(body):
            before = rows[-1] if rows else None
            if before and before[1] == section and row.item < 0 and _is_broken(before[0].text, row.text):
                rows[-1] = (Row(f"{before[0].text} {row.text}", before[0].item), section, before[2])
            else:
                rows.append((row, section, plain(title).strip(" :")))
    if len(rows) > MAX_ROWS:
        rows = rows[: MAX_ROWS * 3 // 4] + rows[-(MAX_ROWS // 4) :]
    return [
        Sentence(plain(sentence), number, row.item, section, title)
        for number, (row, section, title) in enumerate(rows)
        for sentence in sentences(row.text)
    ]


def _is_broken(row: str, following: str) -> bool:
    """Whether somebody broke a line within a sentence: neither ends a row nor begins one."""
    return row[-1:].isalpha() and following[:1].islower() and row.rpartition(" ")[2].lower() in _UNENDED


def plain(sentence: str) -> str:
    """A sentence on one line without marks of emphasis."""
    if _MARKED.search(sentence):
        sentence = _EMPHASIS.sub(lambda found: found[1] or found[3] or found[4], _MARKS.sub("", sentence))
        sentence = _HALF_EMPHASIS.sub(lambda found: found[1] or "", sentence)
    return squeeze(sentence)


def _bounded_text(text: str) -> str:
    """The head and tail of `text`, lines cut, without what programs inserted."""
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n\n{text[-TAIL:]}"
    text = "\n".join(line[:MAX_LINE] for line in with_newlines(text).splitlines())
    kept: list[str] = []
    at = depth = 0
    for mark in _INSERTED.finditer(text):
        if depth == 0:
            kept.append(text[at : mark.start()])
        depth = max(0, depth - 1) if mark[1] else depth + 1
        at = mark.end()
    if depth == 0:
        kept.append(text[at:])
    return "\n".join(kept)
