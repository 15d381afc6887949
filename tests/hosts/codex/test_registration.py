"""csmd's entries in Codex' `hooks.json`: stable to the byte, behind others', and gone without a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from csmd.hosts.codex import registration
from csmd.hosts.host_files import Registration

HOME = Path("/h/a home's/csmd")
FOREIGN = '{\n\t"hooks" : { "Stop": [ {"hooks":[{"type":"command","command":"say done"}]} ] },\n\t"mine": 1\n}'


def merged(text: str, interpreter: str = "/usr/bin/python3", events: tuple[str, ...] = ()) -> str:
    return registration.merge_codex_hooks(text, Registration(home=HOME, interpreter=interpreter, events=events), "x")


@pytest.mark.invariant("A line that Codex' user has trusted stays as it is")
def test_the_lines_do_not_change_with_python_or_version() -> None:
    lines = {event: registration.hook_command(Path("/h/csmd"), event) for event in registration.EVENTS}
    # Another line here would stop the hooks of everybody who trusted these, without a word.
    assert lines == {
        "SessionStart": "/h/csmd/hook/codex SessionStart || true",
        "UserPromptSubmit": "/h/csmd/hook/codex UserPromptSubmit || true",
        "Stop": "/h/csmd/hook/codex Stop || true",
        "SubagentStop": "/h/csmd/hook/codex SubagentStop || true",
        "SessionEnd": "/h/csmd/hook/codex SessionEnd || true",
    }
    assert dict(registration.EVENTS) == {
        "SessionStart": 10, "UserPromptSubmit": 5, "Stop": 5, "SubagentStop": 5, "SessionEnd": 3,
    }  # fmt: skip
    once = merged("{}")
    assert merged(once, "/opt/python4", ("SessionStart", "PostCompact")) == once


def test_ours_stand_behind_others_and_leave_them_alone() -> None:
    groups = json.loads(merged(FOREIGN))["hooks"]["Stop"]
    assert groups[0] == json.loads(FOREIGN)["hooks"]["Stop"][0] and len(groups) == 2
    assert registration.remove_codex_hooks(merged(FOREIGN), HOME, "x") == FOREIGN
    assert registration.remove_codex_hooks(FOREIGN, HOME, "x") == FOREIGN


def test_the_hooks_of_another_home_are_others() -> None:
    other = registration.merge_codex_hooks("{}", Registration(home=Path("/o/csmd"), interpreter="p"), "x")
    both = merged(other)
    assert registration.remove_codex_hooks(both, HOME, "x") == other
