"""Alarms while the daemon runs: looks whether sessions are unheard, events stuck, the store refusing; has it told.

`shown` answers from memory, whatever the disk and the database are like. What is decided stands in alarm.py.
"""

from __future__ import annotations

import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from csmd.capture.hosts import claude_environment
from csmd.daemon import alarm, notice
from csmd.daemon.alarm import Note, Seen
from csmd.daemon.context import Context
from csmd.daemon.now import iso, now_iso
from csmd.errors import CsmdError
from csmd.store import events as unheard
from csmd.store import files
from csmd.store.sqlite import Rows

EVERY_S = 5.0
#: For so long after the last write sessions are looked at.
SETTLED_S = 3 * alarm.ANSWERED_S
SETTINGS_BYTES = 1_000_000
#: Enough of a transcript for what stands before the first answer in it.
BEGINNING_BYTES = 1_000_000
NOTHING_SEEN = -1
#: More of the same would say nothing more.
MOST_NOTED = 20


class Alarms:
    """Owns what is amiss and since when; the steward steps it, anybody may ask what is `shown`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notices = notice.Notices(context.config.paths.run_dir)
        self._lock = threading.Lock()
        self._since: dict[str, str] = {}
        self._of_hooks: dict[str, str] = {}
        self._oldest, self._oldest_at = "", 0.0
        """The event that has waited longest, and since when it is known to (monotonic)."""
        self._waited_s = 0.0
        self._began: float | None = None
        self._next = 0.0
        self._commits, self._changed_at = NOTHING_SEEN, 0.0

    def shown(self) -> list[dict[str, str]]:
        """What is amiss now: `what`, `do`, `since`, worst first."""
        store = self._context.store
        raised = ["damaged"] if store.refuses else ["disk"] if store.refusing else []
        raised += ["spool"] if self._is_stuck() else []
        with self._lock:
            self._since = {key: self._since.get(key) or now_iso() for key in raised}
            return alarm.told({**self._of_hooks, **self._since})

    def step(self, now: float) -> bool:
        """Looks at what is due at the monotonic time `now`; nothing of it is more to do at once."""
        self._began = now if self._began is None else self._began
        if now < self._next:
            return False
        self._next = now + EVERY_S
        self._look_at_spool(now)
        store = self._context.store
        if store.commits != self._commits:
            self._commits, self._changed_at = store.commits, now
        changed = now - self._changed_at <= SETTLED_S  # what was too fresh to be judged is looked at again
        if not store.refuses and not store.refusing and (changed or self._of_hooks):
            self._look_at_sessions(now - self._began)
        if (told := self.shown()) and self._context.config.settings.alarm_desktop:
            self._notices.show(told[0]["what"], told[0]["do"])
        return False

    def _look_at_spool(self, now: float) -> None:
        context = self._context
        waiting = [path for path in files.spooled_paths(context.config.paths.home) if path not in context.left_alone]
        oldest = waiting[0].name if waiting else ""
        if oldest != self._oldest:
            self._oldest, self._oldest_at = oldest, now
        self._waited_s = now - self._oldest_at

    def _is_stuck(self) -> bool:
        return bool(self._oldest) and self._waited_s >= alarm.STUCK_S

    def _look_at_sessions(self, uptime_s: float) -> None:
        """Notes the sessions that no hook reported, takes back what says nothing any more, and draws the conclusion."""
        store, paths = self._context.store, self._context.config.paths
        folders, installed = installation(paths.install_record)
        now = datetime.now(UTC)
        # The daemon's age is counted by the clock that nobody sets.
        began = max(iso(now - timedelta(seconds=uptime_s)), installed)

        def look(rows: Rows) -> tuple[list[unheard.HookedSession], list[unheard.Unheard], list[tuple[int, str, str]]]:
            noted = unheard.unheard_noted(rows)
            live = unheard.live_sessions(
                rows, began=began, lively=iso(now - timedelta(seconds=alarm.LIVELY_S)),
                answered=iso(now - timedelta(seconds=alarm.ANSWERED_S)), now=iso(now),
            )  # fmt: skip
            return live, noted, unheard.latest_events(rows) if live or noted else []

        live, noted, events = store.read(look)
        if not live and not noted:
            self._of_hooks = {}
            return
        states = {folder: hooks_state(folder, paths.hook_script) for folder in folders}
        notes = [Note(session=one.id, folder=alarm.folder_of(one.path, folders), at=one.at, after_event=one.after_event)
                 for one in noted]  # fmt: skip
        heard = [(key, moment, alarm.folder_of(path, folders)) for key, moment, path in events]
        gone = alarm.taken_back(notes, [(key, folder) for key, _, folder in heard], installed_at=installed)
        passed = modified(paths.passed_by_mark)
        # What waits in the spool may be the very event that is missed.
        known_enough = self._oldest or len(noted) >= MOST_NOTED
        new = [] if known_enough else [one for one in live if alarm.counts(_seen(one, states, passed, heard))]
        if new or gone:

            def write(rows: Rows) -> None:
                unheard.drop_unheard(rows, gone)
                unheard.note_unheard(rows, [one.id for one in new], at=iso(now))

            store.write(write)
        left = [note for note in notes if note.session not in gone]
        left += [
            Note(session=one.id, folder=alarm.folder_of(one.path, folders), at=iso(now), after_event=0) for one in new
        ]
        with self._lock:
            self._of_hooks = alarm.of_hooks(left, states)


def _seen(
    session: unheard.HookedSession, states: dict[str, Any], passed: str, heard: list[tuple[int, str, str]]
) -> Seen:
    """How a session is judged; `heard` are (row key, time, directory or "") of the latest events."""
    folder = alarm.folder_of(session.path, list(states))
    others = any(at >= session.started_at and other in ("", folder) for _, at, other in heard)
    # Scripts may have hundreds of sessions at once, looked at every few seconds: read only where it decides.
    decides = bool(folder) and not others
    return Seen(
        folder=folder,
        hooks=states.get(folder, "unknown"),
        expected=decides and claude_environment.expects_hooks(beginning(Path(session.path))),
        passed_by=passed >= session.started_at,
        others_heard=others,
    )


def installation(record: Path) -> tuple[list[str], str]:
    """The assistant's directories that `csmd install` put hooks into, and when it did last; ([], "") for none."""
    try:
        recorded = (files.read_json(record) or {}).get("assistant_dirs")
    except (CsmdError, OSError):
        recorded = None
    return [str(folder) for folder in recorded] if isinstance(recorded, list) else [], modified(record)


def hooks_state(folder: str, script: Path) -> claude_environment.HooksState:
    """What the settings of one of the assistant's directories say of csmd's hooks now; looks at the disk."""
    managed, own = claude_environment.settings_files(folder, platform=sys.platform)
    return claude_environment.hooks_state(
        files.read_small(own, SETTINGS_BYTES), files.read_small(managed, SETTINGS_BYTES), script=str(script)
    )


def modified(path: Path) -> str:
    """When a file was written; "" for one that is not there."""
    try:
        return iso(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return ""


def beginning(transcript: Path) -> bytes:
    """The first bytes of a transcript; b"" when there is none."""
    try:
        with files.open_regular(transcript) as file:
            return file.read(BEGINNING_BYTES)
    except OSError:
        return b""
