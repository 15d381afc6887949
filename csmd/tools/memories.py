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
from csmd.tools.declaration import Json, Places, ToolContext, Tools, between, leave_to_review, places
from csmd.tools.present import (
    as_json,
    brief_memory,
    find_memory,
    find_session,
    memories_json,
    normalise_typed_text,
    roots,
    sources,
)
from csmd.vocabulary import CATEGORIES, NEVER, OWNER, Category, Gate, MemdirType, MemoryType

TOOLS = Tools()
#: Memories listed after a save that the new one may replace.
DOUBTFUL = 5
#: Memories listed after a save that are about the same.
RELATED = 2
#: A memory's id or the beginning of it.
_ID = re.compile(r"(?:m[0-9a-f]*)?")
#: Most memories of one page of a list.
MAX_LISTED = 200
#: Limit of a list without one.
ALL = 2**31
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
SURE_BY_PERSON = 0.95
#: Least confidence of a statement that an assistant saves.
SURE_BY_ASSISTANT = 0.8


@TOOLS.add("csm_memory_list")
def _list(
    ctx: ToolContext, rows: Rows, seen: Places = None, asking: str = "", limit: int = 0, offset: int = 0,
    gate: str = "",
    category: str = "", type_: str = "", session: str = "", state: str = "", since: str = "", until: str = "",
) -> Json:  # fmt: skip
    """List memories: all, surest first; with a limit or a filter latest first, with replacements."""
    words = {"gate": gate, "category": category, "type": type_, "state": state}
    if not (limit or session or since or until or any(words.values())):
        return {"memories": memories_json(rows, memories.list_memories(rows, projects=seen))}
    present.check_words(words, FILTERS)
    within = query.parse_limits(since, until, now=ctx.here(ctx.now()))
    shown, total = memories.list_page(
        rows, projects=seen, gate=gate, category=category, type_=type_, state=state,
        session=find_session(rows, session, asking).id if session else "", since=within.since, until=within.until,
        limit=between(limit, MAX_LISTED) if limit else ALL, offset=max(offset, 0),
    )  # fmt: skip
    replaced = memories.memories_replaced_by(rows, [memory.id for memory in shown])
    listed = memories_json(rows, shown)
    for row, memory in zip(listed, shown, strict=True):
        row["replaced_by"] = _replacement_json(rows, memory, asking)
        row["replaces"] = [
            as_json(other, "id text") for other in replaced.get(memory.id, ())[:RELATED]
            if is_visible(rows, other.project_seq, asking=asking)
        ]  # fmt: skip
    return {"memories": listed, "total": total}


def _find_to_forget(rows: Rows, ident: str, key: bytes, asking: str) -> Memory:
    """The memory with an id; BadInput for words, naming the memory with exactly that text."""
    if _ID.fullmatch(ident):
        return find_memory(rows, ident, asking)
    same = memories.all_by_hash(rows, keyed_hash(display.squeeze(redact(ident, Counter())), key))
    says = [memory.id for memory in same if is_visible(rows, memory.project_seq, asking=asking)]
    what = f"there is no memory {display.cut(ident, 80)!r}: a memory is forgotten by its id, words are for --purge"
    if len(says) == 1:
        raise BadInput(what, hint=f"csmd forget {says[0]}: it says that")
    raise BadInput(
        what,
        hint=f"name one of {', '.join(says)}, which say that"
        if says
        else "`csmd search` finds the id of what they say",
    )


def refuse_where_left_out(ctx: ToolContext, *directories: str) -> None:
    """Raises CsmdError if csmd is paused or a directory is left out: a model must not save anything then."""
    if ctx.paused():
        raise CsmdError("csmd is paused: nothing is kept that no person states", hint="`csmd resume` in a terminal")
    named = [place for place in directories if place]
    if ctx.excludes.covers_directory(*named) or ctx.excludes.has_off_mark(*named):
        raise CsmdError("the user has left this directory out: nothing is kept that no person states")


@TOOLS.add("csm_memory_save", mutates=True)
def _save(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "", pin: bool = False,
    type_: str = "", confidence: float = 0.0, by_person: bool = False,
) -> Json:  # fmt: skip
    """Remember a statement; its words give type and confidence (0 to 1), unless the parameters do."""
    body = normalise_typed_text(text)
    if not by_person:
        refuse_where_left_out(ctx, project, asking)
    statement, of_type = _make_statement(body, type_, confidence, by_person=by_person)
    now, key = ctx.now(), ctx.store.hash_key
    source = Provenance(uuid=f"cli:{secrets.token_hex(8)}", session_id=redact(session, Counter()), at=now)
    places(rows, project, asking)  # a wall also keeps out new memories from outside
    directory = redact(project, Counter())
    place = project_identity.entering(rows, project_identity.identified(directory)) if directory else None
    behind = 0 if place else project_identity.wall(rows, asking)

    def write(writing: Rows) -> tuple[Memory | None, bool, list[Json], int]:
        home = behind
        if place:
            home = projects.ensure_with_directory(
                writing, ingest.permitted_place(place, tombstones.purged_marks(writing, key)), now=now
            ).seq
        if by_person:
            remember.unforget(writing, statement, project=home, key=key)

        new = False

        # A model's own save does not confirm: each call is a new source, so it could make anything certain.
        def keep() -> str:
            nonlocal new
            ident, new = remember.remember(
                writing, statement, source, project=home, origin="stated" if by_person else "model_saved", key=key,
                pinned=pin and by_person, type_=of_type,
            )  # fmt: skip
            if not ident and by_person:
                raise CsmdError("a part of this text was purged", hint="`csmd forget --lift` lets purged text in again")
            return ident

        if by_person:
            ident = journal.record_answer(writing, keep, kind="remember", item="", project=home, now=now).made
        else:
            ident = keep()
        memory = memories.by_id(writing, ident)
        return memory, new, _related_json(writing, memory) if memory and new else [], home

    memory, new, related, home = ctx.store.write(write)
    ctx.poke()
    if memory is None:
        raise CsmdError("the user made csmd forget this text", hint="say it again with `csmd remember` in a terminal")
    return {
        "id": memory.id, "new": new, "text": statement.text, "authority": statement.authority,
        "type": memory.type, "host_type": remember.choose_host_type(memory), "confidence": memory.confidence,
        "project": place.root if place and memory.project_seq == home else "",
        "workspace": projects.name_of(rows, memory.project_seq) if memory.project_seq != home or not place else "",
        "paused": ctx.paused() is not None,
        "beside": related, "waits": memory.origin == "model_saved",
    }  # fmt: skip


@TOOLS.add("csm_memory_lesson", mutates=True)
def _lesson(
    ctx: ToolContext, rows: Rows, text: str, project: str = "", asking: str = "", session: str = "",
    confidence: float = 0.0, by_person: bool = False,
) -> Json:  # fmt: skip
    """Save a lesson learned from a mistake."""
    return _save(ctx, rows, text, project, asking, session, type_="lesson", confidence=confidence, by_person=by_person)


def _make_statement(body: str, type_: str, sure: float, *, by_person: bool) -> tuple[Statement, MemoryType | None]:
    """The statement to save, and its type if that is not what its words give; `sure` 0 leaves confidence to the words.

    An assistant may lower the confidence, not raise it.
    """
    if type_ and type_ not in ALL_TYPES:
        raise BadInput(f"{type_!r} is no type of memory", hint=f"choose one of {', '.join(ALL_TYPES)}")
    if not 0 <= sure <= 1:
        raise BadInput(
            f"confidence is above 0 and at most 1, not {sure:g}", hint="leave it out for what the words tell"
        )
    if type_ == "reference" and not remember.names_address(body):
        raise BadInput("a reference says where something is found", hint="name its address, as https://...")
    kind = classify(body, speaker="user")
    category, of_type = kind.category, None
    if type_ in HOST_TYPES and CATEGORIES[category].memdir != _own_host_type(type_):
        category = HOST_TYPES[type_]
    elif type_ and type_ not in HOST_TYPES:
        of_type = cast(MemoryType, type_)
        if CATEGORIES[category].type != of_type:
            category = next((name for name, rule in CATEGORIES.items() if rule.type == of_type), category)
    usual = max(kind.confidence, SURE_BY_PERSON if by_person else SURE_BY_ASSISTANT)
    statement = Statement(
        text=body, gate=kind.gate if category in CATEGORIES_OF[kind.gate] else CATEGORIES[category].gate,
        category=category,
        confidence=(sure if by_person else min(sure, usual)) if sure else usual,
        authority="user" if by_person else "assistant", reasons=("remember",),
    )  # fmt: skip
    return statement, of_type


def _own_host_type(type_: str) -> str:
    """The assistant's type for a category: a reference is a project fact with an address."""
    return "project" if type_ == "reference" else type_


def _related_json(rows: Rows, new_memory: Memory) -> list[Json]:
    """Memories that a new one has replaced, may replace, or resembles; with the rest of one replaced in part."""
    relations = supersession.find_related(rows, new_memory)
    near = [("replaced", memory) for memory in relations.replaced]
    near += [("doubtful", memory) for memory in relations.doubtful[:DOUBTFUL]]
    near += [("related", memory) for memory in relations.related[: max(0, RELATED - len(near))]]
    return [
        as_json(
            other, "id text is superseded rest", **{"is": word}, superseded=bool(other.superseded_by),
            rest=_rest_json(rows, other.id) if word == "replaced" else None,
        )
        for word, other in near
    ]  # fmt: skip


def _rest_json(rows: Rows, ident: str) -> Json | None:
    """The memory with the remaining text of one that was replaced in part; None for none."""
    rest = supersession.find_rest(rows, ident)
    return as_json(rest, "id text") if rest else None


@TOOLS.add("csm_memory_delete", mutates=True)
def _forget(
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
                f"{memory.id} was said by the user, and only a person at a terminal can make csmd forget it",
                hint=f"type `csmd forget {memory.id}` in a terminal",
            )
        leave_to_review(writing, memory, by_person=by_person)
        quoted_in = pages if memory.text == target.text else forget.NO_TRACES
        remember.forget(writing, memory, key=key, now=ctx.now(), by_person=by_person, quoted_in=quoted_in)
        if by_person:  # so that `csmd undo` names it instead of undoing the answer before it
            home = memory.project_seq
            journal.record_answer(writing, str, kind=journal.FORGET, item=memory.id, project=home, now=ctx.now())
        same = memories.all_by_hash(writing, keyed_hash(memory.text, key))
        return memory, [other for other in same if is_visible(writing, other.project_seq, asking=asking)]

    is_shared = team.shared_memory(rows, target.id) is not None
    memory, elsewhere = ctx.store.write(write)
    ctx.forget_lines()
    ctx.poke()
    root_of = roots(rows)
    return {
        "id": memory.id, "text": memory.text, "forgotten": True, "team": is_shared,
        "project": root_of.get(memory.project_seq, ""),
        "elsewhere": [{"id": other.id, "project": root_of.get(other.project_seq, "")} for other in elsewhere],
    }  # fmt: skip


@TOOLS.add("csm_memory_supersede", mutates=True)
def _supersede(
    ctx: ToolContext, rows: Rows, old: str, new: str = "", undo: bool = False, asking: str = "", by_person: bool = False
) -> Json:
    """Replace one memory with another, or undo that."""
    if not new and not undo:
        raise BadInput("csm_memory_supersede needs the memory that holds", hint="give new=ID, or undo=true")
    old_id = find_memory(rows, old, asking).id
    new_id = find_memory(rows, new, asking).id if new else ""
    by = supersession.PERSON if by_person else supersession.ASSISTANT

    def write(writing: Rows) -> Json:
        memory = find_memory(writing, old_id, asking)  # read again inside the write
        if memory.authority == "user" and not by_person:
            raise CsmdError(
                f"{memory.id} was said by the user, and only a person at a terminal can settle whether it holds",
                hint=f"type `csmd supersede {memory.id} {'--undo' if undo else new}` in a terminal",
            )
        leave_to_review(writing, memory, by_person=by_person)
        was, now = memory.superseded_by, ctx.now()
        if undo:
            if new_id and was != new_id:
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
            was_superseded_by=was,
            rest=_rest_json(writing, memory.id),
        )  # fmt: skip

    return ctx.store.write(write)


#: Injections of a memory that are shown with it.
TELLINGS = 3
#: Memories about the same that are shown with one.
BESIDE = 3


def failure_notes(rows: Rows, memory: Memory, asking: str) -> Json:
    """Symptoms that users reported for an error, and reasons against a memory, as far as the caller may see them."""
    reported = failures.symptoms_of(rows, [memory.seq]).get(memory.seq, [])
    against = failures.refutations_of(rows, memory.seq)
    turns = search.turns_of_uuids(rows, [uuid for uuid, *_ in [*reported, *against]])
    project_of = {seq: turn.project_seq for seq, turn in search.turns_by_seq(rows, list(turns.values())).items()}
    seen = {
        uuid
        for uuid, seq in turns.items()
        if seq in project_of and is_visible(rows, project_of[seq], asking=asking)
    }  # fmt: skip
    reasons = {reason: (uuid, at) for uuid, at, reason in against if uuid in seen}  # the latest of each reason
    return {
        "symptoms": [{"uuid": uuid, "at": at, "text": text} for uuid, at, text in reported if uuid in seen],
        "refuted": [{"uuid": uuid, "at": at, "reason": reason} for reason, (uuid, at) in reasons.items()],
    }


def _start_json(rows: Rows, memory: Memory, asking: str) -> Json:
    """Whether the next session's start shows a memory, why, and for how many more sessions (None: for good)."""
    worth = brief.worth_at_start(
        rows, memory, [memory.project_seq] if asking in ("", OWNER) else visibility.scopes(rows, asking)
    )
    left = None if math.isinf(worth.left) else math.floor(worth.left)
    return {"told": worth.value > 0, "why": worth.why, "sessions_left": left}


@TOOLS.add("csm_memory_show")
def _show(
    ctx: ToolContext, rows: Rows, id_: str, asking: str = "", start: bool = True, only_fading: bool = False
) -> Json:
    """Show one memory: where it was said, what supports and contradicts it, how sure it is.

    Without `start` its rank at sessions' starts is left out, which compares it with all other memories. With
    `only_fading` the answer is the memory, that rank, and how long prompts are shown it.
    """
    memory = find_memory(rows, id_, asking)
    today = projects.active_day(rows, memory.project_seq)
    days = {name: getattr(memory, name) for name in ("hot_until", "warm_until", "archive_at")}
    cools = {"today": today, **{name: None if day >= NEVER else day for name, day in days.items()}}
    if only_fading:
        return {**memories_json(rows, [memory])[0], "start": _start_json(rows, memory, asking), "cools": cools}
    changes = belief_changes.changes_of(rows, memory.id)
    confirmed_on = projects.active_day(rows, memory.project_seq, on=memory.confirmed_at[:10])
    factors = confidence.explain_confidence(
        memory, today=today, confirmed_on=confirmed_on, lowered=_lost_confidence(changes)
    )
    injections, times = receipts.injections_of(rows, memory.id, limit=TELLINGS)
    return {
        **memories_json(rows, [memory])[0],
        "version": memory.version,
        "sources": sources(rows, memory, asking),
        "topics": [asdict(topic) for topic in topics.topics_of_memories(rows, [memory.seq]).get(memory.seq, [])],
        "beside": _about_the_same(rows, memory, asking),
        "links": [
            row for link in memory_links.links_of(rows, memory.id) if (row := _link_json(rows, link, memory, asking))
        ],
        "sure": {
            "today": round(sum(factor.effect for factor in factors), 4),
            "factors": [{**asdict(factor), "effect": round(factor.effect, 4)} for factor in factors],
        },
        "start": _start_json(rows, memory, asking) if start else None,
        "cools": cools,
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
        **failure_notes(rows, memory, asking),
    }


def _about_the_same(rows: Rows, memory: Memory, asking: str) -> list[Json]:
    """Current memories with the most similar topics that the caller may see."""
    seqs = results.find_same_topic(rows, memory.seq, projects=visibility.find_visible_places(rows, asking=asking))
    others = memories.by_seqs(rows, seqs)
    return [brief_memory(others[seq]) for seq in seqs if not others[seq].superseded_by][:BESIDE]


def _lost_confidence(changes: list[belief_changes.Change]) -> float:
    """How much confidence a memory has lost to contradictions that were not undone."""
    lost = 0.0
    for change in changes:
        before, after = (
            belief_changes.confidence_in_state(change.before),
            belief_changes.confidence_in_state(change.after),
        )
        stands = change.change == belief_changes.SUPERSEDED and not change.undone_at
        if stands and before is not None and after is not None:
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
    return {**asdict(link), "other": brief_memory(other)}


@TOOLS.add("csm_candidate_show")
def _candidate(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """Show one candidate with its evidence."""
    return present.candidate_json(rows, present.find_candidate(rows, id_, asking), asking)
