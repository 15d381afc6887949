"""After README's first command: each registered hook reaches the daemon, nothing is spooled, the memory server is there."""

import json
import subprocess
from pathlib import Path

EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd"]


def csmd(*words):
    return json.loads(subprocess.run(["csmd", *words, "--json"], check=True, capture_output=True).stdout)


settings = json.loads((Path.home() / ".claude" / "settings.json").read_text())
assert list(settings["hooks"]) == EVENTS, settings
before = csmd("status")["counts"]["events"]
for event, groups in settings["hooks"].items():
    assert len(groups) == 1 and len(groups[0]["hooks"]) == 1, (event, groups)
    payload = {"session_id": "ci", "hook_event_name": event, "cwd": str(Path.home()), "prompt": "We use tabs here."}
    command = ["sh", "-c", groups[0]["hooks"][0]["command"]]
    done = subprocess.run(command, input=json.dumps(payload).encode(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b""), (event, done)
status = csmd("status")
assert status["counts"]["events"] - before == len(EVENTS), status["counts"]
assert status["spool"]["files"] == 0, status["spool"]
assert json.loads((Path.home() / ".claude.json").read_text())["mcpServers"]["csmd"]["type"] == "stdio"
print("six hooks are registered, each reached the daemon; so is the memory server")
