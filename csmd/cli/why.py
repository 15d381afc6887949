"""`csmd why`: what a session was told and why, from its receipts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from csmd import text as texts
from csmd.cli import show
from csmd.cli.ask import ask, json_option, looking, out
from csmd.text import amount

if TYPE_CHECKING:
    from rich.console import Console

EVENTS = {
    "session_start": "at its start",
    "prompt": "with a prompt",
    "tool_failure": "when a tool failed",
    "pre_compact": "before its compaction",
}
USED_BY = {
    "command": "the assistant ran its command",
    "path": "the assistant named its file",
    "name": "the assistant said its name for something",
    "words": "the assistant used its words",
}
STATES = {
    "checkpoint": "what the session stood at: csmd checkpoint show {id}",
    "goal": "a goal: csmd goal list ({id})",
    "gone": "something that was forgotten since ({id})",
    "hidden": "something behind a wall: ask from its directory ({id})",
    "session": "what a session came to: csmd session digest {short}",
    "preview": "of the living state: csmd advisory show",
}
#: Characters of an id, and of a session's.
ID, SHORT_ID = 11, 8


@click.command()
@click.option("--session", metavar="ID", default="", help="A session; the last one here that was told something.")
@click.option("--receipt", metavar="ID", default="", help="One injection.")
@click.option("--project", metavar="PATH", help="The project to look in; this directory's by default.")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(1, 100), help="How many injections.")
@json_option
def why(session: str, receipt: str, project: str | None, limit: int, as_json: bool) -> None:
    """Show what a session was told, and why."""
    if session and receipt:
        raise click.UsageError("--session and --receipt do not go together")
    found = ask("csm_receipt_show", id=receipt, session=session, **looking(project), limit=limit)
    out(found, as_json, shown)


def shown(value: dict[str, Any]) -> None:
    """The injections, the latest first, each with its memories and their reasons."""
    console = show.console()
    if not value["injections"]:
        show.print_text(console, "no session here was told anything yet; `csmd brief` shows what the next one would be")
        return
    show.print_text(console, f"session {value['session_id']}")
    for injection in value["injections"]:
        console.print()
        about = f"{EVENTS.get(injection['event'], injection['event'])}: {amount(len(injection['items']), 'note')}, "
        show.print_text(
            console,
            f"{about}{amount(injection['tokens'], 'token')}",
            head=f"{show.when(injection['at'])}  ",
            style="bold",
        )
        if injection["prompt"]:
            show.print_text(console, f"you asked: {injection['prompt']}", indent=2, most=2, style="dim")
        for item in injection["items"]:
            _item(console, item, injection["event"])
        show.print_text(console, f"receipt {injection['id']}", indent=2, style="dim")
    console.print()
    show.print_text(
        console,
        "A prompt is told the statements that bear on it, newest first, when the score of the best reaches "
        f"{value['floor']:g} (recall.floor). At a start a memory is worth its confidence, more "
        "where it was said again or lately or is a correction, less when an assistant said it or it fades. What was left "
        "out is not kept. `csmd show ID` tells more of a memory.",
        style="dim",
    )


def hint(state: str, ident: str) -> str:
    """What is said of a thing that is no memory, on one line: of a turn's or session's id its beginning is enough."""
    return STATES[state].format(id=ident[:ID], short=ident[:SHORT_ID])


def _item(console: Console, item: dict[str, Any], event: str) -> None:
    if item["state"] in STATES:
        show.print_text(console, hint(item["state"], item["id"]), indent=2, style="dim")
        return
    show.print_text(console, texts.squeeze(item["text"]), indent=2, most=4)
    about = f"{_reason(item, event)}; {_source(item)}{_use(item)}"
    show.print_text(console, about, head=f"  {item['id']}  ", style="dim")


def _use(item: dict[str, Any]) -> str:
    """Whether the session made use of it, as far as that can be said."""
    if item["used"] is None:
        return ""
    if not item["used"]:
        return "; not used"
    marks = ", ".join(item.get("marks", ()))
    return f"; used: {USED_BY.get(item['used_by'], item['used_by'])}{f' ({texts.cut(marks, 100)})' if marks else ''}"


def _reason(item: dict[str, Any], event: str) -> str:
    """Why it was told, in words."""
    if event == "tool_failure":
        return str(item["reason"])
    if event == "prompt":
        return f"{item['reason']}, score {item['score']:.2f}"
    return f"under {item['reason']!r}, score {item['score']:.2f}"


def _source(item: dict[str, Any]) -> str:
    """Where it was said, by whom, and how sure it is; of an error how often it was seen."""
    if item["state"] == "error":
        return f"seen {amount(item['times'], 'time')}, last on {item['said_at'][:10]}"
    parts = [f"said by the {item['authority']} on {item['said_at'][:10]} in {item['said_in'][:8] or 'a terminal'}"]
    if item["state"] == "quoted":
        return f"{parts[0]}, quoted"
    if item["times"] > 1:
        parts.append(f"{item['times']} times in all")
    parts.append(f"{item['confidence'] * 100:.0f} % sure")
    parts += ["pinned"] * item["pinned"] + ["superseded since"] * (item["state"] == "superseded")
    return ", ".join(parts + ["holds everywhere"] * (item["scope"] != "project"))


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (why,)
