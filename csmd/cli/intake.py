"""The verbs that take something in, or out, and wait for it: import, export, sync, model."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from csmd.cli import ask as asking
from csmd.cli import install as installing
from csmd.cli import show
from csmd.cli.ask import json_option, work
from csmd.config import child_environment
from csmd.errors import CsmdError

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
    work("csm_import", params, as_json, show.imported)


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
    work("csm_memory_export", params, as_json, show.exported)


@click.command()
@vectors_option
@json_option
def sync(no_vectors: bool, as_json: bool) -> None:
    """Take in everything that is on disk now, and wait for it."""
    work("csm_sync", {"vectors": not no_vectors}, as_json, show.imported)


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
    return [sys.executable, "-P", "-m", "csmd.store.embed_worker", "--fetch", str(folder), "--model", name]


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


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (import_, export, sync, model)
