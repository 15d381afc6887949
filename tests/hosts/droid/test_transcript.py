"""Droid's transcripts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from transcript_home import Home

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "droid" / "sessions"
MAIN, FORK, AGENT, PROGRAM = (f"d401d000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3, 4))


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
    named = home.calls()
    assert {given["command"] for name, given in named if name == "Bash"} == {"make test", "ls tables"}
    assert {(name, given["file_path"]) for name, given in named if "file_path" in given} == {
        ("Edit", "/home/mira/ferry/fare.go"), ("Write", "/home/mira/ferry/docs/fares.md"), ("Edit", "fare_test.go"),
    }  # fmt: skip
    results = home.results()
    assert sorted(text for text in results if "xit" in text) == [
        "Exit code 1\nls: tables: no such directory", "Exit code 2\nfare_test.go:12: got 4.1, want 410",
    ]  # fmt: skip


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
@pytest.mark.parametrize("settings", [None, b"", b'{"tags":[{"na', b"[]"])
def test_without_readable_settings_nobody_typed_the_prompts(home: Home, tmp_path: Path, settings: bytes | None) -> None:
    path = Path(shutil.copyfile(next(DATA.rglob(f"{MAIN}.jsonl")), tmp_path / f"{MAIN}.jsonl"))
    if settings is not None:
        path.with_suffix(".settings.json").write_bytes(settings)
    home.tail(path)
    kinds = {kind for said in home.streams().values() for kind, _ in said}
    assert "relayed" in kinds and "user" not in kinds
