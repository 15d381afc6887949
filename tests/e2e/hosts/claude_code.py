"""Claude Code."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from e2e import client, scripted_api

VERSIONS = ("2.1.329", "2.0.77")
SCOPE = "@anthropic-ai"
KEY = "sk-ant-not-a-key-it-only-has-the-shape-of-one"
#: Kinds of transcript lines that say how a hook fared well; any other `hook_*` line is a failure.
HOOK_FARED_WELL = {"hook_success", "hook_additional_context", "hook_system_message"}
#: What a `stop_hook_summary` line may not say about hooks that must stay silent.
STOP_MUST_NOT = ("hookErrors", "preventedContinuation", "hookAdditionalContext", "hasOutput")


def package_of(version: str) -> tuple[str, str, tuple[str, ...]]:
    """(npm package, its program, what runs the program): native builds are pinned by their platform's package."""
    if version.startswith("2.0."):
        return f"{SCOPE}/claude-code", "cli.js", ("node",)
    cpu = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    system = sys.platform if sys.platform != "linux" or platform.libc_ver()[0] else "linux-musl"
    build = f"linux-{cpu}-musl" if system == "linux-musl" else f"{system}-{cpu}"
    return f"{SCOPE}/claude-code-{build}", "claude", ()


def prepare(home: Path, project: Path, api: str) -> None:
    """The theme is chosen, the key approved and the project trusted."""
    config = home / ".claude"
    config.mkdir(parents=True)
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
    }
    (config / ".claude.json").write_text(json.dumps(state))
    trust(home, project)


def trust(home: Path, directory: Path) -> None:
    """Lets the client work in a directory without asking first."""
    path = home / ".claude" / ".claude.json"
    state = json.loads(path.read_text())
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    path.write_text(json.dumps({**state, "projects": {**state.get("projects", {}), str(directory): trusted}}))


def environment(home: Path, api: str) -> dict[str, str]:
    """The key, the API's address, and nothing sent anywhere else."""
    quiet = ("DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING",
             "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")  # fmt: skip
    return {
        "CLAUDE_CONFIG_DIR": str(home / ".claude"), "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": api,
        **dict.fromkeys(quiet, "1"),
    }  # fmt: skip


def turn(prompt: str, session: str) -> list[str]:
    """`claude -p`, which prints what it does as JSON."""
    resume = ["--resume", session] if session else []
    return ["-p", prompt, "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash", *resume]


def driver(version: str) -> client.Driver:
    """How a version is run."""
    package, program, runner = package_of(version)
    return client.Driver(
        host="claude", version=version, name=version, package=package, program=f"{package}/{program}", runner=runner,
        prepare=prepare, environment=environment, turn=turn,
        session_of=lambda _, stdout: str(answer_in(stdout).get("session_id", "")),
        shell=lambda line: {"tool": "Bash", "input": {"command": line, "description": "Look"}},
        without_servers=("--strict-mcp-config",),
    )  # fmt: skip


DRIVERS = tuple(driver(version) for version in VERSIONS)


# --- what else its runs tell


def answer_in(stdout: str) -> dict[str, Any]:
    """The last message that the client printed: `session_id`, `result`, `is_error`, ...; {} for none."""
    messages: list[dict[str, Any]] = [json.loads(line) for line in stdout.splitlines()]
    return next((message for message in reversed(messages) if message["type"] == "result"), {})


def reported_failures(run: client.Finished) -> list[Any]:
    """What the client says about hooks that did not fare well; a client tells no more than SessionStart and
    SessionEnd this way, the rest only in its transcript, and 2.0 nowhere."""
    responses = [message for message in run.stream if message.get("subtype") == "hook_response"]
    failed: list[Any] = [message for message in responses if message.get("exit_code") or message.get("stderr")]
    return failed + [line for line in run.stderr.splitlines() if "hook" in line]


def transcripts(home: Path) -> Iterator[dict[str, Any]]:
    """Every line of every transcript under `home`, file by file."""
    for path in sorted((home / ".claude" / "projects").rglob("*.jsonl")):
        yield from (json.loads(line) for line in path.read_text().splitlines())


def hook_failures(home: Path) -> list[dict[str, Any]]:
    """The transcript lines that tell of a hook that failed, was cancelled, blocked, or that spoke at Stop."""
    lines = []
    for line in transcripts(home):
        kind = (line.get("attachment") or {}).get("type", "")
        if kind.startswith("hook_") and kind not in HOOK_FARED_WELL:
            lines.append(line)
        if line.get("subtype") == "stop_hook_summary" and any(line.get(key) for key in STOP_MUST_NOT):
            lines.append(line)
    return lines


def in_order(run: client.Finished, replies: int, home: Path) -> client.Finished:
    """`run`, after a look at whether the hooks left it alone: the script was followed and nobody complains."""
    assert run.exit_code == 0, run
    assert len(run.main) == replies, [scripted_api.seen_by_model(body)[-500:] for body in run.main]
    assert (reported_failures(run), hook_failures(home)) == ([], [])
    assert not any("Stop hook feedback" in scripted_api.seen_by_model(body) for body in run.main)
    return run
