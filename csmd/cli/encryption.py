"""Commands that encrypt the database and its copies at rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from csmd.cli import backups, render, verb
from csmd.cli.render import Line, Screen, bold, pair, pairs
from csmd.errors import CsmdError
from csmd.text.display import amount

#: The verbs of this module.
VERBS = verb.Verbs()
ENCRYPT = VERBS.add_group("encrypt", "Encrypt the database and its backups, or stop doing so.")
PROGRAM = "csmd.daemon.encrypt"
KEY_FILE = verb.option(
    "--key-file", "key_file", metavar="FILE", type=click.Path(path_type=Path), default=None,
    help="Keep the key in FILE, outside csmd's home; else in the keyring.",
)  # fmt: skip
#: What encryption never covers.
PLAIN = (
    "Not encrypted: the pages below memory/, csmd's own session files, events in the spool until they are taken in, the "
    "assistant's transcripts. Out of reach: what the old files leave on the disk until it is overwritten, snapshots, and "
    "copies elsewhere."
)


def _person() -> None:
    if not verb.is_interactive():
        raise CsmdError("only a person at a terminal can have csmd do this", hint="type it in a terminal")


def _place(key_file: Path | None) -> str:
    return str(key_file.expanduser().absolute()) if key_file else "keyring"


@ENCRYPT.action("on", KEY_FILE, verb.YES)
def on(key_file: Path | None, yes: bool, as_json: bool) -> None:
    """Encrypt the database and its backups. Shows a recovery key first."""
    _person()
    prepared = backups.offline("prepare", _place(key_file), program=PROGRAM)
    render.show(show_prepared(prepared), err=as_json)
    verb.confirm("The recovery key is written down: encrypt now?", yes=yes)
    _switch("on", prepared["place"], prepared["digest"], as_json=as_json)


@ENCRYPT.action("off", verb.YES)
def off(yes: bool, as_json: bool) -> None:
    """Make the database and its backups readable without a key again."""
    _person()
    verb.confirm("Let every program of yours read the database and its backups again?", yes=yes)
    _switch("off", as_json=as_json)


def _switch(*arguments: str, as_json: bool) -> None:
    value = backups.with_daemon_stopped(*arguments, dry_run=False, changed=lambda _: False, program=PROGRAM)
    verb.print_answer(value, as_json, show_encryption)
    if value["left"]:
        raise SystemExit(1)


@ENCRYPT.action("status")
def encryption_status(as_json: bool) -> None:
    """Show what is encrypted, and whether the key is there."""
    verb.print_answer(backups.offline("status", program=PROGRAM), as_json, show_encryption)


@ENCRYPT.action("recover", KEY_FILE)
def recover(key_file: Path | None, as_json: bool) -> None:
    """Put the key back into the keyring. Asks for the recovery key; a waiting daemon goes on by itself."""
    _person()
    typed = click.prompt("recovery key", hide_input=True, err=True)
    value = backups.offline("recover", _place(key_file) if key_file else "", program=PROGRAM, stdin=typed)
    verb.print_answer(value, as_json, show_recovered)


@render.raw
def show_prepared(value: dict[str, Any]) -> Screen:
    """The recovery key, and what encryption does not cover."""
    if value["recovery_key"]:
        yield bold("recovery key, shown this once: without it and the key nobody reads the database again")
        yield f"  {value['recovery_key']}"
    yield pair("key", f"in {_in_words(value['place'])}")
    yield Line(PLAIN)
    for path in value.get("damaged", ()):
        yield Line(f"A damaged database that was set aside is removed if it cannot be encrypted: {path}")


def _in_words(place: str) -> str:
    return "the keyring" if place == "keyring" else place


def show_encryption(value: dict[str, Any]) -> Screen:
    """What is encrypted, where the key is, and what was converted."""
    unfinished = "unfinished: `csmd encrypt on` or `csmd encrypt off` does the rest"
    yield bold(f"encryption: {unfinished if value['state'] == 'unfinished' else value['state']}")
    yield from pairs([
        ("key", f"in {_in_words(value['place'])}" if value["place"] else ""),
        ("missing", f"{value['key_missing']}; {value['hint']}" if value["key_missing"] else ""),
        ("library",
        value["cipher"] or "apsw without a cipher: it needs apsw-sqlite3mc in its place (docs/security.md)"),
        ("encrypted", amount(len(value["encrypted"]), "database") if value["encrypted"] else ""),
        ("plain", amount(len(value["plain"]), "database") if value["plain"] else ""),
        ("converted", amount(len(value["converted"]), "database") if value.get("converted") else ""),
        *(("removed", f"{path}: it could not be read") for path in value.get("removed", ())),
        *(("left", f"{path}: it could not be read") for path in value.get("left", ())),
    ])  # fmt: skip
    if value["state"] == "on":
        yield Line(PLAIN)
    elif value.get("converted"):
        yield Line("The key stays where it is: copies elsewhere that were made meanwhile need it.")


def show_recovered(value: dict[str, Any]) -> Screen:
    """Where the key is now."""
    yield Line(f"the key is in {_in_words(value['place'])} again; a daemon that waits for it goes on within 15 s")
