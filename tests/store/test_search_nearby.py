"""What stands beside what was found is looked up in one statement, however much that is."""

from __future__ import annotations

from typing import Any

import pytest

from csmd.store import digests, projects, search, turns, workspaces
from csmd.store.core import Store
from csmd.store.sqlite import Rows


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
        found = search.beside(counting, [one, two, three, other], projects=None)
        assert counting.asked == 1
        assert {seq: (place.before, place.after) for seq, place in found.items()} == {
            one: (0, two), two: (one, three), three: (two, 0), other: (0, 0)
        }  # fmt: skip
        assert found[one].session == found[two].session != found[other].session
        assert search.beside(rows, [], projects=None) == {}

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
        found = search.beside(rows, [one, two, three, four], projects=[here])
        assert {seq: (place.before, place.after) for seq, place in found.items() if seq in (one, two)} == {
            one: (0, two), two: (one, 0)
        }  # fmt: skip
        assert search.beside(rows, [two], projects=None)[two].after == three
        asked = search.asked_between(rows, given.at(0), "", projects=[here], limit=9)
        assert [seq for seq, _ in asked] == [one]
        entries = digests.entries(rows, found[one].session)
        assert len(entries) == 4, "without a wall a digest tells all of its session"
        workspaces.join(rows, workspaces.ensure(rows, "secret", now=""), there)
        assert [row[3] for row in digests.entries(rows, found[one].session)] == ["said 0", "said 1"]

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
        found = search.beside(rows, [why, look, see, because, thanks, welcome], projects=None)
        assert {seq: (place.before, place.after) for seq, place in found.items()} == {
            why: (0, because), look: (why, because), see: (why, because), because: (why, thanks),
            thanks: (because, welcome), welcome: (thanks, 0),
        }  # fmt: skip
        assert {seq for seq, place in found.items() if place.midway} == {look, see}

    store.write(story)


def test_an_exchange_without_end_is_not_looked_through(store: Store, given: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(search, "LONGEST_EXCHANGE", 3)

    def story(rows: Rows) -> None:
        turns = talk(rows, given, [("user", "go"), *[("assistant", f"step {number}") for number in range(8)]])
        found = search.beside(rows, turns, projects=None)
        assert (found[turns[1]].before, found[turns[1]].after) == (turns[0], turns[3])
        assert (found[turns[5]].before, found[turns[5]].after) == (turns[4], turns[7])

    store.write(story)


def test_what_users_said_at_a_time_is_found_by_the_sessions_of_that_time(store: Store, given: Any) -> None:
    def story(rows: Rows) -> None:
        first, _, last = talk(rows, given, [("user", "one"), ("assistant", "two"), ("user", "three")])
        everything = search.asked_between(rows, given.at(0), "", projects=None, limit=9)
        assert [seq for seq, _ in everything] == [last, first]
        assert [seq for seq, _ in search.asked_between(rows, given.at(0), given.at(1), projects=None, limit=9)] == [
            first
        ]
        assert search.asked_between(rows, given.at(9), "", projects=None, limit=9) == []
        assert len(search.asked_between(rows, given.at(0), "", projects=None, limit=1)) == 1

    store.write(story)
