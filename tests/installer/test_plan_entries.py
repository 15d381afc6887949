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

from csmd.config import Settings
from csmd.installer import foreign_files, plan, registration
from csmd.installer.plan import Kind, Ours

HOME = Path("/h/csmd")
LINE = ("statusLine",)


def with_line(before: bytes | None, ours: Ours, where: str) -> bytes:
    return registration.with_member(foreign_files.text_of(before, where), LINE, {"command": str(ours.home)}).encode()


def without_line(current: bytes, home: Path, where: str) -> bytes:
    text = foreign_files.text_of(current, where)
    mine = registration.value_at(text, LINE) == {"command": str(home)}
    return registration.without_path(text, LINE).encode() if mine else current


KINDS = (*plan.KINDS[:1], Kind(name="line", what="a line", file=plan.settings_file, merge=with_line,
                                  remove=without_line, wanted=lambda ours: "StopFailure" in ours.events))  # fmt: skip


def ours(*newer: str) -> Ours:
    return Ours(home=HOME, interpreter="/usr/bin/python3", python="/v/python", chosen=Settings(),
                events=("Stop", "SessionEnd", *newer))  # fmt: skip


def remove(data: bytes) -> bytes:
    return plan.removed(data, KINDS, HOME, "settings.json")


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
    first = plan.merged(before, KINDS, ours() if first_less else ours("StopFailure"), "x") or b""
    entry = foreign_files.entry(before, first, remove)
    merged = plan.merged(first, KINDS, ours("StopFailure"), "x") or b""
    entry = foreign_files.entry(first, merged, remove, entry)
    assert plan.merged(merged, KINDS, ours("StopFailure"), "x") == merged
    found = json.loads(merged)
    assert found.pop("statusLine") == {"command": str(HOME)}
    assert {key: one for key, one in found.items() if key != "hooks"} == {
        k: one for k, one in value.items() if k != "hooks"
    }
    assert foreign_files.removal(merged, json.loads(json.dumps(entry)), remove) == before


def test_a_kind_that_is_not_wanted_any_more_goes() -> None:
    merged = plan.merged(b'{"a": 1}', KINDS, ours("StopFailure"), "x")
    less = plan.merged(merged, KINDS, ours(), "x") or b""
    assert json.loads(less).keys() == {"a", "hooks"} and list(json.loads(less)["hooks"]) == ["Stop", "SessionEnd"]
    assert plan.merged(None, KINDS[1:], ours(), "x") is None
    assert plan.told(less, KINDS, ours(), "x") == ("hooks", ())
    assert plan.told(less, KINDS, ours("StopFailure"), "x") == ("hooks and a line", ())


def test_what_somebody_elses_entry_keeps_out_is_not_told_as_put_in() -> None:
    chosen = replace(ours(), chosen=Settings(status_line=True))
    foreign = b'{"statusLine": {"type": "command", "command": "mine"}, "mcpServers": {"csmd": {"command": "x"}}}'
    what, out = plan.told(foreign, plan.KINDS, chosen, "the file")
    assert what == "hooks" and "csmd_line.py" in out[0] and "the file has another server named csmd" in out[1]
    own = plan.merged(b"{}", plan.KINDS, chosen, "x") or b""
    assert plan.told(own, plan.KINDS, chosen, "x") == ("hooks and status line and memory server", ())


def test_a_file_that_only_our_entries_made_goes_with_them_and_one_with_more_stays() -> None:
    merged = plan.merged(None, KINDS, ours("StopFailure"), "x") or b""
    entry = foreign_files.entry(None, merged, remove)
    assert foreign_files.removal(merged, entry, remove) is None
    grown = merged.replace(b"{\n", b'{\n  "numStartups": 3,\n', 1)
    assert json.loads(foreign_files.removal(grown, entry, remove) or b"") == {"numStartups": 3}


def test_the_names_in_the_record_are_unique_and_an_unknown_one_is_left_alone() -> None:
    assert len({kind.name for kind in plan.KINDS}) == len(plan.KINDS)
    assert plan.named(["hooks", "of a newer csmd"]) == [plan.KINDS[0]]


@pytest.mark.parametrize("folder", [Path("/h/.claude"), Path("/other")])
def test_every_kind_has_its_file_in_each_directory(folder: Path) -> None:
    assert sum(len(kinds) for kinds in plan.files(folder).values()) == len(plan.KINDS)
    assert folder / "settings.json" in plan.files(folder)
