"""The verbs that start and end the daemon."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from csmd.cli import ask as asking
from csmd.cli import placing, service, show_service
from csmd.cli.ask import json_option
from csmd.config import default_paths


@click.command()
def daemon() -> None:
    """Run the daemon in the foreground until it is told to stop."""
    # Another program in this process: the command line itself knows nothing of the store.
    # -P here and wherever csmd starts a module: the directory one stands in is no place to import from.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "csmd.daemon"])  # noqa: S606


@click.command()
@json_option
def start(as_json: bool) -> None:
    """Start the daemon in the background."""
    asking.out(service.start(default_paths()), as_json, _runs)


@click.command()
@json_option
def stop(as_json: bool) -> None:
    """Stop the daemon until `csmd start`; hooks keep what happens."""
    paths = default_paths()
    stopped = service.stop(paths, by_user=True)
    stays = "; it stays stopped, also at the next login, until `csmd start`" if service.manager(paths) else ""
    asking.out(
        {"stopped": stopped},
        as_json,
        lambda value: click.echo(("stopped" if value["stopped"] else "no daemon was running") + stays),
    )


@click.command()
@json_option
def restart(as_json: bool) -> None:
    """Stop the daemon and start it again."""
    paths = default_paths()
    service.stop(paths, by_user=False)
    asking.out(service.start(paths), as_json, _runs)


def _runs(value: dict[str, Any]) -> None:
    """That it runs, and who keeps it; a unit that could not be used is no secret."""
    word = "runs" if value["started"] else "was running already"
    kept = f", kept by {value['service']}" if value.get("service", "detached") != "detached" else ""
    click.echo(f"the daemon {word}, pid {value['daemon']['pid']}{kept}")
    unit = placing.recorded_file(default_paths())
    if unit and not kept:
        show_service.say(f"it is detached: the service manager that has {unit} does not answer")
    if not default_paths().install_record.exists():
        show_service.say(
            "no hooks are installed here: it reads what sessions write to disk, and tells them nothing unless a "
            "plugin brings the hooks; `csmd install` puts them in"
        )


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (daemon, start, stop, restart)
