"""csmd's hooks in settings that have Claude Code's form of them and may hold comments; pure.

`hooks` is an object of lists, one for each event, of groups of handlers. Entries of ours run a script of csmd's home; they
are added behind others', and every byte of others stays, comments too. `where` is the file's name in errors: ConfigError
where the file cannot hold the entries.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import BadInput, ConfigError
from csmd.hosts.host_files import HooksState, Kind, Registration, script_in, words_of
from csmd.text import entry_edits, json_edits
from csmd.text.json_edits import Item

HOOKS = "hooks"
#: Where a handler stands: event, place of its group, place in the group.
Place = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEntries:
    """An assistant's hooks, which run its launcher in csmd's home: the same lines for every version of csmd."""

    host: str
    """Its name, and its launcher's."""
    file: Callable[[Path], Path]
    """The settings, below its configuration directory."""
    events: Mapping[str, int]
    """Event, by its own name -> seconds that the hook is granted."""
    second: int = 1000
    """What the settings call one."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Event -> its name on the hook's command line, where that is another: by it a hook knows what it waits for."""
    is_off: Callable[[dict[str, Any], Path, str | None], bool]
    """Whether settings switch hooks off, or this script of ours; by the settings, the script, and the text of `beside`."""
    beside: str = ""
    """Another file beside the settings on which that depends."""
    decode: Callable[[bytes | None, str], str] = lambda data, where: entry_edits.decode(entry_edits.JSON, data, where)

    def script(self, home: Path) -> Path:
        """The script that the entries run."""
        return script_in(home, self.host)

    def command(self, home: Path, event: str) -> str:
        """The command line of an event; it ends with 0 even where the script is gone."""
        return f"{shlex.join([str(self.script(home)), self.names.get(event, event)])} || true"

    def merge(self, text: str, wanted: Registration, where: str) -> str:
        """The settings with one handler for each event, behind others'; as they are where those are ours already."""
        script = self.script(wanted.home)
        handlers = {
            event: {"type": "command", "command": self.command(wanted.home, event), "timeout": seconds * self.second}
            for event, seconds in self.events.items()
        }
        ours = [(event, handler) for (event, _, _), handler in _ours(text, script, where)]
        if len(ours) == len(handlers) and dict(ours) == handlers:
            return text
        text = self.remove(text, wanted.home, where)
        for event, handler in handlers.items():
            text = _with_group(text, event, {HOOKS: [handler]}, where)
        return text

    def remove(self, text: str, home: Path, where: str) -> str:
        """The settings without our handlers, and without groups, lists and `hooks` that held nothing else."""
        for (event, group, place), _ in reversed(_ours(text, self.script(home), where)):
            text = json_edits.without_entry(text, (HOOKS, event, group, HOOKS, place))
        return text

    def state(self, folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
        """Whether handlers of a csmd home for all events stand in a directory's settings, which `read` reads, and are on."""
        file = self.file(folder)
        settings, script = parsed(read(str(file))), self.script(home)
        if settings is None:
            return "unknown"
        hooks = settings.get(HOOKS)
        hooks = hooks if isinstance(hooks, dict) else {}
        if any(not any(str(script) in words_of(own) for own in _handlers_in(hooks, event)) for event in self.events):
            return "gone"
        beside = read(str(file.parent / self.beside)) if self.beside else None
        return "off" if self.is_off(settings, script, beside) else "there"

    @property
    def kind(self) -> Kind:
        """What the installer puts in."""
        return Kind(
            name=f"{self.host} hooks",
            what="hooks",
            file=self.file,
            merge=self.merge,
            remove=self.remove,
            decode=self.decode,
        )


def parsed(text: str | None) -> dict[str, Any] | None:
    """The settings in a text, {} for no file; None where it holds none."""
    plain = json_edits.without_comments((text or "").removeprefix(json_edits.BOM))
    try:
        settings = {} if json_edits.is_blank(plain) else wire.loads(plain)
    except BadInput:
        return None
    return settings if isinstance(settings, dict) else None


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
