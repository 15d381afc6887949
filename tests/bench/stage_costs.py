"""What each stage of an import costs beside capture: CPU, time, and how long its longest write kept others waiting.

In this process and with nothing else running, so that the processor's time is the stages' own. What capture wrote into
the log is moved into the database when it ends, and counts to it; what the others wrote counts to the last of them.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from csmd.config import default_paths, load
from csmd.daemon import stages
from csmd.daemon.context import Task, now_iso
from csmd.daemon.jobs import Background
from csmd.embedding.worker_client import Embedder
from csmd.store import files
from csmd.store.core import Store
from csmd.store.sqlite import Rows

CAPTURE, DISTILL = "capture", "distill"


@dataclass(slots=True)
class Cost:
    """One stage's seconds of CPU and of time, and its longest write in milliseconds of CPU."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    longest_ms: float = 0.0
    writes: int = 0


def costs(tree: Path, after: Callable[[Store], None] = lambda _: None) -> dict[str, Cost]:
    """Imports a tree in a home of its own, stage by stage; `after` is given the store at its end."""
    found: dict[str, Cost] = defaultdict(Cost)
    at = CAPTURE
    submit = Store.submit

    def timed(store: Store, run: Callable[[Rows], Any], *, wait: bool = False) -> Any:
        cost = found[at]

        def one(rows: Rows) -> Any:
            began = time.thread_time()
            try:
                return run(rows)
            finally:
                cost.writes += 1
                cost.longest_ms = max(cost.longest_ms, (time.thread_time() - began) * 1000)

        return submit(store, one, wait=wait)

    def carried(name: str, step: stages.Step) -> stages.Step:
        def one(known: stages.Stages, force: bool) -> int:
            nonlocal at
            was, at = at, name
            with Clock(found[name], found[was]):
                looked = step(known, force)
            at = was
            return looked

        return one

    steps = {name: carried(name, step) for name, step in stages.AFTER_DISTILLING.items()}
    with tempfile.TemporaryDirectory(prefix="csmd-bench-", dir="/tmp") as home:
        config = load(paths=default_paths({"HOME": home, "CSMD_HOME": f"{home}/csmd"}))
        for folder in (config.paths.home, config.paths.run_dir, config.paths.spool, config.paths.models):
            files.make_private(folder)
        store = Store(config.paths.database, now=now_iso())
        embedder = Embedder(None, idle_s=60, environment={})
        try:
            background = Background(store, config, embedder)
            job = background.context.submit(Task(id="bench", kind="import", path=str(tree), with_vectors=False))
            with mock.patch.object(Store, "submit", timed), mock.patch.object(stages, "AFTER_DISTILLING", steps):
                while job.state in ("waiting", "running"):
                    was, at = at, CAPTURE if job.progress.get("step", "reading") == "reading" else DISTILL
                    if at != was:  # each pays for its own log
                        with Clock(found[CAPTURE]):
                            store.checkpoint(truncate=True)
                    with Clock(found[at]):
                        background.tasks.step()
            after(store)
        finally:
            embedder.close()
            store.close()
    return dict(found)


class Clock:
    """Adds what is measured inside to one cost, and takes it from the one around it."""

    def __init__(self, cost: Cost, around: Cost | None = None) -> None:
        self.cost, self.around = cost, around

    def __enter__(self) -> None:
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        cpu, wall = time.process_time() - self.cpu, time.perf_counter() - self.wall
        self.cost.cpu_s, self.cost.wall_s = self.cost.cpu_s + cpu, self.cost.wall_s + wall
        if self.around:
            self.around.cpu_s, self.around.wall_s = self.around.cpu_s - cpu, self.around.wall_s - wall


def table(found: dict[str, Cost]) -> list[str]:
    """The costs as rows of a markdown table, at its end what is not capture together."""
    capture = found[CAPTURE]
    rest = [cost for name, cost in found.items() if name != CAPTURE]
    total = Cost(sum(c.cpu_s for c in rest), sum(c.wall_s for c in rest), max(c.longest_ms for c in rest), sum(c.writes for c in rest))  # fmt: skip
    rows = ["| stage | CPU | to capture | time | longest write | writes |", "|---|---|---|---|---|---|"]
    for name, cost in [*found.items(), ("all after capture", total)]:
        share = cost.cpu_s / capture.cpu_s
        rows.append(
            f"| {name} | {cost.cpu_s:.2f} s | {share:.2f} | {cost.wall_s:.2f} s | {cost.longest_ms:.0f} ms | {cost.writes} |"
        )
    return rows
