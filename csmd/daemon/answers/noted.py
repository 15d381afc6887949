"""How often something is composed, looked for, and found: sums over what was noted, written down or not yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from csmd.daemon.now import iso_before
from csmd.daemon.tool import Params, Tool
from csmd.store import activity
from csmd.store.activity import Composed, Recalled
from csmd.store.sqlite import Rows

if TYPE_CHECKING:
    from csmd.daemon.tools import Tools

MOST_DAYS, MOST = 90, 1000


def _log(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    since = _since(params)
    found = [*_late(tools.steward.noted.waiting()[0], since), *activity.composed_since(rows, since)]
    by_event = {
        event: _sums([one for one in found if one.event == event]) for event in sorted({one.event for one in found})
    }
    limit = min(max(params["limit"], 1), MOST)
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


def _report(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    since = _since(params)
    found = [*_late(tools.steward.noted.waiting()[1], since), *activity.recalled_since(rows, since)]
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


TOOLS: dict[str, Tool] = {
    "csm_context_log": Tool(
        summary="What was composed for sessions, and how often it came to nothing", mutates=False, run=_log,
        parameters={"days": (int, 7), "limit": (int, 20)},
    ),
    "csm_recall_report": Tool(
        summary="How often something was looked for and not found", mutates=False, run=_report,
        parameters={"days": (int, 7)},
    ),
}  # fmt: skip
