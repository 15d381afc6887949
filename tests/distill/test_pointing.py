"""A statement that points at what it does not name, or only asks, is none; one that names it or holds for good is one."""

from __future__ import annotations

import pytest

from csmd.distill import resolve
from csmd.distill.pointing import unnamed
from csmd.distill.refused import Speaker

#: (who, what is said, what it is).
SAID: tuple[tuple[Speaker, str, str], ...] = (
    # A short order or verdict that names nothing, and one that does or is a rule.
    ("user", "remove it completely, no need to keep the rest", "unseen"),
    ("user", "even if one order matches we should continue", "unseen"),
    ("user", "the problem is that this only works for customers abroad", "unseen"),
    ("user", "ship the small parcels but leave the others", "unseen"),
    ("user", "the motor stalls when it gets hot", ""),
    ("user", "remove `legacy_cart` completely, no need to keep it", ""),
    ("user", "whenever a sensor is swapped, calibrate it before this is logged", ""),
    ("user", "we never ship on Sundays, keep this in the terms", ""),
    # A question or a doubt, and one that states something.
    ("user", "why not adding a region column?", "asks"),
    ("user", "couldn't the watchdog be longer? like the one of the old board", "asks"),
    ("user", "not sure if basket is a good word. alternatives?", "asks"),
    ("user", "why is the total rounded? we must round per line item", ""),
    ("user", "can we store the calibration in `eeprom.c`?", ""),
    ("user", "if the board restarts, then we should clear the buffer?", ""),
    # A definite word for what stands before the cut, and one whose name is at hand.
    ("assistant", "Now both places keep the price from the first request.", "unseen"),
    ("assistant", "The check is now done once for all regions.", "unseen"),
    ("assistant", "In `cart.py` both places keep the price from the first request.", ""),
    ("assistant", "The price check is skipped for guests, so `total` is zero.", "unseen"),
    ("assistant", "Guests have no region, so the total is zero.", ""),
)


@pytest.mark.parametrize(("speaker", "said", "is_"), SAID, ids=[said[:40] for _, said, _ in SAID])
def test_what_points_at_something_it_does_not_name_is_no_statement(speaker: Speaker, said: str, is_: str) -> None:
    assert unnamed(said, speaker) == is_


def test_the_sentence_before_is_put_in_front_where_it_names_something() -> None:
    said = "Now both places keep the price."
    assert resolve.behind(said, before="Done.\n\nThe cart used to read `price` twice. ").startswith(
        "The cart used to read"
    )
    assert resolve.behind(said, before="Done. ") == said
    assert resolve.behind(said, before="Should `price` be read once? ") == said
