"""Recognises English sentences that decide how things are to be from then on, or explain why they are so; pure.

A decision gives up one thing for another (switches.py) or a name for another (claims.py), sets a value, says what will
be so, or wants something throughout or not at all. The words are in data/decision_words.txt, one class for each question.
The functions take the words of a sentence in lower case, without its lead-in (sentence.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd import data
from csmd.text.claims import find_renames
from csmd.text.momentary_orders import rules_out, without_named_place
from csmd.text.sentence_words import phrase_size
from csmd.text.switches import find_switch, holds_now, may_switch

_WORDS = data.word_table("decision_words.txt")
_OF_SENTENCES = data.word_table("sentence_words.txt")
_PRONOUNS, _TROUBLE, _NOTHING = (_OF_SENTENCES[name] for name in ("pronoun.en", "trouble.en", "nothing.en"))
_AMISS = _TROUBLE | _OF_SENTENCES["failure.en"] | _OF_SENTENCES["ails.en"] | _OF_SENTENCES["amiss.en"]
_HOW, _ONE, _SKIPPED = _WORDS["how"], _WORDS["one"], _WORDS["adverb"]
_NUMBER = re.compile(r"\d[\d.,_]*(?:[a-z]{1,2}|%)?")
#: A number that sets no lasting value: a version, a size on the screen.
_NO_SETTING = re.compile(r"\d+(?:\.\d+){2,}|\d[\d.]*(?:px|em|pt|vh|vw)")
_COPULA = frozenset("is are get gets".split())
#: Most words of the unit of a number.
MAX_UNIT_WORDS = 2
#: Fewest words of a clause that states something.
MIN_CLAUSE_WORDS = 3


def decides(text: str, words: Sequence[str]) -> bool:
    """Whether an English sentence says how things are to be from then on; a supposition or a single action does not."""
    words = tuple(words)
    if words[:1] == ("if",) or not _WORDS["soon"].isdisjoint(words) or without_named_place(words) != words:
        return False
    request = phrase_size(_OF_SENTENCES["request.en"], words[:3])
    order = words[request:]
    is_of_several = "_".join(words[:request]) in _OF_SENTENCES["of_several.en"]
    if _sets_value(order) or _sets_limit(order):
        return True
    if is_of_several and order and _lasts(order[0]) and _says_how(order, min_words=2):
        return True
    if not request and (_foresees(words) or (words[:1] != ("rename",) and find_renames(text))):
        return True
    if _wants_throughout(words) or (may_switch(words) and not _tells_of_past(words) and find_switch(text) is not None):
        return True
    is_now = any(word in ("now", "again") for word in words[-2:])
    return is_now and _TROUBLE.isdisjoint(words) and holds_now(text)


def proposes_state(words: Sequence[str]) -> bool:
    """Whether a proposal is about how things are to be, and not about a step: "shall we keep photos on disk?"."""
    words = tuple(word for word in words if word not in _SKIPPED and word not in "?.!")
    start = 0
    while size := phrase_size(_WORDS["opens_proposal"], words[start : start + 5]):
        start += size
    rest = words[start:]
    if not rest or not (_TROUBLE | _WORDS["happened"] | {"was", "were", "you", "me"}).isdisjoint(rest):
        return False
    if _lasts(rest[0]) or rest[0] in _WORDS["arrange"]:
        has_object = rest[1:2] != () and rest[1] not in _PRONOUNS and not rest[1].endswith("ing")
        is_step = rest[0] in _WORDS["stepwise"] and rest[1:2] in (("the",), ("a",), ("this",), ("your",))
        return has_object and not is_step and (rest[0] in _WORDS["standing"] or _has_way(rest[2:]))
    states = ((index, _lasts(word) or _WORDS["arrange"] & {word, word[:-1]}) for index, word in enumerate(rest))
    verb = next((index for index, is_state in states if index and is_state), 0)
    if verb:
        return rest[0] not in _PRONOUNS and _has_way(rest[verb + 1 : verb + 3])
    ways = zip(rest, rest[2:], strict=False)
    if any(copula in _COPULA and way in ("as", "by") for copula, way in ways):  # "exports are written as CSV"
        return rest[0] not in _PRONOUNS
    is_phrase = _OF_SENTENCES["finite.en"].isdisjoint(rest) and rest[0] not in _OF_SENTENCES["order.en"]
    return is_phrase and start > 0 and not _WORDS["apiece"].isdisjoint(rest[1:])


def _has_way(words: Sequence[str]) -> bool:
    """Whether words say in which way or where something is done."""
    return "everywhere" in words or any(
        word in _HOW and behind not in _PRONOUNS for word, behind in zip(words, words[1:] or ("",), strict=False)
    )


def _tells_of_past(words: Sequence[str]) -> bool:
    """Whether the speakers tell what they met: "we saw timeouts, not errors", "no rows came back, the filter was on"."""
    is_missed = words[:1] == ("no",) and words[1:2] not in (("more",), ("longer",)) and not rules_out(words)
    return is_missed or (
        words[:1] in (("we",), ("i",)) and words[1:2] != () and words[1] in _OF_SENTENCES["experienced.en"]
    )


def explains(words: Sequence[str]) -> bool:
    """Whether an English sentence says how something is or is done, and why: a limit, a state or a rule with its cause.

    Single events, failures, momentary orders and figures of the moment are not explanations.
    """
    main, rest = split_cause(words)
    if min(len(main), len(rest)) < MIN_CLAUSE_WORDS or rest[0][0].isdigit():
        return False
    if gives_reading(words) or _tells_of_past(words):
        return False
    if (
        "still" in main
        or any(_is_past(main, index) for index in range(len(main)))
        or not _AMISS.isdisjoint(main + rest)
    ):
        return False
    return {main[0], rest[0]}.isdisjoint(_WORDS["at_once"] | _OF_SENTENCES["order.en"])


def split_cause(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Splits an English sentence into its statement and the cause; (all words, ()) without a cause."""
    words = tuple(words)
    sizes = [_measure_cause(words, index) for index in range(len(words))]
    start = next((index for index, size in enumerate(sizes) if size), len(words))
    size = sizes[start] if start < len(words) else 0
    if not size and words[:1] == ("no",) and "," in words:  # "no websockets, the hotels block them"
        start = words.index(",") + 1
    main, cause = words[:start], words[start + size :]
    if size and not main and "," in cause:  # the cause comes first
        comma = cause.index(",")
        main, cause = cause[comma + 1 :], cause[:comma]
    return main, cause


def gives_reading(words: Sequence[str]) -> bool:
    """Whether an English sentence with a cause gives a figure of the moment: a level, or one whose cause is over soon."""
    main, cause = split_cause(words)
    figures = [index for index, word in enumerate(main) if _NUMBER.fullmatch(word)]
    if not cause or not figures or not _WORDS["bound"].isdisjoint(main):
        return False
    if any(_is_level(main, index) for index in figures) or any(_is_past(cause, index) for index in range(len(cause))):
        return True
    return any(
        word in _WORDS["passing"] and not _WORDS["auxiliary"].isdisjoint(cause[max(0, index - 2) : index])
        for index, word in enumerate(cause)
    )


def _is_level(words: Sequence[str], index: int) -> bool:
    """Whether the number at an index is a level: "is at 80 %", "are still at 3", "is 92 % full"."""
    unit = index + 1 + (words[index + 1 : index + 2] in (("%",), ("percent",)))
    before = [word for word in words[:index] if word not in _SKIPPED][-2:]
    is_at = len(before) == 2 and before[1] == "at" and (before[0] in _WORDS["auxiliary"] or before[0].endswith("'s"))
    return is_at or (unit > index + 1 and not _WORDS["level"].isdisjoint(words[unit : unit + 1]))


def _measure_cause(words: Sequence[str], index: int) -> int:
    """Returns the number of words at an index that introduce a cause or an effect; 0 if none do."""
    if words[index] == "so":
        return int(index > 0 and words[index - 1] == ",")
    return phrase_size(_WORDS["cause"], words[index : index + 3])


def _is_past(words: Sequence[str], index: int) -> bool:
    """Whether a word reports an event: "ran", "clicked", and not "is wiped"."""
    word = words[index]
    before = words[index - 1] if index else ""
    is_participle = before in _WORDS["auxiliary"] or before.endswith(("ly", "n't"))
    if "rather" in words[:index]:  # "I would rather we stopped" is a wish
        return False
    return word in _WORDS["happened"] or (len(word) > 4 and word.endswith("ed") and bool(before) and not is_participle)


def _sets_value(words: Sequence[str]) -> bool:
    """Whether an order sets a lasting value: "cap the retries at 5"; not a size on the screen, and not a version."""
    if len(words) < 2 or words[0] not in _WORDS["adjust"] or words[1] in _PRONOUNS:
        return False
    pairs = ((index, words[index - 1], words[index]) for index in range(2, len(words)))
    index = next((index for index, to, number in pairs if to in ("to", "at") and _NUMBER.fullmatch(number)), 0)
    unit = [word for word in words[index + 1 :] if word[0].isalnum()]
    if not index or len(unit) > MAX_UNIT_WORDS or not _WORDS["looks_unit"].isdisjoint(unit):
        return False
    return not _NO_SETTING.fullmatch(words[index]) and not (words[index - 2] == "version" and "." in words[index])


def _sets_limit(words: Sequence[str]) -> bool:
    """Whether an order names a limit: "add a page size of at most 40"."""
    if not words or words[0] not in _OF_SENTENCES["order.en"] - _OF_SENTENCES["done_once.en"] - _WORDS["prints"]:
        return False
    numbers = (index for index, word in enumerate(words) if _NUMBER.fullmatch(word))
    return any("_".join(words[max(0, index - size) : index]) in _WORDS["limit"] for index in numbers for size in (3, 2))


def _foresees(words: Sequence[str]) -> bool:
    """Whether a sentence says how things will be: "we'll keep dates as text"."""
    for index, word in enumerate(words):
        if word in ("will", "won't", "gonna"):
            subject, start = words[:index], index + 1
        elif word.endswith("'ll"):
            subject, start = (*words[:index], word.removesuffix("'ll")), index + 1
        elif words[index : index + 2] == ("going", "to") and index:
            subject, start = (*words[: index - 1], words[index - 1].removesuffix("'re")), index + 2
        else:
            continue
        names = [word for word in subject if word[0].isalnum()]
        if not names or names[0] in _PRONOUNS or names[0] in _WORDS["person"]:
            return False
        return _is_lasting_predicate(tuple(word for word in words[start:] if word not in _SKIPPED), names)
    return False


def _is_lasting_predicate(predicate: Sequence[str], subject: Sequence[str]) -> bool:
    """Whether the words after "will" say how the subject will be: "be versioned by header"."""
    verb, complement, *rest = (*predicate, "", "")
    if verb == "be" and complement:
        if _lasts(complement) and complement.endswith("ing"):
            return len(predicate) > 2 and rest[0] not in _ONE
        if _NUMBER.fullmatch(complement) or _lasts(complement) or not _HOW.isdisjoint(predicate[1:]):
            return True
        return len(predicate) == 2 and complement.endswith("s") and subject[-1].endswith("s")
    if not complement:
        return False
    if _lasts(verb) and complement not in _PRONOUNS:
        return True
    return subject[0] != "we" and _says_how(predicate, min_words=1) and _TROUBLE.isdisjoint(predicate)


def _lasts(verb: str) -> bool:
    """Whether a verb describes a lasting state: keep, storing, stored."""
    base = verb.removesuffix("ing").removesuffix("ed")
    return not _WORDS["hold"].isdisjoint((verb, base, f"{base}e", base[:-1]))


def _says_how(words: Sequence[str], *, min_words: int) -> bool:
    """Whether at least `min_words` words with a verb precede the manner: "represent colours as hex strings"."""
    index = next((index for index, word in enumerate(words) if index and word in _HOW), 0)
    is_how = index > 0 and words[index + 1 : index + 2] != () and words[index + 1] not in _ONE
    return is_how and (index >= min_words or words[:2] == ("go", "with")) and words[1] not in _PRONOUNS


def _wants_throughout(words: Sequence[str]) -> bool:
    """Whether a user wants something throughout or not at all: "I don't want jQuery in here"."""
    plain = tuple(word for word in words if word[0].isalnum() and word != "really")
    if plain[:1] == ("no",):
        return len(plain) > 2 and plain[-1] in ("here", "anywhere", "ever") and _NOTHING.isdisjoint(plain)
    if size := phrase_size(_WORDS["wish"], plain[:3]):
        rest = plain[size:]
        to = next((index for index, word in enumerate(rest) if index and word == "to"), 0)
        stays = to > 0 and rest[to + 1 : to + 2] in (("be",), ("stay",)) and (rest[0] == "the" or rest[0] not in _ONE)
        is_throughout = bool(rest) and rest[0] in _WORDS["throughout"]
        return is_throughout or (stays and not _HOW.isdisjoint(rest[to:]))
    size = phrase_size(_WORDS["no_wish"], plain)
    if not size or size == len(plain):
        return False
    return plain[size] not in _ONE or (plain[size] in ("a", "an", "the") and plain[-1] in _WORDS["at_large"])
