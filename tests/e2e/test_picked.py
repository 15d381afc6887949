"""What the user takes of a question that the assistant asks, in a terminal of the real client, arrives in the next session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from e2e import scripted_api
from e2e.hosts import claude_code
from e2e.screen import converse
from e2e.test_alarm import latest_only

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e

PROMPT = "Give the mailer a queue."
QUESTION = "Which queue should the mailer use?"
PICKED, OTHER = "A table in Postgres", "A Redis stream"
OUTCOME = "The mailer reads its queue now."
ASKS = {
    "text": "I need to know one thing.",
    "tool": "AskUserQuestion",
    "input": {
        "questions": [
            {
                "question": QUESTION,
                "header": "Queue",
                "multiSelect": False,
                "options": [
                    {"label": PICKED, "description": "Nothing new to run."},
                    {"label": OTHER, "description": "One more service."},
                ],
            }
        ]
    },
}


@latest_only
def test_what_was_picked_in_a_terminal_is_told_at_the_next_start(sandbox: Sandbox, csmd: Csmd, claude: Client) -> None:
    csmd("install", "--json")
    converse(claude, PROMPT, ASKS, OUTCOME, typed=[(QUESTION, "\r")])
    csmd("sync", "--json")

    seen = scripted_api.seen_by_model(claude.run("Go on with the mailer.", "Done.").main[0])
    (line,) = [line for line in seen.splitlines() if QUESTION in line]
    assert PICKED in line and OTHER not in line, seen
    assert claude_code.hook_failures(sandbox.home) == []
