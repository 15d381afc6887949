"""What csmd's processes cost: memory now, CPU since they began and lately, in per cent of one core."""

from __future__ import annotations

import threading
import time
from collections import deque

import psutil

#: "Lately" reaches back at least so far: over less, a few milliseconds would look like much.
LATELY_S = 10.0
MOST_SEEN = 64


class Meter:
    """Owns the CPU times that were seen, by process; asked from several threads."""

    def __init__(self) -> None:
        self._seen: dict[int, deque[tuple[float, float]]] = {}
        self._lock = threading.Lock()

    def usage(self, pid: int | None) -> dict[str, float]:
        """`rss_mb`, `cpu_s`, `cpu_percent` since the process began, `cpu_recent_percent`; empty for one that is gone."""
        if not pid:
            return {}
        try:
            process = psutil.Process(pid)
            times = process.cpu_times()
            rss, age = process.memory_info().rss, time.time() - process.create_time()
        except psutil.Error:
            return {}
        used, now = times.user + times.system, time.monotonic()
        with self._lock:
            if pid not in self._seen and len(self._seen) > 2:
                self._seen.pop(next(name for name in self._seen if name != pid))  # a worker of before
            seen = self._seen.setdefault(pid, deque(maxlen=MOST_SEEN))
            recent = lately(list(seen), now, used)
            seen.append((now, used))
        whole = share(used, age)
        return {
            "rss_mb": round(rss / 1e6, 1),
            "cpu_s": round(used, 2),
            "cpu_percent": whole,
            "cpu_recent_percent": whole if recent is None else recent,
        }


def lately(seen: list[tuple[float, float]], now: float, used: float) -> float | None:
    """Per cent of a core since the latest (time, CPU seconds) that is old enough; None where none is."""
    before = next(((at, then) for at, then in reversed(seen) if now - at >= LATELY_S), None)
    return None if before is None else share(used - before[1], now - before[0])


def share(used: float, seconds: float) -> float:
    """CPU seconds within a length of time as per cent of a core; a clock that was set gives no nonsense."""
    return round(100 * used / seconds, 2) if seconds > 0 else 0.0
