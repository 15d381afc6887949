"""Fixtures of the end-to-end tests: a user's machine in a directory, the csmd command and the real client in it.

Nothing outlives a test: a process that still belongs to the sandbox after `csmd stop` fails it.
A failed test keeps its sandbox and says where it is.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

# the test suite is not a package: its helpers are found by their folder, csmd itself as it is installed
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import forked_process
from e2e import client
from e2e.hosts import claude_code

END_LIMIT_S = 15.0
COMMAND_LIMIT_S = 120.0
FAILED = pytest.StashKey[bool]()


def pytest_report_header() -> str:
    """Says how far the clients are shut in."""
    return f"e2e: clients in {client.directory()}, {'in network namespaces' if client.namespace() else 'NO namespaces'}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remembers a failure, so that the sandbox is kept."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """One user's machine: `home`, a repository `project`, csmd's own `csmd_home`; short enough for socket paths."""

    path: Path
    port: int
    """Where its scripted APIs listen, one at a time."""

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def home(self) -> Path:
        return self.path / "home"

    @property
    def project(self) -> Path:
        return self.path / "project"

    @property
    def csmd_home(self) -> Path:
        return self.path / "csmd"

    @property
    def settings_file(self) -> Path:
        return self.home / ".claude" / "settings.json"

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Makes `settings` the user's own of the client."""
        self.settings_file.write_text(json.dumps(settings, indent=2) + "\n")

    def environment(self) -> dict[str, str]:
        """What a terminal of this user has set."""
        inherited = {name: os.environ[name] for name in ("PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
        return {**inherited, **self.claude_environment(), "CSMD_HOME": str(self.csmd_home)}

    def claude_environment(self, api: str = client.NOWHERE) -> dict[str, str]:
        """What Claude Code is started with in a terminal of this user."""
        return client.driver_environment(claude_code.DRIVERS[0], self.home, api)

    def processes(self) -> list[psutil.Process]:
        """Every live process that belongs to this sandbox."""
        mark, processes = str(self.path), []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                words = [*process.cmdline(), *process.environ().values()]
                if any(mark in text for text in words):
                    processes.append(process)
        return processes


@pytest.fixture
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A new sandbox; at the test's end nothing of it may run any more."""
    path = Path(tempfile.mkdtemp(prefix="csmd-e2e-", dir="/tmp")).resolve()
    made = Sandbox(path=path, port=client.free_port())
    client.prepare(made.home, made.project)
    claude_code.prepare(made.home, made.project, client.NOWHERE)
    yield made
    limit = time.monotonic() + END_LIMIT_S
    while (left := made.processes()) and time.monotonic() < limit:
        time.sleep(0.05)
    named = []
    for process in left:
        with contextlib.suppress(psutil.Error):
            named.append(f"{process.pid}: {shlex.join(process.cmdline())[:200]}")
            process.kill()
    if request.node.stash.get(FAILED, False) or named:
        print(f"the sandbox is kept: {path}")
    else:
        shutil.rmtree(path)
    assert not named, f"still running after the test: {named}"


class Csmd:
    """The `csmd` command as the sandbox's user runs it in the project; `install` starts the installed script, the other
    commands are forked from a process that has csmd loaded, which spares each of them its imports."""

    def __init__(self, sandbox: Sandbox) -> None:
        script = Path(sys.executable).with_name("csmd")
        self._command = [str(script)] if script.exists() else [sys.executable, "-m", "csmd"]
        self._sandbox = sandbox

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command's exit code and output, whatever they are."""
        project, environment = self._sandbox.project, self._sandbox.environment()
        if arguments[0] != "install":
            return forked_process.run(
                "csmd", *arguments, cwd=project, env=environment, stdin=subprocess.DEVNULL, timeout=COMMAND_LIMIT_S
            )
        return subprocess.run(
            [*self._command, *arguments], cwd=project, env=environment, text=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=COMMAND_LIMIT_S,
        )  # fmt: skip

    def __call__(self, *arguments: str) -> Any:
        """What it says on success: the JSON value with `--json`, else its text; anything but exit code 0 fails."""
        done = self.run(*arguments)
        outcome = (
            f"csmd {shlex.join(arguments)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}\n{self._log()}"
        )
        assert done.returncode == 0, outcome
        if "--json" not in arguments:
            return done.stdout
        try:
            return json.loads(done.stdout)
        except ValueError:
            pytest.fail(f"not JSON: {outcome}")

    def _log(self) -> str:
        logs = sorted(self._sandbox.csmd_home.glob("log/*.log"))
        return "\n".join(line for path in logs for line in path.read_text().splitlines()[-30:])

    def hook_commands(self, event: str) -> list[dict[str, Any]]:
        """The hooks that stand in the user's settings for `event` and are csmd's."""
        groups = json.loads(self._sandbox.settings_file.read_text())["hooks"].get(event, [])
        mark = str(self._sandbox.csmd_home)
        return [hook for group in groups for hook in group["hooks"] if mark in json.dumps(hook)]

    def hook(self, event: str, payload: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
        """Runs the one registered hook for `event` as the client would, `payload` on its standard input."""
        (hook,) = self.hook_commands(event)
        argv = [hook["command"], *hook["args"]] if "args" in hook else ["sh", "-c", hook["command"]]
        return subprocess.run(
            argv, cwd=self._sandbox.project, env=self._sandbox.claude_environment(), capture_output=True,
            input=json.dumps(payload).encode() + b"\n", timeout=COMMAND_LIMIT_S,
        )  # fmt: skip


@pytest.fixture
def csmd(sandbox: Sandbox) -> Iterator[Csmd]:
    """The `csmd` command in the sandbox; its daemon is stopped at the end."""
    command = Csmd(sandbox)
    yield command
    if sandbox.csmd_home.exists():
        command.run("stop")


@functools.cache
def command_of(driver: client.Driver) -> list[str]:
    """A client's command line; skips the test where it cannot be had here, with the reason."""
    try:
        return client.command_of(driver, client.directory())
    except client.ClientMissingError as missing:
        if "CSMD_TEST_CLIENTS" not in os.environ:
            pytest.skip(str(missing))
        reason = client.why_not_installed(driver, client.directory())
        if not reason or driver.host == "claude":
            pytest.fail(str(missing))
        pytest.skip(f"no client: {reason}")  # .ci/long has a part that fails where one could not be installed


@contextlib.contextmanager
def client_of(driver: client.Driver, sandbox: Sandbox) -> Iterator[client.Client]:
    """A client of the sandbox's user; it is prepared already."""
    made = client.Client(driver=driver, command=command_of(driver), sandbox=sandbox)
    try:
        yield made
    finally:
        for running in made.runs:
            running.end()


@pytest.fixture
def start_client(sandbox: Sandbox) -> Iterator[Callable[[str], client.Client]]:
    """Gives the newest client of a host, prepared for the sandbox's user."""
    with contextlib.ExitStack() as started:

        def prepared(host: str) -> client.Client:
            driver = next(driver for driver in client.drivers() if driver.host == host)
            if host != "claude":  # Claude Code is there in every sandbox
                driver.prepare(sandbox.home, sandbox.project, sandbox.api)
            return started.enter_context(client_of(driver, sandbox))

        yield prepared


@pytest.fixture(
    scope="session",
    params=[
        claude_code.VERSIONS[0],
        *(pytest.param(old, marks=pytest.mark.long) for old in claude_code.VERSIONS[1:]),
    ],
)
def claude_build(request: pytest.FixtureRequest) -> client.Driver:
    """One version of Claude Code: the latest, and with `-m long` each older one."""
    return claude_code.driver(request.param)


@pytest.fixture
def claude(claude_build: client.Driver, sandbox: Sandbox) -> Iterator[client.Client]:
    """The real Claude Code, in each of the pinned versions."""
    with client_of(claude_build, sandbox) as made:
        yield made


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """A hook of somebody else's that keeps what it is given and may say something; a witness beside csmd."""

    folder: Path
    says: dict[str, str] = field(default_factory=dict)

    def settings(self, *events: str) -> dict[str, Any]:
        """The `hooks` object that registers it for `events`."""
        self.folder.mkdir(parents=True)
        script = self.folder / "hook.sh"
        script.write_text('cat > "$(mktemp "$1/$2.XXXXXX")"\nif [ -f "$1/say-$2" ]; then cat "$1/say-$2"; fi\n')
        for event, text in self.says.items():
            answer = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
            (self.folder / f"say-{event}").write_text(json.dumps(answer))
        recording = ["sh", str(script), str(self.folder)]
        command = {event: shlex.join([*recording, event]) for event in events}
        return {event: [{"hooks": [{"type": "command", "command": command[event]}]}] for event in events}

    def seen(self, event: str) -> list[dict[str, Any]]:
        """Every input it was given for `event`."""
        return [json.loads(path.read_text()) for path in self.folder.glob(f"{event}.*")]


@pytest.fixture
def recorder(sandbox: Sandbox) -> Recorder:
    """A recording hook, not yet registered anywhere."""
    return Recorder(folder=sandbox.path / "recorded")
