"""Which old memories keep their names when csmd chooses anew, by the lines that they cite and the words that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from recall.test_visibility import project, save_memory, say

from csmd.dream import reselection
from csmd.dream.reselection import ENOUGH, LocatedStatement, Plan, match_statements
from csmd.extraction import statements
from csmd.memory import remember
from csmd.privacy.fingerprints import PURGED
from csmd.store import cursors, dreams, memories
from csmd.store.core import Store, run_to_end
from csmd.store.sqlite import Rows
from csmd.values import Memory, Provenance, Statement
from csmd.vocabulary import Authority

HERE = "/p/alpha"
AT = "2026-01-01T10:00:00.000Z"


def memory(ident: str, words: str, *uuids: str) -> Memory:
    return Memory(
        id=ident, text=words, gate="epistemic", category="fact", type="repo", tier="daily", decay="durable", authority="user",
        origin="stated", confidence=0.8, scope="project", project_seq=1, session_id="s1", created_at=AT, confirmed_at=AT,
        hot_until=1, warm_until=2, archive_at=3,
        provenance=tuple(Provenance(uuid=uuid, session_id="s1", at=AT) for uuid in uuids),
    )  # fmt: skip


def said(words: str, uuid: str) -> LocatedStatement:
    one = Statement(text=words, gate="epistemic", category="fact", confidence=0.8, authority="user")
    return LocatedStatement(one, uuid, "s1", AT, 1)


@pytest.mark.invariant(
    "Memories of an older csmd are chosen anew once, keep their names where they are chosen still, and undo gives every row back"
)
def test_a_passage_of_the_same_line_with_most_of_the_words_keeps_the_memory() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1")
    longer = said("The importer reads its feed at night, since the office line is slow by day", "u1")
    found = match_statements([old], [longer])
    assert (found.kept, found.made, found.archived) == (((old, longer),), (), ())


def test_other_words_or_another_line_keep_nothing() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1")
    for one in (said("The exporter writes its reports by day", "u1"), said(old.text, "u2")):
        found = match_statements([old], [one])
        assert (found.kept, found.made, found.archived) == ((), (one,), (old,))


def test_a_line_that_merely_stands_beside_is_not_cited() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1")
    beside = replace(old, provenance=(*old.provenance, Provenance(uuid="u2", session_id="s1", at=AT, role="beside")))
    assert match_statements([beside], [said(old.text, "u2")]).archived == (beside,)


def test_of_two_memories_that_one_passage_holds_the_better_keeps_its_name() -> None:
    passage = said("The importer reads its feed at night and retries three times", "u1")
    whole, part = (
        memory("m1", passage.statement.text, "u1"),
        memory("m2", "The importer retries three nightly times", "u1"),
    )
    found = match_statements([part, whole], [passage])
    assert (found.kept, found.archived) == (((whole, passage),), (part,))


def test_what_is_said_in_each_line_of_a_memory_is_no_second_one() -> None:
    old = memory("m1", "The importer reads its feed at night", "u1", "u2")
    found = match_statements([old], [said(old.text, "u1"), said(f"{old.text}, always", "u2")])
    assert (len(found.kept), found.made, found.archived) == (1, (), ())


@pytest.mark.invariant(
    "Memories of an older csmd are chosen anew once, keep their names where they are chosen still, and undo gives every row back"
)
def test_a_person_is_asked_where_most_would_be_archived_also_when_it_was_broken_off() -> None:
    held = [memory(f"m{number}", f"Fact {number} about pumps", f"u{number}") for number in range(ENOUGH)]
    assert match_statements(held, []).needs_person
    assert not match_statements(held[: ENOUGH - 1], []).needs_person
    told = [said(one.text, one.provenance[0].uuid) for one in held[:4]]
    assert not match_statements(held, told).needs_person
    assert match_statements(held[:8], told, before=2 * ENOUGH).needs_person


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "csmd.db", now=AT)
    yield opened
    opened.close()


def held(store: Store) -> list[Memory]:
    return store.read(lambda rows: memories.list_memories(rows, projects=None))


def carry_out(store: Store, found: Plan) -> None:
    dream = store.write(lambda rows: dreams.begin(rows, why="test", sessions=0, now=AT))
    for _ in reselection.carry_out(store, dream, found, now=AT, key=store.hash_key):
        pass


def now_said(store: Store, words: str, uuid: str, *, authority: Authority = "user") -> LocatedStatement:
    home = store.read(lambda rows: project(rows, HERE))
    return replace_said(said(words, uuid), authority=authority, home=home)


def replace_said(one: LocatedStatement, *, authority: Authority, home: int) -> LocatedStatement:
    return one._replace(statement=replace(one.statement, authority=authority), project_seq=home)


def test_what_the_user_said_is_the_users_in_whatever_words_it_is_told(store: Store) -> None:
    ident = save_memory(
        store, "The importer reads its feed at night", say(store, "The importer reads its feed at night", 1)
    )
    (old,) = held(store)
    mine, theirs = (
        now_said(store, "The importer reads its feed at night", "s1-1", authority=who) for who in ("user", "assistant")
    )  # type: ignore[arg-type]
    assert match_statements([old], [theirs, mine]).kept == ((old, mine),)
    longer = now_said(
        store, "The importer reads its feed at night, since the line is slow by day", "s1-1", authority="assistant"
    )
    carry_out(store, Plan(kept=((old, longer),), made=(), archived=()))
    (new,) = held(store)
    assert (new.id, new.text, new.authority) == (ident, longer.statement.text, "user")


def test_no_two_memories_get_the_same_words(store: Store) -> None:
    for number, words in (
        (1, "The importer reads its feed at night"),
        (3, "Our feed: the importer reads it nightly, by cron"),
    ):
        save_memory(store, words, say(store, words, number))
    words = "The importer reads its nightly feed by cron at night"
    carry_out(
        store,
        Plan(
            kept=tuple((one, now_said(store, words, f"s1-{2 * number + 1}")) for number, one in enumerate(held(store))),
            made=(),
            archived=(),
        ),
    )
    assert [one.text for one in held(store)].count(words) == 1


def test_what_was_purged_or_forgotten_since_it_was_read_becomes_no_memory(store: Store) -> None:
    words = "The importer reads its feed at night"
    say(store, words, 1)
    made = Plan(kept=(), made=(now_said(store, words, "s1-1"),), archived=())
    store.write(lambda rows: rows.run("update turns set text = :text where uuid = 's1-1'", text=PURGED))
    carry_out(store, made)
    assert held(store) == []
    ident = save_memory(store, words, say(store, f"{words}.", 3))
    store.write(lambda rows: forget(rows, ident, store))
    carry_out(store, replace(made, made=(now_said(store, words, "s1-3"),)))
    assert held(store) == []


def forget(rows: Rows, ident: str, store: Store) -> None:
    memory = memories.by_id(rows, ident)
    assert memory is not None
    remember.forget(rows, memory, key=store.hash_key, now="2026-12-01T00:00:00.000Z", by_person=True)


def test_a_plan_lists_nothing_that_was_forgotten(store: Store) -> None:
    words = "We decided that all dates are stored in UTC, never in local time."
    ident = save_memory(store, words, say(store, words, 1))
    session = store.read(lambda rows: int(rows.value("select seq from sessions")))
    store.write(lambda rows: cursors.move_cursor(rows, statements.STAGE, str(session), 1))

    def planned() -> Plan:
        return run_to_end(reselection.plan_reselection(store.read, key=store.hash_key))

    store.write(lambda rows: rows.run("delete from memories"))
    assert [one.statement.text for one in planned().made] == [words]
    save_memory(store, words, "s1-1")
    store.write(lambda rows: forget(rows, ident, store))
    assert planned().made == ()
