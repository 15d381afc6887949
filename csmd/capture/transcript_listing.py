"""Lists the transcripts on the disk, and says which have grown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from csmd.paths import is_directory, is_file
from csmd.privacy.redaction import storable_path
from csmd.store.opencode_database import ListedSession, SessionDatabase

MILLISECOND_NS = 1_000_000
#: Directories of the assistant without transcripts.
SKIPPED_FOLDERS = ("memory", "tool-results")
#: Approximate size of a message in a database, for the progress of a backlog.
MESSAGE_BYTES = 4000


def pack_written_ns(end: int, messages: int) -> int:
    """Returns when a session was last written, in nanoseconds.

    The part below a millisecond is the number of its messages then.
    """
    return end * MILLISECOND_NS + min(messages, MILLISECOND_NS - 1)


@dataclass(frozen=True, slots=True)
class ListedTranscript:
    """A transcript in a listing; `end` is the position after its last line, -1 if that is its size."""

    path: str
    size: int
    mtime_ns: int
    end: int = -1


def list_transcripts(root: Path) -> Iterator[ListedTranscript]:
    """Yields every transcript in a projects directory, in no order; for a file, the file itself.

    A project's directory may be a link: it is followed if it leads outside of the directories that are walked, so that
    no file is listed twice and no circle is walked. This runs four times an hour over up to twenty thousand files, so
    each costs one system call.
    """
    if is_file(root):
        if (sessions := SessionDatabase.list_sessions(root)) is not None:
            yield from (_from_database(root, session) for session in sessions)
            return
        info = root.stat()
        yield ListedTranscript(str(root), info.st_size, info.st_mtime_ns)
        return
    folders, links, walked = [str(root)], list[str](), {os.path.realpath(root)}
    while folders or links:
        if not folders:
            folder = links.pop()
            real = os.path.realpath(folder)
            if any(os.path.commonpath((real, tree)) in (real, tree) for tree in walked):
                continue
            walked.add(real)
        else:
            folder = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name in SKIPPED_FOLDERS:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif folder == str(root) and entry.is_symlink() and is_directory(entry.path):
                        links.append(entry.path)
                    elif entry.name.endswith(".jsonl"):
                        with suppress(OSError):  # deleted since the directory was read
                            info = entry.stat()
                            yield ListedTranscript(entry.path, info.st_size, info.st_mtime_ns)
        except OSError:
            continue  # a directory that was deleted, or that csmd may not read
        links.sort(reverse=True)


def list_latest(root: Path, positions: Mapping[str, tuple[int, int]]) -> list[ListedTranscript]:
    """Returns the transcripts in a database that may just have grown; OSError if it cannot be read now."""
    with SessionDatabase.open(root) as database:
        latest = [_from_database(root, session) for session in database.latest_sessions()]
    return [file for file in latest if has_grown(file, positions)]


def _from_database(root: Path, session: ListedSession) -> ListedTranscript:
    written_ns = pack_written_ns(session.end, session.messages)
    return ListedTranscript(f"{root}/{session.id}", session.messages * MESSAGE_BYTES, written_ns, session.end)


def stat_transcript(path: str) -> ListedTranscript | None:
    """Returns a transcript as it is now; None if there is none."""
    database, _, session = path.rpartition("/")
    if is_file(database):
        with suppress(OSError), SessionDatabase.open(Path(database)) as open_database:
            row = open_database.listed(session)
            return _from_database(Path(database), row) if row else None
        return None
    try:
        info = os.stat(path)  # noqa: PTH116 - thousands of names, of which few become a Path
    except OSError:
        return None
    return ListedTranscript(path, info.st_size, info.st_mtime_ns)


def has_grown(file: ListedTranscript, positions: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a transcript may have unread lines, by its size and the time of its last change."""
    state = (file.size if file.end < 0 else file.end, file.mtime_ns)
    # Nearly every path is stored unchanged, so the stored form of another is looked up only if that fails.
    return state != positions.get(file.path) and state != positions.get(storable_path(file.path))
