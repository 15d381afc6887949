"""Memories as hits: what they match by, what stands beside them, and how much they stand for today."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from csmd.believe import score as belief
from csmd.model import Hit, Memory
from csmd.recall import question, rank
from csmd.recall.rank import Scored
from csmd.recall.stage_matches import Asked, recent
from csmd.store import memories, projects, search
from csmd.store import narrow as narrowing
from csmd.store.sqlite import Rows

#: How many memories are read whole.
MOST = 60


def hits(
    asked: Asked, scored: Mapping[int, Scored], turns: Mapping[str, float], close: Mapping[int, float]
) -> list[Hit]:
    """The best memories; `turns` are the scores of those that state them, `close` the memories' cosines."""
    best = sorted(scored.values(), key=lambda row: (-row.score, row.seq))[:MOST]
    let_in = {row.seq for row in best}
    if not asked.narrow.is_all and best:  # what came in over the graph was not looked at yet
        let_in = narrowing.memories(asked.rows, [row.seq for row in best], asked.narrow)
    found = memories.by_seqs(asked.rows, sorted(let_in))
    roots = search.roots(asked.rows)
    newer = recent({seq: memory.confirmed_at for seq, memory in found.items()})
    sure = _sure(asked.rows, found.values())
    shown: list[Hit] = []
    for seq, memory in found.items():
        uuids = tuple(dict.fromkeys(source.uuid for source in memory.provenance))[:4]
        added = {
            "source turn": rank.NEIGHBOUR_WEIGHT * max((turns.get(uuid, 0.0) for uuid in uuids), default=0.0),
            "kind asked for": rank.KIND_WEIGHT * (memory.category in asked.question.categories),
            "time": rank.TIME_WEIGHT * _holds(asked.question.window, memory),
            "recency": rank.RECENCY_WEIGHT * newer.get(seq, 0.0),
        }
        weight = rank.memory_weight(memory, sure=sure[seq])
        scope = 1.0 if memory.scope == "project" else rank.EVERYWHERE_SHARE
        factors = {**scored[seq].factors, **{name: round(value, 4) for name, value in added.items() if value}}
        shown.append(
            Hit(
                id=memory.id,
                kind="memory",
                text=memory.text[: rank.PASSAGE_CHARACTERS],
                score=(scored[seq].score + sum(added.values())) * weight * scope,
                project=roots.get(memory.project_seq, ""),
                session_id=memory.session_id,
                source_uuids=uuids,
                at=memory.confirmed_at,
                confidence=memory.confidence,
                gate=memory.gate,
                authority=memory.authority,
                superseded_by=memory.superseded_by,
                refuted=memory.is_refuted,
                edited=memory.is_edited,
                scene=memory.scene,
                cosine=close.get(seq, 0.0) if asked.vector else None,
                answers=rank.own_match(scored[seq].factors),
                factors={**factors, "standing": round(weight, 4), "scope": scope},
            )
        )
    return shown


def _holds(window: question.Window | None, memory: Memory) -> bool:
    return window is not None and any(window.holds(one.at) for one in memory.provenance)


def _sure(rows: Rows, found: Iterable[Memory]) -> dict[int, float]:
    """How sure each memory is by now: its confidence after the active days since it was last fresh."""
    days: dict[tuple[int, str], int] = {}

    def day(project: int, on: str) -> int:
        if (project, on) not in days:
            days[project, on] = projects.active_day(rows, project, on=on) if on else projects.active_day(rows, project)
        return days[project, on]

    return {
        one.seq: belief.strength(one, days=day(one.project_seq, "") - day(one.project_seq, one.fresh_at[:10]))
        for one in found
    }
