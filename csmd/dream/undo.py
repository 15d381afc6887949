"""What undoing a dream takes: which go with it, what of each becomes what it was, and what stays as it is and why.

Nothing newer is lost and nothing that is gone comes back: what was changed since an action keeps its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from csmd.errors import CsmdError

#: The states of dreams that can be undone: what a killed or cancelled one did is in its journal, too.
UNDOABLE = ("done", "failed", "cancelled")
#: So many days two dreams may well be apart: a week without five new sessions is no rare one.
APART_DAYS = 7
#: What a use changes of a memory: its age begins again. That is no change of what is believed.
USE = frozenset({"used_at", "hot_until", "warm_until", "archive_at", "version"})
#: What counts the changes of a row, and says nothing by itself.
NUMBERS = frozenset({"version", "updated_at", "seq"})
#: What changes when days come to light or projects are merged and split: a memory goes along, and is the same.
PLACE = frozenset({"project_seq", "origin_seq", "hot_until", "warm_until", "archive_at"})
#: What is other than after the action -> what is said of that, the most telling first.
WHY: tuple[tuple[str, str], ...] = (
    ("text", "its wording changed since"),
    ("twin", "a merge of projects put it aside since"),
    ("superseded_by", "another memory took its place since, or gave it back"),
    ("pinned", "it was pinned or unpinned since"),
    ("status", "it was settled since"),
    ("sources", "it was said again since, or a source of it is gone"),
    ("evidence", "there is more or less evidence since"),
    ("tier", "its tier changed since"),
    ("confidence", "it is more or less sure since"),
)
GONE = "it was forgotten or purged since"
PURGED = "a part of it was purged since"
FORGOTTEN = "what it says was forgotten since"
CHANGED = "it changed since"
CROWDED = "another one like it waits"
EDITED = "the file was edited since"
TAKEN_AWAY = "a purge took away what it had done"


class Listed(Protocol):
    """A dream as it is listed."""

    @property
    def seq(self) -> int:
        """Its place among the others."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def state(self) -> str:
        """What became of it."""

    @property
    def begun_at(self) -> str:
        """When it began, as it is stored."""


def newest_first(dreams: Sequence[Listed], ident: str) -> list[str]:
    """The ids of the dreams to be undone for one to be: every one since that stands, the newest first, and that one.

    CsmdError where it cannot be undone.
    """
    wanted = next((dream for dream in dreams if dream.id == ident), None)
    if wanted is None:
        raise CsmdError(f"there is no dream {ident!r}", hint="csmd dream history")
    if any(dream.state == "running" for dream in dreams):
        raise CsmdError("a dream is under way: what it does cannot be told yet", hint="csmd dream status")
    if wanted.state not in UNDOABLE:
        raise CsmdError(f"the dream {ident} is undone already", hint=f"csmd dream diff {ident}")
    since = [dream for dream in dreams if dream.seq >= wanted.seq and dream.state in UNDOABLE]
    return [dream.id for dream in sorted(since, key=lambda dream: dream.seq, reverse=True)]


def outlived(dreams: Sequence[Listed], *, now: str, keep_days: int, every_h: int) -> list[int]:
    """The dreams that are older than their journal is kept, by row key.

    Between two dreams, and since the last, no more counts than they may well be apart: a clock that is set a year ahead
    makes none of them a year older, and where nobody was at work for months, nothing was forgotten at the first dream.
    """
    most = max(timedelta(days=APART_DAYS), 2 * timedelta(hours=every_h))
    found, age, later = [], timedelta(0), datetime.fromisoformat(now)
    for dream in sorted(dreams, key=lambda dream: dream.seq, reverse=True):
        begun = datetime.fromisoformat(dream.begun_at)
        age, later = age + min(max(later - begun, timedelta(0)), most), begun
        if age > timedelta(days=keep_days):
            found.append(dream.seq)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What else is so where a row is to become what it was; `leaning` are the memories that it has stood for since."""

    forgotten: bool = False
    purged: bool = False
    crowded: bool = False
    missing: str = ""
    leaning: Sequence[str] = ()


def is_back(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a row is what it was, whatever was done to it in between."""
    return not _other(was, now) - NUMBERS and bool(was) == bool(now)


def was_used(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a session has made use of a memory, and nothing else has happened to it."""
    other = _other(then, now)
    return "used_at" in other and other <= USE | PLACE


def why_kept(was: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any], around: Around = Around()) -> str:
    """Why a row stays as it is now, "" where it becomes what it was before the action that left it as it was `then`."""
    if is_back(was, now):
        return ""
    if then and not now:
        return GONE
    if around.purged:
        return PURGED
    if around.forgotten:
        return FORGOTTEN
    other = _other(then, now) - PLACE
    if other and not (was_used(then, now) and was and not was.get("superseded_by")):
        return next((words for name, words in WHY if name in other), CHANGED)
    if around.crowded:
        return CROWDED
    if around.missing:
        return f"{around.missing}, which took its place before, is gone"
    if not was and around.leaning:
        return f"it stands for {around.leaning[0]} since"
    return ""


def together(made: Mapping[str, str], kept: Mapping[str, str]) -> dict[str, str]:
    """What of an action stays: where something that it `made` has to stay, all of it does.

    Both are id -> why, "" for what goes back; a half-undone promotion would be done again.
    """
    stays = next((ident for ident, why in made.items() if why), "")
    if not stays:
        return {**kept, **made}
    return {ident: why or f"{stays}, which was made of it, stays" for ident, why in {**kept, **made}.items()}


def _other(one: Mapping[str, Any], another: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name in {**one, **another} if one.get(name) != another.get(name))


# --- files


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """One writing of a file; None where there was none, or is none any more. `purged`: what it was before holds such text."""

    seq: int
    before: str | None
    after: str | None
    purged: bool = False


def unwritten(chain: Sequence[Writing], content: str | None) -> dict[int, str]:
    """The writings of one file, the oldest first -> why each is not undone, "" for those that are.

    From the newest on each must have left what is there now: what somebody wrote in between stays, and what is below.
    One that is noted and was never done (the daemon was killed before it was), or that somebody has taken back by hand,
    has left what it found.
    """
    found: dict[int, str] = {}
    for one in reversed(chain):
        stays = next((why for why in found.values() if why), "")
        found[one.seq] = stays or (EDITED if content not in (one.after, one.before) else PURGED if one.purged else "")
        if not found[one.seq]:
            content = one.before
    return found
