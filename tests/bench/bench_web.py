"""What the viewer's pages cost over a home of 10,000 memories and 100,000 turns: processor time and bytes of each.

    python tests/bench/bench_web.py [--memories 10000] [--turns 100000] [--json]

Each page is asked for by three viewers that have just started, so templates are compiled and nothing is cached in them
(`first`, the median, as the daemon works of itself now and then), and then four times more (`again`, the median).
Processor time is that of the viewer and of the daemon together, from the kernel's counters; the home is made up by
big_store.py. The daemon's background work, which would take minutes over a made-up home and count as a page's, rests
after its first pass. The targets are 300 ms and 300 KB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import psutil

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

import big_store  # noqa: E402
from bench_search import CONFIG, settled  # noqa: E402
from machine import own_machine  # noqa: E402
from viewer_process import Viewer, end_viewer, open_viewer  # noqa: E402

TARGET_MS, TARGET_BYTES, TIMES, VIEWERS = 300, 300_000, 4, 3
#: With these the background thread does one pass, and no other while the pages are measured.
RESTING = {"csmd.daemon.reading.REST_FACTOR": 1e6, "csmd.daemon.jobs.TICK_S": 1e6, "csmd.daemon.jobs.PASS_EVERY_S": 1e6}
#: How long the first pass may take.
PASS_S = 120.0
PAGES = {
    "overview": "",
    "sessions": "sessions",
    "sessions, last page": "sessions?offset=450",
    "session": "session/s7",
    "memories": "memories",
    "memories, last page": "memories?offset=9950",
    "memories of a kind": "memories?kind=correction&state=active",
    "memory": "memory/m0000000005",
    "how long it is told": "memory/m0000000005/fading",
    "search": "search?q=server+release+build",
    "hits while typing": "search/hits?q=server+re",
    "told": "told",
    "dreams": "dreams",
    "review": "review",
}


def spent_ms(processes: list[psutil.Process]) -> float:
    """Processor time of some processes so far."""
    return 1000 * sum(sum(process.cpu_times()[:2]) for process in processes)


def cost(viewer: Viewer, processes: list[psutil.Process], path: str) -> tuple[float, int]:
    """(processor ms, bytes) of one page."""
    before = spent_ms(processes)
    answer = viewer.get(path)
    assert answer.status == 200, (path, answer.words[:300])
    return spent_ms(processes) - before, len(answer.data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    figures: dict[str, float] = {}
    with own_machine(Path("/tmp")) as machine:
        settled(big_store.build(machine.home, turns=chosen.turns, memories=chosen.memories))
        machine.paths.config_file.parent.mkdir(parents=True, exist_ok=True)
        machine.paths.config_file.write_text(CONFIG)
        daemon = psutil.Process(machine.start(constants=RESTING).pid)
        machine.status()
        wait_until_idle(daemon)
        for name, path in PAGES.items():
            firsts, size = list[float](), 0
            for _ in range(VIEWERS):
                viewer = open_viewer(machine)
                assert viewer.enter().status == 303
                processes = [psutil.Process(viewer.process.pid), daemon]
                first, size = cost(viewer, processes, path)
                firsts.append(first)
                again = statistics.median(cost(viewer, processes, path)[0] for _ in range(TIMES))
                end_viewer(viewer)
            first = statistics.median(firsts)
            figures |= {f"{name}, first ms": round(first), f"{name}, again ms": round(again), f"{name}, bytes": size}
            if not chosen.json:
                print(f"{name:24}{first:8.0f} ms first{again:8.0f} ms again{size:10,} bytes", flush=True)
    if chosen.json:
        firsts, sizes = (
            [value for name, value in figures.items() if name.endswith(end)] for end in ("first ms", "bytes")
        )
        told = figures["how long it is told, first ms"]
        print(json.dumps({**figures, "slowest_ms": max(firsts), "largest_bytes": max(sizes), "told_ms": told}))
        return 0
    slow = [name for name, value in figures.items() if value > (TARGET_BYTES if name.endswith("bytes") else TARGET_MS)]
    for name in slow:
        print(f"above its target: {name}", file=sys.stderr)
    return int(bool(slow))


def wait_until_idle(process: psutil.Process) -> None:
    """Returns once a process has worked less than 50 ms in each of four looks, 1 s apart: a daemon that starts reads its home."""
    was, quiet, end = spent_ms([process]), 0, time.monotonic() + PASS_S
    while quiet < 4:
        assert time.monotonic() < end, f"the daemon still works after {PASS_S:.0f} s"
        time.sleep(1)
        now = spent_ms([process])
        was, quiet = now, quiet + 1 if now - was < 50 else 0


if __name__ == "__main__":
    raise SystemExit(main())
