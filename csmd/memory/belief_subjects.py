"""Groups memories into beliefs: what is held on one subject, in its best wording; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from csmd.knowledge import Memory
from csmd.memory import topic_phrases
from csmd.memory.duplicates import rank_evidence
from csmd.text import similarity, tokens

BeliefKind = Literal["preference", "opinion", "worldview"]
#: Two memories are on one subject if they share this part of their content words, and at least SUBJECT_COMMON of them.
MIN_SHARED_PART = 1 / 3
MIN_SHARED_STEMS = 2
#: In the order in which they are shown. The first that fits is a memory's kind; facts, plans, people and gotchas fit
#: none.
BELIEF_KINDS: dict[BeliefKind, Callable[[Memory], bool]] = {
    "preference": lambda memory: memory.gate in ("behavioral", "correction"),
    "opinion": lambda memory: memory.category == "decision",
    "worldview": lambda memory: memory.category in ("constraint", "pattern"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is believed on one subject: the best `memory`, the others, and how many turns and sessions state it."""

    kind: BeliefKind
    subject: str
    memory: Memory
    also: tuple[Memory, ...]
    turns: int
    sessions: int


def group_beliefs(memories: Sequence[Memory]) -> list[Belief]:
    """The beliefs among some memories by kind and subject, in each kind those with the most evidence first.

    A belief was stated by the user, or more than once, and nothing has replaced it.
    """
    kinds = {memory.id: _belief_kind(memory) for memory in memories}
    held = [memory for memory in memories if kinds[memory.id] and memory.is_alive]
    held = [memory for memory in held if memory.authority == "user" or memory.times > 1]
    stems = {memory.id: similarity.gist(memory.text).stems for memory in held}
    groups: list[list[Memory]] = []
    for memory in sorted(held, key=_evidence):
        for group in groups:
            first = group[0]
            if kinds[first.id] == kinds[memory.id] and _are_on_one_subject(stems[memory.id], stems[first.id]):
                group.append(memory)
                break
        else:
            groups.append([memory])
    uses = Counter(stem for own in stems.values() for stem in own)
    beliefs = []
    for group in groups:
        best = group[0]
        kind = kinds[best.id]
        assert kind is not None
        common = frozenset.intersection(*(stems[memory.id] for memory in group)) or stems[best.id]
        sources = {source.uuid: source.session_id for memory in group for source in memory.provenance}
        subject = _subject(best.text, common, uses, len(group))
        sessions = len(set(sources.values()))
        beliefs.append(
            Belief(
                kind=kind, subject=subject, memory=best, also=tuple(group[1:]), turns=len(sources), sessions=sessions
            )
        )
    order = list(BELIEF_KINDS)
    return sorted(
        beliefs,
        key=lambda belief: (order.index(belief.kind), -belief.sessions, -belief.turns, _evidence(belief.memory)),
    )


def _belief_kind(memory: Memory) -> BeliefKind | None:
    return next((kind for kind, fits in BELIEF_KINDS.items() if fits(memory)), None)


def _evidence(memory: Memory) -> tuple[int, tuple[bool, int, float, int, str, str]]:
    return -len({source.session_id for source in memory.provenance}), rank_evidence(memory)


def _are_on_one_subject(left: frozenset[str], right: frozenset[str]) -> bool:
    shared = len(left & right)
    return bool(left) and (left == right or shared >= max(MIN_SHARED_STEMS, MIN_SHARED_PART * len(left | right)))


def _subject(text: str, common: frozenset[str], uses: Counter[str], size: int) -> str:
    """The noun phrase (or name) whose words all `size` memories of a group share and few others use; "" for none."""

    def worth(phrase: str) -> tuple[float, int]:
        shared = tokens.content_stems(phrase) & common
        return sum(1 / (1 + uses[stem] - min(size, uses[stem])) for stem in shared), len(phrase)

    phrases = [phrase.written for phrase in topic_phrases.find_phrases(text) if phrase.is_name or phrase.is_led]
    return max(phrases, key=worth, default="")
