"""What is held of a project or a user, by subject: preferences, opinions, worldviews with their best wording; pure.

A belief counts when the user stated it, or when it was told more than once. Memories that share a third of their
content words are of one subject; the one with the best evidence speaks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from csmd.memory import topic_tagging, upkeep_plan
from csmd.model import Memory
from csmd.text import similarity, tokens

Kind = Literal["preference", "opinion", "worldview"]
SUBJECT_SHARE, SUBJECT_COMMON = 1 / 3, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is held of one subject; `memory` says it best, `also` are the others, `turns` and `sessions` those of all."""

    kind: Kind
    subject: str
    memory: Memory
    also: tuple[Memory, ...]
    turns: int
    sessions: int


#: In the order in which they are shown: the first that fits takes a memory, what fits none is no belief.
KINDS: tuple[tuple[Kind, Callable[[Memory], bool]], ...] = (
    ("preference", lambda memory: memory.gate in ("behavioral", "correction")),
    ("opinion", lambda memory: memory.category == "decision"),
    ("worldview", lambda memory: memory.category in ("constraint", "pattern")),
)


def kind_of(memory: Memory) -> Kind | None:
    """Which kind of belief a memory is; None for facts, plans, people and gotchas."""
    return next((kind for kind, fits in KINDS if fits(memory)), None)


def is_held(memory: Memory) -> bool:
    """Whether somebody holds it: the user said so, or it was told more than once; nothing took its place."""
    return upkeep_plan.is_alive(memory) and (memory.authority == "user" or memory.times > 1)


def beliefs(memories: Sequence[Memory]) -> list[Belief]:
    """The beliefs among some memories by kind, in each those with the most evidence first."""
    held = sorted((memory for memory in memories if is_held(memory) and kind_of(memory)), key=_evidence)
    gists = {memory.id: similarity.gist(memory.text).stems for memory in held}
    seen = Counter(stem for stems in gists.values() for stem in stems)
    groups: list[list[Memory]] = []
    for memory in held:
        own = gists[memory.id]
        for group in groups:
            head = gists[group[0].id]
            common = len(own & head)
            alike = own and (own == head or common >= max(SUBJECT_COMMON, SUBJECT_SHARE * len(own | head)))
            if alike and kind_of(group[0]) == kind_of(memory):
                group.append(memory)
                break
        else:
            groups.append([memory])
    found = [_belief(group, gists, seen) for group in groups]
    order = [kind for kind, _ in KINDS]
    return sorted(found, key=lambda one: (order.index(one.kind), -one.sessions, -one.turns, _evidence(one.memory)))


def _evidence(memory: Memory) -> tuple[int, tuple[bool, int, float, int, str, str]]:
    return -len({source.session_id for source in memory.provenance}), upkeep_plan.rank(memory)


def _belief(group: Sequence[Memory], gists: dict[str, frozenset[str]], seen: Counter[str]) -> Belief:
    best = group[0]
    common = frozenset.intersection(*(gists[memory.id] for memory in group)) or gists[best.id]
    sources = {source.uuid: source.session_id for memory in group for source in memory.provenance}
    kind = kind_of(best)
    assert kind is not None
    return Belief(
        kind=kind, subject=_subject(best.text, common, seen, len(group)), memory=best, also=tuple(group[1:]), turns=len(sources),
        sessions=len(set(sources.values())),
    )  # fmt: skip


def _subject(said: str, common: frozenset[str], seen: Counter[str], size: int) -> str:
    """The noun phrase whose words the group shares and few others do: led by an article, or a name; "" for none."""
    found = [phrase.written for phrase in topic_tagging.subjects(said) if phrase.is_name or phrase.is_led]

    def worth(phrase: str) -> tuple[float, int]:
        shared = {tokens.stem(word) for word in tokens.content_words(phrase)} & common
        return sum(1 / (1 + seen[stem] - min(size, seen[stem])) for stem in shared), len(phrase)

    return max(found, key=worth, default="")
