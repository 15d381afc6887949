"""Each assistant, run for real: what is said in its sessions is stored once, and reaches the next session of any other."""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from e2e import client, scripted_api
from e2e.test_main_job import BUSY, kill_daemon
from terminal import Terminal

if TYPE_CHECKING:
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e

HOSTS = list(dict.fromkeys(driver.host for driver in client.drivers()))
SLOW = {driver.host for driver in client.drivers() if driver.is_slow}
ONCE = [pytest.param(host, marks=[pytest.mark.long] if host in SLOW else []) for host in HOSTS]
StartClient = Callable[[str], client.Client]

DECIDED = "Let's round fares to five cents in the ticket printer, because the coins below that are gone."
WORDS = "round fares to five cents"
DONE = "The ticket printer rounds fares now, and its tests pass."
MORE = "And print the date on the ticket printer's receipts in the long form."
MORE_DONE = "The receipts of the ticket printer carry the long date."
NEXT = "Please go on with the fares of the ticket printer."


def work(made: client.Client, outcome: str, **last: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The replies to one prompt: a command that is run, then the outcome."""
    return {"text": "I will look first.", **made.driver.shell("echo looked")}, {"text": outcome, **last}


def in_order(run: client.Finished, requests: int) -> client.Finished:
    """`run`, which followed its script to the end."""
    assert run.exit_code == 0, run
    assert len(run.main) == requests, [scripted_api.seen_by_model(body)[-500:] for body in run.main]
    assert run.session_id, run
    return run


def resumed(made: client.Client, first: client.Finished) -> str:
    """The session to go on with; a new one ("") where this assistant cannot resume without a person."""
    return "" if made.driver.no_resume else first.session_id


def assert_stored_once(csmd: Csmd) -> None:
    """The two prompts and their outcomes stand once in the store, and no other prompt; also when all is read again."""
    for _ in range(2):
        csmd("sync", "--json")
        sessions = csmd("session", "list", "--json")["sessions"]
        shown = [csmd("session", "transcript", row["id"], "--json")["conversation"] for row in sessions]
        stored = [(turn["kind"], turn["text"]) for conversation in shown for turn in conversation]
        prompts = sorted(text for kind, text in stored if kind in ("user", "relayed"))
        outcomes = sorted(text for kind, text in stored if kind == "assistant" and text in (DONE, MORE_DONE))
        assert (prompts, outcomes) == (sorted((DECIDED, MORE)), sorted((DONE, MORE_DONE))), stored


@pytest.mark.parametrize("host", ONCE)
def test_a_session_is_stored_once_and_goes_on_when_it_is_resumed(
    host: str, sandbox: Sandbox, csmd: Csmd, start_client: StartClient
) -> None:
    made = start_client(host)
    csmd("install", "--host", host, "--json")
    first = in_order(made.run(DECIDED, *work(made, DONE)), 2)
    assert "looked" in scripted_api.seen_by_model(first.main[1]).replace("echo looked", "")
    again = in_order(made.run(MORE, *work(made, MORE_DONE), session=resumed(made, first)), 2)
    if not made.driver.no_resume:
        assert (again.session_id, DONE in scripted_api.seen_by_model(again.main[0])) == (first.session_id, True)
    assert_stored_once(csmd)


def tell(sandbox: Sandbox, csmd: Csmd) -> None:
    """A person makes theirs what a program handed to an assistant: then it is told at a session's start."""
    for memory in csmd("memories", "--json")["memories"]:
        if WORDS in memory["text"] and memory["authority"] != "user":
            typed = Terminal("pin", memory["id"], cwd=sandbox.project, environment=sandbox.environment())
            assert typed.ends() == 0, typed.said


@pytest.mark.invariant("One project, one memory, whatever the assistant")
@pytest.mark.parametrize(
    ("host", "other"),
    [
        pytest.param(host, other, marks=[] if (host, other) == ("claude", "codex") else [pytest.mark.long])
        for host, other in itertools.permutations(HOSTS, 2)
    ],
)
def test_what_is_decided_under_one_assistant_is_told_by_another(
    host: str, other: str, sandbox: Sandbox, csmd: Csmd, start_client: StartClient
) -> None:
    first, second = start_client(host), start_client(other)
    csmd("install", "--host", host, "--host", other, "--json")
    in_order(first.run(DECIDED, *work(first, DONE)), 2)
    csmd("sync", "--json")
    tell(sandbox, csmd)
    for _ in range(BUSY):
        # Gemini CLI writes what hooks say without tags.
        seen = html.unescape(scripted_api.seen_by_model(in_order(second.run(NEXT, "I go on."), 1).main[0]))
        if "<csmd-" in seen:
            break
    assert WORDS in seen, seen


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.long
def test_a_daemon_that_is_killed_in_a_session_loses_nothing(
    host: str, sandbox: Sandbox, csmd: Csmd, start_client: StartClient
) -> None:
    made = start_client(host)
    csmd("install", "--host", host, "--json")
    gate = sandbox.path / "gate"
    running = made.start(DECIDED, *work(made, DONE, hold=str(gate)))
    running.wait_for_request(2)
    kill_daemon(csmd)
    gate.touch()
    first = in_order(running.finish(), 2)
    csmd("start")
    in_order(made.run(MORE, *work(made, MORE_DONE), session=resumed(made, first)), 2)
    assert_stored_once(csmd)


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.long
def test_a_daemon_that_is_down_for_a_session_loses_nothing(
    host: str, sandbox: Sandbox, csmd: Csmd, start_client: StartClient
) -> None:
    made = start_client(host)
    csmd("install", "--host", host, "--json")
    csmd("stop")
    first = in_order(made.run(DECIDED, *work(made, DONE)), 2)
    in_order(made.run(MORE, *work(made, MORE_DONE), session=resumed(made, first)), 2)
    csmd("start")
    assert_stored_once(csmd)


#: Host -> what it calls a tool of csmd's memory server.
TOOL_NAMES = {"copilot": "csmd-{}", "gemini": "mcp_csmd_{}", "qwen": "mcp__csmd__{}"}
KEPT = "The heron exporter must run before the pelican one, because it makes the tables."


@pytest.mark.parametrize("host", [host for host in HOSTS if host in TOOL_NAMES])
@pytest.mark.long
def test_what_a_model_keeps_by_the_memory_server_it_finds_in_its_next_session(
    host: str, csmd: Csmd, start_client: StartClient
) -> None:
    made = start_client(host)
    made.servers = True
    csmd("install", "--host", host, "--json")
    csmd("mcp", "--install", host)

    def use(name: str, **arguments: str) -> dict[str, Any]:
        return {"text": "I will look.", "tool": TOOL_NAMES[host].format(name), "input": arguments}

    in_order(made.run("Mind the order of the exporters.", use("remember", text=KEPT), "Kept."), 2)
    run = in_order(made.run("What runs first?", use("search", query="heron exporter"), "The heron one."), 2)
    assert KEPT not in scripted_api.seen_by_model(run.main[0]), "nobody is told unasked what a model saved"
    assert KEPT in scripted_api.seen_by_model(run.main[1])
    csmd("sync", "--json")
    (memory,) = [row for row in csmd("memories", "--json")["memories"] if row["text"] == KEPT]
    assert memory["authority"] == "assistant"
    hits = csmd("search", "heron exporter", "--kind", "turn", "--json")["hits"]
    assert not [hit for hit in hits if "csmd-notes" in hit["text"]], "what csmd answered is not taken in again"
