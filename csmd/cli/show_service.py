"""What the verbs say about the service: what keeps the daemon, and what that means; values in, text on the terminal."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from csmd.cli import edited
from csmd.cli.placing import Plan

#: A screen has 80 columns.
WIDTH = 78


def planned(plan: Plan) -> dict[str, str]:
    """The plan as JSON: who is to keep the daemon, the unit's file and how it changes, or why there is none."""
    if plan.manager is None:
        return {"kind": plan.kind, "file": "", "diff": "", "why": plan.why}
    return {"kind": plan.kind, "file": str(plan.manager.file), "diff": _diff(plan), "why": ""}


def plan(plan: Plan) -> None:
    """The plan for people: where the unit goes and its text, or why there is none."""
    if plan.manager is None:
        say(f"\nno service: {plan.why}")
        return
    click.echo(f"\n{plan.manager.file}:{'' if plan.changes else ' as it should be'}")
    click.echo(_diff(plan), nl=False)


def _diff(plan: Plan) -> str:
    assert plan.manager is not None
    before = None if plan.before is None else plan.before.encode()
    return edited.diff(before, plan.after.encode(), plan.manager.file)


def runs(plan: Plan, status: dict[str, Any]) -> None:
    """That the daemon runs, and for how long it will."""
    if status["replaced"] and status["replaced"] != status["version"]:
        say(f"the daemon of csmd {status['replaced']} was stopped")
    if plan.manager is None:
        say(f"the daemon runs detached, pid {status['daemon']['pid']}: {plan.why}")
        say("it does not survive a reboot; `csmd start` brings it back, and hooks keep events until then")
        return
    say(f"the daemon runs, pid {status['daemon']['pid']}, kept by {plan.kind}: {plan.manager.file}")
    if note := plan.manager.note():
        say(note)


def leaving(file: str) -> None:
    """That uninstalling would take the unit away, where there is one."""
    if file:
        click.echo(f"the service would be removed: {file}")


def left(file: str) -> None:
    """That the unit is gone, where there was one."""
    if file:
        click.echo(f"removed {file}")


def say(text: str) -> None:
    """A sentence, wrapped between words; a path is never broken."""
    head = len(text) - len(text.lstrip("\n"))
    wrapped = textwrap.fill(text[head:], WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    click.echo("\n" * head + wrapped)
