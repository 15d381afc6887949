"""Tools on beliefs: duplicates, merges, archive, candidates, promotion, review."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict
from functools import partial
from typing import get_args

from csmd.errors import BadInput, CsmdError
from csmd.extraction import packets
from csmd.memory import belief_subjects, habits, merging, open_matters, promotion, review_answers, supersession, upkeep
from csmd.memory.duplicates import Finding
from csmd.recall import query, visibility
from csmd.store import (
    activity,
    belief_changes,
    candidates,
    cursors,
    fulltext,
    integrity,
    memories,
    packet_rows,
    projects,
)
from csmd.store.belief_changes import Answer
from csmd.store.sqlite import Rows
from csmd.text import display, tokens
from csmd.tools import present
from csmd.tools.declaration import Json, Places, ToolContext, Tools, between, leave_to_review, need_person, places
from csmd.tools.present import as_json, brief_memory, candidate_json, find_candidate, find_memory, memories_json, roots
from csmd.values import Candidate, Memory
from csmd.vocabulary import CandidateKind, PacketKind

UPKEEP = Tools()
HABITS = Tools()
REVIEW = Tools()

#: What a merge of all that is found merges; with what is only nearly the same.
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
        "do": upkeep.REPAIRS[finding.kind], "id": memory.id, "version": memory.version, "text": memory.text,
        "into": into.id if into else "", "into_text": into.text if into else "", "reason": finding.reason,
    }  # fmt: skip


@UPKEEP.add("csm_memory_candidate_generate", mutates=True)
def _generate(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True) -> Json:
    """Look for what is to be mended among memories, and put it into the queue."""
    queue = upkeep.generate(rows, seen, now=ctx.now())
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
    """What was done of a plan, or would be. It was made on a reader: hooks do not wait for it, and what has moved is left."""
    if dry_run:
        return {"dry_run": True, "actions": [_action(action) for action in plan], "left": []}
    by, key = "user" if by_person else upkeep.ASSISTANT, ctx.store.hash_key
    done, left = ctx.store.write(lambda rows: upkeep.apply(rows, plan, by=by, now=ctx.now(), key=key, as_said=as_said))
    ctx.poke()
    return {"dry_run": False, "actions": list(map(_action, done)), "left": list(map(_action, left))}


@UPKEEP.add("csm_memory_merge", mutates=True)
def _merge(
    ctx: ToolContext, rows: Rows, id_: str = "", into: str = "", near: bool = False, undo: str = "", seen: Places = None, asking: str = "", dry_run: bool = True, by_person: bool = False,
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
    around = {merged.project_seq: projects.everywhere(rows, merged.project_seq)}
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
    """Which memories have faded so far that they could be archived."""
    root_of = roots(rows)
    stale = upkeep.find_findings(rows, seen, kinds=STALE)
    return {"stale": [_finding(finding, root_of) for finding in stale], "by_tier": _by_tier(rows)}


def _by_tier(rows: Rows) -> dict[str, int]:
    numbers: Counter[str] = Counter()
    for _, tier, number in activity.memories_by(rows):
        numbers[tier] += number
    return dict(sorted(numbers.items()))


@UPKEEP.add("csm_memory_archive", mutates=True)
def _archive(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True, by_person: bool = False) -> Json:
    """Leave faded memories to explicit search."""
    plan = upkeep.find_findings(rows, seen, kinds=STALE)
    return _carry_out(ctx, plan, dry_run=dry_run, by_person=by_person)


@UPKEEP.add("csm_memory_backfill_embeddings", mutates=True)
def _backfill(ctx: ToolContext, rows: Rows, seen: Places = None, dry_run: bool = True) -> Json:
    """Have memories embedded that were passed by."""
    plan = upkeep.find_findings(rows, seen, kinds=UNEMBEDDED)
    return _carry_out(ctx, plan, dry_run=dry_run)


@UPKEEP.add("csm_belief_knowledge")
def _knowledge(ctx: ToolContext, rows: Rows, seen: Places = None, limit: int = 1000) -> Json:
    """What is held of a project or a user, by subject."""
    root_of, limit = roots(rows), max(limit, 1)
    beliefs = belief_subjects.group_beliefs(memories.list_memories(rows, projects=seen))
    by_kind = {kind: [belief for belief in beliefs if belief.kind == kind] for kind in belief_subjects.BELIEF_KINDS}
    return {
        "more": {kind: len(held) - limit for kind, held in by_kind.items() if len(held) > limit},
        "beliefs": [
            {
                "kind": belief.kind, "subject": belief.subject,
                **as_json(belief.memory, MEMORY, project=root_of.get(belief.memory.project_seq, ""), told=belief.turns),
                "sessions": belief.sessions, "also": [memory.id for memory in belief.also],
            }
            for held in by_kind.values()
            for belief in held[:limit]
        ],
    }  # fmt: skip


@UPKEEP.add("csm_memory_governance_report")
def _governance(ctx: ToolContext, rows: Rows) -> Json:
    """Whether the rules hold that have no exception."""
    broken = integrity.violations(rows, ctx.store.hash_key)
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


MOST_HABITS = 1_000
PROFILES = {"default": promotion.DEFAULT, "relaxed": promotion.RELAXED}
#: Of a relaxed promotion a person is the author: csmd neither changes nor withdraws what came of it.
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
    """List what was observed lately, with how the session went."""
    root_of = roots(rows)
    present.check_words({"kind": kind}, {"kind": get_args(PacketKind)})
    within = query.parse_limits(since, until, now=ctx.here(ctx.now()))
    ident = present.find_session(rows, session, asking).id if session else ""
    latest = packet_rows.latest_packets(
        rows, projects=seen, limit=between(limit, MOST_HABITS), session=ident, kind=kind, since=within.since,
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
    waiting = candidates.waiting(rows, projects=seen, limit=between(limit, MOST_HABITS))
    plan = {
        action.candidate.id: action
        for action in promotion.plan_promotions(rows, projects=seen, profile=promotion.DEFAULT)
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
        # What moved since is planned anew: a plan is only as old as its transaction.
        fresh = promotion.plan_promotions(writing, projects=seen, profile=thresholds)
        origin = BY_PERSON if profile == "relaxed" else memories.INFERRED
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


#: Most that is looked at to say how much waits.
MOST_WAITING = 1000
#: Memories that are offered as the one that takes another's place.
NEAR_IN_REVIEW = 3


@REVIEW.add("csm_review_list")
def _review_list(
    ctx: ToolContext, rows: Rows, id_: str = "", project: str = "", asking: str = "", limit: int = 50
) -> Json:
    """List what waits for a person."""
    wanted, asking = places(rows, project, asking), asking or project
    waiting = candidates.waiting(rows, projects=wanted, statuses=("needs_review",), limit=MOST_WAITING)
    waiting.sort(key=lambda candidate: (not candidate.contradicted, -candidate.confidence, candidate.seq))
    since = ctx.before(review_answers.NEW_DAYS * 86_400)
    unsure = belief_changes.unreviewed(rows, projects=wanted, below=review_answers.LOW, since=since, limit=MOST_WAITING)
    waiting = [candidate for candidate in waiting if candidate.id.startswith(id_) and not _is_over(rows, candidate)]
    if id_:
        unsure = [seq for seq, memory in memories.by_seqs(rows, unsure).items() if memory.id.startswith(id_)]
    limit = between(limit, MOST_WAITING)
    items = [_review_candidate(rows, candidate, asking) for candidate in waiting[:limit]]
    by_seq = memories.by_seqs(rows, unsure[: limit - len(items)])
    imports = review_answers.read_imports(rows, wanted, since=since)
    import_of = {ident: row.id for row in imports for ident in row.waiting}
    items += [
        {**_review_memory(rows, by_seq[seq], asking), "import": import_of.get(by_seq[seq].id, "")}
        for seq in unsure
        if seq in by_seq
    ]
    total = len(waiting) + len(unsure)
    elsewhere = 0 if total or not project or id_ else _review_list(ctx, rows, asking=asking, limit=1)["total"]
    return {
        "total": total,
        "elsewhere": elsewhere,
        "items": items,
        "imports": [
            as_json(row, "id source path at waiting", waiting=len(row.waiting))
            for row in imports
            if len(row.waiting) > 1
        ],
    }


@REVIEW.add("csm_review_import", mutates=True, person="answer what waits for one")
def _answer_import(
    ctx: ToolContext, rows: Rows, id_: str, verb: str, project: str = "", asking: str = ""
) -> Generator[None, None, Json]:
    """Keep or drop at once all that waits of an import, named by its id, its program or its path."""
    if verb not in review_answers.IMPORT_VERBS:
        raise BadInput(f"an import is answered with {' or '.join(review_answers.IMPORT_VERBS)}, not {verb!r}")
    since, at = ctx.before(review_answers.NEW_DAYS * 86_400), ctx.now()
    imports = review_answers.read_imports(rows, places(rows, project, asking or project), since=since)
    named = review_answers.find_import(imports, id_)
    if named is None:
        raise BadInput(f"nothing waits of an import {id_!r}", hint="`csmd review` lists the imports that wait")
    uuid = f"cli:{secrets.token_hex(8)}"
    reply = review_answers.ReviewAnswer(verb=verb, uuid=uuid, at=at, key=ctx.store.hash_key)
    answer = ""
    for begin in range(0, len(named.waiting), review_answers.AT_ONCE):
        part = named.waiting[begin : begin + review_answers.AT_ONCE]
        write = partial(review_answers.answer_some, idents=part, answer=reply, item=named.id)
        answer = ctx.store.write(write).id
        yield
    if verb == "drop":
        ctx.forget_lines()
    ctx.poke()
    return {
        "answer": answer, "id": named.id, "verb": verb, "made": "", "memories": len(named.waiting),
        "text": f"{display.amount(len(named.waiting), 'memory')} from {named.source}",
    }  # fmt: skip


def _is_over(rows: Rows, candidate: Candidate) -> bool:
    """Whether it asks about a memory that is replaced or gone by now."""
    if candidate.source != supersession.SOURCE:
        return False
    about = (memories.by_id(rows, ident) for ident in candidate.memory_ids)
    return any(memory is None or bool(memory.superseded_by) for memory in about)


def _review_candidate(rows: Rows, candidate: Candidate, asking: str) -> Json:
    value = candidate_json(rows, candidate, asking)
    about = review_answers.subject_of(
        candidate, len([memory for memory in value["memories"] if not memory["superseded_by"]])
    )
    return {
        **value,
        "title": review_answers.title(candidate),
        "about": about,
        "does": dict(review_answers.DOES[about]),
        "near": [],
    }


def _title(memory: Memory) -> str:
    if memory.origin != "model_saved":
        return "unsure"
    return "imported" if memory.authority == "external" else "saved by a model"


def _review_memory(rows: Rows, memory: Memory, asking: str) -> Json:
    return {
        **memories_json(rows, [memory])[0],
        "kind": "memory",
        "title": _title(memory),
        "about": "memory",
        "does": dict(review_answers.DOES["memory"]),
        "reason": review_answers.review_reason(memory),
        "version": memory.version,
        "memories": [],
        "evidence": [{**source, "against": False} for source in present.sources(rows, memory, asking)[:NEAR_IN_REVIEW]],
        "near": _near(rows, memory, asking),
    }


def _near(rows: Rows, memory: Memory, asking: str) -> list[Json]:
    """Memories of the same place in words like it: one of them may be what takes its place."""
    terms = tokens.query_terms(memory.text)
    hits = fulltext.text_hits(rows, "memory", terms, projects=[memory.project_seq], limit=NEAR_IN_REVIEW + 1)
    by_seq = memories.by_seqs(rows, [int(seq) for seq, _ in hits])
    others = [by_seq[int(seq)] for seq, _ in hits if int(seq) in by_seq]
    others = [other for other in others if other.id != memory.id and not other.superseded_by]
    others = [other for other in others if visibility.is_visible(rows, other.project_seq, asking=asking)]
    return [brief_memory(other) for other in others[:NEAR_IN_REVIEW]]


@REVIEW.add("csm_review_answer", mutates=True)
def _answer(
    ctx: ToolContext, rows: Rows, id_: str, verb: str, text: str = "", other: str = "", version: int = 0, asking: str = "",
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Answer one thing that waits for a person, or about any memory."""
    name = next((answer for answer in review_answers.DOES["memory"] if answer == verb), None)
    if name is None:
        raise BadInput(f"an answer is {', '.join(review_answers.DOES['memory'])}, not {verb!r}")
    need_person(by_person, "answer what waits for one")
    return _carry_out_answer(
        ctx, id_, asking, name, present.normalise_typed_text(text) if name == "edit" else "", other, version
    )


@REVIEW.add("csm_review_undo", mutates=True, person="take an answer back")
def _review_undo(ctx: ToolContext, rows: Rows, id_: str = "", asking: str = "") -> Generator[None, None, Json]:
    """Take back an answer, an edit, a replacement or what was called done: the last, or by its id or that of its memory."""
    seen = visibility.find_visible_places(rows, asking=asking)

    key = ctx.store.hash_key
    chosen = belief_changes.last_answer(rows, projects=seen, ident=id_)
    if chosen is None:
        raise CsmdError("there is nothing to take back", hint="`csmd show ID` tells what was done to a memory")

    def take_back(writing: Rows, ident: str) -> tuple[Answer, str]:
        answer = belief_changes.last_answer(writing, projects=None, ident=ident)
        if answer is None:
            raise CsmdError(f"{ident} was purged since", hint="`csmd review` shows what waits")
        if answer.answer == belief_changes.DONE:
            return answer, open_matters.reopen(writing, answer, key=key, now=ctx.now())
        memory = memories.by_id(writing, answer.item)
        touched = review_answers.undo(writing, answer, key=key, at=ctx.now())
        return answer, memory.text if memory else next((before.text for before in touched if before.text), "")

    together = review_answers.answers_beside(rows, chosen) or [chosen]
    refused: CsmdError | None = None
    for part in together[1:]:
        try:
            ctx.store.write(partial(take_back, ident=part.id))
        except CsmdError as error:  # of something that has changed since; the rest of the import is taken back
            refused = error
        yield
    answer, about = ctx.store.write(partial(take_back, ident=together[0].id))
    ctx.poke()
    if refused is not None:
        raise refused
    is_import = answer.item.startswith(review_answers.IMPORT_PREFIX)
    return as_json(answer, "answer=id id=item verb=answer", text="" if is_import else about, undone=True)


@REVIEW.add("csm_memory_pin", mutates=True)
def _pin(ctx: ToolContext, rows: Rows, id_: str, undo: bool = False, asking: str = "", by_person: bool = False) -> Json:
    """Pin a memory, so that it does not fade; undo unpins it."""
    verb: review_answers.Verb = "unpin" if undo else "pin"
    need_person(by_person, f"{verb} a memory")
    memory = find_memory(rows, id_, asking)
    if memory.pinned != undo:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": verb}
    return {**_carry_out_answer(ctx, memory.id, asking, verb, "", "", memory.version), "changed": True}


def _carry_out_answer(
    ctx: ToolContext, ident: str, asking: str, verb: review_answers.Verb, text: str, other: str, version: int
) -> Json:
    """Does it and notes it, in one transaction; refused where what it is about has changed since it was shown."""
    key, at = ctx.store.hash_key, ctx.now()

    def write(rows: Rows) -> tuple[Answer, str]:
        find = find_candidate if ident.startswith("c") else find_memory
        item = find(rows, ident, asking)
        if version and item.version != version:
            raise CsmdError(f"{item.id} has changed meanwhile; nothing was done", hint=f"csmd show {item.id}")
        replacing = find_memory(rows, other, asking) if other else None
        uuid = f"cli:{secrets.token_hex(8)}"
        reply = review_answers.ReviewAnswer(verb=verb, uuid=uuid, at=at, key=key, text=text, other=replacing)
        if isinstance(item, Memory):
            return review_answers.of_memory(rows, item, reply), item.text
        if item.status not in candidates.WAITING:
            raise CsmdError(f"{item.id} is settled already: {item.status}", hint="csmd review")
        return review_answers.of_candidate(rows, item, reply), item.text

    answer, about = ctx.store.write(write)
    if verb == "drop":
        ctx.forget_lines()
    ctx.poke()
    return {"answer": answer.id, "id": answer.item, "verb": verb, "made": answer.made, "text": text or about}


@REVIEW.add("csm_memory_edit", mutates=True, person="change the wording of a memory")
def _edit(ctx: ToolContext, rows: Rows, id_: str, text: str, version: int = 0, asking: str = "") -> Json:
    """Put a person's wording in a memory's place."""
    memory = find_memory(rows, id_, asking)
    if not text.strip() or display.squeeze(text) == memory.text:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": "edit"}
    done = _carry_out_answer(ctx, memory.id, asking, "edit", present.normalise_typed_text(text), "", version)
    return {**done, "changed": True}
