"""What speaks of one of several things ends none of the others: the statement stands, and a person can be asked."""

from __future__ import annotations

import pytest

from csmd.memory import contradiction

RULES = "Three rules: 1. commits are signed 2. tests run with pytest -q 3. branches are named feat/ticket"
PROSE = "We deploy with Ansible. Commits are squashed. Tests live next to the code."
ROWS = "use 2-space indentation; never commit to main; write the docs in British English"


def check(older: str, newer: str, *, wanted: str) -> None:
    """How the newer one stands to the older: "amends", "asks" (a person, perhaps) or ""."""
    amends, asks = contradiction.amendment(older, newer), contradiction.doubt(older, newer)
    assert ("amends" if amends else "asks" if asks else "") == wanted


@pytest.mark.invariant("Of several things that one memory says a later statement ends none by speaking of another")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (RULES, "commits no longer need to be signed"),
        (PROSE, "Commits are not squashed any more"),
        (PROSE, "we no longer deploy with Ansible"),
        (ROWS, "we no longer use 2-space indentation"),
        (ROWS, "docs no longer need to be in British English"),
    ],
)
def test_of_several_things_one_is_over_and_the_others_stand(older: str, newer: str) -> None:
    assert contradiction.is_partly(older, newer)
    assert contradiction.amendment(older, newer) is None


@pytest.mark.invariant("Of several things that one memory says a later statement ends none by speaking of another")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We deploy with Ansible.", "we no longer deploy with Ansible"),
        ("We deploy with Ansible. It runs from the laptop of whoever is on call.", "we no longer deploy with Ansible"),
        ("Commits are signed, since the auditors want it.", "commits are not signed any more"),
    ],
)
def test_one_thing_is_over_with_what_was_said_about_it(older: str, newer: str) -> None:
    check(older, newer, wanted="amends")


@pytest.mark.parametrize(
    ("said", "number"),
    [(RULES, 3), (PROSE, 3), (ROWS, 3), ("Use uv, e.g. in CI.", 1), ("Ports: 8080. It was 80.", 1), ("", 0)],
)
def test_how_many_parts_a_statement_has(said: str, number: int) -> None:
    assert len(contradiction.parts(said)) == number


@pytest.mark.parametrize(
    ("said", "ended", "left"),
    [
        (RULES, 0, "Three rules: tests run with pytest -q; branches are named feat/ticket"),
        (PROSE, 1, "We deploy with Ansible. Tests live next to the code."),
        (ROWS, 2, "use 2-space indentation; never commit to main"),
        ("we use pnpm and tests run with vitest", 0, "tests run with vitest"),
        ("We use pnpm", 0, ""),
    ],
)
def test_what_is_left_of_a_statement_is_told_in_its_own_words(said: str, ended: int, left: str) -> None:
    assert contradiction.without(said, contradiction.parts(said)[ended : ended + 1]) == left
