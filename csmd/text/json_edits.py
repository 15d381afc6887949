"""Edits of JSON text that leave every other byte alone; pure.

Works on text that was parsed before, so it need not find errors, and only on the requested levels, so the depth of
nesting does not matter. New text takes on the file's own indent, line ends and spacing. `append` and
`remove_entry` keep comments and trailing commas, which the settings of editors may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from csmd import wire
from csmd.errors import BadInput, ConfigError

BOM = "\ufeff"
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_COMMENT = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[}\]])')
_DEFAULT_INDENT = "  "

#: (start, end, new text)
Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A member or element: `start` (of its key, if any), `value` and `end` are offsets in the text."""

    key: str
    start: int
    value: int
    end: int


def decode(data: bytes | None, where: str) -> str:
    """The text of a file, "" for none; ConfigError with the position when it is neither blank nor a JSON object."""
    hint = f"csmd never overwrites what it cannot read: correct {where} or move it away"
    try:
        text = (data or b"").decode()
        value = {} if is_blank(text) else wire.loads(text.removeprefix(BOM))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: not UTF-8 at byte {error.start}", hint=hint) from error
    except BadInput as error:
        raise ConfigError(f"{where}: {error}", hint=hint) from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: not a JSON object at line 1", hint=hint)
    return text


def is_blank(text: str) -> bool:
    """Whether a text consists of white space."""
    return not text.removeprefix(BOM).strip(" \t\r\n")


def ensure_object(text: str) -> str:
    """The text itself, or an empty object if it is blank; a byte order mark stays."""
    return text if not is_blank(text) else f"{BOM if text.startswith(BOM) else ''}{{}}\n"


def find_root(text: str) -> int:
    """Returns the offset of the outermost object."""
    return text.index("{")


def read_items(text: str, at: int) -> list[Item]:
    """The members or elements of the object or list that begins at `at`; an element's key is empty."""
    return list(_iter_items(text, at))


def _iter_items(text: str, at: int) -> Iterator[Item]:
    keyed, depth, key, start, value = text[at] == "{", 0, "", -1, -1
    for token in _TOKEN.finditer(text, at):
        mark = token.group()
        if mark in ("{", "["):
            depth += 1
            if depth == 2:
                value = token.start()
        elif mark in ("}", "]"):
            depth -= 1
            if depth == 0:
                return
        elif depth != 1 or mark in (":", ","):
            continue
        elif keyed and start < 0:
            key, start = wire.loads(mark), token.start()
            continue
        else:
            value = token.start()
        if depth == 1 and value >= 0:
            yield Item(key=key, start=start if keyed else value, value=value, end=token.end())
            key, start, value = "", -1, -1


def find_member(text: str, at: int, key: str) -> Item | None:
    """The member `key` of the object that begins at `at`; the last one if it is repeated, as parsers do."""
    return next((item for item in reversed(read_items(text, at)) if item.key == key), None)


def read_value(text: str, item: Item) -> Any:
    """The value of a member or element."""
    return wire.loads(text[item.value : item.end])


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with `edits` made; they must not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def plan_cuts(members: list[Item], gone: list[bool]) -> list[Edit]:
    """Plans the edits that remove the items marked in `gone` from a container; none if all or no items are marked."""
    if True not in gone or False not in gone:
        return []
    first = gone.index(False)
    edits = [(members[0].start, members[first].start, "")] if first else []
    return edits + [(members[n - 1].end, members[n].end, "") for n in range(first + 1, len(members)) if gone[n]]


def remove_member(text: str, at: int, key: str) -> str:
    """`text` without the member `key` of the object that begins at `at`."""
    members = read_items(text, at)
    last = find_member(text, at, key)
    if members == [last]:
        return text[: at + 1] + text[text.index("}", members[0].end) :]
    return apply_edits(text, plan_cuts(members, [item == last for item in members]))


def blank_comments(text: str) -> str:
    """JSON with blanks in place of its comments and trailing commas: everything else keeps its place."""
    return _blank(_TRAILING_COMMA, _blank(_COMMENT, text))


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)


def remove_entry(text: str, path: tuple[str | int, ...]) -> str:
    """`text` without the member or element at `path` (keys, indexes), and without containers that held only that."""
    plain, at, ancestors = blank_comments(text), find_root(text), list[tuple[int, list[Item], int]]()
    for key in path:
        members = read_items(plain, at)
        number = key if isinstance(key, int) else next(n for n, item in enumerate(members) if item.key == key)
        ancestors.append((at, members, number))
        at = members[number].value
    while len(ancestors) > 1 and len(ancestors[-1][1]) == 1 and _is_bare(text, plain, ancestors[-1][0]):
        ancestors.pop()
    _, members, number = ancestors[-1]
    start, end, commas = members[number].start, members[number].end, _blank(_COMMENT, text)
    before = text[:start].rstrip(" \t")
    if commas[end:].lstrip().startswith(","):
        end = commas.index(",", end) + 1
        if not before.endswith("\n"):
            is_last = number == len(members) - 1  # which a trailing comma follows
            return before + text[end:] if is_last else text[:start] + text[end:].removeprefix(" ")
    elif number:
        last = members[number - 1].end
        if text[last:start].strip() == ",":  # no comment, so nothing between the two stays
            return text[:last] + text[end:]
        comma = commas.rindex(",", last, start)
        before = before[:comma] + before[comma + 1 :]
    return before.removesuffix("\n").removesuffix("\r") + text[end:]


def _is_bare(text: str, plain: str, at: int) -> bool:
    """Whether the object or list with one item that begins at `at` has no comment."""
    end = plain.index("}" if plain[at] == "{" else "]", read_items(plain, at)[0].end)
    return _blank(_COMMENT, text)[at:end] == text[at:end]


def append(text: str, at: int, key: str | None, value: Any) -> str:
    """`text` with `value` (under `key` in an object) at the end of the container that begins at `at`.

    Where a comma follows the last member, one follows the new one: `remove_entry` then gives back every byte.
    """
    plain = blank_comments(text)
    members = read_items(plain, at)
    name = "" if key is None else wire.dumps(key) + (":" if _is_tight(plain) else ": ")
    last = members[-1].end if members else at + 1
    end = plain.index("}" if text[at] == "{" else "]", last)
    tail = len(text[:end].rstrip())  # behind the comments after the last member
    comma = "," if members and "," not in _blank(_COMMENT, text)[last:end] else ""
    if not members:
        gap = _find_gap(plain)
        if tail == last and gap is not None and "\n" not in gap:
            return text[:last] + name + _render(plain, value, None) + text[end:]
        outer = _find_newline(text) + _find_line_indent(text, at)
        inner = outer + _find_indent_unit(plain)
        return text[:tail] + inner + name + _render(plain, value, inner) + outer + text[end:]
    if len(members) > 1:
        between = plain[members[-2].end : members[-1].start]
    else:
        between = "," + (plain[at + 1 : members[-1].start] or ("" if _is_tight(plain) else " "))
    spread = _find_newline(text) + between.rpartition("\n")[2] if "\n" in between else None
    if spread and plain != text:  # blanks of a comment
        between = "," + spread
    lead = between if tail == last and comma else (spread or between.replace(",", ""))
    trailing = "" if comma else ","
    if tail > last or not comma:
        text = text[:last] + comma + text[last:]
        tail += len(comma)
    return text[:tail] + lead + name + _render(plain, value, spread) + trailing + text[tail:]


def plan_replacement(text: str, item: Item, value: Any) -> list[Edit]:
    """The edit that replaces `item`'s value by `value`; none if it is equal already."""
    if read_value(text, item) == value:
        return []
    spread = "\n" in text[item.value : item.end]
    line_start = _find_newline(text) + _find_line_indent(text, item.value) if spread else None
    return [(item.value, item.end, _render(text, value, line_start))]


def _render(text: str, value: Any, line_start: str | None) -> str:
    """`value` on lines of its own that begin with `line_start`, or on one line when that is None."""
    lines = wire.pretty(value).split("\n")
    if line_start is not None:
        unit = _find_indent_unit(text)
        stripped = [(line, line.lstrip(" ")) for line in lines]
        return line_start.join(unit * ((len(line) - len(rest)) // 2) + rest for line, rest in stripped)
    if _is_tight(text):
        return wire.dumps(value)
    return "".join(line.strip() + " " * line.endswith(",") for line in lines)


def _find_gap(text: str) -> str | None:
    """The white space before the outermost object's first member, None for an empty object."""
    members = read_items(text, find_root(text))
    return text[find_root(text) + 1 : members[0].start] if members else None


def _is_tight(text: str) -> bool:
    """Whether no space follows a key's colon."""
    members = read_items(text, find_root(text))
    return bool(members) and text[members[0].value - 1] == ":"


def _find_indent_unit(text: str) -> str:
    gap = _find_gap(text)
    return gap.rpartition("\n")[2] if gap and "\n" in gap else _DEFAULT_INDENT


def _find_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _find_line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
