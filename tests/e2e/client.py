"""The real assistants, pinned by exact version, run where they can reach nothing but a scripted API.

Each file of `tests/e2e/hosts` describes one assistant by its `DRIVERS`, a `Driver` for each version, the newest first.
Every run has its own HOME, a key that is none, and (on Linux) a network namespace with nothing but loopback; the
scripted API runs inside that namespace, beside the client. The client is never told where csmd lives: hooks have to
know.

    python tests/e2e/client.py install DIRECTORY [HOST...]   installs every client (npm), or those of these hosts
    python tests/e2e/client.py inside SPEC                   one run; started by `start` inside the namespace

DIRECTORY/NAME/node_modules/... is the layout; CSMD_TEST_CLIENTS names DIRECTORY, else it is `csmd-test-clients` in the
user's cache. Why a client could not be installed stands in DIRECTORY/NAME/failed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from e2e.conftest import Sandbox

CLIENT_LIMIT_S = 90.0
INSTALL_LIMIT_S = 300.0
HOSTS = Path(__file__).parent / "hosts"
NOWHERE = "http://127.0.0.1:9"
#: Where no namespace is to be had, anything but the scripted API is sent to a port that refuses.
REFUSED = {"HTTPS_PROXY": NOWHERE, "HTTP_PROXY": NOWHERE}


class ClientMissingError(Exception):
    """No client of this version can be run here; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """How one version of an assistant is installed, configured and run; `host` is its name in csmd."""

    host: str
    version: str
    package: str
    """The npm package that is installed."""
    program: str
    """The program below `node_modules`; `.bin/NAME` starts the package's own launcher."""
    runner: tuple[str, ...] = ()
    """What runs the program, where it cannot be started itself."""
    extra_scripts: tuple[str, ...] = ()
    """More packages that are installed with it, as npm takes them."""
    name: str = ""
    """Its folder below the directory of clients; HOST-VERSION by default."""
    prepare: Callable[[Path, Path, str], None]
    """Makes a HOME one of a user who has answered the client's first questions, for a project and an API's address."""
    environment: Callable[[Path, str], dict[str, str]]
    """What the user of a HOME has set beside PATH and the like, by an API's address: a key that is none, no updates."""
    turn: Callable[[str, str], list[str]]
    """The arguments of one turn without a person: by the prompt and the session that it goes on with ("" for a new one)."""
    session_of: Callable[[Path, str], str]
    """The id of the session that a turn belonged to, as the client has it: by HOME and what the client printed."""
    shell: Callable[[str], dict[str, Any]]
    """The part of a scripted reply in which the model runs a command."""
    no_resume: str = ""
    """Why a session cannot be resumed without a person; "" where it can."""
    is_slow: bool = False
    """Whether it takes so long that only the long tests run it."""
    without_servers: tuple[str, ...] = ()
    """Arguments with which it starts no memory server, which takes a second of a processor in each run."""

    @property
    def folder(self) -> str:
        """Its folder below the directory of clients."""
        return self.name or f"{self.host}-{self.version}"


def drivers() -> tuple[Driver, ...]:
    """Every driver, by host and each host's newest first."""
    modules = [importlib.import_module(f"e2e.hosts.{path.stem}") for path in sorted(HOSTS.glob("[a-z]*.py"))]
    return tuple(driver for module in modules for driver in module.DRIVERS)


def directory() -> Path:
    """Where the clients are looked for."""
    chosen = os.environ.get("CSMD_TEST_CLIENTS")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen).absolute() if chosen else Path(cache) / "csmd-test-clients"


def command_of(driver: Driver, where: Path) -> list[str]:
    """The command line of a client under `where`; ClientMissingError when it is not there or is another version."""
    path = where / driver.folder / "node_modules" / driver.program
    if not path.exists():
        raise ClientMissingError(
            f"{driver.host} {driver.version} is not at {path}; run: python tests/e2e/client.py install {where}"
        )
    if driver.runner and not shutil.which(driver.runner[0]):
        raise ClientMissingError(f"{driver.host} {driver.version} needs {driver.runner[0]}, which is not on PATH")
    command = [*driver.runner, str(path)]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=home,
            env=driver_environment(driver, Path(home), NOWHERE), check=False,
        ).stdout  # fmt: skip
    if not re.search(rf"(?<![\d.]){re.escape(driver.version)}(?!\.?\d)", done):
        raise ClientMissingError(f"{path} says it is {done.strip()!r}, not {driver.version}")
    return command


def why_not_installed(driver: Driver, where: Path) -> str:
    """Why the last attempt to install a client under `where` failed; "" where it did not."""
    reason = where / driver.folder / "failed"
    return reason.read_text() if reason.exists() else ""


def install(driver: Driver, where: Path) -> list[str]:
    """Installs a client under `where` unless it is there, and gives its command line; ClientMissingError says why not."""
    with contextlib.suppress(ClientMissingError):
        return command_of(driver, where)
    prefix = where / driver.folder
    prefix.mkdir(parents=True, exist_ok=True)
    (prefix / "failed").unlink(missing_ok=True)
    (prefix / "package.json").write_text('{"private": true}\n')
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]
    packages = [f"{driver.package}@{driver.version}", *driver.extra_scripts]
    try:
        subprocess.run(
            ["npm", "install", *options, *packages], cwd=prefix, check=True, timeout=INSTALL_LIMIT_S, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        return command_of(driver, where)
    except subprocess.CalledProcessError as failed:
        reason = f"npm install {' '.join(packages)} failed: {failed.stderr.strip()[-500:]}"
    except subprocess.TimeoutExpired:
        reason = f"npm install {' '.join(packages)} took more than {INSTALL_LIMIT_S:.0f} s"
    except ClientMissingError as missing:
        reason = str(missing)
    (prefix / "failed").write_text(reason)
    raise ClientMissingError(reason)


@functools.cache
def namespace() -> tuple[str, ...]:
    """What stands before a command to run it with loopback as its only network; empty where that is impossible."""
    rights = () if os.getuid() == 0 else ("-r",)
    prefix = ("unshare", "-n", *rights, "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    if not (shutil.which("unshare") and shutil.which("ip")):
        return ()
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else ()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now; every port is free in a new namespace."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def prepare(home: Path, project: Path) -> None:
    """Makes `home` a directory of a user's, and `project` a git repository."""
    home.mkdir(parents=True)
    project.mkdir(parents=True)
    identity = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
    for step in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "Start"]):
        subprocess.run(["git", *identity, *step], cwd=project, check=True, env=environment(home))


def environment(home: Path) -> dict[str, str]:
    """The environment of a program that the user of `home` starts; nothing of the caller's but PATH."""
    return {
        "HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip


def driver_environment(driver: Driver, home: Path, api: str) -> dict[str, str]:
    """The environment of a client that the user of `home` starts."""
    return {**environment(home), **driver.environment(home, api)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """One run of the client: how it ended, what it printed and every request it made, oldest first."""

    exit_code: int | None
    stdout: str
    stderr: str
    main: list[dict[str, Any]]
    others: list[dict[str, Any]]
    session_id: str
    """The session that this run began or went on with, as the client names it."""

    @property
    def stream(self) -> list[dict[str, Any]]:
        """The JSON messages that the client printed."""
        return [json.loads(line) for line in self.stdout.splitlines()]


class Running:
    """A client that runs; `finish` it, or `end` it."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, session_of: Callable[[str], str]) -> None:
        self._process = process
        self._folder = folder
        self._session_of = session_of

    def requests(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of the requests of `kind` that have arrived so far."""
        return [json.loads(path.read_text()) for path in sorted((self._folder / "api").glob(f"*-{kind}.json"))]

    def wait_for_request(self, number: int) -> dict[str, Any]:
        """The `number`-th main request (from 1), as soon as it has arrived."""
        limit = time.monotonic() + CLIENT_LIMIT_S
        while len(requests := self.requests("main")) < number:
            assert self._process.poll() is None, f"the client ended before request {number}: {self.finish()}"
            assert time.monotonic() < limit, f"request {number} never came"
            time.sleep(0.02)
        return requests[number - 1]

    def finish(self) -> Finished:
        """Waits for the client's end."""
        self._process.wait(timeout=CLIENT_LIMIT_S + 30)
        result = self._folder / "exit_code"
        trouble = (self._folder / "runner").read_text()
        assert result.exists(), f"the run did not happen: {trouble}"
        stdout = (self._folder / "stdout").read_text()
        return Finished(
            exit_code=json.loads(result.read_text()),
            stdout=stdout,
            stderr=(self._folder / "stderr").read_text() + trouble,
            main=self.requests("main"),
            others=self.requests("other"),
            session_id=self._session_of(stdout),
        )

    def end(self) -> None:
        """Makes sure that nothing of the run is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)


@dataclass(slots=True, kw_only=True)
class Client:
    """A real client on a user's machine, one run at a time."""

    driver: Driver
    command: list[str]
    sandbox: Sandbox
    runs: list[Running] = field(default_factory=list)
    start_directory: Path | None = None
    """Where the client is started; in the project by default."""
    servers: bool = False
    """Whether it starts csmd's memory server, as it does for a user."""

    @property
    def version(self) -> str:
        return self.driver.version

    def start(
        self, prompt: str, *replies: str | dict[str, Any], session: str = "", options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Running:  # fmt: skip
        """A run that goes on while the test does something else, its API beside it answering with `replies`."""
        folder = self.sandbox.path / "runs" / self.driver.folder / str(len(self.runs) + 1)
        folder.mkdir(parents=True)
        isolation, without = namespace(), () if self.servers else self.driver.without_servers
        spec = {
            "argv": [*self.command, *self.driver.turn(prompt, session), *without, *options],
            "cwd": str(self.start_directory or self.sandbox.project),
            "env": {
                **driver_environment(self.driver, self.sandbox.home, self.sandbox.api), **({} if isolation else REFUSED),
                "NO_PROXY": "127.0.0.1", **(env or {}),
            },
            "scenario": {"prompt": prompt, "replies": list(replies), "log": str(folder / "api")},
            "port": self.sandbox.port,
            "folder": str(folder),
        }  # fmt: skip
        (folder / "spec.json").write_text(json.dumps(spec))
        with (folder / "runner").open("wb") as trouble:
            argv = [*isolation, sys.executable, __file__, "inside", str(folder / "spec.json")]
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=trouble, stderr=trouble, start_new_session=True
            )
        running = Running(process, folder, functools.partial(self.driver.session_of, self.sandbox.home))
        self.runs.append(running)
        return running

    def run(
        self, prompt: str, *replies: str | dict[str, Any], session: str = "", options: Sequence[str] = ()
    ) -> Finished:
        """A run from its start to its end."""
        return self.start(prompt, *replies, session=session, options=options).finish()


def inside(spec: dict[str, Any]) -> None:
    """One run: the scripted API and the client in one network namespace; leaves stdout, stderr and exit_code."""
    from e2e import scripted_api

    folder = Path(spec["folder"])
    scripted_api.serve(spec["scenario"], spec["port"])
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        try:
            code: int | None = subprocess.run(
                spec["argv"], cwd=spec["cwd"], env=spec["env"], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                timeout=CLIENT_LIMIT_S,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = None
    (folder / "exit_code").write_text(json.dumps(code))


def install_all(where: Path, hosts: Sequence[str]) -> int:
    """Installs the clients of these hosts (of all, for none), a few at a time; how many could not be installed."""

    def attempt(driver: Driver) -> bool:
        try:
            print(driver.folder, *install(driver, where), flush=True)
        except ClientMissingError as missing:
            print(f"{driver.folder}: {missing}", file=sys.stderr, flush=True)
            return False
        return True

    wanted = [driver for driver in drivers() if not hosts or driver.host in hosts]
    with ThreadPoolExecutor(max_workers=3) as pool:
        return list(pool.map(attempt, wanted)).count(False)


def main(arguments: list[str]) -> int:
    """The command line: see the module's docstring."""
    match arguments:
        case ["install", where, *hosts]:
            return 1 if install_all(Path(where).absolute(), hosts) else 0
        case ["inside", spec]:
            inside(json.loads(Path(spec).read_text()))
            return 0
    print("usage: client.py install DIRECTORY [HOST...]", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from e2e import client  # the module that the drivers import, not this script

    sys.exit(client.main(sys.argv[1:]))
