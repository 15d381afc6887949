"""Reads the instruction files of a directory from the disk, and keeps what they say in the store, redacted.

Nothing here waits for a pipe, follows a loop, or writes where it reads. It may wait for a slow disk: it runs on
the steward or on a reader, never on the socket's thread or the writer's.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from csmd import text, wire
from csmd.capture import instructions, memdir, project, stage_place
from csmd.capture.instructions import Disk, Entry, Instruction, Place
from csmd.capture.redact import redact
from csmd.errors import BadInput
from csmd.store import files, projects, tombstones
from csmd.store import projects as rows_of
from csmd.store.core import Store
from csmd.store.purged import clean

#: The host's own settings, the most binding first; the names stand below a project and a configuration directory.
SETTINGS_BYTES = 1024 * 1024
STATE_BYTES = 16 * 1024 * 1024
MOST_NAMES = 5000
MANAGED = {"darwin": "/Library/Application Support/ClaudeCode"}
MANAGED_ELSEWHERE = "/etc/claude-code"


#: (path, modified, size, inode) of files and directories.
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whose files are read: home, the assistant's configuration directories, where an organisation's files lie."""

    home: str
    configs: tuple[str, ...]
    managed: str


def disk() -> Disk:
    """The real disk, never waiting for the other end of a pipe."""
    return Disk(read=_read, names=_names, real=os.path.realpath)


def _read(path: str) -> bytes | None:
    try:
        with files.open_regular(Path(path)) as file:
            size = os.fstat(file.fileno()).st_size
            return file.read(size + 1)[: instructions.MAX_BYTES] if size <= instructions.MAX_BYTES else None
    except (OSError, ValueError):
        return None


def _names(path: str) -> list[Entry]:
    found: list[Entry] = []
    try:
        with os.scandir(path) as listing:
            for entry in listing:
                if len(found) >= MOST_NAMES:
                    break
                try:
                    found.append(Entry(entry.name, entry.is_dir()))
                except OSError:
                    continue  # a link that leads round in a circle
    except (OSError, ValueError):
        return []
    return found


def place_of(directory: str, user: User) -> Place:
    """What bears on a session that starts in `directory`."""
    start = os.path.realpath(directory)
    chosen = _settings(start, user)
    excludes = [one for each in chosen for one in _list(each.get("claudeMdExcludes")) if isinstance(one, str)]
    worktree, main = _work_trees(start)
    return Place(
        start=start,
        home=user.home,
        configs=user.configs,
        managed=user.managed,
        memories=_memories(start, user, chosen),
        excludes=tuple(excludes[:1000]),
        worktree=worktree,
        main=main,
        outside=any(_approved(config, user, {start, main}) for config in user.configs),
    )


def _memories(start: str, user: User, chosen: list[dict[str, Any]]) -> tuple[str, ...]:
    """The assistant's memory directories for a project: every work tree's are those of the main one."""
    if any(each.get("autoMemoryEnabled") is False for each in chosen):
        return ()
    for each in chosen:
        named = each.get("autoMemoryDirectory")
        if isinstance(named, str) and named.startswith(("/", "~/")):
            return (posixpath.normpath(posixpath.join(user.home, named[2:]) if named[0] == "~" else named),)
    main = os.path.realpath(stage_place.identify(start).root)
    return tuple(f"{config}/projects/{memdir.folder_name(main)}/memory" for config in user.configs)


def _settings(start: str, user: User) -> list[dict[str, Any]]:
    paths = [
        f"{user.managed}/managed-settings.json",
        f"{start}/.claude/settings.local.json",
        f"{start}/.claude/settings.json",
        *(f"{config}/settings.json" for config in user.configs),
    ]
    return [_json(path, SETTINGS_BYTES) for path in paths]


def _json(path: str, limit: int) -> dict[str, Any]:
    """The JSON object in a file of the host's; {} for none that can be read."""
    content = files.read_small(path, limit)
    try:
        value = wire.loads(content.encode("utf-8", "replace")) if content else {}
    except BadInput:
        return {}
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _approved(config: str, user: User, roots: set[str]) -> bool:
    for path in (f"{config}/.claude.json", f"{user.home}/.claude.json"):
        known = _json(path, STATE_BYTES).get("projects")
        entries = [known.get(root) for root in roots] if isinstance(known, dict) else []
        if any(
            isinstance(entry, dict) and entry.get("hasClaudeMdExternalIncludesApproved") is True for entry in entries
        ):
            return True
    return False


def _work_trees(start: str) -> tuple[str, str]:
    """(the work tree around a directory when it is a linked one, the main one), each "" when there is none."""
    for folder in (Path(start), *Path(start).parents)[: project.MAX_DEPTH]:
        marker = files.read_small(str(folder / ".git"))
        if marker is None:
            continue
        main = os.path.realpath(stage_place.identify(str(folder)).root)
        return (str(folder) if marker.startswith("gitdir:") else ""), main
    return "", ""


def load(directory: str, user: User) -> list[Instruction]:
    """What the host loads for a session that starts in `directory`, as it stands on the disk."""
    return instructions.loaded(place_of(directory, user), disk())


def stamp(paths: Iterable[str]) -> Stamp:
    """What tells whether any of these files and directories has changed, without reading one."""
    found: list[tuple[str, int, int, int]] = []
    for path in sorted(paths):
        try:
            info = os.stat(path)  # noqa: PTH116
            found.append((path, info.st_mtime_ns, info.st_size, info.st_ino))
        except (OSError, ValueError):
            found.append((path, 0, 0, 0))
    return tuple(found)


def refresh(store: Store, seq: int, root: str, user: User, *, now: str) -> tuple[int, set[str], set[str]]:
    """Reads a project's instructions and stores what changed.

    Gives how many files did, the directories to watch, and every path whose stamp tells that it is time again.
    """
    place = place_of(root, user)
    found = instructions.loaded(place, disk())
    purged = store.read(lambda reading: tombstones.marks(reading, store.hash_key))
    rows = [
        rows_of.Instruction(
            path=clean(redact(wire.clean(one.path), Counter()), purged)[0],
            kind=one.kind,
            root=clean(redact(wire.clean(one.root), Counter()), purged)[0],
            text=(said := clean(redact(wire.clean(text.strip_fenced(one.content)), Counter()), purged)[0]),
            text_hash=text.keyed_hash(said, store.hash_key),
        )
        for one in found
    ]
    rows = list({one.path: one for one in rows}.values())
    marks = {one.path for one in found} | {f"{folder}/settings.json" for folder in user.configs}
    marks |= {f"{place.start}/.claude/{name}" for name in ("settings.json", "settings.local.json")}
    watched = {posixpath.dirname(one.path) for one in found} | _places_to_watch(place)
    known = store.read(lambda reading: rows_of.instruction_hashes(reading, seq))
    if known == [(one.path, one.text_hash) for one in rows]:
        return 0, watched, marks | watched
    return (
        store.write(lambda writing: rows_of.replace_instructions(writing, seq, rows, now=now)),
        watched,
        marks | watched,
    )


def _places_to_watch(place: Place) -> set[str]:
    return {
        place.start,
        f"{place.start}/.claude",
        f"{place.start}/.claude/rules",
        *place.configs,
        *(f"{config}/rules" for config in place.configs),
        *place.memories,
    }


def project_of(store: Store, directory: str) -> tuple[int, str] | None:
    """(row key, root) of the project that a directory was identified as; None for one that had no turn yet.

    Not of what that was merged into: each of two merged directories has instruction files of its own.
    """
    place = stage_place.identify(directory)
    seq = store.read(lambda rows: projects.identified(rows, place))
    return None if seq is None else (seq, place.root)


def memory_folder(directory: str, user: User) -> Path:
    """The assistant's memory directory for a project: the first that is there, else where it would be."""
    places = [Path(folder) for folder in place_of(directory, user).memories]
    if not places:
        raise BadInput("the assistant's own memory is switched off here", hint="see autoMemoryEnabled in its settings")
    return next((folder for folder in places if folder.is_dir()), places[0])


def scan(folder: Path) -> list[memdir.Memo]:
    """The files of a memory directory but its index, the newest first, at most MOST_FILES."""
    found: list[tuple[float, str, int]] = []
    for entry in _names(str(folder)):
        if entry.folder or not entry.name.endswith(".md") or entry.name == memdir.INDEX:
            continue
        try:
            path = _inside(folder, entry.name)
            info = path.stat()
            found.append((info.st_mtime, entry.name, info.st_size))
        except (OSError, BadInput):
            continue
    memos = []
    for at, name, size in sorted(found, key=lambda row: (-row[0], row[1]))[: memdir.MOST_FILES]:
        data = _beginning(folder / name)
        if data is not None:
            memos.append(memdir.memo(name, data, modified=_moment(at), size=size))
    return memos


def load_memo(folder: Path, name: str) -> str:
    """The text of one file of a memory directory without its head; BadInput for one outside it."""
    path = _inside(folder, name)
    data = _beginning(path, instructions.MAX_BYTES)
    if data is None:
        raise BadInput(f"{name}: there is no such file in {folder}", hint="`csmd memdir scan` lists them")
    return memdir.body(data)


def _inside(folder: Path, name: str) -> Path:
    """The file of that name; no `..`, no link and no absolute path leads out of the folder."""
    try:
        path = Path(os.path.realpath(folder / name))
    except ValueError:
        raise BadInput(f"{name!r} is no file name") from None
    if not path.is_relative_to(os.path.realpath(folder)):
        raise BadInput(f"{name} is not inside {folder}", hint="`csmd memdir scan` lists what is")
    return path


def _beginning(path: Path, limit: int = memdir.READ_BYTES) -> bytes | None:
    try:
        with files.open_regular(path) as file:
            return file.read(limit)
    except (OSError, ValueError):
        return None


def _moment(at: float) -> str:
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
