"""Sessions as people see them: a list, the facts of one, its conversation; values in, text on a console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from csmd import text as texts
from csmd.cli import show
from csmd.text import amount

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


def listing(value: dict[str, Any], *, by_project: bool) -> None:
    """A list of sessions: when, how long, what about, and whether the transcript is still there."""
    out = show.console()
    if not value["sessions"]:
        show.print_text(out, "no session is known here; --all-projects looks everywhere")
        return
    places = [show.shorten(row["project"].rpartition("/")[2], LIST_PROJECT) for row in value["sessions"]]
    beside = max(len("project"), *map(len, places)) + 2 if by_project else 0
    room = max(out.width - LIST_NUMBERS - beside, 8)
    columns = [("session", "left"), ("last turn", "left"), ("turns", "right"), ("transcript", "left")]
    columns += [("project", "left")] * by_project + [("about", "left")]
    rows = [
        [row["id"][:ID], show.when(row["last_at"]), str(row["turns"]), row["transcript"], *[place] * by_project,
         texts.cut(row["about"] or "no title", room)]
        for row, place in zip(value["sessions"], places, strict=True)
    ]  # fmt: skip
    show.table(out, columns, rows)


def tokens_of(usage: dict[str, Any]) -> str:
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


def facts(value: dict[str, Any]) -> None:
    """What is known of one session."""
    out = show.console()
    show.print_text(out, value["about"] or "no title", style="bold")
    kinds = ", ".join(f"{count} {ROLES[kind]}" for kind, count in value["kinds"].items())
    told = sum(row["items"] for row in value["injections"])
    tokens = sum(row["tokens"] for row in value["injections"])
    about = [
        ("id", value["id"]),
        ("when", f"{show.when(value['started_at'])} to {show.when(value['last_at'])}"),
        ("project", value["project"]),
        ("began in", value["cwd"]),
        ("client", "csmd itself: a session file of its own" if value["own"] else
         " ".join(part for part in (value["host"], value["version"], value["model"]) if part)),
        ("turns", f"{value['turns']}: {kinds}" if kinds else "0"),
        ("file", f"transcript: {value['transcript']}{' ' + value['path'] if value['path'] else ''}"),
        ("told", f"{amount(told, 'memory')} in {amount(len(value['injections']), 'injection')}, "
         f"{amount(tokens, 'token')}; `csmd why --session {value['id'][:ID]}`" if told else "nothing"),
    ]  # fmt: skip
    about.append(("tokens", tokens_of(value["usage"])))
    for name, text in about:
        if text:
            show.labelled(out, name, text)
    for agent in value["agents"]:
        show.labelled(
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
            show.print_text(out, texts.squeeze(row["text"]), head=head, most=4)


def _digest(out: Console, text: str) -> None:
    """A digest, each part on lines of its own behind its name."""
    for line in text.splitlines():
        name, _, said = line.partition(": ")
        if said and len(name) <= LONGEST_PART:
            show.print_text(out, f"{name}: {said}", most=5)
        else:
            show.print_text(out, line, style="dim")


#: How the ways in which sessions hang together are called.
WAYS = {"builds_on": "builds on", "leads_to": "leads to"}
WHYS = {"compaction": "before a compaction", "end": "at its end", "settled": "as far as it has come"}
LONGEST_PART = 24


def digests(value: dict[str, Any]) -> None:
    """Every version of a session's digest, and what hangs together with it."""
    out = show.console()
    for one in value["digests"]:
        show.print_text(out, f"version {one['version']}, {WHYS[one['why']]}, {show.when(one['at'])}", style="dim")
        _digest(out, one["text"])
        out.print()
    if not value["digests"]:
        show.print_text(out, "there is no digest of it yet: a session gets one when it is settled")
    for link in value["links"]:
        gap = link["kind"] == "gap"
        head = (
            "gap"
            if gap
            else f"{WAYS[link['direction']]} {link['session'][:ID]} ({show.when(link['at'])[:10]}, {link['kind']})"
        )
        show.print_text(out, f"{head}: {link['reason']}")


def conversation(value: dict[str, Any]) -> None:
    """A conversation as it was held: who, when, what."""
    out = show.console()
    show.print_text(out, f"{value['about'] or 'no title'}, {value['id']}", style="bold")
    show.print_text(out, f"transcript: {value['transcript']}", style="dim")
    day = ""
    for turn in value["conversation"]:
        at = show.when(turn["at"])
        if at[:10] != day:
            day = at[:10]
            out.print()
            out.print(day, style="dim")
        role, hour = ROLES[turn["kind"]], at[11:]
        if turn["kind"] in FOLDED:
            line = texts.squeeze(f"{turn['tool']} {turn['text']}" if turn["tool"] else turn["text"])
            head = f"{hour}  {role:<9} "
            show.print_text(out, texts.cut(line, max(out.width - len(head), show.MIN_WIDTH)), head=head, style="dim")
        else:
            out.print()
            out.print(f"{hour}  {role}", style="bold")
            show.print_text(out, turn["text"], indent=2)
    if not value["conversation"]:
        out.print("nothing was said")


def exported(value: dict[str, Any], *, written: bool) -> None:
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


def written(value: dict[str, Any]) -> None:
    """The name of a message that was written, for who writes the next one."""
    click.echo(value["uuid"])


def messages(value: dict[str, Any]) -> None:
    """The messages of a session file, and what of it is not among them."""
    out = show.console()
    for message in value["messages"]:
        who = f"{message['kind']}{' (typed)' if message['by_person'] else ''}"
        show.print_text(out, f"{show.when(message['at'])}  {who}  {message['uuid']}", style="bold")
        show.print_text(out, message["text"], indent=2)
    for name, reason in (("bad_lines", "could not be read"), ("tombstoned", "withdrawn"), ("replaced", "summarised")):
        if value[name]:
            show.print_text(out, f"{value[name]} {reason}", style="dim")
