"""Which parts of a prompt are somebody else's words; pure.

A paste is recognised by its form, in any language; no list of words decides.

* Program output: each line gets a weight for its marks (`OPENINGS`, `MARKS`), heavy lines claim their neighbours, and a
  block is output except for what was typed right before and after it.
* A document: the lines after the user's short lead are weighed by how they are set (`STRUCTURE`, `POLISH`, `TYPING`).
* Tags, `>` lines, indented blocks, mails, and statements in quotation marks.

In doubt a part is another's. Offsets are characters of the prompt. Code in fences and between backticks is left to the
reader of prose: a tag in it tags nothing. A mail goes to the end of its prompt, since nothing says where its last line is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from csmd.cache import cached
from csmd.text.prose import Span, with_newlines
from csmd.text.tokens import content_words, stem


class Mark(NamedTuple):
    """A sign of a program on a line: what it weighs, the regular expression that finds it."""

    weight: float
    pattern: str


#: Nobody types more characters: of a longer prompt the middle is pasted.
TYPED_CHARACTERS = 50_000
#: Marks that open a line; the first that matches counts in full.
OPENINGS = {
    "box": Mark(2.0, r"[\u2500-\u259f⏺⎿]"),
    "shell prompt": Mark(2.0, r"(?:\([\w.-]+\) ?)?(?:[\w.~/-]+ +)?[$❯➜λ⨯✖✗](?: |$)|[\w.-]+@[\w.-]+[ :].*[:~/]"),
    "time": Mark(1.5, r"[\[(]?(?:\w+=)?\d{1,4}[-/:.]\d\d[-/:.]\d\d|[\[(]?\d{1,2}:\d\d(?: ?[AP]M)?[\])]? ?\S"),
    "json": Mark(1.0, r"[{}\[\]][,;]?$|\[\[?[\w.:/-]+\]\]?$|[\"'][\w$@./ -]{1,60}[\"'] ?:"),
    "step": Mark(1.0, r"#\d+ [A-Z\[]|[A-Z]{3,}\[\w+\]|@@ |\+\+\+ |--- \S|={3,} \S|at \S+ \(|File \""),
    "rule": Mark(1.0, r"(?:[=*_~#-] ?){4,}"),
    "tag": Mark(1.0, r"\[[\w./-]*[:./\d-][\w.:/-]*\] ?\S"),
    "bracket": Mark(0.7, r"\[[\w.:/-]{2,40}\] ?\S"),
    "level": Mark(0.7, r"[A-Z]{4,}:? |[•✓✔▶●] ?\S|\w+(?: \w+)?[\[(][\w.]+[\])]: "),
    "row": Mark(0.5, r"(?:- )?[^\W\d_][\w.$/-]{0,40}(?:(?: [\w.-]{1,20})?: +\S|:$)"),
}
#: Marks anywhere on a line; each occurrence counts, the less the more plain words there are.
MARKS = {
    "time of day": Mark(1.0, r"\b\d\d:\d\d:\d\d"),
    "address": Mark(0.3, r"\b\w+://[^\s<>'\"]+"),
    "place": Mark(0.7, r"[\w)]:\d+(?::\d+)?\b"),
    "assignment": Mark(0.4, r"\b[\w.-]+ ?:?=+ ?[\w\"'\[{(/<]"),
    "scope": Mark(0.4, r"\w::\w|=>|\w\(|\)\s*\{|[{;\\]$"),
    "key": Mark(0.4, r"['\"\])>]:(?=\s|$)"),
    "hash": Mark(0.4, r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"),
    "chain": Mark(0.3, r"\w: (?=[a-z])"),
    "byline": Mark(1.4, r" [\[(]?\d{1,2}:\d\d(?: ?[AP]M)?[\])]?$"),
    "column": Mark(0.5, r"(?<=\S)(?: {3,}|\t+)(?=\S)"),
    "dots": Mark(0.7, r" \.{3} |\.{4,}"),
    "name": Mark(0.25, r"\b\w*[a-z][A-Z]\w*|\b\w+_\w+\b|\w@\d"),
    "path": Mark(0.2, r"(?<![\w/])[\w.~$-]*/[\w.@-]+(?:/[\w.@-]*)*|\b\w+\.\w+\.\w+"),
    "option": Mark(0.2, r"(?<!\S)--?[a-zA-Z][\w-]*"),
    "measure": Mark(0.3, r"\b\d+(?:\.\d+)*(?:ms|s|%| ?[KMG]i?B)(?!\w)"),
    "number": Mark(0.15, r"\b\d+(?:\.\d+)*\b"),
}
#: Plain words per line at which its marks count half.
PLAIN_WORDS = 9
#: Added to a line that is indented, to one that a line with a colon leads to, and to one that opens like its neighbour.
MOVED_IN, LED_INTO, REPEATED = 0.4, 0.4, 0.4
#: Words of a row that repeats the first and last word of the row above.
ROW_WORDS = 3
#: Weight of a line of output: by itself, beside another one in its block, and beside one across a blank line.
PRINTED, BESIDE, APART = 1.0, 0.4, 0.6
#: Weight of a line of output that is the whole prompt.
ALONE = 2.0
#: Mean and least weight of the lines of a block of output without any heavy line, in a prompt with other blocks.
BLOCK, BLOCK_LEAST = 0.45, 0.25
#: A typed line has at least so many plain words and weighs less than this.
PROSE_WORDS, PROSE_MARK = 4, 0.35
#: Plain words of the user's before output in the same line.
LEADING_WORDS = 3
#: Characters of a line that are weighed.
READ = 400

#: How a document is set, line by line: what of it is structure, and what is polish.
STRUCTURE = {
    "heading": 1.5,
    "bold": 1.0,
    "table": 1.0,
    "title": 1.0,
    "wrapped": 0.8,
    "typography": 0.5,
    "code": 0.5,
    "moved in": 0.3,
}
POLISH = {"sentence": 0.4, "names": 0.3}
#: How typing shows: a line in lower case, a question, a long line without full stop.
TYPING = {"lower case": -1.0, "question": -0.7, "open end": -0.6}
#: How the user's own lines lead to a document.
LEAD = {"colon": 1.0, "short": 0.5, "lower case": 0.5, "question": 0.25}
#: Weight of a document; how much of it is structure, with a lead and without one.
DOCUMENT, STRUCTURED, WITHOUT_LEAD = 2.75, 0.8, 1.5
#: Most words of a lead, most lines before its colon, and characters of a document of plain prose behind a colon.
LEAD_WORDS, LEAD_LINES, PLAIN_DOCUMENT = 45, 4, 300
#: Lines that a document is recognised by, and characters of a line that are split into sentences.
DOCUMENT_LINES, SENTENCES_READ = 400, 1500
#: Least characters of a sentence that shows polish, and how many of a line count.
SENTENCE, SENTENCES = 40, 4
#: Most words and characters of a title; a prompt that begins with one of so few words has no lead.
TITLE_WORDS, TITLE_CHARACTERS, SHORT_TITLE = 12, 90, 8
#: Least characters of a line that is wrapped, stretches of inline code that show, and weight that shows names of code.
WRAPPED_CHARACTERS, MUCH_CODE, NAMES = 60, 3, 0.3
#: A reviewer's remark: least words per sentence, characters, and weight of its names.
REMARK_WORDS, REMARK_CHARACTERS, REMARK_MARKS = 15, 200, 0.2
#: Most paragraphs of a remark, and titles above them.
REMARK_LINES, REMARK_TITLES = 3, 2

#: The host's fixed line above a plan that the user accepted; such a plan is no paste.
ACCEPTED_PLAN = "Implement the following plan:"

#: Least words of a statement in quotation marks, and most words before it in its sentence.
QUOTED_WORDS, ATTRIBUTION_WORDS = 4, 6
#: From so many words on, text in quotation marks is another's whatever stands around it.
LONG_WORDS = 20

_OPENING = re.compile("|".join(f"({mark.pattern})" for mark in OPENINGS.values()))
_MARK = re.compile("|".join(f"({mark.pattern})" for mark in MARKS.values()))
_OPENING_WEIGHTS = [mark.weight for mark in OPENINGS.values()]
_MARK_WEIGHTS = [mark.weight for mark in MARKS.values()]
_CODE = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL
)
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,500})?>")
#: Text in tags inside a line is quoted from so many characters on: less is emphasis.
TAGGED_CHARACTERS = 60
_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]")
_HEADER = re.compile(r"[ \t*_]{0,5}([^\W\d_][\w -]{0,20}?)[*_]{0,2}:[*_]{0,2}[ \t]+(\S.*)$")
#: The header lines of a mail; whatever their language, one of three or more names an address.
_MAIL_HEADERS = frozenset({"from", "to", "cc", "date", "sent", "subject", "reply-to"})
_ADDRESS = re.compile(r"[^\s<>@]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
#: Text between quotation marks of any script, in one line.
_IN_MARKS = re.compile(
    r"(?<![A-Za-z0-9'\"])\"(?=\S)[^\"\n]{8,600}(?<=\S)\"(?![A-Za-z0-9'])|“[^“”\n]{8,600}”|„[^„“”\n]{8,600}[“”]|«[^«»\n]{8,600}»|「[^「」\n]{4,600}」"
)
#: Where a line may go on with what a program printed.
_LEAD_END = re.compile(r"(?<![.!?:…])[.!?:…]++[\"”)]*\s+|\s{3,}|[。！？：]")
_SENTENCE_END = re.compile(r"(?<![.!?:…])[.!?:…]++[\"”)]*\s+|[。！？：]")
#: Marks that end a sentence, a question, and a line that leads to something.
_ENDS, _ASKS, _LEADS = tuple(".!?…。！？"), tuple("?？"), tuple(":：")
#: What follows a quotation that is a clause by itself.
_CLOSES = frozenset(["", *"\n,;.!?:)—–，。；！？"])
_TYPOGRAPHY = frozenset("—–“”‘’•→…×≥≤§©®")
#: Columns that a block is moved in by, and a tab.
INDENT = 4
#: A text with such a share of a statement's words states it.
STATED = 0.6


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that is not blank: where it stands, its text without margins, its columns of indent.

    `at` is where the text begins, `block` the number of its run of lines between blank ones, `words` the count of its
    plain words, and `printed` the weight of its marks.
    """

    start: int
    end: int
    at: int
    text: str
    indent: int
    block: int
    words: int
    printed: float

    @property
    def is_lower(self) -> bool:
        """Whether the line opens with a plain word in lower case."""
        opening = self.text.split(None, 1)[0]
        return opening.isalpha() and opening.islower()

    @property
    def is_typed(self) -> bool:
        """Whether a person may have typed the line: prose or a question, without marks of a program."""
        if self.indent or self.printed >= PROSE_MARK or not (self.text[0].isalpha() or self.text[0] in "`\"'¿¡"):
            return False
        return self.words >= PROSE_WORDS or self.text.endswith(_ASKS)

    @property
    def is_remarked(self) -> bool:
        """Whether a person typed the line right below a paste: a question, or not set like a sentence of a text."""
        return self.is_typed and (self.text.endswith(_ASKS) or not self.text[0].isupper())


def quotations(prompt: str) -> tuple[Span, ...]:
    """The spans of a prompt that are another's words, in order and disjoint."""
    if len(prompt) <= TYPED_CHARACTERS:
        return _among(prompt)
    head, tail = TYPED_CHARACTERS // 2, len(prompt) - TYPED_CHARACTERS // 2
    behind = (Span(tail + start, tail + end) for start, end in _among(prompt[tail:]))
    return (*_among(prompt[:head]), Span(head, tail), *behind)


def own_words(prompt: str) -> str:
    """A prompt with blanks for what it quotes: as long as before, its lines where they were."""
    parts: list[str] = []
    at = 0
    for span in _of(prompt):
        parts += (prompt[at : span.start], _blank(with_newlines(prompt[span.start : span.end]), " "))
        at = span.end
    return "".join((*parts, prompt[at:])) if parts else prompt


def is_quoted(prompt: str, start: int, end: int) -> bool:
    """Whether more than half of a stretch of a prompt is another's words."""
    among = sum(max(0, min(end, span.end) - max(start, span.start)) for span in _of(prompt))
    return 2 * among > end - start


def is_of_another(statement: str, prompt: str) -> bool:
    """Whether a statement from a prompt comes from what the prompt quotes and not from the user's own words."""
    spans = _of(prompt)
    said = {stem(word) for word in content_words(statement)}
    if not spans or not said:
        return False
    quoted, own = (
        len(said & {stem(word) for word in content_words(part)})
        for part in ("\n".join(prompt[start:end] for start, end in spans), own_words(prompt))
    )
    return quoted >= STATED * len(said) > own


def _among(prompt: str) -> tuple[Span, ...]:
    """The quotations of a prompt that somebody may have typed."""
    prompt = with_newlines(prompt)
    # A fence leaves empty lines, code in a line what is no white space.
    plain = _CODE.sub(lambda code: _blank(code.group(), " " if code[1] else "`"), prompt)
    marked = [*_tagged(plain), *_marked(plain), *_mails(plain)]
    if plain.lstrip().startswith(ACCEPTED_PLAN):
        return _merged([*marked, *_trailer(plain)])
    lines = _lines(_without(plain, marked))
    printed = _printed(lines)
    cut = _led_into(lines[0].text[:READ], BESIDE if any(printed[:2]) else PRINTED) if lines else 0
    return _merged([*marked, *_pasted(lines, printed, cut), *_document(lines, printed, cut), *_attributed(plain)])


_of = cached(64)(quotations)


def _merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans in order, those that touch joined."""
    apart: list[Span] = []
    for span in sorted(spans):
        if apart and span.start <= apart[-1].end:
            apart[-1] = Span(apart[-1].start, max(apart[-1].end, span.end))
        else:
            apart.append(span)
    return tuple(apart)


def _without(plain: str, spans: Sequence[Span]) -> str:
    """A text with blanks for these spans."""
    parts: list[str] = []
    at = 0
    for start, end in _merged(spans):
        parts += (plain[at:start], _blank(plain[start:end], " "))
        at = end
    return "".join((*parts, plain[at:]))


# -- what programs print ----------------------------------------------------------------------------------------------


def _lines(plain: str) -> list[_Line]:
    """The lines of a text that are not blank, each with the weight of its marks."""
    rows = [match for match in _LINE.finditer(plain) if match.group().strip()]
    margin = min((_indent(match.group()) for match in rows), default=0)
    found: list[_Line] = []
    block = 0
    for match in rows:
        text = match.group().strip()
        at = match.start() + match.group().index(text)
        indent = _indent(match.group()) - margin
        apart = bool(found) and bool(plain[found[-1].end : match.start()])
        block += apart
        is_item = _ITEM.match(match.group()) is not None
        is_moved = indent > 0 and not is_item
        is_led = is_moved and bool(found) and found[-1].text.endswith(_LEADS)
        repeats = not apart and not is_item and bool(found) and _is_repeated(found[-1].text, text)
        words = _plain_words(text[:READ])
        weight = _weight(text[:READ], words) + MOVED_IN * is_moved + LED_INTO * is_led
        if repeats and 0 < found[-1].printed < PRINTED:
            found[-1] = replace(found[-1], printed=found[-1].printed + REPEATED)
        weight += REPEATED * (repeats and weight > 0)
        found.append(_Line(match.start(), match.end(), at, text, indent, block, words, weight))
    return found


def _is_repeated(before: str, text: str) -> bool:
    """Whether two lines begin with the same two words, or are rows of as many words around the same first one."""
    one, other = before[:READ].split(), text[:READ].split()
    is_row = len(one) == len(other) >= ROW_WORDS and one[-1] == other[-1]
    return one[0] == other[0] and len(one) > 1 and len(other) > 1 and (one[1] == other[1] or is_row)


def _weight(text: str, words: int) -> float:
    """What the marks of a program on a line of so many plain words weigh."""
    opening = _OPENING.match(text)
    tokens = text.split()
    # Lines of nothing but plain words are the most, and have no marks.
    is_plain = words == len(tokens) and "  " not in text and ":" not in text
    has_marks = not is_plain or any(token[1:] != token[1:].lower() for token in tokens)
    marks = sum(_MARK_WEIGHTS[(match.lastindex or 1) - 1] for match in _MARK.finditer(text)) if has_marks else 0.0
    return (_OPENING_WEIGHTS[(opening.lastindex or 1) - 1] if opening else 0.0) + marks / (1 + words / PLAIN_WORDS)


def _plain_words(text: str) -> int:
    """How many words of a text are letters only; of a script without spaces two letters are one."""
    words = 0
    for token in text.split():
        if token.isascii():
            words += token.isalpha() or token.strip("\"'()*_.,;:!?").replace("'", "").replace("-", "").isalpha()
        elif any(map(str.islower, token)):
            words += 1
        else:
            words += sum(map(str.isalpha, token)) // 2
    return words


def _blocks(lines: Sequence[_Line]) -> list[tuple[int, int]]:
    """The runs of lines between blank ones: (first, last + 1)."""
    starts = [at for at, line in enumerate(lines) if not at or line.block != lines[at - 1].block]
    return list(pairwise([*starts, len(lines)]))


def _printed(lines: Sequence[_Line]) -> list[bool]:
    """Which lines a program printed: marked ones, and the unmarked ones between and beside them."""
    blocks = _blocks(lines)
    printed = [line.printed >= (PRINTED if len(lines) > 1 else ALONE) for line in lines]
    for first, last in blocks:
        weights = [line.printed for line in lines[first:last]]
        is_even = last - first > 1 and min(weights) >= BLOCK_LEAST and sum(weights) >= BLOCK * len(weights)
        if is_even and len(blocks) > 1:
            printed[first:last] = [True] * (last - first)
    _spread(lines, printed, range(1, len(lines)), -1)
    _spread(lines, printed, range(len(lines) - 2, -1, -1), 1)
    marked = [number for number, (first, last) in enumerate(blocks) if any(printed[first:last])]
    for number, (first, last) in enumerate(blocks):
        if number in marked:
            _fill(lines, printed, first, last, is_alone=len(marked) == len(blocks))
        elif marked and marked[0] < number < marked[-1] and not lines[first].is_typed:
            printed[first:last] = [True] * (last - first)
    return printed


def _spread(lines: Sequence[_Line], printed: list[bool], order: range, step: int) -> None:
    """Marks the lines beside printed ones that have some marks themselves."""
    for at in order:
        beside = lines[at + step]
        least = BESIDE if beside.block == lines[at].block else APART
        printed[at] = printed[at] or (printed[at + step] and lines[at].printed >= least)


def _fill(lines: Sequence[_Line], printed: list[bool], first: int, last: int, *, is_alone: bool) -> None:
    """Marks a block from its first printed line to its end, but for what was typed right before and after.

    Only where no other block is the user's (`is_alone`), what follows the last printed line may be.
    """
    marks = [at for at in range(first, last) if printed[at]]
    begin, end = first, last
    while begin < marks[0] and not (begin and lines[begin - 1].text.endswith(_LEADS)):
        if not (lines[begin].is_typed or (not first and lines[begin].printed < PROSE_MARK)):
            break
        begin += 1
    while is_alone and end - 1 > marks[-1] and lines[end - 1].is_remarked:
        end -= 1
    printed[begin:end] = [True] * (end - begin)


def _pasted(lines: Sequence[_Line], printed: Sequence[bool], cut: int) -> list[Span]:
    """The spans of printed lines; the first line of a prompt may begin with the user's words."""
    spans = [Span(line.start, line.end) for line, is_printed in zip(lines, printed, strict=True) if is_printed]
    if cut:
        spans = [span for span in spans if span.start != lines[0].start]
        spans.append(Span(lines[0].at + cut, lines[0].end))
    return spans


def _led_into(text: str, least: float) -> int:
    """Where in a line the user's words end and a program's begin, which weigh at least so much; 0 for nowhere."""
    for end in _LEAD_END.finditer(text):
        lead, rest = text[: end.end()], text[end.end() :]
        words = _plain_words(lead)
        is_lead = words >= LEADING_WORDS and lead[0].isalpha() and _weight(lead.strip(), words) < PROSE_MARK
        if is_lead and not rest.endswith(_LEADS) and _weight(rest, _plain_words(rest)) >= least:
            return end.end()
    return 0


# -- documents --------------------------------------------------------------------------------------------------------


class _Setting(NamedTuple):
    """How a stretch of a prompt is set: what its structure, polish and signs of typing weigh."""

    structure: float
    polish: float
    typing: float


def _document(lines: Sequence[_Line], printed: Sequence[bool], cut: int) -> list[Span]:
    """The span of a document in a prompt beside the user's own words before and after it."""
    if not lines:
        return []
    if _is_remark(lines, printed):
        return [Span(lines[0].start, lines[-1].end)]
    settings = [_setting(lines, at) for at in range(min(DOCUMENT_LINES, len(lines)))]
    blocks = _blocks(lines)
    last = len(lines)
    final = slice(*blocks[-1])
    is_short = len(blocks) > 1 and final.stop - final.start <= LEAD_LINES and _words(lines[final]) <= LEAD_WORDS
    is_below = final.start > 0 and lines[final.start - 1].text.startswith("#")
    if is_short and not is_below and not any(_setting(lines, at).structure for at in range(final.start, final.stop)):
        last = final.start
    ends = [at + 1 for at in range(min(LEAD_LINES, last - 1)) if lines[at].text.endswith(_LEADS)][:1]
    if blocks[0][1] < last and blocks[0][1] not in ends:
        ends.append(blocks[0][1])
    # Without a lead it begins where its structure does; a short title is no lead.
    structured = [
        begin
        for begin, end in blocks
        if not lines[begin].is_typed or any(setting.structure for setting in settings[begin:end])
    ][:1]
    is_titled = structured == [0] and lines[0].words <= SHORT_TITLE and not lines[0].text.endswith(_LEADS + _ASKS)
    starts = [*structured, *ends] if is_titled else [*ends, *structured]
    for first in starts:
        for end in dict.fromkeys((last, len(lines))):
            if first < end and _is_document(lines, settings, printed, first, end, has_lead=first in ends):
                return [Span(lines[first].start if first else lines[0].at + cut, lines[end - 1].end)]
    return []


def _is_document(
    lines: Sequence[_Line],
    settings: Sequence[_Setting],
    printed: Sequence[bool],
    first: int,
    end: int,
    *,
    has_lead: bool,
) -> bool:
    """Whether the lines from `first` to `end` are a document; the lines before it may be its lead."""
    rest = [
        setting for setting, is_printed in zip(settings[first:end], printed[first:end], strict=False) if not is_printed
    ]
    structure, polish, typing = (sum(weights) for weights in zip(*rest, strict=True)) if rest else (0.0, 0.0, 0.0)
    lead, body = _words(lines[:first]), _words(lines[first:end])
    bonus, least = 0.0, WITHOUT_LEAD
    if first and has_lead and not printed[first]:
        if lead > LEAD_WORDS or lead > body:
            return False
        bonus = _lead_weight(lines[:first], is_short=4 * lead <= body)
        is_long = sum(len(line.text) for line in lines[first:end]) >= PLAIN_DOCUMENT
        has_items = any(_ITEM.match(line.text) for line in lines[first:end])
        is_plain = is_long and not has_items and not any(printed[first:end])
        least = 0.0 if is_plain and lines[first - 1].text.endswith(_LEADS) else STRUCTURED
    return structure >= least and structure + polish + typing + bonus >= DOCUMENT


def _is_remark(lines: Sequence[_Line], printed: Sequence[bool]) -> bool:
    """Whether a prompt is nothing but a reviewer's paragraphs: long sentences with asides about names, no talk."""
    body = [line for line in lines if line.words > TITLE_WORDS]
    text = " ".join(line.text for line in body)
    titles = len(lines) - len(body)
    if any(printed) or len(text) < REMARK_CHARACTERS or len(body) > REMARK_LINES or titles > REMARK_TITLES:
        return False
    if any(line.is_lower or line.indent or _ITEM.match(line.text) for line in body):
        return False
    marks = sum(line.printed * (1 + line.words / PLAIN_WORDS) for line in body)
    sentences = sum(len(part) >= SENTENCE for part in _SENTENCE_END.split(text[:SENTENCES_READ]))
    has_aside = any(" " in part.partition(")")[0] for part in text.split(" (")[1:])
    is_talk = any(mark in text for mark in "?？!！") or not text.endswith(_ENDS)
    return has_aside and not is_talk and marks >= REMARK_MARKS and _words(body) >= REMARK_WORDS * max(1, sentences)


def _lead_weight(lead: Sequence[_Line], *, is_short: bool) -> float:
    """What the lines before a document weigh for it."""
    shows = {
        "colon": lead[-1].text.endswith(_LEADS),
        "short": is_short,
        "lower case": lead[0].text[0].islower(),
        "question": lead[-1].text.endswith(_ASKS),
    }
    return sum(LEAD[name] for name, is_shown in shows.items() if is_shown)


def _setting(lines: Sequence[_Line], at: int) -> _Setting:
    """How a line is set, given the lines around it."""
    line = lines[at]
    text = line.text
    after = lines[at + 1] if at + 1 < len(lines) else None
    is_item = _ITEM.match(text) is not None
    goes_on = at > 0 and _is_wrapped(lines[at - 1], line)
    wraps = after is not None and _is_wrapped(line, after)
    is_title = not is_item and not goes_on and after is not None and _is_title(line, after)
    is_open = len(text) >= WRAPPED_CHARACTERS and text[-1].isalpha() and not (wraps or is_title or is_item)
    shows = {
        "heading": text.startswith("#") and text.lstrip("#")[:1] == " ",
        "bold": text.lstrip("-*•0123456789.) ").startswith("**") or text.startswith("**"),
        "table": text.startswith("|"),
        "title": is_title,
        "wrapped": wraps,
        "typography": not _TYPOGRAPHY.isdisjoint(text),
        "code": sum(this == "`" != that for that, this in pairwise(f" {text}")) >= MUCH_CODE,
        "moved in": line.indent > 0 and not is_item,
        "lower case": line.is_lower and not goes_on,
        "question": text.endswith(_ASKS),
        "open end": is_open,
        "names": line.printed >= NAMES,
    }
    structure, polish, typing = (
        sum(weight for name, weight in table.items() if shows.get(name)) for table in (STRUCTURE, POLISH, TYPING)
    )
    sentences = sum(len(part) >= SENTENCE for part in _SENTENCE_END.split(text[:SENTENCES_READ]))
    return _Setting(
        structure, polish + (0.0 if line.is_lower else POLISH["sentence"] * min(SENTENCES, sentences)), typing
    )


def _is_title(line: _Line, after: _Line) -> bool:
    """Whether a line is short, open-ended and followed by longer prose."""
    if line.text[0].islower() or line.text[-1] in ".,;:!?。：！？" or line.words > TITLE_WORDS:
        return False
    if len(line.text) > TITLE_CHARACTERS:
        return False
    return len(after.text) > len(line.text) or after.block != line.block


def _is_wrapped(line: _Line, after: _Line) -> bool:
    """Whether a sentence goes on from a full line to the next."""
    if line.block != after.block or len(line.text) < WRAPPED_CHARACTERS or line.text.endswith(_ENDS + _LEADS):
        return False
    return not _ITEM.match(after.text) and (after.text[0].islower() or after.indent > line.indent)


def _words(lines: Sequence[_Line]) -> int:
    return sum(line.words for line in lines)


def _attributed(plain: str) -> list[Span]:
    """Statements in quotation marks that a few words of the same sentence attribute to somebody."""
    spans: list[Span] = []
    for match in _IN_MARKS.finditer(plain):
        inside = match.group()[1:-1]
        before = plain[max(0, match.start() - READ) : match.start()].rpartition("\n")[2]
        lead = _SENTENCE_END.split(before)[-1]
        words = _plain_words(inside)
        closes = inside.endswith(_ENDS) or plain[match.end() : match.end() + 1] in _CLOSES
        is_short = words >= QUOTED_WORDS and closes and 1 <= len(lead.split()) <= ATTRIBUTION_WORDS
        if (is_short or words >= LONG_WORDS) and _weight(inside, words) < PROSE_MARK:
            spans.append(Span(*match.span()))
    return spans


def _trailer(plain: str) -> list[Span]:
    """What the host adds below an accepted plan: a last paragraph that ends with the path of a file."""
    text = plain.rstrip()
    start = text.rfind("\n\n") + 2
    lead, _, path = text[start:].rpartition(" ")
    is_added = start > 1 and "\n" not in text[start:] and lead.endswith(_LEADS) and path.startswith(("/", "~"))
    return [Span(start, len(plain))] if is_added else []


# -- marked quotations ------------------------------------------------------------------------------------------------


def _tagged(plain: str) -> list[Span]:
    """The spans from an opening tag to the one that closes it."""
    spans: list[Span] = []
    open_at: dict[str, int] = {}
    depth: dict[str, int] = {}
    for tag in _TAG.finditer(plain):
        closes, name = tag.groups()
        if not closes:
            open_at.setdefault(name, tag.start())
            depth[name] = depth.get(name, 0) + 1
        elif depth.get(name):
            depth[name] -= 1
            if not depth[name]:
                start = open_at.pop(name)
                whole = plain[start : tag.end()]
                opens_line = not plain[plain.rfind("\n", 0, start) + 1 : start].strip()
                if opens_line or "\n" in whole or len(whole) >= TAGGED_CHARACTERS:
                    spans.append(Span(start, tag.end()))
    return spans


def _marked(plain: str) -> list[Span]:
    """Lines behind a `>`, and blocks that are moved in and belong to no list."""
    spans: list[Span] = []
    least = min((_indent(line) for line in plain.splitlines() if line.strip()), default=0)
    apart, block, in_list = True, False, False
    for match in _LINE.finditer(plain):
        line = match.group()
        if not line.strip():
            apart = True
            continue
        moved_in = _indent(line) - least
        if line.lstrip().startswith(">"):
            spans.append(Span(*match.span()))
            block = False
        elif moved_in >= INDENT and (block or (apart and not in_list)):
            spans.append(Span(*match.span()))
            block = True
        else:
            block = False
            in_list = bool(_ITEM.match(line)) or (in_list and (not apart or moved_in > 0))
        # What a line leads into needs no empty line before it.
        apart = line.rstrip().endswith(":")
    return spans


def _mails(plain: str) -> list[Span]:
    """A mail from its headers on."""
    known: set[str] = set()
    begin, headers, has_address = 0, 0, False
    for match in _LINE.finditer(plain):
        header = _HEADER.match(match.group().rstrip())
        if header is None:
            known, headers, has_address = set(), 0, False
            continue
        begin = begin if headers else match.start()
        headers += 1
        known |= _MAIL_HEADERS & {header[1].casefold()}
        has_address = has_address or bool(_ADDRESS.search(header[2]))
        if (len(known) >= 2 and ("subject" in known or has_address)) or (headers >= 3 and has_address):
            return [Span(begin, len(plain))]
    return []


def _blank(said: str, character: str) -> str:
    """A text of as many lines of the same lengths, filled with one character."""
    return "\n".join(character * len(line) for line in said.split("\n"))


def _indent(line: str) -> int:
    """Columns before a line's first character."""
    expanded = line.expandtabs(INDENT)
    return len(expanded) - len(expanded.lstrip(" "))
