"""Plans, records and reverts the changes of files outside csmd's directories."""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import stat
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from csmd import config, wire
from csmd.config import Config, base_interpreter, user_home
from csmd.errors import BadInput, ConfigError, CsmdError
from csmd.hosts.host_files import HOOK_SCRIPT, SERVER_SCRIPT, Registration, SettingsEntry
from csmd.hosts.registrations import CLAUDE, FILES
from csmd.installer import foreign_files
from csmd.installer.foreign_files import make_private, write_atomic
from csmd.mcp import server_entries
from csmd.mcp.server_entries import Host
from csmd.paths import Paths, is_directory, mark_of
from csmd.text import display, entry_edits, json_edits

# --- the record

#: The install record of a machine without an installation.
EMPTY_RECORD: Mapping[str, Any] = {
    "settings": {}, "folders": {}, "assistant_dirs": [], "hosts": {}, "events": [], "needs": "", "kept_out_by": "",
    "service": None, "version": "",
}  # fmt: skip


def load_record(paths: Paths) -> dict[str, Any]:
    """Returns the install record; CsmdError if it is damaged."""
    empty = copy.deepcopy(dict(EMPTY_RECORD))
    if not paths.install_record.exists():
        return empty
    with contextlib.suppress(BadInput):
        value = wire.loads(paths.install_record.read_bytes())
        if isinstance(value, dict) and isinstance(value.get("settings"), dict) and _is_service(value.get("service")):
            return empty | value
    raise CsmdError(f"{paths.install_record} is damaged", hint="move it away; then `csmd install` writes it again")


def _is_service(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and {"kind", "file", "folders"} <= value.keys())


def save_record(paths: Paths, record: Mapping[str, Any]) -> None:
    """Writes the install record whole."""
    write_atomic(paths.install_record, wire.pretty(record).encode() + b"\n")


def read_assistant_dirs(paths: Paths) -> tuple[Path, ...]:
    """Returns the assistant's configuration directories that earlier installs wrote to."""
    return tuple(Path(folder) for folder in load_record(paths)["assistant_dirs"])


def read_host_dirs(paths: Paths) -> tuple[tuple[str, Path], ...]:
    """Returns (host, configuration directory) of other assistants that earlier installs wrote to, if this csmd knows
    them."""
    recorded = config.recorded_hosts(load_record(paths)["hosts"])
    return tuple((host, folder) for host, folder in recorded if host in FILES)


@contextmanager
def install_lock(paths: Paths) -> Iterator[None]:
    """Holds the lock of install, settle and uninstall; without a home there is nothing to lock."""
    with file_lock(paths.run_dir / "install.lock") if paths.run_dir.is_dir() else nullcontext():
        yield


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Holds a lock file exclusively; a second process waits."""
    with open(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


# --- kinds of entries


#: In the order in which they are added; the install record has their names.
KINDS: tuple[SettingsEntry, ...] = tuple(kind for files in FILES.values() for kind in files.kinds)
#: The kinds of hooks: without one of them an assistant reports nothing.
HOOK_KINDS = tuple(files.kinds[0].name for files in FILES.values())


def find_hosts() -> list[str]:
    """Returns the assistants other than Claude Code that have a configuration directory here."""
    return [host for host, files in FILES.items() if files is not CLAUDE and is_directory(files.directory())]


def find_all_hosts() -> list[str]:
    """Returns every assistant that has a configuration directory here; Claude Code if none has."""
    return [host for host, files in FILES.items() if is_directory(files.directory())] or [CLAUDE.host]


def find_installed_hosts(paths: Paths) -> list[str]:
    """Returns the assistants in whose files entries of csmd's are recorded."""
    names = {name for entry in load_record(paths)["settings"].values() for name in entry["kinds"]}
    return [host for host, files in FILES.items() if any(kind.name in names for kind in files.kinds)]


def add_hosts(load_configuration: Config, hosts: Sequence[str]) -> Config:
    """Returns the configuration with the directories of these assistants, too."""
    recorded = dict.fromkeys(load_configuration.host_dirs)
    new = dict.fromkeys((host, FILES[host].directory()) for host in hosts if host != CLAUDE.host)
    return replace(load_configuration, host_dirs=(*recorded, *(pair for pair in new if pair not in recorded)))


def _make_server_entry(name: str, host: Host) -> SettingsEntry:
    """Returns the memory server in another assistant's settings."""
    return SettingsEntry(
        name=f"server of {name}", what="memory server", file=lambda _: host.path(),
        decode=partial(entry_edits.decode, host.format), begin=str,
        merge=lambda text, registration, where: server_entries.add_server(
            host, text, registration.home, where, registration.server_arguments
        ),
        remove=partial(server_entries.remove_server, host),
        obstacle=lambda text, registration, where: server_entries.describe_foreign(
            host, text, registration.home, where
        ),
    )  # fmt: skip


def is_in(kind: SettingsEntry, path: Path, home: Path) -> bool:
    """Whether a file has an entry of this home's of a kind; False for a file that cannot be parsed."""
    with contextlib.suppress(ConfigError):
        text = kind.begin(kind.decode(foreign_files.read(path), str(path)))
        return kind.remove(text, home, str(path)) != text
    return False


#: Assistant -> its memory server's entry, which `csmd mcp --install` adds.
SERVER_KINDS: dict[str, SettingsEntry] = {
    "claude": next(kind for kind in KINDS if kind.name == "server"),
    **{name: _make_server_entry(name, host) for name, host in server_entries.HOSTS.items()},
}


def read_kinds(paths: Paths, path: Path) -> tuple[SettingsEntry, ...]:
    """Returns the kinds of entries that the record names for a file, without those that only a newer csmd knows."""
    return _kinds_in(load_record(paths), path)


def _kinds_in(record: Mapping[str, Any], path: Path) -> tuple[SettingsEntry, ...]:
    names = record["settings"][str(path)]["kinds"]
    return tuple(kind for kind in dict.fromkeys((*KINDS, *SERVER_KINDS.values())) if kind.name in names)


def add_entries(
    before: bytes | None, kinds: Sequence[SettingsEntry], registration: Registration, where: str
) -> bytes | None:
    """Returns a file with the entries that are wanted and without those that are not; ConfigError where it cannot hold
    them."""
    text = kinds[0].decode(before, where)
    for kind in kinds:
        if kind.is_wanted(registration):
            text = kind.merge(kind.begin(text), registration, where)
        elif not json_edits.is_blank(text):
            text = kind.remove(text, registration.home, where)
    return before if json_edits.is_blank(text) else text.encode()


def remove_entries(current: bytes, kinds: Sequence[SettingsEntry], home: Path, where: str) -> bytes:
    """Returns a file without our entries of these kinds."""
    text = kinds[0].decode(current, where) if kinds else current.decode()
    for kind in reversed(kinds if not json_edits.is_blank(text) else ()):
        text = kind.remove(text, home, where)
    return text.encode()


def describe_entries(
    after: bytes, kinds: Sequence[SettingsEntry], registration: Registration, where: str
) -> tuple[str, tuple[str, ...]]:
    """Returns the entries of these kinds that a file has, and why wanted ones are missing; for people."""
    text = kinds[0].begin(kinds[0].decode(after, where))
    reasons = {kind.what: kind.obstacle(text, registration, where) for kind in kinds if kind.is_wanted(registration)}
    return " and ".join(what for what, why in reasons.items() if not why), tuple(why for why in reasons.values() if why)


# --- plans: nothing is written


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file before and after; left alone with `trouble`; `changed` once it is written.

    `what` names the entries that it has afterwards, `out` says why others are missing; for people.
    """

    path: Path
    what: str = ""
    out: tuple[str, ...] = ()
    kinds: tuple[SettingsEntry, ...]
    before: bytes | None = None
    after: bytes | None = None
    leaves: bool = False
    """Whether the file is restored and leaves the record."""
    gone: SettingsEntry | None = None
    """The only kind whose entry is removed; None for all."""
    changed: bool = False
    trouble: CsmdError | None = None

    @property
    def is_shared(self) -> bool:
        """Whether the assistant writes the file all the time."""
        return any(kind.shared for kind in self.kinds)


def plan_merge(path: Path, kinds: Sequence[SettingsEntry], registration: Registration) -> Change:
    """Returns the file with our entries."""
    where = str(path)
    change = Change(path=path, kinds=tuple(kinds))
    change = _plan_file(change, lambda data: add_entries(data, kinds, registration, where))
    if change.after is None:
        return change
    what, out = describe_entries(change.after, kinds, registration, where)
    return replace(change, what=what, out=out)


def plan_withdrawal(paths: Paths, path: Path, events: Sequence[str]) -> Change:
    """Returns a recorded file without our hooks of these events; hooks that a person removed are not added again."""

    def without_events(data: bytes | None) -> bytes | None:
        text = json_edits.decode(data, str(path))
        if json_edits.is_blank(text):
            return data
        return CLAUDE.without_events(text, paths.home, str(path), events).encode()

    return _plan_file(Change(path=path, kinds=read_kinds(paths, path)), without_events)


def plan_return(paths: Paths, path: Path) -> Change:
    """Returns a recorded file as it was before install; if it was edited since, without our entries."""
    change = Change(path=path, kinds=read_kinds(paths, path), leaves=True)
    entry = load_record(paths)["settings"][str(path)]
    return _plan_file(change, lambda data: foreign_files.restored(data, entry, _make_remover(change, paths.home)))


def plan_one_return(paths: Paths, path: Path, kind: SettingsEntry) -> Change:
    """Returns a recorded file without our entry of one kind; as it was before install if it has no other."""
    recorded = read_kinds(paths, path)
    if recorded == (kind,):
        return plan_return(paths, path)
    change = Change(path=path, kinds=recorded, gone=kind)
    return _plan_file(change, lambda data: data and remove_entries(data, [kind], paths.home, str(path)))


def plan_removal(paths: Paths) -> list[Change]:
    """Returns the changes that uninstalling would make to the assistant's files."""
    return [plan_return(paths, Path(key)) for key in load_record(paths)["settings"]]


def _plan_file(change: Change, edit: Callable[[bytes | None], bytes | None]) -> Change:
    try:
        before = foreign_files.read(change.path)
        after = edit(before)
        if after != before:
            foreign_files.check(change.path)
    except CsmdError as error:
        return replace(change, trouble=error)
    return replace(change, before=before, after=after)


def _make_remover(change: Change, home: Path) -> foreign_files.Remove:
    return lambda data: remove_entries(data, change.kinds, home, str(change.path))


def combine_errors(troubles: Sequence[CsmdError]) -> CsmdError:
    """Returns one error for several."""
    first = troubles[0]
    return first if len(troubles) == 1 else type(first)("; ".join(error.what for error in troubles), hint=first.hint)


def format_diff(change: Change) -> str:
    """Returns the change as a diff; without context for a shared file, which may hold keys of other programs."""
    return foreign_files.diff(change.before, change.after, change.path, context=0 if change.is_shared else 3)


# --- writing

#: Most attempts to write a file that another program keeps changing.
TRIES = 5


def carry_out(paths: Paths, plan_again: Callable[[], Change]) -> Change:
    """Plans and writes one file; starts over if another program changed it in between."""
    for remaining in reversed(range(TRIES)):
        change = plan_again()
        if change.trouble:
            break
        try:
            _write(paths, change)
            return replace(change, changed=change.before != change.after)
        except CsmdError as error:
            change = replace(change, trouble=error)
            if not remaining or not isinstance(error, foreign_files.ChangedMeanwhile):
                break
    return change


def _write(paths: Paths, change: Change) -> None:
    """Writes one file and the record, which says how to restore the file as long as our entries are in it."""
    key, folder, record = str(change.path), change.path.parent, load_record(paths)
    if change.leaves:
        _apply(change)
        with contextlib.suppress(OSError):  # not empty, or gone
            for own in [folder, *folder.parents][: int(record["folders"].get(key, 0))]:
                own.rmdir()
        del record["settings"][key]
        save_record(paths, record)
    elif change.after is not None and change.after != change.before:
        # Recorded first: an entry without a record could not be removed.
        previous = record["settings"].get(key)
        # Hooks and the memory server may share a file; each is added and removed on its own.
        recorded = _kinds_in(record, change.path) if previous else ()
        kinds = tuple(dict.fromkeys((*recorded, *change.kinds)))
        remove = _make_remover(replace(change, kinds=kinds), paths.home)
        entry = foreign_files.record_entry(change.before, change.after, remove, previous)
        entry["kinds"] = [kind.name for kind in kinds if kind is not change.gone]
        missing = sum(not folder_above.exists() for folder_above in (folder, *folder.parents))
        created = max(missing, int(record["folders"].get(key, 0)))
        settings, folders = {**record["settings"], key: entry}, {**record["folders"], key: created}
        save_record(paths, {**record, "settings": settings, "folders": folders})
        try:
            _apply(change)
        except BaseException:
            save_record(paths, record)
            raise


def _apply(change: Change) -> None:
    is_locked = change.is_shared and change.before != change.after
    with foreign_files.assistant_lock(change.path) if is_locked else nullcontext():
        foreign_files.apply(change.path, change.before, change.after)


# --- which newer events the clients in use know

#: Seconds to wait for `claude --version`.
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The newer events to register; `kept_out_by` says why no more: a client's version, or a reason."""

    events: tuple[str, ...]
    kept_out_by: str = ""


def choose_events(installed: Mapping[str, str], seen: Iterable[str]) -> Choice:
    """Returns the newer events to register for the installed clients (path -> version, "" if unknown) and versions in
    use."""
    choice = choose_supported_events([*installed.values(), *seen])
    if choice.kept_out_by:
        return choice
    if not installed:
        return Choice(events=(), kept_out_by="no `claude` on PATH")
    silent = next((path for path, version in installed.items() if display.parse_version(version) is None), "")
    return Choice(events=(), kept_out_by=f"{silent} does not tell its version") if silent else choice


def choose_supported_events(versions: Iterable[str]) -> Choice:
    """Returns the newer events that the oldest of these versions knows; anything that is not a version is ignored."""
    oldest = min(filter(display.parse_version, versions), key=_parse_number, default="")

    def is_known(event: str) -> bool:
        return not oldest or _parse_number(oldest) >= _parse_number(find_oldest_version([event]))

    events = tuple(filter(is_known, CLAUDE.newer))
    return Choice(events=events, kept_out_by="" if len(events) == len(CLAUDE.newer) else oldest)


def find_oldest_version(events: Sequence[str]) -> str:
    """Returns the oldest version that may be in use with these events registered; "" for any."""
    return max([CLAUDE.tolerant_since, *(CLAUDE.newer[event] for event in events)], key=_parse_number) if events else ""


def _parse_number(version: str) -> tuple[int, int, int]:
    return display.parse_version(version) or (0, 0, 0)


def find_clients() -> dict[str, str]:
    """Returns the clients on this machine, each once by its real path, with its version; "" for one that does not print
    it."""
    from concurrent.futures import ThreadPoolExecutor  # imported late: most commands do not need it

    search, home = config.child_environment().get("PATH", os.defpath), user_home()
    folders = (str(home / folder) for folder in CLAUDE.program_folders)
    programs = find_programs([*search.split(os.pathsep), *folders], CLAUDE.program)
    with ThreadPoolExecutor(max_workers=4) as pool:
        words = pool.map(lambda path: read_version(path, search), programs)
        by_program = zip(programs, words, strict=True)
        return {str(path): word if display.parse_version(word) else "" for path, word in by_program}


def find_programs(folders: Iterable[str], name: str) -> list[Path]:
    """Returns every program of this name in these directories, each real file once, in their order."""
    programs: dict[str, Path] = {}
    for path in (Path(folder) / name for folder in folders if folder.startswith("/")):
        if path.is_file() and os.access(path, os.X_OK):
            programs.setdefault(os.path.realpath(path), path)
    return list(programs.values())


def read_version(program: Path, search: str) -> str:
    """Returns the first word that `claude --version` prints; "" if it fails or hangs.

    Its environment has none of the user's variables but PATH, in which the client's script finds its node.
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="csmd-ask-", ignore_cleanup_errors=True) as empty:
        environment = {
            "PATH": search, **dict.fromkeys(("HOME", CLAUDE.variable, "TMPDIR"), empty),
            **dict.fromkeys(("DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1"),
        }  # fmt: skip
        try:
            process = subprocess.run(
                [str(program), "--version"], cwd=empty, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=PATIENCE_S, check=True, start_new_session=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return ""
    return next(iter(process.stdout.decode("utf-8", "replace").split()), "")


# --- installing

#: The rarely used module first: the old hook works with the new one until it is replaced.
HOOK_FILES = ("csmd_spool.py", HOOK_SCRIPT, "csmd_line.py")
HOOK_SCRIPTS = ("post-turn", "pre-compact", "session-start", "prompt", "session-end", "subagent-stop")
LAUNCHERS = tuple(files.launcher for files in FILES.values() if files.launcher)
EXTRA_SCRIPTS = tuple(dict.fromkeys(name for files in FILES.values() for name in files.extra_scripts))
#: Name in csmd's home -> the shipped file that is copied there; a launcher's name identifies the assistant.
_SAME_NAME = (*HOOK_FILES, *HOOK_SCRIPTS, *EXTRA_SCRIPTS, SERVER_SCRIPT)
COPIED = {name: name for name in _SAME_NAME} | dict.fromkeys(LAUNCHERS, "assistant")
README = (
    "This directory belongs to csmd, the cross-session memory daemon.\n"
    "`csmd status` describes its content; `csmd uninstall` removes csmd's hooks from your assistant.\n"
)


def find_shipped_folder(folder: str = "hooks") -> Path:
    """Returns the directory of the shipped files: inside the wheel, or next to the package in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_share" / folder
    return inside if inside.is_dir() else package.parent / folder


def make_registration(config: Config, newer: Sequence[str] = ()) -> Registration:
    """Returns the values that csmd's entries are made from, with these newer events."""
    return Registration(
        home=config.paths.home, interpreter=base_interpreter(), events=(*CLAUDE.stable_events, *newer),
        status_line=config.settings.status_line,
    )  # fmt: skip


def format_hooks(home: Path) -> Any:
    """Returns the hooks to paste into Claude Code's settings: an object with the key `hooks`."""
    registration = Registration(home=home, interpreter=base_interpreter(), events=CLAUDE.stable_events)
    return wire.loads(CLAUDE.kinds[0].merge(CLAUDE.kinds[0].begin(""), registration, ""))


def plan_install(config: Config, newer: Sequence[str] = (), hosts: Collection[str] = tuple(FILES)) -> list[Change]:
    """Returns the changes that installing these newer events would make to the files of these assistants."""
    registration = make_registration(config, newer)
    files: dict[str, tuple[Path, list[SettingsEntry]]] = {}
    folders = [*((CLAUDE.host, folder) for folder in config.assistant_dirs), *config.host_dirs]
    for host, folder in (pair for pair in folders if pair[0] in hosts):
        kinds_by_path: dict[Path, list[SettingsEntry]] = {}
        for kind in FILES[host].kinds:
            kinds_by_path.setdefault(kind.file(folder), []).append(kind)
        for path, kinds in kinds_by_path.items():  # two directories may share a file by a link
            files.setdefault(os.path.realpath(path), (path, kinds))
    return [plan_merge(path, kinds, registration) for path, kinds in files.values()]


#: The indentation of further files of a directory in a list.
INDENT = " " * 10


def describe_own_files(paths: Paths) -> list[str]:
    """Returns the files that installing writes in csmd's own directories, for people."""
    return [
        f"{paths.home}/ (0700)",
        f"  hook/   {', '.join(HOOK_FILES)}, interpreter, {SERVER_SCRIPT}, python,",
        *textwrap.wrap(
            ", ".join((*HOOK_SCRIPTS, *LAUNCHERS, *EXTRA_SCRIPTS)), 78, initial_indent=INDENT, subsequent_indent=INDENT
        ),
        "  install.json, README.txt, csmd.db, endpoint, backups/, models/,",
        "  memory/, quarantine/, run/, sessions/, spool/",
        f"{paths.log_dir}/csmd.log",
    ]


def install(config: Config, choice: Choice, hosts: Collection[str] = tuple(FILES)) -> list[Change]:
    """Copies the hook and writes the entries; a file that cannot be written does not stop the others.

    Raises one error where no file that should hold hooks can be written; then nothing was written.
    """
    planned, registration = plan_install(config, choice.events, hosts), make_registration(config, choice.events)
    hooked = [change for change in planned if change.kinds[0].name in HOOK_KINDS]
    troubles = [change.trouble for change in hooked if change.trouble]
    if troubles and len(troubles) == len(hooked):
        raise combine_errors(troubles)
    paths = config.paths
    install_hooks(paths)
    readme = paths.home / "README.txt"
    if is_our_readme(readme) or not os.path.lexists(readme):
        write_atomic(readme, README.encode())
    with install_lock(paths):
        # Recorded first, because the daemon watches for older clients from then on.
        folders = config.assistant_dirs if CLAUDE.host in hosts else read_assistant_dirs(paths)
        further: dict[str, list[str]] = {}
        for host, folder in config.host_dirs:
            further.setdefault(host, []).append(str(folder))
        _record_choice(paths, choice, assistant_dirs=list(map(str, folders)), hosts=further)
        return [carry_out(paths, partial(plan_merge, change.path, change.kinds, registration)) for change in planned]


def is_our_readme(path: Path) -> bool:
    """Whether a file is the README that this or another version of csmd wrote."""
    begin = README.partition(",")[0].encode()
    try:
        return stat.S_ISREG(path.lstat().st_mode) and path.read_bytes().startswith(begin)
    except OSError:
        return False


def withdraw_events(paths: Paths, choice: Choice) -> tuple[list[str], list[Change]]:
    """Removes the newer events that are registered and not chosen; returns them, and the change of each file."""
    with install_lock(paths):
        record = load_record(paths)
        withdrawn = [event for event in record["events"] if event not in choice.events]
        if not withdrawn:
            return [], []
        hooked = [Path(key) for key, entry in record["settings"].items() if "hooks" in entry["kinds"]]
        outcomes = [carry_out(paths, partial(plan_withdrawal, paths, path, withdrawn)) for path in hooked]
        if not any(change.trouble for change in outcomes):
            remaining = tuple(event for event in record["events"] if event in choice.events)
            _record_choice(paths, Choice(events=remaining, kept_out_by=choice.kept_out_by))
        return withdrawn, outcomes


def read_choice(paths: Paths) -> Choice:
    """Returns the newer events that are registered, and why no more."""
    record = load_record(paths)
    return Choice(events=tuple(record["events"]), kept_out_by=str(record["kept_out_by"]))


def _record_choice(paths: Paths, choice: Choice, **more: Any) -> None:
    needs = find_oldest_version(choice.events)
    values = {"events": list(choice.events), "needs": needs, "kept_out_by": choice.kept_out_by}
    save_record(paths, {**load_record(paths), **values, **more})


def install_hooks(paths: Paths) -> None:
    """Creates csmd's directories and copies the hooks; from then on their reports are spooled."""
    for folder in (paths.home, paths.hook_dir, paths.run_dir, paths.spool):
        make_private(folder)
    copy_hooks(paths)


def copy_hooks(paths: Paths) -> None:
    """Copies the hook scripts, each atomically: a running hook sees the old or the new one."""
    import py_compile

    source = find_shipped_folder()
    for name, shipped in COPIED.items():
        mode = 0o600 if name.endswith((".py", ".js")) else 0o700
        write_atomic(paths.hook_dir / name, (source / shipped).read_bytes(), mode=mode)
    write_atomic(paths.hook_dir / "interpreter", base_interpreter().encode() + b"\n")
    write_atomic(paths.hook_dir / "python", config.own_interpreter().encode() + b"\n")
    # Compiled now, so that a hook's first use of this module costs no compiling.
    make_private(paths.hook_dir / "__pycache__")
    py_compile.compile(str(paths.hook_dir / "csmd_spool.py"), quiet=2)


def is_shipped_copy(path: Path) -> bool:
    """Whether an installed hook file is the one that this version ships."""
    return path.is_file() and path.read_bytes() == (find_shipped_folder() / COPIED[path.name]).read_bytes()


def find_problems(paths: Paths) -> list[str]:
    """Returns the reasons why the installed hooks or the server cannot run, a sentence each."""
    problems = []
    for name, whose in (("interpreter", "hooks: their"), ("python", "memory server: its")):
        file = paths.hook_dir / name
        interpreter = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
        if interpreter and not Path(interpreter).exists():
            problems.append(f"{whose} Python is gone ({interpreter}); `csmd install` chooses another")
    for key, entry in load_record(paths)["settings"].items():
        with contextlib.suppress(CsmdError):  # `csmd doctor` says more of a file that cannot be read
            data = foreign_files.read(Path(key)) or b""
            kinds = [kind for kind in KINDS if kind.name in HOOK_KINDS and kind.name in entry["kinds"]]
            if kinds and remove_entries(data, kinds, paths.home, key) == data:
                problems.append(f"hooks: {key} has none of csmd; `csmd install` adds them again")
    return problems


def load_configuration(more: Sequence[Path] = ()) -> Config:
    """Returns the configuration in force, with the directories that earlier installs wrote to and `more`."""
    paths = config.default_paths()
    return config.load(paths=paths, extra_dirs=(*read_assistant_dirs(paths), *more), host_dirs=read_host_dirs(paths))


# --- the memory server of other assistants


def install_server(config: Config, host: str, arguments: Sequence[str]) -> Change:
    """Installs the memory server's script and adds its entry to an assistant's settings."""
    kind, other = SERVER_KINDS[host], server_entries.HOSTS.get(host)
    path = kind.file(config.assistant_dirs[0])
    if other and not (path.parent if other.may_create else path).exists():
        hint = f"`csmd mcp --print-config {host}` shows what to paste; or open {other.name} once, and try again"
        raise CsmdError(f"{other.name} has no {path} yet", hint=hint)
    registration = replace(make_registration(config), server_arguments=tuple(arguments))
    install_hooks(config.paths)
    with install_lock(config.paths):
        return carry_out(config.paths, partial(plan_merge, path, [kind], registration))


def remove_server(config: Config, host: str) -> Change:
    """Removes the memory server's entry from an assistant's settings; CsmdError if csmd added none."""
    kind = SERVER_KINDS[host]
    path = kind.file(config.assistant_dirs[0])
    with install_lock(config.paths):
        if str(path) not in load_record(config.paths)["settings"] or kind not in read_kinds(config.paths, path):
            hint = f"`csmd mcp --print-config {host}` shows the entry that --install adds"
            raise CsmdError(f"csmd has no entry in {path}", hint=hint)
        return carry_out(config.paths, partial(plan_one_return, config.paths, path, kind))


def describe_server(config: Config, host: str, arguments: Sequence[str]) -> tuple[Path, str]:
    """Returns the file of an assistant's MCP servers, and what to paste into it."""
    kind, home = SERVER_KINDS[host], config.paths.home
    path = kind.file(config.assistant_dirs[0])
    if host in server_entries.HOSTS:
        return path, server_entries.render_entry(server_entries.HOSTS[host], home, arguments)
    registration = replace(make_registration(config), server_arguments=tuple(arguments))
    return path, f"{wire.pretty(wire.loads(kind.merge(kind.begin(''), registration, str(path))))}\n"


# --- leaving


def uninstall(paths: Paths) -> list[Change]:
    """Removes csmd's entries from every recorded file; one that cannot be written stays in the record."""
    with install_lock(paths):
        # In reverse order: a directory was created for the first file in it.
        files = map(Path, reversed(load_record(paths)["settings"]))
        outcomes = [carry_out(paths, partial(plan_return, paths, path)) for path in files]
        record = load_record(paths)
        if not record["settings"] and not record["service"]:  # service.remove needs it
            paths.install_record.unlink(missing_ok=True)
        remove_hooks(paths)
    return outcomes


def remove_hooks(paths: Paths) -> None:
    """Removes the hook scripts, their directory if that leaves it empty, and the mark of a missing file."""
    paths.missing_mark.unlink(missing_ok=True)
    for glob in HOME_FILES["hook scripts"]:
        for path in paths.home.glob(glob):
            path.unlink(missing_ok=True)
    for folder in (paths.hook_dir / "__pycache__", paths.hook_dir):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
#: Kind of file, for people -> globs below the home.
HOME_FILES: dict[str, tuple[str, ...]] = {
    "memories and conversations": (
        "csmd.db", "csmd.db-wal", "csmd.db-shm", "csmd.before-migration.db*", "csmd.db.before-restore",
        "csmd.db.before-restore-*", "damaged-[0-9]*T[0-9]*Z/*", "repairing/**/*",
    ),
    "backups of them": ("backups/csmd-*", "backups/.csmd-*"),
    "session files of csmd's own": ("sessions/*/*.jsonl",),
    "notes as markdown and data": (
        "memory/user.md", "memory/MEMORY.md", "memory/projects/*-??????.md", "memory/topics/*.md",
        "memory/.dream.lock", "memory/archive/projects/*.md", "memory/archive/topics/*.md",
        *(f"memory/{place}{name}" for place in ("", "workspaces/*/") for name in (
            f"daily/{_DAY}.md", f"daily/{_DAY}.yaml", f"archive/daily/{_DAY}.md", f"archive/daily/{_DAY}.yaml",
            "sessions/*.yaml",
        )),
    ),
    "events that wait": ("spool/*.event", "spool/.tmp-*", "spool-2/*.event", "spool-2/.tmp-*"),
    "notes on bad input": ("quarantine/*.json",),
    "embedding models": (
        *(f"models/{folder}/**/*" for folder in ("tiktoken", ".fetched", ".add-*")), "models/*/csmd-model.txt",
    ),
    "hook scripts": (*(f"hook/{name}" for name in (*COPIED, "interpreter", "python")), "hook/__pycache__/csmd_*.pyc"),
    "log": ("log/csmd.log", "log/csmd.log.[0-9]", "log/crash.txt", "log/report.txt"),
    "configuration": ("config.yaml",),
    "state": (
        "endpoint", "install.json", "pauses.json", "README.txt", "run/*.lock", "run/daemon.json", "run/command",
        "run/opened.json", "run/stopped-by-user", "run/hung",
        "run/*.sock", "run/*.stderr", "run/told-*", "run/noticed-*", "run/passed-by", "run/waits-for-key",
        "encryption.json",
    ),
}  # fmt: skip
#: A file that csmd writes into each model that it copies.
MODEL_MARK = "csmd-model.txt"
#: Temporary files that a killed write can leave anywhere in the home.
UNFINISHED = (".*.csmd", "*/.*.csmd", ".*.tmp", "*/.*.tmp")


#: The files that a purge removes: their kind, for people -> file -> its size in bytes.
Purge = dict[str, dict[Path, int]]


def plan_purge(paths: Paths) -> Purge:
    """Returns the files that a purge would remove; kinds without files are left out."""
    rows = [
        *((what, paths.home, globs) for what, globs in HOME_FILES.items()),
        *(("embedding models", mark.parent, ("**/*",)) for mark in paths.models.glob(f"*/{MODEL_MARK}")),
        ("log", paths.log_dir, ("csmd.log", "csmd.log.[0-9]", "crash.txt", "report.txt")),
        ("configuration", paths.config_file.parent, (paths.config_file.name,)),
        ("state", paths.home, UNFINISHED),
    ]
    if folders := _find_temporary_folders(paths):
        rows.append(("events that wait", folders[0], ("*.event", ".tmp-*")))
        rows.append(("state", folders[1], (f"{mark_of(paths.home)}.sock",)))
    planned: Purge = {what: {} for what in HOME_FILES}
    counted: set[Path] = set()
    for what, root, globs in rows:
        new = {path: size for path, size in _find_files(root, globs) if path not in counted}
        counted |= new.keys()
        planned[what] |= new
    return {what: files for what, files in planned.items() if files}


def purge(paths: Paths, planned: Purge) -> tuple[list[Path], list[str]]:
    """Removes files, then empty directories; returns (files that are not csmd's, failures with their reasons)."""
    refused: dict[Path, str] = {}
    for path in (path for files in planned.values() for path in files):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            refused[path] = f"{path}: {error.strerror or error}"
    own = [paths.home, paths.log_dir, paths.config_file.parent]
    below = sorted(_find_directories(paths.home), key=lambda folder: -len(folder.parts))
    around = [paths.log_dir.parent] if paths.log_dir.parent.name == "csmd" else []  # of <state>/csmd/log
    for folder in (*below, *own, *_find_temporary_folders(paths), *around):
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()
    foreign: list[Path] = []
    for root in dict.fromkeys(own):
        with contextlib.suppress(OSError):
            remaining = [path for path in sorted(root.iterdir()) if path not in refused]
            foreign += [] if paths.home in root.parents else remaining
    return foreign, list(refused.values())


def find_virtual_environments(paths: Paths) -> list[Path]:
    """Returns the virtual environments in the home; a purge leaves them."""
    with contextlib.suppress(OSError):
        return sorted(path.parent for path in paths.home.glob("*/pyvenv.cfg"))
    return []


def find_command_links(environment: Path) -> list[Path]:
    """The links named csmd, on PATH or in ~/.local/bin, that lead into a virtual environment; the user made them."""
    search = config.child_environment().get("PATH", os.defpath).split(os.pathsep)
    links = [Path(folder) / "csmd" for folder in (*search, str(user_home() / ".local/bin")) if folder]
    return [link for link in dict.fromkeys(links) if link.is_symlink() and _leads_to(link, environment / "bin/csmd")]


def _leads_to(link: Path, program: Path) -> bool:
    with contextlib.suppress(OSError, RuntimeError):  # a loop of links
        return link.resolve() == program.resolve()
    return False


def check_home_is_own(paths: Paths) -> None:
    """Raises CsmdError if the home is a link or belongs to another user."""
    if os.path.lexists(paths.home) and not _is_own(paths.home):
        raise CsmdError(f"{paths.home} is not a directory of yours", hint="remove it by hand if it is csmd's")


def _find_files(root: Path, globs: Sequence[str]) -> Iterator[tuple[Path, int]]:
    """Yields (path, bytes) of files and links below a directory that match these globs; follows no link."""
    for glob in globs if _is_own(root) else ():
        for path in root.glob(glob):
            inside = path.relative_to(root).parents
            foreign = path.name == "README.txt" and path.parent == root and not is_our_readme(path)
            with contextlib.suppress(OSError):
                info = path.lstat()
                behind_link = any((root / folder).is_symlink() for folder in inside)
                if not stat.S_ISDIR(info.st_mode) and not foreign and not behind_link:
                    yield path, info.st_size


def _is_own(folder: Path) -> bool:
    """Whether a directory, and no link to one, belongs to the user."""
    try:
        info = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()


def _find_directories(root: Path) -> Iterator[Path]:
    """Yields the directories below the home that HOME_FILES names, with all below them."""
    names = {glob.partition("/")[0] for globs in HOME_FILES.values() for glob in globs if "/" in glob}
    for top in (top for name in names if _is_own(root) for top in root.glob(name) if not top.is_symlink()):
        yield from (Path(folder) for folder, _, _ in os.walk(top))


def _find_temporary_folders(paths: Paths) -> list[Path]:
    """Returns the spool outside the home and its parent directory; [] unless the user owns that."""
    around = Path(f"/tmp/csmd-{os.getuid()}")  # noqa: S108 - checked before it is looked into
    return [around / config.spool_places(paths.home)[-1].name, around] if _is_own(around) else []
