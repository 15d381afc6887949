"""What a sentence is, by the tables of cues.py: the code that walks them; pure.

A cue says what kind of memory a sentence would be and how plainly it says so (its clarity, 0-1); a form says how far
the way it is put speaks for or against keeping it (a question, an order of the moment, its length). A sentence is
worth keeping when the clearest cue plus all forms reach WORTH.
"""

from __future__ import annotations

from dataclasses import dataclass

from csmd.distill.cues import CUES, FORMS, LENGTH, REMEMBER, Cue, Form
from csmd.distill.refused import Speaker
from csmd.model import CATEGORIES, Category, Gate
from csmd.text import words

#: What a sentence's value must reach.
WORTH = {"user": 0.50, "assistant": 0.60}
#: Confidence of a statement without any clarity, and what full clarity adds (design: 0.60-0.95).
CONFIDENCE_BASE, CONFIDENCE_SPAN = 0.60, 0.35
#: What an assistant's own word is worth beside a user's.
CONFIDENCE_OF_SPEAKER = {"user": 0.0, "assistant": -0.05}
#: No sentence is that long; what is longer is a dump.
MAX_SENTENCE = 1200


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """What a sentence is, how plainly it says so and how much it is worth, each 0-1 or a little more.

    `reasons` name every cue that matched, the clearest first.
    """

    gate: Gate
    category: Category
    confidence: float
    clarity: float
    value: float
    reasons: tuple[str, ...]


_CUES_OF: dict[Speaker, list[Cue]] = {who: [cue for cue in CUES if who[0] in cue.speakers] for who in LENGTH}
_FORMS_OF: dict[Speaker, list[Form]] = {who: [form for form in FORMS if who[0] in form.speakers] for who in LENGTH}


def classify(sentence: str, *, kind: Speaker) -> Classification | None:
    """What `sentence`, said by `kind`, is as a memory; None when the tables alone would not keep it."""
    found = weigh(sentence, kind=kind)
    return found if found.reasons and found.value >= WORTH[kind] else None


def weigh(sentence: str, *, kind: Speaker) -> Classification:
    """What `sentence`, said by `kind`, would be as a memory, and what the tables give for it; without reasons nothing."""
    said = sentence.strip()[:MAX_SENTENCE]
    remembered = REMEMBER.match(said) if kind == "user" else None
    told = (said[remembered.end() :].lstrip() if remembered else said).lower()
    found = [cue for cue in _CUES_OF[kind] if cue.pattern.search(told)]
    if not found and not remembered:
        return Classification(
            gate="epistemic",
            category="fact",
            confidence=confidence_of("fact", 0.0, kind),
            clarity=0.0,
            value=0.0,
            reasons=(),
        )
    best = max(found, key=lambda cue: cue.clarity, default=None)
    gate: Gate = best.gate if best else "epistemic"
    category: Category = best.category if best else "fact"
    clarity = 0.95 if remembered else (best.clarity if best else 0.0)
    count = len(words(told))
    value = clarity + sum(form.weight for form in _FORMS_OF[kind] if form.pattern.search(told))
    value += next(weight for limit, weight in LENGTH[kind] if count < limit or limit == 10_000)
    value += 0.05 * min(3, max(0, len(found) - 1))
    if remembered:
        value = max(value, 1.0) if count > 2 else 0.0
    reasons = [cue.reason for cue in sorted(found, key=lambda cue: -cue.clarity)]
    return Classification(
        gate=gate,
        category=category,
        confidence=confidence_of(category, clarity, kind),
        clarity=clarity,
        value=round(value, 3),
        reasons=("remember", *reasons) if remembered else tuple(reasons),
    )


def confidence_of(category: Category, clarity: float, kind: Speaker) -> float:
    """Confidence 0-1 of a statement of `clarity` 0-1, kept within what its category allows."""
    rule = CATEGORIES[category]
    raw = CONFIDENCE_BASE + CONFIDENCE_SPAN * clarity + CONFIDENCE_OF_SPEAKER[kind]
    return round(min(rule.high, max(rule.low, min(0.95, raw))), 3)
