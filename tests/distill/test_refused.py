"""What nobody would keep is refused by its form, whatever project it is of; what states something beside it is not."""

from __future__ import annotations

import time

import pytest

from csmd.distill import refused
from csmd.distill.refused import Speaker


def check(said: str, speaker: Speaker, name: str) -> None:
    assert refused.refusal(said, speaker) == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("check", "can you check if the invoice job would run twice on leap days?"),
        ("check", "could we double check again that the cart is not charged twice?"),
        ("check", "ok, can you figure out whether there are more currencies like this?"),
        ("check", "I think the worker never reconnects to the queue, can you check?"),
        ("errand", "can you fix the local branch?"),
        ("errand", "write me this into a wiki page"),
        ("errand", "could you please do some research for me on rate limiters?"),
        ("errand", "look at docs/plan.md and start implementing it"),
        ("errand", "can we add a test for this?"),
        ("errand", "can we add why it matters to close the cursor?"),
        ("asks", "is the installer writing this to the registry?"),
        ("asks", "is this the same, the first one was about the proxy, wasn it!?"),
        ("asks", "this means the migration runs twice or is the lock held all the time?"),
        ("asks", "the history of the import is lost now, right?"),
        ("muses", "I'm considering if we ought to describe the columns in so much detail"),
        ("unseen list", "let's address 1 now, and have it reset the cache"),
        ("unseen list", "I'd like to take 1.+2. and leave the rest"),
        ("unseen list", "For 207 there is also the way to search the index"),
        ("identifiers", "Main job: 1b671a64-40d5-491e-99b0-da01ff1f3341; two jobs were included"),
        ("identifiers", "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (origin/release)"),
        ("printed", "Author: Somebody Else Date: Mon Mar 2 10:00:00 2026 +0100"),
        ("printed", "Current branch release is up to date. remote: Permission to push denied to the robot"),
        ("printed", "Fetching release/v1 from mirror (team/shop)... the mirror is at an older state"),
        ("printed", "System.Exception: wrong type at Shop.Orders.Import.Reader(String path)"),
        ("printed", "me@laptop ~/shop (main) [1]> brew install what is not there"),
        ("printed", "303 + Given an order number the cache is asked first"),
        ("printed", "Session 1 was kept. Keeping the repository at: /var/folders/gz/h7sjhvz13cb0/T/tmp.gBAZw"),
        ("printed", "Reviewed-by: the whole team; Ticket-Number: 12"),
        ("errand", "can you do another script which creates an order and cancels it"),
        ("errand", "add test that checks this new way of rounding"),
        ("errand", "Add logging for failed payments in payments/stripe.go:387-389"),
        ("asks", "I don't see the banner anymore on this page, is it enabled?"),
        ("moment", "it somehow always prints these below each group"),
        ("cut", "I'd like to add REDACTED"),
        ("praise", "Cleaner Registry: the map is gone in favour of a loop"),
        ("untested", "The parser for prices lacks direct unit tests."),
        ("untested", "Consider adding tests for empty baskets and for negative prices."),
        ("untested", "The retry path is effectively untested, since the timeout never fires"),
        ("try", "Run `make check` to verify that nothing broke"),
    ],
)
def test_a_users_errand_question_paste_or_pointer_is_refused(name: str, said: str) -> None:
    check(said, "user", name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unseen list", "First question: What's the audience you have in mind for this page?"),
        ("praise", "Excellent module separation - the new `pricing` package stands alone"),
        ("praise", "Type Safety: distinct types prevent mixing cents and euros"),
        ("praise", "Overall this is a solid change that brings the page in line with the code."),
        ("inventory", "`src/cart/cart_test.go` - Updated the expected totals; Added three tests"),
        ("inventory", "docs/api/orders.md: Added the `currency` field to the order"),
        ("inventory", "Fixed type comparisons (lines 76, 144)"),
        ("inventory", "Fixed: `bytes(...)` to `[]byte(...)` on line 58."),
        ("inventory", "Added three new tests for the basket"),
        ("inventory", "`test_total_is_rounded` - verifies that cents are rounded half up"),
        ("inventory", "The fixes I made to `orders.py`:"),
        ("inventory", "Created `src/cart/help.go` (moved from `commands/`)"),
        ("inventory", "The test creates a basket and checks that it is empty"),
        ("inventory", "This PR improves the output of the importer"),
        ("praise", "Helpful error messages with links when the tool is not found"),
        ("narration", "I noticed you shared what looks like an account number."),
        ("report", "Committed as `6fe41fe` and replied to both comments"),
        ("try", "Run `./shop status` (or any command) to test that it reports"),
    ],
)
def test_an_assistants_praise_and_inventories_are_refused(name: str, said: str) -> None:
    check(said, "assistant", name)


@pytest.mark.parametrize(
    ("speaker", "said"),
    [
        ("user", "why can't we just use real booleans?"),
        ("user", "isn't it only retried for idempotent requests?"),
        ("user", "can't we change those functions to take an OrderId instead?"),
        ("user", "is this not what the lock in the scheduler was made for?"),
        ("user", "the issue is that it runs only if the user may read the other bucket, right?"),
        ("user", "let's completely remove the `--fast` flag"),
        ("user", "fix 3 bugs per release at most, we agreed on that with the support team"),
        ("user", "for 3 nodes the quorum is 2"),
        ("user", "we always add tests for a bug before we fix it"),
        ("user", "each request carries an id such as `1b671a64-40d5-491e-99b0-da01ff1f3341`"),
        ("user", "we should be using the typed ids instead of numbers"),
        ("user", "fetching the rates takes two seconds, so we cache them for an hour"),
        ("user", "the build needs `TMPDIR`, since /tmp is too small"),
        ("user", "REDACTED values are written as three stars in the audit log"),
        ("user", "a summary of the prices has to be sent to the shops every morning"),
        ("assistant", "The test failed because `setup.py` was read before the lock was taken."),
        ("assistant", "`orders.py`: the total is computed in cents, since floats lose the last digit"),
        ("assistant", "Added a `currency` column to `orders`, filled with EUR for old rows"),
        ("assistant", "Better to keep the lock in the worker, because the queue may deliver twice"),
        ("assistant", "Removed the `retry` key since the runner does not support it."),
        ("assistant", "Run times grew because `find` was called for every row."),
    ],
)
def test_what_states_something_is_not_refused(speaker: Speaker, said: str) -> None:
    check(said, speaker, "")


def test_what_leads_into_a_list_goes_with_it_only_where_the_list_is_no_better() -> None:
    assert refused.refusal("The changes I made to `orders.py`:", "assistant", leads=True)
    assert not refused.refusal("Here's what happened:", "assistant", leads=True)


@pytest.mark.parametrize(
    "piece", ["can you ", "added tests ", "a.b.c.", "0123456789abcdef", "fix 1 ", "run `", "-" * 9, "is it or "]
)
def test_no_sentence_makes_the_table_slow(piece: str) -> None:
    """Twice the text may cost twice the time, and some; not four times and more."""
    took: list[float] = []
    for size in (1_000, 2_000):
        said = (piece * size)[:size]
        best = float("inf")
        for _ in range(5):
            started = time.process_time()
            refused.refusal(said, "user"), refused.refusal(said, "assistant")
            best = min(best, time.process_time() - started)
        took.append(best)
    assert took[1] < 3.5 * took[0] + 0.01
