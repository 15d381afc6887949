"""Confidence, decay, tiers and attention: arithmetic."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import date

from csmd.text import tokens
from csmd.text.display import amount, said_by
from csmd.text.similarity import SURE
from csmd.values import Memory
from csmd.vocabulary import CATEGORIES, DECAY_HORIZON_DAYS, NEVER, Attention, Category, Decay, Gate, Tier

CONFIRMATION_STEP = 0.05
RECENCY_MOST = 0.10
HOT_ABOVE = 0.7
WARM_ABOVE = 0.3
ARCHIVE_BELOW = 0.1
#: What a replacement takes from the older statement's confidence, at least and at most, and what is left in any case.
LEAST_LOWERED, MOST_LOWERED, LEAST_LEFT = 0.20, 0.50, 0.05
#: Why a person is asked about a possible replacement.
UNSURE = "the newer one may replace the older, or be about something else"
LEFT = "the newer one gives up what the older one is for, and does not say for what"
#: Active days after which what is only daily is recalled no more (seed 001).
DAILY_DAYS = 30
#: What a memory must pass to stay for good: sureness, and in how many sessions it was said (seed 001).
DURABLE_ABOVE, DURABLE_SESSIONS = 0.9, 2
#: What stands between days that are named in a row.
_ROW = re.compile(r"\s*+(?:[,–—-]|to|until|till|through|and|or)?+\s*+(?:(?:on|by|the|in) ){0,2}", re.IGNORECASE)


def clamp(confidence: float, category: Category, gate: Gate) -> float:
    """Limits a confidence to the category's range; a correction's may be as low as 0.6."""
    rule = CATEGORIES[category]
    low = 0.6 if gate == "correction" else rule.low
    return round(min(rule.high, max(low, confidence)), 4)


def confirm(confidence: float, *, pinned: bool) -> float:
    """The confidence after one more confirmation; a pinned memory's stays."""
    return confidence if pinned else round(min(1.0, confidence + CONFIRMATION_STEP), 4)


def lowered(confidence: float, by: float) -> float:
    """The confidence after a contradiction, never so low that the memory is archived at once."""
    return round(min(confidence, max(ARCHIVE_BELOW, confidence - by)), 4)


def lowered_by(sure: float) -> float:
    """What a replacement that is `sure` (SURE to 1) takes from the older statement's confidence (design section 4)."""
    return round(LEAST_LOWERED + (MOST_LOWERED - LEAST_LOWERED) * min(1.0, max(0.0, (sure - SURE) / (1.0 - SURE))), 4)


def why_not_replaced(*, pinned: bool) -> str:
    """Why a person is asked about a memory that stays although a newer one contradicts it."""
    why = "is pinned" if pinned else "was said with more authority, or holds in more places"
    return f"the newer one says otherwise, but the older one {why}"


def days_until(confidence: float, floor: float, decay: Decay) -> float:
    """Active days until `c * 3^-(age/horizon)` falls to `floor`."""
    horizon = DECAY_HORIZON_DAYS[decay]
    if math.isinf(horizon):
        return math.inf
    return max(0.0, horizon * math.log(confidence / floor, 3)) if confidence > 0 else 0.0


def has_warm_floor(memory: Memory) -> bool:
    """Whether a memory never falls below WARM: corrections, and preferences that the user stated."""
    stated = memory.authority == "user" and memory.origin != "inferred"
    return memory.gate == "correction" or (stated and memory.category == "preference")


def due(said: str, *, gate: Gate, at: str) -> str:
    """The day (ISO) that a promise made at a time is for; "" if it names no day to come.

    The first that is still to come: a plan is told with what becomes of it, and that names later days ("we ship on the
    10th, the plan of 2031 is dropped"). Of days in a row ("between the 1st and the 24th", "from May to July") the last.
    """
    if gate != "promissory":
        return ""
    named = [one for one in tokens.date_terms(said, at[:10]) if one[2] >= at[:10]]
    if not named:
        return ""
    _, end, day = min(named, key=lambda one: one[2])
    for start, after, other in named:
        if start >= end and _ROW.fullmatch(said[end:start]):
            end, day = after, max(day, other)
    return day


def days_to(day: str, *, on: str) -> int:
    """Days from a time until a day (ISO); 0 for "" and for a past day."""
    return max(0, (date.fromisoformat(day) - date.fromisoformat(on[:10])).days) if day else 0


def aged(memory: Memory, *, today: int) -> Memory:
    """The memory with the active days until which it is HOT, WARM and kept, if it was confirmed or used on the day `today`.

    What is daily is HOT 30 days at most. What lasts stays WARM, while nothing has superseded it, and so does what is
    promised for a date: at most as many active days are left as there are days until then.
    """

    def day(floor: float, most: float = math.inf) -> int:
        days = min(days_until(memory.confidence, floor, memory.decay), most)
        return NEVER if math.isinf(days) else today + math.floor(days)

    lasts = not memory.superseded_by and has_warm_floor(memory)
    promised = days_to(due(memory.text, gate=memory.gate, at=memory.created_at), on=memory.fresh_at)
    until = 0 if memory.superseded_by else today + promised
    hot = day(HOT_ABOVE, DAILY_DAYS if memory.tier == "daily" else math.inf)
    return replace(
        memory, hot_until=hot if memory.confidence > HOT_ABOVE else today - 1,
        warm_until=NEVER if lasts else max(until, day(WARM_ABOVE)),
        archive_at=NEVER if lasts else max(until, day(ARCHIVE_BELOW)),
    )  # fmt: skip


def attention(*, today: int, hot_until: int, warm_until: int) -> Attention:
    """HOT is preloaded, WARM comes on a match, COLD on explicit search only."""
    if today <= hot_until:
        return "HOT"
    return "WARM" if today <= warm_until else "COLD"


def tier(*, decay: Decay, for_good: bool, sessions: int, confidence: float) -> Tier:
    """The tier of a memory: durable if stated for good, permanent, or sure and said in two sessions."""
    if decay == "ephemeral":
        return "session"
    sure = confidence > DURABLE_ABOVE and sessions >= DURABLE_SESSIONS
    return "durable" if for_good or sure or decay == "permanent" else "daily"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One reason for a memory's confidence: its effect (0-1; 0 if it only holds it), and why in words."""

    name: str
    effect: float
    why: str


def factors(
    memory: Memory, *, today: int, confirmed_on: int, recency: float = 0.0, lowered: float = 0.0
) -> tuple[Factor, ...]:
    """Explains a memory's confidence; the effects add up to its strength at `today`.

    `today` and `confirmed_on` are active days of its scope; `recency` is 0 for the oldest and 1 for the newest
    of those it is ranked with, `lowered` how much contradictions took away. The strength is `strength`, plus what
    recency adds in ranking.
    """
    rule = CATEGORIES[memory.category]
    again = sum(source.role == "confirms" for source in memory.provenance)
    floor = 0.6 if memory.gate == "correction" else rule.low
    told = memory.confidence + lowered
    # Confirmations end at 1: what they added there is not known, but it began within the category's range.
    base = max(min(floor, told), round(told - CONFIRMATION_STEP * again, 4))
    range_ = f"a {memory.category} begins with {floor * 100:.0f} to {rule.high * 100:.0f}"
    days = max(0, today - confirmed_on)
    since = f"{amount(days, 'active day')} since it was last told or used"
    horizon = DECAY_HORIZON_DAYS[memory.decay]
    faded = round(memory.confidence * 3 ** -(days / horizon) - memory.confidence, 4)
    fades = "permanent: it does not fade"
    if memory.decay != "permanent":
        fades = f"{since}; to a third in {amount(round(horizon), 'active day')}"
    raised = round(strength(memory, days=days) - memory.confidence - faded, 4)
    lasting = f"a {'correction' if memory.gate == 'correction' else 'preference you stated'} is never less than WARM"
    every = (
        (True, "base", round(base, 4), f"{said_by(memory.authority)} as {memory.gate}; {range_}"),
        (again, "confirmations", round(told - base, 4), f"{amount(again, 'more turn')} told the same"),
        (lowered, "contradictions", -round(lowered, 4), "later statements say otherwise"),
        (True, "decay", faded, fades),
        (raised > 0, "floor", raised, lasting),
        (memory.pinned, "pinning", 0.0, "pinned: nothing but you changes how sure it is"),
        (recency > 0, "recency", round(RECENCY_MOST * recency, 4), "newer than others; counts in ranking only"),
    )
    return tuple(Factor(name=name, effect=effect, why=why) for counts, name, effect, why in every if counts)


def strength(memory: Memory, *, days: int) -> float:
    """The confidence after a number of active days: `c * 3^-(days/horizon)`, never below WARM for lasting memories."""
    faded = memory.confidence * 3 ** -(days / DECAY_HORIZON_DAYS[memory.decay])
    lasting = has_warm_floor(memory) and not memory.superseded_by
    return round(max(faded, min(memory.confidence, WARM_ABOVE)) if lasting else faded, 4)
