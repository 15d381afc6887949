"""Windows' Linux: told from the kernel's words; a home on a drive of Windows is refused, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from csmd.installer import service

WSL2 = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x) (gcc 11.2.0) #1 SMP"
WSL1 = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0)"
DEBIAN = "Linux version 6.1.0-13-amd64 (debian-kernel@lists.debian.org)"
MOUNTS = """none /mnt/wsl tmpfs rw 0 0
/dev/sdc / ext4 rw 0 0
C:\\134 /mnt/c 9p rw,dirsync,aname=drvfs;path=C:\\ 0 0
D:\\134 /mnt/my\\040disk drvfs rw 0 0
/dev/sdd /mnt/d ext4 rw 0 0
C:\\134 /mnt/late ext4 rw 0 0
C:\\134 /mnt/late 9p rw 0 0
"""


@pytest.mark.parametrize(
    ("home", "version", "mounts", "refused"),
    [
        ("/home/me/.local/share/csmd", WSL2, MOUNTS, False),
        ("/mnt/c/Users/me/csmd", WSL2, MOUNTS, True),
        ("/mnt/c/Users/me/csmd", WSL1, MOUNTS, True),
        ("/mnt/c/Users/me/csmd", DEBIAN, MOUNTS, False),
        ("/mnt/my disk/csmd", WSL2, MOUNTS, True),
        ("/mnt/d/csmd", WSL2, MOUNTS, False),
        ("/mnt/d/csmd", WSL2, "", True),
        ("/mnt/late/csmd", WSL2, MOUNTS, True),
        ("/mnt/data/csmd", WSL2, "", False),
        ("/mnt/cc/csmd", WSL2, MOUNTS, False),
    ],
)
def test_a_home_on_a_drive_of_windows_is_refused(home: str, version: str, mounts: str, refused: bool) -> None:
    said = service.windows_refusal(Path(home), version=version, mounts=mounts)
    assert bool(said) is refused
    assert not refused or ("write-ahead log" in said and home in said)


def test_windows_linux_is_known_by_its_kernel() -> None:
    assert [service.is_wsl(text) for text in (WSL2, WSL1, DEBIAN, "")] == [True, True, False, False]
