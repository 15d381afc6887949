"""Leaving for good: what goes is said first, is csmd's own by name, and nothing of anybody else's is touched."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from machine import Machine
from terminal import Terminal

from csmd.config import spool_places
from csmd.installer import plan
from csmd.paths import Paths
from csmd.store import purge_files

#: The store looks at all that lies there; what is removed must have the name that csmd gives.
NARROWER = {
    "damaged-*/*": ["damaged-[0-9]*T[0-9]*Z/*"],
    "repairing/*": ["repairing/**/*"],
    "log/csmd.log*": ["log/csmd.log", "log/csmd.log.[0-9]"],
    "backups/*": ["backups/csmd-*", "backups/.csmd-*"],
    "quarantine/*": ["quarantine/*.json"],
    "memory/**/*": list(plan.HOME_FILES["notes as markdown and data"]),
    "models/**/*": list(plan.HOME_FILES["embedding models"]),
    "hook/*": [f"hook/{name}" for name in (*plan.COPIED, "interpreter", "python")],
    "hook/__pycache__/*": ["hook/__pycache__/csmd_*.pyc"],
}


@pytest.mark.invariant(
    "A purge of everything removes by name, never through a link, and nothing that csmd did not make"
)
def test_every_file_that_the_store_knows_is_known_here() -> None:
    ours = {glob for globs in plan.HOME_FILES.values() for glob in globs}
    known = {*purge_files.TEXT_FILES, *purge_files.STRUCTURE_FILES}
    assert known - ours == set(NARROWER)
    for glob, here in NARROWER.items():
        assert set(here) <= ours, glob
    assert ours - known == {one for here in NARROWER.values() for one in here}


def fill(paths: Paths, *names: str) -> None:
    for name in names:
        path = paths.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((plan.README if name == "README.txt" else "x" * 100)[:100])


OWN = (
    "csmd.db", "csmd.db-wal", "csmd.db.before-restore-wal", "backups/csmd-1.db", "damaged-20260504T010203Z/csmd.db", "endpoint",
    "spool/0.event", "spool/.tmp-1", "sessions/-p/s.jsonl", "quarantine/1.json", "memory/user.md", "memory/projects/till-1a2b3c.md",
    "memory/daily/2026-03-01.md", "memory/workspaces/acme-1a2b3c/archive/daily/2026-03-01.yaml", "memory/sessions/s1.yaml", "models/m/model.onnx",
    "models/m/csmd-model.txt", "models/m/deep/er.txt",
    "models/tiktoken/abc", "hook/csmd_hook.py", "hook/__pycache__/csmd_spool.pyc", "log/csmd.log.1", "log/crash.txt",
    "config.yaml", "install.json", "README.txt", "run/start.lock", "run/hung", ".README.txt.abc.csmd", "run/.daemon.json.0.tmp",
)  # fmt: skip
FOREIGN = ("notes.txt", "sessions/mine.txt", "run/other", "venv/bin/python", "venv/pyvenv.cfg", "log/other.log", "log/csmd.log.mine",
           "models/mine/model.onnx", "backups/mine.db", "damaged-by-me/x", "hook/mine.sh", "quarantine/notes.txt",
           "memory/daily/notes.md")  # fmt: skip


@pytest.mark.parametrize("text", ["{", "[]", '{"settings": {}, "service": {"kind": "systemd"}}'])
def test_a_damaged_record_is_named_with_what_to_do(machine: Machine, text: str) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.install_record.write_text(text)
    done = machine.run("uninstall")
    assert done.returncode == 1 and f"{machine.paths.install_record} is damaged" in done.stderr
    assert "move it away" in done.stderr


def test_where_nothing_is_nothing_is_said_to_stay(machine: Machine) -> None:
    nothing = f"no csmd data in {machine.home}"
    assert machine.run("uninstall").stdout.splitlines()[-1] == nothing
    (machine.home / "venv").mkdir(parents=True, mode=0o700)
    assert machine.run("uninstall").stdout.splitlines()[-1] == nothing


def test_a_readme_of_the_users_is_neither_overwritten_nor_removed(machine: Machine) -> None:
    fill(machine.paths, "mine.txt")
    readme = machine.home / "README.txt"
    readme.write_text("mine")
    machine.csmd("install", "--no-start")
    assert readme.read_text() == "mine"
    machine.csmd("uninstall", "--purge", "--yes")
    assert readme.read_text() == "mine"


@pytest.mark.invariant(
    "A purge of everything removes by name, never through a link, and nothing that csmd did not make"
)
def test_what_csmd_made_goes_and_all_else_stays(machine: Machine) -> None:
    paths = machine.paths
    fill(paths, *OWN, *FOREIGN)
    going = plan.plan_purge(paths)
    assert sum(map(len, going.values())) == len(OWN)
    assert sum(sum(files.values()) for files in going.values()) == 100 * len(OWN)
    foreign, refused = plan.purge(paths, going)
    assert {str(path.relative_to(paths.home)) for path in paths.home.rglob("*") if path.is_file()} == set(FOREIGN)
    assert {path.name for path in foreign} == {
        "notes.txt", "sessions", "run", "venv", "log", "models", "backups", "damaged-by-me", "hook", "quarantine", "memory",
    }  # fmt: skip
    assert refused == [] and plan.find_virtual_environments(paths) == [paths.home / "venv"]
    assert not (paths.home / "models" / "m").exists() and not (paths.home / "repairing").exists()


def test_a_link_to_the_program_stays_and_is_named_for_removal_with_it(machine: Machine) -> None:
    environment, folder = machine.paths.home / "venv", Path(machine.environment()["HOME"]) / ".local/bin"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("")
    (environment / "bin/csmd").write_text("")
    folder.mkdir(parents=True)
    (folder / "csmd").symlink_to(environment / "bin/csmd")
    said = machine.csmd("uninstall", "--purge", "--yes")
    assert f"rm -r {environment} {folder / 'csmd'}\n" in said and (folder / "csmd").is_symlink()
    (folder / "csmd").unlink()
    (folder / "csmd").symlink_to("/usr/bin/env")
    assert f"rm -r {environment}\n" in machine.csmd("uninstall", "--purge", "--yes")


@pytest.mark.invariant(
    "A purge of everything removes by name, never through a link, and nothing that csmd did not make"
)
def test_nothing_behind_a_link_is_touched(machine: Machine) -> None:
    paths, elsewhere = machine.paths, machine.root / "elsewhere"
    fill(paths, "csmd.db")
    elsewhere.mkdir()
    (elsewhere / "csmd-1.db").write_text("theirs")
    (elsewhere / "csmd-model.txt").write_text("theirs")
    (paths.home / "backups").symlink_to(elsewhere)
    (paths.home / "models").mkdir()
    (paths.home / "models" / "linked").symlink_to(elsewhere)
    (paths.home / "csmd.db-wal").symlink_to(elsewhere / "csmd-1.db")
    plan.purge(paths, plan.plan_purge(paths))
    assert sorted(path.name for path in elsewhere.iterdir()) == ["csmd-1.db", "csmd-model.txt"]
    assert sorted(path.name for path in paths.home.iterdir()) == ["backups", "models"]


def test_the_platforms_places_and_the_second_spool_go_too(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    state = machine.root / "state" / "csmd"
    paths = Paths(home=machine.root / "data" / "csmd", config_file=machine.root / "config" / "csmd" / "config.yaml",
                  log_dir=state / "log")  # fmt: skip
    top = machine.root / "top"
    spool = top / spool_places(paths.home)[-1].name
    monkeypatch.setattr(plan, "_find_temporary_folders", lambda _: [spool, top])
    for path in (
        paths.home / "csmd.db",
        paths.config_file,
        paths.log_dir / "csmd.log",
        spool / "1.event",
        top / "other",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert sum(map(len, plan.plan_purge(paths).values())) == 4
    plan.purge(paths, plan.plan_purge(paths))
    assert not paths.home.exists() and not state.exists() and not paths.config_file.parent.exists()
    assert [path.name for path in top.iterdir()] == ["other"]
    assert paths.home.parent.exists()


def test_a_purge_says_what_asks_and_removes_everything(machine: Machine) -> None:
    machine.conversation()
    settings = machine.assistant / "settings.json"
    settings.write_text("{}")
    machine.csmd("install")
    shown = machine.csmd("uninstall", "--purge", "--dry-run")
    assert "3 memories" in shown and "memories and conversations" in shown and str(machine.home) in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith(("-", "+", " ")))
    planned = machine.csmd("uninstall", "--purge", "--dry-run", "--json")
    assert {row["what"] for row in planned["removes"]} >= {"memories and conversations", "hook scripts", "log", "state"}
    refused = machine.run("uninstall", "--purge")
    assert (refused.returncode, "--yes" in refused.stderr) == (1, True)
    assert machine.status()["counts"]["memories"] == 3 and "csmd_hook" in settings.read_text()
    done = machine.csmd("uninstall", "--purge", "--yes", "--json")
    assert done["stopped"] is True and done["purged"]["foreign"] == [] and done["purged"]["refused"] == []
    assert not machine.home.exists() and settings.read_text() == "{}"
    assert list((machine.assistant / "projects").rglob("*.jsonl"))
    assert "no csmd data to delete" in machine.csmd("uninstall", "--purge", "--dry-run")


def typed(machine: Machine, *arguments: str, answer: str) -> tuple[int, str]:
    """What `csmd` does at a terminal at which a person types this answer."""
    terminal = Terminal(*arguments, cwd=machine.root, environment=machine.environment())
    terminal.sees("[y/N]")
    terminal.press(f"{answer}\n")
    return terminal.ends(), terminal.said


def test_y_and_yes_are_yes_and_the_question_says_how_much_goes(machine: Machine) -> None:
    machine.csmd("install", "--no-start")
    for answer in ("n", ""):
        code, said = typed(machine, "uninstall", "--purge", answer=answer)
        assert code == 1 and "no change" in said and machine.paths.install_record.exists()
        assert re.search(r"Permanently delete all of csmd's data, [0-9]+ files, [0-9.]+ [KM]?B\? \[y/N\]", said)
    for answer in ("y", "yes"):
        machine.csmd("install", "--no-start")
        code, said = typed(machine, "uninstall", "--purge", answer=answer)
        assert code == 0 and "everything of csmd was deleted" in said and not machine.home.exists()


def test_settings_that_cannot_be_given_back_keep_the_data(machine: Machine) -> None:
    settings = machine.assistant / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")
    machine.csmd("install", "--no-start")
    settings.write_text("{broken")
    done = machine.run("uninstall", "--purge", "--yes")
    assert done.returncode == 1 and "settings.json" in done.stderr
    assert machine.paths.install_record.exists() and settings.read_text() == "{broken"
    settings.write_text("{}")
    assert machine.run("uninstall", "--purge", "--yes").returncode == 0 and not machine.home.exists()


def test_uninstall_says_where_everything_is(machine: Machine) -> None:
    state = {"XDG_DATA_HOME": str(machine.root / "d"), "XDG_STATE_HOME": str(machine.root / "s"),
             "XDG_CONFIG_HOME": str(machine.root / "c"), "CSMD_HOME": ""}  # fmt: skip
    assert machine.run("install", "--no-start", **state).returncode == 0
    (machine.root / "s" / "csmd" / "log").mkdir(parents=True)
    shown: Any = machine.run("uninstall", "--dry-run", **state).stdout
    done: subprocess.CompletedProcess[str] = machine.run("uninstall", **state)
    for text in (shown, done.stdout):
        assert str(machine.root / "d" / "csmd") in text and str(machine.root / "s" / "csmd" / "log") in text
    assert "no daemon was running" in done.stdout
    assert json.loads(machine.run("uninstall", "--json", **state).stdout)["restored"] == []


def test_a_home_that_is_somebody_elses_is_not_purged(machine: Machine) -> None:
    elsewhere = machine.root / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "csmd.db").write_text("theirs")
    machine.home.symlink_to(elsewhere)
    done = machine.run("uninstall", "--purge", "--yes")
    assert (done.returncode, "not a directory of yours" in done.stderr) == (1, True)
    assert Path(elsewhere / "csmd.db").read_text() == "theirs"
