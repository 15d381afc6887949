"""`csmd report`: the data for a bug report, without any of the user's words."""

from __future__ import annotations

import contextlib
import getpass
import importlib.metadata
import os
import platform
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import csmd
from csmd import client, config, wire
from csmd.doctor import checks, host_settings
from csmd.doctor.checks import Scene, open_plain, spooled_events
from csmd.errors import ConfigError, CsmdError
from csmd.installer import foreign_files, plan
from csmd.installer.foreign_files import make_private, write_atomic
from csmd.paths import Paths, is_directory, is_there

#: Replaces a word that is left out.
LEFT_OUT = "…"
#: Fewest characters of a name or path that is replaced; shorter ones occur in unrelated words.
MIN_CHARS = 4
#: Most digits of a number that is kept.
MAX_DIGITS = 10
_WORD = re.compile(r"[^\W_]+")
_PATH = re.compile(r"(?<![\w<>/.~])~?/[^\s\"'`,;:()<>]+")
_GROUPS = re.compile(r"\d{3,}(?:[ -]\d{3,}){2,}")


#: (text, its placeholder) in the order in which texts are replaced.
Placeholders = tuple[tuple[str, str], ...]


@cache
def read_vocabulary() -> frozenset[str]:
    """Returns every word of csmd's own source, in lower case."""
    texts = (path.read_text(encoding="utf-8") for path in Path(csmd.__file__).parent.rglob("*.py"))
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text) if word.isascii())


def make_placeholders(folders: Mapping[str, str], projects: Iterable[str], names: Mapping[str, str]) -> Placeholders:
    """Makes the placeholders of folders and projects, the longest path first, then of names of the machine."""
    paths = {root: f"<project {number}>" for number, root in enumerate(projects, 1)}
    paths |= {path: f"<{name}>" for name, path in folders.items()}
    longest_first = sorted(paths, key=lambda path: -len(path))
    rows = [*((path, paths[path]) for path in longest_first), *((word, f"<{name}>") for name, word in names.items())]
    return tuple((text, placeholder) for text, placeholder in rows if len(text) >= MIN_CHARS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Redactor:
    """Redacts texts and JSON values: paths become placeholders, words that are not in csmd's source are left out."""

    placeholders: Placeholders = ()
    words: frozenset[str] = field(default_factory=read_vocabulary)

    def text(self, text: str) -> str:
        """Returns the text without words that are not in csmd's source."""
        for prefix, placeholder in self.placeholders:
            text = re.sub(rf"(?<![\w-]){re.escape(prefix)}(?![\w-])", placeholder, text)
        return _WORD.sub(self._word, _GROUPS.sub(LEFT_OUT, _PATH.sub("<path>", text)))

    def _word(self, match: re.Match[str]) -> str:
        word = match[0]
        if word.isascii() and word.isdecimal():
            return word if len(word) <= MAX_DIGITS else LEFT_OUT
        return word if word.lower() in self.words else LEFT_OUT

    def value(self, value: Any) -> Any:
        """Returns a JSON value with every text and key redacted."""
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return self.text(value) if isinstance(value, str) else value


LIBRARIES = (
    "apsw apsw-sqlite3mc click fastembed filelock mcp onnxruntime platformdirs psutil pyyaml pyzmq rich snowballstemmer "
    "sqlite-vec tiktoken watchdog"
).split()
#: Lines of a log in a report, and the bytes that are read for them.
LOG_LINES = 200
LOG_BYTES = 64_000
#: Seconds for counting the rows of the database.
SHAPE_TIMEOUT_S = 20.0
#: Settings that affect capture and are not personal.
PLAIN_SETTINGS = (
    "disableAllHooks", "allowManagedHooksOnly", "cleanupPeriodDays", "autoMemoryEnabled", "autoDreamEnabled",
)  # fmt: skip


class Material(NamedTuple):
    """The input of a report: the scene, the findings of `csmd doctor`, and the function that redacts JSON values."""

    scene: Scene
    examined: dict[str, Any]
    redact: Callable[[Any], Any]


Part = Callable[[Material], Any]


def _describe_versions(material: Material) -> Any:
    libraries = {}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            libraries[name] = _parse_number(importlib.metadata.version(name))
    return {
        "csmd": csmd.__version__, "daemon": _parse_number((material.scene.status or {}).get("version", "none answers")),
        "client": _parse_number(checks.client_version(material.scene.env) or "none found"),
        "Python": platform.python_version(), "implementation": platform.python_implementation(),
        "system": platform.system(), "release": _parse_number(platform.release()), "machine": platform.machine(),
        "libraries": libraries,
    }  # fmt: skip


def _parse_number(version: str) -> str:
    """Returns the leading numbers of a version, as a suffix may be personal."""
    match = re.match(r"\d+(?:\.\d+)*", version)
    return match[0] if match else LEFT_OUT


def _describe_checks(material: Material) -> Any:
    checks = material.examined["checks"]
    return {
        "verdict": material.redact(material.examined["verdict"]), "took_ms": material.examined["took_ms"],
        "checks": [material.redact(check) if check["findings"] else f"{check['id']}: ok" for check in checks],
    }  # fmt: skip


def _describe_status(material: Material) -> Any:
    if material.scene.status is None:
        return material.redact(material.scene.trouble[0] or "no daemon answers")
    numbered = enumerate(material.scene.status["projects"], 1)
    projects = [{**row, "root": f"<project {number}>", "name": ""} for number, row in numbered]
    return material.redact({**material.scene.status, "projects": projects})


def _describe_settings(material: Material) -> Any:
    return [
        {
            "file": material.redact(source.path),
            "whose": source.scope,
            "problem": material.redact(source.problem),
            "hooks": _list_hook_owners(material, source),
            "sets": {key: _to_plain_value(source.value[key]) for key in PLAIN_SETTINGS if key in source.value},
            "other keys": sum(key not in (*PLAIN_SETTINGS, "hooks", "env") for key in source.value),
            "environment variables": len(host_settings.variables(source)),
        }
        for source in material.scene.sources if source.exists or source.problem
    ]  # fmt: skip


def _list_hook_owners(material: Material, source: host_settings.Source) -> dict[str, list[str]]:
    """Returns event -> owners of its hooks; for a foreign command only the name of its program."""
    owners: dict[str, list[str]] = {}
    for hook in host_settings.registered_commands(source):
        event = hook.event if hook.event in host_settings.EVENTS else material.redact(hook.event)
        label = "csmd" if hook.home == str(material.scene.paths.home) else "csmd of another home"
        owners.setdefault(event, []).append(label if hook.home else _name_program(hook.command))
    return owners


def _name_program(command: str) -> str:
    """Returns the name of a program; LEFT_OUT if it could be a key or a person's name."""
    name = host_settings.program(command)
    plain = re.fullmatch(r"[a-z]+(?:[-_.][a-z]+)*\d{0,2}", name) and len(name) <= 24
    return name if plain else LEFT_OUT


def _to_plain_value(value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else type(value).__name__


#: Record of a settings file's original -> its words; any other record has a piece of the original.
ORIGINALS = {"None": "no file", foreign_files.BY_REMOVAL: "by removal"}


def _describe_record(material: Material) -> Any:
    try:
        record = plan.load_record(material.scene.paths)
    except CsmdError as error:
        return material.redact(error.what)
    originals = (str(entry.get("original")) for entry in record["settings"].values())
    ways = Counter(ORIGINALS.get(original, "by removal and a piece") for original in originals)
    return {
        "settings files": len(record["settings"]),
        "given back": dict(ways),
        "folders made": sum(map(bool, record["folders"].values())),
        "assistant directories": len(record["assistant_dirs"]),
        "newer events": material.redact(record["events"]),
        "kept by": material.redact(str((record["service"] or {}).get("kind", "nobody"))),
        "put into place by": _parse_number(str(record["version"])),
        "other keys": material.redact(sorted(set(record) - set(plan.EMPTY_RECORD))),
        "hook files": sorted(name for name in _list_names(material.scene.paths.hook_dir) if name in plan.COPIED),
    }  # fmt: skip


def _describe_configuration(material: Material) -> Any:
    """Returns the settings that differ from their defaults: numbers and switches, and the lengths of lists."""
    path = material.scene.paths.config_file
    try:
        settings = config.parse_settings(config.read_text(path), where="config.yaml")
    except ConfigError as error:
        return f"config.yaml cannot be read: {type(error).__name__}"
    values = {setting.name: getattr(settings, setting.name) for setting in fields(settings)}
    return {
        config.Settings.key(name): f"{len(value)} of them" if isinstance(value, tuple) else _to_plain_value(value)
        for name, value in values.items() if value != getattr(config.Settings(), name)
    }  # fmt: skip


def _describe_database(material: Material) -> Any:
    file = material.scene.paths.database
    if material.scene.status is None:
        return {"bytes": file.stat().st_size if is_there(file) else 0}
    try:
        shape = client.call(material.scene.paths, "csm_store_shape", patience_s=SHAPE_TIMEOUT_S)
    except CsmdError as error:
        return material.redact(error.what)
    tables = {name: f"{table['rows']} rows of {', '.join(table['columns'])}" for name, table in shape["tables"].items()}
    return material.redact({**shape, "tables": tables})


def _count_files(material: Material) -> Any:
    waiting = spooled_events(material.scene.paths.home)
    sizes = [path.stat().st_size for path in waiting if is_there(path)]
    return {
        "spooled events": len(waiting), "spooled bytes": sum(sizes),
        "oldest spooled (s)": round(material.scene.now_s - int(waiting[0].name[:16], 16) / 1e9) if waiting else 0,
        "quarantined notes": len(_list_names(material.scene.paths.quarantine)),
        "session files": sum(1 for _ in material.scene.paths.sessions.glob("*/*.jsonl")),
        "models": len(_list_names(material.scene.paths.models)),
    }  # fmt: skip


def _list_names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()] if is_directory(folder) else []


def _read_tail(path: Path, redact: Callable[[Any], Any]) -> str:
    """Returns the last lines of one of csmd's own files, redacted."""
    try:
        with open_plain(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
            lines = file.read(LOG_BYTES).decode("utf-8", "replace").splitlines()
    except OSError as error:
        return f"none: {type(error).__name__}"
    return "\n".join(redact(line) for line in lines[-LOG_LINES:])


#: The parts of a report in order: name, description, function that makes it.
PARTS: tuple[tuple[str, str, Part], ...] = (
    ("versions", "of csmd, Python, its libraries and the system", _describe_versions),
    ("doctor", "the findings of `csmd doctor`", _describe_checks),
    ("status", "the answer of `csmd status`, projects as numbers", _describe_status),
    ("settings", "the registered hooks; of others the program's name", _describe_settings),
    ("install", "the shape of the record of the install", _describe_record),
    ("configuration", "numbers and switches of config.yaml that you chose", _describe_configuration),
    ("database", "tables, numbers of rows, SQLite's settings", _describe_database),
    ("files", "numbers of waiting events and of notes", _count_files),
    ("log", f"its last {LOG_LINES} lines", lambda material: _read_tail(material.scene.paths.log_file, material.redact)),
    ("start", "the output of a daemon that did not start",
    lambda material: _read_tail(material.scene.paths.complaint, material.redact)),
    ("crash", "where a command crashed",
    lambda material: _read_tail(material.scene.paths.log_dir / "crash.txt", material.redact)),
)  # fmt: skip
HEAD = (
    "csmd report of {when}. Nothing was sent: read it, then attach it or paste it into a bug report.\n"
    "It has no conversation, no memory and no name of a project: a word that is not csmd's own is replaced by {mark}.\n"
)


def compose(scene: Scene, examined: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Composes every part as (name, description, text); if a part fails, its text is the error."""
    material = Material(scene=scene, examined=examined, redact=Redactor(placeholders=_find_placeholders(scene)).value)
    parts = []
    for name, description, part in PARTS:
        try:
            value = part(material)
        except (CsmdError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            value = f"could not be made: {type(error).__name__}"
        parts.append((name, description, value if isinstance(value, str) else wire.pretty(value)))
    return parts


def _find_placeholders(scene: Scene) -> Placeholders:
    folders = {
        "home": str(scene.paths.home), "log": str(scene.paths.log_dir), "here": str(scene.cwd),
        "user home": str(scene.user_home), "csmd": str(Path(csmd.__file__).parent),
        **{f"assistant {number}": str(folder) for number, folder in enumerate(scene.dirs, 1)},
    }  # fmt: skip
    projects = [row["root"] for row in (scene.status or {}).get("projects", ()) if row["root"]]
    names = {"host": socket.gethostname()}
    with contextlib.suppress(OSError, KeyError):  # a user without a name
        names["user"] = getpass.getuser()
    return make_placeholders(folders, projects, names)


def bundle(parts: list[tuple[str, str, str]], when: str) -> str:
    """Joins the parts of a report to a text."""
    sections = (f"== {name}: {description}\n{text}\n" for name, description, text in parts)
    return "\n".join((HEAD.format(when=when, mark=LEFT_OUT), *sections))


def write(paths: Paths, to: Path | None, text: str) -> Path:
    """Writes a report that only its owner can read; ConfigError if that fails."""
    if to is None:
        make_private(paths.log_dir)
    target = to or paths.log_dir / "report.txt"
    try:
        if to is not None and is_there(to) and not to.read_bytes().startswith(HEAD[:15].encode()):
            raise ConfigError(f"{to} exists already and is not a report of csmd's", hint="name another: --to FILE")
        write_atomic(target, text.encode("utf-8", "replace"))
    except OSError as error:
        hint = "name another: --to FILE"
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}", hint=hint) from error
    return target
