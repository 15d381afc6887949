"""What the machine gives csmd: disks, rights, limits."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from csmd import config
from csmd.cli import show
from csmd.cli.checks.host import MOUNTS, mount_points, on_path
from csmd.cli.checks.scene import Check, Finding, Scene, fail, note, warn
from csmd.errors import ConfigError

LOW_BYTES, LEAST_BYTES = 200_000_000, 10_000_000
#: On these SQLite's write-ahead log and sockets do not work as they should.
NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "drvfs",
    "fuse.sshfs",
    "afs",
    "ceph",
    "fuse.glusterfs",
    "virtiofs",
    "afpfs",
}
LIMITS = Path("/proc/sys/fs/inotify")
#: One for csmd's watcher; editors and browsers take some each.
FEW_INSTANCES = 16
SPARE = 1.2
MOST_PLACES = 200


def _configuration(scene: Scene) -> Iterator[Finding]:
    for problem in scene.problems:
        yield fail(problem)
    path = scene.paths.config_file
    try:
        config.parse_settings(path.read_text(encoding="utf-8") if path.exists() else "", where=str(path))
    except ConfigError as error:
        yield fail(f"{error.what}: the daemon does not start with it", error.hint)
    except UnicodeDecodeError:
        yield fail(f"{path}: not UTF-8: the daemon does not start with it")


def _private(scene: Scene) -> Iterator[Finding]:
    for folder in (scene.paths.home, scene.paths.spool, scene.paths.run_dir):
        if not folder.exists() and not folder.is_symlink():
            continue
        info = folder.lstat()
        if stat.S_ISLNK(info.st_mode):
            yield fail(
                f"{folder} is a symbolic link; csmd writes through none", "set CSMD_HOME to the directory itself"
            )
        elif info.st_uid != os.getuid():
            yield fail(f"{folder} belongs to uid {info.st_uid}, not to you", f"chown -R {os.getuid()} {folder}")
        elif info.st_mode & 0o077:
            yield warn(f"{folder} is open to others (mode {stat.S_IMODE(info.st_mode):04o})", f"chmod 700 {folder}")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield fail(f"{folder} cannot be written (mode {stat.S_IMODE(info.st_mode):04o})", f"chmod 700 {folder}")


def _disk(scene: Scene) -> Iterator[Finding]:
    yield from _room(scene.paths.home, fail, "events are refused and spooled")
    yield from _room(Path("/tmp"), warn, "there is no second place for the spool")  # noqa: S108


def _room(place: Path, told: Callable[..., Finding], why: str) -> Iterator[Finding]:
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if os.statvfs(there).f_flag & os.ST_RDONLY:
        yield told(f"{there} is on a read-only disk: {why}", "mount it writable")
    elif free < LEAST_BYTES:
        yield told(f"{show.size(free)} are free on the disk of {there}: {why}")
    elif free < LOW_BYTES:
        yield warn(f"{show.size(free)} are free on the disk of {there}")


def _file_system(scene: Scene) -> Iterator[Finding]:
    mounts = Path(MOUNTS)
    points = mount_points(mounts.read_text(errors="replace")) if mounts.exists() else {}
    home = Path(os.path.realpath(scene.paths.home))
    around = next((place for place in (home, *home.parents) if str(place) in points), None)
    kind = points.get(str(around), "")
    if kind in NETWORK:
        yield warn(
            f"{home} is on {kind} ({around}): its locks cannot be relied on, and a lost connection stops capture"
        )


def _log(scene: Scene) -> Iterator[Finding]:
    path = scene.paths.log_file
    place = path if os.path.exists(path) else path.parent  # noqa: PTH110 - where one may not look, Path raises
    if os.path.exists(place) and not os.access(place, os.W_OK):  # noqa: PTH110
        yield warn(f"{place} cannot be written: what goes wrong is noted nowhere")


def _umask(scene: Scene) -> Iterator[Finding]:
    if scene.umask & 0o700:
        yield warn(
            f"the umask {scene.umask:04o} takes rights from you yourself: what others write for csmd it cannot read"
        )


def _watches(scene: Scene) -> Iterator[Finding]:
    if not LIMITS.is_dir():
        return
    most, instances = (int((LIMITS / name).read_text()) for name in ("max_user_watches", "max_user_instances"))
    needed = sum(_folders(folder / "projects", most) for folder in scene.dirs)
    if needed * SPARE > most:
        yield warn(f"{needed} directories of transcripts, and fs.inotify.max_user_watches is {most}",
                   f"sudo sysctl fs.inotify.max_user_watches={max(2 * most, 2 * needed)}")  # fmt: skip
    if instances < FEW_INSTANCES:
        yield warn(f"fs.inotify.max_user_instances is {instances}: other programs may take all of them",
                   "sudo sysctl fs.inotify.max_user_instances=128")  # fmt: skip


def _folders(root: Path, most: int) -> int:
    """How many directories are below a place, itself among them; counting ends beyond `most`."""
    found = 0
    for _ in os.walk(root):
        found += 1
        if found > most:
            break
    return found


def _unreadable(scene: Scene) -> Iterator[Finding]:
    projects = [Path(row["root"]) for row in (scene.status or {}).get("projects", ()) if row["root"]]
    roots = [folder / "projects" for folder in scene.dirs]
    for place in [*roots, scene.cwd, *projects[:MOST_PLACES]]:
        try:
            with os.scandir(place) as held:
                first = next((one for one in held if one.name.endswith(".jsonl")), None)
            if first is not None:
                os.close(os.open(first.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except PermissionError as error:
            yield warn(f"{place} cannot be read ({error.strerror}): what is in it is not known to csmd")
        except OSError:
            continue  # gone, or a place of another machine


def _commands(scene: Scene) -> Iterator[Finding]:
    found = on_path("csmd", scene.env.get("PATH", ""))
    if len(found) > 1:
        yield note(f"there are {len(found)} csmd on the PATH: {', '.join(str(path) for path in found[:3])}")


CHECKS: tuple[Check, ...] = (
    Check(id="configuration", question="Are config.yaml and the record of the install sound?", look=_configuration,
          remedy="correct the file, then `csmd restart`"),
    Check(id="private", question="Are csmd's directories yours alone?", look=_private,
          remedy="`chmod 700`, or choose another CSMD_HOME"),
    Check(id="disk", question="Is there room in the home and in /tmp?", look=_disk,
          remedy="make room: the daemon then takes in by itself what was spooled"),
    Check(id="file-system", question="Is the home on a disk of this machine?", look=_file_system,
          remedy="set CSMD_HOME to a directory on a disk of this machine, then `csmd install`"),
    Check(id="log", question="Can the log be written?", look=_log,
          remedy="make it yours: `chown` and `chmod 600`"),
    Check(id="umask", question="Does the umask leave you your own files?", look=_umask,
          remedy="`umask 077` (or 022) where your shell sets it"),
    Check(id="watches", question="Can all directories of transcripts be watched?", look=_watches,
          remedy="raise the limit; until then each transcript is looked at every 15 minutes"),
    Check(id="unreadable", question="Can transcripts and projects be read?", look=_unreadable,
          remedy="macOS: System Settings, Privacy & Security, Full Disk Access, for the terminal and Python; else its rights"),
    Check(id="commands", question="Is there one csmd on the PATH?", look=_commands,
          remedy="remove those that you do not use: each has its own idea of the hook"),
)  # fmt: skip
