"""Whether one text says all that another one says; strict, because a merge that loses a detail is worse than a double.

Two texts say the same when their words and signs are the same in the same order, but for case, endings, punctuation
and a few empty words. One says more where the other is its beginning and what follows is a clause of its own that
takes nothing back and limits nothing: "The cache is Redis" stands in "The cache is Redis, keyed by cart", not in
"The cache is Redis, except in tests".
"""

from __future__ import annotations

import re
from functools import lru_cache

from csmd import text

#: Words without which a sentence says the same. Tense, number, negation, "should" and "may" are none of them.
EMPTY = frozenset("a an the is are be that please ok okay well we our note".split())
#: Words without which it does where nothing is denied: "not always" and "not just" tell something.
WEIGHT = frozenset("just really very also so then always now currently actually basically simply".split())
#: A clause with one of these may take back what was said before it, or limit it.
LIMITS = text.TURNING_WORDS | frozenset(
    """if when whenever while where wherever unless until except but however although though only maybe perhaps might
    may could should would was were had formerly previously usually mostly sometimes rather instead else otherwise
    whether wrong false untrue doubt ask asks asked think thinks thought""".split()
)
DENIES = frozenset("not no nor never none cannot without only".split())
#: What begins with one of these tells where or for whom something holds.
NARROWS = frozenset("in for on at with within inside during by from of to as per under over outside across".split())
#: So many words that say something make a statement that another one can hold.
LEAST = 3
_SIGNS = re.compile(r"[^\W_]+(?:[_'][^\W_]+)*|[<>=!+#*%$&|~^@/\\-]+")
_OUTER = re.compile(r"^[,;:?\"'`()\[\]{}“”‘’]+|[.,;:?!\"'`()\[\]{}“”‘’]+$")
_ENDS_CLAUSE = re.compile(r"[,;.!?]['\"`”’)]*$")
_DASH = re.compile(r"^[-–—]+$")


@lru_cache(maxsize=4096)
def told(said: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """(words and signs that tell something, in order; the places among them at which a clause ends)."""
    parts: list[str] = []
    ends: list[int] = []
    empty = _empty(said)
    for token in said.replace("’", "'").split():
        if _DASH.match(token):
            ends.append(len(parts))
            continue
        for part in _SIGNS.findall(_OUTER.sub("", token)):
            word = part.casefold()
            if word not in empty:
                parts.append(word if text.turns_round(word) else _root(word))
        if _ENDS_CLAUSE.search(token):
            ends.append(len(parts))
    return tuple(parts), tuple(ends)


def _empty(said: str) -> frozenset[str]:
    denies = any(word in DENIES or word.endswith("n't") for word in text.words(said.replace("’", "'")))
    return EMPTY if denies else EMPTY | WEIGHT


def _root(word: str) -> str:
    """The stem of a word, with the letter once that an ending has doubled: committing, commit."""
    root = text.stem(word)
    doubled = root != word and len(root) > 3 and root[-1] == root[-2] and root[-1] in "bgmnprt"
    return root[:-1] if doubled else root


def same(one: str, other: str) -> bool:
    """Whether two texts are the same but for case, endings, punctuation and empty words."""
    return bool(told(one)[0]) and told(one)[0] == told(other)[0] and _asks(one) == _asks(other)


def says_all(one: str, other: str) -> bool:
    """Whether one text says everything that the other says: the same, or the same and a clause that limits nothing."""
    if same(one, other):
        return True
    (whole, ends), (part, _) = told(one), told(other)
    size = len(part)
    if size < LEAST or whole[:size] != part or size not in ends or _asks(one) or _asks(other):
        return False
    starts = {size, *(end for end in ends if end > size)}
    limits = any(word in LIMITS or text.turns_round(word) for word in _words_after(one, size))
    return not limits and not any(at < len(whole) and whole[at] in NARROWS for at in starts)


def _asks(said: str) -> bool:
    return said.rstrip(" \"'`)").endswith("?")


def _words_after(said: str, place: int) -> list[str]:
    """The words, as they stand, behind so many that tell something."""
    words: list[str] = []
    seen, empty = 0, _empty(said)
    for token in said.replace("’", "'").split():
        if _DASH.match(token):
            continue
        for part in _SIGNS.findall(_OUTER.sub("", token)):
            word = part.casefold()
            if seen >= place:
                words.append(word)
            seen += word not in empty
    return words
