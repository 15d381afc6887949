"""Whether a later statement lifts a ban: "you can touch legacy/ again" ends "never touch legacy/"; pure.

What is allowed must be the very thing that was forbidden, without a condition, and be said to be so again or from now on:
"you can push to main" may be meant for this once, so that a person is asked. What allows a part of it is an exception.
"""

from __future__ import annotations

import re
from functools import lru_cache

from csmd.believe import phrases
from csmd.believe.verdict import Verdict

_WHAT = r"([^.;:!?()\n]{2,120})"
_LEAD = r"^\W*(?:(?:please|and|so|but|ok|okay|also|always|remember|rule|important)\b[:,]?\s+)*"
#: How something is forbidden, and how it is allowed: a pattern, and the verb where the thing alone is named.
_FORBIDS = tuple(
    (re.compile(pattern, re.IGNORECASE), verb)
    for pattern, verb in (
        (_LEAD + rf"(?:you |we )?(?:never|(?:do not|don['\u2019]t)(?: ever)?|(?:must|may|should|can)(?: not|n['\u2019]t|not)(?: ever)?) {_WHAT}", ""),
        (_LEAD + rf"(?:you|we)(?:['\u2019]re| are) not allowed to {_WHAT}", ""),
        (_LEAD + rf"it(?:['\u2019]s| is) (?:forbidden|not allowed) to {_WHAT}", ""),
        (_LEAD + rf"(?:hands off(?: of)?|(?:stay|keep) (?:out of|away from)) {_WHAT}", "touch"),
        (_LEAD + r"leave ([^.;:!?()\n]{2,80}?) alone\b", "touch"),
        (r"^\W*([^.;:,!?()\n]{2,80}?) (?:is|are) (?:off[- ]limits|frozen|read[- ]only|taboo)\b", "touch"),
    )
)  # fmt: skip
_SO_NOW = r"(?: now| again| by now)?"
_ALLOWS = tuple(
    (re.compile(pattern, re.IGNORECASE), verb)
    for pattern, verb in (
        (rf"\b(?:you|we|everyone|everybody) (?:can|may){_SO_NOW} (?!not\b|never\b|no\b|only\b){_WHAT}", ""),
        (rf"\b(?:you|we)(?:['\u2019]re| are){_SO_NOW} (?:allowed|free|welcome){_SO_NOW} to {_WHAT}", ""),
        (rf"\bfeel free to {_WHAT}", ""),
        (rf"\bit(?:['\u2019]s| is){_SO_NOW} (?:ok|okay|fine|alright|all right|allowed|safe){_SO_NOW} to {_WHAT}", ""),
        (r"^\W*([^.;:,!?()\n]{2,80}?) (?:is|are) (?:no longer (?:off[- ]limits|frozen|read[- ]only|taboo|forbidden)|fair game|unfrozen)\b", "touch"),
        (r"\b(?:ban|prohibition|embargo) (?:on|against|for) (?:touching |editing |changing )?([^.;:,!?()\n]{2,80}?) (?:is|was|has been) (?:lifted|over|gone)\b", "touch"),
    )
)  # fmt: skip
#: What says that it is so for good.
_FOR_GOOD = re.compile(
    r"\b(?:again|from now on|no longer|any ?more|lifted|fair game|unfrozen|these days|as of)\b", re.IGNORECASE
)
#: What says that it is so only then, or only for that.
_BOUND = re.compile(
    r"\b(?:if|when|once|unless|only|just|except|this time|for (?:this|now|the)|today|until|as long as|while|after|before|without|but|provided|"
    r"in (?:this|that) (?:session|case|pr|branch))\b",
    re.IGNORECASE,
)
_OR = re.compile(r",\s*(?:and\s+|or\s+)?|\s+(?:and|or|nor)\s+|/(?=\s)", re.IGNORECASE)
#: All of these lay hands on something.
_TOUCHING = frozenset(phrases.stem(word) for word in "touch edit change modify alter".split())
_IDLE = frozenset(
    phrases.stem(word)
    for word in "anything everything something any file files folder directory dir code stuff thing ever again now please directly "
    "more anymore days well freely here longer".split()
)
MOST_READ = 300


def judged(older: str, newer: str) -> Verdict:
    """Whether the newer allows what the older forbids; None where it does not forbid, or the other not allow."""
    allowed = _allowed(newer)
    forbidden = _forbidden(older) if allowed else frozenset()
    if not allowed or not forbidden:
        return None
    free = forbidden & allowed
    if not free or _BOUND.search(newer):
        return None
    if free != forbidden:
        return "partly-lifted"
    return "lifted" if _FOR_GOOD.search(newer) else "perhaps-lifted"


@lru_cache(maxsize=2048)
def _forbidden(said: str) -> frozenset[frozenset[str]]:
    return _read(said, _FORBIDS)


@lru_cache(maxsize=2048)
def _allowed(said: str) -> frozenset[frozenset[str]]:
    return _read(said, _ALLOWS)


def _read(said: str, patterns: tuple[tuple[re.Pattern[str], str], ...]) -> frozenset[frozenset[str]]:
    """What is forbidden or allowed, each thing with what may not be done to it."""
    if said.rstrip().endswith("?"):
        return frozenset()
    for pattern, verb in patterns:
        match = pattern.search(said[:MOST_READ])
        if match is None:
            continue
        first, *others = [phrases.stems_of(part) for part in _OR.split(match[1])] or [[]]
        doing = [phrases.stem(verb)] if verb else first[:1]
        things = (doing + first if verb else first, *(doing + other for other in others))
        read = (frozenset(_one(stem) for stem in thing) - _IDLE for thing in things)
        return frozenset(thing for thing in read if len(thing) > 1)
    return frozenset()


def _one(stem: str) -> str:
    return phrases.stem("touch") if stem in _TOUCHING else stem.rstrip("/") or stem
