"""Qwen Code's transcripts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from transcript_home import Home

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "qwen" / "projects"
SESSION, FORK, AGENT = (
    "1a1b2c3d-1111-4222-8333-444455556666", "1c1b2c3d-1111-4222-8333-444455558888", "general-purpose-call_9",
)  # fmt: skip
MAIN = DATA / "-home-mira-ferry" / "chats" / f"{SESSION}.jsonl"


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_only_what_a_person_typed_is_the_users(home: Home) -> None:
    home.read(DATA)
    said = home.streams()[f"qwen:{SESSION}"]
    assert not any("recollection" in text or "secret" in text or "Ponder" in text for _, text in said)
    assert [text for kind, text in said if kind == "user"] == [
        "Pier gates open at six, as @fare.go says. What fails?",
        "Leave the winter hours alone.",
        "> Which pier comes first?\nThe south pier",
        "Paint the gates green in the plan.",
        "Paint the gates blue in the plan.",
        "Close the gates at nine from June on.",
    ]
    assert [kind for kind, text in said if "timetable" in text] == ["notification", "notification"]
    assert home.rows(f"select parent from sessions where id = 'qwen:{SESSION}/{AGENT}'") == [(f"qwen:{SESSION}",)]


def test_a_prompt_in_whose_place_another_stands_counts_no_more(home: Home) -> None:
    home.read(MAIN)
    left = home.rows("select t.text from session_turn st join turns t on t.seq = st.turn_seq where st.rewound = 1 order by st.ordinal")  # fmt: skip
    assert [text for (text,) in left] == ["Paint the gates green in the plan.", "They are green."]


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    home.read(MAIN)
    calls = home.calls()
    assert [name for name, _ in calls] == ["Bash", "Edit", "TodoWrite", "AskUserQuestion", "Agent", "Bash"]
    assert calls[2][1] == {"todos": [{"content": "Open at six", "status": "completed"}]}
    results = home.results()
    assert "Exit code 1\ngate_test.go:7: got 5, want 6" in results
    assert any(text.startswith("The user doesn't want to proceed with this tool use") for text in results)


def test_each_turn_belongs_to_the_directory_that_its_session_was_in_then(home: Home) -> None:
    home.read(DATA)
    found = home.rows("select distinct p.root from turns t join projects p on p.seq = t.project_seq order by p.root")
    assert [root for (root,) in found] == ["/home/mira/ferry", "/home/mira/pier"]


def test_records_without_ids_and_malformed_lines_are_passed_over(home: Home, tmp_path: Path) -> None:
    path = tmp_path / MAIN.name
    odd = b'{"type":"user","message":{"role":"user","parts":[{"text":"no id"}]}}\n[]\n{"uuid":"b","sessionId":"s","type":"assistant","message":[],"usageMetadata":7}\n'
    path.write_bytes(MAIN.read_bytes() + odd)
    assert home.tail(path).bad_lines == 1
    assert list(home.streams()) == [f"qwen:{SESSION}"]


def test_a_fork_lists_the_records_of_its_parent_and_a_title_is_the_users(home: Home) -> None:
    home.read(DATA)
    assert home.rows("select count(*) from turns") == [(31,)]
    assert home.rows(f"select title from sessions where id = 'qwen:{SESSION}'") == [("Open the gates at six",)]
