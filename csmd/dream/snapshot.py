"""What one project's dream is planned from, as a value; and what it is after an action, without a store.

The memories that `Working.follow` has are those that the store gives once the action is carried out: `after` computes
them for both, so that a plan can be followed to its end before anything is done.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, replace

from csmd.believe import score
from csmd.believe.upkeep import Key
from csmd.dream import raised
from csmd.dream.actions import Action, Fact
from csmd.model import Candidate, Memory, Provenance

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
    memories: Mapping[str, Memory]
    days: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The active days of the project and of what is around it, in order."""
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    near: frozenset[tuple[str, str]] = frozenset()
    """Pairs of memories whose vectors are near, the ids of each in order."""
    told: frozenset[tuple[str, str]] = frozenset()
    """(session, memory) where the session was told the memory: there it is used, not confirmed."""
    by_assistants: frozenset[str] = frozenset()
    """The uuids of the turns, among those that tell these memories, that an assistant said."""
    superseded_at: Mapping[str, str] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict)
    let_stand: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[tuple[str, str]] = frozenset()
    brought_back: Mapping[str, str] = field(default_factory=dict)
    undone: frozenset[tuple[str, str]] = frozenset()
    """(kind of action, memory or fingerprint) of what a dream did and somebody has undone."""
    dropped: frozenset[Key] = frozenset()
    raised: Mapping[str, Candidate] = field(default_factory=dict)
    """What dreams made of facts, whatever became of it, by fingerprint."""
    facts: tuple[Fact, ...] = ()
    abroad: Mapping[str, Memory] = field(default_factory=dict)
    """Of what holds around projects: what users asked for in these, by id, that could hold everywhere."""
    asked: Set[str] = frozenset()
    """What was put before a person, or answered: `older:newer` of each pair."""

    @property
    def own(self) -> list[Memory]:
        """The memories of the project itself, in an order that depends on what they say alone."""
        return sorted((one for one in self.memories.values() if one.project_seq == self.project_seq), key=order)

    def day(self, scope: int, on: str = "9999") -> int:
        """How many days a scope had been active on a day (by default: so far)."""
        return bisect_right(self.days.get(scope, ()), on)

    def aged(self, memory: Memory) -> Memory:
        """The memory with the thresholds that follow from its values (as `believe.stage.aged` has it)."""
        limits = score.thresholds(
            memory.confidence, decay=memory.decay, gate=memory.gate, category=memory.category,
            today=self.day(memory.project_seq, memory.fresh_at[:10]), stated=memory.authority == "user",
            tier=memory.tier, superseded=bool(memory.superseded_by),
            promised=score.days_to(score.due(memory.text, gate=memory.gate, at=memory.created_at), on=memory.fresh_at),
        )  # fmt: skip
        return replace(memory, hot_until=limits.hot_until, warm_until=limits.warm_until, archive_at=limits.archive_at)

    def stated_at(self, memory: Memory) -> str:
        """When a memory was last stated with the authority that it has (as `store.beliefs.stated_at` has it)."""
        if memory.authority != "user":
            return memory.confirmed_at
        said = [one.at for one in memory.provenance if one.uuid not in self.by_assistants]
        return max(said, default=memory.created_at)


def order(memory: Memory) -> tuple[str, str, str, str]:
    """By what is in the order of what memories say: the same whatever their row keys are and whenever they came."""
    return memory.text, memory.gate, memory.created_at, memory.authority


def alive(memory: Memory | None) -> bool:
    """Whether a memory is there and still put forward by itself."""
    return memory is not None and memory.tier != "archive" and not memory.superseded_by


def sessions(memory: Memory) -> frozenset[str]:
    """The sessions in which a memory was stated or confirmed."""
    return frozenset(one.session_id for one in memory.provenance if one.role != "beside")


def is_sure(memory: Memory, confidence: float) -> bool:
    """Whether a memory is sure enough, and told in sessions enough, to stay for good."""
    return confidence > score.DURABLE_ABOVE and len(sessions(memory)) >= score.DURABLE_SESSIONS


# --- after an action


def confirming(snapshot: Snapshot, memory: Memory, other: Memory) -> tuple[Provenance, ...]:
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


def confirmed(memory: Memory, more: Iterable[Provenance]) -> Memory:
    """A memory that so many more turns tell: surer, and of a longer tier where that is enough."""
    added = tuple(more)
    confidence = memory.confidence
    for _ in added:
        confidence = score.confirm(confidence, pinned=memory.pinned)
    stands = with_sources(memory, added)
    return replace(
        stands,
        confidence=confidence,
        tier="durable" if added and is_sure(stands, confidence) else memory.tier,
        confirmed_at=max([memory.confirmed_at, *(one.at for one in added)]),
    )


def with_sources(memory: Memory, more: Iterable[Provenance]) -> Memory:
    """A memory with more turns that tell it, in the order in which they are read."""
    known = {one.uuid for one in memory.provenance}
    every = [*memory.provenance, *(one for one in more if one.uuid not in known)]
    return replace(memory, provenance=tuple(sorted(every, key=lambda one: (one.role != "states", one.at, one.uuid))))


def taking_in(keeper: Memory, other: Memory, action: Action) -> Memory:
    """The memory that stays, as a merge has it: as sure as the plan says, with every turn that told the other."""
    brought = [one if one.role == "beside" else replace(one, role="confirms") for one in other.provenance]
    counted = [one.at for one in other.provenance if one.uuid in action.evidence]
    return replace(
        with_sources(keeper, brought),
        confidence=keeper.confidence if action.confidence is None else action.confidence,
        tier=action.tier or keeper.tier,
        confirmed_at=max([keeper.confirmed_at, *counted]),
        used_at=max(keeper.used_at, other.used_at),
    )


def after(action: Action, aged: Aged) -> tuple[Memory, ...]:
    """The memories that an action changes, as they are afterwards but for their versions; the action's own first.

    `raise` changes none that is known beforehand, `ask` none at all, and `lift` makes one.
    """
    memory, other = action.memory, action.other
    if action.kind == "lift" and action.made is not None:
        return (aged(action.made),)
    if memory is None or action.kind == "ask":
        return ()
    if action.kind == "merge" and other is not None:
        return replace(memory, tier="archive", superseded_by=other.id), aged(taking_in(other, memory, action))
    if action.kind == "strengthen" and other is not None:
        more = [replace(one, role="confirms") for one in other.provenance if one.uuid in action.evidence]
        return (aged(confirmed(memory, more)),)
    if action.kind == "supersede" and other is not None and action.confidence is not None:
        return (aged(replace(memory, confidence=action.confidence, superseded_by=other.id)),)
    if action.kind == "promote" and action.tier:
        return (aged(replace(memory, tier=action.tier)),)
    return (replace(memory, tier="archive"),)


def pair(action: Action) -> str:
    """What an `ask` is about, as the queue names it: `older:newer`."""
    return ":".join(one.id for one in (action.memory, action.other) if one is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Working(Snapshot):
    """A snapshot with tables of its own, on which a plan is followed to its end: each action takes as long as it changes."""

    memories: dict[str, Memory]
    superseded_at: dict[str, str]
    raised: dict[str, Candidate]
    asked: set[str]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Working:
        """The same, and the snapshot stays as it is."""
        own = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
        tables = {name: dict(own[name]) for name in ("memories", "superseded_at", "raised")}
        return cls(**own | tables | {"asked": set(snapshot.asked)})

    def follow(self, action: Action) -> None:
        """Makes it what the store gives once the action is carried out."""
        if action.fact is not None:
            one = raised.candidate(action.fact)
            self.raised[one.fingerprint] = one
            return
        if action.kind == "lift" and action.made is not None:
            self.memories[action.made.id] = action.made
            return
        if action.kind == "ask":
            self.asked.add(pair(action))
            return
        for changed in after(action, self.aged):
            self.memories[changed.id] = replace(changed, version=changed.version + 1)
            if changed.tier == "archive":
                del self.memories[changed.id]
                self.superseded_at.pop(changed.id, None)
        if action.kind == "supersede" and action.memory is not None and action.other is not None:
            self.superseded_at[action.memory.id] = self.stated_at(action.other)
