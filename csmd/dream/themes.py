"""Chooses the themes that have a page: topics of many memories, merged if they overlap, split if they are too broad.

Pure.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

#: Memories that make a theme of a topic in two or more projects.
MIN_SHARED_MEMORIES = 4
#: Memories that make a theme of a topic in one project.
MIN_PROJECT_MEMORIES = 10
#: Memories of a theme in one project that must be on no other page.
MIN_UNLISTED = 5
#: A theme with fewer memories loses its page, a one-project theme also with fewer that are on no other page.
MIN_KEPT_MEMORIES = 2
#: Two themes are merged if they share this part of all their memories.
MIN_OVERLAP = 0.5
#: Two themes are merged if they share this part of the smaller one's memories.
MIN_CONTAINED = 0.8
#: Merged themes stay merged down to this MIN_OVERLAP.
MIN_KEPT_OVERLAP = 0.35
#: Merged themes stay merged down to this MIN_CONTAINED.
MIN_KEPT_CONTAINED = 0.6
#: A theme with more memories is split by another topic that has at least MIN_PROJECT_MEMORIES of them.
MAX_MEMORIES = 40
#: A theme stays split down to this many memories, and each part down to half of MIN_PROJECT_MEMORIES.
MAX_JOINED_MEMORIES = 30
#: A topic with a larger share of a theme's memories does not split it.
MAX_SPLIT_SHARE = 0.8
#: Most themes with a page: those that have one already, then the largest. The index lists fewer.
MAX_THEMES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """A theme with a page: the ids of its memories, topics merged into it, and the topic that split it off or ""."""

    name: str
    members: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    part: str = ""

    @property
    def topics(self) -> list[str]:
        """The topics that its memories are tagged with."""
        return [*filter(None, (self.name.removesuffix(f": {self.part}"), self.part)), *self.also]


@dataclass(frozen=True, kw_only=True)
class ThemeSources:
    """The input of the choice: topic -> memories, memory -> project, themes with a page, ids on other pages."""

    tagged: Mapping[str, Collection[str]]
    project_of: Mapping[str, int]
    paged: Mapping[str, Theme] = field(default_factory=dict)
    listed: Collection[str] = frozenset()

    @cached_property
    def topics_of(self) -> Mapping[str, Collection[str]]:
        """The topics of each memory."""
        names_of: dict[str, list[str]] = defaultdict(list)
        for name, members in self.tagged.items():
            for memory_id in members:
                names_of[memory_id].append(name)
        return names_of

    def make_theme(self, name: str) -> Theme:
        """Returns the theme of a topic.

        In a project where the topic has become rare, memories already on its page are kept.
        """
        tagged = frozenset(self.tagged.get(name, ()))
        paged = self.paged[name].members & self.project_of.keys() if name in self.paged else frozenset[str]()
        counts = Counter(map(self.project_of.__getitem__, tagged))
        remaining = {memory_id for memory_id in paged if counts[self.project_of[memory_id]] < MIN_KEPT_MEMORIES}
        return Theme(name=name, members=tagged | remaining)

    def is_shared(self, theme: Theme) -> bool:
        """Whether a theme has memories of two or more projects."""
        return len({self.project_of[memory_id] for memory_id in theme.members}) > 1

    def is_recurring(self, theme: Theme) -> bool:
        """Whether a topic has enough memories for a theme."""
        min_members = MIN_SHARED_MEMORIES if self.is_shared(theme) else MIN_PROJECT_MEMORIES
        return len(theme.members) >= (MIN_KEPT_MEMORIES if theme.name in self.paged else min_members)

    def may_have_page(self, theme: Theme) -> bool:
        """Whether a topic has enough memories for a theme, possibly only after the theme was split."""
        is_split = bool(self.parts_of(theme.name)) and len(theme.members) >= MIN_KEPT_MEMORIES
        return is_split or self.is_recurring(theme)

    def deserves_page(self, theme: Theme) -> bool:
        """Whether a theme has enough memories that are on no other page."""
        unlisted = sum(memory_id not in self.listed for memory_id in theme.members)
        return self.is_shared(theme) or unlisted >= (MIN_KEPT_MEMORIES if theme.name in self.paged else MIN_UNLISTED)

    def parts_of(self, name: str) -> set[str]:
        """Returns the topics that a theme was split by; the page of a part is called `theme: part`."""
        return {paged.removeprefix(f"{name}: ") for paged in self.paged if paged.startswith(f"{name}: ")}

    def split(self, theme: Theme) -> list[Theme]:
        """Splits a theme that is too broad by the other topics of its memories.

        Memories without one stay in the first part.
        """
        rest, parts, old_parts = theme.members, list[Theme](), self.parts_of(theme.name)
        while len(rest) > (MAX_JOINED_MEMORIES if old_parts else MAX_MEMORIES):
            others = {name for memory_id in rest for name in self.topics_of.get(memory_id, ())} - {theme.name}
            inside = {name: rest & set(self.tagged[name]) for name in sorted(others)}
            least = {name: MIN_PROJECT_MEMORIES // 2 if name in old_parts else MIN_PROJECT_MEMORIES for name in inside}
            most = MAX_SPLIT_SHARE * len(rest)
            fitting = [name for name, members in inside.items() if least[name] <= len(members) <= most]
            if not fitting:
                break
            name = min(fitting, key=lambda name: (name not in old_parts, -len(inside[name]), name))
            parts.append(Theme(name=f"{theme.name}: {name}", members=inside[name], part=name))
            rest -= inside[name]
        return [replace(theme, members=rest), *parts]

    def belong_together(self, into: Theme, theme: Theme) -> bool:
        """Whether a theme is to be merged into another one, because most memories belong to both."""
        is_merged = into.name in self.paged and theme.name in self.paged[into.name].also
        overlap, contained = (MIN_KEPT_OVERLAP, MIN_KEPT_CONTAINED) if is_merged else (MIN_OVERLAP, MIN_CONTAINED)
        shared = len(theme.members & into.members)
        return shared >= overlap * len(theme.members | into.members) or shared >= contained * len(theme.members)


def choose_themes(sources: ThemeSources) -> list[Theme]:
    """Returns the themes that have a page, by name: overlapping ones merged, broad ones split, MAX_THEMES at most.

    A merged theme keeps the name of the one that has a page, else of the larger one.
    """
    names = {*sources.tagged, *(name for name in sources.paged if ": " not in name)}
    themes = [theme for theme in map(sources.make_theme, names) if sources.may_have_page(theme)]

    def rank(theme: Theme) -> tuple[bool, int, str]:
        return theme.name not in sources.paged, -len(theme.members), theme.name

    merged: list[Theme] = []
    for theme in sorted(themes, key=rank):
        index = next((index for index, other in enumerate(merged) if sources.belong_together(other, theme)), None)
        if index is None:
            merged.append(theme)
        else:
            into = merged[index]
            merged[index] = replace(into, members=into.members | theme.members, also=(*into.also, theme.name))
    split = [part for theme in merged for part in sources.split(theme)]
    worthy = filter(sources.deserves_page, filter(sources.is_recurring, split))
    first = heapq.nsmallest(MAX_THEMES, worthy, key=rank)
    return sorted(first, key=lambda theme: theme.name)
