"""`csmd report`: secrets, names and words are planted wherever a report looks; not one of them stands in it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import Machine, event_frames
from machine import ask as raw_ask
from planted import bare, forms

from csmd.doctor import report
from csmd.doctor.report import LEFT_OUT, PARTS, Redactor, make_placeholders

#: Words that stand nowhere in csmd; each is planted at a place of its own.
WORDS = (
    "quokkabird", "zanzibarine", "wombatesque", "narwhalish", "axolotlian", "pangolinous", "okapistic", "kakapoing",
    "numbattle", "dugongly", "tarsieric", "ayeayeish", "fossalike", "binturongo", "gharialic", "hoatzinly",
)  # fmt: skip


def secrets() -> list[str]:
    """One of every kind, on one line each."""
    return [value for value in bare("report").values() if "\n" not in value]


def plant(machine: Machine) -> tuple[list[str], Path]:
    """A machine in use by somebody whose every name, sentence and setting is one of WORDS or a secret; what is planted."""
    words, keys = iter(WORDS), secrets()
    project = machine.root / f"{next(words)} {next(words)}"
    project.mkdir()
    machine.csmd("install", "--no-start")
    value = json.loads((machine.assistant / "settings.json").read_bytes())
    foreign = [
        {
            "type": "command",
            "command": f"API_KEY={keys[0]} /opt/{next(words)}/bin/node /x/{next(words)}.js --token {keys[1]}",
        },
        {"type": "command", "command": f"{next(words)}1x2 --key={keys[2]}"},
        {"type": "command", "command": keys[3]},
    ]
    value["hooks"]["PostToolUse"] = [{"matcher": next(words), "hooks": foreign}]
    value["hooks"][next(words)] = [{"hooks": [{"type": "command", "command": "true"}]}]
    value |= {"env": {next(words): keys[4]}, next(words): keys[5], "cleanupPeriodDays": 3, "model": keys[6]}
    (machine.assistant / "settings.json").write_text(json.dumps(value))
    machine.paths.config_file.write_text(f"privacy.redact: ['{next(words)}']\nprivacy.exclude: ['/x/{next(words)}']\n")
    state = {
        "projects": {
            str(place): {"hasTrustDialogAccepted": False, "history": [keys[7]]} for place in (project, machine.project)
        },
        "mcpServers": {keys[8]: {}},
    }
    (machine.assistant / ".claude.json").write_text(json.dumps(state))
    machine.start()
    for number, secret in enumerate(keys):
        machine.transcript(machine.line("user", f"I prefer {next(iter(WORDS))} over {secret}", session=f"s{number}", cwd=str(project)),
                           session=f"s{number}")  # fmt: skip
    machine.sync()
    machine.event("UserPromptSubmit", keys[9], cwd=str(project), prompt=f"remember {keys[10]} {next(words)}")
    raw_ask(machine.socket, event_frames("Stop", f"{{{keys[11]}".encode()))
    with machine.paths.log_file.open("a") as log:  # nothing of the kind ever stands there: the last line of defence
        log.write(f"2026-01-01 00:00:00,000 ERROR csmd.daemon.run: {next(words)} at {project}/{keys[12]}\n")
    (machine.paths.log_dir / "crash.txt").write_text(f"csmd 0.1.0\n  File {project}/a.py in f\n{keys[13]}\n")
    (machine.paths.run_dir / "start.stderr").write_text(f"csmd: {machine.root}: '{next(words)}' {keys[14]}\n")
    stray = machine.paths.quarantine / "note"
    stray.parent.mkdir(exist_ok=True)
    stray.write_text(keys[15])
    return [*WORDS, *keys, str(machine.root), machine.root.name], project


def holds(data: bytes, planted: str) -> bool:
    return any(form in data for form in forms(planted))


def check(data: bytes, planted: list[str]) -> None:
    """Not one of these stands in there, in any form."""
    assert [one for one in planted if holds(data, one)] == []


@pytest.mark.invariant("A report holds no byte of what was planted")
def test_of_what_was_planted_no_byte_is_in_the_report(machine: Machine) -> None:
    planted, project = plant(machine)
    target = machine.root / "r.txt"
    shown = machine.run("report", "--to", str(target))
    assert (shown.returncode, shown.stderr) == (0, "")
    text = target.read_text()
    check(target.read_bytes(), planted)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    # what a bug report is for is in it
    for said in ('"PostToolUse": [', '"node"', "<project 1>", "cleanup", "is not trusted", "capture: ok", "rows of"):
        assert said in text, said
    sessions = machine.status()["counts"]["sessions"]
    assert sessions >= len(secrets()) and f'"sessions": {sessions}' in text
    # a search that finds nothing at all would prove nothing
    there = b"".join(path.read_bytes() for path in machine.root.rglob("*") if path.is_file() and path != target)
    assert sum(holds(there, one) for one in planted) >= len(planted) - 4
    assert str(project) not in shown.stdout


def test_what_is_in_a_report_is_listed_and_nothing_is_hidden(machine: Machine) -> None:
    machine.csmd("install", "--no-start")
    told = machine.csmd("report", "--json")
    path = machine.paths.log_dir / "report.txt"
    assert told["path"] == str(path) and told["bytes"] == path.stat().st_size
    assert [part["name"] for part in told["parts"]] == [name for name, *_ in PARTS]
    text = path.read_text()
    assert [line.split(":")[0].removeprefix("== ") for line in text.splitlines() if line.startswith("== ")] == [
        part["name"] for part in told["parts"]
    ]
    assert "Nothing was sent" in text.splitlines()[0]
    shown = machine.csmd("report")  # again: the one of before is replaced
    assert all(len(line) <= 80 for line in shown.splitlines()[1:])


def test_a_report_never_takes_another_files_place(machine: Machine) -> None:
    machine.csmd("install", "--no-start")
    mine = machine.root / "mine.txt"
    mine.write_text("my own")
    done = machine.run("report", "--to", str(mine))
    assert done.returncode == 1 and "is not a report of csmd's" in done.stderr
    assert mine.read_text() == "my own"


# --- how a text is told

REDACTOR = Redactor(
    placeholders=make_placeholders(
        {"home": "/h/alice/csmd", "user home": "/h/alice"}, ["/w/secret project"], {"user": "alice"}
    )
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("the daemon runs", "the daemon runs"),
        ("/h/alice/csmd/spool is open", "<home>/spool is open"),
        ("/h/alice/own/acme: no", "<user home>/own/…: no"),
        ("/h/alice2/own", "<path>"),
        ("in /w/secret project now", "in <project 1> now"),
        ("in /w/secret projects", "in <path> projects"),
        ("cannot read ~/clients/acme", "cannot read <path>"),
        ("alice said", "<user> said"),
        ("key sk-abc123DEF", f"key {LEFT_OUT}-{LEFT_OUT}"),
        ("4111 1111 1111 1111", LEFT_OUT),
        ("41111111111111111", LEFT_OUT),
        ("12 events in 84 ms", "12 events in 84 ms"),
        ("Grüße", LEFT_OUT),
    ],
)
def test_a_text_is_told_in_csmds_own_words(said: str, told: str) -> None:
    assert REDACTOR.text(said) == told


@pytest.mark.invariant("A report holds no byte of what was planted")
@settings(max_examples=60)
@given(st.text(alphabet="ab csmd/~-_.9àß…\n<>", max_size=40) | st.text(max_size=20))
def test_no_word_that_is_not_csmds_is_told(said: str) -> None:
    known = report.read_vocabulary()
    for word in report._WORD.findall(REDACTOR.text(said)):
        assert word.isdecimal() or word.lower() in known, word


@settings(max_examples=30)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=8),
        lambda some: st.lists(some) | st.dictionaries(st.text(max_size=8), some),
        max_leaves=8,
    )
)
def test_telling_keeps_the_shape_of_a_value(value: Any) -> None:
    told = REDACTOR.value(value)
    assert type(told) is type(value)
    assert not isinstance(value, list) or len(told) == len(value)
