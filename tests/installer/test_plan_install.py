"""Installing and leaving: a dry run writes nothing, others' bytes stay, and `uninstall` gives back every one of them."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import forked_process
import pytest
from machine import PREFERENCE, Machine, eventually
from terminal import Terminal

from csmd.config import base_interpreter, own_interpreter
from csmd.errors import ConfigError
from csmd.hosts.claude import registration
from csmd.installer import foreign_files, plan

FOREIGN = b"""{
\t"model" : "opus",   "permissions": {"allow": ["Bash(ls:*)"]},
\t"hooks": { "Stop": [ {"hooks":[{"type":"command","command":"say done","timeout":3}]} ], "PostToolUse": [] }
}"""


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    """Every file below a folder: its mode and a hash of its bytes."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file()
    }


def ours(machine: Machine, folder: Path | None = None) -> list[tuple[str, str]]:
    """(event, command) of the hooks that are this home's."""
    hooks = json.loads(((folder or machine.assistant) / "settings.json").read_bytes())["hooks"]
    return [
        (event, hook["command"])
        for event, groups in hooks.items()
        for group in groups
        for hook in group["hooks"]
        if str(machine.home) in hook["command"]
    ]


def write_settings(machine: Machine, data: bytes = FOREIGN, folder: Path | None = None) -> Path:
    path = (folder or machine.assistant) / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o640)
    return path


def test_a_dry_run_shows_everything_and_writes_nothing(machine: Machine) -> None:
    path = write_settings(machine)
    before = tree(machine.root)
    shown = machine.csmd("install", "--dry-run")
    assert str(machine.home) in shown and str(path) in shown
    assert all(
        registration.hook_command(base_interpreter(), machine.home, event) in shown
        for event in registration.BASE_TIMEOUTS
    )
    as_json = machine.csmd("install", "--dry-run", "--json")
    assert set(as_json) == {"home", "settings", "service"} and as_json["settings"][0]["path"] == str(path)
    assert as_json["settings"][0]["diff"] in shown
    assert tree(machine.root) == before and not machine.home.exists()


def test_installing_adds_six_hooks_and_leaves_the_others_alone(machine: Machine) -> None:
    path = write_settings(machine)
    done = machine.csmd("install", "--no-start", "--json")
    server = machine.assistant / ".claude.json"
    assert (
        done["settings"] == [{"path": str(one), "changed": True} for one in (path, server)] and done["daemon"] is None
    )
    assert json.loads(server.read_bytes())["mcpServers"]["csmd"]["command"] == str(machine.paths.hook_dir / "mcp")
    assert sorted(event for event, _ in ours(machine)) == sorted(registration.BASE_TIMEOUTS)
    value = json.loads(path.read_bytes())
    theirs = json.loads(FOREIGN)
    assert value["hooks"]["Stop"][0] == theirs["hooks"]["Stop"][0] and value["model"] == "opus"
    assert path.stat().st_mode & 0o777 == 0o640
    assert b'"model" : "opus",   "permissions"' in path.read_bytes()


def test_installing_again_changes_nothing(machine: Machine) -> None:
    write_settings(machine)
    machine.csmd("install", "--no-start")
    before = tree(machine.root)
    again = machine.csmd("install", "--no-start", "--json")
    assert again["settings"][0]["changed"] is False
    assert {name: state for name, state in tree(machine.root).items() if not name.endswith(".pyc")} == {
        name: state for name, state in before.items() if not name.endswith(".pyc")
    }
    assert "up to date" in machine.csmd("install", "--dry-run")


@pytest.mark.parametrize("data", [FOREIGN, b'\xef\xbb\xbf{ "a":1 }\r\n', None])
def test_uninstalling_gives_back_every_byte(machine: Machine, data: bytes | None) -> None:
    if data is not None:
        write_settings(machine, data)
    before = tree(machine.root)
    machine.csmd("install", "--no-start")
    assert ours(machine)
    left = machine.csmd("uninstall", "--json")
    assert left["restored"] == [str(machine.assistant / name) for name in (".claude.json", "settings.json")]
    assert {name: state for name, state in tree(machine.root).items() if not name.startswith("csmd/")} == before
    assert machine.assistant.exists() == (data is not None)
    assert not machine.paths.hook_dir.exists() and not machine.paths.install_record.exists()


def test_what_was_edited_since_stays_and_only_our_entries_go(machine: Machine) -> None:
    path = write_settings(machine)
    machine.csmd("install", "--no-start")
    value = json.loads(path.read_bytes())
    value["added"] = "by hand"
    path.write_text(json.dumps(value))
    machine.csmd("uninstall")
    assert json.loads(path.read_bytes()) == {**json.loads(FOREIGN), "added": "by hand"}


def test_settings_that_cannot_be_read_are_never_overwritten(machine: Machine) -> None:
    path = write_settings(machine, b'{"hooks": [}')
    done = machine.run("install", "--no-start")
    assert (done.returncode, "never overwrites" in done.stderr) == (1, True)
    assert path.read_bytes() == b'{"hooks": [}' and not machine.paths.hook_dir.exists()


def test_two_directories_of_the_assistant_are_both_served_and_both_restored(machine: Machine) -> None:
    other = machine.root / "other"
    write_settings(machine)
    write_settings(machine, b"{}", other)
    before = tree(machine.root)
    machine.csmd("install", "--no-start")
    done = machine.run("install", "--no-start", "--json", CLAUDE_CONFIG_DIR=str(other))
    assert done.returncode == 0, done
    assert len(ours(machine)) == len(ours(machine, other)) == len(registration.BASE_TIMEOUTS)
    machine.transcript(machine.line("user", PREFERENCE), folder=other / "projects" / "-p")
    (machine.assistant / "projects").mkdir()
    machine.start()
    eventually(lambda: machine.status()["counts"]["turns"] == 1)
    assert machine.status()["watching"] == sorted(str(folder / "projects") for folder in (machine.assistant, other))
    left = machine.csmd("uninstall", "--json")
    assert len(left["restored"]) == 4 and left["stopped"] is True
    after = {name: state for name, state in tree(machine.root).items() if not name.startswith("csmd/")}
    assert {name: state for name, state in after.items() if name in before} == before


@pytest.mark.invariant(
    "A file of the assistant's in trouble keeps no other from being served; what its owner writes meanwhile is kept; any file is given back byte for byte"
)
def test_a_file_in_trouble_keeps_no_other_from_being_served(machine: Machine) -> None:
    good, bad = write_settings(machine), machine.root / "other"
    broken = write_settings(machine, b'{"hooks": [}', bad)
    done = machine.run("install", "--no-start", "--json", "--config-dir", str(bad))
    assert done.returncode == 1 and str(broken) in done.stderr
    rows = {row["path"]: row for row in json.loads(done.stdout)["settings"]}
    assert rows[str(good)] == {"path": str(good), "changed": True}
    assert rows[str(broken)]["changed"] is False and "line 1 column 12" in rows[str(broken)]["trouble"]
    assert len(ours(machine)) == len(registration.BASE_TIMEOUTS) and broken.read_bytes() == b'{"hooks": [}'
    shown = machine.run("install", "--dry-run")
    assert shown.returncode == 1 and f"{broken}: not changed" in shown.stdout
    good.write_bytes(b"{broken")
    left = machine.run("uninstall", "--json")
    assert left.returncode == 1 and str(good) not in json.loads(left.stdout)["restored"]
    assert machine.paths.install_record.exists()
    write_settings(machine)
    assert machine.csmd("uninstall", "--json")["restored"] == []
    assert not machine.paths.install_record.exists() and good.read_bytes() == FOREIGN


def make_dangling(path: Path) -> None:
    path.symlink_to(path.parent.parent / "unmounted" / "settings.json")


def make_cycle(path: Path) -> None:
    path.symlink_to(path.name)


def make_read_only(path: Path) -> None:
    path.write_bytes(b"{}")
    path.chmod(0o444)


def make_directory(path: Path) -> None:
    path.mkdir()


def make_pasted_comment(path: Path) -> None:
    path.write_bytes(b"{ // mine\n}")


@pytest.mark.parametrize("make", [make_dangling, make_cycle, make_read_only, make_directory, make_pasted_comment])
def test_a_settings_file_that_must_not_be_written_is_told_and_nothing_is_written(machine: Machine, make: Any) -> None:
    machine.assistant.mkdir()
    make(machine.assistant / "settings.json")
    before = sorted(str(path) for path in machine.root.rglob("*"))
    done = machine.run("install", "--no-start")
    assert (done.returncode, done.stdout) == (1, "") and "settings.json" in done.stderr and "try: " in done.stderr
    assert sorted(str(path) for path in machine.root.rglob("*") if path.name != "project") == before


def test_links_stay_links_and_one_file_by_two_names_is_served_once(machine: Machine) -> None:
    dotfiles = machine.root / "dotfiles"
    write_settings(machine, FOREIGN, dotfiles)
    machine.assistant.symlink_to(dotfiles)
    done = machine.csmd("install", "--no-start", "--json", "--config-dir", str(dotfiles))
    assert len(done["settings"]) == 2 and machine.assistant.is_symlink()
    assert sum(command.count("Stop") for _, command in ours(machine)) == 2  # Stop and SubagentStop
    machine.csmd("uninstall")
    assert (dotfiles / "settings.json").read_bytes() == FOREIGN


def test_a_directory_that_is_named_later_is_read_by_the_daemon_that_runs(machine: Machine) -> None:
    write_settings(machine)
    work = machine.root / ".claude-work"
    machine.csmd("install")
    path = machine.transcript(machine.line("user", PREFERENCE), folder=work / "projects" / "-p")
    machine.event("SessionStart", transcript_path=str(path))
    told = eventually(lambda: [row for row in machine.csmd("status", "--json")["degraded"] if str(work) in row])
    assert "csmd install --config-dir" in told[0] and machine.status()["counts"]["turns"] == 0
    done = machine.csmd("install")
    assert f"sessions write to {work}, which is also read" in done and len(ours(machine, work)) == len(
        registration.BASE_TIMEOUTS
    )
    assert machine.status()["counts"]["turns"] == 1
    assert str(work / "projects") in machine.status()["watching"]
    assert not any(str(work) in row for row in machine.csmd("status", "--json")["degraded"])
    assert machine.run("install", "--config-dir", str(machine.root / "typo")).returncode == 2
    machine.csmd("uninstall")
    assert not (work / "settings.json").exists() and path.exists()


@pytest.mark.parametrize("name", ["csmd", 'it\'s a "home" & $x', "ünï `id`;*"])
def test_the_registered_commands_work_in_an_empty_environment(machine: Machine, name: str) -> None:
    home = machine.root / name
    assert machine.run("install", "--no-start", CSMD_HOME=str(home)).returncode == 0
    hooks = json.loads((machine.assistant / "settings.json").read_bytes())["hooks"]
    for event in registration.BASE_TIMEOUTS:
        ((group,),) = ([one["hooks"] for one in hooks[event]],)
        payload = {"session_id": "s1", "cwd": "/", "hook_event_name": event, "prompt": "x", "agent_id": "a"}
        done = subprocess.run(
            ["env", "-i", "/bin/sh", "-c", group[0]["command"]], input=json.dumps(payload).encode(), cwd="/",
            capture_output=True, timeout=30, check=False,
        )  # fmt: skip
        said = b"csmd: memory is not being recorded" if event == "SessionStart" else b""  # there is no daemon
        assert (done.returncode, done.stderr) == (0, b"") and said in done.stdout and bool(done.stdout) == bool(said)
    assert len(list((home / "spool").glob("*.event"))) == len(registration.BASE_TIMEOUTS)


def test_what_hooks_print_gives_is_what_install_writes(machine: Machine) -> None:
    printed = json.loads(machine.csmd("hooks", "print"))
    assert not (machine.assistant / "settings.json").exists()
    machine.csmd("install", "--no-start")
    assert json.loads((machine.assistant / "settings.json").read_bytes()) == printed


def test_hooks_that_were_pasted_before_the_install_say_nothing_amiss_and_lose_nothing(machine: Machine) -> None:
    hooks = json.loads(machine.csmd("hooks", "print"))["hooks"]
    for event in ("UserPromptSubmit", "Stop"):
        payload = {"session_id": "s1", "cwd": "/", "prompt": "pasted early", "last_assistant_message": "heard"}
        done = subprocess.run(
            ["env", "-i", "/bin/sh", "-c", hooks[event][0]["hooks"][0]["command"]], input=json.dumps(payload).encode(),
            cwd="/", capture_output=True, timeout=30, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "csmd is not installed here" in machine.run("status").stderr
    machine.start()
    machine.sync()
    assert machine.status()["counts"]["turns"] == 2


def test_the_whole_installation_brings_past_sessions_and_working_hooks(machine: Machine) -> None:
    machine.conversation("past")
    machine.paths.run_dir.mkdir(parents=True, mode=0o700)
    machine.paths.missing_mark.touch(0o600)
    done = machine.csmd("install", "--json")
    assert done["daemon"]["started"] is True
    # The daemon's own first look may have been ahead of the import by some turns.
    assert (done["import"]["files"], done["import"]["turns_new"] + done["import"]["turns_known"] <= 6) == (1, True)
    assert machine.status()["counts"]["turns"] == 6 and machine.status()["counts"]["memories"] == 3
    command = next(command for event, command in ours(machine) if event == "SessionStart")
    payload = {"session_id": "new", "cwd": str(machine.project), "hook_event_name": "SessionStart", "source": "startup"}
    told = subprocess.run(["sh", "-c", command], input=json.dumps(payload).encode(), capture_output=True, check=True)
    assert b"pathlib over os.path" in told.stdout and told.stderr == b""
    for path in machine.home.rglob("*"):
        assert not path.lstat().st_mode & 0o077 or path.is_symlink(), path
    assert not machine.paths.missing_mark.exists()
    machine.paths.missing_mark.touch(0o600)
    pid = done["daemon"]["pid"]
    again = machine.csmd("install", "--json")
    assert again["daemon"] == {"pid": pid, "started": False}
    assert machine.csmd("uninstall", "--json")["stopped"] is True
    assert not machine.paths.missing_mark.exists()


def test_the_record_holds_no_copy_of_the_settings(machine: Machine) -> None:
    write_settings(machine, b'{"env": {"TOKEN": "s3cr3t-of-the-user"}, "model": "opus"}')
    machine.csmd("install", "--no-start")
    recorded = json.loads(machine.paths.install_record.read_bytes())["settings"]
    entry = recorded[str(machine.assistant / "settings.json")]
    assert entry == {"original": "by-removal", "sha256": entry["sha256"], "kinds": ["hooks", "status line"]}


@pytest.mark.parametrize("verb", ["install", "start"])
def test_a_home_that_is_a_link_is_refused_before_anything_is_written(machine: Machine, verb: str) -> None:
    elsewhere = machine.root / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    machine.home.symlink_to(elsewhere)
    done = machine.run(verb)
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "is a symbolic link" in done.stderr and "CSMD_HOME" in done.stderr
    assert list(elsewhere.iterdir()) == [] and elsewhere.stat().st_mode & 0o777 == 0o755
    assert not (machine.assistant / "settings.json").exists()


def test_a_directory_in_the_home_that_is_not_the_users_is_refused(machine: Machine) -> None:
    for place in (machine.home, machine.paths.hook_dir, machine.paths.run_dir):
        with pytest.raises(ConfigError, match=r"not a directory of yours|cannot be made"):
            place.parent.mkdir(exist_ok=True)
            place.write_text("a file")
            foreign_files.make_private(place)
        place.unlink()
    if os.getuid() == 0:
        machine.home.mkdir(exist_ok=True)
        os.chown(machine.home, 12345, 12345)
        with pytest.raises(ConfigError, match="not a directory of yours"):
            foreign_files.make_private(machine.home)
    elif Path("/tmp").stat().st_uid != os.getuid():
        with pytest.raises(ConfigError, match="not a directory of yours"):
            foreign_files.make_private(Path("/tmp"))


def test_a_file_is_written_through_no_name_that_others_can_guess(tmp_path: Path) -> None:
    path = tmp_path / "interpreter"
    trap = tmp_path / f".interpreter.{os.getpid()}.tmp"
    trap.write_text("theirs")
    foreign_files.write_atomic(path, b"one", mode=0o700)
    assert (path.read_bytes(), path.stat().st_mode & 0o777, trap.read_text()) == (b"one", 0o700, "theirs")

    def changed() -> None:
        raise ConfigError("changed")

    with pytest.raises(ConfigError):
        foreign_files.write_atomic(path, b"two", last_check=changed)
    assert path.read_bytes() == b"one" and {entry.name for entry in tmp_path.iterdir()} == {path.name, trap.name}


def test_status_says_when_the_interpreter_of_the_hooks_is_gone(machine: Machine) -> None:
    machine.csmd("install", "--no-start")
    machine.start()
    assert not any("Python is gone" in reason for reason in machine.csmd("status", "--json")["degraded"])
    (machine.paths.hook_dir / "interpreter").write_text("/nonexistent/python3.9\n")
    (reason,) = (row for row in machine.csmd("status", "--json")["degraded"] if "Python is gone" in row)
    assert "/nonexistent/python3.9" in reason and "csmd install" in reason
    assert "/nonexistent/python3.9" in machine.csmd("status")
    (machine.paths.hook_dir / "python").write_text("/nonexistent/venv/bin/python\n")
    reasons = [row for row in machine.csmd("status", "--json")["degraded"] if "Python is gone" in row]
    assert len(reasons) == 2 and reasons[1].startswith("memory server: its Python is gone (/nonexistent/venv")


def test_every_hook_file_is_copied_and_private(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.hook_dir.mkdir(mode=0o700)
    plan.copy_hooks(machine.paths)
    modes = {path.name: path.stat().st_mode & 0o777 for path in machine.paths.hook_dir.iterdir() if path.is_file()}
    assert modes == {
        **dict.fromkeys(plan.HOOK_FILES, 0o600), **dict.fromkeys(plan.HOOK_SCRIPTS, 0o700), "interpreter": 0o600,
        registration.SERVER_SCRIPT: 0o700, "python": 0o600, **dict.fromkeys(plan.LAUNCHERS, 0o700),
        **dict.fromkeys(plan.EXTRA_SCRIPTS, 0o600),
    }  # fmt: skip
    assert (machine.paths.hook_dir / "python").read_text() == own_interpreter() + "\n"
    assert (machine.paths.hook_dir / "interpreter").read_text() == base_interpreter() + "\n"


# --- the embedding model

QUESTION = "Download the model for search by meaning (90 MB from huggingface.co)? [Y/n]: "


def program_with(fetches: str, *, seen: Path) -> str:
    """csmd whose downloads are this shell command, whose last argument is where to, noted in `seen`."""
    command = ["sh", "-c", f"echo fetched >>{shlex.quote(str(seen))}; {fetches}", "sh"]
    return (
        "from csmd.cli import main, model\n"
        f"model._fetch_command = lambda folder, name: [*{command!r}, str(folder)]\nmain.entry()\n"
    )


@pytest.mark.parametrize(("key", "downloads"), [("\r", 1), ("n\r", 0), ("\x04", 0), ("\x03", 0)])
def test_an_install_in_a_terminal_offers_the_model_enter_takes_it_and_the_summary_follows_any_answer(
    machine: Machine, tiny_model: Path, key: str, downloads: int
) -> None:
    seen = machine.root / "seen"
    seen.touch()
    program = program_with(f'cp -r {shlex.quote(str(tiny_model))} "$1"', seen=seen)
    terminal = Terminal(program, "install", cwd=machine.project, environment=machine.environment(), module="-c")
    terminal.sees(QUESTION)
    terminal.press(key)
    assert terminal.ends() == 0
    assert len(QUESTION) < 80 and "no language model is asked" in terminal.said
    assert len(seen.read_text().splitlines()) == downloads
    assert bool(machine.status()["model"]["name"]) == bool(downloads)
    if downloads:
        again = Terminal("install", cwd=machine.project, environment=machine.environment())
        assert again.ends() == 0 and QUESTION[:20] not in again.said


@pytest.mark.parametrize(("words", "downloads"), [([], 0), (["--no-model"], 0), (["--model"], 1)])
def test_a_script_is_not_asked_for_the_model_and_a_failed_download_fails_nothing_else(
    machine: Machine, words: list[str], downloads: int
) -> None:
    seen = machine.root / "seen"
    seen.touch()
    done = forked_process.run(
        "-c", program_with("exit 1", seen=seen), "install", *words, cwd=machine.project, env=machine.environment(),
        stdin=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and QUESTION[:20] not in done.stdout + done.stderr
    assert len(seen.read_text().splitlines()) == downloads
    assert ("no model was added" in done.stderr) == bool(downloads)
    assert ("csmd model fetch" in done.stdout) != bool(downloads), "what a failed download says is not said again"
    assert ours(machine) and not machine.status()["model"]["name"]
