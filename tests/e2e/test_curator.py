"""The user's own assistant, asked as a language model, runs no hook, leaves no file behind and is no session to csmd."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e import model_apis, scripted_api
from e2e.hosts import claude_code

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.client import Client
    from e2e.conftest import Csmd, Recorder, Sandbox

pytestmark = pytest.mark.e2e


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, and every directory as an empty one."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }  # fmt: skip


@pytest.mark.invariant("An assistant that is asked as a language model leaves no file and no session behind")
def test_an_assistant_that_is_asked_leaves_nothing_behind(
    sandbox: Sandbox, claude: Client, csmd: Csmd, recorder: Recorder
) -> None:
    sandbox.write_settings({"hooks": recorder.settings("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")})
    csmd("install")
    (sandbox.home / ".claude" / "CLAUDE.md").write_text("Always sing.\n")
    claude.run("Look at the ponds.", "Two ponds.")  # somebody who uses it: what it writes at a first start is there
    csmd("sync")
    before_sessions = csmd("status", "--json")["counts"]["sessions"]
    server = scripted_api.serve({"prompt": "Say yes", "replies": [], "log": str(sandbox.path / "asked")})
    settings = json.loads(sandbox.settings_file.read_text())
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
    place = f"http://127.0.0.1:{server.server_address[1]}"
    # The daemon knows no key of a terminal's: the assistant has its own, as after a login.
    settings["env"] = {"ANTHROPIC_BASE_URL": place, "ANTHROPIC_API_KEY": claude_code.KEY, **nowhere}
    sandbox.write_settings(settings)
    starts = len(recorder.seen("SessionStart"))
    before = contents(sandbox.home)

    csmd("provider", "add", "assistant", "--program", claude.command[0], "--yes")
    done = csmd.run("provider", "test", "--json")
    server.shutdown()
    server.server_close()

    assert contents(sandbox.home) == before
    csmd("sync")
    assert csmd("status", "--json")["counts"]["sessions"] == before_sessions
    assert len(recorder.seen("SessionStart")) == starts
    if claude.version.startswith("2.0."):
        assert done.returncode == 1 and "csmd needs one that knows --safe-mode" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    (row,) = csmd("ledger", "--json")["rows"]
    assert (row["provider"], row["purpose"], row["calls"], row["estimated"]) == ("assistant", "test", 1, 0)
    assert (row["tokens_in"], row["tokens_out"]) == (model_apis.TOKENS_IN, model_apis.TOKENS_OUT)
    (question,) = [json.loads(path.read_text()) for path in sorted((sandbox.path / "asked").glob("*.json"))]
    assert not question.get("tools") and question["max_tokens"] == 20 and not question.get("thinking")
    seen = scripted_api.seen_by_model(question)
    assert "You answer with one word." in seen and "sing" not in seen and "ponds" not in seen
