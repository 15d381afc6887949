"""A session whose transcript the client has deleted goes on from what csmd kept, on the real client."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from e2e import client, scripted_api

if TYPE_CHECKING:
    from e2e.conftest import Claude, Csmd, Sandbox

pytestmark = pytest.mark.e2e

QUESTION = "Which port does the staging gateway of the heron project listen on?"
ANSWER = "The heron gateway listens on port 7421 in staging."
NEXT = "And why did we choose that one?"


def looks(word: str, **more: str) -> dict[str, Any]:
    """A reply in which a command is run."""
    return {"text": f"I look for {word}.", "tool": "Bash", "input": {"command": f"echo found {word}", **more}}


def blocks(body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The blocks of one type in a request's messages."""
    contents = [message["content"] for message in body["messages"] if isinstance(message["content"], list)]
    return [block for content in contents for block in content if block.get("type") == kind]


def test_an_exported_session_is_resumed_by_the_client(sandbox: Sandbox, csmd: Csmd, claude: Claude) -> None:
    csmd("install", "--json")
    first = claude.run(QUESTION, looks("heron"), looks("gateway"), ANSWER)
    assert (first.exit_code, len(first.main)) == (0, 3), first
    csmd("sync", "--json")
    (transcript,) = (sandbox.home / ".claude" / "projects").rglob(f"{first.session_id}.jsonl")
    kept = transcript.read_text().splitlines()
    shutil.rmtree(transcript.parent)
    csmd("sync", "--json")

    (row,) = csmd("session", "list", "--project", str(sandbox.project), "--json")["sessions"]
    assert (row["id"], row["transcript"]) == (first.session_id, "gone")
    shown = csmd("session", "transcript", first.session_id[:8])
    assert "port 7421" in shown and "heron project" in shown

    counts = csmd("status", "--json")["counts"]
    target = sandbox.path / "exported.jsonl"
    told = csmd("session", "export", first.session_id[:8], "--to", str(target), "--json")
    assert told["session_id"] == first.session_id
    place = sandbox.home / ".claude" / told["place"]
    assert place.parent == transcript.parent, "the client looks for it where it was"
    place.parent.mkdir(parents=True)
    shutil.copy(target, place)
    csmd("sync", "--json")
    assert csmd("status", "--json")["counts"] == counts, "what comes back is known"

    again = claude.run(NEXT, "Because 7420 was taken.", options=["--resume", first.session_id])
    assert again.exit_code == 0, again
    (body,) = again.main
    said = scripted_api.seen_by_model(body)
    assert [said.count(text) for text in (QUESTION, "I look for heron.", "I look for gateway.", ANSWER, NEXT)] == [
        1
    ] * 5
    calls, results = blocks(body, "tool_use"), blocks(body, "tool_result")
    assert [call["id"] for call in calls] == [result["tool_use_id"] for result in results]
    assert [call["input"]["command"] for call in calls] == ["echo found heron", "echo found gateway"]
    assert ["found heron" in str(results[0]), "found gateway" in str(results[1])] == [True, True]
    assert again.session_id == first.session_id
    assert (len(kept) > 0, client.hook_failures(sandbox.home)) == (True, [])
