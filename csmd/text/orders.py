"""Strips orders of courtesy, and recognises tasks and questions about errands; pure."""

from __future__ import annotations

from itertools import dropwhile

from csmd.text.sentence import Sentence, has, is_imperative, parse, text_from
from csmd.text.sentence_words import MAX_READ, WORDS, is_verb, phrase_size, tokenise

#: Openings of a request.
_COURTESY = WORDS["request.en"] | WORDS["insist.en"] | {name for name in WORDS["wants.en"] if name.endswith("_to")}
_FILLERS = WORDS["connective"] | WORDS["adverb"]
_MANNER = WORDS["manner.en"] - {"commit", "push"}
#: Words that are not the verb of an order.
_NOT_VERBS = frozenset[str]().union(
    *(WORDS[f"{name}.en"] for name in ("subject", "wh", "when", "aux", "closed", "finite"))
)
_ABOUT_TO = frozenset((lead, doer) for lead in ("should", "shall", "can", "could", "may") for doer in ("i", "we"))
_ABOUT_TO |= {("me", "to"), ("you", "to"), ("ready", "to"), ("want", "to")}


def bare_order(text: str, *, sets_out: bool = False) -> str:
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
    words = sentence.words if is_verb(sentence.words[:1]) else parse(bare_order(sentence.text)).words
    index = next((index for index, word in enumerate(words) if word in ("we", "i")), None)
    if not is_verb(words[:1]) and index is not None:
        words = words[index + 1 :]
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
