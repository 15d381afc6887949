"""The steward drops tool output when it is due, a batch at a time, and says so before it does for want of room."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from machine import Machine

from csmd.config import Settings
from csmd.daemon import housekeeping
from csmd.store import turns as stored

if TYPE_CHECKING:
    from in_process import Parts

SAID = datetime(2026, 5, 4, tzinfo=UTC)


def tool_lines(machine: Machine, count: int, *, size: int = 7000) -> list[dict[str, Any]]:
    """Calls with results of a size, and what is said between them."""
    lines = []
    for number in range(count):
        asked = machine.line("assistant", "I look.", uuid=f"a{number}")
        asked["message"]["content"].append(
            {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"n": number}}
        )
        answer = machine.line("user", "", uuid=f"r{number}")
        answer["message"]["content"] = [
            {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} " + "x" * size}
        ]
        lines += [machine.line("user", f"Look at number {number}, please.", uuid=f"u{number}"), asked, answer]
    return lines


def take_in(parts: Parts, *lines: dict[str, Any]) -> None:
    parts.machine.transcript(*lines)
    parts.background.step(0.0)


def spoken(parts: Parts) -> list[tuple[str, str]]:
    return parts.store.read(
        lambda rows: rows.all("select uuid, text from turns where kind in ('user', 'assistant') order by uuid")
    )


def test_after_the_days_the_user_chose_tool_output_goes_in_small_batches(parts: Parts) -> None:
    take_in(parts, *tool_lines(parts.machine, 120, size=10))
    before = spoken(parts)
    chosen = Settings(storage_tool_output_days=90)
    assert not housekeeping.drop_some(parts.store, chosen, now=SAID + timedelta(days=89))
    commits = parts.store.commits
    batches = 0
    while housekeeping.drop_some(parts.store, chosen, now=SAID + timedelta(days=92)):
        batches += 1
        assert parts.store.commits == commits + batches, "one transaction each"
    assert batches == 3, "240 pieces, 100 at a time"
    assert spoken(parts) == before and len(before) == 240
    assert not parts.store.read(stored.is_any_output_left)


def test_with_no_days_and_no_limit_everything_is_kept(parts: Parts) -> None:
    take_in(parts, *tool_lines(parts.machine, 2))
    chosen = Settings(storage_tool_output_days=0, storage_max_mb=0)
    assert not housekeeping.drop_some(parts.store, chosen, now=SAID + timedelta(days=9999))
    assert parts.store.read(lambda rows: housekeeping.retention_warnings(rows, chosen)) == []


def test_room_is_said_to_be_short_first_then_the_oldest_goes_until_it_is_not(parts: Parts) -> None:
    take_in(parts, *tool_lines(parts.machine, 300))
    before = spoken(parts)
    used = parts.store.read(lambda rows: stored.room_taken(rows, limit=0)).used
    assert used > 3 * housekeeping.MB
    near, below = Settings(storage_max_mb=-(-used // housekeeping.MB)), Settings(storage_max_mb=3)
    now = SAID + timedelta(days=1)

    def said(settings: Settings) -> str:
        return " ".join(parts.store.read(lambda rows: housekeeping.retention_warnings(rows, settings)))

    assert said(Settings(storage_max_mb=100)) == ""
    if used > near.storage_max_mb * housekeeping.MB * stored.WARN_SHARE:
        assert "beyond it the oldest tool output is dropped" in said(near)
    assert not housekeeping.drop_some(parts.store, near, now=now), "near the limit is not over it"
    assert "is being dropped" in said(below)
    while housekeeping.drop_some(parts.store, below, now=now):
        pass
    room = parts.store.read(lambda rows: stored.room_taken(rows, limit=3 * housekeeping.MB))
    assert not room.is_over and parts.store.read(stored.is_any_output_left), "no more than need be"
    newest = parts.store.read(lambda rows: rows.value("select text from turns where uuid = 'r299'"))
    oldest = parts.store.read(lambda rows: rows.value("select text from turns where uuid = 'r0'"))
    assert "xxx" in newest and oldest.endswith("dropped for room]")
    assert spoken(parts) == before, "conversation never goes"


def test_when_nothing_is_left_to_drop_the_user_is_told(parts: Parts) -> None:
    take_in(parts, *[parts.machine.line("user", f"Number {n}: " + "word " * 400, uuid=f"u{n}") for n in range(400)])
    chosen = Settings(storage_max_mb=1)
    assert not housekeeping.drop_some(parts.store, chosen, now=SAID)
    (said,) = parts.store.read(lambda rows: housekeeping.retention_warnings(rows, chosen))
    assert "conversation is kept" in said and "raise storage.max_mb" in said


def test_the_steward_drops_by_itself_but_not_at_its_start(parts: Parts) -> None:
    lines = tool_lines(parts.machine, 2)
    fresh = [{**line, "timestamp": datetime.now(UTC).isoformat(), "uuid": f"new-{line['uuid']}"} for line in lines]
    take_in(parts, *[{**line, "timestamp": "2001-05-04T08:00:00.000Z"} for line in lines], *fresh)

    def dropped() -> list[str]:
        found = parts.store.read(
            lambda rows: rows.all("select uuid from turns where dropped is not null order by uuid")
        )
        return [uuid for (uuid,) in found]

    assert dropped() == []
    while parts.background.step(housekeeping.RETENTION_S):
        pass
    assert dropped() == ["a0/1", "a1/1", "r0", "r1"]
