"""What a hook tells the user by itself: at a session's start, when memory is not being recorded, never twice a day."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hooks.test_hook import (
    command,
    home,
    raw_peer,
    run_hook,
    run_shell,
    running,
    says,
    second_place,
    spooled,
    until_the_hook_leaves,
)

from csmd import wire

__all__ = ["home"]

SAID = "csmd: memory is not being recorded: "
#: What the daemon is at -> what the user is told.
TOLD = {
    "away": "its daemon is not running (csmd start; csmd doctor says why)",
    "hung": "its daemon does not answer (csmd restart; csmd doctor says why)",
    "refused": "nothing can be stored (csmd doctor says why)",
    "error": "its daemon cannot take it in (csmd doctor says why)",
    "upgrade": "its daemon is older than its hooks (csmd restart)",
}
HUNG_FOR_S = 30


def body(source: str = "startup", **more: str) -> bytes:
    """A payload as the client writes it: no space in it that nobody said."""
    given = {"session_id": "s", "hook_event_name": "SessionStart", "source": source, **more}
    return json.dumps(given, separators=(",", ":")).encode() + b"\n"


def told(printed: bytes) -> str:
    """What a user reads of what a hook printed; "" for nothing."""
    if not printed:
        return ""
    value = json.loads(printed)
    assert list(value) == ["systemMessage"]
    assert value["systemMessage"].startswith(SAID)
    return str(value["systemMessage"].removeprefix(SAID))


def start(home: Path, source: str = "startup", **environment: str) -> str:
    """What the user is told when a session starts."""
    return told(run_hook(home, "SessionStart", body(source), **environment))


def another_day(home: Path) -> None:
    """Takes away that the user was told today."""
    for note in (home / "run").glob("told-*"):
        note.unlink()


def notes(place: Path) -> list[str]:
    return sorted(path.name for path in place.glob("told-*"))


def today(days: int = 0) -> str:
    return f"told-{datetime.now().astimezone().date() + timedelta(days=days)}"


# --- what is told


def test_without_a_daemon_the_user_is_told_at_the_sessions_start_and_the_event_is_kept(home: Path) -> None:
    assert start(home) == TOLD["away"]
    assert [event for event, _ in spooled(home)] == ["SessionStart"]
    assert notes(home / "run") == [today()]
    assert (home / "run" / today()).stat().st_mode & 0o777 == 0o600


@pytest.mark.invariant(
    "A hook tells the user that memory is not being recorded, at most once a day, in constant words that no model reads"
)
@pytest.mark.parametrize("status", wire.STATUSES)
def test_what_the_daemon_answered_is_what_the_user_is_told(home: Path, status: wire.Status) -> None:
    with running(home, says(b"", status)):
        assert start(home) == TOLD.get(status, "")
    assert (status in TOLD) == (status not in ("ok", "retry"))


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "fork", "something new"])
def test_every_start_of_a_session_tells(home: Path, source: str) -> None:
    assert start(home, source) == TOLD["away"]


@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
def test_in_the_middle_of_a_session_nothing_is_told(home: Path, spaces: tuple[str, str]) -> None:
    given = {"session_id": "s", "hook_event_name": "SessionStart", "source": "compact"}
    assert run_hook(home, "SessionStart", json.dumps(given, separators=spaces).encode()) == b""
    for event in ("UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd"):
        assert run_hook(home, event, body()) == b""
    assert notes(home / "run") == []


def test_what_the_payload_says_is_not_told_nor_taken_for_its_source(home: Path) -> None:
    said = run_hook(home, "SessionStart", body(session_title='my secret "source":"compact"'))
    assert told(said) == TOLD["away"]
    assert b"secret" not in said and os.fsencode(home) not in said


def test_who_stopped_the_daemon_on_purpose_is_told_nothing(home: Path) -> None:
    (home / "run").mkdir()
    (home / "run" / "stopped-by-user").touch()
    assert start(home) == ""
    (home / "run" / "stopped-by-user").unlink()
    assert start(home) == TOLD["away"]


def test_a_home_that_is_gone_tells_nothing_and_is_not_made_again(home: Path) -> None:
    gone = home / "gone"
    assert run_hook(home, "SessionStart", body()) != b""
    line = shlex.join([*command(home, "SessionStart")[:4], str(gone), "SessionStart"])
    assert run_shell(line, body()) == b""
    assert not gone.exists() and not second_place(gone).exists()


def test_what_could_not_even_be_kept_is_told(home: Path) -> None:
    (home / "spool").write_text("in the way")
    second = second_place(home)
    second.parent.mkdir(mode=0o700, exist_ok=True)
    second.write_text("in the way, too")
    try:
        assert start(home) == TOLD["away"]
    finally:
        second.unlink()


# --- a daemon that is there and does not answer


def test_a_hung_daemon_is_told_once_a_second_hook_has_waited_in_vain(home: Path) -> None:
    """One hook that waited may have met a machine that was busy, or has just been woken."""
    mark = home / "run" / "hung"
    with raw_peer(home, until_the_hook_leaves):
        assert start(home) == "", "the first"
        assert start(home) == "", "nobody asked: the mark is young"
        earlier = time.time() - HUNG_FOR_S - 1
        os.utime(mark, (earlier, earlier))
        run_hook(home, "Stop", body())
        assert mark.read_bytes() == b"again"
        assert start(home) == TOLD["hung"], "nobody asked, but two have before"
        another_day(home)
        os.utime(mark, (earlier, earlier))
        assert start(home) == TOLD["hung"], "asked, and in vain again"


def test_a_daemon_that_answered_in_between_was_not_hung(home: Path) -> None:
    mark = home / "run" / "hung"
    earlier = time.time() - HUNG_FOR_S - 1
    with raw_peer(home, until_the_hook_leaves):
        start(home)
    (home / "socket").unlink()
    os.utime(mark, (earlier, earlier))
    with running(home, says(b"")):
        assert start(home) == ""
    (home / "socket").unlink()
    with raw_peer(home, until_the_hook_leaves):
        assert start(home) == ""
    assert mark.read_bytes() == b""


def test_a_mark_from_the_future_says_nothing_of_a_hung_daemon(home: Path) -> None:
    mark = home / "run" / "hung"
    mark.parent.mkdir()
    mark.touch()
    os.utime(mark, (time.time() + 3600,) * 2)
    with raw_peer(home, until_the_hook_leaves):
        assert start(home) == ""


# --- never twice a day


def test_nobody_is_told_twice_a_day_whatever_else_is_wrong(home: Path) -> None:
    assert start(home) == TOLD["away"]
    assert start(home, "resume") == ""
    with running(home, says(b"", "refused")):
        assert start(home) == ""
    assert len(spooled(home)) == 3


def test_on_another_day_the_user_is_told_again(home: Path) -> None:
    (home / "run").mkdir()
    (home / "run" / today(-1)).touch()
    assert start(home) == TOLD["away"]
    assert notes(home / "run") == [today(-1), today()]


@pytest.mark.parametrize(("days", "is_told"), [(1, False), (6, False), (40, True), (-40, True)])
def test_a_clock_that_was_set_back_tells_nobody_twice_and_a_wrong_one_silences_nobody(
    home: Path, days: int, is_told: bool
) -> None:
    (home / "run").mkdir()
    (home / "run" / today(days)).touch()
    assert bool(start(home)) == is_told
    assert notes(home / "run") == [today() if is_told else today(days)]


def test_a_day_is_the_users_own(home: Path) -> None:
    now = time.gmtime()
    zone, ahead = ("UTC-14", 14) if now.tm_hour >= 10 else ("UTC+12", -12)
    there = time.strftime("%Y-%m-%d", time.gmtime(time.time() + ahead * 3600))
    assert start(home, TZ=zone) == TOLD["away"]
    assert notes(home / "run") == [f"told-{there}"]


@pytest.mark.invariant(
    "A hook tells the user that memory is not being recorded, at most once a day, in constant words that no model reads"
)
def test_of_sessions_that_start_at_once_one_tells(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda _: start(home), range(8)))
    assert sorted(said) == [""] * 7 + [TOLD["away"]]
    assert len(spooled(home)) == 8


def test_a_scripts_session_does_not_use_up_what_a_person_should_see(home: Path) -> None:
    assert start(home, CLAUDE_CODE_ENTRYPOINT="sdk-cli") == TOLD["away"]
    assert start(home, CLAUDE_CODE_ENTRYPOINT="sdk-py") == ""
    assert start(home, CLAUDE_CODE_ENTRYPOINT="cli") == TOLD["away"]
    assert start(home, CLAUDE_CODE_ENTRYPOINT="cli") == ""


def in_the_way(home: Path) -> None:
    (home / "run").write_text("no directory")


def full(home: Path) -> None:
    """Stands for a disk that takes no file: a directory that may not be written."""
    in_the_way(home)
    (home / "spool").write_text("no directory")


@pytest.mark.parametrize("spoil", [in_the_way, full])
def test_where_the_home_takes_no_note_the_second_place_does(home: Path, spoil: Callable[[Path], None]) -> None:
    spoil(home)
    assert [start(home), start(home)] == [TOLD["away"], ""]
    assert notes(second_place(home)) == [today()]
    (home / "run").unlink()
    assert start(home) == "", "the second place is still asked"


def test_where_no_place_takes_a_note_nothing_is_said_rather_than_at_every_start(home: Path) -> None:
    full(home)
    second = second_place(home)
    second.parent.mkdir(mode=0o700, exist_ok=True)
    second.write_text("in the way, too")
    try:
        assert [start(home), start(home)] == ["", ""]
    finally:
        second.unlink()


def test_closed_streams_hurt_nobody_who_would_be_told(home: Path) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        another_day(home)
        line = f"exec {shlex.join(command(home, 'SessionStart'))} {closed}"
        assert bool(run_shell(line, body())) == (closed == "2>&-")


# --- a session that is not to be kept


def test_a_session_that_is_not_to_be_kept_leaves_word_that_hooks_run_and_no_more(home: Path) -> None:
    assert run_hook(home, "SessionStart", body(), CSMD_DISABLE="1") == b""
    assert not (home / "run").exists()
    (home / "run").mkdir()
    assert run_hook(home, "SessionStart", body(), CSMD_DISABLE="1") == b""
    passed: dict[str, Any] = {path.name: path.read_bytes() for path in (home / "run").iterdir()}
    assert passed == {"passed-by": b""}
    assert spooled(home) == []
