"""Commands that show the assistant's instruction files and its own memory."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Screen, raw
from csmd.text.display import amount, squeeze

VERBS = verb.Verbs()
INSTRUCTIONS = VERBS.add_group("instructions", "Show the assistant's instruction files and own memory.")


@INSTRUCTIONS.tool(
    "show", "csm_context_build", verb.PROJECT,
    verb.option("--mode", type=click.Choice(["host", "seed"]), default="host", show_default=True,
    help="As the assistant loads them, or four scopes with @include lines."),
)  # fmt: skip
def show_context(value: dict[str, Any]) -> Screen:
    """Show the instructions of a session here."""
    # The text alone goes to standard output, so that it can be written to a file.
    click.echo(value["text"] or "no instruction files for this directory", err=not value["text"])
    if files := value["files"]:
        click.echo(f"\n{amount(len(files), 'file')}, about {amount(value['tokens'], 'token')}:", err=True)
    for file in files:
        click.echo(f"  {file['scope']:<8} {file['tokens']:>6}  {file['path']}", err=True)
    for problem in value["problems"]:
        click.echo(f"  ! {problem}", err=True)
    return []


@INSTRUCTIONS.tool("memory", "csm_memdir_scan", verb.PROJECT)
@raw
def show_memos(value: dict[str, Any]) -> Screen:
    """List the files of the assistant's own memory here."""
    yield squeeze(value["folder"])
    if not value["files"]:
        yield "no files: the assistant has no memory of its own here"
    for memo in value["files"]:
        details = f"{memo['type'] or '?'}, {render.size(memo['size'])}, {memo['modified'][:10]}"
        yield f"\n{squeeze(memo['filename'])}  ({details})"
        if title := memo["description"] or memo["name"]:
            yield f"  {title}"
        yield from (f"  ! {squeeze(problem)}" for problem in memo["problems"])


INSTRUCTIONS.add_tool(
    "file", "csm_memdir_load", "{text}", "Show one file of the assistant's own memory, without its head.",
    verb.argument("file"), verb.PROJECT,
)  # fmt: skip
