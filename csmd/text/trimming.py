"""Trims a sentence to its order or statement, splits it, and recognises orders that are tasks; pure."""

from __future__ import annotations

import re
from itertools import dropwhile

from csmd.text.sentence import Sentence, decides_by_order, has, is_imperative, parse, text_from, without_opening
from csmd.text.sentence_words import MAX_READ, WORDS, begins, is_verb, phrase_size, tokenise

#: Most words of an order appended to a statement.
MAX_TAIL_WORDS = 4
#: Characters at the end of a statement that are searched for closing words.
TAIL_CHARACTERS = 60
#: Fewest words that a trimmed statement keeps.
MIN_REMAINING_WORDS = 2
#: Most openings that are removed from a statement.
MAX_OPENINGS = 3
#: Most polite phrases one after the other, and fewest words of the sentence that they lead to.
MAX_COURTESIES = 3
MIN_SENTENCE_WORDS = 4
#: Fewest tokens of a rule that follows an order.
MIN_CLAUSE_TOKENS = 4
_POINTING = frozenset("it this that them these those everything".split())
#: A question tag after a comma asks only for assent: ", ok?".
_TAGGED = re.compile(r",\s*(?:\w+ ){0,1}\w+[?？]+\W*$")
#: Openings of a request.
_COURTESY = WORDS["request.en"] | WORDS["insist.en"] | {name for name in WORDS["wants.en"] if name.endswith("_to")}
_FILLERS = WORDS["connective"] | WORDS["adverb"]
_MANNER = WORDS["manner.en"] - {"commit", "push"}
#: Words that are not the verb of an order.
_NOT_VERBS = WORDS["subject.en"] | WORDS["wh.en"] | WORDS["when.en"] | WORDS["aux.en"] | WORDS["closed.en"]
_NOT_VERBS |= WORDS["finite.en"]
_ABOUT_TO = frozenset((lead, doer) for lead in ("should", "shall", "can", "could", "may") for doer in ("i", "we"))
_ABOUT_TO |= {("me", "to"), ("you", "to"), ("ready", "to"), ("want", "to")}


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


def trim_courtesy(text: str) -> str:
    """Removes the polite words that lead to a sentence or are added to it; whole if they lead to no sentence."""
    rest = text
    for _ in range(MAX_COURTESIES):
        wish = without_opening("opines", "en", rest)
        rest = without_opening("courtesy", "en", rest) or (wish if parse(wish).lasting == "taste" else "") or rest
    rest = rest.removeprefix("that ") if rest is not text else text
    tokens = tokenise(rest[:MAX_READ])
    words = [word for word, _ in tokens]
    ends = (
        start
        for index, (word, start) in enumerate(tokens)
        if word == "," and phrase_size(WORDS["courtesy_tail.en"], words[index + 1 : index + 5])
    )
    rest = rest[: next(ends, None)]
    return rest if _count_meaningful_words(rest) >= MIN_SENTENCE_WORDS else text


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


# --- orders


def strip_order(text: str, *, sets_out: bool = False) -> str:
    """Removes the greetings and the request from an order; whole if nothing would remain.

    With `sets_out` also removes the words that only begin the work: "get going on the ledger" is "the ledger".
    """
    courtesy = _COURTESY | WORDS["set_out.en"] if sets_out else _COURTESY
    head = parse(text).body or text
    tokens = tokenise(head[:MAX_READ])
    words = [word for word, _ in tokens]
    index = end = 0
    while index < len(words):
        if size := phrase_size(courtesy, words[index : index + 4]):
            end = index + size
        elif size := phrase_size(_FILLERS, words[index : index + 4]):
            if is_imperative(parse(text_from(head, tokens, index + size).rstrip(" ?"))):
                end = index + size
        elif words[index][0].isalnum() or words[index][0] in "`$_/":
            break
        index += size or 1
    while end and end < len(words) and words[end] in ",;:.!?-–—…":
        end += 1
    return text_from(head, tokens, end) or text


def is_task(sentence: Sentence) -> bool:
    """Whether a sentence orders or wants something made or changed once: "add a filter".

    With a limit, an exception or a condition, for each of several, or with a verb of habit, it is a rule.
    """
    has_terms = has("limits", "en", sentence.core) or has("condition", "en", sentence.core)
    if sentence.language != "en" or sentence.words[:2] == ("do", "not") or has_terms:
        return False
    words = sentence.words if is_verb(sentence.words[:1]) else parse(strip_order(sentence.text)).words
    index = next((index for index, word in enumerate(words) if word in ("we", "i")), None)
    if not is_verb(words[:1]) and index is not None:
        words = words[index + 1 :]
        if words[:1] in (("need",), ("want",)) and words[1:2] != () and words[1] in WORDS["wanted_thing.en"]:
            return True
        size = phrase_size(WORDS["obliges.en"], words)
        words = tuple(dropwhile(lambda word: word in ("also", "just", "then"), words[size:])) if size else ()
    is_made = is_verb(words[:1]) and words[0] not in WORDS["habit.en"] and words[:2] != ("make", "sure")
    return is_made and (words[0] not in _MANNER or words[1:2] in (("the",), ("a",), ("an",), ("up",)))


def is_about_errand(sentence: Sentence) -> bool:
    """Whether a question is about an action done once or next: "shall I run the tests or commit?", "what should I open?"."""
    words = sentence.words
    errands = WORDS["done_once.en"] if "or" in words else WORDS["done_once.en"] | WORDS["tackle.en"]
    verbs = [verb for lead, doer, verb in zip(words, words[1:], words[2:], strict=False) if (lead, doer) in _ABOUT_TO]
    return not (errands | {"do"}).isdisjoint(verbs) or not {"first", "next", "now"}.isdisjoint(words)


def may_be_order(text: str, *, is_asked: bool) -> bool:
    """Whether a text is an order; after a request any verb begins one."""
    sentence = parse(text)
    if not is_asked or sentence.kind != "states":
        return sentence.kind == "orders"
    return bool(sentence.words) and sentence.words[0] not in _NOT_VERBS
