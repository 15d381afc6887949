"""The hook against a real pyzmq ROUTER, dead and broken peers, and bad places: it never fails and loses nothing.

This is where the hand-written ZMTP of hooks/csmd_hook.py and libzmq are held together.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import zmq

import csmd
from csmd import wire
from csmd.config import base_interpreter
from csmd.store import files

SHARED = Path(csmd.__file__).parent / "_share" / "hooks"
SCRIPTS = SHARED if SHARED.is_dir() else Path(__file__).resolve().parents[2] / "hooks"
PYTHON = base_interpreter()
SHELL_SCRIPTS = {
    "post-turn": "Stop",
    "pre-compact": "PreCompact",
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "session-end": "SessionEnd",
}
SILENT = ("Stop", "SubagentStop", "SessionEnd")
INJECTING = ("SessionStart", "UserPromptSubmit", "PreCompact", "PostToolUseFailure")
#: What it reports stands in the transcript: it is never spooled.
ONLY_ASKS = "PostToolUseFailure"
#: Of a session that was compacted: there no hook tells the user anything (tests/hooks/test_telling.py).
BODY = b'{"session_id":"s","source":"compact","hook_event_name":"Stop"}\n'
GREETING = b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL" + bytes(48)
READY = b"\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06ROUTER"
#: How long a test waits for something that should come; never a claim about speed.
PATIENCE_S = 30


@pytest.fixture
def home() -> Iterator[Path]:
    """A home with the hook in it, at a path short enough for a socket; its second place is removed afterwards."""
    place = Path("/tmp") / f"csmd-t {os.urandom(4).hex()}'é"
    shutil.copytree(SCRIPTS, place / "hook")
    (place / "hook" / "interpreter").write_text(PYTHON + "\n")
    (place / "endpoint").write_text(f"{place}/socket\n")
    yield place
    shutil.rmtree(place)
    second = second_place(place)
    if second.is_symlink():
        second.unlink()
    elif second.exists():
        second.chmod(0o700)
        shutil.rmtree(second)
    with suppress(OSError):  # others' events are in it
        second.parent.rmdir()


def second_place(home: Path) -> Path:
    name = os.path.realpath(home).replace("%", "%25").replace("/", "%2F")
    return Path("/tmp") / f"csmd-{os.getuid()}" / f"spool-{name}"


def command(home: Path, event: str) -> list[str]:
    return [PYTHON, "-I", "-S", str(home / "hook" / "csmd_hook.py"), str(home), event]


def run(
    words: Sequence[str | bytes], body: bytes = BODY, cwd: Path | None = None, env: dict[str, str] | None = None
) -> bytes:
    """What the command prints; it must end with 0 and say nothing on stderr."""
    done = subprocess.run(words, input=body, capture_output=True, timeout=PATIENCE_S, check=False, cwd=cwd, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def run_hook(home: Path, event: str, body: bytes = BODY, **environment: str) -> bytes:
    """What the registered command's Python prints."""
    return run(command(home, event), body, env={**os.environ, **environment})


def run_answered(home: Path, event: str, body: bytes = BODY) -> bytes:
    """What a hook prints whose daemon answers: one that a busy machine made late has kept its event, and asks anew."""
    for _ in range(5):
        printed = run_hook(home, event, body)
        if not spooled(home):
            break
        shutil.rmtree(home / "spool")
        (home / "run" / "hung").unlink(missing_ok=True)
    return printed


def run_shell(line: str, body: bytes = BODY) -> bytes:
    """What a shell prints that does `line`."""
    return run(["sh", "-c", line], body)


def start_hook(home: Path, event: str = "Stop") -> subprocess.Popen[bytes]:
    """A hook whose input the test writes as it likes."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command(home, event), stdin=pipe, stdout=pipe, stderr=pipe)


def spooled(home: Path, place: Path | None = None) -> list[tuple[str, bytes]]:
    """(event, body) of every spool file, each checked for name, mode and first line."""
    directory = place or home / "spool"
    if not directory.exists():
        return []
    assert directory.stat().st_mode & 0o777 == 0o700
    found = []
    for path in sorted(directory.iterdir()):
        assert re.fullmatch(r"[0-9a-f]{32}\.event", path.name), path.name
        assert path.stat().st_mode & 0o777 == 0o600
        head, _, body = path.read_bytes().partition(b"\n")
        magic, version, ident, host, event, at = head.decode("ascii").split(" ")
        assert (magic, version, ident, host) == ("csmd-spool", "1", path.stem, "claude")
        assert abs(int(ident[:16], 16) - int(at)) < 3600 * 10**9
        found.append((event, body))
    return found


@dataclass
class Daemon:
    """What a ROUTER was asked, and what it answers."""

    answer: Callable[[wire.Request], wire.Reply | None]
    asked: list[wire.Request] = field(default_factory=list)
    go_on: threading.Event = field(default_factory=threading.Event)


def says(text: bytes, status: wire.Status = "ok") -> Callable[[wire.Request], wire.Reply]:
    return lambda _: wire.Reply(status=status, body=text)


@contextmanager
def running(home: Path, answer: Callable[[wire.Request], wire.Reply | None]) -> Iterator[Daemon]:
    """A pyzmq ROUTER on the home's socket; an answer of None is never sent."""
    daemon = Daemon(answer)
    context = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.setsockopt(zmq.LINGER, 0)
    router.bind(f"ipc://{home}/socket")
    ended = threading.Event()

    def serve() -> None:
        while not ended.is_set():
            if router.poll(20):
                peer, *frames = router.recv_multipart()
                request = wire.decode_request(frames)
                reply = daemon.answer(request)
                if reply is not None:
                    router.send_multipart([peer, *wire.encode_reply(reply)])
                daemon.asked.append(request)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield daemon
    finally:
        ended.set()
        thread.join()
        router.close()
        context.term()


def eventually(condition: Callable[[], bool]) -> bool:
    """Poll `condition` until it holds or the test's patience ends."""
    end = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


@contextmanager
def raw_peer(home: Path, talk: Callable[[socket.socket], None]) -> Iterator[list[int]]:
    """A listening socket that is no ROUTER: `talk` has each connection; yields a list that grows with each."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{home}/socket")
    listener.listen(20)
    connections: list[int] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(1)
            with connection, suppress(OSError):
                talk(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield connections
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def until_the_hook_leaves(connection: socket.socket) -> None:
    while connection.recv(65536):
        pass


def through_the_handshake(connection: socket.socket) -> None:
    """Everything a ROUTER does up to the answer."""
    connection.sendall(GREETING)
    seen = b""
    while BODY not in seen:
        part = connection.recv(65536)
        if not part:
            raise OSError("the hook has gone")
        seen += part
    connection.sendall(READY)


# --- with a daemon


@pytest.mark.parametrize("size", [1, 255, 256, 257, 70_000, 5_000_000])
def test_a_payload_of_any_size_reaches_the_daemon_byte_for_byte(home: Path, size: int) -> None:
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    with running(home, says(b"")) as daemon:
        assert run_hook(home, "Stop", body) == b""
    (request,) = daemon.asked
    assert request.body == body
    assert (request.proto, request.verb, request.host, request.name) == (1, "event", "claude", "Stop")
    assert re.fullmatch("[0-9a-f]{32}", request.id)
    assert 0 < request.deadline_ms <= 500
    assert spooled(home) == []


@pytest.mark.parametrize("event", INJECTING)
@pytest.mark.parametrize("size", [0, 1, 255, 256, 9_000, 300_000])
def test_an_injecting_hook_prints_the_answer_and_nothing_else(home: Path, event: str, size: int) -> None:
    text = ("é" * size).encode()[:size]
    with running(home, says(text)) as daemon:
        assert run_answered(home, event) == text
    assert daemon.asked[0].deadline_ms <= 180
    assert spooled(home) == []


@pytest.mark.invariant(
    "A hook never hurts the session. It exits 0, is silent on stderr, prints only where it injects, and keeps its deadline, whatever the daemon, the disk or the input is like"
)
@pytest.mark.parametrize("event", SILENT)
def test_a_hook_that_does_not_inject_never_prints(home: Path, event: str) -> None:
    with running(home, says(b"not for the assistant")) as daemon:
        assert run_hook(home, event) == b""
    assert [request.name for request in daemon.asked] == [event]
    assert spooled(home) == []


@pytest.mark.invariant(
    "A hook never hurts the session. It exits 0, is silent on stderr, prints only where it injects, and keeps its deadline, whatever the daemon, the disk or the input is like"
)
@pytest.mark.parametrize("status", ["retry", "upgrade", "refused", "error"])
@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
def test_whatever_the_daemon_did_not_take_is_spooled(home: Path, status: wire.Status, event: str) -> None:
    with running(home, says(b"a reason", status)):
        assert run_hook(home, event) == b""
    assert spooled(home) == [(event, BODY)]
    assert not (home / "run" / "hung").exists()


def test_bytes_that_are_no_text_pass_through(home: Path) -> None:
    body = b'{"prompt":"\xff\xfe\x00 \xed\xa0\x80"}'
    with running(home, says(b"\xff answer")) as daemon:
        assert run_answered(home, "UserPromptSubmit", body) == b"\xff answer"
    assert daemon.asked[0].body == body


def test_twenty_hooks_at_once_all_arrive_with_ids_of_their_own(home: Path) -> None:
    bodies = [b"body %d" % number for number in range(20)]
    with (
        running(home, lambda request: wire.Reply(status="ok", body=request.body)) as daemon,
        ThreadPoolExecutor(20) as pool,
    ):
        printed = list(pool.map(lambda body: run_hook(home, "SessionStart", body), bodies))
    arrived = [request.body for request in daemon.asked]
    late = [body for _, body in spooled(home)]  # a busy machine may make one late; it is kept all the same
    assert sorted({*arrived, *late}) == sorted(bodies)
    assert len({request.id for request in daemon.asked}) == len(daemon.asked)
    assert [text for text, body in zip(printed, bodies, strict=True) if text not in (b"", body)] == []


def test_input_that_comes_in_pieces_is_read_to_its_end(home: Path) -> None:
    with running(home, says(b"")) as daemon:
        child = start_hook(home)
        assert child.stdin is not None
        for piece in (b"one ", b"two ", b"three"):
            child.stdin.write(piece)
            child.stdin.flush()
            time.sleep(0.03)  # the pause is what is tested, not something waited for
        out, err = child.communicate(timeout=PATIENCE_S)
    assert (child.returncode, out, err) == (0, b"", b"")
    assert [request.body for request in daemon.asked] == [b"one two three"]


# --- daemons in a bad way


@pytest.mark.invariant("A hung daemon costs one deadline in 30 s")
def test_a_daemon_that_answers_too_late_is_marked_and_the_event_spooled(home: Path) -> None:
    with running(home, lambda _: None) as daemon:
        assert run_hook(home, "SessionStart") == b""
        assert eventually(lambda: len(daemon.asked) == 1)
    assert spooled(home) == [("SessionStart", BODY)]
    assert (home / "run" / "hung").stat().st_mode & 0o777 == 0o600
    assert daemon.asked[0].id in {path.stem for path in (home / "spool").iterdir()}, "a replay must be recognisable"


@pytest.mark.invariant("An answer that came in time is taken, however late the hook gets the processor")
def test_what_came_in_time_is_taken_by_a_hook_that_was_kept_waiting_for_the_processor(home: Path) -> None:
    with running(home, lambda _: None) as daemon, start_hook(home, "SessionStart") as child:
        began = time.monotonic()

        def answer(_: wire.Request) -> wire.Reply:
            os.kill(child.pid, signal.SIGSTOP)
            return wire.Reply(status="ok", body=b"hello")

        daemon.answer = answer
        assert child.stdin is not None
        child.stdin.write(BODY)
        child.stdin.close()
        assert eventually(lambda: len(daemon.asked) == 1)
        assert eventually(lambda: time.monotonic() > began + 0.5), "its deadline is what is to pass"
        os.kill(child.pid, signal.SIGCONT)
        assert child.stdout is not None
        assert child.stdout.read() == b"hello"
        assert child.wait(PATIENCE_S) == 0
    assert spooled(home) == []
    assert not (home / "run" / "hung").exists()


@pytest.mark.invariant(
    "A slow daemon is not a hung one: who is about to leave is answered, and the mark goes when the daemon goes on"
)
def test_a_daemon_that_says_in_time_that_it_is_late_is_not_marked(home: Path) -> None:
    with running(home, says(b"", "retry")):
        assert run_hook(home, "UserPromptSubmit") == b""
    assert spooled(home) == [("UserPromptSubmit", BODY)]
    assert not (home / "run" / "hung").exists()


@pytest.mark.invariant("A hung daemon costs one deadline in 30 s")
def test_while_the_mark_is_young_no_hook_connects(home: Path) -> None:
    with raw_peer(home, until_the_hook_leaves) as connections:
        for event in ("Stop", "SessionStart", "Stop"):
            assert run_hook(home, event) == b""
    assert len(connections) == 1
    assert [event for event, _ in spooled(home)] == ["Stop", "SessionStart", "Stop"]


@pytest.mark.parametrize("age_s", [31, -3600])
def test_once_the_mark_is_old_or_from_the_future_the_daemon_is_asked_again(home: Path, age_s: int) -> None:
    mark = home / "run" / "hung"
    mark.parent.mkdir()
    mark.touch()
    os.utime(mark, (time.time() - age_s,) * 2)
    with running(home, says(b"hello")):
        assert run_hook(home, "SessionStart") == b"hello"
    assert not mark.exists()


@pytest.mark.invariant(
    "A hook never hurts the session. It exits 0, is silent on stderr, prints only where it injects, and keeps its deadline, whatever the daemon, the disk or the input is like"
)
def test_a_daemon_that_drips_byte_after_byte_does_not_stretch_the_deadline(home: Path) -> None:
    def drip(connection: socket.socket) -> None:
        through_the_handshake(connection)
        connection.sendall(b"\x02" + (10**6).to_bytes(8, "big"))
        while True:  # ends with an error once the hook has gone
            connection.sendall(b".")
            time.sleep(0.02)

    with raw_peer(home, drip):
        assert run_hook(home, "SessionStart") == b""
    assert spooled(home) == [("SessionStart", BODY)]


@pytest.mark.parametrize("said", [b"", b"\x01\x02ok", b"\x01\x02ok\x00\x05hel", b"\x01\x02", b"\x03\0\0\0"])
def test_a_daemon_that_dies_in_the_middle_of_its_answer_costs_nothing_but_the_answer(home: Path, said: bytes) -> None:
    def die(connection: socket.socket) -> None:
        through_the_handshake(connection)
        connection.sendall(said)

    with raw_peer(home, die):
        assert run_hook(home, "SessionStart") == b""
    assert spooled(home) == [("SessionStart", BODY)]
    assert not (home / "run" / "hung").exists()


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x03" * 200, b"\xff" * 4096, bytes(4096), b"", GREETING]
)
def test_a_peer_that_talks_something_else_is_no_daemon(home: Path, said: bytes) -> None:
    with raw_peer(home, lambda connection: connection.sendall(said)):
        assert run_hook(home, "UserPromptSubmit") == b""
    assert spooled(home) == [("UserPromptSubmit", BODY)]


def test_an_answer_in_frames_of_either_length_form_after_commands_is_understood(home: Path) -> None:
    def answer(connection: socket.socket) -> None:
        through_the_handshake(connection)
        long = [number.to_bytes(8, "big") for number in (2, 300, 5)]
        connection.sendall(b"\x04\x07\x04PING\0\0" + b"\x03" + long[0] + b"ok")
        connection.sendall(b"\x06" + long[1] + bytes(300) + b"\x02" + long[2] + b"hello")
        until_the_hook_leaves(connection)

    with raw_peer(home, answer):
        assert run_hook(home, "SessionStart") == b"hello"


def no_endpoint(home: Path) -> None:
    (home / "endpoint").unlink()


def endpoint_to_nowhere(home: Path) -> None:
    (home / "endpoint").write_text("/nonexistent/csmd/socket\n")


def empty_endpoint(home: Path) -> None:
    (home / "endpoint").write_text("")


def endpoint_far_too_long(home: Path) -> None:
    (home / "endpoint").write_bytes(b"/" + b"\xff" * 3000)


def dead_socket(home: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{home}/socket")


@pytest.mark.invariant("Nothing captured is lost. An ack means committed; without one the event is in the spool")
@pytest.mark.parametrize(
    "spoil", [no_endpoint, endpoint_to_nowhere, empty_endpoint, endpoint_far_too_long, dead_socket]
)
@pytest.mark.parametrize("event", [*INJECTING, *SILENT])
def test_without_a_daemon_the_event_is_in_the_spool_and_no_mark_is_set(
    home: Path, spoil: Callable[[Path], None], event: str
) -> None:
    spoil(home)
    assert run_hook(home, event) == b""
    assert spooled(home) == ([] if event == ONLY_ASKS else [(event, BODY)])
    assert not (home / "run").exists()


# --- bad places


def test_where_the_home_takes_no_file_the_event_goes_to_the_last_place(home: Path) -> None:
    (home / "spool").write_text("in the way")
    (home / "spool-2").write_text("in the way, too")
    assert run_hook(home, "Stop", TMPDIR="/nonexistent") == b""
    assert spooled(home, second_place(home)) == [("Stop", BODY)]


@pytest.mark.invariant("The spool is where the daemon looks, private, and whole or not at all")
def test_the_daemon_looks_where_the_hook_spools_and_reads_what_it_wrote(home: Path) -> None:
    body = b"\xff\n" + BODY
    assert run_hook(home, "PreCompact", body) == b""
    (path,) = files.spooled_paths(home)
    left = files.read_spooled(path)
    assert (left.id, left.host, left.name, left.body) == (path.stem, "claude", "PreCompact", body)
    shutil.rmtree(home / "spool")
    (home / "spool").write_text("in the way")
    assert run_hook(home, "SessionEnd") == b""
    assert [path.parent for path in files.spooled_paths(home)] == [home / "spool-2"], (
        "/tmp only where the home cannot be"
    )
    shutil.rmtree(home / "spool-2")
    (home / "spool-2").write_text("in the way")
    assert run_hook(home, "Stop") == b""
    assert [files.read_spooled(path).name for path in files.spooled_paths(home)] == ["Stop"]


def test_a_read_only_home_leads_to_the_second_place(home: Path) -> None:
    as_others = ["setpriv", "--bounding-set", "-dac_override"] if os.getuid() == 0 else []  # root too is to be refused
    home.chmod(0o500)
    try:
        assert run([*as_others, *command(home, "Stop")]) == b""
    finally:
        home.chmod(0o700)
    assert not (home / "spool").exists()
    assert spooled(home, second_place(home)) == [("Stop", BODY)]


@pytest.mark.invariant("The spool is where the daemon looks, private, and whole or not at all")
@pytest.mark.parametrize("names", [["spool"], ["run"], ["spool", "run", "spool-2"]])
def test_no_link_that_somebody_planted_in_a_home_open_to_all_is_followed(
    home: Path, tmp_path: Path, names: list[str]
) -> None:
    home.chmod(0o777)
    for name in names:
        (tmp_path / f"of {name}").mkdir(mode=0o700)
        (home / name).symlink_to(tmp_path / f"of {name}")
    with raw_peer(home, lambda peer: peer.recv(65536) and until_the_hook_leaves(peer)):
        run_hook(home, "SessionStart")  # it waits in vain: a mark, an event, and what the user is told
    run_hook(home, "Stop", CSMD_DISABLE="1")
    assert [list((tmp_path / f"of {name}").iterdir()) for name in names] == [[]] * len(names)
    place = second_place(home) if "spool-2" in names else home / ("spool-2" if "spool" in names else "spool")
    assert [event for event, _ in spooled(home, place)] == ["SessionStart"]


@pytest.mark.invariant("The spool is where the daemon looks, private, and whole or not at all")
def test_a_second_place_that_somebody_else_could_have_made_is_not_used(home: Path) -> None:
    (home / "spool").write_text("in the way")
    (home / "spool-2").write_text("in the way")
    elsewhere = home / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    second = second_place(home)
    second.parent.mkdir(mode=0o700, exist_ok=True)
    second.symlink_to(elsewhere)
    assert run_hook(home, "Stop") == b""
    assert list(elsewhere.iterdir()) == []
    second.unlink()
    second.mkdir()
    second.chmod(0o755)
    assert run_hook(home, "Stop") == b""
    assert list(second.iterdir()) == []


@pytest.mark.invariant("The spool is where the daemon looks, private, and whole or not at all")
def test_a_file_that_could_not_be_written_whole_leaves_nothing_in_the_spool(home: Path) -> None:
    limited = f"ulimit -f 8; exec {shlex.join(command(home, 'Stop'))}"  # 4 KiB: a stand-in for a full disk
    assert run_shell(limited, b"x" * 100_000) == b""
    assert spooled(home) == []
    assert spooled(home, second_place(home)) == []


@pytest.mark.invariant("The spool is where the daemon looks, private, and whole or not at all")
def test_the_spool_is_private_whatever_the_umask(home: Path) -> None:
    for umask in ("000", "777", "022"):
        assert run_shell(f"umask {umask}; exec {shlex.join(command(home, 'Stop'))}") == b""
    assert spooled(home) == [("Stop", BODY)] * 3


def test_nothing_is_left_behind_for_a_home_that_does_not_exist(home: Path) -> None:
    gone = home / "gone"
    assert run([*command(home, "Stop")[:4], str(gone), "Stop"]) == b""
    assert not gone.exists()
    assert not second_place(gone).exists()


# --- bad input, bad ends


def test_csmd_disable_stops_everything(home: Path) -> None:
    with running(home, says(b"hello")) as daemon:
        assert run_hook(home, "SessionStart", CSMD_DISABLE="1") == b""
        assert run_hook(home, "SessionStart", CSMD_DISABLE="0") == b"hello"
    assert len(daemon.asked) == 1
    assert spooled(home) == []


def test_a_hook_that_another_assistant_runs_beside_its_own_says_and_keeps_nothing(home: Path) -> None:
    with running(home, says(b"hello")) as daemon:
        assert run_hook(home, "SessionStart", COPILOT_CLI="1") == b""
        # Claude Code that was started by a command of the other one's.
        assert run_hook(home, "SessionStart", COPILOT_CLI="1", CLAUDECODE="1") == b"hello"
    assert len(daemon.asked) == 1
    assert run_hook(home, "Stop", COPILOT_CLI="1") == b""
    assert spooled(home) == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["HOME"],
        ["HOME", "Stop", "more"],
        ["", ""],
        ["HOME", "St op"],
        ["HOME", "St\nop"],
        ["HOME", b"\xff\xfe"],
        [b"/\xff\xfe", "Stop"],
        ["HOME", "é" * 300],
    ],
)
def test_arguments_that_are_not_ours_are_met_with_silence(home: Path, arguments: list[str | bytes]) -> None:
    words = [str(home) if word == "HOME" else word for word in arguments]
    assert run([*command(home, "Stop")[:4], *words]) == b""
    assert spooled(home) == []


def test_no_payload_is_no_event(home: Path) -> None:
    with running(home, says(b"hello")) as daemon:
        assert run_hook(home, "SessionStart", b"") == b""
    assert daemon.asked == []
    assert spooled(home) == []


@pytest.mark.invariant(
    "A hook never hurts the session. It exits 0, is silent on stderr, prints only where it injects, and keeps its deadline, whatever the daemon, the disk or the input is like"
)
@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_hurt_nobody(home: Path, closed: str, up: bool) -> None:
    line = f"exec {shlex.join(command(home, 'SessionStart'))} {closed}"
    if up:
        with running(home, says(b"hello")) as daemon:
            assert run_shell(line) == (b"hello" if closed == "2>&-" else b"")
        assert [request.body for request in daemon.asked] == ([] if "<&-" in closed else [BODY])
    else:
        assert run_shell(line) == b""
        assert spooled(home) == ([] if "<&-" in closed else [("SessionStart", BODY)])


def test_a_reader_that_has_gone_is_no_error_and_what_was_acked_is_not_spooled(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with running(home, says(b"hello")) as daemon:
        done = subprocess.run(
            command(home, "SessionStart"), input=BODY, stdout=writer, stderr=subprocess.PIPE, check=False
        )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(daemon.asked) == 1
    assert spooled(home) == []


def test_an_input_that_never_ends_is_given_up(home: Path) -> None:
    child = start_hook(home)
    assert child.stdin is not None
    child.stdin.write(BODY)
    child.stdin.flush()
    assert child.wait(timeout=PATIENCE_S) == 0
    out, err = child.communicate()
    assert (out, err) == (b"", b"")
    assert spooled(home) == []


def test_an_input_over_the_limit_is_neither_sent_nor_spooled(home: Path) -> None:
    with running(home, says(b"")) as daemon:
        assert run_hook(home, "Stop", bytes(wire.MAX_BODY_BYTES + 1)) == b""
    assert daemon.asked == []
    assert spooled(home) == []


def test_a_terminal_as_input_is_no_event_and_is_left_blocking(home: Path) -> None:
    master, terminal = pty.openpty()
    done = subprocess.run(command(home, "Stop"), stdin=terminal, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert os.get_blocking(terminal)
    os.close(master)
    os.close(terminal)


@pytest.mark.invariant(
    "A hook never hurts the session. It exits 0, is silent on stderr, prints only where it injects, and keeps its deadline, whatever the daemon, the disk or the input is like"
)
def test_a_hook_without_its_rare_module_still_does_no_harm(home: Path) -> None:
    (home / "hook" / "csmd_spool.py").write_text("this is no python")
    assert run_hook(home, "Stop") == b""


# --- the scripts to be dropped in by hand


def run_script(*words: str | Path, cwd: Path | None = None, **environment: str) -> bytes:
    """What a script prints in an otherwise empty environment."""
    return run([str(word) for word in words], cwd=cwd, env={"PATH": os.environ["PATH"], **environment})


@pytest.mark.parametrize(("name", "event"), SHELL_SCRIPTS.items())
def test_a_script_in_the_home_does_what_the_registered_command_does(home: Path, name: str, event: str) -> None:
    with running(home, says(b"hello")) as daemon:
        printed = [run_script(home / "hook" / name), run_script("sh", name, cwd=home / "hook")]
    assert printed == [b"hello" if event in INJECTING else b""] * 2
    assert [(request.name, request.body) for request in daemon.asked] == [(event, BODY)] * 2
    assert run_script(home / "hook" / name) == b""
    assert spooled(home) == [(event, BODY)]


@pytest.mark.parametrize("name", SHELL_SCRIPTS)
def test_a_script_that_was_copied_elsewhere_finds_the_home(home: Path, tmp_path: Path, name: str) -> None:
    copy = shutil.copy(SCRIPTS / name, tmp_path / f"a {name}")
    run_script(Path(copy), CSMD_HOME=str(home))
    assert len(spooled(home)) == 1
    data = tmp_path / "data"
    data.mkdir()
    (data / "csmd").symlink_to(home)
    run_script(Path(copy), XDG_DATA_HOME=str(data), HOME="/nonexistent")
    assert len(spooled(home)) == 2
    (tmp_path / ".local" / "share").mkdir(parents=True)
    (tmp_path / ".local" / "share" / "csmd").symlink_to(home)
    run_script(Path(copy), HOME=str(tmp_path))
    assert len(spooled(home)) == 3


@pytest.mark.parametrize("name", SHELL_SCRIPTS)
@pytest.mark.parametrize("line", [None, "", "/nonexistent/python3", "no newline"])
def test_a_script_falls_back_to_the_python_on_the_path(home: Path, name: str, line: str | None) -> None:
    interpreter = home / "hook" / "interpreter"
    interpreter.unlink()
    if line is not None:
        interpreter.write_text(PYTHON if line == "no newline" else line + "\n")
    run_script(home / "hook" / name, PATH=f"{Path(PYTHON).parent}:{os.environ['PATH']}")
    assert len(spooled(home)) == 1


@pytest.mark.parametrize("beside", [(), ("csmd_hook.py",), ("csmd_spool.py",)])
def test_scripts_that_were_copied_without_what_they_need_say_so_once_at_a_sessions_start(
    tmp_path: Path, beside: tuple[str, ...]
) -> None:
    for file in (*SHELL_SCRIPTS, *beside):
        shutil.copy(SCRIPTS / file, tmp_path / file)
    home = tmp_path / "new" / "csmd"
    printed = {name: [run_script(tmp_path / name, CSMD_HOME=str(home)) for _ in range(2)] for name in SHELL_SCRIPTS}
    said, again = printed.pop("session-start")
    assert list(json.loads(said)) == ["systemMessage"]
    assert b"csmd_hook.py and csmd_spool.py are not next to its hooks (csmd install)" in said
    assert {again, *(line for lines in printed.values() for line in lines)} == {b""}
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_script_without_a_python_says_so(home: Path, tmp_path: Path) -> None:
    (home / "hook" / "interpreter").unlink()
    for program in ("sh", "mkdir", "uname"):
        (tmp_path / program).symlink_to(shutil.which(program) or "")
    said = [run_script("sh", home / "hook" / "session-start", PATH=str(tmp_path)) for _ in range(2)]
    assert b"no python3 is on the PATH" in said[0]
    assert said[1] == b""


@pytest.mark.parametrize("name", SHELL_SCRIPTS)
def test_a_plugins_script_says_once_that_csmd_is_missing_and_leaves_nothing_in_its_place(
    tmp_path: Path, name: str
) -> None:
    plugin, notes = tmp_path / "plugin", tmp_path / "notes"
    plugin.mkdir()
    script = Path(shutil.copy(SCRIPTS / name, plugin / name))
    environment = {"HOME": str(tmp_path), "CLAUDE_PLUGIN_ROOT": str(plugin), "CLAUDE_PLUGIN_DATA": str(notes)}
    said, again = (run_script(script, **environment) for _ in range(2))
    assert again == b""
    if name == "session-start":
        assert b"the plugin needs the Python package csmd (csmd install)" in said
        assert list(notes.iterdir()) == [notes / "told-missing"]
    else:
        assert said == b""
    assert {*tmp_path.iterdir()} <= {plugin, notes}


def test_what_was_missing_once_is_told_again_when_it_is_missing_again(home: Path, tmp_path: Path) -> None:
    plugin, notes = tmp_path / "plugin", tmp_path / "notes"
    plugin.mkdir()
    for file in ("session-start", "csmd_hook.py", "csmd_spool.py"):
        shutil.copy(SCRIPTS / file, plugin / file)
    (home / "run").mkdir(exist_ok=True)
    environment = {"CLAUDE_PLUGIN_ROOT": str(plugin), "CLAUDE_PLUGIN_DATA": str(notes)}
    for _ in range(2):
        (home / "run" / "told-missing").touch()
        assert run_script(plugin / "session-start", CSMD_HOME=str(tmp_path / "none"), **environment)
        run_script(plugin / "session-start", CSMD_HOME=str(home), **environment)
        assert not (home / "run" / "told-missing").exists()
        assert not (notes / "told-missing").exists()


@pytest.mark.parametrize(("name", "event"), SHELL_SCRIPTS.items())
def test_a_script_that_was_copied_before_csmd_is_there_keeps_what_is_said_where_its_daemon_will_look(
    tmp_path: Path, name: str, event: str
) -> None:
    scripts, data = tmp_path / "scripts", tmp_path / "data"
    scripts.mkdir()
    for file in (name, "csmd_hook.py", "csmd_spool.py"):
        shutil.copy(SCRIPTS / file, scripts / file)
    run_script(scripts / name, HOME=str(tmp_path), XDG_DATA_HOME=str(data))
    assert spooled(data / "csmd") == [(event, BODY)]
    assert stat.S_IMODE((data / "csmd").stat().st_mode) == 0o700


def test_what_waits_for_a_first_daemon_is_bounded(home: Path) -> None:
    (home / "spool").mkdir(mode=0o700)
    for number in range(2000):
        (home / "spool" / f"{number:032x}.event").touch()
    run(command(home, "Stop"))
    assert len(list((home / "spool").iterdir())) == 2000
    (home / "csmd.db").touch()  # a daemon was here: it will be again
    run(command(home, "Stop"))
    assert len(list((home / "spool").iterdir())) == 2001


def test_the_scripts_differ_in_their_event_only() -> None:
    bodies = set()
    for name, event in SHELL_SCRIPTS.items():
        first, comment, *rest = (SCRIPTS / name).read_text().splitlines()
        assert first == "#!/bin/sh"
        assert comment.startswith("# csmd: ")
        assert os.access(SCRIPTS / name, os.X_OK)
        assert f"event={event}" in rest
        bodies.add("\n".join(line for line in rest if not line.startswith("event=")))
    assert len(bodies) == 1
