"""Files that others write, too: several kinds of entries in one, planned anew where it changed, for every client."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import Machine

from csmd.hosts.claude import registration
from csmd.hosts.host_files import Registration, SettingsEntry
from csmd.hosts.registrations import CLAUDE
from csmd.installer import foreign_files, plan
from csmd.installer.plan import Change, Choice
from csmd.text import json_edits

HOOKS_ALONE = plan.KINDS[:1]


@pytest.mark.invariant(
    "A file of the assistant's in trouble keeps no other from being served; what its owner writes meanwhile is kept; any file is given back byte for byte"
)
def test_a_file_that_its_owner_writes_meanwhile_is_planned_anew_and_keeps_what_was_written(machine: Machine) -> None:
    path = machine.assistant / "settings.json"
    path.parent.mkdir()
    path.write_text('{"n": 0}')
    machine.home.mkdir(mode=0o700)
    written: list[int] = []

    def merging() -> Change:
        change = plan.plan_merge(path, HOOKS_ALONE, plan.make_registration(machine.config()))
        if len(written) < 2:
            written.append(path.write_text(json.dumps({"n": len(written) + 1})))
        return change

    outcome = plan.carry_out(machine.paths, merging)
    assert outcome.changed and outcome.trouble is None
    found = json.loads(path.read_text())
    assert found["n"] == 2 and list(found["hooks"]) == list(registration.BASE_TIMEOUTS)
    plan.carry_out(machine.paths, lambda: plan.plan_return(machine.paths, path))
    assert path.read_text() == '{"n": 2}'


def test_a_file_that_never_holds_still_is_left_to_its_owner(machine: Machine) -> None:
    path = machine.root / "settings.json"
    machine.home.mkdir(mode=0o700)
    counted = iter(range(100))

    def merging() -> Change:
        change = plan.plan_merge(path, HOOKS_ALONE, plan.make_registration(machine.config()))
        path.write_text(json.dumps({"n": next(counted)}))
        return change

    outcome = plan.carry_out(machine.paths, merging)
    assert not outcome.changed and outcome.trouble is not None and "another program" in outcome.trouble.what
    assert json.loads(path.read_text()) == {"n": plan.TRIES - 1}
    assert plan.load_record(machine.paths)["settings"] == {}, "what was not written is not in the record"


@pytest.fixture
def settled(machine: Machine) -> Machine:
    """A machine on which every newer event is registered."""
    config = machine.config()
    plan.install(config, Choice(events=tuple(registration.FIRST_VERSIONS)))
    return machine


def test_settling_takes_out_what_is_not_known_and_the_original_is_not_forgotten(machine: Machine) -> None:
    path, original = machine.assistant / "settings.json", b'{"hooks":{ "PostCompact": []}, "a":1}'
    path.parent.mkdir()
    path.write_bytes(original)
    config = machine.config()
    plan.install(config, Choice(events=tuple(registration.FIRST_VERSIONS)))
    assert plan.load_record(machine.paths)["needs"] == "2.1.101"
    gone, _ = plan.withdraw_events(machine.paths, Choice(events=("PostCompact",), kept_out_by="2.1.77"))
    assert (
        gone == list(registration.FIRST_VERSIONS)[1:]
        and b"StopFailure" not in path.read_bytes()
        and b"PostCompact" in path.read_bytes()
    )
    assert plan.read_choice(machine.paths) == Choice(events=("PostCompact",), kept_out_by="2.1.77")
    gone, _ = plan.withdraw_events(machine.paths, Choice(events=(), kept_out_by="2.0.77"))
    assert gone == ["PostCompact"] and list(json.loads(path.read_bytes())["hooks"]) == list(registration.BASE_TIMEOUTS)
    assert plan.load_record(machine.paths)["needs"] == ""
    assert plan.withdraw_events(machine.paths, Choice(events=())) == ([], [])
    plan.uninstall(machine.paths)
    assert path.read_bytes() == original


@pytest.mark.invariant(
    "Newer events are registered only where the oldest client in use knows them; settling brings nothing back"
)
def test_settling_brings_nothing_back_that_somebody_took_out(settled: Machine) -> None:
    path = settled.assistant / "settings.json"
    value = json.loads(path.read_bytes())
    del value["hooks"]["Stop"], value["hooks"]["PostCompact"]
    path.write_text(json.dumps(value))
    plan.withdraw_events(settled.paths, Choice(events=(), kept_out_by="2.0.77"))
    assert set(json.loads(path.read_bytes())["hooks"]) == set(registration.BASE_TIMEOUTS) - {"Stop"}
    path.unlink()
    plan.withdraw_events(settled.paths, Choice(events=()))
    assert not path.exists()


def test_settings_that_cannot_be_written_keep_the_note_that_an_old_client_is_in_danger(settled: Machine) -> None:
    path = settled.assistant / "settings.json"
    path.chmod(0o400)
    _, (outcome,) = plan.withdraw_events(settled.paths, Choice(events=(), kept_out_by="2.0.77"))
    assert outcome.trouble is not None and plan.load_record(settled.paths)["events"] == list(
        registration.FIRST_VERSIONS
    )


def test_no_foreign_file_among_the_hooks_is_removed(settled: Machine) -> None:
    (settled.paths.hook_dir / "mine.sh").write_text("mine")
    plan.uninstall(settled.paths)
    assert [path.name for path in settled.paths.hook_dir.iterdir()] == ["mine.sh"]
    assert not Path(settled.paths.hook_script).exists() and not settled.paths.install_record.exists()


# --- Entries of several kinds in one file: put in and taken out together, each back to the very bytes.


HOME = Path("/h/csmd")
LINE = "statusLine"


def with_line(text: str, wanted: Registration, where: str) -> str:
    at, value = json_edits.find_root(text), {"command": str(wanted.home)}
    found = json_edits.find_member(text, at, LINE)
    if found is None:
        return json_edits.append_item(text, at, LINE, value)
    return json_edits.apply_edits(text, json_edits.plan_replacement(text, found, value))


def without_line(text: str, home: Path, where: str) -> str:
    found = json_edits.find_member(text, json_edits.find_root(text), LINE)
    mine = found is not None and json_edits.read_value(text, found) == {"command": str(home)}
    return json_edits.remove_member(text, json_edits.find_root(text), LINE) if mine else text


KINDS = (*plan.KINDS[:1], SettingsEntry(name="line", what="a line", file=registration.settings_file, merge=with_line,
                                  remove=without_line, is_wanted=lambda wanted: "StopFailure" in wanted.events))  # fmt: skip


def ours(*newer: str) -> Registration:
    return Registration(home=HOME, interpreter="/usr/bin/python3", events=("Stop", "SessionEnd", *newer))


def remove(data: bytes) -> bytes:
    return plan.remove_entries(data, KINDS, HOME, "settings.json")


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
    first = plan.add_entries(before, KINDS, ours() if first_less else ours("StopFailure"), "x") or b""
    entry = foreign_files.record_entry(before, first, remove)
    merged = plan.add_entries(first, KINDS, ours("StopFailure"), "x") or b""
    entry = foreign_files.record_entry(first, merged, remove, entry)
    assert plan.add_entries(merged, KINDS, ours("StopFailure"), "x") == merged
    found = json.loads(merged)
    assert found.pop("statusLine") == {"command": str(HOME)}
    assert {key: one for key, one in found.items() if key != "hooks"} == {
        k: one for k, one in value.items() if k != "hooks"
    }
    assert foreign_files.restored(merged, json.loads(json.dumps(entry)), remove) == before


def test_a_kind_that_is_not_wanted_any_more_goes() -> None:
    merged = plan.add_entries(b'{"a": 1}', KINDS, ours("StopFailure"), "x")
    less = plan.add_entries(merged, KINDS, ours(), "x") or b""
    assert json.loads(less).keys() == {"a", "hooks"} and list(json.loads(less)["hooks"]) == ["Stop", "SessionEnd"]
    assert plan.add_entries(None, KINDS[1:], ours(), "x") is None
    assert plan.describe_entries(less, KINDS, ours(), "x") == ("hooks", ())
    assert plan.describe_entries(less, KINDS, ours("StopFailure"), "x") == ("hooks and a line", ())


def test_what_somebody_elses_entry_keeps_out_is_not_told_as_put_in() -> None:
    chosen = replace(ours(), status_line=True)
    foreign = b'{"statusLine": {"type": "command", "command": "mine"}, "mcpServers": {"csmd": {"command": "x"}}}'
    what, out = plan.describe_entries(foreign, CLAUDE.kinds, chosen, "the file")
    assert what == "hooks" and "csmd_line.py" in out[0] and "the file already has a server named csmd" in out[1]
    own = plan.add_entries(b"{}", CLAUDE.kinds, chosen, "x") or b""
    assert plan.describe_entries(own, CLAUDE.kinds, chosen, "x") == ("hooks and status line and memory server", ())


def test_a_file_that_only_our_entries_made_goes_with_them_and_one_with_more_stays() -> None:
    merged = plan.add_entries(None, KINDS, ours("StopFailure"), "x") or b""
    entry = foreign_files.record_entry(None, merged, remove)
    assert foreign_files.restored(merged, entry, remove) is None
    grown = merged.replace(b"{\n", b'{\n  "numStartups": 3,\n', 1)
    assert json.loads(foreign_files.restored(grown, entry, remove) or b"") == {"numStartups": 3}


def test_the_names_in_the_record_are_unique() -> None:
    assert len({kind.name for kind in plan.KINDS}) == len(plan.KINDS)


# --- Newer events are registered only where every client knows them; an unknown client counts as an old one.


NEW, OLD = "2.1.329", "2.0.77"
ALL = tuple(registration.FIRST_VERSIONS)


@pytest.mark.invariant(
    "Newer events are registered only where the oldest client in use knows them; settling brings nothing back"
)
@pytest.mark.parametrize(
    ("installed", "seen", "events", "why"),
    [
        ({"/a": NEW}, [], ALL, ""),
        ({"/a": NEW}, [NEW, "2.1.200"], ALL, ""),
        ({"/a": "2.1.101"}, [], ALL, ""),
        ({"/a": "2.1.100"}, [], (), "2.1.100"),
        ({"/a": NEW}, [OLD, NEW], (), OLD),
        ({"/a": NEW, "/b": OLD}, [], (), OLD),
        ({"/a": NEW, "/b": ""}, [NEW], (), "/b does not tell"),
        ({}, [NEW], (), "no `claude` on PATH"),
        ({"/a": NEW}, ["dev", "", "10.0.0"], ALL, ""),
        ({"/a": NEW}, ["2.1.99"], (), "2.1.99"),
        ({}, [OLD], (), OLD),
    ],
)
def test_the_oldest_client_decides(
    installed: dict[str, str], seen: list[str], events: tuple[str, ...], why: str
) -> None:
    choice = plan.choose_events(installed, seen)
    assert choice.events == events
    assert choice.kept_out_by.startswith(why) and bool(choice.kept_out_by) == bool(why)


def test_what_nobody_tells_is_no_reason_to_take_an_event_out() -> None:
    assert plan.choose_supported_events(["", NEW]).events == plan.choose_supported_events([]).events == ALL
    assert plan.choose_supported_events(["", OLD]) == plan.Choice(events=(), kept_out_by=OLD)


def test_no_event_needs_less_than_the_version_that_forgives_unknown_ones() -> None:
    assert plan.find_oldest_version([]) == "" and plan.find_oldest_version(ALL) == "2.1.101"
    for event in registration.FIRST_VERSIONS:
        assert plan.find_oldest_version([event]) == "2.1.101"


def program(folder: Path, body: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "claude"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_every_client_is_asked_once_in_an_empty_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    one = program(
        tmp_path / "one", f'echo "$@" >> "{told}"; env >> "{told}"; ls -A >> "{told}"; echo "2.1.329 (Claude Code)"'
    )
    home = tmp_path / "home"
    usual = program(home / ".local" / "bin", "echo 2.0.77")
    (tmp_path / "same").symlink_to(tmp_path / "one")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SECRET_OF_THE_USER", "x")
    monkeypatch.setenv("PATH", f"{tmp_path / 'same'}:{tmp_path / 'one'}:relative:/usr/bin:/bin")
    found = plan.find_clients()
    ours = {path: version for path, version in found.items() if str(tmp_path) in path}
    assert ours == {str(tmp_path / "same" / "claude"): NEW, str(usual): OLD}
    said = told.read_text()
    assert said.count("--version") == 1 and one.exists()
    assert "SECRET_OF_THE_USER" not in said and str(home) not in said.replace(f"PATH={tmp_path}", "")
    (config,) = (line for line in said.splitlines() if line.startswith("CLAUDE_CONFIG_DIR="))
    assert not Path(config.partition("=")[2]).exists()


@pytest.mark.parametrize(
    "body",
    [
        "echo 2.1.329; exit 1",
        "echo version 2.1.329",
        "echo",
        "echo 2.1.329-beta",
        "kill -9 $$",
        "head -c 100000 /dev/zero",
    ],
)
def test_a_client_that_does_not_tell_its_version_is_an_unknown_one(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path / "bin", body)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    assert plan.find_clients()[str(path)] == ""


def test_a_client_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "bin", "exec sleep 60")
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
    monkeypatch.setattr(plan, "PATIENCE_S", 0.2)
    begun = time.monotonic()
    assert plan.find_clients()[str(path)] == ""
    assert time.monotonic() - begun < 30
