"""The values that flow through csmd; no I/O.

Times are UTC ISO-8601 text with milliseconds and a Z. Confidence is 0.0-1.0 (0-100 only at
the rim). Every Memory has at least one Provenance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from csmd.hook_events import EventName
from csmd.vocabulary import (
    Authority,
    CandidateKind,
    CandidateStatus,
    Category,
    Decay,
    Form,
    Gate,
    HitKind,
    MemoryType,
    PacketKind,
    Scope,
    Stance,
    Tier,
    TurnKind,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A tool that failed: its name, the shell line it was given ("" for none) and its output, both redacted."""

    tool: str
    command: str
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One hook event, reduced from a host's payload; `text` is the prompt or the final message, already redacted.

    `payload` is the digest of the host's bytes: two commands that report one event send the same. `failure` is only
    looked up: the transcript holds it.
    """

    id: str
    host: str
    name: EventName
    session_id: str
    at: str
    cwd: str = ""
    transcript_path: str = ""
    text: str = ""
    source: str = ""
    agent_id: str = ""
    by_user: bool = True
    payload: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One entry of a conversation; `uuid` is the transcript line's, or `hook:<event id>` while provisional.

    `form` is how the transcript tells it: a line of its own, a prompt put into the queue (known by its session, time
    and words), or a queued prompt that was taken up in the turn under way. `answers` is the uuid of the tool call in
    place of whose result the user spoke; "" for what is no such answer; `is_pick` for answers to questions that the
    assistant asked through its tool. `is_prompt_line` is set where a line holds a prompt and nothing else. `writes` are
    the file names of the transcripts that a tool call writes. `context` is how many tokens the model was given for the
    message, `mode` how much the assistant may do by itself from a prompt on, in its host's words; 0 and "" if unknown.
    """

    uuid: str
    session_id: str
    kind: TurnKind
    text: str
    at: str
    agent_id: str = ""
    cwd: str = ""
    parent_uuid: str = ""
    message_id: str = ""
    tool_name: str = ""
    tool_id: str = ""
    model: str = ""
    version: str = ""
    tokens: int = 0
    context: int = 0
    form: Form = "line"
    answers: str = ""
    is_pick: bool = False
    is_prompt_line: bool = False
    writes: tuple[str, ...] = ()
    mode: str = ""

    @property
    def stream(self) -> str:
        """The conversation this turn belongs to: a sub-agent's is kept apart from its session's."""
        return f"{self.session_id}/{self.agent_id}" if self.agent_id else self.session_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """A turn as read back from the store, with its row key and its place in the stream."""

    seq: int
    uuid: str
    session_id: str
    project_seq: int
    kind: TurnKind
    text: str
    at: str
    ordinal: int
    agent_id: str = ""
    tool_name: str = ""
    tool_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidTurn:
    """A stored turn with all that its transcript's line needs to be written again.

    `dropped` bytes of it are gone; `rewound` is 1 for what a rewind left behind. `tokens` are the host's, `counted` csmd's.
    """

    uuid: str
    kind: TurnKind
    text: str
    at: str
    parent_uuid: str = ""
    message_id: str = ""
    tool_name: str = ""
    tool_id: str = ""
    tokens: int = 0
    dropped: int = 0
    rewound: int = 0
    counted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A place that memories belong to; `key` is stable across its worktrees, `root` is for people.

    `place` is the directory it was asked for, `data` git's common directory; `remote` and `fingerprint` are "" until
    they are looked up. `gone`: nothing is at its root; `worktree_of`: whose worktree it was, as far as its path shows.
    """

    key: str
    root: str
    name: str
    kind: Literal["git", "submodule", "path"]
    place: str = field(default="", compare=False)
    data: str = field(default="", compare=False)
    remote: str = field(default="", compare=False)
    fingerprint: str = field(default="", compare=False)
    gone: bool = field(default=False, compare=False)
    worktree_of: Project | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence of a conversation that is worth keeping, as distilled; `reasons` name the rules that chose it.

    `also` names further turns, at most three, that say the same or are its other half.
    """

    text: str
    gate: Gate
    category: Category
    confidence: float
    authority: Authority
    reasons: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A turn as packets are made of it: its words bounded, `agent` whether it is a sub-agent's."""

    uuid: str
    session_id: str
    project_seq: int
    kind: TurnKind
    text: str
    at: str
    ordinal: int
    tool_name: str = ""
    tool_id: str = ""
    agent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """How a session goes at one moment; figures of 0 to 1, None for unknown, `stance` how the user's latest words stand to the work."""

    frustration: float | None
    energy: float | None
    stance: Stance
    urgency: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A structured observation of one turn; `subject` is the same word for the same thing in every session.

    `outcome` is ok or failed of what was run, asked or against of what a user said; `words` is how long the turn is.
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
    """One turn that speaks for (or, `against`, counts against) a candidate."""

    uuid: str
    session_id: str
    at: str
    against: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Something that may become a memory, or be done to memories, and waits for evidence or for a person (seed 000).

    `source` is the rule that put it there, `fingerprint` what makes two of them the same one in their project.
    `reinforcement` counts how often it was seen, `contradicted` what was said against it; `memory_ids` are those that
    it is about. `text` is a sentence that people can judge, `reason` says why it is here.
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
    """Where a memory was said: the turn's uuid, its session, when, and in which role.

    The role `beside` is the other half of the exchange it was said in: it adds context, and states nothing by itself.
    """

    uuid: str
    session_id: str
    at: str
    role: Literal["states", "confirms", "beside"] = "states"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One durable belief with its evidence; `*_until` and `archive_at` count active days of its scope.

    `tell` is what a language model judged it worth: starts, tasks, never, noted (a note is told in its place); "" for no
    judgement.
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
        """From when its age counts: the last time that it was said, confirmed or made use of."""
        return max(self.confirmed_at, self.used_at)

    @property
    def sessions(self) -> frozenset[str]:
        """The sessions in which it was stated or confirmed."""
        return frozenset(source.session_id for source in self.provenance if source.role != "beside")

    @property
    def gives_way(self) -> bool:
        """Whether another memory holds, or is told, in its place."""
        return bool(self.superseded_by) or (self.tell == "noted" and not self.pinned)

    @property
    def is_alive(self) -> bool:
        """Whether it is still put forward by itself."""
        return self.tier != "archive" and not self.superseded_by


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A weighted edge between two memories (seed 003's RELATES_TO)."""

    from_id: str
    to_id: str
    relationship: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A turn as it is quoted to another session, or the part of it that is."""

    uuid: str
    kind: TurnKind
    text: str
    at: str
    session_id: str
    project_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One search result, best first in its list; `factors` are the parts that its score is the sum of.

    `states` is the memory that a turn states, whose gate and authority it then has. `superseded_by` is the memory that holds in its place, `superseded_at` when that was said last; `answers` its cosine.
    """

    id: str
    kind: HitKind
    text: str
    score: float
    project: str
    session_id: str
    source_uuids: tuple[str, ...]
    at: str
    confidence: float = 0.0
    gate: str = ""
    authority: str = ""
    author: str = ""
    superseded_by: str = ""
    superseded_at: str = ""
    refuted: bool = False
    edited: bool = False
    scene: str = ""
    states: str = ""
    answers: float = 0.0
    factors: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefItem:
    """One memory inside an injection: its score and why it is there."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What is put before the assistant: `text`, as the hook prints it, "" for nothing; `cut` notes found no room in its budget."""

    text: str
    tokens: int
    items: tuple[BriefItem, ...]
    degraded: tuple[str, ...] = ()
    cut: int = 0


class CommandFailure(NamedTuple):
    """A command's failure, as the turn with this uuid shows it."""

    fingerprint: str
    command: str
    message: str
    uuid: str
    at: str
    ordinal: int


class TranscriptTurn(NamedTuple):
    """A turn as a session's transcript holds it; `ordinal` is its place in the session."""

    seq: int
    uuid: str
    kind: str
    text: str
    at: str
    ordinal: int
    tool_name: str
    tool_id: str


class StatedMemory(NamedTuple):
    """A memory as a turn of a session states it."""

    memory_seq: int
    memory_id: str
    text: str
    category: str
    authority: str
    uuid: str
    ordinal: int


class StatedInTurn(NamedTuple):
    """A memory of a project as the first turn of its own session states it; `turn` is what that turn says."""

    memory_seq: int
    text: str
    authority: str
    uuid: str
    ordinal: int
    turn: str
    gate: str


class SessionPrompt(NamedTuple):
    """What an assistant answers to at an ordinal of a session; `text` is "" if no user typed it."""

    uuid: str
    ordinal: int
    text: str
