"""Qwen Code's transcripts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import gemini_oracle
import pytest
from transcript_home import Home, check

from csmd.exclusions import Excludes
from csmd.hosts import adapters

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "qwen" / "projects"
SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[4] / "shared" / "eval").parent
SAMPLES = SHARED / "assistants" / "samples" / "qwen-0.24.4"
SESSION, FORK, AGENT = (
    "1a1b2c3d-1111-4222-8333-444455556666", "1c1b2c3d-1111-4222-8333-444455558888", "general-purpose-call_9",
)  # fmt: skip
MAIN = DATA / "-home-mira-ferry" / "chats" / f"{SESSION}.jsonl"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.store.close()


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
def test_what_is_stored_is_what_an_independent_reader_finds(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
        check(home.streams(), gemini_oracle.of_qwen(DATA))
    assert {host for (host,) in home.rows("select host from sessions")} == {"qwen"}
    # A fork's copy holds the records of its parent: each turn is one row, listed in both.
    assert home.rows("select count(*) from turns") == [(31,)]


def test_a_transcript_that_grows_line_by_line_is_stored_like_a_whole_one(home: Home, tmp_path: Path) -> None:
    for whole in sorted(DATA.rglob("*.jsonl")):
        path = tmp_path / whole.name
        for line in whole.read_bytes().splitlines(keepends=True):
            with path.open("ab") as file:
                file.write(line)
            home.tail(path)
    check(home.streams(), gemini_oracle.of_qwen(DATA))
    assert home.rows(f"select title from sessions where id = 'qwen:{SESSION}'") == [("Open the gates at six",)]


@pytest.mark.parametrize("case", ["session", "subagent"])
def test_the_samples_of_the_real_client_are_stored_as_they_were_said(home: Home, tmp_path: Path, case: str) -> None:
    if not (SAMPLES / case).is_dir():
        pytest.skip(f"no samples of the real client at {SAMPLES}")
    tree = tmp_path / "tree"
    for step in sorted((SAMPLES / case / "after").iterdir()):  # a file has grown between two steps
        for path in sorted(step.rglob("*.jsonl")):
            to = tree / path.relative_to(step)
            to.parent.mkdir(parents=True, exist_ok=True)
            home.tail(Path(shutil.copyfile(path, to)))
    check(home.streams(), gemini_oracle.of_qwen(tree))


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
    calls = [
        (name, json.loads(text))
        for name, text in home.rows("select tool_name, text from turns where kind = 'tool_call'")
    ]
    assert [name for name, _ in calls] == ["Bash", "Edit", "TodoWrite", "AskUserQuestion", "Agent", "Bash"]
    assert calls[2][1] == {"todos": [{"content": "Open at six", "status": "completed"}]}
    results = [text for (text,) in home.rows("select text from turns where kind = 'tool_result'")]
    assert "Exit code 1\ngate_test.go:7: got 5, want 6" in results
    assert any(text.startswith("The user doesn't want to proceed with this tool use") for text in results)


def test_each_turn_belongs_to_the_directory_that_its_session_was_in_then(home: Home) -> None:
    home.read(DATA)
    found = home.rows("select distinct p.root from turns t join projects p on p.seq = t.project_seq order by p.root")
    assert [root for (root,) in found] == ["/home/mira/ferry", "/home/mira/pier"]


def test_tokens_are_counted_once_and_apart_from_what_was_cached(home: Home) -> None:
    for _ in range(2):
        home.read(MAIN)
    (used,) = home.rows("select sum(input), sum(output), sum(cache_read) from usage")
    assert used == (540, 180, 360)


def test_what_an_excluded_file_held_is_not_kept_also_where_its_result_is_read_later(home: Home, tmp_path: Path) -> None:
    path = tmp_path / MAIN.name
    for line in MAIN.read_bytes().splitlines(keepends=True):
        with path.open("ab") as file:
            file.write(line)
        home.tail(path, excludes=Excludes(files=("gates.go", "**/gates.go")))
    texts = [text for (text,) in home.rows("select text from turns where kind in ('tool_call', 'tool_result')")]
    assert not any("old_string" in text or "Edited gates.go" in text for text in texts)


def test_a_transcript_is_known_by_its_first_line_and_by_its_name() -> None:
    assert all(adapters.of_transcript(path.read_bytes()[:4096]).host == "qwen" for path in DATA.rglob("*.jsonl"))
    other = b'{"uuid":"u","sessionId":"s","parentUuid":null,"type":"user","message":{"role":"user","content":"x"}}\n'
    assert adapters.of_transcript(other).host == "claude"
    assert adapters.place_of("/c/projects", f"-p/chats/{SESSION}.jsonl") == ("/c/projects/-p", SESSION)
    assert adapters.place_of("/c/projects", f"-p/subagents/{SESSION}/agent-a.b.jsonl") == ("/c/projects/-p", SESSION)
    assert adapters.of_session(f"qwen:{FORK}").host == "qwen"


def test_records_without_ids_and_malformed_lines_are_passed_over(home: Home, tmp_path: Path) -> None:
    path = tmp_path / MAIN.name
    odd = b'{"type":"user","message":{"role":"user","parts":[{"text":"no id"}]}}\n[]\n{"uuid":"b","sessionId":"s","type":"assistant","message":[],"usageMetadata":7}\n'
    path.write_bytes(MAIN.read_bytes() + odd)
    assert home.tail(path).bad_lines == 1
    assert list(home.streams()) == [f"qwen:{SESSION}"]
