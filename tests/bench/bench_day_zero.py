"""What somebody with a long past sees after an install: when a search and a brief are useful, and the work behind.

    python tests/bench/bench_day_zero.py TREE [--sessions 20000] [--gigabytes 5] [--projects 40] [--past DIR] [--watch 120] [--whole] [--json]

TREE holds real transcripts, which are varied into the past (tests/bench/many_sessions.py). A real daemon in a home of its own
starts beside it and is told what `csmd install` tells it. Of each project the words of its newest session are searched for
and its brief is taken, until they are found:

    first_s      from the start to the first project whose search and brief are useful; `all_s` of all projects
    install_s    until the install's own import is done
    mb_per_s     of the background, over --watch seconds (--whole: until nothing is left); `core` what it takes meanwhile
    left_s       what the rest takes at that pace; `rss_mb` the most memory
    again_s      after the daemon was killed: until it answers a search; `read_again_mb` of what it had read before
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

import many_sessions  # noqa: E402
import psutil  # noqa: E402
from machine import Daemon, Machine, own_machine  # noqa: E402

from csmd import client  # noqa: E402
from csmd.cli.installation import RECENT  # noqa: E402
from csmd.errors import CsmdError  # noqa: E402

PROMPT = re.compile(r'"type":"user","message":\{"role":"user","content":"([^"\\<]{40,400})')
WORDS_ASKED = 8
LOOK_S = 0.5


class Project:
    """A project of the past: its directory, its newest session, what is asked of that, and when both were answered."""

    def __init__(self, newest: Path) -> None:
        text = newest.read_text()
        found = PROMPT.search(text)
        self.cwd = json.loads(next(line for line in text.splitlines() if '"cwd"' in line))["cwd"]
        self.session = newest.stem
        self.asked = " ".join(found[1].split()[:WORDS_ASKED]) if found else ""
        self.answered_s: float | None = None

    def is_answered(self, machine: Machine) -> bool:
        """Whether a search finds the newest session and a brief has something to tell."""
        if self.session not in ask(machine, self):
            return False
        return bool(client.call(machine.paths, "csm_memory_context", {"project": self.cwd})["items"])


def ask(machine: Machine, project: Project) -> set[str]:
    """The sessions that a search for what its newest session asked finds in a project."""
    order = {"query": project.asked, "project": project.cwd, "limit": 10}
    return {hit["session_id"] for hit in client.call(machine.paths, "csm_memory_search", order)["hits"]}


def ask_until_answered(machine: Machine, projects: list[Project], began: float, over: threading.Event) -> None:
    """Asks of one project after the other until all have been answered; notes when each was."""
    while not over.is_set() and (open_ones := [one for one in projects if one.answered_s is None]):
        for one in open_ones:
            try:
                if one.is_answered(machine):
                    one.answered_s = time.monotonic() - began
            except CsmdError:
                break  # not listening yet
        over.wait(LOOK_S)


def measure(machine: Machine, past: list[Path], *, watch_s: float, whole: bool) -> dict[str, float]:
    """The figures of a past that has just been made."""
    newest: dict[Path, Path] = {}
    for path in past:
        newest.setdefault(path.parent, path)
    projects = [one for path in newest.values() if (one := Project(path)).asked]
    size = sum(path.stat().st_size for path in past)
    began = time.monotonic()
    daemon = machine.start()
    process = psutil.Process(daemon.pid)
    listens_s = time.monotonic() - began
    over = threading.Event()
    asking = threading.Thread(target=ask_until_answered, args=(machine, projects, began, over))
    asking.start()
    done = client.work(machine.paths, "csm_sync", {"vectors": False, "recent": RECENT}, watch=lambda _: None)
    install_s = time.monotonic() - began
    left, used, at, rss = bytes_left(machine), cpu(process), time.monotonic(), 0.0
    while (behind := bytes_left(machine)) and (whole or time.monotonic() - at < watch_s):
        rss = max(rss, process.memory_info().rss / 1e6)
        time.sleep(LOOK_S)
    took, used = time.monotonic() - at, cpu(process) - used
    over.set()
    asking.join()
    answered = sorted(one.answered_s for one in projects if one.answered_s is not None)
    pace = (left - behind) / took
    figures = {
        "sessions": len(past), "gigabytes": size / 1e9, "projects": len(projects), "listens_s": listens_s,
        "first_s": answered[0] if answered else -1, "all_s": answered[-1] if len(answered) == len(projects) else -1,
        "answered": len(answered), "install_s": install_s, "install_sessions": done["files"],
        "mb_per_s": pace / 1e6, "core": used / took, "left_s": behind / pace if pace else -1, "rss_mb": rss,
    }  # fmt: skip
    return figures if whole else figures | killed(machine, daemon, projects[0], behind)


def killed(machine: Machine, daemon: Daemon, project: Project, behind: int) -> dict[str, float]:
    """What a kill in the middle costs."""
    daemon.kill()
    daemon.wait()
    began = time.monotonic()
    machine.start()
    while not ask(machine, project):
        time.sleep(0.05)
    again_s = time.monotonic() - began
    while not (left := bytes_left(machine)):
        time.sleep(0.05)
    return {"again_s": again_s, "read_again_mb": max(0, left - behind) / 1e6}


def bytes_left(machine: Machine) -> int:
    backlog: dict[str, Any] | None = machine.status()["backfill"]
    return int(backlog["bytes_left"]) if backlog else 0


def cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--past", type=Path, help="one that many_sessions.py has made before")
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--gigabytes", type=float, default=5)
    parser.add_argument("--projects", type=int, default=40)
    parser.add_argument("--watch", type=float, default=120)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with own_machine(Path("/tmp")) as machine:  # on a disk: a past is larger than what is free in memory
        into, most = machine.assistant / "projects", int(args.gigabytes * 1e9)
        if args.past:
            into.parent.mkdir()
            into.symlink_to(args.past)
            past = sorted(into.rglob("*.jsonl"), key=lambda path: -path.stat().st_mtime)
        else:
            past = list(many_sessions.make(args.tree, into, sessions=args.sessions, most=most, projects=args.projects))
        figures = measure(machine, past, watch_s=args.watch, whole=args.whole)
    shown = {name: round(value, 2) for name, value in figures.items()}
    print(json.dumps(shown) if args.json else "\n".join(f"{name:<18}{value:>12}" for name, value in shown.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
