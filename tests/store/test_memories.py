"""No memory without provenance, none twice, and one that is forgotten leaves nothing but its hash."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from csmd.briefs import BriefItem
from csmd.errors import StoreError
from csmd.knowledge import Link, Provenance
from csmd.store import (
    activity,
    forget,
    fulltext,
    memories,
    memory_deletion,
    memory_links,
    projects,
    receipts,
    search,
    session_context,
    statement_rows,
    turns,
    vectors,
)
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows, ids_like


def put(rows: Rows, given: Any, ident: str, said: str, **more: Any) -> int:
    return memories.insert(rows, given.memory(ident, said, **more), text_hash=given.hash(said))


def spoken(rows: Rows, given: Any, uuid: str, said: str) -> bool:
    project = projects.ensure(rows, given.project(), now=given.now)
    turns.add_turn(rows, given.turn(uuid, said), text_hash=given.hash(said), host="claude", project=project, path="")
    seq = search.turns_of_uuids(rows, [uuid])[uuid]
    return statement_rows.add_statement(
        rows, given.statement(said, reasons=("cue", "remember")), given.stored(seq, project, uuid=uuid),
        session_seq=1, text_hash=given.hash(said),
    )  # fmt: skip


def test_a_memory_comes_back_as_it_was_stored(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        made = given.memory("m1", "Ünïcode \U0001f600 'quotes'", uuids=("u2", "u1"), pinned=True, confidence=0.123)
        seq = memories.insert(rows, made, text_hash="h")
        later = Provenance(uuid="u0", session_id="s9", at="2025", role="confirms")
        assert memories.add_provenance(rows, seq, later)
        expected = replace(made, seq=seq, provenance=(made.provenance[1], made.provenance[0], later))
        assert memories.by_id(rows, "m1") == expected, "those that state it first, then by time"
        assert memories.by_hash(rows, "h", project=0) == expected
        assert memories.by_seqs(rows, [seq, 99]) == {seq: expected}
        assert memories.list_memories(rows, projects=[0]) == [expected]
        assert memories.by_hash(rows, "h", project=1) is memories.by_id(rows, "m2") is None
        assert memories.by_seqs(rows, []) == {}
        assert memories.list_memories(rows, projects=[]) == []

    store.write(story)


@pytest.mark.invariant("No memory without provenance; what is forgotten leaves nothing but its hash")
def test_a_memory_without_provenance_is_refused(store: Store, given: Any) -> None:
    with pytest.raises(StoreError, match="has no provenance"):
        store.write(lambda rows: put(rows, given, "m1", "text", uuids=()))
    assert store.read(activity.counts)["memories"] == 0


def test_a_turn_supports_a_memory_once(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        seq = put(rows, given, "m1", "text")
        again = Provenance(uuid="u1", session_id="s2", at="", role="confirms")
        assert not memories.add_provenance(rows, seq, again)

    store.write(story)


def test_what_changes_a_belief_counts_its_version_up(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        put(rows, given, "m1", "text")
        before = memories.by_id(rows, "m1")
        assert before is not None
        changed = replace(before, confidence=0.95, authority="assistant", tier="archive", decay="permanent", pinned=True,
                          confirmed_at="2027", hot_until=1, warm_until=2, archive_at=3, superseded_by="m2", origin="x")  # fmt: skip
        memories.update_belief(rows, changed)
        assert memories.by_id(rows, "m1") == replace(changed, version=2)

    store.write(story)


def test_a_sentence_is_stored_once_under_its_turn(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        assert spoken(rows, given, "u1", "use tabs")
        assert not spoken(rows, given, "u1", "use tabs")
        assert spoken(rows, given, "u2", "use tabs")
        first, second = statement_rows.list_statements_after(rows, 0, limit=9)
        assert first.statement.reasons == ("cue", "remember")
        assert (first.uuid, first.session_id, first.project_seq) == ("u1", "s1", 1)
        assert rows.find("statements", "text_hash", seq=first.seq) == given.hash("use tabs")
        assert statement_rows.list_statements_after(rows, first.seq, limit=9) == [second]
        assert statement_rows.list_statements_after(rows, 0, limit=1) == [first]

    store.write(story)


@pytest.mark.invariant("No memory without provenance; what is forgotten leaves nothing but its hash")
def test_a_forgotten_memory_leaves_nothing_but_its_hash(store: Store, given: Any) -> None:
    said = "the password is hunter2"

    def story(rows: Rows) -> None:
        spoken(rows, given, "u1", said)
        seq = put(rows, given, "m1", said)
        put(rows, given, "m2", "other")
        memory_links.add_link(rows, Link(from_id="m1", to_id="m2", relationship="RELATES_TO"), now="")
        model = vectors.ensure_model(rows, "m", 4, now="")
        vectors.add_vectors(rows, "memory", model, [(seq, 0, 0, 5, b"abcd"), (seq, 0, 5, 9, b"abce")], reached=seq)
        receipts.add_receipt(rows, receipt_id="r", session_id="s1", event="prompt", project=0, at="", tokens=1, text_hash="",
                            items=[BriefItem(id="m1", score=1.0, reason="")])  # fmt: skip
        memory = memories.by_id(rows, "m1")
        assert memory is not None
        forget.delete_sentences(
            rows, memory, text_hash=given.hash(said), scope=memory.project_seq, is_same=lambda other: False,
            by_assistants=False,
        )  # fmt: skip
        memory_deletion.delete_memory(rows, memory)
        found = activity.counts(rows)
        assert (found["memories"], found["statements"], found["vectors"]) == (1, 0, 0)
        assert fulltext.text_hits(rows, "memory", ["hunter2"], projects=None, limit=5) == []
        assert vectors.find_vector_hits(rows, "memory", model, b"abcd", projects=None, limit=5) == []
        assert memory_links.list_links(rows, "m2") == [] and "m1" not in session_context.ids_in_context(rows, "s1")
        assert rows.value("select count(*) from provenance") == 1

    store.write(story)
    assert store.write(check_database) == []


def test_what_a_forgotten_memory_superseded_names_its_heir(store: Store, given: Any) -> None:
    def story(rows: Rows) -> dict[str, str]:
        for ident, heir in (("m1", "m2"), ("m2", "m3"), ("m3", ""), ("m4", "m5"), ("m5", "m4"), ("m6", "m3")):
            put(rows, given, ident, f"text {ident}")
            memories.update_belief(rows, replace(memories.by_id(rows, ident), superseded_by=heir))
        for ident in ("m2", "m5"):
            memory_deletion.delete_memory(rows, memories.by_id(rows, ident))
        return {memory.id: memory.superseded_by for memory in memories.list_memories(rows, projects=None)}

    # A ring of two is broken up: nothing supersedes itself.
    assert store.write(story) == {"m1": "m3", "m3": "", "m4": "", "m6": "m3"}


def test_what_is_said_after_something_was_forgotten_stands_past_every_cursor(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        spoken(rows, given, "u1", "use tabs")
        ((cursor, *_),) = statement_rows.list_statements_after(rows, 0, limit=9)
        seq = put(rows, given, "m1", "use tabs")
        memory = memories.by_id(rows, "m1")
        assert memory is not None
        memory_deletion.delete_memory(rows, memory)
        spoken(rows, given, "u2", "use spaces")
        assert len(statement_rows.list_statements_after(rows, cursor, limit=9)) == 1
        assert put(rows, given, "m2", "use spaces") > seq

    store.write(story)


def test_a_link_is_drawn_once_and_between_known_memories_only(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        put(rows, given, "m1", "one")
        put(rows, given, "m2", "two")
        for weight, other in ((0.5, "m2"), (0.9, "m2"), (1.0, "nobody")):
            memory_links.add_link(
                rows, Link(from_id="m1", to_id=other, relationship="RELATES_TO", weight=weight), now=""
            )
        expected = [Link(from_id="m1", to_id="m2", relationship="RELATES_TO", weight=0.9)]
        assert memory_links.list_links(rows, "m1") == memory_links.list_links(rows, "m2") == expected

    store.write(story)


def test_ids_are_found_by_their_first_characters_taken_literally(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for number in range(12):
            put(rows, given, f"mab{number:02}", str(number))
        assert ids_like(rows, "memories", "mab0") == [f"mab0{number}" for number in range(10)]
        assert ids_like(rows, "memories", "mab11") == ["mab11"]
        assert (
            ids_like(rows, "memories", "m%")
            == ids_like(rows, "memories", "m_b")
            == ids_like(rows, "memories", "MAB")
            == []
        )

    store.write(story)


def test_the_listing_has_the_pinned_then_the_surest_then_the_newest_first(store: Store, given: Any) -> None:
    def story(rows: Rows) -> list[str]:
        put(rows, given, "old", "a", confidence=0.9, confirmed_at="2025")
        put(rows, given, "new", "b", confidence=0.9, confirmed_at="2026")
        put(rows, given, "pinned", "c", confidence=0.1, pinned=True)
        put(rows, given, "unsure", "d", confidence=0.2)
        return [memory.id for memory in memories.list_memories(rows, projects=None)]

    assert store.write(story) == ["pinned", "new", "old", "unsure"]


def test_many_memories_keep_their_own_provenance(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        for number in range(1100):
            put(rows, given, f"m{number}", f"text {number}", uuids=(f"u{number}",))
        assert all(
            memory.provenance[0].uuid == f"u{memory.id[1:]}" for memory in memories.list_memories(rows, projects=None)
        )

    store.write(story)


def test_the_words_of_a_memory_that_changes_are_found_and_its_old_ones_are_not(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        seq = put(rows, given, "m1", "tabs")
        rows.run("update memories set text = 'spaces' where seq = :seq", seq=seq)
        assert fulltext.text_hits(rows, "memory", ["tabs"], projects=None, limit=5) == []
        assert len(fulltext.text_hits(rows, "memory", ["spaces"], projects=None, limit=5)) == 1

    store.write(story)
    assert store.write(check_database) == []
