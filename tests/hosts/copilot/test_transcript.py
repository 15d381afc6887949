"""Copilot CLI's transcripts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from transcript_home import Home

from csmd.hosts.copilot import transcript
from csmd.hosts.transcript_reading import Reading, Transcript
from csmd.withheld_calls import WithheldCalls

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "copilot" / "session-state"
MAIN, FORK, PROGRAM = (f"c0b11070-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
AGENT = "c0b11070-0000-4000-8000-0000000000a9"


def lines_of(session: str) -> list[bytes]:
    return (DATA / session / "events.jsonl").read_bytes().splitlines(keepends=True)


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_only_what_a_person_typed_is_the_users(home: Home) -> None:
    home.read(DATA)
    streams = home.streams()
    said = {(kind, text) for turns in streams.values() for kind, text in turns if not kind.startswith("tool_")}
    assert not any("hook" in text or "British" in text or "current_datetime" in text for _, text in said)
    assert [text for kind, text in streams[f"copilot:{MAIN}"] if kind == "user"] == [
        "Fares are whole cents; never use floats for them.", "Keep the tables, the printer reads them.",
        "> Which unit do receipts show?\neuro", "Have an agent look for ship tables.", "Ship tables are sorted by departure.",
    ]  # fmt: skip
    assert {kind for kind, _ in streams[f"copilot:{PROGRAM}"]} == {"relayed", "assistant"}
    parents = home.rows(f"select parent from sessions where id = 'copilot:{MAIN}/{AGENT}'")
    assert parents == [(f"copilot:{MAIN}",)]


@pytest.mark.parametrize("line_by_line", [False, True])
def test_a_person_who_goes_on_with_a_programs_session_is_believed(
    home: Home, tmp_path: Path, line_by_line: bool
) -> None:
    """The host says only behind a prompt that it has changed its mode."""
    path = tmp_path / PROGRAM / "events.jsonl"
    path.parent.mkdir()
    first, system, second = [*lines_of(MAIN)[5:7], lines_of(MAIN)[-7]]
    lines = [*lines_of(PROGRAM), first, system, second]
    for end in range(1, len(lines) + 1) if line_by_line else [len(lines)]:
        path.write_bytes(b"".join(lines[:end]))
        home.tail(path)
    kinds = [kind for kind, _ in home.streams()[f"copilot:{PROGRAM}"] if kind != "assistant"]
    assert kinds == ["relayed", "relayed", "user", "user"]


def test_what_a_rewind_undoes_counts_no_more(home: Home, tmp_path: Path) -> None:
    path = tmp_path / MAIN / "events.jsonl"
    path.parent.mkdir()
    lines = lines_of(MAIN)
    typed = [number for number, line in enumerate(lines) if b'"content":"Ship tables' in line]
    path.write_bytes(b"".join(lines))
    home.tail(path)
    changed = json.loads(lines[typed[0]])
    changed["data"]["content"], changed["id"] = "Ship tables are sorted by name.", "0" * 8 + changed["id"][8:]
    # Copilot writes the file anew without the lines that are undone, and goes on behind.
    anew = path.with_suffix(".new")
    anew.write_bytes(b"".join([*lines[: typed[0]], json.dumps(changed, separators=(",", ":")).encode() + b"\n"]))
    anew.replace(path)
    home.tail(path)
    standing = home.rows("select t.text, st.rewound from turns t join session_turn st on st.turn_seq = t.seq where t.text like 'Ship tables%' order by t.text")  # fmt: skip
    assert standing == [("Ship tables are sorted by departure.", 1), ("Ship tables are sorted by name.", 0)]
    assert not home.rows("select 1 from session_turn st join turns t on t.seq = st.turn_seq where rewound = 1 and t.text not like 'Ship tables%' and t.text <> 'Noted.'")  # fmt: skip


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    home.read(DATA)
    named = home.calls()
    assert {given["command"] for name, given in named if name == "Bash"} == {
        "make test", "rm -r tables", "ls tables", "git status",
    }  # fmt: skip
    assert {(name, given["file_path"]) for name, given in named if "file_path" in given} == {
        ("Edit", "/home/mira/ferry/fare.go"), ("Write", "/home/mira/ferry/docs/fares.md"), ("Edit", "fare_test.go"),
        ("Write", "docs/cents.md"),
    }  # fmt: skip
    assert ("mcp__csmd__recall", {"query": "fares"}) in named and "Task" in {name for name, _ in named}
    results = home.results()
    assert sorted(text for text in results if "Exit code" in text) == [
        "Exit code 1\nls: tables: no such directory", "Exit code 2\nfare_test.go:12: got 4.1, want 410",
    ]  # fmt: skip
    assert not any("shellId" in text or "never run make" in text for text in results)
    assert any(text.startswith("The user doesn't want to proceed with this tool use.") for text in results)


def test_each_turn_belongs_to_the_directory_that_its_session_was_in_then(home: Home, tmp_path: Path) -> None:
    # Read in two halves: the second has to find out where the session is.
    path = tmp_path / MAIN / "events.jsonl"
    path.parent.mkdir()
    lines = lines_of(MAIN)
    resumed = next(number for number, line in enumerate(lines) if b"session.resume" in line)
    for end in (resumed + 2, len(lines)):
        path.write_bytes(b"".join(lines[:end]))
        home.tail(path)
    places = dict(home.rows("select t.text, d.path from turns t join directories d on d.seq = t.directory_seq"))
    assert places["Fares are whole cents; never use floats for them."] == "/home/mira/ferry"
    assert places["I ask an agent."] == "/home/mira/ferry/lib"
    assert places["Ship tables are sorted by departure."] == "/home/mira/ferry"


class CountedFile(io.BytesIO):
    """A file that knows how many bytes were read from it."""

    bytes_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.bytes_read += len(data)
        return data


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_who_types_is_known_from_the_beginning_of_a_long_transcript_without_a_look_at_all_of_it() -> None:
    lines = lines_of(PROGRAM)
    (mode,) = (number for number, line in enumerate(lines) if line.startswith(b'{"type":"system.message"'))
    prompt = next(line for line in lines if line.startswith(b'{"type":"user.message"'))
    idle = b'{"type":"session.idle","data":{"text":"' + b"x" * 1000 + b'"}}\n'
    before = b"".join(lines[: mode + 1]) + idle * 24_000
    file = CountedFile(before + prompt)
    opened = Transcript(
        path=Path(PROGRAM, "events.jsonl"),
        file=file,
        beginning=before[:4096],
        position=len(before),
        withheld=WithheldCalls(),
    )
    reading = Reading(tool_limit=8192)
    read_line = transcript.make_reader(opened)
    for line in (prompt, idle):
        read_line(line.rstrip(), reading)
    assert [(turn.kind, turn.cwd) for turn in reading.turns] == [("relayed", "/home/mira/ferry")]
    assert file.bytes_read < 12 * 1024 * 1024 < len(before)


def test_who_types_is_known_where_the_host_said_it_long_before(home: Home, tmp_path: Path) -> None:
    """Behind 300 KB of output, with a sub-agent's prompt of the model in between."""
    lines = lines_of(PROGRAM)
    result = json.loads(lines_of(MAIN)[11])
    result["data"]["result"]["content"] = "fares " * 50_000
    agents = next(line for line in lines_of(MAIN)[7:] if b"system.message" in line)
    assert b'"agentId"' in agents and result["type"] == "tool.execution_complete"
    path = tmp_path / PROGRAM / "events.jsonl"
    path.parent.mkdir()
    early = [*lines[:8], json.dumps(result, separators=(",", ":")).encode() + b"\n", agents, lines[8]]
    for whole in (early, [*early, *lines[9:]]):
        path.write_bytes(b"".join(whole))
        home.tail(path)
    kinds = {kind for kind, text in home.streams()[f"copilot:{PROGRAM}"] if text.startswith(("Summarise", "And once"))}
    assert kinds == {"relayed"}


def test_a_path_is_no_command() -> None:
    assert transcript.classify_prompt("/etc/hosts is wrong", by_person=True) == "user"
