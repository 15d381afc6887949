"""Orders are kept in their own words; commands are known without their arguments: golden cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.extraction import packets, shell_commands

ADVICE = (
    "The parseDate helper silently drops the time zone when the input has no offset. Consider returning an error instead, "
    "because callers could store wrong timestamps without noticing."
)
PLAN = "Implement the following plan: " + "the step adds tests to the module and then you commit this; " * 10

#: What a user says -> what it asks for, "|" between; "!" before what it asks to leave.
ORDERS = [
    ("could you draw a diagram of this?", "draw a diagram of this"),
    ("and make sure to draw the diagram", "draw the diagram"),
    ("Please deploy to staging now", "deploy to staging now"),
    ("ok great, water the plants, then lock the door", "water the plants|lock the door"),
    ("please don't water the plants", "!water the plants"),
    ("no need to lock the door for now", ""),
    ("don't lock it yet", ""),
    ("where are the keys?", ""),
    ("is it deployed to staging?", ""),
    ("the door is open", ""),
    ("yes", ""),
    ("go on", ""),
    ("ENT-98", ""),
    ("one two three four five six seven eight nine", ""),
    ("We moved house last year. Can you forward the mail?", "forward the mail"),
    (ADVICE, ""),
    (PLAN, ""),
    ("", ""),
]


@pytest.mark.parametrize(("said", "wanted"), ORDERS, ids=[said[:40] for said, _ in ORDERS])
def test_an_order_is_kept_in_its_own_words_without_courtesies(said: str, wanted: str) -> None:
    assert "|".join(f"{'!' * one.against}{one.words}" for one in packets.orders(said)) == wanted


@pytest.mark.parametrize(
    ("said", "is_remark"),
    [
        (ADVICE, True),
        (f"I got this feedback for the changes:\n\n{ADVICE}", True),
        ("I think " + ADVICE, False),
        ("Create a helper for it. " + ADVICE, False),
        (ADVICE * 7, False),
        (PLAN, False),
    ],
)
def test_a_reviewers_remark_is_known_by_its_length_its_names_and_that_nobody_speaks_in_it(
    said: str, is_remark: bool
) -> None:
    assert packets.remarks(said) == [said] * is_remark


@given(st.text(max_size=300))
def test_whatever_is_said_orders_are_few_and_short(said: str) -> None:
    found = packets.orders(said)
    assert len(set(found)) == len(found) <= packets.MOST_ORDERS
    assert all(0 < len(one.words) <= packets.ORDER_CHARACTERS for one in found)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("cd x && mise run test 2>&1 | tail -20", ["mise run test"]),
        ("mise run fmt && mise run lint", ["mise run fmt", "mise run lint"]),
        ("CI=1 timeout 60 npm run test:ci -- --watch", ["npm run test:ci"]),
        ("uv run pytest -q tests/a.py", ["uv run pytest"]),
        ("ruff format . ; ruff check .", ["ruff format", "ruff check"]),
        ("git status; ls | grep test", []),
        ("echo 'npm run test' > notes", []),
        ("git commit -m \"$(cat <<'EOF'\nnpm run lint\nEOF\n)\"", ["git commit"]),
        ("git -C /p push origin v1", ["git push"]),
        ("git tag -a v1.2.0 -m x && git push --tags", ["git tag", "git push"]),
        ("git tag -l", []),
        ("go build ./...", []),
        ("gh pr create --fill", ["gh pr create"]),
        ("latest --run test", []),
        ("", []),
    ],
)
def test_a_command_is_known_without_its_arguments(line: str, wanted: list[str]) -> None:
    assert shell_commands.commands_of(line) == wanted
    assert all(bool(shell_commands.purpose(name)) != bool(shell_commands.milestone(name)) for name in wanted)


def test_a_parameter_is_read_from_a_call_also_when_it_was_trimmed() -> None:
    assert shell_commands.given(r'{"command":"echo \"a\"\nls","x":1}', "command") == 'echo "a"\nls'
    assert shell_commands.given('{"command":"mise run te', "command") == "mise run te"
    assert shell_commands.given("{}", "command") == ""
    assert [shell_commands.notable(path) for path in ("/p/CHANGELOG.md", "/p/sub/package.json", "/p/main.py")] == [
        "CHANGELOG.md", "package.json", "",
    ]  # fmt: skip
