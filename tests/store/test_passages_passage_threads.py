"""Which passages follow which: links are kept once, the surest few of each, and go with what they join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

from csmd.store import passages, projects, purge, turns
from csmd.store.core import Store
from csmd.store.integrity import integrity
from csmd.store.sqlite import Rows

KEY = b"k" * 32
LONG = "\n\n".join(f"The {name} keeps its eggs in nest {number}. It never sings at noon." for number, name in
                   enumerate(["heron", "osprey", "wren", "plover", "godwit"] * 3))  # fmt: skip


class _Undone(Exception):
    pass


@pytest.fixture(scope="module")
def undone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Callable[[Rows], None]], None]]:
    """Writes into a store and takes it back, for many examples."""
    made = Store(Path(tmp_path_factory.mktemp("threads")) / "csmd.db", now="2026-01-01T00:00:00.000Z")

    def write(story: Callable[[Rows], None]) -> None:
        def undo(rows: Rows) -> None:
            story(rows)
            raise _Undone

        with pytest.raises(_Undone):
            made.write(undo)

    yield write
    made.close()


def say(rows: Rows, given: Any, uuid: str, said: str, *, session: str = "s1", second: float = 0) -> list[int]:
    """A turn; its passages."""
    project = projects.ensure(rows, given.project("shop"), now=given.now)
    turn = given.turn(uuid, said, session=session, second=second)
    turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=project, path=f"/{session}")
    seq = turn_seq(rows, uuid)
    return passages.of_turns(rows, [seq])[seq]


def turn_seq(rows: Rows, uuid: str) -> int:
    return int(rows.value("select seq from turns where uuid = :uuid", uuid=uuid))


def links(rows: Rows) -> list[tuple[int, int, float]]:
    return rows.all("select older_seq, newer_seq, weight from passage_threads order by older_seq, newer_seq")


def followers(rows: Rows, seqs: list[int], *, least: float) -> dict[int, list[tuple[int, float]]]:
    return passages.newer_than(rows, seqs, least=least, sure=0.6, most=2)


def test_what_surely_follows_more_than_a_few_others_follows_none(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        *olds, report = (say(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(4))
        for old, sure in zip(olds, (0.7, 0.9, 0.5), strict=True):
            passages.link_passages(rows, old, report, sure, most=2)
        assert set(followers(rows, olds, least=0.1)) == set(olds)
        passages.link_passages(rows, olds[2], report, 0.6, most=2)
        assert followers(rows, olds, least=0.1) == {}

    store.write(story)


def test_the_surest_few_of_a_passage_stay_and_the_surest_comes_first(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        old, one, two, three = (say(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(4))
        for newer, sure in ((one, 0.4), (two, 0.9), (three, 0.6)):
            passages.link_passages(rows, old, newer, sure, most=2)
        assert followers(rows, [old, one], least=0.1) == {old: [(two, 0.9), (three, 0.6)]}
        assert followers(rows, [old], least=0.7) == {old: [(two, 0.9)]}
        assert followers(rows, [old], least=0.95) == followers(rows, [], least=0.0) == {}

    store.write(story)


def test_a_link_is_kept_once_with_its_last_weight(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        old, new = (say(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(2))
        passages.link_passages(rows, old, new, 0.4, most=3)
        passages.link_passages(rows, old, new, 0.7, most=3)
        assert links(rows) == [(old, new, 0.7)]
        passages.link_passages(rows, old, 999, 0.9, most=3)
        passages.link_passages(rows, 999, new, 0.9, most=3)
        assert links(rows) == [(old, new, 0.7)], "what is gone is linked with nothing"

    store.write(story)


@settings(max_examples=25)
@given_values(st.permutations([(1, 0.2), (2, 0.9), (3, 0.5), (4, 0.7), (5, 0.4)]))
def test_the_order_in_which_links_are_noted_does_not_matter(
    undone: Callable[[Callable[[Rows], None]], None], given: Any, noted: list[tuple[int, float]]
) -> None:
    def story(rows: Rows) -> None:
        seqs = [say(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(6)]
        for number, sure in noted:
            passages.link_passages(rows, seqs[0], seqs[number], sure, most=3)
        assert [sure for _, _, sure in sorted(links(rows), key=lambda row: -row[2])] == [0.9, 0.7, 0.5]

    undone(story)


def test_a_purge_of_either_end_takes_the_link_with_it(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for gone in ("u0", "u1"):
            old, new = (
                say(rows, given, f"{gone}-u{n}", f"The {gone} queue is number {n}.", second=n)[0] for n in range(2)
            )
            passages.link_passages(rows, old, new, 0.9, most=3)
            assert len(links(rows)) == 1
            purge.purge_turn(rows, turn_seq(rows, f"{gone}-{gone}"), KEY)
            assert links(rows) == []
        assert integrity(rows) == []

    store.write(story)


def test_a_turn_that_is_changed_loses_its_links(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        old, new = (say(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(2))
        passages.link_passages(rows, old, new, 0.9, most=3)
        rows.run("update turns set text = 'Something else.' where uuid = 'u1'")
        assert links(rows) == []

    store.write(story)


def test_what_stands_before_a_passage_is_of_its_session_the_nearest_first(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        first = say(rows, given, "u1", LONG)
        say(rows, given, "u2", "The queue of another session.", session="s2")
        (last,) = say(rows, given, "u3", "Thanks for the birds.", second=5)
        before = passages.before_passage(rows, [last, first[0], 999], most=3)
        assert before[last] == first[:-4:-1] and before[first[0]] == []
        turn = turn_seq(rows, "u1")
        passages.add_words(rows, turn, "Calls a heron by its name.", given=LONG)
        assert passages.before_passage(rows, [last], most=99)[last][-len(first) :] != []
        assert last not in passages.before_passage(rows, [last], most=99)[last]

    store.write(story)


def test_passages_are_gone_through_in_order_and_counted(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        assert (passages.last_looked_at(rows), passages.passage_sessions(rows, None)) == (0, 0)
        seqs = say(rows, given, "u1", LONG)
        seqs += say(rows, given, "u2", "The queue of another session.", session="s2")
        assert passages.last_looked_at(rows) == seqs[-1]
        assert passages.after_passage(rows, 0, until=seqs[-1], limit=99) == seqs
        assert passages.after_passage(rows, seqs[1], until=seqs[3], limit=99) == seqs[2:4]
        assert passages.after_passage(rows, seqs[0], until=seqs[-1], limit=1) == seqs[1:2]
        assert passages.count_after(rows, seqs[0], until=seqs[-1]) == len(seqs) - 1
        assert passages.passage_sessions(rows, None) == 2
        project = projects.ensure(rows, given.project("shop"), now=given.now)
        assert passages.passage_sessions(rows, [project]) == 2 and passages.passage_sessions(rows, [project + 1]) == 0
        turn = turn_seq(rows, "u2")
        assert passages.passage_places(rows, [seqs[-1], 999])[seqs[-1]][0] == turn
        assert passages.passage_places(rows, []) == {}

    store.write(story)
