"""Tools on review: what waits for a person, their answers, edits and pins, and undo."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from functools import partial

from csmd.errors import BadInput, CsmdError
from csmd.knowledge import Candidate, Memory
from csmd.memory import open_matters, review_answers, supersession
from csmd.memory.undo import undo_answer
from csmd.recall import visibility
from csmd.store import candidates, journal, memories, search
from csmd.store.journal import ChangeSet
from csmd.store.sqlite import Rows
from csmd.text import display, search_terms
from csmd.tools import present
from csmd.tools.declaration import Json, ToolContext, Tools, clamp_limit, find_places, require_person
from csmd.tools.present import as_json, brief_memory_json, candidate_json, find_candidate, find_memory, memories_json

TOOLS = Tools()

#: Most candidates and memories that are counted.
MAX_WAITING = 1000
#: Most memories that are offered as a replacement.
MAX_SIMILAR = 3


@TOOLS.add("csm_review_list")
def _list_review(
    ctx: ToolContext, rows: Rows, id_: str = "", project: str = "", asking: str = "", limit: int = 50
) -> Json:
    """List the questions that wait for a person."""
    seen, asking = find_places(rows, project, asking), asking or project
    waiting = candidates.waiting(rows, projects=seen, statuses=("needs_review",), limit=MAX_WAITING)
    waiting.sort(key=lambda candidate: (not candidate.contradicted, -candidate.confidence, candidate.seq))
    since = ctx.before(review_answers.MAX_WAITING_DAYS * 86_400)
    below = review_answers.MIN_UNREVIEWED_CONFIDENCE
    unsure = memories.list_review_seqs(rows, projects=seen, below=below, since=since, limit=MAX_WAITING)
    waiting = [candidate for candidate in waiting if candidate.id.startswith(id_) and not _is_over(rows, candidate)]
    if id_:
        unsure = [seq for seq, memory in memories.by_seqs(rows, unsure).items() if memory.id.startswith(id_)]
    limit = clamp_limit(limit, MAX_WAITING)
    items = [_review_candidate_json(rows, candidate, asking) for candidate in waiting[:limit]]
    by_seq = memories.by_seqs(rows, unsure[: limit - len(items)])
    imports = review_answers.read_imports(rows, seen, since=since)
    import_of = {memory_id: row.id for row in imports for memory_id in row.waiting}
    items += [
        {**_review_memory_json(rows, by_seq[seq], asking), "import": import_of.get(by_seq[seq].id, "")}
        for seq in unsure if seq in by_seq
    ]  # fmt: skip
    total = len(waiting) + len(unsure)
    elsewhere = 0 if total or not project or id_ else _list_review(ctx, rows, asking=asking, limit=1)["total"]
    return {
        "total": total, "elsewhere": elsewhere, "items": items,
        "imports": [
            as_json(row, "id source path at waiting", waiting=len(row.waiting)) for row in imports if len(row.waiting) > 1
        ],
    }  # fmt: skip


@TOOLS.add("csm_review_import", mutates=True, person="answer a review")
def _answer_import(
    ctx: ToolContext, rows: Rows, id_: str, verb: str, project: str = "", asking: str = ""
) -> Generator[None, None, Json]:
    """Keep or drop all waiting memories of an import, given by its id, its program or its path."""
    if verb not in review_answers.IMPORT_VERBS:
        raise BadInput(f"an import is answered with {' or '.join(review_answers.IMPORT_VERBS)}, not {verb!r}")
    since, now = ctx.before(review_answers.MAX_WAITING_DAYS * 86_400), ctx.now()
    imports = review_answers.read_imports(rows, find_places(rows, project, asking or project), since=since)
    pending = review_answers.find_import(imports, id_)
    if pending is None:
        raise BadInput(f"no import {id_!r} has pending memories", hint="`csmd review` lists pending imports")
    uuid = f"cli:{secrets.token_hex(8)}"
    reply = review_answers.ReviewAnswer(verb=verb, uuid=uuid, at=now, key=ctx.store.hash_key)
    answer = ""
    for begin in range(0, len(pending.waiting), review_answers.ANSWER_BATCH):
        ids = pending.waiting[begin : begin + review_answers.ANSWER_BATCH]
        write = partial(review_answers.record_import_answer, memory_ids=ids, answer=reply, item=pending.id)
        answer = ctx.store.write(write).id
        yield
    if verb == "drop":
        ctx.forget_lines()
    ctx.poke()
    return {
        "answer": answer, "id": pending.id, "verb": verb, "made": "", "memories": len(pending.waiting),
        "text": f"{display.amount(len(pending.waiting), 'memory')} from {pending.source}",
    }  # fmt: skip


@TOOLS.add("csm_candidate_show")
def _show_candidate(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show one candidate with its evidence."""
    return candidate_json(rows, find_candidate(rows, id_, asking), asking)


def _is_over(rows: Rows, candidate: Candidate) -> bool:
    """Whether a candidate asks about a memory that is replaced or deleted by now."""
    if candidate.source != supersession.SOURCE:
        return False
    memories_asked_about = (memories.by_id(rows, memory_id) for memory_id in candidate.memory_ids)
    return any(memory is None or bool(memory.superseded_by) for memory in memories_asked_about)


def _review_candidate_json(rows: Rows, candidate: Candidate, asking: str) -> Json:
    value = candidate_json(rows, candidate, asking)
    active = [memory for memory in value["memories"] if not memory["superseded_by"]]
    about = review_answers.subject_of(candidate, len(active))
    return {
        **value, "title": review_answers.title_of(candidate), "about": about,
        "does": dict(review_answers.EFFECTS[about]), "near": [],
    }  # fmt: skip


def _find_title(memory: Memory) -> str:
    if memory.origin != "model_saved":
        return "unsure"
    return "imported" if memory.authority == "external" else "saved by a model"


def _review_memory_json(rows: Rows, memory: Memory, asking: str) -> Json:
    return {
        **memories_json(rows, [memory])[0], "kind": "memory", "title": _find_title(memory), "about": "memory",
        "does": dict(review_answers.EFFECTS["memory"]), "reason": review_answers.explain_review(memory),
        "version": memory.version, "memories": [],
        "evidence": [
            {**source, "against": False} for source in present.sources_json(rows, memory, asking)[:MAX_SIMILAR]
        ],
        "near": _similar_memories_json(rows, memory, asking),
    }  # fmt: skip


def _similar_memories_json(rows: Rows, memory: Memory, asking: str) -> list[Json]:
    """Returns memories of the same project with similar words, one of which may replace it."""
    terms = search_terms.query_terms(memory.text)
    others = search.memories_matching(rows, terms, projects=[memory.project_seq], limit=MAX_SIMILAR + 1)
    others = [other for other in others if other.id != memory.id and not other.superseded_by]
    others = [other for other in others if visibility.is_visible(rows, other.project_seq, asking=asking)]
    return [brief_memory_json(other) for other in others[:MAX_SIMILAR]]


@TOOLS.add("csm_review_answer", mutates=True)
def _answer_review(
    ctx: ToolContext, rows: Rows, id_: str, verb: str, text: str = "", other: str = "", version: int = 0, asking: str = "",
    by_person: bool = False,
) -> Json:  # fmt: skip
    """Answer a question that waits for a person, or change any memory."""
    review_verb = next((answer for answer in review_answers.EFFECTS["memory"] if answer == verb), None)
    if review_verb is None:
        raise BadInput(f"an answer is {', '.join(review_answers.EFFECTS['memory'])}, not {verb!r}")
    require_person(by_person, "answer a review")
    return _carry_out_answer(
        ctx, id_, asking, review_verb, present.normalise_typed_text(text) if review_verb == "edit" else "", other,
        version,
    )  # fmt: skip


@TOOLS.add("csm_review_undo", mutates=True, person="undo an answer")
def _undo_answer(ctx: ToolContext, rows: Rows, id_: str = "", asking: str = "") -> Generator[None, None, Json]:
    """Undo the last answer, edit, replacement, goal set or closed matter, or the one with an id or of a memory."""
    seen = visibility.find_visible_places(rows, asking=asking)

    key = ctx.store.hash_key
    target = journal.find_last_answer(rows, projects=seen, item_id=id_)
    if target is None:
        raise CsmdError("there is nothing to undo", hint="`csmd show ID` lists the changes of a memory")

    def take_back(writing: Rows, answer_id: str) -> tuple[ChangeSet, str]:
        answer = journal.find_last_answer(writing, projects=None, item_id=answer_id)
        if answer is None:
            raise CsmdError(f"{answer_id} was purged since", hint="`csmd review` shows what waits")
        if answer.kind == journal.DONE:
            return answer, open_matters.reopen(writing, answer, key=key, now=ctx.now())
        memory = memories.by_id(writing, answer.item)
        text = undo_answer(writing, answer, now=ctx.now(), key=key)
        return answer, memory.text if memory else text

    targets = review_answers.answers_given_with(rows, target) or [target]
    refused: CsmdError | None = None
    for part in targets[1:]:
        try:
            ctx.store.write(partial(take_back, answer_id=part.id))
        except CsmdError as error:  # a memory has changed since; the rest of the import is undone
            refused = error
        yield
    answer, text = ctx.store.write(partial(take_back, answer_id=targets[0].id))
    ctx.poke()
    if refused is not None:
        raise refused
    is_import = answer.item.startswith(review_answers.IMPORT_PREFIX)
    return as_json(answer, "answer=id id=item verb=kind", text="" if is_import else text, undone=True)


@TOOLS.add("csm_memory_pin", mutates=True)
def _pin_memory(
    ctx: ToolContext, rows: Rows, id_: str, undo: bool = False, asking: str = "", by_person: bool = False
) -> Json:
    """Pin a memory, so that it does not fade; undo unpins it."""
    verb: review_answers.Verb = "unpin" if undo else "pin"
    require_person(by_person, f"{verb} a memory")
    memory = find_memory(rows, id_, asking)
    if memory.pinned != undo:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": verb}
    return {**_carry_out_answer(ctx, memory.id, asking, verb, "", "", memory.version), "changed": True}


def _carry_out_answer(
    ctx: ToolContext, item_id: str, asking: str, verb: review_answers.Verb, text: str, other: str, version: int
) -> Json:
    """Carries out and records an answer in one transaction; refused if its item has changed since it was shown."""
    key, now = ctx.store.hash_key, ctx.now()

    def write(rows: Rows) -> tuple[ChangeSet, str]:
        find = find_candidate if item_id.startswith("c") else find_memory
        item = find(rows, item_id, asking)
        if version and item.version != version:
            raise CsmdError(f"{item.id} has changed since it was shown; no change", hint=f"csmd show {item.id}")
        replacing = find_memory(rows, other, asking) if other else None
        uuid = f"cli:{secrets.token_hex(8)}"
        reply = review_answers.ReviewAnswer(verb=verb, uuid=uuid, at=now, key=key, text=text, other=replacing)
        if isinstance(item, Memory):
            return review_answers.record_memory_answer(rows, item, reply), item.text
        if item.status not in candidates.WAITING:
            raise CsmdError(f"{item.id} is already answered: {item.status}", hint="csmd review")
        return review_answers.record_candidate_answer(rows, item, reply), item.text

    answer, item_text = ctx.store.write(write)
    if verb == "drop":
        ctx.forget_lines()
    ctx.poke()
    return {"answer": answer.id, "id": answer.item, "verb": verb, "made": answer.made, "text": text or item_text}


@TOOLS.add("csm_memory_edit", mutates=True, person="change the wording of a memory")
def _edit_memory(ctx: ToolContext, rows: Rows, id_: str, text: str, version: int = 0, asking: str = "") -> Json:
    """Replace a memory by a person's wording."""
    memory = find_memory(rows, id_, asking)
    if not text.strip() or display.squeeze(text) == memory.text:
        return {"id": memory.id, "text": memory.text, "changed": False, "made": "", "answer": "", "verb": "edit"}
    answer = _carry_out_answer(ctx, memory.id, asking, "edit", present.normalise_typed_text(text), "", version)
    return {**answer, "changed": True}
