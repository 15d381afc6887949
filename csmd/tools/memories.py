"""What somebody types to be kept, as it is kept: without its secrets, on one line, and not longer than a memory."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import asdict
from typing import Any

from csmd.capture import project_identity
from csmd.capture import purged_words as purging
from csmd.daemon.clock import now_iso
from csmd.errors import BadInput, CsmdError
from csmd.extraction.chooser import MOST_CHARACTERS
from csmd.extraction.classifier import classify
from csmd.memory import confidence, review_answers, supersession
from csmd.memory import remember as believe
from csmd.model import NEVER, Brief, Candidate, Link, Memory, Provenance, Statement
from csmd.privacy.redaction import redact
from csmd.recall import at_work, brief, checkpoint, graph, living_state, prompt
from csmd.recall import visibility as recall
from csmd.store import (
    activity,
    belief_changes,
    candidates,
    failures,
    forget,
    memories,
    projects,
    receipts,
    search,
    topics,
)
from csmd.store.search import TurnRow
from csmd.store.sqlite import Rows, ids_like
from csmd.text import display, prose
from csmd.text.tokens import content_words, keyed_hash, query_terms
from csmd.tools.registry import ASKING, PLACE, QUERY_VECTOR_S, REQUIRED, Params, Tool, ToolContext, meant, places

_REDACTED = re.compile(r"\[redacted:[a-z-]+\]")


def worded(said: str, taken: Counter[str] | None = None) -> str:
    """What somebody types to be remembered as it is kept: redacted, on one line; BadInput for nothing or too much.

    `taken` counts the secrets that were taken out, by kind.
    """
    taken = Counter() if taken is None else taken
    body = display.squeeze(redact(said, taken))
    if not content_words(_REDACTED.sub("", body)):
        if taken:
            raise BadInput(
                f"that text holds nothing now: all it says is taken out before it is kept ({', '.join(sorted(taken))})",
                hint="csmd keeps no secrets; say where it is kept, not what it is",
            )
        raise BadInput("there is nothing to remember in that text", hint="say it in a sentence")
    if len(body) > MOST_CHARACTERS:
        raise BadInput(
            f"that has {len(body)} characters, and one memory has {MOST_CHARACTERS} at most",
            hint="say it shorter, or as several memories",
        )
    return body


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
    memory = memories.by_id(rows, meant(ident, ids_like(rows, "memories", ident)))
    if memory is None or not recall.is_seen(rows, memory.project_seq, asking=asking):
        raise BadInput(f"there is no memory {ident!r}", hint="`csmd memories` lists them with their ids")
    return memory


def _typed(rows: Rows, ident: str, *, key: bytes, asking: str) -> Memory:
    """The memory to forget by its id; BadInput for words, with the memory that says just them."""
    if _ID.fullmatch(ident):
        return one(rows, ident, asking=asking)
    same = memories.in_words(rows, keyed_hash(display.squeeze(redact(ident, Counter())), key))
    says = [memory.id for memory in same if recall.is_seen(rows, memory.project_seq, asking=asking)]
    what = f"there is no memory {display.cut(ident, 80)!r}: a memory is forgotten by its id, words are for --purge"
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
    rests = {one.id: supersession.rest_of(rows, one.id) for one in found.replaced}
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
        same = memories.in_words(writing, keyed_hash(memory.text, tools.store.hash_key))
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
    made = brief.session_brief(
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
    by = supersession.PERSON if params["by_person"] else supersession.ASSISTANT

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
            memory = supersession.undo(writing, memory, by=by, now=now_iso())
        elif new is not None:
            memory = supersession.supersede(
                writing, memory, one(writing, new.id, asking=params[ASKING]), by=by, now=now_iso(),
                key=tools.store.hash_key,
            )  # fmt: skip
        rest = supersession.rest_of(writing, memory.id)
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
        "beside": _showing_beside(rows, memory, asking=asking),
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


def _showing_beside(rows: Rows, memory: Memory, *, asking: str) -> list[dict[str, Any]]:
    """The memories nearest by their topics that hold and may be seen; what is linked is told with its link."""
    seqs = graph.about_the_same(rows, memory.seq, projects=recall.seen(rows, asking=asking))
    others = memories.by_seqs(rows, seqs)
    return [told_briefly(others[seq]) for seq in seqs if not others[seq].superseded_by][:BESIDE]


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
    return {**asdict(link), "other": told_briefly(other)}


def told_briefly(memory: Memory) -> dict[str, Any]:
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
    terms = query_terms(statement)
    passage = prose.passage(turn.text, terms, limit=PASSAGE)
    return {"speaker": turn.kind, "text": passage, "sentence": _likest(passage, statement)}


def _likest(passage: str, statement: str) -> str:
    """The part of a passage that says a statement: its very words, else the sentence with most of them; "" for none."""
    if statement in passage:
        return statement
    wanted = set(content_words(statement))
    best, most = "", 0
    for line in passage.splitlines():
        for sentence in prose.sentences(line):
            shared = len(wanted & set(content_words(sentence)))
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
                "text": display.cut(display.squeeze(near[seq].text), AROUND_CHARACTERS),
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
    candidate = candidates.by_id(rows, meant(ident, ids_like(rows, "candidates", ident)))
    if candidate is None or not recall.is_seen(rows, candidate.project_seq, asking=asking):
        raise BadInput(f"there is no candidate {ident!r}", hint="`csmd review` lists what waits for you")
    return candidate


def candidate_json(rows: Rows, candidate: Candidate, *, asking: str) -> dict[str, Any]:
    """A candidate with its evidence and the memories it is about, the one that would stay first."""
    found = [memories.by_id(rows, ident) for ident in candidate.memory_ids]
    about = [one for one in found if one is not None and recall.is_seen(rows, one.project_seq, asking=asking)]
    if review_answers.ABOUT[candidate.kind] == "pair":
        about.sort(key=review_answers.strength, reverse=True)
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
        "memories": [told_briefly(one) for one in about],
        "evidence": [{**asdict(one), **_said(turns.get(one.uuid), candidate.text)} for one in candidate.evidence],
    }


def _candidate(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    found = find_candidate(rows, params["id"], asking=params[ASKING])
    return candidate_json(rows, found, asking=params[ASKING])


_ONE: dict[str, tuple[type, Any]] = {"id": (str, REQUIRED), ASKING: (str, "")}
SHOWING_TOOLS: dict[str, Tool] = {
    "csm_memory_show": Tool(
        summary="Show one memory: where it was said, what stands for and against it, how sure it is", mutates=False,
        run=_memory, parameters=_ONE,
    ),
    "csm_candidate_show": Tool(
        summary="Show one candidate with its evidence", mutates=False, run=_candidate, parameters=_ONE
    ),
}  # fmt: skip
