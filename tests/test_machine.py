"""What processes cost is told, lately and since they began."""

from __future__ import annotations

import os

import pytest

from csmd import machine


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
    usage = meter.usage(os.getpid())
    assert usage["rss_mb"] > 1 and usage["cpu_s"] > 0
    assert usage["cpu_recent_percent"] == usage["cpu_percent"] > 0
    assert meter.usage(None) == {} == meter.usage(2**22 + 1)
    assert machine.share(1.0, 0.0) == 0.0 == machine.share(1.0, -5.0)
