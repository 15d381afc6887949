"""The verbs about what is remembered: search, list, show, edit, topics, tags, links, and what failed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import click

from csmd.cli import render
from csmd.cli.render import console, many, print_text, shorten, table
from csmd.cli.verb import ask, here, json_option, looking, one_of, out, person_is_there, project_options
from csmd.errors import CsmdError
from csmd.model import CATEGORIES, Authority, Gate, Tier
from csmd.text import display
from csmd.text.display import amount


@click.command()
@project_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200), help="How many.")
@json_option
def errors(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List what failed here, how often, and what mended it."""
    out(ask("csm_error_list", **looking(project, all_projects), limit=limit), as_json, shown)


def shown(value: dict[str, Any]) -> None:
    """The failures, those of the most sessions first, each with what it said and what mended it."""
    console = render.console()
    if not value["errors"]:
        render.print_text(console, "nothing is known to have failed here; it is found in what commands answered")
        return
    for number, one in enumerate(value["errors"]):
        if number:
            console.print()
        times = f"seen {amount(one['times'], 'time')} in {amount(one['sessions'], 'session')}"
        code = f", exit code {one['exit_code']}" if one["exit_code"] > 0 else ""
        command = f"{one['command']}{code}" if one["command"] else "pasted"
        told = f"{command}: {times}, last on {one['last_at'][:10]} ({one['id']})"
        render.print_text(console, told, style="bold")
        render.print_text(console, one["message"], indent=2, most=3)
        for line in _mended(one):
            render.print_text(console, line, head="  last fixed by ", most=3, style="dim")
        if one["memory_id"]:
            render.print_text(
                console, display.squeeze(one["memory"]), head=f"  {one['memory_id']}  ", most=4, style="dim"
            )


def _mended(one: dict[str, Any]) -> list[str]:
    """What mended it, in one line; [] where that is not known."""
    if not one["fixed_at"]:
        return []
    files = one["fixed_files"]
    named = ", ".join(files[:3]) + (f" and {amount(len(files) - 3, 'other file')}" if len(files) > 3 else "")
    why = f": {display.squeeze(one['fixed_by'])}" if one["fixed_by"] else ""
    return [f"an edit of {named} on {one['fixed_at'][:10]}{why}"]


#: Memories of a gate that are listed unless --limit says otherwise: of one project, of several.
MOST_HERE, MOST_ANYWHERE = 8, 3
#: The beginning of a memory's id, of a candidate's; turns have the uuids of their lines, which may begin like a candidate.
_MEMORY_ID = re.compile(r"m[0-9a-f]*")
_CANDIDATE_ID = re.compile(r"c[0-9a-f]*")
_ERROR_ID = re.compile(r"x[0-9a-f]+")
_SPAN = re.compile(r"(\d+)\s*(d|w)")
_DAYS = {"d": 1, "w": 7}


def _since(_context: click.Context, _parameter: click.Parameter, typed: str) -> str:
    """A day, or so many days or weeks ago, as the beginning of a stored time; "" for none."""
    span = _SPAN.fullmatch(typed.strip())
    try:
        if span:
            ago = timedelta(days=int(span[1]) * _DAYS[span[2]])
            return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S")
        return datetime.fromisoformat(typed).strftime("%Y-%m-%d") if typed else ""
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{typed!r} is no day (2026-05-04) and no span (30d, 6w)") from None


@click.command()
@project_options
@click.option("--gate", metavar="WORD", type=click.Choice(get_args(Gate)), help=one_of("gate", get_args(Gate)))
@click.option("--category", metavar="WORD", type=click.Choice(list(CATEGORIES)), help=one_of("category", CATEGORIES))
@click.option("--tier", type=click.Choice(get_args(Tier)), help="Only of this tier.")
@click.option("--authority", type=click.Choice(get_args(Authority)), help="Only what they said.")
@click.option("--origin", metavar="WORD", default="", help="Only what came so: stated, model_saved.")
@click.option(
    "--since", metavar="DAY", default="", callback=_since, help="Only what was said since: 2026-05-04, 30d, 6w."
)
@click.option("--topic", metavar="NAME", default="", help="Only what is about it; `csmd topics` lists them.")
@click.option("--superseded", is_flag=True, help="Only what something else has taken the place of.")
@click.option("--limit", type=click.IntRange(1), help="How many of each gate; 8 of one project, 3 of several.")
@click.option("--all", "everything", is_flag=True, help="List every one.")
@json_option
def memories(
    project: str | None, all_projects: bool, since: str, topic: str, superseded: bool, limit: int | None, everything: bool, as_json: bool,
    **wanted: str | None,
) -> None:  # fmt: skip
    """List what is remembered here."""
    place = looking(project, all_projects)
    listed = ask("csm_memory_by_topic", topic=topic, **place) if topic else ask("csm_memory_list", **place)
    found = listed["memories"]
    rows = [row for row in found if _fits(row, since=since, superseded=superseded, wanted=wanted)]
    if as_json:
        out({"memories": rows if limit is None else rows[:limit]}, True, render.show_listed)
        return
    gone = 0
    if not superseded:  # they are told, not listed: what took their place is
        gone = sum(bool(row["superseded_by"]) for row in rows)
        rows = [row for row in rows if not row["superseded_by"]]
    several = len({row["project"] for row in rows}) > 1
    most = len(rows) if everything else limit or (MOST_ANYWHERE if several else MOST_HERE)
    render.show_listed({"memories": rows, "known": len(found), "superseded": gone}, most=most)


def _fits(row: dict[str, Any], *, since: str, superseded: bool, wanted: dict[str, str | None]) -> bool:
    return (
        (not superseded or bool(row["superseded_by"]))
        and row["confirmed_at"] >= since
        and all(row[name] == value for name, value in wanted.items() if value)
    )


@click.command("show")
@click.argument("ident", metavar="ID")
@json_option
def show_one(ident: str, as_json: bool) -> None:
    """Show a memory, a turn, an error or a candidate in full."""
    typed, asking = ident.strip(), here(None)
    if typed.startswith("cli:"):
        raise CsmdError(f"{typed} was typed in a terminal, and no session has it", hint="csmd memories")
    if _MEMORY_ID.fullmatch(typed):
        out(ask("csm_memory_show", id=typed, asking=asking), as_json, render.show_memory)
        return
    if _ERROR_ID.fullmatch(typed):
        out(ask("csm_error_list", id=typed, asking=asking), as_json, shown)
        return
    if _CANDIDATE_ID.fullmatch(typed):
        try:
            found = ask("csm_candidate_show", id=typed, asking=asking)
        except CsmdError as error:
            if "there is no" not in error.what:
                raise
        else:
            out(found, as_json, render.show_candidate)
            return
    out(ask("csm_turn_show", id=typed, asking=asking), as_json, render.show_turn)


@click.command()
@click.argument("ident", metavar="ID")
@click.option("--text", metavar="TEXT", default=None, help="The new wording; else your editor opens.")
@json_option
def edit(ident: str, text: str | None, as_json: bool) -> None:
    """Put your wording in a memory's place."""
    by_person = person_is_there()
    if not by_person:
        raise CsmdError("only a person at a terminal can change the wording of a memory", hint="type it in a terminal")
    known = ask("csm_memory_show", id=ident, asking=here(None))
    typed = edited(known["text"]) if text is None else text
    found = ask(
        "csm_memory_edit", id=known["id"], text=typed, version=known["version"], asking=here(None), by_person=by_person
    )
    out(found, as_json, render.show_review_edited)


def edited(said: str) -> str:
    """What somebody makes of a text in their editor ($VISUAL, $EDITOR); "" when they leave it as it is."""
    note = "# Lines that begin with # are left out. An empty text changes nothing."
    try:
        typed = click.edit(f"{said}\n\n{note}\n", extension=".txt", require_save=True)
    except click.ClickException as error:
        raise CsmdError(f"the editor: {error.message}", hint="csmd edit ID --text TEXT, or set EDITOR") from None
    lines = (typed or "").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("#")).strip()


#: Topics that are listed of one project, of each of several.
TOPICS_HERE, TOPICS_ANYWHERE = 30, 8


@click.command()
@click.argument("name", metavar="[NAME]", required=False, default="")
@project_options
@click.option("--all", "everything", is_flag=True, help="List every one.")
@json_option
def topics(name: str, project: str | None, all_projects: bool, everything: bool, as_json: bool) -> None:
    """List what is remembered here by what it is about.

    With NAME the memories that are about it.
    """
    place = looking(project, all_projects)
    if name:
        out(ask("csm_memory_by_topic", topic=name, **place), as_json, lambda value: _one(value, everything=everything))
    else:
        out(ask("csm_memory_topics", **place), as_json, lambda value: _listed(value["topics"], everything=everything))


@click.command()
@click.argument("ident", metavar="ID")
@click.argument("topic", metavar="TOPIC")
@click.option("--undo", is_flag=True, help="Take the topic off; csmd does not put it back by itself.")
@json_option
def tag(ident: str, topic: str, undo: bool, as_json: bool) -> None:
    """Say that memory ID is about TOPIC."""
    tool = "csm_memory_untag" if undo else "csm_memory_tag"
    found = ask(tool, id=ident, topic=topic, asking=here(None), by_person=person_is_there())
    out(found, as_json, _tagged)


@click.command()
@click.argument("origin", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--as", "relationship", metavar="WORD", default="relates_to", show_default=True, help="depends_on, contradicts, caused ...")  # fmt: skip
@click.option("--weight", default="1", show_default=True, metavar="NUMBER", help="Above 0 and at most 1.")
@click.option("--undo", is_flag=True, help="Take the link away.")
@json_option
def link(origin: str, target: str, relationship: str, weight: str, undo: bool, as_json: bool) -> None:
    """Link memory FROM to memory TO."""
    params: dict[str, Any] = {
        "from": origin, "to": target, "relationship": relationship, "weight": weight, "undo": undo,
        "asking": here(None), "by_person": person_is_there(),
    }  # fmt: skip
    out(ask("csm_memory_link", **params), as_json, _linked)


def _listed(rows: list[dict[str, Any]], *, everything: bool) -> None:
    screen = console()
    if not rows:
        print_text(screen, "no topics yet: they are found where several memories of a project are about the same")
        return
    places = sorted({row["project"] for row in rows})
    most = TOPICS_HERE if len(places) == 1 else TOPICS_ANYWHERE
    left = 0
    for number, place in enumerate(places):
        if len(places) > 1:
            if number:
                screen.print()
            print_text(screen, shorten(place, screen.width) or "everywhere", style="bold")
        found = [row for row in rows if row["project"] == place]
        shown = found if everything else found[:most]
        left += len(found) - len(shown)
        table(
            screen,
            [("topic", "left"), ("memories", "right"), ("last said", "left")],
            [[row["name"], f"{row['memories']:,}", row["last_at"][:10]] for row in shown],
        )
    screen.print()
    more = f"; {left:,} not shown (--all)" if left else ""
    print_text(screen, f"{many(len(rows), 'topic')}{more}; `csmd topics NAME` lists the memories of one", style="dim")


def _one(value: dict[str, Any], *, everything: bool) -> None:
    rows = value["memories"]
    if not rows:
        print_text(console(), f"nothing here is about {value['topic']!r}; `csmd topics` lists what something is about")
        return
    holds = [row for row in rows if not row["superseded_by"]]
    most = len(rows) if everything else render.MOST_OF_TOPIC
    render.show_listed({"memories": holds, "known": len(rows), "superseded": len(rows) - len(holds)}, most=most)


def _tagged(value: dict[str, Any]) -> None:
    screen = console()
    print_text(screen, f"{value['id']}: {value['text']}", most=3)
    said = ", ".join(one["name"] for one in value["topics"]) or "nothing that is shared"
    print_text(screen, f"it is about {said}", style="dim")
    if value["superseded_by"] and any(one["name"] == value["topic"] for one in value["topics"]):
        new = value["superseded_by"]
        print_text(
            screen, f"it holds no longer, so `csmd topics` does not list it; {new} took its place: csmd tag {new} TOPIC"
        )


def _linked(value: dict[str, Any]) -> None:
    screen = console()
    done = "no longer linked" if value["undone"] else "linked"
    words = render.RELATIONS.get(value["relationship"], (value["relationship"].replace("_", " "),))[0]
    print_text(screen, f"{done}: {value['from']['id']} {words} {value['to']['id']}")
    for one in (value["from"], value["to"]):
        print_text(screen, one["text"], head=f"  {one['id']}  ", most=2, style="dim")


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    errors,
    memories,
    show_one,
    edit,
    topics,
    tag,
    link,
)
