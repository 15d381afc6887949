"""Which memories a text of limited length is made of when nobody has asked for anything; pure.

Each is worth what it is by itself, times how much of what the scope is about it adds: a word is as central as
it is common among the memories, and counts less each time that somebody has said it. So a budget is spent on many
things and not on one that was talked about for long. The same candidates give the same choice, in any order.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from csmd import text

#: How many of the worthiest are looked at: a hook waits.
CONSIDERED = 200
#: The share of words that makes two of them the same.
TWIN_OVERLAP = 0.6
#: What central words that nobody has said yet add to a worth, at most so many times itself; chosen on the labelled
#: sessions (docs/benchmarks.md), where half and twice of it change little.
COVERAGE = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that may be told: its words, its worth, its section, and the tokens that its line takes."""

    id: str
    text: str
    worth: float
    section: int
    tokens: int
    stems: frozenset[str] = field(default=frozenset())


def choose(
    candidates: Sequence[Candidate],
    *,
    tokens: int,
    shares: Sequence[float],
    heading: int,
    known: Callable[[str], bool],
) -> list[tuple[Candidate, float]]:
    """(what is told, its score) within `tokens`, the best first; a section has its share before another takes the rest.

    `heading` is what a section's first line costs more; `known` says whether the reader is told a text anyway.
    """
    worthiest = sorted((one for one in candidates if one.worth > 0), key=lambda one: (-one.worth, one.id))[:CONSIDERED]
    common = Counter(stem for one in worthiest for stem in one.stems)
    central = {stem: math.log(count) for stem, count in common.items()}
    most = max((sum(central[stem] for stem in one.stems) for one in worthiest), default=0.0) or 1.0
    said: Counter[str] = Counter()
    gists: list[text.Gist] = []
    used = dict.fromkeys(range(len(shares)), 0)
    chosen: list[tuple[Candidate, float]] = []
    left = tokens

    def gain(one: Candidate) -> float:
        new = sum(central[stem] / (1 + said[stem]) for stem in one.stems)
        return one.worth * (1 + COVERAGE * new / most)

    rest = worthiest
    for within_share in (True, False):
        # What a candidate adds only shrinks: who is on top after its gain was counted anew is the best of all.
        heap = [(-gain(one), one.id, place) for place, one in enumerate(rest)]
        heapq.heapify(heap)
        passed: list[Candidate] = []
        while heap:
            _, ident, place = heapq.heappop(heap)
            one = rest[place]
            now = gain(one)
            if heap and (-now, ident) > heap[0][:2]:
                heapq.heappush(heap, (-now, ident, place))
                continue
            cost = one.tokens + (0 if used[one.section] else heading)
            # A section's first may pass its share: in a small budget it would never be told else.
            full = within_share and used[one.section] and used[one.section] + cost > shares[one.section] * tokens
            if full or cost > left:
                passed.append(one)
                continue
            body = text.gist(one.text)
            if any(text.alike(body, other, share=TWIN_OVERLAP) for other in gists) or known(one.text):
                continue
            gists.append(body)
            chosen.append((one, now))
            said.update(one.stems)
            used[one.section] += cost
            left -= cost
        rest = passed
    return chosen


def stems(body: str) -> frozenset[str]:
    """The words that a text is central by."""
    return frozenset(text.stem(word) for word in text.content_words(body) if len(word) > 2)
