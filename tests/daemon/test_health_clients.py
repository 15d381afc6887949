"""Which clients and directories are in use: noted in bounds, told in status, acted on once a day and never otherwise."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from machine import PREFERENCE, Machine, eventually

from csmd.daemon import context, health
from csmd.daemon.context import iso
from csmd.daemon.jobs import LIVE_SWEEP_S

START = 1000.0


@pytest.mark.parametrize(
    ("transcript", "folder", "inside"),
    [
        ("/h/.claude-work/projects/-p/s.jsonl", "/h/.claude-work", "-p/s.jsonl"),
        ("/h/c/projects/-p/s/subagents/agent-1.jsonl", "/h/c", "-p/s/subagents/agent-1.jsonl"),
        ("/h/projects/x/projects/-p/s.jsonl", "/h/projects/x", "-p/s.jsonl"),
        ("/h/c/projects/../../c2/projects/-p/s.jsonl", "/h/c2", "-p/s.jsonl"),
        ("/h/c/projects/s.jsonl", None, ""),
        ("/h/c/-p/s.jsonl", None, ""),
        ("/h/c/projects/-p/s.txt", None, ""),
        ("projects/-p/s.jsonl", None, ""),
        ("", None, ""),
    ],
)
def test_the_directory_is_told_by_where_the_transcript_lies(transcript: str, folder: str | None, inside: str) -> None:
    assert health.directory_of(transcript) == (None if folder is None else Path(folder), inside)


def other_directory(machine: Machine, name: str = ".claude-work") -> Path:
    folder = machine.root / name
    (folder / "projects" / "-project").mkdir(parents=True)
    return folder


@pytest.mark.invariant("A hook cannot lead csmd to a foreign directory")
def test_a_hook_that_names_another_directory_is_not_followed_but_told(parts: Any) -> None:
    folder = other_directory(parts.machine)
    path = parts.machine.conversation(folder=folder / "projects" / "-project")
    parts.background.context.hint_of_hook(str(path))
    parts.background.context.hint_of_hook(str(parts.machine.root / "never" / "projects" / "-p" / "s.jsonl"))
    parts.background.context.hint_of_hook("/etc/projects/-p/s.jsonl")
    parts.background.step(START)
    known = parts.call("csm_clients")
    assert known["elsewhere"] == [str(folder)]
    assert known["directories"] == [str(parts.machine.assistant)]
    (warning,) = health.client_warnings(known, parts.background.context.config)
    assert str(folder) in warning and f"csmd install --config-dir {folder}" in warning
    assert parts.store.read(lambda rows: rows.value("select count(*) from turns")) == 0


def test_a_directory_of_somebody_elses_is_not_noted(parts: Any) -> None:
    folder = other_directory(parts.machine)
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(folder, 12345, 12345)
    parts.background.context.hint_of_hook(str(folder / "projects" / "-p" / "s.jsonl"))
    parts.background.step(START)
    assert parts.call("csm_clients")["elsewhere"] == []


def test_a_known_directory_by_another_name_is_followed(parts: Any) -> None:
    parts.machine.conversation()
    parts.background.step(START)
    (parts.machine.root / "link").symlink_to(parts.machine.assistant)
    before = parts.store.read(lambda rows: rows.value("select count(*) from turns"))
    parts.machine.transcript(parts.machine.line("user", PREFERENCE))
    parts.background.context.hint_of_hook(str(parts.machine.root / "link" / "projects" / "-project" / "s1.jsonl"))
    parts.background.step(START)
    parts.background.step(START)
    assert parts.store.read(lambda rows: rows.value("select count(*) from turns")) == before + 1
    assert parts.call("csm_clients")["elsewhere"] == []


def test_what_hooks_name_between_two_looks_is_bounded(parts: Any) -> None:
    for number in range(1000):
        parts.background.context.hint_of_hook(f"/nowhere/{number}/projects/-p/s.jsonl")
    assert len(parts.background.context.take_elsewhere()) == context.MOST_ELSEWHERE


def today(machine: Machine, version: str, days_ago: float = 0.0) -> Path:
    """A transcript that a client of this version wrote so many days ago."""
    at = iso(datetime.now(UTC) - timedelta(days=days_ago))
    line = {**machine.line("user", PREFERENCE, session=version), "version": version, "timestamp": at}
    return machine.transcript(line, session=version)


def register(machine: Machine, *events: str) -> None:
    """An install record that says that these newer events are registered."""
    record = {"settings": {}, "folders": {}, "assistant_dirs": [], "events": list(events), "needs": "2.1.101"}
    machine.paths.install_record.write_text(json.dumps({**record, "kept_out_by": ""}))


def test_the_versions_of_a_month_are_known_and_csmds_own_lines_name_none(parts: Any) -> None:
    today(parts.machine, "2.1.329")
    today(parts.machine, "2.0.77", days_ago=31)
    today(parts.machine, "2.0.0")
    today(parts.machine, "nightly")
    while parts.background.step(START):
        pass
    assert [row["version"] for row in parts.call("csm_clients")["versions"]] == ["2.1.329"]


def test_an_older_client_has_the_newer_events_taken_out_once_a_day(parts: Any) -> None:
    register(parts.machine, "PostCompact")
    today(parts.machine, "2.1.329")
    parts.background.step(START)
    assert parts.background.clients._child is None
    parts.background.hint(str(today(parts.machine, "2.0.77")))
    parts.background.step(START + LIVE_SWEEP_S)
    (warning,) = health.client_warnings(parts.call("csm_clients"), parts.background.context.config)
    assert "2.0.77" in warning and "PostCompact" in warning
    child = parts.background.clients._child
    assert child is not None and child.args[1:] == ["-P", "-m", "csmd", "hooks", "settle"]
    child.wait(30)  # no daemon answers it here
    parts.background.step(START + 3 * LIVE_SWEEP_S)
    assert "hooks settle" in parts.background.context.trouble["hooks"]
    parts.background.step(START + 4 * LIVE_SWEEP_S)
    assert parts.background.clients._child is None
    parts.background.step(START + health.SETTLE_AGAIN_S + 4 * LIVE_SWEEP_S)
    assert parts.background.clients._child is not None
    parts.background.clients.close()


def test_the_settings_are_settled_by_the_daemon_and_status_says_so(machine: Machine) -> None:
    program = machine.root / "bin" / "claude"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 2.1.329\n")
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}", "COLUMNS": "80"}
    done = machine.run("install", "--json", **path)
    assert done.returncode == 0, done
    settings = machine.assistant / "settings.json"
    if json.loads(done.stdout)["kept_out_by"]:
        pytest.skip("another, older client is installed here")
    assert "PostCompact" in settings.read_text() and "StopFailure" in settings.read_text()
    today(machine, "2.0.77")
    machine.sync()
    machine.csmd("restart")  # a new daemon looks at once
    eventually(lambda: "PostCompact" not in settings.read_text())
    known = eventually(lambda: (value := machine.status()["clients"])["kept_out_by"] == "2.0.77" and value)
    assert known["newer_events"] == []
    assert "Claude Code 2.0.77 is in use" in machine.csmd("status")
    again = machine.run("install", "--json", **path)
    assert json.loads(again.stdout)["kept_out_by"] == "2.0.77" and "PostCompact" not in settings.read_text()
    machine.csmd("uninstall")
    assert not settings.exists()


def test_a_directory_whose_name_was_purged_is_not_noted_by_it_again(parts: Any) -> None:
    folder = other_directory(parts.machine, "secret-client-work")
    transcript = str(folder / "projects" / "-p" / "s.jsonl")
    parts.background.context.hint_of_hook(transcript)
    parts.background.step(START)
    assert parts.call("csm_clients")["elsewhere"] == [str(folder)]
    job = parts.call("csm_privacy_purge", what="secret-client-work", kind="text", by_person=True)["job"]
    for _ in range(200):
        parts.background.step(START)
        if parts.background.context.tasks[job].state in ("done", "failed"):
            break
    parts.background.context.hint_of_hook(transcript)
    parts.background.step(START)
    assert parts.call("csm_clients")["elsewhere"] == []
    names = parts.store.read(lambda rows: [path for (path,) in rows.all("select path from elsewhere")])
    assert names and not any("secret-client-work" in name for name in names)
