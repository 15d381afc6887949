"""Where a growing file is read on, and how its bytes become lines; pure functions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.capture import transcripts
from csmd.capture.transcripts import (
    HEAD_BYTES,
    head_of,
    is_head_of,
    is_whole,
    split_lines,
    where_to_start,
    with_times,
)
from csmd.hosts.adapter import EPOCH
from csmd.model import Turn
from csmd.store.cursors import FileState

LONG = bytes(range(256)) * 8
OTHER = LONG[1:] + b"x"
SHORT = b'{"type":"mode"}\n'


def known(position: int, head: bytes, *, inode: int = 0, **more: Any) -> FileState:
    return FileState(path="t", device=0, inode=inode, position=position, head=head_of(head), **more)


# (what is remembered, size now, beginning now, what else is known now) -> (where, why)
TABLE: list[tuple[str, FileState | None, int, bytes, dict[str, Any], int, str]] = [
    ("never seen", None, 100, LONG, {}, 0, "new"),
    ("as it was", known(2048, LONG), 2048, LONG, {}, 2048, "unchanged"),
    ("grown", known(2048, LONG), 4000, LONG, {}, 2048, "grown"),
    ("its last line not complete yet", known(2000, LONG), 2048, LONG, {}, 2000, "grown"),
    ("shrunk", known(2048, LONG), 2047, LONG, {}, 0, "shrunk"),
    ("emptied", known(2048, LONG), 0, b"", {}, 0, "shrunk"),
    ("replaced by a longer one", known(2048, LONG), 9000, OTHER, {}, 0, "replaced"),
    ("replaced by one of the same size", known(2048, LONG), 2048, OTHER, {}, 0, "replaced"),
    ("short, then grown", known(16, SHORT), 2048, SHORT + LONG, {}, 16, "grown"),
    ("short, then replaced by a longer one", known(16, SHORT), 2048, LONG, {}, 0, "replaced"),
    ("short, then replaced by one as long", known(16, SHORT), 16, OTHER[:16], {}, 0, "replaced"),
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
    assert where_to_start(before, size=size, beginning=beginning, **now) == (start, reason), name


def test_a_turn_without_a_time_has_its_neighbours() -> None:
    def times(*at: str) -> list[str]:
        turns = [Turn(uuid=f"u{n}", session_id="s", kind="user", text="", at=one) for n, one in enumerate(at)]
        return [turn.at for turn in with_times(turns, "file")]

    assert times("a", EPOCH, "b", EPOCH) == ["a", "a", "b", "b"]
    assert times(EPOCH, "a") == ["a", "a"]
    assert times(EPOCH, EPOCH) == ["file", "file"]
    assert times() == []


@given(st.binary(max_size=3000), st.binary(max_size=3000))
def test_a_head_holds_for_everything_that_is_appended_and_for_nothing_that_begins_otherwise(
    data: bytes, more: bytes
) -> None:
    head = head_of(data)
    assert is_head_of(head, data) and is_head_of(head, data + more)
    first = data[:HEAD_BYTES]
    assert is_head_of(head, more) == (more[: len(first)] == first)


@pytest.mark.parametrize("head", ["x", "x:", "x:y", ":", ":5", "0123456789abcdef", "0123456789abcdef:99999999999"])
def test_a_head_of_another_form_means_another_file(head: str) -> None:
    assert not is_head_of(head, LONG)


def test_lines_stand_at_their_offsets_and_the_rest_stays() -> None:
    assert split_lines(b'{"a":1}\n\n {"b":2} \r\n   \nrest', at=100) == (
        [(100, b'{"a":1}'), (109, b' {"b":2} \r')],
        124,
    )
    assert split_lines(b"no end", at=7) == ([], 7)
    assert split_lines(b"", at=7) == ([], 7)
    assert split_lines(b"\n", at=7) == ([], 8)
    assert split_lines("ein\u2028wort\x0b\x85\n".encode(), at=0) == ([(0, "ein\u2028wort\x0b\x85".encode())], 14)


@given(st.lists(st.sampled_from([b"\n", b"{}", b" ", b"\r", b"\xc3", b"\xa4", b"\x00"]) | st.binary(max_size=5), max_size=60),
       st.lists(st.integers(0, 200), max_size=12), st.integers(0, 10**9))  # fmt: skip
def test_however_a_file_is_cut_its_lines_and_offsets_are_the_same(parts: list[bytes], cuts: list[int], at: int) -> None:
    data = b"".join(parts)
    whole, end = split_lines(data, at=at)
    found: list[tuple[int, bytes]] = []
    rest, position = b"", at
    borders = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    for begin, stop in zip([0, *borders], borders, strict=False):
        lines, after = split_lines(rest + data[begin:stop], at=position)
        rest = (rest + data[begin:stop])[after - position :]
        position = after
        found += lines
    assert (found, position) == (whole, end)
    assert rest == data[end - at :] and b"\n" not in rest
    for offset, line in whole:
        assert data[offset - at : offset - at + len(line)] == line and line.strip()


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
    assert [border for border in range(len(line) + 1) if is_whole(line[:border])] == [len(line)]
    assert is_whole(line + b"\r") and not is_whole(b"[" + line) and not is_whole(b"")


def test_the_limit_of_a_line_is_no_less_than_what_the_client_writes() -> None:
    assert transcripts.MAX_LINE_BYTES >= 32 * 1024 * 1024
