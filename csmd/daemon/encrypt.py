"""`python -m csmd.daemon.encrypt`: encrypts the database and its copies, or makes them plain again, without a daemon.

    prepare PLACE             makes a key, stores it in PLACE (`keyring` or a file) and prints it for recovery
    on PLACE DIGEST, off      converts the database, then each copy of it
    status, recover PLACE     prints what is encrypted; stores the key on stdin in PLACE again
    key                       prints the key of the home for the daemon

Every file is converted in a work directory, compared with the old one and renamed over it; the files themselves show which
of them are encrypted. So each is whole if the process is killed, and `on` or `off` run again finishes the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from csmd import wire
from csmd.config import Config
from csmd.daemon import logs
from csmd.daemon.instance import load_configuration, run_explained
from csmd.daemon.repair import open_work_directory
from csmd.errors import BadInput, CsmdError, Damaged, KeyMissing, StoreError
from csmd.paths import Paths, is_file
from csmd.store import backup, cipher, files, integrity, keys, purge_files

_SIDECARS = backup.DATABASE_SUFFIXES[1:]


def list_copies(paths: Paths) -> list[Path]:
    """Returns the other databases of the home: backups and files that were set aside."""
    copies = purge_files.list_copies(paths.home, paths.log_dir)
    databases = (path for path in copies if path.name.startswith(("csmd", backup.UNFINISHED)))
    return [path for path in databases if not path.name.endswith(_SIDECARS) and path.stat().st_size]


def prepare(config: Config, location: str) -> dict[str, Any]:
    """Makes the key of a home and stores it in `place`; the recovery key is "" if it was made and shown before."""
    home = config.paths.home
    cipher.require_cipher()
    if (record := keys.read_record(home)) is not None:
        keys.fetch_key(record)
        return {"place": record.location, "digest": record.digest, "recovery_key": ""}
    in_file = None if location == keys.KEYRING else keys.read_key_file(location)
    key = in_file or os.urandom(keys.KEY_BYTES)
    record = keys.store_key(key, location, home)
    damaged = [str(path) for path in list_copies(config.paths) if path.parent.name.startswith("damaged-")]
    return {"place": location, "digest": record.digest, "recovery_key": keys.format_key(key), "damaged": damaged}


def switch(config: Config, default: keys.EncryptionRecord | None) -> dict[str, Any]:
    """Encrypts the database and every copy, or decrypts them if `default` is None.

    The key is that of the home's record, or of `default` if the home has none.
    """
    paths, is_encrypting = config.paths, default is not None
    with open_work_directory(config) as work_directory:
        record = keys.read_record(paths.home) or default
        if record is None:
            return {"state": "off", "converted": [], "removed": [], "left": []}
        cipher.require_cipher()
        key = keys.fetch_key(record)
        keys.write_record(paths.home, record._replace(encrypts_new_files=is_encrypting))
        cipher.use_key(key, for_new=is_encrypting)
        report: dict[str, Any] = {"converted": [], "removed": [], "left": [], "place": record.location}
        if _needs_conversion(paths.database, is_encrypting):
            new = files.make_private(work_directory / "new") / paths.database.name
            backup.convert(paths.database, new, encrypted=is_encrypting)
            if problems := integrity.inspect(new).problems:
                raise Damaged(f"the database is not sound: {problems[0]}; nothing was changed", hint="csmd repair")
            # The old one is removed with the work directory.
            aside = files.make_private(work_directory / "replaced") / paths.database.name
            backup.replace_database(new, paths.database, aside)
            report["converted"].append(str(paths.database))
        for path in list_copies(paths):
            if _needs_conversion(path, is_encrypting):
                copy = files.make_private(work_directory) / "copy"
                report[_convert_copy(path, copy, is_encrypting)].append(str(path))
        if not is_encrypting:
            keys.write_record(paths.home, None)
    return {**describe_encryption(config), **report}


def _is_database(path: Path) -> bool:
    return is_file(path) and path.stat().st_size > 0


def _needs_conversion(path: Path, is_encrypting: bool) -> bool:
    """Whether a database exists and is not yet encrypted or plain as wanted."""
    return _is_database(path) and cipher.is_encrypted_file(path) != is_encrypting


def _convert_copy(path: Path, new: Path, is_encrypting: bool) -> str:
    """Converts a copy in place and keeps its time; an unreadable plain copy is removed, an encrypted one left."""
    info, outcome = path.stat(), "converted"
    try:
        backup.convert(path, new, encrypted=is_encrypting)
        os.utime(new, ns=(info.st_atime_ns, info.st_mtime_ns))
        new.replace(path)
    except StoreError:
        new.unlink(missing_ok=True)
        if not is_encrypting:
            return "left"
        outcome = "removed"
        path.unlink()
    for suffix in _SIDECARS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    files.flush_to_disk(path.parent)
    return outcome


def describe_encryption(config: Config) -> dict[str, Any]:
    """Returns the library, the state (on, off, unfinished), the key's place or why it is missing, and the files."""
    paths = config.paths
    record = keys.read_record(paths.home)
    databases = [path for path in (paths.database, *list_copies(paths)) if _is_database(path)]
    plain = [str(path) for path in databases if not cipher.is_encrypted_file(path)]
    key_missing, hint = "", ""
    if record is not None:
        try:
            keys.fetch_key(record)
        except KeyMissing as error:
            key_missing, hint = error.what, error.hint
    is_on = record is not None and record.encrypts_new_files and not plain
    is_off = record is None and len(plain) == len(databases)
    return {
        "cipher": cipher.read_cipher_version(), "state": "on" if is_on else "off" if is_off else "unfinished",
        "place": record.location if record else "", "key_missing": key_missing, "hint": hint, "plain": plain,
        "encrypted": [str(path) for path in databases if str(path) not in plain],
    }  # fmt: skip


def recover(config: Config, location: str, typed: str) -> dict[str, Any]:
    """Stores a recovery key in `place`, by default where it was; BadInput for another home's."""
    paths, key = config.paths, keys.parse_key(typed)
    record = keys.read_record(paths.home)
    if key is None:
        raise BadInput("this is not a recovery key: a letter or a group is wrong", hint="type its 14 groups again")
    if record is not None and record.digest != keys.digest_key(key):
        raise BadInput("this key belongs to another home", hint="use the key that `csmd encrypt on` showed here")
    if record is None:
        cipher.require_cipher()
        cipher.use_key(key)
        try:
            backup.examine(paths.database)
        except Damaged as error:
            raise BadInput("this key does not open the database", hint="use the key of this home") from error
    new = keys.store_key(key, location or (record.location if record else keys.KEYRING), paths.home)
    keys.write_record(paths.home, new._replace(encrypts_new_files=record.encrypts_new_files if record else True))
    return {"place": new.location}


def _read_key(config: Config) -> dict[str, str]:
    try:
        record = keys.read_record(config.paths.home)
        return {"key": keys.format_key(keys.fetch_key(record))} if record else {}
    except CsmdError as error:
        return {"what": error.what, "hint": error.hint}


def main(arguments: list[str]) -> int:
    """Runs one of the commands above; returns the exit code."""
    logs.keep_words_off_stderr()
    os.umask(0o077)
    command, *rest = arguments

    def perform() -> None:
        config = load_configuration()
        commands: dict[str, Callable[[], dict[str, Any]]] = {
            "prepare": lambda: prepare(config, *rest), "recover": lambda: recover(config, rest[0], sys.stdin.read()),
            "on": lambda: switch(config, keys.EncryptionRecord(rest[0], rest[1])), "off": lambda: switch(config, None),
            "key": lambda: _read_key(config), "status": lambda: describe_encryption(config),
        }  # fmt: skip
        print(wire.dumps({"report": commands[command]()}))  # noqa: T201

    return run_explained(perform)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
