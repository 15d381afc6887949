"""Which themes have a page: created, merged, split and retired by the numbers named here; pure.

A theme is a topic by its name in all the projects that are in the open. What has a page keeps it until hardly anything
is left, so that one memory more or less does not make pages come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

#: Created: so many memories in two projects or more, or so many in one.
LEAST_SHARED, LEAST_ALONE = 4, 10
#: Retired: fewer than so many.
LEAST_TO_STAY = 2
#: Merged: such a share of the memories of both, or of the smaller one's.
OVERLAP, CONTAINED = 0.5, 0.8
#: Split: more than so many, where another topic of theirs takes a part of at least LEAST_ALONE and not nearly all.
MOST, NEARLY_ALL = 40, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """A theme with a page; `also` are the topics that went into it, `members` the ids of its memories."""

    name: str
    members: frozenset[str]
    also: tuple[str, ...] = ()
    part: str = ""
    """The other topic by which it was split off."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that its memories are tagged with."""
        return (self.name.removesuffix(f": {self.part}"), *filter(None, (self.part,)), *self.also)


def themes(tagged: Mapping[str, Mapping[str, int]], *, paged: Collection[str]) -> list[Theme]:
    """The themes that have a page, by name; `tagged`: topic -> memory -> project, `paged`: those that have one."""
    found = [
        Theme(name=name, members=frozenset(members))
        for name, members in tagged.items()
        if _recurs(members) or (name in paged and len(members) >= LEAST_TO_STAY)
    ]
    merged = _merged(found, paged)
    split = [part for theme in merged for part in _split(theme, tagged)]
    return sorted(split, key=lambda theme: theme.name)


def _recurs(members: Mapping[str, int]) -> bool:
    return len(members) >= (LEAST_SHARED if len(set(members.values())) > 1 else LEAST_ALONE)


def _merged(found: Sequence[Theme], paged: Collection[str]) -> list[Theme]:
    """Those that are mostly one, as one: under the name of the one that has a page, else of the larger."""
    kept: list[Theme] = []
    for theme in sorted(found, key=lambda one: (one.name not in paged, -len(one.members), one.name)):
        for place, other in enumerate(kept):
            shared = len(theme.members & other.members)
            if shared >= OVERLAP * len(theme.members | other.members) or shared >= CONTAINED * len(theme.members):
                kept[place] = Theme(
                    name=other.name, members=other.members | theme.members, also=(*other.also, theme.name)
                )
                break
        else:
            kept.append(theme)
    return kept


def _split(theme: Theme, tagged: Mapping[str, Mapping[str, int]]) -> list[Theme]:
    """A theme that is too broad, as parts by the other topics of its memories; what has none stays under its name."""
    rest, parts = set(theme.members), []
    while len(rest) > MOST:
        inside = {name: rest & set(members) for name, members in tagged.items() if name != theme.name}
        sizes = Counter({name: len(held) for name, held in inside.items() if len(held) <= NEARLY_ALL * len(rest)})
        name, size = min(sizes.items(), key=lambda row: (-row[1], row[0]), default=("", 0))
        if size < LEAST_ALONE:
            break
        parts.append(Theme(name=f"{theme.name}: {name}", members=frozenset(inside[name]), part=name))
        rest -= inside[name]
    return [Theme(name=theme.name, members=frozenset(rest), also=theme.also), *parts]
