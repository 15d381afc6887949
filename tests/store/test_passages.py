"""Passages stand for what turns say now, on every path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as given_values
from hypothesis import settings
from hypothesis import strategies as st

from csmd.store import fulltext, passages, project_merges, projects, purge, schema_migrations, turns, vectors
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows, close_quietly, connect
from csmd.text import prose

NOW = "2026-01-01T00:00:00.000Z"
LONG = "\n\n".join(f"The {name} keeps its eggs in nest {number}. It never sings at noon." for number, name in
                   enumerate(["heron", "osprey", "wren", "plover", "godwit"] * 3))  # fmt: skip


def say(rows: Rows, given: Any, uuid: str, said: str, *, name: str = "shop", **more: Any) -> int:
    project = projects.ensure(rows, given.project(name), now=given.now)
    turn = given.turn(uuid, said, **more)
    turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=project, path=f"/{turn.session_id}")
    return int(rows.value("select seq from turns where uuid = :uuid", uuid=uuid))


def embed(rows: Rows, *, name: str = "m") -> int:
    """Gives every passage that waits a vector; the model."""
    model = vectors.ensure_model(rows, name, 4, now=NOW)
    while waiting := vectors.read_backlog(rows, "passage", model, limit=50):
        made = [(seq, project, 0, len(said), bytes([seq % 100, 1, 1, 1])) for seq, project, said in waiting]
        vectors.add_vectors(
            rows, "passage", model, made, reached=waiting[-1][0], texts={seq: said for seq, _, said in waiting}
        )
    return model


def turn_text(rows: Rows, seq: int) -> str:
    return str(rows.value("select text from turns where seq = :seq", seq=seq))


def expected(rows: Rows) -> list[tuple[int, int, int, int, int]]:
    """(turn, session, project, start, end) of every passage that should be there of what turns say."""
    return [
        (seq, session, project, start, end)
        for seq, session, project, said in rows.all(
            "select seq, session_seq, project_seq, text from turns where searchable = 1 order by seq"
        )
        for start, end in prose.find_passages(said)
    ]


def stored(rows: Rows) -> list[tuple[int, int, int, int, int]]:
    return rows.all(
        "select turn_seq, session_seq, project_seq, start_at, end_at from passages where text = '' order by turn_seq, start_at"
    )


def test_a_passage_is_read_with_its_turn_session_and_neighbours(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        first = say(rows, given, "u1", LONG)
        say(rows, given, "u2", "Use pnpm.", session="s2", kind="assistant")
        last = say(rows, given, "u3", "Thanks.", second=5)
        made = passages.passages_of_turns(rows, [first, last, 99])
        assert len(made[first]) > 2 and len(made[last]) == 1 and made[99] == []
        found = passages.by_seqs(rows, [*made[first], *made[last], 999])
        assert [found[seq].text for seq in made[first]] == [LONG[start:end] for start, end in prose.find_passages(LONG)]
        assert {(one.uuid, one.session_id, one.project, one.kind) for one in found.values()} == {
            ("u1", "s1", "/home/me/shop", "user"), ("u3", "s1", "/home/me/shop", "user")
        }  # fmt: skip
        row = [*made[first], *made[last]]
        neighbours = passages.find_neighbours(rows, row)
        assert [neighbours[seq] for seq in row] == list(zip([0, *row[:-1]], [*row[1:], 0], strict=True))
        hits = fulltext.text_hits(rows, "passage", ["plover"], projects=None, limit=9)
        assert hits and all("plover" in found[seq].text for seq, _ in hits)

    store.write(story)
    assert store.write(check_database) == []


def test_an_answer_to_the_assistants_question_is_the_users_and_read_with_its_question(store: Store, given: Any) -> None:
    said = "> The ledger grows.\n> Which store?\nPostgreSQL\n\n> Which cache?\nnone"

    def story(rows: Rows) -> None:
        made = passages.passages_of_turns(rows, [say(rows, given, "u1/1", said)])
        (found,) = passages.by_seqs(rows, [seq for of in made.values() for seq in of]).values()
        asked = "The ledger grows.\nWhich store? -> PostgreSQL\n\nWhich cache? -> none"
        assert (found.text, found.kind) == (asked, "user")

    store.write(story)


def test_a_passage_of_an_agent_names_the_session_it_worked_for(store: Store, given: Any) -> None:
    def story(rows: Rows) -> str:
        seq = say(rows, given, "a1", "The heron flies.", agent_id="a9", kind="assistant")
        (passage,) = passages.passages_of_turns(rows, [seq])[seq]
        return passages.by_seqs(rows, [passage])[passage].session_id

    assert store.write(story) == "s1"


@pytest.mark.parametrize("said", ["", "\n---\n", "a\0b. Heron\0 two.", "好。好", "x" * 5000])
def test_any_text_has_the_passages_of_its_words(store: Store, given: Any, said: str) -> None:
    store.write(lambda rows: say(rows, given, "u1", said))
    assert store.read(stored) == store.read(expected)
    assert store.write(check_database) == []
    if "Heron" in said:
        assert len(store.read(lambda rows: fulltext.text_hits(rows, "passage", ["heron"], projects=None, limit=9))) == 1


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["say", "text", "hide", "show", "at", "project", "delete", "drop", "words"]),
        st.integers(0, 3),
        st.sampled_from(["One heron.", "## A\nTwo wrens.\n## B\nThree godwits.", "", LONG]),
    ),
    max_size=12,
)


@pytest.mark.invariant(
    "Passages stand for what turns say now, on every path, and so do their full-text index and vectors"
)
@settings(max_examples=60)
@given_values(CHANGES)
def test_whatever_becomes_of_turns_passages_their_index_and_vectors_follow(
    given: Any, changes: list[tuple[str, int, str]]
) -> None:
    connection = connect(Path(":memory:"), readonly=False)
    rows = Rows(connection)
    try:
        schema_migrations.migrate(rows, now=NOW)
        rows.run("insert into meta (key, value) values ('hash_key', :key)", key=b"k" * 32)
        for number, (change, place, said) in enumerate(changes):
            uuid = f"u{place}"
            if change == "say":
                say(rows, given, uuid, said, second=number)
            seq = rows.value("select seq from turns where uuid = :uuid", uuid=uuid)
            if seq is None:
                continue
            other = projects.ensure(rows, given.project(f"p{number}"), now=NOW)
            if change == "text":
                rows.run("update turns set text = :said, searchable = 1 where seq = :seq", said=said, seq=seq)
            elif change in ("hide", "show"):
                rows.run("update turns set searchable = :to where seq = :seq", to=int(change == "show"), seq=seq)
            elif change == "at":
                rows.run("update turns set at = :at where seq = :seq", at=given.at(900 + number), seq=seq)
            elif change == "project":
                rows.run("update turns set project_seq = :to where seq = :seq", to=other, seq=seq)
                vectors.move_passages(rows, seq, other)
            elif change == "delete":
                rows.run("delete from turns where seq = :seq", seq=seq)
            elif change == "words":
                passages.store_call_words(rows, seq, "A plan about plovers.", source=turn_text(rows, seq))
            elif change == "drop":
                rows.run(
                    "update turns set text = 'dropped', dropped = 9, gone = 1 where seq = :seq and gone = 0", seq=seq
                )
            embed(rows)
        assert stored(rows) == expected(rows)
        assert [text for text in check_database(rows) if "passage" in text or "vector" in text] == []
        for word, in_words in (("heron", "heron"), ("godwit", "godwits"), ("plover", "plover")):
            hits = {seq for seq, _ in fulltext.text_hits(rows, "passage", [word], projects=None, limit=999)}
            all_rows = passages.by_seqs(rows, [seq for (seq,) in rows.all("select seq from passages")])
            assert hits == {seq for seq, one in all_rows.items() if in_words in one.text or word in one.text}
    finally:
        close_quietly(connection)


def test_no_row_of_the_index_outlives_a_passage_that_a_foreign_key_takes(store: Store, given: Any) -> None:
    def story(rows: Rows) -> list[int]:
        seq = say(rows, given, "u1", LONG)
        model = embed(rows)
        made = passages.passages_of_turns(rows, [seq])[seq]
        rows.run("insert into passage_threads values (:older, :newer, 0.5)", older=made[0], newer=made[1])
        rows.run("delete from turns where seq = :seq", seq=seq)
        return [
            int(rows.value(f"select count(*) from {table}"))
            for table in ("passages", "passages_fts_docsize", "passage_threads", "vectors", "vector_codes", f"vec_passage_{model}")
        ]  # fmt: skip

    assert store.write(story) == [0] * 6
    assert store.read(lambda rows: fulltext.text_hits(rows, "passage", ["heron"], projects=None, limit=9)) == []


def test_words_of_a_tool_call_are_passages_that_outlive_its_input_but_no_purge(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        seq = say(rows, given, "t1", '{"plan": "Nest the herons."}', kind="tool_call", tool_name="ExitPlanMode")
        words, given_to = "Nest the herons.\n## Then\nCount the wrens.", turn_text(rows, seq)
        assert passages.store_call_words(rows, seq, words, source=given_to) == 2
        made = passages.passages_of_turns(rows, [seq])[seq]
        assert passages.store_call_words(rows, seq, words, source=given_to) == 2
        assert passages.passages_of_turns(rows, [seq])[seq] == made, "a fork brings them again"
        assert passages.store_call_words(rows, seq, "Other words.", source=given_to) == 1, "in place of what it had"
        assert passages.store_call_words(rows, seq, words, source=given_to) == 2
        assert passages.store_call_words(rows, seq, words, source="of before a purge") == 0
        found = passages.by_seqs(rows, passages.passages_of_turns(rows, [seq])[seq])
        assert [(one.kind, one.text, one.uuid) for one in found.values()] == [
            ("assistant", "Nest the herons.", "t1"), ("assistant", "## Then\nCount the wrens.", "t1")
        ]  # fmt: skip
        rows.run("update turns set text = '[dropped]', dropped = 9, gone = 1 where seq = :seq", seq=seq)
        assert len(fulltext.text_hits(rows, "passage", ["heron", "wren"], projects=None, limit=9)) == 2
        rows.run("update turns set text = '[purged]' where seq = :seq", seq=seq)
        assert fulltext.text_hits(rows, "passage", ["heron", "wren"], projects=None, limit=9) == []

    store.write(story)


def test_a_merge_of_projects_takes_passages_and_their_vectors_along(store: Store, given: Any) -> None:
    def story(rows: Rows) -> tuple[int, int]:
        shop, bank = (projects.ensure(rows, given.project(name), now=NOW) for name in ("shop", "bank"))
        say(rows, given, "u1", LONG, name="shop")
        model = embed(rows)
        project_merges.merge_projects(rows, shop, bank)
        near = [
            len(vectors.find_vector_hits(rows, "passage", model, bytes([1, 1, 1, 1]), projects=[one], limit=99))
            for one in (shop, bank)
        ]
        assert near == [0, len(prose.find_passages(LONG))]
        return shop, bank

    _, bank = store.write(story)
    assert {row[2] for row in store.read(stored)} == {bank}
    assert store.write(check_database) == []


def test_distances_are_told_in_one_statement_of_the_rows_that_have_a_vector(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        seq = say(rows, given, "u1", LONG)
        model = embed(rows)
        made = passages.passages_of_turns(rows, [seq])[seq]
        asked: list[str] = []
        own = rows.all
        rows.all = lambda sql, **values: asked.append(sql) or own(sql, **values)  # type: ignore[method-assign, func-returns-value]
        found = vectors.compute_distances(rows, "passage", model, bytes([made[0], 1, 1, 1]), [*made, 999])
        del rows.all
        assert len(asked) == 1
        assert found == {one: float((one - made[0]) ** 2) for one in made}
        assert vectors.compute_distances(rows, "passage", model, b"abcd", []) == {}

    store.write(story)


# --- Which passages follow which: links are kept once, the surest few of each, and go with what they join.


KEY = b"k" * 32


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


def say_each(rows: Rows, given: Any, uuid: str, said: str, *, session: str = "s1", second: float = 0) -> list[int]:
    """A turn; its passages."""
    project = projects.ensure(rows, given.project("shop"), now=given.now)
    turn = given.turn(uuid, said, session=session, second=second)
    turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=project, path=f"/{session}")
    seq = turn_seq(rows, uuid)
    return passages.passages_of_turns(rows, [seq])[seq]


def turn_seq(rows: Rows, uuid: str) -> int:
    return int(rows.value("select seq from turns where uuid = :uuid", uuid=uuid))


def links(rows: Rows) -> list[tuple[int, int, float]]:
    return rows.all("select older_seq, newer_seq, weight from passage_threads order by older_seq, newer_seq")


def followers(rows: Rows, seqs: list[int], *, least: float) -> dict[int, list[tuple[int, float]]]:
    return passages.find_later(rows, seqs, min_weight=least, sure=0.6, limit=2)


def test_what_surely_follows_more_than_a_few_others_follows_none(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        *olds, report = (say_each(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(4))
        for old, sure in zip(olds, (0.7, 0.9, 0.5), strict=True):
            passages.link_passages(rows, old, report, sure, limit=2)
        assert set(followers(rows, olds, least=0.1)) == set(olds)
        passages.link_passages(rows, olds[2], report, 0.6, limit=2)
        assert followers(rows, olds, least=0.1) == {}

    store.write(story)


def test_the_surest_few_of_a_passage_stay_and_the_surest_comes_first(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        old, one, two, three = (
            say_each(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(4)
        )
        for newer, sure in ((one, 0.4), (two, 0.9), (three, 0.6)):
            passages.link_passages(rows, old, newer, sure, limit=2)
        assert followers(rows, [old, one], least=0.1) == {old: [(two, 0.9), (three, 0.6)]}
        assert followers(rows, [old], least=0.7) == {old: [(two, 0.9)]}
        assert followers(rows, [old], least=0.95) == followers(rows, [], least=0.0) == {}

    store.write(story)


def test_a_link_is_kept_once_with_its_last_weight(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        old, new = (say_each(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(2))
        passages.link_passages(rows, old, new, 0.4, limit=3)
        passages.link_passages(rows, old, new, 0.7, limit=3)
        assert links(rows) == [(old, new, 0.7)]
        passages.link_passages(rows, old, 999, 0.9, limit=3)
        passages.link_passages(rows, 999, new, 0.9, limit=3)
        assert links(rows) == [(old, new, 0.7)], "what is gone is linked with nothing"

    store.write(story)


@settings(max_examples=25)
@given_values(st.permutations([(1, 0.2), (2, 0.9), (3, 0.5), (4, 0.7), (5, 0.4)]))
def test_the_order_in_which_links_are_noted_does_not_matter(
    undone: Callable[[Callable[[Rows], None]], None], given: Any, noted: list[tuple[int, float]]
) -> None:
    def story(rows: Rows) -> None:
        seqs = [say_each(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(6)]
        for number, sure in noted:
            passages.link_passages(rows, seqs[0], seqs[number], sure, limit=3)
        assert [sure for _, _, sure in sorted(links(rows), key=lambda row: -row[2])] == [0.9, 0.7, 0.5]

    undone(story)


def test_a_purge_of_either_end_takes_the_link_with_it(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for gone in ("u0", "u1"):
            old, new = (
                say_each(rows, given, f"{gone}-u{n}", f"The {gone} queue is number {n}.", second=n)[0] for n in range(2)
            )
            passages.link_passages(rows, old, new, 0.9, limit=3)
            assert len(links(rows)) == 1
            purge.purge_turn(rows, turn_seq(rows, f"{gone}-{gone}"), KEY)
            assert links(rows) == []
        assert check_database(rows) == []

    store.write(story)


def test_a_turn_that_is_changed_loses_its_links(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        old, new = (say_each(rows, given, f"u{n}", f"The queue is number {n}.", second=n)[0] for n in range(2))
        passages.link_passages(rows, old, new, 0.9, limit=3)
        rows.run("update turns set text = 'Something else.' where uuid = 'u1'")
        assert links(rows) == []

    store.write(story)


def test_what_stands_before_a_passage_is_of_its_session_the_nearest_first(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        first = say_each(rows, given, "u1", LONG)
        say_each(rows, given, "u2", "The queue of another session.", session="s2")
        (last,) = say_each(rows, given, "u3", "Thanks for the birds.", second=5)
        before = passages.map_passages_before(rows, [last, first[0], 999], limit=3)
        assert before[last] == first[:-4:-1] and before[first[0]] == []
        turn = turn_seq(rows, "u1")
        passages.store_call_words(rows, turn, "Calls a heron by its name.", source=LONG)
        assert passages.map_passages_before(rows, [last], limit=99)[last][-len(first) :] != []
        assert last not in passages.map_passages_before(rows, [last], limit=99)[last]

    store.write(story)


def test_passages_are_gone_through_in_order_and_counted(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        assert (passages.last_passage_seq(rows), passages.count_sessions(rows, None)) == (0, 0)
        seqs = say_each(rows, given, "u1", LONG)
        seqs += say_each(rows, given, "u2", "The queue of another session.", session="s2")
        assert passages.last_passage_seq(rows) == seqs[-1]
        assert passages.list_passages_after(rows, 0, until=seqs[-1], limit=99) == seqs
        assert passages.list_passages_after(rows, seqs[1], until=seqs[3], limit=99) == seqs[2:4]
        assert passages.list_passages_after(rows, seqs[0], until=seqs[-1], limit=1) == seqs[1:2]
        assert passages.count_passages_after(rows, seqs[0], until=seqs[-1]) == len(seqs) - 1
        assert passages.count_sessions(rows, None) == 2
        project = projects.ensure(rows, given.project("shop"), now=given.now)
        assert passages.count_sessions(rows, [project]) == 2 and passages.count_sessions(rows, [project + 1]) == 0
        turn = turn_seq(rows, "u2")
        assert passages.map_passage_keys(rows, [seqs[-1], 999])[seqs[-1]][0] == turn
        assert passages.map_passage_keys(rows, []) == {}

    store.write(story)
