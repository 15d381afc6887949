"""Merging csmd's hooks into settings files and removing them: everything else keeps every byte."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csmd.errors import ConfigError
from csmd.hosts.claude import registration
from csmd.hosts.claude.registration import BASE_TIMEOUTS, Registration
from csmd.installer import foreign_files
from csmd.text import json_edits

HOME = Path("/h/a home's/csmd")
PYTHON = "/usr/bin/python3"
FOREIGN: dict[str, Any] = {
    "permissions": {"allow": ["Bash(ls:*)", "Read"]},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done", "timeout": 3}]}],
        "PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "fmt"}]}],
        "PreCompact": [],
    },
    "model": "opus",
}


def merge(
    current: bytes | None,
    interpreter: str = PYTHON,
    home: Path = HOME,
    *,
    events: tuple[str, ...] = tuple(BASE_TIMEOUTS),
    where: str = "x",
) -> bytes:
    text = json_edits.ensure_object(json_edits.decode(current, where))
    return registration.merge_hooks(
        text, Registration(home=home, interpreter=interpreter, events=events), where
    ).encode()


def remove(current: bytes, home: Path = HOME, where: str = "x") -> bytes:
    return registration.remove_hooks(json_edits.decode(current, where), home, where).encode()


def without(home: Path) -> foreign_files.Remove:
    return lambda data: remove(data, home)


def install_entry(
    before: bytes | None, after: bytes, home: Path, previous: dict[str, Any] | None = None
) -> dict[str, Any]:
    return foreign_files.record_entry(before, after, without(home), previous)


def removal(current: bytes | None, entry: dict[str, Any], home: Path) -> bytes | None:
    return foreign_files.restored(current, entry, without(home))


def commands(data: bytes, event: str) -> list[str]:
    groups = json.loads(data.decode("utf-8-sig")).get("hooks", {}).get(event, [])
    return [handler["command"] for group in groups for handler in group["hooks"]]


def check_in_place(data: bytes, interpreter: str = PYTHON, home: Path = HOME) -> None:
    """Each event runs our command exactly once, as the table says."""
    hooks = json.loads(data.decode("utf-8-sig"))["hooks"]
    for event, timeout in registration.BASE_TIMEOUTS.items():
        wanted = {"type": "command", "command": registration.hook_command(interpreter, home, event), "timeout": timeout}
        groups = [group for group in hooks[event] if wanted in group.get("hooks", [])]
        assert groups == [{"hooks": [wanted]}], event


# --- the command


@pytest.mark.parametrize("home", [Path("/h/csmd"), HOME, Path('/h/"$HOME" `id`;\\/é&*')])
def test_the_registered_command_reaches_the_script_whatever_the_home_is_called(home: Path, tmp_path: Path) -> None:
    echo = tmp_path / "it's python"
    echo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 2\n')
    echo.chmod(0o755)
    line = registration.hook_command(str(echo), home, "Stop")
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-I", "-S", f"{home}/hook/csmd_hook.py", str(home), "Stop"]


@pytest.mark.invariant(
    "A hook never hurts the session. It exits 0, is silent on stderr, prints only where it injects, and keeps its deadline, whatever the daemon, the disk or the input is like"
)
def test_a_missing_interpreter_or_script_is_no_error() -> None:
    for interpreter in ("/nonexistent/python3", settings_python()):
        line = registration.hook_command(interpreter, Path("/nonexistent"), "UserPromptSubmit")
        assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == 0


def settings_python() -> str:
    from csmd.config import base_interpreter

    return base_interpreter()


def test_a_home_that_no_settings_file_can_hold_is_refused() -> None:
    with pytest.raises(ConfigError):
        registration.hook_command(PYTHON, Path("/h/\udcff"), "Stop")


# --- merging


@pytest.mark.parametrize(
    "current", [None, b"", b" \n", b"{}", b"{ }\n", b"{\n}\n", b'{"hooks":{}}', b'{"hooks": {"Stop": []}}']
)
def test_a_file_without_hooks_gets_ours(current: bytes | None) -> None:
    check_in_place(merge(current))
    assert merge(merge(current)) == merge(current)


def test_the_new_text_stands_in_the_files_own_form() -> None:
    expected = """{
\t"model": "opus",
\t"hooks": {
\t\t"Stop": [
\t\t\t{"hooks": [{"type": "command", "command": "x"}]},
\t\t\t{
\t\t\t\t"hooks": [
"""
    theirs = '[\n\t\t\t{"hooks": [{"type": "command", "command": "x"}]}\n\t\t]'
    current = '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": ' + theirs + "\n\t}\n}"
    assert merge(current.encode()).decode().startswith(expected)
    assert merge(current.encode()).decode().endswith("\t]\n\t}\n}")


def test_a_file_on_one_line_stays_on_one_line() -> None:
    for separators in [(",", ":"), (", ", ": ")]:
        current = json.dumps(FOREIGN, separators=separators).encode()
        merged = merge(current)
        check_in_place(merged)
        assert b"\n" not in merged
        assert merged == json.dumps(json.loads(merged), separators=separators).encode()


@pytest.mark.parametrize("indent", [1, 2, 3, 4, "\t"])
def test_an_indented_file_looks_as_if_its_own_writer_had_written_it(indent: int | str) -> None:
    merged = merge(json.dumps(FOREIGN, indent=indent).encode())
    check_in_place(merged)
    assert merged == json.dumps(json.loads(merged), indent=indent).encode()


def test_line_ends_byte_order_mark_and_escapes_are_kept() -> None:
    current = '\ufeff{\r\n  "a": "\\u00e9 é \\/ \\ud800",\r\n  "a": 1.50e+3,\r\n  "b": [1,2 , 3]\r\n}\r\n\r\n'.encode()
    merged = merge(current)
    check_in_place(merged)
    assert merged.startswith(current[: current.rindex(b"\r\n}")])
    assert merged.endswith(b"\r\n}\r\n\r\n")
    assert merged.count(b"\n") == merged.count(b"\r\n")


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
def test_foreign_hooks_unknown_keys_and_their_order_stay() -> None:
    current = json.dumps(FOREIGN, indent=2).encode()
    merged = json.loads(merge(current))
    assert list(merged) == list(FOREIGN)
    assert list(merged["hooks"])[:3] == list(FOREIGN["hooks"])
    assert merged["hooks"]["Stop"][0] == FOREIGN["hooks"]["Stop"][0]
    assert merged["hooks"]["PostToolUse"] == FOREIGN["hooks"]["PostToolUse"]
    assert json.loads(remove(merge(current), HOME)) == {
        **FOREIGN,
        "hooks": {event: groups for event, groups in FOREIGN["hooks"].items() if groups},  # [] then held only ours
    }


def test_an_older_entry_is_replaced_where_it_stands() -> None:
    old = merge(json.dumps(FOREIGN, indent=4).encode(), interpreter="/old/python3.9")
    added = json.loads(old)
    added["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "later"}]})
    changed = json.dumps(added, indent=4).encode()
    merged = merge(changed)
    check_in_place(merged)
    assert b"python3.9" not in merged
    assert commands(merged, "Stop")[0::2] == ["say done", "later"]
    assert merged == changed.replace(b"/old/python3.9", PYTHON.encode())


SCRIPT = str(HOME / "hook" / "csmd_hook.py")


@pytest.mark.parametrize(
    "handler",
    [
        {"command": f'python3 "{SCRIPT}" x'},
        {"command": f"{shlex.join(['/old/python', SCRIPT, 'Stop'])} || true", "timeout": 1},
        {"command": f"python3 {SCRIPT} an unclosed quote"},
        {"command": f"sh -c {shlex.quote(shlex.join(['exec', SCRIPT]))}"},
        {"command": "/old/python", "args": ["-I", SCRIPT, "Stop"]},
    ],
)
@pytest.mark.parametrize("event", ["Stop", "Notification"])
def test_an_entry_of_ours_is_recognised_however_it_is_written(handler: dict[str, Any], event: str) -> None:
    ours = {"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}, {"type": "command", **handler}]}
    current = json.dumps({"hooks": {event: [ours, ours]}}).encode()
    merged = merge(current)
    assert sum(SCRIPT in word for word in flat(json.loads(merged)["hooks"].get("Stop", []))) == 1
    assert ("Notification" in json.loads(merged)["hooks"]) == (event == "Notification")
    left = json.loads(remove(merged, HOME))
    theirs = {"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}]}
    assert left == {"hooks": {event: [theirs, theirs]}}


def flat(groups: list[Any]) -> list[str]:
    """Each handler as the words that a shell would see."""
    handlers = [handler for group in groups for handler in group["hooks"]]
    return [" ".join([" ".join(words(handler["command"])), *handler.get("args", [])]) for handler in handlers]


def words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


@pytest.mark.parametrize(
    "command",
    [
        f"python3 '/other{HOME}/hook/csmd_hook.py' Stop",
        "python3 /h/csmd/hook/csmd_hook.py Stop",
        f'python3 "{SCRIPT}.bak" Stop',
        f'cat "{HOME}/hook/other.py"',
        f"python3 '~{HOME}/hook/csmd_hook.py'",
    ],
)
def test_a_hook_that_only_resembles_ours_is_foreign(command: str) -> None:
    handler = {"type": "command", "command": command}
    current = json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}}, indent=2).encode()
    assert remove(current, HOME) == current
    assert commands(merge(current), "Stop")[0] == command
    assert json.loads(remove(merge(current), HOME)) == json.loads(current)


def test_two_homes_live_side_by_side_in_one_file() -> None:
    other = Path("/h/csmd")
    both = merge(merge(None), home=other)
    check_in_place(both)
    check_in_place(both, home=other)
    assert json.loads(remove(both, other)) == json.loads(merge(None))


def test_a_newer_event_runs_for_the_tools_that_it_is_about_and_a_matcher_of_the_users_stays() -> None:
    events = (*registration.BASE_TIMEOUTS, "PostToolUseFailure")
    made = merge(None, events=events)
    (group,) = json.loads(made)["hooks"]["PostToolUseFailure"]
    assert group["matcher"] == "^(Bash$|mcp__)" and len(group["hooks"]) == 1
    assert all("matcher" not in json.loads(made)["hooks"][event][0] for event in registration.BASE_TIMEOUTS)
    by_user = made.replace(b"^(Bash$|mcp__)", b"Bash")
    assert merge(by_user, events=events) == by_user
    assert json.loads(remove(by_user, HOME)) == {}


def test_odd_groups_of_others_are_left_alone() -> None:
    odd = {
        "hooks": {
            "Stop": [7, "x", {"hooks": "x"}, {}, {"hooks": []}, {"hooks": [7, {"command": 7}, {"args": 7}]}],
            "X": [],
        }
    }
    current = json.dumps(odd).encode()
    assert remove(current, HOME) == current
    merged = json.loads(merge(current))
    assert merged["hooks"]["Stop"][:-1] == odd["hooks"]["Stop"]


@pytest.mark.parametrize(
    ("current", "position"),
    [
        (b"[]", "line 1"),
        (b"null", "line 1"),
        (b'{"a": 1,}', "line 1 column 9"),
        (b'{\n  // mine\n  "a": 1\n}', "line 2 column 3"),
        (b'{"a": 1} {}', "line 1 column 10"),
        (b'{"a": "\xff"}', "byte 7"),
        (b"\xff\xfe{\0}\0", "byte 0"),
        (b'{"a": ' + b"[" * 100_000, ""),
        (b'{"hooks": []}', "hooks"),
        (b'{"hooks": {"Stop": {}}}', "hooks"),
        (b'{"hooks": null}', "hooks"),
    ],
)
def test_an_invalid_file_is_an_error_that_names_file_and_position(current: bytes, position: str) -> None:
    plans: list[Callable[[], bytes]] = [
        lambda: merge(current, where="/x/settings.json"),
        lambda: remove(current, HOME, where="/x/settings.json"),
    ]
    for plan in plans:
        with pytest.raises(ConfigError) as caught:
            plan()
        assert "/x/settings.json" in caught.value.what
        assert position in caught.value.what
        assert caught.value.hint


def test_a_deeply_nested_value_of_others_is_no_obstacle() -> None:
    current = b'{"deep": ' + b"[" * 400 + b"]" * 400 + b"}"
    check_in_place(merge(current))


# --- leaving

texts = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["hooks", "Stop", 'a "quoted" \\ one', "{[,:]}"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
handlers = st.fixed_dictionaries(
    {"type": st.just("command"), "command": texts}, optional={"timeout": st.integers(1, 60)}
)
groups = st.fixed_dictionaries({"hooks": st.lists(handlers, max_size=2)}, optional={"matcher": texts, "x": values})
hook_tables = st.dictionaries(
    st.sampled_from([*registration.BASE_TIMEOUTS, "PostToolUse"]), st.lists(groups, max_size=2), max_size=4
)


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """A settings object, and its bytes in some formatting."""
    value = draw(st.dictionaries(texts.filter(lambda key: key != "hooks"), values, max_size=4))
    if draw(st.booleans()):
        names = [*value, "hooks"]
        value["hooks"] = draw(hook_tables)
        value = {name: value[name] for name in draw(st.permutations(names))}
    text = json.dumps(
        value,
        indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t"])),
        separators=draw(st.sampled_from([None, (",", ":"), (", ", ": "), (" ,", " : "), (",\n", ":\n ")])),
        ensure_ascii=draw(st.booleans()),
    )
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    around = st.sampled_from(["", "\n", " ", "\r\n\r\n"])
    return value, (draw(st.sampled_from(["", "\ufeff"])) + draw(around) + text + draw(around)).encode()


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
@given(files())
def test_a_merge_changes_nothing_of_others_and_a_removal_gives_the_bytes_back(
    case: tuple[dict[str, Any], bytes],
) -> None:
    value, current = case
    merged = merge(current)
    check_in_place(merged)
    assert merge(merged) == merged
    result = json.loads(merged.decode("utf-8-sig"))
    assert [key for key in result if key != "hooks" or "hooks" in value] == list(value)
    assert {key: result[key] for key in value if key != "hooks"} == {key: value[key] for key in value if key != "hooks"}
    for event, before in value.get("hooks", {}).items():
        assert result["hooks"][event][: len(before)] == before
    entry = install_entry(current, merged, HOME)
    assert removal(merged, json.loads(json.dumps(entry)), HOME) == current
    without_record = remove(merged, HOME)
    if value.get("hooks") and all(value["hooks"].values()):
        assert without_record == current, "exact where others had hooks"
    else:
        assert json.loads(without_record.decode("utf-8-sig")).keys() <= value.keys()


@settings(max_examples=50)
@given(files(), st.sampled_from([None, 1, 4]))
def test_what_others_add_after_the_merge_survives_the_removal(
    case: tuple[dict[str, Any], bytes], indent: int | None
) -> None:
    value, current = case
    merged = merge(current)
    entry = install_entry(current, merged, HOME)
    found_since = json.loads(merged.decode("utf-8-sig"))
    theirs = {"hooks": [{"type": "command", "command": "new"}]}
    found_since["hooks"]["Stop"].insert(0, theirs)
    found_since["hooks"]["Setup"] = [theirs]
    found_since["new"] = True
    left = removal(json.dumps(found_since, indent=indent).encode(), entry, HOME)
    assert left is not None
    found = json.loads(left)
    assert b"csmd_hook" not in left
    assert found["new"] is True
    assert found["hooks"]["Stop"] == [theirs, *value.get("hooks", {}).get("Stop", [])]
    assert found["hooks"]["Setup"] == [theirs]
    for event, before in value.get("hooks", {}).items():
        assert event == "Stop" or found["hooks"].get(event, []) == before
    assert remove(left, HOME) == left


def test_removal_deletes_a_file_that_install_created_and_recreates_none() -> None:
    merged = merge(None)
    entry = install_entry(None, merged, HOME)
    assert removal(merged, entry, HOME) is None
    assert removal(merged + b"\n", entry, HOME) is None
    assert removal(None, entry, HOME) is None
    with_theirs = merged.replace(b'{\n  "hooks"', b'{\n  "model": "opus",\n  "hooks"', 1)
    assert json.loads(removal(with_theirs, entry, HOME) or b"") == {"model": "opus"}


def test_a_second_install_does_not_forget_the_first_ones_original() -> None:
    original = b'{"hooks":{ }, "a":1}'
    first = merge(original, interpreter="/old/python")
    entry = install_entry(original, first, HOME)
    second = merge(first)
    again = install_entry(first, second, HOME, previous=entry)
    assert removal(second, again, HOME) == original


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("hooks", [None, FOREIGN["hooks"], {}, {"Stop": []}, {"Stop": [{"hooks": []}], "Setup": []}])
def test_the_record_holds_only_what_a_removal_cannot_restore(hooks: Any, first: bool) -> None:
    secret = {"env": {"TOKEN": "s3cr3t-of-the-user"}}
    table = {} if hooks is None else {"hooks": hooks}
    original = json.dumps({**table, **secret} if first else {**secret, **table, "z": 1}, indent=2).encode()
    older, merged = merge(original, "/old/python"), merge(original)
    entry = install_entry(original, older, HOME)
    for kept in (entry, install_entry(older, merged, HOME, previous=entry)):
        if remove(merged, HOME) == original:
            assert kept["original"] == "by-removal"
        else:
            put = base64.b64decode(kept["original"]["put"])
            assert len(put) < 120 and b"s3cr3t" not in put
    assert removal(older, json.loads(json.dumps(entry)), HOME) == original
    assert removal(merged, json.loads(json.dumps(kept)), HOME) == original


def test_a_second_install_after_an_edit_keeps_the_edit() -> None:
    original = b'{"a":1}'
    first = merge(original)
    changed = first.replace(b'"a":1', b'"a":2')
    again = install_entry(changed, merge(changed), HOME, previous=install_entry(original, first, HOME))
    assert removal(merge(changed), again, HOME) == b'{"a":2}'


# --- writing (the rest: test_foreign_files.py)


@pytest.mark.invariant("Leaving gives the settings back byte for byte; foreign hooks are never touched")
@pytest.mark.parametrize(
    ("before", "now", "after"),
    [(b"one", b"two", b"mine"), (b"one", None, b"mine"), (None, b"two", b"mine"), (b"one", b"two", None)],
)
def test_a_file_that_changed_meanwhile_is_not_touched(
    tmp_path: Path, before: bytes | None, now: bytes | None, after: bytes | None
) -> None:
    path = tmp_path / "settings.json"
    if now is not None:
        path.write_bytes(now)
    with pytest.raises(ConfigError):
        foreign_files.apply(path, before, after)
    assert foreign_files.read(path) == now
    assert len(list(tmp_path.iterdir())) == (now is not None)
