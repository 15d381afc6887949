"""Values of a dream: what it looks at, what it does, what an action leaves."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from csmd.memory import confidence, habits
from csmd.memory.upkeep import Key
from csmd.model import CATEGORIES, Candidate, Category, Evidence, Memory, Provenance, Tier

#: The rule that put such a candidate there, as `Candidate.source`.
SOURCE = "dream"
#: Kind of fact -> what it becomes: pattern, convention or gotcha. What is not here only stands on its page.
CATEGORY: Mapping[str, Category] = {"fix": "gotcha", "files": "pattern", "convention": "convention"}
#: In so many sessions it has to be seen: as often as a project had sessions between two dreams, and not by chance.
RECURS = 5
#: What was done, not only named, and never otherwise, in so many: then it is as sure as what is remembered unasked.
DONE, RECURS_ALWAYS = frozenset({"fix", "files"}), 3
#: The counts of a sentence: "(3 times in 2 sessions)", "mended 3 times", ": in 4 of 5 sessions" and ": 9 of 10" at its end.
_COUNTS = re.compile(
    r"\s*\(\d+ times? in \d+ sessions?\)|(?<=mended) \d+ times|[:,] (?:in )?\d+ of \d+(?: \w+)?(?=\.?$)"
)


def recurs(fact: Fact) -> bool:
    """Whether a fact that no habit tells was seen often enough to be remembered."""
    always = fact.kind in DONE and fact.sessions >= RECURS_ALWAYS and fact.confidence >= habits.DEFAULT.confidence
    return fact.kind in CATEGORY and (fact.sessions >= RECURS or always)


def core(fact: Fact) -> str:
    """What a fact says without its counts."""
    return _COUNTS.sub("", fact.text)


def build_candidate(fact: Fact) -> Candidate:
    """A fact as it waits in the queue; it has no id, and neither time nor session of its evidence yet."""
    category = CATEGORY[fact.kind]
    rule = CATEGORIES[category]
    return Candidate(
        id="", kind="belief", source=SOURCE, project_seq=fact.project_seq, fingerprint=fact.fingerprint,
        text=core(fact), reason=f"seen {fact.seen} of {fact.total} times in {fact.sessions} sessions",
        confidence=min(round(fact.confidence, 4), confidence.clamp(1.0, category, rule.gate)), created_at="", updated_at="",
        gate=rule.gate, category=category, reinforcement=fact.seen,
        evidence=tuple(Evidence(uuid=uuid, session_id="", at="") for uuid in sorted(fact.evidence)),
    )  # fmt: skip


def strip_history(one: Candidate) -> Candidate:
    """What a candidate says, to be compared: without its id, its fate, and the times of its evidence."""
    evidence = tuple(Evidence(uuid=cited.uuid, session_id="", at="") for cited in one.evidence)
    return replace(
        one, id="", seq=0, version=1, status="open", memory_ids=(), created_at="", updated_at="",
        evidence=tuple(sorted(evidence, key=lambda cited: cited.uuid)),
    )  # fmt: skip


#: How a memory's thresholds are computed from its values, by whoever knows the active days of its scope.
Aged = Callable[[Memory], Memory]
#: What csmd worked out or an assistant saved by itself confirms nothing.
UNSAID = frozenset({"model_saved", "inferred"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One project, or one row of what holds everywhere, with what holds all around it.

    `memories` are those of the project that are not archived, superseded ones among them, and of `everywhere` those that
    are alive, by id. What a person decided binds: `settled` (what supersedes it, or that nothing does), `refused`
    (memory -> what is not to supersede it), `let_stand` (when a dream's supersession of it was undone), `apart` (memory, into: a merge that was taken back), `brought_back` (when it
    was taken out of the archive), `dropped` (findings).
    """

    project_seq: int
    everywhere: int
    now: str
    memories: dict[str, Memory]
    days: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The active days of the project and of what is around it, in order."""
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    near: frozenset[tuple[str, str]] = frozenset()
    """Pairs of memories whose vectors are near, the ids of each in order."""
    told: frozenset[tuple[str, str]] = frozenset()
    """(session, memory) where the session was told the memory: there it is used, not confirmed."""
    by_assistants: frozenset[str] = frozenset()
    """The uuids of the turns, among those that tell these memories, that an assistant said."""
    superseded_at: dict[str, str] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict)
    let_stand: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[tuple[str, str]] = frozenset()
    brought_back: Mapping[str, str] = field(default_factory=dict)
    undone: frozenset[tuple[str, str]] = frozenset()
    """(kind of action, memory or fingerprint) of what a dream did and somebody has undone."""
    dropped: frozenset[Key] = frozenset()
    raised: dict[str, Candidate] = field(default_factory=dict)
    """What dreams made of facts, whatever became of it, by fingerprint."""
    facts: tuple[Fact, ...] = ()
    abroad: Mapping[str, Memory] = field(default_factory=dict)
    """Of what holds around projects: what users asked for in these, by id, that could hold everywhere."""
    asked: set[str] = field(default_factory=set)
    """What was put before a person, or answered: `older:newer` of each pair."""

    @property
    def own(self) -> list[Memory]:
        """The memories of the project itself, in an order that depends on what they say alone."""
        return sorted((one for one in self.memories.values() if one.project_seq == self.project_seq), key=sort_key)

    def day(self, scope: int, on: str = "9999") -> int:
        """How many days a scope had been active on a day (by default: so far)."""
        return bisect_right(self.days.get(scope, ()), on)

    def aged(self, memory: Memory) -> Memory:
        """The memory with the thresholds that follow from its values (as `memory.supersession.aged` has it)."""
        return confidence.aged(memory, today=self.day(memory.project_seq, memory.fresh_at[:10]))

    def stated_at(self, memory: Memory) -> str:
        """When a memory was last stated with the authority that it has (as `store.belief_changes.stated_at` has it)."""
        if memory.authority != "user":
            return memory.confirmed_at
        said = [one.at for one in memory.provenance if one.uuid not in self.by_assistants]
        return max(said, default=memory.created_at)

    # --- following a plan to its end

    def copied(self) -> Snapshot:
        """The same with tables of its own, for `follow` to change."""
        return replace(
            self, memories=dict(self.memories), superseded_at=dict(self.superseded_at), raised=dict(self.raised),
            asked=set(self.asked),
        )  # fmt: skip

    def follow(self, action: Action) -> None:
        """Makes it what the store gives once an action is carried out."""
        if action.fact is not None:
            self.raised[action.fact.fingerprint] = build_candidate(action.fact)
        elif action.kind == "lift" and action.made is not None:
            self.memories[action.made.id] = action.made
        elif action.kind == "ask":
            self.asked.add(":".join(one.id for one in (action.memory, action.other) if one is not None))
        else:
            for changed in apply_action(action, self.aged):
                self.memories[changed.id] = replace(changed, version=changed.version + 1)
                if changed.tier == "archive":
                    del self.memories[changed.id]
                    self.superseded_at.pop(changed.id, None)
            if action.kind == "supersede" and action.memory is not None and action.other is not None:
                self.superseded_at[action.memory.id] = self.stated_at(action.other)


def sort_key(memory: Memory) -> tuple[str, str, str, str]:
    """By what is in the order of what memories say: the same whatever their row keys are and whenever they came."""
    return memory.text, memory.gate, memory.created_at, memory.authority


def is_alive(memory: Memory | None) -> bool:
    """Whether a memory is there and still put forward by itself."""
    return memory is not None and memory.tier != "archive" and not memory.superseded_by


def sessions_of(memory: Memory) -> frozenset[str]:
    """The sessions in which a memory was stated or confirmed."""
    return frozenset(one.session_id for one in memory.provenance if one.role != "beside")


def is_sure(memory: Memory, sureness: float) -> bool:
    """Whether a memory is sure enough, and told in sessions enough, to stay for good."""
    return sureness > confidence.DURABLE_ABOVE and len(sessions_of(memory)) >= confidence.DURABLE_SESSIONS


# --- after an action


def find_confirming(snapshot: Snapshot, memory: Memory, other: Memory) -> tuple[Provenance, ...]:
    """The turns that tell `other` and speak for `memory` as well; what repeats what its session was told is use."""
    if other.origin in UNSAID:
        return ()
    known = {one.uuid for one in memory.provenance}
    return tuple(
        replace(one, role="confirms")
        for one in other.provenance
        if one.role != "beside"
        and one.uuid not in known
        and not (other.authority == "assistant" and (one.session_id, memory.id) in snapshot.told)
    )


def confirm(memory: Memory, more: Iterable[Provenance]) -> Memory:
    """A memory that so many more turns tell: surer, and of a longer tier where that is enough."""
    added = tuple(more)
    sureness = memory.confidence
    for _ in added:
        sureness = confidence.confirm(sureness, pinned=memory.pinned)
    stands = add_sources(memory, added)
    return replace(
        stands,
        confidence=sureness,
        tier="durable" if added and is_sure(stands, sureness) else memory.tier,
        confirmed_at=max([memory.confirmed_at, *(one.at for one in added)]),
    )


def add_sources(memory: Memory, more: Iterable[Provenance]) -> Memory:
    """A memory with more turns that tell it, in the order in which they are read."""
    known = {one.uuid for one in memory.provenance}
    every = [*memory.provenance, *(one for one in more if one.uuid not in known)]
    return replace(memory, provenance=tuple(sorted(every, key=lambda one: (one.role != "states", one.at, one.uuid))))


def take_in(keeper: Memory, other: Memory, action: Action) -> Memory:
    """The memory that stays, as a merge has it: as sure as the plan says, with every turn that told the other."""
    brought = [one if one.role == "beside" else replace(one, role="confirms") for one in other.provenance]
    counted = [one.at for one in other.provenance if one.uuid in action.evidence]
    return replace(
        add_sources(keeper, brought),
        confidence=keeper.confidence if action.confidence is None else action.confidence,
        tier=action.tier or keeper.tier,
        confirmed_at=max([keeper.confirmed_at, *counted]),
        used_at=max(keeper.used_at, other.used_at),
    )


def apply_action(action: Action, aged: Aged) -> tuple[Memory, ...]:
    """The memories that an action changes, as they are afterwards but for their versions; the action's own first.

    `raise` changes none that is known beforehand, `ask` none at all, and `lift` makes one.
    """
    memory, other = action.memory, action.other
    if action.kind == "lift" and action.made is not None:
        return (aged(action.made),)
    if memory is None or action.kind == "ask":
        return ()
    if action.kind == "merge" and other is not None:
        return replace(memory, tier="archive", superseded_by=other.id), aged(take_in(other, memory, action))
    if action.kind == "strengthen" and other is not None:
        more = [replace(one, role="confirms") for one in other.provenance if one.uuid in action.evidence]
        return (aged(confirm(memory, more)),)
    if action.kind == "supersede" and other is not None and action.confidence is not None:
        return (aged(replace(memory, confidence=action.confidence, superseded_by=other.id)),)
    if action.kind == "promote" and action.tier:
        return (aged(replace(memory, tier=action.tier)),)
    return (replace(memory, tier="archive"),)


#: In the order in which a dream does them; what one does the next one sees.
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
Phase = Literal["orient", "gather", "consolidate", "prune"]
#: The phase of a dream in which an action is done.
PHASES: dict[Kind, Phase] = {
    "merge": "consolidate", "strengthen": "consolidate", "supersede": "consolidate", "ask": "consolidate",
    "lift": "consolidate", "promote": "consolidate", "raise": "consolidate", "archive": "prune",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something counted over journal and packets (the narrator's): a sentence in a template, with what it counts.

    `evidence` are uuids of turns, one of each session before any second; there are two at least. `fingerprint` is the
    same for the same fact whatever the counts are; `seen` of `total` occasions in `sessions` sessions.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One change: of `memory` as it was seen (its version), into or by `other`; `raise` has a fact and no memory.

    `made` is the memory that a `lift` makes, `sure` how sure it is that what an `ask` asks about is so.

    `evidence` are ids of memories and uuids of turns that the reason rests on: the id of `other` first, then the turns
    that speak for the memory besides its own. `confidence` and `tier` are what the memory has afterwards, or of a merge
    the one that stays; None and "" where the action leaves them.
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
    made: Memory | None = None
    sure: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What orienting found in one project: memories by tier, how many say what another says, staleness (0-1) by tier."""

    project_seq: int
    tiers: dict[str, int]
    duplicates: int
    staleness: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamPlan:
    """What a dream would do, in its order, and what it was planned from."""

    actions: tuple[Action, ...] = ()
    tallies: tuple[Tally, ...] = ()
