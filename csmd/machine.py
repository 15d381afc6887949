"""The machine: process start times, load, mains power, cost of csmd's processes, freed memory, work that may hang."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")


#: Seconds by which two readings of a process's start may differ.
SAME_START_S = 0.005


def start_token(pid: int) -> float:
    """Returns when a process began, in seconds since boot; with the pid and the boot it identifies a process.

    psutil's time of day is not used, because it changes when the clock is set.
    """
    if not psutil.LINUX:
        return float(psutil.Process(pid).create_time())
    return int(_stat(pid)[19]) / os.sysconf("SC_CLK_TCK")


def started(pid: int) -> float | None:
    """Returns the `start_token` of a process; None if it is not the user's or has ended."""
    try:
        if (_stat(pid)[0] == "Z") if psutil.LINUX else psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return None
        return start_token(pid)
    except (psutil.Error, OSError, ValueError, OverflowError):
        return None


def _stat(pid: int) -> list[str]:
    """Returns the fields of /proc/PID/stat from the state on: the name before them may hold any character."""
    return Path(f"/proc/{int(pid)}/stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2].split()


def list_ancestors() -> list[str]:
    """Returns names of the programs that started this process, nearest first; a script counts by its own name."""
    names = []
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process().parents():
            with contextlib.suppress(psutil.Error):
                words = [process.name(), *process.cmdline()[:2]]
                names += [word.rpartition("/")[2].partition(".")[0] for word in words]
    return names


def load_per_core() -> float | None:
    """Returns the load average per core over the last minute; None if the system has none."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return None


def on_mains() -> bool | None:
    """Whether the machine runs on mains power; None if it has no battery, or an unknown one."""
    if not hasattr(psutil, "sensors_battery"):
        return None
    try:
        battery = psutil.sensors_battery()
    except (psutil.Error, OSError, ValueError, NotImplementedError):
        return None
    return None if battery is None else battery.power_plugged


#: Least seconds that "lately" covers, so that a few milliseconds do not look like much.
LATELY_S = 10.0
MAX_SEEN = 64


class Meter:
    """Owns the CPU times seen so far, by process; used by several threads."""

    def __init__(self) -> None:
        self._seen: dict[int, deque[tuple[float, float]]] = {}
        self._lock = threading.Lock()

    def usage(self, pid: int | None) -> dict[str, float]:
        """`rss_mb`, `cpu_s`, `cpu_percent` (since the start) and `cpu_recent_percent`; {} for a process that is gone."""
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
                self._seen.pop(next(name for name in self._seen if name != pid))  # an earlier worker
            seen = self._seen.setdefault(pid, deque(maxlen=MAX_SEEN))
            recent = lately(list(seen), now, used)
            seen.append((now, used))
        whole = share(used, age)
        return {
            "rss_mb": round(rss / 1e6, 1), "cpu_s": round(used, 2), "cpu_percent": whole,
            "cpu_recent_percent": whole if recent is None else recent,
        }  # fmt: skip


def lately(seen: list[tuple[float, float]], now: float, used: float) -> float | None:
    """Returns the percentage of a core since the latest sample that is old enough; None if there is none."""
    old_samples = (sample for sample in reversed(seen) if now - sample[0] >= LATELY_S)
    sample = next(old_samples, None)
    return None if sample is None else share(used - sample[1], now - sample[0])


def share(used: float, seconds: float) -> float:
    """Returns CPU seconds in a span of time as a percentage of a core, at least 0."""
    return round(100 * used / seconds, 2) if seconds > 0 else 0.0


#: Seconds after which a disk counts as hanging.
DISK_S = 2.0
#: Threads that wait for a hanging disk, possibly forever.
MAX_HANGING = 64
#: Hint if no thread can be started.
THREADS_HINT = "raise the limit on processes (`ulimit -u`, a service's TasksMax) or end some, then `csmd restart`"
_ROOM = threading.BoundedSemaphore(MAX_HANGING)


def start_in_thread(work: Callable[[], T]) -> Callable[[float], T | None] | None:
    """Starts `work` on a thread; returns a function that waits for its result, up to a limit in seconds from the start.

    Errors of `work` are raised to whoever waits; None means no result yet. A thread that hangs is left behind and keeps
    nothing from ending. Returns None if no thread can be started: MAX_HANGING hang, or the system gives none.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised to whoever waits
            future.set_exception(error)
        finally:
            _ROOM.release()

    started = time.monotonic()
    if not _ROOM.acquire(blocking=False):
        return None
    try:
        threading.Thread(target=run, daemon=True, name="csmd-bounded").start()
    except RuntimeError:  # a limit on processes
        _ROOM.release()
        return None

    def wait(limit_s: float) -> T | None:
        futures.wait([future], max(0.0, started + limit_s - time.monotonic()))
        return future.result() if future.done() else None

    return wait


def run_bounded(work: Callable[[], T], limit_s: float) -> T | None:
    """Returns the result of `work`, None if it exceeds its limit or cannot start; raises its errors."""
    wait = start_in_thread(work)
    return None if wait is None else wait(limit_s)


#: glibc's number of the option that limits the number of memory pools.
M_ARENA_MAX = -8


def limit_memory_pools() -> None:
    """Limits the allocator to two pools, because a pool for each thread would scatter and keep freed memory."""
    _call_allocator("mallopt", M_ARENA_MAX, 2)


def release_freed_memory() -> None:
    """Collects garbage, and returns the freed memory that the allocator would keep."""
    gc.collect()
    _call_allocator("malloc_trim", 0)


def _call_allocator(name: str, *arguments: int) -> None:
    """Calls a function of glibc's allocator; other allocators lack it, and free memory by themselves."""
    with contextlib.suppress(AttributeError, OSError):
        getattr(ctypes.CDLL(None), name)(*arguments)
