"""Upkeep of what is believed: what is to be mended, mending it, beliefs by subject, whether the rules hold.

What changes beliefs is shown first: `dry_run` is the default, and its plan is what would be done. An assistant merges
only what is found to say the same; what is only nearly the same, a person says. All of it can be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from csmd.believe import knowledge, stage_upkeep, upkeep
from csmd.believe.upkeep import Action, Finding
from csmd.daemon.answers.memory import one as named
from csmd.daemon.now import now_iso
from csmd.daemon.tool import ASKING, PLACE, Params, Tool, places
from csmd.errors import BadInput
from csmd.model import CandidateKind, Memory
from csmd.store import activity, candidates, invariants, memories, projects
from csmd.store import before_images as stored
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

#: What a merge of all that is found merges; with what is only nearly the same.
SAME: tuple[CandidateKind, ...] = ("duplicate",)
NEAR: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate")
STALE: tuple[CandidateKind, ...] = ("stale",)
UNEMBEDDED: tuple[CandidateKind, ...] = ("missing_embedding",)
MOST = 200


def _memory(memory: Memory, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "id": memory.id, "text": memory.text, "authority": memory.authority, "confidence": memory.confidence,
        "project": roots.get(memory.project_seq, ""), "told": memory.times, "confirmed_at": memory.confirmed_at,
    }  # fmt: skip


def _finding(finding: Finding, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "kind": finding.kind, "reason": finding.reason, "confidence": finding.confidence,
        "memories": [_memory(memory, roots) for memory in finding.memories],
    }  # fmt: skip


def _action(action: Action) -> dict[str, Any]:
    return {
        "do": action.kind, "id": action.memory.id, "version": action.memory.version, "text": action.memory.text,
        "into": action.into.id if action.into else "", "into_text": action.into.text if action.into else "",
        "reason": action.reason,
    }  # fmt: skip


def _roots(rows: Rows) -> dict[int, str]:
    return {seq: root for seq, root, *_ in activity.project_counts(rows)}


def _generate(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    made = stage_upkeep.generate(rows, places(rows, params), now=now_iso())
    if not params["dry_run"]:
        tools.store.write(lambda writing: stage_upkeep.enqueue(writing, made, now=now_iso()))
    return {
        "dry_run": params["dry_run"],
        "by_kind": dict(sorted(Counter(one.kind for one in made.put).items())),
        "candidates": [
            {"kind": one.kind, "status": one.status, "reason": one.reason, "text": one.text, "memory_ids": list(one.memory_ids)}
            for one in made.put[:MOST]
        ],
        "settled": [one.id for one in made.settle],
        "counts": candidates.counts(rows),
    }  # fmt: skip


def _detect(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    roots = _roots(rows)
    found = stage_upkeep.alike_in(rows, stored.memories_of_places(rows, places(rows, params)))
    return {"duplicates": [_finding(finding, roots) for finding in found]}


def _mended(tools: Tools, params: Params, plan: Sequence[Action], *, as_said: bool = False) -> dict[str, Any]:
    """What was done of a plan, or would be. It was made on a reader: hooks do not wait for it, and what has moved is left."""
    by = "user" if params.get("by_person") else "assistant"
    if params["dry_run"]:
        return {"dry_run": True, "actions": [_action(action) for action in plan], "left": []}
    done = tools.store.write(
        lambda rows: stage_upkeep.apply(rows, plan, by=by, now=now_iso(), key=tools.store.hash_key, as_said=as_said)
    )
    tools.steward.poke()
    return {
        "dry_run": False,
        "actions": [_action(action) for action in done.done],
        "left": [_action(action) for action in done.moved],
    }


def _merge(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if params["undo"]:
        return _undo(tools, rows, params)
    if bool(params["id"]) != bool(params["into"]):
        raise BadInput(
            "which memory is to be merged into which other?", hint="name both, or neither for all duplicates"
        )
    if params["near"] and not params["by_person"] and not params["dry_run"]:
        raise BadInput("that memories nearly the same are one, a person says", hint="`csmd merge --near` in a terminal")
    if not params["id"]:
        found = stage_upkeep.alike_in(rows, stored.memories_of_places(rows, places(rows, params)))
        return _mended(tools, params, upkeep.actions(found, kinds=NEAR if params["near"] else SAME))
    merged, into = (named(rows, params[name], asking=params[ASKING]) for name in ("id", "into"))
    around = {merged.project_seq: projects.everywhere(rows, merged.project_seq)}
    plan = [stage_upkeep.planned_merge(merged, into, everywhere=around, by_person=params["by_person"])]
    return _mended(tools, params, plan, as_said=params["by_person"])


def _undo(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    ident = named(rows, params["undo"], asking=params[ASKING]).id

    def write(writing: Rows) -> tuple[Memory, Memory]:
        memory = named(writing, ident, asking=params[ASKING])
        return memory, stage_upkeep.undo(writing, memory, now=now_iso(), by_person=params["by_person"])

    if params["dry_run"]:
        memory = named(rows, ident, asking=params[ASKING])
        return {"dry_run": True, "undone": ident, "text": memory.text, "from": memory.superseded_by}
    memory, into = tools.store.write(write)
    return {"dry_run": False, "undone": memory.id, "text": memory.text, "from": into.id if into.id != memory.id else ""}


def _ageing(tools: Tools, rows: Rows, params: Params) -> list[Finding]:
    found = stage_upkeep.ailing_in(rows, stored.memories_of_places(rows, places(rows, params)))
    return [finding for finding in found if finding.kind == "stale"]


def _archive_report(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    roots = _roots(rows)
    return {
        "stale": [_finding(finding, roots) for finding in _ageing(tools, rows, params)],
        "by_tier": _by_tier(rows),
    }


def _by_tier(rows: Rows) -> dict[str, int]:
    found: Counter[str] = Counter()
    for _, tier, number in activity.memories_by(rows):
        found[tier] += number
    return dict(sorted(found.items()))


def _archive(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    return _mended(tools, params, upkeep.actions(_ageing(tools, rows, params), kinds=STALE))


def _backfill(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    return _mended(
        tools,
        params,
        upkeep.actions(
            stage_upkeep.ailing_in(rows, stored.memories_of_places(rows, places(rows, params))), kinds=UNEMBEDDED
        ),
    )


def _beliefs(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    roots = _roots(rows)
    found = knowledge.beliefs(memories.listing(rows, projects=places(rows, params)))
    by_kind = {kind: [one for one in found if one.kind == kind] for kind, _ in knowledge.KINDS}
    limit = max(params["limit"], 1)
    return {
        "more": {kind: len(rows_) - limit for kind, rows_ in by_kind.items() if len(rows_) > limit},
        "beliefs": [
            {
                "kind": one.kind, "subject": one.subject, **_memory(one.memory, roots), "told": one.turns,
                "sessions": one.sessions, "also": [memory.id for memory in one.also],
            }
            for rows_ in by_kind.values()
            for one in rows_[:limit]
        ],
    }  # fmt: skip


def _governance(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    broken = invariants.broken(rows, tools.store.hash_key)
    return {
        "holds": not broken,
        "rules": [
            {"name": one.name, "rule": one.rule, "holds": one.name not in broken, "broken_by": broken.get(one.name, []),
             "try": one.remedy if one.name in broken else ""}
            for one in invariants.INVARIANTS
        ],
        "candidates": candidates.counts(rows),
        "by_tier": _by_tier(rows),
    }  # fmt: skip


DRY = {"dry_run": (bool, True), "by_person": (bool, False)}

TOOLS: dict[str, Tool] = {
    "csm_memory_candidate_generate": Tool(
        summary="Look for what is to be mended among memories, and put it into the queue", mutates=True, run=_generate,
        parameters={**PLACE, "dry_run": (bool, True)},
    ),
    "csm_memory_dedup_detect": Tool(
        summary="Find memories that say the same, or nearly so", mutates=False, run=_detect, parameters=PLACE
    ),
    "csm_memory_merge": Tool(
        summary="Merge a memory into another one, or all duplicates; or take a merge back", mutates=True, run=_merge,
        parameters={"id": (str, ""), "into": (str, ""), "near": (bool, False), "undo": (str, ""), **PLACE, **DRY},
    ),
    "csm_memory_archive_candidate_report": Tool(
        summary="Which memories have faded so far that they could be archived", mutates=False, run=_archive_report, parameters=PLACE
    ),
    "csm_memory_archive": Tool(
        summary="Leave faded memories to explicit search", mutates=True, run=_archive, parameters={**PLACE, **DRY}
    ),
    "csm_memory_backfill_embeddings": Tool(
        summary="Have memories embedded that were passed by", mutates=True, run=_backfill,
        parameters={**PLACE, "dry_run": (bool, True)},
    ),
    "csm_belief_knowledge": Tool(
        summary="What is held of a project or a user, by subject", mutates=False, run=_beliefs,
        parameters={**PLACE, "limit": (int, 1000)}
    ),
    "csm_memory_governance_report": Tool(
        summary="Whether the rules hold that have no exception", mutates=False, run=_governance, parameters={}
    ),
}  # fmt: skip
