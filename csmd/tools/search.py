"""The tool that searches memories, conversations and session summaries."""

from __future__ import annotations

from dataclasses import asdict
from typing import get_args

from csmd.briefs import Hit
from csmd.errors import BadInput
from csmd.recall import query, results
from csmd.store.search import SearchFilter
from csmd.store.sqlite import Rows
from csmd.text import search_terms
from csmd.tools.declaration import VECTOR_TIMEOUT_S, Json, Places, ToolContext, Tools, clamp_limit
from csmd.tools.present import check_words, find_session, line_uuids
from csmd.vocabulary import Category, Gate, MemoryType

TOOLS = Tools()
KINDS = ("all", "memory", "turn", "session")
MAX_HITS = 200
#: Filter that applies to memories alone -> its words.
MEMORY_FILTERS: dict[str, tuple[str, ...]] = {
    "gate": get_args(Gate), "category": get_args(Category), "type": get_args(MemoryType),
}  # fmt: skip


@TOOLS.add("csm_memory_search")
def _search(
    ctx: ToolContext, rows: Rows, query_: str, seen: Places = None, asking: str = "", limit: int = 10,
    kind: str = "all",
    explain: bool = False, since: str = "", until: str = "", gate: str = "", category: str = "", type_: str = "",
    session: str = "",
) -> Json:  # fmt: skip
    """Search memories, conversations and session summaries."""
    if not any(map(str.isalnum, query_)) and not search_terms.find_unindexed(query_):
        raise BadInput("the query has no words", hint="give words to search for: csmd search retry policy")
    now, memory_filters = ctx.here(ctx.now()), {"gate": gate, "category": category, "type": type_}
    kind = _check_kind(kind, memory_filters)
    limits = query.parse_limits(since, until, now=now)
    session_id = find_session(rows, session, asking).id if session else ""
    embed = ctx.query_vector(deadline_s=VECTOR_TIMEOUT_S, start=True)
    hits, degraded = results.find(
        rows, query_, projects=seen, kind=kind, limit=clamp_limit(limit, MAX_HITS), now=now, embed=embed,
        within=SearchFilter(since=limits.since, until=limits.until, session=session_id, **memory_filters), asking=asking,
    )  # fmt: skip
    return {
        "query": query_, "by": "words" if embed is None or degraded else "words and meaning", "degraded": degraded,
        "close": results.is_close(hits, query_), "hits": [hit_json(hit, explain=explain) for hit in hits],
    }  # fmt: skip


def _check_kind(kind: str, memory_filters: dict[str, str]) -> str:
    """Returns the kind to search: memories alone with a filter that only they have. BadInput for an unknown word."""
    if kind not in KINDS:
        raise BadInput(f"kind is memory, turn, session or all, not {kind!r}")
    check_words(memory_filters, MEMORY_FILTERS)
    for name, value in memory_filters.items():
        if value and kind in ("turn", "session"):
            raise BadInput(f"a {kind} has no {name}", hint="leave out kind, or say memory")
    return "memory" if any(memory_filters.values()) else kind


def hit_json(hit: Hit, *, explain: bool) -> Json:
    """Returns a hit as `csmd search --json` shows it."""
    row = {key: value for key, value in asdict(hit).items() if key not in ("factors", "answers")}
    row |= {"score": round(hit.score, 4), "source_uuids": line_uuids(hit.source_uuids)}
    return {**row, "factors": hit.factors} if explain else row
