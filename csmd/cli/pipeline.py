"""The commands of `csmd pipeline`, which show how statements become memories."""

from __future__ import annotations

from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.injections import show_injection
from csmd.cli.render import Line, Screen, bold, dim, join, percent, warning
from csmd.text.display import amount, squeeze

VERBS = verb.Verbs()
PIPELINE = VERBS.add_group("pipeline", "How statements become memories, step by step.")
HEADINGS = {"preference": "Preferences", "opinion": "Opinions", "worldview": "Worldviews"}
#: Most lines of a memory's text.
MAX_LINES = 3
#: Kind of an action -> its words when planned and when applied.
ACTION_WORDS = {
    "merge": ("would merge", "merged"), "archive": ("would archive", "archived"), "embed": ("would embed", "queued for embedding"),
}  # fmt: skip
#: Step of a promotion -> its words when planned and when applied, if they differ.
STEP_WORDS = {
    "promote": ("becomes a memory", "became a memory"), "known": ("known already",), "review": ("needs a person's answer",),
    "wait": ("waits",),
}  # fmt: skip


@PIPELINE.tool("beliefs", "csm_belief_knowledge", *verb.PROJECTS, verb.limit(10, description="Beliefs of each kind."))
def show_beliefs(value: dict[str, Any]) -> Screen:
    """Show the beliefs here, by subject, with their evidence."""
    if not value["beliefs"]:
        yield "No beliefs yet; csmd derives them from repeated statements."
    for kind, heading in HEADINGS.items():
        rows = [row for row in value["beliefs"] if row["kind"] == kind]
        if rows:
            yield bold(heading, gap=rows[0] is not value["beliefs"][0])
        for row in rows:
            sessions = f"said {row['told']} times in {amount(row['sessions'], 'session')}"
            others = row["also"]
            similar = f" or {others[0]}" if len(others) == 1 else f" or {len(others)} more like it" if others else ""
            subject = f"{row['subject']}: " if row["subject"] else ""
            evidence = f"{subject}{'said once' if row['told'] == 1 else sessions}{_describe_speaker(row, ' ')}"
            yield Line(squeeze(row["text"]), head=f"{row['confidence'] * 100:>3.0f} %  ", max_lines=MAX_LINES)
            yield dim(f"{evidence}, {row['id']}{similar}", indent=7)
        if rows and kind in value["more"]:
            yield dim(f"and {value['more'][kind]} more: --limit {value['more'][kind] + len(rows)}")


def _describe_speaker(row: dict[str, Any], separator: str) -> str:
    """Describes the speaker, after a separator; "" for the user."""
    speaker = {"user": "", "assistant": "by the assistant", "external": "from another program"}[row["authority"]]
    return speaker and f"{separator}{speaker}"


@PIPELINE.tool("duplicates", "csm_memory_dedup_detect", *verb.PROJECTS)
@render.if_empty("duplicates", "no duplicates here")
def show_duplicates(value: dict[str, Any]) -> Screen:
    """List exact and near duplicates."""
    for number, row in enumerate(value["duplicates"]):
        keeper, duplicate = row["memories"]
        likeness = f"nearly the same: {percent(row['confidence'])} of their words"
        yield bold("the same" if row["kind"] == "duplicate" else likeness, gap=number > 0)
        for label, memory in (("stays", keeper), ("goes", duplicate)):
            sure, day = percent(memory["confidence"]), memory["confirmed_at"][:10]
            yield dim(f"{memory['id']}, {sure}, {day}{_describe_speaker(memory, ', ')}", head=f"{label:<7}")
            yield Line(squeeze(memory["text"]), indent=7, max_lines=2 * MAX_LINES)
        yield dim(f"csmd pipeline merge {duplicate['id']} {keeper['id']}", indent=7)
    exact = sum(row["kind"] == "duplicate" for row in value["duplicates"])
    counts = f"{exact} say the same, {len(value['duplicates']) - exact} nearly"
    yield dim(f"{counts}; `csmd pipeline merge` merges the first, `csmd pipeline merge --near` all", gap=True)


@PIPELINE.tool("archive", "csm_memory_archive", *verb.PROJECTS, verb.DRY_RUN, sends_by_person=True)
def show_upkeep_actions(value: dict[str, Any]) -> Screen:
    """Archive faded memories; they stay searchable.

    `csmd pipeline merge --undo ID` brings one back.
    """
    if not value["actions"] and not value["left"]:
        yield "nothing to do"
        return
    for row in value["actions"]:
        into = f" into {row['into']}" if row["into"] else ""
        planned, applied = ACTION_WORDS[row["do"]]
        yield bold(f"{planned if value['dry_run'] else applied} {row['id']}{into}")
        yield Line(squeeze(row["text"]), indent=2, max_lines=MAX_LINES)
        if row["into_text"]:
            yield Line(f"stays: {squeeze(row['into_text'])}", indent=2, max_lines=MAX_LINES)
        yield dim(row["reason"], indent=2)
    for row in value["left"]:
        yield warning(f"skipped {row['id']}: changed since the plan was made")
    if not value["dry_run"] and any(row["do"] in ("merge", "archive") for row in value["actions"]):
        yield dim("Undo: csmd pipeline merge --undo ID")


@PIPELINE.action("merge", verb.optional("id", "[ID"), verb.optional("into", "INTO]"),
    verb.flag("--near", help="Merge near duplicates, too."),
    verb.text("--undo", "ID", "Undo the merge or the archiving of a memory."), *verb.PROJECTS, verb.DRY_RUN,
)  # fmt: skip
def merge(**options: Any) -> None:
    """Merge memory ID into INTO, or all duplicates here."""
    if options["undo"] and (options["id"] or options["near"]):
        raise click.UsageError("--undo takes one ID and no other option")
    if options["near"] and options["id"]:
        raise click.UsageError("give either --near or an ID")
    if options["id"] or options["undo"]:  # memories of any project
        del options["project"], options["all_projects"]
    show = show_restored if options["undo"] else show_upkeep_actions
    verb.reply("csm_memory_merge", show, options, sends_by_person=True)


def show_restored(value: dict[str, Any]) -> Screen:
    """Shows the memory that is no longer merged or archived."""
    restored = "would be restored" if value["dry_run"] else "restored"
    origin = f", separate from {value['from']}" if value["from"] else ""
    yield Line(f"{restored}: {value['undone']}{origin}: {squeeze(value['text'])}", max_lines=MAX_LINES)


def _describe_candidate(candidate: dict[str, Any]) -> str:
    """Returns the line below a candidate: its id, kind, confidence, reason and project."""
    # Rounded down like the reason, so that a confidence shown as 70 reaches a threshold of 70.
    kind, sure = candidate["kind"].replace("_", " "), f"confidence {int(round(candidate['confidence'] * 100, 2))}"
    details = join(kind, sure, candidate["reason"], candidate["project"] and f"in {candidate['project']}")
    return f"{candidate['id']}  {details}"


@PIPELINE.tool("promote", "csm_belief_promote", *verb.PROJECTS,
    verb.flag("--dry-run", "apply", help="Only show the plan.", flag_value=False, default=True),
    verb.flag("--relaxed", "profile", flag_value="relaxed", default="default",
    help="Use lower thresholds, to try it out on a small history."),
    sends_by_person=True,
)  # fmt: skip
@render.if_empty("actions", "no open candidates in this project")
def show_promoted(value: dict[str, Any]) -> Screen:
    """Promote candidates that reach the thresholds to memories."""
    promoted = [action for action in value["actions"] if action["step"] == "promote"]
    for action in value["actions"]:
        memory_id = f" {action['memory_id']}" if action["memory_id"] and action in promoted else ""
        reasons = f": {'; '.join(action['reasons'])}" if action["reasons"] else ""
        yield bold(action["candidate"]["text"])
        planned, *applied = STEP_WORDS[action["step"]]
        step = applied[0] if applied and value["applied"] else planned
        yield Line(f"{step}{memory_id}{reasons}", indent=2)
        yield dim(_describe_candidate(action["candidate"]), indent=2)
        yield ""
    would = f"{amount(len(promoted), 'candidate')} would become a memory"
    yield bold(amount(len(promoted), "new memory") if value["applied"] else would)


@PIPELINE.tool("advisory", "csm_living_state_preview", verb.PROJECT)
def show_advisory(value: dict[str, Any]) -> Screen:
    """Preview tentative observations from recent sessions."""
    yield from show_injection(value, nothing="no tentative observations of this project")
    off = "not in briefs; enable: csmd config set stages.advisory true"
    yield dim(f"{value['note']}; {'in briefs' if value['enabled'] else off}")
