"""Short orders have one name however they are worded; commands are known without their arguments: golden cases."""

from __future__ import annotations

import pytest

from csmd.believe.habits import NOT_TOLD, SAYINGS
from csmd.distill import commands, orders

ADVICE = (
    "The parseDate helper silently drops the time zone when the input has no offset. Consider returning an error instead, "
    "because callers could store wrong timestamps without noticing."
)
PLAN = "Implement the following plan: " + "the step adds tests to the module and then you commit this; " * 10

#: What a user says -> what it asks for; "!" before what it asks not to be done.
ORDERS = [
    ("can we add a test for this?", "add tests"),
    ("and make sure this is tested", "add tests"),
    ("write unit tests for the new parser", "add tests"),
    ("please don't add tests", "!add tests"),
    ("no need to add tests for now", ""),
    ("where are the tests?", ""),
    ("use the test repo skill", ""),
    ("commit", "commit"),
    ("Yes, commit this please", "commit"),
    ("ok looks good, then commit, push", "commit push"),
    ("don't commit", "!commit"),
    ("don't commit yet", ""),
    ("what does the last commit do?", ""),
    ("can you double check that?", "double check"),
    ("are you sure?", "double check"),
    ("can you explain why they fail now?", "explain"),
    ("can you review the changes in this branch?", "review the changes"),
    ("address the comments on the PR", "address review"),
    (ADVICE, "hand on review"),
    (f"I got this feedback for the changes:\n\n{ADVICE}", "hand on review"),
    ("I think " + ADVICE, ""),
    ("Create a helper for it. " + ADVICE, ""),
    (ADVICE * 7, ""),
    (PLAN, ""),
    ("let's completely remove the legacy importer", "remove completely"),
    ("update the changelog as well", "update the changelog"),
    ("do the same for the other client", "keep alike"),
    ("check they are not duplicated please, that they don't duplicate each other", "no duplication"),
    ("don't change anything, just let me know", "look without changing"),
    ("only this package, leave the rest", "nothing but this"),
    ("make small commits", "a small step at a time"),
    ("2 and 3", "choose by number"),
    ("fix issue 1", "choose by number"),
    ("rebase on main, then push", "push|take in the main branch"),
    ("cut a release", "release"),
    ("", ""),
]


@pytest.mark.parametrize(("said", "wanted"), ORDERS, ids=[said[:40] for said, _ in ORDERS])
def test_an_order_has_one_name_however_it_is_worded(said: str, wanted: str) -> None:
    found = "|".join(f"{'!' * against}{order.subject}" for order, against in orders.orders(said))
    assert found == wanted.replace("commit push", "commit|push")


def test_every_order_that_may_be_told_has_a_sentence_and_no_other() -> None:
    assert set(SAYINGS) | NOT_TOLD == orders.SUBJECTS
    assert not set(SAYINGS) & NOT_TOLD


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("please deploy to staging", "deploy to staging"),
        ("Deploy to staging now", "deploy to staging"),
        ("yes", ""),
        ("go ahead", ""),
        ("is it deployed to staging?", ""),
        ("ENT-98", ""),
        ("look at /etc/hosts", ""),
        ("one two three four five six seven eight nine", ""),
    ],
)
def test_an_order_without_a_name_is_known_by_its_own_words(said: str, wanted: str) -> None:
    assert orders.own_words(said) == wanted


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
    assert commands.commands(line) == wanted
    assert all(bool(commands.purpose(name)) != bool(commands.milestone(name)) for name in wanted)


def test_a_parameter_is_read_from_a_call_also_when_it_was_trimmed() -> None:
    assert commands.given(r'{"command":"echo \"a\"\nls","x":1}', "command") == 'echo "a"\nls'
    assert commands.given('{"command":"mise run te', "command") == "mise run te"
    assert commands.given("{}", "command") == ""
    assert [commands.notable(path) for path in ("/p/CHANGELOG.md", "/p/sub/package.json", "/p/main.py")] == [
        "CHANGELOG.md", "package.json", "",
    ]  # fmt: skip
