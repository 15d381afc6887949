"""What people see of beliefs, duplicates and rules, at 80 columns; values in, text on a console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd import text as texts
from csmd.cli import show
from csmd.text import amount

if TYPE_CHECKING:
    from rich.console import Console

HEADINGS = {"preference": "Preferences", "opinion": "Opinions", "worldview": "Worldviews"}
#: Verb of an action: done, planned.
DONE = {
    "merge": ("merged", "would merge"),
    "archive": ("archived", "would archive"),
    "embed": ("waits for its vector", "would embed"),
}
LINES = 3


def beliefs(value: dict[str, Any]) -> None:
    """What is held, by kind and subject: how sure, how often it was told, and the best wording."""
    out = show.console()
    if not value["beliefs"]:
        show.print_text(out, "nothing is held here yet: what you state, and what is told more than once, comes here")
        return
    for kind, heading in HEADINGS.items():
        rows = [row for row in value["beliefs"] if row["kind"] == kind]
        if not rows:
            continue
        if rows[0] is not value["beliefs"][0]:
            out.print()
        out.print(heading, style="bold")
        for row in rows:
            _belief(out, row)
        if kind in value["more"]:
            show.print_text(
                out, f"and {value['more'][kind]} more: --limit {value['more'][kind] + len(rows)}", style="dim"
            )


def _belief(out: Console, row: dict[str, Any]) -> None:
    told = "told once" if row["told"] == 1 else f"told {row['told']} times in {amount(row['sessions'], 'session')}"
    by = "" if row["authority"] == "user" else f" by the {row['authority']}"
    alike = (
        f", {row['also'][0]}" if len(row["also"]) == 1 else f", {len(row['also'])} more like it" if row["also"] else ""
    )
    head = f"{row['confidence'] * 100:>3.0f} %  "
    show.print_text(out, texts.squeeze(row["text"]), head=head, most=LINES)
    of = f"{row['subject']}: " if row["subject"] else ""
    about = f"{of}{told}{by}, {row['id']}{alike}"
    show.print_text(out, about, indent=len(head), style="dim")


def duplicates(value: dict[str, Any]) -> None:
    """Pairs of memories: the one that stays, the other below it, and how to merge them."""
    out = show.console()
    if not value["duplicates"]:
        show.print_text(out, "no two memories here say the same, or nearly so")
        return
    for number, row in enumerate(value["duplicates"]):
        if number:
            out.print()
        stays, goes = row["memories"]
        said = (
            "the same"
            if row["kind"] == "duplicate"
            else f"nearly the same: {row['confidence'] * 100:.0f} % of their words"
        )
        out.print(said, style="bold")
        for name, memory in (("stays", stays), ("goes", goes)):
            by = "" if memory["authority"] == "user" else f", by the {memory['authority']}"
            sure = f"{memory['confidence'] * 100:.0f} %, {memory['confirmed_at'][:10]}{by}"
            show.print_text(out, f"{memory['id']}, {sure}", head=f"{name:<7}", style="dim")
            show.print_text(out, texts.squeeze(memory["text"]), indent=7, most=2 * LINES)
        show.print_text(out, f"csmd merge {goes['id']} {stays['id']}", indent=7, style="dim")
    exact = sum(row["kind"] == "duplicate" for row in value["duplicates"])
    out.print()
    near = len(value["duplicates"]) - exact
    show.print_text(
        out, f"{exact} say the same, {near} nearly; `csmd merge` merges the first, `csmd merge --near` all", style="dim"
    )


def mended(value: dict[str, Any]) -> None:
    """What was done, or would be, and to which memories."""
    out = show.console()
    if not value["actions"] and not value["left"]:
        show.print_text(out, "there is nothing to do")
        return
    for row in value["actions"]:
        verb = DONE[row["do"]][value["dry_run"]]
        into = f" into {row['into']}" if row["into"] else ""
        show.print_text(out, f"{verb} {row['id']}{into}", style="bold")
        show.print_text(out, texts.squeeze(row["text"]), indent=2, most=LINES)
        if row["into_text"]:
            show.print_text(out, f"stays: {texts.squeeze(row['into_text'])}", indent=2, most=LINES)
        show.print_text(out, row["reason"], indent=2, style="dim")
    for row in value["left"]:
        show.print_text(out, f"left {row['id']} as it is: it has changed meanwhile", style="yellow")
    if not value["dry_run"] and any(row["do"] in ("merge", "archive") for row in value["actions"]):
        show.print_text(out, "`csmd merge --undo ID` takes one back", style="dim")


def undone(value: dict[str, Any]) -> None:
    """Which memory stands by itself again."""
    verb = "would stand" if value["dry_run"] else "stands"
    from_ = f", apart from {value['from']}" if value["from"] else ""
    show.print_text(
        show.console(), f"{value['undone']} {verb} by itself again{from_}: {texts.squeeze(value['text'])}", most=LINES
    )


def governance(value: dict[str, Any]) -> None:
    """Each rule and whether it holds; what breaks one, and the remedy."""
    out = show.console()
    for row in value["rules"]:
        show.print_text(
            out, row["rule"], head="ok      " if row["holds"] else "BROKEN  ", style="" if row["holds"] else "bold"
        )
        if not row["holds"]:
            show.print_text(out, f"by {', '.join(row['broken_by'])}", indent=8)
            show.print_text(out, f"try: {row['try']}", indent=8, style="dim")
    broken = sum(not row["holds"] for row in value["rules"])
    out.print()
    said = "all of them hold" if value["holds"] else f"{broken} of them {'does' if broken == 1 else 'do'} not hold"
    show.print_text(out, f"{amount(len(value['rules']), 'rule')}: {said}")
