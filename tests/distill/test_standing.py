"""What leans on what nobody sees later is no statement; what a project's people decide, prefer and find out is one."""

from __future__ import annotations

import pytest

from csmd.distill import extract
from csmd.distill.refused import Speaker
from csmd.distill.standing import is_detail, leaning
from csmd.distill.telling import told
from csmd.model import StoredTurn, TurnKind

#: Said in a web shop, in firmware and in data science: what stays true when the session is over.
KEPT_OF_USERS = (
    "we always round prices half up per line item, not on the order total, the accountant insists on it",
    "let's use Stripe payment intents instead of charges, the old API does not support 3-D Secure",
    "the checkout must work without JavaScript because one of our big customers blocks it",
    "never write to the EEPROM inside the interrupt handler, it blocks for 3 ms and the watchdog resets the board",
    "I prefer fixed point over float in the motor loop, the M0 has no FPU",
    "we decided to keep the bootloader below 16 KB so that both images fit into the flash",
    "the sensor needs 50 ms after power-on before the first I2C read, otherwise it returns 0xFF",
    "please always set a random seed in the notebooks, we could not reproduce the churn numbers last quarter",
    "customer_id is not unique across regions, you have to join on (region, customer_id)",
    "the warehouse table is partitioned by event_date, a query without a filter on it scans 4 TB",
    "we will switch the model training from weekly to daily once the feature store is live",
)
KEPT_OF_ASSISTANTS = (
    "The cart lost its items because `SessionStore.save` ran before the cookie was set, so every guest got a new session id.",
    "The firmware hung because the DMA callback took the lock of the logger, so `log_flush` now runs only in the idle task.",
    "`merge_asof` drops rows without a match when the keys are not sorted, which is why a third of the orders was missing.",
)
CHATTER_OF_USERS = (
    "can you take a look at the failing build?",
    "let's go with option 2 for now",
    "what about the scenario above?",
    "is this an easy change?",
    "review the new endpoint and tell me what you think",
    "write down what we know until now so we can continue tomorrow",
    "stop, wait a second",
    "now add a test for this",
    "change it to the other wording and keep these points as they are",
    "hmm wondering whether a better place exists for this",
    "could you estimate how long the migration of the orders would take? I mean the ones before 2019",
    "we should somehow keep this from happening, I think the cart was empty",
    "that still doesn't work, the total is wrong again",
    "I just ran the loader again and none of the regions has an id",
    "can it be that a restart of the shop empties the carts? I lost mine",
    "I guess we should drop the orders of guests then? or how else would they be found",
    "add a test so that the rounding does not break again",
    "Press enter and you can either pay with the stored card or start a brand new order",
    "commit, push and then respond to the comments of the pricing team",
    "The condition here should be stricter so that only orders of the day match.",
    "`cart.py` calls `price_round` directly. Consider removing these unused helpers to make it shorter.",
    "look at the invoices of May and compare them, could you tell which ones differ?",
)
CHATTER_OF_ASSISTANTS = (
    "Added `price_round` to `cart.py`; Updated `checkout.py` to call it; Removed the old helper",
    "Option 1: keep the queue in RAM. Option 2: write it to flash.",
    "You can check with `make flash` whether the board still hangs",
    "On the order page (via hooks); Before saving the cart",
    "Add a column `region` to the table; Update the loader; Run the backfill",
    "I've verified the notebook and everything runs through",
    "The new tests verify that the cart is emptied after the payment",
    "The warning should be gone after the next start of the shop. New orders get an id such as `2026-01-07-a1b2`.",
    "Updated the plan. The only remaining change is the stale comment in `cart.py`.",
    "The branch now includes the commit of the pricing team and our two commits are rebased on top.",
    "Don't paste passwords into chats, they can end up in logs and backups.",
    "Python guarantees that dictionaries keep the order in which keys were inserted.",
    "Would you prefer one table per region, or a column for the region?",
    "The remaining uncommitted files are notes of the supplier (`prices.csv`, `todo.txt`).",
    "Session 2: its orders are in the cart, but not in the warehouse, so `ship_all` leaves them out",
    "Alternatively, if you want me to measure the bus, I can add a probe to `i2c_read` and print the timing.",
    "The key improvements were: Faster startup: `boot` reads the flash once; Cleaner code: one loop instead of two",
    "The cart is emptied when the payment arrives. Do you want me to keep it for a day?",
    "When I deleted `cart_old.py`, the loader of the regions was gone, but `order.py` still called it.",
    "Changed the loop variable from `_` to `row`; Added `log.warning()` when `parse(row)` fails, with its number",
    'Changed `print(total(cart), file=err)` to `print(f"Total: {total(cart)}", file=err)`, which follows the other prints',
    "`tests/test_cart.py` tests the cart specifically: all six prices are rounded; prices of guests are kept",
    "Options: Reset: empty the cart and start over with `new_cart`; Adopt: take over the cart of the guest",
    "cart_empty - checks the total of no items; cart_full - checks the total of a hundred items",
)


def chosen(said: str, kind: TurnKind) -> list[str]:
    turn = StoredTurn(seq=1, uuid="u1", session_id="s", project_seq=1, kind=kind, text=said, at="", ordinal=1)
    return [one.text for one in extract.statements(turn)]


@pytest.mark.parametrize("said", KEPT_OF_USERS)
def test_what_a_user_of_any_project_lays_down_is_kept(said: str) -> None:
    assert chosen(said, "user")


@pytest.mark.parametrize("said", KEPT_OF_ASSISTANTS)
def test_what_an_assistant_found_out_with_its_cause_is_kept(said: str) -> None:
    assert chosen(said, "assistant")


@pytest.mark.parametrize(
    ("said", "kind"),
    [*((said, "user") for said in CHATTER_OF_USERS), *((said, "assistant") for said in CHATTER_OF_ASSISTANTS)],
)
def test_errands_pointers_and_lists_of_edits_are_not_kept(said: str, kind: TurnKind) -> None:
    assert chosen(said, kind) == []


@pytest.mark.parametrize(
    ("said", "speaker", "what"),
    [
        ("for option 5 we should continue on the same branch", "user", "unseen list"),
        ("still reads as if we open a new ticket always", "user", "unseen text"),
        ("Renamed `a` to `b`; Moved `c`", "assistant", "edits"),
        ("Renamed `a` to `b` because the old name shadowed a builtin; Moved `c`", "assistant", ""),
        ("commit and push after each step", "user", ""),
        ("we require that plain text is escaped in `render`", "user", ""),
        ("we should be using the typed ids instead of numbers wherever we can", "user", ""),
    ],
)
def test_what_a_unit_leans_on_is_named(said: str, speaker: Speaker, what: str) -> None:
    assert leaning(said, speaker) == what


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("the price must include the tax, can you check where that is done?", "the price must include the tax"),
        ("one more thing, the board needs 5 V", "the board needs 5 V"),
        ("the loader only reads UTF-8 files, right?", "the loader only reads UTF-8 files"),
        (
            "Can you change it? So I don't need to restart the board",
            "Can you change it? So I don't need to restart the board",
        ),
        ("I mean to say that prices are gross", "I mean to say that prices are gross"),
    ],
)
def test_what_only_asks_is_cut_off_its_ends_and_its_sense_stays(said: str, left: str) -> None:
    assert told(said) == left


def test_what_stands_in_for_a_better_unit_that_leans_must_be_worth_more() -> None:
    good = (
        "The worker restarts after every deploy, so the cache in `pricing.py` is cold for a minute and `quote` is slow."
    )
    better = (
        "These options for `pricing.py` differ because `quote` reads the cache that the worker fills, so that"
        " a restart of the worker clears only one of them and the other still returns stale prices for a minute."
    )
    assert leaning(better, "assistant") and chosen(good, "assistant")
    assert chosen(f"{better}\n\n{good}", "assistant") == []


@pytest.mark.parametrize(
    ("said", "told_as"),
    [
        (
            "Can you add retries to the mail sender? Use exponential backoff, at most five tries.",
            ("add retries to the mail sender: Use exponential backoff, at most five tries.", "epistemic"),
        ),
        (
            "Add retries to the mail sender. Use exponential backoff, at most five tries.",
            ("Add retries to the mail sender. Use exponential backoff, at most five tries.", "epistemic"),
        ),
        (
            "Fix the flaky login test. We always use fake clocks in tests.",
            ("We always use fake clocks in tests.", "behavioral"),
        ),
        (
            "Do not commit generated files. Never push to main.",
            ("Do not commit generated files. Never push to main.", "behavioral"),
        ),
    ],
)
def test_how_an_errand_is_to_be_done_is_no_preference_without_the_errand(said: str, told_as: tuple[str, str]) -> None:
    turn = StoredTurn(seq=1, uuid="u1", session_id="s", project_seq=1, kind="user", text=said, at="", ordinal=1)
    assert told_as in [(one.text, one.gate) for one in extract.statements(turn)]


@pytest.mark.parametrize(
    ("said", "behind", "of_detail", "detail"),
    [
        ("Return CSV, not JSON.", "Implement the export endpoint.", False, True),
        ("Limit it to 1000 rows.", "Return CSV, not JSON.", True, True),
        ("Keep functions short.", "Tabs are for indentation.", False, False),
        ("Always return CSV.", "Implement the export endpoint.", False, False),
        ("The export is slow because it sorts twice.", "Implement the export endpoint.", False, False),
        ("Use env vars.", "Do not commit secrets.", False, False),
    ],
)
def test_a_detail_is_an_order_behind_an_errand_that_does_not_say_it_lasts(
    said: str, behind: str, of_detail: bool, detail: bool
) -> None:
    assert is_detail(said, behind=behind, of_detail=of_detail) is detail
