"""The verbs that have csmd look away: pause and resume; what was said meanwhile stays left out for good.

The pauses are a file in the home that is written here, so that they hold without a daemon, too; one that runs is
told to read it before the command returns.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from csmd import pauses
from csmd.cli import disk, show
from csmd.cli.ask import ask, json_option, out
from csmd.config import default_paths
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.paths import Paths
from csmd.pauses import Pauses


@click.command()
@click.option(
    "--for", "length", metavar="TIME", default="", help="How long, e.g. 30m, 2h or 1d; else until `csmd resume`."
)
@json_option
def pause(length: str, as_json: bool) -> None:
    """Capture nothing and tell nobody anything. What is said meanwhile stays left out, also later."""
    now = datetime.now(UTC)
    end = _iso(now + timedelta(seconds=pauses.seconds(length))) if length else ""
    with _changing(default_paths()) as (known, save):
        made = known.begun(_iso(now), end=end)
        save(made)
    on = made.current(_iso(now))
    value = {"paused": {"since": on[0] if on else "", "until": end}, "daemon": _told()}
    out(value, as_json, lambda shown: _paused(shown, length))


@click.command()
@json_option
def resume(as_json: bool) -> None:
    """End a pause. What is said from now on is captured again."""
    now = _iso(datetime.now(UTC))
    with _changing(default_paths()) as (known, save):
        on = known.current(now)
        if on:
            save(known.ended(now))
    value = {"paused": None, "since": on[0] if on else "", "daemon": _told()}
    out(value, as_json, lambda shown: _resumed(shown, now))


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextlib.contextmanager
def _changing(paths: Paths) -> Iterator[tuple[Pauses, Any]]:
    """The pauses so far and how to save others; two commands at once wait for each other."""
    if not paths.home.is_dir():
        raise CsmdError(f"csmd has no home yet at {paths.home}: there is nothing to pause", hint="csmd install")
    for folder in (paths.home, paths.run_dir):
        disk.make_private(folder)
    lock = os.open(paths.run_dir / "pause.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _read(paths.pauses), lambda made: _write(paths.pauses, made)
    finally:
        os.close(lock)


def _read(path: Path) -> Pauses:
    try:
        return pauses.parse(path.read_bytes(), where=str(path))
    except FileNotFoundError:
        return Pauses()
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}", hint="make it readable for you") from error


def _write(path: Path, made: Pauses) -> None:
    try:
        disk.write_whole(path, pauses.written(made))
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}; nothing was changed", hint="make room on that disk") from error


def _told() -> bool:
    """Whether a daemon runs, and has read the pauses by now; one that does not answer reads them by itself."""
    try:
        ask("csm_runtime_pause")
    except (DaemonUnreachable, DaemonBusy):
        return False
    return True


def _paused(value: dict[str, Any], length: str) -> None:
    until = value["paused"]["until"]
    end = f"until {show.when(until)} ({length})" if until else "until `csmd resume`"
    console = show.console()
    show.print_text(console, f"paused {end}", style="bold")
    show.print_text(console, "Nothing that is said from now on is captured, and no session is told anything.")
    if until:
        show.print_text(console, "`csmd resume` ends it earlier.")
    show.print_text(console, "It stays left out afterwards, too: also when its transcript is read later.", style="dim")
    if not value["daemon"]:
        show.print_text(console, "No daemon runs now; the next one keeps to it.", style="dim")


def _resumed(value: dict[str, Any], now: str) -> None:
    if not value["since"]:
        click.echo("csmd was not paused")
        return
    length = (datetime.fromisoformat(now) - datetime.fromisoformat(value["since"])).total_seconds()
    after = f"after {show.age(length)}: " if length > 0 else ""
    click.echo(f"resumed {after}what is said from now on is captured again")
    if not value["daemon"]:
        click.echo("no daemon runs now: csmd start")


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (pause, resume)
