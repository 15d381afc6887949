"""Settings are read strictly: an unknown key, another type or a number out of range is an error that says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import config
from csmd.config import (
    SECRET_FILES,
    Paths,
    Settings,
    assistant_dir,
    child_environment,
    default_paths,
    load,
    parse_settings,
)
from csmd.errors import ConfigError

KEYS = {Settings.key(field.name): field.default for field in fields(Settings)}


def parse(text: str) -> Settings:
    return parse_settings(text, where="config.yaml")


@pytest.mark.parametrize("text", ["", "  \n", "# nothing\n", "---\n", "{}"])
def test_without_a_word_everything_is_as_it_comes(text: str) -> None:
    assert parse(text) == Settings()


def test_every_key_can_be_set_in_either_form() -> None:
    for key, default in KEYS.items():
        section, _, name = key.partition(".")
        shown = str(default).lower() if isinstance(default, bool) else default
        shown = list(default) if isinstance(default, tuple) else shown
        dotted, nested = parse(f"{key}: {shown}"), parse(f"{section}:\n  {name}: {shown}" if name else "")
        assert dotted == nested == Settings()
    both = parse("brief.max_tokens: 5\nrecall: {floor: 1, max_items: 0}\nstages: {inject: false}")
    assert (both.brief_max_tokens, both.recall_floor, both.recall_max_items, both.stages_inject) == (5, 1.0, 0, False)
    assert type(both.recall_floor) is float


def test_a_list_takes_texts_and_a_tilde_is_the_users_home() -> None:
    chosen = parse("privacy:\n  exclude: [~/clients/*, /srv]\n  redact:\n    - Project Kestrel\n  exclude_files: []")
    assert chosen.privacy_exclude == (f"{Path.home()}/clients/*", "/srv")
    assert parse("privacy.exclude_files: ['**/*.key', '!**/.env']").files_left_out == (
        *(glob for glob in SECRET_FILES if glob != "**/.env"), "**/*.key",
    )  # fmt: skip
    assert (chosen.privacy_redact, chosen.privacy_exclude_files) == (("Project Kestrel",), ())


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("brief.max_token: 5", "unknown key 'brief.max_token'", "did you mean 'brief.max_tokens'?"),
        ("brief: {max: {tokens: 5}}", "unknown key 'brief.max.tokens'", "brief.max_tokens"),
        ("zzz: 1", "unknown key 'zzz'", "choose one of brief.max_tokens"),
        ("7: 1", "unknown key '7'", "choose one of"),
        ("brief: 900", "unknown key 'brief'", ""),
        ("brief.max_tokens: '5'", "must be a whole number, not '5'", "brief.max_tokens: 900"),
        ("brief.max_tokens: 5.0", "must be a whole number, not 5.0", ""),
        ("brief.max_tokens: true", "must be a whole number, not True", ""),
        ("brief.max_tokens:", "must be a whole number, not None", ""),
        ("brief.max_tokens: [5]", "must be a whole number", ""),
        ("stages.inject: 1", "must be true or false, not 1", "stages.inject: True"),
        ("stages.inject: 'off'", "must be true or false, not 'off'", ""),
        ("embed.model: 5", "must be a text, not 5", ""),
        ("brief.max_tokens: -1", "must be 0 or more, not -1", "brief.max_tokens: 900"),
        ("recall.floor: -0.1", "must be 0 or more", ""),
        ("recall.floor: .nan", "must be 0 or more, not nan", ""),
        ("recall.floor: .inf", "must be 0 or more, not inf", ""),
        ("brief.max_tokens: 5\nbrief: {max_tokens: 6}", "brief.max_tokens is set twice", "one of the two"),
        ("privacy.exclude: ~/a", "must be a list of texts, not '~/a'", "['one', 'two']"),
        ("privacy.exclude: [a, 5]", "must be a list of texts", ""),
        ("privacy.redact: ['']", "must be a list of texts", ""),
        ("privacy.redact: [abc]", "fewer than 4 characters", "longer"),
        ("privacy: {exclude: {a: b}}", "unknown key 'privacy.exclude.a'", ""),
        ("- a", "expected keys and values", "move it away"),
        ("just words", "expected keys and values", ""),
        ("0", "expected keys and values", ""),
        ("a: [", "not YAML", "correct config.yaml"),
        ("a: !!python/object/apply:os.system ['true']", "not YAML", ""),
        ("a: 2026-99-99", "not YAML", ""),
        ("a: &a {b: *a}", "not YAML", ""),
        ("x: " + "{a: " * 3000 + "1" + "}" * 3000, "not YAML", ""),
        ("a: \x00", "not YAML", ""),
    ],
)
def test_a_mistake_names_the_file_the_key_and_what_to_do(text: str, what: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert caught.value.what.startswith("config.yaml: ") and what in caught.value.what
    assert caught.value.hint and hint in caught.value.hint


@given(st.text(max_size=60) | st.builds("{}: {}".format, st.sampled_from(sorted(KEYS)), st.text(max_size=20)))
def test_any_text_is_settings_or_a_config_error(text: str) -> None:
    try:
        assert isinstance(parse(text), Settings)
    except ConfigError as error:
        assert error.what and error.hint


def test_each_setting_has_its_name_its_type_and_a_sentence() -> None:
    source = Path(config.__file__).read_text()
    for field in fields(Settings):
        assert type(field.default) in (int, float, bool, str, tuple)
        after = source.split(f"    {field.name}: ", 1)[1].split("\n", 2)[1].strip()
        assert after.startswith('"""') and after.endswith('."""'), field.name


def paths_in(home: Path) -> Paths:
    return Paths(home=home, config_file=home / "config.yaml", log_dir=home / "log")


def test_a_file_that_is_not_there_is_no_mistake_and_one_that_cannot_be_read_is(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    assert load(paths=paths).settings == Settings()
    paths.config_file.write_text("brief.max_tokens: 7\n")
    assert load(paths=paths).settings.brief_max_tokens == 7
    paths.config_file.write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load(paths=paths)
    paths.config_file.unlink()
    paths.config_file.mkdir()
    with pytest.raises(ConfigError, match="directory"):
        load(paths=paths)


def test_everything_of_csmds_is_below_the_chosen_home(tmp_path: Path) -> None:
    paths = default_paths({"CSMD_HOME": str(tmp_path / "h")})
    assert paths == paths_in(tmp_path / "h")
    for name in ("database", "endpoint", "run_dir", "lock", "instance", "stopped_mark", "hung_mark", "spool", "quarantine",
                 "models", "hook_dir", "hook_script", "install_record", "log_file"):  # fmt: skip
        assert getattr(paths, name).is_relative_to(paths.home)
    assert len({getattr(paths, name) for name in ("lock", "instance", "stopped_mark", "hung_mark", "endpoint")}) == 5


def test_a_home_is_absolute_wherever_csmd_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_paths({"CSMD_HOME": "h"}).home == tmp_path / "h"
    assert default_paths({"CSMD_HOME": "~/h"}).home == tmp_path / "h"
    assert assistant_dir({"CLAUDE_CONFIG_DIR": "c"}) == tmp_path / "c"
    assert assistant_dir({"CLAUDE_CONFIG_DIR": ""}) == assistant_dir({}) == tmp_path / ".claude"
    for unset in ({}, {"CSMD_HOME": ""}):
        paths = default_paths(unset)
        assert (
            paths.home.is_absolute() and paths.home.is_relative_to(tmp_path) and paths.config_file.name == "config.yaml"
        )


@pytest.mark.parametrize("variable", ["CSMD_HOME", "CLAUDE_CONFIG_DIR"])
def test_a_home_of_nobody_is_a_mistake_that_names_the_variable(variable: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        (default_paths if variable == "CSMD_HOME" else assistant_dir)({variable: "~nobody-of-that-name/x"})


def test_an_assistants_directory_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "one"))
    (tmp_path / "link").symlink_to(tmp_path / "two")
    named = (tmp_path / "two", tmp_path / "one", tmp_path / "two", tmp_path / "link")
    settings = load(paths=paths_in(tmp_path), extra_dirs=named)
    assert settings.assistant_dirs == (tmp_path / "two", tmp_path / "one")


def test_csmds_own_children_get_none_of_the_users_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "LD_PRELOAD",
        "CLAUDE_CODE_MESSAGING_TOKEN",
    ):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("CSMD_HOME", "/tmp/h")
    environment = child_environment()
    assert environment["CSMD_HOME"] == "/tmp/h" and environment["PATH"] == os.environ["PATH"]
    assert not {
        name for name in environment if "KEY" in name or "TOKEN" in name or name.startswith(("PYTHON", "LD_PRELOAD"))
    }


def test_the_base_interpreter_outlives_a_virtual_environment() -> None:
    interpreter = Path(config.base_interpreter())
    assert interpreter.is_absolute() and os.access(interpreter, os.X_OK)
    assert sys.prefix == sys.base_prefix or not interpreter.is_relative_to(sys.prefix)


def test_the_base_interpreter_is_named_by_the_link_that_an_upgrade_moves(tmp_path: Path) -> None:
    """As one package manager has it: opt/python is a link to a directory that is named after the version."""
    (tmp_path / "opt").symlink_to(sys.base_prefix)
    link = tmp_path / "opt" / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    program = "from csmd import config; print(config.base_interpreter())"
    package = str(Path(config.__file__).parent.parent)
    subprocess.run([link, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    for python in (link, tmp_path / "venv" / "bin" / link.name):
        done = subprocess.run(
            [python, "-c", f"import sys; sys.path[:0] = {[package, *sys.path]!r}; {program}"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == f"{link}\n"


def test_a_name_that_would_go_with_the_environment_is_resolved(tmp_path: Path) -> None:
    real, inside = tmp_path / "python3", tmp_path / "venv" / "bin" / "python3"
    inside.parent.mkdir(parents=True)
    real.touch()
    inside.symlink_to(real)
    assert config.lasting_interpreter(str(inside), venv=str(tmp_path / "venv")) == str(real)
    assert config.lasting_interpreter(str(inside), venv=str(tmp_path / "other")) == str(inside)
    assert config.lasting_interpreter(str(inside), venv="") == str(inside)
    gone = tmp_path / "gone"
    assert config.lasting_interpreter(str(gone), venv="") == str(gone)
    assert Path(config.lasting_interpreter("python3", venv="")).is_absolute()


@pytest.mark.parametrize(
    ("env", "directory", "session"),
    [
        ({"CLAUDE_PROJECT_DIR": "/p q", "CLAUDE_CODE_SESSION_ID": "s"}, "/p q", "s"),
        ({}, "", ""),
        ({"CLAUDE_PROJECT_DIR": "relative"}, "", ""),
    ],
)
def test_a_server_is_told_its_session_or_takes_the_directory_it_was_started_in(
    env: dict[str, str], directory: str, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert config.assistant_session(env) == (directory, str(gone), session)
    gone.rmdir()
    assert config.assistant_session(env) == (directory, "", session)
    monkeypatch.chdir(tmp_path)
