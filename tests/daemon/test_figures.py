"""What the daemon tells of itself: what it costs, how the store grows, how large a model's context is."""

from __future__ import annotations

import os
from datetime import date
from typing import Any

import pytest

from csmd.daemon import housekeeping, machine
from csmd.hosts.claude import environment
from csmd.store import activity

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
    found = housekeeping.growth(noted, used=used, today=date(2026, 5, 4))
    assert (found["bytes_per_day"], found["days"]) == told


def test_the_steward_notes_the_size_of_a_day_once(parts: Any) -> None:
    for now in (0.0, 1.0, housekeeping.GROWTH_EVERY_S + 1, 3 * housekeeping.GROWTH_EVERY_S):
        parts.background.step(now)
    ((_, size),) = parts.store.read(activity.size_list)
    assert size > 0


@pytest.mark.parametrize(
    ("seen", "now", "used", "share"),
    [
        ([], 100.0, 5.0, None), ([(95.0, 1.0)], 100.0, 5.0, None), ([(90.0, 4.0)], 100.0, 5.0, 10.0),
        ([(0.0, 0.0), (80.0, 4.0), (99.0, 5.0)], 100.0, 5.0, 5.0),
    ],
)  # fmt: skip
def test_lately_is_since_a_look_that_is_old_enough(
    seen: list[tuple[float, float]], now: float, used: float, share: float | None
) -> None:
    assert machine.lately(seen, now, used) == share


def test_what_a_process_costs_is_told_and_nothing_of_one_that_is_gone() -> None:
    meter = machine.Meter()
    told = meter.usage(os.getpid())
    assert told["rss_mb"] > 1 and told["cpu_s"] > 0
    assert told["cpu_recent_percent"] == told["cpu_percent"] > 0
    assert meter.usage(None) == {} == meter.usage(2**22 + 1)
    assert machine.share(1.0, 0.0) == 0.0 == machine.share(1.0, -5.0)


@pytest.mark.parametrize(
    ("model", "used", "window"),
    [("claude-sonnet-4-5-20250929", 62_100, 200_000), ("claude-sonnet-4-5[1m]", 10, 1_000_000), ("", 0, 200_000),
     ("claude-opus-9", 200_001, 1_000_000), ("claude-2.0", 5, 100_000)],
)  # fmt: skip
def test_a_models_window_is_the_usual_one_unless_more_is_known(model: str, used: int, window: int) -> None:
    assert environment.window(model, used) == window
