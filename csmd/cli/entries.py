"""What csmd writes into files of the assistant's: one row for each kind of entry; install and uninstall walk the table.

A row says which file holds the entry, and what that file is with it and without it; both are pure. Several kinds may
share a file: they go in in the table's order and out in the reverse. A kind that is not wanted (any more) is taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from csmd import config
from csmd.cli import edited, mcp_config, settings, status_line
from csmd.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """What the entries are made of; `interpreter` outlives csmd's environment, `python` is the one csmd runs on."""

    home: Path
    interpreter: str
    python: str
    chosen: Settings
    events: tuple[str, ...] = tuple(settings.EVENTS)
    """The events that are registered: those that every client in use knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of entry: its `name` in the record, and `what` it is for people.

    `file` tells the file in one of the assistant's configuration directories. `merge(before, ours, where)` gives the
    file with the entry (`before` None for no file), `remove(current, home, where)` without it; `where` is the file's
    name in errors. Merging what was merged, and removing where nothing of this home stands, changes nothing.
    """

    name: str
    what: str
    file: Callable[[Path], Path]
    merge: Callable[[bytes | None, Ours, str], bytes]
    remove: Callable[[bytes, Path, str], bytes]
    wanted: Callable[[Ours], bool] = lambda _: True
    taken: Callable[[bytes, Ours, str], str] = lambda *_: ""
    """Of a file with the entry: what to tell the user where somebody else's has its place and ours is not in; else ""."""
    shared: bool = False
    """Whether the assistant writes the file all the time: it is written under its lock, and shown without its other lines."""


def settings_file(folder: Path) -> Path:
    """The assistant's user settings in one of its configuration directories."""
    return folder / "settings.json"


def state_file(folder: Path) -> Path:
    """The file in which the assistant keeps its servers, for one of its configuration directories.

    For the usual one that is beside it, unless CLAUDE_CONFIG_DIR names it, or did when the only such file was made.
    """
    usual = config.user_home() / ".claude"
    beside, inside = (mcp_config.config_file(folder, user_home=usual.parent, chosen=one) for one in (False, True))
    chosen = folder != usual or config.is_chosen(folder) or (inside.exists() and not beside.exists())
    return inside if chosen else beside


def _with_status_line(before: bytes | None, ours: Ours, where: str) -> bytes:
    data = before if before is not None and not edited.is_blank(edited.text_of(before, where)) else b"{}\n"
    return _of_text(data, where, lambda text: status_line.merge(text, ours.interpreter, ours.home))


def _foreign_status_line(current: bytes, ours: Ours, where: str) -> str:
    text = edited.text_of(current, where)
    foreign = not edited.is_blank(text) and status_line.is_foreign(text, ours.home)
    return status_line.advice(ours.interpreter, ours.home) if foreign else ""


def _foreign_server(current: bytes, ours: Ours, where: str) -> str:
    if mcp_config.is_registered(current, ours.home):
        return ""
    return f"{where} has another server named {mcp_config.NAME}, which stays: csmd's is not there until that is renamed"


def _of_text(data: bytes, where: str, change: Callable[[str], str]) -> bytes:
    text = edited.text_of(data, where)
    return data if edited.is_blank(text) else change(text).encode()


#: In the order in which they are put in; the names stand in the install record.
KINDS: tuple[Kind, ...] = (
    Kind(
        name="hooks",
        what="hooks",
        file=settings_file,
        merge=lambda before, ours, where: settings.plan_merge(
            before, ours.interpreter, ours.home, where, events=ours.events
        ),
        remove=settings.plan_removal,
    ),
    Kind(
        name="status line",
        what="status line",
        file=settings_file,
        merge=_with_status_line,
        remove=lambda current, home, where: _of_text(current, where, lambda text: status_line.remove(text, home)),
        wanted=lambda ours: ours.chosen.status_line,
        taken=_foreign_status_line,
    ),
    Kind(
        name="server",
        what="memory server",
        file=state_file,
        merge=lambda before, ours, where: mcp_config.merge(before, ours.home, where),
        remove=mcp_config.removal,
        taken=_foreign_server,
        shared=True,
    ),
)


def files(folder: Path) -> dict[Path, list[Kind]]:
    """The files that hold entries of ours in a configuration directory, and the kinds in each."""
    found: dict[Path, list[Kind]] = {}
    for kind in KINDS:
        found.setdefault(kind.file(folder), []).append(kind)
    return found


def named(names: Sequence[str]) -> list[Kind]:
    """The kinds of these names; one that only a newer csmd knows is none of ours to take out."""
    return [kind for kind in KINDS if kind.name in names]


def merged(before: bytes | None, kinds: Sequence[Kind], ours: Ours, where: str) -> bytes | None:
    """A file with the entries that are wanted and without those that are not; ConfigError where it cannot hold them."""
    data = before
    for kind in kinds:
        if kind.wanted(ours):
            data = kind.merge(data, ours, where)
        elif data is not None:
            data = kind.remove(data, ours.home, where)
    return data


def told(after: bytes, kinds: Sequence[Kind], ours: Ours, where: str) -> tuple[str, tuple[str, ...]]:
    """What of these kinds is in a file, and what keeps the others out that are wanted; for people."""
    reasons = {kind.what: kind.taken(after, ours, where) for kind in kinds if kind.wanted(ours)}
    return " and ".join(what for what, why in reasons.items() if not why), tuple(why for why in reasons.values() if why)


def removed(current: bytes, kinds: Sequence[Kind], home: Path, where: str) -> bytes:
    """A file without our entries of these kinds."""
    for kind in reversed(kinds):
        current = kind.remove(current, home, where)
    return current
