"""Reads the assistant's settings that may stop or distort capture.

Files, precedence and keys are Claude Code's (docs/hooks.md). A file that is not a JSON object has a problem and no
value.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from csmd import wire
from csmd.errors import BadInput
from csmd.hosts.host_files import expand_words, parse_days, split_command
from csmd.hosts.registrations import CLAUDE
from csmd.json_fields import mapping, mappings

Scope = Literal["managed", "local", "project", "user"]
#: Every event of the client.
EVENTS = (
    "SessionStart Setup UserPromptSubmit UserPromptExpansion PreToolUse PermissionRequest PermissionDenied PostToolUse "
    "PostToolUseFailure PostToolBatch Notification MessageDisplay SubagentStart SubagentStop Stop StopFailure "
    "PreCompact PostCompact SessionEnd InstructionsLoaded ConfigChange CwdChanged FileChanged DirectoryAdded "
    "WorktreeCreate WorktreeRemove TaskCreated TaskCompleted TeammateIdle Elicitation ElicitationResult PreModelSwitch "
    "PostModelSwitch"
).split()
#: The first version that knows every event csmd registers.
OLDEST_CLIENT = (1, 0, 85)
#: Other memory programs: name -> pattern of their commands, plugins and servers.
OTHERS: Mapping[str, str] = {
    "claude-mem": "claude-mem", "mem0": "(?:mem0|openmemory)", "memsearch": "memsearch",
    "episodic-memory": "episodic-memory", "basic-memory": "basic-memory", "memory-keeper": "(?:mcp-)?memory-keeper",
    "mcp-memory-service": "(?:mcp-)?memory-service", "mempalace": "mempalace",
    "hindsight": "hindsight(?:-memory|-mcp|-embed)?", "supermemory": "(?:claude-)?supermemory",
    "letta": "(?:claude-subconscious|letta)", "cognee": "cognee", "zep": "(?:zep|graphiti)(?:-mcp)?",
    "deja-vu": "deja-vu", "claude-diary": "claude-diary",
}  # fmt: skip
_HOOK = re.compile(r"(/.*)/hook/(?:csmd_hook\.py|post-turn|pre-compact|session-start|session-end|subagent-stop|prompt)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A command registered for an event; `home` is the csmd home whose hook it runs, "" for another program."""

    event: str
    command: str
    home: str
    timeout: float
    path: str
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One settings file: its scope, its content and its problem."""

    path: str
    scope: Scope
    value: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    exists: bool = True


def settings_files(folders: Sequence[Path], cwd: Path, managed: Path) -> list[tuple[Path, Scope]]:
    """Returns the settings files of sessions in `cwd`, by precedence."""
    users: dict[Path, Scope] = {folder / "settings.json": "user" for folder in folders}
    project = cwd / ".claude"
    own: dict[Path, Scope] = {managed: "managed", project / "settings.local.json": "local"}
    own[project / "settings.json"] = "project"
    # In the parent of the assistant's own directory the project's file is the user's.
    return [(path, scope) for path, scope in own.items() if path not in users] + list(users.items())


def managed_pieces(managed: Path) -> list[tuple[Path, Scope]]:
    """Returns the drop-ins of managed settings (`managed-settings.d/*.json`) by precedence: the last by name first."""
    folder = managed.with_suffix(".d")
    return [(path, "managed") for path in sorted(folder.glob("*.json"), reverse=True)]


def read_source(path: Path, scope: Scope, read: Callable[[Path], bytes | None]) -> Source:
    """Reads a settings file; `read` returns its bytes, None for none."""
    source = Source(path=str(path), scope=scope)
    try:
        data = read(path)
        text = "" if data is None else data.decode().removeprefix("\ufeff").strip()
        value = wire.loads(text) if text else {}
    except OSError as error:
        return replace(source, problem=error.strerror or type(error).__name__)
    except (BadInput, UnicodeDecodeError):
        return replace(source, problem="not JSON")
    if not isinstance(value, dict):
        return replace(source, problem="not a JSON object")
    return replace(source, value=value, exists=data is not None)


def registered_commands(source: Source) -> list[Registered]:
    """Returns every command that a file registers, in order."""
    commands = []
    for event, groups in mapping(source.value, "hooks").items():
        for group in mappings(groups):
            commands += [_make_registered(event, handler, source) for handler in mappings(group.get("hooks"))]
    return commands


def _make_registered(event: str, handler: dict[str, Any], source: Source) -> Registered:
    arguments = handler.get("args")
    words = [handler.get("command"), *(arguments if isinstance(arguments, list) else [])]
    command = shlex.join(map(str, words)) if len(words) > 1 else str(words[0] or "")
    timeout = handler.get("timeout")
    seconds = float(timeout) if isinstance(timeout, int | float) and not isinstance(timeout, bool) else 0.0
    home = next((match[1] for match in map(_HOOK.fullmatch, expand_words([command])) if match), "")
    return Registered(event=event, command=command, home=home, timeout=seconds, path=source.path, scope=source.scope)


def program(command: str) -> str:
    """Returns the name of the program that a command runs, without its directory and arguments."""
    words = split_command(command)
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    return words[0].rpartition("/")[2] if words else ""


def variables(source: Source) -> dict[str, Any]:
    """Returns the environment variables that a file sets for sessions."""
    return mapping(source.value, "env")


def variable(sources: Sequence[Source], name: str) -> tuple[Source | None, str]:
    """Returns the file that sets a session's environment variable, and the value; (None, "") for none."""
    settings = ((source, variables(source)) for source in sources)
    return next(((source, str(values[name])) for source, values in settings if name in values), (None, ""))


def cleanup_days(sources: Sequence[Source]) -> tuple[int, str]:
    """Returns (days after which transcripts are deleted, the first file that states them, "" for the default)."""
    days_by_source = ((parse_days(source.value.get("cleanupPeriodDays")), source.path) for source in sources)
    return next(((days, path) for days, path in days_by_source if days is not None), (CLAUDE.transcript_days, ""))


def plugins(sources: Sequence[Source]) -> list[str]:
    """Returns the names of the plugins that are switched on, without their marketplace."""
    is_on: dict[str, bool] = {}
    for source in reversed(sources):
        chosen = mapping(source.value, "enabledPlugins")
        is_on |= {str(name).partition("@")[0]: bool(on) for name, on in chosen.items()}
    return sorted(name for name, on in is_on.items() if on)


def servers(state: Mapping[str, Any], cwd: str) -> list[str]:
    """Returns the names of the MCP servers of the user and of this directory."""
    locations = (state, _project(state, cwd))
    return [str(name) for location in locations for name in mapping(location, "mcpServers")]


def other_memories(words: Sequence[str]) -> list[str]:
    """Returns the other memory programs that are named in these commands, plugins and servers."""
    text = "\n".join(words)
    return [name for name, pattern in OTHERS.items() if re.search(rf"(?<![\w-]){pattern}(?!\w)", text, re.IGNORECASE)]


def is_trusted(state: Mapping[str, Any], cwd: str) -> bool | None:
    """Whether the user has trusted a directory or a parent; None if the client knows none of them."""
    projects = [_project(state, str(folder)) for folder in (Path(cwd), *Path(cwd).parents)]
    return any(project.get("hasTrustDialogAccepted") is True for project in projects) if any(projects) else None


def _project(state: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    return mapping(mapping(state, "projects"), cwd)


def state_files(folder: Path) -> list[Path]:
    """Returns the files with the client's state, trusted directories among it, for one configuration directory."""
    at_home = [folder.parent / ".claude.json"] if folder.name == ".claude" else []
    return [folder / ".claude.json", *at_home]
