"""Commands about dreams: status, plan, run, history, diff, undo."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, RawLine, Screen, bold, dim, glue, join, many, percent, tilde, warning
from csmd.text.ages import when
from csmd.text.display import shorten_session_id, squeeze

VERBS = verb.Verbs()
DREAM = VERBS.add_group("dream", "Consolidate memories while the machine is idle.")
#: Kind of action -> its verb when done and when planned, and its noun in a sum.
KINDS: Mapping[str, tuple[str, str, str]] = {
    "merge": ("merged", "merge", "merged"),
    "strengthen": ("strengthened", "strengthen", "strengthened"),
    "supersede": ("superseded", "supersede", "superseded"),
    "ask": ("asked about", "ask about", "asked"),
    "lift": ("moved to all projects", "move to all projects", "moved to all projects"),
    "promote": ("promoted", "promote", "promoted"),
    "raise": ("learnt", "learn", "learnt"),
    "archive": ("archived", "archive", "archived"),
    "note": ("noted", "note", "notes"),
    "stand": ("recorded the state of the work", "record the state of the work", "endings"),
    "judge": ("judged not worth showing", "judge", "judged"),
    "page": ("wrote", "write", "files written"),
}
#: Kind of action -> the word before the other memory, and the label of its text.
OTHER_LABELS = {"merge": ("into", "stays"), "supersede": ("by", "by"), "ask": ("and", "or")}
#: Operation on a file -> its label.
FILES = {"begin": "new", "write": "write", "remove": "remove", "read": "read"}
STATES = {
    "done": "", "running": "under way", "failed": "failed", "cancelled": "cancelled", "undoing": "being undone",
    "undone": "undone",
}  # fmt: skip
#: Changes of a project that are shown without --all.
MAX_CHANGES = 12
#: Lines of a memory's text that are shown.
MAX_LINES = 3
#: Lines of a file's diff that are shown.
MAX_DIFF_LINES = 40
#: Columns of a gate's name.
GATE_COLUMNS = 10


@DREAM.tool("status", "csm_dream_status", scope="none")
def show_status(value: dict[str, Any]) -> Screen:
    """Show whether a dream is due, and the conditions."""
    yield bold(f"dream: {render.describe_dream(value)}")
    yield ""
    for row in value["gates"]:
        head = f"{row['gate']:<{GATE_COLUMNS}}{'open' if row['open'] else 'shut':<6}"
        yield Line(row["reason"], head=head, style="" if row["open"] else "yellow")
    yield ""
    latest, finished = value["latest"], value["last"]
    if not latest:
        yield dim("no dream has run yet; `csmd dream plan` shows what one would do")
        return
    yield _dream_line(latest, f"{'latest':<{GATE_COLUMNS}}")
    if finished and finished["id"] != latest["id"]:
        yield _dream_line(finished, f"{'done':<{GATE_COLUMNS}}")


def _dream_line(dream: dict[str, Any], label: str = "", sessions: str = "") -> Line:
    """Returns a dream with its time and its numbers of changes."""
    head = f"{label}{dream['id']}  {when(dream['begun_at'])}  {sessions}"
    return Line(summarize_dream(dream), head=head, style="yellow" if dream["state"] == "failed" else "")


def summarize_dream(dream: dict[str, Any]) -> str:
    """Returns the numbers of a dream's changes, its state unless it is `done`, and its error."""
    state = STATES.get(dream["state"], dream["state"])
    changes = _describe_counts(dream["did"]) if dream["did"] else "" if state else "nothing to do"
    return join(changes, state) + (f": {dream['error']}" if dream["error"] else "")


def _describe_counts(counts: Mapping[str, int]) -> str:
    """Describes numbers of actions by kind: `3 merged, 2 strengthened, 4 files written`."""
    return ", ".join(f"{counts[kind]:,} {noun}" for kind, (*_, noun) in KINDS.items() if counts.get(kind)) or "nothing"


# --- a plan


@DREAM.tool("plan", "csm_dream_plan", *verb.ALL_UNLESS_NAMED, verb.ALL, scope="all")
def show_plan(value: dict[str, Any], *, everything: bool = False, whole: bool = False) -> Screen:
    """Show the changes that a dream would make now."""
    limit = None if everything else MAX_CHANGES
    projects = {row["project"]: row for row in value["projects"]}
    total, left_out, files = len(value["actions"]), 0, value["files"]
    for root, rows in _group(value["actions"], "project"):
        yield bold(tilde(root, str(Path.home())) if root else "everywhere")
        if root in projects:
            yield dim(_describe_tiers(projects[root]))
        left_out += len(rows[limit:]) if limit else 0
        for phase, actions in _group(rows[:limit], "phase"):
            yield Line(phase, indent=2)
            for row in actions:
                yield from _show_planned_action(row)
        yield ""
    if files:
        yield bold("files in memory/")
        left_out += len(files[limit:]) if limit else 0
        for row in files[:limit]:
            yield Line(f"{FILES[row['do']]:<7} {row['path']}", indent=2)
            yield dim(row["reason"], indent=10)
        yield ""
    rest = f"; {left_out:,} not shown (--all)" if left_out else ""
    if total:
        yield f"{many(total, 'change')} would be made: {_describe_counts(value['did'])}{rest}"
    else:
        yield "no memory would change" + (f", {many(len(files), 'file')} would{rest}" if files else ", and no file")
    yield from _hidden_line(value["hidden"])
    yield from _questions(value.get("asks"), whole=whole)
    yield dim(f"a preview: nothing was changed; {value['verdict']}")


def _questions(asks: dict[str, Any] | None, *, whole: bool) -> Screen:
    """Shows the questions to a language model; with `whole` their full text."""
    if asks is None:
        return
    questions = asks["questions"]
    hint = "" if whole or not questions else "; `csmd dream run --dry-run` prints them"
    yield f"{many(len(questions), 'question')} would be put to {asks['provider']} ({asks['model']}){hint}"
    for number, question in enumerate(questions if whole else (), 1):
        head = f"question {number}: session {shorten_session_id(question['session'])}"
        yield bold(f"{head}, {question['project']}", gap=True)
        # The instructions are the same in every question.
        yield from map(RawLine, (question["system"] if number == 1 else "").splitlines())
        yield from map(RawLine, question["text"].splitlines())


def _group(rows: Iterable[dict[str, Any]], by: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Consecutive rows with the same value in one field."""
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: str(row[by]))]


def _describe_tiers(row: dict[str, Any]) -> str:
    """Describes the number of a project's memories by tier, and its duplicate and stale ones."""
    total = sum(row["tiers"].values())
    tiers = ", ".join(f"{number:,} {tier}" for tier, number in row["tiers"].items() if number)
    stale = sum(row["tiers"].get(tier, 0) * share for tier, share in row["staleness"].items()) / (total or 1)
    return join(
        f"{many(total, 'memory')}: {tiers}" if tiers else "no memories",
        row["duplicates"] and many(row["duplicates"], "duplicate"),
        total and stale >= 0.005 and f"{percent(stale)} stale", by="; ",
    )  # fmt: skip


def _show_planned_action(row: dict[str, Any]) -> Screen:
    """Shows one action of a plan, and its reason."""
    preposition, label = OTHER_LABELS.get(row["do"], ("", ""))
    other = preposition and row["other"] and f"{preposition} {row['other']}"
    changes_tier = row["tier"] and row["tier"] != row["tier_was"] and row["do"] != "archive"
    tier = f", {row['tier_was']} -> {row['tier']}" if changes_tier else ""
    _, verb_words, _ = KINDS[row["do"]]
    action = join(verb_words, row["id"], other, by=" ")
    yield Line(f"{action}{tier}{_describe_confidence(row['confidence_was'], row['confidence'])}", indent=4)
    yield Line(squeeze(row["text"]), indent=6, max_lines=MAX_LINES)
    if row["other_text"] and label:
        yield Line(squeeze(row["other_text"]), head=f"{label}: ", indent=6, max_lines=MAX_LINES)
    yield dim(row["reason"], indent=6)


def _describe_confidence(before: float | None, after: float | None) -> str:
    """Describes the change of a confidence; "" if it is the same in percent."""
    if after is None or (before is not None and round(before * 100) == round(after * 100)):
        return ""
    return f", {percent(after)} sure" if before is None else f", {percent(before)} sure -> {percent(after)}"


# --- dreams of the past


def show_ran(value: dict[str, Any]) -> Screen:
    """Shows the numbers of a dream's changes, and the commands that show and undo them."""
    if not value["changes"]:
        return [f"Dream {value['id']}: nothing to do."]
    took = glue(f"{value['took_s']:.1f} s")
    commands = f"Show: csmd dream diff {value['id']}", f"Undo: csmd dream undo {value['id']}"
    return render.done(f"dream {value['id']}: {_describe_counts(value['done'])}, {took}", *commands)


@DREAM.tool("history", "csm_dream_history", verb.limit(20, description="Number of dreams."), scope="none")
@render.if_empty("dreams", "no dream has run yet; `csmd dream status` says when one is due")
def show_history(value: dict[str, Any]) -> Screen:
    """List the dreams, the latest first."""
    return (_dream_line(row, sessions=f"{many(row['sessions'], 'session'):>12}  ") for row in value["dreams"])


@DREAM.tool("diff", "csm_dream_diff", verb.ID, sends_by_person=True)
def show_diff(value: dict[str, Any]) -> Screen:
    """Show the changes of dream ID, before and after. `last` is the latest."""
    dream = value["dream"]
    state = STATES.get(dream["state"], dream["state"])
    details = join(when(dream["begun_at"]), dream["why"], many(dream["sessions"], "new session"), state)
    yield bold(f"dream {dream['id']}: {details}")
    if dream["error"]:
        yield warning(dream["error"])
    if not value["did"] and not value["hidden"]:
        yield "it changed nothing, or its journal was deleted"
        return
    by_project: dict[str, list[dict[str, Any]]] = {}
    for row in value["did"]:
        by_project.setdefault("" if row["files"] else row["project"] or "everywhere", []).append(row)
    for name in sorted(by_project, key=lambda name: (not name, name)):
        yield bold(name or "files", gap=True)
        for row in by_project[name]:
            yield from _show_files(row) if row["files"] else _show_action(row)
    yield from _hidden_line(value["hidden"])


def _show_files(row: dict[str, Any]) -> Screen:
    """Shows the files that an action wrote, each with its diff."""
    for file in row["files"]:
        yield Line(f"{file['path']}{_undone_mark(row)}", indent=2)
        lines = file["diff"].splitlines()[2:]
        for line in lines[:MAX_DIFF_LINES]:
            style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
            yield Line(line, indent=4, max_lines=MAX_LINES, style=style)
        if len(lines) > MAX_DIFF_LINES:
            yield dim(f"... and {many(len(lines) - MAX_DIFF_LINES, 'more line')} (--json)", indent=4)
        yield from _not_undone(file["kept"])


def _show_action(row: dict[str, Any]) -> Screen:
    """Shows the changes of memories by an action."""
    action, _, _ = KINDS.get(row["kind"], (row["kind"], "", ""))
    if row["purged"]:
        yield Line(f"{action}: deleted by a purge", indent=2)
    for number, touched in enumerate(row["touched"]):
        before, after = touched["before"], touched["after"]
        head = f"with it {touched['item']}" if number else f"{action} {touched['item']}{_undone_mark(row)}"
        yield Line(head + _describe_changes(before, after), indent=2)
        old, new = (squeeze(version["text"]) if version else "" for version in (before, after))
        for text in (f"- {old}", f"+ {new}") if old and new and old != new else (new or old,):
            yield Line(text, indent=4, max_lines=MAX_LINES)
        yield from _not_undone(touched["kept"])
    yield dim(row["reason"], indent=4)


def _undone_mark(row: dict[str, Any]) -> str:
    return " (undone)" if row["undone_at"] else ""


def _describe_changes(before: dict[str, Any] | None, after: dict[str, Any] | None) -> str:
    """Describes the changes of a memory other than that of its text."""
    if before is None or after is None:
        return ": new" if before is None else ": gone"
    replaced = f"by {after['superseded_by']}" if after["superseded_by"] else "current again"
    changes = join(
        before["tier"] != after["tier"] and f"{before['tier']} -> {after['tier']}",
        _describe_confidence(before["confidence"], after["confidence"]).removeprefix(", "),
        after["superseded_by"] != before["superseded_by"] and replaced,
        after["sources"] != before["sources"] and f"{before['sources']} -> {many(after['sources'], 'source')}",
    )
    return f": {changes}" if changes else ""


def _not_undone(reason: str) -> Screen:
    return [warning(f"not undone: {reason}", indent=4)] if reason else []


def _hidden_line(number: int) -> Screen:
    return [dim(f"{many(number, 'change')} in projects that are hidden from here")] if number else []


# --- undo


def show_undoing(value: dict[str, Any]) -> Screen:
    """Shows the dreams that would be undone, the newest first."""
    dreams = value["dreams"]
    since = f", with {many(len(dreams) - 1, 'newer dream')}" if len(dreams) > 1 else ""
    yield f"would be undone: {dreams[-1]['id']}{since}"
    for row in dreams:
        yield dim(_describe_counts(row["did"]) or "nothing", head=f"  {row['id']}  {when(row['begun_at'])}  ")
    yield "memories that changed since keep their newer value"


def show_undone(value: dict[str, Any]) -> Screen:
    """Shows the numbers of restored memories and files, and those that were not restored, with the reasons."""
    count, files = len(value["items"]), len(value["files"])
    items = "1 memory or candidate" if count == 1 else count and f"{count:,} memories and candidates"
    restored = join(items, files and many(files, "file"), by=" and ")
    yield f"undone: {', '.join(row['id'] for row in value['dreams'])}; restored: {restored or 'nothing'}"
    yield from (warning(f"not restored: {row['item'] or 'an action'}, {row['why']}") for row in value["kept"])


@DREAM.action("run", verb.DRY_RUN, verb.flag("--force", help="Do not wait until it is due."))
def run(dry_run: bool, **options: Any) -> None:
    """Dream now. `csmd dream undo` undoes it."""
    params = {"dry_run": True} if dry_run else {}
    show = partial(show_plan, whole=True) if dry_run else show_ran
    verb.reply("csm_dream_run", show, params | options, is_job=not dry_run)


@DREAM.action("undo", verb.ID, verb.yes("Do not ask."), verb.DRY_RUN)
def undo(yes: bool, dry_run: bool, as_json: bool, **options: Any) -> None:
    """Undo dream ID, and every later one."""
    planned = verb.ask("csm_dream_undo", **options, asking=verb.resolve_project(None))
    dreams = planned["dreams"]
    if dry_run or not (yes or as_json):
        verb.print_answer(planned, as_json, show_undoing)
    if dry_run:
        return
    if not yes:
        if as_json or not verb.is_interactive():
            raise click.UsageError("not a terminal; give --yes")
        verb.require_yes(f"Undo {'it' if len(dreams) == 1 else f'all {len(dreams)}'}?", err=False)
    # By its full id: another dream may be the latest by now.
    undone = verb.run_job("csm_dream_undo", id=dreams[-1]["id"], dry_run=False, asking=verb.resolve_project(None))
    verb.print_answer(undone, as_json, show_undone)
