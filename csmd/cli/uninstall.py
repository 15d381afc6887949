"""The command that uninstalls csmd, and with --purge its data."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.install import ask_if_running, planned_json, raise_trouble, screen_printer, show_differences, with_target
from csmd.cli.render import Screen, size
from csmd.config import default_paths
from csmd.errors import CsmdError
from csmd.installer import plan, service
from csmd.installer.plan import Change
from csmd.paths import Paths, is_directory, is_there
from csmd.text.display import amount

#: The verbs of this module.
VERBS = verb.Verbs()


#: Names shown of what a purge leaves in one directory.
MAX_NAMES = 5


@VERBS.action(
    "uninstall", verb.flag("--dry-run", help="Show what would be changed and removed, and change nothing."),
    verb.flag("--purge", help="Remove everything that csmd holds, too."),
    verb.yes("Do not ask, which only --purge does."),
)  # fmt: skip
def uninstall(dry_run: bool, purge: bool, yes: bool, as_json: bool) -> None:
    """Take hooks and service out; memories stay on disk."""
    paths, show = (
        default_paths(),
        screen_printer(as_json),
    )  # read no configuration: a damaged one must not prevent uninstalling
    if purge:
        plan.check_home_is_own(paths)
    parts = _parts(plan.plan_purge(paths)) if purge else []
    if dry_run:
        planned, unit = plan.plan_removal(paths), service.recorded_unit(paths)
        show(show_leaving(paths, planned, unit, parts, purge=purge))
        if as_json:
            click.echo(wire.pretty({"settings": planned_json(planned), "removes": parts, "service": unit}))
        raise_trouble(planned)
        return
    if purge and not yes:
        _confirm(paths, parts)
    stopped, unit = service.stop(paths, by_user=True), service.recorded_unit(paths)
    outcomes = plan.uninstall(paths)
    service.remove(paths)
    restored = [str(change.path) for change in outcomes if change.changed]
    result: dict[str, Any] = {
        "restored": restored, "stopped": stopped, "service": unit, "home": str(paths.home),
        "log_dir": str(paths.log_dir),
        "config_file": str(paths.config_file),
    }  # fmt: skip
    show(show_uninstalled(outcomes, unit, stopped=stopped))
    refused: list[str] = []
    if purge and not any(change.trouble for change in outcomes):
        foreign, refused = plan.purge(paths, plan.plan_purge(paths))
        result["purged"] = {"removed": parts, "foreign": list(map(str, foreign)), "refused": refused}
        show(show_purged(paths, parts, foreign, refused))
    else:
        show(show_remains(paths))
    if as_json:
        click.echo(wire.pretty(result))
    raise_trouble(outcomes)
    if refused:
        raise CsmdError(refused[0], hint="remove what is left by hand")


def _parts(going: plan.Purge) -> list[dict[str, Any]]:
    """What a purge removes, as JSON: kinds of files, how many, how many bytes."""
    return [{"what": what, "files": len(files), "bytes": sum(files.values())} for what, files in going.items()]


def _total(parts: Sequence[dict[str, Any]]) -> tuple[int, str]:
    """How many files there are, and their size in words."""
    return sum(part["files"] for part in parts), size(sum(part["bytes"] for part in parts))


def _confirm(paths: Paths, parts: Sequence[dict[str, Any]]) -> None:
    """Asks a person to confirm the purge; CsmdError without a terminal, or for a no."""
    render.show(show_going(paths, parts))
    if not verb.is_interactive():
        raise CsmdError("not a terminal; cannot ask for confirmation", hint="csmd uninstall --purge --yes")
    number, bytes_ = _total(parts)
    everything = f"Remove all that csmd remembers, {amount(number, 'file')}, {bytes_}, for good?"
    if not verb.ask_yes_no(everything if parts else "Take csmd out of the assistant's files?", default=False):
        raise CsmdError("nothing was changed")


@render.raw
def show_leaving(
    paths: Paths, planned: Sequence[Change], unit: str, parts: Sequence[dict[str, Any]], *, purge: bool
) -> Screen:
    """What uninstalling would change and remove."""
    if unit:
        yield f"the service would be removed: {unit}"
    yield f"the daemon would be stopped, and {paths.hook_dir} removed"
    yield from show_differences(planned)
    if not planned:
        yield "no file of the assistant's holds entries of csmd's"
    yield ""
    yield from show_going(paths, parts) if purge else show_remains(paths)


@render.raw
def show_uninstalled(outcomes: Sequence[Change], unit: str, *, stopped: bool) -> Screen:
    """What uninstalling did."""
    yield "the daemon is stopped" if stopped else "no daemon was running"
    yield from show_restored(outcomes)
    if unit:
        yield f"removed {unit}"


@render.raw
def show_restored(outcomes: Sequence[Change]) -> Screen:
    """The result for each file from which csmd's entries were removed."""
    for change in outcomes:
        done = "removed" if change.after is None else "restored"
        state = "left alone:" if change.trouble else done if change.changed else "nothing of csmd's was in"
        yield f"{state} {with_target(change.path)}"


@render.raw
def show_remains(paths: Paths) -> Screen:
    """Where memories stay after uninstalling."""
    if not is_directory(paths.home) or not any(plan.plan_purge(paths).values()):
        yield f"nothing that csmd keeps is in {paths.home}"
        return
    yield "what csmd keeps is still there:"
    yield from _places(paths)
    yield "`csmd uninstall --purge` removes it"


def _places(paths: Paths) -> Screen:
    """The home, and csmd's directories outside it."""
    yield f"  {paths.home}"
    for folder in (paths.log_dir, paths.config_file.parent):
        if is_there(folder) and not folder.is_relative_to(paths.home):
            yield f"  {folder}"


@render.raw
def show_going(paths: Paths, parts: Sequence[dict[str, Any]]) -> Screen:
    """What a purge removes: kinds of files, numbers, sizes, places; and the number of memories if a daemon answers."""
    if not parts:
        yield "there is nothing of csmd's to remove"
        return
    yield "This will be permanently deleted:"
    width = max(len(part["what"]) for part in parts)
    for part in parts:
        yield f"  {part['what']:<{width}}  {amount(part['files'], 'file'):>10}  {size(part['bytes']):>9}"
    nouns = {"memories": "memory", "turns": "turn", "sessions": "session"}
    counts = ask_if_running(paths, "csm_runtime_status").get("counts")
    yield f"with {', '.join(amount(counts[name], noun) for name, noun in nouns.items())}, from" if counts else "from"
    yield from _places(paths)
    if is_there(paths.pauses):
        yield "so does the record of pauses: what was said in them is in transcripts, and"
        yield "would be taken in if csmd is installed again"
    yield "the assistant's own transcripts stay"


@render.raw
def show_purged(
    paths: Paths, parts: Sequence[dict[str, Any]], foreign: Sequence[Path], refused: Sequence[str]
) -> Screen:
    """What a purge has removed and left."""
    number, bytes_ = _total(parts)
    yield f"removed {amount(number, 'file')}, {bytes_}"
    environments = plan.virtual_environments(paths)
    for folder in environments:
        yield f"the program itself is in {folder}; to remove it:\n  rm -r {shlex.quote(str(folder))}"
    others = [path for path in foreign if path not in environments]
    for folder in dict.fromkeys(path.parent for path in others):
        names = [path.name for path in others if path.parent == folder]
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        yield f"left in {folder}, as csmd did not make it: {', '.join(names[:MAX_NAMES])}{more}"
    if not foreign and not refused:
        yield "nothing of csmd is left"
