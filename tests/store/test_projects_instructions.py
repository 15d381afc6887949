"""What instruction files say is kept as it stands now: one row for each file, gone without its text."""

from __future__ import annotations

from typing import Any

from csmd.store import projects
from csmd.store.core import Store
from csmd.store.projects import Instruction
from csmd.store.sqlite import Rows

Given = Any


def one(path: str, text: str, kind: str = "Project") -> Instruction:
    return Instruction(path=path, kind=kind, root="/p", text=text, text_hash=f"h:{text}")


def test_the_latest_of_each_file_is_kept_in_its_order(store: Store, given: Given) -> None:
    def story(rows: Rows) -> None:
        here, there = (projects.ensure(rows, given.project(name), now=given.now) for name in ("a", "b"))
        assert (
            projects.replace_instructions(rows, here, [one("/p/B.md", "b"), one("/p/A.md", "a")], now=given.at(1)) == 2
        )
        assert projects.replace_instructions(rows, there, [one("/p/B.md", "other")], now=given.at(1)) == 1
        assert projects.instruction_texts(rows, [here]) == ["b", "a"]
        assert (
            projects.replace_instructions(rows, here, [one("/p/A.md", "a"), one("/p/B.md", "b2")], now=given.at(2)) == 1
        )
        assert projects.instruction_texts(rows, [here, there]) == ["a", "b2", "other"]
        assert projects.instruction_hashes(rows, here) == [("/p/A.md", "h:a"), ("/p/B.md", "h:b2")]
        assert projects.replace_instructions(rows, here, [one("/p/A.md", "a")], now=given.at(3)) == 1
        assert projects.instruction_texts(rows, [here]) == ["a"]
        gone = rows.all("select path, text, text_hash from instructions where gone = 1")
        assert gone == [("/p/B.md", "", "h:b2")]
        assert (
            projects.replace_instructions(rows, here, [one("/p/A.md", "a"), one("/p/B.md", "b2")], now=given.at(4)) == 1
        )
        assert projects.instruction_texts(rows, [here]) == ["a", "b2"], "it came back"

    store.write(story)


def test_only_projects_with_a_late_session_are_looked_at(store: Store, given: Given) -> None:
    from csmd.store import turns

    def story(rows: Rows) -> list[tuple[int, str]]:
        for number, name in enumerate(("old", "young", "none")):
            place = projects.ensure(rows, given.project(name), now=given.now)
            turn = given.turn(f"u{number}", "hello", session=name, second=100 * number)
            if name != "none":
                turns.add_turn(rows, turn, text_hash="h", host="claude", project=place, path="")
        return projects.projects_since(rows, given.at(50))

    assert [root for _, root in store.write(story)] == ["/home/me/young"]
