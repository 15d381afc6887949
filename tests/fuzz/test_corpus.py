"""Every input that fuzzing kept is taken as it should be; the coverage-guided form is run.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from targets import BUILT, TARGETS  # noqa: E402

KEPT = HERE.parent / "data" / "fuzz"


@pytest.mark.invariant(
    "Whatever bytes come in, lines, payloads, frames, heads, instructions: each ends, and keeps its promise"
)
@pytest.mark.parametrize("target", TARGETS)
def test_every_kept_input_is_taken_as_it_should_be(target: str) -> None:
    inputs = sorted((KEPT / target).iterdir())
    assert len(inputs) >= 4, "the corpus is there"
    for path in inputs:
        TARGETS[target](path.read_bytes())


def test_no_input_that_once_crashed_is_left_unmended() -> None:
    assert not list(KEPT.glob("*-*"))


@pytest.mark.invariant(
    "Whatever bytes come in, lines, payloads, frames, heads, instructions: each ends, and keeps its promise"
)
@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300), built=st.booleans())
def test_any_other_bytes_are_too(target: str, data: bytes, built: bool) -> None:
    TARGETS[target](BUILT + data if built else data)


def test_a_target_can_fail() -> None:
    with pytest.raises(AssertionError):
        TARGETS["words"].__globals__["storable"]("\0")
