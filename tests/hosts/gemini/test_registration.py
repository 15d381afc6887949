"""csmd's hooks in the settings of Gemini CLI and Qwen Code: behind others', comments kept, and gone without a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from csmd.errors import ConfigError
from csmd.hosts.gemini import registration as gemini
from csmd.hosts.host_files import Registration
from csmd.hosts.qwen import registration as qwen
from csmd.text import json_edits

HOME = Path("/h/a home's/csmd")
COMMENTED = """{
  // mine
  "model": {"name": "gemini-2.5-flash"}, // the fast one
  /* hooks */ "hooks": {
    // at the start
    "SessionStart": [
      {
        "hooks": [
          {"type": "command", "command": "say hello", "timeout": 1000} // loud
        ]
      } // the only one
    ]
  } // no more
  // end
}
"""
FILES = [
    COMMENTED,
    '{\n\t"hooks" : { "enabled": true, "disabled": ["x"], "SessionEnd": [ {"matcher": "*", "hooks":[{"type":"command","command":"say done"}]} ] },\r\n\t"mine": 1\n}',
    '{"hooks":{"BeforeAgent":[{"hooks":[{"type":"command","command":"a"},{"type":"command","command":"b"}]}]}}',
    '{\n  "mine": [1, 2]\n}\n',
]
HOSTS = [
    (gemini, gemini.merge_gemini_hooks, gemini.remove_gemini_hooks),
    (qwen, qwen.merge_qwen_hooks, qwen.remove_qwen_hooks),
]


def wanted(home: Path = HOME, interpreter: str = "/usr/bin/python3") -> Registration:
    return Registration(home=home, interpreter=interpreter)


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
@pytest.mark.parametrize("host", HOSTS, ids=["gemini", "qwen"])
@pytest.mark.parametrize("text", FILES)
def test_ours_stand_behind_others_and_leave_every_byte_alone(host, text) -> None:  # type: ignore[no-untyped-def]
    module, merge, remove = host
    once = merge(text, wanted(), "x")
    assert merge(once, wanted(interpreter="/opt/python4"), "x") == once
    assert remove(once, HOME, "x") == text and remove(text, HOME, "x") == text
    before, after = (json.loads(json_edits.without_comments(each)) for each in (text, once))
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups if isinstance(groups, list) else groups
    ours = {event: after["hooks"][event][-1]["hooks"][-1] for event in module.EVENTS}
    assert {event: handler["timeout"] for event, handler in ours.items()} == {
        event: seconds * 1000 for event, seconds in module.EVENTS.items()
    }


def test_the_lines_run_a_script_of_the_home_and_end_with_0() -> None:
    merged = json.loads(gemini.merge_gemini_hooks("{}", wanted(Path("/h/csmd")), "x"))
    assert [groups[0]["hooks"][0]["command"] for groups in merged["hooks"].values()] == [
        "/h/csmd/hook/gemini SessionStart || true",
        "/h/csmd/hook/gemini UserPromptSubmit || true",
        "/h/csmd/hook/gemini Stop || true",
        "/h/csmd/hook/gemini SessionEnd || true",
    ]


def test_an_entry_that_was_altered_or_doubled_is_put_right() -> None:
    once = gemini.merge_gemini_hooks(COMMENTED, wanted(), "x")
    altered = once.replace('"timeout": 5000', '"timeout": 7', 1)
    assert json.loads(json_edits.without_comments(gemini.merge_gemini_hooks(altered, wanted(), "x"))) == json.loads(
        json_edits.without_comments(once)
    )
    group = json.loads(gemini.merge_gemini_hooks("{}", wanted(), "x"))["hooks"]["AfterAgent"][0]
    doubled = json_edits.append(once, once.index("[", once.index('"AfterAgent"')), None, group)
    assert gemini.remove_gemini_hooks(doubled, HOME, "x") == COMMENTED


def test_the_hooks_of_another_home_are_others() -> None:
    other = gemini.merge_gemini_hooks("{}", wanted(Path("/o/csmd")), "x")
    both = gemini.merge_gemini_hooks(other, wanted(), "x")
    assert gemini.remove_gemini_hooks(both, HOME, "x") == other


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"AfterAgent": {}}}'])
def test_settings_that_cannot_hold_hooks_are_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"settings\.json: `hooks"):
        gemini.merge_gemini_hooks(text, wanted(), "settings.json")
