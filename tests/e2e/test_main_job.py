"""The main job, on the real client: what a developer says in one session is there when the next one opens.

The hooks are those that `csmd install` registers. A recording hook of somebody else's stands beside them
from the start: it is an independent witness of the events, as the transcripts are of the conversation.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from e2e import scripted_api
from e2e.hosts import claude_code
from e2e.hosts.claude_code import in_order
from terminal import Terminal

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Recorder, Sandbox

pytestmark = pytest.mark.e2e

EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd")
#: Sessions that may start in a row before one is answered in time.
BUSY = 3
ADDED_TO_PROMPT = ("UserPromptSubmit hook additional context", "UserPromptSubmit hook success")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A prompt of session one, the words that only it has, their gate, and the assistant's answer."""

    prompt: str
    words: str
    gate: str
    outcome: str


PREFERENCE = Said(
    prompt="Clean up how tools/export.py joins its file names, and I prefer pathlib over os.path in this code.",
    words="pathlib over os.path",
    gate="behavioral",
    outcome="The export script joins its file names in one place now, and its tests pass.",
)
CORRECTION = Said(
    prompt="no, that's wrong: the config key is database_url, not db_url",
    words="database_url, not db_url",
    gate="correction",
    outcome="I renamed the key in the loader and in the sample configuration.",
)
DECISION = Said(
    prompt="Good. For the worker, let's go with Postgres for the job queue because we need LISTEN/NOTIFY.",
    words="LISTEN/NOTIFY",
    gate="epistemic",
    outcome="The queue's first migration is written.",
)
SAID = (PREFERENCE, CORRECTION, DECISION)


#: Each client is seen with a daemon that is there and with one that is not; the whole round of both is not needed.
NEW_ONLY, OLD_ONLY = (
    pytest.mark.parametrize("claude_build", [version], indirect=True) for version in claude_code.VERSIONS
)


def work(prompt: Said, **last: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The replies to one prompt: a command that is run, then the outcome."""
    call = {"text": "I will look first.", "tool": "Bash", "input": {"command": "echo looked", "description": "Look"}}
    return call, {"text": prompt.outcome, **last}


def set_up(sandbox: Sandbox, csmd: Csmd, recorder: Recorder) -> None:
    """Installs csmd for a user who has hooks of their own already."""
    sandbox.write_settings({"hooks": recorder.settings(*EVENTS)})
    csmd("install", "--json")
    assert all(len(csmd.hook_commands(event)) == 1 for event in EVENTS), sandbox.settings_file.read_text()


def kill_daemon(csmd: Csmd) -> None:
    """Kills the daemon as a crash or the kernel would, and waits until it is gone."""
    pid = csmd("status", "--json")["daemon"]["pid"]
    process = psutil.Process(pid)
    os.kill(pid, signal.SIGKILL)
    psutil.wait_procs([process], timeout=10)
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def turns_on_disk(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """The conversation as the transcripts have it, counted without csmd: line by uuid; without 2.0's warm-up agents."""
    lines = claude_code.transcripts(sandbox.home)
    spoken = [line for line in lines if line["type"] in ("user", "assistant") and not line.get("isMeta")]
    warming = {line.get("agentId") for line in spoken if line["message"]["content"] == "Warmup"} - {None}
    return {line["uuid"]: line for line in spoken if line.get("agentId") not in warming}


def uuid_of(prompt: str, turns: dict[str, dict[str, Any]]) -> str:
    """The one line in which the user says `prompt`."""
    uuids = [key for key, line in turns.items() if line["message"]["content"] == prompt]
    assert len(uuids) == 1, (prompt, uuids)
    return uuids[0]


def the_only(wanted: Said, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The one of `rows` that holds what was said."""
    matching = [row for row in rows if wanted.words in row["text"]]
    assert len(matching) == 1, (wanted.words, rows)
    return matching[0]


def events_told(recorder: Recorder) -> tuple[int, int]:
    """Least and most events that csmd can have: the warm-up agents of 2.0 may be cut off, and have no type."""
    counts = {event: len(recorder.seen(event)) for event in EVENTS}
    return sum(counts.values()) - counts["SubagentStop"], sum(counts.values())


def assert_everything_is_stored_once(sandbox: Sandbox, csmd: Csmd, recorder: Recorder) -> None:
    """Turns, events and memories against what the transcripts and the witness have."""
    turns = turns_on_disk(sandbox)
    status = csmd("status", "--json")
    assert status["counts"]["turns"] == len(turns), (status, sorted(turns))
    assert status["counts"]["provisional"] == 0, status
    own = {line["sessionId"] for line in turns.values() if not line.get("isSidechain")}
    assert status["counts"]["sessions"] == len(own), status
    assert status["counts"]["projects"] == 1, status
    assert status["spool"]["files"] == 0, status
    least, most = events_told(recorder)
    assert least <= status["counts"]["events"] <= most, (status, least, most)

    memories = csmd("memories", "--project", str(sandbox.project), "--json")["memories"]
    for each in SAID:
        uuid = uuid_of(each.prompt, turns)
        memory = the_only(each, memories)
        # What a program hands to the client (`-p`, as here) nobody is known to have typed.
        relayed = "origin" not in turns[uuid]
        assert (memory["authority"], memory["superseded_by"] or "") == ("assistant" if relayed else "user", ""), memory
        # Before its own line came, the queue may have told it as the user's.
        gates = {each.gate, "epistemic"} if relayed and each.gate == "correction" else {each.gate}
        assert memory["gate"] in gates, memory
        assert uuid in memory["source_uuids"], (uuid, memory)
        hits = csmd("search", each.words, "--project", str(sandbox.project), "--kind", "turn", "--json")["hits"]
        assert the_only(each, hits)["source_uuids"][0] == uuid, (uuid, hits)


def assert_sync_changes_nothing(sandbox: Sandbox, csmd: Csmd) -> None:
    def everything() -> tuple[Any, Any]:
        counts = csmd("status", "--json")["counts"]
        return counts, csmd("memories", "--all-projects", "--json")["memories"]

    before = everything()
    csmd("sync", "--json")
    assert everything() == before


def assert_the_next_session_knows(sandbox: Sandbox, csmd: Csmd, claude: Client) -> None:
    """A fresh session's first request carries the three statements once a person pinned them, each once, as `csmd brief` foretells.

    Its start brings them, or where that had no answer in time its prompt; a session that a busy machine told nothing at
    all has no receipt, and the next is asked.
    """
    # With `-p` a program runs the client: what it hands over is told at no start until a person makes it theirs.
    for memory in csmd("memories", "--all-projects", "--json")["memories"]:
        if any(each.words in memory["text"] for each in SAID):
            typed = Terminal("pin", memory["id"], cwd=sandbox.project, environment=sandbox.environment())
            assert typed.ends() == 0, typed.said
    brief = csmd("brief", "--project", str(sandbox.project), "--json")["text"]
    for _ in range(BUSY):
        run = in_order(claude.run("Please start on the worker of the job queue.", "Started."), 1, sandbox.home)
        seen = scripted_api.seen_by_model(run.main[0])
        if "<csmd-memory" in seen:
            break
        csmd("sync", "--json")
        assert csmd("tool", "csm_receipts", "--param", f"session={run.session_id}", "--json")["receipts"] == []
    assert {each.words: seen.count(each.words) for each in SAID} == {each.words: 1 for each in SAID}, brief
    assert brief.strip() in seen
    assert "SessionStart hook additional context" in seen or ADDED_TO_PROMPT[0] in seen


def assert_hooks_are_harmless(csmd: Csmd, recorder: Recorder) -> None:
    """The registered commands, given what the client gave the witness: exit 0, no complaint, silent where they must."""
    for event in EVENTS:
        for payload in recorder.seen(event)[:1]:
            done = csmd.hook(event, payload)
            assert (done.returncode, done.stderr) == (0, b""), (event, done)
            assert event in ("SessionStart", "UserPromptSubmit", "PreCompact") or done.stdout == b"", (event, done)


def assert_nothing_is_lost(sandbox: Sandbox, csmd: Csmd, claude: Client, recorder: Recorder) -> None:
    """Starts the daemon again: every turn is stored once, and the next session knows what was said."""
    csmd("start")
    csmd("sync", "--json")
    assert_everything_is_stored_once(sandbox, csmd, recorder)
    assert_the_next_session_knows(sandbox, csmd, claude)
    csmd("sync", "--json")
    assert_everything_is_stored_once(sandbox, csmd, recorder)
    assert_sync_changes_nothing(sandbox, csmd)


@pytest.mark.invariant("A session is told once what bears on it, and nothing else")
@pytest.mark.invariant(
    "Every turn is stored once, from hook and transcript, after any replay; what csmd injected is not taken for news"
)
def test_statements_of_one_session_reach_the_next(
    sandbox: Sandbox, csmd: Csmd, claude: Client, recorder: Recorder
) -> None:
    claude.servers = True
    set_up(sandbox, csmd, recorder)
    if "CSMD_TEST_MODEL" in os.environ:
        csmd("model", "add", os.environ["CSMD_TEST_MODEL"])
    first = in_order(claude.run(PREFERENCE.prompt, *work(PREFERENCE)), 2, sandbox.home)
    assert "hook additional context" not in scripted_api.seen_by_model(first.main[0]), "nothing was known yet"
    for each in (CORRECTION, DECISION):
        in_order(claude.run(each.prompt, *work(each), options=["--resume", first.session_id]), 2, sandbox.home)

    csmd("sync", "--json")
    assert_everything_is_stored_once(sandbox, csmd, recorder)
    assert_the_next_session_knows(sandbox, csmd, claude)
    unrelated = in_order(claude.run("What is the capital of France?", "Paris."), 1, sandbox.home)
    assert not any(mark in scripted_api.seen_by_model(unrelated.main[0]) for mark in ADDED_TO_PROMPT)

    csmd("sync", "--json")
    assert_everything_is_stored_once(sandbox, csmd, recorder)  # what csmd said itself was not taken for news
    assert_sync_changes_nothing(sandbox, csmd)
    assert_hooks_are_harmless(csmd, recorder)
    csmd("stop")
    assert_hooks_are_harmless(csmd, recorder)


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
@OLD_ONLY
@pytest.mark.long
def test_a_daemon_killed_between_and_during_turns_loses_nothing(
    sandbox: Sandbox, csmd: Csmd, claude: Client, recorder: Recorder
) -> None:
    set_up(sandbox, csmd, recorder)
    first = in_order(claude.run(PREFERENCE.prompt, *work(PREFERENCE)), 2, sandbox.home)
    resumed = ["--resume", first.session_id]
    kill_daemon(csmd)
    in_order(claude.run(CORRECTION.prompt, *work(CORRECTION), options=resumed), 2, sandbox.home)
    csmd("start")
    gate = sandbox.path / "gate"
    running = claude.start(DECISION.prompt, *work(DECISION, hold=str(gate)), options=resumed)
    running.wait_for_request(2)
    kill_daemon(csmd)
    gate.touch()
    in_order(running.finish(), 2, sandbox.home)

    assert_nothing_is_lost(sandbox, csmd, claude, recorder)


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
@NEW_ONLY
def test_a_daemon_that_is_down_for_a_whole_session_loses_nothing(
    sandbox: Sandbox, csmd: Csmd, claude: Client, recorder: Recorder
) -> None:
    set_up(sandbox, csmd, recorder)
    csmd("stop")
    options: list[str] = []
    for each in SAID:
        run = in_order(claude.run(each.prompt, *work(each), options=options), 2, sandbox.home)
        assert "hook additional context" not in scripted_api.seen_by_model(run.main[0])
        options = ["--resume", run.session_id]
    waiting = [path for path in (sandbox.csmd_home / "spool").iterdir() if path.is_file()]
    least, most = events_told(recorder)
    assert least <= len(waiting) <= most, waiting

    assert_nothing_is_lost(sandbox, csmd, claude, recorder)
