"""Entries of several kinds in one file: put in and taken out together, each back to the very bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.hosts.claude.registration import Wanted
from csmd.installer import foreign_files, plan
from csmd.installer.plan import Kind
from csmd.text import json_edits

HOME = Path("/h/csmd")
LINE = "statusLine"


def with_line(text: str, wanted: Wanted, where: str) -> str:
    at, value = json_edits.root(text), {"command": str(wanted.home)}
    found = json_edits.member(text, at, LINE)
    if found is None:
        return json_edits.append(text, at, LINE, value)
    return json_edits.apply(text, json_edits.replacement(text, found, value))


def without_line(text: str, home: Path, where: str) -> str:
    found = json_edits.member(text, json_edits.root(text), LINE)
    mine = found is not None and json_edits.value_of(text, found) == {"command": str(home)}
    return json_edits.without_member(text, json_edits.root(text), LINE) if mine else text


KINDS = (*plan.KINDS[:1], Kind(name="line", what="a line", file=plan.settings_file, merge=with_line,
                                  remove=without_line, is_wanted=lambda wanted: "StopFailure" in wanted.events))  # fmt: skip


def ours(*newer: str) -> Wanted:
    return Wanted(home=HOME, interpreter="/usr/bin/python3", events=("Stop", "SessionEnd", *newer))


def remove(data: bytes) -> bytes:
    return plan.without_entries(data, KINDS, HOME, "settings.json")


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
objects = st.dictionaries(
    st.sampled_from(["model", "hooks", "env", "z", "é"]),
    scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=3), scalars, max_size=2),
    max_size=4,
)


@pytest.mark.invariant(
    "A file of the assistant's in trouble keeps no other from being served; what its owner writes meanwhile is kept; any file is given back byte for byte"
)
@hypothesis.settings(max_examples=40)
@given(objects, st.sampled_from([None, 0, 2, "\t"]), st.sampled_from(["", "\n", "\r\n"]), st.booleans())
def test_any_file_gets_all_kinds_and_is_given_back(
    value: dict[str, Any], indent: Any, end: str, first_less: bool
) -> None:
    if "hooks" in value:
        value["hooks"] = {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}], "Odd": []}
    before = (json.dumps(value, indent=indent, ensure_ascii=False) + end).encode()
    first = plan.with_entries(before, KINDS, ours() if first_less else ours("StopFailure"), "x") or b""
    entry = foreign_files.record_entry(before, first, remove)
    merged = plan.with_entries(first, KINDS, ours("StopFailure"), "x") or b""
    entry = foreign_files.record_entry(first, merged, remove, entry)
    assert plan.with_entries(merged, KINDS, ours("StopFailure"), "x") == merged
    found = json.loads(merged)
    assert found.pop("statusLine") == {"command": str(HOME)}
    assert {key: one for key, one in found.items() if key != "hooks"} == {
        k: one for k, one in value.items() if k != "hooks"
    }
    assert foreign_files.restored(merged, json.loads(json.dumps(entry)), remove) == before


def test_a_kind_that_is_not_wanted_any_more_goes() -> None:
    merged = plan.with_entries(b'{"a": 1}', KINDS, ours("StopFailure"), "x")
    less = plan.with_entries(merged, KINDS, ours(), "x") or b""
    assert json.loads(less).keys() == {"a", "hooks"} and list(json.loads(less)["hooks"]) == ["Stop", "SessionEnd"]
    assert plan.with_entries(None, KINDS[1:], ours(), "x") is None
    assert plan.describe_entries(less, KINDS, ours(), "x") == ("hooks", ())
    assert plan.describe_entries(less, KINDS, ours("StopFailure"), "x") == ("hooks and a line", ())


def test_what_somebody_elses_entry_keeps_out_is_not_told_as_put_in() -> None:
    chosen = replace(ours(), status_line=True)
    foreign = b'{"statusLine": {"type": "command", "command": "mine"}, "mcpServers": {"csmd": {"command": "x"}}}'
    what, out = plan.describe_entries(foreign, plan.KINDS, chosen, "the file")
    assert what == "hooks" and "csmd_line.py" in out[0] and "the file has another server named csmd" in out[1]
    own = plan.with_entries(b"{}", plan.KINDS, chosen, "x") or b""
    assert plan.describe_entries(own, plan.KINDS, chosen, "x") == ("hooks and status line and memory server", ())


def test_a_file_that_only_our_entries_made_goes_with_them_and_one_with_more_stays() -> None:
    merged = plan.with_entries(None, KINDS, ours("StopFailure"), "x") or b""
    entry = foreign_files.record_entry(None, merged, remove)
    assert foreign_files.restored(merged, entry, remove) is None
    grown = merged.replace(b"{\n", b'{\n  "numStartups": 3,\n', 1)
    assert json.loads(foreign_files.restored(grown, entry, remove) or b"") == {"numStartups": 3}


def test_the_names_in_the_record_are_unique() -> None:
    assert len({kind.name for kind in plan.KINDS}) == len(plan.KINDS)
