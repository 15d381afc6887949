"""The pauses as the daemon knows them: read from their file in the home, again when that is another one.

Beside the database and not in it: a restore, a repair and a new database know them all the same, and
`csmd pause` needs no daemon.
"""

from __future__ import annotations

from pathlib import Path

from csmd.errors import ConfigError
from csmd.pauses import Pauses, parse


class PauseFile:
    """Owns what is known of the pauses; calling it gives them, from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] = ()
        self._known = Pauses()
        self.look()

    def __call__(self) -> Pauses:
        return self._known

    def look(self) -> bool:
        """Reads the file when it has changed; whether it had. ConfigError leaves what was known."""
        stamp: tuple[int, ...] = ()
        try:
            info = self._path.stat()
            stamp = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)
            if stamp == self._stamp:
                return False
            found = parse(self._path.read_bytes(), where=str(self._path))
        except FileNotFoundError:
            stamp, found = (), Pauses()
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror}", hint="make it readable for its owner") from error
        self._known, changed, self._stamp = found, stamp != self._stamp, stamp
        return changed
