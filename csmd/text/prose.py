"""Splits a text into rows, sentences, sections and passages; pure.

A passage is a run of neighbouring sentences of one section, the unit that a search finds and shows. Its offsets are
characters of the given text, so that it is stored as two numbers. A section ends at a heading and at both ends of a code
block; an empty line and a rule end a paragraph. Everything except white space, fences and rules is in exactly one
passage.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from csmd.cache import cached_short
from csmd.text.display import cut, squeeze
from csmd.text.tokens import content_words

_CODE_FENCE = re.compile(r"\s{0,12}(`{3,}|~{3,})(.*)", re.DOTALL)
#: Before a small letter only a plain full stop after a word of two letters ends a sentence, unlike "see v. 2" and
#: "(e.g. this) and".
_SENTENCE_BREAK = re.compile(
    r"(?<=[.!?。！？؟।։])([\"')\]]*)\s+(?=[\"'(\[«“„]?[A-Z0-9`À-ÞΑ-ΩА-Я\u0590-\u1fff\u3040-\u9fff\uac00-\ud7af])"
    r"|(?<=[^\W\d_]{2}[.!?])()\s+(?=[^\W\d_])|(?<=[。！？])"
)
#: Characters that break a line besides "\n": a return by itself, vertical tab, form feed, separators, next line.
_BREAK = re.compile("\r(?!\n)|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|resp|approx|no|fig|dr|mr|mrs|st)\.|\b[A-Z]\.)$", re.IGNORECASE)


#: Longest line that was not broken by its width.
MIN_WRAPPED_CHARACTERS = 60
_SENTENCE_MARK = re.compile(r"[.!?](?:\s|$)")
#: Longest line whose sentences are cached: memories, which are split again and again.
MAX_CACHED_CHARACTERS = 600
MAX_ABBREVIATION_CHARACTERS = 12
#: Ends of a chunk, the best first.
CHUNK_ENDS = ("\n\n", "\n", ". ", " ")
#: Most occurrences of a term that are compared for an excerpt.
MAX_OCCURRENCES = 20


def normalise_newlines(text: str) -> str:
    """Replaces every other character that breaks a line by "\n"; the length stays."""
    return _BREAK.sub("\n", text)


def remove_code(text: str) -> str:
    """Removes fenced code blocks; one that is not closed extends to the end.

    A block ends at a bare fence of its own kind that is at least as long, so that a block may contain another.
    """
    if "```" not in text and "~~~" not in text:
        return text
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        match = _CODE_FENCE.match(line)
        mark, rest = match.groups() if match else ("", "")
        if fence:
            if mark.startswith(fence) and not rest.strip():
                fence = ""
        elif mark and not (mark[0] == "`" and "`" in rest):
            fence = mark
        else:
            lines.append(line)
    return "\n".join(lines)


class Row(NamedTuple):
    """A paragraph, heading or list item on one line without its marker; `item` is an item's indent in columns, else -1."""

    text: str
    item: int


def read_prose_lines(text: str) -> list[str]:
    """Returns the texts of the rows of Markdown `text`."""
    return [row.text for row in read_prose_rows(text)]


def read_prose_rows(text: str) -> list[Row]:
    """Returns the paragraphs, list items and headings of Markdown `text`, each on one line without its marker.

    Hard-wrapped lines are joined: those longer than MIN_WRAPPED_CHARACTERS, and those in the middle of a sentence.
    Code blocks, tables, rules and quotes of code are left out.
    """
    rows: list[tuple[list[str], int]] = []
    length = 0  # of the last row, while it is open
    is_open = False
    for line in remove_code(text).splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith(("|", "```", "---", "===", "+--")) or line.startswith("    " * 2):
            is_open = False
            continue
        if stripped.startswith("#"):
            rows.append(([stripped.lstrip("#").strip()], -1))
            is_open = False
            continue
        bullet = _BULLET.match(line)
        piece = line[bullet.end() :].strip() if bullet else stripped.lstrip("> ")
        pieces = rows[-1][0] if is_open else [""]
        wraps = length > MIN_WRAPPED_CHARACTERS or _continues_sentence(pieces, piece)
        if is_open and not bullet and wraps and not pieces[-1].endswith((":", ".", "!", "?")):
            pieces.append(piece)
            length += 1 + len(piece)
        else:
            rows.append(([piece], len(line) - len(line.lstrip()) if bullet else -1))
            length = len(piece)
            is_open = True
    return [Row(row, item) for pieces, item in rows if (row := " ".join(pieces))]


def _continues_sentence(row: list[str], line: str) -> bool:
    """Whether a line continues the sentence of a row, by a writer who uses capitals and full stops."""
    is_unfinished = row[0][:1].isupper() and row[-1][-1:].isalnum()
    return is_unfinished and line[:1].islower() and _SENTENCE_MARK.search(line) is not None


def split_sentences(line: str) -> list[str]:
    """Splits a line of prose into sentences; abbreviations and version numbers do not end one."""
    return list(_split_line(line))


@cached_short(2048, characters=MAX_CACHED_CHARACTERS)
def _split_line(line: str) -> tuple[str, ...]:
    breaks = list(_SENTENCE_BREAK.finditer(line))
    starts = [0, *(match.end() for match in breaks)]
    ends = [*(max(match.start(), match.end(1), match.end(2)) for match in breaks), len(line)]
    sentences: list[list[str]] = []
    for part in (line[start:end].strip() for start, end in zip(starts, ends, strict=True)):
        if sentences and _ABBREVIATION.search(sentences[-1][-1][-MAX_ABBREVIATION_CHARACTERS:]):
            sentences[-1].append(part)
        elif part:
            sentences.append([part])
    return tuple(" ".join(parts) for parts in sentences)


def find_chunks(text: str, *, limit: int) -> list[tuple[int, int]]:
    """Cuts `text` into chunks of at most `limit` characters: (start, end), in order and without gaps.

    A chunk ends at a blank line, else a line end, else a sentence end, else a space.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > limit:
        window = text[start : start + limit]
        cuts = (window.rfind(mark) + len(mark) for mark in CHUNK_ENDS if window.rfind(mark) > limit // 3)
        end = start + next(cuts, limit)
        spans.append((start, end))
        start = end
    if text[start:].strip() or not spans:
        spans.append((start, len(text)))
    return spans


def excerpt(text: str, terms: list[str], *, limit: int) -> str:
    """Returns the part of `text` of at most `limit` characters with the most `terms`; `word*` matches a beginning."""
    if len(text) <= limit:
        return text
    folded = text.casefold()
    if len(folded) != len(text):  # some letters fold to two: offsets must stay the text's own
        folded = "".join(small if len(small := char.casefold()) == 1 else char for char in text)
    lead = min(80, limit // 3)
    patterns = (re.escape(term.removesuffix("*")) for term in terms)
    matches = (itertools.islice(re.finditer(pattern, folded), MAX_OCCURRENCES) for pattern in patterns)
    offsets = sorted({match.start() for of_term in matches for match in of_term})
    if not offsets:
        return cut(text, limit)
    # The offset after which most others follow within the limit.
    counts = [bisect_right(offsets, offset + max(0, limit - 120)) - index for index, offset in enumerate(offsets)]
    start = max(0, offsets[counts.index(max(counts))] - lead)
    if start:
        space = text.find(" ", start, start + lead // 2)
        start = space + 1 if space >= 0 else start
        return "…" + cut(text[start:].lstrip(), limit - 1)
    return cut(text, limit)


#: Most content words of a passage.
MAX_PASSAGE_WORDS = 45
#: Most characters of a passage: a line of code or base64 may have no word at all.
MAX_PASSAGE_CHARACTERS = 900
#: Fewest content words of a passage that ends with its paragraph.
MIN_PARAGRAPH_WORDS = 30

_LINE = re.compile(r"[^\n]*\n?")
#: A fence; a line with further backticks after the first three is code within a sentence.
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
    """A sentence or line with its number of content words, and whether it begins a section or a paragraph."""

    start: int
    end: int
    words: int
    is_section: bool
    is_paragraph: bool


def find_passages(text: str, *, limit: int = 10_000) -> list[Span]:
    """Finds the spans of the first `limit` passages of `text`, in order."""
    spans: list[Span] = []
    start = end = words = 0
    for piece in _split_pieces(text):
        fits = words + piece.words <= MAX_PASSAGE_WORDS and piece.end - start <= MAX_PASSAGE_CHARACTERS
        ends = piece.is_section or (piece.is_paragraph and words >= MIN_PARAGRAPH_WORDS)
        if end > start and (ends or not fits):
            spans.append(Span(start, end))
            if len(spans) >= limit:
                return spans
            start = piece.start
            words = 0
        elif end == start:
            start = piece.start
        end = piece.end
        words += piece.words
    if end > start:
        spans.append(Span(start, end))
    return spans


def _split_pieces(text: str) -> Iterator[_Piece]:
    """Yields the sentences of prose and the lines of code, each no longer than a passage."""
    fence = ""
    is_section = is_paragraph = True
    for match in _LINE.finditer(normalise_newlines(text)):
        line, offset = match.group(), match.start()
        if not line:
            break
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            is_section = True
            continue
        if not line.strip() or (not fence and _RULE.match(line)):
            is_paragraph = True
            continue
        is_section = is_section or (not fence and _HEADING.match(line) is not None)
        cuts = [0, len(line)] if fence else [0, *(end.end() for end in _SENTENCE_END.finditer(line)), len(line)]
        for start, end in itertools.pairwise(cuts):
            for part in _split_long_sentence(line, start, end):
                words = _count_words(line[part.start : part.end])
                yield _Piece(offset + part.start, offset + part.end, words, is_section, is_paragraph)
                is_section = is_paragraph = False


def _split_long_sentence(line: str, start: int, end: int) -> Iterator[Span]:
    """Yields a sentence without the white space around it, in parts if it is longer than a passage."""
    end = start + len(line[start:end].rstrip())
    start = end - len(line[start:end].lstrip())
    while end - start > MAX_PASSAGE_CHARACTERS or (
        end - start >= MAX_PASSAGE_WORDS * 2 and _count_words(line[start:end]) > MAX_PASSAGE_WORDS
    ):
        cut = _find_cut(line, start, end)
        yield Span(start, start + len(line[start:cut].rstrip()))
        start = cut
        while start < end and line[start].isspace():
            start += 1
    if end > start:
        yield Span(start, end)


def _find_cut(line: str, start: int, end: int) -> int:
    """Finds where to cut a long sentence: after as many words as a passage may have."""
    cut, words = start, 0
    for space in _SPACE.finditer(line, start, min(end, start + MAX_PASSAGE_CHARACTERS)):
        words += _count_words(line[cut : space.start()])
        if words > MAX_PASSAGE_WORDS:
            break
        cut = space.end()
    return cut if cut > start else min(end, start + MAX_PASSAGE_CHARACTERS)


def _count_words(text: str) -> int:
    return len(content_words(text))


#: Most characters of a turn's beginning that are read as prose.
MAX_HEAD_CHARACTERS = 14_000
#: Most characters of a turn's end that are read as prose.
MAX_TAIL_CHARACTERS = 6_000
#: Most characters of a line that are read.
MAX_LINE_CHARACTERS = 2_000
#: Most rows; those in the middle are left out.
MAX_ROWS = 200

#: Tags of programs around or within a user's words, and csmd's own injections.
_INSERTED_TAG = re.compile(
    r"<(/?)(system-reminder|system_instruction|ide_[a-z_]{1,40}|csmd-[a-z-]{1,40})\b[^<>]{0,300}>", re.IGNORECASE
)
_TITLE = re.compile(r"^ {0,3}#{1,6}[ \t]+(.{1,200})$", re.MULTILINE)
#: Marks of emphasis around words, but not in code, file patterns and names like __init__.
_EMPHASIS = re.compile(
    r"(`[^`\n]*`)|(?<![\w/.*])(\*{1,3}|~~)(?=[\w\"'`(\[])([^*\n]{1,400}?)(?<=[\w\"'`)\].,:;!?%])\2(?![\w/.*])"
    r"|(?<!\w)__(?=\w)([^_\n]{1,200} [^_\n]{1,200})__(?!\w)"
)
#: A mark of emphasis whose counterpart is in another sentence.
_HALF_EMPHASIS = re.compile(r"(`[^`\n]*`)|^\*{2,3}(?=[\w\"'`(])|(?<=[\w.:;!?)\"'`%])\*{2,3}(?=[ ,;:.]|$)")
_LEADING_ICONS = re.compile(r"^(?:[✅✓✔❌⚠🔴🟡🔵🟢🎉⏺►→•]️?\s*){1,3}(?=\S)")
_EMPHASIS_MARK = re.compile(r"[*_~✅✓✔❌⚠🔴🟡🔵🟢🎉⏺►→•]")
#: Words that do not end a sentence.
_OPEN_ENDED_WORDS = frozenset("a an and always are as at be but by can for from if in is it keep must my never no not of on or our prefer should so"
                     " that the their this to use we when which with".split())  # fmt: skip


class Sentence(NamedTuple):
    """A sentence without markup, its row and the row's `item`, and the number and title of its section."""

    text: str
    row: int
    item: int
    section: int
    title: str


class _TitledRow(NamedTuple):
    """A row with the number and title of its section."""

    text: str
    item: int
    section: int
    title: str


def outline(text: str) -> list[Sentence]:
    """Returns the sentences of the prose of `text` in order, without code, tables and insertions of programs.

    The text is cut before any other work, so that a megabyte costs no more than a page.
    """
    parts = _TITLE.split(remove_code(_bounded_text(text)))
    rows: list[_TitledRow] = []
    for section, (title, body) in enumerate([("", parts[0]), *zip(parts[1::2], parts[2::2], strict=True)]):
        for row in read_prose_rows(body):
            last = rows[-1] if rows else None
            if last and last.section == section and row.item < 0 and _joins_rows(last.text, row.text):
                rows[-1] = last._replace(text=f"{last.text} {row.text}")
            else:
                rows.append(_TitledRow(*row, section, strip_emphasis(title).strip(" :")))
    if len(rows) > MAX_ROWS:
        rows = rows[: MAX_ROWS * 3 // 4] + rows[-(MAX_ROWS // 4) :]
    return [
        Sentence(strip_emphasis(sentence), number, row.item, row.section, row.title)
        for number, row in enumerate(rows)
        for sentence in split_sentences(row.text)
    ]


def _joins_rows(row: str, following: str) -> bool:
    """Whether a line break separates two rows within one sentence."""
    return row[-1:].isalpha() and following[:1].islower() and row.rpartition(" ")[2].lower() in _OPEN_ENDED_WORDS


def strip_emphasis(sentence: str) -> str:
    """Returns a sentence on one line without marks of emphasis."""
    if _EMPHASIS_MARK.search(sentence):
        sentence = _EMPHASIS.sub(lambda match: match[1] or match[3] or match[4], _LEADING_ICONS.sub("", sentence))
        sentence = _HALF_EMPHASIS.sub(lambda match: match[1] or "", sentence)
    return squeeze(sentence)


def _bounded_text(text: str) -> str:
    """Returns the head and tail of `text` with shortened lines and without insertions of programs."""
    if len(text) > MAX_HEAD_CHARACTERS + MAX_TAIL_CHARACTERS:
        text = f"{text[:MAX_HEAD_CHARACTERS]}\n\n{text[-MAX_TAIL_CHARACTERS:]}"
    text = "\n".join(line[:MAX_LINE_CHARACTERS] for line in normalise_newlines(text).splitlines())
    outside: list[str] = []
    start = depth = 0
    for tag in _INSERTED_TAG.finditer(text):
        if depth == 0:
            outside.append(text[start : tag.start()])
        depth = max(0, depth - 1) if tag[1] else depth + 1
        start = tag.end()
    if depth == 0:
        outside.append(text[start:])
    return "\n".join(outside)
