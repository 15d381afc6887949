"""Confidence, decay, scope and attention as arithmetic: pure, with the tables of the plan.

Sources: seed 004 (base 60-95, +5 a mention), seed 003 (ranges by category), design section 4.
Ages are counted in active days of the memory's scope, so that a project left for two months
is not forgotten; the thresholds are computed at a write and stored, no timer rewrites rows.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from csmd.model import CATEGORIES, DECAY_HORIZON_DAYS, NEVER, Attention, Category, Decay, Gate, Scope, Tier

CONFIRMATION_STEP = 0.05
HOT_ABOVE = 0.7
WARM_ABOVE = 0.3
ARCHIVE_BELOW = 0.1
#: Something only one repository has: a path, a file name, a CamelCase or snake_case identifier, a flag, code.
_SPECIFIC = re.compile(
    r"`[^`]+`|(?:^|\s)[~.]?/[\w.-]+|\b[\w-]+/[\w./-]+|\b[\w-]+\.(?:py|go|ts|tsx|js|rs|md|ya?ml|json|toml|sh|sql|java|rb|c|h|cpp)\b"
    r"|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w*|(?:^|\s)--?[a-z][\w-]+"
)
#: Words that claim to hold everywhere; "always" alone does not: it is said of this project's tests as well.
_GENERAL = re.compile(
    r"\bI (?:(?:always|never|usually|generally|really|strongly) )?(?:prefer|like|hate|dislike|don't like)\b"
    r"|\b(?:everywhere|globally|in general|(?:in|for|across) (?:all|every|any) (?:of )?(?:my |our )?(?:project|repo|repositorie|session)\w*)\b",
    re.IGNORECASE,
)
#: Words that point at something near at hand.
_POINTS_AT = re.compile(
    r"\b(?:this|that|these|those|it|here|there|we|our|us|the (?:same|above|other|first|second))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Active days of the scope at which a memory cools from HOT to WARM, to COLD, and may be archived."""

    hot_until: int
    warm_until: int
    archive_at: int


def clamp(confidence: float, category: Category, gate: Gate) -> float:
    """A confidence inside the category's range; a correction may use the whole range of its clarity."""
    rule = CATEGORIES[category]
    low = 0.6 if gate == "correction" else rule.low
    return round(min(rule.high, max(low, confidence)), 4)


def confirm(confidence: float, *, pinned: bool) -> float:
    """The confidence after one more turn says the same; a pinned memory stays as it is."""
    return confidence if pinned else round(min(1.0, confidence + CONFIRMATION_STEP), 4)


def days_until(confidence: float, floor: float, decay: Decay) -> float:
    """Active days until `c * 3^-(age/horizon)` falls to `floor`."""
    horizon = DECAY_HORIZON_DAYS[decay]
    if math.isinf(horizon):
        return math.inf
    return max(0.0, horizon * math.log(confidence / floor, 3)) if confidence > 0 else 0.0


def thresholds(
    confidence: float,
    *,
    decay: Decay,
    gate: Gate,
    category: Category,
    today: int,
    stated: bool,
    superseded: bool = False,
) -> Thresholds:
    """When a memory confirmed on the active day `today` cools; corrections and stated preferences stay WARM.

    That is, while nothing has superseded them.
    """

    def day(floor: float) -> int:
        days = days_until(confidence, floor, decay)
        return NEVER if math.isinf(days) else today + math.floor(days)

    lasting = not superseded and (gate == "correction" or (stated and category == "preference"))
    return Thresholds(
        hot_until=day(HOT_ABOVE) if confidence > HOT_ABOVE else today - 1,
        warm_until=NEVER if lasting else day(WARM_ABOVE),
        archive_at=NEVER if lasting else day(ARCHIVE_BELOW),
    )


def attention(*, today: int, hot_until: int, warm_until: int) -> Attention:
    """HOT is preloaded, WARM comes on a match, COLD on explicit search only."""
    if today <= hot_until:
        return "HOT"
    return "WARM" if today <= warm_until else "COLD"


def scope(text: str, *, gate: Gate, project_name: str) -> Scope:
    """Where a memory holds: in the project it was said in, unless it speaks of everything.

    Only how somebody works (behavioral) and what they corrected can hold elsewhere, and only when
    the words say so ("I prefer", "always", "from now on") and nothing in them points at a place:
    no path, identifier, project name, "this" or "we". What leaks into other projects does more
    harm than what is said twice.
    """
    if gate not in ("behavioral", "correction") or not _GENERAL.search(text):
        return "project"
    named = len(project_name) > 2 and re.search(rf"\b{re.escape(project_name)}\b", text, re.IGNORECASE)
    if named or _SPECIFIC.search(text) or _POINTS_AT.search(text):
        return "project"
    return "user" if gate == "behavioral" else "global"


def tier(*, decay: Decay, explicit: bool, confirmations: int, confidence: float) -> Tier:
    """Where a memory lives: explicit or twice confirmed ones are durable, the rest is preloaded while it is hot."""
    if explicit or decay == "permanent" or (confidence > 0.9 and confirmations >= 2):
        return "durable"
    return "session" if decay == "ephemeral" else "daily" if decay == "session" else "durable"
