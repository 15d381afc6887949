"""The embedding worker counts what is said, in the background and never by itself the reason that it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machine import Machine, eventually

from csmd.embedding import token_counter

OUTPUT = "".join(
    f"FAILED tests/test_{number}.py::test_case - AssertionError: {number * 7919}\n" for number in range(900)
)


def traffic(machine: Machine, name: str, said: str) -> list[dict[str, Any]]:
    call, answer = machine.line("assistant", "", uuid=f"call-{name}"), machine.line("user", "", uuid=f"result-{name}")
    call["message"]["content"] = [{"type": "tool_use", "id": name, "name": "Bash", "input": {"command": "make"}}]
    answer["message"]["content"] = [{"type": "tool_result", "tool_use_id": name, "content": said}]
    return [call, answer]


@pytest.fixture
def counting(machine: Machine, tiny_model: Path) -> Machine:
    machine.transcript(
        machine.line("user", "We always use tabs in this project.", uuid="said"), *traffic(machine, "long", OUTPUT),
        *traffic(machine, "short", "it passed"),
    )  # fmt: skip
    gone = machine.transcript(
        *[{**line, "sessionId": "gone"} for line in traffic(machine, "gone", OUTPUT)], session="gone"
    )
    machine.start()
    machine.sync()
    gone.unlink()
    assert machine.work("csm_model_add", path=str(tiny_model))["tokens"] == "counted", (
        "a package beside csmd brings the data"
    )
    return machine


def tokens_of(machine: Machine, session: str = "s1") -> dict[str, int]:
    return {turn["uuid"]: turn["tokens"] for turn in machine.call("csm_session_transcript", id=session)["conversation"]}


@pytest.mark.invariant(
    "Tokens of prompts, replies and tool results are counted by tiktoken in the background, trimmed ones whole"
)
def test_prompts_and_results_are_counted_and_what_was_trimmed_by_its_transcript(counting: Machine) -> None:
    found = eventually(lambda: all((known := tokens_of(counting)).values()) and known)
    count = token_counter.load(token_counter.ranks_file(counting.paths.models))
    assert count is not None
    assert found == {
        "said": count("We always use tabs in this project."), "call-long": 7, "result-long": count(OUTPUT),
        "call-short": 7, "result-short": count("it passed"),
    }  # fmt: skip
    report = eventually(lambda: (r := counting.call("csm_memory_compact"))["counted"] and r)
    rows = {row["id"]: row for row in report["compactions"]}
    assert rows["result-long"]["is_counted"] and rows["result-long"]["tokens_before"] == count(OUTPUT)
    # Of one whose transcript is gone what is kept is counted, and what is missing taken to be like it.
    gone = eventually(lambda: tokens_of(counting, "gone")["result-gone"])
    assert not rows["result-gone"]["is_counted"] and abs(gone / count(OUTPUT) - 1) < 0.03
    assert counting.call("csm_compaction_audit")["sound"]


@pytest.mark.long
def test_without_the_data_nothing_is_counted_and_compaction_is_estimated(machine: Machine, tiny_model: Path) -> None:
    machine.transcript(*traffic(machine, "long", OUTPUT))
    machine.start()
    machine.work("csm_model_add", path=str(tiny_model))
    token_counter.ranks_file(machine.paths.models).unlink()
    machine.sync()
    (row,) = machine.call("csm_memory_compact")["compactions"]
    assert not row["is_counted"] and row["tokens_before"] > row["tokens_after"] > 1000
    assert tokens_of(machine) == {"call-long": 7, "result-long": 0}
