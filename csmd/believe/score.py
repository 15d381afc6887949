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
    r"\bI (?:(?:always|never|usually|generally|really|strongly|personally) )?(?:prefer|like|love|hate|dislike|don['’]t like|avoid)\b"
    r"|\bI['’]?d (?:rather|prefer)\b|\bmy (?:personal )?(?:preference|style|habit)\b"
    r"|\bI (?:always|never|usually|generally) (?!said|meant|told|wrote|thought|did|got|saw|\w+ed\b)\w+"
    r"|\b(?:everywhere|globally|in general|wherever I work)\b",
    re.IGNORECASE,
)
_ALL_OVER = re.compile(
    r"\b(?:in|for|across) (?:all|every|any) (?:of )?(?:my |our )?(?:other )?(?:project|repo|repositor|session)\w*",
    re.IGNORECASE,
)
#: A part of one project, named or not: "the gull module", "our billing service".
_PART = re.compile(
    r"\b(?:the|our|my|this|that) (?:[\w.-]+ ){0,3}(?:modul|packag|servic|repo|repositor|project|app|applicat|component|librar|crate|plugin"
    r"|codebase|backend|frontend|server|client|daemon|cli|api|sdk|screen|page|dashboard|pipeline|table|database|schema|branch|folder"
    r"|director|script|class|struct|handler|endpoint|command|feature|product|website|site|workspace|monorepo)(?:s|e|es|y|ies|ion|ions)?\b"
    r"|\b[\w-]+ (?:module|package|service|repo|component|crate|plugin|codebase)\b",
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


def days_until(confidence: float, floor: float, decay: Decay) -> float:
    """Active days until `c * 3^-(age/horizon)` falls to `floor`."""
    horizon = DECAY_HORIZON_DAYS[decay]
    if math.isinf(horizon):
        return math.inf
    return max(0.0, horizon * math.log(confidence / floor, 3)) if confidence > 0 else 0.0


def thresholds(
    confidence: float, *, decay: Decay, gate: Gate, category: Category, today: int, stated: bool
) -> Thresholds:
    """When a memory confirmed on the active day `today` cools; corrections and stated preferences stay WARM."""

    def day(floor: float) -> int:
        days = days_until(confidence, floor, decay)
        return NEVER if math.isinf(days) else today + math.floor(days)

    lasting = gate == "correction" or (stated and category == "preference")
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
    the words say so ("I prefer", "everywhere") and nothing in them points at a place: no path,
    identifier, name of the project or of a part of it ("in the gull module", "in gull"), "this" or
    "we". What leaks into other projects does more harm than what is said twice.
    """
    said, all_over = _ALL_OVER.subn(" ", text)
    if gate not in ("behavioral", "correction") or not (all_over or _GENERAL.search(said)):
        return "project"
    if _SPECIFIC.search(said) or _POINTS_AT.search(said) or _PART.search(said) or _names(said, project_name):
        return "project"
    return "user" if gate == "behavioral" else "global"


def _names(text: str, project_name: str) -> bool:
    """Whether a text names its project, or anything that may be a name and is none that everybody shares."""
    parts = re.findall(r"[a-z0-9]+", project_name.lower())
    said = re.findall(r"[a-z0-9]+", text.lower())
    whole = len(project_name) > 2 and any(said[at : at + len(parts)] == parts for at in range(len(said)))
    if whole or "".join(parts) in {word for word in said if len(word) > 2}:
        return True
    named = _WHERE.findall(text) + _NAMED.findall(text)
    return any(name.lower() not in EVERYWHERE for name in named)


def tier(*, decay: Decay, explicit: bool, confirmations: int, confidence: float) -> Tier:
    """Where a memory lives: explicit or twice confirmed ones are durable, the rest is preloaded while it is hot."""
    if explicit or decay == "permanent" or (confidence > 0.9 and confirmations >= 2):
        return "durable"
    return "session" if decay == "ephemeral" else "daily" if decay == "session" else "durable"
