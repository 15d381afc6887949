"""A transcript written again is one chain that the API takes, and reading it back brings the same turns."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from csmd.conversation import ExportedTurn
from csmd.hosts import transcript_reading
from csmd.hosts.claude import export, transcript
from csmd.paths import folder_name
from csmd.vocabulary import TurnKind

SESSION = "11111111-2222-4333-8444-555555555555"
EVALUATION = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[4] / "shared" / "eval")


def said(kind: TurnKind, text: str, uuid: str, **more: Any) -> ExportedTurn:
    return ExportedTurn(uuid=uuid, kind=kind, text=text, at="2026-05-04T08:00:00.000Z", **more)


def call(uuid: str, tool: str, text: str = '{"command":"ls"}', message: str = "m1") -> ExportedTurn:
    return said("tool_call", text, uuid, tool_id=tool, tool_name="Bash", message_id=message)


def result(uuid: str, tool: str, text: str = "a file") -> ExportedTurn:
    return said("tool_result", text, uuid, tool_id=tool)


def exported(*turns: ExportedTurn) -> list[dict[str, Any]]:
    made = export.export(turns, session_id=SESSION, cwd="/p", model="claude-x")
    lines = [json.loads(line) for line in made.lines]
    check_chain(lines)
    return lines


def blocks(line: dict[str, Any]) -> list[dict[str, Any]]:
    content = line["message"]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def check_chain(lines: Sequence[dict[str, Any]]) -> None:
    """One chain by parentUuid, every uuid once; each message's calls answered, by id, before anything else is said."""
    parent, waiting, speaking = None, set[str](), ""
    assert len({line["uuid"] for line in lines if "uuid" in line}) == sum("uuid" in line for line in lines)
    for line in lines:
        if "message" not in line:
            if line["type"] == "system":
                assert line["parentUuid"] is None and not waiting
                parent = line["uuid"]
            continue
        assert line["parentUuid"] == parent
        parent = line["uuid"]
        if line["type"] == "assistant":
            assert not waiting or line["message"]["id"] == speaking
        for block in blocks(line):
            if block["type"] == "tool_result":
                waiting.remove(block["tool_use_id"])
            elif line["type"] == "user":
                assert not waiting, "words stand between a call and its result"
            if block["type"] == "tool_use":
                waiting.add(block["id"])
                assert isinstance(block["input"], dict)
        speaking = line["message"].get("id", "")
    assert not waiting, "a call has no result"


def shape(lines: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """(who, kinds of blocks) of each message; `told` for tool traffic as text."""
    return [
        ("told" if line.get("isMeta") else line["type"], " ".join(block["type"] for block in blocks(line)))
        for line in lines
        if "message" in line
    ]


def test_a_call_and_its_result_stay_a_pair() -> None:
    lines = exported(
        said("user", "Look.", "u1"), call("a1", "t1"), result("r1", "t1"), said("assistant", "Seen.", "a2")
    )
    assert shape(lines) == [("user", "text"), ("assistant", "tool_use"), ("user", "tool_result"), ("assistant", "text")]
    assert [line["uuid"] for line in lines] == ["u1", "a1", "r1", "a2"]


def test_calls_made_together_are_answered_together() -> None:
    turns = (
        call("a1", "t1"),
        result("r1", "t1"),
        call("a2", "t2"),
        result("r2", "t2"),
        said("assistant", "Done.", "a3"),
    )
    lines = exported(said("user", "Look.", "u1"), *turns)
    assert [line["uuid"] for line in lines] == ["u1", "a1", "a2", "r1", "r2", "a3"]


def test_words_on_a_results_line_come_behind_every_result() -> None:
    turns = (
        call("a1", "t1"),
        call("a2", "t2"),
        said("user", "And test it.", "r1"),
        result("r1/1", "t1"),
        result("r2", "t2"),
    )
    lines = exported(said("user", "Look.", "u1"), *turns)
    assert [line["uuid"] for line in lines] == ["u1", "a1", "a2", "r2", "r1"]
    assert [block["type"] for block in blocks(lines[-1])] == ["tool_result", "text"]


@pytest.mark.invariant(
    "An exported session is taken by the client, goes only where it was asked for, and reading it back brings nothing new"
)
@pytest.mark.parametrize(
    "turns",
    [
        (call("a1", "t1"),),
        (result("r1", "t1"),),
        (call("a1", "t1", '{"command":"l\n[csmd: 9 bytes left out of turn a1]\ns"}'), result("r1", "t1")),
        (call("a1", "t1", "[tool input of 9 bytes dropped after 90 days]"), result("r1", "t1")),
        (call("a1", ""), result("r1", "")),
        (result("r1", "t1"), call("a1", "t1")),
        (call("a1", "t1"), said("summary", "What was done.", "s1"), result("r1", "t1")),
    ],
    ids=["no result", "no call", "trimmed", "dropped", "no id", "the wrong way round", "a compaction between"],
)
def test_what_is_no_whole_pair_is_told_as_text_in_nobodys_name(turns: tuple[ExportedTurn, ...]) -> None:
    lines = exported(said("user", "Look.", "u1"), *turns)
    told = [line for line in lines if line.get("isMeta")]
    assert len(told) == sum(turn.kind != "summary" for turn in turns)
    reading = transcript_reading.Reading(tool_limit=8192)
    for line in lines:
        transcript.read_line(json.dumps(line).encode(), reading)
    assert [turn.kind for turn in reading.turns if turn.kind != "summary"] == ["user"], "a tool's words become nobody's"


def test_a_call_that_is_told_twice_is_one_pair() -> None:
    turns = (call("a1", "t1"), result("r1", "t1"), call("b1", "t1", message="m2"), result("s1", "t1"))
    assert shape(exported(said("user", "Look.", "u1"), *turns)).count(("assistant", "tool_use")) == 1


def test_a_branch_that_a_rewind_left_behind_is_not_in_it() -> None:
    turns = [
        said("user", "Use MySQL.", "u1", parent_uuid="p"),
        said("assistant", "It is MySQL.", "a1", parent_uuid="u1"),
        said("user", "Use Postgres.", "u2", parent_uuid="p"),
        said("assistant", "It is Postgres.", "a2", parent_uuid="u2"),
    ]
    made = export.export(turns, session_id=SESSION, cwd="/p")
    assert [json.loads(line)["uuid"] for line in made.lines] == ["u2", "a2"]
    assert made.left_out == 2


def test_a_compaction_begins_the_conversation_anew() -> None:
    lines = exported(
        said("user", "Long ago.", "u1"), said("summary", "Of long ago.", "s1"), said("assistant", "Going on.", "a1")
    )
    boundary, summary = lines[1], lines[2]
    assert (boundary["subtype"], boundary["parentUuid"], boundary["logicalParentUuid"]) == (
        "compact_boundary",
        None,
        "u1",
    )
    assert (summary["isCompactSummary"], summary["parentUuid"]) == (True, boundary["uuid"])


def test_a_session_without_a_uuid_gets_the_same_one_each_time() -> None:
    one, other = (export.export([said("user", "Hi.", "u1")], session_id="mine", cwd="/p") for _ in range(2))
    assert one == other and one.session_id != "mine"
    assert export.make_resumable_id(SESSION) == SESSION


@pytest.mark.parametrize(
    ("path", "folder"),
    [("/a/b.c_d e", "-a-b-c-d-e"), ("/p/.hidden", "-p--hidden"), ("/p/\U0001f600", "-p---")],
)
def test_the_folder_is_named_as_the_client_names_it(path: str, folder: str) -> None:
    assert folder_name(path) == folder


KINDS: tuple[TurnKind, ...] = ("user", "assistant", "tool_call", "tool_result", "summary", "notification", "relayed")


@pytest.mark.invariant(
    "An exported session is taken by the client, goes only where it was asked for, and reading it back brings nothing new"
)
@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS), st.sampled_from(["", "t1", "t2", "t3"]), st.sampled_from(["m1", "m2", ""]),
            st.sampled_from(['{"a":1}', "words", "[", ""]), st.sampled_from(["", "p1", "p2"]), st.integers(0, 2),
        ),
        max_size=14,
    )
)  # fmt: skip
@example(
    [
        ("tool_call", "t3", "m1", '{"a":1}', "", 0),
        ("user", "", "", "words", "", 1),
        ("tool_result", "t3", "", "words", "", 0),
    ]
)  # what a user said under the name of a call's line: a line has one speaker
def test_whatever_was_said_the_export_is_a_chain_that_the_api_takes(rows: list[tuple[Any, ...]]) -> None:
    turns = []
    for number, (kind, tool, message, text, parent, place) in enumerate(rows):
        uuid = f"u{number}" if not place else f"u{max(number - place, 0)}/{number}"
        tool_name = "Bash" if kind == "tool_call" else ""
        turns.append(
            said(kind, text, uuid, tool_id=tool, tool_name=tool_name, message_id=message if kind in ("assistant", "tool_call") else "", parent_uuid=parent)
        )  # fmt: skip
    exported(*turns)


@pytest.mark.skipif(
    not (EVALUATION / "transcripts").is_dir(), reason=f"no real transcripts at {EVALUATION}; set CSMD_EVAL"
)
def test_real_transcripts_come_back_as_the_same_turns() -> None:
    for path in sorted((EVALUATION / "transcripts").rglob("*.jsonl"), key=lambda path: path.stat().st_size)[:40]:
        first = transcript_reading.Reading(tool_limit=10**9)
        for raw in path.read_bytes().splitlines():
            transcript.read_line(raw, first)
        turns = {turn.uuid: turn for turn in first.turns if not turn.agent_id}
        if not turns:
            continue
        stored = [
            ExportedTurn(uuid=t.uuid, kind=t.kind, text=t.text, at=t.at, parent_uuid=t.parent_uuid, message_id=t.message_id,
                     tool_name=t.tool_name, tool_id=t.tool_id, tokens=t.tokens) for t in turns.values()
        ]  # fmt: skip
        again = transcript_reading.Reading(tool_limit=10**9)
        for line in exported(*stored):
            transcript.read_line(json.dumps(line).encode(), again)
        for turn in again.turns:
            assert (turn.kind, turn.text) == (turns[turn.uuid].kind, turns[turn.uuid].text)
