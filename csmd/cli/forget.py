"""Commands that delete memories and text: forget, which also purges, and scan, which finds secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.projects import amounts
from csmd.cli.render import Line, Screen
from csmd.paths import is_directory
from csmd.text.display import amount, squeeze

VERBS = verb.Verbs()
#: Rows of a list that are shown.
MAX_ROWS = 20
#: Line numbers of one file that are shown.
MAX_LINE_NUMBERS = 6
#: Note on a forgotten memory that was shared.
TEAM_NOTE = (
    "its shared copy is deleted from the team's server, and from colleagues' machines, at the next exchange; "
    "out of reach: that server's write-ahead log, replicas and backups, and colleagues' backups"
)


def _describe_scope(project: str) -> str:
    return f"in {Path(project).name or project}" if project else "everywhere"


def _first_rows(rows: Sequence[Any], describe: Callable[[Any], str], more: str = "more") -> Screen:
    """Shows the first rows, then the number of the others."""
    yield from (f"  {describe(row)}" for row in rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        yield f"  and {len(rows) - MAX_ROWS} {more} (--json)"


def show_forgotten(value: dict[str, Any]) -> Screen:
    """Shows the forgotten memory, its scope, and other memories with the same sentence."""
    yield Line(squeeze(value["text"]), head="forgotten: ")
    where = _describe_scope(value["project"]) if value["project"] else "anywhere"
    yield f"Will not be relearned {where} unless you say it again"
    if value.get("team"):
        yield TEAM_NOTE
    if value["elsewhere"]:
        yield "Memories with the same sentence that stay:"
    yield from _first_rows(value["elsewhere"], lambda row: f"{row['id']}  {_describe_scope(row['project'])}")


@render.raw
def show_planned(value: dict[str, Any]) -> Screen:
    """Shows the rows, projects and backups that a purge would delete."""
    yield f"to be purged: {value['about']}"
    if not value["counts"]:
        yield "  csmd has stored nothing of it"
    yield from _list_counts(value["counts"])
    if value["places"]:
        yield "in every project where it is stored:"
    yield from _first_rows(value["places"], _describe_place, "more projects")
    if value["backups"]:
        copies = f"{amount(value['backups'], 'copy')} of the database"
        yield f"backups to be deleted: {f'of {copies} those that contain it' if value['what'] == 'text' else copies}"
    yield from _consequences(value)


def _list_counts(counts: dict[str, int]) -> Screen:
    """The numbers of rows by kind: of the columns of a table, the largest number."""
    kinds: dict[str, int] = {}
    for name, number in counts.items():
        kind = name.partition(".")[0].replace("_", " ")
        kinds[kind] = max(kinds.get(kind, 0), number)
    return (f"  {number:>6}  {kind}" for kind, number in kinds.items())


def _describe_place(row: dict[str, Any]) -> str:
    nouns = {name: noun for name, noun in (("memories", "memory"), ("turns", "turn")) if row[name]}
    return f"{' and '.join(amounts(row, **nouns))} {_describe_scope(row['project'])}"


@render.raw
def show_purged(value: dict[str, Any]) -> Screen:
    """Shows the result of a purge, and the files that still contain the text."""
    yield f"purged: {value['about']}"
    yield from _list_counts(value["counts"])
    for action in ("removed", "rewritten"):
        yield from (f"{action}: {path}" for path in value[f"files_{action}"])
    for file in value["left"]:
        reason = " (csmd needs it to remove its hooks)" if file["path"] in value["files_kept"] else ""
        yield f"still in: {file['path']}, {amount(file['count'], 'time')}{reason}"
    if not value["left"]:
        yield "csmd's files no longer contain it"
    if value.get("team"):
        yield TEAM_NOTE
    yield from _consequences(value)


def _consequences(value: dict[str, Any]) -> Screen:
    """Shows the effect of a purge on later text, and the assistant's files that still contain the purged text."""
    if value["what"] == "text":
        yield "from now on these words are stored as [purged] and become no memory,"
        yield "until you run `csmd forget --lift` with the same words"
    if value["hosts"]:
        yield "the assistant's own files also contain it; csmd does not change them:"
    yield from _first_rows(value["hosts"], _describe_file)


def _describe_file(file: dict[str, Any]) -> str:
    numbers = ", ".join(map(str, file["lines"][:MAX_LINE_NUMBERS]))
    return f"{file['path']}, line {numbers}{', …' if file['count'] > MAX_LINE_NUMBERS else ''}"


@render.raw
def show_readmitted(value: dict[str, Any]) -> Screen:
    """Whether a purge was lifted."""
    if value["lifted"]:
        yield f"{value['about']}: may be stored again; deleted text is not restored"
        return
    yield f"nothing was lifted: {value['about']} was not purged"
    if value["what"] == "text":
        yield "name what was purged: a text or a memory by the same words, whole and in order;"
        yield "a turn or session by its whole id; a project by its path"


@VERBS.tool(
    "scan", "csm_privacy_scan", verb.flag("--fix", help="Remove the secrets, and backups that contain one."),
    verb.flag("--transcripts", help="Count secrets in the assistant's own transcripts, too."),
    sends_by_person=True, scope="none", is_job=True,
)  # fmt: skip
@render.raw
def show_scanned(value: dict[str, Any]) -> Screen:
    """Look for secrets in csmd's files, by the present rules."""
    counts = ", ".join(f"{number} {kind}" for kind, number in value["kinds"].items())
    no_secret = f"no secret found in csmd's files, {value['took_s']:.1f} s"
    yield f"{amount(value['secrets'], 'secret')}: {counts}" if value["secrets"] else no_secret
    for secret in value["found"][:MAX_ROWS]:
        source = secret.get("file") or f"{secret['table']}.{secret['column']} {secret['id'][:36]}"
        length = f"{secret['preview']} {amount(secret['length'], 'character')}" if secret["length"] else ""
        yield f"  {secret['kind']}: {length or amount(secret['count'], 'time')}, in {source}"
    if rest := max(0, len(value["found"]) - MAX_ROWS) + value["more"]:
        yield f"  and {rest} more (csmd scan --json)"
    if value["secrets"]:
        yield f"{amount(value['fixed'], 'place')} cleaned" if value["fixed"] else "`csmd scan --fix` removes them"
    yield from (f"{file['secrets']} in the assistant's {file['path']}" for file in value["transcripts"])
    yield from (f"degraded: {reason}" for reason in value["degraded"])


@VERBS.action(
    "forget", verb.argument("what", "ID|WHAT"), verb.flag("--purge", help="Delete it from all of csmd's files."),
    verb.option("--as", "kind", type=click.Choice(("memory", "turn", "session", "project", "text")), default=None,
    help="The kind of WHAT; recognised by default."),
    verb.flag("--dry-run", help="Show what a purge would delete."),
    verb.yes("Do not ask."), verb.flag("--lift", help="Allow purged text again."),
)  # fmt: skip
def forget(what: str, purge: bool, kind: str | None, dry_run: bool, yes: bool, lift: bool, as_json: bool) -> None:
    """Forget a memory permanently. With --purge a memory, turn, session, project or text, with all traces.

    If WHAT is `-`, it is asked for."""
    if not purge and not lift:
        if kind or dry_run:
            raise click.UsageError("--as and --dry-run go with --purge")
        _forget_memory(what, yes=yes, as_json=as_json)
        return
    what = click.prompt("what", hide_input=True) if what == "-" else what
    # A purged project is unknown to the daemon: only its path can be given.
    target = verb.project_params(what)["project"] if kind == "project" and not lift else _resolve_path(what, kind)
    params = {"what": target, "kind": kind or "", "by_person": verb.is_interactive()}
    if lift:
        verb.confirm("Allow it again?", yes=yes)
        answer = verb.ask("csm_privacy_lift", **params)
        verb.print_answer(answer, as_json, show_readmitted)
        if not answer["lifted"]:
            raise SystemExit(1)
    elif dry_run:
        verb.print_answer(_plan_purge(params), as_json, show_planned)
    else:
        _purge(params, yes=yes, as_json=as_json)


def _forget_memory(memory_id: str, *, yes: bool, as_json: bool) -> None:
    if verb.is_interactive() and not yes and re.fullmatch(r"m[0-9a-f]+", memory_id):
        memory = verb.ask("csm_memory_show", id=memory_id, asking=verb.resolve_project(None), only_fading=True)
        verb.require_yes(f"Permanently forget: {squeeze(memory['text'])}?", err=as_json)
    verb.print_answer(verb.ask_here("csm_memory_delete", id=memory_id), as_json, show_forgotten)


def _plan_purge(params: dict[str, Any]) -> dict[str, Any]:
    return verb.run_job("csm_privacy_purge", **params, dry_run=True, asking=verb.resolve_project(None))


def _purge(params: dict[str, Any], *, yes: bool, as_json: bool) -> None:
    """Purges after a question; exits with 1 if some of the text is left."""
    verb.require_terminal()
    if yes:
        verb.confirm("", yes=True)
    else:
        render.show(show_planned(_plan_purge(params)), err=as_json)
        verb.require_yes("Purge it from all of csmd's files? It cannot be undone.", err=as_json)
    result = verb.run_job("csm_privacy_purge", **params)
    verb.print_answer(result, as_json, show_purged)
    if result["left"]:
        raise SystemExit(1)


def _resolve_path(what: str, kind: str | None) -> str:
    """Returns a project's path as the daemon knows it; everything else as it was typed."""
    path = Path(what)
    is_path = kind == "project" or (kind is None and (path.is_absolute() or what.startswith((".", "~"))))
    path = path.expanduser() if is_path else path
    return os.path.realpath(path) if kind == "project" or (is_path and is_directory(path)) else what
