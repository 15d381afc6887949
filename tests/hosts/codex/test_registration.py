"""csmd's entries in Codex' `hooks.json`: stable to the byte, behind others', and gone without a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from csmd.hosts.codex.registration import EVENTS, HOOKS
from csmd.hosts.host_files import Registration

HOME = Path("/h/a home's/csmd")
FOREIGN = '{\n\t"hooks" : { "Stop": [ {"hooks":[{"type":"command","command":"say done"}]} ] },\n\t"mine": 1\n}'


def merged(text: str, interpreter: str = "/usr/bin/python3", events: tuple[str, ...] = ()) -> str:
    return HOOKS.merge(text, Registration(home=HOME, interpreter=interpreter, events=events), "x")


@pytest.mark.invariant("A line that Codex' user has trusted stays as it is")
def test_the_lines_do_not_change_with_python_or_version() -> None:
    lines = {event: HOOKS.command(Path("/h/csmd"), event) for event in EVENTS}
    # Another line here would stop the hooks of everybody who trusted these, without a word.
    assert lines == {
        "SessionStart": "/h/csmd/hook/codex SessionStart || true",
        "UserPromptSubmit": "/h/csmd/hook/codex UserPromptSubmit || true",
        "Stop": "/h/csmd/hook/codex Stop || true",
        "SubagentStop": "/h/csmd/hook/codex SubagentStop || true",
        "SessionEnd": "/h/csmd/hook/codex SessionEnd || true",
    }
    assert dict(EVENTS) == {
        "SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SubagentStop": 5, "SessionEnd": 3,
    }  # fmt: skip
    once = merged("{}")
    assert merged(once, "/opt/python4", ("SessionStart", "PostCompact")) == once


def test_ours_stand_behind_others_and_leave_them_alone() -> None:
    groups = json.loads(merged(FOREIGN))["hooks"]["Stop"]
    assert groups[0] == json.loads(FOREIGN)["hooks"]["Stop"][0] and len(groups) == 2
    assert HOOKS.remove(merged(FOREIGN), HOME, "x") == FOREIGN
    assert HOOKS.remove(FOREIGN, HOME, "x") == FOREIGN


def test_the_hooks_of_another_home_are_others() -> None:
    other = HOOKS.merge("{}", Registration(home=Path("/o/csmd"), interpreter="p"), "x")
    both = merged(other)
    assert HOOKS.remove(both, HOME, "x") == other
