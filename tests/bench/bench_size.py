"""How a home behaves as it grows: bytes of a turn, the first answer after a start, a prompt's hook, a dream.

    python tests/bench/bench_size.py [--sizes 1000,10000,100000] [--homes DIR] [--json]

Each size is a number of memories; there are ten turns for each (tests/bench/big_store.py). Homes are kept in --homes, else in
a directory that goes. The real daemon of each home, without a model; nothing of the database is in memory when it starts:

    bytes      of the database for a turn
    first_s    from the start of the process to the answer of a first search
    hook_ms    p95 of prompts sent with a hook's patience; `told` how many of them were told something
    dream_s    processor time of the daemon for a dream
    rss_mb     memory of the daemon after all that
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

QUESTIONS, LOOK_S = 40, 0.01
#: Nothing but the dream: what is said in a made home was not distilled.
CONFIG = "stages: {distill: false, candidates: false, promote: false}\nbackup: {every_h: 0}\n"


def measure(home: Path, size: int) -> dict[str, float]:
    """The figures of one size."""
    database = build(home, turns=10 * size, memories=size)
    with open_rows(database, readonly=True) as rows:
        asked = [one.text for one in bench_search.questions(rows, Words(7), QUESTIONS, mark="?")]
    _, most, _, told = bench_search.hooks(home, asked, patience_ms=bench_search.HOOK_MS, cold=True)
    figures = {"memories": size, "bytes": database.stat().st_size / size / 10, "hook_ms": most, "told": told}
    (home / "config.yaml").write_text(CONFIG)
    bench_search.drop_from_memory(database)
    began = time.monotonic()
    with daemon(home) as (paths, process):
        search(paths, asked[0])
        figures["first_s"] = time.monotonic() - began
        used = sum(process.cpu_times()[:2])
        client.work(paths, "csm_dream_run", {"force": True}, watch=lambda _: None)
        figures["dream_s"] = sum(process.cpu_times()[:2]) - used
        figures["rss_mb"] = process.memory_info().rss / 1e6
    return figures


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


def search(paths: Paths, asked: str) -> None:
    """Asks until it is answered."""
    while True:
        try:
            client.call(paths, "csm_memory_search", {"query": asked, "project": place(1), "limit": 10})
            return
        except CsmdError:  # it does not listen yet
            time.sleep(LOOK_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--homes", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    homes = args.homes or Path(tempfile.mkdtemp(prefix="csmd-bench-", dir="/tmp"))
    try:
        found = [measure(homes / f"m{size}", size) for size in map(int, args.sizes.split(","))]
    finally:
        if args.homes is None:
            shutil.rmtree(homes)
    for one in found:
        shown = {name: round(value, 2) for name, value in one.items()}
        print(json.dumps(shown) if args.json else "  ".join(f"{name} {value:g}" for name, value in shown.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
