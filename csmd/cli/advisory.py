"""`csmd advisory`: the living state of a project, a preview that a brief holds only where the user wants it."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import show
from csmd.cli.ask import ask, json_option, looking, out
from csmd.text import amount


@click.command()
@click.option("--project", metavar="PATH", help="This directory's by default.")
@click.option("--debug", is_flag=True, help="Show every line, and why it is in or not.")
@json_option
def advisory(project: str | None, debug: bool, as_json: bool) -> None:
    """Show what csmd makes of recent sessions before it is sure."""
    tool = "csm_living_state_debug" if debug else "csm_living_state_preview"
    out(ask(tool, **looking(project)), as_json, lines if debug else preview)


def preview(value: dict[str, Any]) -> None:
    """The text as a session would get it, and whether sessions do."""
    show.injection(value, nothing="nothing: there is nothing unsettled about this project")
    _switch(value)


def lines(value: dict[str, Any]) -> None:
    """Every line by part, those that are not told with the reason."""
    console = show.console()
    part = ""
    for one in value["lines"]:
        if one["part"] != part:
            part = one["part"]
            show.print_text(console, part, style="bold")
        head, style = ("  + ", "") if one["told"] else ("  - ", "dim")
        why = "" if one["told"] else f"; left out: {one['why']}"
        show.print_text(console, f"{one['text']} ({one['tail']}){why}", head=head, style=style)
    if not value["lines"]:
        show.print_text(console, "nothing: no session here was looked at yet")
    told = sum(one["told"] for one in value["lines"])
    console.print()
    said = f"{told} of {amount(len(value['lines']), 'line')}, {value['tokens']} of {value['max_tokens']} tokens"
    show.print_text(console, f"{said}; trimmed in this order: {', '.join(value['trimmed'])}", style="dim")
    _switch(value)


def _switch(value: dict[str, Any]) -> None:
    said = (
        "briefs hold it" if value["enabled"] else "no brief holds it; `csmd config set stages.advisory true` lets them"
    )
    show.print_text(show.console(), f"{value['note']}; {said}", style="dim")


VERBS: tuple[click.Command, ...] = (advisory,)
