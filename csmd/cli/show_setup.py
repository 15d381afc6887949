"""What `csmd install` and `csmd uninstall` print: what would change, what was done, what is left; values in, text out."""

from __future__ import annotations

from collections.abc import Sequence

import click

from csmd.cli import edited, install
from csmd.cli.install import Change, Outcome
from csmd.config import Paths


def plan(paths: Paths, changes: Sequence[Change]) -> None:
    """What installing would write, and where."""
    click.echo("csmd's own directories:")
    for line in install.own_files(paths):
        click.echo(f"  {line}")
    differences(changes)


def differences(changes: Sequence[Change]) -> None:
    """The difference that each file would see."""
    for change in changes:
        difference = edited.diff(change.before, change.after, change.path)
        state = ":" if difference else ": left alone" if change.trouble else ": as it should be"
        click.echo(f"\n{change.path}{state}")
        click.echo(difference, nl=False)


def installed(outcomes: Sequence[Outcome]) -> None:
    """What became of each file."""
    for one in outcomes:
        done = "left alone:" if one.trouble else "hooks added to" if one.changed else "hooks are already in"
        click.echo(f"{done} {one.path}")
