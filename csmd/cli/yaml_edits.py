"""Edits config.yaml and leaves every other byte alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from csmd.errors import ConfigError

if TYPE_CHECKING:
    import yaml


#: Most levels of mappings that are searched for keys.
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of the file: its dotted name, the YAML nodes of key and value, and the mapping that holds them."""

    name: str
    key: Any
    value: Any
    parent: Any


def set_key(text: str, name: str, value: Any) -> str:
    """Returns the text with a key set: in place, else in its section, else at the end."""
    root = _compose(text)
    entries = {entry.name: entry for entry in _walk_entries(root)}
    yaml_value = _format_value(value)
    if name in entries:
        return _replace_value(text, entries[name], yaml_value)
    section, _, key = name.partition(".")
    if key and section in entries and entries[section].value.id == "mapping":
        return _add_key(text, entries[section].value, key, yaml_value)
    if root is not None:
        return _add_key(text, root, name, yaml_value)
    separator = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{separator}{name}: {yaml_value}\n"


def remove_key(text: str, name: str) -> str:
    """Returns the text without a key, and without its section if that becomes empty; ConfigError if it is not set."""
    entries = {entry.name: entry for entry in _walk_entries(_compose(text))}
    if name not in entries:
        raise ConfigError(f"{name} is not set", hint="`csmd config list` shows every key and its value")
    entry = entries[name]
    sections = {id(section.value): section for section in entries.values()}
    while len(entry.parent.value) == 1 and id(entry.parent) in sections:
        entry = sections[id(entry.parent)]
    start = entry.key.start_mark.index
    if not entry.parent.flow_style:
        line_end = text.find("\n", _value_end(text, entry.value))
        return text[: text.rfind("\n", 0, start) + 1] + (text[line_end + 1 :] if line_end >= 0 else "")
    pairs = entry.parent.value
    index = next(number for number, (key, _) in enumerate(pairs) if key is entry.key)
    if index + 1 < len(pairs):
        next_key, _ = pairs[index + 1]
        return text[:start] + text[next_key.start_mark.index :]
    _, previous_value = pairs[index - 1]
    return text[: previous_value.end_mark.index if index else start] + text[entry.value.end_mark.index :]


def key_names(text: str) -> set[str]:
    """Returns the dotted names of the keys that a text sets."""
    return {entry.name for entry in _walk_entries(_compose(text)) if entry.value.id != "mapping"}


def _compose(text: str) -> yaml.MappingNode | None:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"config.yaml: not YAML: {error}", hint="csmd config edit") from error
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise ConfigError("config.yaml: expected keys and values", hint="csmd config edit")
    return root


def _walk_entries(node: yaml.MappingNode | None, prefix: str = "", depth: int = 0) -> Iterator[Entry]:
    for key, value in node.value if node is not None and depth < MAX_DEPTH else ():
        name = f"{prefix}{key.value}"
        yield Entry(name, key, value, node)
        if value.id == "mapping":
            yield from _walk_entries(value, f"{name}.", depth + 1)


def _format_value(value: Any) -> str:
    """Returns a value as YAML on one line."""
    import yaml

    # As an item of a flow list, so that braces and commas in it are quoted.
    item = list(value) if isinstance(value, tuple) else value
    flow_list: str = yaml.safe_dump([item], default_flow_style=True, width=1 << 30)
    return flow_list.strip().removeprefix("[").removesuffix("]")


def _value_end(text: str, value: Any) -> int:
    """Returns the index where a value ends, without the comments after a block that YAML counts as part of it."""
    end = value.end_mark.index
    is_block = value.style in ("|", ">") if value.id == "scalar" else not value.flow_style
    if not is_block:
        return int(end)
    block = re.sub(r"(?:\n[ \t]*(?:#[^\n]*)?)+\Z", "", text[value.start_mark.index : end])
    return int(value.start_mark.index) + len(block)


def _replace_value(text: str, entry: Entry, yaml_value: str) -> str:
    start = text.index(":", entry.key.end_mark.index) + 1
    between = text[start : max(start, entry.value.start_mark.index)]
    comment = f"  {between[between.index('#') :]}".split("\n")[0] if "#" in between else ""
    return f"{text[:start]} {yaml_value}{comment}{text[max(start, _value_end(text, entry.value)) :]}"


def _add_key(text: str, mapping: Any, name: str, yaml_value: str) -> str:
    """Returns the text with one more key in a mapping."""
    if mapping.flow_style:
        close = mapping.end_mark.index - 1
        comma = ", " if mapping.value and not text[:close].rstrip().endswith(",") else ""
        return f"{text[:close]}{comma}{name}: {yaml_value}{text[close:]}"
    (first_key, _), (_, last_value) = mapping.value[0], mapping.value[-1]
    line = f"{' ' * first_key.start_mark.column}{name}: {yaml_value}\n"
    line_end = text.find("\n", _value_end(text, last_value))
    return f"{text}\n{line}" if line_end < 0 else f"{text[: line_end + 1]}{line}{text[line_end + 1 :]}"
