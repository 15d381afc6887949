"""Values of a dream: facts, actions, the snapshot it is planned from, and the memories that result from an action."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import Any, Literal

from csmd.knowledge import Candidate, Evidence, Memory, Provenance
from csmd.memory import confidence, habits, promotion
from csmd.memory.duplicates import FindingKey
from csmd.vocabulary import CATEGORIES, Category, Tier

#: `Candidate.source` of a dream's candidates.
DREAM_SOURCE = "dream"
#: Kind of fact -> category of the memory it becomes; any other fact is only shown on its page.
FACT_CATEGORY: Mapping[str, Category] = {"fix": "gotcha", "files": "pattern", "convention": "convention"}
#: Sessions that must show a fact before it is remembered: about as many as a project has between two dreams.
MIN_FACT_SESSIONS = 5
#: Kinds of facts that count work.
WORK_FACTS = frozenset({"fix", "files"})
#: Sessions after which a fact about work is remembered if no session shows otherwise.
MIN_SURE_SESSIONS = 3
#: Counts in a sentence: "(3 times in 2 sessions)", "fixed 3 times", and ": in 4 of 5 sessions" or ": 9 of 10" at its end.
_COUNTS = re.compile(
    r"\s*\(\d+ times? in \d+ sessions?\)|(?<=fixed) \d+ times|[:,] (?:in )?\d+ of \d+(?: \w+)?(?=\.?$)"
)
#: Most turns that a fact cites.
MAX_EVIDENCE_TURNS = 8
#: The mark of purged or redacted text; a text with it is not quoted.
REMOVED_TEXT = re.compile(r"\[(?:purged\]|redacted:)")
#: Origins of memories that confirm nothing: inferred by csmd, or saved by an assistant unasked.
UNSTATED = frozenset({"model_saved", "inferred"})

#: The kinds of actions, in the order in which a dream does them; each sees the results of those before it.
ActionKind = Literal[
    "merge",  # merges a memory into another one that states the same
    "strengthen",  # raises the confidence of a memory that several sessions confirm
    "supersede",  # replaces the older of two memories that contradict each other
    "ask",  # asks a person which of two memories holds that may contradict each other
    "lift",  # makes a general memory of a statement that the user made in several projects
    "promote",  # gives a memory a longer tier
    "raise",  # makes a candidate of a fact that recurs, and a memory if it is sure enough
    "archive",  # archives a memory that decayed, was superseded, or was for a day; search still finds it
]
#: The kinds that come from comparing memories with one another.
COMPARING_KINDS: frozenset[ActionKind] = frozenset({"merge", "strengthen", "supersede", "ask", "lift"})


# --- facts

FactKind = Literal["command", "procedure", "fix", "files", "convention"]
#: (session, uuid) of a turn.
TurnReference = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A counted sentence about the work in several sessions, with its counts.

    It was seen `seen` of `total` times in `sessions` sessions. `evidence` are at least two uuids of turns, one of each
    session before a second one of any. The `fingerprint` does not depend on the counts.
    """

    kind: FactKind
    fingerprint: str
    text: str
    project_seq: int
    seen: int
    total: int
    sessions: int
    confidence: float
    evidence: tuple[str, ...]


def make_fact(
    kind: FactKind, fingerprint: str, text: str, project: int, *, seen: int, total: int,
    sources: Sequence[TurnReference],
) -> Fact | None:  # fmt: skip
    """Returns a fact with the confidence of its counts; None if too few sessions or turns show it."""
    sessions = count_sessions(sources)
    evidence = choose_evidence(sources)
    if min(sessions, len(evidence)) < habits.MIN_SESSIONS or REMOVED_TEXT.search(text):
        return None
    return Fact(
        kind=kind, fingerprint=fingerprint, text=text, project_seq=project, seen=seen, total=total, sessions=sessions,
        confidence=habits.estimate_confidence(sessions, fit=seen / total, against=0), evidence=evidence,
    )  # fmt: skip


def choose_evidence(sources: Iterable[TurnReference]) -> tuple[str, ...]:
    """Returns the uuids of at most MAX_EVIDENCE_TURNS turns, one of each session before a second one of any."""
    ranks: Counter[str] = Counter()
    ranked: list[tuple[int, str]] = []
    for session, uuid in dict.fromkeys(sources):
        ranked.append((ranks[session], uuid))
        ranks[session] += 1
    return tuple(dict.fromkeys(uuid for _, uuid in sorted(ranked, key=itemgetter(0))))[:MAX_EVIDENCE_TURNS]


def count_sessions(sources: Iterable[TurnReference]) -> int:
    """Returns the number of sessions that some turns belong to."""
    return len({session for session, _ in sources})


def is_recurring(fact: Fact) -> bool:
    """Whether a fact was seen often enough to be remembered, unless a habit covers it."""
    is_sure = fact.sessions >= MIN_SURE_SESSIONS and fact.confidence >= promotion.DEFAULT_PROFILE.confidence
    return fact.kind in FACT_CATEGORY and (fact.sessions >= MIN_FACT_SESSIONS or (fact.kind in WORK_FACTS and is_sure))


def strip_counts(fact: Fact) -> str:
    """Returns a fact's sentence without its counts."""
    return _COUNTS.sub("", fact.text)


def build_candidate(fact: Fact) -> Candidate:
    """Returns a fact as a candidate, without an id and without the times and sessions of its evidence."""
    category = FACT_CATEGORY[fact.kind]
    rule = CATEGORIES[category]
    return Candidate(
        id="", kind="belief", source=DREAM_SOURCE, project_seq=fact.project_seq, fingerprint=fact.fingerprint,
        text=strip_counts(fact), reason=f"seen {fact.seen} of {fact.total} times in {fact.sessions} sessions",
        confidence=min(round(fact.confidence, 4), confidence.clamp(1.0, category, rule.gate)), created_at="", updated_at="",
        gate=rule.gate, category=category, reinforcement=fact.seen,
        evidence=tuple(Evidence(uuid=uuid, session_id="", at="") for uuid in sorted(fact.evidence)),
    )  # fmt: skip


def strip_history(candidate: Candidate) -> Candidate:
    """Returns a candidate without id, status and times, comparable with what `build_candidate` returns."""
    evidence = sorted((replace(item, session_id="", at="") for item in candidate.evidence), key=lambda item: item.uuid)
    return replace(
        candidate, id="", seq=0, version=1, status="open", memory_ids=(), created_at="", updated_at="",
        evidence=tuple(evidence),
    )  # fmt: skip


# --- plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A planned change to `memory` (as it was when planned); `other` is the memory it is merged into or superseded by.

    A `raise` has a fact instead. `after` lists the memories that it changes or creates, the action's own first, in their
    final state but with their old versions. `evidence` are ids and uuids of turns: `other` first, then the turns that
    support the memory besides its own. `confidence` and `tier` are those of the resulting memory; None and "" if they
    do not change. `ask_confidence` (0-1) is that of an `ask`.
    """

    kind: ActionKind
    project_seq: int
    reason: str
    evidence: tuple[str, ...]
    memory: Memory | None = None
    other: Memory | None = None
    fact: Fact | None = None
    confidence: float | None = None
    tier: Tier | Literal[""] = ""
    after: tuple[Memory, ...] = ()
    ask_confidence: float = 0.0

    @property
    def phase(self) -> str:
        """The phase of a dream that it belongs to."""
        return "prune" if self.kind == "archive" else "consolidate"

    @property
    def created(self) -> Memory | None:
        """The memory that a `lift` creates."""
        return self.after[0] if self.kind == "lift" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts of one project: memories by tier, memories that repeat another one, mean staleness (0 to 1) by tier."""

    project_seq: int
    tiers: dict[str, int]
    duplicates: int
    staleness: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamPlan:
    """The actions of a dream, in order, and the counts that it was planned from."""

    actions: tuple[Action, ...] = ()
    tallies: tuple[Tally, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The data from which a dream over one project, or over the general memories of a workspace, is planned.

    `memories` are, by id, the project's memories that are not archived, superseded ones included, and the living ones
    of `everywhere`. No action goes against a person's decision: `settled` (memories whose successor a person chose),
    `refused` (memory -> memories that must not supersede it), `let_stand` (memory -> when a dream's supersession of it
    was undone), `unmerged` ((memory, into) of merges that were undone), `brought_back` (memory -> when it was restored
    from the archive), `dropped` (findings that a person dropped).
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
    """(session, memory) if the memory was injected into the session: repeating it there is use, not confirmation."""
    by_assistants: frozenset[str] = frozenset()
    """The uuids of assistants' turns among the sources of the memories."""
    superseded_at: dict[str, str] = field(default_factory=dict)
    settled: frozenset[str] = frozenset()
    refused: Mapping[str, frozenset[str]] = field(default_factory=dict)
    let_stand: Mapping[str, str] = field(default_factory=dict)
    unmerged: frozenset[tuple[str, str]] = frozenset()
    brought_back: Mapping[str, str] = field(default_factory=dict)
    undone: frozenset[tuple[str, str]] = frozenset()
    """(kind of action, memory or fingerprint) of dreams' actions that were undone."""
    dropped: frozenset[FindingKey] = frozenset()
    raised_facts: dict[str, Candidate] = field(default_factory=dict)
    """The candidates that dreams made of facts, of any status, by fingerprint."""
    facts: tuple[Fact, ...] = ()
    stated_elsewhere: Mapping[str, Memory] = field(default_factory=dict)
    """If the project is `everywhere`: its projects' memories that could hold everywhere, by id."""
    questioned: set[str] = field(default_factory=set)
    """Pairs `older:newer` that a person was asked about."""

    @property
    def own(self) -> list[Memory]:
        """The memories of the project itself, in an order that depends only on their texts."""
        own = (memory for memory in self.memories.values() if memory.project_seq == self.project_seq)
        return sorted(own, key=sort_key)

    def alive(self, memory_id: str) -> Memory | None:
        """Returns a memory that is neither archived nor replaced; None if it is not in the snapshot."""
        memory = self.memories.get(memory_id)
        return memory if memory is not None and memory.is_alive else None

    def day(self, scope: int, on: str = "9999") -> int:
        """Returns the number of active days of a scope up to a date (by default: up to now)."""
        return bisect_right(self.days.get(scope, ()), on)

    def aged(self, memory: Memory) -> Memory:
        """Returns a memory with its attention thresholds recomputed (as `memory.supersession.refresh_thresholds`)."""
        return confidence.set_thresholds(memory, today=self.day(memory.project_seq, memory.fresh_at[:10]))

    def stated_at(self, memory: Memory) -> str:
        """Returns when a memory was last stated with its authority (as `store.belief_changes.last_stated_at`)."""
        if memory.authority != "user":
            return memory.confirmed_at
        times = [source.at for source in memory.provenance if source.uuid not in self.by_assistants]
        return max(times, default=memory.created_at)

    def contents(self) -> Iterator[str]:
        """Yields the text that decides which memories are merged, strengthened, superseded or lifted.

        Equal snapshots yield equal parts. The time, the use of memories and the facts are omitted: they decide only
        about the archive and the queue.
        """
        for _, memory in sorted(self.memories.items()):
            yield repr(_without_use(memory))
        sessions = {source.session_id for memory in self.memories.values() for source in memory.provenance}
        injected = frozenset(pair for pair in self.injected if pair[0] in sessions)
        dropped = frozenset(key for key in self.dropped if key[0] in (self.project_seq, self.everywhere))
        elsewhere = {memory_id: _without_use(memory) for memory_id, memory in self.stated_elsewhere.items()}
        limited = {"injected": injected, "dropped": dropped, "stated_elsewhere": elsewhere}
        omitted = ("memories", "near", "now", "days", "facts", "raised_facts")
        for name in (column.name for column in fields(self)):
            if name not in omitted:
                yield f"{name}:"
                yield from map(repr, _sort_values(limited.get(name, getattr(self, name))))

    def copy(self) -> Snapshot:
        """Returns a copy that `apply` may change."""
        return replace(
            self, memories=dict(self.memories), superseded_at=dict(self.superseded_at), raised_facts=dict(self.raised_facts),
            questioned=set(self.questioned),
        )  # fmt: skip

    def apply(self, action: Action) -> None:
        """Updates the snapshot to what the store holds after an action."""
        memory, other = action.memory, action.other
        if action.fact is not None:
            self.raised_facts[action.fact.fingerprint] = build_candidate(action.fact)
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
    """Returns a memory without the fields that its use changes."""
    return replace(memory, used_at="", hot_until=0, warm_until=0, archive_at=0, version=0)


def _sort_values(value: Any) -> list[Any]:
    """Returns the entries of a table, a set or a single value in order: a set's own order differs between processes."""
    if isinstance(value, Mapping):
        entries = sorted(value.items(), key=itemgetter(0))
        return [(key, sorted(values) if isinstance(values, Set) else values) for key, values in entries]
    return sorted(value) if isinstance(value, Set) else [value]


def sort_key(memory: Memory) -> tuple[str, str, str, str]:
    """Returns a sort key that depends on what memories state, not on their row keys or when they were stored."""
    return memory.text, memory.gate, memory.created_at, memory.authority


# --- the memories after an action


def is_sure(memory: Memory) -> bool:
    """Whether a memory is sure enough, and was stated in enough sessions, to become durable."""
    return memory.confidence > confidence.DURABLE_ABOVE and len(memory.sessions) >= confidence.MIN_DURABLE_SESSIONS


def find_confirming(snapshot: Snapshot, memory: Memory, other: Memory) -> tuple[Provenance, ...]:
    """Returns the sources of `other` that support `memory`, without sessions that only repeat an injected memory."""
    if other.origin in UNSTATED:
        return ()
    uuids = {source.uuid for source in memory.provenance}
    sources = [item for item in other.provenance if item.role != "beside" and item.uuid not in uuids]
    if other.authority == "assistant":
        sources = [item for item in sources if (item.session_id, memory.id) not in snapshot.injected]
    return tuple(replace(source, role="confirms") for source in sources)


def confirm(memory: Memory, sources: Sequence[Provenance]) -> Memory:
    """Returns a memory confirmed by more turns: with a higher confidence, and a longer tier if that suffices."""
    confirmed = merge_sources(memory, sources)
    for _ in sources:
        confirmed = replace(confirmed, confidence=confidence.confirm(confirmed.confidence, pinned=memory.pinned))
    tier = "durable" if sources and is_sure(confirmed) else memory.tier
    confirmed_at = max([memory.confirmed_at, *(source.at for source in sources)])
    return replace(confirmed, tier=tier, confirmed_at=confirmed_at)


def merge_sources(memory: Memory, sources: Iterable[Provenance]) -> Memory:
    """Returns a memory with more sources, in the order in which the store reads them."""
    uuids = {source.uuid for source in memory.provenance}
    every = [*memory.provenance, *(source for source in sources if source.uuid not in uuids)]
    every.sort(key=lambda source: (source.role != "states", source.at, source.uuid))
    return replace(memory, provenance=tuple(every))


def absorb(keeper: Memory, other: Memory, confirmed: Memory, tier: Tier) -> Memory:
    """Returns the memory that stays in a merge: with the sources of the other one and the confidence of `confirmed`."""
    sources = [source if source.role == "beside" else replace(source, role="confirms") for source in other.provenance]
    return replace(
        merge_sources(keeper, sources), confidence=confirmed.confidence, tier=tier, confirmed_at=confirmed.confirmed_at,
        used_at=max(keeper.used_at, other.used_at),
    )  # fmt: skip
