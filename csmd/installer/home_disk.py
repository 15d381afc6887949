"""The disk of csmd's home: refuses Windows drives under WSL, and knows the network file systems that doctor warns of."""

from __future__ import annotations

import re
from pathlib import Path

from csmd.errors import ConfigError
from csmd.paths import text_of

#: File systems on which SQLite's write-ahead log and sockets are unreliable.
NETWORK = frozenset("nfs nfs4 cifs smb3 smbfs 9p drvfs fuse.sshfs afs ceph fuse.glusterfs virtiofs afpfs".split())
#: Types of file systems of Windows' drives, by version and configuration of WSL.
WINDOWS_DISKS = frozenset({"9p", "v9fs", "drvfs", "virtiofs"})
#: File with the kernel's version.
KERNEL = Path("/proc/version")
#: File with the mounted file systems.
MOUNTS = Path("/proc/mounts")
_DRIVE = re.compile(r"/mnt/[a-z](?:/|$)")


def is_wsl() -> bool:
    """Whether this is Microsoft's kernel (WSL)."""
    return "microsoft" in text_of(KERNEL).lower()


def check(home: Path) -> None:
    """Raises ConfigError for a home on a Windows drive, where neither SQLite's log nor sockets work."""
    disk, _ = find_file_system(home)
    if is_wsl() and (disk in WINDOWS_DISKS if disk else _DRIVE.match(str(home))):
        hint = "unset CSMD_HOME, or set it to a directory on a Linux file system, e.g. ~/.csmd"
        what = f"{home} is on a Windows drive, where SQLite's write-ahead log and Unix sockets do not work"
        raise ConfigError(what, hint=hint)


def read_mount_points() -> dict[Path, str]:
    """Returns mount point -> type of its file system; of two at one mount point the later, which hides the other."""
    points = {}
    for _device, mount, kind, *_ in (row for line in text_of(MOUNTS).splitlines() if len(row := line.split(" ")) > 2):
        # The table writes a blank as \040.
        points[Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), mount))] = kind
    return points


def find_file_system(path: Path) -> tuple[str, Path | None]:
    """Returns the type of the file system of a path, and where it is mounted; ("", None) if that is unknown."""
    points = read_mount_points()
    mount = next((folder for folder in (path, *path.parents) if folder in points), None)
    return (points[mount], mount) if mount else ("", None)
