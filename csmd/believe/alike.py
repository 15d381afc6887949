"""Which memories say the same, or nearly so, among many: pure, without comparing each with each.

The same: what `text.says_the_same` takes for it. Nearly the same: at least half of their content words in common,
nothing turned round, and no number or value of one in the place of another's: "two spaces" and "four spaces" are
two statements, and an amendment is no duplicate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from csmd import text
from csmd.model import Memory

NEAR_SHARE = 0.5
#: Where each of two says something of its own, they must have as many words in common.
NEAR_SHARED = 5


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories by their places in what was compared; `share` of their content words is the same."""

    one: int
    other: int
    share: float
    exact: bool


def compared(one: Memory, left: text.Gist, other: Memory, right: text.Gist) -> tuple[float, bool] | None:
    """(share of common words, whether they say the same) of two memories that do or nearly do; None for others.

    A correction says the same as corrections only: said against something else it is another statement.
    """
    if (one.gate == "correction") != (other.gate == "correction") or left.turns != right.turns:
        return None
    common, union = len(left.stems & right.stems), len(left.stems | right.stems)
    share = common / union if union else float(text.normalise(one.text) == text.normalise(other.text))
    mine, others = left.stems - right.stems, right.stems - left.stems
    if share >= text.SAME_SHARE and not (mine and others):
        return share, True
    if share < NEAR_SHARE or (mine and others and common < NEAR_SHARED) or (_is_value(mine) and _is_value(others)):
        return None
    return share, False


def _is_value(stems: frozenset[str]) -> bool:
    return any(any(char.isdigit() for char in stem) for stem in stems)


def pairs(memories: Sequence[Memory], *, everywhere: Mapping[int, int]) -> Iterator[Pair]:
    """Every pair of memories that say the same or nearly so and are seen in one place, each once.

    `everywhere` maps a project to the row of what holds all around it.
    """
    for found in comparing(memories, everywhere=everywhere):
        yield from found


def comparing(memories: Sequence[Memory], *, everywhere: Mapping[int, int]) -> Iterator[tuple[Pair, ...]]:
    """The same in steps, each of one memory, for whoever has others to let pass in between: the pairs that it adds.

    Two texts with a share of their words in common have one of their rarest words in common: only those of the same
    project, or of the row of what holds all around it, are compared.
    """
    gists: list[text.Gist] = []
    seen: Counter[str] = Counter()
    for memory in memories:
        gists.append(text.gist(memory.text))
        seen.update(gists[-1].stems)
        yield ()
    around = {0, *everywhere.values()}
    rare: dict[tuple[int, str], list[int]] = {}
    # What holds everywhere comes first: each project's own are then compared with it.
    for place in sorted(range(len(memories)), key=lambda place: (memories[place].project_seq not in around, place)):
        gist, home = gists[place], memories[place].project_seq
        stems = sorted(gist.stems, key=lambda stem: (seen[stem], stem))
        # At most this many of its words may be missing in the other.
        prefix = stems[: len(stems) - math.ceil(NEAR_SHARE * len(stems)) + 1]
        prefix = prefix or [f"={text.normalise(memories[place].text)}"]
        beside = {home, everywhere.get(home, 0)}
        near = {other for scope in beside for stem in prefix for other in rare.get((scope, stem), ())}
        yield tuple(
            Pair(min(other, place), max(other, place), *found)
            for other in sorted(near)
            if (found := compared(memories[other], gists[other], memories[place], gist)) is not None
        )
        for stem in prefix:
            rare.setdefault((home, stem), []).append(place)
