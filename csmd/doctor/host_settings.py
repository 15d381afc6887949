"""The assistant's settings, read only: what stops or distorts capture.

Which files there are, which decides, and what their keys are called is Claude Code's own vocabulary. A file that is
no JSON object says nothing but its problem. Measured (docs/hooks.md); what writes is settings.py.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from csmd import wire
from csmd.errors import BadInput
from csmd.hosts.claude import registration

Scope = Literal["managed", "local", "project", "user"]
#: Every event the client has; a name of nobody's.
EVENTS = (
    "SessionStart", "Setup", "UserPromptSubmit", "UserPromptExpansion", "PreToolUse", "PermissionRequest", "PermissionDenied",
    "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "MessageDisplay", "SubagentStart", "SubagentStop",
    "Stop", "StopFailure", "PreCompact", "PostCompact", "SessionEnd", "InstructionsLoaded", "ConfigChange", "CwdChanged",
    "FileChanged", "DirectoryAdded", "WorktreeCreate", "WorktreeRemove", "TaskCreated", "TaskCompleted", "TeammateIdle",
    "Elicitation", "ElicitationResult", "PreModelSwitch", "PostModelSwitch",
)  # fmt: skip
#: The first version that knows every event csmd registers.
OLDEST_CLIENT = (1, 0, 85)
#: Other programs that remember and inject: what their commands, plugins or servers are called.
OTHERS: Mapping[str, str] = {
    "claude-mem": "claude-mem",
    "mem0": "(?:mem0|openmemory)",
    "memsearch": "memsearch",
    "episodic-memory": "episodic-memory",
    "basic-memory": "basic-memory",
    "memory-keeper": "(?:mcp-)?memory-keeper",
    "mcp-memory-service": "(?:mcp-)?memory-service",
    "mempalace": "mempalace",
    "hindsight": "hindsight(?:-memory|-mcp|-embed)?",
    "supermemory": "(?:claude-)?supermemory",
    "letta": "(?:claude-subconscious|letta)",
    "cognee": "cognee",
    "zep": "(?:zep|graphiti)(?:-mcp)?",
    "deja-vu": "deja-vu",
    "claude-diary": "claude-diary",
}
_HOOK = re.compile(r"(/.*)/hook/(?:csmd_hook\.py|post-turn|pre-compact|session-start|session-end|subagent-stop|prompt)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A command that a settings file registers for an event; `home` is the csmd home whose hook it runs, "" for others'."""

    event: str
    command: str
    home: str
    timeout: float
    path: str
    scope: Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One settings file: whose it is, what it says, and what is wrong with it."""

    path: str
    scope: Scope
    value: dict[str, Any] = field(default_factory=dict)
    problem: str = ""
    there: bool = True


def places(folders: Sequence[Path], cwd: Path, managed: Path) -> list[tuple[Path, Scope]]:
    """The settings files of sessions in `cwd`, the one that decides first."""
    own: list[tuple[Path, Scope]] = [
        (cwd / ".claude" / "settings.local.json", "local"), (cwd / ".claude" / "settings.json", "project"),
    ]  # fmt: skip
    users: list[tuple[Path, Scope]] = [(folder / "settings.json", "user") for folder in folders]
    known = {path for path, _ in users}  # somebody works in the assistant's own directory's parent
    return [(managed, "managed"), *((path, scope) for path, scope in own if path not in known), *users]


def managed_pieces(managed: Path) -> list[tuple[Path, Scope]]:
    """The drop-ins beside managed settings (`managed-settings.d/*.json`), the one that decides first: the last by name."""
    folder = managed.with_suffix(".d")
    return [(path, "managed") for path in sorted(folder.glob("*.json"), reverse=True)]


def source(path: Path, scope: Scope, read: Callable[[Path], bytes | None]) -> Source:
    """What a settings file says; `read` gives its bytes, None where there is none."""
    try:
        data = read(path)
        text = "" if data is None else data.decode().removeprefix("\ufeff").strip()
        value = wire.loads(text) if text else {}
    except OSError as error:
        return Source(path=str(path), scope=scope, problem=error.strerror or type(error).__name__)
    except (BadInput, UnicodeDecodeError):
        return Source(path=str(path), scope=scope, problem="not JSON")
    if not isinstance(value, dict):
        return Source(path=str(path), scope=scope, problem="not a JSON object")
    return Source(path=str(path), scope=scope, value=value, there=data is not None)


def registered(one: Source) -> list[Registered]:
    """Every command that a file registers, in its order."""
    hooks = one.value.get("hooks")
    found = []
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            handlers = group.get("hooks") if isinstance(group, dict) else None
            listed = handlers if isinstance(handlers, list) else []
            found += [_registered(event, handler, one) for handler in listed if isinstance(handler, dict)]
    return found


def _registered(event: str, handler: dict[str, Any], one: Source) -> Registered:
    arguments = handler.get("args")
    words = [handler.get("command"), *(arguments if isinstance(arguments, list) else [])]
    command = shlex.join([str(word) for word in words]) if len(words) > 1 else str(words[0] or "")
    timeout = handler.get("timeout")
    granted = float(timeout) if isinstance(timeout, int | float) and not isinstance(timeout, bool) else 0.0
    return Registered(
        event=event, command=command, home=_home(command), timeout=granted, path=one.path, scope=one.scope
    )


def _home(command: str) -> str:
    words = registration.in_shell([command])
    return next((found[1] for word in words if (found := _HOOK.fullmatch(word))), "")


def program(command: str) -> str:
    """The name of the program that a command runs, without its directory and arguments."""
    words = registration.split(command)
    while words and re.fullmatch(r"\w+=.*", words[0]):
        words = words[1:]
    return words[0].rpartition("/")[2] if words else ""


def set_in(sources: Sequence[Source], key: str) -> Source | None:
    """The file that decides about a key: the first that sets it; None where none does."""
    return next((one for one in sources if key in one.value), None)


def variables(one: Source) -> dict[str, Any]:
    """What a file sets in a session's environment."""
    given = one.value.get("env")
    return given if isinstance(given, dict) else {}


def variable(sources: Sequence[Source], name: str) -> tuple[Source, str] | None:
    """The value that settings give a session's environment variable, and which file; None where none does."""
    for one in sources:
        if name in (given := variables(one)):
            return one, str(given[name])
    return None


def cleanup_days(sources: Sequence[Source]) -> tuple[int, str]:
    """After how many days transcripts are deleted, and the file that says so ("" for the default)."""
    found = set_in(sources, "cleanupPeriodDays")
    days = found.value["cleanupPeriodDays"] if found else registration.CLEANUP_DAYS
    fine = isinstance(days, int | float) and not isinstance(days, bool) and 0 <= days < 2**31
    return (int(days), found.path if found else "") if fine else (registration.CLEANUP_DAYS, "")


def plugins(sources: Sequence[Source]) -> list[str]:
    """The names of the plugins that are switched on, without their marketplace."""
    found: dict[str, bool] = {}
    for one in reversed(sources):
        chosen = one.value.get("enabledPlugins")
        for name, on in chosen.items() if isinstance(chosen, dict) else ():
            found[str(name).partition("@")[0]] = bool(on)
    return sorted(name for name, on in found.items() if on)


def servers(state: Mapping[str, Any], cwd: str) -> list[str]:
    """The names of the MCP servers of the user and of this directory."""
    project = _project(state, cwd)
    found: list[str] = []
    for value in (state.get("mcpServers"), project.get("mcpServers")):
        found += map(str, value) if isinstance(value, dict) else []
    return found


def others(words: Sequence[str]) -> list[str]:
    """Which other programs that remember are named in these commands, plugins and servers."""
    said = "\n".join(words)
    return [name for name, words_of in OTHERS.items() if re.search(rf"(?<![\w-]){words_of}(?!\w)", said, re.IGNORECASE)]


def is_trusted(state: Mapping[str, Any], cwd: str) -> bool | None:
    """Whether the user has trusted a directory or one around it; None where the client has never been in any of them."""
    known = [_project(state, str(place)) for place in (Path(cwd), *Path(cwd).parents)]
    if not any(known):
        return None
    return any(one.get("hasTrustDialogAccepted") is True for one in known)


def _project(state: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    known = state.get("projects")
    found = known.get(cwd) if isinstance(known, dict) else None
    return found if isinstance(found, dict) else {}


def state_files(folder: Path) -> list[Path]:
    """Where the client keeps which directories are trusted, for one configuration directory."""
    beside = [folder.parent / ".claude.json"] if folder.name == ".claude" else []
    return [folder / ".claude.json", *beside]


def memory_folders(folder: Path) -> list[Path]:
    """The directories of the assistant's own memory that hold an index."""
    return sorted(found.parent for found in folder.glob("projects/*/memory/MEMORY.md"))
