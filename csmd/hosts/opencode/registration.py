"""csmd's plugin for OpenCode and Kilo: a file of its own in the directory of plugins.

The file only loads the plugin in csmd's home, so it is the same for every version of csmd; without that it does
nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from csmd import config, wire
from csmd.errors import ConfigError
from csmd.hosts.host_files import HooksState, HostFiles, Question, Registration, SettingsEntry, script_path
from csmd.paths import is_directory
from csmd.text import json_edits

#: The plugin, which runs the host's launcher.
PLUGIN = "opencode.js"
#: Event that it reports -> seconds that it waits.
EVENTS: Mapping[str, int] = {"SessionStart": 2, "UserPromptSubmit": 2, "Stop": 2}
TITLES = {"opencode": "OpenCode", "kilo": "Kilo"}
#: The package that each needs for plugins, and fetches if it is missing.
_PACKAGES = {"opencode": "@opencode-ai/plugin", "kilo": "@kilocode/plugin"}


def locate_script(home: Path) -> Path:
    """Returns the plugin in csmd's home."""
    return script_path(home, PLUGIN)


def locate_plugin(host: str, _folder: Path | None = None) -> Path:
    """Returns the file in the assistant's directory of plugins, which is not in its directory of data."""
    return config.folder_of("XDG_CONFIG_HOME", ".config") / host / "plugins" / "csmd.js"


def format_plugin(host: str, home: Path) -> str:
    """Returns the content of that file."""
    return (
        f"// csmd's memory for {TITLES[host]}; `csmd uninstall` removes this file.\n"
        "export const csmd = async (input) => {\n"
        "  try {\n"
        f"    return await (await import({wire.dumps(str(locate_script(home)))})).csmd(input, {wire.dumps(host)})\n"
        "  } catch {\n"
        "    return {}\n"
        "  }\n"
        "}\n"
    )


def describe_package_fetch(host: str) -> str:
    """Returns the warning that the assistant will wait for the registry before it loads plugins; "" if it will not."""
    folder, name = locate_plugin(host).parent.parent, _PACKAGES[host]
    try:
        if is_directory(folder / "node_modules") and f'"{name}"' in (folder / "package-lock.json").read_text():
            return ""
    except OSError:
        pass
    return (
        f"{TITLES[host]} fetches {name} from npm once before it loads plugins: start `{host}` with a network, "
        "without one each start waits for a minute"
    )


def decode(data: bytes | None, where: str) -> str:
    """Returns the text of the file, "" if there is none; ConfigError if it is another program's and not text."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where} is not csmd's, and not UTF-8", hint="move it away") from error


def merge_plugin(host: str, text: str, registration: Registration, _where: str) -> str:
    """Returns the file with the plugin; a file with that name is kept, another program's as well as an edited one of
    csmd's."""
    return format_plugin(host, registration.home) if json_edits.is_blank(text) else text


def remove_plugin(host: str, text: str, home: Path, where: str) -> str:
    """Returns the file without the plugin of this home; ConfigError if it was edited."""
    if text.strip() == format_plugin(host, home).strip():
        return ""
    if str(locate_script(home)) in text:
        hint = "remove csmd's lines from it, or delete it"
        raise ConfigError(f"{where} was kept: it was edited since csmd wrote it", hint=hint)
    return text


def describe_foreign_plugin(text: str, registration: Registration, where: str) -> str:
    """Tells the user that another program's file has the name of csmd's; "" if none has."""
    if json_edits.is_blank(text) or str(locate_script(registration.home)) in text:
        return ""
    return f"{where} is another program's and was kept; rename it and run `csmd install` again to add csmd's plugin"


def hooks_state(host: str, _folder: Path, home: Path, read: Callable[[str], str | None]) -> HooksState:
    """Whether the plugin of a csmd home is installed."""
    text = read(str(locate_plugin(host)))
    return "there" if text is not None and str(locate_script(home)) in text else "gone"


def _loaded_events(host: str, line: str, _home: Path) -> dict[str, str] | None:
    """Event -> "loaded", if csmd's plugin is among those that the assistant has loaded."""
    return dict.fromkeys(EVENTS, "loaded") if locate_plugin(host).as_uri() in line else None


def _files(host: str) -> HostFiles:
    return HostFiles(
        host=host, title=TITLES[host], folder=".local/share", variable="XDG_DATA_HOME", inside=host, program=host,
        program_folders=(f".{host}/bin",), events=EVENTS, launcher=host, extra_scripts=(PLUGIN,),
        hook_command=lambda _, home, event: f"{shlex.quote(str(script_path(home, host)))} {event}",
        kinds=(
            SettingsEntry(
                name=f"{host} plugin", what="plugin", file=partial(locate_plugin, host), merge=partial(merge_plugin, host),
                remove=partial(remove_plugin, host), obstacle=describe_foreign_plugin, decode=decode, begin=str,
            ),
        ),
        question=Question(
            arguments=("debug", "info"), read=partial(_loaded_events, host), runs=frozenset({"loaded"}), ends=True,
            in_empty_directory=True, patience_s=20.0,
        ),
        warning=partial(describe_package_fetch, host),
    )  # fmt: skip


FILES = tuple(map(_files, TITLES))
