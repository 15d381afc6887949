"""Reads orders: their bare form, and whether a sentence is a task or about an errand; pure."""

from __future__ import annotations

from itertools import dropwhile, takewhile

from csmd.text.decisions import explains
from csmd.text.sentence import Sentence, has, is_imperative, parse, text_from
from csmd.text.sentence_words import MAX_READ, WORDS, is_verb, phrase_size, split_words, tokenise

#: Words that ask for the words after them; "we should" belongs to those.
_COURTESY = WORDS["request.en"] | WORDS["insist.en"] | {name for name in WORDS["wants.en"] if name.endswith("_to")}
_FILLERS = WORDS["connective"] | WORDS["adverb"]
_MANNER = WORDS["manner.en"] - {"commit", "push"}
#: Words that are no verb of an order.
_NO_VERBS = frozenset[str]().union(
    *(WORDS[f"{name}.en"] for name in ("subject", "wh", "when", "aux", "closed", "finite"))
)
_CAUSES = frozenset(("because", "since", "as"))
_AT_HAND = WORDS["at_hand.en"] - {"the"}
_ABOUT_TO = frozenset((lead, doer) for lead in ("should", "shall", "can", "could", "may") for doer in ("i", "we"))
_ABOUT_TO |= {("me", "to"), ("you", "to"), ("ready", "to"), ("want", "to")}


def bare_order(text: str, *, sets_out: bool = False) -> str:
    """Returns an order without greetings and the words of the request; whole if nothing else is there.

    With `sets_out` also without the words that only begin it: "get going on the ledger" is "the ledger".
    """
    courtesy = _COURTESY | WORDS["set_out.en"] if sets_out else _COURTESY
    head = parse(text).body or text
    tokens = tokenise(head[:MAX_READ])
    words = [word for word, _ in tokens]
    at = end = 0
    while at < len(words):
        if size := phrase_size(courtesy, words[at : at + 4]):
            end = at + size
        elif size := phrase_size(_FILLERS, words[at : at + 4]):
            end = at + size if is_imperative(parse(text_from(head, tokens, at + size).rstrip(" ?"))) else end
        elif words[at][0].isalnum() or words[at][0] in "`$_/":
            break
        at += size or 1
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
    at = next((at for at, word in enumerate(words) if word in ("we", "i")), None)
    if not is_verb(words[:1]) and at is not None:
        words = words[at + 1 :]
        size = phrase_size(WORDS["obliges.en"], words)
        words = tuple(dropwhile(lambda word: word in ("also", "just", "then"), words[size:])) if size else ()
    is_made = is_verb(words[:1]) and words[0] not in WORDS["habit.en"] and words[:2] != ("make", "sure")
    return is_made and (words[0] not in _MANNER or words[1:2] in (("the",), ("a",), ("an",), ("up",)))


#: With these words a thing at hand begins, or an action, and no kind of things.
_NO_KIND = (
    (WORDS["closed.en"] - {"a", "an", "any", "it", "when"})
    | WORDS["wh.en"]
    | frozenset(("to", "being", "where", "either", "neither"))
)


def opens_with_dislike(sentence: Sentence) -> bool:
    """Whether a sentence says first that its speaker dislikes something."""
    return phrase_size(WORDS["dislikes.en"], sentence.words) > 0


def dislikes_kind(sentence: Sentence) -> bool:
    """Whether the speaker dislikes all things of a kind, or a habit: "I hate it when ...", not "I hate this page"."""
    size = phrase_size(WORDS["dislikes.en"], sentence.words)
    behind = sentence.words[size : size + 2]
    if not opens_with_dislike(sentence) or not behind or behind[0] in _NO_KIND:
        return False
    if behind[0] in ("it", "when"):
        return behind[0] == "when" or behind[1:] in (("when",), ("if",))
    return len(sentence.words) > size + 1 or behind[0].endswith("s")


def allows_only(sentence: Sentence) -> bool:
    """Whether a sentence without a verb allows only things of a kind, and says why: "only plain CSS, because ..."."""
    words = split_words(sentence.body)
    at = next((at for at, word in enumerate(words) if word in ("only", "just")), -1)
    if at < 0 or (at and words[at - 1] != ",") or not explains(sentence.words):
        return False
    thing = list(takewhile(lambda word: word[0].isalnum() and word not in _CAUSES, words[at + 1 :]))
    is_plain = bool(thing) and not is_verb(thing) and thing[0] not in _AT_HAND and not any(map(str.isdigit, thing[0]))
    is_plain = is_plain and not phrase_size(WORDS["picks.en"], thing)
    return is_plain and WORDS["finite.en"].isdisjoint(thing) and WORDS["one_time.en"].isdisjoint(thing)


def is_about_errand(sentence: Sentence) -> bool:
    """Whether a question is about an action done once or next: "shall I run the tests or commit?", "what should I open?"."""
    words = sentence.words
    errands = WORDS["done_once.en"] if "or" in words else WORDS["done_once.en"] | WORDS["tackle.en"]
    own = [word for lead, doer, word in zip(words, words[1:], words[2:], strict=False) if (lead, doer) in _ABOUT_TO]
    return not (errands | {"do"}).isdisjoint(own) or not {"first", "next", "now"}.isdisjoint(words)


def may_be_order(text: str, *, is_asked: bool) -> bool:
    """Whether a text is an order; after the words of a request any verb begins one."""
    sentence = parse(text)
    if not is_asked or sentence.kind != "states":
        return sentence.kind == "orders"
    return bool(sentence.words) and sentence.words[0] not in _NO_VERBS
