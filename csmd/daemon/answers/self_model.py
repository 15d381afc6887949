"""What csmd says of the assistant's own work: digests of its sessions, what they build on, how they end.

Told as what was seen, as far as who asks may see it: neither advice nor a promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.believe import causal, selfmodel
from csmd.believe.selfmodel import Counted
from csmd.daemon.answers import sessions as of_sessions
from csmd.daemon.tool import ASKING, PLACE, REQUIRED, Params, Tool, places
from csmd.distill import stage_digest
from csmd.recall import stage as recall
from csmd.store import candidates, digests
from csmd.store import sessions as stored
from csmd.store.digests import Row
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

PREVIEW = "counted from how sessions ended; a preview, not durable truth"
#: Links of a session that are told at most.
MOST_LINKS = 20


def digests_of(rows: Rows, session_seq: int) -> list[dict[str, Any]]:
    """Every version of a session's digest, the first first."""
    return [_digest(row) for row in digests.of_session(rows, session_seq)]


def links_of(rows: Rows, session_seq: int, ident: str, *, seen: list[int] | None) -> list[dict[str, Any]]:
    """What a session builds on, and what builds on it, as far as that is seen."""
    return [
        {
            "direction": "builds_on" if link.to_id == ident else "leads_to",
            "session": link.from_id if link.to_id == ident else link.to_id,
            "kind": link.kind,
            "rule": link.rule,
            "reason": causal.reason(link.rule, link.about),
            "weight": link.weight,
            "at": link.at,
            "evidence": digests.link_evidence(rows, link.seq),
        }
        for link in digests.links_of_session(rows, session_seq, projects=seen)[:MOST_LINKS]
    ]


def _digest(row: Row) -> dict[str, Any]:
    return {
        "version": row.version, "why": row.why, "at": row.at, "outcome": row.outcome, "prompts": row.prompts,
        "tool_calls": row.calls, "tokens": row.tokens, "text": row.text,
    }  # fmt: skip


def _shown(rows: Rows, params: Params) -> dict[str, Any]:
    session = of_sessions.one(rows, params)
    seen = recall.seen(rows, asking=params[ASKING])
    return {
        "id": session.id,
        "project": session.project,
        "digests": digests_of(rows, session.seq),
        "links": links_of(rows, session.seq, session.id, seen=seen),
    }


def _view(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if params["id"]:
        return _shown(rows, params)
    found = digests.latest(rows, projects=places(rows, params), limit=min(max(params["limit"], 1), 200))
    named = stored.named(rows, [row.session_seq for row in found])
    return {"digests": [{"session": named[row.session_seq], **_digest(row)} for row in found]}


def _distill(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    session = of_sessions.one(rows, params)
    stage_digest.digest_now(tools.store, rows, session.seq)
    return {"id": session.id, "made": True}


def _self(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    among = places(rows, params)
    counted = [Counted(*row) for row in digests.outcomes_counted(rows, projects=among)]
    return {
        "note": PREVIEW,
        "sessions": len({one.session_id for one in counted}),
        "capabilities": [
            {
                "name": one.name, "confidence": one.confidence, "well": one.well, "decided": one.decided,
                "sessions": one.sessions, "since": one.since, "last_at": one.last_at, "evidence": list(one.evidence),
            }
            for one in selfmodel.capabilities(counted)
        ],
        "drift": [
            {
                "id": one.id, "text": one.text, "reason": one.reason, "since": one.created_at,
                "evidence": [evidence.uuid for evidence in one.evidence],
            }
            for one in candidates.waiting(rows, projects=among)
            if one.kind == "drift_warning"
        ],
        "continuity": [
            dict(zip(("what", "name", "since", "until", "sessions"), row, strict=True)) | {"type": "self_continuity"}
            for row in digests.continuity(rows, projects=among)
        ],
        "links": digests.link_counts(rows, projects=among),
    }  # fmt: skip


TOOLS: dict[str, Tool] = {
    "csm_memory_distill": Tool(
        summary="Distill a session's tool calls and statements into its digest, now", mutates=True, run=_distill,
        parameters={"id": (str, REQUIRED), ASKING: (str, "")},
    ),
    "csm_memory_distilled_view": Tool(
        summary="View distilled summaries: of a session, or the latest of a project", mutates=False, run=_view,
        parameters={"id": (str, ""), **PLACE, "limit": (int, 10)},
    ),
    "csm_self_model": Tool(
        summary="View how kinds of work ended, with confidence, drift warnings and continuity", mutates=False, run=_self,
        parameters=PLACE,
    ),
}  # fmt: skip
