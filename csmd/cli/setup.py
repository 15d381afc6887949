"""The verbs that put csmd into place and take it away: install, uninstall, hooks."""

from __future__ import annotations

from typing import Any

import click

import csmd
from csmd import client, wire
from csmd.cli import install as installing
from csmd.cli import service, settings, show
from csmd.cli.ask import json_option
from csmd.config import base_interpreter, default_paths

#: Sessions of each project that are there when `install` returns; older ones are taken in behind its back.
RECENT = 10


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be written and change nothing.")
@click.option("--no-start", is_flag=True, help="Do not start the daemon nor import anything.")
@json_option
def install(dry_run: bool, no_start: bool, as_json: bool) -> None:
    """Put the hooks in place, start the daemon, import past sessions."""
    config = installing.configuration()
    changes = installing.plan(config)
    if dry_run and as_json:
        planned = [{"path": str(c.path), "diff": settings.diff(c.before, c.after, c.path)} for c in changes]
        click.echo(wire.pretty({"home": str(config.paths.home), "settings": planned}))
        return
    if dry_run:
        click.echo("csmd's own directories:")
        for line in installing.own_files(config.paths):
            click.echo(f"  {line}")
        for change in changes:
            difference = settings.diff(change.before, change.after, change.path)
            click.echo(f"\n{change.path}:" if difference else f"\n{change.path}: as it should be")
            click.echo(difference, nl=False)
        return
    changed = installing.install(config, changes)
    result: dict[str, Any] = {
        "home": str(config.paths.home),
        "settings": [{"path": str(c.path), "changed": str(c.path) in changed} for c in changes],
        "daemon": None,
        "import": None,
    }
    if not as_json:
        for change in changes:
            done = "hooks added to" if str(change.path) in changed else "hooks are already in"
            click.echo(f"{done} {change.path}")
    if not no_start:
        status = service.start(config.paths)
        if status["version"] != csmd.__version__:
            service.stop(config.paths, by_user=False)  # the daemon of before an upgrade
            status = service.start(config.paths)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        with show.progress() as bar:
            result["import"] = client.work(config.paths, "csm_sync", {"vectors": False, "recent": RECENT}, watch=bar)
        if not as_json:
            click.echo(f"the daemon runs, pid {status['daemon']['pid']}")
            show.imported(result["import"])
            if not status["model"]["name"]:
                click.echo("search is by words alone until `csmd model fetch` (90 MB, once) brings the embedding model")
    if as_json:
        click.echo(wire.pretty(result))


@click.command()
@json_option
def uninstall(as_json: bool) -> None:
    """Take the hooks out and stop the daemon; memories stay on disk."""
    paths = default_paths()  # and no configuration: one that is damaged must not keep anybody from leaving
    restored = installing.uninstall(paths)
    stopped = service.stop(paths, by_user=True)
    if as_json:
        click.echo(wire.pretty({"restored": restored, "stopped": stopped, "home": str(paths.home)}))
        return
    for path in restored:
        click.echo(f"restored {path}")
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
