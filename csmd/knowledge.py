"""Records of knowledge: statements, observations, candidates and memories, with their evidence; no I/O.

Confidence is 0.0 to 1.0 (0 to 100 only on screens). Every Memory has at least one Provenance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from csmd.vocabulary import (
    Authority,
    CandidateKind,
    CandidateStatus,
    Category,
    Decay,
    Gate,
    MemoryType,
    PacketKind,
    Scope,
    Stance,
    Tier,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence of a conversation that is worth keeping; `reasons` name the rules that chose it.

    `also` names at most three further turns that say the same or complete it.
    """

    text: str
    gate: Gate
    category: Category
    confidence: float
    authority: Authority
    reasons: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of a session at one moment, 0 to 1 each, None if unknown; `stance` is the user's attitude to the work."""

    frustration: float | None
    energy: float | None
    stance: Stance
    urgency: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A structured observation of one turn; `subject` names the same thing by the same word in every session.

    `outcome` is `ok` or `failed` for a command, `asked` or `against` for a user's words; `words` counts those of the
    turn.
    """

    kind: PacketKind
    subject: str
    outcome: str
    uuid: str
    session_id: str
    project_seq: int
    ordinal: int
    at: str
    words: int
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A turn that supports a candidate, or contradicts it if `against`."""

    uuid: str
    session_id: str
    at: str
    against: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A possible memory, or a possible change of memories, that waits for evidence or for a person.

    `source` is the rule that found it; `fingerprint` identifies it within its project. `reinforcement` counts how often
    it was seen, `contradicted` how often it was denied; `memory_ids` are the memories concerned. `text` is a sentence
    that people can judge, `reason` says why it waits.
    """

    id: str
    kind: CandidateKind
    source: str
    project_seq: int
    fingerprint: str
    text: str
    reason: str
    confidence: float
    created_at: str
    updated_at: str
    gate: Gate = "epistemic"
    category: Category = "pattern"
    reinforcement: int = 1
    contradicted: int = 0
    status: CandidateStatus = "open"
    memory_ids: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    version: int = 1
    seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """A source of a memory: the turn's uuid, its session, the time, and the turn's role.

    The role `beside` is the other half of the exchange: it adds context and does not state the memory.
    """

    uuid: str
    session_id: str
    at: str
    role: Literal["states", "confirms", "beside"] = "states"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One durable belief with its evidence; `*_until` and `archive_at` count active days of its scope.

    `tell` is a language model's judgement of when to show it: starts, tasks, never, noted (a note is shown instead); ""
    for none.
    """

    id: str
    text: str
    gate: Gate
    category: Category
    type: MemoryType
    tier: Tier
    decay: Decay
    authority: Authority
    origin: str
    confidence: float
    scope: Scope
    project_seq: int
    session_id: str
    created_at: str
    confirmed_at: str
    hot_until: int
    warm_until: int
    archive_at: int
    provenance: tuple[Provenance, ...]
    pinned: bool = False
    version: int = 1
    superseded_by: str = ""
    used_at: str = ""
    is_refuted: bool = False
    is_edited: bool = False
    scene: str = ""
    tell: str = ""
    author: str = ""
    """The colleague who said it (the role on the team's server); "" for what was said here."""
    seq: int = 0

    @property
    def is_personal(self) -> bool:
        """Whether a person said it: the user, or a colleague."""
        return self.authority == "user" or bool(self.author)

    @property
    def times(self) -> int:
        """How many turns state or confirm it."""
        return sum(source.role != "beside" for source in self.provenance)

    @property
    def fresh_at(self) -> str:
        """The time from which its age counts: when it was last said, confirmed or used."""
        return max(self.confirmed_at, self.used_at)

    @property
    def sessions(self) -> frozenset[str]:
        """The sessions in which it was stated or confirmed."""
        return frozenset(source.session_id for source in self.provenance if source.role != "beside")

    @property
    def gives_way(self) -> bool:
        """Whether another memory replaces it, or is shown instead."""
        return bool(self.superseded_by) or (self.tell == "noted" and not self.pinned)

    @property
    def is_alive(self) -> bool:
        """Whether it is current: neither archived nor replaced."""
        return self.tier != "archive" and not self.superseded_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A weighted edge between two memories."""

    from_id: str
    to_id: str
    relationship: str
    weight: float = 1.0
