"""The verbs that put csmd into place and take it away: install, uninstall, hooks."""

from __future__ import annotations

from typing import Any

import click

from csmd import client, wire
from csmd.cli import install as installing
from csmd.cli import placing, service, settings, show, show_service
from csmd.cli.ask import json_option
from csmd.config import base_interpreter, default_paths


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be written and change nothing.")
@click.option("--no-start", is_flag=True, help="Do not start the daemon nor import anything.")
@click.option("--no-service", is_flag=True, help="Run the daemon detached: it does not come back by itself.")
@json_option
def install(dry_run: bool, no_start: bool, no_service: bool, as_json: bool) -> None:
    """Put hooks and service in place, import past sessions."""
    config = installing.configuration()
    changes = installing.plan(config)
    unit = placing.plan(config.paths, wanted=not no_service)
    if dry_run and as_json:
        planned = [{"path": str(c.path), "diff": settings.diff(c.before, c.after, c.path)} for c in changes]
        service_planned = show_service.planned(unit)
        click.echo(wire.pretty({"home": str(config.paths.home), "settings": planned, "service": service_planned}))
        return
    if dry_run:
        click.echo("csmd's own directories:")
        for line in installing.own_files(config.paths):
            click.echo(f"  {line}")
        for change in changes:
            difference = settings.diff(change.before, change.after, change.path)
            click.echo(f"\n{change.path}:" if difference else f"\n{change.path}: as it should be")
            click.echo(difference, nl=False)
        show_service.plan(unit)
        return
    changed = installing.install(config, changes)
    result: dict[str, Any] = {
        "home": str(config.paths.home),
        "settings": [{"path": str(c.path), "changed": str(c.path) in changed} for c in changes],
        "service": show_service.planned(unit),
        "daemon": None,
        "import": None,
    }
    if not as_json:
        for change in changes:
            done = "hooks added to" if str(change.path) in changed else "hooks are already in"
            click.echo(f"{done} {change.path}")
    if no_start:
        placing.place(config.paths, unit)
        placing.note_version(config.paths)
    else:
        status = placing.bring_up(config.paths, unit)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        with show.progress() as bar:
            result["import"] = client.work(config.paths, "csm_sync", {"vectors": False}, watch=bar)
        if not as_json:
            show_service.runs(unit, status)
            show.imported(result["import"])
            if not status["model"]["name"]:
                click.echo("search is by words alone until `csmd model fetch` (90 MB, once) brings the embedding model")
    if as_json:
        click.echo(wire.pretty(result))


@click.command()
@json_option
def uninstall(as_json: bool) -> None:
    """Take hooks and service out; memories stay on disk."""
    paths = default_paths()  # and no configuration: one that is damaged must not keep anybody from leaving
    unit = placing.recorded_file(paths)
    restored = installing.uninstall(paths)
    stopped = service.stop(paths, by_user=True)
    placing.remove(paths)
    if as_json:
        value = {"restored": restored, "stopped": stopped, "service": unit, "home": str(paths.home)}
        click.echo(wire.pretty(value))
        return
    for path in restored:
        click.echo(f"restored {path}")
    if unit:
        click.echo(f"removed {unit}")
    if stopped:
        click.echo("the daemon was stopped")
    click.echo(f"what csmd remembers is still in {paths.home}; delete that directory to remove it too")


@click.group()
def hooks() -> None:
    """csmd's hooks in the assistant's settings."""


@hooks.command("print")
def hooks_print() -> None:
    """Print the JSON that `install` puts into settings.json. It can be pasted by hand."""
    click.echo(wire.pretty(settings.hooks_json(base_interpreter(), default_paths().home)))


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (install, uninstall, hooks)
