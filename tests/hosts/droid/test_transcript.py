"""Droid's transcripts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import droid_oracle
import pytest
from transcript_home import Home, check

from csmd.exclusions import Excludes
from csmd.hosts import adapters

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "droid" / "sessions"
SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[4] / "shared" / "eval").parent
SAMPLES = SHARED / "assistants" / "samples" / "droid-0.215.0"
MAIN, FORK, AGENT, PROGRAM = (f"d401d000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3, 4))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.store.close()


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
def test_what_is_stored_of_sessions_is_what_an_independent_reader_finds(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
        check(home.streams(), droid_oracle.of_tree(DATA))
    assert {host for (host,) in home.rows("select host from sessions")} == {"droid"}


def test_a_transcript_that_grows_line_by_line_is_stored_like_a_whole_one(home: Home, tmp_path: Path) -> None:
    for whole in sorted(DATA.rglob("*.jsonl")):
        path = tmp_path / whole.name
        shutil.copyfile(whole.with_suffix(".settings.json"), path.with_suffix(".settings.json"))
        for line in whole.read_bytes().splitlines(keepends=True):
            with path.open("ab") as file:
                file.write(line)
            home.tail(path)
    check(home.streams(), droid_oracle.of_tree(DATA))


def test_the_samples_of_the_real_client_are_stored_as_they_were_said(home: Home) -> None:
    if not SAMPLES.is_dir():
        pytest.skip(f"no samples of the real client at {SAMPLES}")
    for step in sorted((SAMPLES / "session" / "after").iterdir()):
        home.read(step)
    check(home.streams(), droid_oracle.of_tree(SAMPLES / "session" / "after"))


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_only_what_a_person_typed_is_the_users(home: Home) -> None:
    home.read(DATA)
    streams = home.streams()
    said = {(kind, text) for turns in streams.values() for kind, text in turns if not kind.startswith("tool_")}
    assert not any("hook" in text or "British" in text or "tide" in text for _, text in said)
    assert [text for kind, text in streams[f"droid:{MAIN}"] if kind == "user"] == [
        "Fares are whole cents; never use floats for them.", "Have an agent look for ship tables.",
        "Ship tables are sorted by departure.",
    ]  # fmt: skip
    assert {kind for kind, _ in streams[f"droid:{PROGRAM}"]} == {"relayed", "assistant"}
    parents = home.rows(f"select parent from sessions where id = 'droid:{MAIN}/{AGENT}'")
    assert parents == [(f"droid:{MAIN}",)]
    assert home.rows(f"select title from sessions where id = 'droid:{MAIN}'") == [("Ferry fares",)]


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    home.read(DATA)
    named = [
        (name, json.loads(text))
        for name, text in home.rows("select tool_name, text from turns where kind = 'tool_call'")
    ]
    assert {given["command"] for name, given in named if name == "Bash"} == {"make test", "ls tables"}
    assert {(name, given["file_path"]) for name, given in named if "file_path" in given} == {
        ("Edit", "/home/mira/ferry/fare.go"), ("Write", "/home/mira/ferry/docs/fares.md"), ("Edit", "fare_test.go"),
    }  # fmt: skip
    results = [text for (text,) in home.rows("select text from turns where kind = 'tool_result'")]
    assert sorted(text for text in results if "xit" in text) == [
        "Exit code 1\nls: tables: no such directory", "Exit code 2\nfare_test.go:12: got 4.1, want 410",
    ]  # fmt: skip


def test_what_an_excluded_file_held_is_not_kept(home: Home) -> None:
    home.tail(next(DATA.rglob(f"{MAIN}.jsonl")), excludes=Excludes(files=("docs/**", "**/docs/**")))
    assert not any("All fares are cents" in text for (text,) in home.rows("select text from turns"))


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
@pytest.mark.parametrize("settings", [None, b"", b'{"tags":[{"na', b"[]"])
def test_without_readable_settings_nobody_typed_the_prompts(home: Home, tmp_path: Path, settings: bytes | None) -> None:
    path = Path(shutil.copyfile(next(DATA.rglob(f"{MAIN}.jsonl")), tmp_path / f"{MAIN}.jsonl"))
    if settings is not None:
        path.with_suffix(".settings.json").write_bytes(settings)
    home.tail(path)
    kinds = {kind for said in home.streams().values() for kind, _ in said}
    assert "relayed" in kinds and "user" not in kinds


def test_a_transcript_is_known_by_its_first_line() -> None:
    beginnings = [path.read_bytes()[:4096] for path in DATA.rglob("*.jsonl")]
    assert all(adapters.of_transcript(beginning).host == "droid" for beginning in beginnings)
    assert adapters.of_session(f"droid:{MAIN}").host == "droid"


@pytest.mark.parametrize("first", [b'{"type":"session_start","id":7}', b'{"type":"session_start","id":""}'])
def test_a_transcript_without_a_session_is_no_conversation(home: Home, tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "s.jsonl"
    line = b'{"type":"message","id":"m","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hi"}}\n'
    path.write_bytes(first + b"\n" + line)
    home.tail(path)
    assert home.streams() == {}
