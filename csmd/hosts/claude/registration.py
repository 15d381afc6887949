"""csmd's entries in Claude Code's settings files; pure.

Each kind of entry has a function that merges it into the text of a JSON object and one that removes it. Merging twice
equals merging once, removing an entry that is not there changes nothing, and every other byte is kept. `where` is the
file's name in errors: ConfigError if the file cannot hold the entry.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from csmd import config
from csmd.errors import ConfigError
from csmd.hosts import hook_entries
from csmd.hosts.host_files import (
    HOOK_SCRIPT,
    SERVER_NAME,
    SERVER_SCRIPT,
    HostFiles,
    Registration,
    SettingsEntry,
    hook_timeouts,
    runs_script,
    script_path,
)  # fmt: skip
from csmd.text import json_edits
from csmd.text.json_edits import Item

#: Event -> seconds that the assistant grants the hook; known to every version since 1.0.85.
EVENTS: Mapping[str, int] = hook_timeouts(
    "session_start", "prompt", "stop", "subagent_stop", "pre_compact", "session_end"
)
#: Event -> the first version of the assistant that knows it; registered if every client in use does. StopFailure: a
#: turn that ended in an error is read like any other. PostCompact: the summary that continues the session is read at
#: once, not at the next sweep. PostToolUseFailure: a failure that was solved before is answered with its solution.
#: (2.0.77 knows it at the latest.)
NEWER: Mapping[str, str] = {"PostCompact": "2.1.76", "StopFailure": "2.1.78", "PostToolUseFailure": "2.0.77"}
TIMEOUTS: Mapping[str, int] = {**EVENTS, **hook_timeouts("post_compact", "stop_failure", "tool_failure")}
#: Event -> the tools that it runs for, so that no process is started for others.
MATCHERS: Mapping[str, str] = {"PostToolUseFailure": "^(Bash$|mcp__)"}

#: Platform -> the file of an organisation's settings, which users cannot change; other platforms are like Linux.
MANAGED = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "linux": "/etc/claude-code/managed-settings.json",
}
#: Days after which the client deletes a transcript by default.
CLEANUP_DAYS = 30

STATUS_LINE_SCRIPT = "csmd_line.py"


# --- hooks


def hook_command(interpreter: str, home: Path, event: str) -> str:
    """The command line registered for an event; it exits with 0 even if the script or the interpreter is gone."""
    return f"{shlex.join([interpreter, '-I', '-S', str(script_path(home, HOOK_SCRIPT)), str(home), event])} || true"


def merge_hooks(text: str, wanted: Registration, where: str) -> str:
    """The settings with csmd's hooks."""
    groups = {event: _group(wanted.interpreter, wanted.home, event) for event in wanted.events}
    return hook_entries.merge_hooks(text, groups, wanted.home, HOOK_SCRIPT, where)


def _group(interpreter: str, home: Path, event: str) -> dict[str, Any]:
    matcher = {"matcher": MATCHERS[event]} if event in MATCHERS else {}
    handler = {"type": "command", "command": hook_command(interpreter, home, event), "timeout": TIMEOUTS[event]}
    return {**matcher, "hooks": [handler]}


def remove_hooks(text: str, home: Path, where: str, *, events: Collection[str] | None = None) -> str:
    """The settings without csmd's hooks (for `events` only)."""
    return hook_entries.remove_hooks(text, home, HOOK_SCRIPT, where, events)


# --- the status line

STATUS_LINE = "statusLine"


def status_line_command(interpreter: str, home: Path) -> str:
    """The registered command line; it exits with 0 even if the script or the interpreter is gone."""
    return f"{shlex.join([interpreter, '-I', '-S', str(script_path(home, STATUS_LINE_SCRIPT)), str(home)])} || true"


def merge_status_line(text: str, wanted: Registration, _where: str) -> str:
    """The settings with csmd's status line: added or updated, unless the user has another."""
    value = {"type": "command", "command": status_line_command(wanted.interpreter, wanted.home)}
    current, is_ours = _status_line(text, wanted.home)
    if current is None:
        return json_edits.append_item(text, json_edits.find_root(text), STATUS_LINE, value)
    return json_edits.apply_edits(text, json_edits.plan_replacement(text, current, value)) if is_ours else text


def remove_status_line(text: str, home: Path, _where: str) -> str:
    """The settings without csmd's status line; any other is kept."""
    is_ours = _status_line(text, home)[1]
    return json_edits.remove_member(text, json_edits.find_root(text), STATUS_LINE) if is_ours else text


def foreign_status_line(text: str, wanted: Registration, _where: str) -> str:
    """The message for a user who has a status line of their own, else ""; its second line is to be copied, so never
    broken."""
    current, is_ours = _status_line(text, wanted.home)
    if current is None or is_ours:
        return ""
    command = status_line_command(wanted.interpreter, wanted.home)
    return f"your status line stays as it is; to show csmd's in it, have its script run\n{command}"


def _status_line(text: str, home: Path) -> tuple[Item | None, bool]:
    """The status line in the settings, and whether it is csmd's."""
    item = json_edits.find_member(text, json_edits.find_root(text), STATUS_LINE)
    return item, item is not None and runs_script(json_edits.read_value(text, item), home, STATUS_LINE_SCRIPT)


# --- the memory server

SERVERS = "mcpServers"


def server_entry(home: Path, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """The server's entry in the assistant's settings."""
    return {"type": "stdio", "command": str(script_path(home, SERVER_SCRIPT)), "args": [*arguments], "env": {}}


def merge_server(text: str, wanted: Registration, where: str) -> str:
    """The file with csmd's server: its entry is added or updated in place, a second one is removed."""
    entry = server_entry(wanted.home, wanted.server_arguments)
    servers, items, ours = _servers(text, wanted.home, where)
    if servers is None:
        return json_edits.append_item(text, json_edits.find_root(text), SERVERS, {SERVER_NAME: entry})
    if not ours:
        is_taken = any(item.key == SERVER_NAME for item in items)
        return text if is_taken else json_edits.append_item(text, servers.value, SERVER_NAME, entry)
    edits = json_edits.plan_removals(items, [item in ours[1:] for item in items])
    value = json_edits.read_value(text, ours[0])
    # The user may have added keys and chosen tools.
    if not wanted.server_arguments and "--tools" in value.get("args", []):
        entry["args"] = value["args"]
    if any(value.get(key) != entry[key] for key in ("command", "args")) or value.get("type", "stdio") != "stdio":
        edits += json_edits.plan_replacement(text, ours[0], entry)
    return json_edits.apply_edits(text, edits)


def remove_server(text: str, home: Path, where: str) -> str:
    """The file without csmd's server, and without `mcpServers` if that had no others."""
    _, items, ours = _servers(text, home, where)
    if ours and len(ours) == len(items):
        return json_edits.remove_member(text, json_edits.find_root(text), SERVERS)
    return json_edits.apply_edits(text, json_edits.plan_removals(items, [item in ours for item in items]))


def foreign_server(text: str, wanted: Registration, where: str) -> str:
    """Tells the user that another server has the name of csmd's; "" if csmd's is in the file."""
    if _servers(text, wanted.home, where)[2]:
        return ""
    return f"{where} has another server named {SERVER_NAME}, which stays: csmd's is not there until that is renamed"


def _servers(text: str, home: Path, where: str) -> tuple[Item | None, list[Item], list[Item]]:
    """The member `mcpServers`, its entries, and those that run this home's server, whatever their name."""
    servers = json_edits.find_member(text, json_edits.find_root(text), SERVERS)
    if servers is None:
        return None, [], []
    if text[servers.value] != "{":
        raise ConfigError(f"{where}: `{SERVERS}` is not an object", hint="correct it, then run this again")
    items = json_edits.read_items(text, servers.value)
    return (
        servers,
        items,
        [item for item in items if runs_script(json_edits.read_value(text, item), home, SERVER_SCRIPT)],
    )


# --- the files


def settings_file(folder: Path) -> Path:
    """The assistant's user settings in one of its configuration directories."""
    return folder / "settings.json"


def state_file(folder: Path) -> Path:
    """The file with the assistant's MCP servers, for one of its configuration directories.

    For ~/.claude that is ~/.claude.json, unless CLAUDE_CONFIG_DIR names the directory or only the file in it exists.
    """
    usual = config.user_home() / ".claude"
    in_home, inside = usual.parent / ".claude.json", folder / ".claude.json"
    is_inside = folder != usual or config.is_chosen(folder) or (inside.exists() and not in_home.exists())
    return inside if is_inside else in_home


FILES = HostFiles(
    host="claude", title="Claude Code", folder=".claude", variable="CLAUDE_CONFIG_DIR", program="claude",
    program_folders=(
        ".local/bin", ".claude/local", ".claude/local/node_modules/.bin", ".npm-global/bin", ".bun/bin", ".volta/bin",
        "/usr/local/bin", "/opt/homebrew/bin", "/usr/bin",
    ),
    events=TIMEOUTS, newer=NEWER, tolerant_since="2.1.101", hook_command=hook_command,
    without_events=lambda text, home, where, events: remove_hooks(text, home, where, events=events),
    managed=MANAGED, transcript_days=CLEANUP_DAYS,
    kinds=(
        SettingsEntry(name="hooks", what="hooks", file=settings_file, merge=merge_hooks, remove=remove_hooks),
        SettingsEntry(
            name="status line", what="status line", file=settings_file, merge=merge_status_line,
            remove=remove_status_line, is_wanted=lambda wanted: wanted.status_line, obstacle=foreign_status_line,
        ),
        SettingsEntry(
            name="server", what="memory server", file=state_file, shared=True, merge=merge_server, remove=remove_server,
            obstacle=foreign_server,
        ),
    ),
)  # fmt: skip
