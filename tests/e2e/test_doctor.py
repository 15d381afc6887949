"""What `csmd doctor` says against what the real client does: when hooks run, and when they are switched off."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from e2e.client import Client
    from e2e.conftest import Csmd, Sandbox

pytestmark = pytest.mark.e2e


def doctor(claude: Client, sandbox: Sandbox) -> tuple[int, dict[str, str], str]:
    """Its exit code, the level of what it found by check, and the verdict; `claude` is on the PATH."""
    shim = sandbox.path / "bin" / "claude"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(f'#!/bin/sh\nexec {shlex.join(claude.command)} "$@"\n')
    shim.chmod(0o755)
    env = {**sandbox.environment(), "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-m", "csmd", "doctor", "--json"], cwd=sandbox.project, env=env, capture_output=True,
                          stdin=subprocess.DEVNULL, timeout=60)  # fmt: skip
    value: dict[str, Any] = json.loads(done.stdout)
    levels = {check["id"]: check["level"] for check in value["checks"] if check["level"] != "ok"}
    return done.returncode, levels, value["verdict"]


def test_the_doctor_says_what_the_client_does(claude: Client, csmd: Csmd, sandbox: Sandbox) -> None:
    csmd("install", "--json")
    claude.run("Say something", {"text": "Something."})
    csmd("sync")
    before = csmd("status", "--json")
    assert before["counts"]["events"] >= 3 and before["counts"]["sessions"] == 1
    for _ in range(
        4
    ):  # a hook that a busy machine kept from its answer in time is a warning, which the next look has not
        code, levels, verdict = doctor(claude, sandbox)
        assert (code, verdict[:14]) == (0, "Capture works:") and levels.get("capture", "warn") == "warn", levels
        if "capture" not in levels:
            break
    # A client that is slow to start on a busy machine is not waited for: that is no more than a note.
    assert set(levels.values()) <= {"note"} and levels.keys() <= {"model", "commands", "client"}, levels
    after = csmd("status", "--json")
    assert (after["counts"], after["last_event"]) == (before["counts"], before["last_event"])

    settings = json.loads(sandbox.settings_file.read_text())
    sandbox.write_settings({**settings, "disableAllHooks": True})
    claude.run("Say something else", {"text": "Something else."})
    assert csmd("status", "--json")["counts"]["events"] == before["counts"]["events"]
    code, levels, verdict = doctor(claude, sandbox)
    assert (code, verdict[:18], levels["hooks-disabled"]) == (1, "Capture is broken:", "fail")
