"""Whether to dream now, and the lock over the pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from csmd import wire
from csmd.config import Settings
from csmd.errors import BadInput
from csmd.text.display import amount

#: A machine with more runnable processes a core than this is at work, whoever is.
MOST_LOAD = 0.7
#: After a dream that failed, however it did, the next one waits so long; after one that was undone, as after a dream.
AGAIN = timedelta(hours=1)
#: A clock that was put right by so little was not set back.
SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the gates look at; times as they are stored, "" for never; None where the machine does not tell.

    `last_at` is when the last dream that was done began, `failed_at` when the latest of all ended if it failed,
    `undone_at` when the last that was undone was, `first_at` when the first session began. `sessions` have had a turn
    since `counted_from`. `calm_s` are the seconds on the monotonic clock since anything was heard of a session, or the
    daemon began. `crowded` says which tiers are beyond their size, `holder` who has the lock, in words.
    """

    now: datetime
    last_at: str = ""
    failed_at: str = ""
    undone_at: str = ""
    first_at: str = ""
    sessions: int = 0
    last_turn: str = ""
    calm_s: float = 0.0
    load: float | None = None
    on_mains: bool | None = None
    crowded: tuple[str, ...] = ()
    holder: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one gate says, in words for people, and whether it is open."""

    gate: str
    is_open: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What all of them say, in the order of the table."""

    answers: tuple[Answer, ...]

    @property
    def ok(self) -> bool:
        return all(answer.is_open for answer in self.answers)

    @property
    def words(self) -> str:
        """`no, 3 of 5 sessions, 19 h to go`; `off, ...` where the switch alone says enough."""
        said = {answer.gate: answer for answer in self.answers}
        if not said["switch"].is_open:
            return said["switch"].reason
        told = [said[gate].reason for gate in (WHY if self.ok else WHY_NOT) if said[gate].is_open == self.ok]
        return ", ".join(["yes" if self.ok else "no", *dict.fromkeys(told)])

    def closed(self, *, forced: bool = False) -> tuple[str, ...]:
        """Why not, gate by gate; of a dream that a person forces only those that nobody passes."""
        return tuple(
            answer.reason for answer in self.answers if not answer.is_open and (not forced or answer.gate in UNPASSABLE)
        )


def counted_from(now: datetime, last_at: str, every_h: int) -> str:
    """Since when sessions are new: the last dream, "" for never; where that lies in the future, `every_h` ago."""
    if last_at and _when(last_at) - now > SKEW:
        return (now - timedelta(hours=every_h)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return last_at


def ask_gates(settings: Settings, seen: Seen) -> Verdict:
    """Asks every gate, by the user's `dream.*` settings and the switch `stages.dream`."""
    return Verdict(tuple(Answer(name, *gate(settings, seen)) for name, gate in GATES.items()))


# --- the gates


def _switch(settings: Settings, _: Seen) -> tuple[bool, str]:
    return settings.stages_dream, "on" if settings.stages_dream else "off (stages.dream)"


def _time(settings: Settings, seen: Seen) -> tuple[bool, str]:
    since = seen.last_at or seen.first_at
    past = seen.now - _when(since) if since else timedelta(0)
    if past < -SKEW:
        return True, "the clock was set back since the last dream"
    if (left := timedelta(hours=settings.dream_every_h) - max(past, timedelta(0))) > timedelta(0):
        return _crowded(seen, f"{format_span(left, up=True)} to go")
    return True, f"{format_span(past)} since the {'last dream' if seen.last_at else 'first session'}"


def _sessions(settings: Settings, seen: Seen) -> tuple[bool, str]:
    if seen.sessions < settings.dream_sessions:
        return _crowded(seen, f"{seen.sessions} of {amount(settings.dream_sessions, 'session')}")
    return True, f"{seen.sessions} new session{'' if seen.sessions == 1 else 's'}"


def _crowded(seen: Seen, otherwise: str) -> tuple[bool, str]:
    """A tier beyond its size opens the gate, as soon as there is anything that no dream has seen yet."""
    if seen.crowded and (seen.sessions or not seen.last_at):
        return True, seen.crowded[0]
    return False, otherwise


def _again(settings: Settings, seen: Seen) -> tuple[bool, str]:
    """What went wrong, or was not wanted, is not done again at once."""
    for said, at, wait in (
        ("the last one failed", seen.failed_at, AGAIN),
        ("the last one was undone", seen.undone_at, timedelta(hours=settings.dream_every_h)),
    ):
        left = wait - (seen.now - _when(at)) if at else timedelta(0)
        if timedelta(0) < left <= wait + SKEW:  # beyond that the clock was set back
            return False, f"{said}, again in {format_span(left, up=True)}"
    return True, "nothing failed or was undone lately"


def _quiet(settings: Settings, seen: Seen) -> tuple[bool, str]:
    past = (seen.now - _when(seen.last_turn)).total_seconds() if seen.last_turn else math.inf
    quiet_s = min(seen.calm_s, past if past >= 0 else math.inf)
    busy = []
    if quiet_s < settings.dream_quiet_min * 60:
        busy.append(f"{int(quiet_s // 60)} of {settings.dream_quiet_min} min quiet")
    if seen.load is not None and seen.load > MOST_LOAD:
        busy.append(f"the machine is busy (load {seen.load:.1f} a core)")
    if seen.on_mains is False and not settings.dream_on_battery:
        busy.append("on battery")
    return not busy, ", ".join(busy) or f"quiet for {format_span(timedelta(seconds=quiet_s))}"


def _lock(_: Settings, seen: Seen) -> tuple[bool, str]:
    return not seen.holder, seen.holder or "nobody dreams"


#: Cheapest first: what is known without looking, what the store tells, what the machine tells, what lies on the disk.
GATES: Mapping[str, Callable[[Settings, Seen], tuple[bool, str]]] = {
    "switch": _switch, "time": _time, "sessions": _sessions, "again": _again, "quiet": _quiet, "lock": _lock,
}  # fmt: skip
#: What people are told, and in which order: of an open verdict, of one that is not.
WHY = ("sessions", "time", "quiet")
WHY_NOT = ("sessions", "time", "again", "quiet", "lock")
#: What even a person who forces a dream does not pass.
UNPASSABLE = ("lock",)


# --- times

#: Unit, its seconds, how many of it there are at least where it is told.
UNITS = (("d", 86_400, 3), ("h", 3600, 1), ("min", 60, 0))


def format_span(length: timedelta, *, up: bool = False) -> str:
    """A length of time in its greatest unit, in days from the third on: `19 h`; what is still to go is rounded `up`."""
    seconds = max(length.total_seconds(), 0.0)
    unit, size = next(((unit, size) for unit, size, least in UNITS if seconds >= size * least), ("min", 60))
    return f"{math.ceil(seconds / size) if up else int(seconds / size)} {unit}"


def _when(stamp: str) -> datetime:
    return datetime.fromisoformat(stamp)


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


def encode_holder(holder: Holder) -> bytes:
    """The file's content; as long at each heartbeat, so that one is written over the other."""
    return wire.dumps(asdict(holder)).encode("utf-8", "replace") + b"\n"


def decode_holder(said: bytes) -> Holder | None:
    """The holder that a file's content names; None where it names none."""
    types: dict[str, Callable[[Any], Any]] = {
        "host": str, "boot": str, "pid": int, "start": float, "beat": str, "token": str,
    }  # fmt: skip
    try:
        value = wire.loads(said)
        return Holder(**{name: as_type(value[name]) for name, as_type in types.items()})
    except (BadInput, KeyError, TypeError, ValueError, OverflowError):
        return None


def why_stale(holder: Holder, *, host: str, boot: str, started: Started, now: datetime) -> str:
    """Why a holder's lock is nobody's any more, seen from `host` at `now`; "" while it holds."""
    if holder.host == host:
        if holder.boot != boot:
            return "it was taken before the machine was started anew"
        began = started(holder.pid)
        if began is None:
            return "its process is gone"
        return "" if abs(began - holder.start) < SAME_START_S else "its process is gone, another has its number"
    return "" if was_heard_of(holder.beat, now) else "nothing was heard of it for an hour"


def was_heard_of(beat: str, now: datetime) -> bool:
    """Whether a sign of life is of the last hour; a time that nobody can read is of none."""
    try:
        return abs(now - datetime.fromisoformat(beat)) <= SILENT
    except (ValueError, TypeError, OverflowError):
        return False
