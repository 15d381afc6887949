"""OpenCode's sessions in its database: each turn once, by whom it was said, and nothing beside the database is touched."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import opencode_oracle
import pytest
import transcript_home
from opencode_database import FROM_RUN, Database
from transcript_home import NOW, Streams, latest_transcripts

from csmd.capture import transcript_listing, transcript_source, transcripts, whole_text
from csmd.exclusions import Excludes
from csmd.hosts import adapters
from csmd.hosts.opencode import transcript
from csmd.paths import name_of_transcript
from csmd.store import cursors, tampered_transcripts
from csmd.store.turns import find_cut
from csmd.text import tokens

SHARED = Path(os.environ.get("CSMD_EVAL") or Path(__file__).resolve().parents[4] / "shared" / "eval").parent
SAMPLES = SHARED / "assistants" / "samples"
HOUR_MS = 3_600_000


class Home(transcript_home.Home):
    """A home with a database that a client writes, and `now`, the time at which it is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.now = NOW
        self.database = Database(root / "opencode" / "opencode.db")
        self.ferry = str(root / "ferry")

    def read(self, path: Path | None = None, **more: Any) -> list[transcripts.ReadReport]:  # type: ignore[override]
        return [self.tail(one, **more) for one in latest_transcripts(path or self.database.path)]

    def tail(self, path: Path, **more: Any) -> transcripts.ReadReport:
        return super().tail(path, **{"now": lambda: self.now, **more})

    def streams(self, *, standing: bool = True) -> Streams:
        return super().streams(standing=standing)

    def check(self, path: Path | None = None, host: str = "opencode") -> None:
        """What is stored is what the oracle finds."""
        transcript_home.check(self.streams(), opencode_oracle.of_database(path or self.database.path, host))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.database.close()
    made.store.close()


def a_conversation(home: Home) -> str:
    """Two prompts, tools, a sub-agent and a compaction; the session's id."""
    data = home.database
    session = data.session(home.ferry)
    noted = {"type": "text", "text": "Called the Read tool", "synthetic": True}
    data.prompt(session, "Fares are integers in cents.", more=(noted, {"type": "file", "url": "file:///x"}))
    first = data.begin(session, cwd=str(home.root / "quay"), mode="build")
    data.part(first, {"type": "reasoning", "text": "I should look."})
    data.say(first, "I will run the tests.")
    data.call(first, "bash", {"command": "make test"}, output="fare_test.go:12: got 4.1", metadata={"exit": 2})
    data.call(first, "edit", {"filePath": "fare.go", "oldString": "4.1", "newString": "410"})
    data.call(first, "task", {"prompt": "Find the tables.", "description": "tables"}, output="They are in tables/.")
    child = data.session(home.ferry, parent=session, title="tables (@general subagent)")
    data.prompt(child, "Find the tables.")
    data.answer(child, "They are in tables/.")
    data.finish(first)
    data.answer(session, "The fares are cents now.")
    data.prompt(session, more=({"type": "compaction", "auto": True},))
    data.answer(session, "## Goal\nFares in cents.", summary=True)
    data.prompt(session, more=({"type": "text", "text": "Continue if you have next steps", "synthetic": True},))
    data.answer(session, "All is done.")
    data.prompt(session, "Sort the tables by departure.")
    data.answer(session, "They are sorted.")
    return session


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
def test_what_is_stored_of_a_database_is_what_an_independent_reader_finds(home: Home) -> None:
    session = a_conversation(home)
    home.database.fork(session)
    by_run = home.database.session(home.ferry, permission=FROM_RUN)
    home.database.prompt(by_run, '"Summarise the \\"fares\\" for the changelog."')
    home.database.answer(by_run, "Fares are cents.")
    for _ in range(2):
        home.read()
        home.check()
    assert {host for (host,) in home.rows("select host from sessions")} == {"opencode"}
    assert len(home.rows("select seq from turns")) < sum(map(len, home.streams().values())), (
        "a fork's turns are the same"
    )
    assert home.rows("select count(*) from turns where text = 'The fares are cents now.'") == [(1,)]


@pytest.mark.invariant("Every turn exactly once, whatever the assistant")
def test_an_answer_is_read_when_it_is_finished_and_then_as_a_whole(home: Home) -> None:
    data = home.database
    session = data.session(home.ferry)
    home.now = at(data.clock)
    prompt = data.message(session, {"role": "user"})
    home.read()
    data.part(prompt, {"type": "text", "text": "Print the date."})
    home.read()
    assert home.streams() == {}, "more of the prompt may come"
    answer = data.begin(session)
    home.read()
    assert home.streams() == {f"opencode:{session}": [("user", "Print the date.")]}
    part = data.part(answer, {"type": "text", "text": ""})
    queued = data.prompt(session, "And the time.")
    home.read()
    data.change("part", part, {"text": "It is printed.", "time": {"start": 1, "end": 2}})
    home.read()
    assert len(home.streams()[f"opencode:{session}"]) == 1
    data.finish(answer)
    data.change("message", prompt, {"summary": {"diffs": []}})  # as the client does at a turn's end
    home.read()
    assert home.streams()[f"opencode:{session}"][1:] == [("assistant", "It is printed.")]
    data.answer(session, "The time, too.", parentID=queued)
    home.read()
    home.check()


def test_what_a_killed_client_left_is_read_when_the_session_goes_on(home: Home) -> None:
    data = home.database
    session = data.session(home.ferry)
    home.now = at(data.clock)
    data.prompt(session, "Print the date.")
    cut_off = data.begin(session)
    data.say(cut_off, "I will look at the printer.")
    data.call(cut_off, "bash", {"command": "make print"}, status="running")
    home.read()
    assert len(home.streams()[f"opencode:{session}"]) == 1
    data.prompt(session, "Go on.")
    data.answer(session, "It is printed.")
    home.read()
    home.check()


def test_what_a_killed_client_left_is_read_after_an_hour(home: Home) -> None:
    data = home.database
    session = data.session(home.ferry)
    data.prompt(session, "Print the date.")
    data.say(data.begin(session), "I will look at the printer.")
    home.now = at(data.clock + HOUR_MS // 2)
    home.read()
    assert len(home.streams()[f"opencode:{session}"]) == 1
    home.now = at(data.clock + 2 * HOUR_MS)
    home.read()
    home.check()


def test_a_session_goes_on_and_is_read_from_where_it_was(home: Home) -> None:
    session = a_conversation(home)
    home.read()
    home.database.prompt(session, "Print the date.")
    home.database.answer(session, "It is printed.")
    (report,) = (one for one in home.read() if one.turns_new)
    assert (report.turns_new, report.turns_known) == (2, 0)
    home.check()


def test_what_is_said_after_the_clock_was_set_back_is_read(home: Home) -> None:
    data = home.database
    session = data.session(home.ferry)
    data.prompt(session, "Fares are integers in cents.")
    data.answer(session, "Noted.")
    home.read()
    data.clock -= HOUR_MS
    data.prompt(session, "Print the date.")
    data.answer(session, "It is printed.")
    known = home.store.read(cursors.file_positions)
    assert [Path(one.path).name for one in transcript_listing.list_latest(data.path, known)] == [session]
    (report,) = home.read()
    assert (report.turns_new, report.turns_known) == (2, 2)
    assert sorted(text for _, text in home.streams()[f"opencode:{session}"]) == [
        "Fares are integers in cents.", "It is printed.", "Noted.", "Print the date.",
    ]  # fmt: skip
    assert transcript_listing.list_latest(data.path, home.store.read(cursors.file_positions)) == []
    (report,) = home.read()
    assert (report.turns_new, report.turns_known) == (0, 0)


def test_what_a_revert_deleted_does_not_count_any_more(home: Home) -> None:
    data = home.database
    session = data.session(home.ferry)
    data.prompt(session, "Fares are integers in cents.")
    data.answer(session, "Noted.")
    undone = data.prompt(session, "Round them to francs.")
    data.answer(session, "They are rounded.")
    home.read()
    data.revert(undone)
    data.prompt(session, "Round them to five cents.")
    data.answer(session, "Done.")
    home.read()
    home.check()
    assert home.rows("select count(*) from turns where text = 'Round them to francs.'") == [(1,)]


def test_messages_of_one_millisecond_are_told_apart_and_a_forks_copies_are_known(home: Home) -> None:
    data = home.database
    first, second = data.session(home.ferry), data.session(str(home.root / "quay"))
    moment = data.tick()
    for session, said in ((first, "Fares are cents."), (second, "Fares are francs.")):
        for role in ("user", "assistant"):
            message = data.message(session, {"role": role}, moment)
            data.say(message, said)
            data.change("message", message, {"time": {"created": moment, "completed": moment}})
    data.fork(first)
    home.read()
    home.check()
    assert len(home.rows("select seq from turns")) == 4


def test_a_long_session_is_read_in_pieces_and_each_of_them_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_source, "READ_BYTES", 400)
    a_conversation(home)
    (path, *_) = sorted(latest_transcripts(home.database.path))
    reports = [home.tail(path, most_pieces=1)]
    while reports[-1].more:
        reports.append(home.tail(path, most_pieces=1))
    assert len(reports) > 3 and not any(report.turns_known for report in reports)
    home.read()
    home.check()


@pytest.mark.parametrize(
    ("host", "version", "case", "step"),
    [("opencode", "1.18.33", "session", 7), ("opencode", "1.18.33", "subagent", 7), ("kilo", "7.7.9", "session", 2)],
)
def test_the_samples_of_the_real_client_are_stored_as_they_were_said(
    home: Home, tmp_path: Path, host: str, version: str, case: str, step: int
) -> None:
    sample = SAMPLES / f"{host}-{version}" / case / "after" / str(step) / ".local" / "share" / host / f"{host}.db"
    if not sample.is_file():
        pytest.skip(f"no samples of the real client at {SAMPLES}")
    path = Path(shutil.copyfile(sample, tmp_path / f"{host}.db"))
    for _ in range(2):
        home.read(path)
        home.check(path, host)


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_only_what_a_person_typed_is_the_users(home: Home) -> None:
    data = home.database
    session = a_conversation(home)
    told = "<csmd-recall>\nFares were floats.\n</csmd-recall>"
    data.prompt(session, "Why?", more=({"type": "text", "text": told, "synthetic": True},))
    data.answer(session, "Because they are exact.")
    command = {"type": "text", "text": "Review the fares.", "metadata": {"csmd_command": True}}
    data.prompt(session, more=(command,))
    data.answer(session, "They are fine.")
    by_run = data.session(home.ferry, permission=FROM_RUN)
    data.prompt(by_run, "Summarise")
    data.answer(by_run, "Fares are cents.")
    data.prompt(session, '"Summarise the fares."')
    data.answer(session, "Cents.")
    home.read()
    streams = home.streams()
    users = [text for stream, turns in streams.items() for kind, text in turns if kind == "user" and "/" not in stream]
    assert users == ["Fares are integers in cents.", "Sort the tables by departure.", "Why?"]
    assert streams[f"opencode:{by_run}"][0] == ("relayed", "Summarise")
    assert not any("floats" in text or "Continue if" in text for turns in streams.values() for _, text in turns)
    (parent,) = home.rows("select parent from sessions where id like '%/%'")
    assert parent == (f"opencode:{session}",)


def test_tool_calls_are_stored_in_the_form_of_every_assistant(home: Home) -> None:
    session = a_conversation(home)
    message = home.database.begin(session)
    refused = "The user rejected permission to use this specific tool call."
    home.database.call(message, "bash", {"command": "rm -r tables"}, status="error", error=refused)
    home.database.call(message, "read", {"filePath": "none.go"}, status="error", error="File not found: none.go")
    home.database.call(message, "csmd_recall", {"query": "fares"}, output="Cents.")
    home.database.finish(message)
    home.read()
    calls = [
        (name, json.loads(text))
        for name, text in home.rows("select tool_name, text from turns where kind = 'tool_call'")
    ]
    assert ("Bash", {"command": "make test"}) in calls and ("csmd_recall", {"query": "fares"}) in calls
    assert ("Edit", {"file_path": "fare.go", "old_string": "4.1", "new_string": "410"}) in calls
    results = [text for (text,) in home.rows("select text from turns where kind = 'tool_result'")]
    assert "Exit code 2\nfare_test.go:12: got 4.1" in results and "Error: File not found: none.go" in results
    assert any(text.startswith("The user doesn't want to proceed with this tool use") for text in results)


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ('sqlite3 ~/.local/share/opencode/opencode.db "insert into part values (1)"', True),
        ("cp /tmp/x.db ~/.local/share/opencode/opencode.db", True),
        ('sqlite3 ~/.local/share/opencode/opencode.db "select data from part"', False),
        ("cp /tmp/x.db /tmp/fares.db", False),
        ("cp ~/.local/share/opencode/opencode.db /tmp/opencode.db", False),
    ],
)
def test_a_database_that_a_tool_has_written_gives_no_statements(home: Home, command: str, writes: bool) -> None:
    session = a_conversation(home)
    message = home.database.begin(session)
    home.database.call(message, "bash", {"command": command})
    home.database.finish(message)
    home.read()
    name = tokens.keyed_hash(name_of_transcript(str(home.database.path / session)), home.store.hash_key)
    assert home.store.read(lambda rows: tampered_transcripts.is_tampered(rows, name)) is writes


def test_answers_to_questions_are_the_users_below_the_question(home: Home) -> None:
    session = a_conversation(home)
    message = home.database.begin(session)
    questions = [{"question": "Which rounding?", "options": [{"label": "five cents"}]}, {"question": "Tips?"}]
    told = 'User has answered your questions: "Which rounding?"="five cents", "Tips?"="Unanswered".'
    home.database.call(
        message, "question", {"questions": questions}, output=told, metadata={"answers": [["five cents"], []]}
    )
    home.database.finish(message)
    home.read()
    turns = [turn for turn in home.streams()[f"opencode:{session}"] if "Which rounding?" in turn[1]]
    assert [kind for kind, _ in turns] == ["tool_call", "tool_result", "user"]
    assert turns[-1][1] == "> Which rounding?\nfive cents"
    (uuid,) = home.rows("select uuid from turns where text like '> Which%'")[0]
    assert "/" in uuid and not home.rows("select 1 from turns where uuid like '%/%' and kind <> 'user'")


def test_directory_title_and_tokens_are_those_of_the_session(home: Home) -> None:
    session = a_conversation(home)
    for _ in range(2):
        home.read()
    roots = home.rows("select distinct p.root from turns t join projects p on p.seq = t.project_seq order by p.root")
    assert [root for (root,) in roots] == [home.ferry, str(home.root / "quay")]
    assert home.rows(f"select title from sessions where id = 'opencode:{session}'") == [("Fares",)]
    used = f"select sum(input), sum(output), sum(cache_read) from usage u join sessions s on s.seq = u.session_seq where s.id = 'opencode:{session}'"
    assert home.rows(used) == [(500, 125, 200)]


def test_what_an_excluded_file_held_is_not_kept(home: Home) -> None:
    session = a_conversation(home)
    message = home.database.begin(session)
    home.database.call(message, "read", {"filePath": "docs/fares.md"}, output="All fares are cents.")
    home.database.finish(message)
    home.read(excludes=Excludes(files=("docs/**", "**/docs/**")))
    assert not any("All fares are cents" in text for (text,) in home.rows("select text from turns"))


def test_a_session_of_which_a_message_is_damaged_is_read_without_it(home: Home) -> None:
    data = home.database
    session = a_conversation(home)
    broken = data.answer(session, "Never seen.")
    data.rows.execute("update message set data = '{\"role\":' where id = ?", (broken,))
    data.answer(session, "Seen.")
    assert sum(report.bad_lines for report in home.read()) == 1
    texts = [text for _, text in home.streams()[f"opencode:{session}"]]
    assert "Seen." in texts and "Never seen." not in texts


def test_a_message_of_which_a_part_is_damaged_keeps_the_others(home: Home) -> None:
    data = home.database
    session = data.session(home.ferry)
    prompt = data.prompt(session, "Fares are cents.", "They are integers.")
    broken = data.part(prompt, {"type": "text", "text": "Never seen."})
    data.rows.execute("update part set data = '{\"type\":' where id = ?", (broken,))
    data.answer(session, "Noted.")
    assert sum(report.bad_lines for report in home.read()) == 1
    texts = [text for _, text in home.streams()[f"opencode:{session}"]]
    assert texts == ["Fares are cents.", "They are integers.", "Noted."]


def test_what_is_attached_is_not_read_and_takes_no_words_with_it(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_source, "MAX_LINE_BYTES", 50_000)
    data = home.database
    session = data.session(home.ferry)
    image = {"type": "file", "mime": "image/png", "url": "data:image/png;base64," + "A" * 30_000}
    data.prompt(session, "Print this chart.", more=(image, image))
    answer = data.begin(session)
    for _ in range(2):
        data.call(answer, "read", {"filePath": "chart.png"}, output="Image read", attachments=[image])
    data.finish(answer)
    assert not sum(report.bad_lines for report in home.read())
    home.check()
    data.prompt(session, "x" * 60_000, "Print that, too.")
    data.answer(session, "It is printed.")
    assert sum(report.bad_lines for report in home.read()) == 1
    assert [text for _, text in home.streams()[f"opencode:{session}"]][-2:] == ["Print that, too.", "It is printed."]


def test_what_was_cut_out_of_a_turn_is_given_back_from_the_database(home: Home) -> None:
    session = a_conversation(home)
    printed = "".join(f"line {number}\n" for number in range(4000))
    message = home.database.begin(session)
    for output in ("first", printed):
        home.database.call(message, "bash", {"command": "make list"}, output=output)
    home.database.finish(message)
    home.read()
    (seq,) = home.rows("select seq from turns where kind = 'tool_result' and text like 'line 0%'")[0]
    (turn,) = home.store.read(lambda rows: find_cut(rows, [seq]))
    sources = home.store.read(lambda rows: whole_text.find_sources(rows, turn, key=home.store.hash_key))
    reading = whole_text.read_whole(turn, sources, excludes=Excludes(), is_thorough=False)
    with pytest.raises(StopIteration) as ended:
        while True:
            next(reading)
    assert turn.text != printed and ended.value.value.strip() == printed.strip()


def beside(path: Path) -> dict[str, tuple[int, bytes]]:
    """Each file in the database's directory with when it was written, and its bytes; of the index of the log its size."""
    return {
        one.name: (one.stat().st_mtime_ns, one.read_bytes() if not one.name.endswith("-shm") else b"")
        for one in path.parent.iterdir()
    }


def test_a_database_is_read_without_a_change_to_it_or_beside_it(home: Home) -> None:
    a_conversation(home)
    path = home.database.path
    assert Path(f"{path}-wal").stat().st_size > 0, "a client is at work"
    written = beside(path)
    home.read()
    home.check()
    assert beside(path).keys() == written.keys()
    assert {name: data for name, (_, data) in beside(path).items()} == {
        name: data for name, (_, data) in written.items()
    }
    home.database.close()
    closed = beside(path)
    assert closed.keys() == {"opencode.db"}
    home.read()
    assert beside(path) == closed


def test_a_reading_holds_up_no_client_that_writes(home: Home) -> None:
    session = a_conversation(home)
    home.database.rows.execute("pragma busy_timeout = 0")
    pieces = 0
    with transcript_source.DatabaseSession.open(home.database.path / session, now=NOW) as opened:
        for _ in opened.read_pieces(0, lambda: False):
            pieces += 1
            home.database.prompt(session, "Written meanwhile.")
            home.database.answer(session, "So was this.")
            home.database.rows.execute("pragma wal_checkpoint(passive)").fetchall()
    assert pieces
    home.read()
    home.check()


def test_a_log_whose_index_is_missing_is_left_alone_and_said_so(home: Home, tmp_path: Path) -> None:
    a_conversation(home)
    copied = tmp_path / "copied"
    copied.mkdir()
    for name in ("opencode.db", "opencode.db-wal"):
        shutil.copyfile(home.database.path.parent / name, copied / name)
    (session,) = {one for (one,) in home.database.rows.execute("select id from session where parent_id is null")}
    with pytest.raises(OSError, match="the -shm to read them is missing"):
        home.tail(copied / "opencode.db" / session)
    assert latest_transcripts(copied / "opencode.db") == []
    assert sorted(one.name for one in copied.iterdir()) == ["opencode.db", "opencode.db-wal"]


def test_another_database_holds_no_transcripts(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as rows:
        rows.execute("create table message (id text)")
    rows.close()
    assert list(transcript_listing.list_transcripts(path)) == []


def test_a_session_is_known_by_its_first_line_and_its_place() -> None:
    opencode, kilo = (f'{{"database":"{name}.db","timestamp":"x"'.encode() for name in ("opencode-dev", "kilo"))
    assert (adapters.adapter_of_transcript(opencode).host, adapters.adapter_of_transcript(kilo).host) == (
        "opencode",
        "kilo",
    )
    assert adapters.locate_transcript("/d/opencode.db", "ses_1a") == ("/d/opencode.db", "ses_1a")
    assert (adapters.adapter_of_session("opencode:ses_1").host, adapters.adapter_of_session("kilo:ses_1").host) == (
        "opencode",
        "kilo",
    )
    assert transcript.read_titles("kilo", b'{"id":"s","root":"s","title":"New session - 2026-01-01"}') == {}


def at(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
