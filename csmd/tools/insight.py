"""What csmd knows of itself and of failures: the self model, the living state, errors and their fixes."""

from __future__ import annotations

from typing import Any

from csmd.errors import BadInput
from csmd.extraction import digest
from csmd.memory import self_model
from csmd.memory.self_model import Counted
from csmd.recall import living_state
from csmd.recall import visibility as recall
from csmd.recall.living_state import Line
from csmd.store import candidates, digests, failures, memories
from csmd.store import sessions as stored
from csmd.store.digests import Row
from csmd.store.sqlite import Rows
from csmd.tools import sessions as of_sessions
from csmd.tools.memories import brief_json
from csmd.tools.registry import ASKING, PLACE, REQUIRED, Params, Tool, ToolContext, places

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
            "reason": self_model.reason(link.rule, link.about),
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


def _view(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if params["id"]:
        return _shown(rows, params)
    found = digests.latest(rows, projects=places(rows, params), limit=min(max(params["limit"], 1), 200))
    named = stored.named(rows, [row.session_seq for row in found])
    return {"digests": [{"session": named[row.session_seq], **_digest(row)} for row in found]}


def _distill(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    session = of_sessions.one(rows, params)
    digest.digest_now(tools.store, rows, session.seq)
    return {"id": session.id, "made": True}


def _self(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
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
            for one in self_model.capabilities(counted)
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


SELF_MODEL_TOOLS: dict[str, Tool] = {
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


def _lines(rows: Rows, params: Params) -> list[Line]:
    places = recall.asked(rows, params["project"] or "/", asking=params[ASKING]) or [0]
    return living_state.lines(rows, places=places)


def _told(tools: ToolContext, lines: list[Line]) -> dict[str, Any]:
    made = living_state.fenced(living_state.blocks(lines), max_tokens=living_state.MAX_TOKENS)
    return {
        "note": living_state.LABEL,
        "enabled": tools.config.settings.stages_advisory,
        "max_tokens": living_state.MAX_TOKENS,
        **brief_json(tools, made),
    }


def _preview(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    return _told(tools, _lines(rows, params))


def _debug(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    lines = _lines(rows, params)
    return {
        **_told(tools, lines),
        "trimmed": [part for part, _ in sorted(living_state.PARTS.items(), key=lambda row: row[1].stays)],
        "lines": [
            {
                "part": one.part,
                "id": one.id,
                "text": one.text,
                "tail": one.tail,
                "told": one.why == "told",
                "why": one.why,
            }
            for one in lines
        ],
    }


_PLACE: dict[str, tuple[type, Any]] = {"project": (str, REQUIRED), ASKING: (str, "")}
LIVING_STATE_TOOLS: dict[str, Tool] = {
    "csm_living_state_preview": Tool(
        summary="Preview of the living state: recent experience, signals, how work ended, what is held", mutates=False,
        run=_preview, parameters=_PLACE,
    ),
    "csm_living_state_debug": Tool(
        summary="Why each line of the living state is told or not", mutates=False, run=_debug, parameters=_PLACE
    ),
}  # fmt: skip


MOST = 200


def _list(tools: ToolContext, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["id"]:
        found = failures.listing(rows, places(rows, params), limit=min(max(params["limit"], 1), MOST))
        return {"errors": [_errors_shown(rows, one) for one in found]}
    named = failures.by_id(rows, params["id"], places(rows, params))
    if named is None:
        raise BadInput(f"there is no error {params['id']!r}", hint="`csmd errors` lists them with their ids")
    return {"errors": [_errors_shown(rows, named)]}


def _errors_shown(rows: Rows, one: failures.Seen) -> dict[str, Any]:
    memory = memories.by_id(rows, one.memory_id) if one.memory_id else None
    return {
        "id": one.id,
        "fingerprint": one.fingerprint,
        "command": one.command,
        "exit_code": one.exit_code,
        "message": one.message,
        "times": one.times,
        "sessions": one.sessions,
        "first_at": one.first_at,
        "last_at": one.last_at,
        "fixed_at": one.fixed_at,
        "fixed_files": list(one.fixed_files),
        "fixed_by": one.fixed_by,
        "fixed_uuid": one.fixed_uuid,
        "memory_id": one.memory_id,
        "memory": memory.text if memory else "",
    }


ERRORS_TOOLS: dict[str, Tool] = {
    "csm_error_list": Tool(
        summary="List what failed, how often, and what mended it", mutates=False, run=_list,
        parameters={"id": (str, ""), **PLACE, "limit": (int, 20)},
    ),
}  # fmt: skip
