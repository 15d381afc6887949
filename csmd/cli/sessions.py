"""Commands about sessions: conversations, checkpoints, goals, receipts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.memories import EVENTS, items
from csmd.cli.render import Line, Screen, block, bold, cells, dim, fitted, pair, pairs, percent, plain, table, when
from csmd.config import assistant_session
from csmd.errors import CsmdError
from csmd.text.display import amount, cut, squeeze

# --- conversations

#: How the kinds of turns are called beside what they hold.
ROLES = {
    "user": "you", "relayed": "relayed", "assistant": "assistant", "summary": "summary", "command": "command",
    "notification": "notice", "tool_call": "tool", "tool_result": "answer",
}  # fmt: skip
#: Tool traffic, and what the host said by itself: one line each.
FOLDED = ("tool_call", "tool_result", "command", "notification")
#: Columns that the other columns of the list take beside the title.
LIST_NUMBERS, LIST_PROJECT = 49, 14
#: Characters of a session's id.
SHORT = 8
#: Characters of the longest name of a part of a digest.
LONGEST_PART = 24


@verb.command("list", *verb.PROJECTS, verb.limit(20))
def list_sessions(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List the sessions of this project, the latest first."""
    found = verb.ask("csm_session_list", **verb.looking(project, all_projects), limit=limit)
    verb.out(found, as_json, show_sessions, by_project=all_projects)


def show_sessions(value: dict[str, Any], *, by_project: bool) -> Screen:
    """A list of sessions: when, how long, what about, and whether the transcript is still there."""
    if not value["sessions"]:
        yield "no session is known here; --all-projects looks everywhere"
        return
    places = [fitted(row["project"].rpartition("/")[2], LIST_PROJECT, end=True) for row in value["sessions"]]
    beside = max(len("project"), *map(len, places)) + 2 if by_project else 0
    room = max(render.width() - LIST_NUMBERS - beside, 8)
    rows = [
        [row["id"][:SHORT], when(row["last_at"]), str(row["turns"]), row["transcript"], *[place] * by_project,
         cut(row["about"] or "no title", room)]
        for row, place in zip(value["sessions"], places, strict=True)
    ]  # fmt: skip
    heads = f"session|last turn|turns|transcript|{'project|' * by_project}about"
    yield from table(heads, "<<><<" + "<" * by_project, rows)


def show_session(value: dict[str, Any]) -> Screen:
    """What is known of one session."""
    yield bold(value["about"] or "no title")
    kinds = ", ".join(f"{count} {ROLES[kind]}" for kind, count in value["kinds"].items())
    told = sum(row["items"] for row in value["injections"])
    tokens = sum(row["tokens"] for row in value["injections"])
    client = " ".join(filter(None, (value["host"], value["version"], value["model"])))
    yield from pairs([
        ("id", value["id"]),
        ("when", f"{when(value['started_at'])} to {when(value['last_at'])}"),
        ("project", value["project"]),
        ("began in", value["cwd"]),
        ("client", "csmd itself: a session file of its own" if value["own"] else client),
        ("turns", f"{value['turns']}: {kinds}" if kinds else "0"),
        ("file", f"transcript: {value['transcript']}{' ' + value['path'] if value['path'] else ''}"),
        ("told", f"{amount(told, 'memory')} in {amount(len(value['injections']), 'injection')}, "
         f"{amount(tokens, 'token')}; `csmd why --session {value['id'][:SHORT]}`" if told else "nothing"),
        ("tokens", _usage(value["usage"])),
    ])  # fmt: skip
    for agent in value["agents"]:
        yield pair("agent", f"{agent['id'].rpartition('/')[2]}, {amount(agent['turns'], 'turn')}, {agent['model']}")
    yield from block("digest", _digest(value["digest"]))
    memories = [Line(squeeze(row["text"]), head=f"{row['id']}  ", most=4) for row in value["memories"]]
    yield from block("memories", memories)
    statements = [
        Line(squeeze(row["text"]), head=f"{row['gate']}, {row['authority']}: ", most=4) for row in value["statements"]
    ]
    yield from block("statements", statements)


def _usage(usage: dict[str, Any]) -> str:
    """What a session took in words; "" where its transcript says nothing."""
    if not usage["messages"]:
        return ""
    given = usage["input"] + usage["cache_read"] + usage["cache_write"]
    agents = usage["agents"]
    own = f"; sub-agents {agents['output']:,} out" if agents["messages"] else ""
    return (
        f"{amount(usage['messages'], 'message')}: {usage['output']:,} out, {given:,} in "
        f"({usage['cache_read']:,} of them read from the cache, {usage['cache_write']:,} written to it){own}; "
        f"csmd put {usage['csmd']['tokens']:,} before it"
    )


def _digest(text: str) -> Screen:
    """A digest, each part on lines of its own behind its name."""
    for line in text.splitlines():
        name, _, content = line.partition(": ")
        yield Line(line, most=5) if content and len(name) <= LONGEST_PART else dim(line)


#: How the ways in which sessions hang together are called, and the reasons of a digest.
WAYS = {"builds_on": "builds on", "leads_to": "leads to"}
WHYS = {"compaction": "before a compaction", "end": "at its end", "settled": "as far as it has come"}


def show_digests(value: dict[str, Any]) -> Screen:
    """Every version of a session's digest, and what hangs together with it."""
    for digest in value["digests"]:
        yield dim(f"version {digest['version']}, {WHYS[digest['why']]}, {when(digest['at'])}")
        yield from _digest(digest["text"])
        yield ""
    if not value["digests"]:
        yield "there is no digest of it yet: a session gets one when it is settled"
    for link in value["links"]:
        session = f"{link['session'][:SHORT]} ({when(link['at'])[:10]}, {link['kind']})"
        relation = "gap" if link["kind"] == "gap" else f"{WAYS[link['direction']]} {session}"
        yield f"{relation}: {link['reason']}"


def show_conversation(value: dict[str, Any]) -> Screen:
    """A conversation as it was held: who, when, what."""
    yield bold(f"{value['about'] or 'no title'}, {value['id']}")
    yield dim(f"transcript: {value['transcript']}")
    columns = render.width()
    day = ""
    for turn in value["conversation"]:
        at = when(turn["at"])
        if at[:10] != day:
            day = at[:10]
            yield ""
            yield dim(day)
        role, hour = ROLES[turn["kind"]], at[11:]
        if turn["kind"] in FOLDED:
            line = squeeze(f"{turn['tool']} {turn['text']}" if turn["tool"] else turn["text"])
            head = f"{hour}  {role:<9} "
            yield dim(cut(line, max(columns - len(head), render.MIN_WIDTH)), head=head)
        else:
            yield ""
            yield bold(f"{hour}  {role}")
            yield Line(turn["text"], indent=2)
    if not value["conversation"]:
        yield "nothing was said"


@verb.command(
    "export", verb.ID,
    verb.option("--to", metavar="FILE", default="-", help="Where to write it; `-`, the default, prints it."),
)  # fmt: skip
def export(id: str, to: str, as_json: bool) -> None:  # noqa: A002 - the tools' word
    """Write a session for the assistant to resume."""
    found = verb.ask("csm_session_export", id=id, asking=verb.here(None))
    data = "".join(f"{line}\n" for line in found["lines"]).encode()
    if to != "-":
        path = Path(to).expanduser().absolute()
        if path.exists() or path.is_symlink():  # a transcript that is still there holds more than csmd kept
            raise CsmdError(f"{path} is there already and stays as it is", hint="name another file")
        verb.write(path, data, hint="name a file in a directory that you can write to")
        found = {key: value for key, value in found.items() if key != "lines"} | {"path": str(path)}
    if as_json:
        click.echo(wire.pretty(found))
        return
    if to == "-":
        click.echo(data, nl=False)
    # On stderr, for the transcript itself may go to stdout.
    render.show(show_exported(found, written=to != "-"), err=True)


@render.raw
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


_PLACE = verb.project_of("Where a session begins that is new; here by default.")
_PARENT = verb.option("--parent", metavar="UUID", default="", help="The message it answers; the last one by default.")


@render.raw
def show_written(value: dict[str, Any]) -> Screen:
    """The name of a message that was written, for who writes the next one."""
    yield value["uuid"]


@render.raw
def show_withdrawn(value: dict[str, Any]) -> Screen:
    """Which message is withdrawn."""
    yield f"withdrawn: {value['tombstoned']}"


@render.raw
def show_path(value: dict[str, Any]) -> Screen:
    """The path alone."""
    yield value["path"]


@render.raw
def show_text(value: dict[str, Any]) -> Screen:
    """The text alone."""
    yield value["text"]


def show_messages(value: dict[str, Any]) -> Screen:
    """The messages of a session file, and what of it is not among them."""
    for message in value["messages"]:
        sender = f"{message['kind']}{' (typed)' if message['by_person'] else ''}"
        yield bold(f"{when(message['at'])}  {sender}  {message['uuid']}")
        yield Line(message["text"], indent=2)
    for name, reason in (("bad_lines", "could not be read"), ("tombstoned", "withdrawn"), ("replaced", "summarised")):
        if value[name]:
            yield dim(f"{value[name]} {reason}")


session = verb.group(
    "session", "Past conversations, also those the assistant deleted.",
    list_sessions,
    verb.of_tool("show", "csm_session_show", show_session, "Show what is known of a session. The beginning of its ID suffices.", verb.ID),
    verb.of_tool("transcript", "csm_session_transcript", show_conversation, "Show a conversation. Tool traffic is one line each.", verb.ID),
    verb.of_tool("digest", "csm_memory_distilled_view", show_digests, "Show what a session comes to, and what it builds on.", verb.ID),
    export,
    verb.of_tool(
        "write-user", "csm_session_write_user", show_written,
        "Write as the user into a session of csmd's own. Typed in a terminal it counts as yours.",
        verb.ID, verb.argument("text"), _PARENT, _PLACE, by_person=True,
    ),
    verb.of_tool(
        "write-assistant", "csm_session_write_assistant", show_written,
        "Write as the assistant into a session of csmd's own.", verb.ID, verb.argument("text"), _PARENT, _PLACE,
    ),
    verb.of_tool(
        "write-summary", "csm_session_write_summary", show_written, "Let a summary stand for messages of a session.",
        verb.ID, verb.argument("text"),
        verb.option(
            "--replaces", metavar="UUID", multiple=True, callback=lambda _context, _option, uuids: " ".join(uuids),
            help="What it stands for; everything so far by default.",
        ),
    ),
    verb.of_tool(
        "tombstone", "csm_session_tombstone", show_withdrawn,
        "Withdraw a message. Its line stays; who loads the session does not see it.", verb.ID, verb.argument("uuid", "UUID"),
    ),
    verb.of_tool(
        "load", "csm_session_load", show_messages,
        "Show the messages of a session of csmd's own. What was withdrawn or summarised is not among them.",
        verb.ID, anywhere=True,
    ),
    verb.of_tool(
        "path", "csm_session_path", show_path, "Print the path of a session of csmd's own.",
        verb.ID, verb.project_of("Where a session would begin that is new; here by default."),
    ),
)  # fmt: skip

# --- what a session is given

#: Columns that a project's name takes at most.
NAME = 28


def show_filled(value: dict[str, Any]) -> Screen:
    """The live sessions, one a line, then what csmd adds in each bracket."""
    names = [plain(live["project"].rstrip("/").rpartition("/")[2]) or "-" for live in value["sessions"]]
    room = min(max(map(cells, names), default=0), NAME)
    for live, name in zip(value["sessions"], names, strict=True):
        used, window = live["tokens"], max(live["window"], 1)
        full = (
            f"{used * 100 // window:>3} %  {live['bracket']:<8}  {used:,} of {window:,}" if used else "  not known yet"
        )
        shown = fitted(name, room, end=True)
        yield f"{live['session'][:SHORT]:<8}  {shown}{' ' * (room - cells(shown))}  {full}"
    if not value["sessions"]:
        yield "no session is live"
    yield ""
    for bracket in value["brackets"]:
        begins = f"from {bracket['from_percent']} %"
        added = f"a prompt gets up to {bracket['recall_tokens']} tokens, a compaction {bracket['restored_tokens']}"
        yield dim(f"{bracket['bracket']:<8}  {begins:<9}  {added}")


def show_context(value: dict[str, Any]) -> Screen:
    """The instructions, then on standard error which files they are made of: the text alone can be put into a file."""
    if value["text"]:
        click.echo(value["text"])
    else:
        click.echo("nothing: there is no instruction file for this directory", err=True)
    if files := value["files"]:
        click.echo(f"\n{amount(len(files), 'file')}, about {amount(value['tokens'], 'token')}:", err=True)
    for file in files:
        click.echo(f"  {file['scope']:<8} {file['tokens']:>6}  {file['path']}", err=True)
    for problem in value["problems"]:
        click.echo(f"  ! {problem}", err=True)
    yield from ()


@render.raw
def show_texts(value: dict[str, Any]) -> Screen:
    """Texts as they are kept, each behind its id."""
    for number, item in enumerate(value["items"]):
        about = item["said_at"][:10] if item.get("said_at") else STATES.get(item["state"], item["state"])
        yield f"{chr(10) if number else ''}{item['id']}  {about}"
        if item["text"]:
            yield item["text"]


@render.raw
def show_memos(value: dict[str, Any]) -> Screen:
    """The files of a memory directory, two lines each."""
    yield value["folder"]
    if not value["files"]:
        yield "nothing: the assistant has kept no memory here"
    for memo in value["files"]:
        yield f"\n{memo['filename']}  ({memo['type'] or '?'}, {render.size(memo['size'])}, {memo['modified'][:10]})"
        if about := memo["description"] or memo["name"]:
            yield f"  {about}"
        yield from (f"  ! {problem}" for problem in memo["problems"])


context = verb.group(
    "context", "Show what a session is given, whole, and how full it is.",
    verb.of_tool(
        "status", "csm_context_status", show_filled, "Show how full the contexts of live sessions are.",
        *verb.PROJECTS, wide=True,
    ),
    verb.of_tool(
        "build", "csm_context_build", show_context, "Show the instructions that a session here is given.", verb.PROJECT,
        verb.option(
            "--mode", type=click.Choice(["host", "seed"]), default="host", show_default=True,
            help="As the assistant loads them, or four scopes with @include lines.",
        ),
    ),
    verb.of_tool(
        "get", "csm_context_get", show_texts,
        "Show the whole of what a session was told. ID is a memory's, a turn's or a receipt's.", verb.ID,
    ),
)  # fmt: skip
memdir = verb.group(
    "memdir", "Show the assistant's own memory.",
    verb.of_tool("scan", "csm_memdir_scan", show_memos, "List the files of the assistant's own memory here.", verb.PROJECT),
    verb.of_tool("load", "csm_memdir_load", show_text, "Show one of them without its head.", verb.argument("file"), verb.PROJECT),
)  # fmt: skip

# --- checkpoints

#: Columns that the other columns of the list take beside the goal.
BESIDE = 55
#: The kinds of pieces in the order in which they are shown, and what they are called.
PARTS = {
    "goal": "asked for", "plan": "plan", "correction": "corrected by the user", "decision": "decided",
    "failing": "failing", "edited": "files changed", "open": "open", "read": "files read",
}  # fmt: skip
CHECKPOINT_WHYS = {"compaction": "compaction", "asked": "asked for"}


def show_checkpoints(value: dict[str, Any]) -> Screen:
    """A list of checkpoints: when, of which session, why, and what the session was for."""
    if not value["checkpoints"]:
        yield "no checkpoint is kept here; one is made before each compaction, or with `csmd checkpoint create`"
        return
    room = max(render.width() - BESIDE, 8)
    rows = [
        [row["id"], when(row["at"]), row["session_id"][:SHORT], CHECKPOINT_WHYS[row["why"]],
         cut(squeeze(row["note"] or row["goal"]) or "-", room)]
        for row in value["checkpoints"]
    ]  # fmt: skip
    yield from table("checkpoint|at|session|why|about", "<<<<<", rows)


def show_checkpoint(value: dict[str, Any]) -> Screen:
    """One checkpoint: what it is of, then every piece of it under its name."""
    yield bold(f"kept as {value['id']}" if value.get("made") else value["id"])
    unfinished = "" if value["whole"] else "; what the transcript still brings of before is added"
    why = "before a compaction" if value["summary_uuid"] else "before a compaction that was announced"
    kept = f"{amount(value['tokens'], 'token')} of essentials, {amount(value['captured'], 'turn')} as they stood"
    yield from pairs([
        ("when", f"{when(value['at'])}, {'asked for' if value['why'] == 'asked' else why}{unfinished}"),
        ("session", f"{value['session_id']} in {value['cwd'] or 'a directory that nobody named'}"),
        ("note", value["note"]),
        ("holds", f"{kept} (--raw shows them)"),
    ])  # fmt: skip
    for kind, heading in PARTS.items():
        parts = [part for part in value["parts"] if part["kind"] == kind]
        if kind in ("edited", "read"):
            names = ", ".join(map(_times, parts))
            yield from block(heading, [Line(names, most=6)] if parts else [])
            continue
        texts = [f"{_times(part)}: {_error(value, part)}" if kind == "failing" else part["text"] for part in parts]
        heads = [f"- {part['state']:<7}" if part["state"] else "- " for part in parts]
        yield from block(heading, [Line(*pieces, most=4) for pieces in zip(texts, heads, strict=True)])


def _times(part: dict[str, Any]) -> str:
    return f"{part['text']} x{part['amount']}" if part["amount"] > 1 else str(part["text"])


def _error(value: dict[str, Any], part: dict[str, Any]) -> str:
    """What a failing command said: the piece behind it."""
    at = value["parts"].index(part) + 1
    behind = value["parts"][at] if at < len(value["parts"]) else None
    return str(behind["text"]) if behind is not None and behind["kind"] == "error" else "no word of why"


def show_captured(value: dict[str, Any], *, to_person: bool) -> Screen:
    """The captured turns; to a person each under its name, else byte for byte, each ended by a line break."""
    for turn in value["raw"]:
        if to_person:
            who = f"{turn['kind']} {turn['tool']}".strip()
            yield bold(f"{when(turn['at'])}  {who}  {turn['uuid']}")
            yield Line(turn["text"], indent=2)
        else:
            click.echo(turn["text"], color=True)  # every byte of it


def show_restored(value: dict[str, Any]) -> Screen:
    """The essentials as the next session is told them, and which session that is."""
    yield from items(value["text"])
    session = value["restored_for"]
    yield ""
    whom = f"session {session[:SHORT]} when it starts again" if session else "the next session here"
    yield dim(f"{amount(value['tokens'], 'token')}; told once, to {whom}")


_SESSION = verb.option(
    "--session", metavar="ID", default="", help="A session; the one that asks, else the latest one here."
)
_NOTE = verb.option("--note", metavar="TEXT", default="", help="A line of yours to be told with it.")


def _create(session: str, note: str, as_json: bool) -> None:
    asks = session or assistant_session()[1]
    verb.out(verb.ask("csm_checkpoint_create", session=asks, **verb.looking(None), note=note), as_json, show_checkpoint)


@verb.command("show", verb.ID, verb.flag("--raw", help="The turns that it captured, as they were stored."))
def checkpoint_show(id: str, raw: bool, as_json: bool) -> None:  # noqa: A002 - the tools' word
    """Show a checkpoint. The beginning of its ID suffices."""
    found = verb.ask("csm_checkpoint_show", id=id, asking=verb.here(None), raw=raw)
    if raw:
        verb.out(found, as_json, show_captured, to_person=sys.stdout.isatty())
    else:
        verb.out(found, as_json, show_checkpoint)


@click.group(
    invoke_without_command=True,
    params=[_SESSION, _NOTE, verb.JSON],
    commands=[
        click.Command(
            "create", callback=_create, params=[_SESSION, _NOTE, verb.JSON], help="Keep what a session stands at, now."
        ),
        verb.of_tool(
            "list", "csm_checkpoint_list", show_checkpoints, "List checkpoints, the latest first.",
            *verb.PROJECTS, verb.option("--session", metavar="ID", default="", help="Of one session only."), verb.limit(20),
        ),
        checkpoint_show,
        verb.of_tool(
            "restore", "csm_checkpoint_restore", show_restored,
            "Print what a checkpoint holds, and tell it to the next session.", verb.ID,
            verb.option("--session", metavar="ID", default="", help="Tell it to this session; to the next one there by default."),
        ),
    ],
)  # fmt: skip
@click.pass_context
def checkpoint(context: click.Context, session: str, note: str, as_json: bool) -> None:
    """What sessions stood at before a compaction, or when asked."""
    if context.invoked_subcommand is None:
        _create(session, note, as_json)


# --- goals


@verb.command(
    "set", verb.argument("text"),
    verb.option("--session", metavar="ID", default="", help="It is this session's, and told to no other."),
    verb.project_of("The project it is for; this directory's by default."),
)  # fmt: skip
def goal_set(text: str, session: str, project: str | None, as_json: bool) -> None:
    """Declare a goal. Typed in a terminal it is yours; else your assistant's, and told in its own session only."""
    by_person = verb.person_is_there()
    its = session or ("" if by_person else assistant_session()[1])
    made = verb.ask("csm_goal_set", text=text, **verb.looking(project), session=its, by_person=by_person)
    verb.out(made, as_json, show_goal)


def show_goal(value: dict[str, Any]) -> Screen:
    """What became of one goal."""
    yield Line(value["text"], head=f"{value['id']}  ")
    if value["done_at"]:
        yield dim("done; no session is told it any more")
    elif value["authority"] == "user":
        whom = "its session" if value["session_id"] else f"each session in {value['project']}"
        yield dim(f"told to {whom} until `csmd goal done {value['id']}`")
    elif value["session_id"]:
        yield dim("the assistant's: told in its session as the assistant's")
    else:
        yield dim(
            "nobody typed this in a terminal, so it counts as the assistant's and no session is told it: type it in a "
            "terminal, or name its session with --session"
        )


def show_goals(value: dict[str, Any]) -> Screen:
    """A list of goals: whose they are, since when, and whether they are done."""
    if not value["goals"]:
        yield "no goal is open here; `csmd goal set TEXT` declares one"
    for goal in value["goals"]:
        whose = "yours" if goal["authority"] == "user" else "the assistant's"
        about = [whose, f"since {when(goal['created_at'])[:10]}"]
        about += [f"session {goal['session_id'][:SHORT]}"] * bool(goal["session_id"])
        about += [f"done {when(goal['done_at'])[:10]}"] * bool(goal["done_at"])
        yield Line(goal["text"], head=f"{goal['id']}  ", most=4)
        yield dim(", ".join(about), indent=len(goal["id"]) + 2)


goal = verb.group(
    "goal", "Project goals, shown to each session until done.",
    goal_set,
    verb.of_tool(
        "list", "csm_goal_list", show_goals, "List goals, the latest first.",
        *verb.PROJECTS, verb.flag("--done", help="Those that are done, too."),
    ),
    verb.of_tool("done", "csm_goal_done", show_goal, "Note that a goal is done. No session is told it any more.", verb.ID, by_person=True),
)  # fmt: skip

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
    "preview": "of the living state: csmd advisory show",
}
#: Characters of the id of a thing that is no memory.
RECEIPT_ID = 11


@verb.command(
    "why",
    verb.option("--session", metavar="ID", default="", help="A session; the last one here that was told something."),
    verb.option("--receipt", metavar="ID", default="", help="One injection."),
    verb.project_of("The project to look in; this directory's by default."),
    verb.limit(5, 100, "How many injections."),
)
def why(session: str, receipt: str, project: str | None, limit: int, as_json: bool) -> None:
    """Show what a session was told, and why."""
    if session and receipt:
        raise click.UsageError("--session and --receipt do not go together")
    found = verb.ask("csm_receipt_show", id=receipt, session=session, **verb.looking(project), limit=limit)
    verb.out(found, as_json, show_why)


def show_why(value: dict[str, Any]) -> Screen:
    """The injections, the latest first, each with its memories and their reasons."""
    if not value["injections"]:
        yield "no session here was told anything yet; `csmd brief` shows what the next one would be"
        return
    yield f"session {value['session_id']}"
    for injection in value["injections"]:
        event = injection["event"]
        notes, tokens = amount(len(injection["items"]), "note"), amount(injection["tokens"], "token")
        yield ""
        yield bold(f"{EVENTS.get(event, event)}: {notes}, {tokens}", head=f"{when(injection['at'])}  ")
        if injection["prompt"]:
            yield dim(f"you asked: {injection['prompt']}", indent=2, most=2)
        for item in injection["items"]:
            if item["state"] in STATES:
                yield dim(hint(item["state"], item["id"]), indent=2)
                continue
            yield Line(squeeze(item["text"]), indent=2, most=4)
            yield dim(f"{_reason(item, event)}; {_source(item)}{_use(item)}", head=f"  {item['id']}  ")
        yield dim(f"receipt {injection['id']}", indent=2)
    yield ""
    yield dim(
        "A prompt is told the statements that bear on it, newest first, when the score of the best reaches "
        f"{value['floor']:g} (recall.floor). At a start a memory is worth its confidence, more "
        "where it was said again or lately or is a correction, less when an assistant said it or it fades. What was left "
        "out is not kept. `csmd show ID` tells more of a memory."
    )


def hint(state: str, ident: str) -> str:
    """What is said of a thing that is no memory, on one line: of a turn's or session's id its beginning is enough."""
    return STATES[state].format(id=ident[:RECEIPT_ID], short=ident[:SHORT])


def _use(item: dict[str, Any]) -> str:
    """Whether the session made use of it, as far as that can be said."""
    if item["used"] is None:
        return ""
    if not item["used"]:
        return "; not used"
    marks = ", ".join(item.get("marks", ()))
    return f"; used: {USED_BY.get(item['used_by'], item['used_by'])}{f' ({cut(marks, 100)})' if marks else ''}"


def _reason(item: dict[str, Any], event: str) -> str:
    """Why it was told, in words."""
    if event == "tool_failure":
        return str(item["reason"])
    reason = item["reason"] if event == "prompt" else f"under {item['reason']!r}"
    return f"{reason}, score {item['score']:.2f}"


def _source(item: dict[str, Any]) -> str:
    """Where it was said, by whom, and how sure it is; of an error how often it was seen."""
    if item["state"] == "error":
        return f"seen {amount(item['times'], 'time')}, last on {item['said_at'][:10]}"
    parts = [f"said by the {item['authority']} on {item['said_at'][:10]} in {item['said_in'][:8] or 'a terminal'}"]
    if item["state"] == "quoted":
        return f"{parts[0]}, quoted"
    parts += [f"{item['times']} times in all"] * (item["times"] > 1) + [f"{percent(item['confidence'])} sure"]
    parts += ["pinned"] * item["pinned"] + ["superseded since"] * (item["state"] == "superseded")
    return ", ".join(parts + ["holds everywhere"] * (item["scope"] != "project"))


@verb.command(
    "receipts", verb.optional("id", "[ID]"),
    verb.option("--session", metavar="ID", default="", help="Only what this session was told."), *verb.PROJECTS,
    verb.limit(20),
)  # fmt: skip
def receipts(
    id: str, session: str, project: str | None, all_projects: bool, limit: int, as_json: bool  # noqa: A002
) -> None:  # fmt: skip
    """List what sessions here were told, and what was used. With ID one of them in detail."""
    if id:
        verb.out(verb.ask("csm_receipt_show", id=id, asking=verb.here(None)), as_json, show_why)
        return
    found = verb.ask("csm_receipts", session=session, **verb.looking(project, all_projects), limit=limit)
    verb.out(found, as_json, show_receipts)


def show_receipts(value: dict[str, Any]) -> Screen:
    """The injections, the latest first, then the sum of a week."""
    if not value["receipts"]:
        yield "no session here was told anything; --all-projects looks everywhere"
    rows = [
        [when(row["at"]), row["session_id"][:SHORT], {"session_start": "start"}.get(row["event"], row["event"])[:12],
         str(row["tokens"]), str(row["items"]), f"{row['used']} of {row['judged']}" if row["judged"] else "-", row["id"][:17]]
        for row in value["receipts"]
    ]  # fmt: skip
    yield from table("when|session|event|tokens|told|used|receipt", "<<<>><<", rows)
    if value["week"]["injections"]:
        yield ""
        yield dim(total(value["week"]))


def total(week: dict[str, int]) -> str:
    """What was told in a week, in one line."""
    share = f" ({percent(week['used'] / week['judged'])} of {week['judged']} judged)" if week["judged"] else ""
    tokens = amount(week["tokens"], "token") if week["tokens"] < 10_000 else f"{week['tokens'] / 1000:.0f}k tokens"
    return (
        f"told {amount(week['injections'], 'time')} this week: {amount(week['items'], 'fact')}, "
        f"{week['used']} used{share}, {tokens}"
    )


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (session, context, memdir, checkpoint, goal, why, receipts)
