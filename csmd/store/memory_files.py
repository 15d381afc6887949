"""The files below `memory/` as bytes: read as they are, written whole, private; what is no text of ours is left alone.

People edit these files with whatever they like: what is no UTF-8 in them comes back byte for byte.
"""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path
from typing import Any

import yaml

from csmd.store import files

#: Nobody writes so much on a day: a longer file is left alone.
MOST_BYTES = 4 * 1024 * 1024


def read(path: Path) -> str | None:
    """A file's text, "" for none; None for what is not to be written to (a link, a device, a very long file)."""
    try:
        if path.is_symlink():
            return None
        with files.open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EISDIR):
            return None
        raise
    return None if len(data) > MOST_BYTES else data.decode("utf-8", "surrogateescape")


def write(root: Path, path: Path, text: str) -> None:
    """Writes a file below `root` whole; every directory on the way is private."""
    folders = [path.parent, *(folder for folder in path.parent.parents if folder.is_relative_to(root))]
    for folder in reversed(folders):
        files.make_private(folder)
    files.write_atomic(path, text.encode("utf-8", "surrogateescape"))


def remove(path: Path) -> None:
    """Removes a file of csmd's own."""
    path.unlink(missing_ok=True)


def names(folder: Path, suffix: str = "") -> list[str]:
    """The names of the files in a folder, in order; none where there is no folder."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return sorted(path.name for path in folder.iterdir() if path.name.endswith(suffix) and path.is_file())
    return []


def from_yaml(text: str) -> Any:
    """What YAML says; None for nothing, and for what is none."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def as_yaml(value: Any) -> str:
    """A value as YAML that a person can read, in its own order."""
    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120))
