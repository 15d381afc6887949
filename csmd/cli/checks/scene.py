"""What the checks of `csmd doctor` look at, and what they say: values; whoever walks them has read the world first.

A check is a row: an id, a question, what to do, and a function from a Scene to findings, none when all is well. What
a finding tells of files it reads itself, and the walker bounds its time: a disk may be far away, or hang.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from csmd.cli.assistant import Registered, Source, registered
from csmd.paths import Paths

#: fail: what is said is not captured, or not as it was said. warn: it may be so. note: good to know.
#: unasked: only a daemon that answers could tell, and none does.
Level = Literal["fail", "warn", "note", "unasked", "ok"]
LEVELS: tuple[Level, ...] = ("fail", "warn", "note", "unasked", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a check found; without a remedy of its own it has its check's."""

    level: Level
    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One registered command that was run with a marker: how it ended, and how far its turn came."""

    event: str
    command: str
    took_ms: float
    problem: str = ""
    stored: bool = False
    spooled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything the checks are told; `status` is None where no daemon answers, and `trouble` says why."""

    paths: Paths
    cwd: Path
    user_home: Path
    platform: str
    now_s: float
    umask: int = 0o077
    env: Mapping[str, str] = field(default_factory=dict)
    recorded: tuple[Path, ...] = ()
    """The assistant's configuration directories that `csmd install` wrote to."""
    dirs: tuple[Path, ...] = ()
    """Those, and the one in force here."""
    problems: tuple[str, ...] = ()
    """What is wrong with csmd's own files: its configuration, its record of what it installed."""
    share: Path = Path()
    """The hook's files as this csmd ships them."""
    status: Mapping[str, Any] | None = None
    trouble: tuple[str, str] = ("", "")
    pid: int = 0
    """The daemon's process, also of one that does not answer; 0 for none."""
    sources: tuple[Source, ...] = ()
    states: Mapping[str, Any] = field(default_factory=dict)
    """What the client keeps of its directories, merged from its state files."""
    ran: tuple[Ran, ...] = ()
    store_problems: tuple[str, ...] | None = None
    """None where it was not asked."""
    broken_rules: tuple[tuple[str, str], ...] = ()
    """(what of the rules of what may be believed does not hold, the remedy)."""
    newest_turn: str = ""

    @property
    def hooks(self) -> tuple[Registered, ...]:
        """Every command that is registered anywhere."""
        return tuple(one for source in self.sources for one in registered(source))

    @property
    def ours(self) -> tuple[Registered, ...]:
        """Those that run the hook of this home."""
        return tuple(one for one in self.hooks if one.home == str(self.paths.home))


Look = Callable[[Scene], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A row of a table of checks; `limit_s` is how long it may take, `asks` whether a daemon has to answer."""

    id: str
    question: str
    remedy: str
    look: Look
    limit_s: float = 3.0
    asks: bool = False


def fail(what: str, remedy: str = "") -> Finding:
    """What is said is not captured."""
    return Finding(level="fail", what=what, remedy=remedy)


def warn(what: str, remedy: str = "") -> Finding:
    """It may not be captured as it should, or not for long."""
    return Finding(level="warn", what=what, remedy=remedy)


def note(what: str, remedy: str = "") -> Finding:
    """Good to know; nothing has to be done."""
    return Finding(level="note", what=what, remedy=remedy)
