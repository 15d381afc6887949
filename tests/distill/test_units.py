"""Sentences as what somebody said: without the marks of emphasis, with everything that code and patterns are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill import units


def check(said: str, wanted: str) -> None:
    """The one sentence of a text, as it is told."""
    assert [piece.text for piece in units.pieces(said, "user")] == [wanted]


@pytest.mark.parametrize(
    "said",
    [
        "Use `**/*.spec.ts` for unit tests and `*.e2e.ts` for e2e",
        "The nightly cron is `0 3 * * *` in UTC.",
        "We never import from src/**/internal",
        "Tests match **/*.test.ts and fixtures live in `__fixtures__`.",
        "Set __init__ files empty and pass **kwargs on",
        "The certs for *.acme.dev and *.acme.io are shared",
        "It calls f(*args, **kwargs) with all of them",
        "Paths are written to /var/log/*.log on the host",
    ],
)
def test_code_patterns_and_names_keep_their_stars_and_underscores(said: str) -> None:
    check(said, said)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("**Root cause**: the pool is made at import time", "Root cause: the pool is made at import time"),
        ("This is *not* what the ***old*** parser did", "This is not what the old parser did"),
        ("**Use `*.ts` files only for the tests**", "Use `*.ts` files only for the tests"),
        # What the number of a title took with it leaves the other half.
        ("`a** b` stays as it is, a half** does not", "`a** b` stays as it is, a half does not"),
        ("It was a __very long__ day for the ~~old~~ new parser", "It was a very long day for the old new parser"),
    ],
)
def test_emphasis_is_no_part_of_what_was_said(said: str, wanted: str) -> None:
    check(said, wanted)


@given(
    st.lists(st.sampled_from(["`", "*", "**", "__", "~~", "a", " b ", "/", ".", "x_y", "\u00e9"]), max_size=60).map(
        "".join
    )
)
def test_what_stands_in_code_is_never_changed(said: str) -> None:
    told = [
        piece.text for piece in units.pieces(f"We match `**/*.spec.ts` in `__init__` here. And then {said}", "user")
    ]
    assert "`**/*.spec.ts` in `__init__`" in told[0]


@pytest.mark.parametrize(
    ("behind", "within"),
    [
        ("This means that the outbox is read twice a day", True),
        ("The fix keeps the outbox locked for a minute", True),
        ("**Why nobody saw it:** the alert was muted in spring", False),
        ("**What we do now:**\n- the outbox stays locked", False),
    ],
)
def test_what_begins_with_an_item_ends_before_another_label(behind: str, within: bool) -> None:
    found = units.pieces(f"- The gateway closes its socket\n- The outbox was never locked\n\n{behind}", "assistant")
    ends = {one.last for one in units.units(found) if one.first == 0}
    assert ends == ({0, 1, 2} if within else {0, 1})
