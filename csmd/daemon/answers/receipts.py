"""Why a session was told what it was told: its injections with their memories, as far as who asks may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd import text
from csmd.daemon.now import iso_before
from csmd.daemon.tool import ASKING, PLACE, REQUIRED, Params, Tool, places
from csmd.errors import BadInput
from csmd.recall import last_sessions, living_state, prompt, usage
from csmd.recall import stage as recall
from csmd.store import failures, memories, receipts, search, turns
from csmd.store.receipts import Item, Receipt
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

#: What is told besides memories, by how its id begins; one of "" is of a checkpoint that was not stored yet.
BESIDE_MEMORIES = {"": "checkpoint", "k": "checkpoint", "g": "goal"}
#: Reasons of what a start is told that is no memory, but what a session came to.
OF_NO_MEMORY = frozenset({last_sessions.ENDED, last_sessions.LEFT})
#: What is shown of a turn of which a passage was told.
QUOTED_CHARACTERS = 300
MOST, MOST_LISTED = 100, 1000
WEEK_S = 7 * 86_400
#: What a thing's state says where its text is not told.
UNSEEN = ("gone", "hidden")


def _list(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    where, session = places(rows, params), _session(rows, params["session"])
    limit = min(max(params["limit"], 1), MOST_LISTED)
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


def _show(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
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
    limit = min(max(params["limit"], 1), MOST)
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
        "prompt": text.cut(text.squeeze(asked[0]), 200) if asked and may else "",
        "items": [_item(rows, item, seen, marks.get(item.id, ())) for item in receipts.items(rows, receipt)],
    }


def _item(rows: Rows, item: Item, seen: list[int] | None, marks: tuple[str, ...]) -> dict[str, Any]:
    """One thing that was told, why, and whether it was used."""
    found = thing(rows, item.id, seen, reason=item.reason)
    if found["state"] == "quoted":
        found["text"] = text.cut(text.squeeze(found["text"]), QUOTED_CHARACTERS)
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


def _get(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
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


TOOLS: dict[str, Tool] = {
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
