"""`csmd context get`: what csmd trimmed of a tool's output, byte for byte, as long as a transcript has it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from machine import Machine

from csmd.text import display

#: Characters of several bytes at the cuts, line ends of every kind, colours, a mark of csmd's own.
OUTPUT = (
    "\x1b[31mred\x1b[0m\r\n"
    + "日本語 é line\n" * 900
    + "[csmd: 9 bytes left out of turn z]\r"
    + "ü" * 9000
    + "\nthe end"
)
SECRET = "AKIA" + "Q7R2T9W4X1Z8B5N3"
LIMIT = 8192


def call(machine: Machine, ident: str, given: dict[str, Any], *, session: str, uuid: str = "") -> dict[str, Any]:
    line = machine.line("assistant", "I look.", session=session, uuid=uuid)
    name = "Read" if "file_path" in given else "Bash"
    line["message"]["content"] = [{"type": "tool_use", "id": ident, "name": name, "input": given}]
    return line


def result(machine: Machine, ident: str, said: str, *, session: str, uuid: str) -> dict[str, Any]:
    line = machine.line("user", "", session=session, uuid=uuid)
    line["message"]["content"] = [{"type": "tool_result", "tool_use_id": ident, "content": said}]
    return line


def traffic(machine: Machine, name: str, said: str, *, session: str = "s1", **given: Any) -> list[dict[str, Any]]:
    return [
        call(machine, f"t-{name}", given or {"command": "make"}, session=session, uuid=f"call-{name}-1"),
        result(machine, f"t-{name}", said, session=session, uuid=f"result-{name}-1"),
    ]


CODEX_TIME = "2026-05-04T09:00:0{}.000Z"
CODEX = [
    ("session_meta", {"id": "019cb000-0000-7000-8000-000000000001", "cwd": "/p", "source": "cli", "cli_version": "0.169.0"}),
    ("response_item", {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": '{"cmd": "make"}'}),
    ("response_item", {"type": "function_call_output", "call_id": "c1", "output": OUTPUT}),
    ("response_item", {"type": "function_call_output", "call_id": "c2", "output": OUTPUT[::-1]}),
]  # fmt: skip


@pytest.fixture(scope="module")
def kept(shared_machine: Machine) -> Machine:
    machine = shared_machine
    machine.transcript(
        machine.line("user", "Build it."), *traffic(machine, "long", OUTPUT), *traffic(machine, "short", "ok\n"),
        *traffic(machine, "secret", f"{OUTPUT}\nkey {SECRET} used\n{OUTPUT}"),
        *traffic(machine, "withheld", OUTPUT, file_path="/p/.env"),
        *traffic(machine, "input", "written", command="cat > a.txt <<E\n" + "a line\n" * 4000 + "E"),
    )  # fmt: skip
    machine.transcript(*traffic(machine, "gone", OUTPUT, session="gone"), session="gone")
    machine.transcript(*traffic(machine, "edited", OUTPUT, session="edited"), session="edited")
    machine.transcript(
        *[{**line, "isSidechain": True, "agentId": "ab12"} for line in traffic(machine, "agent", OUTPUT)],
        session="agent-ab12", folder=machine.assistant / "projects" / "-project" / "s1" / "subagents",
    )  # fmt: skip
    rollout = machine.root / "rollout-2026-05-04T09-00-00-019cb000-0000-7000-8000-000000000001.jsonl"
    rollout.write_text("".join(
        json.dumps({"timestamp": CODEX_TIME.format(min(place, 2)), "type": kind, "payload": payload}) + "\n"
        for place, (kind, payload) in enumerate(CODEX)
    ))  # fmt: skip
    machine.start()
    machine.sync()
    machine.work("csm_import", path=str(rollout), vectors=False)
    machine.assistant.joinpath("projects/-project/gone.jsonl").unlink()
    edited = machine.assistant / "projects/-project/edited.jsonl"
    edited.write_text(edited.read_text().replace("the end", "The end"))
    return machine


def get(machine: Machine, ident: str) -> dict[str, Any]:
    (item,) = machine.call("csm_context_get", id=ident)["items"]
    return dict(item)


@pytest.mark.invariant(
    "Trimmed output is given back byte for byte, redacted, while a transcript has it, and nothing else is"
)
@pytest.mark.parametrize("name", ["long", "agent"])
def test_a_trimmed_output_is_given_back_byte_for_byte(kept: Machine, name: str) -> None:
    stored = kept.call("csm_turn_show", id=f"result-{name}-1")
    mark = f"[csmd: {len(OUTPUT.encode()) - LIMIT} bytes left out of turn result-{name}-1]"
    assert mark in stored["text"] and stored["dropped_bytes"] == len(OUTPUT.encode()) - LIMIT
    found = get(kept, f"result-{name}")
    assert (found["state"], found["source"], found["left_out"]) == ("whole", "transcript", 0)
    assert found["text"] == OUTPUT


def test_an_output_that_goes_into_a_pipe_is_that_of_the_tool_and_the_rest_is_said_beside_it(kept: Machine) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "csmd", "context", "get", "result-long-1"], env=kept.environment(), capture_output=True, check=True
    )  # fmt: skip
    assert done.stdout == OUTPUT.encode() and b"result-long-1  2026-05-04, from the transcript" in done.stderr
    shown = kept.csmd("show", "result-long-1")
    assert "csmd context get result-long-1" in shown.replace("\n", " ")


@pytest.mark.invariant(
    "Trimmed output is given back byte for byte, redacted, while a transcript has it, and nothing else is"
)
def test_what_is_given_back_is_redacted_as_what_is_stored(kept: Machine) -> None:
    found = get(kept, "result-secret-1")
    assert found["source"] == "transcript" and SECRET not in json.dumps(found)
    head, _, tail = found["text"].partition("[redacted:")
    assert head == f"{OUTPUT}\nkey " and tail.endswith(f" used\n{OUTPUT}")


def test_of_an_excluded_file_nothing_is_given_back(kept: Machine) -> None:
    found = get(kept, "result-withheld-1")
    assert (found["state"], found["source"]) == ("whole", "store") and "日本語" not in found["text"]


def test_a_short_output_and_a_trimmed_input_are_given_too(kept: Machine) -> None:
    assert (get(kept, "result-short-1")["text"], get(kept, "result-short-1")["source"]) == ("ok\n", "store")
    given = get(kept, "call-input-1")
    assert json.loads(given["text"])["command"].count("a line\n") == 4000 and given["tool"] == "Bash"


@pytest.mark.parametrize("name", ["gone", "edited"])
def test_where_no_transcript_says_the_same_what_is_kept_is_shown_with_what_is_missing(kept: Machine, name: str) -> None:
    found = get(kept, f"result-{name}-1")
    assert (found["state"], found["source"]) == ("trimmed", "store")
    assert found["left_out"] == len(OUTPUT.encode()) - LIMIT
    assert "bytes left out" in kept.run("context", "get", f"result-{name}-1").stderr


def test_outputs_of_codex_are_given_back_too_where_lines_share_their_time(kept: Machine) -> None:
    (session,) = [row for row in kept.call("csm_session_list")["sessions"] if row["id"].startswith("codex:")]
    turns = kept.call("csm_session_transcript", id=session["id"])["conversation"]
    results = [get(kept, turn["uuid"])["text"] for turn in turns if turn["kind"] == "tool_result"]
    assert results == [OUTPUT, OUTPUT[::-1]]


def test_savings_are_reported_each_and_in_all_and_the_audit_recounts_them(kept: Machine) -> None:
    report = kept.call("csm_memory_compact")
    assert report["outcomes"] == {"compressed": 8, "skipped_under_budget": 11, "failed": 0}
    assert report["budget_bytes"] == LIMIT and report["causes"] == {"size": 8}
    saved = [row["tokens_before"] - row["tokens_after"] for row in report["compactions"]]
    assert sum(saved) == report["tokens_saved"] == kept.status()["storage"]["tokens_saved"] > 10_000
    assert 40 < report["average_reduction"] < 99 and 40 < report["reduction"] < 99
    one = kept.call("csm_memory_compact", session="gone", limit=1)
    assert [row["get"] for row in one["compactions"]] == ["csmd context get result-gone-1"]
    audit = kept.call("csm_compaction_audit")
    assert audit["problems"] == [{"id": "result-edited-1", "problem": "its transcript says something else now"}]
    assert audit["reread"] == {"same": 6, "gone": 1} and not audit["sound"]
    assert audit["recounted"] == {**{name: audit["noted"][name] for name in ("compressed", "failed", "tokens_saved")},
                                  "unnoted": 0, "changed": 0}  # fmt: skip


def test_a_checkpoint_names_what_gives_a_long_output_whole(kept: Machine) -> None:
    made = kept.call("csm_checkpoint_create", session="s1")
    outputs = [part["text"] for part in made["parts"] if part["kind"] == "output"]
    assert f"make: {len(OUTPUT.encode())} bytes, `csmd context get result-long-1`" in outputs


def test_what_was_purged_is_not_given_back(kept: Machine) -> None:
    kept.work("csm_privacy_purge", what="result-secret-1", kind="turn", by_person=True)
    done = kept.run("context", "get", "result-secret-1")
    assert (
        done.returncode == 1
        and "purged" in done.stderr
        and display.find_cut(done.stdout, "turn result-secret-1") is None
    )
