"""One hop over the graph: what lies beside some memories, by links, supersession, shared topics and shared sessions."""

from __future__ import annotations

from collections.abc import Sequence

from csmd.recall import graph
from csmd.store import graph as stored
from csmd.store.sqlite import Rows


def near(
    rows: Rows, memory_seqs: Sequence[int], *, projects: Sequence[int] | None = None
) -> dict[int, list[graph.Near]]:
    """Memory -> its neighbours as (memory, relation, worth 0-1), the nearest first and at most `graph.MOST` of each.

    Only of `projects`, None for all: a link may lead to another scope. Two statements, however many memories.
    """
    edges: dict[int, list[graph.Near]] = {seq: [] for seq in memory_seqs}
    for one, other, relationship, weight, outwards in stored.links(rows, memory_seqs, projects=projects):
        edges[one].append((other, relationship, graph.of_link(relationship, weight, outwards=outwards)))
    for one, other, kind, members in _shared(rows, memory_seqs, projects):
        tie = (graph.TAGGED, graph.of_topic(members)) if kind == "topic" else (graph.PRODUCED, graph.SESSION)
        edges[one].append((other, *tie))
    return {seq: found for seq, some in edges.items() if (found := graph.nearest(some))}


def about_the_same(rows: Rows, memory_seq: int, *, projects: Sequence[int] | None) -> list[int]:
    """The memories that share topics with one, those that share most and rarest first."""
    found = [one for one in _shared(rows, [memory_seq], projects) if one[2] == "topic"]
    return [seq for seq, *_ in graph.nearest((other, graph.TAGGED, graph.of_topic(n)) for _, other, _, n in found)]


def _shared(rows: Rows, memory_seqs: Sequence[int], projects: Sequence[int] | None) -> list[tuple[int, int, str, int]]:
    return stored.shared(
        rows, memory_seqs, projects=projects, widest_topic=graph.WIDEST_TOPIC, widest_session=graph.WIDEST_SESSION
    )
