"""Commands about the history: sessions, days, failures, success by kind of work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, block, bold, dim, join, last_part, pair, pairs, shorten, warning
from csmd.errors import CsmdError
from csmd.paths import is_there
from csmd.text import display
from csmd.text.ages import when
from csmd.text.display import amount, cut, squeeze

VERBS = verb.Verbs()

#: Kind of a turn -> its name on screens.
ROLES = {
    "user": "you", "relayed": "relayed", "assistant": "assistant", "summary": "summary", "command": "command",
    "notification": "notice", "tool_call": "tool", "tool_result": "answer",
}  # fmt: skip
#: Kinds that are shown on one line: tool traffic, and the messages of the assistant's program.
FOLDED_KINDS = ("tool_call", "tool_result", "command", "notification")
#: Columns of the list other than id, project and title.
NUMBER_COLUMNS = 41
#: Most columns of the project in the list.
MAX_PROJECT_COLUMNS = 14
#: Most characters of the name of a part of a digest.
MAX_PART_CHARS = 24
SESSION = VERBS.add_group("session", "Show past conversations, also those the assistant deleted.")


@SESSION.tool("list", "csm_session_list", *verb.PROJECTS, verb.limit(20))
@render.if_empty("sessions", "no sessions here; --all-projects looks everywhere")
def show_sessions(value: dict[str, Any], *, all_projects: bool) -> Screen:
    """List the sessions of this project, the latest first."""
    names = [shorten(last_part(row["project"]), MAX_PROJECT_COLUMNS, end=True) for row in value["sessions"]]
    project_width = max(len("project"), *map(len, names)) + 2 if all_projects else 0
    session_ids = [display.shorten_session_id(row["id"]) for row in value["sessions"]]
    id_width = max(len("session"), *map(len, session_ids))
    title_width = max(render.width() - NUMBER_COLUMNS - id_width - project_width, 8)
    rows = [
        [session_id, when(row["last_at"]), str(row["turns"]), row["transcript"], *[name] * all_projects,
         cut(row["about"] or "no title", title_width)]
        for session_id, row, name in zip(session_ids, value["sessions"], names, strict=True)
    ]  # fmt: skip
    heads = f"session|last turn|turns|transcript|{'project|' * all_projects}about"
    return render.table(heads, "<<><<" + "<" * all_projects, rows, least=id_width)


@VERBS.action(
    "today", verb.text("--date", "DAY", "2026-01-31, yesterday, monday, `3 May`; today by default."), *verb.ALL_UNLESS_NAMED,
    verb.flag("--behind-walls", "walls", help="Look behind the walls of workspaces, too. Only in a terminal."),
)  # fmt: skip
def today(**options: Any) -> None:
    """Print the changes, decisions and open items of a day, for a stand-up.

    As Markdown. On a terminal open items have the id by which `csmd done` closes them.
    """
    options["ids"] = sys.stdout.isatty()
    verb.reply("csm_today", show_today, options, scope="all", sends_by_person=True)


def show_today(value: dict[str, Any]) -> Screen:
    """Shows a day: its heading, projects and entries."""
    if not value["projects"]:
        yield f"No changes on {value['date']}."
        return
    for line in value["text"].splitlines():
        if line.startswith("- "):
            yield Line(line.removeprefix("- "), head="- ")  # in Markdown, too, an indented line continues an item
        else:
            yield shorten(line, render.width())  # a heading is one line
    if sys.stdout.isatty() and any(entry["kind"] == "Open" for row in value["projects"] for entry in row["entries"]):
        yield dim("`csmd done ID` closes an open item; `csmd done` lists all", gap=True)


@SESSION.tool("show", "csm_session_show", verb.ID)
def show_session(value: dict[str, Any]) -> Screen:
    """Show the facts about a session. The beginning of its ID suffices."""
    counts = ", ".join(f"{count} {ROLES[kind]}" for kind, count in value["kinds"].items())
    memories, tokens = (sum(row[name] for row in value["injections"]) for name in ("items", "tokens"))
    injections = amount(len(value["injections"]), "injection")
    receipts = f"{amount(memories, 'memory')} in {injections}, {amount(tokens, 'token')}"
    own = value["own"] and "csmd itself: a session file of its own"
    yield bold(value["about"] or ("purged: no text is left" if value["purged"] else "no title"))
    yield from pairs([
        ("id", value["id"]),
        ("when", f"{when(value['started_at'])} to {when(value['last_at'])}"),
        ("project", value["project"]),
        ("began in", value["cwd"]),
        ("client", own or join(value["host"], value["version"], value["model"], by=" ")),
        ("turns", f"{value['turns']}: {counts}" if counts else "0"),
        ("file", join(f"transcript: {value['transcript']}", value["path"], by=" ")),
        ("told", f"{receipts}; `csmd why --session {display.shorten_session_id(value['id'])}`" if memories else "nothing"),
        ("tokens", _describe_usage(value["usage"])),
    ])  # fmt: skip
    for agent in value["agents"]:
        yield pair("agent", f"{agent['id'].rpartition('/')[2]}, {amount(agent['turns'], 'turn')}, {agent['model']}")
    yield from block("digest", _show_digest(value["digest"]))
    for title, head in (("memories", "{id}  "), ("statements", "{gate}, {authority}: ")):
        rows = [Line(squeeze(row["text"]), head=head.format_map(row), max_lines=4) for row in value[title]]
        yield from block(title, rows)


def _describe_usage(usage: dict[str, Any]) -> str:
    """Describes the tokens of a session; "" if its transcript has none."""
    if not usage["messages"]:
        return ""
    tokens_in = usage["input"] + usage["cache_read"] + usage["cache_write"]
    agents = f"; sub-agents {usage['agents']['output']:,} out" if usage["agents"]["messages"] else ""
    return (
        f"{amount(usage['messages'], 'message')}: {usage['output']:,} out, {tokens_in:,} in "
        f"({usage['cache_read']:,} read from the cache, {usage['cache_write']:,} written to it){agents}; "
        f"{usage['csmd']['tokens']:,} added by csmd"
    )


def _show_digest(text: str) -> Screen:
    """Shows a digest, each part on lines of its own after its name."""
    for line in text.splitlines():
        name, _, content = line.partition(": ")
        yield Line(line, max_lines=5) if content and len(name) <= MAX_PART_CHARS else dim(line)


#: Reason of a digest -> its words.
DIGEST_REASONS = {"compaction": "before a compaction", "end": "at its end", "settled": "of the session so far"}


@SESSION.tool("digest", "csm_memory_distilled_view", verb.ID)
def show_digests(value: dict[str, Any]) -> Screen:
    """Show the digests of a session, and its links to others."""
    for digest in value["digests"]:
        yield dim(f"version {digest['version']}, {DIGEST_REASONS[digest['why']]}, {when(digest['at'])}")
        yield from _show_digest(digest["text"])
        yield ""
    if not value["digests"]:
        yield "no digest yet: a session gets one at its end, or at a pause"
    for link in value["links"]:
        other = f"{display.shorten_session_id(link['session'])} ({when(link['at'])[:10]}, {link['kind']})"
        relation = "gap" if link["kind"] == "gap" else f"{link['direction'].replace('_', ' ')} {other}"
        yield f"{relation}: {link['reason']}"


@SESSION.tool("transcript", "csm_session_transcript", verb.ID)
def show_conversation(value: dict[str, Any]) -> Screen:
    """Show a conversation. Tool traffic takes one line each; rewound turns are marked."""
    yield bold(f"{value['about'] or 'no title'}, {value['id']}")
    yield dim(f"transcript: {value['transcript']}")
    columns = render.width()
    day = ""
    for turn in value["conversation"]:
        role, time = ROLES[turn["kind"]], when(turn["at"])
        if time[:10] != day:
            day = time[:10]
            yield dim(day, gap=True)
        if turn["kind"] in FOLDED_KINDS:
            head, line = f"{time[11:]}  {role:<9} ", squeeze(join(turn["tool"], turn["text"], by=" "))
            yield dim(cut(line, max(columns - len(head), render.MIN_WIDTH)), head=head)
        else:
            yield bold(f"{time[11:]}  {role}{', rewound' * turn['rewound']}", gap=True)
            yield Line(turn["text"], indent=2)
    if not value["conversation"]:
        yield "the conversation is empty"


@SESSION.action(
    "export", verb.ID,
    verb.option("--to", metavar="FILE", default="-", help="The file to write; `-`, the default, prints it."),
)  # fmt: skip
def export(to: str, as_json: bool, **options: Any) -> None:
    """Write a session for the assistant to resume."""
    answer = verb.ask("csm_session_export", **options, asking=verb.resolve_project(None))
    data = "".join(f"{line}\n" for line in answer["lines"]).encode()
    if to != "-":
        path = Path(to).expanduser().absolute()
        if is_there(path) or path.is_symlink():  # a transcript that still exists has more than csmd stored
            raise CsmdError(f"{path} exists already; nothing was written", hint="name another file")
        verb.write_file(path, data, hint="name a file in a directory that you can write to")
        del answer["lines"]
        answer["path"] = str(path)
    if as_json:
        click.echo(wire.pretty(answer))
        return
    if to == "-":
        click.echo(display.remove_unseen(data.decode()) if sys.stdout.isatty() else data, nl=False)
    # On stderr, since the transcript may go to stdout.
    render.show(show_exported(answer, is_file=to != "-"), err=True)


@render.raw
def show_exported(value: dict[str, Any], *, is_file: bool) -> Screen:
    """Shows the command that resumes an exported session."""
    if is_file:
        yield f"written to {value['path']}"
    if value["left_out"]:
        yield f"left out: {amount(value['left_out'], 'rewound turn')}"
    if value["transcript"] == "there":  # it has more than csmd stored, so it must not be replaced
        yield "the assistant still has this session; to resume it"
    else:
        yield "to resume it, put it below the assistant's directory (~/.claude), as"
        yield f"  {value['place']}"
        yield "and run"
    yield f"  {value['resume']}"


#: Fewest sessions for a percentage.
MIN_SESSIONS = 3
#: Models and clients that are shown, the latest ones.
MAX_SPANS = 6


@VERBS.tool("self", "csm_self_model", *verb.PROJECTS)
def show_self(value: dict[str, Any]) -> Screen:
    """Show success rates by kind of work."""
    if not value["sessions"]:
        yield "no figures here yet; --all-projects looks everywhere"
        return
    yield dim(f"{amount(value['sessions'], 'session')}; {value['note']}")
    yield from (warning(f"{change['text']} ({change['id']})", head="worse  ") for change in value["drift"])
    yield ""
    longest = max(len(work["name"]) for work in value["capabilities"])
    yield from (f"{work['name']:<{longest}}  {_describe_success(work)}" for work in value["capabilities"])
    for what, heading in (("model", "models"), ("version", "clients")):
        rows = [row for row in value["continuity"] if row["what"] == what]
        lines: list[Line | str] = []
        for row in rows[-MAX_SPANS:]:
            span = f"{row['since'][:10]} to {row['until'][:10]}"
            lines.append(f"{span}  {row['name']}, {amount(row['sessions'], 'session')}")
        lines += [dim(f"and {len(rows) - MAX_SPANS} earlier (--json)")] if len(rows) > MAX_SPANS else []
        yield from block(heading, lines)
    if links := ", ".join(f"{count} {kind}" for kind, count in value["links"].items()):
        yield dim(f"links between sessions: {links}; `csmd session digest ID` shows those of a session", gap=True)


def _describe_success(work: dict[str, Any]) -> str:
    """Describes how often one kind of work ended well, with its confidence in percent."""
    if not work["decided"]:
        return f" -  {amount(work['sessions'], 'session')}, all without a known outcome"
    figure = f"{work['confidence'] * 100:>3.0f}" if work["decided"] >= MIN_SESSIONS else "few"
    return f"{figure}  {work['well']} of {amount(work['decided'], 'session')} ended well"


@VERBS.tool("errors", "csm_error_list", *verb.PROJECTS, verb.limit(20, 200, "Number of errors."))
@render.if_empty("errors", "no errors here; they are found in the output of commands")
def show_errors(value: dict[str, Any]) -> Screen:
    """List errors, how often they occurred, and the edits that fixed them."""
    for number, error in enumerate(value["errors"]):
        times = f"seen {amount(error['times'], 'time')} in {amount(error['sessions'], 'session')}"
        code = error["exit_code"] > 0 and f"exit code {error['exit_code']}"
        source = error["command"] and join(error["command"], code)
        title = f"{source or 'pasted'}: {times}, last on {error['last_at'][:10]} ({error['id']})"
        yield bold(title, gap=number > 0)
        yield Line(error["message"], indent=2, max_lines=3)
        if error["fixed_at"]:
            files = error["fixed_files"]
            others = f" and {amount(len(files) - 3, 'other file')}" if len(files) > 3 else ""
            reason = f": {squeeze(error['fixed_by'])}" if error["fixed_by"] else ""
            fix = f"an edit of {', '.join(files[:3])}{others} on {error['fixed_at'][:10]}{reason}"
            yield dim(fix, head="  last fixed by ", max_lines=3)
        if error["memory_id"]:
            yield dim(squeeze(error["memory"]), head=f"  {error['memory_id']}  ", max_lines=4)
