"""What each factor of search is worth: switches one off at a time and asks both sets again.

    python tests/bench/ablation.py --labelled HOME --locomo HOME [--eval DIR] [--every N]

Each HOME is a CSMD_HOME whose daemon is off: one that holds DIR/transcripts, one filled by bench_locomo.py. The stores
are read as a daemon reads them; the questions are embedded once. A row of the table is a factor that was taken out.
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

from csmd.daemon.answers.searching import hit_json
from csmd.recall import exchange, rank, stage, stage_matches, stage_memories, stage_search
from csmd.store import models, sqlite
from csmd.store.embed import Embedder
from csmd.store.sqlite import Rows

HERE = Path(__file__).resolve().parent
SHARED = HERE.parent.parent.parent / "shared" / "eval"
#: When the questions are asked: the labelled sessions had ended by then.
NOW = datetime(2026, 2, 20, tzinfo=UTC)
_groups = exchange.groups


def _all_turns(*given: Any, **named: Any) -> list[list[int]]:
    """The exchanges with what was said at work as hits of their own."""
    return _groups(*given, **{**named, "midway": frozenset()})


#: A factor -> what is set, where, to take it out.
WITHOUT: dict[str, list[tuple[Any, str, Any]]] = {
    "(all on)": [],
    "words": [(rank, "LEXICAL_WEIGHT", 0.0)],
    "sense": [(rank, "VECTOR_WEIGHT", 0.0)],
    "neighbour": [(rank, "NEIGHBOUR_WEIGHT", 0.0)],
    "session": [(rank, "SESSION_WEIGHT", 0.0)],
    "states a memory": [(rank, "STATED_WEIGHT", 0.0)],
    "time": [(rank, "TIME_WEIGHT", 0.0)],
    "kind asked for": [(rank, "KIND_WEIGHT", 0.0)],
    "recency": [(rank, "RECENCY_WEIGHT", 0.0)],
    "graph": [(rank, "LINK_WEIGHT", 0.0), (rank, "MENDED_WEIGHT", 0.0)],
    "standing, scope": [
        (rank, "EVERYWHERE_SHARE", 1.0),
        (rank, "memory_weight", lambda memory, **_: rank.MEMORY_SHARE),
    ],
    "newest first": [(rank, "_gives_way", lambda *_: False)],
    "what is taken back": [(rank, "RETRACTING", rank.REPLACING)],
    "a varied front": [(rank, "AGAIN_SHARE", 1.0)],
    "talk at work": [(exchange, "groups", _all_turns)],
    "any memory": [(stage_memories, "MOST", 0), (rank, "STATED_WEIGHT", 0.0)],
    "exchange": [(exchange, "MOST_BESIDE", 0)],
    "pool of 300": [(stage_matches, "POOL", 100)],
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
    print(f"{'without':16} turn@1   @5  @10  session@5  stale   R@5  R@10  session@1")
    for name, switches in WITHOUT.items():
        with switched(switches):
            found = scorer.retrieve({row["question"]: shown(ask_labelled(row)) for row in labelled}, quiet=True)
            rows = [locomo.score(row, ask_chats(row)) for row in chats]
        turn, session = found["turn"], found["session"]
        mean = {key: sum(row[key] for row in rows) / len(rows) for key in ("r5", "r10", "first")}
        print(
            f"{name:16} {turn['hit@1']:6.3f} {turn['hit@5']:.3f} {turn['hit@10']:.3f} {session['hit@5']:8.3f} "
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
        hits, _ = stage_search.find(
            rows, question["question"], projects=stage.asked(rows, question["cwd"], asking=""), kind="all", limit=10,
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
