"""Putting the service unit into place, and taking it back: its file, the directories made for it, nothing else.

The record stands in `install.json` before the file does, so that whatever was begun can be taken back.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import csmd
from csmd.cli import install as installing
from csmd.cli import managers, service, units
from csmd.cli.disk import write_whole
from csmd.cli.managers import Manager
from csmd.config import Paths
from csmd.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Who is to keep the daemon: a manager with its unit's text before and after, or nobody and `why`."""

    manager: Manager | None
    why: str = ""
    before: str | None = None
    after: str = ""

    @property
    def kind(self) -> str:
        """`systemd`, `launchd` or `detached`."""
        return self.manager.kind if self.manager else "detached"

    @property
    def changes(self) -> bool:
        """Whether a unit would be written."""
        return self.manager is not None and self.before != self.after


def plan(paths: Paths, *, wanted: bool = True) -> Plan:
    """What installing would do about the service; nothing is written. ConfigError where it cannot be done."""
    service.refuse_windows(paths)
    if not wanted:
        return Plan(manager=None, why="as --no-service asks")
    found = managers.found(paths, version=service.kernel())
    if isinstance(found, str):
        return Plan(manager=None, why=found)
    return of_manager(found)


def of_manager(manager: Manager) -> Plan:
    """The plan for a unit of this manager; ConfigError where somebody else's file stands in its place."""
    after, before = manager.text(), None
    if manager.file.exists() or manager.file.is_symlink():
        before = "" if manager.file.is_symlink() else manager.file.read_text(encoding="utf-8", errors="replace")
        if units.mark_of(before) != units.mark_of(after):
            raise ConfigError(
                f"{manager.file} is there already, and it is not this home's unit",
                hint="move it away, or `csmd install --no-service`",
            )
    return Plan(manager=manager, before=before, after=after)


def place(paths: Paths, planned: Plan, *, enable: bool = True) -> bool:
    """Writes the unit and has the manager read it, or takes back one that is not wanted any more; whether it changed.

    With `enable` it starts at each login from now on.
    """
    record = installing.load_record(paths)
    known = record.get("service")
    if planned.manager is None or (known and known["file"] != str(planned.manager.file)):
        changed = remove(paths)
        if planned.manager is None:
            return changed
        known = None
    file = planned.manager.file
    missing = [str(folder) for folder in [*reversed(file.parents), file.parent / "default.target.wants"]
               if not folder.exists()]  # fmt: skip
    folders = list(dict.fromkeys([*(known or {}).get("folders", []), *missing]))
    record = installing.load_record(paths)
    record["service"] = {"kind": planned.manager.kind, "file": str(file), "folders": folders}
    installing.save_record(paths, record)
    file.parent.mkdir(parents=True, exist_ok=True)
    if planned.changes:
        write_whole(file, planned.after.encode())
        planned.manager.reload()
    if enable:
        planned.manager.enable()
    return planned.changes


def recorded_file(paths: Paths) -> str:
    """The unit that an install put into place; "" for none."""
    known = installing.load_record(paths).get("service")
    return str(known["file"]) if known else ""


def remove(paths: Paths) -> bool:
    """Ends the daemon that a manager keeps and takes its unit away; False when none is recorded."""
    record = installing.load_record(paths)
    known = record.pop("service", None)
    if not known:
        return False
    manager = managers.recorded(paths, known["kind"], known["file"])
    if manager is not None:
        if manager.reachable():
            manager.stop()
            manager.disable()
        if manager.file.is_file() and units.mark_of(manager.file.read_text(encoding="utf-8", errors="replace")):
            manager.file.unlink()
        manager.forget()
    for folder in reversed(known.get("folders", [])):
        with contextlib.suppress(OSError):  # somebody has put something into it, or it has gone
            Path(folder).rmdir()
    if record["settings"] or paths.hook_dir.is_dir():
        installing.save_record(paths, record)
    else:
        paths.install_record.unlink(missing_ok=True)  # nothing of csmd's is anywhere else any more
    return True


def bring_up(paths: Paths, planned: Plan) -> dict[str, Any]:
    """Has this csmd's daemon run as planned, in place of whatever runs.

    Its status, with `started`, and `replaced`: the version of the daemon that had to end for it, else "".
    """
    changed = place(paths, planned)
    note_version(paths)
    running = service.instance(paths) if service.running(paths) else {}
    other = str(running.get("version", "an unknown version")) if running else ""
    stays = not changed and other == csmd.__version__ and running.get("service") == planned.kind
    if running and not stays:
        # It drains; hooks spool meanwhile. Also one that is too old to be asked anything.
        service.stop(paths, by_user=False)
    return {**service.start(paths), "replaced": "" if stays else other}


def note_version(paths: Paths) -> None:
    """Remembers which csmd put its files into place."""
    record = installing.load_record(paths)
    if record.get("version") != csmd.__version__:
        installing.save_record(paths, {**record, "version": csmd.__version__})
