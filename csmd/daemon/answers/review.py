"""What waits for a person, their answers, and undo: one transaction each; only a person at a terminal answers.

An answer carries the version it saw: what has changed meanwhile is not overwritten.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from csmd import text
from csmd.believe import review, stage_review
from csmd.daemon.answers import showing
from csmd.daemon.answers.memory import memory_json, one, roots
from csmd.daemon.answers.wording import worded
from csmd.daemon.now import iso_before, now_iso
from csmd.daemon.tool import ASKING, PLACE, REQUIRED, Params, Tool, places
from csmd.errors import BadInput, CsmdError
from csmd.model import Candidate, Memory
from csmd.recall import stage as recall
from csmd.store import before_images, candidates, memories, projects, search
from csmd.store.before_images import Answer
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

#: Most that is looked at to say how much waits.
MOST = 1000
#: Memories that are offered as the one that takes another's place.
NEAR = 3


def _list(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    wanted = places(rows, params)
    asking = params[ASKING] or params["project"]
    waiting = candidates.waiting(rows, projects=wanted, statuses=("needs_review",), limit=MOST)
    waiting.sort(key=lambda found: (not found.contradicted, -found.confidence, found.seq))
    unsure = before_images.unreviewed(
        rows, projects=wanted, below=review.LOW, since=iso_before(review.NEW_DAYS * 86_400), limit=MOST
    )
    waiting = [found for found in waiting if found.id.startswith(params["id"]) and not _is_over(rows, found)]
    if params["id"]:
        unsure = [seq for seq, memory in memories.by_seqs(rows, unsure).items() if memory.id.startswith(params["id"])]
    limit = min(max(params["limit"], 1), MOST)
    items = [_candidate(rows, found, asking) for found in waiting[:limit]]
    known = memories.by_seqs(rows, unsure[: limit - len(items)])
    items += [_memory(rows, known[seq], asking) for seq in unsure if seq in known]
    return {"total": len(waiting) + len(unsure), "items": items}


def _is_over(rows: Rows, found: Candidate) -> bool:
    """Whether it asks about a memory that is replaced or gone by now."""
    if found.source != review.CHANGE:
        return False
    known = (memories.by_id(rows, ident) for ident in found.memory_ids)
    return any(one is None or bool(one.superseded_by) for one in known)


def _candidate(rows: Rows, found: Candidate, asking: str) -> dict[str, Any]:
    value = showing.candidate_json(rows, found, asking=asking)
    alive = [memory for memory in value["memories"] if not memory["superseded_by"]]
    about = review.about(found, len(alive))
    return {**value, "title": review.title(found), "about": about, "does": dict(review.DOES[about]), "near": []}


def _memory(rows: Rows, memory: Memory, asking: str) -> dict[str, Any]:
    today = projects.active_day(rows, memory.project_seq)
    return {
        **memory_json(memory, today=today, root=roots(rows).get(memory.project_seq, "")),
        "kind": "memory",
        "title": "saved by a model" if memory.origin == "model_saved" else "unsure",
        "about": "memory",
        "does": dict(review.DOES["memory"]),
        "reason": review.why_shown(memory),
        "version": memory.version,
        "memories": [],
        "evidence": [{**source, "against": False} for source in showing.sources(rows, memory, asking=asking)[:NEAR]],
        "near": _near(rows, memory, asking),
    }


def _near(rows: Rows, memory: Memory, asking: str) -> list[dict[str, Any]]:
    """Memories of the same place in words like it: one of them may be what takes its place."""
    terms = text.query_terms(memory.text)
    hits = search.text_hits(rows, "memory", terms, projects=[memory.project_seq], limit=NEAR + 1)
    found = memories.by_seqs(rows, [int(seq) for seq, _ in hits])
    near = [found[int(seq)] for seq, _ in hits if int(seq) in found]
    return [
        showing.brief(other)
        for other in near
        if other.id != memory.id and not other.superseded_by and recall.is_seen(rows, other.project_seq, asking=asking)
    ][:NEAR]


def _answer(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    verb = _verb(params["verb"])
    _by_person(params, "answer what waits for one")
    said = worded(params["text"]) if verb == "edit" else ""
    return _carried_out(tools, params, verb, said)


def _edit(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    _by_person(params, "change the wording of a memory")
    memory = one(rows, params["id"], asking=params[ASKING])
    if not params["text"].strip() or text.squeeze(params["text"]) == memory.text:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": "edit"}
    return {
        **_carried_out(tools, {**params, "id": memory.id, "other": ""}, "edit", worded(params["text"])),
        "changed": True,
    }


def _pin(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    verb: review.Verb = "unpin" if params["undo"] else "pin"
    _by_person(params, f"{verb} a memory")
    memory = one(rows, params["id"], asking=params[ASKING])
    if memory.pinned != params["undo"]:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": verb}
    asked = {**params, "id": memory.id, "other": "", "version": memory.version}
    return {**_carried_out(tools, asked, verb, ""), "changed": True}


def _carried_out(tools: Tools, params: Params, verb: review.Verb, said: str) -> dict[str, Any]:
    """Does it and notes it, in one transaction; refused where what it is about has changed since it was shown."""
    key, at, asking = tools.store.hash_key, now_iso(), params[ASKING]

    def write(rows: Rows) -> tuple[Answer, str]:
        item = _item(rows, params["id"], asking=asking)
        if params["version"] and item.version != params["version"]:
            raise CsmdError(f"{item.id} has changed meanwhile; nothing was done", hint=f"csmd show {item.id}")
        other = one(rows, params["other"], asking=asking) if params["other"] else None
        asked = stage_review.Asked(
            verb=verb, uuid=f"cli:{secrets.token_hex(8)}", at=at, key=key, text=said, other=other
        )
        if isinstance(item, Memory):
            return stage_review.of_memory(rows, item, asked), item.text
        if item.status not in candidates.WAITING:
            raise CsmdError(f"{item.id} is settled already: {item.status}", hint="csmd review")
        return stage_review.of_candidate(rows, item, asked), item.text

    answer, about = tools.store.write(write)
    if verb == "drop":
        tools.steward.edited.forget()
    tools.steward.poke()
    return {"answer": answer.id, "id": answer.item, "verb": verb, "made": answer.made, "text": said or about}


def _item(rows: Rows, ident: str, *, asking: str) -> Memory | Candidate:
    if ident.startswith("c"):
        return showing.find_candidate(rows, ident, asking=asking)
    return one(rows, ident, asking=asking)


def _undo(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    _by_person(params, "take an answer back")
    seen = recall.seen(rows, asking=params[ASKING])

    def write(writing: Rows) -> tuple[Answer, str]:
        answer = before_images.last_answer(writing, projects=seen, ident=params["id"])
        if answer is None:
            raise CsmdError("there is no answer to take back", hint="`csmd show ID` tells what was done to a memory")
        touched = stage_review.undo(writing, answer, key=tools.store.hash_key, at=now_iso())
        return answer, next((found.text for found in touched if found.text), "")

    answer, about = tools.store.write(write)
    tools.steward.poke()
    return {"answer": answer.id, "id": answer.item, "verb": answer.answer, "text": about, "undone": True}


def _verb(typed: str) -> review.Verb:
    for verb in review.DOES["memory"]:
        if verb == typed:
            return verb
    raise BadInput(f"an answer is {', '.join(review.DOES['memory'])}, not {typed!r}")


def _by_person(params: Params, what: str) -> None:
    if not params["by_person"]:
        raise CsmdError(f"only a person at a terminal can {what}", hint="type it in a terminal")


TOOLS: dict[str, Tool] = {
    "csm_review_list": Tool(
        summary="List what waits for a person", mutates=False, run=_list, parameters={"id": (str, ""), **PLACE, "limit": (int, 50)}
    ),
    "csm_review_answer": Tool(
        summary="Answer one thing that waits for a person, or about any memory", mutates=True, run=_answer,
        parameters={"id": (str, REQUIRED), "verb": (str, REQUIRED), "text": (str, ""), "other": (str, ""),
                    "version": (int, 0), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_review_undo": Tool(
        summary="Take an answer or an edit back, the last one by default", mutates=True, run=_undo,
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
