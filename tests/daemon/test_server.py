"""The socket of a real daemon: every frame gets its answer, nobody's nonsense hurts the next, an ack means stored."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import zmq
from machine import PREFERENCE, Machine, ask, call_frames, event_frames, eventually, peer

from csmd import wire
from csmd.capture import project_identity
from csmd.daemon import injection
from csmd.daemon.context import PendingStarts, Task
from csmd.daemon.server import Server
from csmd.daemon.spool_replay import replay
from csmd.embedding.worker_client import Embedder
from csmd.exclusions import Excludes
from csmd.hosts.hook_payloads import EVENT_BY_HOOK
from csmd.store import activity, files, receipts
from csmd.store.core import QUEUE_LIMIT, Lane, Store

PAYLOAD = {"session_id": "s1", "cwd": "/p", "last_assistant_message": "It is done."}
FRAMES = event_frames("Stop", PAYLOAD, ident="e1")


@pytest.fixture(scope="module")
def daemon(shared_machine: Machine) -> Machine:
    """One daemon for the frames of this module."""
    shared_machine.start()
    return shared_machine


def changed(place: int, value: bytes) -> list[bytes]:
    return [value if number == place else frame for number, frame in enumerate(FRAMES)]


# --- frames


@pytest.mark.invariant("Whatever a peer sends, it is answered and the others are served")
@pytest.mark.parametrize(
    ("frames", "status", "what"),
    [
        ([b"x"], b"error", b"7 frames"),
        ([b""], b"error", b"7 frames"),
        (FRAMES[:6], b"error", b"7 frames"),
        ([os.urandom(40) for _ in range(7)], b"error", b"not as expected"),
        (changed(0, b"one"), b"error", b"not as expected"),
        (changed(0, b"2"), b"upgrade", b""),
        (changed(0, b"999999999"), b"upgrade", b""),
        (changed(1, b""), b"error", b"no id"),
        (changed(1, b"i" * 201), b"error", b"longer than"),
        (changed(2, b"sing"), b"error", b"unknown verb"),
        (changed(3, b"soon"), b"error", b"not as expected"),
        (changed(5, b"SomethingNew"), b"ok", b""),
        (changed(5, b"Stop\xff"), b"error", b"not as expected"),
        (call_frames("csm_nothing", {}), b"error", b"unknown tool"),
        (call_frames("csm_tools", []), b"error", b"not a JSON object"),
        (call_frames("csm_tools", b"{"), b"error", b"not JSON"),
        (call_frames("csm_tools", b"[" * 100_000), b"error", b"not JSON"),
        (call_frames("csm_job", {"id": "none"}), b"error", b"there is no job"),
        (call_frames("csm_memory_search", {"query": "x\ud800\0"}), b"ok", b"hits"),
        (call_frames("csm_tools", {}, deadline_ms=-5), b"error", b"no time"),
    ],
)
def test_whatever_is_sent_is_answered_and_the_next_is_served(
    daemon: Machine, frames: list[bytes], status: bytes, what: bytes
) -> None:
    answer = ask(daemon.socket, frames)
    assert answer[0] == status and what in answer[1], answer
    assert b"Traceback" not in answer[1]
    assert ask(daemon.socket, call_frames("csm_tools", {}))[0] == b"ok"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"{}", b'{"session_id":7}', b'{"session_id":""}']
)
def test_a_malformed_event_is_kept_out_noted_and_acknowledged(daemon: Machine, body: bytes) -> None:
    before = daemon.status()["counters"].get("bad events", 0)
    secret = body + b" sk-ant-REDACTED"
    for data in (body, secret):
        assert ask(daemon.socket, event_frames("Stop", data)) == [b"ok", b""]
    assert daemon.status()["counters"]["bad events"] == before + 2
    notes = [json.loads(path.read_text()) for path in daemon.paths.quarantine.iterdir()]
    assert any(note["bytes"] == len(secret) and note["source"] == "hook Stop" for note in notes)
    assert all(set(note) == {"at", "source", "offset", "bytes", "sha256", "reason"} for note in notes)
    assert "AAAA" not in json.dumps(notes)


def test_a_body_beyond_the_limit_ends_only_its_own_connection(daemon: Machine) -> None:
    with peer(daemon.socket) as dealer:
        dealer.send_multipart(event_frames("Stop", b" " * (wire.MAX_BODY_BYTES + 100_000)))
        assert ask(daemon.socket, call_frames("csm_tools", {}))[0] == b"ok"
        assert not dealer.poll(0)


def test_a_body_just_beyond_the_limit_is_told_so(daemon: Machine) -> None:
    status, body = ask(daemon.socket, event_frames("Stop", b" " * (wire.MAX_BODY_BYTES + 1)))
    assert (status, b"the limit is" in body) == (b"error", True)


def test_an_event_csmd_has_no_use_for_is_acknowledged_and_dropped(daemon: Machine) -> None:
    before = daemon.status()["counts"]["events"]
    assert daemon.event("PostToolUse", tool_name="Bash") == ("ok", b"")
    assert daemon.event("SubagentStop", agent_type="", last_assistant_message="x") == ("ok", b"")
    assert daemon.status()["counts"]["events"] == before


@pytest.mark.invariant("Whatever a peer sends, it is answered and the others are served")
def test_peers_that_speak_no_zmq_or_leave_early_do_no_harm(daemon: Machine) -> None:
    for words in (b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(300), b"\xff" * 10):
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(daemon.socket))
            rude.sendall(words)
    for number in range(20):
        with peer(daemon.socket) as dealer:  # gone before its answer
            dealer.setsockopt(zmq.LINGER, 1000)
            dealer.send_multipart(event_frames("Stop", {**PAYLOAD, "session_id": "left"}, ident=f"left{number}"))
    assert ask(daemon.socket, call_frames("csm_tools", {}))[0] == b"ok"


@pytest.mark.parametrize("kind", [zmq.ROUTER, zmq.PUSH, zmq.SUB])
def test_a_socket_of_another_kind_is_ignored(daemon: Machine, kind: int) -> None:
    with peer(daemon.socket, kind):
        assert ask(daemon.socket, call_frames("csm_tools", {}))[0] == b"ok"


def test_the_same_event_twice_is_stored_once(daemon: Machine) -> None:
    before = daemon.status()["counts"]
    for _ in range(3):
        assert daemon.event("UserPromptSubmit", "twice", ident="the-same", prompt="A prompt said once.") == ("ok", b"")
    after = daemon.status()["counts"]
    assert (after["events"], after["turns"]) == (before["events"] + 1, before["turns"] + 1)


# --- what is told


def told(machine: Machine) -> list[tuple[str, str, str, str, int, int]]:
    """The receipts, read from the database as a second program would."""
    import apsw

    connection = apsw.Connection(str(machine.paths.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        from csmd.store.sqlite import Rows

        found = receipts.list_receipts(Rows(connection), projects=None, limit=50)
        return [
            (one.receipt.id, one.receipt.session_id, one.receipt.event, one.receipt.at, one.receipt.tokens, one.items)
            for one in found
        ]
    finally:
        connection.close()


def injected(event: str, body: bytes) -> str:
    if not body:
        return ""
    output = json.loads(body)["hookSpecificOutput"]
    assert output["hookEventName"] == event
    return str(output["additionalContext"])


def test_a_session_is_told_once_and_again_after_its_context_was_compacted(machine: Machine) -> None:
    machine.conversation("old")
    machine.start()
    machine.sync()
    # Events of one session that follow each other within a millisecond have the same time.
    brief = machine.call("csm_memory_context", project=str(machine.project))["text"]
    assert "pathlib over os.path" in brief and "database_url" in brief

    def start(source: str) -> str:
        status, body = machine.event("SessionStart", "new", source=source)
        assert status == "ok"
        return injected("SessionStart", body)

    def prompt(words: str) -> str:
        status, body = machine.event("UserPromptSubmit", "new", prompt=words)
        assert status == "ok"
        return injected("UserPromptSubmit", body)

    assert start("startup") == brief
    assert prompt("Which config key is it, database_url or db_url?") == "", "it was told at the start"
    assert start("resume") == "", "a resumed session still has what it was told"
    assert start("compact") == brief
    assert start("resume") == ""
    assert start("clear") == brief
    found = told(machine)
    assert [(row[1], row[2]) for row in found] == [("new", "session_start")] * 3
    assert all(row[4] > 0 and row[5] == brief.count("\n- ") for row in found)


def test_a_prompt_gets_what_bears_on_it_and_only_that(machine: Machine) -> None:
    machine.conversation("old")
    machine.start()
    machine.sync()
    asked = "The worker cannot read the config: which key does it use for the database url?"
    answer = injected("UserPromptSubmit", machine.event("UserPromptSubmit", "new", prompt=asked)[1])
    expected = machine.call("csm_memory_recall", project=str(machine.project), prompt=asked)["text"]
    assert answer == expected and "database_url" in answer and answer.count("\n- ") < 3
    # A busy machine cuts an answer short, and what was told as a memory may come as talk once: never again after that.
    eventually(lambda: machine.event("UserPromptSubmit", "new", prompt=asked + " Tell me.") == ("ok", b""))
    assert machine.event("UserPromptSubmit", "new", prompt="What is the capital of France?") == ("ok", b"")
    assert machine.event("UserPromptSubmit", "other", prompt="/clear") == ("ok", b"")
    assert 1 <= len(told(machine)) <= 2


@pytest.mark.invariant(
    "A hook never hurts the session. It exits 0, is silent on stderr, prints only where it injects, and keeps its deadline, whatever the daemon, the disk or the input is like"
)
def test_only_the_injecting_events_are_ever_answered_with_words(machine: Machine) -> None:
    machine.conversation("old")
    machine.start()
    machine.sync()
    for event in EVENT_BY_HOOK:
        answer = machine.event(
            event,
            f"s-{event}",
            prompt="What is the config key called?",
            last_assistant_message=PREFERENCE,
            source="startup",
        )
        assert answer[0] == "ok"
        assert bool(answer[1]) == (event in ("SessionStart", "UserPromptSubmit", "PreCompact")), event


def test_the_hook_prints_what_the_daemon_answers(machine: Machine) -> None:
    machine.conversation("old")
    machine.start()
    machine.sync()
    brief = machine.call("csm_memory_context", project=str(machine.project))["text"]
    printed = machine.hook("SessionStart", "new", source="startup")
    assert injected("SessionStart", printed) == brief
    assert (machine.hook("Stop", "new", last_assistant_message="It is done."), machine.spooled()) == (b"", [])


def test_with_injection_switched_off_nothing_is_told_and_all_is_kept(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.config_file.write_text("stages: {inject: false}\n")
    machine.conversation("old")
    machine.start()
    machine.sync()
    assert machine.event("SessionStart", "new", source="startup") == ("ok", b"")
    assert machine.call("csm_memory_context", project=str(machine.project))["text"]
    assert told(machine) == []


# --- under load, in this process


def test_a_full_queue_of_writes_is_refused_and_reading_goes_on(parts: Any) -> None:
    server: Server = parts.serve()
    store: Store = parts.store
    go_on, begun = threading.Event(), threading.Event()

    def hold(rows: object) -> None:
        begun.set()
        go_on.wait(60)

    blocked = [store.submit(hold)]
    begun.wait(60)
    try:
        while True:
            blocked.append(store.submit(lambda rows: None))
    except Exception as error:  # noqa: BLE001 - its type is looked at
        assert type(error).__name__ == "Refused"
    assert len(blocked) >= QUEUE_LIMIT
    status, body = ask(server.path, event_frames("Stop", PAYLOAD))
    assert (status, b"waiting already" in body) == (b"refused", True)
    assert ask(server.path, event_frames("Stop", b"{"))[0] == b"refused", "nor is the bad event lost"
    assert ask(server.path, call_frames("csm_runtime_status", {}))[0] == b"ok"
    go_on.set()
    assert [future.result(60) for future in blocked][1:] == [None] * (len(blocked) - 1)
    assert ask(server.path, event_frames("Stop", PAYLOAD)) == [b"ok", b""]


def test_what_waits_for_a_write_when_the_server_stops_is_sent_back(parts: Any) -> None:
    server: Server = parts.serve()
    go_on, begun = threading.Event(), threading.Event()

    def hold(rows: object) -> None:
        begun.set()
        go_on.wait(60)

    held = parts.store.submit(hold)
    begun.wait(60)
    with peer(server.path) as dealer:
        dealer.send_multipart(event_frames("Stop", PAYLOAD, ident="late"))
        eventually(lambda: queued_writes(parts.store) == 1)
        server.stop()
        assert dealer.poll(30_000)
        assert dealer.recv_multipart() == [b"retry", b""]
    server.join(30)
    go_on.set()
    held.result(30)
    # It was committed all the same: the replay of what the hook kept is known by its id.
    eventually(lambda: parts.store.read(lambda rows: rows.value("select count(*) from events where id = 'late'")))


@pytest.mark.invariant("Readers cannot write, see one moment, end at their deadline, and never stand before a hook")
def test_a_long_question_on_one_reader_does_not_keep_the_hooks_waiting(parts: Any) -> None:
    server: Server = parts.serve()
    go_on, begun = threading.Event(), threading.Event()

    def hold(rows: object) -> None:
        begun.set()
        go_on.wait(60)

    held = parts.store.submit_read(hold, lane="main")
    begun.wait(60)
    with peer(server.path) as dealer:
        dealer.send_multipart(call_frames("csm_memory_list", {}))
        started = {**PAYLOAD, "source": "startup"}
        assert ask(server.path, event_frames("SessionStart", started)) == [b"ok", b""]
        assert ask(server.path, call_frames("csm_runtime_status", {}))[0] == b"ok"
        assert not dealer.poll(0)
        go_on.set()
        assert dealer.poll(30_000)
        assert dealer.recv_multipart()[0] == b"ok"
    held.result(30)


@contextlib.contextmanager
def holding(submit: Any) -> Iterator[None]:
    """Keeps one thread of the store inside a task while the block runs."""
    go_on, begun = threading.Event(), threading.Event()

    def hold(rows: object) -> None:
        begun.set()
        assert go_on.wait(60)

    held = submit(hold)
    assert begun.wait(60)
    try:
        yield
    finally:
        go_on.set()
        held.result(60)


@contextlib.contextmanager
def reader_held(store: Store, *lanes: Lane) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for lane in lanes:
            held.enter_context(holding(functools.partial(store.submit_read, lane=lane)))
        yield


def queued_writes(store: Store) -> int:
    return len(store._writes._tasks)


def knowing(parts: Any) -> Server:
    """A server with something to tell."""
    parts.machine.conversation("old")
    while parts.background.step(1000.0):
        pass
    server: Server = parts.serve()
    server.background.context.excludes = (
        Excludes()
    )  # nothing is asked of the disk: the hooks' reader is free to be held
    return server


@contextlib.contextmanager
def a_start_whose_receipt_waits(parts: Any, server: Server, *, deadline_ms: int) -> Iterator[tuple[Any, float]]:
    """(peer, end of the hook's patience); in the block the writer is held and the receipt stands behind it."""
    store: Store = parts.store
    frames = event_frames("SessionStart", start_of("new", parts), ident="e-new", deadline_ms=deadline_ms)
    with peer(server.path) as dealer:
        with contextlib.ExitStack() as held:
            with reader_held(store, "hook"):
                dealer.send_multipart(frames)
                eventually(lambda: store.read(lambda rows: rows.value("select count(*) from events where id='e-new'")))
                held.enter_context(holding(store.submit))
            eventually(lambda: queued_writes(store) == 1)
            # the server counts from when the frames came, which was before now
            yield dealer, time.monotonic() + deadline_ms / 1000
        assert dealer.poll(30_000)
        assert dealer.recv_multipart() == [b"ok", b""], "the hook has left: it is told nothing"


def start_of(session: str, parts: Any) -> dict[str, str]:
    return {"session_id": session, "cwd": str(parts.machine.project), "source": "startup"}


def late_hooks(server: Server) -> int:
    return server.background.context.lookups.count_late("")


def noted(parts: Any) -> list[Any]:
    return list(parts.store.read(lambda rows: receipts.list_receipts(rows, projects=None, limit=9)))


def asked_again_is_told(parts: Any, server: Server) -> bool:
    prompt = "The worker cannot read the config: which key does it use for the database url?"
    said = {"session_id": "new", "cwd": str(parts.machine.project), "prompt": prompt}
    return b"database_url" in ask(server.path, event_frames("UserPromptSubmit", said))[1]


def test_a_receipt_whose_turn_comes_too_late_is_not_written_and_the_session_is_told_later(parts: Any) -> None:
    server = knowing(parts)
    with a_start_whose_receipt_waits(parts, server, deadline_ms=1500) as (_, until):
        eventually(lambda: time.monotonic() > until)
    eventually(lambda: late_hooks(server) == 1)
    assert noted(parts) == []
    assert asked_again_is_told(parts, server)


def test_a_receipt_whose_commit_comes_too_late_is_taken_back_and_the_session_is_told_later(parts: Any) -> None:
    server = knowing(parts)
    with contextlib.ExitStack() as held, a_start_whose_receipt_waits(parts, server, deadline_ms=1500) as (_, until):
        slow: Any = parts.store.submit(lambda rows: eventually(lambda: time.monotonic() > until))
        held.callback(slow.result, 30)  # in one group with the receipt: committed together
    eventually(lambda: noted(parts) == [])
    eventually(lambda: late_hooks(server) == 1)
    assert asked_again_is_told(parts, server)


def prompted(parts: Any, server: Server, words: str, *, ident: str) -> bytes:
    """What a prompt of the session "new" is answered."""
    said = {"session_id": "new", "cwd": str(parts.machine.project), "prompt": words}
    status, body = ask(server.path, event_frames("UserPromptSubmit", said, ident=ident))
    assert status == b"ok"
    return body


@pytest.mark.invariant(
    "What a session's start was not told in time its next prompt brings, once; what no hook read is noted nowhere"
)
def test_what_a_start_was_not_told_in_time_its_next_prompt_brings_once_with_a_receipt_of_its_own(parts: Any) -> None:
    server = knowing(parts)
    with reader_held(parts.store, "hook"):
        assert ask(server.path, event_frames("SessionStart", start_of("new", parts), deadline_ms=900)) == [b"ok", b""]
    assert noted(parts) == []
    eventually(lambda: late_hooks(server) == 1)
    first = prompted(parts, server, "Write a poem about the sea.", ident="p-first")
    assert b"database_url" in first
    assert b"database_url" not in prompted(parts, server, "Write another one.", ident="p-second")
    assert [(one.receipt.id, one.receipt.event) for one in noted(parts)] == [("rp-first-start", "session_start")]


@pytest.mark.invariant(
    "What a session's start was not told in time its next prompt brings, once; what no hook read is noted nowhere"
)
def test_a_start_that_was_told_is_owed_nothing(parts: Any) -> None:
    server = knowing(parts)
    assert b"database_url" in ask(server.path, event_frames("SessionStart", start_of("new", parts), ident="s1"))[1]
    assert prompted(parts, server, "Write a poem about the sea.", ident="p1") == b""
    assert [one.receipt.id for one in noted(parts)] == ["rs1"]


@pytest.mark.invariant(
    "What a session's start was not told in time its next prompt brings, once; what no hook read is noted nowhere"
)
def test_an_answer_whose_hook_had_left_counts_as_not_told_once_the_spool_says_so(parts: Any) -> None:
    server = knowing(parts)
    start = start_of("new", parts)
    assert b"database_url" in ask(server.path, event_frames("SessionStart", start, ident="e" * 32))[1]
    in_the_spool(parts, "SessionStart", start, ident="e" * 32)
    assert noted(parts) == []
    first = prompted(parts, server, "Write a poem about the sea.", ident="f" * 32)
    assert b"database_url" in first
    in_the_spool(parts, "UserPromptSubmit", {**start, "prompt": "Write a poem about the sea."}, ident="f" * 32)
    assert noted(parts) == []
    assert prompted(parts, server, "Write another one.", ident="g" * 32) == first


def test_a_start_that_cannot_be_told_in_time_costs_no_prompt_its_answer(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = knowing(parts)
    with reader_held(parts.store, "hook"):
        assert ask(server.path, event_frames("SessionStart", start_of("new", parts), deadline_ms=900)) == [b"ok", b""]

    def slow(rows: Any, **more: Any) -> Any:
        while True:  # a statement of its own each: the deadline stops one of them
            rows.all(
                "with recursive n (x) as (select 1 union all select x + 1 from n where x < 1000000) select sum(x) from n"
            )

    own = injection.brief.session_brief
    monkeypatch.setattr(injection.brief, "session_brief", slow)
    monkeypatch.setattr(injection, "START_TIMEOUT_S", 0.2)
    why = "The worker cannot read the config: which key does it use for the database url?"
    assert b"database_url" in prompted(parts, server, why, ident="p1")
    monkeypatch.setattr(injection.brief, "session_brief", own)
    told = prompted(parts, server, "Write a poem about the sea.", ident="p2")
    assert b"pathlib" in told and b"database_url" not in told, "it was told already"


def test_a_start_that_was_stored_and_not_answered_is_owed_once_the_spool_says_so_whichever_daemon_reads_it(
    parts: Any,
) -> None:
    server = knowing(parts)
    start = start_of("new", parts)
    with reader_held(parts.store, "hook"):
        assert ask(server.path, event_frames("SessionStart", start, ident="e" * 32, deadline_ms=900)) == [b"ok", b""]
    parts.background.context.starts = PendingStarts()  # as after a restart
    in_the_spool(parts, "SessionStart", start, ident="e" * 32)
    assert b"database_url" in prompted(parts, server, "Write a poem about the sea.", ident="f" * 32)
    assert prompted(parts, server, "Write another one.", ident="a" * 32) == b""


def in_the_spool(parts: Any, event: str, payload: dict[str, str], *, ident: str) -> None:
    """A hook that had left puts its event into the spool, and the steward takes it in."""
    place = parts.machine.paths.spool / f"{ident}.event"
    place.write_bytes(f"csmd-spool 1 {ident} claude {event} {time.time_ns()}\n".encode() + json.dumps(payload).encode())
    assert replay(parts.background.context)
    assert not place.exists()


@pytest.mark.invariant(
    "A slow daemon is not a hung one: who is about to leave is answered, and the mark goes when the daemon goes on"
)
def test_a_hook_that_is_about_to_leave_is_answered_and_what_was_not_stored_by_then_is_known_by_its_id(
    parts: Any,
) -> None:
    server = knowing(parts)
    prompt = {**PAYLOAD, "cwd": str(parts.machine.project), "prompt": "which key has the database url?"}
    with reader_held(parts.store, "hook"):
        # Where the project lies is not told yet, so nothing is stored; of a start it is, and what to tell is not.
        assert ask(server.path, event_frames("UserPromptSubmit", prompt, ident="p1", deadline_ms=900)) == [
            b"retry",
            b"",
        ]
        started = event_frames("SessionStart", start_of("new", parts), ident="s1", deadline_ms=900)
        assert ask(server.path, started) == [b"ok", b""]
    assert ask(server.path, event_frames("UserPromptSubmit", prompt, ident="p1"))[0] == b"ok", "its replay"
    assert noted(parts) == []
    names = parts.store.read(lambda rows: rows.all("select id from events where id in ('p1', 's1') order by id"))
    assert names == [("p1",), ("s1",)]


@pytest.mark.invariant("Readers cannot write, see one moment, end at their deadline, and never stand before a hook")
def test_how_far_a_job_is_and_the_state_are_told_while_the_other_readers_and_the_writer_are_busy(parts: Any) -> None:
    server: Server = parts.serve()
    job = parts.background.context.submit(Task(id="j", kind="sync"))
    with reader_held(parts.store, "hook", "main"), holding(parts.store.submit):
        status, body = ask(server.path, call_frames("csm_job", {"id": job.id}))
        assert (status, json.loads(body)["state"]) == (b"ok", "waiting")
        assert ask(server.path, call_frames("csm_runtime_status", {}))[0] == b"ok"
    with reader_held(parts.store, "status"):
        assert ask(server.path, call_frames("csm_job", {"id": job.id}))[0] == b"ok"
        started = event_frames("SessionStart", start_of("s", parts))
        assert ask(server.path, started) == [b"ok", b""], "no question stands before a hook"


def test_a_large_payload_is_decoded_beside_and_the_small_ones_are_served_meanwhile(parts: Any) -> None:
    server: Server = parts.serve()
    large = {**PAYLOAD, "last_assistant_message": "It is done. " * 40_000}
    with peer(server.path) as dealer, peer(server.path) as other:
        with reader_held(parts.store, "main"):
            dealer.send_multipart(event_frames("Stop", large, ident="large"))
            other.send_multipart(event_frames("Stop", b"{" + b" " * 400_000, ident="bad"))
            eventually(lambda: len(server._waiting) == 2)
            assert ask(server.path, FRAMES) == [b"ok", b""]
            assert not dealer.poll(0)
        for waiting in (dealer, other):
            assert waiting.poll(30_000)
            assert waiting.recv_multipart() == [b"ok", b""]
    assert parts.store.read(lambda rows: rows.value("select count(*) from events where id = 'large'")) == 1
    assert parts.store.read(activity.read_counters)["bad events"] == 1


@pytest.mark.invariant("A slow disk or a dead mount holds up neither the socket nor the writer")
@pytest.mark.parametrize("left_out", [None, ("/elsewhere",), ()], ids=["nothing", "globs", "marks"])
def test_a_directory_that_does_not_answer_holds_up_neither_the_socket_nor_the_writer(
    parts: Any, monkeypatch: pytest.MonkeyPatch, left_out: tuple[str, ...] | None
) -> None:
    server: Server = parts.serve()
    asked, go_on = threading.Event(), threading.Event()
    identify = project_identity.identify

    def hangs(cwd: str, **more: Any) -> Any:
        if cwd == "/dead/mount":
            asked.set()
            assert go_on.wait(30)
        return identify(cwd, **more)

    def hangs_too(folder: str) -> bool:
        hangs(folder, disk=files)
        return False

    if left_out is None or left_out:
        monkeypatch.setattr(project_identity, "identify", hangs)
        server.background.context.excludes = Excludes(projects=left_out or ())
    else:
        server.background.context.excludes = Excludes(is_marked=hangs_too)
    with peer(server.path) as dealer:
        dealer.send_multipart(
            event_frames("UserPromptSubmit", {**PAYLOAD, "prompt": "x", "cwd": "/dead/mount"}, ident="d")
        )
        try:
            assert asked.wait(30)
            assert ask(server.path, call_frames("csm_runtime_status", {}))[0] == b"ok"
            assert parts.store.write(lambda rows: rows.value("select 1")) == 1
            assert not dealer.poll(0)
        finally:
            go_on.set()
        assert dealer.poll(30_000) and dealer.recv_multipart()[0] == b"ok"


def test_the_event_of_a_host_nobody_understands_is_acknowledged_dropped_and_counted(parts: Any) -> None:
    server: Server = parts.serve()
    assert ask(server.path, changed(4, b"heron")) == [b"ok", b""]
    assert parts.store.read(activity.read_counters) == {"unknown hosts": 1}
    assert parts.store.read(activity.counts)["events"] == 0


def test_a_prompt_has_the_embedding_worker_started_and_waits_for_no_start(parts: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Embedder):
        def warm(self) -> None:
            begun.set()
            assert go_on.wait(60)

    server: Server = parts.serve()
    server.embedder = Slow(None, idle_s=60, environment={})
    for number in range(3):
        said = {"session_id": "s", "cwd": "/p", "prompt": f"The {number}. question about the parser?"}
        assert ask(server.path, event_frames("UserPromptSubmit", said)) == [b"ok", b""]
        assert begun.wait(30)
    go_on.set()


def test_an_answer_that_cannot_be_made_is_an_error_and_not_silence(parts: Any) -> None:
    server: Server = parts.serve(status=lambda rows: {"no JSON": object()})
    status, body = ask(server.path, call_frames("csm_runtime_status", {}))
    assert (status, b"internal error" in body) == (b"error", True)
    assert ask(server.path, call_frames("csm_tools", {}))[0] == b"ok"


def test_a_question_is_stopped_when_its_asker_has_no_patience_left(parts: Any) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
    server: Server = parts.serve(status=lambda rows: rows.value(endless))
    status, body = ask(server.path, call_frames("csm_runtime_status", {}, deadline_ms=200))
    assert (status, b"deadline" in body) == (b"error", True)
    assert ask(server.path, call_frames("csm_tools", {}))[0] == b"ok"


def test_a_server_that_cannot_listen_says_so_and_ends(parts: Any) -> None:
    parts.path.mkdir()
    server = parts.serve(expect_failure=True)
    assert "not a socket of yours" in server.failure
    server.join(30)
    assert not server.is_alive() and parts.ended.is_set()
    parts.path.rmdir()


def test_waking_a_server_that_has_ended_does_nothing(parts: Any) -> None:
    server: Server = parts.serve()
    server.stop()
    server.join(30)
    server.stop()
    assert parts.ended.is_set()
