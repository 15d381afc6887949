"""Clocks that go backwards, stand in 1970 or in 9999: no turn is lost or twice, order is the transcript's, no age is negative.

The daemon's clock is moved by a file that the test writes: the real daemon, whose `datetime.now` adds what is in it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import forked_process
import pytest
from faults.kill_rounds import World
from machine import Daemon, Machine, eventually

DAEMON = """
import sys
from datetime import datetime, timedelta
from pathlib import Path
from csmd.daemon import context, housekeeping, jobs

step = Path(sys.argv.pop())

class Moved(datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + timedelta(days=float(step.read_text()))

context.datetime = housekeeping.datetime = Moved
jobs.LIVE_SWEEP_S, jobs.TICK_S = 0.2, 0.1
from csmd.daemon.__main__ import main
sys.exit(main())
"""
STEPS_DAYS = (0.0, -1.0, 2.0, 1.99, -3650.0, 365_000.0, 0.0)
#: Times as a transcript's lines may have them, in the order of the lines.
TIMES = (
    "2026-05-04T10:00:00.000Z", "2026-05-04T09:00:00.000Z", "1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z",
    "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999-14:00", "0001-01-01T00:00:00.000+14:00", "soon", "", None, 7,
    "2026-05-05T00:00:00.000+02:00", "2026-05-04T10:00:01.000Z",
)  # fmt: skip
#: What the turns speak of, each of a matter of its own.
SUBJECTS = (
    "logging in shell scripts", "dates on invoices", "tests of the parser", "icons in menus", "mail to suppliers", "maps of harbours",
    "sorting large tables", "colours of charts", "names of branches", "backups at night", "passwords of guests", "fonts in letters",
    "queues between services",
)  # fmt: skip
#: The days of these: what cannot be read has the time of its neighbour.
DAYS = {"2026-05-04", "9999-12-31", "0001-01-01"}


def set_clock(machine: Machine, days: float) -> None:
    half = machine.root / "clock.half"
    half.write_text(str(days))
    half.rename(machine.root / "clock")


def daemon(machine: Machine) -> Daemon:
    child = forked_process.spawn("-c", DAEMON, str(machine.root / "clock"), cwd=machine.root, env=machine.environment())
    machine.daemons.append(child)
    eventually(lambda: child.poll() is not None or machine.paths.endpoint.exists())
    assert child.poll() is None, (child.stderr.read() if child.stderr else b"", machine.log())
    return child


def test_a_clock_that_is_set_to_and_fro_loses_and_doubles_nothing(machine: Machine) -> None:
    world = World(machine, 1)
    world.clock_is_set = True
    set_clock(machine, STEPS_DAYS[0])
    daemon(machine)
    path = world.path("s1", None)
    late = []
    for days in STEPS_DAYS:
        set_clock(machine, days)
        for line in late:  # what was reported before the step is brought by the transcript after it
            machine.transcript(line)
        late = []
        for kind, event, key in (
            ("user", "UserPromptSubmit", "prompt"),
            ("assistant", "Stop", "last_assistant_message"),
        ):
            said = f"I prefer step {world.number()} over the others."
            assert machine.event(event, "s1", transcript_path=str(path), **{key: said})[0] == "ok"
            line = machine.line(kind, said)
            line["timestamp"] = (datetime.now(UTC) + timedelta(days=days)).isoformat().replace("+00:00", "Z")
            world.files.setdefault(path, []).append(("s1", line["uuid"], said))
            late.append(line)
            alone = f"Only the hook tells of step {world.number()}."
            world.reported.setdefault("h1", []).append(alone)
            assert machine.event("Stop", "h1", last_assistant_message=alone)[0] == "ok"
        ident, payload = world.event("h2")
        world.reported.setdefault("h2", []).append(payload["last_assistant_message"])
        world.spool(ident, payload)
        eventually(lambda: not machine.spooled())
        status = machine.status()
        assert status["daemon"]["uptime_s"] >= 0
    for line in late:
        machine.transcript(line)
    machine.sync()
    world.check()
    assert machine.status()["counts"]["provisional"] <= len(world.reported["h1"]) + len(world.reported["h2"])


@pytest.mark.invariant(
    "File events are hints; the sweep finds everything. Order is the transcript's, whatever the clocks say"
)
def test_turns_of_any_time_are_kept_in_the_transcripts_order_and_no_age_is_negative(machine: Machine) -> None:
    world = World(machine, 1)
    set_clock(machine, 0)
    path = world.path("s1", None)
    for number, time in enumerate(TIMES):
        said = f"I prefer number{number} for {SUBJECTS[number]}."
        line = machine.line("user", said)
        line["timestamp"] = time
        world.files.setdefault(path, []).append(("s1", line["uuid"], said))
        machine.transcript(line)
    daemon(machine)
    machine.sync()
    world.check()
    with world.copy() as db:
        days = db.execute("select project_seq, day from activity").fetchall()
        assert {day for _, day in days} == DAYS and len(days) == len(set(days))
        for project, confirmed, hot, warm, archive in db.execute(
            "select project_seq, confirmed_at, hot_until, warm_until, archive_at from memories"
        ):
            today = sum(scope == project for scope, _ in days)
            then = sum(scope == project and day <= confirmed[:10] for scope, day in days)
            assert 0 < then <= today, "no memory is of a day to come"
            assert then - 1 <= hot <= warm <= archive
        assert db.execute("select count(*) from memories").fetchone()[0] >= len(TIMES) / 2
    assert json.loads(machine.run("memories", "--json").stdout)["memories"]
    for zone in ("Asia/Tokyo", "America/New_York"):
        for words in (["memories"], ["status"], ["search", "number3 number4", "--kind", "all"]):
            done = machine.run(*words, TZ=zone)
            assert (done.returncode, done.stderr) == (0, ""), (zone, words, done)


@pytest.mark.parametrize("last", ["9999-12-31T23:59:59.999Z", "2026-05-04T10:00:00.000Z"])
def test_a_session_whose_last_turn_is_still_to_come_is_distilled_all_the_same(machine: Machine, last: str) -> None:
    """Without `csmd sync`: by the background thread alone, which waits for a session to be quiet."""
    set_clock(machine, 0)
    Path(machine.assistant / "projects").mkdir(parents=True)
    daemon(machine)
    lines = [machine.line("user", "Please look at it."), machine.line("assistant", "It is looked at.")]
    for line in lines:
        line["timestamp"] = last
    machine.transcript(*lines)

    def reached() -> int:
        with World(machine, 1).copy() as db:
            found = db.execute("select position from cursors where stage = 'distill'").fetchone()
        return found[0] if found else 0

    eventually(lambda: reached() == len(lines))
