"""Installing and leaving: what is written outside csmd's own directories is listed, recorded and taken back.

Outside its own directories csmd writes one thing: its hooks in the assistant's settings. The
record in `install.json` holds what `uninstall` needs to restore them byte for byte, and no more.
"""

from __future__ import annotations

import py_compile
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.cli import settings
from csmd.cli.disk import make_private, write_whole
from csmd.config import Config, Paths, base_interpreter, default_paths, load
from csmd.errors import CsmdError

HOOK_FILES = ("csmd_hook.py", "csmd_spool.py", "csmd_line.py")
HOOK_SCRIPTS = ("post-turn", "pre-compact", "session-start", "prompt", "session-end")
README = (
    "This directory belongs to csmd, the cross-session memory daemon.\n"
    "`csmd status` tells what is in it; `csmd uninstall` takes csmd's hooks out of your assistant.\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One settings file before and after."""

    path: Path
    before: bytes | None
    after: bytes


def share() -> Path:
    """Where the files that `install` copies are: inside the wheel, or beside the package in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_share" / "hooks"
    return inside if inside.is_dir() else package.parent / "hooks"


def settings_path(folder: Path) -> Path:
    """The assistant's user settings in one of its configuration directories."""
    return folder / "settings.json"


def plan(config: Config) -> list[Change]:
    """What installing would change in the assistant's settings; nothing is written."""
    changes = []
    for folder in config.assistant_dirs:
        path = settings_path(folder)
        before = settings.read(path)
        after = settings.plan_merge(before, base_interpreter(), config.paths.home, where=str(path))
        changes.append(Change(path=path, before=before, after=after))
    return changes


def own_files(paths: Paths) -> list[str]:
    """What installing writes in csmd's own directories, for people."""
    return [
        f"{paths.home}/ (0700)",
        f"  hook/   {', '.join((*HOOK_FILES, *HOOK_SCRIPTS))}, interpreter",
        "  install.json, README.txt, csmd.db, endpoint, run/, spool/, models/, quarantine/",
        f"{paths.log_dir}/csmd.log",
    ]


def install(config: Config, changes: list[Change]) -> list[str]:
    """Copies the hook and merges the settings; the settings files that changed."""
    paths = config.paths
    for folder in (paths.home, paths.hook_dir, paths.run_dir, paths.spool):
        make_private(folder)
    write_whole(paths.home / "README.txt", README.encode())
    copy_hooks(paths)
    record = load_record(paths)
    done: list[str] = []
    for change in changes:
        key = str(change.path)
        if change.before == change.after:
            continue
        # The record first: settings without a record could not be taken back.
        known = record["settings"].get(key)
        record["settings"][key] = settings.install_entry(change.before, change.after, paths.home, known)
        record["folders"][key] = not change.path.parent.exists() or bool(record["folders"].get(key))
        save_record(paths, record)
        settings.apply(change.path, change.before, change.after)
        done.append(key)
    record["assistant_dirs"] = [str(folder) for folder in config.assistant_dirs]
    save_record(paths, record)
    return done


def copy_hooks(paths: Paths) -> None:
    """Copies the hook scripts whole; a hook that runs meanwhile sees the old or the new one."""
    source = share()
    for name in (*HOOK_FILES, *HOOK_SCRIPTS):
        write_whole(paths.hook_dir / name, (source / name).read_bytes(), mode=0o600 if name.endswith(".py") else 0o700)
    write_whole(paths.hook_dir / "interpreter", base_interpreter().encode() + b"\n")
    # The rare module is imported: compiled here, its first use costs no compiling.
    make_private(paths.hook_dir / "__pycache__")
    py_compile.compile(str(paths.hook_dir / "csmd_spool.py"), quiet=2)


def trouble(paths: Paths) -> list[str]:
    """What keeps the installed hooks from running, in sentences; empty when nothing, or when none are installed."""
    noted = paths.hook_dir / "interpreter"
    if not noted.is_file():
        return []
    interpreter = noted.read_text(encoding="utf-8", errors="replace").strip()
    if Path(interpreter).exists():
        return []
    return [f"hooks: their Python is gone ({interpreter}); `csmd install` finds another"]


def uninstall(paths: Paths) -> list[str]:
    """Takes csmd's hooks out of every settings file that `install` recorded; the files restored."""
    record = load_record(paths)
    done: list[str] = []
    for key, entry in list(record["settings"].items()):
        path = Path(key)
        current = settings.read(path)
        if current is not None:
            settings.apply(path, current, settings.removal(current, entry, paths.home))
            if record["folders"].get(key) and path.parent.is_dir() and not any(path.parent.iterdir()):
                path.parent.rmdir()
            done.append(key)
        del record["settings"][key]
        save_record(paths, record)
    paths.install_record.unlink(missing_ok=True)
    if paths.hook_dir.is_dir():
        shutil.rmtree(paths.hook_dir)
    return done


def load_record(paths: Paths) -> dict[str, Any]:
    """The install record, empty when there is none."""
    empty: dict[str, Any] = {"settings": {}, "folders": {}, "assistant_dirs": []}
    if not paths.install_record.exists():
        return empty
    value = wire.loads(paths.install_record.read_bytes())
    if not isinstance(value, dict) or not isinstance(value.get("settings"), dict):
        raise CsmdError(f"{paths.install_record} is damaged", hint="move it away; then `csmd install` writes it anew")
    return {**empty, **value}


def recorded_dirs(paths: Paths) -> tuple[Path, ...]:
    """The assistant's configuration directories that earlier installs wrote to."""
    return tuple(Path(folder) for folder in load_record(paths)["assistant_dirs"])


def configuration() -> Config:
    """The configuration in force, with the directories that earlier installs wrote to."""
    paths = default_paths()
    return load(paths=paths, extra_dirs=recorded_dirs(paths))


def save_record(paths: Paths, record: dict[str, Any]) -> None:
    """Writes the install record whole."""
    write_whole(paths.install_record, wire.pretty(record).encode() + b"\n")
