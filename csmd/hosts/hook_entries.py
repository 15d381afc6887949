"""csmd's hooks in settings that have Claude Code's form of them and may hold comments; pure.

`hooks` is an object of lists, one for each event, of groups of handlers. Entries of ours run a script of csmd's home; they
are added behind others', and every byte of others stays, comments too. `where` is the file's name in errors: ConfigError
where the file cannot hold the entries.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from csmd import wire
from csmd.errors import BadInput, ConfigError
from csmd.hosts.host_files import words_of
from csmd.text import json_edits
from csmd.text.json_edits import Item

HOOKS = "hooks"
#: Whether hooks of ours stand in settings, and are on.
State = Literal["there", "gone", "off", "unknown"]
#: Where a handler stands: event, place of its group, place in the group.
Place = tuple[str, int, int]


def merge(text: str, wanted: Mapping[str, Mapping[str, Any]], script: Path, where: str) -> str:
    """The settings with one handler for each event of `wanted`; as they are where those are ours already."""
    ours = [(event, handler) for (event, _, _), handler in _ours(text, script, where)]
    if len(ours) == len(wanted) and dict(ours) == wanted:
        return text
    text = remove(text, script, where)
    for event, handler in wanted.items():
        text = _with_group(text, event, {HOOKS: [dict(handler)]}, where)
    return text


def remove(text: str, script: Path, where: str) -> str:
    """The settings without our handlers, and without groups, lists and `hooks` that held nothing else."""
    for (event, group, place), _ in reversed(_ours(text, script, where)):
        text = json_edits.without_entry(text, (HOOKS, event, group, HOOKS, place))
    return text


def handler(command: str, seconds: int, *, second: int = 1000) -> dict[str, Any]:
    """What runs a command line and is granted these seconds; `second` is what the settings call one."""
    return {"type": "command", "command": command, "timeout": seconds * second}


def command(script: Path, event: str) -> str:
    """The command line that runs a script for an event; it ends with 0 even where the script is gone."""
    return f"{shlex.join([str(script), event])} || true"


def parsed(text: str | None) -> dict[str, Any] | None:
    """The settings in a text, {} for no file; None where it holds none."""
    plain = json_edits.without_comments((text or "").removeprefix(json_edits.BOM))
    try:
        settings = {} if json_edits.is_blank(plain) else wire.loads(plain)
    except BadInput:
        return None
    return settings if isinstance(settings, dict) else None


def state_of(settings: Mapping[str, Any] | None, script: Path, events: Iterable[str], *, is_off: bool) -> State:
    """Whether handlers of ours for all these events stand in settings (None: unreadable), which may switch hooks off."""
    if settings is None:
        return "unknown"
    hooks = settings.get(HOOKS)
    hooks = hooks if isinstance(hooks, dict) else {}
    missing = [event for event in events if not any(str(script) in words_of(own) for own in _handlers_in(hooks, event))]
    return "gone" if missing else "off" if is_off else "there"


def _handlers_in(hooks: Mapping[str, Any], event: str) -> Iterator[Any]:
    groups = hooks.get(event)
    for group in groups if isinstance(groups, list) else ():
        found = group.get(HOOKS) if isinstance(group, dict) else None
        yield from found if isinstance(found, list) else ()


def _ours(text: str, script: Path, where: str) -> list[tuple[Place, Any]]:
    """Our handlers and their places, in the order of the file."""
    plain = json_edits.without_comments(text)
    return [
        ((event.key, number, place), value)
        for event in _lists(plain, where)
        for number, group in enumerate(json_edits.items(plain, event.value))
        for place, handler in enumerate(_handlers(plain, group))
        if str(script) in words_of(value := json_edits.value_of(plain, handler))
    ]


def _lists(plain: str, where: str) -> Iterator[Item]:
    """The lists of events; other members of `hooks` are settings of the assistant's."""
    hooks = json_edits.member(plain, json_edits.root(plain), HOOKS)
    if hooks is None:
        return
    if plain[hooks.value] != "{":
        raise ConfigError(f"{where}: `{HOOKS}` is not an object", hint="correct it, then run this again")
    yield from (item for item in json_edits.items(plain, hooks.value) if plain[item.value] == "[")


def _handlers(plain: str, group: Item) -> list[Item]:
    found = json_edits.member(plain, group.value, HOOKS) if plain[group.value] == "{" else None
    return json_edits.items(plain, found.value) if found is not None and plain[found.value] == "[" else []


def _with_group(text: str, event: str, group: dict[str, Any], where: str) -> str:
    plain = json_edits.without_comments(text)
    hooks = json_edits.member(plain, json_edits.root(plain), HOOKS)
    if hooks is None:
        return json_edits.append(text, json_edits.root(plain), HOOKS, {event: [group]})
    groups = json_edits.member(plain, hooks.value, event)
    if groups is None:
        return json_edits.append(text, hooks.value, event, [group])
    if plain[groups.value] != "[":
        raise ConfigError(f"{where}: `{HOOKS}.{event}` is not a list", hint="correct it, then run this again")
    return json_edits.append(text, groups.value, None, group)
