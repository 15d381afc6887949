"""Tools on dreams: gates, plan, run, diff, undo, history.

A plan or a dream shows only projects that the caller may see, and how much is left out. Markdown that a dream wrote
is about all projects: with walls it is shown to a person only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from csmd.curator import curate
from csmd.dream import narrator, page_files, steps, undo
from csmd.dream.actions import Action, Fact, Tally
from csmd.errors import BadInput, CsmdError
from csmd.store import dreams, ledger
from csmd.store.dreams import Dream
from csmd.store.sqlite import Rows, ids_like
from csmd.text import markdown
from csmd.tools.declaration import Json, ToolContext, Tools, between, places, resolve_id
from csmd.tools.present import as_json, roots
from csmd.vocabulary import INDEX

TOOLS = Tools()

MOST = 1000


def dream_json(rows: Rows, dream: Dream) -> Json:
    """A dream, with how many actions of each kind it did."""
    names = "id why state begun_at ended_at undone_at sessions error"
    return as_json(dream, names, did=dreams.change_counts(rows, dream.seq))


def count_facts(read: steps.Read) -> steps.Steps[Mapping[int, Sequence[Fact]]]:
    """Counts facts over journal and packets for a plan to go by; by project."""
    facts: dict[int, Sequence[Fact]] = {}
    for place in read(dreams.dream_places):
        facts[place.seq] = read(partial(narrator.count_facts, project=place.seq))
        yield
    return facts


@TOOLS.add("csm_dream_status")
def _status(ctx: ToolContext, rows: Rows) -> Json:
    """Whether a dream is due, what each gate says, and how the last one ended."""
    return ctx.dreams.state(rows)


@TOOLS.add("csm_dream_plan")
def _plan(ctx: ToolContext, rows: Rows, project: str = "", asking: str = "") -> steps.Steps[Json]:
    """What a dream would do now, and why; nothing is done.

    The plan over all projects, what may be seen of it: planning changes nothing and is no dream.
    """
    seen, root_of, now = places(rows, project, asking), roots(rows), ctx.now()

    def read(run: Callable[[Rows], Any]) -> Any:
        return run(rows)

    facts = yield from count_facts(read)
    plan = yield from steps.plan_everywhere(read, now=now, facts=facts)
    actions = [action for action in plan.actions if seen is None or action.project_seq in seen]
    yield
    files = yield from page_files.preview_changes(
        rows, ctx.config.paths.memory, facts=[fact for here in facts.values() for fact in here], key=ctx.store.hash_key,
        after={memory.id: memory for action in plan.actions for memory in action.after},
    )  # fmt: skip
    return {
        "verdict": ctx.dreams.state(rows)["verdict"],
        "did": dict(sorted(Counter(action.kind for action in actions).items())),
        "actions": [_action(action, root_of) for action in actions],
        "projects": [_tally(tally, root_of) for tally in plan.tallies if seen is None or tally.project_seq in seen],
        # The name of a page tells of its project; those two are everybody's and have none.
        "files": [
            asdict(file)
            for file, on in files
            if seen is None or file.path in (markdown.USER, INDEX) or not on.isdisjoint(seen)
        ],
        "hidden": 0 if project else len(plan.actions) - len(actions),
        "asks": _questions(ctx, rows, seen, now=now),
    }


def _questions(ctx: ToolContext, rows: Rows, seen: Sequence[int] | None, *, now: str) -> Json | None:
    """What a dream would ask of the language model that was added, of what may be seen; None where there is none."""
    provider = ledger.asked_provider(rows)
    if provider is None:
        return None
    settings = ctx.config.settings
    left = settings.curator_daily_tokens - ledger.spent_on(rows, now[:10])
    questions = [
        {"session": ended.id, **as_json(question, "project system text most_tokens")}
        for ended, question in curate.preview(
            rows, provider=provider.name, most_tokens=left, now=now, settings=settings
        )
        if seen is None or ended.project_seq in seen
    ]
    return {"provider": provider.name, "model": provider.model, "questions": questions}


def _action(action: Action, root_of: dict[int, str]) -> Json:
    memory, other, fact = action.memory, action.other, action.fact
    # Whose sureness and tier an action tells: of a merge those of the memory that stays.
    subject = other if action.kind == "merge" else memory
    return {
        "phase": action.phase,
        "do": action.kind,
        "project": root_of.get(action.project_seq, ""),
        "id": memory.id if memory else "",
        "version": memory.version if memory else 0,
        "text": memory.text if memory else fact.text if fact else "",
        "other": other.id if other else "",
        "other_text": other.text if other else "",
        **as_json(action, "reason evidence confidence"),
        "confidence_was": subject.confidence if subject else None,
        "tier": action.tier,
        "tier_was": subject.tier if subject else "",
    }


def _tally(tally: Tally, root_of: dict[int, str]) -> Json:
    staleness = {tier: round(value, 3) for tier, value in tally.staleness.items()}
    root = root_of.get(tally.project_seq, "")
    return as_json(
        tally, "project tiers duplicates staleness", project=root, tiers=dict(tally.tiers), staleness=staleness
    )


@TOOLS.add("csm_dream_run", mutates=True)
def _run(
    ctx: ToolContext, rows: Rows, dry_run: bool = False, force: bool = False, asking: str = ""
) -> steps.Steps[Json]:
    """Dream now; gives a job, with `dry_run` the plan."""
    verdict = ctx.dreams.verdict(rows)
    if dry_run:
        plan = yield from _plan(ctx, rows, asking=asking)
        return {"dry_run": True, "due": verdict.ok, **plan}
    if reasons := verdict.closed(forced=force):
        helps = "`csmd dream run --force` dreams all the same" if not force else "csmd dream status"
        why_not = "; ".join(reasons) if force else verdict.words.removeprefix("waits: ")
        raise CsmdError(f"no dream now: {why_not}", hint=helps)
    return {"dry_run": False, "job": ctx.dreams.order("asked for", awaited=True).id}


@TOOLS.add("csm_dream_diff")
def _diff(
    ctx: ToolContext, rows: Rows, id_: str, asking: str = "", by_person: bool = False, limit: int = 0, offset: int = 0
) -> steps.Steps[Json]:
    """What a dream changed, before and after: all of it, or with `limit` a page."""
    dream, seen = _find(rows, id_), places(rows, "", asking)
    did: list[Json] = []
    number, last = 0, max(offset, 0) + limit if limit else math.inf
    for change in undo.diff(rows, dream.id, among=seen):
        if seen is None or by_person or not change["files"]:
            number += 1
            did += [change] if offset < number <= last else []
        yield
    total = sum(dreams.change_counts(rows, dream.seq).values())
    return {"dream": dream_json(rows, dream), "did": did, "hidden": total - number}


@TOOLS.add("csm_dream_undo", mutates=True)
def _undo(ctx: ToolContext, rows: Rows, id_: str, dry_run: bool = True) -> Json:
    """Take a dream back, and every one since; gives a job, with `dry_run` says which."""
    dream = _find(rows, id_)
    chain = undo.plan_undo(rows, dream.id)
    if dry_run:
        return {"dry_run": True, "dreams": [dream_json(rows, dream) for dream in chain]}
    return {"dry_run": False, "job": ctx.submit("undo", order={"dream": dream.id})}


@TOOLS.add("csm_dream_history")
def _history(ctx: ToolContext, rows: Rows, limit: int = 20, offset: int = 0) -> Json:
    """List the dreams, the latest first."""
    listed = dreams.history(rows, limit=between(limit, MOST), offset=max(offset, 0))
    return {"dreams": [dream_json(rows, dream) for dream in listed]}


def _find(rows: Rows, typed: str) -> Dream:
    """The dream that is meant by its id or the beginning of it, `last` for the latest."""
    if typed == "last":
        latest = dreams.history(rows, limit=1)
        if not latest:
            raise BadInput("no dream has run yet", hint="csmd dream status")
        return latest[0]
    dream = dreams.by_id(rows, resolve_id(typed, ids_like(rows, "dreams", typed)))
    if dream is None:
        raise BadInput(f"there is no dream {typed!r}", hint="`csmd dream history` lists them")
    return dream
