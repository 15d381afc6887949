"""What is believed and how it is ruled: duplicates, merges, candidates, what waits for a person."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from csmd.daemon.clock import iso_before, now_iso
from csmd.errors import BadInput, CsmdError
from csmd.extraction import packets
from csmd.memory import habits, review_answers, supersession, upkeep
from csmd.memory.upkeep import Action, Finding
from csmd.model import Candidate, CandidateKind, Memory, Packet
from csmd.recall import visibility as recall
from csmd.store import activity, before_images, candidates, cursors, integrity, memories, projects, search
from csmd.store.before_images import Answer
from csmd.store.sqlite import Rows
from csmd.text import display, tokens
from csmd.tools import memories as showing
from csmd.tools.memories import memory_json, one, roots, worded
from csmd.tools.memories import one as named
from csmd.tools.registry import ASKING, PLACE, REQUIRED, Params, Tool, ToolContext, places

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


def _generate(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    made = upkeep.generate(rows, places(rows, params), now=now_iso())
    if not params["dry_run"]:
        tools.store.write(lambda writing: upkeep.enqueue(writing, made, now=now_iso()))
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


def _detect(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    roots = _roots(rows)
    found = upkeep.alike_in(rows, places(rows, params))
    return {"duplicates": [_finding(finding, roots) for finding in found]}


def _mended(tools: ToolContext, params: Params, plan: Sequence[Action], *, as_said: bool = False) -> dict[str, Any]:
    """What was done of a plan, or would be. It was made on a reader: hooks do not wait for it, and what has moved is left."""
    by = "user" if params.get("by_person") else "assistant"
    if params["dry_run"]:
        return {"dry_run": True, "actions": [_action(action) for action in plan], "left": []}
    done, left = tools.store.write(
        lambda rows: upkeep.apply(rows, plan, by=by, now=now_iso(), key=tools.store.hash_key, as_said=as_said)
    )
    tools.context.poke()
    return {
        "dry_run": False,
        "actions": [_action(action) for action in done],
        "left": [_action(action) for action in left],
    }


def _merge(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if params["undo"]:
        return _undo(tools, rows, params)
    if bool(params["id"]) != bool(params["into"]):
        raise BadInput(
            "which memory is to be merged into which other?", hint="name both, or neither for all duplicates"
        )
    if params["near"] and not params["by_person"] and not params["dry_run"]:
        raise BadInput("that memories nearly the same are one, a person says", hint="`csmd merge --near` in a terminal")
    if not params["id"]:
        found = upkeep.alike_in(rows, places(rows, params))
        return _mended(tools, params, upkeep.actions(found, kinds=NEAR if params["near"] else SAME))
    merged, into = (named(rows, params[name], asking=params[ASKING]) for name in ("id", "into"))
    around = {merged.project_seq: projects.everywhere(rows, merged.project_seq)}
    plan = [upkeep.planned_merge(merged, into, everywhere=around, by_person=params["by_person"])]
    return _mended(tools, params, plan, as_said=params["by_person"])


def _undo(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    ident = named(rows, params["undo"], asking=params[ASKING]).id

    def write(writing: Rows) -> tuple[Memory, Memory]:
        memory = named(writing, ident, asking=params[ASKING])
        return memory, upkeep.undo(writing, memory, now=now_iso(), by_person=params["by_person"])

    if params["dry_run"]:
        memory = named(rows, ident, asking=params[ASKING])
        return {"dry_run": True, "undone": ident, "text": memory.text, "from": memory.superseded_by}
    memory, into = tools.store.write(write)
    return {"dry_run": False, "undone": memory.id, "text": memory.text, "from": into.id if into.id != memory.id else ""}


def _ageing(tools: ToolContext, rows: Rows, params: Params) -> list[Finding]:
    found = upkeep.ailing_in(rows, places(rows, params))
    return [finding for finding in found if finding.kind == "stale"]


def _archive_report(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
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


def _archive(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return _mended(tools, params, upkeep.actions(_ageing(tools, rows, params), kinds=STALE))


def _backfill(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return _mended(
        tools,
        params,
        upkeep.actions(upkeep.ailing_in(rows, places(rows, params)), kinds=UNEMBEDDED),
    )


def _beliefs(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    roots = _roots(rows)
    found = upkeep.beliefs(memories.listing(rows, projects=places(rows, params)))
    by_kind = {kind: [one for one in found if one.kind == kind] for kind in upkeep.BELIEF_KINDS}
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


def _governance(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    broken = integrity.broken(rows, tools.store.hash_key)
    return {
        "holds": not broken,
        "rules": [
            {"name": one.name, "rule": one.rule, "holds": one.name not in broken, "broken_by": broken.get(one.name, []),
             "try": one.remedy if one.name in broken else ""}
            for one in integrity.INVARIANTS
        ],
        "candidates": candidates.counts(rows),
        "by_tier": _by_tier(rows),
    }  # fmt: skip


DRY = {"dry_run": (bool, True), "by_person": (bool, False)}

BELIEFS_TOOLS: dict[str, Tool] = {
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


MOST_HABITS = 1_000
PROFILES = {"default": habits.DEFAULT, "relaxed": habits.RELAXED}
#: Of a relaxed promotion a person is the author: csmd neither changes nor withdraws what came of it.
BY_PERSON = "promoted"


def _packets(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    found = candidates.latest_packets(
        rows, projects=places(rows, params), limit=min(max(params["limit"], 1), MOST_HABITS)
    )
    roots = _roots(rows)
    return {"packets": [_packet_json(one, roots) for one in found]}


def _packet_json(one: Packet, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "at": one.at, "kind": one.kind, "subject": one.subject, "outcome": one.outcome, "session_id": one.session_id,
        "project": roots.get(one.project_seq, ""), "uuid": one.uuid, "state": asdict(one.state),
    }  # fmt: skip


def _report(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    wanted = places(rows, params)
    found = candidates.waiting(rows, projects=wanted, limit=min(max(params["limit"], 1), MOST_HABITS))
    plan = {action.candidate.id: action for action in habits.look(rows, projects=wanted, profile=habits.DEFAULT)}
    roots, listed = _roots(rows), []
    for candidate in found:
        action = plan.get(candidate.id)
        listed.append({**_json(candidate, roots), "why": list(action.reasons) if action else []})
    return {"counts": _counts(rows, wanted), "candidates": listed}


def _scan_report(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    found = _counts(rows, places(rows, params))
    return {
        "kinds": {
            kind: {"made_of": rule.made_of, "authority": rule.authority, "promoted": rule.promoted, "counts": found.get(kind, {})}
            for kind, rule in habits.KINDS.items()
        }
    }  # fmt: skip


def _scan(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    """Has the steward look now: a past may be long, and somebody waits for an answer."""
    if not tools.config.settings.stages_candidates:
        raise CsmdError("observing is switched off (stages.candidates)", hint="csmd config set stages.candidates true")
    left = len(cursors.sessions_behind(rows, packets.STAGE))
    tools.context.poke()
    return {"sessions_left": left, "counts": _counts(rows, None)}


def _promote(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    profile = PROFILES.get(params["profile"])
    if profile is None:
        raise BadInput(f"a profile is default or relaxed, not {params['profile']!r}")
    if params["profile"] == "relaxed" and params["apply"] and not params["by_person"]:
        raise CsmdError(
            "the relaxed thresholds are for a person to choose", hint="type `csmd promote --relaxed` in a terminal"
        )
    if params["apply"] and not params["by_person"] and not tools.config.settings.stages_promote:
        raise CsmdError("promotion is switched off", hint="type `csmd promote` in a terminal, or set stages.promote")
    wanted, now, key = places(rows, params), now_iso(), tools.store.hash_key
    made: dict[str, str] = {}
    plan = habits.look(rows, projects=wanted, profile=profile)
    if params["apply"]:
        origin = BY_PERSON if params["profile"] == "relaxed" else memories.INFERRED
        made = tools.store.write(
            lambda writing: habits.carry_out(
                writing,
                # What moved since is planned anew: a plan is only as old as its transaction.
                habits.look(writing, projects=wanted, profile=profile),
                key=key,
                now=now,
                origin=origin,
            )
        )
        tools.context.poke()
    roots = _roots(rows)
    return {
        "profile": asdict(profile),
        "applied": params["apply"],
        "actions": [
            {
                "step": action.step, "reasons": list(action.reasons),
                "memory_id": made.get(action.candidate.id, action.memory_id), "candidate": _json(action.candidate, roots),
            }
            for action in plan
        ],
    }  # fmt: skip


def _json(one: Candidate, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "id": one.id, "kind": one.kind, "status": one.status, "text": one.text, "reason": one.reason,
        "confidence": one.confidence, "reinforcement": one.reinforcement, "contradicted": one.contradicted,
        "gate": one.gate, "category": one.category, "source": one.source, "project": roots.get(one.project_seq, ""),
        "memory_ids": list(one.memory_ids), "created_at": one.created_at, "updated_at": one.updated_at,
        "evidence": [asdict(source) for source in one.evidence],
    }  # fmt: skip


def _counts(rows: Rows, wanted: list[int] | None) -> dict[str, dict[str, int]]:
    return candidates.counts(rows, projects=wanted)


HABITS_TOOLS: dict[str, Tool] = {
    "csm_memory_packets": Tool(
        summary="List what was observed lately, with how the session went", mutates=False, run=_packets,
        parameters={**PLACE, "limit": (int, 50)},
    ),
    "csm_memory_candidate_report": Tool(
        summary="Show what waits to become a memory, and why it waits", mutates=False, run=_report,
        parameters={**PLACE, "limit": (int, 200)},
    ),
    "csm_belief_scan": Tool(
        summary="Have what recurs in sessions counted, in the background", mutates=True, run=_scan, parameters={},
    ),
    "csm_belief_scan_report": Tool(
        summary="Count the candidates for beliefs by kind and status", mutates=False, run=_scan_report, parameters=PLACE,
    ),
    "csm_belief_promote": Tool(
        summary="Plan which candidates become memories, and do it with apply", mutates=True, run=_promote,
        parameters={**PLACE, "profile": (str, "default"), "apply": (bool, False), "by_person": (bool, False)},
    ),
}  # fmt: skip


#: Most that is looked at to say how much waits.
MOST_WAITING = 1000
#: Memories that are offered as the one that takes another's place.
NEAR_IN_REVIEW = 3


def _list(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    wanted = places(rows, params)
    asking = params[ASKING] or params["project"]
    waiting = candidates.waiting(rows, projects=wanted, statuses=("needs_review",), limit=MOST_WAITING)
    waiting.sort(key=lambda found: (not found.contradicted, -found.confidence, found.seq))
    unsure = before_images.unreviewed(
        rows,
        projects=wanted,
        below=review_answers.LOW,
        since=iso_before(review_answers.NEW_DAYS * 86_400),
        limit=MOST_WAITING,
    )
    waiting = [found for found in waiting if found.id.startswith(params["id"]) and not _is_over(rows, found)]
    if params["id"]:
        unsure = [seq for seq, memory in memories.by_seqs(rows, unsure).items() if memory.id.startswith(params["id"])]
    limit = min(max(params["limit"], 1), MOST_WAITING)
    items = [_candidate(rows, found, asking) for found in waiting[:limit]]
    known = memories.by_seqs(rows, unsure[: limit - len(items)])
    items += [_review_memory(rows, known[seq], asking) for seq in unsure if seq in known]
    return {"total": len(waiting) + len(unsure), "items": items}


def _is_over(rows: Rows, found: Candidate) -> bool:
    """Whether it asks about a memory that is replaced or gone by now."""
    if found.source != supersession.SOURCE:
        return False
    known = (memories.by_id(rows, ident) for ident in found.memory_ids)
    return any(one is None or bool(one.superseded_by) for one in known)


def _candidate(rows: Rows, found: Candidate, asking: str) -> dict[str, Any]:
    value = showing.candidate_json(rows, found, asking=asking)
    alive = [memory for memory in value["memories"] if not memory["superseded_by"]]
    about = review_answers.asks_about(found, len(alive))
    return {
        **value,
        "title": review_answers.title(found),
        "about": about,
        "does": dict(review_answers.DOES[about]),
        "near": [],
    }


def _review_memory(rows: Rows, memory: Memory, asking: str) -> dict[str, Any]:
    today = projects.active_day(rows, memory.project_seq)
    return {
        **memory_json(memory, today=today, root=roots(rows).get(memory.project_seq, "")),
        "kind": "memory",
        "title": "saved by a model" if memory.origin == "model_saved" else "unsure",
        "about": "memory",
        "does": dict(review_answers.DOES["memory"]),
        "reason": review_answers.why_shown(memory),
        "version": memory.version,
        "memories": [],
        "evidence": [
            {**source, "against": False} for source in showing.sources(rows, memory, asking=asking)[:NEAR_IN_REVIEW]
        ],
        "near": _near(rows, memory, asking),
    }


def _near(rows: Rows, memory: Memory, asking: str) -> list[dict[str, Any]]:
    """Memories of the same place in words like it: one of them may be what takes its place."""
    terms = tokens.query_terms(memory.text)
    hits = search.text_hits(rows, "memory", terms, projects=[memory.project_seq], limit=NEAR_IN_REVIEW + 1)
    found = memories.by_seqs(rows, [int(seq) for seq, _ in hits])
    near = [found[int(seq)] for seq, _ in hits if int(seq) in found]
    return [
        showing.told_briefly(other)
        for other in near
        if other.id != memory.id and not other.superseded_by and recall.is_seen(rows, other.project_seq, asking=asking)
    ][:NEAR_IN_REVIEW]


def _answer(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    verb = _verb(params["verb"])
    _by_person(params, "answer what waits for one")
    said = worded(params["text"]) if verb == "edit" else ""
    return _carried_out(tools, params, verb, said)


def _edit(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _by_person(params, "change the wording of a memory")
    memory = one(rows, params["id"], asking=params[ASKING])
    if not params["text"].strip() or display.squeeze(params["text"]) == memory.text:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": "edit"}
    return {
        **_carried_out(tools, {**params, "id": memory.id, "other": ""}, "edit", worded(params["text"])),
        "changed": True,
    }


def _pin(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    verb: review_answers.Verb = "unpin" if params["undo"] else "pin"
    _by_person(params, f"{verb} a memory")
    memory = one(rows, params["id"], asking=params[ASKING])
    if memory.pinned != params["undo"]:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": verb}
    asked = {**params, "id": memory.id, "other": "", "version": memory.version}
    return {**_carried_out(tools, asked, verb, ""), "changed": True}


def _carried_out(tools: ToolContext, params: Params, verb: review_answers.Verb, said: str) -> dict[str, Any]:
    """Does it and notes it, in one transaction; refused where what it is about has changed since it was shown."""
    key, at, asking = tools.store.hash_key, now_iso(), params[ASKING]

    def write(rows: Rows) -> tuple[Answer, str]:
        item = _item(rows, params["id"], asking=asking)
        if params["version"] and item.version != params["version"]:
            raise CsmdError(f"{item.id} has changed meanwhile; nothing was done", hint=f"csmd show {item.id}")
        other = one(rows, params["other"], asking=asking) if params["other"] else None
        asked = review_answers.Asked(
            verb=verb, uuid=f"cli:{secrets.token_hex(8)}", at=at, key=key, text=said, other=other
        )
        if isinstance(item, Memory):
            return review_answers.of_memory(rows, item, asked), item.text
        if item.status not in candidates.WAITING:
            raise CsmdError(f"{item.id} is settled already: {item.status}", hint="csmd review")
        return review_answers.of_candidate(rows, item, asked), item.text

    answer, about = tools.store.write(write)
    if verb == "drop":
        tools.edited.forget()
    tools.context.poke()
    return {"answer": answer.id, "id": answer.item, "verb": verb, "made": answer.made, "text": said or about}


def _item(rows: Rows, ident: str, *, asking: str) -> Memory | Candidate:
    if ident.startswith("c"):
        return showing.find_candidate(rows, ident, asking=asking)
    return one(rows, ident, asking=asking)


def _review_undo(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _by_person(params, "take an answer back")
    seen = recall.seen(rows, asking=params[ASKING])

    def write(writing: Rows) -> tuple[Answer, str]:
        answer = before_images.last_answer(writing, projects=seen, ident=params["id"])
        if answer is None:
            raise CsmdError("there is no answer to take back", hint="`csmd show ID` tells what was done to a memory")
        touched = review_answers.undo(writing, answer, key=tools.store.hash_key, at=now_iso())
        return answer, next((found.text for found in touched if found.text), "")

    answer, about = tools.store.write(write)
    tools.context.poke()
    return {"answer": answer.id, "id": answer.item, "verb": answer.answer, "text": about, "undone": True}


def _verb(typed: str) -> review_answers.Verb:
    for verb in review_answers.DOES["memory"]:
        if verb == typed:
            return verb
    raise BadInput(f"an answer is {', '.join(review_answers.DOES['memory'])}, not {typed!r}")


def _by_person(params: Params, what: str) -> None:
    if not params["by_person"]:
        raise CsmdError(f"only a person at a terminal can {what}", hint="type it in a terminal")


REVIEW_TOOLS: dict[str, Tool] = {
    "csm_review_list": Tool(
        summary="List what waits for a person", mutates=False, run=_list, parameters={"id": (str, ""), **PLACE, "limit": (int, 50)}
    ),
    "csm_review_answer": Tool(
        summary="Answer one thing that waits for a person, or about any memory", mutates=True, run=_answer,
        parameters={"id": (str, REQUIRED), "verb": (str, REQUIRED), "text": (str, ""), "other": (str, ""),
                    "version": (int, 0), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_review_undo": Tool(
        summary="Take an answer or an edit back, the last one by default", mutates=True, run=_review_undo,
        parameters={"id": (str, ""), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_memory_pin": Tool(
        summary="Pin a memory, so that it does not fade; undo unpins it", mutates=True, run=_pin,
        parameters={"id": (str, REQUIRED), "undo": (bool, False), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_memory_edit": Tool(
        summary="Put a person's wording in a memory's place", mutates=True, run=_edit,
        parameters={"id": (str, REQUIRED), "text": (str, REQUIRED), "version": (int, 0), ASKING: (str, ""),
                    "by_person": (bool, False)},
    ),
}  # fmt: skip
