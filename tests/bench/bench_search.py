"""What search and recall take in stores of several sizes, and the hooks that inject, with no embedding worker up.

    python tests/bench/bench_search.py [--sizes 1000,10000,100000] [--questions 60] [--homes DIR] [--only-hooks]

Each size is a number of memories; there are ten turns for each, all of them searched (tests/bench/big_store.py). The
store is made once and kept in --homes (a million turns take some minutes and 1.5 GB), else in a directory that goes.
Search and recall run in this process on a reader's connection, by words and with a made-up vector: what embedding takes
is another's time. Hooks are UserPromptSubmit events to the real daemon of that home over its socket; no model is
installed, so words alone answer: once with seconds of patience, once with a hook's, once with a hook's from a cold file.
Milliseconds; the exit code is 1 when a hook's p95 is above --most.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import zmq
from big_store import MODEL, Words, build, place

from csmd import wire
from csmd.config import Settings, default_paths
from csmd.recall import prompt as prompts
from csmd.recall import results, stage
from csmd.store import cursors, projects
from csmd.store.sqlite import Rows, opened

#: Words of a question and of a prompt, in turn.
LENGTHS = (4, 8, 16, 40)
#: What a hook has left of its 180 ms when it asks, and how long the daemon has after its start for what it does of itself.
HOOK_MS, REHEARSED_S = 170, 8.0
#: What is stored is not distilled: that would be another bench's time.
#: No stage has anything to do, and no backup of a gigabyte is made meanwhile.
CONFIG = "stages: {distill: false, candidates: false, promote: false, dream: false}\nbackup: {every_h: 0}\n"


def measured(asked: list[str], run: Callable[[str], Any]) -> tuple[float, float, float]:
    """(p50, p95, the processor's time for one) in milliseconds; the first question warms the caches."""
    run(asked[0])
    took, busy = [], time.process_time()
    for question in asked:
        began = time.perf_counter()
        run(question)
        took.append((time.perf_counter() - began) * 1000)
    busy = (time.process_time() - busy) * 1000 / len(asked)
    return percentile(took, 0.5), percentile(took, 0.95), busy


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def reads(
    database: Path, words: Words, asked: list[str], questions: list[str]
) -> list[tuple[str, tuple[float, float, float]]]:
    """What each way of asking takes."""
    settings, made = Settings(), iter(words.vectors(len(asked) * 8 + 64))

    def embed(_: str) -> tuple[bytes, str]:
        return next(made), MODEL

    def search(rows: Rows, where: list[int] | None, vector: bool) -> Callable[[str], Any]:
        return lambda query: results.find(
            rows, query, projects=where, kind="all", limit=10, embed=embed if vector else None
        )

    def recall(rows: Rows, where: list[int], vector: bool) -> Callable[[str], Any]:
        return lambda prompt: prompts.recall(
            rows, places=where, session_id="s1", prompt=prompt, floor=settings.recall_floor,
            max_tokens=settings.recall_max_tokens, max_items=settings.recall_max_items, embed=embed if vector else None, key=b"none is looked for",
        )  # fmt: skip

    with opened(database, readonly=True) as rows:
        here = stage.scopes(rows, place(1))
        return [
            ("search here, words", measured(asked, search(rows, here, False))),
            ("search here, words and vectors", measured(asked, search(rows, here, True))),
            ("search everywhere, words", measured(asked, search(rows, None, False))),
            ("search everywhere, words and vectors", measured(asked, search(rows, None, True))),
            ("recall here, words", measured(questions, recall(rows, here, False))),
            ("recall here, words and vectors", measured(questions, recall(rows, here, True))),
        ]


def settled(database: Path) -> None:
    """Has the stages past everything, as in a store that grew over years: nothing of it waits beside the prompts."""
    with opened(database, readonly=False) as rows:
        newest = int(rows.value("select max(seq) from memories"))
        for subject, position in (("memories", newest), ("sweep", 0), ("day", projects.active_day(rows, 0))):
            cursors.move_cursor(rows, "upkeep", subject, position)
        rows.run("delete from topics_due")


def hooks(home: Path, asked: list[str], *, patience_ms: int, cold: bool = False) -> tuple[float, float, float, int]:
    """(p50, p95, the daemon's processor time for one) of prompts sent as a hook sends them, and how many were told something.

    `cold`: nothing of the database is in memory when the daemon starts. What it does of itself then is waited for, but
    the first prompt is sent at once.
    """
    (home / "config.yaml").write_text(CONFIG)
    settled(home / "csmd.db")
    environment = {**os.environ, "CSMD_HOME": str(home), "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "none")}
    paths = default_paths(environment)

    def csmd(*arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "csmd", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
        )

    if cold:
        descriptor = os.open(home / "csmd.db", os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    csmd("start")
    context = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    try:
        dealer.connect(f"ipc://{paths.endpoint.read_text().strip()}")
        took, told, busy = [], 0, 0.0
        daemon = psutil.Process(int(wire.loads(paths.instance.read_bytes())["pid"]))
        for number, prompt in enumerate(asked[:1] + asked):
            if number == 1:
                time.sleep(REHEARSED_S)
                busy = sum(daemon.cpu_times()[:2])
            body = {
                "session_id": f"bench-{number}",
                "cwd": place(1),
                "hook_event_name": "UserPromptSubmit",
                "prompt": prompt,
            }
            request = wire.Request(
                id=os.urandom(16).hex(), verb="event", deadline_ms=patience_ms, host="claude", name="UserPromptSubmit",
                body=wire.dumps(body).encode(),
            )  # fmt: skip
            began = time.perf_counter()
            dealer.send_multipart(wire.encode_request(request))
            if not dealer.poll(20_000):
                raise SystemExit("the daemon does not answer")
            status, answer = dealer.recv_multipart()
            took.append((time.perf_counter() - began) * 1000)
            told += status == b"ok" and b"csmd-recall" in answer
        busy = (sum(daemon.cpu_times()[:2]) - busy) * 1000 / len(asked)
        print(f"  the first prompt {took[0]:.0f} ms", flush=True)
        return percentile(took[1:], 0.5), percentile(took[1:], 0.95), busy, told
    finally:
        dealer.close(linger=0)
        context.term()
        csmd("stop")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--homes", type=Path)
    parser.add_argument("--only-hooks", action="store_true")
    parser.add_argument("--most", type=float, default=250.0)
    args = parser.parse_args()
    homes = args.homes or Path(tempfile.mkdtemp(prefix="csmd-bench-", dir="/tmp"))
    slow = False
    try:
        for size in map(int, args.sizes.split(",")):
            home = homes / f"m{size}"
            database = build(home, turns=10 * size, memories=size)
            words = Words(7)
            asked = [words.texts(1, (LENGTHS[number % len(LENGTHS)], 0.2))[0] for number in range(args.questions)]
            print(
                f"{size} memories, {10 * size} turns, {database.stat().st_size >> 20} MB; load {psutil.getloadavg()[0]:.1f}"
            )
            # Of what is no question nothing is looked for but rules: that would be another bench.
            questions = [f"which {one}?" for one in asked]
            for name, (half, most, busy) in () if args.only_hooks else reads(database, words, asked, questions):
                print(f"  {name:38} p50 {half:7.1f}  p95 {most:7.1f}    processor {busy:6.1f}", flush=True)
            for name, patience_ms, cold in (
                ("a prompt, no worker, patient", 5000, False),
                ("as its hook waits", HOOK_MS, False),
                ("and nothing in memory at first", HOOK_MS, True),
            ):
                half, most, busy, told = hooks(home, questions, patience_ms=patience_ms, cold=cold)
                slow = slow or most > args.most
                print(
                    f"  {name:38} p50 {half:7.1f}  p95 {most:7.1f}  processor {busy:6.1f} ({told} of {len(asked)} told)",
                    flush=True,
                )
    finally:
        if args.homes is None:
            shutil.rmtree(homes)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
