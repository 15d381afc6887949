"""What an instruction file imports, and for which paths a rule holds: Markdown read as the assistant reads it."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from csmd.cache import cached
from csmd.text.display import without_spans
from csmd.text.front_matter import JS_SPACE

_SPECIAL = re.compile(r"[\\`*_\[\]!<]")
_RUN = re.compile(r"`+")
_ATTRIBUTE = r"""(?:\s+[a-zA-Z:_][\w.:-]*+(?:\s*=\s*(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?)*+\s*+"""
_TAG = re.compile(rf"</?[a-zA-Z][\w:-]*+{_ATTRIBUTE}/?>|<!--?-?>|<[a-zA-Z][a-zA-Z0-9+.-]{{1,31}}:[^\s<>]*+>|<[^\s<>@]+@[^\s<>]++>")  # fmt: skip
#: What begins a tag that goes on to its own end, whatever stands between.
_LONG_TAGS = (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<!", ">"))
_TARGET = re.compile(
    r"""\(\s*(?:<(?:\\.|[^\n<>\\]){0,1999}>|(?:\\.|[^\s\\()]|\((?:\\.|[^\s\\()]){0,500}\)){0,1999}+)"""
    r"""(?:\s+(?:"(?:\\.|[^"\\]){0,999}"|'(?:\\.|[^'\\]){0,999}'|\((?:\\.|[^()\\]){0,999}\)))?\s*\)"""
)
_REFERENCE = re.compile(r"\[((?:\\.|[^\[\]\\]){0,999})\]")


@dataclass(slots=True)
class _Piece:
    """Text, or a run of `*` or `_` of which some characters may turn out to be emphasis; a cut stands before or after."""

    text: str
    cut_before: bool = False
    cut_after: bool = False
    opens: bool = False
    closes: bool = False
    size: int = 0
    """How long the run was."""


@dataclass(slots=True)
class _Bracket:
    """A `[` that may begin a link."""

    piece: int
    at: int
    image: bool


def segments(source: str, labels: frozenset[str]) -> list[str]:
    """The pieces of plain text in a paragraph, in order; `labels` are the links that the document defines."""
    pieces: list[_Piece] = []
    brackets: list[_Bracket] = []
    runs = _runs(source)
    missing: set[str] = set()
    at = 0
    while at < len(source):
        found = _SPECIAL.search(source, at)
        start = found.start() if found else len(source)
        if start > at:
            pieces.append(_Piece(source[at:start]))
        if found is None:
            break
        at = _special(source, start, pieces, brackets, runs, missing, labels)
    _emphasise(pieces, 0)
    return _joined(pieces)


def _cut(pieces: list[_Piece]) -> None:
    pieces.append(_Piece("", cut_after=True))


def _special(
    source: str,
    at: int,
    pieces: list[_Piece],
    brackets: list[_Bracket],
    runs: dict[int, list[int]],
    missing: set[str],
    labels: frozenset[str],
) -> int:
    """Takes in what begins with the special character at `at`; where it ends."""
    char = source[at]
    if char == "\\" and at + 1 < len(source) and source[at + 1] in string.punctuation + "\n":
        _cut(pieces)
        return at + 2
    if char == "`":
        run = _RUN.match(source, at)
        length = len(run.group()) if run else 1
        closing = runs.get(length, [])
        while closing and closing[-1] <= at:
            closing.pop()
        if closing:
            _cut(pieces)
            return closing[-1] + length
        pieces.append(_Piece(source[at : at + length]))
        return at + length
    if char == "<" and (end := _end_of_tag(source, at, missing)):
        _cut(pieces)
        return end
    if char in "*_":
        end = at
        while end < len(source) and source[end] == char:
            end += 1
        pieces.append(_run(source, at, end))
        return end
    if char == "[" or source.startswith("![", at):
        width = 1 if char == "[" else 2
        brackets.append(_Bracket(len(pieces), at + width, width == 2))
        pieces.append(_Piece(source[at : at + width]))
        return at + width
    if char == "]" and brackets:
        opening = brackets.pop()
        end = _end_of_link(source, opening.at, at, labels)
        if end:
            if opening.image:
                del pieces[opening.piece :]
                _cut(pieces)
            else:
                _emphasise(pieces, opening.piece + 1)
                pieces[opening.piece] = _Piece("", cut_after=True)
                _cut(pieces)
            return end
    pieces.append(_Piece(char))
    return at + 1


def _runs(source: str) -> dict[int, list[int]]:
    """Where runs of backticks stand, by their length, the last first."""
    found: dict[int, list[int]] = {}
    for run in _RUN.finditer(source):
        found.setdefault(len(run.group()), []).append(run.start())
    return {length: places[::-1] for length, places in found.items()}


def _end_of_tag(source: str, at: int, missing: set[str]) -> int:
    """Where the tag or address that begins at `at` ends; 0 when none does. `missing` are ends that do not come any more."""
    if tag := _TAG.match(source, at):
        return tag.end()
    for opening, mark in _LONG_TAGS:
        if not source.startswith(opening, at) or mark in missing:
            continue
        if opening == "<!" and not source[at + 2 : at + 3].isalpha():
            continue
        end = source.find(mark, at + len(opening))
        if end >= 0:
            return end + len(mark)
        missing.add(mark)
    return 0


def _end_of_link(source: str, begin: int, closing: int, labels: frozenset[str]) -> int:
    """Where the link ends whose text stands from `begin` to the bracket at `closing`; 0 when it is none."""
    if target := _TARGET.match(source, closing + 1):
        return target.end()
    if not labels:
        return 0
    reference = _REFERENCE.match(source, closing + 1)
    if reference and reference.group(1).strip():
        return reference.end() if " ".join(reference.group(1).split()).casefold() in labels else 0
    if closing - begin <= 999 and " ".join(source[begin:closing].split()).casefold() in labels:
        return reference.end() if reference else closing + 1
    return 0


def _run(source: str, start: int, end: int) -> _Piece:
    before = source[start - 1] if start else " "
    after = source[end] if end < len(source) else " "
    spaced_before, spaced_after = before.isspace(), after.isspace()
    marked_before, marked_after = _is_mark(before), _is_mark(after)
    left = not spaced_after and (not marked_after or spaced_before or marked_before)
    right = not spaced_before and (not marked_before or spaced_after or marked_after)
    if source[start] == "_":
        opens, closes = left and (not right or marked_before), right and (not left or marked_after)
    else:
        opens, closes = left, right
    return _Piece(source[start:end], opens=opens, closes=closes, size=end - start)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS"


def _emphasise(pieces: list[_Piece], start: int) -> None:
    """Pairs the runs of `*` and `_` from piece `start` on; what is paired becomes a cut."""
    openers: list[_Piece] = []
    #: Below this many openers none is for a closer of this kind.
    floor: dict[tuple[str, int, bool], int] = {}
    for piece in pieces[start:]:
        if not piece.size:
            continue
        while piece.closes and piece.text:
            kind = (piece.text[0], piece.size % 3, piece.opens)
            place = len(openers) - 1
            while place >= floor.get(kind, 0) and not _pairs(openers[place], piece):
                place -= 1
            if place < floor.get(kind, 0):
                floor[kind] = len(openers)
                break
            opener = openers[place]
            used = 2 if len(opener.text) >= 2 and len(piece.text) >= 2 else 1
            opener.text, piece.text = opener.text[used:], piece.text[used:]
            opener.cut_after = piece.cut_before = True
            del openers[place + (1 if opener.text else 0) :]
            floor = {key: min(low, len(openers)) for key, low in floor.items()}
        if piece.opens and piece.text:
            openers.append(piece)
    for piece in pieces[start:]:
        piece.size = 0  # what encloses them pairs with none of these


def _pairs(opener: _Piece, closer: _Piece) -> bool:
    if opener.text[0] != closer.text[0]:
        return False
    either = opener.closes or closer.opens
    return not either or (opener.size + closer.size) % 3 != 0 or (opener.size % 3 == 0 and closer.size % 3 == 0)


def _joined(pieces: list[_Piece]) -> list[str]:
    found: list[list[str]] = [[]]
    for piece in pieces:
        if piece.cut_before:
            found.append([])
        found[-1].append(piece.text)
        if piece.cut_after:
            found.append([])
    return [text for parts in found if (text := "".join(parts))]


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
_BLOCKS_TAG = re.compile(rf" {{0,3}}</?(?:{_TAGS})(?: +|\n|/?>)", re.IGNORECASE)
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
    if _BLOCKS_TAG.match(text, at) or _LONE_TAG.match(text, at):
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
        or _BLOCKS_TAG.match(text, at)
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


#: More alternatives than anybody writes by hand.
MOST_PATTERNS = 200


@cached(512)
def whole_path(pattern: str) -> re.Pattern[str] | None:
    """A pattern for a whole path (`claudeMdExcludes`), None for one that is none."""
    alternatives = [_translate(one) for one in braces(pattern)]
    try:
        return re.compile("|".join(alternatives)) if alternatives else None
    except re.error:
        return None


def excluded(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a path is named by one of the patterns; a pattern without `/` or `**` names no absolute path."""
    return any((found := whole_path(one)) is not None and found.fullmatch(path) for one in patterns)


def of_rule(paths: Any) -> tuple[str, ...]:
    """The patterns of a rule's `paths`, () for a rule that always holds: none, or nothing but `**`."""
    if isinstance(paths, str):
        given = _split(paths)
    elif isinstance(paths, list):
        given = [one for one in paths if isinstance(one, str)]
    else:
        return ()
    found = [one.strip() for whole in given for one in braces(whole)]
    found = [one.removesuffix("/**") for one in found if one][:MOST_PATTERNS]
    return () if all(one == "**" for one in found) else tuple(found)


def applies(patterns: tuple[str, ...], path: str) -> bool:
    """Whether the patterns take in a path relative to where they hold, as in .gitignore: the last word counts."""
    if not path or path.startswith("../"):
        return False
    taken = False
    for pattern in patterns:
        found = _ignoring(pattern.removeprefix("!"))
        if found is not None and found.match(path):
            taken = not pattern.startswith("!")
    return taken


@cached(512)
def _ignoring(pattern: str) -> re.Pattern[str] | None:
    bare = pattern.rstrip("/")
    anchored = "/" in bare
    body = _translate(bare.removeprefix("/"))
    tail = "/" if pattern.endswith("/") else "(?:/|$)"
    try:
        return re.compile(("" if anchored else "(?:.*/)?") + body + tail, re.IGNORECASE)
    except re.error:
        return None


def _split(written: str) -> list[str]:
    """The patterns between commas that stand in no braces."""
    found, depth, start = [], 0, 0
    for at, char in enumerate(written):
        depth += (char == "{") - (char == "}" and depth > 0)
        if char == "," and depth == 0:
            found.append(written[start:at])
            start = at + 1
    return [*found, written[start:]]


def braces(pattern: str) -> list[str]:
    """`a.{b,c}` as `a.b` and `a.c`; at most MOST_PATTERNS."""
    done: list[str] = []
    waiting = [pattern[:2000]]
    while waiting and len(done) + len(waiting) <= MOST_PATTERNS:
        one = waiting.pop(0)
        found = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            waiting = [one[: found.start()] + part + one[found.end() :] for part in found.group(1).split(",")] + waiting
    return done + waiting


def _translate(pattern: str) -> str:
    """A pattern as a regular expression; `**` crosses directories, `*` and `?` do not."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            while pattern.startswith("**/", at):
                at += 3
            parts.append("(?:.*/)?")
            continue
        if pattern.startswith("**", at):
            while at < len(pattern) and pattern[at] == "*":
                at += 1
            parts.append(".*" if not parts or parts[-1] != ".*" else "")
            continue
        closing = pattern.find("]", at + 2) if char == "[" else -1
        if char == "*":
            parts.append("[^/]*")
        elif char == "?":
            parts.append("[^/]")
        elif closing > 0:
            # Doubled, these mean something in a set of Python's to come.
            inside = re.sub(r"[\\\[&~|]|(?<=-)-", r"\\\g<0>", pattern[at + 1 : closing])
            parts.append(f"[{'^' + inside[1:] if inside[0] in '!^' else inside}]")
            at = closing
        else:
            parts.append(re.escape(char))
        at += 1
    return "".join(parts)


_SPACES = "".join(JS_SPACE)
_IMPORTS_TARGET = re.compile(rf"(?:^|[{_SPACES}])@((?:[^{_SPACES}\\]|\\ )+)")
_NAMED = re.compile(r"\.?/|~/|[A-Za-z0-9._-]")


def without_comments(text: str) -> str:
    """Markdown without its HTML comments, as the host tells it: in one that has any, definitions go too."""
    return _without_comments(blocks(plain(text))) if "<!--" in text else text


def read(text: str) -> tuple[str, list[str]]:
    """(The text without comments, the imported paths), these in order, each once, without `#fragment`."""
    if "@" not in text and "<!--" not in text:
        return text, []
    found = blocks(plain(text))
    return (_without_comments(found) if "<!--" in text else text), _targets(found)


def _targets(found: list[Block]) -> list[str]:
    seen: dict[str, None] = {}
    labels = frozenset(_labels(found))
    for plain_text in _texts(found, labels):
        for match in _IMPORTS_TARGET.finditer(plain_text):
            path = match.group(1).partition("#")[0].replace("\\ ", " ")
            if path not in ("", "/") and _NAMED.match(path):
                seen[path] = None
    return list(seen)


def _without_comments(found: list[Block]) -> str:
    kept: list[str] = []
    for block in found:
        if block.kind == "html" and _is_comment(block.raw):
            rest = without_spans(block.raw, "<!--", "-->")
            kept.append(rest if rest.strip() else "")
        elif block.kind != "definition":
            kept.append(block.raw)
    return "".join(kept)


def plain(text: str) -> str:
    """`text` with every kind of line end as one."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_comment(raw: str) -> bool:
    return raw.lstrip().startswith("<!--") and "-->" in raw


def _labels(found: list[Block]) -> Iterator[str]:
    for block in found:
        if block.kind == "definition":
            yield block.inside
        yield from _labels(list(block.blocks))


def _texts(found: list[Block], labels: frozenset[str]) -> Iterator[str]:
    """The pieces of plain text in which the host looks for imports."""
    for block in found:
        if block.kind == "html" and _is_comment(block.raw):
            yield without_spans(block.raw, "<!--", "-->")
        elif block.kind == "loose":
            yield block.inside
        if block.kind in ("text", "loose"):
            yield from segments(block.inside, labels)
        yield from _texts(list(block.blocks), labels)
