"""What is chosen when nobody has asked: within the budget, the same in any order, each adding something of its own."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.recall import brief
from csmd.recall.brief import Candidate

SHARES = (0.4, 0.4, 0.4)


def candidate(body: str, number: int, *, worth: float = 1.0, section: int = 0, tokens: int = 20) -> Candidate:
    return Candidate(
        id=f"m{number:03}", text=body, worth=worth, section=section, tokens=tokens, stems=brief.stems(body)
    )


def chosen(candidates: list[Candidate], tokens: int, shares: tuple[float, ...] = SHARES) -> list[str]:
    made = brief.choose(candidates, tokens=tokens, shares=shares, heading=4, known=lambda said: False)
    return [one.id for one, _ in made]


some = st.lists(
    st.tuples(
        st.text("abcd ", min_size=1, max_size=40), st.floats(0, 2), st.integers(0, 2), st.integers(1, 60)
    ),
    max_size=40,
)  # fmt: skip


@settings(max_examples=150)
@given(some, st.integers(0, 400), st.randoms(use_true_random=False))
def test_the_budget_is_kept_and_the_order_changes_nothing(
    drawn: list[tuple[str, float, int, int]], tokens: int, dice: random.Random
) -> None:
    told = [candidate(body, n, worth=w, section=s, tokens=t) for n, (body, w, s, t) in enumerate(drawn)]
    first = chosen(told, tokens)
    sections = {one.section for one in told if one.id in first}
    assert sum(one.tokens for one in told if one.id in first) + 4 * len(sections) <= tokens or not first
    assert all(one.worth > 0 for one in told if one.id in first)
    dice.shuffle(told)
    assert chosen(told, tokens) == first


def test_what_much_is_about_comes_before_what_stands_alone_and_is_said_once() -> None:
    told = [
        candidate("the billing service keeps invoices in Postgres", 1),
        candidate("the billing service keeps invoices for ten years", 2),
        candidate("the billing service keeps invoices apart at night", 3),
        candidate("the mail server rejects big attachments", 4),
        candidate("the mail server rejects attachments from outside", 5),
        candidate("parrots squawk loudly whenever somebody whistles", 6),
    ]
    order = chosen(told, 1000)
    assert order[-1] == "m006", "nothing else is about parrots"
    assert {order[0], order[1]} & {"m001", "m002", "m003"} and {order[0], order[1]} & {"m004", "m005"}


def test_a_section_takes_more_than_its_share_only_of_what_others_leave() -> None:
    crowd = [candidate(f"remark {n} on topic {n * 7}", n, section=0, worth=2.0) for n in range(20)]
    few = [candidate(f"cause {n} of fault {n * 5}", 100 + n, section=1) for n in range(2)]
    told = chosen([*crowd, *few], 240)
    assert {"m100", "m101"} <= set(told)
    assert sum(ident < "m100" for ident in told) > 0.4 * 240 // 20


def test_what_is_said_twice_or_known_anyway_is_told_once_or_not() -> None:
    told = [
        candidate("deploys go through the release branch on Tuesdays", 1, worth=1.1),
        candidate("deploys always go through the release branch on Tuesdays", 2),
        candidate("staging is reachable over VPN only", 3),
    ]
    made = brief.choose(told, tokens=500, shares=SHARES, heading=4, known=lambda said: "VPN" in said)
    assert [one.id for one, _ in made] == ["m001"]
