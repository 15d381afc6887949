"""What a sentence is as a memory: gate, category, confidence, decay, scope.

One linear model for every way in (transcripts, `csmd remember`, the memory server, edited pages, imports). Its features
are the words of a sentence, pairs of neighbouring words, and the same with words replaced by their class ("when",
"role", "taste": csmd/data/word_classes.txt). Weights are fitted by tests/bench/train_classifier.py and described in
docs/extending.md. What a model cannot know is policy here: an assistant makes no corrections, a plan
does not last, and a sentence is kept for good only when it says so.
"""

from __future__ import annotations

import base64
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Any, Literal, get_args

from csmd import data, wire
from csmd.cache import cached
from csmd.text import tokens
from csmd.text.dates import find_dates
from csmd.text.sentence import Lasting, parse
from csmd.vocabulary import CATEGORIES, Category, Decay, Gate

Speaker = Literal["user", "assistant"]

GATES: tuple[Gate, ...] = get_args(Gate)
#: The model's class for a sentence that states nothing.
NONE = "none"
#: The heads of the model and what each tells apart.
HEADS: dict[str, tuple[str, ...]] = {
    "gate": (*GATES, NONE),
    "category": get_args(Category),
    "decay": ("ephemeral", "session", "durable"),
    "scope": ("user", "project"),
}
#: Whether a sentence names a day does not depend on the day that it is said.
ANY_DAY = "2026-01-01"
#: The categories that a gate may have.
CATEGORIES_OF: dict[Gate, tuple[Category, ...]] = {
    "behavioral": ("preference", "convention", "procedure"),
    "relational": ("person",),
    "epistemic": ("fact", "decision", "gotcha", "constraint", "pattern"),
    "promissory": ("plan",),
    "correction": ("fact", "preference", "decision", "constraint"),
}
#: The gates of each speaker. An assistant reports how things are and corrects nobody.
GATES_OF: dict[Speaker, tuple[Gate, ...]] = {
    "user": GATES,
    "assistant": ("behavioral", "relational", "epistemic", "promissory"),
}
#: Confidence at clarity 0, by gate. CONFIDENCE_SPAN is added at clarity 1; an assistant's statement loses a little.
CONFIDENCE_BASE: dict[Gate, float] = {
    "epistemic": 0.60, "behavioral": 0.62, "correction": 0.65, "relational": 0.60, "promissory": 0.60,
}  # fmt: skip
#: What clarity 1 adds to the confidence.
CONFIDENCE_SPAN = 0.30
#: The highest confidence.
MAX_CONFIDENCE = 0.95
CONFIDENCE_OF_SPEAKER: dict[Speaker, float] = {"user": 0.0, "assistant": -0.05}
#: How likely, 0-1, a sentence must be about its speaker to hold beyond its project: what leaks does harm.
MIN_SPEAKER_CHANCE = 0.6
#: How likely a sentence must be short-lived to fade with the day or the week.
SHORT_LIVED_DECAYS: tuple[Decay, ...] = ("ephemeral", "session")
MIN_SHORT_LIVED_CHANCE = 0.6
#: How many characters of a sentence are read.
MAX_SENTENCE_CHARACTERS = 600
#: The lengths in tokens that the model tells apart.
LENGTHS = (4, 8, 14, 25)
#: The sum of a sentence's weights is divided by the root of how many features it has, times this.
SCALE = 4.0
MAX_REASONS = 3
#: The reason of what the user asked to remember.
ASKED = "remember"
#: A sentence that lasts in one of these ways says that it holds for good.
FOR_GOOD: frozenset[Lasting] = frozenset({"rule", "ban", "taste"})

#: What a sentence of another language than English is, by the words with which it says that it lasts: the model knows
#: English only. What refuses something is the user's correction.
BY_LASTING: Mapping[Lasting, tuple[Gate, Category]] = {
    "rule": ("behavioral", "convention"), "ban": ("behavioral", "convention"), "taste": ("behavioral", "preference"),
    "choice": ("epistemic", "decision"), "need": ("epistemic", "constraint"), "role": ("relational", "person"),
    "plan": ("promissory", "plan"),
}  # fmt: skip
#: How clear, 0-1, a sentence is that is known by such words.
CLARITY_BY_WORDS = 0.6

_TOKEN = re.compile(
    r"(?P<code>`[^`\n]*`)|(?P<place>https?://\S+|(?:[~.]?/|\w[\w.-]{0,60}/)[\w./*-]+)"
    r"|(?P<name>\b\w+\.[a-z]{1,4}\b(?=\W|$)|\w*[a-z]_\w+|\b[A-Z]+_[A-Z_]+\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*)"
    r"|(?P<number>\d[\w.,:/-]*)|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)?)|(?P<mark>[?!:;()])"
)
#: A name at the beginning: a capitalised word followed by a verb in the third person.
_NAME_FIRST = re.compile(r"[A-Z][a-z]+(?:['’]s\b| and [A-Z][a-z]+\b| [a-z]+[a-rt-z]s\b)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The class of a sentence, with confidence 0-1; whether it is a statement at all is decided elsewhere.

    `reasons` are the words and word classes that speak most for its gate. `about_speaker`: it tells who the speaker is
    or how they like to work, wherever they work. `for_good`: it says that it lasts.
    """

    gate: Gate
    category: Category
    confidence: float
    decay: Decay
    about_speaker: bool
    for_good: bool
    reasons: tuple[str, ...]


class Model:
    """The fitted weights: a row of one byte for each class of each head in each of `buckets` hashed features."""

    __slots__ = ("_buckets", "_rows", "_width", "bias", "scale")

    def __init__(self, held: Mapping[str, Any]) -> None:
        heads = {head: tuple(names) for head, names in held["heads"].items()}
        if heads != HEADS:
            raise ValueError(f"weights of other classes: {heads}")
        raw = zlib.decompress(base64.b85decode(held["weights"]))
        self._width = sum(map(len, HEADS.values()))
        self._buckets = len(raw) // self._width
        self._rows = memoryview(raw).cast("b")
        self.bias = tuple(map(float, held["bias"]))
        self.scale = float(held["scale"])

    def row(self, feature: str) -> tuple[int, ...]:
        """The weights of a feature for every class, in the order of HEADS."""
        at = bucket(feature, self._buckets) * self._width
        return tuple(self._rows[at : at + self._width])

    def chances(self, feature_set: frozenset[str]) -> dict[str, dict[str, float]]:
        """The probability (0-1) of each class of each head, for a sentence with these features."""
        # Integers are added: the order of a set is another one in every process.
        totals = [sum(column) for column in zip(*map(self.row, feature_set), strict=True)] or [0] * self._width
        factor = self.scale * SCALE / math.sqrt(max(1, len(feature_set)))
        sums = [bias + factor * total for bias, total in zip(self.bias, totals, strict=True)]
        probabilities, at = {}, 0
        for head, names in HEADS.items():
            most = max(sums[at : at + len(names)])
            powers = [math.exp(value - most) for value in sums[at : at + len(names)]]
            probabilities[head] = {name: power / sum(powers) for name, power in zip(names, powers, strict=True)}
            at += len(names)
        return probabilities


@cache
def load_model() -> Model:
    """The model shipped with csmd."""
    return Model(wire.loads(resources.files("csmd.data").joinpath("classifier.json").read_bytes()))


@cache
def word_classes() -> dict[str, str]:
    """Maps words to their classes."""
    class_of: dict[str, str] = {}
    for line in data.lines("word_classes.txt"):
        name, _, listed = line.partition(":")
        class_of = dict.fromkeys(listed.split(), name) | class_of
    return class_of


def bucket(feature: str, buckets: int) -> int:
    """The row of a feature's weights."""
    return zlib.crc32(feature.encode()) % buckets


def classify(text: str, *, speaker: Speaker) -> Classification:
    """Classifies a sentence of a user or an assistant; a request to remember it means that it lasts."""
    read = parse(text, speaker)
    if read.language not in ("en", "") and read.lasting:
        return _classify_by_lasting(read.lasting, speaker, corrects=read.refutes)
    statement = without_request(text) if speaker == "user" else text
    classification = _classify(statement, speaker)
    return (
        classification
        if statement == text
        else replace(classification, for_good=True, reasons=(ASKED, *classification.reasons))
    )


def _classify_by_lasting(lasting: Lasting, speaker: Speaker, *, corrects: bool) -> Classification:
    gate, category = BY_LASTING[lasting]
    if corrects and speaker == "user":
        category = "preference" if gate == "behavioral" else "fact"
        gate = "correction"
    return Classification(
        gate=gate, category=category, confidence=confidence_of(gate, category, CLARITY_BY_WORDS, speaker),
        decay=CATEGORIES[category].decay, about_speaker=lasting == "taste", for_good=lasting in FOR_GOOD,
        reasons=(lasting,),
    )  # fmt: skip


@cached(512)
def _classify(text: str, speaker: Speaker) -> Classification:
    model = load_model()
    feature_set = features(text, speaker=speaker)
    chances = model.chances(feature_set)
    gates = chances["gate"]
    read = parse(text, speaker)
    gate = max(GATES_OF[speaker], key=lambda name: gates[name])
    lays_down = read.settles or read.lasting in ("rule", "ban")
    is_for_no_day = gate == "promissory" and lays_down and not find_dates(text, ANY_DAY)
    if is_for_no_day:
        gate = max((name for name in GATES_OF[speaker] if name != gate), key=lambda name: gates[name])
    clarity = gates[gate] / sum(gates[name] for name in GATES)
    categories = [name for name in CATEGORIES_OF[gate] if not (read.leaves_open and name == "decision")]
    category = max(categories, key=lambda name: chances["category"][name])
    decay = CATEGORIES[category].decay if is_for_no_day else _find_decay(chances["decay"], category)
    return Classification(
        gate=gate,
        category=category,
        confidence=confidence_of(gate, category, clarity, speaker),
        decay=decay,
        about_speaker=chances["scope"]["user"] >= MIN_SPEAKER_CHANCE,
        for_good=decay == "durable" and read.lasting in FOR_GOOD,
        reasons=_find_reasons(model, feature_set, gate),
    )


def _find_decay(chances: Mapping[str, float], category: Category) -> Decay:
    """How fast a sentence of a category fades: short-lived only if that is likely; a plan never lasts."""
    short = max(SHORT_LIVED_DECAYS, key=lambda name: chances[name])
    return short if chances[short] >= MIN_SHORT_LIVED_CHANCE else CATEGORIES[category].decay


def without_request(text: str) -> str:
    """A sentence without a leading "remember that"."""
    read = parse(text)
    return (read.body if read.remembers else text) or text


def confidence_of(gate: Gate, category: Category, clarity: float, speaker: Speaker) -> float:
    """The confidence (0-1) of a sentence classified with a clarity of 0-1, within the range of its category."""
    rule = CATEGORIES[category]
    raw = CONFIDENCE_BASE[gate] + CONFIDENCE_SPAN * clarity + CONFIDENCE_OF_SPEAKER[speaker]
    return round(min(rule.high, max(rule.low, min(MAX_CONFIDENCE, raw))), 3)


def features(text: str, *, speaker: Speaker) -> frozenset[str]:
    """The features of a sentence: `w:` words, `b:` pairs, `c:` classes, `d:` pairs of classes, its first word, its
    length."""
    classes_of = word_classes()
    words, classes = [], []
    for kind, word, capital in _tokens(text[:MAX_SENTENCE_CHARACTERS]):
        own = "name" if capital and word not in classes_of else classes_of.get(word, "")
        words.append(
            word if kind == "mark" else "#name" if own == "name" else _stem(word) if kind == "word" else f"#{kind}"
        )
        classes += [own] if own else []
    length = sum(len(words) >= limit for limit in LENGTHS)
    begins = words[0] if words else ""
    feature_set = {f"w:{word}" for word in words} | {f"c:{name}" for name in classes}
    feature_set |= {f"b:{first} {other}" for first, other in pairwise(["^", *words, "$"])}
    feature_set |= {f"d:{first} {other}" for first, other in pairwise(["^", *classes, "$"])}
    feature_set |= {f"1:{begins}", f"2:{' '.join(words[:2])}", f"length:{length}", f"by:{speaker}"}
    if _NAME_FIRST.match(text):
        feature_set.add("name first")
    return frozenset(feature_set | ({"asks"} if "?" in words[-2:] else set()))


def _tokens(text: str) -> Iterator[tuple[str, str, bool]]:
    """(kind, word in small letters, whether a capital letter within the sentence makes it a name)."""
    first = True
    for match in _TOKEN.finditer(text):
        kind, word = str(match.lastgroup), match[0].replace("’", "'")
        yield kind, word.lower(), kind == "word" and not first and word[0].isupper() and word.partition("'")[0] != "I"
        first = False


def _stem(word: str) -> str:
    return tokens.stem(word) if len(word) > 3 and word.isalpha() else word


def _find_reasons(model: Model, feature_set: frozenset[str], gate: Gate) -> tuple[str, ...]:
    """The words and classes with the greatest weight for a gate, the heaviest first."""
    at = HEADS["gate"].index(gate)
    weights = {feature[2:]: model.row(feature)[at] for feature in sorted(feature_set) if feature[:2] in ("w:", "c:")}
    strong = sorted(
        (word for word in weights if weights[word] > 0 and word[0].isalpha()), key=lambda word: (-weights[word], word)
    )
    return tuple(strong[:MAX_REASONS]) or ("usual",)
