"""Claude Code's settings, versions, context windows and memory directory."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from csmd.conversation import Turn
from csmd.hosts.adapter import Memo
from csmd.hosts.claude.export import VERSION as EXPORT_VERSION
from csmd.hosts.claude.registration import CLEANUP_DAYS, FILES
from csmd.hosts.host_files import HOOK_SCRIPT, HooksState, parse_days, script_path
from csmd.json_fields import iter_strings, mapping, parse_object
from csmd.paths import folder_name
from csmd.text import display, markdown
from csmd.vocabulary import INDEX_LINES, INDEX_UNITS


def settings_files(config_dir: str, *, platform: str, project: str = "") -> list[str]:
    """Returns the files that may hold a setting, in order of precedence; without `project` those that apply
    everywhere."""
    managed = FILES.managed_file(platform)
    own = [f"{project}/.claude/settings.local.json", f"{project}/.claude/settings.json"] if project else []
    return [managed, *own, f"{config_dir}/settings.json"]


def cleanup_days(texts: Sequence[str | None]) -> int | None:
    """Returns the days that transcripts are kept, by the first of these settings that states it; None if none does."""
    settings_days = (parse_days(settings_in(settings).get("cleanupPeriodDays")) for settings in texts)
    return next((days for days in settings_days if days is not None), None)


def days_kept(folder: str, project: str, read: Callable[[str], str | None]) -> int:
    """Returns the days after which transcripts of a project ("" for any) are deleted, by a configuration directory's
    settings."""
    days = cleanup_days([read(path) for path in settings_files(folder, platform=sys.platform, project=project)])
    return CLEANUP_DAYS if days is None else days


def settings_in(text: str | None) -> dict[str, Any]:
    """Returns the settings in a file's text; {} if there are none."""
    return _read(text) or {}


def _read(text: str | None) -> dict[str, Any] | None:
    return parse_object((text or "").removeprefix("\ufeff"))


def hooks_state(own: str | None, managed: str | None, *, script: str) -> HooksState:
    """Whether a user's settings run csmd's hooks (`script`, or its plugin), by the user's and the managed file.

    A missing file has no settings; with one that is not JSON the state is unknown.
    """
    user_settings, managed_settings = settings_in(own), settings_in(managed)
    if managed_settings.get("disableAllHooks") is True or managed_settings.get("allowManagedHooksOnly") is True:
        return "off"
    plugins = user_settings.get("enabledPlugins")
    if own is not None and own.strip(" \t\r\n\ufeff") and _read(own) is None:
        return "unknown"
    by_plugin = isinstance(plugins, dict) and any(name.startswith("csmd@") and on for name, on in plugins.items())
    script_pattern = rf"(?<![\w./~-])(?:{re.escape(script)}|{re.escape(shlex.quote(script))})"
    if not by_plugin and not re.search(script_pattern, "\n".join(iter_strings(user_settings.get("hooks")))):
        return "gone"
    return "off" if user_settings.get("disableAllHooks") is True else "there"


def hooks_state_in(folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
    """Whether the settings in one of the assistant's directories run the hooks of a csmd home."""
    managed, own = settings_files(str(folder), platform=sys.platform)
    return hooks_state(read(own), read(managed), script=str(script_path(home, HOOK_SCRIPT)))


#: Marks of a person's session in a terminal; a session without hooks (`--bare`) does not list agents or skills.
_TERMINAL = re.compile(rb'"entrypoint":\s?"cli"')
_LISTING = re.compile(rb'"type":\s?"(?:agent_listing_delta|skill_listing)"')
_HOOK_RAN = re.compile(rb'"command":\s?"[^"]{0,2000}csmd_hook\.py')


def expects_hooks(beginning: bytes) -> bool:
    """Whether csmd's hooks should have run in a session and did not, by its transcript's first bytes."""
    return all(mark.search(beginning) for mark in (_TERMINAL, _LISTING)) and not _HOOK_RAN.search(beginning)


def latest_versions(turns: Iterable[Turn]) -> dict[str, str]:
    """Version -> the time of its last turn among these, without the version that csmd writes into exports."""
    latest: dict[str, str] = {}
    for turn in turns:
        if turn.version != EXPORT_VERSION and display.parse_version(turn.version) is not None:
            latest[turn.version] = max(turn.at, latest.get(turn.version, ""))
    return latest


#: The context window of most models, and the one that can be chosen for some.
USUAL_WINDOW = 200_000
LARGE_WINDOW = 1_000_000
#: Beginning of a model's id -> its window. Every other model has the usual one.
WINDOWS: tuple[tuple[str, int], ...] = (("claude-2.0", 100_000), ("claude-instant", 100_000))
#: The host's suffix of the id of a model that is used with the large window.
LARGE_MARK = "[1m]"


def window(model: str, used: int) -> int:
    """Returns the window of a model; if more is in use than fits into the usual one, it is the large one."""
    size = next((tokens for beginning, tokens in WINDOWS if model.startswith(beginning)), USUAL_WINDOW)
    return LARGE_WINDOW if LARGE_MARK in model or used > size else size


#: Most memory files that are listed, newest first.
MAX_FILES = 200
#: Bytes of each file that are read for the list.
READ_BYTES = 1024 * 1024
TYPES = ("user", "feedback", "project", "reference")
FIELD_CHARACTERS = 400
#: Most characters that are quoted of the first line that was cut off the index.
MAX_EXCERPT_CHARACTERS = 80


def memo(filename: str, data: bytes, *, modified: str, size: int) -> Memo:
    """Returns the head of a memory file; `type` is at the top level (earlier clients) or in `metadata`."""
    problems: list[str] = []
    if size > len(data):
        problems.append(f"it is {size} bytes long; the first {len(data)} were read")
    head, _, problem = markdown.split_memo(data.decode("utf-8", "replace"))
    if problem:
        problems.append(problem)
    elif not head:
        problems.append("it has no head")
    if b"\xef\xbf\xbd" not in data and "\ufffd" in data.decode("utf-8", "replace"):
        problems.append("it is not UTF-8")
    metadata = mapping(head, "metadata")
    kind = _field(head.get("type", metadata.get("type")))
    if head and kind not in TYPES:
        problems.append(f"its type is {kind!r}, not {', '.join(TYPES)}" if kind else "it has no type")
    return Memo(
        filename=filename, name=_field(head.get("name", metadata.get("name"))),
        description=_field(head.get("description", metadata.get("description"))), type=kind if kind in TYPES else "",
        modified=_field(head.get("modified", metadata.get("modified"))) or modified, size=size,
        problems=tuple(problems),
    )  # fmt: skip


def body(data: bytes) -> str:
    """Returns a file's text without its head."""
    return markdown.split_memo(data.decode("utf-8", "replace"))[1]


def _field(value: Any) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat()
    plain = str(value) if isinstance(value, str | int | float) else ""
    return display.cut(display.squeeze(plain), FIELD_CHARACTERS)


def cut_index(content: str) -> str:
    """Returns a MEMORY.md's first 200 lines and 25,000 UTF-16 units, cut at a line, with the host's warning below."""
    lines = content.split("\n")
    units = display.count_utf16_units(content)
    if len(lines) <= INDEX_LINES and units <= INDEX_UNITS:
        return content
    beginning = "\n".join(lines[:INDEX_LINES])
    if display.count_utf16_units(beginning) > INDEX_UNITS:
        beginning = beginning.encode("utf-16-le", "surrogatepass")[: INDEX_UNITS * 2].decode("utf-16-le", "ignore")
        beginning = beginning[: beginning.rfind("\n")] if beginning.rfind("\n") > 0 else beginning
    whole = len(beginning.split("\n"))
    size = f"{units / 1024:.1f}KB"
    if len(lines) > INDEX_LINES and units > INDEX_UNITS:
        excess = f"{len(lines)} lines and {size}"
    elif len(lines) > INDEX_LINES:
        excess = f"{len(lines)} lines (limit: {INDEX_LINES})"
    else:
        excess = f"{size} (limit: {INDEX_UNITS / 1024:.1f}KB) — index entries are too long"
    if beginning == "\n".join(lines[:whole]):
        first = lines[whole].strip()
        first = first if len(first) <= MAX_EXCERPT_CHARACTERS else first[: MAX_EXCERPT_CHARACTERS - 1] + "…"
        lost = f'{len(lines) - whole} of {len(lines)} lines were cut off, starting at line {whole + 1} ("{first}")'
    else:
        kept_units = display.count_utf16_units(beginning)
        lost = f"everything after the first {kept_units} characters of line {whole} was cut off"
    return (
        f"{beginning}\n\n> WARNING: MEMORY.md is {excess}. Only part of it was loaded: {lost}. "
        "Keep index entries to one line under ~200 chars; move detail into topic files."
    )


def memory_folder(config_dir: str, root: str) -> str:
    """Returns the memory directory of the project in a directory, by a configuration directory."""
    return f"{config_dir}/projects/{folder_name(root)}/memory"
