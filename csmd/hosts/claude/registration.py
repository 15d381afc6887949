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
from csmd.hosts import hook_entries, host_files
from csmd.hosts.host_files import HOOK_SCRIPT, SERVER_SCRIPT, HostFiles, Registration, SettingsEntry, script_path
from csmd.text import json_edits
from csmd.text.json_edits import Item

#: Event -> seconds that the assistant grants the hook; known to every version since 1.0.85.
BASE_TIMEOUTS: Mapping[str, int] = host_files.hook_timeouts(
    "session_start", "prompt", "stop", "subagent_stop", "pre_compact", "session_end"
)
#: Event -> the first version of the assistant that knows it; registered if every client in use does. StopFailure: a
#: turn that ended in an error is read like any other. PostCompact: the summary that continues the session is read at
#: once, not at the next sweep. PostToolUseFailure: a failure that was solved before is answered with its solution.
#: (2.0.77 knows it at the latest.)
FIRST_VERSIONS: Mapping[str, str] = {"PostCompact": "2.1.76", "StopFailure": "2.1.78", "PostToolUseFailure": "2.0.77"}
TIMEOUTS: Mapping[str, int] = {
    **BASE_TIMEOUTS,
    **host_files.hook_timeouts("post_compact", "stop_failure", "tool_failure"),
}
#: Event -> the tools that it runs for, so that no process is started for others.
MATCHERS: Mapping[str, str] = {"PostToolUseFailure": "^(Bash$|mcp__)"}

#: Platform -> the file of an organisation's settings, which users cannot change; other platforms are like Linux.
MANAGED_SETTINGS = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "linux": "/etc/claude-code/managed-settings.json",
}
#: Days after which the client deletes a transcript by default.
CLEANUP_DAYS = 30

STATUS_LINE_SCRIPT = "csmd_line.py"


# --- hooks


def _guard_command(interpreter: str, home: Path, script: str, *arguments: str) -> str:
    """Returns a script's command line; it exits with 0 even if the script or the interpreter is gone."""
    return f"{shlex.join([interpreter, '-I', '-S', str(script_path(home, script)), str(home), *arguments])} || true"


def hook_command(interpreter: str, home: Path, event: str) -> str:
    """Returns the command line registered for an event."""
    return _guard_command(interpreter, home, HOOK_SCRIPT, event)


def merge_hooks(text: str, registration: Registration, where: str) -> str:
    """Returns the settings with csmd's hooks."""
    groups = {event: _make_group(registration.interpreter, registration.home, event) for event in registration.events}
    return hook_entries.merge_hooks(text, groups, registration.home, HOOK_SCRIPT, where)


def _make_group(interpreter: str, home: Path, event: str) -> dict[str, Any]:
    matcher = {"matcher": MATCHERS[event]} if event in MATCHERS else {}
    handler = {"type": "command", "command": hook_command(interpreter, home, event), "timeout": TIMEOUTS[event]}
    return {**matcher, "hooks": [handler]}


def remove_hooks(text: str, home: Path, where: str, *, events: Collection[str] | None = None) -> str:
    """Returns the settings without csmd's hooks (for `events` only)."""
    return hook_entries.remove_hooks(text, home, HOOK_SCRIPT, where, events)


# --- the status line

STATUS_LINE = "statusLine"


def status_line_command(interpreter: str, home: Path) -> str:
    """Returns the registered command line of the status line."""
    return _guard_command(interpreter, home, STATUS_LINE_SCRIPT)


def merge_status_line(text: str, registration: Registration, _where: str) -> str:
    """Returns the settings with csmd's status line: added or updated, unless the user has another."""
    value = {"type": "command", "command": status_line_command(registration.interpreter, registration.home)}
    current, is_ours = _find_status_line(text, registration.home)
    if current is None:
        return json_edits.append_item(text, json_edits.find_root(text), STATUS_LINE, value)
    return json_edits.apply_edits(text, json_edits.plan_replacement(text, current, value)) if is_ours else text


def remove_status_line(text: str, home: Path, _where: str) -> str:
    """Returns the settings without csmd's status line; any other is kept."""
    is_ours = _find_status_line(text, home)[1]
    return json_edits.remove_member(text, json_edits.find_root(text), STATUS_LINE) if is_ours else text


def describe_foreign_status_line(text: str, registration: Registration, _where: str) -> str:
    """Returns the message for a user who has a status line of their own, else ""; its second line is to be copied, so
    never broken."""
    current, is_ours = _find_status_line(text, registration.home)
    if current is None or is_ours:
        return ""
    command = status_line_command(registration.interpreter, registration.home)
    return f"your status line stays as it is; to show csmd's in it, have its script run\n{command}"


def _find_status_line(text: str, home: Path) -> tuple[Item | None, bool]:
    """Returns the status line in the settings, and whether it is csmd's."""
    item = json_edits.find_member(text, json_edits.find_root(text), STATUS_LINE)
    return item, item is not None and host_files.runs_script(
        json_edits.read_value(text, item), home, STATUS_LINE_SCRIPT
    )


# --- the memory server

SERVERS = "mcpServers"


def server_entry(home: Path, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the server's entry in the assistant's settings."""
    return {"type": "stdio", "command": str(script_path(home, SERVER_SCRIPT)), "args": [*arguments], "env": {}}


def merge_server(text: str, registration: Registration, where: str) -> str:
    """Returns the file with csmd's server: its entry is added or updated in place, a second one is removed."""
    entry = server_entry(registration.home, registration.server_arguments)
    servers, items, own_items = _find_servers(text, registration.home, where)
    if servers is None:
        return json_edits.append_item(text, json_edits.find_root(text), SERVERS, {host_files.SERVER_NAME: entry})
    if not own_items:
        is_taken = any(item.key == host_files.SERVER_NAME for item in items)
        return text if is_taken else json_edits.append_item(text, servers.value, host_files.SERVER_NAME, entry)
    edits = json_edits.plan_removals(items, [item in own_items[1:] for item in items])
    value = json_edits.read_value(text, own_items[0])
    # The user may have added keys and chosen tools.
    if not registration.server_arguments and "--tools" in value.get("args", []):
        entry["args"] = value["args"]
    if any(value.get(key) != entry[key] for key in ("command", "args")) or value.get("type", "stdio") != "stdio":
        edits += json_edits.plan_replacement(text, own_items[0], entry)
    return json_edits.apply_edits(text, edits)


def remove_server(text: str, home: Path, where: str) -> str:
    """Returns the file without csmd's server, and without `mcpServers` if that had no others."""
    _, items, own_items = _find_servers(text, home, where)
    if own_items and len(own_items) == len(items):
        return json_edits.remove_member(text, json_edits.find_root(text), SERVERS)
    return json_edits.apply_edits(text, json_edits.plan_removals(items, [item in own_items for item in items]))


def describe_foreign_server(text: str, registration: Registration, where: str) -> str:
    """Tells the user that another server has the name of csmd's; "" if csmd's is in the file."""
    if _find_servers(text, registration.home, where)[2]:
        return ""
    rename = "rename it and run `csmd install` again to add csmd's"
    return f"{where} already has a server named {host_files.SERVER_NAME}, which was kept; {rename}"


def _find_servers(text: str, home: Path, where: str) -> tuple[Item | None, list[Item], list[Item]]:
    """Returns the member `mcpServers`, its entries, and those that run this home's server, whatever their name."""
    servers = json_edits.find_member(text, json_edits.find_root(text), SERVERS)
    if servers is None:
        return None, [], []
    if text[servers.value] != "{":
        raise ConfigError(f"{where}: `{SERVERS}` is not an object", hint="correct it, then run this again")
    items = json_edits.read_items(text, servers.value)
    own_items = [
        item for item in items if host_files.runs_script(json_edits.read_value(text, item), home, SERVER_SCRIPT)
    ]
    return servers, items, own_items


# --- the files


def settings_file(folder: Path) -> Path:
    """Returns the assistant's user settings in one of its configuration directories."""
    return folder / "settings.json"


def state_file(config_directory: Path) -> Path:
    """Returns the file with the assistant's MCP servers, for one of its configuration directories.

    For ~/.claude that is ~/.claude.json, unless CLAUDE_CONFIG_DIR names the directory or only the file in it exists.
    """
    default_directory = config.user_home() / ".claude"
    in_home, inside = default_directory.parent / ".claude.json", config_directory / ".claude.json"
    is_chosen = config_directory != default_directory or config.is_chosen(config_directory)
    is_inside = is_chosen or (inside.exists() and not in_home.exists())
    return inside if is_inside else in_home


FILES = HostFiles(
    host="claude", title="Claude Code", folder=".claude", variable="CLAUDE_CONFIG_DIR", program="claude",
    program_folders=(
        ".local/bin", ".claude/local", ".claude/local/node_modules/.bin", ".npm-global/bin", ".bun/bin", ".volta/bin",
        "/usr/local/bin", "/opt/homebrew/bin", "/usr/bin",
    ),
    events=TIMEOUTS, newer=FIRST_VERSIONS, tolerant_since="2.1.101", hook_command=hook_command,
    without_events=lambda text, home, where, events: remove_hooks(text, home, where, events=events),
    managed=MANAGED_SETTINGS, transcript_days=CLEANUP_DAYS,
    kinds=(
        SettingsEntry(name="hooks", what="hooks", file=settings_file, merge=merge_hooks, remove=remove_hooks),
        SettingsEntry(
            name="status line", what="status line", file=settings_file, merge=merge_status_line,
            remove=remove_status_line, is_wanted=lambda wanted: wanted.status_line, obstacle=describe_foreign_status_line,
        ),
        SettingsEntry(
            name="server", what="memory server", file=state_file, shared=True, merge=merge_server, remove=remove_server,
            obstacle=describe_foreign_server,
        ),
    ),
)  # fmt: skip
