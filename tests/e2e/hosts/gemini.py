"""Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path

from e2e import client

KEY = "not-a-key-it-only-stands-in-the-place-of-one"


def prepare(home: Path, project: Path, api: str) -> None:
    """The key is the way to log in, and nothing is sent anywhere else."""
    config = home / ".gemini"
    config.mkdir(parents=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
    }
    (config / "settings.json").write_text(json.dumps(settings, indent=2))


def environment(home: Path, api: str) -> dict[str, str]:
    """The key, the API's address, and trust in the project."""
    return {
        "GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": api, "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_TELEMETRY_ENABLED": "false",
    }  # fmt: skip


def turn(prompt: str, session: str) -> list[str]:
    """`gemini -p`."""
    resume = ["--resume", session] if session else []
    return ["-m", "gemini-2.5-flash", "--yolo", *resume, "-p", prompt]


def session_of(home: Path, stdout: str) -> str:
    """The session of the transcript that was written last."""
    chats = sorted((home / ".gemini" / "tmp").glob("*/chats/session-*.jsonl"), key=lambda path: path.stat().st_mtime)
    return str(json.loads(chats[-1].read_text().splitlines()[0])["sessionId"]) if chats else ""


DRIVERS = (
    client.Driver(
        host="gemini", version="0.61.0", package="@google/gemini-cli", program=".bin/gemini", prepare=prepare,
        environment=environment, turn=turn, session_of=session_of,
        shell=lambda line: {"tool": "run_shell_command", "input": {"command": line}},
        without_servers=("--allowed-mcp-server-names", "none"),
    ),
)  # fmt: skip
