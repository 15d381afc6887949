"""OpenCode, run for real: what its plugin puts before the model, and a compaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from e2e import client, scripted_api

if TYPE_CHECKING:
    from e2e.conftest import Csmd

pytestmark = [pytest.mark.e2e, pytest.mark.long]

DECIDED = "Let's round fares to five cents in the ticket printer, because the coins below that are gone."
ASKED = "How are fares rounded in the ticket printer, and why?"
DONE = "The ticket printer rounds fares now, and its tests pass."


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_what_a_prompt_is_told_stands_behind_it_and_is_nobodys_words(
    csmd: Csmd, start_client: Callable[[str], client.Client]
) -> None:
    made = start_client("opencode")
    csmd("install", "--host", "opencode", "--json")
    # So many tokens that OpenCode compacts the session at the end of the turn.
    assert made.run(DECIDED, {"text": DONE, "context": 99_500}).exit_code == 0
    csmd("sync", "--json")
    (body,) = made.run(ASKED, "To five cents.").main
    seen = scripted_api.seen_by_model(body)
    assert "<csmd-recall" in seen.partition(ASKED)[2], seen
    csmd("sync", "--json")
    sessions = csmd("session", "list", "--json")["sessions"]
    conversation, compacted = (csmd("session", "transcript", row["id"], "--json")["conversation"] for row in sessions)
    assert [turn["kind"] for turn in conversation] == ["relayed", "assistant"], conversation
    assert [turn["kind"] for turn in compacted][:3] == ["relayed", "assistant", "summary"], compacted
    assert not any(
        "csmd-recall" in turn["text"] or "Continue if you" in turn["text"] for turn in [*conversation, *compacted]
    )
