"""The verb that shows how the assistant's work has ended here, and what it was done with."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import show
from csmd.cli.ask import ask, json_option, looking, out, project_options
from csmd.text import amount

#: Below so many sessions a figure says little, and is shown as few.
FEW = 3


@click.command("self")
@project_options
@json_option
def self_(project: str | None, all_projects: bool, as_json: bool) -> None:
    """Show how kinds of work ended here, and what got worse."""
    out(ask("csm_self_model", **looking(project, all_projects)), as_json, model)


def model(value: dict[str, Any]) -> None:
    """The self model on a console: confidence 0-100, what it rests on, warnings, models and clients."""
    console = show.console()
    if not value["sessions"]:
        show.print_text(console, "nothing is counted here yet; --all-projects looks everywhere")
        return
    show.print_text(console, f"{amount(value['sessions'], 'session')}; {value['note']}", style="dim")
    for warning in value["drift"]:
        show.print_text(console, f"{warning['text']} ({warning['id']})", head="worse  ", style="yellow")
    console.print()
    width = max(len(one["name"]) for one in value["capabilities"])
    for one in value["capabilities"]:
        show.print_text(console, f"{one['name']:<{width}}  {_figure(one)}")
    for what, heading in (("model", "models"), ("version", "clients")):
        rows = [one for one in value["continuity"] if one["what"] == what]
        if rows:
            console.print()
            console.print(heading, style="dim")
        for one in rows[-SHOWN:]:
            span = f"{one['since'][:10]} to {one['until'][:10]}"
            show.print_text(console, f"{span}  {one['name']}, {amount(one['sessions'], 'session')}")
        if len(rows) > SHOWN:
            show.print_text(console, f"and {len(rows) - SHOWN} before; --json has all", style="dim")
    links = ", ".join(f"{count} {kind}" for kind, count in value["links"].items())
    if links:
        console.print()
        show.print_text(
            console, f"links between sessions: {links}; `csmd session digest ID` shows those of one", style="dim"
        )


#: Models and clients that are shown, the latest.
SHOWN = 6


def _figure(one: dict[str, Any]) -> str:
    if not one["decided"]:
        return f" -  {amount(one['sessions'], 'session')}, none of which showed how it ended"
    figure = f"{one['confidence'] * 100:>3.0f}" if one["decided"] >= FEW else "few"
    return f"{figure}  {one['well']} of {amount(one['decided'], 'session')} ended well"


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (self_,)
