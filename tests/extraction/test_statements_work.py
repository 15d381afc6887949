"""What work says in words: plans that were taken, commits' messages, agents' reports, summaries; never as the user's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from csmd.conversation import Project, Turn
from csmd.extraction import statements
from csmd.hosts import tool_calls
from csmd.store import projects, statement_rows, turns
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, tokens

NOW = "2026-03-01T10:00:00.000Z"
WHY = (
    "The importer must read deliveries with `iter_rows` and never with `load`, because a whole delivery of the warehouse "
    "does not fit into memory, and its process would be stopped when the limit is reached."
)
PLAN = f"# Plan: import of orders\n\n## Context\n{WHY}\n\n## Steps\n1. Add the reader\n2. Run the tests\n"
COMMIT = """git add -A && git commit -m "$(cat <<'EOF'
fix(import): read order files row by row

`load_orders` used to lock its table until all rows were in, so that the nightly export of prices timed out.

Co-Authored-By: Somebody <somebody@example.org>
EOF
)" && git push"""
MESSAGE = (
    "read order files row by row.\n\n`load_orders` used to lock its table until all rows were in, so that the nightly export"
    " of prices timed out."
)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (COMMIT, MESSAGE),
        ("git commit -m 'Keep prices in cents' -m 'A float loses a cent in 1000.'", "Keep prices in cents.\n\nA float loses a cent in 1000."),
        ('git -C /srv/shop commit -am "Use the \\"strict\\" parser"', 'Use the "strict" parser'.replace('"', '\\"')),
        ("git commit -F - <<EOF\nCache the token for 5 minutes\nEOF", "Cache the token for 5 minutes"),
        ('git commit -m "Merge branch \'main\' into x"', ""),
        ("git commit --amend --no-edit", ""),
        ('git log --grep "commit" -m', ""),
    ],
)  # fmt: skip
def test_a_commits_message_is_read_without_its_trailers(command: str, message: str) -> None:
    given = json.dumps({"command": command}, separators=(",", ":"))
    assert tool_calls.read_commit(given, "[main 1a2b3c4] x") == message
    assert tool_calls.read_commit(given, "Exit code 1\nnothing to commit") == ""


def test_a_plan_that_was_turned_down_and_one_cut_in_its_middle_say_no_more_than_stands_there() -> None:
    given = json.dumps({"plan": PLAN}, separators=(",", ":"))
    assert tool_calls.read_plan(given, "User has approved your plan.") == PLAN
    assert (
        tool_calls.read_plan(given, "The user doesn't want to proceed with this tool use. The tool use was rejected")
        == ""
    )
    cut = display.cut_middle(json.dumps({"plan": PLAN * 9}, separators=(",", ":")), limit=800, of="turn x")
    assert PLAN.startswith(tool_calls.read_plan(cut, "ok")[:60]) and "[csmd" not in tool_calls.read_plan(cut, "ok")


def test_a_report_is_read_without_what_the_host_puts_behind_it_and_only_when_there_is_one() -> None:
    assert tool_calls.read_report("", f"{WHY}\n\nagentId: a1 (for resuming)\n<usage>total_tokens: 1</usage>") == WHY
    assert tool_calls.read_report("", "Async agent launched successfully.\nagentId: a1") == ""
    note = "<task-notification>\n<task-id>a</task-id>\n<status>completed</status>\n<result>{}</result>\n</task-notification>"
    assert tool_calls.read_notified_report(note.format(WHY)) == WHY
    assert tool_calls.read_notified_report(note.format(WHY).replace("completed", "failed")) == ""


def test_of_a_summary_only_what_was_learned_is_read() -> None:
    said = (
        "This session is being continued from a previous conversation that ran out of context.\nAnalysis:\nfirst\nSummary:\n"
        f"1. Primary Request and Intent:\n   The user asked for a thing.\n\n4. Errors and fixes:\n   - {WHY}\n\n6. All user messages:\n   - go on\n"
    )
    assert tool_calls.extract_learned(said) == f"## Errors and fixes\n- {WHY}"


def say(store: Store, number: int, kind: str, body: str, tool: str = "", tool_id: str = "") -> None:
    turn = Turn(
        uuid=f"u{number}", session_id="s1", kind=kind, text=body, tool_name=tool, tool_id=tool_id,  # type: ignore[arg-type]
        at=f"2026-03-01T10:{number:02d}:00.000Z", cwd="/p/shop",
    )  # fmt: skip

    def write(rows: Rows) -> None:
        project = projects.ensure(rows, Project(key="shop", root="/p/shop", name="shop", kind="path"), now=NOW)
        turns.add_turn(
            rows,
            turn,
            text_hash=tokens.keyed_hash(body, store.hash_key),
            host="claude",
            project=project,
            path="/t.jsonl",
        )

    store.write(write)


def distilled(store: Store, *, settled: bool = True) -> list[tuple[str, str, str]]:
    for session in statements.list_behind(store):
        statements.distill(store, session, settled=settled)
    rows = store.read(lambda rows: statement_rows.statements_after(rows, 0, limit=99))
    return [(row[2], row[1].authority, row[1].text) for row in rows]


SESSION = (
    (1, "user", "please do it", "", ""),
    (2, "tool_call", json.dumps({"plan": PLAN}, separators=(",", ":")), "ExitPlanMode", "t1"),
    (3, "tool_result", "User has approved your plan. You can now start coding.", "", "t1"),
    (4, "tool_call", json.dumps({"command": COMMIT}, separators=(",", ":")), "Bash", "t2"),
    (5, "tool_result", "[main 1a2b3c4] read order files row by row", "", "t2"),
    (6, "assistant", "Done.", "", ""),
)


@pytest.mark.invariant(
    "What work says (plans, commits, reports, summaries) is never the user's word, and does not depend on when somebody looked"
)
def test_a_plan_and_a_commit_are_told_as_the_assistants_and_cite_their_calls(store: Store) -> None:
    for one in SESSION:
        say(store, *one)
    found = distilled(store)
    assert {uuid for uuid, _, _ in found} == {"u2", "u4"}
    assert {authority for _, authority, _ in found} == {"assistant"}
    assert distilled(store) == found


@pytest.mark.invariant(
    "What work says (plans, commits, reports, summaries) is never the user's word, and does not depend on when somebody looked"
)
def test_what_work_says_does_not_depend_on_when_somebody_looked(store: Store, tmp_path: Path) -> None:
    for one in SESSION:
        say(store, *one)
        distilled(store, settled=False)
    live = distilled(store)
    other = Store(tmp_path / "other.db", now=NOW)
    for one in SESSION:
        say(other, *one)
    try:
        assert distilled(other) == live
    finally:
        other.close()


def test_a_call_without_a_result_and_a_command_that_failed_say_nothing(store: Store) -> None:
    for one in SESSION[:2]:
        say(store, *one)
    say(store, 3, "tool_call", SESSION[3][2], "Bash", "t2")
    say(store, 4, "tool_result", "Exit code 1\nhook failed", "", "t2")
    assert distilled(store) == []
