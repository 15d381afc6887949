"""A database that is deleted, moved or replaced under the daemon that has it open: what was acknowledged is never lost.

Events that were acknowledged are counted against the turns that are found after what the alarm says was done.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine import Daemon, Machine, eventually

from csmd.store import backup


class Talk:
    """Prompts reported to a daemon, and those that were acknowledged."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.said: list[str] = []
        self.acknowledged: list[str] = []

    def say(self, number: int) -> set[str]:
        """So many prompts more, by hooks' events; the answers. What is not acknowledged a real hook spools."""
        answers = set()
        for _ in range(number):
            prompt = f"prompt number {len(self.said)} of this session"
            self.said.append(prompt)
            answer, _ = self.machine.event("UserPromptSubmit", prompt=prompt)
            answers.add(answer)
            if answer == "ok":
                self.acknowledged.append(prompt)
        return answers

    def say_by_hook(self, number: int) -> None:
        """So many prompts more, by the registered command."""
        for _ in range(number):
            self.said.append(f"prompt number {len(self.said)} of this session")
            self.acknowledged.append(self.said[-1])  # a hook keeps it in the spool, else the daemon has it
            self.machine.hook("UserPromptSubmit", prompt=self.said[-1])

    def stored(self) -> list[str]:
        """The prompts that the database at its path holds, sorted."""
        with sqlite3.connect(self.machine.paths.database) as rows:
            return sorted(text for (text,) in rows.execute("select text from turns where kind = 'user'"))

    def alarm(self) -> str:
        alarms = self.machine.status()["alarms"]
        return alarms[0]["what"] if alarms else ""


@pytest.fixture
def talk(machine: Machine) -> Iterator[Talk]:
    yield Talk(machine)


def refused(talk: Talk) -> None:
    """Nothing is acknowledged, and the daemon says so on every channel that it has."""
    assert "ok" not in talk.say(3)
    assert talk.machine.call("csm_session_line", id="s1")["line"] == "csmd: not recording"


def rescued(machine: Machine) -> Path:
    """The copy that the daemon makes of what it has open."""
    return eventually(lambda: next(iter(backup.list_backups(machine.paths.database)), None))


def done(talk: Talk, child: Daemon, *verb: str) -> None:
    """Ends the daemon, does what the alarm says and finds every prompt that was acknowledged, once."""
    machine = talk.machine
    machine.stop(child)
    if verb:
        machine.csmd(*verb)
    child = machine.daemons[-1] if machine.instance() else machine.start()
    machine.sync()
    assert not machine.spooled()
    assert talk.alarm() == ""
    assert talk.say(1) == {"ok"}
    machine.csmd("stop")
    assert talk.stored() == sorted({*talk.acknowledged})


@pytest.mark.invariant(
    "An acknowledged event is in the database that is found at its path: where that file was deleted, moved or replaced under the daemon nothing is acknowledged, an alarm says what to do, and a copy of what was open goes into the backups"
)
@pytest.mark.parametrize("ending", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL])
@pytest.mark.parametrize("gone", [("",), ("", "-wal", "-shm")], ids=["the file", "its log too"])
def test_a_deleted_database_takes_no_more_and_the_next_start_goes_on_with_its_copy(
    talk: Talk, gone: tuple[str, ...], ending: signal.Signals
) -> None:
    machine = talk.machine
    child = machine.start()
    assert talk.say(5) == {"ok"}
    for suffix in gone:
        Path(f"{machine.paths.database}{suffix}").unlink()
    refused(talk)
    talk.say_by_hook(3)
    assert len(machine.spooled()) == 3
    assert talk.alarm().endswith("is gone, only the daemon still has it open")
    assert b"nothing can be stored" in machine.hook("SessionStart", source="startup")
    rescued(machine)
    os.kill(child.pid, ending)
    child.wait(60)
    done(talk, machine.start())


def test_a_daemon_whose_database_stays_away_goes_on_with_its_copy_by_itself(talk: Talk) -> None:
    machine = talk.machine
    child = machine.start(constants={"csmd.daemon.jobs.MISSING_FILE_S": 0})
    assert talk.say(5) == {"ok"}
    machine.paths.database.unlink()
    talk.say_by_hook(3)
    eventually(lambda: not machine.spooled())
    assert child.poll() is None
    done(talk, child)


@pytest.mark.parametrize("moment", ["stopping", "stopped", "csmd continues with the copy"])
def test_a_daemon_that_is_ended_while_it_begins_anew_ends(talk: Talk, moment: str) -> None:
    machine = talk.machine
    child = machine.start(constants={"csmd.daemon.jobs.MISSING_FILE_S": 0})
    assert talk.say(5) == {"ok"}
    machine.paths.database.unlink()
    eventually(lambda: moment in machine.log())
    assert machine.stop(child) == 0
    assert not machine.paths.instance.exists()
    done(talk, machine.start())


def test_a_database_that_is_deleted_again_goes_on_with_a_copy_of_all_that_came_in_between(talk: Talk) -> None:
    machine = talk.machine
    child = machine.start()
    talk.say(5)
    away = machine.home / "elsewhere.db"
    machine.paths.database.rename(away)
    rescued(machine)
    away.rename(machine.paths.database)
    assert talk.say(2) == {"ok"}
    machine.paths.database.unlink()
    assert machine.stop(child) == 0
    done(talk, machine.start())


def test_the_copy_of_a_database_that_came_back_is_never_taken_for_a_later_one(talk: Talk) -> None:
    machine = talk.machine
    child = machine.start(constants={"csmd.daemon.jobs.EVERY_S": 0.1})
    talk.say(5)
    away = machine.home / "elsewhere.db"
    machine.paths.database.rename(away)
    copy = rescued(machine)
    os.kill(child.pid, signal.SIGSTOP)  # no later copy is made
    away.rename(machine.paths.database)
    os.kill(child.pid, signal.SIGCONT)
    assert talk.say(2) == {"ok"}
    child.kill()
    child.wait(60)
    machine.paths.database.unlink()
    assert machine.spawn().wait(60) == 1
    assert copy.exists()
    assert not machine.paths.database.exists()


def test_a_deleted_database_of_which_no_copy_was_made_is_not_begun_anew(talk: Talk) -> None:
    machine = talk.machine
    child = machine.start()
    talk.say(4)
    machine.csmd("backup")
    child.kill()
    child.wait(60)
    machine.paths.database.unlink()
    assert machine.spawn().wait(60) == 1
    assert not machine.paths.database.exists()
    done(talk, child, "repair")


def test_a_database_that_is_moved_away_and_back_goes_on_by_itself(talk: Talk) -> None:
    machine = talk.machine
    child = machine.start()
    talk.say(5)
    away = machine.home / "elsewhere.db"
    machine.paths.database.rename(away)
    refused(talk)
    talk.say_by_hook(3)
    away.rename(machine.paths.database)
    eventually(lambda: not machine.spooled())
    assert talk.say(2) == {"ok"}
    done(talk, child)


def test_a_directory_that_is_moved_away_and_back_goes_on_by_itself(talk: Talk) -> None:
    machine = talk.machine
    child = machine.start()
    talk.say(5)
    socket, away = machine.socket, machine.home.with_name("elsewhere")
    machine.home.rename(away)
    assert not socket.exists()
    away.rename(machine.home)
    assert talk.say(2) == {"ok"}
    done(talk, child)


def replaced(talk: Talk) -> list[str]:
    """Puts a backup in the place of the database that is open; the prompts in it."""
    machine = talk.machine
    talk.say(4)
    made, early = Path(machine.csmd("backup", "--json")["path"]), list(talk.acknowledged)
    talk.say(4)
    made.rename(machine.home / "copy.db").replace(machine.paths.database)
    refused(talk)
    talk.say_by_hook(2)
    assert talk.alarm().endswith("another file has replaced the database")
    rescued(machine)
    return early


@pytest.mark.parametrize("ending", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL])
def test_another_database_in_its_place_goes_on_at_the_next_start_without_the_log_of_the_old_one(
    talk: Talk, ending: signal.Signals
) -> None:
    child = talk.machine.start()
    early = replaced(talk)
    os.kill(child.pid, ending)
    child.wait(60)
    talk.acknowledged = [*early, *talk.acknowledged[-2:]]
    done(talk, talk.machine.start())
    assert list(talk.machine.home.glob("damaged-*/csmd.db-wal"))


def test_what_another_database_took_the_place_of_is_restored_from_its_copy(talk: Talk) -> None:
    child = talk.machine.start()
    replaced(talk)
    done(talk, child, "restore", "latest", "--yes")


def test_what_was_committed_while_the_file_was_elsewhere_is_not_stored_twice(talk: Talk) -> None:
    machine = talk.machine
    child = machine.start()
    talk.say(2)
    machine.paths.database.rename(machine.home / "elsewhere.db")
    payload = {"prompt": "one that is reported again", "ident": "e" * 32}
    assert machine.event("UserPromptSubmit", **payload)[0] != "ok"
    (machine.home / "elsewhere.db").rename(machine.paths.database)
    assert [machine.event("UserPromptSubmit", **payload)[0] for _ in range(2)] == ["ok", "ok"]
    talk.acknowledged.append(payload["prompt"])
    done(talk, child)
