"""A home on a disk that is full, or that may only be read: the daemon stays up, hooks do no harm, nothing is lost.

The disk is a tmpfs of a few MB, the read-only one a bind mount, both in a mount namespace of the test's own
(`unshare`): mode bits stop no root. Where a machine forbids namespaces these tests skip, and say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import csmd

HERE = Path(__file__).resolve()
UNSHARE = ["unshare", "--map-root-user", "--mount", "--propagation", "private"]
ALLOWED = (
    subprocess.run(
        [*UNSHARE, "sh", "-c", "mount -t tmpfs -o size=1m none /mnt"], capture_output=True, check=False
    ).returncode
    == 0
    if sys.platform == "linux"
    else False
)
needs_namespaces = pytest.mark.skipif(not ALLOWED, reason="this machine lets nobody mount in a namespace of its own")

#: What every story begins with: a machine whose home is a small disk of its own.
BEGIN = """
import json, os, subprocess, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from machine import Machine, eventually, temporary_directory
machine = Machine(root=temporary_directory())
machine.home.mkdir(mode=0o700)
def sh(*words): subprocess.run(words, check=True)
def second(): return list(Path(f"/tmp/csmd-{{os.getuid()}}").glob("spool-*" + machine.root.name + "*/*.event"))
"""

FULL = """
sh("mount", "-t", "tmpfs", "-o", "size=6m,mode=700", "none", str(machine.home))
machine._install_hooks()
child = machine.start()
path = machine.conversation()
machine.sync()
before = machine.status()["counts"]["turns"]
# Full to the last byte, with the log's blocks taken as well.
filler = machine.home / "filler"
with filler.open("wb", buffering=0) as file:
    try:
        while file.write(b"x" * 4096): pass
    except OSError: pass
prompts = [f"prompt {n} " + "of some length " * 40 for n in range(40)]
answers = [machine.event("UserPromptSubmit", prompt=prompt, transcript_path=str(path))[0] for prompt in prompts[:30]]
assert set(answers) <= {"ok", "refused"} and "refused" in answers, answers
for prompt in prompts[30:33]:
    assert hook_at_once("UserPromptSubmit", prompt=prompt, transcript_path=str(path)) == b""
kept = [*machine.spooled(), *second()]
assert len(kept) == 3, (machine.spooled(), second())
# The user is told once, by the hook; the note on that finds a place.
assert b"nothing can be stored" in hook_at_once("SessionStart", source="startup")
assert hook_at_once("SessionStart", source="startup") == b""
assert machine.status()["alarms"][0]["what"] == "nothing is recorded: the disk accepts no writes"
machine.transcript(*[machine.line("user", "written while the disk was full " + "x" * 3000) for _ in range(40)])
machine.call("csm_sync", vectors=False)
told = eventually(lambda: [text for text in machine.status()["degraded"] if "free some space" in text or "full" in text])
assert child.poll() is None
backup = machine.run("backup")
assert backup.returncode == 1 and "csmd: " in backup.stderr and "bug" not in backup.stderr, backup.stderr
assert not list(machine.home.glob("backups/.csmd*"))
# One that starts on the full disk either serves or says why not.
machine.stop(child)
again = machine.run("start")
assert again.returncode == 0 or (again.returncode == 1 and "bug" not in again.stderr), again.stderr
if again.returncode == 0: machine.csmd("stop")
filler.unlink()
child = machine.start()
machine.sync()
eventually(lambda: not [*machine.spooled(), *second()])
after = machine.status()
acknowledged = answers.count("ok") + 3
texts = machine.call("csm_memory_search", query="prompt length", limit=50, kind="turn")["hits"]
assert after["counts"]["turns"] >= before + 40 + acknowledged, (before, after["counts"], acknowledged)
eventually(lambda: not [text for text in machine.status()["degraded"] if "free some space" in text])
assert machine.status()["alarms"] == []
assert machine.call("csm_store_check") == {"problems": []}
machine.stop(child)
"""

READ_ONLY = """
child = machine.start()
path = machine.conversation()
machine.sync()
before = machine.status()["counts"]["turns"]
machine.hook("Stop", last_assistant_message="a first one so that the scripts are there", transcript_path=str(path))
sh("mount", "--bind", str(machine.home), str(machine.home))
sh("mount", "-o", "remount,bind,ro", str(machine.home))
# The running daemon holds its files open for writing: it goes on. One that starts cannot.
assert machine.event("UserPromptSubmit", prompt="while it may be read only", transcript_path=str(path))[0] in ("ok", "refused")
assert machine.status()["home"]
child.kill(); child.wait()
for number in range(3):
    assert hook_at_once("UserPromptSubmit", prompt=f"nobody listens {number}", transcript_path=str(path)) == b""
assert len(second()) == 3, second()
assert b"not running" in hook_at_once("SessionStart", source="startup")
assert hook_at_once("SessionStart", source="startup") == b"", "noted in the second place"
started = machine.run("start")
assert started.returncode == 1 and "csmd: " in started.stderr and "bug" not in started.stderr, started.stderr
for verb in (["repair"], ["restore", "latest", "--yes"]):
    done = machine.run(*verb)
    assert done.returncode == 1 and "bug" not in done.stderr, done.stderr
sh("umount", str(machine.home))
child = machine.start()
eventually(lambda: not second())
machine.sync()
assert machine.status()["counts"]["turns"] >= before + 3
assert machine.call("csm_store_check") == {"problems": []}
machine.stop(child)
"""

UNMOUNTED = """
sh("mount", "-t", "tmpfs", "-o", "size=40m,mode=700", "none", str(machine.home))
child = machine.start()
prompts = [f"prompt number {number}" for number in range(12)]
assert {machine.event("UserPromptSubmit", prompt=prompt)[0] for prompt in prompts} == {"ok"}
sh("umount", "--lazy", str(machine.home))
assert not machine.paths.database.exists()
from csmd.store import backup
copy = eventually(lambda: next(iter(backup.list_backups(machine.paths.database)), None))
child.kill(); child.wait()
from terminal import Terminal
restored = Terminal("restore", "latest", "--yes", cwd=machine.project, environment=machine.environment())
assert restored.ends() == 0, restored.said
if not machine.instance(): machine.start()
machine.sync()
told = [turn["text"] for turn in machine.call("csm_session_transcript", id="s1")["conversation"]]
assert told == prompts, told
machine.csmd("stop")
"""

#: Hooks as they are run, without copying the scripts first: that would need room.
AT_ONCE = """
def hook_at_once(name, **more):
    from csmd.hosts.claude import registration
    from csmd.config import base_interpreter
    payload = {"session_id": "s1", "cwd": str(machine.project), "hook_event_name": name, **more}
    done = subprocess.run(["sh", "-c", registration.hook_command(base_interpreter(), machine.home, name)],
        input=json.dumps(payload).encode(), capture_output=True, check=False, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout
"""
END = """
import shutil
for file in second(): file.unlink()
for note in Path(f"/tmp/csmd-{os.getuid()}").glob("spool-*" + machine.root.name + "*/told-*"): note.unlink()
subprocess.run(["umount", str(machine.home)], check=False, capture_output=True)
shutil.rmtree(machine.root, ignore_errors=True)
print("told to the end")
"""


def tell(story: str) -> None:
    """Runs a story in a mount namespace of its own; what it mounts and starts ends with it."""
    script = BEGIN.format(tests=str(HERE.parent.parent)) + AT_ONCE + story + END
    done = subprocess.run(
        [*UNSHARE, "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-W", "ignore", "-c", script],
        capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(csmd.__file__).parent.parent)},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.endswith("told to the end\n"), done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.invariant("Wherever the disk fails, nothing acknowledged is lost and the database is sound")
@needs_namespaces
def test_on_a_full_disk_the_daemon_stays_and_takes_everything_in_when_there_is_room() -> None:
    tell(FULL)


@pytest.mark.invariant("Wherever the disk fails, nothing acknowledged is lost and the database is sound")
@needs_namespaces
def test_in_a_home_that_may_only_be_read_hooks_use_the_second_place_and_nothing_is_a_bug() -> None:
    tell(READ_ONLY)


@pytest.mark.invariant(
    "An acknowledged event is in the database that is found at its path: where that file was deleted, moved or replaced under the daemon nothing is acknowledged, an alarm says what to do, and a copy of what was open goes into the backups"
)
@needs_namespaces
def test_of_a_disk_that_is_unmounted_under_the_daemon_nothing_acknowledged_is_lost() -> None:
    tell(UNMOUNTED)
