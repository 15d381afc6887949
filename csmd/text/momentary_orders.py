"""Classifies English orders as momentary (over with the session) or standing; pure.

Reports such as "never seen that" and "I don't see it" contain a negation but no ban. "Don't push" and "don't open it"
are momentary, unless the sentence says that they hold everywhere. "Make small commits, I review them one by one" is a
standing preference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from csmd.text.sentence_words import WORDS, holds, is_verb, phrase_size

#: Negated auxiliaries that may forbid.
_FORBIDDING = frozenset("don't dont can't cannot".split())
#: Subjects of a report: "it doesn't ...".
_REPORTING_SUBJECTS = frozenset("i it they he she this that there".split())
#: Words before a participle that reports an experience.
_PERFECT = frozenset("have has had i've we've you've they've it's i'd we'd i we you they".split())
_CLAUSE_MARKS = frozenset(",;:.!?-–—()") | {"and", "but", "so", "because"}
_DEMONSTRATIVES = frozenset("it this that them these those".split())
#: Words that limit a ban, and so make it last: "don't commit it without a test".
_LIMITS = frozenset("in to with without by against than when before after unless until".split())
#: With these a reason tells of a failure; that something is slow is a reason for a rule.
_AMISS = (WORDS["trouble.en"] | WORDS["failure.en"]) - {"slow"}
#: Words that end in -ed but are not participles.
_NOT_PARTICIPLES = frozenset("need feed seed speed embed exceed proceed succeed".split())


class Stripped(NamedTuple):
    """The words of a sentence without negations that state no lasting ban, and whether the sentence is momentary."""

    words: tuple[str, ...]
    is_momentary: bool


# --- bans


def strip_momentary_bans(words: tuple[str, ...], head: str, refutes: bool) -> Stripped:
    """Removes the negations of an English sentence that do not state a lasting ban."""
    negations = [_classify_negation(words, index) for index in range(len(words))]
    remaining = tuple(word for word, negation in zip(words, negations, strict=True) if negation == "")
    is_momentary = "momentary" in negations or _announces_own_action(words) or (refutes and picks_option(words))
    return Stripped(remaining, is_momentary and not holds("unfailing", "en", remaining, head))


def _classify_negation(words: tuple[str, ...], index: int) -> Literal["", "momentary", "no ban"]:
    """Classifies a word that negates; "" for a lasting ban and for any other word."""
    word, rest = words[index], words[index + 1 :]
    before = words[index - 1] if index else ""
    if word == "never":
        if _is_experience(before, rest):
            return "momentary" if not index or rest[0] in WORDS["experienced.en"] else "no ban"
        return "no ban" if before == "it" or not rest or rest[0] in _CLAUSE_MARKS else ""
    is_split = (word, *rest[:1]) in (("do", "not"), ("can", "not"))
    if word in _FORBIDDING or is_split:
        is_report = before in _REPORTING_SUBJECTS and rest[:1] != ("stand",)  # "I can't stand" is a taste
        if is_report or (before == "you" and "can" in word):
            return "no ban"
        is_momentary = before not in ("we", "you") and is_one_off(rest[is_split:]) and not _gives_habit(words)
        return "momentary" if is_momentary else ""
    if (word, *rest[:1]) == ("no", "need"):
        return "momentary"
    return "no ban" if (before, word) == ("no", "need") else ""


def without_named_place(words: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the words of an order without the "everywhere" before a file or a symbol: "rename it everywhere in till.go"."""
    index = words.index("everywhere") if is_verb(words) and "everywhere" in words else 0
    place, *rest = (*words[index + 1 :], "")
    is_named = place in ("in", "inside", "throughout") and any(map(_is_code, rest))
    return (*words[:index], *words[index + 1 :]) if index and is_named else words


def _is_code(word: str) -> bool:
    """Whether a word is a path, a file or a symbol."""
    return len(word) > 2 and (word[0] == "`" or not word.isalnum()) and not {"'", "-"} & set(word)


def _is_experience(before: str, rest: Sequence[str]) -> bool:
    """Whether "never" between these words reports an experience and is not a rule: "never seen that"."""
    if not rest or rest[0] == "mind":
        return bool(rest)
    is_participle = rest[0].endswith("ed") and rest[0] not in _NOT_PARTICIPLES
    is_finite = rest[0].endswith("s") and not rest[0].endswith(("ss", "us"))  # "never gets there" tells of a thing
    return (
        (before in _PERFECT and is_participle)
        or (not before and is_finite)
        or ((not before or before in _PERFECT) and rest[0] in WORDS["experienced.en"])
    )


def is_one_off(words: Sequence[str]) -> bool:
    """Whether a ban covers a single action ("don't push") or a thing named only by a pronoun ("don't open it there")."""
    verb, *rest = _first_clause(words) or [""]
    if verb in ("", "call", "name") or holds("as_elsewhere", "en", words, ""):
        return False
    if not rest or verb in WORDS["needless.en"]:
        return verb in WORDS["needless.en"] | WORDS["done_once.en"]
    is_unnamed = WORDS["pointing.en"].issuperset(rest)
    return is_unnamed or (rest[0] in _DEMONSTRATIVES and _LIMITS.isdisjoint(rest))


def _first_clause(words: Sequence[str]) -> Sequence[str]:
    """Returns the words up to the end of their clause."""
    return words[: next((index for index, word in enumerate(words) if word in _CLAUSE_MARKS), len(words))]


# --- corrections and announcements


def picks_option(words: Sequence[str]) -> bool:
    """Whether an English sentence picks one of the shown options ("the other one"), not "as in the other files"."""
    return holds("picks", "en", words, "") and not holds("as_elsewhere", "en", words, "")


def _announces_own_action(words: Sequence[str]) -> bool:
    """Whether the reason after a comma is the speaker's next action: "leave it as it is, I'll rebase it"."""
    for index, word in enumerate(words[:-2]):
        if word == "," and not WORDS["at_hand.en"].isdisjoint(words[:index]):
            subject, *rest = words[index + 1 :]
            verb = next((other for other in rest if other not in ("still", "just", "also", "not", "am")), "")
            if subject == "i'll" or (subject in ("i'm", "i") and verb.endswith("ing")):
                return True
    return False


# --- standing preferences


def is_standing_wish(words: Sequence[str]) -> bool:
    """Whether an order gives a habit of the speaker as its reason: "make small commits, I skim"."""
    return (is_verb(words) or words[:1] == ("be",)) and _gives_habit(words)


def _gives_habit(words: Sequence[str]) -> bool:
    """Whether the reason after an order's comma is how the speaker always works or is: "..., I do that myself"."""
    order = _first_clause(words)
    comma, *reason = words[len(order) :] or [""]
    return (
        comma == ","
        and len(reason) > 1
        and reason[0] in ("i", "i'm", "we", "we're")
        and WORDS["at_hand.en"].isdisjoint(word.partition("'")[0] for word in order)
        and WORDS["one_time.en"].isdisjoint(reason)
        and not reason[1].endswith("ing")
    )


# --- stop orders


def is_stop_order(all_words: Sequence[str]) -> bool:
    """Whether a sentence opens with a word that stops the current action: "stop, ..."."""
    size = phrase_size(WORDS["halts"], all_words[:4])
    return size > 0 and (len(all_words) == size or not all_words[size][0].isalnum())


def ends_habit(words: Sequence[str]) -> bool:
    """Whether a sentence ends a habit ("stop summarising what you did"), not an action ("stop running the server")."""
    stop, verb, thing, *_ = (*words, "", "", "")
    is_unnamed = WORDS["pointing.en"].issuperset(word for word in words[2:] if word[0].isalnum())
    return stop == "stop" and verb.endswith("ing") and thing not in _DEMONSTRATIVES | {"", "the"} and not is_unnamed


def rules_out(words: Sequence[str]) -> bool:
    """Whether a sentence rules something out: "no websockets, the hotels block them", and does not tell what is missing."""
    thing = _first_clause(words)[1:]
    if words[:1] != ("no",) or len(words) < 3 or not (WORDS["nothing.en"] | {"since"}).isdisjoint(thing):
        return False
    reason = words[len(thing) + 2 :]
    if not reason:
        return bool(thing) and thing[0] not in WORDS["closed.en"] - {"more", "any"}
    is_amiss = reason[0] in ("so", "then") or not _AMISS.isdisjoint(reason) or reason[-1] in WORDS["unavailable.en"]
    has_verb = any(word in WORDS["finite.en"] or word in WORDS["ran.en"] for word in thing)
    return not is_amiss and not has_verb and bool(thing) and thing[0] not in WORDS["closed.en"]
