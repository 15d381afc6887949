"""What failed in a project, how often, and what mended it last; in whose words a memory was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from csmd.daemon.tool import PLACE, Params, Tool, places
from csmd.errors import BadInput
from csmd.model import Memory
from csmd.recall import stage as recall
from csmd.store import failures, memories, search
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

MOST = 200


def _list(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if not params["id"]:
        found = failures.listing(rows, places(rows, params), limit=min(max(params["limit"], 1), MOST))
        return {"errors": [_shown(rows, one) for one in found]}
    named = failures.by_id(rows, params["id"], places(rows, params))
    if named is None:
        raise BadInput(f"there is no error {params['id']!r}", hint="`csmd errors` lists them with their ids")
    return {"errors": [_shown(rows, named)]}


def _shown(rows: Rows, one: failures.Seen) -> dict[str, Any]:
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


def gotcha_json(rows: Rows, memory: Memory, *, asking: str) -> dict[str, Any]:
    """In whose words a memory was asked for, and what was said against it, as far as who asks may see it."""
    reported = failures.symptoms_of(rows, [memory.seq]).get(memory.seq, [])
    against = failures.refutations_of(rows, memory.seq)
    turns = search.turns_of_uuids(rows, [uuid for uuid, *_ in [*reported, *against]])
    places = {seq: turn.project_seq for seq, turn in search.turns_by_seq(rows, list(turns.values())).items()}
    seen = {uuid for uuid, seq in turns.items() if seq in places and recall.is_seen(rows, places[seq], asking=asking)}
    reasons = {reason: (uuid, at) for uuid, at, reason in against if uuid in seen}  # of each the last time
    return {
        "symptoms": [{"uuid": uuid, "at": at, "text": said} for uuid, at, said in reported if uuid in seen],
        "refuted": [{"uuid": uuid, "at": at, "reason": reason} for reason, (uuid, at) in reasons.items()],
    }


TOOLS: dict[str, Tool] = {
    "csm_error_list": Tool(
        summary="List what failed, how often, and what mended it", mutates=False, run=_list,
        parameters={"id": (str, ""), **PLACE, "limit": (int, 20)},
    ),
}  # fmt: skip
