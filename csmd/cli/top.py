"""What happens, a line for each thing, for `csmd tail`; and what each pane of `csmd top` shows, as a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import click

from csmd import wire
from csmd.cli import dreams, render
from csmd.cli import verb as asking
from csmd.cli.render import ago, cells, fitted, many, plain
from csmd.cli.verb import json_option
from csmd.errors import DaemonBusy, DaemonUnreachable

TAIL_EVERY_S = 0.5
#: Columns of the project's name and of what it is.
TAIL_NAME, WHAT = 12, 13
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
    out = render.console()
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
            sleep(TAIL_EVERY_S)
            continue
        cursor = found["cursor"]
        yield from found["items"]
        if not found["more"]:
            sleep(TAIL_EVERY_S)


def line(item: dict[str, Any], width: int, *, today: str = "") -> str:
    """One thing on one line: the time, the project, what it is, its words."""
    what = NAMES.get(item["kind"], plain(item["what"].replace("_", " ")))
    name = fitted(plain(item["name"]) or "-", TAIL_NAME)
    head = f"{clock(item['at'], today=today)}  {name}{' ' * (TAIL_NAME - cells(name))}  {fitted(what, WHAT):<{WHAT}}  "
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


Ask = Callable[..., Any]
Item = dict[str, Any]
MOST_SESSIONS, MOST_EVENTS = 200, 200
#: Columns that a project's name takes at most.
NAME = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """One of the screen's tables; `load(ask, where)` gives its items, `cells(item, now)` a row, `detail(ask, where, item)` its page."""

    name: str
    columns: tuple[str, ...]
    empty: str
    load: Callable[[Ask, Mapping[str, str]], list[Item]]
    cells: Callable[[Item, str], tuple[str, ...]]
    key: Callable[[Item], str]
    detail: Callable[[Ask, Mapping[str, str], Item], str]


@dataclass(slots=True)
class Look:
    """What one look at the daemon brought: the head line, the items of a pane, the daemon's time, or what went wrong."""

    head: str = ""
    now: str = ""
    items: list[Item] = field(default_factory=list)
    trouble: str = ""


def _sessions(ask: Ask, where: Mapping[str, str]) -> list[Item]:
    found: list[Item] = ask("csm_session_list", limit=MOST_SESSIONS, **where)["sessions"]
    return found


def _memories(ask: Ask, where: Mapping[str, str]) -> list[Item]:
    found: list[Item] = ask("csm_memory_list", **where)["memories"]
    return sorted(found, key=lambda row: row["confirmed_at"], reverse=True)


def _events(ask: Ask, where: Mapping[str, str]) -> list[Item]:
    found: list[Item] = ask("csm_tail", last=MOST_EVENTS, **where)["items"]
    return found[::-1]


def _session(ask: Ask, where: Mapping[str, str], item: Item) -> str:
    shown = ask("csm_session_show", id=item["id"], asking=where["asking"])
    told = [
        ("session", shown["id"]),
        ("project", shown["project"]),
        ("about", shown["about"]),
        ("began", render.when(shown["started_at"])),
        ("last turn", render.when(shown["last_at"])),
        ("turns", ", ".join(f"{amount} {kind.replace('_', ' ')}" for kind, amount in shown["kinds"].items())),
        ("with", f"{shown['model'] or 'a model not named'}, client {shown['version'] or 'not known'}"),
        ("transcript", shown["transcript"]),
    ]
    lines = [f"{name:<11}{plain(said)}" for name, said in told]
    lines += ["", many(len(shown["memories"]), "memory", "memories") + " came of it"]
    lines += [f"- {plain(memory['text'])}" for memory in shown["memories"]]
    tokens = sum(one["tokens"] for one in shown["injections"])
    if shown["injections"]:
        lines += ["", f"{many(len(shown['injections']), 'injection')}, {many(tokens, 'token')}"]
    return "\n".join(lines)


def _memory(ask: Ask, where: Mapping[str, str], item: Item) -> str:
    shown = ask("csm_memory_show", id=item["id"], asking=where["asking"])
    told = [
        ("id", shown["id"]),
        ("kind", f"{shown['gate']}, {shown['category']}; said by the {shown['authority']}"),
        ("sure", f"{shown['confidence'] * 100:.0f} %, {shown['attention']}, {shown['tier']}"),
        ("holds", shown["project"] if shown["scope"] == "project" else "everywhere"),
        ("said", f"{render.when(shown['created_at'])}, last confirmed {render.when(shown['confirmed_at'])}"),
    ]
    lines = [plain(shown["text"]), "", *(f"{name:<11}{plain(said)}" for name, said in told)]
    for source in shown["sources"]:
        speaker = source["speaker"] or "command line"
        lines += ["", f"{source['role']}: {speaker}, {render.when(source['at'])}", f"  {plain(source['text'])}"]
    return "\n".join(lines)


def _event(ask: Ask, where: Mapping[str, str], item: Item) -> str:
    del ask, where
    return wire.pretty(item)


PANES: tuple[Pane, ...] = (
    Pane(
        name="sessions",
        columns=("last turn", "project", "turns", "about"),
        empty="no session yet: the first one that begins brings it",
        load=_sessions,
        cells=lambda row, now: (
            ago(row["last_at"], now),
            _name(row["project"]),
            f"{row['turns']:,}",
            plain(row["about"]),
        ),
        key=lambda row: str(row["id"]),
        detail=_session,
    ),
    Pane(
        name="memories",
        columns=("gate", "sure", "project", "text"),
        empty="no memory yet: they come from sessions, `csmd import` and `csmd remember`",
        load=_memories,
        cells=lambda row, _: (
            row["gate"],
            f"{row['confidence'] * 100:.0f} %",
            _name(row["project"]),
            plain(row["text"]),
        ),
        key=lambda row: str(row["id"]),
        detail=_memory,
    ),
    Pane(
        name="events",
        columns=("time", "project", "what", "text"),
        empty="nothing has happened yet",
        load=_events,
        cells=lambda row, _: (
            clock(row["at"], today=today()),
            fitted(plain(row["name"]) or "-", NAME),
            NAMES.get(row["kind"], row["what"].replace("_", " ")),
            said(row),
        ),
        key=lambda row: f"{row['kind']} {row['at']} {row['session']} {row['what']} {row['text'][:80]}",
        detail=_event,
    ),
    Pane(
        name="dreams",
        columns=("when", "dream", "sessions", "what came of it"),
        empty="no dream has run yet",
        load=lambda ask, _: list(ask("csm_dream_history")["dreams"]),
        cells=lambda row, now: (
            ago(row["begun_at"], now),
            row["id"],
            f"{row['sessions']:,}",
            plain(dreams.show_came_of(row)),
        ),
        key=lambda row: str(row["id"]),
        detail=_event,
    ),
)


def look(ask: Ask, where: Mapping[str, str], pane: Pane) -> Look:
    """Asks for what a pane shows and for the head line."""
    state = ask("csm_runtime_status")
    wrong = [one["what"] for one in state.get("alarms", [])] or state["degraded"]
    counts = state["counts"]
    head = (
        f"csmd {state['version']}  {many(counts['sessions'], 'session')}, {many(counts['memories'], 'memory', 'memories')}, "
        f"{many(counts['turns'], 'turn')}"
    )
    return Look(
        head=head, now=state.get("at", ""), items=pane.load(ask, where), trouble=plain(wrong[0]) if wrong else ""
    )


def matching(items: list[Item], rows: list[tuple[str, ...]], words: str) -> list[tuple[Item, tuple[str, ...]]]:
    """The items whose row holds every one of the words, whatever their case."""
    wanted = words.casefold().split()
    pairs = zip(items, rows, strict=True)
    return [(item, row) for item, row in pairs if all(word in " ".join(row).casefold() for word in wanted)]


def _name(project: str) -> str:
    return fitted(plain(project.rstrip("/").rpartition("/")[2]) or "everywhere", NAME)
