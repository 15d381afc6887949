"""Finds the sentences of a prompt that are statements by themselves; pure.

Each sentence of a typed prompt that asserts something is a statement (`certainty`), so that two facts are two memories.
In a short prompt, so is each sentence worded as lasting. In other languages than English only those count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from csmd.extraction.candidate_passages import MAX_CONTENT_WORDS, ends_sentence, is_usable
from csmd.extraction.passage_scores import Passage, Weights, certainty, make_passage
from csmd.text import prose
from csmd.text.sentence import RULES, find_request, has, parse, refers_back
from csmd.text.switches import changes_mind
from csmd.text.trimming import trim_statement


class _Bars(NamedTuple):
    """How sure, 0-1, assertions must be in a prompt of at most `sentences`.

    `alone` is for a prompt in which no passage reaches the bar of scores: one assertion must be as sure.
    """

    sentences: float
    in_prompt: float
    alone: float


CERTAINTY_BARS = (_Bars(1, 0.50, 0.50), _Bars(3, 0.75, 0.85), _Bars(math.inf, 0.90, 0.95))
#: Most assertions of a prompt.
MAX_ASSERTED = 3
#: A text of this many rows or more was pasted: its sentences are not the user's own assertions.
DOCUMENT_ROWS = 14
#: A prompt of at most this many sentences is short.
SHORT_PROMPT_SENTENCES = 6
#: Kinds of wording that mark a sentence as lasting.
LASTING_KINDS = RULES | {"role"}
#: How sure such a sentence must be in a short prompt.
MIN_LASTING_CERTAINTY = 0.25
#: An order is a rule from this certainty on.
MIN_RULE_CERTAINTY = 0.85
#: Most words of a value that belongs to the sentence before it.
MAX_VALUE_WORDS = 4
#: A colon at the end: the sentence only announces what comes after it.
_ANNOUNCES = re.compile(r"[:：][^\w:：]*+$")


def find_assertions(outline: Sequence[prose.Sentence], weights: Weights) -> list[Passage]:
    """Finds the sentences of a typed prompt that assert something by themselves, in order.

    If most items of a list do, each needs to be only as sure as a single sentence. Of more than MAX_ASSERTED,
    neighbours are joined.
    """
    if not outline or outline[-1].row >= DOCUMENT_ROWS:
        return []
    assurances = [_measure_assurance(sentence, weights) for sentence in outline]
    bar, single_bar = _find_bars(outline).in_prompt, CERTAINTY_BARS[0].in_prompt
    items = sum(sentence.item >= 0 for sentence in outline)
    if 2 * items > len(outline) and 2 * sum(assurance >= single_bar for assurance in assurances) > items:
        bar = single_bar
    asserted = [make_passage(at, at, outline[at].text) for at, assurance in enumerate(assurances) if assurance >= bar]
    while len(asserted) > MAX_ASSERTED:
        at = min(range(1, len(asserted)), key=lambda at: len(asserted[at - 1].content | asserted[at].content))
        passage, other = asserted[at - 1 : at + 1]
        content = passage.content | other.content
        if len(content) > MAX_CONTENT_WORDS:
            break
        text = f"{passage.text}{' ' if ends_sentence(passage.text) else '; '}{trim_statement(other.text)}"
        asserted[at - 1 : at + 1] = [Passage(passage.first, other.last, text, content)]
    return [passage for passage in asserted if len(passage.content) <= MAX_CONTENT_WORDS][:MAX_ASSERTED]


def has_sure_assertion(outline: Sequence[prose.Sentence], weights: Weights) -> bool:
    """Whether a sentence of a prompt asserts something as surely as it must alone."""
    return any(_measure_assurance(sentence, weights) >= _find_bars(outline).alone for sentence in outline)


def _find_bars(outline: Sequence[prose.Sentence]) -> _Bars:
    return next(bars for bars in CERTAINTY_BARS if len(outline) <= bars.sentences)


def _measure_assurance(sentence: prose.Sentence, weights: Weights) -> float:
    """How surely a sentence of a prompt asserts something that lasts, 0-1."""
    read = parse(sentence.text)
    if (
        not is_usable(sentence, "user")
        or read.kind != "states"
        or (read.is_of_moment and read.lasting not in RULES)
        or _ANNOUNCES.search(sentence.text)
    ):
        return 0.0
    if not read.lasting and (refers_back(read) or (find_request(sentence.text) and not read.remembers)):
        return 0.0
    # A report of a failure asks for a fix.
    if has("trouble", read.language, sentence.text) and (read.language != "en" or not read.lasting):
        return 0.0
    # A usable sentence in another language is worded as lasting.
    return 1.0 if read.remembers or read.language != "en" else certainty(sentence.text, weights)


def find_lasting_passages(outline: Sequence[prose.Sentence], weights: Weights) -> list[Passage]:
    """Finds the sentences of a short prompt that are worded as lasting, and are sure enough."""
    if len(outline) > SHORT_PROMPT_SENTENCES:
        return []
    lasting = [
        make_passage(at, at, sentence.text)
        for at, sentence in enumerate(outline)
        if _is_sure_rule(sentence, weights)
        or (
            parse(sentence.text).lasting in LASTING_KINDS
            and _measure_assurance(sentence, weights) >= MIN_LASTING_CERTAINTY
        )
    ]
    return [*_find_settling_passages(outline), *lasting]


def _is_sure_rule(sentence: prose.Sentence, weights: Weights) -> bool:
    """Whether an order is a rule: "use British spelling", not "add a test"."""
    read = parse(sentence.text)
    is_order = read.kind == "orders" and read.language == "en" and not read.is_of_moment
    return is_order and is_usable(sentence, "user") and certainty(sentence.text, weights) >= MIN_RULE_CERTAINTY


def _find_settling_passages(outline: Sequence[prose.Sentence]) -> list[Passage]:
    """Finds the sentences that decide how things are to be or hold at all times, and pairs that do so only together."""
    texts = [sentence.text for sentence in outline]
    spans = [(at, at) for at in range(len(texts))]
    spans += [(at, at + 1) for at in range(len(texts) - 1) if ends_sentence(texts[at])]
    passages: list[Passage] = []
    for first, last in spans:
        if last + 1 < len(texts) and _is_bare_value(texts[last + 1]):
            last += 1
        text = " ".join(texts[first : last + 1])
        whole, parts = parse(text), [parse(part) for part in texts[first : last + 1]]
        if any(part.kind not in ("states", "orders") or part.is_musing or part.is_of_moment for part in parts):
            continue
        if not (whole.settles or (whole.lasting in RULES and has("at_all_times", "en", whole.core))):
            continue
        if last == first or changes_mind(texts[first]) or not any(part.settles for part in parts):
            passages.append(make_passage(first, last, text))
    return passages


def with_value(passage: Passage, outline: Sequence[prose.Sentence]) -> Passage:
    """Returns a passage with the next sentence if that only gives its value: "the limit is too low. make that 40"."""
    behind = outline[passage.last + 1 : passage.last + 2]
    if not behind or not ends_sentence(passage.text) or not _is_bare_value(behind[0].text):
        return passage
    return make_passage(passage.first, passage.last + 1, f"{passage.text} {behind[0].text}")


def _is_bare_value(text: str) -> bool:
    """Whether a few words only give the number of the sentence before them: "40, please"."""
    words = parse(text).words
    return len(words) <= MAX_VALUE_WORDS and any(map(str.isdigit, words))
