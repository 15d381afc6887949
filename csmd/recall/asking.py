"""Whether a prompt asks for what was said before, by its form alone; pure.

A prompt is read clause by clause, for "merge the tables with customers, what are the keys?" orders and asks, and people
who type to an assistant leave the question mark out. A clause asks when it opens as a question does, or ends as one, and
is no request ("can you ...") and no order ("add ..."). What is asked must be grounded besides: csmd.recall.relevance.

The weights are a logistic fit on halves of a labelled set and of written prompts (tests/bench/train_recall.py,
docs/benchmarks.md); 0 is where a prompt does not ask.
"""

from __future__ import annotations

import math
import re

from csmd.recall.relevance import terms

#: Of a prompt that pastes a page so much is read, from its begin and its end: that is where people ask.
MOST = 4_000
_GAP, _BREAK = re.compile(r"[^\S\n]+"), re.compile(r" ?\n[ \n]*")
#: What people put before what they mean; it changes nothing.
_LEAD = (
    r"^\W*(?:(?:and|so|but|btw|by the way|hey|hi|ok|okay|also|then|now|hm+|oh|wait|again|yes|great|cool|please),?\s+)*"
)
#: "when" and "where" open clauses of every kind: they ask where a verb is next.
_WORD = r"(?:what|which|who|whose|why|how|(?:where|when)(?=['\u2019]?s\b| (?:is|are|was|were|do|does|did|should|can|could|will|would|have|has|to)\b))"
#: Where one clause ends and the next begins.
_CLAUSE = re.compile(
    rf"(?<=[.?!;:]) | [-\u2013\u2014]{{1,3}} |\n|, (?=(?:{_WORD}|do|does|did|is|are|was|were|can i|should|or)\b)"
    rf"| (?=(?:and|so|but|btw) (?:{_WORD}|did|do we|does|is there|are there)\b)",
    re.IGNORECASE,
)
_ASKING_WORD = re.compile(
    rf"{_LEAD}(?:remind me,? |(?:do|did) (?:you|we) (?:know|remember),? |tell me,? |i for[gt]\w+ )?{_WORD}(?:['\u2019]?(?:s|re|d))?\b",
    re.IGNORECASE,
)
#: A verb before its subject: "is there", "do we", "can I".
_TURNED = re.compile(
    rf"{_LEAD}(?:(?:is|are|was|were|do|does|did|have|has|had|am) (?:i|we|they|it|he|she|there|the|an?|any|our|my|this|that|all|\w+s?)"
    r"|(?:can|could|may|should|must|would|do|shall) (?:i|the|our|users?|they|it|an?))\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    rf"{_LEAD}(?:can|could|would|will) (?:you|we)\b|\blet['\u2019]?s\b|\bplease\b|\b(?:take|have) a look\b"
    r"|\bi(?:['\u2019]d| would) like\b|\bi(?: want| need) (?:you )?to\b",
    re.IGNORECASE,
)
_ORDERS = (
    "add fix commit push run update make create write use check show explain print remove rename revert continue review "
    "rebase merge try put move change delete drop bump set turn build deploy install open look give go keep replace split "
    "test implement refactor clean start stop generate draw plot get let take leave import convert draft prepare port wire "
    "hook extend enable disable raise lower release ship tag"
).replace(" ", "|")
_ORDER = re.compile(rf"{_LEAD}(?:{_ORDERS}|do (?:it|this|that|the))\b(?! ?\?)", re.IGNORECASE)
_FOLLOWS = re.compile(r"^\W*(?:but|ah|oh|so|wait|hmm|ok|okay|yes|yeah|sorry|great|and|also)\b", re.IGNORECASE)
#: What stands before the eyes of both, what is so just now, and the one who is asked: three ways to speak of the present;
#: and what could be, of which nothing was said.
_ELSEWHERE = {
    "points": re.compile(r"\b(?:this|these|that one|above|it|they|them|here)\b", re.IGNORECASE),
    "now": re.compile(r"\b(?:now|just|more|currently|so far|yet)\b", re.IGNORECASE),
    "you": re.compile(r"\b(?:you|u|your)\b", re.IGNORECASE),
    "could": re.compile(r"\b(?:would|could|might|any ideas?|if (?:we|i|you|it))\b", re.IGNORECASE),
}

#: What each feature of a prompt's form adds.
WEIGHTS = {
    "": -1.28,
    "word": 2.25,
    "question": 2.4,
    "request": -2.15,
    "follows": -3.69,
    "little": -4.86,
    "points": -1.87,
    "now": -1.62,
    "you": -3.07,
    "could": -2.88,
}


def asks(prompt: str) -> float:
    """How surely a prompt asks for what was said before, 0-1."""
    total = WEIGHTS[""] + sum(WEIGHTS[name] * value for name, value in form(prompt).items())
    return 1.0 / (1.0 + math.exp(-total))


def form(prompt: str) -> dict[str, float]:
    """The features of a prompt's form, each 0-1; read on every prompt, so gaps are folded before any pattern meets them."""
    said = _BREAK.sub("\n", _GAP.sub(" ", _ends(prompt.strip())))
    clauses = [clause for part in _CLAUSE.split(said) if (clause := part.strip())]
    requests = [bool(_REQUEST.search(clause)) and not _ASKING_WORD.match(clause) for clause in clauses]
    orders = [bool(_ORDER.match(clause)) for clause in clauses]
    plain = [
        clause
        for clause, request, order in zip(clauses, requests, orders, strict=True)
        if not request and (not order or _TURNED.match(clause))
    ]
    # Where something is asked, what is ordered beside it counts no more than that it is.
    asked = " ".join(plain) or said
    return {
        "word": float(any(_ASKING_WORD.match(clause) for clause in plain)),
        "question": float(any(_ends_so(clause) or _TURNED.match(clause) for clause in plain)),
        "request": float(any(requests)),
        "follows": float(bool(_FOLLOWS.search(said))),
        "little": max(0, 2 - len(terms(said))) / 2,
        **{name: min(2, len(pattern.findall(asked))) / 2 for name, pattern in _ELSEWHERE.items()},
    }


def _ends(said: str) -> str:
    return said if len(said) <= MOST else f"{said[: MOST // 2]}\n{said[-MOST // 2 :]}"


def _ends_so(clause: str) -> bool:
    return clause.rstrip("\u201d\"') ").endswith(("?", "\uff1f"))
