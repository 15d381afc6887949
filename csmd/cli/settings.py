"""csmd's hooks in the assistant's settings.json: merged in and taken out as edits of the text, never a rewrite of it.

Every byte that is not ours stays where it is: foreign hooks, unknown keys, their order, doubled keys, spacing, number
forms, escapes, line ends. A file that is not a JSON object is an error and is never written.
The event names and the shape of `hooks` are the assistant's own vocabulary (docs/hooks.md).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.cli import edited, json_text
from csmd.cli.json_text import Edit, Item
from csmd.errors import ConfigError

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
    text = edited.text_of(current, where)
    if edited.is_blank(text):
        bom = edited.BOM if text.startswith(edited.BOM) else ""
        return f"{bom}{wire.pretty(hooks_json(interpreter, home, events))}\n".encode()
    text = _without(text, home, where, keep=(interpreter, events))
    for event in events:
        root, group = json_text.root(text), _group(interpreter, home, event)
        hooks = _hooks(text, where)
        groups = json_text.member(text, hooks.value, event) if hooks else None
        if hooks is None:
            text = json_text.append(text, root, "hooks", {event: [group]})
        elif groups is None:
            text = json_text.append(text, hooks.value, event, [group])
        elif not _has_ours(text, groups, home):
            text = json_text.append(text, groups.value, None, group)
    return text.encode()


def plan_withdrawal(current: bytes, home: Path, where: str = "settings.json", *, events: Collection[str]) -> bytes:
    """The settings file without our hooks of these events; whatever else is there or gone stays so."""
    text = edited.text_of(current, where)
    return current if edited.is_blank(text) else _without(text, home, where, only=events).encode()


def plan_removal(current: bytes, home: Path, where: str = "settings.json") -> bytes:
    """The settings file without the hooks of this home; groups, lists and `hooks` that held nothing else go too."""
    text = edited.text_of(current, where)
    return _without(text, home, where).encode() if not edited.is_blank(text) else current


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
    hooks = json_text.member(text, json_text.root(text), "hooks")
    if hooks is not None:
        fine = text[hooks.value] == "{" and all(
            text[event.value] == "[" for event in json_text.items(text, hooks.value)
        )
        if not fine:
            raise ConfigError(f"{where}: `hooks` is not an object of lists", hint="correct it, then run this again")
    return hooks


def _handlers(text: str, group: Item) -> Item | None:
    """The list of handlers in a group of an event, None where a group has another shape."""
    found = json_text.member(text, group.value, "hooks") if text[group.value] == "{" else None
    return found if found is not None and text[found.value] == "[" else None


def _has_ours(text: str, event: Item, home: Path) -> bool:
    lists = [_handlers(text, group) for group in json_text.items(text, event.value)]
    handlers = [handler for found in lists if found for handler in json_text.items(text, found.value)]
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
        items = json_text.items(text, container.value)
        gone = [goes(item) for item in items]
        if items and all(gone):
            return True
        edits.extend(json_text.cuts(items, gone))
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
            edits.append((handler.value, handler.end, json_text.render_in_place(text, handler, wanted)))
        return False

    def group_goes(group: Item, event: str) -> bool:
        handlers = _handlers(text, group)
        return handlers is not None and prune(handlers, lambda handler: handler_goes(handler, event))

    def event_goes(event: Item) -> bool:
        return prune(event, lambda group: group_goes(group, event.key))

    if prune(hooks, event_goes):
        return json_text.without_member(text, json_text.root(text), "hooks")
    return json_text.edited(text, edits)
