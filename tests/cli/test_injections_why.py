"""`csmd why` tells what a session was told and why, to whom may see it; logs and completion do without a daemon."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from machine import CORRECTION, PREFERENCE, Machine, eventually

from csmd.cli import main

ASKED = "which config key for the database url, was it db_url or database_url?"


@pytest.fixture(scope="module")
def told(shared_machine: Machine) -> Machine:
    """A machine on which one session was told a brief and another one answers to its prompt."""
    shared_machine.conversation()
    shared_machine.start()
    shared_machine.sync()
    assert shared_machine.event("SessionStart", "first-1", source="startup")[1]
    assert shared_machine.event("UserPromptSubmit", "second-2", prompt=ASKED)[1]
    return shared_machine


def test_the_last_session_here_is_told_with_its_prompt_and_what_matched(told: Machine) -> None:
    value = told.csmd("why", "--json")
    (injection,) = value["injections"]
    assert (value["session_id"], injection["event"], injection["prompt"]) == ("second-2", "prompt", ASKED)
    item = injection["items"][0]
    assert item["text"].endswith("database_url, not db_url") and item["reason"] == "bears on the prompt"
    assert (item["authority"], item["said_in"], item["state"]) == ("user", "s1", "there")
    shown = told.csmd("why")
    assert "you asked: which config key" in shown and "bears on the prompt" in shown
    assert item["score"] >= value["floor"], "the relevance that was compared with the floor"
    assert f"relevance {item['score']:.2f}" in shown and f"of at least {value['floor']:g} (recall.floor)" in " ".join(
        shown.split()
    )
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_session_or_a_receipt_is_named_by_its_beginning(told: Machine) -> None:
    value = told.csmd("why", "--session", "first", "--json")
    (injection,) = value["injections"]
    assert (injection["event"], injection["prompt"], len(injection["items"])) == ("session_start", "", 3)
    assert {item["reason"] for item in injection["items"]} >= {"a rule without exception"}
    assert "a rule without exception" in told.csmd("why", "--session", "first")
    again = told.csmd("why", "--receipt", injection["id"][:9], "--json")["injections"]
    assert [one["id"] for one in again] == [injection["id"]]


def test_an_id_alone_is_that_of_a_session_a_receipt_or_a_memory(told: Machine) -> None:
    of_session = told.csmd("why", "--session", "first-1", "--json")
    assert told.csmd("why", "first", "--json") == of_session
    (injection,) = of_session["injections"]
    assert told.csmd("why", injection["id"], "--json")["injections"][0]["id"] == injection["id"]
    memory = told.csmd("why", "second", "--json")["injections"][0]["items"][0]["id"]
    about = told.csmd("why", memory, "--json")["injections"]
    assert {row["session_id"] for row in about} == {"first-1", "second-2"}
    assert {item["id"] for row in about for item in row["items"]} == {memory}
    shown = told.csmd("why", memory)
    assert "session first-1" in shown and "session second-2" in shown


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--session", "9999"], "there is no session '9999'"),
        (["--session", "s1"], "session s1 was shown nothing"),
        (["s1"], "session s1 was shown nothing"),
        (["--receipt", "rffff"], "there is no session, memory or receipt 'rffff'"),
        (["22222222"], "there is no session, memory or receipt '22222222'"),
    ],
    ids=" ".join,
)
def test_an_id_with_nothing_told_is_said_to_be_unknown_or_untold(told: Machine, words: list[str], reason: str) -> None:
    refused = told.run("why", *words)
    assert refused.returncode == 1 and reason in refused.stderr


def test_where_nobody_was_told_anything_that_is_said(told: Machine) -> None:
    assert "no session here got notes" in told.csmd("why", "--project", str(told.root))


def test_what_is_behind_a_wall_is_not_told_outside(machine: Machine) -> None:
    machine.conversation()
    machine.start()
    machine.sync()
    machine.event("SessionStart", "inside-1", source="startup")
    inside = str(machine.project)
    walled = machine.call("csm_project_lens", name="acme", places=inside, wall=True, by_person=True)
    assert walled["projects"]
    assert machine.call("csm_receipt_show", session="inside-1", asking=inside)["injections"]
    assert machine.run("why", "--session", "inside-1").returncode == 0
    found = machine.call("csm_receipt_show", asking=str(machine.root))
    assert found["injections"] == [] and "database_url" not in json.dumps(found)


def test_a_memory_that_was_forgotten_stands_in_no_receipt(machine: Machine) -> None:
    machine.transcript(machine.line("user", PREFERENCE), machine.line("user", CORRECTION))
    machine.start()
    machine.sync()
    machine.event("SessionStart", "s9", source="startup")
    ident = machine.csmd("why", "--json")["injections"][0]["items"][0]["id"]
    machine.call("csm_memory_delete", id=ident, by_person=True)
    left = machine.csmd("why", "--json")["injections"][0]["items"]
    assert len(left) == 1 and ident not in machine.csmd("why")


# --- logs


def test_the_log_says_what_was_done_in_words_and_numbers(machine: Machine) -> None:
    assert machine.run("logs").returncode == 1
    machine.hook("UserPromptSubmit", prompt=PREFERENCE)
    machine.start()
    eventually(lambda: not machine.spooled())
    elsewhere = machine.conversation("s4", folder=machine.root / "else" / "-p")
    machine.csmd("import", str(elsewhere), "--no-vectors")
    machine.csmd("pause")
    machine.csmd("resume", "--yes")
    machine.csmd("backup")
    shown = machine.csmd("logs")
    for said in (
        "stored 1 event that hooks spooled", "import: 1 file, 6 new turns, 3 new memories in", "paused until it is resumed",
        "not paused", "backup: ", "listening, directories of transcripts: 0",
    ):  # fmt: skip
        assert said in " ".join(shown.split()), said
    assert (
        all(len(line) <= 80 for line in shown.splitlines())
        and "pathlib" not in shown
        and str(machine.root) not in shown
    )
    lines = machine.csmd("logs", "-n", "2", "--json")["lines"]
    assert [line["level"] for line in lines] == ["info", "info"] and lines[-1]["text"].startswith("backup: ")


def test_an_hour_is_one_line_and_an_hour_of_nothing_none(machine: Machine, caplog: Any) -> None:
    from csmd.daemon.context import now_iso
    from csmd.daemon.logs import HOUR_S, HourlyLog
    from csmd.store import activity, files
    from csmd.store.core import Store

    files.make_private(machine.home)
    store = Store(machine.paths.database, now=now_iso())

    try:
        hourly = HourlyLog()
        caplog.set_level("INFO")
        assert [hourly.log_if_due(store, now) for now in (0.0, 1.0, HOUR_S)] == [False, False, False]
        store.write(lambda rows: activity.increment_counters(rows, [("bad lines", 2), ("redacted api-key", 9)]))
        assert hourly.log_if_due(store, HOUR_S + 1) is False
        assert hourly.log_if_due(store, 2 * HOUR_S) is True
        assert hourly.log_if_due(store, 3 * HOUR_S) is False
        assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
            "2 lines that could not be read"
        ]
    finally:
        store.close()


def test_trouble_is_told_in_words_and_so_is_its_end(machine: Machine) -> None:
    machine.start()
    path = machine.conversation()
    machine.sync()
    path.unlink()
    path.symlink_to("/proc/self/mem")  # it can be opened, and not be read
    machine.run("sync", "--no-vectors")
    path.unlink()
    machine.conversation()
    machine.sync()
    shown = " ".join(machine.csmd("logs").split())
    assert "transcript: Input/output error; see `csmd status`" in shown and "transcript: works again" in shown
    assert str(path) not in shown


# --- completion


@pytest.mark.parametrize("shell", sorted(main.COMPLETION_FILES))
def test_the_script_of_each_shell_is_one_that_the_shell_takes(machine: Machine, shell: str, tmp_path: Path) -> None:
    done = machine.run("completion", shell)
    assert (done.returncode, main.COMPLETION_FILES[shell].split()[0] in done.stderr) == (0, True)
    assert "_CSMD_COMPLETE" in done.stdout
    if shutil.which(shell):
        script = tmp_path / "csmd"
        script.write_text(done.stdout)
        subprocess.run([shell, "-n", str(script)], check=True, timeout=30)


def test_verbs_and_options_are_completed(machine: Machine) -> None:
    def completed(words: str) -> list[str]:
        done = machine.run(_CSMD_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" ")))
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert completed("csmd ") == main.visible_verbs()
    assert completed("csmd pau") == ["pause"]
    assert "--version" in completed("csmd --")
    assert completed("csmd config uns") == ["unset"]
    assert completed("csmd pause --f") == ["--for"]


def test_the_command_line_imports_nothing_heavy_before_a_verb_needs_it(machine: Machine) -> None:
    heavy = ("rich", "zmq", "yaml", "numpy", "apsw", "starlette", "mcp", "ruamel")
    code = f"import sys, csmd.cli.main; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], env=machine.environment(), capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_under_the_id_of_a_line_stands_what_it_quoted(machine: Machine) -> None:
    machine.start()
    machine.transcript(
        machine.line("user", "Draw the totals, and show me which renderer we use for invoices and why.", session="s1"),
        machine.line(
            "assistant",
            "I drew the totals in src/paper.py. We use Cairo for invoices because the printers are old.",
            session="s1",
        ),
        session="s1",
    )
    machine.sync()
    asked = "which renderer do we use for invoices with the old printers?"
    made = json.loads(machine.event("UserPromptSubmit", "s2", prompt=asked)[1])["hookSpecificOutput"][
        "additionalContext"
    ]
    lines = [line[2:].rpartition(" (")[0] for line in made.splitlines() if line.startswith("- ")]
    (injection,) = machine.call("csm_receipt_show", session="s2")["injections"]
    texts = [item["text"] for item in injection["items"]]
    assert lines and all(any(line in text for text in texts) for line in lines), (lines, texts)
