"""Stores, reads and recognizes the key of an encrypted home.

A key is 32 random bytes. In the keyring, in a key file and on paper it is text: letters and digits in groups with a
checksum. `encryption.json` in the home records where the key is and its digest. It never holds the key. It names no path
of the home, so the home can be moved. The key is in no argument, environment variable, log or report.
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
from csmd.store import cipher, files

RECORD_FILE = "encryption.json"
#: The location of a key that is not in a file.
KEYRING = "keyring"
KEY_BYTES = 32
CHECKSUM_BYTES = 3
#: Characters of a printed key between two hyphens.
GROUP_CHARACTERS = 4
MAX_KEY_FILE_BYTES = 4096
RECOVER_HINT = "run `csmd encrypt recover`, which restores the key from the recovery key"
NEW_FILE_HINT = "choose a new file"
#: Base32 has no 0, 1 or 8: they are read as the letters that they resemble.
_MISREAD_DIGITS = str.maketrans("018", "OIB")


class EncryptionRecord(NamedTuple):
    """How a home is encrypted: where its key is (KEYRING or a file), its digest, whether new files are encrypted."""

    location: str
    digest: str
    encrypts_new_files: bool = True


def format_key(key: bytes) -> str:
    """Returns a key as text to write down: groups of letters and digits, with a checksum."""
    text = base64.b32encode(key + hashlib.sha256(key).digest()[:CHECKSUM_BYTES]).decode("ascii")
    return "-".join(text[start : start + GROUP_CHARACTERS] for start in range(0, len(text), GROUP_CHARACTERS))


def parse_key(text: str) -> bytes | None:
    """Returns the key in a text, in any case and grouping; None if the text is no key or is mistyped."""
    letters = re.sub(r"[\s-]", "", text).upper().translate(_MISREAD_DIGITS)
    with suppress(ValueError):
        key = base64.b32decode(letters)[:KEY_BYTES]
        if format_key(key).replace("-", "") == letters:
            return key
    return None


def digest_key(key: bytes) -> str:
    """Returns the digest that identifies a key."""
    return hashlib.blake2b(b"csmd", key=key, digest_size=8).hexdigest()


def read_record(home: Path) -> EncryptionRecord | None:
    """Returns how a home is encrypted; None for a plain one."""
    stored = files.read_json(home / RECORD_FILE)
    if not stored:
        return None
    return EncryptionRecord(str(stored["place"]), str(stored["digest"]), bool(stored["wanted"]))


def write_record(home: Path, record: EncryptionRecord | None) -> None:
    """Records durably how a home is encrypted; None removes the record."""
    if record is None:
        (home / RECORD_FILE).unlink(missing_ok=True)
    else:
        stored = {"place": record.location, "digest": record.digest, "wanted": record.encrypts_new_files}
        files.write_atomic(home / RECORD_FILE, wire.pretty(stored).encode())
    files.flush_to_disk(home)


def use_stored_key(home: Path, fetch: Callable[[EncryptionRecord], bytes] | None = None) -> None:
    """Gives SQLite the key of a home, or none for a plain one; raises KeyMissing, or ConfigError without a cipher.

    Must be called before any connection is open, because it reads the database's file.
    """
    record = read_record(home)
    if record is None and not cipher.is_encrypted_file(home / "csmd.db"):
        cipher.use_key(None)
        return
    cipher.require_cipher()
    if record is None:
        raise KeyMissing(f"the database is encrypted, and {home / RECORD_FILE} is gone", hint=RECOVER_HINT)
    cipher.use_key((fetch or fetch_key)(record), for_new=record.encrypts_new_files)


def fetch_key(record: EncryptionRecord) -> bytes:
    """Returns the key from its location; raises KeyMissing if it is missing or does not match `record.digest`."""
    if record.location == KEYRING:
        name = "the keyring"
        text = _call_keyring("get_password", "csmd", _format_account(record.digest))
    else:
        name = record.location
        text = _read_text(name)
    if not text:
        raise KeyMissing(f"the key of the database is not in {name}", hint=RECOVER_HINT)
    key = parse_key(text)
    if key is None or digest_key(key) != record.digest:
        raise KeyMissing(f"the key in {name} does not open this database", hint=RECOVER_HINT)
    return key


def store_key(key: bytes, location: str, home: Path) -> EncryptionRecord:
    """Stores a key and reads it back; raises BadInput for a file inside the home or with other content."""
    record = EncryptionRecord(location, digest_key(key))
    if location == KEYRING:
        _call_keyring("set_password", "csmd", _format_account(record.digest), format_key(key))
    elif Path(location).is_relative_to(home):
        raise BadInput(f"{location} is inside csmd's home", hint="choose a file outside the home")
    elif (stored := read_key_file(location)) is None:
        _write_key_file(Path(location), key)
    elif stored != key:
        raise BadInput(f"{location} contains another key", hint=NEW_FILE_HINT)
    fetch_key(record)
    return record


def _write_key_file(path: Path, key: bytes) -> None:
    """Writes a new key file durably; raises BadInput if it exists or the disk refuses."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{format_key(key)}\n")
            file.flush()
            os.fsync(file.fileno())
        files.flush_to_disk(path.parent)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}", hint=NEW_FILE_HINT) from error


def read_key_file(path: str) -> bytes | None:
    """Returns the key in a file, None if the file is missing or empty; raises BadInput for other content."""
    text = _read_text(path)
    key = parse_key(text)
    if text and key is None:
        raise BadInput(f"{path} exists and does not contain a csmd key", hint=NEW_FILE_HINT)
    return key


def _format_account(digest: str) -> str:
    return f"database {digest}"


def _read_text(path: str) -> str:
    return (files.read_small(path, MAX_KEY_FILE_BYTES) or "").strip()


def _call_keyring(action: str, *arguments: str) -> Any:
    try:
        import keyring
    except ImportError as error:
        hint = "run `pip install keyring` where csmd is installed, or use --key-file"
        raise KeyMissing("the package keyring is not installed", hint=hint) from error
    try:
        return getattr(keyring, action)(*arguments)
    except Exception as error:  # noqa: BLE001 - each backend has errors of its own, and their words may hold anything
        hint = "unlock it (csmd then continues), or use --key-file"
        raise KeyMissing(f"the keyring is locked or missing ({type(error).__name__})", hint=hint) from None
