"""What the assistant is set to and where it runs, as far as it distorts what csmd sees."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from csmd.cli import assistant
from csmd.cli.checks.scene import Check, Finding, Scene, fail, note, warn

#: A client that takes longer to say its version is not waited for.
VERSION_S = 5.0
#: Fewer days than that and a transcript may be gone before a daemon that was down has read it.
FEW_DAYS = 7
#: Where a container says that it is one.
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
MOUNTS = "/proc/self/mountinfo"


def _trust(scene: Scene) -> Iterator[Finding]:
    if assistant.is_trusted(scene.states, str(scene.cwd)) is False:
        yield warn(f"{scene.cwd} is not trusted: in a terminal the assistant runs no hook here (with -p it does)")


def _client(scene: Scene) -> Iterator[Finding]:
    said = client_says(scene.env.get("PATH", ""))
    if said is None:
        yield note("no `claude` is on the PATH: its version was not looked at",
                   "nothing has to be done where you start it otherwise")  # fmt: skip
        return
    version = assistant.version(said)
    if version is None:
        yield note("`claude --version` says no version", "nothing has to be done")
    elif version < assistant.OLDEST_CLIENT:
        oldest = ".".join(map(str, assistant.OLDEST_CLIENT))
        yield fail(f"the client is {'.'.join(map(str, version))}; csmd's hooks need {oldest} or later")


def client_says(path: str) -> str | None:
    """What the first `claude` on a PATH prints as its version; "" when it says nothing in time, None for no client."""
    program = next((str(program) for program in on_path("claude", path)), None)
    if program is None:
        return None
    with tempfile.TemporaryDirectory(
        prefix="csmd-", ignore_cleanup_errors=True
    ) as place:  # it writes into nobody's settings
        env = {"PATH": path, "HOME": place, "CLAUDE_CONFIG_DIR": place}
        try:
            done = subprocess.run([program, "--version"], env=env, cwd=place, timeout=VERSION_S, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True)  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return done.stdout.decode("utf-8", "replace")


def on_path(name: str, path: str) -> list[Path]:
    """Every program of this name on a PATH, each real file once, in its order."""
    found: dict[Path, Path] = {}
    for folder in path.split(":"):
        program = Path(folder) / name
        if folder.startswith("/") and program.is_file():
            found.setdefault(program.resolve(), program)
    return list(found.values())


def _shared(scene: Scene) -> Iterator[Finding]:
    if not any(Path(mark).exists() for mark in CONTAINER_MARKS) and not scene.env.get("container"):
        return
    mounts = Path(MOUNTS)
    points = mount_points(mounts.read_text(errors="replace")) if mounts.exists() else {}
    for folder in scene.dirs:
        if str(folder) in points or str(folder / "projects") in points:
            yield warn(f"this is a container, and {folder} is mounted into it: sessions of elsewhere stand in it, "
                       "with paths that are not here, and hooks that may be not")  # fmt: skip


def mount_points(mountinfo: str) -> dict[str, str]:
    """Mount point -> file system of what /proc/self/mountinfo says."""
    found = {}
    for line in mountinfo.splitlines():
        head, _, tail = line.partition(" - ")
        if len(head.split(" ")) > 4 and tail:
            found[head.split(" ")[4].replace("\\040", " ")] = tail.split(" ")[0]
    return found


def _cleanup(scene: Scene) -> Iterator[Finding]:
    days, path = assistant.cleanup_days(scene.sources)
    if days <= FEW_DAYS:
        when = "keeps no transcripts" if not days else f"deletes transcripts after {days} days"
        yield warn(f"{path}: the assistant {when}: what csmd has not read by then exists nowhere")


def _auto_memory(scene: Scene) -> Iterator[Finding]:
    found = assistant.set_in(scene.sources, "autoMemoryEnabled")
    off = found is not None and found.value["autoMemoryEnabled"] is False
    off = off or scene.env.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY") == "1"
    number = 0 if off else sum(len(assistant.memory_folders(folder)) for folder in scene.dirs)
    if number:
        where = "1 project" if number == 1 else f"{number} projects"
        yield note(f"the assistant keeps a memory of its own for {where}: both remember; csmd does not repeat what its MEMORY.md says",
                   "nothing has to be done; `autoMemoryEnabled: false` in the assistant's settings leaves csmd alone with it")  # fmt: skip


def _auto_dream(scene: Scene) -> Iterator[Finding]:
    found = assistant.set_in(scene.sources, "autoDreamEnabled")
    if found is not None and found.value["autoDreamEnabled"] is True:
        yield note(f"{found.path}: autoDreamEnabled: the assistant rewrites its own memory now and then")


def _others(scene: Scene) -> Iterator[Finding]:
    commands = [one.command for one in scene.hooks if not one.home]
    words = [*commands, *assistant.plugins(scene.sources), *assistant.servers(scene.states, str(scene.cwd))]
    for name in assistant.others(words):
        yield note(f"{name} is set up, too: both remember, and both put words before your sessions")


def _unread_dirs(scene: Scene) -> Iterator[Finding]:
    found = {"CLAUDE_CONFIG_DIR": scene.env.get("CLAUDE_CONFIG_DIR", "")}
    told = assistant.variable(scene.sources, "CLAUDE_CONFIG_DIR")
    if told is not None:
        found[f"`env` in {told[0].path}"] = told[1]
    usual = scene.user_home / ".claude"
    known = [*scene.recorded, *(Path(root).parent for root in (scene.status or {}).get("watching", []))]
    for where, folder in found.items():
        there = folder and (Path(folder) / "projects").is_dir()
        if there and not any(_same(Path(folder), other) for other in known):
            yield warn(f"{where} names {folder}, and csmd does not read it",
                       f"`CLAUDE_CONFIG_DIR={folder} csmd install`")  # fmt: skip
    if (
        scene.recorded
        and (usual / "projects").is_dir()
        and not any(_same(usual, other) for other in [*known, *scene.dirs])
    ):
        yield note(f"there are sessions in {usual}, too, and csmd does not read them",
                   f"`CLAUDE_CONFIG_DIR={usual} csmd install`")  # fmt: skip


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


CHECKS: tuple[Check, ...] = (
    Check(id="trust", question="Is this directory trusted by the assistant?", look=_trust,
          remedy="start `claude` here once and say that you trust it"),
    Check(id="client", question="Does the client know csmd's hooks?", look=_client, limit_s=VERSION_S + 2,
          remedy="update the client"),
    Check(id="shared-settings", question="In a container: are the assistant's files its own?", look=_shared,
          remedy="give the container a CLAUDE_CONFIG_DIR of its own, or run `csmd install` on both sides"),
    Check(id="cleanup", question="Does the assistant keep transcripts long enough?", look=_cleanup,
          remedy="raise `cleanupPeriodDays`, and keep the daemon running"),
    Check(id="auto-memory", question="Does the assistant keep a memory of its own?", look=_auto_memory,
          remedy="nothing has to be done"),
    Check(id="auto-dream", question="Does the assistant rewrite that by itself?", look=_auto_dream,
          remedy="nothing has to be done; csmd reads what stands there then"),
    Check(id="other-memory", question="Does another program remember, too?", look=_others,
          remedy="keep one of them, or live with both: csmd does not touch the other"),
    Check(id="config-dirs", question="Is every configuration directory of the assistant read?", look=_unread_dirs,
          remedy="`csmd install` with that CLAUDE_CONFIG_DIR"),
)  # fmt: skip
