"""Newer events on the real client: they run where it knows them, an old one is not hurt, and they go when one appears."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from e2e import client, scripted_api
from e2e.hosts import claude_code
from machine import eventually

from csmd.hosts.claude import registration

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e

NEW, OLD = claude_code.VERSIONS


def put_on_the_machine(command: list[str], home: Path) -> None:
    """The client where its installer puts it."""
    path = home / ".local" / "bin" / "claude"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o755)


def registered(csmd: Csmd) -> list[str]:
    return [event for event in registration.FIRST_VERSIONS if csmd.hook_commands(event)]


def install(csmd: Csmd, version: str) -> None:
    """Installs beside a client of this version; skips where the machine has an older one of its own."""
    why = csmd("install", "--json")["kept_out_by"]
    if version == NEW and why:
        pytest.skip(f"newer events stay out on this machine: {why}")
    assert bool(why) == (version == OLD)


def test_newer_events_are_registered_where_the_client_knows_them_and_run(
    claude: Client, csmd: Csmd, sandbox: Sandbox
) -> None:
    before = sorted(str(path) for path in sandbox.home.rglob("*"))
    put_on_the_machine(claude.command, sandbox.home)
    install(csmd, claude.version)
    paths = {path for path in map(str, sandbox.home.rglob("*")) if path not in before}
    assert paths == {str(sandbox.home / ".local"), str(sandbox.home / ".local/bin"),
                     str(sandbox.home / ".local/bin/claude"), str(sandbox.settings_file)}  # fmt: skip
    assert registered(csmd) == (list(registration.FIRST_VERSIONS) if claude.version == NEW else [])
    run = claude.run("I prefer tabs over spaces.", "Noted.")
    assert run.exit_code == 0 and not claude_code.reported_failures(run) and not claude_code.hook_failures(sandbox.home)
    assert {"session_start", "prompt", "stop"} <= set(csmd("status", "--json")["last_event"])
    if claude.version == NEW:
        claude.run("/compact", "<summary>They prefer tabs.</summary>", options=("--resume", run.session_id))
        assert not claude_code.hook_failures(sandbox.home)
        assert "post_compact" in csmd("status", "--json")["last_event"]
    csmd("uninstall")
    assert not sandbox.settings_file.exists()


@pytest.mark.invariant(
    "Newer events are registered only where the oldest client in use knows them; settling brings nothing back"
)
@pytest.mark.parametrize("claude_build", [OLD], indirect=True)
@pytest.mark.long
def test_an_old_client_that_appears_has_them_taken_out_and_its_hooks_work(
    claude: Client, csmd: Csmd, sandbox: Sandbox
) -> None:
    try:
        put_on_the_machine(client.command_of(claude_code.driver(NEW), client.directory()), sandbox.home)
    except client.ClientMissingError as missing:
        pytest.skip(str(missing))
    install(csmd, NEW)
    assert registered(csmd) == list(registration.FIRST_VERSIONS)
    claude.run("I prefer tabs over spaces.", "Noted.")
    assert csmd("status", "--json")["last_event"] == {}, "an unknown event made it ignore the whole file"
    csmd("sync", "--no-vectors")
    csmd("restart")  # a new daemon looks at once
    eventually(lambda: not registered(csmd))
    assert eventually(lambda: csmd("status", "--json")["clients"]["kept_out_by"] == OLD)
    claude.run("I prefer short names, too.", "Noted.")
    assert {"session_start", "prompt", "stop"} <= set(csmd("status", "--json")["last_event"])
    assert csmd("install", "--json")["kept_out_by"] == OLD and registered(csmd) == []
    assert list(json.loads(sandbox.settings_file.read_text())["hooks"]) == list(registration.BASE_TIMEOUTS)


MARK = "<csmd-failure"
CHECK = 'test -f settings.txt || { echo "fatal: load_settings found no settings.txt" >&2; exit 3; }\n'
WHY = "The check failed because `load_settings` needs settings.txt, which nobody had written, so I write it now."


@pytest.mark.parametrize("claude_build", [NEW], indirect=True)
def test_a_failure_that_an_earlier_session_solved_is_answered_with_what_solved_it(
    claude: Client, csmd: Csmd, sandbox: Sandbox
) -> None:
    put_on_the_machine(claude.command, sandbox.home)
    install(csmd, NEW)
    (sandbox.project / "check.sh").write_text(CHECK)
    check = {"tool": "Bash", "input": {"command": "sh check.sh", "description": "Check"}}
    write = {"tool": "Write", "input": {"file_path": str(sandbox.project / "settings.txt"), "content": "x"}}
    edits = ("--permission-mode", "acceptEdits")
    first = claude.run("Make the check pass.", check, {"text": WHY, **write}, check, "It passes now.", options=edits)
    assert len(first.main) == 4 and MARK not in scripted_api.seen_by_model(first.main[-1]), "it was never seen before"
    csmd("sync", "--no-vectors")

    (sandbox.project / "settings.txt").unlink()
    more = [{"text": "Once more.", **check} for _ in range(2)]
    second = claude.run("Run the check, please.", check, *more, "It fails.")
    # With the first failure that is answered in time, which on a busy machine may be the second; and once.
    answered = [scripted_api.seen_by_model(body) for body in second.main[1:]]
    assert "PostToolUseFailure:Bash hook additional context" in answered[-1]
    assert f'last fixed on {first_day(csmd)} by an edit of settings.txt; the assistant said: "{WHY}"' in answered[-1]
    assert answered[-1].count(MARK) == 1, "told once"
    assert (
        claude_code.reported_failures(first),
        claude_code.reported_failures(second),
        claude_code.hook_failures(sandbox.home),
    ) == ([], [], [])
    receipts = csmd("why", "--session", second.session_id, "--json")["injections"]
    (receipt,) = [receipt for receipt in receipts if receipt["event"] == "tool_failure"]
    assert [item["reason"] for item in receipt["items"]] == ["solved before"]


def first_day(csmd: Csmd) -> str:
    """The day of the one fix that is known."""
    (error,) = csmd("errors", "--json")["errors"]
    return str(error["fixed_at"][:10])
