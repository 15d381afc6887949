"""Measures how soon csmd is useful after an install beside a long past, and what the background work costs.

    python tests/bench/many_sessions.py TREE PAST
    python tests/bench/bench_day_zero.py PAST [--watch 120] [--whole] [--json]

PAST is a directory of transcripts, such as many_sessions.py makes from the real ones in TREE. A real daemon in a new home on a
disk starts beside it and gets the order of `csmd install`. Meanwhile each project is asked, in turn, for what its newest
session was told first and for its brief:

    first_s       from the start until a search finds that session and the brief is not empty, in the first project
    all_s         the same for all projects, -1 if the watch ends before; `answered` is the number of projects
    install_s     from the start until the install's import is done, after `install_sessions` transcripts
    mb_per_s      that the background reads during --watch seconds (--whole: until nothing is left)
    core          share of a core that the daemon uses meanwhile, `rss_mb` its most resident memory
    left_s        time for the rest at that pace, -1 for an unknown pace
    again_s       from a start after SIGKILL to the answer of a search; `read_again_mb` how much the backlog has grown
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil
from machine import Daemon, Machine, eventually, own_machine

from csmd import client
from csmd.cli.install import RECENT_SESSIONS
from csmd.errors import CsmdError

PROMPT = re.compile(r'"type":"user","message":\{"role":"user","content":"([^"\\<]{40,400})')
QUERY_WORDS = 8
EVERY_S = 0.5


class Project:
    """A project of the past: its directory, its newest session, a query about it, and when that was answered."""

    def __init__(self, newest: Path) -> None:
        text = newest.read_text()
        prompt = PROMPT.search(text)
        self.cwd = json.loads(next(line for line in text.splitlines() if '"cwd"' in line))["cwd"]
        self.session = newest.stem
        self.query = " ".join(prompt[1].split()[:QUERY_WORDS]) if prompt else ""
        self.answered_s: float | None = None

    def search(self, machine: Machine) -> set[str]:
        """The sessions that the query finds."""
        params = {"query": self.query, "project": self.cwd, "limit": 10}
        return {hit["session_id"] for hit in client.call(machine.paths, "csm_memory_search", params)["hits"]}

    def is_answered(self, machine: Machine) -> bool:
        """Whether the query finds the newest session and the brief has something to tell."""
        brief = client.call(machine.paths, "csm_memory_context", {"project": self.cwd})
        return self.session in self.search(machine) and bool(brief["items"])


def query_until_answered(machine: Machine, projects: list[Project], began: float, over: threading.Event) -> None:
    """Queries one project after the other until all are answered, and notes when each was."""
    while not over.is_set() and (waiting := [project for project in projects if project.answered_s is None]):
        for project in waiting:
            try:
                if project.is_answered(machine):
                    project.answered_s = time.monotonic() - began
            except CsmdError:
                break  # the daemon does not listen yet
        over.wait(EVERY_S)


def measure(machine: Machine, past: list[Path], *, watch_s: float, whole: bool) -> dict[str, float]:
    """The figures of a past, whose transcripts are given newest first."""
    newest: dict[Path, Path] = {}
    for path in past:
        newest.setdefault(path.parent, path)
    projects = [project for path in newest.values() if (project := Project(path)).query]
    began = time.monotonic()
    daemon = machine.start()
    process = psutil.Process(daemon.pid)
    over = threading.Event()
    querying = threading.Thread(target=query_until_answered, args=(machine, projects, began, over))
    querying.start()
    imported = client.run_job(
        machine.paths, "csm_sync", {"vectors": False, "recent": RECENT_SESSIONS}, watch=lambda _: None
    )
    install_s = time.monotonic() - began
    before, used, watched, rss = bytes_left(machine), sum(process.cpu_times()[:2]), time.monotonic(), 0
    while (after := bytes_left(machine)) and (whole or time.monotonic() - watched < watch_s):
        rss = max(rss, process.memory_info().rss)
        time.sleep(EVERY_S)
    took, used = time.monotonic() - watched, sum(process.cpu_times()[:2]) - used
    over.set()
    querying.join()
    answered = sorted(project.answered_s for project in projects if project.answered_s is not None)
    pace = (before - after) / took
    figures = {
        "sessions": len(past), "gigabytes": sum(path.stat().st_size for path in past) / 1e9, "projects": len(projects),
        "answered": len(answered), "first_s": answered[0] if answered else -1,
        "all_s": answered[-1] if len(answered) == len(projects) else -1,
        "install_s": install_s, "install_sessions": imported["files"], "mb_per_s": pace / 1e6, "core": used / took,
        "left_s": after / pace if pace else -1, "rss_mb": rss / 1e6,
    }  # fmt: skip
    return figures | kill(machine, daemon, projects[0], after) if after else figures


def kill(machine: Machine, daemon: Daemon, project: Project, before: int) -> dict[str, float]:
    """What a kill in the middle costs, where `before` bytes were left."""
    daemon.kill()
    daemon.wait()
    began = time.monotonic()
    machine.start()
    eventually(lambda: project.search(machine))
    again_s = time.monotonic() - began
    left = eventually(lambda: bytes_left(machine))
    return {"again_s": again_s, "read_again_mb": max(0, left - before) / 1e6}


def bytes_left(machine: Machine) -> int:
    """The size of the backlog."""
    backlog = machine.status()["backfill"]
    return int(backlog["bytes_left"]) if backlog else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("past", type=Path)
    parser.add_argument("--watch", type=float, default=120)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    past = sorted(args.past.rglob("*.jsonl"), key=lambda path: -path.stat().st_mtime)
    if not past:
        parser.error(f"{args.past} holds no transcripts; make some with tests/bench/many_sessions.py")
    with own_machine(Path("/tmp")) as machine:  # on a disk, where a commit waits for it
        machine.assistant.mkdir()
        (machine.assistant / "projects").symlink_to(args.past.resolve())
        figures = measure(machine, past, watch_s=args.watch, whole=args.whole)
    rounded = {name: round(value, 2) for name, value in figures.items()}
    print(json.dumps(rounded) if args.json else "\n".join(f"{name:<18}{value:>12}" for name, value in rounded.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
