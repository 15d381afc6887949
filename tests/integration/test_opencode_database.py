"""OpenCode on one machine with csmd: its database is followed while it is written, and its plugin tells what is known."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from machine import Machine, eventually
from opencode_database import Database

from csmd.text import display

SAID = "From now on we always round fares to five cents in the ticket printer."
ASKED = "How are fares rounded in the ticket printer?"


@pytest.fixture
def database(machine: Machine) -> Iterator[Database]:
    """The database of an OpenCode that is at work, with csmd installed for it."""
    made = Database(machine.root / ".local" / "share" / "opencode" / "opencode.db")
    done = machine.run("install", "--host", "claude", "--host", "opencode", "--no-start")
    assert done.returncode == 0, done.stderr
    yield made
    made.close()


def say(database: Database, session: str, prompt: str, answer: str) -> None:
    """One prompt and its answer."""
    database.prompt(session, prompt)
    database.answer(session, answer)


def turns(machine: Machine) -> int:
    """How many turns are stored."""
    return int(machine.status()["counts"]["turns"])


def texts(machine: Machine, session: str) -> list[str]:
    """What is stored of a session."""
    stored = machine.call("csm_session_transcript", id=f"opencode:{session}")["conversation"]
    return [turn["text"] for turn in stored]


def hook(machine: Machine, event: str, **more: Any) -> str:
    """What the launcher prints for an event that the plugin reports."""
    payload = {"session_id": "ses_other", "cwd": str(machine.project), **more}
    done = subprocess.run(
        [str(machine.paths.hook_dir / "opencode"), event], input=json.dumps(payload).encode(),
        capture_output=True, timeout=60, check=False, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""


@pytest.mark.invariant("One project, one memory, whatever the assistant")
def test_what_is_said_in_opencode_is_told_to_claude_code_and_the_other_way(
    machine: Machine, database: Database
) -> None:
    session = database.session(str(machine.project))
    say(database, session, SAID, "It is done.")
    machine.start()
    machine.conversation("earlier")
    machine.sync()
    assert "round fares to five cents" in machine.hook("SessionStart", "c1", source="startup").decode()
    answer = machine.csmd("recall", "--project", str(machine.project), "--prompt", ASKED, "--json")
    assert (
        "round fares to five cents" in answer["text"]
        and display.shorten_session_id(f"opencode:{session}") in answer["text"]
    )
    brief = hook(machine, "SessionStart", source="startup")
    assert "pathlib" in brief and "LISTEN" in brief, brief
    hosts = {row["host"]: row for row in machine.status()["hosts"]}
    assert (hosts["opencode"]["sessions"], hosts["opencode"]["turns"], hosts["opencode"]["hooks"]) == (1, 2, "there")
    (row,) = [row for row in machine.call("csm_session_list")["sessions"] if row["id"] == f"opencode:{session}"]
    assert row["transcript"] == "there"


def test_a_database_is_followed_while_it_is_written(machine: Machine, database: Database) -> None:
    session = database.session(str(machine.project))
    say(database, session, SAID, "It is done.")
    daemon = machine.start()
    eventually(lambda: turns(machine) == 2)
    say(database, session, ASKED, "To five cents.")
    eventually(lambda: turns(machine) == 4)
    daemon.kill()
    daemon.wait()
    say(database, session, "Print the date.", "It is printed.")
    machine.start()
    eventually(lambda: turns(machine) == 6)
    machine.sync()
    assert texts(machine, session)[-2:] == ["Print the date.", "It is printed."] and turns(machine) == 6


def test_what_the_plugin_reports_without_a_daemon_becomes_the_databases_turn(
    machine: Machine, database: Database
) -> None:
    session = database.session(str(machine.project))
    place = str(database.path / session)
    assert hook(machine, "UserPromptSubmit", session_id=session, transcript_path=place, prompt=SAID) == ""
    (waiting,) = machine.spooled()
    assert waiting.read_bytes().split(b"\n")[0].split(b" ")[3:5] == [b"opencode", b"UserPromptSubmit"]
    say(database, session, SAID, "It is done.")
    machine.start()
    machine.sync()
    assert machine.spooled() == [] and texts(machine, session) == [SAID, "It is done."]


def test_a_copy_of_a_database_is_imported(machine: Machine, database: Database) -> None:
    session = database.session(str(machine.project))
    say(database, session, SAID, "It is done.")
    copy = machine.root / "copies" / "opencode.db"
    copy.parent.mkdir()
    database.rows.execute("vacuum into ?", (str(copy),))
    machine.start()
    shown = machine.csmd("import", str(copy), "--dry-run", "--json")
    assert shown["source"] == "transcripts"
    done = machine.csmd("import", str(copy), "--json")
    assert (done["files"], texts(machine, session)) == (1, [SAID, "It is done."])


def test_uninstalling_takes_the_plugin_away_and_leaves_what_was_there(machine: Machine, database: Database) -> None:
    plugins = machine.root / ".config" / "opencode" / "plugins"
    assert str(machine.paths.hook_dir / "opencode.js") in (plugins / "csmd.js").read_text()
    written = (plugins / "csmd.js").read_bytes()
    assert machine.run("install", "--no-start").returncode == 0 and (plugins / "csmd.js").read_bytes() == written
    assert "csmd.js" in machine.run("uninstall", "--dry-run").stdout
    assert machine.run("uninstall").returncode == 0
    assert not (machine.root / ".config" / "opencode").exists()


def test_uninstalling_leaves_a_plugin_that_was_changed_and_says_so(machine: Machine, database: Database) -> None:
    plugin = machine.root / ".config" / "opencode" / "plugins" / "csmd.js"
    plugin.write_text(f"{plugin.read_text()}export const mine = async () => ({{}})\n")
    extended = plugin.read_bytes()
    done = machine.run("uninstall")
    assert "csmd.js was kept: it was edited since csmd wrote it" in done.stdout + done.stderr
    assert plugin.read_bytes() == extended
