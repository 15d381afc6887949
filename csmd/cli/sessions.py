"""Commands about sessions: conversations, checkpoints, goals, receipts."""

from __future__ import annotations

import re
import sys
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import click

from csmd import wire
from csmd.cli import memories, render, verb
from csmd.cli.memories import WHEN_TOLD, items
from csmd.cli.render import (
    Line,
    RawLine,
    Screen,
    block,
    bold,
    cells,
    dim,
    fitted,
    join,
    last_part,
    pair,
    pairs,
    percent,
    plain,
    raw,
    table,
)
from csmd.config import assistant_session
from csmd.errors import CsmdError
from csmd.paths import is_there
from csmd.text import display
from csmd.text.ages import when
from csmd.text.display import amount, cut, squeeze

#: The verbs of this module.
VERBS = verb.Verbs()

# --- conversations

#: Kind of a turn -> its name on screens.
ROLES = {
    "user": "you", "relayed": "relayed", "assistant": "assistant", "summary": "summary", "command": "command",
    "notification": "notice", "tool_call": "tool", "tool_result": "answer",
}  # fmt: skip
#: Kinds that are shown on one line each: tool traffic, and what the host wrote by itself.
FOLDED = ("tool_call", "tool_result", "command", "notification")
#: Columns that the other columns of the list take beside the session's id and the title.
LIST_NUMBERS, LIST_PROJECT = 41, 14
#: Characters of the longest name of a part of a digest.
LONGEST_PART = 24


SESSION = VERBS.add_group("session", "Past conversations, also those the assistant deleted.")


@SESSION.tool("list", "csm_session_list", *verb.PROJECTS, verb.limit(20))
@render.if_empty("sessions", "no session is known here; --all-projects looks everywhere")
def show_sessions(value: dict[str, Any], *, all_projects: bool) -> Screen:
    """List the sessions of this project, the latest first."""
    places = [fitted(last_part(row["project"]), LIST_PROJECT, end=True) for row in value["sessions"]]
    project_width = max(len("project"), *map(len, places)) + 2 if all_projects else 0
    idents = [display.short_session(row["id"]) for row in value["sessions"]]
    ident_width = max(len("session"), *map(len, idents))
    room = max(render.width() - LIST_NUMBERS - ident_width - project_width, 8)
    rows = [
        [ident, when(row["last_at"]), str(row["turns"]), row["transcript"], *[place] * all_projects,
         cut(row["about"] or "no title", room)]
        for ident, row, place in zip(idents, value["sessions"], places, strict=True)
    ]  # fmt: skip
    heads = f"session|last turn|turns|transcript|{'project|' * all_projects}about"
    return table(heads, "<<><<" + "<" * all_projects, rows, least=ident_width)


@VERBS.action(
    "today",
    verb.text("--date", "DAY", "YYYY-MM-DD or `yesterday`; today by default."),
    *verb.ALL_UNLESS_NAMED,
    verb.renamed_flag("--behind-walls", "--all", "walls", help="Those behind the walls of workspaces, too. Only in a terminal."),
)  # fmt: skip
def today(**options: Any) -> None:
    """Print what changed, was decided and is open, for a stand-up.

    As Markdown, from the sessions of one day. On a terminal what is open has the id by which `csmd done` closes it.
    """
    options["ids"] = sys.stdout.isatty()
    verb.reply("csm_today", show_today, options, scope="all", sends_by_person=True)


def show_today(value: dict[str, Any]) -> Screen:
    """A day: its heading, projects and entries."""
    if not value["projects"]:
        yield f"Nothing changed on {value['date']}, as far as csmd knows."
    elif sys.stdout.isatty():
        for line in value["text"].splitlines():
            yield Line(line.removeprefix("- "), head="- ") if line.startswith("- ") else line
        if any(entry["kind"] == "Open" for row in value["projects"] for entry in row["entries"]):
            yield dim("`csmd done ID` closes what is open; without ID it lists all", gap=True)
    else:  # whole lines, for a file or another program
        yield from map(RawLine, value["text"].splitlines())


@SESSION.tool("show", "csm_session_show", verb.ID)
def show_session(value: dict[str, Any]) -> Screen:
    """Show what is known of a session. The beginning of its ID suffices."""
    kinds = ", ".join(f"{count} {ROLES[kind]}" for kind, count in value["kinds"].items())
    told, tokens = (sum(row[name] for row in value["injections"]) for name in ("items", "tokens"))
    receipts = f"{amount(told, 'memory')} in {amount(len(value['injections']), 'injection')}, {amount(tokens, 'token')}"
    own = value["own"] and "csmd itself: a session file of its own"
    yield bold(value["about"] or ("purged: nothing of what was said is left" if value["purged"] else "no title"))
    yield from pairs([
        ("id", value["id"]),
        ("when", f"{when(value['started_at'])} to {when(value['last_at'])}"),
        ("project", value["project"]),
        ("began in", value["cwd"]),
        ("client", own or join(value["host"], value["version"], value["model"], by=" ")),
        ("turns", f"{value['turns']}: {kinds}" if kinds else "0"),
        ("file", join(f"transcript: {value['transcript']}", value["path"], by=" ")),
        ("told", f"{receipts}; `csmd why --session {display.short_session(value['id'])}`" if told else "nothing"),
        ("tokens", _usage(value["usage"])),
    ])  # fmt: skip
    for agent in value["agents"]:
        yield pair("agent", f"{agent['id'].rpartition('/')[2]}, {amount(agent['turns'], 'turn')}, {agent['model']}")
    yield from block("digest", _digest(value["digest"]))
    for title, head in (("memories", "{id}  "), ("statements", "{gate}, {authority}: ")):
        yield from block(title, [Line(squeeze(row["text"]), head=head.format_map(row), most=4) for row in value[title]])


def _usage(usage: dict[str, Any]) -> str:
    """The tokens that a session took, in words; "" where its transcript says nothing."""
    if not usage["messages"]:
        return ""
    tokens_in = usage["input"] + usage["cache_read"] + usage["cache_write"]
    agents = f"; sub-agents {usage['agents']['output']:,} out" if usage["agents"]["messages"] else ""
    return (
        f"{amount(usage['messages'], 'message')}: {usage['output']:,} out, {tokens_in:,} in "
        f"({usage['cache_read']:,} of them read from the cache, {usage['cache_write']:,} written to it){agents}; "
        f"csmd put {usage['csmd']['tokens']:,} before it"
    )


def _digest(text: str) -> Screen:
    """A digest, each part on lines of its own behind its name."""
    for line in text.splitlines():
        name, _, content = line.partition(": ")
        yield Line(line, most=5) if content and len(name) <= LONGEST_PART else dim(line)


#: Links between sessions and reasons of a digest, in words.
WAYS = {"builds_on": "builds on", "leads_to": "leads to"}
WHYS = {"compaction": "before a compaction", "end": "at its end", "settled": "as far as it has come"}


@SESSION.tool("digest", "csm_memory_distilled_view", verb.ID)
def show_digests(value: dict[str, Any]) -> Screen:
    """Show what a session comes to, and what it builds on."""
    for digest in value["digests"]:
        yield dim(f"version {digest['version']}, {WHYS[digest['why']]}, {when(digest['at'])}")
        yield from _digest(digest["text"])
        yield ""
    if not value["digests"]:
        yield "there is no digest of it yet: a session gets one when it is settled"
    for link in value["links"]:
        other = f"{display.short_session(link['session'])} ({when(link['at'])[:10]}, {link['kind']})"
        relation = "gap" if link["kind"] == "gap" else f"{WAYS[link['direction']]} {other}"
        yield f"{relation}: {link['reason']}"


@SESSION.tool("transcript", "csm_session_transcript", verb.ID)
def show_conversation(value: dict[str, Any]) -> Screen:
    """Show a conversation. Tool traffic is one line each; what a rewind left behind is marked."""
    yield bold(f"{value['about'] or 'no title'}, {value['id']}")
    yield dim(f"transcript: {value['transcript']}")
    columns = render.width()
    day = ""
    for turn in value["conversation"]:
        role, at = ROLES[turn["kind"]], when(turn["at"])
        if at[:10] != day:
            day = at[:10]
            yield dim(day, gap=True)
        if turn["kind"] in FOLDED:
            head, line = f"{at[11:]}  {role:<9} ", squeeze(join(turn["tool"], turn["text"], by=" "))
            yield dim(cut(line, max(columns - len(head), render.MIN_WIDTH)), head=head)
        else:
            yield bold(f"{at[11:]}  {role}{', rewound' * turn['rewound']}", gap=True)
            yield Line(turn["text"], indent=2)
    if not value["conversation"]:
        yield "nothing was said"


@SESSION.action(
    "export",
    verb.ID,
    verb.option("--to", metavar="FILE", default="-", help="Where to write it; `-`, the default, prints it."),
)
def export(to: str, as_json: bool, **options: Any) -> None:
    """Write a session for the assistant to resume."""
    answer = verb.ask("csm_session_export", **options, asking=verb.resolve_project(None))
    data = "".join(f"{line}\n" for line in answer["lines"]).encode()
    if to != "-":
        path = Path(to).expanduser().absolute()
        if is_there(path) or path.is_symlink():  # a transcript that is still there holds more than csmd kept
            raise CsmdError(f"{path} is there already and stays as it is", hint="name another file")
        verb.write(path, data, hint="name a file in a directory that you can write to")
        del answer["lines"]
        answer["path"] = str(path)
    if as_json:
        click.echo(wire.pretty(answer))
        return
    if to == "-":
        click.echo(display.visible(data.decode()) if sys.stdout.isatty() else data, nl=False)
    # On stderr, for the transcript itself may go to stdout.
    render.show(show_exported(answer, written=to != "-"), err=True)


@raw
def show_exported(value: dict[str, Any], *, written: bool) -> Screen:
    """How to resume what was exported."""
    if written:
        yield f"written to {value['path']}"
    if value["left_out"]:
        yield f"left out: {amount(value['left_out'], 'turn')} that a rewind had left behind"
    if value["transcript"] == "there":  # it holds more than csmd kept: nothing may be put in its place
        yield "the assistant still has this session; to resume it"
    else:
        yield "to resume it, put it below the assistant's directory (~/.claude), as"
        yield f"  {value['place']}"
        yield "and run"
    yield f"  {value['resume']}"


_WRITE = (
    verb.ID, verb.argument("text"), verb.text("--parent", "UUID", "The message it answers; the last one by default."),
    verb.project_of("Where a session begins that is new; here by default."),
)  # fmt: skip
SESSION.row(
    "write-user", "csm_session_write_user", "{uuid}",
    "Write as the user into a session of csmd's own. Typed in a terminal it counts as yours.", *_WRITE, sends_by_person=True,
)  # fmt: skip
SESSION.row(
    "write-assistant", "csm_session_write_assistant", "{uuid}", "Write as the assistant into a session of csmd's own.",
    *_WRITE,
)  # fmt: skip
SESSION.row(
    "write-summary", "csm_session_write_summary", "{uuid}", "Let a summary stand for messages of a session.", verb.ID,
    verb.argument("text"),
    verb.option(
        "--replaces", metavar="UUID", multiple=True, callback=lambda _context, _option, uuids: " ".join(uuids),
        help="What it stands for; everything so far by default.",
    ),
)  # fmt: skip
SESSION.row(
    "tombstone", "csm_session_tombstone", "withdrawn: {tombstoned}",
    "Withdraw a message. Its line stays; who loads the session does not see it.", verb.ID, verb.argument("uuid", "UUID"),
)  # fmt: skip
SESSION.row(
    "path", "csm_session_path", "{path}", "Print the path of a session of csmd's own.", verb.ID,
    verb.project_of("Where a session would begin that is new; here by default."),
)  # fmt: skip


@SESSION.tool("load", "csm_session_load", verb.ID, scope="none")
def show_messages(value: dict[str, Any]) -> Screen:
    """Show the messages of a session of csmd's own. What was withdrawn or summarised is not among them."""
    for message in value["messages"]:
        sender = f"{message['kind']}{' (typed)' if message['by_person'] else ''}"
        yield bold(f"{when(message['at'])}  {sender}  {message['uuid']}")
        yield Line(message["text"], indent=2)
    for name, reason in (("bad_lines", "could not be read"), ("tombstoned", "withdrawn"), ("replaced", "summarised")):
        if value[name]:
            yield dim(f"{value[name]} {reason}")


# Programs keep sessions of their own with these; people have no use for them.
for name in ("write-user", "write-assistant", "write-summary", "tombstone", "load", "path"):
    SESSION.commands[name].hidden = True

# --- what a session is given

#: Columns that a project's name takes at most.
NAME = 28
CONTEXT = VERBS.add_group("context", "Show what a session is given, whole, and how full it is.")
MEMDIR = VERBS.add_group("memdir", "Show the assistant's own memory.")
INSTRUCTIONS = VERBS.add_group("instructions", "Show the assistant's instruction files and own memory.")


@CONTEXT.tool("status", "csm_context_status", *verb.ALL_UNLESS_NAMED, scope="all")
def show_filled(value: dict[str, Any]) -> Screen:
    """Show how full the contexts of live sessions are."""
    names = [plain(last_part(live["project"])) or "-" for live in value["sessions"]]
    room = min(max(map(cells, names), default=0), NAME)
    for live, name in zip(value["sessions"], names, strict=True):
        used, window, shown = live["tokens"], max(live["window"], 1), fitted(name, room, end=True)
        percentage = f"{used * 100 // window:>3} %  {live['bracket']:<8}  {used:,} of {window:,}"
        padding = " " * (room - cells(shown))
        yield f"{display.short_session(live['session'])}  {shown}{padding}  {percentage if used else '  not known yet'}"
    if not value["sessions"]:
        yield "no session is live"
    yield ""
    for bracket in value["brackets"]:
        begins = f"from {bracket['from_percent']} %"
        added = f"a prompt gets up to {bracket['recall_tokens']} tokens, a compaction {bracket['restored_tokens']}"
        yield dim(f"{bracket['bracket']:<8}  {begins:<9}  {added}")


@CONTEXT.tool(
    "build", "csm_context_build", verb.PROJECT,
    verb.option(
        "--mode", type=click.Choice(["host", "seed"]), default="host", show_default=True,
        help="As the assistant loads them, or four scopes with @include lines.",
    ),
)  # fmt: skip
def show_context(value: dict[str, Any]) -> Screen:
    """Show the instructions that a session here is given."""
    # The text alone goes to standard output, so that it can be written to a file.
    nothing = "nothing: there is no instruction file for this directory"
    click.echo(value["text"] or nothing, err=not value["text"])
    if files := value["files"]:
        click.echo(f"\n{amount(len(files), 'file')}, about {amount(value['tokens'], 'token')}:", err=True)
    for file in files:
        click.echo(f"  {file['scope']:<8} {file['tokens']:>6}  {file['path']}", err=True)
    for problem in value["problems"]:
        click.echo(f"  ! {problem}", err=True)
    return []


@CONTEXT.tool("get", "csm_context_get", verb.ID)
@raw
def show_texts(value: dict[str, Any]) -> Screen:
    """Show the whole of what a session was told, or of a tool's output.

    ID is a memory's, a turn's or a receipt's. Of a tool's output csmd keeps beginning and end; the rest is read from the
    transcript, as long as the assistant keeps it. Written to a file or a pipe, such an output is the same byte for byte.
    """
    if value["items"] and "source" in value["items"][0]:
        return _show_output(value["items"][0])
    return _show_told(value)


def _show_output(item: dict[str, Any]) -> Screen:
    click.echo(f"{item['id']}  {item['said_at'][:10]}, from the {item['source']}", err=True)
    if item["left_out"]:
        click.echo(f"  ! {amount(item['left_out'], 'byte')} left out: no transcript has them any more", err=True)
    if sys.stdout.isatty():  # which is not given what steers it
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


@MEMDIR.tool("scan", "csm_memdir_scan", verb.PROJECT)
@raw
def show_memos(value: dict[str, Any]) -> Screen:
    """List the files of the assistant's own memory here."""
    yield squeeze(value["folder"])
    if not value["files"]:
        yield "nothing: the assistant has kept no memory here"
    for memo in value["files"]:
        yield f"\n{squeeze(memo['filename'])}  ({memo['type'] or '?'}, {render.size(memo['size'])}, {memo['modified'][:10]})"
        if about := memo["description"] or memo["name"]:
            yield f"  {about}"
        yield from (f"  ! {squeeze(problem)}" for problem in memo["problems"])


MEMDIR.row(
    "load", "csm_memdir_load", "{text}", "Show one of them without its head.", verb.argument("file"), verb.PROJECT
)
for name, command in (("show", "context build"), ("memory", "memdir scan"), ("file", "memdir load")):
    group, _, same = command.partition(" ")
    INSTRUCTIONS.add_command((CONTEXT if group == "context" else MEMDIR).commands[same], name)

# --- checkpoints

#: Columns that the list takes without the goal.
CHECKPOINT_NUMBERS = 55
#: Kind of a piece -> its heading, in the order shown.
PARTS = {
    "goal": "asked for", "plan": "plan", "correction": "corrected by the user", "decision": "decided",
    "failing": "failing", "edited": "files changed", "open": "open", "read": "files read",
    "output": "long outputs",
}  # fmt: skip
CHECKPOINT_WHYS = {"compaction": "compaction", "asked": "asked for"}


_SESSION = verb.text("--session", "ID", "A session; the one that asks, else the latest one here.")
_NOTE = verb.text("--note", "TEXT", "A line of yours to be told with it.")


@click.pass_context
def _create_by_default(context: click.Context, /, **options: Any) -> None:
    if context.invoked_subcommand is None:
        create(**options)


CHECKPOINT = VERBS.add_group(
    "checkpoint", "What sessions stood at before a compaction, or when asked.", invoke_without_command=True,
    callback=_create_by_default, params=[_SESSION, _NOTE, verb.JSON],
)  # fmt: skip


@CHECKPOINT.action("create", _SESSION, _NOTE)
def create(session: str, note: str, as_json: bool) -> None:
    """Keep a session's state as it is now."""
    session = session or assistant_session()[2]
    options = {"session": session, "note": note, "project": None, "as_json": as_json}
    verb.reply("csm_checkpoint_create", show_checkpoint, options)


@CHECKPOINT.tool(
    "list", "csm_checkpoint_list", *verb.PROJECTS, verb.text("--session", "ID", "Of one session only."), verb.limit(20)
)
@render.if_empty(
    "checkpoints", "no checkpoint is kept here; one is made before each compaction, or with `csmd checkpoint create`"
)
def show_checkpoints(value: dict[str, Any]) -> Screen:
    """List checkpoints, the latest first."""
    room = max(render.width() - CHECKPOINT_NUMBERS, 8)
    rows = [
        [row["id"], when(row["at"]), display.short_session(row["session_id"]), CHECKPOINT_WHYS[row["why"]],
         cut(squeeze(row["note"] or row["goal"]) or "-", room)]
        for row in value["checkpoints"]
    ]  # fmt: skip
    return table("checkpoint|at|session|why|about", "<<<<<", rows)


def show_checkpoint(value: dict[str, Any]) -> Screen:
    """One checkpoint: what it is of, then every piece of it under its name."""
    unfinished = "" if value["whole"] else "; what the transcript still brings of before is added"
    why = "before a compaction" if value["summary_uuid"] else "before a compaction that was announced"
    captured = f"{amount(value['tokens'], 'token')} of essentials, {amount(value['captured'], 'turn')} as they stood"
    yield bold(f"kept as {value['id']}" if value.get("made") else value["id"])
    yield from pairs([
        ("when", f"{when(value['at'])}, {'asked for' if value['why'] == 'asked' else why}{unfinished}"),
        ("session", f"{value['session_id']} in {value['cwd'] or 'a directory that nobody named'}"),
        ("note", value["note"]),
        ("holds", f"{captured} (--raw shows them)"),
    ])  # fmt: skip
    for kind, heading in PARTS.items():
        parts = [part for part in value["parts"] if part["kind"] == kind]
        if kind in ("edited", "read"):
            names = ", ".join(map(_with_count, parts))
            yield from block(heading, [Line(names, most=6)] if parts else [])
            continue
        texts = [f"{_with_count(part)}: {_error(value, part)}" if kind == "failing" else part["text"] for part in parts]
        heads = [f"- {part['state']:<7}" if part["state"] else "- " for part in parts]
        yield from block(heading, [Line(*pieces, most=4) for pieces in zip(texts, heads, strict=True)])


def _with_count(part: dict[str, Any]) -> str:
    return f"{part['text']} x{part['amount']}" if part["amount"] > 1 else str(part["text"])


def _error(value: dict[str, Any], part: dict[str, Any]) -> str:
    """The output of a failing command: the piece that follows it."""
    at = value["parts"].index(part) + 1
    following = value["parts"][at : at + 1]
    return str(following[0]["text"]) if following and following[0]["kind"] == "error" else "no word of why"


@CHECKPOINT.action("show", verb.ID, verb.flag("--raw", help="The turns that it captured, as they were stored."))
def checkpoint_show(raw: bool, **options: Any) -> None:
    """Show a checkpoint. The beginning of its ID suffices."""
    captured = partial(show_captured, to_person=sys.stdout.isatty())
    verb.reply("csm_checkpoint_show", captured if raw else show_checkpoint, {"raw": raw, **options})


def show_captured(value: dict[str, Any], *, to_person: bool) -> Screen:
    """The captured turns; to a person each under its name, else byte for byte, each ended by a line break."""
    for turn in value["raw"]:
        if to_person:
            yield bold(f"{when(turn['at'])}  {join(turn['kind'], turn['tool'], by=' ')}  {turn['uuid']}")
            yield Line(turn["text"], indent=2)
        else:
            click.echo(turn["text"].encode("utf-8", "surrogatepass"))  # every byte of it


@CHECKPOINT.tool(
    "restore", "csm_checkpoint_restore", verb.ID,
    verb.text("--session", "ID", "Tell it to this session; to the next one there by default."),
)  # fmt: skip
def show_restored(value: dict[str, Any]) -> Screen:
    """Print what a checkpoint holds, and tell it to the next session."""
    yield from items(value["text"])
    session = value["restored_for"]
    whom = f"session {display.short_session(session)} when it starts again" if session else "the next session here"
    yield dim(f"{amount(value['tokens'], 'token')}; told once, to {whom}", gap=True)


# --- goals

GOAL = VERBS.add_group("goal", "Project goals, shown to each session until done.")


@GOAL.action(
    "set", verb.argument("text"), verb.text("--session", "ID", "It is this session's, and told to no other."),
    verb.project_of("The project it is for; this directory's by default."),
)  # fmt: skip
def goal_set(session: str, **options: Any) -> None:
    """Declare a goal. Typed in a terminal it is yours; else your assistant's, and told in its own session only."""
    session = session or ("" if verb.is_interactive() else assistant_session()[2])
    verb.reply("csm_goal_set", show_goal, {"session": session, **options}, sends_by_person=True)


def show_goal(value: dict[str, Any]) -> Screen:
    """A goal that was declared, and who is told it."""
    if value["authority"] == "user":
        whom = "its session" if value["session_id"] else f"each session in {value['project']}"
        state = f"told to {whom} until `csmd done {value['id']}`"
    elif value["session_id"]:
        state = "the assistant's: told in its session as the assistant's"
    else:
        state = (
            "nobody typed this in a terminal, so it counts as the assistant's and no session is told it: type it in a "
            "terminal, or name its session with --session"
        )
    return [Line(value["text"], head=f"{value['id']}  "), dim(state)]


@GOAL.tool("list", "csm_goal_list", *verb.PROJECTS, verb.flag("--done", help="Those that are done, too."))
@render.if_empty("goals", "no goal is open here; `csmd goal set TEXT` declares one")
def show_goals(value: dict[str, Any]) -> Screen:
    """List goals, the latest first."""
    for goal in value["goals"]:
        owner = "yours" if goal["authority"] == "user" else "the assistant's"
        session = goal["session_id"] and f"session {display.short_session(goal['session_id'])}"
        finished = goal["done_at"] and f"done {when(goal['done_at'])[:10]}"
        yield Line(goal["text"], head=f"{goal['id']}  ", most=4)
        about = join(owner, f"since {when(goal['created_at'])[:10]}", session, finished)
        yield dim(about, indent=len(goal["id"]) + 2)


# --- what is open


@VERBS.action("done", verb.argument("what", "[ID|NUMBER]...", nargs=-1), *verb.PROJECTS)
def done(what: tuple[str, ...], project: str | None, all_projects: bool, as_json: bool) -> None:
    """Close a goal, a promise, a question or what was left to do.

    Without ID or NUMBER list what is open. `csmd undo` opens it again.
    """
    where = verb.project_params(project, all_projects)
    if what:
        closed = verb.ask("csm_open_done", id=" ".join(what), **where, by_person=verb.is_interactive())
        verb.print_answer(closed, as_json, show_closed)
    else:
        verb.print_answer(verb.ask("csm_open_list", **where), as_json, show_open, all_projects=all_projects)


@render.if_empty("open", "nothing is open here")
def show_open(value: dict[str, Any], *, all_projects: bool) -> Screen:
    """What is open, numbered."""
    widest = len(str(len(value["open"])))
    for row in value["open"]:
        yield Line(row["text"], head=f"{row['number']:>{widest}}  ", most=3)
        place = last_part(row["project"]) if all_projects else ""
        session = "" if row["kind"] in ("goal", "promise") else f"session {display.short_session(row['session_id'])}"
        yield dim(join(row["kind"], when(row["at"])[:10], session, place, row["id"], by="  "), indent=widest + 2)
    yield dim("`csmd done NUMBER` or ID closes one", gap=True)


def show_closed(value: dict[str, Any]) -> Screen:
    """What was closed, and how it is opened again."""
    for row in value["closed"]:
        yield Line(row["text"], head=f"done: {row['id']}  ", most=3)
    yield dim("`csmd undo` opens it again" if len(value["closed"]) == 1 else "`csmd undo ID` opens one again")


_GOAL_DONE = copy(VERBS.commands["done"])
_GOAL_DONE.hidden = True
GOAL.add_command(_GOAL_DONE, "done")


# --- receipts

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
    "preview": "of the living state: csmd pipeline advisory show",
}
#: Characters of the id of a thing that is no memory.
RECEIPT_ID = 11


@VERBS.action(
    "why", verb.optional("id", "[ID]"),
    verb.text("--session", "ID", "A session; the last one here that was told something."),
    verb.text("--receipt", "ID", "One injection."), verb.flag("--list", "listed", help="A line for each, and what was used."),
    verb.PROJECT_IN, verb.option("--limit", type=click.IntRange(1, 100), help="How many injections: 5, or 20 with --list."),
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
    """The line for something that is no memory; of a turn's or session's id its beginning is enough."""
    return STATES[state].format(id=ident[:RECEIPT_ID], short=display.short_session(ident))


def use_words(item: dict[str, Any]) -> str:
    """Whether the session used it, "" where that is not known."""
    if item["used"] is None:
        return ""
    marks = ", ".join(item.get("marks", ()))
    used = f"used: {USED_BY.get(item['used_by'], item['used_by'])}{f' ({cut(marks, 100)})' if marks else ''}"
    return used if item["used"] else "not used"


def reason_words(item: dict[str, Any], event: str) -> str:
    """Why it was told, in words."""
    if event == "tool_failure":
        return str(item["reason"])
    reason = item["reason"] if event == "prompt" else f"under {item['reason']!r}"
    return f"{reason}, score {item['score']:.2f}"


def _source(item: dict[str, Any]) -> str:
    """Where it was said, by whom, and how sure it is; of an error how often it was seen."""
    if item["state"] == "error":
        return f"seen {amount(item['times'], 'time')}, last on {item['said_at'][:10]}"
    said = f"said by the {item['authority']} on {item['said_at'][:10]} in {display.short_session(item['said_in']) or 'a terminal'}"
    if item["state"] == "quoted":
        return f"{said}, quoted"
    return join(
        said,
        item["times"] > 1 and f"{item['times']} times in all",
        f"{percent(item['confidence'])} sure",
        item["pinned"] and "pinned",
        item["state"] == "superseded" and "superseded since",
        item["scope"] != "project" and item["origin"] != "inferred" and "holds everywhere",
    )


@VERBS.action(
    "receipts",
    verb.optional("id", "[ID]"),
    verb.text("--session", "ID", "Only what this session was told."),
    *verb.PROJECTS,
    verb.limit(20),
)
def receipts(id: str, as_json: bool, **options: Any) -> None:  # noqa: A002 - the tools' word
    """List what sessions here were told, and what was used. With ID one of them in detail."""
    if id:
        verb.reply("csm_receipt_show", show_why, {"id": id, "as_json": as_json})
    else:
        verb.reply("csm_receipts", show_receipts, {"as_json": as_json, **options})


def show_receipts(value: dict[str, Any]) -> Screen:
    """The injections, the latest first, then the sum of a week."""
    if not value["receipts"]:
        yield "no session here was told anything; --all-projects looks everywhere"
    rows = [
        [when(row["at"]), display.short_session(row["session_id"]), {"session_start": "start"}.get(row["event"], row["event"])[:12],
         str(row["tokens"]), str(row["items"]), f"{row['used']} of {row['judged']}" if row["judged"] else "-", row["id"][:17]]
        for row in value["receipts"]
    ]  # fmt: skip
    yield from table("when|session|event|tokens|told|used|receipt", "<<<>><<", rows)
    if value["week"]["injections"]:
        yield dim(render.told_in_week(value["week"]), gap=True)


# --- whatever has an id

#: How an id begins -> the tool that knows it, and the screen. The id of a turn or a session may begin like any.
SHOWN = (
    (re.compile(r"m[0-9a-f]*"), "csm_memory_show", memories.show_memory),
    (re.compile(r"c[0-9a-f]*"), "csm_candidate_show", memories.show_candidate),
    (re.compile(r"x[0-9a-f]+"), "csm_error_list", memories.show_errors),
    (re.compile(r"r[0-9a-f]+(?:-start)?"), "csm_receipt_show", show_why),
    (re.compile(r"(?!cli:).+"), "csm_turn_show", memories.show_turn),
    (re.compile(r"(?!cli:).+"), "csm_session_show", show_session),
)


@VERBS.action("show", verb.ID)
def show(id: str, as_json: bool) -> None:  # noqa: A002 - the tools' word
    """Show anything in full by its ID: a memory, a turn, a session, a receipt, an error."""
    ident = id.strip()
    known = [(tool, screen) for form, tool, screen in SHOWN if form.fullmatch(ident)]
    for tool, screen in known:
        try:
            verb.reply(tool, screen, {"id": ident, "as_json": as_json})
            return
        except CsmdError as error:
            if "there is no" not in error.what and "nothing was injected" not in error.what:
                raise
    if ident.startswith("cli:"):
        raise CsmdError(f"{ident} was typed in a terminal, and no session has it", hint="csmd memories")
    hint = "`csmd memories`, `csmd search` and `csmd session list` show their ids"
    raise CsmdError(f"there is no memory and no turn, session or receipt {ident!r}", hint=hint)
