"""A tool's failure, and the files at hand, over the socket: answered once with what an earlier session made of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from machine import Machine

FAILS = "Exit code 1\n# shop/till\ntill/tree.go:42:24: undefined: load_settings"
WHY = "The import of the settings package was missing, so I add it to the till."


def tool_lines(machine: Machine, number: int, tool: str, answer: str, **arguments: str) -> list[dict[str, Any]]:
    """A tool's call and what it answered, as the transcript tells them."""
    call = machine.line("assistant", "")
    call["message"]["content"] = [{"type": "tool_use", "id": f"t{number}", "name": tool, "input": arguments}]
    result = machine.line("user", "")
    result["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": answer}]
    return [call, result]


def fail(machine: Machine, session: str, **more: Any) -> str:
    """What the assistant would read when this fails in a session."""
    payload = {
        "tool_name": "Bash",
        "tool_input": {"command": "cd till; go build ."},
        "error": FAILS,
        "tool_use_id": session,
    }
    status, body = machine.event("PostToolUseFailure", session, **{**payload, "is_interrupt": False, **more})
    assert status == "ok", machine.log()
    return str(json.loads(body)["hookSpecificOutput"]["additionalContext"]) if body else ""


@pytest.mark.invariant(
    "A failure is answered once per context and never from that context; its event makes no turn and is never spooled"
)
def test_a_failure_is_answered_once_with_what_solved_it_and_is_stored_by_its_transcript_only(machine: Machine) -> None:
    machine.transcript(
        machine.line("user", "please make the till build again"),
        *tool_lines(machine, 1, "Bash", FAILS, command="go build ./..."),
        machine.line("assistant", WHY),
        *tool_lines(machine, 2, "Edit", "done", file_path=f"{machine.project}/till/tree.go"),
        *tool_lines(machine, 3, "Bash", "", command="go build ./..."),
    )
    machine.start()
    machine.sync()
    before = machine.status()["counts"]
    assert fail(machine, "new", is_interrupt=True) == "" and fail(machine, "new", tool_name="Read") == ""
    answer = fail(machine, "new")
    assert f'last fixed on 2026-05-04 by an edit of tree.go; the assistant said: "{WHY}"' in answer
    assert fail(machine, "new", duration_ms=2) == "", "it was told"
    assert fail(machine, "s1") == "", "the session that solved it has it in its context"
    after = machine.status()["counts"]
    assert {name: after[name] - before[name] for name in ("turns", "events", "injections")} == {
        "turns": 0, "events": 3, "injections": 1,
    }  # fmt: skip
    (error,) = machine.call("csm_error_list", project=str(machine.project))["errors"]
    assert error["times"] == 1 and f"({error['id']})" in answer
    shown = machine.csmd("why", "--session", "new")
    assert "when a tool failed: 1 note" in shown and f"{error['id']}  solved before; seen 1 time" in shown
    assert (
        "undefined: load_settings" in shown
        and "solved before" in machine.csmd("why", "--session", "new", "--json").__str__()
    )
    assert "session or receipt 'xfff'" in machine.run("show", "xfff").stderr


def test_a_prompt_that_names_a_file_and_a_compaction_bring_what_is_known_of_files_once(machine: Machine) -> None:
    cause = "The root cause: `till/tree.go` panics because its settings are loaded before the till has any."
    machine.transcript(machine.line("user", "why does it panic?"), machine.line("assistant", cause))
    machine.transcript(
        machine.line("user", "go on", session="new"),
        *[{**line, "sessionId": "new"} for line in tool_lines(machine, 1, "Read", "x", file_path="/x/till/tree.go")],
        session="new",
    )
    machine.start()
    machine.sync()
    recalled = machine.call("csm_memory_file_recall", project=str(machine.project), file="till/tree.go")
    (ident,) = (item["id"] for item in recalled["items"])
    assert recalled["text"].splitlines()[1:3] == ["On files at hand:", f"- {cause} (2026-05-04, {ident})"]
    shown = machine.csmd("recall", "--file", "till/tree.go")
    assert ident in shown and "1 note" in shown and all(len(line) <= 80 for line in shown.splitlines())
    assert machine.csmd("recall", "--file", "till/coin.go") == "no notes about till/coin.go\n"
    assert machine.run("recall", "--file", "x.go", "--prompt", "x").returncode == 2

    def prompt(session: str, words: str) -> bytes:
        return machine.event("UserPromptSubmit", session, prompt=words)[1]

    words = "Rename the helper in till/tree.go, please."
    assert ident.encode() in prompt("other", words) and prompt("other", words + " Now.") == b""
    assert ident.encode() in prompt("new", "Thanks, go on like that."), "it was read last"
    assert ident.encode() in machine.event("SessionStart", "new", source="compact")[1]
    assert machine.event("SessionStart", "new", source="resume")[1] == b""
