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
    """The install record; CsmdError if it is damaged."""
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


def assistant_dirs(paths: Paths) -> tuple[Path, ...]:
    """The assistant's configuration directories that earlier installs wrote to."""
    return tuple(Path(folder) for folder in load_record(paths)["assistant_dirs"])


def host_dirs(paths: Paths) -> tuple[tuple[str, Path], ...]:
    """(host, configuration directory) of other assistants that earlier installs wrote to, if this csmd knows them."""
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


#: In the order in which they are put in; the names stand in the install record.
KINDS: tuple[SettingsEntry, ...] = tuple(kind for files in FILES.values() for kind in files.kinds)
#: The kinds of hooks: without one of them an assistant reports nothing.
HOOK_KINDS = tuple(files.kinds[0].name for files in FILES.values())


def find_hosts() -> list[str]:
    """The assistants beside Claude Code that have a configuration directory here."""
    return [host for host, files in FILES.items() if files is not CLAUDE and is_directory(files.directory())]


def find_all_hosts() -> list[str]:
    """Every assistant that has a configuration directory here; Claude Code if none has."""
    return [host for host, files in FILES.items() if is_directory(files.directory())] or [CLAUDE.host]


def installed_hosts(paths: Paths) -> list[str]:
    """The assistants in whose files entries of csmd's are recorded."""
    names = {name for entry in load_record(paths)["settings"].values() for name in entry["kinds"]}
    return [host for host, files in FILES.items() if any(kind.name in names for kind in files.kinds)]


def add_hosts(configuration: Config, hosts: Sequence[str]) -> Config:
    """The configuration with the directories of these assistants, too."""
    before = dict.fromkeys(configuration.host_dirs)
    new = dict.fromkeys((host, FILES[host].directory()) for host in hosts if host != CLAUDE.host)
    return replace(configuration, host_dirs=(*before, *(place for place in new if place not in before)))


def _server_of(name: str, host: Host) -> SettingsEntry:
    """The memory server in another assistant's settings."""
    return SettingsEntry(
        name=f"server of {name}",
        what="memory server",
        file=lambda _: host.path(),
        decode=partial(entry_edits.decode, host.format),
        begin=str,
        merge=lambda text, wanted, where: server_entries.add_server(
            host, text, wanted.home, where, wanted.server_arguments
        ),
        remove=partial(server_entries.remove_server, host),
        obstacle=lambda text, wanted, where: server_entries.describe_foreign(host, text, wanted.home, where),
    )


def is_in(kind: SettingsEntry, path: Path, home: Path) -> bool:
    """Whether a file has an entry of this home's of a kind; False for one that cannot be read as what it is."""
    with contextlib.suppress(ConfigError):
        text = kind.begin(kind.decode(foreign_files.read(path), str(path)))
        return kind.remove(text, home, str(path)) != text
    return False


#: Assistant -> its memory server's entry: what `csmd mcp --install` puts in.
SERVER_KINDS: dict[str, SettingsEntry] = {
    "claude": next(kind for kind in KINDS if kind.name == "server"),
    **{name: _server_of(name, host) for name, host in server_entries.HOSTS.items()},
}


def recorded_kinds(paths: Paths, path: Path) -> tuple[SettingsEntry, ...]:
    """The kinds of entries that the record names for a file, without those that only a newer csmd knows."""
    return _kinds_in(load_record(paths), path)


def _kinds_in(record: Mapping[str, Any], path: Path) -> tuple[SettingsEntry, ...]:
    names = record["settings"][str(path)]["kinds"]
    return tuple(kind for kind in dict.fromkeys((*KINDS, *SERVER_KINDS.values())) if kind.name in names)


def with_entries(
    before: bytes | None, kinds: Sequence[SettingsEntry], wanted: Registration, where: str
) -> bytes | None:
    """A file with the entries that are wanted and without those that are not; ConfigError where it cannot hold them."""
    text = kinds[0].decode(before, where)
    for kind in kinds:
        if kind.is_wanted(wanted):
            text = kind.merge(kind.begin(text), wanted, where)
        elif not json_edits.is_blank(text):
            text = kind.remove(text, wanted.home, where)
    return before if json_edits.is_blank(text) else text.encode()


def without_entries(current: bytes, kinds: Sequence[SettingsEntry], home: Path, where: str) -> bytes:
    """A file without our entries of these kinds."""
    text = kinds[0].decode(current, where) if kinds else current.decode()
    for kind in reversed(kinds if not json_edits.is_blank(text) else ()):
        text = kind.remove(text, home, where)
    return text.encode()


def describe_entries(
    after: bytes, kinds: Sequence[SettingsEntry], wanted: Registration, where: str
) -> tuple[str, tuple[str, ...]]:
    """The entries of these kinds that a file has, and why wanted ones are missing; for people."""
    text = kinds[0].begin(kinds[0].decode(after, where))
    reasons = {kind.what: kind.obstacle(text, wanted, where) for kind in kinds if kind.is_wanted(wanted)}
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
    """The kind whose entry alone is taken out."""
    changed: bool = False
    trouble: CsmdError | None = None

    @property
    def is_shared(self) -> bool:
        """Whether the assistant writes the file all the time."""
        return any(kind.shared for kind in self.kinds)


def plan_merge(path: Path, kinds: Sequence[SettingsEntry], wanted: Registration) -> Change:
    """The file with our entries."""
    where = str(path)
    change = _plan_file(Change(path=path, kinds=tuple(kinds)), lambda data: with_entries(data, kinds, wanted, where))
    if change.after is None:
        return change
    what, out = describe_entries(change.after, kinds, wanted, where)
    return replace(change, what=what, out=out)


def plan_withdrawal(paths: Paths, path: Path, events: Sequence[str]) -> Change:
    """A recorded file without our hooks of these events; what a person removed by hand stays removed."""

    def without_events(data: bytes | None) -> bytes | None:
        text = json_edits.decode(data, str(path))
        if json_edits.is_blank(text):
            return data
        return CLAUDE.without_events(text, paths.home, str(path), events).encode()

    return _plan_file(Change(path=path, kinds=recorded_kinds(paths, path)), without_events)


def plan_return(paths: Paths, path: Path) -> Change:
    """A recorded file as it was before install; where it was edited since, without our entries."""
    change = Change(path=path, kinds=recorded_kinds(paths, path), leaves=True)
    entry = load_record(paths)["settings"][str(path)]
    return _plan_file(change, lambda data: foreign_files.restored(data, entry, _remover(change, paths.home)))


def plan_one_return(paths: Paths, path: Path, kind: SettingsEntry) -> Change:
    """A recorded file without our entry of one kind; as it was before install where it has no other."""
    recorded = recorded_kinds(paths, path)
    if recorded == (kind,):
        return plan_return(paths, path)
    change = Change(path=path, kinds=recorded, gone=kind)
    return _plan_file(change, lambda data: data and without_entries(data, [kind], paths.home, str(path)))


def plan_removal(paths: Paths) -> list[Change]:
    """The changes that uninstalling would make to the assistant's files."""
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


def _remover(change: Change, home: Path) -> foreign_files.Remove:
    return lambda data: without_entries(data, change.kinds, home, str(change.path))


def combined_error(troubles: Sequence[CsmdError]) -> CsmdError:
    """One error for several."""
    first = troubles[0]
    return first if len(troubles) == 1 else type(first)("; ".join(error.what for error in troubles), hint=first.hint)


def diff_of(change: Change) -> str:
    """The change as a diff; without context for a shared file, which may hold keys of other programs."""
    return foreign_files.diff(change.before, change.after, change.path, context=0 if change.is_shared else 3)


# --- writing

#: How often a file is planned again that another program keeps changing.
TRIES = 5


def carry_out(paths: Paths, plan_again: Callable[[], Change]) -> Change:
    """Plans and writes one file; starts over when the file was changed meanwhile."""
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
        # Recorded before it is written: an entry without a record could not be removed.
        previous = record["settings"].get(key)
        # Hooks and the memory server may share a file, and are put in and taken out apart.
        recorded = _kinds_in(record, change.path) if previous else ()
        kinds = tuple(dict.fromkeys((*recorded, *change.kinds)))
        remove = _remover(replace(change, kinds=kinds), paths.home)
        entry = foreign_files.record_entry(change.before, change.after, remove, previous)
        entry["kinds"] = [kind.name for kind in kinds if kind is not change.gone]
        missing = sum(not above.exists() for above in (folder, *folder.parents))
        made = max(missing, int(record["folders"].get(key, 0)))
        settings, folders = {**record["settings"], key: entry}, {**record["folders"], key: made}
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
    """The newer events to register for the installed clients (path -> version, "" if unknown) and versions in use."""
    choice = supported_events([*installed.values(), *seen])
    if choice.kept_out_by:
        return choice
    if not installed:
        return Choice(events=(), kept_out_by="no `claude` on PATH")
    silent = next((path for path, version in installed.items() if display.parse_version(version) is None), "")
    return Choice(events=(), kept_out_by=f"{silent} does not tell its version") if silent else choice


def supported_events(versions: Iterable[str]) -> Choice:
    """The newer events that the oldest of these versions knows; anything that is not a version is ignored."""
    oldest = min(filter(display.parse_version, versions), key=_number, default="")
    events = tuple(
        event for event in CLAUDE.newer if not oldest or _number(oldest) >= _number(oldest_version_for([event]))
    )
    return Choice(events=events, kept_out_by="" if len(events) == len(CLAUDE.newer) else oldest)


def oldest_version_for(events: Sequence[str]) -> str:
    """The oldest version that may be in use with these events registered; "" for any."""
    return max([CLAUDE.tolerant_since, *(CLAUDE.newer[event] for event in events)], key=_number) if events else ""


def _number(version: str) -> tuple[int, int, int]:
    return display.parse_version(version) or (0, 0, 0)


def find_clients() -> dict[str, str]:
    """The clients on this machine, each once by its real path, with its version; "" for one that does not print it."""
    from concurrent.futures import ThreadPoolExecutor  # of which a mere look at the state has no need

    search, home = config.child_environment().get("PATH", os.defpath), user_home()
    programs = programs_in(
        [*search.split(os.pathsep), *(str(home / folder) for folder in CLAUDE.program_folders)], CLAUDE.program
    )
    with ThreadPoolExecutor(max_workers=4) as pool:
        words = pool.map(lambda path: reported_version(path, search), programs)
        return {
            str(path): word if display.parse_version(word) else "" for path, word in zip(programs, words, strict=True)
        }


def programs_in(folders: Iterable[str], name: str) -> list[Path]:
    """Every program of this name in these directories, each real file once, in their order."""
    programs: dict[str, Path] = {}
    for path in (Path(folder) / name for folder in folders if folder.startswith("/")):
        if path.is_file() and os.access(path, os.X_OK):
            programs.setdefault(os.path.realpath(path), path)
    return list(programs.values())


def reported_version(program: Path, search: str) -> str:
    """The first word that `claude --version` prints; "" where it fails or hangs.

    It runs in an environment with nothing of the user's but PATH, where a script of the client's finds its node.
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="csmd-ask-", ignore_cleanup_errors=True) as empty:
        environment = {
            "PATH": search,
            **dict.fromkeys(("HOME", CLAUDE.variable, "TMPDIR"), empty),
            **dict.fromkeys(("DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1"),
        }
        try:
            done = subprocess.run(
                [str(program), "--version"], cwd=empty, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=PATIENCE_S, check=True, start_new_session=True,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError):
            return ""
    return next(iter(done.stdout.decode("utf-8", "replace").split()), "")


# --- installing

#: The rare module first: a new one serves the old hook until that is replaced, too.
HOOK_FILES = ("csmd_spool.py", HOOK_SCRIPT, "csmd_line.py")
HOOK_SCRIPTS = ("post-turn", "pre-compact", "session-start", "prompt", "session-end", "subagent-stop")
LAUNCHERS = tuple(files.launcher for files in FILES.values() if files.launcher)
FURTHER = tuple(dict.fromkeys(name for files in FILES.values() for name in files.extra_scripts))
#: Name in csmd's home -> the shipped file that it copies: the launcher's own name tells whose events it brings.
COPIED = {name: name for name in (*HOOK_FILES, *HOOK_SCRIPTS, *FURTHER, SERVER_SCRIPT)} | dict.fromkeys(
    LAUNCHERS, "assistant"
)
README = (
    "This directory belongs to csmd, the cross-session memory daemon.\n"
    "`csmd status` tells what is in it; `csmd uninstall` takes csmd's hooks out of your assistant.\n"
)


def shipped_folder(folder: str = "hooks") -> Path:
    """Where the files that `install` copies are: inside the wheel, or beside the package in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_share" / folder
    return inside if inside.is_dir() else package.parent / folder


def entries_for(config: Config, newer: Sequence[str] = ()) -> Registration:
    """The values that csmd's entries are made from, with these newer events."""
    return Registration(
        home=config.paths.home,
        interpreter=base_interpreter(),
        events=(*CLAUDE.stable_events, *newer),
        status_line=config.settings.status_line,
    )


def hooks_to_paste(home: Path) -> Any:
    """What to paste into Claude Code's settings by hand: an object whose one key is `hooks`."""
    wanted = Registration(home=home, interpreter=base_interpreter(), events=CLAUDE.stable_events)
    return wire.loads(CLAUDE.kinds[0].merge(CLAUDE.kinds[0].begin(""), wanted, ""))


def plan_install(config: Config, newer: Sequence[str] = (), hosts: Collection[str] = tuple(FILES)) -> list[Change]:
    """What installing with these newer events would change in the files of these assistants, each for itself."""
    wanted = entries_for(config, newer)
    files: dict[str, tuple[Path, list[SettingsEntry]]] = {}
    places = [*((CLAUDE.host, folder) for folder in config.assistant_dirs), *config.host_dirs]
    for host, folder in (place for place in places if place[0] in hosts):
        here: dict[Path, list[SettingsEntry]] = {}
        for kind in FILES[host].kinds:
            here.setdefault(kind.file(folder), []).append(kind)
        for path, kinds in here.items():  # two directories may share a file by a link
            files.setdefault(os.path.realpath(path), (path, kinds))
    return [plan_merge(path, kinds, wanted) for path, kinds in files.values()]


#: The indentation of further files of a directory in a list.
INDENT = " " * 10


def describe_own_files(paths: Paths) -> list[str]:
    """What installing writes in csmd's own directories, for people."""
    return [
        f"{paths.home}/ (0700)",
        f"  hook/   {', '.join(HOOK_FILES)}, interpreter, {SERVER_SCRIPT}, python,",
        *textwrap.wrap(
            ", ".join((*HOOK_SCRIPTS, *LAUNCHERS, *FURTHER)), 78, initial_indent=INDENT, subsequent_indent=INDENT
        ),
        "  install.json, README.txt, csmd.db, endpoint, backups/, models/,",
        "  memory/, quarantine/, run/, sessions/, spool/",
        f"{paths.log_dir}/csmd.log",
    ]


def install(config: Config, choice: Choice, hosts: Collection[str] = tuple(FILES)) -> list[Change]:
    """Copies the hook and writes the entries; a file that cannot be written does not stop the others.

    Raises one error where no file that should hold hooks can be written; then nothing was written.
    """
    planned, wanted = plan_install(config, choice.events, hosts), entries_for(config, choice.events)
    hooked = [change for change in planned if change.kinds[0].name in HOOK_KINDS]
    troubles = [change.trouble for change in hooked if change.trouble]
    if troubles and len(troubles) == len(hooked):
        raise combined_error(troubles)
    paths = config.paths
    put_hooks_in_place(paths)
    readme = paths.home / "README.txt"
    if is_our_readme(readme) or not os.path.lexists(readme):
        write_atomic(readme, README.encode())
    with install_lock(paths):
        # Recorded before it is written: the daemon watches for older clients from then on.
        folders = config.assistant_dirs if CLAUDE.host in hosts else assistant_dirs(paths)
        further: dict[str, list[str]] = {}
        for host, folder in config.host_dirs:
            further.setdefault(host, []).append(str(folder))
        _record_choice(paths, choice, assistant_dirs=list(map(str, folders)), hosts=further)
        return [carry_out(paths, partial(plan_merge, change.path, change.kinds, wanted)) for change in planned]


def is_our_readme(path: Path) -> bool:
    """Whether a file is the README that this or another version of csmd wrote."""
    begin = README.partition(",")[0].encode()
    try:
        return stat.S_ISREG(path.lstat().st_mode) and path.read_bytes().startswith(begin)
    except OSError:
        return False


def withdraw_events(paths: Paths, choice: Choice) -> tuple[list[str], list[Change]]:
    """Takes out the newer events that are registered and not chosen: (which, what became of each file)."""
    with install_lock(paths):
        record = load_record(paths)
        gone = [event for event in record["events"] if event not in choice.events]
        if not gone:
            return [], []
        hooked = [Path(key) for key, entry in record["settings"].items() if "hooks" in entry["kinds"]]
        outcomes = [carry_out(paths, partial(plan_withdrawal, paths, path, gone)) for path in hooked]
        if not any(change.trouble for change in outcomes):
            left = tuple(event for event in record["events"] if event in choice.events)
            _record_choice(paths, Choice(events=left, kept_out_by=choice.kept_out_by))
        return gone, outcomes


def recorded_choice(paths: Paths) -> Choice:
    """The newer events that are registered, and why no more."""
    record = load_record(paths)
    return Choice(events=tuple(record["events"]), kept_out_by=str(record["kept_out_by"]))


def _record_choice(paths: Paths, choice: Choice, **more: Any) -> None:
    needs = oldest_version_for(choice.events)
    values = {"events": list(choice.events), "needs": needs, "kept_out_by": choice.kept_out_by}
    save_record(paths, {**load_record(paths), **values, **more})


def put_hooks_in_place(paths: Paths) -> None:
    """Makes csmd's directories and copies the hooks: from then on what they report waits in the spool."""
    for folder in (paths.home, paths.hook_dir, paths.run_dir, paths.spool):
        make_private(folder)
    copy_hooks(paths)


def copy_hooks(paths: Paths) -> None:
    """Copies the hook scripts, each atomically: a running hook sees the old or the new one."""
    import py_compile

    source = shipped_folder()
    for name, shipped in COPIED.items():
        mode = 0o600 if name.endswith((".py", ".js")) else 0o700
        write_atomic(paths.hook_dir / name, (source / shipped).read_bytes(), mode=mode)
    write_atomic(paths.hook_dir / "interpreter", base_interpreter().encode() + b"\n")
    write_atomic(paths.hook_dir / "python", config.own_interpreter().encode() + b"\n")
    # The rare module is imported: compiled here, its first use costs no compiling.
    make_private(paths.hook_dir / "__pycache__")
    py_compile.compile(str(paths.hook_dir / "csmd_spool.py"), quiet=2)


def is_shipped_copy(path: Path) -> bool:
    """Whether an installed hook file is the one that this version ships."""
    return path.is_file() and path.read_bytes() == (shipped_folder() / COPIED[path.name]).read_bytes()


def find_problems(paths: Paths) -> list[str]:
    """Why the installed hooks or the server cannot run, one sentence for each reason."""
    problems = []
    for name, whose in (("interpreter", "hooks: their"), ("python", "memory server: its")):
        file = paths.hook_dir / name
        interpreter = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
        if interpreter and not Path(interpreter).exists():
            problems.append(f"{whose} Python is gone ({interpreter}); `csmd install` finds another")
    for key, entry in load_record(paths)["settings"].items():
        with contextlib.suppress(CsmdError):  # `csmd doctor` says more of a file that cannot be read
            data = foreign_files.read(Path(key)) or b""
            kinds = [kind for kind in KINDS if kind.name in HOOK_KINDS and kind.name in entry["kinds"]]
            if kinds and without_entries(data, kinds, paths.home, key) == data:
                problems.append(f"hooks: none of csmd's is in {key}; `csmd install` puts them back")
    return problems


def configuration(more: Sequence[Path] = ()) -> Config:
    """The configuration in force, with the directories that earlier installs wrote to and `more`."""
    paths = config.default_paths()
    return config.load(paths=paths, extra_dirs=(*assistant_dirs(paths), *more), host_dirs=host_dirs(paths))


# --- the memory server of other assistants


def install_server(config: Config, host: str, arguments: Sequence[str]) -> Change:
    """Writes the memory server's entry into an assistant's settings, and puts the script in place that it starts."""
    kind, other = SERVER_KINDS[host], server_entries.HOSTS.get(host)
    path = kind.file(config.assistant_dirs[0])
    if other and not (path.parent if other.may_create else path).exists():
        hint = f"`csmd mcp --print-config {host}` shows what to paste; or open {other.name} once, and try again"
        raise CsmdError(f"{other.name} has no {path} yet", hint=hint)
    wanted = replace(entries_for(config), server_arguments=tuple(arguments))
    put_hooks_in_place(config.paths)
    with install_lock(config.paths):
        return carry_out(config.paths, partial(plan_merge, path, [kind], wanted))


def remove_server(config: Config, host: str) -> Change:
    """Takes the memory server's entry out of an assistant's settings again; CsmdError where csmd put none there."""
    kind = SERVER_KINDS[host]
    path = kind.file(config.assistant_dirs[0])
    with install_lock(config.paths):
        if str(path) not in load_record(config.paths)["settings"] or kind not in recorded_kinds(config.paths, path):
            hint = f"`csmd mcp --print-config {host}` shows what it would"
            raise CsmdError(f"csmd put nothing into {path}", hint=hint)
        return carry_out(config.paths, partial(plan_one_return, config.paths, path, kind))


def describe_server(config: Config, host: str, arguments: Sequence[str]) -> tuple[Path, str]:
    """The file of an assistant's MCP servers, and what to paste into it."""
    kind, home = SERVER_KINDS[host], config.paths.home
    path = kind.file(config.assistant_dirs[0])
    if host in server_entries.HOSTS:
        return path, server_entries.render_entry(server_entries.HOSTS[host], home, arguments)
    wanted = replace(entries_for(config), server_arguments=tuple(arguments))
    return path, f"{wire.pretty(wire.loads(kind.merge(kind.begin(''), wanted, str(path))))}\n"


# --- leaving


def uninstall(paths: Paths) -> list[Change]:
    """Removes csmd's entries from every recorded file; one that cannot be written stays in the record."""
    with install_lock(paths):
        # From the last to the first: a directory was made for the first file in it.
        files = map(Path, reversed(load_record(paths)["settings"]))
        outcomes = [carry_out(paths, partial(plan_return, paths, path)) for path in files]
        record = load_record(paths)
        if not record["settings"] and not record["service"]:  # service.remove needs it
            paths.install_record.unlink(missing_ok=True)
        remove_hooks(paths)
    return outcomes


def remove_hooks(paths: Paths) -> None:
    """Removes the hook's scripts, their directory when nothing else is in it, and the note of what one missed."""
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
    "hook scripts": (
        *(f"hook/{name}" for name in (*COPIED, "interpreter", "python")), "hook/__pycache__/csmd_*.pyc",
    ),
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


#: The files that a purge removes: what they are for people -> file -> its size in bytes.
Purge = dict[str, dict[Path, int]]


def plan_purge(paths: Paths) -> Purge:
    """The files that a purge would remove; kinds without files are left out."""
    rows = [
        *((what, paths.home, globs) for what, globs in HOME_FILES.items()),
        *(("embedding models", mark.parent, ("**/*",)) for mark in paths.models.glob(f"*/{MODEL_MARK}")),
        ("log", paths.log_dir, ("csmd.log", "csmd.log.[0-9]", "crash.txt", "report.txt")),
        ("configuration", paths.config_file.parent, (paths.config_file.name,)),
        ("state", paths.home, UNFINISHED),
    ]
    if folders := _temporary_folders(paths):
        rows += [
            ("events that wait", folders[0], ("*.event", ".tmp-*")),
            ("state", folders[1], (f"{mark_of(paths.home)}.sock",)),
        ]
    going: Purge = {what: {} for what in HOME_FILES}
    counted: set[Path] = set()
    for what, root, globs in rows:
        new = {path: size for path, size in _files(root, globs) if path not in counted}
        counted |= new.keys()
        going[what] |= new
    return {what: files for what, files in going.items() if files}


def purge(paths: Paths, going: Purge) -> tuple[list[Path], list[str]]:
    """Removes these files, then empty directories; (files that are not csmd's, what could not be removed and why)."""
    refused: dict[Path, str] = {}
    for path in (path for files in going.values() for path in files):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            refused[path] = f"{path}: {error.strerror or error}"
    own = [paths.home, paths.log_dir, paths.config_file.parent]
    below = sorted(_directories(paths.home), key=lambda folder: -len(folder.parts))
    around = [paths.log_dir.parent] if paths.log_dir.parent.name == "csmd" else []  # of <state>/csmd/log
    for folder in (*below, *own, *_temporary_folders(paths), *around):
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()
    foreign: list[Path] = []
    for root in dict.fromkeys(own):
        with contextlib.suppress(OSError):
            foreign += [
                path for path in sorted(root.iterdir()) if paths.home not in root.parents and path not in refused
            ]
    return foreign, list(refused.values())


def virtual_environments(paths: Paths) -> list[Path]:
    """The virtual environments in the home; a purge leaves them."""
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
    """Raises CsmdError when the home is a link or belongs to another user."""
    if os.path.lexists(paths.home) and not _is_own(paths.home):
        raise CsmdError(f"{paths.home} is not a directory of yours", hint="remove it by hand if it is csmd's")


def _files(root: Path, globs: Sequence[str]) -> Iterator[tuple[Path, int]]:
    """Files and links below a directory with these names and their sizes; nothing behind a link."""
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


def _directories(root: Path) -> Iterator[Path]:
    """The directories below the home that HOME_FILES names, with all below them."""
    named = {glob.partition("/")[0] for globs in HOME_FILES.values() for glob in globs if "/" in glob}
    for top in (top for name in named if _is_own(root) for top in root.glob(name) if not top.is_symlink()):
        yield from (Path(folder) for folder, _, _ in os.walk(top))


def _temporary_folders(paths: Paths) -> list[Path]:
    """Where hooks spool when the home takes no file, and the directory around it; [] unless that is the user's own."""
    around = Path(f"/tmp/csmd-{os.getuid()}")  # noqa: S108 - checked before it is looked into
    return [around / config.spool_places(paths.home)[-1].name, around] if _is_own(around) else []
