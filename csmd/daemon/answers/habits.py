"""Packets, candidates and promotion: what was observed, what waits and why, and what a promotion would do.

Whatever changes memories says first what it would do: nothing is promoted by a tool unless `apply` is set, and the
relaxed thresholds are a person's choice.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from csmd.believe import promote, scan, stage_habits
from csmd.daemon.now import now_iso
from csmd.daemon.tool import PLACE, Params, Tool, places
from csmd.distill import stage_packets
from csmd.errors import BadInput, CsmdError
from csmd.model import Candidate, Packet
from csmd.store import activity, candidates, cursors, memories
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

MOST = 1_000
PROFILES = {"default": promote.DEFAULT, "relaxed": promote.RELAXED}
#: Of a relaxed promotion a person is the author: csmd neither changes nor withdraws what came of it.
BY_PERSON = "promoted"


def _packets(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    found = candidates.latest_packets(rows, projects=places(rows, params), limit=min(max(params["limit"], 1), MOST))
    roots = _roots(rows)
    return {"packets": [_packet_json(one, roots) for one in found]}


def _packet_json(one: Packet, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "at": one.at, "kind": one.kind, "subject": one.subject, "outcome": one.outcome, "session_id": one.session_id,
        "project": roots.get(one.project_seq, ""), "uuid": one.uuid, "state": asdict(one.state),
    }  # fmt: skip


def _report(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    wanted = places(rows, params)
    found = candidates.waiting(rows, projects=wanted, limit=min(max(params["limit"], 1), MOST))
    plan = {action.candidate.id: action for action in stage_habits.look(rows, projects=wanted, profile=promote.DEFAULT)}
    roots, listed = _roots(rows), []
    for one in found:
        action = plan.get(one.id)
        listed.append({**_json(one, roots), "why": list(action.reasons) if action else []})
    return {"counts": _counts(rows, wanted), "candidates": listed}


def _scan_report(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    found = _counts(rows, places(rows, params))
    return {
        "kinds": {
            kind: {"made_of": rule.made_of, "authority": rule.authority, "promoted": rule.promoted, "counts": found.get(kind, {})}
            for kind, rule in scan.KINDS.items()
        }
    }  # fmt: skip


def _scan(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    """Has the steward look now: a past may be long, and somebody waits for an answer."""
    if not tools.config.settings.stages_candidates:
        raise CsmdError("observing is switched off (stages.candidates)", hint="csmd config set stages.candidates true")
    left = len(cursors.sessions_behind(rows, stage_packets.STAGE))
    tools.steward.poke()
    return {"sessions_left": left, "counts": _counts(rows, None)}


def _promote(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    profile = PROFILES.get(params["profile"])
    if profile is None:
        raise BadInput(f"a profile is default or relaxed, not {params['profile']!r}")
    if params["profile"] == "relaxed" and params["apply"] and not params["by_person"]:
        raise CsmdError(
            "the relaxed thresholds are for a person to choose", hint="type `csmd promote --relaxed` in a terminal"
        )
    if params["apply"] and not params["by_person"] and not tools.config.settings.stages_promote:
        raise CsmdError("promotion is switched off", hint="type `csmd promote` in a terminal, or set stages.promote")
    wanted, now, key = places(rows, params), now_iso(), tools.store.hash_key
    made: dict[str, str] = {}
    plan = stage_habits.look(rows, projects=wanted, profile=profile)
    if params["apply"]:
        origin = BY_PERSON if params["profile"] == "relaxed" else memories.INFERRED
        made = tools.store.write(
            lambda writing: stage_habits.carry_out(
                writing,
                # What moved since is planned anew: a plan is only as old as its transaction.
                stage_habits.look(writing, projects=wanted, profile=profile),
                key=key,
                now=now,
                origin=origin,
            )
        )
        tools.steward.poke()
    roots = _roots(rows)
    return {
        "profile": asdict(profile),
        "applied": params["apply"],
        "actions": [
            {
                "step": action.step, "reasons": list(action.reasons),
                "memory_id": made.get(action.candidate.id, action.memory_id), "candidate": _json(action.candidate, roots),
            }
            for action in plan
        ],
    }  # fmt: skip


def _json(one: Candidate, roots: dict[int, str]) -> dict[str, Any]:
    return {
        "id": one.id, "kind": one.kind, "status": one.status, "text": one.text, "reason": one.reason,
        "confidence": one.confidence, "reinforcement": one.reinforcement, "contradicted": one.contradicted,
        "gate": one.gate, "category": one.category, "source": one.source, "project": roots.get(one.project_seq, ""),
        "memory_ids": list(one.memory_ids), "created_at": one.created_at, "updated_at": one.updated_at,
        "evidence": [asdict(source) for source in one.evidence],
    }  # fmt: skip


def _counts(rows: Rows, wanted: list[int] | None) -> dict[str, dict[str, int]]:
    return candidates.counts(rows, projects=wanted)


def _roots(rows: Rows) -> dict[int, str]:
    return {seq: root for seq, root, *_ in activity.project_counts(rows)}


TOOLS: dict[str, Tool] = {
    "csm_memory_packets": Tool(
        summary="List what was observed lately, with how the session went", mutates=False, run=_packets,
        parameters={**PLACE, "limit": (int, 50)},
    ),
    "csm_memory_candidate_report": Tool(
        summary="Show what waits to become a memory, and why it waits", mutates=False, run=_report,
        parameters={**PLACE, "limit": (int, 200)},
    ),
    "csm_belief_scan": Tool(
        summary="Have what recurs in sessions counted, in the background", mutates=True, run=_scan, parameters={},
    ),
    "csm_belief_scan_report": Tool(
        summary="Count the candidates for beliefs by kind and status", mutates=False, run=_scan_report, parameters=PLACE,
    ),
    "csm_belief_promote": Tool(
        summary="Plan which candidates become memories, and do it with apply", mutates=True, run=_promote,
        parameters={**PLACE, "profile": (str, "default"), "apply": (bool, False), "by_person": (bool, False)},
    ),
}  # fmt: skip
