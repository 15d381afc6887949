"""Measures how a home behaves as it grows: bytes of a turn, first answer after a start, a prompt's hook, a dream.

    python tests/bench/bench_size.py [--sizes 1000,10000,100000] [--homes DIR] [--json]

A size is a number of memories, with ten turns for each (tests/bench/big_store.py). Homes are kept in --homes, or else in a
directory that is removed. The real daemon runs without a model, its database not in the file cache when it starts:

    bytes      of the database per turn
    first_s    from the start of the process to the answer of a first search
    hook_ms    p95 of prompts with a hook's deadline; `told` of QUESTIONS prompts got something
    dream_s    processor time of the daemon during a first dream, `again_s` during the third, when nothing has changed since
    rss_mb     its resident memory afterwards

A dream that takes longer than LIMIT_S ends the bench with an error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import bench_search
import psutil
from big_store import Words, build, place

from csmd import client
from csmd.config import default_paths
from csmd.errors import CsmdError
from csmd.paths import Paths
from csmd.store.sqlite import open_rows

QUESTIONS, EVERY_S, LIMIT_S = 40, 0.01, 900.0
#: Only the dream is measured: big_store.py writes turns that were never distilled.
CONFIG = "stages: {distill: false, candidates: false, promote: false}\nbackup: {every_h: 0}\n"


def measure(home: Path, size: int) -> dict[str, float]:
    """The figures of one size."""
    database = build(home, turns=10 * size, memories=size)
    with open_rows(database, readonly=True) as rows:
        questions = bench_search.questions(rows, Words(7), QUESTIONS, mark="?")
    prompts = [question.text for question in questions]
    _, hook_ms, _, told = bench_search.hooks(home, prompts, patience_ms=bench_search.HOOK_MS, cold=True)
    (home / "config.yaml").write_text(CONFIG)
    bench_search.drop_from_memory(database)
    with daemon(home) as (paths, process):
        first_s = search_until_answered(paths, process, prompts[0])
        dream_s, _, again_s = (dream(paths, process) for _ in range(3))
        rss = process.memory_info().rss
    return {
        "memories": size, "bytes": database.stat().st_size / size / 10, "first_s": first_s, "hook_ms": hook_ms, "told": told,
        "dream_s": dream_s, "again_s": again_s, "rss_mb": rss / 1e6,
    }  # fmt: skip


@contextmanager
def daemon(home: Path) -> Iterator[tuple[Paths, psutil.Process]]:
    """A daemon of a home for as long as the block runs."""
    environment = bench_search.environment_of(home)
    child = subprocess.Popen([sys.executable, "-m", "csmd.daemon"], env=environment)
    try:
        yield default_paths(environment), psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait()


def search_until_answered(paths: Paths, process: psutil.Process, query: str) -> float:
    """Seconds from the start of the daemon to the answer of a search."""
    while True:
        try:
            client.call(paths, "csm_memory_search", {"query": query, "project": place(1), "limit": 10})
            return time.time() - process.create_time()
        except CsmdError:  # the daemon does not listen yet
            if time.time() - process.create_time() > LIMIT_S:
                raise
            time.sleep(EVERY_S)


def dream(paths: Paths, process: psutil.Process) -> float:
    """Runs a dream to its end; the processor seconds of the daemon meanwhile."""
    began, used = time.monotonic(), sum(process.cpu_times()[:2])

    def check(_: object) -> None:
        if time.monotonic() - began > LIMIT_S:
            raise SystemExit(f"the dream takes longer than {LIMIT_S:.0f} s")

    client.run_job(paths, "csm_dream_run", {"force": True}, watch=check)
    return sum(process.cpu_times()[:2]) - used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--homes", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    homes = args.homes or Path(tempfile.mkdtemp(prefix="csmd-bench-", dir="/tmp"))
    try:
        figures = [measure(homes / f"m{size}", size) for size in map(int, args.sizes.split(","))]
    finally:
        if args.homes is None:
            shutil.rmtree(homes)
    for of_size in figures:
        rounded = {name: round(value, 2) for name, value in of_size.items()}
        print(json.dumps(rounded) if args.json else "  ".join(f"{name} {value:g}" for name, value in rounded.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
