"""Search, brief and recall for who asks; receipts of what was told; how full a context is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from csmd.capture import instruction_files
from csmd.daemon import status
from csmd.daemon.clock import iso_before, now_here
from csmd.daemon.housekeeping import user_of
from csmd.errors import BadInput
from csmd.model import Category, Gate, Hit, MemoryType
from csmd.recall import compose, last_sessions, living_state, prompt, query, results, usage
from csmd.recall import visibility as recall
from csmd.store import activity, failures, memories, receipts, search, turns
from csmd.store.activity import Composed, Recalled
from csmd.store.receipts import Item, Receipt
from csmd.store.search import Narrow
from csmd.store.sqlite import Rows
from csmd.text import display
from csmd.tools import sessions as of_sessions
from csmd.tools.memories import lines_of
from csmd.tools.registry import ASKING, PLACE, QUERY_VECTOR_S, REQUIRED, Params, Tool, ToolContext, places

KINDS = ("all", "memory", "turn", "session")
#: What only memories have -> what it may be.
OF_MEMORIES: dict[str, tuple[str, ...]] = {
    "gate": get_args(Gate),
    "category": get_args(Category),
    "type": get_args(MemoryType),
}


def _search(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
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
        embed=tools.context.query_vector(deadline_s=QUERY_VECTOR_S, start=True),
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


SEARCHING_TOOLS: dict[str, Tool] = {
    "csm_memory_search": Tool(
        summary="Search memories, conversations and session summaries", mutates=False, run=_search,
        parameters={
            "query": (str, REQUIRED), **PLACE, "limit": (int, 10), "kind": (str, "all"), "explain": (bool, False),
            "since": (str, ""), "until": (str, ""), "gate": (str, ""), "category": (str, ""), "type": (str, ""), "session": (str, ""),
        },
    ),
}  # fmt: skip


#: What is told besides memories, by how its id begins; one of "" is of a checkpoint that was not stored yet.
BESIDE_MEMORIES = {"": "checkpoint", "k": "checkpoint", "g": "goal"}
#: Reasons of what a start is told that is no memory, but what a session came to.
OF_NO_MEMORY = frozenset({last_sessions.HOW_ENDED, last_sessions.LEFT_OPEN})
#: What is shown of a turn of which a passage was told.
QUOTED_CHARACTERS = 300
RECEIPTS_AT_ONCE, MOST_RECEIPTS_LISTED = 100, 1000
WEEK_S = 7 * 86_400
#: What a thing's state says where its text is not told.
UNSEEN = ("gone", "hidden")


def _list(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    where, session = places(rows, params), _session(rows, params["session"])
    limit = min(max(params["limit"], 1), MOST_RECEIPTS_LISTED)
    found = receipts.listing(rows, projects=where, session_id=session, limit=limit) if session is not None else []
    return {"receipts": [_listed(one) for one in found], "week": week(rows, where)}


def _listed(one: receipts.Listed) -> dict[str, Any]:
    receipt = one.receipt
    return {
        "id": receipt.id, "session_id": receipt.session_id, "event": receipt.event, "at": receipt.at,
        "tokens": receipt.tokens, "items": one.items, "judged": one.judged, "used": one.used,
    }  # fmt: skip


def week(rows: Rows, where: list[int] | None = None) -> dict[str, int]:
    """What was told in the last seven days, and how much of it was used as far as that could be judged."""
    told = receipts.told_since(rows, iso_before(WEEK_S), projects=where)
    return {
        "injections": told.injections, "tokens": told.tokens, "items": told.items, "judged": told.judged,
        "used": told.used,
    }  # fmt: skip


def _session(rows: Rows, typed: str) -> str | None:
    """The session that was typed, "" for any, None for one that was told nothing."""
    if not typed:
        return ""
    found = _only(receipts.sessions_like(rows, typed), typed, str)
    return found[0] if found else None


def _show(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    seen = recall.seen(rows, asking=params[ASKING])
    found = [one for one in _found(rows, params) if seen is None or one.project_seq in seen]
    if not found and (params["id"] or params["session"]):
        raise BadInput(
            f"nothing was injected as {params['id']!r}" if params["id"] else f"{params['session']!r} was told nothing",
            hint="`csmd session show ID` says what a session was told, `csmd tool csm_receipts` lists all",
        )
    return {
        "session_id": found[0].session_id if found else "",
        "floor": tools.config.settings.recall_floor,
        "injections": [_shown(rows, one, seen, marks=_marks(rows, one) if params["id"] else {}) for one in found],
    }


def _found(rows: Rows, params: Params) -> list[Receipt]:
    limit = min(max(params["limit"], 1), RECEIPTS_AT_ONCE)
    if params["id"]:
        return _only(receipts.like(rows, params["id"]), params["id"], lambda one: one.id)
    session = _session(rows, params["session"])
    if session == "":
        session = receipts.last_session(rows, places(rows, params))
    return receipts.of_session(rows, session, limit=limit) if session else []


def _only(found: list[Any], typed: str, ident: Any) -> list[Any]:
    exact = [one for one in found if ident(one) == typed]
    if len(found) > 1 and not exact:
        raise BadInput(f"{typed!r} begins several: {', '.join(map(ident, found))}", hint="type some more of it")
    return exact or found


def _marks(rows: Rows, receipt: Receipt) -> dict[str, tuple[str, ...]]:
    """By which words use was told, found anew: they are not kept."""
    judged = receipts.waiting_receipt(rows, receipt.seq)
    told = usage.judged(rows, [judged]) if judged else []
    return {ident: verdict.marks for one in told for ident, verdict in usage.said_of(one).items()}


def _shown(
    rows: Rows, receipt: Receipt, seen: list[int] | None, *, marks: dict[str, tuple[str, ...]]
) -> dict[str, Any]:
    asked = receipts.prompt(rows, receipt) if receipt.event == "prompt" else None
    may = asked is not None and (seen is None or asked[1] in seen)
    return {
        "id": receipt.id,
        "session_id": receipt.session_id,
        "event": receipt.event,
        "at": receipt.at,
        "tokens": receipt.tokens,
        "prompt": display.cut(display.squeeze(asked[0]), 200) if asked and may else "",
        "items": [_item(rows, item, seen, marks.get(item.id, ())) for item in receipts.items(rows, receipt)],
    }


def _item(rows: Rows, item: Item, seen: list[int] | None, marks: tuple[str, ...]) -> dict[str, Any]:
    """One thing that was told, why, and whether it was used."""
    found = thing(rows, item.id, seen, reason=item.reason)
    if found["state"] == "quoted":
        found["text"] = display.cut(display.squeeze(found["text"]), QUOTED_CHARACTERS)
    return {
        "id": item.id, "score": item.score, "reason": item.reason, "used": item.used, "used_by": item.used_by,
        "marks": list(marks) if item.used and found["text"] else [], **found,
    }  # fmt: skip


def thing(rows: Rows, ident: str, seen: list[int] | None, *, reason: str = "") -> dict[str, Any]:
    """What can be told, as it is now; `state` is gone when it was forgotten since, hidden behind a wall."""
    if ident[:1] in BESIDE_MEMORIES:
        return {"state": BESIDE_MEMORIES[ident[:1]], "text": ""}
    memory = memories.by_id(rows, ident)
    if memory is None and reason in OF_NO_MEMORY:
        return {"state": "session", "text": ""}
    if memory is None and reason.startswith(living_state.REASON):
        return {"state": "preview", "text": ""}
    if memory is None:
        return _no_memory(rows, ident, seen)
    if seen is not None and memory.project_seq not in seen:
        return {"state": "hidden", "text": ""}
    source = memory.provenance[0]
    return {
        "state": "superseded" if memory.superseded_by else "there",
        "text": memory.text,
        "gate": memory.gate,
        "authority": memory.authority,
        "confidence": memory.confidence,
        "scope": memory.scope,
        "pinned": memory.pinned,
        "said_at": source.at,
        "said_in": source.session_id,
        "times": memory.times,
    }


def _no_memory(rows: Rows, ident: str, seen: list[int] | None) -> dict[str, Any]:
    """What was told that is no memory: an error, a turn, or what is gone."""
    error = failures.by_id(rows, ident, seen)
    if error is not None:
        said = f"{error.command}: {error.message}"
        return {"state": "error", "text": said, "times": error.times, "said_at": error.last_at}
    quote = turns.quote_of(rows, _turn_of(rows, ident.partition("#")[0]))
    if quote is not None and seen is not None and quote.project_seq not in seen:
        return {"state": "hidden", "text": ""}
    if quote is not None:
        who = {"authority": quote.kind, "said_at": quote.at, "said_in": quote.session_id}
        return {"state": "quoted", "text": quote.text, **who}
    return {"state": "gone", "text": ""}


def _turn_of(rows: Rows, ident: str) -> str:
    """The uuid of a turn whose beginning is given, as a prompt is told it; as it is where that names none, or several."""
    found = search.turns_like(rows, ident) if len(ident) >= prompt.SHOWN_ID else []
    return found[0][1] if len({uuid.partition("/")[0] for _, uuid in found}) == 1 else ident


def _get(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    """The whole text of what was shown cut: of a memory, an error, a turn, or all that one injection told."""
    ident, seen = params["id"].strip(), recall.seen(rows, asking=params[ASKING])
    found = thing(rows, ident, seen) if ident else {"state": "gone"}
    if found["state"] in BESIDE_MEMORIES.values():
        raise BadInput(f"{ident!r} is a {found['state']}", hint=f"`csmd {found['state']} list` shows them")
    if found["state"] not in UNSEEN:
        return {"id": ident, "items": [{"id": ident, **found}]}
    told = _only(receipts.like(rows, ident), ident, lambda one: one.id) if ident else []
    told = [one for one in told if seen is None or one.project_seq in seen]
    if not told:
        raise BadInput(
            f"nothing is kept as {ident!r}", hint="give the id of a memory, a turn or a receipt (`csmd receipts`)"
        )
    items = receipts.items(rows, told[0])
    return {
        "id": told[0].id,
        "items": [{"id": item.id, **thing(rows, item.id, seen, reason=item.reason)} for item in items],
    }


RECEIPTS_TOOLS: dict[str, Tool] = {
    "csm_receipts": Tool(
        summary="What was injected, when, into which session, and how much of it was used", mutates=False, run=_list,
        parameters={"session": (str, ""), **PLACE, "limit": (int, 20)},
    ),
    "csm_context_get": Tool(
        summary="The whole text of what a session was told", mutates=False, run=_get,
        parameters={"id": (str, REQUIRED), ASKING: (str, "")},
    ),
    "csm_receipt_show": Tool(
        summary="Show what a session was told, and why", mutates=False, run=_show,
        parameters={"id": (str, ""), "session": (str, ""), **PLACE, "limit": (int, 5)},
    ),
}  # fmt: skip


MOST_DAYS, MOST_NOTED = 90, 1000


def _log(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    since = _since(params)
    found = [*_late(tools.context.noted.waiting()[0], since), *activity.composed_since(rows, since)]
    by_event = {
        event: _sums([one for one in found if one.event == event]) for event in sorted({one.event for one in found})
    }
    limit = min(max(params["limit"], 1), MOST_NOTED)
    return {"since": since, "events": by_event, "log": [asdict(one) for one in found[:limit]]}


def _sums(found: Sequence[Composed]) -> dict[str, Any]:
    return {
        "composed": len(found),
        "silent": sum(1 for one in found if not one.chosen),
        "degraded": sum(1 for one in found if one.degraded),
        "cut": sum(1 for one in found if one.cut),
        "tokens": sum(one.tokens for one in found),
        **_times([one.ms for one in found]),
    }


def _report(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    since = _since(params)
    found = [*_late(tools.context.noted.waiting()[1], since), *activity.recalled_since(rows, since)]
    return {
        "since": since,
        "kinds": {
            kind: _asked([one for one in found if one.kind == kind]) for kind in sorted({one.kind for one in found})
        },
    }


def _asked(found: Sequence[Recalled]) -> dict[str, Any]:
    times = Counter(one.query_hash for one in found)
    return {
        "asked": len(found),
        "empty": sum(1 for one in found if not one.results),
        "different": len(times),
        "asked_again": len(found) - len(times),
        "results": sum(one.results for one in found),
        **_times([one.ms for one in found]),
    }


def _times(took: Sequence[int]) -> dict[str, int]:
    ordered = sorted(took)
    return {"median_ms": ordered[len(ordered) // 2], "p95_ms": ordered[len(ordered) * 19 // 20]}


def _late(waiting: Sequence[Any], since: str) -> list[Any]:
    return [one for one in waiting if one.at >= since]


def _since(params: Params) -> str:
    return iso_before(min(max(params["days"], 1), MOST_DAYS) * 86_400)


NOTED_TOOLS: dict[str, Tool] = {
    "csm_context_log": Tool(
        summary="What was composed for sessions, and how often it came to nothing", mutates=False, run=_log,
        parameters={"days": (int, 7), "limit": (int, 20)},
    ),
    "csm_recall_report": Tool(
        summary="How often something was looked for and not found", mutates=False, run=_report,
        parameters={"days": (int, 7)},
    ),
}  # fmt: skip


MOST_FILLED = 50


def _status(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    settings, seen = tools.config.settings, places(rows, params)
    most, brief = settings.recall_max_tokens, settings.brief_max_tokens
    return {
        "sessions": [
            {**one, "recall_tokens": compose.POLICY[one["bracket"]].recall_tokens(most)}
            for one in status.live_sessions(rows, now=datetime.now(UTC), limit=MOST_FILLED, among=seen)
        ],
        "brackets": [
            {
                "bracket": name,
                "from_percent": round(100 * begins),
                "recall_tokens": policy.recall_tokens(most),
                "restored_tokens": policy.restored_tokens(brief),
            }
            for (name, policy), begins in zip(
                compose.POLICY.items(), [0.0, *(one.below for one in compose.POLICY.values())], strict=False
            )
        ],
    }


FILLING_TOOLS: dict[str, Tool] = {
    "csm_context_status": Tool(
        summary="How full the contexts of live sessions are, and how much is added to each", mutates=False, run=_status,
        parameters=PLACE, lane="status",
    ),
}  # fmt: skip


def _build(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if params["mode"] not in ("host", "seed"):
        raise BadInput(f"mode is host or seed, not {params['mode']!r}")
    user = user_of(tools.config)
    place, disk = instruction_files.place_of(_directory(rows, params), user), instruction_files.disk()
    loaded = instruction_files.loaded(place, disk)
    problems: list[str] = []
    if params["mode"] == "host":
        files: list[tuple[str, str, str]] = [(one.kind, one.path, one.content) for one in loaded]
        body = instruction_files.build(loaded)
    else:
        files, problems = instruction_files.merged(place, disk)
        files += [("memory", one.path, one.content) for one in loaded if one.kind == "AutoMem"]
        body = "\n\n".join(content for *_, content in files)
    return {
        "project": place.start,
        "mode": params["mode"],
        "text": body,
        "tokens": display.estimate_tokens(body),
        "files": [
            {"scope": scope.lower(), "path": path, "tokens": display.estimate_tokens(content)}
            for scope, path, content in files
        ],
        "problems": problems,
    }


def _scan(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    folder = instruction_files.memory_folder(_directory(rows, params), user_of(tools.config))
    return {"folder": str(folder), "files": [asdict(memo) for memo in instruction_files.scan(folder)]}


def _load(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    folder = instruction_files.memory_folder(_directory(rows, params), user_of(tools.config))
    return {
        "folder": str(folder),
        "file": params["file"],
        "text": instruction_files.load_memo(folder, params["file"]),
    }


def _directory(rows: Rows, params: Params) -> str:
    if not Path(params["project"]).is_dir():
        raise BadInput(f"{params['project']}: there is no such directory", hint="name one that is on this machine")
    places(rows, params)  # a wall holds for files as well
    return str(params["project"])


_PLACE: dict[str, tuple[type, Any]] = {"project": (str, REQUIRED), ASKING: (str, "")}
INSTRUCTIONS_TOOLS: dict[str, Tool] = {
    "csm_context_build": Tool(
        summary="The instructions a session there is given", mutates=False, run=_build,
        parameters={**_PLACE, "mode": (str, "host")},
    ),
    "csm_memdir_scan": Tool(
        summary="The files of the assistant's own memory", mutates=False, run=_scan, parameters={**_PLACE}
    ),
    "csm_memdir_load": Tool(
        summary="One file of the assistant's own memory", mutates=False, run=_load,
        parameters={**_PLACE, "file": (str, REQUIRED)},
    ),
}  # fmt: skip
