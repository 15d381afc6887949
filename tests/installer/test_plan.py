"""One file that others write, too: planned anew where it changed, given up after a few times, never overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from machine import Machine

from csmd.hosts.claude import registration
from csmd.installer import plan
from csmd.installer.plan import Change, Choice

KINDS = plan.KINDS[:1]


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
        change = plan.plan_merge(path, KINDS, plan.wanted_entries(machine.config()))
        if len(written) < 2:
            written.append(path.write_text(json.dumps({"n": len(written) + 1})))
        return change

    outcome = plan.carry_out(machine.paths, merging)
    assert outcome.changed and outcome.trouble is None
    found = json.loads(path.read_text())
    assert found["n"] == 2 and list(found["hooks"]) == list(registration.EVENTS)
    plan.carry_out(machine.paths, lambda: plan.plan_return(machine.paths, path))
    assert path.read_text() == '{"n": 2}'


def test_a_file_that_never_holds_still_is_left_to_its_owner(machine: Machine) -> None:
    path = machine.root / "settings.json"
    machine.home.mkdir(mode=0o700)
    counted = iter(range(100))

    def merging() -> Change:
        change = plan.plan_merge(path, KINDS, plan.wanted_entries(machine.config()))
        path.write_text(json.dumps({"n": next(counted)}))
        return change

    outcome = plan.carry_out(machine.paths, merging)
    assert not outcome.changed and outcome.trouble is not None and "somebody else" in outcome.trouble.what
    assert json.loads(path.read_text()) == {"n": plan.TRIES - 1}
    assert plan.load_record(machine.paths)["settings"] == {}, "what was not written is not in the record"


@pytest.fixture
def settled(machine: Machine) -> Machine:
    """A machine on which every newer event is registered."""
    config = machine.config()
    wanted = plan.wanted_entries(config, tuple(registration.NEWER))
    plan.install(config, plan.plan_install(config, wanted), wanted)
    return machine


def test_settling_takes_out_what_is_not_known_and_the_original_is_not_forgotten(machine: Machine) -> None:
    path, original = machine.assistant / "settings.json", b'{"hooks":{ "PostCompact": []}, "a":1}'
    path.parent.mkdir()
    path.write_bytes(original)
    config = machine.config()
    wanted = plan.wanted_entries(config, tuple(registration.NEWER))
    plan.install(config, plan.plan_install(config, wanted), wanted)
    assert plan.load_record(machine.paths)["needs"] == "2.1.101"
    gone, _ = plan.settle(machine.paths, Choice(events=("PostCompact",), kept_out_by="2.1.77"))
    assert (
        gone == list(registration.NEWER)[1:]
        and b"StopFailure" not in path.read_bytes()
        and b"PostCompact" in path.read_bytes()
    )
    assert plan.recorded_choice(machine.paths) == Choice(events=("PostCompact",), kept_out_by="2.1.77")
    gone, _ = plan.settle(machine.paths, Choice(events=(), kept_out_by="2.0.77"))
    assert gone == ["PostCompact"] and list(json.loads(path.read_bytes())["hooks"]) == list(registration.EVENTS)
    assert plan.load_record(machine.paths)["needs"] == ""
    assert plan.settle(machine.paths, Choice(events=())) == ([], [])
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
    plan.settle(settled.paths, Choice(events=(), kept_out_by="2.0.77"))
    assert set(json.loads(path.read_bytes())["hooks"]) == set(registration.EVENTS) - {"Stop"}
    path.unlink()
    plan.settle(settled.paths, Choice(events=()))
    assert not path.exists()


def test_settings_that_cannot_be_written_keep_the_note_that_an_old_client_is_in_danger(settled: Machine) -> None:
    path = settled.assistant / "settings.json"
    path.chmod(0o400)
    _, (outcome,) = plan.settle(settled.paths, Choice(events=(), kept_out_by="2.0.77"))
    assert outcome.trouble is not None and plan.load_record(settled.paths)["events"] == list(registration.NEWER)


def test_no_foreign_file_among_the_hooks_is_removed(settled: Machine) -> None:
    (settled.paths.hook_dir / "mine.sh").write_text("mine")
    plan.uninstall(settled.paths)
    assert [path.name for path in settled.paths.hook_dir.iterdir()] == ["mine.sh"]
    assert not Path(settled.paths.hook_script).exists() and not settled.paths.install_record.exists()
