"""What an acknowledgement takes while the daemon dreams, beside those before and after it, in one run.

    python tests/bench/bench_dream_acks.py [--memories 4000] [--projects 8] [--rounds 5] [--doubles 300] [--home DIR]

The real daemon over a store of sentences of random words (random_memories.py). Before each round some memories are made
doubles of others. One client (bench_acks.py's, connected) reports every 20 ms without a dream, then while `csmd dream run
--force` goes on, then without one again. One that began by itself would rest, for a session is at work: that it goes on
all the same is the worst that can be. In the end, with a client that reports every 50 ms, as many hooks of several
sessions come at most, the same once more. (Beside one that never pauses no dream goes on at all: what comes first goes first.)
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench_acks import Clients, percentile
from random_memories import NOW, fill

from csmd import client
from csmd.config import default_paths
from csmd.paths import Paths
from csmd.store.core import Store
from csmd.store.sqlite import open_rows

SETTLE_S = 3.0
PACES_S = (0.02, 0.05)
ALONE = 400


def doubled(database: Path, count: int, *, skip: int) -> None:
    """Makes memories doubles of others of their project, which nobody has merged yet."""
    with open_rows(database, readonly=False) as rows:
        alive = rows.all(
            "select project_seq, id, text from memories where tier <> 'archive' and superseded_by = '' "
            "order by project_seq, seq"
        )
        pairs = [pair for pair in zip(alive[::2], alive[1::2], strict=False) if pair[0][0] == pair[1][0]]
        for one, other in pairs[skip : skip + count]:
            rows.run("update memories set text = :text where id = :id", text=f"the {one[2]}", id=other[1])


def reported(one: Clients, go_on: Callable[[int], bool], pace_s: float) -> list[float]:
    """Milliseconds of each acknowledgement, for as long as there is a reason."""
    took: list[float] = []
    while go_on(len(took)):
        took += one.report(1)
        time.sleep(pace_s)
    return took


class Watched:
    """A job that is looked at after every so many events: whether it goes on, and its result when it has ended."""

    def __init__(self, paths: Paths, job: str, *, every: int) -> None:
        self.paths, self.job, self.every = paths, job, every
        self.result: dict[str, Any] = {}

    def __call__(self, sent: int) -> bool:
        if sent % self.every == 0 and not self.result:
            state = client.call(self.paths, "csm_job", {"id": self.job})
            if state["state"] == "failed":
                raise SystemExit(f"the dream failed: {state['error']}")
            self.result = state["result"] if state["state"] == "done" else {}
        return not self.result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=4000)
    parser.add_argument("--projects", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--doubles", type=int, default=300, help="before each round")
    parser.add_argument("--home", type=Path, help="where the home is made; its file system is the one measured")
    chosen = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="csmd-bench-", dir=chosen.home or "/tmp"))
    environment = {**os.environ, "CSMD_HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "assistant")}
    paths = default_paths(environment)

    def csmd(*words: str) -> Any:
        command = [sys.executable, "-m", "csmd", *words, "--json"]
        return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)

    one = None
    try:
        store = Store(paths.database, now=NOW)
        store.write(lambda rows: fill(rows, chosen.memories, chosen.projects))
        store.close()
        csmd("start")
        one = Clients((home / "endpoint").read_text().strip(), 1)
        one.report(50)
        for pace_s in PACES_S:
            alone: list[float] = []
            during: list[float] = []
            dreams: list[dict[str, Any]] = []
            for number in range(chosen.rounds):
                doubled(paths.database, chosen.doubles, skip=number * chosen.doubles)
                time.sleep(SETTLE_S)
                alone += reported(one, lambda sent: sent < ALONE // 2, pace_s)
                job = client.call(paths, "csm_dream_run", {"force": True})["job"]
                watched = Watched(paths, job, every=5)
                during += reported(one, watched, pace_s)
                dreams.append(watched.result)
                alone += reported(one, lambda sent: sent < ALONE // 2, pace_s)
            took = sum(dream["took_s"] for dream in dreams) / len(dreams)
            changes = sum(dream["changes"] for dream in dreams) / len(dreams)
            print(
                f"\n{len(dreams)} dreams over {chosen.memories} memories, {changes:.0f} changes in {took:.2f} s each; events every {pace_s * 1000:.0f} ms:"
            )
            print("| acks | n | p50, ms | p99, ms | most, ms |\n|---|---|---|---|---|")
            for name, found in (("without a dream", alone), ("while it dreams", during)):
                values = [percentile(found, 0.5), percentile(found, 0.99), max(found)]
                print(f"| {name} | {len(found)} | {' | '.join(f'{value:.2f}' for value in values)} |")
            ratios = [percentile(during, share) / percentile(alone, share) for share in (0.5, 0.99)]
            print(f"p50 {ratios[0]:.2f} times, p99 {ratios[1]:.2f} times")
    finally:
        if one is not None:
            one.close()
        csmd("stop")
        shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
