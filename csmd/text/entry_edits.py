"""Adds one entry to a settings file, or removes it, in JSON with comments, TOML or YAML; pure.

Text is edited in place, so comments, order and spacing stay. The edited text is parsed: if its settings are not the old
ones with (or without) the entry, csmd cannot edit that file and raises ConfigError. A file is a tree of objects; in a
YAML list an entry is the element with its `name`.
"""

from __future__ import annotations

import copy
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from csmd import wire
from csmd.errors import BadInput, ConfigError
from csmd.text import json_edits

#: The keys that lead to an entry, its own last.
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of settings file. `parse` raises ValueError or BadInput; `add` and `cut` need a text that it parses."""

    parse: Callable[[str], Any]
    add: Callable[[str, Path, Any], str]
    cut: Callable[[str, Path], str]
    dump: Callable[[Path, Any], str]
    """Renders a file with only the entry."""


def decode(form: Format, data: bytes | None, where: str) -> str:
    """Decodes a file, "" for none; raises ConfigError if it does not contain settings in this format."""
    hint = f"csmd never overwrites what it cannot read: correct {where} or move it away"
    try:
        text = (data or b"").decode()
        settings = _parse(form, text)
    except (ValueError, BadInput) as error:
        raise ConfigError(f"{where}: {' '.join(str(error).split())}", hint=hint) from error
    if not isinstance(settings, dict):
        raise ConfigError(f"{where}: not an object", hint=hint)
    return text


def find_entry(form: Format, text: str, path: Path) -> Any:
    """Returns the entry at a path, or None."""
    value = _parse(form, text)
    for key in path:
        if isinstance(value, list):
            value = next((item for item in value if isinstance(item, dict) and item.get("name") == key), None)
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def put_entry(form: Format, text: str, path: Path, entry: Any, where: str) -> str:
    """Adds the entry, or replaces the one with the same name."""
    old = find_entry(form, text, path)
    if old == entry:
        return text
    text = remove_entry(form, text, path, where)
    return _check_edit(form, text, form.add, path, where, entry, with_entry=True)


def remove_entry(form: Format, text: str, path: Path, where: str) -> str:
    """Removes the entry and the containers that have no other entry."""
    if (old := find_entry(form, text, path)) is None:
        return text
    return _check_edit(form, text, lambda text, path, _: form.cut(text, path), path, where, old, with_entry=False)


def _check_edit(
    form: Format, text: str, edit: Callable[[str, Path, Any], str], path: Path, where: str, entry: Any, *, with_entry: bool
) -> str:  # fmt: skip
    """Returns the text after `edit`; raises ConfigError if it changed anything but the one entry."""
    try:
        edited = edit(text, path, entry)
        with_it, without = (edited, text) if with_entry else (text, edited)
        is_right = find_entry(form, with_it, path) == entry and find_entry(form, without, path) is None
        is_right = is_right and _without_entry(form, edited, path) == _without_entry(form, text, path)
    except (ValueError, BadInput, LookupError, TypeError, AttributeError):
        is_right = False
    if not is_right:
        action = "add {} to" if with_entry else "remove {} from"
        problem = f"cannot {action.format('.'.join(path))} {where}: csmd cannot edit its form"
        raise ConfigError(problem, hint="write the entry by hand")
    return edited


def _parse(form: Format, text: str) -> Any:
    return form.parse(text.removeprefix(json_edits.BOM))


def _without_entry(form: Format, text: str, path: Path) -> Any:
    """Returns the settings without the entry, and without its containers that are empty then."""

    def without(value: Any, path: Path) -> Any:
        if isinstance(value, list):
            return [item for item in value if not (isinstance(item, dict) and item.get("name") == path[0])] or None
        if not isinstance(value, dict):
            return value
        inner = without(value.get(path[0]), path[1:]) if path[1:] else None
        rest = {key: item for key, item in value.items() if key != path[0]}
        return {**rest, **({} if inner is None else {path[0]: inner})} or None

    return without(copy.deepcopy(_parse(form, text)), path)


def _nest(path: Path, entry: Any) -> Any:
    for key in reversed(path):
        entry = {key: entry}
    return entry


# --- JSON


def _parse_json(text: str) -> Any:
    plain = json_edits.blank_comments(text)
    return {} if json_edits.is_blank(plain) else wire.loads(plain)


def _add_json(text: str, path: Path, entry: Any) -> str:
    plain = json_edits.blank_comments(text)
    if json_edits.is_blank(plain):
        text = f"{text}{{}}\n"
        plain = json_edits.blank_comments(text)
    offset = json_edits.find_root(plain)
    while len(path) > 1 and (item := json_edits.find_member(plain, offset, path[0])):
        offset = item.value
        path = path[1:]
    return json_edits.append_item(text, offset, path[0], _nest(path[1:], entry))


# --- TOML


def _parse_toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _dump_toml(path: Path, entry: Mapping[str, Any]) -> str:
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {wire.dumps(value)}" for key, value in entry.items())]
    return "\n".join(lines) + "\n"


def _add_toml(text: str, path: Path, entry: Any) -> str:
    if not text:
        return _dump_toml(path, entry)
    gap = "\n" if text.endswith("\n") else "\n\n"
    return text + _match_line_ends(text, gap + _dump_toml(path, entry))


def _cut_toml(text: str, path: Path) -> str:
    """Removes the table and its subtables; comments after its last line stay."""
    name = r"\s*\.\s*".join(rf"""["']?{re.escape(key)}["']?""" for key in path)
    header = re.compile(rf"\s*\[\s*{name}\s*[\].]")
    remaining: list[str] = []
    comments: list[str] = []  # after the last line of the table so far
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            was_inside, inside = inside, bool(header.match(line))
            if inside and not was_inside and remaining and not remaining[-1].strip():
                remaining.pop()
        if not inside:
            remaining += [*comments, line]
            comments = []
        elif line.strip() and not line.lstrip().startswith("#"):
            comments = []
        else:
            comments.append(line)
    return "".join([*remaining, *comments])


# --- YAML


def _parse_yaml(text: str) -> Any:
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return {} if value is None else value


def _dump_yaml(path: Path, entry: Any) -> str:
    return _dump_yaml_value(_nest(path, entry))


def _dump_yaml_list(path: Path, entry: Any) -> str:
    return _dump_yaml_value(_nest(path[:-1], [entry]))


def _dump_yaml_value(value: Any) -> str:
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100_000))


def _add_yaml(text: str, path: Path, entry: Any, *, dump: Callable[[Path, Any], str] = _dump_yaml) -> str:
    """Adds the entry as the first in the map or list `path[0]`, at the indent of the present entries."""
    import yaml

    _, value = _find_yaml_member(text, path[0])
    if value is None:
        gap = "" if not text or text.endswith("\n") else "\n"
        return text + _match_line_ends(text, gap + dump(path, entry))
    start = value.start_mark.index
    entry_text = dump(path[1:], entry)
    if isinstance(value, yaml.CollectionNode) and value.value:
        line = text.rfind("\n", 0, start) + 1
        return text[:line] + _match_line_ends(text, _indent(entry_text, start - line)) + text[line:]
    inner = _match_line_ends(text, "\n" + _indent(entry_text.rstrip("\n"), 2))  # replaces nothing, {} or []
    return text[:start].removesuffix(" ") + inner + text[value.end_mark.index :]


def _cut_yaml(text: str, path: Path) -> str:
    """Removes the lines of the entry, and the line of its parent if it was the only entry."""
    import yaml

    key, value = _find_yaml_member(text, path[0])
    assert key is not None and value is not None
    if isinstance(value, yaml.SequenceNode):
        children = [(item, item) for item in value.value]
        number = next(n for n, (_, item) in enumerate(children) if _read_yaml_name(item) == path[1])
    else:
        children = value.value
        number = next(n for n, (name, _) in enumerate(children) if name.value == path[1])
    start = text.rfind("\n", 0, children[number][0].start_mark.index) + 1
    if len(children) == 1 and text.count("\n", key.start_mark.index, start) == 1:
        start = text.rfind("\n", 0, key.start_mark.index) + 1
    end = text.find("\n", _find_yaml_end(children[number][1]))
    return text[:start] + ("" if end < 0 else text[end + 1 :])


def _find_yaml_member(text: str, key: str) -> tuple[Any, Any]:
    """Returns the nodes of a key of the outermost map and of its value; (None, None) if the key is missing."""
    import yaml

    document = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = document.value if document is not None else []
    return next(((name, value) for name, value in pairs if name.value == key), (None, None))


def _read_yaml_name(node: Any) -> str:
    return next((str(value.value) for name, value in node.value if name.value == "name"), "")


def _find_yaml_end(node: Any) -> int:
    """Returns the end of a node's last word; the end mark of a block would include the following comments."""
    if isinstance(node.value, str) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _find_yaml_end(last[1] if isinstance(last, tuple) else last)


def _indent(text: str, columns: int) -> str:
    return textwrap.indent(text, " " * columns)


def _match_line_ends(text: str, new: str) -> str:
    """Converts new lines to the line ends of a text."""
    return new.replace("\n", "\r\n") if "\r\n" in text else new


JSON = Format(
    parse=_parse_json, add=_add_json, cut=json_edits.remove_entry,
    dump=lambda path, entry: f"{wire.pretty(_nest(path, entry))}\n",
)  # fmt: skip
TOML = Format(parse=_parse_toml, add=_add_toml, cut=_cut_toml, dump=_dump_toml)
YAML = Format(parse=_parse_yaml, add=_add_yaml, cut=_cut_yaml, dump=_dump_yaml)
YAML_LIST = replace(YAML, add=partial(_add_yaml, dump=_dump_yaml_list), dump=_dump_yaml_list)
