"""Processes of csmd's that are forked from one that has csmd loaded already: `python -m MODULE` without its imports.

To load a daemon costs a second of a processor, a command a fifth of one, and the tests start hundreds. What is forked
is a process like any other: its own id, session, environment, directory, files and signals, and it ends as an
interpreter does, but that no module is taken apart. How a bare interpreter starts and ends the same is shown where
`csmd start`, services and clients do it.

    spawn(...)      as subprocess.Popen, of which it has what tests use
    run(...)        as subprocess.run with captured text
    __main__        the process that is forked, one for each process of tests; it ends with them
"""

from __future__ import annotations

import array
import atexit
import contextlib
import fcntl
import functools
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import csmd

#: What is loaded before anything is forked: both programs, and what they import when they need it.
PROGRAMS = (
    "csmd.daemon.run", "csmd.cli.main", "csmd.client", "zmq", "psutil", "platformdirs", "faulthandler", "markdown_it",
    "wcmatch.glob", "rich.progress", "rich.table",
)  # fmt: skip
MAX_BYTES = 1 << 17
FILES = 4


class Forked:
    """A forked process, as its starter sees it; `pid`, `returncode` and `stderr` are as of subprocess.Popen."""

    def __init__(self, told: int, args: Sequence[str], stderr: io.BufferedReader | None) -> None:
        self._told, self._said = told, b""
        self.args, self.stderr = list(args), stderr
        self.returncode: int | None = None
        while b"\n" not in self._said:
            read = os.read(told, 64)
            assert read, "the process that is forked has gone"
            self._said += read
        pid, self._said = self._said.split(b"\n", 1)
        self.pid = int(pid)

    def poll(self) -> int | None:
        """The exit code when it has ended, negative for a signal."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; TimeoutExpired when it does not end in time."""
        code = self._look(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _look(self, timeout: float | None) -> int | None:
        limit = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if limit is None else max(0.0, limit - time.monotonic())
            # One that ended at once has told both, its pid and its end, before it was first asked.
            if b"\n" not in self._said:
                if not select.select([self._told], [], [], left)[0]:
                    return None
                read = os.read(self._told, 64)
                assert read, "the process that is forked has gone"
                self._said += read
            if b"\n" in self._said:
                self.returncode = os.waitstatus_to_exitcode(int(self._said))
                os.close(self._told)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Signals it, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


def spawn(
    module: str, *words: str, cwd: Path, env: Mapping[str, str], files: tuple[int, int, int] | None = None,
    terminal: bool = False,
) -> Forked:  # fmt: skip
    """`python -m module words`, in a session of its own, which its standard input controls if that is its `terminal`.

    The module "-c" is the program in the first word, as an interpreter has it, and our umask is the process's, too. Without `files` (its standard ones) stderr is a pipe.
    """
    with contextlib.ExitStack() as stack:

        def ours(descriptor: int) -> int:
            stack.callback(os.close, descriptor)
            return descriptor

        reading = None
        if files is None:
            nothing = ours(os.open(os.devnull, os.O_RDWR))
            reading, writing = os.pipe()
            files = (nothing, nothing, ours(writing))
        told, telling = os.pipe()
        ours(telling)
        os.umask(mask := os.umask(0))
        asked = {
            "module": module, "words": words, "cwd": str(cwd), "env": dict(env), "terminal": terminal, "umask": mask,
        }  # fmt: skip
        request = json.dumps(asked).encode()
        passed = array.array("i", [*files, telling])
        _parent(os.getpid()).sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
    stderr = None if reading is None else os.fdopen(reading, "rb")
    return Forked(told, [sys.executable, "-m", module, *words], stderr)


def run(
    module: str, *words: str, cwd: Path, env: Mapping[str, str], stdin: Any, timeout: float
) -> subprocess.CompletedProcess[str]:
    """`python -m module words` from its start to its end; `stdin` is DEVNULL or has a descriptor."""
    with contextlib.ExitStack() as stack:
        said, complained = (stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in range(2))
        nothing = stack.enter_context(open(os.devnull, "rb"))
        given = nothing.fileno() if stdin == subprocess.DEVNULL else stdin if isinstance(stdin, int) else stdin.fileno()
        child = spawn(module, *words, cwd=cwd, env=env, files=(given, said.fileno(), complained.fileno()))
        try:
            code = child.wait(timeout)
        except BaseException:
            child.kill()
            child.wait()
            raise
        texts = []
        for file in (said, complained):
            file.seek(0)
            texts.append(file.read())
        return subprocess.CompletedProcess(child.args, code, *texts)


@functools.cache
def _parent(_: int) -> socket.socket:
    """The connection to the process that is forked, started when it is first wanted."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MAX_BYTES)
    known = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    known["PYTHONPATH"] = str(Path(csmd.__file__).parent.parent)
    child = subprocess.Popen(
        [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd="/",
        stdin=subprocess.DEVNULL, env={**known, "LANG": "C.UTF-8", "TZ": "UTC"}, start_new_session=True,
    )  # fmt: skip
    theirs.close()
    atexit.register(lambda: (ours.close(), child.wait(30)))
    return ours


# --- the process that is forked


def _forking(ours: socket.socket) -> dict[str, Any] | None:
    """Forks for each request; returns the request in the new process, None at the end of whoever asks."""
    telling: dict[int, int] = {}
    woken, waking = os.pipe()
    for end in (woken, waking):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([ours, woken], [], [])
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
            _bury(telling)
        if ours in ready:
            request, passed, _, _ = socket.recv_fds(ours, MAX_BYTES, FILES)
            if not request:
                return None
            pid = os.fork()
            if pid == 0:
                return _become(json.loads(request), passed[:3])
            for descriptor in passed[:3]:
                os.close(descriptor)
            telling[pid] = passed[3]
            _tell(passed[3], pid)


def _bury(telling: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            descriptor = telling.pop(pid)
            _tell(descriptor, status)
            os.close(descriptor)


def _tell(descriptor: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # a test that has ended asks for nothing more
        os.write(descriptor, b"%d\n" % number)


def _become(request: dict[str, Any], files: Sequence[int]) -> dict[str, Any]:
    """Makes this process what was asked for: nothing of its parent's stays but the modules."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(files):
        os.dup2(descriptor, number)
    if request["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.closerange(3, 1 << 16)
    os.chdir(request["cwd"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        was = getattr(sys, name)
        again = os.fdopen(
            number, "r" if number == 0 else "w", 1 if number == 2 or os.isatty(number) else -1, was.encoding,
            was.errors, closefd=False,
        )  # fmt: skip
        setattr(sys, name, again)
        setattr(sys, f"__{name}__", again)
    return request


def main() -> None:
    """Loads the programs, then is forked."""
    import gc
    import importlib

    ours = socket.socket(fileno=int(sys.argv[1]))
    for name in PROGRAMS:
        importlib.import_module(name)
    from csmd.cli.verb_table import MODULE_VERBS

    for name in MODULE_VERBS:
        importlib.import_module(f"csmd.cli.{name}")
    gc.collect()
    gc.freeze()
    request = _forking(ours)
    if request is not None:
        sys.argv = [request["module"], *request["words"]]
        sys.path.insert(0, request["cwd"])  # as -m has it
        code: Any = 0
        try:
            if request["module"] == "-c":
                program = sys.argv.pop(1)
                exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
            else:
                runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code or 0
        _end(code)


def _end(code: Any) -> None:
    """Ends this process; to take its modules apart, as an interpreter does, costs more than most commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError):
        sys.exit(code)  # an interpreter has its own way with what nobody reads
    if not isinstance(code, int):
        sys.exit(code)
    atexit._run_exitfuncs()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
