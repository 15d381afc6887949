"""The key of an encrypted home: where it is kept, how it is written down, how it is recognized.

A key is 32 random bytes. In the keyring, in a key file and on paper it is text: letters and digits in groups with a
checksum. `encryption.json` in the home holds the key's place and digest, never the key, so a home can be moved. The key
is in no argument, environment variable, log or report.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from csmd import wire
from csmd.errors import BadInput, KeyMissing
from csmd.store import files, sqlite

RECORD_FILE = "encryption.json"
#: The place of a key that is not in a file.
KEYRING = "keyring"
KEY_BYTES = 32
CHECKSUM_BYTES = 3
#: Characters of a printed key between two hyphens.
GROUP_CHARACTERS = 4
#: Most bytes of a key file.
MAX_FILE_BYTES = 4096
RECOVER_HINT = "`csmd encrypt recover` puts the key back from the recovery key"


class Record(NamedTuple):
    """How a home is encrypted: the key's place (KEYRING or a file), its digest, whether new files are encrypted."""

    place: str
    digest: str
    wanted: bool = True


def to_text(key: bytes) -> str:
    """Returns a key as people write it down."""
    text = base64.b32encode(key + hashlib.sha256(key).digest()[:CHECKSUM_BYTES]).decode("ascii")
    return "-".join(text[at : at + GROUP_CHARACTERS] for at in range(0, len(text), GROUP_CHARACTERS))


def from_text(text: str) -> bytes | None:
    """Returns the key in a text, in any case and grouping; None if it is mistyped."""
    letters = re.sub(r"[\s-]", "", text).upper().translate(str.maketrans("018", "OIB"))
    with suppress(ValueError):
        key = base64.b32decode(letters)[:KEY_BYTES]
        if to_text(key).replace("-", "") == letters:
            return key
    return None


def digest_of(key: bytes) -> str:
    """Returns a digest by which a key is recognized."""
    return hashlib.blake2b(b"csmd", key=key, digest_size=8).hexdigest()


def read_record(home: Path) -> Record | None:
    """Returns how a home is encrypted; None for a plain one."""
    noted = files.read_json(home / RECORD_FILE)
    return Record(str(noted["place"]), str(noted["digest"]), bool(noted["wanted"])) if noted else None


def write_record(home: Path, record: Record | None) -> None:
    """Records durably how a home is encrypted; None: no longer."""
    if record is None:
        (home / RECORD_FILE).unlink(missing_ok=True)
    else:
        files.write_atomic(home / RECORD_FILE, wire.pretty(record._asdict()).encode())
    files.flush_to_disk(home)


def use_stored_key(home: Path, fetch: Callable[[Record], bytes] | None = None) -> None:
    """Gives SQLite the key of a home, or none for a plain one; raises KeyMissing, or ConfigError without a cipher.

    Call it before any connection is open: it reads the database's file.
    """
    record = read_record(home)
    if record is None and not sqlite.is_encrypted_file(home / "csmd.db"):
        sqlite.use_key(None)
        return
    sqlite.require_cipher()
    if record is None:
        raise KeyMissing(f"the database is encrypted, and {home / RECORD_FILE} is gone", hint=RECOVER_HINT)
    sqlite.use_key((fetch or fetch_key)(record), for_new=record.wanted)


def fetch_key(record: Record) -> bytes:
    """Returns the key from its place; raises KeyMissing if it cannot be had or is another one."""
    where = "the keyring" if record.place == KEYRING else record.place
    if record.place == KEYRING:
        text = _in_keyring("get_password", "csmd", _account(record.digest))
    else:
        text = _read_file(Path(record.place))
    if not text:
        raise KeyMissing(f"the key of the database is not in {where}", hint=RECOVER_HINT)
    key = from_text(text)
    if key is None or digest_of(key) != record.digest:
        raise KeyMissing(f"{where} holds another key than the database's", hint=RECOVER_HINT)
    return key


def store_key(key: bytes, place: str, home: Path) -> Record:
    """Puts a key into its place and reads it back; raises BadInput for a file that holds something else."""
    record = Record(place, digest_of(key))
    if place == KEYRING:
        _in_keyring("set_password", "csmd", _account(record.digest), to_text(key))
    elif Path(place).is_relative_to(home):
        raise BadInput(f"{place}: a key beside what it opens protects nothing", hint="choose a file outside the home")
    elif not _read_file(Path(place)):
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(f"{to_text(key)}\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadInput(f"{place}: {error.strerror}", hint="choose a file that is not there yet") from error
    fetch_key(record)
    return record


def key_in_file(place: str) -> bytes | None:
    """Returns the key in a file, None if there is no file; raises BadInput if it holds something else."""
    text = _read_file(Path(place))
    key = from_text(text) if text else None
    if text and key is None:
        raise BadInput(f"{place} is there and holds no key of csmd's", hint="choose a file that is not there yet")
    return key


def _account(digest: str) -> str:
    return f"database {digest}"


def _read_file(path: Path) -> str:
    return (files.read_small(str(path), MAX_FILE_BYTES) or "").strip()


def _in_keyring(action: str, *arguments: str) -> Any:
    try:
        import keyring
    except ImportError as error:
        hint = "install it beside csmd (`pip install keyring`), or name a file: --key-file"
        raise KeyMissing("the package keyring is not installed", hint=hint) from error
    try:
        return getattr(keyring, action)(*arguments)
    except Exception as error:  # noqa: BLE001 - each backend has errors of its own, and their words may hold anything
        hint = "unlock it; csmd goes on by itself. Where there is none, name a file: --key-file"
        raise KeyMissing(f"the keyring is locked or not there ({type(error).__name__})", hint=hint) from None
