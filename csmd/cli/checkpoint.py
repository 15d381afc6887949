"""The verbs about checkpoints: what a session stood at, kept over its compactions and for the next session."""

from __future__ import annotations

import sys

import click

from csmd.cli import show_checkpoint
from csmd.cli.ask import ask, here, json_option, looking, out, project_options
from csmd.config import assistant_session

_session = click.option(
    "--session", metavar="ID", default="", help="A session; the one that asks, else the latest one here."
)
_note = click.option("--note", metavar="TEXT", default="", help="A line of yours to be told with it.")


@click.group(invoke_without_command=True)
@_session
@_note
@json_option
@click.pass_context
def checkpoint(context: click.Context, session: str, note: str, as_json: bool) -> None:
    """What sessions stood at before a compaction, or when asked."""
    if context.invoked_subcommand is None:
        _create(session, note, as_json)


def _create(session: str, note: str, as_json: bool) -> None:
    asks = session or assistant_session()[1]
    out(ask("csm_checkpoint_create", session=asks, **looking(None), note=note), as_json, show_checkpoint.one)


@checkpoint.command()
@_session
@_note
@json_option
def create(session: str, note: str, as_json: bool) -> None:
    """Keep what a session stands at, now."""
    _create(session, note, as_json)


@checkpoint.command("list")
@project_options
@click.option("--session", metavar="ID", default="", help="Of one session only.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def list_(project: str | None, all_projects: bool, session: str, limit: int, as_json: bool) -> None:
    """List checkpoints, the latest first."""
    found = ask("csm_checkpoint_list", session=session, **looking(project, all_projects), limit=limit)
    out(found, as_json, show_checkpoint.listing)


@checkpoint.command("show")
@click.argument("ident", metavar="ID")
@click.option("--raw", is_flag=True, help="The turns that it captured, as they were stored.")
@json_option
def show_(ident: str, raw: bool, as_json: bool) -> None:
    """Show a checkpoint. The beginning of its ID suffices."""
    found = ask("csm_checkpoint_show", id=ident, asking=here(None), raw=raw)
    out(found, as_json, (lambda value: show_checkpoint.raw(value, sys.stdout.isatty())) if raw else show_checkpoint.one)


@checkpoint.command()
@click.argument("ident", metavar="ID")
@click.option("--session", metavar="ID", default="", help="Tell it to this session; to the next one there by default.")
@json_option
def restore(ident: str, session: str, as_json: bool) -> None:
    """Print what a checkpoint holds, and tell it to the next session."""
    found = ask("csm_checkpoint_restore", id=ident, asking=here(None), session=session)
    out(found, as_json, show_checkpoint.restored)


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (checkpoint,)
