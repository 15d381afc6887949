"""Checkpoints and goals as people see them; values in, text on a console."""

from __future__ import annotations

from typing import Any

import click

from csmd import text as texts
from csmd.cli import show
from csmd.text import amount

#: Columns that the other columns of the list take beside the goal.
BESIDE = 55
ID = 8
#: The kinds of pieces in the order in which they are shown, and what they are called.
PARTS = {
    "goal": "asked for", "plan": "plan", "correction": "corrected by the user", "decision": "decided",
    "failing": "failing", "edited": "files changed", "open": "open", "read": "files read",
}  # fmt: skip
WHYS = {"compaction": "compaction", "asked": "asked for"}


def listing(value: dict[str, Any]) -> None:
    """A list of checkpoints: when, of which session, why, and what the session was for."""
    out = show.console()
    if not value["checkpoints"]:
        show.print_text(
            out, "no checkpoint is kept here; one is made before each compaction, or with `csmd checkpoint create`"
        )
        return
    columns = [("checkpoint", "left"), ("at", "left"), ("session", "left"), ("why", "left"), ("about", "left")]
    room = max(out.width - BESIDE, 8)
    rows = [
        [row["id"], show.when(row["at"]), row["session_id"][:ID], WHYS[row["why"]],
         texts.cut(texts.squeeze(row["note"] or row["goal"]) or "-", room)]
        for row in value["checkpoints"]
    ]  # fmt: skip
    show.table(out, columns, rows)


def one(value: dict[str, Any]) -> None:
    """One checkpoint: what it is of, then every piece of it under its name."""
    out = show.console()
    if value.get("made"):
        show.print_text(out, f"kept as {value['id']}", style="bold")
    else:
        show.print_text(out, value["id"], style="bold")
    unfinished = "" if value["whole"] else "; what the transcript still brings of before is added"
    show.labelled(out, "when", f"{show.when(value['at'])}, {_why(value)}{unfinished}")
    show.labelled(out, "session", f"{value['session_id']} in {value['cwd'] or 'a directory that nobody named'}")
    if value["note"]:
        show.labelled(out, "note", value["note"])
    told = f"{amount(value['tokens'], 'token')} of essentials"
    show.labelled(out, "holds", f"{told}, {amount(value['captured'], 'turn')} as they stood (--raw shows them)")
    for kind, heading in PARTS.items():
        found = [part for part in value["parts"] if part["kind"] == kind]
        if not found:
            continue
        out.print()
        out.print(heading, style="dim")
        if kind in ("edited", "read"):
            show.print_text(out, ", ".join(_times(part) for part in found), most=6)
            continue
        for part in found:
            head = f"{part['state']:<7}" if part["state"] else ""
            text = f"{_times(part)}: {_error(value, part)}" if kind == "failing" else part["text"]
            show.print_text(out, text, head=f"- {head}", most=4)


def _why(value: dict[str, Any]) -> str:
    if value["why"] == "asked":
        return "asked for"
    return "before a compaction" if value["summary_uuid"] else "before a compaction that was announced"


def _times(part: dict[str, Any]) -> str:
    return f"{part['text']} x{part['amount']}" if part["amount"] > 1 else str(part["text"])


def _error(value: dict[str, Any], part: dict[str, Any]) -> str:
    """What a failing command said: the piece behind it."""
    at = value["parts"].index(part) + 1
    behind = value["parts"][at] if at < len(value["parts"]) else None
    return str(behind["text"]) if behind is not None and behind["kind"] == "error" else "no word of why"


def raw(value: dict[str, Any], to_person: bool) -> None:
    """The captured turns; to a person each under its name, else byte for byte, each ended by a line break."""
    out = show.console()
    for turn in value["raw"]:
        if to_person:
            who = f"{turn['kind']} {turn['tool']}".strip()
            show.print_text(out, f"{show.when(turn['at'])}  {who}  {turn['uuid']}", style="bold")
            show.print_text(out, turn["text"], indent=2)
        else:
            click.echo(turn["text"], color=True)  # every byte of it


def restored(value: dict[str, Any]) -> None:
    """The essentials as the next session is told them, and which session that is."""
    out = show.console()
    for line in value["text"].splitlines():
        item = line.startswith("- ")
        show.print_text(out, line[2:] if item else line, head="- " if item else "")
    out.print()
    whom = (
        f"session {value['restored_for'][:ID]} when it starts again"
        if value["restored_for"]
        else "the next session here"
    )
    show.print_text(out, f"{amount(value['tokens'], 'token')}; told once, to {whom}", style="dim")


def goal(value: dict[str, Any]) -> None:
    """What became of one goal."""
    out = show.console()
    show.print_text(out, value["text"], head=f"{value['id']}  ")
    if value["done_at"]:
        show.print_text(out, "done; no session is told it any more", style="dim")
    elif value["authority"] == "user":
        whom = "its session" if value["session_id"] else f"each session in {value['project']}"
        show.print_text(out, f"told to {whom} until `csmd goal done {value['id']}`", style="dim")
    else:
        told = "the assistant's: told in its session as the assistant's"
        silent = (
            "nobody typed this in a terminal, so it counts as the assistant's and no session is told it: type it in a "
            "terminal, or name its session with --session"
        )
        show.print_text(out, told if value["session_id"] else silent, style="dim")


def goals(value: dict[str, Any]) -> None:
    """A list of goals: whose they are, since when, and whether they are done."""
    out = show.console()
    if not value["goals"]:
        show.print_text(out, "no goal is open here; `csmd goal set TEXT` declares one")
        return
    for one in value["goals"]:
        show.print_text(out, one["text"], head=f"{one['id']}  ", most=4)
        about = [
            "yours" if one["authority"] == "user" else "the assistant's",
            f"since {show.when(one['created_at'])[:10]}",
        ]
        about += [f"session {one['session_id'][:ID]}"] * bool(one["session_id"])
        about += [f"done {show.when(one['done_at'])[:10]}"] * bool(one["done_at"])
        show.print_text(out, ", ".join(about), indent=len(one["id"]) + 2, style="dim")
