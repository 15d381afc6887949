"""The file of a live session says how far its plan is, where the user led it away, and in which modes it ran."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from machine import CORRECTION, Machine

from csmd.hosts.claude.transcript import REJECTED_PREFIX


def tool(machine: Machine, name: str, answer: str, **arguments: Any) -> list[dict[str, Any]]:
    call, result = machine.line("assistant", ""), machine.line("user", "")
    ident = f"t-{call['uuid']}"
    call["message"]["content"] = [{"type": "tool_use", "id": ident, "name": name, "input": arguments}]
    result["message"]["content"] = [{"type": "tool_result", "tool_use_id": ident, "content": answer}]
    del result["permissionMode"]
    return [call, result]


def prompt(machine: Machine, text: str, mode: str, **more: Any) -> dict[str, Any]:
    return {**machine.line("user", text), "permissionMode": mode, **more}


@pytest.mark.invariant(
    "A live session's file tells agents, progress, decisions, deviations and modes, and goes when it has ended"
)
def test_a_live_session_tells_its_progress_its_deviations_and_its_modes(machine: Machine) -> None:
    plan = [{"content": text, "status": status} for text, status in (("Read it", "completed"), ("Mend it", "pending"))]
    lines = [
        prompt(machine, "Mend the date parser, it loses the time zone.", "default"),
        *tool(machine, "TodoWrite", "Todos have been modified", todos=plan),
        *tool(machine, "Bash", f"{REJECTED_PREFIX}keep the folder", command="rm -rf build"),
        *tool(machine, "Bash", f"{REJECTED_PREFIX}not this one either", command="rm -rf dist"),
        prompt(machine, "Try the other parser.", "default", parentUuid="fork"),
        prompt(machine, CORRECTION, "plan", parentUuid="fork"),
        machine.line("assistant", "I use database_url now."),
        prompt(machine, "Go on with it, please.", "acceptEdits"),
    ]
    began = datetime.now(UTC) - timedelta(minutes=30)
    for number, line in enumerate(lines):
        line["timestamp"] = (
            (began + timedelta(seconds=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        )
    machine.transcript(*lines)
    machine.transcript(
        *[{**line, "isSidechain": True, "agentId": "ab1"} for line in lines[:1]], session="agent-ab1",
        folder=machine.assistant / "projects" / "-project" / "s1" / "subagents",
    )  # fmt: skip
    machine.start()
    machine.sync()
    page = yaml.safe_load((machine.paths.memory / "sessions" / "s1.yaml").read_text())
    assert page["progress"] == "1 of 2 done"
    assert page["deviations"] == [
        "the config key is database_url, not db_url",
        "rejected: Bash, 2 times",
        "rewound: 1 prompt",
    ]
    assert [entry.split()[-1] for entry in page["modes"]] == ["default", "plan", "acceptEdits"]
    assert page["agents"] == [{"id": "ab1", "turns": 1, "outcome": "unknown"}]
