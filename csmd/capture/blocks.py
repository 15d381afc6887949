"""The blocks of markdown as the host's reader finds them: code, HTML, definitions, lists, quotes, text; pure.

Markdown without tables and strike-through, and with turns of that reader's own, which are kept because the
host's list of imports is the measure. It never raises, and its time grows with the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Deeper lists and quotes are not looked into: nobody writes them, and each level reads its lines again.
MAX_DEPTH = 16
#: How many lines of text may stand before a heading's underline.
MOST_UNDERLINED = 100

_BLANK = re.compile(r"[ \t]*(?:\n|\Z)")
_CODE = re.compile(r" {4}| {0,3}\t")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?=[ \t\n]|\Z)")
_RULE = re.compile(r" {0,3}(?:(?:-[\t ]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})(?:\n|\Z)")
_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r"( {0,3}(?:[*+-]|\d{1,9}[.)]))(?=[\t ]|\n|\Z)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+) *(?:\n|\Z)")
#: What stands in no underlined heading: other HTML than for a paragraph.
_NOT_UNDERLINED = re.compile(r"(?:[*+-]|\d{1,9}[.)]) | {4}| {0,3}(?:`{3}|~{3}|>|#|<[^\n>]+>\n)")
_LABEL = r"\[(?![ \t\n]*\])((?:\\.|[^\[\]\\]){1,999})\]"
_TITLE = r""""(?:\\.|[^"\\]){0,999}"|'(?:\\.|[^'\\]){0,999}'|\((?:\\.|[^()\\]){0,999}\)"""
_DEFINITION = re.compile(
    rf" {{0,3}}{_LABEL}: *+(?:\n[ \t]*+)?(?:<[^<>\n]{{0,1999}}>|[^<\s]\S{{0,1999}}+)"
    rf"(?:(?: +(?:\n[ \t]*+)?| *\n[ \t]*+)(?:{_TITLE}))? *(?:\n+|\Z)"
)

_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|meta|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|"
    "tr|track|ul"
)
_ATTRIBUTES = r"""(?: +[a-z:_][\w.:-]*+(?: *= *(?:"[^"\n]*+"|'[^'\n]*+'|[^\s"'=<>`]++))?)*+ *"""
_RAW = re.compile(r" {0,3}<(script|pre|style|textarea)[\s>]", re.IGNORECASE)
#: Where HTML begins -> what ends it, on the same line or a later one.
_UNTIL = (
    (re.compile(r" {0,3}<!--"), "-->"),
    (re.compile(r" {0,3}<\?"), "?>"),
    (re.compile(r" {0,3}<![A-Z]", re.IGNORECASE), ">"),
    (re.compile(r" {0,3}<!\[CDATA\["), "]]>"),
)
_TAG = re.compile(rf" {{0,3}}</?(?:{_TAGS})(?: +|\n|/?>)", re.IGNORECASE)
_LONE_TAG = re.compile(
    rf" {{0,3}}<(?!script|pre|style|textarea)(?:[a-z][\w-]*+{_ATTRIBUTES}/?|/[a-z][\w-]*+\s*+)>(?=[ \t]*(?:\n|\Z))",
    re.IGNORECASE,
)
_EMPTY_LINES = re.compile(r"\n(?:[ \t]*\n)+")
#: What ends a paragraph: HTML only at the very beginning of a line, a numbered list only from 1 on.
_INTERRUPTS = re.compile(
    rf" {{0,3}}(?:#{{1,6}}(?:\s|\Z)|>|`{{3,}}(?=[^`\n]*\n)|~{{3,}}|(?:[*+-]|1[.)]) )"
    rf"|</?(?:{_TAGS})(?: +|\n|/?>)|<(?:script|pre|style|textarea|!--)",
    re.IGNORECASE,
)
#: What ends a list item, by how many spaces may stand before it.
_AFTER_ITEM = {
    spaces: re.compile(
        rf" {{0,{spaces}}}(?:(?:[*+-]|\d{{1,9}}[.)])(?:[ \t]|\n|\Z)|`{{3}}|~{{3}}|#{{1,6}}(?:\s|\Z)|<(?:[a-z].*>|!--)"
        r"|(?:(?:-[\t ]*){3,}|(?:_[ \t]*){3,}|(?:\*[ \t]*){3,})(?:\n|\Z))",
        re.IGNORECASE,
    )
    for spaces in (1, 2, 3)
}


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of markdown: `raw` is the text as it stands; `inside` is what is read for imports.

    Kinds: text, loose (the text of a list item: the host looks at it raw as well), html, definition, silent (code,
    rules, blank lines), group (a list's items or a quote's text, of which `inside` are the blocks).
    """

    kind: str
    raw: str
    inside: str = ""
    blocks: tuple[Block, ...] = ()


def blocks(text: str, *, in_list: bool = False, depth: int = 0) -> list[Block]:
    """The blocks of markdown in order; their `raw` joined is `text`."""
    found: list[Block] = []
    at = 0
    while at < len(text):
        block = _block(text, at, in_list, depth)
        found.append(block)
        at += len(block.raw)
    return found


def _block(text: str, at: int, in_list: bool, depth: int) -> Block:
    if blank := _BLANK.match(text, at):
        return Block("silent", blank.group() or text[at:])
    if _CODE.match(text, at):
        return Block("silent", text[at : _end_of_code(text, at)])
    if fence := _FENCE.match(text, at):
        return Block("silent", text[at : _end_of_fence(text, at, fence.group(1))])
    if heading := _HEADING.match(text, at):
        end = _line_end(text, at)
        return Block("text", text[at:end], text[heading.end() : end].strip().rstrip("#"))
    if rule := _RULE.match(text, at):
        return Block("silent", rule.group())
    if _QUOTE.match(text, at):
        return _quote(text, at, depth)
    if item := _ITEM.match(text, at):
        return _item(text, at, item, depth)
    if end := _end_of_html(text, at):
        return Block("html", text[at:end])
    if defined := _DEFINITION.match(text, at):
        return Block("definition", defined.group(), _label(defined.group(1)))
    if end := _end_of_underlined(text, at):
        return Block("text", text[at:end], text[at:end])
    end = _end_of_loose(text, at) if in_list else _end_of_paragraph(text, at)
    return Block("loose" if in_list else "text", text[at:end], text[at:end])


def _label(written: str) -> str:
    return " ".join(written.split()).casefold()


def _line_end(text: str, at: int) -> int:
    """Where the next line begins."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _is_blank(text: str, at: int) -> bool:
    return at >= len(text) or _BLANK.match(text, at) is not None


def _end_of_code(text: str, at: int) -> int:
    while at < len(text) and (_CODE.match(text, at) or _is_blank(text, at)):
        at = _line_end(text, at)
    return at


def _end_of_fence(text: str, at: int, mark: str) -> int:
    closing = re.compile(rf" {{0,3}}{re.escape(mark)}[~`]* *(?:\n|\Z)")
    at = _line_end(text, at)
    while at < len(text):
        if closing.match(text, at):
            return _line_end(text, at)
        at = _line_end(text, at)
    return at


def _end_of_html(text: str, at: int) -> int:
    """Where the HTML that begins at `at` ends; 0 when none does."""
    first = text.find("<", at, at + 4)
    if first < 0 or text[at:first].strip(" "):
        return 0
    if raw := _RAW.match(text, at):
        closing = re.compile(rf"</{raw.group(1)}>[^\n]*\n*", re.IGNORECASE).search(text, raw.end() - 1)
        return closing.end() if closing else len(text)
    for opening, mark in _UNTIL:
        if begun := opening.match(text, at):
            # `<!-->` and `<!--->` are whole.
            short = re.compile(r"-?>").match(text, begun.end()) if mark == "-->" else None
            found = short.end() - len(mark) if short else text.find(mark, begun.end())
            if found < 0:
                return len(text)
            end = found + len(mark)
            if mark == "-->":
                end = _line_end(text, end)
            while text.startswith("\n", end):
                end += 1
            return end
    if _TAG.match(text, at) or _LONE_TAG.match(text, at):
        ended = _EMPTY_LINES.search(text, at)
        return ended.end() if ended else len(text)
    return 0


def _starts_block(text: str, at: int) -> bool:
    """Whether something else than a list item's text begins here."""
    return bool(
        _FENCE.match(text, at)
        or _HEADING.match(text, at)
        or _RULE.match(text, at)
        or _QUOTE.match(text, at)
        or _ITEM.match(text, at)
        or _html_begins(text, at)
    )


def _html_begins(text: str, at: int) -> bool:
    return bool(
        _RAW.match(text, at)
        or any(opening.match(text, at) for opening, _ in _UNTIL)
        or _TAG.match(text, at)
        or _LONE_TAG.match(text, at)
    )


def _end_of_underlined(text: str, at: int) -> int:
    """Where the heading ends whose underline comes after some lines of text; 0 when none does."""
    at = _line_end(text, at)
    for _ in range(MOST_UNDERLINED):
        if at >= len(text) or _is_blank(text, at):
            return 0
        if _UNDERLINE.match(text, at):
            return _line_end(text, at)
        if _NOT_UNDERLINED.match(text, at):
            return 0
        at = _line_end(text, at)
    return 0


def _end_of_loose(text: str, at: int) -> int:
    at = _line_end(text, at)
    while not _is_blank(text, at) and (_CODE.match(text, at) or not _starts_block(text, at)):
        at = _line_end(text, at)
    return at


def _end_of_paragraph(text: str, at: int) -> int:
    at = _line_end(text, at)
    while not _is_blank(text, at):
        if _UNDERLINE.match(text, at):
            return _line_end(text, at)
        if _RULE.match(text, at) or _INTERRUPTS.match(text, at):
            return at
        at = _line_end(text, at)
    return at


def _quote(text: str, at: int, depth: int) -> Block:
    """The quote that begins at `at`: its marked lines, and those that go on with its last paragraph."""
    begin = at
    lines: list[str] = []
    fence = ""
    goes_on = False
    while at < len(text):
        end = _line_end(text, at)
        if marked := _QUOTE.match(text, at):
            line = text[marked.end() : end]
        elif goes_on and not _is_blank(text, at) and not _RULE.match(text, at) and not _INTERRUPTS.match(text, at):
            line = text[at:end]
        else:
            break
        lines.append(line)
        opened = _FENCE.match(line)
        was_fenced = bool(fence)
        if opened and (not fence or (line.strip() == opened.group(1) and opened.group(1).startswith(fence))):
            fence = "" if fence else opened.group(1)
        code = _CODE.match(line) and not goes_on
        closed = _HEADING.match(line) or _RULE.match(line) or code
        goes_on = not (fence or was_fenced or closed or _is_blank(line, 0))
        at = end
    inside = blocks("".join(lines), depth=depth + 1) if depth < MAX_DEPTH else []
    return Block("group", text[begin:at], blocks=tuple(inside))


def _item(text: str, at: int, item: re.Match[str], depth: int) -> Block:
    """The list item that begins at `at`; a list is its items, one after the other."""
    begin, end = at, _line_end(text, at)
    first = text[item.end() : end]
    tabs = len(first) - len(first.lstrip("\t"))
    first = "   " * tabs + first[tabs:]
    marker = len(item.group(1))
    indent = len(first) - len(first.lstrip(" "))
    if first.strip():
        indent = 1 if indent > 4 else indent
        lines, width = [first[indent:]], marker + indent
    else:
        lines, width = ["\n"], marker + 1
    empty, at = not first.strip(), end
    gap = empty
    last = lines[0]
    new = _AFTER_ITEM[min(3, width - 1)]
    if empty and _is_blank(text, at):  # an item may begin with one empty line
        return Block("group", text[begin:at])
    while at < len(text):
        end = _line_end(text, at)
        line = text[at:end]
        bare = line.replace("\t", "    ")
        if new.match(line):
            break
        blank = not line.strip()
        if blank or len(bare) - len(bare.lstrip(" ")) >= width:
            last = bare[width:] if not blank else "\n"
        elif gap or _CODE.match(last) or _FENCE.match(last) or _HEADING.match(last) or _RULE.match(last):
            break
        else:
            last = line
        gap = gap or blank
        lines.append(last)
        at = end
    if depth >= MAX_DEPTH:
        return Block("group", text[begin:at])
    body = "".join(lines)
    kept = body.rstrip("\n")
    inside = tuple(blocks(kept + "\n" if kept else "", in_list=True, depth=depth + 1))
    return Block("group", text[begin:at], blocks=inside)
