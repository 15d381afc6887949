"""The service that runs the daemon: systemd, launchd, or a detached process."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import psutil

import csmd
from csmd import client, machine, wire
from csmd.config import (
    boot_id,
    child_environment,
    default_paths,
    has_screen,
    manager_environment,
    unit_environment,
    unit_folders,
)
from csmd.errors import BadInput, ConfigError, CsmdError, DaemonBusy, DaemonUnreachable
from csmd.installer import plan
from csmd.installer.foreign_files import make_private, write_whole
from csmd.installer.plan import file_lock
from csmd.paths import Paths, mark_of

#: From this systemd on the wait between restarts can grow; an older one warns about the words.
GROWING_WAIT_SINCE = 254
GROWING_WAIT = "# The wait grows from 2 s to 30 s.\nRestartSteps=4\nRestartMaxDelaySec=30"
_PLACE = re.compile(r"@([A-Z]+)@")
_MARK = re.compile(r"csmd: home ([0-9a-f]{12})\b")
#: A program with these in its path is none to systemd, however they are escaped; among arguments they may stand.
_NO_PROGRAM = re.compile(r"[\x00-\x1f\x7f\\\"']")
THROUGH_SHELL = ("/bin/sh", "-c", 'exec "$@"', "csmd")
_PLAIN = re.compile(r"[\w./=:,+-]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What a service manager is told: whose home, which program, in which environment."""

    home: Path
    is_default: bool
    """Whether this is the home without CSMD_HOME: it has the plain name."""
    command: Sequence[str]
    environment: Mapping[str, str]

    @property
    def mark(self) -> str:
        """What tells this home's unit from another's: 12 hex digits."""
        return mark_of(self.home)

    def name(self, plain: str, between: str) -> str:
        """The unit's name: `plain`, with the mark after `between` where the home is not the default one."""
        return plain if self.is_default else f"{plain}{between}{self.mark}"


def mark_in_unit(text: str) -> str:
    """The mark of the home that a unit was written for; "" when csmd did not write it."""
    found = _MARK.search(text)
    return found.group(1) if found else ""


def systemd_unit(unit: Unit, *, version: int) -> str:
    """The unit file for a systemd of that version; ConfigError when a path cannot stand in one."""
    command = tuple(unit.command)
    if _NO_PROGRAM.search(command[0]):
        command = (*THROUGH_SHELL, *command)
    # Without the colon systemd would look for variables in what is quoted, too.
    verbatim = ":" if any("$" in word for word in command) else ""
    return _filled(
        "systemd/csmd.service",
        {
            "NAME": unit.name("csmd", "-"),
            "MARK": unit.mark,
            "WHICH": "" if unit.is_default else f" ({_unit_said(unit.home)})",
            "EXEC": verbatim + " ".join(_quoted(word) for word in command),
            "ENVIRONMENT": "\n".join(
                f"Environment={_quoted(f'{name}={value}')}" for name, value in unit.environment.items()
            ),
            "BACKOFF": GROWING_WAIT if version >= GROWING_WAIT_SINCE else "",
        },
    )


def launchd_plist(unit: Unit, *, stderr: Path) -> str:
    """The launch agent; ConfigError when a path cannot stand in XML."""
    pairs = (
        f"\t\t<key>{_xml(name)}</key>\n\t\t<string>{_xml(value)}</string>" for name, value in unit.environment.items()
    )
    return _filled(
        "launchd/io.csmd.daemon.plist",
        {
            "NAME": unit.name("io.csmd.daemon", "."),
            "MARK": unit.mark,
            "EXEC": "\n".join(f"\t\t<string>{_xml(word)}</string>" for word in unit.command),
            "ENVIRONMENT": "\n".join(pairs),
            "STDERR": _xml(str(stderr)),
        },
    )


def _filled(name: str, values: Mapping[str, str]) -> str:
    """A shipped template with its places filled; a line that was only a place of nothing is left out."""
    folder, _, file = name.partition("/")
    lines = []
    for line in (plan.shipped_folder(folder) / file).read_text(encoding="utf-8").splitlines():
        place = _PLACE.fullmatch(line)
        if not (place and not values[place.group(1)]):
            lines.append(_PLACE.sub(lambda found: values[found.group(1)], line))
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    """A word as systemd reads it back: quoted where it must be, its specifiers and control characters escaped."""
    _refuse_bytes(word)
    if _PLAIN.fullmatch(word):
        return word
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", plain) + '"'


def _xml(word: str) -> str:
    _refuse_bytes(word)
    if _CONTROL.search(word):
        raise ConfigError(f"{word!r} holds a control character, which no plist can", hint="move it to a plainer place")
    return escape(word, quote=False)


def _refuse_bytes(word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{os.fsencode(word)!r} is not UTF-8, which a service unit must be",
            hint="move it to a place with a plainer name, or `csmd install --no-service`",
        ) from error


def _unit_said(path: Path) -> str:
    """A path for a line that people read."""
    _refuse_bytes(str(path))
    return _CONTROL.sub("?", str(path)).replace("%", "%%")


#: A question to a manager; one that hangs is none.
ASK_S = 10.0
#: A start or a stop: the unit's own limits are shorter.
ACT_S = 40.0
LINGER = "it ends when you log out; `loginctl enable-linger` has it go on, and start with the machine"


def unit_of(paths: Paths, kind: str) -> Unit:
    """The unit for this home: this interpreter, and the environment that the daemon needs."""
    return Unit(
        home=paths.home,
        is_default=paths.home == default_paths({}).home,
        command=(sys.executable, "-P", "-m", "csmd.daemon"),
        environment=unit_environment(kind),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """How a service manager is asked. `{name}` stands for the unit, `{file}` for its file, `{domain}` for launchd's.

    `plain` and `between` make a unit's name, `suffix` its file's. `prepare` may fail; of `start` the first that works
    counts. Nothing is stopped where `loaded` fails.
    """

    plain: str
    between: str
    suffix: str
    reachable: str
    reload: str
    enable: str
    disable: str
    start: tuple[str, ...]
    stop: str
    where_to_look: str
    prepare: str = ""
    loaded: str = ""
    state: str = ""


MANAGERS: Mapping[str, Commands] = {
    "systemd": Commands(
        plain="csmd", between="-", suffix=".service",
        reachable="systemctl --user show -p Version",
        reload="systemctl --user daemon-reload",
        enable="systemctl --user --quiet enable {name}",
        disable="systemctl --user --quiet disable {name}",
        prepare="systemctl --user reset-failed {name}",  # it may have given up on an earlier one
        start=("systemctl --user start {name}",),
        stop="systemctl --user stop {name}",
        where_to_look="journalctl --user -u {name} -n 20",
        state="systemctl --user show -p ActiveState --value {name}",
    ),
    "launchd": Commands(
        plain="io.csmd.daemon", between=".", suffix=".plist",
        reachable="launchctl print {domain}",
        reload="launchctl bootout {domain}/{name}",  # `start` gives it the new one
        enable="launchctl enable {domain}/{name}",
        disable="launchctl disable {domain}/{name}",
        start=("launchctl bootstrap {domain} {file}", "launchctl kickstart {domain}/{name}"),
        stop="launchctl bootout {domain}/{name}",
        where_to_look="launchctl print {domain}/{name}",
        loaded="launchctl print {domain}/{name}",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manager:
    """One unit of the user's systemd, or one agent of their launchd; `file` is where it lies."""

    paths: Paths
    file: Path
    kind: str

    @property
    def commands(self) -> Commands:
        """How this manager is asked."""
        return MANAGERS[self.kind]

    @property
    def name(self) -> str:
        """The unit's name, launchd's label."""
        return self.file.name.removesuffix(self.commands.suffix)

    def _words(self, command: str) -> list[str]:
        named = {"name": self.name, "file": str(self.file), "domain": f"gui/{os.getuid()}"}
        return [word.format(**named) for word in command.split()]

    def _ask(self, command: str) -> str:
        return _ask_manager(*self._words(command)) if command else ""

    def _act(self, command: str) -> None:
        words = self._words(command)
        done = _run(*words)
        if done is None or done.returncode:
            raise CsmdError(
                f"`{' '.join(words)}` failed: {_complaint_of(done)}", hint="`csmd install --no-service` does without"
            )

    def text(self) -> str:
        """What the unit should say; for systemd by the version that runs."""
        unit = unit_of(self.paths, self.kind)
        if self.kind == "launchd":
            return launchd_plist(unit, stderr=self.paths.run_dir / "service.stderr")
        version = re.search(r"^Version=(\d+)", self._ask(self.commands.reachable), re.MULTILINE)
        return systemd_unit(unit, version=int(version.group(1)) if version else 0)

    def is_reachable(self) -> bool:
        """Whether the manager answers; launchd keeps agents only for users with a session."""
        return bool(self._ask(self.commands.reachable))

    def reload(self) -> None:
        """Makes the manager read the unit that was written."""
        if not self.commands.loaded or self._ask(self.commands.loaded):
            self._act(self.commands.reload)

    def enable(self) -> None:
        """Makes the daemon start at each login."""
        self._act(self.commands.enable)

    def disable(self) -> None:
        """Stops the daemon from starting at login."""
        self._act(self.commands.disable)

    def start(self) -> str:
        """Starts the daemon; what the manager says when it does not, else ""."""
        if self.commands.prepare:
            _run(*self._words(self.commands.prepare))
        done = None
        for command in self.commands.start:
            done = _run(*self._words(command))
            if done is not None and not done.returncode:
                return ""
        # One that takes long, because it migrates, is no failure yet.
        return "" if done is None else _complaint_of(done)

    def stop(self) -> None:
        """Ends the daemon, also one that waits to be started again."""
        if not self.commands.loaded or self._ask(self.commands.loaded):
            self._act(self.commands.stop)

    def forget(self) -> None:
        """Makes the manager forget the unit, whose file is gone."""
        if self.kind == "launchd":
            self.enable()  # "disabled" would be remembered
            return
        (self.file.parent / WANTS / self.file.name).unlink(missing_ok=True)
        if self.is_reachable():
            self.reload()
            _run(*self._words(self.commands.prepare))

    def where_to_look(self) -> str:
        """The command that shows what the manager noted."""
        return " ".join(self._words(self.commands.where_to_look))

    def has_given_up(self) -> bool:
        """Whether the daemon died so often that the manager starts it no more by itself; launchd tries for ever."""
        return self._ask(self.commands.state).strip() == "failed"

    def lifetime_note(self) -> str:
        """What a person should know of how long the daemon lives; "" when it lives as long as one would think."""
        if self.kind == "launchd" or has_screen():
            return ""
        linger = _ask_manager("loginctl", "show-user", str(os.getuid()), "-p", "Linger", "--value")
        return LINGER if linger.strip() == "no" else ""


def find_manager(paths: Paths, *, platform: str = sys.platform, version: str = "") -> Manager | str:
    """The manager that can run this home's daemon, or the reason why none can; `version` is the text of /proc/version."""
    kind = "launchd" if platform == "darwin" else "systemd"
    commands, folders = MANAGERS[kind], unit_folders(kind)
    file = unit_of(paths, kind).name(commands.plain, commands.between) + commands.suffix
    if kind == "launchd":
        agent = Manager(paths, folders[0] / file, kind)
        return agent if agent.is_reachable() else "launchd keeps no agents for you here (no session at the screen)"
    advice = f"; {ENABLE_SYSTEMD}" if is_wsl(version) else ""
    if shutil.which("systemctl", path=manager_environment().get("PATH")) is None:
        return f"there is no systemd here{advice}"
    answer = _ask_manager("systemctl", "--user", "show", "-p", "UnitPath")
    if not answer:
        return f"no systemd user manager answers here{advice}"
    looked_at = f" {answer.strip().partition('=')[2]} "
    for folder in folders:
        if f" {folder} " in looked_at:
            return Manager(paths, folder / file, kind)
    # Another HOME than that of the session: a unit there would never be read.
    return f"your systemd does not look for units in {folders[0]}"


def _ask_manager(*command: str) -> str:
    """What a command answers; "" when it fails."""
    done = _run(*command, patience_s=ASK_S)
    return done.stdout if done is not None and done.returncode == 0 else ""


def _complaint_of(done: subprocess.CompletedProcess[str] | None) -> str:
    """The first line of what a failed command said."""
    said = "no answer" if done is None else (done.stderr.strip() or f"exit code {done.returncode}")
    return said.splitlines()[0]


def _run(*command: str, patience_s: float = ACT_S) -> subprocess.CompletedProcess[str] | None:
    """Runs a manager's command; None when it does not exist or does not end in time."""
    try:
        return subprocess.run(
            command, env=manager_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=patience_s, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


#: How Windows' drives show themselves: by version and configuration.
WINDOWS_DISKS = frozenset({"9p", "v9fs", "drvfs", "virtiofs"})
#: What is said where WSL runs without systemd, which is its older default.
ENABLE_SYSTEMD = "put the lines [boot] and systemd=true into /etc/wsl.conf, run `wsl --shutdown`, then `csmd install`"
_DRIVE = re.compile(r"/mnt/[a-z](?:/|$)")


def is_wsl(version: str) -> bool:
    """Whether /proc/version is of a kernel of Microsoft's."""
    return "microsoft" in version.lower()


def windows_refusal(home: Path, *, version: str, mounts: str) -> str:
    """Why csmd cannot live in this home, "" when it can: on a drive of Windows neither SQLite's log nor sockets work.

    `version` and `mounts` are the texts of /proc/version and /proc/mounts.
    """
    if not is_wsl(version):
        return ""
    disk, _ = file_system(home, mounts)
    on_windows = disk in WINDOWS_DISKS if disk else bool(_DRIVE.match(str(home)))
    return (
        f"{home} is on a drive of Windows, where SQLite's write-ahead log and Unix sockets do not work"
        if on_windows
        else ""
    )


def mount_points(mounts: str) -> dict[Path, str]:
    """Mount point -> type of its file system, from the text of /proc/mounts; of two on one place what one sees, the later."""
    rows = [line.split(" ") for line in mounts.splitlines()]
    # The table writes a blank as \040.
    return {
        Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), row[1])): row[2]
        for row in rows
        if len(row) > 2
    }


def file_system(place: Path, mounts: str) -> tuple[str, Path | None]:
    """The type of the file system that a place is on, and where that is mounted; ("", None) when the table does not say."""
    points = mount_points(mounts)
    around = next((folder for folder in (place, *place.parents) if folder in points), None)
    return ("", None) if around is None else (points[around], around)


#: Where systemd keeps what starts with a login: made by it, empty when nothing does.
WANTS = "default.target.wants"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What runs the daemon: a manager with its unit's text before and after, or no manager and `why`."""

    manager: Manager | None
    why: str = ""
    before: str | None = None
    after: str = ""

    @property
    def kind(self) -> str:
        """`systemd`, `launchd` or `detached`."""
        return self.manager.kind if self.manager else "detached"

    @property
    def changes(self) -> bool:
        """Whether a unit would be written."""
        return self.manager is not None and self.before != self.after


def plan_unit(paths: Paths, *, wanted: bool = True) -> Plan:
    """What installing would do about the service; nothing is written. ConfigError where it cannot be done."""
    check_not_windows(paths)
    if not wanted:
        return Plan(manager=None, why="as --no-service asks")
    found = find_manager(paths, version=kernel())
    if isinstance(found, str):
        return Plan(manager=None, why=found)
    return plan_for(found)


def plan_for(manager: Manager) -> Plan:
    """The plan for a unit of this manager; ConfigError when another file is in its place."""
    after, before = manager.text(), None
    if manager.file.exists() or manager.file.is_symlink():
        before = "" if manager.file.is_symlink() else manager.file.read_text(encoding="utf-8", errors="replace")
        if mark_in_unit(before) != mark_in_unit(after):
            raise ConfigError(
                f"{manager.file} is there already, and it is not this home's unit",
                hint="move it away, or `csmd install --no-service`",
            )
    return Plan(manager=manager, before=before, after=after)


def place(paths: Paths, planned: Plan, *, enable: bool = True) -> bool:
    """Writes the unit and has the manager read it, or takes back one that is not wanted any more; whether it changed.

    With `enable` it starts at each login from now on.
    """
    manager = planned.manager
    known = plan.load_record(paths)["service"]
    changed = False
    if known and (manager is None or known["file"] != str(manager.file)):
        known, changed = None, remove(paths)
    if manager is not None:
        missing = [str(folder) for folder in [*reversed(manager.file.parents), manager.file.parent / WANTS]
                   if not folder.exists()]  # fmt: skip
        folders = list(dict.fromkeys([*(known or {}).get("folders", []), *missing]))
        _note(paths, service={"kind": manager.kind, "file": str(manager.file), "folders": folders})
        if planned.changes:
            manager.file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(manager.file, planned.after.encode())
            manager.reload()
        if enable:
            manager.enable()
    _note(paths, version=csmd.__version__)
    return changed or planned.changes


def _note(paths: Paths, **what: Any) -> None:
    with plan.install_lock(paths):
        known = plan.load_record(paths)
        if {**known, **what} != known:
            plan.save_record(paths, {**known, **what})


def recorded_unit(paths: Paths) -> str:
    """The unit that an install put into place; "" for none."""
    known = plan.load_record(paths)["service"]
    return str(known["file"]) if known else ""


def remove(paths: Paths) -> bool:
    """Ends the daemon that a manager keeps and takes its unit away; False when none is recorded."""
    known = plan.load_record(paths)["service"]
    if not known:
        return False
    manager = Manager(paths, Path(known["file"]), known["kind"])
    if manager.kind in MANAGERS:  # a kind of a later csmd is none of ours
        if manager.is_reachable():
            manager.stop()
            manager.disable()
        if manager.file.is_file() and mark_in_unit(manager.file.read_text(encoding="utf-8", errors="replace")):
            manager.file.unlink()
        manager.forget()
    for folder in reversed(known["folders"]):
        with contextlib.suppress(OSError):  # somebody has put something into it, or it has gone
            Path(folder).rmdir()
    _note(paths, service=None)
    if not plan.load_record(paths)["settings"] and not paths.hook_dir.is_dir():
        paths.install_record.unlink(missing_ok=True)  # nothing of csmd's is anywhere else any more
    return True


def bring_up(paths: Paths, planned: Plan) -> dict[str, Any]:
    """Has this csmd's daemon run as planned, in place of whatever runs.

    Its status, with `started`, and `replaced`: the version of the daemon that had to end for it, else "".
    """
    changed = place(paths, planned)
    running = read_instance(paths) if running_service(paths) else {}
    other = str(running.get("version", "an unknown version")) if running else ""
    stays = not changed and other == csmd.__version__ and running.get("service") == planned.kind
    if running and not stays:
        # It drains; hooks spool meanwhile. Also one that is too old to be asked anything.
        stop(paths, by_user=False)
    return {**start(paths), "replaced": "" if stays else other}


START_PATIENCE_S = 30.0
STOP_PATIENCE_S = 20.0
#: Where Linux says what it is, and what is mounted.
KERNEL, MOUNTS = Path("/proc/version"), Path("/proc/mounts")


def running_service(paths: Paths) -> psutil.Process | None:
    """The daemon's process, identified by pid and start time from the instance file; None when none runs."""
    try:
        known = read_instance(paths)
        process = psutil.Process(int(known["pid"]))
        start = machine.started(process.pid)
        same = start is not None and abs(start - float(known["start"])) < 1.0 and known["boot"] == boot_id()
    except (KeyError, TypeError, ValueError, psutil.Error):
        return None
    return process if same else None


def read_instance(paths: Paths) -> dict[str, Any]:
    """What the daemon that runs, or the last one that was killed, says of itself; empty when none does."""
    try:
        value = wire.loads(paths.instance.read_bytes())
    except (OSError, BadInput):
        return {}
    return value if isinstance(value, dict) else {}


def recorded_manager(paths: Paths) -> Manager | None:
    """The manager that has this home's unit and answers; None when the daemon is to run detached."""
    try:
        known = plan.load_record(paths)["service"]
    except (OSError, CsmdError):
        return None  # a damaged record must keep nobody from stopping a daemon
    if not isinstance(known, dict) or not Path(str(known.get("file"))).is_file():
        return None
    keeper = Manager(paths, Path(str(known["file"])), str(known.get("kind")))
    return keeper if keeper.kind in MANAGERS and keeper.is_reachable() else None


def lifetime_note(paths: Paths, kind: str) -> str:
    """What a person should know of how long a daemon lives that `kind` keeps; "" when it lives as one would think."""
    if kind == "detached":
        return "after a reboot `csmd start` brings it back"
    keeper = recorded_manager(paths)
    return keeper.lifetime_note() if keeper is not None else ""


def check_not_windows(paths: Paths) -> None:
    """ConfigError when this home is on a drive of Windows, where csmd cannot live."""
    why = windows_refusal(paths.home, version=kernel(), mounts=read_text(MOUNTS))
    if why:
        raise ConfigError(why, hint="leave CSMD_HOME away, or set it to a directory of Linux's own, e.g. ~/.csmd")


def kernel() -> str:
    """What the system says it is; "" where it does not."""
    return read_text(KERNEL)


def start(paths: Paths) -> dict[str, Any]:
    """Starts the daemon and waits until it answers; its status, with `started` False when it ran already."""
    check_not_windows(paths)
    for folder in (paths.home, paths.run_dir):
        make_private(folder)
    child: subprocess.Popen[bytes] | None = None
    begun, refused, where_to_look = False, "", f"see {paths.log_file}"
    until = time.monotonic() + START_PATIENCE_S
    with file_lock(paths.run_dir / "start.lock"):  # of two that start at once the second finds the first one's daemon
        try:
            while time.monotonic() < until:
                if running_service(paths) is not None:
                    with contextlib.suppress(DaemonUnreachable, DaemonBusy):
                        status = dict(client.call(paths, "csm_runtime_status", patience_s=5.0))
                        return {**status, "started": begun and (child is None or child.pid == status["daemon"]["pid"])}
                elif not begun:
                    begun, keeper = True, recorded_manager(paths)
                    if keeper is None:
                        child = _spawn(paths)
                    else:
                        paths.complaint.unlink(missing_ok=True)
                        keeper.enable()  # `csmd stop` has it stay away, also at the next login
                        refused, where_to_look = keeper.start(), keeper.where_to_look()
                elif ended := _how_it_ended(paths, child, refused):
                    what, hint = split_complaint(read_text(paths.complaint))
                    raise CsmdError(f"the daemon ended at once: {what or ended}", hint=hint or where_to_look)
                time.sleep(0.02)
        finally:
            if child is not None:  # Popen would warn about a child it never waited for: this one outlives us on purpose
                child.returncode = child.poll() or 0
    raise CsmdError(f"the daemon did not answer within {START_PATIENCE_S:g} s", hint=f"see {paths.log_file}")


def _how_it_ended(paths: Paths, child: subprocess.Popen[bytes] | None, refused: str) -> str:
    """How the daemon ended before it answered; "" while it may still start."""
    if child is None:
        return refused or ("it could not run" if read_text(paths.complaint) else "")
    return "" if child.poll() is None else f"exit code {child.returncode}"


def _spawn(paths: Paths) -> subprocess.Popen[bytes]:
    # Its own session and no pipe to us: whoever started us must not wait for it, nor end it with us.
    handle = os.open(paths.complaint, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as complaint:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "csmd.daemon"],
            cwd=str(paths.home),
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=complaint,
            start_new_session=True,
            close_fds=True,
        )


def stop(paths: Paths, *, by_user: bool) -> bool:
    """Ends the daemon and waits until it is gone; False when none ran.

    `by_user` leaves the stopped mark, and has a service manager not start it at the next login.
    """
    process, keeper = running_service(paths), recorded_manager(paths)
    if keeper is not None:
        keeper.stop()  # also where none runs: it may be about to be started again
        if by_user:
            keeper.disable()
    if process is not None:
        _end(process)
    if by_user and paths.run_dir.is_dir():
        paths.stopped_mark.touch(mode=0o600)
    return process is not None


def _end(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGTERM)
        until = time.monotonic() + STOP_PATIENCE_S
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > until:
                raise CsmdError(
                    f"the daemon (pid {process.pid}) did not end within {STOP_PATIENCE_S:g} s",
                    hint=f"kill -9 {process.pid}; nothing acknowledged is lost by that",
                )
            time.sleep(0.02)
    except psutil.NoSuchProcess:
        return


def split_complaint(said: str) -> tuple[str, str]:
    """(what, hint) from the error message that a csmd process printed when it ended."""
    what, _, hint = said.strip().removeprefix("csmd: ").partition("\n  try: ")
    return what, hint


def explain_unreachable(paths: Paths, error: DaemonUnreachable) -> DaemonUnreachable:
    """The same error with the reason why the last daemon ended, where it is known."""
    if running_service(paths) is not None:
        return error
    what, hint = split_complaint(read_text(paths.complaint))
    if what:
        return DaemonUnreachable(f"{error.what}; the last one ended at once: {what}", hint=hint or error.hint)
    keeper = recorded_manager(paths)
    if keeper is not None and keeper.has_given_up():
        return DaemonUnreachable(
            f"{error.what}; it died several times in a row and {keeper.kind} starts it no more",
            hint=f"csmd start; why it died: {keeper.where_to_look()}",
        )
    return error


def read_text(path: Path) -> str:
    """The text of a file, "" where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
