"""csmd's hooks in assistants' settings: behind others', comments kept, and gone without a trace; and whether they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from csmd.errors import ConfigError
from csmd.hosts.codex import registration as codex
from csmd.hosts.copilot import registration as copilot
from csmd.hosts.droid import registration as droid
from csmd.hosts.gemini import registration as gemini
from csmd.hosts.hook_entries import HookEntries
from csmd.hosts.host_files import Registration
from csmd.hosts.opencode import registration as opencode
from csmd.hosts.qwen import registration as qwen
from csmd.text import json_edits

HOME, FOLDER = Path("/h/a home's/csmd"), Path("/h/.host")
HOSTS = {module.HOOKS.host: module.HOOKS for module in (gemini, qwen, copilot, droid)}
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
    '{"version": 1, "hooks": {"sessionStart": [{"type": "command", "bash": "say hello"}]}}',
    '{\n  "mine": [1, 2]\n}\n',
]
each_host = pytest.mark.parametrize("hooks", HOSTS.values(), ids=HOSTS)


def wanted(home: Path = HOME, interpreter: str = "/usr/bin/python3") -> Registration:
    return Registration(home=home, interpreter=interpreter)


def plain(text: str) -> object:
    return json.loads(json_edits.blank_comments(text))


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
@each_host
@pytest.mark.parametrize("text", FILES)
def test_ours_stand_behind_others_and_leave_every_byte_alone(hooks: HookEntries, text: str) -> None:
    once = hooks.merge(text, wanted(), "x")
    assert hooks.merge(once, wanted(interpreter="/opt/python4"), "x") == once
    assert hooks.remove(once, HOME, "x") == text and hooks.remove(text, HOME, "x") == text
    before, after = (json.loads(json_edits.blank_comments(each)) for each in (text, once))
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups if isinstance(groups, list) else groups
    ours = {event: after["hooks"][event][-1]["hooks"][-1] for event in hooks.events}
    second = 1 if hooks.host in ("copilot", "droid") else 1000
    assert {event: handler["timeout"] for event, handler in ours.items()} == {
        event: seconds * second for event, seconds in hooks.events.items()
    }


@each_host
def test_the_lines_run_a_script_of_the_home_and_end_with_0(hooks: HookEntries) -> None:
    merged = json.loads(hooks.merge("{}", wanted(Path("/h/csmd")), "x"))
    agents = ["SubagentStop"] if hooks.host in ("copilot", "qwen") else []
    assert [groups[0]["hooks"][0]["command"] for groups in merged["hooks"].values()] == [
        f"/h/csmd/hook/{hooks.host} {event} || true"
        for event in ("SessionStart", "UserPromptSubmit", "Stop", *agents, "SessionEnd")
    ]
    assert list(hooks.events.values()) == [10, *[5] * (len(hooks.events) - 1)]


@each_host
def test_an_entry_that_was_altered_or_doubled_is_put_right(hooks: HookEntries) -> None:
    once, event = hooks.merge(COMMENTED, wanted(), "x"), list(hooks.events)[2]
    altered = once.replace(' Stop || true"', ' Stop"', 1)
    assert altered != once and plain(hooks.merge(altered, wanted(), "x")) == plain(once)
    group = json.loads(hooks.merge("{}", wanted(), "x"))["hooks"][event][0]
    doubled = json_edits.append_item(once, once.index("[", once.index(f'"{event}"')), None, group)
    assert hooks.remove(doubled, HOME, "x") == COMMENTED


@each_host
def test_the_hooks_of_another_home_are_others(hooks: HookEntries) -> None:
    other = hooks.merge("{}", wanted(Path("/o/csmd")), "x")
    assert hooks.remove(hooks.merge(other, wanted(), "x"), HOME, "x") == other


@each_host
@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"EVENT": {}}}'])
def test_settings_that_cannot_hold_hooks_are_named(hooks: HookEntries, text: str) -> None:
    with pytest.raises(ConfigError, match=r"settings\.json: `hooks"):
        hooks.merge(text.replace("EVENT", list(hooks.events)[1]), wanted(), "settings.json")


NONE = ("", "")


@pytest.mark.parametrize(
    ("host", "edit", "beside", "state"),
    [
        *((host, NONE, None, "there") for host in HOSTS),
        *((host, ('"SessionStart"', '"Other"'), None, "gone") for host in HOSTS),
        ("gemini", ("{", '{"hooksConfig": {"enabled": false}, // off\n'), None, "off"),
        ("gemini", ("{", '{"hooksConfig": {"disabled": ["SCRIPT Stop || true"]},'), None, "off"),
        ("gemini", ("{", '{"hooksConfig": {"disabled": ["other"]},'), None, "there"),
        ("qwen", ("{", '{"disableAllHooks": true,'), None, "off"),
        ("copilot", ("{", '{"disableAllHooks": true,'), None, "off"),
        ("droid", ('"hooks": {', '"hooks": {"hooksDisabled": true,'), None, "off"),
        ("droid", ('"hooks": {', '"hooks": {"hooksDisabled": false,'), None, "there"),
        ("droid", NONE, '{"PreToolUse": [{"hooks": []}]}', "there"),
        ("droid", NONE, '{"SessionStart": [{"hooks": []}]}', "off"),
    ],
)
def test_hooks_run_where_all_are_registered_and_none_is_switched_off(
    host: str, edit: tuple[str, str], beside: str | None, state: str
) -> None:
    hooks = HOSTS[host]
    old, new = edit
    text = json.dumps(json.loads(hooks.merge("{}", wanted(Path("/h/csmd")), "x")))
    files = {
        str(hooks.file(FOLDER)): text.replace(old, new.replace("SCRIPT", "/h/csmd/hook/gemini"), 1),
        str(FOLDER / "hooks.json"): beside,
    }
    assert hooks.state(FOLDER, Path("/h/csmd"), files.get) == state


@each_host
@pytest.mark.parametrize(
    ("text", "state"), [(None, "gone"), ("", "gone"), ("{}", "gone"), ("{", "unknown"), ("[]", "unknown")]
)
def test_settings_without_hooks_have_none_and_unreadable_ones_say_nothing(
    hooks: HookEntries, text: str | None, state: str
) -> None:
    assert hooks.state(FOLDER, HOME, {str(hooks.file(FOLDER)): text}.get) == state


@pytest.mark.parametrize(
    ("events", "trusted", "state"),
    [((), (), "gone"), (codex.EVENTS, (), "untrusted"), (codex.EVENTS, ("session_start",), "untrusted"),
     (codex.EVENTS, ("session_start", "user_prompt_submit", "stop", "subagent_stop", "session_end"), "there")],
)  # fmt: skip
def test_codex_runs_hooks_that_are_registered_and_trusted(
    events: tuple[str, ...], trusted: tuple[str, ...], state: str
) -> None:
    home = Path("/h/csmd")
    files = {
        "/h/.codex/hooks.json": "\n".join(codex.HOOKS.command(home, event) for event in events),
        "/h/.codex/config.toml": "".join(f'[hooks.state."/h/.codex/hooks.json:{event}:0:0"]\n' for event in trusted),
    }
    assert codex.hooks_state(Path("/h/.codex"), home, files.get) == state


@pytest.mark.parametrize(("home", "state"), [(HOME, "there"), (Path("/o/csmd"), "gone"), (None, "gone")])
def test_a_plugin_is_there_where_its_file_loads_this_home(home: Path | None, state: str) -> None:
    files = {str(opencode.locate_plugin("kilo")): home and opencode.format_plugin("kilo", home)}
    assert opencode.hooks_state("kilo", Path("/h/.local/share/opencode"), HOME, files.get) == state
