"""What `csmd review` shows: one item with its reason, what speaks for it and what each key does; values in, text out."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import show_memory
from csmd.cli.lines import many
from csmd.cli.show import console, labelled, print_text, when

KEYS = {"keep": "k", "edit": "e", "drop": "d", "supersede": "s"}
DONE = {
    "keep": "kept",
    "edit": "worded anew",
    "drop": "dropped",
    "supersede": "superseded",
    "pin": "pinned",
    "unpin": "unpinned",
}
#: Sources of an item that are shown before somebody decides.
MOST = 3


def item(value: dict[str, Any], *, number: int, total: int, undo: bool) -> None:
    """One item as it is asked about."""
    out = console()
    out.print()
    out.rule(f"{number} of {total}", style="dim", characters="-", align="left")
    _what(value)
    out.print()
    for verb, does in value["does"].items():
        out.print(f"  {KEYS[verb]}  {verb:<10} {does}"[: out.width])
    rest = ["n later", *(["u undo the last"] if undo else []), "q quit"]
    print_text(out, "   ".join(rest), indent=2, style="dim")


def _what(value: dict[str, Any]) -> None:
    out = console()
    sure = f"{value['confidence'] * 100:.0f} % sure"
    print_text(out, f"{value['title']}: {value['gate']} {value['category']}, {sure}, {value['id']}", style="dim")
    print_text(out, value["text"], most=12, style="bold")
    labelled(out, "why", value["reason"])
    labelled(out, "holds", value["project"] or "everywhere")
    show_memory.about(out, value["memories"], besides=value["text"])
    show_memory.evidence(out, value["evidence"], most=MOST)


def waiting(value: dict[str, Any]) -> None:
    """The list, where nobody can press a key, with what answers it."""
    out = console()
    if not value["items"]:
        print_text(out, "nothing waits for you here")
        return
    for one in value["items"]:
        sure = f"{one['confidence'] * 100:.0f} %"
        print_text(out, one["text"], head=f"{one['id']}  ", most=4)
        print_text(out, f"{one['title']}, {sure}: {one['reason']}", indent=13, style="dim")
    left = value["total"] - len(value["items"])
    out.print()
    told = [f"{many(value['total'], 'thing')} wait{'s' if value['total'] == 1 else ''} for you"]
    told += [f"... and {left:,} more (--limit {value['total']})"] if left > 0 else []
    print_text(out, "; ".join(told))
    print_text(
        out,
        "In a terminal `csmd review` asks about each with one key, or: "
        "csmd review ID --keep | --edit TEXT | --drop | --supersede ID",
        style="dim",
    )


def near(found: list[dict[str, Any]]) -> None:
    """Memories that may take another's place, with numbers to choose one by."""
    out = console()
    for number, one in enumerate(found, 1):
        said = f"{one['text']} ({one['id']}, {when(one['at'])[:10]})"
        print_text(out, said, head=f"  {number}. ", most=3)


def answered(value: dict[str, Any], *, brief: bool = False) -> None:
    """What an answer did."""
    out = console()
    made = f" as {value['made']}" if value["made"] and value["made"] != value["id"] else ""
    made = f" by {value['made']}" if value["verb"] == "supersede" and made else made
    said = f"{DONE[value['verb']]}: {value['id']}{made}"
    print_text(out, said if brief else f"{said}: {value['text']}", style="green" if brief else "")
    if not brief:
        print_text(out, "`csmd review --undo` takes it back", style="dim")


def undone(value: dict[str, Any]) -> None:
    """What was taken back."""
    print_text(console(), f"taken back: {value['id']} is no longer {DONE[value['verb']]}")


def refused(what: str, hint: str) -> None:
    """Why an answer was not carried out."""
    out = console()
    print_text(out, what, style="yellow")
    print_text(out, hint, head="  try: ")


def said(what: str) -> bool:
    """Says something and that the question stands."""
    print_text(console(), what, style="dim")
    return False


def ended(counted: dict[str, int], *, left: int) -> None:
    """What a sitting came to."""
    told = ", ".join(f"{number} {verb}" for verb, number in counted.items()) or "nothing was changed"
    rest = f"; {left:,} left" if left > 0 else "; nothing is left"
    click.echo()
    print_text(console(), told + rest)
    if counted:
        print_text(console(), "`csmd review --undo` takes the last one back", style="dim")


def edited(value: dict[str, Any]) -> None:
    """What became of another wording."""
    out = console()
    if not value["changed"]:
        print_text(out, f"nothing was changed: {value['id']} stays as it is")
        return
    print_text(out, f"{value['made']}: {value['text']}")
    said = f"it takes the place of {value['id']}; `csmd review --undo` takes that back"
    print_text(out, said, style="dim")
