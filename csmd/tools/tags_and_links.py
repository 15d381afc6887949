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
from csmd.recall import memory_neighbours, visibility
from csmd.store import memories, memory_links, tombstones, topics
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools import present
from csmd.tools.declaration import Json, Places, ToolContext, Tools, clamp_limit
from csmd.tools.memories import ALL_TYPES, refuse_if_excluded
from csmd.tools.present import as_json, brief_memory_json, find_memory, memories_json, read_roots

TOOLS = Tools()
#: Most memories of a list by type.
MAX_OF_TYPE = 200
#: Most memories of a list by topic.
MAX_OF_TOPIC = 5000
#: The name of a link: one to three words of letters.
_RELATIONSHIP = re.compile(r"[^\W\d_]{2,20}(?:_[^\W\d_]{1,20}){0,2}")
#: Relationships that only csmd itself creates -> the command that does.
_REPLACING = "`csmd supersede OLD NEW` replaces a memory"
_KEEPING = "csmd adds it when it keeps a part or a rewording"
CONTRADICTS = "contradicts"
RESERVED_RELATIONSHIPS = {
    "superseded_by": _REPLACING, "supersedes": _REPLACING, "merged_into": "`csmd pipeline merge` merges two",
    "goes_on_as": _KEEPING, "curated_as": _KEEPING,
}  # fmt: skip
#: Highest weight of an assistant's link.
MAX_BY_ASSISTANT = 0.5


@TOOLS.add("csm_memory_tag", mutates=True)
def _tag_memory(ctx: ToolContext, rows: Rows, id_: str, topic: str, asking: str = "", by_person: bool = False) -> Json:
    """Tag a memory with a topic."""
    return _weigh_tag(ctx, rows, id_, topic, asking, by_person=by_person, weight=1.0)


@TOOLS.add("csm_memory_untag", mutates=True)
def _untag_memory(
    ctx: ToolContext, rows: Rows, id_: str, topic: str, asking: str = "", by_person: bool = False
) -> Json:
    """Remove a topic from a memory permanently."""
    return _weigh_tag(ctx, rows, id_, topic, asking, by_person=by_person, weight=0.0)


def _weigh_tag(
    ctx: ToolContext, rows: Rows, word: str, topic: str, asking: str, *, by_person: bool, weight: float
) -> Json:
    if not by_person:
        refuse_if_excluded(ctx, asking)
    target = find_memory(rows, word, asking)
    name = topic_tagging.normalise_name(present.refuse_secrets(topic))
    if not name:
        raise BadInput("the text contains no topic", hint="name it in one to three words")

    def write(writing: Rows) -> Json:
        memory = find_memory(writing, target.id, asking)  # read again inside the write
        if weight:
            present.refuse_purged(tombstones.purged_marks(writing, ctx.store.hash_key), name, "topic")
        by = topics.PERSON if by_person else topics.ASSISTANT
        if not topics.tag_memory(writing, memory.seq, name, by=by, weight=weight):
            what = f"a person decided about {memory.id} and {name!r}"
            raise CsmdError(what, hint="ask a person to change it in a terminal")
        tagged = topics.topics_of_memories(writing, [memory.seq]).get(memory.seq, [])
        return as_json(memory, "id text topic topics superseded_by", topic=name, topics=[asdict(tag) for tag in tagged])

    return ctx.store.write(write)


@TOOLS.add("csm_memory_link", mutates=True)
def _link_memories(
    ctx: ToolContext, rows: Rows, from_: str, to: str, relationship: str = "relates_to", weight: str = "1",
    undo: bool = False, asking: str = "", by_person: bool = False,
) -> Json:  # fmt: skip
    """Link one memory to another, or remove a link."""
    if not by_person:
        refuse_if_excluded(ctx, asking)
    relationship = relationship.strip().casefold().replace(" ", "_").replace("-", "_")
    origin, target = find_memory(rows, from_, asking), find_memory(rows, to, asking)
    if origin.id == target.id:
        raise BadInput(f"{origin.id} cannot be linked to itself", hint="give two memories")
    _check_relationship(relationship)
    link_weight = _parse_weight(weight) if by_person else min(_parse_weight(weight), MAX_BY_ASSISTANT)

    def write(writing: Rows) -> Json:
        present.refuse_purged(
            tombstones.purged_marks(writing, ctx.store.hash_key), relationship.replace("_", " "), "name"
        )
        ends = (origin.id, target.id, relationship)
        links = memory_links.list_links(writing, origin.id)
        is_linked = any((link.from_id, link.to_id, link.relationship) == ends for link in links)
        if (is_linked or undo) and not by_person:
            raise CsmdError("only a person at a terminal can change an existing link", hint="leave it as it is")
        if not undo:
            link = Link(from_id=origin.id, to_id=target.id, relationship=relationship, weight=link_weight)
            memory_links.add_link(writing, link, now=ctx.now())
            if relationship == CONTRADICTS and not (origin.superseded_by or target.superseded_by):
                older, newer = sorted((origin, target), key=lambda memory: (memory.confirmed_at, memory.id))
                reason = "somebody linked them as contradicting each other"
                supersession.ask_which_holds(writing, older, newer, reason=reason, sure=link_weight, at=ctx.now())
        elif not memory_links.remove_link(writing, origin.seq, target.seq, relationship):
            raise BadInput(f"{origin.id} has no such link to {target.id}", hint=f"csmd show {origin.id}")
        return {
            "from": brief_memory_json(origin), "to": brief_memory_json(target), "relationship": relationship, "weight": link_weight,
            "undone": undo,
        }  # fmt: skip

    return ctx.store.write(write)


def _check_relationship(name: str) -> None:
    """Raises BadInput for a malformed name of a relationship, or one that only csmd creates."""
    present.refuse_secrets(name)
    if name in RESERVED_RELATIONSHIPS:
        raise BadInput(f"only csmd creates the relationship {name!r}", hint=RESERVED_RELATIONSHIPS[name])
    if not _RELATIONSHIP.fullmatch(name):
        hint = f"name it in one to three words: extends, is part of, or one of {', '.join(memory_neighbours.DRAWN_BY_HAND)}"
        raise BadInput(f"{display.cut(name, 60)!r} is not a relationship", hint=hint)


def _parse_weight(word: str) -> float:
    try:
        weight = float(word)
    except ValueError:
        weight = -1.0
    if not 0 < weight <= 1:
        raise BadInput(f"the weight must be above 0 and at most 1, not {word!r}", hint="leave it out for 1")
    return round(weight, 3)


M = TypeVar("M", Memory, topics.Member)


def _sort_for_display(rows: Iterable[M]) -> list[M]:
    """Returns memories in display order: current ones first, then pinned, then by confidence."""

    def sort_key(memory: M) -> tuple[bool, bool, float, str]:
        return bool(memory.superseded_by), not memory.pinned, -memory.confidence, memory.id

    return sorted(rows, key=sort_key)


@TOOLS.add("csm_memory_topics")
def _list_topics(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """List the topics of memories."""
    root_of = read_roots(rows)
    return {
        "topics": [
            {"name": name, "project": root_of.get(project_seq, ""), "memories": number, "last_at": last_at}
            for project_seq, name, number, last_at in topics.list_topics(rows, seen)
        ]
    }  # fmt: skip


@TOOLS.add("csm_memory_by_topic")
def _list_by_topic(ctx: ToolContext, rows: Rows, topic: str, seen: Places = None, limit: int = 50) -> Json:
    """List the memories that are about a topic, the surest first."""
    name = topic_tagging.normalise_name(topic)
    members = topics.list_members(rows, name, seen)
    page = _sort_for_display(members.values())[: clamp_limit(limit, MAX_OF_TOPIC)]
    by_seq = memories.by_seqs(rows, [member.seq for member in page])
    values = memories_json(rows, [by_seq[member.seq] for member in page])
    for member, row in zip(page, values, strict=True):
        row |= {"tagged_by": member.by_whom, "weight": member.weight}
    return {"topic": name, "memories": values, "of": len(members)}


@TOOLS.add("csm_memory_by_type")
def _list_by_type(ctx: ToolContext, rows: Rows, type_: str, seen: Places = None, limit: int = 50) -> Json:
    """List the memories of a type: one of csmd's twelve, or user, feedback, project, reference."""
    if type_ not in ALL_TYPES:
        raise BadInput(f"{type_!r} is not a type of memory", hint=f"choose one of {', '.join(ALL_TYPES)}")
    memories_seen = memories.list_memories(rows, projects=seen)
    of_type = [memory for memory in memories_seen if type_ in (memory.type, remember.choose_host_type(memory))]
    values = memories_json(rows, _sort_for_display(of_type[: clamp_limit(limit, MAX_OF_TYPE)]))
    return {"type": type_, "memories": values, "of": len(of_type)}


@TOOLS.add("csm_memory_related")
def _list_related(ctx: ToolContext, rows: Rows, id_: str, asking: str = "") -> Json:
    """List what is one hop from a memory."""
    memory, seen = find_memory(rows, id_, asking), visibility.find_visible_places(rows, asking=asking)
    links_to: dict[int, list[Json]] = {}
    for _, other, relationship, weight, outwards in memory_links.list_edges(rows, [memory.seq], projects=seen):
        link = {"relationship": relationship, "weight": weight, "direction": "to" if outwards else "from"}
        links_to.setdefault(other, []).append(link)
    neighbours = memory_neighbours.find_neighbours(rows, [memory.seq], projects=seen).get(memory.seq, [])
    others = memories.by_seqs(rows, [seq for seq, *_ in neighbours])
    tagged = topics.topics_of_memories(rows, [memory.seq, *others])
    own_topics = {tag.name for tag in tagged.get(memory.seq, ())}
    return {
        "id": memory.id, "topics": [asdict(tag) for tag in tagged.get(memory.seq, ())],
        "related": [
            {
                **brief_memory_json(others[seq]), "relation": relation, "worth": worth, "links": links_to.get(seq, []),
                "topics": sorted(own_topics & {tag.name for tag in tagged.get(seq, ())}),
            }
            for seq, relation, worth in neighbours
        ],
    }  # fmt: skip


@TOOLS.add("csm_graph_stats")
def _count_graph(ctx: ToolContext, rows: Rows, seen: Places = None) -> Json:
    """Count memories, topics, relationships and sessions."""
    counted, links = memory_links.count_nodes_and_edges(rows, seen), memory_links.count_relationships(rows, seen)
    edges = {"relates_to": sum(links.values()), "tagged": counted.pop("tagged"), "produced": counted.pop("produced")}
    return {**counted, "relationships": sum(edges.values()), "edges": edges, "links": links}
