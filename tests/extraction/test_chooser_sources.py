"""Which turns are sources: prompts, replies that are over, and what was found in the middle of long work."""

from __future__ import annotations

from csmd.extraction.chooser import Source, sources_of
from csmd.model import StoredTurn, TurnKind


def spoken(*places: tuple[int, TurnKind]) -> list[StoredTurn]:
    return [
        StoredTurn(
            seq=place, uuid=f"u{place}", session_id="s", project_seq=1, kind=kind, text="text", at="", ordinal=place
        )
        for place, kind in places
    ]


def found(*places: tuple[int, TurnKind], settled: bool = True) -> list[tuple[int, str]]:
    return [(source.turn.ordinal, source.role) for source in sources_of(spoken(*places), settled=settled)]


def test_the_last_assistant_text_before_the_next_user_turn_is_a_source() -> None:
    turns: list[tuple[int, TurnKind]] = [(1, "user"), (2, "assistant"), (5, "assistant"), (6, "user")]
    assert found(*turns) == [(1, "prompt"), (5, "reply"), (6, "prompt")]


def test_a_trailing_assistant_text_is_a_source_only_when_settled() -> None:
    assert found((1, "user"), (2, "assistant")) == [(1, "prompt"), (2, "reply")]
    assert found((1, "user"), (2, "assistant"), settled=False) == [(1, "prompt")]


def test_summaries_commands_and_notifications_are_no_sources_and_end_nothing() -> None:
    turns: list[tuple[int, TurnKind]] = [
        (1, "user"), (2, "assistant"), (3, "notification"), (4, "command"), (5, "summary"), (6, "assistant"),
    ]  # fmt: skip
    assert found(*turns) == [(1, "prompt"), (6, "reply")]


def test_no_turns_have_no_sources_of() -> None:
    assert sources_of([], settled=True) == []


def test_twenty_messages_with_three_calls_make_what_was_said_in_between_a_source() -> None:
    long: list[tuple[int, TurnKind]] = [(1, "user"), (21, "assistant"), (30, "assistant")]
    assert found(*long, settled=False) == [(1, "prompt"), (21, "midway")]
    assert found(*long) == [(1, "prompt"), (21, "midway"), (30, "reply")]
    short: list[tuple[int, TurnKind]] = [(1, "user"), (20, "assistant"), (30, "assistant")]
    assert found(*short) == [(1, "prompt"), (30, "reply")]
    talk: list[tuple[int, TurnKind]] = [(1, "user"), *((place, "assistant") for place in range(2, 40))]
    assert found(*talk) == [(1, "prompt"), (39, "reply")], "nobody called a tool"


def test_how_many_tools_were_called_is_told_from_the_places_between() -> None:
    assert sources_of(spoken((1, "user"), (8, "assistant")), settled=True)[1] == Source(
        spoken((8, "assistant"))[0], "reply", 3
    )
