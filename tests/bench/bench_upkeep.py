"""Measures upkeep of a large store: the rules, looking at everything, and the background's steps over new memories.

    python tests/bench/bench_upkeep.py [--memories 100000] [--projects 200]

The store is made of sentences of random words (5,000 of them, the common ones often), a project each in turn, with a turn
as the source of each; one in twenty repeats an earlier sentence of its project with a word more.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from csmd.memory import upkeep
from csmd.store import integrity, projects
from csmd.store.core import Store
from csmd.store.sqlite import Rows

NOW = "2026-03-01T10:00:00.000Z"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--projects", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "csmd.db", now=NOW)
        store.write(lambda rows: fill(rows, args.memories, args.projects))
        measured("rules", lambda: store.read(lambda rows: integrity.violations(rows, store.hash_key)))
        found = measured("everything looked at", lambda: store.read(lambda rows: upkeep.find_findings(rows, None)))
        print(f"{'':26} {len(found)} findings")
        measured("one project looked at", lambda: store.read(lambda rows: upkeep.find_findings(rows, [1])))
        times = []
        for _ in range(40):
            begun = time.perf_counter()
            upkeep.step(store, now=NOW)
            times.append(time.perf_counter() - begun)
        print(
            f"{'step over 5 new memories':26} {sorted(times)[len(times) // 2] * 1000:8.1f} ms (median of {len(times)})"
        )
        store.write(lambda rows: rows.run("insert into cursors values ('upkeep', 'memories', :n)"
                                          " on conflict (stage, subject) do update set position = :n", n=args.memories))  # fmt: skip
        measured("a day's sweep", lambda: [None for _ in iter(lambda: upkeep.step(store, now=NOW), 0)])
        store.close()
    return 0


def measured(name: str, work: Callable[[], Any]) -> Any:
    """What `work` gives; prints how long it took, twice, as the first time reads the disk."""
    begun = time.perf_counter()
    result = work()
    print(f"{name:26} {(time.perf_counter() - begun) * 1000:8.1f} ms")
    return result


def fill(rows: Rows, memories: int, number: int) -> None:
    """Makes the memories."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 9))) for _ in range(5000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    rows.many(
        "insert into projects (seq, key, root, name, kind, created_at) values (:seq, :key, :key, :key, 'path', '')",
        [{"seq": seq, "key": f"p{seq}"} for seq in range(1, number + 1)],
    )
    for seq in range(1, number + 1):
        projects.touch(rows, seq, NOW)
    rows.run(
        "insert into sessions (seq, id, host, project_seq, started_at, last_at) values (1, 's1', 'claude', 1, '', '')"
    )
    said: dict[int, str] = {}
    made = []
    for seq in range(1, memories + 1):
        repeated = said.get(seq - 20 * number) if seq % 20 == 0 else None
        said[seq] = f"{repeated} {chance.choice(words)}" if repeated else " ".join(chance.choices(words, weights, k=14))
        made.append(
            {
                "seq": seq,
                "id": f"m{seq:08x}",
                "text": said[seq],
                "project": seq % number + 1,
                "uuid": f"u{seq}",
                "now": NOW,
            }
        )
    rows.many(
        "insert into turns (seq, uuid, session_seq, project_seq, kind, text, text_hash, at, source) values "
        "(:seq, :uuid, 1, :project, 'user', '', :uuid, :now, 'transcript')",
        made,
    )
    rows.many(
        "insert into memories (seq, id, text, text_hash, gate, category, type, tier, decay, authority, origin, confidence, "
        "scope, project_seq, session_id, created_at, confirmed_at, hot_until, warm_until, archive_at) values (:seq, :id, "
        ":text, :id, 'epistemic', 'decision', 'concept', 'durable', 'durable', 'user', 'stated', 0.8, 'project', :project, "
        "'s1', :now, :now, 10, 80, 170)",
        made,
    )
    rows.many(
        "insert into provenance (memory_seq, uuid, session_id, at, role) values (:seq, :uuid, 's1', :now, 'states')",
        made,
    )


if __name__ == "__main__":
    raise SystemExit(main())
