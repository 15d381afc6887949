"""Whether an English sentence is about the moment: bans, wishes and corrections that end with the matter at hand; pure.

"Never seen that" and "I don't see it" forbid nothing. "Don't push" and "don't open it" are over with the session,
unless the sentence says that it holds everywhere. "Make small commits, I review them one by one" is a wish that lasts.
"""

from __future__ import annotations

from collections.abc import Sequence

from csmd.text.sentence_words import WORDS, holds, is_verb, phrase_size

#: The words with which an order forbids, and the subjects that only tell what they do not do.
_FORBIDDING = frozenset("don't dont can't cannot".split())
_TELLING = frozenset("i it they he she this that there".split())
#: Words before a participle that reports an experience.
_PERFECT = frozenset("have has had i've we've you've they've it's i'd we'd i we you they".split())
_CLAUSE_MARKS = frozenset(",;:.!?-–—()") | {"and", "but", "so", "because"}
#: The things at hand that a ban of the moment is about.
_HANDY = frozenset("it this that them these those".split())
#: Words that limit what is forbidden, so that the ban goes on: "don't commit it without a test".
_LIMITS = frozenset("in to with without by against than when before after unless until".split())
#: With these a reason tells of a failure; that something is slow is a reason for a rule.
_AMISS = (WORDS["trouble.en"] | WORDS["failure.en"]) - {"slow"}
#: Words in -ed that are no participles.
_NO_PARTICIPLES = frozenset("need feed seed speed embed exceed proceed succeed".split())


def without_passing_bans(words: tuple[str, ...], head: str, refutes: bool) -> tuple[tuple[str, ...], bool]:
    """The words of an English sentence without negations that forbid nothing for good, and whether it is about the
    moment."""
    is_of_moment = False
    kept = []
    for at, word in enumerate(words):
        before, rest = words[at - 1] if at else "", words[at + 1 :]
        is_split = (word, *rest[:1]) in (("do", "not"), ("can", "not"))
        passes = False
        if word == "never" and _is_experience(before, rest):
            is_of_moment = is_of_moment or not at or rest[:1][0] in WORDS["experienced.en"]
            continue
        if word == "never":
            passes = before == "it" or not rest or rest[0] in _CLAUSE_MARKS
        elif word in _FORBIDDING or is_split:
            passes = (before in _TELLING and rest[:1] != ("stand",)) or (before == "you" and "can" in word)
            if not passes and before not in ("we", "you"):
                passes = is_at_hand(rest[is_split:]) and not _gives_habit(words)
                is_of_moment = is_of_moment or passes
        elif (word, *rest[:1]) == ("no", "need"):
            passes = is_of_moment = True
        if not passes and (before, word) != ("no", "need"):
            kept.append(word)
    is_of_moment = is_of_moment or _leads_to_errand(words) or (refutes and picks_at_hand(words))
    return tuple(kept), is_of_moment and not holds("unfailing", "en", kept, head)


def without_named_place(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of an order without the "everywhere" before a file or a symbol: "rename it everywhere in till.go"."""
    at = words.index("everywhere") if is_verb(words) and "everywhere" in words else 0
    is_named = words[at + 1 : at + 2] in (("in",), ("inside",), ("throughout",)) and any(map(_is_code, words[at + 2 :]))
    return (*words[:at], *words[at + 1 :]) if at and is_named else words


def _is_code(word: str) -> bool:
    """Whether a word is a path, a file or a symbol."""
    return len(word) > 2 and (word[0] == "`" or not word.isalnum()) and not {"'", "-"} & set(word)


def _is_experience(before: str, rest: Sequence[str]) -> bool:
    """Whether "never" between these words reports an experience and is not a rule: "never seen that"."""
    if not rest or rest[0] == "mind":
        return bool(rest)
    is_participle = rest[0].endswith("ed") and rest[0] not in _NO_PARTICIPLES
    return (before in _PERFECT and is_participle) or (
        (not before or before in _PERFECT) and rest[0] in WORDS["experienced.en"]
    )


def is_at_hand(words: Sequence[str]) -> bool:
    """Whether what is forbidden is done once, or to what is only pointed at: "don't push", "don't open it there"."""
    verb, *rest = _clause(words) or [""]
    if not verb or verb in ("call", "name") or holds("as_elsewhere", "en", words, ""):
        return False
    if not rest or verb in WORDS["needless.en"]:
        return verb in WORDS["needless.en"] or verb in WORDS["done_once.en"]
    is_pointed_at = all(word in WORDS["pointing.en"] for word in rest)
    return is_pointed_at or (rest[0] in _HANDY and _LIMITS.isdisjoint(rest))


def _clause(words: Sequence[str]) -> Sequence[str]:
    """The words up to the end of their clause."""
    return words[: next((at for at, word in enumerate(words) if word in _CLAUSE_MARKS), len(words))]


def picks_at_hand(words: Sequence[str]) -> bool:
    """Whether an English sentence picks one of several things at hand: "the other one"; "as in the other files" does
    not."""
    return holds("picks", "en", words, "") and not holds("as_elsewhere", "en", words, "")


def _leads_to_errand(words: Sequence[str]) -> bool:
    """Whether the reason after a comma is what the speaker is about to do: "leave it as it is, I'll rebase it"."""
    for at, word in enumerate(words[:-2]):
        if word == "," and not WORDS["at_hand.en"].isdisjoint(words[:at]):
            verb = next((word for word in words[at + 2 :] if word not in ("still", "just", "also", "not", "am")), "")
            if words[at + 1] == "i'll" or (words[at + 1] in ("i'm", "i") and verb.endswith("ing")):
                return True
    return False


def is_standing_wish(words: Sequence[str]) -> bool:
    """Whether an order about things of a kind gives as its reason how the speaker always works or is: "..., I skim"."""
    return (is_verb(words) or words[:1] == ("be",)) and _gives_habit(words)


def _gives_habit(words: Sequence[str]) -> bool:
    """Whether the reason after an order's comma is how the speaker always works or is: "..., I do that myself"."""
    order = _clause(words)
    reason = words[len(order) + 1 :]
    return (
        words[len(order) : len(order) + 1] == (",",)
        and len(reason) > 1
        and reason[0] in ("i", "i'm", "we", "we're")
        and WORDS["at_hand.en"].isdisjoint(word.partition("'")[0] for word in order)
        and WORDS["one_time.en"].isdisjoint(reason)
        and not reason[1].endswith("ing")
    )


def halts(all_words: Sequence[str]) -> bool:
    """Whether a sentence opens with a word that stops what is going on: "stop, ..."."""
    size = phrase_size(WORDS["halts"], all_words[:4])
    return size > 0 and (len(all_words) == size or not all_words[size][0].isalnum())


def stops_habit(words: Sequence[str]) -> bool:
    """Whether a sentence ends a habit: "stop summarising what you did", and not "stop running the server"."""
    is_habit = words[:1] == ("stop",) and words[1:2] != () and words[1].endswith("ing")
    is_pointed_at = all(word in WORDS["pointing.en"] for word in words[2:] if word[0].isalnum())
    return is_habit and words[2:3] != () and words[2] != "the" and words[2] not in _HANDY and not is_pointed_at


def rules_out(words: Sequence[str]) -> bool:
    """Whether a sentence rules something out: "no websockets, the hotels block them", and does not tell what is missing."""
    thing = _clause(words)[1:]
    if words[:1] != ("no",) or len(words) < 3 or not WORDS["nothing.en"].isdisjoint(thing):
        return False
    reason = words[len(thing) + 2 :]
    if not reason:
        return bool(thing) and thing[0] not in WORDS["closed.en"] - {"more", "any"}
    is_amiss = reason[0] in ("so", "then") or not _AMISS.isdisjoint(reason)
    has_verb = any(word in WORDS["finite.en"] or word in WORDS["ran.en"] for word in thing)
    return not is_amiss and not has_verb and bool(thing) and thing[0] not in WORDS["closed.en"]
