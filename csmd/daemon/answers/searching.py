"""Search: a question, its limits and what was found, best first; what a limit may be is said before anything is looked for."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

from csmd.daemon.answers import sessions as of_sessions
from csmd.daemon.answers.memory import lines_of
from csmd.daemon.now import now_here
from csmd.daemon.tool import PLACE, QUERY_VECTOR_S, REQUIRED, Params, Tool, places
from csmd.errors import BadInput
from csmd.model import Category, Gate, Hit, MemoryType
from csmd.recall import query, results
from csmd.store.search import Narrow
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

KINDS = ("all", "memory", "turn", "session")
#: What only memories have -> what it may be.
OF_MEMORIES: dict[str, tuple[str, ...]] = {
    "gate": get_args(Gate),
    "category": get_args(Category),
    "type": get_args(MemoryType),
}


def _search(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if not any(map(str.isalnum, params["query"])):
        raise BadInput("there is nothing to search for", hint="give words to look for: csmd search retry policy")
    now = now_here()
    kind = _kind(params)
    within = query.limits(params["since"], params["until"], now=now)
    projects = places(rows, params)
    hits, degraded = results.find(
        rows,
        params["query"],
        projects=projects,
        kind=kind,
        limit=min(max(params["limit"], 1), 200),
        embed=tools.query_vector(deadline_s=QUERY_VECTOR_S, start=True),
        now=now,
        within=Narrow(
            since=within.since,
            until=within.until,
            session=of_sessions.one(rows, {**params, "id": params["session"]}).id if params["session"] else "",
            **{name: params[name] for name in OF_MEMORIES},
        ),
    )
    return {
        "query": params["query"],
        "degraded": degraded,
        "close": results.is_close(hits),
        "hits": [hit_json(hit, explain=params["explain"]) for hit in hits],
    }


def _kind(params: Params) -> str:
    """What is looked for: memories alone where a limit names what only they have. BadInput for a word that is none."""
    if params["kind"] not in KINDS:
        raise BadInput(f"kind is memory, turn, session or all, not {params['kind']!r}")
    for name, known in OF_MEMORIES.items():
        if params[name] and params[name] not in known:
            raise BadInput(f"there is no {name} {params[name]!r}", hint=f"{name} is one of {', '.join(known)}")
        if params[name] and params["kind"] in ("turn", "session"):
            raise BadInput(f"a {params['kind']} has no {name}", hint="leave out kind, or say memory")
    return "memory" if any(params[name] for name in OF_MEMORIES) else str(params["kind"])


def hit_json(hit: Hit, *, explain: bool) -> dict[str, Any]:
    """A hit as `csmd search --json` shows it (design section 8)."""
    row = {key: value for key, value in asdict(hit).items() if key not in ("factors", "answers")}
    row |= {"score": round(hit.score, 4), "newer": hit.newer or None}
    row["source_uuids"] = lines_of(hit.source_uuids)
    return {**row, "factors": hit.factors} if explain else row


TOOLS: dict[str, Tool] = {
    "csm_memory_search": Tool(
        summary="Search memories, conversations and session summaries", mutates=False, run=_search,
        parameters={
            "query": (str, REQUIRED), **PLACE, "limit": (int, 10), "kind": (str, "all"), "explain": (bool, False),
            "since": (str, ""), "until": (str, ""), "gate": (str, ""), "category": (str, ""), "type": (str, ""), "session": (str, ""),
        },
    ),
}  # fmt: skip
