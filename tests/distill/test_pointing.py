"""A statement that points at what it does not name, or only asks, is none; one that names it or holds for good is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from csmd.distill import extract, resolve
from csmd.distill.pointing import unnamed
from csmd.distill.refused import Speaker
from csmd.model import StoredTurn

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
    ("user", "jenkins builds the installer, actions does all the rest", ""),
    ("user", "found it: the font was subset without the euro sign", ""),
    ("user", "postgres was dropped because nobody ran it", ""),
    ("user", "soft delete it is, support restores something weekly", ""),
    # Who is to do something with what only the speaker sees, and what goes on about it.
    ("user", "the gateway should handle that automatically", "unseen"),
    ("user", "This could let a stranger send an arbitrarily large order to `POST /orders`", "unseen"),
    (
        "assistant",
        "An admin would need to either change it for the shop, or allow each region to set its own.",
        "unseen",
    ),
    ("assistant", "However, this would lose the orders of `cart.py` that are still open.", "unseen"),
    ("assistant", "An admin has to allow `POST /orders` for each region.", ""),
    ("assistant", "The command is hidden from `shop --help`, but can still be run.", "unseen"),
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


def test_what_holds_may_say_this_of_the_work_at_hand_and_of_nothing_else() -> None:
    for said in ("our dentist is the main user of this calendar", "I'm a student and this is my thesis"):
        assert unnamed(said, "user", holds=True) == "" and unnamed(said, "user") == "unseen"
    for said in ("use the debug key for this one", "let's do the last one and then finish this"):
        assert unnamed(said, "user", holds=True) == "unseen"


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("this text should be friendlier @/home/bo/shop/scripts/install.sh:212-224", "install.sh"),
        ("@src/cart.py make this clearer, see @src/cart.py:3", "cart.py"),
        ("compare @src/cart.py and @src/order.py", ""),
        ("mail bo@shop.example/cart.py about this, @bo knows", ""),
    ],
)
def test_the_one_file_that_a_prompt_brings_along_is_what_it_points_at(prompt: str, name: str) -> None:
    assert resolve.attached(prompt) == name


def test_what_points_at_the_file_of_its_prompt_is_told_with_its_name_and_without_one_not_at_all() -> None:
    said = (
        "Since newcomers see this output text first, it needs to be friendly. "
        "It should name the next step for their shell."
    )
    turn = StoredTurn(
        seq=1,
        uuid="u1",
        session_id="s",
        project_seq=1,
        kind="user",
        text=f"{said}\n\n@shop/install.sh:2-9",
        at="",
        ordinal=1,
    )
    assert [one.text for one in extract.statements(turn)] == [f"install.sh: {said}"]
    assert extract.statements(replace(turn, text=said)) == []


def test_the_sentence_before_is_put_in_front_where_it_names_something() -> None:
    said = "Now both places keep the price."
    assert resolve.behind(said, before="Done.\n\nThe cart used to read `price` twice. ").startswith(
        "The cart used to read"
    )
    assert resolve.behind(said, before="Done. ") == said
    assert resolve.behind(said, before="Should `price` be read once? ") == said
