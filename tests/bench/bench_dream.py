"""Measures dreams: real sessions replayed in time order with dreams between them, or planning at a size.

    python tests/bench/bench_dream.py [--eval DIR] [--dreams 30] [--out DIR] [--notes DIR] [--example docs/example]
    python tests/bench/bench_dream.py --memories 2000
    python tests/bench/bench_dream.py --homes DIR [--sizes 10000,30000,100000] [--chart docs/dream.svg]

The labelled set is read twice into a new store, session by session in the order of time: once without dreams, once
with `--dreams` of them spread over it, in the very steps of the daemon's, each three hours after the last turn before
it; the daily files are written by the same clock, whose days are UTC's. `--notes` keeps the markdown, `--example`
puts a part of it in the place of the example in docs/: the index, the largest project and themes, the fullest days. Told are the memories that are put forward, how many of them say what another one says, the labels of importance 3
that a search for their words finds among memories (of those found without dreams, with dreams), the scorer's precision
of what is put forward, and the CPU of a dream. Nothing is embedded.

`--homes` dreams for the first time over homes of these sizes (tests/bench/big_store.py, with vectors), which are made in DIR
where they are not there; their topics are found before. Told is the processor of each step, as JSON, and drawn in `--chart`.

`--memories` makes one project of sentences of random words, one in twenty of them a repetition, and plans and carries
out one dream over it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import big_store
import charts
from labelled import folder_of, scorer_of

from csmd.config import child_environment, load
from csmd.conversation import Project
from csmd.daemon.context import Task, now_iso, to_iso
from csmd.daemon.dreaming import STEPS
from csmd.daemon.jobs import Background
from csmd.dream import day_files
from csmd.dream import steps as stage
from csmd.embedding.worker_client import Embedder
from csmd.knowledge import Provenance, Statement
from csmd.memory import duplicates, remember, topic_tagging
from csmd.store import dreams, files, journal, memory_upkeep, projects
from csmd.store.core import Store, run_to_end
from csmd.store.sqlite import Rows
from csmd.tools.declaration import ToolContext
from csmd.tools.registry import find_tool

#: So many themes and days stand in the example.
THEMES, DAYS = 2, 2
#: A home directory, of whomever.
HOME = re.compile(r"/(?:Users|home)/[^/\s`'\"]+")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eval", default="../shared/eval", help="the labelled set, from the repository's root")
    parser.add_argument("--dreams", type=int, default=30)
    parser.add_argument("--memories", type=int, help="plan at this size instead")
    parser.add_argument("--out", type=Path, help="keep what is put forward, without and with dreams, here")
    parser.add_argument(
        "--notes", type=Path, help="keep the memory directory as the dreams left it here, which must be new"
    )
    parser.add_argument("--example", type=Path, help="put a part of it in the place of the example that is here")
    parser.add_argument("--homes", type=Path, help="dream over homes of --sizes instead, which are kept here")
    parser.add_argument("--sizes", default="10000,30000,100000")
    parser.add_argument("--chart", type=Path)
    parser.add_argument("--json", action="store_true", help="what is told of homes is JSON anyway")
    args = parser.parse_args()
    if args.homes:
        of_homes(args.homes, [int(size) for size in args.sizes.split(",")], args.chart)
        return 0
    if args.memories:
        at_size(args.memories)
        return 0
    folder = folder_of(args.eval)
    before, found, _ = replayed(folder, dreaming=0)
    with tempfile.TemporaryDirectory() as scratch:
        notes = args.notes or Path(scratch) / "notes"
        after, kept, costs = replayed(folder, dreaming=args.dreams, notes=notes)
        if args.example:
            show(notes, args.example)
    lost = sorted(found - kept)
    scores = [scorer_of(folder).extract(system, quiet=True) for system in (before, after)]
    print(f"{'put forward':44} {len(before)} without dreams, {len(after)} with {args.dreams}")
    print(f"{'labels of importance 3 found by search':44} {len(found)} without, {len(found & kept)} of these with")
    for name in ("strict_precision", "strict_recall", "strict_recall_imp3", "precision", "recall"):
        print(f"{name:44} {scores[0][name]:.3f} without, {scores[1][name]:.3f} with")
    costs.sort()
    print(f"{'CPU of a dream':44} median {costs[len(costs) // 2] * 1000:.0f} ms, most {costs[-1] * 1000:.0f} ms")
    for label in lost:
        print(f"LOST {label}")
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        for name, system in (("before", before), ("after", after)):
            (args.out / f"{name}.json").write_text(json.dumps(system, ensure_ascii=False, indent=1))
    return 1 if lost else 0


# --- real sessions


@contextmanager
def daemon(database: Path | None = None) -> Iterator[tuple[Store, Background, ToolContext]]:
    """The parts of a daemon in a home of their own, with a copy of a database if one is given, stepped by hand."""
    with tempfile.TemporaryDirectory(prefix="csmd-") as home:
        os.environ["CSMD_HOME"], os.environ["CLAUDE_CONFIG_DIR"] = home, f"{home}/claude"
        config = load()
        # Its clock is the machine's, by which these days are long over.
        config = replace(config, settings=replace(config.settings, stages_daily=False))
        paths = config.paths
        for folder in (paths.home, paths.run_dir, paths.spool, paths.models, paths.memory):
            files.make_private(folder)
        if database:
            shutil.copyfile(database, paths.database)
        store = Store(paths.database, now=now_iso())
        embedder = Embedder(None, idle_s=60, environment=child_environment())
        background = Background(store, config, embedder)
        try:
            yield store, background, background.tool_context(lambda rows, own: {})
        finally:
            embedder.close()
            store.close()


def replayed(
    folder: Path, *, dreaming: int, notes: Path | None = None
) -> tuple[list[dict[str, Any]], set[str], list[float]]:
    """(what is put forward, labels of importance 3 that are found, seconds of CPU of each dream) after all sessions."""
    sessions = sorted((folder / "transcripts").glob("*/*.jsonl"), key=begun)
    due = {round((number + 1) * len(sessions) / dreaming) for number in range(dreaming)} if dreaming else set()
    costs, did = [], Counter[str]()
    with daemon() as (store, background, tools):
        for number, path in enumerate(sessions, 1):
            taken_in(background, path)
            if dreaming:
                days_told(background)
            if number in due:
                costs.append(dreamt(background, did))
        if dreaming and notes:
            keep(background.context.config.paths.memory, notes)
        if dreaming:
            print(f"{'actions':44} {', '.join(f'{kind} {count}' for kind, count in sorted(did.items())) or 'none'}")
        alive = store.read(lambda rows: memory_upkeep.list_active_memories(rows, None))
        pairs = list(chain.from_iterable(duplicates.iter_pairs(alive, everywhere={})))
        exact = sum(pair.exact for pair in pairs)
        print(
            f"{f'memories with {dreaming} dreams':44} {len(alive)}, {exact} say what another one says, {len(pairs) - exact} nearly"
        )
        shown = {memory.id for memory in alive}
        listed = ask(store, tools, "csm_memory_list")["memories"]
        system = [
            {
                "text": row["text"],
                "source_uuids": row["source_uuids"],
                "session": row["session_id"],
                "gate": row["gate"],
            }
            for row in listed
            if row["id"] in shown
        ]
        labels = [json.loads(line) for line in (folder / "memories.jsonl").read_text().splitlines() if line.strip()]
        scorer = scorer_of(folder)
        found = {one["memory"] for one in labels if one["importance"] == 3 and is_found(store, tools, scorer, one)}
    return system, found, costs


def begun(path: Path) -> str:
    """The time of a transcript's first line that has one."""
    with path.open() as lines:
        return next((at for line in lines if (at := json.loads(line).get("timestamp"))), "9999")


def taken_in(background: Background, path: Path) -> None:
    """Reads a transcript and lets everything follow."""
    job = background.context.submit(Task(id=path.stem, kind="import", path=str(path), with_vectors=False))
    while job.state not in ("done", "failed"):
        background.step(0.0)
    if job.state == "failed":
        sys.exit(f"{path}: {job.error}")


def keep(memory: Path, notes: Path) -> None:
    """A copy of the memory directory in which nobody's home directory is named."""
    shutil.copytree(memory, notes)
    for path in [*notes.rglob("*.md"), *notes.rglob("*.yaml")]:
        path.write_text(HOME.sub("~", path.read_text()))


def show(notes: Path, example: Path) -> None:
    """Puts a part of the markdown in the place of an example, whose README stays."""

    def largest(pattern: str) -> list[Path]:
        return sorted(notes.glob(pattern), key=lambda path: (-path.stat().st_size, path.name))

    project, *others = largest("projects/*.md")
    themes = [path for path in largest("topics/*.md") if not any(one.name in path.read_text() for one in others)]
    days = largest("daily/*.md")[:DAYS]
    chosen = [notes / "MEMORY.md", notes / "user.md", project, *themes[:THEMES]]
    for old in [path for path in example.rglob("*") if path.is_file() and path.name != "README.md"]:
        old.unlink()
    for path in [*chosen, *days, *(day.with_suffix(".yaml") for day in days)]:
        there = example / path.relative_to(notes)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)


def late(store: Store) -> str:
    """The time at which a dream is had: three hours after the last turn."""
    last = store.read(lambda rows: rows.value("select max(at) from turns"))
    return to_iso(datetime.fromisoformat(last) + timedelta(hours=3))


def days_told(background: Background) -> None:
    """The daily files as they are when the last session has ended."""
    now = late(background.context.store)
    while day_files.update_files(
        background.context.store, background.context.config.paths.memory, now=now, to_local=datetime.fromisoformat
    ):
        pass


def dreamt(background: Background, did: Counter[str]) -> float:
    """The CPU of a dream in the steps of the daemon's."""
    store, now = background.context.store, late(background.context.store)
    began = time.process_time()
    dream = store.write(lambda rows: dreams.begin(rows, why="bench", sessions=0, now=now))
    background.dreaming.now, background.dreaming.here = lambda: now, datetime.fromisoformat
    for step in STEPS.values():
        for _ in step(background.dreaming, dream):
            pass
    store.write(lambda rows: dreams.end(rows, dream.seq, state="done", now=now))
    took = time.process_time() - began
    did.update(store.read(lambda rows: journal.count_actions(rows, dream.seq)))
    return took


def steps(store: Store, *, now: str, facts: stage.Facts) -> stage.Steps[int]:
    """A dream from begin to end, step by step; how many actions it did."""
    dream = store.write(lambda rows: dreams.begin(rows, why="bench", sessions=0, now=now))
    done = yield from stage.carry_out_everywhere(store, dream, now=now, key=store.hash_key, facts=facts)
    store.write(lambda rows: dreams.end(rows, dream.seq, state="done", now=now))
    return done


def ask(store: Store, tools: ToolContext, name: str, **params: Any) -> Any:
    """A tool's answer."""
    tool = find_tool(name)
    return store.read(lambda rows: run_to_end(tool.answer(tools, rows, tool.check(params))))


def is_found(store: Store, tools: ToolContext, scorer: Any, label: dict[str, Any]) -> bool:
    """Whether a search for a label's words finds a memory that shows it."""
    hits = ask(store, tools, "csm_memory_search", query=label["memory"], limit=10, kind="memory")["hits"]
    evidence = [{"uuid": uuid, "quote": label["quote"]} for uuid in label["uuids"]]
    return any(scorer.shows({"uuids": hit["source_uuids"], "text": hit["text"]}, evidence) for hit in hits)


# --- over homes


def of_homes(homes: Path, sizes: list[int], chart: Path | None) -> None:
    """Dreams over a copy of each home; prints the processor seconds of each step."""
    lines: dict[str, list[float]] = defaultdict(list)
    for size in sizes:
        made = big_store.build(homes / f"m{size}", turns=10 * size, memories=size)
        with daemon(made) as (store, background, _):
            while topic_tagging.step(store, force=True, reading=False):
                pass
            dream = store.write(lambda rows: dreams.begin(rows, why="bench", sessions=0, now=now_iso()))
            took: dict[str, float] = {}
            for name, step in STEPS.items():
                began = time.process_time()
                for _ in step(background.dreaming, dream):
                    pass
                took[name] = round(time.process_time() - began, 2)
            print(json.dumps({"size": size, "dream_s": round(sum(took.values()), 2), **took}), flush=True)
            lines["the first dream"].append(sum(took.values()))
            lines["consolidating"].append(took["consolidating"])
            lines["writing pages"].append(took["writing pages"])
    if chart and len(sizes) > 1:
        title = "the first dream, seconds of processor"
        chart.write_text(charts.draw([charts.Chart(title, sizes, lines, "memories", is_log=True)]))


# --- at a size


def at_size(number: int) -> None:
    """Plans and carries out a dream over one project of so many memories."""
    with tempfile.TemporaryDirectory() as home:
        store = Store(Path(home) / "csmd.db", now="2026-03-01T10:00:00.000Z")
        store.write(lambda rows: fill(rows, number, key=store.hash_key))
        for name in ("the first dream", "a dream over what it left"):
            began, cpu = time.perf_counter(), time.process_time()
            took: list[float] = []
            ran = steps(store, now="2026-06-01T10:00:00.000Z", facts={})
            while True:
                last = time.perf_counter()
                try:
                    next(ran)
                except StopIteration as end:
                    did = end.value
                    break
                finally:
                    took.append((time.perf_counter() - last) * 1000)
            took.sort()
            print(
                f"{name:26} {did:5} actions, {time.process_time() - cpu:6.2f} s of CPU, {time.perf_counter() - began:6.2f} s, "
                f"{len(took)} steps: 99 of 100 within {took[int(len(took) * 0.99)]:.1f} ms, the longest {took[-1]:.0f} ms"
            )
        store.close()


def fill(rows: Rows, number: int, *, key: bytes) -> None:
    """Sentences of random words, the common ones often; one in twenty is told again in nearly the same words."""
    chance = random.Random(7)
    words = [f"word{place}" for place in range(4000)]
    place = projects.ensure(rows, Project(key="p", root="/p", name="p", kind="path"), now="2026-03-01T10:00:00.000Z")
    projects.record_active_day(rows, place, "2026-03-01")
    said: list[str] = []
    for at in range(number):
        told = " ".join(words[min(int(chance.expovariate(1 / 600)), 3999)] for _ in range(chance.randrange(8, 22)))
        repeats = at % 20 == 19
        source = Provenance(uuid=f"cli:{at}", session_id=f"s{at % 50}", at=f"2026-03-01T10:00:00.{at % 1000:03}Z")
        statement = Statement(text=told, gate="epistemic", category="decision", confidence=0.8, authority="user")
        ident, _ = remember.remember(rows, statement, source, project=place, origin="stated", key=key)
        if repeats:  # it would only confirm the first: its words are changed afterwards
            rows.run("update memories set text = :said where id = :id", said=f"{chance.choice(said)}!", id=ident)
        else:
            said.append(told)


if __name__ == "__main__":
    sys.exit(main())
