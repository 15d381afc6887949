"""From when to when the user wants nothing captured and nobody told: spans of time, and what falls into them; pure.

A span that was once chosen holds for good: what was said in it is left out whenever and from wherever it is read.
A pause that ends by itself needs no timer: times are compared. The file is JSON, `{"pauses": [{"from", "to"}]}`,
times as everywhere, `to` "" until it is resumed. The command line writes it, the daemon reads it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from csmd import wire
from csmd.errors import BadInput, ConfigError

#: A length of time as it is typed: `2h`, `1h30m`, `1d`.
_LENGTH = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
#: Later than every time that can be written.
FOREVER = "~"
LONGEST_S = 366 * 86_400


@dataclass(frozen=True)
class Pauses:
    """Spans of (begin, end) in the order they were chosen; the last one's end is "" until it is resumed."""

    spans: tuple[tuple[str, str], ...] = ()

    def covers(self, at: str) -> bool:
        """Whether a moment lies in a pause; its end does not."""
        return bool(self.spans) and self.touches(at, at)

    def touches(self, first: str, last: str) -> bool:
        """Whether some moment from `first` to `last` lies in a pause."""
        begins, ends = self._merged
        place = bisect_right(begins, last)
        return place > 0 and ends[place - 1] > first

    @cached_property
    def _merged(self) -> tuple[list[str], list[str]]:
        """Begins and ends of the same times without overlaps, in order: a clock may have been set back between two."""
        begins: list[str] = []
        ends: list[str] = []
        for begin, end in sorted((begin, end or FOREVER) for begin, end in self.spans):
            if ends and begin <= ends[-1]:
                ends[-1] = max(ends[-1], end)
            elif begin < end:
                begins.append(begin)
                ends.append(end)
        return begins, ends

    def current(self, now: str) -> tuple[str, str] | None:
        """(begin, end) of the pause that is on, its end "" until it is resumed; None when none is."""
        if self.spans and (not self.spans[-1][1] or self.spans[-1][0] <= now < self.spans[-1][1]):
            return self.spans[-1]
        return None

    def begun(self, now: str, *, end: str = "") -> Pauses:
        """With a pause from now on; one that is on goes on, to the new end."""
        on = self.current(now)
        earlier = self.spans[:-1] if on else self.spans
        return Pauses((*earlier, (on[0] if on else now, end)))

    def ended(self, now: str) -> Pauses:
        """With the pause that is on ended now; one from before the clock was set back ends where it began."""
        on = self.current(now)
        return Pauses((*self.spans[:-1], (on[0], max(on[0], now)))) if on else self


def parse(data: bytes, *, where: str) -> Pauses:
    """The pauses in a file's bytes; ConfigError for what is none: it says what the user wanted kept out."""
    try:
        value = wire.loads(data)
        rows = value["pauses"]
        spans = tuple((row["from"], row["to"]) for row in rows)
        if not all(_TIME.fullmatch(begin) and (end == "" or _TIME.fullmatch(end)) for begin, end in spans):
            raise ValueError
        return Pauses(spans)
    except (BadInput, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{where} cannot be read: it says from when to when nothing was to be captured",
            hint=f"correct it; without it those times are captured: mv {where} {where}.bad",
        ) from error


def written(pauses: Pauses) -> bytes:
    """The file's bytes."""
    rows = [{"from": begin, "to": end} for begin, end in pauses.spans]
    return f"{wire.pretty({'pauses': rows})}\n".encode()


def seconds(typed: str) -> int:
    """A length of time in seconds: `2h`, `30m`, `1d`, `1h30m`; BadInput for what is none, or more than a year."""
    match = _LENGTH.fullmatch(typed.strip().lower())
    total = 0
    if match and any(match.groups()):
        days, hours, minutes, rest = (int((part or "0")[:9]) for part in match.groups())
        total = days * 86_400 + hours * 3_600 + minutes * 60 + rest
    if not 0 < total <= LONGEST_S:
        raise BadInput(f"{typed!r} is no length of time", hint="such as 30m, 2h, 1h30m or 1d; at most a year")
    return total
