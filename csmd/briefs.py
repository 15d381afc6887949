"""Search hits, and the briefs that are injected into sessions; no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

from csmd.vocabulary import HitKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One search result; `factors` add up to its score.

    `states` is the memory that a turn states; the hit then has its gate and authority. `superseded_by` is the memory
    that replaced it, `superseded_at` when that was said last. `answers` is the cosine of its vector and the query's.
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
    """One memory in an injection, with its score and the reason."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """The text that a hook injects, "" for none; `cut` counts the notes that did not fit in the budget."""

    text: str
    tokens: int
    items: tuple[BriefItem, ...]
    degraded: tuple[str, ...] = ()
    cut: int = 0
