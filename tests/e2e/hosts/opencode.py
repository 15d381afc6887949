"""OpenCode, and Kilo, which is a fork of it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from e2e import client

KEY = "sk-not-a-key-it-only-has-the-shape-of-one"


def prepare(name: str, plugin: str, home: Path, _project: Path, api: str) -> None:
    """The scripted API is the model's provider, and nothing is asked or fetched."""
    config = home / ".config" / name
    (config / "node_modules").mkdir(parents=True)
    # With a plugin each start waits for the registry, which is out of reach, until the package for plugins is there.
    lock = {"lockfileVersion": 3, "packages": {"": {"dependencies": {plugin: "*"}}}}
    (config / "package-lock.json").write_text(json.dumps(lock))
    models = {"scripted-model": {"name": "scripted", "tool_call": True, "limit": {"context": 100_000, "output": 8000}}}
    options = {"baseURL": f"{api}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "scripted", "options": options, "models": models}
    settings = {
        "model": "scripted/scripted-model", "small_model": "scripted/scripted-model", "share": "disabled", "autoupdate": False,
        "permission": "allow", "provider": {"scripted": provider},
    }  # fmt: skip
    (config / f"{name}.json").write_text(json.dumps(settings))


def environment(prefix: str, _home: Path, _api: str) -> dict[str, str]:
    """No updates, no download of models or language servers, and nothing that is told to its makers."""
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "SESSION_INGEST")
    return {f"{prefix}_DISABLE_{what}": "1" for what in off} | {f"{prefix}_TELEMETRY_LEVEL": "off"}


def turn(prompt: str, session: str) -> list[str]:
    """`opencode run`."""
    return ["run", "--format", "json", *(["--session", session] if session else []), prompt]


def session_of(_home: Path, stdout: str) -> str:
    """The session that the events name which the client prints."""
    events = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
    return next((str(event["sessionID"]) for event in events if event.get("sessionID")), "")


def driver(name: str, version: str, package: str, program: str, plugin: str, *, is_slow: bool = False) -> client.Driver:
    """The driver of OpenCode or of its fork, whose names differ."""
    return client.Driver(
        host=name, version=version, package=package, program=program, prepare=partial(prepare, name, plugin),
        environment=partial(environment, name.upper()), turn=turn, session_of=session_of, is_slow=is_slow,
        shell=lambda line: {"tool": "bash", "input": {"command": line, "description": "A command"}},
    )  # fmt: skip


DRIVERS = (
    driver("opencode", "1.18.33", "opencode-linux-x64", "opencode-linux-x64/bin/opencode", "@opencode-ai/plugin"),
    driver(
        "kilo", "7.7.9", "@kilocode/cli-linux-x64", "@kilocode/cli-linux-x64/bin/kilo", "@kilocode/plugin", is_slow=True
    ),
)
