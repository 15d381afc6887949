"""Commands that encrypt the database and its copies at rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from csmd.cli import backups, render, verb
from csmd.cli.render import Line, Screen, bold, pair, pairs
from csmd.text.display import amount

VERBS = verb.Verbs()
ENCRYPT = VERBS.add_group("encrypt", "Encrypt or decrypt the database and its backups.")
PROGRAM = "csmd.daemon.encrypt"
KEY_FILE = verb.option(
    "--key-file", "key_file", metavar="FILE", type=click.Path(path_type=Path), default=None,
    help="Keep the key in FILE, outside csmd's home; in the keyring by default.",
)  # fmt: skip
#: Files that encryption does not cover.
NOT_COVERED = (
    "Not encrypted: the pages below memory/, csmd's own session files, queued events, the assistant's transcripts. "
    "Cannot be removed: remnants of the old files on disk until overwritten, snapshots, copies elsewhere."
)


def _key_location(key_file: Path | None) -> str:
    return str(key_file.expanduser().absolute()) if key_file else "keyring"


@ENCRYPT.action("on", KEY_FILE, verb.YES)
def encrypt_on(key_file: Path | None, yes: bool, as_json: bool) -> None:
    """Encrypt the database and its backups. Shows a recovery key first."""
    verb.require_terminal()
    prepared = backups.run_offline("prepare", _key_location(key_file), program=PROGRAM)
    render.show(show_prepared(prepared), err=as_json)
    verb.confirm("Have you written down the recovery key? Encrypt now?", yes=yes)
    _convert("on", prepared["place"], prepared["digest"], as_json=as_json)


@ENCRYPT.action("off", verb.YES)
def encrypt_off(yes: bool, as_json: bool) -> None:
    """Decrypt the database and its backups."""
    verb.require_terminal()
    verb.confirm("Store the database and its backups unencrypted?", yes=yes)
    _convert("off", as_json=as_json)


def _convert(*arguments: str, as_json: bool) -> None:
    value = backups.run_with_daemon_stopped(*arguments, dry_run=False, has_changed=lambda _: False, program=PROGRAM)
    verb.print_answer(value, as_json, show_encryption)
    if value["left"]:
        raise SystemExit(1)


@ENCRYPT.action("status")
def encryption_status(as_json: bool) -> None:
    """Show the number of encrypted databases, and the state of the key."""
    verb.print_answer(backups.run_offline("status", program=PROGRAM), as_json, show_encryption)


@ENCRYPT.action("recover", KEY_FILE)
def recover(key_file: Path | None, as_json: bool) -> None:
    """Put the key back into the keyring. Asks for the recovery key; a waiting daemon goes on by itself."""
    verb.require_terminal()
    typed = click.prompt("recovery key", hide_input=True, err=True)
    location = _key_location(key_file) if key_file else ""
    value = backups.run_offline("recover", location, program=PROGRAM, stdin=typed)
    verb.print_answer(value, as_json, show_recovered)


@render.raw
def show_prepared(value: dict[str, Any]) -> Screen:
    """Shows the recovery key, and the files that encryption does not cover."""
    if value["recovery_key"]:
        yield bold("recovery key, shown only once: if you lose both it and the key, the database cannot be recovered")
        yield f"  {value['recovery_key']}"
    yield pair("key", f"in {_describe_location(value['place'])}")
    yield Line(NOT_COVERED)
    for path in value.get("damaged", ()):
        yield Line(f"A damaged database that was set aside is removed if it cannot be encrypted: {path}")


def _describe_location(location: str) -> str:
    return "the keyring" if location == "keyring" else location


def show_encryption(value: dict[str, Any]) -> Screen:
    """Shows the state of encryption, the location of the key, and the converted databases."""
    unfinished = "unfinished: `csmd encrypt on` or `csmd encrypt off` does the rest"
    yield bold(f"encryption: {unfinished if value['state'] == 'unfinished' else value['state']}")
    yield from pairs([
        ("key", f"in {_describe_location(value['place'])}" if value["place"] else ""),
        ("missing", f"{value['key_missing']}; {value['hint']}" if value["key_missing"] else ""),
        ("library", value["cipher"] or "apsw without a cipher: replace it with apsw-sqlite3mc (docs/security.md)"),
        *((state, amount(len(value[state]), "database")) for state in ("encrypted", "plain", "converted") if value.get(state)),
        *((fate, f"{path}: unreadable") for fate in ("removed", "left") for path in value.get(fate, ())),
    ])  # fmt: skip
    if value["state"] == "on":
        yield Line(NOT_COVERED)
    elif value.get("converted"):
        yield Line("The key is kept: encrypted copies made earlier still need it.")


def show_recovered(value: dict[str, Any]) -> Screen:
    """Shows the location of the restored key."""
    location = _describe_location(value["place"])
    yield Line(f"Key restored to {location}. A waiting daemon resumes within 15 s.")
