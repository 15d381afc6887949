"""A compaction on the real client is survived: the next request carries what the session stood at, and once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from e2e import scripted_api
from e2e.hosts import claude_code
from machine import eventually

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e

NEW, _ = claude_code.VERSIONS
PROMPT = "Please fix the date parser in dates.py, it loses the time zone of naive strings."
GOAL = "Ship the date parser with time zones"
#: The client compacts when a message was made from more tokens than this.
OPTIONS = ("--model", "claude-sonnet-4-5", "--autocompact", "100000")


@pytest.mark.parametrize("claude_build", [NEW], indirect=True)
def test_after_a_compaction_the_next_request_carries_what_the_session_stood_at(
    claude: Client, csmd: Csmd, sandbox: Sandbox
) -> None:
    csmd("install")
    gate = sandbox.path / "gate"
    command = {"command": "make check", "description": "Check"}
    running = claude.start(
        PROMPT,
        {"text": "I will run the checks first.", "tool": "Bash", "input": command},
        {"text": "Once more.", "tool": "Bash", "input": command, "context": 195_000},
        {"text": f"<analysis>x</analysis>\n<summary>\nAsked: {PROMPT}\n</summary>", "hold": str(gate)},
        "It goes on.",
        options=OPTIONS,
    )
    running.wait_for_request(3)  # the summary: PreCompact has been answered
    (begun,) = eventually(lambda: csmd("checkpoint", "list", "--json")["checkpoints"])
    # A summary takes a minute, in which the transcript is read; here it takes no time.
    eventually(lambda: "make check" in _pieces(csmd("checkpoint", "show", begun["id"], "--json")))
    csmd("goal", "set", GOAL, "--session", begun["session_id"])
    gate.touch()
    run = running.finish()
    assert (run.exit_code, claude_code.reported_failures(run), claude_code.hook_failures(sandbox.home)) == (0, [], [])

    before, after = (scripted_api.seen_by_model(body) for body in run.main[2:4])
    assert "Additional Instructions:\nKeep in the summary: what the user asked for" in before
    checkpoint = after.partition("<csmd-checkpoint ")[2].partition("</csmd-checkpoint>")[0]
    assert after.count("</csmd-checkpoint>") == 1, after
    for words in (begun["id"], f"- {GOAL} (", ", the assistant's)", f"- {PROMPT}", "- `make check`"):
        assert words in checkpoint, (words, checkpoint)

    csmd("sync", "--no-vectors")
    (made,) = csmd("checkpoint", "list", "--json")["checkpoints"]
    assert made["id"] == begun["id"] and made["summary_uuid"] and made["whole"]
    parts = csmd("checkpoint", "show", begun["id"], "--raw", "--json")
    assert PROMPT in [turn["text"] for turn in parts["raw"]]
    resumed = claude.run("And now the exporter.", "Done.", options=("--resume", run.session_id))
    seen = scripted_api.seen_by_model(resumed.main[0])
    assert seen.count("</csmd-checkpoint>") == 1, "what the resumed session holds is not told to it again"
    fences = re.findall(r"<csmd-[a-z]+ note=.*?</csmd-[a-z]+>", seen, re.DOTALL)
    notes = [line for fence in fences for line in fence.splitlines() if line.startswith("- ")]
    assert notes and len(set(notes)) == len(notes), "nothing is told twice on resume"


def _pieces(checkpoint: dict[str, Any]) -> list[str]:
    return [part["text"] for part in checkpoint["parts"]]
