"""Tools on how often injections were composed and searches made, and how often they were empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from csmd.store import telemetry_rows
from csmd.store.sqlite import Rows
from csmd.store.telemetry_rows import Composition, Lookup
from csmd.tools.declaration import Json, ToolContext, Tools, clamp_limit

TOOLS = Tools()
#: Most days that a report covers.
MAX_DAYS = 90
#: Most entries of the log in an answer.
MAX_LOG_ROWS = 1000


@TOOLS.add("csm_context_log")
def _show_log(ctx: ToolContext, rows: Rows, days: int = 7, limit: int = 20) -> Json:
    """Show what was composed for sessions, and how often it was empty."""
    since = _start_time(ctx, days)
    compositions = [*_unwritten_since(ctx.unwritten()[0], since), *telemetry_rows.read_since(rows, Composition, since)]
    events = {
        event: _composition_counts([composition for composition in compositions if composition.event == event])
        for event in sorted({composition.event for composition in compositions})
    }
    return {
        "since": since,
        "events": events,
        "log": [composition._asdict() for composition in compositions[: clamp_limit(limit, MAX_LOG_ROWS)]],
    }


def _composition_counts(compositions: Sequence[Composition]) -> Json:
    return {
        "composed": len(compositions),
        "silent": sum(1 for composition in compositions if not composition.chosen),
        "degraded": sum(1 for composition in compositions if composition.degraded),
        "cut": sum(1 for composition in compositions if composition.cut),
        "tokens": sum(composition.tokens for composition in compositions),
        **_time_percentiles([composition.ms for composition in compositions]),
    }


@TOOLS.add("csm_recall_report")
def _report_lookups(ctx: ToolContext, rows: Rows, days: int = 7) -> Json:
    """Show how often searches found nothing."""
    since = _start_time(ctx, days)
    lookups = [*_unwritten_since(ctx.unwritten()[1], since), *telemetry_rows.read_since(rows, Lookup, since)]
    kinds = {
        kind: _lookup_counts([lookup for lookup in lookups if lookup.kind == kind])
        for kind in sorted({lookup.kind for lookup in lookups})
    }
    return {"since": since, "kinds": kinds}


def _lookup_counts(lookups: Sequence[Lookup]) -> Json:
    different = len(Counter(lookup.query_hash for lookup in lookups))
    return {
        "asked": len(lookups),
        "empty": sum(1 for lookup in lookups if not lookup.results),
        "different": different,
        "asked_again": len(lookups) - different,
        "results": sum(lookup.results for lookup in lookups),
        **_time_percentiles([lookup.ms for lookup in lookups]),
    }


def _time_percentiles(times_ms: Sequence[int]) -> dict[str, int]:
    ordered = sorted(times_ms)
    return {"median_ms": ordered[len(ordered) // 2], "p95_ms": ordered[len(ordered) * 19 // 20]}


def _unwritten_since(waiting: Sequence[Any], since: str) -> list[Any]:
    return [entry for entry in waiting if entry.at >= since]


def _start_time(ctx: ToolContext, days: int) -> str:
    return ctx.before(clamp_limit(days, MAX_DAYS) * 86_400)
