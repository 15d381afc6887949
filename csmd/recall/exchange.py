"""A hit's text: the passage that matched, and what was said before and after it, each with who speaks; pure.

The passage comes first, so that whoever cuts the text keeps it; `[before]` and `[after]` say where the others stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

#: What the passage that matched gets of the room when others stand beside it and it needs so much.
MATCHED_SHARE = 0.5
#: How many turns stand beside the one that matched: the one before and the one after.
MOST_BESIDE = 2
_BESIDE = re.compile(r"\n\[(?:before|after)\] ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A turn of an exchange: `place` is "" for the one that matched, else before or after; `cut` gives a passage of it."""

    speaker: str
    place: str
    text: str
    cut: Callable[[int], str]


def told(parts: Sequence[Part], *, limit: int) -> str:
    """The text of a hit in at most `limit` characters, the turn that matched first; alone it is told as it is."""
    if len(parts) == 1:
        return parts[0].cut(limit)
    heads = [f"[{part.place}] {part.speaker}: " if part.place else f"{part.speaker}: " for part in parts]
    room = limit - sum(len(head) + 1 for head in heads)
    shares = _shares([len(part.text) for part in parts], room)
    return "\n".join(head + part.cut(share) for head, part, share in zip(heads, parts, shares, strict=True))


def matched(told: str) -> str:
    """Of a text that `told` gave what stands in it of the turn that matched."""
    return _BESIDE.split(told, maxsplit=1)[0]


def _shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much room each gets: the first its half, the others equal parts; what one leaves the others take."""
    first, *others = sizes
    wanted = min(first, max(int(room * MATCHED_SHARE), room - sum(others)))
    left = room - wanted
    shares = [0] * len(others)
    waiting = sorted(range(len(others)), key=lambda index: others[index])
    while waiting:
        index, *waiting = waiting
        shares[index] = min(others[index], left // (len(waiting) + 1))
        left -= shares[index]
    return [wanted, *shares]


def groups(
    ranked: Sequence[int],
    near: Mapping[int, Sequence[int]],
    scores: Mapping[int, float],
    *,
    most: int,
    midway: Collection[int] = frozenset(),
) -> list[list[int]]:
    """The best `most` of `ranked` (best first), each with those beside it (0: none), the better first; none twice.

    What was said `midway` in an exchange that is shown already is no hit of its own.
    """
    used: set[int] = set()
    found: list[list[int]] = []
    for seq in ranked:
        if seq in used or (seq in midway and not used.isdisjoint(near.get(seq, ()))):
            continue
        used.add(seq)
        beside = [one for one in dict.fromkeys(near.get(seq, ())) if one and one not in used]
        group = [seq, *sorted(beside, key=lambda one: -scores.get(one, 0.0))[:MOST_BESIDE]]
        used.update(group)
        found.append(group)
        if len(found) >= most:
            break
    return found
