"""The screen of `csmd status`: golden screens of its states, no line too wide whatever the values, every field documented.

The screens stand in tests/data/screens; each is made of HEALTHY with a few values changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from machine import Machine, eventually
from rich.cells import cell_len

import csmd
from csmd.cli import render, status
from csmd.cli.render import many, plain, shorten, tilde
from csmd.text.ages import ago
from csmd.web import pages

SCREENS = Path(__file__).resolve().parent.parent / "data" / "screens"
DOCS = Path(__file__).resolve().parents[2] / "docs"
NOW = "2026-05-04T12:00:00.000Z"
HEALTHY: dict[str, Any] = {
    "at": NOW, "version": "0.1.0", "proto": 1, "home": "/home/me/.local/share/csmd", "alarms": [], "paused": None,
    "service": "systemd",
    "daemon": {"pid": 4242, "uptime_s": 273_600.0, "rss_mb": 42.1, "cpu_s": 60.0, "cpu_percent": 0.02, "cpu_recent_percent": 0.0},
    "worker": {"pid": None}, "socket": "/home/me/.local/share/csmd/run/csmd.sock",
    "model": {"name": "sentence-transformers/all-MiniLM-L6-v2@abc", "waiting": 0, "suggested": ""},
    "counts": {"projects": 3, "sessions": 214, "agents": 31, "turns": 18_204, "provisional": 0, "hook_only": 2, "events": 2_310,
               "statements": 1_022, "memories": 412, "vectors": 9_113, "injections": 301},
    "memories": {"by_gate": {"behavioral": 120, "correction": 31, "epistemic": 240, "promissory": 12, "relational": 9},
                 "by_tier": {"daily": 88, "durable": 320, "session": 4}},
    "counters": {"redacted github-token": 1}, "excluded": {"events": 0, "transcripts": 0},
    "last_event": {"prompt": "2026-05-04T11:59:20.000Z", "session_end": "2026-05-03T18:00:00.000Z",
                   "session_start": "2026-05-04T11:40:00.000Z", "stop": "2026-05-04T11:59:55.000Z"},
    "last_read": "2026-05-04T11:59:55.000Z", "spool": {"files": 0, "oldest": ""}, "backfill": None, "jobs": [],
    "projects": [
        {"root": "/home/me/shop", "name": "shop", "sessions": 120, "memories": 210, "last": "2026-05-04T11:59:55.000Z"},
        {"root": "/home/me/jobs/infrastructure", "name": "infrastructure", "sessions": 80, "memories": 150,
         "last": "2026-05-02T09:00:00.000Z"},
        {"root": "/srv/notes", "name": "notes", "sessions": 14, "memories": 52, "last": "2026-01-30T09:00:00.000Z"},
    ],
    "live": [{"session": "0b1c2d3e", "project": "/home/me/shop", "model": "claude-sonnet-4-5", "last": "2026-05-04T11:59:55.000Z",
              "tokens": 62_100, "window": 200_000, "bracket": "MODERATE"}],
    "watching": ["/home/me/.claude/projects"],
    "transcripts": {"days": 30, "by_directory": {}, "by_project": {}, "sessions": 214, "gone": 120},
    "storage": {"database_bytes": 84_300_000, "wal_bytes": 1_200_000, "growth": {"bytes_per_day": 1_200_000, "days": 14},
                "backups": 5, "backups_bytes": 400_000_000, "last_backup": "2026-05-04T03:00:00.000Z"},
    "log": "/home/me/.local/state/csmd/log/csmd.log", "degraded": [],
    "dream": {"due": False, "verdict": "next dream after 2 more sessions and 19 h", "gates": [], "running": None,
              "last": {"id": "d0123456789", "begun_at": "2026-05-04T07:00:00.000Z", "state": "done"},
              "latest": {"id": "d0123456789", "state": "done", "error": ""}},
}  # fmt: skip
NO_DREAM = {
    "due": False,
    "verdict": "next dream after 5 more sessions and 24 h",
    "gates": [],
    "running": None,
    "last": None,
    "latest": None,
}
NOTHING = dict.fromkeys(HEALTHY["counts"], 0)
FRESH: dict[str, Any] = {
    **HEALTHY, "counts": NOTHING, "memories": {"by_gate": {}, "by_tier": {}}, "counters": {}, "last_event": {}, "last_read": "",
    "projects": [], "live": [], "model": {"name": None, "waiting": 0, "suggested": ""}, "service": "detached", "dream": NO_DREAM,
    "daemon": {"pid": 4242, "uptime_s": 0.4, "rss_mb": 40.2, "cpu_s": 0.1, "cpu_percent": 25.0, "cpu_recent_percent": 25.0},
    "transcripts": {"days": 30, "by_directory": {}, "by_project": {}, "sessions": 0, "gone": 0},
    "storage": {"database_bytes": 421_888, "wal_bytes": 8_192, "growth": {"bytes_per_day": None, "days": 0}, "backups": 0,
                "backups_bytes": 0, "last_backup": ""},
    "degraded": [],
}  # fmt: skip
STATES: dict[str, dict[str, Any]] = {
    "fresh": FRESH,
    "healthy": {**HEALTHY, "live": [], "memories": {**HEALTHY["memories"], "by_gate": {"behavioral": 150, "correction": 262}}},
    "busy": {
        **HEALTHY,
        "backfill": {"sessions_left": 120, "sessions_done": 94, "bytes_left": 340_200_000, "eta_s": 250},
        "jobs": [{"kind": "import", "state": "running", "step": "reading", "done": 1_200, "total": 4_000}],
        "dream": {**HEALTHY["dream"], "running": {"id": "d9876543210", "step": "consolidating"}},
        "worker": {"pid": 77, "rss_mb": 310.4, "cpu_s": 9.1, "cpu_percent": 88.1, "cpu_recent_percent": 96.3},
        "model": {"name": "sentence-transformers/all-MiniLM-L6-v2@abc", "waiting": 3_100, "suggested": ""},
        "live": [
            *HEALTHY["live"],
            {"session": "9f8e7d6c", "project": "/srv/a-project-with-quite-a-long-name", "model": "claude-x[1m]",
             "last": "2026-05-04T11:58:00.000Z", "tokens": 912_345, "window": 1_000_000, "bracket": "CRITICAL"},
            {"session": "5a5a5a5a", "project": "", "model": "", "last": NOW, "tokens": 0, "window": 200_000, "bracket": "FRESH"},
        ],
        "projects": HEALTHY["projects"] * 3,
    },
    "degraded": {
        **HEALTHY,
        "alarms": [
            {"what": "the hooks are gone from /home/me/.claude/settings.json: nothing is recorded", "do": "csmd install",
             "since": "2026-05-02T12:00:00.000Z"},
        ],
        "degraded": ["transcript /home/me/.claude/projects/-home-me-shop/0b1c.jsonl: Permission denied",
                     "vectors: the embedding worker ended at once"],
        "spool": {"files": 1, "oldest": "2026-05-04T11:57:00.000Z"},
        "counters": {"redacted github-token": 3, "redacted password": 12, "redacted jwt": 1, "redacted pem": 1, "bad lines": 1,
                     "bad events": 2, "turns not kept": 1},
        "excluded": {"events": 1, "transcripts": 12},
        "dream": {**HEALTHY["dream"], "verdict": "waits: the last dream failed; retry in 48 min",
                  "latest": {"id": "d1", "state": "failed", "error": "the disk is full"}},
    },
    "damaged": {
        **FRESH, "transcripts": None, "service": "systemd", "dream": None,
        "degraded": ["database: page 7 cannot be read; nothing is captured, hooks spool (csmd repair)"],
        "spool": {"files": 812, "oldest": "2026-05-03T12:00:00.000Z"},
        "storage": {"database_bytes": 84_300_000, "wal_bytes": 0, "backups": 1, "backups_bytes": 1,
                    "last_backup": "2026-05-03T03:00:00.000Z"},
    },
    "edited": {
        **HEALTHY,
        "pages": {
            "asked": [{"page": "projects/shop-1a2b3c.md", "lines": 2}, {"page": "user.md", "lines": 1}],
            "restored": [{"page": "user.md", "whole": "user.restored-2026-05-04.md"}],
            "unread": [{"page": "topics/releases.md", "why": "it is not UTF-8"}],
            "copies": ["user (1).md", "user.md~", "topics/releases 2.md"], "edited": ["projects/shop-1a2b3c.md"],
        },
    },
    "paused": {**HEALTHY, "paused": {"since": "2026-05-04T09:30:00.000Z", "until": "2026-05-04T14:30:00.000Z", "by": "a person at a terminal"}, "live": [], "last_event": {}},
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def drawn(value: dict[str, Any], *, width: int = 80, home: str = "/home/me") -> list[str]:
    """The screen without colours."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", str(width))
        return [*map(render.plain_text, render.lay_out(status.show_status(value, home=home), width))]


def check(name: str, *, width: int = 80) -> list[str]:
    """Compares a state's screen with the one that was looked at."""
    lines = drawn(STATES[name], width=width)
    path = SCREENS / f"status-{name}{'' if width == 80 else f'-{width}'}.txt"
    assert "\n".join(lines) + "\n" == path.read_text(encoding="utf-8")
    assert all(cell_len(line) <= width and line == line.rstrip() for line in lines)
    return lines


@pytest.mark.parametrize("name", STATES)
def test_a_state_looks_as_it_was_agreed(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", ["healthy", "busy"])
def test_a_narrow_terminal_shows_the_same(name: str) -> None:
    check(name, width=60)


def test_a_healthy_machine_fits_on_one_screen_and_shows_nothing_that_is_nought() -> None:
    lines = check("healthy")
    assert len(lines) <= 22
    assert lines[0].startswith("Healthy: ")
    assert not any(re.search(r"(?<![\d,.])0 (?!%)[a-z]", line) for line in lines)


def test_alarms_stand_before_everything() -> None:
    lines = check("degraded")
    assert lines[0] == "Needs a look: 1 alarm, 2 parts degraded"
    assert lines[2].startswith("alarm ")


WORDS = some.text(max_size=90)
NUMBERS = some.integers(0, 10**15)


@pytest.mark.invariant(
    "No line of a screen is wider than the terminal, whatever it is told; every field of status is documented and no other"
)
@settings(max_examples=60, deadline=None)
@given(data=some.data(), width=some.integers(40, 120))
def test_no_line_is_wider_than_the_terminal_whatever_is_told(data: Any, width: int) -> None:
    def word() -> str:
        return str(data.draw(WORDS))

    def number() -> int:
        return int(data.draw(NUMBERS))

    value = {
        **HEALTHY,
        "home": f"/{word()}", "socket": f"/{word()}", "version": word(), "degraded": [word(), word()], "service": word(),
        "alarms": [{"what": word(), "do": word(), "since": word()}], "paused": {"since": word(), "until": word(), "by": word()},
        "counts": {name: number() for name in NOTHING},
        "memories": {"by_gate": {word(): number()}, "by_tier": {word(): number()}},
        "counters": {f"redacted {word()}": number(), f"bad {word()}": number()}, "last_event": {word(): word()},
        "last_read": word(), "spool": {"files": number(), "oldest": word()},
        "backfill": {"sessions_left": number(), "sessions_done": number(), "bytes_left": number(), "eta_s": number()},
        "live": [{"session": word(), "project": word(), "model": word(), "last": word(), "tokens": number(), "window": number(), "bracket": word()}],
        "projects": [{"root": word(), "name": word(), "sessions": number(), "memories": number(), "last": word()}],
        "jobs": [{"kind": word(), "state": word(), "done": number(), "total": number()}],
        "transcripts": {"days": number(), "by_project": {word(): number()}, "gone": number()},
        "storage": {"database_bytes": number(), "wal_bytes": number(), "backups": number(), "last_backup": word(),
                    "growth": {"bytes_per_day": number() - 10**14, "days": number()}},
    }  # fmt: skip
    for line in drawn(value, width=width):
        assert cell_len(line) <= width and "\n" not in line and line.isprintable(), repr(line)


def test_what_an_older_daemon_does_not_say_is_not_missed() -> None:
    known = {name: value for name, value in HEALTHY.items() if name not in status.DEFAULTS}
    known["storage"] = {"database_bytes": 1, "wal_bytes": 0}
    assert drawn(known)[0].startswith("Healthy: ")


# --- the small change


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (many(1, "secret"), "1 secret"), (many(0, "secret"), "0 secrets"), (many(1204, "turn"), "1,204 turns"),
        (many(2, "memory"), "2 memories"), (many(1, "memory"), "1 memory"),
        (ago("", NOW), "never"), (ago("1970-01-01T00:00:00.000Z", NOW), "never"), (ago(NOW, NOW), "0 s ago"),
        (ago("2026-05-04T12:00:30.000Z", NOW), "0 s ago"), (ago("2026-05-05T12:00:30.000Z", NOW), "2026-05-05"),
        (ago("2026-05-04T11:59:01.000Z", NOW), "59 s ago"), (ago("2026-05-04T11:00:01.000Z", NOW), "59 min ago"),
        (ago("2026-05-03T12:00:01.000Z", NOW), "23 h ago"), (ago("2026-04-01T12:00:00.000Z", NOW), "33 d ago"),
        (ago("2025-04-01T12:00:00.000Z", NOW), "2025-04-01"), (ago("no time", NOW), "no time"),
        (tilde("/home/me/x", "/home/me"), "~/x"), (tilde("/home/me", "/home/me"), "~"), (tilde("/home/meg", "/home/me"), "/home/meg"),
        (tilde("/x", ""), "/x"), (tilde("/x", "/"), "~/x"), (shorten("abcdef", 4), "abc…"), (shorten("abcdef", 4, end=True), "…def"),
        (shorten("我们我们", 4), "我…"), (plain("a\tb\n\x1b[31mc"), "a b  [31mc"),
    ],
)  # fmt: skip
def test_amounts_ages_and_paths_read_well(said: str, words: str) -> None:
    assert said == words


# --- with a real daemon


@pytest.fixture(scope="module")
def real(shared_machine: Machine) -> Machine:
    shared_machine.conversation("s1")
    shared_machine.start()
    shared_machine.sync()
    return shared_machine


def leaves(value: Any, name: str = "") -> set[str]:
    """The names of everything in a value: `a.b`, `list[].c`; of a map whose keys are data only the map."""
    if isinstance(value, dict) and name not in MAPS:
        inside = {f"{name}.{key}" if name else key: part for key, part in value.items()}
        return set().union(*(leaves(part, key) for key, part in inside.items()))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return set().union(*(leaves(part, f"{name}[]") for part in value))
    return {name}


#: Maps whose keys are not fixed.
MAPS = {
    "counters",
    "last_event",
    "memories.by_gate",
    "memories.by_tier",
    "transcripts.by_directory",
    "transcripts.by_project",
}
#: Fields of what a machine in order does not have, or of what another state shows.
ELSEWHERE = {
    "dream", "paused.since", "clients.versions", "clients.versions[].version", "clients.versions[].last_at", "alarms", "alarms[].what", "alarms[].do", "alarms[].since", "paused", "paused.until", "paused.by", "backfill", "backfill.sessions_left",
    "backfill.sessions_done", "backfill.bytes_left", "backfill.eta_s", "jobs", "jobs[].kind", "jobs[].state", "jobs[].step",
    "jobs[].done", "jobs[].total", "worker.rss_mb", "worker.cpu_s", "worker.cpu_percent", "worker.cpu_recent_percent",
    "pages.asked[].page", "pages.asked[].lines", "pages.restored[].page", "pages.restored[].whole", "pages.unread[].page",
    "pages.unread[].why",
}  # fmt: skip


@pytest.mark.invariant(
    "No line of a screen is wider than the terminal, whatever it is told; every field of status is documented and no other"
)
def test_every_field_of_the_json_is_documented_and_no_other(real: Machine) -> None:
    real.event("UserPromptSubmit", "now", prompt="Which config key is it?")
    real.csmd("backup")
    value = real.csmd("status", "--json")
    assert value["live"] and value["projects"]
    section = (DOCS / "operations.md").read_text().partition("| field | what |")[2].partition("\n\n")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert leaves(value) - set(listed) == set(), "not documented"
    assert set(listed) - leaves(value) - ELSEWHERE == set(), "documented, and not there"


def test_a_session_that_a_hook_has_just_opened_is_not_one_whose_transcript_is_gone(real: Machine) -> None:
    path = str(real.assistant / "projects" / "-project" / "opened.jsonl")
    real.event("SessionStart", "opened", source="startup", transcript_path=path)
    real.event("UserPromptSubmit", "opened", prompt="What is it about?", transcript_path=path)
    value = real.status()
    assert value["transcripts"]["gone"] == 0
    listed = real.call("csm_session_list")["sessions"]
    assert next(one for one in listed if one["id"] == "opened")["transcript"] == "none"
    (live,) = (one for one in value["live"] if one["session"] == "opened")
    assert (live["tokens"], live["window"]) == (0, 200_000)
    real.event("SessionEnd", "opened", reason="exit")
    assert not [one for one in real.status()["live"] if one["session"] == "opened"]


def test_how_full_a_context_is_comes_from_the_transcripts_own_figures(real: Machine) -> None:
    def said(tokens: int, model: str) -> dict[str, Any]:
        line = real.line("assistant", f"About {tokens}.", session="full")
        line["timestamp"] = real.status()["at"]
        line["message"] |= {"model": model, "usage": {
            "input_tokens": 3, "cache_read_input_tokens": tokens - 10, "cache_creation_input_tokens": 7, "output_tokens": 99}}  # fmt: skip
        return line

    def live() -> tuple[int, int]:
        real.sync()
        (one,) = (one for one in real.status()["live"] if one["session"] == "full")
        return one["tokens"], one["window"]

    real.transcript(
        real.line("user", "How much is it?", session="full"), said(62_100, "claude-sonnet-4-5"), session="full"
    )
    assert live() == (62_100, 200_000)
    real.transcript(said(3_000, "claude-sonnet-4-5"), session="full")  # after a compaction
    assert live() == (3_000, 200_000)
    real.transcript(said(512_345, "claude-sonnet-4-5"), session="full")
    assert live() == (512_345, 1_000_000)


def test_before_install_it_says_so_and_afterwards_how_to_start(machine: Machine) -> None:
    done = machine.run("status")
    assert (done.returncode, done.stderr.count("csmd install")) == (3, 1) and "not installed here" in done.stderr
    machine.csmd("install", "--no-start")
    done = machine.run("status")
    assert (done.returncode, "csmd start" in done.stderr, "not installed" in done.stderr) == (3, True, False)


def test_a_daemon_that_could_not_start_says_why_whether_installed_or_not(machine: Machine) -> None:
    machine.csmd("start")
    machine.csmd("stop")
    machine.paths.database.write_bytes(b"no database" * 1000)
    assert machine.run("start").returncode == 1
    done = machine.run("status")
    assert (done.returncode, "damaged" in done.stderr, "csmd repair" in done.stderr) == (3, True, True), done.stderr


def test_the_real_screen_fits_with_colours_too(real: Machine) -> None:
    shown = real.csmd("status")
    assert shown.splitlines()[0].startswith("Healthy: ")
    assert all(cell_len(line) <= 80 for line in shown.splitlines())


# --- drawn again and again


def test_watching_needs_a_terminal(real: Machine) -> None:
    done = real.run("status", "--watch")
    assert (done.returncode, done.stdout) == (2, "") and "--json" in done.stderr
    assert real.run("status", "--watch", "--json").returncode == 2


def test_watching_draws_in_place_outlives_the_daemon_and_ends_with_control_c(machine: Machine) -> None:
    child = machine.start()
    ours, theirs = pty.openpty()
    shown = subprocess.Popen(
        [sys.executable, "-m", "csmd", "status", "--watch"], cwd=machine.project, env=machine.environment(TERM="xterm"),
        stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    said = b""

    def heard(words: bytes) -> bool:
        nonlocal said
        if select.select([ours], [], [], 0.05)[0]:
            with contextlib.suppress(OSError):
                said += os.read(ours, 65536)
        return words in said

    eventually(lambda: heard(b"running for"))
    assert said.startswith(b"\x1b[?1049h") and b"\x1b[H" in said
    machine.stop(child)
    eventually(lambda: heard(b"no csmd daemon is running") or heard(b"not installed here"))
    shown.send_signal(signal.SIGINT)
    eventually(lambda: heard(b"\x1b[?1049l") and shown.poll() is not None)
    eventually(lambda: not heard(b"\0") and b"running for" in said.partition(b"\x1b[?1049l")[2])
    assert shown.returncode == 0
    assert shown.stderr and shown.stderr.read() == b""
    shown.stderr.close()
    os.close(ours)


def test_the_value_is_json(real: Machine) -> None:
    assert json.loads(real.run("status", "--json").stdout)["version"] == csmd.__version__


@pytest.mark.parametrize("live", [[], HEALTHY["live"]], ids=["idle", "live"])
def test_status_and_the_viewer_say_alike_what_is_recorded(live: list[dict[str, Any]]) -> None:
    value = {**HEALTHY, "live": live}
    recorded = render.describe_recording(value)
    assert recorded in status.headline(value) and recorded in pages.describe_health(value)[1]


def test_the_screen_in_the_documents_is_real() -> None:
    text = (DOCS / "operations.md").read_text()
    shown = (SCREENS / "status-healthy.txt").read_text()
    begin = text.index(shown.splitlines()[0])
    there = text[begin : text.index("```", begin)].removesuffix("...\n")
    assert len(there.splitlines()) >= 15 and shown.startswith(there)
