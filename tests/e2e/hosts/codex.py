"""Codex."""

from __future__ import annotations

import json
from pathlib import Path

from e2e import client

KEY = "sk-not-a-key-it-only-has-the-shape-of-one"


def prepare(home: Path, project: Path, api: str) -> None:
    """The scripted API is the model's provider, the project is trusted, and nothing is asked."""
    config = home / ".codex"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(f"""model = "scripted-model"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{api}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects."{project}"]
trust_level = "trusted"
""")


def turn(prompt: str, session: str) -> list[str]:
    """`codex exec`; no person is there to trust the hooks."""
    run = ["exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "--json"]
    return [*run, "resume", session, prompt] if session else [*run, prompt]


def session_of(home: Path, stdout: str) -> str:
    """The thread that the client says it has started or goes on with."""
    events = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
    return next((str(event["thread_id"]) for event in events if event["type"] == "thread.started"), "")


DRIVERS = (
    client.Driver(
        host="codex", version="0.169.0", package="@openai/codex", program=".bin/codex", prepare=prepare,
        environment=lambda _home, _api: {"SCRIPTED_KEY": KEY}, turn=turn, session_of=session_of,
        shell=lambda line: {"tool": "exec_command", "input": {"cmd": line}},
    ),
)  # fmt: skip
