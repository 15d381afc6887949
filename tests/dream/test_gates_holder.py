"""When a dream lock is stale: on one host by its holder's process, on another by its heartbeat."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.daemon.context import iso
from csmd.dream import gates as holders
from csmd.dream.gates import Holder

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HELD = Holder(host="here", boot="b1", pid=41, start=1000.0, beat=iso(NOW - timedelta(minutes=3)), token="t")
OLD = iso(NOW - timedelta(days=3))


@pytest.mark.invariant("A dream lock is taken over when its holder is dead or silent, not before, and by one alone")
@pytest.mark.parametrize(
    ("held", "began", "why"),
    [
        ({}, 1000.0, ""),
        ({}, 1000.4, ""),
        ({"beat": OLD}, 1000.0, ""),
        ({}, None, "its process is gone"),
        ({}, 1002.0, "its process is gone, another has its number"),
        ({"boot": "b0"}, 1000.0, "it was taken before the machine was started anew"),
        ({"host": "there", "boot": "b9"}, None, ""),
        ({"host": "there", "beat": iso(NOW - timedelta(minutes=59))}, None, ""),
        ({"host": "there", "beat": iso(NOW - timedelta(minutes=61))}, 1000.0, "nothing was heard of it for an hour"),
        ({"host": "there", "beat": iso(NOW + timedelta(minutes=20))}, None, ""),
        ({"host": "there", "beat": iso(NOW + timedelta(days=900))}, None, "nothing was heard of it for an hour"),
        ({"host": "there", "beat": "soon"}, None, "nothing was heard of it for an hour"),
        ({"host": "there", "beat": "2026-06-01T12:00:00"}, None, "nothing was heard of it for an hour"),
    ],
)
def test_a_holder_is_given_up_when_it_is_dead_or_silent_and_not_before(
    held: dict[str, Any], began: float | None, why: str
) -> None:
    assert holders.why_stale(replace(HELD, **held), host="here", boot="b1", started=lambda _: began, now=NOW) == why


def test_a_heartbeat_is_as_long_as_the_one_before() -> None:
    later = replace(HELD, beat=iso(NOW + timedelta(hours=2, milliseconds=7)))
    assert holders.decode_holder(holders.encode_holder(later)) == later
    assert len(holders.encode_holder(later)) == len(holders.encode_holder(HELD))


@given(st.one_of(st.binary(max_size=300), st.text(max_size=100).map(lambda said: f'{{"host": "{said}"}}'.encode())))
def test_what_is_no_holder_is_read_as_none(said: bytes) -> None:
    assert holders.decode_holder(said) is None
