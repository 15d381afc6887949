"""csmd's hooks in settings that have Claude Code's form of them and may contain comments; pure.

`hooks` is an object of lists, one for each event, of groups of handlers. csmd's handlers run a script in its home; they are
added after others, and every other byte is kept, comments too. `where` is the file's name in errors: ConfigError if the file
cannot hold the handlers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import BadInput, ConfigError
from csmd.hosts.host_files import MARKERS, HooksState, HostFiles, Kind, Registration, script_in, words_of
from csmd.text import entry_edits, json_edits
from csmd.text.json_edits import Item

HOOKS = "hooks"
#: The position of a handler: event, number of its group, number in the group.
Position = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEntries:
    """An assistant's hooks, which run its launcher in csmd's home: the lines are the same for every version of csmd."""

    host: str
    """Its name, which is also its launcher's."""
    file: Callable[[Path], Path]
    """The settings, by its configuration directory."""
    events: Mapping[str, int]
    """Event, by the host's name -> seconds that the hook is granted."""
    second: int = 1000
    """A second in the unit of the settings."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Event -> its name on the hook's command line, if it differs; the hook script knows events by that name."""
    is_off: Callable[[dict[str, Any], Path, str | None], bool]
    """Whether settings switch off hooks, or csmd's; by the settings, csmd's script, and the text of `second_file`."""
    second_file: str = ""
    """Another file in the directory of the settings on which `is_off` depends."""
    decode: Callable[[bytes | None, str], str] = lambda data, where: entry_edits.decode(entry_edits.JSON, data, where)

    def script(self, home: Path) -> Path:
        """The script that the entries run."""
        return script_in(home, self.host)

    def command(self, home: Path, event: str) -> str:
        """The command line of an event; it exits with 0 even if the script is gone."""
        return f"{shlex.join([str(self.script(home)), self.names.get(event, event)])} || true"

    def merge(self, text: str, wanted: Registration, where: str) -> str:
        """The settings with one handler of csmd's for each event, after others; unchanged if they have these already."""
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
        """The settings without csmd's handlers, and without groups, lists and `hooks` that contained nothing else."""
        for (event, group, number), _ in reversed(_ours(text, self.script(home), where)):
            text = json_edits.without_entry(text, (HOOKS, event, group, HOOKS, number))
        return text

    def state(self, folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
        """Whether a directory's settings, which `read` reads, have handlers of a csmd home for all events and run them."""
        file = self.file(folder)
        settings, script = parsed(read(str(file))), self.script(home)
        if settings is None:
            return "unknown"
        hooks = settings.get(HOOKS)
        hooks = hooks if isinstance(hooks, dict) else {}
        if any(not any(str(script) in words_of(own) for own in _handlers_in(hooks, event)) for event in self.events):
            return "gone"
        second = read(str(file.parent / self.second_file)) if self.second_file else None
        return "off" if self.is_off(settings, script, second) else "there"

    @property
    def kind(self) -> Kind:
        """The kind of entry that the installer writes."""
        return Kind(
            name=f"{self.host} hooks", what="hooks", file=self.file, merge=self.merge, remove=self.remove, decode=self.decode,
        )  # fmt: skip

    def files(self, **more: Any) -> HostFiles:
        """The assistant's files; `more` are the other fields of the value."""
        return HostFiles(
            host=self.host, program=self.host, launcher=self.host, events=self.events, kinds=(self.kind,), state=self.state,
            hook_command=lambda _, home, event: self.command(home, event), **{"markers": MARKERS, **more},
        )  # fmt: skip


def parsed(text: str | None) -> dict[str, Any] | None:
    """The settings in a text, {} for no file; None if it is not a JSON object."""
    plain = json_edits.without_comments((text or "").removeprefix(json_edits.BOM))
    try:
        settings = {} if json_edits.is_blank(plain) else wire.loads(plain)
    except BadInput:
        return None
    return settings if isinstance(settings, dict) else None


def _handlers_in(hooks: Mapping[str, Any], event: str) -> Iterator[Any]:
    groups = hooks.get(event)
    for group in groups if isinstance(groups, list) else ():
        handlers = group.get(HOOKS) if isinstance(group, dict) else None
        yield from handlers if isinstance(handlers, list) else ()


def _ours(text: str, script: Path, where: str) -> list[tuple[Position, Any]]:
    """csmd's handlers and their positions, in the order of the file."""
    plain = json_edits.without_comments(text)
    return [
        ((event.key, group_number, number), value)
        for event in _lists(plain, where)
        for group_number, group in enumerate(json_edits.items(plain, event.value))
        for number, handler in enumerate(_handlers(plain, group))
        if str(script) in words_of(value := json_edits.value_of(plain, handler))
    ]


def _lists(plain: str, where: str) -> Iterator[Item]:
    """The lists of events; other members of `hooks` are the assistant's settings."""
    hooks = json_edits.member(plain, json_edits.root(plain), HOOKS)
    if hooks is None:
        return
    if plain[hooks.value] != "{":
        raise ConfigError(f"{where}: `{HOOKS}` is not an object", hint="correct it, then run this again")
    yield from (item for item in json_edits.items(plain, hooks.value) if plain[item.value] == "[")


def _handlers(plain: str, group: Item) -> list[Item]:
    handlers = json_edits.member(plain, group.value, HOOKS) if plain[group.value] == "{" else None
    return json_edits.items(plain, handlers.value) if handlers is not None and plain[handlers.value] == "[" else []


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
