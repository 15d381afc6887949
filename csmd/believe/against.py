"""What a statement speaks against, as stems: by negation, by "X instead of Y", by an order to remove; pure.

What stands in a question or in a clause that depends on another is not stated, and of what "it" does not do nobody can
tell whose it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from csmd.believe import phrases


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Something a statement speaks against, and what else stands in the same clause: both stems."""

    what: frozenset[str]
    beside: frozenset[str]
    is_qualified: bool = False
    """Whether a clause behind it says of which, or when."""


def phrased(pattern: re.Pattern[str], said: str) -> list[Against]:
    """What a phrase speaks against, with the rest of its clause; where a comma opens it, with the clause before that."""
    found: list[Against] = []
    for match in pattern.finditer(said):
        what = frozenset(phrases.stems_of(next(group for group in match.groups() if group)))
        begin = len(said[: match.start()].rstrip(", "))
        start = max((stop.end() for stop in phrases.CLAUSE_END.finditer(said, 0, begin)), default=0)
        end = phrases.CLAUSE_END.search(said, match.end())
        beside = frozenset(phrases.stems_of(said[start : end.start() if end else len(said)])) - what - phrases.REPLACING
        if what:
            found.append(Against(what=what, beside=beside))
    return found


def negated(tokens: list[tuple[str, str]], *, asides: bool = False) -> list[Against]:
    """What stands behind each negation, to the end of its clause and five words at most; what before it is beside."""
    found: list[Against] = []
    for at, (word, _) in enumerate(tokens):
        plain = word.casefold()
        behind = tokens[at + 1 : at + 2]
        no_longer = plain == "no" and bool(behind) and behind[0][0].casefold() == "longer"
        decided = plain == "against" and at > 0 and tokens[at - 1][1] in phrases.DECIDING
        if not (plain in phrases.NEGATIONS or plain.endswith("n't") or no_longer or decided):
            continue
        if not asides and at and tokens[at - 1][0] == ",":
            continue  # "this, not that": phrases.INSTEAD
        if behind and behind[0][0].casefold() in phrases.NO_NEGATION:
            continue
        what, beside = clause(tokens, at + 1), _before(tokens, at) - phrases.DECIDING
        if not asides and not beside and _points_out(tokens, at):
            continue
        if what and (asides or not _is_aside(tokens, at)):
            found.append(Against(what=what, beside=beside, is_qualified=_is_qualified(tokens, at + 1)))
    return found


def ordered(tokens: list[tuple[str, str]]) -> list[Against]:
    """What is to be removed: an order or "we drop", not what some subject does."""
    found: list[Against] = []
    for at, (word, _) in enumerate(tokens):
        if word.casefold() in phrases.REMOVES and not _before(tokens, at) and not _is_aside(tokens, at):
            owned = _behind_owner(tokens, at + 1)
            what = clause(tokens, owned)
            if what:
                found.append(Against(what=what, beside=frozenset()))
    return found


def _is_qualified(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether a clause goes on with one that restricts it: "comments that repeat the code", "when it is empty"."""
    words = [word for word, _ in tokens[at:]]
    end = next((place for place, word in enumerate(words) if word in phrases.STOPS), len(words))
    return any(word.casefold() in phrases.RESTRICTS for word in words[:end])


def _behind_owner(tokens: list[tuple[str, str]], at: int) -> int:
    """Where what is named begins: of "the network's VPN" behind the owner."""
    for place, (word, _) in enumerate(tokens[at : at + 5], at):
        if word in phrases.STOPS:
            break
        if word.endswith("'s"):
            return place + 1
    return at


def _points_out(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether the subject before a word is one that stands elsewhere: what "it" does not do, nobody can tell."""
    for word, _ in reversed(tokens[:at]):
        if word in phrases.STOPS:
            break
        if word.casefold() in phrases.POINTS_OUT:
            return True
    return False


def _before(tokens: list[tuple[str, str]], at: int) -> frozenset[str]:
    """The stems of the same clause before a word."""
    part: set[str] = set()
    for word, stem in reversed(tokens[:at]):
        if word in phrases.STOPS:
            break
        if phrases.counts(word, stem) and word.casefold() not in phrases.ASIDE:
            part.add(stem)
    return frozenset(part)


def _is_aside(tokens: list[tuple[str, str]], at: int) -> bool:
    """Whether a word stands in a question or a clause that depends on another: what is said there is not stated."""
    words = [word.casefold() for word, _ in tokens[:at]]
    for back in range(len(words) - 1, -1, -1):
        if words[back] in phrases.STOPS:
            if words[back] == "," and _opening(words, back) in phrases.COUNTERFACTUAL:
                return True
            break
        if words[back] in phrases.DEPENDS:
            return True
    return next((word for word, _ in tokens[at:] if word in ".!?"), "") == "?"


def _opening(words: list[str], at: int) -> str:
    """The word with which the clause before a comma begins."""
    start = max((place + 1 for place, word in enumerate(words[:at]) if word in phrases.STOPS), default=0)
    return words[start] if start < at else ""


def clause(tokens: list[tuple[str, str]], at: int) -> frozenset[str]:
    part: list[str] = []
    for word, stem in tokens[at:]:
        plain = word.casefold()
        if word in phrases.STOPS or plain in phrases.BREAKS or len(part) >= 5:
            break
        if plain not in phrases.ASIDE and phrases.counts(word, stem):
            part.append(stem)
    return frozenset(part)
