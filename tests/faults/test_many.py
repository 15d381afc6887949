"""Fifty sessions at once, each with its hooks and its growing transcript: all of it stored once, the daemon answering."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from faults.kill_rounds import World
from machine import LIMIT_S, Machine, eventually

from csmd.config import base_interpreter
from csmd.conversation import Event, Project, Turn
from csmd.hosts.claude import registration
from csmd.store import events, projects, provisional_turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows

SESSIONS = 50
TURNS = 1
#: What the daemon may take while fifty talk to it (it promises 80 MB when nothing happens).
MAX_RSS_MB = 120


def script(world: World, session: str) -> str:
    """What the assistant of one session does, in the shell: lines appended, hooks run as they are registered."""
    machine, commands = world.machine, []
    path = world.path(session, None)
    path.parent.mkdir(parents=True, exist_ok=True)

    def hook(event: str, **more: Any) -> None:
        payload = {"session_id": session, "cwd": str(machine.project), "transcript_path": str(path), **more}
        command = registration.hook_command(base_interpreter(), machine.home, event)
        commands.append(f"printf %s {shlex.quote(json.dumps(payload))} | {{ {command}; }} >/dev/null")

    def line(kind: str, said: str) -> None:
        value = machine.line(kind, said, session=session)
        world.files.setdefault(path, []).append((session, value["uuid"], said))
        commands.append(f"printf '%s\\n' {shlex.quote(json.dumps(value))} >> {shlex.quote(str(path))}")

    hook("SessionStart", source="startup")
    for number in range(TURNS):
        prompt, answer = f"I prefer step {number} of {session} over others.", f"Step {number} of {session} is done."
        hook("UserPromptSubmit", prompt=prompt)
        line("user", prompt)
        line("assistant", answer)
        hook("Stop", last_assistant_message=answer)
    hook("SessionEnd", reason="exit")
    return "\n".join(commands)


@pytest.mark.invariant(
    "A long spool is taken in once and in order while hooks are served; fifty sessions at once are stored once"
)
def test_fifty_sessions_at_once_are_stored_once_and_the_daemon_answers_meanwhile(machine: Machine) -> None:
    world = World(machine, 1)
    machine.start()
    machine.hook("SessionEnd", "warm")
    machine.sync()
    before = machine.status()["counts"]["events"]
    scripts = [script(world, f"s{number}") for number in range(SESSIONS)]
    children = [
        subprocess.Popen(["sh", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for text in scripts
    ]
    seen: list[float] = []

    def all_ended() -> bool:
        seen.append(machine.status()["daemon"]["rss_mb"])
        return all(child.poll() is not None for child in children)

    eventually(all_ended, within_s=LIMIT_S * 4)
    assert [(child.returncode, child.communicate()[0]) for child in children] == [(0, b"")] * SESSIONS
    machine.sync()
    world.check()
    status = machine.status()
    events = SESSIONS * (2 + 2 * TURNS)
    assert status["counts"]["events"] - before == events
    assert status["counts"]["provisional"] == status["counts"]["hook_only"] == 0
    print(f"{events} events of {SESSIONS} sessions; most resident memory {max(seen):.0f} MB in {len(seen)} looks")
    assert len(seen) > 1 and max(seen) < MAX_RSS_MB


def steps_of_a_sweep(path: Path, turns: int) -> int:
    """How much SQLite does to judge the waiting turns of one session that no transcript tells of, in dozens."""
    at = "2026-05-04T08:00:00.000Z"
    store = Store(path, now=at)
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    def work(rows: Rows) -> None:
        place = projects.ensure(rows, Project(key="p", root="/p", name="p", kind="path"), now=at)
        for number in range(turns):
            event = Event(
                id=str(number), host="claude", name="prompt", session_id="s", text=f"n{number}",
                at=f"2026-05-04T08:00:{number / 20:06.3f}Z",
            )  # fmt: skip
            turn = Turn(uuid=f"hook:{number}", session_id="s", kind="user", text=event.text, at=event.at)
            events.record_event(rows, event, text_hash=event.text, payload_hash=event.text)
            assert provisional_turns.add_provisional(
                rows, turn, event=event.name, text_hash=event.text, host="claude", project=place, path=""
            )
        rows.connection.set_progress_handler(count, 12)
        provisional_turns.close_provisional(
            rows,
            provisional_turns.list_expired_provisional(rows, before="2027", after=provisional_turns.START, limit=1000)[
                0
            ],
        )
        rows.connection.set_progress_handler(None)

    try:
        store.write(work)
    finally:
        store.close()
    return steps


def test_the_log_is_bounded_while_a_past_is_imported_and_others_ask(machine: Machine) -> None:
    old, log = machine.root / "old" / "-project", machine.home / "csmd.db-wal"
    for number in range(6):
        said = [f"Word{number}x{turn} is what we speak of. " + "Go on with that. " * 120 for turn in range(20)]
        lines = [machine.line("user", text, session=f"s{number}") for text in said]
        machine.transcript(*lines, session=f"s{number}", folder=old)
    child = machine.start(constants={"csmd.store.core.LOG_LIMIT_BYTES": 1 << 18})
    job, sizes, over = machine.call("csm_import", path=str(old.parent), vectors=False)["job"], [0], threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            machine.call("csm_memory_search", query="what we speak of", project="")

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(look) for _ in range(2)]
        state = ""
        while state not in ("done", "failed"):
            assert machine.event("UserPromptSubmit", "live", prompt="Fix the parser.")[0] == "ok"
            state = machine.call("csm_job", id=job)["state"]
            over.wait(0.05)
            sizes.append(log.stat().st_size if log.exists() else 0)
        over.set()
        for reader in readers:
            reader.result()
    assert state == "done"
    assert max(sizes) < 2 << 20, f"the log of a database of {machine.paths.database.stat().st_size} bytes"
    machine.stop(child)


def test_turns_that_no_transcript_tells_of_do_not_make_every_sweep_longer_and_longer(tmp_path: Path) -> None:
    """Twice as many cost twice as much, not four times: a session may be of thousands, and a sweep is every 30 s."""
    few, many = steps_of_a_sweep(tmp_path / "few.db", 100), steps_of_a_sweep(tmp_path / "many.db", 200)
    assert 0 < few < many < 3 * few, (few, many)
