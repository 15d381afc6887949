"""The verbs about dreams: whether one is due, what it would do, doing it now, what it did, taking it back."""

from __future__ import annotations

from typing import Any

import click

from csmd import client
from csmd.cli import show, show_dream
from csmd.cli.ask import ask, here, json_option, looking, out, person_is_there, project_options
from csmd.config import default_paths


@click.group()
def dream() -> None:
    """Making few good memories of many while nobody works."""


@dream.command()
@json_option
def status(as_json: bool) -> None:
    """Tell whether a dream is due, and why not."""
    out(ask("csm_dream_status"), as_json, show_dream.status)


@dream.command()
@project_options
@click.option("--all", "everything", is_flag=True, help="List every change.")
@json_option
def plan(project: str | None, all_projects: bool, everything: bool, as_json: bool) -> None:
    """Show what a dream would do now. Nothing is done."""
    found = ask("csm_dream_plan", **looking(project, all_projects or project is None))
    out(found, as_json, lambda value: show_dream.plan(value, everything=everything))


@dream.command()
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("--force", is_flag=True, help="Do not wait until it is due.")
@json_option
def run(dry_run: bool, force: bool, as_json: bool) -> None:
    """Dream now. `csmd dream undo` takes it back."""
    if dry_run:
        found = ask("csm_dream_run", dry_run=True, force=force, asking=here(None))
        out(found, as_json, show_dream.plan)
        return
    out(_work("csm_dream_run", force=force), as_json, show_dream.ran)


@dream.command()
@click.argument("ident", metavar="ID")
@json_option
def diff(ident: str, as_json: bool) -> None:
    """Show what dream ID changed, before and after. `last` is the latest."""
    found = ask("csm_dream_diff", id=ident, asking=here(None), by_person=person_is_there())
    out(found, as_json, show_dream.diff)


@dream.command()
@click.argument("ident", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be taken back and change nothing.")
@json_option
def undo(ident: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Take dream ID back, and every one since."""
    wanted = ask("csm_dream_undo", id=ident, asking=here(None))
    if dry_run or not (yes or as_json):
        out(wanted, as_json, show_dream.undoing)
    if dry_run:
        return
    if not yes:
        if as_json or not person_is_there():
            raise click.UsageError("give --yes where nobody can be asked")
        click.confirm(show_dream.question(wanted), abort=True)
    # By its whole id: which dream is the latest may have changed meanwhile.
    out(_work("csm_dream_undo", id=wanted["dreams"][-1]["id"], dry_run=False), as_json, show_dream.undone)


@dream.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many at most.")
@json_option
def history(limit: int, as_json: bool) -> None:
    """List the dreams, the latest first."""
    out(ask("csm_dream_history", limit=limit), as_json, show_dream.history)


@click.command()
@click.option("--again", is_flag=True, required=True, help="Choose old memories as csmd chooses now.")
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("--yes", is_flag=True, help="Do it although most of them would be archived.")
@json_option
def distill(again: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Choose old memories anew. `csmd dream undo` takes it back."""
    del again
    if dry_run:
        out(ask("csm_distill_again", dry_run=True, asking=here(None)), as_json, show_dream.again)
        return
    out(_work("csm_distill_again", yes=yes), as_json, show_dream.ran)


def _work(tool: str, **params: Any) -> dict[str, Any]:
    """Has the daemon do it, with how far it is on stderr; its result."""
    with show.progress() as bar:
        return client.work(default_paths(), tool, {**params, "asking": here(None)}, watch=bar)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (dream, distill)
