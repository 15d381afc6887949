"""Fills a store with made-up memories, turns and passages of real shape, straight by SQL: words as rare as Zipf has them.

    python tests/bench/big_store.py HOME [--turns 1000000] [--memories 100000] [--seed 1]

Every turn is one that is searched (in real sessions about one in four is) and has 1.3 passages of about 25 words. Sessions
have 200 turns; projects are 20, the largest with a third of everything. A session stays with a few of the home's subjects:
its words and its vectors come from these. Vectors have a subject, a part of their own and a falling spectrum, as those of
sentences have. What triggers do is done for many rows at once: a million turns take about ten minutes and 3 GB.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from csmd.capture import project_identity
from csmd.recall.ranking import VECTOR_SCALE
from csmd.store import cursors, projects, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows, open_rows
from csmd.store.vectors import make_table_name
from csmd.text import search_terms
from csmd.text.tokens import STOP_WORDS

DIM, MODEL = 384, "bench@0"
SESSION_TURNS, PROJECTS, LARGEST, KINDS_OF_WORDS = 200, 20, 1 / 3, 400_000
#: Words of a passage and of a memory: the median, and how widely the logarithm strays (measured on real sessions).
PASSAGE_WORDS, MEMORY_WORDS, SENTENCE_WORDS = (22, 0.5), (24, 0.4), 12
#: One turn in so many has a second passage; so many passages in a hundred are followed by a newer one.
SECOND, FOLLOWED = 3, 40
#: Subjects of a home, of a session, and words of a subject; one word in so many is of the subject.
SUBJECTS, OF_SESSION, SUBJECT_WORDS, SUBJECT_SHARE = 4000, 4, 60, 4
#: What a vector has of its subject; the rest is its own.
SUBJECT_PART = 0.6
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
    """A source of texts and vectors: owns the random generator, the words with how often each comes, and the subjects."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.words = np.array(vocabulary(), dtype=object)
        weights = 1.0 / np.power(np.arange(len(self.words)) + 2.7, 1.07)
        self.reach = np.cumsum(weights / weights.sum())
        subjects = np.random.default_rng(0)  # the same in every home, whatever is drawn from them
        self.of_subject = subjects.integers(300, 60_000, (SUBJECTS, SUBJECT_WORDS))
        self.spectrum = (1.0 / np.sqrt(np.arange(DIM) + 8.0)).astype(np.float32)
        self.turned = np.linalg.qr(subjects.standard_normal((DIM, DIM)))[0].astype(np.float32)
        self.centres = self._unit(subjects.standard_normal((SUBJECTS, DIM)).astype(np.float32) * self.spectrum)

    @staticmethod
    def _unit(raw: Any) -> Any:
        return raw / np.linalg.norm(raw, axis=1, keepdims=True)

    def texts(self, subjects: Any, shape: tuple[float, float]) -> list[str]:
        """Sentences on each of these subjects; a third of their words stand for themselves."""
        count = len(subjects)
        lengths = np.clip(self.random.lognormal(np.log(shape[0]), shape[1], count).astype(int), 4, 90)
        many = int(lengths.sum())
        drawn = np.searchsorted(self.reach, self.random.random(many)).clip(max=len(self.words) - 1)
        own = self.of_subject[np.repeat(subjects, lengths), self.random.integers(0, SUBJECT_WORDS, many)]
        picked = self.words[np.where(self.random.random(many) < 1 / SUBJECT_SHARE, own, drawn)]
        ends = np.cumsum(lengths)
        return [_sentences(picked[end - size : end]) for end, size in zip(ends, lengths, strict=True)]

    def vectors(self, subjects: Any) -> list[bytes]:
        """A vector near the centre of each of these subjects, as it is stored."""
        own = self._unit(self.random.standard_normal((len(subjects), DIM)).astype(np.float32) * self.spectrum)
        raw = self._unit(SUBJECT_PART * self.centres[subjects] + (1 - SUBJECT_PART) * own) @ self.turned
        return [row.tobytes() for row in np.clip(np.rint(raw * VECTOR_SCALE), -127, 127).astype(np.int8)]

    def subjects(self, turns: Sequence[int]) -> Any:
        """The subject of each of these turns: a session goes through a few, one after the other."""
        of: dict[int, Any] = {}
        for session in {_session(turn) for turn in turns}:
            of[session] = np.random.default_rng(session).integers(0, SUBJECTS, OF_SESSION)
        return np.array(
            [of[_session(turn)][(turn - 1) % SESSION_TURNS * OF_SESSION // SESSION_TURNS] for turn in turns]
        )

    def project(self, number: int) -> int:
        """The project of the n-th session: the first has a third, each next one less."""
        rest = 1 / np.arange(2, PROJECTS + 1)
        share = np.cumsum([LARGEST, *((1 - LARGEST) * rest / rest.sum())])
        return 1 + int(np.searchsorted(share, ((number * 0.6180339887) % 1.0)).clip(max=PROJECTS - 1))


def _sentences(words: Any) -> str:
    parts = [" ".join(words[at : at + SENTENCE_WORDS]) for at in range(0, len(words), SENTENCE_WORDS)]
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


@contextmanager
def _without_trigger(rows: Rows, name: str) -> Iterator[None]:
    """A trigger is gone while the block runs, which does its work itself."""
    sql = rows.value("select sql from sqlite_schema where type = 'trigger' and name = :name", name=name)
    rows.run(f"drop trigger {name}")
    yield
    rows.run(sql)


@dataclass
class Filling:
    """What is filled, by whom, and the last row keys that were given."""

    rows: Rows
    words: Words
    model: int
    passage: int = 0
    vector: int = 0


def fill(rows: Rows, words: Words, *, turns: int, memories: int) -> None:
    """Puts everything in; the caller has the schema ready."""
    now = FIRST_DAY.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with rows.transaction(write=True):
        model = vectors.ensure_model(rows, MODEL, DIM, now=now)
        for number in range(1, PROJECTS + 1):
            projects.ensure(rows, project_identity.identify_directory(place(number)), now=now)
    filling = Filling(rows, words, model)
    with _without_trigger(rows, "turns_passages_insert"):
        for first in range(0, turns, BATCH):
            with rows.transaction(write=True):
                _turns(filling, range(first + 1, min(turns, first + BATCH) + 1))
    for first in range(0, memories, BATCH):
        with rows.transaction(write=True):
            _memories(filling, range(first + 1, min(memories, first + BATCH) + 1), turns)
    with rows.transaction(write=True):
        rows.run(
            "insert into activity (project_seq, day) select distinct project_seq, substr(at, 1, 10) from turns "
            "where true on conflict do nothing"
        )
        cursors.move_cursor(rows, "embed-passage", str(model), filling.passage)
        cursors.move_cursor(rows, "embed-memory", str(model), memories)
        cursors.move_cursor(rows, "threads", str(model), filling.passage)


def place(number: int) -> str:
    """The directory of a project; there is none."""
    return f"/nowhere/p{number}"


def _at(number: int) -> str:
    return (FIRST_DAY + timedelta(seconds=40 * number)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _session(number: int) -> int:
    return (number - 1) // SESSION_TURNS + 1


def _turns(filling: Filling, numbers: Sequence[int]) -> None:
    rows, words = filling.rows, filling.words
    sessions = sorted({_session(number) for number in numbers})
    where = {session: words.project(session) for session in sessions}
    rows.many(
        "insert into sessions (seq, id, host, project_seq, started_at, last_at, turns) values "
        "(:s, :id, 'claude', :p, :at, :at, :turns) on conflict do nothing",
        [
            {"s": s, "id": f"s{s}", "p": where[s], "at": _at(s * SESSION_TURNS), "turns": SESSION_TURNS}
            for s in sessions
        ],
    )
    of = [number for number in numbers for _ in range(2 if number % SECOND == 0 else 1)]
    subjects = words.subjects(of)
    said, made = words.texts(subjects, PASSAGE_WORDS), words.vectors(subjects)
    texts: dict[int, str] = {}
    spans: list[dict[str, Any]] = []
    for seq, (number, passage) in enumerate(zip(of, said, strict=True), filling.passage + 1):
        before = f"{texts[number]}\n\n" if number in texts else ""
        texts[number] = before + passage
        session = _session(number)
        spans.append({"seq": seq, "turn": number, "s": session, "p": where[session], "start": len(before), "end": len(texts[number])})  # fmt: skip
    rows.many(
        "insert into turns (seq, uuid, session_seq, project_seq, kind, text, text_hash, at, source, searchable) values "
        "(:seq, :uuid, :s, :p, :kind, :text, :hash, :at, 'transcript', 1)",
        [
            {"seq": number, "uuid": f"u{number:08d}", "s": _session(number), "p": where[_session(number)],
             "kind": ("user", "assistant")[number % 2], "text": text, "hash": f"{number:032x}", "at": _at(number)}
            for number, text in texts.items()
        ],
    )  # fmt: skip
    rows.many(
        "insert into session_turn (session_seq, ordinal, turn_seq) values (:s, :o, :seq)",
        [{"s": _session(number), "o": (number - 1) % SESSION_TURNS + 1, "seq": number} for number in texts],
    )
    rows.many(
        "insert into passages (seq, turn_seq, session_seq, project_seq, start_at, end_at) values "
        "(:seq, :turn, :s, :p, :start, :end)",
        spans,
    )
    rows.many(
        "insert into passages_fts (rowid, text) values (:seq, :text)",
        [
            {"seq": one["seq"], "text": search_terms.build_index_text(text, _at(one["turn"]))}
            for one, text in zip(spans, said, strict=True)
        ],
    )
    _vectors(filling, "passage", [(one["seq"], one["p"], one["end"] - one["start"]) for one in spans], made)
    _threads(filling, spans)
    filling.passage += len(spans)


def _threads(filling: Filling, spans: Sequence[dict[str, Any]]) -> None:
    """Some passages are followed by one of the same project, a little later."""
    by_project: dict[int, list[int]] = {}
    for one in spans:
        by_project.setdefault(one["p"], []).append(one["seq"])
    links = [
        {"older": seqs[at], "newer": newer, "weight": round(float(weight), 4)}
        for seqs in by_project.values()
        for at, weight in enumerate(filling.words.random.random(len(seqs)))
        if (at * 37) % 100 < FOLLOWED
        for newer in {seqs[min(len(seqs) - 1, at + 60)], seqs[min(len(seqs) - 1, at + 700)]} - {seqs[at]}
    ]
    filling.rows.many(
        "insert into passage_threads (older_seq, newer_seq, weight) values (:older, :newer, :weight)", links
    )


def _memories(filling: Filling, numbers: Sequence[int], turns: int) -> None:
    """A memory is stated in a turn of its project, on that turn's subject."""
    rows, words = filling.rows, filling.words
    turn_of = {n: n * 9 % turns + 1 for n in numbers}
    subjects = words.subjects(list(turn_of.values()))
    said, made = words.texts(subjects, MEMORY_WORDS), words.vectors(subjects)
    table: list[dict[str, Any]] = [
        {"seq": n, "id": f"m{n:010x}", "text": text, "hash": f"{n:032x}", "p": words.project(_session(turn_of[n])), "at": _at(turn_of[n]),
         "gate": ("epistemic", "behavioral", "correction", "relational", "promissory")[n % 5], "uuid": f"u{turn_of[n]:08d}", "session": f"s{_session(turn_of[n])}"}
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
    _vectors(filling, "memory", [(row["seq"], row["p"], len(row["text"])) for row in table], made)


def _vectors(filling: Filling, kind: str, table: Sequence[tuple[int, int, int]], made: Sequence[bytes]) -> None:
    rows, model = filling.rows, filling.model
    numbered = list(enumerate(zip(table, made, strict=True), filling.vector + 1))
    filling.vector += len(numbered)
    rows.many(
        "insert into vectors (seq, model_seq, kind, row_seq, start_at, end_at) values (:v, :model, :kind, :row, 0, :end)",
        [{"v": n, "model": model, "kind": kind, "row": seq, "end": size} for n, ((seq, _, size), _) in numbered],
    )
    rows.many(
        f"insert into {make_table_name(kind, model)} (rowid, project_seq, embedding) values (:v, :p, vec_int8(:vector))",
        [{"v": n, "p": project, "vector": vector} for n, ((_, project, _), vector) in numbered],
    )
    signs = np.packbits(np.frombuffer(b"".join(made), dtype=np.int8).reshape(-1, DIM) > 0, axis=1, bitorder="little")
    rows.many(
        "insert into vector_codes (model_seq, kind, project_seq, seq, code) values (:model, :kind, :p, :v, :code)",
        [
            {"model": model, "kind": kind, "p": project, "v": n, "code": code.tobytes()}
            for (n, ((_, project, _), _)), code in zip(numbered, signs, strict=True)
        ],
    )


def build(home: Path, *, turns: int, memories: int, seed: int = 1) -> Path:
    """The database of a home that holds so much; one that is there already is left as it is."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    database, unfinished = home / "csmd.db", home / "csmd.db.part"
    if database.exists():
        return database
    unfinished.unlink(missing_ok=True)
    Store(unfinished, now=_at(0)).close()
    with open_rows(unfinished, readonly=False) as rows:
        for pragma in ("synchronous = off", "cache_size = -400000"):
            rows.run(f"pragma {pragma}")
        fill(rows, Words(seed), turns=turns, memories=memories)
        rows.run("pragma wal_checkpoint(truncate)")
    unfinished.rename(database)
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
