"""`csmd tail`: what happens, as it happens, a line for each thing; the daemon is asked twice a second for what is new.

Where it stood is a cursor that the daemon gave: one that was restarted meanwhile goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import click

from csmd import wire
from csmd.cli import ask as asking
from csmd.cli import show
from csmd.cli.ask import json_option
from csmd.cli.lines import cells, fitted, many, plain
from csmd.errors import DaemonBusy, DaemonUnreachable

EVERY_S = 0.5
#: Columns of the project's name and of what it is.
NAME, WHAT = 12, 13
#: Kinds that have a name of their own; the others are named by their word (an event's, a turn's kind).
NAMES = {"statement": "chosen", "memory": "memory", "injection": "told"}
STYLES = {"event": "dim", "turn": "", "statement": "cyan", "memory": "bold green", "injection": "magenta"}


@click.command()
@click.option("--project", metavar="PATH", help="Only what happens in this project.")
@click.option(
    "-n", "--last", default=10, show_default=True, type=click.IntRange(0, 200), help="How many past ones first."
)
@json_option
def tail(project: str | None, last: int, as_json: bool) -> None:
    """Show what happens, as it happens. ^C ends it."""
    # Without a project all of them: who looks on does not know where it will happen.
    where = asking.looking(project, everywhere=project is None)
    out = show.console()
    try:
        for item in follow(lambda cursor: asking.ask("csm_tail", cursor=cursor, last=last, **where), time.sleep):
            if as_json:
                click.echo(wire.dumps(item))
            else:
                out.print(line(item, out.width, today=today()), style=STYLES[item["kind"]])
    except KeyboardInterrupt:
        return


def follow(ask: Callable[[str], dict[str, Any]], sleep: Callable[[float], None]) -> Iterator[dict[str, Any]]:
    """Everything that `ask` tells past its own cursors, for ever; a daemon that goes away later is waited for."""
    cursor = ""
    while True:
        try:
            found = ask(cursor)
        except (DaemonUnreachable, DaemonBusy):
            if not cursor:
                raise
            sleep(EVERY_S)
            continue
        cursor = found["cursor"]
        yield from found["items"]
        if not found["more"]:
            sleep(EVERY_S)


def line(item: dict[str, Any], width: int, *, today: str = "") -> str:
    """One thing on one line: the time, the project, what it is, its words."""
    what = NAMES.get(item["kind"], plain(item["what"].replace("_", " ")))
    name = fitted(plain(item["name"]) or "-", NAME)
    head = f"{clock(item['at'], today=today)}  {name}{' ' * (NAME - cells(name))}  {fitted(what, WHAT):<{WHAT}}  "
    return fitted(head + said(item), width)


def today() -> str:
    """The date here."""
    return datetime.now().astimezone().date().isoformat()


def said(item: dict[str, Any]) -> str:
    """What was said, or what it was about."""
    if item["kind"] == "injection":
        amount = item["memories"]
        return f"{many(amount, 'memory', 'memories')}, {many(item['tokens'], 'token')} ({plain(item['what'].replace('_', ' '))})"
    if item["kind"] == "event":
        about = f" ({plain(item['text'])})" if item["text"] else ""
        return f"session {plain(item['session'][:8])}{about}"
    return plain(f"{item['what']}: {item['text']}" if item["kind"] in NAMES else item["text"])


def clock(stamp: str, *, today: str = "") -> str:
    """The time of day of a stored time, here; the date where it is another one than `today`, both take 8 columns."""
    try:
        moment = datetime.fromisoformat(stamp).astimezone()
    except (OverflowError, ValueError):
        return "--:--:--"
    return moment.strftime("%H:%M:%S" if not today or moment.date().isoformat() == today else "%y-%m-%d")
