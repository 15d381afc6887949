"""Commands that copy, restore and repair the database."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from csmd import client, wire
from csmd.cli import render, verb
from csmd.cli.import_export import nonzero_amounts
from csmd.cli.render import Line, Screen, pair, pairs, size
from csmd.config import child_environment, default_paths
from csmd.errors import CsmdError
from csmd.installer import service
from csmd.paths import Paths, is_file, is_there
from csmd.text.ages import when
from csmd.text.display import amount

VERBS = verb.Verbs()
#: The module of the process that restores and repairs.
REPAIR = "csmd.daemon.repair"
#: Table -> noun for its rows.
ROWS = {"turns": "turn", "memories": "memory", "tombstones": "forgotten text"}


@VERBS.action(
    "backup", verb.argument("what", required=False, type=click.Choice(["list"])),
    verb.option("--to", metavar="FILE", type=click.Path(path_type=Path),
    help="A new file for the copy; in the folder of backups by default."),
)  # fmt: skip
def backup(what: str | None, to: Path | None, as_json: bool) -> None:
    """Copy the database while the daemon works. `csmd backup list` shows the copies."""
    if what == "list" and to:
        raise click.UsageError("--to does not go with list")
    if what == "list":
        verb.print_answer(verb.ask("csm_backup_list"), as_json, show_backups)
    else:
        path = str(to.expanduser().absolute()) if to else ""
        verb.print_answer(verb.run_job("csm_backup_make", path=path), as_json, show_copied)


def show_copied(value: dict[str, Any]) -> Screen:
    """Shows the copy: its rows, size and path."""
    yield pair("copied", f"{_describe_rows(value['counts'])}, {size(value['bytes'])}")
    yield pair("to", value["path"])


@render.raw
@render.if_empty("backups", "no backups yet; the daemon makes one a day, `csmd backup` makes one now")
def show_backups(value: dict[str, Any]) -> Screen:
    """The copies of the database."""
    for row in value["backups"]:
        yield f"{when(row['made_at'])}  {size(row['bytes']):>9}  {Path(row['path']).name}"


def _describe_rows(counts: dict[str, int]) -> str:
    return ", ".join(nonzero_amounts(counts, ROWS)) or "nothing"


@VERBS.action("restore", verb.argument("source", "FILE"), verb.DRY_RUN, verb.YES)
def restore(source: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Replace the database by a backup; `latest` is the newest. Memories forgotten since stay forgotten."""
    path = Path(source).expanduser().absolute()
    backup = default_paths().home / "backups" / source
    file = source if source == "latest" else str(backup if not is_there(path) and is_file(backup) else path)
    if file != "latest" and not is_there(Path(file)):
        raise CsmdError(f"there is no backup {source!r}", hint="`csmd backup list` names them; `latest` is the newest")
    if not dry_run:
        verb.confirm(f"Replace the database by {file}? The present one is moved aside.", yes=yes)
    value = run_with_daemon_stopped("restore", file, dry_run=dry_run, has_changed=lambda _: True)
    verb.print_answer(value, as_json, show_restored)
    if "warning" in value:
        raise SystemExit(1)


def show_restored(value: dict[str, Any]) -> Screen:
    """Shows the rows of the database after the restore."""
    removed = value["forgotten_again"]
    return pairs([
        ("would be" if value["dry_run"] else "restored", _describe_rows(value["counts"])), ("from", value["from"]),
        ("again", f"{amount(removed, 'row')} removed, as forgotten since" if removed else ""), *_outcome_rows(value),
    ])  # fmt: skip


@VERBS.action("repair", verb.DRY_RUN)
def repair(dry_run: bool, as_json: bool) -> None:
    """Check the database, and rebuild a damaged one from its remains, backups and transcripts."""

    def is_repaired(report: dict[str, Any]) -> bool:
        return report["state"] in ("rebuilt", "indexes")

    value = run_with_daemon_stopped("repair", dry_run=dry_run, has_changed=is_repaired)
    verb.print_answer(value, as_json, show_repaired)
    if value.get("lost") or "warning" in value:
        raise SystemExit(1)


def show_repaired(value: dict[str, Any]) -> Screen:
    """Shows the damage, and the sources of the repaired database."""
    if value["state"] in ("sound", "none"):
        yield Line(f"nothing to repair{': there is no database yet' if value['state'] == 'none' else ''}")
        yield from pairs(_outcome_rows(value))
        return
    yield from (pair("found", problem) for problem in value["problems"])
    if value["state"] == "indexes":
        yield pair("rebuilt", "the indexes, from the rows, which are undamaged")
    else:
        yield pair("read", f"{_describe_rows(value['read'])} from the damaged file")
        if value["backup"]:
            yield pair("filled", f"{_describe_rows(value['from_backup'])} from {Path(value['backup']).name}")
        if reread := value.get("from_transcripts"):
            yield pair("reread", f"{amount(reread['turns'], 'turn')} from {amount(reread['files'], 'transcript')}")
        yield pair("kept", f"{amount(value['without_transcript'], 'memory')} that no transcript has")
    yield from pairs(_outcome_rows(value))


def _outcome_rows(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Returns the rows read since, the losses, the path of the previous file, and a warning if the daemon did not
    start."""
    since = value.get("came_back")
    return [
        *([("then", f"{_describe_rows(since)} read from later transcripts")] if since else []),
        *(("lost", text) for text in value.get("lost", [])),
        *([("aside", f"the previous file: {value['set_aside']}")] if value.get("set_aside") else []),
        *([("daemon", "stopped for this, and started again")] if value.get("restarted") else []),
        *([("warning", value["warning"])] if "warning" in value else []),
    ]


def run_with_daemon_stopped(
    *arguments: str, dry_run: bool, has_changed: Callable[[dict[str, Any]], bool], program: str = REPAIR
) -> dict[str, Any]:
    """Runs an offline process with the daemon stopped; restarts the daemon if it ran or something changed."""
    paths = default_paths()
    was_running = service.find_process(paths) is not None
    try:
        service.stop(paths, by_user=False)
        report = run_offline(*arguments, *(["--dry-run"] if dry_run else []), program=program)
    except BaseException:  # ^C too: only a person's `csmd stop` leaves the daemon stopped
        _restart(paths, was_running)
        raise
    if dry_run or not has_changed(report):
        _restart(paths, was_running)
        return {**report, "restarted": was_running}
    try:
        service.start(paths)
        verb.run_job("csm_sync", vectors=False)
        # Not the result of the sync: the daemon began to read by itself when it started.
        now, before = client.call(paths, "csm_runtime_status")["counts"], report.get("counts", {})
        report["came_back"] = {name: max(0, now[name] - before.get(name, now[name])) for name in ("turns", "memories")}
    except (CsmdError, OSError, KeyboardInterrupt) as error:
        # The database was replaced, so the report is printed nevertheless.
        problem = f"the daemon did not read the sessions since: {str(error) or 'interrupted'}"
        report["warning"] = f"{problem}; run `csmd start` and `csmd sync`"
    return report


def _restart(paths: Paths, was_running: bool) -> None:
    """Starts the daemon if it was running; a failure is only printed, as another error is about to be raised."""
    if was_running:
        try:
            service.start(paths)
        except CsmdError as error:
            render.complain(error.what)


def run_offline(*arguments: str, program: str = REPAIR, stdin: str = "") -> dict[str, Any]:
    """Runs a process that works on the home's files itself; returns its report."""
    command = [sys.executable, "-P", "-m", program, *arguments]
    result = _run_with_progress(command, stdin)
    if result.returncode:
        if not result.stderr.startswith("csmd: "):
            hint = f"run `{shlex.join(command)}` to see why; `csmd report` makes a file for a bug report"
            what = f"the process for {arguments[0]} ended with exit code {result.returncode}"
            raise CsmdError(what, hint=hint)
        what, hint = service.split_complaint(result.stderr)
        raise CsmdError(what, hint=hint)
    return dict(wire.loads(result.stdout.encode())["report"])


def _run_with_progress(command: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that prints its progress as lines of JSON, and shows it; the last line is the result.

    The program may be killed at any point: the next start finishes or undoes its work.
    """
    with render.progress() as bar, subprocess.Popen(
        command, env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:  # fmt: skip
        assert program.stdin is not None and program.stdout is not None and program.stderr is not None
        line = ""
        try:
            with contextlib.suppress(BrokenPipeError):
                program.stdin.write(stdin)
                program.stdin.close()
            for line in program.stdout:
                if "step" in (state := wire.loads(line.encode())):
                    bar(state)
            errors = program.stderr.read()
        except BaseException:
            program.kill()
            raise
    return subprocess.CompletedProcess(command, program.returncode, line, errors)
