"""A session whose transcript the client has deleted goes on from what csmd kept, on the real client."""

from __future__ import annotations

import itertools
import json
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from e2e import scripted_api
from e2e.hosts import claude_code

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

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


@pytest.mark.invariant(
    "An exported session is taken by the client, goes only where it was asked for, and reading it back brings nothing new"
)
def test_an_exported_session_is_resumed_by_the_client(sandbox: Sandbox, csmd: Csmd, claude: Client) -> None:
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
    exported = csmd("session", "export", first.session_id[:8], "--to", str(target), "--json")
    assert exported["session_id"] == first.session_id
    place = sandbox.home / ".claude" / exported["place"]
    assert place.parent == transcript.parent, "the client looks for it where it was"
    place.parent.mkdir(parents=True)
    shutil.copy(target, place)
    csmd("sync", "--json")
    assert csmd("status", "--json")["counts"] == counts, "what comes back is known"

    again = claude.run(NEXT, "Because 7420 was taken.", options=["--resume", first.session_id])
    assert again.exit_code == 0, again
    (body,) = again.main
    seen = scripted_api.seen_by_model(body)
    assert [seen.count(text) for text in (QUESTION, "I look for heron.", "I look for gateway.", ANSWER, NEXT)] == [
        1
    ] * 5
    calls, results = blocks(body, "tool_use"), blocks(body, "tool_result")
    assert [call["id"] for call in calls] == [result["tool_use_id"] for result in results]
    assert [call["input"]["command"] for call in calls] == ["echo found heron", "echo found gateway"]
    assert ["found heron" in str(results[0]), "found gateway" in str(results[1])] == [True, True]
    assert again.session_id == first.session_id
    assert (len(kept) > 0, claude_code.hook_failures(sandbox.home)) == (True, [])


def hard(session: str, cwd: str) -> list[dict[str, Any]]:
    """A transcript with what is hard to hand back: a compaction, calls made together, one trimmed, one unanswered."""
    clock, lines = itertools.count(), list[dict[str, Any]]()

    def add(kind: str, content: Any, message: str = "", **more: Any) -> None:
        message_body: dict[str, Any] = {"role": kind, "content": content}
        if kind == "assistant":
            message_body |= {"id": message, "type": "message", "model": "claude-sonnet-4-5-20250929"}
        parent = lines[-1]["uuid"] if lines else None
        lines.append({
            "type": kind, "uuid": str(uuid.uuid4()), "parentUuid": parent, "sessionId": session, "cwd": cwd, "message": message_body,
            "timestamp": f"2026-05-04T08:00:{next(clock):02d}.000Z", "version": "2.1.0", "isSidechain": False, **more,
        })  # fmt: skip

    def call(tool: str, message: str, command: str) -> None:
        block = {"type": "tool_use", "id": tool, "name": "Bash", "input": {"command": command}}
        add("assistant", [block], message)

    def answer(tool: str, text: str) -> None:
        add("user", [{"type": "tool_result", "tool_use_id": tool, "content": text}])

    add("user", "Before the compaction: the ibis.")
    add("assistant", [{"type": "text", "text": "The ibis is noted."}], "msg_1")
    add("user", "The summary says: a heron and an ibis.", isCompactSummary=True)
    add("user", "Look at both herons.")
    call("toolu_a", "msg_2", "echo grey")
    answer("toolu_a", "grey heron")
    call("toolu_b", "msg_2", "echo white")
    answer("toolu_b", "white heron")
    call("toolu_c", "msg_3", "echo " + "long " * 4000)
    answer("toolu_c", "a trimmed call's result")
    call("toolu_d", "msg_4", "sleep 999")
    add("user", "Never mind that one.")
    add("assistant", [{"type": "text", "text": "I leave it."}], "msg_5")
    return lines


def test_what_is_hard_to_hand_back_is_taken_by_the_client(sandbox: Sandbox, csmd: Csmd, claude: Client) -> None:
    session = str(uuid.uuid4())
    tree = sandbox.path / "tree" / "-p"
    tree.mkdir(parents=True)
    lines = hard(session, str(sandbox.project))
    (tree / f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    csmd("start", "--json")
    csmd("import", str(tree.parent), "--no-vectors", "--json")
    exported = csmd("session", "export", session, "--to", str(sandbox.path / "out.jsonl"), "--json")
    place = sandbox.home / ".claude" / exported["place"]
    place.parent.mkdir(parents=True)
    shutil.copy(sandbox.path / "out.jsonl", place)

    run = claude.run("What did you see?", "Two herons.", options=["--resume", session])
    assert run.exit_code == 0, run
    (body,) = run.main
    seen = scripted_api.seen_by_model(body)
    kept = ("The summary says: a heron and an ibis.", "Look at both herons.", "Never mind that one.", "I leave it.",
            "[a tool answered: a trimmed call's result]", "[called Bash: ")  # fmt: skip
    assert [text for text in kept if text not in seen] == []
    assert "Before the compaction" not in seen, "it goes on from the summary"
    assert [block["id"] for block in blocks(body, "tool_use")] == ["toolu_a", "toolu_b"]
    waiting: set[str] = set()
    for message in body["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        answered = {block["tool_use_id"] for block in content if block["type"] == "tool_result"}
        assert answered == waiting, body["messages"]
        waiting = {block["id"] for block in content if block["type"] == "tool_use"}
    assert waiting == set()
