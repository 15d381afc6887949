"""Restore and repair stop the daemon and start it again, whatever happens in between."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from csmd.cli import backups, main, verb
from csmd.errors import CsmdError, DaemonUnreachable

RESTORED = {
    "from": "b.db", "counts": {"turns": 2}, "dry_run": False, "tombstones": 0, "forgotten_again": 0, "lost": [],
    "set_aside": "/home/csmd.db.before-restore-20260101T000000Z",
}  # fmt: skip


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was done with a daemon that runs, in order."""
    made: list[str] = []
    monkeypatch.setenv("CSMD_HOME", str(tmp_path))
    monkeypatch.setattr(backups.service, "find_process", lambda paths: object())
    monkeypatch.setattr(backups.service, "stop", lambda paths, by_user: made.append("stop") or True)
    monkeypatch.setattr(backups.service, "start", lambda paths: made.append("start"))
    return made


def ends_with(result: subprocess.CompletedProcess[str] | BaseException) -> Callable[..., Any]:
    def run(*_: Any, **__: Any) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    return run


@pytest.mark.parametrize("words", [["restore", "latest", "--yes"], ["repair"]], ids=lambda words: words[0])
def test_an_interrupted_restore_or_repair_starts_the_daemon_again(
    calls: list[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr(backups, "_run_with_progress", ends_with(KeyboardInterrupt()))
    assert CliRunner().invoke(main.main, words).exit_code != 0
    assert calls == ["stop", "start"]


@pytest.mark.parametrize("failing", ["start", "sync", "status"])
@pytest.mark.parametrize("error", [DaemonUnreachable("nobody answers"), KeyboardInterrupt()], ids=["error", "^C"])
def test_a_finished_restore_is_reported_although_the_daemon_does_not_start(
    calls: list[str], monkeypatch: pytest.MonkeyPatch, failing: str, error: BaseException
) -> None:
    done = subprocess.CompletedProcess([], 0, stdout=json.dumps({"report": RESTORED}), stderr="")
    monkeypatch.setattr(backups, "_run_with_progress", ends_with(done))
    steps = {"start": (backups.service, "start"), "sync": (verb, "run_job"), "status": (backups.client, "call")}
    for step, (module, name) in steps.items():
        monkeypatch.setattr(module, name, ends_with(error) if step == failing else lambda *_, **__: {"counts": {}})
    result = CliRunner().invoke(main.main, ["restore", "latest", "--yes", "--json"])
    report = json.loads(result.stdout)
    assert result.exit_code == 1 and report["set_aside"] == RESTORED["set_aside"]
    assert ("nobody answers" if isinstance(error, CsmdError) else "interrupted") in report["warning"]
    shown = CliRunner().invoke(main.main, ["restore", "latest", "--yes"])
    assert (
        shown.exit_code == 1 and "before-restore-2026" in shown.stdout and "csmd sync" in " ".join(shown.stdout.split())
    )


def test_a_repair_that_crashes_is_named_with_the_command_that_shows_why(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed = subprocess.CompletedProcess([], 1, stdout="", stderr="Traceback (most recent call last):\n  boom\n")
    monkeypatch.setattr(backups, "_run_with_progress", ends_with(crashed))
    result = CliRunner().invoke(main.main, ["repair"])
    assert isinstance(result.exception, CsmdError)
    assert "repair ended with exit code 1" in result.exception.what and "Traceback" not in result.exception.what
    assert result.exception.hint.startswith("run `") and "-m csmd.daemon.repair repair`" in result.exception.hint
    refused = subprocess.CompletedProcess([], 1, stdout="", stderr="csmd: no room\n  try: make room\n")
    monkeypatch.setattr(backups, "_run_with_progress", ends_with(refused))
    result = CliRunner().invoke(main.main, ["repair"])
    assert isinstance(result.exception, CsmdError)
    assert (result.exception.what, result.exception.hint) == ("no room", "make room")
    assert calls == ["stop", "start"] * 2
