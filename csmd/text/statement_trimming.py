"""Trims a sentence to its statement, and splits it at the start of another statement; pure."""

from __future__ import annotations

import re

from csmd.text.sentence import decides_by_order, parse
from csmd.text.sentence_words import MAX_READ, WORDS, begins, phrase_size, tokenise

#: Most words of an order appended to a statement.
MAX_TAIL_WORDS = 4
#: Characters at the end of a statement that are searched for closing words.
TAIL_CHARACTERS = 60
#: Fewest words that a trimmed statement keeps.
MIN_REMAINING_WORDS = 2
#: Most openings that are removed from a statement.
MAX_OPENINGS = 3
#: Fewest tokens of a rule that follows an order.
MIN_CLAUSE_TOKENS = 4
_POINTING = frozenset("it this that them these those everything".split())
#: A question tag after a comma asks only for assent: ", ok?".
_TAGGED = re.compile(r",\s*(?:\w+ ){0,1}\w+[?？]+\W*$")


def trim_statement(text: str) -> str:
    """Removes the words that open or close a statement without a meaning of their own; whole if nothing would remain."""
    head = text
    for _ in range(MAX_OPENINGS):
        body = parse(head).body
        if body == head or _count_meaningful_words(body) < MIN_REMAINING_WORDS:
            break
        head = body
    words = [word for word in tokenise(head[-TAIL_CHARACTERS:]) if word[0][0].isalnum()]
    closing = WORDS["closing"] | (WORDS["tag"] if _TAGGED.search(head) else frozenset())
    for size in (2, 1):
        if len(words) > size and "_".join(word for word, _ in words[-size:]) in closing:
            end = max(0, len(head) - TAIL_CHARACTERS) + words[-size][1]
            shorter = head[:end].rstrip(" ,;")
            if _count_meaningful_words(shorter) >= MIN_REMAINING_WORDS:
                head = shorter
            break
    before, _, after = head.rpartition(", ")
    is_statement = _count_meaningful_words(before) >= MIN_REMAINING_WORDS and parse(before).kind == "states"
    return before if is_statement and _is_appended_order(after) else head


def _is_appended_order(text: str) -> bool:
    """Whether a few words are an order about the words before them: "fix it", "can you check"."""
    sentence = parse(text)
    words = [word for word in sentence.words if word[0].isalnum()]
    is_at_hand = len(words) == 1 or not _POINTING.isdisjoint(words) or bool(begins("request.en", words))
    return sentence.kind == "orders" and not sentence.lasting and len(words) <= MAX_TAIL_WORDS and is_at_hand


def _count_meaningful_words(text: str) -> int:
    return sum(len(word) > 1 or not word.isascii() for word, _ in tokenise(text) if word[0].isalnum())


def split_clauses(text: str) -> list[str]:
    """Splits a sentence before an aside, or before a rule that follows an order, a question or another statement."""
    tokens = tokenise(text[:MAX_READ])
    words = [word for word, _ in tokens]
    start = 0
    parts: list[str] = []
    for index in range(2, len(tokens) - 2):
        mark = words[index - 1]
        if mark not in ",;:-–—" and mark not in ("and", "but"):
            continue
        aside_at = index + (words[index] in ("and", "but", "also", "oh"))
        is_aside = mark in ",;:-–—" and phrase_size(WORDS["aside"], words[aside_at : aside_at + 3])
        rule_size = phrase_size(WORDS["lays_down"], words[index : index + 3])
        is_joined = mark in ("and", "but", ";") or rule_size > 1
        if not is_aside and not (rule_size and is_joined and len(tokens) - index >= MIN_CLAUSE_TOKENS):
            continue
        before = text[tokens[start][1] : tokens[index - 1][1]].rstrip(" ,;:-–—")
        parsed = parse(before)
        # The reason for an order that decides something belongs to it: "keep it short, I don't like essays".
        is_reason = mark == "," and decides_by_order(parsed.words)
        if is_aside or parsed.kind == "asks" or (parsed.kind == "orders" and not is_reason):
            parts.append(before)
            start = index
    return [*parts, text[tokens[start][1] :]] if parts else [text]
