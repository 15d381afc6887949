"""Gemini CLI's transcripts: each turn once whatever becomes of the file, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import gemini_oracle
import pytest
from transcript_home import NOW, Home, check

from csmd.capture import ingest
from csmd.exclusions import Excludes
from csmd.hosts import adapters
from csmd.hosts.gemini import transcript
from csmd.store import events
from csmd.store.sqlite import Rows

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "gemini" / "tmp"
CHATS = DATA / "ferry" / "chats"
SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[4] / "shared" / "eval").parent
SAMPLES = SHARED / "assistants" / "samples" / "gemini-0.61.0"
SESSION, AGENT = "0a1b2c3d-1111-4222-8333-444455556666", "0b1b2c3d-1111-4222-8333-444455557777"
MAIN = CHATS / f"session-2026-03-02T09-00-{SESSION[:8]}.jsonl"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.store.close()


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
def test_what_is_stored_is_what_an_independent_reader_finds(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
        check(home.streams(), gemini_oracle.of_gemini(DATA))
    assert {host for (host,) in home.rows("select host from sessions")} == {"gemini"}


def test_a_log_that_grows_line_by_line_is_stored_like_a_whole_one(home: Home, tmp_path: Path) -> None:
    for whole in sorted(DATA.rglob("*.jsonl")):
        path = tmp_path / whole.relative_to(DATA)
        path.parent.mkdir(parents=True, exist_ok=True)
        for line in whole.read_bytes().splitlines(keepends=True):
            with path.open("ab") as file:
                file.write(line)
            home.tail(path)
    check(home.streams(), gemini_oracle.of_gemini(DATA))
    assert len(home.rows("select seq from turns")) == sum(map(len, home.streams().values()))
    assert home.rows(f"select title from sessions where id = 'gemini:{SESSION}'") == [("Round ship fares to cents",)]


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
    check(home.streams(), gemini_oracle.of_gemini(tree))


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
        place = ingest.place_of(rows, event)
        ingest.record(rows, event, redacted=redacted, key=home.store.hash_key, now=NOW, place=place)

    if first == "transcript":
        home.read(MAIN)
    home.store.write(record)
    home.read(MAIN)
    assert whole in [text for _, text in home.streams()[f"gemini:{SESSION}"]]
    expired, _ = home.store.read(lambda rows: events.expired_provisional(rows, before=NOW, after=events.FIRST, most=9))
    assert home.store.write(lambda rows: events.close_provisional(rows, expired)) == (1, 0)
    assert whole not in [text for _, text in home.streams()[f"gemini:{SESSION}"]]


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    home.read(MAIN)
    calls = [
        (name, json.loads(text))
        for name, text in home.rows("select tool_name, text from turns where kind = 'tool_call'")
    ]
    assert ("Bash", {"command": "go test ./..."}) in calls and ("mcp_csmd_recall", {"query": "fares"}) in calls
    assert [(name, given["file_path"]) for name, given in calls if "file_path" in given] == [
        ("Read", "fare.go"), ("Write", "docs/fares.md"), ("Edit", "fare.go"),
    ]  # fmt: skip
    assert [given["todos"] for name, given in calls if name == "TodoWrite"] == [
        [{"content": "Round the fares", "status": "completed"}]
    ]
    results = [text for (text,) in home.rows("select text from turns where kind = 'tool_result'")]
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
    assert adapters.started_in(head + said.encode() + b'"}]}]}}\n') == directory


def test_tokens_are_counted_once_and_apart_from_what_was_cached(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
    (used,) = home.rows(
        f"select sum(input), sum(output), sum(cache_read) from usage u join sessions s on s.seq = u.session_seq where s.id = 'gemini:{SESSION}'"
    )
    assert used == (620, 186, 280)


def test_what_an_excluded_file_held_is_not_kept(home: Home) -> None:
    home.tail(MAIN, excludes=Excludes(files=("docs/**", "**/docs/**")))
    texts = [text for (text,) in home.rows("select text from turns")]
    assert not any("All fares are cents" in text for text in texts)


def test_an_excluded_project_is_left_out_by_what_the_host_says_of_its_directory(home: Home) -> None:
    assert home.tail(MAIN, excludes=Excludes(projects=("/home/mira/ferry",))).excluded
    assert home.streams() == {}


def test_a_transcript_is_known_by_its_first_line_and_by_its_name() -> None:
    assert all(adapters.of_transcript(path.read_bytes()[:4096]).host == "gemini" for path in DATA.rglob("*.jsonl"))
    assert adapters.place_of("/c/tmp", f"ferry/chats/{MAIN.name}") == ("/c/tmp/ferry", SESSION[:8])
    assert adapters.place_of("/c/tmp", f"ferry/chats/{SESSION}/{AGENT}.jsonl") == ("/c/tmp/ferry", SESSION[:8])
    assert adapters.of_session(f"gemini:{SESSION}").host == "gemini"


@pytest.mark.parametrize(
    "first", [b"{}", b'{"sessionId":"","projectHash":"h"}', b'{"sessionId":7,"projectHash":"h"}', b"["]
)
def test_a_log_without_a_session_is_no_conversation(home: Home, tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "session-2026-01-01T00-00-00000000.jsonl"
    path.write_bytes(first + b'\n{"id":"a","timestamp":"2026-01-01T00:00:00Z","type":"user","content":"hi"}\n')
    home.tail(path)
    assert home.streams() == {}


def test_messages_without_an_id_and_malformed_lines_are_passed_over(home: Home, tmp_path: Path) -> None:
    path = tmp_path / MAIN.name
    odd = b'{"type":"user","content":[{"text":"no id"}]}\n[]\n{"id":"b","type":"gemini","toolCalls":{"id":1},"tokens":[],"content":{"x":1}}\n'
    path.write_bytes(MAIN.read_bytes() + odd)
    assert home.tail(path).bad_lines == 1


def test_the_hosts_first_message_is_known_again_in_the_store() -> None:
    assert adapters.is_written_for_user("<session_context>\nThis") and adapters.is_written_for_user(
        " <loaded_context>\n"
    )
    assert not adapters.is_written_for_user("Use <session_context> there")
    assert transcript.final_message({"prompt_response": "[no response text]"}) == ""
