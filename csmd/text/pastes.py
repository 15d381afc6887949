"""Which lines of a prompt are pasted: what programs print, and documents; pure.

Each line gets the weight of its marks of a program (`FORMS`); a block of lines is output where one is heavy or all of
them are marked, but for what was typed at its ends. A document is known by its titles and its typography below the
user's lead, prose by a lead with a colon and an empty line. No list of words decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from csmd.cache import cached
from csmd.text import sentence
from csmd.text.prose import Span


class Form(NamedTuple):
    """A mark of a program that opens a line, or is in a token of it: the first form that matches counts."""

    name: str
    where: Literal["line", "token"]
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
#: Most weight of a token, plain words at which tokens count half, weights of lines moved in and of lines that open
#: alike.
MAX_TOKEN_WEIGHT, HALVING_WORDS, INDENT_WEIGHT, REPEAT_WEIGHT = 0.8, 9, 0.4, 0.6
#: Weight of a line of output, and of one that is the whole prompt.
MIN_PRINTED_WEIGHT, MIN_SINGLE_LINE_WEIGHT = 1.0, 2.5
#: Mean weight of a block of output without such a line: of many lines, of two (one beside output), of the only block.
MIN_MEAN_WEIGHT, MIN_PAIR_MEAN_WEIGHT, MIN_ONLY_BLOCK_MEAN_WEIGHT = 0.36, 0.45, 0.7
#: A typed line has at least PROSE_WORDS plain words and less weight than PROSE_MARK.
MIN_PROSE_WORDS, MAX_PROSE_WEIGHT = 4, 0.35
#: How lines of a document are set: a title, one below a title and an empty line, typography, three stretches of code,
#: and sentences.
TITLE_WEIGHT, SUBTITLE_WEIGHT, TYPOGRAPHY_WEIGHT, CODE_WEIGHT, SENTENCE_WEIGHT = 0.8, 1.5, 0.5, 0.5, 0.4
#: Least weight of a document without sentences, and with them: below a lead, and without one.
MIN_LED_WEIGHTS, MIN_BARE_WEIGHTS = (0.8, 1.5), (1.7, 2.75)
#: Most words and lines of what is typed around a document, words of a title, least ones of prose behind a colon, and
#: most empty lines between the two.
MAX_LEAD_WORDS, MAX_LEAD_LINES, MAX_TITLE_WORDS, MIN_BODY_WORDS, MAX_EMPTY_LINES = 45, 4, 12, 8, 2
#: A reviewer's remark is a prompt of so many characters, of sentences of so many words, and of at most so many lines.
MIN_REMARK_CHARACTERS, MIN_REMARK_SENTENCE_WORDS, MAX_REMARK_LINES = 200, 15, 3
#: Characters of a line that are weighed, that are split into sentences, and of a sentence; lines of a document.
MAX_LINE_CHARACTERS, MAX_SENTENCE_SOURCE_CHARACTERS, MIN_SENTENCE_CHARACTERS, MAX_DOCUMENT_LINES = 400, 1500, 40, 200
#: Columns of a tab.
TAB_COLUMNS = 4

_OPENINGS, _TOKENS = ([form for form in FORMS if form.where == where] for where in ("line", "token"))
_OPENING, _TOKEN = (re.compile("|".join(f"({form.pattern})" for form in forms)) for forms in (_OPENINGS, _TOKENS))
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]")
#: Letters of scripts without spaces.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
SENTENCE_END = re.compile(r"(?<![.!?:…])[.!?:…]++[\"”)]*\s+|[。！？：]")
#: Where a line may go on with what a program printed.
_BREAK = re.compile(rf"{SENTENCE_END.pattern}|\s{{3,}}")
#: Marks that end a sentence, a question, and a line that leads to something.
SENTENCE_MARKS, QUESTION_MARKS, COLONS = tuple(".!?…。！？"), tuple("?？"), tuple(":：")
_TYPOGRAPHY = frozenset("—–“”‘’→…×≥≤§©®【】")


class Line(NamedTuple):
    """A line that is not blank: its span, where its text begins, the text, its columns of indent, the empty lines above
    it.

    `words` counts its plain words, `weight` is that of its marks of a program.
    """

    start: int
    end: int
    at: int
    text: str
    indent: int
    block: int
    words: int = 0
    weight: float = 0.0

    @property
    def is_typed(self) -> bool:
        """Whether a person may have typed the line: prose or a question, without marks of a program."""
        is_plain = (
            self.weight < MAX_PROSE_WEIGHT and not self.indent and (self.text[0].isalpha() or self.text[0] in "`\"'¿¡")
        )
        return is_plain and (self.words >= MIN_PROSE_WORDS or self.text.endswith(QUESTION_MARKS))

    @property
    def is_item(self) -> bool:
        """Whether the line is an item of a list."""
        return _ITEM.match(self.text) is not None


def split_lines(plain: str) -> list[Line]:
    """The lines of a text that are not blank, not weighed yet."""
    lines: list[Line] = []
    start = block = 0
    for row in plain.split("\n"):
        if text := row.strip():
            at = 0 if row[0] == text[0] else row.index(text[0])
            indent = len(row[:at].expandtabs(TAB_COLUMNS))
            lines.append(Line(start, min(start + len(row) + 1, len(plain)), start + at, text, indent, block))
        block += not text
        start += len(row) + 1
    margin = min((line.indent for line in lines), default=0)
    return [line._replace(indent=line.indent - margin) for line in lines] if margin else lines


def find_pasted(lines: list[Line]) -> list[Span]:
    """The spans of what programs printed and of a document."""
    if not lines:
        return []
    is_led = False
    for at, line in enumerate(lines):
        words, weight = weigh(line.text[:MAX_LINE_CHARACTERS])
        if not line.indent:
            is_led = line.text.endswith(COLONS) and not line.text[0].islower() and words <= MAX_TITLE_WORDS
        is_moved = line.indent > 0 and not line.is_item and (weight or not is_led)
        lines[at] = Line(*line[:6], words, weight + INDENT_WEIGHT * bool(is_moved))
    starts = [at for at, line in enumerate(lines) if not at or line.block != lines[at - 1].block]
    blocks = [range(*edges) for edges in zip(starts, [*starts[1:], len(lines)], strict=True)]
    printed = _find_printed(lines, blocks)
    cut = _find_lead_end(lines[0].text[:MAX_LINE_CHARACTERS])
    begin = lines[0].at + cut if cut else lines[0].start
    numbers = printed.union(_find_document(lines, blocks, printed), [0] if cut else [])
    return [Span(lines[at].start if at else begin, lines[at].end) for at in numbers]


def weigh(text: str) -> tuple[int, float]:
    """(plain words, weight of its marks) of a line; of a script without spaces two letters are a word."""
    opening = _OPENING.match(text)
    opens = _OPENINGS[(opening.lastindex or 1) - 1].weight if opening else 0.0
    weights = [_weigh_token(token) for token in text.split()]
    words = sum(words for words, _ in weights)
    thin = 1 + words / HALVING_WORDS
    opens /= 1 if opens >= MIN_PRINTED_WEIGHT or text[:1].islower() else thin
    return words, opens + sum(weight for _, weight in weights) / thin


@cached(8192)
def _weigh_token(token: str) -> tuple[int, float]:
    """(plain words, weight) of a token of a line, one of which is 0."""
    bare = token.strip("\"'()*_.,;:!?")
    if not bare.isalpha() or not (bare[1:] == bare[1:].lower() or bare.isupper()):
        weight = sum(_TOKENS[(mark.lastindex or 1) - 1].weight for mark in _TOKEN.finditer(token[:MAX_LINE_CHARACTERS]))
        if weight or not bare:
            return 0, min(weight, MAX_TOKEN_WEIGHT)
    return 1 if bare.isascii() else max(1, len(_UNSPACED.findall(bare)) // 2), 0.0


def _find_printed(lines: list[Line], blocks: Sequence[range]) -> set[int]:
    """The numbers of the lines that a program printed: blocks but for what was typed at their ends."""
    for at in range(1, len(lines)):
        above, line = lines[at - 1], lines[at]
        opens = above.text[:MAX_LINE_CHARACTERS].split(None, 2)[:2]
        is_marked = (above.weight and line.weight) or any(word != word.lower() for word in opens[1:])
        if (
            is_marked
            and len(opens) > 1
            and line.text[:MAX_LINE_CHARACTERS].split(None, 2)[:2] == opens
            and above.block == line.block
        ):
            lines[at - 1] = above._replace(weight=above.weight + REPEAT_WEIGHT)
            lines[at] = line._replace(weight=line.weight + REPEAT_WEIGHT)
    cores = [_trim_typed_lines(lines, block) for block in blocks]
    weights = [[lines[at].weight for at in core] for core in cores]
    heavy = [
        max(each, default=0.0) >= (MIN_PRINTED_WEIGHT if len(lines) > 1 else MIN_SINGLE_LINE_WEIGHT) for each in weights
    ]
    near = [any(heavy[max(0, at - 1) : at + 2]) for at in range(len(blocks))]
    for number, each in enumerate(weights):
        least = (
            MIN_ONLY_BLOCK_MEAN_WEIGHT
            if len(blocks) == 1
            else MIN_PAIR_MEAN_WEIGHT
            if len(each) == 2
            else MIN_MEAN_WEIGHT
        )
        is_even = len(each) > 1 and sum(each) >= least * len(each)
        heavy[number] |= is_even or (near[number] and each[:1] >= [MIN_PAIR_MEAN_WEIGHT])
    printed = {at for core, is_heavy in zip(cores, heavy, strict=True) if is_heavy for at in core}
    marked = [number for number, is_heavy in enumerate(heavy) if is_heavy]
    for number in range(*marked[:: len(marked) - 1]) if len(marked) > 1 else ():
        if not heavy[number] and not lines[blocks[number].start].is_typed:
            printed.update(blocks[number])
    return printed


def _find_lead_end(text: str) -> int:
    """Where in a line the user's words end and a program's begin; 0 for nowhere."""
    for end in _BREAK.finditer(text):
        words, weight = weigh(text[: end.end()].strip())
        is_lead = words >= MIN_PROSE_WORDS - 1 and weight < MAX_PROSE_WEIGHT and text[0].isalpha()
        if is_lead and weigh(text[end.end() :])[1] >= MIN_PRINTED_WEIGHT:
            return end.end()
    return 0


def _trim_typed_lines(lines: Sequence[Line], block: range) -> range:
    """The lines of a block without what was typed right before them, and at the end of a prompt right after them."""
    begin, end = block.start, block.stop
    while begin < end and (lines[begin].is_typed or (not block.start and lines[begin].weight < MAX_PROSE_WEIGHT)):
        begin += 1
    if (
        begin < end == len(lines)
        and lines[end - 1].is_typed
        and (end == 1 or lines[end - 2].weight >= MAX_PROSE_WEIGHT)
    ):
        end -= not lines[end - 1].text[0].isupper() or lines[end - 1].text.endswith(QUESTION_MARKS)
    return range(begin, end)


def _find_document(lines: Sequence[Line], blocks: Sequence[range], printed: set[int]) -> range:
    """The lines of a document between what the user typed before and after it, or of a whole prompt."""
    settings = [_weigh_setting(lines, at) for at in range(min(MAX_DOCUMENT_LINES, len(lines)))]
    stops, final = [len(lines)], blocks[-1]
    if len(blocks) > 1 and len(final) <= MAX_LEAD_LINES and sum(lines[at].words for at in final) <= MAX_LEAD_WORDS:
        above = final.start - 1
        is_titled = lines[above].text[0] == "#" or (len(blocks[-2]) == 1 and _is_title(lines, above))
        is_marked = is_titled or any(lines[at].weight >= MAX_PROSE_WEIGHT or _weigh_setting(lines, at) for at in final)
        stops = stops if is_marked else [final.start, *stops]
    leads = [at for at, line in enumerate(lines[:MAX_LEAD_LINES], 1) if line.text.endswith(COLONS)][:1]
    for first in dict.fromkeys([*([0] if settings[0] else leads), *leads, blocks[0].stop]):
        is_led = 0 < first <= len(settings) and not settings[first - 1]
        for stop in stops:
            rest = [at for at in range(first, min(stop, len(settings))) if at not in printed]
            if not rest or (is_led and sum(line.words for line in lines[:first]) > MAX_LEAD_WORDS):
                continue
            least, least_whole = MIN_LED_WEIGHTS if is_led else MIN_BARE_WEIGHTS
            structure = sum(settings[at] for at in rest)
            is_set = (
                structure >= least
                and structure + SENTENCE_WEIGHT * _count_sentences(lines[at] for at in rest) >= least_whole
            )
            if is_set or (is_led and first not in printed and _leads_to_prose(lines, range(first, stop))):
                return range(first, stop)
    return range(len(lines) if not printed and _is_remark(lines) else 0)


def _weigh_setting(lines: Sequence[Line], at: int) -> float:
    """What the titles and the typography of a line weigh."""
    text = lines[at].text[:MAX_SENTENCE_SOURCE_CHARACTERS]
    is_title = _is_title(lines, at)
    is_below = at > 0 and lines[at - 1].block != lines[at].block and _is_title(lines, at - 1)
    titles = is_title * (TITLE_WEIGHT + SUBTITLE_WEIGHT * is_below)
    code = CODE_WEIGHT * min(3, len(re.findall("`+", text)) // 3) if "`" in text else 0.0
    return titles + code + TYPOGRAPHY_WEIGHT * (not text.isascii() and not _TYPOGRAPHY.isdisjoint(text))


def _count_sentences(lines: Iterable[Line]) -> int:
    """How many sentences of some length lines have, at most four of each."""
    parts = (
        SENTENCE_END.split(line.text[:MAX_SENTENCE_SOURCE_CHARACTERS]) for line in lines if not line.text[0].islower()
    )
    return sum(min(4, sum(len(part) >= MIN_SENTENCE_CHARACTERS for part in each)) for each in parts)


def _is_title(lines: Sequence[Line], at: int) -> bool:
    """Whether a line is short, open-ended and followed by a longer one or an empty line."""
    line, after = lines[at], lines[min(at + 1, len(lines) - 1)]
    opens, ends = line.text[0], line.text[-1]
    is_marked = line.weight >= MAX_PROSE_WEIGHT or line.is_item or not (opens.isalnum() or opens in "#§*_")
    if is_marked or opens.islower() or ends in ".,;:!?。：！？" or line.words > MAX_TITLE_WORDS:
        return False
    return len(after.text) > len(line.text) or after.block != line.block


def _leads_to_prose(lines: Sequence[Line], body: range) -> bool:
    """Whether a line with a colon and an empty line lead to prose, and not to a list that the user typed."""
    lead, line = lines[body.start - 1], lines[body.start]
    is_apart = lead.text.endswith(COLONS) and 1 <= line.block - lead.block <= MAX_EMPTY_LINES
    is_wrapped = any(lines[at].indent > 0 and not lines[at].is_item for at in body)
    is_listed = (line.is_item and not is_wrapped) or line.text.startswith("**") or line.text[0].islower()
    is_question = lines[body.stop - 1].text.endswith(QUESTION_MARKS)
    return is_apart and not is_listed and not is_question and sum(lines[at].words for at in body) >= MIN_BODY_WORDS


def _is_remark(lines: Sequence[Line]) -> bool:
    """Whether a prompt is nothing but a reviewer's paragraphs: long sentences with an aside and without a first
    person."""
    text = " ".join(line.text for line in lines[: MAX_REMARK_LINES + 1])
    if len(lines) > MAX_REMARK_LINES or len(text) < MIN_REMARK_CHARACTERS or not {"?", "!"}.isdisjoint(text):
        return False
    is_long = sum(line.words for line in lines) >= MIN_REMARK_SENTENCE_WORDS * len(
        SENTENCE_END.split(text)
    ) and text.endswith(SENTENCE_MARKS)
    is_typed = any(line.is_item or line.text[0].islower() for line in lines)
    return is_long and not is_typed and " (" in text and not sentence.has("first_person", "en", text)
