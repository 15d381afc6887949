"""One thing with all that is known of it: a memory, a candidate, where it was said and what stands around it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from csmd import text
from csmd.daemon.answers.memories import memory_json, one, roots
from csmd.daemon.tool import ASKING, REQUIRED, Params, Tool, ToolContext, meant
from csmd.errors import BadInput
from csmd.memory import confidence, review
from csmd.model import NEVER, Candidate, Link, Memory
from csmd.recall import graph
from csmd.recall import visibility as recall
from csmd.store import belief_changes, candidates, failures, memories, projects, receipts, search, topics
from csmd.store.search import TurnRow
from csmd.store.sqlite import Rows

#: Turns on each side of the one that states a memory, and characters of each.
AROUND, AROUND_CHARACTERS = 2, 240
PASSAGE = 600
TELLINGS = 3
#: Memories about the same that are shown beside one.
BESIDE = 3


def gotcha_json(rows: Rows, memory: Memory, *, asking: str) -> dict[str, Any]:
    """In whose words a memory was asked for, and what was said against it, as far as who asks may see it."""
    reported = failures.symptoms_of(rows, [memory.seq]).get(memory.seq, [])
    against = failures.refutations_of(rows, memory.seq)
    turns = search.turns_of_uuids(rows, [uuid for uuid, *_ in [*reported, *against]])
    places = {seq: turn.project_seq for seq, turn in search.turns_by_seq(rows, list(turns.values())).items()}
    seen = {uuid for uuid, seq in turns.items() if seq in places and recall.is_seen(rows, places[seq], asking=asking)}
    reasons = {reason: (uuid, at) for uuid, at, reason in against if uuid in seen}  # of each the last time
    return {
        "symptoms": [{"uuid": uuid, "at": at, "text": said} for uuid, at, said in reported if uuid in seen],
        "refuted": [{"uuid": uuid, "at": at, "reason": reason} for reason, (uuid, at) in reasons.items()],
    }


def _memory(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    asking = params[ASKING]
    memory = one(rows, params["id"], asking=asking)
    today = projects.active_day(rows, memory.project_seq)
    changes = belief_changes.changes_of(rows, memory.id)
    lowered = _lowered(changes)
    confirmed_on = projects.active_day(rows, memory.project_seq, on=memory.confirmed_at[:10])
    factors = confidence.factors(memory, today=today, confirmed_on=confirmed_on, lowered=lowered)
    told, times = receipts.telling(rows, memory.id, limit=TELLINGS)
    return {
        **memory_json(memory, today=today, root=roots(rows).get(memory.project_seq, "")),
        "version": memory.version,
        "sources": sources(rows, memory, asking=asking),
        "topics": [asdict(one) for one in topics.of_memories(rows, [memory.seq]).get(memory.seq, [])],
        "beside": _beside(rows, memory, asking=asking),
        "links": [found for link in memories.links_of(rows, memory.id) if (found := _link(rows, link, memory, asking))],
        "sure": {
            "today": round(sum(one.effect for one in factors), 4),
            "factors": [{**asdict(factor), "effect": round(factor.effect, 4)} for factor in factors],
        },
        "cools": {
            "today": today,
            **{
                name: None if day >= NEVER else day
                for name, day in (
                    ("hot_until", memory.hot_until),
                    ("warm_until", memory.warm_until),
                    ("archive_at", memory.archive_at),
                )
            },
        },
        "told": {
            "times": times,
            "last": [
                {"receipt": one.id, "session_id": one.session_id, "event": one.event, "at": one.at}
                for one in told
                if recall.is_seen(rows, one.project_seq, asking=asking)
            ],
        },
        "superseded": _superseded(rows, memory, asking=asking),
        "changes": [_change(change) for change in changes],
        **gotcha_json(rows, memory, asking=asking),
    }


def _beside(rows: Rows, memory: Memory, *, asking: str) -> list[dict[str, Any]]:
    """The memories nearest by their topics that hold and may be seen; what is linked is told with its link."""
    seqs = graph.about_the_same(rows, memory.seq, projects=recall.seen(rows, asking=asking))
    others = memories.by_seqs(rows, seqs)
    return [brief(others[seq]) for seq in seqs if not others[seq].superseded_by][:BESIDE]


def _lowered(changes: list[belief_changes.Change]) -> float:
    """What contradictions that stand have taken of a memory's confidence."""
    taken = 0.0
    for change in changes:
        before, after = belief_changes.sureness(change.before), belief_changes.sureness(change.after)
        if (
            change.change == belief_changes.SUPERSEDED
            and not change.undone_at
            and before is not None
            and after is not None
        ):
            taken += max(0.0, before - after)
    return round(taken, 4)


def _change(change: belief_changes.Change) -> dict[str, Any]:
    """One change as it is told: how sure it was before and after (0-1, None where that is no part of it), and by what."""
    return {
        "change": change.change,
        "sure_before": belief_changes.sureness(change.before),
        "sure_after": belief_changes.sureness(change.after),
        "superseded_by": belief_changes.read_state(change.after).get("superseded_by", ""),
        "reason": change.reason,
        "by": change.by,
        "at": change.at,
        "undone_at": change.undone_at,
    }


def _superseded(rows: Rows, memory: Memory, *, asking: str) -> dict[str, Any]:
    """By what a memory is superseded, when, why and by whose word; {} where it holds."""
    new = memories.by_id(rows, memory.superseded_by) if memory.superseded_by else None
    if new is None or not recall.is_seen(rows, new.project_seq, asking=asking):
        return {}
    standing = belief_changes.standing(rows, memory.id)
    told = (standing.at, standing.reason, standing.by) if standing else ("", "", "")
    return {"id": new.id, "text": new.text, **dict(zip(("at", "reason", "decided_by"), told, strict=True))}


def _link(rows: Rows, link: Link, memory: Memory, asking: str) -> dict[str, Any] | None:
    """A link with the memory at its other end; None for one behind a wall."""
    other = memories.by_id(rows, link.to_id if link.from_id == memory.id else link.from_id)
    if other is None or not recall.is_seen(rows, other.project_seq, asking=asking):
        return None
    return {**asdict(link), "other": brief(other)}


def brief(memory: Memory) -> dict[str, Any]:
    """A memory as it is shown beside another: what it says, who said it, when and where first."""
    source = memory.provenance[0]
    return {
        "id": memory.id,
        "text": memory.text,
        "authority": memory.authority,
        "confidence": memory.confidence,
        "at": memory.created_at,
        "uuid": source.uuid,
        "session_id": source.session_id,
        "superseded_by": memory.superseded_by,
    }


def sources(rows: Rows, memory: Memory, *, asking: str) -> list[dict[str, Any]]:
    """The turns that state or confirm a memory, the first with the sentence in its passage and the turns around it."""
    turns = _turns(rows, [source.uuid for source in memory.provenance], asking=asking)
    found = []
    for number, source in enumerate(memory.provenance):
        turn = turns.get(source.uuid)
        found.append(
            {
                "uuid": source.uuid,
                "session_id": source.session_id,
                "at": source.at,
                "role": source.role,
                **_said(turn, memory.text),
                **({"around": _around(rows, turn, asking=asking)} if turn and number == 0 else {}),
            }
        )
    return found


def _turns(rows: Rows, uuids: list[str], *, asking: str) -> dict[str, TurnRow]:
    seqs = search.turns_of_uuids(rows, uuids)
    rows_by_seq = search.turns_by_seq(rows, list(seqs.values()))
    return {
        uuid: rows_by_seq[seq]
        for uuid, seq in seqs.items()
        if recall.is_seen(rows, rows_by_seq[seq].project_seq, asking=asking)
    }


def _said(turn: TurnRow | None, statement: str) -> dict[str, Any]:
    """Who spoke, the passage that a statement stands in, and the sentence of it that is likest."""
    if turn is None:
        return {"speaker": "", "text": "", "sentence": ""}
    terms = text.query_terms(statement)
    passage = text.passage(turn.text, terms, limit=PASSAGE)
    return {"speaker": turn.kind, "text": passage, "sentence": _likest(passage, statement)}


def _likest(passage: str, statement: str) -> str:
    """The part of a passage that says a statement: its very words, else the sentence with most of them; "" for none."""
    if statement in passage:
        return statement
    wanted = set(text.content_words(statement))
    best, most = "", 0
    for line in passage.splitlines():
        for sentence in text.sentences(line):
            shared = len(wanted & set(text.content_words(sentence)))
            if shared > most:
                best, most = sentence.strip(), shared
    return best if most * 2 >= len(wanted) and best in passage else ""


def _around(rows: Rows, turn: TurnRow, *, asking: str) -> dict[str, list[dict[str, Any]]]:
    before, after = search.around(rows, turn.seq, each=AROUND)
    near = search.turns_by_seq(rows, [*before, *after])

    def shown(seqs: list[int]) -> list[dict[str, Any]]:
        return [
            {
                "uuid": near[seq].uuid,
                "speaker": near[seq].kind,
                "at": near[seq].at,
                "text": text.cut(text.squeeze(near[seq].text), AROUND_CHARACTERS),
            }
            for seq in seqs
            if recall.is_seen(rows, near[seq].project_seq, asking=asking)
        ]

    return {"before": shown(before), "after": shown(after)}


# --- turns and candidates


def turn_around(rows: Rows, turn: TurnRow, *, asking: str) -> dict[str, Any]:
    """What a shown turn has beside it: the turns around it, and the memories that rest on it."""
    held = memories.by_seqs(rows, search.memories_of_turn(rows, turn.uuid)).values()
    return {
        "around": _around(rows, turn, asking=asking),
        "memories": [
            {"id": one.id, "text": one.text} for one in held if recall.is_seen(rows, one.project_seq, asking=asking)
        ],
    }


def find_candidate(rows: Rows, ident: str, *, asking: str) -> Candidate:
    """A candidate by its id or the beginning of it; one behind a wall is none for who asks from elsewhere."""
    candidate = candidates.by_id(rows, meant(ident, candidates.ids_like(rows, ident) if ident else []))
    if candidate is None or not recall.is_seen(rows, candidate.project_seq, asking=asking):
        raise BadInput(f"there is no candidate {ident!r}", hint="`csmd review` lists what waits for you")
    return candidate


def candidate_json(rows: Rows, candidate: Candidate, *, asking: str) -> dict[str, Any]:
    """A candidate with its evidence and the memories it is about, the one that would stay first."""
    found = [memories.by_id(rows, ident) for ident in candidate.memory_ids]
    about = [one for one in found if one is not None and recall.is_seen(rows, one.project_seq, asking=asking)]
    if review.ABOUT[candidate.kind] == "pair":
        about.sort(key=review.strength, reverse=True)
    turns = _turns(rows, [one.uuid for one in candidate.evidence], asking=asking)
    return {
        "id": candidate.id,
        "kind": candidate.kind,
        "source": candidate.source,
        "status": candidate.status,
        "text": candidate.text,
        "reason": candidate.reason,
        "gate": candidate.gate,
        "category": candidate.category,
        "confidence": candidate.confidence,
        "reinforcement": candidate.reinforcement,
        "contradicted": candidate.contradicted,
        "project": roots(rows).get(candidate.project_seq, ""),
        "created_at": candidate.created_at,
        "updated_at": candidate.updated_at,
        "version": candidate.version,
        "memories": [brief(one) for one in about],
        "evidence": [{**asdict(one), **_said(turns.get(one.uuid), candidate.text)} for one in candidate.evidence],
    }


def _candidate(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    found = find_candidate(rows, params["id"], asking=params[ASKING])
    return candidate_json(rows, found, asking=params[ASKING])


_ONE: dict[str, tuple[type, Any]] = {"id": (str, REQUIRED), ASKING: (str, "")}
TOOLS: dict[str, Tool] = {
    "csm_memory_show": Tool(
        summary="Show one memory: where it was said, what stands for and against it, how sure it is", mutates=False,
        run=_memory, parameters=_ONE,
    ),
    "csm_candidate_show": Tool(
        summary="Show one candidate with its evidence", mutates=False, run=_candidate, parameters=_ONE
    ),
}  # fmt: skip
