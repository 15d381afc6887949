"""Replaces secrets in decoded text by marks."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ahocorasick

from csmd.data import lines
from csmd.privacy.secret_rules import HARMLESS_VALUE, MAYBE_SECRET_KEY, NEEDS, RULES, SECRET_KEY, Rule
from csmd.privacy.secret_shapes import gives_secret_away, has_digit, is_known_alone, is_mixed, is_token, is_unusual

#: A shorter text contains no secret together with what gives it away.
MIN_CHARACTERS = 8
#: A text is searched again after a replacement, which may reveal a secret next to it, at most this many times.
MAX_ROUNDS = 4
#: Most characters that a rule with a need reads.
MAX_MATCH_CHARACTERS = 1_500
#: The most characters of a literal.
MAX_LITERAL_CHARACTERS = 64
_MARK = "[redacted:"
#: The mark of a secret that was recognised alone, because the same one was found elsewhere in its session.
KNOWN_AGAIN = f"{_MARK}known-again]"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]")

#: Where a program or a shell joins two pieces of a text.
_JOINT = re.compile(r"""(?:["'`]\s{0,40}(?:\+|\.\.|\.|&|\n)\s{0,40}["'`]|\\\r?\n[ \t]{0,40})(?=[^\s"'`])""")
#: Most characters from a word that names a secret to the first joint.
FIRST_JOINT_CHARACTERS = 160
#: Most characters from the first joint to the last.
JOINT_CHARACTERS = 600
#: Most characters of a name before a secret.
MAX_NAME_CHARACTERS = 60
#: The continuation of a secret that ends a line: alone on the next one, quoted or in a cell, or joined by a program.
_WRAPPED = re.compile(
    r"(?:(?:[ \t]{0,40}[│|]?\\?\r?\n[ \t>#│|]{0,80}|[\"'][ \t\n]{0,40}(?:[+.&\\]"
    r"[ \t\n]{0,40}|(?<=\n)[ \t]{0,40})[\"'])(?=[A-Za-z+/=_-]{0,30}[0-9])"
    r"(?=[0-9+/=_-]{0,30}[A-Za-z])[A-Za-z0-9_\-+/=]{8,200}(?=[ \t]*(?:[\r\n\"'│|\\]|\Z))){1,20}"
)
#: Fewest characters of a secret that continues on the next line.
MIN_WRAPPED_CHARACTERS = 16
#: The continuation after a hyphen at the end of a line.
_HYPHENATED = re.compile(r"\r?\n[ \t]{1,40}[^\s\"'`]{2,60}")
#: Least share (0-1) of a secret, and fewest characters, of a piece that is recognised.
MIN_PIECE_SHARE = 0.4
MIN_PIECE_CHARACTERS = 8
#: A vendor's own example, or a shape filled with one letter.
_EXAMPLE = re.compile(r"([xX.*0])\1{11}|EXAMPLE\Z")
_WORD = re.compile(r"[^\s\"'`,;()]+")
#: The most characters of a word before a position.
MAX_WORD_CHARACTERS = 100
_WORD_BEFORE = re.compile(r"(?<![^\s\"'`(])([^\s\"'`()]{8,90})[\s\"'`(,]{1,4}\Z")
#: Lines of base64, read backwards; line ends may be escaped.
_BLOCK = re.compile(r"(?:(?:[nr]\\{1,3}|\s){1,24}[A-Za-z0-9+/=]{16,}+){1,400}")
#: Most characters of base64 that are removed before its end.
MAX_BLOCK_CHARACTERS = 32_768
#: Rows that are read below the head of a table.
MAX_ROWS = 100
#: Most characters of a row; a longer line is not part of a table.
MAX_ROW_CHARACTERS = 1000
#: The modules that decide what is a secret.
_SOURCES = ("redaction.py", "secret_rules.py", "secret_shapes.py", "secret_words.py")
#: Literals of rules that name a secret.
_SECRET_NAME = re.compile(r"passw|passphrase|secret|token|key|pw|auth|\A[a-z0-9]{2,}_\Z")


class Span(NamedTuple):
    """A secret in a text: the index of its rule in the table (-1 for none), and its kind."""

    start: int
    end: int
    rule: int
    kind: str


class RedactionCounts(Counter[str]):
    """Counts removed secrets by kind; `secrets` are those that are recognisable alone."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets: set[str] = set()

    def keep_secret(self, secret: str) -> None:
        """Keeps a removed secret, and its halves, if they are recognisable alone."""
        if is_known_alone(secret):
            middle = len(secret) // 2
            halves = (secret[:middle], secret[middle:], secret[: -(-len(secret) // 2)])
            distinctive = (half for half in halves if is_known_alone(half) and gives_secret_away(half, secret))
            self.secrets |= {secret, *distinctive}


class LiteralRule(NamedTuple):
    """A rule of a literal: its index, the literal if its case counts, and the match to try where it begins."""

    rule: int
    literal: str
    match: Callable[[str, int], object] | None


def _build_automaton(rules: Sequence[Rule]) -> ahocorasick.Automaton:
    """Returns an automaton that finds every literal in one pass over lower-cased text.

    It yields the literal's end, its length, its rules by need, and whether it names a secret.
    """
    by_literal: dict[str, list[LiteralRule]] = {}
    for number, rule in enumerate(rules):
        match = None if rule.back or rule.paired else rule.pattern.match
        for literal in rule.literals:
            row = LiteralRule(number, "" if rule.ignores_case else literal, match)
            by_literal.setdefault(literal.lower(), []).append(row)
    automaton = ahocorasick.Automaton()
    for literal, rows in by_literal.items():
        by_need: dict[str, list[LiteralRule]] = {}
        for row in rows:
            by_need.setdefault(rules[row.rule].needs, []).append(row)
        automaton.add_word(literal, (len(literal), [*by_need.items()], _SECRET_NAME.search(literal) is not None))
    automaton.make_automaton()
    return automaton


_LITERALS = _build_automaton(RULES)
#: Matches marks, and in group 1 the user's own words; None if there are none.
_chosen: re.Pattern[str] | None = None


def choose_words(words: Sequence[str]) -> None:
    """Sets the words that this process also removes (`privacy.redact`); the daemon calls it once, at its start.

    They are global so that no caller of redact() can forget them.
    """
    global _chosen
    chosen = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    _chosen = re.compile(rf"\[redacted:[a-z0-9-]{{1,40}}\]|({chosen})") if words else None


def read_rule_state() -> str:
    """Returns a text that changes whenever csmd's rules or the user's words change."""
    sources = (Path(__file__).with_name(name).read_text() for name in _SOURCES)
    rows = (line for name in ("rules", "patterns", "words") for line in lines(f"secret_{name}.txt"))
    return "\n".join([*rows, *sources, _chosen.pattern if _chosen else ""])


def redact(text: str, counts: Counter[str], *, key: str = "", kinds: Collection[str] | None = None) -> str:
    """Returns `text` without secrets, and counts each by kind in `counts`.

    `key` is the name of the field that contains the text; with `kinds` only secrets of these kinds are removed.
    """
    if key and _is_secret_value(text, key):
        counts["secret-field"] += 1
        if isinstance(counts, RedactionCounts):
            counts.keep_secret(text.strip())
        return f"{_MARK}secret-field]"
    if len(text) < MIN_CHARACTERS and _chosen is None:
        return text
    secrets: set[str] = set()
    for _ in range(MAX_ROUNDS):
        spans, names = _find_spans(text)
        if names:
            spans += _find_joined_spans(text, names)
        spans = [span for span in spans if kinds is None or span.kind in kinds]
        if not spans:
            break
        spans = [span._replace(end=_find_wrapped_end(text, span.start, span.end)) for span in spans]
        secrets |= {text[span.start : span.end] for span in spans}
        text = _replace_spans(text, spans, counts)
    return _remove_pieces(text, secrets, counts) if secrets else text


def remove_private(text: str, counts: Counter[str]) -> str:
    """Returns `text` without the text between privacy tags; applies no other rule."""
    folded = _fold_case(text)
    spans = [
        Span(start, end, number, rule.kind)
        for number, rule in enumerate(RULES)
        if rule.paired and any(literal.lower() in folded for literal in rule.literals)
        for start, end in _find_tagged_spans(rule, text)
    ]
    return _replace_spans(text, spans, counts)


def is_secret_key(key: str) -> bool:
    """Whether a field is named like one that contains a secret: `apiKey`, `db_password`, `Authorization`."""
    return SECRET_KEY.search(_split_key(key)) is not None


def _split_key(key: str) -> str:
    return _WORD_START.sub("_", key[-80:]).lower()


def _is_secret_value(text: str, key: str) -> bool:
    name = _split_key(key)
    if SECRET_KEY.search(name):
        return HARMLESS_VALUE.fullmatch(text.strip()) is None
    return MAYBE_SECRET_KEY.search(name) is not None and len(text) >= 8 and " " not in text and is_mixed(text)


def _find_spans(text: str) -> tuple[list[Span], list[int]]:
    """Returns the spans that all rules remove, unordered, and the positions of words that name a secret."""
    spans: list[Span] = []
    names: list[int] = []
    if _chosen is not None:
        spans += [Span(*word.span(), -1, "chosen-word") for word in _chosen.finditer(text) if word.group(1)]
    read_to = [0] * len(RULES)  # no rule reads a position twice
    line = ""
    line_end = 0
    met_needs: dict[str, bool] = {}  # for the part of a line that rules starting before `line_end` read
    for last, (length, by_need, is_name) in _LITERALS.iter(_fold_case(text)):
        start = last + 1 - length
        if is_name and (not names or start > names[-1]):
            names.append(last)
        if start >= line_end:
            end = text.find("\n", start, start + 4 * MAX_MATCH_CHARACTERS)
            line = text[max(0, start - MAX_LITERAL_CHARACTERS) : end if end >= 0 else start + 4 * MAX_MATCH_CHARACTERS]
            line_end = end if end >= 0 else start + 3 * MAX_MATCH_CHARACTERS
            met_needs = {"": True}
        for need, rows in by_need:
            if need not in met_needs:
                met_needs[need] = bool(NEEDS[need](line))
            if not met_needs[need]:
                continue
            for number, literal, match in rows:
                if start < read_to[number] or (literal and not text.startswith(literal, start)):
                    continue
                if match is None or match(text, start) is not None:
                    read_to[number] = _apply_rule(RULES[number], number, text, start, spans)
    return spans, names


def _fold_case(text: str) -> str:
    """Returns `text` in lower case and of the same length: letters that become two stay as they are."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(char if len(char.lower()) > 1 else char.lower() for char in text)


def _apply_rule(rule: Rule, number: int, text: str, start: int, spans: list[Span]) -> int:
    """Tries a rule at its literal's `start`, adds to `spans`, and returns the end of the text that it has read."""

    def add(new_spans: Iterable[tuple[int, int]]) -> None:
        spans.extend(Span(*span, number, rule.kind) for span in new_spans)

    if rule.paired:
        add(_find_tagged_spans(rule, text))
        return len(text)
    match = rule.pattern.match(text, start - rule.back) if start >= rule.back else None
    if match is None:
        return 0
    if rule.words:
        add(word.span() for word in _WORD.finditer(text, *match.span(1)) if rule.accepts(word[0]))
        return match.end()
    if rule.column:
        cells = list(_find_cells_below(text, start))
        add((begin, end) for begin, end in cells if rule.accepts(text[begin:end]))
        return cells[-1][1] if cells else match.end()
    if rule.behind:
        match = _WORD_BEFORE.search(text, max(0, start - MAX_WORD_CHARACTERS), start)
        if match is None:
            return 0
    group = 1 if match.lastindex else 0
    secret = match.group(group)
    if not secret.startswith(_MARK) and not _EXAMPLE.search(secret) and rule.accepts(secret):
        begin, end = match.span(group)
        first = _find_block_start(text, begin) if rule.tail else begin
        if first < begin or not rule.tail:
            add([(first, end)])
    return match.end()


def _find_joined_spans(text: str, names: Sequence[int]) -> list[Span]:
    """Returns the spans of secrets written in pieces after a word that names them; `names` are these words' ends."""
    spans: list[Span] = []
    last_end = 0
    for begin in names:
        joint = _JOINT.search(text, begin, begin + FIRST_JOINT_CHARACTERS) if begin >= last_end else None
        if joint is None:
            continue
        begin = max(0, begin - MAX_NAME_CHARACTERS)
        pieces = list[str]()
        positions = list[int]()
        for other in _JOINT.finditer(text, joint.start(), joint.end() + JOINT_CHARACTERS):
            pieces.append(text[begin : other.start()])
            positions += range(begin, other.start())
            begin = last_end = other.end()
        positions += range(begin, min(last_end + FIRST_JOINT_CHARACTERS, len(text)))
        joined = "".join([*pieces, text[begin : last_end + FIRST_JOINT_CHARACTERS]])
        for span in _find_spans(joined)[0]:
            start, end = positions[span.start], positions[span.end - 1] + 1
            if span.end - span.start != end - start:  # it contains a joint
                spans.append(span._replace(start=start, end=end))
    return spans


def _find_wrapped_end(text: str, start: int, end: int) -> int:
    """Returns the end of a secret that may continue after its line or its quotes."""
    if text[end - 1] == "-":
        wrapped = _HYPHENATED.match(text, end)
    elif end - start >= MIN_WRAPPED_CHARACTERS and is_token(text[start:end]):
        wrapped = _WRAPPED.match(text, end)
    else:
        return end
    return wrapped.end() if wrapped else end


def _remove_pieces(text: str, secrets: set[str], counts: Counter[str]) -> str:
    """Returns `text` without the beginnings and ends of secrets that were removed from it."""
    spans = [
        Span(start, end, -1, "known-again")
        for secret in filter(is_known_alone, secrets)
        for start, end in _find_pieces(text, secret, max(MIN_PIECE_CHARACTERS, int(len(secret) * MIN_PIECE_SHARE)))
        if gives_secret_away(text[start:end], secret) or _is_cut(text, start, end, secret)
    ]
    return _replace_spans(text, spans, counts)


def _is_cut(text: str, start: int, end: int, secret: str) -> bool:
    """Whether a piece of a secret was cut within a word: the word continues in the secret and not in the text."""
    piece, length = text[start:end], end - start
    if not (has_digit(piece) or is_unusual(piece)):
        return False
    if secret.startswith(piece):
        outside = text[end : end + 1]
        joint, next_letter = secret[length - 1 : length + 1], secret[length : length + 1]
    else:
        outside = text[max(0, start - 1) : start]
        joint, next_letter = secret[-length - 1 : -length + 1], secret[-length]
    return joint.isalpha() and next_letter.islower() and not outside.isalnum()


def _find_pieces(text: str, secret: str, min_length: int) -> Iterator[tuple[int, int]]:
    """Yields the spans of at least `min_length` of a secret's first or last characters."""
    head, tail = secret[:min_length], secret[-min_length:]
    start = text.find(head)
    while start >= 0:
        length = min_length
        while length < len(secret) and text[start + length : start + length + 1] == secret[length]:
            length += 1
        yield start, start + length
        start = text.find(head, start + length)
    start = text.find(tail)
    while start >= 0:
        length = min_length
        while length < len(secret) and start > 0 and text[start - 1] == secret[-length - 1]:
            start, length = start - 1, length + 1
        yield start, start + length
        start = text.find(tail, start + length)


def _find_cells_below(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yields the spans of the words below the cell at `start` in the head of a table."""
    furthest = max(0, start - MAX_ROW_CHARACTERS)
    column = text.count("|", max(furthest, text.rfind("\n", furthest, start) + 1), start)
    line = text.find("\n", start, start + MAX_ROW_CHARACTERS)
    if line < 0:
        return
    for _ in range(MAX_ROWS):
        end = text.find("\n", line + 1, line + 2 + MAX_ROW_CHARACTERS)
        row = text[line + 1 : end if end >= 0 else line + 2 + MAX_ROW_CHARACTERS]
        if len(row) > MAX_ROW_CHARACTERS or not ("|" in row or set(row.strip()) <= {"-", "+", "="}):
            return
        cells = row.split("|")
        if column < len(cells) and (word := cells[column].strip()):
            begin = line + 1 + sum(len(cell) + 1 for cell in cells[:column]) + cells[column].find(word)
            yield begin, begin + len(word)
        if end < 0:
            return
        line = end


def _find_block_start(text: str, end: int) -> int:
    """Returns the start of the lines of base64 that end at `end`."""
    block = _BLOCK.match(text[max(0, end - MAX_BLOCK_CHARACTERS) : end][::-1])
    return end - block.end() if block else end


def _find_tagged_spans(rule: Rule, text: str) -> list[tuple[int, int]]:
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


def _replace_spans(text: str, spans: list[Span], counts: Counter[str]) -> str:
    """Returns `text` with each span replaced by a mark.

    Overlapping spans become one, of the kind of the earliest rule.
    """
    merged: list[Span] = []
    for span in sorted(spans):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            continue
        last = merged[-1]
        first_rule = min(last, span, key=lambda span: span.rule)
        merged[-1] = first_rule._replace(start=last.start, end=max(last.end, span.end))
    pieces: list[str] = []
    position = 0
    for span in merged:
        pieces += [text[position : span.start], f"{_MARK}{span.kind}]"]
        counts[span.kind] += 1
        if isinstance(counts, RedactionCounts) and span.rule >= 0:
            counts.keep_secret(text[span.start : span.end])
        position = span.end
    return "".join(pieces) + text[position:]


def redact_tree(value: Any, counts: Counter[str], *, key: str = "") -> Any:
    """Returns a decoded JSON value with every string redacted, names included, and numbers in secret fields removed."""
    if isinstance(value, str):
        return redact(value, counts, key=key)
    if isinstance(value, Mapping):
        name = value.get("name") or value.get("key")  # {"name": "DB_PASSWORD", "value": ...}
        value_key = name if isinstance(name, str) and name else "value"
        return {
            redact(str(field), counts): redact_tree(item, counts, key=value_key if field == "value" else str(field))
            for field, item in value.items()
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
