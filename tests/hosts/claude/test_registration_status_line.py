"""The status line in the settings: ours where there is none, a foreign one untouched, every other byte as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from csmd.config import Settings, parse_settings
from csmd.hosts.claude import registration
from csmd.hosts.host_files import Registration

HOME, PYTHON = Path("/h/a home's/csmd"), "/usr/bin/python3"
WANTED = Registration(home=HOME, interpreter=PYTHON)
OURS = {"type": "command", "command": registration.status_line_command(PYTHON, HOME)}
FOREIGN = {"type": "command", "command": "~/.claude/mine.sh", "padding": 0}


def merge(text: str) -> str:
    return registration.merge_status_line(text, WANTED, "x")


def remove(text: str) -> str:
    return registration.remove_status_line(text, HOME, "x")


@pytest.mark.parametrize(
    "text",
    [
        "{}", '{"model":"opus"}', '{ "model": "opus" }', '{\n  "model": "opus"\n}\n', '{\r\n\t"a": [1,\r\n2],\r\n\t"b": {}\r\n}',
        '{\n    "hooks": {\n        "Stop": []\n    },\n    "x": 1.0\n}', '{"statusline": 1}', '{"env": {"statusLine": "x"}}',
    ],
)  # fmt: skip
def test_what_was_put_in_comes_out_and_nothing_else(text: str) -> None:
    merged = merge(text)
    assert json.loads(merged) == {**json.loads(text), "statusLine": OURS}
    assert merge(merged) == merged
    assert remove(merged) == text
    assert not registration.describe_foreign_status_line(merged, WANTED, "x")
    assert not registration.describe_foreign_status_line(text, WANTED, "x")


@pytest.mark.invariant("A status line of the user's own is left alone; ours never fails and comes out to the byte")
@pytest.mark.parametrize(
    "theirs",
    [FOREIGN, None, "a text", {"type": "command"}, {"type": "command", "command": "x 'never closed"},
     {"type": "command", "command": "python3 /other/hook/csmd_line.py /other"},
     {"type": "command", "command": f"python3 {HOME}/hook/csmd_line.py.bak"}],
    ids=str,
)  # fmt: skip
def test_a_status_line_of_the_users_own_is_left_alone(theirs: Any) -> None:
    text = json.dumps({"statusLine": theirs, "model": "opus"}, indent=4)
    assert merge(text) == text and remove(text) == text
    assert registration.describe_foreign_status_line(text, WANTED, "x")


@pytest.mark.parametrize(
    "said",
    [registration.status_line_command("/old/python3", HOME), f"'{PYTHON}' \"/h/a home's/csmd/hook/csmd_line.py\" x",
     f"sh -c \"echo; exec '{PYTHON}' '/h/a home'\\\\''s/csmd/hook/csmd_line.py'\""],
)  # fmt: skip
def test_ours_is_known_however_it_is_written_and_brought_up_to_date(said: str) -> None:
    text = json.dumps({"a": 1, "statusLine": {"type": "command", "command": said}, "b": [2]}, indent=2)
    assert json.loads(merge(text)) == {"a": 1, "statusLine": OURS, "b": [2]}
    assert json.loads(remove(text)) == {"a": 1, "b": [2]}


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.invariant("A status line of the user's own is left alone; ours never fails and comes out to the byte")
@given(some.dictionaries(some.text(max_size=5), JSON, max_size=4), some.sampled_from([None, 2, 4, "\t"]))
def test_any_settings_come_back_to_the_byte(value: dict[str, Any], indent: Any) -> None:
    text = json.dumps(value, indent=indent)
    assert remove(merge(text)) == text
    assert json.loads(merge(text)) == {**value, "statusLine": OURS}


def test_who_has_one_is_told_what_to_run() -> None:
    said = registration.describe_foreign_status_line(json.dumps({"statusLine": FOREIGN}), WANTED, "x")
    assert registration.status_line_command(PYTHON, HOME) == said.splitlines()[1]


def test_the_key_is_one_word_and_on_is_true() -> None:
    assert Settings.key("status_line") == "status_line"
    assert not Settings().status_line
    for word in ("on", "true", "yes"):
        assert parse_settings(f"status_line: {word}", where="c").status_line
    assert not parse_settings("status_line: off", where="c").status_line
