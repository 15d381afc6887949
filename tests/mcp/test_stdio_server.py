"""The server as a client starts it: both protocols over pipes, junk, a daemon that goes and comes, the end of the client."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import LIMIT_S, Machine, eventually, temporary_directory

from csmd.installer import plan
from csmd.mcp import model_tools, stdio_server
from csmd.parameters import make_schema

#: As csmd distils it from what the machine's user says.
SAID = "the config key is database_url, not db_url"
KEY = "sk-ant-a-key-that-must-not-go-anywhere"
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(kw_only=True)
class Talk:
    """A client's side of a server's pipes; `modern` puts the envelope of 2026 on each request."""

    process: subprocess.Popen[bytes]
    modern: bool = False
    number: int = 0
    hello: Any = None
    notes: list[Any] = field(default_factory=list)

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> Any:
        """The answer to a request: the whole message."""
        self.number += 1
        params = {**params, "_meta": ENVELOPE} if self.modern else params
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode())
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self.number:
                return message
            self.notes.append(message)
        raise AssertionError(f"the server ended: {self.process.wait(LIMIT_S)}")

    def initialize(self, version: str = "2025-11-25") -> Any:
        answer = self.ask(
            "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "a test", "version": "1"}
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return answer["result"]

    def call(self, name: str, **arguments: Any) -> tuple[str, bool]:
        result = self.ask("tools/call", name=name, arguments=arguments)["result"]
        return result["content"][0]["text"], bool(result.get("isError"))


@contextlib.contextmanager
def talking(machine: Machine, *, modern: bool = False, script: Path | None = None, **more: str) -> Iterator[Talk]:
    """A server of this machine, started in its project as a client starts it."""
    command = ["sh", str(script)] if script else [sys.executable, "-P", "-m", "csmd", "mcp"]
    process = subprocess.Popen(
        command, cwd=machine.project, env=machine.environment(ANTHROPIC_API_KEY=KEY, **more), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    try:
        yield Talk(process=process, modern=modern)
    finally:
        process.stdin.close()
        code = process.wait(LIMIT_S)
        told = process.stderr.read()
        process.stdout.close()
        process.stderr.close()
    assert (code, told) == (0, b""), (code, told)


@pytest.fixture(scope="module")
def real(shared_machine: Machine) -> Machine:
    shared_machine.conversation()
    shared_machine.start()
    shared_machine.sync()
    return shared_machine


@pytest.fixture(scope="module")
def talk(real: Machine) -> Iterator[Talk]:
    """A server that several tests talk to; it has been greeted."""
    with talking(real) as made:
        made.hello = made.initialize()
        yield made


def test_a_client_of_the_handshake_is_given_instructions_and_four_tools_that_work(talk: Talk) -> None:
    assert talk.hello["protocolVersion"] == "2025-11-25" and talk.hello["instructions"] == stdio_server.INSTRUCTIONS
    listed = talk.ask("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in listed] == list(model_tools.TOOLS)
    assert all(tool["_meta"] == {"anthropic/alwaysLoad": True} for tool in listed)
    assert all(
        tool["inputSchema"]
        == {**make_schema(model_tools.TOOLS[tool["name"]].parameters), "additionalProperties": False}
        for tool in listed
    )
    said, failed = talk.call("search", query="database_url")
    assert SAID in said and not failed
    kept, failed = talk.call("remember", text="The pelican job runs at four.")
    assert kept.startswith("Saved as m") and not failed
    assert talk.call("nothing", a=1)[1], "an unknown tool is a tool's error"
    assert talk.ask("ping")["result"] == {}


def test_a_client_of_2026_is_answered_without_a_handshake(real: Machine) -> None:
    with talking(real, modern=True) as talk:
        found = talk.ask("server/discover")["result"]
        assert found["supportedVersions"] == [MODERN] and found["instructions"] == stdio_server.INSTRUCTIONS
        assert [tool["name"] for tool in talk.ask("tools/list")["result"]["tools"]] == list(model_tools.TOOLS)
        assert SAID in talk.call("search", query="database_url")[0]
        assert talk.call("nothing", a=1)[1], "an unknown tool is a tool's error"


def test_a_daemon_that_goes_and_comes_does_not_break_a_session(machine: Machine) -> None:
    with talking(machine) as talk:
        assert "ATTENTION: csmd: memory is not being recorded" in talk.initialize()["instructions"]
        said, failed = talk.call("search", query="x")
        assert failed and "csmd is not installed here" in said and "csmd install" in said
        first = machine.start()
        assert talk.call("search", query="x") == ("Nothing found. everywhere=true also searches other projects. Searched by words only; synonyms may find more.", False)  # fmt: skip
        machine.stop(first)
        machine.spawn()  # it is starting: the call waits for it
        said, failed = talk.call("remember", text="The crane job runs at six.")
        assert not failed or "no csmd daemon" in said
        eventually(lambda: not talk.call("search", query="crane")[1])


@pytest.mark.invariant(
    "The memory server has no key, no child and no open socket to the daemon, and ends with its client"
)
@pytest.mark.parametrize(("how", "hung"), [("closes its pipe", False), ("interrupts", True)])
def test_the_server_ends_with_its_client_whatever_it_waits_for(machine: Machine, how: str, hung: bool) -> None:
    import socket

    machine.paths.run_dir.mkdir(parents=True)
    silent = socket.socket(socket.AF_UNIX)  # it accepts, and never answers
    silent.bind(str(machine.home / "sock"))
    silent.listen()
    machine.paths.endpoint.write_text(f"{machine.home / 'sock'}\n")
    if hung:
        machine.paths.hung_mark.touch()  # as a hook does that waited in vain
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "csmd", "mcp"], cwd=machine.project, env=machine.environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        talk = Talk(process=process)
        assert ("its daemon does not answer" in talk.initialize()["instructions"]) == hung, "slow alone is no alarm"
        call = {
            "jsonrpc": "2.0",
            "id": 99,
            "method": "tools/call",
            "params": {"name": "search", "arguments": {"query": "x"}},
        }
        talk.send(json.dumps(call).encode())
        assert process.stdin and process.stdout and process.stderr
        if how == "closes its pipe":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGINT)
        process.wait(stdio_server.CALL_TIMEOUT_S / 2)
        assert process.stderr.read() == b""
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
    finally:
        silent.close()


LINES = st.binary(max_size=200).map(lambda data: data.replace(b"\n", b" ")) | st.sampled_from(
    [b"[" * 50_000, b"{}", b"[]", b"null", b'{"jsonrpc":"2.0"}', b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
     b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"forget"}}', b'{"jsonrpc":"2.0","id":1.5,"method":"x"}',
     b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}', b'{"jsonrpc":"2.0","id":7,"result":{}}',
     b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":5,"arguments":[]}}', b"\xff\xfe\0",
     b'{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"search","arguments":{"query":"\\u0000"}}}',
     b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}']
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(lines=st.lists(LINES, max_size=6))
def test_junk_is_no_end(talk: Talk, lines: list[bytes]) -> None:
    for line in lines:
        talk.send(line)
    assert len(talk.ask("tools/list")["result"]["tools"]) == 4


# --- as it is registered


def installed(machine: Machine) -> Path:
    machine.paths.hook_dir.mkdir(parents=True, mode=0o700)
    plan.copy_hooks(machine.paths)
    return machine.paths.hook_dir / "mcp"


@pytest.mark.invariant(
    "The memory server has no key, no child and no open socket to the daemon, and ends with its client"
)
def test_the_registered_server_knows_its_session_has_no_key_and_no_child_whatever_the_paths() -> None:
    place = temporary_directory()
    machine = Machine(root=place / "it's a b")
    machine.root.mkdir()
    try:
        script = installed(machine)
        machine.start()
        known = {"CLAUDE_CODE_SESSION_ID": "the-session", "CLAUDE_PROJECT_DIR": str(machine.project)}
        with talking(machine, script=script, OTEL_TRACES_EXPORTER="otlp", **known) as talk:
            hello = talk.initialize("2024-11-05")
            assert (hello["protocolVersion"], hello["instructions"]) == ("2024-11-05", stdio_server.INSTRUCTIONS)
            kept, _ = talk.call("remember", text="The stork job runs at seven.")
            shown = machine.call("csm_memory_show", id=kept.split()[2].rstrip("."))
            assert (shown["session_id"], shown["project"]) == ("the-session", str(machine.project))
            process = psutil.Process(talk.process.pid)
            assert KEY not in str(process.environ()) and "OTEL_TRACES_EXPORTER" not in process.environ()
            assert process.children() == []
            assert not [c for c in process.net_connections("unix") if c.raddr and str(machine.home) in str(c.raddr)]
            assert process.memory_info().rss < 120e6
    finally:
        machine.end()
        place.rmdir()


PLUGIN = plan.find_shipped_folder().parent


def other_home(machine: Machine) -> dict[str, str]:
    """The environment of a user who has the plugin and no csmd."""
    return {"CSMD_HOME": str(machine.root / "no csmd")}


@pytest.mark.parametrize(
    ("why", "told"),
    [
        ("nothing is installed", "install the Python package csmd"),
        ("its Python is gone", "is gone"),
        ("turned off", "turned off in this session"),
        ("registered twice", ""),
    ],
)
def test_the_plugin_says_why_there_are_no_tools(machine: Machine, why: str, told: str) -> None:
    more: dict[str, str] = {}
    if why == "nothing is installed":
        more = other_home(machine)
    elif why == "its Python is gone":
        installed(machine).with_name("python").write_text("/nonexistent/python\n")
    elif why == "turned off":
        installed(machine)
        more = {"CSMD_DISABLE": "1"}
    else:
        from csmd.hosts import host_files
        from csmd.hosts.claude import registration

        installed(machine)
        machine.assistant.mkdir()
        wanted = host_files.Registration(home=machine.home, interpreter="/usr/bin/python3")
        (machine.assistant / ".claude.json").write_text(registration.merge_server("{}", wanted, "x"))
    with talking(machine, script=PLUGIN / "hooks" / "mcp", **more) as talk:
        assert talk.ask("server/discover", _meta=ENVELOPE)["error"]["code"] == -32601
        hello = talk.initialize()
        assert (told in hello["instructions"]) and bool(hello["instructions"]) == bool(told)
        assert talk.ask("tools/list")["result"] == {"tools": []}
        assert talk.ask("ping")["result"] == {}


def test_without_csmd_a_plugins_hooks_say_once_what_is_missing_and_keep_nothing(machine: Machine) -> None:
    hooks = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    notes = machine.root / "notes"
    said: list[bytes] = []
    for event, groups in hooks.items():
        (handler,) = groups[0]["hooks"]
        for root in (PLUGIN, machine.root / "gone"):
            done = subprocess.run(
                ["sh", "-c", handler["command"]], input=json.dumps({"session_id": "s"}).encode(), capture_output=True,
                env={**machine.environment(**other_home(machine)), "CLAUDE_PLUGIN_ROOT": str(root), "CLAUDE_PLUGIN_DATA": str(notes)},
                check=False,
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, b""), (event, done)
            said += [done.stdout] if done.stdout else []
    assert [b"needs the Python package csmd" in one for one in said] == [True]
    assert not (machine.root / "no csmd").exists(), "whoever took csmd away and left its plugin has nothing kept"


def test_people_are_told_that_it_is_not_for_them(machine: Machine) -> None:
    import pty

    keyboard, terminal = pty.openpty()
    done = machine.run("mcp", stdin=terminal)
    os.close(keyboard)
    os.close(terminal)
    assert done.returncode == 1 and "started by an assistant" in done.stderr


def test_other_verbs_do_not_load_the_sdk() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import sys, csmd.cli.main, csmd.mcp.stdio_server; print(int('mcp' in sys.modules or 'anyio' in sys.modules))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "0\n"
