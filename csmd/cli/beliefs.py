"""The verbs of what is believed: beliefs by subject, duplicates, merging, archiving, whether the rules hold."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import show_beliefs
from csmd.cli.ask import ask, here, json_option, looking, out, person_is_there, project_options

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")


@click.command()
@project_options
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 1000), help="How many of each kind.")
@json_option
def beliefs(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """Show what is held here, by subject, with its evidence.

    Preferences, opinions and worldviews.
    """
    out(ask("csm_belief_knowledge", **looking(project, all_projects), limit=limit), as_json, show_beliefs.beliefs)


@click.command()
@project_options
@json_option
def duplicates(project: str | None, all_projects: bool, as_json: bool) -> None:
    """List memories that say the same as another one, or nearly so."""
    out(ask("csm_memory_dedup_detect", **looking(project, all_projects)), as_json, show_beliefs.duplicates)


@click.command()
@click.argument("merged", metavar="[ID", required=False, default="")
@click.argument("into", metavar="INTO]", required=False, default="")
@click.option("--near", is_flag=True, help="Of all duplicates also those that only nearly say the same.")
@click.option("--undo", metavar="ID", default="", help="Take back that a memory was merged or archived.")
@project_options
@dry_run_option
@json_option
def merge(
    merged: str, into: str, near: bool, undo: str, project: str | None, all_projects: bool, dry_run: bool, as_json: bool
) -> None:
    """Merge memory ID into INTO, or all duplicates here."""
    if undo and (merged or near):
        raise click.UsageError("--undo goes with one ID and nothing else")
    if near and merged:
        raise click.UsageError("--near is for all duplicates, not for two that are named")
    place = {"asking": here(None)} if merged or undo else looking(project, all_projects)
    found = ask(
        "csm_memory_merge", id=merged, into=into, near=near, undo=undo, **place, dry_run=dry_run,
        by_person=person_is_there(),
    )  # fmt: skip
    out(found, as_json, show_beliefs.undone if undo else show_beliefs.mended)


@click.command()
@project_options
@dry_run_option
@json_option
def archive(project: str | None, all_projects: bool, dry_run: bool, as_json: bool) -> None:
    """Leave memories that have faded to explicit search.

    `csmd merge --undo ID` brings one back.
    """
    params: dict[str, Any] = {**looking(project, all_projects), "dry_run": dry_run, "by_person": person_is_there()}
    out(ask("csm_memory_archive", **params), as_json, show_beliefs.mended)


@click.command()
@json_option
def governance(as_json: bool) -> None:
    """Show whether the rules of what may be believed hold.

    The exit code is 1 where one is broken.
    """
    value = ask("csm_memory_governance_report")
    out(value, as_json, show_beliefs.governance)
    if not value["holds"]:
        raise SystemExit(1)  # told why


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (beliefs, duplicates, merge, archive, governance)
