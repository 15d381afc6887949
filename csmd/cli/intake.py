"""The verbs that take something in, or out, and wait for it: import, export, sync, model, backup, restore, repair."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from csmd import client, wire
from csmd.cli import render
from csmd.cli import verb as asking
from csmd.cli.verb import json_option, work
from csmd.config import child_environment, default_paths
from csmd.errors import CsmdError
from csmd.installer import plan as installing
from csmd.installer import service
from csmd.paths import Paths
from csmd.text.display import amount

vectors_option = click.option("--no-vectors", is_flag=True, help="Do not wait for the vectors.")


@click.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--project",
    metavar="PATH",
    help="The project that notes are about, or exported memories are of, where that is not told otherwise.",
)
@click.option("--mine", is_flag=True, help="Exported memories are yours: do not ask. Only in a terminal.")
@vectors_option
@json_option
def import_(path: Path, project: str | None, mine: bool, no_vectors: bool, as_json: bool) -> None:
    """Take in transcripts, memories, or notes.

    PATH is a transcript or a tree of them as ~/.claude/projects, a directory that `csmd export` wrote, or the assistant's
    own memory directory. Nothing comes in twice.
    """
    params = {
        "path": str(path.resolve()), "vectors": not no_vectors, "project": asking.looking(project)["project"] if project else "",
        "asking": asking.here(None),
        "by_person": _vouched(path, mine=mine, as_json=as_json),
    }  # fmt: skip
    work("csm_import", params, as_json, render.imported)


#: The file in a directory that was exported to.
EXPORTED = "memories.jsonl"


def _vouched(path: Path, *, mine: bool, as_json: bool) -> bool:
    """Whether a person says that exported memories are what it says of them: the file names whose words they are."""
    there = asking.person_is_there()
    if mine and not there:
        raise CsmdError("only a person at a terminal can say whose memories they are", hint="type it in a terminal")
    exported = path.name == EXPORTED or (path / EXPORTED).is_file()
    if mine or as_json or not there or not exported:
        return mine
    question = "Did you export these memories yourself? Else they wait for you in `csmd review`."
    return click.confirm(question, default=False)


@click.command()
@click.option("--to", "directory", metavar="DIR", required=True, type=click.Path(path_type=Path), help="Made if new.")
@asking.project_options
@json_option
def export(directory: Path, project: str | None, all_projects: bool, as_json: bool) -> None:
    """Write memories to a directory. `csmd import DIR` takes them in, here or elsewhere."""
    params = {"path": str(directory.expanduser().absolute()), **asking.looking(project, all_projects)}
    work("csm_memory_export", params, as_json, render.exported)


@click.command()
@vectors_option
@json_option
def sync(no_vectors: bool, as_json: bool) -> None:
    """Take in everything that is on disk now, and wait for it."""
    work("csm_sync", {"vectors": not no_vectors}, as_json, render.imported)


@click.group()
def model() -> None:
    """The embedding model: search by meaning needs one."""


#: What can be asked for by a name of one word.
NAMED = {"multilingual": "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"}


@model.command("fetch")
@click.argument("which", type=click.Choice([*NAMED]), required=False)
@json_option
def model_fetch(which: str | None, as_json: bool) -> None:
    """Download an embedding model and use it.

    It is one for English (90 MB), or `multilingual`, for fifty languages (240 MB). No other command touches the network.
    """
    config = installing.configuration()
    asking.ask("csm_tools")  # before megabytes are fetched: is there a daemon to give them to
    folder = config.paths.models / ".fetched"
    chosen = NAMED[which] if which else ""
    try:
        command = _fetch_command(folder, chosen or config.settings.embed_model)
        code = subprocess.run(command, env=child_environment(), check=False).returncode
        if code:
            raise CsmdError("the model was not fetched", hint="without a network: csmd model add DIR")
        work("csm_model_add", {"path": str(folder), "name": chosen}, as_json, _model_shown)
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the daemon has its own copy, or nobody wants this one


def _fetch_command(folder: Path, name: str) -> list[str]:
    return [sys.executable, "-P", "-m", "csmd.embedding.worker", "--fetch", str(folder), "--model", name]


@model.command("add")
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--as", "which", type=click.Choice([*NAMED]), help="Which model it is, if not the configuration's.")
@json_option
def model_add(folder: Path, which: str | None, as_json: bool) -> None:
    """Use the embedding model in DIR. It holds model.onnx and its tokenizer's files."""
    order = {"path": str(folder.resolve()), "name": NAMED[which] if which else ""}
    work("csm_model_add", order, as_json, _model_shown)


def _model_shown(value: dict[str, Any]) -> None:
    click.echo(f"using {value['model']}, {value['dim']} dimensions; what is stored gets its vectors in the background")


dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
#: Table -> what people call its rows.
NAMED_BACKUP = {"turns": "turn", "memories": "memory", "tombstones": "forgotten text"}


@click.command()
@click.argument("what", required=False, type=click.Choice(["list"]))
@click.option(
    "--to", metavar="FILE", type=click.Path(path_type=Path), help="Where to; a new file. Else among the others."
)
@json_option
def backup(what: str | None, to: Path | None, as_json: bool) -> None:
    """Copy the database while the daemon works. `csmd backup list` shows the copies."""
    if what == "list":
        if to:
            raise click.UsageError("--to goes with a copy that is made")
        asking.out(asking.ask("csm_backup_list"), as_json, _listed)
        return
    with render.progress() as bar:
        target = str(to.expanduser().absolute()) if to else ""
        made = client.work(default_paths(), "csm_backup_make", {"path": target}, watch=bar)
    asking.out(
        made,
        as_json,
        lambda value: render.described(
            [
                ("copied", f"{_counted(value['counts'])}, {render.size(value['bytes'])}"),
                ("to", value["path"]),
            ]
        ),
    )


def _listed(value: dict[str, Any]) -> None:
    if not value["backups"]:
        click.echo("no backups yet; the daemon makes one a day, `csmd backup` makes one now")
    for row in value["backups"]:
        click.echo(f"{render.when(row['made_at'])}  {render.size(row['bytes']):>9}  {Path(row['path']).name}")


def _counted(rows: dict[str, int]) -> str:
    return ", ".join(amount(rows[name], word) for name, word in NAMED_BACKUP.items() if rows.get(name)) or "nothing"


@click.command()
@click.argument("source", metavar="FILE")
@dry_run_option
@json_option
def restore(source: str, dry_run: bool, as_json: bool) -> None:
    """Put a backup in the database's place; `latest` is the newest. What was forgotten since stays forgotten."""
    chosen = source if source == "latest" else str(_found(source))
    value = _with_daemon_stopped("restore", chosen, dry_run=dry_run, changed=lambda _: True)
    asking.out(value, as_json, _restored)


def _found(source: str) -> Path:
    """The file that is meant: a path, or the name of one of the backups."""
    path = Path(source).expanduser().absolute()
    named = default_paths().home / "backups" / source
    return named if not path.exists() and named.is_file() else path


def _restored(value: dict[str, Any]) -> None:
    rows = [
        ("would be" if value["dry_run"] else "restored", _counted(value["counts"])),
        ("from", value["from"]),
        *([("again", f"{amount(value['forgotten_again'], 'row')} removed, as forgotten since")] if value["forgotten_again"] else []),
        *_read_again(value),
        *_ending(value),
    ]  # fmt: skip
    render.described(rows)


@click.command()
@dry_run_option
@json_option
def repair(dry_run: bool, as_json: bool) -> None:
    """Look at the database. Bring back a damaged one, from what is left of it, backups and transcripts."""
    value = _with_daemon_stopped(
        "repair", dry_run=dry_run, changed=lambda report: report["state"] in ("rebuilt", "indexes")
    )
    asking.out(value, as_json, _repaired)
    if value.get("lost"):
        raise SystemExit(1)  # told why


def _repaired(value: dict[str, Any]) -> None:
    if value["state"] in ("sound", "none"):
        click.echo("nothing to repair" if value["state"] == "sound" else "nothing to repair: there is no database yet")
        return
    rows = [("found", problem) for problem in value["problems"]]
    if value["state"] == "indexes":
        rows.append(("mended", "the indexes, made anew from the rows, which are whole"))
    else:
        rows.append(("read", f"{_counted(value['read'])} from the damaged file"))
        if value["backup"]:
            rows.append(("filled", f"{_counted(value['from_backup'])} from {Path(value['backup']).name}"))
        if "from_transcripts" in value:
            brought = value["from_transcripts"]
            rows.append(
                ("heard", f"{amount(brought['turns'], 'turn')} again from {amount(brought['files'], 'transcript')}")
            )
        rows.append(("kept", f"{amount(value['without_transcript'], 'memory')} that no transcript would bring back"))
    render.described([*rows, *_read_again(value), *_ending(value)])


def _read_again(value: dict[str, Any]) -> list[tuple[str, str]]:
    """What the daemon took in when it was back."""
    since = value.get("came_back")
    return [("then", f"{_counted(since)} from what was said since")] if since else []


def _ending(value: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("lost", text) for text in value.get("lost", [])]
    return rows + ([("aside", f"the file of before: {value['set_aside']}")] if value.get("set_aside") else [])


def _with_daemon_stopped(*arguments: str, dry_run: bool, changed: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Has it done while no daemon runs; the daemon runs afterwards when it did before, or something changed."""
    paths = default_paths()
    ran = service.stop(paths, by_user=False)
    try:
        with render.progress() as bar:
            bar({"step": f"{arguments[0]}: reading"})
            report = _offline(*arguments, *(["--dry-run"] if dry_run else []))
    except CsmdError:
        _start_again(paths, ran)
        raise
    mended = not dry_run and changed(report)
    if mended:
        service.start(paths)
        with render.progress() as bar:
            client.work(paths, "csm_sync", {"vectors": False}, watch=bar)
        # Not what the sync says: the daemon began to read by itself when it started.
        now, then = client.call(paths, "csm_runtime_status")["counts"], report.get("counts", {})
        report["came_back"] = {name: max(0, now[name] - then.get(name, now[name])) for name in ("turns", "memories")}
    else:
        _start_again(paths, ran)
    return report


def _start_again(paths: Paths, ran: bool) -> None:
    """The daemon as it was; that it cannot start is no news to whoever is told why already."""
    if ran:
        try:
            service.start(paths)
        except CsmdError as error:
            click.echo(f"csmd: {error.what}", err=True)


def _offline(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "csmd.daemon.repair", *arguments],
        env=child_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        what, hint = service.complaint(done.stderr)
        raise CsmdError(what or f"exit code {done.returncode}", hint=hint)
    return dict(wire.loads(done.stdout.encode()))


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    import_,
    export,
    sync,
    model,
    backup,
    restore,
    repair,
)
