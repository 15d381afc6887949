"""`csmd config`: lists, reads and edits settings without touching other bytes."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from csmd.cli import render, verb
from csmd.cli.render import Line, Screen, dim
from csmd.cli.yaml_edits import key_names, remove_key, set_key
from csmd.config import FETCHABLE, MODEL_NAME, Settings, default_paths, find_unworkable, parse_settings, read_text
from csmd.errors import ConfigError, CsmdError
from csmd.installer import foreign_files, service
from csmd.paths import is_there, model_folder

VERBS = verb.Verbs()
CONFIG = VERBS.add_group("config", "Explain and change the settings of config.yaml.")
KEY = verb.argument("key")
TEMPLATE_HEADER = """\
# All settings with their defaults. Remove the # before those that you change.
# The daemon reads this when it starts: csmd restart
"""
#: Name of a provider's embedding model.
ENDPOINT = re.compile(r"(ollama|openai)/(.+)")


def describe_settings() -> dict[str, str]:
    """Returns key -> its description, from the docstrings of the fields of Settings."""
    import inspect

    docstrings = re.findall(r'^    (\w+): .+?\n    """(.+?)"""$', inspect.getsource(Settings), re.DOTALL | re.MULTILINE)
    return {Settings.key(field): description for field, description in docstrings}


@CONFIG.action("list")
def list_keys(as_json: bool) -> None:
    """Show every key with its description, its value and its default."""
    set_keys, meanings, defaults = key_names(_read_text()), describe_settings(), _settings_by_key(Settings())
    rows = [
        {"key": key, "value": value, "default": defaults[key], "set": key in set_keys, "meaning": meanings[key]}
        for key, value in _read_values().items()
    ]
    verb.print_answer({"path": str(_path()), "keys": rows}, as_json, show_keys)


def show_keys(value: dict[str, Any]) -> Screen:
    """Shows every key with its value, its default and its description."""
    for row in value["keys"]:
        is_changed = row["value"] != row["default"]
        yield Line(f"{row['key']}: {_format_yaml(row['value'])}", style="bold" if is_changed else "")
        default = f"Default {_format_yaml(row['default'])}. "
        origin = default if is_changed else "Set to its default. " if row["set"] else ""
        yield dim(f"{origin}{row['meaning']}", indent=4)
    note = "" if is_there(Path(value["path"])) else " (does not exist: every key has its default)"
    yield Line(f"{value['path']}{note}", gap=True)
    yield dim("`csmd config set KEY VALUE` changes a key, `csmd config edit` opens the file.")


@CONFIG.action("get", KEY)
def get(key: str, as_json: bool) -> None:
    """Print the value of KEY."""
    _find_default(key)
    verb.print_answer({"key": key, "value": _read_values()[key]}, as_json, show_value)


@render.raw
def show_value(row: dict[str, Any]) -> Screen:
    """Shows the value alone, for scripts; a list with one value on each line."""
    values = row["value"] if isinstance(row["value"], tuple) else (row["value"],)
    yield from (value if isinstance(value, str) else _format_yaml(value) for value in values)


def _confirm_sensitive(key: str, *, yes: bool) -> None:
    """Asks before a setting of privacy or of the curator changes."""
    effects = {"privacy": "which decides what csmd leaves out", "curator": "which decides what a language model gets"}
    if effect := effects.get(key.partition(".")[0]):
        verb.confirm(f"Change {key}, {effect}?", yes=yes)


@CONFIG.action("set", KEY, verb.argument("values", "VALUE...", nargs=-1, required=True), verb.YES)
def set_(key: str, values: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Set KEY in config.yaml. A key that is a list takes several values."""
    value = _parse_value(key, _find_default(key), values)
    _check_settings(set_key(_read_text(), key, value), _read_text())  # an invalid value is refused before the question
    _confirm_sensitive(key, yes=yes)
    if key == "embed.model" and (endpoint := ENDPOINT.fullmatch(value)):
        provider, model = endpoint.groups()
        verb.confirm(f"Send the text and searches of every project, redacted, to {provider}, for vectors?", yes=yes)
        # The first vector; CsmdError if there is none.
        verb.run_job("csm_provider_embed", name=provider, model=model, by_person=True)
    _edit_file(lambda text: set_key(text, key, value))
    now = _read_values()[key]
    verb.print_answer({"key": key, "value": now}, as_json, show_changed, change=f"{key} = {_format_yaml(now)}")


@CONFIG.action("unset", KEY, verb.YES)
def unset(key: str, yes: bool, as_json: bool) -> None:
    """Remove KEY from config.yaml, which restores its default."""
    _confirm_sensitive(key, yes=yes)
    _edit_file(lambda text: remove_key(text, key))
    default = _settings_by_key(Settings()).get(key)
    change = f"{key} = {_format_yaml(default)}, the default" if default is not None else f"Removed {key}"
    verb.print_answer({"key": key, "value": default}, as_json, show_changed, change=change)


@render.raw
def show_changed(_value: dict[str, Any], *, change: str) -> Screen:
    """Shows the change, and when it takes effect."""
    yield change
    if change.startswith("status_line"):
        yield "`csmd install` adds it to the assistant's settings, or removes it"
    elif service.find_process(default_paths()) is not None:
        yield "Run `csmd restart` to apply it."


@CONFIG.command("edit")
def edit() -> None:
    """Edit config.yaml in your editor. It is written only if it is valid."""
    before = text = _read_text()
    if not before.strip():
        text = format_template()
    while True:
        edited = click.edit(text, extension=".yaml")
        if edited is None or edited == before:
            click.echo("No change.")
            return
        try:
            _write(edited, before)
        except ConfigError as error:
            render.complain(error.what, hint=error.hint)
            if not verb.ask_yes_no("Edit it again?", default=True, err=True):
                raise CsmdError(f"{_path()}: nothing was changed") from None
            text = edited
        else:
            render.show(show_changed({}, change=f"Wrote {_path()}"))
            return


@CONFIG.action("path")
def path(as_json: bool) -> None:
    """Print the path of config.yaml."""
    verb.print_answer({"path": str(_path()), "exists": is_there(_path())}, as_json, render.template("{path}"))


def format_template() -> str:
    """Returns a config.yaml with every key explained and commented out."""
    parts, meanings = [TEMPLATE_HEADER], describe_settings()
    for key, default in _settings_by_key(Settings()).items():
        parts += textwrap.wrap(meanings[key], width=98, initial_indent="\n# ", subsequent_indent="# ")
        parts.append(f"#{key}: {_format_yaml(default)}")
    return "\n".join(parts) + "\n"


def _path() -> Path:
    return default_paths().config_file


def _read_text() -> str:
    return read_text(_path())


def _read_values() -> dict[str, Any]:
    """Returns key -> its value in force."""
    return _settings_by_key(parse_settings(_read_text(), where=str(_path())))


def _settings_by_key(settings: Settings) -> dict[str, Any]:
    return {Settings.key(field.name): getattr(settings, field.name) for field in fields(Settings)}


def _find_default(key: str) -> Any:
    """Returns the default of a key; ConfigError with a suggestion for an unknown key."""
    defaults = _settings_by_key(Settings())
    if key not in defaults:
        parse_settings(f"{_format_yaml(key)}: 0", where="config")
        raise ConfigError(f"unknown key {key}", hint="csmd config list")
    return defaults[key]


def _parse_value(key: str, default: Any, values: tuple[str, ...]) -> Any:
    """Parses typed words as a value of the default's type; ConfigError for an invalid one."""
    if isinstance(default, tuple):
        is_yaml_list = len(values) == 1 and values[0].startswith("[")
        value = _parse_scalar(values[0]) if is_yaml_list else list(values)
    elif len(values) > 1:
        raise click.UsageError(f"{key} takes one value")
    else:
        value = values[0] if isinstance(default, str) else _parse_scalar(values[0])
    parse_settings(set_key("", key, value), where="config")
    return value


def _parse_scalar(word: str) -> Any:
    """Returns a typed word as the number, boolean or list that YAML reads, else the word itself."""
    import yaml

    try:
        value = yaml.safe_load(word)
    except (yaml.YAMLError, ValueError):
        return word
    return value if isinstance(value, int | float | bool | list) else word


def _check_settings(text: str, before: str) -> None:
    """Raises ConfigError if a text is not valid settings, or has a new value that cannot work."""
    settings = parse_settings(text, where=str(_path()))
    problems = list(find_unworkable(settings))
    earlier_model = ""
    with suppress(ConfigError):
        earlier = parse_settings(before, where=str(_path()))
        earlier_model = earlier.embed_model
        earlier_problems = set(find_unworkable(earlier))
        problems = [problem for problem in problems if problem not in earlier_problems]
    name = settings.embed_model
    # `csmd config set` itself tries the model of an endpoint.
    is_installed = is_there(default_paths().models / model_folder(name))
    is_obtainable = name in FETCHABLE or ENDPOINT.fullmatch(name) or is_installed
    if MODEL_NAME.fullmatch(name) and name != earlier_model and not is_obtainable:
        hint = f"choose one of {', '.join(FETCHABLE)}"
        raise ConfigError(f"embed.model: {name} is not installed, and csmd cannot fetch it", hint=hint)
    if problems:
        _, what, hint = problems[0]
        raise ConfigError(what, hint=hint)


def _edit_file(edit: Callable[[str], str]) -> None:
    before = _read_text()
    _write(edit(before), before)


def _write(text: str, before: str) -> None:
    """Writes config.yaml if the text is valid and the file unchanged; follows a link to its target."""
    _check_settings(text, before)
    target = Path(os.path.realpath(_path()))

    def check_unchanged() -> None:
        if _read_text() != before:
            raise CsmdError(f"{_path()} was changed by another program; nothing was written", hint="try again")

    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        foreign_files.write_atomic(target, text.encode(), last_check=check_unchanged)
    except OSError as error:
        raise CsmdError(f"{_path()}: {error.strerror}; nothing was changed", hint="make it writable") from error


def _format_yaml(value: Any) -> str:
    """Formats a value as YAML."""
    return set_key("", "x", value)[len("x: ") :].rstrip("\n")
