"""Confidence, decay, tiers, attention and scope: arithmetic."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date

from csmd.model import CATEGORIES, DECAY_HORIZON_DAYS, NEVER, Attention, Category, Decay, Gate, Memory, Scope, Tier
from csmd.text import tokens
from csmd.text.display import amount

CONFIRMATION_STEP = 0.05
RECENCY_MOST = 0.10
HOT_ABOVE = 0.7
WARM_ABOVE = 0.3
ARCHIVE_BELOW = 0.1
#: Active days after which what is only daily is recalled no more (seed 001).
DAILY_DAYS = 30
#: What a memory must pass to stay for good: sureness, and in how many sessions it was said (seed 001).
DURABLE_ABOVE, DURABLE_SESSIONS = 0.9, 2
#: Something only one repository has: a path, a file name, a CamelCase or snake_case identifier, a flag, code.
_SPECIFIC = re.compile(
    r"`[^`]+`|(?:^|\s)[~.]?/[\w.-]+|\w-*+/[\w./-]|\w-*+\.(?:py|go|ts|tsx|js|rs|md|ya?ml|json|toml|sh|sql|java|rb|c|h|cpp)\b"
    r"|\b[a-z]++_[a-z_]++\b|\b[a-z]++[A-Z]\w|\b[A-Z][a-z]++[A-Z]|(?:^|\s)--?[a-z][\w-]+"
)
#: "now" beside what somebody likes says that it was otherwise before, and points at nothing.
_NOW = re.compile(r"(?<=\bI )now (?=prefer\b|like\b)|(?<=\w),? now(?=[.!]?$)", re.IGNORECASE)
_ALL_OVER = re.compile(
    r"\b(?:in|for|across) (?:all|every|any) (?:of )?(?:my |our )?(?:other )?(?:project|repo|repositor|session)\w*",
    re.IGNORECASE,
)
#: What stands between days that are named in a row.
_ROW = re.compile(r"\s*+(?:[,–—-]|to|until|till|through|and|or)?+\s*+(?:(?:on|by|the|in) ){0,2}", re.IGNORECASE)
#: A part of one project, named or not: "the gull module", "our billing service".
_PART = re.compile(
    r"\b(?:the|our|my|this|that) (?:[\w.-]++ ){0,3}(?:modul|packag|servic|repo|repositor|project|app|applicat|component|librar|crate|plugin"
    r"|codebase|backend|frontend|server|client|daemon|cli|api|sdk|screen|page|dashboard|pipeline|table|database|schema|branch|folder"
    r"|director|script|class|struct|handler|endpoint|command|feature|product|website|site|workspace|monorepo)(?:s|e|es|y|ies|ion|ions)?\b"
    r"|\w-*+ (?:module|package|service|repo|component|crate|plugin|codebase)\b",
    re.IGNORECASE,
)
#: Where a rule that holds everywhere may say that it holds: kinds of work and of text, and names that no project owns.
EVERYWHERE = frozenset(
    """all any each every general my code tests test commits commit messages message prs pr pull reviews review docs
    documentation comments comment diffs names naming functions classes methods files modules makefiles scripts loops
    errors logs imports types variables strings answers replies english german french spanish italian dutch portuguese
    japanese chinese python go golang rust java javascript typescript kotlin swift ruby php perl scala haskell elixir
    erlang lua julia sql bash shell zsh html css json yaml toml xml markdown latex c cpp git github gitlab vim emacs
    linux macos windows docker kubernetes react vue angular node npm a an the one two three most new production short
    small plain advance order place favor favour imperative""".split()
)
_WHERE = re.compile(r"\b(?:in|inside|within|for|of|on) (?:(?:the|our|my|a|an) )?([a-z][\w+#-]*)", re.IGNORECASE)
#: A name in the middle of a sentence.
_NAMED = re.compile(r"(?<=[\w,;)] )(?!I\b)([A-Z][\w+#-]*)")
#: Words that point at something near at hand.
_POINTS_AT = re.compile(
    r"\b(?:this|that|these|those|it|here|there|we|our|us|the (?:same|above|other|first|second)|undo|revert|again|now)\b"
    r"|\byou(?:['’](?:ve|re)| have| are| did| \w+ed)\b",
    re.IGNORECASE,
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


def lowered(confidence: float, by: float) -> float:
    """The confidence after something spoke against it; what is left stays above what is archived at once."""
    return round(min(confidence, max(ARCHIVE_BELOW, confidence - by)), 4)


def days_until(confidence: float, floor: float, decay: Decay) -> float:
    """Active days until `c * 3^-(age/horizon)` falls to `floor`."""
    horizon = DECAY_HORIZON_DAYS[decay]
    if math.isinf(horizon):
        return math.inf
    return max(0.0, horizon * math.log(confidence / floor, 3)) if confidence > 0 else 0.0


def is_lasting(gate: Gate, category: Category, *, stated: bool) -> bool:
    """Whether a memory never falls below WARM: corrections, and preferences that the user stated."""
    return gate == "correction" or (stated and category == "preference")


def due(said: str, *, gate: Gate, at: str) -> str:
    """The day (ISO) for which a promise is made that was said at a time; "" for one that is without a date, or past it.

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
    """Days until a day (ISO), seen from a time; 0 for "" and for what is past."""
    return max(0, (date.fromisoformat(day) - date.fromisoformat(on[:10])).days) if day else 0


def thresholds(
    confidence: float,
    *,
    decay: Decay,
    gate: Gate,
    category: Category,
    today: int,
    stated: bool,
    tier: Tier = "durable",
    superseded: bool = False,
    promised: int = 0,
) -> Thresholds:
    """When a memory confirmed or used on the active day `today` cools; what is daily is HOT 30 days at most.

    What lasts stays WARM, while nothing has superseded it, and what is `promised` for a date until then: so many days
    are left, and no more active ones.
    """

    def day(floor: float, most: float = math.inf) -> int:
        days = min(days_until(confidence, floor, decay), most)
        return NEVER if math.isinf(days) else today + math.floor(days)

    lasting = not superseded and is_lasting(gate, category, stated=stated)
    promise = 0 if superseded else today + promised
    return Thresholds(
        hot_until=day(HOT_ABOVE, DAILY_DAYS if tier == "daily" else math.inf) if confidence > HOT_ABOVE else today - 1,
        warm_until=NEVER if lasting else max(promise, day(WARM_ABOVE)),
        archive_at=NEVER if lasting else max(promise, day(ARCHIVE_BELOW)),
    )


def attention(*, today: int, hot_until: int, warm_until: int) -> Attention:
    """HOT is preloaded, WARM comes on a match, COLD on explicit search only."""
    if today <= hot_until:
        return "HOT"
    return "WARM" if today <= warm_until else "COLD"


def scope(said: str, *, gate: Gate, about_speaker: bool, project_name: str) -> Scope:
    """Where a memory holds: in the project it was said in, unless it speaks of everything.

    Only how somebody works (behavioral) and what they corrected can hold elsewhere, and only when the words say so:
    they tell of the speaker (classifier), or of all projects; and nothing in them points at a place: no path, identifier, name of the project or of a part of it ("in the gull module", "in gull"), "this" or
    "we"; and nothing that may be a name and is none that everybody shares. What leaks into other projects does more
    harm than what is said twice.
    """
    plain, all_over = _ALL_OVER.subn(" ", said)
    plain = _NOW.sub("", plain)
    if gate not in ("behavioral", "correction") or not (all_over or about_speaker):
        return "project"
    named = _WHERE.findall(plain) + _NAMED.findall(plain)
    if is_of_a_place(plain, project_name=project_name) or any(name.lower() not in EVERYWHERE for name in named):
        return "project"
    return "global" if gate == "correction" else "user"


def is_of_a_place(said: str, *, project_name: str) -> bool:
    """Whether something in a text points at one project, at a part of it, or at what is near at hand."""
    if any(pattern.search(said) for pattern in (_SPECIFIC, _POINTS_AT, _PART)):
        return True
    parts = re.findall(r"[a-z0-9]+", project_name.lower())
    words = re.findall(r"[a-z0-9]+", said.lower())
    whole = len(project_name) > 2 and any(words[at : at + len(parts)] == parts for at in range(len(words)))
    return whole or "".join(parts) in {word for word in words if len(word) > 2}


def tier(*, decay: Decay, for_good: bool, sessions: int, confidence: float) -> Tier:
    """How long a memory is put forward: durable is what was pinned or stated for good, or is sure and said in two sessions."""
    if decay == "ephemeral":
        return "session"
    sure = confidence > DURABLE_ABOVE and sessions >= DURABLE_SESSIONS
    return "durable" if for_good or sure or decay == "permanent" else "daily"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One reason why a memory is as sure as it is: by how much (0-1; 0 for what only holds it), and why in words."""

    name: str
    effect: float
    why: str


def factors(
    memory: Memory, *, today: int, confirmed_on: int, recency: float = 0.0, lowered: float = 0.0
) -> tuple[Factor, ...]:
    """What makes a memory as sure as it is now; the effects add up to its strength at `today`.

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
    found = [
        Factor(name="base", effect=round(base, 4), why=f"said by the {memory.authority} as {memory.gate}; {range_}")
    ]
    if again:
        found.append(
            Factor(
                name="confirmations", effect=round(told - base, 4), why=f"{amount(again, 'more turn')} told the same"
            )
        )
    if lowered:
        found.append(Factor(name="contradictions", effect=-round(lowered, 4), why="later statements say otherwise"))
    days = max(0, today - confirmed_on)
    now = strength(memory, days=days)
    since = f"{amount(days, 'active day')} since it was last told or used"
    if memory.decay == "permanent":
        found.append(Factor(name="decay", effect=0.0, why="permanent: it does not fade"))
    else:
        horizon = amount(round(DECAY_HORIZON_DAYS[memory.decay]), "active day")
        faded = round(memory.confidence * 3 ** -(days / DECAY_HORIZON_DAYS[memory.decay]) - memory.confidence, 4)
        found.append(Factor(name="decay", effect=faded, why=f"{since}; to a third in {horizon}"))
        if now > round(memory.confidence + faded, 4):
            lasting = (
                f"a {'correction' if memory.gate == 'correction' else 'preference you stated'} is never less than WARM"
            )
            found.append(Factor(name="floor", effect=round(now - memory.confidence - faded, 4), why=lasting))
    if memory.pinned:
        found.append(Factor(name="pinning", effect=0.0, why="pinned: nothing but you changes how sure it is"))
    if recency > 0:
        found.append(
            Factor(
                name="recency", effect=round(RECENCY_MOST * recency, 4), why="newer than others; counts in ranking only"
            )
        )
    return tuple(found)


def strength(memory: Memory, *, days: int) -> float:
    """The confidence that is left after so many active days: `c * 3^-(days/horizon)`, lasting ones never below WARM."""
    faded = memory.confidence * 3 ** -(days / DECAY_HORIZON_DAYS[memory.decay])
    lasting = is_lasting(memory.gate, memory.category, stated=memory.authority == "user") and not memory.superseded_by
    return round(max(faded, min(memory.confidence, WARM_ABOVE)) if lasting else faded, 4)
