"""Which themes have a page: created, merged, split and retired by the numbers named here; pure.

A theme is a topic by its name in all the projects that are in the open. It has a page where several projects speak of it,
or where it gathers what its project's own page has no room for. What has a page keeps it, its parts and what was merged
into it until it is clearly something else, so that one memory more or less does not make pages come and go; a topic that
is not found for a while (it may be in every second memory) keeps what stands on its page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

#: Created: so many memories in two projects or more, or so many in one of which so many stand nowhere else.
LEAST_SHARED, LEAST_ALONE, LEAST_UNLISTED = 4, 10, 5
#: Retired: fewer than so many; in one project also where fewer than so many stand nowhere else.
LEAST_TO_STAY = 2
#: Merged: such a share of the memories of both, or of the smaller one's; and such shares keep what was merged together.
OVERLAP, CONTAINED = 0.5, 0.8
STILL_OVERLAP, STILL_CONTAINED = 0.35, 0.6
#: Split: more than so many, where another topic of theirs takes a part of at least LEAST_ALONE and not nearly all. What was
#: split stays so above so many, and each part from half as many on.
MOST, STILL_MANY, NEARLY_ALL = 40, 30, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Paged:
    """A theme that has a page: the memories that stand on it, and the topics that went into it."""

    members: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What themes are made of: topic -> memories, memory -> project, those with a page, and memories that stand elsewhere."""

    tagged: Mapping[str, Collection[str]]
    project_of: Mapping[str, int]
    paged: Mapping[str, Paged] = field(default_factory=dict)
    listed: Collection[str] = frozenset()

    def members(self, name: str) -> frozenset[str]:
        """The memories of a topic; of projects in which it is not found any more those that stand on its page."""
        found = frozenset(self.tagged.get(name, ()))
        held = [ident for ident in (self.paged[name].members if name in self.paged else ()) if ident in self.project_of]
        spoken = Counter(self.project_of[ident] for ident in found)
        return found | {ident for ident in held if spoken[self.project_of[ident]] < LEAST_TO_STAY}

    def deserves(self, name: str, members: Collection[str]) -> bool:
        """Whether a theme's page says what no other does, or goes on to."""
        is_shared = len({self.project_of[ident] for ident in members}) > 1
        unlisted = sum(ident not in self.listed for ident in members)
        if name in self.paged:
            return len(members) >= LEAST_TO_STAY and (is_shared or unlisted >= LEAST_TO_STAY)
        if is_shared:
            return len(members) >= LEAST_SHARED
        return len(members) >= LEAST_ALONE and unlisted >= LEAST_UNLISTED


def themes(known: Known) -> list[Theme]:
    """The themes that have a page, by name."""
    names = sorted({*known.tagged, *(name for name in known.paged if ": " not in name)})
    found = [Theme(name=name, members=known.members(name)) for name in names]
    merged = _merged([one for one in found if _recurs(known, one)], known.paged)
    split = [part for theme in merged for part in _split(theme, known)]
    return sorted((one for one in split if known.deserves(one.name, one.members)), key=lambda theme: theme.name)


def _recurs(known: Known, theme: Theme) -> bool:
    """Whether a topic is large enough for a theme, whatever its page would say."""
    if theme.name in known.paged or any(one.startswith(f"{theme.name}: ") for one in known.paged):
        return len(theme.members) >= LEAST_TO_STAY
    is_shared = len({known.project_of[ident] for ident in theme.members}) > 1
    return len(theme.members) >= (LEAST_SHARED if is_shared else LEAST_ALONE)


def _merged(found: Sequence[Theme], paged: Mapping[str, Paged]) -> list[Theme]:
    """Those that are mostly one, as one: under the name of the one that has a page, else of the larger."""
    kept: list[Theme] = []
    for theme in sorted(found, key=lambda one: (one.name not in paged, -len(one.members), one.name)):
        for place, other in enumerate(kept):
            together = other.name in paged and theme.name in paged[other.name].also
            overlap, contained = (STILL_OVERLAP, STILL_CONTAINED) if together else (OVERLAP, CONTAINED)
            shared = len(theme.members & other.members)
            if shared >= overlap * len(theme.members | other.members) or shared >= contained * len(theme.members):
                kept[place] = Theme(
                    name=other.name, members=other.members | theme.members, also=(*other.also, theme.name)
                )
                break
        else:
            kept.append(theme)
    return kept


def _split(theme: Theme, known: Known) -> list[Theme]:
    """A theme that is too broad, as parts by the other topics of its memories; what has none stays under its name."""
    before = {name.removeprefix(f"{theme.name}: ") for name in known.paged if name.startswith(f"{theme.name}: ")}
    rest, parts = set(theme.members), []
    while len(rest) > (STILL_MANY if before else MOST):
        inside = {name: rest & set(members) for name, members in known.tagged.items() if name != theme.name}
        sizes = Counter({name: len(held) for name, held in inside.items() if len(held) <= NEARLY_ALL * len(rest)})
        fit = {name: size for name, size in sizes.items() if size >= LEAST_ALONE // (2 if name in before else 1)}
        name = min(fit, key=lambda one: (one not in before, -fit[one], one), default="")
        if not name:
            break
        parts.append(Theme(name=f"{theme.name}: {name}", members=frozenset(inside[name]), part=name))
        rest -= inside[name]
    return [Theme(name=theme.name, members=frozenset(rest), also=theme.also), *parts]
