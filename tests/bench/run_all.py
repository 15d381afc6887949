"""Measures what takes time, and fails where something got twice as slow as recorded.

    python tests/bench/run_all.py [--large] [--record] [--only BENCH]

It runs the benches of BENCHES one after the other, each a program that prints one JSON object, and compares each figure with
its limit: a figure by its limit is the ratio that counts, for it is about the same on any machine where the limit is another
figure of the same run. `--record`, on a machine that has nothing else to do, writes docs/speed.json and docs/sizes.svg, and
`python docs/generate.py` the tables in docs/benchmarks.md; else the exit code is 1 where a ratio is more than twice the recorded
one, also when it is measured again. `--large` adds homes of up to 100,000 memories and a million turns: twenty minutes, and
3 GB. Some benches need CSMD_EVAL (a labelled set) or CSMD_TEST_MODEL (an embedding model) and are left out, which is said,
without.
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
from typing import Any

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
        """At which size it is measured; "" where there is only one."""
        return self.bench.partition(" ")[2]

    @property
    def name(self) -> str:
        """What is measured, and at which size."""
        return f"{self.what}, {self.size}" if self.size else self.what

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
    "viewer": ("bench_web.py",),
    "dream 10k": ("bench_dream.py", "--homes", "/tmp/csmd-bench-homes", "--sizes", "10000"),
    "dream 30k": ("bench_dream.py", "--homes", "/tmp/csmd-bench-homes", "--sizes", "30000"),
    "dream 100k": ("bench_dream.py", "--homes", "/tmp/csmd-bench-homes", "--sizes", "100000"),
    "home 1k": ("bench_size.py", "--sizes", "1000"),
    "home 10k": ("bench_size.py", "--sizes", "10000"),
    "home 100k": ("bench_size.py", "--sizes", "100000"),
}
SIZED = {1000: "1k", 10_000: "10k", 30_000: "30k", 100_000: "100k"}
#: What is measured of a graph and of a home at several sizes; (name, key, unit, limit).
OF_SIZES: dict[str, tuple[tuple[str, str, str, float], ...]] = {
    "graph": (
        ("store, by a bare FTS5 insert", "store_by_fts", "times", 3.0),
        ("store, by an FTS5 insert that is written", "store_by_written", "times", 3.0), ("store", "store_us", "us", 30.0),
        ("store in bulk", "bulk_us", "us", 86.0), ("tag", "tag_us", "us", 100.0), ("link", "link_us", "us", 200.0),
        ("by topic", "by_topic_us", "us", 77.0), ("recall of ten", "recall_us", "us", 98.0), ("stats", "stats_us", "us", 480.0),
        ("by topic, whole memories", "by_topic_whole_us", "us", 1000.0),
        ("recall of ten, whole memories", "recall_whole_us", "us", 300.0), ("the whole ranking", "ranked_us", "us", 10_000.0),
    ),
    "dream": (
        ("first dream, processor", "dream_s", "s", 60.0), ("of that consolidating", "consolidating", "s", 60.0),
        ("of that writing pages", "writing pages", "s", 60.0),
    ),
    "home": (
        ("database for a turn", "bytes", "bytes", 2000.0),
        ("start to first answer, database not in memory", "first_s", "s", 1.0), ("prompt's hook, p95", "hook_ms", "ms", 170.0),
        ("a dream when nothing changed, processor", "again_s", "s", 10.0),
        ("memory of the daemon after dreams", "rss_mb", "MB", 300.0),
    ),
}  # fmt: skip
FIGURES: tuple[Figure, ...] = (
    Figure("hook, daemon up, by a bare interpreter", "hook", "up", "times", 1.6),
    Figure("hook, daemon down, by a bare interpreter", "hook", "down", "times", 1.6),
    Figure("`csmd status`, by a bare interpreter", "hook", "status", "times", 3.0),
    Figure("completing a verb in bash, by a bare interpreter", "hook", "completion", "times", 3.0),
    Figure("processor for an event, 8 clients", "acks", "event_cpu", "ms", 0.4),
    Figure("ack, 1 client, p99, by 3 fsyncs", "acks", "one_99", "ms", lambda found: 3 * found["fsync_50"]),
    Figure("ack, 8 clients, p99, by 3 fsyncs and 8 events", "acks", "eight_99", "ms",
           lambda found: 3 * found["fsync_50"] + 8 * found["event_cpu"]),
    Figure("import without vectors", "import", "mb_per_s", "MB/s", 25.0, is_rate=True),
    Figure("import, peak memory of the daemon", "import", "rss_mb", "MB", 72.0),
    Figure("vectors of passages of 45 words, two cores", "vectors", "per_s", "a second", 150.0, is_rate=True),
    Figure("vectors of passages of 45 words, one core", "vectors", "one_per_s", "a second", 75.0, is_rate=True),
    Figure("memory of the worker", "vectors", "worker_rss_mb", "MB", 300.0),
    Figure("page of the viewer, the slowest, processor", "viewer", "slowest_ms", "ms", 300.0),
    Figure("page of the viewer, the largest", "viewer", "largest_bytes", "bytes", 300_000.0),
    Figure("how long a memory is told, processor", "viewer", "told_ms", "ms", 300.0),
    Figure("taking out secrets", "redact", "mb_per_s", "MB/s", 20.0, is_rate=True),
    *(
        Figure(what, bench, key, unit, limit)
        for bench in (*BENCHES, *LARGE) for what, key, unit, limit in OF_SIZES.get(bench.partition(" ")[0], ())
    ),
)  # fmt: skip


def additions_ms() -> float:
    """Milliseconds of processor that a million additions take in this Python: what figures of two machines are compared by."""
    began, total = time.process_time(), 0
    for number in range(10**6):
        total += number
    return (time.process_time() - began) * 1000


def measure(words: tuple[str, ...]) -> Found:
    """The figures of a bench, from the last line that it prints."""
    command = [sys.executable, str(HERE / words[0]), *words[1:], "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def sizes(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """How the graph's operations, and what a home costs, grow with the number of memories, of recorded figures."""
    drawn = []
    for kind, figures in OF_SIZES.items():
        there = [(size, name) for size, name in SIZED.items() if all(f"{what}, {name}" in rows for what, *_ in figures)]
        lines = {
            # A logarithmic axis has no 0.
            f"{what}, {unit}": [max(rows[f"{what}, {name}"]["value"], 0.001) for _, name in there]
            for what, _, unit, _ in figures
        }
        drawn.append(charts.Chart(f"{kind}, by memories", [size for size, _ in there], lines, "memories", is_log=True))
    return charts.draw([chart for chart in drawn if len(chart.x) > 1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--only", choices=[*BENCHES, *LARGE], action="append", default=[])
    chosen = parser.parse_args()
    before = json.loads(RECORDED.read_text())["figures"] if RECORDED.exists() else {}
    busy = psutil.cpu_percent(3.0)
    found: dict[str, Found] = {}
    failed: list[str] = []
    for name, words in (BENCHES | LARGE if chosen.large else BENCHES).items():
        if not all(words):
            print(f"{name}: left out, for CSMD_EVAL or CSMD_TEST_MODEL names nothing", flush=True)
        elif not chosen.only or name in chosen.only:
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                found[name] = measure(words)
            except subprocess.CalledProcessError as error:  # the others are measured all the same
                failed.append(f"{name}: exit code {error.returncode}")
    rows: dict[str, dict[str, Any]] = {}
    worse: list[Figure] = []
    for figure in (one for one in FIGURES if one.bench in found):
        values = found[figure.bench]
        value, limit, ratio = values[figure.key], figure.limit_in(values), figure.ratio(values)
        rows[figure.name] = {
            "at": time.strftime("%Y-%m-%d"), "what": figure.what, "size": figure.size, "value": round(value, 3), "unit": figure.unit, "limit": round(limit, 3),
            "ratio": round(ratio, 2),
        }  # fmt: skip
        was = before.get(figure.name, {}).get("ratio")
        if was and ratio > TWICE * was:
            worse.append(figure)
        note = f", recorded {was:.2f}" if was else ""
        print(f"{figure.name:56}{value:>12,.2f} {figure.unit:8} {ratio:8.2f} of its limit{note}")
    print(f"the machine was {busy:.0f} % busy before")
    for bench in failed:
        print(f"not measured: {bench}", file=sys.stderr)
    if chosen.record:
        figures = {figure.name: row for figure in FIGURES if (row := (before | rows).get(figure.name))}
        machine = {"cores": os.cpu_count(), "million_additions_ms": round(additions_ms()), "busy_percent": round(busy)}
        RECORDED.write_text(json.dumps({**machine, "figures": figures}, indent=1) + "\n")
        SIZES.write_text(sizes(figures))
        return int(bool(failed))
    # Others may have worked on the machine meanwhile.
    again = {bench: measure((BENCHES | LARGE)[bench]) for bench in dict.fromkeys(figure.bench for figure in worse)}
    slow = [one.name for one in worse if one.ratio(again[one.bench]) > TWICE * before[one.name]["ratio"]]
    for what in slow:
        print(f"more than twice as slow as recorded, measured twice: {what}", file=sys.stderr)
    return int(bool(slow or failed))


if __name__ == "__main__":
    raise SystemExit(main())
