"""The checks of `csmd doctor`, one function each.

The id of a check is its function's name, its question the docstring. The first checks follow a turn from the assistant
to the store.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

import csmd
from csmd import config
from csmd.cli import render
from csmd.doctor import host_settings
from csmd.doctor.host_settings import Registered, Source, registered_commands
from csmd.errors import ConfigError
from csmd.hosts.host_files import SERVER_SCRIPT
from csmd.hosts.registrations import CLAUDE, FILES
from csmd.installer import foreign_files, home_disk, plan
from csmd.paths import Paths, is_directory, is_file, is_there
from csmd.text import ages, display

#: fail: sessions are not captured, or not correctly. warn: they may not be. note: for information.
#: unasked: the check needs a daemon, and none answers.
Level = Literal["fail", "warn", "note", "unasked", "ok"]
LEVELS: tuple[Level, ...] = ("fail", "warn", "note", "unasked", "ok")


class Finding(NamedTuple):
    """A result of a check; if it has no remedy, the check's applies."""

    level: Level
    what: str
    remedy: str = ""


fail, warn, note = partial(Finding, "fail"), partial(Finding, "warn"), partial(Finding, "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRun:
    """A registered hook that was run with a marker: its problem, and whether the marker was stored or spooled."""

    event: str
    command: str
    took_ms: float
    problem: str = ""
    stored: bool = False
    spooled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The input of all checks; if no daemon answers, `status` is None and `trouble` the (error, hint)."""

    paths: Paths
    cwd: Path
    user_home: Path
    now_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    recorded: tuple[Path, ...] = ()
    """The assistant's configuration directories that `csmd install` wrote to."""
    dirs: tuple[Path, ...] = ()
    """`recorded`, and the directory in force here."""
    problems: tuple[str, ...] = ()
    """Problems of csmd's own files: its configuration, its record of the installation."""
    status: Mapping[str, Any] | None = None
    trouble: tuple[str, str] = ("", "")
    pid: int = 0
    """The daemon's process, even if it does not answer; 0 if none runs."""
    sources: tuple[Source, ...] = ()
    states: Mapping[str, Any] = field(default_factory=dict)
    """The client's state of its directories, merged from its state files."""
    runs: tuple[HookRun, ...] = ()
    store_problems: tuple[str, ...] | None = None
    """None if the daemon was not asked."""
    broken_rules: tuple[tuple[str, str], ...] = ()
    """(broken rule of the memories, remedy)."""
    host_dirs: tuple[tuple[str, Path], ...] = ()
    """(host, configuration directory) of the other assistants that `csmd install` wrote to."""
    answers: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)
    """Host -> the states of csmd's hooks by event, from its program; None if no program could be asked."""

    @property
    def hooks(self) -> tuple[Registered, ...]:
        """Every registered command."""
        return tuple(hook for source in self.sources for hook in registered_commands(source))

    @property
    def has_plugin(self) -> bool:
        """Whether csmd's plugin is on, which has the same hooks."""
        return "csmd" in host_settings.plugins(self.sources)

    @property
    def ours(self) -> tuple[Registered, ...]:
        """The commands that run this home's hook."""
        return tuple(hook for hook in self.hooks if hook.home == str(self.paths.home))


Examine = Callable[[Scene], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A row of the table of checks; `limit_s` bounds its time, `needs_daemon` says whether a daemon has to answer."""

    id: str
    question: str
    remedy: str
    examine: Examine
    limit_s: float = 3.0
    needs_daemon: bool = False


CHECKS: list[Check] = []


def check(remedy: str, **settings: Any) -> Callable[[Examine], Examine]:
    """Adds a function to CHECKS, under its name and with its docstring as the question."""

    def add(examine: Examine) -> Examine:
        check_id, question = examine.__name__.replace("_", "-"), examine.__doc__ or ""
        CHECKS.append(Check(id=check_id, question=question, remedy=remedy, examine=examine, **settings))
        return examine

    return add


@check("correct the file, or move it away and run `csmd install`")
def settings(scene: Scene) -> Iterator[Finding]:
    """Can the assistant's settings files be read?"""
    for source in scene.sources:
        if source.problem:
            what = f"{source.path}: {source.problem}; the assistant ignores the whole file"
            yield fail(what) if source.scope == "user" else warn(what)


@check("`csmd install`")
def hooks(scene: Scene) -> Iterator[Finding]:
    """Is a hook registered for every event?"""
    if scene.has_plugin:
        return
    for source in scene.sources:
        if source.scope != "user" or source.problem:
            continue
        present = {hook.event for hook in scene.ours if hook.path == source.path}
        missing = [event for event in CLAUDE.stable_events if event not in present]
        if len(missing) == len(CLAUDE.stable_events):
            yield fail(f"no hook of csmd's is registered in {source.path}")
        elif missing:
            yield fail(f"{source.path}: no hook is registered for {', '.join(missing)}")


@check("`csmd install`")
def other_assistants(scene: Scene) -> Iterator[Finding]:
    """Do the other assistants run csmd's hooks?"""
    for host, folder in scene.host_dirs:
        files = FILES[host]
        hooks, question, states = files.kinds[0], files.question, scene.answers.get(host)
        if not plan.is_in(hooks, hooks.file(folder), scene.paths.home):
            yield fail(f"no hook of csmd's is registered in {hooks.file(folder)}", f"`csmd install --host {host}`")
        elif files.state is not None:
            state = files.state(folder, scene.paths.home, _text_of)
            if state == "gone":
                yield fail(f"hooks of csmd's are missing in {hooks.file(folder)}", f"`csmd install --host {host}`")
            elif state == "off":
                yield fail(f"settings in {folder} keep csmd's hooks from running", files.switched_off)
        elif question is not None and states is None:
            yield note(f"unknown whether `{files.program}` runs csmd's hooks", f"put `{files.program}` on the PATH")
        elif question is not None and states is not None:
            state_of = {event: states.get(event, "missing") for event in files.events}
            if idle := [f"{event} ({state})" for event, state in state_of.items() if state not in question.runs]:
                yield fail(f"{files.title} does not run csmd's hooks for {display.join_names(idle)}", files.setup_step)
        if warning := files.warning():
            yield note(warning, f"start `{files.program}` once with a network")


def _text_of(path: str) -> str | None:
    """Returns the text of a settings file; None for no file."""
    data = foreign_files.read(Path(path))
    return None if data is None else data.decode(errors="replace")


@check("`csmd install` writes them again")
def hooks_altered(scene: Scene) -> Iterator[Finding]:
    """Are the registered hooks as csmd wrote them?"""
    file = scene.paths.hook_dir / "interpreter"
    if not is_file(file):
        return
    interpreter = file.read_text(encoding="utf-8", errors="replace").strip()
    for hook in scene.ours:
        if hook.event in CLAUDE.events:
            changed = hook.command != CLAUDE.hook_command(interpreter, scene.paths.home, hook.event)
            if changed or hook.timeout != CLAUDE.events[hook.event]:
                yield warn(f"{hook.path}: the hook for {hook.event} is not as csmd wrote it")


@check("`csmd install` leaves one of each")
def hooks_twice(scene: Scene) -> Iterator[Finding]:
    """Is each registered once?"""
    for (event, path), count in Counter((hook.event, hook.path) for hook in scene.ours).items():
        if count > 1:
            yield warn(f"{path}: {count} hooks of csmd's for {event}; each event is stored once, at twice the cost")
    if scene.has_plugin and scene.ours:
        yield note("csmd's plugin and its hooks in settings.json are both on: each event is reported twice")


@check("`csmd uninstall` with that home as CSMD_HOME")
def hooks_other_home(scene: Scene) -> Iterator[Finding]:
    """Are there hooks of another csmd?"""
    others = {(hook.home, hook.path) for hook in scene.hooks if hook.home not in ("", str(scene.paths.home))}
    for home, path in sorted(others):
        missing = "" if is_directory(home) else ", which is gone"
        yield warn(f"{path}: hooks of another csmd home, {home}{missing}", f"`CSMD_HOME={home} csmd uninstall`")


@check("`csmd install` finds another")
def hook_python(scene: Scene) -> Iterator[Finding]:
    """Is the Python there that the hooks run on?"""
    for trouble in plan.find_problems(scene.paths):  # shared with `csmd status`
        yield fail(trouble.partition(";")[0])


@check("`csmd install` copies it again")
def hook_script(scene: Scene) -> Iterator[Finding]:
    """Is the hook the one that csmd ships?"""
    if not scene.ours and not is_directory(scene.paths.hook_dir):
        return
    for name in plan.HOOK_FILES:
        path = scene.paths.hook_dir / name
        if not is_file(path):
            yield fail(f"the hook's file is gone: {path}")
        elif not plan.is_shipped_copy(path):
            yield warn(f"{path} is not the one that this csmd ships: altered, or of another version")


@check("remove `disableAllHooks` from that file")
def hooks_disabled(scene: Scene) -> Iterator[Finding]:
    """Is `disableAllHooks` off in every settings file?"""
    for source in scene.sources:
        if source.value.get("disableAllHooks") is True:
            where = "" if source.scope in ("user", "managed") else " (in this directory)"
            yield fail(f"{source.path}: disableAllHooks is true{where}: no hook runs")


@check("ask the administrator of this machine; transcripts are captured nevertheless")
def hooks_managed_only(scene: Scene) -> Iterator[Finding]:
    """Do managed settings let users' hooks run?"""
    for source in scene.sources:
        if source.value.get("allowManagedHooksOnly") is True and source.scope == "managed":
            yield fail(f"{source.path}: allowManagedHooksOnly is true: hooks of users do not run")


@check("remove CSMD_DISABLE from `env` in that file")
def switched_off(scene: Scene) -> Iterator[Finding]:
    """Is CSMD_DISABLE unset?"""
    if scene.env.get("CSMD_DISABLE") == "1":
        yield fail("CSMD_DISABLE=1 is set: sessions of this shell are not captured", "unset CSMD_DISABLE")
    source, value = host_settings.variable(scene.sources, "CSMD_DISABLE")
    if source and value == "1":
        yield fail(f"{source.path}: `env` sets CSMD_DISABLE=1: hooks end at once")


@check("`csmd install`")
def server(scene: Scene) -> Iterator[Finding]:
    """Is the memory server registered?"""
    if scene.has_plugin:
        return
    kind = plan.SERVER_KINDS[CLAUDE.host]
    for path in dict.fromkeys(kind.file(folder) for folder in scene.recorded):
        if not plan.is_in(kind, path, scene.paths.home):
            yield warn(f"csmd's memory server is not registered in {path}: a session's model cannot search")
    script = scene.paths.hook_dir / SERVER_SCRIPT
    if scene.recorded and not os.access(script, os.X_OK):
        yield warn(f"the memory server's program is gone or cannot be run: {script}")


@check("remove that file; sessions held while it was there stay excluded")
def left_out(scene: Scene) -> Iterator[Finding]:
    """Is this directory not left out?"""
    if mark := foreign_files.find_off_mark(str(scene.cwd)):
        yield warn(f"csmd is switched off in this directory by {mark}: sessions here are not captured")


#: Seconds after which a spooled event should have been read.
SPOOL_PATIENCE_S = 60.0
#: Milliseconds above which a hook is slow: the assistant's limit is longer, but a person notices this at every prompt.
SLOW_HOOK_MS = 1_000.0


@check("`csmd start`")
def daemon(scene: Scene) -> Iterator[Finding]:
    """Does a daemon answer?"""
    if scene.status is not None:
        return
    what, remedy = scene.trouble
    if scene.pid and not is_there(scene.paths.waits_mark):
        yield fail(f"the daemon (pid {scene.pid}) does not answer: hooks time out, then spool", "`csmd restart`")
    elif is_there(scene.paths.stopped_mark):
        yield fail("the daemon was stopped: events wait in the spool, and sessions get no notes")
    else:
        yield fail(what or "no daemon runs: events wait in the spool", remedy)


@check("`csmd upgrade`", needs_daemon=True)
def daemon_version(scene: Scene) -> Iterator[Finding]:
    """Is it of this version?"""
    version = (scene.status or {}).get("version", csmd.__version__)
    if version != csmd.__version__:
        yield warn(f"the daemon is csmd {version}, this command {csmd.__version__}")


@check("`csmd restart`; if that does not help, `csmd report` gathers what a bug report needs")
def capture(scene: Scene) -> Iterator[Finding]:
    """Is a turn found that the registered hooks report?"""
    for run in scene.runs:
        if run.problem:
            yield fail(f"the hook for {run.event} does not work: {run.problem}")
        elif run.stored and run.spooled:
            yield warn(f"the hook for {run.event} got no answer in time: its turn came through the spool")
        elif run.stored and run.took_ms > SLOW_HOOK_MS:
            what = f"the hook for {run.event} took {run.took_ms / 1000:.1f} s: the assistant waits for it"
            yield warn(what, "find out why the machine is busy")
        elif not run.stored and scene.status is not None and not scene.status.get("paused"):
            location = "it is in the spool" if run.spooled else "it is in neither the store nor the spool"
            yield fail(f"a turn that the hook for {run.event} reported is not found: {location}")
        elif not run.stored and not run.spooled and scene.status is None:
            what = f"the hook for {run.event} does not spool: without a daemon, turns are lost"
            yield fail(what, "see the checks of the disk and of the hook")


@check("`csmd resume`", needs_daemon=True)
def paused(scene: Scene) -> Iterator[Finding]:
    """Is capture not paused?"""
    paused = (scene.status or {}).get("paused")
    if paused:
        until = f"until {ages.when(paused['until'])}" if paused.get("until") else "until you resume it"
        yield warn(f"capture is paused {until}")


@check("see docs/operations.md", needs_daemon=True)
def alarms(scene: Scene) -> Iterator[Finding]:
    """Has the daemon raised no alarm?"""
    for alarm in (scene.status or {}).get("alarms") or ():
        yield fail(str(alarm.get("what", "")), str(alarm.get("do", "")))


@check("see `csmd logs`", needs_daemon=True)
def degraded(scene: Scene) -> Iterator[Finding]:
    """Does every part of the daemon work?"""
    for text in (scene.status or {}).get("degraded", ()):
        yield warn(text)


@check("`csmd dream status` shows every gate", needs_daemon=True)
def dreams(scene: Scene) -> Iterator[Finding]:
    """Is no dream overdue?"""
    state = (scene.status or {}).get("dream") or {}
    if state.get("overdue") and not (state["due"] or state["running"]):
        error = (state["latest"] or {}).get("error")
        yield warn(f"a dream is {state['verdict']}" + (f" (the latest: {error})" if error else ""))


@check("`csmd model fetch` (90 MB, once), or `csmd model add`", needs_daemon=True)
def model(scene: Scene) -> Iterator[Finding]:
    """Is there an embedding model?"""
    if scene.status is not None and not scene.status["model"]["name"]:
        yield note("no embedding model is installed: search is by words alone")


#: Fewest sessions with prompts for a conclusion.
MIN_SESSIONS = 3


@check("start `claude` in a terminal, and update it (`claude update`); or use `csmd remember`", needs_daemon=True)
def typed_prompts(scene: Scene) -> Iterator[Finding]:
    """Do prompts count as typed by a person?"""
    prompts = (scene.status or {}).get("prompts") or {"sessions": 0, "typed": 0}
    if prompts["sessions"] >= MIN_SESSIONS and not prompts["typed"]:
        yield warn(
            f"no prompt of the last {prompts['sessions']} sessions counts as typed by a person: a program sent them "
            "(`claude -p`, an SDK), or the client's version does not record who typed; they do not count as yours"
        )


def spooled_events(home: Path) -> list[Path]:
    """Returns the spooled events, the oldest first; OSError if a directory cannot be read."""
    folders = filter(is_directory, config.spool_places(home))
    events = (path for folder in folders for path in folder.iterdir() if path.suffix == ".event")
    return sorted(events, key=lambda path: path.name)


def open_plain(path: Path) -> BinaryIO:
    """Opens a file for reading, not through a link, and without waiting for the writer of a pipe."""
    return open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


@check("`csmd start`; if a daemon runs, `csmd status` shows why it does not read the spool")
def spool(scene: Scene) -> Iterator[Finding]:
    """Is the spool empty?"""
    waiting = spooled_events(scene.paths.home)
    if not waiting:
        return
    age_s = _age_s(waiting[0].name, scene.now_s)
    events = f"{display.amount(len(waiting), 'event')} {'waits' if len(waiting) == 1 else 'wait'}"
    oldest = f"{events} in the spool, the oldest for {ages.age(age_s)}"
    if scene.status is None:
        yield note(f"{oldest}: a daemon will read them")
    elif age_s > SPOOL_PATIENCE_S:
        yield warn(f"{oldest}, and the daemon does not read them")


def _age_s(name: str, now_s: float) -> float:
    try:
        return max(0.0, now_s - int(name[:16], 16) / 1e9)
    except ValueError:
        return 0.0


@check("nothing to do; if they become more, attach one to a bug report: it has the place and the reason, but no text")
def quarantine(scene: Scene) -> Iterator[Finding]:
    """Could all input be read?"""
    folder = scene.paths.quarantine
    if number := len(list(folder.iterdir())) if is_directory(folder) else 0:
        notes = f"{display.amount(number, 'note')} {'lies' if number == 1 else 'lie'}"
        yield note(f"{notes} in {folder}: input that could not be read")


@check("`csmd repair --dry-run` shows what can be saved, `csmd repair` does it", needs_daemon=True)
def store(scene: Scene) -> Iterator[Finding]:
    """Is the database sound?"""
    if scene.status is not None and scene.store_problems is None:
        yield note("the database was not read to its end: large, or the daemon is busy", "`csmd tool csm_store_check`")
    for problem in scene.store_problems or ():
        yield fail(f"the database is damaged: {problem}")


@check("`csmd governance` lists the rules and the memories that break them")
def beliefs(scene: Scene) -> Iterator[Finding]:
    """Do the memories keep their rules?"""
    for what, remedy in scene.broken_rules:
        yield warn(what, remedy)


@check("nothing to do: events wait in the spool; `csmd restart` if it happens again", needs_daemon=True)
def hung_mark(scene: Scene) -> Iterator[Finding]:
    """Has no hook timed out just now?"""
    mark = scene.paths.hung_mark
    if is_there(mark) and scene.status is not None:
        age_s = max(0.0, scene.now_s - mark.stat().st_mtime)
        if age_s < 30:
            yield warn(f"a hook timed out {age_s:.0f} s ago: for 30 s hooks do not ask the daemon")


#: Days of retention at or below which a transcript may be deleted before the daemon has read it.
FEW_DAYS = 7
#: Files that exist in a container only.
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")


@check("start `claude` here once and say that you trust it")
def trust(scene: Scene) -> Iterator[Finding]:
    """Is this directory trusted by the assistant?"""
    if host_settings.is_trusted(scene.states, str(scene.cwd)) is False:
        yield warn(f"{scene.cwd} is not trusted: in a terminal the assistant runs no hook here (with -p it does)")


@check("update the client", limit_s=plan.PATIENCE_S + 2)
def client(scene: Scene) -> Iterator[Finding]:
    """Does the client know csmd's hooks?"""
    reported = client_version(scene.env)
    if reported is None:
        yield note("no `claude` is on the PATH: its version is unknown", "nothing to do if you start it otherwise")
        return
    version = display.parse_version(reported)
    if version is None:
        yield note("`claude --version` prints no version", "nothing to do")
    elif version < host_settings.OLDEST_CLIENT:
        oldest = ".".join(map(str, host_settings.OLDEST_CLIENT))
        yield fail(f"the client is {reported}; csmd's hooks need {oldest} or later")


def client_version(env: Mapping[str, str]) -> str | None:
    """Returns the version that the first `claude` on PATH prints; "" if it prints none in time, None if there is no
    client."""
    search = env.get("PATH", "")
    programs = plan.find_programs(search.split(os.pathsep), CLAUDE.program)
    return plan.read_version(programs[0], search) if programs else None


@check("give the container a CLAUDE_CONFIG_DIR of its own, or run `csmd install` on both sides")
def shared_settings(scene: Scene) -> Iterator[Finding]:
    """In a container: are the assistant's files its own?"""
    if not any(is_there(mark) for mark in CONTAINER_MARKS) and not scene.env.get("container"):
        return
    points = home_disk.read_mount_points()
    for folder in scene.dirs:
        if folder in points or folder / "projects" in points:
            effect = "its sessions have paths, and perhaps hooks, that do not exist here"
            yield warn(f"this is a container, and {folder} is mounted into it: {effect}")


@check("raise `cleanupPeriodDays`, and keep the daemon running")
def cleanup(scene: Scene) -> Iterator[Finding]:
    """Does the assistant keep transcripts long enough?"""
    days, path = host_settings.cleanup_days(scene.sources)
    if days <= FEW_DAYS:
        habit = f"deletes transcripts after {display.amount(days, 'day')}" if days else "keeps no transcripts"
        yield warn(f"{path}: the assistant {habit}: turns that csmd has not read by then are lost")


@check("keep one of them, or both: csmd does not change the other")
def other_memory(scene: Scene) -> Iterator[Finding]:
    """Is there no other memory program?"""
    commands = [hook.command for hook in scene.hooks if not hook.home]
    words = [*commands, *host_settings.plugins(scene.sources), *host_settings.servers(scene.states, str(scene.cwd))]
    for name in host_settings.other_memories(words):
        yield note(f"{name} is set up, too: both add notes to your sessions")


@check("`csmd install` with that CLAUDE_CONFIG_DIR")
def config_dirs(scene: Scene) -> Iterator[Finding]:
    """Is every configuration directory of the assistant read?"""
    variables = {"CLAUDE_CONFIG_DIR": scene.env.get("CLAUDE_CONFIG_DIR", "")}
    source, value = host_settings.variable(scene.sources, "CLAUDE_CONFIG_DIR")
    if source:
        variables[f"`env` in {source.path}"] = value
    watched = (Path(root).parent for root in (scene.status or {}).get("watching", []))
    seen = {os.path.realpath(folder) for folder in (*scene.recorded, *watched)}
    for variable, folder in variables.items():
        if folder and is_directory(Path(folder) / "projects") and os.path.realpath(folder) not in seen:
            what = f"{variable} names {folder}, which csmd does not read"
            yield warn(what, f"`CLAUDE_CONFIG_DIR={folder} csmd install`")
            seen.add(os.path.realpath(folder))
    for folder in ((scene.status or {}).get("clients") or {}).get("elsewhere", ()):
        if os.path.realpath(folder) not in seen:
            what = f"hooks of sessions that write to {folder} report to csmd, which does not read it"
            yield warn(what, f"`csmd install --config-dir {shlex.quote(folder)}`")
            seen.add(os.path.realpath(folder))
    default = scene.user_home / ".claude"
    seen |= {os.path.realpath(folder) for folder in scene.dirs}
    if scene.recorded and is_directory(default / "projects") and os.path.realpath(default) not in seen:
        yield note(f"csmd does not read the sessions in {default}", f"`CLAUDE_CONFIG_DIR={default} csmd install`")


#: Free bytes below which the disk is worth a warning.
LOW_BYTES = 200_000_000
#: Free bytes below which nothing can be stored.
MIN_BYTES = 10_000_000
LIMITS = Path("/proc/sys/fs/inotify")
#: Fewest inotify instances: csmd needs one, editors and browsers take several each.
MIN_INSTANCES = 16
#: Factor of watches that should be free for growth.
GROWTH_FACTOR = 1.2
MAX_PROJECTS = 200


@check("correct the file, then `csmd restart`")
def configuration(scene: Scene) -> Iterator[Finding]:
    """Are config.yaml and the record of the install sound?"""
    for problem in scene.problems:
        yield fail(problem)
    path = scene.paths.config_file
    try:
        settings = config.parse_settings(config.read_text(path), where=str(path))
        yield from (warn(what, hint) for _, what, hint in config.find_unworkable(settings))
    except ConfigError as error:
        yield fail(f"{error.what}: the daemon does not start with it", error.hint)


@check("`chmod 700`, or choose another CSMD_HOME")
def private(scene: Scene) -> Iterator[Finding]:
    """Are csmd's directories yours alone?"""
    for folder in (scene.paths.home, scene.paths.spool, scene.paths.run_dir):
        if not is_there(folder) and not folder.is_symlink():
            continue
        info = folder.lstat()
        mode = f"mode {stat.S_IMODE(info.st_mode):04o}"
        if stat.S_ISLNK(info.st_mode):
            yield fail(f"{folder} is a symbolic link", "set CSMD_HOME to the directory itself")
        elif info.st_uid != os.getuid():
            yield fail(f"{folder} belongs to uid {info.st_uid}, not to you", f"chown -R {os.getuid()} {folder}")
        elif info.st_mode & 0o077:
            yield warn(f"{folder} is readable by other users ({mode})", f"chmod 700 {folder}")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield fail(f"{folder} cannot be written ({mode})", f"chmod 700 {folder}")


@check("make room: the daemon then reads the spool by itself")
def disk(scene: Scene) -> Iterator[Finding]:
    """Is there room in the home and in /tmp?"""
    yield from _check_disk(scene.paths.home, fail, "events are refused and spooled")
    yield from _check_disk(Path("/tmp"), warn, "there is no second place for the spool")  # noqa: S108


def _check_disk(path: Path, finding: Callable[[str, str], Finding], effect: str) -> Iterator[Finding]:
    folder = next(folder for folder in (path, *path.parents) if is_there(folder))
    free = shutil.disk_usage(folder).free
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        yield finding(f"{folder} is on a read-only disk: {effect}", "mount it writable")
    elif free < MIN_BYTES:
        yield finding(f"{render.size(free)} are free on the disk of {folder}: {effect}", "")
    elif free < LOW_BYTES:
        yield warn(f"{render.size(free)} are free on the disk of {folder}")


@check("set CSMD_HOME to a directory on a disk of this machine, then `csmd install`")
def file_system(scene: Scene) -> Iterator[Finding]:
    """Is the home on a disk of this machine?"""
    home = Path(os.path.realpath(scene.paths.home))
    kind, mount = home_disk.find_file_system(home)
    if kind in home_disk.NETWORK:
        yield warn(f"{home} is on {kind} ({mount}): locks are unreliable, and a lost connection stops capture")


@check("make it yours: `chown` and `chmod 600`")
def log(scene: Scene) -> Iterator[Finding]:
    """Can the log be written?"""
    path = scene.paths.log_file
    path = path if is_there(path) else path.parent
    if is_there(path) and not os.access(path, os.W_OK):
        yield warn(f"{path} cannot be written: errors are not logged")


@check("raise the limit; until then each transcript is checked every 15 minutes")
def watches(scene: Scene) -> Iterator[Finding]:
    """Can all directories of transcripts be watched?"""
    if not is_directory(LIMITS):
        return
    limit, instances = (int((LIMITS / name).read_text()) for name in ("max_user_watches", "max_user_instances"))
    # Counting stops above the limit.
    needed = sum(1 for folder in scene.dirs for _ in itertools.islice(os.walk(folder / "projects"), limit + 1))
    if needed * GROWTH_FACTOR > limit:
        what = f"{needed} directories of transcripts, and fs.inotify.max_user_watches is {limit}"
        yield warn(what, f"sudo sysctl fs.inotify.max_user_watches={2 * max(limit, needed)}")
    if instances < MIN_INSTANCES:
        what = f"fs.inotify.max_user_instances is {instances}: other programs may take all of them"
        yield warn(what, "sudo sysctl fs.inotify.max_user_instances=128")


@check(
    "macOS: System Settings, Privacy & Security, Full Disk Access, for the terminal and Python; else its permissions"
)
def unreadable(scene: Scene) -> Iterator[Finding]:
    """Can transcripts and projects be read?"""
    projects = [Path(row["root"]) for row in (scene.status or {}).get("projects", ()) if row["root"]]
    roots = [folder / "projects" for folder in scene.dirs]
    for folder in [*roots, scene.cwd, *projects[:MAX_PROJECTS]]:
        try:
            with os.scandir(folder) as entries:
                first = next((entry for entry in entries if entry.name.endswith(".jsonl")), None)
            if first is not None:
                os.close(os.open(first.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone, or on another machine
        except (OSError, ValueError) as error:
            yield warn(f"{folder} cannot be read by csmd: {getattr(error, 'strerror', None) or error}")


@check("remove those that you do not use: each installs a hook of its own version")
def commands(scene: Scene) -> Iterator[Finding]:
    """Is there one csmd on the PATH?"""
    programs = plan.find_programs(scene.env.get("PATH", "").split(os.pathsep), "csmd")
    if len(programs) > 1:
        yield note(f"there are {len(programs)} csmd on the PATH: {', '.join(map(str, programs[:3]))}")
