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

from csmd.cli import edited, entries, json_text
from csmd.cli.entries import Kind, Ours
from csmd.config import Settings

HOME = Path("/h/csmd")
LINE = ("statusLine",)


def with_line(before: bytes | None, ours: Ours, where: str) -> bytes:
    return json_text.with_member(edited.text_of(before, where), LINE, {"command": str(ours.home)}).encode()


def without_line(current: bytes, home: Path, where: str) -> bytes:
    text = edited.text_of(current, where)
    mine = json_text.value_at(text, LINE) == {"command": str(home)}
    return json_text.without_path(text, LINE).encode() if mine else current


KINDS = (*entries.KINDS[:1], Kind(name="line", what="a line", file=entries.settings_file, merge=with_line,
                                  remove=without_line, wanted=lambda ours: "StopFailure" in ours.events))  # fmt: skip


def ours(*newer: str) -> Ours:
    return Ours(home=HOME, interpreter="/usr/bin/python3", python="/v/python", chosen=Settings(),
                events=("Stop", "SessionEnd", *newer))  # fmt: skip


def remove(data: bytes) -> bytes:
    return entries.removed(data, KINDS, HOME, "settings.json")


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
objects = st.dictionaries(
    st.sampled_from(["model", "hooks", "env", "z", "é"]),
    scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.text(max_size=3), scalars, max_size=2),
    max_size=4,
)


@hypothesis.settings(max_examples=40)
@given(objects, st.sampled_from([None, 0, 2, "\t"]), st.sampled_from(["", "\n", "\r\n"]), st.booleans())
def test_any_file_gets_all_kinds_and_is_given_back(
    value: dict[str, Any], indent: Any, end: str, first_less: bool
) -> None:
    if "hooks" in value:
        value["hooks"] = {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}], "Odd": []}
    before = (json.dumps(value, indent=indent, ensure_ascii=False) + end).encode()
    first = entries.merged(before, KINDS, ours() if first_less else ours("StopFailure"), "x") or b""
    entry = edited.entry(before, first, remove)
    merged = entries.merged(first, KINDS, ours("StopFailure"), "x") or b""
    entry = edited.entry(first, merged, remove, entry)
    assert entries.merged(merged, KINDS, ours("StopFailure"), "x") == merged
    found = json.loads(merged)
    assert found.pop("statusLine") == {"command": str(HOME)}
    assert {key: one for key, one in found.items() if key != "hooks"} == {
        k: one for k, one in value.items() if k != "hooks"
    }
    assert edited.removal(merged, json.loads(json.dumps(entry)), remove) == before


def test_a_kind_that_is_not_wanted_any_more_goes() -> None:
    merged = entries.merged(b'{"a": 1}', KINDS, ours("StopFailure"), "x")
    less = entries.merged(merged, KINDS, ours(), "x") or b""
    assert json.loads(less).keys() == {"a", "hooks"} and list(json.loads(less)["hooks"]) == ["Stop", "SessionEnd"]
    assert entries.merged(None, KINDS[1:], ours(), "x") is None
    assert entries.told(less, KINDS, ours(), "x") == ("hooks", ())
    assert entries.told(less, KINDS, ours("StopFailure"), "x") == ("hooks and a line", ())


def test_what_somebody_elses_entry_keeps_out_is_not_told_as_put_in() -> None:
    chosen = replace(ours(), chosen=Settings(status_line=True))
    foreign = b'{"statusLine": {"type": "command", "command": "mine"}, "mcpServers": {"csmd": {"command": "x"}}}'
    what, out = entries.told(foreign, entries.KINDS, chosen, "the file")
    assert what == "hooks" and "csmd_line.py" in out[0] and "the file has another server named csmd" in out[1]
    own = entries.merged(b"{}", entries.KINDS, chosen, "x") or b""
    assert entries.told(own, entries.KINDS, chosen, "x") == ("hooks and status line and memory server", ())


def test_a_file_that_only_our_entries_made_goes_with_them_and_one_with_more_stays() -> None:
    merged = entries.merged(None, KINDS, ours("StopFailure"), "x") or b""
    entry = edited.entry(None, merged, remove)
    assert edited.removal(merged, entry, remove) is None
    grown = merged.replace(b"{\n", b'{\n  "numStartups": 3,\n', 1)
    assert json.loads(edited.removal(grown, entry, remove) or b"") == {"numStartups": 3}


def test_the_names_in_the_record_are_unique_and_an_unknown_one_is_left_alone() -> None:
    assert len({kind.name for kind in entries.KINDS}) == len(entries.KINDS)
    assert entries.named(["hooks", "of a newer csmd"]) == [entries.KINDS[0]]


@pytest.mark.parametrize("folder", [Path("/h/.claude"), Path("/other")])
def test_every_kind_has_its_file_in_each_directory(folder: Path) -> None:
    assert sum(len(kinds) for kinds in entries.files(folder).values()) == len(entries.KINDS)
    assert folder / "settings.json" in entries.files(folder)
