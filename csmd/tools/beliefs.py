"""Tools on beliefs: duplicates, merges, archive, candidates, promotion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import get_args

from csmd.errors import BadInput, CsmdError
from csmd.extraction import packets
from csmd.knowledge import Candidate, Memory
from csmd.memory import belief_subjects, habits, merging, promotion, upkeep
from csmd.memory.duplicates import Finding
from csmd.recall import query
from csmd.store import activity, candidates, cursors, integrity, memories, packet_rows, projects
from csmd.store.sqlite import Rows
from csmd.tools import present
from csmd.tools.declaration import Json, Places, ToolContext, Tools, between, leave_to_review
from csmd.tools.present import as_json, find_memory, roots
from csmd.vocabulary import CandidateKind, PacketKind

UPKEEP = Tools()
HABITS = Tools()

#: The kinds that a merge of all findings merges, and those with near duplicates.
SAME: tuple[CandidateKind, ...] = ("duplicate",)
NEAR: tuple[CandidateKind, ...] = ("duplicate", "near_duplicate")
STALE: tuple[CandidateKind, ...] = ("stale",)
UNEMBEDDED: tuple[CandidateKind, ...] = ("missing_embedding",)
MOST = 200
MEMORY = "id text authority confidence project told=times confirmed_at"


def _finding(finding: Finding, root_of: dict[int, str]) -> Json:
    pair = [as_json(memory, MEMORY, project=root_of.get(memory.project_seq, "")) for memory in finding.memories]
    return as_json(finding, "kind reason confidence memories", memories=pair)


def _action(finding: Finding) -> Json:
    memory, into = finding.memory, finding.into
    return {
        "do": upkeep.REPAIR_OF_KIND[finding.kind], "id": memory.id, "version": memory.version, "text": memory.text,
        "into": into.id if into else "", "into_text": into.text if into else "", "reason": finding.reason,
    }  # fmt: skip


@UPKEEP.add("csm_memory_candidate_generate", mutates=True)
def _generate(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True) -> Json:
    """Find defects among memories and queue them for repair."""
    queue = upkeep.plan_all(rows, seen, now=ctx.now())
    if not dry_run:
        ctx.store.write(lambda writing: upkeep.enqueue(writing, queue, now=ctx.now()))
    return {
        "dry_run": dry_run,
        "by_kind": dict(sorted(Counter(candidate.kind for candidate in queue.put).items())),
        "candidates": [as_json(candidate, "kind status reason text memory_ids") for candidate in queue.put[:MOST]],
        "settled": [candidate.id for candidate in queue.settle],
        "counts": candidates.counts(rows),
    }


@UPKEEP.add("csm_memory_dedup_detect")
def _detect(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """Find memories that say the same, or nearly so."""
    root_of = roots(rows)
    return {"duplicates": [_finding(finding, root_of) for finding in upkeep.find_findings(rows, seen, kinds=NEAR)]}


def _carry_out(
    ctx: ToolContext, plan: Sequence[Finding], *, dry_run: bool, by_person: bool = False, as_said: bool = False
) -> Json:
    """Returns what was done of a plan, or would be; findings on memories that changed since they were read are left."""
    if dry_run:
        return {"dry_run": True, "actions": [_action(action) for action in plan], "left": []}
    by, key = "user" if by_person else upkeep.ASSISTANT, ctx.store.hash_key
    done, left = ctx.store.write(
        lambda rows: upkeep.apply(rows, plan, by=by, now=ctx.now(), key=key, by_person=as_said)
    )
    ctx.poke()
    return {"dry_run": False, "actions": list(map(_action, done)), "left": list(map(_action, left))}


@UPKEEP.add("csm_memory_merge", mutates=True)
def _merge(
    ctx: ToolContext, rows: Rows, id_: str = "", into: str = "", near: bool = False, undo: str = "", seen: Places = None,
    asking: str = "", dry_run: bool = True, by_person: bool = False,
) -> Json:  # fmt: skip
    """Merge a memory into another one, or all duplicates; or take a merge back."""
    if undo:
        return _unmerge(ctx, rows, undo, asking, dry_run=dry_run, by_person=by_person)
    if bool(id_) != bool(into):
        raise BadInput(
            "which memory is to be merged into which other?", hint="name both, or neither for all duplicates"
        )
    if near and not by_person and not dry_run:
        raise BadInput(
            "that memories nearly the same are one, a person says", hint="`csmd pipeline merge --near` in a terminal"
        )
    if not id_:
        plan = upkeep.find_findings(rows, seen, kinds=NEAR if near else SAME)
        return _carry_out(ctx, plan, dry_run=dry_run, by_person=by_person)
    merged, other = find_memory(rows, id_, asking), find_memory(rows, into, asking)
    leave_to_review(rows, merged, by_person=by_person or dry_run)
    around = {merged.project_seq: projects.everywhere_of(rows, merged.project_seq)}
    pair = [merging.plan_merge(merged, other, everywhere=around, by_person=by_person)]
    return _carry_out(ctx, pair, dry_run=dry_run, by_person=by_person, as_said=by_person)


def _unmerge(ctx: ToolContext, rows: Rows, typed: str, asking: str, *, dry_run: bool, by_person: bool) -> Json:
    memory = find_memory(rows, typed, asking)
    if dry_run:
        return {"dry_run": True, "undone": memory.id, "text": memory.text, "from": memory.superseded_by}

    def write(writing: Rows) -> tuple[Memory, Memory]:
        merged = find_memory(writing, memory.id, asking)
        return merged, merging.undo(writing, merged, now=ctx.now(), by_person=by_person)

    memory, into = ctx.store.write(write)
    return {"dry_run": False, "undone": memory.id, "text": memory.text, "from": into.id if into.id != memory.id else ""}


@UPKEEP.add("csm_memory_archive_candidate_report")
def _archive_report(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """List memories that have faded enough to be archived."""
    root_of = roots(rows)
    stale = upkeep.find_findings(rows, seen, kinds=STALE)
    return {"stale": [_finding(finding, root_of) for finding in stale], "by_tier": _by_tier(rows)}


def _by_tier(rows: Rows) -> dict[str, int]:
    numbers: Counter[str] = Counter()
    for _, tier, number in activity.memories_by_gate_and_tier(rows):
        numbers[tier] += number
    return dict(sorted(numbers.items()))


@UPKEEP.add("csm_memory_archive", mutates=True)
def _archive(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True, by_person: bool = False) -> Json:
    """Archive faded memories; they stay searchable."""
    plan = upkeep.find_findings(rows, seen, kinds=STALE)
    return _carry_out(ctx, plan, dry_run=dry_run, by_person=by_person)


@UPKEEP.add("csm_memory_backfill_embeddings", mutates=True)
def _backfill(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True) -> Json:
    """Embed memories that were skipped."""
    plan = upkeep.find_findings(rows, seen, kinds=UNEMBEDDED)
    return _carry_out(ctx, plan, dry_run=dry_run)


@UPKEEP.add("csm_belief_knowledge")
def _knowledge(ctx: ToolContext, rows: Rows, seen: Places = None, limit: int = 1000) -> Json:
    """Show what is believed about a project or a user, by subject."""
    root_of, limit = roots(rows), max(limit, 1)
    beliefs = belief_subjects.group_beliefs(memories.list_memories(rows, projects=seen))
    by_kind = {kind: [belief for belief in beliefs if belief.kind == kind] for kind in belief_subjects.BELIEF_KINDS}
    return {
        "more": {kind: len(held) - limit for kind, held in by_kind.items() if len(held) > limit},
        "beliefs": [
            {
                "kind": belief.kind, "subject": belief.subject,
                **as_json(belief.memory, MEMORY, project=root_of.get(belief.memory.project_seq, ""), told=belief.turns),
                "sessions": belief.sessions, "also": [memory.id for memory in belief.others],
            }
            for held in by_kind.values()
            for belief in held[:limit]
        ],
    }  # fmt: skip


@UPKEEP.add("csm_memory_governance_report")
def _governance(ctx: ToolContext, rows: Rows) -> Json:
    """Check the invariants of memories."""
    broken = integrity.find_violations(rows, ctx.store.hash_key)
    return {
        "holds": not broken,
        "rules": [
            {"name": rule.name, "rule": rule.rule, "holds": rule.name not in broken, "broken_by": broken.get(rule.name, []),
             "try": rule.remedy if rule.name in broken else ""}
            for rule in integrity.INVARIANTS
        ],
        "candidates": candidates.counts(rows),
        "by_tier": _by_tier(rows),
    }  # fmt: skip


MAX_HABITS = 1_000
PROFILES = {"default": promotion.DEFAULT_PROFILE, "relaxed": promotion.RELAXED_PROFILE}
#: The origin of memories that a person promoted by relaxed thresholds: csmd neither changes nor withdraws them.
BY_PERSON = "promoted"
CANDIDATE = (
    "id kind status text reason confidence reinforcement contradicted gate category source project memory_ids created_at "
    "updated_at evidence"
)


@HABITS.add("csm_memory_packets")
def _packets(
    ctx: ToolContext, rows: Rows, seen: Places = None, asking: str = "", limit: int = 50, session: str = "", kind: str = "",
    since: str = "", until: str = "",
) -> Json:  # fmt: skip
    """List recent observations, with how the session went."""
    root_of = roots(rows)
    present.check_words({"kind": kind}, {"kind": get_args(PacketKind)})
    within = query.parse_limits(since, until, now=ctx.here(ctx.now()))
    ident = present.find_session(rows, session, asking).id if session else ""
    latest = packet_rows.latest_packets(
        rows, projects=seen, limit=between(limit, MAX_HABITS), session=ident, kind=kind, since=within.since,
        until=within.until,
    )  # fmt: skip
    names = "at kind subject outcome session_id project uuid state"
    return {"packets": [as_json(packet, names, project=root_of.get(packet.project_seq, "")) for packet in latest]}


def _candidate(candidate: Candidate, root_of: dict[int, str]) -> Json:
    return as_json(candidate, CANDIDATE, project=root_of.get(candidate.project_seq, ""))


@HABITS.add("csm_memory_candidate_report")
def _report(ctx: ToolContext, rows: Rows, seen: Places = None, limit: int = 200) -> Json:
    """Show what waits to become a memory, and why it waits."""
    root_of = roots(rows)
    waiting = candidates.waiting(rows, projects=seen, limit=between(limit, MAX_HABITS))
    plan = {
        action.candidate.id: action
        for action in promotion.plan_promotions(rows, projects=seen, profile=promotion.DEFAULT_PROFILE)
    }
    listed = [
        {**_candidate(row, root_of), "why": list(plan[row.id].reasons) if row.id in plan else []} for row in waiting
    ]
    return {"counts": candidates.counts(rows, projects=seen), "candidates": listed}


@HABITS.add("csm_belief_scan", mutates=True)
def _scan(ctx: ToolContext, rows: Rows) -> Json:
    """Count what recurs in sessions, in the background.

    The daemon starts now and this call does not wait: there may be many sessions.
    """
    if not ctx.config.settings.stages_candidates:
        raise CsmdError("observing is switched off (stages.candidates)", hint="csmd config set stages.candidates true")
    left = len(cursors.sessions_behind(rows, packets.STAGE))
    ctx.poke()
    return {"sessions_left": left, "counts": candidates.counts(rows, projects=None)}


@HABITS.add("csm_belief_scan_report")
def _scan_report(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """Count the candidates for beliefs by kind and status."""
    counts = candidates.counts(rows, projects=seen)
    return {
        "kinds": {
            kind: as_json(rule, "made_of authority promoted", counts=counts.get(kind, {}))
            for kind, rule in habits.KINDS.items()
        }
    }


@HABITS.add("csm_belief_promote", mutates=True)
def _promote(
    ctx: ToolContext, rows: Rows, seen: Places = None, profile: str = "default", apply: bool = False,
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Plan which candidates become memories, and do it with apply."""
    thresholds = PROFILES.get(profile)
    if thresholds is None:
        raise BadInput(f"a profile is default or relaxed, not {profile!r}")
    if profile == "relaxed" and apply and not by_person:
        raise CsmdError(
            "the relaxed thresholds are for a person to choose",
            hint="type `csmd pipeline promote --relaxed` in a terminal",
        )
    if apply and not by_person and not ctx.config.settings.stages_promote:
        raise CsmdError(
            "promotion is switched off", hint="type `csmd pipeline promote` in a terminal, or set stages.promote"
        )
    root_of = roots(rows)
    memory_ids: dict[str, str] = {}
    plan = promotion.plan_promotions(rows, projects=seen, profile=thresholds)

    def write(writing: Rows) -> dict[str, str]:
        # Planned again in the transaction, because candidates may have changed.
        fresh = promotion.plan_promotions(writing, projects=seen, profile=thresholds)
        origin = BY_PERSON if profile == "relaxed" else memories.INFERRED_ORIGIN
        return promotion.carry_out(writing, fresh, key=ctx.store.hash_key, now=ctx.now(), origin=origin)

    if apply:
        memory_ids = ctx.store.write(write)
        ctx.poke()
    return {
        "profile": asdict(thresholds),
        "applied": apply,
        "actions": [
            as_json(
                action, "step reasons memory_id candidate", memory_id=memory_ids.get(action.candidate.id, action.memory_id),
                candidate=_candidate(action.candidate, root_of),
            )
            for action in plan
        ],
    }  # fmt: skip
