"""csmd's hooks in settings that have Claude Code's form of them and may contain comments; pure.

`hooks` is an object of lists, one for each event, of groups of handlers. csmd's handlers run a script in its home; they
are added after others, and every other byte is kept, comments too. `where` is the file's name in errors: ConfigError if
the file cannot hold the handlers.
"""  # fmt: skip

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import BadInput, ConfigError
from csmd.hosts import host_files
from csmd.hosts.host_files import HooksState, HostFiles, Registration, SettingsEntry, runs_script, script_path
from csmd.text import entry_edits, json_edits
from csmd.text.json_edits import Item

HOOKS = "hooks"
#: The path from the root of the settings to a group or a handler: keys, and numbers in lists.
SettingsPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEntries:
    """An assistant's hooks, which run its launcher in csmd's home: the lines are the same for every version of csmd."""

    host: str
    """Its name, which is also its launcher's."""
    file: Callable[[Path], Path]
    """The settings, by its configuration directory."""
    events: Mapping[str, int]
    """Event, by the host's name -> timeout of its hook in seconds."""
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
        """Returns the script that the entries run."""
        return script_path(home, self.host)

    def command(self, home: Path, event: str) -> str:
        """Returns the command line of an event; it exits with 0 even if the script is gone."""
        return f"{shlex.join([str(self.script(home)), self.names.get(event, event)])} || true"

    def merge(self, text: str, registration: Registration, where: str) -> str:
        """Returns the settings with one handler of csmd's for each event."""
        groups = {}
        for event, seconds in self.events.items():
            command = self.command(registration.home, event)
            groups[event] = {HOOKS: [{"type": "command", "command": command, "timeout": seconds * self.second}]}
        return merge_hooks(text, groups, registration.home, self.host, where)

    def remove(self, text: str, home: Path, where: str) -> str:
        """Returns the settings without csmd's handlers."""
        return remove_hooks(text, home, self.host, where)

    def state(self, folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
        """Whether a directory's settings, which `read` reads, have handlers of a csmd home for all events and run
        them."""
        file = self.file(folder)
        settings, script = parse_settings(read(str(file))), self.script(home)
        if settings is None:
            return "unknown"
        hooks = settings.get(HOOKS)
        hooks = hooks if isinstance(hooks, dict) else {}
        handlers = {event: map(host_files.split_entry, _handlers_in(hooks, event)) for event in self.events}
        if not all(any(str(script) in words for words in commands) for commands in handlers.values()):
            return "gone"
        second = read(str(file.parent / self.second_file)) if self.second_file else None
        return "off" if self.is_off(settings, script, second) else "there"

    @property
    def kind(self) -> SettingsEntry:
        """The entry that the installer writes."""
        return SettingsEntry(
            name=f"{self.host} hooks", what="hooks", file=self.file, merge=self.merge, remove=self.remove,
            decode=self.decode,
        )  # fmt: skip

    def files(self, **fields: Any) -> HostFiles:
        """Returns the assistant's files; `fields` are the other fields of the value."""
        return HostFiles(
            host=self.host, program=self.host, launcher=self.host, events=self.events, kinds=(self.kind,),
            hook_command=lambda _, home, event: self.command(home, event),
            **{"state": self.state, "markers": host_files.PROBED_EVENTS, **fields},
        )  # fmt: skip


def parse_settings(text: str | None) -> dict[str, Any] | None:
    """Returns the settings in a text, {} for no file; None if it is not a JSON object."""
    plain = json_edits.blank_comments((text or "").removeprefix(json_edits.BOM))
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


def merge_hooks(text: str, groups: Mapping[str, dict[str, Any]], home: Path, script: str, where: str) -> str:
    """Returns the settings with these groups, each of one handler that runs a script of csmd's home, by event.

    A handler of csmd's is updated in place; a second one, and one for another event, is removed. A missing group is
    added after others.
    """
    edits: list[json_edits.Edit] = []
    updated: set[str] = set()
    extra: list[SettingsPath] = []
    plain = json_edits.blank_comments(text)
    for event, path, handler in _find_handlers(plain, home, script, where):
        if event in groups and event not in updated:
            updated.add(event)
            edits += json_edits.plan_replacement(plain, handler, groups[event][HOOKS][0])
        else:
            extra.append(path)
    text = _remove_entries(json_edits.apply_edits(text, edits), extra)
    for event, group in groups.items():
        if event not in updated:
            text = _add_group(text, event, group, where)
    return text


def remove_hooks(text: str, home: Path, script: str, where: str, events: Collection[str] | None = None) -> str:
    """Returns the settings without handlers that run a script of csmd's home (for `events` only).

    Groups, lists and `hooks` that contained nothing else are removed too.
    """
    own_handlers = _find_handlers(json_edits.blank_comments(text), home, script, where)
    return _remove_entries(text, [path for event, path, _ in own_handlers if events is None or event in events])


def _remove_entries(text: str, paths: list[SettingsPath]) -> str:
    """Returns the settings without the groups and handlers at these paths, which are in the order of the file."""
    for path in reversed(paths):
        text = json_edits.remove_entry(text, path)
    return text


def _find_handlers(plain: str, home: Path, script: str, where: str) -> Iterator[tuple[str, SettingsPath, Item]]:
    """Yields (event, path, handler) of csmd's handlers in the order of the file; the path is the group's if it has no
    other handler."""
    for event in _find_event_lists(plain, where):
        for number, group in enumerate(json_edits.read_items(plain, event.value)):
            handlers = _list_handlers(plain, group)
            for index, handler in enumerate(handlers):
                if runs_script(json_edits.read_value(plain, handler), home, script):
                    path: SettingsPath = (HOOKS, event.key, number)
                    yield event.key, path if len(handlers) == 1 else (*path, HOOKS, index), handler


def _find_event_lists(plain: str, where: str) -> Iterator[Item]:
    """Yields the lists of events; other members of `hooks` are the assistant's settings."""
    hooks = json_edits.find_member(plain, json_edits.find_root(plain), HOOKS)
    if hooks is None:
        return
    if plain[hooks.value] != "{":
        raise ConfigError(f"{where}: `{HOOKS}` is not an object", hint="correct it, then run this again")
    for item in json_edits.read_items(plain, hooks.value):
        if plain[item.value] == "{":
            raise ConfigError(f"{where}: `{HOOKS}.{item.key}` is not a list", hint="correct it, then run this again")
        if plain[item.value] == "[":
            yield item


def _list_handlers(plain: str, group: Item) -> list[Item]:
    handlers = json_edits.find_member(plain, group.value, HOOKS) if plain[group.value] == "{" else None
    return json_edits.read_items(plain, handlers.value) if handlers is not None and plain[handlers.value] == "[" else []


def _add_group(text: str, event: str, group: dict[str, Any], where: str) -> str:
    plain = json_edits.blank_comments(text)
    hooks = json_edits.find_member(plain, json_edits.find_root(plain), HOOKS)
    if hooks is None:
        return json_edits.append_item(text, json_edits.find_root(plain), HOOKS, {event: [group]})
    groups = json_edits.find_member(plain, hooks.value, event)
    if groups is None:
        return json_edits.append_item(text, hooks.value, event, [group])
    if plain[groups.value] != "[":
        raise ConfigError(f"{where}: `{HOOKS}.{event}` is not a list", hint="correct it, then run this again")
    return json_edits.append_item(text, groups.value, None, group)
