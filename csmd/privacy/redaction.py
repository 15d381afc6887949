"""Replaces secrets in decoded text by marks."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ahocorasick

from csmd.data import lines
from csmd.privacy.secret_rules import HARMLESS_VALUE, MAYBE_SECRET_KEY, NEEDS, RULES, SECRET_KEY, Rule
from csmd.privacy.secret_shapes import has_digit, is_known_alone, is_mixed, is_piece, is_token, is_unusual

#: A shorter text contains no secret together with what gives it away.
SHORTEST = 8
#: A text is searched again after a replacement, which may reveal a secret next to it, at most this many times.
ROUNDS = 4
#: The most characters that a rule with a need reads.
LONGEST_MATCH = 1_500
#: The most characters of a literal.
LONGEST_LITERAL = 64
_MARK = "[redacted:"
#: The mark of a secret that was recognised alone, because the same one was found elsewhere in its session.
KNOWN_AGAIN = f"{_MARK}known-again]"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]")

#: (start, end, index of its rule in the table, kind)
Span = tuple[int, int, int, str]


class Removed(Counter[str]):
    """How many secrets were removed, by kind; `secrets` are those that are recognisable alone."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()

    def note(self, secret: str) -> None:
        """Keeps a secret that was removed, if it is recognisable alone."""
        if is_known_alone(secret):
            middle = len(secret) // 2
            halves = (secret[:middle], secret[middle:], secret[: -(-len(secret) // 2)])
            self.secrets |= {secret, *(half for half in halves if is_known_alone(half) and is_piece(half, secret))}


#: A literal whose case counts, or ""; the index of its rule in the table; the match to try where the literal begins, or
#: None.
Row = tuple[str, int, Callable[[str, int], object] | None]
#: Literals of rules that name a secret.
_NAMES_SECRET = re.compile(r"passw|passphrase|secret|token|key|pw|auth|\A[a-z0-9]{2,}_\Z")


def _literals(rules: Sequence[Rule]) -> ahocorasick.Automaton:
    """Returns an automaton that finds every literal in one pass over lower-cased text.

    It yields the literal's end, its length, its rules by need, and whether it names a secret.
    """
    by_literal: dict[str, list[Row]] = {}
    for number, rule in enumerate(rules):
        match = None if rule.back or rule.paired else rule.pattern.match
        for literal in rule.literals:
            row: Row = ("" if rule.ignores_case else literal, number, match)
            by_literal.setdefault(literal.lower(), []).append(row)
    automaton = ahocorasick.Automaton()
    for literal, rows in by_literal.items():
        by_need: dict[str, list[Row]] = {}
        for row in rows:
            by_need.setdefault(rules[row[1]].needs, []).append(row)
        automaton.add_word(literal, (len(literal), [*by_need.items()], _NAMES_SECRET.search(literal) is not None))
    automaton.make_automaton()
    return automaton


_LITERALS = _literals(RULES)
#: Matches marks, and in group 1 the user's own words; None if there are none.
_chosen: re.Pattern[str] | None = None


def choose_words(words: Sequence[str]) -> None:
    """Sets the words that this process also removes (`privacy.redact`); the daemon does so once, at its start.

    They are global so that no caller of redact() can forget them.
    """
    global _chosen
    longest_first = sorted(words, key=len, reverse=True)
    chosen = "|".join(re.escape(word) for word in longest_first)
    _chosen = re.compile(rf"\[redacted:[a-z0-9-]{{1,40}}\]|({chosen})") if words else None


def state_of_rules() -> str:
    """Returns a value that changes whenever csmd's rules or the user's words change, and with them what is redacted."""
    parts = [
        *lines("secret_rules.txt"),
        *lines("secret_words.txt"),
        *(Path(__file__).with_name(name).read_text() for name in _SOURCES),
    ]
    return "\n".join([*parts, _chosen.pattern if _chosen else ""])


#: The modules that decide what is a secret.
_SOURCES = ("redaction.py", "secret_rules.py", "secret_shapes.py", "secret_words.py")


def redact(text: str, counts: Counter[str], *, key: str = "", kinds: Collection[str] | None = None) -> str:
    """Returns `text` without secrets, and counts each by kind in `counts`.

    `key` is the name of the field that contains the text; with `kinds` only secrets of these kinds are removed.
    """
    if key and _is_secret_value(text, key):
        counts["secret-field"] += 1
        if isinstance(counts, Removed):
            counts.note(text.strip())
        return f"{_MARK}secret-field]"
    if len(text) < SHORTEST and _chosen is None:
        return text
    removed: set[str] = set()
    for _ in range(ROUNDS):
        spans, names = _spans(text)
        if names:
            spans += _split_spans(text, names)
        if kinds is not None:
            spans = [span for span in spans if span[3] in kinds]
        if not spans:
            break
        spans = [(start, _end_of_wrapped(text, start, end), number, kind) for start, end, number, kind in spans]
        removed |= {text[start:end] for start, end, _, _ in spans}
        text = _replaced(text, spans, counts)
    return _without_halves(text, removed, counts) if removed else text


def without_private(text: str, counts: Counter[str]) -> str:
    """Returns `text` without the text between privacy tags; applies no other rule."""
    folded = _folded(text)
    spans = [
        (*span, number, rule.kind)
        for number, rule in enumerate(RULES)
        if rule.paired and any(literal.lower() in folded for literal in rule.literals)
        for span in _between_tags(rule, text)
    ]
    return _replaced(text, spans, counts) if spans else text


def is_secret_key(key: str) -> bool:
    """Whether a field is named like one that contains a secret: `apiKey`, `db_password`, `Authorization`."""
    return SECRET_KEY.search(_words(key)) is not None


def _words(key: str) -> str:
    return _WORD_START.sub("_", key[-80:]).lower()


def _is_secret_value(text: str, key: str) -> bool:
    name = _words(key)
    if SECRET_KEY.search(name):
        return HARMLESS_VALUE.fullmatch(text.strip()) is None
    return MAYBE_SECRET_KEY.search(name) is not None and len(text) >= 8 and " " not in text and is_mixed(text)


def _spans(text: str) -> tuple[list[Span], list[int]]:
    """Returns the spans that all rules remove, unordered, and the positions of words that name a secret."""
    spans: list[Span] = []
    names: list[int] = []
    if _chosen is not None:
        spans += [(*word.span(), -1, "chosen-word") for word in _chosen.finditer(text) if word.group(1)]
    done = [0] * len(RULES)  # how far each rule has read: it never reads a position twice
    stretch, fresh = "", 0
    fulfilled: dict[str, bool] = {
        "": True
    }  # by need, for the stretch of a line that rules starting before `fresh` read
    for last, (length, by_need, is_name) in _LITERALS.iter(_folded(text)):
        start = last + 1 - length
        if is_name and (not names or start > names[-1]):
            names.append(last)
        if start >= fresh:
            end = text.find("\n", start, start + 4 * LONGEST_MATCH)
            stretch = text[max(0, start - LONGEST_LITERAL) : end if end >= 0 else start + 4 * LONGEST_MATCH]
            fresh = end if end >= 0 else start + 3 * LONGEST_MATCH
            fulfilled = {"": True}
        for need, rows in by_need:
            if need not in fulfilled:
                fulfilled[need] = bool(NEEDS[need](stretch))
            if not fulfilled[need]:
                continue
            for literal, number, match in rows:
                if start < done[number] or (literal and not text.startswith(literal, start)):
                    continue
                if match is None or match(text, start) is not None:
                    done[number] = _try(RULES[number], number, text, start, spans)
    return spans, names


def _folded(text: str) -> str:
    """Returns `text` in lower case and of the same length: letters that become two stay as they are."""
    folded = text.lower()
    return folded if len(folded) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


def _try(rule: Rule, number: int, text: str, start: int, spans: list[Span]) -> int:
    """Tries a rule at its literal's `start`, adds to `spans`, and returns how far the rule has read."""
    if rule.paired:
        spans += [(begin, end, number, rule.kind) for begin, end in _between_tags(rule, text)]
        return len(text)
    match = rule.pattern.match(text, start - rule.back) if start >= rule.back else None
    if match is None:
        return 0
    if rule.words:
        words = _WORD.finditer(text, *match.span(1))
        spans += [(*word.span(), number, rule.kind) for word in words if rule.accepts(word[0])]
        return match.end()
    if rule.column:
        cells = list(_cells_below(text, start))
        spans += [(begin, end, number, rule.kind) for begin, end in cells if rule.accepts(text[begin:end])]
        return cells[-1][1] if cells else match.end()
    if rule.behind:
        match = _WORD_BEFORE.search(text, max(0, start - LONGEST_WORD), start)
        if match is None:
            return 0
    group = 1 if match.lastindex else 0
    secret = match.group(group)
    if not secret.startswith(_MARK) and not _EXAMPLE.search(secret) and rule.accepts(secret):
        begin, end = match.span(group)
        first = _first_of_block(text, begin) if rule.tail else begin
        if first < begin or not rule.tail:
            spans.append((first, end, number, rule.kind))
    return match.end()


#: Where a program or a shell joins two pieces of a text.
_JOINT = re.compile(r"""(?:["'`]\s{0,40}(?:\+|\.\.|\.|&|\n)\s{0,40}["'`]|\\\r?\n[ \t]{0,40})(?=[^\s"'`])""")
#: Characters from a word that names a secret to the first joint.
TO_FIRST_JOINT = 160
#: Characters from the first joint to the last.
TO_LAST_JOINT = 600
#: Characters of a name before a secret.
LONGEST_NAME = 60


def _split_spans(text: str, names: Sequence[int]) -> list[Span]:
    """Returns the spans of secrets written in pieces after a word that `names` them.

    The pieces are read as one text.
    """
    spans: list[Span] = []
    at = 0
    for begin in names:
        joint = _JOINT.search(text, begin, begin + TO_FIRST_JOINT) if begin >= at else None
        if joint is None:
            continue
        begin = max(0, begin - LONGEST_NAME)
        pieces, places = list[str](), list[int]()
        for other in _JOINT.finditer(text, joint.start(), joint.end() + TO_LAST_JOINT):
            pieces.append(text[begin : other.start()])
            places += range(begin, other.start())
            begin = at = other.end()
        places += range(begin, min(at + TO_FIRST_JOINT, len(text)))
        joined = "".join([*pieces, text[begin : at + TO_FIRST_JOINT]])
        for start, stop, number, kind in _spans(joined)[0]:
            if stop - start != places[stop - 1] + 1 - places[start]:  # it contains a joint
                spans.append((places[start], places[stop - 1] + 1, number, kind))
    return spans


#: The continuation of a secret that ends a line: alone on the next one, quoted or in a cell, or joined by a program.
_WRAPPED = re.compile(
    r"(?:(?:[ \t]{0,40}[│|]?\\?\r?\n[ \t>#│|]{0,80}|[\"'][ \t\n]{0,40}(?:[+.&\\]"
    r"[ \t\n]{0,40}|(?<=\n)[ \t]{0,40})[\"'])(?=[A-Za-z+/=_-]{0,30}[0-9])"
    r"(?=[0-9+/=_-]{0,30}[A-Za-z])[A-Za-z0-9_\-+/=]{8,200}(?=[ \t]*(?:[\r\n\"'│|\\]|\Z))){1,20}"
)
#: A shorter secret is not continued on the next line.
SHORTEST_WRAPPED = 16
#: The continuation after a hyphen at the end of a line.
_HYPHENATED = re.compile(r"\r?\n[ \t]{1,40}[^\s\"'`]{2,60}")


def _end_of_wrapped(text: str, start: int, end: int) -> int:
    """Returns the end of a secret that may continue after its line or its quotes."""
    if text[end - 1] == "-":
        wrapped = _HYPHENATED.match(text, end)
    elif end - start >= SHORTEST_WRAPPED and is_token(text[start:end]):
        wrapped = _WRAPPED.match(text, end)
    else:
        return end
    return wrapped.end() if wrapped else end


#: A piece of a secret is recognised if it is at least this share (0-1) of it,
MIN_PIECE = 0.4
#: and has at least this many characters.
SHORTEST_PIECE = 8


def _without_halves(text: str, removed: set[str], counts: Counter[str]) -> str:
    """Returns `text` without the beginnings and ends of secrets that were removed from it."""
    spans: list[Span] = []
    for secret in removed:
        if is_known_alone(secret):
            least = max(SHORTEST_PIECE, int(len(secret) * MIN_PIECE))
            pieces = _pieces(text, secret, least)
            spans += [
                (start, end, -1, "known-again")
                for start, end in pieces
                if is_piece(text[start:end], secret) or _is_cut(text, start, end, secret)
            ]
    return _replaced(text, spans, counts) if spans else text


def _is_cut(text: str, start: int, end: int, secret: str) -> bool:
    """Whether a piece of a secret was cut within a word: the word goes on in the secret, and not in the text."""
    piece, length = text[start:end], end - start
    if not (has_digit(piece) or is_unusual(piece)):
        return False
    if secret.startswith(piece):
        return (
            secret[length - 1 : length + 1].isalpha() and secret[length].islower() and not text[end : end + 1].isalnum()
        )
    before = text[max(0, start - 1) : start]
    return secret[-length - 1 : -length + 1].isalpha() and secret[-length].islower() and not before.isalnum()


def _pieces(text: str, secret: str, least: int) -> Iterator[tuple[int, int]]:
    """Yields the spans of at least `least` of a secret's first or last characters."""
    head, tail = secret[:least], secret[-least:]
    start = text.find(head)
    while start >= 0:
        length = least
        while length < len(secret) and text[start + length : start + length + 1] == secret[length]:
            length += 1
        yield start, start + length
        start = text.find(head, start + length)
    start = text.find(tail)
    while start >= 0:
        length = least
        while length < len(secret) and start > 0 and text[start - 1] == secret[-length - 1]:
            start, length = start - 1, length + 1
        yield start, start + length
        start = text.find(tail, start + length)


#: A vendor's own example, or a shape filled with one letter.
_EXAMPLE = re.compile(r"([xX.*0])\1{11}|EXAMPLE\Z")
_WORD = re.compile(r"[^\s\"'`,;()]+")
#: The most characters of a word before a position.
LONGEST_WORD = 100
_WORD_BEFORE = re.compile(r"(?<![^\s\"'`(])([^\s\"'`()]{8,90})[\s\"'`(,]{1,4}\Z")
#: Lines of base64, read backwards; line ends may be escaped.
_BLOCK = re.compile(r"(?:(?:[nr]\\{1,3}|\s){1,24}[A-Za-z0-9+/=]{16,}+){1,400}")
#: The most characters of base64 that are removed before its end.
LONGEST_BLOCK = 32_768


#: Rows that are read below the head of a table.
MAX_ROWS = 100
#: Characters of a row; a longer line is not part of a table.
LONGEST_ROW = 1000


def _cells_below(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yields the spans of the words below the cell at `start` in the head of a table."""
    furthest = max(0, start - LONGEST_ROW)
    column = text.count("|", max(furthest, text.rfind("\n", furthest, start) + 1), start)
    line = text.find("\n", start, start + LONGEST_ROW)
    if line < 0:
        return
    for _ in range(MAX_ROWS):
        end = text.find("\n", line + 1, line + 2 + LONGEST_ROW)
        row = text[line + 1 : end if end >= 0 else line + 2 + LONGEST_ROW]
        if len(row) > LONGEST_ROW or not ("|" in row or set(row.strip()) <= {"-", "+", "="}):
            return
        cells = row.split("|")
        if column < len(cells) and (word := cells[column].strip()):
            begin = line + 1 + sum(len(cell) + 1 for cell in cells[:column]) + cells[column].find(word)
            yield begin, begin + len(word)
        if end < 0:
            return
        line = end


def _first_of_block(text: str, end: int) -> int:
    """Returns the start of the lines of base64 that end at `end`."""
    block = _BLOCK.match(text[max(0, end - LONGEST_BLOCK) : end][::-1])
    return end - block.end() if block else end


def _between_tags(rule: Rule, text: str) -> list[tuple[int, int]]:
    """Returns the spans between tags, nested ones included; an unclosed tag reaches to the end."""
    spans: list[tuple[int, int]] = []
    start = depth = 0
    for tag in rule.pattern.finditer(text):
        if not tag.group(1):
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                spans.append((start, tag.end()))
    return [*spans, (start, len(text))] if depth else spans


def _replaced(text: str, spans: list[Span], counts: Counter[str]) -> str:
    """Returns `text` with each span replaced by a mark.

    Overlapping spans become one, of the kind of the earliest rule.
    """
    kept: list[str] = []
    at = 0
    spans.sort()
    start, end, best, kind = spans[0]
    for span in (*spans[1:], None):
        if span is not None and span[0] < end:
            end = max(end, span[1])
            if span[2] < best:
                best, kind = span[2:]
            continue
        kept += [text[at:start], f"{_MARK}{kind}]"]
        counts[kind] += 1
        if isinstance(counts, Removed) and best >= 0:
            counts.note(text[start:end])
        at = end
        if span is not None:
            start, end, best, kind = span
    return "".join(kept) + text[at:]


def redact_tree(value: Any, counts: Counter[str], *, key: str = "") -> Any:
    """Returns a decoded JSON value with every string redacted, names included, and numbers in secret fields removed."""
    if isinstance(value, str):
        return redact(value, counts, key=key)
    if isinstance(value, Mapping):
        named = value.get("name") or value.get("key")  # {"name": "DB_PASSWORD", "value": ...}
        named = named if isinstance(named, str) else ""
        return {
            redact(str(k), counts): redact_tree(v, counts, key=named if k == "value" and named else str(k))
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [redact_tree(item, counts, key=key) for item in value]
    if type(value) in (int, float) and key and is_secret_key(key):
        return redact(str(value), counts, key=key)
    return value


def withhold(value: Any) -> Any:
    """Returns a decoded JSON value with its strings redacted again, in case older rules redacted what is stored."""
    if isinstance(value, str):
        return redact(value, Counter())
    if isinstance(value, Mapping):
        return {name: withhold(item) for name, item in value.items()}
    return [withhold(item) for item in value] if isinstance(value, list) else value


def storable_path(path: str) -> str:
    """Returns a file's path as it can be stored: unchanged, or redacted with a hash of the whole."""
    shown = redact(path, Counter())
    return path if shown == path else f"{shown}#{hashlib.sha256(path.encode('utf-8', 'replace')).hexdigest()[:16]}"
