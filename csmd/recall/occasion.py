"""When a rule is to be heeded: what an order does or makes, and what a rule says that it is about; pure.

"Commit this" names no subject, and is when a rule on commits counts; "add a test for the parser" makes a test, whatever
it is of. A rule says what it is about first, and when it counts behind "before", "when" and the like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from csmd import text

#: What people put before an order.
_LEAD = re.compile(
    r"^\W*(?:(?:and|so|but|ok|okay|now|then|also|please|great|good|thanks|yes|cool|perfect|next|finally|just|go ahead and"
    r"|(?:can|could|would|will) (?:you|we)|let['\u2019]?s|i(?: want| need|['\u2019]d like)(?: you)? to)\b[\s,.!:]*)*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?<![.;:!?\n])[.;:!?\n]++(?:\s++|$)|,\s++|(?<!\s)\s++(?:and|then)\s++", re.IGNORECASE)
#: A deed is an occasion itself; what makes or changes something has one in the thing.
_DEEDS = frozenset(
    "commit push release deploy publish ship tag merge rebase squash review translate log document migrate".split()
)
_MAKING = frozenset(
    """add write create make do open start draft generate implement build introduce prepare put store save set change
    update improve adjust edit extend upgrade cut""".split()
)
#: Where what is made ends, and what it is for begins.
_FOR = re.compile(
    r"\s(?:for|to|of|in|into|on|onto|that|which|so|by|with|from|at|about|behind|under|when|where|because)\b|[(`]",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:before|when|whenever|while|after|for|on|each|every|instead of) ((?:you |we |i )?[\w-]+)", re.IGNORECASE
)
#: What something is to be is said behind what it is: "add lodash as a dependency".
_BECOMES = re.compile(r"^.*?\bas (?=an? )", re.IGNORECASE)
_DOUBLED = re.compile(r"([bdgmnprt])\1$")
#: A name of several parts is of something else than they are: a "manual-commit" strategy is about no commit.
_NAME = re.compile(r"`[^`\n]*`|(?<!\w)(?:\w++(?:[-/:@]\w++)+|\w[^\W_]*+_\w++)")
#: Words that no rule is about.
_EMPTY = frozenset(
    """always never make made add new sure get use it this that them everything thing things change changes some more way
    file code line""".split()
)
_SHORT = {"pr": "pull request", "prs": "pull requests", "docs": "documentation", "deps": "dependencies"}
#: What a rule is about stands in so many of its first words; when it counts, in so many of its characters.
FIRST, LOOKED_AT = 3, 1000
#: An order says at once what it is; one that goes on tells at length what it wants.
MOST_CLAUSES = 4
#: And in so many of its characters: a prompt that pastes a file has a million.
LOOKED_AT = 2_000
#: So much of two stems says that they are of one word.
LEAST_STEM = 5


def occasions(order: str) -> list[str]:
    """The words for what an order does or makes; [] where it does or makes nothing that rules are about."""
    found: dict[str, None] = {}
    for clause in [part for part in _CLAUSE.split(order[:LOOKED_AT]) if part and part.strip()][:MOST_CLAUSES]:
        verb, _, rest = _LEAD.sub("", clause.strip()).partition(" ")
        if verb.casefold() in _DEEDS:
            found[verb.casefold()] = None
        elif verb.casefold() in _MAKING:
            # "put this behind a flag": where the thing is before their eyes, what follows says what comes of it.
            parts = (_said(part) for part in _FOR.split(_BECOMES.sub("", f" {rest}")))
            found |= dict.fromkeys(next((words for words in parts if words), []))
    return list(found)


def bears(rule: str, on: Sequence[str]) -> float:
    """Which share of an order's occasions a rule is about, 0-1."""
    subject = about(rule)
    return sum(any(_one(_stem(word), stem) for stem in subject) for word in on) / len(on) if on else 0.0


def about(rule: str) -> frozenset[str]:
    """The stems of what a rule says that it is about: its first words, and those behind "before", "when" and the like."""
    rule = _NAME.sub(" ", rule[:LOOKED_AT])
    first = list(dict.fromkeys(_said(rule)))[:FIRST]
    return frozenset(_stem(word) for word in [*first, *(word for part in _WHEN.findall(rule) for word in _said(part))])


def _stem(word: str) -> str:
    """The stem of a word, a doubled consonant at its end once: "committing" is done when one commits."""
    return _DOUBLED.sub(r"\1", text.stem(word))


def _one(stem: str, other: str) -> bool:
    """Whether two stems are of one word: "translate" and "translations" differ in their ends."""
    short, long = sorted((stem, other), key=len)
    return short == long or (len(short) >= LEAST_STEM and long.startswith(short))


def _said(part: str) -> list[str]:
    whole = " ".join(_SHORT.get(word, word) for word in text.words(part))
    return [word for word in text.content_words(whole) if word not in _EMPTY]
