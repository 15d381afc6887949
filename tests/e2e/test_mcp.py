"""The memory server and the plugin on the real client: what a model keeps in one session it finds in the next.

The scripted API plays the model: it calls the tools under the names that the client gives them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from e2e import client, scripted_api
from e2e.hosts import claude_code
from machine import eventually
from terminal import Terminal

from csmd.hosts import host_files
from csmd.hosts.claude import registration
from csmd.installer import foreign_files, plan
from csmd.mcp import model_tools, stdio_server

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e

KEPT = "The heron exporter must run before the pelican one, because it makes the tables."
PREFERENCE = "I prefer pathlib over os.path in this code."
ALLOWED = ["--allowedTools", "mcp__csmd__remember,mcp__csmd__search,mcp__plugin_csmd_csmd__search"]


def change_servers(sandbox: Sandbox, *, put_in: bool) -> None:
    """Puts our server in or takes it out, as `csmd install` and `csmd uninstall` do."""
    path = sandbox.home / ".claude" / ".claude.json"
    with foreign_files.assistant_lock(path):
        text, home = path.read_text(), sandbox.csmd_home
        wanted = host_files.Registration(home=home, interpreter="/usr/bin/python3")
        merged, without = registration.merge_server(text, wanted, "x"), registration.remove_server(text, home, "x")
        path.write_text(merged if put_in else without)


def is_served(sandbox: Sandbox) -> bool:
    """Whether a server of ours serves already: the SDK puts standard input aside then. Where that cannot be seen, yes."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.cmdline()[-2:] == ["csmd", "mcp"] and process.environ().get("HOME") == str(sandbox.home):
                place = Path(f"/proc/{process.pid}/fd/0")
                return not place.parent.exists() or os.readlink(place) == "/dev/null"
    return False


def talk(claude: Client, prompt: str, *replies: str | dict[str, Any]) -> client.Finished:
    """A session whose model first looks around until csmd's server is up: the client does not wait for servers."""
    claude.servers = True
    gate = claude.sandbox.path / f"gate-{len(claude.runs)}"
    look = {
        "text": "I look.",
        "tool": "Bash",
        "input": {"command": "echo looked", "description": "Look"},
        "hold": str(gate),
    }
    running = claude.start(prompt, look, *replies, options=ALLOWED)
    running.wait_for_request(1)
    eventually(lambda: is_served(claude.sandbox))
    gate.touch()
    run = running.finish()
    assert run.exit_code == 0 and len(run.main) == len(replies) + 1, run
    return run


def use(name: str, **arguments: Any) -> dict[str, Any]:
    return {"text": "I will look.", "tool": name, "input": arguments}


def result_of_tool(run: client.Finished) -> str:
    """What the model read as the result of its one tool call."""
    blocks = [
        block for message in run.main[-1]["messages"] if isinstance(message["content"], list)
        for block in message["content"] if block.get("type") == "tool_result"
    ]  # fmt: skip
    return "\n".join(scripted_api.strings(blocks[-1]["content"]))


def given_tools(run: client.Finished) -> list[str]:
    """The names of csmd's tools whose schema the model was given without asking for it."""
    return sorted(tool["name"] for tool in run.main[-1]["tools"] if "csmd" in tool["name"])


def plugin(claude: Client, *arguments: str) -> str:
    """What `claude plugin ...` prints."""
    done = subprocess.run(
        [*claude.command, "plugin", *arguments], cwd=claude.sandbox.project, env=client.driver_environment(claude.driver, claude.sandbox.home, client.NOWHERE),
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    return done.stdout


def test_what_a_model_keeps_in_one_session_it_finds_in_the_next(sandbox: Sandbox, csmd: Csmd, claude: Client) -> None:
    csmd("install", "--json")
    first = talk(claude, "Mind the order.", use("mcp__csmd__remember", text=KEPT), "Kept.")
    assert given_tools(first) == sorted(f"mcp__csmd__{name}" for name in model_tools.TOOLS)
    assert stdio_server.INSTRUCTIONS.splitlines()[1] in scripted_api.seen_by_model(first.main[-1])
    assert "Saved as m" in result_of_tool(first) and "counts as yours" in result_of_tool(first)

    second = talk(claude, "What runs first?", use("mcp__csmd__search", query="heron exporter"), "Heron.")
    assert KEPT not in scripted_api.seen_by_model(second.main[0]), "nobody is told unasked what a model saved"
    assert KEPT in result_of_tool(second) and "by an assistant" in result_of_tool(second)

    csmd("sync", "--json")
    (memory,) = [row for row in csmd("memories", "--json")["memories"] if row["text"] == KEPT]
    assert memory["authority"] == "assistant" and csmd("show", memory["id"], "--json")["origin"] == "model_saved"
    knows_session = claude.version != "2.0.77"  # that one does not tell its servers which session they belong to
    assert memory["session_id"] == (first.session_id if knows_session else "")
    hits = csmd("search", "heron exporter", "--kind", "turn", "--json")["hits"]
    assert not [hit for hit in hits if "csmd-notes" in hit["text"]], "what csmd answered is not taken in again"
    assert (claude_code.reported_failures(second), claude_code.hook_failures(sandbox.home)) == ([], [])


@pytest.mark.long
def test_the_plugin_alone_and_beside_the_settings_hooks_captures_once_and_tells_once(
    sandbox: Sandbox, csmd: Csmd, claude: Client
) -> None:
    csmd("install", "--json")
    platform_home = sandbox.home / ".local" / "share" / "csmd"  # where the plugin's scripts look: nobody tells them
    platform_home.parent.mkdir(parents=True)
    platform_home.symlink_to(sandbox.csmd_home)
    by_hand: Path = sandbox.settings_file
    with_hooks = json.loads(by_hand.read_text())["hooks"]
    by_hand.write_text("{}")
    change_servers(sandbox, put_in=False)  # nothing is registered but the plugin
    root = str(plan.find_shipped_folder().parent)
    plugin(claude, "marketplace", "add", root)
    plugin(claude, "install", "csmd@csmd")
    if claude.version != "2.0.77":
        assert "Validation passed" in plugin(claude, "validate", root)
        (listed,) = json.loads(plugin(claude, "list", "--json"))
        assert (listed["id"], listed["enabled"], list(listed["mcpServers"])) == ("csmd@csmd", True, ["csmd"])

    alone = talk(claude, PREFERENCE, use("mcp__plugin_csmd_csmd__search", query="pathlib"), "Done.")
    assert given_tools(alone) == sorted(f"mcp__plugin_csmd_csmd__{name}" for name in model_tools.TOOLS)
    assert model_tools.FENCE_OPEN in result_of_tool(alone) or "Nothing found" in result_of_tool(alone)
    csmd("sync", "--json")
    after_alone = csmd("status", "--json")["counts"]
    (memory,) = csmd("memories", "--json")["memories"]
    assert memory["text"] == PREFERENCE
    # What a program hands over (`-p`) is told at no start until a person makes it theirs.
    pin = Terminal("pin", memory["id"], cwd=sandbox.project, environment=sandbox.environment())
    assert pin.ends() == 0, pin.said
    assert after_alone["events"] >= 4, after_alone

    settings = json.loads(by_hand.read_text())
    by_hand.write_text(json.dumps({**settings, "hooks": with_hooks}))
    change_servers(sandbox, put_in=True)
    for _ in range(8):  # a start that finds the machine busy is told nothing
        both = talk(claude, "Where were we?", "There.")
        if "pathlib over os.path" in scripted_api.seen_by_model(both.main[0]):
            break
    assert given_tools(both) == sorted(f"mcp__csmd__{name}" for name in model_tools.TOOLS), "the tools are there once"
    assert scripted_api.seen_by_model(both.main[0]).count("pathlib over os.path") == 1, "the brief is told once"
    csmd("sync", "--json")
    after_both = csmd("status", "--json")["counts"]
    assert after_both["turns"] - after_alone["turns"] == 5 and after_both["provisional"] == 0, (after_alone, after_both)
    started = [row for row in csmd("tool", "csm_receipts", "--json")["receipts"] if row["event"] == "session_start"]
    assert len(started) == 1, started
    assert (claude_code.reported_failures(both), claude_code.hook_failures(sandbox.home)) == ([], [])
