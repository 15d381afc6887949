"""Whatever is searched for is data; the rows that come back are those of the projects asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from csmd.store import digests, fulltext, memories, projects, search, turns, workspaces
from csmd.store.core import Store
from csmd.store.integrity import check_database
from csmd.store.sqlite import Rows


def say(rows: Rows, given: Any, uuid: str, said: str, *, project: str = "shop", **more: Any) -> int:
    seq = projects.ensure(rows, given.project(project), now="")
    turn = given.turn(uuid, said, **more)
    turns.add_turn(rows, turn, text_hash=given.hash(said), host="claude", project=seq, path="")
    return search.turns_of_uuids(rows, [uuid])[uuid]


def test_a_turn_is_found_by_any_word_and_the_rarer_word_counts_more(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        common = [say(rows, given, f"u{number}", f"deploy the server {number}") for number in range(5)]
        rare = say(rows, given, "u9", "deploying the kangaroo")
        hits = fulltext.text_hits(rows, "passage", ["deploy", "kangaroo"], projects=None, limit=9)
        assert hits[0][0] == rare and hits[0][1] > hits[1][1] > 0
        assert sorted(row[0] for row in hits[1:]) == common
        assert len(fulltext.text_hits(rows, "passage", ["deploy"], projects=None, limit=2)) == 2
        assert fulltext.text_hits(rows, "passage", [], projects=None, limit=9) == []

    store.write(story)


def test_tool_traffic_is_kept_but_not_found_by_its_words(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        say(rows, given, "u1", "kangaroo", kind="tool_result")
        assert fulltext.text_hits(rows, "passage", ["kangaroo"], projects=None, limit=9) == []
        say(rows, given, "u2", "kangaroo")
        assert len(fulltext.text_hits(rows, "passage", ["kangaroo"], projects=None, limit=9)) == 1

    store.write(story)
    assert store.write(check_database) == []


def test_only_the_projects_asked_for_are_searched(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        shop, other = say(rows, given, "u1", "kangaroo"), say(rows, given, "u2", "kangaroo", project="other")
        found = {
            projects: sorted(
                row[0] for row in fulltext.text_hits(rows, "passage", ["kangaroo"], projects=projects, limit=9)
            )
            for projects in (None, (1,), (2, 0), (0,), ())
        }
        assert found == {None: [shop, other], (1,): [shop], (2, 0): [other], (0,): [], (): []}

    store.write(story)


def test_a_turn_is_shown_with_its_session_and_project(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        seq = say(rows, given, "u1", "hello", agent_id="a1", kind="assistant")
        (row,) = search.turns_by_seq(rows, [seq, 99]).values()
        assert (row.uuid, row.kind, row.text, row.session_id, row.project) == (
            "u1",
            "assistant",
            "hello",
            "s1",
            "/home/me/shop",
        )
        assert search.turns_by_seq(rows, []) == {}
        assert search.turns_of_uuids(rows, ["u1", "nobody"]) == {"u1": seq}

    store.write(story)


def test_the_neighbours_of_a_turn_are_the_searchable_ones_of_its_own_session_and_not_of_a_fork(
    store: Store, given: Any
) -> None:
    def story(rows: Rows) -> None:
        a, _, c, d = (
            say(rows, given, uuid, uuid, kind=kind)
            for uuid, kind in (("a", "user"), ("b", "tool_call"), ("c", "user"), ("d", "assistant"))
        )
        say(rows, given, "x", "x", session="fork")
        say(rows, given, "c", "c", session="fork")
        y = say(rows, given, "y", "y", session="fork")
        found = {
            seq: (place.before, place.after)
            for seq, place in search.map_turn_neighbours(rows, [a, c, d, 99], projects=None).items()
        }
        assert found == {a: (0, c), c: (a, d), d: (c, 0)}
        assert y in search.turns_by_seq(rows, [y])

    store.write(story)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@hypothesis_given(
    terms=st.lists(
        st.one_of(st.text(max_size=12), st.sampled_from(['"', "a\0b", "NEAR(", "x*", "^a", "-b", "a:b", "AND", "'"])),
        max_size=5,
    )
)
def test_no_text_is_syntax_for_the_full_text_index(store: Store, terms: list[str]) -> None:
    def search_both(rows: Rows) -> list[Any]:
        return [
            *fulltext.text_hits(rows, "passage", terms, projects=None, limit=5),
            *fulltext.text_hits(rows, "memory", terms, projects=None, limit=5),
        ]

    assert store.read(search_both) == []


def test_memories_are_found_in_their_scope(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        shop = projects.ensure(rows, given.project(), now="")
        for ident, project in (("m1", 0), ("m2", shop)):
            memories.insert(rows, given.memory(ident, "prefers tabs", project=project), text_hash=ident)
        assert len(fulltext.text_hits(rows, "memory", ["tab"], projects=None, limit=9)) == 2
        assert len(fulltext.text_hits(rows, "memory", ["tab"], projects=[0], limit=9)) == 1
        assert (search.count_memories_with(rows, "tabs"), search.count_memories_with(rows, "spaces")) == (2, 0)
        assert search.count_memories(rows) == 2

    store.write(story)


# --- What stands beside what was found is looked up in one statement, however much that is.


class Counting(Rows):
    """Rows that count what they are asked."""

    asked = 0

    def all(self, sql: str, **values: Any) -> Any:
        self.asked += 1
        return super().all(sql, **values)


def talk(rows: Rows, given: Any, said: list[tuple[str, str]], *, session: str = "s1") -> list[int]:
    """A session's turns by (kind, text); their row keys."""
    home = projects.ensure(rows, given.project("shop"), now="")
    uuids = [f"{session}-{number}" for number in range(len(said))]
    for number, (kind, body) in enumerate(said):
        turn = given.turn(uuids[number], body, kind=kind, second=number, session=session)
        turns.add_turn(rows, turn, text_hash=given.hash(body), host="claude", project=home, path="")
    known = search.turns_of_uuids(rows, uuids)
    return [known[uuid] for uuid in uuids]


def test_neighbours_are_the_nearest_that_can_be_searched_in_the_same_session(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        one, _, two, three = talk(
            rows, given, [("user", "one"), ("tool_call", "ls"), ("assistant", "two"), ("user", "three")]
        )
        (other,) = talk(rows, given, [("user", "other")], session="s2")
        counting = Counting(rows.connection)
        found = search.map_turn_neighbours(counting, [one, two, three, other], projects=None)
        assert counting.asked == 1
        assert {seq: (place.before, place.after) for seq, place in found.items()} == {
            one: (0, two), two: (one, three), three: (two, 0), other: (0, 0)
        }  # fmt: skip
        assert found[one].session == found[two].session != found[other].session
        assert search.map_turn_neighbours(rows, [], projects=None) == {}

    store.write(story)


def test_of_a_session_that_went_on_in_another_project_only_that_is_near_which_one_asks_about(
    store: Store, given: Any
) -> None:
    def story(rows: Rows) -> None:
        here, there = (projects.ensure(rows, given.project(name), now="") for name in ("shop", "bank"))
        for number, (home, kind) in enumerate(
            [(here, "user"), (here, "assistant"), (there, "user"), (there, "assistant")]
        ):
            body = f"said {number}"
            turn = given.turn(f"s1-{number}", body, kind=kind, second=number, session="s1")
            turns.add_turn(rows, turn, text_hash=given.hash(body), host="claude", project=home, path="")
        known = search.turns_of_uuids(rows, [f"s1-{number}" for number in range(4)])
        one, two, three, four = (known[f"s1-{number}"] for number in range(4))
        found = search.map_turn_neighbours(rows, [one, two, three, four], projects=[here])
        assert {seq: (place.before, place.after) for seq, place in found.items() if seq in (one, two)} == {
            one: (0, two), two: (one, 0)
        }  # fmt: skip
        assert search.map_turn_neighbours(rows, [two], projects=None)[two].after == three
        asked = search.list_user_turns_between(rows, given.at(0), "", projects=[here], limit=9)
        assert [seq for seq, _ in asked] == [one]
        entries = digests.read_entries(rows, found[one].session)
        assert len(entries) == 4, "without a wall a digest tells all of its session"
        workspaces.join(rows, workspaces.ensure(rows, "secret", now=""), there)
        assert [row[3] for row in digests.read_entries(rows, found[one].session)] == ["said 0", "said 1"]

    store.write(story)


@pytest.mark.invariant(
    "A search shows an exchange: a prompt with its answer, what was said at work between them only once"
)
def test_a_prompt_has_its_answer_beside_it_and_what_was_said_at_work_stands_between_the_two(
    store: Store, given: Any
) -> None:
    def story(rows: Rows) -> None:
        said = [("user", "why?"), ("assistant", "let me look"), ("tool_call", "ls"), ("assistant", "now I see"),
                ("assistant", "because"), ("user", "thanks"), ("assistant", "welcome")]  # fmt: skip
        why, look, _, see, because, thanks, welcome = talk(rows, given, said)
        found = search.map_turn_neighbours(rows, [why, look, see, because, thanks, welcome], projects=None)
        assert {seq: (place.before, place.after) for seq, place in found.items()} == {
            why: (0, because), look: (why, because), see: (why, because), because: (why, thanks),
            thanks: (because, welcome), welcome: (thanks, 0),
        }  # fmt: skip
        assert {seq for seq, place in found.items() if place.midway} == {look, see}

    store.write(story)


def test_an_exchange_without_end_is_not_looked_through(store: Store, given: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(search, "MAX_EXCHANGE_TURNS", 3)

    def story(rows: Rows) -> None:
        turns = talk(rows, given, [("user", "go"), *[("assistant", f"step {number}") for number in range(8)]])
        found = search.map_turn_neighbours(rows, turns, projects=None)
        assert (found[turns[1]].before, found[turns[1]].after) == (turns[0], turns[3])
        assert (found[turns[5]].before, found[turns[5]].after) == (turns[4], turns[7])

    store.write(story)


def test_what_users_said_at_a_time_is_found_by_the_sessions_of_that_time(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        first, _, last = talk(rows, given, [("user", "one"), ("assistant", "two"), ("user", "three")])
        everything = search.list_user_turns_between(rows, given.at(0), "", projects=None, limit=9)
        assert [seq for seq, _ in everything] == [last, first]
        assert [
            seq for seq, _ in search.list_user_turns_between(rows, given.at(0), given.at(1), projects=None, limit=9)
        ] == [first]
        assert search.list_user_turns_between(rows, given.at(9), "", projects=None, limit=9) == []
        assert len(search.list_user_turns_between(rows, given.at(0), "", projects=None, limit=1)) == 1

    store.write(story)
