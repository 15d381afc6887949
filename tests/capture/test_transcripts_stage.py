"""Transcripts and hooks into a real store: every turn once, whatever grows, shrinks, breaks off or comes twice."""

from __future__ import annotations

import json
import os
import stat
import threading
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcript_home import latest_transcripts

from csmd.capture import ingest, transcript_listing, transcript_source, transcripts
from csmd.conversation import Event
from csmd.errors import BadInput
from csmd.hosts.claude import transcript
from csmd.store import cursors, files
from csmd.store.core import Store
from csmd.store.files import MAX_NOTES

NOW = "2026-06-01T00:00:00.000Z"
DATA = Path(__file__).resolve().parent.parent / "data" / "claude"


class Place:
    """A store on a real file, transcripts beside it, and what tests ask of the two."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = Store(root / "csmd.db", now=NOW)
        self.quarantine = root / "quarantine"
        self.path = root / "projects" / "-p" / "s1.jsonl"
        self.path.parent.mkdir(parents=True)

    def write(self, *lines: bytes, path: Path | None = None, mode: str = "ab") -> None:
        path = path or self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            file.write(b"".join(line + b"\n" for line in lines))

    def tail(self, path: Path | None = None, **more: Any) -> transcripts.ReadReport:
        more = {"now": lambda: NOW, "tool_limit": 8192, "quarantine": self.quarantine, **more}
        return transcripts.read_transcript(self.store, path or self.path, transcripts.ReadOptions(**more))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.store.read(lambda rows: list(rows.all(query)))

    def said(self, session: str = "s1") -> list[str]:
        """A conversation's texts in their order."""
        return [
            text for (text,) in self.rows(
                "select t.text from session_turn st join turns t on t.seq = st.turn_seq "
                f"join sessions s on s.seq = st.session_seq where s.id = '{session}' order by st.ordinal"
            )
        ]  # fmt: skip

    def uuids(self) -> list[str]:
        return [uuid for (uuid,) in self.rows("select uuid from turns order by seq")]

    def state(self, path: Path | None = None) -> cursors.FileState | None:
        return self.store.read(lambda rows: cursors.find_file_state(rows, str(path or self.path)))

    def notes(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_bytes()) for path in sorted(self.quarantine.glob("*"))]

    def hook(self, name: str, *, ident: str, at: str = "2026-01-02T03:04:05.000Z", **payload: Any) -> bool:
        """A hook's event, decoded and recorded as the daemon does; whether it was new."""
        body = json.dumps({"session_id": "s1", "cwd": "/p", "transcript_path": str(self.path), **payload}).encode()
        event, redacted = ingest.decode_event("claude", body, name=name, event_id=ident, at=at)
        assert event is not None
        return self.record(event, redacted)

    def record(self, event: Event, redacted: Counter[str]) -> bool:
        key = self.store.hash_key
        place = self.store.read(lambda rows: ingest.find_event_project(rows, event))
        return self.store.write(
            lambda rows: ingest.record_event(rows, event, redacted=redacted, key=key, now=NOW, place=place)
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.store.close()


def line(uuid: str, said: str = "", *, kind: str = "user", second: int = 0, **more: Any) -> bytes:
    message = {"role": kind, "content": [{"type": "text", "text": said or f"said {uuid}"}]}
    stamp = f"2026-01-02T03:{second // 60:02}:{second % 60:02}.000Z"
    value = {"parentUuid": None, "isSidechain": False, "type": kind, "message": message, "uuid": uuid}
    return json.dumps(
        {**value, "timestamp": stamp, "sessionId": "s1", "cwd": "/p", **more}, separators=(",", ":")
    ).encode()


def bookkeeping(size: int = 10) -> bytes:
    return b'{"type":"api-request","x":"' + b"x" * size + b'"}'


# Growing, shrinking, breaking off.


def test_a_growing_file_is_read_from_where_it_was_left(place: Place) -> None:
    place.write(line("u1"), bookkeeping())
    first = place.tail()
    assert (first.turns_new, first.bytes_read) == (1, place.path.stat().st_size)
    place.write(line("u2"), line("u3", kind="assistant"))
    second = place.tail()
    assert (second.turns_new, second.turns_known) == (2, 0)
    assert first.bytes_read + second.bytes_read == place.path.stat().st_size
    assert place.tail() == transcripts.ReadReport()
    assert place.said() == ["said u1", "said u2", "said u3"]


def test_the_last_line_waits_until_it_is_complete(place: Place) -> None:
    whole = line("u2", "zwölf " * 30)
    place.write(line("u1"))
    for border in (1, 100, len(whole) // 2, whole.index(b"}") + 1, len(whole) - 1):
        with place.path.open("ab") as file:
            file.write(whole[:border])
        report = place.tail()
        assert (report.turns_known, report.bad_lines) == (0, 0)
        assert place.said() == ["said u1"]
        size = place.path.stat().st_size - border
        assert place.state().position == size  # type: ignore[union-attr]
        os.truncate(place.path, size)
    place.write(whole)
    assert place.tail().turns_new == 1
    assert place.said() == ["said u1", ("zwölf " * 30).strip()]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cuts=st.lists(st.integers(0, 1500), max_size=6), read_bytes=st.sampled_from([1, 7, 64, 1 << 20]))
def test_however_the_file_grows_its_turns_are_the_same(tmp_path: Path, cuts: list[int], read_bytes: int) -> None:
    lines = [
        line("u1"),
        bookkeeping(),
        b"",
        line("u2", "größer"),
        b"not JSON",
        line("u3", kind="assistant"),
        line("u1"),
        line("u4"),
    ]
    data = b"".join(one + b"\n" for one in lines)
    root = tmp_path / os.urandom(8).hex()
    root.mkdir()
    place = Place(root)
    before = transcript_source.READ_BYTES
    transcript_source.READ_BYTES = read_bytes
    try:
        done = 0
        for border in [*sorted(min(cut, len(data)) for cut in cuts), len(data)]:
            with place.path.open("ab") as file:
                file.write(data[done:border])
            done = border
            place.tail()
        assert place.said() == ["said u1", "größer", "said u3", "said u4"]
        state = place.state()
        assert state is not None and (state.position, state.bad_lines) == (len(data), 1)
        assert [note["offset"] for note in place.notes()] == [data.index(b"not JSON")]
    finally:
        transcript_source.READ_BYTES = before
        place.store.close()


def test_a_last_line_that_is_whole_needs_no_newline(place: Place) -> None:
    place.write(line("u1"))
    with place.path.open("ab") as file:
        file.write(line("u2"))
    assert place.tail().turns_new == 1 + 1
    assert place.tail() == transcripts.ReadReport()
    with place.path.open("ab") as file:
        file.write(b"\n" + line("u3") + b"\n" + line("u4"))
    assert (place.tail().turns_new, place.said()) == (2, ["said u1", "said u2", "said u3", "said u4"])
    assert not place.notes()


def test_a_file_read_twice_adds_nothing(place: Place) -> None:
    place.write(*(line(f"u{n}") for n in range(50)))
    assert place.tail().turns_new == 50
    copy = place.path.with_name("copy.jsonl")
    copy.write_bytes(place.path.read_bytes())
    again = place.tail(copy)
    assert (again.turns_new, again.turns_known) == (0, 50)
    assert len(place.said()) == 50


def test_a_file_that_was_cut_off_and_written_anew_is_read_from_its_start(place: Place) -> None:
    place.write(*(line(f"u{n}") for n in range(20)))
    place.tail()
    place.write(line("u1"), line("v1"), mode="wb")
    assert (place.tail().turns_new, place.said()[-1], len(place.said())) == (1, "said v1", 21)


@pytest.mark.parametrize("lines", [1, 20])
def test_a_file_that_was_written_anew_and_is_longer_is_read_from_its_start(place: Place, lines: int) -> None:
    place.write(*(line(f"u{n}") for n in range(lines)))
    place.tail()
    place.write(*(line(f"v{n}", second=59) for n in range(lines + 5)), mode="wb")
    assert place.tail().turns_new == lines + 5
    assert len(place.said()) == lines * 2 + 5


def test_a_file_in_place_of_another_is_read_from_its_start_and_a_renamed_one_is_not(place: Place) -> None:
    place.write(*(line(f"u{n}") for n in range(20)))
    place.tail()
    other = place.path.with_suffix(".new")
    place.write(*(line(f"u{n}") for n in range(20)), line("u20"), path=other)
    other.replace(place.path)  # another inode that begins in the same way: the same transcript
    assert (place.tail().turns_new, len(place.said())) == (1, 21)
    place.write(*(line(f"w{n}") for n in range(30)), path=other)
    other.replace(place.path)
    assert (place.tail().turns_new, len(place.said())) == (30, 51)


def test_an_empty_file_and_one_without_turns_are_read_and_left(place: Place) -> None:
    place.path.touch()
    assert place.tail() == transcripts.ReadReport()
    place.write(bookkeeping(), b"", b"   ")
    assert place.tail().bytes_read == place.path.stat().st_size
    assert place.tail().bytes_read == 0
    info = place.path.stat()
    known = {str(place.path): (info.st_size, info.st_mtime_ns)}
    found = transcript_listing.stat_transcript(str(place.path))
    assert found is not None
    assert not transcript_listing.has_grown(found, known)
    assert transcript_listing.has_grown(found, {})
    assert transcript_listing.stat_transcript(str(place.path.with_name("gone"))) is None


def test_a_file_that_is_only_being_begun_waits_until_it_says_what_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"role": "user", "content": "Warmup"}
    warmup = line("u1", isSidechain=True, agentId="a1", message=said)
    place.path.touch()
    pieces_of = transcript_source.read_pieces

    def grown(file: Any, start: int, stop: Any) -> Any:
        place.path.write_bytes(warmup + b"\n")  # between the look at its beginning and the reading of its lines
        return pieces_of(file, start, stop)

    monkeypatch.setattr(transcript_source, "read_pieces", grown)
    for beginning in (b"", warmup[:20]):
        place.path.write_bytes(beginning)
        assert place.tail() == transcripts.ReadReport()
    monkeypatch.undo()
    place.path.write_bytes(warmup + b"\n")
    assert (place.tail().turns_new, place.said()) == (0, [])


def test_a_session_whose_file_begins_with_the_hosts_own_agent_is_read_without_it(place: Place) -> None:
    def spoken(uuid: str, content: str, **more: Any) -> bytes:
        return line(uuid, message={"role": "user", "content": content}, **more)

    place.write(spoken("u1", "Warmup", isSidechain=True), spoken("u2", "Ready.", isSidechain=True, parentUuid="u1"))
    assert (place.tail().turns_new, place.rows("select id from sessions")) == (0, [])
    place.write(spoken("u3", "fix the cart"), spoken("u4", "look for it", isSidechain=True))
    assert place.tail().turns_new == 2
    assert (place.said(), place.said("s1/sidechain")) == (["fix the cart"], ["look for it"])


@pytest.mark.invariant("Only the user becomes the user, and nothing leaves csmd's fence")
def test_a_prompt_in_a_sub_agents_file_is_the_assistants_even_where_its_line_has_no_mark(place: Place) -> None:
    folder = place.path.with_suffix("") / "subagents"
    unmarked, named = folder / "agent-a7be2f0.jsonl", folder / "agent-acompact-1.jsonl"
    place.write(line("u1", "look for it"), line("u2", "here", kind="assistant"), path=unmarked)
    place.write(line("u3", "sum it up", agentId="a9"), path=named)
    assert (place.tail(unmarked).turns_new, place.tail(named).turns_new) == (2, 1)
    assert (place.said("s1/a7be2f0"), place.said("s1/a9"), place.said()) == (["look for it", "here"], ["sum it up"], [])
    assert transcript.parse_agent_file("s1.jsonl") == ""


def test_blank_lines_at_the_end_move_the_cursor_too(place: Place) -> None:
    place.write(line("u1"))
    place.tail()
    place.write(b"", b"", b"  ")
    place.tail()
    assert place.state().position == place.path.stat().st_size  # type: ignore[union-attr]


def test_a_file_that_cannot_be_read_is_the_callers_to_know(place: Place) -> None:
    with pytest.raises(FileNotFoundError):
        place.tail()
    with pytest.raises(IsADirectoryError):
        place.tail(place.path.parent)


# What is malformed.


def test_a_malformed_line_is_noted_without_its_bytes_and_the_next_are_read(place: Place) -> None:
    secret = b"sk-ant-" + b"s3" * 30
    bad = [b'{"a": "' + secret, b"[" * 100_000, b"\xff\xfe\x00", b"[1]", secret]
    place.write(line("u1"), *bad, line("u2"))
    report = place.tail()
    assert (report.turns_new, report.bad_lines) == (2, len(bad))
    notes = place.notes()
    assert len(notes) == len(bad)
    offsets = {note["offset"]: note for note in notes}
    at = len(line("u1")) + 1
    for one in bad:
        assert offsets[at]["bytes"] == len(one) and offsets[at]["source"] == str(place.path) and offsets[at]["reason"]
        at += len(one) + 1
    for path in place.quarantine.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"s3s3" not in path.read_bytes()
    assert stat.S_IMODE(place.quarantine.stat().st_mode) == 0o700
    assert place.state().bad_lines == len(bad)  # type: ignore[union-attr]
    assert ("bad lines", len(bad)) in place.rows("select name, value from counters")
    place.write(b"}")
    place.tail()
    assert place.state().bad_lines == len(bad) + 1  # type: ignore[union-attr]


def test_thousands_of_malformed_lines_leave_a_few_notes_and_are_all_counted(place: Place) -> None:
    bad = [b"bad %d" % number for number in range(1000)]
    place.write(line("u1"), *bad, line("u2"))
    report = place.tail()
    assert (report.turns_new, report.bad_lines) == (2, 1000)
    noted = place.notes()
    (rest,) = (note for note in noted if "lines" in note)
    assert (len(noted), rest["lines"]) == (MAX_NOTES + 1, 1000 - MAX_NOTES)
    data = place.path.read_bytes()
    assert rest["first_offset"] == data.index(b"bad %d\n" % MAX_NOTES)
    assert rest["last_offset"] == data.index(b"bad 999\n")


def test_a_note_names_its_file_without_a_secret_in_its_path(place: Place) -> None:
    secret = "sk-ant-" + "k9" * 20
    path = place.path.with_name(f"{secret}.jsonl")
    place.write(b"bad", path=path)
    assert place.tail(path).bad_lines == 1
    (note,) = place.notes()
    assert secret not in note["source"] and note["source"].endswith("[redacted:anthropic-key].jsonl")
    assert place.tail(path) == transcripts.ReadReport(), "the cursor finds its file again"


@pytest.mark.parametrize("size", [transcript_source.MAX_LINE_BYTES + 1, 40 * 1024 * 1024])
def test_a_line_beyond_the_limit_is_passed_by_and_noted_once(place: Place, size: int) -> None:
    head = b'{"type":"user","x":"'
    place.write(line("u1"), head + b"x" * (size - len(head)), line("u2"), line("u3"))
    report = place.tail()
    assert (report.turns_new, report.bad_lines, place.said()) == (3, 1, ["said u1", "said u2", "said u3"])
    assert report.bytes_read == place.path.stat().st_size
    (note,) = place.notes()
    assert note["offset"] == len(line("u1")) + 1 and "beyond" in note["reason"]
    assert place.tail() == transcripts.ReadReport()


def test_a_line_without_an_end_is_never_held_as_a_whole(place: Place) -> None:
    place.write(line("u1"))
    with place.path.open("ab") as file:
        file.truncate(place.path.stat().st_size + 200 * 1024 * 1024)  # a hole: zeros that take no room
    tracemalloc.start()
    try:
        report = place.tail()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * transcript_source.MAX_LINE_BYTES
    assert (report.turns_new, report.bad_lines) == (1, 0)
    assert place.state().position == len(line("u1")) + 1  # type: ignore[union-attr]
    place.write(b"", line("u2"))
    assert place.tail().turns_new == 1
    assert (len(place.notes()), place.said()) == (1, ["said u1", "said u2"])


# Breaking off in the middle.


def test_what_was_read_before_a_crash_is_not_stored_twice(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcripts, "BATCH_TURNS", 10)
    place.write(*(line(f"u{n}") for n in range(35)))
    written = 0
    write = place.store.write

    def dies(run: Any) -> Any:
        nonlocal written
        if written == 2:
            raise KeyboardInterrupt
        written += 1
        return write(run)

    place.store.write = dies  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        place.tail()
    place.store.write = write  # type: ignore[method-assign]
    assert place.state() is None and len(place.said()) == 20  # two batches, and no cursor past them
    report = place.tail()
    assert (report.turns_new, report.turns_known) == (15, 20)
    assert place.said() == [f"said u{n}" for n in range(35)]


def test_the_cursor_moves_with_the_last_batch_or_not_at_all(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.write(line("u1"))
    place.write(bookkeeping())

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no cursor")

    with monkeypatch.context() as patched:
        patched.setattr(cursors, "save_file", fails)
        with pytest.raises(RuntimeError):
            place.tail()
    assert place.said() == [] and place.state() is None
    assert place.tail().turns_new == 1


def test_reading_stops_when_it_is_told_to_and_goes_on_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_source, "READ_BYTES", 1000)
    place.write(*(line(f"u{n}") for n in range(100)))
    answers = iter([False, False, False, True])
    first = place.tail(stop=lambda: next(answers))
    assert 0 < first.turns_new < 100
    assert first.bytes_read == place.state().position < place.path.stat().st_size  # type: ignore[union-attr]
    assert place.tail(stop=lambda: True) == transcripts.ReadReport()
    assert first.turns_new + place.tail().turns_new == 100
    assert place.said() == [f"said u{n}" for n in range(100)]


# Two sources, forks, sub-agents.


def test_a_hooks_prompt_becomes_the_transcripts(place: Place) -> None:
    assert place.hook("UserPromptSubmit", ident="e1", prompt="use pnpm")
    assert place.uuids() == ["hook:e1"]
    place.write(line("u1", "use pnpm"), line("u2", "done", kind="assistant", second=1))
    assert place.tail().turns_new == 2
    assert place.uuids() == ["u1", "u2"] and place.said() == ["use pnpm", "done"]
    assert not place.rows("select 1 from turns where provisional = 1")


def test_a_hooks_prompt_that_comes_after_the_transcript_adds_nothing(place: Place) -> None:
    place.write(line("u1", "use pnpm"), line("u2", "done", kind="assistant", second=1))
    place.tail()
    assert place.hook("UserPromptSubmit", ident="e1", prompt="use pnpm")
    assert place.hook("Stop", ident="e2", last_assistant_message="done")
    assert place.uuids() == ["u1", "u2"]
    assert place.rows("select settled_at from sessions") == [("2026-01-02T03:04:05.000Z",)]


def test_secrets_and_injections_do_not_keep_the_two_sources_apart(place: Place) -> None:
    said = f"key sk-ant-{'k9' * 20} <private>me</private> <csmd-recall note='x'>old</csmd-recall>ok"
    place.hook("UserPromptSubmit", ident="e1", prompt=said)
    place.write(line("u1", said))
    place.tail()
    assert place.said() == ["key [redacted:anthropic-key] [redacted:private-tag] ok"]
    amounts = dict(place.rows("select name, value from counters"))
    assert amounts["redacted anthropic-key"] == 2  # counted where each was met


def test_an_event_is_recorded_once_by_its_id(place: Place) -> None:
    assert place.hook("UserPromptSubmit", ident="e1", prompt="yes")
    assert not place.hook("UserPromptSubmit", ident="e1", prompt="yes", at="2026-01-02T09:00:00.000Z")
    assert place.said() == ["yes"]


def test_two_commands_that_report_one_event_within_two_seconds_are_one(place: Place) -> None:
    assert place.hook("UserPromptSubmit", ident="e1", prompt="yes", at="2026-01-02T03:04:05.000Z")
    assert not place.hook("UserPromptSubmit", ident="e2", prompt="yes", at="2026-01-02T03:04:06.900Z")
    assert place.said() == ["yes"]


def test_the_same_word_said_again_is_another_turn(place: Place) -> None:
    place.hook("UserPromptSubmit", ident="e1", prompt="yes", at="2026-01-02T03:04:05.000Z")
    place.hook("Stop", ident="e2", last_assistant_message="ok", at="2026-01-02T03:04:05.500Z")
    assert place.hook("UserPromptSubmit", ident="e3", prompt="yes", at="2026-01-02T03:04:06.000Z")
    assert place.hook("UserPromptSubmit", ident="e4", prompt="yes", at="2026-01-02T03:04:09.000Z")
    assert place.said() == ["yes", "ok", "yes", "yes"]
    place.write(
        line("u1", "yes", second=245), line("u2", "ok", kind="assistant", second=246), line("u3", "yes", second=247)
    )
    place.tail()
    assert sorted(place.uuids()) == ["hook:e4", "u1", "u2", "u3"]
    place.write(line("u4", "yes", second=250))
    place.tail()
    assert sorted(place.uuids()) == ["u1", "u2", "u3", "u4"]
    assert place.said() == ["yes", "ok", "yes", "yes"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(["yes", "no"]), min_size=1, max_size=5), st.data())
def test_in_whatever_order_the_two_sources_come_every_turn_is_there_once(
    tmp_path: Path, said: list[str], data: Any
) -> None:
    root = tmp_path / os.urandom(8).hex()
    root.mkdir()
    place = Place(root)
    try:
        order = data.draw(st.permutations(["hook"] * len(said) + ["line"] * len(said)))
        hooks = lines = 0
        for step in order:
            if step == "hook":
                place.hook(
                    "UserPromptSubmit", ident=f"e{hooks}", prompt=said[hooks], at=f"2026-01-02T03:{hooks:02}:00.000Z"
                )
                hooks += 1
            else:
                place.write(line(f"u{lines}", said[lines], second=lines * 60))
                lines += 1
                place.tail()
        assert sorted(place.uuids()) == [f"u{n}" for n in range(len(said))]
        assert Counter(place.said()) == Counter(said)
    finally:
        place.store.close()


def test_a_fork_lists_the_same_turns_without_storing_them_again(place: Place) -> None:
    shared = [("u1", "user"), ("u2", "assistant")]
    place.write(*(line(uuid, kind=kind) for uuid, kind in shared), line("u3"))
    fork = place.path.with_name("s2.jsonl")
    place.write(
        *(line(uuid, kind=kind, sessionId="s2") for uuid, kind in shared), line("v3", sessionId="s2"), path=fork
    )
    place.tail()
    report = place.tail(fork)
    assert (report.turns_new, report.turns_known) == (1, 2)
    assert place.said("s1") == ["said u1", "said u2", "said u3"]
    assert place.said("s2") == ["said u1", "said u2", "said v3"]
    assert len(place.uuids()) == 4


@pytest.mark.parametrize("name", ["agent-a1.jsonl", "s1/subagents/agent-a1.jsonl"])
def test_a_sub_agents_transcript_is_a_conversation_of_its_own_in_either_layout(place: Place, name: str) -> None:
    agent = place.path.parent / name
    aside = {"isSidechain": True, "agentId": "a1"}
    place.write(line("u1"))
    place.write(line("x1", "task", **aside), line("x2", "report", kind="assistant", **aside), path=agent)
    assert latest_transcripts(place.root / "projects") == sorted(
        [agent, place.path], key=lambda p: (-p.stat().st_mtime, str(p))
    )
    for path in latest_transcripts(place.root / "projects"):
        place.tail(path)
    assert place.said("s1") == ["said u1"]
    assert place.said("s1/a1") == ["task", "report"]
    assert place.rows("select id, parent, path from sessions order by id") == [
        ("s1", "", str(place.path)),
        ("s1/a1", "s1", ""),
    ]
    place.hook(
        "SubagentStop",
        ident="e1",
        agent_id="a1",
        agent_type="x",
        last_assistant_message="report",
        agent_transcript_path=str(agent),
    )
    assert place.said("s1/a1") == ["task", "report"]


def test_transcripts_are_found_below_a_root_the_latest_first_and_nothing_else(place: Place) -> None:
    root = place.root / "projects"
    for age, name in enumerate(["-p/s1.jsonl", "-p/s1/subagents/agent-b.jsonl", "-q/s2.jsonl"]):
        place.write(line("u1"), path=root / name)
        os.utime(root / name, (1_000_000 - age, 1_000_000 - age))
    for name in ("-p/memory/x.jsonl", "-p/s1/tool-results/x.jsonl", "-p/s1.json", "-p/s1.jsonl.bak"):
        place.write(b"{}", path=root / name)
    (root / "-p" / "gone.jsonl").symlink_to("nowhere")
    found = [str(path.relative_to(root)) for path in latest_transcripts(root)]
    assert found == ["-p/s1.jsonl", "-p/s1/subagents/agent-b.jsonl", "-q/s2.jsonl"]
    assert latest_transcripts(place.path) == [place.path]
    assert latest_transcripts(root / "nowhere") == []


def test_a_link_to_a_projects_directory_is_followed_once_and_never_in_a_circle(place: Place) -> None:
    root, shared = place.root / "projects", place.root / "shared" / "-shop"
    place.write(line("u1"), path=root / "-p" / "s1.jsonl")
    place.write(line("u2"), path=shared / "s2.jsonl")
    place.write(line("u3"), path=place.root / "s3.jsonl")
    (shared / "again").symlink_to(shared)
    for name, target in {
        "-a": shared, "-b": shared, "-c": shared.parent, "-d": root, "-e": root / "-p", "-f": place.root, "-g": root / "-g",
        "memory": place.root / "shared",
    }.items():  # fmt: skip
        (root / name).symlink_to(target)
    found = sorted(str(path.relative_to(root)) for path in latest_transcripts(root))
    assert found == ["-a/s2.jsonl", "-p/s1.jsonl"]


# Projects and titles.


def projects(place: Place) -> dict[str, str]:
    return dict(place.rows("select t.uuid, p.root from turns t join projects p on p.seq = t.project_seq"))


def test_a_turn_belongs_to_the_project_of_its_directory(place: Place) -> None:
    repository = place.root / "shop"
    (repository / ".git").mkdir(parents=True)
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    elsewhere = place.root / "notes"
    place.write(
        line("u1", cwd=str(repository)), line("u2", cwd=str(repository / "src")), line("u3", cwd=str(elsewhere)),
        line("u4", cwd=str(repository)), line("u5", cwd=""),
    )  # fmt: skip
    place.tail()
    own, other = str(repository), str(elsewhere)
    assert projects(place) == {"u1": own, "u2": own, "u3": other, "u4": own, "u5": own}
    assert place.rows("select p.root from sessions s join projects p on p.seq = s.project_seq") == [(own,)]


def test_a_session_that_moves_below_its_start_stays_in_its_project_however_it_is_read(place: Place) -> None:
    place.write(line("u1", cwd="/w/p"))
    place.tail()
    place.write(line("u2", cwd="/w/p/sub"), line("u3", cwd="/w/other"))
    place.tail()  # another call, another beginning: the start is the file's, not the piece's
    assert projects(place) == {"u1": "/w/p", "u2": "/w/p", "u3": "/w/other"}
    place.hook("UserPromptSubmit", ident="e1", prompt="from below", cwd="/w/p/sub/deep")
    assert projects(place)["hook:e1"] == "/w/p"


def test_a_line_without_a_directory_first_does_not_make_everything_one_project(place: Place) -> None:
    place.write(line("u1", cwd=None), line("u2", cwd="/w/p"), line("u3", cwd="/v"))
    place.tail()
    assert projects(place) == {"u1": "/w/p", "u2": "/w/p", "u3": "/v"}


def test_a_pipe_in_place_of_a_transcript_is_no_file_and_nobody_waits_for_it(place: Place) -> None:
    pipe = place.path.with_name("pipe.jsonl")
    os.mkfifo(pipe)
    assert ingest.read_start_directory(pipe) == ""
    assert place.hook("UserPromptSubmit", ident="e1", prompt="hello", cwd="/w/p", transcript_path=str(pipe))
    assert projects(place) == {"hook:e1": "/w/p"}
    with pytest.raises(OSError, match="not a regular file"):
        place.tail(pipe)


def test_the_writer_never_asks_the_disk_for_a_new_project(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def asks(name: str) -> Any:
        real = getattr(files, name)

        def ask(*values: Any) -> Any:
            asked.append(threading.current_thread().name)
            return real(*values)

        return ask

    for name in ("read_small", "file_stamp"):
        monkeypatch.setattr(files, name, asks(name))
    (place.root / "w" / ".git").mkdir(parents=True)
    (place.root / "w" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert place.hook("UserPromptSubmit", ident="e1", prompt="hello", cwd=str(place.root / "w"))
    assert asked and "csmd-writer" not in asked


def test_the_place_of_an_event_can_be_looked_up_before_it_is_written(place: Place) -> None:
    place.write(line("u1", cwd="/w/p"))

    def decoded(name: str, **more: Any) -> Event:
        payload = {"session_id": "s1", "cwd": "/w/p/sub", "transcript_path": str(place.path), **more}
        event, _ = ingest.decode_event("claude", json.dumps(payload).encode(), name=name, event_id=name, at=NOW)
        assert event is not None
        return event

    prompt = decoded("UserPromptSubmit", prompt="hello")
    found = place.store.read(lambda rows: ingest.find_event_project(rows, prompt))
    assert found is not None and found.root == "/w/p"
    assert place.store.read(lambda rows: ingest.find_event_project(rows, decoded("SessionStart"))) is None
    place.path.unlink()
    key = place.store.hash_key
    assert place.store.write(
        lambda rows: ingest.record_event(rows, prompt, redacted=Counter(), key=key, now=NOW, place=found)
    )
    assert projects(place) == {"hook:UserPromptSubmit": "/w/p"}


def test_a_title_that_came_before_anybody_spoke_is_the_sessions_when_somebody_does(place: Place) -> None:
    place.write(b'{"type":"custom-title","customTitle":"early","sessionId":"s1"}')
    place.tail()
    place.write(line("u1"))
    place.tail()
    assert place.rows("select title from sessions") == [("early",)]
    place.write(b'{"type":"custom-title","customTitle":"late","sessionId":"s1"}', line("u2"))
    place.tail()
    place.write(line("u3"))
    place.tail()
    assert place.rows("select title from sessions") == [("late",)]


def test_a_session_is_named_as_the_host_names_it_last(place: Place) -> None:
    place.write(
        line("u1"), b'{"type":"ai-title","aiTitle":"made up","sessionId":"s1"}', line("u2"),
        b'{"type":"custom-title","customTitle":"mine","sessionId":"s1"}',
    )  # fmt: skip
    place.tail()
    assert place.rows("select title from sessions") == [("mine",)]
    place.write(
        b'{"type":"custom-title","customTitle":"other \\ud800","sessionId":"s1"}',
        b'{"type":"ai-title","sessionId":"\\ud800","aiTitle":"x"}',
    )
    place.tail()
    assert place.rows("select title from sessions") == [("other ?",)]


def test_whatever_a_hook_sends_is_recorded_or_bad_input(place: Place) -> None:
    odd = "\ud800\0odd"
    names = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd")
    for number, name in enumerate(names):
        fields = (
            "session_id",
            "cwd",
            "prompt",
            "source",
            "trigger",
            "reason",
            "agent_id",
            "last_assistant_message",
            "transcript_path",
        )
        assert place.hook(name, ident=f"e{number}", **dict.fromkeys(fields, odd), agent_type="x")
    with pytest.raises(BadInput):
        place.hook("Stop", ident="e9", session_id="\0")


TOKEN = "sk-ant-" + "k9" * 20


def test_no_secret_reaches_the_columns_of_ids_and_names(place: Place) -> None:
    tool = {"type": "tool_use", "id": "t", "name": TOKEN, "input": {}}
    spoken = {"id": TOKEN, "role": "assistant", "model": TOKEN, "content": [{"type": "text", "text": "hello"}, tool]}
    place.write(
        line("u1", parentUuid=TOKEN, version=TOKEN), line("u2", kind="assistant", message=spoken),
        line(TOKEN), line("u3", sessionId=TOKEN), line("u4", isSidechain=True, agentId=TOKEN),
    )  # fmt: skip
    place.tail()
    for name in ("SessionStart", "UserPromptSubmit"):
        more = {"source": TOKEN, "reason": TOKEN, "trigger": TOKEN, "cwd": f"/{TOKEN}"}
        assert place.hook(name, ident=name, prompt="hook says hello", **more)
    with pytest.raises(BadInput, match="session_id"):
        place.hook("Stop", ident="e9", session_id=TOKEN)
    with pytest.raises(BadInput, match="agent_id"):
        place.hook("SubagentStop", ident="e8", agent_type="x", agent_id=TOKEN, last_assistant_message="done")
    tables = ("projects", "sessions", "turns", "events", "files")
    assert TOKEN not in repr([place.rows(f"select * from {table}") for table in tables])
    assert place.said() == ["said u1", "hello", "{}", "hook says hello"], "an agent's line is not its session's"


def test_no_secret_in_a_transcripts_directories_reaches_a_project(place: Place) -> None:
    place.write(line("u1", cwd=f"/w/{TOKEN}"), line("u2", cwd=f"/w/{TOKEN}/sub"))
    place.tail()
    assert place.hook("UserPromptSubmit", ident="e1", prompt="hello", cwd=f"/w/{TOKEN}/sub")
    assert set(projects(place).values()) == {"/w/[redacted:anthropic-key]"}


# Real sessions.


@pytest.mark.parametrize("version", ["2.0.77", "2.1.100", "2.1.197", "2.1.329"])
def test_the_samples_of_every_version_are_stored_once_from_both_sources(place: Place, version: str) -> None:
    paths = sorted(path for path in (DATA / version).glob("*.jsonl") if path.name != "hooks.jsonl")
    for path in paths:
        assert place.tail(path).bad_lines == 0
    before = place.rows("select uuid, text, kind from turns order by uuid")
    for number, body in enumerate((DATA / version / "hooks.jsonl").read_bytes().splitlines()):
        payload = json.loads(body)
        event, redacted = ingest.decode_event(
            "claude", body, name=payload["hook_event_name"], event_id=f"e{number}", at=NOW
        )
        if event is not None and place.rows(f"select 1 from sessions where id = '{event.session_id}'"):
            place.record(event, redacted)
    after = place.rows("select uuid, text, kind from turns where provisional = 0 order by uuid")
    assert after == before and before


# Rewritten, without times, in pieces, beyond its room.


def test_an_earlier_line_that_was_edited_in_place_is_stored_as_it_is_now(place: Place) -> None:
    place.write(line("u1", "use tabs"), *(line(f"x{n}") for n in range(20)), line("u2", "the end"))
    place.tail()
    data = place.path.read_bytes()
    place.path.write_bytes(data.replace(b"said x9", b"SAID y9"))  # the same size, the same inode
    os.utime(place.path, ns=(1, 1))
    found = transcript_listing.stat_transcript(str(place.path))
    assert found is not None and transcript_listing.has_grown(found, place.store.read(cursors.file_positions))
    assert place.tail().turns_new == 0
    assert "SAID y9" in place.said() and "said x9" not in place.said() and len(place.said()) == 22
    assert place.tail() == transcripts.ReadReport()
    longer = data.replace(b"the end", b"another end")  # edited near its end, and grown
    place.path.write_bytes(longer + line("u3") + b"\n")
    assert (place.tail().turns_new, place.said()[-2:]) == (1, ["another end", "said u3"])


def test_what_is_read_again_is_not_counted_again(place: Place) -> None:
    secret = "sk-ant-" + "k9" * 20
    title = {"type": "custom-title", "customTitle": f"about {secret}", "sessionId": "s1"}
    place.write(line("u1", f"key {secret}"), b"no JSON", json.dumps(title).encode(), line("u2"))
    first = place.tail()
    counted = place.rows("select name, value from counters order by name")
    assert dict(counted) == {"bad lines": 1, "redacted anthropic-key": 2} and first.redactions == 2
    data = place.path.read_bytes()
    place.path.unlink()
    place.path.write_bytes(data + line("u3") + b"\n")
    again = place.tail()
    assert (again.turns_new, again.redactions) == (1, 0)
    assert place.rows("select name, value from counters order by name") == counted
    assert place.state().bad_lines == 1  # type: ignore[union-attr]


def test_a_line_without_a_time_has_its_neighbours_or_its_files(place: Place) -> None:
    place.write(line("u1", timestamp=None), line("u2", second=7), line("u3", timestamp="soon"))
    place.tail()
    at = "2026-01-02T03:00:07.000Z"
    assert place.rows("select uuid, at from turns order by seq") == [("u1", at), ("u2", at), ("u3", at)]
    other = place.path.with_name("s2.jsonl")
    place.write(line("v1", timestamp=None, sessionId="s2"), path=other)
    os.utime(other, (1_700_000_000, 1_700_000_000))
    place.tail(other)
    assert place.rows("select at from turns where uuid = 'v1'") == [("2023-11-14T22:13:20.000Z",)]
    assert not place.rows("select 1 from activity where day < '2023'")


def test_a_long_transcript_is_read_in_as_many_calls_as_the_caller_wants(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_source, "READ_BYTES", 1000)
    place.write(*(line(f"u{n}") for n in range(30)))
    reports = [place.tail(most_pieces=1)]
    while reports[-1].more:
        reports.append(place.tail(most_pieces=1))
    assert len(reports) > 5 and sum(report.turns_new for report in reports) == 30
    assert sum(report.bytes_read for report in reports) == place.path.stat().st_size
    assert place.tail(most_pieces=1) == transcripts.ReadReport()


def test_two_writers_in_one_file_and_bytes_that_are_no_text_cost_no_turn(place: Place) -> None:
    place.write(
        line("u1"), line("v1", sessionId="s2"), line("u2").replace(b"said", b"s\xff\xfed"), line("v2", sessionId="s2"),
        line("u1"), line("u3"),
    )  # fmt: skip
    place.tail()
    assert place.said("s1") == ["said u1", "s\ufffd\ufffdd u2", "said u3"]
    assert place.said("s2") == ["said v1", "said v2"]


def test_a_session_beyond_its_room_is_stored_with_a_mark_and_once(place: Place) -> None:
    call = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "out " * 200}]}
    place.write(line("u1", "a" * 500), line("u2", message=call), line("u3", "b" * 450), line("u4", "c" * 60))
    limit = {"session_limit": 1000}
    assert place.tail(**limit).turns_new == 4
    mark = "[not kept: this session is beyond 0.001 MB; the transcript has it]"
    assert place.said() == ["a" * 500, mark, "b" * 450, mark]
    place.hook("UserPromptSubmit", ident="e1", prompt="c" * 60)
    assert len(place.said()) == 4, "a hook's report finds its turn by what was said, kept or not"
    assert ("turns not kept", 2) in place.rows("select name, value from counters")
    marked = "select 1 from passages p join turns t on t.seq = p.turn_seq where t.text like '[not kept%'"
    assert not place.rows(marked), "nobody searches for the mark"


@pytest.mark.parametrize("megabytes", [20, *([200] if os.environ.get("CSMD_LARGE") else [])])
def test_a_huge_transcript_is_read_in_bounded_memory(place: Place, megabytes: int) -> None:
    """With a line of 20 MB in the long form (CSMD_LARGE=1): what is held is pieces, however long the file."""
    filler = bookkeeping(1024 * 1024)
    with place.path.open("ab") as file:
        for number in range(megabytes):
            file.write(filler + b"\n" + line(f"u{number}") + b"\n")
        file.write(line("last", "x" * (20_000_000 if megabytes > 100 else 5_000_000)) + b"\n")
    before = resident()
    peak = 0
    reports = [place.tail(most_pieces=1)]
    while reports[-1].more:
        peak = max(peak, resident())
        reports.append(place.tail(most_pieces=1))
    assert sum(report.turns_new for report in reports) == megabytes + 1 == len(place.said())
    assert peak - before < 200_000_000


def resident() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)
