"""Tools on memories: list, show, save, forget, supersede."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Generator
from functools import partial
from typing import NamedTuple, cast, get_args

from csmd.capture import ingest, project_identity
from csmd.errors import BadInput, CsmdError, NotFound
from csmd.extraction.classifier import CATEGORIES_OF, classify
from csmd.knowledge import Memory, Provenance, Statement
from csmd.memory import remember, supersession
from csmd.privacy.redaction import redact
from csmd.recall import query, visibility
from csmd.recall.visibility import is_visible
from csmd.store import forget, journal, memories, projects, team
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.text.tokens import keyed_hash
from csmd.tools import present
from csmd.tools.declaration import (
    Json,
    Places,
    ToolContext,
    Tools,
    clamp_limit,
    refuse_in_review,
    refuse_users_statement,
)
from csmd.tools.memory_details import replacement_json, rest_json
from csmd.tools.present import as_json, find_memory, find_session, memories_json, normalise_typed_text, read_roots
from csmd.vocabulary import CATEGORIES, Category, Gate, MemdirType, MemoryType

TOOLS = Tools()
#: Memories listed after a save that the new one may replace.
MAX_DOUBTFUL = 5
#: Memories listed after a save that are about the same.
MAX_RELATED = 2
#: A memory's id or the beginning of it.
MEMORY_ID = re.compile(r"(?:m[0-9a-f]*)?")
#: Most memories of one page of a list.
MAX_LISTED = 200
#: Limit of a list whose caller gives none.
NO_LIMIT = 2**31
#: Filter of a list -> its allowed words.
FILTERS: dict[str, tuple[str, ...]] = {
    "gate": get_args(Gate), "category": get_args(Category), "type": get_args(MemoryType),
    "state": ("active", "replaced"),
}  # fmt: skip
#: Claude Code's types of memory -> the category of a statement saved with that type.
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
    ctx: ToolContext, rows: Rows, seen: Places = None, asking: str = "", limit: int = 0, offset: int = 0, gate: str = "",
    category: str = "", type_: str = "", session: str = "", state: str = "", since: str = "", until: str = "",
) -> Json:  # fmt: skip
    """List memories: all, surest first; with a limit or a filter latest first, with replacements."""
    filters = {"gate": gate, "category": category, "type": type_, "state": state}
    if not (limit or session or since or until or any(filters.values())):
        return {"memories": memories_json(rows, memories.list_memories(rows, projects=seen))}
    present.check_words(filters, FILTERS)
    limits = query.parse_limits(since, until, now=ctx.here(ctx.now()))
    page, total = memories.list_page(
        rows, projects=seen, gate=gate, category=category, type_=type_, state=state,
        session=find_session(rows, session, asking).id if session else "", since=limits.since, until=limits.until,
        limit=clamp_limit(limit, MAX_LISTED) if limit else NO_LIMIT, offset=max(offset, 0),
    )  # fmt: skip
    replaced_by_id = memories.map_replaced_memories(rows, [memory.id for memory in page])
    values = memories_json(rows, page)
    for row, memory in zip(values, page, strict=True):
        row["replaced_by"] = replacement_json(rows, memory, asking)
        row["replaces"] = [
            as_json(other, "id text") for other in replaced_by_id.get(memory.id, ())[:MAX_RELATED]
            if is_visible(rows, other.project_seq, asking=asking)
        ]  # fmt: skip
    return {"memories": values, "total": total}


def _find_to_forget(rows: Rows, word: str, key: bytes, asking: str) -> Memory:
    """Returns the memory with an id; BadInput for a text, with the ids of the memories that have exactly that text."""
    if MEMORY_ID.fullmatch(word):
        return find_memory(rows, word, asking)
    matches = memories.list_by_hash(rows, keyed_hash(display.squeeze(redact(word, Counter())), key))
    ids = [memory.id for memory in matches if is_visible(rows, memory.project_seq, asking=asking)]
    needed = f"the id {' or '.join(ids)}" if ids else "an id (`csmd search` finds it)"
    raise NotFound(f"there is no memory {display.cut(word, 80)!r}", hint=f"give {needed}, or use --purge for a text")


def refuse_if_excluded(ctx: ToolContext, *directories: str) -> None:
    """Raises CsmdError if csmd is paused or a directory is excluded: a model must not save anything then."""
    if ctx.paused():
        raise CsmdError("csmd is paused: an assistant cannot save anything", hint="`csmd resume` in a terminal")
    paths = [path for path in directories if path]
    if ctx.excludes.covers_directory(*paths) or ctx.excludes.has_off_mark(*paths):
        raise CsmdError("the user excluded this directory: an assistant cannot save anything")


class Saved(NamedTuple):
    """A saved statement: its memory (None if its text was forgotten), whether that is new, and the project's row."""

    memory: Memory | None
    is_new: bool
    project_seq: int
    related: list[Json]


@TOOLS.add("csm_memory_save", mutates=True)
def _save_memory(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "", pin: bool = False,
    type_: str = "", confidence: float = 0.0, by_person: bool = False,
) -> Json:  # fmt: skip
    """Remember a statement; its words give type and confidence (0 to 1), unless the parameters do."""
    body = normalise_typed_text(text)
    if not by_person:
        refuse_if_excluded(ctx, project, asking)
    statement, chosen_type = _make_statement(body, type_, confidence, by_person=by_person)
    now, key = ctx.now(), ctx.store.hash_key
    source = Provenance(uuid=f"cli:{secrets.token_hex(8)}", session_id=redact(session, Counter()), at=now)
    visibility.find_searchable_places(rows, project, asking=asking)  # a wall also keeps out new memories from outside
    directory = redact(project, Counter())
    identity = project_identity.identify_directory(directory) if directory else None
    identity = project_identity.add_marks_if_new(rows, identity) if identity else None
    wall = 0 if identity else project_identity.find_wall(rows, asking)

    def write(writing: Rows) -> Saved:
        project_seq = ingest.ensure_project(writing, identity, key=key, now=now) if identity else wall
        # A model's own save does not confirm: each call is a new source, so it could make anything certain.
        store_statement = partial(
            remember.remember, writing, statement, source, project=project_seq, key=key, type_=chosen_type,
            origin="stated" if by_person else "model_saved", pinned=pin and by_person,
        )  # fmt: skip
        if by_person:
            remember.unforget(writing, statement, project=project_seq, key=key)
            memory_id = journal.record_answer(
                writing, lambda: _require_stored(store_statement()[0]), kind="remember", item="", project=project_seq,
                now=now,
            ).made  # fmt: skip
        else:
            memory_id, _ = store_statement()
        memory = memories.by_id(writing, memory_id)
        is_new = memory is not None and {origin.uuid for origin in memory.provenance} == {source.uuid}
        return Saved(memory, is_new, project_seq, _related_json(writing, memory) if memory and is_new else [])

    saved = ctx.store.write(write)
    ctx.poke()
    memory = saved.memory
    if memory is None:
        raise CsmdError("the user forgot this text", hint="ask the user to run `csmd remember`")
    is_in_place = identity is not None and memory.project_seq == saved.project_seq
    return {
        "id": memory.id, "new": saved.is_new, "text": statement.text, "authority": statement.authority,
        "type": memory.type, "host_type": remember.choose_host_type(memory), "confidence": memory.confidence,
        "project": identity.root if identity and is_in_place else "",
        "workspace": "" if is_in_place else projects.name_of(rows, memory.project_seq),
        "paused": ctx.paused() is not None, "beside": saved.related, "waits": memory.origin == "model_saved",
    }  # fmt: skip


def _require_stored(memory_id: str) -> str:
    """Returns the id of a stored statement; raises CsmdError for "", because a part of its text was purged."""
    if not memory_id:
        raise CsmdError("a part of that text was purged", hint="`csmd forget --lift` lets purged text in again")
    return memory_id


@TOOLS.add("csm_memory_lesson", mutates=True)
def _save_lesson(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "",
    confidence: float = 0.0, by_person: bool = False,
) -> Json:  # fmt: skip
    """Save a lesson learned from a mistake."""
    options: Json = {"type_": "lesson", "confidence": confidence, "by_person": by_person}
    return _save_memory(ctx, rows, text, project, asking, session, **options)


def _make_statement(
    body: str, type_: str, confidence: float, *, by_person: bool
) -> tuple[Statement, MemoryType | None]:
    """Returns the statement to save, and its type if its words do not give it.

    With a `confidence` of 0 the words give that, too. An assistant may lower the confidence, not raise it.
    """
    if type_ and type_ not in ALL_TYPES:
        raise BadInput(f"{type_!r} is not a type of memory", hint=f"choose one of {', '.join(ALL_TYPES)}")
    if not 0 <= confidence <= 1:
        hint = "leave it out to derive it from the words"
        raise BadInput(f"confidence must be 0 to 1, not {confidence:g}", hint=hint)
    if type_ == "reference" and not remember.names_address(body):
        raise BadInput("a reference needs an address", hint="add one, such as https://...")
    kind = classify(body, speaker="user")
    category: Category = kind.category
    chosen_type: MemoryType | None = None
    memdir_type = "project" if type_ == "reference" else type_  # a reference is a project fact with an address
    if type_ in HOST_TYPES and CATEGORIES[category].memdir != memdir_type:
        category = HOST_TYPES[type_]
    elif type_ and type_ not in HOST_TYPES:
        chosen_type = cast(MemoryType, type_)
        if CATEGORIES[category].type != chosen_type:
            category = next((name for name, rule in CATEGORIES.items() if rule.type == chosen_type), category)
    usual = max(kind.confidence, PERSON_CONFIDENCE if by_person else ASSISTANT_CONFIDENCE)
    statement = Statement(
        text=body, gate=kind.gate if category in CATEGORIES_OF[kind.gate] else CATEGORIES[category].gate,
        category=category, confidence=(confidence if by_person else min(confidence, usual)) if confidence else usual,
        authority="user" if by_person else "assistant", reasons=("remember",),
    )  # fmt: skip
    return statement, chosen_type


def _related_json(rows: Rows, new_memory: Memory) -> list[Json]:
    """Returns memories that a new one has replaced, may replace, or resembles; with the rest of one replaced in
    part."""
    relations = supersession.find_related(rows, new_memory)
    ranked = [("replaced", memory) for memory in relations.replaced]
    ranked += [("doubtful", memory) for memory in relations.doubtful[:MAX_DOUBTFUL]]
    ranked += [("related", memory) for memory in relations.related[: max(0, MAX_RELATED - len(ranked))]]
    return [
        as_json(
            other, "id text is superseded rest", **{"is": relation}, superseded=bool(other.superseded_by),
            rest=rest_json(rows, other.id) if relation == "replaced" else None,
        )
        for relation, other in ranked
    ]  # fmt: skip


@TOOLS.add("csm_memory_delete", mutates=True)
def _forget_memory(
    ctx: ToolContext, rows: Rows, id_: str, asking: str = "", by_person: bool = False
) -> Generator[None, None, Json]:
    """Forget a memory permanently."""
    key = ctx.store.hash_key
    target = _find_to_forget(rows, id_, key, asking)
    pages = yield from forget.find_traces(rows, target)

    def write(writing: Rows) -> tuple[Memory, list[Memory]]:
        memory = find_memory(writing, target.id, asking)  # read again: the user may have stated it meanwhile
        refuse_users_statement(memory, f"csmd forget {memory.id}", by_person=by_person)
        refuse_in_review(writing, memory, by_person=by_person)
        quoted_in = pages if memory.text == target.text else forget.NO_TRACES
        remember.forget(writing, memory, key=key, now=ctx.now(), by_person=by_person, quoted_in=quoted_in)
        if by_person:  # so that `csmd undo` names it instead of undoing the answer before it
            project_seq = memory.project_seq
            journal.record_answer(writing, str, kind=journal.FORGET, item=memory.id, project=project_seq, now=ctx.now())
        same_text = memories.list_by_hash(writing, keyed_hash(memory.text, key))
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
        command = f"csmd supersede {memory.id} {'--undo' if undo else new}"
        refuse_users_statement(memory, command, by_person=by_person)
        refuse_in_review(writing, memory, by_person=by_person)
        previous_id, now = memory.superseded_by, ctx.now()
        if undo:
            if new_id and previous_id != new_id:
                raise BadInput(f"{new_id} does not supersede {memory.id}", hint=f"`csmd show {memory.id}`")
            memory = supersession.undo(writing, memory, by=by, now=now)
        else:
            newer = find_memory(writing, new_id, asking)
            if newer.superseded_by and newer.superseded_by != memory.id:
                current = f"csmd supersede {memory.id} {newer.superseded_by}"
                raise BadInput(f"{newer.id} was itself replaced by {newer.superseded_by}", hint=current)
            older = memory

            def replace() -> str:
                supersession.supersede(writing, older, newer, by=by, now=now, key=ctx.store.hash_key)
                return new_id

            journal.record_answer(
                writing, replace, kind="supersede", item=old_id, project=memory.project_seq, by=by, now=now
            )
            memory = find_memory(writing, old_id, asking)
        return as_json(
            memory, "id text confidence undone superseded_by replacement was_superseded_by rest", undone=undo,
            replacement="" if undo else find_memory(writing, new_id, asking).text,
            was_superseded_by=previous_id, rest=rest_json(writing, memory.id),
        )  # fmt: skip

    return ctx.store.write(write)
