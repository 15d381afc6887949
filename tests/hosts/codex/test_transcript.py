"""Codex' rollouts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from transcript_home import Home

from csmd.extraction import verbatim_statements
from csmd.hosts import adapters

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "codex"
#: A session of the real client that went back behind its second turn and was asked a question; in words of our own.
REVERTED = "019db000-0000-7000-8000-000000000005"
MAIN, FORK, CHILD, OLD = (
    f"019{n}b000-0000-7000-8000-00000000000{i}" for n, i in (("c", 1), ("c", 2), ("c", 3), ("a", 4))
)


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_only_what_a_person_typed_is_the_users(home: Home) -> None:
    home.read(DATA)
    streams = home.streams()
    said = {(kind, text) for turns in streams.values() for kind, text in turns if not kind.startswith("tool_")}
    assert not any("British" in text or "hook" in text or "timetable" in text for _, text in said)
    assert ("relayed", "Summarise the fares for the changelog.") in said
    assert ("user", "Ship tables are sorted by departure.") in said
    parents = home.rows(f"select parent from sessions where id = 'codex:{MAIN}/{CHILD}'")
    assert parents == [(f"codex:{MAIN}",)]


def test_what_a_session_has_gone_back_behind_counts_no_more(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
        rows = home.rows(
            "select t.text, st.rewound, t.searchable from session_turn st join turns t on t.seq = st.turn_seq "
            f"join sessions s on s.seq = st.session_seq where s.id = 'codex:{REVERTED}' and t.kind in ('user', 'assistant') "
            "order by st.ordinal"
        )
        assert [text for text, rewound, _ in rows if rewound] == [
            "Then round fares to ten cents in the ticket printer.", "Fares are rounded to ten cents.",
        ]  # fmt: skip
        assert not any(searchable for _, rewound, searchable in rows if rewound)
    kept = [text for text, rewound, _ in rows if not rewound]
    first, part = (f"2026/11/29/rollout-T-{REVERTED}{end}.jsonl" for end in ("", "_01a22611-f5af"))
    placed = {
        adapters.CODEX.place_of("/r", path) for path in (first, part)
    }  # the backlog reads it after the first file
    assert placed == {("/r", f"rollout-T-{REVERTED}")}
    assert kept[0] == "Please list the coins that the ticket printer takes." and kept[-1] == "So it is."


def test_an_answer_to_the_assistants_question_is_the_users_and_a_decision(home: Home) -> None:
    home.read(DATA)
    ((uuid, kind),) = home.rows("select uuid, kind from turns where text like '> How are fares rounded%'")
    assert kind == "user" and "/" in uuid
    answer = next(text for kind, text in home.streams()[f"codex:{REVERTED}"] if text.startswith("> "))
    assert verbatim_statements.find_picks(answer) == [
        "How are fares rounded in the ticket printer? -> Five cents only in the north"
    ]


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    home.read(DATA)
    named = home.calls()
    assert ("Bash", {"command": "make test"}) in named and ("Bash", {"command": "ls tables"}) in named
    assert {(name, given["file_path"]) for name, given in named if "file_path" in given} == {
        ("Edit", "fare.go"), ("Write", "docs/fares.md"),
    }  # fmt: skip
    assert ("mcp__csmd__recall", {"query": "fares"}) in named
    assert [given["todos"][0]["status"] for name, given in named if name == "TodoWrite"] == ["completed"]
    failed = [text for text in home.results() if "Exit code" in text]
    assert sorted(failed) == [
        "Exit code 1\nls: tables: no such directory\n", "Exit code 2\nfare_test.go:12: got 4.1, want 410\n",
    ]  # fmt: skip


def test_each_turn_belongs_to_the_directory_that_its_session_was_in_then(home: Home) -> None:
    home.read(DATA)
    found = home.rows("select distinct p.root from turns t join projects p on p.seq = t.project_seq order by p.root")
    assert [root for (root,) in found] == ["/home/mira/ferry", "/home/mira/ferry/lib"]


def test_a_session_that_codex_archives_is_not_stored_again(home: Home, tmp_path: Path) -> None:
    whole = next(DATA.rglob("*000001.jsonl"))
    path = Path(shutil.copyfile(whole, tmp_path / whole.name))
    assert home.tail(path).turns_new > 0
    (tmp_path / "archived_sessions").mkdir()
    assert home.tail(path.rename(tmp_path / "archived_sessions" / whole.name)).turns_new == 0
