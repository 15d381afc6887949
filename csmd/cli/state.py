"""The verbs that show what the daemon does: status."""

from __future__ import annotations

import click

from csmd.cli import ask as asking
from csmd.cli import install as installing
from csmd.cli import show_status
from csmd.cli.ask import json_option
from csmd.config import default_paths


@click.command()
@json_option
def status(as_json: bool) -> None:
    """Show whether everything works, and what is known."""
    value = asking.ask("csm_runtime_status")
    value["degraded"] += installing.trouble(default_paths())
    asking.out(value, as_json, show_status.status)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (status,)
