"""Pauses of capture: their spans, the typed length of one, and the file that holds them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from csmd import wire
from csmd.errors import BadInput, ConfigError

#: A typed duration: `2h`, `1h30m`, `1d`.
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
#: Sorts after every stored time.
FOREVER = "~"
MAX_PAUSE_S = 366 * 86_400


@dataclass(frozen=True, slots=True)
class Pauses:
    """Pauses as (begin, end), in order; the end of the last is "" until it is resumed."""

    spans: tuple[tuple[str, str], ...] = ()
    by: str = ""
    """The caller who began the last pause, for people."""

    def covers(self, at: str) -> bool:
        """Whether a moment is in a pause; the end of a pause is not in it."""
        return self.touches(at, at)

    def touches(self, first: str, last: str) -> bool:
        """Whether any moment from `first` to `last` is in a pause."""
        # A pause that ends before it begins does not count: the clock was set back.
        spans = ((begin, end or FOREVER) for begin, end in self.spans)
        return any(begin <= last and first < end and begin < end for begin, end in spans)

    def find_current(self, now: str) -> tuple[str, str] | None:
        """Returns the current pause as (begin, end), its end "" until it is resumed; None if there is none."""
        if not self.spans:
            return None
        begin, end = self.spans[-1]
        return (begin, end) if not end or begin <= now < end else None

    def begin(self, now: str, *, end: str = "", by: str = "") -> Pauses:
        """Returns the pauses with a new one; a current pause gets the new end instead."""
        current = self.find_current(now)
        if current:
            return Pauses((*self.spans[:-1], (current[0], end)), by)
        return Pauses((*self.spans, (now, end)), by)

    def end(self, now: str) -> Pauses:
        """Returns the pauses with the current one ended; a pause that began after `now` ends when it began."""
        current = self.find_current(now)
        return Pauses((*self.spans[:-1], (current[0], max(current[0], now)))) if current else self


def parse_pauses(data: bytes, *, where: str) -> Pauses:
    """Parses the file of pauses; ConfigError if it is malformed, since ignoring it would capture too much."""
    try:
        value = wire.loads(data)
        rows = value["pauses"]
        spans, by = tuple((row["from"], row["to"]) for row in rows), str(value.get("by", ""))
        if not all(_TIME.fullmatch(begin) and (end == "" or _TIME.fullmatch(end)) for begin, end in spans):
            raise ValueError
        return Pauses(spans, by)
    except (BadInput, KeyError, TypeError, ValueError) as error:
        hint = f"correct it. To discard it (turns from past pauses will then be captured): mv {where} {where}.bad"
        raise ConfigError(f"{where}: not a list of pauses", hint=hint) from error


def format_pauses(pauses: Pauses) -> bytes:
    """Returns the bytes of the file of pauses."""
    rows = [{"from": begin, "to": end} for begin, end in pauses.spans]
    return f"{wire.pretty({'pauses': rows, 'by': pauses.by})}\n".encode()


def parse_duration(word: str) -> int:
    """Parses a duration (`2h`, `30m`, `1d`, `1h30m`) to seconds; BadInput if malformed or above a year."""
    match = _DURATION.fullmatch(word.strip().lower())
    days, hours, minutes, seconds = (int((part or "0")[:9]) for part in match.groups()) if match else (0,) * 4
    total = days * 86_400 + hours * 3_600 + minutes * 60 + seconds
    if not 0 < total <= MAX_PAUSE_S:
        raise BadInput(f"{word!r} is not a duration", hint="write e.g. 30m, 2h, 1h30m or 1d; at most a year")
    return total


class PauseFile:
    """Owns the pauses as last read; calling the object returns them, from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] = ()
        self._pauses = Pauses()
        self.reload()

    def __call__(self) -> Pauses:
        return self._pauses

    def reload(self) -> bool:
        """Reads the file if it has changed, and returns whether it had; after a ConfigError the old pauses apply."""
        stamp: tuple[int, ...] = ()
        try:
            info = self._path.stat()
            stamp = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
            if stamp == self._stamp:
                return False
            pauses = parse_pauses(self._path.read_bytes(), where=str(self._path))
        except FileNotFoundError:
            stamp, pauses = (), Pauses()
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}", hint="make it readable for its owner") from error
        is_changed = stamp != self._stamp
        self._pauses = pauses
        self._stamp = stamp
        return is_changed
