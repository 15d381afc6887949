"""Tools on the graph: topics, tags, links, neighbours, counts.

A person's tags and links are kept as they are. An assistant's tag is marked as its own; its link weighs at most half
and does not replace an existing one. Answers leave out what is behind a wall.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import TypeVar

from csmd.errors import BadInput, CsmdError
from csmd.knowledge import Link, Memory
from csmd.memory import remember, supersession, topic_tagging
from csmd.recall import results, visibility
from csmd.store import memories, memory_graph, memory_links, tombstones, topics
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools.declaration import Json, Places, ToolContext, Tools, between
from csmd.tools.memories import ALL_TYPES, refuse_where_left_out
from csmd.tools.present import as_json, brief_memory, find_memory, memories_json, refuse_secrets, roots

TOOLS = Tools()
#: Most memories of a list by type.
MOST = 200
#: Most memories of a list by topic.
MAX_OF_TOPIC = 5000
#: What a link may be called: one to three words of letters.
_RELATIONSHIP = re.compile(r"[^\W\d_]{2,20}(?:_[^\W\d_]{1,20}){0,2}")
#: Relationships that only csmd itself creates -> the command that does.
_REPLACES, _KEEPS = (
    "`csmd supersede OLD NEW` has one take another's place",
    "csmd draws it where it keeps a part or a rewording",
)
CONTRADICTS = "contradicts"
CSMD_DRAWS = {
    "superseded_by": _REPLACES, "supersedes": _REPLACES, "merged_into": "`csmd pipeline merge` merges two",
    "goes_on_as": _KEEPS, "curated_as": _KEEPS,
}  # fmt: skip
#: Highest weight of an assistant's link.
MAX_BY_ASSISTANT = 0.5


@TOOLS.add("csm_memory_tag", mutates=True)
def _tag(ctx: ToolContext, rows: Rows, id_: str, topic: str, asking: str = "", by_person: bool = False) -> Json:
    """Tag a memory with a topic."""
    return _weigh_tag(ctx, rows, id_, topic, asking, by_person=by_person, weight=1.0)


@TOOLS.add("csm_memory_untag", mutates=True)
def _untag(ctx: ToolContext, rows: Rows, id_: str, topic: str, asking: str = "", by_person: bool = False) -> Json:
    """Take a topic off a memory, for good."""
    return _weigh_tag(ctx, rows, id_, topic, asking, by_person=by_person, weight=0.0)


def _weigh_tag(
    ctx: ToolContext, rows: Rows, ident: str, topic: str, asking: str, *, by_person: bool, weight: float
) -> Json:
    if not by_person:
        refuse_where_left_out(ctx, asking)
    target = find_memory(rows, ident, asking)
    name = topic_tagging.normalise_name(refuse_secrets(topic))
    if not name:
        raise BadInput("there is no topic in that text", hint="name it in a word or three")

    def write(writing: Rows) -> Json:
        memory = find_memory(writing, target.id, asking)  # read again inside the write
        if weight and tombstones.purged_marks(writing, ctx.store.hash_key).spans(name):
            raise CsmdError("a part of that topic was purged", hint="`csmd forget --lift` lets purged text in again")
        by = topics.PERSON if by_person else topics.ASSISTANT
        if not topics.tag_memory(writing, memory.seq, name, by=by, weight=weight):
            raise CsmdError(
                f"a person has said otherwise of {memory.id} and {name!r}",
                hint="ask a person to change that, in a terminal",
            )
        tagged = topics.topics_of_memories(writing, [memory.seq]).get(memory.seq, [])
        return as_json(memory, "id text topic topics superseded_by", topic=name, topics=[asdict(tag) for tag in tagged])

    return ctx.store.write(write)


@TOOLS.add("csm_memory_link", mutates=True)
def _link(
    ctx: ToolContext, rows: Rows, from_: str, to: str, relationship: str = "relates_to", weight: str = "1",
    undo: bool = False, asking: str = "", by_person: bool = False,
) -> Json:  # fmt: skip
    """Link one memory to another, or take a link away."""
    if not by_person:
        refuse_where_left_out(ctx, asking)
    relationship = relationship.strip().casefold().replace(" ", "_").replace("-", "_")
    origin, target = find_memory(rows, from_, asking), find_memory(rows, to, asking)
    if origin.id == target.id:
        raise BadInput(f"{origin.id} is one memory, and a link is between two", hint="name another one")
    _check_relationship(relationship)
    weighs = _weight(weight) if by_person else min(_weight(weight), MAX_BY_ASSISTANT)

    def write(writing: Rows) -> Json:
        if tombstones.purged_marks(writing, ctx.store.hash_key).spans(relationship.replace("_", " ")):
            raise CsmdError("a part of that name was purged", hint="`csmd forget --lift` lets purged text in again")
        ends = (origin.id, target.id, relationship)
        drawn = any((x.from_id, x.to_id, x.relationship) == ends for x in memory_links.links_of(writing, origin.id))
        if (drawn or undo) and not by_person:
            raise CsmdError("only a person at a terminal can change a link that is there", hint="leave it as it is")
        if not undo:
            link = Link(from_id=origin.id, to_id=target.id, relationship=relationship, weight=weighs)
            memory_links.add_link(writing, link, now=ctx.now())
            if relationship == CONTRADICTS and not (origin.superseded_by or target.superseded_by):
                older, newer = sorted((origin, target), key=lambda memory: (memory.confirmed_at, memory.id))
                reason = "somebody linked them as contradicting each other"
                supersession.ask_which_holds(writing, older, newer, reason=reason, sure=weighs, at=ctx.now())
        elif not memory_graph.remove_link(writing, origin.seq, target.seq, relationship):
            raise BadInput(f"no such link leads from {origin.id} to {target.id}", hint=f"`csmd show {origin.id}`")
        return {
            "from": brief_memory(origin), "to": brief_memory(target), "relationship": relationship, "weight": weighs,
            "undone": undo,
        }  # fmt: skip

    return ctx.store.write(write)


def _check_relationship(name: str) -> None:
    """Raises BadInput for a malformed name of a relationship, or one that only csmd creates."""
    refuse_secrets(name)
    if name in CSMD_DRAWS:
        raise BadInput(f"{name!r} is no relationship that can be drawn by hand", hint=CSMD_DRAWS[name])
    if not _RELATIONSHIP.fullmatch(name):
        hint = f"name it in one to three words: extends, is part of, or one of {', '.join(results.DRAWN_BY_HAND)}"
        raise BadInput(f"{display.cut(name, 60)!r} is no name of a relationship", hint=hint)


def _weight(typed: str) -> float:
    try:
        weight = float(typed)
    except ValueError:
        weight = -1.0
    if not 0 < weight <= 1:
        raise BadInput(f"the weight is above 0 and at most 1, not {typed!r}", hint="leave it out for 1")
    return round(weight, 3)


M = TypeVar("M", Memory, topics.Member)


def _surest_first(rows: Iterable[M]) -> list[M]:
    """Memories in display order: current ones first, then pinned, then by confidence."""
    return sorted(
        rows, key=lambda memory: (bool(memory.superseded_by), not memory.pinned, -memory.confidence, memory.id)
    )


@TOOLS.add("csm_memory_topics")
def _topics(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """List what memories are about."""
    root_of = roots(rows)
    return {
        "topics": [
            {"name": name, "project": root_of.get(place, ""), "memories": number, "last_at": at}
            for place, name, number, at in topics.list_topics(rows, seen)
        ]
    }


@TOOLS.add("csm_memory_by_topic")
def _by_topic(ctx: ToolContext, rows: Rows, topic: str, seen: Places = None, limit: int = 50) -> Json:
    """List the memories that are about a topic, the surest first."""
    name = topic_tagging.normalise_name(topic)
    members = topics.list_members(rows, name, seen)
    shown = _surest_first(members.values())[: between(limit, MAX_OF_TOPIC)]
    whole = memories.by_seqs(rows, [member.seq for member in shown])
    listed = [
        {**row, "tagged_by": member.by_whom, "weight": member.weight}
        for member, row in zip(shown, memories_json(rows, [whole[member.seq] for member in shown]), strict=True)
    ]
    return {"topic": name, "memories": listed, "of": len(members)}


@TOOLS.add("csm_memory_by_type")
def _by_type(ctx: ToolContext, rows: Rows, type_: str, seen: Places = None, limit: int = 50) -> Json:
    """List the memories of a type: one of csmd's twelve, or user, feedback, project, reference."""
    if type_ not in ALL_TYPES:
        raise BadInput(f"{type_!r} is no type of memory", hint=f"choose one of {', '.join(ALL_TYPES)}")
    held = memories.list_memories(rows, projects=seen)
    of_type = [memory for memory in held if type_ in (memory.type, remember.choose_host_type(memory))]
    listed = memories_json(rows, _surest_first(of_type[: between(limit, MOST)]))
    return {"type": type_, "memories": listed, "of": len(of_type)}


@TOOLS.add("csm_memory_related")
def _related_tool(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """List what is one hop from a memory."""
    memory, seen = find_memory(rows, id_, asking), visibility.find_visible_places(rows, asking=asking)
    drawn: dict[int, list[Json]] = {}
    for _, other, relationship, weight, outwards in memory_graph.list_edges(rows, [memory.seq], projects=seen):
        link = {"relationship": relationship, "weight": weight, "direction": "to" if outwards else "from"}
        drawn.setdefault(other, []).append(link)
    neighbours = results.find_neighbours(rows, [memory.seq], projects=seen).get(memory.seq, [])
    others = memories.by_seqs(rows, [seq for seq, *_ in neighbours])
    tagged = topics.topics_of_memories(rows, [memory.seq, *others])
    own = {tag.name for tag in tagged.get(memory.seq, ())}
    return {
        "id": memory.id,
        "topics": [asdict(tag) for tag in tagged.get(memory.seq, ())],
        "related": [
            {
                **brief_memory(others[seq]), "relation": relation, "worth": worth, "links": drawn.get(seq, []),
                "topics": sorted(own & {tag.name for tag in tagged.get(seq, ())}),
            }
            for seq, relation, worth in neighbours
        ],
    }  # fmt: skip


@TOOLS.add("csm_graph_stats")
def _stats(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """Count memories, topics, relationships and sessions."""
    counted, links = memory_graph.count_nodes_and_edges(rows, seen), memory_graph.count_relationships(rows, seen)
    edges = {"relates_to": sum(links.values()), "tagged": counted.pop("tagged"), "produced": counted.pop("produced")}
    return {**counted, "relationships": sum(edges.values()), "edges": edges, "links": links}
