"""What upkeep finds: what says the same, what is stale and what has faded; pure."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from csmd.errors import CsmdError
from csmd.memory import confidence as score
from csmd.model import AUTHORITY_RANK, Candidate, CandidateKind, CandidateStatus, Evidence, Memory, Tier
from csmd.text import display, similarity, tokens

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


def compared(one: Memory, left: similarity.Gist, other: Memory, right: similarity.Gist) -> tuple[float, bool] | None:
    """(share of common words, whether they say the same) of two memories that do or nearly do; None for others.

    A correction says the same as corrections only: said against something else it is another statement.
    """
    if (one.gate == "correction") != (other.gate == "correction") or left.turns != right.turns:
        return None
    common, union = len(left.stems & right.stems), len(left.stems | right.stems)
    share = common / union if union else float(tokens.normalise(one.text) == tokens.normalise(other.text))
    mine, others = left.stems - right.stems, right.stems - left.stems
    if share >= similarity.SAME_SHARE and not (mine and others):
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
    gists: list[similarity.Gist] = []
    seen: Counter[str] = Counter()
    for memory in memories:
        gists.append(similarity.gist(memory.text))
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
        prefix = prefix or [f"={tokens.normalise(memories[place].text)}"]
        beside = {home, everywhere.get(home, 0)}
        near = {other for scope in beside for stem in prefix for other in rare.get((scope, stem), ())}
        yield tuple(
            Pair(min(other, place), max(other, place), *found)
            for other in sorted(near)
            if (found := compared(memories[other], gists[other], memories[place], gist)) is not None
        )
        for stem in prefix:
            rare.setdefault((home, stem), []).append(place)


SOURCE = "upkeep"
#: Kind -> what becomes of it: waiting for its turn, or for a person.
STATUS: dict[CandidateKind, CandidateStatus] = {
    "duplicate": "open", "near_duplicate": "needs_review", "stale": "open", "missing_embedding": "open",
    "orphan": "needs_review",
}  # fmt: skip
#: Of a memory's words, as many characters as a candidate quotes; of its sources, as many as it names.
QUOTED, SOURCES = 160, 2
#: (project, kind, fingerprint): what makes two candidates the same one.
Key = tuple[int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to be mended, with the memories it is about; of two that say the same, the one that stays first."""

    kind: CandidateKind
    memories: tuple[Memory, ...]
    reason: str
    confidence: float

    @property
    def fingerprint(self) -> str:
        """The same for the same memories, whichever of them stays."""
        return " ".join(sorted(memory.id for memory in self.memories))

    @property
    def key(self) -> Key:
        """What makes it the same as a candidate that waits."""
        return self.memories[-1].project_seq, self.kind, self.fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One thing to do to one memory: `merge` it into another, `archive` it, or `embed` it again."""

    kind: Literal["merge", "archive", "embed"]
    memory: Memory
    into: Memory | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """What changes in the queue: candidates to put there, and those whose matter is mended."""

    put: tuple[Candidate, ...] = ()
    settle: tuple[Candidate, ...] = ()


# --- findings


def rank(memory: Memory) -> tuple[bool, int, float, int, str, str]:
    """Which of two that say the same stays, the least first: pinned, by authority, sureness, evidence, age."""
    return (
        not memory.pinned, -AUTHORITY_RANK[memory.authority], -memory.confidence, -memory.times,
        memory.created_at, memory.id,
    )  # fmt: skip


def is_alive(memory: Memory) -> bool:
    """Whether a memory is still put forward by itself."""
    return memory.tier != "archive" and not memory.superseded_by


def stands_for(keeper: Memory, other: Memory, *, everywhere: Mapping[int, int]) -> bool:
    """Whether one memory is seen wherever another is; `everywhere` maps a project to the row of what holds all around it."""
    return keeper.project_seq in (other.project_seq, everywhere.get(other.project_seq, 0))


def duplicates(
    memories: Sequence[Memory], *, everywhere: Mapping[int, int], dropped: Collection[Key] = ()
) -> list[Finding]:
    """The memories that say what another one says already, each beside the one that stays; the surest findings first.

    Each goes once at most, and takes in none after that; done in this order, nothing is left to be found.
    """
    alive = [memory for memory in memories if is_alive(memory)]
    found: list[Finding] = []
    for pair in pairs(alive, everywhere=everywhere):
        one, other = sorted((alive[pair.one], alive[pair.other]), key=rank)
        if not stands_for(one, other, everywhere=everywhere):
            one, other = other, one  # what holds everywhere stays, however sure the project's own is
        if stands_for(one, other, everywhere=everywhere) and may_go(other, one):
            finding = duplicate(one, other, share=pair.share, exact=pair.exact)
            if finding.key not in dropped:
                found.append(finding)
    found.sort(key=lambda one: (one.kind, rank(one.memories[0]), -one.confidence, one.fingerprint))
    gone: set[str] = set()
    kept = []
    for finding in found:
        keeper, goes = (memory.id for memory in finding.memories)
        if keeper not in gone and goes not in gone:
            gone.add(goes)
            kept.append(finding)
    return kept


def may_go(memory: Memory, into: Memory) -> bool:
    """What is pinned stays, and what the user said does not vanish behind an assistant's words."""
    return not memory.pinned and AUTHORITY_RANK[memory.authority] <= AUTHORITY_RANK[into.authority]


def duplicate(keeper: Memory, other: Memory, *, share: float, exact: bool) -> Finding:
    """The finding of a memory that says what another one says."""
    said = "says the same" if exact else f"shares {share * 100:.0f} % of its words"
    return Finding(
        kind="duplicate" if exact else "near_duplicate",
        memories=(keeper, other),
        reason=f"{other.id} {said} as {keeper.id}" if exact else f"{other.id} {said} with {keeper.id}",
        confidence=round(share, 4),
    )


def stale(memory: Memory) -> Finding:
    """The finding of a memory that has faded below what is worth keeping at hand."""
    return Finding(
        kind="stale",
        memories=(memory,),
        reason=f"neither told nor used since {memory.fresh_at[:10]}: its confidence has faded below {score.ARCHIVE_BELOW * 100:.0f}",
        confidence=round(1 - memory.confidence, 4),
    )


def missing_embedding(memory: Memory) -> Finding:
    """The finding of a memory that search by meaning cannot find."""
    return Finding(
        kind="missing_embedding", memories=(memory,), reason="it was passed by and has no vector", confidence=1.0
    )


def orphan(memory: Memory) -> Finding:
    """The finding of a memory of whose sources nothing is left."""
    return Finding(
        kind="orphan", memories=(memory,), reason="none of the turns that told it is there any more", confidence=1.0
    )


# --- the queue


def candidate(finding: Finding, *, now: str) -> Candidate:
    """A finding as it is put into the queue."""
    project, kind, fingerprint = finding.key
    digest = hashlib.sha256(f"{kind}:{project}:{fingerprint}:{now}".encode()).hexdigest()[:10]
    quotes = [quote(memory) for memory in finding.memories]
    sources = {
        source.uuid: Evidence(uuid=source.uuid, session_id=source.session_id, at=source.at)
        for memory in finding.memories
        for source in memory.provenance[:SOURCES]
    }
    return Candidate(
        id=f"c{digest}", kind=finding.kind, source=SOURCE, project_seq=project, fingerprint=fingerprint,
        text=" and ".join(quotes), reason=finding.reason, confidence=finding.confidence, created_at=now, updated_at=now,
        gate=finding.memories[0].gate, category=finding.memories[0].category, status=STATUS[finding.kind],
        memory_ids=tuple(memory.id for memory in finding.memories), evidence=tuple(sources.values()),
    )  # fmt: skip


def quote(memory: Memory) -> str:
    """A memory as a candidate quotes it."""
    return f'"{display.cut(display.squeeze(memory.text), QUOTED)}"'


def queueing(
    findings: Sequence[Finding], waiting: Sequence[Candidate], *, dropped: Collection[Key], now: str
) -> Queueing:
    """What the queue lacks of the findings, and what waits there though nothing of the kind is found any more."""
    known = {key_of(one): one for one in waiting}
    wanted = {finding.key: finding for finding in findings if finding.key not in dropped}
    return Queueing(
        put=tuple(candidate(finding, now=now) for key, finding in wanted.items() if key not in known),
        settle=tuple(one for key, one in known.items() if key not in wanted),
    )


def key_of(one: Candidate) -> Key:
    """What makes a candidate the same as a finding."""
    return one.project_seq, one.kind, one.fingerprint


# --- actions


def actions(findings: Sequence[Finding], *, kinds: Collection[CandidateKind]) -> tuple[Action, ...]:
    """What mends the findings of some kinds; an orphan only a person can judge."""
    made = []
    for finding in findings:
        if finding.kind not in kinds:
            continue
        if finding.kind in ("duplicate", "near_duplicate"):
            keeper, other = finding.memories
            made.append(Action(kind="merge", memory=other, into=keeper, reason=finding.reason))
        elif finding.kind == "stale":
            made.append(Action(kind="archive", memory=finding.memories[0], into=None, reason=finding.reason))
        elif finding.kind == "missing_embedding":
            made.append(Action(kind="embed", memory=finding.memories[0], into=None, reason=finding.reason))
    return tuple(made)


def absorbed(keeper: Memory, other: Memory, *, confirmations: int) -> Memory:
    """The memory that stays, as sure as so many more turns make it; its authority and words are its own."""
    confidence = keeper.confidence
    for _ in range(confirmations):
        confidence = score.confirm(confidence, pinned=keeper.pinned)
    provenance = {source.uuid: source for source in (*keeper.provenance, *other.provenance)}
    sessions = {source.session_id for source in provenance.values() if source.role != "beside"}
    tier = score.tier(decay=keeper.decay, for_good=False, sessions=len(sessions), confidence=confidence)
    return replace(
        keeper,
        confidence=confidence,
        tier="durable" if tier == "durable" else keeper.tier,
        confirmed_at=max(keeper.confirmed_at, other.confirmed_at),
        used_at=max(keeper.used_at, other.used_at),
    )


def released(
    keeper: Memory, other: Memory, *, raised: float, without: Collection[str], tier: Tier, used_at: str
) -> Memory:
    """The memory that stayed, as it would be without what the merge of another one brought; `tier` and `used_at` are those of before."""
    left = [source for source in keeper.provenance if source.uuid not in without]
    confidence = keeper.confidence if keeper.pinned else round(max(0.0, keeper.confidence - raised), 4)
    confirmed = max((source.at for source in left), default=keeper.confirmed_at)
    sessions = {source.session_id for source in left if source.role != "beside"}
    own = score.tier(decay=keeper.decay, for_good=False, sessions=len(sessions), confidence=confidence)
    return replace(
        keeper,
        confidence=confidence,
        tier="durable" if own == "durable" else tier,
        confirmed_at=confirmed,
        used_at=used_at if keeper.used_at == other.used_at else keeper.used_at,
    )


def may_take_back(ident: str, by: str, *, by_person: bool) -> None:
    """CsmdError where a person has merged or archived a memory and no person takes that back."""
    if by == "user" and not by_person:
        raise CsmdError(f"a person did that to {ident}", hint="a person takes it back, in a terminal")
