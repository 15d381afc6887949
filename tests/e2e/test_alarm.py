"""Memory that is not being recorded, seen with the real client: what the user is told, and that no model reads it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from e2e import client, scripted_api
from e2e.hosts import claude_code
from e2e.hosts.claude_code import in_order
from e2e.screen import on_screen
from e2e.test_main_job import kill_daemon

from csmd.daemon.alarms import ALARMS

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e

SAID = "csmd: memory is not being recorded: "
AWAY = f"{SAID}its daemon is not running (csmd start; csmd doctor says why)"
REFUSED = f"{SAID}nothing can be stored (csmd doctor says why)"
WORDS = {key: what for key, (what, _) in ALARMS.items()}
LIMIT_S = 60.0
latest_only = pytest.mark.parametrize("claude_build", claude_code.VERSIONS[:1], indirect=True)


def told(run: client.Finished) -> list[str]:
    """What the client says that hooks want the user to know."""
    heard = [message["stdout"] for message in run.stream if message.get("subtype") == "hook_response"]
    return [json.loads(text)["systemMessage"] for text in heard if "systemMessage" in text]


def read_by_a_model(run: client.Finished) -> bool:
    """Whether what hooks say reached a model; the memory server's instructions say it in words of their own."""
    seen = [scripted_api.seen_by_model(body) for body in [*run.main, *run.others]]
    return any(text in body for text in (AWAY, REFUSED) for body in seen)


def alarms(csmd: Csmd, *, until: bool) -> Any:
    """The alarms, as soon as there are some, or none."""
    limit = time.monotonic() + LIMIT_S
    while bool(alarms := csmd("status", "--json")["alarms"]) != until:
        assert time.monotonic() < limit, alarms
        time.sleep(0.5)
    return alarms


@pytest.mark.invariant(
    "A hook tells the user that memory is not being recorded, at most once a day, in constant words that no model reads"
)
def test_a_daemon_that_was_killed_is_told_once_a_day_and_to_no_model(
    sandbox: Sandbox, csmd: Csmd, claude: Client
) -> None:
    claude.servers = True
    csmd("install", "--json")
    kill_daemon(csmd)
    first = in_order(claude.run("Say something.", "Something."), 1, sandbox.home)
    assert told(first) == [AWAY]
    again = in_order(claude.run("And more.", "More.", options=["--resume", first.session_id]), 1, sandbox.home)
    assert told(again) == []
    assert not read_by_a_model(first) and not read_by_a_model(again)
    assert {path.name[:12] for path in (sandbox.csmd_home / "run").glob("told-*")} == {"told-script-"}

    csmd("start")
    for note in (sandbox.csmd_home / "run").glob("told-*"):
        note.unlink()
    back = csmd.hook("SessionStart", {"session_id": "s", "hook_event_name": "SessionStart", "source": "startup"})
    assert (back.returncode, back.stdout, back.stderr) == (0, b"", b""), "it is back, and nothing is said"


def test_a_person_in_a_terminal_reads_it(sandbox: Sandbox, csmd: Csmd, claude: Client) -> None:
    csmd("install", "--no-start", "--json")
    assert AWAY.replace(" ", "") in on_screen(sandbox, claude.command, typed=[(AWAY, "")])
    assert [path.name[:8] for path in (sandbox.csmd_home / "run").glob("told-*")] == ["told-202"]


@latest_only
@pytest.mark.long
def test_a_store_that_refuses_is_told(sandbox: Sandbox, csmd: Csmd, claude: Client) -> None:
    claude.servers = True
    csmd("install", "--json")
    in_order(claude.run("Say something.", "Something."), 1, sandbox.home)
    csmd("sync", "--json")
    csmd("stop")
    database = sandbox.csmd_home / "csmd.db"
    size = database.stat().st_size
    csmd("start")
    with database.open("r+b") as file:  # everything but the page that says that it is a database
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    csmd.run("tool", "csm_store_check")
    (alarm, *_) = alarms(csmd, until=True)
    assert (alarm["what"], alarm["do"]) == (WORDS["damaged"], "csmd repair")
    run = in_order(claude.run("Say something else.", "Something else."), 1, sandbox.home)
    assert told(run) == [REFUSED] and not read_by_a_model(run)


@pytest.mark.invariant(
    "Sessions that no hook reports are an alarm until one does; what is no trouble raises none; a store that refuses stands first"
)
@latest_only
@pytest.mark.long
def test_hooks_that_were_removed_by_hand_are_an_alarm_until_they_are_back(
    sandbox: Sandbox, csmd: Csmd, claude: Client
) -> None:
    claude.servers = True
    (sandbox.home / ".claude" / "projects").mkdir()  # else it is looked for once a minute
    csmd("install", "--json")
    assert csmd("status", "--json")["alarms"] == []
    sandbox.write_settings({})
    in_order(claude.run("Say something.", "Something."), 1, sandbox.home)
    (alarm,) = alarms(csmd, until=True)
    assert (alarm["what"], alarm["do"]) == (WORDS["gone"], "csmd install")
    shown = csmd("status").split("\n")
    assert "1 alarm" in shown[0] and " ".join(shown[2].split()).startswith(f"alarm {WORDS['gone']}"[:40]), shown
    csmd("install", "--json")
    alarms(csmd, until=False)
