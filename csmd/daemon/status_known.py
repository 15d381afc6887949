"""What `csmd status` tells from rows: counts, projects, who works now, the room that is used; no table is read whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from csmd.capture.hosts import claude_environment
from csmd.config import Config
from csmd.daemon import clients, growth, kept, retention
from csmd.daemon.now import iso
from csmd.dream import page_edits
from csmd.recall import compose
from csmd.store import activity, receipts, sessions, speakers, vectors
from csmd.store.sqlite import Rows

#: A session without a turn for this long is nobody's any more.
LIVE = timedelta(hours=1)
WEEK = timedelta(days=7)
MOST_LIVE = 5


def known(rows: Rows, config: Config, model: str | None, *, now: datetime, key: bytes) -> dict[str, Any]:
    """What the rows tell at `now`; `model` is the embedding model's identity. StoreError where they cannot be read."""
    counters, known_clients = activity.counters(rows), clients.told(rows, config)
    figures = retention.figures(rows, config.settings, counters)
    return {
        "waiting": vectors.left(rows, vectors.model_seq(rows, model)) if model else 0,
        "counts": activity.known(rows),
        "memories": _memories(activity.memories_by(rows)),
        "counters": counters,
        "corrected": speakers.corrected(rows, counters),
        "last_event": activity.last_event(rows),
        "last_read": activity.last_read(rows),
        "live": live(rows, now=now, limit=MOST_LIVE),
        "projects": [
            {"root": root, "name": title, "sessions": number, "memories": count, "last": last}
            for _, root, title, number, count, last in activity.project_counts(rows)
        ],
        "told": asdict(receipts.told_since(rows, iso(now - WEEK))),
        "transcripts": kept.transcripts(rows, config),
        "storage": {
            **figures,
            "growth": growth.growth(
                activity.size_list(rows), used=figures["used_bytes"], today=now.astimezone(UTC).date()
            ),
        },
        "clients": known_clients,
        "pages": page_edits.told(rows, config.paths.memory, key=key),
        "warnings": [*retention.warnings(rows, config.settings), *clients.warnings(known_clients, config)],
    }


def nothing() -> dict[str, Any]:
    """What is told when no row can be read."""
    return {
        "waiting": 0,
        "counts": dict.fromkeys(dict(activity.COUNTED), 0),
        "memories": _memories([]),
        "counters": {},
        "corrected": None,
        "last_event": {},
        "last_read": "",
        "live": [],
        "projects": [],
        "told": asdict(receipts.Uses(0, 0, 0, 0, 0)),
        "dream": None,
        "transcripts": None,
        "storage": {},
        "clients": None,
        "pages": None,
        "warnings": [],
    }


def live(rows: Rows, *, now: datetime, limit: int, among: list[int] | None = None) -> list[dict[str, Any]]:
    """The sessions that go on, the latest first: how many tokens each has in its context, of how many, and its bracket."""
    return [_live(*row) for row in sessions.live(rows, since=iso(now - LIVE), limit=limit, projects=among)]


def _memories(found: list[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    gates: Counter[str] = Counter()
    tiers: Counter[str] = Counter()
    for gate, tier, amount in found:
        gates[gate] += amount
        tiers[tier] += amount
    return {"by_gate": dict(gates), "by_tier": dict(tiers)}


def _live(session: str, project: str, model: str, last: str, tokens: int) -> dict[str, Any]:
    window = claude_environment.window(model, tokens)
    return {
        "session": session,
        "project": project,
        "model": model,
        "last": last,
        "tokens": tokens,
        "window": window,
        "bracket": compose.of(tokens, window),
    }
