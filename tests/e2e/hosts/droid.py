"""Droid."""

from __future__ import annotations

import json
from pathlib import Path

from e2e import client

KEY = "not-a-key-it-only-has-the-place-of-one"


def prepare(home: Path, _project: Path, api: str) -> None:
    """The scripted API serves the one model, in settings that its user has commented."""
    config = home / ".factory"
    config.mkdir(parents=True)
    model = {
        "model": "scripted-model", "displayName": "scripted", "baseUrl": f"{api}/v1", "apiKey": KEY,
        "provider": "generic-chat-completion-api", "maxOutputTokens": 8000,
    }  # fmt: skip
    (config / "settings.json").write_text(f'{{\n  // mine\n  "customModels": {json.dumps([model])}\n}}\n')


def environment(_home: Path, _api: str) -> dict[str, str]:
    """A key that its service is not asked about where a model of one's own answers."""
    return {"FACTORY_API_KEY": "fk-not-a-key", "FACTORY_DISABLE_AUTO_UPDATE": "1"}


def turn(prompt: str, _session: str) -> list[str]:
    """`droid exec`, which asks for nothing."""
    return ["exec", "--auto", "high", "-m", "custom:scripted-model", prompt]


def session_of(home: Path, _stdout: str) -> str:
    """The session whose transcript was written last."""
    written = (home / ".factory" / "sessions").glob("*/*.jsonl")
    return max(written, key=lambda path: path.stat().st_mtime).stem


DRIVERS = (
    client.Driver(
        host="droid", version="0.215.0", package="droid", program=".bin/droid", prepare=prepare, environment=environment,
        turn=turn, session_of=session_of, no_resume="its sessions are resumed by its service alone",
        shell=lambda line: {
            "tool": "Execute", "input": {"command": line, "summary": "look", "riskLevel": "low", "riskLevelReason": "looks"},
        },
    ),
)  # fmt: skip
