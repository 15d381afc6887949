"""The daemon writes the days and what goes on; it reaches no further than its folder, and a purge takes along what it wrote."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from in_process import settle
from machine import Machine

from csmd.daemon.context import to_iso, to_local_time

START = 1000.0
MARK = "Zanzibar quokka"


def said_ago(machine: Machine, hours: float, text: str, session: str = "s1") -> None:
    """A session that ended so many hours ago."""
    lines = []
    for number, (kind, body) in enumerate([("user", text), ("assistant", "The prices are in cents now.")]):
        line = machine.line(kind, body, session=session)
        lines.append({**line, "timestamp": to_iso(datetime.now(UTC) - timedelta(hours=hours, seconds=-number))})
    machine.transcript(*lines, session=session)


def files(memory: Path) -> list[str]:
    return sorted(str(path.relative_to(memory)) for path in memory.rglob("*") if path.is_file())


def test_the_background_writes_what_has_ended_by_day_and_what_goes_on_by_session(parts: Any) -> None:
    said_ago(
        parts.machine,
        26,
        f"The prices of the {MARK} are always kept in cents, never in floats.",
        session="first-session",
    )
    said_ago(parts.machine, 0.1, "and now the receipts of the till", session="s2")
    settle(parts)
    memory = parts.machine.paths.memory
    day = to_local_time(to_iso(datetime.now(UTC) - timedelta(hours=26))).date().isoformat()
    assert files(memory) == [f"daily/{day}.md", f"daily/{day}.yaml", "sessions/s2.yaml"]
    assert MARK in (memory / f"daily/{day}.md").read_text() and parts.background.context.trouble == {}
    parts.background.context.config = parts.machine.config(stages_daily=False)
    (memory / "sessions/s2.yaml").unlink()
    job = parts.call("csm_privacy_purge", what="first-session", kind="session", by_person=True, dry_run=False)["job"]
    settle(parts)
    assert parts.background.context.tasks[job].state == "done", parts.background.context.tasks[job]
    assert files(memory) == [], "a purged session leaves its day, also where none is written any more"


def test_a_session_of_which_nothing_came_is_read_once_while_another_goes_on(parts: Any) -> None:
    said_ago(parts.machine, 26, "what does the till do at noon?", session="first-session")
    said_ago(parts.machine, 0.1, "and now the receipts of the till", session="s2")
    settle(parts)
    assert files(parts.machine.paths.memory) == ["sessions/s2.yaml"]


@pytest.mark.parametrize("how", ["turned off", "behind a link"])
def test_nothing_is_written_where_it_is_turned_off_or_cannot_be(parts: Any, how: str) -> None:
    memory, elsewhere = parts.machine.paths.memory, parts.machine.root / "elsewhere"
    if how == "turned off":
        parts.background.context.config = parts.machine.config(stages_daily=False)
    else:
        elsewhere.mkdir()
        memory.symlink_to(elsewhere)
    said_ago(parts.machine, 26, "please keep the prices of the till in cents")
    said_ago(parts.machine, 0.1, "and now the receipts of the till", session="s2")
    list(parts.background.stages.run_until_done())  # as a sync does: nothing is raised
    settle(parts)
    assert not memory.exists() or files(elsewhere) == []
    troubles = [what for what in parts.background.context.trouble if what.startswith("daily files")]
    assert troubles == (["daily files"] if how == "behind a link" else []), json.dumps(parts.background.context.trouble)
