"""Trims a sentence to its statement, and splits it where another statement begins; pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd.text.sentence import decides_by_order, parse
from csmd.text.sentence_words import MAX_READ, WORDS, begins, phrase_size, split_words, tokenise
from csmd.text.tokens import STOP_WORDS

#: Most words of an order appended to a statement.
MAX_TAIL_WORDS = 4
#: Characters of the end of a statement in which closing words are looked for.
TAIL_CHARACTERS = 60
#: Fewest words that a trimmed statement keeps.
MIN_KEPT_WORDS = 2
#: Fewest tokens of a rule that follows an order.
MIN_CLAUSE_TOKENS = 4
_POINTING = frozenset("it this that them these those everything".split())
#: A question tag after a comma asks only for assent: ", ok?".
_TAGGED = re.compile(r",\s*(?:\w+ ){0,1}\w+[?？]+\W*$")


def trim_statement(text: str) -> str:
    """Removes the words that open or close a statement and mean nothing on their own; whole if nothing else is left."""
    head = text
    for _ in range(3):
        body = parse(head).body
        if body == head or _count_meaningful_words(body) < MIN_KEPT_WORDS:
            break
        head = body
    words = [word for word in tokenise(head[-TAIL_CHARACTERS:]) if word[0][0].isalnum()]
    closing = WORDS["closing"] | (WORDS["tag"] if _TAGGED.search(head) else frozenset())
    for size in (2, 1):
        if len(words) > size and "_".join(word for word, _ in words[-size:]) in closing:
            at = max(0, len(head) - TAIL_CHARACTERS) + words[-size][1]
            shorter = head[:at].rstrip(" ,;")
            head = shorter if _count_meaningful_words(shorter) >= MIN_KEPT_WORDS else head
            break
    before, _, after = head.rpartition(", ")
    if _count_meaningful_words(before) >= MIN_KEPT_WORDS and _is_appended_order(after):
        return before if parse(before).kind == "states" else head
    return head


def _is_appended_order(text: str) -> bool:
    """Whether a few words order something done about the words before them: "fix it", "can you check".

    What follows from them stays with them: "so make it 60".
    """
    sentence = parse(text)
    words = [word for word in sentence.words if word[0].isalnum()]
    if split_words(text)[:1] == ("so",) and not sentence.is_of_moment and _says_how(words):
        return False
    is_at_hand = len(words) == 1 or not _POINTING.isdisjoint(words) or bool(begins("request.en", words))
    return sentence.kind == "orders" and not sentence.lasting and len(words) <= MAX_TAIL_WORDS and is_at_hand


def _says_how(words: Sequence[str]) -> bool:
    """Whether an order says more than to do something about a thing at hand: a number, or how, where or when."""
    return any(word[0].isdigit() for word in words) or any(
        word not in _POINTING and word not in WORDS["now.en"] and word not in STOP_WORDS for word in words[1:]
    )


def _count_meaningful_words(text: str) -> int:
    return sum(len(word) > 1 or not word.isascii() for word, _ in tokenise(text) if word[0].isalnum())


def split_clauses(text: str) -> list[str]:
    """Splits a sentence where an aside or a rule follows an order, a question or another statement."""
    tokens = tokenise(text[:MAX_READ])
    words = [word for word, _ in tokens]
    start = 0
    parts: list[str] = []
    for at in range(2, len(tokens) - 2):
        mark = words[at - 1]
        if mark not in ",;:-–—" and mark not in ("and", "but"):
            continue
        aside_at = at + (words[at] in ("and", "but", "also", "oh"))
        is_aside = mark in ",;:-–—" and phrase_size(WORDS["aside"], words[aside_at : aside_at + 3])
        rule_size = phrase_size(WORDS["lays_down"], words[at : at + 3])
        is_joined = mark in ("and", "but", ";") or rule_size > 1
        if not is_aside and not (rule_size and is_joined and len(tokens) - at >= MIN_CLAUSE_TOKENS):
            continue
        before = text[tokens[start][1] : tokens[at - 1][1]].rstrip(" ,;:-–—")
        read = parse(before)
        # The reason for an order that decides something belongs to it: "keep it short, I don't like essays".
        is_reason = mark == "," and decides_by_order(read.words)
        if is_aside or read.kind == "asks" or (read.kind == "orders" and not is_reason):
            parts.append(before)
            start = at
    return [*parts, text[tokens[start][1] :]] if parts else [text]
