"""The verbs that put csmd into place and take it away: install, uninstall, hooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from csmd import client, wire
from csmd.cli import ask as asking
from csmd.cli import changes, clients, leaving, placing, service, settings, show, show_service, show_setup
from csmd.cli import install as installing
from csmd.cli.ask import json_option
from csmd.cli.changes import Change, Outcome
from csmd.config import Config, base_interpreter, default_paths
from csmd.errors import CsmdError
from csmd.paths import Paths


def _absolute(_context: click.Context, _parameter: click.Parameter, folders: tuple[Path, ...]) -> tuple[Path, ...]:
    return tuple(folder.absolute() for folder in folders)


#: Sessions of each project that are there when `install` returns; older ones are taken in behind its back.
RECENT = 10


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
@click.option("--no-service", is_flag=True, help="Run the daemon detached: it does not come back by itself.")
@json_option
def install(dry_run: bool, config_dirs: tuple[Path, ...], no_start: bool, no_service: bool, as_json: bool) -> None:
    """Put hooks and service in place, import past sessions."""
    paths = default_paths()
    unit = placing.plan(paths, wanted=not no_service)
    known = _clients(paths)
    seen = tuple(Path(folder) for folder in known["elsewhere"]) if known else ()
    config = installing.configuration((*config_dirs, *seen))
    # What clients wrote only the daemon knows: without one the newer events stay as they are.
    before = installing.noted_choice(paths)
    choice = before if known is None else _choice(known)
    wanted = installing.ours(config, choice.events)
    planned = installing.plan(config, wanted)
    if dry_run:
        shown = {"home": str(paths.home), "settings": [_planned(change) for change in planned],
                 "service": show_service.planned(unit)}  # fmt: skip
        asking.out(shown, as_json, lambda _: show_setup.plan(config, planned, seen, choice if known else None))
        if not as_json:
            show_service.plan(unit)
        _raise_trouble(planned)
        return
    outcomes = installing.install(config, planned, wanted, choice.kept_out_by)
    placed = show_service.planned(unit)
    result: dict[str, Any] = {"home": str(paths.home), "service": placed, "daemon": None, "import": None}
    if not as_json:
        show_setup.installed(outcomes, seen)
    if no_start:
        placing.place(paths, unit)
    else:
        status = _daemon(config, unit)
        result["daemon"] = {"pid": status["daemon"]["pid"], "started": status["started"]}
        with show.progress() as bar:
            order = {"vectors": False, "recent": RECENT}
            result["import"] = client.work(config.paths, "csm_sync", order, watch=bar)
        # Only now it is known which clients wrote.
        choice = _choice(client.call(paths, "csm_clients", {}))
        if choice != installing.noted_choice(paths):
            outcomes = _once_more(config, choice, outcomes)
        if not as_json:
            show_setup.events(choice, before.events)
            show_service.runs(unit, status)
            show_setup.past(client.call(paths, "csm_runtime_status", {})["counts"], result["import"])
            if not status["model"]["name"]:
                show_service.say(
                    "search is by words alone until `csmd model fetch` (90 MB, once) brings the embedding model"
                )
    if as_json:
        result |= {"settings": [_outcome(one) for one in outcomes], "directories": [str(one) for one in config.assistant_dirs],
                   "events": [*settings.EVENTS, *choice.events], "kept_out_by": choice.kept_out_by}  # fmt: skip
        click.echo(wire.pretty(result))
    _raise_trouble(outcomes)


def _once_more(config: Config, choice: clients.Choice, before: Sequence[Outcome]) -> list[Outcome]:
    """Puts the entries in with other events than the first time; what became of each file in all."""
    wanted = installing.ours(config, choice.events)
    again = installing.install(config, installing.plan(config, wanted), wanted, choice.kept_out_by)
    changed = {one.path for one in before if one.changed}
    return [replace(one, changed=one.changed or one.path in changed) for one in again]


def _daemon(config: Config, unit: placing.Plan) -> dict[str, Any]:
    """The daemon's status; one of before an upgrade, or that reads fewer directories, gives way to a new one."""
    status = placing.bring_up(config.paths, unit)
    if not status["started"]:
        known = client.call(config.paths, "csm_clients", {})
        served = {os.path.realpath(one) for one in known["directories"]}
        if not {os.path.realpath(one) for one in config.assistant_dirs} <= served:
            service.stop(config.paths, by_user=False)
            return {**service.start(config.paths), "started": False, "replaced": ""}
    return status


def _clients(paths: Paths) -> dict[str, Any] | None:
    """What the running daemon knows of the assistant's clients; None where none runs, or one of before an upgrade."""
    try:
        return dict(client.call(paths, "csm_clients", {}, patience_s=5.0))
    except CsmdError:
        return None


def _choice(known: dict[str, Any]) -> clients.Choice:
    return clients.choose(clients.installed(), [row["version"] for row in known["versions"]])


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be changed and removed, and change nothing.")
@click.option("--purge", is_flag=True, help="Remove everything that csmd holds, too.")
@click.option("--yes", is_flag=True, help="With --purge: do not ask.")
@json_option
def uninstall(dry_run: bool, purge: bool, yes: bool, as_json: bool) -> None:
    """Take hooks and service out; memories stay on disk."""
    paths = default_paths()  # and no configuration: one that is damaged must not keep anybody from leaving
    if purge:
        leaving.must_be_own(paths)
    going = leaving.parts(paths) if purge else []
    if dry_run:
        planned = installing.plan_removal(paths)
        unit = placing.recorded_file(paths)
        removed = [_part(part) for part in going]
        shown = {"settings": [_planned(change) for change in planned], "removes": removed, "service": unit}
        counts = _counts(paths) if purge else {}
        if not as_json:
            show_service.leaving(unit)
        asking.out(shown, as_json, lambda _: show_setup.leaving(paths, planned, going, counts, purge=purge))
        _raise_trouble(planned)
        return
    if purge and not yes:
        _confirm(paths, going)
    stopped, unit = service.stop(paths, by_user=True), placing.recorded_file(paths)
    outcomes = installing.uninstall(paths)
    placing.remove(paths)
    restored = [str(one.path) for one in outcomes if one.changed]
    result: dict[str, Any] = {
        "restored": restored, "stopped": stopped, "service": unit, "home": str(paths.home), "log_dir": str(paths.log_dir),
        "config_file": str(paths.config_file),
    }  # fmt: skip
    if not as_json:
        show_setup.left(outcomes, stopped=stopped)
        show_service.left(unit)
    if purge and not any(one.trouble for one in outcomes):
        left = leaving.purge(paths, leaving.parts(paths))
        result["purged"] = {"removed": [_part(part) for part in going], "foreign": [str(one) for one in left.foreign],
                            "refused": left.refused}  # fmt: skip
        if not as_json:
            show_setup.purged(paths, going, left)
    elif not as_json:
        show_setup.remains(paths)
    if as_json:
        click.echo(wire.pretty(result))
    _raise_trouble(outcomes)
    if result.get("purged", {}).get("refused"):
        raise CsmdError(result["purged"]["refused"][0], hint="remove what is left by hand")


def _confirm(paths: Paths, going: Sequence[leaving.Part]) -> None:
    """A person says yes to what is listed; nobody else is asked."""
    show_setup.going(paths, going, _counts(paths))
    if not asking.person_is_there():
        raise CsmdError("nobody is there to be asked", hint="csmd uninstall --purge --yes")
    if not click.confirm(show_setup.question(going), default=False):
        raise CsmdError("nothing was changed")


def _counts(paths: Paths) -> dict[str, int]:
    """How much is remembered, as far as a running daemon can tell."""
    try:
        return dict(client.call(paths, "csm_runtime_status", {}, patience_s=5.0)["counts"])
    except CsmdError:
        return {}


def _part(part: leaving.Part) -> dict[str, Any]:
    return {"what": part.what, "files": len(part.files), "bytes": part.bytes}


def _planned(change: Change) -> dict[str, Any]:
    difference = changes.shown(change)
    return {"path": str(change.path), "diff": difference, **_trouble(change)}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "path": str(outcome.path),
        "changed": outcome.changed,
        **_trouble(outcome),
        **({"out": list(outcome.out)} if outcome.out else {}),
    }


def _trouble(one: Change | Outcome) -> dict[str, Any]:
    return {"trouble": one.trouble.what} if one.trouble else {}


def _raise_trouble(all_of: Sequence[Change | Outcome]) -> None:
    """What could not be done decides the exit code, after all that could was done and told."""
    troubles = [one.trouble for one in all_of if one.trouble]
    if troubles:
        raise changes.together(troubles)


@click.group()
def hooks() -> None:
    """csmd's hooks in the assistant's settings."""


@hooks.command("print")
def hooks_print() -> None:
    """Print the JSON that `install` puts into settings.json. It can be pasted by hand."""
    click.echo(wire.pretty(settings.hooks_json(base_interpreter(), default_paths().home)))


@hooks.command("settle")
@json_option
def hooks_settle(as_json: bool) -> None:
    """Take out hooks of newer events that a client in use does not know. The daemon runs this when one appears."""
    paths = default_paths()
    known = client.call(paths, "csm_clients", {})
    # Here a client that is not found, or does not tell, is no reason: what PATH says in the daemon may be little.
    choice = clients.known_to([*clients.installed().values(), *(row["version"] for row in known["versions"])])
    gone, outcomes = installing.settle(paths, choice)
    result = {"withdrawn": gone, "kept_out_by": choice.kept_out_by, "settings": [_outcome(one) for one in outcomes]}
    asking.out(result, as_json, lambda _: show_setup.settled(choice, gone, outcomes))
    _raise_trouble(outcomes)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (install, uninstall, hooks)
