"""Recognises purged text by keyed hashes of its words, without storing the words.

Case, accents, invisible characters and separators (white space, line breaks, quotes, markup) do not count. A match
covers whole words, so that the same text is removed from the store and kept out later. If nothing was purged, a text is
not read at all. Otherwise its words are looked up in a set of known harmless ones, and only the surroundings of a word
that may be the longest of a purged text are hashed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from csmd.errors import BadInput

#: Replaces purged text.
PURGED = "[purged]"
#: Precedes the keyed hash that replaces a name (a path, a project's key).
HASHED_NAME_PREFIX = "purged:"
#: Fewest letters and digits of a purged text: a shorter one would match too much.
MIN_PURGED_CHARACTERS = 4
#: Most words cached as not being the longest of any purged text.
MAX_HARMLESS_WORDS = 200_000
#: Most characters cached with their folded form.
MAX_FOLDED_CHARACTERS = 20_000

#: Scripts without spaces between words: each character is a word, so that a phrase is found inside a sentence.
_UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(f"[{_UNSPACED_SCRIPTS}]|[^\\W_{_UNSPACED_SCRIPTS}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ASCII_ALNUM = re.compile(r"[A-Za-z0-9]+")
_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED_SCRIPTS}]")
#: Line breaks and tabs as JSON writes them: the letter is not part of the next word.
_ESCAPED_BREAKS = ("\\n", "\\r", "\\t")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """A purged text: the keyed hash of its words, their number, and a two-byte keyed hash (`anchor`) of the longest.

    `anchor_at` is the number of words before the longest.
    """

    hash: str
    words: int
    anchor: int
    anchor_at: int


class _Folding(dict[int, str]):
    """Maps characters to their folded form for `str.translate`, and caches them."""

    def __missing__(self, code: int) -> str:
        if len(self) > MAX_FOLDED_CHARACTERS:
            self.clear()
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", chr(code)).casefold())
        self[code] = "".join(char for char in folded if unicodedata.category(char) not in ("Mn", "Me", "Cf"))
        return self[code]


_FOLDING = _Folding()


def fold(text: str) -> str:
    """Returns `text` as it is compared; the length may differ if it is not ASCII."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def _fold_with_positions(text: str) -> tuple[str, Sequence[int]]:
    """Returns the folded text, and the position in `text` of each of its characters and of its end."""
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    pieces: list[str] = []
    positions: list[int] = []
    for index, char in enumerate(text):
        folded = _FOLDING[ord(char)]
        pieces.append(folded)
        positions.extend([index] * len(folded))
    positions.append(len(text))
    return "".join(pieces), positions


def _read_escapes(folded: str) -> list[str]:
    """Returns a folded text, and a second reading with spaces for line breaks that are written as `\\n`."""
    if "\\" not in folded:
        return [folded]
    without = folded
    for escape in _ESCAPED_BREAKS:
        without = without.replace(escape, "  ")
    return [folded] if without == folded else [folded, without]


def _word_pattern(folded: str) -> re.Pattern[str]:
    return _ASCII_WORD if folded.isascii() else _WORD


def split_words(text: str) -> list[str]:
    """Returns the words of a text, folded, in order."""
    folded = fold(text)
    return _word_pattern(folded).findall(folded)


def check_text(text: str) -> str:
    """Returns a text to purge; raises BadInput if it would match too much."""
    tokens = split_words(text)
    if sum(map(len, tokens)) < MIN_PURGED_CHARACTERS or tokens == ["purged"]:
        raise BadInput(
            f"the text has fewer than {MIN_PURGED_CHARACTERS} letters or digits",
            hint="type more of the text around it",
        )
    return text


def hash_name(kind: str, name: str, key: bytes) -> str:
    """Returns the keyed hash of a name (a turn's uuid, a session's id, a path); 32 hex digits."""
    return hmac.new(key, f"{kind}:{name}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]


def make_mark(text: str, key: bytes) -> Mark:
    """Returns the mark of a purged text."""
    tokens = split_words(text)
    longest = max(range(len(tokens)), key=lambda at: len(tokens[at]))
    return Mark(_hash_words(tokens, key), len(tokens), _hash_anchor(tokens[longest], key), longest)


def _hash_words(tokens: Sequence[str], key: bytes) -> str:
    return hash_name("text", " ".join(tokens), key)


def _hash_anchor(word: str, key: bytes) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), key=key[:64], digest_size=2).digest()
    return int.from_bytes(digest, "big")


class Marks:
    """All purged texts, with a cache of harmless words."""

    def __init__(self, marks: Iterable[Mark], key: bytes) -> None:
        self._key = key
        self._harmless: set[str] = set()
        self._wanted: dict[int, dict[Span, set[str]]] = {}
        for mark in marks:
            self._wanted.setdefault(mark.anchor, {}).setdefault((mark.anchor_at, mark.words), set()).add(mark.hash)

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def spans(self, text: str) -> list[Span]:
        """Returns the (start, end) of purged text in `text`, in order, none overlapping another."""
        if not self._wanted:
            return []
        spans = [span for reading in _read_escapes(fold(text)) for span in self._find_in_reading(reading)]
        if not spans:
            return []
        _, positions = _fold_with_positions(text)
        return _merge_spans(((positions[start], _end_position(positions, end)) for start, end in spans), text)

    def _find_in_reading(self, reading: str) -> list[Span]:
        """Returns the spans of purged text in a folded text, searched for around words that may be its longest."""
        tokens = _word_pattern(reading).findall(reading)
        anchors = self._find_anchors(set(tokens))
        if not anchors:
            return []
        hits: list[Span] = []
        for number, word in enumerate(tokens):
            if word not in anchors:
                continue
            for (offset, size), hashes in self._wanted[_hash_anchor(word, self._key)].items():
                window = tokens[number - offset : number - offset + size] if offset <= number else []
                if len(window) == size and _hash_words(window, self._key) in hashes:
                    hits.append((number - offset, number - offset + size - 1))
        if not hits:
            return []
        spans = [token.span() for token in _word_pattern(reading).finditer(reading)]
        return [(spans[first][0], spans[last][1]) for first, last in hits]

    def _find_anchors(self, tokens: set[str]) -> set[str]:
        """Returns the words that may be the longest of a purged text."""
        unknown = tokens - self._harmless
        if not unknown:
            return unknown
        anchors = {word for word in unknown if _hash_anchor(word, self._key) in self._wanted}
        if len(self._harmless) > MAX_HARMLESS_WORDS:
            self._harmless = set()
        self._harmless |= unknown - anchors
        return anchors


def remove_purged(text: str, marks: Marks, *, placeholder: str = PURGED) -> tuple[str, int]:
    """Returns `text` with `placeholder` for purged text, and the number of replacements; `text` itself if there are none."""
    return replace_spans(text, marks.spans(text), placeholder=placeholder)


def replace_spans(text: str, spans: Sequence[Span], *, placeholder: str = PURGED) -> tuple[str, int]:
    """Returns `text` with `placeholder` for each span, and the number of spans."""
    if not spans:
        return text, 0
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += [text[position:start], placeholder]
        position = end
    return "".join(pieces) + text[position:], len(spans)


class Needle:
    """Finds a known text wherever it occurs, also within words; a match covers whole words."""

    def __init__(self, text: str) -> None:
        tokens = split_words(text)
        #: Bytes, in whatever case, that every occurrence of the text contains; b"" if none are known.
        written = {word.lower() for word in _ASCII_ALNUM.findall(text)} & set(tokens)  # `caf` is not a word of `café`
        self.rare = max(sorted(written), key=len, default="").encode()
        between = r"(?:[\W_]|\\+[nrt])"
        parts = [re.escape(tokens[0])]
        for last, word in pairwise(tokens):
            glued = _UNSPACED_CHARACTER.fullmatch(last) or _UNSPACED_CHARACTER.fullmatch(word)
            parts += [between + ("*?" if glued else "+?"), re.escape(word)]
        self._pattern = re.compile("".join(parts))

    def spans(self, text: str) -> list[Span]:
        """Returns the (start, end) of the text, widened to whole words, in order."""
        folded = fold(text)
        if self._pattern.search(folded) is None:
            return []
        folded, positions = _fold_with_positions(text)
        whole_spans: list[Span] = []
        for reading in _read_escapes(folded):
            hits = [hit.span() for hit in self._pattern.finditer(reading)]
            if hits:
                whole = [token.span() for token in _word_pattern(reading).finditer(reading)]
                whole_spans += [_widen_to_words(hit, whole, positions) for hit in hits]
        return _merge_spans(whole_spans, text)


def _widen_to_words(hit: Span, whole: Sequence[Span], positions: Sequence[int]) -> Span:
    """Returns a hit widened to the ends of the words that it touches."""
    first = bisect_right(whole, hit[0], key=lambda span: span[0]) - 1
    last = bisect_left(whole, hit[1], key=lambda span: span[1])
    start = min(hit[0], whole[first][0]) if first >= 0 and whole[first][1] > hit[0] else hit[0]
    end = max(hit[1], whole[last][1]) if last < len(whole) and whole[last][0] < hit[1] else hit[1]
    return positions[start], _end_position(positions, end)


def _end_position(positions: Sequence[int], end: int) -> int:
    """Returns the position after a span's last character and its combining marks."""
    return max(positions[end], positions[end - 1] + 1)


def _merge_spans(spans: Iterable[Span], text: str) -> list[Span]:
    """Returns spans in order, overlapping ones merged, without those that are the mark of a purged text."""
    merged: list[Span] = []
    for start, end in sorted(set(spans)):
        if text[max(0, start - 1) : end + 1] == PURGED:
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
