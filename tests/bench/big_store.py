"""Fills a store with made-up memories and turns of real shape, straight by SQL: words as rare as Zipf has them.

    python tests/bench/big_store.py HOME [--turns 1000000] [--memories 100000] [--seed 1]

Every turn is one that is searched (in real sessions about one in four is). Sessions have 200 turns; projects are 60, the
largest with a fifth of everything. Vectors are random directions: what is measured of them is how long they take.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from csmd.capture import stage_place
from csmd.store import projects, vector_tables, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows, opened
from csmd.text import STOP_WORDS

DIM, MODEL = 384, "bench@0"
SESSION_TURNS, PROJECTS, KINDS_OF_WORDS = 200, 60, 400_000
#: Words of a turn and of a memory: the median, and how widely the logarithm strays (measured on real sessions).
TURN_WORDS, MEMORY_WORDS = (30, 1.0), (24, 0.4)
BATCH = 5000
FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
#: Words that many sessions are about: those that come after the stop words.
COMMON = (
    "file test code run error fix add change new make function line build check need commit change call update set "
    "branch name read write user value type config return issue work command data server path server release".split()
)


def vocabulary() -> list[str]:
    """Words from the commonest to the rarest: stop words, those of the trade, then made-up ones, some of them names."""
    starts, ends = "b br c ch d dr f g gl h j k l m n p pr r s st t tr v w z".split(), "a ai e ea i o ou u y".split()
    syllables = [start + end for start in starts for end in ends]
    made: list[str] = [*sorted(STOP_WORDS), *dict.fromkeys(COMMON)]
    for number, parts in enumerate(itertools.product(syllables, repeat=3)):
        if len(made) >= KINDS_OF_WORDS:
            break
        one, two, three = parts
        made.append(
            f"{one}{two}{three.capitalize()}{one}"
            if number % 9 == 0
            else f"{two}_{one}{three}"
            if number % 11 == 0
            else two + one + three
        )
    return made


class Words:
    """A source of texts: owns the random generator and the words with how often each comes."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.words = np.array(vocabulary(), dtype=object)
        weights = 1.0 / np.power(np.arange(len(self.words)) + 2.7, 1.07)
        self.reach = np.cumsum(weights / weights.sum())

    def texts(self, count: int, shape: tuple[int, float]) -> list[str]:
        lengths = np.clip(self.random.lognormal(np.log(shape[0]), shape[1], count).astype(int), 4, 1500)
        picked = self.words[
            np.searchsorted(self.reach, self.random.random(int(lengths.sum()))).clip(max=len(self.words) - 1)
        ]
        ends = np.cumsum(lengths)
        return [" ".join(picked[end - size : end]) for end, size in zip(ends, lengths, strict=True)]

    def vectors(self, count: int) -> list[bytes]:
        raw = self.random.standard_normal((count, DIM)).astype(np.float32)
        raw /= np.linalg.norm(raw, axis=1, keepdims=True)
        return [row.tobytes() for row in np.clip(raw * (127 / 0.25), -128, 127).astype(np.int8)]

    def project(self, number: int) -> int:
        """The project of the n-th session or memory: the first has a fifth, each next one less."""
        share = np.cumsum(1 / (np.arange(PROJECTS) + 1)) / np.sum(1 / (np.arange(PROJECTS) + 1))
        return 1 + int(np.searchsorted(share, ((number * 0.6180339887) % 1.0)))


def fill(rows: Rows, words: Words, *, turns: int, memories: int) -> None:
    """Puts everything in; the caller has the schema ready."""
    now = FIRST_DAY.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with rows.transaction(write=True):
        model = vectors.ensure_model(rows, MODEL, DIM, now=now)
        for number in range(1, PROJECTS + 1):
            projects.ensure(rows, stage_place.identify(place(number)), now=now)
    for first in range(0, turns, BATCH):
        with rows.transaction(write=True):
            _turns(rows, words, model, range(first + 1, min(turns, first + BATCH) + 1))
    for first in range(0, memories, BATCH):
        with rows.transaction(write=True):
            _memories(rows, words, model, range(first + 1, min(memories, first + BATCH) + 1), turns)
    rows.run(
        "insert into activity (project_seq, day) select distinct project_seq, substr(at, 1, 10) from turns where true on conflict do nothing"
    )


def place(number: int) -> str:
    """The directory of a project; there is none."""
    return f"/nowhere/p{number}"


def _at(number: int) -> str:
    return (FIRST_DAY + timedelta(seconds=40 * number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _turns(rows: Rows, words: Words, model: int, numbers: Sequence[int]) -> None:
    said, made = words.texts(len(numbers), TURN_WORDS), words.vectors(len(numbers))
    sessions = sorted({(number - 1) // SESSION_TURNS + 1 for number in numbers})
    where = {session: words.project(session) for session in sessions}
    rows.many(
        "insert into sessions (seq, id, host, project_seq, started_at, last_at, turns) values "
        "(:s, :id, 'claude', :p, :at, :at, :turns) on conflict do nothing",
        [
            {"s": s, "id": f"s{s}", "p": where[s], "at": _at(s * SESSION_TURNS), "turns": SESSION_TURNS}
            for s in sessions
        ],
    )
    table = [
        {"seq": number, "uuid": f"u{number:08d}", "s": (session := (number - 1) // SESSION_TURNS + 1), "p": where[session],
         "kind": ("user", "assistant")[number % 2], "text": text, "hash": f"{number:032x}", "at": _at(number),
         "o": (number - 1) % SESSION_TURNS + 1}
        for number, text in zip(numbers, said, strict=True)
    ]  # fmt: skip
    rows.many(
        "insert into turns (seq, uuid, session_seq, project_seq, kind, text, text_hash, at, source, searchable) values "
        "(:seq, :uuid, :s, :p, :kind, :text, :hash, :at, 'transcript', 1)",
        [{key: row[key] for key in row if key != "o"} for row in table],
    )
    rows.many("insert into session_turn (session_seq, ordinal, turn_seq) values (:s, :o, :seq)",
              [{key: row[key] for key in ("s", "o", "seq")} for row in table])  # fmt: skip
    _vectors(rows, model, "turn", [(row["seq"], row["p"], len(row["text"])) for row in table], made)


def _memories(rows: Rows, words: Words, model: int, numbers: Sequence[int], turns: int) -> None:
    said, made = words.texts(len(numbers), MEMORY_WORDS), words.vectors(len(numbers))
    table: list[dict[str, Any]] = [
        {"seq": n, "id": f"m{n:010x}", "text": text, "hash": f"{n:032x}", "p": words.project(n), "at": _at(n),
         "gate": ("epistemic", "behavioral", "correction", "relational", "promissory")[n % 5], "uuid": f"u{n * 9 % turns + 1:08d}", "session": f"s{n * 9 % turns // SESSION_TURNS + 1}"}
        for n, text in zip(numbers, said, strict=True)
    ]  # fmt: skip
    rows.many(
        "insert into memories (seq, id, text, text_hash, gate, category, type, tier, decay, authority, origin, "
        "confidence, scope, project_seq, session_id, created_at, confirmed_at, hot_until, warm_until, archive_at) values "
        "(:seq, :id, :text, :hash, :gate, 'decision', 'episodic', 'durable', 'durable', 'user', 'stated', 0.8, 'project', "
        ":p, :session, :at, :at, 10000, 20000, 30000)",
        [{key: row[key] for key in row if key != "uuid"} for row in table],
    )
    rows.many(
        "insert into provenance (memory_seq, uuid, session_id, at, role) values (:seq, :uuid, :session, :at, 'states')",
        [{key: row[key] for key in ("seq", "uuid", "at", "session")} for row in table],
    )
    _vectors(rows, model, "memory", [(row["seq"], row["p"], len(row["text"])) for row in table], made)


def _vectors(rows: Rows, model: int, kind: str, table: list[tuple[int, int, int]], made: list[bytes]) -> None:
    last = rows.value("select coalesce(max(seq), 0) from vectors")
    rows.many(
        "insert into vectors (seq, model_seq, kind, row_seq, start_at, end_at) values (:v, :model, :kind, :row, 0, :end)",
        [
            {"v": last + n, "model": model, "kind": kind, "row": seq, "end": size}
            for n, (seq, _, size) in enumerate(table, 1)
        ],
    )
    for number, ((_, project, _), vector) in enumerate(zip(table, made, strict=True), 1):
        vector_tables.insert_vector(rows, kind, model, last + number, project, vector)


def build(home: Path, *, turns: int, memories: int, seed: int = 1) -> Path:
    """The database of a home that holds so much; one that is there already is left as it is."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = home / "csmd.db"
    if database.exists():
        return database
    Store(database, now=_at(0)).close()
    with opened(database, readonly=False) as rows:
        for pragma in ("synchronous = off", "cache_size = -400000"):
            rows.run(f"pragma {pragma}")
        fill(rows, Words(seed), turns=turns, memories=memories)
        rows.run("pragma wal_checkpoint(truncate)")
    return database


def main() -> Iterator[str]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--memories", type=int, default=100_000)
    args = parser.parse_args()
    begun = time.monotonic()
    database = build(args.home, turns=args.turns, memories=args.memories)
    yield f"{database}: {database.stat().st_size >> 20} MB in {time.monotonic() - begun:.0f} s"


if __name__ == "__main__":
    print(*main(), sep="\n")
