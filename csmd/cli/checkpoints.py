"""Commands about checkpoints of sessions."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.injections import show_lines
from csmd.cli.render import Line, Screen, block, bold, dim, join, pairs, table
from csmd.config import assistant_session
from csmd.text import display
from csmd.text.ages import when
from csmd.text.display import amount, cut, squeeze

VERBS = verb.Verbs()
#: Columns of the list other than the goal.
NUMBER_COLUMNS = 55
#: Kind of a part -> its heading, in the order shown.
PARTS = {
    "goal": "asked for", "plan": "plan", "correction": "corrected by the user", "decision": "decided",
    "failing": "failing", "edited": "files changed", "open": "open", "read": "files read",
    "output": "long outputs",
}  # fmt: skip
CHECKPOINT_REASONS = {"compaction": "compaction", "asked": "asked for"}
CHECKPOINT = VERBS.add_group("checkpoint", "Save the state of a session; one is saved before each compaction.")


@CHECKPOINT.action(
    "create", verb.text("--session", "ID", "A session; by default the calling one, or the latest here."),
    verb.text("--note", "TEXT", "A note to show with it."),
)  # fmt: skip
def create(session: str, note: str, as_json: bool) -> None:
    """Save a session's present state."""
    session = session or assistant_session()[2]
    options = {"session": session, "note": note, "project": None, "as_json": as_json}
    verb.reply("csm_checkpoint_create", show_checkpoint, options)


@CHECKPOINT.tool(
    "list", "csm_checkpoint_list", *verb.PROJECTS, verb.text("--session", "ID", "Only of this session."), verb.limit(20)
)
@render.if_empty("checkpoints", "no checkpoints here yet; each compaction makes one, and `csmd checkpoint create`")
def show_checkpoints(value: dict[str, Any]) -> Screen:
    """List checkpoints, the latest first."""
    goal_width = max(render.width() - NUMBER_COLUMNS, 8)
    rows = [
        [row["id"], when(row["at"]), display.shorten_session_id(row["session_id"]), CHECKPOINT_REASONS[row["why"]],
         cut(squeeze(row["note"] or row["goal"]) or "-", goal_width)]
        for row in value["checkpoints"]
    ]  # fmt: skip
    return table("checkpoint|at|session|why|about", "<<<<<", rows)


def show_checkpoint(value: dict[str, Any]) -> Screen:
    """Shows one checkpoint: its session and time, then its parts under their headings."""
    unfinished = "" if value["whole"] else "; earlier turns that the transcript still brings are added"
    reason = "before a compaction" if value["summary_uuid"] else "before an announced compaction"
    captured = f"{amount(value['tokens'], 'token')} of essentials, {amount(value['captured'], 'turn')} in full"
    yield bold(f"saved as {value['id']}" if value.get("made") else value["id"])
    yield from pairs([
        ("when", f"{when(value['at'])}, {'asked for' if value['why'] == 'asked' else reason}{unfinished}"),
        ("session", f"{value['session_id']} in {value['cwd'] or 'an unknown directory'}"),
        ("note", value["note"]),
        ("holds", f"{captured} (--raw shows them)"),
    ])  # fmt: skip
    for kind, heading in PARTS.items():
        parts = [part for part in value["parts"] if part["kind"] == kind]
        if kind in ("edited", "read"):
            names = ", ".join(map(_add_count, parts))
            yield from block(heading, [Line(names, max_lines=6)] if parts else [])
            continue
        yield from block(heading, [_part_line(value, part) for part in parts])


def _part_line(value: dict[str, Any], part: dict[str, Any]) -> Line:
    text = f"{_add_count(part)}: {_find_error(value, part)}" if part["kind"] == "failing" else part["text"]
    return Line(text, head=f"- {part['state']:<7}" if part["state"] else "- ", max_lines=4)


def _add_count(part: dict[str, Any]) -> str:
    return f"{part['text']} x{part['amount']}" if part["amount"] > 1 else str(part["text"])


def _find_error(value: dict[str, Any], part: dict[str, Any]) -> str:
    """Returns the output of a failing command: the part that follows it."""
    index = value["parts"].index(part) + 1
    following = value["parts"][index : index + 1]
    return str(following[0]["text"]) if following and following[0]["kind"] == "error" else "without an error message"


@CHECKPOINT.action("show", verb.ID, verb.flag("--raw", help="Print the captured turns as they were stored."))
def checkpoint_show(raw: bool, **options: Any) -> None:
    """Show a checkpoint. The beginning of its ID suffices."""
    captured = partial(show_captured, is_terminal=sys.stdout.isatty())
    verb.reply("csm_checkpoint_show", captured if raw else show_checkpoint, {"raw": raw, **options})


def show_captured(value: dict[str, Any], *, is_terminal: bool) -> Screen:
    """Shows the captured turns: on a terminal under their headings, else byte for byte, each ended by a line break."""
    for turn in value["raw"]:
        if is_terminal:
            yield bold(f"{when(turn['at'])}  {join(turn['kind'], turn['tool'], by=' ')}  {turn['uuid']}")
            yield Line(turn["text"], indent=2)
        else:
            click.echo(turn["text"].encode("utf-8", "surrogatepass"))


@CHECKPOINT.tool(
    "restore", "csm_checkpoint_restore", verb.ID,
    verb.text("--session", "ID", "The session to show it to; the next one there by default."),
)  # fmt: skip
def show_restored(value: dict[str, Any]) -> Screen:
    """Print a checkpoint, and show it to the next session."""
    yield from show_lines(value["text"])
    session = value["restored_for"]
    reader = f"session {display.shorten_session_id(session)} when it starts again" if session else "the next session"
    yield dim(f"{amount(value['tokens'], 'token')}; shown once, to {reader}", gap=True)
