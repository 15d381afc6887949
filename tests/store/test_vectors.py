"""A row has its vectors once for each model, and none outlives it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from csmd.errors import StoreError
from csmd.store import activity, memories, projects, turns, vectors
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows


def memory(rows: Rows, given: Any, ident: str, project: int = 0) -> int:
    return memories.insert(rows, given.memory(ident, f"text of {ident}", project=project), text_hash=ident)


def test_a_model_has_one_key_and_one_length_of_vector(store: Store) -> None:
    def story(rows: Rows) -> None:
        assert vectors.find_model(rows, "small") is None
        first = vectors.ensure_model(rows, "small", 4, now="")
        assert vectors.ensure_model(rows, "small", 4, now="") == first == vectors.find_model(rows, "small")
        assert vectors.ensure_model(rows, "large", 8, now="") != first
        with pytest.raises(StoreError, match="4"):
            vectors.ensure_model(rows, "small", 5, now="")

    store.write(story)


def test_the_backlog_holds_what_stands_past_the_cursor_and_is_searched_for(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now="")
        project = projects.ensure(rows, given.project(), now="")
        for uuid, kind in (("a", "user"), ("b", "tool_result"), ("c", "assistant"), ("d", "user")):
            turn = given.turn(uuid, "" if uuid == "d" else uuid, kind=kind)
            turns.add_turn(rows, turn, text_hash=uuid, host="claude", project=project, path="")
        seqs = [memory(rows, given, "m1"), memory(rows, given, "m2")]
        assert [text for _, _, text in vectors.read_backlog(rows, "passage", model, limit=9)] == ["a", "c"]
        assert vectors.read_backlog(rows, "memory", model, limit=1) == [(seqs[0], 0, "text of m1")]
        assert vectors.count_waiting(rows, model) == vectors.count_waiting(rows, None) == 4
        assert vectors.add_vectors(rows, "memory", model, [(seqs[0], 0, 0, 4, b"abcd")], reached=seqs[0]) == 1
        assert vectors.add_vectors(rows, "memory", model, [(seqs[0], 0, 0, 4, b"abcd")], reached=seqs[0]) == 0
        assert vectors.count_waiting(rows, model) == 3
        other = vectors.ensure_model(rows, "n", 8, now="")
        assert vectors.count_waiting(rows, other) == 4, "a new model has all of it before it"

    store.write(story)


def test_a_row_that_went_away_meanwhile_gets_no_vector_and_the_cursor_moves(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now="")
        kept = memory(rows, given, "m1")
        assert (
            vectors.add_vectors(rows, "memory", model, [(kept, 0, 0, 1, b"abcd"), (99, 0, 0, 1, b"abcd")], reached=99)
            == 1
        )
        assert vectors.count_waiting(rows, model) == 0

    store.write(story)
    assert store.write(check_database) == []


def test_a_vector_of_the_wrong_length_is_refused_and_stored_nowhere(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now="")
        vectors.add_vectors(rows, "memory", model, [(memory(rows, given, "m1"), 0, 0, 1, b"abc")], reached=1)

    with pytest.raises(StoreError):
        store.write(story)
    assert store.read(activity.counts)["vectors"] == 0
    assert store.write(check_database) == []


def test_removing_a_rows_vectors_removes_them_of_every_model_and_of_no_other_row(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        one, other = memory(rows, given, "m1"), memory(rows, given, "m2")
        for name in ("m", "n"):
            model = vectors.ensure_model(rows, name, 4, now="")
            vectors.add_vectors(
                rows,
                "memory",
                model,
                [(one, 0, 0, 1, b"abcd"), (one, 0, 1, 2, b"bbcd"), (other, 0, 0, 1, b"cbcd")],
                reached=other,
            )
        vectors.delete_of_row(rows, "passage", one)
        assert activity.counts(rows)["vectors"] == 6
        vectors.delete_of_row(rows, "memory", one)
        for model in (1, 2):
            assert [
                row[0] for row in vectors.find_vector_hits(rows, "memory", model, b"abcd", projects=None, limit=9)
            ] == [other]
        rows.run("delete from memories where seq = :seq", seq=one)

    store.write(story)
    assert store.write(check_database) == []


def test_the_nearest_come_first_within_the_projects_that_are_asked_for(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 4, now="")
        shop = projects.ensure(rows, given.project(), now="")
        near, far, elsewhere = memory(rows, given, "a", shop), memory(rows, given, "b"), memory(rows, given, "c", shop)
        vectors.move_vectors(rows, "memory", near, shop)
        vectors.add_vectors(rows, "memory", model, [(near, shop, 0, 3, bytes([10, 0, 0, 0])), (far, 0, 0, 3, bytes([10, 3, 4, 0])),
                                            (elsewhere, shop, 5, 9, bytes([0, 0, 0, 100]))], reached=9)  # fmt: skip
        hits = vectors.find_vector_hits(rows, "memory", model, bytes([10, 0, 0, 0]), projects=None, limit=2)
        assert hits == [(near, 0, 3, 0.0), (far, 0, 3, pytest.approx(25.0))]
        both = vectors.find_vector_hits(rows, "memory", model, bytes([10, 0, 0, 0]), projects=[0, shop], limit=9)
        assert [row[0] for row in both] == [near, far, elsewhere]
        assert [row[0] for row in vectors.find_vector_hits(rows, "memory", model, bytes(4), projects=[0], limit=9)] == [
            far
        ]
        vectors.move_vectors(rows, "memory", far, shop)
        rows.run("update memories set project_seq = :shop where seq = :seq", shop=shop, seq=far)
        assert vectors.find_vector_hits(rows, "memory", model, bytes(4), projects=[0], limit=9) == []
        assert len(vectors.find_vector_hits(rows, "memory", model, bytes(4), projects=[shop], limit=9)) == 3
        with pytest.raises(StoreError, match="no vectors"):
            vectors.make_table_name("statements; drop", model)

    store.write(story)
    assert store.write(check_database) == []


@pytest.mark.invariant(
    "A question costs no more in a large store: rare words first, else the newest; signs of vectors only pre-select"
)
def test_of_many_vectors_those_of_the_nearest_signs_are_compared_whole(
    store: Store, given: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def story(rows: Rows) -> None:
        model = vectors.ensure_model(rows, "m", 8, now="")
        shop = projects.ensure(rows, given.project(), now="")
        generator = random.Random(1)
        made = [bytes(generator.randrange(256) for _ in range(8)) for _ in range(60)]
        for number, vector in enumerate(made):
            seq = memory(rows, given, f"m{number}", shop if number % 2 else 0)
            vectors.add_vectors(rows, "memory", model, [(seq, 0, 0, 4, vector)], reached=seq)
        for where in (None, [shop], [0, shop]):
            whole = [vectors.find_vector_hits(rows, "memory", model, asked, projects=where, limit=3) for asked in made]
            monkeypatch.setattr(vectors, "MAX_WHOLE_VECTORS", 10)
            few = [vectors.find_vector_hits(rows, "memory", model, asked, projects=where, limit=3) for asked in made]
            monkeypatch.setattr(vectors, "MAX_WHOLE_VECTORS", 50_000)
            assert [len(hits) for hits in few] == [3] * 60
            same = sum(
                len({row[0] for row in one} & {row[0] for row in other}) for one, other in zip(whole, few, strict=True)
            )
            assert same >= 0.95 * 180, same
            assert [hits[0][3] for hits in few] == [hits[0][3] for hits in whole], "a vector is the nearest to itself"

    store.write(story)


def test_a_vectors_signs_are_one_bit_for_each_number_above_zero() -> None:
    assert vectors.compute_signs(bytes([1, 0, 127, 128, 255, 0, 0, 5, 9])) == bytes([0b10000101, 0b1])
