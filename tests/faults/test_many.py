"""Fifty sessions at once, each with its hooks and its growing transcript: all of it stored once, the daemon answering."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

from faults.kill_rounds import World
from machine import LIMIT_S, Machine, eventually

from csmd.cli import settings
from csmd.config import base_interpreter

SESSIONS = 50
TURNS = 2
#: What the daemon may take while fifty talk to it (it promises 80 MB when nothing happens).
MOST_RSS_MB = 120


def script(world: World, session: str) -> str:
    """What the assistant of one session does, in the shell: lines appended, hooks run as they are registered."""
    machine, commands = world.machine, []
    path = world.path(session, None)
    path.parent.mkdir(parents=True, exist_ok=True)

    def hook(event: str, **more: Any) -> None:
        payload = {"session_id": session, "cwd": str(machine.project), "transcript_path": str(path), **more}
        command = settings.hook_command(base_interpreter(), machine.home, event)
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


def test_fifty_sessions_at_once_are_stored_once_and_the_daemon_answers_meanwhile(machine: Machine) -> None:
    world = World(machine, 1)
    machine.start()
    machine.hook("SessionEnd", "warm")
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
    assert len(seen) > 1 and max(seen) < MOST_RSS_MB
