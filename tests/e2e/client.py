"""The real Claude Code, pinned by exact version, run where it can reach nothing but a scripted API.

Every run has its own HOME, a key that is none, and (on Linux) a network namespace with nothing but
loopback; the scripted API runs inside that namespace, beside the client. The client is never told
where csmd lives: hooks have to know.

    python tests/e2e/client.py install DIRECTORY     installs every version of VERSIONS (npm)
    python tests/e2e/client.py inside SPEC           one run; started by `start` inside the namespace

DIRECTORY/VERSION/node_modules/... is the layout; CSMD_TEST_CLIENTS names DIRECTORY, else it is
`csmd-test-clients` in the user's cache.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSIONS = ("2.1.329", "2.0.77")
SCOPE = "@anthropic-ai"
KEY = "sk-ant-not-a-key-it-only-has-the-shape-of-one"
CLIENT_LIMIT_S = 90.0
#: Kinds of transcript lines that say how a hook fared well; any other `hook_*` line is a failure.
HOOK_FARED_WELL = {"hook_success", "hook_additional_context", "hook_system_message"}
#: What a `stop_hook_summary` line may not say about hooks that must stay silent.
STOP_MUST_NOT = ("hookErrors", "preventedContinuation", "hookAdditionalContext", "hasOutput")


class ClientMissingError(Exception):
    """No client of this version can be run here; the message says why."""


def directory() -> Path:
    """Where the clients are looked for."""
    chosen = os.environ.get("CSMD_TEST_CLIENTS")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen).absolute() if chosen else Path(cache) / "csmd-test-clients"


def package_of(version: str) -> tuple[str, str, list[str]]:
    """(npm package, its program, what runs the program): native builds are pinned by their platform's package."""
    if version.startswith("2.0."):
        return f"{SCOPE}/claude-code", "cli.js", ["node"]
    cpu = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    system = sys.platform if sys.platform != "linux" or platform.libc_ver()[0] else "linux-musl"
    build = f"linux-{cpu}-musl" if system == "linux-musl" else f"{system}-{cpu}"
    return f"{SCOPE}/claude-code-{build}", "claude", []


def command_of(version: str, where: Path) -> list[str]:
    """The command line of `version` under `where`; ClientMissingError when it is not there or is another version."""
    package, program, runner = package_of(version)
    path = where / version / "node_modules" / package / program
    if not path.exists():
        raise ClientMissingError(
            f"Claude Code {version} is not at {path}; run: python tests/e2e/client.py install {where}"
        )
    if runner and not shutil.which(runner[0]):
        raise ClientMissingError(f"Claude Code {version} needs {runner[0]}, which is not on PATH")
    command = [*runner, str(path)]
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60).stdout
    if said.split()[:1] != [version]:
        raise ClientMissingError(f"{path} says it is {said.strip()!r}, not {version}")
    return command


def install(version: str, where: Path) -> list[str]:
    """Installs exactly `version` under `where` unless it is there, and gives its command line."""
    with contextlib.suppress(ClientMissingError):
        return command_of(version, where)
    package, _, _ = package_of(version)
    prefix = where / version
    prefix.mkdir(parents=True, exist_ok=True)
    (prefix / "package.json").write_text('{"private": true}\n')
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]
    subprocess.run(["npm", "install", *options, f"{package}@{version}"], cwd=prefix, check=True, stdout=sys.stderr)
    return command_of(version, where)


@functools.cache
def namespace() -> tuple[str, ...]:
    """What stands before a command to run it with loopback as its only network; empty where that is impossible."""
    rights = () if os.getuid() == 0 else ("-r",)
    prefix = ("unshare", "-n", *rights, "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
    if not (shutil.which("unshare") and shutil.which("ip")):
        return ()
    return prefix if subprocess.run([*prefix, "true"], capture_output=True).returncode == 0 else ()


def prepare(home: Path, project: Path) -> None:
    """Makes `home` a user's who has answered the client's first questions, and `project` a git repository."""
    config = home / ".claude"
    config.mkdir(parents=True)
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }
    (config / ".claude.json").write_text(json.dumps(state))
    trust(home, project)
    project.mkdir(parents=True)
    identity = ["-c", "user.name=A Person", "-c", "user.email=person@example.org"]
    for step in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "Start"]):
        subprocess.run(["git", *identity, *step], cwd=project, check=True, env=environment(home))


def trust(home: Path, directory: Path) -> None:
    """Lets the client work in a directory without asking first."""
    path = home / ".claude" / ".claude.json"
    state = json.loads(path.read_text())
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    path.write_text(json.dumps({**state, "projects": {**state.get("projects", {}), str(directory): known}}))


def environment(home: Path) -> dict[str, str]:
    """The environment of a program that the user of `home` starts; nothing of the caller's but PATH."""
    quiet = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING",
             "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")  # fmt: skip
    return {
        "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude"), "PATH": os.environ["PATH"],
        "TERM": "xterm-256color", "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1", "ANTHROPIC_API_KEY": KEY,
        **dict.fromkeys(quiet, "1"),
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """One run of the client: how it ended, what it printed and every request it made, oldest first."""

    exit_code: int | None
    stdout: str
    stderr: str
    main: list[dict[str, Any]]
    others: list[dict[str, Any]]

    @property
    def stream(self) -> list[dict[str, Any]]:
        """The JSON messages that the client printed."""
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def answer(self) -> dict[str, Any]:
        """The last of them: `session_id`, `result`, `is_error`, ..."""
        return next(message for message in reversed(self.stream) if message["type"] == "result")

    @property
    def session_id(self) -> str:
        """The session that this run began or went on with."""
        return str(self.answer["session_id"])

    def hook_failures(self) -> list[Any]:
        """What the client says about hooks that did not fare well; a client tells no more than SessionStart and
        SessionEnd this way, the rest only in its transcript, and 2.0 nowhere."""
        told = [message for message in self.stream if message.get("subtype") == "hook_response"]
        failed: list[Any] = [message for message in told if message.get("exit_code") or message.get("stderr")]
        return failed + [line for line in self.stderr.splitlines() if "hook" in line]


class Running:
    """A client that runs; `finish` it, or `end` it."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self._process = process
        self._folder = folder

    def requests(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of the requests of `kind` that have arrived so far."""
        return [json.loads(path.read_text()) for path in sorted((self._folder / "api").glob(f"*-{kind}.json"))]

    def wait_for_request(self, number: int) -> dict[str, Any]:
        """The `number`-th main request (from 1), as soon as it has arrived."""
        limit = time.monotonic() + CLIENT_LIMIT_S
        while len(found := self.requests("main")) < number:
            assert self._process.poll() is None, f"the client ended before request {number}: {self.finish()}"
            assert time.monotonic() < limit, f"request {number} never came"
            time.sleep(0.02)
        return found[number - 1]

    def finish(self) -> Finished:
        """Waits for the client's end."""
        self._process.wait(timeout=CLIENT_LIMIT_S + 30)
        result = self._folder / "exit_code"
        trouble = (self._folder / "runner").read_text()
        assert result.exists(), f"the run did not happen: {trouble}"
        return Finished(
            exit_code=json.loads(result.read_text()),
            stdout=(self._folder / "stdout").read_text(),
            stderr=(self._folder / "stderr").read_text() + trouble,
            main=self.requests("main"),
            others=self.requests("other"),
        )

    def end(self) -> None:
        """Makes sure that nothing of the run is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=30)


def start(
    command: Sequence[str], *, folder: Path, cwd: Path, home: Path, prompt: str,
    replies: Sequence[str | dict[str, Any]], options: Sequence[str] = (), env: Mapping[str, str] | None = None,
) -> Running:  # fmt: skip
    """Starts the client with `-p PROMPT` in a new `folder`, its API beside it answering with `replies`."""
    folder.mkdir(parents=True)
    arguments = ["-p", prompt, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash", *options]
    isolation = namespace()
    # where no namespace is to be had, anything but the scripted API is sent to a port that refuses
    nowhere = {} if isolation else {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    spec = {
        "argv": [*command, *arguments],
        "cwd": str(cwd),
        "env": {**environment(home), **nowhere, "NO_PROXY": "127.0.0.1", **(env or {})},
        "scenario": {"prompt": prompt, "replies": list(replies), "log": str(folder / "api")},
        "folder": str(folder),
    }
    (folder / "spec.json").write_text(json.dumps(spec))
    with (folder / "runner").open("wb") as trouble:
        argv = [*isolation, sys.executable, __file__, "inside", str(folder / "spec.json")]
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=trouble, stderr=trouble, start_new_session=True
        )
    return Running(process, folder)


def inside(spec: dict[str, Any]) -> None:
    """One run: the scripted API and the client in one network namespace; leaves stdout, stderr and exit_code."""
    import scripted_api  # beside this file, which runs as a script here

    folder = Path(spec["folder"])
    port = scripted_api.serve(spec["scenario"]).server_address[1]
    env = {**spec["env"], "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        try:
            code: int | None = subprocess.run(
                spec["argv"], cwd=spec["cwd"], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                timeout=CLIENT_LIMIT_S,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = None
    (folder / "exit_code").write_text(json.dumps(code))


def transcripts(home: Path) -> Iterator[dict[str, Any]]:
    """Every line of every transcript under `home`, file by file."""
    for path in sorted((home / ".claude" / "projects").rglob("*.jsonl")):
        yield from (json.loads(line) for line in path.read_text().splitlines())


def hook_failures(home: Path) -> list[dict[str, Any]]:
    """The transcript lines that tell of a hook that failed, was cancelled, blocked, or that spoke at Stop."""
    found = []
    for line in transcripts(home):
        kind = (line.get("attachment") or {}).get("type", "")
        if kind.startswith("hook_") and kind not in HOOK_FARED_WELL:
            found.append(line)
        if line.get("subtype") == "stop_hook_summary" and any(line.get(key) for key in STOP_MUST_NOT):
            found.append(line)
    return found


def in_order(run: Finished, replies: int, home: Path) -> Finished:
    """`run`, after a look at whether the hooks left it alone: the script was followed and nobody complains."""
    from e2e import scripted_api  # this file runs as a script as well

    assert run.exit_code == 0, run
    assert len(run.main) == replies, [scripted_api.seen_by_model(body)[-500:] for body in run.main]
    assert (run.hook_failures(), hook_failures(home)) == ([], [])
    assert not any("Stop hook feedback" in scripted_api.seen_by_model(body) for body in run.main)
    return run


def main(arguments: list[str]) -> int:
    """The command line: see the module's docstring."""
    match arguments:
        case ["install", where]:
            for version in VERSIONS:
                print(version, *install(version, Path(where).absolute()))
            return 0
        case ["inside", spec]:
            inside(json.loads(Path(spec).read_text()))
            return 0
    print("usage: client.py install DIRECTORY", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
