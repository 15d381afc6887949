"""Alarms, which mean that nothing is recorded or injected, and their desktop notices."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from csmd.config import has_desktop
from csmd.daemon.assistants_in_use import detached_arguments, read_install_record, read_settings
from csmd.daemon.context import Context, now_iso, to_iso
from csmd.hosts.adapters import CLAUDE
from csmd.hosts.host_files import HooksState
from csmd.store import events, files
from csmd.store.events import SessionWithoutEvents, UnreportedSession
from csmd.store.sqlite import Rows

#: Programs that show a notice; the first on the PATH is used.
NOTICE_PROGRAMS = ("notify-send", "osascript")
NOTICE_TITLE = "csmd"
#: The prefix, before the date, of the file that records that a notice was shown on a day.
RECORD_PREFIX = "noticed-"
#: Records up to this many days in the future count too; later ones are from a wrong clock.
CLOCK_SLACK_DAYS = 7
NOTICE_TIMEOUT_S = 5.0
#: An event that waits longer in the spool will not be stored by itself.
SPOOL_STUCK_S = 3600.0
#: An assistant that answered this long ago: its session's first event has arrived or waits in the spool.
ANSWER_SETTLE_S = 10.0
#: A session whose last turn is older was not read while it was active: it was copied or imported.
LIVE_S = 600.0
#: How often alarms are checked.
CHECK_EVERY_S = 5.0
#: Sessions are still checked for this long after the last write.
RECHECK_S = 3 * ANSWER_SETTLE_S
#: Enough of a transcript to include everything before its first answer.
BEGINNING_BYTES = 1_000_000
#: Most unreported sessions that are recorded.
MAX_UNREPORTED = 20

#: Alarm -> (what is wrong, what to do), the worst first; each means that nothing is recorded or injected.
ALARMS: Mapping[str, tuple[str, str]] = {
    "damaged": ("nothing is recorded: the database is damaged", "csmd repair"),
    "gone file": ("nothing is recorded: the database's file is gone, only the daemon still has it open",
                  "put it back; otherwise csmd continues in a minute with its copy in the backups"),
    "replaced": ("nothing is recorded: another file has replaced the database",
                 "csmd restore latest restores the earlier one, csmd restart continues with the other"),
    "disk": ("nothing is recorded: the disk accepts no writes",
             "free some space, or make the home writable; recording then resumes by itself"),
    "spool": ("nothing is recorded: events have waited in the spool for an hour",
              "csmd restart; csmd status shows the problem"),
    "gone": ("nothing is injected: csmd's hooks are not in the assistant's settings", "csmd install"),
    "off": ("nothing is injected: the assistant's settings disable hooks",
            "remove disableAllHooks or allowManagedHooksOnly from them"),
    "silent": ("nothing is injected: sessions are running that no hook reports", "csmd doctor shows why"),
}  # fmt: skip
#: State of the hooks by the settings -> how many unreported sessions in a row raise an alarm, and which.
HOOK_ALARMS: Mapping[HooksState, tuple[int, str]] = {
    "gone": (1, "gone"), "off": (1, "off"), "there": (2, "silent"), "untrusted": (2, "silent"), "unknown": (2, "silent"),
}  # fmt: skip


@dataclass(slots=True)
class Notices:
    """Owns the records in csmd's `run` directory of the days on which a notice was shown."""

    _directory: Path
    _unwritten: set[str] = field(default_factory=set)
    """Records that could not be written, for example on a full disk."""

    def show(self, problem: str, remedy: str) -> bool:
        """Shows a notice unless one was shown today; returns whether it did."""
        command = build_notice_command(problem, remedy) if has_desktop() else None
        if command is None or not self._is_first(datetime.now().astimezone().date()):
            return False
        with suppress(OSError, subprocess.SubprocessError):  # no desktop shows it; `csmd status` does
            completed = subprocess.run(command, timeout=NOTICE_TIMEOUT_S, check=False, **detached_arguments())
            return completed.returncode == 0
        return False

    def _is_first(self, today: date) -> bool:
        near_days = range(-CLOCK_SLACK_DAYS, CLOCK_SLACK_DAYS + 1)
        near_names = {f"{RECORD_PREFIX}{today + timedelta(days=days)}" for days in near_days}
        name = f"{RECORD_PREFIX}{today}"
        recorded = {path.name for path in self._directory.glob(f"{RECORD_PREFIX}*")} | self._unwritten
        if any(name <= other for other in recorded & near_names):
            return False
        try:
            (self._directory / name).touch(mode=0o600, exist_ok=False)
        except OSError:
            self._unwritten.add(name)
        for old_name in recorded - near_names:
            with suppress(OSError):
                (self._directory / old_name).unlink()
        return True


def build_notice_command(problem: str, remedy: str) -> list[str] | None:
    """Returns the command that shows a notice; None if no program does. No shell interprets the words."""
    path = next(filter(None, map(shutil.which, NOTICE_PROGRAMS)), None)
    if path is None:
        return None
    if path.endswith("osascript"):
        script = ["on run words", "display notification (item 1 of words) with title (item 2 of words)", "end run"]
        return [path, *(part for line in script for part in ("-e", line)), f"{problem}: {remedy}", NOTICE_TITLE]
    return [path, f"--app-name={NOTICE_TITLE}", "--", f"{NOTICE_TITLE}: {problem}", remedy]


def is_unreported(
    session: SessionWithoutEvents, states: Mapping[str, HooksState], reported: Iterable[tuple[str, str]],
    *, passed_at: str,
) -> bool:  # fmt: skip
    """Whether a session without an event shows that hooks do not run.

    `states` are the states of the hooks by the settings in each of the assistant's directories, `reported` are (time,
    directory or "") of the latest events, `passed_at` is when a hook last noted that the user excludes its session. If
    the settings have no hooks, every session counts; otherwise a script or `--bare` may have left them out on purpose.
    """
    folder = find_folder(session.path, states)
    if not folder or any(at >= session.started_at and other in ("", folder) for at, other in reported):
        return False
    if HOOK_ALARMS[states[folder]][0] == 1:
        return True
    # Scripts may have hundreds of sessions, checked every few seconds, so the transcript is read only if it decides.
    return passed_at < session.started_at and CLAUDE.expects_hooks(_read_beginning(session.path))


def find_cleared_sessions(
    recorded: Sequence[UnreportedSession], reported: Iterable[tuple[int, str]], folders: Collection[str], *, since: str
) -> list[str]:
    """Returns the ids of recorded sessions that no longer count as unreported.

    They do not count once a hook has reported later, or if hooks were installed since (at `since`). `reported` are (row
    key, directory or "" if it is unknown) of events; an event counts for its own directory only.
    """
    reports = list(reported)
    cleared = []
    for session in recorded:
        folder = find_folder(session.path, folders)
        is_heard = any(key > session.after_event and other in ("", folder) for key, other in reports)
        if not folder or session.at < since or is_heard:
            cleared.append(session.id)
    return cleared


def find_hook_alarms(recorded: Iterable[tuple[str, str]], states: Mapping[str, HooksState]) -> dict[str, str]:
    """Returns the alarms that unreported sessions raise: alarm -> since when.

    `recorded` are (directory, time) of these sessions, `states` the state of the hooks in each directory.
    """
    raised: dict[str, str] = {}
    sessions = list(recorded)
    for folder, state in states.items():
        times = sorted(at for other, at in sessions if other == folder)
        threshold, key = HOOK_ALARMS[state]
        if len(times) >= threshold:
            raised[key] = min(times[0], raised.get(key, times[0]))
    return raised


def describe_alarms(raised: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns the alarms (key -> since) in `csmd status`: `what`, `do`, `since`, worst first."""
    return [{"what": what, "do": do, "since": raised[key]} for key, (what, do) in ALARMS.items() if key in raised]


def find_folder(path: str, folders: Iterable[str]) -> str:
    """Returns the assistant's directory that contains a transcript; "" if no directory does."""
    if not path:
        return ""
    return next((folder for folder in folders if Path(path).is_relative_to(Path(folder) / "projects")), "")


class Alarms:
    """Owns the raised alarms; the background thread calls `step`, any thread `list_active`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notices = Notices(context.config.paths.run_dir)
        self._lock = threading.Lock()
        self._since: dict[str, str] = {}
        self._hook_alarms: dict[str, str] = {}
        self._oldest, self._oldest_at = "", 0.0
        """The event that has waited longest in the spool, and since when it has been seen there (monotonic)."""
        self._is_stuck = False
        self._started_at: float | None = None
        self._commits, self._changed_at = -1, 0.0

    def list_active(self) -> list[dict[str, str]]:
        """Returns the alarms that are raised: `what`, `do`, `since`, worst first."""
        store = self._context.store
        displaced = {"": [], "gone": ["gone file"], "replaced": ["replaced"]}[store.displacement()]
        raised = ["damaged"] if store.is_read_only else displaced or (["disk"] if store.last_write_error else [])
        raised = [*raised, *(["spool"] if self._is_stuck else [])]
        with self._lock:
            self._since = {key: self._since.get(key) or now_iso() for key in raised}
            return describe_alarms({**self._hook_alarms, **self._since})

    def step(self, now: float) -> bool:
        """Checks for alarms at the monotonic time `now` and shows a notice; always returns False."""
        context, store = self._context, self._context.store
        self._started_at = now if self._started_at is None else self._started_at
        waiting = [path for path in files.spooled_paths(context.config.paths.home) if path not in context.unremovable]
        oldest = waiting[0].name if waiting else ""
        if oldest != self._oldest:
            self._oldest, self._oldest_at = oldest, now
        self._is_stuck = bool(oldest) and now - self._oldest_at >= SPOOL_STUCK_S
        if store.commits != self._commits:
            self._commits, self._changed_at = store.commits, now
        has_changed = now - self._changed_at <= RECHECK_S  # what was too recent to be judged is checked again
        if store.takes_writes and not store.last_write_error and (has_changed or self._hook_alarms):
            self._check_sessions(now - self._started_at)
        if (alarms := self.list_active()) and context.config.settings.alarm_desktop:
            self._notices.show(alarms[0]["what"], alarms[0]["do"])
        return False

    def _check_sessions(self, uptime_s: float) -> None:
        """Records the sessions that no hook reported, drops those that no longer count, and raises or clears alarms."""
        store, paths = self._context.store, self._context.config.paths
        recorded = read_install_record(self._context.config).get("assistant_dirs")
        folders = list(map(str, recorded)) if isinstance(recorded, list) else []
        installed = _modified_at(paths.install_record)
        now = datetime.now(UTC)
        # The daemon's age is measured by the monotonic clock, which cannot be set.
        began = max(to_iso(now - timedelta(seconds=uptime_s)), installed)

        unreported = store.read(events.list_unreported_sessions)
        live = store.read(
            lambda rows: events.list_sessions_without_events(
                rows, began=began, lively=to_iso(now - timedelta(seconds=LIVE_S)),
                answered=to_iso(now - timedelta(seconds=ANSWER_SETTLE_S)), now=to_iso(now),
            )
        )  # fmt: skip
        latest = store.read(lambda rows: events.list_latest_events(rows, CLAUDE.host)) if live or unreported else []
        judged = folders if live or unreported else []
        states = {folder: CLAUDE.hooks_state(Path(folder), paths.home, read_settings) for folder in judged}
        reported = [(key, at, find_folder(path, folders)) for key, at, path in latest]
        reports = [(key, folder) for key, _, folder in reported]
        cleared = find_cleared_sessions(unreported, reports, folders, since=installed)
        new: list[SessionWithoutEvents] = []
        # The missing event may be waiting in the spool.
        if not self._oldest and len(unreported) < MAX_UNREPORTED:
            times = [(at, folder) for _, at, folder in reported]
            passed_at = _modified_at(paths.passed_by_mark)
            new = [session for session in live if is_unreported(session, states, times, passed_at=passed_at)]
        if new or cleared:

            def write(rows: Rows) -> None:
                events.drop_unreported(rows, cleared)
                events.mark_unreported(rows, [session.id for session in new], at=to_iso(now))

            store.write(write)
        remaining = [(session.path, session.at) for session in unreported if session.id not in cleared]
        remaining += [(session.path, to_iso(now)) for session in new]
        with self._lock:
            self._hook_alarms = find_hook_alarms([(find_folder(path, folders), at) for path, at in remaining], states)


def _modified_at(path: Path) -> str:
    """Returns when a file was written; "" if it does not exist."""
    try:
        return to_iso(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return ""


def _read_beginning(transcript: str) -> bytes:
    """Returns the first bytes of a transcript; b"" if it does not exist."""
    try:
        with files.open_regular(Path(transcript)) as file:
            return file.read(BEGINNING_BYTES)
    except OSError:
        return b""
