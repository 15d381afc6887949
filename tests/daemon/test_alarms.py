"""Alarms, and which clients and directories are in use: noted in bounds, told once a day and never otherwise."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from machine import PREFERENCE, Machine, eventually

from csmd.config import has_desktop
from csmd.daemon import alarms, assistants_in_use, context, reading
from csmd.daemon.context import to_iso
from csmd.daemon.jobs import LIVE_SWEEP_S
from csmd.errors import StoreError
from csmd.hosts.claude import environment
from csmd.installer import plan
from csmd.store import events
from csmd.store.events import SessionWithoutEvents, UnreportedSession
from csmd.store.sqlite import as_store_error

WORDS = {key: what for key, (what, _) in alarms.ALARMS.items()}


def at(seconds_ago: float) -> str:
    return to_iso(datetime.now(UTC) - timedelta(seconds=seconds_ago))


# --- decided


BEFORE, NOTED, LATER = "2026-05-05T09:00:00.000Z", "2026-05-05T10:00:00.000Z", "2026-05-05T11:00:00.000Z"
#: A person's session in a terminal, and one whose client runs no hooks.
TERMINAL, BARE = b'{"entrypoint":"cli","type":"agent_listing_delta"}', b'{"entrypoint":"cli"}'
UNREPORTED: list[tuple[str, str, bytes, dict[str, str], bool]] = [
    ("where the settings have no hooks every session counts: what is told is true", "gone", BARE, {}, True),
    ("where they are switched off, too", "off", BARE, {"passed_at": LATER}, True),
    ("where they are there one of a person in a terminal in which hooks run", "there", TERMINAL, {}, True),
    ("and no other", "there", BARE, {}, False),
    ("nor one that the user keeps out", "there", TERMINAL, {"passed_at": LATER}, False),
    ("a word of one before it says nothing", "there", TERMINAL, {"passed_at": BEFORE}, True),
    ("nor where the settings cannot be read", "unknown", TERMINAL, {}, True),
    ("nor another than a person's there", "unknown", BARE, {}, False),
    ("one beside which another was heard", "there", TERMINAL, {"reported": "/a"}, False),
    ("also where the hooks are gone", "gone", TERMINAL, {"reported": ""}, False),
    ("but not one of another directory", "gone", TERMINAL, {"reported": "/b"}, True),
    ("a directory that csmd was not installed into is none of its business", "", TERMINAL, {}, False),
]


@pytest.mark.parametrize(
    ("state", "beginning", "more", "expected"), [row[1:] for row in UNREPORTED], ids=[row[0] for row in UNREPORTED]
)
def test_an_unreported_session_says_something_or_not(
    tmp_path: Path, state: Any, beginning: bytes, more: dict[str, str], expected: bool
) -> None:
    transcript = tmp_path / "projects" / "-p" / "s.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(beginning)
    session = SessionWithoutEvents(id="s", path=str(transcript), started_at=NOTED)
    other = more.get("reported", "/b")
    reported = [(LATER, str(tmp_path) if other == "/a" else other)]
    states = {str(tmp_path): state} if state else {}
    assert alarms.is_unreported(session, states, reported, passed_at=more.get("passed_at", "")) is expected


def path_in(folder: str) -> str:
    return f"{folder}/projects/-p/s.jsonl" if folder else ""


RAISED: list[tuple[str, list[tuple[str, str]], dict[str, Any], dict[str, str]]] = [
    ("nothing noted", [], {"/a": "gone"}, {}),
    ("one is enough where the hooks are gone", [("/a", NOTED)], {"/a": "gone"}, {"gone": NOTED}),
    ("one is enough where they are switched off", [("/a", NOTED)], {"/a": "off"}, {"off": NOTED}),
    ("one is not enough where they are there", [("/a", NOTED)], {"/a": "there"}, {}),
    ("two are", [("/a", NOTED), ("/a", LATER)], {"/a": "there"}, {"silent": NOTED}),
    ("nor where the settings cannot be read", [("/a", NOTED)], {"/a": "unknown"}, {}),
    ("each in another directory", [("/a", NOTED), ("/b", NOTED)], {"/a": "there", "/b": "there"}, {}),
    (
        "of two directories the one without hooks",
        [("/a", NOTED), ("/b", BEFORE)],
        {"/a": "gone", "/b": "gone"},
        {"gone": BEFORE},
    ),
    ("a directory that is not csmd's any more", [("/a", NOTED)], {"/b": "gone"}, {}),
]


@pytest.mark.parametrize(("noted", "states", "expected"), [row[1:] for row in RAISED], ids=[row[0] for row in RAISED])
def test_what_is_raised(noted: list[tuple[str, str]], states: dict[str, Any], expected: dict[str, str]) -> None:
    assert alarms.find_hook_alarms(noted, states) == expected


CLEARED: list[tuple[str, str, list[tuple[int, str]], str, bool]] = [
    ("nothing came", "/a", [], "", False),
    ("an event of a session of that directory", "/a", [(6, "/a")], "", True),
    ("an event of nobody knows where", "/a", [(6, "")], "", True),
    ("an event of another directory", "/a", [(6, "/b")], "", False),
    ("an event from before", "/a", [(5, "/a")], "", False),
    ("hooks were put in place anew", "/a", [], LATER, True),
    ("they were put in place before", "/a", [], BEFORE, False),
    ("its session was purged", "", [], "", True),
]


@pytest.mark.parametrize(
    ("folder", "reported", "installed", "expected"), [row[1:] for row in CLEARED], ids=[row[0] for row in CLEARED]
)
def test_what_clears_a_noted_session(
    folder: str, reported: list[tuple[int, str]], installed: str, expected: bool
) -> None:
    noted = UnreportedSession(id="1", path=path_in(folder), at=NOTED, after_event=5)
    cleared = alarms.find_cleared_sessions([noted], reported, ["/a", "/b"], since=installed)
    assert cleared == (["1"] if expected else [])


SCRIPT = "/h/hook/csmd_hook.py"
OURS = {
    "SessionStart": [{"hooks": [{"type": "command", "command": f"python3 -I -S {SCRIPT} /h SessionStart || true"}]}]
}
THEIRS = {"SessionStart": [{"hooks": [{"type": "command", "command": "theirs /other/hook/csmd_hook.py"}]}]}
STATES: list[tuple[Any, Any, str]] = [
    ({"hooks": OURS}, None, "there"),
    ({"hooks": {"Stop": [{"hooks": [{"command": "python3", "args": ["-I", SCRIPT]}]}]}}, None, "there"),
    ({"enabledPlugins": {"csmd@csmd": True}}, None, "there"),
    ({"enabledPlugins": {"csmd@csmd": False}}, None, "gone"),
    ({"hooks": THEIRS}, None, "gone"),
    ({"hooks": {"Stop": [{"hooks": [{"command": f"python3 /other{SCRIPT} || true"}]}]}}, None, "gone"),
    ({"note": SCRIPT}, None, "gone"),
    ({}, None, "gone"),
    (None, None, "gone"),
    ("", None, "gone"),
    ({"hooks": OURS, "disableAllHooks": True}, None, "off"),
    ({"hooks": OURS, "disableAllHooks": "true"}, None, "there"),
    ({"hooks": OURS}, {"disableAllHooks": True}, "off"),
    ({"hooks": OURS}, {"allowManagedHooksOnly": True}, "off"),
    ({"hooks": OURS}, "no JSON", "there"),
    ("{", None, "unknown"),
    ("[]", None, "unknown"),
]


@pytest.mark.parametrize(("own", "managed", "expected"), STATES)
def test_what_the_settings_say_of_the_hooks(own: Any, managed: Any, expected: str) -> None:
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in (own, managed)]
    assert environment.hooks_state(*texts, script=SCRIPT) == expected


def test_the_hooks_that_install_registers_are_found(tmp_path: Path) -> None:
    for home in (tmp_path, tmp_path / "a 'home'"):
        text = json.dumps(plan.format_hooks(home))
        script = home / "hook" / "csmd_hook.py"
        assert environment.hooks_state(text, None, script=str(script)) == "there"
        assert environment.hooks_state(text, None, script=f"/hook{script}") == "gone"


# --- seen by a daemon


class Story:
    """A daemon's parts that have run for a day, csmd installed an hour ago with hooks in the settings."""

    def __init__(self, parts: Any) -> None:
        self.parts, self.machine = parts, parts.machine
        self.now = 0.0
        self.machine.assistant.mkdir(parents=True, exist_ok=True)
        self.put_hooks(plan.format_hooks(self.machine.home))
        self.installed(3600)
        self.step()
        self.now += 86_400

    def put_hooks(self, value: Any) -> None:
        (self.machine.assistant / "settings.json").write_text(json.dumps(value))

    def installed(self, seconds_ago: float) -> None:
        record = self.machine.paths.install_record
        record.write_text(json.dumps({"settings": {}, "assistant_dirs": [str(self.machine.assistant)]}))
        moment = datetime.now(UTC).timestamp() - seconds_ago
        os.utime(record, (moment, moment))

    def step(self) -> list[str]:
        """Reads what there is and looks; the keys of what is raised."""
        self.parts.background.sweep_soon()
        for _ in range(3):
            self.now += 6
            self.parts.background.step(self.now)
        assert "alarms" not in self.parts.background.context.trouble, self.parts.background.context.trouble
        by_words = {what: key for key, what in WORDS.items()}
        return [by_words[one["what"]] for one in self.parts.background.alarms.list_active()]

    def session(
        self, name: str, *, entry: str = "cli", listing: bool = True, begun: float = 60, answered: float = 30,
        folder: Path | None = None, more: str = "",
    ) -> Path:  # fmt: skip
        """A session of which nobody reports anything, `begun` and `answered` so many seconds ago."""
        machine = self.machine
        first: dict[str, Any] = {"type": "attachment", "sessionId": name, "attachment": {"type": "x"}}
        if listing:
            first["attachment"]["type"] = "agent_listing_delta"
        lines = [
            {**first, "entrypoint": entry},
            {**machine.line("user", f"prompt of {name}", session=name), "timestamp": at(begun)},
            {**machine.line("assistant", f"answer of {name}", session=name), "timestamp": at(answered)},
        ]
        return Path(machine.transcript(*lines, *([more] if more else []), session=name, folder=folder))

    def event(self, name: str, session: str, *, ago: float = 0) -> None:
        """A hook reports, through the spool."""
        payload = {"session_id": session, "cwd": str(self.machine.project), "hook_event_name": name, "source": "startup",
                   "prompt": "something else", "transcript_path": str(self.machine.assistant / "projects" / "-project" / f"{session}.jsonl")}  # fmt: skip
        ident = os.urandom(16).hex()
        head = f"csmd-spool 1 {ident} claude {name} {int((datetime.now(UTC).timestamp() - ago) * 1e9)}\n"
        (self.machine.paths.spool / f"{ident}.event").write_bytes(head.encode() + json.dumps(payload).encode())


@pytest.fixture
def story(parts: Any) -> Story:
    return Story(parts)


def test_where_the_hooks_are_gone_one_session_raises_it_and_a_new_install_ends_it(story: Story) -> None:
    story.put_hooks({})
    assert story.step() == []
    story.session("s1")
    assert story.step() == ["gone"]
    (shown,) = story.parts.background.alarms.list_active()
    assert shown["since"].startswith(at(0)[:10])
    story.put_hooks(plan.format_hooks(story.machine.home))
    story.installed(0)
    assert story.step() == []
    assert story.parts.store.read(events.list_unreported_sessions) == []


def test_where_hooks_are_switched_off_one_session_raises_it(story: Story) -> None:
    story.put_hooks({**plan.format_hooks(story.machine.home), "disableAllHooks": True})
    story.session("s1", entry="sdk-cli")
    assert story.step() == ["off"]


def test_where_hooks_are_there_two_sessions_raise_it_and_an_event_ends_it(story: Story) -> None:
    story.session("s1")
    assert story.step() == []
    story.session("s2")
    assert story.step() == ["silent"]
    story.event("SessionStart", "s3", ago=50)
    assert story.step() == []
    story.session("s4", begun=40)
    assert story.step() == [], "it is counted anew"
    story.session("s5", begun=40)
    assert story.step() == ["silent"]


def test_an_alarm_outlives_a_restart(story: Story) -> None:
    from csmd.daemon.alarms import Alarms

    story.put_hooks({})
    story.session("s1")
    assert story.step() == ["gone"]
    since = story.parts.background.alarms.list_active()[0]["since"]
    story.parts.background.alarms = Alarms(story.parts.background.context)
    assert story.step() == ["gone"]
    assert story.parts.background.alarms.list_active()[0]["since"] == since


def of_a_script(story: Story, name: str) -> None:
    story.session(name, entry="sdk-cli")


def of_an_old_client(story: Story, name: str) -> None:
    """2.0 does not say whether a session is a script's."""
    story.session(name, entry="", listing=False)


def bare(story: Story, name: str) -> None:
    """`claude --bare`: what a session may call is not listed in it."""
    story.session(name, listing=False)


def kept_out(story: Story, name: str) -> None:
    """CSMD_DISABLE=1: its hooks leave word and nothing else."""
    story.machine.paths.passed_by_mark.touch()
    story.session(name)


def in_which_hooks_ran(story: Story, name: str) -> None:
    """The client says that it ran the hook: of another machine's csmd, say."""
    ran = {
        "type": "system",
        "subtype": "stop_hook_summary",
        "hookInfos": [{"command": "python3 /h/hook/csmd_hook.py /h"}],
    }
    story.session(name, more=json.dumps(ran) + "\n")


def imported(story: Story, name: str) -> None:
    story.session(name, begun=90_000, answered=80_000)


def of_before_the_installation(story: Story, name: str) -> None:
    story.installed(0)
    story.session(name)


def continued(story: Story, name: str) -> None:
    """Resumed, or a fork, which copies what was said with its times."""
    story.session(name, begun=90_000)


def copied_an_hour_later(story: Story, name: str) -> None:
    story.session(name, begun=3500, answered=3400)


def of_another_directory(story: Story, name: str) -> None:
    other = story.machine.assistant.parent / "other" / "projects" / "-p"
    path = story.session(name, folder=other)
    story.parts.background.hint(str(path))


def of_a_sub_agent(story: Story, name: str) -> None:
    lines = [
        {**story.machine.line(kind, f"{kind} {name}", session="main"), "timestamp": at(30), "entrypoint": "cli",
         "isSidechain": True, "agentId": name, "attachment": {"type": "agent_listing_delta"}}
        for kind in ("user", "assistant")
    ]  # fmt: skip
    folder = story.machine.assistant / "projects" / "-project" / "main" / "subagents"
    story.machine.transcript(*lines, session=f"agent-{name}", folder=folder)


def not_answered_yet(story: Story, name: str) -> None:
    story.session(name, answered=1)


def of_a_clock_ahead(story: Story, name: str) -> None:
    story.session(name, begun=-7000, answered=-7100)


def of_a_clock_behind(story: Story, name: str) -> None:
    story.session(name, begun=7200, answered=7100)


def of_a_clock_set_back(story: Story, name: str) -> None:
    """What was said before the clock was set back stands in the future: nobody knows when it was."""
    later = {**story.machine.line("user", f"more of {name}", session=name), "timestamp": at(-7200)}
    story.session(name, more=json.dumps(later) + "\n")


def reported_late(story: Story, name: str) -> None:
    """Its event waits in the spool while it is read."""
    story.session(name)
    story.event("SessionStart", name)


QUIET: list[Callable[[Story, str], None]] = [
    of_a_script, of_an_old_client, bare, kept_out, in_which_hooks_ran, imported, of_before_the_installation, continued,
    copied_an_hour_later, of_another_directory, of_a_sub_agent, not_answered_yet, of_a_clock_ahead, of_a_clock_behind,
    of_a_clock_set_back, reported_late,
]  # fmt: skip


@pytest.mark.invariant(
    "Sessions that no hook reports are an alarm until one does; what is no trouble raises none; a store that refuses stands first"
)
@pytest.mark.parametrize("sessions", QUIET, ids=lambda one: one.__name__)
def test_sessions_that_are_no_trouble_raise_nothing(story: Story, sessions: Callable[[Story, str], None]) -> None:
    for name in ("s1", "s2", "s3"):
        sessions(story, name)
    assert story.step() == []


@pytest.mark.parametrize(
    "sessions",
    [imported, of_before_the_installation, continued, copied_an_hour_later, of_another_directory, of_a_sub_agent,
     of_a_clock_ahead, of_a_clock_behind, of_a_clock_set_back],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_nor_where_the_hooks_are_gone(story: Story, sessions: Callable[[Story, str], None]) -> None:
    story.put_hooks({})
    for name in ("s1", "s2", "s3"):
        sessions(story, name)
    assert story.step() == []


def test_sessions_of_before_the_daemon_raise_nothing(parts: Any) -> None:
    story = Story(parts)
    story.put_hooks({})
    story.now -= 86_400  # it has just been started
    story.session("s1")
    assert story.step() == []
    story.now += 3600
    story.session("s2", begun=40)
    assert story.step() == ["gone"]


def test_while_events_wait_in_the_spool_nobody_is_taken_for_unheard(story: Story) -> None:
    story.put_hooks({})
    reading.read_guarded(story.parts.background.context, story.session("s1"))
    story.event("SessionStart", "s1")
    story.now += 6
    story.parts.background.alarms.step(story.now)
    assert story.parts.background.alarms.list_active() == []
    assert story.step() == []


def test_without_an_installation_nothing_is_raised(story: Story) -> None:
    story.machine.paths.install_record.unlink()
    story.put_hooks({})
    story.session("s1")
    assert story.step() == []


# --- the store and the spool


@pytest.mark.invariant(
    "Sessions that no hook reports are an alarm until one does; what is no trouble raises none; a store that refuses stands first"
)
def test_a_disk_that_takes_no_write_is_an_alarm_until_it_does(story: Story) -> None:
    store = story.parts.store

    def full(_: Any) -> None:
        raise as_store_error(apsw.FullError("database or disk is full")) from apsw.FullError()

    with pytest.raises(StoreError):
        store.write(full)
    assert story.parts.call("csm_runtime_alarms")["alarms"][0]["what"] == WORDS["disk"]
    first = story.parts.background.alarms.list_active()
    assert story.parts.background.alarms.list_active() == first, "since is when it began"
    store.write(lambda rows: None)
    assert story.parts.background.alarms.list_active() == []


def test_a_write_that_is_wrong_by_itself_is_no_alarm(story: Story) -> None:
    def of_ours(_: Any) -> None:
        raise StoreError("this file is full", hint="begin another one")

    def of_nothing(rows: Any) -> None:
        rows.run("insert into nowhere values (1)")

    for write in (of_ours, of_nothing):
        with pytest.raises(StoreError):
            story.parts.store.write(write)
        assert story.parts.background.alarms.list_active() == []


def test_a_damaged_database_is_an_alarm(story: Story) -> None:
    story.parts.store.is_read_only, story.parts.store.damage = True, "csmd.db is damaged"
    assert story.step() == ["damaged"]


def test_events_that_are_stuck_for_an_hour_are_an_alarm(story: Story) -> None:
    newer = story.machine.paths.spool / f"{'0' * 32}.event"
    newer.write_bytes(b"csmd-spool 2 x claude Stop 1\n{}")
    assert story.step() == []
    story.now += alarms.SPOOL_STUCK_S
    assert story.step() == ["spool"]
    newer.unlink()
    assert story.step() == []


def test_alarms_stand_worst_first(story: Story) -> None:
    told = alarms.describe_alarms(dict.fromkeys(reversed(alarms.ALARMS), "now"))
    assert [one["what"] for one in told] == list(WORDS.values())
    assert all(list(one) == ["what", "do", "since"] for one in told)


# --- the notice on the desktop


@pytest.fixture
def desktop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A desktop whose notify-send writes down what it is given; the file."""
    seen, program = tmp_path / "seen", tmp_path / "bin" / "notify-send"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >>{seen}\necho >>{seen}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("DISPLAY", ":7")
    return seen


def test_a_notice_is_shown_once_a_day_in_constant_words(story: Story, desktop: Path) -> None:
    story.put_hooks({})
    story.session("s1")
    assert story.step() == ["gone"]
    story.step()
    (line,) = desktop.read_text().splitlines()
    assert line == f"--app-name=csmd|--|csmd: {WORDS['gone']}|csmd install|"
    (noted,) = story.machine.paths.run_dir.glob("noticed-*")
    assert stat.S_IMODE(noted.stat().st_mode) == 0o600
    again = alarms.Notices(story.machine.paths.run_dir)
    assert not again.show("what", "do"), "nor after a restart"
    noted.rename(noted.with_name(f"noticed-{datetime.now().astimezone().date() + timedelta(days=2)}"))
    assert not again.show("what", "do"), "nor when the clock is set back"
    for path in story.machine.paths.run_dir.glob("noticed-*"):
        path.rename(noted.with_name("noticed-2020-01-01"))
    assert again.show("what", "do"), "but on another day"
    assert [path.name for path in story.machine.paths.run_dir.glob("noticed-*")] == [noted.name]


def test_where_no_note_can_be_made_memory_has_to_do(desktop: Path, tmp_path: Path) -> None:
    notices = alarms.Notices(tmp_path / "no" / "run")
    assert [notices.show("what", "do"), notices.show("what", "do")] == [True, False]


def test_a_notice_can_be_switched_off(parts: Any, desktop: Path) -> None:
    parts.background.context.config = parts.machine.config(alarm_desktop=False)
    story = Story(parts)
    story.put_hooks({})
    story.session("s1")
    assert story.step() == ["gone"]
    assert not desktop.exists()


def test_without_a_desktop_or_a_way_to_show_it_there_is_no_notice(
    monkeypatch: pytest.MonkeyPatch, desktop: Path, tmp_path: Path
) -> None:
    notices = alarms.Notices(tmp_path)
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    assert not notices.show("what", "do")
    monkeypatch.setenv("DISPLAY", ":7")
    monkeypatch.setenv("PATH", "/nowhere")
    assert not notices.show("what", "do")
    assert not list(tmp_path.glob("noticed-*")), "the day is still free"
    assert has_desktop({"WAYLAND_DISPLAY": "wayland-0"}) and not has_desktop({"TERM": "xterm"})


def test_a_desktop_that_does_not_listen_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, desktop: Path, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "notify-send"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(alarms, "NOTICE_TIMEOUT_S", 0.05)
    assert not alarms.Notices(tmp_path).show("what", "do")


# --- Which clients and directories are in use: noted in bounds, told in status, acted on once a day and never otherwise.


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
    assert assistants_in_use.find_config_dir(transcript) == (None if folder is None else Path(folder), inside)


def other_directory(machine: Machine, name: str = ".claude-work") -> Path:
    folder = machine.root / name
    (folder / "projects" / "-project").mkdir(parents=True)
    return folder


@pytest.mark.invariant("A hook cannot lead csmd to a foreign directory")
def test_a_hook_that_names_another_directory_is_not_followed_but_told(parts: Any) -> None:
    folder = other_directory(parts.machine)
    path = parts.machine.conversation(folder=folder / "projects" / "-project")
    parts.background.context.hint_from_hook(str(path))
    parts.background.context.hint_from_hook(str(parts.machine.root / "never" / "projects" / "-p" / "s.jsonl"))
    parts.background.context.hint_from_hook("/etc/projects/-p/s.jsonl")
    parts.background.step(START)
    known = parts.call("csm_clients")
    assert known["elsewhere"] == [str(folder)]
    assert known["directories"] == [str(parts.machine.assistant)]
    (warning,) = assistants_in_use.list_client_warnings(known, parts.background.context.config)
    assert str(folder) in warning and f"csmd install --config-dir {folder}" in warning
    assert parts.store.read(lambda rows: rows.value("select count(*) from turns")) == 0


def test_a_directory_of_somebody_elses_is_not_noted(parts: Any) -> None:
    folder = other_directory(parts.machine)
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(folder, 12345, 12345)
    parts.background.context.hint_from_hook(str(folder / "projects" / "-p" / "s.jsonl"))
    parts.background.step(START)
    assert parts.call("csm_clients")["elsewhere"] == []


def test_a_known_directory_by_another_name_is_followed(parts: Any) -> None:
    parts.machine.conversation()
    parts.background.step(START)
    (parts.machine.root / "link").symlink_to(parts.machine.assistant)
    before = parts.store.read(lambda rows: rows.value("select count(*) from turns"))
    parts.machine.transcript(parts.machine.line("user", PREFERENCE))
    parts.background.context.hint_from_hook(str(parts.machine.root / "link" / "projects" / "-project" / "s1.jsonl"))
    parts.background.step(START)
    parts.background.step(START)
    assert parts.store.read(lambda rows: rows.value("select count(*) from turns")) == before + 1
    assert parts.call("csm_clients")["elsewhere"] == []


def test_what_hooks_name_between_two_looks_is_bounded(parts: Any) -> None:
    for number in range(1000):
        parts.background.context.hint_from_hook(f"/nowhere/{number}/projects/-p/s.jsonl")
    assert len(parts.background.context.take_unknown_transcripts()) == context.MAX_UNKNOWN_TRANSCRIPTS


def today(machine: Machine, version: str, days_ago: float = 0.0) -> Path:
    """A transcript that a client of this version wrote so many days ago."""
    at = to_iso(datetime.now(UTC) - timedelta(days=days_ago))
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
    (warning,) = assistants_in_use.list_client_warnings(parts.call("csm_clients"), parts.background.context.config)
    assert "2.0.77" in warning and "PostCompact" in warning
    child = parts.background.clients._child
    assert child is not None and child.args[1:] == ["-P", "-m", "csmd", "hooks", "settle"]
    child.wait(30)  # no daemon answers it here
    parts.background.step(START + 3 * LIVE_SWEEP_S)
    assert "hooks settle" in parts.background.context.trouble["hooks"]
    parts.background.step(START + 4 * LIVE_SWEEP_S)
    assert parts.background.clients._child is None
    parts.background.step(START + assistants_in_use.SETTLE_EVERY_S + 4 * LIVE_SWEEP_S)
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
    parts.background.context.hint_from_hook(transcript)
    parts.background.step(START)
    assert parts.call("csm_clients")["elsewhere"] == [str(folder)]
    job = parts.call("csm_privacy_purge", what="secret-client-work", kind="text", by_person=True)["job"]
    for _ in range(200):
        parts.background.step(START)
        if parts.background.context.tasks[job].state in ("done", "failed"):
            break
    parts.background.context.hint_from_hook(transcript)
    parts.background.step(START)
    assert parts.call("csm_clients")["elsewhere"] == []
    names = parts.store.read(lambda rows: [path for (path,) in rows.all("select path from elsewhere")])
    assert names and not any("secret-client-work" in name for name in names)
