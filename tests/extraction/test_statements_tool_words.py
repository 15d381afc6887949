"""Plans that were taken and commits' messages are found as passages of the calls that held them."""

from __future__ import annotations

import json

from csmd.conversation import Project, Turn
from csmd.extraction import statements
from csmd.store import fulltext, passages, projects, turns
from csmd.store.core import Store

NOW = "2026-01-01T00:00:00.000Z"
LATE, EARLY = "2027", "2025"


def say(store: Store, number: int, kind: str, text: str, tool: str = "", tool_id: str = "") -> None:
    def write(rows: object) -> None:
        project = projects.ensure(rows, Project(key="k", root="/home/me/shop", name="shop", kind="path"), now=NOW)  # type: ignore[arg-type]
        turn = Turn(uuid=f"u{number}", session_id="s1", kind=kind, text=text, at=f"2026-01-01T00:00:{number:02}.000Z",  # type: ignore[arg-type]
                    tool_name=tool, tool_id=tool_id)  # fmt: skip
        turns.add_turn(rows, turn, text_hash=str(number), host="claude", project=project, path="/t")  # type: ignore[arg-type]

    store.write(write)


def words(store: Store) -> list[tuple[str, str, str]]:
    seqs = store.read(lambda rows: [seq for (seq,) in rows.all("select seq from passages where text <> ''")])
    return [(one.uuid, one.kind, one.text) for one in store.read(lambda rows: passages.by_seqs(rows, seqs)).values()]


def plan(said: str) -> str:
    return json.dumps({"plan": said}, separators=(",", ":"))


def test_a_plan_and_a_commits_message_are_found_once_their_results_are_there(store: Store) -> None:
    say(store, 1, "user", "plan it")
    say(store, 2, "tool_call", plan("Keep herons in a ring buffer."), "ExitPlanMode", "t1")
    assert statements.tool_words_step(store, quiet_before=EARLY) == 1, "up to the call that waits"
    assert words(store) == []
    say(store, 3, "tool_result", "User has approved your plan.", tool_id="t1")
    say(
        store,
        4,
        "tool_call",
        json.dumps({"command": "git commit -m 'Count wrens in cents'"}, separators=(",", ":")),
        "Bash",
        "t2",
    )
    say(store, 5, "tool_result", "[main 1a2b3c4] Count wrens", tool_id="t2")
    say(store, 6, "tool_call", json.dumps({"command": "ls"}), "Bash", "t3")
    assert statements.tool_words_step(store, quiet_before=LATE) == 5
    expected = [("u2", "assistant", "Keep herons in a ring buffer."), ("u4", "assistant", "Count wrens in cents")]
    assert words(store) == expected
    assert statements.tool_words_step(store, quiet_before=LATE) == 0
    assert len(store.read(lambda rows: fulltext.text_hits(rows, "passage", ["wrens"], projects=None, limit=9))) == 1


def test_a_plan_that_was_turned_down_says_nothing(store: Store) -> None:
    say(store, 1, "tool_call", plan("Keep herons in a list."), "ExitPlanMode", "t1")
    say(store, 2, "tool_result", "The user doesn't want to proceed with this tool use.", tool_id="t1")
    assert statements.tool_words_step(store, quiet_before=LATE) == 2
    assert words(store) == []
