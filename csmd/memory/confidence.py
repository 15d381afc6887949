"""The arithmetic of confidence, decay, tiers and attention; pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import date

from csmd.knowledge import Memory
from csmd.text import dates
from csmd.text.display import amount, said_by
from csmd.text.similarity import MIN_SURE
from csmd.vocabulary import (
    CATEGORIES,
    DECAY_HORIZON_DAYS,
    MIN_CORRECTION_CONFIDENCE,
    NEVER,
    Attention,
    Category,
    Decay,
    Gate,
    Tier,
)

#: Confidence that one confirmation adds.
CONFIRMATION_STEP = 0.05
#: A memory above this confidence is HOT.
HOT_ABOVE = 0.7
#: A memory above this confidence is WARM.
WARM_ABOVE = 0.3
#: A memory whose confidence has faded below this may be archived.
ARCHIVE_BELOW = 0.1
#: Confidence that the older statement loses by a replacement that is barely sure.
MIN_LOSS = 0.20
#: Confidence that the older statement loses by a certain replacement.
MAX_LOSS = 0.50
#: No replacement lowers a confidence below this.
MIN_REMAINING = 0.05
#: Reason of a question to a person: the replacement is not sure.
DOUBTFUL_REPLACEMENT = "the newer one may replace the older, or be about something else"
#: Reason of a question to a person: the subject was given up. It is stored, and looked up in the store.
SUBJECT_GIVEN_UP = "the newer one gives up what the older one is for, and does not say for what"
#: Most active days for which a daily memory is HOT.
MAX_DAILY_HOT_DAYS = 30
#: A memory above this confidence becomes durable, if it was stated in at least MIN_DURABLE_SESSIONS sessions.
DURABLE_ABOVE = 0.9
MIN_DURABLE_SESSIONS = 2
#: Words and marks between the days of a range or an enumeration.
_DAY_SEPARATOR = re.compile(
    r"\s*+(?:[,–—-]|to|until|till|through|and|or)?+\s*+(?:(?:on|by|the|in) ){0,2}", re.IGNORECASE
)


def clamp(confidence: float, category: Category, gate: Gate) -> float:
    """Limits a confidence to the range of its category and gate."""
    return round(min(CATEGORIES[category].high, max(_lowest(category, gate), confidence)), 4)


def _lowest(category: Category, gate: Gate) -> float:
    return MIN_CORRECTION_CONFIDENCE if gate == "correction" else CATEGORIES[category].low


def confirm(confidence: float, *, pinned: bool) -> float:
    """Returns the confidence after one more confirmation; a pinned memory's stays."""
    return confidence if pinned else round(min(1.0, confidence + CONFIRMATION_STEP), 4)


def lower(confidence: float, by: float) -> float:
    """Returns the confidence after a contradiction, never so low that the memory is archived at once."""
    return round(min(confidence, max(ARCHIVE_BELOW, confidence - by)), 4)


def compute_loss(sure: float) -> float:
    """Returns the confidence that the older statement loses by a replacement that is `sure` (MIN_SURE to 1)."""
    degree = min(1.0, max(0.0, (sure - MIN_SURE) / (1.0 - MIN_SURE)))
    return round(MIN_LOSS + (MAX_LOSS - MIN_LOSS) * degree, 4)


def explain_refusal(*, pinned: bool) -> str:
    """Returns why a person is asked about a memory that stays although a newer one contradicts it."""
    state = "is pinned" if pinned else "was said with more authority, or holds in more places"
    return f"the newer one says otherwise, but the older one {state}"


def count_days_until(confidence: float, floor: float, decay: Decay) -> float:
    """Returns the active days until `c * 3^-(age/horizon)` falls to `floor`."""
    horizon = DECAY_HORIZON_DAYS[decay]
    if math.isinf(horizon):
        return math.inf
    return max(0.0, horizon * math.log(confidence / floor, 3)) if confidence > 0 else 0.0


def has_warm_floor(memory: Memory) -> bool:
    """Whether a memory never falls below WARM: corrections, and preferences that the user stated."""
    stated = memory.authority == "user" and memory.origin != "inferred"
    return memory.gate == "correction" or (stated and memory.category == "preference")


def find_due_day(text: str, *, gate: Gate, at: str) -> str:
    """Returns the day (ISO) for which a promise was made at a time; "" if it names no future day.

    The first future day counts, because a plan may go on about later ones ("we ship on the 10th, the plan of 2031 is
    dropped"); of a range of days ("between the 1st and the 24th", "from May to July") the last.
    """
    if gate != "promissory":
        return ""
    future = [named for named in dates.find_dates(text, at[:10]) if named.day >= at[:10]]
    if not future:
        return ""
    last = min(future, key=lambda named: named.day)
    day = last.day
    for named in future:
        if named.start >= last.end and _DAY_SEPARATOR.fullmatch(text[last.end : named.start]):
            last, day = named, max(day, named.day)
    return day


def count_days_to(day: str, *, on: str) -> int:
    """Returns the days from a time until a day (ISO); 0 for "" and for a past day."""
    return max(0, (date.fromisoformat(day) - date.fromisoformat(on[:10])).days) if day else 0


def set_thresholds(memory: Memory, *, today: int) -> Memory:
    """Returns a memory with the days on which it leaves HOT, WARM and recall; it was last fresh on active day `today`.

    A daily memory is HOT for at most MAX_DAILY_HOT_DAYS. Unless it is superseded, a lasting memory stays WARM for good
    and a promise until its date, because no more active days than calendar days are left.
    """

    def last_day(floor: float, max_days: float = math.inf) -> int:
        days = min(count_days_until(memory.confidence, floor, memory.decay), max_days)
        return NEVER if math.isinf(days) else today + math.floor(days)

    lasts = not memory.superseded_by and has_warm_floor(memory)
    promised = count_days_to(find_due_day(memory.text, gate=memory.gate, at=memory.created_at), on=memory.fresh_at)
    promised_until = 0 if memory.superseded_by else today + promised
    hot_until = last_day(HOT_ABOVE, MAX_DAILY_HOT_DAYS if memory.tier == "daily" else math.inf)
    return replace(
        memory, hot_until=hot_until if memory.confidence > HOT_ABOVE else today - 1,
        warm_until=NEVER if lasts else max(promised_until, last_day(WARM_ABOVE)),
        archive_at=NEVER if lasts else max(promised_until, last_day(ARCHIVE_BELOW)),
    )  # fmt: skip


def classify_attention(*, today: int, hot_until: int, warm_until: int) -> Attention:
    """Returns HOT for a memory that is preloaded, WARM if it is shown on a match, COLD if only a search finds it."""
    if today <= hot_until:
        return "HOT"
    return "WARM" if today <= warm_until else "COLD"


def choose_tier(*, decay: Decay, for_good: bool, sessions: int, confidence: float) -> Tier:
    """Returns the tier of a memory: durable if stated for good, permanent, or sure and stated in two sessions."""
    if decay == "ephemeral":
        return "session"
    is_sure = confidence > DURABLE_ABOVE and sessions >= MIN_DURABLE_SESSIONS
    return "durable" if for_good or is_sure or decay == "permanent" else "daily"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """A reason for a memory's confidence, in words, with its effect (-1 to 1; 0 if it only fixes the confidence)."""

    name: str
    effect: float
    why: str


def explain_confidence(memory: Memory, *, today: int, confirmed_on: int, lowered: float = 0.0) -> tuple[Factor, ...]:
    """Explains a memory's confidence; the effects add up to its faded confidence at `today`.

    `today` and `confirmed_on` are active days of its scope; `lowered` is the confidence that contradictions took.
    """
    confirmations = sum(source.role == "confirms" for source in memory.provenance)
    floor = _lowest(memory.category, memory.gate)
    stated = memory.confidence + lowered
    # Confirmations stop at 1, so what they added is not known exactly; it began within the category's range.
    base = max(min(floor, stated), round(stated - CONFIRMATION_STEP * confirmations, 4))
    range_ = f"a {memory.category} begins with {floor * 100:.0f} to {CATEGORIES[memory.category].high * 100:.0f}"
    days = max(0, today - confirmed_on)
    since = f"{amount(days, 'active day')} since it was last stated or used"
    horizon = DECAY_HORIZON_DAYS[memory.decay]
    faded = round(memory.confidence * 3 ** -(days / horizon) - memory.confidence, 4)
    fading = "permanent: it does not fade"
    if memory.decay != "permanent":
        fading = f"{since}; to a third in {amount(round(horizon), 'active day')}"
    raised = round(fade(memory, days=days) - memory.confidence - faded, 4)
    lasting = f"a {'correction' if memory.gate == 'correction' else 'preference you stated'} is never less than WARM"
    turns = amount(confirmations, "more turn")
    reasons = (
        (True, "base", round(base, 4), f"{said_by(memory.authority)} as {memory.gate}; {range_}"),
        (confirmations, "confirmations", round(stated - base, 4), f"{turns} stated the same"),
        (lowered, "contradictions", -round(lowered, 4), "later statements say otherwise"),
        (True, "decay", faded, fading),
        (raised > 0, "floor", raised, lasting),
        (memory.pinned, "pinning", 0.0, "pinned: only you change its confidence"),
    )  # fmt: skip
    return tuple(Factor(name=name, effect=effect, why=why) for counts, name, effect, why in reasons if counts)


def fade(memory: Memory, *, days: int) -> float:
    """Returns the confidence after some active days: `c * 3^-(days/horizon)`, never below WARM for lasting memories."""
    faded = memory.confidence * 3 ** -(days / DECAY_HORIZON_DAYS[memory.decay])
    lasting = has_warm_floor(memory) and not memory.superseded_by
    return round(max(faded, min(memory.confidence, WARM_ABOVE)) if lasting else faded, 4)
