"""Tool that shows one memory with its sources, its confidence and its history."""

from __future__ import annotations

import math
from dataclasses import asdict

from csmd.knowledge import Link, Memory
from csmd.memory import confidence, supersession
from csmd.recall import brief, memory_neighbours, visibility
from csmd.recall.visibility import is_visible
from csmd.store import belief_changes, failures, memories, memory_links, projects, receipts, search, topics
from csmd.store.sqlite import Rows
from csmd.tools.declaration import Json, ToolContext, Tools
from csmd.tools.present import as_json, brief_memory_json, find_memory, memories_json, sources_json
from csmd.vocabulary import NEVER, OWNER

TOOLS = Tools()
#: Injections of a memory that are shown with it.
MAX_INJECTIONS = 3
#: Memories about the same subject that are shown with a memory.
MAX_SAME_TOPIC = 3


def read_failure_notes(rows: Rows, memory: Memory, asking: str) -> Json:
    """Returns reported symptoms of an error and reasons against a memory, as far as the caller may see them."""
    reported = failures.list_symptoms(rows, [memory.seq]).get(memory.seq, [])
    refutations = failures.list_refutations(rows, memory.seq)
    turns = search.turns_of_uuids(rows, [uuid for uuid, *_ in [*reported, *refutations]])
    project_of = {seq: turn.project_seq for seq, turn in search.turns_by_seq(rows, list(turns.values())).items()}
    seen = {
        uuid
        for uuid, seq in turns.items()
        if seq in project_of and is_visible(rows, project_of[seq], asking=asking)
    }  # fmt: skip
    reasons = {reason: (uuid, at) for uuid, at, reason in refutations if uuid in seen}  # the latest of each reason
    return {
        "symptoms": [{"uuid": uuid, "at": at, "text": text} for uuid, at, text in reported if uuid in seen],
        "refuted": [{"uuid": uuid, "at": at, "reason": reason} for reason, (uuid, at) in reasons.items()],
    }


def _start_json(rows: Rows, memory: Memory, asking: str) -> Json:
    """Returns whether the next session's start shows a memory, why, and for how many sessions (None: no limit)."""
    scopes = [memory.project_seq] if asking in ("", OWNER) else visibility.scopes(rows, asking)
    start = brief.worth_at_start(rows, memory, scopes)
    sessions_left = None if math.isinf(start.left) else math.floor(start.left)
    return {"told": start.value > 0, "why": start.why, "sessions_left": sessions_left}


@TOOLS.add("csm_memory_show")
def _show_memory(
    ctx: ToolContext, rows: Rows, id_: str, asking: str = "", start: bool = True, only_fading: bool = False
) -> Json:
    """Show one memory: its sources, the evidence for and against it, and its confidence.

    Without `start` its rank at sessions' starts is left out, which compares it with all other memories. With
    `only_fading` the answer is the memory, that rank, and how long prompts are shown it.
    """
    memory = find_memory(rows, id_, asking)
    today = projects.active_day(rows, memory.project_seq)
    days = {name: getattr(memory, name) for name in ("hot_until", "warm_until", "archive_at")}
    cooling = {"today": today, **{name: None if day >= NEVER else day for name, day in days.items()}}
    if only_fading:
        return {**memories_json(rows, [memory])[0], "start": _start_json(rows, memory, asking), "cools": cooling}
    changes = belief_changes.list_changes(rows, memory.id)
    confirmed_on = projects.active_day(rows, memory.project_seq, on=memory.confirmed_at[:10])
    lowered = _sum_lost_confidence(changes)
    factors = confidence.explain_confidence(memory, today=today, confirmed_on=confirmed_on, lowered=lowered)
    injections, times = receipts.list_injections_of(rows, memory.id, limit=MAX_INJECTIONS)
    return {
        **memories_json(rows, [memory])[0], "version": memory.version, "sources": sources_json(rows, memory, asking),
        "topics": [asdict(topic) for topic in topics.topics_of_memories(rows, [memory.seq]).get(memory.seq, [])],
        "beside": _list_same_topic(rows, memory, asking),
        "links": [
            row for link in memory_links.list_links(rows, memory.id) if (row := _link_json(rows, link, memory, asking))
        ],
        "sure": {
            "today": round(sum(factor.effect for factor in factors), 4),
            "factors": [{**asdict(factor), "effect": round(factor.effect, 4)} for factor in factors],
        },
        "start": _start_json(rows, memory, asking) if start else None, "cools": cooling,
        "told": {
            "times": times,
            "last": [
                as_json(receipt, "receipt=id session_id event at")
                for receipt in injections
                if is_visible(rows, receipt.project_seq, asking=asking)
            ],
        },
        "superseded": replacement_json(rows, memory, asking), "changes": [_change_json(change) for change in changes],
        **read_failure_notes(rows, memory, asking),
    }  # fmt: skip


def _list_same_topic(rows: Rows, memory: Memory, asking: str) -> list[Json]:
    """Returns current memories with the most similar topics that the caller may see."""
    seen = visibility.find_visible_places(rows, asking=asking)
    seqs = memory_neighbours.find_same_topic(rows, memory.seq, projects=seen)
    others = memories.by_seqs(rows, seqs)
    return [brief_memory_json(others[seq]) for seq in seqs if not others[seq].superseded_by][:MAX_SAME_TOPIC]


def _sum_lost_confidence(changes: list[belief_changes.Change]) -> float:
    """Returns the confidence that a memory has lost to contradictions that were not undone."""
    lost = 0.0
    for change in changes:
        before, after = map(belief_changes.confidence_in_state, (change.before, change.after))
        is_effective = change.change == belief_changes.SUPERSEDED and not change.undone_at
        if is_effective and before is not None and after is not None:
            lost += max(0.0, before - after)
    return round(lost, 4)


def _change_json(change: belief_changes.Change) -> Json:
    """Returns a change of a memory: confidence before and after (0 to 1, None if unchanged), reason, and author."""
    return as_json(
        change, "change sure_before sure_after superseded_by reason by at undone_at",
        sure_before=belief_changes.confidence_in_state(change.before), sure_after=belief_changes.confidence_in_state(change.after),
        superseded_by=belief_changes.parse_state(change.after).get("superseded_by", ""),
    )  # fmt: skip


def replacement_json(rows: Rows, memory: Memory, asking: str) -> Json:
    """Returns the replacement of a memory, its time, reason and author; {} if the memory is current."""
    new = memories.by_id(rows, memory.superseded_by) if memory.superseded_by else None
    if new is None or not is_visible(rows, new.project_seq, asking=asking):
        return {}
    change = belief_changes.latest_change(rows, memory.id)
    at, reason, by = (change.at, change.reason, change.by) if change else ("", "", "")
    return {"id": new.id, "text": new.text, "at": at, "reason": reason, "decided_by": by}


def _link_json(rows: Rows, link: Link, memory: Memory, asking: str) -> Json | None:
    """Returns a link with the memory at its other end; None if that is behind a wall."""
    other = memories.by_id(rows, link.to_id if link.from_id == memory.id else link.from_id)
    if other is None or not is_visible(rows, other.project_seq, asking=asking):
        return None
    return {**asdict(link), "other": brief_memory_json(other)}


def rest_json(rows: Rows, memory_id: str) -> Json | None:
    """Returns the memory with the remaining text of one that was replaced in part; None if there is no such memory."""
    rest = supersession.find_rest(rows, memory_id)
    return as_json(rest, "id text") if rest else None
