"""Commands that run, start and stop the daemon."""

from __future__ import annotations

import os
import sys
from typing import Any

from csmd.cli import render, verb
from csmd.cli.install import wrap_sentence
from csmd.cli.render import Screen
from csmd.config import default_paths
from csmd.installer import service
from csmd.paths import is_there

VERBS = verb.Verbs()


@VERBS.command("daemon")
def daemon() -> None:
    """Run the daemon in the foreground until it is stopped."""
    # Replaces this process, since the command line must not import the store.
    # -P here and wherever csmd starts a module: nothing is imported from the current directory.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "csmd.daemon"])  # noqa: S606


@VERBS.action("start")
def start(as_json: bool) -> None:
    """Start the daemon in the background."""
    verb.print_answer(service.start(default_paths()), as_json, show_started)


@VERBS.action("stop")
def stop(as_json: bool) -> None:
    """Stop the daemon until `csmd start`; hooks queue the events."""
    paths = default_paths()
    value = {"stopped": service.stop(paths, by_user=True, by=verb.describe_caller())}
    verb.print_answer(value, as_json, show_stopped, has_manager=service.find_recorded_manager(paths) is not None)


@render.raw
def show_stopped(value: dict[str, Any], *, has_manager: bool) -> Screen:
    """Whether a daemon was stopped, and until when."""
    duration = "; it stays stopped, also at the next login, until `csmd start`" if has_manager else ""
    yield f"{'stopped' if value['stopped'] else 'no daemon was running'}{duration}"


@VERBS.action("restart")
def restart(as_json: bool) -> None:
    """Stop the daemon and start it again."""
    paths = default_paths()
    service.stop(paths, by_user=False)
    verb.print_answer(service.start(paths), as_json, show_started)


@render.raw
def show_started(value: dict[str, Any]) -> Screen:
    """Shows the running daemon and its service manager, and the reason if a recorded unit is not used."""
    paths = default_paths()
    is_detached = value.get("service", "detached") == "detached"
    manager = "" if is_detached else f", kept by {value['service']}"
    yield f"the daemon {'runs' if value['started'] else 'was running already'}, pid {value['daemon']['pid']}{manager}"
    unit = service.read_recorded_unit(paths)
    if unit and is_detached:
        yield wrap_sentence(f"it is detached: the service manager of {unit} does not answer")
    if not is_there(paths.install_record):
        effect = "it reads transcripts, but sessions get no notes unless a plugin brings the hooks"
        yield wrap_sentence(f"no hooks are installed here: {effect}; `csmd install` installs them")
