"""The verbs that show what a session is given: its instructions, the assistant's own memory, what csmd told it whole."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import show
from csmd.cli.ask import ask, here, json_option, looking, out, project_options
from csmd.cli.lines import cells, fitted, plain
from csmd.cli.why import STATES
from csmd.text import amount

#: Columns that a project's name takes at most.
NAME = 28
project_option = click.option("--project", metavar="PATH", help="This directory's by default.")


@click.group()
def context() -> None:
    """Show what a session is given, whole, and how full it is."""


@context.command()
@project_options
@json_option
def status(project: str | None, all_projects: bool, as_json: bool) -> None:
    """Show how full the contexts of live sessions are."""
    everywhere = all_projects or project is None
    out(ask("csm_context_status", **looking(project, everywhere)), as_json, show_filled)


@context.command()
@project_option
@click.option(
    "--mode",
    type=click.Choice(["host", "seed"]),
    default="host",
    show_default=True,
    help="As the assistant loads them, or four scopes with @include lines.",
)
@json_option
def build(project: str | None, mode: str, as_json: bool) -> None:
    """Show the instructions that a session here is given."""
    out(ask("csm_context_build", **looking(project), mode=mode), as_json, show_context)


@context.command()
@click.argument("ident", metavar="ID")
@json_option
def get(ident: str, as_json: bool) -> None:
    """Show the whole of what a session was told. ID is a memory's, a turn's or a receipt's."""
    out(ask("csm_context_get", id=ident, asking=here(None)), as_json, show_whole)


@click.group()
def memdir() -> None:
    """Show the assistant's own memory."""


@memdir.command()
@project_option
@json_option
def scan(project: str | None, as_json: bool) -> None:
    """List the files of the assistant's own memory here."""
    out(ask("csm_memdir_scan", **looking(project)), as_json, show_memos)


@memdir.command("load")
@click.argument("file")
@project_option
@json_option
def load_memo(file: str, project: str | None, as_json: bool) -> None:
    """Show one of them without its head."""
    found = ask("csm_memdir_load", **looking(project), file=file)
    out(found, as_json, lambda value: click.echo(value["text"]))


def show_whole(value: dict[str, Any]) -> None:
    """Texts as they are kept, each behind its id."""
    for number, item in enumerate(value["items"]):
        about = item["said_at"][:10] if item.get("said_at") else STATES.get(item["state"], item["state"])
        click.echo(f"{chr(10) if number else ''}{item['id']}  {about}")
        if item["text"]:
            click.echo(item["text"])


def show_context(value: dict[str, Any]) -> None:
    """The text, then on standard error which files it is made of: the text alone can be put into a file."""
    if value["text"]:
        click.echo(value["text"])
    else:
        click.echo("nothing: there is no instruction file for this directory", err=True)
    files = value["files"]
    if files:
        click.echo(f"\n{amount(len(files), 'file')}, about {amount(value['tokens'], 'token')}:", err=True)
    for one in files:
        click.echo(f"  {one['scope']:<8} {one['tokens']:>6}  {one['path']}", err=True)
    for problem in value["problems"]:
        click.echo(f"  ! {problem}", err=True)


def show_filled(value: dict[str, Any]) -> None:
    """The live sessions, one a line, then what csmd adds in each bracket."""
    console = show.console()
    names = [plain(one["project"].rstrip("/").rpartition("/")[2]) or "-" for one in value["sessions"]]
    room = min(max(map(cells, names), default=0), NAME)
    for one, name in zip(value["sessions"], names, strict=True):
        used, window = one["tokens"], max(one["window"], 1)
        full = (
            f"{used * 100 // window:>3} %  {one['bracket']:<8}  {used:,} of {window:,}" if used else "  not known yet"
        )
        shown = fitted(name, room, end=True)
        show.print_text(console, f"{one['session'][:8]:<8}  {shown}{' ' * (room - cells(shown))}  {full}")
    if not value["sessions"]:
        show.print_text(console, "no session is live")
    console.print()
    for one in value["brackets"]:
        begins = f"from {one['from_percent']} %"
        added = f"a prompt gets up to {one['recall_tokens']} tokens, a compaction {one['restored_tokens']}"
        show.print_text(console, f"{one['bracket']:<8}  {begins:<9}  {added}", style="dim")


def show_memos(value: dict[str, Any]) -> None:
    """The files of a memory directory, two lines each."""
    click.echo(value["folder"])
    if not value["files"]:
        click.echo("nothing: the assistant has kept no memory here")
    for memo in value["files"]:
        kind = memo["type"] or "?"
        click.echo(f"\n{memo['filename']}  ({kind}, {show.size(memo['size'])}, {memo['modified'][:10]})")
        if memo["description"] or memo["name"]:
            click.echo(f"  {memo['description'] or memo['name']}")
        for problem in memo["problems"]:
            click.echo(f"  ! {problem}")


VERBS: tuple[click.Command, ...] = (context, memdir)
