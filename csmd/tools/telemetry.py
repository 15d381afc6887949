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
    since = _find_start(ctx, days)
    compositions = [*_unwritten_since(ctx.unwritten()[0], since), *telemetry_rows.read_since(rows, Composition, since)]
    return {
        "since": since,
        "events": {event: _count_compositions(group) for event, group in _group_by(compositions, "event").items()},
        "log": [composition._asdict() for composition in compositions[: clamp_limit(limit, MAX_LOG_ROWS)]],
    }  # fmt: skip


def _count_compositions(compositions: Sequence[Composition]) -> Json:
    return {
        "composed": len(compositions), "silent": sum(1 for composition in compositions if not composition.chosen),
        "degraded": sum(1 for composition in compositions if composition.degraded),
        "cut": sum(1 for composition in compositions if composition.cut),
        "tokens": sum(composition.tokens for composition in compositions),
        **_percentiles_ms([composition.ms for composition in compositions]),
    }  # fmt: skip


@TOOLS.add("csm_recall_report")
def _report_lookups(ctx: ToolContext, rows: Rows, days: int = 7) -> Json:
    """Show how often searches found nothing."""
    since = _find_start(ctx, days)
    lookups = [*_unwritten_since(ctx.unwritten()[1], since), *telemetry_rows.read_since(rows, Lookup, since)]
    return {
        "since": since, "kinds": {kind: _count_lookups(group) for kind, group in _group_by(lookups, "kind").items()},
    }  # fmt: skip


def _group_by(entries: Sequence[Any], field: str) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for entry in entries:
        groups.setdefault(getattr(entry, field), []).append(entry)
    return dict(sorted(groups.items()))


def _count_lookups(lookups: Sequence[Lookup]) -> Json:
    different = len(Counter(lookup.query_hash for lookup in lookups))
    return {
        "asked": len(lookups), "empty": sum(1 for lookup in lookups if not lookup.results), "different": different,
        "asked_again": len(lookups) - different, "results": sum(lookup.results for lookup in lookups),
        **_percentiles_ms([lookup.ms for lookup in lookups]),
    }  # fmt: skip


def _percentiles_ms(times_ms: Sequence[int]) -> dict[str, int]:
    ordered = sorted(times_ms)
    return {"median_ms": ordered[len(ordered) // 2], "p95_ms": ordered[len(ordered) * 19 // 20]}


def _unwritten_since(waiting: Sequence[Any], since: str) -> list[Any]:
    return [entry for entry in waiting if entry.at >= since]


def _find_start(ctx: ToolContext, days: int) -> str:
    return ctx.before(clamp_limit(days, MAX_DAYS) * 86_400)
