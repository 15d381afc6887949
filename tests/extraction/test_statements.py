"""Distillation over a real store: what is decided is distilled once, what is not decided waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from csmd.conversation import Project, Turn
from csmd.extraction import statements
from csmd.store import activity, projects, statement_rows, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-03-01T10:00:00.000Z"


def say(store: Store, kind: str, body: str, number: int, agent: str = "") -> None:
    turn = Turn(
        uuid=f"u{number}{agent}", session_id="s1", kind=kind, text=body, agent_id=agent,  # type: ignore[arg-type]
        at=f"2026-03-01T10:{number:02d}:00.000Z", cwd="/p/alpha",
    )  # fmt: skip

    def write(rows: Rows) -> None:
        project = projects.ensure(rows, Project(key="alpha", root="/p/alpha", name="alpha", kind="path"), now=NOW)
        turns.add_turn(
            rows,
            turn,
            text_hash=tokens.keyed_hash(body, store.hash_key),
            host="claude",
            project=project,
            path="/t.jsonl",
        )

    store.write(write)


def distill(store: Store, *, settled: bool) -> list[str]:
    for session in statements.list_behind(store):
        statements.distill(store, session, settled=settled)
    return [row[1].text for row in store.read(lambda rows: statement_rows.statements_after(rows, 0, limit=99))]


FINAL = "The import failed because the date parser assumed the local time zone, so `parse_date` now always uses UTC."


def test_an_assistants_message_waits_until_it_is_its_last(store: Store) -> None:
    say(store, "user", "we use uv here, not pip, for everything that touches dependencies", 1)
    say(store, "assistant", FINAL, 2)
    assert distill(store, settled=False) == ["we use uv here, not pip, for everything that touches dependencies"]
    assert len(statements.list_behind(store)) == 1
    distill(store, settled=True)
    assert statements.list_behind(store) == []


SYMPTOM = (
    "why does the import fail? the date parser seems to read the wrong time zone for `parse_date`, it should use UTC"
)


def cited(store: Store) -> dict[str, tuple[str, ...]]:
    found = store.read(lambda rows: statement_rows.statements_after(rows, 0, limit=99))
    return {row[1].text: row[1].also for row in found}


@pytest.mark.parametrize("live", [True, False])
def test_what_a_prompt_states_cites_the_reply_that_speaks_of_the_same_whenever_it_comes(
    store: Store, live: bool
) -> None:
    say(store, "user", SYMPTOM, 1)
    if live:
        assert len(distill(store, settled=False)) == 1
        assert list(cited(store).values()) == [()]
    say(store, "assistant", FINAL, 2)
    distill(store, settled=True)
    assert ("u2",) in cited(store).values()


@pytest.mark.invariant("When a conversation was looked at does not matter; distilling again changes nothing")
def test_when_a_conversation_was_looked_at_does_not_matter(tmp_path: Path) -> None:
    told = [
        ("user", "please fix the import"), ("assistant", FINAL), ("user", SYMPTOM), ("assistant", "Looking at it."),
        ("assistant", FINAL), ("user", "we decided to drop support for Python 3.9 because of the new syntax"),
        ("assistant", "All is done. The working documentation is in the project."), ("user", "can it be moved?"),
        ("user", "today, if possible"), ("user", "to the wiki, or so"),
        ("user", "not as a mail, but as a document of the folder. always keep our documents there, in Linear"),
    ]  # fmt: skip
    found = []
    for name, at_once in (("a", False), ("b", True)):
        opened = Store(tmp_path / f"{name}.db", now=NOW)
        for number, (kind, body) in enumerate(told, 1):
            say(opened, kind, body, number)
            if at_once:
                distill(opened, settled=False)
        distill(opened, settled=True)
        found.append(cited(opened))
        opened.close()
    assert found[0] == found[1]
    assert found[0]


def test_a_message_that_was_not_the_last_is_not_distilled(store: Store) -> None:
    say(store, "user", "please fix the import", 1)
    say(store, "assistant", FINAL, 2)
    assert distill(store, settled=False) == []
    say(store, "tool_call", "{}", 3)
    say(store, "assistant", "Done.", 4)
    assert distill(store, settled=True) == []


@pytest.mark.invariant("When a conversation was looked at does not matter; distilling again changes nothing")
@pytest.mark.invariant(
    "A turn gives at most three statements, and none that nobody said. Distilling again changes nothing"
)
def test_distilling_again_changes_nothing(store: Store) -> None:
    say(store, "user", "we use uv here, not pip, for everything that touches dependencies", 1)
    say(store, "assistant", FINAL, 2)
    first = distill(store, settled=True)
    store.write(lambda rows: rows.run("delete from cursors"))
    assert distill(store, settled=True) == first


@pytest.mark.invariant(
    "A turn gives at most three statements, and none that nobody said. Distilling again changes nothing"
)
def test_what_a_sub_agent_was_told_is_nobodys_word(store: Store) -> None:
    """A sub-agent's prompt is written by the assistant: it must not become the user's memory."""
    say(store, "user", "remember that the production database must never be migrated by hand", 1, agent="a1")
    assert distill(store, settled=True) == []
    assert store.read(activity.counts)["statements"] == 0


def test_a_session_is_settled_when_the_host_says_so_or_nothing_comes() -> None:
    def behind(last: str, settled: str) -> statements.SessionBehind:
        return statements.SessionBehind(
            session_seq=1, session_id="s", position=0, turns=3, last_at=last, settled_at=settled, started_at="", path=""
        )

    assert statements.is_settled(behind("2026-03-01T10:00:00.000Z", "2026-03-01T10:00:01.000Z"), quiet_before="")
    assert not statements.is_settled(behind("2026-03-01T10:00:02.000Z", "2026-03-01T10:00:01.000Z"), quiet_before="")
    assert statements.is_settled(behind("2026-03-01T10:00:02.000Z", ""), quiet_before="2026-03-01T10:00:30.000Z")


def test_a_step_that_finds_nothing_and_moves_nothing_commits_nothing(store: Store) -> None:
    say(store, "assistant", FINAL, 1)
    say(store, "tool_call", "{}", 2)
    before = store.commits
    assert distill(store, settled=False) == []
    assert store.commits == before
    assert len(statements.list_behind(store)) == 1, "it is looked at again when it is settled"


def test_a_settled_session_is_done_with_whatever_came_last(store: Store) -> None:
    say(store, "user", "please fix the import", 1)
    say(store, "tool_call", "{}", 2)
    say(store, "tool_result", "ok", 3)
    assert distill(store, settled=True) == []
    assert statements.list_behind(store) == []


def test_a_settled_session_whose_last_turn_went_away_is_done_with(store: Store) -> None:
    say(store, "user", "please fix the import", 1)
    say(store, "user", "yes", 2)
    store.write(lambda rows: rows.run("delete from turns where uuid = 'u2'"))
    assert distill(store, settled=True) == []
    assert statements.list_behind(store) == []


def test_what_came_after_the_session_was_looked_up_waits(store: Store) -> None:
    say(store, "user", "please fix the import", 1)
    (session,) = statements.list_behind(store)
    say(store, "assistant", FINAL, 2)
    assert statements.distill(store, session, settled=True) == 0
    assert len(statements.list_behind(store)) == 1
    assert len(distill(store, settled=True)) == 1
