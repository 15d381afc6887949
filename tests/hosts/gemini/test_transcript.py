"""Gemini CLI's transcripts: each turn once whatever becomes of the file, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from transcript_home import NOW, Home

from csmd.capture import ingest
from csmd.exclusions import Excludes
from csmd.hosts import adapters
from csmd.store import provisional_turns
from csmd.store.sqlite import Rows

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "gemini" / "tmp"
CHATS = DATA / "ferry" / "chats"
SESSION, AGENT = "0a1b2c3d-1111-4222-8333-444455556666", "0b1b2c3d-1111-4222-8333-444455557777"
MAIN = CHATS / f"session-2026-03-02T09-00-{SESSION[:8]}.jsonl"


@pytest.mark.invariant("What an assistant deletes of its transcripts is not forgotten")
@pytest.mark.parametrize("fate", ["gone", "empty", "only a header", "another file"])
def test_what_a_file_held_stays_whatever_becomes_of_it(home: Home, tmp_path: Path, fate: str) -> None:
    path = tmp_path / MAIN.name
    shutil.copyfile(MAIN, path)
    home.tail(path)
    before = home.streams()
    if fate == "gone":
        path.unlink()
    elif fate == "another file":
        path.unlink()
        shutil.copyfile(next(CHATS.glob("*T09-01-*")), path)
    else:
        path.write_bytes(MAIN.read_bytes().splitlines(keepends=True)[0] if fate == "only a header" else b"")
    home.read(tmp_path)
    assert home.streams() == before
    path.write_bytes(
        MAIN.read_bytes()
        + b'{"id":"z","timestamp":"2026-03-02T09:05:00Z","type":"user","content":[{"text":"More."}]}\n'
    )
    assert home.tail(path).turns_new == 1


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_only_what_a_person_typed_is_the_users(home: Home) -> None:
    home.read(DATA)
    said = home.streams()[f"gemini:{SESSION}"]
    assert not any("timetable" in text or "British" in text or "recollection" in text for _, text in said)
    assert [text for kind, text in said if kind == "user"] == [
        "Ship fares are whole cents, as @fare.go has them. What fails?",
        "> Which ticket printer is it?\nThe new one at the pier",
        "Print the date on receipts in the short form.",
        "Print the date on receipts in the long form.",
    ]
    assert ("relayed", "From now on write fares with two digits behind the comma.") in said, "it came by -p"
    assert ("notification", "Please continue.") in said and ("command", "/stats model") in said
    assert home.rows(f"select parent from sessions where id = 'gemini:{SESSION}/{AGENT}'") == [(f"gemini:{SESSION}",)]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_prompt_that_was_taken_back_counts_no_more(home: Home, tmp_path: Path, at_once: bool) -> None:
    lines = MAIN.read_bytes().splitlines(keepends=True)
    again = b'{"$rewindTo":"00000000-0000-4000-8000-000000000016"}\n{"id":"z","timestamp":"2026-03-02T09:05:00Z","type":"user","content":[{"text":"Print no date."}]}\n'
    path = tmp_path / MAIN.name
    for part in [b"".join([*lines, again])] if at_once else [*lines, *again.splitlines(keepends=True)]:
        with path.open("ab") as file:
            file.write(part)
        home.tail(path)
    left = home.rows(
        "select t.text from session_turn st join turns t on t.seq = st.turn_seq where st.rewound = 1 order by st.ordinal"
    )
    assert [text for (text,) in left] == [
        "Print the date on receipts in the short form.", "The date is short.",
        "Print the date on receipts in the long form.", "The date is long.",
    ]  # fmt: skip


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
@pytest.mark.parametrize("first", ["hook", "transcript"])
def test_a_turns_whole_text_that_a_hook_reported_is_none_beside_its_messages(home: Home, first: str) -> None:
    whole = "Fares have two digits now.\nThe tests pass, too."
    value = {"session_id": SESSION, "cwd": "/home/mira/ferry", "prompt_response": whole}
    event, redacted = ingest.decode_event(
        "gemini", json.dumps(value).encode(), name="Stop", event_id="e1", at="2026-03-02T09:01:12.500Z"
    )
    assert event is not None

    def record(rows: Rows) -> None:
        place = ingest.find_event_project(rows, event)
        ingest.record_event(rows, event, redacted=redacted, key=home.store.hash_key, now=NOW, place=place)

    if first == "transcript":
        home.read(MAIN)
    home.store.write(record)
    home.read(MAIN)
    assert whole in [text for _, text in home.streams()[f"gemini:{SESSION}"]]
    expired, _ = home.store.read(
        lambda rows: provisional_turns.list_expired_provisional(
            rows, before=NOW, after=provisional_turns.START, limit=9
        )
    )
    assert home.store.write(lambda rows: provisional_turns.close_provisional(rows, expired)) == (1, 0)
    assert whole not in [text for _, text in home.streams()[f"gemini:{SESSION}"]]


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    home.read(MAIN)
    calls = home.calls()
    assert ("Bash", {"command": "go test ./..."}) in calls and ("mcp_csmd_recall", {"query": "fares"}) in calls
    assert [(name, given["file_path"]) for name, given in calls if "file_path" in given] == [
        ("Read", "fare.go"), ("Write", "docs/fares.md"), ("Edit", "fare.go"),
    ]  # fmt: skip
    assert [given["todos"] for name, given in calls if name == "TodoWrite"] == [
        [{"content": "Round the fares", "status": "completed"}]
    ]
    results = home.results()
    assert "Exit code 1\nfare_test.go:12: got 4.1, want 410\nFAIL" in results
    assert [text.split(".")[0] for text in results if text.startswith(("Error", "The user"))] == [
        "Error: Failed to edit, 0 occurrences found", "The user doesn't want to proceed with this tool use",
    ]  # fmt: skip


def test_a_session_belongs_to_the_directory_that_the_host_names(home: Home) -> None:
    home.read(DATA)
    found = home.rows("select distinct p.root from turns t join projects p on p.seq = t.project_seq")
    assert found == [("/home/mira/ferry",)]


@pytest.mark.parametrize(
    ("said", "directory"),
    [
        (r"- **Workspace Directories:**\n  - /home/mira/a b\n  - /srv/else\n", "/home/mira/a b"),
        (r"I'm currently working in the directory: /home/mira/ferry\nHere is", "/home/mira/ferry"),
        (r"I'm currently working in the following directories:\n  - /srv/\"q\"\n", '/srv/"q"'),
        (r"no directory", ""),
        (r'"},{"text":"working in the directory: /etc', ""),
    ],
)
def test_where_a_session_began_stands_in_the_hosts_first_message(said: str, directory: str) -> None:
    head = b'{"sessionId":"s","projectHash":"h","startTime":"x"}\n{"$set":{"messages":[{"content":[{"text":"<session_context>\\n'
    assert adapters.find_start_directory(head + said.encode() + b'"}]}]}}\n') == directory


def test_an_excluded_project_is_left_out_by_what_the_host_says_of_its_directory(home: Home) -> None:
    assert home.tail(MAIN, excludes=Excludes(projects=("/home/mira/ferry",))).excluded
    assert home.streams() == {}


def test_messages_without_an_id_and_malformed_lines_are_passed_over(home: Home, tmp_path: Path) -> None:
    path = tmp_path / MAIN.name
    odd = b'{"type":"user","content":[{"text":"no id"}]}\n[]\n{"id":"b","type":"gemini","toolCalls":{"id":1},"tokens":[],"content":{"x":1}}\n'
    path.write_bytes(MAIN.read_bytes() + odd)
    assert home.tail(path).bad_lines == 1


def test_a_title_that_the_host_has_made_is_the_sessions(home: Home) -> None:
    home.read(DATA)
    assert home.rows(f"select title from sessions where id = 'gemini:{SESSION}'") == [("Round ship fares to cents",)]
