"""Alarms and how they are announced; assistant versions and directories in use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from csmd.config import Config, child_environment, has_desktop
from csmd.daemon.context import Context, iso, now_iso
from csmd.errors import ConfigError, CsmdError
from csmd.hosts.claude import environment
from csmd.hosts.claude.environment import HooksState
from csmd.privacy.redaction import storable_path
from csmd.store import events, files, tombstones
from csmd.store.sqlite import Rows
from csmd.text import display

#: What shows a notice, by the name of a program on the PATH; the first that is there.
PROGRAMS = ("notify-send", "osascript")
TITLE = "csmd"
NOTE = "noticed-"
#: A note of a later day, within this, is one too; others are taken for a wrong clock's.
DAYS_KNOWN = 7
PATIENCE_S = 5.0


class Notices:
    """Owns the notes on which day somebody was told, in csmd's `run` directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._noted: set[str] = set()
        """Days of which no note could be made: where the disk is full, memory has to do."""

    def show(self, what: str, do: str) -> bool:
        """Shows a notice unless one was shown today; whether it was."""
        command = notice_command(what, do) if has_desktop() else None
        if command is None or not self._is_first(datetime.now().astimezone().date()):
            return False
        with suppress(OSError, subprocess.SubprocessError):  # a desktop that does not listen: `csmd status` says it
            done = subprocess.run(
                command, env=child_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, timeout=PATIENCE_S, check=False, start_new_session=True,
            )  # fmt: skip
            return done.returncode == 0
        return False

    def _is_first(self, today: date) -> bool:
        near = {f"{NOTE}{today + timedelta(days=days)}" for days in range(-DAYS_KNOWN, DAYS_KNOWN + 1)}
        name = f"{NOTE}{today}"
        known = {path.name for path in self._directory.glob(f"{NOTE}*")} | self._noted
        if any(name <= other for other in known & near):
            return False
        try:
            (self._directory / name).touch(mode=0o600, exist_ok=False)
        except OSError:
            self._noted.add(name)
        for old in known - near:
            with suppress(OSError):
                (self._directory / old).unlink()
        return True


def notice_command(what: str, do: str) -> list[str] | None:
    """The command that shows a notice; None where there is none. No shell sees the words."""
    for program in PROGRAMS:
        if (found := shutil.which(program)) is None:
            continue
        if program == "osascript":
            script = ["on run words", "display notification (item 1 of words) with title (item 2 of words)", "end run"]
            return [found, *(part for line in script for part in ("-e", line)), f"{what}: {do}", TITLE]
        return [found, f"--app-name={TITLE}", "--", f"{TITLE}: {what}", do]
    return None


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
class UnheardSession:
    """An unheard session as it is judged: the assistant's directory it is in ("" for none with hooks of ours).

    `expected` says that its transcript is that of a terminal in which hooks run; `passed_by` that a hook left word
    since it began: the user keeps a session out; `others_heard` that another one's event came since from there.
    """

    folder: str
    hooks: HooksState
    expected: bool
    passed_by: bool
    others_heard: bool = False


def alarm_counts(seen: UnheardSession) -> bool:
    """Whether an unheard session says something about the hooks.

    Where the settings have none, every one does: what is told is true. Else a script's session may have left
    the settings out, and one without hooks was meant so.
    """
    if not seen.folder or seen.others_heard:
        return False
    return ENOUGH[seen.hooks] == 1 or (seen.expected and not seen.passed_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnheardNote:
    """A session noted as unheard: in which directory, since when, after which event (a row key)."""

    session: str
    folder: str
    at: str
    after_event: int


def cleared_sessions(
    notes: Sequence[UnheardNote], events: Sequence[tuple[int, str]], *, installed_at: str
) -> list[str]:
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


def hook_alarms(notes: Sequence[UnheardNote], states: Mapping[str, HooksState]) -> dict[str, str]:
    """Alarm -> since when, for what is noted and what the settings of each directory say now."""
    raised: dict[str, str] = {}
    for folder, state in states.items():
        unheard = sorted(note.at for note in notes if note.folder == folder)
        if len(unheard) >= ENOUGH[state]:
            raised[KEYS[state]] = min(unheard[0], raised.get(KEYS[state], unheard[0]))
    return raised


def describe_alarms(raised: Mapping[str, str]) -> list[dict[str, str]]:
    """What `csmd status` shows of alarms (key -> since): `what`, `do`, `since`, worst first."""
    return [{"what": one.what, "do": one.do, "since": raised[one.key]} for one in ALARMS if one.key in raised]


def folder_of(path: str, folders: Sequence[str]) -> str:
    """The assistant's directory in which a transcript lies; "" for none of these."""
    return next((one for one in folders if Path(path).is_relative_to(Path(one) / "projects")), "") if path else ""


EVERY_S = 5.0
#: For so long after the last write sessions are looked at.
SETTLED_S = 3 * ANSWERED_S
SETTINGS_BYTES = 1_000_000
#: Enough of a transcript for what stands before the first answer in it.
BEGINNING_BYTES = 1_000_000
NOTHING_SEEN = -1
#: More of the same would say nothing more.
MOST_NOTED = 20


class Alarms:
    """Owns what is amiss and since when; the background thread steps it, anybody may ask what is `shown`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._notices = Notices(context.config.paths.run_dir)
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
            return describe_alarms({**self._of_hooks, **self._since})

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
        return bool(self._oldest) and self._waited_s >= STUCK_S

    def _look_at_sessions(self, uptime_s: float) -> None:
        """Notes the sessions that no hook reported, takes back what says nothing any more, and draws the conclusion."""
        store, paths = self._context.store, self._context.config.paths
        folders, installed = installation(paths.install_record)
        now = datetime.now(UTC)
        # The daemon's age is counted by the clock that nobody sets.
        began = max(iso(now - timedelta(seconds=uptime_s)), installed)

        def look(
            rows: Rows,
        ) -> tuple[list[events.HookedSession], list[events.UnreportedSession], list[tuple[int, str, str]]]:
            noted = events.unreported_sessions(rows)
            live = events.live_sessions(
                rows, began=began, lively=iso(now - timedelta(seconds=LIVELY_S)),
                answered=iso(now - timedelta(seconds=ANSWERED_S)), now=iso(now),
            )  # fmt: skip
            return live, noted, events.latest_events(rows) if live or noted else []

        live, noted, latest = store.read(look)
        if not live and not noted:
            self._of_hooks = {}
            return
        states = {folder: hooks_state(folder, paths.hook_script) for folder in folders}
        notes = [UnheardNote(session=one.id, folder=folder_of(one.path, folders), at=one.at, after_event=one.after_event)
                 for one in noted]  # fmt: skip
        heard = [(key, moment, folder_of(path, folders)) for key, moment, path in latest]
        gone = cleared_sessions(notes, [(key, folder) for key, _, folder in heard], installed_at=installed)
        passed = modified_at(paths.passed_by_mark)
        # What waits in the spool may be the very event that is missed.
        known_enough = self._oldest or len(noted) >= MOST_NOTED
        new = [] if known_enough else [one for one in live if alarm_counts(_seen(one, states, passed, heard))]
        if new or gone:

            def write(rows: Rows) -> None:
                events.drop_unreported(rows, gone)
                events.note_unreported(rows, [one.id for one in new], at=iso(now))

            store.write(write)
        left = [note for note in notes if note.session not in gone]
        left += [
            UnheardNote(session=one.id, folder=folder_of(one.path, folders), at=iso(now), after_event=0) for one in new
        ]
        with self._lock:
            self._of_hooks = hook_alarms(left, states)


def _seen(
    session: events.HookedSession, states: dict[str, Any], passed: str, heard: list[tuple[int, str, str]]
) -> UnheardSession:
    """How a session is judged; `heard` are (row key, time, directory or "") of the latest events."""
    folder = folder_of(session.path, list(states))
    others = any(at >= session.started_at and other in ("", folder) for _, at, other in heard)
    # Scripts may have hundreds of sessions at once, looked at every few seconds: read only where it decides.
    decides = bool(folder) and not others
    return UnheardSession(
        folder=folder,
        hooks=states.get(folder, "unknown"),
        expected=decides and environment.expects_hooks(read_beginning(Path(session.path))),
        passed_by=passed >= session.started_at,
        others_heard=others,
    )


def installation(record: Path) -> tuple[list[str], str]:
    """The assistant's directories that `csmd install` put hooks into, and when it did last; ([], "") for none."""
    try:
        recorded = (files.read_json(record) or {}).get("assistant_dirs")
    except (CsmdError, OSError):
        recorded = None
    return [str(folder) for folder in recorded] if isinstance(recorded, list) else [], modified_at(record)


def hooks_state(folder: str, script: Path) -> environment.HooksState:
    """What the settings of one of the assistant's directories say of csmd's hooks now; looks at the disk."""
    managed, own = environment.settings_files(folder, platform=sys.platform)
    return environment.hooks_state(
        files.read_small(own, SETTINGS_BYTES), files.read_small(managed, SETTINGS_BYTES), script=str(script)
    )


def modified_at(path: Path) -> str:
    """When a file was written; "" for one that is not there."""
    try:
        return iso(datetime.fromtimestamp(path.stat().st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return ""


def read_beginning(transcript: Path) -> bytes:
    """The first bytes of a transcript; b"" when there is none."""
    try:
        with files.open_regular(transcript) as file:
            return file.read(BEGINNING_BYTES)
    except OSError:
        return b""


IN_USE_DAYS = 30
SETTLE_AGAIN_S = 86_400.0
CHILD_PATIENCE_S = 5.0


class Clients:
    """Owns the child that settles the hooks, and what hooks named since it was last looked at."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._settled: dict[str, float] = {}
        self._child: subprocess.Popen[bytes] | None = None

    def look(self) -> bool:
        """Notes the directories that hooks named; whether there was one."""
        found = False
        for transcript in self._context.take_elsewhere():
            found |= self._note(transcript)
        return found

    def _note(self, transcript: str) -> bool:
        folder, inside = directory_of(transcript)
        if folder is None or not is_config_dir(folder):
            return False
        real = folder.resolve()
        for known in self._context.config.assistant_dirs:
            if known.resolve() == real:  # by another name, a link's
                self._context.hint(str(known / "projects" / inside))
                return True
        store, path = self._context.store, storable_path(str(folder))

        def note(rows: Rows) -> None:
            events.note_elsewhere(rows, tombstones.listed_path(rows, path, key=store.hash_key), at=now_iso())

        store.write(note)
        return True

    def settle(self, now: float) -> bool:
        """Has the newer events taken out where a client in use does not know them; at the monotonic time `now`."""
        if self._child is not None:
            code = self._child.poll()
            if code is None:
                return False
            self._child = None
            if code:
                raise CsmdError(f"`csmd hooks settle` ended with exit code {code}; run it to see why")
        context = self._context
        old = outdated_versions(context.config, context.store.read(versions_in_use))
        due = [version for version in old if now - self._settled.get(version, -SETTLE_AGAIN_S) >= SETTLE_AGAIN_S]
        if not due:
            return False
        self._settled.update(dict.fromkeys(due, now))
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "csmd", "hooks", "settle"],
            cwd=str(context.config.paths.home),
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return True

    def close(self) -> None:
        """Waits for the child: without a daemon to ask it ends at once, and what it writes it writes whole."""
        if self._child is not None:
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(CHILD_PATIENCE_S)
            self._child.returncode = self._child.returncode or 0


def directory_of(transcript: str) -> tuple[Path | None, str]:
    """The configuration directory a transcript would lie in, and its place below `projects`; None for no transcript."""
    path = Path(os.path.normpath(transcript))
    if not path.is_absolute() or path.suffix != ".jsonl":
        return None, ""
    for parent in path.parents:
        inside = path.relative_to(parent)
        if parent.name == "projects" and len(inside.parts) > 1:
            return parent.parent, str(inside)
    return None, ""


def is_config_dir(folder: Path) -> bool:
    """Whether it is a directory of this user's in which an assistant has written; anybody may name any to a hook."""
    try:
        return (folder / "projects").is_dir() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def versions_in_use(rows: Rows) -> dict[str, str]:
    """The versions in use, and when each wrote its last line."""
    return events.versions_since(rows, iso(datetime.now(UTC) - timedelta(days=IN_USE_DAYS)))


def outdated_versions(config: Config, seen: Mapping[str, str]) -> list[str]:
    """The versions in use that do not know every event that is registered."""
    needed = display.version_of(str(_record(config).get("needs") or ""))
    return [version for version in seen if needed and (display.version_of(version) or needed) < needed]


def describe_clients(rows: Rows, config: Config) -> dict[str, Any]:
    """What is known of the assistant's clients: versions, the newer events, the directories read and not read."""
    seen, record = versions_in_use(rows), _record(config)
    return {
        "versions": [{"version": version, "last_at": at} for version, at in seen.items()],
        "newer_events": list(record.get("events") or []),
        "kept_out_by": str(record.get("kept_out_by") or ""),
        "directories": [str(folder) for folder in config.assistant_dirs],
        "elsewhere": [path for path in events.elsewhere(rows) if is_elsewhere(config, Path(path))],
    }


def is_elsewhere(config: Config, folder: Path) -> bool:
    """Whether a directory is one of an assistant's that csmd does not read."""
    return is_config_dir(folder) and folder.resolve() not in {known.resolve() for known in config.assistant_dirs}


def client_warnings(known: Mapping[str, Any], config: Config) -> list[str]:
    """What of this is amiss, for `csmd status`; `known` is what `told` gives."""
    found = [
        f"sessions write to {path}, which csmd does not read: csmd install --config-dir {path}"
        for path in known["elsewhere"]
    ]
    if old := outdated_versions(config, {row["version"]: row["last_at"] for row in known["versions"]}):
        found.append(
            f"hooks: {', '.join(known['newer_events'])} are registered, which Claude Code {old[0]} does not know: "
            "csmd hooks settle"
        )
    return found


def _record(config: Config) -> dict[str, Any]:
    """What `csmd install` recorded; a damaged one says nothing here, the command line tells of it."""
    try:
        return files.read_json(config.paths.install_record) or {}
    except ConfigError:
        return {}
