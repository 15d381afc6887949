"""csmd's hooks in the assistant's settings.json: merged in and taken out as edits of the text, never a rewrite of it.

Every byte that is not ours stays where it is: foreign hooks, unknown keys, their order, doubled keys, spacing, number
forms, escapes, line ends. A file that is not a JSON object is an error and is never written. `uninstall` gives back the
very bytes by taking our entries out; what of them that would not give back (an empty `hooks`, say) is recorded, and
nothing else of the file: it may hold keys. Where somebody edited the file since, only our entries go.
The event names and the shape of `hooks` are the assistant's own vocabulary (docs/hooks.md).
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.cli import disk, json_text
from csmd.cli.json_text import Edit, Item
from csmd.errors import BadInput, ConfigError

#: Event -> seconds that the assistant grants the hook; known to every version since 1.0.85, none has a matcher.
EVENTS: Mapping[str, int] = {
    "SessionStart": 10,
    "UserPromptSubmit": 5,
    "Stop": 5,
    "SubagentStop": 5,
    "PreCompact": 5,
    "SessionEnd": 5,
}
BOM = "\ufeff"
#: The original is what is left of the file without our entries.
BY_REMOVAL = "by-removal"


def hook_command(interpreter: str, home: Path, event: str) -> str:
    """The command line registered for `event`; it ends with 0 even where the script or the interpreter is gone."""
    script = home / "hook" / "csmd_hook.py"
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into a settings file", hint="choose another CSMD_HOME")
    return f"{shlex.join([interpreter, '-I', '-S', str(script), str(home), event])} || true"


def hooks_json(interpreter: str, home: Path) -> dict[str, Any]:
    """What to paste into a settings file by hand: an object whose one key is `hooks`."""
    return {"hooks": {event: [_group(interpreter, home, event)] for event in EVENTS}}


def plan_merge(current: bytes | None, interpreter: str, home: Path, where: str = "settings.json") -> bytes:
    """The settings file with our hooks in it; `current` is None where there is no file, `where` its name in errors.

    An entry of ours is replaced where it stands, a second one goes, a missing one is added behind the others'. Merging
    what was merged changes nothing. ConfigError when `current` is no JSON object or its `hooks` no object of lists.
    """
    text = _decode(current, where)
    if not _is_something(text):
        bom = BOM if text.startswith(BOM) else ""
        return f"{bom}{wire.pretty(hooks_json(interpreter, home))}\n".encode()
    text = _without(text, home, where, keep=interpreter)
    for event in EVENTS:
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


def plan_removal(current: bytes, home: Path, where: str = "settings.json") -> bytes:
    """The settings file without the hooks of this home; groups, lists and `hooks` that held nothing else go too."""
    text = _decode(current, where)
    return _without(text, home, where).encode() if _is_something(text) else current


def install_entry(
    before: bytes | None, after: bytes, home: Path, previous: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the install record keeps of one settings file: how to come back to its bytes, the sha256 of what we wrote.

    `original` is None (there was no file), BY_REMOVAL, or where that does not give the bytes back `{"at": [start, end],
    "put": base64}`: what to put in place of bytes start to end of what the removal leaves.
    `previous` is the entry of an earlier install: as long as nobody edited the file since, its original stays the one.
    """
    original = None if before is None else plan_removal(before, home)
    if before is not None and previous is not None and _sha256(before) == previous["sha256"]:
        original = _original(before, previous, home)
    return {"original": _kept(original, plan_removal(after, home)), "sha256": _sha256(after)}


def removal(current: bytes | None, entry: Mapping[str, Any], home: Path) -> bytes | None:
    """The file as it was before install, or None for no file; where it was edited since, only our entries go."""
    if current is None or _sha256(current) == entry["sha256"]:
        return None if current is None else _original(current, entry, home)
    left = plan_removal(current, home)
    made_by_us = entry["original"] is None and left != current
    return None if made_by_us and wire.loads(left.decode().removeprefix(BOM)) == {} else left


def apply(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Write `after` (None: delete the file) through `path`'s symlinks, whole or not at all, with the old file's mode.

    ConfigError when the file is no longer `before`, or where it cannot be written; then it is as it was.
    """
    if after == before:
        return
    real = Path(os.path.realpath(path))
    try:
        if after is None:
            _expect(real, before)
            real.unlink()
            return
        mode = 0o600 if before is None else real.stat().st_mode & 0o7777
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk.write_whole(real, after, mode=mode, still=lambda: _expect(real, before))
    except OSError as error:
        raise ConfigError(f"{real} cannot be written: {error.strerror or error}",
                          hint="put the output of `csmd hooks print` into it by hand") from error  # fmt: skip


def read(path: Path) -> bytes | None:
    """The bytes of a settings file, None where there is none; ConfigError where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}", hint="check its permissions") from error


def diff(before: bytes | None, after: bytes | None, path: Path) -> str:
    """What `apply` would change, as a unified diff; empty when nothing."""
    old, new = (([] if data is None else data.decode(errors="replace").splitlines(True)) for data in (before, after))
    names = ("/dev/null" if before is None else str(path), "/dev/null" if after is None else str(path))
    lines = difflib.unified_diff(old, new, *names)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


# --- ours, and what is to go


def _group(interpreter: str, home: Path, event: str) -> dict[str, Any]:
    return {"hooks": [_handler(interpreter, home, event)]}


def _handler(interpreter: str, home: Path, event: str) -> dict[str, Any]:
    return {"type": "command", "command": hook_command(interpreter, home, event), "timeout": EVENTS[event]}


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


def _without(text: str, home: Path, where: str, keep: str | None = None) -> str:
    """`text` without our entries; with `keep` (an interpreter) the first one of each event is brought up to date."""
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
        if not _is_ours(value, home):
            return False
        if keep is None or event in kept or event not in EVENTS:
            return True
        kept.add(event)
        wanted = _handler(keep, home, event)
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


# --- bytes


def _decode(current: bytes | None, where: str) -> str:
    """The text of the file; ConfigError with the position when it is neither blank nor a JSON object."""
    hint = f"csmd never overwrites what it cannot read: correct {where} or move it away"
    try:
        text = (current or b"").decode()
        value = wire.loads(text.removeprefix(BOM)) if _is_something(text) else {}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: not UTF-8 at byte {error.start}", hint=hint) from error
    except BadInput as error:
        raise ConfigError(f"{where}: {error}", hint=hint) from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: not a JSON object at line 1", hint=hint)
    return text


def _is_something(text: str) -> bool:
    return bool(text.removeprefix(BOM).strip(" \t\r\n"))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _kept(original: bytes | None, left: bytes) -> Any:
    """What must be recorded to get from `left` (the file without our entries) to `original`: as little as possible."""
    if original is None or original == left:
        return None if original is None else BY_REMOVAL
    start = _alike(original, left)
    same = _alike(original[start:][::-1], left[start:][::-1])
    put = original[start : len(original) - same]
    return {"at": [start, len(left) - same], "put": base64.b64encode(put).decode()}


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    differs = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differs, min(len(one), len(other)))


def _original(current: bytes, entry: Mapping[str, Any], home: Path) -> bytes | None:
    """The bytes from before `install`, where `current` is what it wrote."""
    kept = entry["original"]
    if kept is None:
        return None
    left = plan_removal(current, home)
    if kept == BY_REMOVAL:
        return left
    start, end = kept["at"]
    return left[:start] + base64.b64decode(kept["put"]) + left[end:]


def _expect(real: Path, before: bytes | None) -> None:
    if read(real) != before:
        raise ConfigError(f"{real} was changed by somebody else just now", hint="run this again")
