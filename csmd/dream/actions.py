"""Values of a dream: what it looks at, what it does, what an action leaves."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from csmd.memory import confidence, promotion
from csmd.memory.duplicates import Key
from csmd.values import Candidate, Evidence, Memory, Provenance
from csmd.vocabulary import CATEGORIES, Category, Tier

#: `Candidate.source` of what a dream puts into the queue.
SOURCE = "dream"
#: Kind of fact -> category of the memory it becomes; any other fact only stands on its page.
CATEGORY: Mapping[str, Category] = {"fix": "gotcha", "files": "pattern", "convention": "convention"}
#: Sessions that have to show a fact before it is remembered: as many as a project has between two dreams.
RECURS = 5
#: Kinds that count what was done; seen in so many sessions and never otherwise, they are sure enough.
DONE, RECURS_ALWAYS = frozenset({"fix", "files"}), 3
#: The counts of a sentence: "(3 times in 2 sessions)", "mended 3 times", ": in 4 of 5 sessions" and ": 9 of 10" at its end.
_COUNTS = re.compile(
    r"\s*\(\d+ times? in \d+ sessions?\)|(?<=mended) \d+ times|[:,] (?:in )?\d+ of \d+(?: \w+)?(?=\.?$)"
)
#: Origins of memories that confirm nothing: worked out by csmd, or saved by an assistant by itself.
UNSTATED = frozenset({"model_saved", "inferred"})

#: In the order in which a dream does them; each sees what those before it have done.
Kind = Literal[
    "merge",  # a memory goes into another that says the same
    "strengthen",  # what several sessions confirm is surer
    "supersede",  # of two that contradict each other the older gives way
    "ask",  # of two that may contradict each other a person says which holds
    "lift",  # what the user asked for in several projects holds everywhere
    "promote",  # to a longer tier
    "raise",  # what recurs in packets becomes a candidate, and a memory where it is sure enough
    "archive",  # what decayed, was superseded, or was for a day: found by explicit search from then on
]
#: What comes of comparing memories with one another.
COMPARING: frozenset[Kind] = frozenset({"merge", "strengthen", "supersede", "ask", "lift"})


# --- facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A sentence about something that was counted over sessions (by the narrator), with its counts.

    It was seen `seen` of `total` times in `sessions` sessions. `evidence` are two uuids of turns or more, one of each
    session before any second. The `fingerprint` does not depend on the counts.
    """

    kind: Literal["command", "procedure", "fix", "files", "convention"]
    fingerprint: str
    text: str
    project_seq: int
    seen: int
    total: int
    sessions: int
    confidence: float
    evidence: tuple[str, ...]


def recurs(fact: Fact) -> bool:
    """Whether a fact that no habit covers was seen often enough to be remembered."""
    is_sure = fact.sessions >= RECURS_ALWAYS and fact.confidence >= promotion.DEFAULT.confidence
    return fact.kind in CATEGORY and (fact.sessions >= RECURS or (fact.kind in DONE and is_sure))


def core(fact: Fact) -> str:
    """A fact's sentence without its counts."""
    return _COUNTS.sub("", fact.text)


def build_candidate(fact: Fact) -> Candidate:
    """A fact as a candidate, without its id and without the times and sessions of its evidence."""
    category = CATEGORY[fact.kind]
    rule = CATEGORIES[category]
    return Candidate(
        id="", kind="belief", source=SOURCE, project_seq=fact.project_seq, fingerprint=fact.fingerprint,
        text=core(fact), reason=f"seen {fact.seen} of {fact.total} times in {fact.sessions} sessions",
        confidence=min(round(fact.confidence, 4), confidence.clamp(1.0, category, rule.gate)), created_at="", updated_at="",
        gate=rule.gate, category=category, reinforcement=fact.seen,
        evidence=tuple(Evidence(uuid=uuid, session_id="", at="") for uuid in sorted(fact.evidence)),
    )  # fmt: skip


def strip_history(candidate: Candidate) -> Candidate:
    """A candidate as `build_candidate` makes it, to be compared: without id, fate and times."""
    evidence = sorted((replace(item, session_id="", at="") for item in candidate.evidence), key=lambda item: item.uuid)
    return replace(
        candidate, id="", seq=0, version=1, status="open", memory_ids=(), created_at="", updated_at="",
        evidence=tuple(evidence),
    )  # fmt: skip


# --- plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One change of `memory`, as it was seen, into or by `other`; `raise` has a fact and no memory.

    `after` are the memories that it changes or makes (`lift`) as it leaves them, but for their versions; the action's own
    first. `evidence` are ids and uuids of turns that the reason rests on: `other` first, then the turns that speak for
    the memory besides its own. `confidence` and `tier` are those that the memory has afterwards, or of a merge the one
    that stays; None and "" where they stay. `sure` is how sure it is that what an `ask` asks about is so.
    """

    kind: Kind
    project_seq: int
    reason: str
    evidence: tuple[str, ...]
    memory: Memory | None = None
    other: Memory | None = None
    fact: Fact | None = None
    confidence: float | None = None
    tier: Tier | Literal[""] = ""
    after: tuple[Memory, ...] = ()
    sure: float = 0.0

    @property
    def phase(self) -> str:
        """The phase of a dream in which it is done."""
        return "prune" if self.kind == "archive" else "consolidate"

    @property
    def made(self) -> Memory | None:
        """The memory that a `lift` makes."""
        return self.after[0] if self.kind == "lift" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of one project: memories by tier, how many repeat another one, mean staleness (0 to 1) by tier."""

    project_seq: int
    tiers: dict[str, int]
    duplicates: int
    staleness: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamPlan:
    """What a dream would do, in its order, and what it was planned from."""

    actions: tuple[Action, ...] = ()
    tallies: tuple[Tally, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a dream over one project, or over what holds everywhere, is planned from.

    `memories` are, by id, those of the project that are not archived, superseded ones among them, and of `everywhere`
    those that are alive. Decisions of people bind: `settled` (what supersedes it, or that nothing does), `refused`
    (memory -> what is not to supersede it), `let_stand` (when a dream's supersession of it was undone), `unmerged`
    (memory, into: a merge that was undone), `brought_back` (when it was taken out of the archive), `dropped` (findings).
    """

    project_seq: int
    everywhere: int
    now: str
    memories: dict[str, Memory]
    days: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The active days of the project and of `everywhere`, in order."""
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    near: frozenset[tuple[str, str]] = frozenset()
    """Pairs of memories whose vectors are near, the ids of each in order."""
    injected: frozenset[tuple[str, str]] = frozenset()
    """(session, memory) where the session was told the memory: what it says of it is use, not confirmation."""
    by_assistants: frozenset[str] = frozenset()
    """The uuids of assistants' turns among the sources of the memories."""
    superseded_at: dict[str, str] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict)
    let_stand: Mapping[str, str] = field(default_factory=dict)
    unmerged: frozenset[tuple[str, str]] = frozenset()
    brought_back: Mapping[str, str] = field(default_factory=dict)
    undone: frozenset[tuple[str, str]] = frozenset()
    """(kind of action, memory or fingerprint) of undone actions of dreams."""
    dropped: frozenset[Key] = frozenset()
    raised: dict[str, Candidate] = field(default_factory=dict)
    """The candidates that dreams made of facts, whatever became of them, by fingerprint."""
    facts: tuple[Fact, ...] = ()
    abroad: Mapping[str, Memory] = field(default_factory=dict)
    """Of `everywhere`: what users asked for in its projects, by id, that could hold everywhere."""
    questioned: set[str] = field(default_factory=set)
    """Pairs `older:newer` that were put before a person."""

    @property
    def own(self) -> list[Memory]:
        """The memories of the project itself, in an order that depends on what they say alone."""
        return sorted(
            (memory for memory in self.memories.values() if memory.project_seq == self.project_seq), key=sort_key
        )

    def alive(self, ident: str) -> Memory | None:
        """A memory that is put forward by itself; None where it is not, or not there."""
        memory = self.memories.get(ident)
        return memory if memory is not None and memory.is_alive else None

    def day(self, scope: int, on: str = "9999") -> int:
        """How many days a scope had been active on a date (by default: so far)."""
        return bisect_right(self.days.get(scope, ()), on)

    def aged(self, memory: Memory) -> Memory:
        """The memory with the thresholds that follow from its values (as `memory.supersession.aged`)."""
        return confidence.aged(memory, today=self.day(memory.project_seq, memory.fresh_at[:10]))

    def stated_at(self, memory: Memory) -> str:
        """When a memory was last stated with its authority (as `store.belief_changes.stated_at`)."""
        if memory.authority != "user":
            return memory.confirmed_at
        times = [source.at for source in memory.provenance if source.uuid not in self.by_assistants]
        return max(times, default=memory.created_at)

    def contents(self) -> Iterator[str]:
        """All that decides what is done about memories that belong together, part by part; equal contents give equal parts.

        Left out is what decides only what goes to the archive or into the queue: the time, the use of memories, facts.
        """
        for _, memory in sorted(self.memories.items()):
            yield repr(_without_use(memory))
        sessions = {source.session_id for memory in self.memories.values() for source in memory.provenance}
        injected = frozenset(pair for pair in self.injected if pair[0] in sessions)
        dropped = frozenset(key for key in self.dropped if key[0] in (self.project_seq, self.everywhere))
        abroad = {ident: _without_use(memory) for ident, memory in self.abroad.items()}
        limited = {"injected": injected, "dropped": dropped, "abroad": abroad}
        for part in fields(self):
            if part.name not in ("memories", "near", "now", "days", "facts", "raised"):
                yield f"{part.name}:"
                yield from map(repr, _in_order(limited.get(part.name, getattr(self, part.name))))

    def copied(self) -> Snapshot:
        """A snapshot with tables of its own, for `follow` to change."""
        return replace(
            self, memories=dict(self.memories), superseded_at=dict(self.superseded_at), raised=dict(self.raised),
            questioned=set(self.questioned),
        )  # fmt: skip

    def follow(self, action: Action) -> None:
        """Changes it to what the store holds once an action is carried out."""
        memory, other = action.memory, action.other
        if action.fact is not None:
            self.raised[action.fact.fingerprint] = build_candidate(action.fact)
        for changed in action.after:
            is_known = changed.id in self.memories
            self.memories[changed.id] = replace(changed, version=changed.version + is_known)
            if changed.tier == "archive":
                del self.memories[changed.id]
                self.superseded_at.pop(changed.id, None)
        if memory is not None and other is not None and action.kind == "ask":
            self.questioned.add(f"{memory.id}:{other.id}")
        elif memory is not None and other is not None and action.kind == "supersede":
            self.superseded_at[memory.id] = self.stated_at(other)


def _without_use(memory: Memory) -> Memory:
    """A memory without what its use changes."""
    return replace(memory, used_at="", hot_until=0, warm_until=0, archive_at=0, version=0)


def _in_order(value: Any) -> list[Any]:
    """What a table, a set or a single value holds, in order: a set has another one in each process."""
    if isinstance(value, Mapping):
        return [
            (key, sorted(held) if isinstance(held, Set) else held)
            for key, held in sorted(value.items(), key=lambda item: item[0])
        ]
    return sorted(value) if isinstance(value, Set) else [value]


def sort_key(memory: Memory) -> tuple[str, str, str, str]:
    """A sort key that depends on what memories say alone, not on their row keys and when they came."""
    return memory.text, memory.gate, memory.created_at, memory.authority


# --- what an action leaves


def is_sure(memory: Memory) -> bool:
    """Whether a memory is sure enough, and said in sessions enough, to stay for good."""
    return memory.confidence > confidence.DURABLE_ABOVE and len(memory.sessions) >= confidence.DURABLE_SESSIONS


def find_confirming(snapshot: Snapshot, memory: Memory, other: Memory) -> tuple[Provenance, ...]:
    """The sources of `other` that speak for `memory` as well; what repeats what its session was told is use."""
    if other.origin in UNSTATED:
        return ()
    uuids = {source.uuid for source in memory.provenance}
    return tuple(
        replace(source, role="confirms")
        for source in other.provenance
        if source.role != "beside"
        and source.uuid not in uuids
        and not (other.authority == "assistant" and (source.session_id, memory.id) in snapshot.injected)
    )


def confirm(memory: Memory, more: Iterable[Provenance]) -> Memory:
    """A memory confirmed by more turns: surer, and of a longer tier where that is enough."""
    added = tuple(more)
    sure = add_sources(memory, added)
    for _ in added:
        sure = replace(sure, confidence=confidence.confirm(sure.confidence, pinned=memory.pinned))
    return replace(
        sure,
        tier="durable" if added and is_sure(sure) else memory.tier,
        confirmed_at=max([memory.confirmed_at, *(source.at for source in added)]),
    )


def add_sources(memory: Memory, more: Iterable[Provenance]) -> Memory:
    """A memory with more sources, in the order in which the store reads them."""
    uuids = {source.uuid for source in memory.provenance}
    every = [*memory.provenance, *(source for source in more if source.uuid not in uuids)]
    every.sort(key=lambda source: (source.role != "states", source.at, source.uuid))
    return replace(memory, provenance=tuple(every))


def absorb(keeper: Memory, other: Memory, sure: Memory, tier: Tier) -> Memory:
    """The memory that stays in a merge: with all sources of the other, as sure as `sure`, the keeper as confirmed by it."""
    sources = [source if source.role == "beside" else replace(source, role="confirms") for source in other.provenance]
    return replace(
        add_sources(keeper, sources), confidence=sure.confidence, tier=tier, confirmed_at=sure.confirmed_at,
        used_at=max(keeper.used_at, other.used_at),
    )  # fmt: skip
