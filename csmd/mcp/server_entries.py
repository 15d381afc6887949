"""csmd's memory server in the settings of each assistant that starts MCP servers; pure, except that `path` looks.

The table has each assistant's file, key and form. Claude Code is not in it: `csmd install` registers the server there
(hosts/claude/registration.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csmd import config
from csmd.hosts.host_files import SERVER_NAME, SERVER_SCRIPT, script_path
from csmd.json_fields import iter_strings
from csmd.paths import is_there
from csmd.text import entry_edits
from csmd.text.entry_edits import JSON, TOML, YAML, YAML_LIST, Format

#: A command and its arguments to the entry that starts it.
Shape = Callable[[str, list[str]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The file of an assistant's MCP servers, and the form of an entry.

    The file is in `folder` below the user's home, or in the directory that `variable` names. `may_create` is whether a
    missing file may be created; a whole configuration has to be created by its assistant.
    """

    name: str
    folder: str
    file: str
    variable: str = ""
    format: Format = JSON
    key: str = "mcpServers"
    shape: Shape = lambda command, args: {"command": command, "args": args}
    may_create: bool = True
    documented: str

    def path(self) -> Path:
        """Returns the file on this machine; for JSON settings the one with comments if only that exists."""
        file = config.folder_of(self.variable, self.folder) / self.file
        commented = file.with_suffix(".jsonc")
        return commented if is_there(commented) and not is_there(file) else file


def _typed_entry(kind: str, **more: Any) -> Shape:
    return lambda command, args: {"type": kind, "command": command, "args": args, **more}


_XDG = "XDG_CONFIG_HOME"
#: By their documentation; checked by running Cline, Continue, Droid, Codex, Copilot, Gemini, OpenCode and Qwen.
HOSTS: Mapping[str, Host] = {
    "cursor": Host(
        name="Cursor", folder=".cursor", file="mcp.json", documented="https://cursor.com/docs/mcp",
        shape=_typed_entry("stdio"),
    ),
    "cline": Host(
        name="Cline", folder=".cline", file="data/settings/cline_mcp_settings.json",
        shape=lambda command, args: {"command": command, "args": args, "disabled": False},
        documented="https://docs.cline.bot/mcp/mcp-overview",
    ),
    "continue": Host(
        name="Continue", folder=".continue", file="config.yaml", format=YAML_LIST, may_create=False,
        shape=lambda command, args: {"name": SERVER_NAME, "command": command, "args": args},
        documented="https://docs.continue.dev/customize/deep-dives/mcp",
    ),
    "windsurf": Host(
        name="Windsurf", folder=".codeium", file="windsurf/mcp_config.json",
        documented="https://docs.windsurf.com/windsurf/cascade/mcp",
    ),
    "zed": Host(
        name="Zed", folder=".config", variable=_XDG, file="zed/settings.json", key="context_servers",
        shape=lambda command, args: {"command": command, "args": args, "env": {}},
        documented="https://zed.dev/docs/ai/mcp",
    ),
    "droid": Host(
        name="Droid", folder=".factory", file="mcp.json", shape=_typed_entry("stdio", disabled=False),
        documented="https://docs.factory.ai/factory-cli/configuration/mcp",
    ),
    "goose": Host(
        name="Goose", folder=".config", variable=_XDG, file="goose/config.yaml", key="extensions", format=YAML,
        may_create=False,
        shape=lambda command, args: {
            "enabled": True, "type": "stdio", "name": SERVER_NAME, "description": "Memory of earlier sessions", "cmd": command,
            "args": args, "timeout": 30,
        },
        documented="https://block.github.io/goose/docs/guides/config-files",
    ),
    "codex": Host(
        name="Codex", folder=".codex", variable="CODEX_HOME", file="config.toml", key="mcp_servers", format=TOML,
        documented="https://developers.openai.com/codex/mcp",
    ),
    "copilot": Host(
        name="Copilot CLI", folder=".copilot", variable="COPILOT_HOME", file="mcp-config.json",
        shape=_typed_entry("local", tools=["*"]),
        documented="https://docs.github.com/copilot/how-tos/use-copilot-agents/use-copilot-cli",
    ),
    "gemini": Host(
        name="Gemini CLI", folder=".gemini", file="settings.json",
        documented="https://geminicli.com/docs/tools/mcp-server",
    ),
    "opencode": Host(
        name="OpenCode", folder=".config", variable=_XDG, file="opencode/opencode.json", key="mcp",
        shape=lambda command, args: {"type": "local", "command": [command, *args], "enabled": True},
        documented="https://opencode.ai/docs/mcp-servers",
    ),
    "kilo": Host(
        name="Kilo", folder=".config", variable=_XDG, file="kilo/kilo.json", key="mcp",
        shape=lambda command, args: {"type": "local", "command": [command, *args], "enabled": True},
        documented="https://kilo.ai/docs/automate/mcp/using-in-kilo-code",
    ),
    "qwen": Host(
        name="Qwen Code", folder=".qwen", variable="QWEN_HOME", file="settings.json",
        documented="https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp",
    ),
}  # fmt: skip


def make_entry(host: Host, home: Path, arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the entry that starts this home's server, in the host's form."""
    return host.shape(str(script_path(home, SERVER_SCRIPT)), list(arguments))


def render_entry(host: Host, home: Path, arguments: Sequence[str] = ()) -> str:
    """Returns the entry as text to paste into the host's file."""
    return host.format.dump((host.key, SERVER_NAME), make_entry(host, home, arguments))


def add_server(host: Host, text: str, home: Path, where: str, arguments: Sequence[str] = ()) -> str:
    """Returns the file with this home's server; another server of that name stays."""
    if describe_foreign(host, text, home, where):
        return text
    return entry_edits.put_entry(host.format, text, (host.key, SERVER_NAME), make_entry(host, home, arguments), where)


def remove_server(host: Host, text: str, home: Path, where: str) -> str:
    """Returns the file without this home's server."""
    if describe_foreign(host, text, home, where):
        return text
    return entry_edits.remove_entry(host.format, text, (host.key, SERVER_NAME), where)


def describe_foreign(host: Host, text: str, home: Path, where: str) -> str:
    """Describes another server that has csmd's name; "" if there is none."""
    entry = entry_edits.find_entry(host.format, text, (host.key, SERVER_NAME))
    if entry is None or str(script_path(home, SERVER_SCRIPT)) in iter_strings(entry):
        return ""
    rename = "rename it and run this again to add csmd's"
    return f"{where} already has a server named {SERVER_NAME}, which was kept; {rename}"
