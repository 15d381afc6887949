"""Scores a running daemon's memories and search against a labelled set of sessions.

    python tests/bench/quality.py [--eval DIR] [--out DIR]

The daemon (CSMD_HOME) must hold the set: `csmd import DIR/transcripts`. What is scored is what
the contracts give: `csmd memories --all-projects`, `csmd search` in the question's project,
`csmd recall` for each prompt. Figures go to docs/benchmarks.md as they are.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path

from csmd import client
from csmd.config import default_paths

HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", type=Path, default=HERE.parent.parent.parent / "shared" / "eval")
    parser.add_argument("--out", type=Path, help="keep system.json, runs.json and injected.json here")
    parser.add_argument("--kind", default="all")
    args = parser.parse_args()
    if not (args.eval / "score.py").is_file():
        print(f"{args.eval} holds no labelled set: nothing is scored", file=sys.stderr)
        return 1
    score = load(args.eval / "score.py")
    system = [
        {"text": row["text"], "source_uuids": row["source_uuids"], "session": row["session_id"], "gate": row["gate"]}
        for row in call("csm_memory_list")["memories"]
    ]
    questions = [json.loads(line) for line in (args.eval / "questions.jsonl").read_text().splitlines() if line.strip()]
    negatives = [json.loads(line) for line in (args.eval / "negatives.jsonl").read_text().splitlines() if line.strip()]
    runs, injected, took = {}, {}, []
    for question in questions:
        begun = time.perf_counter()
        found = call("csm_memory_search", query=question["question"], project=question["cwd"], limit=10, kind=args.kind)
        took.append(time.perf_counter() - begun)
        runs[question["question"]] = [
            {"uuids": hit["source_uuids"], "session": hit["session_id"], "text": hit["text"]} for hit in found["hits"]
        ]
        injected[question["question"]] = call(
            "csm_memory_recall", project=question["cwd"], prompt=question["question"]
        )["text"]
    for row in negatives:
        injected[row["text"]] = call(
            "csm_memory_recall", project="/Users/soph/Work/entire/devenv/cli", prompt=row["text"]
        )["text"]
    for name, value in (("system", system), ("runs", runs), ("injected", injected)):
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
            (args.out / f"{name}.json").write_text(json.dumps(value, ensure_ascii=False, indent=1))
    print("== extract")
    score.extract(system)
    print("== retrieve")
    score.retrieve(runs)
    print("== inject")
    score.inject(injected)
    took.sort()
    print(
        f"== search over the socket: p50 {took[len(took) // 2] * 1000:.1f} ms, p95 {took[int(len(took) * 0.95)] * 1000:.1f} ms"
    )
    return 0


def call(tool: str, **params: object) -> dict:
    return client.call(default_paths(), tool, params)


def load(path: Path):
    spec = importlib.util.spec_from_file_location("labelled_score", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
