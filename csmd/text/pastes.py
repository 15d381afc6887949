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
TOKEN, PLAIN_WORDS, MOVED_IN, REPEATED = 0.8, 9, 0.4, 0.6
#: Weight of a line of output, and of one that is the whole prompt.
PRINTED, ALONE = 1.0, 2.5
#: Mean weight of a block of output without such a line: of many lines, of two (one beside output), of the only block.
EVEN, PAIR, ONLY = 0.36, 0.45, 0.7
#: A typed line has at least PROSE_WORDS plain words and less weight than PROSE_MARK.
PROSE_WORDS, PROSE_MARK = 4, 0.35
#: How lines of a document are set: a title, one below a title and an empty line, typography, three stretches of code,
#: and sentences.
TITLE, SUBTITLE, TYPOGRAPHY, CODE, SENTENCE = 0.8, 1.5, 0.5, 0.5, 0.4
#: Least weight of a document without sentences, and with them: below a lead, and without one.
LED, BARE = (0.8, 1.5), (1.7, 2.75)
#: Most words and lines of what is typed around a document, words of a title, least ones of prose behind a colon, and
#: most empty lines between the two.
LEAD_WORDS, LEAD_LINES, TITLE_WORDS, PROSE, EMPTY_LINES = 45, 4, 12, 8, 2
#: A reviewer's remark is a prompt of so many characters, of sentences of so many words, and of at most so many lines.
REMARK_CHARACTERS, REMARK_WORDS, REMARK_LINES = 200, 15, 3
#: Characters of a line that are weighed, that are split into sentences, and of a sentence; lines of a document.
READ, SENTENCES_READ, SENTENCE_CHARACTERS, DOCUMENT_LINES = 400, 1500, 40, 200
#: Columns of a tab.
TAB = 4

_OPENINGS, _TOKENS = ([form for form in FORMS if form.where == where] for where in ("line", "token"))
_OPENING, _TOKEN = (re.compile("|".join(f"({form.pattern})" for form in forms)) for forms in (_OPENINGS, _TOKENS))
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])[ \t]")
#: Letters of scripts without spaces.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
SENTENCE_END = re.compile(r"(?<![.!?:…])[.!?:…]++[\"”)]*\s+|[。！？：]")
#: Where a line may go on with what a program printed.
_BREAK = re.compile(rf"{SENTENCE_END.pattern}|\s{{3,}}")
#: Marks that end a sentence, a question, and a line that leads to something.
ENDS, ASKS, COLONS = tuple(".!?…。！？"), tuple("?？"), tuple(":：")
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
        is_plain = self.weight < PROSE_MARK and not self.indent and (self.text[0].isalpha() or self.text[0] in "`\"'¿¡")
        return is_plain and (self.words >= PROSE_WORDS or self.text.endswith(ASKS))

    @property
    def is_item(self) -> bool:
        """Whether the line is an item of a list."""
        return _ITEM.match(self.text) is not None


def lines_of(plain: str) -> list[Line]:
    """The lines of a text that are not blank, not weighed yet."""
    lines: list[Line] = []
    start = block = 0
    for row in plain.split("\n"):
        if text := row.strip():
            at = 0 if row[0] == text[0] else row.index(text[0])
            indent = len(row[:at].expandtabs(TAB))
            lines.append(Line(start, min(start + len(row) + 1, len(plain)), start + at, text, indent, block))
        block += not text
        start += len(row) + 1
    margin = min((line.indent for line in lines), default=0)
    return [line._replace(indent=line.indent - margin) for line in lines] if margin else lines


def pasted(lines: list[Line]) -> list[Span]:
    """The spans of what programs printed and of a document."""
    if not lines:
        return []
    is_led = False
    for at, line in enumerate(lines):
        words, weight = weigh(line.text[:READ])
        if not line.indent:
            is_led = line.text.endswith(COLONS) and not line.text[0].islower() and words <= TITLE_WORDS
        is_moved = line.indent > 0 and not line.is_item and (weight or not is_led)
        lines[at] = Line(*line[:6], words, weight + MOVED_IN * bool(is_moved))
    starts = [at for at, line in enumerate(lines) if not at or line.block != lines[at - 1].block]
    blocks = [range(*edges) for edges in zip(starts, [*starts[1:], len(lines)], strict=True)]
    printed = _printed(lines, blocks)
    cut = _led_into(lines[0].text[:READ])
    begin = lines[0].at + cut if cut else lines[0].start
    numbers = printed.union(_document(lines, blocks, printed), [0] if cut else [])
    return [Span(lines[at].start if at else begin, lines[at].end) for at in numbers]


def weigh(text: str) -> tuple[int, float]:
    """(plain words, weight of its marks) of a line; of a script without spaces two letters are a word."""
    opening = _OPENING.match(text)
    opens = _OPENINGS[(opening.lastindex or 1) - 1].weight if opening else 0.0
    weights = [_weigh_token(token) for token in text.split()]
    words = sum(words for words, _ in weights)
    thin = 1 + words / PLAIN_WORDS
    opens /= 1 if opens >= PRINTED or text[:1].islower() else thin
    return words, opens + sum(weight for _, weight in weights) / thin


@cached(8192)
def _weigh_token(token: str) -> tuple[int, float]:
    """(plain words, weight) of a token of a line, one of which is 0."""
    bare = token.strip("\"'()*_.,;:!?")
    if not bare.isalpha() or not (bare[1:] == bare[1:].lower() or bare.isupper()):
        weight = sum(_TOKENS[(mark.lastindex or 1) - 1].weight for mark in _TOKEN.finditer(token[:READ]))
        if weight or not bare:
            return 0, min(weight, TOKEN)
    return 1 if bare.isascii() else max(1, len(_UNSPACED.findall(bare)) // 2), 0.0


def _printed(lines: list[Line], blocks: Sequence[range]) -> set[int]:
    """The numbers of the lines that a program printed: blocks but for what was typed at their ends."""
    for at in range(1, len(lines)):
        above, line = lines[at - 1], lines[at]
        opens = above.text[:READ].split(None, 2)[:2]
        is_marked = (above.weight and line.weight) or any(word != word.lower() for word in opens[1:])
        if is_marked and len(opens) > 1 and line.text[:READ].split(None, 2)[:2] == opens and above.block == line.block:
            lines[at - 1] = above._replace(weight=above.weight + REPEATED)
            lines[at] = line._replace(weight=line.weight + REPEATED)
    cores = [_core(lines, block) for block in blocks]
    weights = [[lines[at].weight for at in core] for core in cores]
    heavy = [max(each, default=0.0) >= (PRINTED if len(lines) > 1 else ALONE) for each in weights]
    near = [any(heavy[max(0, at - 1) : at + 2]) for at in range(len(blocks))]
    for number, each in enumerate(weights):
        least = ONLY if len(blocks) == 1 else PAIR if len(each) == 2 else EVEN
        is_even = len(each) > 1 and sum(each) >= least * len(each)
        heavy[number] |= is_even or (near[number] and each[:1] >= [PAIR])
    printed = {at for core, is_heavy in zip(cores, heavy, strict=True) if is_heavy for at in core}
    marked = [number for number, is_heavy in enumerate(heavy) if is_heavy]
    for number in range(*marked[:: len(marked) - 1]) if len(marked) > 1 else ():
        if not heavy[number] and not lines[blocks[number].start].is_typed:
            printed.update(blocks[number])
    return printed


def _led_into(text: str) -> int:
    """Where in a line the user's words end and a program's begin; 0 for nowhere."""
    for end in _BREAK.finditer(text):
        words, weight = weigh(text[: end.end()].strip())
        is_lead = words >= PROSE_WORDS - 1 and weight < PROSE_MARK and text[0].isalpha()
        if is_lead and weigh(text[end.end() :])[1] >= PRINTED:
            return end.end()
    return 0


def _core(lines: Sequence[Line], block: range) -> range:
    """The lines of a block without what was typed right before them, and at the end of a prompt right after them."""
    begin, end = block.start, block.stop
    while begin < end and (lines[begin].is_typed or (not block.start and lines[begin].weight < PROSE_MARK)):
        begin += 1
    if begin < end == len(lines) and lines[end - 1].is_typed and (end == 1 or lines[end - 2].weight >= PROSE_MARK):
        end -= not lines[end - 1].text[0].isupper() or lines[end - 1].text.endswith(ASKS)
    return range(begin, end)


def _document(lines: Sequence[Line], blocks: Sequence[range], printed: set[int]) -> range:
    """The lines of a document between what the user typed before and after it, or of a whole prompt."""
    settings = [_setting(lines, at) for at in range(min(DOCUMENT_LINES, len(lines)))]
    stops, final = [len(lines)], blocks[-1]
    if len(blocks) > 1 and len(final) <= LEAD_LINES and sum(lines[at].words for at in final) <= LEAD_WORDS:
        above = final.start - 1
        is_titled = lines[above].text[0] == "#" or (len(blocks[-2]) == 1 and _is_title(lines, above))
        is_marked = is_titled or any(lines[at].weight >= PROSE_MARK or _setting(lines, at) for at in final)
        stops = stops if is_marked else [final.start, *stops]
    leads = [at for at, line in enumerate(lines[:LEAD_LINES], 1) if line.text.endswith(COLONS)][:1]
    for first in dict.fromkeys([*([0] if settings[0] else leads), *leads, blocks[0].stop]):
        is_led = 0 < first <= len(settings) and not settings[first - 1]
        for stop in stops:
            rest = [at for at in range(first, min(stop, len(settings))) if at not in printed]
            if not rest or (is_led and sum(line.words for line in lines[:first]) > LEAD_WORDS):
                continue
            least, least_whole = LED if is_led else BARE
            structure = sum(settings[at] for at in rest)
            is_set = structure >= least and structure + SENTENCE * _sentences(lines[at] for at in rest) >= least_whole
            if is_set or (is_led and first not in printed and _leads_to_prose(lines, range(first, stop))):
                return range(first, stop)
    return range(len(lines) if not printed and _is_remark(lines) else 0)


def _setting(lines: Sequence[Line], at: int) -> float:
    """What the titles and the typography of a line weigh."""
    text = lines[at].text[:SENTENCES_READ]
    is_title = _is_title(lines, at)
    is_below = at > 0 and lines[at - 1].block != lines[at].block and _is_title(lines, at - 1)
    titles = is_title * (TITLE + SUBTITLE * is_below)
    code = CODE * min(3, len(re.findall("`+", text)) // 3) if "`" in text else 0.0
    return titles + code + TYPOGRAPHY * (not text.isascii() and not _TYPOGRAPHY.isdisjoint(text))


def _sentences(lines: Iterable[Line]) -> int:
    """How many sentences of some length lines have, at most four of each."""
    parts = (SENTENCE_END.split(line.text[:SENTENCES_READ]) for line in lines if not line.text[0].islower())
    return sum(min(4, sum(len(part) >= SENTENCE_CHARACTERS for part in each)) for each in parts)


def _is_title(lines: Sequence[Line], at: int) -> bool:
    """Whether a line is short, open-ended and followed by a longer one or an empty line."""
    line, after = lines[at], lines[min(at + 1, len(lines) - 1)]
    opens, ends = line.text[0], line.text[-1]
    is_marked = line.weight >= PROSE_MARK or line.is_item or not (opens.isalnum() or opens in "#§*_")
    if is_marked or opens.islower() or ends in ".,;:!?。：！？" or line.words > TITLE_WORDS:
        return False
    return len(after.text) > len(line.text) or after.block != line.block


def _leads_to_prose(lines: Sequence[Line], body: range) -> bool:
    """Whether a line with a colon and an empty line lead to prose, and not to a list that the user typed."""
    lead, line = lines[body.start - 1], lines[body.start]
    is_apart = lead.text.endswith(COLONS) and 1 <= line.block - lead.block <= EMPTY_LINES
    is_wrapped = any(lines[at].indent > 0 and not lines[at].is_item for at in body)
    is_listed = (line.is_item and not is_wrapped) or line.text.startswith("**") or line.text[0].islower()
    is_question = lines[body.stop - 1].text.endswith(ASKS)
    return is_apart and not is_listed and not is_question and sum(lines[at].words for at in body) >= PROSE


def _is_remark(lines: Sequence[Line]) -> bool:
    """Whether a prompt is nothing but a reviewer's paragraphs: long sentences with an aside and without a first
    person."""
    text = " ".join(line.text for line in lines[: REMARK_LINES + 1])
    if len(lines) > REMARK_LINES or len(text) < REMARK_CHARACTERS or not {"?", "!"}.isdisjoint(text):
        return False
    is_long = sum(line.words for line in lines) >= REMARK_WORDS * len(SENTENCE_END.split(text)) and text.endswith(ENDS)
    is_typed = any(line.is_item or line.text[0].islower() for line in lines)
    return is_long and not is_typed and " (" in text and not sentence.has("first_person", "en", text)
