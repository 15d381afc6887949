"""Duplicates, restatements, faded memories, orphans, missing vectors: found, merged, archived."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from csmd.errors import BadInput, CsmdError
from csmd.memory import confidence, supersession, topic_tagging
from csmd.memory.supersession import quote
from csmd.store import (
    belief_changes,
    candidates,
    cursors,
    fulltext,
    memories,
    near_memories,
    projects,
    receipts,
    upkeep_queries,
    vectors,
)
from csmd.store import belief_changes as stored
from csmd.store.candidates import PAGE
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import claims, restatement, sentence, similarity, tokens
from csmd.values import Candidate, Evidence, Memory
from csmd.vocabulary import AUTHORITY_RANK, CandidateKind, CandidateStatus, Decay, Tier

NEAR_SHARE = 0.5
#: Where each of two says something of its own, they must have as many words in common.
NEAR_SHARED = 5
#: A memory may only be merged into one that ages no faster.
DECAYS: dict[Decay, int] = {"ephemeral": 0, "session": 1, "durable": 2, "permanent": 3}
SOURCE = "upkeep"
#: Who sets a memory aside where it is not the user.
ASSISTANT = "assistant"
#: Kind -> the status of its candidate: open, or waiting for a person.
STATUS: dict[CandidateKind, CandidateStatus] = {
    "duplicate": "open", "near_duplicate": "needs_review", "stale": "open", "missing_embedding": "open",
    "orphan": "needs_review",
}  # fmt: skip
#: Kind -> what repairs it; an orphan only a person can judge.
REPAIRS: dict[CandidateKind, str] = {
    "duplicate": "merge", "near_duplicate": "merge", "stale": "archive", "missing_embedding": "embed",
}  # fmt: skip
PAIRS = frozenset({"duplicate", "near_duplicate"})
#: Sources of each memory that a candidate cites.
SOURCES = 2
#: (project, kind, fingerprint): identifies a finding and its candidate.
Key = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories by their index; `share` (0-1) of their content words is common, `exact` if they say the same."""

    one: int
    other: int
    share: float
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something to repair, with its memories: one, or the one that stays and its duplicate."""

    kind: CandidateKind
    memories: tuple[Memory, ...]
    reason: str
    confidence: float

    @property
    def key(self) -> Key:
        """Its key in the queue, whichever of its memories stays."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """Changes to the queue: candidates to add, and candidates that no longer apply."""

    put: tuple[Candidate, ...] = ()
    settle: tuple[Candidate, ...] = ()


# --- what says the same


def compared(memory: Memory, left: similarity.Gist, other: Memory, right: similarity.Gist) -> tuple[float, bool] | None:
    """(share of common words, whether they say the same) of two memories that do or nearly do; None for others.

    A correction says the same as corrections only: said against something else it is another statement. Nor do answers to different questions.
    """
    if (memory.gate == "correction") != (other.gate == "correction") or left.turns != right.turns:
        return None
    if similarity.answers_another(memory.text, other.text):
        return None
    share = similarity.overlap(left, right)
    if not (left.stems or right.stems):
        share = float(tokens.normalise(memory.text) == tokens.normalise(other.text))
    if share < NEAR_SHARE:
        return None
    mine, others = left.stems - right.stems, right.stems - left.stems
    differs = bool(mine and others)
    if share >= similarity.SAME_SHARE and not differs:
        return None if restatement.change_places(memory.text, other.text) else (share, True)
    is_other = differs and (len(left.stems & right.stems) < NEAR_SHARED or (_is_value(mine) and _is_value(others)))
    return None if is_other else (share, False)


def _is_value(stems: frozenset[str]) -> bool:
    return any(char.isdigit() for stem in stems for char in stem)


def comparing(among: Sequence[Memory], *, everywhere: Mapping[int, int]) -> Iterator[tuple[Pair, ...]]:
    """Yields the pairs of memories in one place that say the same or nearly so, each once; one step for each memory.

    `everywhere` maps a project to the row of what holds all around it. Two texts with a share of their words in common
    have one of their rarest words in common: only those of the same project, or of that row, are compared.
    """
    gists: list[similarity.Gist] = []
    seen: Counter[str] = Counter()
    for memory in among:
        gists.append(similarity.gist(memory.text))
        seen.update(gists[-1].stems)
        yield ()
    around = {0, *everywhere.values()}
    rare: dict[tuple[int, str], list[int]] = {}
    # What holds everywhere comes first: each project's own are then compared with it.
    for place in sorted(range(len(among)), key=lambda place: (among[place].project_seq not in around, place)):
        gist, home = gists[place], among[place].project_seq
        stems = sorted(gist.stems, key=lambda stem: (seen[stem], stem))
        # At most this many of its words may be missing in the other.
        prefix = stems[: len(stems) - math.ceil(NEAR_SHARE * len(stems)) + 1]
        prefix = prefix or [f"={tokens.normalise(among[place].text)}"]
        beside = {home, everywhere.get(home, 0)}
        near = {other for scope in beside for stem in prefix for other in rare.get((scope, stem), ())}
        yield tuple(
            Pair(min(other, place), max(other, place), *found)
            for other in sorted(near)
            if (found := compared(among[other], gists[other], among[place], gist)) is not None
        )
        for stem in prefix:
            rare.setdefault((home, stem), []).append(place)


def pairs(among: Sequence[Memory], *, everywhere: Mapping[int, int]) -> list[Pair]:
    """The pairs of `comparing` as a list."""
    return [pair for found in comparing(among, everywhere=everywhere) for pair in found]


def rank(memory: Memory) -> tuple[bool, int, float, int, str, str]:
    """Sort key of memories that say the same, the one that stays first: pin, authority, confidence, evidence, age."""
    return (
        not memory.pinned, -AUTHORITY_RANK[memory.authority], -memory.confidence, -memory.times,
        memory.created_at, memory.id,
    )  # fmt: skip


def is_visible_wherever(keeper: Memory, other: Memory, *, everywhere: Mapping[int, int]) -> bool:
    """Whether one memory is visible wherever another is; `everywhere` maps a project to the row of its general memories."""
    return keeper.project_seq in (other.project_seq, everywhere.get(other.project_seq, 0))


def may_merge(memory: Memory, into: Memory) -> bool:
    """Whether a memory may be merged: not if it is pinned, or the user's and the other one an assistant's."""
    return not memory.pinned and AUTHORITY_RANK[memory.authority] <= AUTHORITY_RANK[into.authority]


def may_absorb(keeper: Memory, other: Memory) -> bool:
    """Whether one memory may take in another that says the same without a person: it has its weight, and lasts as long."""
    return (
        may_merge(other, keeper)
        and (other.gate == "correction") == (keeper.gate == "correction")
        and DECAYS[keeper.decay] >= DECAYS[other.decay]
        and confidence.has_warm_floor(keeper) >= confidence.has_warm_floor(other)
        # What csmd worked out follows its counts, and what an assistant saved by itself is nobody's statement.
        and keeper.origin == other.origin != "inferred"
    )


def wording(memory: Memory) -> tuple[bool, int, bool, int, int]:
    """Sort key of memories that say the same in other words, the best wording first.

    Pinned before not; the user's own words before an assistant's; what can be read alone before what refers to something
    before it; the more concrete (names, numbers); the more complete.
    """
    claimed = claims.parse(memory.text)
    return (
        not memory.pinned, -AUTHORITY_RANK[memory.authority], sentence.parse(memory.text).goes_on,
        -len(claimed.names), -len(claimed.stems),
    )  # fmt: skip


def duplicates(
    among: Sequence[Memory], *, everywhere: Mapping[int, int], dropped: Collection[Key] = ()
) -> list[Finding]:
    """Finds the memories that repeat another one, each with the one that stays; the surest first.

    Each goes once at most, and takes in none after that; done in this order, nothing is left to be found.
    """
    alive = [memory for memory in among if memory.is_alive]
    found: list[Finding] = []
    for pair in pairs(alive, everywhere=everywhere):
        one, other = sorted((alive[pair.one], alive[pair.other]), key=rank)
        if not is_visible_wherever(one, other, everywhere=everywhere):
            one, other = other, one  # what holds everywhere stays, however sure the project's own is
        if is_visible_wherever(one, other, everywhere=everywhere) and may_merge(other, one):
            finding = duplicate(one, other, share=pair.share, exact=pair.exact)
            if finding.key not in dropped:
                found.append(finding)
    found.sort(key=lambda one: (one.kind, rank(one.memories[0]), -one.confidence, one.key))
    gone: set[str] = set()
    kept = []
    for finding in found:
        keeper, goes = (memory.id for memory in finding.memories)
        if keeper not in gone and goes not in gone:
            gone.add(goes)
            kept.append(finding)
    return kept


def duplicate(keeper: Memory, other: Memory, *, share: float, exact: bool) -> Finding:
    """Describes a memory that repeats another one."""
    says = "says the same as" if exact else f"shares {share * 100:.0f} % of its words with"
    kind: CandidateKind = "duplicate" if exact else "near_duplicate"
    reason = f"{other.id} {says} {keeper.id}"
    return Finding(kind=kind, memories=(keeper, other), reason=reason, confidence=round(share, 4))


def restated(keeper: Memory, other: Memory, reason: str) -> Finding:
    """Describes a memory that says what another one does in other words."""
    return Finding(
        kind="duplicate", memories=(keeper, other), reason=f"{other.id}: {reason} as {keeper.id}", confidence=1.0
    )


def is_taken_apart(rows: Rows, memory: Memory, other: Memory) -> bool:
    """Whether a merge of two memories was undone, or a finding that they are one dropped."""
    pairs = ((memory.id, other.id), (other.id, memory.id))
    if any(change.undone_at for ident, into in pairs for change in stored.merges_of(rows, ident, into)):
        return True
    fingerprint = " ".join(sorted((memory.id, other.id)))
    return any((memory.project_seq, kind, fingerprint) in upkeep_queries.dropped_pairs(rows) for kind in PAIRS)


def _defect(kind: CandidateKind, memory: Memory) -> Finding:
    """Describes what is wrong with a single memory: faded (stale), without a vector, or without a source."""
    reason = {
        "stale": f"neither told nor used since {memory.fresh_at[:10]}: its confidence has faded below "
        f"{confidence.ARCHIVE_BELOW * 100:.0f}",
        "missing_embedding": "it was passed by and has no vector",
        "orphan": "none of the turns that told it is there any more",
    }[kind]
    sure = round(1 - memory.confidence, 4) if kind == "stale" else 1.0
    return Finding(kind=kind, memories=(memory,), reason=reason, confidence=sure)


# --- the queue


def candidate(finding: Finding, *, now: str) -> Candidate:
    """Makes a candidate, still without an id, of a finding."""
    project, _, fingerprint = finding.key
    first = finding.memories[0]
    sources = {
        source.uuid: Evidence(uuid=source.uuid, session_id=source.session_id, at=source.at)
        for memory in finding.memories
        for source in memory.provenance[:SOURCES]
    }
    return Candidate(
        id="", kind=finding.kind, source=SOURCE,
        project_seq=project, fingerprint=fingerprint, text=" and ".join(map(quote, finding.memories)),
        reason=finding.reason, confidence=finding.confidence, created_at=now, updated_at=now, gate=first.gate,
        category=first.category, status=STATUS[finding.kind],
        memory_ids=tuple(memory.id for memory in finding.memories), evidence=tuple(sources.values()),
    )  # fmt: skip


def queueing(
    findings: Sequence[Finding], waiting: Sequence[Candidate], *, dropped: Collection[Key], now: str
) -> Queueing:
    """Compares findings with the queue: findings not in it are put there, candidates without a finding settled."""
    known = {key_of(one): one for one in waiting}
    wanted = {finding.key: finding for finding in findings if finding.key not in dropped}
    return Queueing(
        put=tuple(candidate(finding, now=now) for key, finding in wanted.items() if key not in known),
        settle=tuple(one for key, one in known.items() if key not in wanted),
    )


def key_of(candidate: Candidate) -> Key:
    """The key that a candidate shares with its finding."""
    return candidate.project_seq, candidate.kind, candidate.fingerprint


def absorbed(keeper: Memory, other: Memory, *, confirmations: int) -> Memory:
    """The memory that stays, with its confidence raised by `confirmations`; authority and text are its own."""
    sure = keeper.confidence
    for _ in range(confirmations):
        sure = confidence.confirm(sure, pinned=keeper.pinned)
    sessions = keeper.sessions | other.sessions
    tier = confidence.tier(decay=keeper.decay, for_good=False, sessions=len(sessions), confidence=sure)
    return replace(
        keeper, confidence=sure, tier="durable" if tier == "durable" else keeper.tier,
        confirmed_at=max(keeper.confirmed_at, other.confirmed_at), used_at=max(keeper.used_at, other.used_at),
    )  # fmt: skip


def released(
    keeper: Memory, other: Memory, *, raised: float, without: Collection[str], tier: Tier, used_at: str
) -> Memory:
    """The memory that stayed without what a merge added; `tier` and `used_at` are those before the merge."""
    left = replace(keeper, provenance=tuple(one for one in keeper.provenance if one.uuid not in without))
    sure = keeper.confidence if keeper.pinned else round(max(0.0, keeper.confidence - raised), 4)
    own = confidence.tier(decay=keeper.decay, for_good=False, sessions=len(left.sessions), confidence=sure)
    return replace(
        keeper, confidence=sure, tier="durable" if own == "durable" else tier,
        confirmed_at=max((source.at for source in left.provenance), default=keeper.confirmed_at),
        used_at=used_at if keeper.used_at == other.used_at else keeper.used_at,
    )  # fmt: skip


# --- what is believed, by subject

BeliefKind = Literal["preference", "opinion", "worldview"]
#: Memories that share so much of their content words, and so many, are of one subject.
SUBJECT_SHARE, SUBJECT_COMMON = 1 / 3, 2
#: In the order in which they are shown: the first that fits takes a memory, what fits none is no belief.
BELIEF_KINDS: dict[BeliefKind, Callable[[Memory], bool]] = {
    "preference": lambda memory: memory.gate in ("behavioral", "correction"),
    "opinion": lambda memory: memory.category == "decision",
    "worldview": lambda memory: memory.category in ("constraint", "pattern"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What is believed on one subject: the best `memory`, the others (`also`), and the turns and sessions of all."""

    kind: BeliefKind
    subject: str
    memory: Memory
    also: tuple[Memory, ...]
    turns: int
    sessions: int


def belief_kind(memory: Memory) -> BeliefKind | None:
    """Which kind of belief a memory is; None for facts, plans, people and gotchas."""
    return next((kind for kind, fits in BELIEF_KINDS.items() if fits(memory)), None)


def is_held(memory: Memory) -> bool:
    """Whether a memory is a belief: stated by the user, or more than once, and not replaced."""
    return memory.is_alive and (memory.authority == "user" or memory.times > 1)


def beliefs(among: Sequence[Memory]) -> list[Belief]:
    """The beliefs among some memories by kind and subject, in each kind those with the most evidence first."""
    held = sorted((memory for memory in among if is_held(memory) and belief_kind(memory)), key=_evidence)
    gists = {memory.id: similarity.gist(memory.text).stems for memory in held}
    seen = Counter(stem for stems in gists.values() for stem in stems)
    groups: list[list[Memory]] = []
    for memory in held:
        own = gists[memory.id]
        for group in groups:
            head = gists[group[0].id]
            common = len(own & head)
            alike = own and (own == head or common >= max(SUBJECT_COMMON, SUBJECT_SHARE * len(own | head)))
            if alike and belief_kind(group[0]) == belief_kind(memory):
                group.append(memory)
                break
        else:
            groups.append([memory])
    found = [_belief(group, gists, seen) for group in groups]
    order = list(BELIEF_KINDS)
    return sorted(found, key=lambda one: (order.index(one.kind), -one.sessions, -one.turns, _evidence(one.memory)))


def _evidence(memory: Memory) -> tuple[int, tuple[bool, int, float, int, str, str]]:
    return -len({source.session_id for source in memory.provenance}), rank(memory)


def _belief(group: Sequence[Memory], gists: dict[str, frozenset[str]], seen: Counter[str]) -> Belief:
    best = group[0]
    common = frozenset.intersection(*(gists[memory.id] for memory in group)) or gists[best.id]
    sources = {source.uuid: source.session_id for memory in group for source in memory.provenance}
    kind = belief_kind(best)
    assert kind is not None
    return Belief(
        kind=kind, subject=_subject(best.text, common, seen, len(group)), memory=best, also=tuple(group[1:]),
        turns=len(sources), sessions=len(set(sources.values())),
    )  # fmt: skip


def _subject(said: str, common: frozenset[str], seen: Counter[str], size: int) -> str:
    """The noun phrase (or name) whose words the group shares and few other memories do; "" for none."""
    found = [phrase.written for phrase in topic_tagging.subjects(said) if phrase.is_name or phrase.is_led]

    def worth(phrase: str) -> tuple[float, int]:
        shared = tokens.content_stems(phrase) & common
        return sum(1 / (1 + seen[stem] - min(size, seen[stem])) for stem in shared), len(phrase)

    return max(found, key=worth, default="")


# --- the job

STAGE = "upkeep"
#: New memories that one read compares, the like of each that it looks at, memories that one sweeps over, and candidates
#: of which one asks whether what they say is still so.
BATCH, NEAR, SWEPT, ASKED = 5, 8, 400, 50
#: More waiting candidates than that nobody looks at.
WAITING = 5000


def step(store: Store, *, now: str) -> int:
    """Checks the next memories; how many, 0 when none are left.

    Looking takes a reader's time only: hooks wait behind a write, and where nothing is left there is none.
    """
    number, plan, reached = store.read(lambda rows: _look(rows, now))

    def write(rows: Rows) -> None:
        enqueue(rows, plan, now=now)
        for subject, position in reached.items():
            cursors.move_cursor(rows, STAGE, subject, position)

    if number:
        store.write(write)
    return number


def _look(rows: Rows, now: str) -> tuple[int, Queueing, dict[str, int]]:
    """(how many memories were checked, changes to the queue, new cursors)."""
    reached = {subject: cursors.cursor(rows, STAGE, subject) for subject in ("memories", "day", "sweep", "queue")}
    new = upkeep_queries.memories_past(rows, reached["memories"], limit=BATCH)
    if new:
        return len(new), _lacking(rows, _compared(rows, new), now), {"memories": new[-1].seq}
    today = projects.active_day(rows, 0)
    if reached["day"] == today:
        return 0, Queueing(), {}
    part = upkeep_queries.memories_past(rows, reached["sweep"], limit=SWEPT)
    if part:
        found = _find_defects(rows, part, after=reached["sweep"], to=part[-1].seq)
        return len(part), _lacking(rows, found, now), {"sweep": part[-1].seq}
    waiting = candidates.waiting_after(rows, reached["queue"], limit=ASKED)
    if waiting:
        settle = tuple(one for one in _own(waiting) if not _holds(rows, one))
        return len(waiting), Queueing(settle=settle), {"queue": waiting[-1].seq}
    return 1, Queueing(), {"sweep": 0, "queue": 0, "day": today}


def _compared(rows: Rows, new: Sequence[Memory]) -> list[Finding]:
    """Finds the duplicates of new memories."""
    dropped = upkeep_queries.dropped_pairs(rows)
    findings: list[Finding] = []
    for memory in new:
        around = {memory.project_seq: projects.everywhere(rows, memory.project_seq)}
        terms, scopes = tokens.query_terms(memory.text), sorted({*around, *around.values()})
        near = fulltext.text_hits(rows, "memory", terms, projects=scopes, limit=NEAR)
        like = memories.by_seqs(rows, [*(int(seq) for seq, _ in near), memory.seq])
        beside = duplicates([like[seq] for seq in sorted(like)], everywhere=around, dropped=dropped)
        findings += [finding for finding in beside if memory.id in (other.id for other in finding.memories)]
    return findings


def _lacking(rows: Rows, findings: Sequence[Finding], now: str) -> Queueing:
    """The candidates of findings that are not in the queue."""
    if not findings:
        return Queueing()
    waiting = _own(candidates.waiting_of(rows, [finding.key for finding in findings]))
    return replace(queueing(findings, waiting, dropped=upkeep_queries.dropped_pairs(rows), now=now), settle=())


def _find_defects(rows: Rows, among: Sequence[Memory], *, after: int, to: int) -> list[Finding]:
    """Finds defects of single memories among some whose row keys lie between `after` and `to`."""
    known = {memory.id: memory for memory in among}
    idents: dict[CandidateKind, list[str]] = {
        "stale": upkeep_queries.past_archiving(rows, after=after, to=to),
        "missing_embedding": upkeep_queries.without_vector(rows, after=after, to=to),
        "orphan": upkeep_queries.without_turns(rows, after=after, to=to),
    }
    return [_defect(kind, known[ident]) for kind, found in idents.items() for ident in found if ident in known]


def _own(waiting: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that upkeep made, without those of pages, which only a person settles."""
    return [candidate for candidate in waiting if candidate.kind in STATUS and candidate.source != PAGE]


def _holds(rows: Rows, candidate: Candidate) -> bool:
    """Whether a candidate still applies to its memories."""
    existing = [memory for ident in candidate.memory_ids if (memory := memories.by_id(rows, ident)) is not None]
    if len(existing) != len(candidate.memory_ids) or not all(memory.is_alive for memory in existing):
        return False
    if candidate.source == supersession.SOURCE:
        return True  # which of the two holds only a person tells
    if candidate.kind in PAIRS:
        return _alike(existing[0], existing[1]) is not None
    return _has_defect(rows, existing[0], candidate.kind)


def _has_defect(rows: Rows, memory: Memory, kind: CandidateKind) -> bool:
    return kind in {finding.kind for finding in _find_defects(rows, [memory], after=memory.seq - 1, to=memory.seq)}


def _alike(left: Memory, right: Memory) -> tuple[float, bool] | None:
    return compared(left, similarity.gist(left.text), right, similarity.gist(right.text))


# --- what is said again in other words
#
# A statement that repeats a memory's words confirms it as it comes in (`memory.remember`). One in other words becomes a memory
# of its own first, since vectors are made in the background; then it goes into the standing one, or that one into it where it
# is the better wording.

RESTATED = "restatements"
#: New memories that are compared at most: of a longer import the dream compares the rest.
MOST_NEW = 500


def merge_restated(store: Store, *, model: str | None, now: str) -> int:
    """Compares the next new memories that have a vector; how many, 0 when none waits or no model is there."""
    new, merges = store.read(lambda rows: _find_restated(rows, model)) if model else ([], [])
    if not new:
        return 0

    def write(rows: Rows) -> None:
        apply(rows, merges, by=supersession.RULE, now=now, key=store.hash_key)
        cursors.move_cursor(rows, RESTATED, "memories", new[-1].seq)

    store.write(write)
    return len(new)


def _find_restated(rows: Rows, model: str) -> tuple[list[Memory], list[Finding]]:
    """The next memories whose vectors have been made, and what is to be merged among them and those before."""
    reached = vectors.embedded_up_to(rows, "memory", vectors.model_seq(rows, model))
    start = max(cursors.cursor(rows, RESTATED, "memories"), reached - MOST_NEW)
    new = [memory for memory in upkeep_queries.memories_past(rows, start, limit=BATCH) if memory.seq <= reached]
    for place, memory in enumerate(new, 1):
        if finding := _restated(rows, memory):
            return new[:place], [finding]  # what it leaves is what the next one is compared with
    return new, []


def _restated(rows: Rows, memory: Memory) -> Finding | None:
    """The merge of a memory with the first, by vectors, of those before it that say the same; None for none."""
    if not memory.is_alive:
        return None
    near = {
        seq
        for pair in near_memories.near_pairs(rows, memory.project_seq, [memory.seq])
        for seq in pair
        if seq < memory.seq
    }
    for other in memories.by_seqs(rows, sorted(near)).values():
        if not other.is_alive or other.author or is_taken_apart(rows, memory, other):
            continue
        verdict = restatement.judge(other.text, memory.text)
        # What stood before stays where both are worded as well.
        sides = sorted((other, memory), key=wording)
        for keeper, goes in (sides, sides[::-1]) if verdict.is_same else ():
            if may_absorb(keeper, goes):
                return restated(keeper, goes, verdict.reason)
    return None


# --- on request


def find_findings(
    rows: Rows, places: Sequence[int] | None, *, kinds: Collection[CandidateKind] = tuple(STATUS)
) -> list[Finding]:
    """Finds what needs repair in some projects (None: all), of some kinds; pairs that a person dropped are left out."""
    among = upkeep_queries.memories_of_places(rows, places)
    findings: list[Finding] = []
    if not PAIRS.isdisjoint(kinds):
        everywhere = {seq: projects.everywhere(rows, seq) for seq in {memory.project_seq for memory in among}}
        findings += duplicates(among, everywhere=everywhere, dropped=upkeep_queries.dropped_pairs(rows))
    if not PAIRS.issuperset(kinds):
        findings += _find_defects(rows, among, after=0, to=max((memory.seq for memory in among), default=0))
    return [finding for finding in findings if finding.kind in kinds]


def generate(rows: Rows, places: Sequence[int] | None, *, now: str) -> Queueing:
    """Computes how the queue would change if all memories of some projects were checked now.

    What others than upkeep ask, as dreams do, no check answers.
    """
    waiting = [one for one in _own(candidates.waiting(rows, projects=places, limit=WAITING)) if one.source == SOURCE]
    return queueing(find_findings(rows, places), waiting, dropped=upkeep_queries.dropped_pairs(rows), now=now)


def enqueue(rows: Rows, plan: Queueing, *, now: str) -> None:
    """Changes the queue as planned, but adds no candidate that quotes a memory changed or purged since."""
    for candidate in plan.put:
        quoted = [memories.by_id(rows, ident) for ident in candidate.memory_ids]
        if all(memory is not None and quote(memory) in candidate.text for memory in quoted):
            ident = candidates.identity(
                candidate.kind, candidate.project_seq, candidate.fingerprint, candidate.created_at
            )
            candidates.put_candidate(rows, replace(candidate, id=ident))
    for candidate in plan.settle:
        candidates.set_status(rows, candidate, "done", now=now)


# --- repair


def apply(
    rows: Rows, plan: Sequence[Finding], *, by: str, now: str, key: bytes, as_said: bool = False
) -> tuple[list[Finding], list[Finding]]:
    """Repairs what was found, in the caller's transaction; (repaired, left because it no longer applies).

    With `as_said` a person has said that the memories say the same: they need not look alike. By an assistant nothing is
    set aside of which a person is asked.
    """
    done: list[Finding] = []
    left: list[Finding] = []
    asked = candidates.asked_about(rows) if by == ASSISTANT else frozenset()
    for finding in plan:
        current = _revalidate(rows, finding, key=key, as_said=as_said)
        if current is None or (finding.kind != "missing_embedding" and finding.memory.id in asked):
            left.append(finding)
        else:
            done.append(current)
            _repair(rows, current, by=by, now=now)
    return done, left


def _revalidate(rows: Rows, finding: Finding, *, key: bytes, as_said: bool) -> Finding | None:
    """Reads the memories of a finding again; None where it no longer applies."""
    current = [memory for old in finding.memories if (memory := memories.by_id(rows, old.id)) is not None]
    if len(current) < len(finding.memories) or not all(memory.is_alive for memory in current):
        return None
    if any(supersession.is_forgotten(rows, memory, memory.text, key=key) for memory in current):
        return None
    now = replace(finding, memories=tuple(current))
    memory, into = now.memory, now.into
    if into is not None and not may_merge(memory, into):
        return None
    if [new.version for new in current] == [old.version for old in finding.memories]:
        return now
    still = _has_defect(rows, memory, finding.kind) if into is None else as_said or _alike(memory, into) is not None
    return now if still else None


def _repair(rows: Rows, finding: Finding, *, by: str, now: str) -> None:
    memory, into = finding.memory, finding.into
    if into is not None:
        known = {source.uuid for source in into.provenance}
        counted = [
            source
            for source in memory.provenance
            # An assistant that repeats what its session was told is using a memory, not confirming it.
            if source.role != "beside"
            and source.uuid not in known
            and not (memory.authority == "assistant" and receipts.is_injected(rows, source.session_id, into.id))
        ]
        stays = supersession.aged(rows, absorbed(into, memory, confirmations=len(counted)))
        stored.merge_memories(rows, memory, stays, reason=finding.reason, by=by, now=now)
    elif finding.kind == "stale":
        stored.archive_memory(rows, memory, reason=finding.reason, by=by, now=now)
    else:
        vectors.reembed(rows, "memory", memory.seq)
    settle_about(rows, memory, now=now)


def settle_about(rows: Rows, memory: Memory, *, now: str) -> None:
    """Settles the candidates about a memory that no longer apply."""
    for one in upkeep_queries.about_memory(rows, memory.id):
        if not _holds(rows, one):
            candidates.set_status(rows, one, "done", now=now)


def planned_merge(memory: Memory, into: Memory, *, everywhere: Mapping[int, int], by_person: bool) -> Finding:
    """Plans a requested merge; BadInput if it is not allowed.

    An assistant may merge only memories that say the same, in other words or not; a person any two that hold in the same place.
    """
    for one in (memory, into):
        if not one.is_alive:
            raise BadInput(
                f"{one.id} is archived or superseded: there is nothing to merge", hint="`csmd show` tells by what"
            )
    if memory.id == into.id:
        raise BadInput(f"{memory.id} is one memory", hint="name two")
    if not is_visible_wherever(into, memory, everywhere=everywhere):
        raise BadInput(f"{into.id} does not hold where {memory.id} does", hint="merge memories of one project")
    if (memory.gate == "correction") != (into.gate == "correction"):
        raise BadInput("a correction is merged with corrections only: what it corrects says something else")
    if memory.pinned or (memory.authority == "user" and into.authority != "user"):
        why = "is pinned" if memory.pinned else f"was said by the user, {into.id} by the {into.authority}"
        raise BadInput(
            f"{memory.id} {why}", hint=f"merge them the other way round: csmd pipeline merge {into.id} {memory.id}"
        )
    found, verdict = _alike(memory, into), restatement.judge(memory.text, into.text)
    if found is None and verdict.is_same:
        return restated(into, memory, verdict.reason)
    if found is None and not by_person:
        raise BadInput(
            f"{memory.id} and {into.id} do not say the same: {verdict.reason}",
            hint=f"ask a person to type: csmd pipeline merge {memory.id} {into.id}",
        )
    plan = duplicate(into, memory, share=found[0] if found else 0.0, exact=bool(found and found[1]))
    return plan if found else replace(plan, reason="a person says so")


def undo(rows: Rows, memory: Memory, *, now: str, by_person: bool) -> Memory:
    """Undoes a merge or an archiving; the memory it was merged into, or itself. BadInput for neither.

    What a person did only a person takes back.
    """
    last = [
        row for row in belief_changes.changes_of(rows, memory.id) if row.change == stored.ARCHIVE and not row.undone_at
    ]
    if last and memory.tier == "archive" and not memory.superseded_by:
        _check_may_take_back(memory, last[-1], by_person=by_person)
        archived = replace(memory, tier=last[-1].before)  # type: ignore[arg-type]  # a tier, as it was noted
        memories.update_belief(rows, supersession.aged(rows, archived))
        belief_changes.set_undone(rows, last[-1].seq, at=now)
        return memory
    found = stored.last_merge(rows, memory.id)
    into = memories.by_id(rows, found[0].after) if found else None
    if found is None or into is None:
        raise BadInput(f"{memory.id} was neither merged nor archived", hint="`csmd show` tells what became of it")
    if not into.is_alive:
        raise BadInput(
            f"{into.id}, into which it was merged, is put aside itself",
            hint=f"`csmd pipeline merge --undo {into.id}` first",
        )
    done, took = found
    _check_may_take_back(memory, done, by_person=by_person)
    after, _, *uuids = took.after.split()
    sure, tier, *used = took.before.split()
    free = replace(memory, tier=done.before, superseded_by="")  # type: ignore[arg-type]  # a tier, as it was noted
    stays = released(
        into, memory, raised=float(after) - float(sure), without=uuids, tier=tier, used_at="".join(used)  # type: ignore[arg-type]
    )  # fmt: skip
    free, stays = supersession.aged(rows, free), supersession.aged(rows, stays)
    stored.undo_merge(rows, free, stays, took, done, now=now)
    return into


def _check_may_take_back(memory: Memory, change: belief_changes.Change, *, by_person: bool) -> None:
    if change.by == "user" and not by_person:
        raise CsmdError(f"a person did that to {memory.id}", hint="ask a person to take it back, in a terminal")
