"""Where a line of markdown is plain text and where code, tags, links and emphasis cut it; pure.

The rules are CommonMark's: what is cut out here (code, HTML, images, escaped characters, a link's target)
holds no import, and a cut is a place where a word begins. Each character is looked at a bounded number of times.
"""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass

#: White space as the host's language has it; Python's differs in U+001C to U+001F and U+0085.
JS_SPACE = tuple("\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff")  # fmt: skip

_SPECIAL = re.compile(r"[\\`*_\[\]!<]")
_RUN = re.compile(r"`+")
_ATTRIBUTE = r"""(?:\s+[a-zA-Z:_][\w.:-]*+(?:\s*=\s*(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?)*+\s*+"""
_TAG = re.compile(rf"</?[a-zA-Z][\w:-]*+{_ATTRIBUTE}/?>|<!--?-?>|<[a-zA-Z][a-zA-Z0-9+.-]{{1,31}}:[^\s<>]*+>|<[^\s<>@]+@[^\s<>]++>")  # fmt: skip
#: What begins a tag that goes on to its own end, whatever stands between.
_LONG_TAGS = (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<!", ">"))
_TARGET = re.compile(
    r"""\(\s*(?:<(?:\\.|[^\n<>\\]){0,1999}>|(?:\\.|[^\s\\()]|\((?:\\.|[^\s\\()]){0,500}\)){0,1999}+)"""
    r"""(?:\s+(?:"(?:\\.|[^"\\]){0,999}"|'(?:\\.|[^'\\]){0,999}'|\((?:\\.|[^()\\]){0,999}\)))?\s*\)"""
)
_REFERENCE = re.compile(r"\[((?:\\.|[^\[\]\\]){0,999})\]")


@dataclass(slots=True)
class _Piece:
    """Text, or a run of `*` or `_` of which some characters may turn out to be emphasis; a cut stands before or after."""

    text: str
    cut_before: bool = False
    cut_after: bool = False
    opens: bool = False
    closes: bool = False
    size: int = 0
    """How long the run was."""


@dataclass(slots=True)
class _Bracket:
    """A `[` that may begin a link."""

    piece: int
    at: int
    image: bool


def segments(source: str, labels: frozenset[str]) -> list[str]:
    """The pieces of plain text in a paragraph, in order; `labels` are the links that the document defines."""
    pieces: list[_Piece] = []
    brackets: list[_Bracket] = []
    runs = _runs(source)
    missing: set[str] = set()
    at = 0
    while at < len(source):
        found = _SPECIAL.search(source, at)
        start = found.start() if found else len(source)
        if start > at:
            pieces.append(_Piece(source[at:start]))
        if found is None:
            break
        at = _special(source, start, pieces, brackets, runs, missing, labels)
    _emphasise(pieces, 0)
    return _joined(pieces)


def _cut(pieces: list[_Piece]) -> None:
    pieces.append(_Piece("", cut_after=True))


def _special(
    source: str,
    at: int,
    pieces: list[_Piece],
    brackets: list[_Bracket],
    runs: dict[int, list[int]],
    missing: set[str],
    labels: frozenset[str],
) -> int:
    """Takes in what begins with the special character at `at`; where it ends."""
    char = source[at]
    if char == "\\" and at + 1 < len(source) and source[at + 1] in string.punctuation + "\n":
        _cut(pieces)
        return at + 2
    if char == "`":
        run = _RUN.match(source, at)
        length = len(run.group()) if run else 1
        closing = runs.get(length, [])
        while closing and closing[-1] <= at:
            closing.pop()
        if closing:
            _cut(pieces)
            return closing[-1] + length
        pieces.append(_Piece(source[at : at + length]))
        return at + length
    if char == "<" and (end := _end_of_tag(source, at, missing)):
        _cut(pieces)
        return end
    if char in "*_":
        end = at
        while end < len(source) and source[end] == char:
            end += 1
        pieces.append(_run(source, at, end))
        return end
    if char == "[" or source.startswith("![", at):
        width = 1 if char == "[" else 2
        brackets.append(_Bracket(len(pieces), at + width, width == 2))
        pieces.append(_Piece(source[at : at + width]))
        return at + width
    if char == "]" and brackets:
        opening = brackets.pop()
        end = _end_of_link(source, opening.at, at, labels)
        if end:
            if opening.image:
                del pieces[opening.piece :]
                _cut(pieces)
            else:
                _emphasise(pieces, opening.piece + 1)
                pieces[opening.piece] = _Piece("", cut_after=True)
                _cut(pieces)
            return end
    pieces.append(_Piece(char))
    return at + 1


def _runs(source: str) -> dict[int, list[int]]:
    """Where runs of backticks stand, by their length, the last first."""
    found: dict[int, list[int]] = {}
    for run in _RUN.finditer(source):
        found.setdefault(len(run.group()), []).append(run.start())
    return {length: places[::-1] for length, places in found.items()}


def _end_of_tag(source: str, at: int, missing: set[str]) -> int:
    """Where the tag or address that begins at `at` ends; 0 when none does. `missing` are ends that do not come any more."""
    if tag := _TAG.match(source, at):
        return tag.end()
    for opening, mark in _LONG_TAGS:
        if not source.startswith(opening, at) or mark in missing:
            continue
        if opening == "<!" and not source[at + 2 : at + 3].isalpha():
            continue
        end = source.find(mark, at + len(opening))
        if end >= 0:
            return end + len(mark)
        missing.add(mark)
    return 0


def _end_of_link(source: str, begin: int, closing: int, labels: frozenset[str]) -> int:
    """Where the link ends whose text stands from `begin` to the bracket at `closing`; 0 when it is none."""
    if target := _TARGET.match(source, closing + 1):
        return target.end()
    if not labels:
        return 0
    reference = _REFERENCE.match(source, closing + 1)
    if reference and reference.group(1).strip():
        return reference.end() if " ".join(reference.group(1).split()).casefold() in labels else 0
    if closing - begin <= 999 and " ".join(source[begin:closing].split()).casefold() in labels:
        return reference.end() if reference else closing + 1
    return 0


def _run(source: str, start: int, end: int) -> _Piece:
    before = source[start - 1] if start else " "
    after = source[end] if end < len(source) else " "
    spaced_before, spaced_after = before.isspace(), after.isspace()
    marked_before, marked_after = _is_mark(before), _is_mark(after)
    left = not spaced_after and (not marked_after or spaced_before or marked_before)
    right = not spaced_before and (not marked_before or spaced_after or marked_after)
    if source[start] == "_":
        opens, closes = left and (not right or marked_before), right and (not left or marked_after)
    else:
        opens, closes = left, right
    return _Piece(source[start:end], opens=opens, closes=closes, size=end - start)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _emphasise(pieces: list[_Piece], start: int) -> None:
    """Pairs the runs of `*` and `_` from piece `start` on; what is paired becomes a cut."""
    openers: list[_Piece] = []
    #: Below this many openers none is for a closer of this kind.
    floor: dict[tuple[str, int, bool], int] = {}
    for piece in pieces[start:]:
        if not piece.size:
            continue
        while piece.closes and piece.text:
            kind = (piece.text[0], piece.size % 3, piece.opens)
            place = len(openers) - 1
            while place >= floor.get(kind, 0) and not _pairs(openers[place], piece):
                place -= 1
            if place < floor.get(kind, 0):
                floor[kind] = len(openers)
                break
            opener = openers[place]
            used = 2 if len(opener.text) >= 2 and len(piece.text) >= 2 else 1
            opener.text, piece.text = opener.text[used:], piece.text[used:]
            opener.cut_after = piece.cut_before = True
            del openers[place + (1 if opener.text else 0) :]
            floor = {key: min(low, len(openers)) for key, low in floor.items()}
        if piece.opens and piece.text:
            openers.append(piece)
    for piece in pieces[start:]:
        piece.size = 0  # what encloses them pairs with none of these


def _pairs(opener: _Piece, closer: _Piece) -> bool:
    if opener.text[0] != closer.text[0]:
        return False
    either = opener.closes or closer.opens
    return not either or (opener.size + closer.size) % 3 != 0 or (opener.size % 3 == 0 and closer.size % 3 == 0)


def _joined(pieces: list[_Piece]) -> list[str]:
    found: list[list[str]] = [[]]
    for piece in pieces:
        if piece.cut_before:
            found.append([])
        found[-1].append(piece.text)
        if piece.cut_after:
            found.append([])
    return [text for parts in found if (text := "".join(parts))]
