"""Imports a tree of transcripts into a home of its own and prints what it cost, as a markdown table.

    python tests/bench/bench_import.py TREE [--home DIR] [--model DIR] [--stages]

Peak memory is sampled every 50 ms for the daemon and its embedding worker (resident, psutil).
With --stages instead what each stage costs beside capture, in this process: nothing may run by its side.
With --home the result stays there and the daemon is left running, for `tests/bench/quality.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import psutil
import stage_costs

CSMD = [sys.executable, "-m", "csmd"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--json", action="store_true", help="MB/s and the daemon's peak in MB alone")
    args = parser.parse_args()
    if args.stages:
        print("\n".join(stage_costs.table(stage_costs.costs(args.tree))))
        return 0
    home = args.home or Path(tempfile.mkdtemp(prefix="csmd-bench-", dir="/tmp"))
    environment = {**os.environ, "CSMD_HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "assistant")}

    def csmd(*words: str) -> dict:
        done = subprocess.run([*CSMD, *words, "--json"], env=environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    size = sum(path.stat().st_size for path in args.tree.rglob("*.jsonl"))
    daemon = csmd("start")["daemon"]["pid"]
    peaks = Peaks(daemon)
    peaks.start()
    words = csmd("import", str(args.tree), "--no-vectors")
    again = csmd("import", str(args.tree), "--no-vectors")
    vectors = {"took_s": 0.0, "vectors": 0}
    if args.model:
        csmd("model", "add", str(args.model))
        vectors = csmd("sync")
        again_vectors = csmd("import", str(args.tree))
        again = {key: again[key] + again_vectors[key] for key in ("turns_new", "memories_new", "vectors")}
    peaks.stop()
    status = csmd("status")
    storage = status["storage"]["database_bytes"] + status["storage"]["wal_bytes"]
    rows = [
        ("transcripts", f"{words['files']} files, {size / 1e6:.1f} MB"),
        ("captured, distilled, believed", f"{words['took_s']:.1f} s, {size / 1e6 / words['took_s']:.1f} MB/s"),
        ("turns, memories", f"{words['turns_new']}, {words['memories_new']}"),
        ("lines that could not be read, secrets kept out", f"{words['bad_lines']}, {words['redactions']}"),
        ("vectors", f"{status['counts']['vectors']} in {vectors['took_s']:.1f} s"),
        (
            "a second import adds",
            f"{again['turns_new']} turns, {again['memories_new']} memories, {again['vectors']} vectors",
        ),
        ("database", f"{storage / 1e6:.1f} MB"),
        ("peak resident memory: daemon, worker", f"{peaks.daemon_rss / 1e6:.0f} MB, {peaks.worker_rss / 1e6:.0f} MB"),
    ]
    if args.json:
        figures = {"mb_per_s": size / 1e6 / words["took_s"], "rss_mb": peaks.daemon_rss / 1e6}
        print(json.dumps(figures))
    else:
        print("| what | figure |\n|---|---|")
        for name, figure in rows:
            print(f"| {name} | {figure} |")
    if not args.home:
        csmd("stop")
        shutil.rmtree(home)
    return 0


class Peaks(threading.Thread):
    """Samples the daemon's and its worker's resident memory."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self.process = psutil.Process(pid)
        self.daemon_rss = self.worker_rss = 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.05):
            try:
                self.daemon_rss = max(self.daemon_rss, self.process.memory_info().rss)
                for child in self.process.children():
                    self.worker_rss = max(self.worker_rss, child.memory_info().rss)
            except psutil.NoSuchProcess:
                continue

    def stop(self) -> None:
        self.done.set()
        self.join()


if __name__ == "__main__":
    sys.exit(main())
