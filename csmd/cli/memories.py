"""Commands about memories: remember, list, edit, replace, pin."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import click

from csmd import wire
from csmd.cli import render, verb
from csmd.cli.injections import warn_of_off_mark
from csmd.cli.render import Line, Screen, bold, dim, join, many, percent, warning
from csmd.errors import CsmdError
from csmd.text import display
from csmd.text.display import squeeze
from csmd.vocabulary import (
    AUTHORITY_RANK,
    CATEGORIES,
    GATE_PRIORITY,
    Authority,
    Gate,
    MemdirType,
    MemoryType,
    Tier,
)  # fmt: skip

#: The verbs of this module.
VERBS = verb.Verbs()


ALL_TYPES = (*get_args(MemoryType), *get_args(MemdirType))
#: Relation of a memory to a new one -> its introduction, what the suggested command does, and that command's last word.
RELATED = {
    "replaced": ("Replaced", "Undo", "--undo"),
    "doubtful": ("May be replaced:", "Replace it", ""),
    "related": ("Related memory still active:", "Replace it", ""),
}


@VERBS.action(
    "remember", verb.argument("text"), verb.project_of("The project it holds in; this directory's by default."),
    verb.flag("--all-projects", "everywhere", help="It holds in every project."),
    verb.flag("--pin", help="Never let it fade."),
    verb.option(
        "--type", "type_", metavar="WORD", type=click.Choice(ALL_TYPES),
        help=f"What it is, where its words do not tell: {', '.join(ALL_TYPES)}.",
    ),
    verb.yes("Keep a question, too, and do not ask."),
)  # fmt: skip
def remember(
    text: str, project: str | None, everywhere: bool, pin: bool, type_: str | None, yes: bool, as_json: bool
) -> None:
    """Remember a statement.

    Typed in a terminal it counts as yours. Else it is your assistant's and confirms nothing."""
    by_person, place = verb.is_interactive(), verb.project_params(project, everywhere)
    is_question = not yes and _is_question(text)
    if is_question and by_person:
        verb.ask_first("This asks something: keep it all the same?", err=as_json)
    saved = verb.ask("csm_memory_save", text=text, **place, pin=pin, type=type_ or "", by_person=by_person)
    verb.print_answer(saved, as_json, show_remembered, by_person=by_person)
    if is_question and not by_person and not as_json:
        render.show([dim(f"it asks something and is kept as a fact: csmd forget {saved['id']}")])
    warn_of_off_mark(place["project"], as_json)


def _is_question(text: str) -> bool:
    """Whether every sentence of a text is a question."""
    from csmd.text import prose

    parts = prose.split_sentences(squeeze(text))
    return bool(parts) and all(part.rstrip(" )\"'”’»").endswith("?") for part in parts)


def show_remembered(value: dict[str, Any], *, by_person: bool) -> Screen:
    """What was remembered, and where it holds."""
    state = "remembered" if value["new"] else "confirmed" if by_person else "known already"
    workspace = f" in the workspace {value['workspace']}" if value["workspace"] else ""
    place = f"in {value['project']}" if value["project"] else f"everywhere{workspace}"
    yield f"{state} as {value['id']}: {value['text']}"
    yield dim(f"it holds {place}")
    if value["waits"]:
        yield warning(
            "typed by no person: search finds it, and no session is told of it before the user accepts it "
            "(`csmd review`)"
        )
    if value["paused"] and by_person:
        yield warning("kept, though csmd is paused: you said it yourself")
    for other in value["beside"]:
        relation, does, end = RELATED[other["is"]]
        yield Line(f"{relation} {other['id']}: {other['text']}", most=4)
        if other["rest"]:
            yield Line(f"Still active from it: {other['rest']['id']}: {other['rest']['text']}", indent=2, most=4)
        yield dim(f"{does}: csmd supersede {other['id']} {end or value['id']}", indent=2)


#: Memories of a gate that are listed unless --limit says otherwise: when one project is shown.
MAX_HERE = 8
#: The same when several projects are shown.
MAX_ANYWHERE = 3
#: More memories than any topic has.
ALL_OF_TOPIC = 5000
_SPAN = re.compile(r"(\d+)\s*(d|w)")
_DAYS = {"d": 1, "w": 7}


def _since(_context: click.Context, _parameter: click.Parameter, typed: str) -> str:
    """Turns a typed day, or number of days or weeks ago, into the beginning of a stored time; "" for none."""
    span = _SPAN.fullmatch(typed.strip())
    try:
        if span:
            ago = timedelta(days=int(span[1]) * _DAYS[span[2]])
            return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S")
        return datetime.fromisoformat(typed).strftime("%Y-%m-%d") if typed else ""
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{typed!r} is no day (2026-05-04) and no span (30d, 6w)") from None


@VERBS.action(
    "memories", *verb.PROJECTS, verb.one_of("gate", get_args(Gate), "WORD"),
    verb.one_of("category", [*CATEGORIES], "WORD"),
    verb.one_of("type", get_args(MemoryType), "WORD"),
    verb.option("--tier", type=click.Choice(get_args(Tier)), help="Only of this tier."),
    verb.option("--authority", type=click.Choice(get_args(Authority)), help="Only what they said."),
    verb.text("--origin", "WORD", "Only what came so: stated, model_saved."),
    verb.text("--since", "DAY", "Only what was said since: 2026-05-04, 30d, 6w.", callback=_since),
    verb.text("--topic", "NAME", "Only what is about it; `csmd topics` lists them."),
    verb.text("--session", "ID", "Only what was said in this session."),
    verb.flag("--superseded", help="Only what something else has taken the place of."),
    verb.option("--limit", type=click.IntRange(1), help="How many of each gate; 8 of one project, 3 of several."),
    verb.ALL,
)  # fmt: skip
def memories(
    project: str | None, all_projects: bool, since: str, topic: str, session: str, superseded: bool, limit: int | None,
    everything: bool, as_json: bool,
    **filters: str | None,
) -> None:  # fmt: skip
    """List what is remembered here."""
    place = verb.project_params(project, all_projects)
    answer = (
        verb.ask("csm_memory_by_topic", topic=topic, limit=ALL_OF_TOPIC, **place)
        if topic
        else verb.ask("csm_memory_list", **place)
    )
    rows = [
        row
        for row in answer["memories"]
        if (row["superseded_by"] or not superseded)
        and row["confirmed_at"] >= since
        and (not session or any(ident.startswith(session) for ident in row["sessions"]))
        and all(row[name] == value for name, value in filters.items() if value)
    ]
    # Superseded memories are counted, not listed.
    shown = rows if superseded else [row for row in rows if not row["superseded_by"]]
    several = len({row["project"] for row in shown}) > 1
    most = len(shown) if everything else limit or (MAX_ANYWHERE if several else MAX_HERE)
    if as_json:
        listed = [row for _, gates in _choose(shown, most) for _, chosen, _ in gates for row in chosen]
        click.echo(wire.pretty({"memories": rows if limit is None or everything else listed}))
    else:
        render.show(show_listed(shown, in_all=len(answer["memories"]), superseded=len(rows) - len(shown), most=most))


def _choose(rows: list[dict[str, Any]], most: int) -> list[tuple[str, list[tuple[Gate, list[dict[str, Any]], int]]]]:
    """Groups memories: [(project, [(gate, memories to list, number of memories)])]."""
    chosen = []
    for project, in_project in by_project(rows):
        gates = []
        for gate in sorted(GATE_PRIORITY, key=lambda name: -GATE_PRIORITY[name]):
            of_gate = sorted((row for row in in_project if row["gate"] == gate), key=_order, reverse=True)
            # Leaving out a single one would not save a line.
            gates.append((gate, of_gate if len(of_gate) <= most + 1 else of_gate[:most], len(of_gate)))
        chosen.append((project, [row for row in gates if row[2]]))
    return chosen


def show_listed(rows: list[dict[str, Any]], *, in_all: int = 0, superseded: int = 0, most: int = 2**31) -> Screen:
    """Memories by project and gate; in each the user's and the surest first, at most `most` of a gate."""
    if not rows:
        nothing = "no memories yet; they come from sessions, `csmd import` and `csmd remember`"
        yield f"none of {many(in_all, 'memory')} is such" if in_all else nothing
        return
    shown, projects = 0, _choose(rows, most)
    for number, (project, gates) in enumerate(projects):
        if len(projects) > 1:
            yield project_heading(project, gap=bool(number))
        for gate, listed, count in gates:
            shown += len(listed)
            part = f"{len(listed)} of " if len(listed) < count else ""
            yield dim(f"{gate}, {part}{count:,}")
            for row in listed:
                yield Line(squeeze(row["text"]), indent=2, most=4)
                yield dim(_about(row), indent=6)
    left_out = shown < len(rows) and f"{len(rows) - shown:,} not shown (--all)"
    replaced = superseded and f"{superseded:,} superseded (--superseded)"
    yield dim(join(many(len(rows), "memory"), left_out, replaced, by="; "), gap=True)


def by_project(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Groups rows by project, in the order of the projects' paths."""
    projects = sorted({str(row["project"]) for row in rows})
    return [(project, [row for row in rows if row["project"] == project]) for project in projects]


def project_heading(project: str, *, gap: bool) -> Line:
    """The heading of the rows of one project among several."""
    return bold(render.shorten(project, render.width(), end=True) or "everywhere", gap=gap)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    """Sort key, greatest first: pinned, said by a person, sure, new."""
    rank = AUTHORITY_RANK[row["authority"]]
    return row["pinned"], row["origin"] != "model_saved", rank, round(row["confidence"], 1), row["confirmed_at"]


def _about(row: dict[str, Any]) -> str:
    """The line below a memory in a list: its id, date, confidence, category and marks."""
    marks = join(
        row["pinned"] and "pinned",
        row["times"] > 1 and f"said {row['times']} times",
        row["authority"] == "assistant" and "by the assistant",
        row["authority"] == "external" and display.said_by("external", row.get("author", "")),
        row["origin"] == "model_saved" and "unsaid",
        row["attention"] == "COLD" and "cold",
        row.get("tier") == "archive" and "archived",
        row["superseded_by"] and f"superseded by {row['superseded_by']}",
        row["is_refuted"] and "refuted",
        row["is_edited"] and "its code edited since",
    )
    sure = f"{percent(row['confidence']):>5}"
    return join(row["id"], row["confirmed_at"][:10], sure, row["category"], marks, by="  ")


@VERBS.action("edit", verb.ID, verb.optional("wording", "[TEXT]"))
def edit(id: str, wording: str, as_json: bool) -> None:  # noqa: A002 - the tools' word
    """Reword a memory: as TEXT, or in your editor."""
    if not verb.is_interactive():
        raise CsmdError("only a person at a terminal can change the wording of a memory", hint="type it in a terminal")
    memory = verb.ask("csm_memory_show", id=id, asking=verb.resolve_project(None))
    wording = wording or verb.edit_text(memory["text"])
    change = {"id": memory["id"], "text": wording, "version": memory["version"], "as_json": as_json}
    verb.reply("csm_memory_edit", show_rewording, change, sends_by_person=True)


def show_rewording(value: dict[str, Any]) -> Screen:
    """The new wording and the memory that it replaces."""
    if not value["changed"]:
        return [f"nothing was changed: {value['id']} stays as it is"]
    undo = f"it takes the place of {value['id']}; `csmd undo` takes that back"
    return render.done(f"{value['made']}: {value['text']}", undo)


@VERBS.action(
    "supersede", verb.argument("old", "OLD"), verb.optional("new", "NEW"),
    verb.flag("--undo", help="Restore OLD; csmd does not replace it with the same memory again."),
)  # fmt: skip
def supersede(**options: Any) -> None:
    """Replace memory OLD with NEW (--undo restores OLD)."""
    if not options["new"] and not options["undo"]:
        raise click.UsageError("name the memory that holds now, or give --undo")
    verb.reply("csm_memory_supersede", show_superseded, options, sends_by_person=True)


def show_superseded(value: dict[str, Any]) -> Screen:
    """The memory that was replaced, or restored."""
    if value["undone"]:
        stays = f"{percent(value['confidence'])} sure; {value['was_superseded_by']} stays"
        yield from render.done(f"{value['id']} holds again: {value['text']}", stays)
        return
    yield f"Replaced {value['id']} with {value['superseded_by']}: {value['text']}"
    if value["rest"]:
        yield Line(f"Still active from it: {value['rest']['id']}: {value['rest']['text']}", most=4)
    yield dim("Undo: csmd undo")


def show_pinned(value: dict[str, Any]) -> Screen:
    """Whether a memory is pinned now."""
    is_pin = value["verb"] == "pin"
    if not value["changed"]:
        return [f"Nothing to do: {value['id']} is {'' if is_pin else 'not '}pinned"]
    change = f"{'Pinned' if is_pin else 'Unpinned'} {value['id']}: {value['text']}"
    return render.done(change, "Undo: csmd undo")


VERBS.row(
    "pin", "csm_memory_pin", show_pinned, "Pin a memory: it never fades and stays as sure as it is.", verb.ID,
    sends_by_person=True, fixed={"undo": False},
)  # fmt: skip


VERBS.row(
    "unpin", "csm_memory_pin", show_pinned, "Unpin a memory: it fades from now on as others do.", verb.ID,
    sends_by_person=True, fixed={"undo": True},
)  # fmt: skip
