"""Pauses are spans of time that hold for good, whatever the order in which clocks and commands made them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import exclusions
from csmd.errors import BadInput, ConfigError
from csmd.exclusions import Pauses


def at(minute: int) -> str:
    return f"2026-05-04T{minute // 60:02d}:{minute % 60:02d}:00.000Z"


SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=6)


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_a_moment_is_in_a_pause_when_it_is_in_one_of_the_spans(
    rows: list[tuple[int, int]], one: int, other: int
) -> None:
    made = Pauses(tuple((at(begin), at(end)) for begin, end in rows))
    first, last = min(one, other), max(one, other)
    inside = {minute for begin, end in rows for minute in range(begin, end)}
    assert made.covers(at(one)) == (one in inside)
    assert made.touches(at(first), at(last)) == bool(inside & set(range(first, last + 1)))


@given(SPANS)
def test_what_is_written_is_read_back(rows: list[tuple[int, int]]) -> None:
    made = Pauses((*((at(begin), at(end)) for begin, end in rows), (at(70), "")))
    assert exclusions.parse_pauses(exclusions.written_pauses(made), where="x") == made


def test_a_pause_is_on_until_its_end_and_one_without_an_end_until_it_is_resumed() -> None:
    short, long = Pauses().begun(at(1), end=at(3)), Pauses().begun(at(1))
    assert [bool(short.current(at(minute))) for minute in (0, 1, 2, 3)] == [False, True, True, False]
    assert long.current(at(9999 // 60)) == (at(1), "")
    assert long.covers("9999-12-31T00:00:00.000Z") and not long.covers(at(0))
    assert long.ended(at(5)).spans == ((at(1), at(5)),) and short.ended(at(5)) == short


def test_pausing_again_goes_on_with_the_pause_that_is_on() -> None:
    assert Pauses().begun(at(1)).begun(at(2), end=at(9)).spans == ((at(1), at(9)),)
    assert Pauses().begun(at(1), end=at(2)).begun(at(5)).spans == ((at(1), at(2)), (at(5), ""))


def test_a_clock_that_was_set_back_loses_no_span() -> None:
    made = Pauses().begun(at(30), end=at(40)).begun(at(10), end=at(20)).begun(at(35))
    assert [made.covers(at(minute)) for minute in (5, 15, 25, 33, 50)] == [False, True, False, True, True]
    assert made.ended(at(7)).spans[-1] == (at(35), at(35))


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"pauses": 5}', b'{"pauses": [{"from": "x", "to": ""}]}', b'{"pauses": [{"from": 1}]}', b"\xff"],
)
def test_a_file_that_cannot_be_read_is_told_and_not_taken_for_no_pause(data: bytes) -> None:
    with pytest.raises(ConfigError, match="nothing was to be captured"):
        exclusions.parse_pauses(data, where="/home/pauses.json")


@pytest.mark.parametrize(
    ("typed", "seconds"), [("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("90s", 90), (" 5MIN ", 300)]
)
def test_a_length_of_time_is_typed_as_people_write_it(typed: str, seconds: int) -> None:
    assert exclusions.pause_seconds(typed) == seconds


@pytest.mark.parametrize("typed", ["", "2", "h", "two hours", "-1h", "0m", "400d", "1m2h", "9" * 400 + "d", "1.5h"])
def test_what_is_no_length_of_time_is_refused(typed: str) -> None:
    with pytest.raises(BadInput, match="no length of time"):
        exclusions.pause_seconds(typed)
