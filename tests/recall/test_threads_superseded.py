"""What repeats something that no longer holds is known by what only the old said; the new, and what came later, is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.recall import threads
from csmd.recall.threads import Replaced

OLD = Replaced(
    text="Let's use Redis for the job queue", heir="m2", heir_text="We use Postgres for the job queue since June",
    since="2026-06-10", sessions=frozenset({"s1"}),
)  # fmt: skip

# (what is said, when, in which session, whether it is an echo)
SAID = [
    ("Okay, I will use Redis.", "2026-06-01", "s1", True),
    ("Okay, I will use Redis.", "2026-06-01", "s2", False),
    ("The job queue uses Redis", "2026-06-01", "s2", True),
    ("The job queue moved from Redis to Postgres", "2026-06-01", "s1", False),
    ("The job queue uses Redis again", "2026-06-11", "s1", False),
    ("The job queue is polled every second", "2026-06-01", "s1", False),
    ("Done.", "2026-06-01", "s1", False),
    ("", "2026-06-01", "s1", False),
]


@pytest.mark.invariant("An echo says what only the old said, before the new was said, and is told nowhere as current")
@pytest.mark.parametrize(("said", "at", "session", "repeats"), SAID)
def test_an_echo_says_what_only_the_old_said_before_the_new_was_said(
    said: str, at: str, session: str, repeats: bool
) -> None:
    assert (threads.find_echo(said, at=at, session=session, replaced=[OLD]) is not None) is repeats


@given(st.text(max_size=60), st.sampled_from(["s1", "s2"]))
def test_with_nothing_superseded_nothing_is_an_echo_and_the_new_itself_never_is(said: str, session: str) -> None:
    assert threads.find_echo(said, at="2026-06-01", session=session, replaced=[]) is None
    assert threads.find_echo(f"{OLD.heir_text} {said}", at="2026-06-01", session=session, replaced=[OLD]) is None
