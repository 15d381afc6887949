"""The verbs about sessions: what was said is kept here, also when the assistant has deleted its transcript."""

from __future__ import annotations

from pathlib import Path

import click

from csmd import wire
from csmd.cli import disk, show_session
from csmd.cli.ask import ask, here, json_option, looking, out, person_is_there, project_options
from csmd.errors import CsmdError


@click.group()
def session() -> None:
    """Past conversations, also those the assistant deleted."""


@session.command("list")
@project_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def list_(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List the sessions of this project, the latest first."""
    found = ask("csm_session_list", **looking(project, all_projects), limit=limit)
    out(found, as_json, lambda value: show_session.listing(value, by_project=all_projects))


@session.command("show")
@click.argument("ident", metavar="ID")
@json_option
def show_(ident: str, as_json: bool) -> None:
    """Show what is known of a session. The beginning of its ID suffices."""
    out(ask("csm_session_show", id=ident, asking=here(None)), as_json, show_session.facts)


@session.command()
@click.argument("ident", metavar="ID")
@json_option
def transcript(ident: str, as_json: bool) -> None:
    """Show a conversation. Tool traffic is one line each."""
    out(ask("csm_session_transcript", id=ident, asking=here(None)), as_json, show_session.conversation)


@session.command()
@click.argument("ident", metavar="ID")
@json_option
def digest(ident: str, as_json: bool) -> None:
    """Show what a session comes to, and what it builds on."""
    out(ask("csm_memory_distilled_view", id=ident, asking=here(None)), as_json, show_session.digests)


@session.command()
@click.argument("ident", metavar="ID")
@click.option("--to", "target", metavar="FILE", default="-", help="Where to write it; `-`, the default, prints it.")
@json_option
def export(ident: str, target: str, as_json: bool) -> None:
    """Write a session for the assistant to resume."""
    found = ask("csm_session_export", id=ident, asking=here(None))
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


_place = click.option("--project", metavar="PATH", help="Where a session begins that is new; here by default.")
_parent = click.option("--parent", metavar="UUID", default="", help="The message it answers; the last one by default.")


@session.command("write-user")
@click.argument("ident", metavar="ID")
@click.argument("text")
@_parent
@_place
@json_option
def write_user(ident: str, text: str, parent: str, project: str | None, as_json: bool) -> None:
    """Write as the user into a session of csmd's own. Typed in a terminal it counts as yours."""
    found = ask(
        "csm_session_write_user",
        id=ident,
        asking=here(None),
        text=text,
        parent=parent,
        project=looking(project)["project"],
        by_person=person_is_there(),
    )
    out(found, as_json, show_session.written)


@session.command("write-assistant")
@click.argument("ident", metavar="ID")
@click.argument("text")
@_parent
@_place
@json_option
def write_assistant(ident: str, text: str, parent: str, project: str | None, as_json: bool) -> None:
    """Write as the assistant into a session of csmd's own."""
    found = ask(
        "csm_session_write_assistant",
        id=ident,
        asking=here(None),
        text=text,
        parent=parent,
        project=looking(project)["project"],
    )
    out(found, as_json, show_session.written)


@session.command("write-summary")
@click.argument("ident", metavar="ID")
@click.argument("text")
@click.option("--replaces", metavar="UUID", multiple=True, help="What it stands for; everything so far by default.")
@json_option
def write_summary(ident: str, text: str, replaces: tuple[str, ...], as_json: bool) -> None:
    """Let a summary stand for messages of a session."""
    out(
        ask("csm_session_write_summary", id=ident, asking=here(None), text=text, replaces=" ".join(replaces)),
        as_json,
        show_session.written,
    )


@session.command()
@click.argument("ident", metavar="ID")
@click.argument("uuid", metavar="UUID")
@json_option
def tombstone(ident: str, uuid: str, as_json: bool) -> None:
    """Withdraw a message. Its line stays; who loads the session does not see it."""
    found = ask("csm_session_tombstone", id=ident, asking=here(None), uuid=uuid)
    out(found, as_json, lambda value: click.echo(f"withdrawn: {value['tombstoned']}"))


@session.command()
@click.argument("ident", metavar="ID")
@json_option
def load(ident: str, as_json: bool) -> None:
    """Show the messages of a session of csmd's own. What was withdrawn or summarised is not among them."""
    out(ask("csm_session_load", id=ident), as_json, show_session.messages)


@session.command()
@click.argument("ident", metavar="ID")
@click.option("--project", metavar="PATH", help="Where a session would begin that is new; here by default.")
@json_option
def path(ident: str, project: str | None, as_json: bool) -> None:
    """Print the path of a session of csmd's own."""
    found = ask("csm_session_path", id=ident, asking=here(None), project=looking(project)["project"])
    out(found, as_json, lambda value: click.echo(value["path"]))


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (session,)
