"""Installing and leaving: what is written outside csmd's own directories is listed, recorded and taken back.

Outside its own directories csmd writes its entries in the assistant's files (entries.py), and nothing else. The
record in `install.json` holds what `uninstall` needs to restore them byte for byte, and no more.
"""

from __future__ import annotations

import os
import py_compile
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from csmd.cli import edited, entries, record
from csmd.cli.disk import make_private, write_whole
from csmd.cli.entries import Kind, Ours
from csmd.config import Config, Paths, base_interpreter, default_paths, load
from csmd.errors import CsmdError

HOOK_FILES = ("csmd_hook.py", "csmd_spool.py")
HOOK_SCRIPTS = ("post-turn", "pre-compact", "session-start", "prompt", "session-end")
README = (
    "This directory belongs to csmd, the cross-session memory daemon.\n"
    "`csmd status` tells what is in it; `csmd uninstall` takes csmd's hooks out of your assistant.\n"
)


#: How often a file is planned anew that somebody else writes all the time.
TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file of the assistant's before and after; with `trouble` it stays as it is."""

    path: Path
    kinds: tuple[Kind, ...]
    before: bytes | None = None
    after: bytes | None = None
    trouble: CsmdError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file: changed, as it should be, or left alone because of `trouble`."""

    path: Path
    changed: bool = False
    trouble: CsmdError | None = None


def share() -> Path:
    """Where the files that `install` copies are: inside the wheel, or beside the package in a source tree."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_share" / "hooks"
    return inside if inside.is_dir() else package.parent / "hooks"


def ours(config: Config) -> Ours:
    """What csmd's entries are made of, by this configuration."""
    return Ours(home=config.paths.home, interpreter=base_interpreter(), python=sys.executable, chosen=config.settings)


def plan(config: Config, wanted: Ours) -> list[Change]:
    """What installing would change in the assistant's files, each for itself; nothing is written."""
    changes: list[Change] = []
    seen: set[str] = set()
    for folder in config.assistant_dirs:
        for path, kinds in entries.files(folder).items():
            real = os.path.realpath(path)
            if real not in seen:  # two directories may share a file by a link
                seen.add(real)
                changes.append(_planned(path, kinds, wanted))
    return changes


def _planned(path: Path, kinds: Sequence[Kind], wanted: Ours) -> Change:
    try:
        before = edited.read(path)
        after = entries.merged(before, kinds, wanted, str(path))
        if after != before:
            edited.check(path)
    except CsmdError as error:
        return Change(path=path, kinds=tuple(kinds), trouble=error)
    return Change(path=path, kinds=tuple(kinds), before=before, after=after)


def own_files(paths: Paths) -> list[str]:
    """What installing writes in csmd's own directories, for people."""
    return [
        f"{paths.home}/ (0700)",
        f"  hook/   {', '.join((*HOOK_FILES, *HOOK_SCRIPTS))}, interpreter",
        "  install.json, README.txt, csmd.db, endpoint, run/, spool/, models/, quarantine/",
        f"{paths.log_dir}/csmd.log",
    ]


def install(config: Config, changes: list[Change], wanted: Ours) -> list[Outcome]:
    """Copies the hook and puts the entries in; a file in trouble keeps no other from being served.

    Raises the first trouble where every file is in trouble; then nothing was written.
    """
    troubles = [change.trouble for change in changes if change.trouble]
    if troubles and len(troubles) == len(changes):
        raise together(troubles)
    paths = config.paths
    for folder in (paths.home, paths.hook_dir, paths.run_dir, paths.spool):
        make_private(folder)
    write_whole(paths.home / "README.txt", README.encode())
    copy_hooks(paths)
    known = record.load(paths)
    record.save(paths, {**known, "assistant_dirs": [str(folder) for folder in config.assistant_dirs]})

    def put_in(change: Change) -> None:
        if change.after is None or change.after == change.before:
            return
        previous = record.load(paths)["settings"].get(str(change.path))
        kept = edited.entry(change.before, change.after, _remover(change, paths.home), previous)
        kept["kinds"] = [kind.name for kind in change.kinds]
        with record.noted(paths, change.path, kept, made=not change.path.parent.exists()):
            edited.apply(change.path, change.before, change.after)

    return [_written(change.path, partial(_planned, change.path, change.kinds, wanted), put_in) for change in changes]


def _written(path: Path, plan: Callable[[], Change], write: Callable[[Change], None]) -> Outcome:
    """Plans and writes one file; anew where somebody else wrote it meanwhile."""
    trouble: CsmdError | None = None
    for _ in range(TRIES):
        change = plan()
        if change.trouble is not None:
            return Outcome(path=path, trouble=change.trouble)
        try:
            write(change)
        except edited.ChangedMeanwhile as error:
            trouble = error
        except CsmdError as error:
            return Outcome(path=path, trouble=error)
        else:
            return Outcome(path=path, changed=change.before != change.after)
    return Outcome(path=path, trouble=trouble)


def _remover(change: Change, home: Path) -> edited.Remove:
    return lambda data: entries.removed(data, change.kinds, home, str(change.path))


def together(troubles: Sequence[CsmdError]) -> CsmdError:
    """One error for several."""
    first = troubles[0]
    return type(first)("; ".join(one.what for one in troubles), hint=first.hint) if len(troubles) > 1 else first


def copy_hooks(paths: Paths) -> None:
    """Copies the hook scripts whole; a hook that runs meanwhile sees the old or the new one."""
    source = share()
    for name in (*HOOK_FILES, *HOOK_SCRIPTS):
        write_whole(paths.hook_dir / name, (source / name).read_bytes(), mode=0o600 if name.endswith(".py") else 0o700)
    write_whole(paths.hook_dir / "interpreter", base_interpreter().encode() + b"\n")
    # The rare module is imported: compiled here, its first use costs no compiling.
    make_private(paths.hook_dir / "__pycache__")
    py_compile.compile(str(paths.hook_dir / "csmd_spool.py"), quiet=2)


def trouble(paths: Paths) -> list[str]:
    """What keeps the installed hooks from running, in sentences; empty when nothing, or when none are installed."""
    noted = paths.hook_dir / "interpreter"
    if not noted.is_file():
        return []
    interpreter = noted.read_text(encoding="utf-8", errors="replace").strip()
    if Path(interpreter).exists():
        return []
    return [f"hooks: their Python is gone ({interpreter}); `csmd install` finds another"]


def uninstall(paths: Paths) -> list[Outcome]:
    """Takes csmd's entries out of every file that `install` recorded; one in trouble keeps its place in the record."""
    done: list[Outcome] = []
    for change in plan_removal(paths):
        done.append(_written(change.path, partial(_planned_removal, paths, change.path), _take_out))
        known = record.load(paths)
        if done[-1].trouble is None:
            if known["folders"].get(str(change.path)):
                _remove_empty(change.path.parent)
            del known["settings"][str(change.path)]
            record.save(paths, known)
    if not record.load(paths)["settings"]:
        paths.install_record.unlink(missing_ok=True)
    if paths.hook_dir.is_dir():
        shutil.rmtree(paths.hook_dir)
    return done


def _take_out(change: Change) -> None:
    edited.apply(change.path, change.before, change.after)


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def plan_removal(paths: Paths) -> list[Change]:
    """What uninstalling would change in the assistant's files; nothing is written."""
    return [_planned_removal(paths, Path(key)) for key in record.load(paths)["settings"]]


def _planned_removal(paths: Paths, path: Path) -> Change:
    kept = record.load(paths)["settings"][str(path)]
    change = Change(path=path, kinds=tuple(entries.named(kept["kinds"])))
    try:
        before = edited.read(path)
        after = edited.removal(before, kept, _remover(change, paths.home))
        if after != before:
            edited.check(path)
    except CsmdError as error:
        return replace(change, trouble=error)
    return replace(change, before=before, after=after)


def configuration(more: Sequence[Path] = ()) -> Config:
    """The configuration in force, with the directories that earlier installs wrote to and `more`."""
    paths = default_paths()
    return load(paths=paths, extra_dirs=(*record.assistant_dirs(paths), *more))
