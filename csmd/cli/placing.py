"""Putting the service unit into place, and taking it back: its file, the directories made for it, nothing else.

The record stands in `install.json` before the file does, so that whatever was begun can be taken back.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import csmd
from csmd.cli import managers, record, service, units
from csmd.cli.disk import write_whole
from csmd.cli.managers import Manager
from csmd.errors import ConfigError
from csmd.paths import Paths

#: Where systemd keeps what starts with a login: made by it, empty when nothing does.
WANTS = "default.target.wants"


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
    manager = planned.manager
    known = record.load(paths)["service"]
    changed = False
    if known and (manager is None or known["file"] != str(manager.file)):
        known, changed = None, remove(paths)
    if manager is not None:
        missing = [str(folder) for folder in [*reversed(manager.file.parents), manager.file.parent / WANTS]
                   if not folder.exists()]  # fmt: skip
        folders = list(dict.fromkeys([*(known or {}).get("folders", []), *missing]))
        _note(paths, service={"kind": manager.kind, "file": str(manager.file), "folders": folders})
        if planned.changes:
            manager.file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(manager.file, planned.after.encode())
            manager.reload()
        if enable:
            manager.enable()
    _note(paths, version=csmd.__version__)
    return changed or planned.changes


def _note(paths: Paths, **what: Any) -> None:
    with record.alone(paths):
        known = record.load(paths)
        if {**known, **what} != known:
            record.save(paths, {**known, **what})


def recorded_file(paths: Paths) -> str:
    """The unit that an install put into place; "" for none."""
    known = record.load(paths)["service"]
    return str(known["file"]) if known else ""


def remove(paths: Paths) -> bool:
    """Ends the daemon that a manager keeps and takes its unit away; False when none is recorded."""
    known = record.load(paths)["service"]
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
    for folder in reversed(known["folders"]):
        with contextlib.suppress(OSError):  # somebody has put something into it, or it has gone
            Path(folder).rmdir()
    _note(paths, service=None)
    if not record.load(paths)["settings"] and not paths.hook_dir.is_dir():
        paths.install_record.unlink(missing_ok=True)  # nothing of csmd's is anywhere else any more
    return True


def bring_up(paths: Paths, planned: Plan) -> dict[str, Any]:
    """Has this csmd's daemon run as planned, in place of whatever runs.

    Its status, with `started`, and `replaced`: the version of the daemon that had to end for it, else "".
    """
    changed = place(paths, planned)
    running = service.instance(paths) if service.running(paths) else {}
    other = str(running.get("version", "an unknown version")) if running else ""
    stays = not changed and other == csmd.__version__ and running.get("service") == planned.kind
    if running and not stays:
        # It drains; hooks spool meanwhile. Also one that is too old to be asked anything.
        service.stop(paths, by_user=False)
    return {**service.start(paths), "replaced": "" if stays else other}
