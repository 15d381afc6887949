"""What search and recall cost in homes of several sizes beside the bare queries of the indexes, and the prompt's hook.

    python tests/bench/bench_search.py [--sizes 1000,10000,100000] [--questions 40] [--homes DIR] [--only-hooks | --no-hooks]

Each size is a number of memories; there are ten turns for each (tests/bench/big_store.py). A home is made once and kept
in --homes, else in a directory that goes. Recall and search run in this process on a reader's connection with vectors
made before: what embedding takes is another's time. `bare` are the queries of the pool alone, as the product issues them:
words and meaning of passages and memories. `all words` is FTS5 asked for every word of the question, which the product
does not do in a large home. Each question is asked once and in turn, bare and whole, so that the machine's moods meet both.

A thread's step is that of passages stored last. Overlap is that of the ten nearest passages with those of an exact scan,
where the home has too many for one. Hooks are UserPromptSubmit events to the real daemon of that home over its socket; no
model is installed, so words alone answer: with seconds of patience, with a hook's, and with a hook's from a cold file.
Milliseconds; the exit code is 1 when a hook's p95 is above --most or recall or search above its ratio.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import zmq
from big_store import MODEL, PROJECTS, Words, build, place

from csmd import wire
from csmd.config import Settings, default_paths
from csmd.recall import hybrid_search, results, threads, visibility
from csmd.recall import prompt as prompts
from csmd.store import cursors, fulltext, passages, projects, vectors
from csmd.store.sqlite import Rows, open_rows
from csmd.text import search_terms

#: Words of a question and of a prompt, in turn; the session that asks, and what is asked is about a turn of its project.
LENGTHS = (5, 9, 16, 40)
#: What recall and search may cost, in bare queries.
RECALL_MOST, SEARCH_MOST = 1.5, 2.0
#: Passages of a thread's step that is measured.
THREADED = 40
#: What a hook has left of its 180 ms when it asks, and how long the daemon has after its start for what it does of itself.
HOOK_MS, REHEARSED_S = 170, 8.0
#: What is stored is not distilled: that would be another bench's time.
#: No stage has anything to do, and no backup of a gigabyte is made meanwhile.
CONFIG = "stages: {distill: false, candidates: false, promote: false, dream: false}\nbackup: {every_h: 0}\n"


@dataclass
class Took:
    """What each call of one kind took: the processor's time and the wall's, in milliseconds."""

    busy: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def time(self, rows: Rows, run: Callable[[], Any]) -> Any:
        with rows.transaction(write=False):  # as the daemon's readers do
            busy, wall = time.process_time(), time.perf_counter()
            found = run()
            self.busy.append((time.process_time() - busy) * 1000)
            self.wall.append((time.perf_counter() - wall) * 1000)
        return found

    def __str__(self) -> str:
        return (
            f"processor p50 {median(self.busy):7.1f}  p95 {percentile(self.busy, 0.95):7.1f}   "
            f"wall p50 {median(self.wall):7.1f}  p95 {percentile(self.wall, 0.95):7.1f}"
        )


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@dataclass(frozen=True)
class Question:
    """What is asked, and its vector."""

    text: str
    vector: bytes


def questions(rows: Rows, words: Words, count: int, *, mark: str) -> list[Question]:
    """Questions about what was said in the largest project, in sentences of several lengths."""
    last = int(rows.value("select max(seq) from turns"))
    there = [
        int(seq)
        for (seq,) in rows.all(
            "select seq from turns where project_seq = (select project_seq from turns group by 1 order by count(*) desc limit 1) "
            "and seq % :step = 0 limit :count",
            step=max(1, last // (count * PROJECTS)),
            count=count,
        )
    ]
    subjects = words.subjects(there)
    asked = [words.texts(subjects[at : at + 1], (LENGTHS[at % len(LENGTHS)], 0.2))[0] for at in range(len(there))]
    return [
        Question(one.rstrip(".") + mark, vector) for one, vector in zip(asked, words.vectors(subjects), strict=True)
    ]


def bare(rows: Rows, one: Question, places: Sequence[int] | None, model: int) -> None:
    """The queries of the pool."""
    terms, most = search_terms.question_terms(one.text)[: hybrid_search.MAX_TERMS], hybrid_search.POOL_ROWS
    for kind in ("passage", "memory"):
        fulltext.text_hits(rows, kind, terms, projects=places, limit=most)
        vectors.find_vector_hits(rows, kind, model, one.vector, projects=places, limit=most)


def all_words(rows: Rows, one: Question, places: Sequence[int]) -> None:
    """The words of passages as FTS5 finds them by itself."""
    terms = search_terms.question_terms(one.text)[: hybrid_search.MAX_TERMS]
    rows.all(
        "select p.seq, bm25(passages_fts) from passages_fts join passages p indexed by passages_of_projects "
        f"on p.seq = passages_fts.rowid and p.project_seq in ({', '.join(map(str, places))}) "
        "where passages_fts match :terms order by 2 limit 200",
        terms=fulltext.match_expression(terms),
    )


def reads(rows: Rows, words: Words, count: int) -> bool:
    """Prints what each way of asking takes; whether one takes more than it may."""
    settings, model, here = Settings(), vectors.find_model(rows, MODEL), visibility.scopes(rows, place(1))
    assert model is not None

    def recall(one: Question) -> Any:
        return prompts.recall(
            rows, places=here, session_id="s1", prompt=one.text, floor=settings.recall_floor, max_tokens=settings.recall_max_tokens,
            max_items=settings.recall_max_items, embed=lambda _: (one.vector, MODEL), key=b"none is looked for",
        )  # fmt: skip

    def find(one: Question, where: list[int] | None) -> Any:
        return results.find(rows, one.text, projects=where, kind="all", limit=10, embed=lambda _: (one.vector, MODEL))

    slow = False
    for name, run, where, most, mark in (
        ("recall", recall, here, RECALL_MOST, "."),
        ("search", lambda one: find(one, here), here, SEARCH_MOST, "?"),
        ("search everywhere", lambda one: find(one, None), None, SEARCH_MOST, "?"),
    ):
        asked = questions(rows, words, count + 1, mark=mark)
        run(asked[0])  # loads what is loaded once
        alone, whole, told = beside(rows, asked[1:], lambda one, at=where: bare(rows, one, at, model), run)  # type: ignore[misc]
        ratio, share = sum(whole.busy) / sum(alone.busy), sum(whole.wall) / sum(alone.wall)
        slow = slow or ratio > most
        print(f"  {name:18} bare   {alone}")
        print(f"  {'':18} whole  {whole}   ratio {ratio:.2f}, wall {share:.2f} ({told} of {count} told)", flush=True)
    every = Took()
    for one in questions(rows, words, count, mark="."):
        every.time(rows, partial(all_words, rows, one, here))
    print(f"  {'FTS5, all words':25} {every}", flush=True)
    return slow


def beside(
    rows: Rows, asked: Sequence[Question], bare_one: Callable[[Question], Any], whole_one: Callable[[Question], Any]
) -> tuple[Took, Took, int]:
    """What the bare queries and the whole take for the same questions, in turn; how many the whole answered."""
    alone, whole, told = Took(), Took(), 0
    for number, one in enumerate(asked):
        if number % 2:
            alone.time(rows, partial(bare_one, one))
        found = whole.time(rows, partial(whole_one, one))
        told += bool(found[0] if isinstance(found, tuple) else found.text)
        if not number % 2:
            alone.time(rows, partial(bare_one, one))
    return alone, whole, told


def linked(looking: threads.PairFinder, seq: int) -> list[float]:
    """How surely a passage follows each that it is compared with."""
    return [threads.probability(threads.features(pair, rare)) for pair, rare in looking.find_pairs(seq)]


def step(rows: Rows, model: int) -> Took:
    """What linking each of the passages stored last takes."""
    took = Took()
    looking = threads.PairFinder(rows, model)
    last = passages.last_passage_seq(rows)
    for seq in range(last - THREADED, last):
        took.time(rows, partial(linked, looking, seq))
    return took


def overlap(rows: Rows, words: Words, count: int, model: int) -> tuple[float, float, Took, Took]:
    """(Shares of the ten and the hundred nearest of an exact scan that are found, what finding them takes, and an exact scan)."""
    shares: tuple[list[float], list[float]] = ([], [])
    signed, exact, whole = Took(), Took(), vectors.MAX_WHOLE_VECTORS
    places = visibility.scopes(rows, place(1))
    for one in questions(rows, words, count, mark="?"):

        def nearest(one: Question = one) -> list[int]:
            return [
                int(row[0])
                for row in vectors.find_vector_hits(rows, "passage", model, one.vector, projects=places, limit=200)
            ]

        quick = signed.time(rows, nearest)
        vectors.MAX_WHOLE_VECTORS = 1 << 40
        true = exact.time(rows, nearest)
        vectors.MAX_WHOLE_VECTORS = whole
        for share, most in zip(shares, (10, 100), strict=True):
            share.append(len({*quick[:most]} & {*true[:most]}) / most)
    return sum(shares[0]) / len(shares[0]), sum(shares[1]) / len(shares[1]), signed, exact


def settled(database: Path) -> None:
    """Has the stages past everything, as in a store that grew over years: nothing of it waits beside the prompts."""
    with open_rows(database, readonly=False) as rows:
        newest = int(rows.value("select max(seq) from memories"))
        for subject, position in (("memories", newest), ("sweep", 0), ("day", projects.active_day(rows, 0))):
            cursors.move_cursor(rows, "upkeep", subject, position)
        rows.run("update projects set topics_due = 0")


def drop_from_memory(database: Path) -> None:
    """Has nothing of the database in the system's file cache."""
    with database.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def environment_of(home: Path) -> dict[str, str]:
    """What a daemon of a home is started with."""
    return {**os.environ, "CSMD_HOME": str(home), "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / "none")}


def hooks(home: Path, asked: list[str], *, patience_ms: int, cold: bool = False) -> tuple[float, float, float, int]:
    """(p50, p95, the daemon's processor time for one) of prompts sent as a hook sends them, and how many were told something.

    `cold`: nothing of the database is in memory when the daemon starts. What it does of itself then is waited for, but
    the first prompt is sent at once.
    """
    (home / "config.yaml").write_text(CONFIG)
    settled(home / "csmd.db")
    environment = environment_of(home)
    paths = default_paths(environment)

    def csmd(*arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "csmd", *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
        )

    if cold:
        drop_from_memory(home / "csmd.db")
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
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--homes", type=Path)
    parser.add_argument("--only-hooks", action="store_true")
    parser.add_argument("--no-hooks", action="store_true")
    parser.add_argument("--most", type=float, default=250.0)
    args = parser.parse_args()
    homes = args.homes or Path(tempfile.mkdtemp(prefix="csmd-bench-", dir="/tmp"))
    slow = False
    try:
        for size in map(int, args.sizes.split(",")):
            home = homes / f"m{size}"
            database = build(home, turns=10 * size, memories=size)
            words = Words(7)
            print(
                f"{size} memories, {10 * size} turns, {database.stat().st_size >> 20} MB; load {psutil.getloadavg()[0]:.1f}"
            )
            with open_rows(database, readonly=True) as rows:
                asked = [one.text for one in questions(rows, words, args.questions, mark="?")]
                if not args.only_hooks:
                    slow = reads(rows, words, args.questions) or slow
                    model = vectors.find_model(rows, MODEL) or 0
                    print(f"  {'thread of a passage':25} {step(rows, model)}", flush=True)
                    ten, hundred, signed, exact = overlap(rows, words, args.questions, model)
                    print(f"  {'the 200 nearest':25} {signed}   overlap at 10 {ten:.3f}, at 100 {hundred:.3f}")
                    print(f"  {'by an exact scan':25} {exact}", flush=True)
            for name, patience_ms, cold in (
                ("a prompt, no worker, patient", 5000, False),
                ("as its hook waits", HOOK_MS, False),
                ("and nothing in memory at first", HOOK_MS, True),
            ):
                if args.no_hooks:
                    break
                half, most, busy, told = hooks(home, asked, patience_ms=patience_ms, cold=cold)
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
