"""A list that a user leads into as one to keep is told item by item; a list of tasks, steps or questions is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.distill import extract, ruled, units
from csmd.model import StoredTurn
from csmd.text import content_words


def check(text: str, wanted: list[str]) -> None:
    """What is told of the lists to keep in a user's text."""
    assert [unit.text for unit in ruled.rules(text)] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(
            "From now on:\n1. Use conventional commits\n2. Keep functions under 40 lines\n3. Never use any in TypeScript",
            ["Use conventional commits", "Keep functions under 40 lines", "Never use any in TypeScript"],
            id="three items are a statement each",
        ),
        pytest.param(
            "Please remember these rules:\n- always use yarn, never npm\n- target node 20\n- tests are written with vitest\n- never push to main",
            ["always use yarn, never npm", "target node 20", "tests are written with vitest; never push to main"],
            id="more are told with neighbours",
        ),
        pytest.param(
            "Our stack:\n- Postgres 16\n- Redis\n",
            ["Our stack: Postgres 16", "Our stack: Redis"],
            id="an item that says nothing alone is told with its lead",
        ),
        pytest.param(
            "We always:\n- squash merge\n- ask Ben before a release",
            ["We always: squash merge", "We always: ask Ben before a release"],
            id="a lead that is part of what is said is told",
        ),
        pytest.param(
            "Never:\n- push to main\n- edit files under vendor/",
            ["Never: push to main", "Never: edit files under vendor/"],
            id="a ban stays one",
        ),
        pytest.param(
            "Conventions we follow:\n- flags live in `flags.yaml`\n- fix the build\n- do we need nginx?\n- log lines are JSON",
            ["flags live in `flags.yaml`", "log lines are JSON"],
            id="tasks and questions stay out",
        ),
        pytest.param(
            "Our conventions:\n- Python\n  - format with ruff\n  - four spaces\n- TypeScript has no any",
            ["Python, format with ruff, four spaces", "TypeScript has no any"],
            id="what stands below an item is told with it",
        ),
        pytest.param(
            "Our conventions: use yarn; node 20; vitest for tests",
            ["use yarn", "Our conventions: node 20", "vitest for tests"],
            id="one row with semicolons",
        ),
        pytest.param(
            "Three rules: 1. always use pnpm. 2. never push to main. 3. tests live in spec/.",
            ["always use pnpm.", "never push to main.", "tests live in spec/."],
            id="one row with numbers",
        ),
        pytest.param(
            "Fix the login page first. A few rules for this repo:\n- money is stored in cents\n- columns are in snake case",
            ["money is stored in cents", "columns are in snake case"],
            id="behind a task, of the repository",
        ),
        pytest.param(
            "Hi, I'd like you to remember these rules:\nuse yarn\nnode 20 everywhere",
            ["use yarn", "node 20 everywhere"],
            id="lines without marks",
        ),
        pytest.param(
            "Our rules:\n- no npm\n- sign commits,\n  also those of bots\n- it crashes on start",
            ["no npm", "sign commits, also those of bots"],
            id="a short ban, an item in two rows",
        ),
        pytest.param(
            "Hi!\nOur rules:\n" + "".join(f"- the {word} service has its own schema\n" for word in "bcdefghijklmnopq"),
            [
                "; ".join(f"the {word} service has its own schema" for word in words)
                for words in ("bcdef", "ghijk", "lmnopq")
            ],
            id="a long list in even parts",
        ),
    ],
)  # fmt: skip
def test_a_list_to_keep_is_told_item_by_item(text: str, wanted: list[str]) -> None:
    check(text, wanted)


@pytest.mark.parametrize(
    "text",
    [
        "Please do:\n- rename the helper\n- move the tests to spec\n- use yarn in CI",
        "Steps:\n1. Open the settings page\n2. Click on save",
        "TODO:\n- write the docs\n- tests with vitest",
        "Fix these:\n- the header overlaps the menu\n- names are cut",
        "Remember these rules:\n- fix the build\n- rename the helper\n- use yarn",
        "Implement a game of dice. The rules:\n- two players roll in turn\n- three sixes win",
        "Rules:\n- ten rows at most\n- no rhymes\n\nWrite me a poem about yarn.",
        "Refactor the parser. Note that:\n- the lexer is slow\n- the tests hang",
        "Your rules:\n- answer in English\n- be brief",
        "You suggested these conventions:\n- use zod for schemas\n- tests beside the code",
        "> Our conventions:\n> - use zod for schemas\n> - tests beside the code",
        "Our conventions are broken by this change, please fix these:\n- names in camel case\n- tabs",
        "Our setup:\nUbuntu with node 18\nIt crashes when the worker starts",
        "Setup:\n- install node\n- run the seeds",
        "The output:\n- error TS2345: bad argument\n- exit code 1",
        "Our conventions:\nare written down elsewhere.",
    ],
)
def test_a_list_under_another_lead_is_none(text: str) -> None:
    check(text, [])


def test_what_the_assistant_listed_is_not_the_users() -> None:
    said = "the exporter writes one file for every customer and region"
    turn = StoredTurn(
        seq=1, uuid="u", session_id="s", project_seq=1, kind="user", text=f"Our rules:\n- {said}", at="", ordinal=1
    )
    assert [one.text for one in extract.statements(turn)] == [said]
    assert extract.statements(turn, before=f"What I found: {said}.") == []


@given(
    lead=st.sampled_from(["From now on", "Our conventions", "Never", "We use", "Remember these rules", "Steps"]),
    mark=st.sampled_from([":\n- ", ":\n1. ", ": ", ":\n\n* "]),
    items=st.lists(
        st.sampled_from(["node 20", "use yarn", "x", "fix it", "why?", "we ask Ben. Then Eva", "a: b", "tests; docs"])
        | st.integers(1, 60).map(lambda size: " ".join(f"word{number}" for number in range(size))),
        max_size=45,
    ),
    end=st.sampled_from(["", "\n\nWe deploy with terraform, never by hand.", "\n\nOur stack:\n- Redis 7"]),
)
def test_whatever_is_listed_the_limits_hold_and_nothing_is_told_twice(
    lead: str, mark: str, items: list[str], end: str
) -> None:
    text = lead + mark + ("; " if mark == ": " else mark[1:]).join(items) + end
    told = ruled.rules(text)
    count = len(units.pieces(text, "user"))
    assert len(told) <= extract.MAX_STATEMENTS
    assert sum(unit.text.count("use yarn") for unit in told) <= 1
    for unit in told:
        assert 0 <= unit.first <= unit.last < count
        assert len(content_words(unit.text)) <= units.MAX_CONTENT_WORDS and len(unit.text) <= units.MAX_CHARACTERS
    turn = StoredTurn(seq=1, uuid="u", session_id="s", project_seq=1, kind="user", text=text, at="", ordinal=1)
    found = [one.text for one in extract.statements(turn)]
    assert len(found) <= extract.MAX_STATEMENTS and found[: len(told)] == [unit.text for unit in told]
