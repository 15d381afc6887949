"""Edits of JSON text: a member put in takes on the file's form, and taking it out gives every byte back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.errors import ConfigError
from csmd.hosts import hook_entries
from csmd.hosts.gemini import registration
from csmd.hosts.host_files import Registration
from csmd.text import json_edits


def with_member(text: str, key: str, value: Any) -> str:
    found = json_edits.find_member(text, json_edits.find_root(text), key)
    if found is None:
        return json_edits.append_item(text, json_edits.find_root(text), key, value)
    return json_edits.apply_edits(text, json_edits.plan_replacement(text, found, value))


CASES = [
    ("{}\n", 1, '{\n  "b": 1\n}\n'),
    ('{"x":1}', {"c": 2}, '{"x":1,"b":{"c":2}}'),
    ('{"x": [1]}', 2, '{"x": [1], "b": 2}'),
    ('{\n\t"a": {}\n}', 2, '{\n\t"a": {},\n\t"b": 2\n}'),
    ('{"b": 1,   "x": 2}', 3, '{"b": 3,   "x": 2}'),
    ('{"b":   1.0}', 1, '{"b":   1.0}'),
]


@pytest.mark.parametrize(("before", "value", "after"), CASES)
def test_a_member_is_put_into_the_files_own_form(before: str, value: Any, after: str) -> None:
    assert with_member(before, "b", value) == with_member(after, "b", value) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"x":1,"b":1}', '{"x":1}'),
        ('{"b": 1, "x": 2}', '{"x": 2}'),
        ('{ "b": 1 }', "{ }"),
        ('{"b":1,"b":2}', '{"b":1}'),
    ],
)
def test_a_member_goes_and_nothing_else(before: str, after: str) -> None:
    left = json_edits.remove_member(before, json_edits.find_root(before), "b")
    assert left.replace(" ", "") == after.replace(" ", "")


@pytest.mark.parametrize(
    ("data", "where"), [(b"[]", "line 1"), (b'{"a": 1,}', "line 1 column 9"), (b'{"a": "\xff"}', "byte 7")]
)
def test_a_file_that_is_no_object_says_where_it_is_wrong(data: bytes, where: str) -> None:
    with pytest.raises(ConfigError, match=rf"the file.*{where}"):
        json_edits.decode(data, "the file")


@pytest.mark.parametrize("text", ["", " \n", "\ufeff", "\ufeff\r\n"])
def test_a_blank_file_becomes_an_empty_object(text: str) -> None:
    assert json_edits.is_blank(text)
    assert json.loads(json_edits.ensure_object(text).removeprefix("\ufeff")) == {}
    assert json_edits.ensure_object(text).startswith("\ufeff") == text.startswith("\ufeff")


values = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(st.sampled_from(["a", "z", 'q"', "{"]), values, max_size=3),
    st.sampled_from([None, 1, 2, "\t"]),
)
def test_putting_a_member_in_and_taking_it_out_changes_nothing_of_others(value: Any, indent: Any) -> None:
    before = json.dumps(value, indent=indent)
    merged = with_member(before, "csmd", {"command": ["x"]})
    assert json.loads(merged) == {**value, "csmd": {"command": ["x"]}}
    left = json_edits.remove_member(merged, json_edits.find_root(merged), "csmd")
    assert left == before if value else json.loads(left) == {}


OF_OTHERS = [
    '{\n  "theme": "dark",\n}\n', '{"theme": "dark",}', '{"theme": "dark", }', '{ "theme": "dark" , }',
    '{\n  "theme": "dark",\n  "hooks": {\n    "Other": [1,],\n  },\n}\n', '{\n  // why\n  "theme": "dark", // mine\n  // last\n}\n',
    '{\n  "theme": "dark" /* mine */,\n}\n', '{\n  "theme": "dark"\n  , // why\n}\n', '{\r\n\t"theme": ["dark",],\r\n}',
    '{\n  // none\n  "theme": "dark"\n}\n',
]  # fmt: skip


@pytest.mark.parametrize("before", OF_OTHERS)
@pytest.mark.parametrize("edit", ['"dark"', '"light"', '{"name": "light",}'])
def test_what_is_taken_out_after_the_user_edited_the_file_leaves_all_bytes_of_the_users(before: str, edit: str) -> None:
    home = Path("/home/csmd")
    merged = registration.HOOKS.merge(before, Registration(home=home, interpreter="python3"), "f")
    assert hook_entries.parse_settings(merged), merged
    assert registration.HOOKS.remove(merged.replace('"dark"', edit), home, "f") == before.replace('"dark"', edit)
