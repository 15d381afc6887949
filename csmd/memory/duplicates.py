"""Finds memories that say the same, or nearly the same, and decides which of two is kept; pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from csmd.knowledge import Memory
from csmd.memory import confidence
from csmd.text import claims, restatement, sentence, similarity, tokens
from csmd.text.similarity import Gist
from csmd.vocabulary import AUTHORITY_RANK, CandidateKind, Decay

#: Two memories with a smaller share of their content words in common are not compared further.
MIN_NEAR_SHARE = 0.5
#: Two memories of which each adds something must share at least this many content words.
MIN_NEAR_STEMS = 5
#: Decay -> its rank; a memory may only be merged into one of the same or a higher rank.
DECAY_RANK: dict[Decay, int] = {"ephemeral": 0, "session": 1, "durable": 2, "permanent": 3}
PAIR_KINDS = frozenset({"duplicate", "near_duplicate"})
#: (project, kind, fingerprint): identifies a finding and its candidate.
FindingKey = tuple[int, str, str]


class Likeness(NamedTuple):
    """The similarity of two memories: their share of common content words (0-1), and whether they say the same."""

    share: float
    exact: bool


class Pair(NamedTuple):
    """Two similar memories, by index."""

    first: int
    second: int
    likeness: Likeness


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A defect to repair, of a single memory or of a pair: the memory to keep, then its duplicate."""

    kind: CandidateKind
    memories: tuple[Memory, ...]
    reason: str
    confidence: float

    @property
    def key(self) -> FindingKey:
        """Its key in the queue, the same whichever of its memories is kept."""
        fingerprint = " ".join(sorted(memory.id for memory in self.memories))
        return self.memory.project_seq, self.kind, fingerprint

    @property
    def memory(self) -> Memory:
        """The memory to repair: the duplicate of a pair."""
        return self.memories[-1]

    @property
    def into(self) -> Memory | None:
        """The memory to merge it into, if it is a duplicate."""
        return self.memories[0] if len(self.memories) > 1 else None


def compare(left: Memory, right: Memory) -> Likeness | None:
    """Compares two memories; None if they are not even similar.

    A correction repeats only corrections, because it says something else than another statement. Answers to different
    questions are not similar either.
    """
    return _compare_gists(left, similarity.gist(left.text), right, similarity.gist(right.text))


def _compare_gists(left: Memory, left_gist: Gist, right: Memory, right_gist: Gist) -> Likeness | None:
    if (left.gate == "correction") != (right.gate == "correction") or left_gist.turns != right_gist.turns:
        return None
    if similarity.answers_another_question(left.text, right.text):
        return None
    share = similarity.overlap(left_gist, right_gist)
    if not (left_gist.stems or right_gist.stems):
        share = float(tokens.normalise(left.text) == tokens.normalise(right.text))
    if share < MIN_NEAR_SHARE:
        return None
    only_left, only_right = left_gist.stems - right_gist.stems, right_gist.stems - left_gist.stems
    differ = bool(only_left and only_right)
    if share >= similarity.MIN_SAME_SHARE and not differ:
        return None if restatement.has_swapped_roles(left.text, right.text) else Likeness(share, exact=True)
    shared = len(left_gist.stems & right_gist.stems)
    if differ and (shared < MIN_NEAR_STEMS or (_has_digit(only_left) and _has_digit(only_right))):
        return None
    return Likeness(share, exact=False)


def _has_digit(stems: frozenset[str]) -> bool:
    return any(char.isdigit() for stem in stems for char in stem)


def iter_pairs(memories: Sequence[Memory], *, everywhere: Mapping[int, int]) -> Iterator[list[Pair]]:
    """Yields the similar pairs within each project, each pair once, in a list for each memory, so that a caller may rest.

    `everywhere` maps a project to the row of its general memories, with which its own are compared too. Two texts that
    share enough words share one of their rarest words; only memories that do are compared.
    """
    gists: list[Gist] = []
    uses: Counter[str] = Counter()
    for memory in memories:
        gists.append(similarity.gist(memory.text))
        uses.update(gists[-1].stems)
        yield []
    general = {0, *everywhere.values()}
    by_rare_word: dict[tuple[int, str], list[int]] = {}
    # General memories come first, because those of each project are compared with them.
    for index in sorted(range(len(memories)), key=lambda index: (memories[index].project_seq not in general, index)):
        memory, gist = memories[index], gists[index]
        stems = sorted(gist.stems, key=lambda stem: (uses[stem], stem))
        # A similar text has at least one of these stems: it may lack no more than the others.
        rare = stems[: len(stems) - math.ceil(MIN_NEAR_SHARE * len(stems)) + 1] or [f"={tokens.normalise(memory.text)}"]
        scopes = {memory.project_seq, everywhere.get(memory.project_seq, 0)}
        others = {other for scope in scopes for stem in rare for other in by_rare_word.get((scope, stem), ())}
        pairs = []
        for other in sorted(others):
            likeness = _compare_gists(memories[other], gists[other], memory, gist)
            if likeness is not None:
                pairs.append(Pair(min(other, index), max(other, index), likeness))
        yield pairs
        for stem in rare:
            by_rare_word.setdefault((memory.project_seq, stem), []).append(index)


def rank_evidence(memory: Memory) -> tuple[bool, int, float, int, str, str]:
    """Returns a sort key that puts the memory to keep first among those that say the same.

    It compares pin, authority, confidence, evidence and age.
    """
    authority, sure = AUTHORITY_RANK[memory.authority], memory.confidence
    return not memory.pinned, -authority, -sure, -memory.times, memory.created_at, memory.id


def rank_wording(memory: Memory) -> tuple[bool, int, bool, int, int]:
    """Returns a sort key that puts the best wording first among memories that say the same.

    Pinned memories come first, then the user's words, then texts that do not refer to an earlier sentence, then those
    with more names and numbers, then those with more words.
    """
    claimed, is_continuation = claims.parse(memory.text), sentence.parse(memory.text).is_continuation
    authority = AUTHORITY_RANK[memory.authority]
    return not memory.pinned, -authority, is_continuation, -len(claimed.names), -len(claimed.stems)


def is_visible_wherever(keeper: Memory, other: Memory, *, everywhere: Mapping[int, int]) -> bool:
    """Whether one memory is visible wherever another is.

    `everywhere` maps a project to the row of its general memories.
    """
    return keeper.project_seq in (other.project_seq, everywhere.get(other.project_seq, 0))


def may_merge(memory: Memory, into: Memory) -> bool:
    """Whether a memory may be merged into another: it is not pinned, and has no higher authority."""
    return not memory.pinned and AUTHORITY_RANK[memory.authority] <= AUTHORITY_RANK[into.authority]


def may_merge_unasked(memory: Memory, into: Memory) -> bool:
    """Whether a memory may be merged without asking a person: the other has its authority, kind and origin, and lasts."""
    return (
        may_merge(memory, into)
        and (memory.gate == "correction") == (into.gate == "correction")
        and DECAY_RANK[into.decay] >= DECAY_RANK[memory.decay]
        and confidence.has_warm_floor(into) >= confidence.has_warm_floor(memory)
        # Inferred memories follow their counts; a memory that an assistant saved by itself was never stated.
        and into.origin == memory.origin != "inferred"
    )


def find_duplicates(
    memories: Sequence[Memory], *, everywhere: Mapping[int, int], dropped: Collection[FindingKey] = ()
) -> list[Finding]:
    """Finds memories that repeat another one, each with the one to keep; the surest first.

    No memory is merged twice, or absorbs another after it was merged: all findings can be carried out in this order.
    """
    alive = [memory for memory in memories if memory.is_alive]
    findings: list[Finding] = []
    for pair in chain.from_iterable(iter_pairs(alive, everywhere=everywhere)):
        keeper, other = sorted((alive[pair.first], alive[pair.second]), key=rank_evidence)
        if not is_visible_wherever(keeper, other, everywhere=everywhere):
            keeper, other = other, keeper  # the general memory is kept, even if the project's is surer
        if is_visible_wherever(keeper, other, everywhere=everywhere) and may_merge(other, keeper):
            finding = describe_duplicate(keeper, other, pair.likeness)
            if finding.key not in dropped:
                findings.append(finding)
    findings.sort(key=lambda find: (find.kind, rank_evidence(find.memories[0]), -find.confidence, find.key))
    feasible: dict[str, Finding] = {}  # by the id of the memory that is merged
    for finding in findings:
        if feasible.keys().isdisjoint(memory.id for memory in finding.memories):
            feasible[finding.memory.id] = finding
    return list(feasible.values())


def describe_duplicate(keeper: Memory, other: Memory, likeness: Likeness) -> Finding:
    """Returns the finding that a memory repeats another one."""
    kind: CandidateKind = "duplicate" if likeness.exact else "near_duplicate"
    says = "says the same as" if likeness.exact else f"shares {likeness.share * 100:.0f} % of its words with"
    reason = f"{other.id} {says} {keeper.id}"
    return Finding(kind=kind, memories=(keeper, other), reason=reason, confidence=round(likeness.share, 4))


def describe_restatement(keeper: Memory, other: Memory, reason: str) -> Finding:
    """Returns the finding that a memory says the same as another one in other words."""
    reason = f"{other.id}: {reason} as {keeper.id}"
    return Finding(kind="duplicate", memories=(keeper, other), reason=reason, confidence=1.0)
