"""Installing and leaving: what is written outside csmd's own directories is listed, recorded and taken back.

Outside its own directories csmd writes its entries in the assistant's files (entries.py), the service unit (placing.py),
and nothing else. The
record in `install.json` holds what `uninstall` needs to restore them byte for byte, and no more.
"""

from __future__ import annotations

import os
import py_compile
import stat
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from csmd.cli import changes, clients, edited, entries, record, settings
from csmd.cli.changes import Change, Outcome
from csmd.cli.clients import Choice
from csmd.cli.disk import make_private, write_whole
from csmd.cli.entries import Ours
from csmd.config import Config, base_interpreter, default_paths, load, own_interpreter
from csmd.errors import CsmdError
from csmd.paths import Paths

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
        events=(*settings.EVENTS, *newer),
    )


def plan(config: Config, wanted: Ours) -> list[Change]:
    """What installing would change in the assistant's files, each for itself; nothing is written."""
    made: list[Change] = []
    seen: set[str] = set()
    for folder in config.assistant_dirs:
        for path, kinds in entries.files(folder).items():
            real = os.path.realpath(path)
            if real not in seen:  # two directories may share a file by a link
                seen.add(real)
                made.append(changes.merging(path, kinds, wanted))
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
        raise changes.together(troubles)
    paths = config.paths
    for folder in (paths.home, paths.hook_dir, paths.run_dir, paths.spool):
        make_private(folder)
    readme = paths.home / "README.txt"
    if is_own_readme(readme) or not os.path.lexists(readme):
        write_whole(readme, README.encode())
    copy_hooks(paths)
    newer = [event for event in wanted.events if event in settings.NEWER]
    with record.alone(paths):
        # What a client must know is noted before it is written: the daemon looks after it from then on.
        _note_events(paths, newer, kept_out_by, assistant_dirs=[str(folder) for folder in config.assistant_dirs])
        return [
            changes.written(
                one.path, partial(changes.merging, one.path, one.kinds, wanted), partial(changes.put_in, paths)
            )
            for one in planned
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
    with record.alone(paths):
        known = record.load(paths)
        gone = [event for event in known["events"] if event not in choice.events]
        if not gone:
            return [], []
        done = [
            changes.written(path, partial(changes.withdrawing, paths, path, gone), partial(changes.put_in, paths))
            for path in map(Path, known["settings"])
            if any(kind.name == "hooks" for kind in changes.recorded_kinds(paths, path))
        ]
        if not any(one.trouble for one in done):
            _note_events(paths, [event for event in known["events"] if event not in gone], choice.kept_out_by)
        return gone, done


def noted_choice(paths: Paths) -> Choice:
    """The newer events that are registered, and why no more."""
    known = record.load(paths)
    return Choice(events=tuple(known["events"]), kept_out_by=str(known["kept_out_by"]))


def _note_events(paths: Paths, newer: list[str], kept_out_by: str, **more: list[str]) -> None:
    known = record.load(paths)
    noted = {"events": newer, "needs": clients.oldest_for(newer), "kept_out_by": kept_out_by}
    record.save(paths, {**known, **noted, **more})


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
    for key, kept in record.load(paths)["settings"].items():
        if "hooks" not in kept["kinds"]:
            continue
        try:
            there = edited.read(Path(key))
            gone = there is None or settings.plan_removal(there, paths.home, key) == there
        except CsmdError:
            continue  # `csmd doctor` says more of a file that cannot be read
        if gone:
            found.append(f"hooks: none of csmd's is in {key}; `csmd install` puts them back")
    return found


def uninstall(paths: Paths) -> list[Outcome]:
    """Takes csmd's entries out of every file that `install` recorded; one in trouble keeps its place in the record."""
    with record.alone(paths):
        done = [
            changes.written(path, partial(changes.removing, paths, path), partial(changes.take_out, paths))
            for path in map(Path, reversed(record.load(paths)["settings"]))  # a directory was made for the first in it
        ]
        left = record.load(paths)
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
    return [changes.removing(paths, Path(key)) for key in record.load(paths)["settings"]]


def configuration(more: Sequence[Path] = ()) -> Config:
    """The configuration in force, with the directories that earlier installs wrote to and `more`."""
    paths = default_paths()
    return load(paths=paths, extra_dirs=(*record.assistant_dirs(paths), *more))
