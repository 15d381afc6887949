"""Finds the pasted lines of a prompt: output of programs, and documents; pure.

A line is weighed by its marks of a program (`FORMS`). A block of lines is output if one line is heavy or all are marked,
except for typed lines at its ends. A document is recognised by its titles and typography after the user's lead, prose by
a lead with a colon and an empty line. No list of words decides.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from csmd.cache import cached
from csmd.text import sentence
from csmd.text.prose import Span


class Form(NamedTuple):
    """A mark of a program at the start of a line or in a token; the first form that matches counts."""

    name: str
    scope: Literal["line", "token"]
    weight: float
    pattern: str


FORMS = (
    Form("box", "line", 2.0, r"[\u2500-\u259f⏺⎿|]"),
    Form("shell", "line", 2.0, r"(?:\([\w.-]+\) ?)?(?:[\w.~/-]+ +)?[$❯➜λ⨯✖✗](?: |$)|[\w.-]+@[\w.-]+[ :].*[:~/]"),
    Form("byline", "line", 1.4, r"\S[^:]{0,40}\s[\[(]?\d{1,2}:\d\d(?: ?[AP]M)?[\])]?$"),
    Form("step", "line", 1.0, r"#\d+ [A-Z\[]|(?:##\[|::)[a-z]+[ :\]]|[A-Z]{3,}\[\w+\]|@@ |[+-]{3} \S|={3,} |at \S+ \("),
    Form("trace", "line", 1.0, r"Traceback \(|File \""),
    Form("place", "line", 1.0, r"\S*(?:\w\.\w+:\d+(?::\d+)?|\(\d+(?:,\d+)?\)):? |\S*\(index\):\d|--> \S"),
    Form("tag", "line", 1.0, r"\[[\w./-]*[:./\d-][\w.:/-]*\](?: ?\S|$)"),
    Form("row", "line", 0.5, r"(?:- )?[^\W\d_][\w.$/-]{0,40}:(?: +\S|$)"),
    Form("clock", "token", 1.0, r"\d\d:\d\d:\d\d|\.{3,}$"),
    Form("code", "token", 0.4, r"[\w.-]:?=+[\w\"'\[{(/<]|\w::\w|=>|\w\(|\)\{|[{;\\]$|['\"\])>]:$|[0-9a-f]{12}"),
    Form("name", "token", 0.25, r"[a-z][A-Z]|\w_\w|\w@\d|\w/\w|/$|\w\.\w+\.\w|://|^--?[a-zA-Z]|^[a-z]\w*:$"),
    Form("number", "token", 0.15, r"\b\d+"),
)
#: Greatest weight of a token.
MAX_TOKEN_WEIGHT = 0.8
#: Number of plain words in a line that halves the weight of its tokens.
HALVING_WORDS = 9
#: Weight of an indented line.
INDENT_WEIGHT = 0.4
#: Weight of a line that begins like the one above or below it.
REPEAT_WEIGHT = 0.6
#: Least weight of a line of output.
MIN_PRINTED_WEIGHT = 1.0
#: Least weight of a line of output that is the whole prompt.
MIN_SINGLE_LINE_WEIGHT = 2.5
#: Least mean weight of a block of output without a heavy line.
MIN_MEAN_WEIGHT = 0.36
#: Least mean weight of two lines, and least weight of one line, next to output.
MIN_PAIR_WEIGHT = 0.45
#: Least mean weight of the only block of a prompt.
MIN_ONLY_BLOCK_WEIGHT = 0.7
#: A line of prose has at least MIN_PROSE_WORDS plain words and less weight than MAX_PROSE_WEIGHT.
MIN_PROSE_WORDS = 4
MAX_PROSE_WEIGHT = 0.35
#: Weights of the marks of a document: a title, a title after a title, typography, three code spans, a long sentence.
TITLE_WEIGHT = 0.8
SUBTITLE_WEIGHT = 1.5
TYPOGRAPHY_WEIGHT = 0.5
CODE_WEIGHT = 0.5
SENTENCE_WEIGHT = 0.4
#: Least weights of a document without and with its sentences: after a lead, and without a lead.
MIN_LED_WEIGHTS = (0.8, 1.5)
MIN_BARE_WEIGHTS = (1.7, 2.75)
#: Most words and lines that a user types around a document.
MAX_LEAD_WORDS = 45
MAX_LEAD_LINES = 4
MAX_TITLE_WORDS = 12
#: Fewest words of prose after a line with a colon, and most empty lines between the two.
MIN_BODY_WORDS = 8
MAX_EMPTY_LINES = 2
#: A reviewer's remark has at least this many characters and words per sentence, and at most this many lines.
MIN_REMARK_CHARACTERS = 200
MIN_REMARK_SENTENCE_WORDS = 15
MAX_REMARK_LINES = 3
#: Most characters of a line that are weighed.
MAX_LINE_CHARACTERS = 400
#: Most characters of a line that are split into sentences, and fewest of a sentence that counts.
MAX_SPLIT_CHARACTERS = 1500
MIN_SENTENCE_CHARACTERS = 40
#: Most sentences of a line that count.
MAX_LINE_SENTENCES = 4
MAX_DOCUMENT_LINES = 200
TAB_COLUMNS = 4

_LINE_FORMS, _TOKEN_FORMS = ([form for form in FORMS if form.scope == scope] for scope in ("line", "token"))
_LINE_MARK, _TOKEN_MARK = (
    re.compile("|".join(f"({form.pattern})" for form in forms)) for forms in (_LINE_FORMS, _TOKEN_FORMS)
)
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]")
#: Letters of scripts without spaces.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
SENTENCE_END = re.compile(r"(?<![.!?:…])[.!?:…]++[\"”)]*\s+|[。！？：]")
#: Possible ends of a user's words in a line that continues with output.
_BREAK = re.compile(rf"{SENTENCE_END.pattern}|\s{{3,}}")
SENTENCE_MARKS = tuple(".!?…。！？")
QUESTION_MARKS = tuple("?？")
COLONS = tuple(":：")
_TYPOGRAPHY = frozenset("—–“”‘’→…×≥≤§©®【】")


class Line(NamedTuple):
    """A line that is not blank, with the weight of its marks of a program.

    `offset` is that of its `text`, `indent` its columns, `block` the number of empty lines before it, `words` the number
    of its plain words.
    """

    start: int
    end: int
    offset: int
    text: str
    indent: int
    block: int
    words: int = 0
    weight: float = 0.0

    @property
    def head(self) -> str:
        """Returns the part of the text that is weighed."""
        return self.text[:MAX_LINE_CHARACTERS]

    @property
    def is_light(self) -> bool:
        """Whether the line has too few marks of a program for output."""
        return self.weight < MAX_PROSE_WEIGHT

    @property
    def is_typed(self) -> bool:
        """Whether a person may have typed the line: prose or a question, without marks of a program."""
        is_plain = self.is_light and not self.indent and (self.text[0].isalpha() or self.text[0] in "`\"'¿¡")
        return is_plain and (self.words >= MIN_PROSE_WORDS or self.text.endswith(QUESTION_MARKS))

    @property
    def is_item(self) -> bool:
        """Whether the line is an item of a list."""
        return _ITEM.match(self.text) is not None


def split_lines(plain: str) -> list[Line]:
    """Splits a text into its lines that are not blank, still without words and weights."""
    lines: list[Line] = []
    start = block = 0
    for row in plain.split("\n"):
        if text := row.strip():
            lead = row.index(text[0])
            indent = len(row[:lead].expandtabs(TAB_COLUMNS))
            lines.append(Line(start, min(start + len(row) + 1, len(plain)), start + lead, text, indent, block))
        block += not text
        start += len(row) + 1
    margin = min((line.indent for line in lines), default=0)
    return [line._replace(indent=line.indent - margin) for line in lines] if margin else lines


def find_pasted(lines: list[Line]) -> list[Span]:
    """Weighs the lines, and finds the spans of output and of a document."""
    if not lines:
        return []
    is_led = False
    for index, line in enumerate(lines):
        words, weight = weigh_line(line.head)
        if not line.indent:
            is_led = line.text.endswith(COLONS) and not line.text[0].islower() and words <= MAX_TITLE_WORDS
        is_indented = line.indent > 0 and not line.is_item and (weight or not is_led)
        lines[index] = line._replace(words=words, weight=weight + INDENT_WEIGHT if is_indented else weight)
    starts = [index for index, line in enumerate(lines) if not index or line.block != lines[index - 1].block]
    blocks = [range(*edges) for edges in zip(starts, [*starts[1:], len(lines)], strict=True)]
    printed = _find_printed(lines, blocks)
    lead_end = _find_lead_end(lines[0].head)
    begin = lines[0].offset + lead_end if lead_end else lines[0].start
    pasted = printed.union(_find_document(lines, blocks, printed), [0] if lead_end else [])
    return [Span(lines[index].start if index else begin, lines[index].end) for index in pasted]


def weigh_line(text: str) -> tuple[int, float]:
    """Returns (plain words, weight of marks) of a line; in a script without spaces two letters are a word."""
    mark = _LINE_MARK.match(text)
    line_weight = _LINE_FORMS[(mark.lastindex or 1) - 1].weight if mark else 0.0
    weights = [_weigh_token(token) for token in text.split()]
    words = sum(words for words, _ in weights)
    dilution = 1 + words / HALVING_WORDS
    line_weight /= 1 if line_weight >= MIN_PRINTED_WEIGHT or text[:1].islower() else dilution
    return words, line_weight + sum(weight for _, weight in weights) / dilution


@cached(8192)
def _weigh_token(token: str) -> tuple[int, float]:
    """Returns (plain words, weight) of a token, one of which is 0."""
    bare = token.strip("\"'()*_.,;:!?")
    if not bare.isalpha() or not (bare[1:] == bare[1:].lower() or bare.isupper()):
        marks = _TOKEN_MARK.finditer(token[:MAX_LINE_CHARACTERS])
        weight = sum(_TOKEN_FORMS[(mark.lastindex or 1) - 1].weight for mark in marks)
        if weight or not bare:
            return 0, min(weight, MAX_TOKEN_WEIGHT)
    return 1 if bare.isascii() else max(1, len(_UNSPACED.findall(bare)) // 2), 0.0


def _find_printed(lines: list[Line], blocks: Sequence[range]) -> set[int]:
    """Finds the numbers of the lines of output, blocks without the typed lines at their ends."""
    _weigh_repetition(lines)
    cores = [_trim_typed_lines(lines, block) for block in blocks]
    weights_by_block = [[lines[index].weight for index in core] for core in cores]
    min_weight = MIN_PRINTED_WEIGHT if len(lines) > 1 else MIN_SINGLE_LINE_WEIGHT
    heavy = [max(weights, default=0.0) >= min_weight for weights in weights_by_block]
    near = [any(heavy[max(0, index - 1) : index + 2]) for index in range(len(blocks))]
    for number, weights in enumerate(weights_by_block):
        min_mean = MIN_PAIR_WEIGHT if len(weights) == 2 else MIN_MEAN_WEIGHT
        if len(blocks) == 1:
            min_mean = MIN_ONLY_BLOCK_WEIGHT
        is_even = len(weights) > 1 and sum(weights) >= min_mean * len(weights)
        heavy[number] |= is_even or (near[number] and weights[:1] >= [MIN_PAIR_WEIGHT])
    printed = set(itertools.chain(*itertools.compress(cores, heavy)))
    marked = [number for number, is_heavy in enumerate(heavy) if is_heavy]
    for number in range(marked[0], marked[-1]) if marked else ():
        if not heavy[number] and not lines[blocks[number].start].is_typed:
            printed.update(blocks[number])
    return printed


def _weigh_repetition(lines: list[Line]) -> None:
    """Adds weight to neighbouring lines of one block that begin with the same two words."""
    for index in range(1, len(lines)):
        above, line = lines[index - 1 : index + 1]
        opening = above.head.split(None, 2)[:2]
        is_marked = (above.weight and line.weight) or any(word != word.lower() for word in opening[1:])
        is_repeated = len(opening) > 1 and line.head.split(None, 2)[:2] == opening
        if is_marked and is_repeated and above.block == line.block:
            lines[index - 1] = above._replace(weight=above.weight + REPEAT_WEIGHT)
            lines[index] = line._replace(weight=line.weight + REPEAT_WEIGHT)


def _find_lead_end(text: str) -> int:
    """Returns the offset in a line at which the user's words end and output begins; 0 if there is none."""
    for end in _BREAK.finditer(text):
        words, weight = weigh_line(text[: end.end()].strip())
        is_lead = words >= MIN_PROSE_WORDS - 1 and weight < MAX_PROSE_WEIGHT and text[0].isalpha()
        if is_lead and weigh_line(text[end.end() :])[1] >= MIN_PRINTED_WEIGHT:
            return end.end()
    return 0


def _trim_typed_lines(lines: Sequence[Line], block: range) -> range:
    """Returns a block without the typed lines at its beginning, and at its end if it ends the prompt."""
    begin, end = block.start, block.stop
    while begin < end and (lines[begin].is_typed or (not block.start and lines[begin].is_light)):
        begin += 1
    if begin < end == len(lines) and lines[end - 1].is_typed and (end == 1 or not lines[end - 2].is_light):
        end -= not lines[end - 1].text[0].isupper() or lines[end - 1].text.endswith(QUESTION_MARKS)
    return range(begin, end)


def _find_document(lines: Sequence[Line], blocks: Sequence[range], printed: set[int]) -> range:
    """Finds the lines of a document between the typed lines before and after it, or of a whole prompt."""
    layouts = [_weigh_layout(lines, index) for index in range(min(MAX_DOCUMENT_LINES, len(lines)))]
    leads = [index for index, line in enumerate(lines[:MAX_LEAD_LINES], 1) if line.text.endswith(COLONS)][:1]
    for first in dict.fromkeys([*([0] if layouts[0] else leads), *leads, blocks[0].stop]):
        is_led = 0 < first <= len(layouts) and not layouts[first - 1]
        for stop in _find_stops(lines, blocks):
            rest = [index for index in range(first, min(stop, len(layouts))) if index not in printed]
            if not rest or (is_led and sum(line.words for line in lines[:first]) > MAX_LEAD_WORDS):
                continue
            min_layout, min_weight = MIN_LED_WEIGHTS if is_led else MIN_BARE_WEIGHTS
            layout = sum(layouts[index] for index in rest)
            weight = layout + _weigh_sentences(lines[index] for index in rest)
            is_document = layout >= min_layout and weight >= min_weight
            if is_document or (is_led and first not in printed and _leads_to_prose(lines, range(first, stop))):
                return range(first, stop)
    return range(len(lines) if not printed and _is_remark(lines) else 0)


def _find_stops(lines: Sequence[Line], blocks: Sequence[range]) -> list[int]:
    """Returns the possible ends of a document: before the last block if the user may have typed it, and after it."""
    final = blocks[-1]
    is_short = len(final) <= MAX_LEAD_LINES and sum(line.words for line in lines[final.start :]) <= MAX_LEAD_WORDS
    if len(blocks) < 2 or not is_short:
        return [len(lines)]
    above = final.start - 1
    is_titled = lines[above].text[0] == "#" or (len(blocks[-2]) == 1 and _is_title(lines, above))
    is_marked = is_titled or any(not lines[index].is_light or _weigh_layout(lines, index) for index in final)
    return [len(lines)] if is_marked else [final.start, len(lines)]


def _weigh_layout(lines: Sequence[Line], index: int) -> float:
    """Returns the weight of a line's titles and typography."""
    text = lines[index].text[:MAX_SPLIT_CHARACTERS]
    is_title = _is_title(lines, index)
    is_below = index > 0 and lines[index - 1].block != lines[index].block and _is_title(lines, index - 1)
    weight = CODE_WEIGHT * min(3, len(re.findall("`+", text)) // 3)
    if is_title:
        weight += TITLE_WEIGHT + SUBTITLE_WEIGHT if is_below else TITLE_WEIGHT
    return weight + TYPOGRAPHY_WEIGHT if not _TYPOGRAPHY.isdisjoint(text) else weight


def _weigh_sentences(lines: Iterable[Line]) -> float:
    """Returns the weight of the long sentences in lines, at most four of each line."""
    parts = (SENTENCE_END.split(line.text[:MAX_SPLIT_CHARACTERS]) for line in lines if not line.text[0].islower())
    counts = (sum(len(part) >= MIN_SENTENCE_CHARACTERS for part in of_line) for of_line in parts)
    return SENTENCE_WEIGHT * sum(min(MAX_LINE_SENTENCES, count) for count in counts)


def _is_title(lines: Sequence[Line], index: int) -> bool:
    """Whether a line is short, open-ended and followed by a longer one or an empty line."""
    line = lines[index]
    after = lines[min(index + 1, len(lines) - 1)]
    first, last = line.text[0], line.text[-1]
    is_marked = not line.is_light or line.is_item or not (first.isalnum() or first in "#§*_")
    if is_marked or first.islower() or last in ".,;:!?。：！？" or line.words > MAX_TITLE_WORDS:
        return False
    return len(after.text) > len(line.text) or after.block != line.block


def _leads_to_prose(lines: Sequence[Line], body: range) -> bool:
    """Whether a line with a colon and an empty line lead to prose, and not to a typed list."""
    lead, line = lines[body.start - 1], lines[body.start]
    is_apart = lead.text.endswith(COLONS) and 1 <= line.block - lead.block <= MAX_EMPTY_LINES
    is_wrapped = any(lines[index].indent > 0 and not lines[index].is_item for index in body)
    is_listed = (line.is_item and not is_wrapped) or line.text.startswith("**") or line.text[0].islower()
    is_question = lines[body.stop - 1].text.endswith(QUESTION_MARKS)
    word_count = sum(lines[index].words for index in body)
    return is_apart and not is_listed and not is_question and word_count >= MIN_BODY_WORDS


def _is_remark(lines: Sequence[Line]) -> bool:
    """Whether a prompt is only a reviewer's remark: long sentences with an aside and without a first person."""
    text = " ".join(line.text for line in lines[: MAX_REMARK_LINES + 1])
    if len(lines) > MAX_REMARK_LINES or len(text) < MIN_REMARK_CHARACTERS or not {"?", "!"}.isdisjoint(text):
        return False
    if not text.endswith(SENTENCE_MARKS) or any(line.is_item or line.text[0].islower() for line in lines):
        return False
    is_long = sum(line.words for line in lines) >= MIN_REMARK_SENTENCE_WORDS * len(SENTENCE_END.split(text))
    return is_long and " (" in text and not sentence.has("first_person", "en", text)
