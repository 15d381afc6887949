"""`csmd errors`: what failed here, how often, and what mended it last."""

from __future__ import annotations

from typing import Any

import click

from csmd import text as texts
from csmd.cli import show
from csmd.cli.ask import ask, json_option, looking, out, project_options
from csmd.text import amount


@click.command()
@project_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200), help="How many.")
@json_option
def errors(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List what failed here, how often, and what mended it."""
    out(ask("csm_error_list", **looking(project, all_projects), limit=limit), as_json, shown)


def shown(value: dict[str, Any]) -> None:
    """The failures, those of the most sessions first, each with what it said and what mended it."""
    console = show.console()
    if not value["errors"]:
        show.print_text(console, "nothing is known to have failed here; it is found in what commands answered")
        return
    for number, one in enumerate(value["errors"]):
        if number:
            console.print()
        times = f"seen {amount(one['times'], 'time')} in {amount(one['sessions'], 'session')}"
        code = f", exit code {one['exit_code']}" if one["exit_code"] > 0 else ""
        command = f"{one['command']}{code}" if one["command"] else "pasted"
        told = f"{command}: {times}, last on {one['last_at'][:10]} ({one['id']})"
        show.print_text(console, told, style="bold")
        show.print_text(console, one["message"], indent=2, most=3)
        for line in _mended(one):
            show.print_text(console, line, head="  last fixed by ", most=3, style="dim")
        if one["memory_id"]:
            show.print_text(console, texts.squeeze(one["memory"]), head=f"  {one['memory_id']}  ", most=4, style="dim")


def _mended(one: dict[str, Any]) -> list[str]:
    """What mended it, in one line; [] where that is not known."""
    if not one["fixed_at"]:
        return []
    files = one["fixed_files"]
    named = ", ".join(files[:3]) + (f" and {amount(len(files) - 3, 'other file')}" if len(files) > 3 else "")
    why = f": {texts.squeeze(one['fixed_by'])}" if one["fixed_by"] else ""
    return [f"an edit of {named} on {one['fixed_at'][:10]}{why}"]


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (errors,)
