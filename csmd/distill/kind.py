"""What a chosen sentence is: its gate, its category, and how sure that is; pure.

Policy comes first. A row of SURE that matches decides alone. Else every trait of the sentence speaks for or against
each gate: with what POLICY gives it and with what was learned (`kind_weights`, written by tests/bench/train_kind.py),
and the gate with the highest sum is taken. What assistants say is an account of how things are; only a row of SURE
makes it anything else, and nothing makes it a correction. The category is the first row of CATEGORY that holds. A case that goes wrong is mended in a table, not in code.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from csmd.distill.cues import CHANGES, CUES
from csmd.distill.kind_weights import BIAS, WEIGHTS
from csmd.distill.standing import ASKED, ERRAND, LASTING, ORDER
from csmd.distill.traits import MAX_SENTENCE, traits
from csmd.model import CATEGORIES, Category, Gate
from csmd.patterns import at_first_use

Speaker = Literal["user", "assistant"]
GATES: tuple[Gate, ...] = ("epistemic", "behavioral", "correction", "relational", "promissory")

#: Confidence without any clarity, by gate, and what full clarity adds (design: 0.60-0.95).
CONFIDENCE_BASE: dict[Gate, float] = {
    "epistemic": 0.60, "behavioral": 0.62, "correction": 0.65, "relational": 0.60, "promissory": 0.60,
}  # fmt: skip
CONFIDENCE_SPAN, CONFIDENCE_MOST = 0.30, 0.95
#: What an assistant's own word is worth beside a user's.
CONFIDENCE_OF_SPEAKER = {"user": 0.0, "assistant": -0.05}
SURE_CLARITY, ACCOUNT_CLARITY = 0.95, 0.60
#: How many traits are named as reasons.
MAX_REASONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a sentence is as a memory; `confidence` is 0-1, `reasons` are the rules that said so, the strongest first."""

    gate: Gate
    category: Category
    confidence: float
    reasons: tuple[str, ...]


def _re(pattern: str) -> re.Pattern[str]:
    return at_first_use(pattern, re.IGNORECASE)


_DAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october"
    r"|november|december|spring|summer|autumn|winter)"
)

#: (reason, first letters of those it listens to, gate, pattern): the first that matches decides alone.
# fmt: off
SURE: tuple[tuple[str, str, Gate, re.Pattern[str]], ...] = (
    ("wrong", "u", "correction", _re(
        r"^\W{0,3}(?:(?:no|hmm|well|wait|but|sorry|actually)[,.: ]{1,3}){0,2}(?:that|this|it|you)(?:['’]s| is|['’]re| are)"
        r" (?:\w+ )?(?:wrong|incorrect|mistaken|not (?:\w+ )?(?:correct|right|true)|not how\b)"
        r"|\bnot what i (?:meant|asked|said|wanted)\b")),
    ("actually", "u", "correction", _re(
        r"^\W{0,3}(?:(?:no|hmm|well|wait|but|sorry)[,.: ]{1,3}){0,2}(?:actually|in fact|thinking again|on second thought"
        r"|scratch that)\b")),
    ("why_not", "u", "correction", _re(
        r"^\W{0,3}(?:(?:and|but|so|hmm)[, ]{1,2})?why (?:(?:do|does|did|can|could|should|would|is|are|was|were)n['’]?t|can we not"
        r"|not|are we not|do we not)\b")),
    ("prefer", "u", "behavioral", _re(
        r"\bi (?:really |strongly |much |always |generally |usually )?prefer\b|\bmy preference\b|\bi['’]d rather\b"
        r"(?! not\b)")),
    ("rule", "u", "behavioral", _re(
        r"\bfrom now on\b|\bgoing forward\b|\bas a rule\b|^\W{0,3}(?:please )?(?:always|never) \w+|\bplease (?:always|never)\b"
        r"|\b(?:don['’]t|do not|never) forget to\b|\bremember to\b")),
    ("chosen", "u", "epistemic", _re(
        r"\blet['’]?s (?:just |rather |only )?(?:go with|go for|stick (?:with|to)|switch to)\b"
        r"|\bwe(?:['’]ve| have)? (?:decided|agreed|settled)\b"
        r"|\b(?:we|i)(?:['’]ve| have)? (?:just |now |since |recently )?(?:moved|switched|migrated|replaced|upgraded)\b.{1,120}"
        r"\b(?:to|with|by)\b|^\W{0,3}we (?:use|run|chose|picked|took)\b.{2,80}\bbecause\b|^\W{0,3}we(?:['’]re| are) back (?:on|to|with)\b")),
    ("errand", "u", "epistemic", _re(
        rf"{ASKED}(?!.*{LASTING}){ERRAND} [^.!?]{{3,200}}(?:[.!?:;]|, and) (?:please |also |and )?{ORDER}\b")),
    *(("changed", "u", "epistemic", _re(cue.pattern.pattern)) for cue in CUES if cue.reason in CHANGES),
    # Who somebody is, and what is due: said outright.
    ("called", "u", "relational", _re(
        r"\bcall me (?!back\b|when\b|if\b|out\b|later\b)\w|\bmy (?:name|pronouns|nickname) (?:is|are)\b"
        r"|^\W{0,3}i(?:['’]?m| am) (?-i:[A-Z][a-z]{2,20})(?:[,.!]|$)|^\W{0,3}i(?:['’]m| am) (?:new to|colou?r[- ]?blind|left[- ]handed|deaf|dyslexic|blind|a (?:student|designer|beginner))\b")),
    ("due", "u", "promissory", _re(
        rf"\b(?:deadline|due date|code freeze|release date|go-live)\b.{{0,60}}\b(?:is|are|starts?|ends?)\b|\b(?:is|are) due\b"
        rf"|\b(?:is|are|was|were) (?:planned|scheduled|slated|postponed|promised|announced) (?:for|to|until)\b"
        rf"|\b(?:releases?|launch|beta|demo|talk|audit|exam|defen[cs]e|review|meeting|workshop|milestone|migration|rollout|sprint) (?:\w+ ){{0,3}}(?:is|are|starts?|ends?)"
        rf" (?:on|in|next|at the end of) (?:the )?(?:{_DAY}|\d|week\b|month\b|year\b|sprint\b|quarter\b)"
        rf"|^\W{{0,3}}(?:we|i)(?:['’]ve| have)? promised\b")),
    ("left_open", "a", "promissory", _re(
        r"\bfollow[- ]ups?\b|\bleft (?:open|for (?:later|a|another))\b|\bfuture (?:work|consideration|pr)\b"
        r"|\bin a (?:later|separate|future) (?:pr|change|commit|step)\b|\bremaining work\b|\bfor tomorrow\b"
        r"|\bstill (?:to do|to be done|open)\b|\bdown the (?:line|road)\b")),
    ("rule_told", "a", "behavioral", _re(
        r"\b(?:(?:naming|coding|project|team) conventions?|style guide|lint(?:ing|er)? rule)\b"
        r"|^\W{0,3}(?:always|never) [a-z]+\b|^\W{0,3}use `[^`]{2,80}` (?:for|instead|rather|not)\b")),
)

#: What a trait adds for (epistemic, behavioral, correction), beyond what was learned.
POLICY: dict[str, tuple[float, float, float]] = {
    "change_this": (1.5, 0.0, 0.0),
    "lets_change": (1.0, 0.0, 0.0),
    "wants_thing": (0.6, 0.0, 0.0),
    "claims": (0.5, -0.3, -0.2),
    "answers": (0.3, 0.0, -0.5),
    "prose": (0.5, 0.0, -1.0),
    "elsewhere_too": (0.0, 0.7, 0.0),
    "issue_claim": (0.0, -0.5, 0.7),
    "doubts": (0.0, 0.0, 0.8),
    "like_before": (0.0, -0.3, 0.8),
    "aside_no": (0.0, 0.0, 0.5),
    "is_right": (0.0, 0.0, 1.0),
    "denies": (0.0, 0.0, 0.6),
}

#: (gate, category, speakers, pattern); the first row that holds, else the gate's own of USUAL.
CATEGORY: tuple[tuple[Gate, Category, str, re.Pattern[str]], ...] = (
    ("behavioral", "procedure", "ua", _re(
        r"\b(?:before|after) (?:you |we |each |every |any |making |changing )?(?:commit|push|merg|releas|deploy|chang|mak|implement)"
        r"|\b(?:don['’]t|do not|never) forget\b|\bremember to\b|\bfirst\b.{2,80}\bthen\b|, then\b"
        r"|\bin this branch\b")),
    ("behavioral", "convention", "ua", _re(
        r"\bwe(?:['’]\w+)? (?:\w+ ){0,2}(?:use|write|keep|name|follow|put|commit|deploy|test|never|always|do not|don['’]t"
        r"|should|need to|must|have to)\b|\b(?:convention|standard|source of truth|in (?:this|our|the) (?:codebase|project|repo)|style|strong(?:ly)? typ\w+)\b"
        r"|\b(?:always|never|must|every|each|from now on|whenever|avoid)\b|^\W{0,3}(?:don['’]t|do not|consider)\b"
        r"|^\W{0,3}the\b.{2,80}\bshould\b")),
    ("behavioral", "preference", "u", _re(r".")),
    ("correction", "preference", "u", _re(
        r"\bwhy (?:not|\w+n['’]?t|are we|is it|do we|can we)\b|^\W{0,3}(?:can|could|do|does|should|is|are|don|can|couldn"
        r"|shouldn|wouldn|isn|aren)(?:['’]?t)? we\b|\b(?:prefer|rather|instead)\b|^\W{0,3}(?:please |do not |don['’]t |stop )")),
    ("correction", "decision", "u", _re(
        r"\blet['’]?s\b|\bshould(?:n['’]t| not)?\b|\bmust\b|^\W{0,3}(?:use|fix|keep|remove|revert|restore|put|change|undo)\b")),
    ("epistemic", "gotcha", "ua", _re(
        r"\b(?:root cause|caused by|culprit|the (?:fix|bug|problem|issue)\b|turn(?:s|ed) out|work-?around|race condition"
        r"|silently|stale|crash\w*|hang(?:s|ing)?|hung|fail(?:s|ed|ing|ure)?|breaks?|broke|broken|error(?:s|ed)?|missing"
        r"|overwrit\w+|clobber\w*|leak\w*|mismatch|didn['’]t|did not|wasn['’]t|was not|weren['’]t|isn['’]t being|fixed by"
        r"|was(?: the)? wrong|not automatically|doesn['’]t automatically)\b")),
    ("epistemic", "decision", "ua", _re(
        r"\blet['’]?s\b|\b(?:decided|chose|agreed|settled|instead of|rather than|in favou?r of|no longer|single source)\b"
        r"|\b(?:we|i)(?:['’]d)? (?:do |also |would )*(?:want|need|should|will)\b|\bcan (?:we|you)\b|\bshould\b"
        r"|^\W{0,3}(?:now|added|changed|created|extracted?|removed|moved|replaced?|renamed?|switched|increased|updated"
        r"|refactored|change|move|delete|remove|set|make|return|show|reset|use)\b|\bnow (?:uses?|only|has|returns?|there)\b")),
    ("epistemic", "constraint", "ua", _re(
        r"\b(?:only (?:reachable|works?|available|supports?|runs?|allowed|possible|valid)|at most|at least|limited to"
        r"|requires?|does(?: not|n['’]t) (?:support|allow|accept)|not supported|not allowed|cannot|can['’]t be"
        r"|must(?: not)?|mandatory|forbidden)\b")),
)
# fmt: on
USUAL: dict[Gate, Category] = {
    "epistemic": "fact",
    "behavioral": "convention",
    "correction": "fact",
    "relational": "person",
    "promissory": "plan",
}  # fmt: skip


def kind(text: str, *, speaker: Speaker, before: str = "") -> Kind:
    """What `text`, chosen to be kept, is as a memory; `before` is what was said before it, "" where nobody knows."""
    said = text.strip()[:MAX_SENTENCE]
    gate, clarity, reasons = _gate(said, speaker, before)
    category = next(
        (
            category
            for of, category, speakers, pattern in CATEGORY
            if of == gate and speaker[0] in speakers and pattern.search(said)
        ),
        USUAL[gate],
    )
    return Kind(
        gate=gate, category=category, confidence=confidence_of(gate, category, clarity, speaker), reasons=reasons
    )


def _gate(said: str, speaker: Speaker, before: str) -> tuple[Gate, float, tuple[str, ...]]:
    """The gate, how clear it is (0-1), and why."""
    for reason, speakers, gate, pattern in SURE:
        if speaker[0] in speakers and pattern.search(said):
            return gate, SURE_CLARITY, (reason,)
    if speaker == "assistant":
        return "epistemic", ACCOUNT_CLARITY, ("account",)
    found = traits(said, before=before)
    sums = weigh(found)
    best = max(GATES, key=lambda gate: sums[gate])
    total = sum(math.exp(min(0.0, value - sums[best])) for value in sums.values())
    index = GATES.index(best)
    cues = [name for name in found if ":" not in name and _weight(name, index) > 0]  # a small word is no reason
    reasons = tuple(sorted(cues, key=lambda name: (-_weight(name, index), name))[:MAX_REASONS])
    return best, 1 / total, reasons or ("usual",)


def weigh(found: frozenset[str]) -> dict[Gate, float]:
    """The sum for each gate over the traits of a user's sentence."""
    # Exactly: two gates may weigh the same, and the order of a set is another one in every process.
    return {
        gate: math.fsum([BIAS[index], *(_weight(name, index) for name in found)]) for index, gate in enumerate(GATES)
    }


def _weight(name: str, index: int) -> float:
    learned = WEIGHTS[name][index] if name in WEIGHTS else 0.0
    return learned + (POLICY[name][index] if index < 3 and name in POLICY else 0.0)


def confidence_of(gate: Gate, category: Category, clarity: float, speaker: Speaker) -> float:
    """Confidence 0-1 of a sentence that is so clearly (0-1) what it is, kept within what its category allows."""
    rule = CATEGORIES[category]
    raw = CONFIDENCE_BASE[gate] + CONFIDENCE_SPAN * clarity + CONFIDENCE_OF_SPEAKER[speaker]
    return round(min(rule.high, max(rule.low, min(CONFIDENCE_MOST, raw))), 3)
