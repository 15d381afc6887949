"""A turn through the registered hooks: each command as it stands in the settings is run, and its turn looked for.

The command is run as the assistant runs it, but with an empty environment: what only works in one's own shell does
not work in an editor. Only the user's own settings are gone by: what a repository brings along is not run. The turn says one word (see `model.PROBE_SESSION`), and is taken away again by the daemon; where
none answers, from the spool. Nothing else that lies there is touched.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from csmd import client, wire
from csmd.cli.assistant import Registered
from csmd.cli.checks.runtime import spooled
from csmd.cli.checks.scene import Ran
from csmd.errors import CsmdError
from csmd.model import PROBE_SESSION, PROBE_TEXT
from csmd.paths import Paths

#: The host's events that bring a turn -> what csmd calls them, and the key that holds the words.
BRINGING = {"UserPromptSubmit": ("prompt", "prompt"), "Stop": ("stop", "last_assistant_message")}
LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowel, so that it is nobody's word
WORD_LETTERS = 20
#: A hook that takes longer than it was granted is ended by the assistant, too.
HOOK_S = 10.0
#: A few configuration directories with two each.
MOST_HOOKS = 8
#: How long a turn may take from the hook to search: what was spooled comes with the daemon's next step.
FOUND_S = 5.0
LONGEST_EVENT = 65_536


def send(paths: Paths, hooks: Sequence[Registered], *, answers: bool) -> tuple[Ran, ...]:
    """Runs each command of the user's that is registered for an event that brings a turn; a daemon `answers` or not."""
    if answers and not _is_understood(paths):
        return ()  # an older daemon would take the marker for somebody's turn
    wanted = {(one.event, one.command): one for one in hooks if one.event in BRINGING and one.scope == "user"}
    return tuple(_through(paths, one, answers) for one in list(wanted.values())[:MOST_HOOKS])


def _is_understood(paths: Paths) -> bool:
    try:
        client.call(paths, "csm_probe_take", {"id": f"{PROBE_SESSION}{LETTERS}"}, patience_s=FOUND_S)
    except CsmdError:
        return False
    return True


def _through(paths: Paths, hook: Registered, answers: bool) -> Ran:
    word = "".join(secrets.choice(LETTERS) for _ in range(WORD_LETTERS))
    name, key = BRINGING[hook.event]
    session, said = f"{PROBE_SESSION}{word}", PROBE_TEXT.format(event=name, word=word)
    payload = {"session_id": session, "transcript_path": "", "cwd": "", "hook_event_name": hook.event, key: said}
    started = time.monotonic()
    problem = _run(hook, wire.dumps(payload).encode(), paths.home)
    stored, waits = (
        False,
        paths.hung_mark.exists(),
    )  # then the hook did not ask, and the spool may be empty again by now
    try:
        until = time.monotonic() + FOUND_S
        while answers and not problem and not stored:
            stored = said in client.call(paths, "csm_probe_take", {"id": session}, patience_s=FOUND_S)["found"]
            waits = waits or (not stored and bool(_waiting(paths, session)))
            if not stored and time.monotonic() > until:
                break
            if not stored:
                time.sleep(0.05)
    except CsmdError as error:
        problem = error.what
    took = (time.monotonic() - started) * 1000
    for path in _waiting(paths, session):
        waits = True
        with contextlib.suppress(OSError):
            path.unlink()
    return Ran(
        event=hook.event, command=hook.command, took_ms=round(took, 1), problem=problem, stored=stored, spooled=waits
    )


def _run(hook: Registered, payload: bytes, home: Path) -> str:
    """Runs a command line as the assistant does; what is wrong with how it ended, "" for nothing."""
    folder = home if home.is_dir() else Path("/")
    with subprocess.Popen(
        ["/bin/sh", "-c", hook.command], env={}, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            _, complaint = child.communicate(payload, timeout=min(hook.timeout or HOOK_S, HOOK_S))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # and no reading on: what it began may keep the pipe open
            return f"it did not end within {min(hook.timeout or HOOK_S, HOOK_S):g} s"
    if complaint:
        return complaint.decode("utf-8", "replace").strip().splitlines()[-1][:200]
    return f"it ended with exit code {child.returncode}" if child.returncode else ""


def _waiting(paths: Paths, session: str) -> list[Path]:
    """The spooled events of a marker's session."""
    found = []
    with contextlib.suppress(OSError):
        for path in spooled(paths.home):
            with contextlib.suppress(OSError):
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                with open(handle, "rb") as file:
                    if session.encode() in file.read(LONGEST_EVENT):
                        found.append(path)
    return found
