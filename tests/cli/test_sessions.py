"""`csmd session` as people and scripts meet it: 80 columns, `--json`, files only where they were asked for."""

from __future__ import annotations

import json
import stat
from typing import Any

import pytest
from machine import Machine
from rich.cells import cell_len
from terminal import Terminal

LONG = "word " * 60 + "https://example.org/" + "a-very-long-path/" * 12


@pytest.fixture(scope="module")
def kept(shared_machine: Machine) -> Machine:
    """A machine with a long session whose transcript is gone, and one whose transcript is there."""
    lines: list[dict[str, Any]] = []
    for number, said in enumerate(("Use the heron queue.", LONG, "我们总是用四个空格缩进,从不使用制表符。" * 6)):
        call = shared_machine.line("assistant", "I look.", session="gone")
        call["message"]["content"].append(
            {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": LONG}}
        )
        answer = shared_machine.line("user", "", session="gone")
        answer["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": LONG * 20}]
        lines += [shared_machine.line("user", said, session="gone"), call, answer]
    gone = shared_machine.transcript(*lines, session="gone")
    shared_machine.conversation("here")
    shared_machine.start()
    shared_machine.sync()
    gone.unlink()
    return shared_machine


def fits(text: str) -> str:
    wide = [line for line in text.splitlines() if cell_len(line) > 80]
    assert not wide, "\n".join(wide)
    return text


def test_sessions_are_listed_with_when_how_long_and_whether_the_transcript_is_there(kept: Machine) -> None:
    shown = fits(kept.csmd("session", "list", "--all-projects"))
    assert [line.split()[0] for line in shown.splitlines()] == ["session", "here", "gone"]
    assert " there " in shown.splitlines()[1] and " gone " in shown.splitlines()[2]
    assert "project" in shown.splitlines()[0] and "heron" in shown
    found = kept.csmd("session", "list", "--limit", "1", "--json")["sessions"]
    assert [set(row) for row in found] == [
        {"id", "project", "title", "about", "turns", "memories", "started_at", "last_at", "transcript"}
    ]
    assert "no sessions here" in kept.csmd("session", "list", "--project", "/usr")


def test_the_facts_of_a_session_fit_the_screen(kept: Machine) -> None:
    shown = fits(kept.csmd("session", "show", "he"))
    assert "transcript: there" in shown and "memories" in shown and "statements" in shown
    assert {"agents", "statements", "memories", "injections", "kinds", "model", "version", "cwd"} <= set(
        kept.call("csm_session_show", id="gone")
    )


def test_a_conversation_is_read_with_tool_traffic_on_one_line_each(kept: Machine) -> None:
    shown = fits(kept.csmd("session", "transcript", "gone"))
    lines = shown.splitlines()
    assert "transcript: gone" in lines[1] and "  Use the heron queue." in lines
    assert sum("  tool      Bash" in line for line in lines) == sum("  answer " in line for line in lines) == 3
    results = [
        turn for turn in kept.call("csm_session_transcript", id="gone")["conversation"] if turn["kind"] == "tool_result"
    ]
    left_out = len(LONG) * 20 - 8192
    assert all(f"[csmd: {left_out} bytes left out of turn {turn['uuid']}]" in turn["text"] for turn in results)


@pytest.mark.invariant(
    "An exported session is taken by the client, goes only where it was asked for, and reading it back brings nothing new"
)
def test_an_export_is_printed_or_written_where_it_was_asked_for_and_nowhere_else(kept: Machine) -> None:
    before = set(kept.assistant.rglob("*"))
    printed = kept.run("session", "export", "gone")
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    assert printed.returncode == 0 and "claude --resume" in printed.stderr and "projects/" in printed.stderr
    target = kept.root / "out.jsonl"
    told = kept.csmd("session", "export", "gone", "--to", str(target), "--json")
    assert [json.loads(line) for line in target.read_text().splitlines()] == lines
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert set(told) == {"id", "session_id", "place", "resume", "left_out", "path", "transcript"}
    assert set(kept.assistant.rglob("*")) == before
    again = kept.run("session", "export", "gone", "--to", str(target))
    assert (again.returncode, again.stdout) == (1, "") and "nothing was written" in again.stderr


def test_status_says_what_is_kept_beyond_the_transcripts(kept: Machine) -> None:
    shown = " ".join(fits(kept.csmd("status")).split())
    assert "by the assistant 30 days of transcripts; by csmd 1 session more" in shown
    value = kept.status()
    assert {"used_bytes", "limit_bytes", "tool_outputs_dropped", "tool_output_bytes_dropped"} <= set(value["storage"])
    assert value["transcripts"]["gone"] == 1


def test_a_session_of_ones_own_is_written_withdrawn_and_loaded(kept: Machine) -> None:
    def write(kind: str, text: str, **more: Any) -> str:
        return str(
            kept.call(f"csm_session_write_{kind}", id="mine", text=text, project=str(kept.project), **more)["uuid"]
        )

    first = write("user", "I prefer tabs.", by_person=True)
    second = write("assistant", "Hi!", parent=first)
    kept.call("csm_session_tombstone", id="mine", uuid=second)
    loaded = kept.call("csm_session_load", id="mine")["messages"]
    assert [(message["uuid"], message["by_person"]) for message in loaded] == [(first, True)]
    kept.call("csm_session_write_summary", id="mine", text="They greeted.", replaces=first)
    loaded = kept.call("csm_session_load", id="mine")
    assert [message["text"] for message in loaded["messages"]] == ["They greeted."]
    assert (loaded["tombstoned"], loaded["replaced"]) == (1, 1)
    (path,) = kept.paths.sessions.glob("*/mine.jsonl")
    assert kept.call("csm_session_path", id="mine")["path"] == str(path)
    for words, said in ((["id=../mine", "text=Hello."], "cannot be a session's name"),
                        (["id=typed", "text=x", "by_person=true"], "by_person cannot be given")):  # fmt: skip
        params = [part for word in words for part in ("--param", word)]
        refused = kept.run("tool", "csm_session_write_user", *params)
        assert (refused.returncode, refused.stdout) == (1, "") and said in refused.stderr


def test_a_day_is_printed_as_markdown_within_the_width_of_the_terminal_or_of_80_columns(kept: Machine) -> None:
    title = "Keep the prices in cents, and round half up wherever a price is shown or printed or written."
    lines = [kept.line("user", title, session="day"), kept.line("assistant", "I change it.", session="day")]
    change = {"file_path": f"{kept.project}/price.py", "old_string": "a", "new_string": "b"}
    lines[1]["message"]["content"].append({"type": "tool_use", "id": "t9", "name": "Edit", "input": change})
    answer = kept.line("user", "", session="day")
    answer["message"]["content"] = [{"type": "tool_result", "tool_use_id": "t9", "content": "done"}]
    kept.transcript(*lines, answer, kept.line("assistant", "Done.", session="day"), session="day")
    kept.sync()
    told = fits(kept.csmd("today", "--date", "2026-05-04")).splitlines()
    assert told[0] == "# Monday, 2026-05-04" and told[2].startswith("## ") and told[4] == "- Uncommitted: `price.py`"
    terminal = Terminal("today", "--date", "2026-05-04", cwd=kept.project, environment=kept.environment())
    assert terminal.ends() == 0
    assert "\n  " in fits(terminal.said), "the rest of an entry stands below its words"
    assert "No changes on 2026-05-03" in kept.csmd("today", "--date", "2026-05-03")
