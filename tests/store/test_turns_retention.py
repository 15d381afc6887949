"""Tool output goes by age and for want of room; what people and assistants said stays to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.store import activity, projects, sessions, turns
from csmd.store.core import Store
from csmd.store.integrity import integrity
from csmd.store.sqlite import Rows

Given = Any
KINDS = ("user", "tool_call", "tool_result", "assistant")


def fill(rows: Rows, given: Given, *, days: int, said: str) -> None:
    """A turn of each kind on each of some days."""
    project = projects.ensure(rows, given.project(), now=given.now)
    for day in range(days):
        for kind in KINDS:
            turn = given.turn(f"{kind}-{day}", f"{said} {day}", kind=kind, at=f"2026-01-{day + 1:02d}T00:00:00.000Z")
            turns.add_turn(rows, turn, text_hash=given.hash(turn.text), host="claude", project=project, path="/t")


def texts(rows: Rows) -> dict[str, str]:
    return {str(uuid): str(text) for uuid, text in rows.all("select uuid, text from turns")}


@pytest.mark.invariant("What was said outlives its transcript; only tool output is ever dropped, and stays dropped")
def test_only_tool_traffic_from_before_the_day_is_dropped_and_its_turns_stay(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=4, said="word " * 30))
    hashes = store.read(lambda rows: rows.all("select uuid, text_hash from turns order by uuid"))
    before = "2026-01-03T00:00:00.000Z"
    dropped = store.write(lambda rows: turns.drop_old_output(rows, before=before, days=90, limit=100))
    assert dropped == 4
    found = store.read(texts)
    size = len(f"{'word ' * 30} 0")
    assert found["tool_result-0"] == f"[tool output of {size} bytes dropped after 90 days]"
    assert found["tool_call-1"] == f"[tool input of {size} bytes dropped after 90 days]"
    kept = {uuid for uuid, text in found.items() if not text.startswith("[tool")}
    assert kept == {f"{kind}-{day}" for kind in KINDS for day in range(4) if day > 1 or not kind.startswith("tool")}
    assert store.read(lambda rows: rows.all("select uuid, text_hash from turns order by uuid")) == hashes
    listed = store.read(lambda rows: sessions.conversation(rows, 1, projects=None))
    assert len(listed) == 16 and [turn.dropped for turn in listed if turn.uuid == "tool_result-0"] == [size]
    assert store.write(lambda rows: turns.drop_old_output(rows, before=before, days=90, limit=100)) == 0
    counted = store.read(activity.counters)
    assert (counted[turns.DROPPED], counted[turns.DROPPED_BYTES]) == (4, 4 * size)
    assert store.write(integrity) == []


def test_the_oldest_goes_first_in_batches(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=3, said="word"))
    assert store.write(lambda rows: turns.drop_oldest_output(rows, limit=3)) == 3
    found = store.read(texts)
    assert {uuid for uuid, text in found.items() if "for room" in text} >= {"tool_call-0", "tool_result-0"}
    assert "for room" not in found["tool_call-2"] + found["tool_result-2"]
    assert store.write(lambda rows: turns.drop_oldest_output(rows, limit=100)) == 3
    assert store.write(lambda rows: turns.drop_oldest_output(rows, limit=100)) == 0
    assert not store.read(turns.is_any_output_left)


def test_what_has_no_time_is_not_old(store: Store, given: Given) -> None:
    def write(rows: Rows) -> int:
        project = projects.ensure(rows, given.project(), now=given.now)
        turn = given.turn("r", "said", kind="tool_result", at=turns.UNDATED)
        turns.add_turn(rows, turn, text_hash="h", host="claude", project=project, path="/t")
        return turns.drop_old_output(rows, before="2030-01-01T00:00:00.000Z", days=90, limit=100)

    assert store.write(write) == 0


@pytest.mark.invariant("What was said outlives its transcript; only tool output is ever dropped, and stays dropped")
def test_what_was_dropped_stays_dropped_when_its_transcript_is_read_again(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=1, said="word " * 30))
    store.write(lambda rows: turns.drop_oldest_output(rows, limit=100))
    before = store.read(texts)
    store.write(lambda rows: fill(rows, given, days=1, said="word " * 30))
    assert store.read(texts) == before


def test_room_is_what_is_used_and_not_what_the_file_has_grown_to(store: Store, given: Given) -> None:
    store.write(lambda rows: fill(rows, given, days=28, said="word " * 1500))
    used = store.read(lambda rows: turns.room_taken(rows, limit=0)).used
    file = store.read(lambda rows: rows.value("pragma page_count") * rows.value("pragma page_size"))
    store.write(lambda rows: turns.drop_oldest_output(rows, limit=1000))
    after = store.read(lambda rows: turns.room_taken(rows, limit=0)).used
    assert after <= used - 28 * 2 * 4096, (used, after)
    assert store.read(lambda rows: rows.value("pragma page_count") * rows.value("pragma page_size")) >= file
