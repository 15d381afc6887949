"""What the graph's operations take: store, bulk store, tag, link, by topic, recall of ten, stats.

    python tests/bench/bench_graph.py [--size 10000] [--projects 1] [--runs 200] [--json]

In this process on a store of its own, on the writer and the readers as the daemon uses them, with every index kept up to
date. Memories are made-up texts of about 24 words (tests/bench/big_store.py); each has up to five topics, a source, and
every third a link; the first projects are larger. Medians in microseconds, of this process's processor but for what waits for
the disk (`durable`, fsync), so that others who work on the machine count little:

    store     one memory within a transaction, without its commit; `durable` with it; `bulk` a hundred in one transaction
    fts       a bare insert of the same text into an FTS5 table of the same settings, kept in memory until the commit;
              `written` the same with its words written to the table, as SQLite has it done by every statement with triggers;
              `words` what is made of the text for the index. `store_by_fts`, `store_by_written` are the one by the other
    tag, link in bulk, a hundred in one transaction with its commit
    by_topic  the memories of a topic in a project with what they say; `whole` with all that is known of them, and
              `members` the median number
    recall    the ten best memories of a project for two content words of a memory, by the text index; `whole` with all that is
              known of them, `ranked` by the whole ranking of a search, without vectors
    stats     the counts of a project, and of all
    fsync     of a file beside the database to which 8 KiB were appended

The full-text index is merged before it is read, as the daemon does while nobody waits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

import big_store  # noqa: E402

from csmd.capture import project_identity  # noqa: E402
from csmd.knowledge import Link, Memory, Provenance  # noqa: E402
from csmd.recall import results  # noqa: E402
from csmd.store import fulltext, memories, memory_links, projects, topics  # noqa: E402
from csmd.store.core import Store  # noqa: E402
from csmd.store.sqlite import Rows  # noqa: E402
from csmd.text import search_terms, tokens  # noqa: E402

NOW = "2026-03-01T10:00:00.000Z"
BULK, TOPICS_OF_ONE, WORDS_ASKED = 100, 5, 2


class Graph:
    """A store that is filled to a size, and what the operations are asked of."""

    def __init__(self, store: Store, size: int, number: int) -> None:
        self.store = store
        self.words = big_store.Words(1)
        self.random = self.words.random
        self.places = store.write(
            lambda rows: [
                projects.ensure(rows, project_identity.identify_directory(big_store.place(n)), now=NOW)
                for n in range(number)
            ]
        )
        self.texts = self.words.texts(self.random.integers(0, big_store.SUBJECTS, size + 4000), big_store.MEMORY_WORDS)
        self.made = 0
        self.names = [f"topic {n}" for n in range(max(20, size // (20 * number)))]
        for _ in range(0, size, 1000):
            store.write(lambda rows: self._fill(rows, min(1000, size - self.made)))
        store.checkpoint(truncate=True)

    def memory(self) -> Memory:
        """The next one, of a project."""
        self.made += 1
        place = self.places[int(self.random.integers(0, len(self.places)) ** 2 // len(self.places))]
        source = Provenance(uuid=f"u{self.made}", session_id=f"s{self.made // 5}", at=NOW)
        return Memory(
            id=f"m{self.made:010x}", text=self.texts[self.made - 1], gate="epistemic", category="decision", type="episodic",
            tier="daily", decay="durable", authority="user", origin="stated", confidence=0.8, scope="project",
            project_seq=place, session_id=source.session_id, created_at=NOW, confirmed_at=NOW, hot_until=10_000,
            warm_until=20_000, archive_at=30_000, provenance=(source,),
        )  # fmt: skip

    def add(self, rows: Rows, memory: Memory) -> int:
        """Stores a memory; its row key."""
        return memories.insert(rows, memory, text_hash=f"{memory.id:0>32}")

    def topic(self) -> str:
        """A topic, the first ones more often."""
        return self.names[int(len(self.names) * self.random.random() ** 2)]

    def link(self) -> Link:
        """A link between two memories that are there."""
        one, other = self.random.integers(1, self.made, 2)
        return Link(from_id=f"m{one:010x}", to_id=f"m{other:010x}", relationship="relates_to", weight=0.5)

    def _fill(self, rows: Rows, number: int) -> None:
        for _ in range(number):
            seq = self.add(rows, self.memory())
            for name in {self.topic() for _ in range(int(self.random.integers(0, TOPICS_OF_ONE + 1)))}:
                topics.tag_memory(rows, seq, name, by=topics.RULE)
            if self.made % 3 == 0:
                memory_links.add_link(rows, self.link(), now=NOW)


def timed(work: Callable[[], Any], clock: Callable[[], int] = time.process_time_ns) -> float:
    """Microseconds of processor that a call takes in this process."""
    begun = clock()
    work()
    return (clock() - begun) / 1000


def of_many(
    runs: int, work: Callable[[], Any], *, each: int = 1, clock: Callable[[], int] = time.process_time_ns
) -> float:
    """The median microseconds of a call that does `each` of something, for one."""
    return median(timed(work, clock) for _ in range(runs)) / each


def fsync(folder: Path, runs: int) -> float:
    """Median microseconds of an fsync after an append."""
    with (folder / "fsync").open("ab", buffering=0) as file:

        def append() -> None:
            file.write(b"x" * 8192)
            os.fsync(file.fileno())

        return of_many(runs, append, clock=time.perf_counter_ns)


def writes(graph: Graph, runs: int) -> dict[str, float]:
    """The figures of what writes."""
    store = graph.store

    def one_by_one(rows: Rows) -> list[float]:
        took = []
        for _ in range(runs):
            memory = graph.memory()
            took.append(timed(lambda memory=memory: graph.add(rows, memory)))
        return took

    def bare(rows: Rows) -> tuple[float, float, float]:
        rows.run(
            "create virtual table temp.bare using fts5(text, content='', tokenize='porter unicode61 remove_diacritics 2')"
        )
        insert = "insert into temp.bare (rowid, text) values (:seq, :text)"

        def written(seq: int, text: str) -> None:
            rows.run(insert, seq=seq, text=text)
            rows.run("savepoint written")
            rows.run("release written")

        texts = graph.texts[: 2 * runs]
        words = median(timed(lambda text=text: search_terms.build_index_text(text, NOW)) for text in texts)
        for seq, text in enumerate(graph.texts[2 * runs : 2 * runs + 3000]):
            rows.run(insert, seq=seq, text=text)
        made = [(10**6 + number, search_terms.build_index_text(text, NOW)) for number, text in enumerate(texts)]
        kept = median(
            timed(lambda seq=seq, text=text: rows.run(insert, seq=seq, text=text)) for seq, text in made[:runs]
        )
        return kept, median(timed(lambda one=one: written(*one)) for one in made[runs:]), words

    def many(make: Callable[[Rows], Any]) -> Callable[[], None]:
        def work(rows: Rows) -> None:
            for _ in range(BULK):
                make(rows)

        return lambda: store.write(work)

    def tag(rows: Rows) -> None:
        topics.tag_memory(rows, int(graph.random.integers(1, graph.made)), graph.topic(), by=topics.PERSON)

    bulks = max(5, runs // 20)
    kept, written, words = store.write(bare)
    stored = median(store.write(one_by_one))
    return {
        "store_us": stored,
        "fts_us": kept,
        "written_us": written,
        "words_us": words,
        "store_by_fts": stored / kept,
        "store_by_written": stored / written,
        "store_durable_us": of_many(
            runs, lambda: store.write(lambda rows: graph.add(rows, graph.memory())), clock=time.perf_counter_ns
        ),
        "bulk_us": of_many(bulks, many(lambda rows: graph.add(rows, graph.memory())), each=BULK),
        "tag_us": of_many(bulks, many(tag), each=BULK),
        "link_us": of_many(bulks, many(lambda rows: memory_links.add_link(rows, graph.link(), now=NOW)), each=BULK),
    }  # fmt: skip


def reads(graph: Graph, runs: int) -> dict[str, float]:
    """The figures of what reads; without the way to the reader's thread, which an empty read takes."""
    store, found = graph.store, []
    place = graph.places[0]

    def by_topic(rows: Rows) -> None:
        found.append(len(topics.list_members(rows, graph.topic(), [place])))

    def by_topic_whole(rows: Rows) -> None:
        memories.by_seqs(rows, list(topics.list_members(rows, graph.topic(), [place])))

    def question() -> str:
        words = tokens.content_words(graph.texts[int(graph.random.integers(0, graph.made))])
        return " ".join(words[at] for at in graph.random.integers(0, len(words), WORDS_ASKED))

    def recall(rows: Rows, asked: str) -> list[int]:
        hits = fulltext.text_hits(rows, "memory", search_terms.query_terms(asked), projects=[place], limit=10)
        return [int(seq) for seq, _ in hits]

    def stats(rows: Rows, places: Sequence[int] | None) -> None:
        memory_links.count_nodes_and_edges(rows, places)
        memory_links.count_relationships(rows, places)

    def measure(rows: Rows) -> dict[str, float]:
        asked = [question() for _ in range(runs)]
        first, again, ranked = iter(asked), iter(asked), iter(asked)
        return {
            "by_topic_us": of_many(runs, lambda: by_topic(rows)),
            "by_topic_whole_us": of_many(runs, lambda: by_topic_whole(rows)),
            "recall_us": of_many(runs, lambda: recall(rows, next(first))),
            "recall_whole_us": of_many(runs, lambda: memories.by_seqs(rows, recall(rows, next(again)))),
            "ranked_us": of_many(runs, lambda: results.find(rows, next(ranked), projects=[place], kind="memory", limit=10, embed=None)),
            "stats_us": of_many(100, lambda: stats(rows, [place])),
            "stats_all_us": of_many(100, lambda: stats(rows, None)),
        }  # fmt: skip

    while store.write(fulltext.merge_indexes):
        pass
    return {**store.read(measure), "members": median(found)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--projects", type=int, default=1)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--home", type=Path, help="where the database is made; its file system is the one measured")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.home) as name:
        folder = Path(name)
        store = Store(folder / "csmd.db", now=NOW)
        try:
            graph = Graph(store, args.size, args.projects)
            figures = {
                "size": args.size,
                "projects": args.projects,
                **reads(graph, args.runs),
                **writes(graph, args.runs),
            }
            figures["fsync_us"] = fsync(folder, args.runs)
        finally:
            store.close()
    shown = {name: round(value, 1) for name, value in figures.items()}
    print(json.dumps(shown) if args.json else "\n".join(f"{name:<18}{value:>12}" for name, value in shown.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
