"""The command that uninstalls csmd, and with --purge its data."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.install import ask_if_running, format_path, planned_json, raise_trouble, screen_printer, show_differences
from csmd.cli.render import Screen, size
from csmd.config import default_paths
from csmd.errors import CsmdError
from csmd.installer import plan, service
from csmd.installer.plan import Change
from csmd.paths import Paths, is_directory, is_there
from csmd.text.display import amount

VERBS = verb.Verbs()
#: Names that are shown of the files that a purge leaves in one directory.
MAX_NAMES = 5


@VERBS.action(
    "uninstall", verb.DRY_RUN, verb.flag("--purge", help="Delete all of csmd's data, too."),
    verb.yes("Do not ask before --purge deletes."),
)  # fmt: skip
def uninstall(dry_run: bool, purge: bool, yes: bool, as_json: bool) -> None:
    """Remove hooks and service; memories stay on disk."""
    # Reads no configuration, as a damaged one must not prevent uninstalling.
    paths, show = default_paths(), screen_printer(as_json)
    if purge:
        plan.check_home_is_own(paths)
    planned_files = plan.plan_purge(paths) if purge else {}
    parts = [{"what": kind, "files": len(files), "bytes": sum(files.values())} for kind, files in planned_files.items()]
    if dry_run:
        planned, unit = plan.plan_removal(paths), service.read_recorded_unit(paths)
        show(show_leaving(paths, planned, unit, parts, purge=purge))
        if as_json:
            click.echo(wire.pretty({"settings": planned_json(planned), "removes": parts, "service": unit}))
        raise_trouble(planned)
        return
    if purge and not yes:
        _confirm(paths, parts)
    stopped, unit = service.stop(paths, by_user=True), service.read_recorded_unit(paths)
    outcomes = plan.uninstall(paths)
    service.remove_unit(paths)
    restored = [str(change.path) for change in outcomes if change.changed]
    result: dict[str, Any] = {
        "restored": restored, "stopped": stopped, "service": unit, "home": str(paths.home),
        "log_dir": str(paths.log_dir), "config_file": str(paths.config_file),
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
        raise CsmdError(refused[0], hint="remove the rest by hand")


def _describe_total(parts: Sequence[dict[str, Any]]) -> str:
    """Describes the number of files and their size."""
    return f"{amount(sum(part['files'] for part in parts), 'file')}, {size(sum(part['bytes'] for part in parts))}"


def _confirm(paths: Paths, parts: Sequence[dict[str, Any]]) -> None:
    """Asks a person to confirm the purge; CsmdError without a terminal, or for a no."""
    render.show(show_deletions(paths, parts))
    if not verb.is_interactive():
        raise CsmdError("not a terminal; cannot ask for confirmation", hint="csmd uninstall --purge --yes")
    question = f"Permanently delete all of csmd's data, {_describe_total(parts)}?"
    if not verb.ask_yes_no(question if parts else "Remove csmd from the assistant's files?", default=False):
        raise CsmdError("no change")


@render.raw
def show_leaving(
    paths: Paths, planned: Sequence[Change], unit: str, parts: Sequence[dict[str, Any]], *, purge: bool
) -> Screen:
    """Shows the changes and deletions of an uninstall."""
    if unit:
        yield f"the service would be removed: {unit}"
    yield f"the daemon would be stopped, and {paths.hook_dir} removed"
    yield from show_differences(planned)
    if not planned:
        yield "the assistant's files have no entries of csmd"
    yield ""
    yield from show_deletions(paths, parts) if purge else show_remains(paths)


@render.raw
def show_uninstalled(outcomes: Sequence[Change], unit: str, *, stopped: bool) -> Screen:
    """Shows the effects of an uninstall."""
    yield "the daemon is stopped" if stopped else "no daemon was running"
    yield from show_restored(outcomes)
    if unit:
        yield f"removed {unit}"


@render.raw
def show_restored(outcomes: Sequence[Change]) -> Screen:
    """Shows the result for each file from which csmd's entries were removed."""
    for change in outcomes:
        effect = "removed" if change.after is None else "restored"
        state = "not changed:" if change.trouble else effect if change.changed else "no entries of csmd in"
        yield f"{state} {format_path(change.path)}"


@render.raw
def show_remains(paths: Paths) -> Screen:
    """Shows the directories of csmd's data after uninstalling."""
    if not is_directory(paths.home) or not any(plan.plan_purge(paths).values()):
        yield f"no csmd data in {paths.home}"
        return
    yield "csmd's data is kept:"
    yield from _directories(paths)
    yield "`csmd uninstall --purge` deletes it"


def _directories(paths: Paths) -> Screen:
    """Shows the home, and csmd's directories outside it."""
    yield f"  {paths.home}"
    for folder in (paths.log_dir, paths.config_file.parent):
        if is_there(folder) and not folder.is_relative_to(paths.home):
            yield f"  {folder}"


@render.raw
def show_deletions(paths: Paths, parts: Sequence[dict[str, Any]]) -> Screen:
    """Shows the files that a purge deletes, by kind, and their directories; with the number of memories if a daemon
    runs."""
    if not parts:
        yield "no csmd data to delete"
        return
    yield "This will be permanently deleted:"
    width = max(len(part["what"]) for part in parts)
    for part in parts:
        yield f"  {part['what']:<{width}}  {amount(part['files'], 'file'):>10}  {size(part['bytes']):>9}"
    nouns = {"memories": "memory", "turns": "turn", "sessions": "session"}
    counts = ask_if_running(paths, "csm_runtime_status").get("counts")
    yield f"with {', '.join(amount(counts[name], noun) for name, noun in nouns.items())}, from" if counts else "from"
    yield from _directories(paths)
    if is_there(paths.pauses):
        yield "with the record of pauses: if csmd is installed again, it reads their time from transcripts"
    yield "the assistant's own transcripts are kept"


@render.raw
def show_purged(paths: Paths, parts: list[dict[str, Any]], foreign: Sequence[Path], refused: Sequence[str]) -> Screen:
    """Shows the files that a purge has deleted and left."""
    yield f"deleted {_describe_total(parts)}"
    environments = plan.find_virtual_environments(paths)
    for folder in environments:
        own = [shlex.quote(str(path)) for path in (folder, *plan.find_command_links(folder))]
        yield f"the program itself is in {folder}; to remove it:\n  rm -r {' '.join(own)}"
    others = [path for path in foreign if path not in environments]
    for folder in dict.fromkeys(path.parent for path in others):
        names = [path.name for path in others if path.parent == folder]
        rest = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        yield f"kept in {folder}, as csmd did not create it: {', '.join(names[:MAX_NAMES])}{rest}"
    if not foreign and not refused:
        yield "everything of csmd was deleted"
