"""csmd's server in `.claude.json`: an edit of one entry, whatever the file looks like and whoever else stands in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.errors import ConfigError
from csmd.hosts.claude import registration
from csmd.hosts.host_files import Registration
from csmd.text import json_edits

HOME = Path("/h/a b/csmd")
OTHER = Path("/h/other")
OURS = {"type": "stdio", "command": "/h/a b/csmd/hook/mcp", "args": [], "env": {}}
FOREIGN = {"command": "npx", "args": ["-y", "thing"], "env": {"TOKEN": "x"}}

ODD = [
    b"{}",
    b"",
    b" \n",
    b"\xef\xbb\xbf{}",
    b'{"numStartups":3,"projects":{"/p":{"mcpServers":{"csmd":{"command":"local"}}}}}',
    b'{\n\t"a" : 1 ,\n\t"mcpServers" : {\n\t\t"x" : { "command" : "y" }\n\t}\n}\n',
    b'{"mcpServers":{}}',
    b'{ "mcpServers": {"x": {"command": "y"}, "z": {"url": "u"}}, "last": [1,2 , 3] }',
    b'{\r\n  "mcpServers": {\r\n    "x": {\r\n      "command": "y"\r\n    }\r\n  }\r\n}\r\n',
    b'{"mcpServers": {"x": {"command": "y"}}, "mcpServers": {"q": {"command": "\\u00e9"}}}',
    '{"note": "ünïcode \\ud83d\\ude00", "mcpServers": {"x": {"command": "é"}}}'.encode(),
]


def merge(before: bytes | None, home: Path = HOME) -> bytes:
    text = json_edits.ensure_object(json_edits.decode(before, "claude.json"))
    return registration.merge_server(
        text, Registration(home=home, interpreter="/usr/bin/python3"), "claude.json"
    ).encode()


def remove(current: bytes, home: Path = HOME) -> bytes:
    return registration.remove_server(json_edits.decode(current, "claude.json"), home, "claude.json").encode()


def servers(data: bytes) -> dict[str, Any]:
    value = json.loads(data.decode("utf-8-sig"))
    return dict(value["mcpServers"])


@pytest.mark.parametrize("before", [None, *ODD], ids=repr)
def test_ours_is_added_behind_what_is_there_and_nothing_else_changes(before: bytes | None) -> None:
    merged = merge(before, HOME)
    found = servers(merged)
    assert found.pop("csmd") == OURS
    old = json.loads((before or b"{}").decode("utf-8-sig").strip() or "{}")
    assert found == old.get("mcpServers", {})
    left = json.loads(merged.decode("utf-8-sig"))
    assert {k: v for k, v in left.items() if k != "mcpServers"} == {k: v for k, v in old.items() if k != "mcpServers"}
    assert merge(merged, HOME) == merged, "merging what was merged changes nothing"
    assert remove(merged, HOME) != merged and remove(merged, OTHER) == merged


@pytest.mark.parametrize(
    "before", [one for one in ODD if one.strip(b"\xef\xbb\xbf \n") and b"{}}" not in one], ids=repr
)
def test_taking_ours_out_gives_the_very_bytes_back(before: bytes) -> None:
    assert remove(merge(before, HOME), HOME) == before
    assert remove(before, HOME) == before


def test_an_entry_of_ours_is_brought_up_to_date_where_it_stands_and_what_the_user_added_stays() -> None:
    old = {"mcpServers": {"mine": {"command": "sh", "args": [str(HOME / "hook" / "mcp")]}, "x": FOREIGN}}
    merged = merge(json.dumps(old).encode(), HOME)
    assert list(servers(merged)) == ["mine", "x"] and servers(merged)["mine"] == OURS
    theirs = {"mcpServers": {"memory": {**OURS, "alwaysLoad": True, "env": {"A": "b"}}}}
    assert merge(json.dumps(theirs).encode(), HOME) == json.dumps(theirs).encode()


def test_a_second_entry_of_ours_goes() -> None:
    twice = {"mcpServers": {"a": FOREIGN, "csmd": OURS, "b": FOREIGN, "again": OURS, "c": FOREIGN}}
    assert list(servers(merge(json.dumps(twice).encode(), HOME))) == ["a", "csmd", "b", "c"]
    left = remove(json.dumps(twice).encode(), HOME)
    assert servers(left) == {"a": FOREIGN, "b": FOREIGN, "c": FOREIGN}


@pytest.mark.parametrize("taken", [FOREIGN, {"command": str(OTHER / "hook" / "mcp")}, {"url": "http://x"}, 5], ids=str)
def test_a_server_that_is_named_csmd_and_is_not_ours_stays(taken: Any) -> None:
    before = json.dumps({"mcpServers": {"csmd": taken}}).encode()
    assert merge(before, HOME) == before
    assert remove(before, HOME) == before


def test_where_somebody_edited_the_file_since_only_ours_goes() -> None:
    merged = merge(b'{"a": 1}', HOME)
    edited = merged.replace(b'"a": 1', b'"a": 2, "new": [3]').replace(b'"mcpServers": {', b'"mcpServers": {"n": {}, ')
    assert json.loads(remove(edited, HOME)) == {"a": 2, "new": [3], "mcpServers": {"n": {}}}


@pytest.mark.parametrize(
    "broken", [b"{", b"[]", b'"x"', b"\xff", b'{"mcpServers": []}', b'{"mcpServers": null}'], ids=repr
)
def test_a_file_that_is_no_object_is_never_written(broken: bytes) -> None:
    for act in (merge, remove):
        with pytest.raises(ConfigError, match=r"claude\.json"):
            act(broken, HOME)


NAMES = st.text(max_size=6) | st.sampled_from(["csmd", "mcpServers"])
ENTRIES = st.sampled_from([FOREIGN, OURS, {}, [], None, {"command": str(HOME / "hook" / "mcp"), "x": 1}])


@pytest.mark.invariant("Of the assistant's own configuration only our entry comes and goes, under its lock")
@given(st.dictionaries(NAMES, ENTRIES, max_size=5), st.sampled_from([None, 0, 1, 4]), st.booleans())
def test_whatever_stands_there_only_ours_comes_and_goes(found: dict[str, Any], indent: int | None, tight: bool) -> None:
    separators = (",", ":") if tight else None
    before = json.dumps({"k": 1, "mcpServers": found}, indent=indent, separators=separators).encode()
    merged = merge(before, HOME)
    ours = [
        name
        for name, value in servers(merged).items()
        if isinstance(value, dict) and value.get("command") == OURS["command"]
    ]
    assert len(ours) == 1 or (ours == [] and "csmd" in found)
    left = json.loads(remove(merged, HOME))
    kept = {k: v for k, v in found.items() if not (isinstance(v, dict) and v.get("command") == OURS["command"])}
    assert left.pop("mcpServers", {}) == kept and left == {"k": 1}
