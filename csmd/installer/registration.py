"""Small edits of JSON text that leave every other byte alone: find a member, cut items out, append one.

Works on text that was parsed before, so it need not find mistakes, and only on the levels it is asked for, so
nesting is no concern. New text takes on the file's own indent, line ends and spacing as far as it shows them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.errors import BadInput, ConfigError
from csmd.installer import foreign_files

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


def json_root(text: str) -> int:
    """Where the outermost object begins."""
    return text.index("{")


def json_items(text: str, at: int) -> list[Item]:
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
    return next((item for item in reversed(json_items(text, at)) if item.key == key), None)


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
    found = json_items(text, at)
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
    at = json_root(text)
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
        at = json_root(text) if parent is None else parent.value
        if depth == 1 or len(json_items(text, at)) > 1:
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
    found = json_items(text, at)
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
    found = json_items(text, json_root(text))
    return text[json_root(text) + 1 : found[0].start] if found else None


def _is_spread(text: str) -> bool:
    """Whether the file is written over several lines; an empty object takes on the common form."""
    gap = _gap(text)
    return gap is None or "\n" in gap


def _is_tight(text: str) -> bool:
    """Whether no space follows a key's colon."""
    found = json_items(text, json_root(text))
    return bool(found) and text[found[0].value - 1] == ":"


def _unit(text: str) -> str:
    gap = _gap(text)
    return gap.rpartition("\n")[2] if gap and "\n" in gap else _UNIT


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_of_line(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


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
        root, group = json_root(text), _group(interpreter, home, event)
        hooks = _hooks(text, where)
        groups = member(text, hooks.value, event) if hooks else None
        if hooks is None:
            text = append(text, root, "hooks", {event: [group]})
        elif groups is None:
            text = append(text, hooks.value, event, [group])
        elif not _has_ours(text, groups, home):
            text = append(text, groups.value, None, group)
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
    hooks = member(text, json_root(text), "hooks")
    if hooks is not None:
        fine = text[hooks.value] == "{" and all(text[event.value] == "[" for event in json_items(text, hooks.value))
        if not fine:
            raise ConfigError(f"{where}: `hooks` is not an object of lists", hint="correct it, then run this again")
    return hooks


def _handlers(text: str, group: Item) -> Item | None:
    """The list of handlers in a group of an event, None where a group has another shape."""
    found = member(text, group.value, "hooks") if text[group.value] == "{" else None
    return found if found is not None and text[found.value] == "[" else None


def _has_ours(text: str, event: Item, home: Path) -> bool:
    lists = [_handlers(text, group) for group in json_items(text, event.value)]
    handlers = [handler for found in lists if found for handler in json_items(text, found.value)]
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
        items = json_items(text, container.value)
        gone = [goes(item) for item in items]
        if items and all(gone):
            return True
        edits.extend(cuts(items, gone))
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
            edits.append((handler.value, handler.end, render_in_place(text, handler, wanted)))
        return False

    def group_goes(group: Item, event: str) -> bool:
        handlers = _handlers(text, group)
        return handlers is not None and prune(handlers, lambda handler: handler_goes(handler, event))

    def event_goes(event: Item) -> bool:
        return prune(event, lambda group: group_goes(group, event.key))

    if prune(hooks, event_goes):
        return without_member(text, json_root(text), "hooks")
    return edited(text, edits)


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
        return append(text, json_root(text), KEY, {NAME: entry(home)}).encode()
    ours = _ours(text, servers, home)
    if not ours:
        taken = member(text, servers.value, NAME) is not None
        return (text if taken else append(text, servers.value, NAME, entry(home))).encode()
    items = json_items(text, servers.value)
    edits = cuts(items, [item in ours[1:] for item in items])
    if _needs_change(wire.loads(text[ours[0].value : ours[0].end]), home):
        edits.append((ours[0].value, ours[0].end, render_in_place(text, ours[0], entry(home))))
    return edited(text, edits).encode()


def removal(current: bytes, home: Path, where: str = ".claude.json") -> bytes:
    """The file without our server; `mcpServers` goes too when it held nothing else."""
    text = _decode(current, where)
    servers = _servers(text, where) if text.removeprefix(BOM).strip() else None
    if servers is None:
        return current
    items, ours = json_items(text, servers.value), _ours(text, servers, home)
    if not ours:
        return current
    if len(ours) == len(items):
        return without_member(text, json_root(text), KEY).encode()
    return edited(text, cuts(items, [item in ours for item in items])).encode()


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

    found = json_items(text, servers.value)
    return [item for item in found if runs(wire.loads(text[item.value : item.end]))]


def _needs_change(value: dict[str, Any], home: Path) -> bool:
    """Whether an entry of ours was altered where it counts; keys that the user added to it are theirs."""
    wanted = entry(home)
    return any(value.get(key) != wanted[key] for key in ("command", "args")) or value.get("type", "stdio") != "stdio"


def _servers(text: str, where: str) -> Item | None:
    servers = member(text, json_root(text), KEY)
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
    found = member(text, json_root(text), MEMBER)
    wanted = value(interpreter, home)
    if found is None:
        return append(text, json_root(text), MEMBER, wanted)
    there = wire.loads(text[found.value : found.end])
    if not is_ours(there, home) or there == wanted:
        return text
    return edited(text, [(found.value, found.end, render_in_place(text, found, wanted))])


def remove(text: str, home: Path) -> str:
    """The settings without our status line; a foreign one stays."""
    found = member(text, json_root(text), MEMBER)
    if found is None or not is_ours(wire.loads(text[found.value : found.end]), home):
        return text
    return without_member(text, json_root(text), MEMBER)


def is_foreign(text: str, home: Path) -> bool:
    """Whether these settings have a status line that is not this home's."""
    found = member(text, json_root(text), MEMBER)
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
