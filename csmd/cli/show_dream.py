"""What people see of dreams, at 80 columns: the gates, a plan by project and phase, what was done; values in, text out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csmd import text as texts
from csmd.cli import show
from csmd.cli.lines import ago, glued, many, tilde, wrapped

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


def status(value: dict[str, Any]) -> None:
    """Whether a dream is due, each gate, and how the latest ended."""
    out = show.console()
    show.print_text(out, f"dream: {_now(value)}", style="bold")
    out.print()
    for row in value["gates"]:
        head = f"{row['gate']:<{GATE}}{'open' if row['open'] else 'shut':<6}"
        show.print_text(out, row["reason"], head=head, style="" if row["open"] else "yellow")
    out.print()
    latest, last = value["latest"], value["last"]
    if not latest:
        show.print_text(out, "no dream has run yet; `csmd dream plan` shows what one would do", style="dim")
        return
    for name, one in (("latest", latest), ("done", last)):
        if one and (name == "latest" or one["id"] != latest["id"]):
            head = f"{name:<{GATE}}{one['id']}  {show.when(one['begun_at'])}  "
            show.print_text(out, came_of(one), head=head, style="yellow" if one["state"] == "failed" else "")


def of_status(value: dict[str, Any], now: str) -> Iterator[tuple[str, str, str]]:
    """The lines of `csmd status`: (label, text, style)."""
    latest = value["latest"]
    since = f"; the last {glued(ago(value['last']['begun_at'], now))}" if value["last"] else ""
    yield "dream", _now(value) + since, ""
    if latest and latest["state"] == "failed":
        yield "", f"the latest failed: {latest['error']}", "yellow"


def _now(value: dict[str, Any]) -> str:
    running = value["running"]
    return f"under way: {running.get('step', 'about to begin')}" if running else str(value["verdict"])


def came_of(one: dict[str, Any]) -> str:
    """What one did, its state where that is not `done`, and what went wrong."""
    state = STATES.get(one["state"], one["state"])
    parts = [_sum(one["did"]) if one["did"] else "" if state else "nothing to do", state]
    return ", ".join(filter(None, parts)) + (f": {one['error']}" if one["error"] else "")


# --- a plan


def plan(value: dict[str, Any], *, everything: bool = False) -> None:
    """What would be done, by project and phase, with the reasons."""
    out = show.console()
    found = {row["project"]: row for row in value["projects"]}
    by_project = {root: list(rows) for root, rows in groupby(value["actions"], key=lambda row: str(row["project"]))}
    left = 0
    for root, rows in by_project.items():
        show.print_text(out, _named(root), style="bold")
        if root in found:
            show.print_text(out, _stands(found[root]), style="dim")
        shown = rows if everything else rows[:MOST]
        left += len(rows) - len(shown)
        for phase, actions in groupby(shown, key=lambda row: str(row["phase"])):
            show.print_text(out, phase, indent=2)
            for row in actions:
                _planned(out, row)
        out.print()
    left += _files(out, value["files"], everything=everything)
    total = len(value["actions"])
    if total:
        more = f"; {left:,} not shown (--all)" if left else ""
        show.print_text(out, f"{many(total, 'change')} would be made: {_sum(value['did'])}{more}")
    else:
        more = f"; {left:,} not shown (--all)" if left else ""
        files = f", {many(len(value['files']), 'file')} would{more}" if value["files"] else ", and no file"
        show.print_text(out, f"no memory would change{files}")
    _hidden(out, value["hidden"])
    if value["uncompared"]:
        few = many(value["uncompared"], "memory was", "memories were")
        show.print_text(out, f"{few} compared by words only: a dream compares all by meaning, too")
    show.print_text(out, f"nothing is done yet; a dream by itself: {value['verdict']}", style="dim")


def _files(out: Console, rows: list[dict[str, Any]], *, everything: bool) -> int:
    """The pages that would be other afterwards; how many are not shown."""
    if not rows:
        return 0
    shown = rows if everything else rows[:MOST]
    show.print_text(out, "files in memory/", style="bold")
    for row in shown:
        show.print_text(out, f"{FILES[row['do']]:<7} {row['path']}", indent=2)
        show.print_text(out, row["reason"], indent=10, style="dim")
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
    show.print_text(out, said, indent=4)
    show.print_text(out, texts.squeeze(row["text"]), indent=6, most=LINES)
    if row["other_text"] and stays:
        show.print_text(out, texts.squeeze(row["other_text"]), head=f"{stays}: ", indent=6, most=LINES)
    show.print_text(out, row["reason"], indent=6, style="dim")


def _sure(was: float | None, now: float | None) -> str:
    if now is None or (was is not None and round(was * 100) == round(now * 100)):
        return ""
    return f", {now * 100:.0f} % sure" if was is None else f", {was * 100:.0f} % sure -> {now * 100:.0f} %"


# --- what was done


def ran(value: dict[str, Any]) -> None:
    """What a dream did, its name, and how it is taken back."""
    out = show.console()
    if not value["changes"]:
        show.print_text(out, f"dreamt as {value['id']}: there was nothing to do")
        return
    took = glued(f"{value['took_s']:.1f} s")
    for line in wrapped(f"dreamt as {value['id']}: {_sum(value['done'])}, {took}", out.width):
        out.print(line)
    show.print_text(out, f"csmd dream diff {value['id']}   shows it", style="dim")
    show.print_text(out, f"csmd dream undo {value['id']}   takes it back", style="dim")


def again(value: dict[str, Any]) -> None:
    """What choosing old memories anew would do."""
    out = show.console()
    counted = f"{value['kept']} memories stay, {value['archived']} would be archived, {value['new']} statements are new"
    show.print_text(out, counted)
    for head, rows in (("archived", value["leaving"]), ("new", value["coming"])):
        for row in rows:
            show.print_text(out, texts.squeeze(row["text"]), head=f"{head}: ", indent=2, most=LINES)
    for row in value["reworded"]:
        show.print_text(out, texts.squeeze(row["becomes"]), head=f"{row['id']}: ", indent=2, most=LINES)
    if value["needs_yes"]:
        show.print_text(out, "That is most of them: it is done with --yes only.", style="dim")


def history(value: dict[str, Any]) -> None:
    """The dreams, the latest first, and what came of each."""
    out = show.console()
    if not value["dreams"]:
        show.print_text(out, "no dream has run yet; `csmd dream status` says when one is due")
        return
    for row in value["dreams"]:
        head = f"{row['id']}  {show.when(row['begun_at'])}  {many(row['sessions'], 'session'):>12}  "
        show.print_text(out, came_of(row), head=head, style="yellow" if row["state"] == "failed" else "")


def diff(value: dict[str, Any]) -> None:
    """What one dream changed: memories by project, then files."""
    out, one = show.console(), value["dream"]
    state = STATES.get(one["state"], one["state"])
    about = ", ".join(
        filter(None, (show.when(one["begun_at"]), one["why"], many(one["sessions"], "new session"), state))
    )
    show.print_text(out, f"dream {one['id']}: {about}", style="bold")
    if one["error"]:
        show.print_text(out, one["error"], style="yellow")
    if not value["did"] and not value["hidden"]:
        show.print_text(out, "it changed nothing, or its journal is not kept any more")
        return
    by_project: dict[str, list[dict[str, Any]]] = {}
    for row in value["did"]:
        by_project.setdefault("" if row["files"] else row["project"] or "everywhere", []).append(row)
    for name, rows in sorted(by_project.items(), key=lambda found: (not found[0], found[0])):
        out.print()
        show.print_text(out, name or "files", style="bold")
        for row in rows:
            _did(out, row)
    _hidden(out, value["hidden"])


def _did(out: Console, row: dict[str, Any]) -> None:
    back = " (undone)" if row["undone_at"] else ""
    for file in row["files"]:
        show.print_text(out, f"{file['path']}{back}", indent=2)
        _unified(out, file["diff"])
        _kept(out, file["kept"])
    if row["files"]:
        return
    done = KINDS.get(row["kind"], (row["kind"], "", ""))[0]
    if row["purged"]:
        show.print_text(out, f"{done}: taken away by a purge", indent=2)
    for number, one in enumerate(row["touched"]):
        head = f"{done} {one['item']}{back}" if number == 0 else f"with it {one['item']}"
        show.print_text(out, head + _changed(one["before"], one["after"]), indent=2)
        for line in _words(one["before"], one["after"]):
            show.print_text(out, line, indent=4, most=LINES)
        _kept(out, one["kept"])
    show.print_text(out, row["reason"], indent=4, style="dim")


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
    was, now = (texts.squeeze(one["text"]) if one else "" for one in (before, after))
    if was and now and was != now:
        yield f"- {was}"
        yield f"+ {now}"
    else:
        yield now or was


def _unified(out: Console, said: str) -> None:
    lines = said.splitlines()
    for line in lines[2 : 2 + DIFF_LINES]:
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        show.print_text(out, line, indent=4, most=LINES, style=style)
    if len(lines) > 2 + DIFF_LINES:
        show.print_text(
            out, f"... and {len(lines) - 2 - DIFF_LINES:,} more lines (--json has them)", indent=4, style="dim"
        )


def _kept(out: Console, why: str) -> None:
    if why:
        show.print_text(out, f"not undone: {why}", indent=4, style="yellow")


# --- taking one back


def undoing(value: dict[str, Any]) -> None:
    """Which dreams would be taken back, the newest first."""
    out, found = show.console(), value["dreams"]
    since = f", with {many(len(found) - 1, 'newer dream')}" if len(found) > 1 else ""
    show.print_text(out, f"would be undone: {found[-1]['id']}{since}")
    for row in found:
        head = f"  {row['id']}  {show.when(row['begun_at'])}  "
        show.print_text(out, _sum(row["did"]) or "nothing", head=head, style="dim")
    show.print_text(out, "what was changed since keeps its newer value")


def question(value: dict[str, Any]) -> str:
    """What is asked before."""
    found = value["dreams"]
    return f"Undo {'it' if len(found) == 1 else f'all {len(found)}'}?"


def undone(value: dict[str, Any]) -> None:
    """What is as it was, and what was left and why."""
    out = show.console()
    names = ", ".join(row["id"] for row in value["dreams"])
    parts = [many(len(value["items"]), "memory or candidate", "memories and candidates")] if value["items"] else []
    parts += [many(len(value["files"]), "file")] if value["files"] else []
    show.print_text(out, f"undone: {names}; as before: {' and '.join(parts) or 'nothing'}")
    for row in value["kept"]:
        show.print_text(out, f"left as it is: {row['item'] or 'an action'}, {row['why']}", style="yellow")


# --- the small change


def _sum(did: Mapping[str, int]) -> str:
    """`3 merged, 2 surer, 4 files written`."""
    return ", ".join(f"{did[kind]:,} {words[2]}" for kind, words in KINDS.items() if did.get(kind)) or "nothing"


def _hidden(out: Console, number: int) -> None:
    if number:
        show.print_text(out, f"{many(number, 'change')} in projects that are not seen from here", style="dim")


def _named(root: str) -> str:
    return tilde(root, str(Path.home())) if root else "everywhere"
