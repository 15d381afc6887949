"""csmd's plugin in OpenCode, run by Node: whose prompts it reports, and how long it makes the host wait."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

PLUGIN = Path(__file__).resolve().parents[2] / "hooks" / "opencode.js"
#: Gives a prompt to the plugin as the host does; `get` is how the host answers who began a session.
HOST = """
import {{ csmd }} from "./opencode.mjs"
const get = {get}
const hooks = await csmd({{ client: {{ session: {{ get }} }}, directory: "/p" }}, "opencode")
const prompt = async () => {{
  const parts = [{{ id: "prt_" + "0".repeat(26), type: "text", text: "Print it." }}]
  await hooks["chat.message"]({{ sessionID: "ses_1" }}, {{ message: {{ id: "msg_1" }}, parts }})
  return parts.map((part) => part.text)
}}
const begun = performance.now()
const told = [await prompt(), await prompt()]
console.log(JSON.stringify({{ told, waited: performance.now() - begun }}))
process.exit()
"""
ANSWERS = """#!/bin/sh
cat > /dev/null
echo "$1" >> "$(dirname "$0")/events"
printf '{"hookSpecificOutput": {"additionalContext": "known"}}'
"""


def run(folder: Path, get: str, launcher: str = ANSWERS) -> tuple[dict[str, Any], list[str]]:
    """What two prompts became, and the events that were reported."""
    if not (node := shutil.which("node")):
        pytest.skip("no node")
    shutil.copyfile(PLUGIN, folder / "opencode.mjs")
    (folder / "opencode").write_text(launcher)
    (folder / "opencode").chmod(0o700)
    (folder / "host.mjs").write_text(HOST.format(get=get))
    done = subprocess.run([node, folder / "host.mjs"], capture_output=True, timeout=60, check=True)
    events = folder / "events"
    return json.loads(done.stdout), events.read_text().split() if events.exists() else []


def test_a_persons_prompt_is_reported_and_told(tmp_path: Path) -> None:
    seen, events = run(tmp_path, "async () => ({ data: { id: 'ses_1' } })")
    assert seen["told"] == [["Print it.", "known"]] * 2
    assert events == ["SessionStart", "UserPromptSubmit", "UserPromptSubmit"]


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
@pytest.mark.parametrize(
    "get",
    [
        "async () => ({ data: { parentID: 'ses_0' } })",
        "async () => ({ error: { name: 'UnknownError' } })",
        "async () => undefined",
        "async () => { throw new Error('gone') }",
    ],
)
def test_a_prompt_of_a_session_of_which_nobody_knows_that_it_is_a_persons_is_not_reported(
    tmp_path: Path, get: str
) -> None:
    seen, events = run(tmp_path, get)
    assert (seen["told"], events) == ([["Print it."]] * 2, [])


def test_what_was_not_known_is_asked_again(tmp_path: Path) -> None:
    seen, _ = run(tmp_path, "(() => { let asked = 0; return async () => asked++ ? { data: {} } : { error: {} } })()")
    assert seen["told"] == [["Print it."], ["Print it.", "known"]]


@pytest.mark.parametrize(
    ("get", "launcher"),
    [
        ("() => new Promise(() => setInterval(() => {}, 1000))", ANSWERS),
        ("async () => ({ data: {} })", "#!/bin/sh\nexec sleep 20\n"),
    ],
)
def test_a_prompt_waits_for_one_deadline_whatever_hangs(tmp_path: Path, get: str, launcher: str) -> None:
    seen, _ = run(tmp_path, get, launcher)
    assert seen["told"] == [["Print it."]] * 2
    wait_ms = int(PLUGIN.read_text().partition("const WAIT_MS = ")[2].split()[0])
    # Two prompts, of which the first has a session's start before it: not three times the wait.
    assert seen["waited"] < 2.8 * wait_ms
