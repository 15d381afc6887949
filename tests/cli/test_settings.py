"""`csmd config` changes what it was asked to and no byte beside it, and writes nothing that the daemon would refuse."""

from __future__ import annotations

import os
import stat
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import Machine

from csmd.cli import settings, yaml_edits
from csmd.config import Settings, parse_settings
from csmd.errors import ConfigError

#: before, key, value, after
CASES: dict[str, tuple[str, str, Any, str]] = {
    "an empty file": ("", "recall.floor", 0.4, "recall.floor: 0.4\n"),
    "only comments": ("# mine\n", "recall.floor", 0.4, "# mine\nrecall.floor: 0.4\n"),
    "no last newline": ("backup.keep: 3", "recall.floor", 0.4, "backup.keep: 3\nrecall.floor: 0.4\n"),
    "in its place": ("# a\nrecall.floor:   0.2   # why\n# b\n", "recall.floor", 0.4, "# a\nrecall.floor: 0.4   # why\n# b\n"),
    "nested": ("recall:\n    floor: 0.2\n    max_items: 3\n", "recall.floor", 0.4, "recall:\n    floor: 0.4\n    max_items: 3\n"),
    "into its section": ("recall:\n    floor: 0.2  # x\n# end\n\nbackup.keep: 3\n", "recall.max_items", 3,
                         "recall:\n    floor: 0.2  # x\n    max_items: 3\n# end\n\nbackup.keep: 3\n"),
    "into a section at the end": ("recall:\n  floor: 0.2", "recall.max_items", 3, "recall:\n  floor: 0.2\n  max_items: 3\n"),
    "into a flow": ("recall: {floor: 0.2}\n", "recall.max_items", 3, "recall: {floor: 0.2, max_items: 3}\n"),
    "into an empty flow": ("recall: {}\n", "recall.max_items", 3, "recall: {max_items: 3}\n"),
    "all in a flow": ("{recall.floor: 0.2}\n", "backup.keep", 3, "{recall.floor: 0.2, backup.keep: 3}\n"),
    "a block list": ("privacy.redact:\n  # two\n  - heron\n  - egret\n# b\nbackup.keep: 3\n", "privacy.redact", ("stork",),
                     "privacy.redact: [stork]  # two\n# b\nbackup.keep: 3\n"),
    "a nested block list": ("privacy:\n  redact:\n    - heron\n\n    # odd\n  exclude: []\n", "privacy.redact", ("stork",),
                            "privacy:\n  redact: [stork]\n\n    # odd\n  exclude: []\n"),
    "a word that YAML would take for another": ("", "embed.model", "yes", "embed.model: 'yes'\n"),
    "indented as a whole": ("  backup.keep: 3\n", "recall.floor", 0.4, "  backup.keep: 3\n  recall.floor: 0.4\n"),
    "with a mark at the end": ("backup.keep: 3\n...\n", "recall.floor", 0.4, "backup.keep: 3\nrecall.floor: 0.4\n...\n"),
    "with a document mark": ("---\nbackup.keep: 3\n", "backup.keep", 4, "---\nbackup.keep: 4\n"),
}  # fmt: skip


@pytest.mark.invariant(
    "Setting a key leaves every other byte of the configuration; nothing is written that the daemon refuses"
)
@pytest.mark.parametrize("name", CASES)
def test_setting_a_key_leaves_every_other_byte(name: str) -> None:
    before, key, value, after = CASES[name]
    made = yaml_edits.set_key(before, key, value)
    assert made == after
    field = next(field.name for field in fields(Settings) if Settings.key(field.name) == key)
    assert getattr(parse_settings(made, where="x"), field) == value


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("# a\nbackup.keep: 3  # b\n# c\n", "backup.keep", "# a\n# c\n"),
        ("recall:\n  floor: 0.2\n  max_items: 3\n", "recall.floor", "recall:\n  max_items: 3\n"),
        ("recall:\n  floor: 0.2\nbackup.keep: 3\n", "recall.floor", "backup.keep: 3\n"),
        ("recall: {floor: 0.2, max_items: 3}\n", "recall.floor", "recall: {max_items: 3}\n"),
        ("recall: {floor: 0.2, max_items: 3}\n", "recall.max_items", "recall: {floor: 0.2}\n"),
        ("recall: {floor: 0.2}\n", "recall.floor", ""),
        ("backup.keep: 3", "backup.keep", ""),
        ("privacy.redact:\n  - heron\n  - egret\nbackup.keep: 3\n", "privacy.redact", "backup.keep: 3\n"),
    ],
)
def test_taking_a_key_out_leaves_every_other_byte(before: str, key: str, after: str) -> None:
    assert yaml_edits.remove_key(before, key) == after


VALUES = {
    "recall.floor": st.floats(0, 1), "recall.max_items": st.integers(0, 99), "stages.inject": st.booleans(),
    "privacy.redact": st.lists(st.text("abc:#[]{}',\"\\ é\n-", min_size=4).filter(str.strip), max_size=3).map(tuple),
    "embed.model": st.text("ab:#'\" /\n{[-é", min_size=1),
}  # fmt: skip
STEPS = st.lists(
    st.sampled_from(sorted(VALUES)).flatmap(lambda key: st.tuples(st.just(key), st.one_of(st.none(), VALUES[key])))
)
BEGINNINGS = [
    "", "# mine\n", "recall:\n  floor: 0.5 # f\n  # in between\n  max_items: 2\n\n# last\n",
    "recall: {floor: 0.5}\nstages: {inject: false, distill: true}\n", "privacy:\n  redact:\n  - heron\n  - 'a # b'\n# c\nbackup.keep: 2\n",
    "{recall: {floor: 0.5}, embed.model: x}",
]  # fmt: skip


@pytest.mark.invariant(
    "Setting a key leaves every other byte of the configuration; nothing is written that the daemon refuses"
)
@given(st.sampled_from(BEGINNINGS), STEPS)
def test_whatever_is_set_and_unset_the_settings_are_those_and_the_remarks_stay(
    text: str, steps: list[tuple[str, Any]]
) -> None:
    expected = {Settings.key(f.name): getattr(parse_settings(text, where="x"), f.name) for f in fields(Settings)}
    default = {Settings.key(f.name): f.default for f in fields(Settings)}
    for key, value in steps:
        if value is None:
            if key not in yaml_edits.key_names(text):
                continue
            text, value = yaml_edits.remove_key(text, key), default[key]
        else:
            text = yaml_edits.set_key(text, key, value)
        expected[key] = value
        made = parse_settings(text, where="x")
        assert {Settings.key(f.name): getattr(made, f.name) for f in fields(Settings)} == expected
    assert text.count("# last") == ("# last" in text)


def test_every_key_is_explained_by_the_words_in_the_code() -> None:
    said = settings.describe_settings()
    assert list(said) == [Settings.key(field.name) for field in fields(Settings)]
    assert all(len(words) > 20 for words in said.values())
    assert parse_settings(settings.format_template(), where="x") == Settings()
    uncommented = "\n".join(
        line[1:] for line in settings.format_template().splitlines() if line.startswith("#") and line[1] != " "
    )
    assert parse_settings(uncommented, where="x") == Settings()


def test_a_key_without_a_section_is_named_as_its_field() -> None:
    assert Settings.key("status_line") == "status_line" and Settings.key("brief_max_tokens") == "brief.max_tokens"


def test_keys_are_listed_read_set_and_unset(machine: Machine) -> None:
    assert "brief.max_tokens: 900" in (shown := machine.csmd("config", "list"))
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert machine.csmd("config", "set", "brief.max_tokens", "600") == "brief.max_tokens = 600\n"
    machine.csmd("config", "set", "stages.inject", "off")
    machine.csmd("config", "set", "--yes", "privacy.exclude", "~/clients/*", "/w/other")
    file = machine.paths.config_file
    assert file.read_text() == "brief.max_tokens: 600\nstages.inject: false\nprivacy.exclude: [~/clients/*, /w/other]\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert machine.csmd("config", "get", "brief.max_tokens") == "600\n"
    assert machine.csmd("config", "get", "privacy.exclude", "--json")["value"] == [
        f"{machine.root}/clients/*",
        "/w/other",
    ]
    rows = {row["key"]: row for row in machine.csmd("config", "list", "--json")["keys"]}
    assert (rows["brief.max_tokens"]["value"], rows["brief.max_tokens"]["default"]) == (600, 900)
    assert [key for key, row in rows.items() if row["set"]] == ["brief.max_tokens", "stages.inject", "privacy.exclude"]
    machine.csmd("config", "set", "--yes", "privacy.exclude", "[]")
    assert machine.csmd("config", "get", "privacy.exclude") == ""
    assert machine.csmd("config", "unset", "brief.max_tokens") == "brief.max_tokens = 900, the default\n"
    assert machine.csmd("config", "path") == f"{file}\n"
    assert "csmd restart" not in machine.csmd("config", "set", "backup.keep", "2")
    machine.start()
    assert "csmd restart" in machine.csmd("config", "set", "backup.keep", "3")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("recall.flor", "0.4"), "did you mean 'recall.floor'?"),
        (("recall.floor", "high"), "recall.floor must be a number"),
        (("recall.floor", "--", "-1"), "0 or more"),
        (("privacy.redact", "abc"), "fewer than 4"),
        (("recall.floor", "0.1", "0.2"), "takes one value"),
        (("nothing.like.it", "1"), "unknown key"),
        (("recall.floor", "2"), "it must be 0 to 1"),
        (("dream.every_h", "0"), "it must be 1 to 8,760"),
        (("brief.max_tokens", "100000"), "it must be 50 to 9,000, or 0 for none"),
        (("dream.keep_days", "100000000000"), "it must be 1 to 36,500"),
        (("embed.model", "nonsense"), "nonsense is not installed, and csmd cannot fetch it"),
        (("embed.model", "some/model"), "choose one of sentence-transformers/all-MiniLM-L6-v2"),
        (("embed.model", "sentence-transformers/all-MiniLM"), "sentence-transformers/all-MiniLM is not installed"),
        (("embed.model", "BAAI/bge-small-en-v1.5"), "BAAI/bge-small-en-v1.5 is not installed"),
        (("embed.model", "../up"), "no model has such a name"),
        (("privacy.exclude", "clients/*"), "matches no directory"),
        (("privacy.exclude_files", "!"), "names no file"),
    ],
)
def test_a_bad_key_or_value_is_refused_and_the_file_stays(
    machine: Machine, arguments: tuple[str, ...], said: str
) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.config_file.write_text("# mine\nbackup.keep: 3\n")
    refused = machine.run("config", "set", *arguments)
    assert refused.returncode in (1, 2) and said in refused.stderr
    assert machine.paths.config_file.read_text() == "# mine\nbackup.keep: 3\n"


def test_a_model_that_is_gone_keeps_nobody_from_changing_something_else(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.config_file.write_text("embed.model: mine\n")
    assert machine.run("config", "set", "brief.max_tokens", "500").returncode == 0
    assert "embed.model: mine" in machine.paths.config_file.read_text()


def editor(machine: Machine, *scripts: str) -> dict[str, str]:
    """An editor that does at each call what the next of these says (of "$1")."""
    place = machine.root / "editor"
    parts = "\n".join(f'if [ "$n" = {number} ]; then {script}; fi' for number, script in enumerate(scripts))
    place.write_text(
        f"#!/bin/sh\nn=$(cat {place}.n 2>/dev/null || echo 0)\necho $((n + 1)) > {place}.n\nsleep 0.01\n{parts}\n"
    )
    place.chmod(0o700)
    return {"VISUAL": str(place)}


def test_an_edited_file_is_written_when_it_is_understood_and_asked_again_before(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    wrong, right = 'echo "backup.kep: 2" > "$1"', 'grep -q kep "$1" && echo "backup.keep: 2" > "$1"'
    read, write = os.pipe()
    os.write(write, b"y\n")
    os.close(write)
    done = machine.run("config", "edit", stdin=read, **editor(machine, wrong, right))
    os.close(read)
    assert (done.returncode, "did you mean 'backup.keep'" in done.stderr) == (0, True)
    assert machine.paths.config_file.read_text() == "backup.keep: 2\n"


def test_an_edit_that_is_given_up_changes_nothing(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    machine.paths.config_file.write_text("backup.keep: 3\n")
    wrong = 'echo "backup.kep: 2" > "$1"'
    read, write = os.pipe()
    os.write(write, b"n\n")
    os.close(write)
    done = machine.run("config", "edit", stdin=read, **editor(machine, wrong))
    os.close(read)
    assert done.returncode == 1 and "nothing was changed" in done.stderr
    assert machine.paths.config_file.read_text() == "backup.keep: 3\n"
    assert machine.run("config", "edit", **editor(machine, "true", "true")).stdout == "No change.\n"


def test_a_linked_file_is_written_where_it_is(machine: Machine) -> None:
    machine.home.mkdir(mode=0o700)
    kept = machine.root / "dotfiles.yaml"
    kept.write_text("# dots\n")
    machine.paths.config_file.symlink_to(kept)
    machine.csmd("config", "set", "backup.keep", "3")
    assert machine.paths.config_file.is_symlink() and kept.read_text() == "# dots\nbackup.keep: 3\n"


def test_what_is_not_set_cannot_be_unset() -> None:
    with pytest.raises(ConfigError, match="not set"):
        yaml_edits.remove_key("backup.keep: 3\n", "recall.floor")
