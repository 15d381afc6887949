"""`csmd doctor`: on a machine where all is well it says so; each check goes wrong once, for real, and names it.

The settings, files, processes and the daemon are real; what no test can have (another file system, a clock of
another year, macOS) is a value of the scene.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hypothesis
import psutil
import pytest
from hypothesis import strategies as st
from machine import Machine, eventually

from csmd.capture import ingest
from csmd.conversation import Event
from csmd.doctor import checks, examine, host_settings
from csmd.doctor.checks import Check, Finding, HookRun, Scene
from csmd.hosts.claude import environment, registration
from csmd.hosts.codex import registration as codex_registration
from csmd.hosts.host_files import Registration
from csmd.hosts.opencode import registration as opencode_registration
from csmd.hosts.registrations import FILES
from csmd.installer import home_disk, service
from csmd.vocabulary import PROBE_SESSION, PROBE_TEXT

CHECKS: dict[str, Check] = {one.id: one for one in checks.CHECKS}
NO_MANAGED = Path("/nonexistent/managed-settings.json")
#: What is so on any machine of the tests: no model, and a client may be there or not.
USUAL = {"model", "client"}


@dataclass(kw_only=True)
class Patient:
    """An installed machine with its daemon, and the scene that was found on it when all was well."""

    machine: Machine
    scene: Scene

    @property
    def settings(self) -> Path:
        return self.machine.assistant / "settings.json"

    def seen(self) -> Scene:
        """The scene with the settings and the client's state as they are now."""
        dirs = self.scene.dirs
        managed = self.machine.root / "managed.json"
        sources = examine.read_sources(dirs, self.machine.project, managed)
        return replace(self.scene, sources=sources, states=examine.read_states(dirs))

    def set(self, path: Path | None = None, **values: Any) -> Scene:
        """The scene with these keys in a settings file, the user's own by default."""
        path = path or self.settings
        path.parent.mkdir(exist_ok=True, parents=True)
        known = json.loads(path.read_bytes()) if path.exists() else {}
        path.write_text(json.dumps({**known, **values}))
        return self.seen()

    def hook(self, event: str, command: str, timeout: float = 5) -> Scene:
        """The scene with another command for an event."""
        value = json.loads(self.settings.read_bytes())
        value["hooks"][event] = [{"hooks": [{"type": "command", "command": command, "timeout": timeout}]}]
        return self.set(hooks=value["hooks"])

    def command(self, event: str) -> str:
        return str(json.loads(self.settings.read_bytes())["hooks"][event][0]["hooks"][0]["command"])

    def sent(self, scene: Scene) -> Scene:
        """The scene after a marker went through its hooks."""
        return replace(scene, runs=examine.send_markers(scene.paths, scene.ours, answers=scene.status is not None))

    def told(self, **status: Any) -> Scene:
        """The scene with another word of the daemon's."""
        return replace(self.scene, status={**(self.scene.status or {}), **status})


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    """A machine with hooks and a daemon, found well; no test of the module leaves it otherwise."""
    from machine import temporary_directory

    machine = Machine(root=temporary_directory())
    machine.csmd("install", "--no-start")
    machine.start()
    yield Patient(machine=machine, scene=look(machine))
    machine.end()


def look(machine: Machine) -> Scene:
    """The scene as the command finds it."""
    chosen = {name: os.environ[name] for name in ("HOME", "CSMD_HOME", "CLAUDE_CONFIG_DIR") if name in os.environ}
    os.environ.update(HOME=str(machine.root), CSMD_HOME=str(machine.home), CLAUDE_CONFIG_DIR=str(machine.assistant))
    try:
        return examine.read_scene(machine.paths, cwd=machine.project, now_s=time.time(), managed=NO_MANAGED)
    finally:
        os.environ.update(chosen)


@pytest.fixture
def patient(well: Patient) -> Iterator[Patient]:
    """The module's patient; the settings and the hook are afterwards as they were."""
    kept = {path: path.read_bytes() for path in (well.settings, *well.machine.paths.hook_dir.glob("*.py"))}
    hook_dir, state = well.machine.paths.hook_dir, well.machine.assistant / ".claude.json"
    kept |= {path: path.read_bytes() for path in (hook_dir / "interpreter", hook_dir / "mcp", state)}
    yield well
    for path, data in kept.items():
        path.write_bytes(data)
    (hook_dir / "mcp").chmod(0o700)
    made = ("managed.json", "managed.d/1.json", ".claude.json", "project/.claude/settings.json",
            "project/.claude/settings.local.json", "csmd/config.yaml")  # fmt: skip
    for name in made:
        (well.machine.root / name).unlink(missing_ok=True)
    for name in ("csmd/quarantine", ".claude/projects/-p", "else"):
        shutil.rmtree(well.machine.root / name, ignore_errors=True)


def levels(value: dict[str, Any]) -> dict[str, str]:
    """The level of every check that found something."""
    return {check["id"]: check["level"] for check in value["checks"] if check["level"] not in ("ok", "unasked")}


def findings(ident: str, scene: Scene) -> list[Finding]:
    """What one check finds."""
    [(_, found)] = examine.collect_findings([CHECKS[ident]], scene)
    return found


def check(scene: Scene, ident: str, level: str, words: str) -> None:
    """One check finds this, as bad as that, and says what to do."""
    found = findings(ident, scene)
    assert [one.level for one in found if words in one.what] == [level], found
    assert all(one.remedy for one in found)


# --- each check goes wrong once


def _spool_a(patient: Patient, age_s: float) -> Scene:
    name = f"{int((time.time() - age_s) * 1e9):016x}{'0' * 16}.event"
    stray = patient.machine.root / "else"
    (stray / "spool").mkdir(parents=True, exist_ok=True)
    (stray / "spool" / name).write_bytes(b"")
    return replace(patient.scene, paths=replace(patient.scene.paths, home=stray))


def _other_home(patient: Patient) -> Scene:
    value = json.loads(patient.settings.read_bytes())
    value["hooks"]["Stop"].append(
        {"hooks": [{"type": "command", "command": "'/p y' -I -S '/o ld/hook/csmd_hook.py' '/o ld' Stop || true"}]}
    )
    return patient.set(hooks=value["hooks"])


def _twice(patient: Patient) -> Scene:
    value = json.loads(patient.settings.read_bytes())
    value["hooks"]["Stop"] *= 2
    return patient.set(hooks=value["hooks"])


def _client(patient: Patient, says: str) -> Scene:
    folder = patient.machine.root / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "claude").write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / "claude").chmod(0o755)
    return replace(patient.scene, env={"PATH": f"{folder}:/usr/bin:/bin"})


def _state(patient: Patient, value: Any) -> Scene:
    (patient.machine.assistant / ".claude.json").write_text(json.dumps(value))
    return patient.seen()


def _private(patient: Patient) -> Scene:
    folder = patient.machine.root / "open"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    return replace(patient.scene, paths=replace(patient.scene.paths, home=folder))


def _unread(patient: Patient) -> Scene:
    (patient.machine.root / "other" / "projects").mkdir(parents=True, exist_ok=True)
    return replace(patient.scene, env={"CLAUDE_CONFIG_DIR": str(patient.machine.root / "other")})


def _unread_home(patient: Patient) -> Scene:
    home = patient.machine.root / "somebody"
    (home / ".claude" / "projects").mkdir(parents=True, exist_ok=True)
    return replace(patient.scene, user_home=home)


def _two_commands(patient: Patient) -> Scene:
    for name in ("a", "b"):
        folder = patient.machine.root / name
        folder.mkdir(exist_ok=True)
        (folder / "csmd").touch(mode=0o755)
    return replace(patient.scene, env={"PATH": f"{patient.machine.root}/a:{patient.machine.root}/b"})


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _without(patient: Patient, event: str) -> Scene:
    value = json.loads(patient.settings.read_bytes())
    del value["hooks"][event]
    return patient.set(hooks=value["hooks"])


def _quarantined(patient: Patient) -> Scene:
    patient.machine.paths.quarantine.mkdir(exist_ok=True)
    (patient.machine.paths.quarantine / "note").write_text("")
    return patient.scene


def _fresh_mark(patient: Patient) -> Scene:
    home = patient.machine.root / "marked"
    (home / "run").mkdir(parents=True, exist_ok=True)
    (home / "run" / "hung").touch()
    return replace(patient.scene, paths=replace(patient.scene.paths, home=home), now_s=time.time() + 4)


def _write(patient: Patient, name: str, text: str) -> Scene:
    path = patient.machine.root / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    return patient.seen()


def _gone_python(patient: Patient) -> Scene:
    (patient.machine.paths.hook_dir / "interpreter").write_text("/nonexistent/python3\n")
    return patient.scene


def _altered_script(patient: Patient) -> Scene:
    _cut(patient.machine.paths.hook_script)
    return patient.scene


def _socket(patient: Patient) -> Scene:
    home = patient.machine.root / "short"
    home.mkdir(exist_ok=True)
    (home / "endpoint").write_text("/tmp/csmd-1/abc.sock\n")
    return replace(patient.scene, paths=replace(patient.scene.paths, home=home))


#: (check, level, words of what is found, what makes it so)
def _codex(patient: Patient, text: str | None, trust: dict[str, str] | None) -> Scene:
    """Codex with this `hooks.json`, csmd's by default, and what it says of trust: all is trusted but these."""
    folder, wanted = patient.machine.root / "else", Registration(home=patient.machine.home, interpreter="python3")
    folder.mkdir(exist_ok=True)
    registered = codex_registration.HOOKS.merge("{}", wanted, "x") if text is None else text
    codex_registration.HOOKS.file(folder).write_text(registered)
    told = None if trust is None else {**dict.fromkeys(codex_registration.EVENTS, "trusted"), **trust}
    return replace(patient.scene, host_dirs=(("codex", folder),), answers={"codex": told})


def _opencode(patient: Patient, states: dict[str, str] | None, text: str | None = None) -> Scene:
    """OpenCode with this plugin file, csmd's by default, and what it says of the plugin."""
    folder = patient.machine.root / ".local" / "share" / "opencode"
    file = opencode_registration.locate_plugin("opencode")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(opencode_registration.format_plugin("opencode", patient.machine.home) if text is None else text)
    return replace(patient.scene, host_dirs=(("opencode", folder),), answers={"opencode": states})


ILLS: list[tuple[str, str, str, Callable[[Patient], Scene]]] = [
    ("settings", "fail", "not JSON; the assistant ignores", lambda p: _write(p, ".claude/settings.json", "{")),
    ("settings", "warn", "not a JSON object", lambda p: _write(p, "project/.claude/settings.json", "[]")),
    ("hooks", "fail", "no hook of csmd's is registered", lambda p: p.set(hooks={})),
    ("hooks", "fail", "no hook is registered for PreCompact", lambda p: _without(p, "PreCompact")),
    ("other-assistants", "fail", "no hook of csmd's is registered in", lambda p: _codex(p, "{}", {})),
    ("other-assistants", "note", "unknown whether `codex` runs", lambda p: _codex(p, None, None)),
    ("other-assistants", "fail", "does not run csmd's hooks for SessionEnd (modified)", lambda p: _codex(p, None, {"SessionEnd": "modified"})),
    ("other-assistants", "fail", "no hook of csmd's is registered in", lambda p: _opencode(p, {}, "")),
    ("other-assistants", "fail", "OpenCode does not run csmd's hooks for SessionStart (missing)", lambda p: _opencode(p, {})),
    ("other-assistants", "note", "OpenCode fetches @opencode-ai/plugin from npm once", lambda p: _opencode(p, None)),
    ("hooks-altered", "warn", "the hook for Stop is not as csmd wrote it", lambda p: p.hook("Stop", f"nice {p.command('Stop')}")),
    ("hooks-altered", "warn", "the hook for Stop is not as csmd wrote it", lambda p: p.hook("Stop", p.command("Stop"), timeout=1)),
    ("hooks-twice", "warn", "2 hooks of csmd's for Stop", _twice),
    ("hooks-other-home", "warn", "hooks of another csmd home, /o ld, which is gone", _other_home),
    ("hook-python", "fail", "hooks: their Python is gone (/nonexistent/python3)", _gone_python),
    ("hook-script", "warn", "is not the one that this csmd ships", _altered_script),
    ("hook-script", "fail", "the hook's file is gone", lambda p: (p.machine.paths.hook_script.unlink(), p.scene)[1]),
    ("server", "warn", "csmd's memory server is not registered in", lambda p: _write(p, ".claude/.claude.json", "{}")),
    ("server", "warn", "the memory server's program is gone", lambda p: ((p.machine.paths.hook_dir / "mcp").unlink(), p.scene)[1]),
    ("hooks-disabled", "fail", "disableAllHooks is true: no hook runs", lambda p: p.set(disableAllHooks=True)),
    ("hooks-disabled", "fail", "(in this directory): no hook runs", lambda p: _write(p, "project/.claude/settings.local.json", '{"disableAllHooks": true}')),
    ("hooks-managed-only", "fail", "allowManagedHooksOnly is true", lambda p: _write(p, "managed.json", '{"allowManagedHooksOnly": true}')),
    ("hooks-managed-only", "fail", "managed.d/1.json: allowManagedHooksOnly is true", lambda p: _write(p, "managed.d/1.json", '{"allowManagedHooksOnly": true}')),
    ("switched-off", "fail", "`env` sets CSMD_DISABLE=1", lambda p: p.set(env={"CSMD_DISABLE": "1"})),
    ("switched-off", "fail", "CSMD_DISABLE=1 is set", lambda p: replace(p.scene, env={"CSMD_DISABLE": "1"})),
    ("left-out", "warn", "csmd is switched off in this directory", lambda p: replace(_write(p, "else/below/.csmd-off", ""), cwd=p.machine.root / "else/below/deeper")),
    ("daemon-version", "warn", "the daemon is csmd 0.0.1", lambda p: p.told(version="0.0.1")),
    ("capture", "fail", "the hook for Stop does not work: it ended with exit code 3", lambda p: p.sent(p.hook("Stop", f"exit 3; {p.command('Stop')}"))),
    ("capture", "fail", "the hook for Stop does not work: it did not end within 0.3 s", lambda p: p.sent(p.hook("Stop", f"sleep 600; {p.command('Stop')}", timeout=0.3))),
    ("capture", "fail", "it is in neither the store nor the spool", lambda p: replace(p.scene, runs=(HookRun(event="Stop", command="", took_ms=1.0),))),
    ("capture", "warn", "took 2.0 s", lambda p: replace(p.scene, runs=(HookRun(event="Stop", command="", took_ms=2000.0, stored=True),))),
    ("paused", "warn", "until you resume it", lambda p: p.told(paused={"until": ""})),
    ("alarms", "fail", "no hook for 3 days", lambda p: p.told(alarms=[{"what": "no hook for 3 days", "do": "csmd install", "since": "2031-01-01T00:00:00.000Z"}])),
    ("degraded", "warn", "backup: no room", lambda p: p.told(degraded=["backup: no room"])),
    ("dreams", "warn", "a dream is overdue, the last one failed (the latest: no room)", lambda p: p.told(dream={"overdue": "25 h", "due": False, "running": None, "latest": {"error": "no room"}, "verdict": "overdue, the last one failed"})),
    ("hung-mark", "warn", "a hook timed out 4 s ago", _fresh_mark),
    ("model", "note", "search is by words alone", lambda p: p.scene),
    ("typed-prompts", "warn", "no prompt of the last 4 sessions counts as typed by a person", lambda p: p.told(prompts={"sessions": 4, "typed": 0})),
    ("spool", "warn", "1 event waits in the spool, the oldest for 1 h", lambda p: _spool_a(p, 6000)),
    ("quarantine", "note", "1 note lies", _quarantined),
    ("store", "note", "was not read to its end", lambda p: replace(p.scene, store_problems=None)),
    ("store", "fail", "the database is damaged: turns: 3 wrong", lambda p: replace(p.scene, store_problems=("turns: 3 wrong",))),
    ("beliefs", "warn", "every memory has a source: broken by m1", lambda p: replace(p.scene, broken_rules=(("every memory has a source: broken by m1", "csmd forget m1"),))),
    ("trust", "warn", "is not trusted", lambda p: _state(p, {"projects": {str(p.machine.project): {"hasTrustDialogAccepted": False}}})),
    ("client", "fail", "the client is 1.0.84; csmd's hooks need 1.0.85", lambda p: _client(p, "1.0.84 (Claude Code)")),
    ("client", "note", "prints no version", lambda p: _client(p, "hello")),
    ("client", "note", "no `claude` is on the PATH", lambda p: replace(p.scene, env={"PATH": "/nonexistent"})),
    ("cleanup", "warn", "deletes transcripts after 3 days", lambda p: p.set(cleanupPeriodDays=3)),
    ("cleanup", "warn", "keeps no transcripts", lambda p: _write(p, "managed.json", '{"cleanupPeriodDays": 0}')),
    ("other-memory", "note", "claude-mem is set up, too", lambda p: p.hook("PostToolUse", "node ~/.claude/plugins/claude-mem/worker.cjs")),
    ("other-memory", "note", "basic-memory is set up, too", lambda p: _state(p, {"mcpServers": {"basic-memory": {}}})),
    ("other-memory", "note", "episodic-memory is set up, too", lambda p: p.set(enabledPlugins={"episodic-memory@market": True})),
    ("config-dirs", "warn", "which csmd does not read", _unread),
    ("config-dirs", "note", "csmd does not read the sessions in", lambda p: replace(_unread_home(p), env={})),
    ("configuration", "fail", "unknown key 'brief.max'", lambda p: _write(p, "csmd/config.yaml", "brief: {max: 3}\n")),
    ("configuration", "fail", "install.json is damaged", lambda p: replace(p.scene, problems=("install.json is damaged",))),
    ("private", "warn", "is readable by other users (mode 0755)", _private),
    ("commands", "note", "there are 2 csmd on the PATH", _two_commands),
]  # fmt: skip


@pytest.mark.parametrize(("ident", "level", "words", "make"), ILLS, ids=[f"{row[0]}-{n}" for n, row in enumerate(ILLS)])
def test_what_is_amiss_is_named_with_its_remedy(
    patient: Patient, ident: str, level: str, words: str, make: Callable[[Patient], Scene]
) -> None:
    check(make(patient), ident, level, words)


#: These are made to go wrong by processes, mounts and other users, below.
ELSEWHERE = {"daemon", "disk", "file-system", "log", "shared-settings", "unreadable", "watches"}


@pytest.mark.invariant("The doctor runs no command that a repository brings along; every check goes wrong in some test")
def test_every_check_goes_wrong_in_some_test() -> None:
    assert {row[0] for row in ILLS} | ELSEWHERE == set(CHECKS)
    assert len(CHECKS) == len(checks.CHECKS)


# --- the round trip


@pytest.mark.invariant(
    "A marker of `csmd doctor` is nobody's and leaves nothing; nothing that somebody says passes for one"
)
def test_on_a_machine_that_is_well_a_turn_goes_from_the_hook_to_search_and_leaves_nothing(well: Patient) -> None:
    before = well.machine.status()
    value = examine.diagnose(well.scene)
    assert value["works"] and value["verdict"].startswith("Capture works: a turn went from the hook to search in ")
    assert levels(value).keys() <= USUAL
    assert {(one.event, one.stored, one.problem) for one in well.scene.runs} == {
        ("UserPromptSubmit", True, ""),
        ("Stop", True, ""),
    }
    look(well.machine)
    after = well.machine.status()
    for key in ("counts", "counters", "last_event", "projects", "spool"):
        assert after[key] == before[key], key
    assert well.machine.call("csm_memory_search", query="doctor looks for")["hits"] == []
    assert well.machine.call("csm_store_check") == {"problems": []}


def test_the_screen_fits_a_terminal_and_begins_with_the_verdict(well: Patient) -> None:
    done = well.machine.run("doctor", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Capture works: ") and all(len(line) <= 80 for line in lines)
    listed = [line.split()[0] for line in lines if line.startswith("  ") and not line.strip().startswith("try:")]
    assert set(CHECKS) - USUAL <= set(listed) and f"{len(listed)} checks passed" in lines


def test_the_worst_is_told_first_each_with_what_to_do(patient: Patient) -> None:
    patient.set(disableAllHooks=True, cleanupPeriodDays=2, autoDreamEnabled=True)
    done = patient.machine.run("doctor")
    assert done.returncode == 1
    words = [line.split()[0] for line in done.stdout.splitlines()[1:] if line and not line.startswith(" ")]
    told = [word for word in words if word in ("broken", "warning", "note")]
    assert told == sorted(told, key=("broken", "warning", "note").index) and set(told) == {"broken", "warning", "note"}
    assert done.stdout.count("try: ") == len(told)


@pytest.mark.invariant(
    "A marker of `csmd doctor` is nobody's and leaves nothing; nothing that somebody says passes for one"
)
def test_a_marker_is_nobodys_while_it_is_there(well: Patient) -> None:
    machine, word = well.machine, "bcdfghjklm"
    before = machine.status()["counts"]
    session = f"{PROBE_SESSION}{word}"
    assert machine.event("UserPromptSubmit", session, cwd="", prompt=PROBE_TEXT.format(event="prompt", word=word)) == (
        "ok",
        b"",
    )
    assert [hit["session_id"] for hit in machine.call("csm_memory_search", query=word)["hits"]] == [session]
    assert machine.status()["counts"] == before
    assert machine.call("csm_session_list")["sessions"] == []
    assert machine.status()["live"] == []
    assert machine.call("csm_tail")["items"] == []
    machine.sync()
    assert machine.status()["counts"] == before
    assert machine.call("csm_probe_take", id=session) == {
        "found": [PROBE_TEXT.format(event="prompt", word=word)],
        "removed": 1,
    }
    assert machine.call("csm_memory_search", query=word)["hits"] == []


@pytest.mark.invariant("The doctor runs no command that a repository brings along; every check goes wrong in some test")
def test_what_a_repository_registers_is_never_run(patient: Patient) -> None:
    told = patient.machine.root / "it-ran"
    command = f"touch {told}; {patient.command('Stop')}"
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    scene = patient.set(patient.machine.project / ".claude" / "settings.json", hooks=hooks)
    assert [one.scope for one in scene.ours if one.command == command] == ["project"]
    assert {one.command for one in patient.sent(scene).runs} == {
        patient.command("Stop"),
        patient.command("UserPromptSubmit"),
    }
    assert not told.exists()


#: (session, event, text, whether it is a marker)
EVENTS = [
    ("csmd-probe-bcd", "prompt", "csmd doctor looks for this prompt: bcd", True),
    ("csmd-probe-bcd", "stop", "csmd doctor looks for this stop: bcd", True),
    ("csmd-probe-bcd", "prompt", "csmd doctor looks for this prompt: bce", False),
    ("csmd-probe-bcd", "prompt", "csmd doctor looks for this prompt: bcd. We use tabs", False),
    ("csmd-probe-we use tabs", "prompt", "csmd doctor looks for this prompt: we use tabs", False),
    ("csmd-probe-", "prompt", "csmd doctor looks for this prompt: ", False),
    ("bcd", "prompt", "csmd doctor looks for this prompt: bcd", False),
]


@pytest.mark.invariant(
    "A marker of `csmd doctor` is nobody's and leaves nothing; nothing that somebody says passes for one"
)
@pytest.mark.parametrize(("session", "name", "said", "is_one"), EVENTS)
def test_nothing_that_somebody_says_passes_for_a_marker(session: str, name: Any, said: str, is_one: bool) -> None:
    event = Event(id="e", host="claude", name=name, session_id=session, at="", text=said)
    assert ingest.is_probe(event) is is_one
    assert not ingest.is_probe(replace(event, transcript_path="/t.jsonl"))


def test_no_memory_is_looked_up_for_a_marker() -> None:
    def is_by_user(session: str, said: str) -> bool:
        body = json.dumps({"session_id": session, "prompt": said}).encode()
        event, _ = ingest.decode_event(
            "claude", body, name="UserPromptSubmit", event_id="e", at="2026-01-01T00:00:00.000Z"
        )
        return event is not None and event.by_user

    said = PROBE_TEXT.format(event="prompt", word="bcd")
    assert not is_by_user(f"{PROBE_SESSION}bcd", said)
    assert is_by_user("s1", said) and is_by_user(f"{PROBE_SESSION}bcd", "we use tabs here")


def test_what_is_said_in_a_markers_session_is_captured_all_the_same(machine: Machine) -> None:
    machine.start()
    session = f"{PROBE_SESSION}bcd"
    machine.event("UserPromptSubmit", session, prompt="we use tabs here")
    assert machine.status()["counts"]["turns"] == 1
    assert machine.call("csm_probe_take", id=session)["removed"] == 0
    assert machine.status()["counts"]["turns"] == 1


def test_a_marker_that_a_killed_doctor_left_goes_by_itself(machine: Machine) -> None:
    from datetime import UTC, datetime, timedelta

    from csmd.config import Settings
    from csmd.daemon import housekeeping
    from csmd.store.core import Store

    daemon = machine.start()
    machine.event(
        "Stop", f"{PROBE_SESSION}bcd", cwd="", last_assistant_message=PROBE_TEXT.format(event="stop", word="bcd")
    )
    machine.stop(daemon)
    store = Store(machine.paths.database, now="2026-01-01T00:00:00.000Z")
    try:
        for minutes, left in ((5, 1), (11, 0)):
            housekeeping.drop_expired(store, Settings(), now=datetime.now(UTC) + timedelta(minutes=minutes))
            assert store.read(lambda rows: rows.value("select count(*) from turns")) == left
        assert store.read(lambda rows: rows.value("select count(*) from sessions")) == 0
    finally:
        store.close()


# --- processes, disks, other users


def test_without_a_daemon_every_other_check_runs_and_the_marker_leaves_the_spool(machine: Machine) -> None:
    machine.csmd("install", "--no-start")
    done = machine.run("doctor", "--json")
    value = json.loads(done.stdout)
    assert (done.returncode, value["works"]) == (1, False)
    assert value["verdict"].startswith("Capture is broken: no csmd daemon is running for ")
    assert levels(value).keys() - USUAL == {"daemon"}
    unasked = {one["id"] for one in value["checks"] if one["level"] == "unasked"}
    assert unasked == {
        "daemon-version",
        "paused",
        "alarms",
        "degraded",
        "dreams",
        "hung-mark",
        "model",
        "store",
        "typed-prompts",
    }
    passed = sum(one["level"] == "ok" for one in value["checks"])
    assert f"{passed} checks passed, 9 skipped: no daemon answers" in machine.run("doctor").stdout
    assert machine.spooled() == []
    machine.paths.stopped_mark.touch()
    scene = look(machine)
    check(scene, "daemon", "fail", "the daemon was stopped")
    assert [(one.stored, one.spooled) for one in scene.runs] == [(False, True), (False, True)]


OLDER = """
import csmd
csmd.__version__ = "0.0.9"
from csmd.daemon import instance, run
from csmd.tools import registry
del registry.TOOLS["csm_probe_take"]
run.run(instance.load_configuration())
"""


def test_an_older_daemon_is_sent_no_marker(machine: Machine) -> None:
    machine.csmd("install", "--no-start")
    child = subprocess.Popen([sys.executable, "-c", OLDER], env=machine.environment(), cwd=machine.root)
    try:
        eventually(machine.paths.endpoint.exists)
        scene = look(machine)
        check(scene, "daemon-version", "warn", "the daemon is csmd 0.0.9")
        assert scene.runs == ()
        assert examine.diagnose(scene)["verdict"].startswith("No problems found")
        assert machine.status()["counts"]["turns"] == 0
    finally:
        child.terminate()
        child.wait()


def test_a_daemon_that_hangs_is_told_from_one_that_is_not_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examine, "STATUS_TIMEOUT_S", 0.5)
    machine.csmd("install", "--no-start")
    daemon = machine.start()
    daemon.send_signal(signal.SIGSTOP)
    try:
        scene = look(machine)
    finally:
        daemon.send_signal(signal.SIGCONT)
    check(scene, "daemon", "fail", f"the daemon (pid {daemon.pid}) does not answer")
    eventually(lambda: machine.status()["counts"]["turns"] == 0)
    assert machine.spooled() == []


def test_a_hook_that_got_no_answer_in_time_is_told_when_its_turn_comes_from_the_spool(machine: Machine) -> None:
    machine.csmd("install", "--no-start")
    machine.start()
    # Hooks do not ask the daemon for 30 s: the daemon, which goes on, would take a file away.
    machine.paths.hung_mark.mkdir()
    check(look(machine), "capture", "warn", "the hook for UserPromptSubmit got no answer in time")


def test_a_home_whose_path_is_too_long_for_a_socket_is_told_and_works(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.csmd("install", "--no-start")
    long = machine.root / ("long" * 30)
    machine.home.rename(long)
    machine.home.symlink_to(long)
    check(look(machine), "private", "fail", "is a symbolic link")
    monkeypatch.setattr(Machine, "home", long)
    machine.csmd("install", "--no-start")
    machine.start()
    scene = look(machine)
    assert all(one.stored for one in scene.runs)
    check(scene, "hooks-other-home", "warn", "hooks of another csmd home")


NAMESPACE = ["unshare", "--map-root-user", "--mount", "--propagation", "private"]


def may_mount() -> bool:
    """Whether somebody may mount in a namespace of his own here."""
    try:
        done = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


@pytest.mark.skipif(not may_mount(), reason="this machine lets nobody mount in a namespace of its own")
@pytest.mark.parametrize(
    ("mount", "words"),
    [
        ("mount -t tmpfs -o size=6m,mode=700 none {home}", "are free on the disk of"),
        ("mount --bind {home} {home} && mount -o remount,bind,ro {home}", "is on a read-only disk"),
    ],
)
def test_a_disk_without_room_and_one_that_is_read_only_are_told(machine: Machine, mount: str, words: str) -> None:
    machine.home.mkdir(mode=0o700)
    story = f"{mount.format(home=machine.home)} && exec {sys.executable} -m csmd doctor --json"
    done = subprocess.run(
        [*NAMESPACE, "sh", "-c", story],
        env=machine.environment(),
        cwd=machine.project,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = [one for row in json.loads(done.stdout)["checks"] if row["id"] == "disk" for one in row["findings"]]
    assert [one["level"] for one in found] == ["fail"] and words in found[0]["what"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not read a directory")
def test_what_may_not_be_read_is_told(well: Patient) -> None:
    place = well.machine.root / "closed"
    place.mkdir(mode=0o700)
    log = well.machine.root / "log"
    log.mkdir(mode=0o700)
    well.machine.root.chmod(0o755)
    scene = well.told(projects=[{"root": str(place), "last": ""}])
    scene = replace(scene, cwd=Path("/"), dirs=(), paths=replace(scene.paths, log_dir=log))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:  # somebody else, in a process that ends here
        try:
            os.setuid(65534)
            said = [one.what for ident in ("unreadable", "log") for one in findings(ident, scene)]
            os.write(writing, json.dumps(said).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        said = json.loads(file.read())
    os.waitpid(child, 0)
    assert [words.startswith(str(path)) for words, path in zip(said, (place, log), strict=True)] == [True, True]
    place.rmdir()


def test_a_disk_that_does_not_answer_costs_one_check(well: Patient) -> None:
    pipe = well.machine.root / "pipe"
    os.mkfifo(pipe)
    slow = replace(CHECKS["private"], limit_s=0.05, examine=lambda _: iter([pipe.read_bytes()]))  # type: ignore[list-item]
    found = examine.collect_findings([slow, CHECKS["hooks"], slow], well.scene)
    assert [[one.what for one in some] for _, some in found] == [
        ["no answer within 0.05 s"],
        [],
        ["no answer within 0.05 s"],
    ]
    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # lets go whoever waits
    pipe.unlink()


# --- what no test can have: values


MOUNTS = "/dev/sda1 / ext4 rw,relatime 0 0\nserver:/x {home} {kind} rw 0 0\nx {assistant} fuse.x rw 0 0\n"


@pytest.mark.parametrize(("kind", "amiss"), [("nfs4", True), ("9p", True), ("cifs", True), ("xfs", False)])
def test_a_home_on_another_machines_disk_is_told(
    well: Patient, monkeypatch: pytest.MonkeyPatch, kind: str, amiss: bool
) -> None:

    mounts = well.machine.root / "mounts"
    mounts.write_text(MOUNTS.format(home=well.machine.home, assistant=well.machine.assistant, kind=kind))
    monkeypatch.setattr(home_disk, "MOUNTS", mounts)
    assert bool(findings("file-system", well.scene)) is amiss


def test_in_a_container_a_mounted_directory_of_the_assistants_is_told(
    well: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts, mark = well.machine.root / "mounts", well.machine.root / ".dockerenv"
    mounts.write_text(MOUNTS.format(home="/h", assistant=well.machine.assistant, kind="xfs"))
    monkeypatch.setattr(home_disk, "MOUNTS", mounts)
    monkeypatch.setattr(checks, "CONTAINER_MARKS", (str(mark),))
    assert findings("shared-settings", replace(well.scene, env={})) == []
    mark.touch()
    check(well.scene, "shared-settings", "warn", "this is a container")


def test_too_few_watches_are_told(well: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    from csmd.doctor import checks

    limits = well.machine.root / "limits"
    limits.mkdir()
    monkeypatch.setattr(checks, "LIMITS", limits)
    for number in range(8):
        (well.machine.assistant / "projects" / f"-p{number}").mkdir(parents=True, exist_ok=True)
    for watches, instances, said in ((8192, 128, 0), (8, 128, 1), (8192, 4, 1)):
        (limits / "max_user_watches").write_text(f"{watches}\n")
        (limits / "max_user_instances").write_text(f"{instances}\n")
        assert len(findings("watches", well.scene)) == said


# --- the settings as they are read


def test_the_file_that_decides_is_asked_first(tmp_path: Path) -> None:
    folders = (tmp_path / "c",)
    found = host_settings.settings_files(folders, tmp_path, Path("/m.json"))
    assert [scope for _, scope in found] == ["managed", "local", "project", "user"]
    sources = [
        host_settings.Source(path=scope, scope=scope, value={"cleanupPeriodDays": days})
        for days, scope in ((1, "local"), (9, "user"))
    ]  # type: ignore[arg-type]
    assert host_settings.cleanup_days(sources) == (1, "local")
    assert host_settings.cleanup_days([]) == (30, "")


def test_a_directory_below_a_trusted_one_is_trusted() -> None:
    state = {"projects": {"/a/b": {"hasTrustDialogAccepted": True}, "/a": {"hasTrustDialogAccepted": False}, "/x": 3}}
    asked = {"/a/b": True, "/a/b/c": True, "/a": False, "/a/d": False, "/x": None, "/never/opened": None}
    assert {place: host_settings.is_trusted(state, place) for place in asked} == asked
    assert host_settings.is_trusted({}, "/a") is None


@pytest.mark.parametrize(
    ("command", "home", "program"),
    [
        ("/usr/bin/python3 -I -S '/h o/csmd/hook/csmd_hook.py' '/h o/csmd' Stop || true", "/h o/csmd", "python3"),
        ("sh -c '/p -I /h/hook/csmd_hook.py /h Stop'", "/h", "sh"),
        ("/h/hook/post-turn", "/h", "post-turn"),
        ("KEY=secret npx -y claude-mem hook", "", "npx"),
        ("echo 'unclosed", "", ""),
    ],
)
def test_of_a_command_its_home_and_its_program_are_known(command: str, home: str, program: str) -> None:
    source = host_settings.Source(
        path="s", scope="user", value={"hooks": {"Stop": [{"hooks": [{"command": command}]}]}}
    )
    assert [(one.event, one.home) for one in host_settings.registered_commands(source)] == [("Stop", home)]
    assert host_settings.program(command) == program


NAMES = st.sampled_from(
    ["hooks", "Stop", "command", "args", "timeout", "env", "enabledPlugins", "cleanupPeriodDays", "disableAllHooks", "projects",
     "mcpServers", "hasTrustDialogAccepted", "/a", "CSMD_DISABLE"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5) | NAMES,
    lambda some: st.lists(some, max_size=3) | st.dictionaries(NAMES, some, max_size=4),
    max_leaves=12,
)


@hypothesis.settings(max_examples=80)
@hypothesis.example({"cleanupPeriodDays": float("inf")})
@hypothesis.example({"hooks": {"Stop": [{"hooks": [{"command": 3, "args": "x", "timeout": True}, 3]}, 3]}})
@hypothesis.given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_whatever_stands_in_a_settings_file_is_read(value: dict[str, Any]) -> None:
    sources = [host_settings.Source(path="s", scope="user", value=value)]
    assert all(isinstance(one.command, str) for one in host_settings.registered_commands(sources[0]))
    assert host_settings.cleanup_days(sources)[0] >= 0
    assert all(map(str, (*host_settings.plugins(sources), *host_settings.servers(value, "/a"))))
    assert host_settings.is_trusted(value, "/a/b") in (True, False, None)
    assert len(host_settings.variable(sources, "CSMD_DISABLE")) == 2


def test_what_the_rim_knows_of_the_assistant_is_what_capture_knows() -> None:
    assert set(registration.BASE_TIMEOUTS) <= set(host_settings.EVENTS)
    folder, project = Path("/c"), Path("/p")
    found = [
        str(path)
        for path, _ in host_settings.settings_files([folder], project, Path(registration.MANAGED_SETTINGS["linux"]))
    ]
    assert found == environment.settings_files("/c", platform="linux", project="/p")


def test_the_words_of_a_marker_are_no_secret_to_anybody(well: Patient) -> None:
    from collections import Counter

    from csmd.privacy.redaction import redact

    assert service.find_process(well.scene.paths) is not None
    for seed in range(200):
        word = "".join(
            examine.LETTERS[(seed * 31 + place * place * 7) % len(examine.LETTERS)]
            for place in range(examine.WORD_LETTERS)
        )
        said = PROBE_TEXT.format(event="prompt", word=word)
        assert redact(said, Counter()) == said


# --- Codex

#: What stands for Codex: it answers the second question, and says more than it is asked.
CODEX = """#!/bin/sh
read one; read two; read three
echo '{"method": "remoteControl/changed"}'
echo '{"id": 1, "result": {}}'
cat "$CODEX_HOME/answer"
"""


def test_codex_is_asked_for_its_own_word_on_trust(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, folder = machine.root / "bin", machine.root / ".codex"
    programs.mkdir()
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    assert examine.ask_program(machine.paths, FILES["codex"], folder, machine.project) is None
    (programs / "codex").write_text(CODEX)
    (programs / "codex").chmod(0o700)
    command = codex_registration.HOOKS.command(machine.home, "SessionStart")
    hooks = [
        {"eventName": "sessionStart", "command": command, "trustStatus": "trusted"},
        {"eventName": "stop", "command": "say done", "trustStatus": "untrusted"},
    ]
    (folder / "answer").write_text(json.dumps({"id": 2, "result": {"data": [{"hooks": hooks}]}}) + "\n")
    assert examine.ask_program(machine.paths, FILES["codex"], folder, machine.project) == {"SessionStart": "trusted"}
    (folder / "answer").write_text('[]\n{"id": 2, "error": {}}\n')
    assert examine.ask_program(machine.paths, FILES["codex"], folder, machine.project) is None


def test_opencode_is_asked_which_plugins_it_loads(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = machine.root / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    files = FILES["opencode"]

    def ask() -> dict[str, str] | None:
        return examine.ask_program(machine.paths, files, files.directory(), machine.project)

    assert ask() is None
    listed = f"echo plugins:; echo - {opencode_registration.locate_plugin('opencode').as_uri()}"
    for said, states in ((listed, dict.fromkeys(files.events, "loaded")), ("echo plugins: none", {}), ("exit 1", None)):
        (programs / "opencode").write_text(f'#!/bin/sh\n[ "$1 $2" = "debug info" ] || exit 1\n{said}\n')
        (programs / "opencode").chmod(0o700)
        assert ask() == states, said


def test_opencode_is_asked_away_from_the_project_and_leaves_no_process(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, seen = machine.root / "bin", machine.root / "seen"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.chdir(machine.project)
    (programs / "opencode").write_text(f'#!/bin/sh\nsleep 300 &\necho "$! $PWD $(ls -A | wc -l)" > {seen}\n')
    (programs / "opencode").chmod(0o700)
    files = FILES["opencode"]
    assert files.question is not None
    files = replace(files, question=replace(files.question, patience_s=2.0))
    examine.ask_program(machine.paths, files, files.directory(), machine.project)
    left, place, listed = seen.read_text().split()
    assert (int(listed), Path(place).exists()) == (0, False) and Path(place) != machine.project
    eventually(lambda: not psutil.pid_exists(int(left)) or psutil.Process(int(left)).status() == psutil.STATUS_ZOMBIE)
