"""Encryption of databases: the key of this process, and which files are encrypted with it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import apsw

from csmd.errors import ConfigError, KeyMissing, StoreError

#: How a plain database file begins.
_PLAIN_HEADER = b"SQLite format 3\0"
#: Bytes 20 to 24 of an encrypted database file: the cipher reserves 32 bytes of each page.
_RESERVED_BYTES = b"\x20\x40\x20\x20"
#: Bytes at the beginning of a file that show whether it is encrypted.
_HEADER_BYTES = 24


class EncryptionKey(NamedTuple):
    """The key of this process's home in SQLite's form, "" for none, and whether new databases get it."""

    key: str = ""
    for_new: bool = False


_process_key = EncryptionKey()


def use_key(key: bytes | None, *, for_new: bool = True) -> None:
    """Sets the key for every connection that this process opens from now on to an encrypted or new database."""
    global _process_key
    _process_key = EncryptionKey() if key is None else EncryptionKey(f"raw:{key.hex()}", for_new)


def encrypts_new() -> bool:
    """Whether new databases of this process are encrypted."""
    return _process_key.for_new


def read_cipher_version() -> str:
    """Returns the cipher that apsw was built with; "" if none."""
    return str(getattr(apsw, "mc_version", ""))


def require_cipher() -> None:
    """Raises ConfigError if apsw was built without a cipher."""
    if not read_cipher_version():
        raise ConfigError(
            "encryption needs apsw-sqlite3mc in place of apsw",
            hint="run `pip uninstall apsw` and `pip install --force-reinstall apsw-sqlite3mc` where csmd is installed",
        )


def has_key(connection: apsw.Connection) -> bool:
    """Whether a connection was given a key."""
    return bool(connection.pragma("cipher_salt"))


def is_encrypted_file(path: Path) -> bool:
    """Whether a closed database is encrypted; opening one that this process has open would drop its locks."""
    try:
        with path.open("rb") as file:
            return _is_encrypted(file.read(_HEADER_BYTES))
    except OSError:
        return False


def _is_encrypted(header: bytes) -> bool:
    return not header.startswith(_PLAIN_HEADER) and header[-len(_RESERVED_BYTES) :] == _RESERVED_BYTES


def apply_key(connection: apsw.Connection, *, like: apsw.Connection | None = None) -> None:
    """Gives a connection the key if its file is encrypted, or new and to be encrypted; as the connection `like`, if given."""
    if not connection.filename:
        return  # in memory
    if like is None:
        header = bytes(connection.read("main", 0, 0, _HEADER_BYTES)[1])
        is_encrypted = _is_encrypted(header) if any(header) else _process_key.for_new
    else:
        is_encrypted = has_key(like)
    if is_encrypted and not _process_key.key:
        raise KeyMissing("the database is encrypted, and its key is not known", hint="run `csmd encrypt status`")
    if is_encrypted:
        connection.pragma("key", _process_key.key)


def copy_into(connection: apsw.Connection, target: Path, *, encrypted: bool) -> None:
    """Copies a database to an empty file, encrypted with this process's key or plain, whatever the source is."""
    key = f"cipher=chacha20&key={_process_key.key}" if encrypted else "key="
    try:
        connection.execute("vacuum into ?", (f"{target.absolute().as_uri()}?{key}",))
    except apsw.Error as error:  # the message may contain the key
        raise StoreError(
            f"{target}: the copy could not be made ({type(error).__name__})",
            hint="run `csmd repair`, or free some space",
        ) from None
