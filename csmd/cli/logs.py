"""`csmd logs`: the end of the daemon's log, as it stands or as it grows; it needs no daemon."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from csmd.cli import show
from csmd.cli.ask import json_option, out
from csmd.config import default_paths
from csmd.errors import CsmdError

LOOK_S = 0.3
#: As csmd/daemon/logs.py writes a line; what does not look so belongs to the one before it.
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ ([A-Z]+) +csmd\.(?:daemon\.)?([\w.]+): (.*)")
STYLES = {"warning": "yellow", "error": "red", "critical": "red"}


@click.command()
@click.option("-n", "number", default=50, show_default=True, type=click.IntRange(1, 100_000), help="How many lines.")
@click.option("--follow", is_flag=True, help="Go on with what is written from now on.")
@json_option
def logs(number: int, follow: bool, as_json: bool) -> None:
    """Show what the daemon did, and what went wrong."""
    path = default_paths().log_file
    older = [path.with_name(f"{path.name}.{place}") for place in (3, 2, 1)]
    begun = _size(path)  # what is written while we show the end is not passed over
    lines = [line for file in older for line in _lines(file)] + _lines(path, most=begun)
    lines = lines[-number:]
    if not lines and not follow:
        raise CsmdError(f"there is no log yet at {path}", hint="csmd start")
    if as_json and follow:
        raise click.UsageError("--json goes without --follow")
    out({"path": str(path), "lines": [_parsed(line) for line in lines]}, as_json, lambda value: _shown(value["lines"]))
    for line in _growing(path, begun) if follow else ():
        _shown([_parsed(line)])


def _size(path: Path) -> int:
    """How long the log is, up to its last whole line."""
    try:
        return path.read_bytes().rfind(b"\n") + 1
    except OSError:
        return 0


def _lines(path: Path, *, most: int | None = None) -> list[str]:
    try:
        return path.read_bytes()[:most].decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}") from error


def _growing(path: Path, begun: int) -> Iterator[str]:
    """Every line behind the first `begun` bytes; a log that is rotated is followed into the new file."""
    file, rest = (path.open(encoding="utf-8", errors="replace") if path.exists() else None), ""
    if file:
        file.seek(begun)
    try:
        while True:
            read = file.read() if file else ""
            *whole, rest = (rest + read).split("\n")
            yield from whole
            if read:
                continue
            if path.exists() and (file is None or not path.samefile(f"/dev/fd/{file.fileno()}")):
                if file:
                    file.close()
                file, rest = path.open(encoding="utf-8", errors="replace"), ""
            time.sleep(LOOK_S)
    finally:
        if file:
            file.close()


def _parsed(line: str) -> dict[str, Any]:
    found = _LINE.fullmatch(line)
    if found is None:
        return {"at": "", "level": "", "where": "", "text": line}
    at, level, where, said = found.groups()
    return {"at": at, "level": level.lower(), "where": where, "text": said}


def _shown(lines: list[dict[str, Any]]) -> None:
    """Lines in the terminal's width: the time, what is no mere information, where it comes from, what it says."""
    console = show.console()
    for line in lines:
        if not line["at"]:
            show.print_text(console, line["text"].strip(), indent=16, style="dim")
            continue
        place = f"{line['level']} in {line['where']}: " if line["level"] != "info" else ""
        style = STYLES.get(line["level"], "")
        show.print_text(console, f"{place}{line['text']}", head=f"{line['at'][5:]}  ", style=style)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (logs,)
