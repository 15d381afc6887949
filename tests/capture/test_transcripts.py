"""What the user has left out is not stored; where a growing file is read on, and how its bytes become lines."""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.capture import ingest, transcript_source, transcripts
from csmd.capture.transcript_source import HEAD_BYTES, find_resume_position, hash_head, is_json_object, matches_head
from csmd.capture.turn_filter import fill_times, find_spans
from csmd.conversation import Turn
from csmd.errors import BadInput
from csmd.exclusions import Excludes
from csmd.json_fields import EPOCH
from csmd.pauses import Pauses
from csmd.store import activity, files
from csmd.store.core import Store
from csmd.store.cursors import FileState
from csmd.vocabulary import OFF_MARK

NOW = "2026-06-01T00:00:00.000Z"


def at(minute: int) -> str:
    return f"2026-05-{4 + minute // 1440:02d}T{minute // 60 % 24:02d}:{minute % 60:02d}:00.000Z"


class World:
    """A session, the pauses of its user, and a store that hears of it from hooks and the transcript."""

    def __init__(self, root: Path) -> None:
        self.store = Store(root / "csmd.db", now=NOW)
        self.path = root / "projects" / "-p" / "s1.jsonl"
        self.path.parent.mkdir(parents=True)
        self.quarantine = root / "quarantine"
        self.pauses = Pauses()
        self.excludes = Excludes(pauses=lambda: self.pauses)

    def write(self, *lines: dict[str, Any], anew: bool = False) -> None:
        if anew:
            self.path.unlink()
        with self.path.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))

    def tail(self, **more: Any) -> Any:
        more = {
            "now": lambda: NOW,
            "tool_limit": 8192,
            "quarantine": self.quarantine,
            "excludes": self.excludes,
            **more,
        }
        return transcripts.read_transcript(self.store, self.path, transcripts.ReadOptions(**more))

    def hook(self, name: str, said: str, when: str, ident: str) -> bool:
        """An event as the daemon takes it in, from its socket or from the spool; whether anything was stored."""
        field = "prompt" if name == "UserPromptSubmit" else "last_assistant_message"
        payload = {"session_id": "s1", "cwd": "/p", "transcript_path": str(self.path), field: said}
        found = ingest.decode_permitted(
            "claude", json.dumps(payload).encode(), self.excludes, name=name, event_id=ident, at=when
        )
        assert not isinstance(found, BadInput)
        event, redacted = found
        if event is None:
            return False
        place = self.store.read(lambda rows: ingest.find_event_project(rows, event))
        key = self.store.hash_key
        return self.store.write(
            lambda rows: ingest.record_event(rows, event, redacted=redacted, key=key, now=NOW, place=place)
        )

    def said(self) -> list[str]:
        return [
            text for (text,) in self.store.read(lambda rows: rows.all(
                "select t.text from session_turn st join turns t on t.seq = st.turn_seq order by st.ordinal"))
        ]  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.store.close()


def line(kind: str, said: str, when: str, uuid: str, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": said}
    if kind == "assistant":
        message = {"id": f"m-{uuid}", "role": kind, "content": [{"type": "text", "text": said}]}
    return {
        "type": kind, "uuid": uuid, "sessionId": "s1", "cwd": "/p", "timestamp": when, "version": "2.1.0",
        "message": message, **more,
    }  # fmt: skip


SAY = st.tuples(st.just("say"), st.sampled_from(["now", "late", "never"]), st.booleans())
PAUSE = st.tuples(st.just("pause"), st.sampled_from([0, 1, 2, 5]), st.booleans())
OTHER = st.tuples(st.sampled_from(["resume", "reread", "later"]), st.just(0), st.booleans())


@pytest.mark.invariant(
    "What was said in a pause is stored by no way, then or later; all else is, once and in order; nobody is told anything meanwhile"
)
@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(SAY, SAY, PAUSE, OTHER), max_size=25))
def test_in_any_interleaving_what_is_stored_is_what_was_said_outside_of_the_pauses(
    steps: list[tuple[str, Any, bool]],
) -> None:
    root = Path(tempfile.mkdtemp())
    world = World(root)
    lines: list[dict[str, Any]] = []
    reports: list[tuple[str, str, str, str]] = []
    late: list[tuple[str, str, str, str]] = []
    expected: list[str] = []
    try:
        for minute, (what, how, look) in enumerate(steps):
            now = at(minute)
            if what == "say":
                user = len(lines) % 2 == 0
                words = "go on" if user and minute % 3 == 0 else f"the bird number {minute} sings"
                made = line("user" if user else "assistant", words, now, f"u{minute}")
                lines.append(made)
                world.write(made)
                if not world.pauses.covers(now):
                    expected.append(words)
                report = ("UserPromptSubmit" if user else "Stop", words, now, f"e{minute}")
                reports.append(report)
                if how == "now":
                    world.hook(*report)
                elif how == "late":
                    late.append(report)
            elif what == "pause":
                world.pauses = world.pauses.begin(now, end=at(minute + how) if how else "")
            elif what == "resume":
                world.pauses = world.pauses.end(now)
            elif what == "later":  # the spool is taken in
                for report in late:
                    world.hook(*report)
                late.clear()
            elif lines:  # the host has written the file anew
                world.write(*lines, anew=True)
            if look and world.path.exists():
                world.tail()
            stored = world.said()
            assert [words for words in stored if words not in expected] == []
        for report in late:
            world.hook(*report)
        if lines:
            world.tail()
            assert world.said() == expected
            world.write(*lines, anew=True)
            world.tail()
            for name, words, when, ident in reports:
                world.hook(name, words, when, ident)
            assert world.said() == expected
        # What is not stored is nowhere: no title, no session that only was paused.
        sessions = world.store.read(lambda rows: rows.value("select count(*) from sessions"))
        assert sessions == bool(expected)
    finally:
        world.store.close()
        shutil.rmtree(root)


def test_a_pause_that_is_chosen_later_takes_nothing_away(world: World) -> None:
    world.write(line("user", "the heron waits", at(1), "u1"))
    world.tail()
    world.pauses = Pauses().begin(at(0))
    world.write(line("user", "the heron waits", at(1), "u1"), anew=True)
    world.tail()
    assert world.said() == ["the heron waits"]


def test_what_an_import_of_another_tree_brings_is_judged_by_its_times_too(world: World) -> None:
    world.pauses = Pauses(((at(2), at(4)),))
    copy = world.path.with_name("elsewhere.jsonl")
    copy.write_text(
        "".join(json.dumps(line("user", f"bird {n} sings", at(n), f"x{n}", sessionId="s9")) + "\n" for n in range(6))
    )
    world.path = copy
    world.tail()
    assert world.said() == [f"bird {n} sings" for n in (0, 1, 4, 5)]
    assert world.store.read(activity.read_counters)["paused turns"] == 2


def turn(when: str) -> Turn:
    return Turn(uuid="u", session_id="s", kind="user", text="x", at=when)


@pytest.mark.parametrize(
    ("times", "spans"),
    [
        ([1, 2], [(1, 1), (2, 2)]),
        ([1, None, None, 4], [(1, 1), (1, 4), (1, 4), (4, 4)]),
        ([None, 3], [(3, 3), (3, 3)]),
        ([3, None], [(3, 3), (3, 3)]),
        ([None], [(9, 9)]),
        ([5, None, 2], [(5, 5), (2, 5), (2, 2)]),
    ],
)
def test_a_turn_without_a_time_was_said_between_its_neighbours(
    times: list[int | None], spans: list[tuple[int, int]]
) -> None:
    turns = [turn(EPOCH if one is None else at(one)) for one in times]
    assert find_spans(turns, at(9)) == [(at(first), at(last)) for first, last in spans]


def test_a_turn_without_a_time_is_left_out_when_a_pause_lies_around_it(world: World) -> None:
    world.pauses = Pauses(((at(2), at(4)),))
    world.write(
        line("user", "one sings", at(1), "u1"), line("user", "two sings", "", "u2"),
        line("user", "five sings", at(5), "u5"), line("user", "six sings", "nonsense", "u6"),
    )  # fmt: skip
    world.tail()
    assert world.said() == ["one sings", "five sings", "six sings"]


def title(said: str, kind: str = "ai") -> dict[str, Any]:
    return {"type": f"{kind}-title", f"{kind}Title": said, "sessionId": "s1"}


def titles(world: World) -> list[str]:
    return [one for (one,) in world.store.read(lambda rows: rows.all("select title from sessions"))]


def test_a_title_goes_with_the_turn_before_it(world: World) -> None:
    world.pauses = Pauses(((at(2), at(4)),))
    world.write(line("user", "one sings", at(1), "u1"), title("about one"))
    world.tail()
    world.write(line("user", "two sings", at(2), "u2"), title("about the secret"))
    world.tail()
    world.write(title("about the secret"))
    world.tail()
    assert titles(world) == ["about one"]
    world.write(line("user", "five sings", at(5), "u5"), title("about five"))
    world.tail()
    assert titles(world) == ["about five"]


def test_a_conversation_that_began_in_a_pause_never_gets_a_title(world: World) -> None:
    world.pauses = Pauses(((at(0), at(4)),))
    world.write(line("user", "one sings", at(1), "u1"), title("the secret"), line("user", "five sings", at(5), "u5"))
    world.tail()
    world.write(title("the secret"))
    world.tail()
    assert (world.said(), titles(world)) == (["five sings"], [""])


@pytest.mark.invariant(
    "What was said in a pause is stored by no way, then or later; all else is, once and in order; nobody is told anything meanwhile"
)
def test_a_call_that_writes_a_transcript_is_noted_in_a_pause_too(world: World) -> None:
    world.pauses = Pauses(((at(0), at(4)),))
    forged = f"{world.path.parent}/s7.jsonl"
    call = line("assistant", "", at(1), "u1")
    given = {"file_path": forged, "content": '{"type": "user"}'}
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "Write", "input": given}]
    world.write(call)
    world.tail()
    assert world.said() == []
    assert world.store.read(lambda rows: rows.value("select count(*) from tombstones where kind = 'tampered'")) == 1


def test_nothing_of_an_event_in_a_pause_is_looked_at(world: World) -> None:
    world.pauses = Pauses(((at(0), at(4)),))
    found = ingest.decode_permitted("claude", b"{ broken", world.excludes, name="Stop", event_id="e", at=at(1))
    assert found == (None, {"paused events": 1})
    assert isinstance(
        ingest.decode_permitted("claude", b"{ broken", world.excludes, name="Stop", event_id="e", at=at(5)), BadInput
    )


# --- .csmd-off


def test_the_mark_counts_for_its_directory_and_those_below(tmp_path: Path) -> None:
    inner = tmp_path / "clients" / "a" / "src"
    inner.mkdir(parents=True)
    assert not files.has_off_mark(str(inner))
    (tmp_path / "clients" / OFF_MARK).touch()
    assert (
        files.has_off_mark(str(inner))
        and files.has_off_mark(str(tmp_path / "clients"))
        and files.has_off_mark(f"{inner}/gone/deeper")
    )
    assert not files.has_off_mark(str(tmp_path)) and not files.has_off_mark("clients/a") and not files.has_off_mark("")


def marked(world: World, root: Path) -> tuple[Path, Path]:
    """A project and a directory of it that is marked; the world asks the disk."""
    inner = root / "work" / "secret"
    inner.mkdir(parents=True)
    world.excludes = Excludes(is_marked=files.has_off_mark)
    mark = inner / OFF_MARK
    mark.touch()
    return inner, mark


@pytest.mark.invariant("What is marked with `.csmd-off` stays out when the mark goes")
def test_a_session_that_began_where_the_mark_lies_is_left_out_and_stays_so_when_the_mark_goes(
    world: World, tmp_path: Path
) -> None:
    inner, mark = marked(world, tmp_path)
    world.write(line("user", "one sings", at(1), "u1", cwd=str(inner)), title("about one"))
    assert world.tail().excluded
    mark.unlink()
    world.write(line("user", "two sings", at(2), "u2", cwd=str(inner)))
    assert not world.tail().excluded
    assert world.said() == ["two sings"]
    mark.touch()
    world.write(line("user", "three sings", at(3), "u3", cwd=str(inner)))
    world.tail()
    assert world.said() == ["two sings"]


def test_a_session_that_wanders_is_left_out_as_long_as_it_is_there(world: World, tmp_path: Path) -> None:
    inner, _ = marked(world, tmp_path)
    outer = str(tmp_path / "work")
    world.write(
        line("user", "one sings", at(1), "u1", cwd=outer), line("user", "two sings", at(2), "u2", cwd=str(inner)),
        line("user", "three sings", at(3), "u3", cwd=outer),
    )  # fmt: skip
    world.tail()
    assert world.said() == ["one sings", "three sings"]


def test_the_mark_in_the_main_checkout_counts_for_its_worktrees(world: World, tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    data = main / ".git" / "worktrees" / "tree"
    data.mkdir(parents=True)
    tree.mkdir()
    (main / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tree / ".git").write_text(f"gitdir: {data}\n")
    (data / "commondir").write_text("../..\n")
    (main / OFF_MARK).touch()
    world.excludes = Excludes(is_marked=files.has_off_mark)
    world.write(line("user", "one sings", at(1), "u1", cwd=str(tree)))
    assert world.tail().excluded and world.said() == []


def test_an_event_from_where_the_mark_lies_is_dropped_and_counted(world: World, tmp_path: Path) -> None:
    inner, mark = marked(world, tmp_path)
    payload = json.dumps({"session_id": "s1", "cwd": str(inner), "prompt": "x"}).encode()

    def decode() -> Any:
        return ingest.decode_permitted(
            "claude", payload, world.excludes, name="UserPromptSubmit", event_id="e", at=at(1)
        )

    assert decode() == (None, {ingest.EXCLUDED_EVENTS: 1})
    mark.unlink()
    assert decode()[0] is not None


def test_each_directory_is_asked_about_once_in_a_reading(world: World) -> None:
    asked: list[str] = []

    def is_off(folder: str) -> bool:
        asked.append(folder)
        return False

    world.excludes = Excludes(is_marked=is_off)
    world.write(*(line("user", f"bird {n} sings", at(n), f"u{n}", cwd=f"/p/{n % 2}") for n in range(40)))
    world.tail()
    assert len(asked) < 10 and len(world.said()) == 40


# --- Where a growing file is read on, and how its bytes become lines; pure functions.


LONG = bytes(range(256)) * 8
OTHER_PLACE = LONG[1:] + b"x"
SHORT = b'{"type":"mode"}\n'


def known(position: int, head: bytes, *, inode: int = 0, **more: Any) -> FileState:
    return FileState(path="t", device=0, inode=inode, position=position, head=hash_head(head), **more)


# (what is remembered, size now, beginning now, what else is known now) -> (where, why)
TABLE: list[tuple[str, FileState | None, int, bytes, dict[str, Any], int, str]] = [
    ("never seen", None, 100, LONG, {}, 0, "new"),
    ("as it was", known(2048, LONG), 2048, LONG, {}, 2048, "unchanged"),
    ("grown", known(2048, LONG), 4000, LONG, {}, 2048, "grown"),
    ("its last line not complete yet", known(2000, LONG), 2048, LONG, {}, 2000, "grown"),
    ("shrunk", known(2048, LONG), 2047, LONG, {}, 0, "shrunk"),
    ("emptied", known(2048, LONG), 0, b"", {}, 0, "shrunk"),
    ("replaced by a longer one", known(2048, LONG), 9000, OTHER_PLACE, {}, 0, "replaced"),
    ("replaced by one of the same size", known(2048, LONG), 2048, OTHER_PLACE, {}, 0, "replaced"),
    ("short, then grown", known(16, SHORT), 2048, SHORT + LONG, {}, 16, "grown"),
    ("short, then replaced by a longer one", known(16, SHORT), 2048, LONG, {}, 0, "replaced"),
    ("short, then replaced by one as long", known(16, SHORT), 16, OTHER_PLACE[:16], {}, 0, "replaced"),
    ("short, as it was", known(16, SHORT), 16, SHORT, {}, 16, "unchanged"),
    ("seen when it was empty", known(0, b""), 16, SHORT, {}, 0, "grown"),
    ("seen when it was empty, and still is", known(0, b""), 0, b"", {}, 0, "unchanged"),
    ("another inode", known(2048, LONG, inode=1), 4000, LONG, {"inode": 2}, 0, "replaced"),
    ("the same inode", known(2048, LONG, inode=1), 4000, LONG, {"inode": 1}, 2048, "grown"),
    ("written to and not grown", known(2048, LONG, mtime_ns=5), 2048, LONG, {"mtime_ns": 6}, 0, "rewritten"),
    ("written to and grown", known(2048, LONG, mtime_ns=5), 4000, LONG, {"mtime_ns": 6}, 2048, "grown"),
    ("grown behind another end", known(2048, LONG, foot="a:1"), 4000, LONG, {"foot": "b:1"}, 0, "rewritten"),
    ("grown behind the same end", known(2048, LONG, foot="a:1"), 4000, LONG, {"foot": "a:1"}, 2048, "grown"),
]


@pytest.mark.parametrize(
    ("name", "before", "size", "beginning", "now", "start", "reason"), TABLE, ids=lambda v: str(v)[:30]
)
def test_the_state_of_the_file_decides_where_it_is_read_on(
    name: str, before: FileState | None, size: int, beginning: bytes, now: dict[str, Any], start: int, reason: str
) -> None:
    assert find_resume_position(before, size=size, beginning=beginning, **now) == (start, reason), name


def test_a_turn_without_a_time_has_its_neighbours() -> None:
    def times(*at: str) -> list[str]:
        turns = [Turn(uuid=f"u{n}", session_id="s", kind="user", text="", at=one) for n, one in enumerate(at)]
        return [turn.at for turn in fill_times(turns, "file")]

    assert times("a", EPOCH, "b", EPOCH) == ["a", "a", "b", "b"]
    assert times(EPOCH, "a") == ["a", "a"]
    assert times(EPOCH, EPOCH) == ["file", "file"]
    assert times() == []


@given(st.binary(max_size=3000), st.binary(max_size=3000))
def test_a_head_holds_for_everything_that_is_appended_and_for_nothing_that_begins_otherwise(
    data: bytes, more: bytes
) -> None:
    head = hash_head(data)
    assert matches_head(head, data) and matches_head(head, data + more)
    first = data[:HEAD_BYTES]
    assert matches_head(head, more) == (more[: len(first)] == first)


@pytest.mark.parametrize("head", ["x", "x:", "x:y", ":", ":5", "0123456789abcdef", "0123456789abcdef:99999999999"])
def test_a_head_of_another_form_means_another_file(head: str) -> None:
    assert not matches_head(head, LONG)


def lines_in(data: bytes, position: int = 0) -> tuple[list[tuple[int, bytes | None]], int]:
    """The lines from a position on with their offsets, and the offset after the last one."""
    found = list(transcript_source.read_pieces(io.BytesIO(data), position, lambda: False))
    return [line for lines, _ in found for line in lines], found[-1][1] if found else position


def test_lines_stand_at_their_offsets_and_the_rest_stays() -> None:
    data = b'{"a":1}\n\n {"b":2} \r\n   \nrest'
    assert lines_in(data) == ([(0, b'{"a":1}'), (9, b' {"b":2} \r')], 24)
    assert lines_in(data, 8) == ([(9, b' {"b":2} \r')], 24)
    assert lines_in(b"no end") == ([], 0)
    assert lines_in(b'\n{"an":"end"}') == ([(1, b'{"an":"end"}')], 13)
    assert lines_in(b"") == ([], 0)
    assert lines_in(b"\n") == ([], 1)
    assert lines_in("ein\u2028wort\x0b\x85\n".encode()) == ([(0, "ein\u2028wort\x0b\x85".encode())], 14)


@given(st.lists(st.sampled_from([b"\n", b"{}", b" ", b"\r", b"\xc3", b"\xa4", b"\x00"]) | st.binary(max_size=5), max_size=60),
       st.lists(st.integers(0, 200), max_size=12), st.integers(1, 50), st.integers(4, 50))  # fmt: skip
def test_however_a_file_grows_its_lines_and_offsets_are_the_same(
    parts: list[bytes], sizes: list[int], piece: int, limit: int
) -> None:
    """Read again at each size, in pieces, with lines that are too long."""
    data = b"".join(part for part in parts if b"}" not in part) + b"\n"
    expected: list[tuple[int, bytes | None]] = []
    for match in re.finditer(rb"[^\n]*\n", data):
        line = match.group()[:-1]
        if line.strip() or len(line) > limit:
            expected.append((match.start(), line if len(line) <= limit else None))
    found: list[tuple[int, bytes | None]] = []
    position = 0
    with mock.patch.multiple(transcript_source, READ_BYTES=piece, MAX_LINE_BYTES=limit):
        for size in [*sorted(sizes), len(data)]:
            lines, position = lines_in(data[:size], position)
            found += lines
    assert (found, position) == (expected, len(data))


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.text(max_size=8),
        st.text(max_size=8) | st.lists(st.dictionaries(st.text(max_size=3), st.integers()), max_size=2),
        max_size=3,
    )
)
def test_an_object_is_whole_at_its_end_and_never_before(value: dict[str, Any]) -> None:
    line = json.dumps(value, ensure_ascii=False).encode()
    assert [border for border in range(len(line) + 1) if is_json_object(line[:border])] == [len(line)]
    assert is_json_object(line + b"\r") and not is_json_object(b"[" + line) and not is_json_object(b"")


def test_the_limit_of_a_line_is_no_less_than_what_the_client_writes() -> None:
    assert transcript_source.MAX_LINE_BYTES >= 32 * 1024 * 1024
