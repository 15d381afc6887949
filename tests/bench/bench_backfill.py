"""What taking in a past does to whoever works meanwhile: acknowledgements, CPU and time, in the foreground and behind.

    python tests/bench/bench_backfill.py TREE [--hogs N] [--rest FACTOR] [--nice N] [--no-distill]

TREE is a directory like ~/.claude/projects. A real daemon in a home of its own; N processes that burn CPU stand in
for a build. First acknowledgements are measured while nothing happens, then while the past is taken in behind an
install of which one session of each project has been waited for; at last, in another home, `csmd sync` of everything.
--no-distill takes in the past without distilling it; --rest and --nice try other ways to keep out of the way: the background thread's rest after a step, its thread's priority.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
from bench_acks import Clients, percentile

from csmd import client
from csmd.config import default_paths

DAEMON = """
import os, sys, threading
from csmd.daemon import jobs, reading
rest, nice = float(sys.argv[1]), int(sys.argv[2])
reading.REST = rest
run = jobs.Background.run
def niced(self):
    if nice:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
    run(self)
jobs.Background.run = niced
from csmd.daemon.__main__ import main
sys.argv[1:] = []
sys.exit(main())
"""
#: Between two events of the one client.
EVERY_S = 0.02


class Home:
    """Owns a daemon in a home of its own."""

    def __init__(self, rest: float, nice: int, distill: bool = True) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="csmd-bf-", dir="/tmp"))
        (self.root / ".claude").mkdir()
        environment = {**os.environ, "HOME": str(self.root), "CSMD_HOME": str(self.root / "csmd"),
                       "CLAUDE_CONFIG_DIR": str(self.root / ".claude")}  # fmt: skip
        self.paths = default_paths(environment)
        self.paths.home.mkdir(mode=0o700)
        (self.paths.home / "config.yaml").write_text(f"stages.distill: {str(distill).lower()}\n")
        self.child = subprocess.Popen([sys.executable, "-c", DAEMON, str(rest), str(nice)], env=environment)
        while not self.paths.endpoint.exists():
            time.sleep(0.05)

    def status(self) -> Any:
        return client.call(self.paths, "csm_runtime_status", {})

    def cpu(self) -> float:
        times = psutil.Process(self.child.pid).cpu_times()
        return float(times.user + times.system)

    def end(self) -> None:
        self.child.terminate()
        self.child.wait()
        shutil.rmtree(self.root)


def acks(home: Home, seconds: float, until: Any = lambda: False) -> list[float]:
    """Milliseconds of acknowledgements, one client, until the time is over or `until` says so."""
    clients = Clients(home.paths.endpoint.read_text().strip(), 1)
    took: list[float] = []
    began = looked = time.monotonic()
    try:
        while time.monotonic() - began < seconds:
            took += clients.report(1)
            time.sleep(EVERY_S)
            if time.monotonic() - looked > 1:
                looked = time.monotonic()
                if until():
                    break
    finally:
        clients.close()
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--hogs", type=int, default=0)
    parser.add_argument("--rest", type=float, default=1.0)
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--no-foreground", action="store_true")
    parser.add_argument("--no-distill", action="store_true")
    chosen = parser.parse_args()
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(chosen.hogs)]
    result: dict[str, Any] = {"hogs": chosen.hogs, "rest": chosen.rest, "nice": chosen.nice}
    try:
        home = Home(chosen.rest, chosen.nice, not chosen.no_distill)
        try:
            acks(home, 2)
            idle = acks(home, 15)
            (home.root / ".claude/projects").symlink_to(chosen.tree)
            client.work(home.paths, "csm_sync", {"vectors": False, "recent": 1}, watch=lambda _: None)
            began, used = time.monotonic(), home.cpu()
            left = home.status()["backfill"]
            busy = acks(home, 600, until=lambda: home.status()["backfill"] is None)
            took = time.monotonic() - began
            result |= {
                "left": left and left["sessions_left"], "background_s": round(took, 1),
                "core": round((home.cpu() - used) / took, 2),
                "idle_ms": [round(percentile(idle, share), 1) for share in (0.5, 0.99)],
                "busy_ms": [round(percentile(busy, share), 1) for share in (0.5, 0.99)], "acks": [len(idle), len(busy)],
                "ratio": [round(percentile(busy, share) / percentile(idle, share), 1) for share in (0.5, 0.99)],
            }  # fmt: skip
        finally:
            home.end()
        if not chosen.no_foreground:
            home = Home(chosen.rest, chosen.nice)
            try:
                (home.root / ".claude/projects").symlink_to(chosen.tree)
                done = client.work(home.paths, "csm_sync", {"vectors": False}, watch=lambda _: None)
                result |= {"foreground_s": done["took_s"], "files": done["files"]}
            finally:
                home.end()
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
