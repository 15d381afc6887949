"""A user's machine in a directory, for tests with real processes: csmd's home, a project, transcripts, a daemon.

Not a test: found through tests/conftest.py. Waiting is polling with a limit, never a sleep of a chosen length.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked_process
import psutil
import zmq

import csmd
from csmd import wire
from csmd.config import Config, Settings, base_interpreter, default_paths
from csmd.hosts.claude import registration
from csmd.installer import plan
from csmd.paths import Paths

#: A daemon that a test started itself.
Daemon = subprocess.Popen[bytes] | forked_process.Forked
LIMIT_S = 60.0
#: What csmd finds where no home has been chosen: below a device nothing can be made.
NO_HOME = "/dev/null/no-home-was-chosen"
PACKAGE = str(Path(csmd.__file__).parent.parent)

PREFERENCE = "Clean up tools/export.py, and I prefer pathlib over os.path in this code."
CORRECTION = "no, that's wrong: the config key is database_url, not db_url"
DECISION = "Good. For the worker, let's go with Postgres for the job queue because we need LISTEN/NOTIFY."


def _fast_directory() -> Path:
    """Where temporary directories are made: in memory if there is room, else in /tmp.

    csmd waits for the disk at each commit, and no test can tell whether it did.
    """
    memory = Path("/dev/shm")
    with contextlib.suppress(OSError):
        if os.access(memory, os.W_OK | os.X_OK) and shutil.disk_usage(memory).free >= ROOM_BYTES:
            return memory
    return Path("/tmp")


ROOM_BYTES = 4 << 30
TEMPORARY = _fast_directory()


def temporary_directory(within: Path = TEMPORARY) -> Path:
    """A new directory with a path that is short enough for a socket in it."""
    return Path(tempfile.mkdtemp(prefix="csmd-t-", dir=within)).resolve()


def eventually(condition: Callable[[], Any], *, within_s: float = LIMIT_S) -> Any:
    """The first true value of `condition`."""
    end = time.monotonic() + within_s
    while not (value := condition()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)
    return value


def ask(
    socket_path: Path | str,
    frames: Sequence[bytes],
    *,
    within_s: float = LIMIT_S,
    socket_type: int = zmq.DEALER,
) -> list[bytes]:
    """What the daemon answers to these very frames."""
    with peer(socket_path, socket_type) as dealer:
        dealer.send_multipart(list(frames))
        assert dealer.poll(int(within_s * 1000)), "no answer"
        return dealer.recv_multipart()


@contextlib.contextmanager
def peer(socket_path: Path | str, socket_type: int = zmq.DEALER) -> Iterator[Any]:
    """A connected zmq socket."""
    context = zmq.Context()
    dealer = context.socket(socket_type)
    dealer.setsockopt(zmq.LINGER, 0)
    try:
        dealer.connect(f"ipc://{socket_path}")
        yield dealer
    finally:
        dealer.close()
        context.term()


def event_frames(
    name: str, payload: Any, *, ident: str = "", proto: int = wire.PROTO, deadline_ms: int = 20_000
) -> list[bytes]:
    """A hook's request; `payload` is bytes or what becomes JSON."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    request = wire.Request(
        id=ident or os.urandom(16).hex(), verb="event", deadline_ms=deadline_ms, host="claude", name=name, body=body,
        proto=proto,
    )  # fmt: skip
    return wire.encode_request(request)


def call_frames(name: str, params: Any, *, deadline_ms: int = 20_000) -> list[bytes]:
    """A request of the command line."""
    body = params if isinstance(params, bytes) else json.dumps(params).encode()
    return wire.encode_request(
        wire.Request(id="c1", verb="call", deadline_ms=deadline_ms, host="cli", name=name, body=body)
    )


@dataclass(kw_only=True)
class Machine:
    """One user's machine below `root`."""

    root: Path
    daemons: list[Daemon] = field(default_factory=list)
    _clock: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def home(self) -> Path:
        return self.root / "csmd"

    @property
    def assistant(self) -> Path:
        return self.root / ".claude"

    @property
    def project(self) -> Path:
        folder = self.root / "project"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def paths(self) -> Paths:
        return default_paths({"CSMD_HOME": str(self.home)})

    @property
    def socket(self) -> Path:
        return Path(self.paths.endpoint.read_text().strip())

    def config(self, **chosen: Any) -> Config:
        """The configuration of a daemon of this machine."""
        return Config(paths=self.paths, settings=Settings(**chosen), assistant_dirs=(self.assistant,))

    def environment(self, **more: str) -> dict[str, str]:
        """What a terminal of this user has set."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": PACKAGE,
            "LANG": "C.UTF-8",
            "HOME": str(self.root),
            "CSMD_HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.assistant),
            "COLUMNS": "80",
            "TZ": "UTC",
            **more,
        }

    # --- the command

    def run(self, *arguments: str, stdin: Any = subprocess.DEVNULL, **more: str) -> subprocess.CompletedProcess[str]:
        """`csmd` with these arguments in the project; `more` is added to its environment."""
        return forked_process.run(
            "csmd", *arguments, cwd=self.project, env=self.environment(**more), stdin=stdin, timeout=LIMIT_S * 3
        )

    def csmd(self, *arguments: str) -> Any:
        """What `csmd` says on success: the value with --json, else its text."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"csmd {shlex.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    # --- the daemon

    def start(
        self, *, preexec: Callable[[], None] | None = None, constants: Mapping[str, float] | None = None
    ) -> Daemon:
        """A daemon of the test's own, listening."""
        child = self.spawn(preexec=preexec, constants=constants)
        eventually(lambda: child.poll() is not None or (self.paths.endpoint.exists() and self.instance() == child.pid))
        assert child.poll() is None, (child.stderr.read() if child.stderr else b"", self.log())
        return child

    def instance(self) -> int:
        """The pid of the daemon that says it serves this home; 0 for none."""
        return int(json.loads(self.paths.instance.read_bytes())["pid"]) if self.paths.instance.exists() else 0

    def spawn(
        self, *, preexec: Callable[[], None] | None = None, constants: Mapping[str, float] | None = None
    ) -> Daemon:
        """A daemon of the test's own, not yet listening; with `preexec`, which it runs first, a bare interpreter.

        `constants` are other values of modules' constants, by their full names.
        """
        child: Daemon
        if preexec is None and not constants:
            child = forked_process.spawn("csmd.daemon", cwd=self.root, env=self.environment())
        else:
            program = "".join(
                f"import {name.rpartition('.')[0]}; {name} = {value}\n" for name, value in (constants or {}).items()
            )
            program += "import runpy; runpy.run_module('csmd.daemon', run_name='__main__')"
            child = subprocess.Popen(
                [sys.executable, "-P", "-c", program], cwd=self.root, env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=preexec,
            )  # fmt: skip
        self.daemons.append(child)
        return child

    def stop(self, child: Daemon) -> int:
        """Ends a daemon by SIGTERM; its exit code."""
        child.terminate()
        return child.wait(LIMIT_S)

    def log(self) -> str:
        """The end of the daemon's log."""
        return self.paths.log_file.read_text()[-3000:] if self.paths.log_file.exists() else "no log"

    def call(self, tool: str, **params: Any) -> Any:
        """Asks the daemon over its socket, without the cost of a process."""
        status, body = ask(self.socket, call_frames(tool, params))
        assert status == b"ok", (tool, status, body, self.log())
        return json.loads(body)

    def status(self) -> Any:
        """The daemon's state."""
        return self.call("csm_runtime_status")

    def work(self, tool: str, **params: Any) -> Any:
        """Has a job done; its result."""
        job = self.call(tool, **params)["job"]
        state = eventually(lambda: (s := self.call("csm_job", id=job))["state"] in ("done", "failed") and s)
        assert state["state"] == "done", state
        return state["result"]

    def sync(self) -> Any:
        """Takes in what is on the disk."""
        return self.work("csm_sync", vectors=False)

    def event(self, name: str, session: str = "s1", *, ident: str = "", **more: Any) -> tuple[str, bytes]:
        """Reports a hook's event over the socket; (status, what the hook would print)."""
        payload = {"session_id": session, "cwd": str(self.project), "hook_event_name": name, **more}
        status, body = ask(self.socket, event_frames(name, payload, ident=ident))
        return status.decode(), body

    def hook(self, name: str, session: str = "s1", **more: Any) -> bytes:
        """Runs the hook as it is registered; what it prints."""
        plan.copy_hooks(self.paths) if self.paths.hook_dir.is_dir() else self._install_hooks()
        payload = {"session_id": session, "cwd": str(self.project), "hook_event_name": name, **more}
        line = registration.hook_command(base_interpreter(), self.home, name)
        done = subprocess.run(
            ["sh", "-c", line], input=json.dumps(payload).encode(), capture_output=True, timeout=LIMIT_S, check=False,
            env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def _install_hooks(self) -> None:
        self.paths.hook_dir.mkdir(parents=True, mode=0o700, exist_ok=True)
        plan.copy_hooks(self.paths)

    def spooled(self) -> list[Path]:
        """The events that wait in the spool."""
        return sorted(self.paths.spool.glob("*.event"))

    # --- what the assistant writes

    def line(self, kind: str, text: str, *, session: str = "s1", uuid: str = "", cwd: str = "") -> dict[str, Any]:
        """A transcript line in which `kind` (user or assistant) says `text`, a minute after the one before."""
        minute = next(self._clock)
        message: dict[str, Any] = {"role": kind, "content": text}
        if kind == "assistant":
            message = {"id": f"msg{minute}", "role": kind, "content": [{"type": "text", "text": text}],
                       "usage": {"output_tokens": 7}}  # fmt: skip
        return {
            "type": kind, "uuid": uuid or f"u{minute}-{session}", "sessionId": session,
            "cwd": cwd or str(self.project), "timestamp": f"2026-05-04T{8 + minute // 60:02d}:{minute % 60:02d}:00.000Z",
            "version": "2.1.0", "message": message, **({"permissionMode": "default"} if kind == "user" else {}),
        }  # fmt: skip

    def transcript(self, *lines: dict[str, Any] | str, session: str = "s1", folder: Path | None = None) -> Path:
        """Appends lines to a session's transcript."""
        place = folder or self.assistant / "projects" / "-project"
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{session}.jsonl"
        with path.open("a") as file:
            for line in lines:
                file.write(line if isinstance(line, str) else json.dumps(line) + "\n")
        return path

    def conversation(self, session: str = "s1", folder: Path | None = None) -> Path:
        """A session in which the three statements are made."""
        lines = []
        for text in (PREFERENCE, CORRECTION, DECISION):
            lines += [self.line("user", text, session=session), self.line("assistant", "It is done.", session=session)]
        return self.transcript(*lines, session=session, folder=folder)

    def end(self) -> None:
        """Ends every daemon and removes everything."""
        from csmd.installer import service

        had_hooks = self.paths.hook_dir.is_dir()
        service.stop(self.paths, by_user=False)
        for child in self.daemons:
            if child.poll() is None:
                child.kill()
                child.wait(LIMIT_S)
            if child.stderr is not None:
                child.stderr.close()
        if had_hooks:  # one of them may just be bringing a daemon back, which is not listed yet
            self._kill_all()
        shutil.rmtree(self.root)
        if had_hooks:  # who becomes the daemon now finds no home to run in; this one was quicker
            self._kill_all()

    def _kill_all(self) -> None:
        """Kills what belongs to this machine by its command line or environment, until nothing does."""
        is_left = True
        while is_left:
            is_left = False
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                        continue
                    if any(str(self.root) in text for text in (*process.cmdline(), *process.environ().values())):
                        is_left = True
                        process.kill()
                        process.wait(LIMIT_S)


@contextlib.contextmanager
def own_machine(within: Path = TEMPORARY) -> Iterator[Machine]:
    """A machine for a program that is no test: no other home can be written to, and everything on it ends with it."""
    os.environ["CSMD_HOME"] = os.environ["CLAUDE_CONFIG_DIR"] = NO_HOME
    machine = Machine(root=temporary_directory(within))
    try:
        yield machine
    finally:
        machine.end()
