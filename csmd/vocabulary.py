"""The allowed words of stored fields, and the rules that follow from them; no I/O.

CATEGORIES holds the rules of each category.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Gate = Literal["behavioral", "relational", "epistemic", "promissory", "correction"]
Category = Literal[
    "preference", "fact", "pattern", "decision", "constraint", "gotcha", "convention", "procedure", "plan", "person"
]
Decay = Literal["ephemeral", "session", "durable", "permanent"]
Tier = Literal["session", "daily", "durable", "archive"]
Authority = Literal["user", "assistant", "external"]
Attention = Literal["HOT", "WARM", "COLD"]
TurnKind = Literal["user", "assistant", "summary", "tool_call", "tool_result", "command", "notification", "relayed"]

Scope = Literal["user", "project", "global"]
MemoryType = Literal[
    "conversation", "workspace", "repo", "preference", "lesson", "episodic",
    "procedural", "concept", "code", "config", "error", "self_continuity",
]  # fmt: skip
MemdirType = Literal["user", "feedback", "project", "reference"]
Source = Literal["hook", "transcript"]
Form = Literal["line", "queued", "absorbed"]
HitKind = Literal["memory", "turn", "session"]
CandidateKind = Literal[
    "belief", "preference", "worldview", "drift_warning", "opinion",
    "duplicate", "near_duplicate", "stale", "missing_embedding", "orphan",
]  # fmt: skip
PacketKind = Literal["tool", "error", "milestone", "session", "order", "scope"]
Stance = Literal["objects", "orders", "approves", "asks", "unknown", "silent"]
#: open waits for more evidence, needs_review for a person; promoted, dropped and done are over.
CandidateStatus = Literal["open", "needs_review", "promoted", "dropped", "done"]

#: A file of this name excludes its directory and everything below it.
OFF_MARK = ".csmd-off"

#: The index of a directory of memories, and how much of it a session is given: lines, UTF-16 units.
INDEX, INDEX_LINES, INDEX_UNITS = "MEMORY.md", 200, 25_000

#: The session of a marker that `csmd doctor` sends ends with its word; its turns say this and nothing else.
PROBE_SESSION = "csmd-probe-"
PROBE_TEXT = "csmd doctor looks for this {event}: {word}"

#: Who asks whether all is quiet -> seconds without a word of any session after which it is, or of the one in question
#: (a stage, a day). When a dream may begin by itself is the user's setting `dream.quiet_min`.
QUIET_S: dict[Literal["dream", "stage", "model", "team", "day"], float] = {
    "dream": 20.0,  # one that is under way slows nobody down
    "stage": 30.0,  # nobody is in the middle of a turn
    "model": 60.0,  # a language model may be asked
    "team": 900.0,  # the team's server is asked less often
    "day": 7200.0,  # the session has ended, unless its host says so sooner
}

#: Kinds of turns that are indexed; tool traffic and slash commands are stored only.
SEARCHABLE: frozenset[str] = frozenset({"user", "assistant", "summary", "relayed"})
#: Kinds of prompts: the user's words, and words of unknown origin in their place.
PROMPTS: frozenset[str] = frozenset({"user", "relayed"})

#: The input and output of tools: trimmed if long, dropped when old.
TOOL_KINDS: frozenset[str] = frozenset({"tool_call", "tool_result"})

#: Rank of an authority; summarising or restating never raises it (design section 2).
AUTHORITY_RANK: dict[Authority, int] = {"external": 0, "assistant": 1, "user": 2}

#: Horizon of each decay class in active days of the memory's scope (design section 4).
DECAY_HORIZON_DAYS: dict[Decay, float] = {"ephemeral": 1.0, "session": 7.0, "durable": 90.0, "permanent": float("inf")}

#: The caller's directory for `csmd web`, which a person starts: it sees behind every wall. It is not a path.
OWNER = "/*"

#: An active day that is never reached: the threshold of memories that do not cool.
NEVER = 2**31 - 1

#: Retrieval priority of a gate; correction comes first (seed 004).
GATE_PRIORITY: dict[Gate, int] = {"correction": 4, "behavioral": 3, "epistemic": 2, "relational": 2, "promissory": 1}


class CategoryRule(NamedTuple):
    """The rules of a category: its usual gate, type, memdir type, decay and confidence range (seeds 003, 004)."""

    gate: Gate
    type: MemoryType
    memdir: MemdirType
    decay: Decay
    low: float
    high: float


#: Least confidence of a new correction, whatever its category.
MIN_CORRECTION_CONFIDENCE = 0.6

CATEGORIES: dict[Category, CategoryRule] = {
    "preference": CategoryRule("behavioral", "preference", "user", "durable", 0.70, 1.00),
    "fact": CategoryRule("epistemic", "repo", "project", "durable", 0.80, 1.00),
    "pattern": CategoryRule("epistemic", "code", "project", "durable", 0.50, 0.80),
    "decision": CategoryRule("epistemic", "concept", "project", "durable", 0.70, 0.90),
    "constraint": CategoryRule("epistemic", "config", "project", "durable", 0.80, 1.00),
    "gotcha": CategoryRule("epistemic", "lesson", "feedback", "durable", 0.60, 0.95),
    "convention": CategoryRule("behavioral", "procedural", "feedback", "durable", 0.70, 0.95),
    "procedure": CategoryRule("behavioral", "procedural", "feedback", "durable", 0.70, 0.95),
    "plan": CategoryRule("promissory", "workspace", "project", "session", 0.60, 0.90),
    "person": CategoryRule("relational", "workspace", "project", "durable", 0.70, 0.95),
}


class ReviewKey(NamedTuple):
    """The key and the name of an answer in the review."""

    key: str
    name: str


#: Answers of the review, in the order shown; the terminal and the viewer share them.
REVIEW_KEYS: dict[str, ReviewKey] = {
    "keep": ReviewKey("y", "keep"), "edit": ReviewKey("e", "edit"), "drop": ReviewKey("d", "drop"),
    "supersede": ReviewKey("s", "replace"),
}  # fmt: skip
REVIEW_LATER, REVIEW_UNDO, REVIEW_QUIT = ReviewKey("n", "later"), ReviewKey("u", "undo"), ReviewKey("q", "quit")
#: The key that answers all pending memories of an import, in the terminal; the viewer has buttons.
REVIEW_ALL = ReviewKey("a", "all of it")
