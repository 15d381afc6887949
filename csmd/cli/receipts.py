"""`csmd receipts`: what sessions were told, how much it took, and how much of it they made use of."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import show, why
from csmd.cli.ask import ask, here, json_option, looking, out, project_options
from csmd.text import amount


@click.command()
@click.argument("ident", metavar="[ID]", default="")
@click.option("--session", metavar="ID", default="", help="Only what this session was told.")
@project_options
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000))
@json_option
def receipts(ident: str, session: str, project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List what sessions here were told, and what was used. With ID one of them in detail."""
    if ident:
        out(ask("csm_receipt_show", id=ident, asking=here(None)), as_json, why.shown)
        return
    found = ask("csm_receipts", session=session, **looking(project, all_projects), limit=limit)
    out(found, as_json, listing)


def listing(value: dict[str, Any]) -> None:
    """The injections, the latest first, then the sum of a week."""
    console = show.console()
    if not value["receipts"]:
        show.print_text(console, "no session here was told anything; --all-projects looks everywhere")
    else:
        columns = [("when", "left"), ("session", "left"), ("event", "left"), ("tokens", "right"), ("told", "right"),
                   ("used", "left"), ("receipt", "left")]  # fmt: skip
        show.table(console, columns, [_row(one) for one in value["receipts"]])
    week = value["week"]
    if week["injections"]:
        console.print()
        show.print_text(console, total(week), style="dim")


def _row(one: dict[str, Any]) -> list[str]:
    used = f"{one['used']} of {one['judged']}" if one["judged"] else "-"
    event = {"session_start": "start"}.get(one["event"], one["event"])[:12]
    return [
        show.when(one["at"]),
        one["session_id"][:8],
        event,
        str(one["tokens"]),
        str(one["items"]),
        used,
        one["id"][:17],
    ]


def total(week: dict[str, int]) -> str:
    """What was told in a week, in one line."""
    share = (
        f" ({week['used'] / week['judged']:.0%} of {week['judged']} judged)".replace("%", " %")
        if week["judged"]
        else ""
    )
    tokens = amount(week["tokens"], "token") if week["tokens"] < 10_000 else f"{week['tokens'] / 1000:.0f}k tokens"
    return (
        f"told {amount(week['injections'], 'time')} this week: {amount(week['items'], 'fact')}, "
        f"{week['used']} used{share}, {tokens}"
    )


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (receipts,)
