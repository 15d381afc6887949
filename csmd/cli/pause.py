"""Commands that pause capture and end a pause."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from csmd.cli import render, verb
from csmd.cli.render import Screen, bold, dim
from csmd.config import default_paths
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.installer import foreign_files, plan
from csmd.paths import is_directory, is_there
from csmd.pauses import Pauses, format_pauses, parse_duration, parse_pauses
from csmd.text import ages
from csmd.text.ages import when

VERBS = verb.Verbs()


@VERBS.action(
    "pause",
    verb.text("--for", "TIME", "Length, e.g. 30m, 2h or 1d; until `csmd resume` by default."),
)  # fmt: skip
def pause(as_json: bool, **options: str) -> None:
    """Stop capture and injection. The time of the pause is never captured."""
    now, length = datetime.now(UTC), options["for"]
    end = _format_time(now + timedelta(seconds=parse_duration(length))) if length else ""
    with _locked_pauses() as pauses:
        pauses = pauses.begin(_format_time(now), end=end, by=verb.describe_caller())
        _write_pauses(pauses)
    current = pauses.find_current(_format_time(now))
    paused = {"since": current[0] if current else "", "until": end, "by": pauses.by}
    verb.print_answer({"paused": paused, "daemon": _notify_daemon()}, as_json, show_paused, length=length)


@VERBS.action("resume", verb.YES)
def resume(yes: bool, as_json: bool) -> None:
    """End a pause. Capture and injection start again."""
    now = _format_time(datetime.now(UTC))
    with _locked_pauses() as pauses:
        is_paused = pauses.find_current(now) is not None
    if is_paused:
        verb.confirm("Resume capture and injection now?", yes=yes)
    with _locked_pauses() as pauses:
        current = pauses.find_current(now)
        if current:
            _write_pauses(pauses.end(now))
    value = {"paused": None, "since": current[0] if current else "", "daemon": _notify_daemon()}
    verb.print_answer(value, as_json, show_resumed, now=now)


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextlib.contextmanager
def _locked_pauses() -> Iterator[Pauses]:
    """Reads the pauses under a lock: of two commands at once, one waits for the other."""
    paths = default_paths()
    if not is_directory(paths.home):
        raise CsmdError(f"csmd is not installed in {paths.home}", hint="csmd install")
    for folder in (paths.home, paths.run_dir):
        foreign_files.make_private(folder)
    with plan.file_lock(paths.run_dir / "pause.lock"):
        try:
            data = paths.pauses.read_bytes() if is_there(paths.pauses) else None
        except OSError as error:
            raise CsmdError(f"{paths.pauses}: {error.strerror}", hint="make it readable for you") from error
        yield Pauses() if data is None else parse_pauses(data, where=str(paths.pauses))


def _write_pauses(pauses: Pauses) -> None:
    verb.write_file(default_paths().pauses, format_pauses(pauses), hint="make room on that disk")


def _notify_daemon() -> bool:
    """Makes the daemon read the pauses; False if none runs, or it is busy and reads them later."""
    try:
        verb.ask("csm_runtime_pause")
    except (DaemonUnreachable, DaemonBusy):
        return False
    return True


def show_paused(value: dict[str, Any], *, length: str) -> Screen:
    """Shows the end and the effect of the pause."""
    until = value["paused"]["until"]
    yield bold(f"paused until {f'{when(until)} ({length})' if until else '`csmd resume`'}")
    yield "No session is captured, and none gets notes."
    if until:
        yield "`csmd resume` ends it earlier."
    yield dim("The time of the pause stays excluded, also when its transcripts are read later.")
    if not value["daemon"]:
        yield dim("No daemon runs now; the pause applies to the next one.")


@render.raw
def show_resumed(value: dict[str, Any], *, now: str) -> Screen:
    """Shows the length of the pause that was ended."""
    if not value["since"]:
        yield "csmd was not paused"
        return
    length_s = ages.seconds_between(value["since"], now)
    yield f"resumed{f' after {ages.age(length_s)}' if length_s > 0 else ''}: sessions are captured again"
    if not value["daemon"]:
        yield "no daemon runs now: csmd start"
