"""A pause holds with and without a daemon, and afterwards too: after a restart, an import, a repair and a restore."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from machine import PREFERENCE, Machine, eventually

BEFORE, DURING, AFTER = "the heron stands", "the bittern booms", "the egret flies"


def say(machine: Machine, said: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    """A line that the assistant writes now."""
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    made = {**machine.line("user", said, session=session), "timestamp": stamp, **more}
    machine.transcript(made, session=session)
    return made


def texts(machine: Machine) -> list[str]:
    found = machine.csmd("session", "list", "--all-projects", "--json")["sessions"]
    return [
        turn["text"] for row in sorted(found, key=lambda row: str(row["id"]))
        for turn in machine.csmd("session", "transcript", row["id"], "--json")["conversation"]
    ]  # fmt: skip


def files_with(machine: Machine, said: str) -> list[str]:
    """The files of the home that hold a text."""
    return [
        str(path) for path in machine.home.rglob("*") if path.is_file() and said.encode() in path.read_bytes()
    ]  # fmt: skip


@pytest.mark.invariant(
    "What was said in a pause is stored by no way, then or later; all else is, once and in order; nobody is told anything meanwhile"
)
def test_what_is_said_in_a_pause_is_nowhere_in_the_home_whatever_happens_next(machine: Machine) -> None:
    daemon = machine.start()
    say(machine, BEFORE)
    machine.hook("UserPromptSubmit", prompt=BEFORE)
    machine.sync()
    machine.csmd("pause")
    machine.hook("UserPromptSubmit", prompt=f"{DURING} 1")
    say(machine, f"{DURING} 1")
    machine.sync()
    assert machine.status()["counters"]["paused events"] == machine.status()["counters"]["paused turns"] == 1
    machine.csmd("backup")
    machine.stop(daemon)
    # No daemon runs: hooks spool, the transcript grows.
    machine.hook("UserPromptSubmit", prompt=f"{DURING} 2")
    say(machine, f"{DURING} 2")
    say(machine, f"{DURING} 3", session="s2")
    machine.csmd("resume", "--yes")
    machine.hook("UserPromptSubmit", "s1", prompt=AFTER)
    say(machine, AFTER)
    daemon = machine.start()
    machine.sync()
    eventually(lambda: not machine.spooled())
    assert texts(machine) == [BEFORE, AFTER]
    # Read again as another tree's.
    elsewhere = machine.root / "elsewhere" / "-p"
    elsewhere.mkdir(parents=True)
    for path in (machine.assistant / "projects").rglob("*.jsonl"):
        (elsewhere / path.name).write_bytes(path.read_bytes())
    machine.csmd("import", str(elsewhere.parent), "--no-vectors")
    assert texts(machine) == [BEFORE, AFTER]
    # Another database, from the transcripts; then one from before.
    machine.stop(daemon)
    machine.paths.database.write_bytes(b"damaged" * 5000)
    for path in machine.home.glob("csmd.db-*"):
        path.unlink()
    machine.run("repair")
    assert texts(machine) == [BEFORE, AFTER]
    machine.csmd("restore", "latest", "--yes")
    machine.sync()
    assert texts(machine) == [BEFORE, AFTER]
    assert files_with(machine, DURING) == []
    assert files_with(machine, AFTER)


@pytest.mark.invariant(
    "What was said in a pause is stored by no way, then or later; all else is, once and in order; nobody is told anything meanwhile"
)
def test_while_paused_no_session_is_told_anything_and_only_a_person_states(machine: Machine) -> None:
    machine.start()
    machine.transcript(machine.line("user", PREFERENCE))
    machine.sync()
    assert b"pathlib" in machine.event("SessionStart", "s8", source="startup")[1]
    machine.csmd("pause", "--for", "2h")
    assert machine.event("SessionStart", "s9", source="startup") == ("ok", b"")
    assert machine.event("UserPromptSubmit", "s9", prompt="what about pathlib here?") == ("ok", b"")
    for shown in (
        ["brief"],
        ["recall", "--prompt", "what about pathlib here?"],
        ["recall", "--file", "src/pathlib.py"],
    ):
        said = machine.csmd(*shown, "--project", str(machine.project))
        assert said.split() == "csmd is paused: sessions get no notes until `csmd resume`".split()
    refused = machine.run("remember", "the worker is called heron")
    assert (refused.returncode, "csmd is paused" in refused.stderr) == (1, True)
    assert "pathlib" in machine.csmd("search", "pathlib")  # who asks is answered
    machine.csmd("resume", "--yes")
    assert b"pathlib" in machine.event("SessionStart", "s9", source="startup")[1]


def test_a_pause_says_how_long_it_is_and_ends_by_itself(machine: Machine) -> None:
    machine.start()
    shown = machine.csmd("pause", "--for", "90m")
    assert "(90m)" in shown and all(len(row) <= 80 for row in shown.splitlines())
    first = machine.status()["paused"]
    assert first["until"] > first["since"]
    again = machine.csmd("pause", "--json")["paused"]  # one that is on goes on
    assert again == {"since": first["since"], "until": "", "by": "a program"}
    assert machine.status()["paused"] == again
    machine.csmd("pause", "--for", "1s")
    eventually(lambda: machine.status()["paused"] is None)
    assert machine.csmd("resume", "--yes") == "csmd was not paused\n"
    assert machine.event("UserPromptSubmit", prompt=AFTER)[0] == "ok"
    assert machine.status()["counts"]["turns"] == 1


def test_without_a_home_there_is_nothing_to_pause_and_a_length_must_be_one(machine: Machine) -> None:
    refused = machine.run("pause")
    assert (refused.returncode, "csmd install" in refused.stderr) == (1, True)
    machine.home.mkdir(mode=0o700)
    refused = machine.run("pause", "--for", "soon")
    assert (refused.returncode, "30m, 2h" in refused.stderr, machine.paths.pauses.exists()) == (1, True, False)
    assert "No daemon runs now" in machine.csmd("pause")
    assert machine.paths.pauses.stat().st_mode & 0o777 == 0o600


def test_pauses_that_cannot_be_read_stop_a_daemon_that_starts_and_trouble_one_that_runs(machine: Machine) -> None:
    machine.start()
    machine.csmd("pause")
    machine.paths.pauses.write_text("{")
    machine.sync()  # a step of the background thread, which looks at the file
    eventually(lambda: any("pauses.json" in reason for reason in machine.status()["degraded"]))
    assert machine.event("UserPromptSubmit", prompt=DURING)[0] == "ok"
    assert machine.status()["counts"]["turns"] == 0
    machine.run("stop")
    refused = machine.run("start")
    assert refused.returncode == 1 and "not a list of pauses" in refused.stderr


def test_commands_at_once_lose_none_of_their_pauses(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    command = [sys.executable, "-m", "csmd"]
    running = [
        subprocess.Popen([*command, *verb], cwd=machine.project, env=machine.environment(), stdout=subprocess.DEVNULL)
        for verb in (["pause"], ["resume", "--yes"], ["pause"], ["resume", "--yes"])
    ]
    assert [child.wait(60) for child in running] == [0] * 4
    rows = json.loads(machine.paths.pauses.read_bytes())["pauses"]
    assert 1 <= len(rows) <= 2 and all(row["from"] for row in rows)


# --- .csmd-off


def test_a_mark_in_the_project_has_its_sessions_left_out_until_it_is_taken_away(machine: Machine) -> None:
    machine.start()
    machine.transcript(machine.line("user", PREFERENCE))
    machine.sync()
    (machine.project / ".csmd-off").touch()
    inner = machine.project / "src"
    inner.mkdir()
    assert machine.event("SessionStart", "s9", source="startup", cwd=str(inner)) == ("ok", b"")
    refused = machine.run("remember", "The worker is called heron.")
    assert refused.returncode == 1 and "excluded this directory" in refused.stderr
    say(machine, DURING, session="s2", cwd=str(inner))
    machine.sync()
    status = machine.status()
    # The session of before lies there, too: what it goes on with is left out, what was captured stays.
    assert status["excluded"]["events"] == 1 and status["excluded"]["transcripts"] >= 1
    assert texts(machine) == [PREFERENCE]
    listed = machine.csmd("project", "list")
    assert "not captured" in listed and ".csmd-off" in listed
    assert machine.csmd("project", "list", "--json")["projects"][0]["off"] is True
    assert f"left out   {machine.project}/.csmd-off:"[:40] in machine.csmd("status")
    (machine.project / ".csmd-off").unlink()
    say(machine, AFTER, session="s2", cwd=str(inner))
    machine.sync()
    assert texts(machine) == [PREFERENCE, AFTER]
    assert machine.csmd("project", "list", "--json")["projects"][0]["off"] is False
    assert machine.event("UserPromptSubmit", "s9", prompt="go on", cwd=str(inner))[0] == "ok"
    status = machine.status()
    assert (status["counts"]["turns"], status["excluded"]["transcripts"]) == (3, 0)


def test_the_line_below_a_session_says_that_csmd_is_paused(machine: Machine) -> None:
    machine.start()
    assert machine.call("csm_session_line", id="s1")["line"] == ""
    machine.csmd("pause")
    assert machine.call("csm_session_line", id="s1")["line"] == "csmd: paused"
    machine.csmd("resume", "--yes")
    assert machine.call("csm_session_line", id="s1")["line"] == ""
