"""`csmd top`: sessions, memories, events and dreams on one screen that keeps itself up to date.

What each pane shows is a table: which tool is asked, which columns its rows have, what a row's detail is. The screen
itself (top_screen.py) is imported when it is shown: it costs more than everything else the command line does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from csmd import wire
from csmd.cli import ask as asking
from csmd.cli import show, show_dream, tail
from csmd.cli.lines import ago, fitted, many, plain

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
        ("began", show.when(shown["started_at"])),
        ("last turn", show.when(shown["last_at"])),
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
        ("said", f"{show.when(shown['created_at'])}, last confirmed {show.when(shown['confirmed_at'])}"),
    ]
    lines = [plain(shown["text"]), "", *(f"{name:<11}{plain(said)}" for name, said in told)]
    for source in shown["sources"]:
        speaker = source["speaker"] or "command line"
        lines += ["", f"{source['role']}: {speaker}, {show.when(source['at'])}", f"  {plain(source['text'])}"]
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
            tail.clock(row["at"], today=tail.today()),
            fitted(plain(row["name"]) or "-", NAME),
            tail.NAMES.get(row["kind"], row["what"].replace("_", " ")),
            tail.said(row),
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
            plain(show_dream.came_of(row)),
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


@click.command()
@click.option("--project", metavar="PATH", help="Only what belongs to this project.")
def top(project: str | None) -> None:
    """Look at sessions and memories as they change."""
    where = asking.looking(project, everywhere=project is None)
    asking.ask("csm_tools")  # without a daemon: the error, and no screen
    if not sys.stdout.isatty():
        raise click.UsageError("csmd top needs a terminal; for a program: csmd status --json")
    from csmd.cli import top_screen

    top_screen.show_screen(asking.ask, where)
