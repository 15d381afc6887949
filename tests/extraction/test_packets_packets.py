"""Packets of turns: by fixed names, with how it ended; the same however many turns come at a time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from csmd.extraction.packets import WINDOW, packets
from csmd.model import Heard, TurnKind


def heard(ordinal: int, kind: TurnKind, text: str, tool: str = "", tool_id: str = "") -> Heard:
    return Heard(
        uuid=f"u{ordinal}", session_id="s1", project_seq=1, kind=kind, text=text, ordinal=ordinal, tool_name=tool,
        tool_id=tool_id, at=f"2026-03-01T{ordinal // 3600:02}:{ordinal // 60 % 60:02}:{ordinal % 60:02}.000Z",
    )  # fmt: skip


def ran(ordinal: int, line: str, result: str = "ok") -> list[Heard]:
    call = heard(ordinal, "tool_call", f'{{"command":"{line}"}}', "Bash", f"t{ordinal}")
    return [call, heard(ordinal + 1, "tool_result", result, tool_id=f"t{ordinal}")]


def told(turns: list[Heard], after: int = 0) -> list[tuple[str, str, str, str]]:
    return [(one.kind, one.subject, one.outcome, one.uuid) for one in packets(turns, after=after)]


STORY = [
    heard(1, "user", "can we add a test for this?"),
    *ran(2, "mise run test", "Exit code 1\\nFAIL"),
    heard(4, "tool_call", '{"file_path":"/p/CHANGELOG.md"}', "Edit", "t4"),
    heard(5, "tool_result", "done", tool_id="t4"),
    heard(6, "user", "commit"),
    *ran(7, "git commit -m x"),
    heard(9, "user", "please deploy to staging"),
    *ran(10, "ls"),
]


def test_what_was_asked_and_done_is_named_with_how_it_ended() -> None:
    assert told(STORY) == [
        ("session", "begin", "", "u1"),
        ("order", "add a test for this", "asked", "u1"),
        ("tool", "mise run test", "failed", "u2"),
        ("error", "mise run test", "failed", "u2"),
        ("tool", "CHANGELOG.md", "ok", "u4"),
        ("order", "commit", "asked", "u6"),
        ("milestone", "git commit", "ok", "u7"),
        ("order", "deploy to staging", "asked", "u9"),
    ]


def test_a_call_is_a_packet_when_its_result_is_there_and_what_an_agent_was_told_is_no_order() -> None:
    assert told(STORY[:2]) == told(STORY[:1])
    assert told([replace(turn, agent=True) for turn in STORY if turn.kind == "user"]) == []
    assert told([replace(turn, kind="relayed") for turn in STORY if turn.kind == "user"]) == []


@given(st.lists(st.integers(0, 60), max_size=6))
def test_the_same_turns_give_the_same_packets_however_many_come_at_a_time(cuts: list[int]) -> None:
    turns = [
        one
        for number in range(6)
        for at in [number * 10]
        for one in (heard(at + 1, "user", "commit" if number % 2 else "no, add tests"), *ran(at + 2, "make lint", "Exit code 2"))
    ]  # fmt: skip
    whole = packets(turns, after=0)
    pieces, reached = [], 0
    for cut in sorted({*cuts, 60}):
        given_ = [turn for turn in turns if reached - WINDOW < turn.ordinal <= cut]
        pieces += packets(given_, after=reached)
        reached = cut
    assert pieces == whole
