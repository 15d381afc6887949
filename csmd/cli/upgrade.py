"""The verb after a newer csmd was installed: what it has put elsewhere follows, and its daemon takes the older one's place.

Nothing is fetched: the newer csmd is there already. Every part is compared with what it should be, so a second
run finds nothing to do.
"""

from __future__ import annotations

from typing import Any

import click

import csmd
from csmd.cli import ask as asking
from csmd.cli import changes, placing, record, service, show, show_status
from csmd.cli import install as installing
from csmd.cli.ask import json_option
from csmd.errors import CsmdError
from csmd.paths import Paths


@click.command()
@json_option
def upgrade(as_json: bool) -> None:
    """Have hooks, service and daemon follow an upgraded csmd."""
    config = installing.configuration()
    paths = config.paths
    if not paths.hook_dir.is_dir():
        raise CsmdError(f"csmd is not installed in {paths.home}", hint="csmd install")
    known = record.load(paths)
    hooks = stale_hooks(paths)
    unit = _unit(paths)
    # Which of the newer events are registered is what `csmd install` and the daemon decide.
    wanted = installing.ours(config, known["events"])
    outcomes = installing.install(config, installing.plan(config, wanted), wanted, known["kept_out_by"])
    result: dict[str, Any] = {
        "from": str(known["version"]),
        "to": csmd.__version__,
        "hooks": hooks,
        "settings": [str(one.path) for one in outcomes if one.changed],
        "service": str(unit.manager.file) if unit.manager and unit.changes else "",
        "daemon": _daemon(paths, unit),
    }
    asking.out(result, as_json, _shown)
    if troubles := [one.trouble for one in outcomes if one.trouble]:
        raise changes.together(troubles)


def stale_hooks(paths: Paths) -> list[str]:
    """The installed hook files that are not this version's."""
    names = (*installing.HOOK_FILES, *installing.HOOK_SCRIPTS, installing.SERVER_SCRIPT)
    return [name for name in names if not _is_ours(paths, name)]


def _is_ours(paths: Paths, name: str) -> bool:
    installed = paths.hook_dir / name
    return installed.is_file() and installed.read_bytes() == (installing.share() / name).read_bytes()


def _unit(paths: Paths) -> placing.Plan:
    """The plan for the unit that was installed; the daemon stays detached where none was."""
    keeper = service.manager(paths)
    if keeper is not None:
        return placing.of_manager(keeper)
    if file := placing.recorded_file(paths):
        raise CsmdError(
            f"{file} is gone, or its service manager does not answer",
            hint="run `csmd upgrade` in a session of yours; `csmd install` puts it into place, or does without",
        )
    return placing.Plan(manager=None, why="no service is installed")


def _daemon(paths: Paths, unit: placing.Plan) -> dict[str, Any]:
    """Which daemon runs now and which one ended for it; one that was stopped on purpose stays stopped."""
    if paths.stopped_mark.exists() and service.running(paths) is None:
        placing.place(paths, unit, enable=False)
        return {"pid": None, "replaced": "", "started": False, "corrected": None}
    status = placing.bring_up(paths, unit)
    return {
        "pid": status["daemon"]["pid"], "replaced": status["replaced"], "started": status["started"],
        "corrected": status["corrected"],
    }  # fmt: skip


def _shown(value: dict[str, Any]) -> None:
    daemon = value["daemon"]
    if value["from"] == value["to"] and not (
        value["hooks"] or value["settings"] or value["service"] or daemon["started"]
    ):
        click.echo(f"csmd {value['to']} is what runs; nothing was to be done")
        return
    ended = f"csmd {daemon['replaced']} ended, " if daemon["replaced"] else ""
    now = f"csmd {value['to']} runs, pid {daemon['pid']}" if daemon["pid"] else "stopped by you; `csmd start` starts it"
    show.described([
        ("csmd", f"{value['from'] or 'an older version'} to {value['to']}" if value["from"] != value["to"] else value["to"]),
        ("hooks", ", ".join(value["hooks"]) or "as they were"),
        ("settings", ", ".join(value["settings"]) or "as they were"),
        ("service", f"written anew: {value['service']}" if value["service"] else "as it was"),
        ("daemon", ended + now),
        *([("corrected", show_status.corrected(daemon["corrected"]))] if any((daemon["corrected"] or {}).values()) else []),
    ])  # fmt: skip


VERBS: tuple[click.Command, ...] = (upgrade,)
