"""How many passages of 45 words the worker embeds in a second, on one core and on two, and its memory.

    python tests/bench/bench_vectors.py TREE MODEL [--passages 300] [--json]

The words are those that people and assistants say in the sessions in TREE, in their order.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_redact import decoded

from csmd.embedding.worker_client import Embedder

WORDS, TOGETHER = 45, 64


def passages(tree: Path) -> Iterator[str]:
    """What people and assistants say, cut into passages of WORDS words: what tools print is not embedded."""
    words: list[str] = []
    for path in sorted(tree.rglob("*.jsonl")):
        for value in decoded(path):
            message = value.get("message")
            content = message.get("content", "") if isinstance(message, dict) else ""
            said = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            words += " ".join(said).split()
            while len(words) >= WORDS:
                yield " ".join(words[:WORDS])
                del words[:WORDS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--passages", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    texts = list(islice(passages(args.tree), args.passages))
    embedder = Embedder(args.model, idle_s=60, environment=dict(os.environ))
    try:
        embedder.embed(texts[:8], deadline_s=None)
        one_per_s, one_rss = measure(embedder, texts, on_two_cores=False)
        per_s, rss = measure(embedder, texts, on_two_cores=True)
    finally:
        embedder.close()
    found = {"per_s": per_s, "worker_rss_mb": rss, "one_per_s": one_per_s, "one_rss_mb": one_rss}
    print(
        json.dumps(found)
        if args.json
        else f"{one_per_s:.1f} passages a second on one core, {one_rss:.0f} MB; {per_s:.1f} on two, {rss:.0f} MB"
    )
    return 0


def measure(embedder: Embedder, texts: list[str], *, on_two_cores: bool) -> tuple[float, float]:
    """Passages a second, and the worker's resident memory in MB afterwards."""
    began = time.perf_counter()
    for start in range(0, len(texts), TOGETHER):
        embedder.embed(texts[start : start + TOGETHER], deadline_s=None, on_two_cores=on_two_cores)
    return len(texts) / (time.perf_counter() - began), psutil.Process(embedder.pid).memory_info().rss / 1e6


if __name__ == "__main__":
    sys.exit(main())
