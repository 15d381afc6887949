"""Tools on memories: list, show, save, forget, supersede."""

from __future__ import annotations

import math
import re
import secrets
from collections import Counter
from collections.abc import Generator
from dataclasses import asdict
from typing import cast, get_args

from csmd.capture import ingest, project_identity
from csmd.errors import BadInput, CsmdError
from csmd.extraction.classifier import CATEGORIES_OF, classify
from csmd.knowledge import Link, Memory, Provenance, Statement
from csmd.memory import confidence, remember, supersession
from csmd.privacy.redaction import redact
from csmd.recall import brief, query, results, visibility
from csmd.recall.visibility import is_visible
from csmd.store import (
    belief_changes,
    failures,
    forget,
    journal,
    memories,
    memory_links,
    projects,
    receipts,
    search,
    team,
    tombstones,
    topics,
)
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.text.tokens import keyed_hash
from csmd.tools import present
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit, find_places, refuse_in_review
from csmd.tools.present import (
    as_json,
    brief_memory_json,
    find_memory,
    find_session,
    memories_json,
    normalise_typed_text,
    read_roots,
    sources_json,
)
from csmd.vocabulary import CATEGORIES, NEVER, OWNER, Category, Gate, MemdirType, MemoryType

TOOLS = Tools()
#: Memories listed after a save that the new one may replace.
MAX_DOUBTFUL = 5
#: Memories listed after a save that are about the same.
MAX_RELATED = 2
#: A memory's id or the beginning of it.
MEMORY_ID = re.compile(r"(?:m[0-9a-f]*)?")
#: Most memories of one page of a list.
MAX_LISTED = 200
#: Limit of a list without one.
NO_LIMIT = 2**31
#: Filter of a list -> what it may be.
FILTERS: dict[str, tuple[str, ...]] = {
    "gate": get_args(Gate), "category": get_args(Category), "type": get_args(MemoryType),
    "state": ("active", "replaced"),
}  # fmt: skip
#: Claude Code's types of memory -> the category of what is saved as one.
HOST_TYPES: dict[MemdirType, Category] = {
    "user": "preference", "feedback": "convention", "project": "fact", "reference": "fact",
}  # fmt: skip
ALL_TYPES: tuple[str, ...] = (*get_args(MemoryType), *HOST_TYPES)
#: Least confidence of a statement that a person saves.
PERSON_CONFIDENCE = 0.95
#: Least confidence of a statement that an assistant saves.
ASSISTANT_CONFIDENCE = 0.8


@TOOLS.add("csm_memory_list")
def _list_memories(
    ctx: ToolContext, rows: Rows, seen: Places = None, asking: str = "", limit: int = 0, offset: int = 0,
    gate: str = "",
    category: str = "", type_: str = "", session: str = "", state: str = "", since: str = "", until: str = "",
) -> Json:  # fmt: skip
    """List memories: all, surest first; with a limit or a filter latest first, with replacements."""
    filters = {"gate": gate, "category": category, "type": type_, "state": state}
    if not (limit or session or since or until or any(filters.values())):
        return {"memories": memories_json(rows, memories.list_memories(rows, projects=seen))}
    present.check_words(filters, FILTERS)
    limits = query.parse_limits(since, until, now=ctx.here(ctx.now()))
    shown, total = memories.list_page(
        rows, projects=seen, gate=gate, category=category, type_=type_, state=state,
        session=find_session(rows, session, asking).id if session else "", since=limits.since, until=limits.until,
        limit=clamp_limit(limit, MAX_LISTED) if limit else NO_LIMIT, offset=max(offset, 0),
    )  # fmt: skip
    replaced = memories.memories_replaced_by(rows, [memory.id for memory in shown])
    listed = memories_json(rows, shown)
    for row, memory in zip(listed, shown, strict=True):
        row["replaced_by"] = _replacement_json(rows, memory, asking)
        row["replaces"] = [
            as_json(other, "id text") for other in replaced.get(memory.id, ())[:MAX_RELATED]
            if is_visible(rows, other.project_seq, asking=asking)
        ]  # fmt: skip
    return {"memories": listed, "total": total}


def _find_to_forget(rows: Rows, ident: str, key: bytes, asking: str) -> Memory:
    """The memory with an id; BadInput for words, naming the memory with exactly that text."""
    if MEMORY_ID.fullmatch(ident):
        return find_memory(rows, ident, asking)
    matches = memories.all_by_hash(rows, keyed_hash(display.squeeze(redact(ident, Counter())), key))
    ids = [memory.id for memory in matches if is_visible(rows, memory.project_seq, asking=asking)]
    problem = f"there is no memory {display.cut(ident, 80)!r}: a memory is forgotten by its id, words are for --purge"
    if len(ids) == 1:
        raise BadInput(problem, hint=f"csmd forget {ids[0]}: it says that")
    raise BadInput(
        problem,
        hint=f"name one of {', '.join(ids)}, which say that" if ids else "`csmd search` finds the id of what they say",
    )


def refuse_if_excluded(ctx: ToolContext, *directories: str) -> None:
    """Raises CsmdError if csmd is paused or a directory is left out: a model must not save anything then."""
    if ctx.paused():
        raise CsmdError("csmd is paused: an assistant cannot save anything", hint="`csmd resume` in a terminal")
    paths = [place for place in directories if place]
    if ctx.excludes.covers_directory(*paths) or ctx.excludes.has_off_mark(*paths):
        raise CsmdError("the user excluded this directory: an assistant cannot save anything")


@TOOLS.add("csm_memory_save", mutates=True)
def _save_memory(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "", pin: bool = False,
    type_: str = "", confidence: float = 0.0, by_person: bool = False,
) -> Json:  # fmt: skip
    """Remember a statement; its words give type and confidence (0 to 1), unless the parameters do."""
    body = normalise_typed_text(text)
    if not by_person:
        refuse_if_excluded(ctx, project, asking)
    statement, of_type = _make_statement(body, type_, confidence, by_person=by_person)
    now, key = ctx.now(), ctx.store.hash_key
    source = Provenance(uuid=f"cli:{secrets.token_hex(8)}", session_id=redact(session, Counter()), at=now)
    find_places(rows, project, asking)  # a wall also keeps out new memories from outside
    directory = redact(project, Counter())
    place = (
        project_identity.add_marks_if_new(rows, project_identity.identify_directory(directory)) if directory else None
    )
    wall = 0 if place else project_identity.find_wall(rows, asking)

    def write(writing: Rows) -> tuple[Memory | None, bool, list[Json], int]:
        project_seq = wall
        if place:
            project_seq = projects.ensure_with_directory(
                writing, ingest.permit_project(place, tombstones.purged_marks(writing, key)), now=now
            ).seq
        if by_person:
            remember.unforget(writing, statement, project=project_seq, key=key)

        is_new = False

        # A model's own save does not confirm: each call is a new source, so it could make anything certain.
        def store_statement() -> str:
            nonlocal is_new
            ident, is_new = remember.remember(
                writing, statement, source, project=project_seq, origin="stated" if by_person else "model_saved", key=key,
                pinned=pin and by_person, type_=of_type,
            )  # fmt: skip
            if not ident and by_person:
                raise CsmdError("a part of that text was purged", hint="`csmd forget --lift` lets purged text in again")
            return ident

        if by_person:
            ident = journal.record_answer(
                writing, store_statement, kind="remember", item="", project=project_seq, now=now
            ).made
        else:
            ident = store_statement()
        memory = memories.by_id(writing, ident)
        return memory, is_new, _related_json(writing, memory) if memory and is_new else [], project_seq

    memory, is_new, related, project_seq = ctx.store.write(write)
    ctx.poke()
    if memory is None:
        raise CsmdError("the user forgot this text", hint="say it again with `csmd remember` in a terminal")
    return {
        "id": memory.id, "new": is_new, "text": statement.text, "authority": statement.authority,
        "type": memory.type, "host_type": remember.choose_host_type(memory), "confidence": memory.confidence,
        "project": place.root if place and memory.project_seq == project_seq else "",
        "workspace": projects.name_of(rows, memory.project_seq) if memory.project_seq != project_seq or not place else "",
        "paused": ctx.paused() is not None, "beside": related, "waits": memory.origin == "model_saved",
    }  # fmt: skip


@TOOLS.add("csm_memory_lesson", mutates=True)
def _save_lesson(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "",
    confidence: float = 0.0, by_person: bool = False,
) -> Json:  # fmt: skip
    """Save a lesson learned from a mistake."""
    return _save_memory(
        ctx, rows, text, project, asking, session, type_="lesson", confidence=confidence, by_person=by_person
    )


def _make_statement(
    body: str, type_: str, confidence: float, *, by_person: bool
) -> tuple[Statement, MemoryType | None]:
    """The statement to save, and its type if that is not what its words give; `confidence` 0 leaves confidence to the words.

    An assistant may lower the confidence, not raise it.
    """
    if type_ and type_ not in ALL_TYPES:
        raise BadInput(f"{type_!r} is no type of memory", hint=f"choose one of {', '.join(ALL_TYPES)}")
    if not 0 <= confidence <= 1:
        raise BadInput(
            f"confidence must be above 0 and at most 1, not {confidence:g}",
            hint="leave it out to derive it from the words",
        )
    if type_ == "reference" and not remember.names_address(body):
        raise BadInput("a reference needs an address", hint="add one, such as https://...")
    kind = classify(body, speaker="user")
    category, of_type = kind.category, None
    if type_ in HOST_TYPES and CATEGORIES[category].memdir != _memdir_type(type_):
        category = HOST_TYPES[type_]
    elif type_ and type_ not in HOST_TYPES:
        of_type = cast(MemoryType, type_)
        if CATEGORIES[category].type != of_type:
            category = next((name for name, rule in CATEGORIES.items() if rule.type == of_type), category)
    usual = max(kind.confidence, PERSON_CONFIDENCE if by_person else ASSISTANT_CONFIDENCE)
    statement = Statement(
        text=body, gate=kind.gate if category in CATEGORIES_OF[kind.gate] else CATEGORIES[category].gate,
        category=category, confidence=(confidence if by_person else min(confidence, usual)) if confidence else usual,
        authority="user" if by_person else "assistant", reasons=("remember",),
    )  # fmt: skip
    return statement, of_type


def _memdir_type(type_: str) -> str:
    """The assistant's type for a category: a reference is a project fact with an address."""
    return "project" if type_ == "reference" else type_


def _related_json(rows: Rows, new_memory: Memory) -> list[Json]:
    """Memories that a new one has replaced, may replace, or resembles; with the rest of one replaced in part."""
    relations = supersession.find_related(rows, new_memory)
    ranked = [("replaced", memory) for memory in relations.replaced]
    ranked += [("doubtful", memory) for memory in relations.doubtful[:MAX_DOUBTFUL]]
    ranked += [("related", memory) for memory in relations.related[: max(0, MAX_RELATED - len(ranked))]]
    return [
        as_json(
            other, "id text is superseded rest", **{"is": relation}, superseded=bool(other.superseded_by),
            rest=_rest_json(rows, other.id) if relation == "replaced" else None,
        )
        for relation, other in ranked
    ]  # fmt: skip


def _rest_json(rows: Rows, ident: str) -> Json | None:
    """The memory with the remaining text of one that was replaced in part; None for none."""
    rest = supersession.find_rest(rows, ident)
    return as_json(rest, "id text") if rest else None


@TOOLS.add("csm_memory_delete", mutates=True)
def _forget_memory(
    ctx: ToolContext, rows: Rows, id_: str, asking: str = "", by_person: bool = False
) -> Generator[None, None, Json]:
    """Forget a memory for good."""
    key = ctx.store.hash_key
    target = _find_to_forget(rows, id_, key, asking)
    pages = yield from forget.find_traces(rows, target)

    def write(writing: Rows) -> tuple[Memory, list[Memory]]:
        memory = find_memory(writing, target.id, asking)  # read again: the user may have stated it meanwhile
        if memory.authority == "user" and not by_person:
            raise CsmdError(
                f"{memory.id} was said by the user: only a person at a terminal can forget it",
                hint=f"type `csmd forget {memory.id}` in a terminal",
            )
        refuse_in_review(writing, memory, by_person=by_person)
        quoted_in = pages if memory.text == target.text else forget.NO_TRACES
        remember.forget(writing, memory, key=key, now=ctx.now(), by_person=by_person, quoted_in=quoted_in)
        if by_person:  # so that `csmd undo` names it instead of undoing the answer before it
            project_seq = memory.project_seq
            journal.record_answer(writing, str, kind=journal.FORGET, item=memory.id, project=project_seq, now=ctx.now())
        same_text = memories.all_by_hash(writing, keyed_hash(memory.text, key))
        return memory, [other for other in same_text if is_visible(writing, other.project_seq, asking=asking)]

    is_shared = team.find_shared_memory(rows, target.id) is not None
    memory, elsewhere = ctx.store.write(write)
    ctx.forget_lines()
    ctx.poke()
    root_of = read_roots(rows)
    return {
        "id": memory.id, "text": memory.text, "forgotten": True, "team": is_shared,
        "project": root_of.get(memory.project_seq, ""),
        "elsewhere": [{"id": other.id, "project": root_of.get(other.project_seq, "")} for other in elsewhere],
    }  # fmt: skip


@TOOLS.add("csm_memory_supersede", mutates=True)
def _supersede_memory(
    ctx: ToolContext, rows: Rows, old: str, new: str = "", undo: bool = False, asking: str = "", by_person: bool = False
) -> Json:
    """Replace one memory with another, or undo that."""
    if not new and not undo:
        raise BadInput("csm_memory_supersede: the new memory is missing", hint="give new=ID, or undo=true")
    old_id = find_memory(rows, old, asking).id
    new_id = find_memory(rows, new, asking).id if new else ""
    by = supersession.PERSON if by_person else supersession.ASSISTANT

    def write(writing: Rows) -> Json:
        memory = find_memory(writing, old_id, asking)  # read again inside the write
        if memory.authority == "user" and not by_person:
            raise CsmdError(
                f"{memory.id} was said by the user: only a person at a terminal can replace it",
                hint=f"type `csmd supersede {memory.id} {'--undo' if undo else new}` in a terminal",
            )
        refuse_in_review(writing, memory, by_person=by_person)
        previous_id, now = memory.superseded_by, ctx.now()
        if undo:
            if new_id and previous_id != new_id:
                raise BadInput(f"{new_id} does not supersede {memory.id}", hint=f"`csmd show {memory.id}`")
            memory = supersession.undo(writing, memory, by=by, now=now)
        else:
            newer, old = find_memory(writing, new_id, asking), memory
            if newer.superseded_by and newer.superseded_by != old.id:
                current = f"csmd supersede {old.id} {newer.superseded_by}"
                raise BadInput(f"{newer.id} was itself replaced by {newer.superseded_by}", hint=current)

            def replace() -> str:
                supersession.supersede(writing, old, newer, by=by, now=now, key=ctx.store.hash_key)
                return new_id

            journal.record_answer(
                writing, replace, kind="supersede", item=old_id, project=memory.project_seq, by=by, now=now
            )
            memory = find_memory(writing, old_id, asking)
        return as_json(
            memory, "id text confidence undone superseded_by was_superseded_by rest", undone=undo,
            was_superseded_by=previous_id, rest=_rest_json(writing, memory.id),
        )  # fmt: skip

    return ctx.store.write(write)


#: Injections of a memory that are shown with it.
MAX_INJECTIONS = 3
#: Memories about the same that are shown with one.
MAX_SAME_TOPIC = 3


def read_failure_notes(rows: Rows, memory: Memory, asking: str) -> Json:
    """Symptoms that users reported for an error, and reasons against a memory, as far as the caller may see them."""
    reported = failures.symptoms_of(rows, [memory.seq]).get(memory.seq, [])
    refutations = failures.refutations_of(rows, memory.seq)
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
    """Whether the next session's start shows a memory, why, and for how many more sessions (None: for good)."""
    start = brief.worth_at_start(
        rows, memory, [memory.project_seq] if asking in ("", OWNER) else visibility.scopes(rows, asking)
    )
    sessions_left = None if math.isinf(start.left) else math.floor(start.left)
    return {"told": start.value > 0, "why": start.why, "sessions_left": sessions_left}


@TOOLS.add("csm_memory_show")
def _show_memory(
    ctx: ToolContext, rows: Rows, id_: str, asking: str = "", start: bool = True, only_fading: bool = False
) -> Json:
    """Show one memory: where it was said, what supports and contradicts it, how sure it is.

    Without `start` its rank at sessions' starts is left out, which compares it with all other memories. With
    `only_fading` the answer is the memory, that rank, and how long prompts are shown it.
    """
    memory = find_memory(rows, id_, asking)
    today = projects.active_day(rows, memory.project_seq)
    days = {name: getattr(memory, name) for name in ("hot_until", "warm_until", "archive_at")}
    cooling = {"today": today, **{name: None if day >= NEVER else day for name, day in days.items()}}
    if only_fading:
        return {**memories_json(rows, [memory])[0], "start": _start_json(rows, memory, asking), "cools": cooling}
    changes = belief_changes.changes_of(rows, memory.id)
    confirmed_on = projects.active_day(rows, memory.project_seq, on=memory.confirmed_at[:10])
    factors = confidence.explain_confidence(
        memory, today=today, confirmed_on=confirmed_on, lowered=_sum_lost_confidence(changes)
    )
    injections, times = receipts.injections_of(rows, memory.id, limit=MAX_INJECTIONS)
    return {
        **memories_json(rows, [memory])[0],
        "version": memory.version,
        "sources": sources_json(rows, memory, asking),
        "topics": [asdict(topic) for topic in topics.topics_of_memories(rows, [memory.seq]).get(memory.seq, [])],
        "beside": _list_same_topic(rows, memory, asking),
        "links": [
            row for link in memory_links.links_of(rows, memory.id) if (row := _link_json(rows, link, memory, asking))
        ],
        "sure": {
            "today": round(sum(factor.effect for factor in factors), 4),
            "factors": [{**asdict(factor), "effect": round(factor.effect, 4)} for factor in factors],
        },
        "start": _start_json(rows, memory, asking) if start else None,
        "cools": cooling,
        "told": {
            "times": times,
            "last": [
                as_json(receipt, "receipt=id session_id event at")
                for receipt in injections
                if is_visible(rows, receipt.project_seq, asking=asking)
            ],
        },
        "superseded": _replacement_json(rows, memory, asking),
        "changes": [_change_json(change) for change in changes],
        **read_failure_notes(rows, memory, asking),
    }


def _list_same_topic(rows: Rows, memory: Memory, asking: str) -> list[Json]:
    """Current memories with the most similar topics that the caller may see."""
    seqs = results.find_same_topic(rows, memory.seq, projects=visibility.find_visible_places(rows, asking=asking))
    others = memories.by_seqs(rows, seqs)
    return [brief_memory_json(others[seq]) for seq in seqs if not others[seq].superseded_by][:MAX_SAME_TOPIC]


def _sum_lost_confidence(changes: list[belief_changes.Change]) -> float:
    """How much confidence a memory has lost to contradictions that were not undone."""
    lost = 0.0
    for change in changes:
        before, after = (
            belief_changes.confidence_in_state(change.before),
            belief_changes.confidence_in_state(change.after),
        )
        is_effective = change.change == belief_changes.SUPERSEDED and not change.undone_at
        if is_effective and before is not None and after is not None:
            lost += max(0.0, before - after)
    return round(lost, 4)


def _change_json(change: belief_changes.Change) -> Json:
    """A change of a memory: confidence before and after (0 to 1, None if unchanged), reason, and author."""
    return as_json(
        change, "change sure_before sure_after superseded_by reason by at undone_at",
        sure_before=belief_changes.confidence_in_state(change.before), sure_after=belief_changes.confidence_in_state(change.after),
        superseded_by=belief_changes.parse_state(change.after).get("superseded_by", ""),
    )  # fmt: skip


def _replacement_json(rows: Rows, memory: Memory, asking: str) -> Json:
    """What replaced a memory, when, why, and on whose word; {} if it is current."""
    new = memories.by_id(rows, memory.superseded_by) if memory.superseded_by else None
    if new is None or not is_visible(rows, new.project_seq, asking=asking):
        return {}
    change = belief_changes.latest_change(rows, memory.id)
    at, reason, by = (change.at, change.reason, change.by) if change else ("", "", "")
    return {"id": new.id, "text": new.text, "at": at, "reason": reason, "decided_by": by}


def _link_json(rows: Rows, link: Link, memory: Memory, asking: str) -> Json | None:
    """A link with the memory at its other end; None if that is behind a wall."""
    other = memories.by_id(rows, link.to_id if link.from_id == memory.id else link.from_id)
    if other is None or not is_visible(rows, other.project_seq, asking=asking):
        return None
    return {**asdict(link), "other": brief_memory_json(other)}


@TOOLS.add("csm_candidate_show")
def _show_candidate(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show one candidate with its evidence."""
    return present.candidate_json(rows, present.find_candidate(rows, id_, asking), asking)
