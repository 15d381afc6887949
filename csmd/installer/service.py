"""The service that runs the daemon: systemd, launchd, or a detached process."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import csmd
from csmd import client, config, wire
from csmd.errors import BadInput, ConfigError, CsmdError, DaemonBusy, DaemonUnreachable
from csmd.installer import foreign_files, home_disk, plan
from csmd.installer.foreign_files import make_private, write_atomic
from csmd.paths import Paths, mark_of, text_of

if TYPE_CHECKING:
    import subprocess

    import psutil

# --- service managers

#: The commands of each service manager. `{name}` is the unit, `{file}` its file, `{domain}` launchd's domain.
#: `prepare` may fail; `start loaded` is tried when `start` fails; nothing is reloaded or stopped when `loaded` fails.
MANAGERS: Mapping[str, Mapping[str, str]] = {
    "systemd": {
        "label": "csmd", "separator": "-", "suffix": ".service",
        "reachable": "systemctl --user show -p Version",
        "reload": "systemctl --user daemon-reload",
        "enable": "systemctl --user --quiet enable {name}",
        "disable": "systemctl --user --quiet disable {name}",
        "prepare": "systemctl --user reset-failed {name}",  # it may have given up on an earlier one
        "start": "systemctl --user start {name}",
        "stop": "systemctl --user stop {name}",
        "diagnosis": "journalctl --user -u {name} -n 20",
        "state": "systemctl --user show -p ActiveState --value {name}",
    },
    "launchd": {
        "label": "io.csmd.daemon", "separator": ".", "suffix": ".plist",
        "reachable": "launchctl print {domain}",
        "reload": "launchctl bootout {domain}/{name}",  # `start` gives it the new one
        "enable": "launchctl enable {domain}/{name}",
        "disable": "launchctl disable {domain}/{name}",
        "start": "launchctl bootstrap {domain} {file}",
        "start loaded": "launchctl kickstart {domain}/{name}",
        "stop": "launchctl bootout {domain}/{name}",
        "diagnosis": "launchctl print {domain}/{name}",
        "loaded": "launchctl print {domain}/{name}",
    },
}  # fmt: skip
#: Timeout of a query to a manager.
QUESTION_TIMEOUT_S = 10.0
#: Timeout of a start or a stop; the unit's own limits are shorter.
ACTION_TIMEOUT_S = 40.0
LINGER = "it ends when you log out; `loginctl enable-linger` keeps it running and starts it with the machine"
#: The directory with links to the units that start with a login; systemd creates it, and keeps it if it is empty.
WANTS = "default.target.wants"


@dataclass(frozen=True, slots=True)
class Manager:
    """A unit of the user's systemd or an agent of their launchd, and the path of its file."""

    paths: Paths
    file: Path
    kind: str

    @property
    def name(self) -> str:
        """The unit's name, launchd's label."""
        return self.file.name.removesuffix(MANAGERS[self.kind]["suffix"])

    def command(self, action: str) -> list[str]:
        """Returns the command for one of the actions in MANAGERS; [] if this manager needs none."""
        values = {"name": self.name, "file": str(self.file), "domain": f"gui/{os.getuid()}"}
        return [word.format(**values) for word in MANAGERS[self.kind].get(action, "").split()]

    def ask(self, action: str) -> str:
        """Returns the output of an action's command; "" if it fails or there is none."""
        return _read_output(self.command(action))

    def run(self, action: str) -> None:
        """Runs an action's command; CsmdError if it fails."""
        command = self.command(action)
        if failure := _describe_failure(_run(command)):
            hint = "run `csmd install --no-service` to do without a service"
            raise CsmdError(f"`{' '.join(command)}` failed: {failure}", hint=hint)

    def run_if_loaded(self, action: str) -> None:
        """Runs a command if the manager has loaded the unit: launchd fails to end one that is not loaded."""
        if not self.command("loaded") or self.ask("loaded"):
            self.run(action)

    def text(self) -> str:
        """Returns the text of the unit file; for systemd it depends on the running version."""
        unit = make_unit(self.paths, self.kind)
        if self.kind == "launchd":
            return format_launchd_plist(unit, stderr=self.paths.run_dir / "service.stderr")
        version = re.search(r"^Version=(\d+)", self.ask("reachable"), re.MULTILINE)
        return format_systemd_unit(unit, version=int(version.group(1)) if version else 0)

    def is_reachable(self) -> bool:
        """Whether the manager answers; launchd keeps agents only for users with a session."""
        return bool(self.ask("reachable"))

    def start(self) -> str:
        """Starts the daemon; returns the manager's error message, "" if it started."""
        _run(self.command("prepare"))
        result = _run(self.command("start"))
        if _describe_failure(result) and self.command("start loaded"):
            result = _run(self.command("start loaded"))
        # A daemon that migrates takes long; that is no failure yet.
        return _describe_failure(result) if result else ""

    def forget(self) -> None:
        """Makes the manager forget the unit, whose file was removed."""
        if self.kind == "launchd":
            self.run("enable")  # "disabled" would be remembered
            return
        (self.file.parent / WANTS / self.file.name).unlink(missing_ok=True)
        if self.is_reachable():
            self.run("reload")
            _run(self.command("prepare"))

    def describe_lifetime(self) -> str:
        """Returns a sentence if the daemon ends sooner than a person expects, else ""."""
        if self.kind == "launchd" or config.has_screen():
            return ""
        linger = _read_output(["loginctl", "show-user", str(os.getuid()), "-p", "Linger", "--value"])
        return LINGER if linger.strip() == "no" else ""


def _run(command: Sequence[str], timeout_s: float = ACTION_TIMEOUT_S) -> subprocess.CompletedProcess[str] | None:
    """Runs a manager's command; None if there is none, it does not exist or exceeds its timeout."""
    if not command:
        return None
    import subprocess

    try:
        return subprocess.run(
            command, env=config.manager_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=timeout_s, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None


def _read_output(command: Sequence[str]) -> str:
    """Returns the output of a command; "" if it fails."""
    result = _run(command, QUESTION_TIMEOUT_S)
    return "" if result is None or result.returncode else result.stdout


def _describe_failure(result: subprocess.CompletedProcess[str] | None) -> str:
    """Returns the first line of what a failed command printed; "" if it did not fail."""
    if result is None:
        return "no answer"
    return (result.stderr.strip() or f"exit code {result.returncode}").splitlines()[0] if result.returncode else ""


#: Advice for a WSL without systemd, its older default.
ENABLE_SYSTEMD = "put the lines [boot] and systemd=true into /etc/wsl.conf, run `wsl --shutdown`, then `csmd install`"


def find_manager(paths: Paths, *, platform: str = sys.platform) -> Manager | str:
    """Returns the manager that can run this home's daemon, or the reason why none can."""
    kind = "launchd" if platform == "darwin" else "systemd"
    folders = config.unit_folders(kind)
    file = make_unit(paths, kind).name(kind) + MANAGERS[kind]["suffix"]
    if kind == "launchd":
        agent = Manager(paths, folders[0] / file, kind)
        return agent if agent.is_reachable() else "launchd keeps no agents for you here (no session at the screen)"
    advice = f"; {ENABLE_SYSTEMD}" if home_disk.is_wsl() else ""
    import shutil

    if shutil.which("systemctl", path=config.manager_environment().get("PATH")) is None:
        return f"there is no systemd here{advice}"
    answer = _read_output(["systemctl", "--user", "show", "-p", "UnitPath"])
    if not answer:
        return f"no systemd user manager answers here{advice}"
    searched = f" {answer.strip().partition('=')[2]} "
    # No folder: HOME differs from the session's, and a unit there would never be read.
    folder = next((folder for folder in folders if f" {folder} " in searched), None)
    return Manager(paths, folder / file, kind) if folder else f"your systemd does not search {folders[0]} for units"


# --- units

#: From this systemd on the wait between restarts can grow; an older one warns about the words.
GROWING_WAIT_SINCE = 254
GROWING_WAIT = "# The wait grows from 2 s to 30 s.\nRestartSteps=4\nRestartMaxDelaySec=30"
_PLACEHOLDER = re.compile(r"@([A-Z]+)@")
_MARK = re.compile(r"csmd: home ([0-9a-f]{12})\b")
#: Characters that systemd refuses in the path of a program, however they are escaped; in arguments it takes them.
_NO_PROGRAM = re.compile(r"[\x00-\x1f\x7f\\\"']")
THROUGH_SHELL = ("/bin/sh", "-c", 'exec "$@"', "csmd")
_PLAIN = re.compile(r"[\w./=:,+-]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """The content of a unit: home, command line and environment of the daemon."""

    home: Path
    is_default: bool
    """Whether this is the home without CSMD_HOME: it has the plain name."""
    command: Sequence[str]
    environment: Mapping[str, str]

    @property
    def mark(self) -> str:
        """12 hex digits by which the units of several homes differ."""
        return mark_of(self.home)

    def name(self, kind: str) -> str:
        """Returns the unit's name for a service manager, with the mark unless the home is the default one."""
        row = MANAGERS[kind]
        return row["label"] if self.is_default else f"{row['label']}{row['separator']}{self.mark}"


def make_unit(paths: Paths, kind: str) -> Unit:
    """Returns the unit for this home: this interpreter, and the environment that the daemon needs."""
    return Unit(
        home=paths.home, is_default=paths.home == config.default_paths({}).home, command=(sys.executable, *DAEMON),
        environment=config.unit_environment(kind),
    )  # fmt: skip


def find_mark(text: str) -> str:
    """Returns the mark of the home that a unit was written for; "" when csmd did not write it."""
    match = _MARK.search(text)
    return match.group(1) if match else ""


def format_systemd_unit(unit: Unit, *, version: int) -> str:
    """Returns the unit file for a systemd of that version; ConfigError if a path cannot be written in one."""
    command = tuple(unit.command)
    if _NO_PROGRAM.search(command[0]):
        command = (*THROUGH_SHELL, *command)
    # Without the colon systemd would also expand variables inside quotes.
    verbatim = ":" if any("$" in word for word in command) else ""
    variables = (f"{name}={value}" for name, value in unit.environment.items())
    values = {
        "NAME": unit.name("systemd"), "MARK": unit.mark,
        "WHICH": "" if unit.is_default else f" ({_CONTROL.sub('?', _check_utf8(str(unit.home))).replace('%', '%%')})",
        "EXEC": verbatim + " ".join(map(_quote_systemd_word, command)),
        "ENVIRONMENT": "\n".join(f"Environment={_quote_systemd_word(variable)}" for variable in variables),
        "BACKOFF": GROWING_WAIT if version >= GROWING_WAIT_SINCE else "",
    }  # fmt: skip
    return _fill_template("systemd", "csmd.service", values)


def format_launchd_plist(unit: Unit, *, stderr: Path) -> str:
    """Returns the launch agent; ConfigError if a path cannot be written in XML."""
    escaped = ((_escape_xml(name), _escape_xml(value)) for name, value in unit.environment.items())
    pairs = (f"\t\t<key>{name}</key>\n\t\t<string>{value}</string>" for name, value in escaped)
    values = {
        "NAME": unit.name("launchd"), "MARK": unit.mark,
        "EXEC": "\n".join(f"\t\t<string>{_escape_xml(word)}</string>" for word in unit.command),
        "ENVIRONMENT": "\n".join(pairs), "STDERR": _escape_xml(str(stderr)),
    }  # fmt: skip
    return _fill_template("launchd", "io.csmd.daemon.plist", values)


def _fill_template(folder: str, file: str, values: Mapping[str, str]) -> str:
    """Returns a shipped template with its placeholders filled; a line that holds only an empty one is left out."""
    lines = []
    for line in (plan.find_shipped_folder(folder) / file).read_text(encoding="utf-8").splitlines():
        filled = _PLACEHOLDER.sub(lambda match: values[match.group(1)], line)
        if filled or not line:
            lines.append(filled)
    return "\n".join(lines) + "\n"


def _quote_systemd_word(word: str) -> str:
    """Returns a word as systemd reads it back: quoted where it must be, its specifiers and control characters
    escaped."""
    if _PLAIN.fullmatch(_check_utf8(word)):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", escaped) + '"'


def _escape_xml(word: str) -> str:
    from html import escape

    if _CONTROL.search(_check_utf8(word)):
        what = f"{word!r} holds a control character, which a plist cannot contain"
        raise ConfigError(what, hint="move it to another path")
    return escape(word, quote=False)


def _check_utf8(word: str) -> str:
    """Returns the word itself; ConfigError if it is not UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError as error:
        hint = "move it to a path in UTF-8, or run `csmd install --no-service`"
        raise ConfigError(f"{os.fsencode(word)!r} is not UTF-8, which a service unit must be", hint=hint) from error
    return word


# --- installing the unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The manager that is to run the daemon, with its unit's text before and after; or no manager, and `why`."""

    manager: Manager | None
    why: str = ""
    before: str | None = None
    after: str = ""

    @property
    def kind(self) -> str:
        """`systemd`, `launchd` or `detached`."""
        return self.manager.kind if self.manager else "detached"

    @property
    def file(self) -> str:
        """The path of the unit file; "" for none."""
        return str(self.manager.file) if self.manager else ""

    @property
    def diff(self) -> str:
        """The change of the unit as a diff; "" if there is none."""
        before = None if self.before is None else self.before.encode()
        return foreign_files.diff(before, self.after.encode(), self.manager.file) if self.manager else ""

    @property
    def changes(self) -> bool:
        """Whether a unit would be written."""
        return self.manager is not None and self.before != self.after


def plan_unit(paths: Paths, *, wanted: bool = True) -> Plan:
    """Returns the plan for the service of this home; nothing is written. ConfigError if the home cannot have one."""
    home_disk.check(paths.home)
    manager = find_manager(paths) if wanted else "as --no-service asks"
    return Plan(manager=None, why=manager) if isinstance(manager, str) else plan_for(manager)


def plan_for(manager: Manager) -> Plan:
    """Returns the plan for a unit of this manager; ConfigError if another file has its path."""
    after, before = manager.text(), None
    if manager.file.exists() or manager.file.is_symlink():
        before = "" if manager.file.is_symlink() else text_of(manager.file)
        if find_mark(before) != find_mark(after):
            hint = "move it away, or run `csmd install --no-service`"
            raise ConfigError(f"{manager.file} exists and is not this home's unit", hint=hint)
    return Plan(manager=manager, before=before, after=after)


def install_unit(paths: Paths, planned: Plan, *, enable: bool = True) -> bool:
    """Writes the unit and makes the manager read it, or removes an obsolete one; returns whether it changed.

    With `enable` it starts at each login from now on.
    """
    manager, changed = planned.manager, planned.changes
    recorded = plan.load_record(paths)["service"]
    if recorded and (manager is None or recorded["file"] != str(manager.file)):
        recorded, changed = None, remove_unit(paths)
    if manager is not None:
        needed = (*reversed(manager.file.parents), manager.file.parent / WANTS)
        created = [str(folder) for folder in needed if not folder.exists()]
        folders = list(dict.fromkeys([*(recorded or {}).get("folders", []), *created]))
        _update_record(paths, service={"kind": manager.kind, "file": str(manager.file), "folders": folders})
        if planned.changes:
            manager.file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(manager.file, planned.after.encode())
            manager.run_if_loaded("reload")
        if enable:
            manager.run("enable")
    _update_record(paths, version=csmd.__version__)
    return changed


def _update_record(paths: Paths, **values: Any) -> None:
    with plan.install_lock(paths):
        record = plan.load_record(paths)
        if {**record, **values} != record:
            plan.save_record(paths, {**record, **values})


def read_recorded_unit(paths: Paths) -> str:
    """Returns the path of the recorded unit; "" for none."""
    return str((plan.load_record(paths)["service"] or {"file": ""})["file"])


def remove_unit(paths: Paths) -> bool:
    """Stops the daemon that a manager runs and removes its unit; False when none is recorded."""
    recorded = plan.load_record(paths)["service"]
    if not recorded:
        return False
    manager = Manager(paths, Path(str(recorded["file"])), str(recorded["kind"]))
    if manager.kind in MANAGERS:  # a later csmd may know others
        if manager.is_reachable():
            manager.run_if_loaded("stop")
            manager.run("disable")
        if find_mark(text_of(manager.file)):
            manager.file.unlink()
        manager.forget()
    for folder in reversed(recorded["folders"]):
        with contextlib.suppress(OSError):  # not empty, or gone
            Path(folder).rmdir()
    _update_record(paths, service=None)
    if not plan.load_record(paths)["settings"] and not paths.hook_dir.is_dir():
        paths.install_record.unlink(missing_ok=True)  # nothing else is installed
    return True


def bring_up(paths: Paths, planned: Plan) -> dict[str, Any]:
    """Runs the daemon of this version as planned, in place of any other.

    Its status, with `started`, and `replaced`: the version of the daemon that had to end for it, else "".
    """
    changed = install_unit(paths, planned)
    running = read_instance(paths) if find_process(paths) else {}
    version = str(running.get("version", "an unknown version")) if running else ""
    stays = not changed and version == csmd.__version__ and running.get("service") == planned.kind
    if running and not stays:
        # It finishes its work while hooks spool. Also stops a daemon that is too old to be asked.
        stop(paths, by_user=False)
    return {**start(paths), "replaced": "" if stays else version}


# --- the daemon's process

START_PATIENCE_S = 30.0
STOP_PATIENCE_S = 20.0


def find_process(paths: Paths) -> psutil.Process | None:
    """Returns the daemon's process, identified by pid and start time from the instance file; None if none runs."""
    import psutil  # imported late: slow, and most commands do not need it

    from csmd import machine

    try:
        instance = read_instance(paths)
        process = psutil.Process(int(instance["pid"]))
        start = machine.started(process.pid)
        is_same_boot = instance["boot"] == config.boot_id()
        same = start is not None and is_same_boot and abs(start - float(instance["start"])) < machine.SAME_START_S
    except (KeyError, TypeError, ValueError, psutil.Error):
        return None
    return process if same else None


def read_instance(paths: Paths) -> dict[str, Any]:
    """Returns the record of the running daemon, or of the last one that was killed; {} if there is none."""
    try:
        value = wire.loads(paths.instance.read_bytes())
    except (OSError, BadInput):
        return {}
    return value if isinstance(value, dict) else {}


def find_recorded_manager(paths: Paths) -> Manager | None:
    """Returns the manager that has this home's unit and answers; None if the daemon runs detached."""
    try:
        recorded = plan.load_record(paths)["service"]
    except (OSError, CsmdError):
        return None  # with a damaged record a daemon can still be stopped
    if not recorded or not Path(str(recorded["file"])).is_file():
        return None
    manager = Manager(paths, Path(str(recorded["file"])), str(recorded["kind"]))
    return manager if manager.kind in MANAGERS and manager.is_reachable() else None


def describe_lifetime(paths: Paths, kind: str) -> str:
    """Returns a sentence if a daemon run by `kind` ends sooner than a person expects, else ""."""
    if kind == "detached":
        brings = "the next session" if paths.start_command.exists() else "`csmd start`"
        return f"after a reboot {brings} starts it again"
    manager = find_recorded_manager(paths)
    return manager.describe_lifetime() if manager else ""


def start(paths: Paths) -> dict[str, Any]:
    """Starts the daemon and waits until it answers; its status, with `started` False when it ran already."""
    home_disk.check(paths.home)
    for folder in (paths.home, paths.run_dir):
        make_private(folder)
    child: subprocess.Popen[bytes] | None = None
    is_requested, refusal, diagnosis = False, "", f"see {paths.log_file}"
    deadline = time.monotonic() + START_PATIENCE_S
    # Of two commands that start it at once, the second finds the first one's daemon.
    with plan.file_lock(paths.run_dir / "start.lock"):
        try:
            while time.monotonic() < deadline:
                if find_process(paths) is not None:
                    if waiting := _find_waiting_error(paths):
                        raise waiting
                    with contextlib.suppress(DaemonUnreachable, DaemonBusy):
                        status = dict(client.call(paths, "csm_runtime_status", patience_s=5.0))
                        is_ours = child is None or child.pid == status["daemon"]["pid"]
                        return {**status, "started": is_requested and is_ours}
                elif not is_requested:
                    is_requested, manager = True, find_recorded_manager(paths)
                    if manager is None:
                        record_start_command(paths)  # first: it may refuse the settings, and would leave a child behind
                        child = _spawn(paths)
                    else:
                        paths.start_command.unlink(missing_ok=True)
                        paths.complaint.unlink(missing_ok=True)
                        manager.run("enable")  # `csmd stop` disabled it
                        refusal, diagnosis = manager.start(), " ".join(manager.command("diagnosis"))
                elif failure := _describe_start_failure(paths, child, refusal):
                    what, hint = split_complaint(text_of(paths.complaint))
                    raise CsmdError(f"the daemon ended at once: {what or failure}", hint=hint or diagnosis)
                time.sleep(0.02)
        finally:
            if child is not None:  # it outlives this process on purpose; Popen would warn about that
                child.returncode = child.poll() or 0
    raise CsmdError(f"the daemon did not answer within {START_PATIENCE_S:g} s", hint=f"see {paths.log_file}")


def _describe_start_failure(paths: Paths, child: subprocess.Popen[bytes] | None, refusal: str) -> str:
    """Describes how the daemon ended before it answered; "" while it may still start."""
    if child is None:
        return refusal or ("it could not run" if text_of(paths.complaint) else "")
    return "" if child.poll() is None else f"exit code {child.returncode}"


#: The daemon's own arguments to the interpreter.
DAEMON = ("-P", "-m", "csmd.daemon")


def record_start_command(paths: Paths) -> None:
    """Records how a hook restarts a daemon that no service keeps running, or deletes that record if hooks must not.

    Read by hooks/csmd_spool.py: the file for complaints, the command, the environment, each ended by a zero byte.
    """
    if not config.parse_settings(config.read_text(paths.config_file), where=str(paths.config_file)).hooks_start_daemon:
        paths.start_command.unlink(missing_ok=True)
        return
    words = [str(paths.complaint), sys.executable, *DAEMON]
    words += [f"{name}={value}" for name, value in config.child_environment().items()]
    write_atomic(paths.start_command, "".join(f"{word}\0" for word in words).encode("utf-8", "surrogateescape"))


def _spawn(paths: Paths) -> subprocess.Popen[bytes]:
    import subprocess

    # Its own session and no pipe to this process: nobody who waits for this process waits for the daemon.
    handle = os.open(paths.complaint, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as complaint:
        return subprocess.Popen(
            [sys.executable, *DAEMON], cwd=paths.home, env=config.child_environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=complaint, start_new_session=True,
        )  # fmt: skip


def stop(paths: Paths, *, by_user: bool, by: str = "") -> bool:
    """Stops the daemon and waits for its end; returns whether one ran.

    `by_user` sets the stopped mark with the caller (`by`), and keeps a service manager from starting it at a login.
    """
    paths.start_command.unlink(missing_ok=True)  # no hook restarts it
    process, manager = find_process(paths), find_recorded_manager(paths)
    if manager is not None:
        manager.run_if_loaded("stop")  # even if none runs: it may be about to restart
        if by_user:
            manager.run("disable")
    if process is not None:
        _end_process(process)
    if by_user and paths.run_dir.is_dir():
        write_atomic(paths.stopped_mark, f"{by}\n".encode())
    return process is not None


def _end_process(process: psutil.Process) -> None:
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        process.terminate()
        deadline = time.monotonic() + STOP_PATIENCE_S
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                what = f"the daemon (pid {process.pid}) did not end within {STOP_PATIENCE_S:g} s"
                hint = f"run `kill -9 {process.pid}`; it loses nothing that was acknowledged"
                raise CsmdError(what, hint=hint)
            time.sleep(0.02)


def split_complaint(text: str) -> tuple[str, str]:
    """Returns (what, hint) from the error message that a csmd process printed when it ended."""
    what, _, hint = text.strip().removeprefix("csmd: ").partition("\n  try: ")
    return what, hint


def _find_waiting_error(paths: Paths) -> DaemonUnreachable | None:
    """Returns the error that the running daemon waits for the key of its database; None if it does not."""
    what, hint = split_complaint(text_of(paths.waits_mark))
    return DaemonUnreachable(f"the daemon waits, and hooks spool: {what}", hint=hint) if what else None


def explain_unreachable(paths: Paths, error: DaemonUnreachable) -> DaemonUnreachable:
    """Returns the same error with the reason why the last daemon ended, if known."""
    if find_process(paths) is not None:
        return _find_waiting_error(paths) or error
    what, hint = split_complaint(text_of(paths.complaint))
    if what:
        return DaemonUnreachable(f"{error.what}; the last one ended at once: {what}", hint=hint or error.hint)
    manager = find_recorded_manager(paths)
    if manager and manager.ask("state").strip() == "failed":  # launchd tries for ever
        hint = f"csmd start; the reason: {' '.join(manager.command('diagnosis'))}"
        what = f"{error.what}; it died several times in a row and {manager.kind} no longer starts it"
        return DaemonUnreachable(what, hint=hint)
    return error
