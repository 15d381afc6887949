"""The viewer's process: how it begins, to whom, and when it ends."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket

import pytest
from machine import LIMIT_S, Machine
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send
from terminal import Terminal
from viewer_process import Opens, Viewer

from csmd.web.access import Access
from csmd.web.viewer import split_marked


def test_the_command_prints_a_link_that_opens_the_overview_and_ends_with_c(machine: Machine) -> None:
    machine.start()
    terminal = Terminal("web", "--no-open", cwd=machine.project, environment=machine.environment())
    found = re.search(r"http://127\.0\.0\.1:\d+/open\?token=[\w-]+", terminal.sees("with ^C."))
    assert found is not None and found[0] in terminal.said.splitlines()
    assert all(len(line) <= 80 for line in terminal.said.splitlines() if line != found[0])
    viewer = Viewer(None, found[0])  # type: ignore[arg-type]
    assert viewer.enter().status == 303 and "Healthy" in viewer.get("").words
    terminal.press("\x03")
    assert terminal.ends() == 0
    with pytest.raises(OSError):
        viewer.get("")


@pytest.mark.invariant("The viewer asks before it changes a memory, and does it as a person at the terminal")
def test_a_program_and_an_assistant_get_no_link(machine: Machine) -> None:
    done = machine.run("web", "--no-open")
    assert done.returncode == 1 and "only a person can open it" in done.stderr and "token" not in done.stdout
    terminal = Terminal("web", "--no-open", cwd=machine.project, environment=machine.environment(CLAUDECODE="1"))
    assert terminal.ends() == 1 and "only a person can open it" in " ".join(terminal.said.split())


def test_a_port_that_is_taken_is_named(machine: Machine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        terminal = Terminal("web", "--port", str(port), cwd=machine.project, environment=machine.environment())
        assert terminal.ends() == 1 and f"port {port}: Address already in use" in terminal.said


def test_it_ends_when_nobody_uses_it(opened: Opens, machine: Machine) -> None:
    viewer = opened(machine, IDLE_S=0.0, LOOK_S=0, enters=False)
    assert viewer.process.wait(LIMIT_S) == 0


def test_only_a_browser_that_was_let_in_keeps_it_going() -> None:
    now = [0.0]
    access = Access(80, lambda: now[0])

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("seen")(scope, receive, send)

    def ask(path: str, cookie: str) -> tuple[int, dict[str, str]]:
        sent: list[Message] = []
        headers = [(b"host", b"127.0.0.1:80"), (b"cookie", cookie.encode())]
        place, _, query = path.partition("?")
        scope = {"type": "http", "method": "GET", "path": place, "query_string": query.encode(), "headers": headers}

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "http.request"}

        asyncio.run(access.guard(page)(scope, receive, send))
        return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}

    now[0] = 5.0
    assert ask("/", "")[0] == 403 and access.last_used == 0.0
    entered = ask(access.link.partition(":80")[2], "")
    assert entered[0] == 303 and access.last_used == 5.0
    now[0] = 9.0
    assert ask(f"{access.base}/", "csmd=wrong")[0] == 403 and access.last_used == 5.0
    assert ask(f"{access.base}/", entered[1]["set-cookie"].partition(";")[0])[0] == 200 and access.last_used == 9.0


def test_it_never_opens_the_database(opened: Opens, machine: Machine) -> None:
    machine.start()
    viewer = opened(machine)
    assert viewer.get("memories").status == 200
    files = {
        os.path.realpath(f"/proc/{viewer.process.pid}/fd/{number}")
        for number in os.listdir(f"/proc/{viewer.process.pid}/fd")
    }
    assert not [path for path in files if "csmd.db" in path]


def test_a_daemon_that_ends_and_comes_back_is_noticed(opened: Opens, machine: Machine) -> None:
    daemon = machine.start()
    viewer = opened(machine)
    assert viewer.get("").status == 200
    machine.stop(daemon)
    down = viewer.get("sessions")
    assert down.status == 503 and "The daemon does not answer" in down.words and "nothing is lost" in down.words
    machine.start()
    assert viewer.get("sessions").status == 200


def test_it_ends_at_a_signal_while_a_browser_holds_a_connection(opened: Opens, machine: Machine) -> None:
    viewer = opened(machine)
    name, _, port = viewer.host.partition(":")
    with socket.create_connection((name, int(port))) as held:
        held.sendall(b"GET / HTTP/1.1\r\n")
        viewer.process.send_signal(signal.SIGTERM)
        assert viewer.process.wait(LIMIT_S) in (0, -signal.SIGTERM)


def test_marked_words_are_parts_of_their_own() -> None:
    assert split_marked("a b c d", ["b", "d", "x", ""]) == [("a ", False), ("b", True), (" c ", False), ("d", True)]
    assert split_marked("all", ["all"]) == [("all", True)] and split_marked("", []) == []
