"""`csmd packets`, `csmd candidates` and `csmd promote`: what was observed, what waits and why, what becomes a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from csmd.cli import show
from csmd.cli.ask import ask, json_option, looking, out, person_is_there, project_options
from csmd.text import amount

if TYPE_CHECKING:
    from rich.console import Console

#: Plan's word -> what people read.
STEPS = {
    "promote": ("becomes a memory", "became a memory"),
    "known": ("known already", "known already"),
    "review": ("a person has to say", "a person has to say"),
    "wait": ("waits", "waits"),
}


@click.command()
@project_options
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1, 1000))
@json_option
def packets(project: str | None, all_projects: bool, limit: int, as_json: bool) -> None:
    """List what was observed in sessions."""
    out(ask("csm_memory_packets", **looking(project, all_projects), limit=limit), as_json, _packets)


def _packets(value: dict[str, Any]) -> None:
    console = show.console()
    if not value["packets"]:
        show.print_text(console, "nothing was observed here yet")
        return
    day = ""
    for one in value["packets"]:
        stamp = show.when(one["at"])
        if stamp[:10] != day:
            day = stamp[:10]
            show.print_text(console, day, style="bold")
        state = one["state"]
        how = [f"{name} {state[name] * 100:.0f}" for name in ("frustration", "urgency") if (state[name] or 0) >= 0.2]
        ended = "" if one["outcome"] in ("", "ok", "asked") else f" ({one['outcome']})"
        known = [state["stance"], *how] if state["stance"] != "unknown" else how
        mood = f"   {', '.join(known)}" if one["kind"] in ("order", "scope") and known else ""
        show.print_text(
            console, f"{one['subject']}{ended}{mood}", head=f"{stamp[11:16]}  {one['kind']:<9}  ", most=2
        )  # fmt: skip


@click.command()
@project_options
@json_option
def candidates(project: str | None, all_projects: bool, as_json: bool) -> None:
    """List what waits to become a memory, and what it waits for."""
    out(ask("csm_memory_candidate_report", **looking(project, all_projects)), as_json, _candidates)


def _candidates(value: dict[str, Any]) -> None:
    console = show.console()
    for kind, found in value["counts"].items():
        told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in found.items())
        show.print_text(console, told, head=f"{kind.replace('_', ' '):<18}")
    if not value["candidates"]:
        show.print_text(console, "nothing waits here" if value["counts"] else "there are no candidates here yet")
        return
    console.print()
    for one in value["candidates"]:
        _one(console, one, one["why"] or [one["reason"]])
    show.print_text(console, "`csmd promote --dry-run` shows what would become a memory", style="dim")


def _one(console: Console, one: dict[str, Any], why: list[str], head: str = "") -> None:
    show.print_text(console, one["text"], style="bold" if head else "")
    about = f"{head or one['status'].replace('_', ' ')}: {'; '.join(why)}" if why else head
    show.print_text(console, about, indent=2)
    place = f", in {one['project']}" if one["project"] else ""
    show.print_text(
        console,
        f"{one['id']}  {one['kind'].replace('_', ' ')}, confidence {one['confidence'] * 100:.0f}, {one['reason']}{place}",
        indent=2,
        style="dim",
    )
    console.print()


@click.command()
@project_options
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--relaxed", is_flag=True, help="Lower thresholds: what a small history would give. For trying out.")
@json_option
def promote(project: str | None, all_projects: bool, dry_run: bool, relaxed: bool, as_json: bool) -> None:
    """Make memories of candidates that are sure enough."""
    found = ask(
        "csm_belief_promote",
        **looking(project, all_projects),
        profile="relaxed" if relaxed else "default",
        apply=not dry_run,
        by_person=person_is_there(),
    )
    out(found, as_json, _promoted)


def _promoted(value: dict[str, Any]) -> None:
    console, done = show.console(), value["applied"]
    if not value["actions"]:
        show.print_text(console, "nothing waits here")
        return
    for action in value["actions"]:
        head = STEPS[action["step"]][done]
        ident = f" {action['memory_id']}" if action["memory_id"] and action["step"] == "promote" else ""
        _one(console, action["candidate"], action["reasons"], head=f"{head}{ident}")
    count = sum(action["step"] == "promote" for action in value["actions"])
    told = f"{amount(count, 'new memory')}" if done else f"{amount(count, 'candidate')} would become a memory"
    show.print_text(console, told, style="bold")


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (packets, candidates, promote)
