"""What can be asked of dreams: the gates, the plan that is the dry run, one now, what one did, taking it back.

What a plan or a dream says of a project is told only where that project may be seen; who cannot see all of them is told
how much is left out. Markdown that a dream wrote is of all projects: with walls it is shown to a person only.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from csmd.daemon import dreaming
from csmd.daemon.clock import now_iso
from csmd.daemon.job import Job
from csmd.dream import page_files, reselection, steps, undo
from csmd.dream.actions import Action, Tally, after
from csmd.dream.undo import Did
from csmd.errors import BadInput, CsmdError
from csmd.hosts.claude.environment import INDEX
from csmd.store import activity, dreams
from csmd.store.dreams import Place
from csmd.store.sqlite import Rows, ids_like
from csmd.text import page_lines
from csmd.tools.registry import ASKING, PLACE, REQUIRED, Params, Tool, ToolContext, meant, places

MOST = 1000
#: Seconds for which a preview compares vectors: whoever asked waits, and a dream has all the time there is.
COMPARING_S = 3.0


def _status(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return tools.dreaming.shown(rows)


def _plan(tools: ToolContext, rows: Rows, params: Params) -> steps.Steps[dict[str, Any]]:
    """The plan over all projects, what may be seen of it: planning changes nothing and is no dream."""
    seen, roots = places(rows, params), {seq: root for seq, root, *_ in activity.project_counts(rows)}
    now = now_iso()
    left_s, uncompared = COMPARING_S, 0

    def near(rows: Rows, place: Place, seqs: Sequence[int]) -> set[tuple[int, int]]:
        nonlocal left_s, uncompared
        if left_s <= 0:
            uncompared += len(seqs)
            return set()
        began = time.monotonic()
        found = dreams.near_pairs(rows, place, seqs)
        left_s -= time.monotonic() - began
        return found

    def read(run: Callable[[Rows], Any]) -> Any:
        return run(rows)

    facts = yield from dreaming.counted(read, now=now)
    plan = yield from steps.planned(read, now=now, facts=facts, near=near)
    actions = [one for one in plan.actions if seen is None or one.project_seq in seen]
    tallies = [one for one in plan.tallies if seen is None or one.project_seq in seen]
    yield
    files = yield from page_files.changes(
        rows, tools.config.paths.memory, facts=[one for here in facts.values() for one in here], key=tools.store.hash_key,
        after={one.id: one for action in plan.actions for one in after(action, lambda memory: memory)},
    )  # fmt: skip
    return {
        "verdict": tools.dreaming.shown(rows)["verdict"],
        "did": dict(sorted(Counter(one.kind for one in actions).items())),
        "actions": [_action(one, roots) for one in actions],
        "projects": [_tally(one, roots) for one in tallies],
        # The name of a page tells of its project; those two are everybody's and have none.
        "files": [
            asdict(one)
            for one, on in files
            if seen is None or one.path in (page_lines.USER, INDEX) or not on.isdisjoint(seen)
        ],
        "hidden": 0 if params["project"] else len(plan.actions) - len(actions),
        "uncompared": uncompared,
    }


def _action(one: Action, roots: dict[int, str]) -> dict[str, Any]:
    # Whose sureness and tier an action tells: of a merge those of the memory that stays.
    subject = one.other if one.kind == "merge" else one.memory
    return {
        "phase": dreaming.PHASES[one.kind],
        "do": one.kind,
        "project": roots.get(one.project_seq, ""),
        "id": one.memory.id if one.memory else "",
        "version": one.memory.version if one.memory else 0,
        "text": one.memory.text if one.memory else one.fact.text if one.fact else "",
        "other": one.other.id if one.other else "",
        "other_text": one.other.text if one.other else "",
        "reason": one.reason,
        "evidence": list(one.evidence),
        "confidence": one.confidence,
        "confidence_was": subject.confidence if subject else None,
        "tier": one.tier,
        "tier_was": subject.tier if subject else "",
    }


def _tally(one: Tally, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "project": roots.get(one.project_seq, ""), "tiers": dict(one.tiers), "duplicates": one.duplicates,
        "staleness": {tier: round(value, 3) for tier, value in one.staleness.items()},
    }  # fmt: skip


def _run(tools: ToolContext, rows: Rows, params: Params) -> steps.Steps[dict[str, Any]]:
    verdict = tools.dreaming.verdict(rows)
    if params["dry_run"]:
        plan = yield from _plan(tools, rows, {**params, "project": ""})
        return {"dry_run": True, "due": verdict.ok, **plan}
    if reasons := verdict.closed(forced=params["force"]):
        helps = "`csmd dream run --force` dreams all the same" if not params["force"] else "csmd dream status"
        raise CsmdError(f"no dream now: {', '.join(dict.fromkeys(reasons))}", hint=helps)
    return {"dry_run": False, "job": tools.dreaming.order("asked for", awaited=True).id}


def _again(tools: ToolContext, rows: Rows, params: Params) -> steps.Steps[dict[str, Any]]:
    if not params["dry_run"]:
        job = tools.dreaming.order(dreaming.AGAIN, awaited=True, confirmed=params["yes"])
        return {"dry_run": False, "job": job.id}
    seen = places(rows, {**params, "project": ""})
    found = yield from reselection.planned(lambda run: run(rows), key=tools.store.hash_key)

    def shown(project: int) -> bool:
        return seen is None or project in seen

    return {
        "dry_run": True, "kept": len(found.kept), "new": len(found.made), "archived": len(found.archived),
        "share": round(found.share, 3), "needs_yes": found.needs_person,
        "reworded": [
            {"id": memory.id, "text": memory.text, "becomes": said.statement.text}
            for memory, said in found.kept
            if memory.text != said.statement.text and shown(memory.project_seq)
        ],
        "leaving": [{"id": one.id, "text": one.text} for one in found.archived if shown(one.project_seq)],
        "coming": [{"uuid": one.uuid, "text": one.statement.text} for one in found.made if shown(one.project_seq)],
    }  # fmt: skip


def _diff(tools: ToolContext, rows: Rows, params: Params) -> steps.Steps[dict[str, Any]]:
    dream = _named(rows, params["id"])
    seen = places(rows, {**params, "project": ""})
    did: list[dict[str, Any]] = []
    for one in undo.diff(rows, dream.id, among=seen):
        if seen is None or params["by_person"] or not one.files:
            did.append(_did(one))
        yield
    total = sum(dreams.change_counts(rows, dream.seq).values())
    return {"dream": dreaming.dream_told(rows, dream), "did": did, "hidden": total - len(did)}


def _did(one: Did) -> dict[str, Any]:
    return {**asdict(one), "evidence": list(one.evidence), "purged": one.purged}


def _history(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    limit = min(max(params["limit"], 1), MOST)
    return {"dreams": [dreaming.dream_told(rows, one) for one in dreams.history(rows, limit=limit)]}


def _undo(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    dream = _named(rows, params["id"])
    wanted = undo.undoing(rows, dream.id)
    if params["dry_run"]:
        return {"dry_run": True, "dreams": [dreaming.dream_told(rows, one) for one in wanted]}
    job = Job(id=secrets.token_hex(8), kind="undo", order={"dream": dream.id})
    return {"dry_run": False, "job": tools.context.submit(job).id}


def _named(rows: Rows, typed: str) -> dreams.Dream:
    """The dream that is meant by its id or the beginning of it, `last` for the latest."""
    if typed == "last":
        found: Sequence[dreams.Dream] = dreams.history(rows, limit=1)
        if not found:
            raise BadInput("no dream has run yet", hint="csmd dream status")
        return found[0]
    dream = dreams.by_id(rows, meant(typed, ids_like(rows, "dreams", typed)))
    if dream is None:
        raise BadInput(f"there is no dream {typed!r}", hint="`csmd dream history` lists them")
    return dream


TOOLS: dict[str, Tool] = {
    "csm_dream_status": Tool(
        summary="Whether a dream is due, what each gate says, and how the last one ended", mutates=False, run=_status,
        parameters={},
    ),
    "csm_dream_plan": Tool(
        summary="What a dream would do now, and why; nothing is done", mutates=False, run=_plan, parameters=PLACE
    ),
    "csm_dream_run": Tool(
        summary="Dream now; gives a job, with `dry_run` the plan", mutates=True, run=_run,
        parameters={"dry_run": (bool, False), "force": (bool, False), ASKING: (str, "")},
    ),
    "csm_dream_diff": Tool(
        summary="What a dream changed, before and after", mutates=False, run=_diff,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_dream_undo": Tool(
        summary="Take a dream back, and every one since; gives a job, with `dry_run` says which", mutates=True, run=_undo,
        parameters={"id": (str, REQUIRED), "dry_run": (bool, True)},
    ),
    "csm_distill_again": Tool(
        summary="Choose old memories anew; gives a job, with `dry_run` the plan", mutates=True, run=_again,
        parameters={"dry_run": (bool, False), "yes": (bool, False), ASKING: (str, "")},
    ),
    "csm_dream_history": Tool(
        summary="List the dreams, the latest first", mutates=False, run=_history, parameters={"limit": (int, 20)}
    ),
}  # fmt: skip
