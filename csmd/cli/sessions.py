"""The verbs about sessions: conversations, checkpoints, goals, what a session was told and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from csmd import wire
from csmd.cli import render
from csmd.cli.render import cells, fitted, plain
from csmd.cli.verb import ask, here, json_option, looking, out, person_is_there, project_options
from csmd.config import assistant_session
from csmd.errors import CsmdError
from csmd.installer import foreign_files
from csmd.text import display
from csmd.text.display import amount

if TYPE_CHECKING:
    from rich.console import Console


#: How the kinds of turns are called beside what they hold.
ROLES = {
    "user": "you", "relayed": "relayed", "assistant": "assistant", "summary": "summary", "command": "command",
    "notification": "notice", "tool_call": "tool", "tool_result": "answer",
}  # fmt: skip
#: Tool traffic, and what the host said by itself: one line each.
FOLDED = ("tool_call", "tool_result", "command", "notification")
#: Columns that the other columns of the list take beside the title.
LIST_NUMBERS, LIST_PROJECT = 49, 14
ID = 8


def show_session_listing(value: dict[str, Any], *, by_project: bool) -> None:
    """A list of sessions: when, how long, what about, and whether the transcript is still there."""
    out = render.console()
    if not value["sessions"]:
        render.print_text(out, "no session is known here; --all-projects looks everywhere")
        return
    places = [render.shorten(row["project"].rpartition("/")[2], LIST_PROJECT) for row in value["sessions"]]
    beside = max(len("project"), *map(len, places)) + 2 if by_project else 0
    room = max(out.width - LIST_NUMBERS - beside, 8)
    columns = [("session", "left"), ("last turn", "left"), ("turns", "right"), ("transcript", "left")]
    columns += [("project", "left")] * by_project + [("about", "left")]
    rows = [
        [row["id"][:ID], render.when(row["last_at"]), str(row["turns"]), row["transcript"], *[place] * by_project,
         display.cut(row["about"] or "no title", room)]
        for row, place in zip(value["sessions"], places, strict=True)
    ]  # fmt: skip
    render.table(out, columns, rows)


def show_session_tokens_of(usage: dict[str, Any]) -> str:
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


def show_session_facts(value: dict[str, Any]) -> None:
    """What is known of one session."""
    out = render.console()
    render.print_text(out, value["about"] or "no title", style="bold")
    kinds = ", ".join(f"{count} {ROLES[kind]}" for kind, count in value["kinds"].items())
    told = sum(row["items"] for row in value["injections"])
    tokens = sum(row["tokens"] for row in value["injections"])
    about = [
        ("id", value["id"]),
        ("when", f"{render.when(value['started_at'])} to {render.when(value['last_at'])}"),
        ("project", value["project"]),
        ("began in", value["cwd"]),
        ("client", "csmd itself: a session file of its own" if value["own"] else
         " ".join(part for part in (value["host"], value["version"], value["model"]) if part)),
        ("turns", f"{value['turns']}: {kinds}" if kinds else "0"),
        ("file", f"transcript: {value['transcript']}{' ' + value['path'] if value['path'] else ''}"),
        ("told", f"{amount(told, 'memory')} in {amount(len(value['injections']), 'injection')}, "
         f"{amount(tokens, 'token')}; `csmd why --session {value['id'][:ID]}`" if told else "nothing"),
    ]  # fmt: skip
    about.append(("tokens", show_session_tokens_of(value["usage"])))
    for name, text in about:
        if text:
            render.labelled(out, name, text)
    for agent in value["agents"]:
        render.labelled(
            out, "agent", f"{agent['id'].rpartition('/')[2]}, {amount(agent['turns'], 'turn')}, {agent['model']}"
        )
    if value["digest"]:
        out.print()
        out.print("digest", style="dim")
        _digest(out, value["digest"])
    for heading, rows in (("memories", value["memories"]), ("statements", value["statements"])):
        if rows:
            out.print()
            out.print(heading, style="dim")
        for row in rows:
            head = f"{row['id']}  " if "id" in row else f"{row['gate']}, {row['authority']}: "
            render.print_text(out, display.squeeze(row["text"]), head=head, most=4)


def _digest(out: Console, text: str) -> None:
    """A digest, each part on lines of its own behind its name."""
    for line in text.splitlines():
        name, _, said = line.partition(": ")
        if said and len(name) <= LONGEST_PART:
            render.print_text(out, f"{name}: {said}", most=5)
        else:
            render.print_text(out, line, style="dim")


#: How the ways in which sessions hang together are called.
WAYS = {"builds_on": "builds on", "leads_to": "leads to"}
WHYS = {"compaction": "before a compaction", "end": "at its end", "settled": "as far as it has come"}
LONGEST_PART = 24


def show_session_digests(value: dict[str, Any]) -> None:
    """Every version of a session's digest, and what hangs together with it."""
    out = render.console()
    for one in value["digests"]:
        render.print_text(out, f"version {one['version']}, {WHYS[one['why']]}, {render.when(one['at'])}", style="dim")
        _digest(out, one["text"])
        out.print()
    if not value["digests"]:
        render.print_text(out, "there is no digest of it yet: a session gets one when it is settled")
    for link in value["links"]:
        gap = link["kind"] == "gap"
        head = (
            "gap"
            if gap
            else f"{WAYS[link['direction']]} {link['session'][:ID]} ({render.when(link['at'])[:10]}, {link['kind']})"
        )
        render.print_text(out, f"{head}: {link['reason']}")


def show_session_conversation(value: dict[str, Any]) -> None:
    """A conversation as it was held: who, when, what."""
    out = render.console()
    render.print_text(out, f"{value['about'] or 'no title'}, {value['id']}", style="bold")
    render.print_text(out, f"transcript: {value['transcript']}", style="dim")
    day = ""
    for turn in value["conversation"]:
        at = render.when(turn["at"])
        if at[:10] != day:
            day = at[:10]
            out.print()
            out.print(day, style="dim")
        role, hour = ROLES[turn["kind"]], at[11:]
        if turn["kind"] in FOLDED:
            line = display.squeeze(f"{turn['tool']} {turn['text']}" if turn["tool"] else turn["text"])
            head = f"{hour}  {role:<9} "
            render.print_text(
                out, display.cut(line, max(out.width - len(head), render.MIN_WIDTH)), head=head, style="dim"
            )
        else:
            out.print()
            out.print(f"{hour}  {role}", style="bold")
            render.print_text(out, turn["text"], indent=2)
    if not value["conversation"]:
        out.print("nothing was said")


def show_session_exported(value: dict[str, Any], *, written: bool) -> None:
    """How to resume what was exported; on stderr, for the transcript itself may go to stdout."""
    if written:
        click.echo(f"written to {value['path']}", err=True)
    if value["left_out"]:
        click.echo(f"left out: {amount(value['left_out'], 'turn')} that a rewind had left behind", err=True)
    if value["transcript"] == "there":  # it holds more than csmd kept: nothing may be put in its place
        click.echo("the assistant still has this session; to resume it", err=True)
    else:
        click.echo("to resume it, put it below the assistant's directory (~/.claude), as", err=True)
        click.echo(f"  {value['place']}", err=True)
        click.echo("and run", err=True)
    click.echo(f"  {value['resume']}", err=True)


def show_session_written(value: dict[str, Any]) -> None:
    """The name of a message that was written, for who writes the next one."""
    click.echo(value["uuid"])


def show_session_messages(value: dict[str, Any]) -> None:
    """The messages of a session file, and what of it is not among them."""
    out = render.console()
    for message in value["messages"]:
        who = f"{message['kind']}{' (typed)' if message['by_person'] else ''}"
        render.print_text(out, f"{render.when(message['at'])}  {who}  {message['uuid']}", style="bold")
        render.print_text(out, message["text"], indent=2)
    for name, reason in (("bad_lines", "could not be read"), ("tombstoned", "withdrawn"), ("replaced", "summarised")):
        if value[name]:
            render.print_text(out, f"{value[name]} {reason}", style="dim")


#: Columns that the other columns of the list take beside the goal.
BESIDE = 55
#: The kinds of pieces in the order in which they are shown, and what they are called.
PARTS = {
    "goal": "asked for", "plan": "plan", "correction": "corrected by the user", "decision": "decided",
    "failing": "failing", "edited": "files changed", "open": "open", "read": "files read",
}  # fmt: skip
CHECKPOINT_WHYS = {"compaction": "compaction", "asked": "asked for"}


def show_checkpoint_listing(value: dict[str, Any]) -> None:
    """A list of checkpoints: when, of which session, why, and what the session was for."""
    out = render.console()
    if not value["checkpoints"]:
        render.print_text(
            out, "no checkpoint is kept here; one is made before each compaction, or with `csmd checkpoint create`"
        )
        return
    columns = [("checkpoint", "left"), ("at", "left"), ("session", "left"), ("why", "left"), ("about", "left")]
    room = max(out.width - BESIDE, 8)
    rows = [
        [row["id"], render.when(row["at"]), row["session_id"][:ID], CHECKPOINT_WHYS[row["why"]],
         display.cut(display.squeeze(row["note"] or row["goal"]) or "-", room)]
        for row in value["checkpoints"]
    ]  # fmt: skip
    render.table(out, columns, rows)


def show_checkpoint_one(value: dict[str, Any]) -> None:
    """One checkpoint: what it is of, then every piece of it under its name."""
    out = render.console()
    if value.get("made"):
        render.print_text(out, f"kept as {value['id']}", style="bold")
    else:
        render.print_text(out, value["id"], style="bold")
    unfinished = "" if value["whole"] else "; what the transcript still brings of before is added"
    render.labelled(out, "when", f"{render.when(value['at'])}, {_why(value)}{unfinished}")
    render.labelled(out, "session", f"{value['session_id']} in {value['cwd'] or 'a directory that nobody named'}")
    if value["note"]:
        render.labelled(out, "note", value["note"])
    told = f"{amount(value['tokens'], 'token')} of essentials"
    render.labelled(out, "holds", f"{told}, {amount(value['captured'], 'turn')} as they stood (--raw shows them)")
    for kind, heading in PARTS.items():
        found = [part for part in value["parts"] if part["kind"] == kind]
        if not found:
            continue
        out.print()
        out.print(heading, style="dim")
        if kind in ("edited", "read"):
            render.print_text(out, ", ".join(_times(part) for part in found), most=6)
            continue
        for part in found:
            head = f"{part['state']:<7}" if part["state"] else ""
            text = f"{_times(part)}: {_error(value, part)}" if kind == "failing" else part["text"]
            render.print_text(out, text, head=f"- {head}", most=4)


def _why(value: dict[str, Any]) -> str:
    if value["why"] == "asked":
        return "asked for"
    return "before a compaction" if value["summary_uuid"] else "before a compaction that was announced"


def _times(part: dict[str, Any]) -> str:
    return f"{part['text']} x{part['amount']}" if part["amount"] > 1 else str(part["text"])


def _error(value: dict[str, Any], part: dict[str, Any]) -> str:
    """What a failing command said: the piece behind it."""
    at = value["parts"].index(part) + 1
    behind = value["parts"][at] if at < len(value["parts"]) else None
    return str(behind["text"]) if behind is not None and behind["kind"] == "error" else "no word of why"


def show_checkpoint_raw(value: dict[str, Any], to_person: bool) -> None:
    """The captured turns; to a person each under its name, else byte for byte, each ended by a line break."""
    out = render.console()
    for turn in value["raw"]:
        if to_person:
            who = f"{turn['kind']} {turn['tool']}".strip()
            render.print_text(out, f"{render.when(turn['at'])}  {who}  {turn['uuid']}", style="bold")
            render.print_text(out, turn["text"], indent=2)
        else:
            click.echo(turn["text"], color=True)  # every byte of it


def show_checkpoint_restored(value: dict[str, Any]) -> None:
    """The essentials as the next session is told them, and which session that is."""
    out = render.console()
    for line in value["text"].splitlines():
        item = line.startswith("- ")
        render.print_text(out, line[2:] if item else line, head="- " if item else "")
    out.print()
    whom = (
        f"session {value['restored_for'][:ID]} when it starts again"
        if value["restored_for"]
        else "the next session here"
    )
    render.print_text(out, f"{amount(value['tokens'], 'token')}; told once, to {whom}", style="dim")


def show_checkpoint_goal(value: dict[str, Any]) -> None:
    """What became of one goal."""
    out = render.console()
    render.print_text(out, value["text"], head=f"{value['id']}  ")
    if value["done_at"]:
        render.print_text(out, "done; no session is told it any more", style="dim")
    elif value["authority"] == "user":
        whom = "its session" if value["session_id"] else f"each session in {value['project']}"
        render.print_text(out, f"told to {whom} until `csmd goal done {value['id']}`", style="dim")
    else:
        told = "the assistant's: told in its session as the assistant's"
        silent = (
            "nobody typed this in a terminal, so it counts as the assistant's and no session is told it: type it in a "
            "terminal, or name its session with --session"
        )
        render.print_text(out, told if value["session_id"] else silent, style="dim")


def show_checkpoint_goals(value: dict[str, Any]) -> None:
    """A list of goals: whose they are, since when, and whether they are done."""
    out = render.console()
    if not value["goals"]:
        render.print_text(out, "no goal is open here; `csmd goal set TEXT` declares one")
        return
    for one in value["goals"]:
        render.print_text(out, one["text"], head=f"{one['id']}  ", most=4)
        about = [
            "yours" if one["authority"] == "user" else "the assistant's",
            f"since {render.when(one['created_at'])[:10]}",
        ]
        about += [f"session {one['session_id'][:ID]}"] * bool(one["session_id"])
        about += [f"done {render.when(one['done_at'])[:10]}"] * bool(one["done_at"])
        render.print_text(out, ", ".join(about), indent=len(one["id"]) + 2, style="dim")


@click.group()
def session() -> None:
    """Past conversations, also those the assistant deleted."""


@session.command("list")
@project_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def list_(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List the sessions of this project, the latest first."""
    found = ask("csm_session_list", **looking(project, all_projects), limit=limit)
    out(found, as_json, lambda value: show_session_listing(value, by_project=all_projects))


@session.command("show")
@click.argument("ident", metavar="ID")
@json_option
def show_(ident: str, as_json: bool) -> None:
    """Show what is known of a session. The beginning of its ID suffices."""
    out(ask("csm_session_show", id=ident, asking=here(None)), as_json, show_session_facts)


@session.command()
@click.argument("ident", metavar="ID")
@json_option
def transcript(ident: str, as_json: bool) -> None:
    """Show a conversation. Tool traffic is one line each."""
    out(ask("csm_session_transcript", id=ident, asking=here(None)), as_json, show_session_conversation)


@session.command()
@click.argument("ident", metavar="ID")
@json_option
def digest(ident: str, as_json: bool) -> None:
    """Show what a session comes to, and what it builds on."""
    out(ask("csm_memory_distilled_view", id=ident, asking=here(None)), as_json, show_session_digests)


@session.command()
@click.argument("ident", metavar="ID")
@click.option("--to", "target", metavar="FILE", default="-", help="Where to write it; `-`, the default, prints it.")
@json_option
def export(ident: str, target: str, as_json: bool) -> None:
    """Write a session for the assistant to resume."""
    found = ask("csm_session_export", id=ident, asking=here(None))
    data = "".join(f"{line}\n" for line in found["lines"]).encode()
    if target != "-":
        path = Path(target).expanduser().absolute()
        _write_new(path, data)
        found = {key: value for key, value in found.items() if key != "lines"} | {"path": str(path)}
    if as_json:
        click.echo(wire.pretty(found))
        return
    if target == "-":
        click.echo(data, nl=False)
    show_session_exported(found, written=target != "-")


def _write_new(path: Path, data: bytes) -> None:
    """Writes a file where none is: a transcript that is still there holds more than csmd kept."""
    if path.exists() or path.is_symlink():
        raise CsmdError(f"{path} is there already and stays as it is", hint="name another file")
    try:
        foreign_files.write_whole(path, data)
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}", hint="name a file in a directory that you can write to") from error


_place = click.option("--project", metavar="PATH", help="Where a session begins that is new; here by default.")
_parent = click.option("--parent", metavar="UUID", default="", help="The message it answers; the last one by default.")


@session.command("write-user")
@click.argument("ident", metavar="ID")
@click.argument("text")
@_parent
@_place
@json_option
def write_user(ident: str, text: str, parent: str, project: str | None, as_json: bool) -> None:
    """Write as the user into a session of csmd's own. Typed in a terminal it counts as yours."""
    found = ask(
        "csm_session_write_user",
        id=ident,
        asking=here(None),
        text=text,
        parent=parent,
        project=looking(project)["project"],
        by_person=person_is_there(),
    )
    out(found, as_json, show_session_written)


@session.command("write-assistant")
@click.argument("ident", metavar="ID")
@click.argument("text")
@_parent
@_place
@json_option
def write_assistant(ident: str, text: str, parent: str, project: str | None, as_json: bool) -> None:
    """Write as the assistant into a session of csmd's own."""
    found = ask(
        "csm_session_write_assistant",
        id=ident,
        asking=here(None),
        text=text,
        parent=parent,
        project=looking(project)["project"],
    )
    out(found, as_json, show_session_written)


@session.command("write-summary")
@click.argument("ident", metavar="ID")
@click.argument("text")
@click.option("--replaces", metavar="UUID", multiple=True, help="What it stands for; everything so far by default.")
@json_option
def write_summary(ident: str, text: str, replaces: tuple[str, ...], as_json: bool) -> None:
    """Let a summary stand for messages of a session."""
    out(
        ask("csm_session_write_summary", id=ident, asking=here(None), text=text, replaces=" ".join(replaces)),
        as_json,
        show_session_written,
    )


@session.command()
@click.argument("ident", metavar="ID")
@click.argument("uuid", metavar="UUID")
@json_option
def tombstone(ident: str, uuid: str, as_json: bool) -> None:
    """Withdraw a message. Its line stays; who loads the session does not see it."""
    found = ask("csm_session_tombstone", id=ident, asking=here(None), uuid=uuid)
    out(found, as_json, lambda value: click.echo(f"withdrawn: {value['tombstoned']}"))


@session.command()
@click.argument("ident", metavar="ID")
@json_option
def load(ident: str, as_json: bool) -> None:
    """Show the messages of a session of csmd's own. What was withdrawn or summarised is not among them."""
    out(ask("csm_session_load", id=ident), as_json, show_session_messages)


@session.command()
@click.argument("ident", metavar="ID")
@click.option("--project", metavar="PATH", help="Where a session would begin that is new; here by default.")
@json_option
def path(ident: str, project: str | None, as_json: bool) -> None:
    """Print the path of a session of csmd's own."""
    found = ask("csm_session_path", id=ident, asking=here(None), project=looking(project)["project"])
    out(found, as_json, lambda value: click.echo(value["path"]))


#: Columns that a project's name takes at most.
NAME = 28
project_option = click.option("--project", metavar="PATH", help="This directory's by default.")


@click.group()
def context() -> None:
    """Show what a session is given, whole, and how full it is."""


@context.command()
@project_options
@json_option
def status(project: str | None, all_projects: bool, as_json: bool) -> None:
    """Show how full the contexts of live sessions are."""
    everywhere = all_projects or project is None
    out(ask("csm_context_status", **looking(project, everywhere)), as_json, show_filled)


@context.command()
@project_option
@click.option(
    "--mode",
    type=click.Choice(["host", "seed"]),
    default="host",
    show_default=True,
    help="As the assistant loads them, or four scopes with @include lines.",
)
@json_option
def build(project: str | None, mode: str, as_json: bool) -> None:
    """Show the instructions that a session here is given."""
    out(ask("csm_context_build", **looking(project), mode=mode), as_json, show_context)


@context.command()
@click.argument("ident", metavar="ID")
@json_option
def get(ident: str, as_json: bool) -> None:
    """Show the whole of what a session was told. ID is a memory's, a turn's or a receipt's."""
    out(ask("csm_context_get", id=ident, asking=here(None)), as_json, show_whole)


@click.group()
def memdir() -> None:
    """Show the assistant's own memory."""


@memdir.command()
@project_option
@json_option
def scan(project: str | None, as_json: bool) -> None:
    """List the files of the assistant's own memory here."""
    out(ask("csm_memdir_scan", **looking(project)), as_json, show_memos)


@memdir.command("load")
@click.argument("file")
@project_option
@json_option
def load_memo(file: str, project: str | None, as_json: bool) -> None:
    """Show one of them without its head."""
    found = ask("csm_memdir_load", **looking(project), file=file)
    out(found, as_json, lambda value: click.echo(value["text"]))


def show_whole(value: dict[str, Any]) -> None:
    """Texts as they are kept, each behind its id."""
    for number, item in enumerate(value["items"]):
        about = item["said_at"][:10] if item.get("said_at") else STATES.get(item["state"], item["state"])
        click.echo(f"{chr(10) if number else ''}{item['id']}  {about}")
        if item["text"]:
            click.echo(item["text"])


def show_context(value: dict[str, Any]) -> None:
    """The text, then on standard error which files it is made of: the text alone can be put into a file."""
    if value["text"]:
        click.echo(value["text"])
    else:
        click.echo("nothing: there is no instruction file for this directory", err=True)
    files = value["files"]
    if files:
        click.echo(f"\n{amount(len(files), 'file')}, about {amount(value['tokens'], 'token')}:", err=True)
    for one in files:
        click.echo(f"  {one['scope']:<8} {one['tokens']:>6}  {one['path']}", err=True)
    for problem in value["problems"]:
        click.echo(f"  ! {problem}", err=True)


def show_filled(value: dict[str, Any]) -> None:
    """The live sessions, one a line, then what csmd adds in each bracket."""
    console = render.console()
    names = [plain(one["project"].rstrip("/").rpartition("/")[2]) or "-" for one in value["sessions"]]
    room = min(max(map(cells, names), default=0), NAME)
    for one, name in zip(value["sessions"], names, strict=True):
        used, window = one["tokens"], max(one["window"], 1)
        full = (
            f"{used * 100 // window:>3} %  {one['bracket']:<8}  {used:,} of {window:,}" if used else "  not known yet"
        )
        shown = fitted(name, room, end=True)
        render.print_text(console, f"{one['session'][:8]:<8}  {shown}{' ' * (room - cells(shown))}  {full}")
    if not value["sessions"]:
        render.print_text(console, "no session is live")
    console.print()
    for one in value["brackets"]:
        begins = f"from {one['from_percent']} %"
        added = f"a prompt gets up to {one['recall_tokens']} tokens, a compaction {one['restored_tokens']}"
        render.print_text(console, f"{one['bracket']:<8}  {begins:<9}  {added}", style="dim")


def show_memos(value: dict[str, Any]) -> None:
    """The files of a memory directory, two lines each."""
    click.echo(value["folder"])
    if not value["files"]:
        click.echo("nothing: the assistant has kept no memory here")
    for memo in value["files"]:
        kind = memo["type"] or "?"
        click.echo(f"\n{memo['filename']}  ({kind}, {render.size(memo['size'])}, {memo['modified'][:10]})")
        if memo["description"] or memo["name"]:
            click.echo(f"  {memo['description'] or memo['name']}")
        for problem in memo["problems"]:
            click.echo(f"  ! {problem}")


_session = click.option(
    "--session", metavar="ID", default="", help="A session; the one that asks, else the latest one here."
)
_note = click.option("--note", metavar="TEXT", default="", help="A line of yours to be told with it.")


@click.group(invoke_without_command=True)
@_session
@_note
@json_option
@click.pass_context
def checkpoint(context: click.Context, session: str, note: str, as_json: bool) -> None:
    """What sessions stood at before a compaction, or when asked."""
    if context.invoked_subcommand is None:
        _create(session, note, as_json)


def _create(session: str, note: str, as_json: bool) -> None:
    asks = session or assistant_session()[1]
    out(ask("csm_checkpoint_create", session=asks, **looking(None), note=note), as_json, show_checkpoint_one)


@checkpoint.command("create")
@_session
@_note
@json_option
def checkpoint_create(session: str, note: str, as_json: bool) -> None:
    """Keep what a session stands at, now."""
    _create(session, note, as_json)


@checkpoint.command("list")
@project_options
@click.option("--session", metavar="ID", default="", help="Of one session only.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def checkpoint_list(project: str | None, all_projects: bool, session: str, limit: int, as_json: bool) -> None:
    """List checkpoints, the latest first."""
    found = ask("csm_checkpoint_list", session=session, **looking(project, all_projects), limit=limit)
    out(found, as_json, show_checkpoint_listing)


@checkpoint.command("show")
@click.argument("ident", metavar="ID")
@click.option("--raw", is_flag=True, help="The turns that it captured, as they were stored.")
@json_option
def checkpoint_show(ident: str, raw: bool, as_json: bool) -> None:
    """Show a checkpoint. The beginning of its ID suffices."""
    found = ask("csm_checkpoint_show", id=ident, asking=here(None), raw=raw)
    out(found, as_json, (lambda value: show_checkpoint_raw(value, sys.stdout.isatty())) if raw else show_checkpoint_one)


@checkpoint.command("restore")
@click.argument("ident", metavar="ID")
@click.option("--session", metavar="ID", default="", help="Tell it to this session; to the next one there by default.")
@json_option
def checkpoint_restore(ident: str, session: str, as_json: bool) -> None:
    """Print what a checkpoint holds, and tell it to the next session."""
    found = ask("csm_checkpoint_restore", id=ident, asking=here(None), session=session)
    out(found, as_json, show_checkpoint_restored)


@click.group()
def goal() -> None:
    """What this project is for, told to each session until then."""


@goal.command("set")
@click.argument("text")
@click.option("--session", metavar="ID", default="", help="It is this session's, and told to no other.")
@click.option("--project", metavar="PATH", help="The project it is for; this directory's by default.")
@json_option
def goal_set(text: str, session: str, project: str | None, as_json: bool) -> None:
    """Declare a goal. Typed in a terminal it is yours; else your assistant's, and told in its own session only."""
    by_person = person_is_there()
    its = session or ("" if by_person else assistant_session()[1])
    found = ask("csm_goal_set", text=text, **looking(project), session=its, by_person=by_person)
    out(found, as_json, show_checkpoint_goal)


@goal.command("list")
@project_options
@click.option("--done", is_flag=True, help="Those that are done, too.")
@json_option
def goal_list(project: str | None, all_projects: bool, done: bool, as_json: bool) -> None:
    """List goals, the latest first."""
    found = ask("csm_goal_list", **looking(project, all_projects), done=done)
    out(found, as_json, show_checkpoint_goals)


@goal.command("done")
@click.argument("ident", metavar="ID")
@json_option
def goal_done(ident: str, as_json: bool) -> None:
    """Note that a goal is done. No session is told it any more."""
    found = ask("csm_goal_done", id=ident, asking=here(None), by_person=person_is_there())
    out(found, as_json, show_checkpoint_goal)


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
RECEIPT_ID, SHORT_ID = 11, 8


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
    console = render.console()
    if not value["injections"]:
        render.print_text(
            console, "no session here was told anything yet; `csmd brief` shows what the next one would be"
        )
        return
    render.print_text(console, f"session {value['session_id']}")
    for injection in value["injections"]:
        console.print()
        about = f"{EVENTS.get(injection['event'], injection['event'])}: {amount(len(injection['items']), 'note')}, "
        render.print_text(
            console,
            f"{about}{amount(injection['tokens'], 'token')}",
            head=f"{render.when(injection['at'])}  ",
            style="bold",
        )
        if injection["prompt"]:
            render.print_text(console, f"you asked: {injection['prompt']}", indent=2, most=2, style="dim")
        for item in injection["items"]:
            _item(console, item, injection["event"])
        render.print_text(console, f"receipt {injection['id']}", indent=2, style="dim")
    console.print()
    render.print_text(
        console,
        "A prompt is told the statements that bear on it, newest first, when the score of the best reaches "
        f"{value['floor']:g} (recall.floor). At a start a memory is worth its confidence, more "
        "where it was said again or lately or is a correction, less when an assistant said it or it fades. What was left "
        "out is not kept. `csmd show ID` tells more of a memory.",
        style="dim",
    )


def hint(state: str, ident: str) -> str:
    """What is said of a thing that is no memory, on one line: of a turn's or session's id its beginning is enough."""
    return STATES[state].format(id=ident[:RECEIPT_ID], short=ident[:SHORT_ID])


def _item(console: Console, item: dict[str, Any], event: str) -> None:
    if item["state"] in STATES:
        render.print_text(console, hint(item["state"], item["id"]), indent=2, style="dim")
        return
    render.print_text(console, display.squeeze(item["text"]), indent=2, most=4)
    about = f"{_reason(item, event)}; {_source(item)}{_use(item)}"
    render.print_text(console, about, head=f"  {item['id']}  ", style="dim")


def _use(item: dict[str, Any]) -> str:
    """Whether the session made use of it, as far as that can be said."""
    if item["used"] is None:
        return ""
    if not item["used"]:
        return "; not used"
    marks = ", ".join(item.get("marks", ()))
    return f"; used: {USED_BY.get(item['used_by'], item['used_by'])}{f' ({display.cut(marks, 100)})' if marks else ''}"


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


@click.command()
@click.argument("ident", metavar="[ID]", default="")
@click.option("--session", metavar="ID", default="", help="Only what this session was told.")
@project_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def receipts(ident: str, session: str, project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List what sessions here were told, and what was used. With ID one of them in detail."""
    if ident:
        out(ask("csm_receipt_show", id=ident, asking=here(None)), as_json, shown)
        return
    found = ask("csm_receipts", session=session, **looking(project, all_projects), limit=limit)
    out(found, as_json, receipt_list)


def receipt_list(value: dict[str, Any]) -> None:
    """The injections, the latest first, then the sum of a week."""
    console = render.console()
    if not value["receipts"]:
        render.print_text(console, "no session here was told anything; --all-projects looks everywhere")
    else:
        columns = [("when", "left"), ("session", "left"), ("event", "left"), ("tokens", "right"), ("told", "right"),
                   ("used", "left"), ("receipt", "left")]  # fmt: skip
        render.table(console, columns, [_row(one) for one in value["receipts"]])
    week = value["week"]
    if week["injections"]:
        console.print()
        render.print_text(console, total(week), style="dim")


def _row(one: dict[str, Any]) -> list[str]:
    used = f"{one['used']} of {one['judged']}" if one["judged"] else "-"
    event = {"session_start": "start"}.get(one["event"], one["event"])[:12]
    return [
        render.when(one["at"]),
        one["session_id"][:8],
        event,
        str(one["tokens"]),
        str(one["items"]),
        used,
        one["id"][:17],
    ]


def total(week: dict[str, int]) -> str:
    """What was told in a week, in one line."""
    share = (
        f" ({week['used'] / week['judged']:.0%} of {week['judged']} judged)".replace("%", " %")
        if week["judged"]
        else ""
    )
    tokens = amount(week["tokens"], "token") if week["tokens"] < 10_000 else f"{week['tokens'] / 1000:.0f}k tokens"
    return (
        f"told {amount(week['injections'], 'time')} this week: {amount(week['items'], 'fact')}, "
        f"{week['used']} used{share}, {tokens}"
    )


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    session,
    context,
    memdir,
    checkpoint,
    goal,
    why,
    receipts,
)
