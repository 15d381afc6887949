"""Commands that show the notes csmd gives to sessions: brief, recall, why, context."""

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

VERBS = verb.Verbs()


@VERBS.action("brief", verb.PROJECT)
def brief(project: str | None, as_json: bool) -> None:
    """Show the notes for a session that starts here."""
    nothing = "nothing yet: `csmd memories` lists all memories, also those that wait in review"
    scope = verb.project_params(project)
    verb.print_answer(verb.ask("csm_memory_context", **scope), as_json, show_injection, nothing=nothing)
    warn_of_off_mark(scope["project"], as_json)


def warn_of_off_mark(directory: str, as_json: bool) -> None:
    """Warns that a directory is excluded: sessions there get no notes."""
    mark = "" if as_json else foreign_files.find_off_mark(directory or verb.resolve_project(None))
    if mark:
        render.show([warning(f"csmd is switched off there by {mark}: no capture, and no notes for sessions")])


@VERBS.action(
    "recall", verb.argument("words", "[PROMPT]...", nargs=-1), verb.PROJECT,
    verb.option("--prompt", help="The same as PROMPT, in quotes."),
    verb.option("--file", metavar="PATH", help="A file that a prompt names, or the current file of the session."),
)  # fmt: skip
def recall(words: tuple[str, ...], prompt: str | None, file: str | None, **options: Any) -> None:
    """Show the notes for a prompt, or about a file. Several words need no quotes."""
    if [bool(words), prompt is not None, file is not None].count(True) != 1:
        raise click.UsageError("give exactly one of PROMPT, --prompt TEXT and --file PATH")
    if file is None:
        prompt = " ".join(words) if prompt is None else prompt
        screen = partial(show_injection, nothing="Nothing would be added: no relevant memory.")
        verb.reply("csm_memory_recall", screen, {"prompt": prompt, **options})
    else:
        screen = partial(show_injection, nothing=f"no notes about {file}")
        verb.reply("csm_memory_file_recall", screen, {"file": file, **options})


def show_injection(value: dict[str, Any], *, nothing: str) -> Screen:
    """Shows a brief or recall as the assistant would read it."""
    if value.get("paused"):
        yield "csmd is paused: sessions get no notes until `csmd resume`"
        return
    yield from show_lines(value["text"] or nothing)
    if value["text"]:
        yield dim(f"{amount(value['tokens'], 'token')}, {amount(len(value['items']), 'note')}", gap=True)
    yield from render.degraded(value["degraded"])


def show_lines(text: str) -> Screen:
    """Shows a text line by line, continuation lines of list items indented. `--json` has the exact text."""
    for line in text.splitlines():
        head = "- " if line.startswith("- ") else ""
        yield Line(line.removeprefix(head), head=head)


#: Event -> when its notes were shown, in words.
EVENT_LABELS: dict[str, str] = {name: rule.when for name, rule in EVENTS.items()}
CONTEXT = VERBS.add_group("context", "Show the full text given to a session, and how full its context is.")


@CONTEXT.tool("get", "csm_context_get", verb.ID)
@raw
def show_texts(value: dict[str, Any]) -> Screen:
    """Show the full text of a note or of a tool's output.

    ID is a memory's, a turn's or a receipt's. csmd stores the beginning and the end of a tool's output; the rest is
    read from the transcript, as long as the assistant keeps it. Written to a file or a pipe, the output is unchanged
    byte for byte.
    """
    if value["items"] and "source" in value["items"][0]:
        return _show_output(value["items"][0])
    return _show_items(value)


def _show_output(item: dict[str, Any]) -> Screen:
    click.echo(f"{item['id']}  {item['said_at'][:10]}, from the {item['source']}", err=True)
    if item["left_out"]:
        click.echo(f"  ! {amount(item['left_out'], 'byte')} left out: the transcript is gone", err=True)
    if sys.stdout.isatty():  # escape sequences must not reach a terminal
        click.echo(display.escape_unseen(item["text"]))
    else:
        click.echo(item["text"].encode(), nl=False)
    return []


def _show_items(value: dict[str, Any]) -> Screen:
    for number, item in enumerate(value["items"]):
        label = item["said_at"][:10] if item.get("said_at") else STATES.get(item["state"], item["state"])
        yield f"{chr(10) if number else ''}{item['id']}  {label}"
        if item["text"]:
            yield item["text"]


USED_BY = {
    "command": "the assistant ran its command", "path": "the assistant named its file",
    "name": "the assistant used its name for something", "words": "the assistant used its words",
}  # fmt: skip
#: Reason of an item whose score is its relevance to the prompt (csmd.recall.prompt).
RELEVANT = "bears on the prompt"
#: State of an item that is not a memory -> its line.
STATES = {
    "checkpoint": "the state of the session: csmd checkpoint show {id}",
    "goal": "a goal: csmd goal list ({id})",
    "gone": "a memory that was forgotten since ({id})",
    "hidden": "a memory behind a wall: ask from its directory ({id})",
    "session": "the digest of a session: csmd session digest {short}",
    "preview": "of the living state: csmd pipeline advisory",
}
#: Characters shown of a receipt's id in a list, which fits 80 columns: the time to some microseconds.
RECEIPT_CHARS = 13
#: Characters shown of an id that is not a memory's.
ID_CHARS = 11


@VERBS.action(
    "why", verb.optional("id", "[ID]"),
    verb.text("--session", "ID", "A session; by default the last one here that got notes."),
    verb.text("--receipt", "ID", "One injection."),
    verb.flag("--list", "as_list", help="One line for each injection, with the number of used notes."),
    verb.PROJECT_IN,
    verb.option("--limit", type=click.IntRange(1, 100), help="Number of injections: 5, or 20 with --list."),
)  # fmt: skip
def why(id: str, session: str, receipt: str, as_list: bool, limit: int | None, **options: Any) -> None:  # noqa: A002 - the tools' word
    """Show the notes that a session got, and why.

    ID is a session's, a memory's or a receipt's.
    """
    if len(list(filter(None, (id, session, receipt)))) > 1:
        raise click.UsageError("give one of ID, --session and --receipt")
    if as_list and receipt:
        raise click.UsageError("--receipt shows one injection, --list all")
    options["limit"] = limit or (20 if as_list else 5)
    if as_list:
        verb.reply("csm_receipts", show_receipts, {"session": session or id, **options})
    else:
        verb.reply("csm_receipt_show", show_why, {"id": receipt or id, "session": session, **options})


@render.if_empty("injections", "no session here got notes yet; `csmd brief` shows those for the next one")
def show_why(value: dict[str, Any]) -> Screen:
    """Shows the injections, the latest first, each with its memories and their reasons."""
    session = ""
    for injection in value["injections"]:
        if injection["session_id"] != session:
            session = injection["session_id"]
            yield Line(f"session {session}", gap=injection is not value["injections"][0])
        event = injection["event"]
        notes, tokens = amount(len(injection["items"]), "note"), amount(injection["tokens"], "token")
        yield bold(f"{EVENT_LABELS.get(event, event)}: {notes}, {tokens}", head=f"{when(injection['at'])}  ", gap=True)
        if injection["prompt"]:
            yield dim(f"you asked: {injection['prompt']}", indent=2, max_lines=2)
        for item in injection["items"]:
            if item["state"] in STATES:
                yield dim(describe_state(item["state"], item["id"]), indent=2)
                continue
            yield Line(squeeze(item["text"]), indent=2, max_lines=4)
            details = join(describe_reason(item, event), _describe_source(item), describe_use(item), by="; ")
            yield dim(details, head=f"  {item['id']}  ")
        yield dim(f"receipt {injection['id']}", indent=2)
    yield dim(
        f"A prompt gets the statements on its subject with a relevance of at least {value['floor']:g} (recall.floor), newest "
        "first. A start gets your statements by the evidence that they last; they fade over sessions. Notes that were "
        "left out are not recorded. `csmd show ID` shows more of a memory.",
        gap=True,
    )


def describe_state(state: str, item_id: str) -> str:
    """Returns the line for an item that is not a memory, with the beginning of its id."""
    return STATES[state].format(id=item_id[:ID_CHARS], short=display.shorten_session_id(item_id))


def describe_use(item: dict[str, Any]) -> str:
    """Describes whether the session used an item; "" if unknown."""
    if item["used"] is None:
        return ""
    if not item["used"]:
        return "not used"
    marks = ", ".join(item.get("marks", ()))
    return f"used: {USED_BY.get(item['used_by'], item['used_by'])}{f' ({cut(marks, 100)})' if marks else ''}"


def describe_reason(item: dict[str, Any], event: str) -> str:
    """Describes why an item was shown."""
    if event == "tool_failure":
        return str(item["reason"])
    if event == "prompt":
        return f"{item['reason']}, relevance {item['score']:.2f}" if item["reason"] == RELEVANT else str(item["reason"])
    return f"under {item['reason']!r}, score {item['score']:.2f}"


def _describe_source(item: dict[str, Any]) -> str:
    """Describes the speaker, the day and the confidence of an item; of an error the number of times it was seen."""
    if item["state"] == "error":
        return f"seen {amount(item['times'], 'time')}, last on {item['said_at'][:10]}"
    session = display.shorten_session_id(item["said_in"]) or "a terminal"
    origin = f"said by the {item['authority']} on {item['said_at'][:10]} in {session}"
    if item["state"] == "quoted":
        return f"{origin}, quoted"
    return join(
        origin, item["times"] > 1 and f"{item['times']} times in all", f"{percent(item['confidence'])} sure",
        item["pinned"] and "pinned", item["state"] == "superseded" and "superseded since",
        item["scope"] != "project" and item["origin"] != "inferred" and "applies everywhere",
    )  # fmt: skip


def show_receipts(value: dict[str, Any]) -> Screen:
    """Shows the injections, the latest first, then the sum of a week."""
    if not value["receipts"]:
        yield "no session here got notes; --all-projects looks everywhere"
    rows = [
        [when(row["at"]), display.shorten_session_id(row["session_id"]), row["event"].removeprefix("session_")[:12],
         str(row["tokens"]), str(row["items"]), f"{row['used']} of {row['judged']}" if row["judged"] else "-",
         row["id"][:RECEIPT_CHARS]]
        for row in value["receipts"]
    ]  # fmt: skip
    yield from table("when|session|event|tokens|told|used|receipt", "<<<>><<", rows, least=len("2026-01-31 10:00"))
    if value["week"]["injections"]:
        yield dim(render.describe_week(value["week"]), gap=True)
