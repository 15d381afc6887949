"""The verbs that keep the database safe: copies of it, putting one back, mending a damaged one.

A copy is made by the running daemon. To restore and to repair the daemon is stopped, another
process does it, and the daemon starts again: the command line knows nothing of the store.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from csmd import client, wire
from csmd.cli import ask as asking
from csmd.cli import service, show
from csmd.cli.ask import json_option
from csmd.config import child_environment, default_paths
from csmd.errors import CsmdError
from csmd.paths import Paths
from csmd.text import amount

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
#: Table -> what people call its rows.
NAMED = {"turns": "turn", "memories": "memory", "tombstones": "forgotten text"}


@click.command()
@click.argument("what", required=False, type=click.Choice(["list"]))
@click.option(
    "--to", metavar="FILE", type=click.Path(path_type=Path), help="Where to; a new file. Else among the others."
)
@json_option
def backup(what: str | None, to: Path | None, as_json: bool) -> None:
    """Copy the database while the daemon works. `csmd backup list` shows the copies."""
    if what == "list":
        if to:
            raise click.UsageError("--to goes with a copy that is made")
        asking.out(asking.ask("csm_backup_list"), as_json, _listed)
        return
    with show.progress() as bar:
        target = str(to.expanduser().absolute()) if to else ""
        made = client.work(default_paths(), "csm_backup_make", {"path": target}, watch=bar)
    asking.out(
        made,
        as_json,
        lambda value: show.described(
            [
                ("copied", f"{_counted(value['counts'])}, {show.size(value['bytes'])}"),
                ("to", value["path"]),
            ]
        ),
    )


def _listed(value: dict[str, Any]) -> None:
    if not value["backups"]:
        click.echo("no backups yet; the daemon makes one a day, `csmd backup` makes one now")
    for row in value["backups"]:
        click.echo(f"{show.when(row['made_at'])}  {show.size(row['bytes']):>9}  {Path(row['path']).name}")


def _counted(rows: dict[str, int]) -> str:
    return ", ".join(amount(rows[name], word) for name, word in NAMED.items() if rows.get(name)) or "nothing"


@click.command()
@click.argument("source", metavar="FILE")
@dry_run_option
@json_option
def restore(source: str, dry_run: bool, as_json: bool) -> None:
    """Put a backup in the database's place; `latest` is the newest. What was forgotten since stays forgotten."""
    chosen = source if source == "latest" else str(_found(source))
    value = _with_daemon_stopped("restore", chosen, dry_run=dry_run, changed=lambda _: True)
    asking.out(value, as_json, _restored)


def _found(source: str) -> Path:
    """The file that is meant: a path, or the name of one of the backups."""
    path = Path(source).expanduser().absolute()
    named = default_paths().home / "backups" / source
    return named if not path.exists() and named.is_file() else path


def _restored(value: dict[str, Any]) -> None:
    rows = [
        ("would be" if value["dry_run"] else "restored", _counted(value["counts"])),
        ("from", value["from"]),
        *([("again", f"{amount(value['forgotten_again'], 'row')} removed, as forgotten since")] if value["forgotten_again"] else []),
        *_read_again(value),
        *_ending(value),
    ]  # fmt: skip
    show.described(rows)


@click.command()
@dry_run_option
@json_option
def repair(dry_run: bool, as_json: bool) -> None:
    """Look at the database. Bring back a damaged one, from what is left of it, backups and transcripts."""
    value = _with_daemon_stopped(
        "repair", dry_run=dry_run, changed=lambda report: report["state"] in ("rebuilt", "indexes")
    )
    asking.out(value, as_json, _repaired)
    if value.get("lost"):
        raise SystemExit(1)  # told why


def _repaired(value: dict[str, Any]) -> None:
    if value["state"] in ("sound", "none"):
        click.echo("nothing to repair" if value["state"] == "sound" else "nothing to repair: there is no database yet")
        return
    rows = [("found", problem) for problem in value["problems"]]
    if value["state"] == "indexes":
        rows.append(("mended", "the indexes, made anew from the rows, which are whole"))
    else:
        rows.append(("read", f"{_counted(value['read'])} from the damaged file"))
        if value["backup"]:
            rows.append(("filled", f"{_counted(value['from_backup'])} from {Path(value['backup']).name}"))
        if "from_transcripts" in value:
            brought = value["from_transcripts"]
            rows.append(
                ("heard", f"{amount(brought['turns'], 'turn')} again from {amount(brought['files'], 'transcript')}")
            )
        rows.append(("kept", f"{amount(value['without_transcript'], 'memory')} that no transcript would bring back"))
    show.described([*rows, *_read_again(value), *_ending(value)])


def _read_again(value: dict[str, Any]) -> list[tuple[str, str]]:
    """What the daemon took in when it was back."""
    since = value.get("came_back")
    return [("then", f"{_counted(since)} from what was said since")] if since else []


def _ending(value: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("lost", text) for text in value.get("lost", [])]
    return rows + ([("aside", f"the file of before: {value['set_aside']}")] if value.get("set_aside") else [])


def _with_daemon_stopped(*arguments: str, dry_run: bool, changed: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Has it done while no daemon runs; the daemon runs afterwards when it did before, or something changed."""
    paths = default_paths()
    ran = service.stop(paths, by_user=False)
    try:
        with show.progress() as bar:
            bar({"step": f"{arguments[0]}: reading"})
            report = _offline(*arguments, *(["--dry-run"] if dry_run else []))
    except CsmdError:
        _start_again(paths, ran)
        raise
    mended = not dry_run and changed(report)
    if mended:
        service.start(paths)
        with show.progress() as bar:
            client.work(paths, "csm_sync", {"vectors": False}, watch=bar)
        # Not what the sync says: the daemon began to read by itself when it started.
        now, then = client.call(paths, "csm_runtime_status")["counts"], report.get("counts", {})
        report["came_back"] = {name: max(0, now[name] - then.get(name, now[name])) for name in ("turns", "memories")}
    else:
        _start_again(paths, ran)
    return report


def _start_again(paths: Paths, ran: bool) -> None:
    """The daemon as it was; that it cannot start is no news to whoever is told why already."""
    if ran:
        try:
            service.start(paths)
        except CsmdError as error:
            click.echo(f"csmd: {error.what}", err=True)


def _offline(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "csmd.daemon.repair", *arguments],
        env=child_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        what, hint = service.complaint(done.stderr)
        raise CsmdError(what or f"exit code {done.returncode}", hint=hint)
    return dict(wire.loads(done.stdout.encode()))


VERBS: tuple[click.Command, ...] = (backup, restore, repair)
