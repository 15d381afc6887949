"""Decides whether to dream now; pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from csmd.config import Settings
from csmd.text import display
from csmd.text.ages import format_span
from csmd.text.display import amount

#: Runnable processes per core at which the machine counts as busy.
MAX_LOAD = 0.7
#: Pause after a failed dream; after an undone one it is as long as after any dream.
RETRY_AFTER = timedelta(hours=1)
#: A larger jump counts as a clock that was set back.
MAX_CLOCK_SKEW = timedelta(hours=1)
#: Longest wait of new memories for a dream; then it passes the gates in OVERDUE_PASSES.
OVERDUE_AFTER = timedelta(hours=24)
#: Begins the reason of a gate that opens by itself, after some time or some sessions.
WAIT_PREFIX = "after "


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFacts:
    """The state that the gates check; times as they are stored, "" for never; None if the machine does not tell.

    `last_at` is when the last finished dream began, `failed_at` when the latest dream ended if it failed, `undone_at`
    when a dream was last undone, `first_at` when the first session began. `sessions` counts those with a turn since
    `find_session_start`. `calm_s` are the seconds on the monotonic clock since the last event of a session, or since
    the daemon started. `crowded` names the tiers that are too large, `holder` the owner of the lock. `waiting_at` is
    when something new was first noticed since the last dream, `no_writes` why the database takes no writes or "".
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
    waiting_at: str = ""
    no_writes: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one gate: whether it is open, and why, in words for people."""

    gate: str
    is_open: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answers of all gates, in the order of the table; `overdue` is how long a dream has been due, in words."""

    answers: tuple[Answer, ...]
    overdue: str = ""

    @property
    def ok(self) -> bool:
        """Whether a dream may begin: all gates are open."""
        return all(answer.is_open for answer in self.answers)

    @property
    def words(self) -> str:
        """The verdict in words: `next dream after 2 more sessions and 19 h`, why one is due, or `off, ...`."""
        by_gate = {answer.gate: answer for answer in self.answers}
        if not by_gate["switch"].is_open:
            return by_gate["switch"].reason
        shown = [by_gate[gate] for gate in (OPEN_REASONS if self.ok else CLOSED_REASONS)]
        reasons = [answer.reason for answer in shown if answer.is_open == self.ok]
        if self.ok:
            return f"due now: {', '.join(dict.fromkeys(reasons))}"
        if self.overdue:
            advice = next(ADVICE[answer.gate] for answer in self.answers if not answer.is_open)
            reason = "; ".join(dict.fromkeys(reasons))
            return f"overdue, new memories have waited for {self.overdue}: {reason}; {advice}"
        parts = [part for reason in dict.fromkeys(reasons) for part in reason.split("; ")]
        awaited = display.join_names([part.removeprefix(WAIT_PREFIX) for part in parts if part.startswith(WAIT_PREFIX)])
        others = [part for part in parts if not part.startswith(WAIT_PREFIX)]
        return "; ".join([f"next dream {WAIT_PREFIX}{awaited}", *others]) if awaited else f"waits: {'; '.join(others)}"

    def closed(self, *, forced: bool = False) -> tuple[str, ...]:
        """Returns the reasons of the closed gates; for a `forced` dream only of those that cannot be forced."""
        closed = (answer for answer in self.answers if not answer.is_open)
        return tuple(answer.reason for answer in closed if not forced or answer.gate in NOT_FORCEABLE)


def find_session_start(now: datetime, last_at: str, every_h: int) -> str:
    """Returns the time from which sessions count: the last dream, or "" for never.

    If the last dream is in the future, because the clock was set back, it is `every_h` ago.
    """
    if last_at and datetime.fromisoformat(last_at) - now > MAX_CLOCK_SKEW:
        return (now - timedelta(hours=every_h)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return last_at


def ask_gates(settings: Settings, facts: GateFacts) -> Verdict:
    """Asks every gate."""
    answers = [Answer(name, *gate(settings, facts)) for name, gate in GATES.items()]
    waited = find_overdue(settings, facts)
    if waited is None:
        return Verdict(tuple(answers))
    overdue = format_span(waited)
    passed = f"overdue: new memories have waited for {overdue}"
    for index, answer in enumerate(answers):
        if answer.gate in OVERDUE_PASSES and not answer.is_open:
            answers[index] = Answer(answer.gate, True, passed)
    return Verdict(tuple(answers), overdue=overdue)


def find_overdue(settings: Settings, facts: GateFacts) -> timedelta | None:
    """Returns how long new memories have waited for a dream if that is too long; None otherwise."""
    if not facts.waiting_at or not facts.sessions or not settings.stages_dream:
        return None
    waited = facts.now - datetime.fromisoformat(facts.waiting_at)
    return waited if waited >= max(OVERDUE_AFTER, timedelta(hours=settings.dream_every_h)) else None


# --- the gates


def _check_time(settings: Settings, facts: GateFacts) -> tuple[bool, str]:
    since = facts.last_at or facts.first_at
    past = facts.now - datetime.fromisoformat(since) if since else timedelta(0)
    if past < -MAX_CLOCK_SKEW:
        return True, "the clock was set back since the last dream"
    if (remaining := timedelta(hours=settings.dream_every_h) - max(past, timedelta(0))) > timedelta(0):
        return _open_if_crowded(facts, f"{WAIT_PREFIX}{format_span(remaining, rounds_up=True)}")
    return True, f"{format_span(past)} since the {'last dream' if facts.last_at else 'first session'}"


def _count_sessions(settings: Settings, facts: GateFacts) -> tuple[bool, str]:
    if facts.sessions < settings.dream_sessions:
        remaining = settings.dream_sessions - facts.sessions
        return _open_if_crowded(facts, f"{WAIT_PREFIX}{remaining} more session{'' if remaining == 1 else 's'}")
    return True, amount(facts.sessions, "new session")


def _open_if_crowded(facts: GateFacts, why_not: str) -> tuple[bool, str]:
    """Opens if a tier is too large and there is anything new since the last dream."""
    is_open = bool(facts.crowded) and (facts.sessions > 0 or not facts.last_at)
    return is_open, facts.crowded[0] if is_open else why_not


def _check_retry(settings: Settings, facts: GateFacts) -> tuple[bool, str]:
    """Stays closed for a while after a dream that failed or was undone."""
    after_undo = timedelta(hours=settings.dream_every_h)
    events = (("failed", facts.failed_at, RETRY_AFTER), ("was undone", facts.undone_at, after_undo))
    for event, at, wait in events:
        remaining = wait - (facts.now - datetime.fromisoformat(at)) if at else timedelta(0)
        if timedelta(0) < remaining <= wait + MAX_CLOCK_SKEW:  # otherwise the clock was set back
            return False, f"the last dream {event}; retry in {format_span(remaining, rounds_up=True)}"
    return True, "no dream failed or was undone recently"


def _check_quiet(settings: Settings, facts: GateFacts) -> tuple[bool, str]:
    past = (facts.now - datetime.fromisoformat(facts.last_turn)).total_seconds() if facts.last_turn else math.inf
    quiet_s = min(facts.calm_s, past if past >= 0 else math.inf)
    busy = []
    if quiet_s < settings.dream_quiet_min * 60:
        remaining = timedelta(minutes=settings.dream_quiet_min) - timedelta(seconds=quiet_s)
        busy.append(f"{WAIT_PREFIX}{format_span(remaining, rounds_up=True)} of quiet")
    if facts.load is not None and facts.load > MAX_LOAD:
        busy.append(f"the machine is busy (load {facts.load:.1f} a core)")
    if facts.on_mains is False and not settings.dream_on_battery:
        busy.append("on battery")
    return not busy, "; ".join(busy) or f"quiet for {format_span(timedelta(seconds=quiet_s))}"


#: Cheapest first: settings, the store, the machine, the disk.
GATES: Mapping[str, Callable[[Settings, GateFacts], tuple[bool, str]]] = {
    "switch": lambda settings, _: (settings.stages_dream, "on" if settings.stages_dream else "off (stages.dream)"),
    "time": _check_time, "sessions": _count_sessions, "again": _check_retry, "quiet": _check_quiet,
    "lock": lambda _, facts: (not facts.holder, facts.holder or "free"),
    "storage": lambda _, facts: (not facts.no_writes, facts.no_writes or "the database takes writes"),
}  # fmt: skip
#: The gates whose reasons are shown, in this order, for an open verdict and for a closed one.
OPEN_REASONS = ("sessions", "time", "quiet")
CLOSED_REASONS = ("sessions", "time", "again", "quiet", "lock", "storage")
#: Gate that stops an overdue dream -> advice.
ADVICE: Mapping[str, str] = {
    "again": "`csmd dream run` does not wait", "lock": "if that process hangs, end it", "storage": "see `csmd doctor`",
}  # fmt: skip
#: The gates that a forced dream does not pass.
NOT_FORCEABLE = ("lock", "storage")
#: The gates that an overdue dream passes; a failed or undone dream, and another's lock, still stop it.
OVERDUE_PASSES = ("time", "sessions", "quiet")
