"""Qwen Code."""

from __future__ import annotations

import json
from pathlib import Path

from e2e import client

KEY = "sk-not-a-key-it-only-has-the-shape-of-one"


def prepare(home: Path, project: Path, api: str) -> None:
    """The key is the way to log in, folders are trusted, and its own memory asks no model."""
    config = home / ".qwen"
    config.mkdir(parents=True)
    settings = {
        "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
    }
    (config / "settings.json").write_text(json.dumps(settings, indent=2))


def environment(home: Path, api: str) -> dict[str, str]:
    """The key, the API's address, and no telemetry."""
    return {
        "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{api}/v1", "OPENAI_MODEL": "scripted-model",
        "QWEN_TELEMETRY_ENABLED": "false",
    }  # fmt: skip


def turn(prompt: str, session: str) -> list[str]:
    """`qwen -p`."""
    resume = ["--resume", session] if session else []
    return ["--yolo", *resume, "-p", prompt]


def session_of(home: Path, stdout: str) -> str:
    """The session of the transcript that was written last."""
    chats = sorted((home / ".qwen" / "projects").glob("*/chats/*.jsonl"), key=lambda path: path.stat().st_mtime)
    return chats[-1].stem if chats else ""


DRIVERS = (
    client.Driver(
        host="qwen", version="0.24.4", package="@qwen-code/qwen-code", program=".bin/qwen", prepare=prepare,
        environment=environment, turn=turn, session_of=session_of,
        shell=lambda line: {"tool": "run_shell_command", "input": {"command": line}},
        without_servers=("--allowed-mcp-server-names", "none"),
    ),
)  # fmt: skip
