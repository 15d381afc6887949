"""Small edits of JSON text that leave every other byte alone: find a member, cut items out, append one.

Works on text that was parsed before, so it need not find mistakes, and only on the levels it is asked for, so
nesting is no concern. New text takes on the file's own indent, line ends and spacing as far as it shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from csmd import wire
from csmd.errors import BadInput

_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_UNIT = "  "
_BOM = "\ufeff"

#: (start, end, new text)
Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A member or element: `start` (of its key, if any), `value` and `end` are offsets in the text."""

    key: str
    start: int
    value: int
    end: int


def root(text: str) -> int:
    """Where the outermost object begins."""
    return text.index("{")


def items(text: str, at: int) -> list[Item]:
    """What stands directly in the object or list that begins at `at`; an element's key is empty."""
    return list(_items(text, at))


def _items(text: str, at: int) -> Iterator[Item]:
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


def member(text: str, at: int, key: str) -> Item | None:
    """The member `key` of the object that begins at `at`; the last one where it is doubled, as parsers do."""
    return next((item for item in reversed(items(text, at)) if item.key == key), None)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """`text` with `edits` made; they must not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def cuts(found: list[Item], gone: list[bool]) -> list[Edit]:
    """The edits that take the items marked in `gone` out of a container, which keeps at least one (or has none)."""
    if True not in gone or False not in gone:
        return []
    first = gone.index(False)
    edits = [(found[0].start, found[first].start, "")] if first else []
    return edits + [(found[n - 1].end, found[n].end, "") for n in range(first + 1, len(found)) if gone[n]]


def without_member(text: str, at: int, key: str) -> str:
    """`text` without the member `key` of the object that begins at `at`."""
    found = items(text, at)
    last = member(text, at, key)
    if found == [last]:
        return text[: at + 1] + text[text.index("}", found[0].end) :]
    return edited(text, cuts(found, [item == last for item in found]))


def value_at(text: str, path: Sequence[str]) -> Any:
    """The value at `path` below the outermost object of `text`; None where there is none, or nothing is said."""
    found = _found(text, path)
    return None if found is None else wire.loads(text[found.value : found.end])


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """`text` with `value` at `path` below its outermost object; objects on the way that are missing are made.

    What is there already and equal keeps its bytes, another value gives way. BadInput where something else than an
    object stands on the way. A text that says nothing becomes an object.
    """
    if not text.removeprefix(_BOM).strip(" \t\r\n"):
        bom = _BOM if text.startswith(_BOM) else ""
        return f"{bom}{wire.pretty(_nested(path, value))}\n"
    found = _found(text, path)
    if found is not None:
        same = wire.loads(text[found.value : found.end]) == value
        return text if same else edited(text, [(found.value, found.end, render_in_place(text, found, value))])
    at = root(text)
    for depth, key in enumerate(path):
        on_the_way = member(text, at, key)
        if on_the_way is None:
            return append(text, at, key, _nested(path[depth + 1 :], value))
        if text[on_the_way.value] != "{":
            raise BadInput(f"{'.'.join(path[: depth + 1])} is not an object")
        at = on_the_way.value
    raise AssertionError("a path of no key")


def without_path(text: str, path: Sequence[str]) -> str:
    """`text` without the member at `path`; objects on the way that hold nothing else go with it."""
    for depth in range(len(path), 0, -1):
        found = _found(text, path[:depth])
        if found is None:
            return text
        parent = _found(text, path[: depth - 1])
        at = root(text) if parent is None else parent.value
        if depth == 1 or len(items(text, at)) > 1:
            return without_member(text, at, path[depth - 1])
    return text


def _found(text: str, path: Sequence[str]) -> Item | None:
    """The member at `path` below the outermost object; None for the object itself, too."""
    found: Item | None = None
    for key in path:
        at = found.value if found else text.find("{")
        found = member(text, at, key) if at >= 0 and text[at] == "{" else None
        if found is None:
            return None
    return found


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def append(text: str, at: int, key: str | None, value: Any) -> str:
    """`text` with `value` (under `key` in an object) at the end of the container that begins at `at`."""
    found = items(text, at)
    name = "" if key is None else wire.dumps(key) + (":" if _is_tight(text) else ": ")
    if not found:
        end = text.index("}" if text[at] == "{" else "]", at)
        if not _is_spread(text):
            return text[: at + 1] + name + _render(text, value, None) + text[end:]
        outer = _newline(text) + _indent_of_line(text, at)
        inner = outer + _unit(text)
        return text[: at + 1] + inner + name + _render(text, value, inner) + outer + text[end:]
    last = found[-1]
    if len(found) > 1:
        between = text[found[-2].end : last.start]
    else:
        between = "," + (text[at + 1 : last.start] or ("" if _is_tight(text) else " "))
    spread = _newline(text) + between.rpartition("\n")[2] if "\n" in between else None
    return text[: last.end] + between + name + _render(text, value, spread) + text[last.end :]


def render_in_place(text: str, item: Item, value: Any) -> str:
    """`value` as text to stand where `item`'s value stands."""
    spread = "\n" in text[item.value : item.end]
    return _render(text, value, _newline(text) + _indent_of_line(text, item.value) if spread else None)


def _render(text: str, value: Any, line_start: str | None) -> str:
    """`value` on lines of its own that begin with `line_start`, or on one line when that is None."""
    lines = wire.pretty(value).split("\n")
    if line_start is not None:
        unit = _unit(text)
        bare = [line.lstrip(" ") for line in lines]
        return line_start.join(
            unit * ((len(line) - len(rest)) // 2) + rest for line, rest in zip(lines, bare, strict=True)
        )
    if _is_tight(text):
        return wire.dumps(value)
    return "".join(line.strip() + " " * line.endswith(",") for line in lines)


def _gap(text: str) -> str | None:
    """What stands before the outermost object's first member, None when it is empty."""
    found = items(text, root(text))
    return text[root(text) + 1 : found[0].start] if found else None


def _is_spread(text: str) -> bool:
    """Whether the file is written over several lines; an empty object takes on the common form."""
    gap = _gap(text)
    return gap is None or "\n" in gap


def _is_tight(text: str) -> bool:
    """Whether no space follows a key's colon."""
    found = items(text, root(text))
    return bool(found) and text[found[0].value - 1] == ":"


def _unit(text: str) -> str:
    gap = _gap(text)
    return gap.rpartition("\n")[2] if gap and "\n" in gap else _UNIT


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
