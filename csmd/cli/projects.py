"""Commands about projects: merge, move, isolate, rank."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Screen, bold, pair, tilde
from csmd.paths import is_there
from csmd.text.ages import when
from csmd.text.display import amount

VERBS = verb.Verbs()
PROJECT = VERBS.add_group("project", "Manage projects: merge, move, isolate.")
DRY_RUN = verb.flag("--dry-run", help="Show what would be moved and change nothing.")
#: Reason of an alias -> its label.
ALIAS_LABELS = {"moved": "was", "same place": "was", "named": "also", "worktree": "worktree"}


def amounts(value: dict[str, Any], **nouns: str) -> list[str]:
    """Formats numbers of a value with their nouns, as `2 memories`."""
    return [amount(value[name], noun) for name, noun in nouns.items()]


def _resolve_path(word: str) -> str:
    """Makes a path absolute; leaves an id, a name or a title (`clients/shop`) as it is."""
    path = Path(word).expanduser()
    is_path = word.startswith(("/", "~", "./", "../")) or word in (".", "..") or ("/" in word and is_there(path))
    return os.path.realpath(path) if is_path else word


@PROJECT.action(
    "alias", verb.argument("place", "PATH"), verb.argument("other", required=False, default=""),
    verb.flag("--remove", help="PATH is a project of its own again."), verb.YES,
)  # fmt: skip
def alias(place: str, other: str, remove: bool, yes: bool, as_json: bool) -> None:
    """Make PATH part of project OTHER from now on. OTHER is a path, an id or a name."""
    if bool(other) == remove:
        raise click.UsageError("name either OTHER or --remove")
    params = {"place": verb.resolve_project(place), "other": _resolve_path(other), "by_person": verb.is_interactive()}
    if other:
        check = partial(verb.ask, "csm_project_alias", **params, dry_run=True)
        verb.confirm(f"Share all memories between {other} and {place}?", yes=yes, check=check)
    value = verb.ask("csm_project_alias", **params, remove=remove)
    verb.print_answer(value, as_json, show_alias, remove=remove)


@render.raw
def show_alias(value: dict[str, Any], *, remove: bool) -> Screen:
    """Shows the project of a directory."""
    state = "is a project of its own again" if remove else f"belongs to {value['project']}"
    yield f"{value['path']} {state}"


@PROJECT.action("merge", verb.argument("source", "A"), verb.argument("into", "B"), DRY_RUN, verb.YES)
def merge(source: str, into: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Merge project A into B. `split B A` undoes it."""
    params = {"source": _resolve_path(source), "into": _resolve_path(into), "by_person": verb.is_interactive()}
    if not dry_run:
        check = partial(verb.ask, "csm_project_merge", **params, dry_run=True)
        verb.confirm(f"Share all memories between {into} and {source}?", yes=yes, check=check)
    value = verb.ask("csm_project_merge", **params, dry_run=dry_run)
    verb.print_answer(value, as_json, show_moved, direction=f"from {source} to {into}")


@PROJECT.action("split", verb.argument("whole", "A"), verb.argument("place", "PATH"), DRY_RUN)
def split(whole: str, place: str, dry_run: bool, as_json: bool) -> None:
    """Make PATH a project of its own. It is a directory in project A, or a project that was merged into A."""
    params = {"whole": _resolve_path(whole), "place": verb.resolve_project(place), "dry_run": dry_run}
    value = verb.ask("csm_project_split", **params, by_person=verb.is_interactive())
    verb.print_answer(value, as_json, show_moved, direction=f"from {whole} to {place}")


@render.raw
def show_moved(value: dict[str, Any], *, direction: str) -> Screen:
    """Shows the numbers of rows that were moved, or would be."""
    counts = ", ".join(amounts(value, sessions="session", turns="turn", memories="memory"))
    yield f"{'would be moved' if value['dry_run'] else 'moved'} {direction}: {counts}"
    if value["twins"]:
        yield f"{amount(value['twins'], 'memory')} are the same in both projects"


def _join_words(_context: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> str:
    return "\n".join(words)


def _join_paths(_context: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> str:
    return "\n".join(map(_resolve_path, words))


@PROJECT.tool(
    "lens", "csm_project_lens", verb.argument("name"), verb.argument("places", "[PATH]...", nargs=-1, callback=_join_paths),
    verb.option("--topic", "topics", metavar="TOPIC", multiple=True, callback=_join_words,
    help="Rank this topic first, too."),
    verb.flag("--wall", help="Hide their memories from other projects."),
    verb.flag("--remove", help="Remove these from the lens; without any, remove the lens."), verb.YES,
    sends_by_person=True, scope="none",
    make_question=lambda options: "Show their memories to every project?" if options["remove"] and options["wall"] else "",
)  # fmt: skip
@render.raw
def show_lens(value: dict[str, Any]) -> Screen:
    """Rank these projects and topics first in sessions there."""
    yield from _describe_lens(value)
    if value["moved"]:
        yield f"{amount(value['moved'], 'memory')} of all projects moved inside, as they came only from there"


def _describe_lens(row: dict[str, Any], *, is_current: bool = False) -> Screen:
    home = str(Path.home())
    yield bold(f"lens {row['name']}: {amount(row['projects'], 'project')}{' (here)' * is_current}")
    yield from (pair("  wall", tilde(root, home)) for root in row["walled"])
    yield from (pair("  ranked", tilde(root, home)) for root in row["ranked"])
    if row["topics"]:
        yield pair("  topics", ", ".join(row["topics"]))


@PROJECT.tool("list", "csm_project_list")
@render.if_empty("projects", "no projects yet; they come with sessions and `csmd import`")
def show_projects(value: dict[str, Any]) -> Screen:
    """List projects, lenses and workspaces."""
    home, columns = str(Path.home()), render.width()
    for row in value["projects"]:
        numbers = ", ".join(amounts(row, sessions="session", memories="memory"))
        marks = ["(gone)"] * row["gone"] + [f"[{row['workspace']}]"] * bool(row["workspace"])
        room = columns - len(numbers) - 2
        yield bold(f"{render.shorten('  '.join([row['name'], *marks]), room, end=True):<{room}}  {numbers}")
        kind = {"submodule": ", a submodule", "part": f", a part of {row['part_of']}"}.get(row["kind"], "")
        details = [
            ("path", f"{tilde(row['root'], home)}{kind}"),
            ("last", f"{when(row['last'])}, id {row['id']}"),
            ("off", "not captured, because of its .csmd-off file" if row["off"] else ""),
            ("remote", row["remote"]),
            *((ALIAS_LABELS[other["why"]], tilde(other["path"], home)) for other in row["aliases"]),
            *(("merged", tilde(path, home)) for path in row["merged"]),
        ]
        yield from (pair(f"  {name}", text) for name, text in details if text)
    for row in value["workspaces"]:
        numbers = ", ".join(amounts(row, projects="project", memories="memory"))
        yield f"workspace {row['name']}: {numbers} for all of them"
    for row in value["lenses"]:
        yield from _describe_lens(row, is_current=row["name"] == value["lens"])
