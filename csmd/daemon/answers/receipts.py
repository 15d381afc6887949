"""Why a session was told what it was told: its injections with their memories, as far as who asks may see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd import text
from csmd.daemon.tool import ASKING, PLACE, Params, Tool, places
from csmd.errors import BadInput
from csmd.recall import outcome
from csmd.recall import stage as recall
from csmd.store import failures, memories, quotes, receipts
from csmd.store.receipts import Receipt
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

MOST = 100
#: What is told besides memories, by how its id begins; one of "" is of a checkpoint that was not stored yet.
BESIDE_MEMORIES = {"": "checkpoint", "k": "checkpoint", "g": "goal"}
#: Reasons of what a start is told that is no memory, but what a session came to.
OF_NO_MEMORY = frozenset({outcome.ENDED, outcome.LEFT})
#: What is shown of a turn of which a passage was told.
QUOTED_CHARACTERS = 300


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
        "injections": [_shown(rows, one, seen) for one in found],
    }


def _found(rows: Rows, params: Params) -> list[Receipt]:
    limit = min(max(params["limit"], 1), MOST)
    if params["id"]:
        return _only(receipts.like(rows, params["id"]), params["id"], lambda one: one.id)
    session = params["session"]
    if session:
        known = receipts.sessions_like(rows, session)
        found = _only(known, session, str)
        session = found[0] if found else ""
    else:
        session = receipts.last_session(rows, places(rows, params))
    return receipts.of_session(rows, session, limit=limit) if session else []


def _only(found: list[Any], typed: str, ident: Any) -> list[Any]:
    exact = [one for one in found if ident(one) == typed]
    if len(found) > 1 and not exact:
        raise BadInput(f"{typed!r} begins several: {', '.join(map(ident, found))}", hint="type some more of it")
    return exact or found


def _shown(rows: Rows, receipt: Receipt, seen: list[int] | None) -> dict[str, Any]:
    asked = receipts.prompt(rows, receipt) if receipt.event == "prompt" else None
    may = asked is not None and (seen is None or asked[1] in seen)
    return {
        "id": receipt.id,
        "session_id": receipt.session_id,
        "event": receipt.event,
        "at": receipt.at,
        "tokens": receipt.tokens,
        "prompt": text.cut(text.squeeze(asked[0]), 200) if asked and may else "",
        "items": [_item(rows, *item, seen) for item in receipts.items(rows, receipt)],
    }


def _item(rows: Rows, ident: str, score: float, reason: str, seen: list[int] | None) -> dict[str, Any]:
    """One thing that was told, as it is now; `state` is gone when it was forgotten since, hidden behind a wall."""
    base = {"id": ident, "score": score, "reason": reason}
    if ident[:1] in BESIDE_MEMORIES:
        return {**base, "state": BESIDE_MEMORIES[ident[:1]], "text": ""}
    memory = memories.by_id(rows, ident)
    if memory is None and reason in OF_NO_MEMORY:
        return {**base, "state": "session", "text": ""}
    error = failures.by_id(rows, ident, seen) if memory is None else None
    if error is not None:
        said = f"{error.command}: {error.message}"
        return {**base, "state": "error", "text": said, "times": error.times, "said_at": error.last_at}
    if memory is None and (quote := quotes.quote_of(rows, ident)) is not None:
        if seen is not None and quote.project_seq not in seen:
            return {**base, "state": "hidden", "text": ""}
        said = text.cut(text.squeeze(quote.text), QUOTED_CHARACTERS)
        who = {"authority": quote.kind, "said_at": quote.at, "said_in": quote.session_id}
        return {**base, "state": "quoted", "text": said, **who}
    if memory is None or (seen is not None and memory.project_seq not in seen):
        return {**base, "state": "gone" if memory is None else "hidden", "text": ""}
    source = memory.provenance[0]
    return {
        **base,
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


TOOLS: dict[str, Tool] = {
    "csm_receipt_show": Tool(
        summary="Show what a session was told, and why", mutates=False, run=_show,
        parameters={"id": (str, ""), "session": (str, ""), **PLACE, "limit": (int, 5)},
    ),
}  # fmt: skip
