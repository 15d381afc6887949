"""Finds the quotations in a prompt: the parts that are another speaker's words; pure.

Quotations are tags, `>` lines, indented blocks, mails, text in quotation marks, reported claims, and unmarked pastes
(pastes.py). In doubt a part is a quotation. Offsets are characters of the prompt. Code in fences and between backticks
is left to prose.py, so tags in code do not count. A mail extends to the end of its prompt, because its last line is
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from csmd import data
from csmd.cache import cached
from csmd.text import pastes
from csmd.text.pastes import MAX_LINE_CHARACTERS, SENTENCE_END, SENTENCE_MARKS, Line, split_lines
from csmd.text.prose import Span, normalise_newlines
from csmd.text.tokens import content_stems, content_words, stem, words_of

#: Most characters that a person types; the middle of a longer prompt counts as pasted.
MAX_TYPED_CHARACTERS = 50_000
#: Most lines that a person types.
MAX_TYPED_LINES = 1000
#: The host's fixed line above a plan that the user accepted; the plan is not a paste.
ACCEPTED_PLAN = "Implement the following plan:"
#: Fewest words of a statement in quotation marks.
MIN_QUOTED_WORDS = 4
#: Most words before a quotation in its sentence that attribute it to a speaker.
MAX_ATTRIBUTION_WORDS = 6
#: Fewest words of a quotation without attribution.
MIN_UNATTRIBUTED_WORDS = 20
#: Shorter text in tags within a line is emphasis, not a quotation.
MIN_TAGGED_CHARACTERS = 60
#: Fewest columns by which a quoted block is indented.
MIN_INDENT = 4
#: Least share of a statement's words in a text that states it.
MIN_STATED_SHARE = 0.6

_CODE = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL
)
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,500})?>")
_HEADER = re.compile(r"[*_]{0,5}([^\W\d_][\w -]{0,20}?)[*_]{0,2}:[*_]{0,2}[ \t]+(\S.*)$")
#: The header lines of a mail. In other languages a mail has three or more, one with an address.
_MAIL_HEADERS = frozenset({"from", "to", "cc", "date", "sent", "subject", "reply-to"})
_ADDRESS = re.compile(r"[^\s<>@]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
#: Text between quotation marks of any script, in one line.
_IN_MARKS = re.compile(
    r"\"(?<![A-Za-z0-9'\"].)(?=\S)[^\"\n]{8,600}(?<=\S)\"(?![A-Za-z0-9'])|“[^“”\n]{8,600}”|„[^„“”\n]{8,600}[“”]"
    r"|«[^«»\n]{8,600}»|「[^「」\n]{4,600}」|『[^『』\n]{4,600}』"
)
#: Verbs of saying, and the words or marks between one and a claim.
_TABLE = data.word_table("sentence_words.txt")
_HANDED_ON = _TABLE["handed_on.en"] | _TABLE["handed_on.de"]
_SAYING = [words for name, words in _TABLE.items() if name.startswith("says.")]
_PHRASES = [phrase.replace("_", " ").rpartition(" ") for phrases in _SAYING for phrase in sorted(phrases)]
_VERBS = tuple(verb for verb, _, _ in _PHRASES if verb)
_LEADS = sorted({":", *(f" {lead}" if verb else lead for verb, _, lead in _PHRASES)})
_CLAUSE, _SENTENCE = (re.compile(rf",?[^\n{end}.;!?。；！？「『“„«\"]+") for end in (",，", ""))
_CLAUSE_MARK = re.compile(r"[\n.,;:!?。，；！？]")
#: Characters after a quotation that is a clause by itself.
_CLAUSE_ENDS = frozenset(["", *"\n,;.!?:)—–，。；！？"])


@cached(512)
def find_quotations(prompt: str) -> tuple[Span, ...]:
    """Finds the disjoint spans of a prompt that are another speaker's words, in order."""
    head, tail = _find_middle(prompt)
    if head >= tail:
        return _find_in_typed(prompt)
    last_spans = (Span(tail + start, tail + end) for start, end in _find_in_typed(prompt[tail:]))
    return (*_find_in_typed(prompt[:head]), Span(head, tail), *last_spans)


def blank_quotations(prompt: str) -> str:
    """Replaces the quotations of a prompt by blanks, without moving a line or changing its length."""
    return _blank_spans(prompt, find_quotations(prompt))


def is_quoted(prompt: str, start: int, end: int) -> bool:
    """Whether more than half of a stretch of a prompt is quoted."""
    size = sum(max(0, min(end, span.end) - max(start, span.start)) for span in find_quotations(prompt))
    return 2 * size > end - start


def is_of_another(statement: str, prompt: str) -> bool:
    """Whether a statement from a prompt comes from a quotation and not from the user's own words."""
    spans = find_quotations(prompt)
    stems = content_stems(statement)
    if not spans or not stems:
        return False
    parts = "\n".join(prompt[start:end] for start, end in spans), blank_quotations(prompt)
    quoted, typed = (len(stems & set(map(stem, content_words(part)))) for part in parts)
    return quoted >= MIN_STATED_SHARE * len(stems) > typed


def _find_middle(prompt: str) -> tuple[int, int]:
    """Returns the start and end of the middle of a long prompt; for a short one the end comes before the start."""
    head, tail = len(prompt), 0
    if len(prompt) > MAX_TYPED_CHARACTERS:
        head = MAX_TYPED_CHARACTERS // 2
        tail = len(prompt) - head
    if prompt.count("\n") > MAX_TYPED_LINES:
        head = min(head, len("\n".join(prompt.split("\n", MAX_TYPED_LINES // 2)[:-1])) + 1)
        tail = max(tail, len(prompt.rsplit("\n", MAX_TYPED_LINES // 2 + 1)[0]) + 1)
    return head, tail


def _find_in_typed(prompt: str) -> tuple[Span, ...]:
    """Finds the quotations of a prompt that a person may have typed."""
    prompt = normalise_newlines(prompt)
    # Fenced code becomes blank, code within a line backticks.
    plain = _CODE.sub(lambda code: _blank(code.group(), " " if code[1] else "`"), prompt)
    lines = split_lines(plain)
    marked = [*_find_tagged(plain), *_find_indented(lines), *_find_mails(lines)]
    if plain.lstrip().startswith(ACCEPTED_PLAN):
        return _merge([*marked, *_find_trailer(plain)])
    marked += [*_find_quoted(plain), *_find_reported(plain)]
    return _merge([*marked, *pastes.find_pasted(split_lines(_blank_spans(plain, marked)) if marked else lines)])


def _merge(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sorts spans, and joins those that touch."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def _blank_spans(text: str, spans: Iterable[Span]) -> str:
    """Replaces the spans of a text by blanks."""
    parts: list[str] = []
    previous_end = 0
    for start, end in _merge(spans):
        parts += (text[previous_end:start], _blank(normalise_newlines(text[start:end]), " "))
        previous_end = end
    return "".join((*parts, text[previous_end:]))


def _find_quoted(plain: str) -> list[Span]:
    """Finds text in quotation marks that is long, has several sentences, or is attributed to a speaker."""
    spans: list[Span] = []
    for match in _IN_MARKS.finditer(plain):
        inside = match.group()[1:-1]
        before = plain[max(0, match.start() - MAX_LINE_CHARACTERS) : match.start()].rpartition("\n")[2]
        words, weight = pastes.weigh_line(inside)
        is_closed = inside.endswith(SENTENCE_MARKS) or plain[match.end() : match.end() + 1] in _CLAUSE_ENDS
        attribution = SENTENCE_END.split(before)[-1].split()
        is_attributed = is_closed and (1 <= len(attribution) <= MAX_ATTRIBUTION_WORDS or _hands_on(before))
        is_long = words >= MIN_UNATTRIBUTED_WORDS or len(SENTENCE_END.split(inside.rstrip("".join(SENTENCE_MARKS)))) > 1
        if words >= MIN_QUOTED_WORDS and (is_attributed or is_long) and weight < pastes.MAX_PROSE_WEIGHT:
            spans.append(Span(*match.span()))
    return spans


def _hands_on(before: str) -> bool:
    """Whether the words before a quotation say whose it is and end with a colon: "a comment by Ben: "."""
    lead = before.rstrip()
    words = words_of(SENTENCE_END.split(lead.rstrip("".join(pastes.COLONS)))[-1])
    return lead.endswith(pastes.COLONS) and len(words) <= MAX_ATTRIBUTION_WORDS and not _HANDED_ON.isdisjoint(words)


def _find_reported(plain: str) -> list[Span]:
    """Finds the clauses that report another speaker's claim: the subject, the verb, and the claim."""
    spans: list[Span] = []
    for lead in _LEADS:
        for match in re.finditer(re.escape(lead), plain):
            has_comma = lead != ":" and plain.endswith(",", 0, match.start())
            end = match.start() - has_comma
            is_verb = plain.endswith(_VERBS, 0, end) or lead[0] not in " :"
            if not is_verb or (lead.isascii() and plain[match.end() : match.end() + 1].isalpha()):
                continue
            subject = _CLAUSE_MARK.split(plain[max(0, end - MAX_LINE_CHARACTERS) : end])[-1].lstrip()
            clause = (_SENTENCE if lead == ":" else _CLAUSE).match(plain, match.end())
            if clause:
                spans.append(Span(end - len(subject), clause.end()))
    return spans


def _find_trailer(plain: str) -> list[Span]:
    """Finds the host's addition after an accepted plan: a last paragraph that ends with the path of a file."""
    text = plain.rstrip()
    start = text.rfind("\n\n") + 2
    lead, _, path = text[start:].rpartition(" ")
    is_added = start > 1 and "\n" not in text[start:] and lead.endswith(pastes.COLONS) and path.startswith(("/", "~"))
    return [Span(start, len(plain))] if is_added else []


def _find_tagged(plain: str) -> list[Span]:
    """Finds the spans from an opening tag to its closing tag."""
    spans: list[Span] = []
    open_tags: dict[str, list[int]] = {}
    for tag in _TAG.finditer(plain):
        closes, name = tag.groups()
        starts = open_tags.setdefault(name, [])
        if not closes:
            starts.append(tag.start())
        elif starts:
            start = starts.pop()
            whole = plain[start : tag.end()]
            opens_line = not plain[plain.rfind("\n", 0, start) + 1 : start].strip()
            if not starts and (opens_line or "\n" in whole or len(whole) >= MIN_TAGGED_CHARACTERS):
                spans.append(Span(start, tag.end()))
    return spans


def _find_indented(lines: Sequence[Line]) -> list[Span]:
    """Finds lines after a `>`, and indented blocks that do not belong to a list."""
    spans: list[Span] = []
    in_block = in_list = False
    for index, line in enumerate(lines):
        is_apart = not index or line.block != lines[index - 1].block
        is_led = is_apart or lines[index - 1].text.endswith(":")  # a colon replaces the empty line before a block
        is_quoted = line.text[0] == ">"
        in_block = not is_quoted and line.indent >= MIN_INDENT and (in_block or (is_led and not in_list))
        if is_quoted or in_block:
            spans.append(Span(line.start, line.end))
        else:
            in_list = line.is_item or (in_list and (not is_apart or line.indent > 0))
    return spans


def _find_mails(lines: Sequence[Line]) -> list[Span]:
    """Finds a mail from its headers to the end of the prompt."""
    fields: set[str] = set()
    begin = headers = 0
    has_address = False
    for index, line in enumerate(lines):
        header = _HEADER.match(line.text)
        if header is None or (headers and line.block != lines[index - 1].block):
            fields = set()
            headers = 0
            has_address = False
        if header is None:
            continue
        if not headers:
            begin = line.start
        headers += 1
        fields |= _MAIL_HEADERS & {header[1].casefold()}
        has_address = has_address or bool(_ADDRESS.search(header[2]))
        if (len(fields) >= 2 and ("subject" in fields or has_address)) or (headers >= 3 and has_address):
            return [Span(begin, lines[-1].end)]
    return []


def _blank(text: str, character: str) -> str:
    """Replaces the characters of each line of a text by one character."""
    return "\n".join(character * len(line) for line in text.split("\n"))
