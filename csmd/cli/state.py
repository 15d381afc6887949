"""The verbs that show what the daemon does: status."""

from __future__ import annotations

import click

from csmd.cli import ask as asking
from csmd.cli import install as installing
from csmd.cli import service, show_status
from csmd.cli.ask import json_option
from csmd.config import default_paths
from csmd.errors import DaemonUnreachable


@click.command()
@json_option
def status(as_json: bool) -> None:
    """Show whether everything works, and what is known."""
    try:
        value = asking.ask("csm_runtime_status")
    except DaemonUnreachable as error:
        raise service.why_not(default_paths(), error) from None
    value["degraded"] += installing.trouble(default_paths())
    value["service_note"] = service.note(default_paths(), value.get("service", ""))
    asking.out(value, as_json, show_status.status)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (status,)
