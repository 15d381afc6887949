"""What a unit looks like, in numbers: length, place, section, form, and what it shares with the rest; pure.

Nothing here knows a word of any project: what is counted is form, position and overlap, so that weights learned on
one repository hold for others. Each feature lies between 0 and about 1, and stands twice, once for everybody and once
for the speaker ("reply code"), so that what holds for both is learned from both.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from csmd.distill.units import Piece, Unit

Features = dict[str, float]

#: Ramps over a unit's content words: (name, from, to).
LENGTHS = (("to 8 words", 0, 8), ("to 16 words", 8, 16), ("to 28 words", 16, 28), ("to 45 words", 28, 45))
#: What a unit holds, whatever its words mean.
SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("identifier", re.compile(r"\b\w{1,60}_\w|\b[a-z]{1,60}[A-Z]\w")),
    ("number", re.compile(r"\b\d+\b")),
)
MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("brackets", ("(",)),
    ("quotation", ('"',)),
    ("exclamation", ("!",)),
    ("colon", (": ",)),
    ("dash", (" - ", " – ", "—")),
    ("arrow", ("→", "->")),
)
#: How the first piece was written, markup included.
OPENINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bold", re.compile(r"\W{0,4}\*\*")),
    ("bold label", re.compile(r"(?:\*\*)?[^:.]{2,40}:\*\*|\*\*[^*]{2,60}\*\*\s?[:–-]")),
)
#: The tables' value above which more says no more; words of a prompt and pieces of a turn beyond which likewise.
TABLES_LIMIT, PROMPT_LIMIT = 1.5, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a unit stands in: its turn, the `tables`' value of each of its pieces, and, for a reply, its prompt.

    `tools` is about how many tools were called for a reply, `counts` in how many pieces each content word stands.
    """

    speaker: str
    pieces: Sequence[Piece]
    tables: Sequence[float]
    counts: Counter[str]
    prompt: frozenset[str]
    prompt_words: int
    document: bool = False
    tools: int = 0


def features(unit: Unit, around: Around) -> Features:
    """The features of one unit; those that are 0 are left out."""
    size, number = len(around.pieces), unit.last - unit.first + 1
    first, text = around.pieces[unit.first], unit.text
    count = len(unit.content)
    asked = text.find("?")
    found: Features = {name: (min(count, high) - low) / (high - low) for name, low, high in LENGTHS if count > low}
    found |= {name: 1.0 for name, sign in SIGNS if sign.search(text)}
    found |= {name: 1.0 for name, marks in MARKS if any(mark in text for mark in marks)}
    found |= {name: 1.0 for name, opening in OPENINGS if "*" in first.written and opening.match(first.written)}
    found |= {
        "question at end": asked >= 0 and text[-1] == "?",
        "question inside": 0 <= asked < len(text) - 1,
        "two pieces": number == 2,
        "three pieces": number == 3,
        "first": unit.first == 0,
        "last": unit.last == size - 1,
        "whole turn": number == size,
        "place": unit.first / size,
        "turn's length": math.log1p(size) / 4,
        "good section": first.section > 0,
        "poor section": first.section < 0,
        "document": around.document,
        "document's point": around.document and first.section > 0,
        "document's detail": around.document and first.section < 0,
        "one row": first.row == around.pieces[unit.last].row,
        "leads in": first.leads,
        "code": min(3, text.count("`") // 2) / 3,
        "tables": min(TABLES_LIMIT, max(0.0, *around.tables[unit.first : unit.last + 1], 0.0)),
        "said elsewhere": sum(1 for word in unit.content if around.counts[word] > 1) / max(1, count),
        "dense": count / max(1, unit.words),
        "prompt's length": min(PROMPT_LIMIT, around.prompt_words) / PROMPT_LIMIT,
    }
    if around.speaker == "reply":
        found["of the prompt"] = shared(unit, around.prompt)
        found["tools"] = math.log1p(around.tools) / 4
    present = {name: float(value) for name, value in found.items() if value}
    present |= {f"{around.speaker} {name}": value for name, value in present.items()}
    return {"any": 1.0, around.speaker: 1.0, **present}


def shared(unit: Unit, other: frozenset[str]) -> float:
    """The share of a unit's content words that the other half of its exchange has, too."""
    return len(unit.content & other) / max(1, len(unit.content))
