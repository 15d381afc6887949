"""Which parts of a prompt are somebody else's words; pure.

Offsets are characters of the prompt. Code in fences and between backticks is left to who reads prose: a tag in it tags
nothing. A mail goes to the end of its prompt, since nothing says where its last line is.
"""

from __future__ import annotations

import re

from csmd.cache import cached
from csmd.text.prose import Span, with_newlines
from csmd.text.tokens import content_words, stem

#: Nobody types more characters: of a longer prompt the middle is pasted.
TYPED_CHARACTERS = 50_000
#: A prompt without any of these has no quotation: most prompts.
_MAY_QUOTE = re.compile(r"[<>@]|^(?: {4}|\t)|(?i:^\W{0,4}subject\W{0,3}:)", re.MULTILINE)
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
#: Columns that a block is moved in by, and a tab.
INDENT = 4
#: A text with such a share of a statement's words states it.
STATED = 0.6


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
    for span in quotations(prompt):
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
    prompt = with_newlines(prompt)
    if not _MAY_QUOTE.search(prompt):
        return ()
    # A fence leaves empty lines, code in a line what is no white space.
    plain = _CODE.sub(lambda code: _blank(code.group(), " " if code[1] else "`"), prompt)
    apart: list[Span] = []
    for span in sorted([*_tagged(plain), *_marked(plain), *_mails(plain)]):
        if apart and span.start <= apart[-1].end:
            apart[-1] = Span(apart[-1].start, max(apart[-1].end, span.end))
        else:
            apart.append(span)
    return tuple(apart)


_of = cached(64)(quotations)


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
