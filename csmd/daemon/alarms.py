"""Alarms, which mean that nothing is recorded or injected, and their desktop notices."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from csmd.config import has_desktop
from csmd.daemon.assistants_in_use import detached, install_record, read_settings
from csmd.daemon.context import Context, iso, now_iso
from csmd.hosts.adapters import CLAUDE
from csmd.hosts.host_files import HooksState
from csmd.store import events, files
from csmd.store.events import SessionWithoutEvents, UnreportedSession
from csmd.store.sqlite import Rows

#: Programs that show a notice; the first on the PATH is used.
PROGRAMS = ("notify-send", "osascript")
TITLE = "csmd"
#: The prefix, before the date, of the file that records that a notice was shown on a day.
NOTE = "noticed-"
#: Records up to this many days in the future count too; later ones are from a wrong clock.
DAYS_KNOWN = 7
NOTICE_PATIENCE_S = 5.0


class Notices:
    """Owns the records in csmd's `run` directory of the days on which a notice was shown."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._noted: set[str] = set()
        """Records that could not be written, for example on a full disk."""

    def show(self, what: str, do: str) -> bool:
        """Shows a notice unless one was shown today; returns whether it did."""
        command = notice_command(what, do) if has_desktop() else None
        if command is None or not self._is_first(datetime.now().astimezone().date()):
            return False
        with suppress(OSError, subprocess.SubprocessError):  # no desktop shows it; `csmd status` does
            return subprocess.run(command, timeout=NOTICE_PATIENCE_S, check=False, **detached()).returncode == 0
        return False

    def _is_first(self, today: date) -> bool:
        near = {f"{NOTE}{today + timedelta(days=days)}" for days in range(-DAYS_KNOWN, DAYS_KNOWN + 1)}
        name = f"{NOTE}{today}"
        shown = {path.name for path in self._directory.glob(f"{NOTE}*")} | self._noted
        if any(name <= other for other in shown & near):
            return False
        try:
            (self._directory / name).touch(mode=0o600, exist_ok=False)
        except OSError:
            self._noted.add(name)
        for old in shown - near:
            with suppress(OSError):
                (self._directory / old).unlink()
        return True


def notice_command(what: str, do: str) -> list[str] | None:
    """The command that shows a notice; None if no program does. No shell interprets the words."""
    path = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if path is None:
        return None
    if path.endswith("osascript"):
        script = ["on run words", "display notification (item 1 of words) with title (item 2 of words)", "end run"]
        return [path, *(part for line in script for part in ("-e", line)), f"{what}: {do}", TITLE]
    return [path, f"--app-name={TITLE}", "--", f"{TITLE}: {what}", do]


#: Alarm -> (what is wrong, what to do), the worst first; each means that nothing is recorded or injected.
ALARMS: Mapping[str, tuple[str, str]] = {
    "damaged": ("nothing is recorded: the database is damaged", "csmd repair"),
    "gone file": (
        "nothing is recorded: the database's file is gone, only the daemon still has it open",
        "put it back; else csmd goes on in a minute with its copy in the backups",
    ),
    "replaced": (
        "nothing is recorded: another file is in the database's place",
        "csmd restore latest brings back the one of before, csmd restart goes on with the other",
    ),
    "disk": (
        "nothing is recorded: the disk takes no writes",
        "make room, or make the home writable; the rest comes by itself",
    ),
    "spool": (
        "nothing is recorded: events have waited in the spool for an hour",
        "csmd restart; csmd status says what is amiss",
    ),
    "gone": ("sessions are told nothing: csmd's hooks are not in the assistant's settings", "csmd install"),
    "off": (
        "sessions are told nothing: the assistant's settings switch hooks off",
        "take disableAllHooks or allowManagedHooksOnly out of them",
    ),
    "silent": ("sessions are told nothing: they run, and no hook reports them", "csmd doctor says why"),
}
#: An event that waits longer will not be stored by itself.
STUCK_S = 3600.0
#: How long ago an assistant must have answered: by then its session's first event has arrived or waits in the spool.
ANSWERED_S = 10.0
#: A session whose last turn is older was not read while it was active: it was copied or imported.
LIVELY_S = 600.0
#: State of the hooks by the settings -> how many unreported sessions in a row raise an alarm, and which.
ENOUGH: Mapping[HooksState, tuple[int, str]] = {
    "gone": (1, "gone"),
    "off": (1, "off"),
    "there": (2, "silent"),
    "untrusted": (2, "silent"),
    "unknown": (2, "silent"),
}
#: How often alarms are checked.
EVERY_S = 5.0
#: How long after the last write sessions are still checked.
SETTLED_S = 3 * ANSWERED_S
#: Enough of a transcript to include everything before its first answer.
BEGINNING_BYTES = 1_000_000
#: How many unreported sessions are recorded.
MAX_NOTED = 20


def is_unreported(
    session: SessionWithoutEvents,
    states: Mapping[str, HooksState],
    reported: Iterable[tuple[str, str]],
    *,
    passed_at: str,
) -> bool:
    """Whether a session without an event shows that hooks do not run.

    `states` are the states of the hooks by the settings in each of the assistant's directories, `reported` are (time,
    directory or "") of the latest events, `passed_at` is when a hook last noted that the user excludes its session. If
    the settings have no hooks, every session counts; otherwise a script or `--bare` may have left them out on purpose.
    """
    folder = folder_of(session.path, states)
    if not folder or any(at >= session.started_at and other in ("", folder) for at, other in reported):
        return False
    if ENOUGH[states[folder]][0] == 1:
        return True
    # Scripts may have hundreds of sessions, checked every few seconds, so the transcript is read only if it decides.
    return passed_at < session.started_at and CLAUDE.expects_hooks(_read_beginning(session.path))


def cleared_sessions(
    noted: Sequence[UnreportedSession], reported: Iterable[tuple[int, str]], folders: Collection[str], *, since: str
) -> list[str]:
    """The recorded sessions that no longer count: a hook has reported later, or hooks were installed at `since`.

    `reported` are (row key, directory or "" if it is unknown) of events; those in one directory prove nothing about
    others.
    """
    reports = list(reported)
    cleared = []
    for session in noted:
        folder = folder_of(session.path, folders)
        is_heard = any(key > session.after_event and other in ("", folder) for key, other in reports)
        if not folder or session.at < since or is_heard:
            cleared.append(session.id)
    return cleared


def hook_alarms(noted: Iterable[tuple[str, str]], states: Mapping[str, HooksState]) -> dict[str, str]:
    """Alarm -> since when, by the unreported sessions (directory, since) and the state of the hooks in each
    directory."""
    raised: dict[str, str] = {}
    sessions = list(noted)
    for folder, state in states.items():
        since = sorted(at for other, at in sessions if other == folder)
        enough, key = ENOUGH[state]
        if len(since) >= enough:
            raised[key] = min(since[0], raised.get(key, since[0]))
    return raised


def describe_alarms(raised: Mapping[str, str]) -> list[dict[str, str]]:
    """The alarms (key -> since) in `csmd status`: `what`, `do`, `since`, worst first."""
    return [{"what": what, "do": do, "since": raised[key]} for key, (what, do) in ALARMS.items() if key in raised]


def folder_of(path: str, folders: Iterable[str]) -> str:
    """The assistant's directory that contains a transcript; "" if none of these does."""
    if not path:
        return ""
    return next((folder for folder in folders if Path(path).is_relative_to(Path(folder) / "projects")), "")


class Alarms:
    """Owns the raised alarms; the background thread calls `step`, any thread `active`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notices = Notices(context.config.paths.run_dir)
        self._lock = threading.Lock()
        self._since: dict[str, str] = {}
        self._of_hooks: dict[str, str] = {}
        self._oldest, self._oldest_at = "", 0.0
        """The event that has waited longest in the spool, and since when it has been seen there (monotonic)."""
        self._is_stuck = False
        self._began: float | None = None
        self._commits, self._changed_at = -1, 0.0

    def active(self) -> list[dict[str, str]]:
        """The alarms that are raised: `what`, `do`, `since`, worst first."""
        store = self._context.store
        displaced = {"": [], "gone": ["gone file"], "replaced": ["replaced"]}[store.displacement()]
        raised = ["damaged"] if store.is_read_only else displaced or (["disk"] if store.last_write_error else [])
        raised += ["spool"] if self._is_stuck else []
        with self._lock:
            self._since = {key: self._since.get(key) or now_iso() for key in raised}
            return describe_alarms({**self._of_hooks, **self._since})

    def step(self, now: float) -> bool:
        """Checks for alarms at the monotonic time `now` and shows a notice; always returns False, nothing remains to be
        done."""
        context, store = self._context, self._context.store
        self._began = now if self._began is None else self._began
        waiting = [path for path in files.spooled_paths(context.config.paths.home) if path not in context.left_alone]
        oldest = waiting[0].name if waiting else ""
        if oldest != self._oldest:
            self._oldest, self._oldest_at = oldest, now
        self._is_stuck = bool(oldest) and now - self._oldest_at >= STUCK_S
        if store.commits != self._commits:
            self._commits, self._changed_at = store.commits, now
        has_changed = now - self._changed_at <= SETTLED_S  # what was too recent to be judged is checked again
        if store.takes_writes and not store.last_write_error and (has_changed or self._of_hooks):
            self._look_at_sessions(now - self._began)
        if (alarms := self.active()) and context.config.settings.alarm_desktop:
            self._notices.show(alarms[0]["what"], alarms[0]["do"])
        return False

    def _look_at_sessions(self, uptime_s: float) -> None:
        """Records the sessions that no hook reported, drops those that no longer count, and raises or clears alarms."""
        store, paths = self._context.store, self._context.config.paths
        recorded, installed = (
            install_record(self._context.config).get("assistant_dirs"),
            _modified_at(paths.install_record),
        )
        folders = list(map(str, recorded)) if isinstance(recorded, list) else []
        now = datetime.now(UTC)
        # The daemon's age is measured by the clock that no one can set.
        began = max(iso(now - timedelta(seconds=uptime_s)), installed)

        def read_state(
            rows: Rows,
        ) -> tuple[list[SessionWithoutEvents], list[UnreportedSession], list[tuple[int, str, str]]]:
            noted = events.unreported_sessions(rows)
            live = events.sessions_without_events(
                rows, began=began, lively=iso(now - timedelta(seconds=LIVELY_S)),
                answered=iso(now - timedelta(seconds=ANSWERED_S)), now=iso(now),
            )  # fmt: skip
            return live, noted, events.latest_events(rows, CLAUDE.host) if live or noted else []

        live, noted, latest = store.read(read_state)
        states = (
            {folder: CLAUDE.hooks_state(Path(folder), paths.home, read_settings) for folder in folders}
            if live or noted
            else {}
        )
        reported = [(key, at, folder_of(path, folders)) for key, at, path in latest]
        cleared = cleared_sessions(noted, [(key, folder) for key, _, folder in reported], folders, since=installed)
        new: list[SessionWithoutEvents] = []
        # The missing event may be waiting in the spool.
        if not self._oldest and len(noted) < MAX_NOTED:
            times = [(at, folder) for _, at, folder in reported]
            passed_at = _modified_at(paths.passed_by_mark)
            new = [session for session in live if is_unreported(session, states, times, passed_at=passed_at)]
        if new or cleared:

            def write(rows: Rows) -> None:
                events.drop_unreported(rows, cleared)
                events.mark_unreported(rows, [session.id for session in new], at=iso(now))

            store.write(write)
        left = [(session.path, session.at) for session in noted if session.id not in cleared]
        left += [(session.path, iso(now)) for session in new]
        with self._lock:
            self._of_hooks = hook_alarms([(folder_of(path, folders), at) for path, at in left], states)


def _modified_at(path: Path) -> str:
    """When a file was written; "" if it does not exist."""
    try:
        return iso(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return ""


def _read_beginning(transcript: str) -> bytes:
    """The first bytes of a transcript; b"" if it does not exist."""
    try:
        with files.open_regular(Path(transcript)) as file:
            return file.read(BEGINNING_BYTES)
    except OSError:
        return b""
