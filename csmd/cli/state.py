"""The verbs that show what the daemon does: status, tail, top."""

from __future__ import annotations

import sys
from typing import Any

import click

import csmd
from csmd import text
from csmd.cli import ask as asking
from csmd.cli import install as installing
from csmd.cli import service, show, show_status, tail, top
from csmd.cli.ask import json_option
from csmd.cli.watching import redraw
from csmd.config import default_paths, user_home
from csmd.errors import DaemonUnreachable
from csmd.paths import Paths

EVERY_S = 2.0


@click.command()
@click.option("--watch", is_flag=True, help="Draw it anew every 2 s, until ^C.")
@json_option
def status(watch: bool, as_json: bool) -> None:
    """Show whether everything works, and what is known."""
    paths, home = default_paths(), str(user_home())
    if watch and (as_json or not sys.stdout.isatty()):
        raise click.UsageError("--watch draws on a terminal; for a program: `csmd status --json`, again and again")
    if not watch:
        asking.out(look(paths), as_json, lambda value: show_status.status(value, home=home))
        return
    out = show.console()
    redraw(lambda: show_status.screen(look(paths), out, home=home), out, every_s=EVERY_S)


def look(paths: Paths) -> dict[str, Any]:
    """The daemon's state, with what only the command line can see of it; DaemonUnreachable says why there is none."""
    try:
        value: dict[str, Any] = asking.ask("csm_runtime_status")
    except DaemonUnreachable as error:
        if service.why_not(paths, error) is not error or paths.install_record.exists():
            raise  # the command line says why
        if paths.database.exists():  # it was uninstalled, or a plugin brings the hooks
            raise DaemonUnreachable(
                f"{error.what}, and it is not installed",
                hint="csmd install, or `csmd start` where a plugin brings the hooks",
            ) from None
        raise DaemonUnreachable(f"csmd is not installed here ({paths.home})", hint="csmd install") from None
    value["degraded"] += installing.trouble(paths)
    value["service_note"] = service.note(paths, value.get("service", ""))
    if value["version"] != csmd.__version__:
        is_newer = (text.version_of(value["version"]) or ()) > (text.version_of(csmd.__version__) or ())
        helps = "start the command anew" if is_newer else "csmd upgrade"
        value["degraded"].append(f"daemon: it is csmd {value['version']}, this command {csmd.__version__}: {helps}")
    return value


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (status, tail.tail, top.top)
