"""Measures redaction on the text leaves of a tree of transcripts and prints it as a markdown table.

    python tests/bench/bench_redact.py TREE [--seen]

MB/s of processor time over every string that the lines hold. With --seen every place that was taken for a
secret is printed, so that somebody can say which are none. Recall on the two sets of tests/data/secrets stands below.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from planted import bare, planted

from csmd.privacy.redaction import redact, redact_tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--seen", action="store_true")
    parser.add_argument("--json", action="store_true", help="MB/s alone")
    args = parser.parse_args()
    lines = [value for path in sorted(args.tree.rglob("*.jsonl")) for value in decoded(path)]
    leaves: list[str] = []
    for value in lines:
        collect(value, leaves)
    size = sum(map(len, leaves)) / 1e6
    counts: Counter[str] = Counter()

    def redact_only(text: str) -> object:
        return redact(text, counts)

    if args.json:
        print(json.dumps({"mb_per_s": size / min(seconds(redact_only, leaves) for _ in range(2))}))
        return 0
    print(f"| {len(leaves)} leaves, {size:.1f} MB | MB/s |\n|---|---|")
    print(f"| redact | {size / min(seconds(redact_only, leaves) for _ in range(2)):.1f} |")
    by_field: Counter[str] = Counter()
    for value in lines:
        redact_tree(value, by_field)
    print(f"| taken for secrets, by text: {dict(counts)}; with fields: {dict(by_field)} | |")
    if args.seen:
        for text in leaves:
            if (left := redact(text, Counter())) != text:
                print("  ", *(left[max(0, m.start() - 60) : m.end() + 20] for m in re.finditer(r"\[redacted:", left)))
    for which in ("seen", "held_out"):
        recall(which)
    return 0


def recall(which: str) -> None:
    """Prints how many of a set's secrets are taken out, those known by themselves and those known by context."""
    for name, context in (("by shape", False), ("by context", True)):
        rows = [one for one in planted(which) if (one.kind not in bare()) == context]
        missed = [one for one in rows if one.secret in redact(one.text, Counter())]
        kinds = len({one.kind for one in rows})
        print(f"| recall, {which}, {name} | {len(rows) - len(missed)} of {len(rows)}, {kinds} kinds |")
        for one in missed:
            print(f"|   missed | {one.kind}: {one.text!r} |")


def decoded(path: Path) -> list[Any]:
    """The values of a file's lines."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        if line.strip():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def collect(value: Any, into: list[str]) -> None:
    """Adds every string in a decoded value."""
    if isinstance(value, str):
        into.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            collect(item, into)
    elif isinstance(value, list):
        for item in value:
            collect(item, into)


def seconds(way: Callable[[str], object], leaves: list[str]) -> float:
    """Of the processor."""
    begin = time.process_time()
    for text in leaves:
        way(text)
    return time.process_time() - begin


if __name__ == "__main__":
    sys.exit(main())
