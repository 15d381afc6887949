"""Reads the instruction files that assistants load for a project, and stores the changed ones."""

from __future__ import annotations

import fnmatch
import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from csmd import wire
from csmd.capture import project_identity
from csmd.capture.claude_instructions import (
    MAX_FILES,
    REAL_DISK,
    Disk,
    Instruction,
    Kind,
    User,
    find_place,
    load_instructions,
    split_file,
)
from csmd.hosts.adapter import InstructionNames
from csmd.hosts.adapters import ADAPTERS, CLAUDE
from csmd.privacy.fingerprints import remove_purged
from csmd.privacy.redaction import redact
from csmd.store import instruction_rows, projects, tombstones
from csmd.store.core import Store
from csmd.text import display, tokens
from csmd.text.markdown import JS_SPACES


def load_host_instructions(
    names: InstructionNames, folder: str, root: str, disk: Disk = REAL_DISK
) -> list[Instruction]:
    """Loads another assistant's instruction files for a session in `root`, in that assistant's order."""
    of_user = _load_choices(names.user, "User", folder, disk)
    return [*of_user, *_load_choices(names.project, "Project", root, disk)][:MAX_FILES]


def _load_choices(choices: Iterable[tuple[str, ...]], kind: Kind, folder: str, disk: Disk) -> Iterator[Instruction]:
    """Loads the files of the first name with text in each choice."""
    for names in choices:
        yield from next(filter(None, (_load_named(name, kind, folder, disk) for name in names)), [])


def _load_named(name: str, kind: Kind, folder: str, disk: Disk) -> list[Instruction]:
    """Returns the files of a name in a directory that have text."""
    paths = _matching_files(os.path.normpath(f"{folder}/{name}"), disk)
    texts = ((path, split_file(disk, path)[1].strip(JS_SPACES)) for path in paths)
    return [Instruction(path=path, kind=kind, content=text, root=folder) for path, text in texts if text]


def _matching_files(path: str, disk: Disk) -> list[str]:
    """Returns the files that a path means; its last part may be a pattern."""
    folder, _, name = path.rpartition("/")
    if "*" not in name:
        return [path]
    names = sorted(entry.name for entry in disk.entries(folder) if not entry.is_folder)
    return [f"{folder}/{entry}" for entry in names if fnmatch.fnmatchcase(entry, name)]


#: (path, modified, size, inode) of files and directories.
Stamp = tuple[tuple[str, int, int, int], ...]


def make_stamp(paths: Iterable[str]) -> Stamp:
    """Returns the times, sizes and inodes of these files and directories: they show a change without reading any."""
    stamps: list[tuple[str, int, int, int]] = []
    for path in sorted(paths):
        try:
            info = os.stat(path)  # noqa: PTH116
            stamps.append((path, info.st_mtime_ns, info.st_size, info.st_ino))
        except (OSError, ValueError):
            stamps.append((path, 0, 0, 0))
    return tuple(stamps)


def refresh_instructions(store: Store, seq: int, root: str, user: User, *, now: str) -> tuple[int, set[str], set[str]]:
    """Reads a project's instructions and stores the changed ones.

    Returns how many files changed, the directories to watch, and every path whose stamp shows a change.
    """
    place = find_place(root, user)
    by_host = {CLAUDE.host: load_instructions(place)}
    for host, folder in user.others:
        adapter = ADAPTERS.get(host)
        if adapter is not None and adapter.instructions is not None:
            by_host.setdefault(host, []).extend(load_host_instructions(adapter.instructions, folder, place.start))
    stored_rows = _merge_by_path(store, by_host)
    instructions = [file for files_of_host in by_host.values() for file in files_of_host]
    stamped_paths = {file.path for file in instructions} | {f"{folder}/settings.json" for folder in user.configs}
    stamped_paths |= {f"{place.start}/.claude/{name}" for name in ("settings.json", "settings.local.json")}
    watched = {posixpath.dirname(file.path) for file in instructions} | {*place.user.configs, *place.memories}
    watched |= {f"{place.start}{below}" for below in ("", "/.claude", "/.claude/rules")}
    watched |= {f"{config}/rules" for config in place.user.configs} | {folder for _, folder in user.others}
    changed, hashes = 0, [(row.path, row.text_hash, row.hosts) for row in stored_rows]
    if store.read(lambda reading: instruction_rows.list_instruction_hashes(reading, seq)) != hashes:
        changed = store.write(lambda writing: instruction_rows.replace_instructions(writing, seq, stored_rows, now=now))
    return changed, watched, stamped_paths | watched


def _merge_by_path(store: Store, by_host: Mapping[str, Sequence[Instruction]]) -> list[instruction_rows.Instruction]:
    """Returns the rows of the loaded files, without secrets and purged text.

    A file that several assistants load is one row.
    """
    purged = store.read(lambda reading: tombstones.purged_marks(reading, store.hash_key))

    def storable(text: str) -> str:
        return remove_purged(redact(wire.clean(text), Counter()), purged)[0]

    by_path: dict[str, instruction_rows.Instruction] = {}
    for host, files_of_host in by_host.items():
        for file in files_of_host:
            path = storable(file.path)
            if earlier := by_path.get(path):
                by_path[path] = earlier._replace(hosts=" ".join(dict.fromkeys((*earlier.hosts.split(), host))))
                continue
            text = storable(display.strip_fenced(file.content))
            text_hash = tokens.keyed_hash(text, store.hash_key)
            by_path[path] = instruction_rows.Instruction(path, file.kind, storable(file.root), text, text_hash, host)
    return list(by_path.values())


def find_project(store: Store, directory: str) -> tuple[int, str] | None:
    """Returns (row key, root) of the project of a directory; None if it has no turn yet.

    Ignores merges: each merged directory keeps its own instruction files.
    """
    project = project_identity.identify_directory(directory)
    seq = store.read(lambda rows: projects.find_identified_row(rows, project))
    return None if seq is None else (seq, project.root)
