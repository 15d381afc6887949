"""Secrets are taken out before anything is stored; on decoded text with its key as context.

capture/secrets.py is the policy. One compiled prefilter finds every place where a literal of a rule
stands; only there a pattern is tried, so that text without a hint costs one pass. What is replaced
leaves `[redacted:KIND]`, so that a reader sees that something stood there, and is never replaced
again. Where two rules find the same place the whole of both goes, under the name of the earlier.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from csmd.capture.passwords import is_mixed
from csmd.capture.secrets import HARMLESS_VALUE, MAYBE_SECRET_KEY, RULES, SECRET_KEY, Rule

#: No secret with what makes it known is shorter.
SHORTEST = 8
#: What was taken out may let a rule see what stood beside it; a text that goes on longer is nobody's.
ROUNDS = 4
#: Letters of which every literal has one, the best to look for first: few and seldom in sessions (measured).
ANCHORS = '_AxkKS-<:gGvVpPQqyzZbB1"RcC'
_MARK = "[redacted:"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]")

#: (start, end, place of its rule in the table, kind)
Span = tuple[int, int, int, str]
#: A literal (lower case where its rule ignores case), how far into it its anchor stands, whether case counts, its rules.
Hint = tuple[str, int, bool, tuple[int, ...]]


def _prefilter(rules: Sequence[Rule]) -> tuple[re.Pattern[str], dict[tuple[str, bool], list[Hint]]]:
    """A pattern that stops at one letter of every literal, its anchor, and what may stand there.

    A search passes by what is no such letter as fast as it can, and most others fail at the next letter: an
    alternation of the literals themselves stops at nearly every letter, and `in` reads the text for each of them.
    """
    by_literal: dict[tuple[str, bool], list[int]] = {}
    for number, rule in enumerate(rules):
        for literal in rule.literals:
            by_literal.setdefault((literal, rule.ignores_case), []).append(number)
    # By the anchor and the letter before it (True), or behind it where it is the first (False).
    hints: dict[tuple[str, bool], list[Hint]] = {}
    looks: dict[str, list[str]] = {}
    for (literal, ignores_case), numbers in by_literal.items():
        at = _anchor(literal, ignores_case)
        spelt = [_spelt(letter, ignores_case) for letter in literal]
        for letter in _cases(literal[at], ignores_case):
            for beside in _cases(literal[at - 1 if at else 1], ignores_case):
                pair = (beside + letter, True) if at else (letter + beside, False)
                hints.setdefault(pair, []).append((literal, at, ignores_case, tuple(numbers)))
            looks.setdefault(letter, []).append("".join(spelt[at + 1 :]) + (f"(?<={''.join(spelt)})" if at else ""))
    ordered = sorted(looks, key=ANCHORS.find, reverse=True)  # the commonest first
    return re.compile("|".join(f"{re.escape(one)}(?:{'|'.join(looks[one])})" for one in ordered)), hints


def _anchor(literal: str, ignores_case: bool) -> int:
    """Which letter of a literal is looked for; the last only where no other will do, or `_`, that stands last in many."""
    body = literal if literal.endswith("_") else literal[:-1]
    spelt = body.lower() + literal[-1] if ignores_case else body + literal[-1]
    return min(
        (ANCHORS.index(one), place)
        for place, one in enumerate(spelt)
        if one in ANCHORS and (place < len(body) or not set(body) & set(ANCHORS))
    )[1]


def _cases(letter: str, ignores_case: bool) -> tuple[str, ...]:
    return (letter, letter.upper()) if ignores_case and letter.isalpha() else (letter,)


def _spelt(letter: str, ignores_case: bool) -> str:
    return f"[{letter}{letter.upper()}]" if ignores_case and letter.isalpha() else re.escape(letter)


_HINTS, _AT_PAIR = _prefilter(RULES)
#: Marks, and in group 1 the user's own words; None for none.
_chosen: re.Pattern[str] | None = None


def choose_words(words: Sequence[str]) -> None:
    """Sets the words that this process takes out besides (`privacy.redact`); the daemon does once, at its start.

    Held here and not handed through: no caller of redact() can forget them.
    """
    global _chosen
    longest_first = sorted(words, key=len, reverse=True)
    chosen = "|".join(re.escape(word) for word in longest_first)
    _chosen = re.compile(rf"\[redacted:[a-z0-9-]{{1,40}}\]|({chosen})") if words else None


def redact(text: str, counts: Counter[str], *, key: str = "") -> str:
    """`text` without secrets; `counts` gains one for each by kind. `key` is the field it stood in."""
    if key and _is_secret_value(text, key):
        counts["secret-field"] += 1
        return f"{_MARK}secret-field]"
    if len(text) < SHORTEST and _chosen is None:
        return text
    for _ in range(ROUNDS):
        spans = _spans(text)
        if not spans:
            break
        text = _replaced(text, spans, counts)
    return text


def is_secret_key(key: str) -> bool:
    """Whether a field's name says that its value is a secret: `apiKey`, `db_password`, `Authorization`."""
    return SECRET_KEY.search(_words(key)) is not None


def _words(key: str) -> str:
    return _WORD_START.sub("_", key[-80:]).lower()


def _is_secret_value(text: str, key: str) -> bool:
    name = _words(key)
    if SECRET_KEY.search(name):
        return HARMLESS_VALUE.fullmatch(text.strip()) is None
    return MAYBE_SECRET_KEY.search(name) is not None and len(text) >= 8 and " " not in text and is_mixed(text)


def _spans(text: str) -> list[Span]:
    """What is to go, from all rules, in no order; places may overlap."""
    spans: list[Span] = []
    if _chosen is not None:
        spans += [(*word.span(), -1, "chosen-word") for word in _chosen.finditer(text) if word.group(1)]
    done: dict[int, int] = {}  # up to where a rule has read: it never reads a place twice
    hint = _HINTS.search(text)
    while hint is not None:
        place = hint.start()
        for literal, offset, ignores_case, numbers in _standing_at(text, place):
            start = place - offset
            if start < 0 or not (
                text[start : start + len(literal)].lower() == literal
                if ignores_case
                else text.startswith(literal, start)
            ):
                continue
            for number in numbers:
                if start >= done.get(number, 0):
                    done[number] = _try(RULES[number], number, text, start, spans)
        hint = _HINTS.search(text, place + 1)  # not from its end: another one may begin inside
    return spans


def _standing_at(text: str, place: int) -> Iterator[Hint]:
    """The hints whose anchor stands at `place`, by it and the letter beside it."""
    yield from _AT_PAIR.get((text[place : place + 2], False), ())
    if place:
        yield from _AT_PAIR.get((text[place - 1 : place + 1], True), ())


def _try(rule: Rule, number: int, text: str, start: int, spans: list[Span]) -> int:
    """Tries a rule at its literal's `start`; adds to `spans` and says up to where the rule has read."""
    if rule.paired:
        spans += [(begin, end, number, rule.kind) for begin, end in _between_tags(rule, text)]
        return len(text)
    match = rule.pattern.match(text, start - rule.back) if start >= rule.back else None
    if match is None:
        return 0
    group = 1 if match.lastindex else 0
    secret = match.group(group)
    if not secret.startswith(_MARK) and rule.accepts(secret):
        spans.append((*match.span(group), number, rule.kind))
    return match.end()


def _between_tags(rule: Rule, text: str) -> list[tuple[int, int]]:
    """What stands between tags, those inside included; what is never closed goes to the end."""
    found: list[tuple[int, int]] = []
    start = depth = 0
    for tag in rule.pattern.finditer(text):
        if not tag.group(1):
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                found.append((start, tag.end()))
    return [*found, (start, len(text))] if depth else found


def _replaced(text: str, spans: list[Span], counts: Counter[str]) -> str:
    """`text` with a mark in the place of each span; those that overlap are one, of the earliest rule's kind."""
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
        at = end
        if span is not None:
            start, end, best, kind = span
    return "".join(kept) + text[at:]


def redact_tree(value: Any, counts: Counter[str], *, key: str = "") -> Any:
    """A decoded JSON value with every string in it redacted, names of fields included; numbers in secret fields go."""
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


def storable_path(path: str) -> str:
    """A file's path as a name that can be stored: itself, or redacted with a hash of the whole."""
    shown = redact(path, Counter())
    return path if shown == path else f"{shown}#{hashlib.sha256(path.encode('utf-8', 'replace')).hexdigest()[:16]}"
