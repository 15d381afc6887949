"""Commands about checkpoints of sessions."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.injections import items
from csmd.cli.render import Line, Screen, block, bold, dim, join, pairs, table
from csmd.config import assistant_session
from csmd.text import display
from csmd.text.ages import when
from csmd.text.display import amount, cut, squeeze

#: The verbs of this module.
VERBS = verb.Verbs()


#: Columns of the list other than the goal.
CHECKPOINT_NUMBERS = 55
#: Kind of a piece -> its heading, in the order shown.
PARTS = {
    "goal": "asked for", "plan": "plan", "correction": "corrected by the user", "decision": "decided",
    "failing": "failing", "edited": "files changed", "open": "open", "read": "files read",
    "output": "long outputs",
}  # fmt: skip
CHECKPOINT_WHYS = {"compaction": "compaction", "asked": "asked for"}
CHECKPOINT = VERBS.add_group("checkpoint", "Keep what a session is at; one is kept before each compaction.")


@CHECKPOINT.action(
    "create", verb.text("--session", "ID", "A session; the one that asks, else the latest one here."),
    verb.text("--note", "TEXT", "A line of yours to be told with it."),
)  # fmt: skip
def create(session: str, note: str, as_json: bool) -> None:
    """Keep a session's state as it is now."""
    session = session or assistant_session()[2]
    options = {"session": session, "note": note, "project": None, "as_json": as_json}
    verb.reply("csm_checkpoint_create", show_checkpoint, options)


@CHECKPOINT.tool(
    "list", "csm_checkpoint_list", *verb.PROJECTS, verb.text("--session", "ID", "Of one session only."), verb.limit(20)
)
@render.if_empty(
    "checkpoints", "no checkpoint is kept here; one is made before each compaction, or with `csmd checkpoint create`"
)
def show_checkpoints(value: dict[str, Any]) -> Screen:
    """List checkpoints, the latest first."""
    room = max(render.width() - CHECKPOINT_NUMBERS, 8)
    rows = [
        [row["id"], when(row["at"]), display.shorten_session_id(row["session_id"]), CHECKPOINT_WHYS[row["why"]],
         cut(squeeze(row["note"] or row["goal"]) or "-", room)]
        for row in value["checkpoints"]
    ]  # fmt: skip
    return table("checkpoint|at|session|why|about", "<<<<<", rows)


def show_checkpoint(value: dict[str, Any]) -> Screen:
    """One checkpoint: its session and time, then its pieces under their headings."""
    unfinished = "" if value["whole"] else "; what the transcript still brings of before is added"
    why = "before a compaction" if value["summary_uuid"] else "before a compaction that was announced"
    captured = f"{amount(value['tokens'], 'token')} of essentials, {amount(value['captured'], 'turn')} as they stood"
    yield bold(f"kept as {value['id']}" if value.get("made") else value["id"])
    yield from pairs([
        ("when", f"{when(value['at'])}, {'asked for' if value['why'] == 'asked' else why}{unfinished}"),
        ("session", f"{value['session_id']} in {value['cwd'] or 'an unknown directory'}"),
        ("note", value["note"]),
        ("holds", f"{captured} (--raw shows them)"),
    ])  # fmt: skip
    for kind, heading in PARTS.items():
        parts = [part for part in value["parts"] if part["kind"] == kind]
        if kind in ("edited", "read"):
            names = ", ".join(map(_with_count, parts))
            yield from block(heading, [Line(names, most=6)] if parts else [])
            continue
        texts = [f"{_with_count(part)}: {_error(value, part)}" if kind == "failing" else part["text"] for part in parts]
        heads = [f"- {part['state']:<7}" if part["state"] else "- " for part in parts]
        yield from block(heading, [Line(*pieces, most=4) for pieces in zip(texts, heads, strict=True)])


def _with_count(part: dict[str, Any]) -> str:
    return f"{part['text']} x{part['amount']}" if part["amount"] > 1 else str(part["text"])


def _error(value: dict[str, Any], part: dict[str, Any]) -> str:
    """The output of a failing command: the piece that follows it."""
    at = value["parts"].index(part) + 1
    following = value["parts"][at : at + 1]
    return str(following[0]["text"]) if following and following[0]["kind"] == "error" else "no word of why"


@CHECKPOINT.action("show", verb.ID, verb.flag("--raw", help="The turns that it captured, as they were stored."))
def checkpoint_show(raw: bool, **options: Any) -> None:
    """Show a checkpoint. The beginning of its ID suffices."""
    captured = partial(show_captured, to_person=sys.stdout.isatty())
    verb.reply("csm_checkpoint_show", captured if raw else show_checkpoint, {"raw": raw, **options})


def show_captured(value: dict[str, Any], *, to_person: bool) -> Screen:
    """The captured turns: for a person under their headings, else byte for byte, each ended by a line break."""
    for turn in value["raw"]:
        if to_person:
            yield bold(f"{when(turn['at'])}  {join(turn['kind'], turn['tool'], by=' ')}  {turn['uuid']}")
            yield Line(turn["text"], indent=2)
        else:
            click.echo(turn["text"].encode("utf-8", "surrogatepass"))


@CHECKPOINT.tool(
    "restore", "csm_checkpoint_restore", verb.ID,
    verb.text("--session", "ID", "Tell it to this session; to the next one there by default."),
)  # fmt: skip
def show_restored(value: dict[str, Any]) -> Screen:
    """Print what a checkpoint holds, and tell it to the next session."""
    yield from items(value["text"])
    session = value["restored_for"]
    whom = f"session {display.shorten_session_id(session)} when it starts again" if session else "the next session here"
    yield dim(f"{amount(value['tokens'], 'token')}; told once, to {whom}", gap=True)
