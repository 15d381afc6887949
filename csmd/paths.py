"""Every file and directory below csmd's home."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePath


def mark_of(home: Path) -> str:
    """Returns 12 hex digits that identify a home in the names of units and sockets outside of it."""
    import hashlib

    return hashlib.sha256(os.fsencode(home)).hexdigest()[:12]


def model_folder(name: str) -> str:
    """Returns the name of a model's folder below `models`."""
    return name.replace("/", "__")


class Below:
    """A file or directory below the home, or below another directory of Paths."""

    def __init__(self, *parts: str, folder: str = "home") -> None:
        self._parts, self._folder = parts, folder

    def __get__(self, paths: Paths, _: type[Paths]) -> Path:
        folder: Path = getattr(paths, self._folder)
        return folder.joinpath(*self._parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """Every file and directory of csmd's own; all of them 0600 or 0700."""

    home: Path
    config_file: Path
    log_dir: Path

    database = Below("csmd.db")
    endpoint = Below("endpoint")
    """Holds the socket's path; hooks read this file and nothing else."""
    run_dir = Below("run")
    lock = Below("run", "daemon.lock")
    instance = Below("run", "daemon.json")
    """JSON about the running daemon: pid, start token, version, protocol, socket."""
    complaint = Below("run", "start.stderr")
    """The stderr of a daemon that could not start."""
    start_command = Below("run", "command")
    """The command by which a hook starts a daemon without a service: `complaint`, words, environment, NUL-terminated."""
    stopped_mark = Below("run", "stopped-by-user")
    """Present while the user has stopped the daemon on purpose."""
    missing_mark = Below("run", "told-missing")
    """Set by a hook that reported a missing file or Python, so that it is reported once."""
    hung_mark = Below("run", "hung")
    """Set by a hook that got no answer in time: for 30 s the others spool at once."""
    waits_mark = Below("run", "waits-for-key")
    """Present while a daemon waits for the key of its database: the reason and a hint."""
    passed_by_mark = Below("run", "passed-by")
    """Touched by the hooks of a session that the user keeps out (CSMD_DISABLE): hooks run."""
    pauses = Below("pauses.json")
    """The pauses of capture (csmd/pauses.py); kept when the database is replaced."""
    spool = Below("spool")
    quarantine = Below("quarantine")
    models = Below("models")
    fetched_model = Below("models", ".fetched")
    """The directory of a fetched model until the daemon has its own copy."""
    sessions = Below("sessions")
    """Session files of csmd's own: `<folder of a project>/<session>.jsonl`."""
    memory = Below("memory")
    """The markdown that people read and edit: `user.md`, `projects/`, `topics/`, `daily/`."""
    dream_lock = Below("memory", ".dream.lock")
    """The lock of the dreaming process: next to the markdown, so that two machines that share it both see it."""
    hook_dir = Below("hook")
    hook_script = Below("hook", "csmd_hook.py")
    install_record = Below("install.json")
    """JSON: the changes of `csmd install` outside the home, and how to revert them."""
    log_file = Below("csmd.log", folder="log_dir")


# --- paths that others chose: too long, forbidden, or on a disk that is gone


def is_there(path: Path | str) -> bool:
    """Whether something can be reached at a path; never raises."""
    return _mode(path) is not None


def is_directory(path: Path | str) -> bool:
    """Whether a directory can be reached at a path; never raises."""
    return stat.S_ISDIR(_mode(path) or 0)


def is_file(path: Path | str) -> bool:
    """Whether a regular file can be reached at a path; never raises."""
    return stat.S_ISREG(_mode(path) or 0)


def is_shared_name(name: str) -> bool:
    """Whether several sessions' transcripts, or other files, share a file name."""
    return name == "events.jsonl" or name.endswith(".db")


def name_of_transcript(path: str) -> str:
    """Returns the name of a transcript's file, without reading the disk; a shared name follows its directory's."""
    file = PurePath(path)
    if file.parent.suffix == ".db":
        file = file.parent
    return f"{file.parent.name}/{file.name}" if is_shared_name(file.name) else file.name


def file_of_transcript(path: Path | str) -> Path:
    """Returns the file of a transcript: itself, or the database in which the path's last part is a session."""
    path = Path(path)
    return path.parent if is_file(path.parent) else path


def _mode(path: Path | str) -> int | None:
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - thousands of names, at each status
    except (OSError, ValueError):
        return None


#: Longest name of a folder; a longer one is cut and gets a hash of the whole.
LONGEST_NAME = 200


def folder_name(path: str) -> str:
    """Returns the folder name for a directory, as Claude Code makes it; not invertible, and not unique."""
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [units[length] | units[length + 1] << 8 for length in range(0, len(units), 2)]
    name = "".join(chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes)
    if len(name) <= LONGEST_NAME:
        return name
    number = 0
    for code in codes:
        number = (number * 31 + code) & 0xFFFFFFFF
    number = abs(number - (1 << 32) if number >= 1 << 31 else number)
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not number:
            return f"{name[:LONGEST_NAME]}-{digits}"


def text_of(path: Path) -> str:
    """Returns the text of a file, "" if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
