"""Commands that show what sessions are given by csmd: brief, recall, why, context."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, bold, dim, join, percent, raw, table, warning
from csmd.hook_events import EVENTS
from csmd.installer import foreign_files
from csmd.text import display
from csmd.text.ages import when
from csmd.text.display import amount, cut, squeeze

#: The verbs of this module.
VERBS = verb.Verbs()


@VERBS.action("brief", verb.PROJECT)
def brief(project: str | None, as_json: bool) -> None:
    """Show what a session that starts here would be told."""
    nothing = "nothing yet: `csmd memories` lists what there is, also what waits in review"
    place = verb.project_params(project)
    verb.print_answer(verb.ask("csm_memory_context", **place), as_json, show_injection, nothing=nothing)
    warn_of_off_mark(place["project"], as_json)


def warn_of_off_mark(place: str, as_json: bool) -> None:
    """Warns that a directory is left out: sessions there are shown nothing."""
    mark = "" if as_json else foreign_files.off_mark(place or verb.resolve_project(None))
    if mark:
        render.show([warning(f"csmd is switched off there by {mark}: no session is captured or told anything")])


@VERBS.action(
    "recall", verb.argument("words", "[PROMPT]...", nargs=-1), verb.PROJECT,
    verb.option("--prompt", help="The same as PROMPT, in quotes."),
    verb.option("--file", metavar="PATH", help="A file that a prompt names, or that the session is at."),
)  # fmt: skip
def recall(words: tuple[str, ...], prompt: str | None, file: str | None, **options: Any) -> None:
    """Show what would be added to a prompt, or is known of a file. Several words need no quotes."""
    if [bool(words), prompt is not None, file is not None].count(True) != 1:
        raise click.UsageError("give PROMPT, --prompt TEXT or --file PATH, and only one of them")
    if file is None:
        prompt = " ".join(words) if prompt is None else prompt
        screen = partial(show_injection, nothing="Nothing would be added: no relevant memory.")
        verb.reply("csm_memory_recall", screen, {"prompt": prompt, **options})
    else:
        screen = partial(show_injection, nothing=f"nothing is known of {file}")
        verb.reply("csm_memory_file_recall", screen, {"file": file, **options})


def show_injection(value: dict[str, Any], *, nothing: str) -> Screen:
    """A brief or recall as the assistant would read it."""
    if value.get("paused"):
        yield "csmd is paused: no session is told anything until `csmd resume`"
        return
    yield from items(value["text"] or nothing)
    if value["text"]:
        yield dim(f"{amount(value['tokens'], 'token')}, {amount(len(value['items']), 'note')}", gap=True)
    yield from render.degraded(value["degraded"])


def items(text: str) -> Screen:
    """A text line by line, continuation lines of list items indented. `--json` has the exact text."""
    for line in text.splitlines():
        head = "- " if line.startswith("- ") else ""
        yield Line(line.removeprefix(head), head=head)


#: Event -> when something was shown, in words.
WHEN_TOLD: dict[str, str] = {name: rule.label for name, rule in EVENTS.items()}
CONTEXT = VERBS.add_group("context", "Show what a session is given, whole, and how full it is.")


@CONTEXT.tool("get", "csm_context_get", verb.ID)
@raw
def show_texts(value: dict[str, Any]) -> Screen:
    """Show the whole of what a session was told, or of a tool's output.

    ID is a memory's, a turn's or a receipt's. Of a tool's output csmd keeps beginning and end; the rest is read from
    the transcript, as long as the assistant keeps it. Written to a file or a pipe, such an output is the same byte
    for byte.
    """
    if value["items"] and "source" in value["items"][0]:
        return _show_output(value["items"][0])
    return _show_told(value)


def _show_output(item: dict[str, Any]) -> Screen:
    click.echo(f"{item['id']}  {item['said_at'][:10]}, from the {item['source']}", err=True)
    if item["left_out"]:
        click.echo(f"  ! {amount(item['left_out'], 'byte')} left out: no transcript has them any more", err=True)
    if sys.stdout.isatty():  # escape sequences must not reach a terminal
        click.echo(display.escape_unseen(item["text"]))
    else:
        click.echo(item["text"].encode(), nl=False)
    return []


def _show_told(value: dict[str, Any]) -> Screen:
    for number, item in enumerate(value["items"]):
        about = item["said_at"][:10] if item.get("said_at") else STATES.get(item["state"], item["state"])
        yield f"{chr(10) if number else ''}{item['id']}  {about}"
        if item["text"]:
            yield item["text"]


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
    "preview": "of the living state: csmd pipeline advisory",
}
#: Characters shown of an id that is not a memory's.
RECEIPT_ID = 11


@VERBS.action(
    "why", verb.optional("id", "[ID]"),
    verb.text("--session", "ID", "A session; the last one here that was told something."),
    verb.text("--receipt", "ID", "One injection."),
    verb.flag("--list", "listed", help="A line for each, and what was used."),
    verb.PROJECT_IN,
    verb.option("--limit", type=click.IntRange(1, 100), help="How many injections: 5, or 20 with --list."),
)  # fmt: skip
def why(id: str, session: str, receipt: str, listed: bool, limit: int | None, **options: Any) -> None:  # noqa: A002 - the tools' word
    """Show what a session was told, and why.

    With ID what that session was told, when and why a memory was told, or one receipt.
    """
    if len(list(filter(None, (id, session, receipt)))) > 1:
        raise click.UsageError("give one of ID, --session and --receipt")
    options["limit"] = limit or (20 if listed else 5)
    if listed:
        if receipt:
            raise click.UsageError("--receipt shows one injection, --list all")
        verb.reply("csm_receipts", show_receipts, {"session": session or id, **options})
        return
    verb.reply("csm_receipt_show", show_why, {"id": receipt or id, "session": session, **options})


@render.if_empty("injections", "no session here was told anything yet; `csmd brief` shows what the next one would be")
def show_why(value: dict[str, Any]) -> Screen:
    """The injections, the latest first, each with its memories and their reasons."""
    session = ""
    for injection in value["injections"]:
        if injection["session_id"] != session:
            session = injection["session_id"]
            yield Line(f"session {session}", gap=injection is not value["injections"][0])
        event = injection["event"]
        notes, tokens = amount(len(injection["items"]), "note"), amount(injection["tokens"], "token")
        yield bold(f"{WHEN_TOLD.get(event, event)}: {notes}, {tokens}", head=f"{when(injection['at'])}  ", gap=True)
        if injection["prompt"]:
            yield dim(f"you asked: {injection['prompt']}", indent=2, most=2)
        for item in injection["items"]:
            if item["state"] in STATES:
                yield dim(hint(item["state"], item["id"]), indent=2)
                continue
            yield Line(squeeze(item["text"]), indent=2, most=4)
            about = join(reason_words(item, event), _source(item), use_words(item), by="; ")
            yield dim(about, head=f"  {item['id']}  ")
        yield dim(f"receipt {injection['id']}", indent=2)
    yield dim(
        "A prompt is told what was decided on its matter, newest first, when it is likelier needed than "
        f"{value['floor']:g} (recall.floor). At a start what you said is told by the evidence that it lasts, and fades over "
        "sessions. What was left out is not kept. `csmd show ID` tells more of a memory.",
        gap=True,
    )


def hint(state: str, ident: str) -> str:
    """The line for an item that is not a memory, with the beginning of its id."""
    return STATES[state].format(id=ident[:RECEIPT_ID], short=display.shorten_session_id(ident))


def use_words(item: dict[str, Any]) -> str:
    """Whether the session used an item; "" if unknown."""
    if item["used"] is None:
        return ""
    marks = ", ".join(item.get("marks", ()))
    used = f"used: {USED_BY.get(item['used_by'], item['used_by'])}{f' ({cut(marks, 100)})' if marks else ''}"
    return used if item["used"] else "not used"


def reason_words(item: dict[str, Any], event: str) -> str:
    """Why an item was shown, in words."""
    if event == "tool_failure":
        return str(item["reason"])
    reason = item["reason"] if event == "prompt" else f"under {item['reason']!r}"
    return f"{reason}, score {item['score']:.2f}"


def _source(item: dict[str, Any]) -> str:
    """Where an item was said, by whom, and how sure it is; for an error how often it was seen."""
    if item["state"] == "error":
        return f"seen {amount(item['times'], 'time')}, last on {item['said_at'][:10]}"
    place = display.shorten_session_id(item["said_in"]) or "a terminal"
    origin = f"said by the {item['authority']} on {item['said_at'][:10]} in {place}"
    if item["state"] == "quoted":
        return f"{origin}, quoted"
    return join(
        origin,
        item["times"] > 1 and f"{item['times']} times in all",
        f"{percent(item['confidence'])} sure",
        item["pinned"] and "pinned",
        item["state"] == "superseded" and "superseded since",
        item["scope"] != "project" and item["origin"] != "inferred" and "holds everywhere",
    )


def show_receipts(value: dict[str, Any]) -> Screen:
    """The injections, the latest first, then the sum of a week."""
    if not value["receipts"]:
        yield "no session here was told anything; --all-projects looks everywhere"
    rows = [
        [when(row["at"]), display.shorten_session_id(row["session_id"]),
        {"session_start": "start"}.get(row["event"], row["event"])[:12],
         str(row["tokens"]), str(row["items"]), f"{row['used']} of {row['judged']}" if row["judged"] else "-",
         row["id"][:17]]
        for row in value["receipts"]
    ]  # fmt: skip
    yield from table("when|session|event|tokens|told|used|receipt", "<<<>><<", rows)
    if value["week"]["injections"]:
        yield dim(render.week_in_words(value["week"]), gap=True)
