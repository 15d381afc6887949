"""The graph over what is remembered: topics, links by hand, what lies beside a memory, how many there are of each.

What a person tags or links stays as they said; an assistant's tag is marked as its own, its link weighs half at most
and redraws none that is there. What is behind a wall is in no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, get_args

from csmd.daemon.clock import now_iso
from csmd.errors import BadInput, CsmdError
from csmd.memory import topic_tagging as rule
from csmd.model import Link, Memory, MemoryType
from csmd.privacy.redaction import redact
from csmd.recall import graph
from csmd.recall import visibility as recall
from csmd.store import memories, projects, tombstones, topics
from csmd.store import topics as stored
from csmd.store.sqlite import Rows
from csmd.tools.memories import memory_json, one, refuse_where_left_out, roots, told_briefly
from csmd.tools.registry import ASKING, PLACE, REQUIRED, Params, Tool, ToolContext, places

MOST = 200
#: A link of an assistant weighs so much at most.
MOST_BY_ASSISTANT = 0.5


def _said_by(params: Params) -> str:
    return topics.PERSON if params["by_person"] else topics.ASSISTANT


def _allowed(tools: ToolContext, params: Params) -> None:
    if not params["by_person"]:
        refuse_where_left_out(tools, {"project": "", **params})


def _tag(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return _tagged(tools, rows, params, weight=1.0)


def _untag(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return _tagged(tools, rows, params, weight=0.0)


def _tagged(tools: ToolContext, rows: Rows, params: Params, *, weight: float) -> dict[str, Any]:
    _allowed(tools, params)
    found = one(rows, params["id"], asking=params[ASKING])
    name = rule.name_of(redact(params["topic"], Counter()))
    if not name:
        raise BadInput("there is no topic in that text", hint="name it in a word or three")

    def write(writing: Rows) -> dict[str, Any]:
        memory = one(writing, found.id, asking=params[ASKING])  # as it is now
        if weight and tombstones.marks(writing, tools.store.hash_key).spans(name):
            raise CsmdError("a part of that topic was purged", hint="`csmd forget --lift` lets purged text in again")
        if not topics.tag(writing, memory.seq, name, by=_said_by(params), weight=weight):
            raise CsmdError(
                f"a person has said otherwise of {memory.id} and {name!r}",
                hint="only a person at a terminal can change that",
            )
        tagged = topics.of_memories(writing, [memory.seq]).get(memory.seq, [])
        return {
            "id": memory.id, "text": memory.text, "topic": name, "topics": [asdict(one) for one in tagged],
            "superseded_by": memory.superseded_by,
        }  # fmt: skip

    return tools.store.write(write)


def _link(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    _allowed(tools, params)
    asking, relationship = params[ASKING], params["relationship"].strip().casefold().replace(" ", "_").replace("-", "_")
    origin, target = (one(rows, params[name], asking=asking) for name in ("from", "to"))
    if origin.id == target.id:
        raise BadInput(f"{origin.id} is one memory, and a link is between two", hint="name another one")
    if relationship not in graph.DRAWN:
        verb = {
            "superseded_by": "; `csmd supersede OLD NEW` has one take another's place",
            "merged_into": "; `csmd merge` merges two",
        }
        raise BadInput(f"{relationship!r} is no relationship that can be drawn", hint=f"one of {', '.join(graph.DRAWN)}{verb.get(relationship, '')}")  # fmt: skip
    weight = _weight(params["weight"])
    if not params["by_person"]:
        weight = min(weight, MOST_BY_ASSISTANT)

    def write(writing: Rows) -> dict[str, Any]:
        drawn = [x for x in memories.links_of(writing, origin.id) if (x.from_id, x.to_id, x.relationship) == (origin.id, target.id, relationship)]  # fmt: skip
        if (drawn or params["undo"]) and not params["by_person"]:
            raise CsmdError("only a person at a terminal can change a link that is there", hint="leave it as it is")
        if params["undo"]:
            if not stored.remove_link(writing, origin.seq, target.seq, relationship):
                raise BadInput(f"no such link leads from {origin.id} to {target.id}", hint=f"`csmd show {origin.id}`")
        else:
            link = Link(from_id=origin.id, to_id=target.id, relationship=relationship, weight=weight)
            memories.add_link(writing, link, now=now_iso())
        return {
            "from": told_briefly(origin), "to": told_briefly(target), "relationship": relationship, "weight": weight,
            "undone": params["undo"],
        }  # fmt: skip

    return tools.store.write(write)


def _weight(typed: str) -> float:
    try:
        weight = float(typed)
    except ValueError:
        weight = -1.0
    if not 0 < weight <= 1:
        raise BadInput(f"the weight is above 0 and at most 1, not {typed!r}", hint="leave it out for 1")
    return round(weight, 3)


def _shown(rows: Rows, found: Sequence[Memory]) -> list[dict[str, Any]]:
    """Memories as `csmd memories` shows them, what holds and what is surest first."""
    places_of, days = roots(rows), {}
    for memory in found:
        if memory.project_seq not in days:
            days[memory.project_seq] = projects.active_day(rows, memory.project_seq)
    ordered = sorted(found, key=lambda m: (bool(m.superseded_by), not m.pinned, -m.confidence, m.id))
    return [memory_json(m, today=days[m.project_seq], root=places_of.get(m.project_seq, "")) for m in ordered]


def _by_topic(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    name = rule.name_of(params["topic"])
    found = topics.members(rows, name, places(rows, params))
    shown = _shown(rows, list(memories.by_seqs(rows, list(found)).values()))
    by = {memory.id: found[memory.seq] for memory in memories.by_seqs(rows, list(found)).values()}
    return {
        "topic": name,
        "memories": [{**row, "tagged_by": by[row["id"]].by_whom, "weight": by[row["id"]].weight} for row in shown],
    }


def _by_type(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if params["type"] not in get_args(MemoryType):
        raise BadInput(f"{params['type']!r} is no type of memory", hint=f"one of {', '.join(get_args(MemoryType))}")
    found = [m for m in memories.listing(rows, projects=places(rows, params)) if m.type == params["type"]]
    return {
        "type": params["type"],
        "memories": _shown(rows, found[: min(max(params["limit"], 1), MOST)]),
        "of": len(found),
    }


def _topics(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    places_of = roots(rows)
    found = topics.listing(rows, places(rows, params))
    return {
        "topics": [
            {"name": name, "project": places_of.get(project, ""), "memories": number, "last_at": at}
            for project, name, number, at in found
        ]
    }


def _stats(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    seen = places(rows, params)
    counted = stored.graph_counts(rows, seen)
    edges = {name: counted.pop(name) for name in ("relates_to", "tagged", "produced")}
    return {**counted, "relationships": sum(edges.values()), "edges": edges, "links": stored.relationships(rows, seen)}


def _related(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    memory = one(rows, params["id"], asking=params[ASKING])
    seen = recall.seen(rows, asking=params[ASKING])
    drawn: dict[int, list[tuple[str, float, bool]]] = {}
    for _, other, relationship, weight, outwards in stored.edges(rows, [memory.seq], projects=seen):
        drawn.setdefault(other, []).append((relationship, weight, outwards))
    near = graph.near(rows, [memory.seq], projects=seen).get(memory.seq, [])
    others = memories.by_seqs(rows, [seq for seq, *_ in near])
    tagged = topics.of_memories(rows, [memory.seq, *others])
    own = {tag.name for tag in tagged.get(memory.seq, ())}
    return {
        "id": memory.id,
        "topics": [asdict(tag) for tag in tagged.get(memory.seq, ())],
        "related": [
            {
                **told_briefly(others[seq]), "relation": relation, "worth": worth,
                "links": [
                    {"relationship": a, "weight": b, "direction": "to" if c else "from"} for a, b, c in drawn.get(seq, ())
                ],
                "topics": sorted(own & {tag.name for tag in tagged.get(seq, ())}),
            }
            for seq, relation, worth in near
        ],
    }  # fmt: skip


_TAG: dict[str, tuple[type, Any]] = {
    "id": (str, REQUIRED), "topic": (str, REQUIRED), ASKING: (str, ""), "by_person": (bool, False),
}  # fmt: skip
TOOLS: dict[str, Tool] = {
    "csm_memory_tag": Tool(summary="Tag a memory with a topic", mutates=True, run=_tag, parameters=_TAG),
    "csm_memory_untag": Tool(summary="Take a topic off a memory, for good", mutates=True, run=_untag, parameters=_TAG),
    "csm_memory_link": Tool(
        summary="Link one memory to another, or take a link away", mutates=True, run=_link,
        parameters={
            "from": (str, REQUIRED), "to": (str, REQUIRED), "relationship": (str, "relates_to"), "weight": (str, "1"),
            "undo": (bool, False), ASKING: (str, ""), "by_person": (bool, False),
        },
    ),
    "csm_memory_topics": Tool(summary="List what memories are about", mutates=False, run=_topics, parameters=PLACE),
    "csm_memory_by_topic": Tool(
        summary="List the memories that are about a topic", mutates=False, run=_by_topic,
        parameters={"topic": (str, REQUIRED), **PLACE},
    ),
    "csm_memory_by_type": Tool(
        summary="List the memories of a type", mutates=False, run=_by_type,
        parameters={"type": (str, REQUIRED), **PLACE, "limit": (int, 50)},
    ),
    "csm_memory_related": Tool(
        summary="What lies one hop beside a memory", mutates=False, run=_related,
        parameters={"id": (str, REQUIRED), ASKING: (str, "")},
    ),
    "csm_graph_stats": Tool(
        summary="How many memories, topics, relationships and sessions there are", mutates=False, run=_stats, parameters=PLACE
    ),
}  # fmt: skip
