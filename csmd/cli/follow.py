"""Commands that show events as they happen: tail, logs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from csmd import config, wire
from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, cells, dim, plain, shorten
from csmd.config import default_paths
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.text import ages

VERBS = verb.Verbs()
TAIL_EVERY_S = 0.5
#: Columns of the project's name, and of the kind of event.
NAME_COLUMNS = 12
KIND_COLUMNS = 13
STYLES = {
    "event": "dim", "turn": "", "statement": "cyan", "memory": "bold green", "injection": "magenta", "act": "yellow",
    "search": "dim",
}  # fmt: skip


@VERBS.action(
    "tail", *verb.ALL_UNLESS_NAMED,
    verb.option("-n", "--last", default=10, show_default=True, type=click.IntRange(0, 200),
    help="Number of past events to show first."),
    verb.text("--session", "ID", "Only events of this session."),
    verb.text("--kind", "KIND,...",
    "Only event, turn, statement, memory, injection, act (merged, edited ...), search."),
)  # fmt: skip
def tail(all_projects: bool, project: str | None, last: int, as_json: bool, **limits: str) -> None:
    """Show events as they happen. ^C ends it."""
    # Every project by default: a watcher does not know which one the next event will have.
    params = {**limits, **verb.project_params(project, everywhere=all_projects or project is None)}
    colours = config.wants_colours()
    try:
        for item in follow(lambda cursor: verb.ask("csm_tail", cursor=cursor, last=last, **params), time.sleep):
            if as_json:
                click.echo(wire.dumps(item))
            else:
                line = tail_line(item, render.width(), today=render.today()), STYLES[item["kind"]]
                click.echo(render.paint((line,)), color=colours)
    except KeyboardInterrupt:
        return


def follow(read_page: Callable[[str], dict[str, Any]], sleep: Callable[[float], None]) -> Iterator[dict[str, Any]]:
    """Yields the items that `read_page` returns past its cursor, forever; waits while the daemon is restarted."""
    cursor = ""
    while True:
        try:
            page = read_page(cursor)
        except (DaemonUnreachable, DaemonBusy):
            if not cursor:
                raise
            page = {"cursor": cursor, "items": [], "more": False}
        cursor = page["cursor"]
        yield from page["items"]
        if not page["more"]:
            sleep(TAIL_EVERY_S)


def tail_line(item: dict[str, Any], width: int, *, today: str = "") -> str:
    """Returns an event on one line: the time, the project, the kind, the text."""
    kind = shorten(render.KIND_NAMES.get(item["kind"], plain(item["what"].replace("_", " "))), KIND_COLUMNS)
    name = shorten(plain(item["name"]) or "-", NAME_COLUMNS)
    name += " " * (NAME_COLUMNS - cells(name))
    head = f"{ages.clock(item['at'], today=today)}  {name}  {kind:<{KIND_COLUMNS}}  "
    return shorten(head + render.describe_item(item), width)


#: A line as csmd/daemon/logs.py writes it; any other line continues the one before.
_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+ ([A-Z]+) +csmd\.(?:daemon\.)?([\w.]+): (.*)")
LEVEL_STYLES = {"warning": "yellow", "error": "red", "critical": "red"}


@VERBS.action(
    "logs",
    verb.option("-n", "count", default=50, show_default=True, type=click.IntRange(1, 100_000), help="Number of lines."),
)
def logs(count: int, as_json: bool) -> None:
    """Show the daemon's log, with its warnings and errors."""
    path = default_paths().log_file
    older = [path.with_name(f"{path.name}.{number}") for number in (3, 2, 1)]
    lines = b"".join(map(_read, [*older, path])).decode("utf-8", "replace").splitlines()[-count:]
    if not lines:
        raise CsmdError(f"there is no log yet at {path}", hint="csmd start")
    verb.print_answer({"path": str(path), "lines": [_parse_line(line) for line in lines]}, as_json, show_logs)


def show_logs(value: dict[str, Any]) -> Screen:
    """Shows log lines in the terminal's width: time, level and module of warnings and errors, text."""
    for line in value["lines"]:
        if not line["at"]:
            yield dim(line["text"].strip(), indent=16)
            continue
        origin = f"{line['level']} in {line['where']}: " if line["level"] != "info" else ""
        yield Line(f"{origin}{line['text']}", head=f"{line['at'][5:]}  ", style=LEVEL_STYLES.get(line["level"], ""))


def _read(path: Path) -> bytes:
    """Returns a log up to its last complete line; b"" if there is no log."""
    try:
        data = path.read_bytes()
        return data[: data.rfind(b"\n") + 1]
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}") from error


def _parse_line(line: str) -> dict[str, str]:
    match = _LINE.fullmatch(line)
    at, level, where, text = match.groups() if match else ("", "", "", line)
    return {"at": at, "level": level.lower(), "where": where, "text": text}
