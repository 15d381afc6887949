"""The command line's side of the socket, against a daemon that is away, stuck, dying, newer, older or talks nonsense."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import zmq
from machine import Machine

from csmd import client, wire
from csmd.errors import BadInput, CsmdError, DaemonBusy, DaemonUnreachable
from csmd.wire import Reply, Request


@pytest.fixture
def home(machine: Machine) -> Path:
    machine.home.mkdir()
    return machine.home


@contextmanager
def answering(home: Path, *answers: Reply | list[bytes] | None) -> Iterator[list[Request]]:
    """A ROUTER on the home's socket that gives these answers, one to each request; None ends it without a word."""
    requests: list[Request] = []
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.LINGER, 1000)
    router.bind(f"ipc://{home}/sock")
    (home / "endpoint").write_text(f"{home}/sock\n")

    def serve() -> None:
        for answer in answers:
            if not router.poll(20_000):
                break
            identity, *frames = router.recv_multipart()
            requests.append(wire.decode_request(frames))
            if answer is None:
                break
            router.send_multipart([identity, *(wire.encode_reply(answer) if isinstance(answer, Reply) else answer)])
        router.close()  # at once after the last answer, as a daemon does that stops

    thread = threading.Thread(target=serve)
    thread.start()
    yield requests
    thread.join()
    context.term()


def ok(value: object) -> Reply:
    return Reply(status="ok", body=json.dumps(value).encode())


def test_a_call_carries_its_name_parameters_and_patience(machine: Machine, home: Path) -> None:
    with answering(home, ok({"a": "é"})) as requests:
        assert client.call(machine.paths, "csm_x", {"text": "ü\ud800"}, patience_s=7) == {"a": "é"}
    (request,) = requests
    assert (request.verb, request.name, request.deadline_ms, request.proto) == ("call", "csm_x", 7000, wire.PROTO)
    assert json.loads(request.body) == {"text": "ü?"}, "what is no Unicode is replaced, not an error"


@pytest.mark.parametrize("left", [None, b"", b"/nonexistent/socket\n", b"\xff\xfe\0", b"a" * 5000])
def test_without_a_daemon_the_hint_is_to_start_one(machine: Machine, home: Path, left: bytes | None) -> None:
    machine.paths.install_record.write_text("{}")
    if left is not None:
        machine.paths.endpoint.write_bytes(left)
    with pytest.raises(DaemonUnreachable, match="no csmd daemon is running") as caught:
        client.call(machine.paths, "csm_x")
    assert (caught.value.hint, caught.value.exit_code) == ("csmd start", 3)


def test_a_daemon_that_dies_before_its_answer_is_noticed_at_once(machine: Machine, home: Path) -> None:
    """With a patience far beyond the test's own limit: only noticing ends it in time."""
    with answering(home, None), pytest.raises(DaemonUnreachable, match="went away before it answered"):
        client.call(machine.paths, "csm_x", patience_s=3000)


def test_a_daemon_that_is_stuck_is_told_from_one_that_is_away(machine: Machine, home: Path) -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.bind(f"ipc://{home}/sock")
        (home / "endpoint").write_text(f"{home}/sock\n")
        with pytest.raises(DaemonUnreachable, match=r"does not answer within 0\.05 s") as caught:
            client.call(machine.paths, "csm_x", patience_s=0.05)
        assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("reply", "kind", "what", "hint"),
    [
        (Reply(status="retry"), DaemonBusy, "stopping", "try again"),
        (Reply(status="upgrade"), CsmdError, "older than this command", "csmd upgrade"),
        (Reply(status="refused", body=b'{"error":"full","hint":"free"}'), CsmdError, "full", "free"),
        (Reply(status="error", body=b'{"error":"wrong"}'), CsmdError, "wrong", ""),
        (Reply(status="error"), CsmdError, "error", ""),
        ([b"ok"], BadInput, "2 frames", ""),
        ([b"maybe", b""], BadInput, "unknown status", ""),
        ([b"ok", b"{"], BadInput, "not JSON", ""),
    ],
)
def test_an_answer_that_is_no_result_is_an_error_that_says_so(
    machine: Machine, home: Path, reply: Reply | list[bytes], kind: type[CsmdError], what: str, hint: str
) -> None:
    with answering(home, reply), pytest.raises(kind, match=what) as caught:
        client.call(machine.paths, "csm_x")
    assert hint in caught.value.hint


def test_a_job_is_watched_to_its_end(machine: Machine, home: Path) -> None:
    def state(name: str, **more: object) -> Reply:
        return ok({"state": name, "progress": {}, "result": {}, "error": "", "hint": "", **more})

    seen: list[dict[str, object]] = []
    watch: Callable[[dict[str, object]], None] = seen.append
    answers = [
        ok({"job": "j1"}),
        state("waiting"),
        state("running", progress={"done": 1}),
        state("done", result={"n": 3}),
    ]
    with answering(home, *answers) as requests:
        assert client.run_job(machine.paths, "csm_sync", {}, watch=watch) == {"n": 3}
    assert seen == [{}, {}, {"done": 1}, {}]
    assert [json.loads(request.body) for request in requests[1:]] == [{"id": "j1"}] * 3
    with answering(home, ok({"job": "j1"}), state("failed", error="no", hint="do")), pytest.raises(CsmdError) as caught:
        client.run_job(machine.paths, "csm_sync", {}, watch=watch)
    assert (caught.value.what, caught.value.hint) == ("no", "do")


# --- whether memory is being recorded, in one sentence


SAID = "csmd: memory is not being recorded: its daemon "
ALARM = {
    "what": "nothing is recorded: the database is damaged",
    "do": "csmd repair",
    "since": "2026-05-05T10:00:00.000Z",
}


def test_where_all_is_well_there_is_nothing_to_say(machine: Machine, home: Path) -> None:
    with answering(home, ok({"alarms": []})) as requests:
        assert client.capture_state(machine.paths) == ""
    assert [request.name for request in requests] == ["csm_runtime_alarms"]
    machine.paths.endpoint.unlink()
    machine.start()
    assert client.capture_state(machine.paths) == "", "nor has a real daemon"


def test_the_worst_alarm_is_said(machine: Machine, home: Path) -> None:
    with answering(home, ok({"alarms": [ALARM, {**ALARM, "what": "another"}]})):
        assert client.capture_state(machine.paths) == f"csmd: {ALARM['what']} (csmd repair)."


@pytest.mark.parametrize("left", [None, b"", b"/nonexistent/socket\n"])
def test_a_daemon_that_is_away_is_said_but_not_to_who_stopped_it(
    machine: Machine, home: Path, left: bytes | None
) -> None:
    if left is not None:
        machine.paths.endpoint.write_bytes(left)
    message = f"{SAID}is not running; csmd start starts it (csmd doctor says why)."
    assert client.capture_state(machine.paths) == message
    machine.paths.run_dir.mkdir()
    machine.paths.stopped_mark.touch()
    assert client.capture_state(machine.paths) == ""
    machine.paths.install_record.write_text("{}")
    with pytest.raises(DaemonUnreachable, match="it was stopped on purpose"):
        client.call(machine.paths, "csm_x")


def test_a_daemon_that_is_stuck_is_said_within_a_second(machine: Machine, home: Path) -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.bind(f"ipc://{home}/sock")
        (home / "endpoint").write_text(f"{home}/sock\n")
        assert client.capture_state(machine.paths) == "", "slow alone is no alarm"
        router.recv_multipart()
        machine.paths.run_dir.mkdir()
        machine.paths.hung_mark.touch()  # as a hook does that waited in vain
        assert (
            client.capture_state(machine.paths) == f"{SAID}does not answer; csmd restart helps (csmd doctor says why)."
        )
        _, *frames = router.recv_multipart()
    assert wire.decode_request(frames).deadline_ms == client.STATE_PATIENCE_S * 1000 / 2
    assert client.STATE_PATIENCE_S <= 1, "two looks at the socket take a quarter of it each at most"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(status="retry"), ""),
        (Reply(status="upgrade"), "is of another version; csmd restart helps (csmd doctor says why)."),
        (Reply(status="error", body=b'{"error":"unknown tool"}'), "is of another version; csmd restart helps (csmd doctor says why)."),
        ([b"maybe", b""], "is of another version; csmd restart helps (csmd doctor says why)."),
    ],
)  # fmt: skip
def test_a_daemon_of_another_version_is_said_and_one_that_stops_is_not(
    machine: Machine, home: Path, reply: Reply | list[bytes], said: str
) -> None:
    with answering(home, reply):
        assert client.capture_state(machine.paths) == (SAID + said if said else "")
