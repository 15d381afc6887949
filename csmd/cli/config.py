"""`csmd config`: every key with its meaning, its value and where that is from; a key is set without a byte beside it.

What is written was read as settings before: a file that the daemon would refuse is not made.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from csmd.cli import config_text, disk, service, show
from csmd.cli.ask import json_option, out
from csmd.config import Settings, default_paths, parse_settings
from csmd.errors import ConfigError, CsmdError

HEAD = """\
# What csmd may be told, each with its default. Take the # away before those that you change.
# The daemon reads this when it starts: csmd restart
"""


def explained() -> dict[str, str]:
    """What each key means: the words below its field in the code, which are the only ones."""
    import ast
    import inspect

    body = ast.parse(textwrap.dedent(inspect.getsource(Settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, words in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(words, ast.Expr) and isinstance(words.value, ast.Constant):
            found[Settings.key(ast.unparse(field.target))] = str(words.value.value)
    return found


@click.group("config")
def config_() -> None:
    """What csmd may be told: config.yaml, explained and changed."""


@config_.command("list")
@json_option
def list_(as_json: bool) -> None:
    """Show every key: what it is for, its value and its default."""
    text = _text()
    chosen, known = parse_settings(text, where=str(_path())), config_text.names(text)
    meaning = explained()
    rows = [
        {
            "key": key, "value": _plain(getattr(chosen, field.name)), "default": _plain(field.default),
            "set": key in known, "meaning": meaning[key],
        }
        for field in fields(Settings) for key in [Settings.key(field.name)]
    ]  # fmt: skip
    out({"path": str(_path()), "keys": rows}, as_json, _listed)


@config_.command()
@click.argument("key")
@json_option
def get(key: str, as_json: bool) -> None:
    """Print the value of KEY."""
    field = _field(key)
    value = _plain(getattr(parse_settings(_text(), where=str(_path())), field))
    out({"key": key, "value": value}, as_json, _valued)


@config_.command("set")
@click.argument("key")
@click.argument("values", metavar="VALUE...", nargs=-1, required=True)
@json_option
def set_(key: str, values: tuple[str, ...], as_json: bool) -> None:
    """Set KEY in config.yaml. A key that is a list takes several values."""
    field = _field(key)
    value = _typed(key, getattr(Settings(), field), values)
    _change(lambda text: config_text.changed(text, key, value))
    now = getattr(parse_settings(_text(), where=str(_path())), field)
    out({"key": key, "value": _plain(now)}, as_json, lambda row: _said(f"{key} = {_word(row['value'])}"))


@config_.command()
@click.argument("key")
@json_option
def unset(key: str, as_json: bool) -> None:
    """Take KEY out of config.yaml. Its default is in force again."""
    _change(lambda text: config_text.without(text, key))
    default = {Settings.key(field.name): _plain(field.default) for field in fields(Settings)}.get(key)
    said = f"{key} = {_word(default)}, the default" if default is not None else f"{key} is gone"
    out({"key": key, "value": default}, as_json, lambda _: _said(said))


@config_.command()
def edit() -> None:
    """Edit config.yaml in your editor. It is written when csmd understands it."""
    before = text = _text()
    if not before.strip():
        text = template()
    while True:
        edited = click.edit(text, extension=".yaml")
        if edited is None or edited == before:
            click.echo("nothing was changed")
            return
        try:
            _write(edited, before)
        except ConfigError as error:
            click.echo(f"csmd: {error.what}", err=True)
            click.echo(f"  try: {error.hint}", err=True)
            if not click.confirm("Edit it again?", default=True, err=True):
                raise CsmdError(f"{_path()} stays as it was") from None
            text = edited
        else:
            _said(f"{_path()} is written")
            return


@config_.command()
@json_option
def path(as_json: bool) -> None:
    """Print the path of config.yaml."""
    out({"path": str(_path()), "exists": _path().exists()}, as_json, lambda row: click.echo(row["path"]))


def template() -> str:
    """A config.yaml in which nothing is chosen yet and everything is explained."""
    parts = [HEAD]
    for field in fields(Settings):
        key = Settings.key(field.name)
        parts += textwrap.wrap(explained()[key], width=98, initial_indent="\n# ", subsequent_indent="# ")
        parts.append(f"#{key}: {_word(_plain(field.default))}")
    return "\n".join(parts) + "\n"


def _path() -> Path:
    return default_paths().config_file


def _text() -> str:
    try:
        return _path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{_path()}: {what}", hint=f"correct {_path()} or move it away") from error


def _field(key: str) -> str:
    """The field of a key; ConfigError with a suggestion for one that is none."""
    for field in fields(Settings):
        if Settings.key(field.name) == key:
            return field.name
    parse_settings(f"{_word(key)}: 0", where="csmd config")
    raise ConfigError(f"{key} is no key", hint="csmd config list")


def _typed(key: str, default: Any, values: tuple[str, ...]) -> Any:
    """What was typed as a value of the default's type, checked as in the file; ConfigError for one that is none."""
    if isinstance(default, tuple):
        listed = len(values) == 1 and values[0].startswith("[")
        value = _scalar(values[0]) if listed else list(values)
    elif len(values) > 1:
        raise click.UsageError(f"{key} takes one value")
    else:
        value = values[0] if isinstance(default, str) else _scalar(values[0])
    parse_settings(config_text.changed("", key, value), where="csmd config")
    return value


def _scalar(typed: str) -> Any:
    value = config_text.value_of(typed)
    return value if isinstance(value, int | float | bool | list) else typed


def _change(edit: Callable[[str], str]) -> None:
    before = _text()
    _write(edit(before), before)


def _write(text: str, before: str) -> None:
    """Writes config.yaml when it can be read as settings and is what it was; through a link, its target."""
    parse_settings(text, where=str(_path()))
    target = Path(_path()).resolve()

    def still() -> None:
        if _text() != before:
            raise CsmdError(f"{_path()} was changed meanwhile and stays as it is", hint="try again")

    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk.write_whole(target, text.encode(), still=still)
    except OSError as error:
        raise CsmdError(f"{_path()}: {error.strerror}; nothing was changed", hint="make it writable") from error


def _said(what: str) -> None:
    click.echo(what)
    if what.startswith("status_line"):
        click.echo("`csmd install` puts it into the assistant's settings, or takes it out")
    elif service.running(default_paths()) is not None:
        click.echo("the daemon reads it when it starts: csmd restart")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _word(value: Any) -> str:
    """A value as it would stand in the file."""
    return config_text.changed("", "x", value)[len("x: ") :].rstrip("\n")


def _valued(row: dict[str, Any]) -> None:
    """The value alone, for scripts: a list's one on each line."""
    value = row["value"]
    for one in value if isinstance(value, list) else [value]:
        click.echo(one if isinstance(one, str) else _word(one))


def _listed(value: dict[str, Any]) -> None:
    console = show.console()
    for row in value["keys"]:
        changed = row["value"] != row["default"]
        show.print_text(console, f"{row['key']}: {_word(row['value'])}", style="bold" if changed else "")
        origin = f"Default {_word(row['default'])}. " if changed else "Set to its default. " if row["set"] else ""
        show.print_text(console, f"{origin}{row['meaning']}", indent=4, style="dim")
    there = "" if Path(value["path"]).exists() else " (not there yet: everything has its default)"
    console.print()
    show.print_text(console, f"{value['path']}{there}")
    show.print_text(console, "`csmd config set KEY VALUE` changes one, `csmd config edit` opens the file.", style="dim")


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (config_,)
