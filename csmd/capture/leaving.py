"""What of a transcript the user wants left out: said in a directory that is excluded or marked, or in a pause; pure.

A turn is judged by its own time and directory, whenever its line is read. One without a time may have been said at
any moment between its neighbours': it is left out when a pause lies there. A title goes with the turn before it, and
a conversation that began in a pause has none: it would tell what that was about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from csmd.capture import project, transcript
from csmd.capture.exclude import Excludes
from csmd.capture.fields import EPOCH
from csmd.capture.hosts.claude import Reading
from csmd.model import Project, Turn
from csmd.pauses import Pauses

#: The counter of turns that were said during a pause.
PAUSED = "paused turns"


@dataclass(slots=True, kw_only=True)
class Leaving:
    """How one reading of a transcript leaves out; each directory is asked about once."""

    excludes: Excludes
    place_of: Callable[[str], Project]
    off: bool = False
    """Whether the session began in a directory that is marked: then nothing of it stays."""
    began: str = EPOCH
    """The first time that the transcript tells."""
    latest: str = EPOCH
    """The time of what was read last."""
    written_at: str
    """When the file was: the time of what nothing else tells one of."""
    _paused: int = 0
    _out: bool | None = None
    _places: dict[str, bool] = field(default_factory=dict)

    def early(self, titles: dict[str, str]) -> dict[str, str]:
        """The titles among a transcript's first bytes, where no line says what was before them."""
        first = self.began if self.began != EPOCH else self.written_at
        return {} if self.off or self.excludes.pauses().touches(first, max(first, self.written_at)) else titles

    def apart(self, reading: Reading) -> tuple[Reading, list[Turn]]:
        """What stays of the next piece, each turn with a time, and the turns that were left out."""
        pauses = self.excludes.pauses()
        self.latest = self.latest if self.latest != EPOCH else self.written_at
        spans = spans_of(reading.turns, self.latest) if pauses.spans else []
        in_pause = [pauses.touches(*span) for span in spans] or [False] * len(reading.turns)
        out = [
            self.off or still or self._is_left_out(turn.cwd)
            for turn, still in zip(reading.turns, in_pause, strict=True)
        ]  # fmt: skip
        self._paused += sum(in_pause)
        titles = {} if self._hushed(pauses) else reading.titles
        titles = {session: title for session, title in titles.items() if not self._goes(session, reading, out, pauses)}
        told = [] if any(out) or self._hushed(pauses) else reading.worktrees
        turns = transcript.with_times(reading.turns, self.latest)
        reading = replace(reading, turns=turns, titles=titles, worktrees=told)
        if out:
            self._out, self.latest = out[-1], reading.turns[-1].at
        if not any(out):
            return reading, []
        gone = iter(out)
        left = [turn for turn, leaves in zip(reading.turns, out, strict=True) if leaves]
        return reading.only(lambda _: not next(gone)), left

    def news(self, *, first_time: bool) -> list[tuple[str, int]]:
        """What the counters do not know yet of the pauses: nothing where the lines are read again."""
        amount, self._paused = self._paused, 0
        return [(PAUSED, amount)] if amount and first_time else []

    def _hushed(self, pauses: Pauses) -> bool:
        return self.off or (self.began != EPOCH and pauses.covers(self.began))

    def _goes(self, session: str, reading: Reading, out: list[bool], pauses: Pauses) -> bool:
        place = reading.title_at.get(session, 0)
        if place:
            return out[place - 1]
        if self._out is not None:
            return self._out
        return (bool(out) and out[0]) or pauses.covers(self.latest)

    def _is_left_out(self, cwd: str) -> bool:
        if not self.excludes.ask_the_disk or not cwd:
            return False
        if cwd not in self._places:
            place = self.place_of(cwd)
            roots = project.roots(place)
            self._places[cwd] = self.excludes.place(cwd, *roots) or self.excludes.off(cwd, place.place, *roots)
        return self._places[cwd]


def spans_of(turns: list[Turn], latest: str) -> list[tuple[str, str]]:
    """From when to when each turn may have been said: its own time twice, or those of its neighbours.

    `latest` stands for a neighbour that is missing on both sides.
    """
    after: list[str] = []
    following = EPOCH
    for turn in reversed(turns):
        following = turn.at if turn.at != EPOCH else following
        after.append(following)
    found: list[tuple[str, str]] = []
    before = EPOCH
    for turn, then in zip(turns, reversed(after), strict=True):
        before = turn.at if turn.at != EPOCH else before
        ends = [at for at in (before, then) if at != EPOCH] or [latest]
        found.append((min(ends), max(ends)))
    return found
