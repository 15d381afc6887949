"""Measures what takes time, and fails where something got twice as slow as recorded.

    python tests/bench/run_all.py [--large] [--record] [--only BENCH]

It runs the benches of BENCHES one after the other, each a program that prints one JSON object, and compares each figure with
its limit: a figure by its limit is the ratio that counts, for it is about the same on any machine where the limit is another
figure of the same run. `--record`, on a machine that has nothing else to do, writes docs/speed.json and docs/sizes.svg; else the
exit code is 1 where a ratio is more than twice the recorded one. `--large` adds 100,000 memories. Some benches need CSMD_EVAL (a
labelled set) or CSMD_TEST_MODEL (an embedding model) and are left out, which is said, without.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import charts
import psutil

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent.parent / "docs"
RECORDED, SIZES = DOCS / "speed.json", DOCS / "sizes.svg"
TWICE = 2.0

Found = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: of which bench and key, its unit and limit; a limit may be made of other figures of the same run."""

    what: str
    bench: str
    key: str
    unit: str
    limit: float | Callable[[Found], float]
    is_rate: bool = False
    """More is better."""

    @property
    def size(self) -> str:
        """At which size, "" for what has one."""
        return self.bench.removeprefix("graph ") if self.bench.startswith("graph ") else ""

    def ratio(self, found: Found) -> float:
        """The figure by its limit: 1 or less is as wanted."""
        value, limit = found[self.key], self.limit_in(found)
        return limit / value if self.is_rate else value / limit

    def limit_in(self, found: Found) -> float:
        return self.limit(found) if callable(self.limit) else self.limit


EVAL, MODEL = os.environ.get("CSMD_EVAL", ""), os.environ.get("CSMD_TEST_MODEL", "")
#: Name -> the words of its command; one with an empty word needs what is not there.
BENCHES: dict[str, tuple[str, ...]] = {
    "hook": ("bench_hook.py", "--runs", "60"),
    "acks": ("bench_acks.py", "--idle", "0"),
    "import": ("bench_import.py", EVAL and f"{EVAL}/transcripts"),
    "vectors": ("bench_vectors.py", EVAL and f"{EVAL}/transcripts", MODEL),
    "redact": ("bench_redact.py", EVAL and f"{EVAL}/transcripts"),
    "graph 1k": ("bench_graph.py", "--size", "1000"),
    "graph 10k": ("bench_graph.py", "--size", "10000"),
    "graph 10k, 20 projects": ("bench_graph.py", "--size", "10000", "--projects", "20"),
}
LARGE: dict[str, tuple[str, ...]] = {
    "graph 100k": ("bench_graph.py", "--size", "100000"),
    "graph 100k, 20 projects": ("bench_graph.py", "--size", "100000", "--projects", "20"),
}
#: What seed 003 promises of a graph, in microseconds; (name, key, limit).
GRAPH = (
    ("store, by a bare FTS5 insert", "store_us", lambda found: 3 * found["fts_us"]), ("store in bulk", "bulk_us", 86.0),
    ("tag", "tag_us", 100.0), ("link", "link_us", 200.0), ("by topic", "by_topic_us", 77.0),
    ("recall of ten", "recall_us", 98.0), ("stats", "stats_us", 480.0),
)  # fmt: skip
FIGURES: tuple[Figure, ...] = (
    Figure("hook, daemon up, by a bare interpreter", "hook", "up", "times", 1.6),
    Figure("hook, daemon down, by a bare interpreter", "hook", "down", "times", 1.6),
    Figure("`csmd status`, by a bare interpreter", "hook", "status", "times", 3.0),
    Figure("processor for an event, 8 clients", "acks", "event_cpu", "ms", 0.4),
    Figure("ack, 1 client, p99, by 3 fsyncs", "acks", "one_99", "ms", lambda found: 3 * found["fsync_50"]),
    Figure("ack, 8 clients, p99, by 3 fsyncs and 8 events", "acks", "eight_99", "ms",
           lambda found: 3 * found["fsync_50"] + 8 * found["event_cpu"]),
    Figure("import without vectors", "import", "mb_per_s", "MB/s", 25.0, is_rate=True),
    Figure("import, peak memory of the daemon", "import", "rss_mb", "MB", 80.0),
    Figure("vectors of passages of 45 words", "vectors", "per_s", "a second", 150.0, is_rate=True),
    Figure("memory of the worker", "vectors", "worker_rss_mb", "MB", 300.0),
    Figure("taking out secrets", "redact", "mb_per_s", "MB/s", 20.0, is_rate=True),
    *(
        Figure(f"{what}, {bench.removeprefix('graph ')}", bench, key, "us", limit)
        for bench in (*BENCHES, *LARGE) if bench.startswith("graph") for what, key, limit in GRAPH
    ),
)  # fmt: skip


def measure(words: tuple[str, ...]) -> Found:
    """The figures of a bench, from the last line that it prints."""
    command = [sys.executable, str(HERE / words[0]), *words[1:], "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def sizes(found: Mapping[str, Found]) -> str:
    """How the graph's operations grow with the number of memories in one project."""
    names = {1000: "graph 1k", 10_000: "graph 10k", 100_000: "graph 100k"}
    there = {size: found[name] for size, name in names.items() if name in found}
    lines = {what.partition(",")[0]: [one[key] for one in there.values()] for what, key, _ in GRAPH}
    return charts.draw([charts.Chart("microseconds by memories", list(there), lines, "memories", is_log=True)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", choices=[*BENCHES, *LARGE], action="append", default=[])
    chosen = parser.parse_args()
    before = json.loads(RECORDED.read_text())["figures"] if RECORDED.exists() else {}
    busy = psutil.cpu_percent(3.0)
    found: dict[str, Found] = {}
    for name, words in (BENCHES | LARGE if chosen.large else BENCHES).items():
        if not all(words):
            print(f"{name}: left out, for CSMD_EVAL or CSMD_TEST_MODEL names nothing", flush=True)
        elif not chosen.only or name in chosen.only:
            print(f"{name} ...", file=sys.stderr, flush=True)
            found[name] = measure(words)
    rows, worse = {}, []
    for figure in (one for one in FIGURES if one.bench in found):
        values = found[figure.bench]
        value, limit, ratio = values[figure.key], figure.limit_in(values), figure.ratio(values)
        rows[figure.what] = {
            "value": round(value, 3),
            "unit": figure.unit,
            "limit": round(limit, 3),
            "ratio": round(ratio, 2),
        }
        was = before.get(figure.what, {}).get("ratio")
        if was and ratio > TWICE * was:
            worse.append(figure.what)
        note = f", recorded {was:.2f}" if was else ""
        print(f"{figure.what:48}{value:>12,.2f} {figure.unit:8} {ratio:8.2f} of its limit{note}")
    print(f"the machine was {busy:.0f} % busy before")
    if chosen.record:
        record = {
            "at": time.strftime("%Y-%m-%d"),
            "cores": os.cpu_count(),
            "busy_percent": round(busy),
            "figures": before | rows,
        }
        RECORDED.write_text(json.dumps(record, indent=1) + "\n")
        if len(found.keys() & {"graph 1k", "graph 10k", "graph 100k"}) > 1:
            SIZES.write_text(sizes(found))
        return 0
    for what in worse:
        print(f"more than twice as slow as recorded: {what}", file=sys.stderr)
    return int(bool(worse))


if __name__ == "__main__":
    raise SystemExit(main())
