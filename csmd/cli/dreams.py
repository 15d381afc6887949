"""The verbs about dreams: whether one is due, what it would do, doing it now, what it did, taking it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from csmd import client
from csmd.cli import render
from csmd.cli.render import ago, glued, many, tilde, wrapped
from csmd.cli.verb import ask, here, json_option, looking, out, person_is_there, project_options
from csmd.config import default_paths
from csmd.text import display

if TYPE_CHECKING:
    from rich.console import Console


#: Kind of action -> what was done, what would be done; what so many of them are called.
KINDS: Mapping[str, tuple[str, str, str]] = {
    "merge": ("merged", "merge", "merged"),
    "strengthen": ("surer", "make surer", "surer"),
    "supersede": ("superseded", "supersede", "superseded"),
    "ask": ("asked about", "ask about", "asked"),
    "lift": ("said everywhere", "say everywhere", "said everywhere"),
    "promote": ("promoted", "promote", "promoted"),
    "raise": ("learnt", "learn", "learnt"),
    "reword": ("reworded", "reword", "reworded"),
    "choose": ("chosen", "choose", "chosen"),
    "archive": ("archived", "archive", "archived"),
    "page": ("wrote", "write", "files written"),
}
#: How the memory that an action is about stands to the other one, and what is said of that one.
JOINED: Mapping[str, tuple[str, str]] = {"merge": ("into", "stays"), "supersede": ("by", "by"), "ask": ("and", "or")}
#: What would become of a file.
FILES = {"begin": "new", "write": "write", "remove": "remove", "read": "read"}
STATES = {"done": "", "running": "under way", "failed": "failed", "cancelled": "broken off", "undoing": "being undone", "undone": "undone"}  # fmt: skip
#: Changes of one project that are shown unless all are asked for; lines of a memory's text, of a file's diff.
MOST, LINES, DIFF_LINES = 12, 3, 40
GATE = 10


def show_status(value: dict[str, Any]) -> None:
    """Whether a dream is due, each gate, and how the latest ended."""
    out = render.console()
    render.print_text(out, f"dream: {_now(value)}", style="bold")
    out.print()
    for row in value["gates"]:
        head = f"{row['gate']:<{GATE}}{'open' if row['open'] else 'shut':<6}"
        render.print_text(out, row["reason"], head=head, style="" if row["open"] else "yellow")
    out.print()
    latest, last = value["latest"], value["last"]
    if not latest:
        render.print_text(out, "no dream has run yet; `csmd dream plan` shows what one would do", style="dim")
        return
    for name, one in (("latest", latest), ("done", last)):
        if one and (name == "latest" or one["id"] != latest["id"]):
            head = f"{name:<{GATE}}{one['id']}  {render.when(one['begun_at'])}  "
            render.print_text(out, show_came_of(one), head=head, style="yellow" if one["state"] == "failed" else "")


def show_of_status(value: dict[str, Any], now: str) -> Iterator[tuple[str, str, str]]:
    """The lines of `csmd status`: (label, text, style)."""
    latest = value["latest"]
    since = f"; the last {glued(ago(value['last']['begun_at'], now))}" if value["last"] else ""
    yield "dream", _now(value) + since, ""
    if latest and latest["state"] == "failed":
        yield "", f"the latest failed: {latest['error']}", "yellow"


def _now(value: dict[str, Any]) -> str:
    running = value["running"]
    return f"under way: {running.get('step', 'about to begin')}" if running else str(value["verdict"])


def show_came_of(one: dict[str, Any]) -> str:
    """What one did, its state where that is not `done`, and what went wrong."""
    state = STATES.get(one["state"], one["state"])
    parts = [_sum(one["did"]) if one["did"] else "" if state else "nothing to do", state]
    return ", ".join(filter(None, parts)) + (f": {one['error']}" if one["error"] else "")


# --- a plan


def show_plan(value: dict[str, Any], *, everything: bool = False) -> None:
    """What would be done, by project and phase, with the reasons."""
    out = render.console()
    found = {row["project"]: row for row in value["projects"]}
    by_project = {root: list(rows) for root, rows in groupby(value["actions"], key=lambda row: str(row["project"]))}
    left = 0
    for root, rows in by_project.items():
        render.print_text(out, _named(root), style="bold")
        if root in found:
            render.print_text(out, _stands(found[root]), style="dim")
        shown = rows if everything else rows[:MOST]
        left += len(rows) - len(shown)
        for phase, actions in groupby(shown, key=lambda row: str(row["phase"])):
            render.print_text(out, phase, indent=2)
            for row in actions:
                _planned(out, row)
        out.print()
    left += _files(out, value["files"], everything=everything)
    total = len(value["actions"])
    if total:
        more = f"; {left:,} not shown (--all)" if left else ""
        render.print_text(out, f"{many(total, 'change')} would be made: {_sum(value['did'])}{more}")
    else:
        more = f"; {left:,} not shown (--all)" if left else ""
        files = f", {many(len(value['files']), 'file')} would{more}" if value["files"] else ", and no file"
        render.print_text(out, f"no memory would change{files}")
    _hidden(out, value["hidden"])
    if value["uncompared"]:
        few = many(value["uncompared"], "memory was", "memories were")
        render.print_text(out, f"{few} compared by words only: a dream compares all by meaning, too")
    render.print_text(out, f"nothing is done yet; a dream by itself: {value['verdict']}", style="dim")


def _files(out: Console, rows: list[dict[str, Any]], *, everything: bool) -> int:
    """The pages that would be other afterwards; how many are not shown."""
    if not rows:
        return 0
    shown = rows if everything else rows[:MOST]
    render.print_text(out, "files in memory/", style="bold")
    for row in shown:
        render.print_text(out, f"{FILES[row['do']]:<7} {row['path']}", indent=2)
        render.print_text(out, row["reason"], indent=10, style="dim")
    out.print()
    return len(rows) - len(shown)


def _stands(row: dict[str, Any]) -> str:
    total = sum(row["tiers"].values())
    tiers = ", ".join(f"{number:,} {tier}" for tier, number in row["tiers"].items() if number)
    double = [f"{row['duplicates']:,} say what another says"] if row["duplicates"] else []
    weight = sum(row["tiers"].get(tier, 0) * share for tier, share in row["staleness"].items())
    stale = [f"{100 * weight / total:.0f} % stale"] if total and weight / total >= 0.005 else []
    return "; ".join([f"{many(total, 'memory', 'memories')}: {tiers}" if tiers else "no memories", *double, *stale])


def _planned(out: Console, row: dict[str, Any]) -> None:
    joined, stays = JOINED.get(row["do"], ("", ""))
    names = [KINDS[row["do"]][1], row["id"], *([joined, row["other"]] if joined and row["other"] else [])]
    moves = row["tier"] and row["tier"] != row["tier_was"] and row["do"] != "archive"
    tier = f", {row['tier_was']} -> {row['tier']}" if moves else ""
    said = " ".join(filter(None, names)) + tier + _sure(row["confidence_was"], row["confidence"])
    render.print_text(out, said, indent=4)
    render.print_text(out, display.squeeze(row["text"]), indent=6, most=LINES)
    if row["other_text"] and stays:
        render.print_text(out, display.squeeze(row["other_text"]), head=f"{stays}: ", indent=6, most=LINES)
    render.print_text(out, row["reason"], indent=6, style="dim")


def _sure(was: float | None, now: float | None) -> str:
    if now is None or (was is not None and round(was * 100) == round(now * 100)):
        return ""
    return f", {now * 100:.0f} % sure" if was is None else f", {was * 100:.0f} % sure -> {now * 100:.0f} %"


# --- what was done


def show_ran(value: dict[str, Any]) -> None:
    """What a dream did, its name, and how it is taken back."""
    out = render.console()
    if not value["changes"]:
        render.print_text(out, f"dreamt as {value['id']}: there was nothing to do")
        return
    took = glued(f"{value['took_s']:.1f} s")
    for line in wrapped(f"dreamt as {value['id']}: {_sum(value['done'])}, {took}", out.width):
        out.print(line)
    render.print_text(out, f"csmd dream diff {value['id']}   shows it", style="dim")
    render.print_text(out, f"csmd dream undo {value['id']}   takes it back", style="dim")


def show_again(value: dict[str, Any]) -> None:
    """What choosing old memories anew would do."""
    out = render.console()
    counted = f"{value['kept']} memories stay, {value['archived']} would be archived, {value['new']} statements are new"
    render.print_text(out, counted)
    for head, rows in (("archived", value["leaving"]), ("new", value["coming"])):
        for row in rows:
            render.print_text(out, display.squeeze(row["text"]), head=f"{head}: ", indent=2, most=LINES)
    for row in value["reworded"]:
        render.print_text(out, display.squeeze(row["becomes"]), head=f"{row['id']}: ", indent=2, most=LINES)
    if value["needs_yes"]:
        render.print_text(out, "That is most of them: it is done with --yes only.", style="dim")


def show_history(value: dict[str, Any]) -> None:
    """The dreams, the latest first, and what came of each."""
    out = render.console()
    if not value["dreams"]:
        render.print_text(out, "no dream has run yet; `csmd dream status` says when one is due")
        return
    for row in value["dreams"]:
        head = f"{row['id']}  {render.when(row['begun_at'])}  {many(row['sessions'], 'session'):>12}  "
        render.print_text(out, show_came_of(row), head=head, style="yellow" if row["state"] == "failed" else "")


def show_diff(value: dict[str, Any]) -> None:
    """What one dream changed: memories by project, then files."""
    out, one = render.console(), value["dream"]
    state = STATES.get(one["state"], one["state"])
    about = ", ".join(
        filter(None, (render.when(one["begun_at"]), one["why"], many(one["sessions"], "new session"), state))
    )
    render.print_text(out, f"dream {one['id']}: {about}", style="bold")
    if one["error"]:
        render.print_text(out, one["error"], style="yellow")
    if not value["did"] and not value["hidden"]:
        render.print_text(out, "it changed nothing, or its journal is not kept any more")
        return
    by_project: dict[str, list[dict[str, Any]]] = {}
    for row in value["did"]:
        by_project.setdefault("" if row["files"] else row["project"] or "everywhere", []).append(row)
    for name, rows in sorted(by_project.items(), key=lambda found: (not found[0], found[0])):
        out.print()
        render.print_text(out, name or "files", style="bold")
        for row in rows:
            _did(out, row)
    _hidden(out, value["hidden"])


def _did(out: Console, row: dict[str, Any]) -> None:
    back = " (undone)" if row["undone_at"] else ""
    for file in row["files"]:
        render.print_text(out, f"{file['path']}{back}", indent=2)
        _unified(out, file["diff"])
        _kept(out, file["kept"])
    if row["files"]:
        return
    done = KINDS.get(row["kind"], (row["kind"], "", ""))[0]
    if row["purged"]:
        render.print_text(out, f"{done}: taken away by a purge", indent=2)
    for number, one in enumerate(row["touched"]):
        head = f"{done} {one['item']}{back}" if number == 0 else f"with it {one['item']}"
        render.print_text(out, head + _changed(one["before"], one["after"]), indent=2)
        for line in _words(one["before"], one["after"]):
            render.print_text(out, line, indent=4, most=LINES)
        _kept(out, one["kept"])
    render.print_text(out, row["reason"], indent=4, style="dim")


def _changed(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """What is other than before, besides the words."""
    if before is None or after is None:
        return ": new" if before is None else ": gone"
    parts = [f"{before['tier']} -> {after['tier']}"] if before["tier"] != after["tier"] else []
    parts += [_sure(before["confidence"], after["confidence"]).removeprefix(", ")]
    if after["superseded_by"] != before["superseded_by"]:
        parts += [f"by {after['superseded_by']}" if after["superseded_by"] else "stands by itself"]
    if after["sources"] != before["sources"]:
        parts += [f"{before['sources']} -> {many(after['sources'], 'source')}"]
    told = ", ".join(filter(None, parts))
    return f": {told}" if told else ""


def _words(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Iterator[str]:
    was, now = (display.squeeze(one["text"]) if one else "" for one in (before, after))
    if was and now and was != now:
        yield f"- {was}"
        yield f"+ {now}"
    else:
        yield now or was


def _unified(out: Console, said: str) -> None:
    lines = said.splitlines()
    for line in lines[2 : 2 + DIFF_LINES]:
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        render.print_text(out, line, indent=4, most=LINES, style=style)
    if len(lines) > 2 + DIFF_LINES:
        render.print_text(
            out, f"... and {len(lines) - 2 - DIFF_LINES:,} more lines (--json has them)", indent=4, style="dim"
        )


def _kept(out: Console, why: str) -> None:
    if why:
        render.print_text(out, f"not undone: {why}", indent=4, style="yellow")


# --- taking one back


def show_undoing(value: dict[str, Any]) -> None:
    """Which dreams would be taken back, the newest first."""
    out, found = render.console(), value["dreams"]
    since = f", with {many(len(found) - 1, 'newer dream')}" if len(found) > 1 else ""
    render.print_text(out, f"would be undone: {found[-1]['id']}{since}")
    for row in found:
        head = f"  {row['id']}  {render.when(row['begun_at'])}  "
        render.print_text(out, _sum(row["did"]) or "nothing", head=head, style="dim")
    render.print_text(out, "what was changed since keeps its newer value")


def show_question(value: dict[str, Any]) -> str:
    """What is asked before."""
    found = value["dreams"]
    return f"Undo {'it' if len(found) == 1 else f'all {len(found)}'}?"


def show_undone(value: dict[str, Any]) -> None:
    """What is as it was, and what was left and why."""
    out = render.console()
    names = ", ".join(row["id"] for row in value["dreams"])
    parts = [many(len(value["items"]), "memory or candidate", "memories and candidates")] if value["items"] else []
    parts += [many(len(value["files"]), "file")] if value["files"] else []
    render.print_text(out, f"undone: {names}; as before: {' and '.join(parts) or 'nothing'}")
    for row in value["kept"]:
        render.print_text(out, f"left as it is: {row['item'] or 'an action'}, {row['why']}", style="yellow")


# --- the small change


def _sum(did: Mapping[str, int]) -> str:
    """`3 merged, 2 surer, 4 files written`."""
    return ", ".join(f"{did[kind]:,} {words[2]}" for kind, words in KINDS.items() if did.get(kind)) or "nothing"


def _hidden(out: Console, number: int) -> None:
    if number:
        render.print_text(out, f"{many(number, 'change')} in projects that are not seen from here", style="dim")


def _named(root: str) -> str:
    return tilde(root, str(Path.home())) if root else "everywhere"


@click.group()
def dream() -> None:
    """Making few good memories of many while nobody works."""


@dream.command()
@json_option
def status(as_json: bool) -> None:
    """Tell whether a dream is due, and why not."""
    out(ask("csm_dream_status"), as_json, show_status)


@dream.command()
@project_options
@click.option("--all", "everything", is_flag=True, help="List every change.")
@json_option
def plan(project: str | None, all_projects: bool, everything: bool, as_json: bool) -> None:
    """Show what a dream would do now. Nothing is done."""
    found = ask("csm_dream_plan", **looking(project, all_projects or project is None))
    out(found, as_json, lambda value: show_plan(value, everything=everything))


@dream.command()
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("--force", is_flag=True, help="Do not wait until it is due.")
@json_option
def run(dry_run: bool, force: bool, as_json: bool) -> None:
    """Dream now. `csmd dream undo` takes it back."""
    if dry_run:
        found = ask("csm_dream_run", dry_run=True, force=force, asking=here(None))
        out(found, as_json, show_plan)
        return
    out(_work("csm_dream_run", force=force), as_json, show_ran)


@dream.command()
@click.argument("ident", metavar="ID")
@json_option
def diff(ident: str, as_json: bool) -> None:
    """Show what dream ID changed, before and after. `last` is the latest."""
    found = ask("csm_dream_diff", id=ident, asking=here(None), by_person=person_is_there())
    out(found, as_json, show_diff)


@dream.command()
@click.argument("ident", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be taken back and change nothing.")
@json_option
def undo(ident: str, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Take dream ID back, and every one since."""
    wanted = ask("csm_dream_undo", id=ident, asking=here(None))
    if dry_run or not (yes or as_json):
        out(wanted, as_json, show_undoing)
    if dry_run:
        return
    if not yes:
        if as_json or not person_is_there():
            raise click.UsageError("give --yes where nobody can be asked")
        click.confirm(show_question(wanted), abort=True)
    # By its whole id: which dream is the latest may have changed meanwhile.
    out(_work("csm_dream_undo", id=wanted["dreams"][-1]["id"], dry_run=False), as_json, show_undone)


@dream.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many at most.")
@json_option
def history(limit: int, as_json: bool) -> None:
    """List the dreams, the latest first."""
    out(ask("csm_dream_history", limit=limit), as_json, show_history)


@click.command()
@click.option("--again", is_flag=True, required=True, help="Choose old memories as csmd chooses now.")
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("--yes", is_flag=True, help="Do it although most of them would be archived.")
@json_option
def distill(again: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Choose old memories anew. `csmd dream undo` takes it back."""
    del again
    if dry_run:
        out(ask("csm_distill_again", dry_run=True, asking=here(None)), as_json, show_again)
        return
    out(_work("csm_distill_again", yes=yes), as_json, show_ran)


def _work(tool: str, **params: Any) -> dict[str, Any]:
    """Has the daemon do it, with how far it is on stderr; its result."""
    with render.progress() as bar:
        return client.work(default_paths(), tool, {**params, "asking": here(None)}, watch=bar)


#: The verbs of this module.
VERBS: tuple[click.Command, ...] = (
    dream,
    distill,
)
