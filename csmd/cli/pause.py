"""Commands that pause capture and end a pause."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from csmd import exclusions
from csmd.cli import render, verb
from csmd.cli.render import Screen, bold, dim
from csmd.config import default_paths
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.exclusions import Pauses
from csmd.installer import foreign_files, plan
from csmd.paths import is_directory, is_there
from csmd.text import ages
from csmd.text.ages import when

#: The verbs of this module.
VERBS = verb.Verbs()


@VERBS.action(
    "pause",
    verb.option(
        "--for", "length", metavar="TIME", default="",
        help="How long, e.g. 30m, 2h or 1d; else until `csmd resume`.",
    ),
)  # fmt: skip
def pause(length: str, as_json: bool) -> None:
    """Stop capture and injection. What is said meanwhile is never captured."""
    now = datetime.now(UTC)
    end = _iso(now + timedelta(seconds=exclusions.pause_seconds(length))) if length else ""
    with _locked_pauses() as pauses:
        pauses = pauses.begun(_iso(now), end=end, by=verb.who())
        _write(pauses)
    current = pauses.current(_iso(now))
    value = {
        "paused": {"since": current[0] if current else "", "until": end, "by": pauses.by},
        "daemon": _daemon_knows(),
    }
    verb.print_answer(value, as_json, show_paused, length=length)


@VERBS.action("resume", verb.YES)
def resume(yes: bool, as_json: bool) -> None:
    """End a pause. What is said from now on is captured again."""
    now = _iso(datetime.now(UTC))
    with _locked_pauses() as pauses:
        is_paused = pauses.current(now) is not None
    if is_paused:
        verb.confirm("Capture what is said, and tell sessions of it, from now on?", yes=yes)
    with _locked_pauses() as pauses:
        current = pauses.current(now)
        if current:
            _write(pauses.ended(now))
    value = {"paused": None, "since": current[0] if current else "", "daemon": _daemon_knows()}
    verb.print_answer(value, as_json, show_resumed, now=now)


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextlib.contextmanager
def _locked_pauses() -> Iterator[Pauses]:
    """The pauses so far, under a lock: two commands at once wait for each other."""
    paths = default_paths()
    if not is_directory(paths.home):
        raise CsmdError(f"csmd has no home yet at {paths.home}: there is nothing to pause", hint="csmd install")
    for folder in (paths.home, paths.run_dir):
        foreign_files.make_private(folder)
    with plan.file_lock(paths.run_dir / "pause.lock"):
        try:
            data = paths.pauses.read_bytes() if is_there(paths.pauses) else None
        except OSError as error:
            raise CsmdError(f"{paths.pauses}: {error.strerror}", hint="make it readable for you") from error
        yield Pauses() if data is None else exclusions.parse_pauses(data, where=str(paths.pauses))


def _write(pauses: Pauses) -> None:
    verb.write(default_paths().pauses, exclusions.written_pauses(pauses), hint="make room on that disk")


def _daemon_knows() -> bool:
    """Whether a daemon runs and has read the pauses; a busy daemon reads them later."""
    try:
        verb.ask("csm_runtime_pause")
    except (DaemonUnreachable, DaemonBusy):
        return False
    return True


def show_paused(value: dict[str, Any], *, length: str) -> Screen:
    """The end of the pause, and what it means."""
    until = value["paused"]["until"]
    yield bold(f"paused until {f'{when(until)} ({length})' if until else '`csmd resume`'}")
    yield "Nothing that is said from now on is captured, and no session is told anything."
    if until:
        yield "`csmd resume` ends it earlier."
    yield dim("It stays left out afterwards, too: also when its transcript is read later.")
    if not value["daemon"]:
        yield dim("No daemon runs now; the next one keeps to it.")


@render.raw
def show_resumed(value: dict[str, Any], *, now: str) -> Screen:
    """How long the pause was."""
    if not value["since"]:
        yield "csmd was not paused"
        return
    length = (datetime.fromisoformat(now) - datetime.fromisoformat(value["since"])).total_seconds()
    after = f"after {ages.age(length)}: " if length > 0 else ""
    yield f"resumed {after}what is said from now on is captured again"
    if not value["daemon"]:
        yield "no daemon runs now: csmd start"
