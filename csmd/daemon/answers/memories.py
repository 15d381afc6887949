"""What is remembered: asked for, told, edited, replaced, forgotten."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict
from typing import Any

from csmd import text
from csmd.capture import project_identity
from csmd.capture import stage_purge as purging
from csmd.capture.redact import redact
from csmd.daemon.answers.wording import worded
from csmd.daemon.now import now_iso
from csmd.daemon.tool import ASKING, PLACE, QUERY_VECTOR_S, REQUIRED, Params, Tool, ToolContext, meant, places
from csmd.errors import BadInput, CsmdError
from csmd.extraction.classifier import classify
from csmd.memory import confidence, supersession
from csmd.memory import remember as believe
from csmd.memory import supersession as superseding
from csmd.model import Brief, Memory, Provenance, Statement
from csmd.recall import at_work, checkpoint, living_state, prompt, session_brief
from csmd.recall import visibility as recall
from csmd.store import activity, forget, memories, projects
from csmd.store.sqlite import Rows

#: Memories that are named beside a new one: those that it may replace, and those that only speak of the same.
DOUBTFUL, RELATED = 5, 2
#: A memory's id or the beginning of it.
_ID = re.compile(r"(?:m[0-9a-f]*)?")


def lines_of(uuids: Sequence[str]) -> list[str]:
    """The transcript's lines of the first turns, at most four: further turns of one line are numbered."""
    return list(dict.fromkeys(uuid.partition("/")[0] for uuid in uuids))[:4]


def _memories(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    days: dict[int, int] = {}
    places_of = roots(rows)
    listed = []
    for memory in memories.listing(rows, projects=places(rows, params)):
        if memory.project_seq not in days:
            days[memory.project_seq] = projects.active_day(rows, memory.project_seq)
        root = places_of.get(memory.project_seq, "")
        listed.append(memory_json(memory, today=days[memory.project_seq], root=root))
    return {"memories": listed}


def roots(rows: Rows) -> dict[int, str]:
    return {seq: root for seq, root, *_ in activity.project_counts(rows)}


def memory_json(memory: Memory, *, today: int, root: str) -> dict[str, Any]:
    """A memory as `csmd memories --json` shows it (design section 8); `root` is its project's, "" for everywhere."""
    return {
        "id": memory.id,
        "text": memory.text,
        "gate": memory.gate,
        "type": memory.type,
        "category": memory.category,
        "tier": memory.tier,
        "decay": memory.decay,
        "authority": memory.authority,
        "origin": memory.origin,
        "confidence": memory.confidence,
        "attention": confidence.attention(today=today, hot_until=memory.hot_until, warm_until=memory.warm_until),
        "pinned": memory.pinned,
        "scope": memory.scope,
        "project": root,
        "source_uuids": lines_of([source.uuid for source in memory.provenance]),
        "times": memory.times,
        "session_id": memory.session_id,
        "sessions": list(dict.fromkeys(source.session_id for source in memory.provenance)),
        "created_at": memory.created_at,
        "confirmed_at": memory.confirmed_at,
        "superseded_by": memory.superseded_by,
        "is_refuted": memory.is_refuted,
        "is_edited": memory.is_edited,
        "scene": memory.scene,
    }


def one(rows: Rows, ident: str, *, asking: str) -> Memory:
    """A memory by its id or the beginning of it; one behind a wall is none for who asks from elsewhere."""
    memory = memories.by_id(rows, meant(ident, memories.ids_like(rows, ident) if ident else []))
    if memory is None or not recall.is_seen(rows, memory.project_seq, asking=asking):
        raise BadInput(f"there is no memory {ident!r}", hint="`csmd memories` lists them with their ids")
    return memory


def _typed(rows: Rows, ident: str, *, key: bytes, asking: str) -> Memory:
    """The memory to forget by its id; BadInput for words, with the memory that says just them."""
    if _ID.fullmatch(ident):
        return one(rows, ident, asking=asking)
    same = memories.in_words(rows, text.keyed_hash(text.squeeze(redact(ident, Counter())), key))
    says = [memory.id for memory in same if recall.is_seen(rows, memory.project_seq, asking=asking)]
    what = f"there is no memory {text.cut(ident, 80)!r}: a memory is forgotten by its id, words are for --purge"
    if len(says) == 1:
        raise BadInput(what, hint=f"{says[0]} says that: csmd forget {says[0]}")
    raise BadInput(what, hint=f"{', '.join(says)} say that" if says else "`csmd search` finds the id of what they say")


def refuse_where_left_out(tools: ToolContext, params: Params) -> None:
    """CsmdError where the user has csmd look away: what a model saves there is no more to be kept than what is said."""
    if tools.context.pauses().current(now_iso()):
        raise CsmdError("csmd is paused: nothing is kept that no person states", hint="`csmd resume` in a terminal")
    places = [place for place in (params["project"], params[ASKING]) if place]
    if tools.context.excludes.place(*places) or tools.context.excludes.off(*places):
        raise CsmdError("the user has left this directory out: nothing is kept that no person states")


def _remember(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    taken: Counter[str] = Counter()
    body = worded(params["text"], taken)
    if not params["by_person"]:
        refuse_where_left_out(tools, params)
    by_person = params["by_person"]
    found = classify(body, speaker="user")
    statement = Statement(
        text=body,
        gate=found.gate,
        category=found.category,
        confidence=max(found.confidence, 0.95 if by_person else 0.8),
        authority="user" if by_person else "assistant",
        reasons=("remember",),
    )
    now = now_iso()
    uuid = f"cli:{secrets.token_hex(8)}"
    places(rows, params)  # a wall keeps out what would be put behind it as well
    directory = redact(params["project"], Counter())
    place = project_identity.entering(rows, project_identity.identified(directory)) if directory else None
    behind = 0 if place else project_identity.wall(rows, params[ASKING])

    def write(writing: Rows) -> tuple[Memory | None, bool, list[dict[str, Any]], int]:
        key = tools.store.hash_key
        if place:
            home = projects.settle(writing, purging.permitted_place(writing, place, key=key), now=now).seq
        else:
            home = behind
        if by_person:
            believe.unforget(writing, statement, project=home, key=key)
        # What a model saves by itself confirms nothing: each call is a new source, so it could make anything sure.
        ident, new = believe.remember(
            writing,
            statement,
            Provenance(uuid=uuid, session_id=redact(params["session"], Counter()), at=now),
            project=home,
            origin="stated" if by_person else "model_saved",
            key=key,
            pinned=params["pin"] and by_person,
        )
        made = memories.by_id(writing, ident)
        return made, new, _beside(writing, made) if made and new else [], home

    made, new, beside, home = tools.store.write(write)
    tools.context.poke()
    if made is None:
        if by_person:
            raise CsmdError("a part of this text was purged", hint="`csmd forget --lift` lets purged text in again")
        raise CsmdError("the user made csmd forget this text", hint="say it again with `csmd remember` in a terminal")
    return {
        "id": made.id, "new": new, "text": statement.text, "authority": statement.authority,
        "project": place.root if place and made.project_seq == home else "",
        "workspace": projects.name_of(rows, made.project_seq) if made.project_seq != home or not place else "",
        "redacted": sorted(taken), "paused": bool(tools.context.pauses().current(now)),
        "beside": beside, "waits": made.origin == "model_saved",
    }  # fmt: skip


def _beside(rows: Rows, made: Memory) -> list[dict[str, Any]]:
    """What a new memory has replaced, may replace, or stands beside; with what is left where only a part was replaced."""
    found = supersession.beside(rows, made)
    told = [("replaced", one) for one in found.replaced]
    told += [("doubtful", one) for one in found.doubtful[:DOUBTFUL]]
    told += [("related", one) for one in found.related[: max(0, RELATED - len(told))]]
    rests = {one.id: supersession.of(rows, one.id) for one in found.replaced}
    return [
        {"id": one.id, "text": one.text, "is": word, "superseded": bool(one.superseded_by),
         "rest": {"id": rest.id, "text": rest.text} if (rest := rests.get(one.id)) else None}
        for word, one in told
    ]  # fmt: skip


def _forget(tools: ToolContext, rows: Rows, params: Params) -> Generator[None, None, dict[str, Any]]:
    found = _typed(rows, params["id"], key=tools.store.hash_key, asking=params[ASKING])
    told = yield from forget.looking(rows, found)

    def write(writing: Rows) -> tuple[Memory, list[Memory]]:
        memory = one(writing, found.id, asking=params[ASKING])  # as it is now: the user may have stated it meanwhile
        if memory.authority == "user" and not params["by_person"]:
            raise CsmdError(
                f"{memory.id} was said by the user, and only a person at a terminal can make csmd forget it",
                hint=f"type `csmd forget {memory.id}` in a terminal",
            )
        known = told if memory.text == found.text else forget.NOWHERE
        believe.forget(
            writing, memory, key=tools.store.hash_key, now=now_iso(), by_person=params["by_person"], told=known
        )
        same = memories.in_words(writing, text.keyed_hash(memory.text, tools.store.hash_key))
        return memory, [other for other in same if recall.is_seen(writing, other.project_seq, asking=params[ASKING])]

    memory, elsewhere = tools.store.write(write)
    tools.edited.forget()
    tools.context.poke()
    places_of = roots(rows)
    return {
        "id": memory.id, "text": memory.text, "forgotten": True, "project": places_of.get(memory.project_seq, ""),
        "elsewhere": [{"id": other.id, "project": places_of.get(other.project_seq, "")} for other in elsewhere],
    }  # fmt: skip


def _brief(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    settings = tools.config.settings
    seen = recall.asked(rows, params["project"] or "/", asking=params[ASKING]) or [0]
    goals = checkpoint.goals_block(rows, seen, "")
    made = session_brief.session_brief(
        rows,
        places=seen,
        session_id="",
        today=now_iso()[:10],
        max_tokens=settings.brief_max_tokens,
        key=tools.store.hash_key,
        goals=goals.notes if goals else (),
        blocks=living_state.blocks(living_state.lines(rows, places=seen)) if settings.stages_advisory else (),
    )
    return brief_json(tools, made)


def _recall(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    settings = tools.config.settings
    made = prompt.recall(
        rows,
        places=recall.asked(rows, params["project"] or "/", asking=params[ASKING]) or [0],
        session_id="",
        prompt=params["prompt"],
        floor=settings.recall_floor,
        max_tokens=settings.recall_max_tokens,
        max_items=settings.recall_max_items,
        embed=tools.context.query_vector(deadline_s=QUERY_VECTOR_S, start=True),
        key=tools.store.hash_key,
    )
    return brief_json(tools, made)


def _file_recall(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    made = at_work.file_recall(
        rows,
        params["file"],
        places=recall.asked(rows, params["project"] or "/", asking=params[ASKING]) or [0],
        max_tokens=tools.config.settings.recall_max_tokens,
        key=tools.store.hash_key,
    )
    return brief_json(tools, made)


def brief_json(tools: ToolContext, made: Brief) -> dict[str, Any]:
    """An injection as `--json` shows it; its tokens counted exactly where the tokenizer's data is there. While csmd is paused there is none."""
    if tools.context.pauses().current(now_iso()):
        return {
            "text": "",
            "tokens": 0,
            "items": [],
            "degraded": ["paused: no session is told anything"],
            "paused": True,
        }
    exact = tools.embedder.count_tokens([made.text]) if made.text and tools.embedder.ready else None
    tokens = exact[0] if exact and exact[0] >= 0 else made.tokens
    return {
        "text": made.text,
        "tokens": tokens,
        "items": [asdict(item) for item in made.items],
        "degraded": list(made.degraded),
    }


MEMORY_TOOLS: dict[str, Tool] = {
    "csm_memory_list": Tool(summary="List memories", mutates=False, run=_memories, parameters=PLACE),
    "csm_memory_save": Tool(
        summary="Remember a statement", mutates=True, run=_remember,
        parameters={"text": (str, REQUIRED), **PLACE, "session": (str, ""), "pin": (bool, False), "by_person": (bool, False)},
    ),
    "csm_memory_delete": Tool(
        summary="Forget a memory for good", mutates=True, run=_forget,
        parameters={"id": (str, REQUIRED), ASKING: (str, ""), "by_person": (bool, False)},
    ),
    "csm_memory_context": Tool(
        summary="The brief a new session would get", mutates=False, run=_brief,
        parameters={"project": (str, REQUIRED), ASKING: (str, "")},
    ),
    "csm_memory_recall": Tool(
        summary="What would be added to a prompt", mutates=False, run=_recall,
        parameters={"project": (str, REQUIRED), ASKING: (str, ""), "prompt": (str, REQUIRED)},
    ),
    "csm_memory_file_recall": Tool(
        summary="What is known of a file", mutates=False, run=_file_recall,
        parameters={"project": (str, REQUIRED), ASKING: (str, ""), "file": (str, REQUIRED)},
    ),
}  # fmt: skip


def _supersede(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["new"] and not params["undo"]:
        raise BadInput("csm_memory_supersede needs the memory that holds", hint="give new=ID, or undo=true")
    old = one(rows, params["old"], asking=params[ASKING])
    new = one(rows, params["new"], asking=params[ASKING]) if params["new"] else None
    by = superseding.PERSON if params["by_person"] else superseding.ASSISTANT

    def write(writing: Rows) -> dict[str, Any]:
        memory = one(writing, old.id, asking=params[ASKING])  # as it is now
        if memory.authority == "user" and not params["by_person"]:
            raise CsmdError(
                f"{memory.id} was said by the user, and only a person at a terminal can settle whether it holds",
                hint=f"type `csmd supersede {memory.id} {'--undo' if params['undo'] else params['new']}` in a terminal",
            )
        was = memory.superseded_by
        if params["undo"]:
            if new is not None and was != new.id:
                raise BadInput(f"{new.id} does not supersede {memory.id}", hint=f"`csmd show {memory.id}`")
            memory = superseding.undo(writing, memory, by=by, now=now_iso())
        elif new is not None:
            memory = superseding.by_hand(
                writing, memory, one(writing, new.id, asking=params[ASKING]), by=by, now=now_iso(),
                key=tools.store.hash_key,
            )  # fmt: skip
        rest = supersession.of(writing, memory.id)
        return {
            "id": memory.id, "text": memory.text, "confidence": memory.confidence, "undone": params["undo"],
            "superseded_by": memory.superseded_by, "was_superseded_by": was,
            "rest": {"id": rest.id, "text": rest.text} if rest else None,
        }  # fmt: skip

    return tools.store.write(write)


SUPERSEDING_TOOLS: dict[str, Tool] = {
    "csm_memory_supersede": Tool(
        summary="Have one memory supersede another, or undo that", mutates=True, run=_supersede,
        parameters={
            "old": (str, REQUIRED), "new": (str, ""), "undo": (bool, False), ASKING: (str, ""), "by_person": (bool, False),
        },
    ),
}  # fmt: skip
