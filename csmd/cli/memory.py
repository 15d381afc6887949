"""The verbs about what is remembered: the list, one thing in full, another wording."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import click

from csmd.cli import errors, show_memory, show_review
from csmd.cli.ask import ask, here, json_option, looking, one_of, out, person_is_there, project_options
from csmd.errors import CsmdError
from csmd.model import CATEGORIES, Authority, Gate, Tier

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
        out({"memories": rows if limit is None else rows[:limit]}, True, show_memory.listed)
        return
    gone = 0
    if not superseded:  # they are told, not listed: what took their place is
        gone = sum(bool(row["superseded_by"]) for row in rows)
        rows = [row for row in rows if not row["superseded_by"]]
    several = len({row["project"] for row in rows}) > 1
    most = len(rows) if everything else limit or (MOST_ANYWHERE if several else MOST_HERE)
    show_memory.listed({"memories": rows, "known": len(found), "superseded": gone}, most=most)


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
        out(ask("csm_memory_show", id=typed, asking=asking), as_json, show_memory.memory)
        return
    if _ERROR_ID.fullmatch(typed):
        out(ask("csm_error_list", id=typed, asking=asking), as_json, errors.shown)
        return
    if _CANDIDATE_ID.fullmatch(typed):
        try:
            found = ask("csm_candidate_show", id=typed, asking=asking)
        except CsmdError as error:
            if "there is no" not in error.what:
                raise
        else:
            out(found, as_json, show_memory.candidate)
            return
    out(ask("csm_turn_show", id=typed, asking=asking), as_json, show_memory.turn)


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
    out(found, as_json, show_review.edited)


def edited(said: str) -> str:
    """What somebody makes of a text in their editor ($VISUAL, $EDITOR); "" when they leave it as it is."""
    note = "# Lines that begin with # are left out. An empty text changes nothing."
    try:
        typed = click.edit(f"{said}\n\n{note}\n", extension=".txt", require_save=True)
    except click.ClickException as error:
        raise CsmdError(f"the editor: {error.message}", hint="csmd edit ID --text TEXT, or set EDITOR") from None
    lines = (typed or "").splitlines()
    return " ".join(line.strip() for line in lines if not line.startswith("#")).strip()


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (memories, show_one, edit)
