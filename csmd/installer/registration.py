"""csmd's entries in the assistant's own files, hooks, server and status line: merged in and taken out as edits of the text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import BadInput, ConfigError
from csmd.installer import foreign_files, json_edits
from csmd.installer.json_edits import Edit, Item

#: Event -> seconds that the assistant grants the hook; known to every version since 1.0.85.
EVENTS: Mapping[str, int] = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 5,
    "SubagentStop": 5,
    "PreCompact": 5,
    "SessionEnd": 5,
}
#: Event -> the first version of the assistant that knows it; registered where every client in use does (clients.py).
#: StopFailure: a turn that ended in an error ends no less, and the hint reads what was said before it. PostCompact: the
#: summary that goes on in the user's place is read at once, not at the next sweep.
#: PostToolUseFailure: a failure that was solved before is answered with what solved it. (2.0.77 knows it at the latest.)
NEWER: Mapping[str, str] = {"PostCompact": "2.1.76", "StopFailure": "2.1.78", "PostToolUseFailure": "2.0.77"}
TIMEOUTS: Mapping[str, int] = {**EVENTS, **dict.fromkeys(NEWER, 5)}
#: Event -> for which tools it runs: no process is started where csmd has nothing to say. The others have none.
MATCHERS: Mapping[str, str] = {"PostToolUseFailure": "^(Bash$|mcp__)"}


def hook_command(interpreter: str, home: Path, event: str) -> str:
    """The command line registered for `event`; it ends with 0 even where the script or the interpreter is gone."""
    script = home / "hook" / "csmd_hook.py"
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into a settings file", hint="choose another CSMD_HOME")
    return f"{shlex.join([interpreter, '-I', '-S', str(script), str(home), event])} || true"


def hooks_json(interpreter: str, home: Path, events: Sequence[str] = tuple(EVENTS)) -> dict[str, Any]:
    """What to paste into a settings file by hand: an object whose one key is `hooks`."""
    return {"hooks": {event: [_group(interpreter, home, event)] for event in events}}


def plan_merge(
    current: bytes | None,
    interpreter: str,
    home: Path,
    where: str = "settings.json",
    *,
    events: Sequence[str] = tuple(EVENTS),
) -> bytes:
    """The settings file with our hooks in it; `current` is None where there is no file, `where` its name in errors.

    An entry of ours is replaced where it stands, a second one goes, so does that of an event which is not in `events`;
    a missing one is added behind the others'. Merging what was merged changes nothing. ConfigError when `current` is
    no JSON object or its `hooks` no object of lists.
    """
    text = foreign_files.text_of(current, where)
    if foreign_files.is_blank(text):
        bom = foreign_files.BOM if text.startswith(foreign_files.BOM) else ""
        return f"{bom}{wire.pretty(hooks_json(interpreter, home, events))}\n".encode()
    text = _without(text, home, where, keep=(interpreter, events))
    for event in events:
        root, group = json_edits.root(text), _group(interpreter, home, event)
        hooks = _hooks(text, where)
        groups = json_edits.member(text, hooks.value, event) if hooks else None
        if hooks is None:
            text = json_edits.append(text, root, "hooks", {event: [group]})
        elif groups is None:
            text = json_edits.append(text, hooks.value, event, [group])
        elif not _has_ours(text, groups, home):
            text = json_edits.append(text, groups.value, None, group)
    return text.encode()


def plan_withdrawal(current: bytes, home: Path, where: str = "settings.json", *, events: Collection[str]) -> bytes:
    """The settings file without our hooks of these events; whatever else is there or gone stays so."""
    text = foreign_files.text_of(current, where)
    return current if foreign_files.is_blank(text) else _without(text, home, where, only=events).encode()


def plan_removal(current: bytes, home: Path, where: str = "settings.json") -> bytes:
    """The settings file without the hooks of this home; groups, lists and `hooks` that held nothing else go too."""
    text = foreign_files.text_of(current, where)
    return _without(text, home, where).encode() if not foreign_files.is_blank(text) else current


# --- ours, and what is to go


def _group(interpreter: str, home: Path, event: str) -> dict[str, Any]:
    matcher = {"matcher": MATCHERS[event]} if event in MATCHERS else {}
    return {**matcher, "hooks": [_handler(interpreter, home, event)]}


def _handler(interpreter: str, home: Path, event: str) -> dict[str, Any]:
    return {"type": "command", "command": hook_command(interpreter, home, event), "timeout": TIMEOUTS[event]}


def _is_ours(handler: Any, home: Path) -> bool:
    """Whether a handler runs this home's hook, however it is quoted or wrapped; another home's is foreign."""
    if not isinstance(handler, dict):
        return False
    command, arguments = handler.get("command"), handler.get("args")
    words = [word for word in [command, *(arguments if isinstance(arguments, list) else [])] if isinstance(word, str)]
    for _ in range(2):  # a command line, and one in a word of it, as in sh -c '...'
        words += [part for word in words for part in _shell_words(word)]
    script = re.compile(rf"(?<![\w./~-]){re.escape(str(home / 'hook' / 'csmd_hook.py'))}(?![\w./-])")
    return any(script.search(word) for word in words)


def _shell_words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quote that is never closed
        return []


def _hooks(text: str, where: str) -> Item | None:
    """The member `hooks`; ConfigError when it is not an object of lists."""
    hooks = json_edits.member(text, json_edits.root(text), "hooks")
    if hooks is not None:
        fine = text[hooks.value] == "{" and all(
            text[event.value] == "[" for event in json_edits.items(text, hooks.value)
        )
        if not fine:
            raise ConfigError(f"{where}: `hooks` is not an object of lists", hint="correct it, then run this again")
    return hooks


def _handlers(text: str, group: Item) -> Item | None:
    """The list of handlers in a group of an event, None where a group has another shape."""
    found = json_edits.member(text, group.value, "hooks") if text[group.value] == "{" else None
    return found if found is not None and text[found.value] == "[" else None


def _has_ours(text: str, event: Item, home: Path) -> bool:
    lists = [_handlers(text, group) for group in json_edits.items(text, event.value)]
    handlers = [handler for found in lists if found for handler in json_edits.items(text, found.value)]
    return any(_is_ours(wire.loads(text[handler.value : handler.end]), home) for handler in handlers)


def _without(
    text: str,
    home: Path,
    where: str,
    keep: tuple[str, Sequence[str]] | None = None,
    only: Collection[str] | None = None,
) -> str:
    """`text` without our entries, or those of the events `only`; with `keep` (interpreter, events) the first one of
    each is brought up to date."""
    hooks = _hooks(text, where)
    if hooks is None:
        return text
    edits: list[Edit] = []
    kept: set[str] = set()

    def prune(container: Item, goes: Callable[[Item], bool]) -> bool:
        """Whether everything in `container` goes; else what goes of it is added to `edits`."""
        items = json_edits.items(text, container.value)
        gone = [goes(item) for item in items]
        if items and all(gone):
            return True
        edits.extend(json_edits.cuts(items, gone))
        return False

    def handler_goes(handler: Item, event: str) -> bool:
        value = wire.loads(text[handler.value : handler.end])
        if not _is_ours(value, home) or (only is not None and event not in only):
            return False
        if keep is None or event in kept or event not in keep[1]:
            return True
        kept.add(event)
        wanted = _handler(keep[0], home, event)
        if value != wanted:
            edits.append((handler.value, handler.end, json_edits.render_in_place(text, handler, wanted)))
        return False

    def group_goes(group: Item, event: str) -> bool:
        handlers = _handlers(text, group)
        return handlers is not None and prune(handlers, lambda handler: handler_goes(handler, event))

    def event_goes(event: Item) -> bool:
        return prune(event, lambda group: group_goes(group, event.key))

    if prune(hooks, event_goes):
        return json_edits.without_member(text, json_edits.root(text), "hooks")
    return json_edits.edited(text, edits)


NAME = "csmd"
KEY = "mcpServers"
BOM = "\ufeff"
SERVER_SCRIPT = Path("hook") / "mcp"


def config_file(folder: Path, *, user_home: Path, chosen: bool) -> Path:
    """Where the assistant keeps its servers: in its configuration directory when that was `chosen`, else beside it."""
    return folder / ".claude.json" if chosen else user_home / ".claude.json"


def entry(home: Path) -> dict[str, Any]:
    """The server as the assistant is told of it."""
    return {"type": "stdio", "command": str(home / SERVER_SCRIPT), "args": [], "env": {}}


def merge_server(before: bytes | None, home: Path, where: str = ".claude.json") -> bytes:
    """The file with our server in it; `before` is None where there is no file, `where` its name in errors.

    An entry of ours is brought up to date where it stands, a second one goes. ConfigError when `before` is no JSON object
    or its `mcpServers` is none.
    """
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into {where}", hint="choose another CSMD_HOME")
    text = _decode(before, where)
    if not text.removeprefix(BOM).strip():
        bom = BOM if text.startswith(BOM) else ""
        return f"{bom}{wire.pretty({KEY: {NAME: entry(home)}})}\n".encode()
    servers = _servers(text, where)
    if servers is None:
        return json_edits.append(text, json_edits.root(text), KEY, {NAME: entry(home)}).encode()
    ours = _ours(text, servers, home)
    if not ours:
        taken = json_edits.member(text, servers.value, NAME) is not None
        return (text if taken else json_edits.append(text, servers.value, NAME, entry(home))).encode()
    items = json_edits.items(text, servers.value)
    edits = json_edits.cuts(items, [item in ours[1:] for item in items])
    if _needs_change(wire.loads(text[ours[0].value : ours[0].end]), home):
        edits.append((ours[0].value, ours[0].end, json_edits.render_in_place(text, ours[0], entry(home))))
    return json_edits.edited(text, edits).encode()


def removal(current: bytes, home: Path, where: str = ".claude.json") -> bytes:
    """The file without our server; `mcpServers` goes too when it held nothing else."""
    text = _decode(current, where)
    servers = _servers(text, where) if text.removeprefix(BOM).strip() else None
    if servers is None:
        return current
    items, ours = json_edits.items(text, servers.value), _ours(text, servers, home)
    if not ours:
        return current
    if len(ours) == len(items):
        return json_edits.without_member(text, json_edits.root(text), KEY).encode()
    return json_edits.edited(text, json_edits.cuts(items, [item in ours for item in items])).encode()


def is_registered(current: bytes | None, home: Path) -> bool:
    """Whether the assistant would start this home's server; False for a file that cannot be read."""
    try:
        text = _decode(current, "")
        servers = _servers(text, "") if text.removeprefix(BOM).strip() else None
    except ConfigError:
        return False
    return servers is not None and bool(_ours(text, servers, home))


def _ours(text: str, servers: Item, home: Path) -> list[Item]:
    """The entries that run this home's script, whatever they are called."""
    script = str(home / SERVER_SCRIPT)

    def runs(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        words = [value.get("command"), *(value["args"] if isinstance(value.get("args"), list) else ())]
        return script in words

    found = json_edits.items(text, servers.value)
    return [item for item in found if runs(wire.loads(text[item.value : item.end]))]


def _needs_change(value: dict[str, Any], home: Path) -> bool:
    """Whether an entry of ours was altered where it counts; keys that the user added to it are theirs."""
    wanted = entry(home)
    return any(value.get(key) != wanted[key] for key in ("command", "args")) or value.get("type", "stdio") != "stdio"


def _servers(text: str, where: str) -> Item | None:
    servers = json_edits.member(text, json_edits.root(text), KEY)
    if servers is not None and text[servers.value] != "{":
        raise ConfigError(f"{where}: `{KEY}` is not an object", hint="correct it, then run this again")
    return servers


def _decode(current: bytes | None, where: str) -> str:
    """The text of the file; ConfigError when it is neither blank nor a JSON object."""
    hint = f"csmd never overwrites what it cannot read: correct {where} or move it away"
    try:
        text = (current or b"").decode()
        bare = text.removeprefix(BOM).strip()
        value = wire.loads(bare) if bare else {}
    except (UnicodeDecodeError, BadInput) as error:
        raise ConfigError(f"{where}: {error}", hint=hint) from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: not a JSON object", hint=hint)
    return text


#: The assistant's own word for it.
MEMBER = "statusLine"
STATUS_LINE_SCRIPT = "csmd_line.py"


def command(interpreter: str, home: Path) -> str:
    """The command line that is registered; it ends with 0 even where the script or the interpreter is gone."""
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into a settings file", hint="choose another CSMD_HOME")
    return f"{shlex.join([interpreter, '-I', '-S', str(home / 'hook' / STATUS_LINE_SCRIPT), str(home)])} || true"


def value(interpreter: str, home: Path) -> dict[str, Any]:
    """The member as it is registered."""
    return {"type": "command", "command": command(interpreter, home)}


def merge_status_line(text: str, interpreter: str, home: Path) -> str:
    """The settings with our status line: added where there is none, ours brought up to date, a foreign one left.

    `text` is a JSON object. Merging what was merged changes nothing.
    """
    found = json_edits.member(text, json_edits.root(text), MEMBER)
    wanted = value(interpreter, home)
    if found is None:
        return json_edits.append(text, json_edits.root(text), MEMBER, wanted)
    there = wire.loads(text[found.value : found.end])
    if not is_ours(there, home) or there == wanted:
        return text
    return json_edits.edited(text, [(found.value, found.end, json_edits.render_in_place(text, found, wanted))])


def remove(text: str, home: Path) -> str:
    """The settings without our status line; a foreign one stays."""
    found = json_edits.member(text, json_edits.root(text), MEMBER)
    if found is None or not is_ours(wire.loads(text[found.value : found.end]), home):
        return text
    return json_edits.without_member(text, json_edits.root(text), MEMBER)


def is_foreign(text: str, home: Path) -> bool:
    """Whether these settings have a status line that is not this home's."""
    found = json_edits.member(text, json_edits.root(text), MEMBER)
    return found is not None and not is_ours(wire.loads(text[found.value : found.end]), home)


def is_ours(there: Any, home: Path) -> bool:
    """Whether a status line runs this home's script, however it is quoted or wrapped."""
    said = there.get("command") if isinstance(there, dict) else None
    if not isinstance(said, str):
        return False
    script = re.compile(rf"(?<![\w./~-]){re.escape(str(home / 'hook' / STATUS_LINE_SCRIPT))}(?![\w./-])")
    words = [said]
    for _ in range(2):  # a command line, and one in a word of it, as in sh -c '...'
        words += [part for word in words for part in _status_line_words(word)]
    return any(script.search(word) for word in words)


def advice(interpreter: str, home: Path) -> str:
    """What to tell a user who has a status line of their own; the second line is to be copied, and never broken."""
    return f"your status line stays as it is; to show csmd's in it, have its script run\n{command(interpreter, home)}"


def _status_line_words(said: str) -> list[str]:
    try:
        return shlex.split(said)
    except ValueError:  # a quote that is never closed
        return []
