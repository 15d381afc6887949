"""`csmd project`: which projects there are, and what counts to which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from csmd.cli import show
from csmd.cli.ask import ask, json_option, out, person_is_there
from csmd.text import amount

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be moved and change nothing.")
_WHY = {"moved": "was", "same place": "was", "named": "also", "worktree": "worktree"}


def _word(word: str) -> str:
    """A path made absolute; an id, a name or a title (`clients/shop`) as it is: of a path it has no mark."""
    path = Path(word).expanduser()
    is_path = word.startswith(("/", "~", "./", "../")) or word in (".", "..") or ("/" in word and path.exists())
    return str(path.resolve()) if is_path else word


@click.group()
def project() -> None:
    """Projects: what counts to which, and walls between them."""


@project.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List projects and workspaces."""
    out(ask("csm_project_list"), as_json, show_projects)


@project.command()
@click.argument("place", metavar="PATH")
@click.argument("other", required=False, default="")
@click.option("--remove", is_flag=True, help="PATH is a project of its own again.")
@json_option
def alias(place: str, other: str, remove: bool, as_json: bool) -> None:
    """Have PATH count to project OTHER from now on. OTHER is a path, an id or a name."""
    if bool(other) == remove:
        raise click.UsageError("name either OTHER or --remove")
    found = ask("csm_project_alias", place=_path(place), other=_word(other), remove=remove, by_person=person_is_there())
    said = "is a project of its own again" if remove else f"counts to {found['project']}"
    out(found, as_json, lambda value: click.echo(f"{value['path']} {said}"))


@project.command()
@click.argument("source", metavar="A")
@click.argument("into", metavar="B")
@dry_run_option
@json_option
def merge(source: str, into: str, dry_run: bool, as_json: bool) -> None:
    """Bring all of project A into B. `split B A` takes it out again."""
    found = ask(
        "csm_project_merge", source=_word(source), into=_word(into), dry_run=dry_run, by_person=person_is_there()
    )
    out(found, as_json, lambda value: _moved(value, f"from {source} to {into}"))


@project.command()
@click.argument("whole", metavar="A")
@click.argument("place", metavar="PATH")
@dry_run_option
@json_option
def split(whole: str, place: str, dry_run: bool, as_json: bool) -> None:
    """Take PATH out of project A. It is a directory in it, or a project that was merged into it."""
    found = ask(
        "csm_project_split", whole=_word(whole), place=_path(place), dry_run=dry_run, by_person=person_is_there()
    )
    out(found, as_json, lambda value: _moved(value, f"from {whole} to {place}"))


@project.command()
@click.argument("name")
@click.argument("places", metavar="PATH...", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Take these projects out of it.")
@json_option
def workspace(name: str, places: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Put a wall around projects. Nothing said there, or below their directories, is seen from elsewhere."""
    words = "\n".join(_word(place) for place in places)
    found = ask("csm_project_workspace", name=name, places=words, remove=remove, by_person=person_is_there())
    out(found, as_json, _walled)


def _path(place: str) -> str:
    return str(Path(place).expanduser().resolve())


def _moved(value: dict[str, Any], way: str) -> None:
    verb = "would be moved" if value["dry_run"] else "moved"
    parts = [amount(value[kind], kind[:-1]) for kind in ("sessions", "turns")]
    parts.append(amount(value["memories"], "memory"))
    click.echo(f"{verb} {way}: {', '.join(parts)}")
    if value["twins"]:
        click.echo(f"{amount(value['twins'], 'memory')} said the same on both sides")


def _walled(value: dict[str, Any]) -> None:
    for root in value["projects"]:
        click.echo(f"{root} {'is out of' if value['removed'] else 'is in'} the workspace {value['workspace']}")
    if value["memories"]:
        moved = amount(value["memories"], "memory")
        click.echo(f"{moved} that held everywhere and came from there only: inside now")


def show_projects(value: dict[str, Any]) -> None:
    """Each project with its numbers in one line; below it where it is, and what else there is to say of it."""
    console = show.console()
    if not value["projects"]:
        console.print("no projects yet; they come with sessions and `csmd import`")
        return
    for row in value["projects"]:
        numbers = f"{amount(row['sessions'], 'session')}, {amount(row['memories'], 'memory')}"
        head = (
            f"{row['name']}  "
            + ("(gone)  " if row["gone"] else "")
            + (f"[{row['workspace']}]" * bool(row["workspace"]))
        )
        room = console.width - len(numbers) - 2
        console.print(f"{show.shorten(head.rstrip(), room):<{room}}  {numbers}", style="bold", soft_wrap=True)
        for name, text in _about(row):
            show.labelled(console, name, text)
    for row in value["workspaces"]:
        console.print(
            f"workspace {row['name']}: {amount(row['projects'], 'project')}, "
            f"{amount(row['memories'], 'memory')} for all of them"
        )


def _about(row: dict[str, Any]) -> list[tuple[str, str]]:
    kind = {"submodule": ", a submodule", "part": f", a part of {row['part_of']}"}.get(row["kind"], "")
    about = [
        ("path", f"{_tilde(row['root'])}{kind}"),
        ("last", f"{show.when(row['last'])}, id {row['id']}"),
        ("left out", ".csmd-off lies there: nothing that is said there is captured" if row["off"] else ""),
        ("remote", row["remote"]),
        *((_WHY[other["why"]], _tilde(other["path"])) for other in row["aliases"]),
        *(("merged", _tilde(path)) for path in row["merged"]),
    ]
    return [(f"  {name}", text) for name, text in about if text]


def _tilde(path: str) -> str:
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path == home or path.startswith(home + "/") else path


VERBS: tuple[click.Command, ...] = (project,)
