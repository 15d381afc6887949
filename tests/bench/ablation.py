"""What each part of the ranking is worth in search: takes one out at a time and asks both sets again.

    python tests/bench/ablation.py --labelled HOME --locomo HOME [--eval DIR] [--every N]

Each HOME is a CSMD_HOME whose daemon is off: one that holds DIR/transcripts, one filled by bench_locomo.py. The stores
are read as a daemon reads them; the questions are embedded once. A row of the table is what was taken out: a part of the
score counts nothing, a rule of the order has no effect.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from csmd.embedding import models
from csmd.embedding.models import Embedder
from csmd.recall import hybrid_search, results, visibility
from csmd.store import sqlite
from csmd.store.sqlite import Rows
from csmd.tools.search import hit_json

HERE = Path(__file__).resolve().parent
SHARED = HERE.parent.parent.parent / "shared" / "eval"
#: When the questions are asked: the labelled sessions had ended by then.
NOW = datetime(2026, 2, 20, tzinfo=UTC)
_groups = results.group_exchanges


def _all_turns(*given: Any, **named: Any) -> list[list[int]]:
    """The exchanges with what was said at work as hits of their own."""
    return _groups(*given, **{**named, "midway": frozenset()})


def _alone(ranked: Any, _near: Any, scores: Any, **named: Any) -> list[list[int]]:
    """The turns that matched without those next to them."""
    return _groups(ranked, {}, scores, **named)


#: What is taken out -> what is set, where, for that.
WITHOUT: dict[str, list[tuple[Any, str, Any]]] = {
    "(all on)": [],
    "words": [(results, "WORDS_SHARE", 0.0)],
    "meaning": [(results, "WORDS_SHARE", 1.0)],
    "next to it": [(results, "NEAR_SHARE", 0.0)],
    "session": [(results, "SESSION_SHARE", 0.0)],
    "time": [(results, "TIME_WEIGHT", 0.0)],
    "what mended it": [(results, "MENDED_WEIGHT", 0.0)],
    "a varied front": [(results, "REPEATED_SHARE", 1.0)],
    "talk at work": [(results, "group_exchanges", _all_turns)],
    "exchange": [(results, "group_exchanges", _alone)],
    "memories' turns": [(hybrid_search, "MEMORIES", 0)],
    "half the pool": [(hybrid_search, "POOL", hybrid_search.POOL // 2)],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, required=True)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--eval", type=Path, default=SHARED)
    parser.add_argument("--every", type=int, default=4, help="Of LoCoMo's questions every Nth.")
    args = parser.parse_args()
    if not (args.eval / "score.py").is_file():
        print(f"{args.eval} holds no labelled set: nothing is scored", file=sys.stderr)
        return 1
    scorer, locomo = load(args.eval / "score.py"), load(HERE / "bench_locomo.py")
    labelled = [row for row in scorer.rd("questions.jsonl") if row["evidence"]]
    with tempfile.TemporaryDirectory() as place:
        chats = locomo.transcripts(args.eval / "locomo", Path(place))[:: args.every]
    ask_labelled = asker(args.labelled, [row["question"] for row in labelled])
    ask_chats = asker(args.locomo, [row["question"] for row in chats])
    print(f"{'without':20} turn@1   @5  @10  session@5  stale   R@5  R@10  session@1")
    for name, switches in WITHOUT.items():
        with switched(switches):
            found = scorer.retrieve({row["question"]: shown(ask_labelled(row)) for row in labelled}, quiet=True)
            rows = [locomo.score(row, ask_chats(row)) for row in chats]
        turn, session = found["turn"], found["session"]
        mean = {key: sum(row[key] for row in rows) / len(rows) for key in ("r5", "r10", "first")}
        print(
            f"{name:20} {turn['hit@1']:6.3f} {turn['hit@5']:.3f} {turn['hit@10']:.3f} {session['hit@5']:8.3f} "
            f"{found['stale_above_new']:>8} {mean['r5']:.3f} {mean['r10']:.3f} {mean['first']:8.3f}",
            flush=True,
        )
    return 0


def asker(home: Path, questions: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """How a question is put to a home's store, its vectors made beforehand."""
    rows = Rows(sqlite.connect(home / "csmd.db", readonly=True))
    directory = next(path.parent for path in (home / "models").rglob("tokenizer.json"))
    embedder = Embedder(directory, idle_s=60, environment={"PATH": os.environ["PATH"]})
    try:
        known = dict(zip(questions, embedder.embed(questions, deadline_s=600), strict=True))
    finally:
        embedder.close()
    name = models.model_identity(directory)

    def ask(question: dict[str, Any]) -> list[Any]:
        hits, _ = results.find(
            rows, question["question"], projects=visibility.find_searchable_places(rows, question["cwd"], asking=""), kind="all", limit=10,
            embed=lambda query: (known[query], name), now=NOW,
        )  # fmt: skip
        return [hit_json(hit, explain=False) for hit in hits]

    return ask


def shown(hits: list[Any]) -> list[dict[str, Any]]:
    return [{"uuids": hit["source_uuids"], "session": hit["session_id"], "text": hit["text"]} for hit in hits]


@contextmanager
def switched(switches: list[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(place, name, getattr(place, name)) for place, name, _ in switches]
    for place, name, value in switches:
        setattr(place, name, value)
    try:
        yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
