"""The verbs that put csmd into place and take it away: install, uninstall, hooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import csmd
from csmd import client, wire
from csmd.cli import ask as asking
from csmd.cli import edited, service, settings, show, show_setup
from csmd.cli import install as installing
from csmd.cli.ask import json_option
from csmd.cli.install import Change, Outcome
from csmd.config import base_interpreter, default_paths


def _absolute(_context: click.Context, _parameter: click.Parameter, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(folder.absolute() for folder in folders)


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be written and change nothing.")
@click.option(
    "--config-dir",
    "config_dirs",
    multiple=True,
    metavar="DIR",
    callback=_absolute,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A further configuration directory of the assistant (CLAUDE_CONFIG_DIR); may be repeated.",
)
@click.option("--no-start", is_flag=True, help="Do not start the daemon nor import anything.")
@json_option
def install(dry_run: bool, config_dirs: tuple[Path, ...], no_start: bool, as_json: bool) -> None:
    """Put the hooks in place, start the daemon, import past sessions."""
    config = installing.configuration(config_dirs)
    wanted = installing.ours(config)
    changes = installing.plan(config, wanted)
    if dry_run:
        planned = {"home": str(config.paths.home), "settings": [_planned(change) for change in changes]}
        asking.out(planned, as_json, lambda _: show_setup.plan(config.paths, changes))
        _raise_trouble(changes)
        return
    outcomes = installing.install(config, changes, wanted)
    result: dict[str, Any] = {
        "home": str(config.paths.home),
        "settings": [_outcome(one) for one in outcomes],
        "daemon": None,
        "import": None,
    }
    if not as_json:
        show_setup.installed(outcomes)
    if not no_start:
        status = service.start(config.paths)
        if status["version"] != csmd.__version__:
            service.stop(config.paths, by_user=False)  # the daemon of before an upgrade
            status = service.start(config.paths)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        with show.progress() as bar:
            result["import"] = client.work(config.paths, "csm_sync", {"vectors": False}, watch=bar)
        if not as_json:
            click.echo(f"the daemon runs, pid {status['daemon']['pid']}")
            show.imported(result["import"])
            if not status["model"]["name"]:
                click.echo("search is by words alone until `csmd model fetch` (90 MB, once) brings the embedding model")
    if as_json:
        click.echo(wire.pretty(result))
    _raise_trouble(outcomes)


@click.command()
@json_option
def uninstall(as_json: bool) -> None:
    """Take the hooks out and stop the daemon; memories stay on disk."""
    paths = default_paths()  # and no configuration: one that is damaged must not keep anybody from leaving
    outcomes = installing.uninstall(paths)
    stopped = service.stop(paths, by_user=True)
    restored = [str(one.path) for one in outcomes if one.trouble is None]
    if as_json:
        click.echo(wire.pretty({"restored": restored, "stopped": stopped, "home": str(paths.home)}))
    else:
        for path in restored:
            click.echo(f"restored {path}")
        click.echo(f"what csmd remembers is still in {paths.home}; delete that directory to remove it too")
    _raise_trouble(outcomes)


def _planned(change: Change) -> dict[str, Any]:
    difference = edited.diff(change.before, change.after, change.path)
    return {"path": str(change.path), "diff": difference, **_trouble(change)}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {"path": str(outcome.path), "changed": outcome.changed, **_trouble(outcome)}


def _trouble(one: Change | Outcome) -> dict[str, Any]:
    return {"trouble": one.trouble.what} if one.trouble else {}


def _raise_trouble(all_of: Sequence[Change | Outcome]) -> None:
    """What could not be done decides the exit code, after all that could was done and told."""
    troubles = [one.trouble for one in all_of if one.trouble]
    if troubles:
        raise installing.together(troubles)


@click.group()
def hooks() -> None:
    """csmd's hooks in the assistant's settings."""


@hooks.command("print")
def hooks_print() -> None:
    """Print the JSON that `install` puts into settings.json. It can be pasted by hand."""
    click.echo(wire.pretty(settings.hooks_json(base_interpreter(), default_paths().home)))


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (install, uninstall, hooks)
