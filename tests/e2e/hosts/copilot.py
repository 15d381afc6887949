"""Copilot CLI."""

from __future__ import annotations

import json
from pathlib import Path

from e2e import client

KEY = "not-a-key-it-only-has-the-place-of-one"


def prepare(home: Path, project: Path, _api: str) -> None:
    """The project is trusted."""
    config = home / ".copilot"
    config.mkdir(parents=True)
    (config / "config.json").write_text(json.dumps({"trustedFolders": [str(project)]}))


def environment(home: Path, api: str) -> dict[str, str]:
    """The scripted API is the model's provider, and nothing else is asked for.

    The program unpacks 235 MB of itself into the cache, which all runs share.
    """
    return {
        "XDG_CACHE_HOME": str(client.directory() / "copilot-cache"),
        "COPILOT_HOME": str(home / ".copilot"), "COPILOT_PROVIDER_BASE_URL": f"{api}/v1", "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_MODEL": "scripted-model", "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
    }  # fmt: skip


def turn(prompt: str, session: str) -> list[str]:
    """`copilot -p`, every tool allowed."""
    return ["--allow-all-tools", *(["--resume", session] if session else []), "-p", prompt]


def session_of(home: Path, _stdout: str) -> str:
    """The session whose transcript was written last."""
    written = (home / ".copilot" / "session-state").glob("*/events.jsonl")
    return max(written, key=lambda path: path.stat().st_mtime).parent.name


DRIVERS = (
    client.Driver(
        host="copilot", version="1.0.102", package="@github/copilot", program=".bin/copilot", prepare=prepare,
        environment=environment, turn=turn, session_of=session_of,
        shell=lambda line: {"tool": "bash", "input": {"command": line, "description": "look"}},
    ),
)  # fmt: skip
