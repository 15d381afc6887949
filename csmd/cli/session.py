"""The verbs about sessions: what was said is kept here, also when the assistant has deleted its transcript."""

from __future__ import annotations

from pathlib import Path

import click

from csmd import wire
from csmd.cli import disk, show_session
from csmd.cli.ask import ask, here, json_option, out, project_options
from csmd.errors import CsmdError


@click.group()
def session() -> None:
    """Past conversations: list them, read them, hand one back to the assistant."""


@session.command("list")
@project_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def list_(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List the sessions of this project, the latest first."""
    found = ask("csm_session_list", project=here(project, all_projects), limit=limit)
    out(found, as_json, lambda value: show_session.listing(value, by_project=all_projects))


@session.command("show")
@click.argument("ident", metavar="ID")
@json_option
def show_(ident: str, as_json: bool) -> None:
    """Show what is known of a session. The beginning of its ID suffices."""
    out(ask("csm_session_show", id=ident), as_json, show_session.facts)


@session.command()
@click.argument("ident", metavar="ID")
@json_option
def transcript(ident: str, as_json: bool) -> None:
    """Show the conversation of a session; tool traffic is one line each."""
    out(ask("csm_session_transcript", id=ident), as_json, show_session.conversation)


@session.command()
@click.argument("ident", metavar="ID")
@click.option("--to", "target", metavar="FILE", default="-", help="Where to write it; `-`, the default, prints it.")
@json_option
def export(ident: str, target: str, as_json: bool) -> None:
    """Write a session as a transcript that the assistant resumes."""
    found = ask("csm_session_export", id=ident)
    data = "".join(f"{line}\n" for line in found["lines"]).encode()
    if target != "-":
        path = Path(target).expanduser().absolute()
        _write_new(path, data)
        found = {key: value for key, value in found.items() if key != "lines"} | {"path": str(path)}
    if as_json:
        click.echo(wire.pretty(found))
        return
    if target == "-":
        click.echo(data, nl=False)
    show_session.exported(found, written=target != "-")


def _write_new(path: Path, data: bytes) -> None:
    """Writes a file where none is: a transcript that is still there holds more than csmd kept."""
    if path.exists() or path.is_symlink():
        raise CsmdError(f"{path} is there already and stays as it is", hint="name another file")
    try:
        disk.write_whole(path, data)
    except OSError as error:
        raise CsmdError(f"{path}: {error.strerror}", hint="name a file in a directory that you can write to") from error


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (session,)
