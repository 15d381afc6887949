"""Who holds the dream lock, as its file says, and whether that is stale; the file itself is the daemon's.

On one host a holder is stale when it is dead: its process is gone, began at another time, or ran before this boot;
however long it takes. Nobody sees another host's processes: from there it is stale after an hour without a heartbeat.
A heartbeat that lies more than an hour in the future is a wrong clock's and holds nobody up for good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from csmd import wire
from csmd.errors import BadInput

#: Another host is given up after this.
SILENT = timedelta(hours=1)
#: Two readings of one process's start differ by less.
SAME_START_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One process on one host: `boot` is that of its machine ("" where none is told), `start` when it began.

    `beat` is the time of its last sign of life, `token` a random one of each taking.
    """

    host: str
    boot: str
    pid: int
    start: float
    beat: str
    token: str

    @property
    def named(self) -> str:
        return f"{self.host} (process {self.pid})"


#: When a process began, None where there is none; as an argument, so that this module asks no machine.
Started = Callable[[int], float | None]


def text(holder: Holder) -> bytes:
    """The file's content; as long at each heartbeat, so that one is written over the other."""
    names = ("host", "boot", "pid", "start", "beat", "token")
    return wire.dumps({name: getattr(holder, name) for name in names}).encode("utf-8", "replace") + b"\n"


def read(said: bytes) -> Holder | None:
    """The holder that a file's content names; None where it names none."""
    try:
        value = wire.loads(said)
        return Holder(
            host=str(value["host"]), boot=str(value["boot"]), pid=int(value["pid"]), start=float(value["start"]),
            beat=str(value["beat"]), token=str(value["token"]),
        )  # fmt: skip
    except (BadInput, KeyError, TypeError, ValueError, OverflowError):
        return None


def stale(holder: Holder, *, host: str, boot: str, started: Started, now: datetime) -> str:
    """Why a holder's lock is nobody's any more, seen from `host` at `now`; "" while it holds."""
    if holder.host == host:
        if holder.boot != boot:
            return "it was taken before the machine was started anew"
        began = started(holder.pid)
        if began is None:
            return "its process is gone"
        return "" if abs(began - holder.start) < SAME_START_S else "its process is gone, another has its number"
    return "" if heard_of(holder.beat, now) else "nothing was heard of it for an hour"


def heard_of(beat: str, now: datetime) -> bool:
    """Whether a sign of life is of the last hour; a time that nobody can read is of none."""
    try:
        return abs(now - datetime.fromisoformat(beat)) <= SILENT
    except (ValueError, TypeError, OverflowError):
        return False
