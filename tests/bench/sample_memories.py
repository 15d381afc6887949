"""Draws a sample of what csmd keeps, to be read by a person: from a daemon that runs, with any seed.

    csmd start && csmd import --no-vectors ../shared/eval/transcripts
    python tests/bench/sample_memories.py --seed $(git rev-parse HEAD) [--number 100] [--markdown]

All memories are asked for, and those that hold (neither superseded nor refuted: no session is told one that is) are put
into the order of sha256(seed + text), and the first are told: by the text and not the id, so that the sample does not
hang on how ids are made. The same memories and seed give the same sample.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def memories(command: str) -> list[dict[str, Any]]:
    """Every memory of every project that holds, as `csmd memories --json` tells them."""
    asked = [command, "memories", "--all-projects", "--all", "--json"]
    ran = subprocess.run(asked, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(asked)} failed ({ran.returncode}): {ran.stderr.strip()}")
    found = json.loads(ran.stdout)
    rows: list[dict[str, Any]] = found["memories"] if isinstance(found, dict) else found
    return [row for row in rows if not row["superseded_by"] and not row["is_refuted"]]


def sample(rows: list[dict[str, Any]], seed: str, number: int) -> list[dict[str, Any]]:
    """The first `number` of the memories in the order of the seed."""
    return sorted(rows, key=lambda row: hashlib.sha256((seed + row["text"]).encode()).hexdigest())[:number]


def main() -> None:
    """Ask, draw, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", required=True, help="any text; the sample of a commit has its hash")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--csmd", default=str(Path(sys.executable).with_name("csmd")), help="the command to ask")
    parser.add_argument("--markdown", action="store_true", help="rows of a table with room for a verdict")
    options = parser.parse_args()
    rows = memories(options.csmd)
    print(f"{len(rows)} memories, {min(options.number, len(rows))} drawn with the seed {options.seed}", file=sys.stderr)
    for place, row in enumerate(sample(rows, options.seed, options.number), 1):
        said = " ".join(row["text"].split())
        cut = said.replace("|", "&#124;").replace("<", "&lt;")
        print(
            f"| {place} | {row['id'][:8]} | {cut[:110]} |  |  |"
            if options.markdown
            else f"{place} {row['id']} {row['authority'][0]} {said}"
        )


if __name__ == "__main__":
    main()
