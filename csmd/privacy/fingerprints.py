"""Recognises purged text by keyed hashes of its words, without storing the words.

Words are compared without regard to case, accents, invisible characters and whatever separates them (white space, line
breaks, quotes, markup). A match covers whole words, so that the same text is removed from the store and kept out later.
If nothing was purged, a text is not read at all. Otherwise its words are looked up in a set of known harmless ones, and
only the surroundings of a word that may be the longest of a purged text are hashed.
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
HIDDEN = "purged:"
#: A shorter text would match too much.
MIN_LETTERS = 4
#: Words cached as not being the longest of any purged text.
HARMLESS_LIMIT = 200_000
#: Characters cached with their folded form.
FOLDED_LIMIT = 20_000

#: Scripts without spaces between words: each character is a word, so that a phrase is found inside a sentence.
_ALONE = "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(f"[{_ALONE}]|[^\\W_{_ALONE}]+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_SINGLE = re.compile(f"[{_ALONE}]")
#: White space as JSON writes it: the letter is no part of the next word.
_ESCAPES = ("\\n", "\\r", "\\t")

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mark:
    """A purged text: the keyed hash of its words, their number, and a small keyed fingerprint (`anchor`) of the
    longest.

    `anchor_at` is the number of words before the longest.
    """

    hash: str
    words: int
    anchor: int
    anchor_at: int


class _Folding(dict[int, str]):
    """Maps characters to their folded form for `str.translate`, and caches them."""

    def __missing__(self, code: int) -> str:
        if len(self) > FOLDED_LIMIT:
            self.clear()
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", chr(code)).casefold())
        self[code] = "".join(char for char in folded if unicodedata.category(char) not in ("Mn", "Me", "Cf"))
        return self[code]


_FOLDING = _Folding()


def fold(text: str) -> str:
    """Returns `text` as it is compared; the length may differ if it is not ASCII."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def _fold_with_places(text: str) -> tuple[str, Sequence[int]]:
    """Returns the folded text, and the position in `text` of each of its characters and of its end."""
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    pieces: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        folded = _FOLDING[ord(char)]
        pieces.append(folded)
        places.extend([at] * len(folded))
    places.append(len(text))
    return "".join(pieces), places


def _readings(folded: str) -> list[str]:
    """Returns a folded text, and a second reading with spaces for line breaks that are written as `\\n`."""
    if "\\" not in folded:
        return [folded]
    without = folded
    for escape in _ESCAPES:
        without = without.replace(escape, "  ")
    return [folded] if without == folded else [folded, without]


def _word_pattern(folded: str) -> re.Pattern[str]:
    return _ASCII_WORD if folded.isascii() else _WORD


def words(text: str) -> list[str]:
    """The words of a text, folded, in order."""
    folded = fold(text)
    return _word_pattern(folded).findall(folded)


def check_text(text: str) -> str:
    """Returns a text to purge; BadInput for one that would match too much."""
    tokens = words(text)
    if sum(len(word) for word in tokens) < MIN_LETTERS or tokens == ["purged"]:
        raise BadInput(
            f"what is purged has at least {MIN_LETTERS} letters or digits", hint="type more of the text around it"
        )
    return text


def name_hash(kind: str, name: str, key: bytes) -> str:
    """The keyed hash of a name (a turn's uuid, a session's id, a path); 32 hex digits."""
    return hmac.new(key, f"{kind}:{name}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]


def mark_of(text: str, key: bytes) -> Mark:
    """Returns the mark of a purged text."""
    tokens = words(text)
    longest = max(range(len(tokens)), key=lambda at: len(tokens[at]))
    return Mark(_hash(tokens, key), len(tokens), _fingerprint(tokens[longest], key), longest)


def _hash(tokens: Sequence[str], key: bytes) -> str:
    return name_hash("text", " ".join(tokens), key)


def _fingerprint(word: str, key: bytes) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "replace"), key=key[:64], digest_size=2).digest()
    return int.from_bytes(digest, "big")


class Marks:
    """Everything that was purged as text, with a cache of harmless words."""

    def __init__(self, marks: Iterable[Mark], key: bytes) -> None:
        self._key = key
        self._harmless: set[str] = set()
        self._wanted: dict[int, dict[Span, set[str]]] = {}
        for mark in marks:
            self._wanted.setdefault(mark.anchor, {}).setdefault((mark.anchor_at, mark.words), set()).add(mark.hash)

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def spans(self, text: str) -> list[Span]:
        """The (start, end) of purged text in `text`, in order, none overlapping another."""
        if not self._wanted:
            return []
        spans = [span for reading in _readings(fold(text)) for span in self._windows(reading)]
        if not spans:
            return []
        _, places = _fold_with_places(text)
        return _merged(((places[start], _end(places, end)) for start, end in spans), text)

    def _windows(self, reading: str) -> list[Span]:
        """The spans of purged text in a folded text, searched for around words that may be its longest."""
        tokens = _word_pattern(reading).findall(reading)
        anchors = self._anchors(set(tokens))
        if not anchors:
            return []
        hits: list[Span] = []
        for number, word in enumerate(tokens):
            if word not in anchors:
                continue
            for (at, size), hashes in self._wanted[_fingerprint(word, self._key)].items():
                window = tokens[number - at : number - at + size] if at <= number else []
                if len(window) == size and _hash(window, self._key) in hashes:
                    hits.append((number - at, number - at + size - 1))
        if not hits:
            return []
        spans = [token.span() for token in _word_pattern(reading).finditer(reading)]
        return [(spans[first][0], spans[last][1]) for first, last in hits]

    def _anchors(self, tokens: set[str]) -> set[str]:
        """The words that may be the longest of a purged text."""
        unknown = tokens - self._harmless
        if not unknown:
            return unknown
        anchors = {word for word in unknown if _fingerprint(word, self._key) in self._wanted}
        if len(self._harmless) > HARMLESS_LIMIT:
            self._harmless = set()
        self._harmless |= unknown - anchors
        return anchors


def clean(text: str, marks: Marks, *, hole: str = PURGED) -> tuple[str, int]:
    """Returns `text` with `hole` in place of purged text, and how often; the same object if there is none."""
    return replace_spans(text, marks.spans(text), hole=hole)


def replace_spans(text: str, spans: Sequence[Span], *, hole: str = PURGED) -> tuple[str, int]:
    """Returns `text` with `hole` in place of each span, and the number of spans."""
    if not spans:
        return text, 0
    unchanged: list[str] = []
    at = 0
    for start, end in spans:
        unchanged += [text[at:start], hole]
        at = end
    return "".join(unchanged) + text[at:], len(spans)


class Needle:
    """Finds a known text wherever it occurs, also within words; a match covers whole words."""

    def __init__(self, text: str) -> None:
        tokens = words(text)
        #: Bytes, in whatever case, that every occurrence of the text contains; b"" if none are known.
        written = {word.lower() for word in _PLAIN.findall(text)} & set(tokens)  # `caf` is not a word of `café`
        self.rare = max(sorted(written), key=len, default="").encode()
        between = r"(?:[\W_]|\\+[nrt])"
        parts = [re.escape(tokens[0])]
        for last, word in pairwise(tokens):
            glued = _SINGLE.fullmatch(last) or _SINGLE.fullmatch(word)
            parts += [between + ("*?" if glued else "+?"), re.escape(word)]
        self._pattern = re.compile("".join(parts))

    def spans(self, text: str) -> list[Span]:
        """The (start, end) of the text, widened to whole words, in order."""
        folded = fold(text)
        if self._pattern.search(folded) is None:
            return []
        folded, places = _fold_with_places(text)
        whole_spans: list[Span] = []
        for reading in _readings(folded):
            hits = [hit.span() for hit in self._pattern.finditer(reading)]
            if hits:
                whole = [token.span() for token in _word_pattern(reading).finditer(reading)]
                whole_spans += [_widened(hit, whole, places) for hit in hits]
        return _merged(whole_spans, text)


def _widened(hit: Span, whole: Sequence[Span], places: Sequence[int]) -> Span:
    """Returns a hit widened to the ends of the words that it touches."""
    first = bisect_right(whole, hit[0], key=lambda span: span[0]) - 1
    last = bisect_left(whole, hit[1], key=lambda span: span[1])
    start = min(hit[0], whole[first][0]) if first >= 0 and whole[first][1] > hit[0] else hit[0]
    end = max(hit[1], whole[last][1]) if last < len(whole) and whole[last][0] < hit[1] else hit[1]
    return places[start], _end(places, end)


def _end(places: Sequence[int], end: int) -> int:
    """Returns the position after a span's last character and its combining marks."""
    return max(places[end], places[end - 1] + 1)


def _merged(spans: Iterable[Span], text: str) -> list[Span]:
    """Returns spans in order, overlapping ones merged, without those that are the mark of a purged text."""
    kept: list[Span] = []
    for start, end in sorted(set(spans)):
        if text[max(0, start - 1) : end + 1] == PURGED:
            continue
        if kept and start < kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        else:
            kept.append((start, end))
    return kept
