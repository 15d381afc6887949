"""What is different under Windows' Linux (WSL), told from the texts of /proc; values in, words out."""

from __future__ import annotations

import re
from pathlib import Path

#: How Windows' drives show themselves: by version and configuration.
WINDOWS_DISKS = frozenset({"9p", "v9fs", "drvfs", "virtiofs"})
#: What is said where WSL runs without systemd, which is its older default.
ENABLE_SYSTEMD = "put the lines [boot] and systemd=true into /etc/wsl.conf, run `wsl --shutdown`, then `csmd install`"
_DRIVE = re.compile(r"/mnt/[a-z](?:/|$)")


def is_wsl(version: str) -> bool:
    """Whether /proc/version is of a kernel of Microsoft's."""
    return "microsoft" in version.lower()


def refusal(home: Path, *, version: str, mounts: str) -> str:
    """Why csmd cannot live in this home, "" when it can: on a drive of Windows neither SQLite's log nor sockets work.

    `version` and `mounts` are the texts of /proc/version and /proc/mounts.
    """
    if not is_wsl(version):
        return ""
    disk = _disk(home, mounts)
    on_windows = disk in WINDOWS_DISKS if disk else bool(_DRIVE.match(str(home)))
    return (
        f"{home} is on a drive of Windows, where SQLite's write-ahead log and Unix sockets do not work"
        if on_windows
        else ""
    )


def _disk(place: Path, mounts: str) -> str:
    """The type of the file system that a place is on; "" when the table does not say."""
    best, found = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        # The table writes a blank as \040.
        top = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), fields[1])
        depth = len(Path(top).parts)
        if place.is_relative_to(top) and depth >= best:  # of two on one place the later is what one sees
            best, found = depth, fields[2]
    return found
