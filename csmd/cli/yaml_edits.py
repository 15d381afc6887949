"""Edits of config.yaml that leave every other byte alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from csmd.errors import ConfigError

if TYPE_CHECKING:
    import yaml


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of the file: its dotted name, the YAML nodes of key and value, and the mapping around them."""

    name: str
    key: Any
    value: Any
    around: Any


def set_key(text: str, name: str, value: Any) -> str:
    """Returns the text with a key set: at its place, else in its section, else at the end."""
    root = _compose(text)
    entries = {entry.name: entry for entry in _entries(root)}
    shown = _one_line(value)
    if name in entries:
        return _with_value(text, entries[name], shown)
    section, _, key = name.partition(".")
    if key and section in entries and entries[section].value.id == "mapping":
        return _with_key(text, entries[section].value, key, shown)
    if root is not None and root.flow_style:
        return _with_key(text, root, name, shown)
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{name}: {shown}\n"


def remove_key(text: str, name: str) -> str:
    """Returns the text without a key, and without its section if that becomes empty; ConfigError if it is not set."""
    entries = {entry.name: entry for entry in _entries(_compose(text))}
    if name not in entries:
        raise ConfigError(f"{name} is not set", hint="`csmd config list` shows every key and where its value is from")
    entry = entries[name]
    sections = {id(section.value): section for section in entries.values()}
    while len(entry.around.value) == 1 and id(entry.around) in sections:
        entry = sections[id(entry.around)]
    start = entry.key.start_mark.index
    if not entry.around.flow_style:
        line_end = text.find("\n", _end(text, entry.value))
        return text[: text.rfind("\n", 0, start) + 1] + (text[line_end + 1 :] if line_end >= 0 else "")
    pairs = entry.around.value
    place = next(number for number, (key, _) in enumerate(pairs) if key is entry.key)
    if place + 1 < len(pairs):
        return text[:start] + text[pairs[place + 1][0].start_mark.index :]
    return text[: pairs[place - 1][1].end_mark.index if place else start] + text[entry.value.end_mark.index :]


def key_names(text: str) -> set[str]:
    """The dotted names of the keys that a text sets."""
    return {entry.name for entry in _entries(_compose(text)) if entry.value.id != "mapping"}


def _compose(text: str) -> yaml.MappingNode | None:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"not YAML: {error}", hint="csmd config edit") from error
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise ConfigError("config.yaml does not hold keys and values", hint="csmd config edit")
    return root


def _entries(node: yaml.MappingNode | None, prefix: str = "", depth: int = 0) -> Iterator[Entry]:
    for key, value in node.value if node is not None and depth < 8 else ():
        name = f"{prefix}{key.value}"
        yield Entry(name, key, value, node)
        if value.id == "mapping":
            yield from _entries(value, f"{name}.", depth + 1)


def _one_line(value: Any) -> str:
    """A value as YAML on one line."""
    import yaml

    # As an item of a flow list, so that braces and commas in it are quoted.
    listed: str = yaml.safe_dump(
        [list(value) if isinstance(value, tuple) else value], default_flow_style=True, width=1 << 30
    )
    return listed.strip().removeprefix("[").removesuffix("]")


def _end(text: str, value: Any) -> int:
    """The index where a value ends, without the comments after a block that YAML counts as part of it."""
    end = value.end_mark.index
    block = value.style in ("|", ">") if value.id == "scalar" else not value.flow_style
    if not block:
        return int(end)
    kept = text[value.start_mark.index : end]
    while (shorter := re.sub(r"(?:\n[ \t]*(?:#[^\n]*)?)\Z", "", kept)) != kept:
        kept = shorter
    return int(value.start_mark.index) + len(kept)


def _with_value(text: str, entry: Entry, shown: str) -> str:
    colon = text.index(":", entry.key.end_mark.index)
    between = text[colon + 1 : max(colon + 1, entry.value.start_mark.index)]
    remark = between[between.index("#") :].split("\n")[0] if "#" in between else ""
    return f"{text[: colon + 1]} {shown}{'  ' * bool(remark)}{remark}{text[max(colon + 1, _end(text, entry.value)) :]}"


def _with_key(text: str, around: Any, name: str, shown: str) -> str:
    """Returns the text with one more key in a mapping."""
    if around.flow_style:
        close = around.end_mark.index - 1
        comma = ", " if around.value and not text[:close].rstrip().endswith(",") else ""
        return f"{text[:close]}{comma}{name}: {shown}{text[close:]}"
    indent = " " * around.value[0][0].start_mark.column
    line_end = text.find("\n", _end(text, around.value[-1][1]))
    if line_end < 0:
        return f"{text}\n{indent}{name}: {shown}\n"
    return f"{text[: line_end + 1]}{indent}{name}: {shown}\n{text[line_end + 1 :]}"
