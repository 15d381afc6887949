"""What means that nothing is being remembered, in which words it is told, and when sessions are unheard: decided, not done.

An alarm is told first in `csmd status`, once a day on the desktop, and to each assistant that asks. So it must not be
raised for what is no trouble: sessions that were copied, imported or continued, scripts, sessions without hooks on
purpose, those of before the daemon or the installation. ALARMS is what can be told; its words are constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from csmd.capture.hosts.claude_environment import HooksState


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One thing that means that nothing is being remembered: `what` it is and what to `do`."""

    key: str
    what: str
    do: str


#: Worst first, as they are told.
ALARMS: tuple[Alarm, ...] = (
    Alarm(key="damaged", what="nothing is recorded: the database is damaged", do="csmd repair"),
    Alarm(
        key="disk",
        what="nothing is recorded: the disk takes no writes",
        do="make room, or make the home writable; the rest comes by itself",
    ),
    Alarm(
        key="spool",
        what="nothing is recorded: events have waited in the spool for an hour",
        do="csmd restart; csmd status says what is amiss",
    ),
    Alarm(
        key="gone",
        what="sessions are told nothing: csmd's hooks are not in the assistant's settings",
        do="csmd install",
    ),
    Alarm(
        key="off",
        what="sessions are told nothing: the assistant's settings switch hooks off",
        do="take disableAllHooks or allowManagedHooksOnly out of them",
    ),
    Alarm(
        key="silent", what="sessions are told nothing: they run, and no hook reports them", do="csmd doctor says why"
    ),
)
#: An event that waits for so long will not be taken in by itself.
STUCK_S = 3600.0
#: How long ago an assistant must have answered: its session's first event came long before, or waits in the spool.
ANSWERED_S = 10.0
#: A session whose last turn is older was not read while it went on: it was copied, or imported.
LIVELY_S = 600.0
#: Unheard sessions in a row that are enough, by what the settings say of the hooks: where those are gone, one.
ENOUGH: Mapping[HooksState, int] = {"gone": 1, "off": 1, "there": 2, "unknown": 2}
KEYS: Mapping[HooksState, str] = {"gone": "gone", "off": "off", "there": "silent", "unknown": "silent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """An unheard session as it is judged: the assistant's directory it is in ("" for none with hooks of ours).

    `expected` says that its transcript is that of a terminal in which hooks run; `passed_by` that a hook left word
    since it began: the user keeps a session out; `others_heard` that another one's event came since from there.
    """

    folder: str
    hooks: HooksState
    expected: bool
    passed_by: bool
    others_heard: bool = False


def counts(seen: Seen) -> bool:
    """Whether an unheard session says something about the hooks.

    Where the settings have none, every one does: what is told is true. Else a script's session may have left
    the settings out, and one without hooks was meant so.
    """
    if not seen.folder or seen.others_heard:
        return False
    return ENOUGH[seen.hooks] == 1 or (seen.expected and not seen.passed_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A session noted as unheard: in which directory, since when, after which event (a row key)."""

    session: str
    folder: str
    at: str
    after_event: int


def taken_back(notes: Sequence[Note], events: Sequence[tuple[int, str]], *, installed_at: str) -> list[str]:
    """The sessions that say nothing any more: a hook has reported since, or hooks were put in place anew.

    `events` are (row key, directory or "" where that is not known); an event of one directory says nothing of others.
    """
    return [
        note.session
        for note in notes
        if not note.folder
        or note.at < installed_at
        or any(key > note.after_event and folder in ("", note.folder) for key, folder in events)
    ]


def of_hooks(notes: Sequence[Note], states: Mapping[str, HooksState]) -> dict[str, str]:
    """Alarm -> since when, for what is noted and what the settings of each directory say now."""
    raised: dict[str, str] = {}
    for folder, state in states.items():
        unheard = sorted(note.at for note in notes if note.folder == folder)
        if len(unheard) >= ENOUGH[state]:
            raised[KEYS[state]] = min(unheard[0], raised.get(KEYS[state], unheard[0]))
    return raised


def told(raised: Mapping[str, str]) -> list[dict[str, str]]:
    """What `csmd status` shows of alarms (key -> since): `what`, `do`, `since`, worst first."""
    return [{"what": one.what, "do": one.do, "since": raised[one.key]} for one in ALARMS if one.key in raised]


def folder_of(path: str, folders: Sequence[str]) -> str:
    """The assistant's directory in which a transcript lies; "" for none of these."""
    return next((one for one in folders if Path(path).is_relative_to(Path(one) / "projects")), "") if path else ""
