"""What the background thread does by itself: it drops tool output that is due, makes backups, and notes how the store grows."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from machine import Machine

from csmd.capture import transcripts
from csmd.config import Settings
from csmd.daemon import housekeeping, status_report
from csmd.daemon.context import now_iso
from csmd.errors import StoreError
from csmd.store import activity, backup, compactions, fulltext, memories, text_retention

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
    assert not housekeeping.drop_expired(parts.store, chosen, now=SAID + timedelta(days=89))
    commits = parts.store.commits
    batches = 0
    while housekeeping.drop_expired(parts.store, chosen, now=SAID + timedelta(days=92)):
        batches += 1
        assert parts.store.commits == commits + batches, "one transaction each"
    assert batches == 3, "240 pieces, 100 at a time"
    assert spoken(parts) == before and len(before) == 240
    assert not parts.store.read(text_retention.has_output)


def test_with_no_days_and_no_limit_everything_is_kept(parts: Parts) -> None:
    take_in(parts, *tool_lines(parts.machine, 2))
    chosen = Settings(storage_tool_output_days=0, storage_max_mb=0)
    assert not housekeeping.drop_expired(parts.store, chosen, now=SAID + timedelta(days=9999))
    assert parts.store.read(lambda rows: status_report.list_retention_warnings(rows, chosen)) == []


def test_room_is_said_to_be_short_first_then_the_oldest_goes_until_it_is_not(parts: Parts) -> None:
    take_in(parts, *tool_lines(parts.machine, 300))
    before = spoken(parts)
    used = parts.store.read(lambda rows: text_retention.measure_room(rows, limit=0)).used
    assert used > 3 * housekeeping.BYTES_PER_MB
    near, below = Settings(storage_max_mb=-(-used // housekeeping.BYTES_PER_MB)), Settings(storage_max_mb=3)
    now = SAID + timedelta(days=1)

    def said(settings: Settings) -> str:
        return " ".join(parts.store.read(lambda rows: status_report.list_retention_warnings(rows, settings)))

    assert said(Settings(storage_max_mb=100)) == ""
    if used > near.storage_max_mb * housekeeping.BYTES_PER_MB * text_retention.SHORT_SHARE:
        assert "beyond it the oldest tool output is dropped" in said(near)
    assert not housekeeping.drop_expired(parts.store, near, now=now), "near the limit is not over it"
    assert "is being dropped" in said(below)
    while housekeeping.drop_expired(parts.store, below, now=now):
        pass
    room = parts.store.read(lambda rows: text_retention.measure_room(rows, limit=3 * housekeeping.BYTES_PER_MB))
    assert not room.is_over and parts.store.read(text_retention.has_output), "no more than need be"
    newest = parts.store.read(lambda rows: rows.value("select text from turns where uuid = 'r299'"))
    oldest = parts.store.read(lambda rows: rows.value("select text from turns where uuid = 'r0'"))
    assert "xxx" in newest and oldest.endswith("dropped for room]")
    assert spoken(parts) == before, "conversation never goes"


@pytest.mark.invariant(
    "Conversation goes only where the user says after how many days, and what was remembered of it stays"
)
def test_conversation_goes_where_the_user_says_so_once_it_was_distilled_and_what_is_remembered_stays(
    parts: Parts,
) -> None:
    path = parts.machine.conversation()
    options = transcripts.ReadOptions(now=now_iso, tool_limit=8192, quarantine=parts.machine.paths.quarantine)
    read = partial(transcripts.read_transcript, parts.store, path, options)
    chosen = Settings(storage_conversation_days=365, storage_tool_output_days=0)
    late = SAID + timedelta(days=400)
    read()
    before = spoken(parts)
    assert len(before) == 6
    assert not housekeeping.drop_expired(parts.store, chosen, now=late), "nothing was distilled of it yet"
    for number in range(60):
        parts.background.step(1000.0 + number)
    held = parts.store.read(lambda rows: memories.list_memories(rows, projects=None))
    assert held and parts.store.read(
        lambda rows: fulltext.text_hits(rows, "passage", ["database_url"], projects=None, limit=9)
    )
    for settings, now in ((Settings(), late), (chosen, SAID + timedelta(days=364))):
        assert not housekeeping.drop_expired(parts.store, settings, now=now)
    assert spoken(parts) == before
    while housekeeping.drop_expired(parts.store, chosen, now=late):
        pass
    assert all(text.endswith("bytes dropped after 365 days]") for _, text in spoken(parts))
    assert parts.store.read(lambda rows: memories.list_memories(rows, projects=None)) == held
    assert (
        parts.store.read(lambda rows: fulltext.text_hits(rows, "passage", ["database_url"], projects=None, limit=9))
        == []
    )
    assert not any(
        row.problem for row in parts.store.read(lambda rows: compactions.recount(rows, after=0, projects=None))
    )
    figures = parts.store.read(
        lambda rows: status_report.describe_retention(rows, chosen, activity.read_counters(rows))
    )
    assert (figures["conversation_days"], figures["conversation_turns_dropped"]) == (365, 6)
    # What is said in it later stays until it is as old.
    parts.machine.transcript(parts.machine.line("user", "We always use spaces in the docs.", uuid="later"))
    read()
    while housekeeping.drop_expired(parts.store, chosen, now=late - timedelta(days=40)):
        pass
    assert "We always use spaces in the docs." in dict(spoken(parts)).values()


def test_when_nothing_is_left_to_drop_the_user_is_told(parts: Parts) -> None:
    take_in(parts, *[parts.machine.line("user", f"Number {n}: " + "word " * 400, uuid=f"u{n}") for n in range(80)])
    chosen = Settings(storage_max_mb=1)
    assert not housekeeping.drop_expired(parts.store, chosen, now=SAID)
    (said,) = parts.store.read(lambda rows: status_report.list_retention_warnings(rows, chosen))
    assert "conversation is kept" in said and "raise storage.max_mb" in said


def test_the_background_drops_by_itself_but_not_at_its_start(parts: Parts) -> None:
    lines = tool_lines(parts.machine, 2)
    fresh = [{**line, "timestamp": datetime.now(UTC).isoformat(), "uuid": f"new-{line['uuid']}"} for line in lines]
    take_in(parts, *[{**line, "timestamp": "2001-05-04T08:00:00.000Z"} for line in lines], *fresh)

    def dropped() -> list[str]:
        found = parts.store.read(
            lambda rows: rows.all("select uuid from turns where dropped is not null order by uuid")
        )
        return [uuid for (uuid,) in found]

    assert dropped() == []
    while parts.background.step(housekeeping.RETENTION_EVERY_S):
        pass
    assert dropped() == ["a0/1", "a1/1", "r0", "r1"]


# --- The daemon makes a backup a day by itself, when something changed and the disk has room; a new one shifts an old one.


Usage = type(shutil.disk_usage("/"))


def grown_old(parts: Any, database: Path) -> None:
    """Moves the clock by a day, from where the store stands."""
    parts.store.write(lambda rows: rows.run("update migrations set applied_at = '2026-01-01T00:00:00.000Z'"))
    for path in backup.list_backups(database):
        path.rename(path.with_name("csmd-20260101T000000Z.db"))


def test_a_backup_is_made_once_a_day_and_only_when_something_changed(parts: Any) -> None:
    database = parts.store.path
    assert not housekeeping.make_daily_backup(parts.background.context), "the database is of today"
    grown_old(parts, database)
    assert housekeeping.make_daily_backup(parts.background.context) and not housekeeping.make_daily_backup(
        parts.background.context
    )
    assert len(backup.list_backups(database)) == 1
    grown_old(parts, database)
    (only,) = backup.list_backups(database)
    times = database.with_name("csmd.db-wal").stat().st_mtime_ns + 10**9
    os.utime(only, ns=(times, times))
    assert not housekeeping.make_daily_backup(parts.background.context), "nothing changed since"
    os.utime(only, ns=(0, 0))
    assert housekeeping.make_daily_backup(parts.background.context)
    assert len(backup.list_backups(database)) == 2
    object.__setattr__(parts.background.context.config.settings, "backup_every_h", 0)
    grown_old(parts, database)
    assert not housekeeping.make_daily_backup(parts.background.context)


def test_on_a_disk_without_room_none_is_made_and_status_says_so(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grown_old(parts, parts.store.path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100 * 10**9, 96 * 10**9, 4 * 10**9))
    with pytest.raises(StoreError, match="too full"):
        housekeeping.make_daily_backup(parts.background.context)
    clock = 1e6
    while parts.background.step(clock):
        clock += 1e3
    assert "too full" in parts.background.context.trouble["backup"] and not backup.list_backups(parts.store.path)
    monkeypatch.undo()
    parts.background.step(clock + housekeeping.BACKUP_CHECK_S * 2)
    assert len(backup.list_backups(parts.store.path)) == 1 and "backup" not in parts.background.context.trouble


def test_the_newest_few_are_kept(parts: Any) -> None:
    folder = backup.get_backup_directory(parts.store.path)
    folder.mkdir()
    for day in range(10, 20):
        (folder / f"csmd-202601{day}T000000Z.db").touch()
    made = housekeeping.make_backup(parts.background.context, None)
    kept = backup.list_backups(parts.store.path)
    assert len(kept) == parts.background.context.config.settings.backup_keep and str(kept[0]) == made["path"]
    assert made["removed"] == 6 and made["counts"] == parts.store.read(activity.counts)
    shown = status_report.describe_backups(parts.store.path)
    assert shown["backups"] == 5 and shown["backups_bytes"] == made["bytes"] and shown["last_backup"].startswith("20")


# --- How fast the store grows, as the background thread notes it day by day.


MB = 1_000_000


@pytest.mark.parametrize(
    ("noted", "used", "told"),
    [
        ([], 5, (None, 0)),
        ([("2026-05-04", 5)], 9, (None, 0)),
        # the first day is no measure: on it came everything that was there before
        ([("2026-05-01", 0), ("2026-05-04", 200 * MB)], 200 * MB, (None, 0)),
        ([("2026-05-01", 0), ("2026-05-02", 200 * MB), ("2026-05-04", 202 * MB)], 203 * MB, (1_500_000, 2)),
        ([("2026-04-01", 0), ("2026-04-02", 1 * MB), ("2026-04-24", 90 * MB), ("2026-05-04", 95 * MB)], 100 * MB, (1 * MB, 10)),
        ([("2026-05-01", 0), ("2026-05-02", 9 * MB)], 5 * MB, (-2 * MB, 2)),
        # a clock that was ahead, and one that is behind
        ([("2026-05-01", 0), ("2027-01-01", 9 * MB)], 5 * MB, (None, 0)),
    ],
)  # fmt: skip
def test_growth_is_told_per_day_over_the_last_two_weeks(
    noted: list[tuple[str, int]], used: int, told: tuple[Any, int]
) -> None:
    found = status_report.estimate_growth(noted, used=used, today=date(2026, 5, 4))
    assert (found["bytes_per_day"], found["days"]) == told


def test_the_background_notes_the_size_of_a_day_once(parts: Any) -> None:
    for now in (0.0, 1.0, housekeeping.GROWTH_EVERY_S + 1, 3 * housekeeping.GROWTH_EVERY_S):
        parts.background.step(now)
    ((_, size),) = parts.store.read(activity.list_sizes)
    assert size > 0
