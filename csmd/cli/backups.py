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

#: The verbs of this module.
VERBS = verb.Verbs()


#: The process that restores and repairs.
REPAIR = "csmd.daemon.repair"
#: Table -> noun for its rows.
ROWS = {"turns": "turn", "memories": "memory", "tombstones": "forgotten text"}


@VERBS.action(
    "backup", verb.argument("what", required=False, type=click.Choice(["list"])),
    verb.option(
        "--to", metavar="FILE", type=click.Path(path_type=Path),
        help="Where to; a new file. Else among the others.",
    ),
)  # fmt: skip
def backup(what: str | None, to: Path | None, as_json: bool) -> None:
    """Copy the database while the daemon works. `csmd backup list` shows the copies."""
    if what != "list":
        path = str(to.expanduser().absolute()) if to else ""
        verb.print_answer(verb.work("csm_backup_make", path=path), as_json, show_copied)
    elif to:
        raise click.UsageError("--to goes with a copy that is made")
    else:
        verb.print_answer(verb.ask("csm_backup_list"), as_json, show_backups)


def show_copied(value: dict[str, Any]) -> Screen:
    """The copy: its rows, size and path."""
    yield pair("copied", f"{_rows(value['counts'])}, {size(value['bytes'])}")
    yield pair("to", value["path"])


@render.raw
@render.if_empty("backups", "no backups yet; the daemon makes one a day, `csmd backup` makes one now")
def show_backups(value: dict[str, Any]) -> Screen:
    """The copies of the database."""
    for row in value["backups"]:
        yield f"{when(row['made_at'])}  {size(row['bytes']):>9}  {Path(row['path']).name}"


def _rows(counts: dict[str, int]) -> str:
    return ", ".join(nonzero_amounts(counts, ROWS)) or "nothing"


@VERBS.action("restore", verb.argument("source", "FILE"), verb.DRY_RUN, verb.YES)
def restore(source: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Put a backup in the database's place. `latest` is the newest. What was forgotten since stays forgotten."""
    path = Path(source).expanduser().absolute()
    backup = default_paths().home / "backups" / source
    file = source if source == "latest" else str(backup if not is_there(path) and is_file(backup) else path)
    if not dry_run:
        verb.confirm(f"Put {file} in the database's place? The present one is set aside.", yes=yes)
    value = with_daemon_stopped("restore", file, dry_run=dry_run, changed=lambda _: True)
    verb.print_answer(value, as_json, show_restored)
    if "warning" in value:
        raise SystemExit(1)


def show_restored(value: dict[str, Any]) -> Screen:
    """The rows of the database after the restore."""
    again = value["forgotten_again"]
    return pairs([
        ("would be" if value["dry_run"] else "restored", _rows(value["counts"])),
        ("from", value["from"]),
        ("again", f"{amount(again, 'row')} removed, as forgotten since" if again else ""),
        *_ending(value),
    ])  # fmt: skip


@VERBS.action("repair", verb.DRY_RUN)
def repair(dry_run: bool, as_json: bool) -> None:
    """Look at the database. Bring back a damaged one, from what is left of it, backups and transcripts."""
    value = with_daemon_stopped(
        "repair", dry_run=dry_run, changed=lambda report: report["state"] in ("rebuilt", "indexes")
    )
    verb.print_answer(value, as_json, show_repaired)
    if value.get("lost") or "warning" in value:
        raise SystemExit(1)


def show_repaired(value: dict[str, Any]) -> Screen:
    """What was damaged, and the sources of the repaired database."""
    if value["state"] in ("sound", "none"):
        yield Line(f"nothing to repair{': there is no database yet' if value['state'] == 'none' else ''}")
        return
    yield from (pair("found", problem) for problem in value["problems"])
    if value["state"] == "indexes":
        yield pair("mended", "the indexes, made anew from the rows, which are whole")
    else:
        yield pair("read", f"{_rows(value['read'])} from the damaged file")
        if value["backup"]:
            yield pair("filled", f"{_rows(value['from_backup'])} from {Path(value['backup']).name}")
        if heard := value.get("from_transcripts"):
            yield pair("heard", f"{amount(heard['turns'], 'turn')} again from {amount(heard['files'], 'transcript')}")
        yield pair("kept", f"{amount(value['without_transcript'], 'memory')} that no transcript would bring back")
    yield from pairs(_ending(value))


def _ending(value: dict[str, Any]) -> list[tuple[str, str]]:
    """What the daemon read after the restart (or why it did not), what is lost, and where the previous file is."""
    since = value.get("came_back")
    then = [("then", f"{_rows(since)} from what was said since")] if since else []
    aside = [("aside", f"the file of before: {value['set_aside']}")] if value.get("set_aside") else []
    warnings = [("warning", value["warning"])] if "warning" in value else []
    return [*then, *(("lost", text) for text in value.get("lost", [])), *aside, *warnings]


def with_daemon_stopped(
    *arguments: str, dry_run: bool, changed: Callable[[dict[str, Any]], bool], program: str = REPAIR
) -> dict[str, Any]:
    """Runs an offline process with the daemon stopped; restarts the daemon if it ran or something changed."""
    paths = default_paths()
    ran = service.running_service(paths) is not None
    try:
        service.stop(paths, by_user=False)
        report = offline(*arguments, *(["--dry-run"] if dry_run else []), program=program)
    except BaseException:  # ^C too: only a person's `csmd stop` leaves the daemon stopped
        _restart(paths, ran)
        raise
    if dry_run or not changed(report):
        _restart(paths, ran)
        return report
    try:
        service.start(paths)
        verb.work("csm_sync", vectors=False)
        # Not the result of the sync: the daemon began to read by itself when it started.
        now, then = client.call(paths, "csm_runtime_status")["counts"], report.get("counts", {})
        report["came_back"] = {name: max(0, now[name] - then.get(name, now[name])) for name in ("turns", "memories")}
    except (
        CsmdError,
        OSError,
        KeyboardInterrupt,
    ) as error:  # the database was replaced, so the report is printed all the same
        report["warning"] = (
            f"the daemon did not read what was said since: {str(error) or 'interrupted'}; "
            "run `csmd start` and `csmd sync`"
        )
    return report


def _restart(paths: Paths, ran: bool) -> None:
    """Starts the daemon if it ran; a failure is printed only, as another error is about to be raised."""
    if ran:
        try:
            service.start(paths)
        except CsmdError as error:
            render.complain(error.what)


def offline(*arguments: str, program: str = REPAIR, stdin: str = "") -> dict[str, Any]:
    """Runs a process that works on the home's files itself; returns its report."""
    command = [sys.executable, "-P", "-m", program, *arguments]
    result = _watch(command, stdin)
    if result.returncode:
        if not result.stderr.startswith("csmd: "):
            hint = f"run `{shlex.join(command)}` to see why; `csmd report` makes a file for a bug report"
            what = f"the process that does the {arguments[0]} broke off with exit code {result.returncode}"
            raise CsmdError(what, hint=hint)
        what, hint = service.split_complaint(result.stderr)
        raise CsmdError(what, hint=hint)
    return dict(wire.loads(result.stdout.encode())["report"])


def _watch(command: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
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
