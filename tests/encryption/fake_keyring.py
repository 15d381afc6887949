"""A keyring in a file, by keyring's own interface, that can be locked; chosen by keyringrc.cfg, as a user would.

Its file is `keyring.json` in HOME; while `keyring.locked` lies there, nothing is given or taken.
"""

from __future__ import annotations

import json
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked


class FileKeyring(KeyringBackend):
    """Holds passwords by service and user name."""

    priority = 1

    def _read(self) -> dict[str, str]:
        if (Path.home() / "keyring.locked").exists():
            raise KeyringLocked("it is locked")
        place = Path.home() / "keyring.json"
        return dict(json.loads(place.read_text())) if place.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        (Path.home() / "keyring.json").write_text(json.dumps({**self._read(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        held = self._read()
        del held[f"{service}/{username}"]
        (Path.home() / "keyring.json").write_text(json.dumps(held))
