"""Tools on dreams: gates, plan, run, diff, undo, history.

A plan or a dream shows only projects that the caller may see, and how many actions are left out. Pages that a dream
wrote are about all projects; if there are walls, only a person is shown them.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from csmd.curator import curate
from csmd.dream import dream_undo, page_files, project_facts, steps
from csmd.dream.actions import Action, Fact, Tally
from csmd.errors import BadInput, CsmdError
from csmd.store import dream_scopes, dreams, journal, ledger, projects, provider_rows, workspaces
from csmd.store.dreams import Dream
from csmd.store.journal import ChangedFile, ChangedRow, ChangeSet
from csmd.store.memory_snapshots import Snapshot
from csmd.store.sqlite import Rows, ids_like
from csmd.text import markdown
from csmd.tools.declaration import Json, ToolContext, Tools, clamp_limit, find_places, resolve_id
from csmd.tools.present import as_json, read_roots
from csmd.vocabulary import INDEX

TOOLS = Tools()

MAX_DREAMS = 1000


def dream_json(rows: Rows, dream: Dream) -> Json:
    """Returns a dream, with how many actions of each kind it did."""
    names = "id why state begun_at ended_at undone_at sessions error"
    return as_json(dream, names, did=journal.count_actions(rows, dream.seq))


def count_facts(read: steps.Read) -> steps.Steps[Mapping[int, Sequence[Fact]]]:
    """Counts the facts that a plan is made from, by project."""
    facts: dict[int, Sequence[Fact]] = {}
    for scope in read(dream_scopes.list_scopes):
        facts[scope.seq] = read(partial(project_facts.derive_facts, project=scope.seq))
        yield
    return facts


@TOOLS.add("csm_dream_status")
def _show_status(ctx: ToolContext, rows: Rows) -> Json:
    """Show whether a dream is due, the state of each gate, and how the last dream ended."""
    return ctx.dreams.state(rows)


@TOOLS.add("csm_dream_plan")
def _plan_dream(ctx: ToolContext, rows: Rows, project: str = "", asking: str = "") -> steps.Steps[Json]:
    """Preview the changes that a dream would make now, and why.

    The plan covers all projects; the answer is limited to projects the caller may see.
    """
    seen, root_of, now = find_places(rows, project, asking), read_roots(rows), ctx.now()

    def read(run: Callable[[Rows], Any]) -> Any:
        return run(rows)

    facts = yield from count_facts(read)
    plan = yield from steps.plan_everywhere(read, now=now, facts=facts)
    actions = [action for action in plan.actions if seen is None or action.project_seq in seen]
    yield
    files = yield from page_files.preview_changes(
        rows, ctx.config.paths.memory, facts=[fact for project_facts in facts.values() for fact in project_facts], key=ctx.store.hash_key,
        after={memory.id: memory for action in plan.actions for memory in action.after},
    )  # fmt: skip
    return {
        "verdict": ctx.dreams.state(rows)["verdict"],
        "did": dict(sorted(Counter(action.kind for action in actions).items())),
        "actions": [_action_json(action, root_of) for action in actions],
        "projects": [
            _tally_json(tally, root_of) for tally in plan.tallies if seen is None or tally.project_seq in seen
        ],
        # A page's name reveals its project, except those of these two.
        "files": [
            asdict(file)
            for file, project_seqs in files
            if seen is None or file.path in (markdown.USER, INDEX) or not project_seqs.isdisjoint(seen)
        ],
        "hidden": 0 if project else len(plan.actions) - len(actions),
        "asks": _questions_json(ctx, rows, seen, now=now),
    }


def _questions_json(ctx: ToolContext, rows: Rows, seen: Sequence[int] | None, *, now: str) -> Json | None:
    """Returns the questions that a dream would ask the configured language model, of visible projects.

    None without a model.
    """
    provider = provider_rows.choose_provider(rows)
    if provider is None:
        return None
    settings = ctx.config.settings
    tokens_left = settings.curator_daily_tokens - ledger.tokens_spent_on(rows, now[:10])
    questions = [
        {"session": session.id, **as_json(question, "project system text most_tokens")}
        for session, question in curate.preview(
            rows, provider=provider.name, most_tokens=tokens_left, now=now, settings=settings
        )
        if seen is None or session.project_seq in seen
    ]
    return {"provider": provider.name, "model": provider.model, "questions": questions}


def _action_json(action: Action, root_of: dict[int, str]) -> Json:
    memory, other, fact = action.memory, action.other, action.fact
    # Confidence and tier of a merge are those of the memory that stays.
    subject = other if action.kind == "merge" else memory
    return {
        "phase": action.phase, "do": action.kind, "project": root_of.get(action.project_seq, ""),
        "id": memory.id if memory else "", "version": memory.version if memory else 0,
        "text": memory.text if memory else fact.text if fact else "", "other": other.id if other else "",
        "other_text": other.text if other else "", **as_json(action, "reason evidence confidence"),
        "confidence_was": subject.confidence if subject else None, "tier": action.tier,
        "tier_was": subject.tier if subject else "",
    }  # fmt: skip


def _tally_json(tally: Tally, root_of: dict[int, str]) -> Json:
    staleness = {tier: round(value, 3) for tier, value in tally.staleness.items()}
    root = root_of.get(tally.project_seq, "")
    values = {"project": root, "tiers": dict(tally.tiers), "staleness": staleness}
    return as_json(tally, "project tiers duplicates staleness", **values)


@TOOLS.add("csm_dream_run", mutates=True)
def _run_dream(
    ctx: ToolContext, rows: Rows, dry_run: bool = False, force: bool = False, asking: str = ""
) -> steps.Steps[Json]:
    """Dream now; returns a job, with `dry_run` the plan."""
    verdict = ctx.dreams.verdict(rows)
    if dry_run:
        plan = yield from _plan_dream(ctx, rows, asking=asking)
        return {"dry_run": True, "due": verdict.ok, **plan}
    if reasons := verdict.closed(forced=force):
        hint = "csmd dream status" if force else "`csmd dream run --force` does not wait"
        problem = "; ".join(reasons) if force else verdict.words.removeprefix("waits: ")
        raise CsmdError(f"no dream now; {problem}", hint=hint)
    return {"dry_run": False, "job": ctx.dreams.order("asked for", awaited=True).id}


@TOOLS.add("csm_dream_diff")
def _show_changes(
    ctx: ToolContext, rows: Rows, id_: str, asking: str = "", by_person: bool = False, limit: int = 0, offset: int = 0
) -> steps.Steps[Json]:
    """Show the changes of a dream, before and after: all of them, or with `limit` a page."""
    dream, seen = _find_dream(rows, id_), find_places(rows, "", asking)
    changes: list[Json] = []
    number, end = 0, max(offset, 0) + limit if limit else math.inf
    for change in changes_json(rows, dream.id, among=seen):
        if seen is None or by_person or not change["files"]:
            number += 1
            changes += [change] if offset < number <= end else []
        yield
    total = sum(journal.count_actions(rows, dream.seq).values())
    return {"dream": dream_json(rows, dream), "did": changes, "hidden": total - number}


def changes_json(rows: Rows, dream_id: str, *, among: Sequence[int] | None = None) -> Iterator[Json]:
    """Yields the changes of a dream in these projects (None: in all) and in files, as JSON, in order.

    Of an action that a purge erased only the reason is left. CsmdError if there is no such dream.
    """
    dream = dreams.by_id(rows, dream_id)
    if dream is None:
        raise CsmdError(f"there is no dream {dream_id!r}", hint="csmd dream history")
    for seq in journal.list_actions(rows, dream.seq):
        action, written = journal.read_change_set(rows, seq), journal.list_files_of_set(rows, seq)
        if among is None or written or action.project_seq in among:
            yield _change_set_json(rows, action, journal.changed_rows(rows, seq), written)


def _change_set_json(
    rows: Rows, change: ChangeSet, changed: Sequence[ChangedRow], written: Sequence[ChangedFile]
) -> Json:
    return {
        "kind": change.kind,
        "project": projects.name_of(rows, workspaces.merged_into(rows, change.project_seq) or change.project_seq),
        "reason": change.reason, "evidence": change.evidence.split(), "at": change.at, "undone_at": change.undone_at,
        "touched": [
            {"item": row.was.item, "before": _side_json(row.was), "after": _side_json(row.then), "kept": row.kept}
            for row in changed
        ],
        "files": [
            {"path": file.path, "diff": unified_diff(file.path, file.before, file.after), "kept": file.kept}
            for file in written
        ],
        "purged": not changed and not written,
    }  # fmt: skip


def _side_json(image: Snapshot) -> Json | None:
    """Returns a memory or candidate before or after an action, None if it did not exist.

    A candidate's tier is its status.
    """
    content = image.content
    if not content:
        return None
    return {
        "text": str(content["text"]), "confidence": float(content["confidence"]),
        "tier": str(content.get("tier") or content.get("status", "")),
        "superseded_by": str(content.get("superseded_by", "")),
        "sources": len(content.get("sources") or content.get("evidence") or ()),
        "links": [f"{kind} {other}" for _, other, kind, *_ in image.outgoing_links],
    }  # fmt: skip


def unified_diff(path: str, before: str | None, after: str | None) -> str:
    """Returns a file's change as a unified diff; a missing file is /dev/null."""
    old, new = ("/dev/null" if text is None else path for text in (before, after))
    lines = difflib.unified_diff((before or "").splitlines(), (after or "").splitlines(), old, new, lineterm="")
    return "\n".join(lines)


@TOOLS.add("csm_dream_undo", mutates=True)
def _undo_dream(ctx: ToolContext, rows: Rows, id_: str, dry_run: bool = True) -> Json:
    """Undo a dream and every later one; returns a job, with `dry_run` the dreams."""
    dream = _find_dream(rows, id_)
    chain = dream_undo.plan_undo(rows, dream.id)
    if dry_run:
        return {"dry_run": True, "dreams": [dream_json(rows, dream) for dream in chain]}
    return {"dry_run": False, "job": ctx.submit("undo", order={"dream": dream.id})}


@TOOLS.add("csm_dream_history")
def _list_dreams(ctx: ToolContext, rows: Rows, limit: int = 20, offset: int = 0) -> Json:
    """List the dreams, the latest first."""
    page = dreams.list_dreams(rows, limit=clamp_limit(limit, MAX_DREAMS), offset=max(offset, 0))
    return {"dreams": [dream_json(rows, dream) for dream in page]}


def _find_dream(rows: Rows, word: str) -> Dream:
    """Returns the dream with an id or its beginning, or the latest for `last`."""
    if word == "last":
        latest = dreams.list_dreams(rows, limit=1)
        if not latest:
            raise BadInput("no dream has run yet", hint="csmd dream status")
        return latest[0]
    dream = dreams.by_id(rows, resolve_id(word, ids_like(rows, "dreams", word)))
    if dream is None:
        raise BadInput(f"there is no dream {word!r}", hint="`csmd dream history` lists them")
    return dream
