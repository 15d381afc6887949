"""What the machine says: when a process began, how busy it is, whether it runs on mains power."""

from __future__ import annotations

import os

import psutil


def start_token(pid: int) -> float:
    """When a process began: with its pid and the machine's boot it names one process for good.

    In seconds since the boot where psutil makes a time of day of that: the clock may be set meanwhile.
    """
    return float(psutil.Process(pid).create_time()) - (psutil.boot_time() if psutil.LINUX else 0.0)


def started(pid: int) -> float | None:
    """The same; None where no process of ours has the pid, or one that has ended and nobody asked for."""
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return None
        return start_token(pid)
    except (psutil.Error, ValueError, OverflowError):
        return None


def load_per_core() -> float | None:
    """Processes that ran or waited to, a core, over the last minute; None where nobody counts."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except OSError:
        return None


def on_mains() -> bool | None:
    """Whether the machine runs on mains power; None where it has no battery, or none that tells."""
    if not hasattr(psutil, "sensors_battery"):
        return None
    try:
        battery = psutil.sensors_battery()
    except (psutil.Error, OSError, ValueError, NotImplementedError):
        return None
    return None if battery is None else battery.power_plugged
