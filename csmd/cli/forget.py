"""Commands that remove: forget, which also purges, and scan, which finds secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.projects import amounts, ask_as_person
from csmd.cli.render import Line, Screen
from csmd.errors import CsmdError
from csmd.paths import is_directory
from csmd.text.display import amount, squeeze

#: The verbs of this module.
VERBS = verb.Verbs()


#: Rows shown of a list.
SHOWN = 20
#: Line numbers shown of one file.
LINES = 6
#: What looks like a memory's id, or the beginning of one.
MEMORY_ID = re.compile(r"m[0-9a-f]+")


def _place_words(project: str) -> str:
    return f"in {Path(project).name or project}" if project else "everywhere"


def _first_rows(rows: Sequence[Any], line: Callable[[Any], str], more: str = "more") -> Screen:
    """The first rows, then how many more there are."""
    yield from (f"  {line(row)}" for row in rows[:SHOWN])
    if len(rows) > SHOWN:
        yield f"  and {len(rows) - SHOWN} {more} (--json)"


def show_forgotten(value: dict[str, Any]) -> Screen:
    """The forgotten memory, its scope, and where the same sentence is still remembered."""
    yield Line(squeeze(value["text"]), head="forgotten: ")
    yield f"kept out {_place_words(value['project'])}, until you say it anew"
    if value.get("team"):
        yield OFF_THE_SERVER
    if value["elsewhere"]:
        yield "the same sentence is still remembered, and stays so:"
    yield from _first_rows(value["elsewhere"], lambda row: f"{row['id']}  {_place_words(row['project'])}")


@render.raw
def show_planned(value: dict[str, Any]) -> Screen:
    """What a purge would remove, in which projects, and from which backups."""
    yield f"to be purged: {value['about']}"
    if not value["counts"]:
        yield "  csmd holds nothing of it"
    yield from (f"  {number:>6}  {name}" for name, number in value["counts"].items())
    if value["places"]:
        yield "in every project where it is stored:"
    yield from _first_rows(value["places"], _counts_in_place, "more projects")
    if value["backups"]:
        copies = f"{amount(value['backups'], 'copy')} of the database"
        yield f"backups go with it: {f'of {copies} those that hold it' if value['what'] == 'text' else copies}"
    yield from _consequences(value)


def _counts_in_place(place: dict[str, Any]) -> str:
    nouns = {name: noun for name, noun in (("memories", "memory"), ("turns", "turn")) if place[name]}
    return f"{' and '.join(amounts(place, **nouns))} {_place_words(place['project'])}"


@render.raw
def show_purged(value: dict[str, Any]) -> Screen:
    """The result of a purge, and what is left."""
    yield f"purged: {value['about']}"
    yield from (f"  {number:>6}  {name}" for name, number in value["counts"].items())
    for action in ("removed", "rewritten"):
        yield from (f"{action}: {path}" for path in value[f"files_{action}"])
    for file in value["left"]:
        needed = " (csmd needs it to take its hooks out again)" if file["path"] in value["files_kept"] else ""
        yield f"still in: {file['path']}, {amount(file['count'], 'time')}{needed}"
    if not value["left"]:
        yield "nothing of it is left in csmd's files"
    if value.get("team"):
        yield OFF_THE_SERVER
    yield from _consequences(value)


#: Note on a forgotten memory that was shared.
OFF_THE_SERVER = (
    "what was shared of it is taken off the team's server at the next exchange, and colleagues' homes remove theirs; "
    "out of reach: that server's write-ahead log, replicas and backups, and backups of colleagues' homes"
)


def _consequences(value: dict[str, Any]) -> Screen:
    """What a purge means for later text, and the assistant's files that still hold it."""
    if value["what"] == "text":
        yield "from now on these words are stored as [purged] and make no memory,"
        yield "until you run `csmd forget --lift` with the same words"
    if value["hosts"]:
        yield "the assistant's own files hold it, too; csmd does not change them:"
    yield from _first_rows(value["hosts"], _line_numbers)


def _line_numbers(file: dict[str, Any]) -> str:
    numbers = ", ".join(map(str, file["lines"][:LINES]))
    return f"{file['path']}, line {numbers}{', …' if file['count'] > LINES else ''}"


@render.raw
def show_readmitted(value: dict[str, Any]) -> Screen:
    """Whether something purged is let in again."""
    if value["lifted"]:
        yield f"{value['about']}: is let in again; what was removed does not come back by itself"
        return
    yield f"nothing was lifted: {value['about']} was not purged"
    if value["what"] == "text":
        yield "give what the purge was of: the same words, whole and in order; of a memory, whose"
        yield "id went with it, the words it said; of a turn or session its whole id, and of a"
        yield "project its path"


@VERBS.tool(
    "scan", "csm_privacy_scan", verb.flag("--fix", help="Take out what is found; backups that hold it are removed."),
    verb.flag("--transcripts", help="Count what the assistant's own transcripts hold, too."),
    sends_by_person=True, scope="none", is_job=True,
)  # fmt: skip
@render.raw
def show_scanned(value: dict[str, Any]) -> Screen:
    """Look for secrets in what csmd holds, by the rules of today."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in value["kinds"].items())
    none = f"no secret found in what csmd holds, {value['took_s']:.1f} s"
    yield f"{amount(value['secrets'], 'secret')}: {kinds}" if value["secrets"] else none
    for secret in value["found"][:SHOWN]:
        place = secret.get("file") or f"{secret['table']}.{secret['column']} {secret['id'][:36]}"
        length = f"{secret['preview']} {amount(secret['length'], 'character')}" if secret["length"] else ""
        yield f"  {secret['kind']}: {length or amount(secret['count'], 'time')}, in {place}"
    rest = max(0, len(value["found"]) - SHOWN) + value["more"]
    if rest:
        yield f"  and {rest} more (csmd scan --json)"
    if value["secrets"]:
        yield f"{amount(value['fixed'], 'place')} cleaned" if value["fixed"] else "`csmd scan --fix` takes them out"
    yield from (f"{file['secrets']} in the assistant's {file['path']}" for file in value["transcripts"])
    yield from (f"degraded: {reason}" for reason in value["degraded"])


@VERBS.action(
    "forget", verb.argument("what", "ID|WHAT"), verb.flag("--purge", help="Remove it from everything csmd holds."),
    verb.option(
        "--as", "kind", type=click.Choice(("memory", "turn", "session", "project", "text")), default=None,
        help="What a purge is of; else it is found out.",
    ),
    verb.flag("--dry-run", help="Show what a purge would remove."),
    verb.yes("Do not ask."), verb.flag("--lift", help="Let in again what was purged."),
)  # fmt: skip
def forget(what: str, purge: bool, kind: str | None, dry_run: bool, yes: bool, lift: bool, as_json: bool) -> None:
    """Forget a memory for good. With --purge a memory, turn, session, project or text, with all traces.

    WHAT is asked for if it is `-`."""
    by_person = verb.is_interactive()
    if not purge and not lift:
        if kind or dry_run:
            raise click.UsageError("--as and --dry-run go with --purge")
        asking = verb.resolve_project(None)
        if by_person and not yes and MEMORY_ID.fullmatch(what):
            memory = verb.ask("csm_memory_show", id=what, asking=asking, only_fading=True)
            verb.ask_first(f"Forget for good: {squeeze(memory['text'])}?", err=as_json)
        verb.print_answer(ask_as_person("csm_memory_delete", id=what, asking=asking), as_json, show_forgotten)
        return
    what = click.prompt("what", hide_input=True) if what == "-" else what
    # A purged project is unknown to the daemon: only its path can be given.
    named = verb.project_params(what)["project"] if kind == "project" and not lift else _absolute(what, kind)
    params = {"what": named, "kind": kind or "", "by_person": by_person}
    if lift:
        verb.confirm("Let it in again?", yes=yes)
        lifted = verb.ask("csm_privacy_lift", **params)
        verb.print_answer(lifted, as_json, show_readmitted)
        if not lifted["lifted"]:
            raise SystemExit(1)
        return
    if not by_person and not dry_run:
        raise CsmdError("only a person at a terminal can have csmd purge something", hint="type it in a terminal")
    if yes and not dry_run:
        verb.confirm("", yes=True)
    if dry_run or not yes:
        planned = verb.work("csm_privacy_purge", **params, dry_run=True, asking=verb.resolve_project(None))
        if dry_run:
            verb.print_answer(planned, as_json, show_planned)
            return
        render.show(show_planned(planned), err=as_json)
        verb.ask_first("Purge it from everything csmd holds? It cannot be undone.", err=as_json)
    done = verb.work("csm_privacy_purge", **params)
    verb.print_answer(done, as_json, show_purged)
    if done["left"]:
        raise SystemExit(1)


def _absolute(what: str, kind: str | None) -> str:
    """A project's path as the daemon knows it; everything else as it was typed."""
    place = Path(what)
    named = kind == "project" or (kind is None and (place.is_absolute() or what.startswith((".", "~"))))
    place = place.expanduser() if named else place
    return os.path.realpath(place) if kind == "project" or (named and is_directory(place)) else what
