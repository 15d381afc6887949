"""Groups memories on one subject into beliefs, each in its best wording; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from csmd.knowledge import Memory
from csmd.memory import topic_phrases
from csmd.memory.duplicates import rank_evidence
from csmd.text import similarity, tokens

BeliefKind = Literal["preference", "opinion", "worldview"]
#: Two memories are on one subject if they share this part of their content words, and at least MIN_SHARED_STEMS.
MIN_SHARED_PART = 1 / 3
MIN_SHARED_STEMS = 2
#: In the order in which they are shown. The first that fits is a memory's kind; facts, plans, people and gotchas have
#: none.
BELIEF_KINDS: dict[BeliefKind, Callable[[Memory], bool]] = {
    "preference": lambda memory: memory.gate in ("behavioral", "correction"),
    "opinion": lambda memory: memory.category == "decision",
    "worldview": lambda memory: memory.category in ("constraint", "pattern"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A belief on one subject: its best `memory`, the `others`, and how many turns and sessions state one of them."""

    kind: BeliefKind
    subject: str
    memory: Memory
    others: tuple[Memory, ...]
    turns: int
    sessions: int


def group_beliefs(memories: Sequence[Memory]) -> list[Belief]:
    """Groups memories into beliefs, by kind and subject, those with the most evidence first in each kind.

    A belief was stated by the user, or more than once, and nothing has replaced it.
    """
    believed = [memory for memory in memories if memory.is_alive and (memory.authority == "user" or memory.times > 1)]
    stems = {memory.id: similarity.gist(memory.text).stems for memory in believed if _find_kind(memory)}
    groups: list[list[Memory]] = []
    for memory in sorted((memory for memory in believed if memory.id in stems), key=_rank_support):
        for group in groups:
            first = group[0]
            if _find_kind(first) == _find_kind(memory) and _share_subject(stems[memory.id], stems[first.id]):
                group.append(memory)
                break
        else:
            groups.append([memory])
    uses = Counter(stem for own_stems in stems.values() for stem in own_stems)
    beliefs = [belief for group in groups if (belief := _to_belief(group, stems, uses))]
    beliefs.sort(key=lambda belief: (-belief.sessions, -belief.turns, _rank_support(belief.memory)))
    return sorted(beliefs, key=lambda belief: list(BELIEF_KINDS).index(belief.kind))


def _to_belief(group: Sequence[Memory], stems: Mapping[str, frozenset[str]], uses: Counter[str]) -> Belief | None:
    """Returns the belief of a group, whose first memory is the best; None if that is of no kind."""
    best, *others = group
    kind = _find_kind(best)
    if kind is None:
        return None
    common = frozenset.intersection(*(stems[memory.id] for memory in group)) or stems[best.id]
    sources = {
        source.uuid: source.session_id for memory in group for source in memory.provenance if source.role != "beside"
    }
    return Belief(
        kind=kind, subject=_choose_subject(best.text, common, uses, len(group)), memory=best, others=tuple(others),
        turns=len(sources), sessions=len(set(sources.values())),
    )  # fmt: skip


def _find_kind(memory: Memory) -> BeliefKind | None:
    return next((kind for kind, fits in BELIEF_KINDS.items() if fits(memory)), None)


def _rank_support(memory: Memory) -> tuple[int, tuple[bool, int, float, int, str, str]]:
    return -len({source.session_id for source in memory.provenance}), rank_evidence(memory)


def _share_subject(left: frozenset[str], right: frozenset[str]) -> bool:
    shared = len(left & right)
    return bool(left) and (left == right or shared >= max(MIN_SHARED_STEMS, MIN_SHARED_PART * len(left | right)))


def _choose_subject(text: str, common: frozenset[str], uses: Counter[str], size: int) -> str:
    """Returns the noun phrase or name with the most words common to a group of `size` and rare elsewhere, or ""."""

    def rate(phrase: str) -> tuple[float, int]:
        shared = tokens.content_stems(phrase) & common
        return sum(1 / (1 + uses[stem] - min(size, uses[stem])) for stem in shared), len(phrase)

    phrases = [phrase.written for phrase in topic_phrases.find_phrases(text) if phrase.is_name or phrase.is_led]
    return max(phrases, key=rate, default="")
