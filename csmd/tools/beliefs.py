"""Tools on beliefs: duplicates, merges, archive, candidates, promotion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import get_args

from csmd.errors import BadInput, CsmdError
from csmd.extraction import packets
from csmd.knowledge import Candidate, Memory
from csmd.memory import belief_subjects, habits, merging, promotion, upkeep
from csmd.memory.duplicates import Finding
from csmd.recall import query
from csmd.store import activity, candidates, cursors, memories, memory_invariants, packet_rows, projects
from csmd.store.sqlite import Rows
from csmd.tools import present
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit, refuse_in_review
from csmd.tools.present import as_json, find_memory, read_roots
from csmd.vocabulary import CandidateKind, PacketKind

TOOLS = Tools()

#: The kinds that a merge of all findings merges, and those with near duplicates.
DUPLICATE_KINDS: tuple[CandidateKind, ...] = ("duplicate",)
NEAR_DUPLICATE_KINDS: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate")
STALE_KINDS: tuple[CandidateKind, ...] = ("stale",)
UNEMBEDDED_KINDS: tuple[CandidateKind, ...] = ("missing_embedding",)
MAX_CANDIDATES = 200
BELIEF_FIELDS = "id text authority confidence project told=times confirmed_at"


def _finding_json(finding: Finding, root_of: dict[int, str]) -> Json:
    pair = [as_json(memory, BELIEF_FIELDS, project=root_of.get(memory.project_seq, "")) for memory in finding.memories]
    return as_json(finding, "kind reason confidence memories", memories=pair)


def _action_json(finding: Finding) -> Json:
    memory, into = finding.memory, finding.into
    return {
        "do": upkeep.REPAIR_OF_KIND[finding.kind], "id": memory.id, "version": memory.version, "text": memory.text,
        "into": into.id if into else "", "into_text": into.text if into else "", "reason": finding.reason,
    }  # fmt: skip


@TOOLS.add("csm_memory_candidate_generate", mutates=True)
def _generate_candidates(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True) -> Json:
    """Find defects among memories and queue them for repair."""
    queue = upkeep.plan_all(rows, seen, now=ctx.now())
    if not dry_run:
        ctx.store.write(lambda writing: upkeep.enqueue(writing, queue, now=ctx.now()))
    return {
        "dry_run": dry_run, "by_kind": dict(sorted(Counter(candidate.kind for candidate in queue.put).items())),
        "candidates": [
            as_json(candidate, "kind status reason text memory_ids") for candidate in queue.put[:MAX_CANDIDATES]
        ],
        "settled": [candidate.id for candidate in queue.settle], "counts": candidates.counts(rows),
    }  # fmt: skip


@TOOLS.add("csm_memory_dedup_detect")
def _detect_duplicates(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """Find exact and near duplicates of memories."""
    root_of = read_roots(rows)
    findings = upkeep.find_findings(rows, seen, kinds=NEAR_DUPLICATE_KINDS)
    return {"duplicates": [_finding_json(finding, root_of) for finding in findings]}


def _carry_out(
    ctx: ToolContext, plan: Sequence[Finding], *, dry_run: bool, by_person: bool = False, as_said: bool = False
) -> Json:
    """Applies a plan, or previews it; findings on memories that changed since they were read are skipped."""
    if dry_run:
        return {"dry_run": True, "actions": [_action_json(action) for action in plan], "left": []}
    by, key = "user" if by_person else upkeep.ASSISTANT, ctx.store.hash_key
    write = partial(upkeep.apply, plan=plan, by=by, now=ctx.now(), key=key, by_person=as_said)
    applied, skipped = ctx.store.write(write)
    ctx.poke()
    return {"dry_run": False, "actions": list(map(_action_json, applied)), "left": list(map(_action_json, skipped))}


@TOOLS.add("csm_memory_merge", mutates=True)
def _merge_memories(
    ctx: ToolContext, rows: Rows, id_: str = "", into: str = "", near: bool = False, undo: str = "", seen: Places = None,
    asking: str = "", dry_run: bool = True, by_person: bool = False,
) -> Json:  # fmt: skip
    """Merge a memory into another one, or all duplicates; or undo a merge."""
    if undo:
        return _unmerge(ctx, rows, undo, asking, dry_run=dry_run, by_person=by_person)
    if bool(id_) != bool(into):
        raise BadInput("one of the two memories is missing", hint="give both, or neither for all duplicates")
    if near and not by_person and not dry_run:
        hint = "run `csmd pipeline merge --near` in a terminal"
        raise BadInput("only a person at a terminal can merge near duplicates", hint=hint)
    if not id_:
        plan = upkeep.find_findings(rows, seen, kinds=NEAR_DUPLICATE_KINDS if near else DUPLICATE_KINDS)
        return _carry_out(ctx, plan, dry_run=dry_run, by_person=by_person)
    merged, other = find_memory(rows, id_, asking), find_memory(rows, into, asking)
    refuse_in_review(rows, merged, by_person=by_person or dry_run)
    workspaces = {merged.project_seq: projects.everywhere_of(rows, merged.project_seq)}
    pair = [merging.plan_merge(merged, other, everywhere=workspaces, by_person=by_person)]
    return _carry_out(ctx, pair, dry_run=dry_run, by_person=by_person, as_said=by_person)


def _unmerge(ctx: ToolContext, rows: Rows, word: str, asking: str, *, dry_run: bool, by_person: bool) -> Json:
    memory = find_memory(rows, word, asking)
    if dry_run:
        return {"dry_run": True, "undone": memory.id, "text": memory.text, "from": memory.superseded_by}

    def write(writing: Rows) -> tuple[Memory, Memory]:
        merged = find_memory(writing, memory.id, asking)
        return merged, merging.undo(writing, merged, now=ctx.now(), by_person=by_person)

    memory, into = ctx.store.write(write)
    return {"dry_run": False, "undone": memory.id, "text": memory.text, "from": into.id if into.id != memory.id else ""}


@TOOLS.add("csm_memory_archive_candidate_report")
def _report_stale(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """List memories that have faded enough to be archived."""
    root_of = read_roots(rows)
    stale = upkeep.find_findings(rows, seen, kinds=STALE_KINDS)
    return {"stale": [_finding_json(finding, root_of) for finding in stale], "by_tier": _count_by_tier(rows)}


def _count_by_tier(rows: Rows) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for _, tier, number in activity.count_by_gate_and_tier(rows):
        counts[tier] += number
    return dict(sorted(counts.items()))


@TOOLS.add("csm_memory_archive", mutates=True)
def _archive_memories(
    ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True, by_person: bool = False
) -> Json:
    """Archive faded memories; they stay searchable."""
    plan = upkeep.find_findings(rows, seen, kinds=STALE_KINDS)
    return _carry_out(ctx, plan, dry_run=dry_run, by_person=by_person)


@TOOLS.add("csm_memory_backfill_embeddings", mutates=True)
def _backfill_embeddings(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True) -> Json:
    """Embed memories that were skipped."""
    plan = upkeep.find_findings(rows, seen, kinds=UNEMBEDDED_KINDS)
    return _carry_out(ctx, plan, dry_run=dry_run)


@TOOLS.add("csm_belief_knowledge")
def _show_beliefs(ctx: ToolContext, rows: Rows, seen: Places = None, limit: int = 1000) -> Json:
    """Show the beliefs about a project or a user, by subject."""
    root_of, limit = read_roots(rows), max(limit, 1)
    beliefs = belief_subjects.group_beliefs(memories.list_memories(rows, projects=seen))
    by_kind = {kind: [belief for belief in beliefs if belief.kind == kind] for kind in belief_subjects.BELIEF_KINDS}
    return {
        "more": {kind: len(beliefs_of_kind) - limit for kind, beliefs_of_kind in by_kind.items() if len(beliefs_of_kind) > limit},
        "beliefs": [
            {
                "kind": belief.kind, "subject": belief.subject,
                **as_json(belief.memory, BELIEF_FIELDS, project=root_of.get(belief.memory.project_seq, ""), told=belief.turns),
                "sessions": belief.sessions, "also": [memory.id for memory in belief.others],
            }
            for beliefs_of_kind in by_kind.values()
            for belief in beliefs_of_kind[:limit]
        ],
    }  # fmt: skip


@TOOLS.add("csm_memory_governance_report")
def _check_invariants(ctx: ToolContext, rows: Rows) -> Json:
    """Check the invariants of memories."""
    broken = memory_invariants.find_violations(rows, ctx.store.hash_key)
    return {
        "holds": not broken,
        "rules": [
            {"name": rule.name, "rule": rule.rule, "holds": rule.name not in broken, "broken_by": broken.get(rule.name, []),
             "try": rule.remedy if rule.name in broken else ""}
            for rule in memory_invariants.INVARIANTS
        ],
        "candidates": candidates.counts(rows), "by_tier": _count_by_tier(rows),
    }  # fmt: skip


MAX_LISTED = 1_000
PROFILES = {"default": promotion.DEFAULT_PROFILE, "relaxed": promotion.RELAXED_PROFILE}
#: The origin of memories that a person promoted by relaxed thresholds: csmd neither changes nor withdraws them.
PROMOTED_ORIGIN = "promoted"
CANDIDATE_FIELDS = (
    "id kind status text reason confidence reinforcement contradicted gate category source project memory_ids created_at "
    "updated_at evidence"
)


@TOOLS.add("csm_memory_packets")
def _list_packets(
    ctx: ToolContext, rows: Rows, seen: Places = None, asking: str = "", limit: int = 50, session: str = "", kind: str = "",
    since: str = "", until: str = "",
) -> Json:  # fmt: skip
    """List recent observations, with how the session went."""
    root_of = read_roots(rows)
    present.check_words({"kind": kind}, {"kind": get_args(PacketKind)})
    limits = query.parse_limits(since, until, now=ctx.here(ctx.now()))
    session_id = present.find_session(rows, session, asking).id if session else ""
    latest = packet_rows.latest_packets(
        rows, projects=seen, limit=clamp_limit(limit, MAX_LISTED), session=session_id, kind=kind, since=limits.since,
        until=limits.until,
    )  # fmt: skip
    fields = "at kind subject outcome session_id project uuid state"
    return {"packets": [as_json(packet, fields, project=root_of.get(packet.project_seq, "")) for packet in latest]}


def _candidate_json(candidate: Candidate, root_of: dict[int, str]) -> Json:
    return as_json(candidate, CANDIDATE_FIELDS, project=root_of.get(candidate.project_seq, ""))


@TOOLS.add("csm_memory_candidate_report")
def _report_candidates(ctx: ToolContext, rows: Rows, seen: Places = None, limit: int = 200) -> Json:
    """List the candidates for memories, and why each waits."""
    root_of = read_roots(rows)
    waiting = candidates.waiting(rows, projects=seen, limit=clamp_limit(limit, MAX_LISTED))
    plan = promotion.plan_promotions(rows, projects=seen, profile=promotion.DEFAULT_PROFILE)
    reasons = {action.candidate.id: list(action.reasons) for action in plan}
    values = [{**_candidate_json(row, root_of), "why": reasons.get(row.id, [])} for row in waiting]
    return {"counts": candidates.counts(rows, projects=seen), "candidates": values}


@TOOLS.add("csm_belief_scan", mutates=True)
def _start_scan(ctx: ToolContext, rows: Rows) -> Json:
    """Count recurring observations of sessions, in the background.

    The daemon starts now and this call does not wait: there may be many sessions.
    """
    if not ctx.config.settings.stages_candidates:
        raise CsmdError("observing is switched off (stages.candidates)", hint="csmd config set stages.candidates true")
    sessions_left = len(cursors.sessions_behind(rows, packets.STAGE))
    ctx.poke()
    return {"sessions_left": sessions_left, "counts": candidates.counts(rows, projects=None)}


@TOOLS.add("csm_belief_scan_report")
def _count_candidates(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """Count the candidates for beliefs by kind and status."""
    counts = candidates.counts(rows, projects=seen)
    return {
        "kinds": {
            kind: as_json(rule, "made_of authority promoted", counts=counts.get(kind, {}))
            for kind, rule in habits.KINDS.items()
        }
    }  # fmt: skip


@TOOLS.add("csm_belief_promote", mutates=True)
def _promote_candidates(
    ctx: ToolContext, rows: Rows, seen: Places = None, profile: str = "default", apply: bool = False,
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Plan which candidates become memories, and do it with apply."""
    thresholds = PROFILES.get(profile)
    if thresholds is None:
        raise BadInput(f"the profile must be default or relaxed, not {profile!r}")
    if profile == "relaxed" and apply and not by_person:
        hint = "run `csmd pipeline promote --relaxed` in a terminal"
        raise CsmdError("only a person at a terminal can choose the relaxed thresholds", hint=hint)
    if apply and not by_person and not ctx.config.settings.stages_promote:
        hint = "run `csmd pipeline promote` in a terminal, or set stages.promote"
        raise CsmdError("promotion is switched off", hint=hint)
    root_of = read_roots(rows)
    memory_ids: dict[str, str] = {}
    plan = promotion.plan_promotions(rows, projects=seen, profile=thresholds)

    def write(writing: Rows) -> dict[str, str]:
        # Planned again in the transaction, because candidates may have changed.
        replanned = promotion.plan_promotions(writing, projects=seen, profile=thresholds)
        origin = PROMOTED_ORIGIN if profile == "relaxed" else memories.INFERRED_ORIGIN
        return promotion.carry_out(writing, replanned, key=ctx.store.hash_key, now=ctx.now(), origin=origin)

    if apply:
        memory_ids = ctx.store.write(write)
        ctx.poke()
    return {
        "profile": asdict(thresholds), "applied": apply,
        "actions": [
            as_json(
                action, "step reasons memory_id candidate", memory_id=memory_ids.get(action.candidate.id, action.memory_id),
                candidate=_candidate_json(action.candidate, root_of),
            )
            for action in plan
        ],
    }  # fmt: skip
