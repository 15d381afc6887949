"""The real client in a terminal, its keys pressed as soon as words are seen: what a person types, no program hands over."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from e2e import client, scripted_api

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.client import Client
    from e2e.conftest import Sandbox

LIMIT_S = 60.0
ENTER = "\r"
#: A client may draw a box or a dialog before it takes keys: Enter is pressed again after this time without an answer.
AGAIN_S = 5.0
#: Where the client takes in keys. A prompt that follows "claude" on its command line is typed as well, but 2.0.77 does not
#: record that.
BOX = "❯"


def converse(
    claude: Client, prompt: str, *replies: str | dict[str, Any], typed: Sequence[tuple[str, str]] = ()
) -> None:
    """A session that begins with a prompt and ends when the last reply is on the screen and in its transcript."""
    folder = claude.sandbox.path / "screens" / str(len(list(claude.sandbox.path.glob("screens/*"))) + 1)
    api = scripted_api.serve({"prompt": prompt, "replies": list(replies), "log": str(folder)})
    command = [*claude.command, "--strict-mcp-config"]
    last = str(replies[-1])
    # 2.0.77 draws the box anew with the whole prompt, and takes a key that comes before that for a part of the prompt.
    at_the_box = [(BOX, prompt), (BOX + prompt if claude.version == "2.0.77" else prompt, ENTER)]
    try:
        address = f"http://127.0.0.1:{api.server_address[1]}"
        shown = on_screen(
            claude.sandbox, command, typed=[*at_the_box, *typed, (last, "")], api=address, start_directory=claude.start_directory,
            written=(prompt, last),
        )  # fmt: skip
    finally:
        api.shutdown()
        api.server_close()
    assert words(last) in shown, f"the last reply never came: {shown[-2000:]}"


def on_screen(
    sandbox: Sandbox,
    command: list[str],
    *,
    typed: Sequence[tuple[str, str]],
    api: str = client.NOWHERE,
    start_directory: Path | None = None,
    written: Sequence[str] = (),
) -> str:
    """What the client writes to its terminal, without any space: as soon as words are seen, the keys beside them are typed.

    It is ended after the last, once a transcript holds all that is to be `written`: the client writes behind its screen.
    """
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    # The test serves the API outside of any namespace: whatever else is wanted is sent to a port that refuses.
    env = {**sandbox.claude_environment(api), **client.REFUSED, "NO_PROXY": "127.0.0.1"}
    process = subprocess.Popen(
        command, cwd=start_directory or sandbox.project, env=env, stdin=terminal, stdout=terminal,
        stderr=terminal, start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    # All of it is read anew: a letter or a terminal's command may come in two parts.
    raw, limit = b"", time.monotonic() + LIMIT_S

    def read_until(is_seen: Callable[[], bool], pressed: bytes = b"") -> None:
        nonlocal raw
        again = time.monotonic() + AGAIN_S
        while not is_seen() and time.monotonic() < limit:
            if pressed and time.monotonic() > again:
                os.write(master, pressed)
                again += AGAIN_S
            if select.select([master], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    raw += os.read(master, 65536)

    pressed = b""
    try:
        for until, keys in typed:
            read_until(lambda until=until: until.replace(" ", "") in words(raw.decode("utf-8", "replace")), pressed)  # type: ignore[misc]
            os.write(master, keys.encode())
            pressed = keys.encode() if keys == ENTER else b""
        read_until(lambda: not written or _is_written(sandbox, written))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
        os.close(master)
    return words(raw.decode("utf-8", "replace"))


def _is_written(sandbox: Sandbox, texts: Sequence[str]) -> bool:
    """Whether one transcript holds all these texts."""
    held = (file.read_text(errors="replace") for file in sandbox.home.glob(".claude/projects/*/*.jsonl"))
    return any(all(json.dumps(text)[1:-1] in wanted for text in texts) for wanted in held)


def words(written: str) -> str:
    """What is written between a terminal's commands, without space: some clients move the cursor instead."""
    return re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b.|\s", "", written)
