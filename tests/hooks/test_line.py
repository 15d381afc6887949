"""The status line's command as it is registered: right with a real daemon, silent or brief without, never a failure."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from machine import PREFERENCE, Machine

from csmd.config import base_interpreter
from csmd.hosts.claude import registration
from csmd.installer import plan
from csmd.tools.live_sessions import format_status_line as told

LIMIT_S = 30


@pytest.fixture(scope="module")
def heard(shared_machine: Machine) -> Machine:
    """A daemon that knows something, and a session that was told it."""
    shared_machine.conversation("s1")
    shared_machine.start()
    shared_machine.sync()
    shared_machine.event("SessionStart", "told-1", source="startup")
    shared_machine.hook("SessionStart", "quiet", cwd="/elsewhere", source="startup")
    return shared_machine


def run(home: Path, payload: Any, **environment: str) -> bytes:
    """What the assistant would show; checks that the command ends well and says nothing else."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload, separators=(",", ":")).encode()
    done = subprocess.run(
        ["sh", "-c", registration.status_line_command(base_interpreter(), home)], input=body, capture_output=True, timeout=LIMIT_S,
        check=False, env={"PATH": os.environ["PATH"], **environment},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def shown(home: Path, payload: Any) -> bytes:
    """What the assistant shows; asked again where the daemon missed the line's short deadline, for then it is silent."""
    return next(filter(None, (run(home, payload) for _ in range(20))), b"")


def test_it_says_what_the_session_was_told(heard: Machine) -> None:
    said = shown(heard.home, {"session_id": "told-1", "cwd": "/x", "model": {"id": "m"}}).decode()
    assert re.fullmatch(r"csmd: 3 memories, \d+ tokens\n", said)
    receipt = heard.csmd("tool", "csm_receipts")
    assert (
        f" {next(one['tokens'] for one in json.loads(receipt)['receipts'] if one['session_id'] == 'told-1')} " in said
    )


def test_after_a_clear_only_what_was_told_since_counts(heard: Machine) -> None:
    heard.event("SessionStart", "cleared", source="startup")
    first = shown(heard.home, {"session_id": "cleared"})
    heard.event("SessionStart", "cleared", source="clear", cwd="/elsewhere")
    assert first and heard.call("csm_session_line", id="cleared")["line"] == ""
    assert run(heard.home, {"session_id": "cleared"}) == b""


@pytest.mark.invariant("A status line of the user's own is left alone; ours never fails and comes out to the byte")
@pytest.mark.parametrize(
    "payload",
    [{"session_id": "quiet"}, {"session_id": "never-heard-of"}, {}, b"", b"not JSON", {"session_id": "../etc"},
     {"session_id": 'a"b'}, {"session_id": "x" * 300}, {"other": '"session_id":"told-1"'}, b"\xff" * 1000],
    ids=str,
)  # fmt: skip
def test_where_there_is_nothing_to_say_it_is_silent(heard: Machine, payload: Any) -> None:
    assert run(heard.home, payload) == b""


def test_the_session_is_found_wherever_it_stands_and_however_spaced(heard: Machine) -> None:
    body = json.dumps({"said": 'a "session_id": "quiet"', "session_id": "told-1"}, indent=2).encode()
    assert shown(heard.home, body).startswith(b"csmd: 3")


def test_who_turned_csmd_off_sees_nothing(heard: Machine) -> None:
    assert run(heard.home, {"session_id": "told-1"}, CSMD_DISABLE="1") == b""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the script and no daemon."""
    place = tmp_path / "h"
    (place / "hook").mkdir(parents=True)
    shutil.copy(plan.find_shipped_folder() / "csmd_line.py", place / "hook")
    return place


def test_without_a_daemon_it_says_so_and_without_a_home_nothing(home: Path) -> None:
    assert run(home, {"session_id": "s"}) == b"csmd: not recording\n"
    (home / "endpoint").write_text(f"{home}/gone.sock\n")
    assert run(home, {"session_id": "s"}) == b"csmd: not recording\n"
    script = str(plan.find_shipped_folder() / "csmd_line.py")
    words = [base_interpreter(), "-I", "-S", script, str(home / "nothing")]
    done = subprocess.run(words, input=b'{"session_id":"s"}', capture_output=True, timeout=LIMIT_S, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize(("marked", "said"), [(False, b""), (True, b"csmd: not recording\n")])
def test_a_daemon_that_does_not_answer_costs_its_patience_and_is_named_once_a_hook_found_it_hung(
    home: Path, marked: bool, said: bytes
) -> None:
    path = Path("/tmp") / f"csmd-l-{os.urandom(4).hex()}"
    (home / "endpoint").write_text(f"{path}\n")
    (home / "run").mkdir()
    if marked:
        (home / "run" / "hung").touch()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        try:
            assert run(home, {"session_id": "s"}) == said
        finally:
            path.unlink()


def test_an_input_that_never_ends_is_not_waited_for(home: Path) -> None:
    words = shlex.split(registration.status_line_command(base_interpreter(), home).removesuffix(" || true"))
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.wait(LIMIT_S) == 0 and child.stdin and child.stdout
    assert child.stdout.read() == b""
    child.stdin.close()
    child.stdout.close()


@pytest.mark.parametrize(
    ("memories", "tokens", "recording", "paused", "said"),
    [(0, 0, True, False, ""), (1, 1, True, False, "csmd: 1 memory, 1 token"), (6, 412, True, False, "csmd: 6 memories, 412 tokens"),
     (6, 412, True, True, "csmd: paused"), (6, 412, False, True, "csmd: not recording")],
)  # fmt: skip
def test_the_line_has_its_plurals_and_puts_trouble_first(
    memories: int, tokens: int, recording: bool, paused: bool, said: str
) -> None:
    assert told(memories, tokens, is_recording=recording, is_paused=paused) == said
    assert PREFERENCE not in said and '"' not in said and "\\" not in said, "the script reads it without JSON"
