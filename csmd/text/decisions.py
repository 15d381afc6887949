"""Whether an English sentence decides how things are to be from then on; pure.

It gives up one thing for another (switches.py) or a name for another (renames.py), sets a value, says what will be so,
or wants something throughout or not at all. The words are in data/decision_words.txt, one class for each question. Words
are those of a sentence in small letters, without its lead-in (sentence.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd import data
from csmd.text.amendments import announces, may_announce
from csmd.text.momentary_orders import rules_out, without_named_place
from csmd.text.renames import find_renames
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
    """Whether an English sentence says how things are to be from then on: not what is supposed, and not what is done
    once."""
    words = tuple(words)
    if words[:1] == ("if",) or not _WORDS["soon"].isdisjoint(words) or without_named_place(words) != words:
        return False
    request = next((size for size in (3, 2, 1) if "_".join(words[:size]) in _OF_SENTENCES["request.en"]), 0)
    is_of_several = "_".join(words[:request]) in _OF_SENTENCES["of_several.en"]
    if (
        _sets_value(words[request:])
        or _sets_limit(words[request:])
        or (is_of_several and _holds("".join(words[request : request + 1])) and _is_done_so(words[request:], least=2))
    ):
        return True
    if (
        (not request and _foresees(words))
        or ((not request or is_of_several) and may_announce(words) and announces(text))
        or _wants_throughout(words)
        or (may_switch(words) and not _tells_of_past(words) and find_switch(text) is not None)
        or (not request and words[:1] != ("rename",) and find_renames(text) != ())
    ):
        return True
    is_now = any(word in ("now", "again") for word in words[-2:])
    return is_now and _TROUBLE.isdisjoint(words) and holds_now(text)


def proposes_state(words: Sequence[str]) -> bool:
    """Whether a proposal is about how things are to be, and not about a step: "shall we keep photos on disk?"."""
    words = tuple(word for word in words if word not in _SKIPPED and word not in "?.!")
    at = 0
    while size := next((size for size in (3, 2, 1) if "_".join(words[at : at + size]) in _WORDS["opens_proposal"]), 0):
        at += size
    rest = words[at:]
    if not rest or not (_TROUBLE | _WORDS["happened"] | {"was", "were", "you", "me"}).isdisjoint(rest):
        return False
    if _holds(rest[0]) or rest[0] in _WORDS["arrange"]:
        has_object = rest[1:2] != () and rest[1] not in _PRONOUNS and not rest[1].endswith("ing")
        is_step = rest[0] in _WORDS["stepwise"] and rest[1:2] in (("the",), ("a",), ("this",), ("your",))
        return has_object and not is_step and (rest[0] in _WORDS["standing"] or _has_way(rest[2:]))
    verb = next(
        (at for at, word in enumerate(rest) if at and (_holds(word) or _WORDS["arrange"] & {word, word[:-1]})), 0
    )
    if verb:
        return rest[0] not in _PRONOUNS and _has_way(rest[verb + 1 : verb + 3])
    form = next((at for at in range(2, len(rest)) if rest[at] in ("as", "by") and rest[at - 2] in _COPULA), 0)
    if form:  # "exports are written as CSV"
        return rest[0] not in _PRONOUNS
    is_phrase = _OF_SENTENCES["finite.en"].isdisjoint(rest) and rest[0] not in _OF_SENTENCES["order.en"]
    return is_phrase and at > 0 and not _WORDS["apiece"].isdisjoint(rest[1:])


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

    Single events, failures and momentary orders are not explanations.
    """
    words = tuple(words)
    at, size = next(((at, size) for at in range(len(words)) if (size := _cause_size(words, at))), (0, 0))
    if words[:1] == ("no",) and not rules_out(words):
        return False
    if not size and words[:1] == ("no",) and "," in words:  # "no websockets, the hotels block them"
        at = words.index(",") + 1
    main, rest = words[:at], words[at + size :]
    if size and not main and "," in rest:  # the cause comes first
        comma = rest.index(",")
        main, rest = rest[comma + 1 :], rest[:comma]
    if min(len(main), len(rest)) < MIN_CLAUSE_WORDS or rest[0][0].isdigit():
        return False
    happens = (
        "still" in main or any(_is_past(words, place) for place in range(at)) or not _AMISS.isdisjoint(main + rest)
    )
    return not happens and {main[0], rest[0]}.isdisjoint(_WORDS["at_once"] | _OF_SENTENCES["order.en"])


def _cause_size(words: Sequence[str], at: int) -> int:
    """Counts the words at a position that introduce a cause or an effect; 0 if there are none."""
    if words[at] == "so":
        return int(at > 0 and words[at - 1] == ",")
    return next((size for size in (3, 2, 1) if "_".join(words[at : at + size]) in _WORDS["cause"]), 0)


def _is_past(words: Sequence[str], at: int) -> bool:
    """Whether a word tells what happened: "ran", "clicked", and not "is wiped"."""
    word, before = words[at], words[at - 1] if at else ""
    is_participle = before in _WORDS["auxiliary"] or before.endswith(("ly", "n't"))
    return word in _WORDS["happened"] or (len(word) > 4 and word.endswith("ed") and bool(before) and not is_participle)


def _sets_value(words: Sequence[str]) -> bool:
    """Whether an order sets a lasting value: "cap the retries at 5"; not a size on the screen, and not a version."""
    if words[:1] == () or words[0] not in _WORDS["adjust"] or words[1:2] == () or words[1] in _PRONOUNS:
        return False
    at = next((at for at in range(2, len(words)) if words[at - 1] in ("to", "at") and _NUMBER.fullmatch(words[at])), 0)
    unit = [word for word in words[at + 1 :] if word[0].isalnum()]
    if not at or len(unit) > MAX_UNIT_WORDS or not _WORDS["looks_unit"].isdisjoint(unit):
        return False
    return not _NO_SETTING.fullmatch(words[at]) and not (words[at - 2] == "version" and "." in words[at])


def _sets_limit(words: Sequence[str]) -> bool:
    """Whether an order names a number that is not to be passed: "add a page size of at most 40"."""
    is_order = (
        words[:1] != () and words[0] in _OF_SENTENCES["order.en"] - _OF_SENTENCES["done_once.en"] - _WORDS["prints"]
    )
    return is_order and any(
        _NUMBER.fullmatch(word) and any("_".join(words[max(0, at - size) : at]) in _WORDS["limit"] for size in (3, 2))
        for at, word in enumerate(words)
    )


def _foresees(words: Sequence[str]) -> bool:
    """Whether a sentence says how things will be: "we'll keep dates as text", "the API is going to be versioned by
    header"."""
    for at, word in enumerate(words):
        if word in ("will", "won't", "gonna"):
            subject, start = words[:at], at + 1
        elif word.endswith("'ll"):
            subject, start = (*words[:at], word.removesuffix("'ll")), at + 1
        elif words[at : at + 2] == ("going", "to") and at:
            subject, start = (*words[: at - 1], words[at - 1].removesuffix("'re")), at + 2
        else:
            continue
        named = [word for word in subject if word[0].isalnum()]
        if not named or named[0] in _PRONOUNS or named[0] in _WORDS["person"]:
            return False
        rest = tuple(word for word in words[start:] if word not in _SKIPPED)
        if rest[:1] == ("be",) and rest[1:2] and _holds(rest[1]) and rest[1].endswith("ing"):
            return len(rest) > 2 and rest[2] not in _ONE
        if rest[:1] == ("be",) and rest[1:2] and (_NUMBER.fullmatch(rest[1]) or _holds(rest[1])):
            return True
        if rest[:1] == ("be",):
            return not _HOW.isdisjoint(rest[1:]) or (
                len(rest) == 2 and rest[1].endswith("s") and named[-1].endswith("s")
            )
        is_of_things = named[0] != "we" and _is_done_so(rest, least=1) and _TROUBLE.isdisjoint(rest)
        return len(rest) > 1 and ((_holds(rest[0]) and rest[1] not in _PRONOUNS) or is_of_things)
    return False


def _holds(verb: str) -> bool:
    """Whether a verb says what is so as long as it is: keep, storing, stored."""
    base = verb.removesuffix("ing").removesuffix("ed")
    return not _WORDS["hold"].isdisjoint((verb, base, f"{base}e", base[:-1]))


def _is_done_so(words: Sequence[str], *, least: int) -> bool:
    """Whether a verb says how: "represent colours as hex strings", "log in by passkey"; at least `least` words come
    before it."""
    at = next((at for at, word in enumerate(words) if at and word in _HOW), 0)
    is_how = at > 0 and words[at + 1 : at + 2] != () and words[at + 1] not in _ONE
    return is_how and (at >= least or words[:2] == ("go", "with")) and words[1] not in _PRONOUNS


def _wants_throughout(words: Sequence[str]) -> bool:
    """Whether a user wants something of everything, in one way throughout, or not at all: "I don't want jQuery in
    here"."""
    plain = tuple(word for word in words if word[0].isalnum() and word != "really")
    if plain[:1] == ("no",):
        return len(plain) > 2 and plain[-1] in ("here", "anywhere", "ever") and _NOTHING.isdisjoint(plain)
    size = next((size for size in (3, 2) if "_".join(plain[:size]) in _WORDS["wish"]), 0)
    if size:
        rest = plain[size:]
        to = next((at for at, word in enumerate(rest) if at and word == "to"), 0)
        stays = to > 0 and rest[to + 1 : to + 2] in (("be",), ("stay",)) and (rest[0] == "the" or rest[0] not in _ONE)
        is_throughout = bool(rest) and rest[0] in _WORDS["throughout"]
        return is_throughout or (stays and not _HOW.isdisjoint(rest[to:]))
    size = next((size for size in (4, 3) if "_".join(plain[:size]) in _WORDS["no_wish"]), 0)
    is_bare = plain[size : size + 1] != () and plain[size] not in _ONE
    is_at_large = plain[size : size + 1] in (("a",), ("an",), ("the",)) and plain[-1] in _WORDS["at_large"]
    return size > 0 and (is_bare or is_at_large)
