"""Edits JSON text and leaves every other byte alone; pure.

The text must have been parsed before, so errors need not be found. Only the requested levels are read, so the depth of
nesting does not matter. New text takes on the file's own indent, line ends and spacing. `append_item` and `remove_entry`
keep comments and trailing commas, which the settings of editors may have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from csmd import wire
from csmd.errors import BadInput, ConfigError

BOM = "\ufeff"
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_COMMENT = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|,(?=\s*[}\]])')
_DEFAULT_INDENT = "  "


class Edit(NamedTuple):
    """A replacement of `text[start:end]`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A member or element: `start` (of its key, if any), `value` and `end` are offsets in the text."""

    key: str
    start: int
    value: int
    end: int


def decode(data: bytes | None, where: str) -> str:
    """Decodes a file, "" for none; raises ConfigError with the position if it is neither blank nor a JSON object."""
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
    """Returns the text itself, or an empty object if it is blank; a byte order mark stays."""
    if not is_blank(text):
        return text
    return f"{BOM}{{}}\n" if text.startswith(BOM) else "{}\n"


def find_root(text: str) -> int:
    """Returns the offset of the outermost object."""
    return text.index("{")


def read_items(text: str, offset: int) -> list[Item]:
    """Reads the members or elements of the object or list that begins at `offset`; an element's key is ""."""
    return list(_iter_items(text, offset))


def _iter_items(text: str, offset: int) -> Iterator[Item]:
    is_object = text[offset] == "{"
    depth = 0
    key, start, value = "", -1, -1
    for token in _TOKEN.finditer(text, offset):
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
        elif is_object and start < 0:
            key, start = wire.loads(mark), token.start()
            continue
        else:
            value = token.start()
        if depth == 1 and value >= 0:
            yield Item(key=key, start=start if is_object else value, value=value, end=token.end())
            key, start, value = "", -1, -1


def find_member(text: str, offset: int, key: str) -> Item | None:
    """Returns the member `key` of the object that begins at `offset`; the last one if it is repeated, as parsers do."""
    return next((item for item in reversed(read_items(text, offset)) if item.key == key), None)


def read_value(text: str, item: Item) -> Any:
    """Returns the value of a member or element."""
    return wire.loads(text[item.value : item.end])


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Makes edits that do not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def plan_removals(members: list[Item], marks: list[bool]) -> list[Edit]:
    """Plans the edits that remove the marked items from a container; none if all or no items are marked."""
    if all(marks) or not any(marks):
        return []
    first = marks.index(False)
    edits = [Edit(members[0].start, members[first].start, "")] if first else []
    return edits + [Edit(members[n - 1].end, members[n].end, "") for n in range(first + 1, len(members)) if marks[n]]


def remove_member(text: str, offset: int, key: str) -> str:
    """Removes the member `key` of the object that begins at `offset`."""
    members = read_items(text, offset)
    last = find_member(text, offset, key)
    if members == [last]:
        return text[: offset + 1] + text[text.index("}", members[0].end) :]
    return apply_edits(text, plan_removals(members, [item == last for item in members]))


def blank_comments(text: str) -> str:
    """Replaces the comments and trailing commas of JSON by blanks; all offsets stay."""
    return _blank(_TRAILING_COMMA, _blank(_COMMENT, text))


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)


def remove_entry(text: str, path: tuple[str | int, ...]) -> str:
    """Removes the member or element at `path` (keys, indexes), and the containers that have no other item."""
    plain = blank_comments(text)
    offset = find_root(text)
    ancestors: list[tuple[int, list[Item], int]] = []
    for key in path:
        members = read_items(plain, offset)
        number = key if isinstance(key, int) else next(n for n, item in enumerate(members) if item.key == key)
        ancestors.append((offset, members, number))
        offset = members[number].value
    while len(ancestors) > 1 and len(ancestors[-1][1]) == 1 and _has_no_comment(text, plain, ancestors[-1][0]):
        ancestors.pop()
    _, members, number = ancestors[-1]
    start, end = members[number].start, members[number].end
    commas = _blank(_COMMENT, text)
    before = text[:start].rstrip(" \t")
    if commas[end:].lstrip().startswith(","):
        end = commas.index(",", end) + 1
        if not before.endswith("\n"):
            is_last = number == len(members) - 1  # followed by a trailing comma
            return before + text[end:] if is_last else text[:start] + text[end:].removeprefix(" ")
    elif number:
        last = members[number - 1].end
        if text[last:start].strip() == ",":  # no comment between the two
            return text[:last] + text[end:]
        comma = commas.rindex(",", last, start)
        before = before[:comma] + before[comma + 1 :]
    return before.removesuffix("\n").removesuffix("\r") + text[end:]


def _has_no_comment(text: str, plain: str, offset: int) -> bool:
    """Whether the object or list with one item that begins at `offset` has no comment."""
    end = plain.index("}" if plain[offset] == "{" else "]", read_items(plain, offset)[0].end)
    return _blank(_COMMENT, text)[offset:end] == text[offset:end]


def append_item(text: str, offset: int, key: str | None, value: Any) -> str:
    """Appends `value` (under `key` in an object) to the container that begins at `offset`.

    If a comma follows the last member, one follows the new one, so that `remove_entry` restores every byte.
    """
    plain = blank_comments(text)
    members = read_items(plain, offset)
    name = "" if key is None else wire.dumps(key) + (":" if _is_tight(plain) else ": ")
    last = members[-1].end if members else offset + 1
    end = plain.index("}" if text[offset] == "{" else "]", last)
    tail = len(text[:end].rstrip())  # after the comments that follow the last member
    comma = "," if members and "," not in _blank(_COMMENT, text)[last:end] else ""
    if not members:
        gap = _find_gap(plain)
        if tail == last and gap is not None and "\n" not in gap:
            return text[:last] + name + _render(plain, value, None) + text[end:]
        outer = _find_newline(text) + _find_line_indent(text, offset)
        inner = outer + _find_indent_unit(plain)
        return text[:tail] + inner + name + _render(plain, value, inner) + outer + text[end:]
    if len(members) > 1:
        between = plain[members[-2].end : members[-1].start]
    else:
        between = "," + (plain[offset + 1 : members[-1].start] or ("" if _is_tight(plain) else " "))
    spread = _find_newline(text) + between.rpartition("\n")[2] if "\n" in between else None
    if spread and plain != text:  # without the blanks of a comment
        between = "," + spread
    lead = between if tail == last and comma else (spread or between.replace(",", ""))
    trailing = "" if comma else ","
    if tail > last or not comma:
        text = text[:last] + comma + text[last:]
        tail += len(comma)
    return text[:tail] + lead + name + _render(plain, value, spread) + trailing + text[tail:]


def plan_replacement(text: str, item: Item, value: Any) -> list[Edit]:
    """Plans the edit that replaces an item's value; none if it is equal already."""
    if read_value(text, item) == value:
        return []
    has_lines = "\n" in text[item.value : item.end]
    line_start = _find_newline(text) + _find_line_indent(text, item.value) if has_lines else None
    return [Edit(item.value, item.end, _render(text, value, line_start))]


def _render(text: str, value: Any, line_start: str | None) -> str:
    """Renders `value` on its own lines, which begin with `line_start`, or on one line if that is None."""
    lines = wire.pretty(value).split("\n")
    if line_start is not None:
        unit = _find_indent_unit(text)
        stripped = [(line, line.lstrip(" ")) for line in lines]
        return line_start.join(unit * ((len(line) - len(rest)) // 2) + rest for line, rest in stripped)
    if _is_tight(text):
        return wire.dumps(value)
    return "".join(line.strip() + " " * line.endswith(",") for line in lines)


def _find_gap(text: str) -> str | None:
    """Returns the white space before the outermost object's first member; None for an empty object."""
    root = find_root(text)
    members = read_items(text, root)
    return text[root + 1 : members[0].start] if members else None


def _is_tight(text: str) -> bool:
    """Whether no space follows a key's colon."""
    members = read_items(text, find_root(text))
    return bool(members) and text[members[0].value - 1] == ":"


def _find_indent_unit(text: str) -> str:
    gap = _find_gap(text)
    return gap.rpartition("\n")[2] if gap and "\n" in gap else _DEFAULT_INDENT


def _find_newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _find_line_indent(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
