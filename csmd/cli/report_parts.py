"""What `csmd report` holds, part by part: each is told in csmd's own words (telling.py), or made of numbers and fixed words.

The assistant's settings and the record of the install are told as shapes. A part that is added is a row of PARTS.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import csmd
from csmd import client, config
from csmd.cli import assistant, edited, install, record
from csmd.cli.checks import host
from csmd.cli.checks.runtime import spooled
from csmd.cli.checks.scene import Scene
from csmd.cli.telling import LEFT_OUT, Teller
from csmd.errors import ConfigError, CsmdError

LIBRARIES = ("apsw", "click", "fastembed", "filelock", "mcp", "onnxruntime", "platformdirs", "psutil", "pyyaml", "pyzmq", "rich",
             "ruamel.yaml", "sqlite-vec", "textual", "tiktoken", "watchdog")  # fmt: skip
LOG_LINES, LOG_BYTES = 200, 64_000
SHAPE_S = 20.0
#: Settings whose plain values bear on capture and say nothing of anybody.
PLAIN = ("disableAllHooks", "allowManagedHooksOnly", "cleanupPeriodDays", "autoMemoryEnabled", "autoDreamEnabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a report is made of: the scene, what `csmd doctor` found in it, and how it is told."""

    scene: Scene
    examined: dict[str, Any]
    tell: Teller


Part = Callable[[Material], Any]


def _versions(of: Material) -> Any:
    found = {}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = _number(importlib.metadata.version(name))
    return {
        "csmd": csmd.__version__,
        "daemon": _number((of.scene.status or {}).get("version", "none answers")),
        "client": _number(host.client_says(of.scene.env.get("PATH", "")) or "none found"),
        "Python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": _number(platform.release()),
        "machine": platform.machine(),
        "libraries": found,
    }


def _number(version: str) -> str:
    """The numbers at a version's beginning: what follows may be anybody's."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return found[0] if found else LEFT_OUT


def _checks(of: Material) -> Any:
    told = [of.tell.value(check) if check["findings"] else f"{check['id']}: ok" for check in of.examined["checks"]]
    return {"verdict": of.tell.text(of.examined["verdict"]), "took_ms": of.examined["took_ms"], "checks": told}


def _status(of: Material) -> Any:
    if of.scene.status is None:
        return of.tell.text(of.scene.trouble[0] or "no daemon answers")
    status = {key: value for key, value in of.scene.status.items() if key != "projects"}
    projects = [
        {**row, "root": f"<project {number}>", "name": ""} for number, row in enumerate(of.scene.status["projects"], 1)
    ]
    return of.tell.value({**status, "projects": projects})


def _settings(of: Material) -> Any:
    found = []
    for source in of.scene.sources:
        if source.there or source.problem:
            others = [key for key in source.value if key not in (*PLAIN, "hooks", "env")]
            found.append(
                {
                    "file": of.tell.text(source.path),
                    "whose": source.scope,
                    "problem": of.tell.text(source.problem),
                    "hooks": _hooks(of, source),
                    "sets": {key: _plain(source.value[key]) for key in PLAIN if key in source.value},
                    "other keys": len(others),
                    "environment variables": len(assistant.variables(source)),
                }
            )
    return found


def _hooks(of: Material, source: assistant.Source) -> dict[str, list[str]]:
    """Event -> whose hooks are registered: of a foreign command its program's name, and no more."""
    found: dict[str, list[str]] = {}
    for one in assistant.registered(source):
        event = one.event if one.event in assistant.EVENTS else of.tell.text(one.event)
        ours = "csmd" if one.home == str(of.scene.paths.home) else "csmd of another home"
        found.setdefault(event, []).append(ours if one.home else _program(one.command))
    return found


def _program(command: str) -> str:
    """The name of a program; of one whose name could be a key or a name of somebody's only that there is one."""
    name = assistant.program(command)
    plain = re.fullmatch(r"[a-z]+(?:[-_.][a-z]+)*\d{0,2}", name) and len(name) <= 24
    return name if plain else LEFT_OUT


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else type(value).__name__


#: Keys of the record that are told in words of their own.
RECORDED = ("settings", "folders", "assistant_dirs", "events", "needs", "kept_out_by", "service", "version")


def _record(of: Material) -> Any:
    try:
        known = record.load(of.scene.paths)
    except CsmdError as error:
        return of.tell.text(error.what)
    kinds = Counter(
        "no file was there" if kept is None else "by removal" if kept == edited.BY_REMOVAL else "by removal and a piece"
        for kept in (entry.get("original") for entry in known["settings"].values())
    )
    return {
        "settings files": len(known["settings"]),
        "given back": dict(kinds),
        "folders made": sum(map(bool, known["folders"].values())),
        "assistant directories": len(known["assistant_dirs"]),
        "newer events": of.tell.value(known["events"]),
        "kept by": of.tell.text(str((known["service"] or {}).get("kind", "nobody"))),
        "put into place by": _number(str(known["version"])),
        "other keys": of.tell.value(sorted(set(known) - set(RECORDED))),
        "hook files": sorted(name for name in _names(of.scene.paths.hook_dir) if name in (*install.HOOK_FILES, *install.HOOK_SCRIPTS, install.SERVER_SCRIPT)),
    }  # fmt: skip


def _configuration(of: Material) -> Any:
    """What was chosen otherwise than by default: numbers and switches; of lists and names only that there are some."""
    path = of.scene.paths.config_file
    try:
        chosen = config.parse_settings(path.read_text(encoding="utf-8") if path.exists() else "", where="config.yaml")
    except (OSError, ValueError, ConfigError) as error:
        return f"config.yaml cannot be read: {type(error).__name__}"
    usual = config.Settings()
    found = {}
    for name in config.Settings.__slots__:
        value = getattr(chosen, name)
        if value != getattr(usual, name):
            found[config.Settings.key(name)] = f"{len(value)} of them" if isinstance(value, tuple) else _plain(value)
    return found


def _database(of: Material) -> Any:
    if of.scene.status is None:
        return {"bytes": of.scene.paths.database.stat().st_size if of.scene.paths.database.exists() else 0}
    try:
        shape = client.call(of.scene.paths, "csm_store_shape", patience_s=SHAPE_S)
    except CsmdError as error:
        return of.tell.text(error.what)
    tables = {name: f"{table['rows']} rows of {', '.join(table['columns'])}" for name, table in shape["tables"].items()}
    return of.tell.value({**shape, "tables": tables})


def _files(of: Material) -> Any:
    waiting = spooled(of.scene.paths.home)
    sizes = [path.stat().st_size for path in waiting if path.exists()]
    return {
        "spooled events": len(waiting),
        "spooled bytes": sum(sizes),
        "oldest spooled (s)": round(of.scene.now_s - int(waiting[0].name[:16], 16) / 1e9) if waiting else 0,
        "quarantined notes": len(_names(of.scene.paths.quarantine)),
        "session files": sum(1 for _ in of.scene.paths.sessions.glob("*/*.jsonl")),
        "models": len(_names(of.scene.paths.models)),
    }


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def _tail(path: Path, tell: Teller) -> str:
    """The end of a file of csmd's own, line by line."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
            lines = file.read(LOG_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"none: {type(error).__name__}"
    return "\n".join(tell.text(line) for line in lines[-LOG_LINES:])


#: What a report holds, in its order: the part's name, what it is for people, how it is made.
PARTS: tuple[tuple[str, str, Part], ...] = (
    ("versions", "of csmd, Python, its libraries and the system", _versions),
    ("doctor", "what `csmd doctor` found", _checks),
    ("status", "what `csmd status` shows, projects as numbers", _status),
    ("settings", "which hooks are registered; of others the program's name", _settings),
    ("install", "the shape of the record of the install", _record),
    ("configuration", "numbers and switches of config.yaml that you chose", _configuration),
    ("database", "tables, how many rows, SQLite's settings", _database),
    ("files", "how many events wait, how many notes there are", _files),
    ("log", f"its last {LOG_LINES} lines", lambda of: _tail(of.scene.paths.log_file, of.tell)),
    ("start", "what a daemon said that did not start", lambda of: _tail(of.scene.paths.run_dir / "start.stderr", of.tell)),
    ("crash", "where a command crashed", lambda of: _tail(of.scene.paths.log_dir / "crash.txt", of.tell)),
)  # fmt: skip
