"""Copilot CLI's transcripts: each turn once, by whom it was said, and nothing of the host's own."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import copilot_oracle
import pytest
from transcript_home import Home, check

from csmd.exclusions import Excludes, Withheld
from csmd.hosts import adapters
from csmd.hosts.adapter import Opened, Reading
from csmd.hosts.copilot import transcript

DATA = Path(__file__).resolve().parents[2] / "data" / "hosts" / "copilot" / "session-state"
SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[4] / "shared" / "eval").parent
SAMPLES = SHARED / "assistants" / "samples" / "copilot-1.0.102"
MAIN, FORK, PROGRAM = (f"c0b11070-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
AGENT = "c0b11070-0000-4000-8000-0000000000a9"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.store.close()


def lines_of(session: str) -> list[bytes]:
    return (DATA / session / "events.jsonl").read_bytes().splitlines(keepends=True)


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
def test_what_is_stored_of_sessions_is_what_an_independent_reader_finds(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
        check(home.streams(), copilot_oracle.of_tree(DATA))
    assert {host for (host,) in home.rows("select host from sessions")} == {"copilot"}


def test_a_transcript_that_grows_line_by_line_is_stored_like_a_whole_one(home: Home, tmp_path: Path) -> None:
    for session in (MAIN, FORK, PROGRAM):
        path = tmp_path / "session-state" / session / "events.jsonl"
        path.parent.mkdir(parents=True)
        for line in lines_of(session):
            with path.open("ab") as file:
                file.write(line)
            home.tail(path)
    check(home.streams(), copilot_oracle.of_tree(DATA))
    listed = set(home.rows("select distinct uuid from turns"))
    assert len(listed) == len(home.rows("select seq from turns"))
    parents = home.rows("select uuid, parent_uuid from turns where kind in ('user', 'relayed') order by uuid")
    (tmp_path / "whole").mkdir()
    whole = Home(tmp_path / "whole")
    whole.read(DATA)
    assert whole.rows("select uuid, parent_uuid from turns where kind in ('user', 'relayed') order by uuid") == parents
    whole.store.close()


@pytest.mark.parametrize("case", ["session", "subagent", "claude_hooks"])
def test_the_samples_of_the_real_client_are_stored_as_they_were_said(home: Home, tmp_path: Path, case: str) -> None:
    if not (SAMPLES / case).is_dir():
        pytest.skip(f"no samples of the real client at {SAMPLES}")
    tree = tmp_path / "tree"
    for path in sorted((SAMPLES / case).rglob("events.jsonl")):  # in the order of the steps: a file has grown
        grown = tree / path.parent.name / path.name
        grown.parent.mkdir(parents=True, exist_ok=True)
        home.tail(Path(shutil.copyfile(path, grown)))
    check(home.streams(), copilot_oracle.of_tree(tree))


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
    named = [
        (name, json.loads(text))
        for name, text in home.rows("select tool_name, text from turns where kind = 'tool_call'")
    ]
    assert {given["command"] for name, given in named if name == "Bash"} == {
        "make test", "rm -r tables", "ls tables", "git status",
    }  # fmt: skip
    assert {(name, given["file_path"]) for name, given in named if "file_path" in given} == {
        ("Edit", "/home/mira/ferry/fare.go"), ("Write", "/home/mira/ferry/docs/fares.md"), ("Edit", "fare_test.go"),
        ("Write", "docs/cents.md"),
    }  # fmt: skip
    assert ("mcp__csmd__recall", {"query": "fares"}) in named and "Task" in {name for name, _ in named}
    results = [text for (text,) in home.rows("select text from turns where kind = 'tool_result'")]
    assert sorted(text for text in results if "Exit code" in text) == [
        "Exit code 1\nls: tables: no such directory", "Exit code 2\nfare_test.go:12: got 4.1, want 410",
    ]  # fmt: skip
    assert not any("shellId" in text or "never run make" in text for text in results)
    assert any(text.startswith("The user doesn't want to take this action.") for text in results)


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
    opened = Opened(
        path=Path(PROGRAM, "events.jsonl"),
        file=file,
        beginning=before[:4096],
        position=len(before),
        withheld=Withheld(),
    )
    reading = Reading()
    read_line = transcript.read_from(opened)
    for line in (prompt, idle):
        read_line(line.rstrip(), reading, tool_limit=8192)
    assert [(turn.kind, turn.cwd) for turn in reading.turns] == [("relayed", "/home/mira/ferry")]
    assert file.bytes_read < 12 * 1024 * 1024 < len(before)


def test_tokens_are_counted_once_and_apart_from_what_was_cached(home: Home) -> None:
    for _ in range(2):
        home.read(DATA)
    used = home.rows("select s.id, sum(input), sum(output), sum(cache_read) from usage u join sessions s on s.seq = u.session_seq group by s.id order by s.id")  # fmt: skip
    assert {row[0]: row[1:] for row in used}[f"copilot:{MAIN}/{AGENT}"] == (350, 21, 300)


def test_what_an_excluded_file_held_is_not_kept(home: Home) -> None:
    home.tail(DATA / MAIN / "events.jsonl", excludes=Excludes(files=("docs/**", "**/docs/**")))
    texts = [text for (text,) in home.rows("select text from turns")]
    assert not any("All fares are cents" in text for text in texts)


def test_a_transcript_is_known_by_its_first_line_and_by_its_name() -> None:
    beginnings = [path.read_bytes()[:4096] for path in DATA.rglob("*.jsonl")]
    assert all(adapters.of_transcript(beginning).host == "copilot" for beginning in beginnings)
    assert adapters.place_of("/c/session-state", f"{MAIN}/events.jsonl") == ("/c/session-state", MAIN)
    assert adapters.of_session(f"copilot:{MAIN}").host == "copilot"


@pytest.mark.parametrize("first", [b'{"type":"session.start","data":{"sessionId":7}}', b'{"type":"session.start","data":{"sessionId":""}}'])  # fmt: skip
def test_a_transcript_without_a_session_is_no_conversation(home: Home, tmp_path: Path, first: bytes) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(first + b"\n" + lines_of(MAIN)[5])
    home.tail(path)
    assert home.streams() == {}


def test_notices_in_the_users_name_are_known_again_in_the_store() -> None:
    for said in ("<system_notification>\n", " <skill-context name='x'>\n"):
        assert transcript.prompt_kind(said, by_person=True) == "notification"
        assert adapters.is_written_for_user(said)
    assert transcript.prompt_kind("/etc/hosts is wrong", by_person=True) == "user"


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
