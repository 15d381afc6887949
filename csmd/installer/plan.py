"""Installing and leaving: what is written outside csmd's own directories is listed, recorded and taken back."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import py_compile
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from csmd import config, wire
from csmd.config import (
    Config,
    Settings,
    base_interpreter,
    child_environment,
    default_paths,
    load,
    own_interpreter,
    user_home,
)
from csmd.errors import BadInput, CsmdError
from csmd.installer import foreign_files, registration
from csmd.installer.foreign_files import make_private, write_whole
from csmd.installer.registration import NEWER
from csmd.paths import Paths
from csmd.text import display


def load_record(paths: Paths) -> dict[str, Any]:
    """The install record, empty when there is none."""
    empty: dict[str, Any] = {
        "settings": {},
        "folders": {},
        "assistant_dirs": [],
        "events": [],
        "needs": "",
        "kept_out_by": "",
        "service": None,
        "version": "",
    }
    if not paths.install_record.exists():
        return empty
    try:
        value = wire.loads(paths.install_record.read_bytes())
    except BadInput:
        value = None
    service = value.get("service") if isinstance(value, dict) else None
    sound = isinstance(value, dict) and isinstance(value.get("settings"), dict)
    if not sound or not (
        service is None or (isinstance(service, dict) and {"kind", "file", "folders"} <= service.keys())
    ):
        raise CsmdError(f"{paths.install_record} is damaged", hint="move it away; then `csmd install` writes it anew")
    return {**empty, **value}


def save(paths: Paths, record: Mapping[str, Any]) -> None:
    """Writes the install record whole."""
    write_whole(paths.install_record, wire.pretty(record).encode() + b"\n")


def assistant_dirs(paths: Paths) -> tuple[Path, ...]:
    """The assistant's configuration directories that earlier installs wrote to."""
    return tuple(Path(folder) for folder in load_record(paths)["assistant_dirs"])


@contextmanager
def alone(paths: Paths) -> Iterator[None]:
    """Of two that install, settle or uninstall at once the second waits; nothing to wait for where no home is."""
    if not paths.run_dir.is_dir():
        yield
        return
    descriptor = os.open(paths.run_dir / "install.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def noted(paths: Paths, path: Path, kept: Mapping[str, Any], *, made: bool) -> Iterator[None]:
    """Notes how a file is given back, before it is written: an entry without a record could not be taken back.

    `made`: its directory is made for it. What is raised inside takes the note away again.
    """
    before, record, key = load_record(paths), load_record(paths), str(path)
    record["settings"][key] = dict(kept)
    record["folders"][key] = made or bool(record["folders"].get(key))
    save(paths, record)
    try:
        yield
    except BaseException:
        save(paths, before)
        raise


#: How often a file is planned anew that somebody else writes all the time.
TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file before and after; with `trouble` it stays as it is. `what` is put in, `out` why the rest is not, for people."""

    path: Path
    what: str = ""
    out: tuple[str, ...] = ()
    kinds: tuple[Kind, ...]
    before: bytes | None = None
    after: bytes | None = None
    trouble: CsmdError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file: changed, as it should be, or left alone because of `trouble`. `what` is in it, `out` why the rest is not."""

    path: Path
    what: str = ""
    out: tuple[str, ...] = ()
    changed: bool = False
    trouble: CsmdError | None = None


def together(troubles: Sequence[CsmdError]) -> CsmdError:
    """One error for several."""
    first = troubles[0]
    return type(first)("; ".join(one.what for one in troubles), hint=first.hint) if len(troubles) > 1 else first


def shown(change: Change) -> str:
    """What is changed, for people; of a file that may hold others' keys only the lines themselves."""
    context = 0 if any(kind.shared for kind in change.kinds) else 3
    return foreign_files.diff(change.before, change.after, change.path, context=context)


# --- plans: nothing is written


def merging(path: Path, kinds: Sequence[Kind], wanted: Ours) -> Change:
    """The file with our entries."""
    change = _planned(path, kinds, lambda before: merged(before, kinds, wanted, str(path)))
    if change.after is None:
        return change
    what, out = told(change.after, kinds, wanted, str(path))
    return replace(change, what=what, out=out)


def withdrawing(paths: Paths, path: Path, events: Sequence[str]) -> Change:
    """A recorded file without our hooks of these events; what somebody took out by hand stays out."""
    return _planned(
        path,
        recorded_kinds(paths, path),
        lambda before: before and registration.plan_withdrawal(before, paths.home, str(path), events=events),
    )


def removing(paths: Paths, path: Path) -> Change:
    """A recorded file as it was before install; where it was edited since, without our entries."""
    kinds, kept = recorded_kinds(paths, path), load_record(paths)["settings"][str(path)]
    return _planned(path, kinds, lambda before: foreign_files.removal(before, kept, _remover(path, kinds, paths.home)))


def recorded_kinds(paths: Paths, path: Path) -> list[Kind]:
    """The kinds of entries that the record names for a file."""
    return named(load_record(paths)["settings"][str(path)]["kinds"])


def _planned(path: Path, kinds: Sequence[Kind], make: Callable[[bytes | None], bytes | None]) -> Change:
    change = Change(path=path, kinds=tuple(kinds))
    try:
        before = foreign_files.read(path)
        after = make(before)
        if after != before:
            foreign_files.check(path)
    except CsmdError as error:
        return replace(change, trouble=error)
    return replace(change, before=before, after=after)


# --- writing


def written(path: Path, plan: Callable[[], Change], write: Callable[[Change], None]) -> Outcome:
    """Plans and writes one file; anew where somebody else wrote it meanwhile."""
    trouble: CsmdError | None = None
    for _ in range(TRIES):
        change = plan()
        if change.trouble is not None:
            return Outcome(path=path, trouble=change.trouble)
        try:
            write(change)
        except foreign_files.ChangedMeanwhile as error:
            trouble = error
        except CsmdError as error:
            return Outcome(path=path, trouble=error)
        else:
            return Outcome(path=path, what=change.what, out=change.out, changed=change.before != change.after)
    return Outcome(path=path, trouble=trouble)


def put_in(paths: Paths, change: Change) -> None:
    """Writes a file that has our entries, and first how it is given back."""
    if change.after is None or change.after == change.before:
        return
    previous = load_record(paths)["settings"].get(str(change.path))
    kept = foreign_files.entry(change.before, change.after, _remover(change.path, change.kinds, paths.home), previous)
    kept["kinds"] = [kind.name for kind in change.kinds]
    with noted(paths, change.path, kept, made=not change.path.parent.exists()):
        _apply(change)


def take_out(paths: Paths, change: Change) -> None:
    """Gives a file back and takes it out of the record; its directory goes if it was made for it and is empty."""
    _apply(change)
    known, folder = load_record(paths), change.path.parent
    if known["folders"].get(str(change.path)) and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    del known["settings"][str(change.path)]
    save(paths, known)


def _apply(change: Change) -> None:
    shared = any(kind.shared for kind in change.kinds) and change.before != change.after
    with foreign_files.held(change.path) if shared else nullcontext():
        foreign_files.apply(change.path, change.before, change.after)


def _remover(path: Path, kinds: Sequence[Kind], home: Path) -> foreign_files.Remove:
    return lambda data: removed(data, kinds, home, str(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """What the entries are made of; `interpreter` outlives csmd's environment, `python` is the one csmd runs on."""

    home: Path
    interpreter: str
    python: str
    chosen: Settings
    events: tuple[str, ...] = tuple(registration.EVENTS)
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
    beside, inside = (registration.config_file(folder, user_home=usual.parent, chosen=one) for one in (False, True))
    chosen = folder != usual or config.is_chosen(folder) or (inside.exists() and not beside.exists())
    return inside if chosen else beside


def _with_status_line(before: bytes | None, ours: Ours, where: str) -> bytes:
    data = (
        before if before is not None and not foreign_files.is_blank(foreign_files.text_of(before, where)) else b"{}\n"
    )
    return _of_text(data, where, lambda text: registration.merge_status_line(text, ours.interpreter, ours.home))


def _foreign_status_line(current: bytes, ours: Ours, where: str) -> str:
    text = foreign_files.text_of(current, where)
    foreign = not foreign_files.is_blank(text) and registration.is_foreign(text, ours.home)
    return registration.advice(ours.interpreter, ours.home) if foreign else ""


def _foreign_server(current: bytes, ours: Ours, where: str) -> str:
    if registration.is_registered(current, ours.home):
        return ""
    return (
        f"{where} has another server named {registration.NAME}, which stays: csmd's is not there until that is renamed"
    )


def _of_text(data: bytes, where: str, change: Callable[[str], str]) -> bytes:
    text = foreign_files.text_of(data, where)
    return data if foreign_files.is_blank(text) else change(text).encode()


#: In the order in which they are put in; the names stand in the install record.
KINDS: tuple[Kind, ...] = (
    Kind(
        name="hooks",
        what="hooks",
        file=settings_file,
        merge=lambda before, ours, where: registration.plan_merge(
            before, ours.interpreter, ours.home, where, events=ours.events
        ),
        remove=registration.plan_removal,
    ),
    Kind(
        name="status line",
        what="status line",
        file=settings_file,
        merge=_with_status_line,
        remove=lambda current, home, where: _of_text(current, where, lambda text: registration.remove(text, home)),
        wanted=lambda ours: ours.chosen.status_line,
        taken=_foreign_status_line,
    ),
    Kind(
        name="server",
        what="memory server",
        file=state_file,
        merge=lambda before, ours, where: registration.merge_server(before, ours.home, where),
        remove=registration.removal,
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


PROGRAM = "claude"
#: Below the user's home, or absolute: where the client's installers put it, whatever PATH says here.
USUAL = (".local/bin", ".claude/local", ".claude/local/node_modules/.bin", ".npm-global/bin", ".bun/bin", ".volta/bin",
         "/usr/local/bin", "/opt/homebrew/bin", "/usr/bin")  # fmt: skip
PATIENCE_S = 5.0
#: The first version that an unknown event in the settings does not hurt.
FORGIVING = "2.1.101"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The newer events to register, or why there are none: `kept_out_by` is a version, or what a client is like."""

    events: tuple[str, ...]
    kept_out_by: str = ""

    @property
    def needs(self) -> str:
        """The oldest version that may be in use with these events; "" for any."""
        return oldest_for(self.events)


def choose(installed: Mapping[str, str], seen: Iterable[str]) -> Choice:
    """What may be registered for these clients: path -> version ("" for one that does not say), and versions seen."""
    choice = known_to([*installed.values(), *seen])
    if choice.kept_out_by:
        return choice
    if not installed:
        return Choice(events=(), kept_out_by="no `claude` was found")
    silent = [path for path, version in installed.items() if display.version_of(version) is None]
    return Choice(events=(), kept_out_by=f"{silent[0]} does not tell its version") if silent else choice


def known_to(versions: Iterable[str]) -> Choice:
    """The newer events that the oldest of these versions knows; what is no version says nothing."""
    told = [version for version in versions if display.version_of(version)]
    if not told:
        return Choice(events=tuple(NEWER))
    oldest = min(told, key=_number)
    events = tuple(event for event in NEWER if _number(oldest) >= _number(oldest_for([event])))
    return Choice(events=events, kept_out_by="" if len(events) == len(NEWER) else oldest)


def oldest_for(events: Sequence[str]) -> str:
    """The oldest version that may be in use with these events registered; "" for any."""
    return max([FORGIVING, *(NEWER[event] for event in events)], key=_number) if events else ""


def _number(version: str) -> tuple[int, int, int]:
    return display.version_of(version) or (0, 0, 0)


def installed() -> dict[str, str]:
    """The clients on this machine, each once by its real path, and the version that each tells; "" where it does not."""
    search, home = child_environment().get("PATH", os.defpath), user_home()
    places = [Path(place) for place in search.split(os.pathsep) if Path(place).is_absolute()]
    found: dict[str, Path] = {}
    for path in (place / PROGRAM for place in [*places, *(home / usual for usual in USUAL)]):
        if path.is_file() and os.access(path, os.X_OK):
            found.setdefault(os.path.realpath(path), path)
    with ThreadPoolExecutor(max_workers=4) as asking:
        told = asking.map(lambda path: _version(path, search), found.values())
        return {str(path): version for path, version in zip(found.values(), told, strict=True)}


def _version(path: Path, search: str) -> str:
    """What `claude --version` says: a number, or "" for anything else."""
    with tempfile.TemporaryDirectory(prefix="csmd-ask-", ignore_cleanup_errors=True) as empty:
        environment = {
            "PATH": search,  # a script of the client's finds its node there
            "HOME": empty,
            "CLAUDE_CONFIG_DIR": empty,
            "TMPDIR": empty,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        try:
            done = subprocess.run(
                [str(path), "--version"], cwd=empty, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=PATIENCE_S, check=False, start_new_session=True,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
    word = done.stdout.decode("utf-8", "replace").split()[:1]
    return word[0] if done.returncode == 0 and word and display.version_of(word[0]) else ""


#: The rare module first: a new one serves the hook of before, until that is replaced too.
HOOK_FILES = ("csmd_spool.py", "csmd_hook.py", "csmd_line.py")
HOOK_SCRIPTS = ("post-turn", "pre-compact", "session-start", "prompt", "session-end", "subagent-stop")
#: What starts the server of a session's model; the assistant's configuration and the plugin run it.
SERVER_SCRIPT = "mcp"
README = (
    "This directory belongs to csmd, the cross-session memory daemon.\n"
    "`csmd status` tells what is in it; `csmd uninstall` takes csmd's hooks out of your assistant.\n"
)


def share() -> Path:
    """Where the files that `install` copies are: inside the wheel, or beside the package in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_share" / "hooks"
    return inside if inside.is_dir() else package.parent / "hooks"


def ours(config: Config, newer: Sequence[str] = ()) -> Ours:
    """What csmd's entries are made of, by this configuration and with these newer events."""
    return Ours(
        home=config.paths.home,
        interpreter=base_interpreter(),
        python=sys.executable,
        chosen=config.settings,
        events=(*registration.EVENTS, *newer),
    )


def plan(config: Config, wanted: Ours) -> list[Change]:
    """What installing would change in the assistant's files, each for itself; nothing is written."""
    made: list[Change] = []
    seen: set[str] = set()
    for folder in config.assistant_dirs:
        for path, kinds in files(folder).items():
            real = os.path.realpath(path)
            if real not in seen:  # two directories may share a file by a link
                seen.add(real)
                made.append(merging(path, kinds, wanted))
    return made


def own_files(paths: Paths) -> list[str]:
    """What installing writes in csmd's own directories, for people."""
    return [
        f"{paths.home}/ (0700)",
        f"  hook/   {', '.join(HOOK_FILES)}, interpreter, {SERVER_SCRIPT}, python,",
        f"          {', '.join(HOOK_SCRIPTS[:4])},",
        f"          {', '.join(HOOK_SCRIPTS[4:])}",
        "  install.json, README.txt, csmd.db, endpoint, backups/, models/,",
        "  memory/, quarantine/, run/, sessions/, spool/",
        f"{paths.log_dir}/csmd.log",
    ]


def install(config: Config, planned: Sequence[Change], wanted: Ours, kept_out_by: str = "") -> list[Outcome]:
    """Copies the hook and puts the entries in; a file in trouble keeps no other from being served.

    `kept_out_by` is why no more of the newer events are among them. Raises the first trouble where every file that is
    to hold hooks is in trouble; then nothing was written.
    """
    hooked = [change for change in planned if any(kind.name == "hooks" for kind in change.kinds)]
    troubles = [change.trouble for change in hooked if change.trouble]
    if troubles and len(troubles) == len(hooked):
        raise together(troubles)
    paths = config.paths
    for folder in (paths.home, paths.hook_dir, paths.run_dir, paths.spool):
        make_private(folder)
    readme = paths.home / "README.txt"
    if is_own_readme(readme) or not os.path.lexists(readme):
        write_whole(readme, README.encode())
    copy_hooks(paths)
    newer = [event for event in wanted.events if event in registration.NEWER]
    with alone(paths):
        # What a client must know is noted before it is written: the daemon looks after it from then on.
        _note_events(paths, newer, kept_out_by, assistant_dirs=[str(folder) for folder in config.assistant_dirs])
        return [
            written(one.path, partial(merging, one.path, one.kinds, wanted), partial(put_in, paths)) for one in planned
        ]


def is_own_readme(path: Path) -> bool:
    """Whether a file says what csmd says of its home, in this or another version's words; somebody else's stays."""
    begin = README.partition(",")[0].encode()
    try:
        return stat.S_ISREG(path.lstat().st_mode) and path.read_bytes().startswith(begin)
    except OSError:
        return False


def settle(paths: Paths, choice: Choice) -> tuple[list[str], list[Outcome]]:
    """Takes out the newer events that are registered and not chosen: (which, what became of each file)."""
    with alone(paths):
        known = load_record(paths)
        gone = [event for event in known["events"] if event not in choice.events]
        if not gone:
            return [], []
        done = [
            written(path, partial(withdrawing, paths, path, gone), partial(put_in, paths))
            for path in map(Path, known["settings"])
            if any(kind.name == "hooks" for kind in recorded_kinds(paths, path))
        ]
        if not any(one.trouble for one in done):
            _note_events(paths, [event for event in known["events"] if event not in gone], choice.kept_out_by)
        return gone, done


def noted_choice(paths: Paths) -> Choice:
    """The newer events that are registered, and why no more."""
    known = load_record(paths)
    return Choice(events=tuple(known["events"]), kept_out_by=str(known["kept_out_by"]))


def _note_events(paths: Paths, newer: list[str], kept_out_by: str, **more: list[str]) -> None:
    known = load_record(paths)
    noted = {"events": newer, "needs": oldest_for(newer), "kept_out_by": kept_out_by}
    save(paths, {**known, **noted, **more})


def copy_hooks(paths: Paths) -> None:
    """Copies the hook scripts whole; a hook that runs meanwhile sees the old or the new one."""
    source = share()
    for name in (*HOOK_FILES, *HOOK_SCRIPTS, SERVER_SCRIPT):
        write_whole(paths.hook_dir / name, (source / name).read_bytes(), mode=0o600 if name.endswith(".py") else 0o700)
    write_whole(paths.hook_dir / "interpreter", base_interpreter().encode() + b"\n")
    write_whole(paths.hook_dir / "python", own_interpreter().encode() + b"\n")
    # The rare module is imported: compiled here, its first use costs no compiling.
    make_private(paths.hook_dir / "__pycache__")
    py_compile.compile(str(paths.hook_dir / "csmd_spool.py"), quiet=2)


def trouble(paths: Paths) -> list[str]:
    """What keeps the installed hooks and server from running, in sentences; empty when nothing, or when there are none."""
    found = []
    for name, who in (("interpreter", "hooks: their"), ("python", "memory server: its")):
        noted = paths.hook_dir / name
        interpreter = noted.read_text(encoding="utf-8", errors="replace").strip() if noted.is_file() else ""
        if interpreter and not Path(interpreter).exists():
            found.append(f"{who} Python is gone ({interpreter}); `csmd install` finds another")
    return [*found, *_taken_out(paths)]


def _taken_out(paths: Paths) -> list[str]:
    """The settings files from which somebody took the hooks that `install` put in."""
    found = []
    for key, kept in load_record(paths)["settings"].items():
        if "hooks" not in kept["kinds"]:
            continue
        try:
            there = foreign_files.read(Path(key))
            gone = there is None or registration.plan_removal(there, paths.home, key) == there
        except CsmdError:
            continue  # `csmd doctor` says more of a file that cannot be read
        if gone:
            found.append(f"hooks: none of csmd's is in {key}; `csmd install` puts them back")
    return found


def uninstall(paths: Paths) -> list[Outcome]:
    """Takes csmd's entries out of every file that `install` recorded; one in trouble keeps its place in the record."""
    with alone(paths):
        done = [
            written(path, partial(removing, paths, path), partial(take_out, paths))
            for path in map(Path, reversed(load_record(paths)["settings"]))  # a directory was made for the first in it
        ]
        left = load_record(paths)
        if not left["settings"] and not left["service"]:  # whoever takes the unit away needs it
            paths.install_record.unlink(missing_ok=True)
        remove_hooks(paths)
    return done


def remove_hooks(paths: Paths) -> None:
    """Removes the hook's scripts and then their directory, unless somebody else's file is in it."""
    names = (*HOOK_FILES, *HOOK_SCRIPTS, SERVER_SCRIPT, "interpreter", "python")
    for path in (*(paths.hook_dir / name for name in names), *paths.hook_dir.glob("__pycache__/csmd_*.pyc")):
        path.unlink(missing_ok=True)
    for folder in (paths.hook_dir / "__pycache__", paths.hook_dir):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def plan_removal(paths: Paths) -> list[Change]:
    """What uninstalling would change in the assistant's files; nothing is written."""
    return [removing(paths, Path(key)) for key in load_record(paths)["settings"]]


def configuration(more: Sequence[Path] = ()) -> Config:
    """The configuration in force, with the directories that earlier installs wrote to and `more`."""
    paths = default_paths()
    return load(paths=paths, extra_dirs=(*assistant_dirs(paths), *more))


_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
#: What it is for people -> globs below the home.
HOME_FILES: dict[str, tuple[str, ...]] = {
    "memories and conversations": (
        "csmd.db", "csmd.db-wal", "csmd.db-shm", "csmd.before-migration.db", "csmd.db.before-restore",
        "csmd.db.before-restore-*", "damaged-[0-9]*T[0-9]*Z/*", "repairing/**/*",
    ),
    "backups of them": ("backups/csmd-*", "backups/.csmd-*"),
    "session files of csmd's own": ("sessions/*/*.jsonl",),
    "notes as markdown and data": (
        "memory/user.md", "memory/MEMORY.md", "memory/projects/*-??????.md", "memory/topics/*.md", "memory/.dream.lock", "memory/archive/projects/*.md", "memory/archive/topics/*.md",
        *(f"memory/{place}{name}" for place in ("", "workspaces/*/") for name in (
            f"daily/{_DAY}.md", f"daily/{_DAY}.yaml", f"archive/daily/{_DAY}.md", f"archive/daily/{_DAY}.yaml", "sessions/*.yaml",
        )),
    ),
    "events that wait": ("spool/*.event", "spool/.tmp-*"),
    "notes on bad input": ("quarantine/*.json",),
    "embedding models": (
        *(f"models/{folder}/**/*" for folder in ("tiktoken", ".fetched", ".add-*")), "models/*/csmd-model.txt",
    ),
    "hook scripts": (
        *(f"hook/{name}" for name in (*HOOK_FILES, *HOOK_SCRIPTS, SERVER_SCRIPT, "interpreter", "python")), "hook/__pycache__/csmd_*.pyc",
    ),
    "log": ("log/csmd.log", "log/csmd.log.[0-9]", "log/crash.txt", "log/report.txt"),
    "configuration": ("config.yaml",),
    "state": (
        "endpoint", "install.json", "pauses.json", "README.txt", "run/*.lock", "run/daemon.json", "run/stopped-by-user", "run/hung",
        "run/*.sock", "run/*.stderr", "run/told-*", "run/noticed-*", "run/passed-by",
    ),
}  # fmt: skip
#: What lies beside it is a model that csmd copied.
MODEL_MARK = "csmd-model.txt"
#: What a write that was killed can leave anywhere in the home.
UNFINISHED = (".*.csmd", "*/.*.csmd", ".*.tmp", "*/.*.tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One row of what goes: how many files, how many bytes."""

    what: str
    files: tuple[Path, ...]
    bytes: int


@dataclass(slots=True, kw_only=True)
class Left:
    """What a purge left: files that are not csmd's, and what could not be removed with the reason."""

    foreign: list[Path] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def parts(paths: Paths) -> list[Part]:
    """What a purge would remove, without what there is none of."""
    rows = [(what, paths.home, globs) for what, globs in HOME_FILES.items()]
    rows += [
        *(("embedding models", mark.parent, ("**/*",)) for mark in paths.models.glob(f"*/{MODEL_MARK}")),
        ("log", paths.log_dir, ("csmd.log", "csmd.log.[0-9]", "crash.txt", "report.txt")),
        ("configuration", paths.config_file.parent, (paths.config_file.name,)),
        ("state", paths.home, UNFINISHED),
        *(("events that wait", place, ("*.event", ".tmp-*")) for place in _second_spool(paths)),
        *(("state", place, (_short_socket(paths),)) for place in _temporary()),
    ]
    found: dict[str, dict[Path, int]] = {}
    for what, root, globs in rows:
        for path, size in _files(root, globs):
            found.setdefault(what, {})[path] = size
    known: set[Path] = set()
    made = []
    for what in HOME_FILES:
        sizes = {path: size for path, size in found.get(what, {}).items() if path not in known}
        known.update(sizes)
        if sizes:
            made.append(Part(what=what, files=tuple(sizes), bytes=sum(sizes.values())))
    return made


def purge(paths: Paths, going: Sequence[Part]) -> Left:
    """Removes these files, then the directories that hold nothing any more; what is left."""
    left = Left()
    folders: set[Path] = set()
    for path in (path for part in going for path in part.files):
        folders.add(path.parent)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            left.refused.append(f"{path}: {error.strerror or error}")
    own = [paths.home, paths.log_dir, paths.config_file.parent, *_second_spool(paths), *_temporary()]
    for root in own:
        below = _directories(root) if root == paths.home else ()
        for folder in sorted({*below, root}, key=lambda one: -len(one.parts)):
            with contextlib.suppress(OSError):  # it holds something of somebody's
                folder.rmdir()
    with contextlib.suppress(OSError):  # <state>/csmd/log has <state>/csmd around it
        if paths.log_dir.parent.name == "csmd":
            paths.log_dir.parent.rmdir()
    refused = {line.partition(": ")[0] for line in left.refused}
    for root in (root for root in dict.fromkeys(own[:3]) if paths.home not in root.parents):
        left.foreign += [path for path in _everything(root) if str(path) not in refused]
    return left


def programs(paths: Paths) -> list[Path]:
    """The virtual environments in the home: the program, which whoever put it there removes."""
    with contextlib.suppress(OSError):
        return sorted(path.parent for path in paths.home.glob("*/pyvenv.cfg"))
    return []


def must_be_own(paths: Paths) -> None:
    """CsmdError where the home is a link or somebody else's: then nothing in it is csmd's to remove."""
    with contextlib.suppress(FileNotFoundError):
        info = paths.home.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise CsmdError(f"{paths.home} is not a directory of yours", hint="remove it by hand if it is csmd's")


def _files(root: Path, globs: Sequence[str]) -> Iterator[tuple[Path, int]]:
    """Files and links below a directory with these names and their sizes; nothing that lies behind a link."""
    if not _is_own(root):
        return
    for glob in globs:
        for path in root.glob(glob):
            inside = path.relative_to(root).parents
            with contextlib.suppress(OSError):
                info = path.lstat()
                foreign = path.name == "README.txt" and path.parent == root and not is_own_readme(path)
                if (
                    not stat.S_ISDIR(info.st_mode)
                    and not foreign
                    and not any((root / folder).is_symlink() for folder in inside)
                ):
                    yield path, info.st_size


def _is_own(folder: Path) -> bool:
    try:
        info = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()


def _directories(root: Path) -> Iterator[Path]:
    """The directories of csmd's below one of its own: those that the table names, as deep as they go."""
    if not _is_own(root):
        return
    named = {glob.partition("/")[0] for globs in HOME_FILES.values() for glob in globs if "/" in glob}
    for name in named:
        for top in root.glob(name):
            for folder, below, _ in os.walk(top):
                if not Path(folder).is_symlink():
                    yield Path(folder)
                    yield from (Path(folder) / one for one in below if not (Path(folder) / one).is_symlink())


def _everything(root: Path) -> list[Path]:
    """What is left directly in a directory of csmd's; [] when that is gone."""
    try:
        return sorted(root.iterdir())
    except OSError:
        return []


def _temporary() -> list[Path]:
    return [Path(f"/tmp/csmd-{os.getuid()}")]  # noqa: S108 - of the user's own, checked before it is looked into


def _second_spool(paths: Paths) -> list[Path]:
    """Where hooks spool when the home takes no file; hooks/csmd_spool.py makes the same name."""
    name = os.path.realpath(paths.home).replace("%", "%25").replace("/", "%2F")
    return [place / f"spool-{name}" for place in _temporary() if _is_own(place)]


def _short_socket(paths: Paths) -> str:
    """The name of the socket whose place in the home would be too long a path; as the daemon names it."""
    return f"{hashlib.sha256(os.fsencode(paths.home)).hexdigest()[:12]}.sock"
