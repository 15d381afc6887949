"""Newer events are registered only where every client knows them; an unknown client counts as an old one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from csmd.hosts.claude import registration
from csmd.installer import plan

NEW, OLD = "2.1.329", "2.0.77"
ALL = tuple(registration.NEWER)


@pytest.mark.invariant(
    "Newer events are registered only where the oldest client in use knows them; settling brings nothing back"
)
@pytest.mark.parametrize(
    ("installed", "seen", "events", "why"),
    [
        ({"/a": NEW}, [], ALL, ""),
        ({"/a": NEW}, [NEW, "2.1.200"], ALL, ""),
        ({"/a": "2.1.101"}, [], ALL, ""),
        ({"/a": "2.1.100"}, [], (), "2.1.100"),
        ({"/a": NEW}, [OLD, NEW], (), OLD),
        ({"/a": NEW, "/b": OLD}, [], (), OLD),
        ({"/a": NEW, "/b": ""}, [NEW], (), "/b does not tell"),
        ({}, [NEW], (), "no `claude` was found"),
        ({"/a": NEW}, ["dev", "", "10.0.0"], ALL, ""),
        ({"/a": NEW}, ["2.1.99"], (), "2.1.99"),
        ({}, [OLD], (), OLD),
    ],
)
def test_the_oldest_client_decides(
    installed: dict[str, str], seen: list[str], events: tuple[str, ...], why: str
) -> None:
    choice = plan.choose_events(installed, seen)
    assert choice.events == events
    assert choice.kept_out_by.startswith(why) and bool(choice.kept_out_by) == bool(why)


def test_what_nobody_tells_is_no_reason_to_take_an_event_out() -> None:
    assert plan.events_known_to(["", NEW]).events == plan.events_known_to([]).events == ALL
    assert plan.events_known_to(["", OLD]) == plan.Choice(events=(), kept_out_by=OLD)


def test_no_event_needs_less_than_the_version_that_forgives_unknown_ones() -> None:
    assert plan.oldest_version_for([]) == "" and plan.oldest_version_for(ALL) == "2.1.101"
    for event in registration.NEWER:
        assert plan.oldest_version_for([event]) == "2.1.101"


def program(folder: Path, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_every_client_is_asked_once_in_an_empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    one = program(
        tmp_path / "one", f'echo "$@" >> "{told}"; env >> "{told}"; ls -A >> "{told}"; echo "2.1.329 (Claude Code)"'
    )
    home = tmp_path / "home"
    usual = program(home / ".local" / "bin", "echo 2.0.77")
    (tmp_path / "same").symlink_to(tmp_path / "one")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    monkeypatch.setenv("PATH", f"{tmp_path / 'same'}:{tmp_path / 'one'}:relative:/usr/bin:/bin")
    found = plan.installed_clients()
    ours = {path: version for path, version in found.items() if str(tmp_path) in path}
    assert ours == {str(tmp_path / "same" / "claude"): NEW, str(usual): OLD}
    said = told.read_text()
    assert said.count("--version") == 1 and one.exists()
    assert "SECRET_OF_THE_USER" not in said and str(home) not in said.replace(f"PATH={tmp_path}", "")
    (config,) = (line for line in said.splitlines() if line.startswith("CLAUDE_CONFIG_DIR="))
    assert not Path(config.partition("=")[2]).exists()


@pytest.mark.parametrize(
    "body",
    [
        "echo 2.1.329; exit 1",
        "echo version 2.1.329",
        "echo",
        "echo 2.1.329-beta",
        "kill -9 $$",
        "head -c 100000 /dev/zero",
    ],
)
def test_a_client_that_does_not_tell_its_version_is_an_unknown_one(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path / "bin", body)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    assert plan.installed_clients()[str(path)] == ""


def test_a_client_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "bin", "exec sleep 60")
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    monkeypatch.setattr(plan, "PATIENCE_S", 0.2)
    begun = time.monotonic()
    assert plan.installed_clients()[str(path)] == ""
    assert time.monotonic() - begun < 30
